/* number.c - random doubles, of all bit patterns and of the kinds that occur.
 *
 * What is printed reads back as the same double, no shorter text does, and no text of the same length is closer. The
 * judge is independent of the code under test: printf and strtod of the C library, which are exact, precision by
 * precision.
 *
 * 300,000 doubles; 10 million with STET_TEST_LONG=1, 30,000 with STET_TEST_SHORT=1.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static uint64_t state = 0x2545F4914F6CDD1Du;

static uint64_t random_number(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x9E3779B97F4A7C15u;
}

static double random_double(uint64_t i) {
    uint64_t bits = random_number();
    double d;
    switch (i % 8) {
    case 0: /* decimals with few digits */
        return (double)(bits % 2000000000) / 1000.0;
    case 1: /* integers of any size */
        return (double)(bits >> (random_number() % 64));
    case 2: /* subnormals */
        bits &= 0x800FFFFFFFFFFFFFu;
        break;
    case 3: /* few bits, any exponent */
        bits &= 0xFFFF000000000000u;
        break;
    case 4: /* around powers of two */
        bits = (bits & 0xFFF0000000000000u) + (random_number() % 5) - 2;
        break;
    default:
        break;
    }
    memcpy(&d, &bits, 8);
    return isfinite(d) ? d : 0.5;
}

static size_t count(void) {
    if (getenv("STET_TEST_LONG"))
        return 10000000;
    return getenv("STET_TEST_SHORT") ? 30000 : 300000;
}

/* The digits and the decimal exponent (of 0.DIGITS) that a text stands for. */
static size_t digits_of(const char *text, char digits[40], int *exponent) {
    size_t n = 0;
    int point = 0, e = 0;
    bool fraction = false;
    for (; *text && *text != 'e'; text++) {
        if (*text == '.')
            fraction = true;
        else if (*text >= '0' && *text <= '9') {
            if (n || *text != '0')
                digits[n++] = *text;
            if (n && !fraction)
                point++;
            if (!n && fraction)
                point--;
        }
    }
    if (*text == 'e')
        e = atoi(text + 1);
    while (n && digits[n - 1] == '0')
        n--;
    digits[n] = 0;
    *exponent = point + e;
    return n;
}

/* The shortest that reads back: the C library's correctly rounded text of p digits is the closest of p digits, so it
 * reads back if any text of p digits does, but for one case: below a power of two the gap is half as wide, and a text
 * of p digits that is not the closest may lie in the wider half above. Then the next one up is tried too. */
static void judge(double d, char text[64]) {
    for (int p = 0; p < 17; p++) {
        snprintf(text, 64, "%.*e", p, d);
        if (strtod(text, NULL) == d)
            return;
        /* One unit of the last digit away from zero. */
        char up[64], *e = strchr(text, 'e');
        memcpy(up, text, 64);
        char *last = up + (e - text) - 1;
        if (*last != '9') {
            ++*last;
            if (strtod(up, NULL) == d) {
                memcpy(text, up, 64);
                return;
            }
        }
    }
}

static void shortest_and_closest(void **unused) {
    (void)unused;
    size_t n = count();
    for (size_t i = 0; i < n; i++) {
        double d = random_double(i);
        if (d == 0)
            continue;
        char out[32], reference[64], ours[40], theirs[40];
        size_t len = stet_number_print(d, out);
        if (strtod(out, NULL) != d)
            fail_msg("%a: %s reads as %a", d, out, strtod(out, NULL));
        if (stet_number_read(out, len) != d)
            fail_msg("%s is read as %a, not %a", out, stet_number_read(out, len), d);
        judge(d, reference);
        int our_exponent, their_exponent;
        digits_of(out, ours, &our_exponent);
        digits_of(reference, theirs, &their_exponent);
        if (strcmp(ours, theirs) || our_exponent != their_exponent || (out[0] == '-') != (d < 0))
            fail_msg("%a: %s, but %s is shortest and closest", d, out, reference);
    }
}

/* Texts of 1 to 40 digits, read as the C library reads them. */
static void reads_as_strtod(void **unused) {
    (void)unused;
    size_t n = count();
    for (size_t i = 0; i < n; i++) {
        char text[80];
        int len;
        if (i % 2) {
            len = snprintf(text, sizeof text, "%.*e", (int)(random_number() % 40), random_double(i / 2));
        } else {
            len = 0;
            size_t digits = 1 + random_number() % 25, point = random_number() % (digits + 1);
            text[len++] = (char)('1' + random_number() % 9);
            for (size_t k = 0; k < digits; k++) {
                if (k == point)
                    text[len++] = '.';
                text[len++] = (char)('0' + random_number() % 10);
            }
            len += snprintf(text + len, 16, "e%d", (int)(random_number() % 700) - 350);
        }
        double d = stet_number_read(text, (size_t)len), judge_says = strtod(text, NULL);
        if (d != judge_says)
            fail_msg("%s is read as %a, not %a", text, d, judge_says);
    }
}

/* Through values and the printer: equal values after a round trip, equal text after two. */
static void values_survive(void **unused) {
    (void)unused;
    size_t n = count() / 10;
    for (size_t i = 0; i < n; i++) {
        stet_value v, back;
        assert_int_equal(stet_value_double(random_double(i), &v, NULL), STET_OK);
        size_t len;
        char *text = stet_json_print(v, STET_JSON_CANONICAL, &len);
        stet_error err = STET_ERROR_INIT;
        if (stet_json_parse(text, len, &back, &err))
            fail_msg("%s: %s", text, err.message);
        if (!stet_value_equal(v, back) || stet_value_type(v) != stet_value_type(back))
            fail_msg("%s is another value when read", text);
        stet_free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shortest_and_closest),
        cmocka_unit_test(reads_as_strtod),
        cmocka_unit_test(values_survive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
