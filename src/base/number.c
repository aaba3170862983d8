/* number.c - reads and prints doubles exactly: the shortest text that reads back as the same number. */

#include "base/number.h"

#include <assert.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/powers.h"

typedef unsigned __int128 wide;

/* floor(k * log2(10)) for |k| up to 1200 */
static inline int log2_of_power(int k) {
    return k * 1741647 >> 19;
}

enum { MAX_DIGITS = 19 }; /* the largest number of decimal digits that always fits into 64 bits */

static stet_decimal scan(const char *p, const char *end) {
    stet_decimal d = {0};
    if (p < end && *p == '-') {
        d.negative = true;
        p++;
    }
    int digits = 0;
    bool fraction = false;
    for (; p < end; p++) {
        if (*p == '.') {
            fraction = true;
            continue;
        }
        unsigned digit = (unsigned)(*p - '0');
        if (digit > 9)
            break;
        if (digits < MAX_DIGITS) {
            d.significand = d.significand * 10 + digit;
            digits += d.significand != 0; /* leading zeros do not count */
            d.exponent -= fraction;
        } else {
            d.truncated |= digit != 0;
            d.exponent += !fraction;
        }
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        bool negative = p < end && *p == '-';
        p += p < end && (*p == '-' || *p == '+');
        int64_t e = 0;
        for (; p < end && *p >= '0' && *p <= '9'; p++)
            if (e < (int64_t)1 << 40) /* far more than the digits of any text can make up for */
                e = e * 10 + (*p - '0');
        d.exponent += negative ? -e : e;
    }
    return d;
}

/* significand * 10^exponent, if it follows from 128 bits of the power; false if the bits that are missing might matter.
 *
 * With T <= 10^k * 2^-e < T + 1 the true product lies in [w * T, w * T + w). All 192 bits of w * T are kept; if both
 * ends of that interval round to the same double, so does the true value. */
static bool round_product(uint64_t w, int64_t exponent, double *out) {
    if (w == 0 || exponent < STET_POWERS_FIRST) {
        *out = 0;
        return w == 0 || exponent < STET_POWERS_FIRST - 20; /* even 2^64 * 10^that is below half the smallest double */
    }
    if (exponent > STET_POWERS_LAST) {
        *out = HUGE_VAL;
        return true;
    }
    int k = (int)exponent;
    const uint64_t *power = stet_powers[k - STET_POWERS_FIRST];
    int shift = __builtin_clzll(w);
    w <<= shift;
    wide low = (wide)w * power[1];
    wide high = (wide)w * power[0] + (uint64_t)(low >> 64); /* bits 64..191 of the product */
    uint64_t last = (uint64_t)low;
    bool exact = k >= 0 && k <= 55;
    /* The product is high * 2^64 + last, times 2^(e - shift). Its highest bit is bit 191 or 190. */
    int e = log2_of_power(k) - 127 - shift + 64; /* exponent of bit 0 of `high` */
    int top = (uint64_t)(high >> 127) ? 127 : 126;
    int binary = e + top; /* exponent of the leading bit: the value is 1.xxx * 2^binary */
    if (binary > 1023) {
        *out = HUGE_VAL;
        return true;
    }
    int drop = top - 52; /* bits of `high` below the significand */
    if (binary < -1022) {
        drop += -1022 - binary;
        if (drop > 127)
            return false;
    }
    wide mask = ((wide)1 << drop) - 1, half = (wide)1 << (drop - 1);
    wide rest = high & mask;
    uint64_t significand = (uint64_t)(high >> drop);
    bool up;
    if (exact) {
        up = rest > half || (rest == half && (last || (significand & 1)));
    } else {
        /* What is missing is less than w < 2^64 in units of `last`: at most one in units of `high`. */
        if (rest == half - 1 || rest == half)
            return false;
        up = rest > half;
    }
    significand += up;
    if (binary < -1022) {
        *out = ldexp((double)significand, -1074); /* exact: the significand has at most 53 bits */
        return true;
    }
    if (significand == (uint64_t)1 << 53) {
        significand >>= 1;
        binary++;
        if (binary > 1023) {
            *out = HUGE_VAL;
            return true;
        }
    }
    uint64_t bits = (uint64_t)(binary + 1023) << 52 | (significand & (((uint64_t)1 << 52) - 1));
    memcpy(out, &bits, sizeof bits);
    return true;
}

static locale_t c_locale;

static void make_locale(void) {
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale)
        abort(); /* the C locale is built in: only memory can be missing */
}

/* The last resort, exact for any number of digits. The locale is pinned: the program that embeds the library may have
 * set one with a decimal comma. */
static double read_slowly(const char *text, size_t len) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_locale);
    char small[128], *copy = len < sizeof small ? small : stet_alloc(len + 1);
    memcpy(copy, text, len);
    copy[len] = 0;
    double d = strtod_l(copy, NULL, c_locale);
    if (copy != small)
        free(copy);
    return d;
}

double stet_number_round(stet_decimal n, const char *text, size_t len) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    double d;
    if (!n.truncated && n.significand <= (uint64_t)1 << 53 && n.exponent >= -22 && n.exponent <= 22) {
        /* Both are exact doubles, so one operation rounds once. */
        d = (double)n.significand;
        d = n.exponent < 0 ? d / powers[-n.exponent] : d * powers[n.exponent];
    } else {
        double above;
        if (!round_product(n.significand, n.exponent, &d) ||
            (n.truncated && (!round_product(n.significand + 1, n.exponent, &above) || above != d)))
            return read_slowly(text, len);
    }
    return n.negative ? -d : d;
}

double stet_number_read(const char *text, size_t len) {
    return stet_number_round(scan(text, text + len), text, len);
}

/* (power * x) / 2^128 rounded to odd: the lowest bit tells whether anything was cut off. The power is an upper bound of
 * the true one, which the `> 1` allows for. */
static inline uint64_t multiply_to_odd(const uint64_t power[2], uint64_t x) {
    wide low = (wide)power[1] * x;
    wide high = (wide)power[0] * x + (uint64_t)(low >> 64);
    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* The shortest decimal digits * 10^exponent inside the rounding interval of significand * 2^binary, and of those the
 * closest. This is Giulietti's Schubfach: with k chosen so that the interval holds at least one multiple of 10^k but
 * not always one of 10^(k+1), only four candidates remain, and their order relative to the interval's ends is decided
 * by quarter units rounded to odd. `irregular`: the gap below is half as wide (a power of two). */
static uint64_t shortest(uint64_t significand, int binary, bool irregular, int *exponent) {
    bool even = !(significand & 1); /* reading rounds ties to even, so the ends belong to it */
    uint64_t left = 4 * significand - 2 + irregular, middle = 4 * significand, right = 4 * significand + 2;
    /* floor(log10(2^binary)), or of 3/4 of it */
    int k = (binary * 1262611 - (irregular ? 524031 : 0)) >> 22;
    int h = binary + log2_of_power(-k) + 1;
    uint64_t power[2] = {stet_powers[-k - STET_POWERS_FIRST][0], stet_powers[-k - STET_POWERS_FIRST][1]};
    if (-k < 0 || -k > 55) { /* not exact: from the lower to the upper bound */
        power[1]++;
        power[0] += !power[1];
    }
    uint64_t lower = multiply_to_odd(power, left << h) + !even;
    uint64_t at = multiply_to_odd(power, middle << h);
    uint64_t upper = multiply_to_odd(power, right << h) - !even;
    uint64_t s = at / 4;
    if (s >= 10) {
        uint64_t tens = s / 10;
        bool below = lower <= 40 * tens, above = 40 * tens + 40 <= upper;
        if (below != above) {
            *exponent = k + 1;
            return tens + above;
        }
    }
    *exponent = k;
    bool below = lower <= 4 * s, above = 4 * s + 4 <= upper;
    if (below != above)
        return s + above;
    uint64_t half = 4 * s + 2;
    return s + (at > half || (at == half && (s & 1)));
}

size_t stet_number_print(double d, char out[32]) {
    assert(isfinite(d));
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
    int biased = (int)(bits >> 52 & 0x7FF);
    if (!fraction && !biased) { /* -0 too, as ECMAScript has it */
        memcpy(out, "0", 2);
        return 1;
    }
    uint64_t significand = biased ? fraction | (uint64_t)1 << 52 : fraction;
    int binary = (biased ? biased : 1) - 1075, exponent = 0;
    uint64_t decimal;
    if (binary <= 0 && binary > -53 && !(significand & (((uint64_t)1 << -binary) - 1)))
        decimal = significand >> -binary; /* an integer below 2^53: every digit counts */
    else
        decimal = shortest(significand, binary, !fraction && biased > 1, &exponent);
    while (decimal % 10 == 0) {
        decimal /= 10;
        exponent++;
    }
    char digits[20], *first = digits + sizeof digits;
    for (uint64_t rest = decimal; rest; rest /= 10)
        *--first = (char)('0' + rest % 10);
    int count = (int)(digits + sizeof digits - first);
    int point = count + exponent; /* the value is 0.DIGITS * 10^point */

    char *p = out;
    if (bits >> 63)
        *p++ = '-';
    if (point > 21 || point < -5) {
        *p++ = first[0];
        if (count > 1) {
            *p++ = '.';
            memcpy(p, first + 1, (size_t)count - 1);
            p += count - 1;
        }
        int e = point - 1;
        *p++ = 'e';
        *p++ = e < 0 ? '-' : '+';
        e = abs(e);
        if (e >= 100)
            *p++ = (char)('0' + e / 100);
        if (e >= 10)
            *p++ = (char)('0' + e / 10 % 10);
        *p++ = (char)('0' + e % 10);
    } else if (point <= 0) {
        *p++ = '0';
        *p++ = '.';
        memset(p, '0', (size_t)-point);
        p += -point;
        memcpy(p, first, (size_t)count);
        p += count;
    } else if (point >= count) {
        memcpy(p, first, (size_t)count);
        p += count;
        memset(p, '0', (size_t)(point - count));
        p += point - count;
    } else {
        memcpy(p, first, (size_t)point);
        p += point;
        *p++ = '.';
        memcpy(p, first + point, (size_t)(count - point));
        p += count - point;
    }
    *p = 0;
    return (size_t)(p - out);
}

size_t stet_number_print_apart(double d, char out[32]) {
    size_t len = stet_number_print(d, out);
    if (memchr(out, '.', len) || memchr(out, 'e', len))
        return len;
    size_t first = out[0] == '-', count = len - first;
    assert(count > 15); /* smaller ones are integers */
    int exponent = (int)count - 1;
    while (out[first + count - 1] == '0')
        count--;
    char *p = out + first + 1;
    if (count > 1) {
        memmove(p + 1, p, count - 1);
        *p = '.';
        p += count;
    }
    *p++ = 'e';
    *p++ = '+';
    *p++ = (char)('0' + exponent / 10);
    *p++ = (char)('0' + exponent % 10);
    *p = 0;
    return (size_t)(p - out);
}
