/* command_run.h - one run of a command.
 *
 * It is shared by the kind (command_kind.c), the loop (command.c) and the work on worker threads (command_collect.c).
 * While `working` is set the run belongs to its worker; the loop touches only `cancelled`.
 */
#ifndef STET_MODULE_COMMAND_RUN_H
#define STET_MODULE_COMMAND_RUN_H

#include <uv.h>

#include "base/map.h"
#include "base/vec.h"
#include "module/command.h"
#include "os/file.h"
#include "os/lock.h"
#include "os/watch.h"

typedef struct command_state command_state;

/* One run. */
typedef struct command_run {
    stet_run *run;
    command_state *state;
    command_spec spec;
    command_files found; /* files from the dependency file, beyond the inputs */
    /* Files that its words name and that changed while it ran, and that no other node writes. If they are written a
     * second time and are the same after it, the command does that. If they are not written, somebody edited them, and
     * they are inputs again. If they differ, nobody can tell: they are inputs again, unless the words say that the
     * command may write them. Then they are not. A file that did not
     * exist before, and that the command may write according to its words, is read as the command left it: editing it
     * later makes the command run again. So is a file that the command writes and that stays the same
     * (`touch f; cat f`). */
    command_files suspects;
    /* Files that its words name, and that were written during the last run and stayed the same. If that happens a
     * second time, the command does it, and they stay inputs. */
    command_files touched;
    /* Files of which only attributes changed during the last run. They are watched when it runs again
     * (command_guard.c). */
    command_files attributed;
    stet_watch *guard;   /* or NULL */
    stet_watch *listens; /* watches for files that patterns match, added or removed (command_patterns.c), or NULL */
    bool listening;      /* that was begun for the present command, even if the kernel can't tell */
    bool unsure;      /* something that only words match was there or came, and is not among its inputs: not stored */
    bool rematch;     /* something was added or removed: the patterns must be matched again */
    char *late;       /* a file that matched when the command began, and is not one of its inputs; or NULL */
    stet_names heard; /* added or removed files that only words match */
    stet_names links; /* on the way to what it reads: listened to as well */
    stet_map held;    /* directories on the way to what it reads (command_above.c) */
    command_entry entry; /* a cache hit */
    stet_task *task;
    uv_work_t work;
    const stet_task *told_of; /* the task whose streams are told while it runs, and how many bytes of each were */
    int64_t told[2];
    bool working;    /* on a worker thread */
    bool hit, taken; /* hit: outputs come from an entry; taken: the collected outcome is good */
    bool missed;     /* its entry could not be restored: it is not looked up again, but run */
    bool changed;    /* an input changed: look, commit, run again */
    char *moved;     /* the first such input, for the message; or NULL */
    bool wrote;      /* outputs may have been written for the spec, by a command or from an entry */
    bool removed;    /* one of its outputs was removed while it ran */
    bool acted;      /* files were removed or written for it, for whatever spec */
    bool reconsider; /* it waited, or others have written: evaluate its inputs again before it begins */
    /* Its task had ended before this process found it: anybody may have written to its files since. */
    bool found_ended;
    int64_t launched_ns;   /* by the clock of the file system; 0: not known, another process started it */
    int64_t not_before_us; /* monotonic; wait in the queue until then */
    bool cancelled;
    bool was_cancelled;  /* when the command ended; for the worker thread */
    bool waits_for_node; /* an earlier drive's command of this node must end first */
    bool failing;        /* its command failed, and that is being examined */
    int again;
    int lost;      /* how often its supervisor was killed */
    int unsettled; /* how often a file that its words name differed after two runs */
    stet_hash second;
    stet_value result;
    stet_error error; /* of the collected outcome; STET_FAILED: the command's own failure */
    stet_error warning;
    char *output_path, *error_path;
    stet_task_end end;
} command_run;

struct command_state {
    stet_module_host host;
    char *root, *temp_dir;
    char *lists; /* directory of lists of names */
    stet_files *files;
    /* Path of an output -> name of the node that writes it (owned); for one settling. */
    stet_map claimed;
    stet_persist *persist;
    stet_local *local;
    stet_lock *lock; /* of `files` */
    bool locked;
    bool nudged;       /* something was queued: process it with the next turn of the loop */
    stet_error unseen; /* why the commands of earlier drives can't be found; then nothing may run */
    bool hardlink;
    size_t jobs;
    size_t running; /* commands */
    size_t working; /* runs on worker threads: collecting, restoring */
    size_t failing; /* of these: commands that failed */
    STET_VEC(command_run *) queue, active;
    uv_poll_t *poll; /* for news from the supervisor; NULL: not polling */
    uv_timer_t timer;
    int64_t timing_ms; /* what the timer was set to; -1: it is off */
};

/* The full path of a file of the project, or of an absolute path. Caller frees. */
char *command_full_path(const command_state *s, const char *path);

/* Where an output lies that is given by a path through a link, or NULL. Caller frees. */
char *command_real_output(const char *root, const char *path);

/* Continues from an evaluated spec: takes an earlier outcome, or queues the command. */
void command_step(command_run *c);
void command_run_free(command_run *c);
/* Each ends the run, frees it, and clears the error. Failing records the failure of the action; declining leaves the
 * action outdated (scheduler/module.h). */
void command_fail_run(command_run *c, stet_error *err);
void command_decline_run(command_run *c, stet_error *err);
void command_remove_outputs(command_run *c);
void command_release_claims(command_state *s); /* forgets which node writes which file in this settling */

void command_stop_polling(command_state *s);

/* In command_live.c: tells what a stream of its command has beyond what was told: whole lines, or `all` at its end. */
void command_tell(command_run *c, bool error, bool all);
void command_tell_all(command_state *s); /* of each that runs */

/* In command_notes.c: writes what the inputs were when it began as lines for the journal, and reads them from a task
 * that another process began. */
void command_notes_write(const command_run *c, command_words *out);
void command_notes_read(command_run *c, const stet_task *t);

/* Starts watching the files in c->attributed. */
void command_guard_begin(command_run *c);
/* Was any of them written, moved or replaced since? True if unsure. Ends the watch. */
bool command_guard_heard(command_run *c);
void command_guard_end(command_run *c);

/* In command_above.c. Lists the directories above what it reads; as words for the supervisor: those that are there. */
void command_above_list(command_run *c);
void command_above_paths(const command_run *c, command_words *out);
/* One of them that was moved while the command ran, as far as can be told, or NULL; caller frees. Any thread. */
char *command_above_moved(command_run *c);

/* Begins to watch the directories of the patterns; command_guard_begin calls it. */
void command_patterns_begin(command_run *c);
/* An added or removed path that a pattern can match, or NULL; caller frees. Ends the watching. Any thread. */
char *command_patterns_heard(command_run *c);
void command_patterns_end(command_run *c);
STET_CHECKED stet_status command_patterns_match_again(const command_run *c, stet_error *err);

/* Does the project still lie where it did when this process opened it? STET_IO: it was moved, and paths of this process
 * lead to nothing, or to another project. Any thread. */
STET_CHECKED stet_status command_check_place(const command_run *c, stet_error *err);
/* On a worker thread: restores the outputs of an entry. */
void command_restore_work(uv_work_t *w);
/* On a worker thread, after a command has ended: finds out what it read and wrote, and stores a good outcome. */
void command_collect_work(uv_work_t *w);

#endif
