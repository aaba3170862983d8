/* repo.c - the process is killed at each durability point of a step of work on the repository.
 *
 * Afterwards the state is that before or after the step, all objects are complete, and the same step leads to the same
 * end.
 */

#include "../expect.h"

#include <signal.h>
#include <sys/wait.h>

#include "../faults.h"
#include "../repo_steps.h"

/* True: it was killed. */
static bool die_at(const struct step *s, int64_t n, stet_sys_action action) {
    pid_t child = fork();
    if (child == 0) {
        stet_repo *x;
        faults_arm_durable(n, action, 0);
        if (stet_repo_open_path("x.db", 0, &x, &err) != STET_OK || s->run(x, &err) != STET_OK) {
            fprintf(stderr, "%s: %s\n", s->name, err.message);
            _exit(3);
        }
        stet_repo_close(x);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        return true;
    assert_int_equal(WEXITSTATUS(status), 0);
    return false;
}

static void killed_everywhere(void **state) {
    (void)state;
    for (size_t i = 0; i < STEPS; i++) {
        const struct step *s = &steps[i];
        char *before, *after;
        step_states(s, &before, &after);
        int64_t n = 1, stride = 1;
        for (;; n += stride) {
            stet_sys_action action = n % 2 ? STET_SYS_KILL : STET_SYS_KILL_AFTER;
            char what[100];
            step_prepare();
            bool killed = die_at(s, n, action);
            snprintf(what, sizeof what, "killed at %lld", (long long)n);
            step_expect(s, before, after, what);
            if (!killed)
                break;
            if (n % 5 == 0) {
                step_run(s);
                step_expect(s, after, after, "again");
            }
            if (n >= 40)
                stride = getenv("STET_TEST_LONG") ? 3 : getenv("STET_TEST_SHORT") ? 101 : 29;
        }
        print_message("# %s: about %lld points\n", s->name, (long long)n);
        stet_free(before);
        stet_free(after);
    }
}

/* Whoever only looks at a repository whose maker was killed sees an empty one. */
static void killed_while_it_is_made(void **state) {
    (void)state;
    for (int64_t n = 1;; n++) {
        int status;
        kit_remove("made.db");
        pid_t child = fork();
        if (child == 0) {
            stet_repo *r;
            stet_hash id;
            faults_arm_durable(n, n % 2 ? STET_SYS_KILL : STET_SYS_KILL_AFTER, 0);
            if (stet_repo_open_path("made.db", 0, &r, &err) != STET_OK ||
                stet_repo_put_value(r, stet_value_int(1), &id, &err) != STET_OK)
                _exit(3);
            stet_repo_close(r);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        stet_repo *r;
        stet_refs refs = {0};
        OK(stet_repo_open_path("made.db", STET_REPO_READ_ONLY, &r, &err));
        OK(stet_repo_refs(r, "", &refs, &err));
        assert_int_equal(refs.len, 0);
        kit_sound(r);
        stet_repo_close(r);
        if (!WIFSIGNALED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            break;
        }
    }
}

/* Processes that pin, swap and sweep one repository at once, and are killed meanwhile. */
static void work_for_ever(int me, int out) {
    stet_repo *r;
    unsigned random = (unsigned)me * 2654435761u;
    if (stet_repo_open_path("many.db", 0, &r, &err) != STET_OK)
        _exit(2);
    for (int n = me * 1000000;; n++) {
        stet_hash id, dag;
        char name[32];
        random = random * 1103515245 + 12345;
        stet_error_clear(&err);
        if (stet_repo_begin(r, &err) != STET_OK)
            _exit(3);
        stet_hash call = kit_call(r, n);
        stet_exec e = kit_exec(r, call, "\"done\"");
        if (stet_repo_pin_exec(r, &e, &id, &err) != STET_OK || stet_repo_commit(r, &err) != STET_OK)
            _exit(4);
        if (write(out, &call, sizeof call) != sizeof call)
            _exit(5);
        snprintf(name, sizeof name, "n%u", random >> 28);
        if ((random >> 8) % 4 == 0 && (stet_repo_put_result(r, stet_value_int(n), &dag, &err) != STET_OK ||
                                       stet_history_commit(r, "main", name, &dag, "", &id, &err) != STET_OK))
            _exit(6);
        stet_repo_gc_report report;
        if ((random >> 8) % 16 == 1 && stet_repo_gc(r, &(stet_repo_gc_opts){.grace_s = -1}, &report, &err) != STET_OK)
            _exit(7);
    }
}

static void many_at_once(void **state) {
    (void)state;
    enum { WORKERS = 3 };
    int rounds = getenv("STET_TEST_LONG") ? 200 : getenv("STET_TEST_SHORT") ? 6 : 15;
    stet_hash *said = NULL;
    size_t count = 0, cap = 0;
    kit_remove("many.db");
    for (int round = 0; round < rounds; round++) {
        int pipes[2];
        pid_t pids[WORKERS];
        stet_hash one;
        assert_int_equal(pipe(pipes), 0);
        for (int i = 0; i < WORKERS; i++)
            if ((pids[i] = fork()) == 0) {
                close(pipes[0]);
                work_for_ever(round * WORKERS + i + 1, pipes[1]);
            }
        close(pipes[1]);
        usleep(30000 + (unsigned)round * 7919 % 40000);
        for (int i = 0; i < WORKERS; i++)
            kill(pids[i], SIGKILL);
        while (read(pipes[0], &one, sizeof one) == sizeof one) {
            if (count == cap)
                said = realloc(said, (cap = cap * 2 + 64) * sizeof *said);
            said[count++] = one;
        }
        close(pipes[0]);
        for (int i = 0; i < WORKERS; i++) {
            int status;
            assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
            if (!WIFSIGNALED(status))
                fail_msg("a worker ended with status %d", WEXITSTATUS(status));
        }
    }
    stet_repo *r;
    OK(stet_repo_open_path("many.db", 0, &r, &err));
    for (size_t i = 0; i < count; i++) { /* what was acknowledged is there */
        bool there;
        stet_hash exec;
        OK(stet_repo_pinned(r, said[i], &there, &exec, &err));
        assert_true(there);
    }
    kit_sound(r);
    print_message("# %zu pins by processes that were killed\n", count);
    assert_true(count > 0);
    stet_repo_close(r);
    free(said);
}

int main(void) {
    faults_fast_directory();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_everywhere),
        cmocka_unit_test(killed_while_it_is_made),
        cmocka_unit_test(many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
