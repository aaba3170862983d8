/* value.c - values: strings, numbers, order, sharing, depth, threads. */

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

static stet_value parse(const char *text) {
    stet_error err = STET_ERROR_INIT;
    stet_value v;
    if (stet_json_parse(text, strlen(text), &v, &err))
        fail_msg("%s: %s", text, err.message);
    return v;
}

static void assert_prints(stet_value v, const char *expected) {
    char *text = stet_json_print(v, STET_JSON_CANONICAL, NULL);
    assert_string_equal(text, expected);
    stet_free(text);
}

static void zero_bits_are_null(void **state) {
    (void)state;
    stet_value v;
    memset(&v, 0, sizeof v);
    assert_int_equal(stet_value_type(v), STET_TYPE_NULL);
    assert_true(stet_value_equal(v, stet_value_null()));
}

static void readers_of_the_wrong_type(void **state) {
    (void)state;
    stet_value all[] = {stet_value_null(),      stet_value_bool(true), stet_value_int(7), parse("1.5"),
                        stet_value_string("x"), parse("[1]"),          parse("{\"a\":1}")};
    for (size_t i = 0; i < 7; i++) {
        stet_type type = stet_value_type(all[i]);
        assert_int_equal(type, i);
        assert_int_equal(stet_value_as_bool(all[i]), type == STET_TYPE_BOOL);
        assert_int_equal(stet_value_as_int(all[i]), type == STET_TYPE_INT ? 7 : 0);
        assert_true(stet_value_as_double(all[i]) == (type == STET_TYPE_INT ? 7 : type == STET_TYPE_DOUBLE ? 1.5 : 0));
        size_t len = 99;
        assert_int_equal(stet_value_as_string(&all[i], &len) != NULL, type == STET_TYPE_STRING);
        assert_int_equal(len, type == STET_TYPE_STRING);
        assert_int_equal(stet_value_count(all[i]), type >= STET_TYPE_ARRAY);
        assert_int_equal(stet_value_type(stet_value_at(all[i], 0)) == STET_TYPE_INT, type >= STET_TYPE_ARRAY);
        assert_int_equal(stet_value_type(stet_value_at(all[i], 1)), STET_TYPE_NULL);
        assert_int_equal(stet_value_key_at(all[i], 0, &len) != NULL, type == STET_TYPE_OBJECT);
        assert_null(stet_value_key_at(all[i], 1, NULL));
        assert_int_equal(stet_value_find(all[i], "a", 1, NULL), type == STET_TYPE_OBJECT);
        stet_value_release(all[i]);
    }
}

/* Every length around the border between strings held inside and outside the value, and NULs inside. */
static void strings_of_every_length(void **state) {
    (void)state;
    char text[64];
    stet_value before = stet_value_string("");
    for (size_t len = 1; len < sizeof text; len++) {
        for (size_t i = 0; i < len; i++)
            text[i] = i % 5 == 4 ? 0 : 'a';
        stet_value v = stet_value_string_n(text, len);
        size_t n;
        const char *bytes = stet_value_as_string(&v, &n);
        assert_int_equal(n, len);
        assert_memory_equal(bytes, text, len);
        assert_int_equal(bytes[len], 0);
        assert_int_equal(stet_value_compare(before, v), -1);
        assert_int_equal(stet_value_compare(v, before), 1);
        stet_value same = stet_value_string_n(text, len);
        assert_true(stet_value_equal(v, same));
        stet_value_release(same);
        stet_value_release(before);
        before = v;
    }
    stet_value_release(before);
}

static void strings_in_containers_live_as_long_as_those(void **state) {
    (void)state;
    for (size_t len = 0; len < 40; len++) { /* short ones lie in the value, long ones in a block */
        char text[40];
        memset(text, 'x', sizeof text);
        text[len] = 0;
        stet_value o = stet_value_object(), a = stet_value_array();
        stet_value_put(&o, "k", stet_value_string(text));
        stet_value_put(&o, "n", stet_value_int(1));
        stet_value_push(&a, stet_value_null());
        stet_value_push(&a, stet_value_string(text));
        size_t n = 99;
        const char *in_object = stet_value_get_string(o, "k", &n);
        assert_int_equal(n, len);
        const char *in_array = stet_value_at_string(a, 1, NULL), *by_place = stet_value_at_string(o, 0, NULL);
        char *copy = stet_value_copy_string(stet_value_get(o, "k"), &n);
        assert_int_equal(n, len);
        stet_value other = stet_value_retain(o); /* whoever changes a shared container changes a copy */
        stet_value_put(&other, "k", stet_value_int(0));
        assert_string_equal(in_object, text);
        assert_string_equal(by_place, text);
        assert_string_equal(in_array, text);
        stet_value_release(other);
        assert_null(stet_value_get_string(o, "n", &n));
        assert_int_equal(n, 0);
        n = 99;
        assert_null(stet_value_get_string(o, "absent", &n));
        assert_int_equal(n, 0);
        assert_null(stet_value_get_string(a, "k", NULL));
        assert_null(stet_value_at_string(a, 0, NULL));
        assert_null(stet_value_at_string(a, 2, NULL));
        assert_null(stet_value_copy_string(a, NULL));
        stet_value_release(o);
        stet_value_release(a);
        assert_string_equal(copy, text);
        stet_free(copy);
    }
}

static void no_bytes_need_no_pointer(void **state) {
    (void)state;
    stet_value o = parse("{\"\":1,\"a key of more than fourteen\":2}"), v;
    assert_true(stet_value_find(o, NULL, 0, &v));
    assert_int_equal(stet_value_as_int(v), 1);
    assert_true(stet_value_remove(&o, NULL, 0));
    assert_false(stet_value_find(o, NULL, 0, &v));
    stet_value_put_n(&o, NULL, 0, stet_value_string_n(NULL, 0));
    assert_prints(o, "{\"\":\"\",\"a key of more than fourteen\":2}");
    stet_value_release(o);
    assert_int_equal(stet_value_string_checked(NULL, 0, &v, NULL), STET_OK);
    assert_true(stet_value_equal(v, stet_value_string("")));
}

static void strings_order_by_their_bytes(void **state) {
    (void)state;
    static const char *const sorted[] = {"",
                                         "\x01",
                                         "A",
                                         "a",
                                         "a\x01",
                                         "aaaaaaa",
                                         "aaaaaaaa",
                                         "aaaaaaaaa",
                                         "aaaaaaaaaaaaaa",
                                         "aaaaaaaaaaaaaaa",
                                         "aaaaaaaaaaaaab",
                                         "aaaaaaab",
                                         "b",
                                         "bbbbbbbbbbbbbbbbbbbb",
                                         "bbbbbbbbbbbbbbbbbbbbb",
                                         "\xC3\xA9",
                                         "\xE2\x82\xAC",
                                         "\xEF\xBF\xBD",
                                         "\xF0\x9F\x98\x80"};
    size_t n = sizeof sorted / sizeof *sorted;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            stet_value a = stet_value_string(sorted[i]), b = stet_value_string(sorted[k]);
            assert_int_equal(stet_value_compare(a, b), (i > k) - (i < k));
            assert_int_equal(stet_value_equal(a, b), i == k);
            stet_value_release(a);
            stet_value_release(b);
        }
}

static void invalid_utf8_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"\x80",
                                      "\xC0\x80",
                                      "\xC1\xBF",
                                      "\xC3",
                                      "\xE0\x9F\xBF",
                                      "\xED\xA0\x80",
                                      "\xF0\x8F\xBF\xBF",
                                      "\xF4\x90\x80\x80",
                                      "\xF5\x80\x80\x80",
                                      "\xFF",
                                      "\xE2\x82",
                                      "\xF0\x9F\x98"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[64];
        int n = snprintf(text, sizeof text, "ok then%s", bad[i]);
        stet_error err = STET_ERROR_INIT;
        stet_value v;
        assert_int_equal(stet_value_string_checked(text, (size_t)n, &v, &err), STET_INVALID);
        assert_non_null(strstr(err.message, "offset 7"));
        stet_error_clear(&err);
    }
    stet_value v;
    assert_int_equal(stet_value_string_checked("\xC3\xA9\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF", 12, &v, NULL),
                     STET_OK);
    stet_value_release(v);
}

static void doubles_are_canonical(void **state) {
    (void)state;
    static const struct {
        double d;
        stet_type type;
    } cases[] = {{0, STET_TYPE_INT},
                 {-0.0, STET_TYPE_INT},
                 {3, STET_TYPE_INT},
                 {-7, STET_TYPE_INT},
                 {0.5, STET_TYPE_DOUBLE},
                 {9007199254740992.0, STET_TYPE_INT},
                 {-9007199254740992.0, STET_TYPE_INT},
                 {9007199254740994.0, STET_TYPE_DOUBLE},
                 {1e300, STET_TYPE_DOUBLE},
                 {5e-324, STET_TYPE_DOUBLE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stet_value v;
        assert_int_equal(stet_value_double(cases[i].d, &v, NULL), STET_OK);
        assert_int_equal(stet_value_type(v), cases[i].type);
        assert_true(stet_value_as_double(v) == cases[i].d);
        assert_false(signbit(stet_value_as_double(v)) && cases[i].d == 0);
    }
    double refused[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        stet_error err = STET_ERROR_INIT;
        stet_value v = stet_value_int(5);
        assert_int_equal(stet_value_double(refused[i], &v, &err), STET_INVALID);
        assert_int_equal(stet_value_as_int(v), 5);
        stet_error_clear(&err);
    }
}

static void one_total_order(void **state) {
    (void)state;
    static const char *const sorted[] = {"null",
                                         "false",
                                         "true",
                                         "-1e300",
                                         "-9223372036854775808",
                                         "-9.3e15",
                                         "-9007199254740993",
                                         "-1.5",
                                         "-1",
                                         "0",
                                         "5e-324",
                                         "0.5",
                                         "1",
                                         "1.5",
                                         "9007199254740992",
                                         "9007199254740993",
                                         "9007199254740994",
                                         "9.007199254740994e15",
                                         "9007199254740995",
                                         "9223372036854775807",
                                         "9223372036854775808e0",
                                         "1e300",
                                         "\"\"",
                                         "\"a\"",
                                         "\"b\"",
                                         "[]",
                                         "[null]",
                                         "[0]",
                                         "[0,0]",
                                         "[1]",
                                         "[[]]",
                                         "[[],0]",
                                         "[{}]",
                                         "{}",
                                         "{\"a\":1}",
                                         "{\"a\":1,\"b\":0}",
                                         "{\"a\":2}",
                                         "{\"b\":0}"};
    size_t n = sizeof sorted / sizeof *sorted;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            stet_value a = parse(sorted[i]), b = parse(sorted[k]);
            if (stet_value_compare(a, b) != (i > k) - (i < k))
                fail_msg("%s against %s: %d", sorted[i], sorted[k], stet_value_compare(a, b));
            assert_int_equal(stet_value_equal(a, b), i == k);
            stet_value_release(a);
            stet_value_release(b);
        }
}

static void who_shares_sees_no_change(void **state) {
    (void)state;
    stet_value a = parse("[1,[2,3],\"a long string, longer than fourteen bytes\"]");
    stet_value b = stet_value_retain(a);
    stet_value_push(&a, stet_value_int(4));
    stet_value_put_at(&a, 0, stet_value_string("another string of more than fourteen"));
    stet_value_remove_at(&a, 1);
    stet_value_insert_at(&a, 1, stet_value_bool(true));
    assert_prints(a, "[\"another string of more than fourteen\",true,\"a long string, longer than fourteen bytes\",4]");
    assert_prints(b, "[1,[2,3],\"a long string, longer than fourteen bytes\"]");
    stet_value_release(a);
    stet_value o = parse("{\"k\":1,\"a key longer than fourteen bytes\":[2]}"), p = stet_value_retain(o);
    stet_value_put(&o, "k", stet_value_int(2));
    stet_value_put(&o, "b", stet_value_int(3));
    assert_true(stet_value_remove(&o, "a key longer than fourteen bytes", 32));
    assert_false(stet_value_remove(&o, "a key longer than fourteen bytes", 32));
    assert_prints(o, "{\"b\":3,\"k\":2}");
    assert_prints(p, "{\"a key longer than fourteen bytes\":[2],\"k\":1}");
    stet_value_release(o);
    stet_value_release(p);
    /* A value put into itself is put as it was. */
    stet_value_push(&b, stet_value_retain(b));
    assert_prints(b, "[1,[2,3],\"a long string, longer than fourteen bytes\",[1,[2,3],\"a long string, longer than "
                     "fourteen bytes\"]]");
    stet_value_release(b);
}

static void emptied_containers_equal_empty_ones(void **state) {
    (void)state;
    stet_value a = parse("[1]"), o = parse("{\"x\":1}");
    stet_value_remove_at(&a, 0);
    stet_value_remove(&o, "x", 1);
    assert_true(stet_value_equal(a, stet_value_array()));
    assert_true(stet_value_equal(o, stet_value_object()));
    assert_int_equal(stet_value_count(a), 0);
    stet_value_push(&a, stet_value_int(1));
    stet_value_put(&o, "y", stet_value_int(2));
    assert_prints(a, "[1]");
    assert_prints(o, "{\"y\":2}");
    stet_value_release(a);
    stet_value_release(o);
}

static void a_key_may_be_the_objects_own(void **state) {
    (void)state;
    stet_value o = stet_value_object();
    stet_value_put(&o, "m", stet_value_int(0));
    for (int i = 0; i < 100; i++) {
        size_t len;
        const char *key = stet_value_key_at(o, stet_value_count(o) / 2, &len);
        char name[256];
        memcpy(name, key, len);
        stet_value_put_n(&o, key, len, stet_value_int(i));
        assert_int_equal(stet_value_as_int(stet_value_get(o, stet_value_key_at(o, stet_value_count(o) / 2, NULL))), i);
        snprintf(name + len, sizeof name - len, "%d", i % 10);
        stet_value_put(&o, len < 40 ? name : "reset", stet_value_int(i));
    }
    stet_value_release(o);
}

static void objects_built_in_any_order_are_equal(void **state) {
    (void)state;
    enum { N = 3000 };
    stet_value up = stet_value_object(), down = stet_value_object(), mixed = stet_value_object();
    char key[40];
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof key, "%05d%s", i, i % 3 ? "" : " with a tail beyond fourteen");
        stet_value_put(&up, key, stet_value_int(i));
        int j = N - 1 - i;
        snprintf(key, sizeof key, "%05d%s", j, j % 3 ? "" : " with a tail beyond fourteen");
        stet_value_put(&down, key, stet_value_int(j));
        j = (int)((long)i * 1009 % N);
        snprintf(key, sizeof key, "%05d%s", j, j % 3 ? "" : " with a tail beyond fourteen");
        stet_value_put(&mixed, key, stet_value_int(j));
    }
    assert_int_equal(stet_value_count(mixed), N);
    assert_true(stet_value_equal(up, down));
    assert_int_equal(stet_value_compare(up, mixed), 0);
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof key, "%05d%s", i, i % 3 ? "" : " with a tail beyond fourteen");
        assert_int_equal(stet_value_as_int(stet_value_get(mixed, key)), i);
        assert_string_equal(stet_value_key_at(mixed, (size_t)i, NULL), key);
    }
    assert_int_equal(stet_value_type(stet_value_get(mixed, "absent")), STET_TYPE_NULL);
    for (int i = 0; i < N; i += 2) {
        snprintf(key, sizeof key, "%05d%s", i, i % 3 ? "" : " with a tail beyond fourteen");
        assert_true(stet_value_remove(&mixed, key, strlen(key)));
    }
    assert_int_equal(stet_value_count(mixed), N / 2);
    assert_false(stet_value_equal(up, mixed));
    stet_value_release(up);
    stet_value_release(down);
    stet_value_release(mixed);
}

/* A million levels: release, comparison and printing must not use the C stack for them. */
static void depth_costs_no_stack(void **state) {
    (void)state;
    stet_value a = stet_value_array(), b = stet_value_array();
    for (int i = 0; i < 1000000; i++) {
        stet_value outer = i % 2 ? stet_value_array() : stet_value_object();
        stet_value other = i % 2 ? stet_value_array() : stet_value_object();
        if (i % 2) {
            stet_value_push(&outer, a);
            stet_value_push(&other, b);
        } else {
            stet_value_put(&outer, "k", a);
            stet_value_put(&other, "k", b);
        }
        a = outer;
        b = other;
    }
    assert_true(stet_value_equal(a, b));
    assert_int_equal(stet_value_compare(a, b), 0);
    size_t len;
    char *text = stet_json_print(a, STET_JSON_CANONICAL, &len);
    assert_int_equal(len, 2 + 500000 * 2 + 500000 * 6);
    stet_free(text);
    stet_value_release(a);
    stet_value_release(b);
}

static void pushing_is_cheap(void **state) {
    (void)state;
    stet_value a = stet_value_array();
    for (int i = 0; i < 1000000; i++)
        stet_value_push(&a, stet_value_int(i));
    assert_int_equal(stet_value_count(a), 1000000);
    for (int i = 0; i < 1000000; i += 1001)
        assert_int_equal(stet_value_as_int(stet_value_at(a, (size_t)i)), i);
    stet_value_release(a);
}

/* What two values share is not walked: a binary tree of depth 60, whose leaves nobody could visit one by one. */
static void shared_parts_are_not_compared(void **state) {
    (void)state;
    stet_value t = stet_value_int(1);
    for (int i = 0; i < 60; i++) {
        stet_value pair = stet_value_array();
        stet_value_push(&pair, stet_value_retain(t));
        stet_value_push(&pair, t);
        t = pair;
    }
    stet_value u = stet_value_retain(t);
    stet_value_push(&u, stet_value_int(1));
    assert_false(stet_value_equal(t, u));
    assert_int_equal(stet_value_compare(t, u), -1);
    stet_value_remove_at(&u, 2);
    assert_true(stet_value_equal(t, u));
    stet_value_release(u);
    stet_value_release(t);
}

static void *share(void *of) {
    stet_value v = *(stet_value *)of;
    for (int i = 0; i < 100000; i++) {
        stet_value mine = stet_value_retain(v);
        stet_value part = stet_value_retain(stet_value_at(mine, 0));
        stet_value_release(mine);
        if (i % 1000 == 0) {
            mine = stet_value_retain(v);
            stet_value_push(&mine, stet_value_retain(part));
            assert(stet_value_count(mine) == 3);
            stet_value_release(mine);
        }
        stet_value_release(part);
    }
    return NULL;
}

static void threads_share(void **state) {
    (void)state;
    stet_value v = parse("[[\"a string of more than fourteen\"],{\"k\":[]}]");
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, share, &v), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_prints(v, "[[\"a string of more than fourteen\"],{\"k\":[]}]");
    stet_value_release(v);
}

static void formatted_strings(void **state) {
    (void)state;
    stet_value v = stet_value_stringf("%d of %s", 3, "many, many more");
    assert_string_equal(stet_value_as_string(&v, NULL), "3 of many, many more");
    stet_value_release(v);
    v = stet_value_stringf("%s", "\xFF");
    assert_string_equal(stet_value_as_string(&v, NULL), "\xEF\xBF\xBD");
    stet_value_release(v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_bits_are_null),
        cmocka_unit_test(readers_of_the_wrong_type),
        cmocka_unit_test(strings_of_every_length),
        cmocka_unit_test(strings_in_containers_live_as_long_as_those),
        cmocka_unit_test(no_bytes_need_no_pointer),
        cmocka_unit_test(strings_order_by_their_bytes),
        cmocka_unit_test(invalid_utf8_is_refused),
        cmocka_unit_test(doubles_are_canonical),
        cmocka_unit_test(one_total_order),
        cmocka_unit_test(who_shares_sees_no_change),
        cmocka_unit_test(emptied_containers_equal_empty_ones),
        cmocka_unit_test(a_key_may_be_the_objects_own),
        cmocka_unit_test(objects_built_in_any_order_are_equal),
        cmocka_unit_test(depth_costs_no_stack),
        cmocka_unit_test(pushing_is_cheap),
        cmocka_unit_test(shared_parts_are_not_compared),
        cmocka_unit_test(threads_share),
        cmocka_unit_test(formatted_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
