/* path.h - paths of files as ids of documents.
 *
 * A file of the project is the document `file:PATH`. PATH is relative to the project's root and normal (no `.`, `..` or
 * empty parts). A file outside the project is `file:/ABSOLUTE` or `file:../RELATIVE`, as it was named.
 *
 * Ids of documents are UTF-8 without control characters, but file names may be any bytes. So a byte that is not part of
 * a valid character, a control character, and `%` are percent-escaped, with two upper-case hexadecimal digits for each
 * byte. Every file has exactly one id, and every such id at most one file.
 */
#ifndef STET_FILES_PATH_H
#define STET_FILES_PATH_H

#include "base/buf.h"

#define STET_FILE_PREFIX    "file:"
#define STET_GLOB_PREFIX    "glob:"
#define STET_ENV_PREFIX     "env:"
#define STET_PLACE_VARIABLE "PROJECT=path" /* env:PROJECT=path: the location of the project */
#define STET_PATH_VARIABLE  "PATH="        /* env:PATH=NAME: which file PATH finds for a program */
#define STET_WAY_VARIABLE   "WAY="         /* env:WAY=DIRECTORY: where it leads through links (stet_path_detour) */

/* Appends the escaped form of a path. */
void stet_path_escape(const char *path, stet_buf *out);
/* The path of an id, without its prefix. False: not the escaped form of any path. */
bool stet_path_unescape(const char *text, size_t len, stet_buf *out);
/* "file:..."; caller frees. */
char *stet_file_id(const char *path);
/* The path of an id "file:..."; caller frees. NULL: not such an id. */
char *stet_file_of_id(const char *id, size_t len);

/* {"/": {"link@1": {"id": ID}}} */
stet_value stet_file_link(const char *id);

/* Normalises `path`, as seen from directory `from` (relative to the root; "" is the root itself). The result is
 * relative to `root` if it lies in it; otherwise absolute or, if it was given like that, with `..` at its start. `root`
 * NULL: not known, by text alone. Links are not followed. STET_INVALID: empty, the root itself, or a file of
 * stet's (.stet, and stet_project_is_own). Caller frees. */
STET_CHECKED stet_status stet_path_normal(const char *root, const char *from, const char *path, char **out,
                                          stet_error *err);

/* The same for a path that an author or a program wrote, with what the kernel takes it for: behind a link ".." is
 * another directory than the text says. */
STET_CHECKED stet_status stet_path_meant(const char *root, const char *from, const char *path, char **out,
                                         stet_error *err);

/* Where the path leads, as the kernel finds it: links and ".." after them are followed, also to what does not exist.
 * `path` need not be normal. The result is relative to the project; NULL if it is outside of it, the project itself, or
 * a cycle of links. Caller frees. */
char *stet_path_real(const char *root, const char *path);
/* The same for a directory: "" is the project itself. */
char *stet_path_real_dir(const char *root, const char *dir);
/* The other name of a path or pattern whose first `n` bytes are directories, with the slash after them, if links lead
 * through these: where they lead, and the rest as it is. NULL: there is none. Caller frees. */
char *stet_path_behind_links(const char *root, const char *path, size_t n);

/* Where a directory leads, if that is not what its path says because of links: relative to the project if it lies in
 * it. NULL: it leads where it says, or nowhere. Caller frees. */
char *stet_path_detour(const char *root, const char *dir);
/* The length of what comes before the last ".." in a path: where that leads decides what the path means. 0: no ".." comes
 * after a name. */
size_t stet_path_before_up(const char *path);

/* Does an entry of a directory count for nothing: a repository, or stet's own files? `full` is its absolute path, links
 * in it followed. */
bool stet_path_is_uncounted(const char *full);

/* Appends a part of a path by its name; false for any other name:
 *
 *   name    the last part
 *   stem    the last part without its extension
 *   ext     the extension with its dot, or nothing
 *   dir     what is before the name, "." if nothing is
 */
bool stet_path_part(const char *path, const char *part, size_t len, stet_buf *out);
/* Parses the text between braces: the length of its NAME, whether it is NAME alone (*part NULL) or NAME.PART; 0 if it
 * is neither. `has` says which names exist. Names may contain dots: the whole text is tried as a name first. */
size_t stet_path_place(const char *text, size_t len, bool (*has)(void *ctx, const char *name, size_t len), void *ctx,
                       const char **part);
/* Appends `text` with "{NAME}" and "{NAME.PART}" replaced by the path that `path_of` returns for NAME, or by a part of
 * it. Names for which it returns NULL stay as they are. */
void stet_path_fill(const char *text, const char *(*path_of)(void *ctx, const char *name, size_t len), void *ctx,
                    stet_buf *out);

#endif
