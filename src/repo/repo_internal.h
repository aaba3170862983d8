/* repo_internal.h - what the files of the repository share. Private to src/repo.
 *
 * Functions that write follow this pattern:
 *
 *     bool begun;
 *     stet_status st = stet_repo_enter(r, &begun, err); // begins, unless the caller has
 *     if (st == STET_OK)
 *         st = stet_object_make(r, record, type, STET_OBJECT_KEPT, &id, err);
 *     return stet_repo_leave(r, begun, st, err); // commits or rolls back; in the caller's transaction: sticks
 */
#ifndef STET_EXEC_REPO_INTERNAL_H
#define STET_EXEC_REPO_INTERNAL_H

#include "base/map.h"
#include "base/vec.h"
#include "db/db.h"
#include "repo/repo.h"

/* The state of an object's row. */
typedef enum stet_object_state {
    STET_OBJECT_KEPT = 0,
    /* Needed only by the index: deleted when that is replaced. */
    STET_OBJECT_LOOSE = 1,
    /* `bytes` is a tombstone, made here: the object can't be stored again. */
    STET_OBJECT_EXCISED = 2,
    /* `bytes` is a tombstone from elsewhere: the object itself may still replace it. */
    STET_OBJECT_LOST = 3
} stet_object_state;

struct stet_repo {
    char *path;
    bool read_only, must_exist;
    bool writing;  /* in a transaction that writes */
    bool nothing;  /* a read transaction on a file that does not exist */
    stet_db *db;   /* NULL: the file did not exist so far */
    stet_map seen; /* id to type of objects that are known to be stored; cleared with the transaction */
    int64_t now_s; /* of the transaction */
    stet_record_sink sink;
    stet_record_list names; /* scratch */
    stet_map derived;       /* id to the text of data that builtins made while nothing could be written */
    stet_map borrowed;      /* id to a record of a remote's exec map, while pins travel (travel.h) */
};

extern const stet_db_migration stet_repo_migrations[];
extern const int stet_repo_migration_count;

/* Prepares for reading. `*nothing`: there is no file, so the repository is empty. */
stet_status stet_repo_ready(stet_repo *r, bool *nothing, stet_error *err);
stet_status stet_repo_enter(stet_repo *r, bool *begun, stet_error *err);
stet_status stet_repo_leave(stet_repo *r, bool begun, stet_status st, stet_error *err);

typedef struct stet_object_row {
    int64_t number;
    stet_record_type type;
    stet_object_state state;
    int64_t added_s;
} stet_object_row;
/* The row of an object without its bytes. `*there` false: none. Works within a transaction or outside. */
stet_status stet_object_row_of(stet_repo *r, stet_hash id, bool *there, stet_object_row *out, stet_error *err);
/* Stores checked bytes with the ids they name. Needs a write transaction. */
stet_status stet_object_store(stet_repo *r, stet_hash id, stet_record_type type, stet_object_state state,
                              const char *bytes, size_t len, const stet_record_list *names, stet_error *err);
/* Makes a record of this value in this state. Needs a write transaction. */
stet_status stet_object_make(stet_repo *r, stet_value record, stet_record_type type, stet_object_state state,
                             stet_hash *id, stet_error *err);
/* The same for a datum that a builtin made; if nothing may be written, the handle keeps it in memory. */
stet_status stet_object_derive(stet_repo *r, stet_value record, stet_hash *id, stet_error *err);
/* Deletes the row if it is loose. Needs a write transaction. */
void stet_object_drop_loose(stet_repo *r, stet_hash id);
/* Turns the loose objects of the index into kept ones, because something else names them. Needs a write transaction. */
void stet_object_keep_all(stet_repo *r);
/* Stores a tombstone for an object that was lost elsewhere, if nothing is stored. Needs a write transaction. */
stet_status stet_object_store_lost(stet_repo *r, stet_hash id, stet_record_type type, const char *tombstone, size_t len,
                                   stet_error *err);
/* Is this a datum that names no others? Decided without parsing all of it. */
bool stet_object_is_plain(stet_record_type type, const char *bytes, size_t len);
/* Appends to `out` the ids that an object names, from its bytes alone; false if they are not a record. */
bool stet_object_names(stet_record_type type, stet_object_state state, const char *bytes, size_t len,
                       stet_record_list *out);
/* Fails with the tombstone of an excised row. */
stet_status stet_object_excised(stet_hash id, const char *bytes, size_t len, stet_error *err);

/* Updates the table of pins from one exec map (NULL: empty) to another. Needs a write transaction. */
stet_status stet_pins_follow(stet_repo *r, const stet_hash *from, const stet_hash *to, stet_error *err);

/* An id in a message: complete, or its first 12 digits. */
typedef struct stet_id_text {
    char text[STET_HASH_HEX];
} stet_id_text;
stet_id_text stet_hash_print(stet_hash id);
stet_id_text stet_short(stet_hash id);

/* Binds an id. It is borrowed until the statement is reset. */
void stet_bind_id(stet_stmt *s, int index, const stet_hash *id);
/* False (and zeros) if the column is not an id. */
bool stet_column_id(stet_stmt *s, int column, stet_hash *out);

#endif
