/* number.h - what the JSON reader and printer need from number.c beyond json.h.
 *
 * Reading and printing are both correctly rounded, with one table of powers of ten (powers.h).
 */
#ifndef STET_BASE_NUMBER_H
#define STET_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A literal as significand * 10^exponent. If there are more digits than the significand holds, it is `truncated`: the
 * true value lies between significand and significand + 1. */
typedef struct stet_decimal {
    uint64_t significand;
    int64_t exponent;
    bool negative, truncated;
} stet_decimal;

/* The double nearest to the literal `text`, which was read as `n`. Infinite if it is too large. */
double stet_number_round(stet_decimal n, const char *text, size_t len);

/* As stet_number_print, but never in the form of an integer literal: what ECMAScript prints as 100000000000000000
 * becomes 1e+17. For doubles beyond 2^53, which the reader would otherwise take for an int64 or refuse. */
size_t stet_number_print_apart(double d, char out[32]);

#endif
