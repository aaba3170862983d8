/* pattern.c - reading patterns: every mistake is found, with its line and a fix; large or strange ones do no harm. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "graph/pattern.h"
#include "scheduler/module.h"

static const stet_pattern_checks checks = {.module = stet_module_check};

static stet_pattern *good(const char *text) {
    stet_pattern *p = NULL;
    stet_error err = STET_ERROR_INIT;
    if (stet_pattern_parse("p.json", text, strlen(text), &checks, &p, NULL, &err) != STET_OK)
        fail_msg("%s\n%s", text, err.message);
    return p;
}

static void bad(const char *text, const char *message, const char *hint) {
    stet_pattern *p = NULL;
    stet_error err = STET_ERROR_INIT;
    assert_int_equal(stet_pattern_parse("p.json", text, strlen(text), &checks, &p, NULL, &err), STET_INVALID);
    if (strcmp(err.message, message) != 0)
        fail_msg("expected: %s\ngot:      %s", message, err.message);
    if (hint)
        assert_string_equal(err.hint, hint);
    stet_error_clear(&err);
}

static void a_whole_pattern(void **state) {
    (void)state;
    stet_pattern *p = good("{\"pattern\":1,\"name\":\"totals\",\"version\":\"1.0.0\",\n"
                           "\"argument\":{\"default\":{\"rows\":[1,2,3]},\"schema\":{\"type\":\"object\"}},\n"
                           "\"cells\":{\"log\":{\"default\":[]}},\n"
                           "\"nodes\":[{\"id\":\"total\",\"inputs\":{\"values\":{\"$\":\"argument/rows\"}},"
                           "\"module\":{\"type\":\"ref\",\"ref\":\"sum\"},\"debounceMs\":5},\n"
                           "{\"id\":\"note\",\"kind\":\"effect\",\"onRestart\":\"run\",\"output\":{\"$\":\"log/0\"},"
                           "\"inputs\":[{\"$\":\"total\"}],\"module\":{\"type\":\"ref\",\"ref\":\"value\"}}],\n"
                           "\"result\":{\"total\":{\"$\":\"total\"},\"note\":{\"$\":\"note\"}}}");
    assert_string_equal(p->name, "totals");
    assert_string_equal(p->version, "1.0.0");
    assert_int_equal(p->node_count, 2);
    assert_int_equal(p->cell_count, 1);
    assert_true(p->has_argument_default);
    assert_int_equal(p->nodes[0].debounce_ms, 5);
    assert_int_equal(p->nodes[1].kind, STET_NODE_EFFECT);
    assert_true(p->nodes[1].run_on_restart);
    assert_true(p->nodes[1].explicit_output);
    stet_pattern_ref r;
    /* A reference to a node that names its output is a reference to that cell. */
    assert_true(stet_pattern_resolve(p, stet_value_get(p->result, "note"), &r));
    assert_int_equal(r.kind, STET_REF_CELL);
    assert_int_equal(r.path.len, 2);
    assert_true(stet_pattern_resolve(p, stet_value_get(p->result, "total"), &r));
    assert_int_equal(r.kind, STET_REF_NODE);
    assert_int_equal(r.index, 0);
    stet_pattern_free(p);
}

#define HEAD "{\"pattern\":1,\"name\":\"x\",\n"

static void mistakes_have_line_and_fix(void **state) {
    (void)state;
    bad("[]", "p.json:1:1: a pattern is an array", NULL);
    bad("{}", "p.json:1:1: it does not say which version of the pattern format it is in (and 1 more problem)",
        "add \"pattern\": 1");
    bad("{\"pattern\":2,\"name\":\"x\"}", "p.json:1:12: version 2 of the pattern format is not known here: it knows 1",
        "use a newer stet");
    bad("{\"pattern\":1,\"name\":\"x\",\"wanted\":\"some\"}", "p.json:1:34: what is wanted is the result, or \"all\"",
        "write \"wanted\": \"all\", or leave it out");
    bad("{\"pattern\":1,\"name\":\"a b\"}", "p.json:1:21: \"a b\" is no name", NULL);
    bad("{\"pattern\":1,\"name\":\"x\",\"node\":[]}", "p.json:1:32: a pattern has no member \"node\"",
        "did you mean \"nodes\"?");
    bad(HEAD "\"nodes\":[\n{\"module\":{\"type\":\"ref\",\"ref\":\"sum\"}}]}", "p.json:3:1: node 0 has no id",
        "add \"id\": \"NAME\"");
    bad(HEAD "\"nodes\":[{\"id\":\"a\",\"module\":{\"type\":\"ref\",\"ref\":\"range\"},\"inputs\":[1]},\n"
             "{\"id\":\"a\",\"module\":{\"type\":\"ref\",\"ref\":\"range\"},\"inputs\":[1]}]}",
        "p.json:3:7: duplicate id \"a\": another node has it already", NULL);
    bad(HEAD "\"nodes\":[{\"id\":\"total\",\"module\":{\"type\":\"ref\",\"ref\":\"range\"},\"inputs\":[1]},\n"
             "{\"id\":\"b\",\"module\":{\"type\":\"ref\",\"ref\":\"value\"},\n\"inputs\":[{\"$\":\"totl\"}]}]}",
        "p.json:4:11: node \"b\": \"totl\" refers to \"totl\", which is no node, no named cell, and not the argument",
        "did you mean \"total\"?");
    bad(HEAD "\"nodes\":[{\"id\":\"a\",\n\"module\":{\"type\":\"reff\"}}]}",
        "p.json:3:10: node \"a\": there is no module type \"reff\"", NULL);
    bad(HEAD "\"nodes\":[{\"id\":\"a\"}]}", "p.json:2:10: node \"a\" has no module", NULL);
    bad(HEAD "\"nodes\":[{\"id\":\"a\",\"inputs\":[1],\"module\":{\"type\":\"ref\",\"ref\":\"sum\",\"argumentSchema\":{"
             "\"type\":"
             "\"object\"}}}]}",
        "p.json:2:42: the argumentSchema of the module of node \"a\" does not describe a list of arguments", NULL);
    bad(HEAD "\"nodes\":[{\"id\":\"a\",\"inputs\":[1],\"module\":{\"type\":\"ref\",\"ref\":\"sum\",\"argumentSchema\":{"
             "\"allOf\":[{\"type\":\"object\"}]}}}]}",
        "p.json:2:42: the argumentSchema of the module of node \"a\" does not describe a list of arguments", NULL);
    bad(HEAD
        "\"nodes\":[{\"id\":\"a\",\"module\":{\"type\":\"ref\",\"ref\":\"value\"},\"inputs\":[1],\"debounceMs\":-1}]}",
        "p.json:2:84: debounceMs is no number of milliseconds", NULL);
    bad(HEAD "\"nodes\":[{\"id\":\"a\",\"module\":{\"type\":\"ref\",\"ref\":\"value\"},\"inputs\":[1],\"onRestart\":"
             "\"run\"}]}",
        "p.json:2:83: node \"a\" is no effect: onRestart has no meaning there", NULL);
    bad(HEAD "\"nodes\":[{\"id\":\"a\",\"module\":{\"type\":\"ref\",\"ref\":\"value\"},\"inputs\":[1],"
             "\"output\":{\"$\":\"argument\"}}]}",
        "p.json:2:80: node \"a\" writes to the argument, which people edit", NULL);
}

/* The text after "resultSchema: " is the schema checker's own. */
static void schemas_are_checked(void **state) {
    (void)state;
    const char *text = HEAD "\"argument\":{\"schema\":{\"type\":\"nope\"}}}";
    stet_error err = STET_ERROR_INIT;
    stet_pattern *p = NULL;
    assert_int_equal(stet_pattern_parse("p.json", text, strlen(text), &checks, &p, NULL, &err), STET_INVALID);
    assert_non_null(strstr(err.message, "p.json:2:22: schema: "));
    stet_error_clear(&err);
}

static void all_mistakes_are_listed(void **state) {
    (void)state;
    const char *text =
        HEAD "\"nodes\":[{\"id\":\"a\",\"module\":{\"type\":\"ref\",\"ref\":\"summ\"},\"inputs\":[{\"$\":\"q\"}]},\n"
             "{\"id\":\"b\",\"module\":{},\"colour\":1}]}";
    stet_value problems;
    stet_pattern *p = NULL;
    stet_error err = STET_ERROR_INIT;
    assert_int_equal(stet_pattern_parse("p.json", text, strlen(text), &checks, &p, &problems, &err), STET_INVALID);
    assert_int_equal(stet_value_count(problems), 3);
    for (size_t i = 0; i < 3; i++) {
        stet_value one = stet_value_at(problems, i);
        assert_int_equal(stet_value_as_int(stet_value_get(one, "line")), i < 1 ? 2 : 3);
        stet_value fix = stet_value_get(one, "fix");
        size_t len;
        stet_value_as_string(&fix, &len);
        assert_true(len > 0);
    }
    stet_value_release(problems);
    stet_error_clear(&err);
}

static void overlapping_outputs(void **state) {
    (void)state;
    const char *format = HEAD
        "\"cells\":{\"c\":{},\"d\":{}},\"nodes\":["
        "{\"id\":\"a\",\"module\":{\"type\":\"ref\",\"ref\":\"value\"},\"inputs\":[1],\"output\":{\"$\":\"%s\"}},"
        "{\"id\":\"b\",\"module\":{\"type\":\"ref\",\"ref\":\"value\"},\"inputs\":[1],\"output\":{\"$\":\"%s\"}}]}";
    const struct {
        const char *a, *b;
        bool clash;
    } rows[] = {{"c", "c", true},      {"c/x", "c/x", true}, {"c", "c/x/y", true},  {"c/x/y", "c", true},
                {"c/x", "c/y", false}, {"c", "d", false},    {"c/x", "c/xy", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = stet_asprintf(format, rows[i].a, rows[i].b);
        stet_pattern *p = NULL;
        stet_error err = STET_ERROR_INIT;
        stet_status status = stet_pattern_parse("p.json", text, strlen(text), &checks, &p, NULL, &err);
        assert_int_equal(status, rows[i].clash ? STET_INVALID : STET_OK);
        if (rows[i].clash)
            assert_non_null(strstr(err.message, "write to the same cell"));
        stet_error_clear(&err);
        stet_pattern_free(p);
        stet_free(text);
    }
}

static void links_and_literals(void **state) {
    (void)state;
    stet_pattern *p = good(HEAD "\"nodes\":[{\"id\":\"a\",\"module\":{\"type\":\"ref\",\"ref\":\"merge\"},\"inputs\":["
                                "{\"/\":{\"link@1\":{\"id\":\"config\",\"path\":[\"a\",\"b\"],\"space\":\"other\"}}},"
                                "{\"$literal\":{\"$\":\"nothing\"}},{\"deep\":[{\"$\":\"argument\"}]}]}]}");
    stet_pattern_ref r;
    assert_true(stet_pattern_resolve(p, stet_value_at(p->nodes[0].inputs, 0), &r));
    assert_int_equal(r.kind, STET_REF_LINK);
    assert_int_equal(r.path.len, 4);
    assert_false(stet_pattern_resolve(p, stet_value_at(p->nodes[0].inputs, 1), &r));
    stet_pattern_free(p);
    bad(HEAD "\"nodes\":[{\"id\":\"a\",\"module\":{\"type\":\"ref\",\"ref\":\"value\"},\"inputs\":[{\"/"
             "\":{\"link@1\":{}}}]}]}",
        "p.json:2:68: node \"a\": a link needs an \"id\" (a string)", NULL);
    bad(HEAD "\"nodes\":[{\"id\":\"a\",\"module\":{\"type\":\"ref\",\"ref\":\"value\"},\"inputs\":[{\"$\":7}]}]}",
        "p.json:2:68: node \"a\": \"$\" must be a string, NAME or NAME/KEY", NULL);
    bad(HEAD
        "\"nodes\":[{\"id\":\"a\",\"module\":{\"type\":\"ref\",\"ref\":\"value\"},\"inputs\":{\"$\":\"argument\"}}]}",
        "p.json:2:67: the inputs of node \"a\" are one reference", NULL);
}

static void handlers(void **state) {
    (void)state;
    stet_pattern *p = NULL;
    const char *text = HEAD "\"nodes\":[{\"id\":\"add\",\"stream\":{\"$\":\"add\"},\"module\":{\"type\":\"javascript\","
                            "\"handler\":true,\"implementation\":\"x\"}}]}";
    /* Without module kinds any type goes: the form alone is checked. */
    assert_int_equal(stet_pattern_parse("p.json", text, strlen(text), NULL, &p, NULL, NULL), STET_OK);
    assert_int_equal(p->nodes[0].kind, STET_NODE_HANDLER);
    stet_pattern_free(p);
    text = HEAD "\"nodes\":[{\"id\":\"add\",\"module\":{\"type\":\"javascript\",\"handler\":true}}]}";
    p = NULL;
    assert_int_equal(stet_pattern_parse("p.json", text, strlen(text), NULL, &p, NULL, NULL), STET_INVALID);
}

static void broken_json(void **state) {
    (void)state;
    stet_pattern *p = NULL;
    stet_error err = STET_ERROR_INIT;
    stet_value problems;
    const char *text = "{\"pattern\":1,\n\"name\":}";
    assert_int_equal(stet_pattern_parse("p.json", text, strlen(text), &checks, &p, &problems, &err), STET_INVALID);
    assert_int_equal(stet_value_count(problems), 1);
    assert_int_equal(stet_value_as_int(stet_value_get(stet_value_at(problems, 0), "line")), 2);
    assert_non_null(strstr(err.message, "p.json"));
    stet_value_release(problems);
    stet_error_clear(&err);
}

/* A thousand mistakes are a hundred problems, and a deep binding no deep recursion. */
static void bounds(void **state) {
    (void)state;
    stet_buf b = STET_BUF(0);
    stet_buf_str(&b, HEAD "\"nodes\":[");
    for (int i = 0; i < 1000; i++)
        stet_buf_printf(&b, "%s{\"id\":\"n%d\",\"module\":{\"type\":\"x\"}}", i ? "," : "", i);
    stet_buf_str(&b, "]}");
    stet_pattern *p = NULL;
    stet_value problems;
    stet_error err = STET_ERROR_INIT;
    assert_int_equal(stet_pattern_parse("p.json", b.data, b.len, &checks, &p, &problems, &err), STET_INVALID);
    assert_int_equal(stet_value_count(problems), STET_PATTERN_MAX_PROBLEMS);
    stet_value_release(problems);
    stet_error_clear(&err);
    stet_buf_clear(&b);
    stet_buf_str(&b, HEAD
                 "\"nodes\":[{\"id\":\"a\",\"module\":{\"type\":\"ref\",\"ref\":\"value\"},\"inputs\":{\"value\":");
    for (int i = 0; i < 500; i++)
        stet_buf_char(&b, '[');
    stet_buf_str(&b, "{\"$\":\"argument\"}");
    for (int i = 0; i < 500; i++)
        stet_buf_char(&b, ']');
    stet_buf_str(&b, "}}]}");
    stet_pattern_free(good(stet_buf_cstr(&b)));
    stet_buf_release(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_pattern),
        cmocka_unit_test(mistakes_have_line_and_fix),
        cmocka_unit_test(schemas_are_checked),
        cmocka_unit_test(all_mistakes_are_listed),
        cmocka_unit_test(overlapping_outputs),
        cmocka_unit_test(links_and_literals),
        cmocka_unit_test(handlers),
        cmocka_unit_test(broken_json),
        cmocka_unit_test(bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
