/* path.h - paths inside a document, in one encoded form that is compared, stored and indexed.
 *
 * A path is a list of keys (array indices are decimal strings). The root is the empty path. Encoded, each key is its
 * UTF-8 bytes followed by 0x00, with 0x00 inside a key written 01 01 and 0x01 written 01 02. Therefore, in memcmp
 * order:
 *
 *   P1. the encoding is injective, and preserves the order key by key;
 *   P2. A is a prefix of B (as lists) exactly if enc(A) is a byte prefix of enc(B);
 *   P3. A and its descendants are the contiguous range [enc(A), enc(A) + 0xFF). (No encoded byte is 0xFF: keys are
 *       UTF-8.)
 *
 *     stet_path p = STET_PATH_INIT;
 *     stet_path_push(&p, "rows");
 *     stet_path_push_index(&p, 3);
 *     stet_path_pop(&p);
 *     stet_path_release(&p);
 */
#ifndef STET_BASE_PATH_H
#define STET_BASE_PATH_H

#include "base/buf.h"

#define STET_PATH_MAX_BYTES 65536
#define STET_PATH_MAX_KEYS  512

/* A borrowed encoded path. */
typedef struct stet_pathref {
    const char *bytes;
    size_t len;
} stet_pathref;

/* An owned path that grows. */
typedef struct stet_path {
    stet_buf buf;
} stet_path;

#define STET_PATH_INIT                                                                                                 \
    { STET_BUF(STET_PATH_MAX_BYTES) }
#define STET_PATH_ROOT ((stet_pathref){"", 0})

stet_pathref stet_path_ref(const stet_path *p);
void stet_path_push_n(stet_path *p, const char *key, size_t len);
void stet_path_push(stet_path *p, const char *key);
void stet_path_push_index(stet_path *p, size_t index);
void stet_path_pop(stet_path *p); /* the last key; nothing at the root */
void stet_path_set(stet_path *p, stet_pathref to);
void stet_path_release(stet_path *p);

/* Walks the keys; `cursor` starts at 0. `*key` points into the path, or into `scratch` if the key contained an escape.
 */
bool stet_path_next(stet_pathref p, size_t *cursor, stet_buf *scratch, const char **key, size_t *key_len);
size_t stet_path_depth(stet_pathref p);
bool stet_path_is_prefix(stet_pathref prefix, stet_pathref of);
/* Is `child` exactly one key longer than `parent`, and below it? */
bool stet_path_is_child(stet_pathref parent, stet_pathref child);
int stet_path_compare(stet_pathref a, stet_pathref b);
stet_pathref stet_path_parent(stet_pathref p); /* of the root: the root */
stet_pathref stet_path_common(stet_pathref a, stet_pathref b);
/* Do these bytes decode? For bytes that come from disk. */
bool stet_path_valid(stet_pathref p);

/* JSON Pointer ("" is the root, "/a/0"; ~0 ~1 escapes) and arrays of strings, both ways. */
STET_CHECKED stet_status stet_path_of_pointer(stet_path *out, const char *pointer, size_t len, stet_error *err);
void stet_path_print(stet_pathref p, stet_buf *out);
STET_CHECKED stet_status stet_path_of_value(stet_path *out, stet_value keys, stet_error *err);
stet_value stet_path_to_value(stet_pathref p);

/* The value at a path inside `root`, borrowed; false if there is none. An array index is canonical decimal ("0", "12";
 * not "01"). */
bool stet_path_lookup(stet_value root, stet_pathref p, stet_value *out);
/* Is this key a canonical array index? */
bool stet_path_index(const char *key, size_t len, size_t *index);

#endif
