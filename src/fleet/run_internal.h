/* run_internal.h - the handle of a run, between the files that write it.
 *
 * run.c makes, opens and writes; run_tasks.c changes what is written: tasks, feedback, commits; run_driver.c is about
 * who drives: the lock, and what others may ask. */
#ifndef STET_FLEET_RUN_INTERNAL_H
#define STET_FLEET_RUN_INTERNAL_H

#include "base/map.h"
#include "fleet/run.h"
#include "os/lock.h"

struct stet_runfile {
    char id[STET_RUN_ID_MAX + 1];
    char *dir, *state_path, *events_path, *cancel_path;
    char *log_path; /* the last one handed out */
    stet_lock *lock;
    stet_value state; /* without the four below, which change often */
    stet_value tasks, feedback, commits, summary;
    stet_map task_index; /* id -> position in tasks */
    stet_buf events;     /* lines that are not in the file yet */
    bool dirty;
    int64_t written_us, opened_us, cancel_looked_us;
    bool cancelled;
    stet_error failure; /* sticks */
};

stet_value stet_runfile_now(void); /* as text */
/* A string from whoever calls, which may not be UTF-8 (a user's name, a path). */
stet_value stet_runfile_text(const char *s);
const char *stet_runfile_user(void);
bool stet_runfile_good(const stet_runfile *run); /* nothing has failed yet */
/* Something changed; it is written at once if it matters. */
void stet_runfile_changed(stet_runfile *run, bool matters);
/* Takes driver.lock in `dir` and writes into it who has it. STET_BUSY names who has. */
STET_CHECKED stet_status stet_runfile_lock(stet_runfile *run, const char *dir, const char *actor, stet_error *err);

#endif
