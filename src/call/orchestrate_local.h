/* orchestrate_local.h - the backend that runs jobs on this machine, under the supervisor of process/local.h.
 *
 *     stet_backend_local *b = stet_backend_local_open(dir, root, false); // .stet/local/calls, the project
 *     stet_orch o = {.hub = hub, .backend = &stet_backend_local_kind, .backend_ctx = b, .owner = me};
 *     stet_orch_answer a;
 *     stet_status status = stet_orch_poll(&o, &job, &a, &err);
 *     stet_backend_local_close(b); // running jobs continue
 *
 * Functions are those of call/function.h. A job runs in a directory of its own (process/local.h), in which there is
 * nothing but the code of the call, as its node holds it: staged from the record, whatever the project has by now. With
 * in-place=true it runs in the project itself, one job at a time, and only if the files there are those that the call
 * was made with.
 *
 * What becomes of a job:
 *
 *   it exits 0, and what it printed and its files are a value      STET_JOB_OK
 *   it exits 0 without one of its files, or with other output      STET_JOB_ERROR, kept like a result
 *   it exits with another status                                   STET_JOB_ERROR
 *   it exits with 75 or a status of retry-on                       STET_JOB_AGAIN
 *   a signal from outside ends it (KILL, TERM, HUP, INT, QUIT)     STET_JOB_AGAIN
 *   another signal ends it, or its timeout or limit does           STET_JOB_FAILED
 *   it can't be started                                            STET_JOB_FAILED; for a worker STET_JOB_AGAIN
 *   this machine can't copy its files                              STET_JOB_AGAIN
 *   its supervisor is killed, or somebody cancels it               STET_JOB_GONE
 *
 * A shell reports the signal that ended its last command as an exit status above 128. For `command=` that counts as the
 * signal.
 *
 * A job that does not succeed has the result {"error":{"message","exit"|"signal"?,"timedOut"?,"stderr","hint"?}} with
 * the end of its standard error. The hint names a file of the project that the job did not have.
 */
#ifndef STET_EXEC_ORCHESTRATE_LOCAL_H
#define STET_EXEC_ORCHESTRATE_LOCAL_H

#include "call/orchestrate.h"

/* What jobs print is kept beside the directory, in the files of stet_backend_local_log, from their start on, until `stet
 * gc` or the next job of the same key. Descriptor 3 of a job is for its progress: each line is {"done","total","note"},
 * all of them optional, or "DONE/TOTAL NOTE". */

typedef struct stet_backend_local stet_backend_local;
extern const stet_backend stet_backend_local_kind;

/* `one_of_many`: other machines take jobs too, so one that can't be started here is worth another try. */
stet_backend_local *stet_backend_local_open(const char *dir, const char *root, bool one_of_many);
void stet_backend_local_close(stet_backend_local *b); /* NULL is fine */
/* How many jobs may run at the same time (0: any number), and the pools with their places ({NAME: N} or null). A job waits
 * under its supervisor until it has its places: slots are those of `dir`, pools those of this user on this machine. A pool
 * that is not there, or is too small, means that the job can't be started. */
void stet_backend_local_limit(stet_backend_local *b, int64_t slots, stet_value pools);
/* Waits until a job that was submitted through this handle has ended, at most timeout_ms. */
void stet_backend_local_wait(stet_backend_local *b, int timeout_ms);
/* Releases a job without ending it: another process of this directory has it now. */
void stet_backend_local_release(stet_backend_local *b, stet_hash key);
#define STET_LOG_MAX ((int64_t)16 << 20) /* so much of a stream is kept after the end */
/* Path of what a job has written: "out", "err" or "progress". Caller frees. */
char *stet_backend_local_log(const char *dir, stet_hash key, const char *stream);
/* The last progress that a job has reported: {"done"?,"total"?,"note"?,"beat"}, null if it never did. `beat` is the time, in
 * UTC. The caller's. */
stet_value stet_backend_local_progress(const char *dir, stet_hash key);
/* Checks a function of this backend. STET_INVALID: the message says what is wrong. */
STET_CHECKED stet_status stet_backend_local_check(const char *function, stet_error *err);

#endif
