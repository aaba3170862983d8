/* path.c - paths: the encoding's three promises (P1 to P3 of base/path.h), pointers, look-up, bytes from disk. */

#include "base/path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static stet_pathref of(stet_path *p, const char *pointer) {
    assert_int_equal(stet_path_of_pointer(p, pointer, strlen(pointer), NULL), STET_OK);
    return stet_path_ref(p);
}

/* Every list of up to three keys from a set of awkward ones. */
static const struct {
    const char *bytes;
    size_t len;
} keys[] = {{"", 0},   {"\0", 1}, {"\0\0", 2}, {"\1", 1}, {"\1\1", 2},
            {"\2", 1}, {"a", 1},  {"a\0", 2},  {"ab", 2}, {"\xf4\x8f\xbf\xbf", 4},
            {"~/", 2}};
enum { KEYS = sizeof keys / sizeof *keys, LISTS = 1 + KEYS + KEYS * KEYS + KEYS * KEYS * KEYS };

typedef struct list {
    size_t len, at[3];
    stet_path path;
} list;

static int compare_keys(size_t a, size_t b) {
    size_t len = keys[a].len < keys[b].len ? keys[a].len : keys[b].len;
    int order = memcmp(keys[a].bytes, keys[b].bytes, len);
    return order ? order : (keys[a].len > keys[b].len) - (keys[a].len < keys[b].len);
}

static int compare_lists(const list *a, const list *b) {
    for (size_t i = 0; i < a->len && i < b->len; i++) {
        int order = compare_keys(a->at[i], b->at[i]);
        if (order)
            return order;
    }
    return (a->len > b->len) - (a->len < b->len);
}

static bool list_is_prefix(const list *a, const list *b) {
    return a->len <= b->len && memcmp(a->at, b->at, a->len * sizeof *a->at) == 0;
}

static int sign(int n) {
    return (n > 0) - (n < 0);
}

static void encoding(void **state) {
    (void)state;
    list *lists = calloc(LISTS, sizeof *lists);
    size_t count = 0;
    for (size_t len = 0; len <= 3; len++) {
        size_t all = len == 0 ? 1 : len == 1 ? KEYS : len == 2 ? KEYS * KEYS : KEYS * KEYS * KEYS;
        for (size_t n = 0; n < all; n++) {
            list *l = &lists[count++];
            *l = (list){.len = len, .path = STET_PATH_INIT};
            for (size_t i = 0, rest = n; i < len; i++, rest /= KEYS) {
                l->at[i] = rest % KEYS;
                stet_path_push_n(&l->path, keys[l->at[i]].bytes, keys[l->at[i]].len);
            }
        }
    }
    assert_int_equal(count, LISTS);
    for (size_t i = 0; i < count; i++) {
        stet_pathref a = stet_path_ref(&lists[i].path);
        assert_true(stet_path_valid(a));
        assert_int_equal(stet_path_depth(a), lists[i].len);
        stet_buf scratch = STET_BUF(0);
        const char *key;
        size_t len, cursor = 0, n = 0;
        while (stet_path_next(a, &cursor, &scratch, &key, &len)) {
            assert_int_equal(len, keys[lists[i].at[n]].len);
            assert_memory_equal(key, keys[lists[i].at[n]].bytes, len);
            n++;
        }
        assert_int_equal(n, lists[i].len);
        stet_buf_release(&scratch);
    }
    /* All pairs of short lists, and a sample of the others. */
    char *above = malloc(64);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i % 7; j < count; j += i < 1 + KEYS ? 1 : 7) {
            const list *x = &lists[i], *y = &lists[j];
            stet_pathref a = stet_path_ref(&x->path), b = stet_path_ref(&y->path);
            assert_int_equal(sign(stet_path_compare(a, b)), sign(compare_lists(x, y))); /* P1 */
            bool prefix = list_is_prefix(x, y);
            assert_int_equal(stet_path_is_prefix(a, b), prefix); /* P2 */
            assert_int_equal(stet_path_is_child(a, b), prefix && y->len == x->len + 1);
            memcpy(above, a.bytes, a.len);
            above[a.len] = '\xff';
            bool in_range = stet_path_compare(a, b) <= 0 && stet_path_compare(b, (stet_pathref){above, a.len + 1}) < 0;
            assert_int_equal(in_range, prefix); /* P3 */
            stet_pathref common = stet_path_common(a, b);
            size_t same = 0;
            while (same < x->len && same < y->len && x->at[same] == y->at[same])
                same++;
            assert_int_equal(stet_path_depth(common), same);
            assert_true(stet_path_is_prefix(common, a) && stet_path_is_prefix(common, b));
        }
    }
    for (size_t i = 0; i < count; i++) {
        stet_pathref a = stet_path_ref(&lists[i].path), parent = stet_path_parent(a);
        assert_int_equal(stet_path_depth(parent), lists[i].len ? lists[i].len - 1 : 0);
        assert_true(lists[i].len ? stet_path_is_child(parent, a) : parent.len == 0);
        /* There and back by pointer and by value. */
        stet_buf text = STET_BUF(0);
        stet_path back = STET_PATH_INIT;
        stet_path_print(a, &text);
        assert_int_equal(stet_path_of_pointer(&back, stet_buf_cstr(&text), text.len, NULL), STET_OK);
        assert_int_equal(stet_path_compare(a, stet_path_ref(&back)), 0);
        stet_value list_value = stet_path_to_value(a);
        assert_int_equal(stet_value_count(list_value), lists[i].len);
        assert_int_equal(stet_path_of_value(&back, list_value, NULL), STET_OK);
        assert_int_equal(stet_path_compare(a, stet_path_ref(&back)), 0);
        stet_value_release(list_value);
        stet_buf_release(&text);
        stet_path_release(&back);
    }
    for (size_t i = 0; i < count; i++)
        stet_path_release(&lists[i].path);
    free(lists);
    free(above);
}

static void growing(void **state) {
    (void)state;
    stet_path p = STET_PATH_INIT;
    stet_path_pop(&p);
    assert_int_equal(stet_path_ref(&p).len, 0);
    stet_path_push(&p, "rows");
    stet_path_push_index(&p, 0);
    stet_path_push_index(&p, SIZE_MAX);
    stet_buf b = STET_BUF(0);
    stet_path_print(stet_path_ref(&p), &b);
    assert_string_equal(stet_buf_cstr(&b), "/rows/0/18446744073709551615");
    stet_path_pop(&p);
    stet_path_pop(&p);
    stet_buf_clear(&b);
    stet_path_print(stet_path_ref(&p), &b);
    assert_string_equal(stet_buf_cstr(&b), "/rows");
    stet_path_set(&p, STET_PATH_ROOT);
    assert_int_equal(stet_path_ref(&p).len, 0);
    /* What does not fit is not there at all, and the flag stays up. */
    char *large = malloc(STET_PATH_MAX_BYTES);
    memset(large, 'x', STET_PATH_MAX_BYTES);
    stet_path_push_n(&p, large, STET_PATH_MAX_BYTES - 3);
    assert_false(p.buf.overflow);
    size_t len = p.buf.len;
    stet_path_push(&p, "yyy");
    assert_true(p.buf.overflow);
    stet_path_push(&p, "");
    assert_true(p.buf.overflow);
    assert_int_equal(p.buf.len, len);
    assert_true(stet_path_valid(stet_path_ref(&p)));
    free(large);
    stet_buf_release(&b);
    stet_path_release(&p);
}

static void check_bad_pointer(const char *pointer, size_t len, stet_status status, const char *message) {
    stet_path p = STET_PATH_INIT;
    stet_path_push(&p, "kept");
    stet_error err = STET_ERROR_INIT;
    assert_int_equal(stet_path_of_pointer(&p, pointer, len, &err), status);
    if (!strstr(err.message, message))
        fail_msg("%s", err.message);
    assert_int_equal(stet_path_ref(&p).len, 5); /* untouched */
    stet_error_clear(&err);
    stet_path_release(&p);
}

static void pointers(void **state) {
    (void)state;
    stet_path p = STET_PATH_INIT;
    assert_int_equal(of(&p, "").len, 0);
    assert_int_equal(stet_path_depth(of(&p, "/")), 1);
    assert_int_equal(stet_path_depth(of(&p, "//")), 2);
    stet_pathref r = of(&p, "/~01/~10/a~0~1b");
    stet_value v = stet_path_to_value(r);
    stet_value key = stet_value_at(v, 0);
    assert_string_equal(stet_value_as_string(&key, NULL), "~1");
    key = stet_value_at(v, 1);
    assert_string_equal(stet_value_as_string(&key, NULL), "/0");
    key = stet_value_at(v, 2);
    assert_string_equal(stet_value_as_string(&key, NULL), "a~/b");
    stet_value_release(v);
    check_bad_pointer("a", 1, STET_INVALID, "begins with \"/\"");
    check_bad_pointer("/~", 2, STET_INVALID, "must be followed by 0");
    check_bad_pointer("/~2", 3, STET_INVALID, "must be followed by 0");
    check_bad_pointer("/a~/b", 5, STET_INVALID, "must be followed by 0");
    check_bad_pointer("/\xff", 2, STET_INVALID, "UTF-8");
    char many[2 * (STET_PATH_MAX_KEYS + 1) + 1];
    for (size_t i = 0; i <= STET_PATH_MAX_KEYS; i++)
        memcpy(many + 2 * i, "/a", 2);
    check_bad_pointer(many, 2 * (STET_PATH_MAX_KEYS + 1), STET_LIMIT, "keys");
    assert_int_equal(stet_path_of_pointer(&p, many, 2 * STET_PATH_MAX_KEYS, NULL), STET_OK);
    assert_true(stet_path_valid(stet_path_ref(&p)));
    char *large = malloc(STET_PATH_MAX_BYTES + 2);
    memset(large, 'x', STET_PATH_MAX_BYTES + 2);
    large[0] = '/';
    check_bad_pointer(large, STET_PATH_MAX_BYTES + 2, STET_LIMIT, "bytes");
    check_bad_pointer(large, STET_PATH_MAX_BYTES + 1, STET_LIMIT, "bytes");
    free(large);
    static const char *const bad_values[] = {"1", "\"a\"", "[-1]", "[1.5]", "[\"a\",null]", "{}"};
    for (size_t i = 0; i < sizeof bad_values / sizeof *bad_values; i++) {
        assert_int_equal(stet_json_parse(bad_values[i], strlen(bad_values[i]), &v, NULL), STET_OK);
        assert_int_equal(stet_path_of_value(&p, v, NULL), STET_INVALID);
        stet_value_release(v);
    }
    stet_path same = STET_PATH_INIT;
    assert_int_equal(stet_json_parse("[1,\"a\"]", 7, &v, NULL), STET_OK);
    assert_int_equal(stet_path_of_value(&p, v, NULL), STET_OK);
    assert_int_equal(stet_path_of_pointer(&same, "/1/a", 4, NULL), STET_OK);
    assert_int_equal(stet_path_compare(stet_path_ref(&p), stet_path_ref(&same)), 0);
    stet_path_release(&same);
    stet_value_release(v);
    stet_path_release(&p);
}

static void from_disk(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        bool valid;
    } cases[] = {{"", 0, true},        {"\0", 1, true},         {"a\0", 2, true},     {"a", 1, false},
                 {"\1\1\0", 3, true},  {"\1\2\0", 3, true},     {"\1\3\0", 3, false}, {"\1\0", 2, false},
                 {"\1\0\0", 3, false}, {"\1", 1, false},        {"\1\1", 2, false},   {"\1\1\1\0", 4, false},
                 {"\xff\0", 2, false}, {"\xc3\xa4\0", 3, true}, {"\xc3\0", 2, false}, {"\2\0\0", 3, true},
                 {"\1\1\2\0", 4, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stet_pathref p = {cases[i].bytes, cases[i].len};
        if (stet_path_valid(p) != cases[i].valid)
            fail_msg("case %zu", i);
    }
}

static void lookup(void **state) {
    (void)state;
    const char *text = "{\"a\":[10,{\"\":null,\"b\":\"x\"}],\"1\":true}";
    stet_value v, found;
    assert_int_equal(stet_json_parse(text, strlen(text), &v, NULL), STET_OK);
    stet_path p = STET_PATH_INIT;
    assert_true(stet_path_lookup(v, STET_PATH_ROOT, &found));
    assert_true(stet_value_equal(v, found));
    assert_true(stet_path_lookup(v, of(&p, "/a/0"), &found));
    assert_int_equal(stet_value_as_int(found), 10);
    assert_true(stet_path_lookup(v, of(&p, "/a/1/"), &found));
    assert_int_equal(stet_value_type(found), STET_TYPE_NULL);
    assert_true(stet_path_lookup(v, of(&p, "/1"), &found));
    static const char *const absent[] = {
        "/b", "/a/2", "/a/00", "/a/-1", "/a/+0", "/a/", "/a/0/0", "/a/1/b/0", "/a/18446744073709551616", "/a/ 0"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        found = stet_value_int(77);
        assert_false(stet_path_lookup(v, of(&p, absent[i]), &found));
        assert_int_equal(stet_value_as_int(found), 77);
    }
    size_t index;
    assert_true(stet_path_index("18446744073709551615", 20, &index) && index == SIZE_MAX);
    assert_false(stet_path_index("18446744073709551616", 20, &index));
    assert_false(stet_path_index("", 0, &index));
    stet_value_release(v);
    stet_path_release(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoding), cmocka_unit_test(growing),   cmocka_unit_test(pointers),
        cmocka_unit_test(lookup),   cmocka_unit_test(from_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
