/* db.h - SQLite, wrapped once. No other folder includes sqlite3.h.
 *
 * Calling sequence
 *
 *     stet_db_opts o = {.kind = "space", .migrations = list, .migration_count = n, .busy_ms = 10000};
 *     status = stet_db_open(path, &o, &db, &err);
 *
 *     status = stet_db_begin_write(db, &err);                 // writer queue lock, then BEGIN IMMEDIATE
 *     stet_stmt *s = stet_db_stmt(db, "INSERT INTO t(a, b) VALUES(?, ?)");   // cached by text pointer
 *     stet_bind_int(s, 1, 5); stet_bind_text(s, 2, "x", 1);
 *     stet_run(s);                                            // steps to the end and resets
 *     status = stet_db_commit(db, &err);                      // the first failure since begin surfaces here, and all
 * is rolled back
 *
 *     s = stet_db_stmt(db, "SELECT b FROM t WHERE a = ?");
 *     stet_bind_int(s, 1, 5);
 *     while (stet_step(s)) use(stet_column_text(s, 0, &len)); // false at the end, and on failure
 *     status = stet_db_status(db, &err);                      // was it a failure?
 *
 * Errors stick: after the first failure every statement of the handle is a no-op (stet_step returns false) until
 * commit, rollback, or stet_db_status (outside a transaction) has reported it. So callers are straight lines. Failures
 * are told apart: corrupt, newer version, busy, disk full, read-only, i/o. A statement is not re-entered: collect rows,
 * then call out.
 *
 * Durability: WAL, synchronous=FULL, the WAL bounded by checkpoints (journal_size_limit); a file on a network file
 * system is refused. Writers of one file queue on a byte-range lock beside it (`<path>.writer`) before BEGIN IMMEDIATE,
 * because SQLite's own busy handler starves.
 *
 * Faults: file operations of SQLite go through the hook of os/sys.h, and each first step of a statement asks it as
 * STET_SYS_SQL.
 */
#ifndef STET_DB_DB_H
#define STET_DB_DB_H

#include "base/buf.h"

typedef struct stet_db stet_db;
typedef struct stet_stmt stet_stmt;

/* One numbered step of the schema: applied in order, in one transaction with the version's increase. Migration i takes
 * version i to i+1. */
typedef struct stet_db_migration {
    const char *sql;                                               /* DDL; may be NULL if `apply` is set */
    stet_status (*apply)(stet_db *db, void *ctx, stet_error *err); /* runs after sql; may be NULL */
} stet_db_migration;

typedef struct stet_db_opts {
    const char *kind; /* kept in application_id (its first four bytes): another kind's file is refused */
    const stet_db_migration *migrations;
    int migration_count;
    void *ctx;      /* for apply */
    int busy_ms;    /* how long to wait for other writers; 0: 10000 */
    bool read_only; /* never creates, migrates or writes */
    bool must_exist;
    bool volatile_sync; /* synchronous=NORMAL: for caches that can be rebuilt */
} stet_db_opts;

/* Creates the file unless must_exist or read_only (then STET_NOT_FOUND), but not its directory. Refused, with nothing
 * changed: a file that is no database or was cut (STET_CORRUPT), one of another kind (STET_INVALID), a newer format or
 * a network file system (STET_UNSUPPORTED), what this user may not write (STET_IO). */
STET_CHECKED stet_status stet_db_open(const char *path, const stet_db_opts *opts, stet_db **out, stet_error *err);
void stet_db_close(stet_db *db); /* NULL is fine; rolls back an open transaction */
const char *stet_db_path(const stet_db *db);
bool stet_db_read_only(const stet_db *db);

STET_CHECKED stet_status stet_db_begin_read(stet_db *db, stet_error *err); /* one snapshot until commit or rollback */
STET_CHECKED stet_status stet_db_begin_write(stet_db *db, stet_error *err);
STET_CHECKED stet_status stet_db_commit(stet_db *db, stet_error *err); /* rolls back if anything failed since begin */
/* How long begin_write waits for other writers from now on; returns what it was. */
int stet_db_patience(stet_db *db, int ms);
void stet_db_rollback(stet_db *db);
bool stet_db_in_transaction(const stet_db *db);
/* Nested: a savepoint that can be undone alone. Sticky errors raised since the matching begin are dropped by undo, but
 * for those on which SQLite ends the whole transaction (a full disk). Look with stet_db_status, then release or undo:
 * both end the savepoint, and a release that reports a failure leaves it to the commit, which will roll back. */
void stet_db_savepoint(stet_db *db);
STET_CHECKED stet_status stet_db_savepoint_release(stet_db *db, stet_error *err);
void stet_db_savepoint_undo(stet_db *db);

/* The sticky failure, if any, and (outside a transaction) forgets it. */
STET_CHECKED stet_status stet_db_status(stet_db *db, stet_error *err);
/* Makes a failure stick from outside (a corrupt blob found by a caller). */
void stet_db_fail(stet_db *db, stet_status status, const char *format, ...) STET_PRINTF(3, 4);

/* Prepared once and kept, keyed by the pointer of `sql` (a literal). Bindings are cleared. */
stet_stmt *stet_db_stmt(stet_db *db, const char *sql);
void stet_bind_int(stet_stmt *s, int index, int64_t v);
void stet_bind_double(stet_stmt *s, int index, double v);
void stet_bind_text(stet_stmt *s, int index, const char *text, size_t len);  /* borrowed until reset */
void stet_bind_blob(stet_stmt *s, int index, const void *bytes, size_t len); /* borrowed until reset */
void stet_bind_null(stet_stmt *s, int index);
bool stet_step(stet_stmt *s); /* a row is there; at the end or on failure false, and the statement is reset */
void stet_run(stet_stmt *s);  /* steps to the end */
void stet_reset(stet_stmt *s);
int64_t stet_column_int(stet_stmt *s, int column);
double stet_column_double(stet_stmt *s, int column);
const char *stet_column_text(stet_stmt *s, int column,
                             size_t *len); /* valid until the next step or reset; "" for NULL */
const void *stet_column_blob(stet_stmt *s, int column, size_t *len); /* the same; NULL for an empty one */
bool stet_column_is_null(stet_stmt *s, int column);
int64_t stet_db_changes(const stet_db *db); /* rows of the last statement */
int64_t stet_db_last_id(const stet_db *db);

/* Many rows in one statement. `sql` inserts what it selects from the table `given`, whose columns are a to l:
 *
 *     stet_db_rows(db, "INSERT OR FAIL INTO t(x, y) SELECT a, b FROM given", next_row, &list);
 *
 * `next` fills in the fields of the next row, false: there is none. What a field points to stays until `next` is called
 * again. It must not use the database. Quickest in the order of the key. After a failure some of the rows may be there:
 * it sticks, and the transaction or the savepoint is undone as a whole (so OR FAIL, which spares SQLite a journal of
 * the statement). */
#define STET_ROW_FIELDS 12
typedef enum stet_field_kind { STET_FIELD_NULL, STET_FIELD_INT, STET_FIELD_TEXT, STET_FIELD_BLOB } stet_field_kind;
typedef struct stet_field {
    stet_field_kind kind;
    int64_t number;
    const void *bytes;
    size_t len;
} stet_field;
typedef struct stet_row {
    stet_field at[STET_ROW_FIELDS]; /* NULL at first; then as the row before left them */
} stet_row;
static inline void stet_row_int(stet_row *r, int field, int64_t v) {
    r->at[field].kind = STET_FIELD_INT;
    r->at[field].number = v;
}
static inline void stet_row_text(stet_row *r, int field, const char *text, size_t len) {
    r->at[field] = (stet_field){STET_FIELD_TEXT, 0, text, len};
}
static inline void stet_row_blob(stet_row *r, int field, const void *bytes, size_t len) {
    r->at[field] = (stet_field){STET_FIELD_BLOB, 0, bytes, len};
}
static inline void stet_row_null(stet_row *r, int field) {
    r->at[field].kind = STET_FIELD_NULL;
}
void stet_db_rows(stet_db *db, const char *sql, bool (*next)(void *ctx, stet_row *row), void *ctx);

/* Unprepared, for DDL and pragmas. Sticks like the rest. */
void stet_db_exec(stet_db *db, const char *sql);
/* One integer of a one-off query, `otherwise` if it has no row. */
int64_t stet_db_int(stet_db *db, const char *sql, int64_t otherwise);

/* Changes whenever another connection committed (PRAGMA data_version): one cheap look to know whether there is news. */
int64_t stet_db_data_version(stet_db *db);
/* Integrity: SQLite's own check plus foreign keys; `problems` gets one line each, at most 100. */
STET_CHECKED stet_status stet_db_check(stet_db *db, stet_buf *problems, stet_error *err);
STET_CHECKED stet_status stet_db_checkpoint(stet_db *db,
                                            stet_error *err); /* WAL into the file, truncated if nobody reads */
STET_CHECKED stet_status stet_db_vacuum(stet_db *db, stet_error *err);
int64_t stet_db_bytes(stet_db *db);       /* page count times page size */
const char *stet_db_sqlite_version(void); /* of the SQLite that is linked */

#endif
