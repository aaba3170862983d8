/* run_internal.h - the handle of a run, shared by the files that write it.
 *
 * run.c creates, opens and writes. run_tasks.c changes what is written: tasks, feedback, commits. run_driver.c is about
 * the driver: the lock, and requests to its holder. run_kept.c is about what others need to continue or repeat it.
 */
#ifndef STET_FLEET_RUN_INTERNAL_H
#define STET_FLEET_RUN_INTERNAL_H

#include "base/map.h"
#include "fleet/run.h"
#include "os/lock.h"

struct stet_runfile {
    char id[STET_RUN_ID_MAX + 1];
    char *dir, *state_path, *events_path, *cancel_path;
    char *log_path; /* the last path handed out */
    stet_lock *lock;
    stet_value state; /* without the next four, which change often */
    stet_value tasks, feedback, commits, summary;
    stet_value effects;  /* of a run that is continued: {TASK: {"begun", "ms", "stored"}} */
    stet_map task_index; /* id -> position in tasks */
    stet_map told_index; /* id of a task -> position of the first feedback about it */
    stet_buf events;     /* lines not in the file yet */
    bool dirty;
    int64_t written_us, opened_us, cancel_looked_us;
    int64_t failed_us; /* when a failed task last caused an immediate write */
    bool cancelled;
    stet_error failure; /* sticky */
};

stet_value stet_runfile_now(void); /* as text */
/* A string from a caller, which may not be UTF-8 (a user name, a path). */
stet_value stet_runfile_text(const char *s);
const char *stet_runfile_user(void);
bool stet_runfile_good(const stet_runfile *run); /* nothing has failed yet */
/* Something changed; `matters`: write it at once. */
void stet_runfile_changed(stet_runfile *run, bool matters);
void stet_runfile_index_feedback(stet_runfile *run, size_t at); /* indexes the feedback at this position */
void stet_runfile_write_events(stet_runfile *run);              /* now; a failure sticks */
/* run_kept.c. Puts the argument into the state, or into a file beside it. */
STET_CHECKED stet_status stet_runfile_keep_argument(stet_runfile *run, stet_value argument, bool *other,
                                                    stet_error *err);
/* Reads events.jsonl: what effects the run did, and what happened after state.json was last written. */
void stet_runfile_recall(stet_runfile *run);
void stet_runfile_replay(stet_runfile *run, stet_value line); /* one change of a task */
/* Takes driver.lock in `dir` and records the holder in it. STET_BUSY: the message names the holder. */
STET_CHECKED stet_status stet_runfile_lock(stet_runfile *run, const char *dir, const char *actor, stet_error *err);

#endif
