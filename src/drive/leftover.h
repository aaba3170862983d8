/* leftover.h - finds followed files that nothing needs any more, among them outputs of removed commands.
 *
 *     stet_needs *n;
 *     stet_status status = stet_needs_open(project, &n, &err); // what graphs name and actions read and write
 *     if (status != STET_OK)
 *         return status;
 *     stet_idles idle = {0};
 *     status = stet_idle_find(n, files, "main", cancelled, ctx, &idle, &err); // followed files not among them
 *     for (size_t i = 0; status == STET_OK && i < idle.len; i++)
 *         if (idle.at[i].path && !idle.at[i].kept)
 *             status = stet_idle_remove(n, files, &idle.at[i], &err); // an output, if nothing changed
 *     stet_idle_release(&idle);
 *     stet_needs_close(n);
 *
 * An output is removed only if all of the following hold; otherwise `kept` says which does not:
 *
 *   L1. its document says that a command wrote it (`made`), and the bytes and mode on disk, read again, are those. A
 *       symbolic link is judged by its target alone, and if it leads nowhere the index says `made`;
 *   L2. no graph of another space or branch names it. On the branch whose document says `made` names and patterns do
 *       not count: patterns do not match such files, and commands that name one fail;
 *   L3. no action has written it, according to the record, and none of another space or branch has read it;
 *   L4. it is not part of a directory that an action writes, nor contains a file that an action writes: an action that
 *       reads the directory as a whole would not find it there in a build from scratch;
 *   L5. no node declares it as an output, and no node that derives the names of its outputs from those of others, and
 *       that may write it, is due to run. A run asks the same (stet_output_may_come) before it fails a reader: what a
 *       reader fails for is removed here;
 *   L6. it lies in the project, and is not a directory with a repository or a project in it. Of a symbolic link the
 *       link itself is removed;
 *   L7. nobody committed anything since this was found, and no drive runs commands (the caller holds their lock).
 *
 * The record is removed after the file: a process that dies in between leaves a record of a missing file, which the
 * next scan, or the next cleanup, corrects.
 */
#ifndef STET_DRIVE_LEFTOVER_H
#define STET_DRIVE_LEFTOVER_H

#include "files/files.h"

typedef struct stet_needs stet_needs;

/* STET_LIMIT: there are too many branches to decide. */
STET_CHECKED stet_status stet_needs_open(stet_project *p, stet_needs **out, stet_error *err);
void stet_needs_close(stet_needs *n); /* NULL is fine */

typedef struct stet_idle {
    char *id; /* of the document */
    /* The path, for an output of a removed command that still exists or was changed; otherwise NULL. */
    char *path;
    stet_look look; /* as it was made, or if `path` is NULL as it was last seen */
    char *kept;     /* the reason why it is not removed, or NULL */
    bool changed;   /* it is no longer what the command wrote: a user's own file */
    bool matched;   /* a pattern of files matches its name, */
    bool awaited;   /* or a node names or reads it, and fails as long as it is there */
    bool declared;  /* a node declares it as an output */
} stet_idle;
typedef struct stet_idles {
    stet_idle *at;
    size_t len, cap;
} stet_idles;
/* Finds idle files, in the order of ids. If the index of files was lost, finds nothing, because the index proves
 * nothing then. */
STET_CHECKED stet_status stet_idle_find(stet_needs *n, stet_files *f, const char *space, bool (*cancelled)(void *ctx),
                                        void *ctx, stet_idles *out, stet_error *err);
void stet_idle_release(stet_idles *idle);
/* Removes an output that is not kept, after a last look. STET_CONFLICT: somebody committed meanwhile (L7). */
STET_CHECKED stet_status stet_idle_remove(stet_needs *n, stet_files *f, stet_idle *i, stet_error *err);

/* For a file that no action is recorded to write: is there a node on this branch that declares it, or a directory that
 * takes it in, as an output? Or one that derives the names of its outputs from others, that can write it, and that is
 * due to run? True if unsure. `path` is relative to `root`. */
bool stet_output_may_come(stet_space *space, int64_t branch, const char *root, const char *path);

#endif
