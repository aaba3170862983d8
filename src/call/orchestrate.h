/* orchestrate.h - one execution key, one job: claims in a hub, and a backend that runs jobs.
 *
 *     stet_orch o = {.hub = hub, .backend = &stet_backend_local_kind, .backend_ctx = local};
 *     o.owner = me;
 *     o.lease_ms = STET_ORCH_LEASE_MS;
 *     stet_orch_answer a;
 *     stet_status status = stet_orch_poll(&o, &job, &a, &err); // claims, submits or looks, as this key requires
 *     if (status == STET_OK && a.state != STET_ORCH_PENDING)   // pending: poll again later
 *         result = a.result;                                   // a DAG in the hub
 *
 * The states are those of call/machine.h. The first caller creates the claim (call/claim.h) and submits the job to the
 * backend. Later callers follow the claim as long as its lease is valid, and take it over when it is not. The result of
 * a job is sent to the hub first, and then published by the one swap that ends its claim. Nothing is published if another
 * process has taken over meanwhile. A result that can't be stored (too large, not a value, excised) is published as a
 * failure that says so.
 *
 * A failure that is not kept ends the claim too. Every execution that was following the claim is told of the failure
 * once; whoever comes afterwards starts a new attempt. The executor decides whether to try again (call/executor.h).
 *
 * With `queue` set nothing runs here: a claim is left for a worker (`stet worker`), and followed.
 *
 * Submitting to a backend must be idempotent: submitting the same key again finds the existing job.
 */
#ifndef STET_EXEC_ORCHESTRATE_H
#define STET_EXEC_ORCHESTRATE_H

#include "call/claim.h"
#include "call/machine.h"

#define STET_ORCH_LEASE_MS 30000
#define STET_ORCH_MAX_LOST 5 /* after this many lost jobs the claim counts as failed */

/* The job to run. */
typedef struct stet_orch_job {
    stet_hash key, node;
    const char *function;
    const stet_hash *inputs;
    size_t input_count;
    const char *execution, *ref; /* of the requesting attempt */
    int64_t tries;               /* how many failures for now this execution was told about */
    int64_t attempt;             /* of the claim; set where a backend is given the job to run */
    bool fresh;                  /* it was not told that the work is under way: a failure for now is not its own */
} stet_orch_job;

typedef enum stet_job_status {
    STET_JOB_RUNNING,
    STET_JOB_OK,     /* succeeded */
    STET_JOB_ERROR,  /* failed by itself: kept, and shown again to whoever makes the call again */
    STET_JOB_FAILED, /* failed, and says nothing about the next run: shown once, not kept */
    STET_JOB_AGAIN,  /* the same, and worth another try */
    STET_JOB_GONE    /* the backend does not know it */
} stet_job_status;

/* `repo` is where the objects of the call are read: the node and everything that it names. */
typedef struct stet_backend {
    /* Starts the job, or finds it. `still_mine` is called at the last moment before a new job is started: STET_CONFLICT
     * from it ends the submission. A job that can't run at all is not an error of this function: it is accepted, and
     * ends in STET_JOB_FAILED. A job that was started for an earlier attempt, and ended in STET_JOB_FAILED or
     * STET_JOB_AGAIN, was told already: it is started anew. */
    stet_status (*submit)(void *ctx, const stet_orch_job *job, stet_repo *repo,
                          stet_status (*still_mine)(void *ctx, stet_error *err), void *mine_ctx, stet_value *identity,
                          stet_error *err);
    /* The status of a job. If it has ended, `*value` is its result or the description of its failure. */
    stet_status (*poll)(void *ctx, const stet_orch_job *job, stet_repo *repo, stet_job_status *status,
                        stet_value *value, stet_error *err);
    void (*cancel)(void *ctx, const stet_orch_job *job);
    /* The outcome of the job is published: nothing of it is needed any more. */
    void (*forget)(void *ctx, const stet_orch_job *job);
    /* How far a running job says it is: {"done"?,"total"?,"note"?}, or null; the caller's. NULL: nobody knows. */
    stet_value (*progress)(void *ctx, const stet_orch_job *job);
} stet_backend;

typedef struct stet_orch {
    stet_hub *hub;
    const stet_backend *backend;
    void *backend_ctx;
    /* A process with this name can continue the job: a machine and a directory, or one process. */
    const char *owner;
    int64_t lease_ms;
    bool queue;
} stet_orch;

typedef struct stet_orch_answer {
    stet_orch_state state; /* PENDING, DONE_OK or DONE_ERROR */
    stet_hash result;
    stet_claim_state claim;
    int64_t attempt;
    bool mine;        /* the caller owns it */
    bool took;        /* this poll took it; if it is not `mine`, somebody else has it since */
    bool kept, retry; /* of a failure: see stet_job_status */
} stet_orch_answer;

/* STET_CANCELLED: the requesting execution has cancelled the call. */
STET_CHECKED stet_status stet_orch_poll(stet_orch *o, const stet_orch_job *job, stet_orch_answer *out, stet_error *err);
/* How far the job of a call says it is: as its backend says if it is ours, else as its claim says, where its owner notes
 * it. Null: not known. The caller's. */
stet_value stet_orch_progress(stet_orch *o, const stet_orch_job *job);
/* Cancels the call for this execution: the job is stopped if it was started for it, and later polls of the execution
 * are STET_CANCELLED. Others who want the same call run it again. */
STET_CHECKED stet_status stet_orch_cancel(stet_orch *o, const stet_orch_job *job, stet_error *err);

/* Work for a worker: keys that are queued, or whose lease has ended, oldest first. At most `limit` keys. */
STET_CHECKED stet_status stet_orch_open_work(stet_hub *hub, size_t limit, stet_hub_keys *out, stet_error *err);
/* The job that a claim describes. Belongs to the caller: stet_orch_held_release. */
typedef struct stet_orch_held {
    stet_orch_job job;
    stet_hash *inputs;
    char *function, *execution, *ref;
} stet_orch_held;
STET_CHECKED stet_status stet_orch_job_of(const stet_claim *c, stet_hash key, stet_orch_held *out, stet_error *err);
void stet_orch_held_release(stet_orch_held *h);

#endif
