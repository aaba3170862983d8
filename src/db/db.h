/* db.h - SQLite, wrapped once. No other folder includes sqlite3.h.
 *
 * Calling sequence
 *
 *     stet_db_opts o = {.kind = "space", .migrations = list, .migration_count = n, .busy_ms = 10000};
 *     stet_db *db;
 *     stet_status status = stet_db_open(path, &o, &db, &err);
 *     if (status != STET_OK)
 *         return status;
 *
 *     status = stet_db_begin_write(db, &err); // writer queue lock, then BEGIN IMMEDIATE
 *     stet_stmt *s = stet_db_stmt(db, "INSERT INTO t(a, b) VALUES(?, ?)"); // cached by text pointer
 *     stet_bind_int(s, 1, 5);
 *     stet_bind_text(s, 2, "x", 1);
 *     stet_run(s);                       // steps to the end and resets
 *     status = stet_db_commit(db, &err); // reports the first failure since begin; then everything is rolled back
 *
 *     s = stet_db_stmt(db, "SELECT b FROM t WHERE a = ?");
 *     stet_bind_int(s, 1, 5);
 *     while (stet_step(s)) // false at the end, and on failure
 *         puts(stet_column_text(s, 0, NULL));
 *     status = stet_db_status(db, &err); // was it a failure?
 *     stet_db_close(db);
 *
 * Errors stick: after the first failure every statement of the handle is a no-op (stet_step returns false) until
 * commit, rollback, or stet_db_status (outside a transaction) has reported it. So callers are straight lines. The
 * status tells failures apart: corrupt, newer version, busy, disk full, read-only, I/O. A statement is not re-entered:
 * collect rows, then call out.
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

/* One step of the schema. Steps are applied in order, each in one transaction with the new version number. Migration i
 * takes version i to i+1. */
typedef struct stet_db_migration {
    const char *sql;                                               /* DDL; may be NULL if `apply` is set */
    stet_status (*apply)(stet_db *db, void *ctx, stet_error *err); /* runs after sql; may be NULL */
} stet_db_migration;

typedef struct stet_db_opts {
    const char *kind; /* stored in application_id (its first four bytes); a file of another kind is refused */
    const stet_db_migration *migrations;
    int migration_count;
    void *ctx;      /* for apply */
    int busy_ms;    /* how long to wait for other writers; 0: 10000 */
    bool read_only; /* never creates, migrates or writes */
    bool must_exist;
    bool volatile_sync; /* synchronous=NORMAL: for caches that can be rebuilt */
} stet_db_opts;

/* Creates the file unless must_exist or read_only (then STET_NOT_FOUND), but not its directory. Refused, with nothing
 * changed:
 *
 *   STET_CORRUPT      the file is not a database or was cut
 *   STET_INVALID      the file is of another kind
 *   STET_UNSUPPORTED  the format is newer, or the file lies on a network file system
 *   STET_IO           this user may not write the file
 */
STET_CHECKED stet_status stet_db_open(const char *path, const stet_db_opts *opts, stet_db **out, stet_error *err);
void stet_db_close(stet_db *db); /* NULL is fine; rolls back an open transaction */
/* Copies the file of a database, without its log, byte by byte. Nobody may do that in another way: closing a descriptor
 * of the file drops the locks that SQLite holds on it for this process (held.c). */
STET_CHECKED stet_status stet_db_copy_file(const char *from, const char *to, stet_error *err);
/* Is it the file of a database that this process has open, or SQLite's shared memory of one? Then it must not be opened
 * as a file: closing it drops locks. Any thread. */
struct stat;
bool stet_db_is_open(const struct stat *st);
/* For tests that open the same few files thousands of times, in one thread: what is closed stays connected, and the
 * next open of the same file gets it with its prepared statements, which cost more than a small run does. Off: those
 * that are kept are closed. Before such a file is removed or replaced, those whose paths begin with `prefix` have to be
 * dropped: on closing, SQLite removes the log by its name, whosever it is by then. */
void stet_db_keep_connections(bool on);
void stet_db_drop_connections(const char *prefix);
const char *stet_db_path(const stet_db *db);
bool stet_db_read_only(const stet_db *db);

STET_CHECKED stet_status stet_db_begin_read(stet_db *db, stet_error *err); /* one snapshot until commit or rollback */
STET_CHECKED stet_status stet_db_begin_write(stet_db *db, stet_error *err);
STET_CHECKED stet_status stet_db_commit(stet_db *db, stet_error *err); /* rolls back if anything failed since begin */
/* Sets how long begin_write waits for other writers from now on; returns the old value. */
int stet_db_patience(stet_db *db, int ms);
void stet_db_rollback(stet_db *db);
bool stet_db_in_transaction(const stet_db *db);
/* Begins a nested savepoint that can be undone alone. Undo drops sticky errors raised since the matching begin, except
 * those on which SQLite ends the whole transaction (a full disk). Check with stet_db_status, then release or undo: both
 * end the savepoint. If a release reports a failure, the commit will roll back. */
void stet_db_savepoint(stet_db *db);
STET_CHECKED stet_status stet_db_savepoint_release(stet_db *db, stet_error *err);
void stet_db_savepoint_undo(stet_db *db);

/* Reports the sticky failure, if any; outside a transaction also forgets it. */
STET_CHECKED stet_status stet_db_status(stet_db *db, stet_error *err);
/* Is there a sticky failure? It stays until it is reported. Nothing read since then is reliable, least of all that
 * something is absent. */
bool stet_db_failed(const stet_db *db);
/* Makes a failure stick from outside (a caller found a corrupt blob). */
void stet_db_fail(stet_db *db, stet_status status, const char *format, ...) STET_PRINTF(3, 4);
/* Sets the hint of the sticky failure, if it has none yet. */
void stet_db_hint(stet_db *db, const char *hint);

/* Prepared once and kept, keyed by the pointer `sql` (a literal). Bindings are cleared. */
stet_stmt *stet_db_stmt(stet_db *db, const char *sql);
void stet_bind_int(stet_stmt *s, int index, int64_t v);
void stet_bind_double(stet_stmt *s, int index, double v);
void stet_bind_text(stet_stmt *s, int index, const char *text, size_t len);  /* borrowed until reset */
void stet_bind_blob(stet_stmt *s, int index, const void *bytes, size_t len); /* borrowed until reset */
void stet_bind_null(stet_stmt *s, int index);
/* True: there is a row. At the end or on failure false, and the statement is reset. */
bool stet_step(stet_stmt *s);
void stet_run(stet_stmt *s); /* steps to the end */
void stet_reset(stet_stmt *s);
int64_t stet_column_int(stet_stmt *s, int column);
double stet_column_double(stet_stmt *s, int column);
/* Valid until the next step or reset; "" for NULL. */
const char *stet_column_text(stet_stmt *s, int column, size_t *len);
/* The same; NULL for an empty blob. */
const void *stet_column_blob(stet_stmt *s, int column, size_t *len);
bool stet_column_is_null(stet_stmt *s, int column);
int64_t stet_db_changes(const stet_db *db); /* rows of the last statement */
int64_t stet_db_last_id(const stet_db *db);

/* Stores many rows in one statement. `sql` inserts what it selects from the table `given`, whose columns are a to l:
 *
 *     stet_db_rows(db, "INSERT OR FAIL INTO t(x, y) SELECT a, b FROM given", next_row, &list);
 *
 * `next` fills in the fields of the next row, or returns false if there is none. What a field points to must stay valid
 * until `next` is called again. `next` must not use the database. Rows in the order of the key are fastest. After a
 * failure some of the rows may have been stored; the failure sticks, and the transaction or the savepoint is undone as
 * a whole. (Hence OR FAIL, which spares SQLite a journal of the statement.)
 */
#define STET_ROW_FIELDS 12
typedef enum stet_field_kind { STET_FIELD_NULL, STET_FIELD_INT, STET_FIELD_TEXT, STET_FIELD_BLOB } stet_field_kind;
typedef struct stet_field {
    stet_field_kind kind;
    int64_t number;
    const void *bytes;
    size_t len;
} stet_field;
typedef struct stet_row {
    stet_field at[STET_ROW_FIELDS]; /* NULL at first; later as the row before left them */
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

/* Checksums of rows. A table with checksums has a column `sum`: the CRC-32C over the columns before it, in the order in
 * which the reader selects them, key columns included, each with its type and its length. So a flipped bit, a cut blob,
 * a column of another type and a row that stands in the place of another are all found.
 *
 *   stet_column_sound(s, 0, 3)     after "SELECT key, seq, value, sum FROM ...": checks columns 0 to 2 against column 3
 *   stet_row_sum(out, 3)           sets field 3 to the sum of fields 0 to 2
 *   row_sum(a, ?1)                 the same in SQL, for statements without stet_db_rows: "UPDATE t SET b = ?1, sum =
 *                                  row_sum(a, ?1)"
 *   crc32c(x)                      in SQL: the checksum of the bytes of one blob, NULL for NULL
 *
 * A sum is stored as a signed 32-bit number, which takes at most four bytes.
 */
void stet_row_sum(stet_row *r, int fields);
/* The digest of a set of rows, so that a row that vanishes, or ends up under another key, is noticed. It is the number
 * of rows times 2^32, plus the exclusive or of their sums. In SQL: row_digest(columns...), an aggregate. A removed row
 * is subtracted with the same sum: stet_digest_add(digest, -1, sum). */
int64_t stet_digest_add(int64_t digest, int64_t rows, int64_t sum);
int64_t stet_fields_sum(const stet_field *at, int count);
bool stet_column_sound(stet_stmt *s, int first, int count);

/* Runs unprepared SQL, for DDL and pragmas. Failures stick as usual. */
void stet_db_exec(stet_db *db, const char *sql);
/* One integer of a one-off query; `otherwise` if it has no row. */
int64_t stet_db_int(stet_db *db, const char *sql, int64_t otherwise);

/* Changes whenever another connection has committed (PRAGMA data_version): a cheap way to notice changes. */
int64_t stet_db_data_version(stet_db *db);
/* SQLite's own integrity check plus foreign keys; `problems` gets one line each, at most 100. */
STET_CHECKED stet_status stet_db_check(stet_db *db, stet_buf *problems, stet_error *err);
/* Copies the WAL into the file; truncates the WAL if nobody reads. */
STET_CHECKED stet_status stet_db_checkpoint(stet_db *db, stet_error *err);
STET_CHECKED stet_status stet_db_vacuum(stet_db *db, stet_error *err);
int64_t stet_db_bytes(stet_db *db);       /* page count times page size */
const char *stet_db_sqlite_version(void); /* of the SQLite that is linked */

#endif
