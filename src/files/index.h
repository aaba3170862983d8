/* index.h - the index of followed files as it lies on disk. Private to src/files.
 *
 *     stet_files_index x;
 *     status = stet_files_index_load(dir, uuid, &x, &err);
 *     e = stet_files_index_add(&x, key, len);  e->look = ...; stet_files_index_touch(&x, e);
 *     status = stet_files_index_save(dir, uuid, &x, &reloaded, &err);
 *
 * Two files in one directory. `index`: a header, fixed rows sorted by key, and the bytes of the keys; replaced as a
 * whole. `index.log`: batches of rows that are newer, appended; each names the `index` that it belongs to, so that one
 * left over from before a replacement counts for nothing. A key is 'f' and a path, 'g' and a pattern, or 'e' and a
 * variable. Everything is covered by checksums. Numbers are in this machine's byte order: the index never leaves it.
 *
 * Any number of processes use it. Whoever saves takes the lock, reads what others have appended since, and appends what
 * is new with itself: rows of others are never lost, and a row that two have changed is the one that was saved last,
 * which is as good as any (each is a true look at that file at some time, and `seq` says up to which commit rows were
 * compared with documents).
 *
 * Keys that entries point at stay where they are until the index is released, or until a save or catch-up says that it
 * was `reloaded`. Entries themselves move when something is added. */
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
    bool looked;  /* the look is one: false for what was just added */
    bool doubt;   /* the document may say something else */
    bool gone;    /* no longer followed */
    bool unsaved; /* newer than what is on disk */
    bool placed;  /* listened to, by a process that watches (watch.c) */
} stet_files_entry;

typedef struct stet_files_index {
    STET_VEC(stet_files_entry) at; /* the first `sorted` are in order of keys */
    size_t sorted;
    stet_map added;        /* keys of the others -> position */
    char *text;            /* the file's bytes, which keys point into */
    STET_VEC(char *) keys; /* of those that were added */
    int64_t seq;
    bool dirty;      /* there is something to save */
    uint64_t base;   /* checksum of the `index` that was read; 0: none */
    size_t base_len; /* its bytes */
    size_t log_at;   /* bytes of the log that are in here */
    size_t gone;     /* entries that are */
} stet_files_index;

/* STET_NOT_FOUND, or STET_CORRUPT for one that is damaged or of another space. */
STET_CHECKED stet_status stet_files_index_load(const char *dir, const char *space_uuid, stet_files_index *x,
                                               stet_error *err);
/* Takes in what others have saved since. `reloaded`: keys that were borrowed are void. */
STET_CHECKED stet_status stet_files_index_catch_up(const char *dir, const char *space_uuid, stet_files_index *x,
                                                   bool *reloaded, stet_error *err);
/* Nothing is synced: what a power cut takes costs a second look. */
STET_CHECKED stet_status stet_files_index_save(const char *dir, const char *space_uuid, stet_files_index *x,
                                               bool *reloaded, stet_error *err);
void stet_files_index_release(stet_files_index *x);
/* NULL for what is not followed. */
stet_files_entry *stet_files_index_find(stet_files_index *x, const char *key, size_t len);
/* Found, or added without a look. */
stet_files_entry *stet_files_index_add(stet_files_index *x, const char *key, size_t len);
/* This entry has changed, and is to be saved. */
void stet_files_index_touch(stet_files_index *x, stet_files_entry *e);
/* It is followed no longer. */
void stet_files_index_drop(stet_files_index *x, stet_files_entry *e);
void stet_files_index_sort(stet_files_index *x);

#endif
