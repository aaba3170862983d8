/* hub.c - what every kind of hub must do (repo/hub.h), tried on the one that $STET_TEST_HUB names, or else on a file.
 *
 * Random operations through two handles are compared with a model in memory; processes contend for claims; answers get
 * lost on their way; gc sweeps while results are published.
 *
 * $STET_TEST_HUB is the address of a PostgreSQL database with options (hub-postgres.sh), in which every test makes hubs of
 * its own. $STET_TEST_SQL is the command that takes SQL for it: through it the test sets the clock of the hub.
 */

#include "../expect.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "call/claim.h"
#include "os/clock.h"
#include "os/file.h"
#include "repo/hub_kind.h"

enum { KEYS = 6, LEASE = 1000 };

static uint64_t random_state;
static unsigned pick(unsigned n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % n;
}

static int64_t now_ms = 1000000000;
static int64_t fake_clock(void) {
    return now_ms * 1000000;
}

static char address[4200], schema[100];
static int number, sql = -1;

/* Gives SQL to the server, and waits until it is done. */
static void tell_server(const char *format, ...) {
    char text[1000], answer[3];
    va_list args;
    int ends[2];
    if (sql < 0) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            dup2(ends[1], 0);
            dup2(ends[1], 1);
            execl("/bin/sh", "sh", "-c", getenv("STET_TEST_SQL"), (char *)NULL);
            _exit(127);
        }
        close(ends[1]);
        sql = ends[0];
    }
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    strcat(text, "\nSELECT 1;\n");
    assert_int_equal(write(sql, text, strlen(text)), strlen(text));
    assert_int_equal(read(sql, answer, 2), 2);
    assert_memory_equal(answer, "1\n", 2);
}

/* The time of the hub is from now on what the test says. */
static void take_clock(void) {
    stet_clock_hook = fake_clock;
    if (schema[0])
        tell_server(
            "CREATE TABLE %s.clock AS SELECT %lld::bigint AS ms; CREATE OR REPLACE FUNCTION %s.now_ms() RETURNS "
            "bigint LANGUAGE sql STABLE AS 'SELECT ms FROM %s.clock';",
            schema, (long long)now_ms, schema, schema);
}

static void advance_clock(int64_t ms) {
    now_ms += ms;
    if (schema[0])
        tell_server("UPDATE %s.clock SET ms = %lld;", schema, (long long)now_ms);
}

/* A hub that nobody has used. */
static void fresh(void) {
    const char *given = getenv("STET_TEST_HUB");
    char *here = NULL;
    bool changed;
    OK(stet_file_realpath(".", &here, &err));
    if (given) {
        snprintf(schema, sizeof schema, "t%ld_%d", (long)getpid(), ++number);
        snprintf(address, sizeof address, "%s&schema=%s", given, schema);
    } else
        snprintf(address, sizeof address, "file://%s/hub%d.db", here, ++number);
    OK(stet_hub_init(address, &changed, &err));
    assert_true(changed);
    OK(stet_hub_init(address, &changed, &err));
    assert_false(changed);
    stet_free(here);
}

static stet_hub *open_hub(void) {
    stet_hub *h;
    OK(stet_hub_open(address, STET_REPO_MUST_EXIST, &h, &err));
    if (!stet_hub_repo(h)) {
        stet_repo *r;
        char path[100];
        snprintf(path, sizeof path, "lent%ld.%d.db", (long)getpid(), ++number);
        OK(stet_repo_open_path(path, 0, &r, &err));
        stet_hub_lend(h, r);
    }
    return h;
}

static void close_hub(stet_hub *h) {
    stet_repo *lent = stet_hub_is(h, stet_hub_repo(h)) ? NULL : stet_hub_repo(h);
    stet_hub_close(h);
    stet_repo_close(lent);
}

static stet_hash key_of(unsigned i) {
    return stet_hash_of(&i, sizeof i);
}

/* A result that is there. If gc takes a part of it while it is sent, it is sent again. */
static stet_hash put(stet_hub *h, int64_t n) {
    stet_hash dag;
    stet_status got = STET_NOT_FOUND;
    OK(stet_repo_put_result(stet_hub_repo(h), stet_value_int(n), &dag, &err));
    for (int tries = 0; tries < 1000 && got == STET_NOT_FOUND; tries++) {
        stet_error_clear(&err);
        got = stet_hub_send(h, stet_hub_repo(h), &dag, 1, &err);
    }
    OK(got);
    return dag;
}

typedef struct known {
    bool there;
    stet_hub_claim claim;
    int64_t ends_ms;
    int64_t number; /* in the body */
} known;

static stet_value body_of(int64_t n) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "n", stet_value_int(n));
    return v;
}

static void same_claim(const known *k, bool there, const stet_hub_claim *c) {
    assert_int_equal(there, k->there);
    if (!there)
        return;
    assert_true(stet_hash_equal(c->version, k->claim.version));
    assert_int_equal(c->phase, k->claim.phase);
    assert_int_equal(stet_value_as_int(stet_value_get(c->body, "n")), k->number);
    assert_true(stet_hash_equal(c->result, k->claim.result));
    assert_int_equal(c->changed_ms, k->claim.changed_ms);
    if (c->phase == STET_HUB_HELD)
        assert_int_equal(c->left_ms, k->ends_ms - now_ms);
}

static bool chosen(const known *k, stet_hub_which which, int64_t before) {
    if (!k->there)
        return false;
    switch (which) {
    case STET_HUB_OPEN:
        return k->claim.phase == STET_HUB_QUEUED || (k->claim.phase == STET_HUB_HELD && k->ends_ms <= now_ms);
    case STET_HUB_LIVE:
        return k->claim.phase == STET_HUB_HELD && k->ends_ms > now_ms;
    default:
        return k->claim.phase == STET_HUB_ENDED && k->claim.changed_ms < before;
    }
}

static void find(stet_hub *h, const known *all) {
    stet_hub_which which = (stet_hub_which)pick(3);
    int64_t before = now_ms - pick(2000);
    size_t limit = pick(3) ? SIZE_MAX : 1 + pick(3), expected = 0;
    stet_hub_keys keys = {0};
    OK(stet_hub_find_claims(h, which, before, limit, &keys, &err));
    for (unsigned i = 0; i < KEYS; i++)
        expected += chosen(&all[i], which, before);
    assert_int_equal(keys.len, expected < limit ? expected : limit);
    for (size_t j = 0; j < keys.len; j++) {
        bool found = false;
        for (unsigned i = 0; i < KEYS; i++)
            found |= stet_hash_equal(keys.at[j], key_of(i)) && chosen(&all[i], which, before);
        assert_true(found);
        for (size_t m = 0; m < j; m++)
            assert_false(stet_hash_equal(keys.at[j], keys.at[m]));
    }
    free(keys.at);
}

static void swap(stet_hub *h, known *k, unsigned i, int64_t n) {
    stet_hub_claim next = {.key = key_of(i), .phase = (stet_hub_phase)pick(3), .body = body_of(n)};
    stet_hash wrong = stet_hash_of("wrong", 5), missing = stet_hash_of("missing", 7);
    const stet_hash *expect = k->there ? &k->claim.version : NULL;
    next.lease_for_ms = 1 + pick(2 * LEASE);
    if (next.phase == STET_HUB_ENDED)
        next.result = put(h, n);
    stet_status want = STET_OK;
    switch (pick(6)) {
    case 0: /* somebody else was faster */
        expect = k->there && pick(2) ? NULL : &wrong;
        want = STET_CONFLICT;
        break;
    case 1: /* H1 */
        next.result = missing;
        want = STET_NOT_FOUND;
        break;
    default:
        break;
    }
    stet_status got = stet_hub_swap_claim(h, expect, &next, &err);
    assert_int_equal(got, want);
    stet_error_clear(&err);
    stet_value_release(next.body);
    if (got == STET_OK) {
        next.changed_ms = now_ms;
        *k = (known){.there = true, .claim = next, .ends_ms = now_ms + next.lease_for_ms, .number = n};
    }
}

static void drop(stet_hub *h, known *k, unsigned i) {
    stet_hash wrong = stet_hash_of("wrong", 5);
    bool right = k->there && pick(2);
    stet_status got = stet_hub_remove_claim(h, key_of(i), right ? k->claim.version : wrong, &err);
    assert_int_equal(got, right ? STET_OK : STET_CONFLICT);
    stet_error_clear(&err);
    if (right)
        k->there = false;
}

static void refs(stet_hub *h, bool *there, stet_hash *at, int64_t n) {
    static const char name[] = "refs/exec/11111111-1111-4111-8111-111111111111";
    stet_hash wrong = stet_hash_of("wrong", 5), set = put(h, n), now;
    bool is, right = pick(3) > 0, remove = *there && pick(3) == 0;
    stet_status got = stet_hub_swap_ref(h, name, right ? (*there ? at : NULL) : &wrong, remove ? NULL : &set, &err);
    assert_int_equal(got, right ? STET_OK : STET_CONFLICT);
    stet_error_clear(&err);
    if (right) {
        *there = !remove;
        *at = set;
    }
    OK(stet_hub_ref(h, name, &is, &now, &err));
    assert_int_equal(is, *there);
    assert_true(!is || stet_hash_equal(now, *at));
}

static void random_operations_follow_the_model(void **state) {
    (void)state;
    int rounds = getenv("STET_TEST_LONG") ? 200 : getenv("STET_TEST_HUB") ? 4 : 12;
    for (int seed = 1; seed <= rounds; seed++) {
        known all[KEYS] = {{0}};
        bool ref_there = false;
        stet_hash ref_at;
        random_state = (uint64_t)seed;
        fresh();
        take_clock();
        stet_hub *two[] = {open_hub(), open_hub()};
        for (int64_t n = 1; n <= 150; n++) {
            stet_hub *h = two[pick(2)];
            unsigned i = pick(KEYS);
            stet_hub_claim c;
            bool there;
            switch (pick(8)) {
            case 0:
                advance_clock(pick(LEASE));
                break;
            case 1:
                find(h, all);
                break;
            case 2:
                drop(h, &all[i], i);
                break;
            case 3:
                refs(h, &ref_there, &ref_at, n);
                break;
            case 4:
            case 5:
                swap(h, &all[i], i, n);
                break;
            default:
                OK(stet_hub_get_claim(h, key_of(i), &there, &c, &err));
                same_claim(&all[i], there, &c);
                if (there)
                    stet_value_release(c.body);
                break;
            }
        }
        close_hub(two[0]);
        close_hub(two[1]);
        stet_clock_hook = NULL;
    }
}

/* Takes claims from whoever has them. Returns how often it succeeded. */
static int64_t contend(int me) {
    stet_hub *h = open_hub();
    int64_t won = 0;
    random_state = (uint64_t)me + 77;
    for (int n = 0; n < 60; n++) {
        stet_claim before, after;
        bool there;
        stet_hash key = key_of(pick(2));
        OK(stet_claim_get(h, key, &there, &before, &err));
        after =
            there ? stet_claim_copy(&before) : (stet_claim){.job = stet_value_null(), .request = stet_value_object()};
        after.state = STET_CLAIM_CLAIMED;
        after.attempt++;
        after.lease_for_ms = LEASE;
        snprintf(after.owner, sizeof after.owner, "%d", me);
        stet_status got = stet_claim_swap(h, key, there ? &before : NULL, &after, &err);
        assert_true(got == STET_OK || got == STET_CONFLICT);
        stet_error_clear(&err);
        won += got == STET_OK;
        if (there)
            stet_claim_release(&before);
        stet_claim_release(&after);
    }
    close_hub(h);
    return won;
}

static void one_of_many_gets_a_claim(void **state) {
    (void)state;
    enum { PROCESSES = 4 };
    int pipes[2];
    pid_t pids[PROCESSES];
    int64_t won, total = 0, attempts = 0;
    fresh();
    assert_int_equal(pipe(pipes), 0);
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            won = contend(i);
            _exit(write(pipes[1], &won, sizeof won) == (ssize_t)sizeof won ? 0 : 1);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
        assert_int_equal(read(pipes[0], &won, sizeof won), sizeof won);
        total += won;
    }
    close(pipes[0]);
    close(pipes[1]);
    stet_hub *h = open_hub();
    for (unsigned i = 0; i < 2; i++) {
        stet_claim c;
        bool there;
        OK(stet_claim_get(h, key_of(i), &there, &c, &err));
        if (there) {
            attempts += c.attempt;
            stet_claim_release(&c);
        }
    }
    assert_int_equal(attempts, total); /* the fencing number counts every one who was told "yes" */
    close_hub(h);
}

/* A hub whose answers get lost: a swap happens or does not, and its writer is told nothing but "no answer". */
static const stet_hub_kind *real;
static stet_hub_kind lossy;
static bool happened;

static stet_status lose_answer(stet_hub *h, stet_hash key, const stet_hash *expect, const stet_hub_claim *next,
                               const char *text, size_t len, stet_error *e) {
    unsigned fate = pick(4);
    stet_status status = STET_IO;
    happened = false;
    if (fate != 0) {
        status = real->swap_claim(h, key, expect, next, text, len, e);
        happened = status == STET_OK;
    }
    if (fate > 1 && status != STET_IO)
        return status;
    stet_error_clear(e);
    return stet_fail(e, pick(2) ? STET_IO : STET_BUSY, "no answer");
}

static void a_writer_without_an_answer_finds_out(void **state) {
    (void)state;
    fresh();
    stet_hub *h = open_hub();
    random_state = 5;
    real = h->kind;
    lossy = *real;
    lossy.swap_claim = lose_answer;
    h->kind = &lossy;
    int64_t attempt = 0;
    for (int n = 0; n < 200; n++) {
        stet_claim before, after;
        bool there;
        OK(stet_claim_get(h, key_of(0), &there, &before, &err));
        assert_int_equal(there ? before.attempt : 0, attempt);
        after =
            there ? stet_claim_copy(&before) : (stet_claim){.job = stet_value_null(), .request = stet_value_object()};
        after.state = STET_CLAIM_RUNNING;
        after.attempt++;
        after.lease_for_ms = LEASE;
        stet_status got = stet_claim_swap(h, key_of(0), there ? &before : NULL, &after, &err);
        stet_error_clear(&err);
        assert_int_equal(got == STET_OK, happened);
        attempt += happened;
        if (there)
            stet_claim_release(&before);
        stet_claim_release(&after);
    }
    assert_true(attempt > 50 && attempt < 200);
    h->kind = real;
    close_hub(h);
}

static stet_status swap_ended(stet_hub *h, unsigned n) {
    stet_status got = STET_NOT_FOUND;
    stet_hub_claim next = {.key = key_of(n), .phase = STET_HUB_ENDED, .body = body_of(n)};
    for (int tries = 0; tries < 1000 && got == STET_NOT_FOUND; tries++) { /* swept in between: sent again */
        stet_error_clear(&err);
        next.result = put(h, n);
        got = stet_hub_swap_claim(h, NULL, &next, &err);
    }
    stet_value_release(next.body);
    return got;
}

static void gc_takes_nothing_that_a_claim_names(void **state) {
    enum { CLAIMS = 100 };
    (void)state;
    fresh();
    stet_hub *h = open_hub();
    put(h, -1);
    pid_t sweeper = fork();
    assert_true(sweeper >= 0);
    if (sweeper == 0) {
        stet_hub *mine = open_hub();
        for (;;)
            OK(stet_hub_gc(mine, 0, NULL, &err));
    }
    for (unsigned n = 0; n < CLAIMS; n++)
        OK(swap_ended(h, n));
    kill(sweeper, SIGKILL);
    waitpid(sweeper, NULL, 0);
    close_hub(h);
    h = open_hub(); /* with another repository lent: all of it comes from the hub */
    for (unsigned n = 0; n < CLAIMS; n++) {
        stet_hub_claim c;
        bool there;
        stet_value v;
        OK(stet_hub_get_claim(h, key_of(n), &there, &c, &err));
        assert_true(there);
        OK(stet_hub_bring(h, stet_hub_repo(h), &c.result, 1, &err));
        OK(stet_repo_dag_value(stet_hub_repo(h), c.result, &v, &err));
        assert_int_equal(stet_value_as_int(v), n);
        stet_value_release(c.body);
    }
    stet_buf said = STET_BUF(0);
    size_t found;
    OK(stet_hub_check(h, &said, &found, &err));
    assert_int_equal(found, 0);
    stet_buf_release(&said);
    close_hub(h);
}

static void gc_takes_what_nothing_names(void **state) {
    (void)state;
    fresh();
    stet_hub *h = open_hub();
    stet_hub_gc_report report;
    stet_hub_counts counts;
    stet_hub_claim c;
    bool there;
    static const char name[] = "refs/exec/22222222-2222-4222-8222-222222222222";
    stet_hash kept = put(h, 41), other;
    OK(stet_hub_swap_ref(h, name, NULL, &kept, &err));
    OK(swap_ended(h, 42));
    for (int n = 0; n < 50; n++)
        put(h, 1000 + n);
    OK(stet_hub_gc(h, 3600, &report, &err)); /* all of it is young */
    assert_int_equal(report.objects, 0);
    OK(stet_hub_gc(h, 0, &report, &err));
    OK(stet_hub_count(h, &counts, &err));
    assert_int_equal(counts.objects, 6); /* of each of the two results: a DAG, a node, a datum */
    assert_true(report.objects >= 150);
    OK(stet_hub_get_claim(h, key_of(42), &there, &c, &err));
    OK(stet_hub_remove_claim(h, key_of(42), c.version, &err));
    stet_value_release(c.body);
    OK(stet_hub_gc(h, 0, &report, &err));
    assert_int_equal(report.objects, 3);
    OK(stet_hub_ref(h, name, &there, &other, &err));
    assert_true(there && stet_hash_equal(other, kept));
    OK(stet_hub_swap_ref(h, name, &kept, NULL, &err));
    OK(stet_hub_gc(h, 0, &report, &err));
    OK(stet_hub_count(h, &counts, &err));
    assert_int_equal(counts.objects, 0);
    close_hub(h);
}

/* Bytes that are made when they are asked for: `seed` says which, `len` how many. */
typedef struct stream {
    uint64_t seed, at, len, fail_at;
    stet_hasher *hasher;
} stream;

static char byte_at(uint64_t seed, uint64_t at) {
    return (char)((at * 2654435761u + seed * 40503u) >> 7);
}

static stet_status give_bytes(void *ctx, void *bytes, size_t room, size_t *got, stet_error *e) {
    stream *s = ctx;
    for (*got = 0; *got < room && s->at < s->len; ++*got, ++s->at) {
        if (s->at == s->fail_at)
            return stet_fail(e, STET_FAILED, "the source ends in the middle");
        ((char *)bytes)[*got] = byte_at(s->seed, s->at);
    }
    return STET_OK;
}

static stet_status take_bytes(void *ctx, const void *bytes, size_t len, stet_error *e) {
    stream *s = ctx;
    (void)e;
    for (size_t i = 0; i < len; i++, s->at++)
        if (((const char *)bytes)[i] != byte_at(s->seed, s->at))
            return stet_fail(e, STET_CORRUPT, "byte %llu is another", (unsigned long long)s->at);
    return STET_OK;
}

static stet_hash hash_of(uint64_t seed, uint64_t len) {
    stet_hasher *hasher = stet_hasher_begin();
    for (uint64_t i = 0; i < len; i++) {
        char c = byte_at(seed, i);
        stet_hasher_add(hasher, &c, 1);
    }
    return stet_hasher_end(hasher);
}

static void blobs_come_back(void **state) {
    (void)state;
    fresh();
    stet_hub *h = open_hub(), *other = open_hub();
    static const uint64_t sizes[] = {0, 1, 262143, 262144, 262145, 1048576, 2500000};
    random_state = 3;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        stet_hash hash = hash_of(i, sizes[i]);
        stream s = {.seed = i, .len = sizes[i], .fail_at = UINT64_MAX};
        bool there;
        int64_t size;
        OK(stet_hub_has_blob(h, hash, &there, &size, &err));
        assert_false(there);
        assert_int_equal(stet_hub_get_blob(h, hash, 0, take_bytes, &s, &err), STET_NOT_FOUND);
        stet_error_clear(&err);
        /* Neither a source that fails nor one with other bytes leaves a blob. */
        if (sizes[i] > 0) {
            stream bad = {.seed = i, .len = sizes[i], .fail_at = sizes[i] - 1};
            assert_int_equal(stet_hub_put_blob(h, hash, give_bytes, &bad, &err), STET_FAILED);
            stet_error_clear(&err);
            bad = (stream){.seed = i + 100, .len = sizes[i], .fail_at = UINT64_MAX};
            assert_int_equal(stet_hub_put_blob(h, hash, give_bytes, &bad, &err), STET_CORRUPT);
            stet_error_clear(&err);
            OK(stet_hub_has_blob(other, hash, &there, &size, &err));
            assert_false(there);
        }
        OK(stet_hub_put_blob(h, hash, give_bytes, &s, &err));
        OK(stet_hub_has_blob(other, hash, &there, &size, &err));
        assert_true(there);
        assert_int_equal(size, sizes[i]);
        s = (stream){.seed = i, .len = sizes[i], .fail_at = UINT64_MAX};
        OK(stet_hub_put_blob(other, hash, give_bytes, &s, &err)); /* again: the same */
        for (int k = 0; k < 6; k++) {
            uint64_t from = k == 0 ? 0 : k == 1 ? sizes[i] : pick((unsigned)sizes[i] + 1);
            s = (stream){.seed = i, .at = from};
            OK(stet_hub_get_blob(k % 2 ? h : other, hash, (int64_t)from, take_bytes, &s, &err));
            assert_int_equal(s.at, sizes[i]);
        }
    }
    stet_hub_gc_report report;
    stet_hub_counts counts;
    stet_buf said = STET_BUF(0);
    size_t found;
    OK(stet_hub_check(h, &said, &found, &err));
    assert_int_equal(found, 0);
    stet_buf_release(&said);
    OK(stet_hub_gc(h, 3600, &report, &err));
    assert_int_equal(report.blobs, 0);
    OK(stet_hub_gc(h, 0, &report, &err));
    assert_int_equal(report.blobs, sizeof sizes / sizeof *sizes);
    OK(stet_hub_gc(h, 0, NULL, &err));
    OK(stet_hub_count(h, &counts, &err));
    assert_int_equal(counts.blobs, 0);
    close_hub(h);
    close_hub(other);
}

static void announce(stet_hub *h, const char *name, int64_t n, int64_t for_ms) {
    stet_value body = body_of(n);
    OK(stet_hub_announce(h, name, body, for_ms, &err));
    stet_value_release(body);
}

static void workers_are_listed_until_they_are_silent(void **state) {
    (void)state;
    fresh();
    take_clock();
    stet_hub *h = open_hub();
    stet_hub_workers list = {0};
    announce(h, "b", 1, 1000);
    announce(h, "a", 2, 4000);
    announce(h, "b", 3, 2000);
    for (int step = 0; step < 4; step++) {
        static const size_t expected[] = {2, 2, 1, 0};
        OK(stet_hub_list_workers(h, &list, &err));
        assert_int_equal(list.len, expected[step]);
        if (step == 0) {
            assert_string_equal(list.at[0].name, "a");
            assert_int_equal(stet_value_as_int(stet_value_get(list.at[1].body, "n")), 3);
        }
        stet_hub_workers_release(&list);
        advance_clock(1500);
        if (step == 2)
            announce(h, "a", 2, 0);
    }
    close_hub(h);
    stet_clock_hook = NULL;
}

static void a_wait_ends_when_something_changes(void **state) {
    (void)state;
    fresh();
    stet_hub *h = open_hub();
    OK(swap_ended(h, 1));
    int64_t news = stet_hub_news(h), began = stet_clock_monotonic_us();
    pid_t writer = fork();
    assert_true(writer >= 0);
    if (writer == 0) {
        stet_hub *mine = open_hub();
        OK(swap_ended(mine, 2));
        _exit(0);
    }
    stet_hub_wait(h, news, 300000);
    assert_true(stet_hub_news(h) != news);
    assert_true(stet_clock_monotonic_us() - began < 300000000);
    waitpid(writer, NULL, 0);
    close_hub(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_follow_the_model),
        cmocka_unit_test(one_of_many_gets_a_claim),
        cmocka_unit_test(a_writer_without_an_answer_finds_out),
        cmocka_unit_test(gc_takes_nothing_that_a_claim_names),
        cmocka_unit_test(gc_takes_what_nothing_names),
        cmocka_unit_test(blobs_come_back),
        cmocka_unit_test(workers_are_listed_until_they_are_silent),
        cmocka_unit_test(a_wait_ends_when_something_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
