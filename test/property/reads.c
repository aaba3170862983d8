/* reads.c - every way to look at a value, every shape of a value, every change of shape.
 *
 * What is up to date after a change equals what a new project computes from the same documents.
 *
 * A *way* is a function in JavaScript or one input of a built-in function (all of the table STET_REFS). A *form* is how
 * it gets at the place: bound to it, inside a container that is bound, through a cell. A *place* lies at some depth of
 * a document. A *state* is a shape at every place (nothing, scalars, containers, links of every kind) together with one
 * of several versions of what the links lead to.
 *
 * A world has some of the ways and some of the states, and goes from each state to each other one; after each step all
 * that is recorded is held against a project that never knew another state:
 *
 *   L1. the same actions fail, with the same error;
 *   L2. those that do not fail have the same output;
 *   L3. nothing is left marked but what waits for a failure, and check finds nothing;
 *   L4. the same actions wait for a failure, and none of them is called up to date.
 *
 * STET_TEST_SEED is the seed, which also says which ways, forms, places and states are taken. STET_TEST_LONG: every
 * way, in two forms, with all states and all steps between them.
 */

#include "../sched_kit.h"
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
#define STATES   (SHAPES * VERSIONS)

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

static const char *const ways[] = {
    "v",
    "[v]",
    "({v})",
    "typeof v",
    "v === undefined",
    "v == null",
    "v === null",
    "v == 5",
    "v > 1",
    "v + 1",
    "!v",
    "!!v && 'yes'",
    "v ?? 'none'",
    "v || 'none'",
    "`${v}`",
    "String(v)",
    "Number(v)",
    "v.length",
    "v?.length",
    "v.a",
    "v?.a",
    "v?.a?.a",
    "v?.a?.b?.c",
    "v?.['b']",
    "v?.b?.c",
    "v?.[0]",
    "v?.[1]",
    "v?.[0]?.a",
    "v?.k",
    "v?.k?.a",
    "v?.['/']",
    "typeof v?.a",
    "typeof v?.a === 'object'",
    "typeof v?.[0]",
    "typeof v?.k",
    "Array.isArray(v)",
    "Array.isArray(v?.a)",
    "Array.isArray(v?.k)",
    "v instanceof Array",
    "v instanceof Object",
    "v?.constructor === Object",
    "Object.prototype.toString.call(v)",
    "'a' in v",
    "'k' in v",
    "0 in v",
    "1 in v",
    "'length' in v",
    "'toString' in v",
    "Reflect.has(v, 'b')",
    "v.hasOwnProperty('a')",
    "Object.hasOwn(v, 'a')",
    "Object.hasOwn(v, 'b')",
    "Object.hasOwn(v, '0')",
    "v.propertyIsEnumerable('a')",
    "Object.keys(v)",
    "Object.keys(v).length",
    "Object.keys(v?.k)",
    "Object.values(v)",
    "Object.values(v).length",
    "Object.values(v).map(x => typeof x)",
    "Object.entries(v)",
    "Object.entries(v).length",
    "Object.entries(v).map(([k, x]) => k + typeof x)",
    "Object.fromEntries(Object.entries(v))",
    "Object.getOwnPropertyNames(v)",
    "Reflect.ownKeys(v).map(String)",
    "Object.getOwnPropertyDescriptor(v, 'a')?.enumerable",
    "Object.getOwnPropertyDescriptor(v, 'a')?.get?.()",
    "Object.getOwnPropertyDescriptor(v, 'length')?.value",
    "Object.keys(Object.getOwnPropertyDescriptors(v))",
    "Object.values(Object.getOwnPropertyDescriptors(v)).map(x => x.get ? typeof x.get() : x.value)",
    "Reflect.get(v, 'a')",
    "Reflect.getPrototypeOf(v) === Array.prototype",
    "Object.isFrozen(v)",
    "Object.isExtensible(v)",
    "({...v})",
    "({...v, z: 1})",
    "Object.keys({...v})",
    "({...v?.k})",
    "Object.assign({}, v)",
    "Object.assign({q: 1}, v?.a, v?.b)",
    "[...v]",
    "[...v].length",
    "[...v].map(x => typeof x)",
    "Math.max(...v)",
    "Array.from(v)",
    "Array.from(v, x => typeof x)",
    "Array.from({length: 2}, (_, k) => v[k])",
    "new Set(v).size",
    "new Map(Object.entries(v)).size",
    "[...v[Symbol.iterator]()]",
    "typeof v[Symbol.iterator]",
    "v[Symbol.toStringTag] ?? 'no'",
    "JSON.stringify(v)",
    "JSON.stringify(v, null, 1)",
    "JSON.stringify({v})",
    "JSON.stringify([v, v])",
    "JSON.stringify(v, ['a', 'k'])",
    "JSON.stringify(v, (k, x) => typeof x === 'number' ? 0 : x)",
    "JSON.parse(JSON.stringify(v) ?? '0')",
    "JSON.stringify(v?.k)",
    "(({a}) => a)(v)",
    "(({a = 'd'}) => a)(v)",
    "(({a, ...r}) => r)(v)",
    "(({a, ...r}) => Object.keys(r))(v)",
    "(({k: {a} = {}}) => a)(v)",
    "(({a: {a, b = 4} = {}}) => [a, b])(v)",
    "(([a]) => a)(v)",
    "(([a = 'd', b = 'e']) => [a, b])(v)",
    "(([a, ...r]) => r)(v)",
    "(([, b]) => b)(v)",
    "(([{a} = {}]) => a)(v)",
    "v.at(0)",
    "v.at(-1)",
    "v.slice()",
    "v.slice(1)",
    "v.slice(-1)",
    "v.concat([9])",
    "[9].concat(v)",
    "[].concat(v, v)",
    "v.map(x => x)",
    "v.map(x => typeof x)",
    "v.map((x, k) => k)",
    "v.map(x => x?.a)",
    "v.flatMap(x => [x, x])",
    "v.filter(x => x)",
    "v.filter(x => x > 1)",
    "v.filter(x => typeof x === 'object').length",
    "v.reduce((s, x) => s + typeof x, '')",
    "v.reduceRight((s, x) => s + JSON.stringify(x), '')",
    "v.includes(2)",
    "v.includes(undefined)",
    "v.indexOf(2)",
    "v.lastIndexOf(2)",
    "v.find(x => x === 2)",
    "v.find(x => x?.a === 2)?.id",
    "v.findIndex(x => x === 2)",
    "v.findLast(x => x)",
    "v.findLastIndex(x => x > 1)",
    "v.some(x => x === undefined)",
    "v.every(x => x)",
    "v.flat()",
    "v.flat(Infinity)",
    "v.join()",
    "v.join('+')",
    "v.toString()",
    "v.keys().next().value",
    "[...v.keys()]",
    "[...v.values()]",
    "[...v.entries()]",
    "v.toSorted()",
    "v.toReversed()",
    "v.toSpliced(0, 1)",
    "v.with(0, 'w')",
    "[...v].sort()",
    "[...v].reverse()",
    "Object.groupBy(v, x => typeof x)",
    "v.forEach(x => x)",
    "v.copyWithin(0, 1)",
    "v.push(1)",
    "v.sort()",
    "v.charAt?.(0)",
    "v.toFixed?.(1)",
    "v.toUpperCase?.()",
    "v.split?.('')",
    "v == v?.k",
    "v?.a == v?.b",
    "v?.a === v?.b",
    "v?.a < v?.b",
    "Object.is(v?.a, 1)",
    "v?.[0] === v?.[1]",
    "[v] + ''",
    "isNaN(v)",
    "void v",
    "(v, 1)",
    "v?.a ? v.b : v",
    "(() => { const k = []; for (const x in v) k.push(x); return k })()",
    "(() => { const k = []; for (const x in v) k.push(typeof v[x]); return k })()",
    "(() => { for (const x in v) return x; return 'none' })()",
    "(() => { let n = 0; for (const x of v) n++; return n })()",
    "(() => { const k = []; for (const x of v) k.push(x); return k })()",
    "(() => { for (const x of v) if (x) return x })()",
    "(() => { for (const [k, x] of Object.entries(v)) if (k === 'b') return x })()",
    "(() => { let k = 0; while (k < v.length && v[k] !== 2) k++; return k })()",
    "(() => { const i = v[Symbol.iterator](); return i.next().value })()",
    "(() => { function* g() { yield* v } return [...g()] })()",
    "(() => { v.a = 1; return 'set' })()",
    "(() => { delete v.a; return 'deleted' })()",
    "(() => { Object.defineProperty(v, 'a', {value: 1}); return 'defined' })()",
    "(() => { switch (v) { case 5: return 'five'; case undefined: return 'none'; default: return 'other' } })()",
    "(() => { try { return v.a.a } catch (e) { return 'caught' } })()",
    "(() => { const s = new Set(); for (const x of Object.values(v)) s.add(x); return s.size })()",
    "(() => { const w = new WeakMap(); w.set(v, 1); return w.has(v) })()",
    "(() => { let r = v; for (const k of ['a', 'b', 'c']) r = r?.[k]; return r })()",
    "(() => { let r = 0; for (let k = 0; k < 70; k++) r += typeof v?.[k] === 'undefined'; return r })()",
    "(() => { let r = 0; for (let k = 0; k < 70; k++) r += 'x' + k in v; return r })()",
    "Object.freeze(v)",
    "Object.isSealed(v)",
    "Reflect.set(v, 'a', 1)",
    "Reflect.deleteProperty(v, 'a')",
    "Object.setPrototypeOf(v, null)",
    "v.__proto__ === Array.prototype",
    "v.valueOf()",
    "typeof v?.toJSON",
    "new Proxy(v, {}).a",
    "Object.keys(new Proxy(v, {}))",
    "Object.create(v).a",
    "'a' in Object.create(v)",
    "JSON.stringify(Object.create(v))",
    "(() => { const k = []; for (const x in Object.create(v)) k.push(x); return k })()",
    "Array.prototype.map.call(v, x => typeof x)",
    "Array.prototype.slice.call(v)",
    "Array.prototype.includes.call(v, 1)",
    "Math.max.apply(null, v)",
    "Reflect.apply(Math.max, null, v)",
    "Array.of(...v)",
    "[...Uint8Array.from(v)]",
    "[...new Uint8Array(v)]",
    "Object.fromEntries(v)",
    "[...new Map(v)].length",
    "v.reduce((a, b) => a + b)",
    "[...Iterator.from(v)].length",
    "Object.entries(v).flat()",
    "(() => { v.length = 0; return 'cut' })()",
    "(() => { const {length} = v; return length })()",
    "(() => { const {[0]: x = 'd', a: {b: y = 'e'} = {}} = v; return [x, y] })()",
    "(() => { let {a, b, k} = v; return [typeof a, typeof b, typeof k] })()",
    "(() => { class P { constructor(x) { Object.assign(this, x) } } return Object.keys(new P(v)) })()",
    "(() => { const f = x => x && typeof x === 'object' ? Object.values(x).map(f) : typeof x; return f(v) })()",
};
#define WAYS (sizeof ways / sizeof *ways)

/* How a function gets at the place: its inputs (@ is a link to the place, % one to its container, ^ one to the
 * document, & and * the first two as cells, ~ what a map over the place gives), and what it does to have it as v. */
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
};
#define FORMS (sizeof forms / sizeof *forms)

typedef struct node {
    stet_value inputs, module;
    char *what;
    const place *mapped; /* it reads what the map over that place gives */
    char *way;           /* the same for all forms and places */
} node;
typedef STET_VEC(node) node_list;

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
        else if (*text == '~')
            stet_buf_printf(&b, "{'$':'map_%s'}", p->doc);
        else if (*text == '$')
            stet_buf_str(&b, p->take);
        else if (*text == '#')
            stet_buf_str(&b, p->key);
        else
            stet_buf_char(&b, *text);
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
                char *take = fill(forms[f].take, &places[p]);
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
                                            strchr(forms[f].inputs, '~') ? &places[p] : NULL, stet_strdup(ways[w])};
                stet_free(take);
                stet_free(code);
            }
}

/* Several looks in one function, at the place and below it, with writes to a cell of its own between some of them: what
 * was read up to a write is recorded before it. */
static void add_sequences(node_list *out, uint64_t *random) {
    static const char *const parts[] = {"v", "v?.a", "v?.k", "v?.[0]", "v?.b", "v?.k?.a", "v?.['/']", "v?.x1"};
    for (size_t i = 0; i < 4000; i++) {
        const place *p = &places[draw(random, PLACES)];
        const form *f = &forms[draw(random, FORMS)];
        if ((f->contained && !p->above) || f->inputs[0] == '[')
            continue;
        stet_buf code = STET_BUF(0);
        char *take = fill(f->take, p);
        stet_buf_printf(&code, "(i) => { const w = i.w, all = []; const first = %s", take);
        stet_buf_str(&code, " return v }; let v;");
        for (size_t n = 2 + draw(random, 4); n > 0; n--) {
            if (draw(random, 3) == 0)
                stet_buf_printf(&code, " w.key('%s').set(%zu);", draw(random, 2) ? "m" : "n", n);
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
                   strchr(f->inputs, '~') ? p : NULL, stet_asprintf("sequence %zu", i % 300)};
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
               bound[0] == '~' ? p : NULL, stet_asprintf("%s %s", row->name, at)};
}

static void add_refs(node_list *out) {
#define ROW(name) &ref_row_##name,
    static const ref_row *const rows[] = {STET_REFS(ROW)};
#undef ROW
    static const char *const bound[] = {"@", "{'k':@,'z':1}", "[@,1]", "%", "~"};
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
    size_t state;
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
    outcome **expected; /* by state, then node; NULL: not known yet */
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

static void go(place_world *x, size_t state) {
    const char *shape = shapes[state / VERSIONS];
    size_t version = state % VERSIONS;
    stet_tx *tx;
    for (int far = 0; far < 2; far++) {
        ok(stet_tx_begin(far ? x->other : x->w->space, "", &tx, &err));
        for (size_t i = 0; i < TARGETS; i++)
            if ((strcmp(targets[i].id, "far") == 0) == far)
                put(tx, targets[i].id, targets[i].scope, targets[i].value[version]);
        for (size_t i = 0; i < PLACES; i++) {
            if ((places[i].space != NULL) != far)
                continue;
            stet_buf b = STET_BUF(0);
            for (const char *c = shape ? places[i].with : ""; *c; c++) {
                if (*c == '@')
                    stet_buf_str(&b, shape);
                else
                    stet_buf_char(&b, *c);
            }
            put(tx, places[i].doc, places[i].scope, shape ? stet_buf_cstr(&b) : places[i].without);
            stet_buf_release(&b);
        }
        ok(stet_tx_commit(tx, NULL, &err));
    }
    x->state = state;
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
    for (size_t i = 0; i < PLACES; i++) { /* a list whatever is there, and a child for each element */
        char *text = fill("{'v':@}", &places[i]);
        char *both = stet_asprintf("[{'id':'list_%s','inputs':%s,'module':#({v}) => Array.isArray(v) ? v : []#},"
                                   "{'id':'map_%s','inputs':{'list':{'$':'list_%s'}},"
                                   "'module':{'type':'ref','ref':'map','pattern':%s}}]",
                                   places[i].doc, text, places[i].doc, places[i].doc, mapped_child);
        stet_value two = kit_value(both);
        stet_value_push(&nodes, stet_value_retain(stet_value_at(two, 0)));
        stet_value_push(&nodes, stet_value_retain(stet_value_at(two, 1)));
        stet_value_release(two);
        stet_free(text);
        stet_free(both);
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

static place_world new_world(test *t, size_t state) {
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
    go(&x, state);
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
    bool list_failed[PLACES] = {false};
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
            for (size_t k = 0; k < PLACES && at[i].failed; k++)
                list_failed[k] |= strncmp(name, "list_", 5) == 0 && strcmp(name + 5, places[k].doc) == 0;
            if (strncmp(name, "list_", 5) == 0 || strncmp(name, "map_", 4) == 0)
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
        const place *mapped = t->nodes[n]->mapped;
        bool may_wait = inside[n] || other_failed || (mapped && list_failed[mapped - places]);
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

static const outcome *from_scratch(test *t, size_t state) {
    if (!t->expected[state]) {
        place_world x = new_world(t, state);
        kit_run(x.w, "p");
        t->expected[state] = look(&x, t);
        t->scratch++;
        end_world(&x);
    }
    return t->expected[state];
}

static long differences;

static void compare(place_world *x, test *t, size_t from) {
    const outcome *want = from_scratch(t, x->state);
    outcome *found = look(x, t);
    for (size_t n = 0; n < t->count; n++) {
        if (want[n].waits && found[n].waits)
            continue;
        if (want[n].waits == found[n].waits && want[n].failed == found[n].failed &&
            stet_hash_equal(want[n].error, found[n].error) && strcmp(want[n].output, found[n].output) == 0)
            continue;
        print_error("L%d: seed %llu\n  %s\n  from %.200s (%zu) to %.200s (%zu)\n  expected%s %s\n  found   %s %s\n",
                    want[n].waits != found[n].waits     ? 4
                    : want[n].failed != found[n].failed ? 1
                                                        : 2,
                    (unsigned long long)t->seed, t->nodes[n]->what,
                    shapes[from / VERSIONS] ? shapes[from / VERSIONS] : "nothing", from % VERSIONS,
                    shapes[x->state / VERSIONS] ? shapes[x->state / VERSIONS] : "nothing", x->state % VERSIONS,
                    want[n].waits ? " (waits)" : "", want[n].output, found[n].waits ? " (waits)" : "", found[n].output);
        if (++differences > 20)
            fail_msg("more than 20 differences");
    }
    t->compared += (long)t->count;
    release(t, found);
}

static void step(place_world *x, test *t, size_t to) {
    size_t from = x->state;
    go(x, to);
    if (below(t, 16) == 0) {
        t->restarts++;
        stet_space_close(x->other);
        kit_restart(x->w);
        open_other(x);
    }
    kit_run(x->w, "p");
    t->runs += (long)x->w->report.runs;
    t->steps++;
    compare(x, t, from);
    if (below(t, 64) == 0)
        kit_recorded(x->w);
}

/* All steps between these states, in both directions. */
static void walk(test *t, const size_t *states, size_t count) {
    t->expected = stet_alloc_zero(STATES * sizeof *t->expected);
    place_world x = new_world(t, states[0]);
    kit_run(x.w, "p");
    compare(&x, t, states[0]);
    for (size_t i = 0; i < count; i++)
        for (size_t j = i; j < count; j++) {
            if (x.state != states[i])
                step(&x, t, states[i]);
            if (j != i)
                step(&x, t, states[j]);
        }
    end_world(&x);
    for (size_t s = 0; s < STATES; s++)
        release(t, t->expected[s]);
    free(t->expected);
}

static void every_look_at_every_shape(void **state) {
    (void)state;
    bool all = getenv("STET_TEST_LONG") != NULL, few = getenv("STET_TEST_SHORT") != NULL;
    const char *seed = getenv("STET_TEST_SEED");
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
    size_t taken = t.all.len, group = 250;
    if (all) {
        stet_map met = {0};
        taken = 0;
        for (size_t i = 0; i < t.all.len; i++) {
            stet_slot *times = stet_map_get(&met, order[i]->way, strlen(order[i]->way));
            if (!times)
                stet_map_put(&met, order[i]->way, strlen(order[i]->way), (stet_slot){.n = 1});
            else if (++times->n > 2)
                continue;
            order[taken++] = order[i];
        }
        stet_map_release(&met);
    } else if (taken > group * (few ? 2 : 24)) {
        taken = group * (few ? 2 : 24);
    }
    for (size_t from = 0; from < taken; from += group) {
        size_t states[STATES];
        for (size_t i = 0; i < STATES; i++) {
            size_t j = below(&t, i + 1);
            states[i] = states[j];
            states[j] = i;
        }
        t.nodes = order + from;
        t.count = taken - from < group ? taken - from : group;
        walk(&t, states, all ? STATES : 6);
    }
    print_message(
        "# %zu of %zu looks: %ld steps with %ld runs and %ld restarts, %ld outcomes compared with %ld projects\n",
        taken, t.all.len, t.steps, t.runs, t.restarts, t.compared, t.scratch);
    assert_int_equal(differences, 0);
    for (size_t i = 0; i < t.all.len; i++) {
        stet_value_release(t.all.at[i].inputs);
        stet_value_release(t.all.at[i].module);
        stet_free(t.all.at[i].what);
        stet_free(t.all.at[i].way);
    }
    stet_vec_release(&t.all);
    free(order);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_look_at_every_shape)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
