/* scan.h - the inner loops of the JSON reader and printer.
 *
 * They work on sixteen bytes at a time where there is SSE2, on eight or one elsewhere.
 */
#ifndef STET_BASE_SCAN_H
#define STET_BASE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/value.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Does the string reader have to stop here: a quote, a backslash, a control character? */
static inline bool stet_scan_is_special(char c) {
    return (unsigned char)c < 0x20 || c == '"' || c == '\\';
}

static inline const char *stet_scan_string_bytes(const char *p, const char *end, bool *high) {
    unsigned char seen = 0;
    for (; p < end && !stet_scan_is_special(*p); p++)
        seen |= (unsigned char)*p;
    *high |= seen >= 0x80;
    return p;
}

/* The first byte from p on that is a quote, a backslash or a control character, or `end`. Sets `*high` if a byte before
 * it is not ASCII. */
#ifdef __SSE2__
static inline const char *stet_scan_string(const char *p, const char *end, bool *high) {
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), control = _mm_set1_epi8(0x1F);
    unsigned seen = 0;
    while (end - p >= 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i stop = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(x, quote), _mm_cmpeq_epi8(x, backslash)),
                                    _mm_cmpeq_epi8(_mm_min_epu8(x, control), x));
        unsigned at = (unsigned)_mm_movemask_epi8(stop), not_ascii = (unsigned)_mm_movemask_epi8(x);
        if (at) {
            *high |= (seen | (not_ascii & (at ^ (at - 1)))) != 0;
            return p + __builtin_ctz(at);
        }
        seen |= not_ascii;
        p += 16;
    }
    *high |= seen != 0;
    return stet_scan_string_bytes(p, end, high);
}
#else
static inline const char *stet_scan_string(const char *p, const char *end, bool *high) {
    return stet_scan_string_bytes(p, end, high);
}
#endif

static inline const char *stet_scan_space_bytes(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

/* The first byte from p on that is not JSON white space, or `end`. */
#ifdef __SSE2__
static inline const char *stet_scan_space(const char *p, const char *end) {
    while (end - p >= 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i space =
            _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8(' ')), _mm_cmpeq_epi8(x, _mm_set1_epi8('\n'))),
                         _mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8('\r')), _mm_cmpeq_epi8(x, _mm_set1_epi8('\t'))));
        unsigned other = ~(unsigned)_mm_movemask_epi8(space) & 0xFFFF;
        if (other)
            return p + __builtin_ctz(other);
        p += 16;
    }
    return stet_scan_space_bytes(p, end);
}
#else
static inline const char *stet_scan_space(const char *p, const char *end) {
    return stet_scan_space_bytes(p, end);
}
#endif

/* Eight bytes with the first one lowest. */
static inline uint64_t stet_scan_word(const char *p) {
    uint64_t word;
    memcpy(&word, p, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return word;
#else
    return __builtin_bswap64(word);
#endif
}

static inline bool stet_scan_is_8_digits(const char *p) {
    uint64_t word = stet_scan_word(p);
    return ((word & 0xF0F0F0F0F0F0F0F0u) | ((word + 0x0606060606060606u) & 0xF0F0F0F0F0F0F0F0u) >> 4) ==
           0x3333333333333333u;
}

/* The number that eight digits make: pairs, then fours, then all, side by side in one word. */
static inline uint32_t stet_scan_8_digits(const char *p) {
    uint64_t word = stet_scan_word(p) - 0x3030303030303030u;
    word = word * 10 + (word >> 8);
    word = ((word & 0x000000FF000000FFu) * (100 + ((uint64_t)1000000 << 32)) +
            (word >> 16 & 0x000000FF000000FFu) * (1 + ((uint64_t)10000 << 32))) >>
           32;
    return (uint32_t)word;
}

/* A short string whose bytes begin at p, where sixteen bytes can be read. */
static inline stet_value stet_value_short_of_16(const char *p, size_t len) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    stet_value v;
    memcpy(&v, p, 16);
    uint64_t keep = ((uint64_t)1 << (len * 8 & 63)) - 1;
    v.bits[0] &= len < 8 ? keep : ~(uint64_t)0;
    v.bits[1] = (len < 8 ? 0 : v.bits[1] & keep) | (uint64_t)(STET_TAG_SHORT | len << 4) << STET_META_SHIFT;
    return v;
#else
    return stet_value_short(p, len);
#endif
}

#endif
