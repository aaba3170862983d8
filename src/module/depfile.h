/* depfile.h - parses the dependency files that compilers write, in the format of Make.
 *
 *     stet_depfile d = {0};
 *     stet_status status = stet_depfile_parse(text, len, &d, &err);
 *     for (size_t i = 0; i < d.len; i++)
 *         printf("%s\n", d.at[i]);
 *     stet_depfile_release(&d);
 *
 * The text has one or more rules `TARGET...: PREREQUISITE...`, with lines continued by a backslash. `\ ` is a space,
 * `\#` a hash, `$$` a dollar; a backslash before anything else is itself (Windows paths, as gcc and clang write them).
 * Backslashes before a space are halved, as in Make.
 *
 * Some texts mean one thing to Make, another to the compilers that write them, and a third to ninja: `a\:b` is "a:b" or
 * "a\:b", `a\\#b` has one backslash or none, and one at the end of a name may be two. Then the result has both names,
 * one of which is not a file: one name too many costs a look, one too few an edit that is not noticed.
 *
 * The result has the prerequisites of all rules, each once, in their order; targets are not included (the empty rules
 * of -MP add nothing). Bytes beyond ASCII are kept as they are.
 */
#ifndef STET_EXEC_DEPFILE_H
#define STET_EXEC_DEPFILE_H

#include "base/error.h"

#define STET_DEPFILE_MAX_BYTES ((size_t)64 << 20)
#define STET_DEPFILE_MAX_PATH  4096

typedef struct stet_depfile {
    char **at; /* NUL-terminated, at least one byte */
    size_t len, cap;
} stet_depfile;

/* STET_INVALID, with the line: a NUL byte, a rule without a colon, a path that is too long. `d` is empty then. */
STET_CHECKED stet_status stet_depfile_parse(const char *text, size_t len, stet_depfile *d, stet_error *err);
void stet_depfile_release(stet_depfile *d);

#endif
