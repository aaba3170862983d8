/* db.c - databases: opening and refusing, transactions, sticky errors, the writer queue. */

#include "../expect.h"
#include "../faults.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db/db.h"
#include "os/clock.h"
#include "os/file.h"

static const stet_db_migration one[] = {{.sql = "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT) STRICT"}};
static const stet_db_migration two[] = {{.sql = "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT) STRICT"},
                                        {.sql = "ALTER TABLE t ADD COLUMN c INTEGER"}};
static const stet_db_opts opts_one = {.kind = "test", .migrations = one, .migration_count = 1};
static const stet_db_opts opts_two = {.kind = "test", .migrations = two, .migration_count = 2};

static void insert(stet_db *db, int64_t a, const char *b) {
    stet_stmt *s = stet_db_stmt(db, "INSERT INTO t(a, b) VALUES(?, ?)");
    stet_bind_int(s, 1, a);
    stet_bind_text(s, 2, b, strlen(b));
    stet_run(s);
}

static int64_t count(stet_db *db) {
    return stet_db_int(db, "SELECT count(*) FROM t", -1);
}

static stet_db *fresh(const char *path) {
    char other[256];
    unlink(path);
    for (const char *const *s = (const char *const[]){"-wal", "-shm", ".writer", NULL}; *s; s++) {
        snprintf(other, sizeof other, "%s%s", path, *s);
        unlink(other);
    }
    stet_db *db = NULL;
    OK(stet_db_open(path, &opts_one, &db, &err));
    return db;
}

static void put_bytes(const char *path, const char *bytes, size_t len) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    fclose(f);
}

/* As nobody, so that permissions bind even where the tests run as root. */
static int as_nobody(int (*body)(void)) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(99);
        _exit(body());
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void open_write_reopen(void **state) {
    (void)state;
    stet_db *db = fresh("a.db");
    OK(stet_db_begin_write(db, &err));
    assert_true(stet_db_in_transaction(db));
    insert(db, 1, "one");
    assert_int_equal(stet_db_changes(db), 1);
    assert_int_equal(stet_db_last_id(db), 1);
    OK(stet_db_commit(db, &err));
    assert_false(stet_db_in_transaction(db));
    assert_int_equal(stet_db_int(db, "PRAGMA synchronous", -1), 2);
    assert_int_equal(stet_db_int(db, "PRAGMA foreign_keys", -1), 1);
    assert_int_equal(stet_db_int(db, "PRAGMA journal_size_limit", -1), 64 << 20);
    assert_int_equal(stet_db_int(db, "SELECT journal_mode = 'wal' FROM pragma_journal_mode", -1), 1);
    assert_string_equal(stet_db_path(db), "a.db");
    assert_true(stet_db_bytes(db) >= 8192);
    stet_db_close(db);

    stet_db_opts ro = opts_one;
    ro.read_only = true;
    OK(stet_db_open("a.db", &ro, &db, &err));
    assert_true(stet_db_read_only(db));
    assert_int_equal(count(db), 1);
    FAILS(stet_db_begin_write(db, &err), STET_IO, "read-only");
    insert(db, 2, "no");
    FAILS(stet_db_status(db, &err), STET_IO, "a.db");
    OK(stet_db_begin_read(db, &err));
    stet_stmt *s = stet_db_stmt(db, "SELECT b, NULL, 1.5, x'0102', x'', '' FROM t");
    assert_true(stet_step(s));
    size_t len;
    assert_string_equal(stet_column_text(s, 0, &len), "one");
    assert_int_equal(len, 3);
    assert_true(stet_column_is_null(s, 1));
    assert_string_equal(stet_column_text(s, 1, &len), "");
    assert_int_equal(len, 0);
    assert_true(stet_column_double(s, 2) == 1.5);
    assert_memory_equal(stet_column_blob(s, 3, &len), "\1\2", 2);
    assert_int_equal(len, 2);
    assert_null(stet_column_blob(s, 4, &len));
    assert_int_equal(len, 0);
    assert_false(stet_column_is_null(s, 4));
    assert_false(stet_step(s));
    assert_int_equal(stet_column_int(s, 0), 0); /* no row: nothing to read */
    OK(stet_db_commit(db, &err));
    stet_db_close(db);
}

static void bindings(void **state) {
    (void)state;
    stet_db *db = fresh("b.db");
    stet_stmt *s = stet_db_stmt(db, "SELECT ?1, ?2, ?3, ?4, ?5, typeof(?3), typeof(?5)");
    stet_bind_int(s, 1, INT64_MIN);
    stet_bind_double(s, 2, 0.1);
    stet_bind_text(s, 3, NULL, 0);
    stet_bind_null(s, 4);
    stet_bind_blob(s, 5, NULL, 0);
    assert_true(stet_step(s));
    assert_true(stet_column_int(s, 0) == INT64_MIN);
    assert_true(stet_column_double(s, 1) == 0.1);
    assert_string_equal(stet_column_text(s, 5, NULL), "text");
    assert_string_equal(stet_column_text(s, 6, NULL), "blob");
    /* Taken again from the cache it is the same one, with nothing bound. */
    static const char sql[] = "SELECT ?1 IS NULL";
    stet_stmt *a = stet_db_stmt(db, sql);
    stet_bind_int(a, 1, 5);
    assert_true(stet_step(a));
    assert_int_equal(stet_column_int(a, 0), 0);
    stet_stmt *b = stet_db_stmt(db, sql);
    assert_ptr_equal(a, b);
    assert_true(stet_step(b));
    assert_int_equal(stet_column_int(b, 0), 1);
    OK(stet_db_status(db, &err));
    stet_bind_int(b, 9, 1); /* no such parameter: a bug of the caller */
    FAILS(stet_db_status(db, &err), STET_INTERNAL, "b.db");
    stet_db_close(db);
}

static void errors_stick(void **state) {
    (void)state;
    stet_db *db = fresh("c.db");
    OK(stet_db_begin_write(db, &err));
    insert(db, 1, "one");
    insert(db, 1, "twice"); /* breaks the primary key */
    insert(db, 2, "two");   /* a no-op */
    assert_int_equal(stet_db_status(db, NULL), STET_INTERNAL);
    assert_int_equal(stet_db_status(db, NULL), STET_INTERNAL); /* inside it stays */
    FAILS(stet_db_commit(db, &err), STET_INTERNAL, "UNIQUE");
    OK(stet_db_status(db, &err));
    assert_int_equal(count(db), 0);

    OK(stet_db_begin_write(db, &err));
    insert(db, 1, "one");
    stet_db_fail(db, STET_CORRUPT, "blob %d is torn", 7);
    stet_db_fail(db, STET_IO, "and this comes too late");
    FAILS(stet_db_commit(db, &err), STET_CORRUPT, "blob 7 is torn");
    OK(stet_db_begin_write(db, &err));
    insert(db, 3, "three");
    OK(stet_db_commit(db, &err));
    assert_int_equal(count(db), 1);

    stet_stmt *s = stet_db_stmt(db, "SELEC nonsense");
    stet_bind_int(s, 1, 1);
    assert_false(stet_step(s));
    assert_int_equal(stet_column_int(s, 0), 0);
    FAILS(stet_db_begin_write(db, &err), STET_INTERNAL, "SELEC nonsense"); /* reported here at the latest */
    OK(stet_db_begin_write(db, &err));
    stet_db_rollback(db);
    stet_db_close(db);
}

typedef struct some_rows {
    int64_t from, to;
    char text[32];
} some_rows;

static bool next_some(void *ctx, stet_row *row) {
    some_rows *r = ctx;
    if (r->from == r->to)
        return false;
    int64_t n = r->from++;
    stet_row_int(row, 0, n);
    if (n % 3 == 0) {
        stet_row_null(row, 1);
    } else if (n % 3 == 1) {
        snprintf(r->text, sizeof r->text, "row %lld", (long long)n); /* stays until the next row */
        stet_row_text(row, 1, r->text, strlen(r->text));
    } else {
        stet_row_text(row, 1, NULL, 0);
    }
    return true;
}

static void many_rows_in_one_statement(void **state) {
    (void)state;
    static const char sql[] = "INSERT OR FAIL INTO t(a, b) SELECT a, b FROM given";
    stet_db *db = fresh("d.db");
    OK(stet_db_begin_write(db, &err));
    stet_db_rows(db, sql, next_some, &(some_rows){.from = 1, .to = 1}); /* none */
    stet_db_rows(db, sql, next_some, &(some_rows){.from = 1, .to = 5001});
    OK(stet_db_commit(db, &err));
    assert_int_equal(count(db), 5000);
    assert_int_equal(stet_db_int(db, "SELECT sum(a) FROM t", 0), 5000 * 5001 / 2);
    assert_int_equal(stet_db_int(db, "SELECT count(*) FROM t WHERE b IS NULL AND a % 3 = 0", 0), 1666);
    assert_int_equal(stet_db_int(db, "SELECT count(*) FROM t WHERE b = 'row ' || a AND a % 3 = 1", 0), 1667);
    assert_int_equal(stet_db_int(db, "SELECT count(*) FROM t WHERE b = '' AND a % 3 = 2", 0), 1667);

    /* One that can't be stored: the failure sticks, nothing after it is done, and nothing of the transaction stays. */
    OK(stet_db_begin_write(db, &err));
    insert(db, 9000, "before");
    some_rows r = {.from = 0, .to = 100};
    stet_db_rows(db, sql, next_some, &r);
    assert_true(r.from < 100);
    int64_t reached = r.from;
    stet_db_rows(db, sql, next_some, &r);
    assert_int_equal(r.from, reached);
    FAILS(stet_db_commit(db, &err), STET_INTERNAL, "UNIQUE");
    assert_int_equal(count(db), 5000);

    /* The same under a savepoint: what came before it stays. */
    OK(stet_db_begin_write(db, &err));
    insert(db, 9000, "before");
    stet_db_savepoint(db);
    stet_db_rows(db, sql, next_some, &(some_rows){.from = 0, .to = 100});
    assert_int_not_equal(stet_db_status(db, NULL), STET_OK);
    stet_db_savepoint_undo(db);
    stet_db_rows(db, sql, next_some, &(some_rows){.from = 9001, .to = 9003});
    OK(stet_db_commit(db, &err));
    assert_int_equal(count(db), 5003);
    assert_int_equal(stet_db_int(db, "SELECT count(*) FROM t WHERE a = 0", 0), 0);

    /* A statement that can't be prepared. */
    OK(stet_db_begin_write(db, &err));
    stet_db_rows(db, "INSERT INTO nowhere SELECT a FROM given", next_some, &r);
    FAILS(stet_db_commit(db, &err), STET_CORRUPT, "nowhere");
    stet_db_close(db);
}

static void savepoints(void **state) {
    (void)state;
    stet_db *db = fresh("d.db");
    OK(stet_db_begin_write(db, &err));
    insert(db, 1, "one");
    stet_db_savepoint(db);
    insert(db, 2, "two");
    stet_db_savepoint(db);
    insert(db, 1, "fails");
    insert(db, 9, "not reached");
    stet_db_savepoint_undo(db);
    OK(stet_db_status(db, &err));
    insert(db, 3, "three");
    OK(stet_db_savepoint_release(db, &err));
    stet_db_savepoint(db);
    insert(db, 4, "four");
    stet_db_savepoint_undo(db);
    OK(stet_db_commit(db, &err));
    assert_int_equal(stet_db_int(db, "SELECT sum(a) FROM t", 0), 6);

    /* What failed before a savepoint began is not dropped by its undo. */
    OK(stet_db_begin_write(db, &err));
    insert(db, 1, "fails");
    stet_db_savepoint(db);
    stet_db_savepoint_undo(db);
    stet_db_savepoint(db);
    FAILS(stet_db_savepoint_release(db, &err), STET_INTERNAL, "UNIQUE");
    FAILS(stet_db_commit(db, &err), STET_INTERNAL, "UNIQUE");
    stet_db_close(db);
}

static void snapshots_and_news(void **state) {
    (void)state;
    stet_db *db = fresh("e.db"), *other;
    OK(stet_db_open("e.db", &opts_one, &other, &err));
    int64_t before = stet_db_data_version(other);
    OK(stet_db_begin_read(other, &err));
    OK(stet_db_begin_write(db, &err));
    insert(db, 1, "one");
    OK(stet_db_commit(db, &err));
    assert_int_equal(count(other), 0); /* the snapshot is of the begin, not of the first read */
    OK(stet_db_commit(other, &err));
    assert_int_equal(count(other), 1);
    assert_true(stet_db_data_version(other) != before);
    before = stet_db_data_version(other);
    assert_int_equal(stet_db_data_version(other), before);
    /* A reader that left its statement on a row neither blocks a transaction nor a checkpoint. */
    assert_true(stet_step(stet_db_stmt(other, "SELECT a FROM t")));
    OK(stet_db_begin_write(other, &err));
    insert(other, 2, "two");
    OK(stet_db_commit(other, &err));
    OK(stet_db_checkpoint(other, &err));
    struct stat st;
    assert_int_equal(stat("e.db-wal", &st), 0);
    assert_int_equal(st.st_size, 0);
    /* With a reader there is no failure, only a WAL that stays. */
    OK(stet_db_begin_read(db, &err));
    OK(stet_db_begin_write(other, &err));
    insert(other, 3, "three");
    OK(stet_db_commit(other, &err));
    OK(stet_db_checkpoint(other, &err));
    OK(stet_db_commit(db, &err));
    OK(stet_db_vacuum(db, &err));
    stet_db_close(db);
    stet_db_close(other);
}

static stet_status fill_c(stet_db *db, void *ctx, stet_error *e) {
    (void)e;
    stet_stmt *s = stet_db_stmt(db, "UPDATE t SET b = ?");
    stet_bind_text(s, 1, ctx, strlen(ctx));
    stet_run(s);
    return STET_OK;
}

static stet_status refuse(stet_db *db, void *ctx, stet_error *e) {
    (void)db, (void)ctx;
    return stet_fail(e, STET_CORRUPT, "cannot be converted");
}

static void migrations(void **state) {
    (void)state;
    stet_db *db = fresh("f.db");
    OK(stet_db_begin_write(db, &err));
    insert(db, 1, "one");
    OK(stet_db_commit(db, &err));
    stet_db_close(db);

    stet_db_opts ro = opts_two;
    ro.read_only = true;
    FAILS(stet_db_open("f.db", &ro, &db, &err), STET_UNSUPPORTED, "version 1");

    /* One that fails leaves the old version, whole. */
    stet_db_migration bad[] = {one[0], two[1], {.sql = "CREATE TABLE u(x)", .apply = refuse}};
    stet_db_opts three = {.kind = "test", .migrations = bad, .migration_count = 3};
    FAILS(stet_db_open("f.db", &three, &db, &err), STET_CORRUPT, "cannot be converted");
    bad[2].apply = NULL;
    bad[2].sql = "CREATE TABLE u(x); CREATE nonsense";
    FAILS(stet_db_open("f.db", &three, &db, &err), STET_INTERNAL, "syntax error");
    OK(stet_db_open("f.db", &opts_one, &db, &err));
    assert_int_equal(stet_db_int(db, "PRAGMA user_version", -1), 1);
    assert_int_equal(stet_db_int(db, "SELECT count(*) FROM sqlite_schema", -1), 1);
    stet_db_close(db);

    char changed[] = "changed";
    stet_db_migration good[] = {one[0], {.sql = two[1].sql, .apply = fill_c}};
    stet_db_opts both = {.kind = "test", .migrations = good, .migration_count = 2, .ctx = changed};
    OK(stet_db_open("f.db", &both, &db, &err));
    assert_int_equal(stet_db_int(db, "SELECT count(*) FROM t WHERE b = 'changed' AND c IS NULL", -1), 1);
    stet_db_close(db);
    FAILS(stet_db_open("f.db", &opts_one, &db, &err), STET_UNSUPPORTED, "version 2");
    OK(stet_db_open("f.db", &opts_two, &db, &err));
    stet_db_close(db);
}

static void sixteen_open_a_new_one_at_once(void **state) {
    (void)state;
    pid_t pids[16];
    for (int i = 0; i < 16; i++)
        if ((pids[i] = fork()) == 0) {
            stet_db *db;
            stet_error e = STET_ERROR_INIT;
            if (stet_db_open("new.db", &opts_two, &db, &e) != STET_OK || stet_db_begin_write(db, &e) != STET_OK) {
                fprintf(stderr, "# %s\n", e.message);
                _exit(1);
            }
            insert(db, i, "x");
            if (stet_db_commit(db, &e) != STET_OK) {
                fprintf(stderr, "# %s\n", e.message);
                _exit(2);
            }
            stet_db_close(db);
            _exit(0);
        }
    for (int i = 0; i < 16; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    stet_db *db;
    OK(stet_db_open("new.db", &opts_two, &db, &err));
    assert_int_equal(count(db), 16);
    stet_db_close(db);
}

static stet_hash hash_of(const char *path) {
    stet_hash h = {{0}};
    OK(stet_file_hash(path, &h, NULL, &err));
    return h;
}

static void refusals_change_nothing(void **state) {
    (void)state;
    stet_db *db = NULL;
    stet_db_opts must = opts_one;
    must.must_exist = true;
    FAILS(stet_db_open("absent.db", &must, &db, &err), STET_NOT_FOUND, "absent.db");
    assert_false(stet_file_exists("absent.db"));
    FAILS(stet_db_open("no/such/dir.db", &opts_one, &db, &err), STET_NOT_FOUND, "no/such");
    FAILS(stet_db_open(".", &opts_one, &db, &err), STET_INVALID, "not a regular file");

    char text[8192];
    memset(text, 'x', sizeof text);
    put_bytes("text.db", text, sizeof text);
    stet_hash before = hash_of("text.db");
    FAILS(stet_db_open("text.db", &opts_one, &db, &err), STET_CORRUPT, "text.db");
    assert_true(stet_hash_equal(before, hash_of("text.db")));
    put_bytes("short.db", "short", 5);
    FAILS(stet_db_open("short.db", &opts_one, &db, &err), STET_CORRUPT, "short.db");

    /* Another kind's, and a stranger's. */
    db = fresh("kind.db");
    stet_db_close(db);
    before = hash_of("kind.db");
    stet_db_opts other = {.kind = "other", .migrations = one, .migration_count = 1};
    FAILS(stet_db_open("kind.db", &other, &db, &err), STET_INVALID, "other");
    assert_true(stet_hash_equal(before, hash_of("kind.db")));
    OK(stet_db_open("kind.db", &opts_one, &db, &err));
    stet_db_exec(db, "PRAGMA application_id=0; PRAGMA user_version=0");
    OK(stet_db_status(db, &err));
    stet_db_close(db);
    FAILS(stet_db_open("kind.db", &opts_one, &db, &err), STET_INVALID, "not one that stet made");

    /* Cut in half. */
    db = fresh("cut.db");
    OK(stet_db_begin_write(db, &err));
    for (int i = 0; i < 1000; i++)
        insert(db, i, "a row that takes some room in its page, so that there are many pages");
    OK(stet_db_commit(db, &err));
    stet_db_close(db);
    struct stat st;
    assert_int_equal(stat("cut.db", &st), 0);
    assert_int_equal(truncate("cut.db", st.st_size / 2), 0);
    FAILS(stet_db_open("cut.db", &opts_one, &db, &err), STET_CORRUPT, "cut.db");
    assert_int_equal(truncate("cut.db", 50), 0);
    FAILS(stet_db_open("cut.db", &opts_one, &db, &err), STET_CORRUPT, "cut.db");
    put_bytes("cut.db-wal", text, 100);
    assert_int_equal(truncate("cut.db", 0), 0);
    FAILS(stet_db_open("cut.db", &opts_one, &db, &err), STET_CORRUPT, "cut to 0 bytes");

    /* An empty file is what a creation that was killed leaves. */
    put_bytes("empty.db", "", 0);
    stet_db_opts ro = opts_one;
    ro.read_only = true;
    FAILS(stet_db_open("empty.db", &ro, &db, &err), STET_NOT_FOUND, "empty");
    OK(stet_db_open("empty.db", &must, &db, &err));
    stet_db_close(db);

    /* Names that mean something else to SQLite. */
    OK(stet_db_open(":memory:", &opts_one, &db, &err));
    stet_db_close(db);
    assert_true(stet_file_exists(":memory:"));
    OK(stet_db_open("file:x?mode=memory", &opts_one, &db, &err));
    stet_db_close(db);
    assert_true(stet_file_exists("file:x?mode=memory"));
}

static int network_statfs(const char *path, struct statfs *out) {
    (void)path;
    memset(out, 0, sizeof *out);
    out->f_type = 0x6969;
    return 0;
}

static void network_file_systems_are_refused(void **state) {
    (void)state;
    stet_db *db;
    stet_file_statfs_hook = network_statfs;
    FAILS(stet_db_open("nfs.db", &opts_one, &db, &err), STET_UNSUPPORTED, "NFS");
    stet_error e = STET_ERROR_INIT;
    assert_int_equal(stet_db_open("nfs.db", &opts_one, &db, &e), STET_UNSUPPORTED);
    assert_non_null(strstr(e.hint, "local ="));
    stet_error_clear(&e);
    stet_file_statfs_hook = NULL;
    assert_false(stet_file_exists("nfs.db"));
    assert_false(stet_file_exists("nfs.db.writer"));
}

static int open_both_ways(void) {
    stet_db *db;
    stet_error e = STET_ERROR_INIT;
    stet_db_opts ro = opts_one;
    ro.read_only = true;
    if (stet_db_open("ro/x.db", &opts_one, &db, &e) != STET_IO || !strstr(e.message, "its directory"))
        return 1;
    stet_error_clear(&e);
    if (stet_db_open("ro/new.db", &opts_one, &db, &e) != STET_IO || !strstr(e.message, "its directory"))
        return 2;
    stet_error_clear(&e);
    /* Closed cleanly, so that there is no -shm: SQLite can't, and the hint says why. */
    if (stet_db_open("ro/x.db", &ro, &db, &e) != STET_IO || !strstr(e.hint, "read-only"))
        return 3;
    stet_error_clear(&e);
    if (stet_db_open("rofile/x.db", &opts_one, &db, &e) != STET_IO || !strstr(e.message, "the file"))
        return 4;
    stet_error_clear(&e);
    return 0;
}

static int open_live_one(void) {
    stet_db *db;
    stet_error e = STET_ERROR_INIT;
    stet_db_opts ro = opts_one;
    ro.read_only = true;
    if (stet_db_open("ro/x.db", &ro, &db, &e) != STET_OK) {
        print_message("%s\n", e.message);
        return 1;
    }
    int result = count(db) == 1 ? 0 : 2;
    stet_db_close(db);
    return result;
}

static void read_only_places(void **state) {
    (void)state;
    assert_int_equal(chmod(".", 0755), 0);
    assert_int_equal(mkdir("ro", 0755), 0);
    assert_int_equal(mkdir("rofile", 0777), 0);
    assert_int_equal(chmod("rofile", 0777), 0);
    stet_db *db = fresh("ro/x.db");
    stet_db_close(db);
    db = fresh("rofile/x.db");
    stet_db_close(db);
    assert_int_equal(chmod("ro/x.db", 0444), 0);
    assert_int_equal(chmod("rofile/x.db", 0444), 0);
    assert_int_equal(chmod("ro", 0555), 0);
    assert_int_equal(as_nobody(open_both_ways), 0);
    assert_int_equal(chmod("ro", 0755), 0);
    assert_int_equal(chmod("ro/x.db", 0644), 0);
    /* While somebody who may write has it open, its -wal and -shm are there, and a reader who may not gets in. */
    OK(stet_db_open("ro/x.db", &opts_one, &db, &err));
    OK(stet_db_begin_write(db, &err));
    insert(db, 1, "one");
    OK(stet_db_commit(db, &err));
    assert_int_equal(chmod("ro", 0555), 0);
    assert_int_equal(as_nobody(open_live_one), 0);
    assert_int_equal(chmod("ro", 0755), 0);
    stet_db_close(db);
}

static void a_second_writer_waits_then_gives_up(void **state) {
    (void)state;
    stet_db *db = fresh("g.db"), *other;
    stet_db_opts patient = opts_one;
    patient.busy_ms = 60;
    OK(stet_db_open("g.db", &patient, &other, &err));
    OK(stet_db_begin_write(db, &err));
    int64_t started = stet_clock_monotonic_us();
    char pid[32];
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    FAILS(stet_db_begin_write(other, &err), STET_BUSY, "g.db.writer");
    FAILS(stet_db_begin_write(other, &err), STET_BUSY, pid);
    assert_true(stet_clock_monotonic_us() - started >= 120000);
    assert_true(stet_clock_monotonic_us() - started < 3000000);
    OK(stet_db_commit(db, &err));
    OK(stet_db_begin_write(other, &err));
    stet_db_rollback(other);
    stet_db_close(other);
    stet_db_close(db);
}

/* Another program knows nothing of the queue: SQLite's own lock and the busy handler order it. */
static void a_foreign_writer_is_waited_for(void **state) {
    (void)state;
    stet_db *db = fresh("h.db");
    stet_db_close(db);
    fflush(stdout);
    FILE *python = popen("/usr/bin/python3 -c '\n"
                         "import sqlite3, time, os\n"
                         "c = sqlite3.connect(\"h.db\", isolation_level=None)\n"
                         "c.execute(\"BEGIN IMMEDIATE\")\n"
                         "c.execute(\"INSERT INTO t VALUES(1, 1)\")\n"
                         "print(1, flush=True)\n"
                         "time.sleep(0.4)\n"
                         "c.execute(\"COMMIT\")\n'",
                         "r");
    assert_non_null(python);
    assert_int_equal(fgetc(python), '1');
    stet_db_opts impatient = opts_one;
    impatient.busy_ms = 50;
    OK(stet_db_open("h.db", &impatient, &db, &err));
    FAILS(stet_db_begin_write(db, &err), STET_BUSY, "h.db");
    stet_db_close(db);
    OK(stet_db_open("h.db", &opts_one, &db, &err));
    OK(stet_db_begin_write(db, &err));
    assert_int_equal(count(db), 1);
    stet_db_rollback(db);
    stet_db_close(db);
    assert_int_equal(pclose(python), 0);
}

static void damage_is_found(void **state) {
    (void)state;
    stet_db *db = fresh("i.db");
    stet_buf problems = STET_BUF(0);
    OK(stet_db_begin_write(db, &err));
    for (int i = 0; i < 3000; i++)
        insert(db, i, "a row that takes some room in its page, so that there are many pages");
    stet_db_exec(db, "CREATE TABLE child(p INTEGER REFERENCES t(a))");
    OK(stet_db_commit(db, &err));
    OK(stet_db_check(db, &problems, &err));
    assert_int_equal(problems.len, 0);
    stet_db_exec(db, "PRAGMA foreign_keys=off; INSERT INTO child VALUES(99999); PRAGMA foreign_keys=on");
    OK(stet_db_check(db, &problems, &err));
    assert_non_null(strstr(stet_buf_cstr(&problems), "row 1 of child refers to a row of t"));
    stet_db_close(db);
    FILE *f = fopen("i.db", "r+");
    assert_non_null(f);
    for (int page = 3; page < 20; page++) {
        char junk[64];
        memset(junk, 0xa5, sizeof junk);
        fseek(f, page * 4096, SEEK_SET);
        fwrite(junk, 1, sizeof junk, f);
    }
    fclose(f);
    stet_buf_clear(&problems);
    OK(stet_db_open("i.db", &opts_one, &db, &err));
    OK(stet_db_check(db, &problems, &err));
    assert_true(problems.len > 0);
    stet_db_int(db, "SELECT sum(length(b)) FROM t", 0);
    FAILS(stet_db_status(db, &err), STET_CORRUPT, "i.db");
    stet_db_close(db);
    stet_buf_release(&problems);
}

/* Does this process hold a lock on the file? Another one has to ask. */
static bool is_locked(const char *path) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int fd = open(path, O_RDWR);
        _exit(fd < 0 || fcntl(fd, F_GETLK, &l) != 0 ? 2 : l.l_type != F_UNLCK);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 1;
}

static void a_copy_leaves_the_locks(void **state) {
    (void)state;
    stet_db *db = fresh("copied.db"), *more, *copy;
    int before = faults_descriptors();
    OK(stet_db_begin_write(db, &err));
    insert(db, 1, "a");
    OK(stet_db_commit(db, &err));
    assert_true(is_locked("copied.db"));
    for (int i = 0; i < 3; i++) { /* while this is open nobody else may take the log for his own */
        unlink("copy.db");
        OK(stet_db_copy_file("copied.db", "copy.db", &err));
        assert_true(is_locked("copied.db"));
    }
    assert_true(faults_descriptors() <= before + 2); /* that of the writer's lock, and one for all copies */
    OK(stet_db_open("copied.db", &opts_one, &more, &err));
    stet_db_close(db);
    assert_true(is_locked("copied.db"));
    stet_db_close(more);
    assert_false(is_locked("copied.db"));
    assert_true(faults_descriptors() < before);
    unlink("copy.db");
    OK(stet_db_copy_file("copied.db", "copy.db", &err)); /* with everything: closing has emptied the log */
    assert_true(faults_descriptors() < before);
    OK(stet_db_open("copy.db", &opts_one, &copy, &err));
    assert_int_equal(count(copy), 1);
    stet_db_close(copy);
    FAILS(stet_db_copy_file("none.db", "copy2.db", &err), STET_NOT_FOUND, "none.db");
}

static void opening_is_cheap(void **state) {
    (void)state;
    stet_db *db = fresh("j.db");
    OK(stet_db_begin_write(db, &err));
    for (int i = 0; i < 100; i++)
        insert(db, i, "x");
    OK(stet_db_commit(db, &err));
    int64_t best = INT64_MAX, best_alone = INT64_MAX;
    for (int round = 0; round < 100; round++) {
        stet_db *again;
        int64_t started = stet_clock_monotonic_us();
        OK(stet_db_open("j.db", &opts_one, &again, &err));
        int64_t took = stet_clock_monotonic_us() - started;
        if (took < best)
            best = took;
        stet_db_close(again);
    }
    stet_db_close(db);
    for (int round = 0; round < 100; round++) {
        int64_t started = stet_clock_monotonic_us();
        OK(stet_db_open("j.db", &opts_one, &db, &err));
        stet_db_close(db);
        int64_t took = stet_clock_monotonic_us() - started;
        if (took < best_alone)
            best_alone = took;
    }
    print_message("# open: %lld us while another has it open; open and close alone: %lld us\n", (long long)best,
                  (long long)best_alone);
    if (!getenv("STET_TEST_SHORT"))
        assert_true(best < 1000);
}

/* Part of the formats that carry sums: the values were computed by another program. */
static void sums_of_rows(void **state) {
    (void)state;
    stet_db *db = NULL;
    OK(stet_db_open("sums.db", &opts_one, &db, &err));
    assert_int_equal(stet_db_int(db, "SELECT row_sum(1, 'a', x'00ff', NULL, -7, 2.5)", 0), 763450379);
    assert_int_equal(stet_db_int(db, "SELECT row_sum(printf('%.*c', 1000, 'x'), x'', 2)", 0), -957269153);
    assert_int_equal(stet_db_int(db, "SELECT crc32c('123456789')", 0), (int32_t)0xE3069283);
    stet_row row = {0};
    stet_row_int(&row, 0, 1);
    stet_row_text(&row, 1, "a", 1);
    stet_row_blob(&row, 2, "\0\xff", 2);
    stet_row_sum(&row, 4); /* field 3 is NULL */
    stet_stmt *q = stet_db_stmt(db, "SELECT 1, 'a', x'00ff', NULL, ?, 0, 1, 'a', '00ff', NULL, ?");
    stet_bind_int(q, 1, row.at[4].number);
    stet_bind_int(q, 2, row.at[4].number);
    assert_true(stet_step(q));
    assert_true(stet_column_sound(q, 0, 4));
    assert_false(stet_column_sound(q, 1, 4)); /* not its sum */
    assert_false(stet_column_sound(q, 6, 4)); /* a text in place of a blob */
    stet_reset(q);
    stet_db_close(db);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_write_reopen),
        cmocka_unit_test(bindings),
        cmocka_unit_test(errors_stick),
        cmocka_unit_test(many_rows_in_one_statement),
        cmocka_unit_test(savepoints),
        cmocka_unit_test(snapshots_and_news),
        cmocka_unit_test(migrations),
        cmocka_unit_test(sums_of_rows),
        cmocka_unit_test(sixteen_open_a_new_one_at_once),
        cmocka_unit_test(refusals_change_nothing),
        cmocka_unit_test(network_file_systems_are_refused),
        cmocka_unit_test(read_only_places),
        cmocka_unit_test(a_second_writer_waits_then_gives_up),
        cmocka_unit_test(a_foreign_writer_is_waited_for),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(a_copy_leaves_the_locks),
        cmocka_unit_test(opening_is_cheap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
