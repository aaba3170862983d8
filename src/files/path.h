/* path.h - paths of files as ids of documents.
 *
 * A file of the project is the document `file:PATH`, PATH relative to the project's root, normal (no `.`, `..` or empty
 * parts); one outside it is `file:/ABSOLUTE`
 * or `file:../RELATIVE`, as it was named. Documents' ids are UTF-8 without control characters, file names any
 * bytes: a byte that is part of no valid character, a control character, and `%` are written `%XX` with two upper-case
 * hexadecimal digits for each byte. So every file has exactly one id, and every id that begins so at most one file. */
#ifndef STET_FILES_PATH_H
#define STET_FILES_PATH_H

#include "base/buf.h"

#define STET_FILE_PREFIX "file:"
#define STET_GLOB_PREFIX "glob:"
#define STET_ENV_PREFIX  "env:"

/* The id of a path, appended. */
void stet_path_escape(const char *path, stet_buf *out);
/* The path of what stands after the prefix of an id. False if it is not the escaped form of any path. */
bool stet_path_unescape(const char *text, size_t len, stet_buf *out);
/* "file:..."; caller frees. */
char *stet_file_id(const char *path);
/* The path of an id "file:..."; caller frees. NULL if it is none. */
char *stet_file_of_id(const char *id, size_t len);

/* {"/": {"link@1": {"id": ID}}} */
stet_value stet_file_link(const char *id);

/* `path` as seen from directory `from` (relative to the root; "" is the root itself), made normal: relative to `root`
 * if it lies in it, else absolute or, if it was given so, with `..` at its start. `root` NULL: not known, by text
 * alone. Links are not followed. STET_INVALID for an empty one, for the root itself, and for .stet and what is in it.
 * Caller frees. */
STET_CHECKED stet_status stet_path_normal(const char *root, const char *from, const char *path, char **out,
                                          stet_error *err);

/* A part of a path by its name: `name` the last part, `stem` that without its extension, `ext` the extension with its
 * dot or nothing, `dir` what is before the name, "." if nothing is. Appended; false for any other name. */
bool stet_path_part(const char *path, const char *part, size_t len, stet_buf *out);
/* What stands between braces: the bytes of its NAME, whether it is that alone (*part NULL) or NAME.PART; 0 if it is
 * neither. `has` says which names there are. Names may have dots in them: one that is there as it stands comes first. */
size_t stet_path_place(const char *text, size_t len, bool (*has)(void *ctx, const char *name, size_t len), void *ctx,
                       const char **part);
/* `text` with "{NAME}" and "{NAME.PART}" replaced by the path that `path_of` gives for NAME, or by a part of it.
 * Appended. What it gives none for (NULL) stays as it is. */
void stet_path_fill(const char *text, const char *(*path_of)(void *ctx, const char *name, size_t len), void *ctx,
                    stet_buf *out);

#endif
