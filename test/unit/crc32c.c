/* crc32c.c - the checksum of rows: published values, both ways of computing it, and what it must find. */

#include "base/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect(const void *bytes, size_t len, uint32_t sum) {
    assert_int_equal(stet_crc32c(0, bytes, len), sum);
    assert_int_equal(stet_crc32c_table(0, bytes, len), sum);
}

/* RFC 3720 B.4, and the check value of the catalogue of CRCs. */
static void published_values(void **state) {
    (void)state;
    unsigned char bytes[32];
    expect("123456789", 9, 0xE3069283);
    memset(bytes, 0, sizeof bytes);
    expect(bytes, sizeof bytes, 0x8A9136AA);
    memset(bytes, 0xFF, sizeof bytes);
    expect(bytes, sizeof bytes, 0x62A8AB43);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    expect(bytes, sizeof bytes, 0x46DD794E);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(31 - i);
    expect(bytes, sizeof bytes, 0x113FDB5C);
    expect("", 0, 0);
}

static void both_ways_agree_in_one_piece_and_in_two(void **state) {
    (void)state;
    unsigned char bytes[600];
    uint32_t random = 1;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)((random = random * 1664525 + 1013904223) >> 24);
    for (size_t start = 0; start < 9; start++)
        for (size_t len = 0; start + len <= sizeof bytes; len += 1 + len / 7) {
            uint32_t sum = stet_crc32c(0, bytes + start, len);
            assert_int_equal(stet_crc32c_table(0, bytes + start, len), sum);
            for (size_t cut = 0; cut <= len; cut += 1 + cut / 3) {
                uint32_t first = stet_crc32c(0, bytes + start, cut);
                assert_int_equal(stet_crc32c(first, bytes + start + cut, len - cut), sum);
                assert_int_equal(stet_crc32c_table(first, bytes + start + cut, len - cut), sum);
            }
        }
}

static void every_flipped_bit_is_found(void **state) {
    (void)state;
    unsigned char bytes[100];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 37);
    uint32_t sum = stet_crc32c(0, bytes, sizeof bytes);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_not_equal(stet_crc32c(0, bytes, sizeof bytes), sum);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_values),
        cmocka_unit_test(both_ways_agree_in_one_piece_and_in_two),
        cmocka_unit_test(every_flipped_bit_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
