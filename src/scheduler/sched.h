/* sched.h - running what no longer stands: the loop between the planner, the record of past runs and the module kinds.
 *
 *     stet_sched *s;
 *     status = stet_sched_open(project, space, "", &opts, &s, &err);
 *     status = stet_sched_install(s, pattern, "totals", source, set, &installed, &err);   // only if the program
 * changed stet_sched_demand_piece(s, "totals", &err);        // or stet_sched_demand_cell status = stet_sched_settle(s,
 * &report, &err); stet_sched_close(s);
 *
 * Settling runs every live action that is dirty or unknown, until none is left; it ends early with STET_CANCELLED when
 * opts.cancelled says so, after storing what was done. What a settling does not get to stays dirty, durably.
 *
 * Groups. Actions run on the snapshot of a group plus what the group wrote; the group is stored at 10,000 runs or after
 * 20 ms. A member whose reads no longer hold then is dropped and runs again, up to a bound; then it fails with the
 * conflict as its error. An effect runs only after everything before it is stored, under a lock between processes, and
 * only if it is then still dirty in the record: two processes never do one effect twice.
 *
 * Lazy. Opening loads nothing. Settling loads what is dirty or unknown, and whatever that reaches when it changes. What
 * is dirty or unknown is taken up a window at a time, in the order of numbers, which is the order of ranks of a graph
 * that was set up whole; once more than two windows are in memory, actions that ran and are stored go. So a first run
 * of a million actions takes the memory of twenty thousand. Effects, and what is asynchronous, wait until all is taken
 * up.
 *
 * Failures of actions are no failures of settling: they are in the report.
 */
#ifndef STET_SCHEDULER_SCHED_H
#define STET_SCHEDULER_SCHED_H

#include "graph/piece.h"
#include "memory/observe.h"
#include "scheduler/memo.h"
#include "scheduler/module.h"
#include "scheduler/plan.h"

#define STET_SCHED_GROUP_RUNS    10000
#define STET_SCHED_GROUP_MS      20
#define STET_SCHED_MAX_CONFLICTS 10
#define STET_SCHED_MAX_ASYNC     256 /* started and not ended; how many of them really run is their kind's business */

typedef struct stet_sched stet_sched;

typedef enum stet_sched_event_kind {
    STET_SCHED_STARTED,
    STET_SCHED_DONE,
    STET_SCHED_FAILED,
    STET_SCHED_ASIDE,
    STET_SCHED_FLUSHED
} stet_sched_event_kind;

typedef struct stet_sched_event {
    stet_sched_event_kind kind;
    const char *piece, *node; /* NULL for FLUSHED */
    bool effect, verifier, synchronous;
    const stet_error *error; /* of a failure */
    size_t done, queued;     /* runs so far, as far as known still to do */
} stet_sched_event;

typedef struct stet_sched_opts {
    bool persist;      /* false: nothing is recorded, and what was recorded is not looked at */
    bool observe_only; /* reads are recorded, writes not published */
    bool retry_failed;
    bool no_group; /* each run is stored by itself: for tests */
    size_t group_runs;
    int64_t group_ms;
    size_t window; /* how many marks are taken up at a time, and half of how many actions stay in memory; 0: 10,000 */
    void *ctx;
    bool (*cancelled)(void *ctx);                            /* may be NULL */
    void (*event)(void *ctx, const stet_sched_event *event); /* may be NULL */
    int64_t (*now_ms)(void *ctx);                            /* NULL: the monotonic clock */
    /* What an action says while it runs: standard streams of a failed command. May be NULL. */
    void (*log)(void *ctx, const char *node, const char *stream, const char *bytes, size_t len);
    void *files;          /* stet_files *, for commands; NULL: none */
    int jobs;             /* asynchronous actions under way at once; 0: their kind decides */
    bool stop_on_failure; /* when an asynchronous action has failed no other is started; the rest stays dirty */
} stet_sched_opts;

STET_CHECKED stet_status stet_sched_open(stet_project *project, stet_space *space, const char *branch,
                                         const stet_sched_opts *opts, stet_sched **out, stet_error *err);
void stet_sched_close(stet_sched *s);
stet_memo *stet_sched_memo(stet_sched *s);
stet_plan *stet_sched_plan(stet_sched *s);
/* The fingerprint of what runs actions: version of the library and scheduler mode. */
stet_hash stet_sched_runtime(const stet_sched_opts *opts);

typedef struct stet_sched_installed {
    bool created, changed; /* neither: it was there as it is */
    int64_t generation;
    size_t added, altered, gone, kept;
} stet_sched_installed;
/* Makes the piece what the pattern says, in one transaction: nodes that did not change keep their cells, their record
 * and their state. `source` and `set` may be null. */
STET_CHECKED stet_status stet_sched_install(stet_sched *s, stet_pattern *pattern, const char *piece, stet_value source,
                                            stet_value set, stet_sched_installed *out, stet_error *err);
/* Deletes a piece with all it owns. */
STET_CHECKED stet_status stet_sched_delete(stet_sched *s, const char *piece, stet_error *err);

/* What is wanted. A piece: its result and its effects. A cell: what it holds, through links. */
STET_CHECKED stet_status stet_sched_demand_piece(stet_sched *s, const char *piece, stet_error *err);
/* The piece is going to be looked at, but not all of it is wanted: makes sure that what is recorded of it is about this
 * version and this branch. */
STET_CHECKED stet_status stet_sched_touch_piece(stet_sched *s, const char *piece, stet_error *err);
STET_CHECKED stet_status stet_sched_demand_cell(stet_sched *s, const char *id, const char *scope, stet_pathref path,
                                                stet_error *err);

/* Does what is wanted need this action? Asked before settling, and after everything that is wanted was named. */
STET_CHECKED stet_status stet_sched_is_wanted(stet_sched *s, const char *piece_doc, const char *node, bool *wanted,
                                              stet_error *err);

typedef struct stet_sched_report {
    size_t runs;   /* of actions, those that ran twice counted twice */
    size_t ran;    /* actions that ran */
    size_t failed; /* actions of the demanded pieces whose last run failed, in this settling or before; of a piece of
                      which only a part is wanted, those that the part needs */
    size_t failed_now; /* in this settling */
    size_t aside;      /* put aside: they run in a circle */
    size_t left;       /* of the demanded pieces: still dirty or unknown, because nothing that is wanted needs them or
                          because it was stopped first */
    size_t dropped;    /* runs that conflicts undid */
    size_t unchanged;  /* runs that changed nothing */
    size_t effects;    /* runs of effects */
    size_t flushes;
    size_t loaded;       /* actions in memory at the end */
    size_t looked;       /* times that a marked action was taken up, to see whether it is needed */
    size_t total;        /* nodes of the demanded pieces */
    size_t causes[3];    /* runs because unknown, dirty, asked for */
    stet_value problems; /* [{"piece","node","error","cycle"?}], at most 100; the caller releases it */
} stet_sched_report;
STET_CHECKED stet_status stet_sched_settle(stet_sched *s, stet_sched_report *out, stet_error *err);
/* What had failed before the last settling, is wanted, and did not run again because nothing that it read has changed:
 * [{"piece","node","error"}], at most 100, borrowed until the next settling. */
stet_value stet_sched_failed_before(const stet_sched *s);
/* Waits for commits by others, at most so long; true if there were some. For `--watch`. */
STET_CHECKED stet_status stet_sched_wait(stet_sched *s, int timeout_ms, bool *news, stet_error *err);

/* ---- Events ----------------------------------------------------------------------------------------------------
 *
 * An event goes to the handlers of a stream. They run in one transaction: on what they read, made fresh first
 * (preflight), and with the document `piece:NAME:event:ID` required to be absent and made by it. So an event is applied
 * once, however often it is sent and wherever a sender dies. A handler that fails leaves nothing: its error is
 * returned. What the event has changed is settled by whoever runs the piece.
 *
 * `stream` is the name of a stream, of one of its handlers, the id of its cell, or a path into the result that leads to
 * it. "rows[7].add" is that of a child: the child is there if its coordinator says so on what is there now (it runs
 * first, if it does not stand), and STET_NOT_FOUND otherwise. Handlers may send events in their turn (stet_run_send):
 * those are delivered in the same transaction. */
#define STET_EVENT_MAX_ID 200
#define STET_SENT_STREAM  512 /* bytes of the name of a stream that are told */
#define STET_EVENT_DAYS   30  /* how long an event is remembered, unless [scheduler] event_days says otherwise */
typedef struct stet_sched_sent {
    bool applied;      /* false: it had been applied before */
    int64_t seq;       /* of the commit that applied it */
    size_t made_fresh; /* runs of actions before it */
    char stream[STET_SENT_STREAM];
    char id[STET_EVENT_MAX_ID + 1];
} stet_sched_sent;
/* `id` NULL: one is made up. STET_NOT_FOUND: no such piece or stream. STET_CONFLICT: the id was used for another event,
 * or others kept changing what the handler reads. STET_FAILED and others: what a handler said. */
STET_CHECKED stet_status stet_sched_send(stet_sched *s, const char *piece, const char *stream, stet_value event,
                                         const char *id, stet_sched_sent *out, stet_error *err);
/* Removes documents of events that were applied before `before_ms`: those may be applied again if they are sent again.
 * `*count`: how many there are, or were. */
STET_CHECKED stet_status stet_sched_forget_events(stet_space *space, const char *branch, int64_t before_ms,
                                                  bool dry_run, size_t *count, stet_error *err);

/* A value with links followed, as of now: for showing results. The caller releases it. */
STET_CHECKED stet_status stet_sched_resolve(stet_sched *s, stet_value v, stet_value *out, stet_error *err);
/* The value of a cell, links followed. STET_NOT_FOUND. */
STET_CHECKED stet_status stet_sched_get(stet_sched *s, const char *id, const char *scope, stet_pathref path,
                                        stet_value *out, stet_error *err);

#endif
