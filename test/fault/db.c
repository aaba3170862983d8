/* db.c - each file operation of SQLite and each statement fails in turn.
 *
 * A transaction is there completely or not at all, acknowledged commits stay, the same handle works again afterwards,
 * and the file is sound.
 */

#include "../expect.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../faults.h"
#include "db/db.h"
#include "os/file.h"

enum { ROWS = 30 };

static const stet_db_migration steps[] = {
    {.sql = "CREATE TABLE t(batch INTEGER NOT NULL, n INTEGER NOT NULL, b TEXT, PRIMARY KEY(batch, n)) STRICT"},
    {.sql = "CREATE INDEX t_b ON t(b)"}};
static const stet_db_opts opts = {.kind = "fault", .migrations = steps, .migration_count = 2, .busy_ms = 200};

static void write_batch(stet_db *db, int batch) {
    for (int i = 0; i < ROWS; i++) {
        stet_stmt *s = stet_db_stmt(db, "INSERT INTO t(batch, n, b) VALUES(?, ?, ?)");
        char text[300];
        snprintf(text, sizeof text, "%0299d", batch * 1000 + i);
        stet_bind_int(s, 1, batch);
        stet_bind_int(s, 2, i);
        stet_bind_text(s, 3, text, 299);
        stet_run(s);
    }
}

/* Which batches were acknowledged, as bits. */
static unsigned work(void) {
    unsigned acknowledged = 0;
    stet_db *db;
    if (stet_db_open("x.db", &opts, &db, &err) != STET_OK)
        return 0;
    for (int batch = 0; batch < 3; batch++) {
        stet_error_clear(&err);
        if (stet_db_begin_write(db, &err) != STET_OK)
            continue;
        if (batch == 1)
            stet_db_savepoint(db);
        write_batch(db, batch);
        if (batch == 1 && stet_db_savepoint_release(db, &err) != STET_OK)
            stet_error_clear(&err);
        if (stet_db_commit(db, &err) == STET_OK)
            acknowledged |= 1u << batch;
        if (stet_db_in_transaction(db))
            fail_msg("still in a transaction after a commit");
    }
    if (stet_db_checkpoint(db, &err) != STET_OK)
        stet_error_clear(&err);
    /* Whatever happened: with the fault gone the handle works. */
    faults_disarm();
    stet_error_clear(&err);
    OK(stet_db_status(db, &err));
    OK(stet_db_begin_write(db, &err));
    write_batch(db, 9);
    OK(stet_db_commit(db, &err));
    acknowledged |= 1u << 9;
    stet_db_close(db);
    return acknowledged;
}

static void clean(void) {
    unlink("x.db");
    unlink("x.db-wal");
    unlink("x.db-shm");
    unlink("x.db-journal");
    unlink("x.db.writer");
}

static void verify(unsigned acknowledged, const char *fault, int n) {
    stet_db *db = NULL;
    stet_buf problems = STET_BUF(0);
    OK(stet_db_open("x.db", &opts, &db, &err));
    OK(stet_db_check(db, &problems, &err));
    if (problems.len)
        fail_msg("%s, call %d: %s", fault, n, problems.data);
    stet_buf_release(&problems);
    for (int batch = 0; batch < 10; batch++) {
        stet_stmt *s = stet_db_stmt(db, "SELECT count(*) FROM t WHERE batch = ?");
        stet_bind_int(s, 1, batch);
        assert_true(stet_step(s));
        int64_t rows = stet_column_int(s, 0);
        stet_reset(s);
        /* Not acknowledged means unknown, not absent; but never half. */
        if (rows != 0 && rows != ROWS)
            fail_msg("%s, call %d: %d rows of batch %d", fault, n, (int)rows, batch);
        if (acknowledged >> batch & 1 && rows != ROWS)
            fail_msg("%s, call %d: batch %d was acknowledged and is lost", fault, n, batch);
    }
    OK(stet_db_status(db, &err));
    stet_db_close(db);
}

typedef struct fault {
    const char *name;
    int call; /* -1: any */
    stet_sys_action action;
    int error_number;
    bool sticky;
} fault;

static void run(const fault *f) {
    int step = getenv("STET_TEST_SHORT") ? 7 : 1, runs = 0;
    for (int n = 1;; n += step, runs++) {
        clean();
        int before = faults_descriptors();
        if (f->call < 0)
            faults_arm_any(n, f->action, f->error_number);
        else
            faults_arm((stet_sys_call)f->call, n, f->action, f->error_number);
        if (f->sticky)
            faults_sticky();
        unsigned acknowledged = work();
        faults_disarm();
        stet_error_clear(&err);
        bool fired = faults_fired();
        if (faults_descriptors() != before)
            fail_msg("%s, call %d: a descriptor is leaked", f->name, n);
        verify(acknowledged, f->name, n);
        if (!fired) {
            assert_int_equal(acknowledged, 1 | 2 | 4 | 1u << 9);
            break;
        }
    }
    print_message("# %s: %d calls\n", f->name, runs);
}

static void any_call_fails(void **state) {
    (void)state;
    run(&(fault){"any, EIO", -1, STET_SYS_FAIL, EIO, false});
}
static void any_call_fails_from_then_on(void **state) {
    (void)state;
    run(&(fault){"any, EIO from then on", -1, STET_SYS_FAIL, EIO, true});
}
static void the_disk_is_full(void **state) {
    (void)state;
    run(&(fault){"write, ENOSPC", STET_SYS_WRITE, STET_SYS_FAIL, ENOSPC, false});
    run(&(fault){"write, ENOSPC from then on", STET_SYS_WRITE, STET_SYS_FAIL, ENOSPC, true});
}
static void writes_are_torn(void **state) {
    (void)state;
    run(&(fault){"write, torn", STET_SYS_WRITE, STET_SYS_SHORT, 0, false});
    run(&(fault){"write, torn from then on", STET_SYS_WRITE, STET_SYS_SHORT, 0, true});
}
static void syncs_fail(void **state) {
    (void)state;
    run(&(fault){"fsync, EIO", STET_SYS_FSYNC, STET_SYS_FAIL, EIO, false});
    run(&(fault){"fsync, EIO from then on", STET_SYS_FSYNC, STET_SYS_FAIL, EIO, true});
}
static void interruptions_do_nothing(void **state) {
    (void)state;
    clean();
    faults_arm_any(1, STET_SYS_EINTR, 0);
    faults_sticky();
    assert_int_equal(work(), 1 | 2 | 4 | 1u << 9);
    verify(1 | 2 | 4 | 1u << 9, "interrupted", 1);
}

/* The statuses that callers tell apart. */
static void statuses(void **state) {
    (void)state;
    clean();
    stet_db *db;
    faults_arm_any(0, STET_SYS_FAIL, EIO); /* so that the database is opened through the shim */
    OK(stet_db_open("x.db", &opts, &db, &err));
    OK(stet_db_begin_write(db, &err));
    write_batch(db, 1);
    faults_arm(STET_SYS_WRITE, 1, STET_SYS_FAIL, ENOSPC);
    FAILS(stet_db_commit(db, &err), STET_IO, "x.db");
    OK(stet_db_begin_write(db, &err));
    write_batch(db, 1);
    faults_arm(STET_SYS_WRITE, 1, STET_SYS_FAIL, ENOSPC);
    assert_int_equal(stet_db_commit(db, &err), STET_IO);
    assert_non_null(strstr(err.hint, "space"));
    stet_error_clear(&err);
    OK(stet_db_begin_write(db, &err));
    write_batch(db, 1);
    faults_arm(STET_SYS_FSYNC, 1, STET_SYS_FAIL, EIO);
    FAILS(stet_db_commit(db, &err), STET_IO, "x.db");
    faults_arm(STET_SYS_SQL, 1, STET_SYS_FAIL, EIO);
    OK(stet_db_begin_write(db, &err));
    write_batch(db, 1);
    FAILS(stet_db_commit(db, &err), STET_IO, "INSERT");
    faults_disarm();
    OK(stet_db_begin_write(db, &err));
    write_batch(db, 1);
    OK(stet_db_commit(db, &err));
    stet_db_close(db);
}

/* A file system of our own, in a name space of our own, so that nothing is left of it. Where the kernel allows neither
 * root nor a user to mount, the hook plays the full disk, as it does above, and permissions the read-only mount, as in
 * unit/db. */
static bool mount_small(void) {
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0)
        return false;
    mkdir("small", 0755);
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", "small", "tmpfs", 0, "size=1m") == 0;
}

static int fill_it(bool real) {
    stet_db *db;
    stet_error e = STET_ERROR_INIT;
    const char *path = real ? "small/x.db" : "x.db";
    if (!real)
        faults_arm(STET_SYS_WRITE, 200, STET_SYS_FAIL, ENOSPC);
    if (stet_db_open(path, &opts, &db, &e) != STET_OK)
        return 1;
    int batch = 0, full = 0;
    for (; batch < 500 && !full; batch++) {
        if (stet_db_begin_write(db, &e) != STET_OK)
            return 2;
        write_batch(db, batch);
        if (stet_db_commit(db, &e) != STET_OK)
            full = 1;
    }
    if (!full || e.status != STET_IO || !strstr(e.hint, "space"))
        return 3;
    stet_error_clear(&e);
    faults_disarm();
    /* All that was acknowledged is there, and what did not fit is not. */
    if (stet_db_int(db, "SELECT count(*) FROM t", 0) != (int64_t)(batch - 1) * ROWS)
        return 4;
    if (real && mount("tmpfs", "small", "tmpfs", MS_REMOUNT, "size=8m") != 0)
        return 5;
    if (stet_db_begin_write(db, &e) != STET_OK)
        return 6;
    write_batch(db, 777);
    if (stet_db_commit(db, &e) != STET_OK)
        return 7;
    stet_db_close(db);
    if (!real)
        return 0;

    /* Mounted read-only nobody can write: then it opens without the files that SQLite would make beside it. */
    if (mount("tmpfs", "small", "tmpfs", MS_REMOUNT | MS_RDONLY, NULL) != 0)
        return 8;
    if (stet_db_open(path, &opts, &db, &e) != STET_IO)
        return 9;
    stet_error_clear(&e);
    stet_db_opts ro = opts;
    ro.read_only = true;
    if (stet_db_open(path, &ro, &db, &e) != STET_OK)
        return 10;
    if (stet_db_int(db, "SELECT count(*) FROM t", 0) != (int64_t)batch * ROWS)
        return 11;
    stet_db_close(db);
    return 0;
}

static void a_disk_that_is_full_for_real(void **state) {
    (void)state;
    clean();
    pid_t pid = fork();
    if (pid == 0)
        _exit(fill_it(mount_small()));
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status >> 8, 0);
    assert_int_equal(status, 0);
}

int main(void) {
    faults_fast_directory();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_call_fails),   cmocka_unit_test(any_call_fails_from_then_on),
        cmocka_unit_test(the_disk_is_full), cmocka_unit_test(writes_are_torn),
        cmocka_unit_test(syncs_fail),       cmocka_unit_test(interruptions_do_nothing),
        cmocka_unit_test(statuses),         cmocka_unit_test(a_disk_that_is_full_for_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
