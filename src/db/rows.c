/* rows.c - many rows in one statement: the virtual table `given`. Part of db.h.
 *
 * The rows of the table come from a function of the caller. This saves, for each row, binding values, entering and
 * leaving SQLite, opening a cursor and walking down from the root. If the rows come in the order of the key, the cursor
 * stays where the next row goes.
 */

#include <assert.h>
#include <stdlib.h>

#include "db/internal.h"

typedef struct rows_table {
    sqlite3_vtab base;
    stet_db *db;
} rows_table;

typedef struct rows_cursor {
    sqlite3_vtab_cursor base;
    stet_db *db;
    stet_row row;
    sqlite3_int64 number;
    bool end;
} rows_cursor;

/* Running out of memory aborts, as everywhere here, so that SQLite is never told about it. */
static int rows_connect(sqlite3 *handle, void *db, int argc, const char *const *argv, sqlite3_vtab **out, char **err) {
    (void)argc, (void)argv, (void)err;
    static_assert(STET_ROW_FIELDS == 12, "the columns below");
    int rc = sqlite3_declare_vtab(handle, "CREATE TABLE x(a, b, c, d, e, f, g, h, i, j, k, l)");
    if (rc != SQLITE_OK)
        return rc;
    rows_table *t = stet_alloc_zero(sizeof *t);
    t->db = db;
    *out = &t->base;
    return SQLITE_OK;
}

static int rows_disconnect(sqlite3_vtab *t) {
    free(t);
    return SQLITE_OK;
}

static int rows_plan(sqlite3_vtab *t, sqlite3_index_info *info) {
    (void)t;
    info->estimatedCost = 1;
    return SQLITE_OK;
}

static int rows_open(sqlite3_vtab *t, sqlite3_vtab_cursor **out) {
    rows_cursor *c = stet_alloc_zero(sizeof *c);
    c->db = ((rows_table *)t)->db;
    *out = &c->base;
    return SQLITE_OK;
}

static int rows_close(sqlite3_vtab_cursor *c) {
    free(c);
    return SQLITE_OK;
}

static int rows_next(sqlite3_vtab_cursor *cursor) {
    rows_cursor *c = (rows_cursor *)cursor;
    c->end = !c->db->given.next || !c->db->given.next(c->db->given.ctx, &c->row);
    c->number++;
    return SQLITE_OK;
}

static int rows_first(sqlite3_vtab_cursor *cursor, int plan, const char *name, int argc, sqlite3_value **argv) {
    (void)plan, (void)name, (void)argc, (void)argv;
    return rows_next(cursor);
}

static int rows_eof(sqlite3_vtab_cursor *c) {
    return ((rows_cursor *)c)->end;
}

static int rows_column(sqlite3_vtab_cursor *c, sqlite3_context *out, int column) {
    const stet_field *f = &((rows_cursor *)c)->row.at[column];
    switch (f->kind) {
    case STET_FIELD_NULL:
        break;
    case STET_FIELD_INT:
        sqlite3_result_int64(out, f->number);
        break;
    case STET_FIELD_TEXT:
        sqlite3_result_text64(out, f->len ? f->bytes : "", f->len, SQLITE_STATIC, SQLITE_UTF8);
        break;
    case STET_FIELD_BLOB:
        if (f->len)
            sqlite3_result_blob64(out, f->bytes, f->len, SQLITE_STATIC);
        else
            sqlite3_result_zeroblob(out, 0);
        break;
    }
    return SQLITE_OK;
}

static int rows_number(sqlite3_vtab_cursor *c, sqlite3_int64 *out) {
    *out = ((rows_cursor *)c)->number;
    return SQLITE_OK;
}

/* no xCreate: the table exists without being created */
static const sqlite3_module rows_module = {.xConnect = rows_connect,
                                           .xBestIndex = rows_plan,
                                           .xDisconnect = rows_disconnect,
                                           .xOpen = rows_open,
                                           .xClose = rows_close,
                                           .xFilter = rows_first,
                                           .xNext = rows_next,
                                           .xEof = rows_eof,
                                           .xColumn = rows_column,
                                           .xRowid = rows_number};

void stet_db_rows(stet_db *db, const char *sql, bool (*next)(void *ctx, stet_row *row), void *ctx) {
    assert(!db->given.next); /* one at a time */
    if (db->failed.status != STET_OK)
        return;
    if (!db->given.made) {
        int rc = sqlite3_create_module_v2(db->handle, "given", &rows_module, db, NULL);
        if (rc != SQLITE_OK) {
            db_fail_sqlite(db, rc, "cannot declare a table of given rows");
            return;
        }
        db->given.made = true;
    }
    stet_stmt *s = stet_db_stmt(db, sql);
    db->given.next = next;
    db->given.ctx = ctx;
    stet_run(s);
    db->given.next = NULL;
}
