/* suggest.h - "did you mean": the name among some that is nearest to what was typed.
 *
 *     stet_suggest s = stet_suggest_begin(typed);
 *     stet_suggest_offer(&s, "resume");             // any number; offered names are borrowed until the end
 *     if (s.best) ... "did you mean %s?"
 *
 * Names that end with a NUL are offered as above. Where typed or offered bytes have a length instead, the functions
 * with `_n` and `_words` are for them, and s.best has s.best_len bytes and no NUL after them.
 *
 * Nearest is the smallest edit distance in which two neighbours swapped count as one edit; hyphens and underscores are
 * alike, and so are capitals. Nothing is suggested that differs in more than a third of its letters (at least one is
 * allowed), unless what was typed is the beginning of it. Only the first 10,000 offers are looked at: this is a
 * courtesy, not a search. */
#ifndef STET_BASE_SUGGEST_H
#define STET_BASE_SUGGEST_H

#include <stddef.h>

typedef struct stet_suggest {
    const char *typed;
    size_t typed_len;
    const char *best; /* NULL: nothing is near */
    size_t best_len;
    size_t distance;
    size_t offers;
} stet_suggest;

stet_suggest stet_suggest_begin(const char *typed);
stet_suggest stet_suggest_begin_n(const char *typed, size_t len);
void stet_suggest_offer(stet_suggest *s, const char *name);
void stet_suggest_offer_n(stet_suggest *s, const char *name, size_t len);
/* Offers each of the words of one string, which spaces separate. */
void stet_suggest_offer_words(stet_suggest *s, const char *words);
/* The distance itself; names beyond 64 bytes are as far as can be. */
size_t stet_suggest_distance(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
