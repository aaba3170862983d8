/* stmt.c - cached statements: binding, stepping, columns. Part of db.h. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "db/internal.h"
#include "os/sys.h"

enum { STATEMENTS_MAX = 4096 }; /* texts are literals; if there are more, some code builds them */

static void set_row(stet_stmt *s, bool row) {
    if (row == s->row)
        return;
    s->row = row;
    if (row) {
        s->next = s->db->active;
        s->before = &s->db->active;
        if (s->next)
            s->next->before = &s->next;
        s->db->active = s;
    } else {
        *s->before = s->next;
        if (s->next)
            s->next->before = s->before;
    }
}

/* sqlite3_reset returns the code of the last step, which was handled there. */
static void reset(stet_stmt *s) {
    set_row(s, false);
    if (s->handle)
        sqlite3_reset(s->handle);
}

void db_reset_active(stet_db *db) {
    while (db->active)
        reset(db->active);
}

int db_prepare(stet_db *db, const char *sql, stet_stmt **out) {
    stet_slot *slot = stet_map_get(&db->statements, &sql, sizeof sql);
    if (slot) {
        *out = slot->p;
        return SQLITE_OK;
    }
    sqlite3_stmt *handle = NULL;
    const char *tail = "";
    int rc = sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &handle, &tail);
    if (rc != SQLITE_OK)
        return rc;
    assert(handle && tail[strspn(tail, " \t\n;")] == 0); /* exactly one statement */
    assert(stet_map_len(&db->statements) < STATEMENTS_MAX);
    stet_stmt *s = stet_alloc_zero(sizeof *s);
    *s = (stet_stmt){.db = db, .handle = handle, .sql = sql};
    stet_map_put(&db->statements, &sql, sizeof sql, (stet_slot){.p = s});
    *out = s;
    return SQLITE_OK;
}

stet_stmt *stet_db_stmt(stet_db *db, const char *sql) {
    stet_slot *slot = stet_map_get(&db->statements, &sql, sizeof sql);
    if (slot) {
        stet_stmt *s = slot->p;
        reset(s);
        sqlite3_clear_bindings(s->handle);
        return s;
    }
    db->broken = (stet_stmt){.db = db, .sql = sql};
    if (db->failed.status != STET_OK)
        return &db->broken;
    stet_stmt *s;
    int rc = db_prepare(db, sql, &s);
    if (rc == SQLITE_OK)
        return s;
    /* All statements are stet's own: if a table or column is missing, the file is not as stet made it. */
    const char *message = sqlite3_errmsg(db->handle);
    if (rc == SQLITE_ERROR && strncmp(message, "no such ", 8) == 0) {
        stet_db_fail(db, STET_CORRUPT, "%s: its tables are damaged: %s", db->path, message);
        stet_db_hint(db, "run `stet check`, or restore the file from a backup");
    } else {
        db_fail_sqlite(db, rc, sql);
    }
    return &db->broken;
}

static void bound(stet_stmt *s, int rc) {
    if (rc != SQLITE_OK)
        db_fail_sqlite(s->db, rc, s->sql);
}

void stet_bind_int(stet_stmt *s, int index, int64_t v) {
    if (s->handle)
        bound(s, sqlite3_bind_int64(s->handle, index, v));
}

void stet_bind_double(stet_stmt *s, int index, double v) {
    if (s->handle)
        bound(s, sqlite3_bind_double(s->handle, index, v));
}

void stet_bind_text(stet_stmt *s, int index, const char *text, size_t len) {
    if (s->handle)
        bound(s, sqlite3_bind_text64(s->handle, index, len ? text : "", len, SQLITE_STATIC, SQLITE_UTF8));
}

void stet_bind_blob(stet_stmt *s, int index, const void *bytes, size_t len) {
    if (s->handle)
        bound(s, len ? sqlite3_bind_blob64(s->handle, index, bytes, len, SQLITE_STATIC)
                     : sqlite3_bind_zeroblob(s->handle, index, 0));
}

void stet_bind_null(stet_stmt *s, int index) {
    if (s->handle)
        bound(s, sqlite3_bind_null(s->handle, index));
}

bool stet_step(stet_stmt *s) {
    stet_db *db = s->db;
    if (!s->handle || db->failed.status != STET_OK) {
        reset(s);
        return false;
    }
    int error_number = EIO;
    if (stet_sys_hook && !s->row && stet_sys_ask(STET_SYS_SQL, db->path, &error_number) == STET_SYS_FAIL) {
        stet_fail_errno(&db->failed, error_number, "%s: %.200s", db->path, s->sql);
        reset(s);
        return false;
    }
    int rc = sqlite3_step(s->handle);
    if (rc == SQLITE_ROW) {
        set_row(s, true);
        return true;
    }
    if (rc != SQLITE_DONE)
        db_fail_sqlite(db, rc, s->sql);
    reset(s);
    return false;
}

void stet_run(stet_stmt *s) {
    while (stet_step(s))
        ;
}

void stet_reset(stet_stmt *s) {
    reset(s);
}

int64_t stet_column_int(stet_stmt *s, int column) {
    return s->row ? sqlite3_column_int64(s->handle, column) : 0;
}

double stet_column_double(stet_stmt *s, int column) {
    return s->row ? sqlite3_column_double(s->handle, column) : 0;
}

const char *stet_column_text(stet_stmt *s, int column, size_t *len) {
    const char *text = s->row ? (const char *)sqlite3_column_text(s->handle, column) : NULL;
    if (len)
        *len = text ? (size_t)sqlite3_column_bytes(s->handle, column) : 0;
    return text ? text : "";
}

const void *stet_column_blob(stet_stmt *s, int column, size_t *len) {
    const void *bytes = s->row ? sqlite3_column_blob(s->handle, column) : NULL;
    if (len)
        *len = bytes ? (size_t)sqlite3_column_bytes(s->handle, column) : 0;
    return bytes;
}

bool stet_column_is_null(stet_stmt *s, int column) {
    return !s->row || sqlite3_column_type(s->handle, column) == SQLITE_NULL;
}

int64_t stet_db_changes(const stet_db *db) {
    return sqlite3_changes64(db->handle);
}

int64_t stet_db_last_id(const stet_db *db) {
    return sqlite3_last_insert_rowid(db->handle);
}
