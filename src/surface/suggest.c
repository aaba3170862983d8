#include "surface/suggest.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#define LONGEST 64

static char fold(char c) {
    return c == '_' ? '-' : (char)tolower((unsigned char)c);
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Optimal string alignment, over three rows. */
size_t stet_suggest_distance(const char *a, const char *b) {
    size_t na = strlen(a), nb = strlen(b);
    if (na > LONGEST || nb > LONGEST)
        return SIZE_MAX;
    size_t rows[3][LONGEST + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= nb; j++)
        last[j] = j;
    for (size_t i = 1; i <= na; i++) {
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
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
    return last[nb];
}

stet_suggest stet_suggest_begin(const char *typed) {
    return (stet_suggest){.typed = typed, .best = NULL, .distance = SIZE_MAX};
}

void stet_suggest_offer(stet_suggest *s, const char *name) {
    size_t typed_len = strlen(s->typed), name_len = strlen(name);
    size_t distance = stet_suggest_distance(s->typed, name);
    size_t allowed = (typed_len > name_len ? typed_len : name_len) / 3;
    if (allowed == 0)
        allowed = 1;
    /* "arch" for "archive": many letters are missing, but none is wrong. */
    if (typed_len >= 3 && strncmp(s->typed, name, typed_len) == 0)
        distance = least(distance, 1);
    if (distance <= allowed && distance < name_len && distance < s->distance) {
        s->distance = distance;
        s->best = name;
    }
}
