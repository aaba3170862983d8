/* db.c - a writer is killed before or after each change that SQLite makes to its files.
 *
 * Acknowledged commits are there, nothing is there in half, the file is sound, and the next writer is not held up. Then
 * several writers run at once and are killed at any time.
 */

#include "../expect.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../faults.h"
#include "db/db.h"
#include "os/clock.h"

enum { ROWS = 20, BATCHES = 4 };

static const stet_db_migration steps[] = {
    {.sql = "CREATE TABLE t(writer INTEGER, batch INTEGER, n INTEGER, b TEXT, PRIMARY KEY(writer, batch, n)) STRICT"}};
static const stet_db_opts opts = {.kind = "crash", .migrations = steps, .migration_count = 1};

static stet_status write_batch(stet_db *db, int writer, int batch) {
    stet_status status = stet_db_begin_write(db, NULL);
    if (status != STET_OK)
        return status;
    for (int i = 0; i < ROWS; i++) {
        stet_stmt *s = stet_db_stmt(db, "INSERT INTO t(writer, batch, n, b) VALUES(?, ?, ?, ?)");
        char text[500];
        snprintf(text, sizeof text, "%0499d", batch * 1000 + i);
        stet_bind_int(s, 1, writer);
        stet_bind_int(s, 2, batch);
        stet_bind_int(s, 3, i);
        stet_bind_text(s, 4, text, 499);
        stet_run(s);
    }
    return stet_db_commit(db, NULL);
}

static void clean(void) {
    unlink("x.db");
    unlink("x.db-wal");
    unlink("x.db-shm");
    unlink("x.db-journal");
    unlink("x.db.writer");
}

/* Each writer's batches are a run from 0 without gaps, whole, and at least those acknowledged. */
static void verify(const int *acknowledged, int writers, const char *what) {
    stet_db *db = NULL;
    stet_buf problems = STET_BUF(0);
    int64_t started = stet_clock_monotonic_us();
    OK(stet_db_open("x.db", &opts, &db, &err));
    OK(stet_db_begin_write(db, &err)); /* a dead writer's lock is gone */
    stet_db_rollback(db);
    assert_true(stet_clock_monotonic_us() - started < 5000000);
    OK(stet_db_check(db, &problems, &err));
    if (problems.len)
        fail_msg("%s: %s", what, problems.data);
    stet_buf_release(&problems);
    assert_int_equal(
        stet_db_int(db, "SELECT count(*) FROM (SELECT count(*) AS c FROM t GROUP BY writer, batch) WHERE c != 20", -1),
        0);
    for (int w = 0; w < writers; w++) {
        stet_stmt *s =
            stet_db_stmt(db, "SELECT count(DISTINCT batch), coalesce(max(batch), -1) FROM t WHERE writer = ?");
        stet_bind_int(s, 1, w);
        assert_true(stet_step(s));
        int64_t count = stet_column_int(s, 0);
        assert_int_equal(count, stet_column_int(s, 1) + 1);
        stet_reset(s);
        /* The one in flight may be there or not. */
        if (count != acknowledged[w] && count != acknowledged[w] + 1)
            fail_msg("%s: writer %d has %d batches, %d were acknowledged", what, w, (int)count, acknowledged[w]);
    }
    OK(stet_db_status(db, &err));
    stet_db_close(db);
}

static bool run_killed(int n, stet_sys_action action, int *acknowledged) {
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        stet_db *db;
        faults_arm_durable(n, action, 0);
        if (stet_db_open("x.db", &opts, &db, NULL) != STET_OK)
            _exit(1);
        for (int batch = 0; batch < BATCHES; batch++) {
            if (write_batch(db, 0, batch) != STET_OK || write(fds[1], "x", 1) != 1)
                _exit(2);
            if (batch == 1 && stet_db_checkpoint(db, NULL) != STET_OK)
                _exit(3);
        }
        stet_db_close(db); /* checkpoints and removes the WAL */
        _exit(0);
    }
    close(fds[1]);
    char c;
    *acknowledged = 0;
    while (read(fds[0], &c, 1) == 1)
        ++*acknowledged;
    close(fds[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGKILL);
        return true;
    }
    assert_int_equal(status, 0);
    assert_int_equal(*acknowledged, BATCHES);
    return false;
}

static void killed_at_each_point(void **state) {
    (void)state;
    static const stet_sys_action actions[] = {STET_SYS_KILL, STET_SYS_KILL_AFTER};
    int kills = 0;
    for (int a = 0; a < 2; a++) {
        bool killed = true;
        for (int n = 1; killed; n++) {
            char what[64];
            int acknowledged;
            snprintf(what, sizeof what, "killed %s change %d", a ? "after" : "before", n);
            clean();
            killed = run_killed(n, actions[a], &acknowledged);
            verify(&acknowledged, 1, what);
            kills += killed;
        }
    }
    print_message("# %d kills\n", kills);
    assert_true(kills > 50);
}

static void writers_killed_at_any_time(void **state) {
    (void)state;
    enum { WRITERS = 4 };
    int turns = getenv("STET_TEST_LONG") ? 300 : 12;
    uint32_t seed = 1;
    for (int turn = 0; turn < turns; turn++) {
        int fds[WRITERS][2], acknowledged[WRITERS] = {0};
        pid_t pids[WRITERS];
        clean();
        for (int w = 0; w < WRITERS; w++) {
            assert_int_equal(pipe(fds[w]), 0);
            if ((pids[w] = fork()) == 0) {
                stet_db *db;
                stet_error e = STET_ERROR_INIT;
                if (stet_db_open("x.db", &opts, &db, &e) != STET_OK) {
                    fprintf(stderr, "# %s\n", e.message);
                    _exit(1);
                }
                for (int batch = 0;; batch++)
                    if (write_batch(db, w, batch) != STET_OK || write(fds[w][1], "x", 1) != 1)
                        _exit(2);
            }
        }
        for (int w = 0; w < WRITERS; w++) {
            seed = seed * 1664525u + 1013904223u;
            usleep(5000 + (seed >> 16) % 30000);
            kill(pids[w], SIGKILL);
        }
        for (int w = 0; w < WRITERS; w++) {
            int status;
            assert_int_equal(waitpid(pids[w], &status, 0), pids[w]);
            assert_true(WIFSIGNALED(status)); /* none gave up by itself */
            close(fds[w][1]);
            char c;
            while (read(fds[w][0], &c, 1) == 1)
                acknowledged[w]++;
            close(fds[w][0]);
        }
        char what[64];
        snprintf(what, sizeof what, "turn %d", turn);
        verify(acknowledged, WRITERS, what);
    }
}

int main(void) {
    faults_fast_directory();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_each_point),
        cmocka_unit_test(writers_killed_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
