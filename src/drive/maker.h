/* maker.h - which node makes a file, and which actions read it: for people who think in files.
 *
 *     char *piece = NULL, *node = NULL;
 *     stet_status status = stet_maker_find(space, branch, root, NULL, "build/app", &piece, &node, &err);
 *     if (status == STET_OK && node)
 *         printf("%s/%s\n", piece, node); // "demo/link"
 *     stet_free(piece);
 *     stet_free(node);
 *
 * A path is relative to the project, normal (files/path.h). What an action has written according to its record comes
 * first; otherwise what nodes declare counts. Of the commands of `each` that never ran nothing is recorded: then the
 * node that has them is the answer.
 */
#ifndef STET_DRIVE_MAKER_H
#define STET_DRIVE_MAKER_H

#include "graph/process.h"
#include "memory/observe.h"

/* `only`: the piece that it must belong to; NULL: any. `*node` is NULL if no node makes it. The caller frees both. */
STET_CHECKED stet_status stet_maker_find(stet_space *space, int64_t branch, const char *root, const char *only,
                                         const char *path, char **piece, char **node, stet_error *err);
/* The same, but only an action that is recorded to have written the file, and still does. */
STET_CHECKED stet_status stet_maker_recorded(stet_space *space, int64_t branch, const char *root, const char *only,
                                             const char *path, char **piece, char **node, stet_error *err);
/* Adds every node of the piece that declares the file, or may: commands of `each` by the node that has them. */
STET_CHECKED stet_status stet_maker_choices(stet_space *space, int64_t branch, const char *root, const char *piece,
                                            const char *path, stet_names *nodes, stet_error *err);
/* Does a node of this graph declare the file, or a directory around it? */
bool stet_maker_in(const stet_process *g, const char *root, const char *path);
/* The actions whose last run read the file, a directory around it, or a pattern that matches it. Each once. */
STET_CHECKED stet_status stet_maker_readers(stet_space *space, int64_t branch, const char *path, stet_numbers *out,
                                            stet_error *err);
/* A word that somebody wrote in directory `cwd` (absolute) as a path of the project. NULL: it is none. Caller frees. */
char *stet_maker_path(const char *root, const char *cwd, const char *word);

#endif
