/* suggest.h - "did you mean": the name among some that is nearest to what was typed.
 *
 *     stet_suggest s = stet_suggest_begin(typed);
 *     stet_suggest_offer(&s, "resume");             // any number; offered names are borrowed until the end
 *     if (s.best) ... "did you mean %s?"
 *
 * Nearest is the smallest edit distance in which two neighbours swapped count as one edit; hyphens and underscores are
 * alike, and so are capitals. Nothing is suggested that differs in more than a third of its letters (at least one is
 * allowed), unless what was typed is the beginning of it. */
#ifndef STET_SURFACE_SUGGEST_H
#define STET_SURFACE_SUGGEST_H

#include <stddef.h>

typedef struct stet_suggest {
    const char *typed;
    const char *best; /* NULL: nothing is near */
    size_t distance;
} stet_suggest;

stet_suggest stet_suggest_begin(const char *typed);
void stet_suggest_offer(stet_suggest *s, const char *name);
/* The distance itself; names beyond 64 bytes are as far as can be. */
size_t stet_suggest_distance(const char *a, const char *b);

#endif
