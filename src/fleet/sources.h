/* sources.h - the runs under the runs/ directories of projects: which exist, and what their states say.
 *
 *     stet_sights seen = {0};
 *     stet_status status = stet_sources_look(runs_dir, repo, true, &arena, &seen, &err); // opens no file
 *     stet_source_job jobs[] = {{.runs_dir = runs_dir, .name = "run-1", .root = root}};
 *     stet_sources_read(&opts, jobs, 1, &arenas, &arena_count); // reads the files, in threads
 *     stet_vec_release(&seen);
 *
 * If the file system does not have the files in memory, thousands of small files cost waiting, not work: then many
 * threads wait at the same time. If it has, more threads than processors do not help.
 *
 * Nothing is written or locked. The failure of one source concerns that source alone, and is recorded in its sight or
 * job.
 */
#ifndef STET_FLEET_SOURCES_H
#define STET_FLEET_SOURCES_H

#include "base/vec.h"
#include "fleet/record.h"

/* What a look at one directory under runs/ found. */
typedef struct stet_sight {
    const char *name;
    uint32_t repo; /* the caller's number of the project */
    stet_status status;
    const char *reason; /* if the status is not STET_OK: why it is not a run */
    stet_state_stamp stamp;
    uint64_t place; /* inode of the directory: sources are read in the order in which they lie on the disk */
} stet_sight;

typedef STET_VEC(stet_sight) stet_sights;

/* Adds a sight of each directory under `runs_dir` except unfinished ones ("~new.*"). Names lie in `arena`. If
 * `runs_dir` does not exist, nothing is added. Fails only if the directory can't be read; the sights so far are kept.
 * Without `stamps` the files themselves are not looked at: for callers that will read them all anyway. */
STET_CHECKED stet_status stet_sources_look(const char *runs_dir, uint32_t repo, bool stamps, stet_arena *arena,
                                           stet_sights *out, stet_error *err);

/* A source to read. */
typedef struct stet_source_job {
    const char *name, *runs_dir, *root; /* root: that of its project */
    uint32_t repo;
    stet_fleet_record *row;    /* the caller's */
    stet_fleet_record *record; /* the result; NULL: see status and reason */
    stet_status status;        /* STET_OK without a record: cancelled before it was read */
    const char *reason;
} stet_source_job;

typedef struct stet_sources_opts {
    int64_t
        /* When the sources were looked at. A file written shortly before that may be written again without a visible
         * change. */
        started_ns;
    bool (*cancelled)(void *context); /* may be NULL; called by any thread */
    void *context;
} stet_sources_opts;

/* Reads the sources. Records and reasons lie in new arenas, which belong to the caller. */
void stet_sources_read(const stet_sources_opts *opts, stet_source_job *jobs, size_t count, stet_arena **arenas,
                       size_t *arena_count);

#endif
