/* command_values.c - what a word or a variable of a shell string may become. */

#include "module/command_values.h"

#include <fnmatch.h>
#include <string.h>

bool command_is_unknown(const char *text) {
    return strchr(text, COMMAND_UNKNOWN) != NULL;
}

bool command_forms_add(command_forms *f, const char *text, const char *pattern, bool glob) {
    static const char unknown[] = {COMMAND_UNKNOWN, 0};
    for (size_t i = 0; i < f->len; i++)
        if (strcmp(f->at[i].pattern, pattern) == 0 && strcmp(f->at[i].text, text) == 0 && f->at[i].glob == glob)
            return false;
    if (f->len > COMMAND_MAX_FORMS)
        return false;
    if (f->len == COMMAND_MAX_FORMS)
        text = pattern = unknown;
    *stet_vec_add(f) = (command_form){stet_strdup(text), stet_strdup(pattern), glob};
    return true;
}

void command_forms_release(command_forms *f) {
    for (size_t i = 0; i < f->len; i++) {
        stet_free(f->at[i].text);
        stet_free(f->at[i].pattern);
    }
    stet_vec_release(f);
}

static bool matches(const char *pattern, const char *text, size_t from, size_t to) {
    char *part = stet_strndup(text + from, to - from);
    bool does = fnmatch(pattern, part, 0) == 0;
    stet_free(part);
    return does;
}

/* "#", "##", "%" and "%%": without the shortest or the longest beginning or end that matches. */
static void strip(const char *value, bool end, bool longest, const char *pattern, stet_buf *out) {
    size_t len = strlen(value);
    for (size_t k = 0; k <= len; k++) {
        size_t n = longest ? len - k : k;
        if (!(end ? matches(pattern, value, len - n, len) : matches(pattern, value, 0, n)))
            continue;
        stet_buf_add(out, end ? value : value + n, len - n);
        return;
    }
    stet_buf_str(out, value);
}

/* "/PATTERN/TEXT" and "//PATTERN/TEXT". */
static void replace(const char *value, const char *operation, stet_buf *out) {
    bool all = operation[1] == '/', front = operation[1] == '#', back = operation[1] == '%', done = false;
    const char *begin = operation + 1 + (all || front || back), *slash = strchr(begin, '/');
    char *pattern = stet_strndup(begin, slash ? (size_t)(slash - begin) : strlen(begin));
    size_t len = strlen(value);
    for (size_t i = 0; i < len;) {
        size_t to = len;
        bool here = *pattern && (!done || all) && (!front || i == 0);
        while (here && to > i && !((!back || to == len) && matches(pattern, value, i, to)))
            to--;
        if (here && to > i) {
            stet_buf_str(out, slash ? slash + 1 : "");
            i = to;
            done = true;
        } else {
            stet_buf_char(out, value[i++]);
        }
    }
    stet_free(pattern);
}

static char in_case(char c, bool upper) {
    bool letter = upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z';
    return (char)(letter ? c ^ 0x20 : c);
}

/* ":FROM" and ":FROM:LENGTH", of numbers. */
static bool cut(const char *value, const char *operation, stet_buf *out) {
    char *end;
    long len = (long)strlen(value), from = strtol(operation + 1, &end, 10), n = len;
    if (end == operation + 1 || (*end && *end != ':'))
        return false;
    if (*end == ':') {
        const char *begin = end + 1;
        n = strtol(begin, &end, 10);
        if (end == begin || *end)
            return false;
    }
    from = from < 0 ? from + len : from;
    if (from < 0 || from > len)
        return true;
    long to = n < 0 ? len + n : n < len - from ? from + n : len;
    if (to > from)
        stet_buf_add(out, value + from, (size_t)(to - from));
    return true;
}

bool command_value_change(const char *value, const char *operation, stet_buf *out) {
    char op = operation[0];
    bool twice = op && operation[1] == op;
    if (strlen(value) > 1024 || command_is_unknown(operation))
        return false;
    if (op == '#' || op == '%') {
        strip(value, op == '%', twice, operation + 1 + twice, out);
        return true;
    }
    if (op == '/') {
        replace(value, operation, out);
        return true;
    }
    if (op == ':')
        return cut(value, operation, out);
    if ((op != '^' && op != ',') || operation[1 + twice])
        return false;
    for (size_t i = 0; value[i]; i++)
        stet_buf_char(out, i == 0 || twice ? in_case(value[i], op == '^') : value[i]);
    return true;
}

static size_t add_code(const char *p, size_t most, int base, stet_buf *out) {
    unsigned code = 0;
    size_t n = 0;
    for (; n < most; n++) {
        int c = (unsigned char)p[n], digit = c >= '0' && c <= '9'                     ? c - '0'
                                             : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                                                      : 99;
        if (digit >= base)
            break;
        code = code * (unsigned)base + (unsigned)digit;
    }
    if (n == 0)
        return 0;
    if (most <= 3 || code < 0x80) { /* a byte */
        stet_buf_char(out, code ? (char)code : '\n');
    } else if (code < 0x800) {
        stet_buf_char(out, (char)(0xC0 | code >> 6));
        stet_buf_char(out, (char)(0x80 | (code & 0x3F)));
    } else {
        if (code >= 0x10000)
            stet_buf_char(out, (char)(0xF0 | (code >> 18 & 0x07)));
        stet_buf_char(out, (char)(code >= 0x10000 ? 0x80 | (code >> 12 & 0x3F) : 0xE0 | (code >> 12 & 0x0F)));
        stet_buf_char(out, (char)(0x80 | (code >> 6 & 0x3F)));
        stet_buf_char(out, (char)(0x80 | (code & 0x3F)));
    }
    return n;
}

void command_decode(const char *p, stet_buf *out) {
    static const char letters[] = "abefnrtv", codes[] = "\a\b\033\f\n\r\t\v";
    while (*p) {
        const char *letter = *p == '\\' && p[1] ? strchr(letters, p[1]) : NULL;
        size_t n = 0;
        if (*p != '\\' || !p[1]) {
            stet_buf_char(out, *p++);
        } else if (letter) {
            stet_buf_char(out, codes[letter - letters]);
            p += 2;
        } else if (p[1] >= '0' && p[1] <= '7') {
            p += 1 + add_code(p + 1, 3, 8, out);
        } else if ((p[1] == 'x' && (n = add_code(p + 2, 2, 16, out))) ||
                   (p[1] == 'u' && (n = add_code(p + 2, 4, 16, out))) ||
                   (p[1] == 'U' && (n = add_code(p + 2, 8, 16, out)))) {
            p += 2 + n;
        } else {
            stet_buf_char(out, p[1]);
            p += 2;
        }
    }
}
