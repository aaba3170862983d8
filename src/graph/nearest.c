#include "graph/nearest.h"

#include <string.h>

#define MAX_WORD  64
#define MAX_NAMES 10000

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* Edits (insert, delete, replace, swap of neighbours) between two words, case aside. */
static size_t distance(const char *a, size_t an, const char *b, size_t bn) {
    size_t rows[3][MAX_WORD + 1];
    for (size_t j = 0; j <= bn; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= an; i++) {
        size_t *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= bn; j++) {
            char x = lower(a[i - 1]), y = lower(b[j - 1]);
            size_t d = last[j - 1] + (x != y);
            if (last[j] + 1 < d)
                d = last[j] + 1;
            if (now[j - 1] + 1 < d)
                d = now[j - 1] + 1;
            if (i > 1 && j > 1 && x == lower(b[j - 2]) && y == lower(a[i - 2]) && before[j - 2] + 1 < d)
                d = before[j - 2] + 1;
            now[j] = d;
        }
    }
    return rows[an % 3][bn];
}

typedef struct best {
    const char *given;
    size_t len;
    size_t least;
    char *out;
    size_t out_size;
} best;

static void offer(best *b, const char *word, size_t len) {
    if (len == 0 || len > MAX_WORD || len >= b->out_size)
        return;
    size_t d = distance(b->given, b->len, word, len);
    if (d < b->least) {
        b->least = d;
        memcpy(b->out, word, len);
        b->out[len] = 0;
    }
}

/* A slip is up to a third of the word. */
static best start(const char *given, size_t len, char *out, size_t out_size) {
    return (best){given, len, len / 3 + 2, out, out_size};
}

bool stet_nearest(const stet_map *names, const char *given, size_t len, char *out, size_t out_size) {
    best b = start(given, len, out, out_size);
    const void *key;
    size_t key_len, seen = 0;
    stet_slot *slot;
    if (len == 0 || len > MAX_WORD)
        return false;
    for (size_t i = 0; seen < MAX_NAMES && stet_map_next(names, &i, &key, &key_len, &slot); seen++)
        offer(&b, key, key_len);
    return b.least < len / 3 + 2;
}

bool stet_nearest_word(const char *words, const char *given, size_t len, char *out, size_t out_size) {
    best b = start(given, len, out, out_size);
    if (len == 0 || len > MAX_WORD)
        return false;
    while (*words) {
        size_t n = strcspn(words, " ");
        offer(&b, words, n);
        words += n + (words[n] == ' ');
    }
    return b.least < len / 3 + 2;
}
