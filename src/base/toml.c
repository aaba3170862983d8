/* toml.c - the TOML 1.0 reader: tables, arrays of tables and values, over the scanner of toml_scan.c. */

#include "base/toml.h"

#include <assert.h>
#include <string.h>

#include "base/map.h"
#include "base/path.h"
#include "base/toml_scan.h"
#include "base/utf8.h"
#include "base/value.h"
#include "base/vec.h"

/* The text is read into a tree of nodes that may still change. Each node knows how its table was made, because the
 * rules of redefinition depend on it. At the end, values are made from the tree.
 *
 *   T1. A table is opened by at most one [header], and never if a dotted key or an inline table made it.
 *   T2. A dotted key goes through tables that dotted keys made, or that exist only as a step of a longer [header].
 *       It takes the latter over, and T1 holds from then on.
 *   T3. An inline table and an array value are complete where they end: nothing is added later, at any depth.
 *   T4. Only [[header]] adds to an array of tables, and a [header] below one means its last table.
 */
#define MAX_BYTES ((size_t)64 << 20)
#define MAX_DEPTH 128

typedef enum kind { TABLE, ARRAY, SCALAR } kind;
typedef enum origin {
    IMPLICIT, /* a step of a longer header */
    HEADER,   /* [header], or an element of [[header]]; for an array: [[header]] */
    DOTTED,   /* a step of a dotted key */
    VALUE     /* written as a value: inline table, array, scalar */
} origin;

typedef struct node {
    kind kind;
    origin origin;
    size_t at; /* offset of its key, or of the element of an array */
    size_t depth;
    struct node *next; /* links all tables and arrays, to free them */
    union {
        stet_map members; /* of nodes */
        STET_VEC(struct node *) elements;
        stet_toml_scalar scalar;
    };
} node;

typedef struct parser {
    stet_toml_scan scan;
    stet_arena arena;
    node *all; /* tables and arrays */
    node *root;
    node *here; /* the table that keys are added to */
} parser;

/* A key of one part or several. */
typedef struct part {
    const char *bytes;
    size_t len, at;
} part;
typedef struct key {
    part parts[MAX_DEPTH];
    size_t len;
} key;

static bool bad(parser *p, const part *at, const char *format) {
    stet_buf name = STET_BUF(0);
    stet_toml_write_key(&name, at->bytes, at->len < 100 ? at->len : stet_utf8_valid_prefix(at->bytes, 100));
    stet_toml_fail(&p->scan, at->at, STET_INVALID, "%s %s", stet_buf_cstr(&name), format);
    stet_buf_release(&name);
    return false;
}

static node *new_node(parser *p, kind kind_of, origin from, size_t at, const node *parent) {
    node *n = stet_arena_zero(&p->arena, sizeof *n);
    n->kind = kind_of;
    n->origin = from;
    n->at = at;
    n->depth = parent ? parent->depth + 1 : 0;
    if (n->depth > MAX_DEPTH) {
        stet_toml_fail(&p->scan, at, STET_LIMIT, "tables and arrays more than %d inside each other", MAX_DEPTH);
        return NULL;
    }
    if (kind_of != SCALAR) {
        n->next = p->all;
        p->all = n;
    }
    return n;
}

static node *find(const node *table, const part *name) {
    stet_slot *slot = stet_map_get(&table->members, name->bytes, name->len);
    return slot ? slot->p : NULL;
}

static node *add_member(parser *p, node *table, const part *name, kind kind_of, origin from) {
    node *n = new_node(p, kind_of, from, name->at, table);
    if (n)
        stet_map_put(&table->members, name->bytes, name->len, (stet_slot){.p = n});
    return n;
}

static node *add_element(parser *p, node *array, kind kind_of, origin from, size_t at) {
    node *n = new_node(p, kind_of, from, at, array);
    if (n)
        *stet_vec_add(&array->elements) = n;
    return n;
}

static bool read_key(parser *p, key *k) {
    k->len = 0;
    do {
        stet_toml_skip_blank(&p->scan);
        if (k->len == MAX_DEPTH)
            return stet_toml_fail(&p->scan, p->scan.at, STET_LIMIT, "a key of more than %d parts", MAX_DEPTH);
        part *one = &k->parts[k->len++];
        one->at = p->scan.at;
        if (!stet_toml_key_part(&p->scan, &one->bytes, &one->len))
            return false;
        stet_toml_skip_blank(&p->scan);
    } while (stet_toml_take(&p->scan, '.'));
    return true;
}

/* One step of a header, from a table to the table that `name` means in it. */
static node *header_step(parser *p, node *table, const part *name) {
    node *n = find(table, name);
    if (!n)
        return add_member(p, table, name, TABLE, IMPLICIT);
    if (n->kind == ARRAY && n->origin == HEADER)
        return n->elements.at[n->elements.len - 1]; /* T4 */
    if (n->kind == TABLE && n->origin != VALUE)
        return n;
    bad(p, name, n->kind == SCALAR ? "is a value, not a table" : "is complete where it stands, and can't be added to");
    return NULL;
}

static bool header(parser *p) {
    stet_toml_take(&p->scan, '[');
    bool array = stet_toml_take(&p->scan, '[');
    key k;
    if (!read_key(p, &k))
        return false;
    if (!stet_toml_take(&p->scan, ']') || (array && !stet_toml_take(&p->scan, ']')))
        return stet_toml_fail(&p->scan, p->scan.at, STET_INVALID, "expected %s after the name of a table",
                              array ? "\"]]\"" : "\"]\"");
    node *table = p->root;
    for (size_t i = 0; i + 1 < k.len; i++)
        if (!(table = header_step(p, table, &k.parts[i])))
            return false;
    const part *last = &k.parts[k.len - 1];
    node *n = find(table, last);
    if (array) {
        if (n && (n->kind != ARRAY || n->origin != HEADER))
            return bad(p, last, "is defined already, and not as an array of tables");
        if (!n && !(n = add_member(p, table, last, ARRAY, HEADER)))
            return false;
        p->here = add_element(p, n, TABLE, HEADER, last->at);
    } else if (!n) {
        p->here = add_member(p, table, last, TABLE, HEADER);
    } else if (n->kind == TABLE && n->origin == IMPLICIT) {
        n->origin = HEADER;
        n->at = last->at;
        p->here = n;
    } else {
        return bad(p, last, "is defined already"); /* T1 */
    }
    return p->here && stet_toml_end_line(&p->scan);
}

/* The table that the last part of a key belongs to. */
static node *dotted_steps(parser *p, node *table, const key *k) {
    for (size_t i = 0; i + 1 < k->len; i++) {
        const part *name = &k->parts[i];
        node *n = find(table, name);
        if (!n) {
            if (!(n = add_member(p, table, name, TABLE, DOTTED)))
                return NULL;
        } else if (n->kind == TABLE && n->origin == IMPLICIT) {
            n->origin = DOTTED; /* T2 */
        } else if (n->kind != TABLE || n->origin != DOTTED) {
            bad(p, name, "is defined already, and a dotted key can't add to it");
            return NULL;
        }
        table = n;
    }
    return table;
}

/* Reads `key =` in a table. The caller makes the node of the value, as member `*last` of `*table`. */
static bool read_assignment(parser *p, node *into, node **table, part *last) {
    key k;
    if (!read_key(p, &k))
        return false;
    if (!stet_toml_take(&p->scan, '='))
        return stet_toml_fail(&p->scan, p->scan.at, STET_INVALID, "expected \"=\" after a key");
    stet_toml_skip_blank(&p->scan);
    *table = dotted_steps(p, into, &k);
    *last = k.parts[k.len - 1];
    if (!*table)
        return false;
    return !find(*table, last) || bad(p, last, "is defined already");
}

/* What comes next inside a value. */
typedef enum state { AT_VALUE, AT_ELEMENT, AT_FIRST_MEMBER, AT_MEMBER, AFTER_VALUE } state;

/* Reads a value with everything in it. `inside` is an explicit stack of the open arrays and inline tables. */
static bool read_value(parser *p, node *table, part name) {
    node *inside[MAX_DEPTH + 1];
    size_t depth = 0;
    stet_toml_scan *s = &p->scan;
    node *into = table; /* a table, for the member `name`; or an array */
    for (state at = AT_VALUE;;) {
        node *top = depth ? inside[depth - 1] : NULL;
        switch (at) {
        case AT_VALUE: {
            size_t begin = s->at;
            int c = stet_toml_peek(s);
            kind kind_of = c == '[' ? ARRAY : c == '{' ? TABLE : SCALAR;
            node *n = into->kind == ARRAY ? add_element(p, into, kind_of, VALUE, begin)
                                          : add_member(p, into, &name, kind_of, VALUE);
            if (!n)
                return false;
            if (kind_of == SCALAR) {
                if (!stet_toml_scalar_here(s, &n->scalar))
                    return false;
                at = AFTER_VALUE;
                break;
            }
            s->at++;
            inside[depth++] = n; /* the depth of nodes is limited, and so is this stack */
            at = kind_of == ARRAY ? AT_ELEMENT : AT_FIRST_MEMBER;
            break;
        }
        case AT_ELEMENT:
            if (!stet_toml_skip_space(s))
                return false;
            if (stet_toml_take(s, ']')) {
                depth--;
                at = AFTER_VALUE;
            } else {
                into = top;
                at = AT_VALUE;
            }
            break;
        case AT_FIRST_MEMBER:
            stet_toml_skip_blank(s);
            if (stet_toml_take(s, '}')) {
                depth--;
                at = AFTER_VALUE;
                break;
            }
            at = AT_MEMBER;
            break;
        case AT_MEMBER:
            if (!read_assignment(p, top, &into, &name))
                return false;
            at = AT_VALUE;
            break;
        case AFTER_VALUE:
            if (!top)
                return true;
            if (top->kind == ARRAY ? !stet_toml_skip_space(s) : (stet_toml_skip_blank(s), false))
                return false;
            if (stet_toml_take(s, ','))
                at = top->kind == ARRAY ? AT_ELEMENT : AT_MEMBER;
            else if (stet_toml_take(s, top->kind == ARRAY ? ']' : '}'))
                depth--;
            else
                return stet_toml_fail(s, s->at, STET_INVALID,
                                      top->kind == ARRAY
                                          ? "expected \",\" or \"]\" in an array"
                                          : "expected \",\" or \"}\" in an inline table, which stands on one line");
            break;
        }
    }
}

static bool statement(parser *p) {
    if (stet_toml_peek(&p->scan) == '[')
        return header(p);
    node *table;
    part last;
    return read_assignment(p, p->here, &table, &last) && read_value(p, table, last) && stet_toml_end_line(&p->scan);
}

static bool read_document(parser *p) {
    stet_toml_scan *s = &p->scan;
    if (s->len > MAX_BYTES) {
        s->status = stet_fail(s->err, STET_LIMIT, "%zu bytes, more than the %zu allowed", s->len, MAX_BYTES);
        return false;
    }
    size_t valid = stet_utf8_valid_prefix(s->text, s->len);
    if (valid < s->len)
        return stet_toml_fail(s, valid, STET_INVALID, "not valid UTF-8");
    if (s->len >= 3 && memcmp(s->text, "\xef\xbb\xbf", 3) == 0)
        s->at = 3; /* a byte order mark */
    p->root = p->here = new_node(p, TABLE, HEADER, s->at, NULL);
    for (;;) {
        if (!stet_toml_skip_space(s))
            return false;
        if (s->at == s->len)
            return true;
        if (!statement(p))
            return false;
    }
}

static void begin(parser *p, const char *text, size_t len, stet_error *err) {
    *p = (parser){.arena = STET_ARENA_INIT};
    p->scan = (stet_toml_scan){.text = text, .len = len, .arena = &p->arena, .scratch = STET_BUF(0), .err = err};
}

static void end(parser *p) {
    for (node *n = p->all; n; n = n->next) {
        if (n->kind == TABLE)
            stet_map_release(&n->members);
        else
            stet_vec_release(&n->elements);
    }
    stet_buf_release(&p->scan.scratch);
    stet_arena_release(&p->arena);
}

static stet_value scalar_value(const stet_toml_scalar *s) {
    switch (s->type) {
    case STET_TYPE_BOOL:
        return stet_value_bool(s->boolean);
    case STET_TYPE_INT:
        return stet_value_int(s->integer);
    case STET_TYPE_DOUBLE:
        return stet_value_make_double(s->number);
    default:
        return stet_value_make_string(s->bytes, s->len, NULL);
    }
}

/* Makes values from the tree, bottom up: a container that is complete takes its items from the end of the list. */
static stet_value make_value(const node *root) {
    struct {
        const node *node;
        size_t cursor;
        size_t first; /* its items start here */
        stet_value key;
    } stack[MAX_DEPTH + 1];
    STET_VEC(stet_member) items = {0};
    STET_VEC(stet_value) elements = {0};
    size_t depth = 0;
    stet_value done = stet_value_null();
    stet_vec_reserve(&items, 16); /* never NULL from here on */
    stack[depth++].node = root;
    stack[0].cursor = stack[0].first = 0;
    stack[0].key = stet_value_null();
    while (depth) {
        const node *n = stack[depth - 1].node, *child = NULL;
        stet_value name = stet_value_null();
        const void *bytes;
        size_t len;
        stet_slot *slot;
        if (n->kind == TABLE && stet_map_next(&n->members, &stack[depth - 1].cursor, &bytes, &len, &slot)) {
            child = slot->p;
            name = stet_value_make_string(bytes, len, NULL);
        } else if (n->kind == ARRAY && stack[depth - 1].cursor < n->elements.len) {
            child = n->elements.at[stack[depth - 1].cursor++];
        }
        if (child && child->kind != SCALAR) {
            assert(depth <= MAX_DEPTH);
            stack[depth].node = child;
            stack[depth].cursor = 0;
            stack[depth].first = items.len;
            stack[depth].key = name;
            depth++;
            continue;
        }
        if (child) {
            *stet_vec_add(&items) = (stet_member){name, scalar_value(&child->scalar)};
            continue;
        }
        size_t first = stack[depth - 1].first, count = items.len - first, twice;
        if (n->kind == TABLE) {
            bool unique = stet_value_make_object(items.at + first, count, &done, &twice, NULL);
            assert(unique);
            (void)unique;
        } else {
            stet_vec_clear(&elements);
            for (size_t i = first; i < items.len; i++)
                *stet_vec_add(&elements) = items.at[i].value;
            done = stet_value_make_array(elements.at, elements.len, NULL);
        }
        items.len = first;
        if (--depth)
            *stet_vec_add(&items) = (stet_member){stack[depth].key, done};
    }
    stet_vec_release(&items);
    stet_vec_release(&elements);
    return done;
}

stet_status stet_toml_parse(const char *text, size_t len, stet_value *out, stet_error *err) {
    parser p;
    begin(&p, text, len, err);
    if (read_document(&p))
        *out = make_value(p.root);
    stet_status status = p.scan.status;
    end(&p);
    return status;
}

bool stet_toml_locate(const char *text, size_t len, const char *pointer, size_t *line, size_t *column) {
    stet_path path = STET_PATH_INIT;
    parser p;
    begin(&p, text, len, NULL);
    const node *n = NULL;
    if (stet_path_of_pointer(&path, pointer, strlen(pointer), NULL) == STET_OK && read_document(&p))
        n = p.root;
    stet_buf scratch = STET_BUF(0);
    const char *name;
    size_t name_len;
    for (size_t cursor = 0, index; n && stet_path_next(stet_path_ref(&path), &cursor, &scratch, &name, &name_len);) {
        if (n->kind == TABLE)
            n = find(n, &(part){name, name_len, 0});
        else if (n->kind == ARRAY && stet_path_index(name, name_len, &index) && index < n->elements.len)
            n = n->elements.at[index];
        else
            n = NULL;
    }
    if (n)
        stet_toml_place(text, n->at, line, column);
    stet_buf_release(&scratch);
    stet_path_release(&path);
    end(&p);
    return n != NULL;
}

void stet_toml_write_key(stet_buf *b, const char *name, size_t len) {
    bool bare = len > 0;
    for (size_t i = 0; i < len && bare; i++)
        bare = (name[i] >= '0' && name[i] <= '9') || (name[i] >= 'a' && name[i] <= 'z') ||
               (name[i] >= 'A' && name[i] <= 'Z') || name[i] == '_' || name[i] == '-';
    if (bare)
        stet_buf_add(b, name, len);
    else
        stet_toml_write_string(b, name, len);
}

void stet_toml_write_string(stet_buf *b, const char *bytes, size_t len) {
    static const char letters[] = "btnfr\"\\", meanings[] = "\b\t\n\f\r\"\\";
    stet_buf_char(b, '"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        const char *known = c ? strchr(meanings, c) : NULL;
        if (known)
            stet_buf_printf(b, "\\%c", letters[known - meanings]);
        else if (c < 0x20 || c == 0x7f)
            stet_buf_printf(b, "\\u%04X", c);
        else
            stet_buf_char(b, (char)c);
    }
    stet_buf_char(b, '"');
}
