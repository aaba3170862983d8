/* buf.c - byte buffers: any length, the maximum, taking the bytes over. */

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void bytes_come_out_as_they_went_in(void **state) {
    (void)state;
    stet_buf b = STET_BUF(0);
    assert_string_equal(stet_buf_cstr(&b), "");
    stet_buf_str(&b, "hello");
    stet_buf_char(&b, ' ');
    stet_buf_printf(&b, "%d %s", 42, "x");
    stet_buf_add(&b, "\0z", 2);
    stet_buf_add(&b, NULL, 0);
    assert_int_equal(b.len, 12);
    assert_memory_equal(b.data, "hello 42 x\0z", 13);
    stet_buf_clear(&b);
    assert_int_equal(b.len, 0);
    assert_string_equal(stet_buf_cstr(&b), "");
    stet_buf_release(&b);
    assert_null(b.data);
}

static void printf_of_any_length(void **state) {
    (void)state;
    char text[2000];
    for (size_t n = 0; n < sizeof text; n += 7) {
        memset(text, 'a', n);
        text[n] = 0;
        stet_buf b = STET_BUF(0);
        stet_buf_str(&b, "<");
        stet_buf_printf(&b, "%s>", text);
        stet_buf_printf(&b, "%s", text);
        assert_int_equal(b.len, 2 * n + 2);
        assert_int_equal(strlen(b.data), b.len);
        stet_buf_release(&b);
    }
}

/* At the maximum nothing is cut in the middle: a piece is added whole, or the buffer is in overflow and stays as it is.
 */
static void the_maximum_holds(void **state) {
    (void)state;
    for (size_t max = 1; max < 200; max++) {
        stet_buf b = STET_BUF(max);
        size_t whole = 0;
        while (!b.overflow) {
            assert_true(b.len <= max);
            whole = b.len;
            stet_buf_str(&b, "abc");
        }
        assert_int_equal(whole, max / 3 * 3);
        assert_int_equal(b.len, whole);
        stet_buf_char(&b, 'x');
        stet_buf_printf(&b, "%d", 1);
        assert_null(stet_buf_reserve(&b, 0));
        assert_int_equal(b.len, whole);
        assert_int_equal(strlen(stet_buf_cstr(&b)), whole);
        stet_buf_clear(&b);
        assert_false(b.overflow);
        char *room = stet_buf_reserve(&b, max);
        assert_non_null(room);
        memset(room, 'y', max);
        b.len += max;
        assert_int_equal(strlen(b.data), max);
        stet_buf_printf(&b, "%s", "");
        assert_false(b.overflow);
        stet_buf_printf(&b, "z");
        assert_true(b.overflow);
        assert_int_equal(strlen(b.data), max);
        assert_null(stet_buf_reserve(&b, SIZE_MAX));
        stet_buf_release(&b);
    }
}

static void taking_empties(void **state) {
    (void)state;
    stet_buf b = STET_BUF(100);
    size_t len = 9;
    char *empty = stet_buf_take(&b, &len);
    assert_string_equal(empty, "");
    assert_int_equal(len, 0);
    stet_free(empty);
    char *room = stet_buf_reserve(&b, 10);
    memcpy(room, "abcXXXXXXX", 10);
    b.len += 3; /* fewer than reserved */
    char *taken = stet_buf_take(&b, &len);
    assert_string_equal(taken, "abc");
    assert_int_equal(len, 3);
    assert_null(b.data);
    stet_free(taken);
    stet_buf_str(&b, "again");
    assert_string_equal(stet_buf_cstr(&b), "again");
    stet_buf_release(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_out_as_they_went_in),
        cmocka_unit_test(printf_of_any_length),
        cmocka_unit_test(the_maximum_holds),
        cmocka_unit_test(taking_empties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
