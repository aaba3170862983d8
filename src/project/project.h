/* project.h - a project: a directory with .stet/ in it.
 *
 *     stet_project *p;
 *     stet_status status = stet_project_find(cwd, &p, &err); // searches upwards; STET_NOT_FOUND hints at `stet init`
 *     if (status != STET_OK)
 *         return status;
 *     char *db = stet_project_path(p, "local/spaces/main.db");
 *     stet_free(db);
 *     stet_project_close(p);
 *
 * Opening reads config.toml and creates nothing. `local = "PATH"` in config.toml moves everything below local/
 * elsewhere (absolute, or relative to the project). Use it if the project lies on a network file system.
 */
#ifndef STET_PROJECT_PROJECT_H
#define STET_PROJECT_PROJECT_H

#include "base/error.h"

#define STET_PROJECT_VERSION 1 /* `version` in config.toml; a larger one is STET_UNSUPPORTED */

typedef struct stet_project stet_project;

/* Creates .stet/ with config.toml and .gitignore in `dir` (which is created if absent). An existing project is left as
 * it is; *created tells which. */
STET_CHECKED stet_status stet_project_init(const char *dir, bool *created, stet_error *err);
STET_CHECKED stet_status stet_project_find(const char *from, stet_project **out, stet_error *err);
/* `root` itself must hold .stet/. */
STET_CHECKED stet_status stet_project_open(const char *root, stet_project **out, stet_error *err);
/* The same project with another directory in place of local/, for callers that must not change anything there. */
STET_CHECKED stet_status stet_project_open_beside(const stet_project *p, const char *local, stet_project **out,
                                                  stet_error *err);
void stet_project_close(stet_project *p);

const char *stet_project_root(const stet_project *p); /* real path, no trailing slash */
/* config.toml as a value; borrowed. */
stet_value stet_project_config(const stet_project *p);
/* A setting by dotted name ("persist.defaults.max_bytes"); null if absent. Borrowed. */
stet_value stet_project_setting(const stet_project *p, const char *dotted);
/* Absolute path of a name below .stet/ ("persist", "runs/ID", "local/repo.db"); honours the redirection of `local/...`.
 * Caller frees. */
char *stet_project_path(const stet_project *p, const char *relative);

/* A project that somebody else made (a clone, an archive) could lead stet out of its own directory: `local`,
 * `persist.defaults.dir_path` and `calls.remote` in config.toml can name any place, and .stet or something in it can be a
 * symbolic link. stet writes and deletes there. So a project that reaches outside is opened only if this user has said
 * on this machine that it may (`stet trust`); otherwise opening it is STET_DENIED. $STET_HOME/trust/ keeps the list of
 * places that were trusted, for each project. If the project reaches another place later, that has to be trusted, too.
 *
 * Finds the project as stet_project_find does, trusted or not, and makes it trusted, not trusted, or leaves it as it is.
 * `*out` is an object: {"root", "trusted", "reaches": [{"what", "where"}]}. */
typedef enum stet_trust { STET_TRUST_SHOW, STET_TRUST_GRANT, STET_TRUST_REVOKE } stet_trust;
STET_CHECKED stet_status stet_project_trust(const char *from, stet_trust what, stet_value *out, stet_error *err);

/* Directories of stet's that lie elsewhere than in .stet/ by name: `local` of config.toml, and what .stet leads to if it
 * is a link. They are known while their project is open. Nothing in them is a file of the project. Paths are absolute.
 * Any thread. */
bool stet_project_has_own(void); /* is there any? */
/* Is it one of them, or in one of them? By name; `leads_to`: where links lead, too, if it exists. */
bool stet_project_is_own(const char *path);
bool stet_project_leads_to_own(const char *path);
/* Does one of them lie in this directory, or is one of them the directory itself? */
bool stet_project_holds_own(const char *path);

#endif
