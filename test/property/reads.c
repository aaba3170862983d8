/* reads.c - every way to look at a value, every shape of a value, every change of shape.
 *
 * What is up to date after a change equals what a new project computes from the same documents.
 *
 * A *way* is a function in JavaScript (looks.h) or one input of a built-in function (all of the table STET_REFS). A
 * *form* is how it gets at the place: bound to it, inside a container that is bound, through a cell, through the output
 * of another node. A *place* lies at some depth of a document. A *setting* is a shape that lies at every place (nothing,
 * scalars, containers, links of every kind) together with a version of each document that the links lead to.
 *
 * A world has some of the looks (a way in a form at a place) and goes from setting to setting. A step changes the
 * shape, or one target alone: a change of several could hide that one of them was not recorded. Some steps pass through
 * a third setting, or through a space without any of the documents, before anything runs. After each step all that is
 * recorded is held against a project that never knew another setting:
 *
 *   L1. the same actions fail, with the same error;
 *   L2. those that do not fail have the same output;
 *   L3. nothing is left marked but what waits for a failure, and check finds nothing;
 *   L4. the same actions wait for a failure, and none of them is called up to date.
 *
 * STET_TEST_SEED is the seed. Without STET_TEST_LONG each way is taken once, in a form and at a place that the seed
 * draws, and meets a part of the shapes, by a change of the shape and then by a change of a target; all shapes are met.
 * STET_TEST_SHAPES=all: each way meets all of them. With STET_TEST_LONG each way is taken in two forms and meets every
 * change from one shape to another, and every change of one target from one version to another, in both directions.
 * STET_TEST_GROUPS bounds how many worlds there are, STET_TEST_WAY takes the looks whose description contains a text.
 */

#include "../sched_kit.h"
#include "looks.h"
#include "module/ref.h"
#include "scheduler/standing.h"

#define LINK(id)           "{'/':{'link@1':{'id':'" id "'}}}"
#define LINK_AT(id, path)  "{'/':{'link@1':{'id':'" id "','path':[" path "]}}}"
#define LINK_IN(id, space) "{'/':{'link@1':{'id':'" id "','space':'" space "'}}}"

/* More than are told apart one by one. */
#define TEN  "1,1,1,1,1,1,1,1,1,1"
#define MANY TEN "," TEN "," TEN "," TEN "," TEN "," TEN "," TEN
#define KEYS(k)                                                                                                        \
    "'" k "0':1,'" k "1':1,'" k "2':1,'" k "3':1,'" k "4':1,'" k "5':1,'" k "6':1,'" k "7':1,'" k "8':1,'" k "9':1"
#define WIDE KEYS("x") "," KEYS("x1") "," KEYS("x2") "," KEYS("x3") "," KEYS("x4") "," KEYS("x5") "," KEYS("x6")

static size_t draw(uint64_t *random, size_t n) {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (size_t)(*random % n);
}

/* NULL: nothing is there. */
static const char *const shapes[] = {
    NULL,
    "null",
    "5",
    "0",
    "'text'",
    "''",
    "true",
    "{}",
    "[]",
    "{'a':1,'b':{'c':2}}",
    "{'a':1}",
    "{'a':{'a':3}}",
    "[1,2]",
    "[2]",
    "[2,1,3]",
    "[{'a':1,'id':1},{'a':2,'id':2}]",
    "[[1],[2,3]]",
    LINK("ts"),
    LINK("to"),
    LINK("ta"),
    LINK("later"),
    LINK("l2"),
    LINK_AT("to", "'b'"),
    LINK_AT("part", "'y'"),
    LINK_AT("ta", "'0'"),
    LINK("c1"),
    LINK_IN("far", "other"),
    LINK("piece:q:node:made"),
    "{'a':" LINK("ts") ",'b':" LINK("later") "}",
    "{'b':" LINK("later") "}",
    "[" LINK("later") "," LINK("ts") "]",
    "[" LINK("l2") "]",
    "[" LINK("later") "]",
    "{'a':" LINK("c1") ",'x':1}",
    "{'/':{'link@1':{'id':'to','asCell':true}}}",
    "{'/':{'link@1':{'path':[]}}}",
    "{'/':{'file@1':{'path':'x'}}}",
    "{'/':{'object@1':{'id':'x','size':1}}}",
    "{'/':5}",
    "{'/':5,'a':1}",
    "{'a':" LINK("p0") ",'y':1}",
    "[" LINK("p0") "," LINK("p1") "]",
    LINK("p1"),
    LINK("h0"),
    LINK("h9"),
    LINK_IN("far", "nowhere"),
    "{'/':{'link@1':{'id':'ts','scope':'user:y'}}}",
    "[" MANY "]",
    "[" LINK("later") "," MANY "," LINK("ts") "]",
    "[" MANY "," LINK("c1") "]",
    "{" WIDE "}",
    "{'a':" LINK("ts") "," WIDE ",'z':" LINK("later") "}",
    "-1.5",
    "9007199254740993",
    "'5'",
    "'a,b'",
    "'\u00e9\u2603'",
    "[null]",
    "[[],{}]",
    "[1,null,'x',true]",
    "{'a':null}",
    "{'b':1,'a':1}",
    "{'':1}",
    "{'length':2,'0':7,'1':8}",
    "{'0':1,'1':2}",
    "{'toString':1,'constructor':2,'hasOwnProperty':3}",
    "{'__proto__':{'a':1}}",
    "{'toJSON':1,'then':2,'get':3}",
    "{'a/b':1,'~':2}",
    "{'size':1,'a':[],'b':[1]}",
    "{'a':" LINK("l2") "}",
    "{'a':{'a':" LINK("later") "}}",
    "[[" LINK("later") "]]",
    "[" LINK("ts") "," LINK("ts") "]",
    LINK_AT("to", "'b','c'"),
    LINK_AT("l2", "'a'"),
    LINK_AT("ts", "'a'"),
    LINK_AT("ta", "'length'"),
    LINK_AT("ta", "'1','a'"),
    LINK_AT("later", "'a'"),
    LINK_AT("c1", "'a'"),
    LINK("piece:q:node:never"),
    "{'/':{'link@1':{'id':'ts','scope':'user:none'}}}",
    "{'/':{'link@1':{'id':'far','space':'other','path':['a']}}}",
    "[" LINK_IN("far", "other") "," LINK_IN("gone", "other") "]",
};
#define SHAPES (sizeof shapes / sizeof *shapes)

/* What links lead to, in each version. `far` lies in another space. */
typedef struct target {
    const char *id, *scope;
    const char *value[4];
} target;
static const target targets[] = {
    {"ts", NULL, {"7", "'w'", "{'a':1}", NULL}},
    {"to", NULL, {"{'a':10,'b':{'c':1}}", "{'a':11,'k':" LINK("ts") "}", "[1,2]", LINK("ta")}},
    {"ta", NULL, {"[4,{'a':5}]", "[4]", "{'a':{}}", "null"}},
    {"later", NULL, {NULL, "{'a':3}", "[" LINK("ts") "]", LINK("later")}},
    {"part", NULL, {"{'x':1}", "{'x':1,'y':[8]}", LINK("to"), "[]"}},
    {"l1", NULL, {LINK("to"), LINK("to"), LINK("later"), LINK_AT("part", "'x'")}},
    {"l2", NULL, {LINK("l1"), LINK("l1"), LINK("l1"), "6"}},
    {"c1", NULL, {LINK("c2"), LINK("c2"), "1", LINK("c2")}},
    {"c2", NULL, {LINK("c1"), LINK("c1"), LINK("c1"), NULL}},
    {"ts", "user:y", {"8", NULL, "{'a':" LINK("ts") "}", "[]"}},
    {"h30", NULL, {LINK("h31"), "{'a':9}", LINK("h31"), NULL}}, /* in a chain from h0 to h66 */
    {"far", NULL, {"{'a':20}", "{'a':21,'n':1}", NULL, "5"}},
};
#define TARGETS  (sizeof targets / sizeof *targets)
#define VERSIONS 4

typedef struct setting {
    unsigned char shape;
    unsigned char version[TARGETS];
} setting;

typedef struct place {
    const char *doc, *scope, *space; /* NULL: none, and that of the piece */
    const char *path;                /* of a link to it */
    const char *above;               /* of a link to its container; NULL: it has none */
    const char *take;                /* from the document, in JavaScript */
    const char *key;                 /* in its container, in JavaScript */
    const char *with, *without;      /* the document; @ is the shape */
} place;
static const place places[] = {
    {"p0", NULL, NULL, "", NULL, "d", NULL, "@", NULL},
    {"p1", NULL, NULL, "'k'", "", "d?.k", "'k'", "{'k':@,'z':0}", "{'z':0}"},
    {"p2", NULL, NULL, "'0','k'", "'0'", "d?.[0]?.k", "'k'", "[{'k':@},1]", "[{},1]"},
    {"p3", NULL, NULL, "'l','1'", "'l'", "d?.l?.[1]", "1", "{'l':[1,@]}", "{'l':[1]}"},
    {"p4", NULL, NULL, "'o','p','k'", "'o','p'", "d?.o?.p?.k", "'k'", "{'o':{'p':{'k':@}}}", NULL},
    {"p5", "user:x", NULL, "'k'", "", "d?.k", "'k'", "{'k':@,'z':0}", "{'z':0}"},
    {"p6", NULL, "other", "'k'", "", "d?.k", "'k'", "{'k':@,'z':0}", "{'z':0}"},
};
#define PLACES (sizeof places / sizeof *places)

#define WAYS (sizeof ways / sizeof *ways)

/* How a function gets at the place: its inputs (@ is a link to the place, % one to its container, ^ one to the
 * document, & and * the first two as cells, ~ what a map over the place gives, ! what a built-in function passes on,
 * ? and > what a function passes on inside of a container), and what it does to have it as v. */
typedef struct form {
    const char *inputs, *take;
    bool contained; /* only where the place has a container */
} form;
static const form forms[] = {
    {"{'v':@}", "({v}) => {", false},
    {"{'d':^}", "({d}) => { const v = $;", false},
    {"{'v':%}", "({v}) => {", true},
    {"{'v':{'k':@,'z':1}}", "({v}) => {", false},
    {"{'v':[@,1]}", "({v}) => {", false},
    {"[@]", "v => {", false},
    {"{'c':&}", "({c}) => { const v = c.get();", false},
    {"{'c':*}", "({c}) => { const v = c.key(#).get();", true},
    {"{'c':*}", "({c}) => { const v = c.get();", true},
    {"{'v':~}", "({v}) => {", false},
    {"{'v':{'k':~}}", "({v}) => {", false},
    {"[@]", "(v = 'd') => {", false},
    {"[@,1]", "(...r) => { const v = r[0];", false},
    {"[@,1]", "(...v) => {", false},
    {"[@]", "function () { const v = arguments[0];", false},
    {"{'v':@}", "({v = 'd', ...r}) => {", false},
    {"{'a':@,'z':1}", "v => {", false},
    {"{'v':@,'z':1}", "i => { const {z, ...r} = i, {v} = r;", false},
    {"{'v':@,'z':1}", "i => { const v = JSON.parse(JSON.stringify(i)).v;", false},
    {"{'v':@,'u':@}", "({v, u}) => { JSON.stringify(u);", false},
    {"{'v':!}", "({v}) => {", false},
    {"{'v':?}", "({v}) => {", false},
    {"{'v':>}", "({v}) => {", false},
};
#define FORMS (sizeof forms / sizeof *forms)

typedef struct node {
    stet_value inputs, module;
    char *what;
    const place *via; /* it reads what other nodes make of that place */
    char *way;        /* the same for all forms and places */
} node;
typedef STET_VEC(node) node_list;

static bool through(const char *inputs) {
    return strpbrk(inputs, "~!?>") != NULL;
}

static char *fill(const char *text, const place *p) {
    stet_buf b = STET_BUF(0);
    for (; *text; text++) {
        bool cell = *text == '&' || *text == '*';
        const char *path = *text == '@' || *text == '&' ? p->path : *text == '%' || *text == '*' ? p->above : "";
        if (strchr("@%^&*", *text))
            stet_buf_printf(&b, "{'/':{'link@1':{'id':'%s','path':[%s]%s%s%s%s%s%s%s}}}", p->doc, path,
                            p->scope ? ",'scope':'" : "", p->scope ? p->scope : "", p->scope ? "'" : "",
                            p->space ? ",'space':'" : "", p->space ? p->space : "", p->space ? "'" : "",
                            cell ? ",'asCell':true" : "");
        else if (strchr("~!?>", *text))
            stet_buf_printf(&b, "{'$':'%s_%s%s'}",
                            *text == '~'   ? "map"
                            : *text == '!' ? "pass"
                                           : "give",
                            p->doc,
                            *text == '?'   ? "/k"
                            : *text == '>' ? "/l/0"
                                           : "");
        else
            stet_buf_char(&b, *text);
    }
    return stet_buf_take(&b, NULL);
}

static char *fill_take(const char *code, const place *p) {
    stet_buf b = STET_BUF(0);
    for (; *code; code++) {
        if (*code == '$')
            stet_buf_str(&b, p->take);
        else if (*code == '#')
            stet_buf_str(&b, p->key);
        else
            stet_buf_char(&b, *code);
    }
    return stet_buf_take(&b, NULL);
}

static stet_value filled(const char *text, const place *p) {
    char *json = fill(text, p);
    stet_value v = kit_value(json);
    stet_free(json);
    return v;
}

static void add_functions(node_list *out) {
    for (size_t w = 0; w < WAYS; w++)
        for (size_t f = 0; f < FORMS; f++)
            for (size_t p = 0; p < PLACES; p++) {
                if (forms[f].contained && !places[p].above)
                    continue;
                char *take = fill_take(forms[f].take, &places[p]);
                /* One in eight fails instead of telling what it met: failures have reads, too. */
                bool bare = (w + f + p) % 8 == 0;
                char *code =
                    bare ? stet_asprintf("%s return %s }", take, ways[w])
                         : stet_asprintf("%s try { return %s } catch (e) { return 'E ' + e.message } }", take, ways[w]);
                stet_value module = stet_value_object();
                stet_value_put(&module, "type", stet_value_string("javascript"));
                stet_value_put(&module, "implementation", stet_value_string(code));
                if ((w + f + p) % 16 == 1)
                    stet_value_put(
                        &module, "argumentSchema",
                        kit_value("{'prefixItems':[{'properties':{'v':{'type':['object','array','null']},'c':{'not':{"
                                  "'required':['k']}}}}]}"));
                *stet_vec_add(out) = (node){filled(forms[f].inputs, &places[p]), module,
                                            stet_asprintf("%s on %s of %s", code, forms[f].inputs, places[p].doc),
                                            through(forms[f].inputs) ? &places[p] : NULL, stet_strdup(ways[w])};
                stet_free(take);
                stet_free(code);
            }
}

#define SEQUENCES 100

/* Several looks in one function, at the place and below it, with writes to a cell of its own between some of them: what
 * was read up to a write is recorded before it. */
static void add_sequences(node_list *out, uint64_t *random) {
    static const char *const parts[] = {"v", "v?.a", "v?.k", "v?.[0]", "v?.b", "v?.k?.a", "v?.['/']", "v?.x1"};
    for (size_t i = 0; i < 4000; i++) {
        const place *p = &places[draw(random, PLACES)];
        const form *f = &forms[draw(random, FORMS)];
        if ((f->contained && !p->above) || f->inputs[0] == '[' || strstr(f->take, "i =>"))
            continue;
        stet_buf code = STET_BUF(0);
        char *take = fill_take(f->take, p);
        stet_buf_printf(&code, "(i) => { const w = i.w, all = []; const first = %s", take);
        stet_buf_str(&code, " return v }; let v;");
        for (size_t n = 2 + draw(random, 4); n > 0; n--) {
            if (draw(random, 3) == 0)
                stet_buf_printf(&code, draw(random, 4) ? " w.key('%s').set(%zu);" : " w.update({%s: %zu});",
                                draw(random, 2) ? "m" : "n", n);
            stet_buf_printf(&code,
                            " try { v = first(i); v = %s; all.push(%s) } catch (e) { all.push('E ' + e.message) }",
                            parts[draw(random, sizeof parts / sizeof *parts)], ways[draw(random, WAYS)]);
        }
        stet_buf_str(&code, " return all }");
        char *cell = stet_asprintf("{'/':{'link@1':{'id':'s%zu','asCell':true}}}", i);
        stet_value inputs = filled(f->inputs, p);
        stet_value_put(&inputs, "w", kit_value(cell));
        stet_value module = stet_value_object();
        stet_value_put(&module, "type", stet_value_string("javascript"));
        stet_value_put(&module, "implementation", stet_value_string(stet_buf_cstr(&code)));
        *stet_vec_add(out) =
            (node){inputs, module, stet_asprintf("%s on %s of %s", stet_buf_cstr(&code), f->inputs, p->doc),
                   through(f->inputs) ? p : NULL, stet_asprintf("sequence %zu", i % SEQUENCES)};
        stet_free(take);
        stet_free(cell);
        stet_buf_release(&code);
    }
}

/* What an input of a built-in function is when another one is the place. */
static const struct {
    const char *name, *value;
} usual[] = {
    {"path", "'/a'"},      {"keys", "['a','b']"},  {"default", "'none'"}, {"separator", "'-'"},
    {"condition", "true"}, {"descending", "true"}, {"by", "'a'"},         {"depth", "2"},
    {"digits", "1"},       {"text", "'a-b'"},      {"end", "3"},
};
static const char *const others[] = {"2", "'b'", "[3,1]", "{'a':4}", "false"};
#define OTHERS (sizeof others / sizeof *others)

static const char child[] =
    "{'pattern':1,'name':'c','argument':{'default':{}},'nodes':[{'id':'x','module':{'type':'javascript',"
    "'implementation':'({e}) => JSON.stringify([e]).length'},'inputs':{'e':{'$':'argument/element'}}},"
    "{'id':'y','module':{'type':'ref','ref':'value'},'inputs':{'value':{'$':'argument/element'}}}],"
    "'result':{'$':'%s'}}";

static const char mapped_child[] =
    "{'pattern':1,'name':'c','argument':{'default':{}},'nodes':[{'id':'y','module':{'type':'ref','ref':'value'},"
    "'inputs':{'value':{'$':'argument/element'}}}],'result':{'a':{'$':'y'}}}";

/* One node: input number `at` of the row is the place, `form` says how. */
static void add_ref(const ref_row *row, const char *at, const place *p, const char *bound, const char *other,
                    node_list *out) {
    stet_value inputs = stet_value_object(), module = stet_value_object();
    char words[256], *save = NULL;
    snprintf(words, sizeof words, "%s", row->inputs);
    for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        size_t n = strlen(word);
        bool optional = word[n - 1] == '?', rest = n > 3 && strcmp(word + n - 3, "...") == 0;
        if (strcmp(word, "*") == 0) {
            if (!ref_has_children(row))
                stet_value_put(&inputs, "v", strcmp(at, "v") == 0 ? filled(bound, p) : kit_value(other));
            continue;
        }
        word[rest ? n - 3 : n - (size_t)optional] = 0;
        if (rest && other == others[4]) { /* inputs of any names */
            stet_value_put(&inputs, "x", filled(bound, p));
            stet_value_put(&inputs, "y", kit_value("2"));
            continue;
        }
        const char *value = other;
        for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
            if (strcmp(usual[i].name, word) == 0 && other == others[0])
                value = usual[i].value;
        if (strcmp(word, "template") == 0)
            value = other == others[0] ? "'<{v}>'" : "'<{v/a}{v/k/a}>'";
        if (strcmp(word, at) == 0)
            stet_value_put(&inputs, word, filled(bound, p));
        else if (!(ref_has_children(row) && optional) && !(optional && other == others[1]))
            stet_value_put(&inputs, word, kit_value(value));
    }
    stet_value_put(&module, "type", stet_value_string("ref"));
    stet_value_put(&module, "ref", stet_value_string(row->name));
    if (ref_has_children(row)) {
        char *text = stet_asprintf(child, other == others[0] ? "x" : "y");
        stet_value_put(&module, "pattern", kit_value(text));
        if (other == others[2])
            stet_value_put(&module, "key", stet_value_string("a"));
        stet_free(text);
    }
    *stet_vec_add(out) =
        (node){inputs, module, stet_asprintf("ref %s, %s = %s of %s, others %s", row->name, at, bound, p->doc, other),
               through(bound) ? p : NULL, stet_asprintf("%s %s", row->name, at)};
}

static void add_refs(node_list *out) {
#define ROW(name) &ref_row_##name,
    static const ref_row *const rows[] = {STET_REFS(ROW)};
#undef ROW
    static const char *const bound[] = {"@", "{'k':@,'z':1}", "[@,1]", "%", "~", "!", "?", "{'a':[>]}"};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        char words[256], *save = NULL;
        snprintf(words, sizeof words, "%s", rows[r]->inputs);
        for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
            char name[32];
            snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "?."), word);
            if (strcmp(word, "*") == 0) {
                if (ref_has_children(rows[r]))
                    continue;
                snprintf(name, sizeof name, "v");
            }
            for (size_t p = 0; p < PLACES; p++)
                for (size_t b = 0; b < sizeof bound / sizeof *bound; b++)
                    for (size_t o = 0; o < OTHERS; o++) {
                        if (bound[b][0] == '%' && !places[p].above)
                            continue;
                        if (rows[r] == &ref_row_files && o > 0)
                            continue;
                        if (ref_has_children(rows[r]) && (o > 2 || strcmp(name, "initial") == 0))
                            continue;
                        add_ref(rows[r], name, &places[p], bound[b], others[o], out);
                    }
        }
    }
}

typedef struct place_world {
    world *w;
    stet_space *other;
    setting now;
} place_world;

typedef struct outcome {
    bool failed;
    bool waits; /* it reads what a failed action would have made: its last output, or none in a new project */
    stet_hash error;
    char *output;
} outcome;

typedef struct test {
    node_list all;
    node **nodes; /* of this world */
    size_t count;
    uint64_t random, seed;
    stet_map expected; /* outcomes of all nodes by relevant() */
    STET_VEC(outcome *) outcomes;
    long steps, runs, compared, scratch, restarts;
} test;

static size_t below(test *t, size_t n) {
    return draw(&t->random, n);
}

static void put(stet_tx *tx, const char *id, const char *scope, const char *json) {
    if (!json) {
        ok(stet_tx_drop(tx, &(stet_docname){id, scope}, &err));
        return;
    }
    stet_value envelope = stet_value_object();
    stet_value_put(&envelope, "value", kit_value(json));
    ok(stet_tx_put(tx, &(stet_docname){id, scope}, envelope, &err));
}

static bool same(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Writes a place: all of its document, or the place alone. */
static void put_place(stet_tx *tx, const place *p, const char *old, const char *shape, bool whole) {
    stet_path path = STET_PATH_INIT;
    if (!whole && old && shape && p->path[0]) {
        char *list = stet_asprintf("['value',%s]", p->path);
        stet_value keys = kit_value(list);
        for (size_t i = 0; i < stet_value_count(keys); i++) {
            stet_value key = stet_value_at(keys, i);
            stet_path_push(&path, stet_value_as_string(&key, NULL));
        }
        ok(stet_tx_write(tx, &(stet_docname){p->doc, p->scope}, stet_path_ref(&path), kit_value(shape), &err));
        stet_value_release(keys);
        stet_free(list);
        stet_path_release(&path);
        return;
    }
    stet_buf b = STET_BUF(0);
    for (const char *c = shape ? p->with : ""; *c; c++) {
        if (*c == '@')
            stet_buf_str(&b, shape);
        else
            stet_buf_char(&b, *c);
    }
    put(tx, p->doc, p->scope, shape ? stet_buf_cstr(&b) : p->without);
    stet_buf_release(&b);
}

typedef enum manner { WHOLE, PLACE_ALONE, EVERYTHING, NOTHING } manner;

/* Writes what differs from the setting before, or everything; NOTHING: removes all documents. */
static void go(place_world *x, const setting *to, manner how) {
    const char *old = shapes[x->now.shape], *shape = shapes[to->shape];
    stet_tx *tx;
    for (int far = 0; far < 2; far++) {
        ok(stet_tx_begin(far ? x->other : x->w->space, "", &tx, &err));
        for (size_t i = 0; i < TARGETS; i++) {
            const char *value = how == NOTHING ? NULL : targets[i].value[to->version[i]];
            bool differs = how >= EVERYTHING || !same(value, targets[i].value[x->now.version[i]]);
            if ((strcmp(targets[i].id, "far") == 0) == far && differs)
                put(tx, targets[i].id, targets[i].scope, value);
        }
        for (size_t i = 0; i < PLACES; i++) {
            if ((places[i].space != NULL) != far)
                continue;
            if (how == NOTHING)
                put(tx, places[i].doc, places[i].scope, NULL);
            else if (how == EVERYTHING || to->shape != x->now.shape)
                put_place(tx, &places[i], old, shape, how != PLACE_ALONE);
        }
        ok(stet_tx_commit(tx, NULL, &err));
    }
    x->now = *to;
}

/* Which targets can a text lead to, as they are now? */
static void follow(const char *text, const setting *at, bool met[TARGETS]) {
    for (const char *id = text; id && (id = strstr(id, "'id':'"));) {
        id += 6;
        size_t len = strcspn(id, "'");
        for (size_t i = 0; i < TARGETS; i++) {
            bool named = strlen(targets[i].id) == len && memcmp(targets[i].id, id, len) == 0;
            bool chain = id[0] == 'h' && targets[i].id[0] == 'h';
            bool made = id[0] == 'p' && len > 2 && strcmp(targets[i].id, "ts") == 0; /* what piece q makes of ts */
            if ((named || chain || made) && !met[i]) {
                met[i] = true;
                follow(targets[i].value[at->version[i]], at, met);
            }
        }
    }
}

/* The setting with the first version of all targets that nothing leads to. */
static setting relevant(const setting *at) {
    bool met[TARGETS] = {false};
    setting out = {.shape = at->shape};
    follow(shapes[at->shape], at, met);
    for (size_t i = 0; i < TARGETS; i++)
        out.version[i] = met[i] ? at->version[i] : 0;
    return out;
}

static void open_other(place_world *x) {
    ok(stet_space_open(x->w->project, "other", 0, &x->other, &err));
}

static void install(place_world *x, test *t) {
    stet_value pattern = stet_value_object(), nodes = stet_value_array(), result = stet_value_object();
    for (size_t i = 0; i < t->count; i++) {
        char id[24];
        stet_value n = stet_value_object(), ref = stet_value_object();
        snprintf(id, sizeof id, "n%zu", i);
        stet_value_put(&n, "id", stet_value_string(id));
        stet_value_put(&n, "inputs", stet_value_retain(t->nodes[i]->inputs));
        stet_value_put(&n, "module", stet_value_retain(t->nodes[i]->module));
        /* They look at their cells, and only a sequence writes, to its own: who reads the same waits for none of them.
         */
        stet_value writes = stet_value_array();
        if (stet_value_find(t->nodes[i]->inputs, "w", 1, NULL))
            stet_value_push(&writes, stet_value_string("w"));
        stet_value_put(&n, "materializerWriteInputPaths", writes);
        stet_value_push(&nodes, n);
        stet_value_put(&ref, "$", stet_value_string(id));
        stet_value_put(&result, id, ref);
    }
    for (size_t i = 0; i < PLACES; i++) { /* nodes that others may read */
        char *text = fill("{'v':@}", &places[i]);
        char *link = fill("@", &places[i]);
        char *list = stet_asprintf("[{'id':'list_%s','inputs':%s,'module':#({v}) => Array.isArray(v) ? v : []#},"
                                   "{'id':'map_%s','inputs':{'list':{'$':'list_%s'}},"
                                   "'module':{'type':'ref','ref':'map','pattern':%s}},"
                                   "{'id':'pass_%s','inputs':{'value':%s},'module':{'type':'ref','ref':'value'}},"
                                   "{'id':'give_%s','inputs':%s,'module':#({v}) => ({k: v, l: [v]})#}]",
                                   places[i].doc, text, places[i].doc, places[i].doc, mapped_child, places[i].doc, link,
                                   places[i].doc, text);
        stet_value four = kit_value(list);
        for (size_t k = 0; k < 4; k++)
            stet_value_push(&nodes, stet_value_retain(stet_value_at(four, k)));
        stet_value_release(four);
        stet_free(text);
        stet_free(link);
        stet_free(list);
    }
    stet_value_put(&pattern, "pattern", stet_value_int(1));
    stet_value_put(&pattern, "name", stet_value_string("p"));
    stet_value_put(&pattern, "nodes", nodes);
    stet_value_put(&pattern, "result", result);
    stet_pattern *p;
    stet_sched_installed out;
    stet_value problems;
    stet_error e = STET_ERROR_INIT;
    if (stet_pattern_of_value("p.json", pattern, &kit_checks, &p, &problems, &e) != STET_OK)
        fail_msg("%s: %s", e.message, stet_json_print(problems, STET_JSON_CANONICAL, NULL));
    stet_value_release(problems);
    ok(stet_sched_install(x->w->sched, p, "p", stet_value_null(), stet_value_null(), &out, &err));
    stet_pattern_free(p);
    kit_install(x->w, "q", PATTERN("{}", REF("made", "value", "{'value':" LINK("ts") "}"), "{'$':'made'}"));
}

static place_world new_world(test *t, const setting *at) {
    place_world x = {.w = kit_start()};
    stet_tx *tx;
    open_other(&x);
    ok(stet_tx_begin(x.w->space, "", &tx, &err));
    for (int i = 0; i <= 66; i++) {
        char id[8], next[64];
        snprintf(id, sizeof id, "h%d", i);
        snprintf(next, sizeof next, "{'/':{'link@1':{'id':'h%d'}}}", i + 1);
        put(tx, id, NULL, i == 66 ? "5" : next);
    }
    ok(stet_tx_commit(tx, NULL, &err));
    go(&x, at, EVERYTHING);
    install(&x, t);
    return x;
}

static void end_world(place_world *x) {
    stet_space_close(x->other);
    kit_end(x->w);
}

/* What the project says of each node. */
static outcome *look(place_world *x, test *t) {
    outcome *out = stet_alloc_zero(t->count * sizeof *out);
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record *at;
    size_t count;
    int64_t next = 0;
    bool via_failed[PLACES] = {false};
    bool *inside = stet_alloc_zero(t->count * sizeof *inside);
    stet_reason *left = stet_alloc_zero(t->count * sizeof *left);
    stet_standing standing;
    ok(stet_observe_catch_up(x->w->space, &err));
    ok(stet_standing_load(x->w->space, 0, &standing, &err));
    /* The other piece: who looks at what it failed to make waits. */
    stet_action_filter other = {.piece = "piece:q", .scope = "", .generation = -1, .limit = 10};
    ok(stet_observe_list(x->w->space, 0, &other, &arena, &at, &count, &next, &err));
    bool other_failed = count == 1 && (at[0].failed || at[0].cause.state != STET_STATE_STANDS);
    next = 0;
    do {
        stet_action_filter f = {.piece = "piece:p", .scope = "", .generation = -1, .after = next, .limit = 500};
        ok(stet_observe_list(x->w->space, 0, &f, &arena, &at, &count, &next, &err));
        for (size_t i = 0; i < count; i++) {
            const char *name = at[i].key.action;
            const char *doc = strchr(name, '_');
            for (size_t k = 0; doc && k < PLACES && at[i].failed; k++)
                via_failed[k] |= strcmp(doc + 1, places[k].doc) == 0;
            if (doc)
                continue;
            size_t n = strtoul(name + 1, NULL, 10);
            assert_true(name[0] == 'n' && n < t->count);
            bool own = strpbrk(name, "[/:") == NULL; /* not of a child, of which not all is wanted */
            if (own && stet_standing_of(&standing, at[i].action) != STET_STATE_STANDS) {
                left[n] = at[i].cause.reason;
                out[n].waits = true;
            }
            if (own) {
                out[n].failed = at[i].failed;
                out[n].error = at[i].error;
            } else {
                inside[n] |= at[i].failed;
            }
        }
    } while (next);
    for (size_t n = 0; n < t->count; n++) {
        char id[64];
        stet_value v;
        stet_path path = STET_PATH_INIT;
        stet_error e = STET_ERROR_INIT;
        stet_path_push(&path, "value");
        snprintf(id, sizeof id, "piece:p:node:n%zu", n);
        stet_status status = stet_sched_get(x->w->sched, id, NULL, stet_path_ref(&path), &v, &e);
        const place *via = t->nodes[n]->via;
        bool may_wait = inside[n] || other_failed || (via && via_failed[via - places]);
        if (out[n].waits && !may_wait)
            fail_msg("L3: seed %llu: n%zu is left %s: %s", (unsigned long long)t->seed, n, stet_reason_name(left[n]),
                     t->nodes[n]->what);
        out[n].failed |= inside[n]; /* what failed keeps its last output */
        out[n].output = out[n].failed       ? stet_strdup("failed")
                        : status == STET_OK ? stet_json_print(v, STET_JSON_CANONICAL, NULL)
                                            : stet_asprintf("%s: %s", stet_status_name(status), e.message);
        if (status == STET_OK)
            stet_value_release(v);
        stet_error_clear(&e);
        stet_path_release(&path);
    }
    stet_standing_release(&standing);
    free(inside);
    free(left);
    stet_arena_release(&arena);
    return out;
}

static void release(test *t, outcome *o) {
    for (size_t n = 0; o && n < t->count; n++)
        stet_free(o[n].output);
    free(o);
}

static const outcome *from_scratch(test *t, const setting *at) {
    setting key = relevant(at);
    stet_slot *known = stet_map_get(&t->expected, (const char *)&key, sizeof key);
    if (known)
        return t->outcomes.at[known->n];
    place_world x = new_world(t, &key);
    kit_run(x.w, "p");
    *stet_vec_add(&t->outcomes) = look(&x, t);
    stet_map_put(&t->expected, (const char *)&key, sizeof key, (stet_slot){.n = t->outcomes.len - 1});
    t->scratch++;
    end_world(&x);
    return t->outcomes.at[t->outcomes.len - 1];
}

static long differences;

static const char *told(const setting *at, char out[256]) {
    int n = snprintf(out, 256, "%.200s (", shapes[at->shape] ? shapes[at->shape] : "nothing");
    for (size_t i = 0; i < TARGETS; i++)
        n += snprintf(out + n, 256 - (size_t)n, "%d", at->version[i]);
    snprintf(out + n, 256 - (size_t)n, ")");
    return out;
}

static void compare(place_world *x, test *t, const setting *from) {
    const outcome *want = from_scratch(t, &x->now);
    outcome *found = look(x, t);
    for (size_t n = 0; n < t->count; n++) {
        char before[256], after[256];
        if (want[n].waits && found[n].waits)
            continue;
        if (want[n].waits == found[n].waits && want[n].failed == found[n].failed &&
            stet_hash_equal(want[n].error, found[n].error) && strcmp(want[n].output, found[n].output) == 0)
            continue;
        print_error("L%d: seed %llu\n  %s\n  from %s to %s\n  expected%s %s\n  found   %s %s\n",
                    want[n].waits != found[n].waits     ? 4
                    : want[n].failed != found[n].failed ? 1
                                                        : 2,
                    (unsigned long long)t->seed, t->nodes[n]->what, told(from, before), told(&x->now, after),
                    want[n].waits ? " (waits)" : "", want[n].output, found[n].waits ? " (waits)" : "", found[n].output);
        if (++differences > 20)
            fail_msg("more than 20 differences");
    }
    t->compared += (long)t->count;
    release(t, found);
}

static void step(place_world *x, test *t, const setting *to) {
    setting from = x->now;
    size_t kind = below(t, 12);
    if (kind < 2) { /* by way of others; nothing runs in between */
        setting other = *to;
        if (kind == 0)
            other.shape = (unsigned char)below(t, SHAPES);
        for (size_t i = 0; i < TARGETS; i++)
            other.version[i] = (unsigned char)below(t, VERSIONS);
        go(x, &other, WHOLE);
    } else if (kind == 2) { /* all documents are removed and made again */
        go(x, to, NOTHING);
    }
    go(x, to, kind == 2 ? EVERYTHING : (manner)below(t, 3));
    if (below(t, 16) == 0) {
        t->restarts++;
        stet_space_close(x->other);
        kit_restart(x->w);
        open_other(x);
    }
    kit_run(x->w, "p");
    t->runs += (long)x->w->report.runs;
    t->steps++;
    compare(x, t, &from);
    if (below(t, 64) == 0)
        kit_recorded(x->w);
}

static setting uniform(size_t shape, size_t version) {
    setting out = {.shape = (unsigned char)shape};
    memset(out.version, (int)version, TARGETS);
    return out;
}

/* Changes of one target that the setting leads to: one that is drawn, or all of them, forth and back. */
static void change_targets(place_world *x, test *t, bool all) {
    setting base = x->now;
    bool met[TARGETS] = {false};
    size_t count = 0;
    follow(shapes[base.shape], &base, met);
    for (size_t i = 0; i < TARGETS; i++)
        count += met[i];
    size_t chosen = count && !all ? below(t, count) : 0;
    for (size_t i = 0; i < TARGETS; i++) {
        if (!met[i])
            continue;
        bool taken = all || chosen == 0;
        chosen--;
        size_t only = below(t, VERSIONS);
        for (size_t v = 0; v < VERSIONS && taken; v++) {
            setting next = base;
            next.version[i] = (unsigned char)v;
            if (v == base.version[i] || (!all && v != only && v + 1 < VERSIONS))
                continue;
            step(x, t, &next);
            if (!all)
                return;
            step(x, t, &base);
        }
    }
}

static void shuffle(test *t, size_t *order, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t j = below(t, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

/* `order` has all shapes, and `shape_count` of them are met. */
static void walk(test *t, bool all, const size_t *order, size_t shape_count) {
    setting first = uniform(order[0], below(t, VERSIONS));
    place_world x = new_world(t, &first);
    kit_run(x.w, "p");
    compare(&x, t, &first);
    for (size_t i = 0; i < shape_count; i++) {
        setting next = uniform(order[i], below(t, VERSIONS));
        if (!all) {
            if (i > 0)
                step(&x, t, &next);
            change_targets(&x, t, false);
            continue;
        }
        for (size_t v = 0; v < VERSIONS; v++) {
            next = uniform(order[i], v);
            step(&x, t, &next);
            change_targets(&x, t, true);
        }
        for (size_t j = i + 1; j < SHAPES; j++) { /* all pairs, both directions */
            setting other = uniform(order[j], below(t, VERSIONS));
            step(&x, t, &other);
            next = uniform(order[i], below(t, VERSIONS));
            step(&x, t, &next);
        }
    }
    end_world(&x);
    for (size_t i = 0; i < t->outcomes.len; i++)
        release(t, t->outcomes.at[i]);
    stet_vec_clear(&t->outcomes);
    stet_map_release(&t->expected);
    t->expected = (stet_map){0};
}

/* The first `times` of each way, in the order that was drawn. */
static size_t choose(node **order, size_t count, uint64_t times) {
    const char *only = getenv("STET_TEST_WAY");
    stet_map met = {0};
    size_t taken = 0;
    for (size_t i = 0; i < count; i++) {
        const char *way = order[i]->way;
        stet_slot *seen = stet_map_get(&met, way, strlen(way));
        if (only && !strstr(order[i]->what, only))
            continue;
        if (!seen)
            stet_map_put(&met, way, strlen(way), (stet_slot){.n = 1});
        else if (++seen->n > times)
            continue;
        order[taken++] = order[i];
    }
    stet_map_release(&met);
    return taken;
}

static void every_look_at_every_shape(void **state) {
    (void)state;
    bool all = getenv("STET_TEST_LONG") != NULL, few = getenv("STET_TEST_SHORT") != NULL;
    const char *seed = getenv("STET_TEST_SEED"), *bound = getenv("STET_TEST_GROUPS");
    test t = {.seed = seed ? strtoull(seed, NULL, 10) : 1};
    t.random = t.seed * 88172645463325252u + 1;
    add_functions(&t.all);
    add_refs(&t.all);
    add_sequences(&t.all, &t.random);
    node **order = stet_alloc(t.all.len * sizeof *order);
    for (size_t i = 0; i < t.all.len; i++) {
        size_t j = below(&t, i + 1);
        order[i] = order[j];
        order[j] = &t.all.at[i];
    }
    size_t taken = choose(order, t.all.len, all ? 2 : 1), group = 250;
    size_t groups = bound ? strtoul(bound, NULL, 10) : few ? 1 : SIZE_MAX;
    size_t worlds = (taken + group - 1) / group;
    size_t shapes_in_order[SHAPES], at = SHAPES,
                                    met = all || getenv("STET_TEST_SHAPES") ? SHAPES
                                          : few                             ? SHAPES / 8
                                                                            : (SHAPES + worlds - 1) / worlds;
    for (size_t from = 0; from < taken && groups-- > 0; from += group) {
        t.nodes = order + from;
        t.count = taken - from < group ? taken - from : group;
        if (at >= SHAPES) { /* each shape is met before one of them is met again */
            shuffle(&t, shapes_in_order, SHAPES);
            at = 0;
        }
        walk(&t, all, shapes_in_order + at, SHAPES - at < met ? SHAPES - at : met);
        at += met;
        if (all)
            print_message("# %zu looks of %zu: %ld steps\n", from + t.count, taken, t.steps);
    }
    print_message(
        "# %zu of %zu looks at %zu shapes: %ld steps with %ld runs and %ld restarts, %ld outcomes compared with"
        " %ld projects\n",
        taken, t.all.len, SHAPES, t.steps, t.runs, t.restarts, t.compared, t.scratch);
    assert_int_equal(differences, 0);
    for (size_t i = 0; i < t.all.len; i++) {
        stet_value_release(t.all.at[i].inputs);
        stet_value_release(t.all.at[i].module);
        stet_free(t.all.at[i].what);
        stet_free(t.all.at[i].way);
    }
    stet_vec_release(&t.all);
    stet_vec_release(&t.outcomes);
    free(order);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_look_at_every_shape)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
