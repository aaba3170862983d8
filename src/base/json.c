/* json.c - the JSON reader.
 *
 * One loop over the text with two stacks: the values read so far, and the open containers. A container that closes
 * takes its elements off the first stack in one move, so arrays and objects are allocated once, at their final size.
 */

#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "base/scan.h"
#include "base/utf8.h"
#include "base/value.h"
#include "base/vec.h"

enum { DEFAULT_DEPTH = 512, CACHED_KEYS = 64 };
#define DEFAULT_BYTES ((size_t)1 << 30)
#define LARGEST_BYTES ((size_t)1 << 31) /* the lengths inside values are 32 bits wide */

struct frame {
    const char *open; /* the bracket in the text */
    size_t start;     /* of its elements on the stack of values; keys and values alternate in an object */
    bool object;
};

struct reader {
    const char *text, *end;
    size_t max_depth;
    STET_VEC(stet_value) values;
    STET_VEC(struct frame) frames;
    stet_pool *pool;  /* for the blocks of a large document, else NULL */
    stet_buf scratch; /* a string with escapes, decoded */
    /* Long keys read so far, by a hash: objects of one kind share them. Borrowed from the values. */
    stet_text *keys[CACHED_KEYS];
    const stet_json_stream *stream; /* or NULL */
    /* The names in `stream` as keys; all are short, so that a comparison is two words. */
    stet_value wanted[STET_JSON_WANTED_MAX];
    size_t wanted_count;
    bool streaming; /* the second open container is the stream's array */
    stet_error *err;
};

static inline void push(struct reader *r, stet_value v) {
    if (r->values.len == r->values.cap) /* checked here: a call would cost as much as the value */
        stet_vec_reserve(&r->values, r->values.len + 1);
    r->values.at[r->values.len++] = v;
}

/* Line and column from 1, columns counted in characters. */
static void position(const char *text, const char *at, size_t *line, size_t *column) {
    *line = 1;
    const char *begin = text;
    for (const char *p; (p = memchr(begin, '\n', (size_t)(at - begin))); begin = p + 1)
        ++*line;
    *column = 1;
    for (const char *p = begin; p < at; p++)
        *column += ((unsigned char)*p & 0xC0) != 0x80;
}

__attribute__((cold)) STET_PRINTF(4, 5) static stet_status
    fail(struct reader *r, stet_status status, const char *at, const char *format, ...) {
    if (!r->err || r->err->status != STET_OK)
        return status;
    size_t line, column;
    position(r->text, at, &line, &column);
    va_list args;
    va_start(args, format);
    stet_vfail(r->err, status, format, args);
    va_end(args);
    stet_fail_in(r->err, "line %zu, column %zu (byte %zu)", line, column, (size_t)(at - r->text));
    stet_detail(r->err, "line", stet_value_int((int64_t)line));
    stet_detail(r->err, "column", stet_value_int((int64_t)column));
    stet_detail(r->err, "offset", stet_value_int(at - r->text));
    return status;
}

/* Describes the text at `at`, for messages. */
static const char *describe(const struct reader *r, const char *at, char out[32]) {
    if (at >= r->end)
        return "the end of the text";
    unsigned char c = (unsigned char)*at;
    if (c > 0x20 && c < 0x7F)
        snprintf(out, 32, "'%c'", c);
    else if (c == '\n')
        return "the end of the line";
    else if (c >= 0x80 && stet_utf8_valid_prefix(at, r->end - at < 4 ? (size_t)(r->end - at) : 4)) {
        size_t n = c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
        snprintf(out, 32, "'%.*s'", (int)n, at);
    } else
        snprintf(out, 32, "byte 0x%02x", c);
    return out;
}

__attribute__((cold)) static stet_status fail_expected(struct reader *r, const char *at, const char *expected) {
    char found[32];
    return fail(r, STET_INVALID, at, "expected %s, found %s", expected, describe(r, at, found));
}

static inline const char *skip_space(const char *p, const char *end) {
    if (p < end && (unsigned char)*p > ' ')
        return p;
    return stet_scan_space(p, end);
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads four hexadecimal digits at p; false if there are fewer. */
static bool hex_unit(const char *p, const char *end, uint32_t *out) {
    if (end - p < 4)
        return false;
    uint32_t unit = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0)
            return false;
        unit = unit << 4 | (uint32_t)digit;
    }
    *out = unit;
    return true;
}

/* One escape, from its backslash at *p on, into the scratch buffer. */
static stet_status read_escape(struct reader *r, const char **p) {
    static const char plain[256] = {
        ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'};
    const char *at = *p, *end = r->end;
    if (end - at < 2)
        return fail(r, STET_INVALID, end, "the text ends inside a string");
    char c = plain[(unsigned char)at[1]];
    if (c) {
        stet_buf_char(&r->scratch, c);
        *p = at + 2;
        return STET_OK;
    }
    if (at[1] != 'u') {
        char found[32];
        return fail(r, STET_INVALID, at, "unknown escape: a backslash before %s", describe(r, at + 1, found));
    }
    uint32_t unit, second;
    if (!hex_unit(at + 2, end, &unit))
        return fail(r, STET_INVALID, at, "\\u needs four hexadecimal digits");
    *p = at + 6;
    if (unit >= 0xDC00 && unit < 0xE000)
        return fail(r, STET_INVALID, at, "lone low surrogate \\u%.4s", at + 2);
    if (unit >= 0xD800 && unit < 0xDC00) {
        if (end - at < 12 || at[6] != '\\' || at[7] != 'u' || !hex_unit(at + 8, end, &second) || second < 0xDC00 ||
            second > 0xDFFF)
            return fail(r, STET_INVALID, at, "lone high surrogate \\u%.4s", at + 2);
        unit = 0x10000 + ((unit - 0xD800) << 10) + (second - 0xDC00);
        *p = at + 12;
    }
    char bytes[4];
    stet_buf_add(&r->scratch, bytes, stet_utf8_encode(unit, bytes));
    return STET_OK;
}

/* Says why a string can't go on at p, where the scanner stopped at neither a quote nor a backslash. */
__attribute__((cold)) static stet_status fail_in_string(struct reader *r, const char *p) {
    if (p >= r->end)
        return fail(r, STET_INVALID, p, "the text ends inside a string");
    return fail(r, STET_INVALID, p, "control character 0x%02x inside a string: it must be escaped", (unsigned char)*p);
}

static stet_status check_run(struct reader *r, const char *from, const char *to) {
    size_t len = (size_t)(to - from), valid = stet_utf8_valid_prefix(from, len);
    if (valid == len)
        return STET_OK;
    return fail(r, STET_INVALID, from + valid, "invalid UTF-8: byte 0x%02x", (unsigned char)from[valid]);
}

/* A string with escapes. The quote stands at `open`; the text up to p is already known to hold neither quote nor
 * escape. */
static stet_status read_escaped(struct reader *r, const char *open, const char **end, const char **bytes, size_t *len) {
    stet_buf_clear(&r->scratch);
    for (const char *from = open + 1;;) {
        bool high = false;
        const char *p = stet_scan_string(from, r->end, &high);
        stet_status status = high ? check_run(r, from, p) : STET_OK;
        if (status)
            return status;
        stet_buf_add(&r->scratch, from, (size_t)(p - from));
        if (p >= r->end || (*p != '"' && *p != '\\'))
            return fail_in_string(r, p);
        if (*p == '"') {
            *end = p + 1;
            *bytes = stet_buf_cstr(&r->scratch);
            *len = r->scratch.len;
            return STET_OK;
        }
        status = read_escape(r, &p);
        if (status)
            return status;
        from = p;
    }
}

/* A long key; an equal key that is still in the cache is shared. */
static stet_value long_key(struct reader *r, const char *bytes, size_t len) {
    uint64_t head, tail;
    memcpy(&head, bytes, 8);
    memcpy(&tail, bytes + len - 8, 8);
    size_t place =
        (size_t)(((head ^ (tail << 1 | tail >> 63)) * 0x9E3779B97F4A7C15u + len * 0xD1B54A32D192ED03u) >> 56);
    stet_text **cached = &r->keys[place % CACHED_KEYS];
    if (*cached && (*cached)->head.len == len && !memcmp((*cached)->bytes, bytes, len)) {
        /* No locked instruction is needed: no other thread knows these values yet. */
        uint32_t refs = atomic_load_explicit(&(*cached)->head.refs, memory_order_relaxed);
        if (refs < UINT32_MAX / 2) {
            atomic_store_explicit(&(*cached)->head.refs, refs + 1, memory_order_relaxed);
            return stet_value_of_block(STET_TAG_LONG, *cached);
        }
    }
    stet_value v = stet_value_make_string(bytes, len, r->pool);
    if (!r->streaming) /* otherwise the element frees it */
        *cached = stet_value_block(v);
    return v;
}

static bool is_name(const stet_value *key, const char *name) {
    size_t len;
    const char *bytes = stet_value_as_string(key, &len);
    return strlen(name) == len && !memcmp(bytes, name, len);
}

/* Will nobody look at the string that was just scanned? Its key is the last value on the stack. */
static bool is_unwanted(const struct reader *r) {
    if (r->frames.len != 3 || !r->frames.at[2].object)
        return false;
    stet_value key = r->values.at[r->values.len - 1];
    for (size_t i = 0; i < r->wanted_count; i++)
        if (key.bits[0] == r->wanted[i].bits[0] && key.bits[1] == r->wanted[i].bits[1])
            return false;
    return true;
}

static void note_wanted(struct reader *r) {
    for (const char *const *name = r->stream->wanted; *name; name++) {
        size_t len = strlen(*name);
        assert(len <= STET_SHORT_MAX && r->wanted_count < STET_JSON_WANTED_MAX);
        r->wanted[r->wanted_count++] = stet_value_short(*name, len);
    }
}

/* Reads the string whose opening quote is at *at. */
static inline stet_status read_string(struct reader *r, const char **at, bool key, stet_value *out) {
    const char *open = *at, *bytes = open + 1;
    bool high = false;
    const char *p = stet_scan_string(bytes, r->end, &high);
    size_t len = (size_t)(p - bytes);
    stet_status status;
    if (__builtin_expect(p < r->end && *p == '"', 1)) {
        if (high && (status = check_run(r, bytes, p)))
            return status;
        *at = p + 1;
        if (len <= STET_SHORT_MAX && r->end - bytes >= 16) {
            *out = stet_value_short_of_16(bytes, len);
            return STET_OK;
        }
        if (r->streaming && !key && is_unwanted(r)) {
            *out = stet_value_make_string("", 0, NULL);
            return STET_OK;
        }
    } else {
        if (p >= r->end || *p != '\\') {
            if (high && (status = check_run(r, bytes, p)))
                return status;
            return fail_in_string(r, p);
        }
        status = read_escaped(r, open, at, &bytes, &len);
        if (status)
            return status;
    }
    *out = key && len > STET_SHORT_MAX ? long_key(r, bytes, len) : stet_value_make_string(bytes, len, r->pool);
    return STET_OK;
}

static inline bool is_digit(const char *p, const char *end) {
    return p < end && (unsigned char)(*p - '0') <= 9;
}

/* Reads digits into `*significand`, which wraps around beyond 19 digits; the caller counts them. */
static inline const char *read_digits(const char *p, const char *end, uint64_t *significand) {
    uint64_t n = *significand;
    while (end - p >= 8 && stet_scan_is_8_digits(p)) {
        n = n * 100000000 + stet_scan_8_digits(p);
        p += 8;
    }
    for (; is_digit(p, end); p++)
        n = n * 10 + (uint64_t)(*p - '0');
    *significand = n;
    return p;
}

static stet_status read_integer(struct reader *r, const char *start, const char *end, uint64_t magnitude,
                                stet_value *out) {
    bool negative = *start == '-';
    size_t digits = (size_t)(end - start) - negative;
    uint64_t limit = (uint64_t)INT64_MAX + negative;
    if (digits > 19 || magnitude > limit) /* 19 digits fit 64 bits */
        return fail(
            r, STET_INVALID, start,
            "integer %.*s%s is outside the range of 64 bits (write it with an exponent for a floating-point number)",
            end - start > 40 ? 40 : (int)(end - start), start, end - start > 40 ? "..." : "");
    *out = stet_value_make(STET_TAG_INT, negative ? 0 - magnitude : magnitude);
    return STET_OK;
}

static stet_status read_number(struct reader *r, const char **at, stet_value *out) {
    const char *start = *at, *end = r->end, *p = start;
    uint64_t significand = 0;
    bool negative = *p == '-';
    p += negative;
    if (!is_digit(p, end))
        return fail_expected(r, p, "a digit");
    const char *first = p;
    if (*p == '0') {
        p++;
        if (is_digit(p, end))
            return fail(r, STET_INVALID, first, "a number may not begin with a zero and go on with a digit");
    } else {
        for (int i = 0; i < 4 && is_digit(p, end); i++, p++) /* most numbers are short */
            significand = significand * 10 + (uint64_t)(*p - '0');
        if (is_digit(p, end))
            p = read_digits(p, end, &significand);
    }
    if (p >= end || (*p != '.' && (*p | 0x20) != 'e')) {
        *at = p;
        return read_integer(r, start, p, significand, out);
    }
    size_t digits = (size_t)(p - first);
    int64_t exponent = 0;
    if (*p == '.') {
        const char *dot = p++;
        if (!is_digit(p, end))
            return fail_expected(r, p, "a digit after the decimal point");
        p = read_digits(p, end, &significand);
        exponent = dot + 1 - p;
        digits += (size_t)-exponent;
    }
    if (p < end && (*p | 0x20) == 'e') {
        p++;
        bool below = p < end && *p == '-';
        p += p < end && (*p == '-' || *p == '+');
        if (!is_digit(p, end))
            return fail_expected(r, p, "a digit of the exponent");
        int64_t e = 0;
        for (; is_digit(p, end); p++)
            if (e < (int64_t)1 << 40)
                e = e * 10 + (*p - '0');
        exponent += below ? -e : e;
    }
    size_t len = (size_t)(p - start);
    double d = digits <= 19 ? stet_number_round((stet_decimal){significand, exponent, negative, false}, start, len)
                            : stet_number_read(start, len);
    if (!isfinite(d))
        return fail(r, STET_INVALID, start, "number %.*s%s is too large for a floating-point number",
                    len > 40 ? 40 : (int)len, start, len > 40 ? "..." : "");
    *at = p;
    *out = stet_value_make_double(d);
    return STET_OK;
}

static stet_status read_word(struct reader *r, const char **p, const char *word, size_t len, stet_value v,
                             stet_value *out) {
    if ((size_t)(r->end - *p) < len || memcmp(*p, word, len))
        return fail_expected(r, *p, "a value");
    *p += len;
    *out = v;
    return STET_OK;
}

/* The end of the value that begins at p, in a text that was parsed before; `end` if it was not. */
static const char *skip_value(const char *p, const char *end) {
    size_t depth = 0;
    do {
        p = skip_space(p, end);
        if (p >= end)
            return end;
        bool high = false;
        switch (*p) {
        case '"':
            for (p = stet_scan_string(p + 1, end, &high); p < end && *p != '"';)
                p = end - p > 2 ? stet_scan_string(p + (*p == '\\' ? 2 : 1), end, &high) : end;
            p += p < end;
            break;
        case '{':
        case '[':
            depth++;
            p++;
            break;
        case '}':
        case ']':
            if (!depth)
                return end;
            depth--;
            p++;
            break;
        case ',':
        case ':':
            p++;
            break;
        default:
            do
                p++;
            while (p < end && !memchr(" \t\r\n,:]}[{\"", *p, 11));
        }
    } while (depth);
    return p;
}

/* A walk over the elements of the array or object at `open`, in a text that was read before: after each true, `key` (of
 * a member) and `value` are where they begin. */
struct walk {
    const char *open, *end;
    const char *key, *value; /* NULL before the first step */
};

static bool next_element(struct walk *w) {
    const char *end = w->end, *p = w->open;
    if (w->value) {
        p = skip_space(skip_value(w->value, end), end);
        if (p >= end || *p != ',')
            return false;
    }
    p = skip_space(p + 1, end);
    if (*w->open == '{') {
        if (p >= end || *p != '"')
            return false;
        w->key = p;
        p = skip_space(skip_value(p, end), end);
        if (p >= end || *p != ':')
            return false;
        p = skip_space(p + 1, end);
    }
    if (p >= end || *p == ']')
        return false;
    w->value = p;
    return true;
}

/* Is the literal at `key` the string `wanted`? */
static bool key_is(const char *key, const char *end, const stet_value *wanted) {
    struct reader r = {.text = key, .end = end};
    stet_value v;
    const char *p = key;
    bool equal = false;
    if (read_string(&r, &p, false, &v) == STET_OK) {
        equal = stet_value_compare_strings(&v, wanted) == 0;
        stet_value_release(v);
    }
    stet_buf_release(&r.scratch);
    return equal;
}

/* Duplicate keys are found when an object closes, and members carry no positions. So the text of the object is walked
 * again to find the place. */
__attribute__((cold)) static stet_status fail_duplicate(struct reader *r, const char *open, const stet_value *key) {
    size_t len, seen = 0;
    const char *bytes = stet_value_as_string(key, &len), *at = open;
    for (struct walk w = {.open = open, .end = r->end}; seen < 2 && next_element(&w);)
        if (key_is(w.key, r->end, key) && ++seen == 2)
            at = w.key;
    stet_buf quoted = STET_BUF(0);
    stet_json_write_string(&quoted, bytes, len);
    stet_status status = fail(r, STET_INVALID, at, "duplicate key %s", stet_buf_cstr(&quoted));
    stet_buf_release(&quoted);
    return status;
}

static stet_status open_container(struct reader *r, const char *p) {
    if (r->frames.len == r->max_depth)
        return fail(r, STET_LIMIT, p, "nested deeper than %zu containers", r->max_depth);
    if (r->stream && r->frames.len == 1 && r->frames.at[0].object && *p == '[')
        r->streaming = is_name(&r->values.at[r->values.len - 1], r->stream->member);
    *stet_vec_add(&r->frames) = (struct frame){.open = p, .start = r->values.len, .object = *p == '{'};
    return STET_OK;
}

static void hand_over(struct reader *r) {
    stet_value v = r->values.at[--r->values.len];
    r->stream->element(r->stream->ctx, v);
    stet_value_release(v);
}

/* Replaces the elements of the innermost container by the container. */
static stet_status close_container(struct reader *r) {
    struct frame *top = &r->frames.at[r->frames.len - 1];
    stet_value *items = r->values.at + top->start, v;
    size_t n = r->values.len - top->start, duplicate;
    if (!top->object)
        v = stet_value_make_array(items, n, r->pool);
    else if (!stet_value_make_object((stet_member *)items, n / 2, &v, &duplicate, r->pool))
        return fail_duplicate(r, top->open, &((stet_member *)items)[duplicate].key);
    r->values.len = top->start;
    push(r, v);
    r->frames.len--;
    r->streaming = r->streaming && r->frames.len > 1;
    return STET_OK;
}

static stet_status read_text(struct reader *r) {
    const char *p = r->text, *end = r->end;
    stet_status status;
    stet_value v;

value:
    p = skip_space(p, end);
    if (p >= end)
        return fail_expected(r, p, "a value");
    switch (*p) {
    case '"':
        status = read_string(r, &p, false, &v);
        break;
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
        status = read_number(r, &p, &v);
        break;
    case 't':
        status = read_word(r, &p, "true", 4, stet_value_make(STET_TAG_BOOL, 1), &v);
        break;
    case 'f':
        status = read_word(r, &p, "false", 5, stet_value_make(STET_TAG_BOOL, 0), &v);
        break;
    case 'n':
        status = read_word(r, &p, "null", 4, stet_value_make(STET_TAG_NULL, 0), &v);
        break;
    case '{':
        status = open_container(r, p);
        if (status)
            return status;
        p = skip_space(p + 1, end);
        if (p < end && *p == '}') {
            p++;
            goto close;
        }
        goto key;
    case '[':
        status = open_container(r, p);
        if (status)
            return status;
        p = skip_space(p + 1, end);
        if (p < end && *p == ']') {
            p++;
            goto close;
        }
        goto value;
    default:
        return fail_expected(r, p, "a value");
    }
    if (status)
        return status;
    push(r, v);

after:
    p = skip_space(p, end);
    if (!r->frames.len)
        return p == end ? STET_OK : fail_expected(r, p, "the end of the text");
    if (r->streaming && r->frames.len == 2)
        hand_over(r);
    bool object = r->frames.at[r->frames.len - 1].object;
    if (p < end && *p == ',') {
        p = skip_space(p + 1, end);
        if (object)
            goto key;
        goto value;
    }
    if (p >= end || *p != (object ? '}' : ']'))
        return fail_expected(r, p, object ? "',' or '}'" : "',' or ']'");
    p++;

close:
    status = close_container(r);
    if (status)
        return status;
    goto after;

key:
    if (p >= end || *p != '"')
        return fail_expected(r, p, "a key in quotes");
    status = read_string(r, &p, true, &v);
    if (status)
        return status;
    push(r, v);
    p = skip_space(p, end);
    if (p >= end || *p != ':')
        return fail_expected(r, p, "':'");
    p++;
    goto value;
}

stet_status stet_json_read_stream(const char *text, size_t len, const stet_json_limits *limits,
                                  const stet_json_stream *stream, stet_value *out, stet_error *err) {
    size_t max_bytes = limits && limits->max_bytes ? limits->max_bytes : DEFAULT_BYTES;
    if (max_bytes > LARGEST_BYTES)
        max_bytes = LARGEST_BYTES;
    struct reader r = {.text = text ? text : "",
                       .max_depth = limits && limits->max_depth ? limits->max_depth : DEFAULT_DEPTH,
                       .stream = stream,
                       .err = err};
    r.end = r.text + len;
    stet_pool pool = STET_POOL_INIT;
    if (len >= STET_POOL_WORTH && !stream) /* a streamed element is freed at once, and its memory is reused */
        r.pool = &pool;
    if (len > max_bytes)
        return fail(&r, STET_LIMIT, r.text + max_bytes, "the text has %zu bytes, more than the %zu allowed", len,
                    max_bytes);
    stet_status status = STET_OK;
    if (len >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3)) {
        status = fail(&r, STET_INVALID, text, "the text begins with a byte order mark");
        stet_hint(err, "save it as UTF-8 without a byte order mark");
    } else {
        stet_vec_reserve(&r.values, 32); /* never NULL from here on */
        if (stream)
            note_wanted(&r);
        status = read_text(&r);
    }
    if (status == STET_OK) {
        assert(r.values.len == 1);
        *out = r.values.at[0];
    } else {
        for (size_t i = 0; i < r.values.len; i++)
            stet_value_release(r.values.at[i]);
    }
    stet_pool_end(&pool);
    stet_vec_release(&r.values);
    stet_vec_release(&r.frames);
    stet_buf_release(&r.scratch);
    return status;
}

stet_status stet_json_read(const char *text, size_t len, const stet_json_limits *limits, stet_value *out,
                           stet_error *err) {
    return stet_json_read_stream(text, len, limits, NULL, out, err);
}

stet_status stet_json_parse(const char *text, size_t len, stet_value *out, stet_error *err) {
    if (!text || !out)
        return stet_fail_null(err);
    return stet_json_read(text, len, NULL, out, err);
}

/* The element of the array or object at `p` that one key of a pointer leads to. */
static const char *descend(const char *p, const char *end, const char *name, size_t len) {
    struct walk w = {.open = p, .end = end};
    if (*p == '[') {
        size_t index = 0;
        if (!len || len > 9 || (len > 1 && *name == '0'))
            return NULL;
        for (size_t i = 0; i < len; i++) {
            if (name[i] < '0' || name[i] > '9')
                return NULL;
            index = index * 10 + (size_t)(name[i] - '0');
        }
        while (next_element(&w))
            if (!index--)
                return w.value;
        return NULL;
    }
    if (*p != '{' || !stet_utf8_valid(name, len))
        return NULL;
    stet_value wanted = stet_value_make_string(name, len, NULL);
    const char *found = NULL;
    while (!found && next_element(&w))
        if (key_is(w.key, end, &wanted))
            found = w.value;
    stet_value_release(wanted);
    return found;
}

bool stet_json_locate(const char *text, size_t len, const char *pointer, size_t *line, size_t *column) {
    const char *end = text + len, *p = skip_space(text, end);
    stet_buf name = STET_BUF(0);
    while (*pointer == '/' && p && p < end) {
        stet_buf_clear(&name);
        for (pointer++; *pointer && *pointer != '/'; pointer++) {
            char c = *pointer;
            if (c == '~' && (pointer[1] == '0' || pointer[1] == '1'))
                c = *++pointer == '0' ? '~' : '/';
            stet_buf_char(&name, c);
        }
        p = descend(p, end, stet_buf_cstr(&name), name.len);
    }
    stet_buf_release(&name);
    if (*pointer || !p || p >= end)
        return false;
    position(text, p, line, column);
    return true;
}
