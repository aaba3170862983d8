/* buf.h - a growing byte buffer with a maximum size.
 *
 *     stet_buf b = STET_BUF(64 * 1024); // at most 64 KiB; 0 means STET_BUF_MAX
 *     stet_buf_str(&b, "hello");
 *     stet_buf_printf(&b, " %d", 3);
 *     if (b.overflow) // sticky: once too large, nothing more is added
 *         stet_fail(err, STET_LIMIT, "more than %zu bytes", b.max);
 *     else
 *         fwrite(b.data, 1, b.len, file); // NUL-terminated unless data is NULL
 *     stet_buf_release(&b);
 *
 * Writers need not check each call: check `overflow` once, at the end.
 */
#ifndef STET_BASE_BUF_H
#define STET_BASE_BUF_H

#include <string.h>

#include "base/error.h"

#define STET_BUF_MAX ((size_t)1 << 31)
#define STET_BUF(maximum)                                                                                              \
    { NULL, 0, 0, (maximum), false }

typedef struct stet_buf {
    char *data;
    size_t len;
    size_t cap;
    size_t max;
    bool overflow;
} stet_buf;

void stet_buf_add_slow(stet_buf *b, const void *bytes, size_t len);
/* Inline, because most additions are a few bytes that fit: a call would cost more than the work. NULL is allowed for no
 * bytes. */
static inline void stet_buf_add(stet_buf *b, const void *bytes, size_t len) {
    if (len && len < b->cap - b->len && !b->overflow && (!b->max || b->len + len <= b->max)) {
        memcpy(b->data + b->len, bytes, len);
        b->len += len;
        b->data[b->len] = 0;
    } else {
        stet_buf_add_slow(b, bytes, len);
    }
}
static inline void stet_buf_char(stet_buf *b, char c) {
    stet_buf_add(b, &c, 1);
}
void stet_buf_str(stet_buf *b, const char *s);
void stet_buf_printf(stet_buf *b, const char *format, ...) STET_PRINTF(2, 3);
/* Room for `len` more bytes; NULL on overflow. Write there, then add the number of bytes written to b->len. */
char *stet_buf_reserve(stet_buf *b, size_t len);
/* "" rather than NULL for an empty buffer. */
const char *stet_buf_cstr(const stet_buf *b);
/* Gives the bytes to the caller (free with stet_free) and empties the buffer. Never NULL. */
char *stet_buf_take(stet_buf *b, size_t *len);
void stet_buf_clear(stet_buf *b);   /* keeps the memory */
void stet_buf_release(stet_buf *b); /* frees the memory */

#endif
