/* local.h - commands on this machine, run by a supervisor that outlives whoever started it.
 *
 *     stet_local *l;
 *     status = stet_local_open(exec_dir, &l, &err);                    // .stet/local/exec
 *     stet_task *t = stet_local_find(l, key, &ended);                  // left behind by a drive that died?
 *     if (!t) status = stet_local_start(l, &request, &t, &err);
 *     poll(stet_local_fd(l)) ...
 *     while ((t = stet_local_next(l)) != NULL) use(stet_task_exit(t));
 *     stet_local_collected(l, t);                                      // its outcome is stored: forget it
 *     stet_local_close(l);
 *
 * The supervisor is a small process of its own session, one per handle, started with the first command. It starts
 * commands in process groups of their own and writes down every start and every end, before it tells anybody, in an
 * append-only journal:
 *
 *     DIR/<drive>/journal    B n key time node      asked for
 *                            S n pid start boot     started, as this process
 *                            E n code signalled timed-out time     ended
 *                            F n status time text   could not be started
 *                            C n                    collected: written by the client
 *     DIR/<drive>/alive      locked by the supervisor for as long as it lives
 *     DIR/<drive>/n.out n.err n.in      standard streams
 *
 * When its client goes away it stays until its last command has ended. The next client finds each command by its key,
 * running or ended, and goes on with it: nothing is lost and nothing runs twice. Lines are written and not synced: the
 * journal outlives processes, and after a power cut there is no process whose end it could tell.
 *
 * A command whose supervisor was killed too is found by its process identity, ended with its group, and reported as
 * lost. Collected drives are removed; what nobody has collected after 7 days is, too. */
#ifndef STET_EXEC_LOCAL_H
#define STET_EXEC_LOCAL_H

#include "base/buf.h"
#include "base/hash.h"
#include "os/proc.h"

typedef struct stet_local stet_local;
typedef struct stet_task stet_task;

typedef struct stet_local_request {
    stet_hash key;    /* call id */
    const char *node; /* for people and for finding what writes the same files */
    const char *const *argv, *const *envp;
    const char *cwd;
    const char *input; /* its standard input; NULL: none */
    size_t input_len;
    int64_t timeout_ms; /* 0: none */
    uint64_t max_memory, max_cpu_s, max_file_size;
} stet_local_request;

typedef enum stet_task_state {
    STET_TASK_RUNNING,
    STET_TASK_ENDED,   /* `exit` is set */
    STET_TASK_REFUSED, /* it could not be started: `status` and `message` */
    STET_TASK_LOST     /* how it ended is not known */
} stet_task_state;

typedef struct stet_task_end {
    stet_task_state state;
    stet_proc_exit exit;
    bool timed_out;
    int64_t started_ns, ended_ns; /* UTC */
    stet_status status;
    const char *message; /* of a refused one */
} stet_task_end;

/* Looks through the journals of earlier drives. Starts nothing. */
STET_CHECKED stet_status stet_local_open(const char *dir, stet_local **out, stet_error *err);
/* Commands that are running go on without us. NULL is fine. */
void stet_local_close(stet_local *l);

STET_CHECKED stet_status stet_local_start(stet_local *l, const stet_local_request *r, stet_task **out, stet_error *err);
/* A command of an earlier drive with this key that nobody has collected, or NULL. */
stet_task *stet_local_find(stet_local *l, stet_hash key);
/* A running command of an earlier drive of this node, other than `not`, or NULL. */
stet_task *stet_local_find_node(stet_local *l, const char *node, const stet_task * not );

int stet_local_fd(stet_local *l);       /* readable when there may be news; -1 before the first start */
bool stet_local_adopted(stet_local *l); /* is something of an earlier drive running? Then stet_local_next is to be asked
                                           from time to time: no descriptor tells. */
/* The next command that ended since the last call; NULL if none has. */
stet_task *stet_local_next(stet_local *l);
size_t stet_local_running(const stet_local *l); /* of our own */
/* Has the supervisor written down that it was asked for this? From then on everybody who looks finds it. False for ever
 * if the supervisor is gone. */
bool stet_local_begun(stet_local *l, stet_task *t);

const stet_task_end *stet_task_exit(const stet_task *t);
void *stet_task_data(const stet_task *t);
void stet_task_set_data(stet_task *t, void *data);
/* Standard output or error, from its start, at most `max` bytes; what is left out is said. Appended. */
void stet_task_output(const stet_task *t, bool error, size_t max, stet_buf *out);
/* Path of the file. Caller frees. */
char *stet_task_output_path(const stet_task *t, bool error);
/* Ends its process group: SIGTERM, and SIGKILL after `grace_ms`. It is reported like any other end. */
void stet_local_cancel(stet_local *l, stet_task *t, int grace_ms);
void stet_local_cancel_all(stet_local *l, int grace_ms);
/* Forgets a task that is not running, and removes what it left. */
void stet_local_collected(stet_local *l, stet_task *t);

/* The supervisor itself: serves `fd` until its client is gone and its last command has ended. Returns an exit status.
 */
int stet_supervisor_run(int fd, const char *dir);

/* Where the program stet-supervise is: $STET_SUPERVISE, beside this program, in the prefix, or on PATH. Caller frees;
 * NULL. */
char *stet_supervisor_path(void);

#endif
