/* left.h - would a run read what a command that is gone has left behind?
 *
 *     stet_left l = {.run = run, .files = files, .root = root, .may_make = may_make, .may_make_ctx = ctx};
 *     char *left = stet_left_find(&l, "lib"); // or NULL
 *
 * A build from scratch would not have such a file, so what is made of it counts for nothing. Patterns of files do not
 * match it (files.h); whoever reads it otherwise fails, and names it. Not while a node that has not run yet may write
 * it: its reader runs again then.
 */
#ifndef STET_MODULE_LEFT_H
#define STET_MODULE_LEFT_H

#include "files/files.h"
#include "scheduler/module.h"

typedef struct stet_left {
    stet_run *run;
    stet_files *files;
    const char *root;
    bool (*except)(void *ctx, const char *path); /* outputs that do not count; NULL: all do */
    void *ctx;
    bool (*may_make)(void *ctx, const char *path); /* may a node that has not run yet write it? NULL: none does */
    void *may_make_ctx;
} stet_left;

/* The one of its names, and of the links on the way to it, that is left behind; NULL: none is. Caller frees. */
char *stet_left_at(const stet_left *l, const char *path);
/* What is left behind in a directory or, if `pattern`, among what a pattern matches; NULL: nothing. Caller frees. */
char *stet_left_among(const stet_left *l, const char *top, bool pattern);
/* What is left behind at a path, in the directory that it is, or where it and links in it lead; NULL: nothing. Reads the
 * documents that tell, so that the run's action is judged again when something comes or goes there. Caller frees. */
char *stet_left_find(const stet_left *l, const char *path);
/* Says that the run would read it. Reads its documents: the failure holds for as long as it is there. */
stet_status stet_left_fail(const stet_left *l, const char *left, stet_error *err);

#endif
