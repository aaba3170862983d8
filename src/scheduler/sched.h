/* sched.h - runs what is out of date: the loop between the planner, the record of past runs and the module kinds.
 *
 *     stet_sched *s;
 *     stet_status status = stet_sched_open(project, space, "", &opts, &s, &err);
 *     if (status != STET_OK)
 *         return status;
 *     status = stet_sched_install(s, pattern, "totals", source, set, &installed, &err); // only if the program changed
 *     if (status == STET_OK) // or stet_sched_demand_cell
 *         status = stet_sched_demand_piece(s, "totals", &err);
 *     if (status == STET_OK)
 *         status = stet_sched_settle(s, &report, &err);
 *     stet_sched_close(s);
 *
 * Settling runs every live action that is dirty or unknown, until none is left. It ends early with STET_CANCELLED when
 * opts.cancelled returns true, after storing what was done. What a settling does not get to stays dirty, durably.
 *
 * Groups. Actions run on the snapshot of a group plus what the group wrote; the group is stored after 10,000 runs or 20
 * ms. A member whose reads no longer hold then is dropped and runs again, a limited number of times; then it is put
 * aside, still outdated, and the report has the conflict. An effect runs only after everything before it is stored,
 * under a lock between processes, and only if it is then still dirty in the record: two processes never perform one
 * effect twice.
 *
 * Lazy. Opening loads nothing. Settling loads dirty and unknown actions, and whatever they reach when they change. They
 * are loaded a window at a time, in the order of numbers, which is the order of ranks of a graph that was set up as a
 * whole. Once more than two windows are in memory, actions that ran and are stored are unloaded. So a first run of a
 * million actions takes the memory of twenty thousand. Effects and asynchronous actions wait until everything was
 * loaded once.
 *
 * Failures of actions do not fail the settling: they are in the report.
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
#define STET_SCHED_MAX_ASYNC     256 /* started and not ended; their kind decides how many really run */

typedef struct stet_sched stet_sched;

typedef enum stet_sched_event_kind {
    STET_SCHED_STARTED, /* an asynchronous one waits until it says that it works */
    STET_SCHED_WORKS,
    STET_SCHED_WAITS,
    STET_SCHED_DONE,
    STET_SCHED_FAILED,
    STET_SCHED_ASIDE,     /* still outdated, and not tried again in this settling; `error` says why */
    STET_SCHED_CANCELLED, /* started and cancelled: nothing is recorded */
    STET_SCHED_FLUSHED
} stet_sched_event_kind;

typedef struct stet_sched_event {
    stet_sched_event_kind kind;
    const char *piece, *node; /* NULL for FLUSHED */
    bool effect, verifier, synchronous;
    const stet_error *error; /* of a failure */
    size_t done, queued;     /* runs so far, and known actions still to run */
} stet_sched_event;

/* Where actions of a space run. */
typedef struct stet_sched_place {
    void *files; /* stet_files *, or NULL */
    stet_space *space;
    int64_t branch;
} stet_sched_place;

typedef struct stet_sched_opts {
    bool persist; /* false: nothing is recorded, and existing records are ignored */
    /* Computations run: their reads are recorded, their writes are not published; nothing else starts. */
    bool observe_only;
    bool retry_failed;
    bool no_group; /* store each run by itself: for tests */
    size_t group_runs;
    int64_t group_ms;
    /* How many marks are loaded at a time, and half of how many actions stay in memory; 0: 10,000. */
    size_t window;
    void *ctx;
    bool (*cancelled)(void *ctx);                            /* may be NULL */
    void (*event)(void *ctx, const stet_sched_event *event); /* may be NULL */
    int64_t (*now_ms)(void *ctx);                            /* NULL: the monotonic clock */
    /* What an action printed, whole, at its end. May be NULL. */
    void (*log)(void *ctx, const char *node, const char *stream, const char *bytes, size_t len);
    /* The next part of that while it goes on, for streams that have parts (stet_run_say). May be NULL. */
    void (*say)(void *ctx, const char *node, const char *stream, const char *bytes, size_t len);
    void *files; /* stet_files *, for commands; NULL: none */
    /* The same for another space whose actions run because something here reads what they write. It belongs to the
     * caller, and is closed after the scheduler. May be NULL: none. */
    stet_status (*files_of)(void *ctx, stet_space *space, void **files, stet_error *err);
    /* Called when nothing is left to run, once in each settling and again after some actions have run: brings up to
     * date what follows from runs and is not an action (which files a pattern matches now), by commits that may mark
     * actions. May be NULL. */
    stet_status (*rested)(void *ctx, stet_error *err);
    /* May an action of this branch that has not run yet write the file? True if unsure. May be NULL: none. */
    bool (*may_make)(void *ctx, stet_space *space, int64_t branch, const char *path);
    /* Called for each document of its space that a run has read, unless the kind of its module sees files itself. May
     * read more documents for the run. A status other than STET_OK: the run fails. May be NULL. */
    stet_status (*accept_read)(void *ctx, const stet_sched_place *at, stet_run *run, const char *id, stet_error *err);
    /* The sequence at which the run that is continued did this effect, which is not done again if nothing that it read
     * differs from then; 0: the run did not. May be NULL. */
    int64_t (*done_at)(void *ctx, const char *piece, const char *node);
    int jobs;             /* maximum number of asynchronous actions under way; 0: their kind decides */
    bool stop_on_failure; /* start no other asynchronous action after one has failed; the rest stays dirty */
} stet_sched_opts;

STET_CHECKED stet_status stet_sched_open(stet_project *project, stet_space *space, const char *branch,
                                         const stet_sched_opts *opts, stet_sched **out, stet_error *err);
void stet_sched_close(stet_sched *s);
stet_memo *stet_sched_memo(stet_sched *s);
stet_plan *stet_sched_plan(stet_sched *s);
/* The fingerprint of the runtime: version of the library and scheduler mode. */
stet_hash stet_sched_runtime(const stet_sched_opts *opts);

typedef struct stet_sched_installed {
    bool created, changed; /* neither: it already existed like this */
    int64_t generation;
    size_t added, altered, gone, kept;
} stet_sched_installed;
/* What to set up. */
typedef struct stet_sched_setup {
    stet_pattern *pattern;
    const char *piece;
    stet_value source, set, unset; /* as in graph/piece.h; may be null */
    void *ctx;
    /* Called before anything is written: is this graph acceptable? May be NULL. */
    stet_status (*accept)(void *ctx, const stet_process *process, stet_error *err);
} stet_sched_setup;
/* Sets up the piece as the pattern says, in one transaction: nodes that did not change keep their cells, their record
 * and their state. STET_INVALID: refused, and nothing has changed. */
STET_CHECKED stet_status stet_sched_set_up(stet_sched *s, const stet_sched_setup *setup, stet_sched_installed *out,
                                           stet_error *err);
/* The same without `accept` and `unset`. `source` and `set` may be null. */
STET_CHECKED stet_status stet_sched_install(stet_sched *s, stet_pattern *pattern, const char *piece, stet_value source,
                                            stet_value set, stet_sched_installed *out, stet_error *err);
/* Deletes a piece with all it owns. */
STET_CHECKED stet_status stet_sched_delete(stet_sched *s, const char *piece, stet_error *err);

/* Demands. A piece: its result and its effects. A cell: its value, through links. */
STET_CHECKED stet_status stet_sched_demand_piece(stet_sched *s, const char *piece, stet_error *err);
/* The piece will be read, but not all of it is wanted: ensures that its records are about this version and this branch.
 */
STET_CHECKED stet_status stet_sched_touch_piece(stet_sched *s, const char *piece, stet_error *err);
STET_CHECKED stet_status stet_sched_demand_cell(stet_sched *s, const char *id, const char *scope, stet_pathref path,
                                                stet_error *err);

/* Do the demands need this action? Call it before settling, after all demands were made. */
STET_CHECKED stet_status stet_sched_is_wanted(stet_sched *s, const char *piece_key, const char *node, bool *wanted,
                                              stet_error *err);

/* Actions of other pieces that are outdated or failed, and that the result of the piece links to:
 * [{"piece","node","state","space"?}], at most 100. `standing` is that of the scheduler's space and branch. The caller
 * releases it. */
STET_CHECKED stet_status stet_sched_leads_to(stet_sched *s, const stet_piece *piece, const stet_standing *standing,
                                             stet_value *out, stet_error *err);
/* Is a piece of a space one of those that are looked for? */
typedef bool stet_sched_is_piece(void *ctx, const char *space, const char *piece);
/* Does a cell rest on a piece for which `is` is true? `*found`: the name of the piece, "" if the record of an action does
 * not tell, or NULL. The caller frees it. */
STET_CHECKED stet_status stet_sched_rests_on(stet_sched *s, const stet_docname *name, stet_pathref path,
                                             stet_sched_is_piece *is, void *ctx, char **found, stet_error *err);

typedef struct stet_sched_report {
    size_t runs;       /* runs of actions; one that ran twice counts twice */
    size_t ran;        /* actions that ran */
    size_t restored;   /* of these: actions whose result is that of an earlier run */
    size_t failed;     /* wanted actions whose last run failed, in this settling or before */
    size_t failed_now; /* runs that failed in this settling; some may have succeeded since */
    size_t aside;      /* put aside: they run in a cycle, or could not be tried; still outdated */
    /* Of the demanded pieces: actions that neither ran nor are up to date, because they wait for a failed one, because
     * nothing wanted needs them, or because the settling was stopped first. */
    size_t left;
    size_t waiting; /* wanted, and downstream of an action that failed or was put aside: they keep their last results */
    size_t stood;   /* of the demanded pieces: all others, up to date */
    /* For the drive, which fills them in: of the demanded pieces, accepted actions, which are not in `stood`, and actions in
     * `stood` that depend on accepted ones. */
    size_t accepted, through;
    size_t dropped;   /* runs that were undone by conflicts */
    size_t unchanged; /* runs that changed nothing */
    size_t effects;   /* runs of effects */
    size_t flushes;
    size_t loaded;       /* actions in memory at the end */
    size_t looked;       /* how often a marked action was loaded, to see whether it is needed */
    size_t total;        /* nodes of the demanded pieces */
    size_t causes[3];    /* runs because of unknown, dirty, requested */
    stet_value problems; /* [{"piece","node","error","cycle"?}], at most 100; the caller releases it */
} stet_sched_report;
STET_CHECKED stet_status stet_sched_settle(stet_sched *s, stet_sched_report *out, stet_error *err);
/* For `rested`: lets go of locks that kinds of modules hold. They are taken again with the next run. */
void stet_sched_pause(stet_sched *s);
/* Wanted actions that had failed before the last settling and did not run again: [{"piece","node","error"}], at most
 * 100, borrowed until the next settling. */
stet_value stet_sched_failed_before(const stet_sched *s);
/* Is this action wanted, and still failed after the last settling? */
bool stet_sched_fails(stet_sched *s, const char *piece, const char *node);
/* Compares what is in memory with the tables, between two settlings and when nothing is new. A difference is a bug in
 * stet, or somebody has changed the tables. */
typedef struct stet_sched_drift {
    size_t actions, differ; /* actions compared; those that differ */
    stet_value list;        /* [{"piece","action","memory","tables"}], at most 100; the caller releases it */
} stet_sched_drift;
STET_CHECKED stet_status stet_sched_compare(stet_sched *s, stet_sched_drift *out, stet_error *err);
/* For tests: the first action in memory that a settling would pass over though it failed, waits, ran or was put aside,
 * or of which the scheduler has a wrong idea whether it is downstream of a failure; NULL: none. */
const char *stet_sched_passed_over(stet_sched *s);
/* Waits for commits by others, at most timeout_ms; `*news`: there were some. For `--watch`. */
STET_CHECKED stet_status stet_sched_wait(stet_sched *s, int timeout_ms, bool *news, stet_error *err);

/* Sends an event to the handlers of a stream. Each handler runs in a transaction of its own, on what it reads, brought up
 * to date first (preflight). The transaction of the first one requires the document `piece:NAME:event:ID` to be absent,
 * and creates it. So an event is applied once, however often it is sent and wherever a sender dies. A first handler that
 * fails leaves nothing behind: its error is returned. The next run of the piece settles what the event has changed.
 *
 * The other handlers of the stream, and events that handlers send in turn (stet_run_send), wait in the queue of the piece
 * (sched_queue.c) until what was written before is stored: each of them sees a settled state. They are done before
 * stet_sched_send returns. If the process dies, they are done before the next event of the piece, or by
 * stet_sched_finish_events. If one of them fails, STET_FAILED is returned though the event was applied; sending the event
 * again tries that one again.
 *
 * `stream` is the name of a stream or of one of its handlers, the id of its cell, or a path into the result that leads
 * to it. "rows[7].add" is a stream of a child. Its coordinator decides on the current state whether the child exists
 * (it runs first, if it is outdated); STET_NOT_FOUND otherwise.
 */
#define STET_EVENT_MAX_ID 200
#define STET_SENT_STREAM  512 /* bytes of a stream's name that are reported */
#define STET_EVENT_DAYS   30  /* how long an event is remembered by default; see [scheduler] event_days */
typedef struct stet_sched_sent {
    bool applied;      /* false: it was already applied before */
    int64_t seq;       /* of the commit that applied it */
    size_t made_fresh; /* runs of actions before it */
    char stream[STET_SENT_STREAM];
    char id[STET_EVENT_MAX_ID + 1];
} stet_sched_sent;
/* `id` NULL: one is generated. STET_NOT_FOUND: no such piece or stream. STET_CONFLICT: the id was used for another
 * event, or others kept changing what the handler reads. STET_FAILED and others: the error of a handler. */
STET_CHECKED stet_status stet_sched_send(stet_sched *s, const char *piece, const char *stream, stet_value event,
                                         const char *id, stet_sched_sent *out, stet_error *err);
/* Does what follows from events of a piece and was not done because a process died. `lost`: the first error of a handler;
 * it is not tried again by this. */
STET_CHECKED stet_status stet_sched_finish_events(stet_sched *s, const char *piece, stet_error *lost, stet_error *err);
/* Removes documents of events that were applied before `before_ms`: such an event may be applied again if it is sent
 * again. `*count`: their number. */
STET_CHECKED stet_status stet_sched_forget_events(stet_space *space, const char *branch, int64_t before_ms,
                                                  bool dry_run, size_t *count, stet_error *err);

/* A value with links followed, as of now: for showing results. The caller releases it. */
STET_CHECKED stet_status stet_sched_resolve(stet_sched *s, stet_value v, stet_value *out, stet_error *err);
/* The value of a cell, links followed. STET_NOT_FOUND: nothing is there. */
STET_CHECKED stet_status stet_sched_get(stet_sched *s, const char *id, const char *scope, stet_pathref path,
                                        stet_value *out, stet_error *err);
/* The same after a settling that wanted the cell: all that is in it is fresh on one snapshot. What others have made
 * outdated since is made fresh again; `*ran` is the number of runs that this took. STET_FAILED: that failed.
 * STET_CONFLICT: others keep changing what it is made of. */
typedef struct stet_sched_cell {
    stet_docname name;
    stet_pathref path; /* in the envelope */
} stet_sched_cell;
typedef struct stet_sched_want {
    stet_sched_cell cell;
    /* If there are some, only these cells have to be fresh, and the rest of the value is what it was at the time. */
    const stet_sched_cell *parts;
    size_t part_count;
} stet_sched_want;
STET_CHECKED stet_status stet_sched_get_fresh(stet_sched *s, const stet_sched_want *want, size_t *ran, stet_value *out,
                                              stet_error *err);
/* The same as stet_sched_get with this space as of sequence `at` (-1: now). */
STET_CHECKED stet_status stet_sched_get_at(stet_sched *s, const char *id, const char *scope, stet_pathref path,
                                           int64_t at, stet_value *out, stet_error *err);

#endif
