/* glob.h - patterns of file names.
 *
 *     bool matches = stet_glob_match("src/[a-m]*.c", path);
 *
 *   *          any bytes except a slash
 *   ?          one character except a slash
 *   [a-z]      one of these characters
 *   [!a-z]     one other character
 *   **         as a whole part: any number of directories, including none
 *   \x         the character x
 *
 * A pattern may have exceptions behind it, each a pattern that begins with STET_GLOB_EXCEPTS: it matches nothing that
 * one of them matches, and nothing below a directory that one of them matches. A pattern of exceptions alone matches all
 * other paths.
 *
 * Wildcards skip hidden files unless the pattern starts with a dot; nothing matches `.stet` and `.git`. Parts are
 * compared as bytes. `?` and `[]` match a whole UTF-8 character, or one byte that is not part of one.
 */
#ifndef STET_FILES_GLOB_H
#define STET_FILES_GLOB_H

#include "base/buf.h"

#define STET_GLOB_MAX     4096
#define STET_GLOB_EXCEPT  '\x1f' /* begins an exception, with a "!" behind it */
#define STET_GLOB_EXCEPTS "\x1f!"

/* The length of the pattern without its exceptions. */
size_t stet_glob_len(const char *pattern);
/* Appends the pattern for people: "src/x*.c, !src/gen.c". */
void stet_glob_show(const char *pattern, stet_buf *out);
bool stet_glob_is(const char *text); /* does it contain a wildcard that is not escaped? */
/* Checks a pattern: relative, no part is `.` or `..` or empty, brackets are closed. */
STET_CHECKED stet_status stet_glob_check(const char *pattern, stet_error *err);
bool stet_glob_match(const char *pattern, const char *path);
/* Could something below directory `dir` ("" is the top) match? For skipping directories. */
bool stet_glob_below(const char *pattern, const char *dir);
/* Length of the directory part before the first part with a wildcard: "src/a" of "src/a/x?.c" is 5; 0 if none. */
size_t stet_glob_prefix(const char *pattern);

#endif
