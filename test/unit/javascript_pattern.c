/* javascript_pattern.c - patterns written in JavaScript: what they become, and how they are refused. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "graph/pattern.h"
#include "javascript_run.h"

static stet_status accept(void *ctx, stet_value descriptor, stet_value node, stet_error *err) {
    (void)ctx;
    (void)descriptor;
    (void)node;
    (void)err;
    return STET_OK;
}

/* The JSON form has this in it, and is a right pattern. */
static void becomes(const char *text, const char *part) {
    stet_error err = STET_ERROR_INIT;
    stet_pattern *p;
    stet_pattern_checks checks = {.module = accept, .script = stet_javascript_pattern};
    if (stet_pattern_parse("p.js", text, strlen(text), &checks, &p, NULL, &err) != STET_OK)
        fail_msg("%s: %s (%s)", text, err.message, err.hint);
    char *json = stet_json_print(p->root, STET_JSON_CANONICAL, NULL);
    if (!strstr(json, part))
        fail_msg("%s: %s is not in %s", text, part, json);
    stet_free(json);
    stet_pattern_free(p);
}

static void refused(const char *text, const char *message) {
    stet_error err = STET_ERROR_INIT;
    stet_pattern *p;
    stet_value problems;
    stet_pattern_checks checks = {.module = accept, .script = stet_javascript_pattern};
    if (stet_pattern_parse("p.js", text, strlen(text), &checks, &p, &problems, &err) == STET_OK)
        fail_msg("%s was taken", text);
    if (!strstr(err.message, message))
        fail_msg("%s: expected \"%s\", got \"%s\"", text, message, err.message);
    assert_int_equal(stet_value_count(problems), 1);
    stet_value_release(problems);
    stet_error_clear(&err);
}

static void builders(void **ctx) {
    (void)ctx;
    becomes("pattern('p', {a: 1}, ({a}) => ({a}))", "\"result\":{\"a\":{\"$\":\"argument/a\"}}");
    becomes("pattern('p', () => 5)", "\"result\":5");
    becomes("pattern('p', {}, () => 1, {version: '2', title: 'T'})", "\"title\":\"T\",\"version\":\"2\"");
    becomes("pattern('p', {a: {b: [1]}}, ({a}) => lift(x => x)(a.b[0]))", "\"inputs\":[{\"$\":\"argument/a/b/0\"}]");
    becomes("pattern('p', {a: 1}, (arg) => lift(x => x)(arg['x/y~z']))", "{\"$\":\"argument/x~1y~0z\"}");
    becomes("pattern('p', {a: 1}, ({a}) => ({twice: lift(x => x * 2)(a)}))", "\"id\":\"twice\"");
    becomes(
        "pattern('p', {a: 1}, ({a}) => [lift(function dbl(x) { return x })(a), lift(function dbl(x) { return x })(a)])",
        "\"id\":\"dbl-2\"");
    becomes("pattern('p', {a: 1}, ({a}) => { const k = computed({a}, ({a}) => a); return computed({k}, ({k}) => k) })",
            "\"inputs\":{\"k\":{\"$\":\"computed\"}}");
    becomes("pattern('p', {a: 1}, ({a}) => { effect(({a}) => console.log(a), {onRestart: 'run'})({a}) })",
            "\"kind\":\"effect\"");
    becomes("pattern('p', {a: 1}, ({a}) => { const c = cell([], {name: 'log'}); handler((e, {c}) => c.push(e))({c}); "
            "return c })",
            "\"inputs\":{\"c\":{\"$\":\"log\",\"asCell\":true}}");
    becomes("pattern('p', {a: 1}, ({a}) => ({add: handler((e, {a}) => a.set(e))({a})}))", "\"stream\":{\"$\":\"add\"}");
    becomes("pattern('p', {a: 1}, ({a}) => { const s = ref('sum')({values: [a, 2]}); return {s, w: when(s, 'yes')} })",
            "\"module\":{\"ref\":\"sum\",\"type\":\"ref\"}");
    becomes("pattern('p', {a: 1}, ({a}) => ifElse(a, 1, {k: a}))", "\"else\":{\"k\":{\"$\":\"argument/a\"}}");
    becomes("pattern('p', {f: 'x'}, ({f}) => command(['sort', '{f}'], {f}, {id: 'sorted'}))",
            "\"argv\":[\"sort\",\"{f}\"]");
    becomes("pattern('p', {f: 'x'}, ({f}) => call({function: 'train'}, {f}))", "\"type\":\"call\"");
    becomes("pattern('p', {l: []}, ({l}) => map(l, (row) => computed({row}, ({row}) => row.n * 2), {key: 'id'}))",
            "\"ref\":\"map\"");
    /* What stands around a child is passed on to it. */
    becomes("pattern('p', {l: [], k: 1}, ({l, k}) => map(l, (row) => computed({row, k}, ({row, k}) => row * k)))",
            "\"inputs\":{\"k\":{\"$\":\"argument/k\"},\"list\":{\"$\":\"argument/l\"}}");
    becomes(
        "pattern('p', {l: [], k: 1}, ({l, k}) => map(l, (a) => map(a.b, (c) => computed({c, k}, ({c, k}) => c * k))))",
        "\"inputs\":{\"k\":{\"$\":\"argument/k\"},\"list\":{\"$\":\"argument/element/b\"}}");
    becomes("pattern('p', {l: []}, ({l}) => filter(l, (a) => a.yes, {key: (x) => x.id}))",
            "\"inputs\":{\"keys\":{\"$\":\"keys\"},\"list\":{\"$\":\"argument/l\"}}");
    becomes("pattern('p', {l: []}, ({l}) => reduce(l, (s, a) => computed({s, a}, ({s, a}) => s + a), 0))",
            "\"inputs\":{\"initial\":0,\"list\":{\"$\":\"argument/l\"}}");
    becomes("pattern('p', {a: {length: 1}}, ({a}) => ({n: member(a, 'length'), c: 1}))",
            "{\"$\":\"argument/a/length\"}");
    becomes("pattern('p', {a: 1}, ({a}) => lift(({c}) => c.get())({c: asCell(a)}))", "\"asCell\":true");
    becomes("pattern('p', {}, () => ({x: {$: 'no reference'}}))", "{\"$literal\":{\"$\":\"no reference\"}}");
    becomes("const a = pattern('a', () => 1); export default pattern('b', () => 2);", "\"name\":\"b\"");
    becomes("#!/usr/bin/env stet\n// first\nexport default pattern('b', () => 2)", "\"name\":\"b\"");
    becomes("pattern('p', {factor: 2, rows: []}, ({factor, rows}) => computed({rows, factor}, ({rows, factor: f}) => "
            "rows.map((factor) => "
            "factor * f)))",
            "\"computed\"");
}

static void refusals(void **ctx) {
    (void)ctx;
    refused("pattern('p', {a: 1}, ({a}) => a + 1)", "argument/a is not known while the graph is built");
    refused("pattern('p', {a: 1}, ({a}) => `${a}`)", "is not known while the graph is built");
    refused("pattern('p', {a: []}, ({a}) => [...a])", "can't be gone through");
    refused("pattern('p', {a: []}, ({a}) => a.map(x => x))", "it has no .map");
    refused("pattern('p', {a: []}, ({...rest}) => 1)", "name the members");
    refused("pattern('p', {a: 1}, ({a}) => { a.b = 1 })", "can't be set while the graph is built");
    refused("pattern('p', {a: 1, k: 2}, ({a, k}) => computed({a}, ({a}) => a * k))",
            "computed uses k, which stands outside of it");
    refused("pattern('p', {a: 1, k: 2}, ({a, k}) => lift(function scale(a) { return [k, a] })(a))",
            "lift (scale) uses k");
    refused("pattern('p', {a: 1}, ({a}) => lift(Math.abs)(a))", "can't be sent as text");
    refused("pattern('p', {a: 1}, ({a}) => lift({m(x) { return x }}.m)(a))", "arrow function");
    refused("pattern('p', {a: 1}, ({a}) => lift(5)(a))", "takes a function");
    refused("pattern('p', {a: 1}, ({a}) => lift(x => x))", "is a function");
    refused("pattern('p', {a: 1}, ({a}) => lift(x => x, {debounce: 1})(a))", "has no option debounce");
    refused("pattern('p', {a: 1}, ({a}) => [lift(x => x, {id: 'n'})(a), lift(x => x, {id: 'n'})(a)])", "given twice");
    refused("pattern('a b', () => 1)", "takes a name");
    refused("pattern('p', 5)", "takes a name, the default argument, and a function");
    refused("lift(x => x)(1)", "belongs into the function of a pattern");
    refused("const x = 1", "it makes no pattern");
    refused("pattern('a', () => 1); pattern('b', () => 2)", "it makes 2 patterns");
    refused("pattern('p', {l: []}, ({l}) => map(l, (row) => { computed({row}, ({row}) => row) }))", "returns nothing");
    refused("\n\npattern('p', () => { null.x })", "p.js:3: TypeError");
    refused("\npattern('p', () => ))", "p.js:2: SyntaxError");
    refused("import x from 'y'", "import is not known here");
    refused("pattern('p', async () => 1)", "async function");
    refused("pattern('p', () => { const a = {}; a.a = a; return a })", "in a circle");
}

static void endless(void **ctx) {
    (void)ctx;
    const stet_javascript_plugin *plugin;
    stet_javascript_engine *engine;
    stet_error err = STET_ERROR_INIT;
    stet_value out;
    assert_int_equal(stet_javascript_load(&plugin, NULL), STET_OK);
    assert_int_equal(plugin->open(&engine, NULL), STET_OK);
    stet_javascript_source source = {.file = "p.js", .text = "for (;;);", .len = 9, .limits = {100, 100}};
    assert_int_equal(plugin->pattern(engine, &source, &out, &err), STET_LIMIT);
    assert_string_equal(err.message, "p.js: the script of the pattern: stopped: it ran longer than 100 ms");
    stet_error_clear(&err);
    source.text = "pattern('p', () => 1)";
    source.len = strlen(source.text);
    assert_int_equal(plugin->pattern(engine, &source, &out, &err), STET_OK);
    stet_value_release(out);
    plugin->close(engine);
}

int main(void) {
    engine_find_plugins();
    const struct CMUnitTest tests[] = {cmocka_unit_test(builders), cmocka_unit_test(refusals),
                                       cmocka_unit_test(endless)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
