/* regex.c - checks a POSIX extended regular expression before it is compiled, and bounds what it may match. */

#include "base/regex.h"

#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

struct stet_regex {
    regex_t compiled;
    bool by_character; /* compiled in the UTF-8 locale; else the C locale of bytes, which is much faster */
    stet_regex *wide;  /* for texts that are not ASCII; made on first use */
    size_t len;
    char pattern[];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t bytes_locale, utf8_locale;

static void make_locales(void) {
    bytes_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    utf8_locale = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
    if (utf8_locale == (locale_t)0)
        utf8_locale = bytes_locale; /* without it, each character above ASCII counts as several */
}

static bool is_ascii(const char *bytes, size_t len) {
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)bytes[i] >= 0x80)
            return false;
    return true;
}

/* A scan over a pattern before it is compiled; `at` is the current byte. */
typedef struct scan {
    const char *p;
    size_t len, at;
    unsigned long repeat; /* product of bounds so far */
    stet_error *err;
} scan;

static stet_status bracket(scan *s) {
    size_t i = s->at + 1;
    if (i < s->len && s->p[i] == '^')
        i++;
    for (bool first = true; i < s->len; first = false) {
        char c = s->p[i];
        if (c == ']' && !first) {
            s->at = i + 1;
            return STET_OK;
        }
        if (c == '\\') {
            if (i + 1 >= s->len || s->p[i + 1] != '\\')
                return stet_fail(s->err, STET_INVALID,
                                 "pattern, byte %zu: inside [...] a backslash stands for itself: write it twice, put "
                                 "\"]\" first and \"-\" last, and use [:digit:], [:alpha:] and the like",
                                 i);
            i += 2;
        } else if (c == '[' && i + 1 < s->len && strchr(":.=", s->p[i + 1]) && s->p[i + 1]) {
            char close[3] = {s->p[i + 1], ']', '\0'};
            if (close[0] != ':')
                return stet_fail(s->err, STET_INVALID, "pattern, byte %zu: collating elements are not supported", i);
            const char *end = memmem(s->p + i + 2, s->len - i - 2, close, 2);
            if (!end)
                break;
            i = (size_t)(end - s->p) + 2;
        } else {
            i++;
        }
    }
    return stet_fail(s->err, STET_INVALID, "pattern, byte %zu: \"[\" without its \"]\"", s->at);
}

/* {m}, {m,} or {m,n}. The repeated part is compiled that many times, so the product of bounds is limited. */
static stet_status bounds(scan *s) {
    unsigned long low = 0, high = 0;
    size_t i = s->at + 1, digits = 0;
    for (; i < s->len && s->p[i] >= '0' && s->p[i] <= '9'; i++, digits++)
        if ((low = low * 10 + (unsigned long)(s->p[i] - '0')) > STET_REGEX_MAX_REPEAT)
            break;
    high = low;
    if (digits && i < s->len && s->p[i] == ',') {
        size_t begin = ++i;
        high = 0;
        for (; i < s->len && s->p[i] >= '0' && s->p[i] <= '9'; i++)
            if ((high = high * 10 + (unsigned long)(s->p[i] - '0')) > STET_REGEX_MAX_REPEAT)
                break;
        if (i == begin)
            high = low;
    }
    if (low > STET_REGEX_MAX_REPEAT || high > STET_REGEX_MAX_REPEAT)
        return stet_fail(s->err, STET_LIMIT, "pattern, byte %zu: a bound of more than %d", s->at,
                         STET_REGEX_MAX_REPEAT);
    if (!digits || i >= s->len || s->p[i] != '}' || high < low)
        return stet_fail(s->err, STET_INVALID,
                         "pattern, byte %zu: expected {m}, {m,} or {m,n}; a brace that stands for itself is \\{",
                         s->at);
    s->repeat *= high > 1 ? high : 1;
    if (s->repeat > STET_REGEX_MAX_REPEAT)
        return stet_fail(s->err, STET_LIMIT, "pattern, byte %zu: the bounds multiply to more than %d", s->at,
                         STET_REGEX_MAX_REPEAT);
    s->at = i + 1;
    return STET_OK;
}

static stet_status escape(scan *s) {
    unsigned char next = s->at + 1 < s->len ? (unsigned char)s->p[s->at + 1] : '\0';
    bool punctuation = next > ' ' && next < 0x7f && !strchr("<>`'", next) &&
                       !((next >= '0' && next <= '9') || ((next | 0x20) >= 'a' && (next | 0x20) <= 'z'));
    if (!punctuation && !(next && strchr("wWsSbB", next)))
        return stet_fail(s->err, STET_INVALID,
                         "pattern, byte %zu: this is a POSIX extended regular expression, where \\%c is not known: "
                         "write [0-9] for \\d, and no back references",
                         s->at, next > ' ' && next < 0x7f ? next : '?');
    s->at += 2;
    return STET_OK;
}

static stet_status acceptable(scan *s) {
    enum { NOTHING, ATOM, QUANTIFIED } before = NOTHING; /* what a quantifier would apply to */
    while (s->at < s->len) {
        char c = s->p[s->at];
        stet_status status = STET_OK;
        if (c == '*' || c == '+' || c == '?' || c == '{') {
            if (before == QUANTIFIED)
                return stet_fail(s->err, STET_INVALID,
                                 "pattern, byte %zu: \"%c\" after a quantifier (lazy and stacked quantifiers are not "
                                 "POSIX)",
                                 s->at, c);
            if (before == NOTHING)
                return stet_fail(s->err, STET_INVALID, "pattern, byte %zu: \"%c\" has nothing to repeat", s->at, c);
            if (c == '{')
                status = bounds(s);
            else
                s->at++;
            before = QUANTIFIED;
        } else if (c == '[') {
            status = bracket(s);
            before = ATOM;
        } else if (c == '\\') {
            status = escape(s);
            before = ATOM;
        } else if (c == '(' && s->at + 1 < s->len && s->p[s->at + 1] == '?') {
            return stet_fail(s->err, STET_INVALID, "pattern, byte %zu: (?...) is not POSIX", s->at);
        } else {
            before = c == '(' || c == '|' || c == '^' ? NOTHING : ATOM;
            s->at++;
        }
        if (status != STET_OK)
            return status;
    }
    return STET_OK;
}

static stet_status compile(stet_regex *r, stet_error *err) {
    locale_t old = uselocale(r->by_character ? utf8_locale : bytes_locale);
    int code = regcomp(&r->compiled, r->pattern, REG_EXTENDED | REG_NOSUB);
    uselocale(old);
    if (code == 0)
        return STET_OK;
    char why[200];
    regerror(code, NULL, why, sizeof why);
    return stet_fail(err, STET_INVALID, "pattern: %s", why);
}

static stet_regex *make(const char *pattern, size_t len, bool by_character) {
    stet_regex *r = stet_alloc(sizeof *r + len + 1);
    r->by_character = by_character;
    r->wide = NULL;
    r->len = len;
    memcpy(r->pattern, pattern, len);
    r->pattern[len] = '\0';
    return r;
}

stet_status stet_regex_compile(const char *pattern, size_t len, stet_regex **out, stet_error *err) {
    if (len > STET_REGEX_MAX_BYTES)
        return stet_fail(err, STET_LIMIT, "pattern: %zu bytes, more than the %d allowed", len, STET_REGEX_MAX_BYTES);
    if (memchr(pattern, '\0', len) || !stet_utf8_valid(pattern, len))
        return stet_fail(err, STET_INVALID, "pattern: holds a NUL or is not valid UTF-8");
    scan s = {pattern, len, 0, 1, err};
    stet_status status = acceptable(&s);
    if (status != STET_OK)
        return status;
    pthread_once(&once, make_locales);
    stet_regex *r = make(pattern, len, !is_ascii(pattern, len));
    status = compile(r, err);
    if (status != STET_OK) {
        free(r);
        return status;
    }
    *out = r;
    return STET_OK;
}

static bool matches(const stet_regex *r, const char *text, size_t len) {
    regmatch_t range = {.rm_so = 0, .rm_eo = (regoff_t)len};
    locale_t old = uselocale(r->by_character ? utf8_locale : bytes_locale);
    int code = regexec(&r->compiled, text, 0, &range, REG_STARTEND); /* a text may hold NULs */
    uselocale(old);
    return code == 0;
}

bool stet_regex_matches(stet_regex *r, const char *text, size_t len) {
    if (len > INT_MAX)
        return false; /* regoff_t is an int */
    if (r->by_character || is_ascii(text, len))
        return matches(r, text, len);
    if (!r->wide) {
        stet_regex *wide = make(r->pattern, r->len, true);
        if (compile(wide, NULL) != STET_OK) {
            free(wide);
            return matches(r, text, len);
        }
        r->wide = wide;
    }
    return matches(r->wide, text, len);
}

void stet_regex_free(stet_regex *r) {
    if (!r)
        return;
    stet_regex_free(r->wide);
    regfree(&r->compiled);
    free(r);
}
