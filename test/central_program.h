/* central_program.h - random programs for the central property (property/central.c): what a person could write and
 * edit, kept as text, so that a fresh project can be made of it and a trace of it reads like what was typed.
 *
 * Data flows one way, so that no circle of actions arises whose resting point depends on history: documents d0..d3 and
 * those of other spaces lead to each other only (circles of links among them are wanted), pieces r and q in other
 * spaces read those, q also what r makes, piece p0 reads documents, documents e0 and e1 lead to all of these and to
 * what p0 makes, and p1 reads everything. */
#ifndef TEST_CENTRAL_PROGRAM_H
#define TEST_CENTRAL_PROGRAM_H

#include "base/arena.h"
#include "base/buf.h"

enum { DOCS = 6, PIECES = 2, NODES = 6, KEYS = 5, LINES = 3, FAR = 2, FILES = 2 };
enum { LIST_KEY = 3, PATTERN_KEY = 4 }; /* of the argument: mostly a list of rows, mostly a pattern */

static const char *const doc_names[DOCS] = {"d0", "d1", "d2", "d3", "e0", "e1"};
static const char *const line_names[LINES] = {"", "b1", "b2"};
static const char *const far_names[FAR] = {"s1", "s2"};
static const char *const file_names[FILES] = {"lib0.js", "lib1.js"};

typedef struct program {
    const char *nodes[NODES]; /* JSON without the id; NULL: none */
    int ids[NODES];           /* node K is called "nID": a renamed one gets a number of its own */
    unsigned results;         /* which nodes are in the result */
    const char *handler;      /* what its `x` is bound to */
    const char *defaults[KEYS], *sets[KEYS];
    const char *cell_default, *cell; /* NULL: nobody has written it */
    const char *made_default;        /* of the cell that computations write to: node K the key "wK" */
} program;

/* One branch of the space "main". */
typedef struct line {
    bool there;
    const char *docs[DOCS]; /* NULL: not there */
    program p[PIECES];
} line;

typedef struct model {
    line lines[LINES];
    const char *far[FAR][2];
    bool spaces[FAR];
    const char *files[FILES];
    const char *away[FAR]; /* the argument of the piece in each of the other spaces; NULL: no such piece */
    int next_id;
} model;

/* The pieces in other spaces. What q is given may lead to what r makes. */
static const char *const away_names[FAR] = {"q", "r"};
static const char away_program[] =
    "{\"pattern\":1,\"name\":\"%s\",\"argument\":{\"default\":{\"k\":0}},\"nodes\":[{\"id\":\"v\",\"module\":{\"type\":"
    "\"javascript\",\"implementation\":\"({x}) => { if (x === 3) throw new Error('three'); return [x, {a: x}] "
    "}\"},\"inputs\":{\"x\":{\"$\":\"argument/k\"}}}],\"result\":{\"v\":{\"$\":\"v\"}}}\n";

static uint64_t dice;

static int pick(int n) {
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (int)((dice >> 11) % (uint64_t)n);
}

/* STET_TEST_WITHOUT names what programs are not to have: for looking for one thing at a time. */
static bool without(const char *what) {
    const char *list = getenv("STET_TEST_WITHOUT");
    return list && strstr(list, what);
}

#define ONE_OF(list) list[pick((int)(sizeof list / sizeof *list))]

static void random_value(stet_buf *b, int depth, int level);

/* A link to what a piece in another space makes. */
static void random_away(stet_buf *b, int which) {
    bool node = pick(2);
    stet_buf_printf(b, "{\"/\":{\"link@1\":{\"id\":\"piece:%s%s\",\"path\":[%s],\"space\":\"%s\"}}}", away_names[which],
                    node ? ":node:v" : "", node ? "\"0\"" : "\"v\",\"1\"", far_names[which]);
}

/* Where a link from a place of this level may lead: 0 documents d*, 1 everything but p1, 2 documents of the other
 * spaces, 3 these and the last piece there. */
static void random_link(stet_buf *b, int level) {
    static const char *const paths[] = {"", "", "", "\"a\"", "\"b\"", "\"0\"", "\"a\",\"b\"", "\"id\""};
    int what = pick(level == 1 ? 15 : 8);
    const char *path = ONE_OF(paths);
    char id[40], space[24] = "";
    if ((level == 3 && what < 4) || what == 14) {
        random_away(b, level == 3 || pick(4) == 0);
        return;
    }
    if (level >= 2 || what == 6) {
        snprintf(id, sizeof id, "f%d", pick(2));
        if (level < 2 || pick(2))
            snprintf(space, sizeof space, ",\"space\":\"%s\"", ONE_OF(far_names));
    } else if (what == 7) {
        snprintf(id, sizeof id, "nowhere");
    } else if (what < 6) {
        snprintf(id, sizeof id, "d%d", pick(4));
    } else if (what < 10) {
        snprintf(id, sizeof id, "piece:p0:node:n%d", pick(NODES));
    } else if (what == 10) {
        snprintf(id, sizeof id, "piece:p0");
        path = pick(2) ? "\"n1\"" : "\"n3\",\"a\"";
    } else if (what == 11) {
        snprintf(id, sizeof id, "piece:p0:argument");
        path = pick(2) ? "\"k0\"" : "\"k3\"";
    } else if (what == 12) {
        static const char *const made[] = {"\"w0\"", "\"w2\"", "\"w4\",\"a\"", ""};
        bool written = pick(2);
        snprintf(id, sizeof id, "piece:p0:cell:%c", written ? 'm' : 'c');
        path = written ? ONE_OF(made) : path;
    } else {
        snprintf(id, sizeof id, "e%d", pick(2));
    }
    stet_buf_printf(b, "{\"/\":{\"link@1\":{\"id\":\"%s\",\"path\":[%s]%s}}}", id, path, space);
}

static const char *const scalars[] = {
    "0",    "1",     "2",       "3",           "-1",   "0.5",   "1e300", "9007199254740993",
    "\"\"", "\"a\"", "\"b c\"", "\"\\u00e9\"", "true", "false", "null",  "7"};
static const char *const keys[] = {"a", "b", "id", "n", "x"};

static void random_value(stet_buf *b, int depth, int level) {
    int what = pick(depth > 0 ? 20 : 12);
    if (what < 9) {
        stet_buf_str(b, ONE_OF(scalars));
    } else if (what < 12) {
        random_link(b, level);
    } else if (what < 16) {
        int n = pick(4);
        stet_buf_char(b, '[');
        for (int i = 0; i < n; i++) {
            stet_buf_str(b, i ? "," : "");
            random_value(b, depth - 1, level);
        }
        stet_buf_char(b, ']');
    } else {
        unsigned some = (unsigned)pick(32);
        bool first = true;
        stet_buf_char(b, '{');
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            if (!(some & 1u << i))
                continue;
            stet_buf_printf(b, "%s\"%s\":", first ? "" : ",", keys[i]);
            random_value(b, depth - 1, level);
            first = false;
        }
        stet_buf_char(b, '}');
    }
}

static void random_rows(stet_buf *b, int level) {
    int n = pick(5);
    stet_buf_char(b, '[');
    for (int i = 0; i < n; i++) {
        if (pick(12) == 0) {
            stet_buf_str(b, i ? "," : "");
            random_value(b, 1, level);
            continue;
        }
        stet_buf_printf(b, "%s{\"id\":%d,\"n\":%d,\"m\":", i ? "," : "", pick(6), pick(5));
        if (pick(4) == 0)
            stet_buf_str(b, pick(2) ? "[1,{\"n\":2}]" : "[{\"id\":1,\"m\":[{\"n\":3},4]},{\"id\":2,\"m\":[5]}]");
        else
            random_value(b, 1, level);
        stet_buf_char(b, '}');
    }
    stet_buf_char(b, ']');
}

/* Without links: what writes to a cell that holds one writes where it leads. */
static void random_made(stet_buf *b) {
    stet_buf_char(b, '{');
    for (int i = 0, n = 0; i < NODES; i++)
        if (pick(3) == 0)
            stet_buf_printf(b, pick(2) ? "%s\"w%d\":%s" : "%s\"w%d\":{\"a\":%s}", n++ ? "," : "", i, ONE_OF(scalars));
    stet_buf_char(b, '}');
}

static const char *const functions[] = {
    "({x}) => x",
    "({x}) => JSON.stringify(x)",
    "({x, y}) => [x, y]",
    "({x}) => Object.keys(x ?? {})",
    "({x}) => Object.entries(x ?? {}).length",
    "({x}) => ({...x})",
    "({x, y}) => x?.a ?? y",
    "({x}) => Array.isArray(x) ? x.map((e) => e?.n ?? e) : typeof x",
    "({x}) => x.a.b",
    "({x, y}) => { if (x === 1 || y === null) throw new Error('no'); return [y] }",
    "({x}) => 'a' in Object(x)",
    "({x, y}) => x ? y : 0",
    "({x}) => { const {a, ...r} = x ?? {}; return r }",
    "({x}) => [...(x ?? [])]",
    "({x}) => String(x)",
    "({x, y}) => Object.assign({}, x, y)",
    "({x}) => x?.length",
    "({x}) => { for (const k in x) return k; return null }",
    "({x}) => x === undefined ? 'none' : x === null ? 'null' : 1",
    "(i) => JSON.stringify(i)",
    "(i) => Object.keys(i)",
    "({x, y}) => x == y",
    "({x}) => x?.find?.((e) => e?.id === 1) ?? 'none'",
    "({x}) => [x].flat(2).length",
    "({x}) => { throw new Error('at once') }",
    "({x}) => { let s = 0; for (const e of x ?? []) s += e?.n ?? 1; return s }",
    "({x}) => Object.values(x ?? {})",
    "({x: {a = 5} = {}}) => a",
    "({x}) => x?.hasOwnProperty?.('b')",
    "({x, y}) => JSON.stringify({x, y})",
    "({x}) => x?.[0]?.id ?? x?.a?.id",
    "({x, y}) => x?.concat?.(y)",
    "({x}) => x?.slice?.(1)",
    "({x}) => Object.fromEntries(Object.entries(x ?? {}))",
    "({x}) => x?.some?.((e) => e)",
    "({x, y}) => { try { return x.a.b } catch (e) { return y } }",
    "({x}) => x?.at?.(-1)",
    "({x}) => x?.toString?.()",
};

/* Of those that write through a cell; %d is the node's place. They say that they do: those that do not say so, and
 * whose result is bound somewhere, run only if it is read. */
static const char *const writers[] = {
    "({x, m}) => { m.key('w%d').set(x ?? null) }",
    "({x, y, m}) => { m.key('w%d').set({a: y ?? 0}); return x }",
    "({x, y, m}) => { if (x) m.key('w%d').set([y ?? 1]); return y }",
    "({x, m}) => { for (const k of Object.keys(x ?? {})) m.key('w%d').key('k' + k).set(1) }",
    "({x, m}) => { m.key('w%d').set(1); if (x === 1) throw new Error('one') }",
    "({x, m}) => { const k = m.key('w%d'); if (x?.a) k.key('a').set(x.a); else k.key('b').set(typeof x) }",
};

/* Inputs of an object, with what a ref is called. */
static const char *const refs[] = {
    "value:value",
    "value:value",
    "get:value,path,default",
    "get:value,path",
    "pick:value,keys",
    "merge:*",
    "keys:value",
    "values:value",
    "length:value",
    "concat:*",
    "flatten:value",
    "unique:value",
    "hash:value",
    "ifElse:condition,then,else",
    "when:condition,value",
    "unless:condition,value",
    "not:value",
    "and:*",
    "or:*",
    "count:values",
    "sum:values",
    "add:*",
    "min:*",
    "max:values",
    "modulo:a,b",
    "compare:a,b",
    "join:values",
    "sort:value",
    "format:template,a,b",
    "xor:a,b",
};

/* `child`: how deep in child patterns; there the argument is that of the child. */
static void random_binding(stet_buf *b, int piece, int before, int child) {
    int what = pick(24);
    if (child) {
        static const char *const places[] = {"argument/element",    "argument/element/n", "argument/element/m",
                                             "argument/element/id", "argument/o",         "argument/index"};
        if (before > 0 && what < 6)
            stet_buf_printf(b, "{\"$\":\"c%d\"}", pick(before));
        else if (what < 21)
            stet_buf_printf(b, "{\"$\":\"%s\"}", ONE_OF(places));
        else if (what == 21)
            random_link(b, piece);
        else
            stet_buf_str(b, ONE_OF(scalars));
        return;
    }
    if (what < 9) {
        static const char *const below[] = {"", "", "", "/a", "/0", "/a/b"};
        stet_buf_printf(b, "{\"$\":\"argument/k%d%s\"}", pick(KEYS), ONE_OF(below));
    } else if (what < 15 && before > 0) {
        static const char *const below[] = {"", "", "", "/a", "/0"};
        stet_buf_printf(b, "{\"$\":\"@%d%s\"}", pick(before), ONE_OF(below)); /* @K: whatever node K is called */
    } else if (what == 15 && before > 0 && pick(2)) {
        stet_buf_printf(b, "{\"$\":\"m/w%d\"}", pick(before));
    } else if (what == 15) {
        stet_buf_str(b, "{\"$\":\"c\"}");
    } else if (what < 21) {
        random_link(b, piece);
    } else if (what == 21) {
        stet_buf_str(b, "{\"a\":");
        random_binding(b, piece, before, child);
        stet_buf_str(b, ",\"b\":[");
        random_binding(b, piece, before, child);
        stet_buf_str(b, "]}");
    } else {
        stet_buf_str(b, ONE_OF(scalars));
    }
}

static void random_node(stet_buf *b, int piece, int before, int child, bool files);

static void random_ref(stet_buf *b, int piece, int before, int child) {
    char text[64];
    snprintf(text, sizeof text, "%s", ONE_OF(refs));
    char *inputs = strchr(text, ':') + 1, *save;
    inputs[-1] = 0;
    stet_buf_printf(b, "\"module\":{\"type\":\"ref\",\"ref\":\"%s\"},\"inputs\":", text);
    if (*inputs == '*') {
        stet_buf_char(b, '[');
        for (int i = 0, n = 1 + pick(3); i < n; i++) {
            stet_buf_str(b, i ? "," : "");
            random_binding(b, piece, before, child);
        }
        stet_buf_char(b, ']');
        return;
    }
    bool first = true;
    stet_buf_char(b, '{');
    for (char *at = strtok_r(inputs, ",", &save); at; at = strtok_r(NULL, ",", &save), first = false) {
        stet_buf_printf(b, "%s\"%s\":", first ? "" : ",", at);
        if (strcmp(at, "path") == 0)
            stet_buf_str(b, pick(3) ? "\"/a\"" : "\"/b/0\"");
        else if (strcmp(at, "keys") == 0)
            stet_buf_str(b, "[\"a\",\"id\"]");
        else if (strcmp(at, "template") == 0)
            stet_buf_str(b, "\"{a}-{b}\"");
        else
            random_binding(b, piece, before, child);
    }
    stet_buf_char(b, '}');
}

static void random_children(stet_buf *b, int piece, int before, int child) {
    static const char *const kinds[] = {"map", "map", "map", "filter", "reduce"};
    const char *ref = ONE_OF(kinds);
    stet_buf_printf(
        b, "\"module\":{\"type\":\"ref\",\"ref\":\"%s\"%s,\"pattern\":{\"pattern\":1,\"name\":\"c\",\"nodes\":[", ref,
        pick(2) ? ",\"key\":\"id\"" : "");
    int n = 1 + pick(2);
    for (int i = 0; i < n; i++) {
        stet_buf_printf(b, "%s{\"id\":\"c%d\",", i ? "," : "", i);
        random_node(b, piece, i, child + 1, false);
        stet_buf_char(b, '}');
    }
    if (strcmp(ref, "reduce") == 0 && pick(2))
        stet_buf_printf(b,
                        ",{\"id\":\"r\",\"module\":{\"type\":\"ref\",\"ref\":\"concat\"},\"inputs\":[{\"$\":"
                        "\"argument/accumulator\"},[{\"$\":\"c%d\"}]]}],\"result\":{\"$\":\"r\"}",
                        n - 1);
    else
        stet_buf_printf(b, pick(2) ? "],\"result\":{\"$\":\"c%d\"}" : "],\"result\":{\"v\":{\"$\":\"c%d\"}}", n - 1);
    stet_buf_str(b, "}},\"inputs\":{\"list\":");
    if (child)
        stet_buf_str(b, "{\"$\":\"argument/element/m\"}");
    else if (before > 0 && pick(3) == 0)
        stet_buf_printf(b, "{\"$\":\"@%d\"}", pick(before));
    else if (pick(5) == 0)
        random_link(b, piece);
    else
        stet_buf_printf(b, "{\"$\":\"argument/k%d\"}", LIST_KEY);
    stet_buf_str(b, ",\"o\":");
    random_binding(b, piece, before, child);
    stet_buf_str(b, strcmp(ref, "reduce") == 0 ? ",\"initial\":[]}" : "}");
}

static const char *const result_types[] = {"number", "string", "array", "object"};

/* The members of a node but its id. */
static void random_node(stet_buf *b, int piece, int before, int child, bool files) {
    int what = pick(20);
    /* A failure that comes last, when all else is done. Nodes with children have no schemas. */
    if (pick(16) == 0 && (what < 9 || what > 11) && !without("schemas"))
        stet_buf_printf(b, "\"resultSchema\":{\"type\":\"%s\"},", ONE_OF(result_types));
    if (what < 9) {
        random_ref(b, piece, before, child);
    } else if (what < 12 && child < 3 && !without("children")) {
        random_children(b, piece, before, child);
    } else if ((what == 12 || what == 13) && !child && !without("returns")) {
        stet_buf_printf(b,
                        "\"returns\":\"pattern\",\"module\":{\"type\":\"javascript\",\"implementation\":\"({p}) => "
                        "p\"},\"inputs\":{\"p\":{\"$\":\"argument/k%d\"},\"o\":",
                        PATTERN_KEY);
        if (pick(2)) /* so that it changes with the pattern */
            stet_buf_printf(b, "{\"$\":\"argument/k%d/argument/default/n\"}", PATTERN_KEY);
        else
            random_binding(b, piece, before, child);
        stet_buf_char(b, '}');
    } else {
        bool writes = !child && pick(3) == 0 && !without("writers");
        if (!child && !writes && pick(6) == 0 && !without("effects"))
            stet_buf_str(b, "\"kind\":\"effect\",");
        if (pick(20) == 0 && !without("timers"))
            stet_buf_str(b, pick(2) ? "\"debounceMs\":1," : "\"throttleMs\":1,");
        if (writes) {
            stet_buf_str(b, "\"materializerWriteInputPaths\":[\"m\"],\"module\":{\"type\":\"javascript\",");
            stet_buf_str(b, "\"implementation\":\"");
            char text[120];
            snprintf(text, sizeof text, ONE_OF(writers), before);
            stet_buf_printf(b, "%s\"}", text);
        } else if (files && what > 16)
            stet_buf_printf(
                b, "\"module\":{\"type\":\"javascript\",\"implementation\":{\"file\":\"%s\",\"export\":\"%s\"}}",
                ONE_OF(file_names), pick(2) ? "f" : "g");
        else
            stet_buf_printf(b, "\"module\":{\"type\":\"javascript\",\"implementation\":\"%s\"}", ONE_OF(functions));
        stet_buf_str(b, ",\"inputs\":{\"x\":");
        random_binding(b, piece, before, child);
        stet_buf_str(b, ",\"y\":");
        random_binding(b, piece, before, child);
        stet_buf_str(b, writes ? ",\"m\":{\"$\":\"m\",\"asCell\":true}}" : "}");
    }
}

static void random_file(stet_buf *b) {
    stet_buf_printf(b, "export const f = %s;\n", ONE_OF(functions));
    if (pick(8))
        stet_buf_printf(b, "export const g = %s;\n", ONE_OF(functions));
    if (pick(20) == 0)
        stet_buf_str(b, "export const h = ;\n");
}

/* A pattern for a node to return. Its nodes are of few kinds, so that some are the same in the next one, where they may
 * be shown or not, and read by others or not. `depth`: how often one of its nodes may return a pattern, too. */
static void random_pattern(stet_buf *b, int depth) {
    static const char *const modules[] = {
        "{\"type\":\"ref\",\"ref\":\"concat\"},\"inputs\":[{\"$\":\"argument/l\"},[%s,%s]]",
        "{\"type\":\"javascript\",\"implementation\":\"({x, y}) => [x, y]\"},\"inputs\":{\"x\":%s,\"y\":%s}",
        "{\"type\":\"javascript\",\"implementation\":\"({x, y}) => { if (x === 1) throw new Error('m'); return y "
        "}\"},\"inputs\":{\"x\":%s,\"y\":%s}",
        "{\"type\":\"ref\",\"ref\":\"map\",\"pattern\":{\"pattern\":1,\"name\":\"e\",\"nodes\":[{\"id\":\"z\","
        "\"module\":{"
        "\"type\":\"ref\",\"ref\":\"concat\"},\"inputs\":[[{\"$\":\"argument/element\"},{\"$\":\"argument/o\"}]]}],"
        "\"result\":{\"$\":\"z\"}}},\"inputs\":{\"list\":{\"$\":\"argument/l\"},\"o\":%s,\"q\":%s}",
        "{\"type\":\"javascript\",\"implementation\":\"({p}) => p\"},\"returns\":\"pattern\",\"inputs\":{\"p\":{\"$\":"
        "\"argument/r\"},\"o\":%s,\"q\":%s}",
    };
    int n = 1 + pick(3), kinds = depth > 0 ? 5 : 4;
    stet_buf_printf(b, "{\"pattern\":1,\"name\":\"m\",\"argument\":{\"default\":{\"l\":[1,2],\"n\":%s,\"r\":",
                    pick(2) ? "1" : ONE_OF(scalars));
    if (depth > 0)
        random_pattern(b, depth - 1);
    else
        stet_buf_str(b, "null");
    stet_buf_str(b, "}},\"nodes\":[");
    for (int i = 0; i < n; i++) {
        char inputs[2][32];
        for (int k = 0; k < 2; k++)
            if (i > 0 && pick(4) == 0)
                snprintf(inputs[k], sizeof inputs[k], "{\"$\":\"x%d\"}", pick(i));
            else
                snprintf(inputs[k], sizeof inputs[k], "{\"$\":\"argument/%c\"}", pick(4) ? 'o' : 'n');
        stet_buf_printf(b, "%s{\"id\":\"x%d\",\"module\":", i ? "," : "", i);
        stet_buf_printf(b, modules[(i + (pick(3) ? 0 : pick(kinds))) % kinds], inputs[0], inputs[1]);
        stet_buf_char(b, '}');
    }
    stet_buf_printf(b, pick(2) ? "],\"result\":{\"$\":\"x%d\"}}" : "],\"result\":{\"v\":{\"$\":\"x%d\"}}}", pick(n));
}

/* The value of a key of the argument. */
static void random_argument(stet_buf *b, int piece, int key) {
    if (key == LIST_KEY && pick(8)) {
        random_rows(b, piece);
    } else if (key == PATTERN_KEY && pick(3)) {
        random_pattern(b, pick(2));
    } else {
        random_value(b, 2, piece);
    }
}

/* The pattern's file. */
static void write_program(const program *p, int piece, stet_buf *b) {
    stet_buf_printf(b, "{\"pattern\":1,\"name\":\"p%d\",\"argument\":{\"default\":{", piece);
    bool first = true;
    for (int k = 0; k < KEYS; k++) {
        if (!p->defaults[k])
            continue;
        stet_buf_printf(b, "%s\"k%d\":%s", first ? "" : ",", k, p->defaults[k]);
        first = false;
    }
    stet_buf_printf(b, "}},\n \"cells\":{\"c\":{\"default\":%s},\"m\":{\"default\":%s}},\n \"nodes\":[\n",
                    p->cell_default, p->made_default);
    for (int i = 0; i < NODES; i++) {
        if (!p->nodes[i])
            continue;
        stet_buf_printf(b, "  {\"id\":\"n%d\",", p->ids[i]);
        for (const char *at = p->nodes[i]; *at; at++) {
            if (at[0] == '"' && at[1] == '@') {
                int k = atoi(at + 2);
                at += strspn(at + 2, "0123456789") + 1;
                if (p->nodes[k])
                    stet_buf_printf(b, "\"n%d", p->ids[k]);
                else
                    stet_buf_str(b, "\"argument/k0"); /* of a node that is gone */
            } else {
                stet_buf_char(b, *at);
            }
        }
        stet_buf_str(b, "},\n");
    }
    stet_buf_printf(
        b,
        "  {\"id\":\"h\",\"stream\":{\"$\":\"h\"},\"inputs\":{\"c\":{\"$\":\"c\",\"asCell\":true},\"x\":%s},"
        "\"module\":{\"type\":\"javascript\",\"handler\":true,\"implementation\":\"(e, {c, x}) => { if (e "
        "=== 5) throw new Error('five'); c.set({a: e, b: x === undefined ? 'none' : JSON.stringify(x)}) "
        "}\"}}],\n \"result\":{",
        p->handler);
    first = true;
    for (int i = 0; i < NODES; i++) {
        if (!p->nodes[i] || !(p->results & 1u << i))
            continue;
        stet_buf_printf(b, "%s\"n%d\":{\"$\":\"n%d\"}", first ? "" : ",", p->ids[i], p->ids[i]);
        first = false;
    }
    stet_buf_str(b, "}}\n");
}

#endif
