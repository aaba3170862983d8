/* options.c - option structs of older and newer callers. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/options.h"

typedef struct old_options {
    size_t size;
    int a;
} old_options;
typedef struct options {
    size_t size;
    int a, b;
    const char *text;
} options;
typedef struct new_options {
    size_t size;
    int a, b;
    const char *text;
    void *more[3];
} new_options;

static stet_error err;

static void an_older_caller_leaves_new_options_zero(void **state) {
    (void)state;
    old_options given = {sizeof given, 7};
    options known;
    memset(&known, 0xff, sizeof known);
    assert_int_equal(stet_options_read(&known, sizeof known, &given, "options", &err), STET_OK);
    assert_int_equal(known.a, 7);
    assert_null(known.text);
}

static void a_newer_caller_is_served_while_it_sets_nothing_new(void **state) {
    (void)state;
    new_options given = {.size = sizeof given, .a = 1, .b = 2, .text = "x"};
    options known;
    assert_int_equal(stet_options_read(&known, sizeof known, &given, "options", &err), STET_OK);
    assert_int_equal(known.b, 2);
    assert_string_equal(known.text, "x");
    given.more[2] = &given;
    assert_int_equal(stet_options_read(&known, sizeof known, &given, "options", &err), STET_UNSUPPORTED);
    assert_true(stet_has_hint(&err));
    stet_error_clear(&err);
}

static void a_size_that_was_not_set_is_refused(void **state) {
    (void)state;
    const size_t wrong[] = {0, 1, sizeof(size_t) - 1, 5000, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options given = {.size = wrong[i]}, known;
        assert_int_equal(stet_options_read(&known, sizeof known, &given, "options", &err), STET_INVALID);
        assert_non_null(strstr(err.message, "options"));
        stet_error_clear(&err);
    }
}

static void errors_are_copied_and_moved_whole(void **state) {
    (void)state;
    stet_error from = STET_ERROR_INIT, to = STET_ERROR_INIT;
    stet_error_copy(&to, &from);
    assert_int_equal(to.status, STET_OK);
    stet_fail(&from, STET_LIMIT, "too long: %d", 3);
    stet_hint(&from, "make it %s", "shorter");
    stet_hint(&from, "not this one");
    stet_detail(&from, "n", stet_value_int(3));
    stet_error_copy(&to, &from);
    assert_string_equal(to.message, "too long: 3");
    assert_string_equal(to.hint, "make it shorter");
    assert_int_equal(stet_value_as_int(stet_value_get(to.details, "n")), 3);
    stet_hint_instead(&to, "%s", to.message); /* from the error itself */
    stet_fail_in(&to, "%s", to.hint);
    assert_string_equal(to.message, "too long: 3: too long: 3");
    stet_error_clear(&to);
    stet_error_move(&to, &from);
    assert_int_equal(from.status, STET_OK);
    assert_string_equal(to.hint, "make it shorter");
    stet_error_move(NULL, &to);
    assert_int_equal(to.status, STET_OK);
    assert_true(sizeof(stet_error) <= 48);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_older_caller_leaves_new_options_zero),
        cmocka_unit_test(a_newer_caller_is_served_while_it_sets_nothing_new),
        cmocka_unit_test(a_size_that_was_not_set_is_refused),
        cmocka_unit_test(errors_are_copied_and_moved_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
