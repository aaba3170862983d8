/* change.c - the overlap rule and changed leaves, case by case; property/change.c has the random ones. */

#include "base/change.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static stet_value parse(const char *text) {
    stet_value v;
    assert_int_equal(stet_json_parse(text, strlen(text), &v, NULL), STET_OK);
    return v;
}

/* The leaves as "V:/a K:/b", a NULL text being a document that is absent. */
static void check(const char *before, const char *after, size_t max, const char *expected) {
    stet_value a = before ? parse(before) : stet_value_null(), b = after ? parse(after) : stet_value_null();
    stet_arena arena = STET_ARENA_INIT;
    stet_changes c = {0};
    stet_changes_between(before ? &a : NULL, after ? &b : NULL, max, &arena, &c);
    stet_value_release(a);
    stet_value_release(b); /* the leaves stand on their own */
    stet_buf text = STET_BUF(0);
    for (size_t i = 0; i < c.len; i++) {
        stet_buf_printf(&text, "%s%s", i ? " " : "", c.at[i].kind == STET_KEYSET ? "K:" : "V:");
        stet_path_print(c.at[i].path, &text);
    }
    assert_string_equal(stet_buf_cstr(&text), expected);
    stet_buf_release(&text);
    stet_changes_release(&c);
    stet_arena_release(&arena);
}

static void leaves(void **state) {
    (void)state;
    check(NULL, NULL, 0, "");
    check(NULL, "1", 0, "K:");
    check("{\"a\":1}", NULL, 0, "K:");
    check(NULL, "null", 0, "K:");
    check("1", "1.0", 0, "");
    check("1", "2", 0, "V:");
    check("null", "{}", 0, "V:");
    check("[]", "{}", 0, "V:");
    check("{}", "{}", 0, "");
    check("{\"a\":1}", "{\"b\":1}", 0, "K:/a K:/b");
    check("{\"a\":null}", "{}", 0, "K:/a");
    check("{\"a\":{\"b\":1,\"c\":2}}", "{\"a\":{\"b\":1,\"c\":3}}", 0, "V:/a/c");
    check("{\"a\":{\"b\":1}}", "{\"a\":[1]}", 0, "V:/a");
    check("[1,2,3]", "[1,2]", 0, "K:/2");
    check("[1,2,3]", "[2,3]", 0, "V:/0 V:/1 K:/2");
    check("[]", "[0,1,2,3,4,5,6,7,8,9,10]", 0, "K:/0 K:/1 K:/10 K:/2 K:/3 K:/4 K:/5 K:/6 K:/7 K:/8 K:/9");
    check("{\"a/b\":1,\"~\":[{}]}", "{\"a/b\":2,\"~\":[{\"\":0}]}", 0, "V:/a~1b K:/~0/0/");
}

#define LINK(id) "{\"/\":{\"link@1\":{\"id\":\"" id "\"}}}"

/* A place that is a link before or after changes as a whole. */
static void links(void **state) {
    (void)state;
    check("{\"e\":{\"x\":1}}", "{\"e\":" LINK("d") "}", 0, "V:/e");
    check("{\"e\":" LINK("d") "}", "{\"e\":{\"x\":1}}", 0, "V:/e");
    check("{\"e\":" LINK("d") "}", "{\"e\":" LINK("f") "}", 0, "V:/e");
    check("{\"e\":" LINK("d") "}", "{\"e\":" LINK("d") ",\"f\":1}", 0, "K:/f");
    check("{\"e\":" LINK("d") "}", "{\"e\":5}", 0, "V:/e");
    check("{\"e\":[1]}", "{\"e\":" LINK("d") "}", 0, "V:/e");
    check("[" LINK("d") ",2]", "[" LINK("f") ",2]", 0, "V:/0");
    check("[1]", "[1," LINK("d") "]", 0, "K:/1");
    check("{\"x\":1}", LINK("d"), 0, "V:");
    check("{\"e\":{\"x\":1}}", "{\"e\":{\"/\":{\"file@1\":{\"path\":\"a\"}}}}", 0, "V:/e");
    check("{\"/\":1,\"a\":1}", "{\"/\":2,\"a\":1}", 0, "V:/~1"); /* an ordinary object */
}

static void bounded(void **state) {
    (void)state;
    check("{\"a\":{\"b\":1,\"c\":2}}", "{\"a\":{\"b\":2,\"c\":3}}", 2, "V:/a/b V:/a/c");
    check("{\"a\":{\"b\":1,\"c\":2}}", "{\"a\":{\"b\":2,\"c\":3}}", 1, "V:/a");
    check("{\"a\":{\"b\":1,\"c\":2}}", "{\"a\":{}}", 1, "V:/a");
    check("{\"a\":{\"b\":1,\"c\":2},\"d\":1}", "{\"a\":{},\"d\":2}", 1, "V:");
    check("[[1,2,3],0]", "[[2,3,4],0]", 2, "V:/0");
    check("[[1,2,3],0]", "[[2,3,4],1]", 2, "V:");
}

static void adding_to_what_is_there(void **state) {
    (void)state;
    stet_arena arena = STET_ARENA_INIT;
    stet_changes c = {0};
    static const char *const steps[] = {"{\"b\":1,\"c\":1}", "{\"b\":2,\"c\":1}", "{\"a\":0,\"b\":2,\"c\":1}",
                                        "{\"a\":0,\"c\":1}"};
    for (size_t i = 0; i + 1 < sizeof steps / sizeof *steps; i++) {
        stet_value a = parse(steps[i]), b = parse(steps[i + 1]);
        stet_changes_between(&a, &b, 0, &arena, &c);
        stet_value_release(a);
        stet_value_release(b);
    }
    assert_int_equal(c.len, 2); /* /a appeared; /b changed, then went: the wider of the two */
    assert_memory_equal(c.at[0].path.bytes, "a", 2);
    assert_memory_equal(c.at[1].path.bytes, "b", 2);
    assert_int_equal(c.at[1].kind, STET_KEYSET);
    stet_changes_release(&c);
    stet_arena_release(&arena);
}

static bool touches(const char *change, stet_change_kind change_kind, const char *read, stet_read_kind read_kind) {
    stet_path w = STET_PATH_INIT, r = STET_PATH_INIT;
    assert_int_equal(stet_path_of_pointer(&w, change, strlen(change), NULL), STET_OK);
    assert_int_equal(stet_path_of_pointer(&r, read, strlen(read), NULL), STET_OK);
    bool result = stet_touches(stet_path_ref(&w), change_kind, stet_path_ref(&r), read_kind);
    stet_path_release(&w);
    stet_path_release(&r);
    return result;
}

static void rule(void **state) {
    (void)state;
    static const struct {
        const char *change, *read;
        bool recursive, shallow_value, shallow_keyset;
    } cases[] = {
        {"", "", true, true, true},
        {"", "/a", true, true, true},
        {"/a", "", true, false, true},
        {"/a/b", "", true, false, false},
        {"/a", "/a", true, true, true},
        {"/a", "/a/b/c", true, true, true},
        {"/a/b", "/a", true, false, true},
        {"/a/b/c", "/a", true, false, false},
        {"/a", "/b", false, false, false},
        {"/a", "/ab", false, false, false},
        {"/ab", "/a", false, false, false},
        {"/a/b", "/a/c", false, false, false},
        {"/a/1", "/a/10", false, false, false},
        {"/", "", true, false, true},
        {"//", "", true, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *w = cases[i].change, *r = cases[i].read;
        if (touches(w, STET_VALUE, r, STET_RECURSIVE) != cases[i].recursive ||
            touches(w, STET_KEYSET, r, STET_RECURSIVE) != cases[i].recursive ||
            touches(w, STET_VALUE, r, STET_SHALLOW) != cases[i].shallow_value ||
            touches(w, STET_KEYSET, r, STET_SHALLOW) != cases[i].shallow_keyset)
            fail_msg("%s and %s", w, r);
    }
}

/* A value deeper, and one with longer keys, than paths can name: the leaf is the last container that has a path. */
static void beyond_paths(void **state) {
    (void)state;
    enum { DEPTH = 2000 };
    stet_value a = stet_value_int(1), b = stet_value_int(2);
    for (int i = 0; i < DEPTH; i++) {
        stet_value outer = stet_value_array();
        stet_value_push(&outer, a);
        a = outer;
        outer = stet_value_array();
        stet_value_push(&outer, b);
        b = outer;
    }
    stet_arena arena = STET_ARENA_INIT;
    stet_changes c = {0};
    stet_changes_between(&a, &b, 0, &arena, &c);
    assert_int_equal(c.len, 1);
    assert_int_equal(c.at[0].kind, STET_VALUE);
    assert_int_equal(stet_path_depth(c.at[0].path), STET_PATH_MAX_KEYS);
    assert_true(stet_path_valid(c.at[0].path));
    stet_value_release(a);
    stet_value_release(b);

    char *key = malloc(STET_PATH_MAX_BYTES);
    memset(key, 'k', STET_PATH_MAX_BYTES);
    stet_value inner = stet_value_object();
    stet_value_put_n(&inner, key, STET_PATH_MAX_BYTES, stet_value_int(1));
    stet_value_put(&inner, "short", stet_value_int(1));
    a = stet_value_object();
    stet_value_put(&a, "x", inner);
    b = stet_value_object();
    stet_value_put(&b, "x", stet_value_object());
    stet_vec_clear(&c);
    stet_changes_between(&a, &b, 0, &arena, &c);
    assert_int_equal(c.len, 1);
    assert_int_equal(c.at[0].kind, STET_VALUE);
    assert_memory_equal(c.at[0].path.bytes, "x", 2);
    /* The long key being the same on both sides is no reason to be wider. */
    stet_value same = stet_value_object(), other = stet_value_object();
    stet_value_put_n(&same, key, STET_PATH_MAX_BYTES, stet_value_string("a string that is not held inline"));
    stet_value_put(&same, "z", stet_value_int(1));
    stet_value_put_n(&other, key, STET_PATH_MAX_BYTES, stet_value_string("a string that is not held inline"));
    stet_value_put(&other, "z", stet_value_int(2));
    stet_vec_clear(&c);
    stet_changes_between(&same, &other, 0, &arena, &c);
    assert_int_equal(c.len, 1);
    assert_memory_equal(c.at[0].path.bytes, "z", 2);
    stet_value_release(same);
    stet_value_release(other);
    stet_value_release(a);
    stet_value_release(b);
    free(key);
    stet_changes_release(&c);
    stet_arena_release(&arena);
}

/* What is shared is not walked: a thousand comparisons of a large value with its edited copy. */
static void shared_structure_costs_nothing(void **state) {
    (void)state;
    stet_value rows = stet_value_array(), doc = stet_value_object();
    for (int i = 0; i < 100000; i++)
        stet_value_push(&rows, stet_value_stringf("a row that is too long to be held inline: %d", i));
    stet_value_put(&doc, "rows", rows);
    stet_value_put(&doc, "n", stet_value_int(0));
    stet_arena arena = STET_ARENA_INIT;
    stet_changes c = {0};
    for (int i = 1; i <= 20000; i++) { /* walking them would take minutes */
        stet_value next = stet_value_retain(doc);
        stet_value_put(&next, "n", stet_value_int(i));
        stet_vec_clear(&c);
        stet_changes_between(&doc, &next, 0, &arena, &c);
        assert_int_equal(c.len, 1);
        stet_value_release(doc);
        doc = next;
    }
    stet_value_release(doc);
    stet_changes_release(&c);
    stet_arena_release(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves),
        cmocka_unit_test(links),
        cmocka_unit_test(bounded),
        cmocka_unit_test(adding_to_what_is_there),
        cmocka_unit_test(rule),
        cmocka_unit_test(beyond_paths),
        cmocka_unit_test(shared_structure_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
