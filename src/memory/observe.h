/* observe.h - what actions read and wrote: observations, the durable index, dirty marks, mirrors in other spaces.
 *
 * An observation is the record of one run of one action. It travels with the transaction of that run and is stored in
 * the same SQLite transaction as the data, or, if the run changed nothing, in a batch:
 *
 *     stet_tx_begin_in(group, &tx, &err);
 *     ... reads and writes ...
 *     stet_observe_attach(tx, &observation, &err);       // copied; reads and changed writes come from the transaction
 *     stet_group_add(group, tx, NULL, NULL, &err);       // or stet_tx_commit(tx, ...)
 *
 * The order inside a commit (space.c calls stet_observe_apply once per SQLite transaction, after the heads):
 *   1. data: commit rows and heads, net and in key order;
 *   2. marks: every action whose stored reads a changed leaf touches becomes dirty, every action whose current-known
 *      writes somebody else's change touches becomes dirty (overwritten), each with its cause;
 *   3. the observations of the group: snapshot blob, read and write index rows; unchanged rows are not rewritten;
 *   4. the action's own mark is cleared if its cause is not newer than what the run saw.
 *
 * Invariants
 *   O1. A standing action is a proof: for every read of its observation no overlapping change has a sequence above the
 *       one stored. The mark is the index of that proof; check derives each mark again.
 *   O2. Only direct dirt and `unknown` are stored. Stale is derived.
 *   O3. An observation that can't be stored never fails the data commit: the action becomes unknown.
 *   O4. Commits above `marked_through` have not been looked at by step 2 (made with the switch off, or by an older
 *       version); they are scanned before anything is called standing.
 *   O5. An aborted transaction leaves no observation; attempted writes that changed nothing never enter.
 *
 * The sequence of reads. When a commit holds, every read of it was just proved against everything up to that commit,
 * its own writes included; so the stored sequence of each read in the space written to is the sequence of the commit
 * (of the space, for a run that changed nothing), and of a read in another space the sequence of that space when it was
 * validated under its lock. stet_tx_reads gives them so after the commit.
 */
#ifndef STET_MEMORY_OBSERVE_H
#define STET_MEMORY_OBSERVE_H

#include "memory/space.h"

typedef enum stet_action_kind {
    STET_ACTION_COMPUTATION = 1,
    STET_ACTION_EFFECT = 2,
    STET_ACTION_HANDLER = 3
} stet_action_kind;
typedef enum stet_action_state { STET_STANDS, STET_DIRTY, STET_STALE, STET_UNKNOWN } stet_action_state;
typedef enum stet_run_kind {
    STET_RUN_DEPENDENCIES = 1, /* reads recorded, writes not published */
    STET_RUN_ACTION = 2,
    STET_RUN_PREFLIGHT = 3
} stet_run_kind;

/* Who an action is. Owner space and branch are those of the transaction. */
typedef struct stet_action_key {
    const char *piece;  /* id of the piece's result document */
    const char *scope;  /* of that document; NULL is "" */
    const char *action; /* stable per instance: node id, parent action, bound inputs and outputs */
} stet_action_key;

/* A cell, in any space. */
typedef struct stet_address {
    const char *space; /* UUID; NULL: the owner space */
    stet_docname name;
    stet_pathref path; /* in the envelope */
} stet_address;

struct stet_observation {
    stet_action_key key;
    stet_action_kind kind;
    int64_t generation;       /* of the process graph */
    stet_hash implementation; /* fingerprint of what computes */
    stet_hash runtime;        /* fingerprint of what runs it, scheduler mode included */
    stet_run_kind run;
    const char *parent; /* parent action of a dynamic child; NULL: none */
    const stet_address *declared_writes;
    size_t declared_count;
    const stet_address *envelopes; /* of a materializer */
    size_t envelope_count;
    const stet_address *ignored_writes; /* never enter the indexes */
    size_t ignored_count;
    stet_value options; /* {"debounceMs","noDebounce","throttleMs","onRestart"} or null */
    bool failed;
    stet_hash error; /* fingerprint of the failure */
    stet_value note; /* small, shown by `why`: last error message, durations; or null */
};

/* Copies the observation into the transaction; once per transaction. STET_INVALID if the transaction has ended or the
 * key breaks the grammar of ids. */
STET_CHECKED stet_status stet_observe_attach(stet_tx *tx, const stet_observation *o, stet_error *err);

/* The seam: called by the commit inside its SQLite transaction with every applied member, in order. Never fails the
 * data: what goes wrong with an observation is undone to a savepoint and makes its action unknown. A failure of the
 * database itself sticks to the handle as always. */
typedef struct stet_applied {
    int64_t seq;                    /* 0: changed nothing */
    const stet_doc_change *changes; /* final, with document numbers */
    size_t change_count;
    const stet_tx_read_record *reads; /* validated, with the sequence up to which each holds */
    size_t read_count;
    const stet_observation *observation; /* or NULL */
} stet_applied;
void stet_observe_apply(stet_space *s, int64_t branch, const stet_applied *at, size_t len);

#endif
