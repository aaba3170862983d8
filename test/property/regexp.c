/* regexp.c - bounding regular expressions (plugins/javascript/regexp.js) changes no answer.
 *
 *   - random expressions on random texts: the machine that can be stopped gives what the specification says, and so
 *     does the engine, but for less than one time in a hundred;
 *   - X1: an expression on a text of the length up to which the engine is trusted with it holds nobody up. An operation
 *     of more than a second ends the run, so it is enough that none does.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "../unit/javascript_run.h"

static void *state;

static void add_source(stet_buf *out, const char *name) {
    char *path = stet_file_join(getenv("STET_SOURCE"), name);
    assert_int_equal(stet_file_read(path, 1 << 20, out, NULL), STET_OK);
    stet_free(path);
}

/* The scripts of the plug-in and ours as one file of the project. */
static int open_all(void **ctx) {
    (void)ctx;
    stet_buf text = STET_BUF(0);
    stet_buf_str(&text, "const expression = ");
    add_source(&text, "plugins/javascript/expression.js");
    stet_buf_str(&text, ";\nconst machine = ");
    add_source(&text, "plugins/javascript/machine.js");
    stet_buf_str(&text, ";\nconst regexp = ");
    add_source(&text, "plugins/javascript/regexp.js");
    stet_buf_str(&text, ";\nconst parts = machine(expression());\nconst { Expression } = regexp(parts);\n");
    add_source(&text, "test/property/regexp.js");
    assert_int_equal(stet_file_replace("fuzz.js", stet_buf_cstr(&text), text.len, 0644, NULL), STET_OK);
    stet_buf_release(&text);
    state = js_open("{\"time_limit_ms\":60000,\"memory_limit_mb\":4000}");
    return 0;
}

static int close_all(void **ctx) {
    (void)ctx;
    stet_module_javascript.close(state);
    return 0;
}

static stet_value run(const char *name, int64_t seed, int64_t count) {
    fake_run r;
    stet_value module = fake_parse("{\"type\":\"javascript\",\"implementation\":{\"file\":\"fuzz.js\"}}"),
               implementation = stet_value_retain(stet_value_get(module, "implementation")),
               inputs = stet_value_object();
    stet_value_put(&implementation, "export", stet_value_string(name));
    stet_value_put(&module, "implementation", implementation);
    stet_value_put(&inputs, "seed", stet_value_int(seed));
    stet_value_put(&inputs, "count", stet_value_int(count));
    js_run_do(state, &r, module, inputs, stet_value_null(), stet_value_null());
    if (r.failed)
        fail_msg("%s with seed %lld: %s", name, (long long)seed, r.error.message);
    stet_value result = stet_value_retain(r.result);
    fake_run_release(&r);
    return result;
}

static int64_t rounds(int64_t brief, int64_t usual, int64_t many) {
    return getenv("STET_TEST_LONG") ? many : getenv("STET_TEST_SHORT") ? brief : usual;
}

static void same_answers(void **ctx) {
    (void)ctx;
    int64_t same = 0, matched = 0, engine = 0, n = rounds(1, 4, 60);
    for (int64_t seed = 1; seed <= n; seed++) {
        stet_value result = run("compare", seed, 1000), different = stet_value_get(result, "different");
        if (stet_value_type(different) == STET_TYPE_STRING)
            fail_msg("seed %lld: %s", (long long)seed, stet_value_as_string(&different, NULL));
        same += stet_value_as_int(stet_value_get(result, "same"));
        matched += stet_value_as_int(stet_value_get(result, "matched"));
        engine += stet_value_as_int(stet_value_get(result, "engine"));
        stet_value_release(result);
    }
    print_message("# %lld answers compared, %lld of them matches; the engine was wrong in %lld\n", (long long)same,
                  (long long)matched, (long long)engine);
    assert_true(same > 1500 * n);
    assert_true(matched > 300 * n);
    assert_true(engine * 100 < same);
}

static void no_operation_takes_long(void **ctx) {
    (void)ctx;
    for (int64_t seed = 1; seed <= rounds(3, 15, 600); seed++)
        stet_value_release(run("longest", seed, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_answers), cmocka_unit_test(no_operation_takes_long)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
