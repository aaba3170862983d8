/* error.c - errors: the first failure wins, prefixes, hints, details, cutting long messages. */

#include "base/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"

static void first_failure_wins(void **state) {
    (void)state;
    stet_error err = STET_ERROR_INIT;
    assert_int_equal(stet_fail(&err, STET_LIMIT, "%s: %d", "thing", 3), STET_LIMIT);
    assert_int_equal(stet_fail(&err, STET_IO, "later"), STET_IO);
    assert_int_equal(err.status, STET_LIMIT);
    assert_string_equal(err.message, "thing: 3");
    assert_int_equal(stet_fail(NULL, STET_BUSY, "nobody listens"), STET_BUSY);
    stet_error_clear(&err);
    assert_int_equal(err.status, STET_OK);
    assert_false(stet_has_hint(&err));
}

static void prefix_hint_and_details(void **state) {
    (void)state;
    stet_error err = STET_ERROR_INIT;
    stet_hint(&err, "an error that is not set takes no hint");
    stet_detail(&err, "x", stet_value_string("and frees the detail that it does not take"));
    assert_false(stet_has_hint(&err));
    stet_fail(&err, STET_INVALID, "bad");
    stet_fail_in(&err, "file %s", "a.json");
    stet_hint(&err, "do this");
    stet_hint(&err, "not that");
    stet_detail(&err, "line", stet_value_int(3));
    stet_detail(&err, "what", stet_value_string("a string longer than fourteen bytes"));
    assert_string_equal(err.message, "file a.json: bad");
    assert_string_equal(err.hint, "do this");
    stet_value v = stet_error_value(&err);
    char *text = stet_json_print(v, STET_JSON_CANONICAL, NULL);
    assert_string_equal(
        text, "{\"code\":\"invalid\",\"details\":{\"line\":3,\"what\":\"a string longer than fourteen bytes\"},"
              "\"hint\":\"do this\",\"message\":\"file a.json: bad\"}");
    stet_free(text);
    stet_value_release(v);
    stet_error_clear(&err);
}

static void long_messages_are_cut_between_characters(void **state) {
    (void)state;
    char text[3000];
    for (size_t shift = 0; shift < 3; shift++) {
        memset(text, 'x', shift);
        for (size_t i = shift; i + 3 < sizeof text; i += 3)
            memcpy(text + i, "\xE2\x82\xAC", 4);
        stet_error err = STET_ERROR_INIT;
        stet_fail(&err, STET_INVALID, "%s", text);
        size_t len = strlen(err.message);
        assert_in_range(len, 1020, 1023);
        assert_string_equal(err.message + len - 3, "...");
        assert_true(stet_utf8_valid(err.message, len));
        stet_fail_in(&err, "%s", text);
        len = strlen(err.message);
        assert_in_range(len, 1020, 1023);
        assert_true(stet_utf8_valid(err.message, len));
        stet_hint(&err, "%s", text);
        assert_true(stet_utf8_valid(err.hint, strlen(err.hint)));
        stet_error_clear(&err);
    }
}

static void a_message_may_quote_itself(void **state) {
    (void)state;
    stet_error err = STET_ERROR_INIT;
    stet_fail(&err, STET_INVALID, "inner");
    stet_fail_in(&err, "%s again", err.message);
    assert_string_equal(err.message, "inner again: inner");
    stet_error_clear(&err);
}

static void errno_has_a_status(void **state) {
    (void)state;
    static const struct {
        int number;
        stet_status status;
        bool hint;
    } cases[] = {{ENOENT, STET_NOT_FOUND, false},
                 {EEXIST, STET_CONFLICT, false},
                 {ETIMEDOUT, STET_BUSY, false},
                 {ENOSPC, STET_IO, true},
                 {EROFS, STET_IO, true},
                 {EACCES, STET_IO, true},
                 {EIO, STET_IO, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stet_error err = STET_ERROR_INIT;
        assert_int_equal(stet_fail_errno(&err, cases[i].number, "open %s", "f"), cases[i].status);
        assert_int_equal(err.status, cases[i].status);
        assert_memory_equal(err.message, "open f: ", 8);
        assert_string_equal(err.message + 8, strerror(cases[i].number));
        assert_int_equal(err.hint[0] != 0, cases[i].hint);
        stet_error_clear(&err);
        assert_int_equal(stet_fail_errno(NULL, cases[i].number, "open"), cases[i].status);
    }
}

static void moving(void **state) {
    (void)state;
    stet_error a = STET_ERROR_INIT, b = STET_ERROR_INIT;
    stet_fail(&b, STET_IO, "disk");
    stet_detail(&b, "path", stet_value_string("/some/rather/long/path"));
    stet_error_move(&a, &b);
    assert_int_equal(b.status, STET_OK);
    assert_string_equal(a.message, "disk");
    assert_int_equal(stet_value_count(a.details), 1);
    stet_fail(&b, STET_BUSY, "second");
    stet_detail(&b, "path", stet_value_string("/another/rather/long/path"));
    stet_error_move(&a, &b);
    assert_int_equal(b.status, STET_OK);
    assert_string_equal(a.message, "disk");
    stet_fail(&b, STET_BUSY, "third");
    stet_error_move(NULL, &b);
    assert_int_equal(b.status, STET_OK);
    stet_error_clear(&a);
}

static void names_go_both_ways(void **state) {
    (void)state;
    static const stet_status all[] = {STET_OK,    STET_FAILED,   STET_INVALID,  STET_NOT_FOUND,   STET_CONFLICT,
                                      STET_BUSY,  STET_CORRUPT,  STET_IO,       STET_UNSUPPORTED, STET_DENIED,
                                      STET_LIMIT, STET_INTERNAL, STET_CANCELLED};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        stet_status back;
        assert_true(stet_status_of_name(stet_status_name(all[i]), &back));
        assert_int_equal(back, all[i]);
    }
    stet_status untouched = STET_BUSY;
    assert_false(stet_status_of_name("canceled", &untouched));
    assert_int_equal(untouched, STET_BUSY);
}

static void a_message_that_is_not_utf8_is_mended_in_the_value(void **state) {
    (void)state;
    stet_error err = STET_ERROR_INIT;
    stet_fail(&err, STET_NOT_FOUND, "file \xFF%s", "\xC3\xA9\xE2\x82");
    stet_value v = stet_error_value(&err), message = stet_value_get(v, "message");
    assert_string_equal(stet_value_as_string(&message, NULL), "file \xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD");
    assert_string_equal(err.message, stet_value_as_string(&message, NULL)); /* who quotes it need not look */
    stet_value_release(v);
    stet_error_clear(&err);
    char long_one[sizeof err.message];
    memset(long_one, 0xFF, sizeof long_one - 1);
    long_one[sizeof long_one - 1] = 0;
    stet_fail(&err, STET_NOT_FOUND, "%s", long_one);
    stet_fail_in(&err, "%s", long_one);
    assert_true(stet_utf8_valid(err.message, strlen(err.message)));
    assert_true(strlen(err.message) > sizeof err.message - 8);
    stet_error_clear(&err);
}

static void texts_are_copied(void **state) {
    (void)state;
    char *a = stet_strdup("abc"), *b = stet_strndup("abcdef", 2), *c = stet_asprintf("%d-%s", 7, "x");
    assert_string_equal(a, "abc");
    assert_string_equal(b, "ab");
    assert_string_equal(c, "7-x");
    stet_free(a);
    stet_free(b);
    stet_free(c);
    void *p = stet_alloc(0);
    p = stet_realloc(p, 0);
    stet_free(p);
    unsigned char *zero = stet_alloc_zero(100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(zero[i], 0);
    stet_free(zero);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_failure_wins),
        cmocka_unit_test(prefix_hint_and_details),
        cmocka_unit_test(long_messages_are_cut_between_characters),
        cmocka_unit_test(a_message_may_quote_itself),
        cmocka_unit_test(errno_has_a_status),
        cmocka_unit_test(moving),
        cmocka_unit_test(names_go_both_ways),
        cmocka_unit_test(a_message_that_is_not_utf8_is_mended_in_the_value),
        cmocka_unit_test(texts_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
