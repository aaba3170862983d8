/* suggest.h - "did you mean": finds the name that is nearest to what was typed.
 *
 *     stet_suggest s = stet_suggest_begin(typed);
 *     stet_suggest_offer(&s, "resume"); // any number; offered names are borrowed until the end
 *     if (s.best)
 *         stet_hint(err, "did you mean %s?", s.best);
 *
 * These functions take names that end with a NUL. For names with a length there are functions with `_n` and `_words`;
 * then s.best has s.best_len bytes and no NUL after them.
 *
 * Nearest means the smallest edit distance, in which swapping two neighbours is one edit. Hyphens and underscores are
 * alike, and so are upper and lower case. A name is not suggested if more than a third of its letters differ (one is
 * always allowed), unless it begins with what was typed. Only the first 10,000 offers are considered.
 */
#ifndef STET_BASE_SUGGEST_H
#define STET_BASE_SUGGEST_H

#include <stddef.h>

typedef struct stet_suggest {
    const char *typed;
    size_t typed_len;
    const char *best; /* NULL: no name is near enough */
    size_t best_len;
    size_t distance;
    size_t offers;
} stet_suggest;

stet_suggest stet_suggest_begin(const char *typed);
stet_suggest stet_suggest_begin_n(const char *typed, size_t len);
void stet_suggest_offer(stet_suggest *s, const char *name);
void stet_suggest_offer_n(stet_suggest *s, const char *name, size_t len);
/* Offers each word of a string, separated by spaces. */
void stet_suggest_offer_words(stet_suggest *s, const char *words);
/* The distance itself; for names beyond 64 bytes it is the maximum. */
size_t stet_suggest_distance(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
