/* toml_scan.c - the tokens of TOML: white space, comments, keys, strings, numbers, dates. */

#include "base/toml_scan.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"

void stet_toml_place(const char *text, size_t at, size_t *line, size_t *column) {
    *line = *column = 1;
    for (size_t i = 0; i < at; i++) {
        if (text[i] == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)text[i] & 0xc0) != 0x80) {
            ++*column;
        }
    }
}

bool stet_toml_fail(stet_toml_scan *s, size_t at, stet_status status, const char *format, ...) {
    assert(s->status == STET_OK);
    s->status = status;
    s->at = at;
    if (!s->err)
        return false;
    size_t line, column;
    stet_toml_place(s->text, at, &line, &column);
    va_list args;
    va_start(args, format);
    stet_vfail(s->err, status, format, args);
    va_end(args);
    stet_fail_in(s->err, "line %zu, column %zu", line, column);
    stet_detail(s->err, "line", stet_value_int((int64_t)line));
    stet_detail(s->err, "column", stet_value_int((int64_t)column));
    return false;
}

/* Reports a syntax error at the current position. */
static bool bad(stet_toml_scan *s, const char *what) {
    return stet_toml_fail(s, s->at, STET_INVALID, "%s", what);
}

static int peek_at(const stet_toml_scan *s, size_t ahead) {
    return ahead < s->len - s->at ? (unsigned char)s->text[s->at + ahead] : -1;
}

int stet_toml_peek(const stet_toml_scan *s) {
    return peek_at(s, 0);
}

bool stet_toml_take(stet_toml_scan *s, char c) {
    if (stet_toml_peek(s) != (unsigned char)c)
        return false;
    s->at++;
    return true;
}

void stet_toml_skip_blank(stet_toml_scan *s) {
    while (stet_toml_peek(s) == ' ' || stet_toml_peek(s) == '\t')
        s->at++;
}

bool stet_toml_take_newline(stet_toml_scan *s) {
    if (stet_toml_take(s, '\n'))
        return true;
    if (stet_toml_peek(s) != '\r' || peek_at(s, 1) != '\n')
        return false;
    s->at += 2;
    return true;
}

/* Control characters other than tabs and newlines are forbidden everywhere; the caller has already handled newlines. */
static bool is_control(int c) {
    return (c >= 0 && c < 0x20 && c != '\t') || c == 0x7f;
}

static bool bad_control(stet_toml_scan *s) {
    if (stet_toml_peek(s) == '\r')
        return bad(s, "a carriage return that no line feed follows");
    return stet_toml_fail(s, s->at, STET_INVALID, "control character U+%04X is not allowed here",
                          (unsigned)stet_toml_peek(s));
}

static bool at_newline(const stet_toml_scan *s) {
    return stet_toml_peek(s) == '\n' || (stet_toml_peek(s) == '\r' && peek_at(s, 1) == '\n');
}

bool stet_toml_skip_comment(stet_toml_scan *s) {
    if (stet_toml_peek(s) != '#')
        return true;
    while (s->at < s->len && !at_newline(s)) {
        if (is_control(stet_toml_peek(s)))
            return bad_control(s);
        s->at++;
    }
    return true;
}

bool stet_toml_skip_space(stet_toml_scan *s) {
    do {
        stet_toml_skip_blank(s);
        if (!stet_toml_skip_comment(s))
            return false;
    } while (stet_toml_take_newline(s));
    return true;
}

bool stet_toml_end_line(stet_toml_scan *s) {
    stet_toml_skip_blank(s);
    if (!stet_toml_skip_comment(s))
        return false;
    if (s->at == s->len || stet_toml_take_newline(s))
        return true;
    return is_control(stet_toml_peek(s)) ? bad_control(s) : bad(s, "expected the end of the line");
}

static int hex_digit(int c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Reads \uXXXX or \UXXXXXXXX; the scanner is at the letter. */
static bool unicode_escape(stet_toml_scan *s) {
    size_t begin = s->at - 1;
    int digits = s->text[s->at] == 'u' ? 4 : 8;
    uint32_t code = 0;
    for (int i = 1; i <= digits; i++) {
        int digit = hex_digit(peek_at(s, (size_t)i));
        if (digit < 0)
            return stet_toml_fail(s, begin, STET_INVALID, "expected %d hexadecimal digits", digits);
        code = code << 4 | (uint32_t)digit;
    }
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return stet_toml_fail(s, begin, STET_INVALID, "U+%04X is not a character", (unsigned)code);
    char utf8[4];
    stet_buf_add(&s->scratch, utf8, stet_utf8_encode(code, utf8));
    s->at += (size_t)digits + 1;
    return true;
}

/* A backslash at the end of a line: skips it, the newline and all white space before the next word. */
static bool line_escape(stet_toml_scan *s) {
    size_t begin = s->at - 1;
    stet_toml_skip_blank(s);
    if (!stet_toml_take_newline(s))
        return stet_toml_fail(s, begin, STET_INVALID, "a backslash before white space must end its line");
    do
        stet_toml_skip_blank(s);
    while (stet_toml_take_newline(s));
    return true;
}

static bool escape(stet_toml_scan *s, bool multi_line) {
    static const char letters[] = "btnfr\"\\", meanings[] = "\b\t\n\f\r\"\\";
    s->at++;
    int c = stet_toml_peek(s);
    const char *known = c > 0 ? strchr(letters, c) : NULL;
    if (known) {
        stet_buf_char(&s->scratch, meanings[known - letters]);
        s->at++;
        return true;
    }
    if (c == 'u' || c == 'U')
        return unicode_escape(s);
    if (multi_line && (c == ' ' || c == '\t' || at_newline(s)))
        return line_escape(s);
    return stet_toml_fail(s, s->at - 1, STET_INVALID,
                          "unknown escape: expected one of \\b \\t \\n \\f \\r \\\" \\\\ "
                          "\\uXXXX \\UXXXXXXXX");
}

/* Quotes inside a multi-line string: one or two are part of it, also right before the closing three. Returns whether
 * the string ended. */
static bool quotes(stet_toml_scan *s, char quote) {
    size_t run = 0;
    while (run < 5 && peek_at(s, run) == (unsigned char)quote)
        run++;
    bool end = run >= 3;
    for (size_t i = end ? 3 : 0; i < run; i++)
        stet_buf_char(&s->scratch, quote);
    s->at += run;
    return end;
}

/* Reads a string of any of the four kinds; the scanner is at its opening quote. `*bytes` is in the arena. */
static bool string(stet_toml_scan *s, bool may_be_multi_line, const char **bytes, size_t *len) {
    size_t begin = s->at;
    char quote = s->text[s->at];
    bool multi_line = peek_at(s, 1) == (unsigned char)quote && peek_at(s, 2) == (unsigned char)quote;
    if (multi_line && !may_be_multi_line)
        return bad(s, "a key can't be a multi-line string");
    s->at += multi_line ? 3 : 1;
    if (multi_line)
        stet_toml_take_newline(s);
    stet_buf_clear(&s->scratch);
    for (;;) {
        int c = stet_toml_peek(s);
        if (c < 0) {
            return stet_toml_fail(s, begin, STET_INVALID, "a string without its closing quotes");
        } else if (c == (unsigned char)quote) {
            if (!multi_line) {
                s->at++;
                break;
            }
            if (quotes(s, quote))
                break;
        } else if (c == '\\' && quote == '"') {
            if (!escape(s, multi_line))
                return false;
        } else if (at_newline(s)) {
            if (!multi_line)
                return stet_toml_fail(s, begin, STET_INVALID, "a string without its closing quote on the same line");
            stet_toml_take_newline(s);
            stet_buf_char(&s->scratch, '\n');
        } else if (is_control(c)) {
            return bad_control(s);
        } else {
            stet_buf_char(&s->scratch, (char)c);
            s->at++;
        }
    }
    *bytes = stet_arena_strndup(s->arena, stet_buf_cstr(&s->scratch), s->scratch.len);
    *len = s->scratch.len;
    return true;
}

static bool is_bare(int c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

bool stet_toml_key_part(stet_toml_scan *s, const char **key, size_t *len) {
    int c = stet_toml_peek(s);
    if (c == '"' || c == '\'')
        return string(s, false, key, len);
    size_t begin = s->at;
    while (is_bare(stet_toml_peek(s)))
        s->at++;
    if (s->at == begin) {
        if (is_control(c) && !at_newline(s))
            return bad_control(s);
        return bad(s, "expected a key: letters, digits, \"_\" and \"-\", or a quoted string");
    }
    *key = s->text + begin;
    *len = s->at - begin;
    return true;
}

static bool is_digit(int c) {
    return c >= '0' && c <= '9';
}

/* Reads one or more digits of a base, with single underscores between them, into the scratch buffer. */
static bool digits(stet_toml_scan *s, int base) {
    for (bool first = true;; first = false) {
        int digit = hex_digit(stet_toml_peek(s));
        if (digit < 0 || digit >= base)
            return bad(s, first ? "expected a digit" : "expected a digit after \"_\"");
        do {
            stet_buf_char(&s->scratch, (char)stet_toml_peek(s));
            s->at++;
            digit = hex_digit(stet_toml_peek(s));
        } while (digit >= 0 && digit < base);
        if (!stet_toml_take(s, '_'))
            return true;
    }
}

static bool integer(stet_toml_scan *s, size_t begin, const char *text, int base, bool negative, stet_toml_scalar *out) {
    uint64_t n = 0, limit = negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
    for (; *text; text++) {
        uint64_t digit = (uint64_t)hex_digit((unsigned char)*text);
        if (n > (limit - digit) / (uint64_t)base)
            return stet_toml_fail(s, begin, STET_INVALID, "an integer outside the range of 64 bits");
        n = n * (uint64_t)base + digit;
    }
    out->type = STET_TYPE_INT;
    out->integer = negative ? (int64_t)(0 - n) : (int64_t)n;
    return true;
}

static bool number(stet_toml_scan *s, stet_toml_scalar *out) {
    size_t begin = s->at;
    bool negative = stet_toml_peek(s) == '-', sign = negative || stet_toml_peek(s) == '+';
    s->at += sign;
    int c = stet_toml_peek(s), next = peek_at(s, 1);
    if ((c == 'i' && next == 'n' && peek_at(s, 2) == 'f') || (c == 'n' && next == 'a' && peek_at(s, 2) == 'n'))
        return stet_toml_fail(s, begin, STET_INVALID, "inf and nan are not supported: values have no such numbers");
    stet_buf_clear(&s->scratch);
    int base = c != '0' ? 10 : next == 'x' ? 16 : next == 'o' ? 8 : next == 'b' ? 2 : 10;
    if (base != 10) {
        if (sign)
            return stet_toml_fail(s, begin, STET_INVALID, "a number in base %d takes no sign", base);
        s->at += 2;
        return digits(s, base) && integer(s, begin, stet_buf_cstr(&s->scratch), base, false, out);
    }
    if (negative)
        stet_buf_char(&s->scratch, '-');
    size_t whole = s->scratch.len;
    if (!digits(s, 10))
        return false;
    if (c == '0' && s->scratch.len > whole + 1)
        return stet_toml_fail(s, begin, STET_INVALID, "a number with leading zeros");
    c = stet_toml_peek(s);
    if (c != '.' && c != 'e' && c != 'E')
        return integer(s, begin, stet_buf_cstr(&s->scratch) + whole, 10, negative, out);
    if (stet_toml_take(s, '.')) {
        stet_buf_char(&s->scratch, '.');
        if (!digits(s, 10))
            return false;
    }
    c = stet_toml_peek(s);
    if (c == 'e' || c == 'E') {
        s->at++;
        stet_buf_char(&s->scratch, 'e');
        if (stet_toml_peek(s) == '+' || stet_toml_peek(s) == '-')
            stet_buf_char(&s->scratch, s->text[s->at++]);
        if (!digits(s, 10))
            return false;
    }
    out->type = STET_TYPE_DOUBLE;
    out->number = stet_number_read(stet_buf_cstr(&s->scratch), s->scratch.len);
    if (!isfinite(out->number))
        return stet_toml_fail(s, begin, STET_INVALID, "a number too large for a double");
    return true;
}

/* Reads exactly `n` digits as a number. */
static bool fixed(stet_toml_scan *s, int n, int *out) {
    *out = 0;
    for (int i = 0; i < n; i++, s->at++) {
        if (!is_digit(stet_toml_peek(s)))
            return stet_toml_fail(s, s->at, STET_INVALID, "expected %d digits in this part of a date or time", n);
        *out = *out * 10 + (stet_toml_peek(s) - '0');
    }
    return true;
}

static bool expect(stet_toml_scan *s, char c) {
    if (stet_toml_take(s, c))
        return true;
    return stet_toml_fail(s, s->at, STET_INVALID, "expected \"%c\" in a date or time", c);
}

static bool date(stet_toml_scan *s) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    size_t begin = s->at;
    int year, month, day;
    if (!fixed(s, 4, &year) || !expect(s, '-') || !fixed(s, 2, &month) || !expect(s, '-') || !fixed(s, 2, &day))
        return false;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (month < 1 || month > 12 || day < 1 || day > days[month - 1] + (month == 2 && leap))
        return stet_toml_fail(s, begin, STET_INVALID, "there is no such day");
    stet_buf_add(&s->scratch, s->text + begin, s->at - begin);
    return true;
}

static bool time_of_day(stet_toml_scan *s) {
    size_t begin = s->at;
    int hour, minute, second;
    if (!fixed(s, 2, &hour) || !expect(s, ':') || !fixed(s, 2, &minute) || !expect(s, ':') || !fixed(s, 2, &second))
        return false;
    /* 60 is a leap second (RFC 3339) */
    if (hour > 23 || minute > 59 || second > 60)
        return stet_toml_fail(s, begin, STET_INVALID, "there is no such time");
    if (stet_toml_take(s, '.')) {
        if (!is_digit(stet_toml_peek(s)))
            return bad(s, "expected a digit after the decimal point");
        while (is_digit(stet_toml_peek(s)))
            s->at++;
    }
    stet_buf_add(&s->scratch, s->text + begin, s->at - begin);
    return true;
}

static bool offset(stet_toml_scan *s) {
    if (stet_toml_take(s, 'Z') || stet_toml_take(s, 'z')) {
        stet_buf_char(&s->scratch, 'Z');
        return true;
    }
    size_t begin = s->at;
    int hour, minute;
    if (!stet_toml_take(s, '+') && !stet_toml_take(s, '-'))
        return true; /* a local time */
    if (!fixed(s, 2, &hour) || !expect(s, ':') || !fixed(s, 2, &minute))
        return false;
    if (hour > 23 || minute > 59)
        return stet_toml_fail(s, begin, STET_INVALID, "there is no such offset");
    stet_buf_add(&s->scratch, s->text + begin, s->at - begin);
    return true;
}

static bool date_or_time(stet_toml_scan *s, bool has_date, stet_toml_scalar *out) {
    stet_buf_clear(&s->scratch);
    if (has_date) {
        if (!date(s))
            return false;
        int c = stet_toml_peek(s);
        if (c == 'T' || c == 't' || (c == ' ' && is_digit(peek_at(s, 1)))) {
            s->at++;
            stet_buf_char(&s->scratch, 'T');
            if (!time_of_day(s) || !offset(s))
                return false;
        }
    } else if (!time_of_day(s)) {
        return false;
    }
    out->type = STET_TYPE_STRING;
    out->bytes = stet_arena_strndup(s->arena, stet_buf_cstr(&s->scratch), s->scratch.len);
    out->len = s->scratch.len;
    return true;
}

static bool word(stet_toml_scan *s, const char *w) {
    size_t len = strlen(w);
    if (len > s->len - s->at || memcmp(s->text + s->at, w, len) != 0)
        return false;
    s->at += len;
    return true;
}

bool stet_toml_scalar_here(stet_toml_scan *s, stet_toml_scalar *out) {
    int c = stet_toml_peek(s);
    *out = (stet_toml_scalar){0};
    if (c == '"' || c == '\'') {
        out->type = STET_TYPE_STRING;
        return string(s, true, &out->bytes, &out->len);
    }
    if (c == 't' || c == 'f') {
        out->type = STET_TYPE_BOOL;
        out->boolean = c == 't';
        if (word(s, c == 't' ? "true" : "false"))
            return true;
    } else if (is_digit(c) && is_digit(peek_at(s, 1))) {
        if (peek_at(s, 2) == ':')
            return date_or_time(s, false, out);
        if (is_digit(peek_at(s, 2)) && is_digit(peek_at(s, 3)) && peek_at(s, 4) == '-')
            return date_or_time(s, true, out);
    }
    if (is_digit(c) || c == '+' || c == '-' || c == 'i' || c == 'n')
        return number(s, out);
    if (is_control(c) && !at_newline(s))
        return bad_control(s);
    return bad(s, "expected a value: a string in quotes, a number, true, false, a date, an array or an inline table");
}
