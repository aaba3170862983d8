/* proc.h - child processes without a shell, and the identity of processes.
 *
 *     stet_proc_opts o = {.argv = argv, .cwd = dir, .envp = envp, .new_group = true};
 *     o.stdin_fd = -1; // /dev/null
 *     o.stdout_fd = out_fd;
 *     o.stderr_fd = log_fd;
 *     stet_proc p;
 *     stet_proc_exit ended;
 *     stet_status status = stet_proc_spawn(&o, &p, &err);
 *     if (status == STET_OK)
 *         status = stet_proc_wait(&p, timeout_ms, &ended, &err);
 *
 * p.pidfd polls readable when the child has ended: that is how an event loop waits for it.
 */
#ifndef STET_OS_PROC_H
#define STET_OS_PROC_H

#include <sys/types.h>

#include "base/error.h"

/* Identifies a process, even after its pid was given to another one. */
typedef struct stet_proc_id {
    int64_t pid;
    uint64_t start; /* clock ticks since boot, from /proc/PID/stat */
    uint64_t boot;  /* first 8 bytes of the kernel's boot id */
} stet_proc_id;

stet_proc_id stet_proc_self(void);
STET_CHECKED stet_status stet_proc_identify(int64_t pid, stet_proc_id *out, stet_error *err);
bool stet_proc_alive(stet_proc_id id); /* a zombie is not alive once all of its threads have ended */
stet_value stet_proc_id_value(stet_proc_id id);
bool stet_proc_id_of_value(stet_value v, stet_proc_id *out);

typedef struct stet_proc_opts {
    const char *const *argv;            /* NULL-terminated; argv[0] is looked up in PATH if it has no slash */
    const char *const *envp;            /* NULL: the environment of this process */
    const char *cwd;                    /* NULL: the directory of this process */
    int stdin_fd, stdout_fd, stderr_fd; /* -1: /dev/null. All other descriptors are closed in the child. */
    int extra_fd;                       /* descriptor 3 of the child; 0: none */
    bool new_group;                     /* in a process group of its own, so that stet_proc_kill reaches its children */
    bool new_session;                   /* detached (setsid): it outlives this process */
    uint64_t max_memory, max_cpu_s, max_file_size; /* rlimits; 0: none */
    /* The child writes this to announce_fd, with its line of /proc/PID/stat, before it becomes the program. So even if
     * this process is killed at any moment, the child is found there (stet_proc_announced). NULL: no announcement. */
    const char *announce;
    int announce_fd;
} stet_proc_opts;

typedef struct stet_proc {
    stet_proc_id id;
    int pidfd; /* -1 when not available */
    bool group;
} stet_proc;

typedef struct stet_proc_exit {
    bool signalled;
    int code; /* exit code, or the signal's number */
} stet_proc_exit;

/* The file that would be started for a name, found through PATH of `envp` if the name has no slash; or NULL. Caller
 * frees. */
char *stet_proc_find(const char *name, const char *const *envp, const char *cwd);
/* Starts a child. A missing program is STET_NOT_FOUND here, one that is not executable STET_DENIED: not an exit code
 * later. */
STET_CHECKED stet_status stet_proc_spawn(const stet_proc_opts *opts, stet_proc *out, stet_error *err);
/* Waits for the child and reaps it. STET_BUSY: timeout_ms is over (negative: wait for ever). */
STET_CHECKED stet_status stet_proc_wait(stet_proc *p, int timeout_ms, stet_proc_exit *out, stet_error *err);
/* Signals the child, or its whole group. No error if it has ended. */
void stet_proc_kill(const stet_proc *p, int signal_number);

/* Parses a child's announcement; `boot` is that of the announcing process (stet_proc_self). */
bool stet_proc_announced(const char *text, uint64_t boot, stet_proc_id *out);

/* Signals everything that the leader of a session has started and that still runs: every process of its session or
 * group, every process with a standard stream whose path begins with `held`, and the children of all these. Returns how
 * many there were; with SIGKILL, call it until there are none. A leader with pid 0 is unknown.
 *
 * The number of an ended session is reused some day. So its members are believed only if the leader or a stream
 * confirms one of them, or if `*sure` is set; it is set for the next call then. A process that left the session, has
 * other streams and has lost its parent is not found: that is a daemon.
 */
size_t stet_proc_end_family(stet_proc_id leader, const char *held, bool *sure, int signal_number);

/* This machine's random id, with the host name it was made under; another host name makes a new id. Kept in
 * STET_HOME/machine-id. */
STET_CHECKED stet_status stet_machine_id(const char *stet_home, char out[40], stet_error *err);
/* $STET_HOME, or $XDG_STATE_HOME/stet, or ~/.local/state/stet; STET_INVALID with a hint if none of them is known.
 * Caller frees. */
STET_CHECKED stet_status stet_home_dir(char **out, stet_error *err);

#endif
