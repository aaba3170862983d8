/* observe.c - processes that run actions and edit two spaces that read each other are killed at any change.
 *
 * They are killed before or after any change to the files: between any two commits, mirrors and owner, data and push.
 * After each round the spaces are opened again. Acknowledged commits are there. Catching up leaves no difference
 * between the stored marks and the marks derived from sequences and revisions. The same holds for a repair after marks
 * and rows have been removed.
 */

#include "../observe_random.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../faults.h"
#include "db/db.h"
#include "memory/observe.h"
#include "os/file.h"

enum { SPACES = 2, CHILDREN = 3, DOCS = 5, ACTIONS = 8 };

static const char *const names[SPACES] = {"a", "b"};
static void random_side(stet_path *p) {
    stet_path_push(p, "value");
    if (rnd(2))
        stet_path_push(p, rnd(2) ? "l" : "r");
}

static stet_docname random_doc(char id[32]) {
    snprintf(id, 32, rnd(4) ? "d%u" : "out%u", rnd(DOCS));
    return (stet_docname){id, ""};
}

/* Reads of both spaces, and a write to the action's output or not. */
static stet_status fill(stet_tx *tx, stet_space *other) {
    stet_status st = STET_OK;
    char id[32], key[32], out[32];
    for (unsigned n = rnd(4); n && st == STET_OK; n--) {
        stet_path p = STET_PATH_INIT;
        stet_value v;
        stet_docname name = random_doc(id);
        random_side(&p);
        st = stet_tx_read(tx, rnd(2) ? other : NULL, &name, stet_path_ref(&p), rnd(2) ? STET_SHALLOW : STET_RECURSIVE,
                          &v, &err);
        if (st == STET_NOT_FOUND)
            st = STET_OK;
        stet_error_clear(&err);
        stet_path_release(&p);
    }
    unsigned action = rnd(ACTIONS);
    snprintf(key, sizeof key, "n%u", action);
    snprintf(out, sizeof out, "out%u", action);
    stet_path value = STET_PATH_INIT;
    stet_path_push(&value, "value");
    stet_docname output = {out, ""};
    if (st == STET_OK && rnd(3))
        st = stet_tx_write(tx, &output, stet_path_ref(&value), stet_value_int(rnd(5)), &err);
    stet_address declared = {NULL, output, stet_path_ref(&value)};
    stet_observation o = {.key = {"piece", "", key},
                          .kind = STET_ACTION_COMPUTATION,
                          .generation = 1,
                          .run = STET_RUN_ACTION,
                          .declared_writes = &declared,
                          .declared_count = 1};
    if (st == STET_OK)
        st = stet_observe_attach(tx, &o, &err);
    stet_path_release(&value);
    return st;
}

static stet_status run_one(stet_space *s, stet_space *other) {
    stet_tx *tx;
    stet_status st = stet_tx_begin(s, "", &tx, &err);
    if (st != STET_OK)
        return st;
    st = fill(tx, other);
    if (st == STET_OK)
        return stet_tx_commit(tx, NULL, &err);
    stet_tx_abort(tx);
    return st;
}

static stet_status run_group(stet_space *s, stet_space *other) {
    stet_group *g;
    stet_status st = stet_group_begin(s, "", &g, &err);
    if (st != STET_OK)
        return st;
    for (unsigned n = 1 + rnd(4); n && st == STET_OK; n--) {
        stet_tx *tx;
        st = stet_tx_begin_in(g, &tx, &err);
        if (st == STET_OK &&
            ((st = fill(tx, other)) != STET_OK || (st = stet_group_add(g, tx, NULL, NULL, &err)) != STET_OK))
            stet_tx_abort(tx);
    }
    if (st == STET_OK)
        st = stet_group_flush(g, &err);
    stet_group_end(g);
    return st;
}

static stet_status edit(stet_space *s, const char *id, stet_value v, const char *member) {
    stet_tx *tx;
    stet_status st = stet_tx_begin(s, "", &tx, &err);
    if (st != STET_OK) {
        stet_value_release(v);
        return st;
    }
    stet_path p = STET_PATH_INIT;
    stet_path_push(&p, "value");
    if (member)
        stet_path_push(&p, member);
    stet_docname name = {id, ""};
    st = stet_tx_write(tx, &name, stet_path_ref(&p), v, &err);
    stet_path_release(&p);
    if (st == STET_OK)
        return stet_tx_commit(tx, NULL, &err);
    stet_tx_abort(tx);
    return st;
}

/* What one process does until it is killed: acknowledges each write of its own counter through the pipe. */
static _Noreturn void work(int child, int64_t base, int fd, int steps) {
    stet_space *s[SPACES] = {open_named(names[0]), open_named(names[1])};
    if (!s[0] || !s[1])
        _exit(1);
    for (int i = 0; i < steps; i++) {
        int where = (int)rnd(SPACES);
        char id[32];
        stet_status st = STET_OK;
        switch (rnd(10)) {
        case 0: {
            snprintf(id, sizeof id, "count%d", child);
            int64_t n = base + i + 1;
            st = edit(s[where], id, stet_value_int(n), where ? "b" : "a");
            struct {
                int64_t where, n;
            } said = {where, n};
            if (st == STET_OK && write(fd, &said, sizeof said) != sizeof said)
                _exit(2);
            break;
        }
        case 1:
        case 2:
        case 3:
            snprintf(id, sizeof id, "d%u", rnd(DOCS));
            st = edit(s[where], id, stet_value_int(rnd(100)), rnd(2) ? "l" : "r");
            break;
        case 4:
            st = stet_observe_catch_up(s[where], &err);
            break;
        case 5:
            st = run_group(s[where], s[!where]);
            break;
        case 6:
            if (rnd(4) == 0) {
                stet_observe_switch(s[where], false);
                snprintf(id, sizeof id, "d%u", rnd(DOCS));
                st = edit(s[where], id, stet_value_int(rnd(100)), "l");
                stet_observe_switch(s[where], true);
            }
            break;
        default:
            st = run_one(s[where], s[!where]);
        }
        if (st != STET_OK && st != STET_CONFLICT && st != STET_BUSY) {
            fprintf(stderr, "child %d: %s: %s\n", child, stet_status_name(st), err.message);
            _exit(3);
        }
        stet_error_clear(&err);
    }
    stet_space_close(s[0]);
    stet_space_close(s[1]);
    _exit(0);
}

static void no_problems(stet_space *s, const char *what, int round) {
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    OK(stet_observe_check(s, false, &problems, &found, &repaired, &err));
    if (found)
        fail_msg("round %d, %s: %s", round, what, stet_buf_cstr(&problems));
    stet_buf_release(&problems);
}

static int64_t counter(stet_space *s, int child, int where) {
    char id[32];
    snprintf(id, sizeof id, "count%d", child);
    stet_docname name = {id, ""};
    stet_doc_state d;
    stet_value v, n;
    OK(stet_space_load(s, 0, &name, -1, &d, &err));
    int64_t out = 0;
    if (d.exists && stet_value_find(d.value, "value", 5, &v) && stet_value_find(v, where ? "b" : "a", 1, &n))
        out = stet_value_as_int(n);
    stet_value_release(d.value);
    return out;
}

static void verify(int round, int64_t acknowledged[CHILDREN][SPACES]) {
    stet_space *s[SPACES] = {open_named(names[0]), open_named(names[1])};
    for (int i = 0; i < SPACES; i++) {
        assert_non_null(s[i]);
        for (int c = 0; c < CHILDREN; c++)
            if (counter(s[i], c, i) < acknowledged[c][i])
                fail_msg("round %d: process %d acknowledged %lld in space %s, and %lld is there", round, c,
                         (long long)acknowledged[c][i], names[i], (long long)counter(s[i], c, i));
    }
    /* Before catching up too: what is not told yet is known not to be. */
    for (int i = 0; i < SPACES; i++)
        no_problems(s[i], "as the crash left it", round);
    for (int i = 0; i < SPACES; i++)
        OK(stet_observe_catch_up(s[i], &err));
    for (int i = 0; i < SPACES; i++)
        no_problems(s[i], "after catching up", round);
    if (round % 16 == 5) {
        stet_space *hurt = s[rnd(SPACES)];
        OK(stet_db_begin_write(stet_space_db(hurt), &err));
        stet_db_exec(stet_space_db(hurt), "DELETE FROM mark WHERE action % 2");
        stet_db_exec(stet_space_db(hurt), LOSE_READS);
        stet_db_exec(stet_space_db(hurt), "UPDATE action SET observation = x'0101' WHERE action % 5 = 0");
        stet_db_exec(stet_space_db(hurt), "DELETE FROM mirror WHERE action % 4 = 1");
        OK(stet_db_commit(stet_space_db(hurt), &err));
        for (int i = 0; i < SPACES; i++) {
            stet_buf problems = STET_BUF(0);
            size_t found, repaired;
            OK(stet_observe_check(s[i], true, &problems, &found, &repaired, &err));
            assert_int_equal(found, repaired);
            stet_buf_release(&problems);
            no_problems(s[i], "after a repair", round);
        }
    }
    for (int i = 0; i < SPACES; i++)
        stet_space_close(s[i]);
}

static void processes_killed_between_any_two_commits_leave_marks_that_can_be_derived(void **state) {
    (void)state;
    int rounds = getenv("STET_TEST_LONG") ? 3000 : getenv("STET_TEST_SHORT") ? 12 : 300, kills = 0;
    seed = getenv("STET_TEST_SEED") ? strtoull(getenv("STET_TEST_SEED"), NULL, 10) : 20261115;
    int64_t acknowledged[CHILDREN][SPACES] = {0};
    for (int round = 0; round < rounds; round++) {
        int fds[CHILDREN][2];
        pid_t pids[CHILDREN];
        int children = 1 + (int)rnd(CHILDREN);
        for (int c = 0; c < children; c++) {
            int64_t n = 1 + rnd(rnd(2) ? 60 : 600);
            bool after = rnd(2);
            assert_int_equal(pipe(fds[c]), 0);
            seed++;
            pids[c] = fork();
            if (pids[c] == 0) {
                rnd(1);
                seed += (uint64_t)c << 32;
                faults_arm_durable(n, after ? STET_SYS_KILL_AFTER : STET_SYS_KILL, 0);
                work(c, (int64_t)round * 1000, fds[c][1], 60);
            }
            close(fds[c][1]);
        }
        for (int c = 0; c < children; c++) {
            struct {
                int64_t where, n;
            } said;
            while (read(fds[c][0], &said, sizeof said) == sizeof said)
                acknowledged[c][said.where] = said.n;
            close(fds[c][0]);
            int status;
            assert_int_equal(waitpid(pids[c], &status, 0), pids[c]);
            if (WIFSIGNALED(status))
                assert_int_equal(WTERMSIG(status), SIGKILL);
            else
                assert_int_equal(status, 0);
            kills += WIFSIGNALED(status) != 0;
        }
        verify(round, acknowledged);
    }
    print_message("# %d rounds, %d kills\n", rounds, kills);
    assert_true(kills > rounds);
}

/* One action of space a that reads d0 of space b. */
static stet_status read_far(stet_space *a, stet_space *b) {
    stet_tx *tx;
    stet_status st = stet_tx_begin(a, "", &tx, &err);
    if (st != STET_OK)
        return st;
    stet_path p = STET_PATH_INIT;
    stet_path_push(&p, "value");
    stet_value v;
    st = stet_tx_read(tx, b, &(stet_docname){"d0", ""}, stet_path_ref(&p), STET_RECURSIVE, &v, &err);
    stet_path_release(&p);
    stet_observation o = {
        .key = {"piece", "", "far"}, .kind = STET_ACTION_COMPUTATION, .generation = 1, .run = STET_RUN_ACTION};
    if (st == STET_OK)
        st = stet_observe_attach(tx, &o, &err);
    if (st == STET_OK)
        return stet_tx_commit(tx, NULL, &err);
    stet_tx_abort(tx);
    return st;
}

typedef enum meanwhile { COLLECT, CHANGE } meanwhile;

/* Holds both spaces open, so that SQLite does not read the log again, and acts when it is told to. */
static _Noreturn void stay(meanwhile what, int ready, int go) {
    stet_space *a = open_named("a"), *b = open_named("b");
    char c = 0;
    int64_t rows = 0;
    if (!a || !b || stet_observe_catch_up(a, &err) != STET_OK || stet_observe_catch_up(b, &err) != STET_OK)
        _exit(1);
    if (write(ready, &c, 1) != 1 || read(go, &c, 1) != 1)
        _exit(2);
    stet_status st = what == COLLECT ? stet_observe_gc(b, &(stet_observe_gc_opts){0}, &rows, &err)
                                     : edit(b, "d0", stet_value_int(7), "l");
    if (st != STET_OK)
        _exit(3);
    kill(getpid(), SIGKILL);
    _exit(4);
}

/* A process is killed after its commit reached the file and before SQLite announced it: others go on without that
 * commit. Once all of them have died the log is read again, and the commit is there. What they did in the other space
 * meanwhile must fit both. */
static void a_commit_that_comes_back_after_others_acted_without_it_is_noticed(void **state) {
    (void)state;
    for (int what = COLLECT; what <= CHANGE; what++)
        for (int64_t n = 1, killed = 1; killed; n++) {
            char dir[32];
            snprintf(dir, sizeof dir, "back-%d-%lld", what, (long long)n);
            assert_int_equal(mkdir(dir, 0700) | chdir(dir), 0);
            stet_space *a = open_named("a"), *b = open_named("b");
            OK(edit(a, "d0", stet_value_int(1), "l"));
            OK(edit(b, "d0", stet_value_int(1), "l"));
            stet_space_close(a);
            stet_space_close(b);
            int ready[2], go[2], status;
            assert_int_equal(pipe(ready) | pipe(go), 0);
            pid_t other = fork();
            if (other == 0)
                stay((meanwhile)what, ready[1], go[0]);
            char c = 0;
            assert_int_equal(read(ready[0], &c, 1), 1);
            pid_t writer = fork();
            if (writer == 0) {
                faults_arm_durable(n, STET_SYS_KILL_AFTER, 0);
                a = open_named("a");
                b = open_named("b");
                _exit(a && b && read_far(a, b) == STET_OK ? 0 : 1);
            }
            assert_int_equal(waitpid(writer, &status, 0), writer);
            killed = WIFSIGNALED(status);
            assert_true(killed || status == 0);
            assert_int_equal(write(go[1], &c, 1), 1);
            assert_int_equal(waitpid(other, &status, 0), other);
            assert_true(WIFSIGNALED(status));
            close(ready[0]), close(ready[1]), close(go[0]), close(go[1]);
            int64_t none[CHILDREN][SPACES] = {0};
            verify((int)n * 16, none); /* no repair */
            assert_int_equal(chdir(".."), 0);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_killed_between_any_two_commits_leave_marks_that_can_be_derived),
        cmocka_unit_test(a_commit_that_comes_back_after_others_acted_without_it_is_noticed)};
    faults_fast_directory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
