/* persist_processes.c - many processes in one directory: every put is there exactly once, whatever merges happen. */

#include "../expect.h"

#include <sys/wait.h>

#include "../faults.h"
#include "../persist_place.h"

static void module_of(unsigned who, char out[44]) {
    snprintf(out, 44, "%02u%.41s", who % 100, &M1[2]);
}

static stet_persist_config config(void) {
    stet_persist_config c = place_config();
    c.lock_timeout_ms = 60000;
    c.strategy = (stet_persist_limits){1000000, -1, -1, -1};
    return c;
}

static bool count_one(void *ctx, const stet_persist_entry *e) {
    (void)e;
    ++*(int *)ctx;
    return true;
}

static void many(int processes, int puts, int64_t log_limit) {
    stet_persist_config c = config();
    c.max_entries_in_log = log_limit;
    mkdir("p", 0777);
    pid_t pids[64];
    for (int i = 0; i < processes; i++)
        if (!(pids[i] = fork())) {
            stet_persist *p;
            char module[44], text[64];
            module_of((unsigned)i, module);
            if (place_open("p", "m1", &c, &p, NULL) != STET_OK)
                _exit(2);
            stet_error e = STET_ERROR_INIT;
            for (int n = 0; n < puts; n++) {
                int len = snprintf(text, sizeof text, "process %d put %d", i, n);
                if (place_put(p, "b", module, T0 + (uint64_t)n, text, (size_t)len, &e) != STET_OK) {
                    fprintf(stderr, "%s\n", e.message);
                    _exit(3);
                }
            }
            stet_persist_close(p);
            _exit(0);
        }
    for (int i = 0; i < processes; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    stet_persist *p;
    OK(place_open("p", "m1", &c, &p, &err));
    int count = 0;
    OK(stet_persist_each(p, NULL, count_one, &count, &err));
    assert_int_equal(count, processes * puts);
    char module[44], text[64];
    module_of((unsigned)processes - 1, module);
    int len = snprintf(text, sizeof text, "process %d put %d", processes - 1, puts / 2);
    assert_true(place_has(p, "b", module, T0 + (uint64_t)puts / 2, text, (size_t)len));
    stet_persist_close(p);
    OK(stet_file_remove_tree("p", &err));
}

static void one_log(void **state) {
    (void)state;
    many(32, getenv("STET_TEST_SHORT") ? 50 : 1000, -1);
}

static void with_merges(void **state) {
    (void)state;
    many(8, getenv("STET_TEST_SHORT") ? 30 : 150, 20);
}

/* The same key from all of them: one entry, whoever is first; other bytes are a clash for all but one. */
static void one_key(void **state) {
    (void)state;
    stet_persist_config c = config();
    for (int same = 0; same < 2; same++) {
        mkdir("p", 0777);
        pid_t pids[16];
        for (int i = 0; i < 16; i++)
            if (!(pids[i] = fork())) {
                stet_persist *p;
                char text[32];
                int len = snprintf(text, sizeof text, "%d", same ? 7 : i);
                if (place_open("p", "m1", &c, &p, NULL) != STET_OK)
                    _exit(9);
                stet_status status = place_put(p, "b", M1, T0, text, (size_t)len, NULL);
                stet_persist_close(p);
                _exit(status == STET_OK ? 0 : status == STET_CONFLICT ? 1 : 2);
            }
        int won = 0, clashed = 0;
        for (int i = 0; i < 16; i++) {
            int status;
            assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
            won += WEXITSTATUS(status) == 0;
            clashed += WEXITSTATUS(status) == 1;
        }
        assert_int_equal(won, same ? 16 : 1);
        assert_int_equal(clashed, same ? 0 : 15);
        stet_persist *p;
        OK(place_open("p", "m1", &c, &p, &err));
        int count = 0;
        OK(stet_persist_each(p, NULL, count_one, &count, &err));
        assert_int_equal(count, 1);
        stet_persist_close(p);
        OK(stet_file_remove_tree("p", &err));
    }
}

int main(void) {
    faults_fast_directory();
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_log), cmocka_unit_test(with_merges),
                                       cmocka_unit_test(one_key)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
