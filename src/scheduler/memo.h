/* memo.h - what the scheduler asks of the record of past runs.
 *
 * A durable record lies in the observations of the space. The other one knows and stores nothing, for `[scheduler]
 * persist = false`: every action is unknown at every start, and rows stored earlier have no effect.
 *
 * Strings and paths that are handed out live in the given arena, or for the call of the visitor.
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

/* An action as recorded. */
typedef struct stet_memo_action {
    int64_t number;
    const char *piece;  /* the key of the piece (graph/process.h), as everywhere below */
    const char *action; /* node id */
    bool observed;      /* there is an observation; false: the reads and writes below are empty */
    bool failed;
    stet_action_state state; /* STANDS, DIRTY or UNKNOWN; stale is derived */
    stet_reason reason;      /* if it is not up to date */
    stet_hash implementation, runtime;
    int64_t generation;
    int64_t observed_at; /* sequence of its last run */
    const stet_memo_cell *reads, *writes;
    size_t read_count, write_count;
} stet_memo_action;

/* Actions are identified by their numbers in the record, so that loaded actions are found without looking up names.
 * (That look-up took half of the time of a settling.) */
typedef stet_status (*stet_memo_visit)(void *ctx, int64_t number, stet_error *err);
/* The same with names, which cost little when all actions are listed. Borrowed for the call. `piece` NULL: the action
 * belongs to a document that is not a piece. */
typedef stet_status (*stet_memo_visit_pending)(void *ctx, int64_t number, const char *piece, const char *action,
                                               stet_action_state state, stet_error *err);

struct stet_memo {
    stet_space *space;
    int64_t branch;
    bool durable;
};

stet_memo *stet_memo_open(stet_space *s, int64_t branch, bool durable);
void stet_memo_close(stet_memo *x);
/* Visits dirty and unknown actions of the branch, of all pieces, in the order of numbers: those above `after`, at
 * most `limit`, marked since a survey (0: all). Not re-entrant. */
STET_CHECKED stet_status stet_memo_pending(stet_memo *x, int64_t since, int64_t after, size_t limit,
                                           stet_memo_visit_pending visit, void *ctx, stet_error *err);
/* Their number, in a piece or (NULL) in all. */
STET_CHECKED stet_status stet_memo_count(stet_memo *x, const char *piece, size_t *out, stet_error *err);
/* What was found unneeded for a demand (memory/observe.h). STET_NOT_FOUND: nothing is known. */
STET_CHECKED stet_status stet_memo_survey(stet_memo *x, stet_hash demand, stet_survey *out, stet_error *err);
STET_CHECKED stet_status stet_memo_surveyed(stet_memo *x, stet_hash demand, int64_t version, size_t left,
                                            stet_error *err);
/* Are there any dirty or unknown actions? */
STET_CHECKED stet_status stet_memo_any(stet_memo *x, bool *out, stet_error *err);
/* Visits actions whose stored reads a change touches. `*complete`: those are all readers of the document. */
STET_CHECKED stet_status stet_memo_readers(stet_memo *x, const char *space, const stet_docname *name, stet_pathref path,
                                           stet_change_kind kind, stet_memo_visit visit, void *ctx, bool *complete,
                                           stet_error *err);
/* Numbers of actions of the branch whose last run failed. */
STET_CHECKED stet_status stet_memo_failed(stet_memo *x, stet_numbers *out, stet_error *err);
/* STET_NOT_FOUND: never recorded. */
STET_CHECKED stet_status stet_memo_load(stet_memo *x, const char *piece, const char *action, stet_arena *arena,
                                        stet_memo_action *out, stet_error *err);
/* STET_NOT_FOUND also for one that is of no piece, by its name. */
STET_CHECKED stet_status stet_memo_get(stet_memo *x, int64_t number, stet_arena *arena, stet_memo_action *out,
                                       stet_error *err);
/* Makes an action unknown. Durable on return. */
STET_CHECKED stet_status stet_memo_distrust(stet_memo *x, const char *piece, const char *action, stet_reason reason,
                                            stet_error *err);
/* With the transaction that replaces the graph of a piece: makes the `unknown` actions unknown, whether they are
 * recorded or not, and removes those that are `gone`. `t` without a piece. */
STET_CHECKED stet_status stet_memo_turn_over(stet_memo *x, stet_tx *tx, const char *piece, stet_turnover t,
                                             stet_error *err);
/* Is any action of the piece recorded? */
STET_CHECKED stet_status stet_memo_knows(stet_memo *x, const char *piece, bool *out, stet_error *err);
/* Holds one snapshot of the space over many look-ups, which would each begin their own otherwise. False: there already
 * is one, or it could not be begun; it only makes look-ups faster. */
bool stet_memo_hold(stet_space *s);
void stet_memo_let_go(stet_space *s, bool held);

/* Changes whenever another connection has written to the space. */
int64_t stet_memo_version(stet_space *s);

#endif
