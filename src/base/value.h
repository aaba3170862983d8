/* value.h - the representation of a stet_value.
 *
 * For value.c and the readers and printers that build values in bulk. All other code uses stet.h.
 *
 * A value is 16 bytes. The last byte holds the tag in its low four bits.
 *
 *   null, bool, int, double      the payload is bits[0]
 *   short string                 up to 14 bytes from byte 0 on, zeros after them up to byte 14, and the length in the
 *                                high four bits of byte 15
 *   long string, array, object   bits[0] points to a block with a reference count; NULL for an empty array or object
 *
 * Therefore
 *
 *   V1. a string of up to 14 bytes is always short, a longer one always long: each string has one representation;
 *   V2. two short strings order as their two words do when read with the first byte as the highest (zeros pad, and the
 *       length decides last, so "a" < "a\0");
 *   V3. an empty array or object has no block;
 *   V4. an integral double with a magnitude up to 2^53 is never kept as a double: it is that integer;
 *   V5. the members of an object are sorted by the bytes of their keys, and no key occurs twice;
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

/* The head of all three kinds of block. While blocks wait to be freed, `next` links them, so that freeing deep values
 * needs no stack. */
typedef struct stet_block {
    _Atomic uint32_t refs;
    uint32_t len; /* bytes, elements or members */
    union {
        struct {
            uint32_t cap;  /* elements or members */
            uint32_t home; /* offset in its chunk (base/pool.h); 0: allocated by itself */
        };
        struct stet_block *next; /* then `refs` holds what `home` was */
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

/* Makes a string of bytes that are known to be valid UTF-8. Here and below, new blocks are taken from `pool`; NULL:
 * from malloc. */
stet_value stet_value_make_string(const char *bytes, size_t len, stet_pool *pool);
/* Makes the canonical value of a finite double. */
stet_value stet_value_make_double(double d);
/* Makes an array of `n` values, which are moved into it. */
stet_value stet_value_make_array(const stet_value *items, size_t n, stet_pool *pool);
/* Makes an object of `n` members, given in any order, which are moved into it. The members are sorted in place first.
 * If a key occurs twice, nothing is moved, and `*duplicate` is the index of its first repetition in the sorted members.
 */
bool stet_value_make_object(stet_member *members, size_t n, stet_value *out, size_t *duplicate, stet_pool *pool);
/* Order of two strings by their bytes, at least one of which is long. */
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
