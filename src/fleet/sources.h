/* sources.h - the states under the runs/ of projects: which there are, and what they say.
 *
 *     stet_sights seen = {0};
 *     stet_sources_look(runs_dir, repo, true, &arena, &seen, &err);    // a look at each, nothing is opened
 *     stet_source_job jobs[] = {{.runs_dir = ..., .name = ...}, ...};
 *     stet_sources_read(&opts, jobs, count, &arenas, &arena_count);    // reads them, in threads
 *
 * Thousands of small files cost waiting, not work, when the file system does not have them in memory: then many threads
 * wait at once. When it has, there is no use for more threads than processors.
 *
 * Writes nothing and locks nothing. One source's failure is that source's, in its sight or job.
 */
#ifndef STET_FLEET_SOURCES_H
#define STET_FLEET_SOURCES_H

#include "base/vec.h"
#include "fleet/record.h"

/* What one look at a directory under runs/ found. */
typedef struct stet_sight {
    const char *name;
    uint32_t repo; /* the caller's number of the project */
    stet_status status;
    const char *reason; /* if the status is not STET_OK: why it is no run */
    stet_state_stamp stamp;
    uint64_t place; /* the directory's inode: sources are looked at in the order in which they lie on the disk */
} stet_sight;

typedef STET_VEC(stet_sight) stet_sights;

/* Adds a sight of each directory under `runs_dir` but half-made ones ("~new.*"). Names lie in `arena`. No such
 * directory: nothing is added. Fails only if the directory can't be read; what was seen till then is there.
 * Without `stamps` the sources themselves are not looked at: for who will read them all anyway. */
STET_CHECKED stet_status stet_sources_look(const char *runs_dir, uint32_t repo, bool stamps, stet_arena *arena,
                                           stet_sights *out, stet_error *err);

/* A source to be read. */
typedef struct stet_source_job {
    const char *name, *runs_dir, *root; /* root: of its project */
    uint32_t repo;
    stet_fleet_record *row;    /* the caller's */
    stet_fleet_record *record; /* the result, or NULL with */
    stet_status status;        /* this; STET_OK means that it was not come to: cancelled */
    const char *reason;
} stet_source_job;

typedef struct stet_sources_opts {
    int64_t
        started_ns; /* when the sources were looked at: what was written shortly before may be written again unseen */
    bool (*cancelled)(void *context); /* may be NULL; asked by any thread */
    void *context;
} stet_sources_opts;

/* Records and reasons lie in new arenas, which are the caller's. */
void stet_sources_read(const stet_sources_opts *opts, stet_source_job *jobs, size_t count, stet_arena **arenas,
                       size_t *arena_count);

#endif
