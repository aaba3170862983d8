/* executor.h - runs calls: cached, resumable, each once however many ask for it.
 *
 *     stet_executor *x;
 *     status = stet_executor_open(repo, loop, &opts, &x, &err);
 *     stet_call *c;
 *     status = stet_executor_start(x, &(stet_call_request){.node = node, .cache = true}, ended, ctx, &c, &err);
 *     uv_run(loop, ...);                               // ended(ctx, c) comes from the loop, once
 *     if (stet_call_state_of(c) == STET_CALL_COMPLETED_OK) use(stet_call_outcome(c)->result);
 *     stet_call_free(c);
 *     stet_executor_close(x);                          // what is under way stays, and can be resumed
 *
 * A call is a node of the repository. Its states are those of exec/machine.h; each change is a row of the repository
 * (an attempt) before anything is done because of it, so that whoever dies is continued by whoever comes next:
 *
 *   E1. A result is surfaced only when its objects are in the repository, verified, and its exec record and its pin are
 *       committed. Record, pin and the end of the attempt are one transaction.
 *   E2. While a call is pending there is no exec record. Records are only added.
 *   E3. The key of an attempt is the hash of its node; with cache off it is the hash of node and execution.
 *   E4. In one project one executor drives a key at a time: it holds the lock DIR/locks/KEY, which dies with it. Others
 *       wait for the lock and look at the pin. Between projects and machines the claim decides (exec/claim.h).
 *   E5. An adapter that was asked and not heard is asked again: asking twice does nothing twice.
 *   E6. A row that somebody else has moved (cancelled) is not moved back.
 *
 * A pinned result whose objects are missing or do not verify is a miss, and `say` is told so.
 *
 * Everything here belongs to the thread of the loop. */
#ifndef STET_EXEC_EXECUTOR_H
#define STET_EXEC_EXECUTOR_H

#include "exec/backoff.h"
#include "exec/machine.h"
#include "exec/repo.h"

struct uv_loop_s;
typedef struct stet_executor stet_executor;
typedef struct stet_call stet_call;

typedef struct stet_executor_opts {
    const char *root;   /* where adapters are started: the project */
    const char *dir;    /* locks and logs: .stet/local/calls */
    const char *remote; /* URI of the repository that snapshots go to and results come from; NULL: the own one */
    stet_backoff backoff;
    int64_t poll_timeout_ms;
    size_t adapters; /* processes at a time */
    /* May be NULL: a line for people; what an adapter said on standard error; how far a call is. `c` may be NULL. */
    void (*say)(void *ctx, const char *line);
    void (*log)(void *ctx, stet_call *c, const char *bytes, size_t len);
    void (*progress)(void *ctx, stet_call *c, int64_t done, int64_t total, const char *note);
    void *ctx;
} stet_executor_opts;

/* `repo` stays the caller's and outlives the executor. Options are copied. */
STET_CHECKED stet_status stet_executor_open(stet_repo *repo, struct uv_loop_s *loop, const stet_executor_opts *opts,
                                            stet_executor **out, stet_error *err);
/* Ends adapters that are being asked and runs the loop until they are gone. Calls that were not freed are. NULL is
 * fine. */
void stet_executor_close(stet_executor *x);

typedef struct stet_call_request {
    stet_hash node;
    bool cache;         /* false: run it whatever is pinned */
    int64_t attempts;   /* how often it is tried before it is given up; 0: as configured */
    int64_t timeout_ms; /* the whole call; 0: none */
    const char *remote; /* of this call; NULL: the executor's */
} stet_call_request;

/* Comes from the loop, once, when the state is terminal; never from within stet_executor_start. */
typedef void stet_call_ended(void *ctx, stet_call *c);

/* Is a result pinned for this node? One look at an index; whether all of it is there is found out by who reads it. */
STET_CHECKED stet_status stet_executor_pinned(stet_executor *x, stet_hash node, bool *there, stet_hash *exec,
                                              stet_error *err);
STET_CHECKED stet_status stet_executor_start(stet_executor *x, const stet_call_request *r, stet_call_ended *ended,
                                             void *ctx, stet_call **out, stet_error *err);
/* Goes on with an attempt that is there, or tells how it ended. STET_NOT_FOUND. */
STET_CHECKED stet_status stet_executor_resume(stet_executor *x, const char *execution, stet_call_ended *ended,
                                              void *ctx, stet_call **out, stet_error *err);
/* Gives an attempt up, whoever drives it, and has the adapter end its work; then `ended`. An attempt that has ended is
 * STET_CONFLICT. */
STET_CHECKED stet_status stet_executor_cancel(stet_executor *x, const char *execution, stet_call_ended *ended,
                                              void *ctx, stet_call **out, stet_error *err);
/* Forgets it, wherever it is; nothing durable changes, and `ended` no longer comes. NULL is fine. */
void stet_call_free(stet_call *c);

typedef struct stet_call_outcome {
    stet_hash exec, result;  /* of pinned_hit and completed_*: the record, and the DAG */
    bool ok;                 /* its status */
    const stet_error *error; /* of failed_terminal */
} stet_call_outcome;

stet_call_state stet_call_state_of(const stet_call *c);
const stet_call_outcome *stet_call_outcome_of(const stet_call *c);
stet_hash stet_call_node(const stet_call *c);
const char *stet_call_execution(const stet_call *c); /* "" while there is none */
/* Has its adapter said that the work is under way, or has somebody else's? Then it goes on without us. */
bool stet_call_submitted(const stet_call *c);

/* The deterministic key of a node. */
stet_hash stet_call_key(stet_hash node);
/* What was last told of an attempt that failed: {"code","message",...}, or null. Borrowed from the attempt. */
stet_value stet_attempt_error(const stet_attempt *a);
/* Path of what the adapter of an execution said. Caller frees. */
char *stet_executor_log_path(const char *dir, const char *execution);

#endif
