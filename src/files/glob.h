/* glob.h - patterns of file names.
 *
 *     stet_glob_match("src/[a-m]*.c", path)
 *
 * `*` any bytes but a slash, `?` one character but a slash, `[a-z]` `[!a-z]` one character, `**` as a whole part any
 * number of directories (none too), `\x` the character x. A leading dot is matched by a dot alone, never by a wildcard;
 * `.stet` and
 * `.git` by nothing. Parts are compared as bytes; `?` and `[]` take a whole UTF-8 character, or one byte that is none.
 */
#ifndef STET_FILES_GLOB_H
#define STET_FILES_GLOB_H

#include "base/error.h"

#define STET_GLOB_MAX 4096

bool stet_glob_is(const char *text); /* does it hold a wildcard that is not escaped? */
/* Relative, no part is `.` or `..` or empty, brackets are closed. */
STET_CHECKED stet_status stet_glob_check(const char *pattern, stet_error *err);
bool stet_glob_match(const char *pattern, const char *path);
/* Could something below directory `dir` ("" is the top) match? For leaving out what can't. */
bool stet_glob_below(const char *pattern, const char *dir);
/* Length of the directory part before the first part with a wildcard: "src/a" of "src/a/x?.c" is 5; 0 if none. */
size_t stet_glob_prefix(const char *pattern);

#endif
