/* regex.h - POSIX extended regular expressions from outside, made safe to compile and to run.
 *
 *     stet_regex *r;
 *     if (stet_regex_compile(pattern, len, &r, &err) != STET_OK)
 *         return err.status;
 *     bool matches = stet_regex_matches(r, text, text_len); // anywhere in the text, unless anchored
 *     stet_regex_free(r);
 *
 * The C library compiles and matches. Two kinds of patterns are refused before it sees them:
 *   - patterns that take it exponential time or memory: back references, large bounds;
 *   - what ECMAScript and POSIX read differently, because patterns come from JSON Schemas: letter escapes other than \w
 *     \W \s \S \b \B, (?...), lazy and stacked quantifiers, a backslash inside [...] other than \\.
 *
 * A match is by UTF-8 characters, whatever the locale; "." matches a newline too, but not NUL. Failure is STET_INVALID
 * or STET_LIMIT. A stet_regex is used by one thread at a time.
 */
#ifndef STET_BASE_REGEX_H
#define STET_BASE_REGEX_H

#include "base/error.h"

#define STET_REGEX_MAX_BYTES  1024
#define STET_REGEX_MAX_REPEAT 1000 /* the product of all bounds {m,n} in a pattern */

typedef struct stet_regex stet_regex;

STET_CHECKED stet_status stet_regex_compile(const char *pattern, size_t len, stet_regex **out, stet_error *err);
bool stet_regex_matches(stet_regex *r, const char *text, size_t len);
void stet_regex_free(stet_regex *r);

#endif
