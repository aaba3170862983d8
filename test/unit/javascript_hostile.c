/* javascript_hostile.c - hostile and careless functions: what happens to each, and that the next run is unaffected.
 *
 * Everything is a run of one engine, which must answer as before after each of them.
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
    state = js_open("{\"time_limit_ms\":150,\"memory_limit_mb\":4000}");
    return 0;
}

static int close_all(void **ctx) {
    (void)ctx;
    stet_module_javascript.close(state);
    return 0;
}

static char *answer(const char *function) {
    fake_run r;
    js_run_do(state, &r, js_module(function), fake_parse("{\"o\":{\"a\":[1,2]}}"), stet_value_null(),
              stet_value_null());
    char *text = fake_run_text(&r);
    fake_run_release(&r);
    return text;
}

/* The answer, or "error: ..." with this in it. */
static void becomes(const char *function, const char *expected) {
    char *got = answer(function);
    bool error = strncmp(expected, "error: ", 7) == 0;
    if (error ? strncmp(got, "error: ", 7) != 0 || !strstr(got, expected + 7) : strcmp(got, expected) != 0)
        fail_msg("%s: expected %s, got %.300s", function, expected, got);
    stet_free(got);
    if (error) {
        got = answer("({o}) => [o.a.map(x => x + 1), 'a-b'.split(/-/), JSON.stringify({x: 1}), Object.keys({k: 1})]");
        assert_string_equal(got, "[[2,3],[\"a\",\"b\"],\"{\\\"x\\\":1}\",[\"k\"]]");
        stet_free(got);
    }
}

#define TIME "error: stopped: it ran longer than 150 ms"

static void without_end(void **ctx) {
    (void)ctx;
    becomes("() => { for (;;); }", TIME);
    becomes("() => { for (;;) { try { for (;;); } catch {} finally { continue } } }", TIME);
    becomes("() => { const f = () => g(), g = () => f(); try { f() } catch { return 'too deep' } }", "\"too deep\"");
    becomes("() => [3, 2, 1].sort(() => { for (;;); })", TIME);
    becomes("() => [1, 2, 3, 4].sort(() => { throw new Error('no order') })", "error: line 1: Error: no order");
    becomes("() => Array.from({length: 100}, (_, i) => i).sort(() => 1).length", "100");
    becomes("() => JSON.parse('[1,2]', () => { for (;;); })", TIME);
    becomes("() => { function* g() { outer: for (;;) for (;;) { yield 1; continue outer } } for (const x of g()); }",
            TIME);
    becomes("() => { const [a, b] = (function* () { for (;;) yield 7 })(); return a + b }", "14");
    becomes("() => ({toJSON() { for (;;); }})", TIME);
    becomes("() => ({[Symbol.toPrimitive]() { for (;;); }}) + 1", TIME);
    becomes("() => { throw { get message() { for (;;); }, toString() { for (;;); } } }", "error: ");
    becomes("() => { const e = new Error('x'); Object.defineProperty(e, 'stack', { get() { for (;;); } }); throw e }",
            "error: ");
    becomes("() => { const e = new Error('x'); Object.defineProperty(e, 'stack', { get() { throw 5 } }); throw e }",
            "error: Error: x");
    becomes("() => { throw new Proxy(new Error('p'), { get() { throw 1 } }) }", "error: ");
    becomes("() => new Array(2 ** 32 - 1).indexOf(1)", TIME);
    becomes("() => Array.prototype.join.call({length: 2 ** 53 - 1}, '')", TIME);
    becomes("() => JSON.stringify(new Array(2 ** 32 - 1)).length", "error: ");
}

static void without_measure(void **ctx) {
    (void)ctx;
    void *was = state;
    state = js_open("{\"time_limit_ms\":5000,\"memory_limit_mb\":200}");
    becomes("() => { const hog = []; for (;;) hog.push('x'.repeat(1000) + hog.length) }",
            "error: stopped: it took more than 200 MiB of memory");
    becomes("() => [...(function* () { for (;;) yield 1 })()]", "error: ");
    becomes("() => 'a'.repeat(2 ** 30)", "error: line 1: RangeError: repeat() of 1073741824 characters");
    becomes("() => 'a'.repeat(2 ** 27).padEnd(2 ** 30)", "error: ");
    becomes("() => encodeURIComponent('x'.repeat(2 ** 25))", "error: line 1: RangeError: encodeURIComponent() of");
    becomes("() => encodeURIComponent('a b/\\u00e9') + decodeURI('%41')", "\"a%20b%2F%C3%A9A\"");
    becomes("() => { const b = []; for (;;) b.push(new ArrayBuffer(2 ** 28)) }", "error: ");
    becomes("() => 'x'.repeat(100 * 1024 * 1024)", "error: the result is larger than 64 MiB");
    becomes("() => { const a = []; a[2 ** 32 - 2] = 1; return a }", "error: the result is larger than 64 MiB");
    becomes("() => { const f = n => n === 0 ? 0 : 1 + f(n - 1); return f(1e7) }", "error: line 1: RangeError: Maximum");
    becomes("() => { let o = []; for (let i = 0; i < 1e5; i++) o = [o]; return String(o).length }", "error: ");
    becomes("() => { let o = []; for (let i = 0; i < 1e5; i++) o = [o]; return o }",
            "error: the result is nested deeper");
    becomes("() => { const f = () => ({toJSON: f}); return f() }", "error: the result is nested deeper");
    stet_module_javascript.close(state);
    state = was;
}

/* A text that makes each of these try for hours. */
static void regular_expressions(void **ctx) {
    (void)ctx;
    static const char *const uses[] = {
        "/a*a*a*a*a*a*a*a*(b)\\1/.exec(s)",
        "/a*a*a*a*a*a*a*a*(b)\\1/.test(s)",
        "s.match(/a*a*a*a*a*a*a*a*(b)\\1/)",
        "s.match(/a*a*a*a*a*a*a*a*(b)\\1/g)",
        "[...s.matchAll(/a*a*a*a*a*a*a*a*(b)\\1/g)]",
        "s.replace(/a*a*a*a*a*a*a*a*(b)\\1/, '')",
        "s.replace(/a*a*a*a*a*a*a*a*(b)\\1/g, '$1')",
        "s.replaceAll(/a*a*a*a*a*a*a*a*(b)\\1/g, () => '')",
        "s.search(/a*a*a*a*a*a*a*a*(b)\\1/)",
        "s.split(/a*a*a*a*a*a*a*a*(b)\\1/)",
        "s.match('a*a*a*a*a*a*a*a*(b)\\\\1')",
        "s.search('a*a*a*a*a*a*a*a*(b)\\\\1')",
        "new (class extends RegExp {})('a*a*a*a*a*a*a*a*(b)\\\\1').test(s)",
        "RegExp.prototype.exec.call(new RegExp('a*a*a*a*a*a*a*a*(b)\\\\1'), s)",
        "/x/.compile('a*a*a*a*a*a*a*a*(b)\\\\1').test(s)",
        "/(a+)+(b)\\2/.test(s)",
        "/(?=(a*)*(a*)*(a*)*b)c/.test(s)",
        "/(?<=c(a*)*(a*)*(a*)*)!/.test(s + '!')",
        "/(a?){300}a{300}b/.test(s.slice(0, 300))",
        "/(a|a|a|a)(a|a|a|a)(a|a|a|a)(a|a|a|a)(a|a|a|a)(a|a|a|a)(a|a|a|a)(a|a|a|a)(a|a|a|a)(a|a|a|a)(a|a|a|a)(a|a|a|a)("
        "a"
        "|a|a|a)(a|a|a|a)b/.test(s)",
    };
    int64_t start = stet_clock_monotonic_us();
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        char *function = stet_asprintf("() => { const s = 'a'.repeat(20000); return %s }", uses[i]);
        becomes(function, "error: stopped: it ran longer than 150 ms, in the regular expression /");
        stet_free(function);
    }
    assert_true(stet_clock_monotonic_us() - start < 120000000);
    fake_run r;
    js_run_do(state, &r, js_module("() => /(a*)*(b)\\2/.test('a'.repeat(20000))"), stet_value_object(),
              stet_value_null(), stet_value_null());
    assert_int_equal(r.error.status, STET_LIMIT);
    assert_string_equal(r.error.message, "stopped: it ran longer than 150 ms, in the regular expression /(a*)*(b)\\2/");
    assert_non_null(strstr(r.error.hint, "make it simpler"));
    fake_run_release(&r);
}

/* What a naive matcher would try for hours is answered all the same where nothing refers back. */
static void hard_expressions_are_answered(void **ctx) {
    (void)ctx;
    void *was = state;
    state = js_open("{\"time_limit_ms\":20000}");
    becomes("() => /a*a*a*a*a*b/.test('a'.repeat(20000))", "false");
    becomes("() => /(a+)+$/.exec('a'.repeat(20000) + 'b')", "null");
    becomes("() => /^(a|aa)+$/.test('a'.repeat(20000))", "true");
    becomes("() => /^(a+)+$/.test('a'.repeat(45) + 'b')", "false");
    becomes("() => { const m = /(x+x+)+y/.exec('x'.repeat(20000) + 'y'); return [m.index, m[0].length] }", "[0,20001]");
    becomes("() => /(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)b/.test('a'.repeat(2000))", "false");
    stet_module_javascript.close(state);
    state = was;
}

/* Honest expressions on large texts. */
static void large_texts(void **ctx) {
    (void)ctx;
    void *was = state;
    state = js_open("{\"time_limit_ms\":20000}");
    becomes(
        "() => { const s = 'hello world '.repeat(90000) + '12-34'; return [s.length > 1e6, s.match(/\\d+-\\d+/)[0]] }",
        "[true,\"12-34\"]");
    becomes("() => { const m = /^\\s*(\\w+)\\s*=\\s*(.*)$/.exec('  key = ' + 'value '.repeat(180000)); return [m[1], "
            "m[2].length] }",
            "[\"key\",1080000]");
    becomes("() => { const m = /^\\s*(\\w+)\\s*=\\s*(.*)$/.exec(' '.repeat(1e6) + 'k=v'); return m.slice(1) }",
            "[\"k\",\"v\"]");
    becomes("() => 'the quick  brown fox\\n'.repeat(50000).replace(/\\s+/g, ' ').length", "1000000");
    becomes("() => 'a,b;c\\n'.repeat(170000).split(/[,;\\n]/).length", "510001");
    becomes("() => [...'k1=v1;k2=v2;'.repeat(20000).matchAll(/(?<key>\\w+)=(?<value>\\w+);/g)].filter(m => "
            "m.groups.key.length === 2 && m.groups.value.startsWith('v')).length",
            "40000");
    becomes("() => { const s = '\"a\\\\\"b\", '.repeat(100000); return s.match(/\"(?:[^\"\\\\]|\\\\.)*\"/g).length }",
            "100000");
    becomes(
        "() => { const r = /(\\w+) (\\w+)/gd; r.lastIndex = 5; const m = r.exec('ab cd ef gh'.padEnd(20000, ' x')); "
        "return [m.index, m.indices[2], m.input.length, r.lastIndex] }",
        "[6,[9,11],20000,11]");
    becomes("() => { const r = /\\w+ \\w+!/y; const s = 'ab cd!'.padEnd(20000, '-'); return [r.test(s), r.lastIndex, "
            "r.test(s), r.lastIndex] }",
            "[true,6,false,0]");
    becomes("() => 'x1y22z'.padEnd(20000).replace(/(?<n>\\d+)([a-z]+)/g, (all, n, z, at, s, groups) => "
            "`<${groups.n}${z}${at}>`)"
            ".trim()",
            "\"x<1y1><22z3>\"");
    becomes("() => 'a-b'.padEnd(20000).replace(/(\\w+)-(\\w+)/, '$2+$1 $$ $&').trim()", "\"b+a $ a-b\"");
    stet_module_javascript.close(state);
    state = was;
}

static void tricks(void **ctx) {
    (void)ctx;
    static const char text[] = "error: line 1: EvalError: code can't be made from text here";
    becomes("() => ({}).constructor.constructor('return globalThis')()", text);
    becomes("() => [].filter.constructor('return 1')()", text);
    becomes("() => Object.getPrototypeOf(function* () {}).constructor('yield 1')()", text);
    becomes("() => Reflect.construct(Function, ['return 1'])()", text);
    becomes("({o}) => o.constructor.constructor('return 1')()", text);
    becomes("({o}) => o.a.map.constructor('return 1')()", text);
    becomes("() => console.log.constructor('return 1')()", text);
    becomes("() => RegExp.prototype.exec.constructor('return 1')()", text);
    becomes("() => { try { null.x } catch (e) { return e.constructor.constructor('return 1')() } }", text);
    becomes("() => arguments.callee", "error: line 1: TypeError");
    becomes("function f() { return f.caller }", "error: line 1: TypeError");
    becomes("() => { with ({}) {} }", "error: line 1: SyntaxError");
    becomes(
        "() => { class A extends Array { static get [Symbol.species]() { return function () { for (;;); } } } return "
        "new A(1, 2).map(x => x) }",
        TIME);
    becomes("() => { class A extends Array { static get [Symbol.species]() { return Object } } return A.from([1, 2])."
            "map(x => x) }",
            "2"); /* that made a Number, of the length */
    becomes("({o}) => { o.a.constructor = { [Symbol.species]: 1 }; return 1 }", "error: line 1: TypeError: inputs are");
    becomes("() => new Proxy({}, { ownKeys() { return ['a'] }, getOwnPropertyDescriptor() { return {value: 1, "
            "enumerable: true, configurable: true} } })",
            "{\"a\":1}");
    becomes("() => new Proxy({a: 1}, { get() { for (;;); } })", TIME);
    becomes("() => new Proxy([1], { get(t, k) { return k === 'length' ? 1e9 : t[k] } })",
            "error: the result is larger");
    becomes("() => { let n = 0; return {get x() { return ++n }} }", "error: the result, at \"/x\", is a getter");
    becomes("() => { let n = 0; const a = {toJSON() { return ++n }}; return [a, a] }", "[1,2]");
    becomes("() => Atomics.wait(new Int32Array(8), 0, 0)",
            "error: line 1: ReferenceError: Can't find variable: Atomics");
    becomes("() => new SharedArrayBuffer(8)", "error: line 1: ReferenceError");
    becomes("() => JSON.parse('[1,[2]]', function (k, v) { return this })", "error: the result");
    becomes("() => JSON.parse('{\"__proto__\":{\"x\":1}}').x", "null");
    becomes("() => { const o = JSON.parse('{\"__proto__\":{\"x\":1}}'); return ({...o}).x }", "null");
    becomes("async () => 1", "error: an async function can't be an action");
    becomes("() => { (async () => { for (;;) await 0 })(); return 1 }", "error: an async function");
    becomes("() => () => 1", "error: the result is a function");
    becomes("() => { const a = {}; a.a = a; return a }",
            "error: the result, at \"/a\", is the same object as the whole");
}

/* One action tries to change what the next one finds, in every way there is. */
static void nothing_is_poisoned(void **ctx) {
    (void)ctx;
    static const char *const attempts[] = {
        "Array.prototype.map = () => 'poison'",
        "Object.prototype.poison = 1",
        "Object.defineProperty(Array.prototype, 'map', {value: () => 'poison'})",
        "Object.setPrototypeOf(Array.prototype, {map: () => 'poison'})",
        "Reflect.defineProperty(RegExp.prototype, 'exec', {value: () => null}) || fail()",
        "RegExp.prototype[Symbol.split] = () => 'poison'",
        "String.prototype.split = () => 'poison'",
        "JSON.stringify = () => 'poison'",
        "globalThis.JSON = {stringify: () => 'poison'}",
        "Object.keys = () => 'poison'",
        "Symbol.iterator = 1",
        "[][Symbol.iterator]().__proto__.next = () => ({done: true})",
        "Iterator.prototype.map = 1",
        "(function* () {}).constructor.prototype.prototype.next = 1",
        "Object.getPrototypeOf(Uint8Array).prototype.map = 1",
        "console.log = 1",
        "Math.max = 1",
        "Error.prototype.toString = () => 'poison'",
        "Error.stackTraceLimit = 0",
        "({}).__proto__.__defineGetter__('poison', () => 1)",
        "({}).__lookupGetter__('constructor').call = 1",
        "o.__proto__.poison = 1",
        "o.a.__proto__.map = 1",
        "Function.prototype.call = 1",
        "Object.freeze.x = 1",
        "delete Array.prototype.map || fail()",
        "Object.assign(Array.prototype, {map: 1})",
        "Array.prototype.push.call(Array.prototype, 1)",
        "Array.prototype.length = 5",
        "RegExp.prototype.exec.x = 1",
        "new Map().entries().__proto__.next = 1",
    };
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        char *function =
            stet_asprintf("({o}) => { const fail = () => { throw new TypeError('refused') }; %s }", attempts[i]);
        becomes(function, "error: ");
        stet_free(function);
    }
    becomes("() => { const r = /a/g; r.exec('a'); return RegExp.lastMatch ?? RegExp['$&'] ?? 'nothing' }",
            "\"nothing\"");
}

/* Everything that can be reached, by name, and that it is frozen. */
static void the_world_is_as_listed(void **ctx) {
    (void)ctx;
    becomes(
        "() => Reflect.ownKeys(globalThis).map(String).sort().join(' ')",
        "\"AggregateError Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Error EvalError "
        "Float16Array Float32Array Float64Array Function Infinity Int16Array Int32Array Int8Array Iterator JSON Map "
        "Math NaN Number Object Proxy RangeError ReferenceError Reflect RegExp Set String Symbol SyntaxError "
        "TypeError URIError Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakSet console decodeURI "
        "decodeURIComponent encodeURI encodeURIComponent globalThis isFinite isNaN parseFloat parseInt undefined\"");
    static const char walk[] =
        "() => { const seen = new Set(), names = new Set(), loose = [], todo = [['globalThis', globalThis]];\n"
        "for (const [name, object] of [['generator function', Object.getPrototypeOf(function* () {})], ['array "
        "iterator', "
        "Object.getPrototypeOf([][Symbol.iterator]())], ['map iterator', Object.getPrototypeOf(new Map().entries())], "
        "['set iterator', Object.getPrototypeOf(new Set().entries())], ['string iterator', "
        "Object.getPrototypeOf(''[Symbol.iterator]())], ['match iterator', Object.getPrototypeOf(''.matchAll(/x/g))], "
        "['helper', Object.getPrototypeOf([].values().map(x => x))], ['wrapped', Object.getPrototypeOf(Iterator.from({ "
        "next() {} }))]]) todo.push([name, object]);\n"
        "while (todo.length > 0) { const [at, object] = todo.pop();\n"
        "if ((typeof object !== 'object' && typeof object !== 'function') || object === null || seen.has(object)) "
        "continue;\n"
        "seen.add(object); if (!Object.isFrozen(object)) loose.push(at);\n"
        "todo.push([at + '.__proto__', Object.getPrototypeOf(object)]);\n"
        "for (const key of Reflect.ownKeys(object)) { names.add(String(key)); const own = "
        "Object.getOwnPropertyDescriptor(object, key);\n"
        "if ('value' in own) todo.push([`${at}.${String(key)}`, own.value]); else todo.push([`${at}.get "
        "${String(key)}`, own.get], [`${at}.set ${String(key)}`, own.set]) } }\n"
        "const ambient = /locale|^random$|^now$|^Date$|date$|time|^Intl|weakref|^deref$|wait|^then$|^resolve$|^eval$|"
        "^import|^captureStackTrace$|^lastMatch$|^input$|^rightContext$|\\$|transfer|^resize$|^fromAsync$/i;\n"
        "return [seen.size > 400, loose, [...names].filter(name => ambient.test(name)).sort()] }";
    becomes(walk, "[true,[],[]]");
}

static int64_t resident_kb(void) {
    FILE *f = fopen("/proc/self/statm", "r");
    long long size, resident;
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lld %lld", &size, &resident), 2);
    fclose(f);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* The collector lets memory go when it sees fit: what counts is how far it comes down. */
typedef struct low_marks {
    int64_t early, late; /* the lowest in the second and in the last quarter */
} low_marks;

static void look(low_marks *m, int i, int of) {
    if (i % (of / 200 + 1) != 0 || i < of / 4)
        return;
    int64_t now = resident_kb();
    int64_t *low = i < of / 2 ? &m->early : i > of / 4 * 3 ? &m->late : NULL;
    if (low && (*low == 0 || now < *low))
        *low = now;
}

static void no_growth(const low_marks *m, int runs, const char *what) {
    print_message("# %d %s; %lld KiB more in the last quarter than in the second\n", runs, what,
                  (long long)(m->late - m->early));
    assert_true(m->late - m->early < 16384); /* 50,000 runs that lose 330 bytes each would show */
}

/* The leak checker does not see what the engine holds on to: so memory is looked at itself. Runs of all outcomes, many
 * times over: the process does not grow with their number. */
static void memory_does_not_grow(void **ctx) {
    (void)ctx;
    static const char *const functions[] = {
        "({o}) => ({sum: o.a[0] + o.a[1], text: 'x'.repeat(50), list: [...o.a]})",
        "({o}) => o",
        "({o}) => { console.log(o); throw new Error('no') }",
        "({o}) => { o.a.push(1) }",
        "({o}) => Object.entries(o).map(([k, v]) => k + v.length).join() + /(\\w+)-/.test('some-thing')",
        "() => NaN",
    };
    enum { FUNCTIONS = sizeof functions / sizeof *functions };
    int runs = getenv("STET_TEST_SHORT") ? 3000 : getenv("STET_TEST_LONG") ? 1000000 : 100000;
    stet_value modules[FUNCTIONS], inputs = fake_parse("{\"o\":{\"a\":[1,2]}}"), bindings = fake_references(inputs);
    stet_error err = STET_ERROR_INIT;
    low_marks marks = {0, 0}, other = {0, 0};
    void *was = state;
    state = js_open("{}");
    for (int k = 0; k < FUNCTIONS; k++)
        modules[k] = js_module(functions[k]);
    for (int i = 0; i < runs; i++) {
        int k = i % FUNCTIONS;
        fake_run r = fake_run_of(stet_value_retain(inputs));
        r.base = (stet_run){.ops = &fake_run_ops,
                            .node = stet_value_null(),
                            .descriptor = modules[k],
                            .bindings = bindings,
                            .name = "test"};
        assert_int_equal(stet_module_javascript.start(state, &r.base, &err), STET_OK);
        assert_true(r.done);
        fake_run_release(&r);
        look(&marks, i, runs);
    }
    no_growth(&marks, runs, "runs");
    for (int k = 0; k < FUNCTIONS; k++)
        stet_value_release(modules[k]);
    stet_value_release(inputs);
    stet_value_release(bindings);
    /* Compiling and forgetting, too. */
    for (int i = 0; i < runs / 20; i++) {
        char *function = stet_asprintf("() => %d", i);
        becomes(function, function + 6);
        stet_free(function);
        look(&other, i, runs / 20);
    }
    no_growth(&other, runs / 20, "programs");
    stet_module_javascript.close(state);
    state = was;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_end),          cmocka_unit_test(without_measure),
        cmocka_unit_test(regular_expressions),  cmocka_unit_test(hard_expressions_are_answered),
        cmocka_unit_test(large_texts),          cmocka_unit_test(tricks),
        cmocka_unit_test(nothing_is_poisoned),  cmocka_unit_test(the_world_is_as_listed),
        cmocka_unit_test(memory_does_not_grow),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
