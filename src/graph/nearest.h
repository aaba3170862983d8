/* nearest.h - "did you mean": the nearest of some known names, if one is near enough to be a slip. */
#ifndef STET_GRAPH_NEAREST_H
#define STET_GRAPH_NEAREST_H

#include "base/map.h"

/* Nearest key of a map (only the first 10,000 are looked at: this is a courtesy, not a search). */
bool stet_nearest(const stet_map *names, const char *given, size_t len, char *out, size_t out_size);
/* Nearest of words in one string, separated by spaces. */
bool stet_nearest_word(const char *words, const char *given, size_t len, char *out, size_t out_size);

#endif
