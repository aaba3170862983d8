/* persist.c - kill -9 after each system call of put and of cleanup.
 *
 * No acknowledged entry is lost, no live object is deleted, and the directory opens and goes on working.
 */

#include "../expect.h"

#include <signal.h>
#include <sys/wait.h>

#include "../faults.h"
#include "../persist_place.h"

static stet_status drop_old(void *ctx, stet_persist_item *items, size_t count, uint64_t now, stet_error *e) {
    (void)ctx, (void)now, (void)e;
    for (size_t i = 0; i < count; i++)
        items[i].remove = items[i].block_len == 3 && !memcmp(items[i].block_id, "old", 3);
    return STET_OK;
}

/* What was there before: entries of a snapshot, entries of the log, some that a cleanup will remove. */
static void prepare(const char *dir) {
    stet_persist_config c = place_config();
    stet_persist *p;
    mkdir(dir, 0777);
    OK(place_open(dir, "m1", &c, &p, &err));
    OK(place_put(p, "base", M1, T0, "base0", 5, &err));
    OK(place_put(p, "old", M1, T0 + 1, "old1", 4, &err));
    stet_persist_cleaned out;
    OK(stet_persist_cleanup_run(p, &(stet_persist_cleanup){.strategy = stet_persist_strategy_none}, &out, &err));
    stet_persist_cleaned_release(&out);
    OK(place_put(p, "base", M1, T0 + 2, "base2", 5, &err));
    OK(place_put(p, "old", M1, T0 + 3, "old3", 4, &err));
    stet_persist_close(p);
}

/* The child: says each acknowledged step through the pipe. */
static void work(const char *dir, int say, int64_t n, bool before) {
    stet_persist_config c = place_config();
    stet_persist *p;
    stet_error e = STET_ERROR_INIT;
    if (place_open(dir, "m1", &c, &p, &e) != STET_OK)
        _exit(3);
    faults_arm_any(n, before ? STET_SYS_KILL : STET_SYS_KILL_AFTER, 0);
    char large[70000];
    memset(large, 'L', sizeof large);
    bool ok = place_put(p, "base", M1, T0 + 4, "base4", 5, &e) == STET_OK && write(say, "4", 1) == 1;
    ok = ok && place_put(p, "base", M1, T0 + 5, large, sizeof large, &e) == STET_OK && write(say, "5", 1) == 1;
    ok = ok && place_put(p, "base", M1, T0 + 6, "base0", 5, &e) == STET_OK &&
         write(say, "6", 1) == 1; /* bytes that are there */
    stet_persist_cleaned out;
    ok = ok &&
         stet_persist_cleanup_run(p, &(stet_persist_cleanup){.strategy = drop_old, .include_content = STET_PERSIST_YES},
                                  &out, &e) == STET_OK &&
         write(say, "c", 1) == 1;
    if (ok)
        stet_persist_cleaned_release(&out);
    stet_persist_undeleted back;
    ok = ok && stet_persist_undelete(p, NULL, NULL, NULL, false, &back, &e) == STET_OK && write(say, "u", 1) == 1;
    ok = ok && stet_persist_cleanup_run(p, &(stet_persist_cleanup){.strategy = stet_persist_strategy_none}, &out, &e) ==
                   STET_OK;
    faults_disarm();
    if (ok)
        stet_persist_cleaned_release(&out);
    stet_persist_close(p);
    _exit(ok ? 0 : 4);
}

static void note(void *ctx, const stet_persist_problem *problem) {
    if (!problem->repaired)
        print_message("# %s: %s\n", problem->where, problem->what);
    *(int *)ctx += !problem->repaired;
}

static void verify(const char *dir, const char *acked, int64_t n) {
    stet_persist_config c = place_config();
    stet_persist *p;
    char large[70000];
    memset(large, 'L', sizeof large);
    for (int round = 0; round < 2; round++) {
        OK(place_open(dir, "m1", &c, &p, &err));
        if (!place_has(p, "base", M1, T0, "base0", 5) || !place_has(p, "base", M1, T0 + 2, "base2", 5))
            fail_msg("step %lld, round %d: an old entry is lost", (long long)n, round);
        if (strchr(acked, '4') && !place_has(p, "base", M1, T0 + 4, "base4", 5))
            fail_msg("step %lld, round %d: entry 4 is lost (acknowledged %s)", (long long)n, round, acked);
        if (strchr(acked, '5') && !place_has(p, "base", M1, T0 + 5, large, sizeof large))
            fail_msg("step %lld, round %d: entry 5 is lost (acknowledged %s)", (long long)n, round, acked);
        if (strchr(acked, '6') && !place_has(p, "base", M1, T0 + 6, "base0", 5))
            fail_msg("step %lld, round %d: entry 6 is lost (acknowledged %s)", (long long)n, round, acked);
        if (!strchr(acked, 'c') && !strchr(acked, '6') && !place_has(p, "old", M1, T0 + 3, "old3", 4))
            fail_msg("step %lld: gone before any cleanup", (long long)n);
        if (round == 0) {
            /* It goes on working, and a later cleanup finishes what the killed one began. */
            OK(place_put(p, "later", M1, T0 + 9, "later", 5, &err));
            assert_true(place_has(p, "later", M1, T0 + 9, "later", 5));
            stet_persist_cleaned out;
            OK(stet_persist_cleanup_run(p, &(stet_persist_cleanup){.strategy = stet_persist_strategy_none}, &out,
                                        &err));
            stet_persist_cleaned_release(&out);
            /* Temp files of the dead are gone. */
            char temp[300];
            snprintf(temp, sizeof temp, "%s/l/temp", dir);
            assert_int_equal(faults_names(temp, "."), 0);
        }
        int problems = 0;
        OK(stet_persist_check(p, true, note, &problems, &err));
        /* An entry that was being deleted, or undeleted, may have its object in the trash: undelete mends it. */
        if (problems) {
            stet_persist_undeleted back;
            OK(stet_persist_undelete(p, NULL, NULL, NULL, false, &back, &err));
            problems = 0;
            OK(stet_persist_check(p, false, note, &problems, &err));
            assert_int_equal(problems, 0);
        }
        stet_persist_close(p);
    }
}

static void run(bool before) {
    int64_t step = getenv("STET_TEST_SHORT") ? 7 : 1;
    for (int64_t n = 1;; n += step) {
        char dir[64];
        snprintf(dir, sizeof dir, "%c%lld", before ? 'b' : 'a', (long long)n);
        prepare(dir);
        int say[2];
        assert_int_equal(pipe(say), 0);
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0)
            work(dir, say[1], n, before);
        close(say[1]);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        char acked[16] = "";
        ssize_t got = read(say[0], acked, sizeof acked - 1);
        assert_true(got >= 0);
        close(say[0]);
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            assert_string_equal(acked, "456cu");
            assert_true(n > 100);
            break;
        }
        assert_int_equal(WTERMSIG(status), SIGKILL);
        verify(dir, acked, n);
        OK(stet_file_remove_tree(dir, &err));
    }
}

static void killed_after_each_call(void **state) {
    (void)state;
    run(false);
}

static void killed_before_each_call(void **state) {
    (void)state;
    run(true);
}

int main(void) {
    faults_fast_directory();
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_after_each_call),
                                       cmocka_unit_test(killed_before_each_call)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
