/* lookout.h - which files a piece follows, and a watch over them during a drive.
 *
 *     stet_status status = stet_lookout_follow(files, space, branch, "sales", &err);
 *
 *     stet_lookout *w = stet_lookout_start(project, "main");   // --watch: on a thread and with handles of its own
 *     stet_lookout_state state = stet_lookout_look(w, &why);   // STET_LOOKOUT_FAILED: the caller must scan
 *     stet_lookout_stop(w);
 *
 * The thread holds the watch of the project (files/watch.h), answers other processes while this one runs commands, and
 * commits what changes: the drive sees that like any commit. If another process is already watching, it waits to take
 * over.
 */
#ifndef STET_DRIVE_LOOKOUT_H
#define STET_DRIVE_LOOKOUT_H

#include "files/files.h"

/* Follows every file, pattern and variable that nodes of the piece name. */
STET_CHECKED stet_status stet_lookout_follow(stet_files *files, stet_space *space, const char *branch,
                                             const char *piece, stet_error *err);

/* The same for all pieces, and for everything that their actions have read: for when it is not known what was followed.
 */
STET_CHECKED stet_status stet_lookout_follow_all(stet_files *files, stet_space *space, const char *branch,
                                                 stet_error *err);

/* Passes the ids of those documents to `each`, some more than once. */
STET_CHECKED stet_status stet_lookout_names(stet_space *space, int64_t branch, const char *piece,
                                            void (*each)(void *ctx, const char *id), void *ctx, stet_error *err);

/* The same for all pieces of the branch. */
STET_CHECKED stet_status stet_lookout_names_all(stet_space *space, int64_t branch,
                                                void (*each)(void *ctx, const char *id), void *ctx, stet_error *err);

/* The declared outputs of all nodes of all pieces of the branch: the paths of `produces` and `depfile` as written, with
 * "{in.stem}" in them if they are derived from other names. `node` is the node of the graph that the command belongs
 * to; for a command of `each` that is another node. */
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
/* If it failed, the reason is put into `why` (may be NULL), once; the caller clears it. */
stet_lookout_state stet_lookout_look(stet_lookout *w, stet_error *why);
void stet_lookout_stop(stet_lookout *w); /* NULL is fine */

#endif
