/* repos.h - the projects that this user's registry knows: $STET_HOME/registry/repos.json.
 *
 *     stet_value repos;                                         // [{"path","addedAt"}, ...] sorted by path
 *     stet_status status = stet_repos_list(home, &repos, &err); // an absent file is an empty list; never writes
 *     if (status == STET_OK)
 *         status = stet_repos_add(home, dir, now_ms, &wait, &root, &added, &err);
 *     if (status == STET_OK)
 *         status = stet_repos_remove(home, dir, &wait, &path, &err);
 *
 * The file is {"schemaVersion":1,"repos":[{"path","addedAt"}]}. A path is the real path of a project's root: a project
 * reached through a symlink or a subdirectory is the same project, and is listed once. Writers replace the whole file
 * under an exclusive lock on registry/repos.lock. A malformed file is STET_CORRUPT and left alone; a newer
 * schemaVersion is STET_UNSUPPORTED.
 */
#ifndef STET_FLEET_REPOS_H
#define STET_FLEET_REPOS_H

#include "base/error.h"

#define STET_REPOS_SCHEMA 1
#define STET_REPOS_MAX    100000

/* How long to wait for the lock, and whether to give up. `cancelled` is called often while waiting, and may be NULL. */
typedef struct stet_repos_wait {
    int timeout_ms;
    bool (*cancelled)(void *ctx);
    void *ctx;
} stet_repos_wait;

/* Creates $STET_HOME/registry, the directory of the derived files over all projects, for a caller that is about to
 * write one. */
STET_CHECKED stet_status stet_repos_make_home(const char *home, stet_error *err);

/* The array belongs to the caller. */
STET_CHECKED stet_status stet_repos_list(const char *home, stet_value *out, stet_error *err);
/* Adds the project that contains `dir`; STET_NOT_FOUND if there is none. `*root` (caller frees) is its real path.
 * `*added` is false if it was already listed. */
STET_CHECKED stet_status stet_repos_add(const char *home, const char *dir, int64_t now_ms, const stet_repos_wait *wait,
                                        char **root, bool *added, stet_error *err);
/* Removes the project that contains `dir` or, if it no longer exists, the entry with exactly this path. Files of the
 * project are not touched. STET_NOT_FOUND: it is not listed. `*path` (caller frees) is what was removed. */
STET_CHECKED stet_status stet_repos_remove(const char *home, const char *dir, const stet_repos_wait *wait, char **path,
                                           stet_error *err);

#endif
