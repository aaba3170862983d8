/* lock.c - how long the unluckiest of eight writers waits.
 *
 * Eight processes each take an exclusive lock, work for about 0.7 ms and release it, again and again. Our lock is
 * compared with SQLite's busy handler on a WAL database. The price of an uncontended lock is measured too.
 */

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/lock.h"

enum { PROCESSES = 8 };

typedef struct result {
    int64_t worst_us, total_us;
} result;

static void work(void) {
    /* A sleep, as a commit is: it waits for the disk. */
    nanosleep(&(struct timespec){.tv_nsec = 650000}, NULL);
}

static void die(const char *what) {
    fprintf(stderr, "bench/lock: %s\n", what);
    exit(1);
}

static void ours(int rounds, result *r) {
    stet_lock *l;
    stet_error err = STET_ERROR_INIT;
    if (stet_lock_open("bench.lock", STET_LOCK_PLAIN, &l, &err) != STET_OK)
        die(err.message);
    for (int i = 0; i < rounds; i++) {
        int64_t started = stet_clock_monotonic_us();
        if (stet_lock_take(l, STET_LOCK_EXCLUSIVE, 60000, &err) != STET_OK)
            die(err.message);
        int64_t waited = stet_clock_monotonic_us() - started;
        r->total_us += waited;
        if (waited > r->worst_us)
            r->worst_us = waited;
        work();
        stet_lock_drop(l);
    }
    stet_lock_close(l);
}

static void sqlite(int rounds, result *r) {
    sqlite3 *db;
    if (sqlite3_open("bench.db", &db) != SQLITE_OK)
        die("cannot open");
    sqlite3_busy_timeout(db, 60000);
    for (int i = 0; i < rounds; i++) {
        int64_t started = stet_clock_monotonic_us();
        if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
            die(sqlite3_errmsg(db));
        int64_t waited = stet_clock_monotonic_us() - started;
        r->total_us += waited;
        if (waited > r->worst_us)
            r->worst_us = waited;
        work();
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    }
    sqlite3_close(db);
}

static result run(void (*body)(int, result *), int rounds, double *seconds) {
    result *shared = mmap(NULL, sizeof(result) * PROCESSES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die("mmap");
    int64_t started = stet_clock_monotonic_us();
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0) {
            body(rounds, &shared[i]);
            _exit(0);
        }
    for (int i = 0; i < PROCESSES; i++)
        wait(NULL);
    *seconds = (double)(stet_clock_monotonic_us() - started) / 1e6;
    result all = {0};
    for (int i = 0; i < PROCESSES; i++) {
        all.total_us += shared[i].total_us;
        if (shared[i].worst_us > all.worst_us)
            all.worst_us = shared[i].worst_us;
    }
    munmap(shared, sizeof(result) * PROCESSES);
    return all;
}

static void uncontended(void) {
    enum { N = 20000 };
    stet_lock *l;
    stet_error err = STET_ERROR_INIT;
    if (stet_lock_open("bench.lock", STET_LOCK_PLAIN, &l, &err) != STET_OK)
        die(err.message);
    int64_t started = stet_clock_monotonic_us();
    for (int i = 0; i < N; i++) {
        if (stet_lock_take(l, STET_LOCK_EXCLUSIVE, 0, &err) != STET_OK)
            die(err.message);
        stet_lock_drop(l);
    }
    double mine = (double)(stet_clock_monotonic_us() - started) / N;
    stet_lock_close(l);
    int fd = open("bench.lock", O_RDWR);
    started = stet_clock_monotonic_us();
    for (int i = 0; i < N; i++)
        for (int type = 0; type < 2; type++) {
            struct flock f = {.l_type = type ? F_UNLCK : F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
            if (fcntl(fd, F_OFD_SETLK, &f) != 0)
                die("fcntl");
        }
    double bare = (double)(stet_clock_monotonic_us() - started) / N;
    close(fd);
    printf("lock and unlock, uncontended: ours %.2f us, two bare fcntl %.2f us, ratio %.2f (goal 2.00)\n", mine, bare,
           mine / bare);
}

int main(void) {
    int rounds = getenv("STET_BENCH_ROUNDS") ? atoi(getenv("STET_BENCH_ROUNDS")) : 1000;
    sqlite3 *db;
    if (sqlite3_open("bench.db", &db) != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA journal_mode=wal; CREATE TABLE IF NOT EXISTS t(a)", NULL, NULL, NULL) != SQLITE_OK)
        die("cannot make a database");
    uncontended();
    double our_seconds, their_seconds;
    result a = run(ours, rounds, &our_seconds);
    result b = run(sqlite, rounds, &their_seconds);
    double n = (double)rounds * PROCESSES;
    printf("worst wait of 8 writers, %d rounds each: ours %.0f ms, sqlite %.0f ms, ratio %.2f (goal 0.3 s)\n", rounds,
           (double)a.worst_us / 1e3, (double)b.worst_us / 1e3, (double)a.worst_us / (double)b.worst_us);
    printf("mean wait of 8 writers: ours %.2f ms, sqlite %.2f ms, ratio %.2f (goal 1.00)\n",
           (double)a.total_us / n / 1e3, (double)b.total_us / n / 1e3, (double)a.total_us / (double)b.total_us);
    printf("sections per second: ours %.0f, sqlite %.0f, ratio %.2f (goal 1.00)\n", n / our_seconds, n / their_seconds,
           their_seconds / our_seconds);
    sqlite3_close(db);
    return 0;
}
