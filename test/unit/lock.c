/* lock.c - locks between processes, between threads with their own handles, and with SQLite on the same file. */

#include "../expect.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../faults.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"

static stet_lock *open_lock(const char *path, stet_lock_range range) {
    stet_lock *l = NULL;
    OK(stet_lock_open(path, range, &l, &err));
    return l;
}

static void shared_and_exclusive(void **state) {
    (void)state;
    for (int range = 0; range < 2; range++) {
        const char *path = range ? "s.lock" : "p.lock";
        stet_lock *a = open_lock(path, (stet_lock_range)range), *b = open_lock(path, (stet_lock_range)range);
        OK(stet_lock_take(a, STET_LOCK_SHARED, 0, &err));
        OK(stet_lock_take(b, STET_LOCK_SHARED, 0, &err));
        stet_lock_drop(b);
        assert_true(stet_lock_held(a));
        assert_false(stet_lock_held(b));
        FAILS(stet_lock_take(b, STET_LOCK_EXCLUSIVE, 0, &err), STET_BUSY, path);
        assert_false(stet_lock_held(b));
        /* The failed try has left nothing behind. */
        stet_lock *c = open_lock(path, (stet_lock_range)range);
        OK(stet_lock_take(c, STET_LOCK_SHARED, 0, &err));
        stet_lock_drop(c);
        stet_lock_drop(a);
        OK(stet_lock_take(b, STET_LOCK_EXCLUSIVE, 0, &err));
        FAILS(stet_lock_take(a, STET_LOCK_SHARED, 0, &err), STET_BUSY, path);
        FAILS(stet_lock_take(a, STET_LOCK_EXCLUSIVE, 0, &err), STET_BUSY, path);
        assert_int_equal(stet_lock_take(a, STET_LOCK_EXCLUSIVE, 0, NULL), STET_BUSY);
        stet_lock_drop(b);
        stet_lock_drop(b); /* once more is nothing */
        OK(stet_lock_take(a, STET_LOCK_EXCLUSIVE, 0, &err));
        stet_lock_close(a); /* drops it */
        OK(stet_lock_take(b, STET_LOCK_EXCLUSIVE, 0, &err));
        stet_lock_close(b);
        stet_lock_close(c);
    }
    stet_lock_close(NULL);
    stet_lock *l;
    FAILS(stet_lock_open("nowhere/x.lock", STET_LOCK_PLAIN, &l, &err), STET_NOT_FOUND, "nowhere/x.lock");
}

/* A child that holds the lock until it is told to end. */
static pid_t holder(const char *path, stet_lock_range range, stet_lock_mode mode) {
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        stet_lock *l;
        if (stet_lock_open(path, range, &l, NULL) != STET_OK || stet_lock_take(l, mode, 5000, NULL) != STET_OK ||
            write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    char c;
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void end(pid_t pid) {
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void time_outs_name_file_and_holder(void **state) {
    (void)state;
    for (int range = 0; range < 2; range++) {
        pid_t pid = holder("t.lock", (stet_lock_range)range, STET_LOCK_EXCLUSIVE);
        char text[32];
        snprintf(text, sizeof text, "process %d", (int)pid);
        stet_lock *l = open_lock("t.lock", (stet_lock_range)range);
        int64_t started = stet_clock_monotonic_us();
        FAILS(stet_lock_take(l, STET_LOCK_SHARED, 100, &err), STET_BUSY, text);
        int64_t took = stet_clock_monotonic_us() - started;
        assert_true(took >= 100000 && took < 2000000);
        FAILS(stet_lock_take(l, STET_LOCK_EXCLUSIVE, 20, &err), STET_BUSY, "t.lock");
        assert_int_equal(stet_lock_holder(l), pid);
        end(pid); /* killed with the lock held: the lock goes with it */
        OK(stet_lock_take(l, STET_LOCK_EXCLUSIVE, 1000, &err));
        stet_lock_drop(l);
        assert_int_equal(stet_lock_holder(l), 0);
        stet_lock_close(l);
    }
}

static void *take_late(void *arg) {
    stet_lock *l = arg;
    int64_t started = stet_clock_monotonic_us();
    stet_status status = stet_lock_take(l, STET_LOCK_EXCLUSIVE, -1, NULL);
    int64_t waited = stet_clock_monotonic_us() - started;
    stet_lock_drop(l);
    return (void *)(uintptr_t)(status == STET_OK && waited > 20000);
}

static void waiting_ends_with_the_drop(void **state) {
    (void)state;
    stet_lock *a = open_lock("w.lock", STET_LOCK_PLAIN), *b = open_lock("w.lock", STET_LOCK_PLAIN);
    OK(stet_lock_take(a, STET_LOCK_EXCLUSIVE, 0, &err));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, take_late, b), 0);
    stet_clock_sleep_ms(60);
    stet_lock_drop(a);
    void *good;
    pthread_join(thread, &good);
    assert_non_null(good);
    stet_lock_close(a);
    stet_lock_close(b);
}

/* Many take turns on a counter that is not atomic: none is lost. In threads, and in processes. */
static volatile int64_t *counter;
static int rounds = 150;

static void *count_up(void *arg) {
    stet_lock_range range = (stet_lock_range)(uintptr_t)arg;
    stet_lock *l;
    if (stet_lock_open("n.lock", range, &l, NULL) != STET_OK)
        return NULL;
    for (int i = 0; i < rounds; i++) {
        if (stet_lock_take(l, STET_LOCK_EXCLUSIVE, 60000, NULL) != STET_OK)
            return NULL;
        int64_t seen = *counter;
        if (i % 10 == 0)
            usleep(50);
        *counter = seen + 1;
        stet_lock_drop(l);
        if (i % 5 == 0) { /* a reader in between */
            if (stet_lock_take(l, STET_LOCK_SHARED, 60000, NULL) != STET_OK)
                return NULL;
            seen = *counter;
            usleep(10);
            bool moved = *counter != seen;
            stet_lock_drop(l);
            if (moved)
                return NULL;
        }
    }
    stet_lock_close(l);
    return (void *)1;
}

static void none_is_lost(void **state) {
    (void)state;
    enum { MANY = 6 };
    counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (uintptr_t range = 0; range < 2; range++) {
        *counter = 0;
        pthread_t threads[MANY];
        pid_t pids[MANY];
        for (int i = 0; i < MANY; i++)
            if ((pids[i] = fork()) == 0)
                _exit(count_up((void *)range) ? 0 : 1);
        for (int i = 0; i < MANY; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, count_up, (void *)range), 0);
        for (int i = 0; i < MANY; i++) {
            void *good;
            pthread_join(threads[i], &good);
            assert_non_null(good);
        }
        for (int i = 0; i < MANY; i++) {
            int status;
            assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
            assert_int_equal(status, 0);
        }
        assert_int_equal(*counter, 2 * MANY * rounds);
    }
    munmap((void *)(uintptr_t)counter, 4096);
}

/* Nobody is starved by one that takes the lock again as soon as it has dropped it. */
static void the_greedy_do_not_starve_the_rest(void **state) {
    (void)state;
    pid_t greedy[4];
    for (int i = 0; i < 4; i++)
        if ((greedy[i] = fork()) == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            stet_lock *l;
            if (stet_lock_open("fair.lock", STET_LOCK_PLAIN, &l, NULL) != STET_OK)
                _exit(1);
            for (;;) {
                if (stet_lock_take(l, STET_LOCK_EXCLUSIVE, -1, NULL) != STET_OK)
                    _exit(2);
                usleep(700);
                stet_lock_drop(l);
            }
        }
    stet_lock *l = open_lock("fair.lock", STET_LOCK_PLAIN);
    int64_t worst = 0;
    for (int i = 0; i < 100; i++) {
        int64_t started = stet_clock_monotonic_us();
        OK(stet_lock_take(l, STET_LOCK_EXCLUSIVE, 10000, &err));
        int64_t waited = stet_clock_monotonic_us() - started;
        if (waited > worst)
            worst = waited;
        stet_lock_drop(l);
    }
    for (int i = 0; i < 4; i++)
        end(greedy[i]);
    stet_lock_close(l);
    print_message("# worst wait %lld us\n", (long long)worst);
    assert_true(worst < 1000000);
}

/* A SQLite database in rollback-journal mode, in another process, driven line by line. */
typedef struct peer {
    FILE *to, *from;
    pid_t pid;
} peer;

static peer start_peer(void) {
    static const char program[] = "import sqlite3, sys\n"
                                  "c = sqlite3.connect('lock.db', isolation_level=None, timeout=0)\n"
                                  "for line in sys.stdin:\n"
                                  "    try:\n"
                                  "        c.execute(line).fetchall()\n"
                                  "        print('ok', flush=True)\n"
                                  "    except sqlite3.OperationalError as e:\n"
                                  "        print(e, flush=True)\n";
    int in[2], out[2];
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[1]);
        close(out[0]);
        execl("/usr/bin/python3", "python3", "-c", program, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    return (peer){fdopen(in[1], "w"), fdopen(out[0], "r"), pid};
}

static const char *say(peer *p, const char *sql) {
    static char answer[256];
    fprintf(p->to, "%s\n", sql);
    fflush(p->to);
    assert_non_null(fgets(answer, sizeof answer, p->from));
    answer[strcspn(answer, "\n")] = 0;
    return answer;
}

static void sqlite_and_we_exclude_each_other(void **state) {
    (void)state;
    peer p = start_peer();
    /* First as an empty file, then as a real database: the lock bytes are the same. */
    for (int real = 0; real < 2; real++) {
        if (real)
            assert_string_equal(say(&p, "CREATE TABLE t(a)"), "ok");
        stet_lock *l = open_lock("lock.db", STET_LOCK_SQLITE);
        char pid[32];
        snprintf(pid, sizeof pid, "process %d", (int)p.pid);

        /* It reads (SHARED): we may read, not write. An empty one is not locked by a BEGIN alone. */
        assert_string_equal(say(&p, "BEGIN"), "ok");
        assert_string_equal(say(&p, "SELECT count(*) FROM sqlite_master"), "ok");
        OK(stet_lock_take(l, STET_LOCK_SHARED, 0, &err));
        stet_lock_drop(l);
        FAILS(stet_lock_take(l, STET_LOCK_EXCLUSIVE, 30, &err), STET_BUSY, "lock.db");
        FAILS(stet_lock_take(l, STET_LOCK_EXCLUSIVE, 0, &err), STET_BUSY, pid);
        assert_string_equal(say(&p, "COMMIT"), "ok");
        OK(stet_lock_take(l, STET_LOCK_EXCLUSIVE, 0, &err));
        stet_lock_drop(l);

        /* It is about to write (RESERVED): the same. */
        assert_string_equal(say(&p, "BEGIN IMMEDIATE"), "ok");
        OK(stet_lock_take(l, STET_LOCK_SHARED, 0, &err));
        stet_lock_drop(l);
        FAILS(stet_lock_take(l, STET_LOCK_EXCLUSIVE, 0, &err), STET_BUSY, pid);
        assert_string_equal(say(&p, "ROLLBACK"), "ok");

        /* It excludes all. */
        assert_string_equal(say(&p, "BEGIN EXCLUSIVE"), "ok");
        FAILS(stet_lock_take(l, STET_LOCK_SHARED, 0, &err), STET_BUSY, pid);
        FAILS(stet_lock_take(l, STET_LOCK_EXCLUSIVE, 0, &err), STET_BUSY, pid);
        assert_int_equal(stet_lock_holder(l), p.pid);
        assert_string_equal(say(&p, "ROLLBACK"), "ok");

        /* We read: it may read and prepare to write, not write. */
        OK(stet_lock_take(l, STET_LOCK_SHARED, 0, &err));
        assert_string_equal(say(&p, "SELECT count(*) FROM sqlite_master"), "ok");
        assert_string_equal(say(&p, "BEGIN EXCLUSIVE"), "database is locked");
        stet_lock_drop(l);
        assert_string_equal(say(&p, "BEGIN EXCLUSIVE"), "ok");
        assert_string_equal(say(&p, "ROLLBACK"), "ok");

        /* We exclude all. */
        OK(stet_lock_take(l, STET_LOCK_EXCLUSIVE, 0, &err));
        assert_string_equal(say(&p, "SELECT count(*) FROM sqlite_master"), "database is locked");
        assert_string_equal(say(&p, "BEGIN IMMEDIATE"), "database is locked");
        assert_string_equal(say(&p, "BEGIN EXCLUSIVE"), "database is locked");
        stet_lock_drop(l);
        assert_string_equal(say(&p, "BEGIN EXCLUSIVE"), "ok");
        assert_string_equal(say(&p, "COMMIT"), "ok");

        /* While we wait for a reader to leave, no new one comes in: it can't starve us. */
        assert_string_equal(say(&p, "BEGIN"), "ok");
        assert_string_equal(say(&p, "SELECT count(*) FROM sqlite_master"), "ok");
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, take_late, l), 0);
        stet_clock_sleep_ms(40);
        stet_lock *reader = open_lock("lock.db", STET_LOCK_SQLITE);
        assert_int_equal(stet_lock_take(reader, STET_LOCK_SHARED, 0, NULL), STET_BUSY);
        assert_string_equal(say(&p, "COMMIT"), "ok");
        void *good;
        pthread_join(thread, &good);
        assert_non_null(good);
        OK(stet_lock_take(reader, STET_LOCK_SHARED, 0, &err));
        stet_lock_close(reader);
        stet_lock_close(l);
    }
    fclose(p.to);
    fclose(p.from);
    assert_int_equal(waitpid(p.pid, NULL, 0), p.pid);
}

static void read_only_lock_files(void **state) {
    (void)state;
    assert_int_equal(chmod(".", 0755), 0);
    assert_int_equal(mkdir("rodir", 0755), 0);
    stet_lock *l = open_lock("rodir/ro.lock", STET_LOCK_PLAIN);
    stet_lock_close(l);
    assert_int_equal(chmod("rodir/ro.lock", 0444), 0);
    assert_int_equal(chmod("rodir", 0555), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(99);
        if (stet_lock_open("rodir/ro.lock", STET_LOCK_PLAIN, &l, NULL) != STET_OK)
            _exit(1);
        if (stet_lock_take(l, STET_LOCK_SHARED, 100, NULL) != STET_OK)
            _exit(2);
        stet_lock_drop(l);
        if (stet_lock_take(l, STET_LOCK_EXCLUSIVE, 100, NULL) != STET_IO)
            _exit(3);
        stet_lock_close(l);
        if (stet_lock_open("rodir/new.lock", STET_LOCK_PLAIN, &l, NULL) != STET_IO)
            _exit(4);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Whatever lock call fails: an error, nothing held, nothing leaked. */
static void who_looks_makes_no_file(void **state) {
    (void)state;
    stet_lock *l = NULL;
    FAILS(stet_lock_open_read("look.lock", STET_LOCK_PLAIN, &l, &err), STET_NOT_FOUND, "look.lock");
    assert_false(stet_file_exists("look.lock"));
    stet_lock *w = open_lock("look.lock", STET_LOCK_PLAIN);
    OK(stet_lock_open_read("look.lock", STET_LOCK_PLAIN, &l, &err));
    OK(stet_lock_take(l, STET_LOCK_SHARED, 0, &err));
    FAILS(stet_lock_take(w, STET_LOCK_EXCLUSIVE, 0, &err), STET_BUSY, "look.lock");
    stet_lock_drop(l);
    OK(stet_lock_take(w, STET_LOCK_EXCLUSIVE, 0, &err));
    FAILS(stet_lock_take(l, STET_LOCK_SHARED, 0, &err), STET_BUSY, "look.lock");
    stet_lock_close(l);
    stet_lock_close(w);
}

static void failing_lock_calls(void **state) {
    (void)state;
    for (int range = 0; range < 2; range++)
        for (int mode = 0; mode < 2; mode++)
            for (int n = 1;; n++) {
                int before = faults_descriptors();
                stet_lock *l = open_lock("f.lock", (stet_lock_range)range);
                faults_arm(STET_SYS_LOCK, n, STET_SYS_FAIL, ENOLCK);
                stet_status status = stet_lock_take(l, (stet_lock_mode)mode, 50, &err);
                faults_disarm();
                if (!faults_fired()) {
                    assert_int_equal(status, STET_OK);
                    stet_lock_close(l);
                    break;
                }
                assert_int_equal(status, STET_IO);
                stet_error_clear(&err);
                assert_false(stet_lock_held(l));
                stet_lock *other = open_lock("f.lock", (stet_lock_range)range);
                OK(stet_lock_take(other, STET_LOCK_EXCLUSIVE, 0, &err));
                stet_lock_close(other);
                stet_lock_close(l);
                assert_int_equal(faults_descriptors(), before);
            }
}

int main(void) {
    if (getenv("STET_TEST_SHORT"))
        rounds = 40;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_and_exclusive),
        cmocka_unit_test(time_outs_name_file_and_holder),
        cmocka_unit_test(waiting_ends_with_the_drop),
        cmocka_unit_test(none_is_lost),
        cmocka_unit_test(the_greedy_do_not_starve_the_rest),
        cmocka_unit_test(sqlite_and_we_exclude_each_other),
        cmocka_unit_test(read_only_lock_files),
        cmocka_unit_test(who_looks_makes_no_file),
        cmocka_unit_test(failing_lock_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
