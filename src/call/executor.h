/* executor.h - runs calls: cached, resumable, each once however many ask for it.
 *
 *     stet_executor *x;
 *     stet_status status = stet_executor_open(repo, loop, &opts, &x, &err);
 *     if (status != STET_OK)
 *         return status;
 *     stet_call *c;
 *     stet_call_request request = {.node = node, .cache = true};
 *     status = stet_executor_start(x, &request, ended, ctx, &c, &err);
 *     if (status == STET_OK) {
 *         uv_run(loop, UV_RUN_DEFAULT); // calls ended(ctx, c), once
 *         if (stet_call_state_of(c) == STET_CALL_COMPLETED_OK)
 *             result = stet_call_outcome_of(c)->result;
 *         stet_call_free(c);
 *     }
 *     stet_executor_close(x); // unfinished calls stay in the repository, and can be resumed
 *
 * A call is a node of the repository. Its states are those of call/machine.h. Each change of state is written to a row
 * of the repository (an attempt) before anything is done because of it, so that the next executor continues where one
 * died:
 *
 *   E1. A result is shown only when its objects are in the repository and verified, and its exec record and its pin are
 *       committed. Record, pin and the end of the attempt are one transaction.
 *   E2. While a call is pending there is no exec record. Records are only added.
 *   E2a. A failure that its adapter does not want kept is recorded in the same way, without a pin. If it is worth another
 *       try, the row waits and the adapter is asked again, as often as the budget allows; after the last try the call ends
 *       with that failure. Nobody finds the failure later.
 *   E3. The key of an attempt is the hash of its node; with cache off it is the hash of node and execution.
 *   E4. In one project one executor at a time drives a key: it holds the lock DIR/locks/KEY, which is released when it
 *       dies. Others wait for the lock and look at the pin. Between projects and machines the claim decides
 *       (call/claim.h).
 *   E5. An adapter whose answer was not received is asked again: asking twice does nothing twice.
 *   E6. A row that another process has moved (cancelled) is not moved back.
 *
 * A pinned result whose objects are missing or can't be verified is a cache miss, and is reported to `say`.
 *
 * Everything here belongs to the thread of the loop.
 */
#ifndef STET_EXEC_EXECUTOR_H
#define STET_EXEC_EXECUTOR_H

#include "call/backoff.h"
#include "call/machine.h"
#include "repo/repo.h"

struct uv_loop_s;
typedef struct stet_executor stet_executor;
typedef struct stet_call stet_call;

typedef struct stet_executor_opts {
    const char *root;   /* working directory of adapters: the project */
    const char *dir;    /* locks and logs: .stet/local/calls */
    const char *remote; /* URI of the repository that snapshots go to and results come from; NULL: the project's own */
    stet_backoff backoff;
    int64_t poll_timeout_ms;
    size_t adapters; /* processes at the same time */
    /* Callbacks, each of which may be NULL: a line for people; an adapter's standard error; progress of a call. `c` may
     * be NULL. */
    void (*say)(void *ctx, const char *line);
    void (*log)(void *ctx, stet_call *c, const char *bytes, size_t len);
    void (*progress)(void *ctx, stet_call *c, int64_t done, int64_t total, const char *note);
    void *ctx;
} stet_executor_opts;

/* `repo` stays the caller's and must outlive the executor. Options are copied. */
STET_CHECKED stet_status stet_executor_open(stet_repo *repo, struct uv_loop_s *loop, const stet_executor_opts *opts,
                                            stet_executor **out, stet_error *err);
/* Stops running adapters and runs the loop until they have ended. Frees calls that were not freed. NULL is fine. */
void stet_executor_close(stet_executor *x);

typedef struct stet_call_request {
    stet_hash node;
    bool cache;       /* false: run it even if a result is pinned */
    int64_t attempts; /* maximum number of tries; 0: as configured */
    /* For the whole call; 0: none. The call is cancelled then, unless another caller has begun it: in that case this
     * caller stops waiting. */
    int64_t timeout_ms;
    const char *remote; /* for this call; NULL: the executor's */
    stet_value labels;  /* words for people, to find the attempt by; borrowed; null: none */
} stet_call_request;

/* Called from the loop, once, when the state is terminal; never from within stet_executor_start. */
typedef void stet_call_ended(void *ctx, stet_call *c);

/* Is a result pinned for this node? One look-up in an index; it does not check whether all objects are present. */
STET_CHECKED stet_status stet_executor_pinned(stet_executor *x, stet_hash node, bool *there, stet_hash *exec,
                                              stet_error *err);
STET_CHECKED stet_status stet_executor_start(stet_executor *x, const stet_call_request *r, stet_call_ended *ended,
                                             void *ctx, stet_call **out, stet_error *err);
/* Continues an existing attempt, or reports how it ended. STET_NOT_FOUND: no such attempt. */
STET_CHECKED stet_status stet_executor_resume(stet_executor *x, const char *execution, stet_call_ended *ended,
                                              void *ctx, stet_call **out, stet_error *err);
/* Cancels an attempt, whoever drives it, and has the adapter stop its work; then calls `ended`. STET_CONFLICT: the
 * attempt has already ended. */
STET_CHECKED stet_status stet_executor_cancel(stet_executor *x, const char *execution, stet_call_ended *ended,
                                              void *ctx, stet_call **out, stet_error *err);
/* Frees a call in any state. Nothing durable changes, and `ended` is not called any more. NULL is fine. */
void stet_call_free(stet_call *c);

typedef struct stet_call_outcome {
    stet_hash exec, result;  /* in pinned_hit and completed_*: the record and the DAG */
    bool ok;                 /* the status of the result */
    bool passing;            /* the failure is not pinned */
    const stet_error *error; /* in failed_terminal */
} stet_call_outcome;

stet_call_state stet_call_state_of(const stet_call *c);
const stet_call_outcome *stet_call_outcome_of(const stet_call *c);
stet_hash stet_call_node(const stet_call *c);
const char *stet_call_execution(const stet_call *c); /* "" while there is none */
/* Has its adapter, or that of another executor, reported that the work is under way? Then the work continues without
 * us. */
bool stet_call_submitted(const stet_call *c);

/* The deterministic key of a node. */
stet_hash stet_call_key(stet_hash node);
/* The last error of a failed attempt: {"code","message",...}, or null. Borrowed from the attempt. */
stet_value stet_attempt_error(const stet_attempt *a);
/* Path of the log with the standard error of an execution's adapter. Caller frees. */
char *stet_executor_log_path(const char *dir, const char *execution);

#endif
