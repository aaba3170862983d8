/* leftover.h - files that are followed and that nobody needs any more; among them outputs of commands that are gone.
 *
 *     stet_needs *n;
 *     status = stet_needs_open(project, &n, &err);                    // what graphs name and actions read and write
 *     status = stet_idle_find(n, files, "main", &idle, &err);         // what of the files followed is none of it
 *     status = stet_idle_remove(n, files, &idle.at[i], &gone, &err);  // an output, if it is one and nothing changed
 *     stet_idle_release(&idle);
 *     stet_needs_close(n);
 *
 * An output is removed only if all of this holds; what does not hold is said in `kept`:
 *
 *   L1. its document says that a command wrote it (`made`), and the bytes and mode on disk, read again, are those;
 *   L2. no graph of any space and branch names it, and no pattern of files in one matches it;
 *   L3. no action of any space and branch has read or written it, as far as that is recorded;
 *   L4. it is no part of a directory for which that is so, nor holds a file for which it is;
 *   L5. no node says that it writes it, and none that makes its outputs' names from those of others is due to run;
 *   L6. it lies in the project, is no symbolic link, and no directory with a repository or a project in it;
 *   L7. nobody committed anything since this was found, and no drive runs commands (the caller holds their lock).
 *
 * The record goes after the file: a process that dies in between leaves a record of a file that is not there, which the
 * next scan, or the next time this is done, puts right. */
#ifndef STET_DRIVE_LEFTOVER_H
#define STET_DRIVE_LEFTOVER_H

#include "files/files.h"

typedef struct stet_needs stet_needs;

/* STET_LIMIT: there are so many branches that it can't be told. */
STET_CHECKED stet_status stet_needs_open(stet_project *p, stet_needs **out, stet_error *err);
void stet_needs_close(stet_needs *n); /* NULL is fine */

typedef struct stet_idle {
    char *id;   /* of the document */
    char *path; /* of an output of a command that is gone and that is still there, or was changed; else NULL */
    stet_look look;
    char *kept;   /* why it is not removed, or NULL */
    bool changed; /* it is no longer what the command wrote: it is somebody's own */
} stet_idle;
typedef struct stet_idles {
    stet_idle *at;
    size_t len, cap;
} stet_idles;
/* In the order of ids. Nothing, where the index of files was lost: what it says then proves nothing. */
STET_CHECKED stet_status stet_idle_find(stet_needs *n, stet_files *f, const char *space, bool (*cancelled)(void *ctx),
                                        void *ctx, stet_idles *out, stet_error *err);
void stet_idle_release(stet_idles *idle);
/* Removes one that is not kept, after a last look. STET_CONFLICT: somebody committed meanwhile (L7). */
STET_CHECKED stet_status stet_idle_remove(stet_needs *n, stet_files *f, stet_idle *i, stet_error *err);

#endif
