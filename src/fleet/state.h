/* state.h - reads a run's state.json, whichever program wrote it, and classifies it.
 *
 *     stet_state s;
 *     if (stet_state_read(path, NULL, NULL, &s, &err) == STET_OK) { // validated and migrated
 *         stet_lifecycle l = stet_lifecycle_of(&s.counts);
 *         stet_value tasks = stet_value_get(s.root, "tasks");
 *         printf("%s: %zu tasks\n", stet_lifecycle_name(l), stet_value_count(tasks));
 *         stet_state_release(&s);
 *     }
 *
 * Everything fails closed; the message says what is wrong with which member:
 *
 *   STET_NOT_FOUND    the file is missing
 *   STET_CORRUPT      the file can't be read or is not valid
 *   STET_UNSUPPORTED  a newer schema
 *   STET_LIMIT        the file is too large
 *
 * An unknown status or stage makes the whole run unreadable; it is never guessed.
 *
 * The schema is docs/run-state.schema.json, version 2. Version 1 (an object `workflow` {id, title, app} instead of the
 * members app, workflowId and title) is migrated in memory, and never written back.
 */
#ifndef STET_FLEET_STATE_H
#define STET_FLEET_STATE_H

#include <sys/stat.h>

#include "base/buf.h"
#include "base/hash.h"

#define STET_STATE_VERSION   2
#define STET_STATE_MAX_BYTES ((size_t)32 << 20)
#define STET_STATE_MAX_DEPTH 128
#define STET_RUN_ID_MAX      200

typedef enum stet_task_status {
    STET_TASK_PENDING,
    STET_TASK_RUNNING,
    STET_TASK_COMPLETED,
    STET_TASK_FAILED,
    STET_TASK_SKIPPED,
    STET_TASK_STATUSES
} stet_task_status;

typedef enum stet_stage {
    STET_STAGE_SETUP,
    STET_STAGE_RUNNING,
    STET_STAGE_SETTLING,
    STET_STAGE_VERIFYING,
    STET_STAGE_DONE,
    STET_STAGES
} stet_stage;

/* The states that a record may show. The first five are derived from the source; the others are overlays. */
typedef enum stet_lifecycle {
    STET_LIFE_QUEUED,
    STET_LIFE_RUNNING,
    STET_LIFE_BLOCKED,
    STET_LIFE_COMPLETED,
    STET_LIFE_FAILED,
    STET_LIFE_ARCHIVED,
    STET_LIFE_INTERRUPTED,
    STET_LIFE_RESOLVED,
    STET_LIFECYCLES
} stet_lifecycle;

/* Everything that the classifier looks at. */
typedef struct stet_state_counts {
    uint32_t tasks[STET_TASK_STATUSES];
    uint32_t total;
    uint32_t settle, settled; /* of these: tasks that stand for actions which are only counted, and completed ones */
    uint32_t open_feedback;   /* open or tasked, not resolved */
    uint32_t commits, gated_commits;
} stet_state_counts;

/* Identifies the version of a file that was read. */
typedef struct stet_state_stamp {
    int64_t size, mtime_ns, ctime_ns;
    uint64_t inode;
} stet_state_stamp;

typedef struct stet_state {
    stet_value root;       /* migrated to STET_STATE_VERSION */
    stet_hash fingerprint; /* SHA-256 of the file's bytes */
    stet_state_stamp stamp;
    stet_state_counts counts;
    stet_value failed; /* the first failed task, or null */
    int64_t created_ms, updated_ms;
} stet_state;

const char *stet_task_status_name(stet_task_status s);
bool stet_task_status_of(stet_value v, stet_task_status *out);
const char *stet_stage_name(stet_stage s);
const char *stet_lifecycle_name(stet_lifecycle l);
bool stet_lifecycle_of_name(const char *name, stet_lifecycle *out);

/* [A-Za-z0-9._:-]+, at most STET_RUN_ID_MAX bytes, neither "." nor "..". */
bool stet_run_id_valid(const char *id, size_t len);

/* Classifies a run. The first match wins:
 *   1. running tasks > 0 ^running
 *   2. open feedback > 0 ^blocked
 *   3. failed tasks > 0 ^failed
 *   4. tasks > 0 and all completed ^completed (a skipped task has nothing left to do, and counts as completed)
 *   5. verifier-gated commits > 0, nothing pending ^completed
 *   6. completed tasks > 0 ^running (in progress)
 *   7. otherwise ^queued
 */
stet_lifecycle stet_lifecycle_of(const stet_state_counts *c);

/* Reads, validates and migrates a state. `expected_id` (NULL: any) is the name of the directory: another id in the file
 * is STET_CORRUPT. No symlink is followed, and only a regular file is opened. `scratch` (may be NULL) is reused between
 * calls. */
STET_CHECKED stet_status stet_state_read(const char *path, const char *expected_id, stet_buf *scratch, stet_state *out,
                                         stet_error *err);
/* The same checks at half the cost, for callers that read thousands of files: the tasks are checked and counted, but
 * `tasks` of the root is empty. */
STET_CHECKED stet_status stet_state_survey(const char *path, const char *expected_id, stet_buf *scratch,
                                           stet_state *out, stet_error *err);
/* Like stet_state_read and stet_state_survey, from bytes; the stamp stays zero. */
STET_CHECKED stet_status stet_state_parse(const char *bytes, size_t len, const char *expected_id, stet_state *out,
                                          stet_error *err);
STET_CHECKED stet_status stet_state_parse_survey(const char *bytes, size_t len, const char *expected_id,
                                                 stet_state *out, stet_error *err);
void stet_state_release(stet_state *s);
/* STET_CONFLICT: the run is completed, and its driver came to the end. It is not continued. One that was left between
 * its last task and its end is. */
STET_CHECKED stet_status stet_state_refuse_completed(const stet_state *s, const char *id, stet_error *err);
stet_state_stamp stet_stamp_of(const struct stat *st);
bool stet_stamp_equal(const stet_state_stamp *a, const stet_state_stamp *b);

#endif
