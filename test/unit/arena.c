/* arena.c - arenas and vectors. */

#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/vec.h"

static void pieces_are_aligned_and_apart(void **state) {
    (void)state;
    stet_arena a = STET_ARENA_INIT;
    STET_VEC(unsigned char *) pieces = {0};
    STET_VEC(size_t) sizes = {0};
    size_t total = 0;
    uint32_t seed = 1;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3000; i++) {
            seed = seed * 1664525 + 1013904223;
            size_t size = i % 500 == 499 ? 3000000 : i % 50 == 49 ? seed >> 16 : seed >> 26;
            unsigned char *p = stet_arena_alloc(&a, size);
            assert_int_equal((uintptr_t)p % 16, 0);
            memset(p, i & 0xFF, size);
            *stet_vec_add(&pieces) = p;
            *stet_vec_add(&sizes) = size;
            total += size;
        }
        assert_int_equal(a.total, total);
        for (size_t i = 0; i < pieces.len; i++)
            for (size_t k = 0; k < sizes.at[i]; k++)
                if (pieces.at[i][k] != (i & 0xFF))
                    fail_msg("piece %zu was overwritten at %zu", i, k);
        stet_arena_clear(&a);
        assert_int_equal(a.total, 0);
        total = 0;
        stet_vec_clear(&pieces);
        stet_vec_clear(&sizes);
    }
    stet_arena_release(&a);
    assert_null(a.head);
    stet_vec_release(&pieces);
    stet_vec_release(&sizes);
}

static void copies(void **state) {
    (void)state;
    stet_arena a = STET_ARENA_INIT;
    assert_string_equal(stet_arena_strdup(&a, "text"), "text");
    assert_string_equal(stet_arena_strndup(&a, "text", 2), "te");
    assert_string_equal(stet_arena_strndup(&a, NULL, 0), "");
    assert_memory_equal(stet_arena_dup(&a, "a\0b", 3), "a\0b", 3);
    unsigned char *zero = stet_arena_zero(&a, 5000);
    for (int i = 0; i < 5000; i++)
        assert_int_equal(zero[i], 0);
    stet_arena_release(&a);
    stet_arena_clear(&a);
    stet_arena_release(&a);
}

static void a_rewound_arena_is_filled_again_in_its_blocks(void **state) {
    (void)state;
    enum { PIECES = 3000, SIZE = 500 };
    static char *was[PIECES];
    stet_arena a = STET_ARENA_INIT;
    for (int i = 0; i < PIECES; i++)
        was[i] = stet_arena_alloc(&a, SIZE);
    stet_arena_rewind(&a);
    assert_int_equal(a.total, 0);
    for (int i = 0; i < PIECES; i++) {
        char *p = stet_arena_alloc(&a, SIZE);
        assert_ptr_equal(p, was[i]);
        memset(p, i & 0x7F, SIZE);
    }
    assert_null(a.spare);
    for (int i = 0; i < PIECES; i++)
        assert_int_equal(was[i][SIZE - 1], i & 0x7F);
    /* What does not fit into a kept block gets one of its own, and the kept ones go with the rest. */
    stet_arena_rewind(&a);
    memset(stet_arena_alloc(&a, 8 << 20), 1, 8 << 20);
    assert_non_null(a.spare);
    stet_arena_clear(&a);
    assert_null(a.spare);
    stet_arena_rewind(&a);
    stet_arena_release(&a);
    assert_null(a.head);
    assert_null(a.spare);
}

static void vectors_grow(void **state) {
    (void)state;
    STET_VEC(int) v = {0};
    for (int i = 0; i < 10000; i++)
        *stet_vec_add(&v) = i;
    assert_int_equal(v.len, 10000);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(v.at[i], i);
    stet_vec_reserve(&v, 50000);
    assert_true(v.cap >= 50000);
    assert_int_equal(v.at[9999], 9999);
    stet_vec_clear(&v);
    assert_int_equal(v.len, 0);
    stet_vec_release(&v);
    assert_null(v.at);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_apart),
        cmocka_unit_test(copies),
        cmocka_unit_test(a_rewound_arena_is_filled_again_in_its_blocks),
        cmocka_unit_test(vectors_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
