/* index.h - the index of followed files as it lies on disk. Private to src/files.
 *
 * One file: a header, fixed rows sorted by key, and the bytes of the keys. A key is 'f' and a path, or 'g' and a
 * pattern. Read whole, checked by a checksum, used as it is. Numbers are in this machine's byte order: the index never
 * leaves it. */
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
    bool looked; /* the look is one: false for what was just added */
    bool doubt;  /* the document may say something else */
} stet_files_entry;

typedef struct stet_files_index {
    STET_VEC(stet_files_entry) at; /* the first `sorted` are in order of keys */
    size_t sorted;
    stet_map added;        /* keys of the others -> position */
    char *text;            /* the file's bytes, which keys point into */
    STET_VEC(char *) keys; /* of those that were added */
    int64_t seq;
    bool dirty;
} stet_files_index;

/* STET_NOT_FOUND, or STET_CORRUPT for one that is damaged or of another space. */
STET_CHECKED stet_status stet_files_index_load(const char *path, const char *space_uuid, stet_files_index *x,
                                               stet_error *err);
STET_CHECKED stet_status stet_files_index_store(const char *path, const char *space_uuid, stet_files_index *x,
                                                stet_error *err);
void stet_files_index_release(stet_files_index *x);
stet_files_entry *stet_files_index_find(stet_files_index *x, const char *key, size_t len);
/* Found, or added without a look. */
stet_files_entry *stet_files_index_add(stet_files_index *x, const char *key, size_t len);
void stet_files_index_sort(stet_files_index *x);

#endif
