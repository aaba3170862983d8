/* op.c - arguments of operations: accepted and refused ones, messages, schemas, suggestions, the table. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/schema.h"
#include "operation/op.h"
#include "operation/text.h"

static const char *const states[] = {"pending", "running", "failed", NULL};

static const stet_param params[] = {
    {.name = "id", .type = STET_PARAM_STRING, .flags = STET_PARAM_POSITIONAL | STET_PARAM_REQUIRED, .summary = "An id"},
    {.name = "older-than-days", .type = STET_PARAM_INT, .summary = "Days", .min = 0, .max = 100},
    {.name = "limit", .type = STET_PARAM_INT, .summary = "How many", .default_json = "20", .min = 1, .max = INT64_MAX},
    {.name = "ratio", .type = STET_PARAM_NUMBER, .summary = "A ratio"},
    {.name = "fresh", .type = STET_PARAM_BOOL, .summary = "Fresh", .default_json = "false"},
    {.name = "state", .type = STET_PARAM_ENUM, .flags = STET_PARAM_REPEATED, .summary = "States", .choices = states},
    {.name = "value", .type = STET_PARAM_JSON, .summary = "Any value"},
    {.name = "file", .type = STET_PARAM_FILE, .summary = "A file"},
    {.name = "since", .type = STET_PARAM_TIME, .summary = "When"},
    {.name = "set", .type = STET_PARAM_PAIR, .summary = "Settings"},
    {.name = "runId", .type = STET_PARAM_STRING, .flags = STET_PARAM_HIDDEN, .summary = "An older spelling"},
    {0},
};

static stet_value answer;
static stet_status run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    (void)ctx;
    (void)err;
    *result = stet_value_type(answer) == STET_TYPE_NULL ? stet_value_retain(args) : stet_value_retain(answer);
    return STET_OK;
}

static const stet_op op = {
    .name = "thing do",
    .summary = "Do a thing",
    .params = params,
    .result_schema = "{\"type\":\"object\",\"required\":[\"id\"]}",
    .run = run,
};

static stet_value parse(const char *json) {
    stet_value v;
    assert_int_equal(stet_json_parse(json, strlen(json), &v, NULL), STET_OK);
    return v;
}

/* The completed arguments as canonical JSON. */
static void accepts(const char *given, const char *want) {
    stet_value in = parse(given), out;
    stet_error err = STET_ERROR_INIT;
    stet_status status = stet_op_check_args(&op, in, &out, &err);
    if (status != STET_OK)
        fail_msg("%s: %s", given, err.message);
    char *text = stet_json_print(out, STET_JSON_CANONICAL, NULL);
    assert_string_equal(text, want);
    stet_free(text);
    stet_value_release(in);
    stet_value_release(out);
}

static void refuses(const char *given, const char *message, const char *hint) {
    stet_value in = parse(given), out;
    stet_error err = STET_ERROR_INIT;
    assert_int_equal(stet_op_check_args(&op, in, &out, &err), STET_INVALID);
    if (!strstr(err.message, message) || !strstr(err.hint, hint))
        fail_msg("%s: \"%s\" / \"%s\" lacks \"%s\" / \"%s\"", given, err.message, err.hint, message, hint);
    stet_error_clear(&err);
    /* An error is optional everywhere. */
    assert_int_equal(stet_op_check_args(&op, in, &out, NULL), STET_INVALID);
    stet_value_release(in);
}

static void test_accepts(void **state) {
    (void)state;
    accepts("{\"id\":\"a\"}", "{\"fresh\":false,\"id\":\"a\",\"limit\":20}");
    accepts("{\"id\":\"a\",\"older-than-days\":3,\"limit\":1}",
            "{\"fresh\":false,\"id\":\"a\",\"limit\":1,\"older_than_days\":3}");
    accepts("{\"id\":\"a\",\"older_than_days\":100,\"fresh\":true}",
            "{\"fresh\":true,\"id\":\"a\",\"limit\":20,\"older_than_days\":100}");
    accepts("{\"id\":\"a\",\"ratio\":0.5,\"state\":[\"failed\",\"running\"]}",
            "{\"fresh\":false,\"id\":\"a\",\"limit\":20,\"ratio\":0.5,\"state\":[\"failed\",\"running\"]}");
    accepts("{\"id\":\"a\",\"value\":null}", "{\"fresh\":false,\"id\":\"a\",\"limit\":20,\"value\":null}");
    accepts("{\"id\":\"a\",\"since\":\"1970-01-02\"}",
            "{\"fresh\":false,\"id\":\"a\",\"limit\":20,\"since\":86400000}");
    accepts("{\"id\":\"a\",\"set\":{\"k\":[1]}}", "{\"fresh\":false,\"id\":\"a\",\"limit\":20,\"set\":{\"k\":[1]}}");
    accepts("{\"id\":\"a\",\"runId\":\"x\"}", "{\"fresh\":false,\"id\":\"a\",\"limit\":20,\"runId\":\"x\"}");
}

static void test_refuses(void **state) {
    (void)state;
    refuses("{}", "id is missing", "");
    refuses("[]", "an object", "");
    refuses("{\"id\":7}", "id: a string expected, not an integer", "");
    refuses("{\"id\":\"a\",\"older_than_days\":101}", "101 is not between 0 and 100", "");
    refuses("{\"id\":\"a\",\"limit\":0}", "0 is below 1", "");
    refuses("{\"id\":\"a\",\"limit\":\"3\"}", "an integer expected, not a string", "without quotes");
    refuses("{\"id\":\"a\",\"limit\":1.5}", "an integer expected", "");
    refuses("{\"id\":\"a\",\"fresh\":\"false\"}", "a boolean expected, not a string", "without quotes");
    refuses("{\"id\":\"a\",\"state\":\"failed\"}", "an array expected", "");
    refuses("{\"id\":\"a\",\"state\":[\"faild\"]}", "none of: pending, running, failed", "did you mean failed?");
    refuses("{\"id\":\"a\",\"olderthan-days\":1}", "no parameter \"olderthan-days\"", "did you mean older_than_days?");
    refuses("{\"id\":\"a\",\"zzzzzz\":1}", "it takes: id, older_than_days", "");
    refuses("{\"id\":\"a\",\"older-than-days\":1,\"older_than_days\":2}", "given twice", "");
    refuses("{\"id\":\"a\",\"since\":\"soon\"}", "since: ", "");
    refuses("{\"id\":\"a\",\"since\":true}", "a time", "");
    refuses("{\"id\":\"a\",\"set\":[1]}", "an object expected", "");
    refuses("{\"id\":\"a\",\"file\":\"\"}", "a path", "");
    refuses("{\"id\":\"a\",\"file\":\"a\\u0000b\"}", "a path", "");
    refuses("{\"id\":\"a\",\"id\\u0000x\":1}", "no parameter", "");
}

static void test_spelling(void **state) {
    (void)state;
    stet_value in = parse("{\"id\":\"a\",\"older_than_days\":-1}"), out;
    stet_error err = STET_ERROR_INIT;
    assert_int_equal(stet_op_check_spelled(&op, in, STET_SPELL_FLAGS, &out, &err), STET_INVALID);
    assert_non_null(strstr(err.message, "--older-than-days: -1"));
    stet_error_clear(&err);
    stet_value_release(in);
    in = parse("{}");
    assert_int_equal(stet_op_check_spelled(&op, in, STET_SPELL_FLAGS, &out, &err), STET_INVALID);
    assert_non_null(strstr(err.message, "ID is missing"));
    stet_error_clear(&err);
    stet_value_release(in);
}

static void test_schemas(void **state) {
    (void)state;
    stet_error err = STET_ERROR_INIT;
    stet_value schema = stet_op_args_schema(&op, STET_SPELL_NAMES),
               in = parse("{\"id\":\"a\",\"state\":[\"failed\"],\"limit\":3}");
    assert_int_equal(stet_schema_valid(schema, &err), STET_OK);
    assert_int_equal(stet_schema_check(schema, in, &err), STET_OK);
    stet_value_release(in);
    static const char *const bad[] = {
        "{}",         "{\"id\":\"a\",\"limit\":0}",        "{\"id\":\"a\",\"x\":1}",
        "{\"id\":1}", "{\"id\":\"a\",\"state\":[\"no\"]}", "{\"id\":\"a\",\"older_than_days\":101}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        in = parse(bad[i]);
        assert_int_equal(stet_schema_check(schema, in, NULL), STET_INVALID);
        stet_value_release(in);
    }
    /* What is not advertised is not in the schema. */
    stet_value there;
    assert_false(stet_value_find(stet_value_get(schema, "properties"), "runId", 5, &there));
    stet_value_release(schema);
}

static void test_call(void **state) {
    (void)state;
    stet_op_ctx ctx = {.op = &op};
    stet_error err = STET_ERROR_INIT;
    stet_value in = parse("{\"id\":\"a\"}"), result = stet_value_null();
    assert_int_equal(stet_op_call(&ctx, in, &result, &err), STET_OK);
    assert_int_equal(stet_value_as_int(stet_value_get(result, "limit")), 20);
    stet_value_release(result);
    /* A result that does not fit its schema is a bug of ours, and found where results are checked. */
    answer = stet_value_object();
    setenv("STET_CHECK_RESULTS", "1", 1);
    assert_int_equal(stet_op_call(&ctx, in, &result, &err), STET_INTERNAL);
    assert_non_null(strstr(err.message, "thing do"));
    stet_error_clear(&err);
    unsetenv("STET_CHECK_RESULTS");
    assert_int_equal(stet_op_call(&ctx, in, &result, &err), STET_OK);
    stet_value_release(result);
    stet_value_release(answer);
    answer = stet_value_null();
    stet_value_release(in);
}

/* Every row is complete and consistent, whoever wrote it. The scenario 010-table runs the examples. */
static void test_table(void **state) {
    (void)state;
    assert_true(stet_op_count() > 5);
    for (size_t i = 0; i < stet_op_count(); i++) {
        const stet_op *row = stet_op_at(i);
        assert_ptr_equal(stet_op_find(row->name), row);
        assert_non_null(row->summary);
        assert_true(row->summary[0] && row->summary[strlen(row->summary) - 1] != '.');
        assert_non_null(row->run);
        assert_true(row->examples && row->examples[0].command);
        bool optional_positional = false, last = false;
        char letters[128] = "";
        for (const stet_param *p = row->params; p && p->name; p++) {
            assert_ptr_equal(stet_op_param(row, p->name), p);
            assert_true(strlen(p->name) < STET_PARAM_NAME_MAX);
            assert_true(p->summary && *p->summary);
            assert_true((p->type == STET_PARAM_ENUM) == (p->choices != NULL));
            /* Names and letters of global flags are taken. */
            static const char *const taken[] = {"json", "project", "quiet", "color", "help", "version"};
            for (size_t j = 0; j < sizeof taken / sizeof *taken; j++)
                assert_string_not_equal(p->name, taken[j]);
            if (p->letter) {
                assert_null(strchr("Chq0123456789", p->letter));
                assert_null(strchr(letters, p->letter));
                letters[strlen(letters)] = p->letter;
            }
            if (p->flags & STET_PARAM_POSITIONAL) {
                assert_false(last); /* nothing comes after a repeated one */
                assert_false(optional_positional && p->flags & STET_PARAM_REQUIRED);
                optional_positional = optional_positional || !(p->flags & STET_PARAM_REQUIRED);
                last = p->flags & STET_PARAM_REPEATED;
            }
            if (p->optional_value) {
                stet_value v = parse(p->optional_value);
                stet_value_release(v);
            }
        }
        stet_error err = STET_ERROR_INIT;
        stet_value schema = stet_op_result_schema(row);
        if (stet_schema_valid(schema, &err) != STET_OK)
            fail_msg("%s: its result schema: %s", row->name, err.message);
        stet_value_release(schema);
        schema = stet_op_args_schema(row, STET_SPELL_NAMES);
        if (stet_schema_valid(schema, &err) != STET_OK)
            fail_msg("%s: its arguments' schema: %s", row->name, err.message);
        stet_value_release(schema);
    }
    assert_null(stet_op_find("no such"));
    assert_null(stet_op_at(stet_op_count()));
    for (size_t i = 0; i < stet_store_count(); i++) {
        const stet_store *store = stet_store_at(i);
        assert_true(store->name && store->summary && store->present && store->check && store->gc);
    }
}

static void test_text(void **state) {
    (void)state;
    stet_buf out = STET_BUF(4096);
    stet_render r = {.out = &out};
    stet_text_plain(&r, "a\033[31mb\302\233c\177\303\251", 13);
    assert_string_equal(stet_buf_cstr(&out), "a?[31mb?c?\303\251");
    stet_buf_clear(&out);
    stet_text_plain(&r, "\303(\377\303", 4);
    assert_string_equal(stet_buf_cstr(&out), "?(??");
    stet_buf_clear(&out);
    stet_text_wrap(&out, "one two three four five six\n\nnext\n  kept as it is\nafter", 2, 22, false);
    assert_string_equal(stet_buf_cstr(&out),
                        "  one two three four\n  five six\n\n  next\n    kept as it is\n  after\n");
    stet_buf_clear(&out);
    stet_table t = {.columns = 2};
    stet_table_cell(&t, "ID");
    stet_table_cell(&t, "STATE");
    stet_table_cellf(&t, "%s", "w\303\274st");
    stet_table_cell(&t, "ok");
    stet_table_print(&t, &r, true);
    assert_string_equal(stet_buf_cstr(&out), "ID    STATE\nw\303\274st  ok\n");
    stet_buf_clear(&out);
    r.colour = true;
    stet_text_styled(&r, STET_STYLE_BAD, "x");
    assert_string_equal(stet_buf_cstr(&out), "\033[31mx\033[0m");
    stet_buf_release(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepts), cmocka_unit_test(test_refuses), cmocka_unit_test(test_spelling),
        cmocka_unit_test(test_schemas), cmocka_unit_test(test_call),    cmocka_unit_test(test_table),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests_name("op", tests, NULL, NULL);
}
