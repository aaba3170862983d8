/* text.c - the one form of a text: Unicode normalization form C, and canonical URIs. */

#include "repo/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "base/vec.h"

/* The first byte of U+0300 and all above is 0xCC or more. Whatever is below has combining class 0, stands for itself,
 * and is never the second part of a composition: a text may be cut before it. */
#define FIRST_MARK 0xCC

static bool is_plain(const char *s, size_t len) {
    unsigned char any = 0;
    for (size_t i = 0; i < len; i += 4096) { /* in blocks that the compiler makes vectors of */
        size_t end = len - i < 4096 ? len : i + 4096;
        for (size_t k = i; k < end; k++)
            any |= (unsigned char)s[k] >= FIRST_MARK;
        if (any)
            return false;
    }
    return true;
}

static bool continues(char c) {
    return ((unsigned char)c & 0xC0) == 0x80;
}

typedef struct mark {
    size_t at;
    utf8proc_int32_t code;
    unsigned class;
} mark;

static int by_class(const void *a, const void *b) {
    const mark *x = a, *y = b;
    return x->class != y->class ? (x->class > y->class) - (x->class < y->class) : (x->at > y->at) - (x->at < y->at);
}

static unsigned class_of(utf8proc_int32_t code) {
    return (unsigned)utf8proc_get_property(code)->combining_class;
}

/* Marks between two letters in the order of their classes. utf8proc's own way takes the square of their number, which
 * is minutes for a megabyte of accents. */
static void sort_marks(utf8proc_int32_t *codes, size_t n) {
    STET_VEC(mark) run = {0};
    for (size_t i = 0; i < n;) {
        unsigned class = class_of(codes[i]);
        if (class == 0) {
            i++;
            continue;
        }
        bool sorted = true;
        stet_vec_clear(&run);
        for (size_t k = i; k < n && (class = class_of(codes[k])) != 0; k++) {
            sorted &= run.len == 0 || run.at[run.len - 1].class <= class;
            *stet_vec_add(&run) = (mark){k, codes[k], class};
        }
        if (!sorted)
            qsort(run.at, run.len, sizeof *run.at, by_class);
        for (size_t k = 0; k < run.len; k++)
            codes[i + k] = run.at[k].code;
        i += run.len;
    }
    stet_vec_release(&run);
}

static void normalize(const char *s, size_t len, stet_buf *out) {
    enum { LONGEST = 18 }; /* no character has more parts */
    STET_VEC(utf8proc_int32_t) codes = {0};
    const utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    for (size_t i = 0; i < len;) {
        utf8proc_int32_t code;
        utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)s + i, (utf8proc_ssize_t)(len - i), &code);
        assert(n > 0); /* the text is valid */
        stet_vec_reserve(&codes, codes.len + LONGEST);
        int boundary = 0;
        utf8proc_ssize_t parts = utf8proc_decompose_char(code, codes.at + codes.len, LONGEST, options, &boundary);
        assert(parts > 0 && parts <= LONGEST);
        codes.len += (size_t)parts;
        i += (size_t)n;
    }
    sort_marks(codes.at, codes.len);
    utf8proc_ssize_t left = utf8proc_normalize_utf32(codes.at, (utf8proc_ssize_t)codes.len, options);
    assert(left >= 0 && (size_t)left <= codes.len); /* composing never makes it longer */
    for (utf8proc_ssize_t i = 0; i < left; i++) {
        char bytes[4];
        stet_buf_add(out, bytes, stet_utf8_encode((uint32_t)codes.at[i], bytes));
    }
    stet_vec_release(&codes);
}

void stet_text_nfc(const char *s, size_t len, stet_buf *out) {
    size_t i = 0;
    while (i < len) {
        size_t from = i, to;
        while (from < len && (unsigned char)s[from] < FIRST_MARK)
            from++;
        to = from;
        if (from < len) {
            while (to < len && ((unsigned char)s[to] >= FIRST_MARK || continues(s[to])))
                to++;
            while (from > i && continues(s[--from])) /* the letter before, which a mark may join */
                ;
        }
        stet_buf_add(out, s + i, from - i);
        if (from < to)
            normalize(s + from, to - from, out);
        i = to;
    }
}

bool stet_text_is_nfc(const char *s, size_t len) {
    if (is_plain(s, len))
        return true;
    stet_buf b = STET_BUF(0);
    stet_text_nfc(s, len, &b);
    bool same = !b.overflow && b.len == len && memcmp(b.data, s, len) == 0;
    stet_buf_release(&b);
    return same;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static int hex_digit(char c) {
    return is_digit(c) ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static const char forbidden[] = "a URI has no spaces, control characters or \"<>\\^`{|}, but their escapes";

static bool must_be_escaped(char c) {
    return (unsigned char)c <= 0x20 || c == 0x7F || strchr("\"<>\\^`{|}", c) != NULL;
}

/* Bytes of the scheme, without its colon; 0 if there is none. */
static size_t scheme_of(const char *s, size_t len) {
    size_t n = 0;
    while (n < len && (is_letter(s[n]) || (n > 0 && (is_digit(s[n]) || s[n] == '+' || s[n] == '-' || s[n] == '.'))))
        n++;
    return n < len && s[n] == ':' ? n : 0;
}

static bool has_dots(const char *s, size_t len) {
    size_t i = 0, end = 0;
    while (end < len && s[end] != '?' && s[end] != '#')
        end++;
    if (end >= 2 && s[0] == '/' && s[1] == '/') /* an authority is no part of the path */
        for (i = 2; i < end && s[i] != '/'; i++)
            ;
    while (i < end) {
        size_t n = 0;
        while (i + n < end && s[i + n] != '/')
            n++;
        if ((n == 1 && s[i] == '.') || (n == 2 && s[i] == '.' && s[i + 1] == '.'))
            return true;
        i += n + 1;
    }
    return false;
}

/* The normal form may join a mark with the last digit of an escape, and it has ` for U+1FEF. NULL, or what is wrong. */
static const char *spoilt(const char *s, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (must_be_escaped(s[i]))
            return forbidden;
        if (s[i] == '%' && (i + 2 >= len || hex_digit(s[i + 1]) < 0 || hex_digit(s[i + 2]) < 0))
            return "after an escape in a URI there is no mark that would join its digit";
    }
    return NULL;
}

const char *stet_text_uri(const char *s, size_t len, stet_buf *out) {
    size_t scheme = scheme_of(s, len);
    if (scheme == 0)
        return "a URI begins with a scheme and a colon";
    if (!stet_utf8_valid(s, len))
        return "a URI is UTF-8";
    stet_buf b = STET_BUF(0);
    const char *wrong = NULL;
    for (size_t i = 0; i < len && !wrong; i++) {
        int high = i + 2 < len ? hex_digit(s[i + 1]) : -1, low = i + 2 < len ? hex_digit(s[i + 2]) : -1;
        if (i < scheme) {
            stet_buf_char(&b, (char)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] - 'A' + 'a' : s[i]));
        } else if (must_be_escaped(s[i])) {
            wrong = forbidden;
        } else if (s[i] != '%') {
            stet_buf_char(&b, s[i]);
        } else if (high < 0 || low < 0) {
            wrong = "after a % in a URI there are two hexadecimal digits";
        } else {
            char c = (char)(high * 16 + low);
            if (is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~')
                stet_buf_char(&b, c);
            else
                stet_buf_printf(&b, "%%%02X", (unsigned)(high * 16 + low));
            i += 2;
        }
    }
    if (!wrong && has_dots(b.data + scheme + 1, b.len - scheme - 1))
        wrong = "no part of a URI's path is . or ..";
    stet_buf form = STET_BUF(0);
    if (!wrong) { /* only now: an escape may have stood for the letter of a mark */
        stet_text_nfc(b.data, b.len, &form);
        wrong = spoilt(form.data, form.len);
    }
    if (!wrong)
        stet_buf_add(out, form.data, form.len);
    stet_buf_release(&form);
    stet_buf_release(&b);
    return wrong;
}
