/* wire.h - requests to the supervisor. Private to src/process.
 *
 * A request is its length (4 bytes) and fields. Each field is its length and its bytes, because arguments and file
 * names may contain any bytes.
 */
#ifndef STET_EXEC_WIRE_H
#define STET_EXEC_WIRE_H

#include <string.h>

#include "base/buf.h"

#define STET_WIRE_MAX ((size_t)1 << 30) /* words beyond what the kernel takes are refused by the kernel */

static inline void stet_wire_bytes(stet_buf *b, const void *bytes, size_t len) {
    uint32_t n = (uint32_t)len;
    stet_buf_add(b, &n, 4);
    stet_buf_add(b, bytes, len);
}

static inline void stet_wire_int(stet_buf *b, int64_t v) {
    stet_wire_bytes(b, &v, 8);
}

static inline void stet_wire_list(stet_buf *b, const char *const *list) {
    size_t n = 0;
    while (list[n])
        n++;
    stet_wire_int(b, (int64_t)n);
    for (size_t i = 0; i < n; i++)
        stet_wire_bytes(b, list[i], strlen(list[i]) + 1); /* with the NUL, because the reader points into the request */
}

typedef struct stet_wire {
    const char *bytes;
    size_t len, at;
    bool bad;
} stet_wire;

static inline const char *stet_wire_take(stet_wire *w, size_t *len) {
    uint32_t n = 0;
    if (!w->bad && w->len - w->at >= 4)
        memcpy(&n, w->bytes + w->at, 4);
    else
        w->bad = true;
    if (w->bad || n > w->len - w->at - 4) {
        w->bad = true;
        *len = 0;
        return "";
    }
    const char *p = w->bytes + w->at + 4;
    w->at += 4 + n;
    *len = n;
    return p;
}

static inline int64_t stet_wire_take_int(stet_wire *w) {
    size_t len;
    int64_t v = 0;
    const char *p = stet_wire_take(w, &len);
    if (len == 8)
        memcpy(&v, p, 8);
    else
        w->bad = true;
    return v;
}

static inline const char *stet_wire_take_text(stet_wire *w) {
    size_t len;
    const char *p = stet_wire_take(w, &len);
    if (len == 0 || p[len - 1] != 0)
        w->bad = true;
    return w->bad ? "" : p;
}

#endif
