/* utf8.c - UTF-8: every code point, the table of the standard, widths. */

#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Every code point goes out and comes back, surrogates alone are refused, at every distance from the end of eight
 * bytes. */
static void every_code_point(void **state) {
    (void)state;
    for (uint32_t c = 0; c < 0x110000; c++) {
        char text[24] = "aaaaaaaaaaaa";
        size_t before = c % 9, len = before + stet_utf8_encode(c, text + before);
        bool surrogate = c >= 0xD800 && c < 0xE000;
        if (stet_utf8_valid(text, len) == surrogate)
            fail_msg("U+%04X", c);
        if (stet_utf8_valid_prefix(text, len) != (surrogate ? before : len))
            fail_msg("U+%04X", c);
        if (len - before > 1 && stet_utf8_valid_prefix(text, len - 1) != before)
            fail_msg("U+%04X cut", c);
    }
}

/* All sequences of three bytes, and four that begin like a four-byte character, against the ranges of RFC 3629. */
static size_t judge(const unsigned char *p, size_t len) {
    static const struct {
        unsigned char first, last, low, high;
        size_t more;
    } rows[] = {{0x00, 0x7F, 0, 0, 0},       {0xC2, 0xDF, 0x80, 0xBF, 1}, {0xE0, 0xE0, 0xA0, 0xBF, 2},
                {0xE1, 0xEC, 0x80, 0xBF, 2}, {0xED, 0xED, 0x80, 0x9F, 2}, {0xEE, 0xEF, 0x80, 0xBF, 2},
                {0xF0, 0xF0, 0x90, 0xBF, 3}, {0xF1, 0xF3, 0x80, 0xBF, 3}, {0xF4, 0xF4, 0x80, 0x8F, 3}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        if (p[0] < rows[r].first || p[0] > rows[r].last)
            continue;
        if (len < rows[r].more + 1)
            return 0;
        for (size_t i = 1; i <= rows[r].more; i++)
            if (p[i] < (i == 1 ? rows[r].low : 0x80) || p[i] > (i == 1 ? rows[r].high : 0xBF))
                return 0;
        return rows[r].more + 1;
    }
    return 0;
}

static void as_the_table_of_the_standard(void **state) {
    (void)state;
    static const unsigned char edges[] = {0x00, 0x22, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF,
                                          0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
    enum { N = sizeof edges };
    for (size_t a = 0; a < N; a++)
        for (size_t b = 0; b < N; b++)
            for (size_t c = 0; c < N; c++)
                for (size_t d = 0; d < N; d++) {
                    unsigned char text[4] = {edges[a], edges[b], edges[c], edges[d]};
                    size_t expected = 0, n;
                    while (expected < 4 && (n = judge(text + expected, 4 - expected)))
                        expected += n;
                    if (stet_utf8_valid_prefix((char *)text, 4) != expected)
                        fail_msg("%02x %02x %02x %02x", text[0], text[1], text[2], text[3]);
                }
}

static void columns(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t width;
    } cases[] = {{"", 0},
                 {"abc", 3},
                 {"\xC3\xA9", 1},
                 {"e\xCC\x81", 1},
                 {"\xE6\x97\xA5\xE6\x9C\xAC", 4},
                 {"\xF0\x9F\x98\x80", 2},
                 {"\xEF\xBC\xA1", 2},
                 {"\xEA\xB0\x80", 2},
                 {"a\xE2\x80\x8B"
                  "b",
                  2},
                 {"\x1B\n", 0},
                 {"\xFF", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(stet_utf8_width(cases[i].text, strlen(cases[i].text)), cases[i].width);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point),
        cmocka_unit_test(as_the_table_of_the_standard),
        cmocka_unit_test(columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
