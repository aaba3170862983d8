/* meet.c - can a path that a command will produce match a pattern that another one reads? */

#include "files/meet.h"

#include <string.h>

#include "base/vec.h"
#include "files/glob.h"

/* Both sides become sequences of these; two sequences meet if some text fits both. */
typedef enum token_kind {
    ONE,  /* this byte */
    ANY,  /* one byte or more of a character, but a slash */
    STAR, /* any bytes but slashes */
    DEEP  /* any bytes */
} token_kind;

typedef struct token {
    token_kind kind;
    char byte;
} token;
typedef STET_VEC(token) tokens;

static void add(tokens *t, token_kind kind, char byte) {
    *stet_vec_add(t) = (token){kind, byte};
}

/* "{in.dir}" is any number of directories, and with the slash behind it none at all; so is "{in}". */
static void of_text(const char *text, tokens *out) {
    while (*text) {
        const char *close = *text == '{' ? strchr(text, '}') : NULL;
        if (!close) {
            add(out, ONE, *text++);
            continue;
        }
        const char *dot = close;
        while (dot > text && *dot != '.')
            dot--;
        bool deep = dot == text || (close - dot == 4 && memcmp(dot, ".dir", 4) == 0);
        add(out, deep ? DEEP : STAR, 0);
        text = close + 1;
        if (deep && *text == '/')
            text++;
    }
}

static void of_pattern(const char *p, tokens *out) {
    for (bool start = true; *p;) {
        if (start && p[0] == '*' && p[1] == '*' && (!p[2] || p[2] == '/')) {
            add(out, DEEP, 0);
            p += p[2] ? 3 : 2;
            continue;
        }
        start = *p == '/';
        if (*p == '\\' && p[1]) {
            add(out, ONE, p[1]);
            p += 2;
        } else if (*p == '*') {
            add(out, STAR, 0);
            p++;
        } else if (*p == '?') {
            add(out, ANY, 0);
            add(out, STAR, 0); /* the rest of a character of several bytes */
            p++;
        } else if (*p == '[') {
            const char *close = p + 1 + (p[1] == '!' || p[1] == '^');
            close += *close == ']';
            while (*close && *close != ']')
                close += *close == '\\' && close[1] ? 2 : 1;
            add(out, ANY, 0);
            add(out, STAR, 0);
            p = *close ? close + 1 : close;
        } else {
            add(out, ONE, *p++);
        }
    }
}

static bool many(const token *t) {
    return t->kind == STAR || t->kind == DEEP;
}

/* Can `t` take the byte or bytes that `one` stands for? */
static bool takes(const token *t, const token *one) {
    bool slash = one->kind == ONE && one->byte == '/';
    if (t->kind == DEEP)
        return true;
    if (t->kind == STAR || t->kind == ANY)
        return !slash;
    return one->kind == ANY ? t->byte != '/' : t->byte == one->byte;
}

/* From the end: row[j] says whether the rest of `a` and the rest of `b` from j on have a text in common. */
static bool meet(const tokens *a, const tokens *b) {
    bool *next = stet_alloc_zero(b->len + 1), *row = stet_alloc_zero(b->len + 1);
    for (size_t i = a->len + 1; i-- > 0;) {
        for (size_t j = b->len + 1; j-- > 0;) {
            bool end_a = i == a->len, end_b = j == b->len;
            const token *x = end_a ? NULL : &a->at[i], *y = end_b ? NULL : &b->at[j];
            bool yes = end_a && end_b;
            if (x && many(x))
                yes |= next[j] || (y && !many(y) && takes(x, y) && row[j + 1]);
            if (y && many(y))
                yes |= row[j + 1] || (x && !many(x) && takes(y, x) && next[j]);
            if (x && y && !many(x) && !many(y))
                yes |= takes(x, y) && next[j + 1];
            row[j] = yes;
        }
        bool *old = next;
        next = row;
        row = old;
    }
    bool yes = next[0];
    stet_free(next);
    stet_free(row);
    return yes;
}

static void below(tokens *t) {
    add(t, ONE, '/');
    add(t, DEEP, 0);
}

/* Is one of them the other, or in it? */
static bool overlap(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b), least = n < m ? n : m;
    const char *longer = n < m ? b : a;
    return memcmp(a, b, least) == 0 && (n == m || longer[least] == '/');
}

bool stet_path_meets(const char *text, const char *wanted, bool pattern) {
    size_t len = strlen(wanted);
    if (!pattern && strncmp(text, wanted, len) == 0 && text[len] == '/') /* wanted is a directory with it */
        return true;
    if (!strchr(text, '{'))
        return pattern ? stet_glob_match(wanted, text) || stet_glob_below(wanted, text) : overlap(text, wanted);
    tokens made = {0}, want = {0};
    of_text(text, &made);
    if (pattern) { /* exceptions are left out: it may meet more than it will match */
        char *plain = stet_strndup(wanted, stet_glob_len(wanted));
        of_pattern(plain, &want);
        stet_free(plain);
    } else
        for (const char *p = wanted; *p; p++)
            add(&want, ONE, *p);
    bool yes = meet(&made, &want);
    if (!yes) { /* it is a directory with what is wanted */
        below(&made);
        yes = meet(&made, &want);
    }
    stet_vec_release(&made);
    stet_vec_release(&want);
    return yes;
}
