/* javascript.c - `javascript` modules through a run of our own.
 *
 * Tests what functions answer, what they look at, what they write, and how they fail.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "javascript_run.h"
#include "os/clock.h"

static void *state;

static int open_all(void **ctx) {
    (void)ctx;
    state = js_open("{\"time_limit_ms\":5000}");
    return 0;
}

static int close_all(void **ctx) {
    (void)ctx;
    stet_module_javascript.close(state);
    return 0;
}

#define gives(function, inputs, expected)                                                                              \
    do {                                                                                                               \
        fake_run r_;                                                                                                   \
        js_run_do(state, &r_, js_module(function), fake_parse(inputs), stet_value_null(), stet_value_null());          \
        char *got_ = fake_run_text(&r_);                                                                               \
        if (strcmp(got_, expected) != 0)                                                                               \
            fail_msg("%s %s: expected %s, got %s", function, inputs, expected, got_);                                  \
        stet_free(got_);                                                                                               \
        fake_run_release(&r_);                                                                                         \
    } while (0)

#define reads(function, inputs, expected)                                                                              \
    do {                                                                                                               \
        fake_run r_;                                                                                                   \
        js_run_do(state, &r_, js_module(function), fake_parse(inputs), stet_value_null(), stet_value_null());          \
        char *got_ = fake_run_text(&r_);                                                                               \
        if (strcmp(stet_buf_cstr(&r_.reads), expected) != 0)                                                           \
            fail_msg("%s %s: expected to read %s, read %s (%s)", function, inputs, expected, stet_buf_cstr(&r_.reads), \
                     got_);                                                                                            \
        stet_free(got_);                                                                                               \
        fake_run_release(&r_);                                                                                         \
    } while (0)

/* The message has this in it, and the hint that. */
static void fails(const char *function, const char *inputs, const char *message, const char *hint) {
    fake_run r;
    js_run_do(state, &r, js_module(function), fake_parse(inputs), stet_value_null(), stet_value_null());
    char *got = fake_run_text(&r);
    if (!r.failed || !strstr(r.error.message, message) || !strstr(r.error.hint, hint))
        fail_msg("%s: expected an error with \"%s\" and \"%s\", got %s (%s)", function, message, hint, got,
                 r.error.hint);
    stet_free(got);
    fake_run_release(&r);
    gives("() => 6 * 7", "{}", "42"); /* the engine is as before */
}

static void values(void **ctx) {
    (void)ctx;
    gives("({a, b}) => a + b", "{\"a\":1,\"b\":2}", "3");
    gives("(a, b) => a - b", "[5,2]", "3");
    gives("(a, b) => a - b", "{\"0\":5,\"1\":2}", "3");
    gives("function (inputs) { return inputs.text.toUpperCase() }", "{\"text\":\"h\\u00e9\\u0000!\"}",
          "\"H\xc3\x89\\u0000!\"");
    gives("({x}) => x", "{\"x\":\"\\ud83d\\ude00 smile\"}", "\"\xf0\x9f\x98\x80 smile\"");
    gives("({x}) => [...x].length", "{\"x\":\"\\ud83d\\ude00\"}", "1");
    gives("() => undefined", "{}", "null");
    gives("() => ({a: undefined, b: [undefined], c: null})", "{}", "{\"b\":[null],\"c\":null}");
    gives("() => [1e17, -0, 1e21, 2 ** 53, 0.1, -1.5e-7]", "{}", "[1e+17,0,1e+21,9007199254740992,0.1,-1.5e-7]");
    gives("({n}) => typeof n", "{\"n\":9007199254740992}", "\"number\"");
    gives("({n}) => typeof n", "{\"n\":9007199254740993}", "\"bigint\"");
    gives("({n}) => n + 1n", "{\"n\":9223372036854775806}", "9223372036854775807");
    gives("({n}) => ({n, m: [n]})", "{\"n\":-9223372036854775808}",
          "{\"m\":[-9223372036854775808],\"n\":-9223372036854775808}");
    gives("({o}) => o", "{\"o\":{\"n\":9223372036854775807}}", "{\"n\":9223372036854775807}");
    gives("({o}) => ({...o})", "{\"o\":{\"n\":9223372036854775807,\"p\":[1]}}",
          "{\"n\":9223372036854775807,\"p\":[1]}");
    gives("({o}) => ({o, list: [o]})", "{\"o\":{\"a\":[1,2]}}", "{\"list\":[{\"a\":[1,2]}],\"o\":{\"a\":[1,2]}}");
    gives("() => { class P { constructor() { this.x = 1 } get y() { return 2 } } return new P() }", "{}", "{\"x\":1}");
    gives("() => ({toJSON() { return [1] }})", "{}", "[1]");
    gives("() => new Number(5)", "{}", "5");
    gives("() => ({'__proto__x': 1, ['a/b']: 2, '': 3})", "{}", "{\"\":3,\"__proto__x\":1,\"a/b\":2}");
    gives("({o}) => Object.keys(o)", "{\"o\":{\"__proto__\":1,\"toString\":2}}", "[\"__proto__\",\"toString\"]");
    gives("({o}) => o.toString", "{\"o\":{\"toString\":2}}", "2");
    gives("({o}) => typeof o.toString", "{\"o\":{}}", "\"function\"");
    gives("// a comment\n  (({a}) => a) /* and one */ ;\n", "{\"a\":1}", "1");
}

static void arrays_are_arrays(void **ctx) {
    (void)ctx;
    gives("({r}) => Array.isArray(r)", "{\"r\":[]}", "true");
    gives("({o}) => [Array.isArray(o), o instanceof Object, Object.getPrototypeOf(o) === Object.prototype]",
          "{\"o\":{}}", "[false,true,true]");
    gives("({r}) => r.map(x => x * 2)", "{\"r\":[1,2,3]}", "[2,4,6]");
    gives("({r}) => r.concat([4], r)", "{\"r\":[1,2]}", "[1,2,4,1,2]");
    gives("({r}) => [0].concat(r)", "{\"r\":[1,2]}", "[0,1,2]");
    gives("({r}) => [...r, ...r.entries()].length", "{\"r\":[1,2]}", "4");
    gives("({r}) => { const [a, , b = 9, ...rest] = r; return {a, b, rest} }", "{\"r\":[1,2,3,4,5]}",
          "{\"a\":1,\"b\":3,\"rest\":[4,5]}");
    gives("({r}) => r.slice(1).sort((a, b) => b - a)", "{\"r\":[1,2,3]}", "[3,2]");
    gives("({r}) => r.toSorted((a, b) => b - a)", "{\"r\":[1,2,3]}", "[3,2,1]");
    gives("({r}) => { let s = 0; for (const x of r) s += x; return s }", "{\"r\":[1,2,3]}", "6");
    gives("({r}) => { const k = []; for (const x in r) k.push(x); return k }", "{\"r\":[7,8]}", "[\"0\",\"1\"]");
    gives("({r}) => JSON.stringify(r)", "{\"r\":[1,{\"a\":null}]}", "\"[1,{\\\"a\\\":null}]\"");
    gives("({r}) => r.includes(2) && r.indexOf(3) === 2 && r.at(-1) === 3", "{\"r\":[1,2,3]}", "true");
    gives("({r}) => Math.max(...r)", "{\"r\":[1,5,3]}", "5");
    gives("({r}) => r.flat(2)", "{\"r\":[1,[2,[3]]]}", "[1,2,3]");
    gives("({r}) => Object.entries(r)", "{\"r\":[7]}", "[[\"0\",7]]");
    gives("({o}) => Object.entries(o).map(([k, v]) => k + v).join()", "{\"o\":{\"a\":1,\"b\":2}}", "\"a1,b2\"");
    gives("({o}) => { const {a, ...rest} = o; return rest }", "{\"o\":{\"a\":1,\"b\":2}}", "{\"b\":2}");
    gives("({o}) => o.list === o.list && o.list[0] === o.list[0]", "{\"o\":{\"list\":[{}]}}", "true");
    gives("({r}) => `${r}`", "{\"r\":[1,[2,3]]}", "\"1,2,3\"");
    gives("({r}) => new Set(r).size", "{\"r\":[1,1,2]}", "2");
    gives("({r}) => Object.groupBy(r, x => x.k)", "{\"r\":[{\"k\":\"a\"},{\"k\":\"b\"},{\"k\":\"a\"}]}",
          "{\"a\":[{\"k\":\"a\"},{\"k\":\"a\"}],\"b\":[{\"k\":\"b\"}]}");
}

static void reads_are_exact(void **ctx) {
    (void)ctx;
    reads("({a, b}) => a", "{\"a\":1,\"b\":2}", "/a(s) /b(s)"); /* taken apart: both are looked at */
    reads("(i) => i.a", "{\"a\":1,\"b\":2}", "/a(s)");
    reads("(i) => Object.keys(i)", "{\"a\":1,\"b\":2}", ""); /* names are part of the graph */
    reads("({rows}) => rows[1].name", "{\"rows\":[{\"name\":1},{\"name\":2}]}", "/rows/1/name(s)");
    reads("({rows}) => rows.length", "{\"rows\":[1,2]}", "/rows(s)");
    reads("({rows}) => rows[7]", "{\"rows\":[1,2]}", "/rows/7(s)");
    reads("({rows}) => rows[0] + rows[0]", "{\"rows\":[1,2]}", "/rows/0(s)");
    reads("({rows}) => rows.map(r => r.p)", "{\"rows\":[{\"p\":1,\"q\":2},{\"p\":3}]}",
          "/rows(s) /rows/0/p(s) /rows/1/p(s)");
    reads("({o}) => o?.x?.y", "{\"o\":{\"z\":1}}", "/o/x(s)");
    reads("({o}) => o?.x?.y", "{\"o\":{\"x\":{}}}", "/o/x/y(s)");
    reads("({o}) => 'a' in o", "{\"o\":{\"a\":1}}", "/o(s)");
    reads("({o}) => 'b' in o", "{\"o\":{\"a\":1}}", "/o/b(s)");
    reads("({o}) => Object.hasOwn(o, 'b')", "{\"o\":{\"a\":1}}", "/o/b(s)");
    reads("({o}) => Object.keys(o)", "{\"o\":{\"a\":1,\"b\":{}}}", "/o(s)");
    reads("({o}) => typeof o", "{\"o\":{\"a\":1}}", "/o(s)");
    reads("({o}) => o ? 1 : 2", "{\"o\":{\"a\":1}}", "/o(s)");
    reads("({o}) => Array.isArray(o.x)", "{\"o\":{\"x\":[1]}}", "/o/x(s)");
    reads("({o}) => o", "{\"o\":{\"a\":1}}", "/o(r)");
    reads("({o}) => ({o})", "{\"o\":{\"a\":1}}", "/o(r)");
    reads("({o}) => ({...o})", "{\"o\":{\"a\":1,\"b\":{\"c\":1}}}", "/o/b(r) /o(s) /o/a(s)");
    reads("({o}) => JSON.stringify(o)", "{\"o\":{\"a\":1,\"b\":[2]}}", "/o(s) /o/b(s) /o/a(s) /o/b/0(s)");
    reads("({n}) => n ?? 1", "{\"n\":null}", "/n(s)");
    reads("() => 1", "{\"n\":null}", "");
    reads("(i) => i.c ? i.a : i.b", "{\"c\":true,\"a\":1,\"b\":2}", "/c(s) /a(s)");
    reads("({rows}) => { throw new Error(rows[0]) }", "{\"rows\":[1]}", "/rows/0(s)"); /* a failure has read, too */
}

static void many_reads_become_one(void **ctx) {
    (void)ctx;
    stet_buf b = STET_BUF(0);
    stet_buf_str(&b, "{\"d\":{\"title\":\"t\",\"rows\":[");
    for (int i = 0; i < 200; i++)
        stet_buf_printf(&b, "%s{\"p\":%d,\"q\":[%d]}", i ? "," : "", i, i);
    stet_buf_str(&b, "]}}");
    reads("({d}) => d.title + d.rows.map(r => r.p).length", stet_buf_cstr(&b), "/d/rows(r) /d/title(s)");
    gives("({d}) => d.rows.map(r => r.p).reduce((a, b) => a + b)", stet_buf_cstr(&b), "19900");
    gives("({d}) => { const first = d.rows[0]; d.rows.forEach(r => r.p); return first === d.rows[0] }",
          stet_buf_cstr(&b), "true");
    /* What is given in bulk is as read-only as the rest. */
    fails("({d}) => { for (const r of d.rows) if (r.p === 199) r.p = 0 }", stet_buf_cstr(&b), "readonly", "asCell");
    gives("({d}) => d.rows[500] === undefined && Array.isArray(d.rows[150].q)", stet_buf_cstr(&b), "true");
    stet_buf_clear(&b);
    stet_buf_str(&b, "{\"o\":{");
    for (int i = 0; i < 100; i++)
        stet_buf_printf(&b, "%s\"k%d\":%lld", i ? "," : "", i, 9007199254740990ll + i);
    stet_buf_str(&b, "}}");
    reads("({o}) => Object.values(o).length", stet_buf_cstr(&b), "/o(r)");
    gives("({o}) => [typeof o.k1, typeof o.k99, String(Object.values(o)[99])]", stet_buf_cstr(&b),
          "[\"number\",\"bigint\",\"9007199254741089\"]");
    stet_buf_release(&b);
}

static void inputs_are_read_only(void **ctx) {
    (void)ctx;
    fails("({o}) => {\n  o.a.b = 1\n}", "{\"o\":{\"a\":{}}}",
          "line 2: TypeError: inputs are read-only: can't set o/a/b; return a new value, or bind the input with asCell",
          "");
    fails("({r}) => r.push(1)", "{\"r\":[]}", "inputs are read-only", "");
    fails("({r}) => r.sort()", "{\"r\":[2,1]}", "inputs are read-only", "");
    fails("({o}) => { delete o.a }", "{\"o\":{\"a\":1}}", "can't delete o/a", "");
    fails("({o}) => Object.freeze(o)", "{\"o\":{}}", "inputs are read-only", "");
    fails("({o}) => Object.setPrototypeOf(o, null)", "{\"o\":{}}", "inputs are read-only", "");
    fails("(i) => { i.x = 1 }", "{\"x\":2}", "can't set x", "");
}

static void errors_have_their_line(void **ctx) {
    (void)ctx;
    fails("({a}) => {\n  const b = a.b;\n  return b.c.d;\n}", "{\"a\":{}}",
          "line 3: TypeError: undefined is not an object", "");
    fails("() => {\n\n throw new RangeError('far') }", "{}", "line 3: RangeError: far", "");
    fails("({r}) => r.map(x => {\n throw new Error('in ' + x) })", "{\"r\":[1]}", "line 2: Error: in 1", "");
    fails("() => {\n return nothing }", "{}", "line 2: ReferenceError: Can't find variable: nothing",
          "travels as its text");
    fails("() => {\n\n let = ; }", "{}", "line 3: SyntaxError", "");
    fails("() => { throw 'text' }", "{}", "threw text", "");
    fails("() => { throw null }", "{}", "threw null", "");
    fails("() => { throw {a: 1} }", "{}", "[object Object]", "");
    fails("() => { class MyError extends Error { constructor(m) { super(m); this.name = 'MyError' } } throw new "
          "MyError('x') }",
          "{}", "line 1: MyError: x", "");
    fails("5", "{}", "no function", "");
    fails("(() => () => 1)()", "{}", "more than one function", "");
    fails("x => 1, y => 2", "{}", "more than one function", "");
    fails("x => 1); (y => 2", "{}", "more than one function", "");
    fake_run r;
    js_run_do(state, &r, js_module("() => {\n  null.x }"), stet_value_object(), stet_value_null(), stet_value_null());
    assert_true(r.failed);
    assert_int_equal(r.error.status, STET_FAILED);
    assert_int_equal(stet_value_as_int(stet_value_get(r.error.details, "line")), 2);
    fake_run_release(&r);
}

static void nothing_ambient(void **ctx) {
    (void)ctx;
    fails("() => Date.now()", "{}", "Date", "no clock");
    fails("() => new Date(0)", "{}", "Date", "no clock");
    fails("() => Math.random()", "{}", "Math.random", "no randomness");
    fails("() => new Intl.NumberFormat()", "{}", "Intl", "no locale");
    fails("() => (5).toLocaleString()", "{}", "toLocaleString", "no locale");
    fails("() => 'a'.localeCompare('b')", "{}", "localeCompare", "no locale");
    fails("() => performance.now()", "{}", "performance", "no clock");
    fails("() => setTimeout(() => 1, 0)", "{}", "setTimeout", "no clock");
    fails("() => fetch('http://localhost')", "{}", "fetch", "nothing but their inputs");
    fails("() => require('fs')", "{}", "require", "no packages");
    fails("() => process.env", "{}", "process", "nothing but their inputs");
    gives("() => ['Date', 'Intl', 'WeakRef', 'FinalizationRegistry', 'WebAssembly', 'SharedArrayBuffer', 'Atomics', "
          "'performance', "
          "'Temporal', 'ShadowRealm', 'Promise', 'eval', 'queueMicrotask'].filter(n => n in globalThis)",
          "{}", "[]");
    gives(
        "() => { 'abc'.match(/(b)/); return [RegExp.$1, RegExp.lastMatch, RegExp.input].filter(x => x !== undefined) }",
        "{}", "[]");
    gives("() => this === undefined && (function () { return this })() === undefined", "{}", "true");
    gives("() => Reflect.ownKeys(globalThis).filter(k => typeof globalThis[k] === 'function' && "
          "!/^[A-Z]|^(is|parse|decode|encode)/.test(k))",
          "{}", "[]");
}

static void nothing_stays_behind(void **ctx) {
    (void)ctx;
    fails("() => { Array.prototype.map = () => 1 }", "{}", "readonly", "");
    fails("() => { Array.prototype.extra = 1 }", "{}", "not extensible", "left behind");
    fails("() => { Object.prototype.toString = 1 }", "{}", "readonly", "");
    fails("() => { Object.defineProperty(Object.prototype, 'x', {value: 1}) }", "{}", "extensible", "");
    fails("() => { Object.setPrototypeOf(Array.prototype, {}) }", "{}", "readonly", "");
    fails("() => { globalThis.x = 1 }", "{}", "not extensible", "left behind");
    fails("() => { x = 1 }", "{}", "Can't find variable", "");
    fails("() => { JSON.parse = 1 }", "{}", "readonly", "");
    fails("() => { (function* () {}).constructor.prototype.x = 1 }", "{}", "not extensible", "");
    fails("() => { [][Symbol.iterator]().__proto__.next = 1 }", "{}", "readonly", "");
    fails("() => { console.log = 1 }", "{}", "readonly", "");
    fails("function f() { f.count = (f.count || 0) + 1; return f.count }", "{}", "not extensible", "");
    fails("function f() { f.prototype.count = (f.prototype.count || 0) + 1; return f.prototype.count }", "{}",
          "not extensible", "");
    fails("function f() { Object.setPrototypeOf(f.prototype, {count: 1}) }", "{}", "readonly", "");
    fails("() => { (strings => strings)`a`.count = 1 }", "{}", "not extensible", "");
    fails("({o}) => { Object.getPrototypeOf(o).x = 1 }", "{\"o\":{}}", "not extensible", "");
    gives("() => { const o = {}; o.toString = () => 'mine'; o.constructor = 1; return `${o}` }", "{}", "\"mine\"");
    gives("() => { const s = Symbol.for('x'); return s.description }", "{}", "\"x\"");
}

static void code_from_text_is_refused(void **ctx) {
    (void)ctx;
    fails("() => eval('1')", "{}", "eval", "text");
    fails("() => (0, globalThis.eval)('1')", "{}", "not a function", "");
    fails("() => new Function('return 1')()", "{}", "code can't be made from text", "");
    fails("() => (() => 1).constructor('return this')()", "{}", "code can't be made from text", "");
    fails("() => (function* () {}).constructor('yield 1')", "{}", "code can't be made from text", "");
    fails("() => Reflect.construct(Function, ['return 1'])()", "{}", "code can't be made from text", "");
    fails("() => import('fs')", "{}", "promise", "");
    fails("() => import('fs').then(x => x)", "{}", "then", "");
    fails("() => (import('fs')).constructor.resolve(1)", "{}", "", "");
}

static void promises_are_refused(void **ctx) {
    (void)ctx;
    fails("async () => 1", "{}", "async function can't be an action", "leave async");
    fails("async () => { for (;;) await 0 }", "{}", "async function", "");
    fails("() => { (async () => { for (;;) await 0 })(); return 1 }", "{}", "async function", "");
    fails("() => { const f = () => Promise.resolve().then(f); f(); return 1 }", "{}", "Promise", "no promises");
    fails("() => ({ async m() {} })", "{}", "async function", "");
    fails("() => { class A { static async *m() {} } return 1 }", "{}", "async function", "");
    fails("() => { for (const x of [1]) { async\nfunction f() {} } }", "{}", "", "");
    gives("() => 'async' + /async/.source /* async */ + `async`", "{}", "\"asyncasyncasync\"");
    gives("({o}) => o.async", "{\"o\":{\"async\":5}}", "5");
    gives("() => { const async = 3; return async }", "{}", "3");
}

static void results_that_are_refused(void **ctx) {
    (void)ctx;
    fails("() => () => 1", "{}", "the result is a function", "");
    fails("() => ({a: [1, function named() {}]})", "{}", "the result, at \"/a/1\", is a function (named)", "");
    fails("() => { const a = {b: {}}; a.b.c = a; return a }", "{}", "a cycle", "");
    fails("() => { const a = [1, [2]]; a[1].push(a[1]); return {a} }", "{}", "a cycle", "");
    fails("() => NaN", "{}", "the result is NaN", "");
    fails("() => ({a: {b: [1, Infinity]}})", "{}", "the result, at \"/a/b/1\", is Infinity", "");
    fails("() => Symbol('x')", "{}", "is a symbol", "");
    fails("() => 2n ** 63n", "{}", "beyond 64 bits", "");
    fails("() => new Map([[1, 2]])", "{}", "is a Map: use Object.fromEntries", "");
    fails("() => [new Set()]", "{}", "at \"/0\", is a Set", "");
    fails("() => /x/", "{}", "regular expression", "");
    fails("() => new Error('x')", "{}", "is an Error", "");
    fails("() => new Uint8Array(3)", "{}", "typed array", "");
    fails("() => ({get x() { return 1 }})", "{}", "at \"/x\", is a getter", "");
    fails("() => ['\\ud800']", "{}", "half a surrogate pair", "");
    fails("() => ({['\\udfff']: 1})", "{}", "half a surrogate pair", "");
    fails("() => { let a = []; for (let i = 0; i < 600; i++) a = [a]; return a }", "{}", "nested deeper than", "");
    fails("() => 'x'.repeat(100 * 1024 * 1024)", "{}", "larger than 64 MiB", "");
    fails("() => { const s = 'x'.repeat(1 << 20); return new Array(100).fill(s) }", "{}", "larger than 64 MiB", "");
}

static void limits(void **ctx) {
    (void)ctx;
    void *was = state;
    state = js_open("{\"time_limit_ms\":200,\"memory_limit_mb\":100}");
    int64_t start = stet_clock_monotonic_us();
    fails("() => { for (;;); }", "{}", "stopped: it ran longer than 200 ms", "limits");
    fails("() => { try { for (;;); } catch { return 1 } finally { return 2 } }", "{}", "stopped: it ran longer", "");
    fails("() => { const f = () => { try { f() } finally { for (;;); } }; f() }", "{}", "stopped", "");
    fails("() => ({toJSON() { for (;;); }})", "{}", "stopped: it ran longer", "");
    fails("() => { throw {toString() { for (;;); }} }", "{}", "", "");
    fails("({r}) => r.map(function f(x) { return 1 + f(x) })", "{\"r\":[1]}", "Maximum call stack size", "too deeply");
    fails("() => { const a = {}; a.a = a; const deep = (x, n) => n ? 1 + deep(x.a, n + 1) : 0; return deep(a, 1) }",
          "{}", "Maximum call stack size", "");
    stet_module_javascript.close(state);
    state = js_open("{\"time_limit_ms\":20000,\"memory_limit_mb\":100}");
    fails("() => { const hog = []; for (;;) hog.push(new Array(1000).fill(1.5)) }", "{}", "more than 100 MiB of memory",
          "memoryMb");
    fails("() => { const m = new Map(); for (let i = 0;; i++) m.set(i, 'x' + i) }", "{}", "more than 100 MiB of memory",
          "");
    fails("() => { let s = 'x'; for (;;) s += s }", "{}", "Out of memory", "");
    fails("() => 'x'.repeat(2 ** 29)", "{}", "the limit is", "");
    fails("() => 'x'.padEnd(2 ** 29)", "{}", "the limit is", "");
    fails("() => new Uint8Array(2 ** 32)", "{}", "the limit is", "");
    fails("() => new ArrayBuffer(2 ** 32)", "{}", "the limit is", "");
    gives("() => Array.from(new Uint8Array([1, 2, 300]).map(x => x + 1))", "{}", "[2,3,45]");
    gives("() => [...Uint8Array.of(1, 2)].concat('ab'.repeat(2), 'a'.padStart(3, '-'))", "{}",
          "[1,2,\"abab\",\"--a\"]");
    stet_module_javascript.close(state);
    state = was;
    assert_true(stet_clock_monotonic_us() - start < 120000000);
    stet_value module = js_module("() => { for (;;); }");
    stet_value_put(&module, "limits", fake_parse("{\"timeMs\":60}"));
    fake_run r;
    js_run_do(state, &r, module, stet_value_object(), stet_value_null(), stet_value_null());
    assert_true(r.failed);
    assert_int_equal(r.error.status, STET_LIMIT);
    assert_string_equal(r.error.message, "stopped: it ran longer than 60 ms");
    fake_run_release(&r);
}

static void console_goes_to_the_log(void **ctx) {
    (void)ctx;
    fake_run r;
    js_run_do(
        state, &r,
        js_module("({o}) => { console.log('a', 1, {b: [2n]}, null, undefined); console.warn(o); console.error(new "
                  "Error('e')); "
                  "console.log(new Map([[1, 2]]), () => 1, Symbol('s')); const c = {}; c.c = c; console.log(c) }"),
        fake_parse("{\"o\":{\"x\":1}}"), stet_value_null(), stet_value_null());
    assert_string_equal(stet_buf_cstr(&r.log),
                        "a 1 {\"b\":[\"2n\"]} null undefined\nwarning: {\"x\":1}\nerror: Error: e\n"
                        "Map(1) [[1,2]] [function (anonymous)] Symbol(s)\n[object Object]\n");
    fake_run_release(&r);
    js_run_do(state, &r, js_module("() => { for (let i = 0; i < 3000; i++) console.log('x'.repeat(1000)) }"),
              stet_value_object(), stet_value_null(), stet_value_null());
    assert_true(r.log.len < (1u << 20) + 100);
    assert_non_null(strstr(stet_buf_cstr(&r.log), "the rest is left out"));
    fake_run_release(&r);
}

static void cell_case(const char *function, const char *inputs, const char *bindings, const char *event,
                      const char *writes, const char *inputs_after) {
    fake_run r;
    stet_value module = js_module(function), e = fake_parse(event);
    stet_value_put(&module, "handler", stet_value_bool(true));
    js_run_do(state, &r, module, fake_parse(inputs), fake_parse(bindings), e);
    if (r.failed)
        fail_msg("%s: %s", function, r.error.message);
    if (strcmp(stet_buf_cstr(&r.writes), writes) != 0)
        fail_msg("%s: expected writes %s, got %s", function, writes, stet_buf_cstr(&r.writes));
    char *after = stet_json_print(r.inputs, STET_JSON_CANONICAL, NULL);
    assert_string_equal(after, inputs_after);
    stet_free(after);
    stet_value_release(e);
    fake_run_release(&r);
}

static void cells(void **ctx) {
    (void)ctx;
    const char *rows = "{\"rows\":{\"$\":\"argument/rows\",\"asCell\":true}}";
    const char *link = "{\"rows\":{\"/\":{\"link@1\":{\"id\":\"x\",\"path\":[],\"asCell\":true}}}}";
    cell_case("(event, {rows}) => { rows.push(event) }", "{\"rows\":[1]}", rows, "{\"a\":2}", "/rows/1={\"a\":2}",
              "{\"rows\":[1,{\"a\":2}]}");
    cell_case("(event, {rows}) => { rows.push(event, 5) }", "{\"rows\":null}", link, "7", "/rows=[7,5]",
              "{\"rows\":[7,5]}");
    cell_case("(event, {rows}) => { rows.set(rows.get().filter(x => x !== event)) }", "{\"rows\":[1,2,3]}", rows, "2",
              "/rows=[1,3]", "{\"rows\":[1,3]}");
    cell_case("(event, {rows}) => { rows.update(list => [...list, event]) }", "{\"rows\":[1]}", rows, "2",
              "/rows=[1,2]", "{\"rows\":[1,2]}");
    cell_case("(event, {rows}) => { rows.update({a: 1, b: undefined}) }", "{\"rows\":{\"a\":0,\"c\":3}}", rows, "null",
              "/rows/a=1 /rows/b=null", "{\"rows\":{\"a\":1,\"b\":null,\"c\":3}}");
    cell_case("(event, {rows}) => { rows.key(0).key('n').set(event.n + 1) }", "{\"rows\":[{\"n\":1}]}", rows,
              "{\"n\":4}", "/rows/0/n=5", "{\"rows\":[{\"n\":5}]}");
    cell_case("(event, {rows}) => { rows.key('x').set(1); if (rows.get().x !== 1) throw new Error('lost') }",
              "{\"rows\":{}}", rows, "1", "/rows/x=1", "{\"rows\":{\"x\":1}}");
    fake_run r;
    stet_value module = js_module("({rows}) => rows.get().length");
    js_run_do(state, &r, module, fake_parse("{\"rows\":[1,2]}"), fake_parse(rows), stet_value_null());
    assert_false(r.failed);
    assert_int_equal(stet_value_as_int(r.result), 2);
    assert_string_equal(stet_buf_cstr(&r.reads), "/rows(s)");
    fake_run_release(&r);
    /* A cell that is only held is not read. */
    js_run_do(state, &r, js_module("({rows}) => 1"), fake_parse("{\"rows\":[1,2]}"), fake_parse(rows),
              stet_value_null());
    assert_string_equal(stet_buf_cstr(&r.reads), "");
    fake_run_release(&r);
    js_run_do(state, &r, js_module("({rows}) => rows"), fake_parse("{\"rows\":[1,2]}"), fake_parse(rows),
              stet_value_null());
    assert_true(r.failed);
    assert_string_equal(r.error.message, "the result is a cell: use its get()");
    fake_run_release(&r);
    /* A schema may say that an input is a cell. */
    module = js_module("({rows}) => typeof rows.get");
    stet_value_put(&module, "argumentSchema", fake_parse("{\"properties\":{\"rows\":{\"asCell\":true}}}"));
    js_run_do(state, &r, module, fake_parse("{\"rows\":[1,2]}"), stet_value_null(), stet_value_null());
    assert_false(r.failed);
    fake_run_release(&r);
}

static void put_file(const char *name, const char *text) {
    assert_int_equal(stet_file_replace(name, text, strlen(text), 0644, NULL), STET_OK);
}

static void file_case(const char *text, const char *name, const char *inputs, const char *expected) {
    fake_run r;
    stet_value module = stet_value_object(), implementation = stet_value_object();
    put_file("steps.js", text);
    stet_value_put(&implementation, "file", stet_value_string("steps.js"));
    if (name)
        stet_value_put(&implementation, "export", stet_value_string(name));
    stet_value_put(&module, "type", stet_value_string("javascript"));
    stet_value_put(&module, "implementation", implementation);
    js_run_do(state, &r, module, fake_parse(inputs), stet_value_null(), stet_value_null());
    char *got = fake_run_text(&r);
    if (strcmp(got, expected) != 0)
        fail_msg("%s: expected %s, got %s", text, expected, got);
    stet_free(got);
    fake_run_release(&r);
}

static void files(void **ctx) {
    (void)ctx;
    file_case("const k = 2;\nexport function f({a}) { return g(a) * k }\nfunction g(x) { return x + 1 }\n", "f",
              "{\"a\":1}", "4");
    file_case("export const f = ({a}) => a, other = 1;", "f", "{\"a\":1}", "1");
    file_case("export default ({a}) => a + 1", NULL, "{\"a\":1}", "2");
    file_case("export default function twice({a}) { return a * 2 }\nexport { twice as double };", "double", "{\"a\":4}",
              "8");
    file_case("function f() { return 'export function g' + /export \"/.source + `export ${'export'}` } // "
              "export\nexport { f }",
              "f", "{}", "\"export function gexport \\\"export export\"");
    file_case("export class A {}\nexport function* gen() { yield 1 }\nexport let f = () => [...gen()].length", "f",
              "{}", "1");
    /* What stands at the top is made anew for each run: nothing is kept. */
    file_case("let n = 0; export const f = () => ++n", "f", "{}", "1");
    file_case("let n = 0; export const f = () => ++n", "f", "{}", "1");
    file_case("export const f = 1", "f", "{}", "error: steps.js exports no function \"f\"");
    file_case("export function g() {}", "f", "{}", "error: steps.js exports no function \"f\"");
    file_case("\nimport x from 'y';\nexport const f = 1", "f", "{}", "error: steps.js:2: import is not known here");
    file_case("export * from 'y'", "f", "{}", "error: steps.js:1: this export is of a kind that is not known here");
    file_case("\n\nexport function f() {\n  return x.y\n}", "f", "{}",
              "error: steps.js:4: ReferenceError: Can't find variable: x");
    file_case("\n\nthrow new Error('top')", "f", "{}", "error: steps.js:3: Error: top");
    file_case("export function f() {\n\n  return ) }", "f", "{}",
              "error: steps.js:3: SyntaxError: Unexpected token ')'");
    file_case("export async function f() {}", "f", "{}",
              "error: steps.js: an async function can't be an action: there is nothing to wait for");
    stet_error err = STET_ERROR_INIT;
    stet_value bad = fake_parse("{\"type\":\"javascript\",\"implementation\":{\"file\":\"../x.js\"}}");
    assert_int_equal(stet_module_javascript.check(bad, stet_value_null(), &err), STET_INVALID);
    stet_error_clear(&err);
    stet_value_release(bad);
}

static void descriptors(void **ctx) {
    (void)ctx;
    static const char *const wrong[] = {"{}",
                                        "{\"implementation\":5}",
                                        "{\"implementation\":\"  \"}",
                                        "{\"implementation\":{\"file\":\"/etc/passwd\"}}",
                                        "{\"implementation\":{\"file\":\"a/../../b\"}}",
                                        "{\"implementation\":{\"file\":\"a.js\",\"export\":1}}",
                                        "{\"implementation\":{\"file\":\"a.js\",\"exprt\":\"x\"}}",
                                        "{\"implementation\":\"x=>x\",\"handler\":1}",
                                        "{\"implementation\":\"x=>x\",\"limits\":{\"timeMs\":0}}",
                                        "{\"implementation\":\"x=>x\",\"code\":1}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        stet_error err = STET_ERROR_INIT;
        stet_value d = fake_parse(wrong[i]);
        if (stet_module_javascript.check(d, stet_value_null(), &err) != STET_INVALID || !stet_has_hint(&err))
            fail_msg("%s was not refused with a hint", wrong[i]);
        stet_error_clear(&err);
        stet_value_release(d);
    }
}

static stet_hash print_of(const char *descriptor) {
    stet_hash h;
    stet_value d = fake_parse(descriptor);
    assert_int_equal(stet_module_javascript.fingerprint(state, d, &h, NULL), STET_OK);
    stet_value_release(d);
    return h;
}

static void fingerprints(void **ctx) {
    (void)ctx;
    const char *file = "{\"type\":\"javascript\",\"implementation\":{\"file\":\"steps.js\",\"export\":\"f\"}}";
    stet_hash a = print_of("{\"type\":\"javascript\",\"implementation\":\"x => x\"}");
    assert_true(stet_hash_equal(a, print_of("{\"type\":\"javascript\",\"implementation\":\"x => x\",\"metadata\":1}")));
    assert_false(stet_hash_equal(a, print_of("{\"type\":\"javascript\",\"implementation\":\"x =>  x\"}")));
    put_file("steps.js", "export const f = 1");
    stet_hash one = print_of(file);
    assert_true(stet_hash_equal(one, print_of(file)));
    /* The text of a file is a read of the run, and not part of the fingerprint. */
    put_file("steps.js", "export const f = 2");
    assert_true(stet_hash_equal(one, print_of(file)));
    assert_false(stet_hash_equal(
        a, print_of("{\"type\":\"javascript\",\"implementation\":\"x => x\",\"limits\":{\"timeMs\":1}}")));
}

/* A missing plug-in is an error that names the package. */
static void missing_plugin(void **ctx) {
    (void)ctx;
    char *was = stet_strdup(getenv("STET_PLUGINS"));
    setenv("STET_PLUGINS", "/nonexistent", 1);
    void *fresh = js_open("{}");
    fake_run r;
    js_run_do(fresh, &r, js_module("() => 1"), stet_value_object(), stet_value_null(), stet_value_null());
    assert_true(r.failed);
    assert_int_equal(r.error.status, STET_UNSUPPORTED);
    assert_non_null(strstr(r.error.hint, "libjavascriptcoregtk-4.1-0"));
    fake_run_release(&r);
    stet_module_javascript.close(fresh);
    setenv("STET_PLUGINS", was, 1);
    stet_free(was);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(arrays_are_arrays),
        cmocka_unit_test(reads_are_exact),
        cmocka_unit_test(many_reads_become_one),
        cmocka_unit_test(inputs_are_read_only),
        cmocka_unit_test(errors_have_their_line),
        cmocka_unit_test(nothing_ambient),
        cmocka_unit_test(nothing_stays_behind),
        cmocka_unit_test(code_from_text_is_refused),
        cmocka_unit_test(promises_are_refused),
        cmocka_unit_test(results_that_are_refused),
        cmocka_unit_test(console_goes_to_the_log),
        cmocka_unit_test(cells),
        cmocka_unit_test(files),
        cmocka_unit_test(descriptors),
        cmocka_unit_test(fingerprints),
        cmocka_unit_test(limits),
        cmocka_unit_test(missing_plugin),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
