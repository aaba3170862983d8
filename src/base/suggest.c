/* suggest.c - finds the offered name that is nearest to a misspelt one. */

#include "base/suggest.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

enum { LONGEST = 64, MOST_OFFERS = 10000 };

static char fold(char c) {
    return c == '_' ? '-' : (char)tolower((unsigned char)c);
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Optimal string alignment, over three rows. */
size_t stet_suggest_distance(const char *a, size_t a_len, const char *b, size_t b_len) {
    if (a_len > LONGEST || b_len > LONGEST)
        return SIZE_MAX;
    size_t rows[3][LONGEST + 1] = {0};
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= b_len; j++)
        last[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        now[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t cost = fold(a[i - 1]) == fold(b[j - 1]) ? 0 : 1;
            now[j] = least(least(last[j] + 1, now[j - 1] + 1), last[j - 1] + cost);
            if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) && fold(a[i - 2]) == fold(b[j - 1]))
                now[j] = least(now[j], before[j - 2] + 1);
        }
        size_t *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[b_len];
}

stet_suggest stet_suggest_begin_n(const char *typed, size_t len) {
    return (stet_suggest){.typed = typed, .typed_len = len, .distance = SIZE_MAX};
}

stet_suggest stet_suggest_begin(const char *typed) {
    return stet_suggest_begin_n(typed, strlen(typed));
}

void stet_suggest_offer_n(stet_suggest *s, const char *name, size_t len) {
    if (s->offers++ >= MOST_OFFERS)
        return;
    size_t distance = stet_suggest_distance(s->typed, s->typed_len, name, len);
    size_t allowed = (s->typed_len > len ? s->typed_len : len) / 3;
    if (allowed == 0)
        allowed = 1;
    /* "arch" for "archive": many letters are missing, but none is wrong. */
    if (s->typed_len >= 3 && s->typed_len <= len && memcmp(s->typed, name, s->typed_len) == 0)
        distance = least(distance, 1);
    if (distance <= allowed && distance < len && distance < s->distance) {
        s->distance = distance;
        s->best = name;
        s->best_len = len;
    }
}

void stet_suggest_offer(stet_suggest *s, const char *name) {
    stet_suggest_offer_n(s, name, strlen(name));
}

void stet_suggest_offer_words(stet_suggest *s, const char *words) {
    for (size_t len; *words; words += len + (words[len] == ' ')) {
        len = strcspn(words, " ");
        if (len)
            stet_suggest_offer_n(s, words, len);
    }
}
