/* local.h - commands on this machine, run by a supervisor that outlives the process that started it.
 *
 *     stet_local *l;
 *     stet_status status = stet_local_open(exec_dir, &l, &err); // .stet/local/exec
 *     if (status != STET_OK)
 *         return status;
 *     stet_task *t = stet_local_find(l, request.key); // left behind by a drive that died?
 *     if (!t)
 *         status = stet_local_start(l, &request, &t, &err);
 *     struct pollfd ready = {.fd = stet_local_fd(l), .events = POLLIN};
 *     while (status == STET_OK && poll(&ready, 1, -1) > 0)
 *         while ((t = stet_local_next(l)) != NULL)
 *             if (stet_task_exit(t)->state == STET_TASK_ENDED)
 *                 stet_local_collected(l, t); // its outcome is stored: forget it
 *     stet_local_close(l);
 *
 * The supervisor is a small process in a session of its own, one per handle, started with the first command. It starts
 * commands in process groups of their own. It records every start and every end in an append-only journal before it
 * reports them:
 *
 *   DIR/<drive>/journal               one line for each event of command n:
 *     B n key time node                   requested
 *     O n path                            writes this path; one line each
 *     N n text                            a note for the client that continues it; one line each
 *     S n boot stat                       started, as this process; the process writes it before it begins
 *     K n                                 somebody asked to end it: how it ends says nothing about it
 *     P n i size                          it exited 0, and its i-th file to collect is complete in n.fI
 *     M n i status text                   it exited 0, and its i-th file to collect is not there, or could not be copied
 *     L n out err                         sizes of its standard output and error when it ended
 *     E n code signalled timed-out time   ended
 *     F n status time text                could not be started
 *     C n                                 collected; written by the client
 *   DIR/<drive>/alive                 locked by the supervisor for as long as it lives
 *   DIR/<drive>/n.out n.err n.in      standard streams
 *   DIR/<drive>/n.progress            what it writes to descriptor 3, if its output is kept (`keep`)
 *   DIR/<drive>/jobs                  path of the directory JOBS/<drive>, if commands have directories of their own
 *   DIR/<drive>/n.f0 n.f1 ...         the files that were collected when it ended
 *   JOBS/<drive>/n n.tmp              its own directory, and that for temporary files; removed by the supervisor when it
 *                                     has ended
 *   JOBS/<drive>/of                   path of DIR/<drive>: when that is gone, so is this (stet_local_sweep)
 *   DIR/turns, DIR/turn               a lock, and who runs commands now
 *
 * When its client ends, the supervisor stays until its last command has ended. The next client finds each command by
 * its key, running or ended, and continues with it: nothing is lost and nothing runs twice. Lines are written but not
 * synced: the journal outlives processes, and after a power cut there is no process left whose end it could record.
 *
 * Clients that share files take turns in running commands (stet_local_turn). A request that a client sent before it
 * died is not started in the turn of the next client: what that client finds in the journals is complete.
 *
 * A command that exited 0 has its files collected and its own directory removed before its end is recorded. So nobody
 * who asks later can find a file that something else has written meanwhile, and nothing that a process left behind
 * writes afterwards counts: streams are read up to the size that they had at the end.
 *
 * JOBS is a directory of this user outside the project (stet_local_jobs): a program that searches the directories above
 * its own for a repository, packages or settings must not find those of the project, which it was not given.
 *
 * A command whose supervisor was killed too is found by its process identity, ended with everything that it started,
 * and reported as lost when all of that is gone. Collected drives are removed; so is what nobody has collected after 7
 * days, unless it names what it writes: that is known from nowhere else, and whoever takes note of it collects it.
 */
#ifndef STET_EXEC_LOCAL_H
#define STET_EXEC_LOCAL_H

#include "base/buf.h"
#include "base/hash.h"
#include "os/lock.h"
#include "os/proc.h"

typedef struct stet_local stet_local;
typedef struct stet_task stet_task;

/* A file that is written into a command's own directory before it starts. */
typedef struct stet_local_file {
    const char *path;  /* relative, inside the directory */
    const void *bytes; /* NULL: `write` of the request writes them */
    size_t len;
} stet_local_file;

#define STET_SHARE_MAX 4096

/* Places that commands of all supervisors share: `wanted` of `total`, which are locks on files PATH.0, PATH.1 ... Whoever
 * gives another total for a path shares the first ones with the others. */
typedef struct stet_local_share {
    const char *path;
    int64_t total, wanted;
} stet_local_share;

#define STET_LOCAL_HERE "\001stet job\001"

typedef struct stet_local_request {
    stet_hash key;    /* call id */
    const char *node; /* for people, and for finding commands that write the same files */
    const char *const *argv, *const *envp;
    const char *cwd; /* with own_dir: relative to its own directory, and made there; "" is the directory itself */
    /* Run it in a new directory, which has only the staged files and directories in it. An argv[0] that is a relative
     * path with a slash is in it. STET_LOCAL_HERE in argv and envp is its path. TMPDIR leads to a directory that is
     * removed with it, unless envp has one. */
    bool own_dir;
    const char *apart_from; /* the project, outside of which it lies; absolute */
    const stet_local_file *stage;
    size_t stage_count;
    stet_status (*write)(void *ctx, size_t i, int fd, const char *path, stet_error *err); /* bytes of the i-th file */
    void *write_ctx;
    const char *const *stage_dirs; /* NULL: none */
    /* Files that it makes, relative to `cwd`, or NULL: copied when it has exited 0 (stet_task_file). */
    const char *const *collect;
    /* Places that it holds while it runs. It is begun at once, and started when it can have all of them. */
    const stet_local_share *shares;
    size_t share_count;
    /* Paths that it writes, relative to `top`, or NULL. Another command that writes one of them finds this one. If one of
     * them is removed while it runs, its end says so. */
    const char *const *outputs;
    const char *top; /* absolute; NULL: nobody looks whether outputs are removed */
    /* Files and directories that are to stay what they are, absolute, or NULL. If a directory is moved or removed while
     * it runs, or anything is done to a file, or one of them is not there, its end says so. */
    const char *const *held;
    const char *const *notes; /* lines that stet_task_note returns to a client that finds it later, or NULL */
    bool in_turn;             /* start it only in the turn that this client took last */
    const char *input;        /* its standard input; NULL: none */
    /* NULL, or a path: what it writes is also in KEEP.out, KEEP.err and, from descriptor 3, KEEP.progress, from its start
     * on and after it was collected. These files belong to the caller. */
    const char *keep;
    size_t input_len;
    int64_t timeout_ms; /* 0: none */
    uint64_t max_memory, max_cpu_s, max_file_size;
} stet_local_request;

typedef enum stet_task_state {
    STET_TASK_RUNNING,
    STET_TASK_ENDED,   /* `exit` is set */
    STET_TASK_REFUSED, /* could not be started: `status` and `message` say why */
    STET_TASK_LOST     /* nobody knows how it ended */
} stet_task_state;

typedef struct stet_task_end {
    stet_task_state state;
    stet_proc_exit exit;
    bool timed_out;
    bool removed;   /* one of its outputs was removed or moved away while it ran, by itself or by somebody else */
    bool moved;     /* something that is to stay what it is was moved, removed or changed while it ran */
    bool cancelled; /* ended on request, by any client: how it ended says nothing about it */
    int64_t started_ns, ended_ns; /* UTC */
    int64_t out_size, err_size;   /* of its standard streams when it ended; -1: not known */
    stet_status status;
    const char *message; /* if it was refused */
} stet_task_end;

/* Opens the directory and reads the journals of earlier drives. Starts nothing. */
STET_CHECKED stet_status stet_local_open(const char *dir, stet_local **out, stet_error *err);
/* Reads again: drives that began or died since, and the progress of their commands. */
STET_CHECKED stet_status stet_local_look(stet_local *l, stet_error *err);
/* Takes the turn: requests that other clients made in their turns are not started any more. The caller holds the lock
 * under which clients run commands, and looks again after this call. */
STET_CHECKED stet_status stet_local_turn(stet_local *l, stet_error *err);
/* Closes the handle; running commands continue. NULL is fine. */
void stet_local_close(stet_local *l);

/* STET_IO with stet_local_fd below 0 after it: the supervisor was killed before it had the request. Nothing was started,
 * and the next call starts another supervisor. */
STET_CHECKED stet_status stet_local_start(stet_local *l, const stet_local_request *r, stet_task **out, stet_error *err);
/* A command with this key that nobody has collected, of an earlier drive, or of this one if it has ended and has no
 * data; or NULL. It may be lost or cancelled. */
stet_task *stet_local_find(stet_local *l, stet_hash key);
/* A running command of an earlier drive, other than `not`, that conflicts with this node; or NULL. It belongs to the
 * same node, or it writes one of `outputs` (paths, NULL-terminated), something inside one of them, or a directory
 * around one. */
stet_task *stet_local_in_the_way(stet_local *l, const char *node, const char *const *outputs, const stet_task * not );
/* Forgets conflicting commands that have ended, were not collected, and have no data: what they wrote is about to be
 * overwritten. */
void stet_local_discard(stet_local *l, const char *node, const char *const *outputs);

/* All commands that are known. stet_local_at: NULL if it is of this handle, or collected. Collecting one moves the last
 * one to its place: go from the end. */
size_t stet_local_count(const stet_local *l);
stet_task *stet_local_at(stet_local *l, size_t i);
bool stet_local_alone(const stet_local *l); /* is there no other drive at all? One may have been asked for commands only
                                             * just now: take the turn, and look */

int stet_local_fd(stet_local *l); /* readable when a command may have ended; -1 before the first start */
/* Is a command of an earlier drive running? Then call stet_local_next from time to time: no descriptor reports its end.
 */
bool stet_local_adopted(stet_local *l);
/* The next command that ended since the last call; NULL if there is none. */
stet_task *stet_local_next(stet_local *l);
size_t stet_local_running(const stet_local *l); /* started by this handle */
/* Did commands end while a request was sent? Then call stet_local_next: the descriptor does not tell. */
bool stet_local_heard(const stet_local *l);
/* Has the supervisor recorded the request for this command? From then on everybody who looks finds it. Stays false if
 * the supervisor is gone. */
bool stet_local_begun(stet_local *l, stet_task *t);

const stet_task_end *stet_task_exit(const stet_task *t);
/* The i-th note of a command; NULL: there are no more. Borrowed until it is collected. */
const char *stet_task_note(const stet_task *t, size_t i);
void *stet_task_data(const stet_task *t);
/* NULL: nobody waits for it. Otherwise stet_local_next returns it when it has ended, also if it did so before. */
void stet_task_set_data(stet_task *t, void *data);
/* Appends standard output or error to `out`, from its start, at most `max` bytes, with a note about what is left out.
 */
void stet_task_output(const stet_task *t, bool error, size_t max, stet_buf *out);
/* Appends what it has printed since byte `from`, at most `max` bytes, also while it runs. */
void stet_task_output_from(const stet_task *t, bool error, int64_t from, size_t max, stet_buf *out);
/* Path of the file with standard output or error. Caller frees. */
char *stet_task_output_path(const stet_task *t, bool error);
/* The i-th file that was to be collected, when the command has exited 0: its path, which the caller frees. NULL: it was
 * not there or not a regular file (STET_NOT_FOUND, STET_INVALID), or could not be copied (another status). */
char *stet_task_file(const stet_task *t, size_t i, stet_error *err);
/* Ends a command and everything that it started: SIGTERM, and SIGKILL after `grace_ms`. Its end is reported like any
 * other. */
void stet_local_cancel(stet_local *l, stet_task *t, int grace_ms);
void stet_local_cancel_all(stet_local *l, int grace_ms);
/* Forgets a task that is not running, and removes its files. */
void stet_local_collected(stet_local *l, stet_task *t);

/* Path of the own directory of a command; "" if it has none. Caller frees. */
char *stet_task_work_path(const stet_task *t);

/* The directory of this user in which commands get directories of their own: "stet-UID" in /var/tmp, $TMPDIR or /tmp, or
 * "jobs" in the directory of stet's state; the first one that is the user's alone, can have programs in it and does not
 * lie in `apart_from`. $STET_JOBS names another place. Caller frees. */
STET_CHECKED stet_status stet_local_jobs(const char *apart_from, char **out, stet_error *err);
/* Removes directories of commands whose drive is gone, in all these places. Adds their number to `*count`. */
void stet_local_sweep(bool dry_run, int64_t *count);

/* For the supervisor: removes the own directory of a command. */
void stet_local_remove_work(const char *work);
/* For the supervisor: the i-th collected file of command n. Caller frees. */
char *stet_local_file_path(const char *drive, int64_t number, size_t i);

/* For the supervisor: the lock of the turns, and whose turn it is ("": nobody's). */
#define STET_TURN_SIZE 33
STET_CHECKED stet_status stet_local_turns_open(const char *dir, stet_lock **out, stet_error *err);
void stet_local_turn_read(const char *dir, char out[STET_TURN_SIZE]);

/* Signals a command of a drive and everything that it started (stet_proc_end_family). Returns how many there were. */
size_t stet_local_signal(const char *dir, int64_t number, stet_proc_id command, bool *sure, int signal_number);

/* The supervisor itself: serves `fd` until its client is gone and its last command has ended. Returns an exit status.
 */
int stet_supervisor_run(int fd, const char *dir);

/* Path of the program stet-supervise: $STET_SUPERVISE, beside this program, in the prefix, or in PATH; or NULL. Caller
 * frees. */
char *stet_supervisor_path(void);

#endif
