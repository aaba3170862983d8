/* path.c - encoded paths inside a document: building, comparing, decoding, JSON Pointers. */

#include "base/path.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* 0x00 ends a key and occurs nowhere else: keys are counted and split by searching for it. Both escapes are ASCII, so
 * an encoded path is valid UTF-8 if and only if its keys are. */
enum { KEY_END = 0x00, ESCAPE = 0x01, ESCAPED_00 = 0x01, ESCAPED_01 = 0x02 };

stet_pathref stet_path_ref(const stet_path *p) {
    return p->buf.len ? (stet_pathref){p->buf.data, p->buf.len} : STET_PATH_ROOT;
}

static size_t escapes_in(const char *key, size_t len) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += (unsigned char)key[i] <= ESCAPE;
    return n;
}

/* A key is added whole or not at all: a path that overflowed is still valid, but has fewer keys. */
void stet_path_push_n(stet_path *p, const char *key, size_t len) {
    size_t escapes = escapes_in(key, len);
    if (p->buf.overflow)
        return;
    char *to = stet_buf_reserve(&p->buf, len + escapes + 1);
    if (!to)
        return;
    if (!escapes) {
        memcpy(to, key, len);
        to += len;
    } else {
        for (size_t i = 0; i < len; i++) {
            if ((unsigned char)key[i] <= ESCAPE) {
                *to++ = ESCAPE;
                *to++ = key[i] == KEY_END ? ESCAPED_00 : ESCAPED_01;
            } else {
                *to++ = key[i];
            }
        }
    }
    *to = KEY_END;
    p->buf.len += len + escapes + 1;
}

void stet_path_push(stet_path *p, const char *key) {
    stet_path_push_n(p, key, strlen(key));
}

void stet_path_push_index(stet_path *p, size_t index) {
    char digits[24], *at = digits + sizeof digits;
    do
        *--at = (char)('0' + index % 10);
    while (index /= 10);
    stet_path_push_n(p, at, (size_t)(digits + sizeof digits - at));
}

void stet_path_pop(stet_path *p) {
    p->buf.len = stet_path_parent(stet_path_ref(p)).len;
}

void stet_path_set(stet_path *p, stet_pathref to) {
    /* `to` may be a prefix of this path itself. */
    bool inside = p->buf.data && to.bytes == p->buf.data;
    p->buf.overflow = false;
    p->buf.len = 0;
    if (inside)
        p->buf.len = to.len;
    else
        stet_buf_add(&p->buf, to.bytes, to.len);
}

void stet_path_release(stet_path *p) {
    stet_buf_release(&p->buf);
}

bool stet_path_next(stet_pathref p, size_t *cursor, stet_buf *scratch, const char **key, size_t *key_len) {
    if (*cursor >= p.len)
        return false;
    const char *begin = p.bytes + *cursor;
    const char *end = memchr(begin, KEY_END, p.len - *cursor);
    if (!end)
        return false; /* not a path; stet_path_valid reports it */
    size_t len = (size_t)(end - begin);
    *cursor += len + 1;
    if (!memchr(begin, ESCAPE, len)) {
        *key = begin;
        *key_len = len;
        return true;
    }
    stet_buf_clear(scratch);
    for (size_t i = 0; i < len; i++) {
        if (begin[i] == ESCAPE && i + 1 < len)
            stet_buf_char(scratch, begin[++i] == ESCAPED_00 ? '\0' : '\1');
        else
            stet_buf_char(scratch, begin[i]);
    }
    *key = stet_buf_cstr(scratch);
    *key_len = scratch->len;
    return true;
}

size_t stet_path_depth(stet_pathref p) {
    size_t depth = 0;
    for (size_t i = 0; i < p.len; i++)
        depth += p.bytes[i] == KEY_END;
    return depth;
}

bool stet_path_is_prefix(stet_pathref prefix, stet_pathref of) {
    return prefix.len <= of.len && (prefix.len == 0 || memcmp(prefix.bytes, of.bytes, prefix.len) == 0);
}

bool stet_path_is_child(stet_pathref parent, stet_pathref child) {
    if (child.len <= parent.len || !stet_path_is_prefix(parent, child))
        return false;
    const char *rest = child.bytes + parent.len;
    size_t len = child.len - parent.len;
    return memchr(rest, KEY_END, len) == rest + len - 1;
}

int stet_path_compare(stet_pathref a, stet_pathref b) {
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len ? memcmp(a.bytes, b.bytes, len) : 0;
    if (order != 0)
        return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

/* The longest prefix of at most `len` bytes that ends with a whole key. */
static stet_pathref whole_keys(stet_pathref p, size_t len) {
    const char *end = len ? memrchr(p.bytes, KEY_END, len) : NULL;
    return end ? (stet_pathref){p.bytes, (size_t)(end - p.bytes) + 1} : STET_PATH_ROOT;
}

stet_pathref stet_path_parent(stet_pathref p) {
    return whole_keys(p, p.len ? p.len - 1 : 0);
}

stet_pathref stet_path_common(stet_pathref a, stet_pathref b) {
    size_t len = a.len < b.len ? a.len : b.len, same = 0;
    while (same < len && a.bytes[same] == b.bytes[same])
        same++;
    return whole_keys(a, same);
}

bool stet_path_valid(stet_pathref p) {
    if (p.len == 0)
        return true;
    if (p.len > STET_PATH_MAX_BYTES || p.bytes[p.len - 1] != KEY_END)
        return false;
    for (size_t i = 0; i < p.len; i++)
        if (p.bytes[i] == ESCAPE && p.bytes[++i] != ESCAPED_00 && p.bytes[i] != ESCAPED_01)
            return false; /* the last byte is 0x00, so that the byte after an escape exists */
    return stet_path_depth(p) <= STET_PATH_MAX_KEYS && stet_utf8_valid(p.bytes, p.len);
}

static stet_status too_long(stet_error *err, const char *what) {
    return stet_fail(err, STET_LIMIT, "%s: more than %d keys or %d bytes", what, STET_PATH_MAX_KEYS,
                     STET_PATH_MAX_BYTES);
}

stet_status stet_path_of_pointer(stet_path *out, const char *pointer, size_t len, stet_error *err) {
    if (len && pointer[0] != '/')
        return stet_fail(err, STET_INVALID,
                         "path \"%.*s\": expected a JSON Pointer, which is empty or begins with \"/\"",
                         (int)(len < 200 ? len : 200), pointer);
    if (!stet_utf8_valid(pointer, len))
        return stet_fail(err, STET_INVALID, "path: not valid UTF-8");
    stet_path p = STET_PATH_INIT;
    stet_buf key = STET_BUF(STET_PATH_MAX_BYTES);
    stet_status status = STET_OK;
    size_t keys = 0;
    for (size_t i = 0; i < len && status == STET_OK;) {
        stet_buf_clear(&key);
        for (i++; i < len && pointer[i] != '/'; i++) {
            char c = pointer[i];
            if (c == '~') {
                char next = i + 1 < len ? pointer[++i] : '\0';
                if (next != '0' && next != '1') {
                    status = stet_fail(err, STET_INVALID,
                                       "path \"%.*s\": \"~\" at byte %zu must be followed by 0 (for \"~\") or 1 (for "
                                       "\"/\")",
                                       (int)(len < 200 ? len : 200), pointer, i);
                    break;
                }
                c = next == '0' ? '~' : '/';
            }
            stet_buf_char(&key, c);
        }
        if (status == STET_OK) {
            if (++keys > STET_PATH_MAX_KEYS || key.overflow)
                status = too_long(err, "path");
            else
                stet_path_push_n(&p, stet_buf_cstr(&key), key.len);
        }
    }
    if (status == STET_OK && p.buf.overflow)
        status = too_long(err, "path");
    if (status == STET_OK)
        stet_path_set(out, stet_path_ref(&p));
    stet_buf_release(&key);
    stet_path_release(&p);
    return status;
}

void stet_path_print(stet_pathref p, stet_buf *out) {
    stet_buf scratch = STET_BUF(0);
    const char *key;
    size_t len;
    for (size_t cursor = 0; stet_path_next(p, &cursor, &scratch, &key, &len);) {
        stet_buf_char(out, '/');
        for (size_t i = 0; i < len; i++) {
            if (key[i] == '~')
                stet_buf_str(out, "~0");
            else if (key[i] == '/')
                stet_buf_str(out, "~1");
            else
                stet_buf_char(out, key[i]);
        }
    }
    stet_buf_release(&scratch);
}

stet_status stet_path_of_value(stet_path *out, stet_value keys, stet_error *err) {
    if (stet_value_type(keys) != STET_TYPE_ARRAY)
        return stet_fail(err, STET_INVALID, "path: expected an array of keys");
    size_t count = stet_value_count(keys);
    if (count > STET_PATH_MAX_KEYS)
        return too_long(err, "path");
    stet_path p = STET_PATH_INIT;
    stet_status status = STET_OK;
    for (size_t i = 0; i < count && status == STET_OK; i++) {
        stet_value key = stet_value_at(keys, i);
        size_t len = 0;
        if (stet_value_type(key) == STET_TYPE_INT && stet_value_as_int(key) >= 0) {
            stet_path_push_index(&p, (size_t)stet_value_as_int(key));
            continue;
        }
        if (stet_value_type(key) != STET_TYPE_STRING) {
            status = stet_fail(err, STET_INVALID, "path: key %zu is neither a string nor an array index", i);
            break;
        }
        const char *bytes = stet_value_as_string(&key, &len);
        stet_path_push_n(&p, bytes, len);
    }
    if (status == STET_OK && p.buf.overflow)
        status = too_long(err, "path");
    if (status == STET_OK)
        stet_path_set(out, stet_path_ref(&p));
    stet_path_release(&p);
    return status;
}

stet_value stet_path_to_value(stet_pathref p) {
    stet_value keys = stet_value_array();
    stet_buf scratch = STET_BUF(0);
    const char *key;
    size_t len;
    for (size_t cursor = 0; stet_path_next(p, &cursor, &scratch, &key, &len);)
        stet_value_push(&keys, stet_value_string_n(key, len));
    stet_buf_release(&scratch);
    return keys;
}

bool stet_path_lookup(stet_value root, stet_pathref p, stet_value *out) {
    stet_value at = root;
    stet_buf scratch = STET_BUF(0);
    const char *key;
    size_t len, cursor = 0;
    bool found = true;
    while (found && stet_path_next(p, &cursor, &scratch, &key, &len)) {
        size_t index;
        switch (stet_value_type(at)) {
        case STET_TYPE_OBJECT:
            found = stet_value_find(at, key, len, &at);
            break;
        case STET_TYPE_ARRAY:
            found = stet_path_index(key, len, &index) && index < stet_value_count(at);
            if (found)
                at = stet_value_at(at, index);
            break;
        default:
            found = false;
        }
    }
    stet_buf_release(&scratch);
    if (found)
        *out = at;
    return found;
}

bool stet_path_index(const char *key, size_t len, size_t *index) {
    if (len == 0 || (key[0] == '0' && len > 1))
        return false;
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (key[i] < '0' || key[i] > '9')
            return false;
        size_t digit = (size_t)(key[i] - '0');
        if (n > (SIZE_MAX - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    *index = n;
    return true;
}
