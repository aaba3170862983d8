/* depfile.h - the dependency files that compilers write, in the format of Make.
 *
 *     stet_depfile d = {0};
 *     status = stet_depfile_parse(text, len, &d, &err);
 *     for (size_t i = 0; i < d.len; i++) use(d.at[i]);
 *     stet_depfile_release(&d);
 *
 * One or more rules `TARGET...: PREREQUISITE...`, over lines continued with a backslash. `\ ` is a space, `\#` a hash,
 * `$$` a dollar; a backslash before anything else is itself (Windows paths, as gcc and clang write them). Backslashes
 * before a space are halved, as Make does. Prerequisites of all rules are given, each once, in the order they came;
 * targets are not (the empty rules of -MP add nothing). Bytes beyond ASCII are taken as they are. */
#ifndef STET_EXEC_DEPFILE_H
#define STET_EXEC_DEPFILE_H

#include "base/error.h"

#define STET_DEPFILE_MAX_BYTES ((size_t)64 << 20)
#define STET_DEPFILE_MAX_PATH  4096

typedef struct stet_depfile {
    char **at; /* NUL-terminated, at least one byte */
    size_t len, cap;
} stet_depfile;

/* STET_INVALID names the line; a NUL byte, a rule without a colon, a path that is too long. `d` is empty then. */
STET_CHECKED stet_status stet_depfile_parse(const char *text, size_t len, stet_depfile *d, stet_error *err);
void stet_depfile_release(stet_depfile *d);

#endif
