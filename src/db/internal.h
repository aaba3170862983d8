/* internal.h - what the files of src/db share. Not included anywhere else.
 *
 * Invariants of a handle
 *   1. failed.status is set if and only if a failure sticks; then no statement touches SQLite.
 *   2. state WRITE: the writer lock is held, and SQLite is in a transaction unless a failure sticks (SQLite rolls back
 *      by itself on a full disk and the like). state NONE: neither.
 *   3. `active` holds exactly the statements that were stepped to a row and not reset since.
 */
#ifndef STET_DB_INTERNAL_H
#define STET_DB_INTERNAL_H

#include <sqlite3.h>
#include <sys/types.h>

#include "base/map.h"
#include "db/db.h"
#include "os/lock.h"

typedef enum db_state { DB_NONE, DB_READ, DB_WRITE } db_state;

enum { DB_SAVEPOINTS = 32 }; /* maximum nesting */

struct stet_stmt {
    stet_db *db;
    sqlite3_stmt *handle; /* NULL: could not be prepared; every operation is a no-op */
    const char *sql;
    bool row;                  /* is positioned on a row */
    stet_stmt *next, **before; /* in the list of active statements, if `row` */
};

typedef struct db_file db_file;

struct stet_db {
    sqlite3 *handle;
    db_file *file; /* counts this connection (held.c) */
    char *path;
    stet_lock *writer; /* opened at the first write */
    int busy_ms;
    bool read_only, volatile_sync;
    dev_t device; /* of the file, for a connection that is kept */
    ino_t inode;
    db_state state;
    int64_t busy_deadline; /* monotonic microseconds; for the busy handler; 0: starts when first busy */
    stet_error failed;
    struct {
        bool made;          /* SQLite has it */
        bool failed_before; /* a failure already stuck when it began */
    } savepoints[DB_SAVEPOINTS];
    int savepoint_count;
    stet_map statements; /* pointer of the text -> stet_stmt */
    stet_stmt *active;
    stet_stmt broken; /* used in place of a statement that could not be prepared */
    struct {
        bool made; /* SQLite knows the table */
        bool (*next)(void *ctx, stet_row *row);
        void *ctx;
    } given; /* the rows that stet_db_rows is storing */
};

/* Makes SQLite's failure `rc` stick, with what was being done ("commit", or the statement). */
void db_fail_sqlite(stet_db *db, int rc, const char *what);
/* The same into `err`, for a handle that is not open yet or a failure that does not stick. `handle` may be NULL. */
stet_status db_fail_rc(sqlite3 *handle, int rc, const char *path, const char *what, stet_error *err);
void db_reset_active(stet_db *db);
/* The statement of this text (a literal), prepared if it was not yet, even if a failure sticks. Returns SQLite's code.
 */
int db_prepare(stet_db *db, const char *sql, stet_stmt **out);
/* Runs `sql` even if a failure sticks. Returns SQLite's code. */
int db_exec_raw(stet_db *db, const char *sql);
/* Takes the writer lock, waiting at most busy_ms, and starts the clock of the busy handler. */
stet_status db_lock_writer(stet_db *db, stet_error *err);
void db_unlock_writer(stet_db *db);
/* The name of the file layer to open with: NULL (SQLite's own) unless a test has set the hook of os/sys.h. */
const char *db_vfs_name(void);

/* held.c. Called before the first statement of a connection, and after it was closed. NULL: there is no such file. */
db_file *db_file_connected(const char *path);
void db_file_disconnected(db_file *f);

/* sum.c: row_sum and crc32c, for SQL. */
int db_declare_sums(sqlite3 *handle);

#endif
