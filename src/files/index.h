/* index.h - the index of followed files on disk. Private to src/files.
 *
 *     stet_files_index x;
 *     stet_status status = stet_files_index_load(dir, uuid, &x, &err);
 *     if (status != STET_OK)
 *         return status;
 *     stet_files_entry *e = stet_files_index_add(&x, key, len);
 *     e->look = look;
 *     stet_files_index_touch(&x, e);
 *     status = stet_files_index_save(dir, uuid, &x, &reloaded, &err);
 *     stet_files_index_release(&x);
 *
 * There are two files in one directory:
 *   index        a header, fixed rows sorted by key, and the bytes of the keys; replaced as a whole
 *   index.log    batches of newer rows, appended; each names the `index` that it belongs to, so that one left over from
 *                before a replacement is ignored
 * A key is 'f' and a path, 'g' and a pattern, or 'e' and a variable. Everything is covered by checksums. Numbers are in
 * this machine's byte order: the index never leaves it.
 *
 * Any number of processes use the index. A process that saves takes the lock, reads what others have appended, and
 * appends its own changes. So rows of others are never lost. If two processes changed a row, the one saved last stays.
 * Either is right: each is a true look at that file at some time, and `seq` says up to which commit rows were compared
 * with documents.
 *
 * Keys that entries point to stay in place until the index is released, or until a save or catch-up reports that it was
 * `reloaded`. Entries themselves move when something is added.
 */
#ifndef STET_FILES_INDEX_H
#define STET_FILES_INDEX_H

#include "base/map.h"
#include "base/vec.h"
#include "files/look.h"

typedef struct stet_index_row {
    stet_look look;
    uint32_t key_at, key_len; /* in the bytes after the rows; a NUL follows each */
} stet_index_row;

typedef struct stet_files_entry {
    stet_look look;
    const char *key;
    uint32_t key_len;
    bool looked;  /* the look is valid; false for a new entry */
    bool doubt;   /* the document may differ */
    bool gone;    /* no longer followed */
    bool unsaved; /* newer than what is on disk */
    bool noted;   /* a command of this process wrote it, and that may not be committed yet */
    bool placed;  /* watched, in a process that watches (watch.c) */
} stet_files_entry;

typedef struct stet_files_index {
    STET_VEC(stet_files_entry) at; /* the first `sorted` are in order of keys */
    size_t sorted;
    stet_map added;        /* keys of the others -> position */
    char *text;            /* the file's bytes, which keys point into */
    STET_VEC(char *) keys; /* of added entries */
    int64_t seq;
    bool dirty;      /* has unsaved changes */
    uint64_t base;   /* checksum of the `index` that was read; 0: none */
    size_t base_len; /* its bytes */
    size_t log_at;   /* bytes of the log that were read */
    size_t gone;     /* number of entries that are gone */
} stet_files_index;

/* STET_NOT_FOUND: no index. STET_CORRUPT: it is damaged or belongs to another space. */
STET_CHECKED stet_status stet_files_index_load(const char *dir, const char *space_uuid, stet_files_index *x,
                                               stet_error *err);
/* Reads what others have saved since. `reloaded`: borrowed keys are invalid. */
STET_CHECKED stet_status stet_files_index_catch_up(const char *dir, const char *space_uuid, stet_files_index *x,
                                                   bool *reloaded, stet_error *err);
/* Saves without syncing: what a power cut loses costs a second look. */
STET_CHECKED stet_status stet_files_index_save(const char *dir, const char *space_uuid, stet_files_index *x,
                                               bool *reloaded, stet_error *err);
void stet_files_index_release(stet_files_index *x);
/* NULL: not followed. */
stet_files_entry *stet_files_index_find(stet_files_index *x, const char *key, size_t len);
/* Finds an entry, or adds it without a look. */
stet_files_entry *stet_files_index_add(stet_files_index *x, const char *key, size_t len);
/* Marks an entry as changed, to be saved. */
void stet_files_index_touch(stet_files_index *x, stet_files_entry *e);
/* Stops following an entry. */
void stet_files_index_drop(stet_files_index *x, stet_files_entry *e);
void stet_files_index_sort(stet_files_index *x);

#endif
