/* json_write.c - the JSON printer: one loop over a stack of open containers. */

#include <assert.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/number.h"
#include "base/scan.h"
#include "base/value.h"
#include "base/vec.h"

/* Adds a few bytes, inlined if their number is known at compile time, without a call while there is room. */
static inline void add(stet_buf *b, const char *bytes, size_t len) {
    if (b->cap - b->len > len && !b->overflow) { /* cap never exceeds the maximum by more than the NUL */
        memcpy(b->data + b->len, bytes, len);
        b->len += len;
        b->data[b->len] = 0;
        return;
    }
    stet_buf_add(b, bytes, len);
}

static inline void add_char(stet_buf *b, char c) {
    add(b, &c, 1);
}

void stet_json_write_string(stet_buf *b, const char *bytes, size_t len) {
    static const char named[256] = {
        ['"'] = '"', ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    static const char hex[] = "0123456789abcdef";
    const char *end = bytes + len;
    add_char(b, '"');
    for (;;) {
        bool ignored = false;
        const char *p = stet_scan_string(bytes, end, &ignored);
        add(b, bytes, (size_t)(p - bytes));
        if (p == end)
            break;
        unsigned char c = (unsigned char)*p;
        if (named[c])
            add(b, (char[]){'\\', named[c]}, 2);
        else
            add(b, (char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
        bytes = p + 1;
    }
    add_char(b, '"');
}

static void write_int(stet_buf *b, int64_t i) {
    char digits[20], *p = digits + sizeof digits;
    uint64_t n = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    do
        *--p = (char)('0' + n % 10);
    while (n /= 10);
    if (i < 0)
        *--p = '-';
    add(b, p, (size_t)(digits + sizeof digits - p));
}

static void write_leaf(stet_buf *b, const stet_value *v) {
    char number[32];
    size_t len;
    const char *bytes;
    switch (stet_value_type(*v)) {
    case STET_TYPE_NULL:
        add(b, "null", 4);
        break;
    case STET_TYPE_BOOL:
        if (stet_value_as_bool(*v))
            add(b, "true", 4);
        else
            add(b, "false", 5);
        break;
    case STET_TYPE_INT:
        write_int(b, stet_value_as_int(*v));
        break;
    case STET_TYPE_DOUBLE:
        len = stet_number_print_apart(stet_value_as_double(*v), number);
        add(b, number, len);
        break;
    case STET_TYPE_STRING:
        bytes = stet_value_as_string(v, &len);
        stet_json_write_string(b, bytes, len);
        break;
    case STET_TYPE_ARRAY: /* empty ones: the others are opened */
        add(b, "[]", 2);
        break;
    case STET_TYPE_OBJECT:
        add(b, "{}", 2);
        break;
    }
}

static void break_line(stet_buf *b, size_t depth) {
    char *p = stet_buf_reserve(b, 1 + 2 * depth);
    if (!p)
        return;
    p[0] = '\n';
    memset(p + 1, ' ', 2 * depth);
    b->len += 1 + 2 * depth;
}

struct open {
    stet_value v;
    size_t next;
};

void stet_json_write(stet_buf *b, stet_value v, stet_json_style style) {
    bool pretty = style == STET_JSON_PRETTY;
    STET_VEC(struct open) stack = {0};
    for (;;) {
        if (stet_value_count(v)) {
            add_char(b, stet_value_type(v) == STET_TYPE_ARRAY ? '[' : '{');
            *stet_vec_add(&stack) = (struct open){v, 0};
        } else {
            write_leaf(b, &v);
        }
        /* Close the containers that are complete, then go to the next element. */
        while (stack.len && stack.at[stack.len - 1].next == stet_value_count(stack.at[stack.len - 1].v)) {
            stack.len--;
            if (pretty)
                break_line(b, stack.len);
            add_char(b, stet_value_type(stack.at[stack.len].v) == STET_TYPE_ARRAY ? ']' : '}');
        }
        if (!stack.len || b->overflow)
            break;
        struct open *top = &stack.at[stack.len - 1];
        if (top->next)
            add_char(b, ',');
        if (pretty)
            break_line(b, stack.len);
        if (stet_value_type(top->v) == STET_TYPE_OBJECT) {
            size_t len;
            const char *key = stet_value_key_at(top->v, top->next, &len);
            stet_json_write_string(b, key, len);
            add(b, ": ", pretty ? 2 : 1);
        }
        v = stet_value_at(top->v, top->next++);
    }
    if (pretty)
        add_char(b, '\n');
    stet_vec_release(&stack);
}

char *stet_json_print(stet_value v, stet_json_style style, size_t *len) {
    stet_buf b = STET_BUF(SIZE_MAX / 4); /* the value fits in memory, so its text has no other limit */
    stet_json_write(&b, v, style);
    assert(!b.overflow);
    return stet_buf_take(&b, len);
}
