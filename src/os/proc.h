/* proc.h - child processes without a shell, and who a process is.
 *
 *     stet_proc_opts o = {.argv = argv, .cwd = dir, .envp = env, .stdin_fd = -1, .stdout_fd = out, .stderr_fd = log,
 * .new_group = true}; stet_proc p; status = stet_proc_spawn(&o, &p, &err); status = stet_proc_wait(&p, timeout_ms,
 * &exit, &err);
 *
 * p.pidfd polls readable when the child has ended: that is how an event loop waits for it. */
#ifndef STET_OS_PROC_H
#define STET_OS_PROC_H

#include <sys/types.h>

#include "base/error.h"

/* A process, told apart from a later one with the same pid. */
typedef struct stet_proc_id {
    int64_t pid;
    uint64_t start; /* clock ticks since boot, from /proc/PID/stat */
    uint64_t boot;  /* first 8 bytes of the kernel's boot id */
} stet_proc_id;

stet_proc_id stet_proc_self(void);
STET_CHECKED stet_status stet_proc_identify(int64_t pid, stet_proc_id *out, stet_error *err);
bool stet_proc_alive(stet_proc_id id); /* a zombie is not, once all of its threads have ended */
stet_value stet_proc_id_value(stet_proc_id id);
bool stet_proc_id_of_value(stet_value v, stet_proc_id *out);

typedef struct stet_proc_opts {
    const char *const *argv;            /* argv[0] is looked up on PATH if it has no slash; NULL-terminated */
    const char *const *envp;            /* NULL: this process's */
    const char *cwd;                    /* NULL: this one's */
    int stdin_fd, stdout_fd, stderr_fd; /* -1: /dev/null. All other descriptors are closed in the child. */
    bool new_group;                     /* its own process group, so that stet_proc_kill reaches its children */
    bool new_session;                   /* detached: setsid; outlives this process */
    uint64_t max_memory, max_cpu_s, max_file_size; /* rlimits; 0: none */
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

/* A program that is not there or not executable is STET_NOT_FOUND or STET_DENIED here, not an exit code later. */
STET_CHECKED stet_status stet_proc_spawn(const stet_proc_opts *opts, stet_proc *out, stet_error *err);
/* Reaps it. STET_BUSY when timeout_ms (negative: for ever) is over. */
STET_CHECKED stet_status stet_proc_wait(stet_proc *p, int timeout_ms, stet_proc_exit *out, stet_error *err);
/* Signals it, or its whole group. No error if it is gone. */
void stet_proc_kill(const stet_proc *p, int signal_number);

/* This machine's random id with the host name it was made under; a mismatch of host name makes a new one. Kept in
 * STET_HOME/machine-id. */
STET_CHECKED stet_status stet_machine_id(const char *stet_home, char out[40], stet_error *err);
/* $STET_HOME, or $XDG_STATE_HOME/stet, or ~/.local/state/stet; STET_INVALID with a hint when none of them is known.
 * Caller frees. */
STET_CHECKED stet_status stet_home_dir(char **out, stet_error *err);

#endif
