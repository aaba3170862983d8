/* number.c - numbers: printing as ECMAScript does, halfway cases, extremes, long literals, locales. */

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static void assert_prints(double d, const char *expected) {
    char out[32];
    size_t len = stet_number_print(d, out);
    assert_string_equal(out, expected);
    assert_int_equal(len, strlen(expected));
    assert_true(len < 25);
    assert_true(stet_number_read(out, len) == d);
}

/* The forms of ECMAScript's Number::toString, and the hard cases of the literature on shortest printing. */
static void prints_as_ecmascript(void **state) {
    (void)state;
    static const struct {
        double d;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-0.0, "0"},
        {1, "1"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {0.3, "0.3"},
        {0.1 + 0.2, "0.30000000000000004"},
        {100, "100"},
        {123456789012345680000.0, "123456789012345680000"},
        {1e20, "100000000000000000000"},
        {999999999999999900000.0, "999999999999999900000"},
        {1e21, "1e+21"},
        {1.5e21, "1.5e+21"},
        {1e-6, "0.000001"},
        {1.5e-6, "0.0000015"},
        {1e-7, "1e-7"},
        {-1.25e-7, "-1.25e-7"},
        {1e100, "1e+100"},
        {5e-324, "5e-324"},
        {1e-323, "1e-323"},
        {1.5e-323, "1.5e-323"},
        {2.225073858507201e-308, "2.225073858507201e-308"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {9007199254740991.0, "9007199254740991"},
        {9007199254740992.0, "9007199254740992"},
        {9007199254740994.0, "9007199254740994"},
        {9.5367431640625e-7, "9.5367431640625e-7"},
        {2e-44, "2e-44"},
        {9e-265, "9e-265"},
        {8.41e21, "8.41e+21"},
        {2.0919495182368195e19, "20919495182368195000"},
        {5.764607523034235e39, "5.764607523034235e+39"},
        {1.152921504606847e40, "1.152921504606847e+40"},
        {2.305843009213694e40, "2.305843009213694e+40"},
        {4.4501477170144023e-308, "4.4501477170144023e-308"},
        {9.409340012568248e18, "9409340012568248000"},
        {1.8531501765868567e21, "1.8531501765868567e+21"},
        {4.708356024711512e18, "4708356024711512000"},
        {1.0e23, "1e+23"},
        {9.999999999999999e22, "1e+23"}, /* the same double */
        {9.999999999999997e22, "9.999999999999997e+22"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_prints(cases[i].d, cases[i].text);
}

static void every_power_of_two_and_ten(void **state) {
    (void)state;
    char out[32];
    for (int e = -1074; e < 1024; e++) {
        double d = ldexp(1, e);
        for (int k = -1; k <= 1; k++) {
            double near = k < 0 ? nextafter(d, 0) : k > 0 ? nextafter(d, INFINITY) : d;
            size_t len = stet_number_print(near, out);
            assert_true(stet_number_read(out, len) == near);
            assert_true(strtod(out, NULL) == near);
        }
    }
    for (int e = -400; e < 320; e++) {
        char text[32];
        int n = snprintf(text, sizeof text, "1e%d", e);
        double d = strtod(text, NULL);
        assert_true(stet_number_read(text, (size_t)n) == d);
        if (isfinite(d) && e >= -323) {
            stet_number_print(d, out);
            double back = strtod(out, NULL);
            assert_true(back == d);
            assert_true(strlen(out) <= 22);
        }
    }
}

/* Just at, above and below the middle between two doubles, with many digits: only exact arithmetic decides. */
static void reads_halfway_cases(void **state) {
    (void)state;
    uint64_t seed = 42;
    for (int i = 0; i < 2000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t bits = (seed >> 1) % 0x7FE0000000000000u;
        double d, up;
        memcpy(&d, &bits, 8);
        up = nextafter(d, INFINITY);
        /* The middle, exactly: long double has the 54 bits that it needs, and %.*Le as many digits. */
        long double middle = ((long double)d + (long double)up) / 2;
        char text[1200];
        int n = snprintf(text, sizeof text, "%.800Le", middle);
        assert_true(stet_number_read(text, (size_t)n) == strtod(text, NULL));
        assert_true(stet_number_read(text, (size_t)n) == (bits & 1 ? up : d));
        char *e = strchr(text, 'e');
        char tail[32];
        snprintf(tail, sizeof tail, "0000000001%s", e);
        snprintf(e, sizeof text - (size_t)(e - text), "%s", tail);
        assert_true(stet_number_read(text, strlen(text)) == up);
    }
}

static void reads_extremes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double d;
    } cases[] = {
        {"1e400", INFINITY},
        {"-1e400", -INFINITY},
        {"1.7976931348623158e308", 1.7976931348623157e308},
        {"1.7976931348623159e308", INFINITY},
        /* half a unit above the largest double, and one less */
        {"1797693134862315807937289714053034150799341327100378269361737789804449682927647509466490179775872070"
         "9633028641669288791094655554785194040263065748867150582068190890200070838367627385484581771153176447"
         "5730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904"
         "174497792",
         INFINITY},
        {"1797693134862315807937289714053034150799341327100378269361737789804449682927647509466490179775872070"
         "9633028641669288791094655554785194040263065748867150582068190890200070838367627385484581771153176447"
         "5730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904"
         "174497791",
         1.7976931348623157e308},
        {"2.4703282292062327208e-324", 0},
        {"2.4703282292062328e-324", 5e-324},
        {"1e-99999999999999999999", 0},
        {"0e99999999999999999999", 0},
        {"0.0", 0},
        {"2.2250738585072011e-308", 2.225073858507201e-308},
        {"2.2250738585072012e-308", 2.2250738585072014e-308},
        {"9007199254740993", 9007199254740992.0},
        {"9007199254740993.00000000000000000000000001", 9007199254740994.0},
        {"18446744073709551615", 18446744073709551616.0},
        {"123456789012345678901234567890", 1.2345678901234568e29},
        {"0.000000000000000000000000000000000000000000000000000012345678901234567890123", 1.2345678901234568e-53},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (stet_number_read(cases[i].text, strlen(cases[i].text)) != cases[i].d)
            fail_msg("%s: %.17g", cases[i].text, stet_number_read(cases[i].text, strlen(cases[i].text)));
}

/* A million digits, and an exponent that takes them back. */
static void reads_very_long_literals(void **state) {
    (void)state;
    size_t zeros = 1000000;
    char *text = malloc(zeros + 64);
    text[0] = '1';
    memset(text + 1, '0', zeros);
    int n = sprintf(text + 1 + zeros, "e-%zu", zeros);
    assert_true(stet_number_read(text, 1 + zeros + (size_t)n) == 1);
    memcpy(text, "0.", 2);
    n = sprintf(text + zeros, "15e%zu", zeros - 2);
    assert_true(stet_number_read(text, zeros + (size_t)n) == 0.15);
    memset(text, '7', zeros);
    n = sprintf(text + zeros, "e-%zu", zeros);
    assert_true(stet_number_read(text, zeros + (size_t)n) == 7.0 / 9);
    free(text);
}

/* The program around the library may have chosen a decimal comma. */
static void the_locale_does_not_matter(void **state) {
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"};
    for (size_t i = 0; i < 3 && !setlocale(LC_ALL, names[i]); i++)
        ;
    const char *text = "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803";
    assert_true(stet_number_read(text, strlen(text)) == 3.141592653589793);
    char out[32];
    stet_number_print(1.5, out);
    assert_string_equal(out, "1.5");
    setlocale(LC_ALL, "C");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_as_ecmascript),     cmocka_unit_test(every_power_of_two_and_ten),
        cmocka_unit_test(reads_halfway_cases),      cmocka_unit_test(reads_extremes),
        cmocka_unit_test(reads_very_long_literals), cmocka_unit_test(the_locale_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
