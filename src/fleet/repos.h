/* repos.h - the projects that this user's registry knows: $STET_HOME/registry/repos.json.
 *
 *     stet_value repos;                                     // [{"path","addedAt"}, ...] sorted by path
 *     status = stet_repos_list(home, &repos, &err);         // an absent file is an empty list; reads never write
 *     status = stet_repos_add(home, dir, now_ms, &wait, &root, &added, &err);
 *     status = stet_repos_remove(home, dir, &wait, &path, &err);
 *
 * The file is {"schemaVersion":1,"repos":[{"path","addedAt"}]}. A path is the real path of a project's root: a project
 * reached through a symlink or a subdirectory is the same project, and listed once. Writers replace the file whole,
 * under an exclusive lock on registry/repos.lock. A file that can't be read as that is STET_CORRUPT and left alone; a
 * newer schemaVersion is STET_UNSUPPORTED. */
#ifndef STET_FLEET_REPOS_H
#define STET_FLEET_REPOS_H

#include "base/error.h"

#define STET_REPOS_SCHEMA 1
#define STET_REPOS_MAX    100000

/* How long to wait for the lock, and whether to give up: asked often while waiting, may be NULL. */
typedef struct stet_repos_wait {
    int timeout_ms;
    bool (*cancelled)(void *ctx);
    void *ctx;
} stet_repos_wait;

/* Makes $STET_HOME/registry, where the derived files over all projects lie, for who is about to write one. */
STET_CHECKED stet_status stet_repos_make_home(const char *home, stet_error *err);

/* The array belongs to the caller. */
STET_CHECKED stet_status stet_repos_list(const char *home, stet_value *out, stet_error *err);
/* Adds the project that `dir` lies in; STET_NOT_FOUND if there is none. `*root` (caller frees) is its real path;
 * `*added` false if it was listed already. */
STET_CHECKED stet_status stet_repos_add(const char *home, const char *dir, int64_t now_ms, const stet_repos_wait *wait,
                                        char **root, bool *added, stet_error *err);
/* Removes the project that `dir` is in, or, when nothing is there any more, the entry with exactly this path. Files of
 * the project are not touched. STET_NOT_FOUND when it isn't listed. `*path` (caller frees) is what was removed. */
STET_CHECKED stet_status stet_repos_remove(const char *home, const char *dir, const stet_repos_wait *wait, char **path,
                                           stet_error *err);

#endif
