/* buf.c - a growing byte buffer with a maximum size. */

#include "base/buf.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *stet_buf_reserve(stet_buf *b, size_t len) {
    size_t max = b->max ? b->max : STET_BUF_MAX;
    if (b->overflow || len > max || b->len > max - len) {
        b->overflow = true;
        return NULL;
    }
    size_t need = b->len + len + 1;
    if (need > b->cap) {
        size_t cap = b->cap < 32 ? 64 : b->cap * 2;
        if (cap < need)
            cap = need;
        if (cap > max + 1)
            cap = max + 1;
        b->data = stet_realloc(b->data, cap);
        b->cap = cap;
    }
    /* A caller that fills all of the room gets a terminated text. If it fills less, stet_buf_cstr and stet_buf_take
     * write the NUL. */
    b->data[b->len + len] = 0;
    return b->data + b->len;
}

void stet_buf_add_slow(stet_buf *b, const void *bytes, size_t len) {
    char *to = stet_buf_reserve(b, len);
    if (!to || !len)
        return;
    memcpy(to, bytes, len);
    b->len += len;
}

void stet_buf_str(stet_buf *b, const char *s) {
    stet_buf_add(b, s, strlen(s));
}

void stet_buf_printf(stet_buf *b, const char *format, ...) {
    if (b->overflow)
        return;
    size_t room = b->cap > b->len ? b->cap - b->len : 0;
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(room ? b->data + b->len : NULL, room, format, args);
    va_end(args);
    assert(n >= 0);
    if ((size_t)n >= room) {
        if (room)
            b->data[b->len] = 0;
        char *to = stet_buf_reserve(b, (size_t)n);
        if (to)
            vsnprintf(to, (size_t)n + 1, format, again);
    }
    va_end(again);
    if (!b->overflow)
        b->len += (size_t)n;
}

const char *stet_buf_cstr(const stet_buf *b) {
    if (!b->data)
        return "";
    b->data[b->len] = 0;
    return b->data;
}

char *stet_buf_take(stet_buf *b, size_t *len) {
    char *data = b->data ? b->data : stet_alloc(1);
    data[b->len] = 0;
    if (len)
        *len = b->len;
    b->data = NULL;
    b->len = b->cap = 0;
    b->overflow = false;
    return data;
}

void stet_buf_clear(stet_buf *b) {
    b->len = 0;
    b->overflow = false;
    if (b->data)
        b->data[0] = 0;
}

void stet_buf_release(stet_buf *b) {
    free(b->data);
    b->data = NULL;
    b->len = b->cap = 0;
    b->overflow = false;
}
