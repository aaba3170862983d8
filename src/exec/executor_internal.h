/* executor_internal.h - one call, shared by those who begin and end it (executor.c), by the loop that drives it
 * (executor_loop.c) and by what it does with the repository (executor_store.c). Private to those three. */
#ifndef STET_EXEC_EXECUTOR_INTERNAL_H
#define STET_EXEC_EXECUTOR_INTERNAL_H

#include <uv.h>

#include "base/map.h"
#include "base/vec.h"
#include "exec/adapter.h"
#include "exec/executor.h"
#include "os/lock.h"

#define STET_EXECUTOR_ADAPTERS 16

typedef struct executor_remote {
    char *uri;
    stet_repo *repo;
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
    stet_map whole; /* exec -> number of its outcome: results that were found to be whole, since somebody last wrote */
    STET_VEC(stet_call_outcome) outcomes;
    int64_t news, asked_us;
    void (*say)(void *ctx, const char *line);
    void (*log)(void *ctx, stet_call *c, const char *bytes, size_t len);
    void (*progress)(void *ctx, stet_call *c, int64_t done, int64_t total, const char *note);
    void *ctx;
};

struct stet_call {
    stet_executor *x;
    stet_call_machine m;
    stet_hash node;
    bool cache;
    bool has_row;   /* `row` is in the repository */
    bool resuming;  /* `row.execution` is, and is to be taken up */
    bool published; /* the snapshot is in the remote */
    bool waited;    /* somebody else held the lock */
    bool looked;    /* at the pin, just now */
    bool submitted, queued;
    bool late;       /* its work is to be ended */
    bool over, told; /* the state is terminal; `ended` was called */
    bool dead;       /* freed; it stays until its adapter has ended */
    stet_attempt row;
    int stored;       /* the state that the row was last seen in: what a move expects */
    stet_value token; /* of the row: a string, or null */
    char *function, *remote_uri;
    STET_VEC(stet_hash) inputs;
    stet_lock *lock;
    char *lock_path;
    uv_timer_t timer;
    stet_adapter_poll *poll;
    int64_t started_ms, wait_ms;
    stet_call_outcome outcome;
    stet_error error;
    stet_call_ended *ended;
    void *ctx;
};

/* executor.c */

/* Gives back all it has; its memory goes when the loop has closed the timer. No adapter may be running for it. */
void stet_call_bury(stet_call *c);

/* executor_loop.c */

/* Does what the state of the call asks for, up to where it has to wait. */
void stet_call_act(stet_call *c);
/* Takes the machine on, with the row if there is one. The call may be over afterwards. */
void stet_call_advance(stet_call *c, stet_call_event event);
/* Sets a member of the row's detail, which is written with the next move. Takes over `v`. */
void stet_call_detail(stet_call *c, const char *key, stet_value v);
/* Adapters for those who wait for one to be free. */
void stet_executor_pump(stet_executor *x);
/* The state is terminal: ends what still runs, and has `ended` called from the loop. */
void stet_call_finish(stet_call *c);

/* executor_store.c */

/* Function and inputs of the node, which must be a call. */
STET_CHECKED stet_status stet_call_read_node(stet_call *c, stet_error *err);
/* Is a result pinned, and is all of it here? Sets the outcome then. */
STET_CHECKED stet_status stet_call_look_at_pin(stet_call *c, bool *pinned, stet_error *err);
STET_CHECKED stet_status stet_call_take_lock(stet_call *c, bool *locked, stet_error *err);
void stet_call_drop_lock(stet_call *c); /* and removes its file, if the call is over */
/* Takes up the row of an attempt that is not done. */
void stet_call_adopt(stet_call *c, const stet_attempt *a);
/* Makes the row, in poll_adapter, with its snapshot where the repository is its own remote. With `resuming`: takes it
 * up. */
STET_CHECKED stet_status stet_call_begin(stet_call *c, stet_error *err);
/* The node and all it names are in the remote, behind refs/exec/UUID. */
STET_CHECKED stet_status stet_call_publish_snapshot(stet_call *c, stet_error *err);
/* Fetches the result, verifies it, and commits record, pin and row. *moved: the row is somebody else's now. */
STET_CHECKED stet_status stet_call_integrate(stet_call *c, bool ok, bool *moved, stet_error *err);
/* Outcome or error of an attempt that is done. */
void stet_call_take_done(stet_call *c, const stet_attempt *a);
void stet_call_take_error(stet_call *c, stet_value error);

#endif
