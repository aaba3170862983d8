/* db.c - failures, transactions and maintenance of an open database. Part of db.h. */
#include "db/db.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/internal.h"
#include "os/clock.h"
#include "os/sys.h"

static _Noreturn void out_of_memory(void) {
    fputs("stet: out of memory\n", stderr);
    abort();
}

static stet_status status_of_rc(int rc) {
    if (rc == SQLITE_IOERR_CORRUPTFS || rc == SQLITE_IOERR_DATA)
        return STET_CORRUPT;
    switch (rc & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return STET_CORRUPT;
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_NOLFS:
        return STET_IO;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return STET_BUSY;
    case SQLITE_TOOBIG:
        return STET_LIMIT;
    case SQLITE_INTERRUPT:
        return STET_CANCELLED;
    default:
        return STET_INTERNAL;
    }
}

static void hint_of_rc(int rc, const char *path, stet_error *err) {
    switch (rc & 0xff) {
    case SQLITE_FULL:
        stet_hint(err, "free some space on the file system of %s; nothing was changed", path);
        break;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        stet_hint(err, "make %s and its directory writable for this user", path);
        break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        stet_hint(err, "run `stet check`, or restore the file from a backup");
        break;
    case SQLITE_BUSY:
        stet_hint(err, "wait for the other program to finish, then try again");
        break;
    }
}

stet_status db_fail_rc(sqlite3 *handle, int rc, const char *path, const char *what, stet_error *err) {
    if ((rc & 0xff) == SQLITE_NOMEM || rc == SQLITE_IOERR_NOMEM)
        out_of_memory();
    stet_status status = status_of_rc(rc);
    /* The message of SQLite if the last failure of the handle is this one, otherwise the message of the code. With the
     * errno, if the operating system reported one. */
    const char *message =
        handle && sqlite3_extended_errcode(handle) == rc ? sqlite3_errmsg(handle) : sqlite3_errstr(rc);
    int error_number = handle && status == STET_IO ? sqlite3_system_errno(handle) : 0;
    if (error_number)
        stet_fail(err, status, "%s: %s: %s (%s)", path, what, message, strerror(error_number));
    else if (status == STET_INTERNAL)
        stet_fail(err, status, "%s: %.300s: %s (SQLite %d)", path, what, message, rc);
    else
        stet_fail(err, status, "%s: %.100s: %s", path, what, message);
    if (err)
        hint_of_rc(rc, path, err);
    return status;
}

void db_fail_sqlite(stet_db *db, int rc, const char *what) {
    db_fail_rc(db->handle, rc, db->path, what, &db->failed);
}

void stet_db_fail(stet_db *db, stet_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    stet_vfail(&db->failed, status, format, args);
    va_end(args);
}

void stet_db_hint(stet_db *db, const char *hint) {
    if (db->failed.status != STET_OK)
        stet_hint(&db->failed, "%s", hint);
}

/* Copies the sticky failure to the caller; the failure stays. */
static stet_status report(const stet_db *db, stet_error *err) {
    stet_error_copy(err, &db->failed);
    return db->failed.status;
}

static stet_status report_and_forget(stet_db *db, stet_error *err) {
    stet_status status = db->failed.status;
    if (err)
        stet_error_move(err, &db->failed);
    stet_error_clear(&db->failed);
    return status;
}

stet_status stet_db_status(stet_db *db, stet_error *err) {
    if (db->failed.status == STET_OK)
        return STET_OK;
    return db->state == DB_NONE ? report_and_forget(db, err) : report(db, err);
}

bool stet_db_failed(const stet_db *db) {
    return db->failed.status != STET_OK;
}

const char *stet_db_path(const stet_db *db) {
    return db->path;
}

bool stet_db_read_only(const stet_db *db) {
    return db->read_only;
}

int db_exec_raw(stet_db *db, const char *sql) {
    return sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
}

/* Runs BEGIN, COMMIT and the like even if a failure sticks. They are prepared once, because parsing them costs more
 * than a small transaction. */
static int control(stet_db *db, const char *sql) {
    stet_stmt *s;
    int rc = db_prepare(db, sql, &s);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_step(s->handle);
    return sqlite3_reset(s->handle);
}

void stet_db_exec(stet_db *db, const char *sql) {
    int error_number = EIO;
    if (db->failed.status != STET_OK)
        return;
    if (stet_sys_ask(STET_SYS_SQL, db->path, &error_number) == STET_SYS_FAIL) {
        stet_fail_errno(&db->failed, error_number, "%s: %.200s", db->path, sql);
        return;
    }
    int rc = db_exec_raw(db, sql);
    if (rc != SQLITE_OK)
        db_fail_sqlite(db, rc, sql);
}

int64_t stet_db_int(stet_db *db, const char *sql, int64_t otherwise) {
    if (db->failed.status != STET_OK)
        return otherwise;
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(db->handle, sql, -1, &s, NULL);
    int64_t result = otherwise;
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(s);
        if (rc == SQLITE_ROW)
            result = sqlite3_column_int64(s, 0);
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        db_fail_sqlite(db, rc, sql);
    sqlite3_finalize(s);
    return result;
}

stet_status db_lock_writer(stet_db *db, stet_error *err) {
    int64_t started = stet_clock_monotonic_us();
    if (!db->writer) {
        char *path = stet_asprintf("%s.writer", db->path);
        stet_status status = stet_lock_open(path, STET_LOCK_PLAIN, &db->writer, err);
        stet_free(path);
        if (status != STET_OK)
            return status == STET_NOT_FOUND ? STET_IO : status;
    }
    stet_status status = stet_lock_take(db->writer, STET_LOCK_EXCLUSIVE, db->busy_ms, err);
    if (status == STET_OK) /* one time limit for the queue and for SQLite's own lock together */
        db->busy_deadline = started + (int64_t)db->busy_ms * 1000;
    return status;
}

void db_unlock_writer(stet_db *db) {
    stet_lock_drop(db->writer);
    db->busy_deadline = 0;
}

stet_status stet_db_begin_read(stet_db *db, stet_error *err) {
    assert(db->state == DB_NONE);
    if (db->failed.status != STET_OK)
        return report_and_forget(db, err);
    db_reset_active(db);
    int rc = control(db, "BEGIN");
    if (rc != SQLITE_OK)
        return db_fail_rc(db->handle, rc, db->path, "cannot begin to read", err);
    db->state = DB_READ;
    /* BEGIN alone does not take a snapshot, only the first read does: read now. */
    stet_run(stet_db_stmt(db, "SELECT 1 FROM sqlite_schema LIMIT 1"));
    if (db->failed.status == STET_OK)
        return STET_OK;
    stet_status status = report(db, err);
    stet_db_rollback(db);
    return status;
}

stet_status stet_db_begin_write(stet_db *db, stet_error *err) {
    assert(db->state == DB_NONE);
    if (db->failed.status != STET_OK)
        return report_and_forget(db, err);
    if (db->read_only)
        return stet_fail(err, STET_IO, "%s: cannot be written: it was opened read-only", db->path);
    db_reset_active(db);
    stet_status status = db_lock_writer(db, err);
    if (status != STET_OK)
        return status;
    int rc = control(db, "BEGIN IMMEDIATE");
    if (rc != SQLITE_OK) {
        status = db_fail_rc(db->handle, rc, db->path, "cannot begin to write", err);
        db_unlock_writer(db);
        return status;
    }
    db->state = DB_WRITE;
    return STET_OK;
}

/* Ends the transaction in SQLite in any case. SQLite may already have rolled it back by itself. */
static void roll_back(stet_db *db) {
    db_reset_active(db);
    if (!sqlite3_get_autocommit(db->handle)) {
        int rc = control(db, "ROLLBACK");
        /* Even if a rollback meets an I/O error, the transaction has ended. */
        assert(rc == SQLITE_OK || sqlite3_get_autocommit(db->handle));
        (void)rc;
    }
}

static void leave(stet_db *db) {
    if (db->state == DB_WRITE)
        db_unlock_writer(db);
    db->state = DB_NONE;
    db->savepoint_count = 0;
}

stet_status stet_db_commit(stet_db *db, stet_error *err) {
    assert(db->state != DB_NONE);
    assert(db->savepoint_count == 0 || db->failed.status != STET_OK);
    db_reset_active(db);
    if (db->failed.status == STET_OK) {
        int error_number = EIO;
        if (stet_sys_ask(STET_SYS_SQL, db->path, &error_number) == STET_SYS_FAIL) {
            stet_fail_errno(&db->failed, error_number, "%s: cannot commit", db->path);
        } else {
            int rc = control(db, "COMMIT");
            if (rc != SQLITE_OK)
                db_fail_sqlite(db, rc, "cannot commit");
        }
    }
    if (db->failed.status != STET_OK)
        roll_back(db);
    leave(db);
    return db->failed.status == STET_OK ? STET_OK : report_and_forget(db, err);
}

void stet_db_rollback(stet_db *db) {
    if (db->state == DB_NONE)
        return;
    roll_back(db);
    leave(db);
    stet_error_clear(&db->failed);
}

int stet_db_patience(stet_db *db, int ms) {
    int was = db->busy_ms;
    db->busy_ms = ms;
    return was;
}

bool stet_db_in_transaction(const stet_db *db) {
    return db->state != DB_NONE;
}

void stet_db_savepoint(stet_db *db) {
    assert(db->state != DB_NONE);
    assert(db->savepoint_count < DB_SAVEPOINTS);
    int i = db->savepoint_count++;
    db->savepoints[i].failed_before = db->failed.status != STET_OK;
    db->savepoints[i].made = false;
    if (db->savepoints[i].failed_before)
        return;
    int rc = control(db, "SAVEPOINT s");
    if (rc != SQLITE_OK)
        db_fail_sqlite(db, rc, "cannot set a savepoint");
    db->savepoints[i].made = rc == SQLITE_OK;
}

stet_status stet_db_savepoint_release(stet_db *db, stet_error *err) {
    assert(db->savepoint_count > 0);
    bool made = db->savepoints[--db->savepoint_count].made;
    if (db->failed.status == STET_OK && made) {
        db_reset_active(db);
        int rc = control(db, "RELEASE s");
        if (rc != SQLITE_OK)
            db_fail_sqlite(db, rc, "cannot release a savepoint");
    }
    return db->failed.status == STET_OK ? STET_OK : report(db, err);
}

void stet_db_savepoint_undo(stet_db *db) {
    assert(db->savepoint_count > 0);
    int i = --db->savepoint_count;
    if (db->savepoints[i].failed_before)
        return;
    db_reset_active(db);
    /* SQLite ends the whole transaction on some failures (a full disk). Then nothing smaller can be undone, and the
     * failure stays until the commit reports it. */
    if (!db->savepoints[i].made || sqlite3_get_autocommit(db->handle))
        return;
    int rc = control(db, "ROLLBACK TO s");
    if (rc == SQLITE_OK)
        rc = control(db, "RELEASE s");
    stet_error_clear(&db->failed);
    if (rc != SQLITE_OK)
        db_fail_sqlite(db, rc, "cannot undo to a savepoint");
}

int64_t stet_db_data_version(stet_db *db) {
    stet_stmt *s = stet_db_stmt(db, "PRAGMA data_version");
    int64_t version = stet_step(s) ? stet_column_int(s, 0) : -1;
    stet_reset(s);
    return version;
}

/* Collects the lines of a check in `problems`. A database too damaged to be checked is a problem, not a failure. */
static stet_status collect(stet_db *db, const char *sql, bool foreign_keys, int *count, stet_buf *problems,
                           stet_error *err) {
    enum { PROBLEMS_MAX = 100 };
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(db->handle, sql, -1, &s, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(s);
        if (rc != SQLITE_ROW || *count == PROBLEMS_MAX)
            break;
        const char *text = (const char *)sqlite3_column_text(s, 0);
        text = text ? text : "?";
        if (foreign_keys) {
            const char *parent = (const char *)sqlite3_column_text(s, 2);
            stet_buf_printf(problems, "row %lld of %s refers to a row of %s that does not exist\n",
                            (long long)sqlite3_column_int64(s, 1), text, parent ? parent : "?");
            ++*count;
        } else if (strcmp(text, "ok") != 0) {
            stet_buf_printf(problems, "%s\n", text);
            ++*count;
        }
    }
    sqlite3_finalize(s);
    if (rc == SQLITE_DONE || rc == SQLITE_ROW)
        return STET_OK;
    if (status_of_rc(rc) != STET_CORRUPT)
        return db_fail_rc(db->handle, rc, db->path, "cannot be checked", err);
    if ((*count)++ < PROBLEMS_MAX)
        stet_buf_printf(problems, "%s\n", sqlite3_errstr(rc));
    return STET_OK;
}

stet_status stet_db_check(stet_db *db, stet_buf *problems, stet_error *err) {
    int count = 0;
    stet_status status = collect(db, "PRAGMA integrity_check(100)", false, &count, problems, err);
    if (status == STET_OK)
        status = collect(db, "PRAGMA foreign_key_check", true, &count, problems, err);
    return status;
}

/* For work on the whole file: outside any transaction, with the writer lock held. */
static stet_status begin_upkeep(stet_db *db, stet_error *err) {
    assert(db->state == DB_NONE);
    if (db->read_only)
        return stet_fail(err, STET_IO, "%s: cannot be written: it was opened read-only", db->path);
    db_reset_active(db);
    return db_lock_writer(db, err);
}

stet_status stet_db_checkpoint(stet_db *db, stet_error *err) {
    stet_status status = begin_upkeep(db, err);
    if (status != STET_OK)
        return status;
    /* Do not wait for readers: what they still need stays in the WAL. */
    db->busy_deadline = 1;
    int rc = sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    if ((rc & 0xff) == SQLITE_BUSY)
        rc = sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_BUSY)
        status = db_fail_rc(db->handle, rc, db->path, "cannot checkpoint", err);
    db_unlock_writer(db);
    return status;
}

stet_status stet_db_vacuum(stet_db *db, stet_error *err) {
    stet_status status = begin_upkeep(db, err);
    if (status != STET_OK)
        return status;
    int rc = db_exec_raw(db, "VACUUM");
    if (rc != SQLITE_OK)
        status = db_fail_rc(db->handle, rc, db->path, "cannot vacuum", err);
    db_unlock_writer(db);
    return status;
}

int64_t stet_db_bytes(stet_db *db) {
    stet_stmt *s = stet_db_stmt(db, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size");
    int64_t bytes = stet_step(s) ? stet_column_int(s, 0) : 0;
    stet_reset(s);
    return bytes;
}
