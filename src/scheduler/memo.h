/* memo.h - what the scheduler asks of the record of past runs. Two make it: the durable one, over the observations in
 * the space (memo_durable.c), and one that knows nothing and stores nothing (memo_volatile.c), for `[scheduler]
 * persist = false`: there every action is unknown at every start, and rows stored earlier are inert.
 *
 * Strings and paths handed out live in the arena that was given, or for the call of the visitor.
 */
#ifndef STET_SCHEDULER_MEMO_H
#define STET_SCHEDULER_MEMO_H

#include "graph/piece.h"
#include "memory/observe.h"

typedef struct stet_memo stet_memo;

/* One read or write of an observation. `space` is a UUID, NULL for the own space; paths are in the envelope. */
typedef struct stet_memo_cell {
    const char *space;
    stet_docname name;
    stet_pathref path;
    stet_read_kind kind;
} stet_memo_cell;

/* An action as the record has it. */
typedef struct stet_memo_action {
    int64_t number;
    const char *piece;  /* id of the result document */
    const char *action; /* node id */
    bool observed;      /* there is an observation; false: reads and writes below are empty */
    bool failed;
    stet_action_state state; /* STANDS, DIRTY or UNKNOWN; stale is derived */
    stet_hash implementation, runtime;
    int64_t generation;
    const stet_memo_cell *reads, *writes;
    size_t read_count, write_count;
} stet_memo_action;

/* Actions are told by their numbers in the record: whoever has them in memory knows them by that, without a look-up of
 * names for each (which was half of the time of a settling). */
typedef stet_status (*stet_memo_visit)(void *ctx, int64_t number, stet_error *err);
/* With names, which cost little when all are listed. Borrowed for the call. */
typedef stet_status (*stet_memo_visit_pending)(void *ctx, int64_t number, const char *piece, const char *action,
                                               stet_action_state state, stet_error *err);

typedef struct stet_memo_ops {
    void (*close)(stet_memo *x);
    /* Dirty and unknown actions of the branch, of all pieces, in the order of numbers: those above `after`, at most
     * `limit`, that became so since a survey (0: all). Must not be re-entered. */
    stet_status (*pending)(stet_memo *x, int64_t since, int64_t after, size_t limit, stet_memo_visit_pending visit,
                           void *ctx, stet_error *err);
    /* How many, of a piece or (NULL) of all. */
    stet_status (*count)(stet_memo *x, const char *piece, size_t *out, stet_error *err);
    /* What was found not to be needed for a demand (memory/observe.h). STET_NOT_FOUND: nothing is known. */
    stet_status (*survey)(stet_memo *x, stet_hash demand, stet_survey *out, stet_error *err);
    stet_status (*surveyed)(stet_memo *x, stet_hash demand, int64_t version, size_t left, stet_error *err);
    /* Are there any? */
    stet_status (*any)(stet_memo *x, bool *out, stet_error *err);
    /* Actions whose stored reads a change touches. `*complete`: those are all readers of the document. */
    stet_status (*readers)(stet_memo *x, const char *space, const stet_docname *name, stet_pathref path,
                           stet_change_kind kind, stet_memo_visit visit, void *ctx, bool *complete, stet_error *err);
    /* STET_NOT_FOUND: never heard of. */
    stet_status (*load)(stet_memo *x, const char *piece, const char *action, stet_arena *arena, stet_memo_action *out,
                        stet_error *err);
    stet_status (*get)(stet_memo *x, int64_t number, stet_arena *arena, stet_memo_action *out, stet_error *err);
    /* These actions are unknown from now on, whether they were heard of or not; these are forgotten. Durable on return,
     * each by itself: see install.c for the order that makes a crash in between harmless. */
    stet_status (*distrust)(stet_memo *x, const char *piece, const char *const *actions, size_t count,
                            stet_reason reason, stet_error *err);
    stet_status (*forget)(stet_memo *x, const char *piece, const char *const *actions, size_t count, stet_error *err);
    /* Has it heard of any action of the piece? */
    stet_status (*knows)(stet_memo *x, const char *piece, bool *out, stet_error *err);
} stet_memo_ops;

struct stet_memo {
    const stet_memo_ops *ops;
    stet_space *space;
    int64_t branch;
    bool durable;
};

/* Holds one snapshot of the space over many look-ups, each of which would begin its own otherwise. False: there is one
 * already, or it could not be had; it is only faster with it. */
bool stet_memo_hold(stet_space *s);
void stet_memo_let_go(stet_space *s, bool held);

/* Another one whenever somebody else has written to the space, whatever it was. */
int64_t stet_memo_version(stet_space *s);

/* The durable one. */
STET_CHECKED stet_status stet_memo_open(stet_space *s, int64_t branch, stet_memo **out, stet_error *err);
/* The one that stores nothing. */
stet_memo *stet_memo_volatile(stet_space *s, int64_t branch);

#endif
