/* truth.c - asks of what is used as a condition in a pattern whether it is a reference.
 *
 * While a pattern is built, a reference is an object, and so always true and equal to nothing else. A proxy is not asked
 * about that, so the text is: whatever stands in a condition, before `&&`, `||`, `??` and `?`, after `!`, or on either
 * side of `==` and its like is put into a call of `$truth_` (builder.js), which refuses references and passes on all
 * else. Only an operand that is a name, something in brackets, or a chain of members, calls and indexes can be a
 * reference: all other operators compute with it, which is refused, or make something else of it.
 *
 * Functions that travel as text lose these calls again (`functionText`), and positions are those without them.
 */

#include "engine.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NONE ((size_t)-1)

typedef struct cut {
    size_t at;
    bool close;
} cut;

typedef struct reading {
    const char *text;
    const source_token *at;
    size_t count;
    size_t *match; /* of a bracket, the other one; NONE if there is none */
    STET_VEC(cut) cuts;
} reading;

static bool is(const reading *r, size_t i, const char *word) {
    return i < r->count && r->at[i].end - r->at[i].start == strlen(word) &&
           memcmp(r->text + r->at[i].start, word, strlen(word)) == 0;
}

static bool is_one_of(const reading *r, size_t i, const char *const *words) {
    for (; *words; words++)
        if (is(r, i, *words))
            return true;
    return false;
}

static char kind(const reading *r, size_t i) {
    return i < r->count ? r->at[i].kind : 0;
}

static bool is_dot(const reading *r, size_t i) {
    return is(r, i, ".") || is(r, i, "?.");
}

/* A word that is an operand, and not one of the language. */
static bool is_operand(const reading *r, size_t i) {
    static const char *const words[] = {
        "return", "typeof", "void",       "delete",   "new",   "in",      "of",     "case",   "else",    "do",  "throw",
        "yield",  "await",  "instanceof", "if",       "while", "for",     "switch", "catch",  "with",    "let", "const",
        "var",    "static", "class",      "function", "async", "extends", "import", "export", "default", NULL};
    return kind(r, i) == 'w' && ((i > 0 && is_dot(r, i - 1)) || !is_one_of(r, i, words));
}

/* Does `if (...)` or the like end here? */
static bool ends_head(const reading *r, size_t i) {
    static const char *const heads[] = {"if", "while", "for", "switch", "catch", "with", NULL};
    return kind(r, i) == ')' && r->match[i] != NONE && r->match[i] > 0 && is_one_of(r, r->match[i] - 1, heads) &&
           !(r->match[i] > 1 && is_dot(r, r->match[i] - 2));
}

static bool ends_operand(const reading *r, size_t i) {
    return is_operand(r, i) || (kind(r, i) == ')' && !ends_head(r, i)) || kind(r, i) == ']';
}

/* The first token of the operand that ends at `i`. */
static size_t operand_before(const reading *r, size_t i) {
    static const char *const prefixes[] = {"typeof", "void", "delete", "new", "!", "~", "++", "--", "#", NULL};
    if (!ends_operand(r, i) && kind(r, i) != 's')
        return NONE;
    for (;;) {
        if (kind(r, i) == ')' || kind(r, i) == ']') {
            i = r->match[i];
            if (i == NONE)
                return NONE;
            if (i > 0 && (kind(r, i - 1) == 's' || kind(r, i - 1) == 'e'))
                return NONE; /* of a text */
            if (i > 0 && ends_operand(r, i - 1)) {
                i--;
                continue;
            }
        } else if (kind(r, i) == 's' && i > 0 && ends_operand(r, i - 1)) {
            return NONE; /* a template with a tag */
        }
        if (i == 0 || !is_dot(r, i - 1))
            break;
        if (i < 2 || (!ends_operand(r, i - 2) && kind(r, i - 2) != 's'))
            return NONE;
        i -= 2;
    }
    return i > 0 && is_one_of(r, i - 1, prefixes) ? NONE : i;
}

/* The last token of the operand that begins at `i`. */
static size_t operand_after(const reading *r, size_t i) {
    if (kind(r, i) == '(' || kind(r, i) == '[')
        i = r->match[i];
    else if (!is_operand(r, i) && kind(r, i) != 's')
        return NONE;
    if (i == NONE)
        return NONE;
    for (;;) {
        size_t next = i + 1;
        if (is_dot(r, next)) {
            bool bracket = kind(r, next + 1) == '(' || kind(r, next + 1) == '[';
            if (!bracket && kind(r, next + 1) != 'w')
                return NONE;
            i = bracket ? r->match[next + 1] : next + 1;
        } else if (kind(r, next) == '(' || kind(r, next) == '[') {
            i = r->match[next];
        } else {
            break;
        }
        if (i == NONE)
            return NONE;
    }
    bool other = is(r, i + 1, "=>") || is(r, i + 1, "++") || is(r, i + 1, "--") || kind(r, i + 1) == '`' ||
                 kind(r, i + 1) == 's';
    return other ? NONE : i;
}

static void ask(reading *r, size_t first, size_t last) {
    if (first == NONE || last == NONE || first > last || last >= r->count)
        return;
    size_t start = r->at[first].start, end = r->at[last].end;
    size_t opens = 0, closes = 0;
    for (size_t i = r->cuts.len > 16 ? r->cuts.len - 16 : 0; i < r->cuts.len; i++) {
        opens += !r->cuts.at[i].close && r->cuts.at[i].at == start;
        closes += r->cuts.at[i].close && r->cuts.at[i].at == end;
    }
    if (opens > 0 && closes > 0) /* an operand of two operators; asking twice would do no harm */
        return;
    *stet_vec_add(&r->cuts) = (cut){start, false};
    *stet_vec_add(&r->cuts) = (cut){end, true};
}

/* What stands between the two semicolons of a `for`. */
static void ask_for(reading *r, size_t open) {
    size_t first = NONE;
    for (size_t i = open + 1; i < r->match[open]; i++) {
        if (is(r, i, ";") && first == NONE)
            first = i + 1;
        else if (is(r, i, ";"))
            ask(r, first, i - 1);
        else if (strchr("([{`", kind(r, i)) && r->match[i] != NONE)
            i = r->match[i];
    }
}

static void ask_all(reading *r) {
    static const char *const before[] = {"&&", "||", "??", "?", "===", "!==", "==", "!=", NULL};
    static const char *const sides[] = {"===", "!==", "==", "!=", NULL};
    static const char *const heads[] = {"if", "while", "switch", NULL};
    for (size_t i = 0; i < r->count; i++) {
        bool member = i > 0 && is_dot(r, i - 1), head = kind(r, i) == 'w' && !member && kind(r, i + 1) == '(';
        if (i > 0 && is_one_of(r, i, before))
            ask(r, operand_before(r, i - 1), i - 1);
        if (is_one_of(r, i, sides) || is(r, i, "!") || (kind(r, i) == 'w' && !member && is(r, i, "case")))
            ask(r, i + 1, operand_after(r, i + 1));
        if (head && r->match[i + 1] != NONE && is_one_of(r, i, heads))
            ask(r, i + 2, r->match[i + 1] - 1);
        else if (head && r->match[i + 1] != NONE && is(r, i, "for"))
            ask_for(r, i + 1);
    }
}

static int compare_cuts(const void *a, const void *b) {
    const cut *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (int)y->close - (int)x->close; /* what ends here ends before something begins */
}

static size_t *match_brackets(const source_token *at, size_t count) {
    size_t *match = stet_alloc((count + 1) * sizeof *match);
    STET_VEC(size_t) open = {0};
    for (size_t i = 0; i < count; i++) {
        match[i] = NONE;
        if (open.len > 0 && at[i].kind && strchr(")]}me", at[i].kind)) {
            size_t from = open.at[--open.len];
            match[i] = from;
            match[from] = i;
        }
        if (at[i].kind && strchr("([{`m", at[i].kind))
            *stet_vec_add(&open) = i;
    }
    stet_vec_release(&open);
    return match;
}

void truth_ask(const char *text, size_t len, const source_token *tokens, size_t count, stet_buf *out) {
    reading r = {.text = text, .at = tokens, .count = count, .match = match_brackets(tokens, count)};
    size_t from = 0;
    ask_all(&r);
    if (r.cuts.len > 0)
        qsort(r.cuts.at, r.cuts.len, sizeof *r.cuts.at, compare_cuts);
    for (size_t i = 0; i < r.cuts.len; i++) {
        stet_buf_add(out, text + from, r.cuts.at[i].at - from);
        stet_buf_str(out, r.cuts.at[i].close ? TRUTH_CLOSE : TRUTH_OPEN);
        from = r.cuts.at[i].at;
    }
    stet_buf_add(out, text + from, len - from);
    stet_vec_release(&r.cuts);
    free(r.match);
}

long truth_column(const char *text, long line, long column) {
    for (; line > 1 && text; line--) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    long left = column - 1, ours = 0;
    while (text && left > 0 && *text && *text != '\n') {
        const char *mark = strncmp(text, TRUTH_OPEN, strlen(TRUTH_OPEN)) == 0     ? TRUTH_OPEN
                           : strncmp(text, TRUTH_CLOSE, strlen(TRUTH_CLOSE)) == 0 ? TRUTH_CLOSE
                                                                                  : NULL;
        if (mark) {
            long n = (long)strlen(mark) < left ? (long)strlen(mark) : left;
            ours += n;
            left -= n;
            text += strlen(mark);
            continue;
        }
        unsigned char c = (unsigned char)*text++; /* columns count units of UTF-16 */
        left -= c >= 0xF0 ? 2 : (c & 0xC0) != 0x80;
    }
    return column - ours;
}
