/* ref.c - the builtin functions, through a run of our own.
 *
 * Inputs come from a JSON text, and every read is recorded, so that a test sees not only what a function answers but
 * also what it looked at.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_run.h"
#include "module/kinds.h"
#include "module/ref.h"
#include "os/file.h"

/* Runs a function; the answer as text (free), "error: ..." if it failed. */
static char *call(const char *ref, const char *inputs, char **reads) {
    fake_run f = fake_run_of(fake_parse(inputs));
    stet_value node = stet_value_object(), module = stet_value_object();
    stet_value_put(&module, "type", stet_value_string("ref"));
    stet_value_put(&module, "ref", stet_value_string(ref));
    stet_value_put(&node, "module", module);
    stet_value_put(&node, "inputs", stet_value_retain(f.inputs));
    f.base = (stet_run){.ops = &fake_run_ops, .node = node, .descriptor = module, .bindings = f.inputs, .name = "test"};
    stet_error err = STET_ERROR_INIT;
    if (stet_module_ref.check(module, node, &err) != STET_OK) {
        char *text = stet_asprintf("refused: %s", err.message);
        stet_value_release(node);
        fake_run_release(&f);
        stet_error_clear(&err);
        return text;
    }
    assert_int_equal(stet_module_ref.start(NULL, &f.base, &err), STET_OK);
    assert_true(f.done);
    char *text = fake_run_text(&f);
    if (reads)
        *reads = stet_buf_take(&f.reads, NULL);
    stet_value_release(node);
    fake_run_release(&f);
    return text;
}

#define gives(ref, inputs, expected)                                                                                   \
    do {                                                                                                               \
        char *got_ = call(ref, inputs, NULL);                                                                          \
        if (strcmp(got_, expected) != 0)                                                                               \
            fail_msg("%s %s: expected %s, got %s", ref, inputs, expected, got_);                                       \
        stet_free(got_);                                                                                               \
    } while (0)

#define reads(ref, inputs, expected)                                                                                   \
    do {                                                                                                               \
        char *reads_ = NULL, *got_ = call(ref, inputs, &reads_);                                                       \
        if (!reads_ || strcmp(reads_, expected) != 0)                                                                  \
            fail_msg("%s %s: expected to read %s, read %s (%s)", ref, inputs, expected, reads_, got_);                 \
        stet_free(got_);                                                                                               \
        stet_free(reads_);                                                                                             \
    } while (0)

static void arithmetic(void **state) {
    (void)state;
    gives("add", "{\"0\":1,\"1\":2,\"2\":3.5}", "6.5");
    gives("add", "{\"values\":[1,2,3]}", "6");
    gives("add", "[1,2]", "3");
    gives("add", "{\"a\":9223372036854775807,\"b\":1}", "error: add: the result does not fit in a 64-bit integer");
    gives("subtract", "{\"a\":5,\"b\":7}", "-2");
    gives("subtract", "{\"0\":5,\"1\":7}", "-2");
    gives("multiply", "{\"values\":[2,3,4]}", "24");
    gives("multiply", "{\"a\":4611686018427387904,\"b\":2}",
          "error: multiply: the result does not fit in a 64-bit integer");
    gives("divide", "{\"a\":6,\"b\":3}", "2");
    gives("divide", "{\"a\":1,\"b\":4}", "0.25");
    gives("divide", "{\"a\":1,\"b\":0}", "error: divide: division by zero");
    gives("divide", "{\"a\":-9223372036854775808,\"b\":-1}",
          "error: divide: the result does not fit in a 64-bit integer");
    gives("modulo", "{\"a\":-7,\"b\":3}", "-1");
    gives("modulo", "{\"a\":-9223372036854775808,\"b\":-1}", "0");
    gives("modulo", "{\"a\":7.5,\"b\":2}", "1.5");
    gives("power", "{\"a\":2,\"b\":62}", "4611686018427387904");
    gives("power", "{\"a\":2,\"b\":63}", "error: power: the result does not fit in a 64-bit integer");
    gives("power", "{\"a\":2,\"b\":-1}", "0.5");
    gives("negate", "{\"value\":3}", "-3");
    gives("abs", "{\"value\":-3.5}", "3.5");
    gives("abs", "[7]", "7");
    gives("round", "{\"value\":2.5}", "3");
    gives("round", "{\"value\":2.345,\"digits\":1}", "2.3");
    gives("floor", "{\"value\":-2.5}", "-3");
    gives("ceil", "{\"value\":-2.5}", "-2");
    gives("sqrt", "{\"value\":9}", "3");
    gives("sqrt", "{\"value\":-1}", "error: sqrt: the square root of a negative number");
    gives("add", "{\"a\":1,\"b\":\"2\"}", "error: add: element 1: expected a number, found a string");
    gives("subtract", "{\"a\":1,\"b\":null}", "error: subtract: b: expected a number, found null");
}

static void comparison_and_logic(void **state) {
    (void)state;
    gives("equal", "{\"a\":{\"x\":[1]},\"b\":{\"x\":[1.0]}}", "true");
    gives("notEqual", "{\"a\":1,\"b\":2}", "true");
    gives("less", "{\"a\":1,\"b\":2}", "true");
    gives("lessOrEqual", "{\"a\":2,\"b\":2}", "true");
    gives("greater", "{\"a\":\"b\",\"b\":\"a\"}", "true");
    gives("greaterOrEqual", "{\"a\":1,\"b\":2}", "false");
    gives("compare", "{\"a\":null,\"b\":false}", "-1");
    gives("and", "[true,1,\"x\",{}]", "true");
    gives("and", "{\"values\":[true,0]}", "false");
    gives("or", "[0,null,\"\"]", "false");
    gives("or", "[0,[]]", "true");
    gives("not", "{\"value\":\"\"}", "true");
    gives("xor", "{\"a\":1,\"b\":0}", "true");
    /* No further than the answer needs. */
    reads("and", "[1,0,1]", "/0(s) /1(s)");
    reads("or", "[1,0,1]", "/0(s)");
}

static void lists(void **state) {
    (void)state;
    gives("sum", "{\"values\":[]}", "0");
    gives("sum", "{\"values\":{\"a\":1,\"b\":2}}", "3");
    gives("sum", "{\"values\":7}", "error: sum: values: expected an array or an object, found a number");
    gives("count", "{\"values\":[1,2,3]}", "3");
    gives("min", "{\"values\":[3,1,2]}", "1");
    gives("max", "{\"values\":[\"a\",\"c\",\"b\"]}", "\"c\"");
    gives("max", "{\"values\":[]}", "null");
    gives("mean", "{\"values\":[1,2]}", "1.5");
    gives("mean", "{\"values\":[]}", "null");
    /* The number of elements is a matter of the key set alone. */
    reads("count", "{\"values\":[1,2,3]}", "/values(s)");
    reads("length", "{\"value\":[1,2,3]}", "/value(s)");
    reads("keys", "{\"value\":{\"a\":1}}", "/value(s)");
}

static void structure(void **state) {
    (void)state;
    gives("value", "{\"value\":{\"a\":1}}", "{\"a\":1}");
    gives("get", "{\"value\":{\"a\":[1,{\"b\":2}]},\"path\":\"/a/1/b\"}", "2");
    gives("get", "{\"value\":{\"a\":5},\"path\":\"a\"}", "5");
    gives("get", "{\"value\":[5,6],\"path\":1}", "6");
    gives("get", "{\"value\":{\"a/b\":{\"c\":1}},\"path\":[\"a/b\",\"c\"]}", "1");
    gives("get", "{\"value\":{},\"path\":\"/x\",\"default\":9}", "9");
    gives("get", "{\"value\":{},\"path\":\"/x\"}", "null");
    gives("get", "{\"value\":{},\"path\":true}",
          "error: get: path: expected a JSON Pointer, a key, an index or a list of keys, found a boolean");
    reads("get", "{\"value\":{\"a\":5,\"b\":6},\"path\":\"a\",\"default\":1}", "/path(r) /value/a(r)");
    gives("pick", "{\"value\":{\"a\":1,\"b\":2,\"c\":3},\"keys\":[\"a\",\"c\",\"z\"]}", "{\"a\":1,\"c\":3}");
    reads("pick", "{\"value\":{\"a\":1,\"b\":2},\"keys\":[\"b\"]}", "/keys(r) /value/b(r)");
    gives("merge", "[{\"a\":1,\"b\":1},null,{\"b\":2}]", "{\"a\":1,\"b\":2}");
    gives("merge", "[{\"a\":1},2]", "error: merge: element 1: expected an object, found a number");
    gives("keys", "{\"value\":{\"b\":1,\"a\":2}}", "[\"a\",\"b\"]");
    gives("values", "{\"value\":{\"b\":1,\"a\":2}}", "[2,1]");
    gives("length", "{\"value\":\"h\\u00e9!\"}", "3");
    gives("concat", "[[1],[2,3],[]]", "[1,2,3]");
    gives("concat", "[\"a\",\"b\"]", "\"ab\"");
    gives("concat", "[\"a\",1]", "error: concat: element 1: expected a string, like the first, found a number");
    gives("flatten", "{\"value\":[1,[2,[3,[4]]]]}", "[1,2,[3,[4]]]");
    gives("flatten", "{\"value\":[1,[2,[3,[4]]]],\"depth\":9}", "[1,2,3,4]");
    gives("flatten", "{\"value\":[1,[2]],\"depth\":0}", "[1,[2]]");
    gives("sort", "{\"value\":[3,1,2]}", "[1,2,3]");
    gives("sort", "{\"value\":[{\"n\":2,\"x\":1},{\"n\":1},{\"n\":2,\"x\":0}],\"by\":\"n\",\"descending\":true}",
          "[{\"n\":2,\"x\":1},{\"n\":2,\"x\":0},{\"n\":1}]");
    gives("unique", "{\"value\":[1,2,1.0,\"1\",{\"a\":1},{\"a\":1}]}", "[1,2,\"1\",{\"a\":1}]");
    gives("range", "{\"end\":3}", "[0,1,2]");
    gives("range", "{\"start\":5,\"end\":0,\"step\":-2}", "[5,3,1]");
    gives("range", "{\"end\":3,\"step\":0}", "error: range: step: 0 leads nowhere");
    gives("range", "{\"end\":9000000000}", "error: range: more than 1000000 numbers");
    gives("range", "{\"start\":9223372036854775806,\"end\":9223372036854775807,\"step\":5}", "[9223372036854775806]");
}

static void texts(void **state) {
    (void)state;
    gives("join", "{\"values\":[1,\"a\",null],\"separator\":\"-\"}", "\"1-a-null\"");
    gives("split", "{\"text\":\"a,b,,c\",\"separator\":\",\"}", "[\"a\",\"b\",\"\",\"c\"]");
    gives("split", "{\"text\":\"h\\u00e9\"}", "[\"h\",\"\xc3\xa9\"]");
    gives("format", "{\"template\":\"{a}/{b/0} {{x}}\",\"a\":1,\"b\":[\"z\"]}", "\"1/z {x}\"");
    gives("format", "{\"template\":\"{nope}\"}", "error: format: template: {nope} names no input");
    gives("format", "{\"template\":\"{a\",\"a\":1}", "error: format: template: a { without a } (write {{ for a brace)");
    reads("format", "{\"template\":\"{b/0}\",\"a\":1,\"b\":[1]}", "/template(r) /b/0(r)");
    gives("hash", "{\"value\":null}", "\"74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b\"");
}

static void branch_not_taken_is_not_read(void **state) {
    (void)state;
    gives("ifElse", "{\"condition\":true,\"then\":1,\"else\":2}", "1");
    gives("ifElse", "{\"condition\":0,\"then\":1,\"else\":2}", "2");
    gives("ifElse", "{\"condition\":0,\"then\":1}", "null");
    reads("ifElse", "{\"condition\":true,\"then\":1,\"else\":2}", "/condition(s) /then(r)");
    reads("ifElse", "{\"condition\":false,\"then\":1,\"else\":2}", "/condition(s) /else(r)");
    gives("when", "{\"condition\":1,\"value\":5}", "5");
    reads("when", "{\"condition\":0,\"value\":5}", "/condition(s)");
    gives("unless", "{\"condition\":0,\"value\":5}", "5");
    reads("unless", "{\"condition\":1,\"value\":5}", "/condition(s)");
}

static void wrong_inputs_are_refused(void **state) {
    (void)state;
    gives("divide", "{\"a\":1}", "refused: ref \"divide\" needs the input \"b\"");
    gives("divide", "{\"a\":1,\"b\":2,\"c\":3}", "refused: ref \"divide\" has no input \"c\"");
    gives("divide", "[1,2,3]", "refused: ref \"divide\" takes 2 inputs, and has 3");
    gives("sum", "{}", "refused: ref \"sum\" has no inputs");
    stet_error err = STET_ERROR_INIT;
    stet_value d = fake_parse("{\"type\":\"ref\",\"ref\":\"summ\"}");
    assert_int_equal(stet_module_ref.check(d, stet_value_null(), &err), STET_INVALID);
    assert_string_equal(err.hint, "did you mean \"sum\"?");
    stet_error_clear(&err);
    stet_value_release(d);
    d = fake_parse("{\"type\":\"ref\",\"ref\":\"sum\",\"handler\":true}");
    assert_int_equal(stet_module_ref.check(d, stet_value_null(), &err), STET_UNSUPPORTED);
    stet_error_clear(&err);
    stet_value_release(d);
    d = fake_parse("{\"type\":\"reff\"}");
    assert_int_equal(stet_module_check(NULL, d, stet_value_null(), &err), STET_INVALID);
    assert_string_equal(err.message, "there is no module type \"reff\"");
    stet_error_clear(&err);
    stet_value_release(d);
}

static void use_of_inputs(void **state) {
    (void)state;
    stet_value d = fake_parse("{\"type\":\"ref\",\"ref\":\"ifElse\"}");
    assert_int_equal(stet_module_ref.use(d, "condition", 9), STET_INPUT_ALWAYS);
    assert_int_equal(stet_module_ref.use(d, "then", 4), STET_INPUT_CHOSEN);
    assert_int_equal(stet_module_ref.use(d, "1", 1), STET_INPUT_CHOSEN);
    assert_int_equal(stet_module_ref.use(d, "0", 1), STET_INPUT_ALWAYS);
    stet_value_release(d);
    d = fake_parse("{\"type\":\"ref\",\"ref\":\"or\"}");
    assert_int_equal(stet_module_ref.use(d, "0", 1), STET_INPUT_MAYBE);
    stet_value_release(d);
    d = fake_parse("{\"type\":\"ref\",\"ref\":\"sum\"}");
    assert_int_equal(stet_module_ref.use(d, "values", 6), STET_INPUT_ALWAYS);
    stet_value_release(d);
}

static void fingerprints_differ(void **state) {
    (void)state;
    stet_hash a, b, c;
    stet_value sum = fake_parse("{\"type\":\"ref\",\"ref\":\"sum\"}"),
               min = fake_parse("{\"type\":\"ref\",\"ref\":\"min\"}");
    stet_value same = fake_parse("{\"type\":\"ref\",\"ref\":\"sum\",\"metadata\":{}}");
    assert_int_equal(stet_module_ref.fingerprint(NULL, sum, &a, NULL), STET_OK);
    assert_int_equal(stet_module_ref.fingerprint(NULL, min, &b, NULL), STET_OK);
    assert_int_equal(stet_module_ref.fingerprint(NULL, same, &c, NULL), STET_OK);
    assert_false(stet_hash_equal(a, b));
    assert_true(stet_hash_equal(a, c));
    stet_value_release(sum);
    stet_value_release(min);
    stet_value_release(same);
}

/* Every function stands in the format's description, under its name. */
static void documented(void **state) {
    (void)state;
    const char *source = getenv("STET_SOURCE");
    char *path = stet_file_join(source ? source : ".", "docs/pattern-format.md");
    stet_buf text = STET_BUF(0);
    assert_int_equal(stet_file_read(path, 0, &text, NULL), STET_OK);
    stet_free(path);
#define DOCUMENTED(name)                                                                                               \
    if (!strstr(text.data, "| `" #name "` |"))                                                                         \
        fail_msg("docs/pattern-format.md does not describe %s", #name);
    STET_REFS(DOCUMENTED)
    stet_buf_release(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic),
        cmocka_unit_test(comparison_and_logic),
        cmocka_unit_test(lists),
        cmocka_unit_test(structure),
        cmocka_unit_test(texts),
        cmocka_unit_test(branch_not_taken_is_not_read),
        cmocka_unit_test(wrong_inputs_are_refused),
        cmocka_unit_test(use_of_inputs),
        cmocka_unit_test(fingerprints_differ),
        cmocka_unit_test(documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
