/* command_run.h - one run of a command, shared by the kind (command_kind.c), the loop (command.c) and by what is done
 * on worker threads (command_collect.c). While `working` is set the run belongs to its worker; the loop touches nothing
 * but `cancelled`.
 */
#ifndef STET_MODULE_COMMAND_RUN_H
#define STET_MODULE_COMMAND_RUN_H

#include <uv.h>

#include "base/map.h"
#include "base/vec.h"
#include "module/command.h"
#include "os/lock.h"

typedef struct command_state command_state;

/* One run. */
typedef struct command_run {
    stet_run *run;
    command_state *state;
    command_spec spec;
    command_files found; /* what the dependency file named, beyond the inputs */
    command_entry entry; /* a hit */
    stet_task *task;
    uv_work_t work;
    bool working;    /* on a worker thread */
    bool hit, taken; /* outputs come from an entry; the collected outcome is good */
    bool changed;    /* an input was not what it was: look, commit, again */
    bool cancelled;
    bool was_cancelled;  /* when the command ended; for the worker thread */
    bool waits_for_node; /* an earlier drive's command of this node must end first */
    bool failing;        /* its command ended badly, and that is being looked at */
    int again;
    stet_hash second;
    stet_value result;
    stet_error error; /* of the collected outcome; STET_FAILED: the command's own */
    stet_error warning;
    char *output_path, *error_path;
    stet_task_end end;
} command_run;

struct command_state {
    stet_module_host host;
    char *root, *temp_dir;
    stet_files *files;
    stet_map claimed; /* path of an output -> name of the node that writes it, own; in one settling */
    stet_persist *persist;
    stet_local *local;
    stet_lock *lock;
    bool locked, waited;
    bool rematch; /* a file was made or removed that a pattern matches */
    bool hardlink;
    size_t jobs;
    size_t running; /* commands */
    size_t working; /* on worker threads: collecting, restoring */
    size_t failing; /* of these: commands that ended badly */
    STET_VEC(command_run *) queue, active;
    uv_poll_t poll;
    uv_timer_t timer;
    bool polling, timing;
};

/* Of a file of the project or an absolute one. Caller frees. */
char *command_full_path(const command_state *s, const char *path);

/* From an evaluated spec: an earlier outcome, or the queue. */
void command_step(command_run *c);
void command_run_free(command_run *c);
/* Ends the run, and frees it; clears the error. */
void command_fail_run(command_run *c, stet_error *err);
void command_release_claims(command_state *s); /* which node writes which file, in one settling */

/* On worker threads. The outputs of an entry are put in place. */
void command_restore_work(uv_work_t *w);
/* A command has ended: what does that mean, what did it read and write; a good outcome is stored. */
void command_collect_work(uv_work_t *w);

#endif
