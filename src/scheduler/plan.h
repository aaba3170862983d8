/* plan.h - which action runs next. Pure: no I/O, no clock, no knowledge of what an action computes.
 *
 *     stet_plan *p = stet_plan_new(&source); // source may be NULL: everything is told
 *     uint32_t doc = stet_plan_doc(p, "argument", 8);
 *     uint32_t a = stet_plan_add(p, "piece/a", 7, &(stet_plan_opts){.rank = 0});
 *     stet_plan_set_reads(p, a, reads, read_count);
 *     stet_plan_set_writes(p, a, writes, write_count);
 *     stet_plan_mark(p, a, STET_PLAN_UNKNOWN, now);
 *     stet_plan_demand(p, doc, path, STET_RECURSIVE);
 *
 *     stet_plan_begin(p); // a settling
 *     stet_plan_step step;
 *     stet_status status;
 *     while ((status = stet_plan_next(p, now, &step, &err)) == STET_OK && step.kind == STET_PLAN_RUN) {
 *         // run step.node; then report its reads, its writes and each changed leaf
 *         stet_plan_set_reads(p, step.node, reads, read_count);
 *         stet_plan_set_writes(p, step.node, writes, write_count);
 *         if ((status = stet_plan_changed(p, doc, path, STET_VALUE, step.node, now, &err)) != STET_OK)
 *             break;
 *         stet_plan_finish(p, step.node, STET_PLAN_DONE, now);
 *     }
 *     stet_plan_free(p);
 *
 * Rules
 *
 *   R1. Only actions that are dirty or unknown run, and only live ones: those from which a path of writes and reads
 *       leads to a demanded cell or a demanded action (an effect).
 *   R2. Writers run before readers. Each action has a rank, and the lowest runs first. Ranks come from the graph as it
 *       was built; where an edge found later contradicts them, the reader's rank is raised.
 *   R3. An action that changed nothing marks nobody: its readers stay up to date (early cut-off). No walk is needed for
 *       that.
 *   R4. Reads are replaced after each run. If that makes an action live that was not, it is considered at once. If that
 *       removes the last path to a demand, the actions that wait there are put aside without having run.
 *   R5. An action that ran STET_PLAN_MAX_RUNS times in one settling is put aside and reported with its cycle; the
 *       others continue. Of a circle that is known from the graph it is always the same member. An action
 *       that makes files is put aside after STET_PLAN_MAX_MAKING runs already, if it is in a cycle: commands that read
 *       each other's files seldom come to rest, and each run costs. A cycle is no proof, because a read may be of a word
 *       that only might be the name of a file; but such a cycle has come to rest by then.
 *   R6. A failed action is not dirty: it runs again when a read changes, or when it is marked.
 *   R7. What an action wrote belongs to it: a change there by another writer makes it dirty.
 *   R8. A materializer may write anywhere inside its envelopes, and only its run tells where. An envelope is a path to
 *       a demand: a wanted action that reads inside it runs after the materializer, if that is dirty. An envelope does
 *       not fan out: readers inside it are marked only by what really changed. A dirty materializer that leads to
 *       nothing wanted runs when there is nothing else to do (stet_plan_idle). Its ordinary writes are like any other
 *       action's.
 *   R9. While a late action runs, everything downstream of it is loaded, including what is up to date: nothing begins
 *       that it leads to, over any number of others. A reader of a coordinator's output waits for the children in it.
 *       A late action also waits while the debounce or throttle of one that leads to it does.
 *
 * The graph in memory is a cache of the durable index, filled on demand: before a change is followed to its readers,
 * the source is asked to load those that are only on disk. Loaded actions are authoritative, and the source must not
 * overwrite them.
 *
 * Liveness costs nothing where it is known in advance (`certain`). Elsewhere it is a walk downward from the dirty
 * action to the first demand, remembered until an edge is removed. Nothing recurses.
 */
#ifndef STET_SCHEDULER_PLAN_H
#define STET_SCHEDULER_PLAN_H

#include "base/change.h"

#define STET_PLAN_NONE       UINT32_MAX
#define STET_PLAN_MAX_RUNS   100
#define STET_PLAN_MAX_MAKING 4

typedef struct stet_plan stet_plan;

typedef struct stet_plan_source {
    void *ctx;
    /* Adds (stet_plan_add, set_reads, set_writes) every action that is not loaded yet and whose reads this change
     * touches. It is called once for each place. After it has set `*covered` it is not called for that document any
     * more: all of the document's readers are loaded. */
    stet_status (*readers)(void *ctx, stet_plan *p, uint32_t doc, stet_pathref path, stet_change_kind kind,
                           bool *covered, stet_error *err);
} stet_plan_source;

typedef struct stet_plan_opts {
    uint32_t rank;
    bool effect;       /* runs only when no action with a lower rank is under way */
    bool late;         /* runs only when all waiting actions are known (stet_plan_known); effects are always late */
    bool certain;      /* known to be live without a walk */
    bool materializer; /* also runs at idle */
    bool makes_files;  /* R5 */
    uint32_t circle;   /* not 0: actions with the same number read each other in a cycle, */
    uint32_t turn;     /* and run in this order: none is put behind one with a larger turn */
    int64_t debounce_ms, throttle_ms;
    void *data; /* for the caller */
} stet_plan_opts;

typedef struct stet_plan_read {
    uint32_t doc;
    stet_pathref path;
    stet_read_kind kind;
} stet_plan_read;

typedef struct stet_plan_write {
    uint32_t doc;
    stet_pathref path;
} stet_plan_write;

typedef enum stet_plan_mark_kind { STET_PLAN_DIRTY = 1, STET_PLAN_UNKNOWN = 2 } stet_plan_mark_kind;

stet_plan *stet_plan_new(const stet_plan_source *source); /* copied; NULL: none */
void stet_plan_free(stet_plan *p);

uint32_t stet_plan_doc(stet_plan *p, const char *name, size_t len); /* interned */
const char *stet_plan_doc_name(const stet_plan *p, uint32_t doc, size_t *len);
/* Declares the document covered: all of its readers are loaded. */
void stet_plan_doc_covered(stet_plan *p, uint32_t doc);

/* Forgets what the source was asked: another process may have added readers. */
void stet_plan_forget_asked(stet_plan *p);
/* Actions that were found to lead to nothing wanted may do so now, through actions that are not loaded: they are
 * checked again. */
void stet_plan_doubt_unwanted(stet_plan *p);

/* `name` must be new. */
uint32_t stet_plan_add(stet_plan *p, const char *name, size_t len, const stet_plan_opts *o);
uint32_t stet_plan_find(const stet_plan *p, const char *name, size_t len); /* STET_PLAN_NONE */
const char *stet_plan_name(const stet_plan *p, uint32_t node);
void *stet_plan_data(const stet_plan *p, uint32_t node);
/* The same; NULL for an action that was removed or unloaded. For walks over all numbers. */
void *stet_plan_data_there(const stet_plan *p, uint32_t node);
uint32_t stet_plan_rank(const stet_plan *p, uint32_t node);
void stet_plan_set_rank(stet_plan *p, uint32_t node, uint32_t rank);
size_t stet_plan_count(const stet_plan *p);
/* Replaces the options that `node` was added with, except its kind (effect, late) and `data`. Call
 * stet_plan_doubt_unwanted after the last one. */
void stet_plan_replace(stet_plan *p, uint32_t node, const stet_plan_opts *o);
/* What `node` writes is reached through links in the output of `coordinator`: a recursive reader of that output reads
 * it too, whether that was observed or not. A shallow reader does not. STET_PLAN_NONE: it is not (any more). */
void stet_plan_set_into(stet_plan *p, uint32_t node, uint32_t coordinator);
/* The output of the coordinator was empty before its current run and no longer is. A shallow reader counts as a
 * recursive one until the next run or settling, because what it would have read of a non-empty output is not known. */
void stet_plan_set_filled(stet_plan *p, uint32_t coordinator, bool filled);
/* Removes an action with its edges; its number is not reused. */
void stet_plan_remove(stet_plan *p, uint32_t node);
/* Unloads an up-to-date action; the source loads it again when a change touches what it reads. Documents that nothing
 * else in memory reads or writes are unloaded with it; their numbers and the action's are reused. False: it is not up
 * to date, or is demanded. Call it only while nothing is parked: the walk that found a parked action unneeded went over
 * actions in memory, and must find them there when their reads change. */
bool stet_plan_unload(stet_plan *p, uint32_t node);
bool stet_plan_any_parked(const stet_plan *p);
/* How many actions are in memory. Numbers go up to stet_plan_count; those of unloaded actions have no data. */
size_t stet_plan_loaded(const stet_plan *p);
/* Differs from what it was if actions, their reads or their writes did since, or if the source may know of others by
 * now: as long as it is the same, stet_plan_downstream finds the same. Never 0. */
uint64_t stet_plan_shape(const stet_plan *p);

/* Are all waiting actions unneeded, as far as the loaded actions tell? */
bool stet_plan_at_rest(const stet_plan *p);
/* Sets the reads. Returns whether the action now reads something that it did not read before. */
bool stet_plan_set_reads(stet_plan *p, uint32_t node, const stet_plan_read *at, size_t len);
void stet_plan_set_writes(stet_plan *p, uint32_t node, const stet_plan_write *at, size_t len);
/* Where a materializer may write (R8). */
void stet_plan_set_envelopes(stet_plan *p, uint32_t node, const stet_plan_write *at, size_t len);
size_t stet_plan_reads(const stet_plan *p, uint32_t node, stet_plan_read *out, size_t max);
size_t stet_plan_writes(const stet_plan *p, uint32_t node, stet_plan_write *out, size_t max);

void stet_plan_mark(stet_plan *p, uint32_t node, stet_plan_mark_kind kind, int64_t now);
/* The action is up to date after all (another process ran it). */
void stet_plan_unmark(stet_plan *p, uint32_t node);
/* A running action begins to read anew, on a state with all changes that the plan has heard of: marks that they set since
 * it was given out do not make it run again. Those that say that it is unknown do. */
void stet_plan_reads_anew(stet_plan *p, uint32_t node);
/* A leaf changed, by action `by` or (STET_PLAN_NONE) from outside. Marks its readers, and actions whose output was
 * overwritten. */
STET_CHECKED stet_status stet_plan_changed(stet_plan *p, uint32_t doc, stet_pathref path, stet_change_kind kind,
                                           uint32_t by, int64_t now, stet_error *err);

/* Demands. Clearing them forgets everything known about liveness. */
void stet_plan_demand(stet_plan *p, uint32_t doc, stet_pathref path, stet_read_kind kind);
void stet_plan_demand_node(stet_plan *p, uint32_t node);
/* The action is live from now on, as if it had been added with `certain`; clearing demands does not change that. */
void stet_plan_set_certain(stet_plan *p, uint32_t node);
void stet_plan_demand_clear(stet_plan *p);

typedef enum stet_plan_step_kind {
    STET_PLAN_RUN,  /* run `node` */
    STET_PLAN_WAIT, /* nothing before `until` (a debounce or a throttle), unless a running action ends first */
    STET_PLAN_BUSY, /* nothing until a running action ends */
    STET_PLAN_IDLE  /* nothing left: what is demanded is up to date, failed or put aside */
} stet_plan_step_kind;

typedef struct stet_plan_step {
    stet_plan_step_kind kind;
    uint32_t node;
    int64_t until;
} stet_plan_step;

/* `all` false: there are marked actions that are not loaded yet. Late actions, which have outside effects or are
 * expensive, wait until it is true again, because what they read may not be final. */
void stet_plan_known(stet_plan *p, bool all);
/* For an action that is about to run: does no action wait that must run before it? What was marked since it was chosen
 * is known, and what the action reads from now on is up to date with it. */
bool stet_plan_still_first(stet_plan *p, uint32_t node);
/* Begins a settling: counts of runs start again, and actions that were put aside may run again. */
void stet_plan_begin(stet_plan *p);
/* The same, but what was put aside stays so. */
void stet_plan_resume(stet_plan *p);
STET_CHECKED stet_status stet_plan_next(stet_plan *p, int64_t now, stet_plan_step *out, stet_error *err);

typedef enum stet_plan_outcome {
    STET_PLAN_DONE,
    STET_PLAN_FAILED,
    /* The result did not hold or was not published: the action is as dirty as before. */
    STET_PLAN_AGAIN,
    /* It did not run after all: an action that must run before it was marked meanwhile. */
    STET_PLAN_NOT_YET,
    /* It did not run because another action failed or was left. It is as dirty as before, until something that it reads
     * changes, such an action succeeds, or the next settling begins. */
    STET_PLAN_LEFT
} stet_plan_outcome;
/* Other actions are left because of this one: when it succeeds, those that read what it writes are considered again. */
void stet_plan_set_blocks(stet_plan *p, uint32_t node);
/* An action that was left need not wait any more: it is considered again. */
void stet_plan_release(stet_plan *p, uint32_t node);
/* Ends a run. Does nothing for an action that was removed meanwhile. */
void stet_plan_finish(stet_plan *p, uint32_t node, stet_plan_outcome outcome, int64_t now);
/* A result that seemed good could not be stored: the action is dirty again. */
void stet_plan_dropped(stet_plan *p, uint32_t node, int64_t now);

/* Call it when nothing is left. Materializers count as wanted, those for which `wanted` returns true (NULL: all), until
 * they have run or the next settling begins; dirty ones and what is upstream of them may run. Returns how many wait
 * then. */
size_t stet_plan_idle(stet_plan *p, bool (*wanted)(void *ctx, uint32_t node), void *ctx);

/* Does not run the action again in this settling (R5 does that by itself); it stays dirty. */
void stet_plan_put_aside(stet_plan *p, uint32_t node);
/* How many actions wait to be considered; an upper bound of what is still to run among the known actions. */
size_t stet_plan_queued(const stet_plan *p);

/* The state of an action, as far as loaded actions tell. */
bool stet_plan_is_dirty(const stet_plan *p, uint32_t node);
bool stet_plan_is_unknown(const stet_plan *p, uint32_t node);
bool stet_plan_is_failed(const stet_plan *p, uint32_t node);
bool stet_plan_is_aside(const stet_plan *p, uint32_t node); /* R5 */
bool stet_plan_is_left(const stet_plan *p, uint32_t node);  /* STET_PLAN_LEFT, and nothing changed since */
uint32_t stet_plan_runs(const stet_plan *p, uint32_t node); /* in this settling */
STET_CHECKED stet_status stet_plan_is_live(stet_plan *p, uint32_t node, bool *live, stet_error *err);
/* Prints a path from the action back to itself, "a -> b -> a", for messages. False: there is none among the loaded
 * actions. */
bool stet_plan_cycle(stet_plan *p, uint32_t node, stet_buf *out);

/* Loaded readers that a change touches, and loaded writers that a cell overlaps: for tests and for `why`. */
typedef struct stet_plan_nodes {
    uint32_t *at;
    size_t len, cap;
} stet_plan_nodes;
/* From now on, up-to-date actions that a change marks are added to `heard`; NULL: no more. */
void stet_plan_listen(stet_plan *p, stet_plan_nodes *heard);
void stet_plan_readers(stet_plan *p, uint32_t doc, stet_pathref path, stet_change_kind kind, stet_plan_nodes *out);
void stet_plan_writers(stet_plan *p, uint32_t doc, stet_pathref path, stet_plan_nodes *out);
/* The writers, and loaded actions that may write there: they decide what is there. An action may be listed twice. */
void stet_plan_makers(stet_plan *p, uint32_t doc, stet_pathref path, stet_plan_nodes *out);
/* Everything downstream of these actions, over reads and writes, including themselves: each once, and loaded. A child
 * is upstream of the actions that have read what it makes, and not of all that read the output of its coordinator: an
 * action that followed a link there has that among its reads. Nor is a materializer upstream of all actions that read
 * something in its envelope. */
STET_CHECKED stet_status stet_plan_downstream(stet_plan *p, const uint32_t *roots, size_t count, stet_plan_nodes *out,
                                              stet_error *err);

#endif
