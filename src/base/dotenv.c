/* dotenv.c - reads `.env` files. */

#include "base/dotenv.h"

#include <string.h>

#include "base/buf.h"

#define MAX_BYTES ((size_t)1 << 20)

typedef struct reader {
    const char *text, *p, *end;
    stet_error *err;
} reader;

static stet_status refuse(const reader *r, const char *at, const char *what, const char *hint) {
    size_t line = 1, column = 1;
    for (const char *p = r->text; p < at; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    stet_fail(r->err, STET_INVALID, "line %zu, column %zu: %s", line, column, what);
    stet_hint(r->err, "%s", hint);
    return STET_INVALID;
}

static void skip_blanks(reader *r) {
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\r'))
        r->p++;
}

static void skip_line(reader *r) {
    while (r->p < r->end && *r->p != '\n')
        r->p++;
}

static bool in_name(char c, bool first) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || (!first && c >= '0' && c <= '9');
}

#define DOLLAR_HINT "write \\$ in double quotes, or put the value in single quotes"

static stet_status quoted(reader *r, stet_buf *out) {
    const char *begin = r->p;
    char quote = *r->p++;
    while (r->p < r->end && *r->p != quote) {
        char c = *r->p++;
        if (quote == '"' && c == '$')
            return refuse(r, r->p - 1, "variables in values are not expanded", DOLLAR_HINT);
        if (quote == '"' && c == '\\' && r->p < r->end) {
            static const char letters[] = "nrt\\\"$", meant[] = "\n\r\t\\\"$";
            const char *at = *r->p ? strchr(letters, *r->p) : NULL;
            if (!at)
                return refuse(r, r->p - 1, "an unknown escape", "write \\\\ for a backslash");
            c = meant[at - letters];
            r->p++;
        }
        stet_buf_char(out, c);
    }
    if (r->p == r->end)
        return refuse(r, begin, "a quote that is never closed", "close it");
    r->p++;
    skip_blanks(r);
    if (r->p < r->end && *r->p != '\n' && *r->p != '#')
        return refuse(r, r->p, "text after a value in quotes", "remove it, or put # before a comment");
    return STET_OK;
}

static stet_status bare(reader *r, stet_buf *out) {
    const char *begin = r->p;
    while (r->p < r->end && *r->p != '\n' &&
           !(*r->p == '#' && (r->p == begin || r->p[-1] == ' ' || r->p[-1] == '\t'))) {
        if (*r->p == '$')
            return refuse(r, r->p, "variables in values are not expanded", DOLLAR_HINT);
        r->p++;
    }
    const char *end = r->p;
    while (end > begin && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    stet_buf_add(out, begin, (size_t)(end - begin));
    return STET_OK;
}

static stet_status take_line(reader *r, stet_value *made) {
    skip_blanks(r);
    if (r->p == r->end || *r->p == '\n' || *r->p == '#')
        return STET_OK;
    if (r->end - r->p > 7 && strncmp(r->p, "export", 6) == 0 && (r->p[6] == ' ' || r->p[6] == '\t')) {
        r->p += 6;
        skip_blanks(r);
    }
    const char *name = r->p;
    while (r->p < r->end && in_name(*r->p, r->p == name))
        r->p++;
    size_t len = (size_t)(r->p - name);
    skip_blanks(r);
    if (len == 0 || r->p == r->end || *r->p != '=')
        return refuse(r, name, "not NAME=VALUE", "write one variable per line, or # before a comment");
    if (stet_value_find(*made, name, len, NULL))
        return refuse(r, name, "a variable that stands twice", "remove one of them");
    r->p++;
    skip_blanks(r);
    const char *begin = r->p;
    stet_buf text = STET_BUF(0);
    bool quotes = r->p < r->end && (*r->p == '"' || *r->p == '\'');
    stet_status status = quotes ? quoted(r, &text) : bare(r, &text);
    stet_value v = stet_value_null();
    if (status == STET_OK && stet_value_string_checked(stet_buf_cstr(&text), text.len, &v, NULL) != STET_OK)
        status = refuse(r, begin, "text that is not UTF-8", "write it in UTF-8");
    if (status == STET_OK)
        stet_value_put_n(made, name, len, v);
    stet_buf_release(&text);
    return status;
}

stet_status stet_dotenv_parse(const char *text, size_t len, stet_value *out, stet_error *err) {
    reader r = {text, text, text + len, err};
    if (len > MAX_BYTES)
        return stet_fail(err, STET_LIMIT, "%zu bytes; the maximum is %zu", len, MAX_BYTES);
    const char *nul = len ? memchr(text, 0, len) : NULL;
    if (nul)
        return refuse(&r, nul, "a NUL character", "remove it");
    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        r.p += 3;
    stet_value made = stet_value_object();
    stet_status status = STET_OK;
    while (status == STET_OK && r.p < r.end) {
        status = take_line(&r, &made);
        skip_line(&r);
        r.p += r.p < r.end;
    }
    if (status == STET_OK)
        *out = made;
    else
        stet_value_release(made);
    return status;
}
