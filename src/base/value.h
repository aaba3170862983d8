/* value.h - the bits of a stet_value, for value.c and the readers and printers that build values in bulk. Everybody
 * else uses stet.h.
 *
 * A value is 16 bytes. The last byte holds the tag in its low four bits.
 *
 *   null, bool, int, double   the payload is bits[0]
 *   short string              up to 14 bytes from byte 0 on, zeros after them up to byte 14, and the length in the high
 * four bits of byte 15 long string, array,       bits[0] points at a block with a reference count; NULL for an empty
 * array or object object
 *
 * Therefore
 *   V1. a string of up to 14 bytes is always short, a longer one always long: one representation per string;
 *   V2. two short strings order as their two words do when read with the first byte as the highest (zeros pad, and the
 *       length decides last, so "a" < "a\0");
 *   V3. an empty array or object has no block;
 *   V4. a double that is integral with a magnitude up to 2^53 is never kept as a double: it is that integer;
 *   V5. the members of an object are sorted by the bytes of their keys, no key twice;
 *   V6. a block with a count above one is never changed.
 */
#ifndef STET_BASE_VALUE_H
#define STET_BASE_VALUE_H

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/pool.h"

enum stet_tag {
    STET_TAG_NULL,
    STET_TAG_BOOL,
    STET_TAG_INT,
    STET_TAG_DOUBLE,
    STET_TAG_SHORT,
    STET_TAG_LONG,
    STET_TAG_ARRAY,
    STET_TAG_OBJECT
};

#define STET_SHORT_MAX 14

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define STET_META_SHIFT       56
#define STET_BIG_ENDIAN(word) __builtin_bswap64(word)
#else
#define STET_META_SHIFT       0
#define STET_BIG_ENDIAN(word) (word)
#endif

/* What all three kinds of block begin with. While a block waits to be freed, `next` links it to the others that do:
 * freeing deep values needs no stack. */
typedef struct stet_block {
    _Atomic uint32_t refs;
    uint32_t len; /* bytes, elements or members */
    union {
        struct {
            uint32_t cap;  /* elements or members */
            uint32_t home; /* where it lies in its chunk (base/pool.h); 0: it was allocated by itself */
        };
        struct stet_block *next; /* then `refs` is what `home` was */
    };
} stet_block;

typedef struct stet_text {
    stet_block head;
    char bytes[]; /* NUL-terminated */
} stet_text;

typedef struct stet_list {
    stet_block head;
    stet_value at[];
} stet_list;

typedef struct stet_member {
    stet_value key, value;
} stet_member;

typedef struct stet_table {
    stet_block head;
    stet_member at[];
} stet_table;

static inline unsigned stet_value_meta(stet_value v) {
    return (unsigned)(v.bits[1] >> STET_META_SHIFT) & 0xFF;
}

static inline enum stet_tag stet_value_tag(stet_value v) {
    return (enum stet_tag)(stet_value_meta(v) & 0x0F);
}

static inline stet_value stet_value_make(enum stet_tag tag, uint64_t payload) {
    return (stet_value){{payload, (uint64_t)tag << STET_META_SHIFT}};
}

static inline stet_value stet_value_of_block(enum stet_tag tag, void *block) {
    return stet_value_make(tag, (uint64_t)(uintptr_t)block);
}

static inline void *stet_value_block(stet_value v) {
    return (void *)(uintptr_t)v.bits[0];
}

static inline stet_value stet_value_short(const char *bytes, size_t len) {
    stet_value v = {{0, (uint64_t)(STET_TAG_SHORT | len << 4) << STET_META_SHIFT}};
    if (len) /* NULL is allowed for no bytes */
        memcpy(&v, bytes, len);
    return v;
}

/* Of bytes that are known to be valid UTF-8. `pool`, here and below: where the new block is taken from; NULL: by
 * itself. */
stet_value stet_value_string(const char *bytes, size_t len, stet_pool *pool);
/* A finite double, made canonical. */
stet_value stet_value_double(double d);
/* An array of `n` values, which are moved into it. */
stet_value stet_value_array(const stet_value *items, size_t n, stet_pool *pool);
/* An object of `n` members, in any order, which are moved into it. The members are sorted in place first. If a key
 * stands twice, nothing is moved and its first later occurrence is told by `*duplicate`, an index of the sorted
 * members. */
bool stet_value_object(stet_member *members, size_t n, stet_value *out, size_t *duplicate, stet_pool *pool);
/* Order of two strings by their bytes, of which one at least is long. */
int stet_value_compare_long(const stet_value *a, const stet_value *b);

/* Order of two strings by their bytes. */
static inline int stet_value_compare_strings(const stet_value *a, const stet_value *b) {
    if (stet_value_tag(*a) == STET_TAG_SHORT && stet_value_tag(*b) == STET_TAG_SHORT) {
        int word = a->bits[0] == b->bits[0];
        uint64_t x = STET_BIG_ENDIAN(a->bits[word]), y = STET_BIG_ENDIAN(b->bits[word]);
        return (x > y) - (x < y);
    }
    return stet_value_compare_long(a, b);
}

#endif
