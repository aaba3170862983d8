/* javascript.c - reads of `javascript` modules, compared with a naive judge.
 *
 * The judge runs the function again on inputs that differ in one place.
 *
 *   P1. If the answer differs, the change touches a read that was recorded.
 *   P2. If the change touches none, the function reads the same again.
 *   P3. Most changes that touch a read change the answer, or a value that was taken: reads are not simply everything.
 *
 * The functions are small and in all styles; each runs on a document with all kinds of values, as `i => ...` and with
 * its inputs taken apart in the parameter list.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "../unit/javascript_run.h"
#include "base/arena.h"
#include "base/change.h"

static const char document[] = "{\"n\":5,\"s\":\"text\",\"flag\":true,\"nil\":null,\"list\":[3,1,2],\"rows\":[{\"id\":"
                               "1,\"name\":\"a\",\"price\":10,\"tags\":["
                               "\"x\",\"y\"]},{\"id\":2,\"name\":\"b\",\"price\":20,\"tags\":[]},{\"id\":3,\"name\":"
                               "\"c\",\"price\":5}],\"o\":{\"a\":1,\"b\":{"
                               "\"c\":2,\"d\":[1,{\"e\":null}]},\"z\":\"q\"},\"empty\":{},\"none\":[]}";

static const char *const functions[] = {
    "i.n",
    "i.n + 1",
    "i.s.length",
    "i.s.toUpperCase()",
    "`${i.s}-${i.n}`",
    "i.flag ? i.n : i.s",
    "!i.flag && i.o.a",
    "i.nil ?? 7",
    "i.nil || i.o.z",
    "i.nil?.x.y.z",
    "i.list[0]",
    "i.list[9]",
    "i.list.at(-1)",
    "i.list.length",
    "i.list.map(x => x * 2)",
    "i.list.filter(x => x > 1)",
    "i.list.reduce((a, b) => a + b, 0)",
    "[...i.list]",
    "[...i.list].sort()",
    "i.list.toSorted((a, b) => b - a)",
    "i.list.slice(1)",
    "i.list.includes(2)",
    "i.list.indexOf(1)",
    "i.list.find(x => x === 1)",
    "i.list.findIndex(x => x > 2)",
    "i.list.some(x => x > 2)",
    "i.list.every(x => x > 0)",
    "i.list.join('+')",
    "i.list.concat(i.none)",
    "[0].concat(i.list)",
    "Math.max(...i.list)",
    "new Set(i.list).size",
    "Array.from(i.list, x => x + 1)",
    "Array.from(i.list.entries())",
    "Object.keys(i.list)",
    "Object.entries(i.list)",
    "i.list.flatMap(x => [x, x])",
    "(([a, b]) => a + b)(i.list)",
    "(([, ...r]) => r)(i.list)",
    "(([a = 4, , c]) => [a, c])(i.list)",
    "JSON.stringify(i.list)",
    "`${i.list}`",
    "String(i.none)",
    "i.none.length === 0",
    "i.none[0] ?? 'no'",
    "Array.isArray(i.list)",
    "Array.isArray(i.o)",
    "typeof i.o",
    "typeof i.nil",
    "i.rows[1].name",
    "i.rows[1]?.tags?.[0]",
    "i.rows[2].tags?.length",
    "i.rows.map(r => r.price)",
    "i.rows.map(({name}) => name)",
    "i.rows.map(({name, ...rest}) => rest)",
    "i.rows.filter(r => r.price > 8).map(r => r.id)",
    "i.rows.find(r => r.id === 2).name",
    "i.rows.reduce((s, r) => s + r.price, 0)",
    "i.rows.flatMap(r => r.tags ?? [])",
    "i.rows.map(r => ({...r, total: r.price * 2}))",
    "i.rows.toSorted((a, b) => a.price - b.price)[0].name",
    "Object.fromEntries(i.rows.map(r => [r.id, r.name]))",
    "Object.groupBy(i.rows, r => r.price > 8 ? 'hi' : 'lo')",
    "new Map(i.rows.map(r => [r.id, r])).get(2)",
    "i.rows.findLast(r => r.price > 8)?.id",
    "i.rows.length",
    "i.rows",
    "({rows: i.rows})",
    "[i.rows[0], i.rows[2]]",
    "i.rows[0] === i.rows[0]",
    "i.rows.some(r => 'tags' in r && r.tags.length === 0)",
    "i.rows.map(r => Object.hasOwn(r, 'tags'))",
    "i.rows.map((r, k) => k)",
    "i.o",
    "i.o.a",
    "i.o.b.c",
    "i.o.b.d[1].e",
    "i.o.b?.d?.[1]?.e ?? 'none'",
    "i.o.x",
    "i.o.x?.y",
    "i.o['z']",
    "i.o.hasOwnProperty('a')",
    "'a' in i.o",
    "'q' in i.o",
    "Object.hasOwn(i.o, 'b')",
    "Object.keys(i.o)",
    "Object.values(i.o).length",
    "Object.entries(i.o).length",
    "Object.keys(i.o.b).map(k => k + '!')",
    "({...i.o})",
    "({...i.o, a: 9})",
    "(({a, ...r}) => r)(i.o)",
    "(({b: {c, d: [x]}}) => c + x)(i.o)",
    "(({q = 5}) => q)(i.o)",
    "JSON.stringify(i.o)",
    "JSON.stringify(i.o, ['a', 'z'])",
    "JSON.stringify(i)",
    "Object.keys(i)",
    "JSON.parse(JSON.stringify(i.o)).b.c",
    "Object.assign({}, i.o, {k: 1})",
    "Object.keys(i.empty).length",
    "i.empty.x ?? 1",
    "({...i.empty})",
    "i.empty",
    "Reflect.ownKeys(i.o)",
    "Object.getOwnPropertyNames(i.o)",
    "Object.getOwnPropertyDescriptor(i.o, 'a')?.enumerable",
    "Object.is(i.o.a, 1)",
    "i.o.b.d.length + i.n",
    "i.o.toString()",
    "i.o.constructor === Object",
    "i.o instanceof Object",
    "structured(i)",
    "null.x + i.n",
    "i.n.toFixed(2)",
    "i.n > 3 ? i.rows[0].name : i.rows[1].name",
    "i.flag && i.rows.map(r => r.tags)",
    "[i.n, i.s, i.nil]",
    "({n: i.n, s: [i.s]})",
    "(() => { let t = 0; for (const x of i.list) t += x; return t })()",
    "(() => { const k = []; for (const x in i.o) k.push(x); return k })()",
    "(() => { for (const [k, v] of Object.entries(i.o)) if (k === 'z') return v })()",
    "(() => { for (const r of i.rows) if (r.id === 2) return r.name })()",
    "(() => { let k = 0; while (k < i.list.length && i.list[k] !== 1) k++; return k })()",
    "(() => { const {list: [first], o: {a: {b} = {}}} = i; return [first, b] })()",
    "(() => { switch (i.s) { case 'text': return i.n; default: return i.o.a } })()",
    "(() => { try { return i.nil.x } catch (e) { return i.o.z } })()",
    "(() => { class P { constructor(r) { this.id = r.id } } return new P(i.rows[0]) })()",
    "(() => { function* g() { yield* i.list } return [...g()] })()",
    "(() => { const copy = [...i.rows]; copy.reverse(); return copy[0].id })()",
    "(() => { const m = new Map(Object.entries(i.o)); return m.size })()",
    "(() => { const [[k]] = Object.entries(i.o); return k })()",
    "(() => { label: for (const r of i.rows) for (const t of r.tags ?? []) if (t === 'y') break label; return 1 })()",
    "(() => { throw new Error('no ' + i.s) })()",
    "(() => { const f = ({x = i.n} = {}) => x; return f() })()",
    "(() => { let v = i.nil; v \x3f?= i.n; return v })()",
};
#define FUNCTIONS (sizeof functions / sizeof *functions)

/* The function as `i => ...`, or with the names it uses taken apart. */
static char *spell(const char *expression, bool apart) {
    static const char *const names[] = {"n", "s", "flag", "nil", "list", "rows", "o", "empty", "none"};
    if (!apart)
        return stet_asprintf("i => %s", expression);
    stet_buf parameters = STET_BUF(0), body = STET_BUF(0);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char use[16];
        snprintf(use, sizeof use, "i.%s", names[k]);
        for (const char *at = expression; (at = strstr(at, use)) != NULL; at++) {
            char after = at[strlen(use)];
            if (!((after >= 'a' && after <= 'z') ||
                  (at > expression && ((at[-1] >= 'a' && at[-1] <= 'z') || at[-1] == '.')))) {
                stet_buf_printf(&parameters, "%s%s", parameters.len ? ", " : "", names[k]);
                break;
            }
        }
    }
    stet_buf_printf(&body, "({%s}) => { const i = {%s}; return %s }", stet_buf_cstr(&parameters),
                    stet_buf_cstr(&parameters), expression);
    stet_buf_release(&parameters);
    return stet_buf_take(&body, NULL);
}

typedef struct one_read {
    stet_path path;
    stet_read_kind kind;
} one_read;

typedef struct reads {
    one_read at[256];
    size_t len;
} reads;

static void parse_reads(const char *text, reads *out) {
    out->len = 0;
    while (*text) {
        size_t n = strcspn(text, " ");
        assert_true(n > 3 && out->len < 256);
        one_read *r = &out->at[out->len++];
        r->path = (stet_path)STET_PATH_INIT;
        assert_int_equal(stet_path_of_pointer(&r->path, text, n - 3, NULL), STET_OK);
        r->kind = text[n - 2] == 's' ? STET_SHALLOW : STET_RECURSIVE;
        text += n + (text[n] == ' ');
    }
}

static void release_reads(reads *r) {
    for (size_t i = 0; i < r->len; i++)
        stet_path_release(&r->at[i].path);
}

/* All documents that differ from this one in one place, as an array of pairs. */
static void mutants(stet_value v, stet_value root, stet_path *path, stet_value *out) {
    static const char *const others[] = {"1000", "\"other\"", "null", "[7]", "{\"a\":8}"};
    if (stet_path_depth(stet_path_ref(path)) > 0)
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            stet_value_push(out, fake_put(stet_value_retain(root), stet_path_ref(path), 0, fake_parse(others[k])));
    size_t n = stet_value_count(v);
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *key = stet_value_key_at(v, i, &len);
        if (stet_path_depth(stet_path_ref(path)) > 0) { /* without it; the names of the inputs do not change */
            stet_value copy = stet_value_retain(v);
            if (key)
                stet_value_remove(&copy, key, len);
            else
                stet_value_remove_at(&copy, i);
            stet_value_push(out, fake_put(stet_value_retain(root), stet_path_ref(path), 0, copy));
        }
        if (key)
            stet_path_push_n(path, key, len);
        else
            stet_path_push_index(path, i);
        mutants(stet_value_at(v, i), root, path, out);
        stet_path_pop(path);
    }
    if (stet_path_depth(stet_path_ref(path)) == 0)
        return;
    if (stet_value_type(v) == STET_TYPE_OBJECT) {
        static const char *const names[] = {"new", "q", "x", "tags"};
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            stet_value copy = stet_value_retain(v);
            stet_value_put(&copy, names[k], fake_parse("{\"y\":6}"));
            stet_value_push(out, fake_put(stet_value_retain(root), stet_path_ref(path), 0, copy));
        }
    } else if (stet_value_type(v) == STET_TYPE_ARRAY) {
        stet_value copy = stet_value_retain(v);
        stet_value_push(&copy, stet_value_int(4));
        stet_value_push(out, fake_put(stet_value_retain(root), stet_path_ref(path), 0, copy));
    }
}

static bool touched(const reads *r, const stet_changes *changes) {
    for (size_t i = 0; i < r->len; i++)
        for (size_t k = 0; k < changes->len; k++)
            if (stet_touches(changes->at[k].path, changes->at[k].kind, stet_path_ref(&r->at[i].path), r->at[i].kind))
                return true;
    return false;
}

static void judged(void **ctx) {
    (void)ctx;
    void *state = js_open("{}");
    stet_value root = fake_parse(document), all = stet_value_array();
    stet_path path = STET_PATH_INIT;
    size_t step = getenv("STET_TEST_LONG")    ? 1
                  : getenv("STET_TEST_SHORT") ? 17
                                              : 3,
           hits = 0, wasted = 0, spared = 0, count = 0;
    mutants(root, root, &path, &all);
    stet_path_release(&path);
    for (size_t f = 0; f < 2 * FUNCTIONS; f++) {
        char *text = spell(functions[f / 2], f & 1);
        fake_run first;
        reads r;
        js_run_do(state, &first, js_module(text), stet_value_retain(root), stet_value_null(), stet_value_null());
        char *answer = fake_run_text(&first);
        parse_reads(stet_buf_cstr(&first.reads), &r);
        count++;
        for (size_t m = f % step; m < stet_value_count(all); m += step) {
            stet_value other = stet_value_at(all, m);
            stet_arena arena = STET_ARENA_INIT;
            stet_changes changes = {0};
            fake_run second;
            stet_changes_between(&root, &other, 0, &arena, &changes);
            bool touches = touched(&r, &changes);
            js_run_do(state, &second, js_module(text), stet_value_retain(other), stet_value_null(), stet_value_null());
            char *again = fake_run_text(&second);
            bool differs = strcmp(answer, again) != 0;
            if (differs && !touches) {
                char *shown = stet_json_print(other, STET_JSON_CANONICAL, NULL);
                fail_msg("P1: %s gave %s, reading %s, and gives %s of %s", text, answer, stet_buf_cstr(&first.reads),
                         again, shown);
            }
            if (!touches && strcmp(stet_buf_cstr(&first.reads), stet_buf_cstr(&second.reads)) != 0)
                fail_msg("P2: %s read %s, and now %s", text, stet_buf_cstr(&first.reads), stet_buf_cstr(&second.reads));
            hits += differs;
            wasted += touches && !differs;
            spared += !touches;
            stet_free(again);
            fake_run_release(&second);
            stet_changes_release(&changes);
            stet_arena_release(&arena);
        }
        release_reads(&r);
        stet_free(answer);
        fake_run_release(&first);
        stet_free(text);
    }
    print_message("# %zu functions: %zu changes of the answer, all seen; %zu runs spared, %zu in vain\n", count, hits,
                  spared, wasted);
    assert_true(count >= 200);
    assert_true(hits > count);        /* the functions did run */
    assert_true(spared > 4 * wasted); /* P3 */
    stet_value_release(all);
    stet_value_release(root);
    stet_module_javascript.close(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(judged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
