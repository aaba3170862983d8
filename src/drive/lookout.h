/* lookout.h - the files of a piece: which ones are followed, and a watch over them for as long as a drive goes on.
 *
 *     status = stet_lookout_follow(files, space, branch, "sales", &err);
 *
 *     stet_lookout *w = stet_lookout_start(project, "main");     // --watch: on a thread of its own, with handles of
 * its own stet_lookout_state s = stet_lookout_look(w, &why);         // STET_LOOKOUT_FAILED: files must be looked at by
 * hand stet_lookout_stop(w);
 *
 * The thread holds the watch of the project (files/watch.h), answers other processes while this one runs commands, and
 * commits what changes: the drive hears of it as of any commit. Where another process watches already, it waits to take
 * over. */
#ifndef STET_DRIVE_LOOKOUT_H
#define STET_DRIVE_LOOKOUT_H

#include "files/files.h"

/* Follows every file, pattern and variable that nodes of the piece name. */
STET_CHECKED stet_status stet_lookout_follow(stet_files *files, stet_space *space, const char *branch,
                                             const char *piece, stet_error *err);

/* The same for all pieces, and whatever their actions have read: when it is not known what was followed. */
STET_CHECKED stet_status stet_lookout_follow_all(stet_files *files, stet_space *space, const char *branch,
                                                 stet_error *err);

/* The ids of those documents, some more than once. */
STET_CHECKED stet_status stet_lookout_names(stet_space *space, int64_t branch, const char *piece,
                                            void (*each)(void *ctx, const char *id), void *ctx, stet_error *err);

/* Of all pieces of the branch. */
STET_CHECKED stet_status stet_lookout_names_all(stet_space *space, int64_t branch,
                                                void (*each)(void *ctx, const char *id), void *ctx, stet_error *err);

/* What the nodes of all pieces of the branch say that they write: the paths of `produces` and `depfile` as they are
 * written, with "{in.stem}" in them where they are made from other names. `node` is the one of the graph that the
 * command belongs to, which for a command of `each` is not itself. */
STET_CHECKED stet_status stet_lookout_outputs_all(stet_space *space, int64_t branch,
                                                  void (*each)(void *ctx, const char *piece, const char *node,
                                                               const char *path),
                                                  void *ctx, stet_error *err);

typedef struct stet_lookout stet_lookout;
typedef enum stet_lookout_state {
    STET_LOOKOUT_STARTING,
    STET_LOOKOUT_WATCHING,
    STET_LOOKOUT_FAILED
} stet_lookout_state;

stet_lookout *stet_lookout_start(stet_project *project, const char *space);
/* Why it failed is put into `why`, once (the caller clears it); it may be NULL. */
stet_lookout_state stet_lookout_look(stet_lookout *w, stet_error *why);
void stet_lookout_stop(stet_lookout *w); /* NULL is fine */

#endif
