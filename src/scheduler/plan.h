/* plan.h - which action runs next. Pure: no I/O, no clock, no knowledge of what an action computes.
 *
 *     stet_plan *p = stet_plan_new(&source);                      // source may be NULL: everything is told
 *     uint32_t doc = stet_plan_doc(p, "argument", 8);
 *     uint32_t a = stet_plan_add(p, "piece/a", 7, &(stet_plan_opts){.rank = 0});
 *     stet_plan_set_reads(p, a, reads, n);  stet_plan_set_writes(p, a, writes, n);
 *     stet_plan_mark(p, a, STET_PLAN_UNKNOWN, now);
 *     stet_plan_demand(p, doc, path);
 *     stet_plan_begin(p);                                          // a settling
 *     while ((status = stet_plan_next(p, now, &step, &err)) == STET_OK && step.kind == STET_PLAN_RUN) {
 *         ... run step.node: its reads, its changed leaves ...
 *         stet_plan_set_reads(p, step.node, reads, n); stet_plan_set_writes(...);
 *         for each changed leaf: stet_plan_changed(p, doc, path, kind, step.node, now, &err);
 *         stet_plan_finish(p, step.node, STET_PLAN_DONE, now);
 *     }
 *     stet_plan_free(p);
 *
 * Rules
 *   R1. Only actions that are dirty or unknown run, and only live ones: those from which a path of writes and reads
 * leads to a demanded cell or a demanded action (an effect). R2. Writers run before readers. Each action has a rank,
 * and the lowest runs first. Ranks come from the graph as it was built; where an edge found later contradicts them, the
 * reader's rank is raised. R3. An action that changed nothing marks nobody: its readers stand (early cut-off). No walk
 * finds that out. R4. Reads are replaced after each run. If that makes something live that was not, it is taken up at
 * once; if that takes the last way to a demand away, what waits there is put aside without having run. R5. An action
 * that ran STET_PLAN_MAX_RUNS times in one settling is put aside and named with its cycle; the others go on. R6. A
 * failed action is not dirty: it runs again when a read changes, or when it is marked. R7. What an action wrote is its
 * own: a change there by somebody else makes it dirty. R8. A materializer may write anywhere inside its envelopes, and
 * only its run tells where. An envelope is a way to a demand: whoever is wanted and reads inside it comes after the
 * materializer, if that is dirty. It is no fan-out: readers inside it are marked by what really changed, and by nothing
 * else. A dirty materializer that nothing wanted leads to runs when there is nothing else to do (stet_plan_idle). Its
 * ordinary writes are as anybody's. R9. While a late action runs, all that is downstream of it is loaded, what stands
 * too: nothing begins that it leads to, over however many others; and who reads the output of a coordinator waits for
 * the children in it.
 *
 * The graph in memory is a cache of the durable index, filled on touch: before a change is followed to its readers, the
 * source is asked to load those that are only on disk. Loaded actions are the truth, and the source must not overwrite
 * them.
 *
 * Liveness costs nothing where it can be known beforehand (`certain`); elsewhere it is a walk downward from the dirty
 * action until the first demand, remembered until an edge goes. Nothing recurses.
 */
#ifndef STET_SCHEDULER_PLAN_H
#define STET_SCHEDULER_PLAN_H

#include "base/change.h"

#define STET_PLAN_NONE     UINT32_MAX
#define STET_PLAN_MAX_RUNS 100

typedef struct stet_plan stet_plan;

typedef struct stet_plan_source {
    void *ctx;
    /* Adds (stet_plan_add, set_reads, set_writes) every action that is not there yet and whose reads this change
     * touches. It is asked once for each place, and not at all about a document any more after it set `*covered`: all
     * readers of it are loaded then. */
    stet_status (*readers)(void *ctx, stet_plan *p, uint32_t doc, stet_pathref path, stet_change_kind kind,
                           bool *covered, stet_error *err);
} stet_plan_source;

typedef struct stet_plan_opts {
    uint32_t rank;
    bool effect;       /* runs only when nothing that ranks lower is under way */
    bool late;         /* runs only when all that waits is known (stet_plan_known); effects are late anyway */
    bool certain;      /* known to be live without a walk */
    bool materializer; /* runs at idle, too */
    int64_t debounce_ms, throttle_ms;
    void *data; /* the caller's */
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
/* Takes the document for covered: nothing on disk reads it that is not loaded. */
void stet_plan_doc_covered(stet_plan *p, uint32_t doc);

/* What the source was asked is asked again: somebody else may have added readers. */
void stet_plan_forget_asked(stet_plan *p);

/* `name` must be new. */
uint32_t stet_plan_add(stet_plan *p, const char *name, size_t len, const stet_plan_opts *o);
uint32_t stet_plan_find(const stet_plan *p, const char *name, size_t len); /* STET_PLAN_NONE */
const char *stet_plan_name(const stet_plan *p, uint32_t node);
void *stet_plan_data(const stet_plan *p, uint32_t node);
void stet_plan_set_rank(stet_plan *p, uint32_t node, uint32_t rank);
size_t stet_plan_count(const stet_plan *p);
/* What `node` writes is reached through links in the output of `coordinator`: whoever reads all of that output reads
 * it, whether that was seen yet or not. A shallow reader does not. */
void stet_plan_set_into(stet_plan *p, uint32_t node, uint32_t coordinator);
/* Forgets an action: its edges go, its number is not given again. */
void stet_plan_remove(stet_plan *p, uint32_t node);
/* Takes an action that stands out of memory; the source brings it back when a change touches what it reads. Documents
 * that nothing else in memory reads or writes go with it; their numbers and the action's are given again. False: it
 * does not stand, or is demanded. Only while nothing is parked: the walk that found a parked action of no use went
 * over actions in memory, and must find them there when their reads change. */
bool stet_plan_unload(stet_plan *p, uint32_t node);
bool stet_plan_any_parked(const stet_plan *p);
/* How many are in memory; numbers go up to stet_plan_count, and those of unloaded ones have no data. */
size_t stet_plan_loaded(const stet_plan *p);

/* Are all that wait to run of no use, as far as what is in memory tells? */
bool stet_plan_at_rest(const stet_plan *p);
/* Does it read something now that it did not read before? */
bool stet_plan_set_reads(stet_plan *p, uint32_t node, const stet_plan_read *at, size_t len);
void stet_plan_set_writes(stet_plan *p, uint32_t node, const stet_plan_write *at, size_t len);
/* Where a materializer may write (R8). */
void stet_plan_set_envelopes(stet_plan *p, uint32_t node, const stet_plan_write *at, size_t len);
size_t stet_plan_reads(const stet_plan *p, uint32_t node, stet_plan_read *out, size_t max);
size_t stet_plan_writes(const stet_plan *p, uint32_t node, stet_plan_write *out, size_t max);

void stet_plan_mark(stet_plan *p, uint32_t node, stet_plan_mark_kind kind, int64_t now);
/* It stands after all (somebody else ran it). */
void stet_plan_unmark(stet_plan *p, uint32_t node);
/* A leaf changed, by action `by` or (STET_PLAN_NONE) by somebody outside. Marks readers and those who were overwritten.
 */
STET_CHECKED stet_status stet_plan_changed(stet_plan *p, uint32_t doc, stet_pathref path, stet_change_kind kind,
                                           uint32_t by, int64_t now, stet_error *err);

/* Demand. Clearing it forgets all that was known about liveness. */
void stet_plan_demand(stet_plan *p, uint32_t doc, stet_pathref path);
void stet_plan_demand_node(stet_plan *p, uint32_t node);
/* It is known to be live from now on, as if it had been added so; clearing demands does not change that. */
void stet_plan_set_certain(stet_plan *p, uint32_t node);
void stet_plan_demand_clear(stet_plan *p);

typedef enum stet_plan_step_kind {
    STET_PLAN_RUN,  /* run `node` */
    STET_PLAN_WAIT, /* nothing before `until` (a debounce or a throttle), unless something running ends first */
    STET_PLAN_BUSY, /* nothing until something running ends */
    STET_PLAN_IDLE  /* nothing left: what is demanded is fresh, failed or put aside */
} stet_plan_step_kind;

typedef struct stet_plan_step {
    stet_plan_step_kind kind;
    uint32_t node;
    int64_t until;
} stet_plan_step;

/* False: there are marked actions that are not loaded yet. Actions that are seen outside, or cost much, wait until it
 * is true again: what they read may not be final. */
void stet_plan_known(stet_plan *p, bool all);
/* For an action that is about to run: does nothing wait that must run before it? What came up since it was chosen is
 * known, and what the action reads from now on is up to date with it. */
bool stet_plan_still_first(stet_plan *p, uint32_t node);
/* Counts of runs start again, and what was put aside may run again. */
void stet_plan_begin(stet_plan *p);
STET_CHECKED stet_status stet_plan_next(stet_plan *p, int64_t now, stet_plan_step *out, stet_error *err);

typedef enum stet_plan_outcome {
    STET_PLAN_DONE,
    STET_PLAN_FAILED,
    STET_PLAN_AGAIN,   /* the result did not hold or was not published: as dirty as before */
    STET_PLAN_NOT_YET, /* it did not run after all: something before it came up meanwhile */
    STET_PLAN_LEFT     /* it did not run because of another one that failed or was left: as dirty as before, until
                          something that it reads changes, such a one ends well, or the next settling begins */
} stet_plan_outcome;
void stet_plan_finish(stet_plan *p, uint32_t node, stet_plan_outcome outcome, int64_t now);
/* A result that was taken for good turned out not to be stored: the action is dirty again. */
void stet_plan_dropped(stet_plan *p, uint32_t node, int64_t now);

/* When there is nothing left: materializers count as wanted now, those that `wanted` names (NULL: all), until they have
 * run or the next settling begins; what is dirty of them and upstream of them may run. How many wait then. */
size_t stet_plan_idle(stet_plan *p, bool (*wanted)(void *ctx, uint32_t node), void *ctx);

/* Not again in this settling (R5 does it by itself); it stays dirty. */
void stet_plan_put_aside(stet_plan *p, uint32_t node);
/* How many wait to be looked at; an upper bound of what is still to run among what is known now. */
size_t stet_plan_queued(const stet_plan *p);

/* How an action stands, as far as loaded actions tell. */
bool stet_plan_is_dirty(const stet_plan *p, uint32_t node);
bool stet_plan_is_unknown(const stet_plan *p, uint32_t node);
bool stet_plan_is_failed(const stet_plan *p, uint32_t node);
bool stet_plan_is_aside(const stet_plan *p, uint32_t node); /* R5 */
bool stet_plan_is_left(const stet_plan *p, uint32_t node);  /* STET_PLAN_LEFT, and nothing changed since */
uint32_t stet_plan_runs(const stet_plan *p, uint32_t node); /* in this settling */
STET_CHECKED stet_status stet_plan_is_live(stet_plan *p, uint32_t node, bool *live, stet_error *err);
/* "a -> b -> a": a way from the action back to itself, for messages. False if there is none among what is loaded. */
bool stet_plan_cycle(stet_plan *p, uint32_t node, stet_buf *out);

/* Loaded readers that a change touches, loaded writers that a cell overlaps: for tests and for `why`. */
typedef struct stet_plan_nodes {
    uint32_t *at;
    size_t len, cap;
} stet_plan_nodes;
/* From now on those are listed that stood and are marked by a change; NULL: no more. */
void stet_plan_listen(stet_plan *p, stet_plan_nodes *heard);
void stet_plan_readers(stet_plan *p, uint32_t doc, stet_pathref path, stet_change_kind kind, stet_plan_nodes *out);
void stet_plan_writers(stet_plan *p, uint32_t doc, stet_pathref path, stet_plan_nodes *out);

#endif
