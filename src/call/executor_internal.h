/* executor_internal.h - one call, shared by the three files of the executor.
 *
 * executor.c begins and ends calls, executor_loop.c drives them, executor_store.c works with the repository. Private to
 * those three.
 */
#ifndef STET_EXEC_EXECUTOR_INTERNAL_H
#define STET_EXEC_EXECUTOR_INTERNAL_H

#include <uv.h>

#include "base/map.h"
#include "base/vec.h"
#include "call/adapter.h"
#include "call/executor.h"
#include "os/lock.h"
#include "repo/hub.h"

#define STET_EXECUTOR_ADAPTERS 16

typedef struct executor_remote {
    char *uri;
    stet_hub *hub;
} executor_remote;

struct stet_executor {
    stet_repo *repo;
    uv_loop_t *loop;
    char *root, *dir, *own_uri, *remote_uri;
    stet_backoff backoff;
    int64_t poll_timeout_ms;
    size_t adapters, asking;
    int handles; /* timers that the loop has not closed yet */
    bool closing;
    STET_VEC(stet_call *) calls, queue;
    STET_VEC(executor_remote) remotes;
    /* Maps an exec to the index of its outcome: results that were found complete since the last write by anybody. */
    stet_map whole;
    STET_VEC(stet_call_outcome) outcomes;
    int64_t news, asked_us;
    void (*say)(void *ctx, const char *line);
    void (*log)(void *ctx, stet_call *c, const char *bytes, size_t len);
    void (*progress)(void *ctx, stet_call *c, int64_t done, int64_t total, const char *note);
    void *ctx;
};

/* The life of a call in memory. Each state leads to the next one only. */
typedef enum call_life {
    CALL_ACTIVE,
    CALL_ENDED,    /* the state of its machine is terminal; `ended` was not called yet */
    CALL_REPORTED, /* `ended` was called */
    CALL_FREED     /* the caller freed it; kept until its adapter has ended */
} call_life;

typedef enum call_row {
    CALL_ROW_NONE,
    CALL_ROW_TO_RESUME, /* `row.execution` is in the repository, and is to be taken over */
    CALL_ROW_STORED     /* `row` is in the repository */
} call_row;

struct stet_call {
    stet_executor *x;
    stet_call_machine m;
    stet_hash node;
    call_life life;
    call_row row_is;
    bool cache;
    bool published;   /* the snapshot is in the remote */
    bool waited;      /* another process held the lock */
    bool taken_up;    /* a new call goes on with an attempt that was left; nobody has said yet that its job runs */
    bool pin_checked; /* just looked at the pin */
    bool submitted, queued;
    bool stop_work; /* when the call ends, its adapter is asked to stop the work */
    stet_attempt row;
    int stored;       /* the last known state of the row, which a move expects */
    stet_value token; /* token of the row: a string, or null */
    char *function, *remote_uri;
    STET_VEC(stet_hash) inputs;
    stet_value code; /* of the node, or null */
    stet_lock *lock;
    char *lock_path;
    uv_timer_t timer;
    stet_adapter_poll *poll;
    int64_t started_ms, wait_ms;
    int64_t patience_ms; /* of the caller, if the attempt is somebody else's: when to stop waiting; 0: never */
    stet_call_outcome outcome;
    stet_error error;
    stet_call_ended *ended;
    void *ctx;
};

/* In executor.c. */

/* Releases everything; the memory is freed when the loop has closed the timer. No adapter may be running for the call.
 */
void stet_call_bury(stet_call *c);

/* In executor_loop.c. */

/* Does what the state of the call requires, until it has to wait. */
void stet_call_act(stet_call *c);
/* Moves the row, if there is one, and then the state machine. The call may have ended afterwards. */
void stet_call_advance(stet_call *c, stet_call_event event);
/* Sets a member of the row's detail, which is written with the next move. Takes over `v`. */
void stet_call_detail(stet_call *c, const char *key, stet_value v);
/* Starts adapters for calls that wait for a free one. */
void stet_executor_pump(stet_executor *x);
/* The state is terminal: stops what still runs, and has the loop call `ended`. */
void stet_call_finish(stet_call *c);

/* In executor_store.c. */

/* Reads function and inputs of the node, which must be a call. */
STET_CHECKED stet_status stet_call_read_node(stet_call *c, stet_error *err);
/* Is a result pinned and complete? If so, sets the outcome. */
STET_CHECKED stet_status stet_call_look_at_pin(stet_call *c, bool *pinned, stet_error *err);
STET_CHECKED stet_status stet_call_take_lock(stet_call *c, bool *locked, stet_error *err);
void stet_call_drop_lock(stet_call *c); /* also removes its file if this call holds it */
/* Takes over the row of an unfinished attempt. */
void stet_call_adopt(stet_call *c, const stet_attempt *a);
/* Creates the row in state poll_adapter, with its snapshot if the repository is its own remote. With `resuming`: takes
 * over the existing row. */
STET_CHECKED stet_status stet_call_begin(stet_call *c, stet_error *err);
/* The hub that the call is left in; NULL: it is the own repository. */
STET_CHECKED stet_status stet_call_hub(stet_call *c, stet_hub **out, stet_error *err);
/* Publishes the node and everything it names in the remote, behind refs/exec/UUID. */
STET_CHECKED stet_status stet_call_publish_snapshot(stet_call *c, stet_error *err);
/* The attempt has ended: its ref in a shared hub goes, so that refs of finished calls do not pile up there. */
void stet_call_withdraw_snapshot(stet_call *c);
/* Fetches the result, verifies it, and commits record, pin and row. `event` is what it means to the machine: integrated, or
 * again for a failure that is not kept; `next_ms` is the time of the next try then. *moved: another process has moved the
 * row. */
STET_CHECKED stet_status stet_call_integrate(stet_call *c, stet_call_event event, int64_t next_ms, bool *moved,
                                             stet_error *err);
/* Has the attempt ended, or is it about to end, with a failure that is not kept? */
bool stet_call_passing(const stet_attempt *a);
/* Takes over the outcome or error of a finished attempt. */
void stet_call_take_done(stet_call *c, const stet_attempt *a);
void stet_call_take_error(stet_call *c, stet_value error);

/* In executor_hub.c. */

/* Is the call one that workers run, in a hub on a server? Then there is no adapter to ask. */
STET_CHECKED stet_status stet_call_left_in_hub(stet_call *c, bool *out, stet_error *err);
/* Looks at its claim, or cancels it. The caller releases `out`. */
void stet_call_ask_hub(stet_call *c, bool cancel, stet_adapter_reply *out);

#endif
