/* plan_internal.h - what the files of the planner share. Not included anywhere else.
 *
 *   plan.c          documents and actions, and which action runs next
 *   plan_queue.c    waiting actions, by rank and by time
 *   plan_live.c     edges and demands, and whether a path leads from one to the other
 */
#ifndef STET_SCHEDULER_PLAN_INTERNAL_H
#define STET_SCHEDULER_PLAN_INTERNAL_H

#include <assert.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "scheduler/plan.h"
#include "scheduler/plan_index.h"

enum {
    N_DIRTY = 1,
    N_UNKNOWN = 2,
    N_FAILED = 4,
    N_ASIDE = 8,
    N_RUNNING = 16,
    N_REDIRTY = 32, /* marked while it ran */
    N_QUEUED = 64,
    N_PARKED = 128,  /* dirty, and not live */
    N_TIMED = 256,   /* waits for its debounce or throttle, or is late and waits for that of another */
    N_WAITING = 512, /* waits for something running to end */
    N_EFFECT = 1024,
    N_CERTAIN = 2048,
    N_DEMANDED = 4096,
    N_GONE = 8192,
    N_MATERIALIZER = 16384,
    N_IDLE = 32768, /* a materializer whose turn has come: wanted until it has run */
    N_LATE = 65536,
    N_HELD = 131072,        /* late, and waits until all is known */
    N_LEFT = 262144,        /* not to be run before something changes */
    N_BLOCKS = 524288,      /* failed or was left in this settling: others may be left because of it */
    N_LEADS = 1048576,      /* the output leads to what others write: it is `into` of some */
    N_FILLED = 2097152,     /* the output led nowhere before its last run */
    N_DISTRUSTED = 4194304, /* marked as unknown while it ran */
    N_MAKES = 8388608       /* it makes files */
};
#define N_PENDING (N_DIRTY | N_UNKNOWN)
#define N_AGAIN   (N_REDIRTY | N_DISTRUSTED)
#define N_PLACED  (N_QUEUED | N_PARKED | N_TIMED | N_WAITING | N_HELD | N_RUNNING)

typedef struct edge {
    uint32_t doc, path, kind;
} edge;

typedef struct node {
    char *name; /* own */
    edge *reads, *writes, *envelopes;
    uint32_t read_count, write_count, envelope_count;
    uint32_t flags;
    uint32_t rank;
    uint32_t runs, bumps;
    uint32_t live_at, none_at; /* epochs in which it was found live, or found not to be */
    uint32_t seen, from;       /* stamp and predecessor of the walk under way */
    uint32_t into;             /* whose output leads to what this one writes; STET_PLAN_NONE */
    uint32_t heir;             /* of one that is gone: who has its name now; STET_PLAN_NONE */
    uint32_t down_at;          /* epoch in which all that is downstream of it was loaded */
    uint32_t own;              /* stamp of a walk that began at one that leads into it */
    uint32_t below;            /* how many that lead into it run, or wait for what runs */
    uint32_t timed;            /* stamp of a walk before which one that leads into it had N_TIMED */
    uint32_t circle, turn;     /* which circle it is in, and where; 0: none */
    uint32_t unwanted_at;      /* epoch in which one whose `into` this is was found not to be live */
    int64_t dirty_at, started_at;
    int64_t debounce_ms, throttle_ms;
    void *data;
} node;

typedef struct doc {
    char *name; /* own; NULL: the place is free */
    size_t len;
    plan_index readers, writers, envelopes;
    uint32_t edges;      /* how many there are in the three */
    uint32_t covered_at; /* epoch of asking in which all its readers were known to be loaded */
    uint32_t turn;       /* counts up when an action that reads it is unloaded: what was asked is asked again */
    uint32_t demands;    /* the first of its cells that are demanded, plus one; 0: none is */
} doc;

/* A cell that is demanded, and the next one of its document, plus one. */
typedef struct demand {
    uint32_t path, next;
    stet_read_kind kind;
} demand;

typedef struct queued {
    uint64_t key; /* rank, then order of arrival */
    uint32_t rank, node;
} queued;

typedef struct timer {
    int64_t at;
    uint32_t node;
} timer;

struct stet_plan {
    stet_plan_source source;
    plan_paths paths;
    stet_map doc_names, node_names;
    stet_map left;  /* names of coordinators that are gone -> their number: who comes back under a name is the heir */
    stet_map asked; /* document, its turn, path, kind: places about which the source was asked */
    uint32_t asked_epoch;
    stet_plan_nodes free_nodes, free_docs; /* places of unloaded ones */
    STET_VEC(doc) docs;
    STET_VEC(node) nodes;
    STET_VEC(queued) heap;
    STET_VEC(timer) timers;
    STET_VEC(demand) demands;
    stet_plan_nodes demanded; /* documents with demands */
    stet_plan_nodes waiting, held;
    bool not_all; /* there are marked actions that are not loaded */
    stet_plan_nodes scratch, walk, found;
    stet_plan_nodes unwanted; /* those with an `into` that were found not to be live in `unwanted_epoch` */
    uint32_t unwanted_epoch;
    size_t running;
    uint32_t arrivals;
    uint32_t live_epoch, none_epoch, down_epoch, stamp;
    uint64_t shape;         /* stet_plan_shape */
    stet_plan_nodes *heard; /* who listens to marks by others; NULL: nobody */
    uint32_t walking;       /* stamp of the walk that is under way, or 0, */
    bool missed;            /* and whether an action came in that reads what the walk has passed */
};

static inline stet_pathref plan_path_at(const stet_plan *p, uint32_t path) {
    return p->paths.list.at[path];
}

/* plan_live.c: takes an action's edges away, without a thought about liveness. */
void plan_edges_drop(stet_plan *p, uint32_t id);
/* In plan.c. */
/* Whose output leads to what this one writes, under the number that it has by now; STET_PLAN_NONE. */
uint32_t plan_leader(stet_plan *p, uint32_t id);
/* Takes an action out of the counts (node.below) of those into whose outputs it leads; returns how often it was counted,
 * for putting it in again. */
size_t plan_uncount_below(stet_plan *p, uint32_t id);
void plan_count_below(stet_plan *p, uint32_t id, size_t times);
/* Loads everything downstream of an action, including what is up to date, so that a check whether the running action is
 * upstream of another finds the path between them. */
STET_CHECKED stet_status plan_load_downstream(stet_plan *p, uint32_t id, stet_error *err);
/* Loads every reader of a change. */
STET_CHECKED stet_status plan_load_readers(stet_plan *p, uint32_t d, stet_pathref path, stet_change_kind kind,
                                           stet_error *err);

/* plan_queue.c */
void plan_queue_push(stet_plan *p, uint32_t id);
/* The first by rank, then by arrival; false: none. */
bool plan_queue_pop(stet_plan *p, uint32_t *id);
/* Puts it behind, also where it stands in the queue. */
void plan_raise_rank(stet_plan *p, uint32_t id, uint32_t rank);
void plan_timer_push(stet_plan *p, int64_t at, uint32_t id);
void plan_timer_pop(stet_plan *p);

#endif
