/* repo_internal.h - what the files of the repository share. Private to src/exec.
 *
 * Writing functions are written like this:
 *
 *     bool begun;
 *     stet_status st = stet_repo_enter(r, &begun, err);      // begins, unless the caller has
 *     if (st == STET_OK)
 *         st = ...;
 *     return stet_repo_leave(r, begun, st, err);             // commits or undoes; in the caller's transaction: sticks
 */
#ifndef STET_EXEC_REPO_INTERNAL_H
#define STET_EXEC_REPO_INTERNAL_H

#include "base/map.h"
#include "base/vec.h"
#include "db/db.h"
#include "exec/repo.h"

/* What the row of an object is. */
typedef enum stet_object_state {
    STET_OBJECT_KEPT = 0,
    STET_OBJECT_LOOSE = 1,   /* only one ref, or the exec map of the index, needs it: it goes when that is replaced */
    STET_OBJECT_EXCISED = 2, /* `bytes` is a tombstone, made here: what was there does not come back */
    STET_OBJECT_LOST = 3     /* `bytes` is a tombstone, got from elsewhere: the object itself may still replace it */
} stet_object_state;

struct stet_repo {
    char *path;
    bool read_only, must_exist;
    bool writing;  /* in a transaction that writes */
    bool nothing;  /* a read transaction on a file that is not there */
    stet_db *db;   /* NULL: the file has not been there yet */
    stet_map seen; /* id to type of objects known to be stored; emptied with the transaction */
    int64_t now_s; /* of the transaction */
    stet_record_sink sink;
    stet_record_list names; /* scratch */
    stet_map derived;       /* id to the text of data that builtins made while nothing may be written */
};

extern const stet_db_migration stet_repo_migrations[];
extern const int stet_repo_migration_count;

/* Ready to read. `*nothing`: there is no file, so there is nothing in it. */
stet_status stet_repo_ready(stet_repo *r, bool *nothing, stet_error *err);
stet_status stet_repo_enter(stet_repo *r, bool *begun, stet_error *err);
stet_status stet_repo_leave(stet_repo *r, bool begun, stet_status st, stet_error *err);

typedef struct stet_object_row {
    int64_t number;
    stet_record_type type;
    stet_object_state state;
    int64_t added_s;
} stet_object_row;
/* The row of an object without its bytes. `*there` false: none. Within a transaction, or one look. */
stet_status stet_object_row_of(stet_repo *r, stet_hash id, bool *there, stet_object_row *out, stet_error *err);
/* Stores checked bytes with what they name. In a write transaction. */
stet_status stet_object_store(stet_repo *r, stet_hash id, stet_record_type type, stet_object_state state,
                              const char *bytes, size_t len, const stet_record_list *names, stet_error *err);
/* A record of this value, in this state. In a write transaction. */
stet_status stet_object_make(stet_repo *r, stet_value record, stet_record_type type, stet_object_state state,
                             stet_hash *id, stet_error *err);
/* The same for a datum that a builtin made: where nothing may be written it is kept by the handle alone. */
stet_status stet_object_derive(stet_repo *r, stet_value record, stet_hash *id, stet_error *err);
/* Deletes the row if it is loose. In a write transaction. */
void stet_object_drop_loose(stet_repo *r, stet_hash id);
/* Nothing of the index belongs to it alone any more: somebody else names it. In a write transaction. */
void stet_object_keep_all(stet_repo *r);
/* Puts a tombstone where an object got lost elsewhere, if nothing is there. In a write transaction. */
stet_status stet_object_store_lost(stet_repo *r, stet_hash id, stet_record_type type, const char *tombstone, size_t len,
                                   stet_error *err);
/* A datum that stands for itself, seen without reading all of it. */
bool stet_object_is_plain(stet_record_type type, const char *bytes, size_t len);
/* What an object names, from its bytes alone; false if they are none of a record. Added to `out`. */
bool stet_object_names(stet_record_type type, stet_object_state state, const char *bytes, size_t len,
                       stet_record_list *out);
/* The tombstone in an excised row, as a failure. */
stet_status stet_object_excised(stet_hash id, const char *bytes, size_t len, stet_error *err);

/* Makes the table of pins that of another exec map: `from` (NULL: empty) is the one it is of now. In a write
 * transaction. */
stet_status stet_pins_follow(stet_repo *r, const stet_hash *from, const stet_hash *to, stet_error *err);

/* An id in a message, whole or its first 12 digits. */
typedef struct stet_id_text {
    char text[STET_HASH_HEX];
} stet_id_text;
stet_id_text stet_hash_print(stet_hash id);
stet_id_text stet_short(stet_hash id);

/* Binds an id. It is borrowed until the statement is reset. */
void stet_bind_id(stet_stmt *s, int index, const stet_hash *id);
/* False (and zeros) for a column that is none. */
bool stet_column_id(stet_stmt *s, int column, stet_hash *out);

#endif
