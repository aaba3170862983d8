/* tree.c - the TOML subset, read into a flat array of nodes. */
#include "persist/format.h"

#include <assert.h>
#include <string.h>

#include "base/utf8.h"

#define NODES_MAX (1u << 20)

typedef struct reader {
    stet_tree *tree;
    const char *at, *end;
    bool span; /* lists may span lines */
    const char *why;
} reader;

static bool bad(reader *r, const char *why) {
    if (!r->why)
        r->why = why;
    return false;
}

static void blanks(reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
        r->at++;
}

/* Skips blanks and, inside a list that may span lines, newlines and comments. */
static void gaps(reader *r, bool lines) {
    for (;;) {
        blanks(r);
        if (!lines || r->at == r->end)
            return;
        if (*r->at == '#')
            while (r->at < r->end && *r->at != '\n')
                r->at++;
        else if (*r->at == '\n' || (*r->at == '\r' && r->end - r->at > 1 && r->at[1] == '\n'))
            r->at += *r->at == '\r' ? 2 : 1;
        else
            return;
    }
}

static bool hex_digits(const char *s, const char *end, int count, uint32_t *out) {
    if (end - s < count)
        return false;
    uint32_t v = 0;
    for (int i = 0; i < count; i++) {
        char c = s[i];
        uint32_t d = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                     : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                     : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                            : 16;
        if (d == 16)
            return false;
        v = v << 4 | d;
    }
    *out = v;
    return true;
}

/* Reads a basic or literal string; *out points into the source unless there were escapes. */
static bool string(const char **at, const char *end, stet_arena *arena, const char **out, size_t *len) {
    const char *s = *at;
    char quote = *s++;
    const char *begin = s;
    bool escaped = false;
    for (; s < end && *s != quote; s++) {
        unsigned char c = (unsigned char)*s;
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
        if (c == '\\' && quote == '"') {
            escaped = true;
            if (++s == end)
                return false;
        }
    }
    if (s == end || !stet_utf8_valid(begin, (size_t)(s - begin)))
        return false;
    *at = s + 1;
    *out = begin;
    *len = (size_t)(s - begin);
    if (!escaped)
        return true;
    char *copy = stet_arena_alloc(arena, *len + 1), *w = copy;
    for (const char *p = begin; p < s; p++) {
        if (*p != '\\') {
            *w++ = *p;
            continue;
        }
        uint32_t code;
        int digits = 0;
        switch (*++p) {
        case 'b':
            *w++ = '\b';
            break;
        case 't':
            *w++ = '\t';
            break;
        case 'n':
            *w++ = '\n';
            break;
        case 'f':
            *w++ = '\f';
            break;
        case 'r':
            *w++ = '\r';
            break;
        case '"':
        case '\\':
            *w++ = *p;
            break;
        case 'u':
            digits = 4;
            break;
        case 'U':
            digits = 8;
            break;
        default:
            return false;
        }
        if (digits) {
            if (!hex_digits(p + 1, s, digits, &code) || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
                return false;
            w += stet_utf8_encode(code, w); /* never longer than its escape */
            p += digits;
        }
    }
    *out = copy;
    *len = (size_t)(w - copy);
    return true;
}

static bool key(const char **at, const char *end, stet_arena *arena, const char **out, size_t *len) {
    if (*at == end)
        return false;
    if (**at == '"' || **at == '\'')
        return string(at, end, arena, out, len);
    const char *s = *at;
    while (s < end && stet_token_char((unsigned char)*s))
        s++;
    *out = *at;
    *len = (size_t)(s - *at);
    *at = s;
    return *len > 0;
}

/* Reads a scalar. A decimal integer (sign and single underscores allowed) is normalised; anything else that begins like
 * a number is a literal, and so are true and false. */
static bool scalar(reader *r, stet_node *n) {
    const char *s = r->at;
    while (s < r->end && (stet_token_char((unsigned char)*s) || *s == '+' || *s == '.' || *s == ':'))
        s++;
    size_t len = (size_t)(s - r->at);
    if (!len || len > 64)
        return bad(r, "a value is missing or of a kind that the format does not have");
    n->type = STET_NODE_LITERAL;
    n->text = r->at;
    n->text_len = (uint32_t)len;
    r->at = s;
    if ((len == 4 && !memcmp(n->text, "true", 4)) || (len == 5 && !memcmp(n->text, "false", 5)))
        return true;
    const char *d = n->text;
    bool negative = *d == '-';
    if (*d == '+' || *d == '-')
        d++;
    if (d == s || *d < '0' || *d > '9')
        return bad(r, "a value is neither string, number, boolean, list nor table");
    uint64_t v = 0;
    bool underscore = true, whole = true;
    for (const char *p = d; p < s; p++) {
        if (*p == '_') {
            if (underscore)
                return bad(r, "a misplaced underscore in a number");
            underscore = true;
            continue;
        }
        underscore = false;
        if (*p < '0' || *p > '9') {
            whole = false;
            break;
        }
        uint64_t digit = (uint64_t)(*p - '0');
        if (v > ((uint64_t)INT64_MAX + negative - digit) / 10)
            return bad(r, "an integer beyond 64 bits");
        v = v * 10 + digit;
    }
    if (!whole) {
        if (*d == '0' && s - d > 1 && (d[1] == 'x' || d[1] == 'o' || d[1] == 'b'))
            return bad(r, "an integer that is not decimal");
        return true; /* a float or a date, kept as written */
    }
    if (underscore || (*d == '0' && s - d > 1))
        return bad(r, "a misplaced underscore or zero in a number");
    n->type = STET_NODE_INT;
    n->number = negative ? (int64_t)(0 - v) : (int64_t)v;
    char text[24];
    size_t digits = 0;
    uint64_t rest = v;
    do {
        text[digits++] = (char)('0' + rest % 10);
    } while (rest /= 10);
    if (negative && v)
        text[digits++] = '-';
    if (digits == len && !negative)
        return true; /* as written */
    char *copy = stet_arena_alloc(&r->tree->arena, digits);
    for (size_t i = 0; i < digits; i++)
        copy[i] = text[digits - 1 - i];
    n->text = copy;
    n->text_len = (uint32_t)digits;
    return true;
}

static uint32_t add_node(reader *r, uint32_t parent) {
    stet_tree *t = r->tree;
    if (t->nodes.len >= NODES_MAX) {
        bad(r, "too many values");
        return 0;
    }
    stet_node *n = stet_vec_add(&t->nodes);
    memset(n, 0, sizeof *n);
    uint32_t index = (uint32_t)t->nodes.len; /* plus one */
    if (parent) {
        stet_node *p = &t->nodes.at[parent - 1];
        if (p->last)
            t->nodes.at[p->last - 1].next = index;
        else
            p->first = index;
        p->last = index;
    }
    return index;
}

static int by_key(const void *a, const void *b, void *ctx) {
    const stet_node *nodes = ctx, *x = &nodes[*(const uint32_t *)a - 1], *y = &nodes[*(const uint32_t *)b - 1];
    size_t n = x->key_len < y->key_len ? x->key_len : y->key_len;
    int c = memcmp(x->key, y->key, n);
    return c ? c : (x->key_len > y->key_len) - (x->key_len < y->key_len);
}

/* Sorts the children of a table by key; false if a key occurs twice. */
static bool sort_children(reader *r, uint32_t table) {
    stet_node *nodes = r->tree->nodes.at, *t = &nodes[table - 1];
    bool sorted = true;
    size_t count = 0;
    for (uint32_t c = t->first; c; c = nodes[c - 1].next, count++) {
        uint32_t next = nodes[c - 1].next;
        if (next && by_key(&c, &next, nodes) >= 0)
            sorted = false;
    }
    if (sorted)
        return true;
    uint32_t *order = stet_alloc(count * sizeof *order);
    size_t i = 0;
    for (uint32_t c = t->first; c; c = nodes[c - 1].next)
        order[i++] = c;
    qsort_r(order, count, sizeof *order, by_key, nodes);
    bool unique = true;
    for (i = 0; i + 1 < count; i++) {
        unique = unique && by_key(&order[i], &order[i + 1], nodes) != 0;
        nodes[order[i] - 1].next = order[i + 1];
    }
    nodes[order[count - 1] - 1].next = 0;
    t->first = order[0];
    t->last = order[count - 1];
    free(order);
    return unique ? true : bad(r, "a key stands twice in a table");
}

/* Reads `key =` and makes the node of its value in `table`. 0: a syntax error. */
static uint32_t begin_member(reader *r, uint32_t table) {
    const char *k;
    size_t k_len;
    if (!key(&r->at, r->end, &r->tree->arena, &k, &k_len)) {
        bad(r, "a key is missing or malformed");
        return 0;
    }
    blanks(r);
    if (r->at == r->end || *r->at != '=') {
        bad(r, "`=` is missing after a key");
        return 0;
    }
    r->at++;
    blanks(r);
    uint32_t n = add_node(r, table);
    if (n) {
        r->tree->nodes.at[n - 1].key = k;
        r->tree->nodes.at[n - 1].key_len = (uint32_t)k_len;
    }
    return n;
}

/* Reads the value of node `n`, with everything inside it. */
static bool value(reader *r, uint32_t n) {
    uint32_t stack[STET_PERSIST_DEPTH_MAX];
    size_t depth = 0;
    for (;;) {
        stet_node *node = &r->tree->nodes.at[n - 1];
        node->raw = r->at;
        char c = r->at < r->end ? *r->at : '\0';
        if (c == '[' || c == '{') {
            if (depth == STET_PERSIST_DEPTH_MAX)
                return bad(r, "lists and tables are nested too deeply");
            node->type = c == '[' ? STET_NODE_ARRAY : STET_NODE_TABLE;
            stack[depth++] = n;
            r->at++;
            gaps(r, c == '[' && r->span);
            if (r->at < r->end && *r->at == (c == '[' ? ']' : '}')) {
                /* empty: closed below */
            } else {
                if (!(n = c == '[' ? add_node(r, n) : begin_member(r, n)))
                    return false;
                continue;
            }
        } else if (c == '"' || c == '\'') {
            const char *text;
            size_t len;
            if (r->end - r->at >= 3 && r->at[1] == c && r->at[2] == c)
                return bad(r, "a string of several lines");
            if (!string(&r->at, r->end, &r->tree->arena, &text, &len))
                return bad(r, "a malformed string");
            node->type = STET_NODE_STRING;
            node->text = text;
            node->text_len = (uint32_t)len;
            node->raw_len = (uint32_t)(r->at - node->raw);
        } else {
            if (!scalar(r, node))
                return false;
            node->raw_len = (uint32_t)(r->at - node->raw);
        }
        /* A value is complete: close the containers that end here, then continue with the next element. */
        for (n = 0; depth && !n;) {
            uint32_t top = stack[depth - 1];
            bool array = r->tree->nodes.at[top - 1].type == STET_NODE_ARRAY;
            gaps(r, array && r->span);
            if (r->at == r->end)
                return bad(r, "a list or table is not closed");
            bool comma = *r->at == ',' && r->tree->nodes.at[top - 1].first;
            if (comma) {
                r->at++;
                gaps(r, array && r->span);
            }
            if (r->at < r->end && *r->at == (array ? ']' : '}') && (!comma || array)) {
                r->at++;
                stet_node *closed = &r->tree->nodes.at[top - 1];
                closed->raw_len = (uint32_t)(r->at - closed->raw);
                if (!array && !sort_children(r, top))
                    return false;
                depth--;
            } else if (comma) {
                if (!(n = array ? add_node(r, top) : begin_member(r, top)))
                    return false;
            } else
                return bad(r, "a comma or a closing bracket is missing");
        }
        if (!n)
            return true;
    }
}

bool stet_tree_parse(stet_tree *tree, const char *text, size_t len, bool lists_span_lines, const char **why) {
    stet_vec_clear(&tree->nodes);
    stet_arena_clear(&tree->arena);
    reader r = {.tree = tree, .at = text, .end = text + len, .span = lists_span_lines};
    uint32_t root = add_node(&r, 0);
    tree->nodes.at[0].type = STET_NODE_TABLE;
    bool ok = true;
    while (ok) {
        gaps(&r, true);
        if (r.at == r.end)
            break;
        uint32_t n = begin_member(&r, root);
        ok = n && value(&r, n);
        if (!ok)
            break;
        blanks(&r);
        if (r.at < r.end && *r.at == '\r')
            r.at++;
        if (r.at < r.end && *r.at != '\n' && *r.at != '#')
            ok = bad(&r, "more than a value on a line");
    }
    ok = ok && sort_children(&r, root);
    if (!ok)
        *why = r.why ? r.why : "malformed";
    return ok;
}

const stet_node *stet_tree_child(const stet_tree *tree, const stet_node *of) {
    return of->first ? &tree->nodes.at[of->first - 1] : NULL;
}

const stet_node *stet_tree_next(const stet_tree *tree, const stet_node *sibling) {
    return sibling->next ? &tree->nodes.at[sibling->next - 1] : NULL;
}

const stet_node *stet_tree_find(const stet_tree *tree, const stet_node *table, const char *name) {
    size_t len = strlen(name);
    for (const stet_node *n = stet_tree_child(tree, table); n; n = stet_tree_next(tree, n))
        if (n->key_len == len && !memcmp(n->key, name, len))
            return n;
    return NULL;
}

void stet_tree_preimage(const stet_tree *tree, const stet_node *node, const char *except, stet_buf *out) {
    uint32_t stack[STET_PERSIST_DEPTH_MAX + 1]; /* the next node on each level */
    size_t depth = 0;
    bool in_table[STET_PERSIST_DEPTH_MAX + 1];
    const stet_node *n = node;
    size_t skip = except ? strlen(except) : 0;
    for (;;) {
        if (n->type == STET_NODE_ARRAY || n->type == STET_NODE_TABLE) {
            assert(depth <= STET_PERSIST_DEPTH_MAX);
            stack[depth] = n->first;
            in_table[depth++] = n->type == STET_NODE_TABLE;
        } else
            stet_buf_add(out, n->text, n->text_len);
        for (n = NULL; depth && !n;) {
            uint32_t next = stack[depth - 1];
            if (!next) {
                depth--;
                continue;
            }
            n = &tree->nodes.at[next - 1];
            stack[depth - 1] = n->next;
            if (in_table[depth - 1]) {
                if (except && depth == 1 && n->key_len == skip && !memcmp(n->key, except, skip)) {
                    n = NULL;
                    continue;
                }
                stet_buf_add(out, n->key, n->key_len);
            }
        }
        if (!n)
            return;
    }
}

void stet_tree_release(stet_tree *tree) {
    stet_vec_release(&tree->nodes);
    stet_arena_release(&tree->arena);
}

int stet_header_parse(const char *line, size_t len, stet_arena *arena, const char **parts, size_t *lens, int max) {
    const char *at = line, *end = line + len;
    if (at == end || *at++ != '[')
        return 0;
    for (int count = 0;;) {
        while (at < end && (*at == ' ' || *at == '\t'))
            at++;
        const char *k;
        size_t k_len;
        if (!key(&at, end, arena, &k, &k_len))
            return 0;
        if (count == max)
            return -1;
        parts[count] = k;
        lens[count++] = k_len;
        while (at < end && (*at == ' ' || *at == '\t'))
            at++;
        if (at == end)
            return 0;
        if (*at == ']') {
            at++;
            while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
                at++;
            return at == end || *at == '#' ? count : 0;
        }
        if (*at++ != '.')
            return 0;
    }
}
