/* orchestrate.h - one execution key, one job: claims over a repository that callers share, and a backend that runs
 * jobs.
 *
 *     stet_orch o = {.remote = repo, .backend = &stet_backend_local, .backend_ctx = local, .owner = me, .lease_ms =
 * 30000}; stet_orch_answer a; status = stet_orch_poll(&o, &job, &a, &err);        // claim, submit, look: whatever
 * there is to do for this key if (a.state == STET_ORCH_PENDING) ... again later else use(a.result); // a DAG in the
 * remote
 *
 * The states are those of exec/machine.h. Whoever asks first makes the claim (exec/claim.h) and hands the job to the
 * backend; whoever asks later follows the claim as long as its lease lives, and takes it over when it does not. What a
 * job gave is published in the swap that ends its claim: objects, the ref of the execution and the claim in one
 * transaction, and not at all if somebody has taken over meanwhile.
 *
 * With `queue` set nothing runs here: a claim is left for a worker (`stet worker`), and followed.
 *
 * A backend must make submitting idempotent: the same key again finds the job that is there. */
#ifndef STET_EXEC_ORCHESTRATE_H
#define STET_EXEC_ORCHESTRATE_H

#include "exec/claim.h"
#include "exec/machine.h"

#define STET_ORCH_LEASE_MS 30000
#define STET_ORCH_MAX_LOST 5 /* jobs of one claim that vanished, before it counts as failed */

/* What is to be run. */
typedef struct stet_orch_job {
    stet_hash key, node;
    const char *function;
    const stet_hash *inputs;
    size_t input_count;
    const char *execution, *ref; /* of the attempt that asks */
} stet_orch_job;

typedef enum stet_job_status { STET_JOB_RUNNING, STET_JOB_OK, STET_JOB_ERROR, STET_JOB_GONE } stet_job_status;

typedef struct stet_backend {
    /* Starts the job, or finds it. `still_mine` is asked at the last moment before something is started that was not
     * there: STET_CONFLICT from it ends the submission. A job that can't run at all is not an error of this function:
     * it is taken, and ends in STET_JOB_ERROR. */
    stet_status (*submit)(void *ctx, const stet_orch_job *job, stet_repo *remote,
                          stet_status (*still_mine)(void *ctx, stet_error *err), void *mine_ctx, stet_value *identity,
                          stet_error *err);
    /* How is it? For an ended one `*value` is its result or the description of its failure. */
    stet_status (*poll)(void *ctx, const stet_orch_job *job, stet_job_status *status, stet_value *value,
                        stet_error *err);
    void (*cancel)(void *ctx, const stet_orch_job *job);
    /* Its outcome is published: nothing of it is needed any more. */
    void (*forget)(void *ctx, const stet_orch_job *job);
} stet_backend;

typedef struct stet_orch {
    stet_repo *remote;
    const stet_backend *backend;
    void *backend_ctx;
    const char *owner; /* whoever has this name can go on with the job: a machine and a directory, or one process */
    int64_t lease_ms;
    bool queue;
} stet_orch;

typedef struct stet_orch_answer {
    stet_orch_state state; /* PENDING, DONE_OK or DONE_ERROR */
    stet_hash result;
    stet_claim_state claim;
    int64_t attempt;
    bool mine; /* its owner is the one that asks */
} stet_orch_answer;

/* STET_CANCELLED: the execution that asks has given it up. */
STET_CHECKED stet_status stet_orch_poll(stet_orch *o, const stet_orch_job *job, stet_orch_answer *out, stet_error *err);
/* The execution gives the call up: the job is ended if it was started for it, and later polls of the execution are
 * STET_CANCELLED. Others who want the same call run it again. */
STET_CHECKED stet_status stet_orch_cancel(stet_orch *o, const stet_orch_job *job, stet_error *err);

/* ---- For workers ---- */

/* What the claims of a repository hold for a worker: keys that are queued, or owned with a lease that has run out. At
 * most `limit` of them, into a vector from malloc (free). `*live`: are there others under way? */
STET_CHECKED stet_status stet_orch_open_work(stet_repo *remote, size_t limit, stet_hash **keys, size_t *count,
                                             bool *live, stet_error *err);
/* The job that a claim describes. The caller's: stet_orch_held_release. */
typedef struct stet_orch_held {
    stet_orch_job job;
    stet_hash *inputs;
    char *function, *execution, *ref;
} stet_orch_held;
STET_CHECKED stet_status stet_orch_job_of(const stet_claim *c, stet_hash key, stet_orch_held *out, stet_error *err);
void stet_orch_held_release(stet_orch_held *h);

#endif
