/* hub.c - what every kind of hub must do (repo/hub.h), tried on the one that $STET_TEST_HUB names, or else on a file.
 *
 * Random operations through two handles are compared with a model in memory; processes contend for claims; answers get
 * lost on their way; gc sweeps while results are published.
 */

#include "../expect.h"

#include <stdlib.h>
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

static char address[4200];
static int number;

/* A hub that nobody has used. */
static void fresh(void) {
    const char *given = getenv("STET_TEST_HUB");
    char *here = NULL;
    OK(stet_file_realpath(".", &here, &err));
    if (given)
        snprintf(address, sizeof address, "%s/%ld.%d", given, (long)getpid(), ++number);
    else
        snprintf(address, sizeof address, "file://%s/hub%d.db", here, ++number);
    stet_free(here);
}

static stet_hub *open_hub(void) {
    stet_hub *h;
    OK(stet_hub_open(address, 0, &h, &err));
    return h;
}

static stet_hash key_of(unsigned i) {
    return stet_hash_of(&i, sizeof i);
}

/* A result that is there. */
static stet_hash put(stet_hub *h, int64_t n) {
    stet_hash dag;
    OK(stet_repo_put_result(stet_hub_repo(h), stet_value_int(n), &dag, &err));
    OK(stet_hub_send(h, stet_hub_repo(h), &dag, 1, &err));
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
    int rounds = getenv("STET_TEST_LONG") ? 200 : 12;
    for (int seed = 1; seed <= rounds; seed++) {
        known all[KEYS] = {{0}};
        bool ref_there = false;
        stet_hash ref_at;
        random_state = (uint64_t)seed;
        fresh();
        stet_clock_hook = fake_clock;
        stet_hub *two[] = {open_hub(), open_hub()};
        for (int64_t n = 1; n <= 150; n++) {
            stet_hub *h = two[pick(2)];
            unsigned i = pick(KEYS);
            stet_hub_claim c;
            bool there;
            switch (pick(8)) {
            case 0:
                now_ms += pick(LEASE);
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
        stet_hub_close(two[0]);
        stet_hub_close(two[1]);
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
    stet_hub_close(h);
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
    stet_hub_close(h);
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
    stet_hub_close(h);
}

static void gc_takes_nothing_that_a_claim_names(void **state) {
    (void)state;
    fresh();
    stet_hub *h = open_hub();
    if (!stet_hub_is(h, stet_hub_repo(h))) { /* other kinds sweep by themselves */
        stet_hub_close(h);
        return;
    }
    put(h, -1);
    pid_t sweeper = fork();
    assert_true(sweeper >= 0);
    if (sweeper == 0) {
        stet_hub *mine = open_hub();
        for (;;) {
            stet_repo_gc_report report;
            OK(stet_repo_gc(stet_hub_repo(mine), &(stet_repo_gc_opts){.grace_s = 0}, &report, &err));
        }
    }
    for (unsigned n = 0; n < 150; n++) {
        stet_status got = STET_NOT_FOUND;
        stet_hub_claim next = {.key = key_of(n), .phase = STET_HUB_ENDED, .body = body_of(n)};
        for (int tries = 0; tries < 1000 && got == STET_NOT_FOUND; tries++) { /* swept in between: sent again */
            stet_error_clear(&err);
            next.result = put(h, n);
            got = stet_hub_swap_claim(h, NULL, &next, &err);
        }
        assert_int_equal(got, STET_OK);
        stet_value_release(next.body);
    }
    kill(sweeper, SIGKILL);
    waitpid(sweeper, NULL, 0);
    for (unsigned n = 0; n < 150; n++) {
        stet_hub_claim c;
        bool there;
        stet_value v;
        OK(stet_hub_get_claim(h, key_of(n), &there, &c, &err));
        assert_true(there);
        OK(stet_repo_dag_value(stet_hub_repo(h), c.result, &v, &err));
        assert_int_equal(stet_value_as_int(v), n);
        stet_value_release(c.body);
    }
    stet_buf said = STET_BUF(0);
    size_t found, repaired;
    OK(stet_repo_check(stet_hub_repo(h), false, &said, &found, &repaired, &err));
    assert_int_equal(found, 0);
    stet_buf_release(&said);
    stet_hub_close(h);
}

static void a_wait_ends_when_something_changes(void **state) {
    (void)state;
    fresh();
    stet_hub *h = open_hub(), *other = open_hub();
    put(other, 1);
    int64_t news = stet_hub_news(h), began = stet_clock_monotonic_us();
    pid_t writer = fork();
    assert_true(writer >= 0);
    if (writer == 0) {
        stet_hub *mine = open_hub();
        put(mine, 2);
        _exit(0);
    }
    stet_hub_wait(h, news, 300000);
    assert_true(stet_hub_news(h) != news);
    assert_true(stet_clock_monotonic_us() - began < 300000000);
    waitpid(writer, NULL, 0);
    stet_hub_close(h);
    stet_hub_close(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_follow_the_model),   cmocka_unit_test(one_of_many_gets_a_claim),
        cmocka_unit_test(a_writer_without_an_answer_finds_out), cmocka_unit_test(gc_takes_nothing_that_a_claim_names),
        cmocka_unit_test(a_wait_ends_when_something_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
