/* registry.h - all runs of one project, or of all projects, as their state.json files say right now.
 *
 *     stet_registry *reg;
 *     stet_registry_opts opts = {.home = home, .root = root, .scope = STET_SCOPE_HOME};
 *     stet_status status = stet_registry_load(&opts, &reg, &err); // looks at every source; writes and locks nothing
 *     if (status != STET_OK)
 *         return status;
 *     for (size_t i = 0; i < reg->records.len; i++)
 *         printf("%s\n", reg->records.at[i]->id);
 *     stet_registry_free(reg);
 *
 * The registry is derived. index.json holds rows of an earlier look. A row replaces reading the source only if size,
 * inode, modification time and change time of state.json are the same, and if they were old enough at that look that a
 * later write would show. Otherwise, and always with `verify`, the content is read and hashed again. So the state that
 * is shown for a run is always that of its source.
 *
 * Fail closed. A source that is gone is listed in `missing` and is not a record. A source that can't be read, or whose
 * content is not understood, is listed in `unreadable` with the reason; it is not a record either, whatever its row
 * said. A damaged index, overlay, project or list of projects is listed in `problems`; everything else is still shown.
 * Loading itself fails only if there is nothing to start from (no home, no project).
 *
 * stet_registry_refresh does the same and then writes the index: that of the project with STET_SCOPE_REPO, and that of
 * all projects in both cases. It adds the current project to the list of known ones.
 */
#ifndef STET_FLEET_REGISTRY_H
#define STET_FLEET_REGISTRY_H

#include "fleet/index.h"

#define STET_REGISTRY_SCHEMA 1

typedef enum stet_scope { STET_SCOPE_REPO, STET_SCOPE_HOME } stet_scope;
typedef enum stet_fleet_index_status {
    STET_FLEET_INDEX_VALID,
    STET_FLEET_INDEX_STALE,
    STET_FLEET_INDEX_ABSENT
} stet_fleet_index_status;

typedef struct stet_registry_opts {
    const char *home; /* STET_HOME */
    const char *root; /* any path in the current project; NULL: none (then scope must be home) */
    const char *also; /* the root of one more project to look at, listed or not; NULL: none */
    stet_scope scope;
    bool verify;
    bool (*cancelled)(void *context); /* may be NULL */
    void *context;
} stet_registry_opts;

typedef struct stet_unreadable {
    const char *name; /* name of the directory: the id that it should have */
    const char *repo;
    stet_status status;
    const char *reason;
} stet_unreadable;

typedef struct stet_registry_repo {
    const char *root;         /* real path */
    const char *runs_dir;     /* <root>/.stet/runs */
    const char *registry_dir; /* directory of its overlays and index */
    bool present;             /* the project exists */
    stet_value overlays[3];   /* by stet_overlay; empty objects if absent or damaged */
} stet_registry_repo;

typedef struct stet_registry {
    stet_scope scope;
    const char *home, *root; /* root of the current project, or NULL */
    stet_arena arena;
    STET_VEC(stet_registry_repo) repos;   /* sorted by root */
    stet_fleet_records records;           /* sorted by stet_fleet_record_compare */
    STET_VEC(stet_unreadable) unreadable; /* sorted by repo and name */
    stet_value problems;                  /* array of {"repo", "path", "code", "message"} */
    stet_fleet_index index;               /* the stored index */
    stet_fleet_index_status status;
    stet_hash fingerprint;                    /* of the records */
    stet_fleet_records stale, fresh, missing; /* fresh: not in the index yet; missing: rows without a source */
    size_t counts[STET_LIFECYCLES];
    size_t read;               /* number of sources that were read */
    struct stet_arena *arenas; /* of the threads that read */
    size_t arena_count;
} stet_registry;

STET_CHECKED stet_status stet_registry_load(const stet_registry_opts *opts, stet_registry **out, stet_error *err);
STET_CHECKED stet_status stet_registry_refresh(const stet_registry_opts *opts, stet_registry **out, stet_error *err);
void stet_registry_free(stet_registry *reg); /* NULL is fine */

/* In resolve.c: finds for each failed run the later run that mended it. Part of loading. */
void stet_registry_resolve(stet_registry *reg);

const char *stet_fleet_index_status_name(stet_fleet_index_status s);

/* Finds a run by its id, by a unique beginning (at least 6 characters), or by a unique ending (at least 4). If several projects have it, `repo`
 * (NULL: any) decides, otherwise the current project's run wins (`*from` is "repo" or "home"), otherwise it is
 * STET_CONFLICT, with the projects in the details. STET_NOT_FOUND: no such run. STET_CORRUPT, STET_UNSUPPORTED: its
 * state can't be trusted; the message has the reason. `last` (may be NULL) is the row that the index still has of a
 * missing run, otherwise NULL. */
STET_CHECKED stet_status stet_registry_find(const stet_registry *reg, const char *id, const char *repo,
                                            const stet_fleet_record **out, const char **from,
                                            const stet_fleet_record **last, stet_error *err);
/* The problems that concern this project's runs: its overlays, and the directory of its runs. Belongs to the caller. */
stet_value stet_registry_problems_of(const stet_registry *reg, const char *root);
const stet_registry_repo *stet_registry_repo_of(const stet_registry *reg, const char *root);

/* {status, persistedFingerprint, currentFingerprint, staleRuns, newRuns, missingRuns, unreadableRuns, and the number of
 * each}; at most `max` names of each kind (0: all). */
stet_value stet_registry_freshness(const stet_registry *reg, size_t max);
/* {total, queued, running, blocked, completed, failed, archived, interrupted, unreadable} */
stet_value stet_registry_counts(const stet_registry *reg);
stet_value stet_registry_repos(const stet_registry *reg); /* array of roots */
/* The recommended next command. Belongs to the caller. */
stet_value stet_registry_next_action(const stet_registry *reg);

/* Reads the state itself now, whatever the stamps say. */
STET_CHECKED stet_status stet_fleet_record_reread(const stet_fleet_record *r, stet_state *out, stet_error *err);

#endif
