/* keeper.h - keeps the claims of running jobs alive while nobody asks for them.
 *
 *     stet_keeper_opts o = {.dir = dir, .root = root, .hub = uri, .lease_ms = lease};
 *     stet_keeper_need(&o); // after a job was submitted that still runs
 *
 * A job runs on under its supervisor when the process that submitted it is gone: a client that was detached, a worker
 * that was killed. Its lease would end although the job is healthy, and somebody else would start it a second time. So
 * there is one keeper for each directory of jobs and hub, in a process of its own, for as long as a job of that
 * directory is under way:
 *
 *   K1. It renews the lease of a claim of this directory while the job runs here, and publishes what the job gave.
 *   K2. A claim of a worker of this directory is the worker's while that process lives. The claim of a dead worker is
 *       taken over with a new attempt number, if its job is known here.
 *   K3. It starts no job. A claim whose job is not known here is left to its lease.
 *   K4. It ends when there is nothing to keep and its worker has ended. Whoever submits a job makes sure that there is
 *       one; a worker does so before its first job.
 */
#ifndef STET_EXEC_KEEPER_H
#define STET_EXEC_KEEPER_H

#include "os/proc.h"

typedef struct stet_keeper_opts {
    const char *dir;  /* of the jobs: .stet/local/calls */
    const char *root; /* the project */
    const char *hub;  /* URI */
    int64_t lease_ms;
    stet_proc_id client; /* a worker, for as long as which it stays; zeros: none */
} stet_keeper_opts;

/* Starts a keeper, unless there is one. A failure is nobody's: the lease ends as if there were none. */
void stet_keeper_need(const stet_keeper_opts *o);
/* The keeper itself. Returns when there is nothing to keep, or when there is another keeper already. */
STET_CHECKED stet_status stet_keeper_run(const stet_keeper_opts *o, stet_error *err);

#endif
