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

/* stet_action_kind, stet_action_state, stet_run_kind and stet_action_key are in stet.h. */

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
    /* What says how to run it lies in the document `key.piece` at this path, and is that of this sequence (0: nowhere).
     * If somebody has changed it since, the run does not hold, as with a read; but it is none, and is not kept. */
    stet_pathref rests_on;
    int64_t rests_since;
    const char *parent; /* parent action of a dynamic child; NULL: none */
    const stet_address *declared_writes;
    size_t declared_count;
    const stet_address *envelopes; /* of a materializer */
    size_t envelope_count;
    const stet_address *ignored_writes; /* never enter the indexes */
    size_t ignored_count;
    /* What it is known to have written in earlier runs stays its own, also where this run left it as it was: all of it
     * (`keeps_known`), or what lies in these cells, through which it may write. */
    bool keeps_known;
    const stet_address *cells;
    size_t cell_count;
    bool declared_alone; /* nothing that it wrote beside what it declares enters the indexes */
    stet_value options;  /* {"debounceMs","noDebounce","throttleMs","onRestart"} or null */
    bool failed;
    stet_hash error; /* fingerprint of the failure */
    stet_value note; /* small, shown by `why`: last error message, durations; or null */
    /* Actions of the same piece that the run brought forth or changed: unknown from this commit on. And those that it
     * did away with: out of every table, in the same SQLite transaction. */
    const char *const *made;
    size_t made_count;
    const char *const *gone;
    size_t gone_count;
};

/* Copies the observation into the transaction; once per transaction. STET_INVALID if the transaction has ended or the
 * key breaks the grammar of ids. */
STET_CHECKED stet_status stet_observe_attach(stet_tx *tx, const stet_observation *o, stet_error *err);

/* ---- Marks -------------------------------------------------------------------------------------------------- */

/* Why an action does not stand. Stored: append only. */
typedef enum stet_reason {
    STET_REASON_NONE = 0,
    STET_REASON_CHANGED = 1,         /* dirty: a change overlaps a read */
    STET_REASON_OVERWRITTEN = 2,     /* dirty: somebody else changed what it had written */
    STET_REASON_NEVER = 16,          /* unknown from here on: no observation */
    STET_REASON_IMPLEMENTATION = 17, /* other code */
    STET_REASON_SCHEMA = 18,
    STET_REASON_RUNTIME = 19,    /* other version of the runtime, other mode of the scheduler */
    STET_REASON_GENERATION = 20, /* the process graph was rebuilt and the node changed */
    STET_REASON_BINDING = 21,    /* other inputs or outputs */
    STET_REASON_BRANCH = 22,     /* forked or merged: observed on another line of history */
    STET_REASON_LOST = 23,       /* its observation could not be stored */
    STET_REASON_CORRUPT = 24,    /* its row does not decode */
    STET_REASON_RESTORED = 25,   /* a space it read or lives in is an older copy of what it was */
    STET_REASON_REPAIRED = 26,   /* check found its mark wrong */
    STET_REASON_REQUESTED = 27   /* somebody asked for it to run again */
} stet_reason;
#define STET_REASONS 32                      /* more than there are */
const char *stet_reason_name(stet_reason r); /* "changed", "overwritten", "never", ... */

/* A mark with its cause: the newest change known to overlap. */
typedef struct stet_cause {
    stet_action_state state; /* STET_DIRTY or STET_UNKNOWN; STET_STANDS: there is no mark */
    stet_reason reason;
    const char *space; /* UUID of the space of the change; NULL: the action's own */
    int64_t seq;       /* of that change; 0 for unknown */
    stet_docname name; /* of the document that changed; id NULL for unknown */
    stet_change change;
} stet_cause;

/* Makes actions of one piece unknown, in a transaction of its own (or in the open one of `s`). Absent actions are made
 * known as names without an observation: they are unknown too. */
STET_CHECKED stet_status stet_observe_distrust(stet_space *s, int64_t branch, const stet_action_key *keys, size_t len,
                                               stet_reason reason, stet_error *err);
/* Takes actions out of every table, mirrors included: their nodes are gone. All of a piece if `keys` is NULL. */
STET_CHECKED stet_status stet_observe_forget(stet_space *s, int64_t branch, const char *piece, const char *scope,
                                             const stet_action_key *keys, size_t len, stet_error *err);

/* ---- Being current ------------------------------------------------------------------------------------------ */

/* Before anything is called standing: commits above marked_through are looked at, marks that other spaces did not get
 * to push are fetched, and readers of a space that was replaced or restored become unknown. One integer comparison
 * when there is nothing to do and no other space was read. Not inside a transaction of the handle. */
STET_CHECKED stet_status stet_observe_catch_up(stet_space *s, stet_error *err);
/* What stet_observe_catch_up would have to do, for a handle that only reads: what such a one is told of actions holds
 * as far as everything but this goes. Nothing, in all but rare cases. */
typedef struct stet_observe_debt {
    int64_t commits; /* of this space that were not looked at */
    int64_t spaces;  /* others that were read and owe marks, or are not what they were */
} stet_observe_debt;
STET_CHECKED stet_status stet_observe_owed(stet_space *s, stet_observe_debt *out, stet_error *err);
/* Makes batched observations of runs that changed nothing durable. A data commit, a flush and stet_space_close do too.
 */
STET_CHECKED stet_status stet_observe_sync(stet_space *s, stet_error *err);
/* Off: nothing is stored, marked or listed; what is stored is inert. Commits made meanwhile are looked at by the next
 * stet_observe_catch_up with it on. On is the default. */
void stet_observe_switch(stet_space *s, bool on);

/* How many observations of an action are kept, the latest included: 1 unless set, STET_OBSERVE_KEEP_MAX at most. Those
 * above the number go with the next observation of their action, or by gc. stet_space_open takes it from the setting
 * scheduler.keep_observations of the project. */
#define STET_OBSERVE_KEEP_MAX 1000
void stet_observe_keep(stet_space *s, int count);
/* A run left so many actions standing: counted with the next transaction that stores something, at the latest when the
 * handle is closed; by a handle that stored no run not at all, so that a start that runs nothing writes nothing. */
void stet_observe_stood(stet_space *s, int64_t count);

/* ---- Questions ---------------------------------------------------------------------------------------------- */

/* One read or write of an observation. */
typedef struct stet_observed {
    const char *space; /* UUID; NULL: the action's own space */
    stet_docname name;
    int64_t doc; /* number in that space, 0 if it is another one */
    stet_pathref path;
    stet_read_kind kind; /* of a read */
    int64_t seq;         /* up to which the read is known to hold */
} stet_observed;

/* An action as stored. Everything lives in the arena given; `options` and `note` are texts, parsed on demand. */
typedef struct stet_action_record {
    int64_t action; /* its number: order of lists, cursor of pages */
    stet_action_key key;
    bool observed; /* false: only the name is known, nothing below is set but `cause` */
    stet_action_kind kind;
    int64_t generation;
    stet_hash implementation, runtime;
    stet_run_kind run;
    const char *parent;  /* or NULL */
    int64_t observed_at; /* sequence of the space when it was stored */
    int64_t commit_seq;  /* of its data; 0: it changed nothing */
    int64_t time_ms;
    const stet_observed *reads; /* recursive and shallow, by space, document, path */
    size_t read_count;
    const stet_observed *changed; /* what the run really changed */
    size_t changed_count;
    const stet_observed *known; /* current-known writes */
    size_t known_count;
    const stet_observed *declared;
    size_t declared_count;
    const stet_observed *envelopes;
    size_t envelope_count;
    const stet_observed *ignored;
    size_t ignored_count;
    const char *options; /* canonical JSON or "null" */
    size_t options_len;
    const char *note;
    size_t note_len;
    bool failed;
    stet_hash error;
    stet_cause cause; /* its mark, if any */
} stet_action_record;

/* STET_NOT_FOUND if the action is not known at all. */
STET_CHECKED stet_status stet_observe_find(stet_space *s, int64_t branch, const stet_action_key *key, stet_arena *arena,
                                           stet_action_record *out, stet_error *err);
STET_CHECKED stet_status stet_observe_get(stet_space *s, int64_t action, stet_arena *arena, stet_action_record *out,
                                          stet_error *err);
/* The number of an action; STET_NOT_FOUND. */
STET_CHECKED stet_status stet_observe_number(stet_space *s, int64_t branch, const stet_action_key *key, int64_t *out,
                                             stet_error *err);
/* What a scheduler needs to restore an action, and no more: key, fingerprints, state, failure, reads, current-known
 * writes and envelopes. The rest is empty, and of the cause the state alone is told. */
STET_CHECKED stet_status stet_observe_brief(stet_space *s, int64_t action, stet_arena *arena, stet_action_record *out,
                                            stet_error *err);

/* The observations of an action that later ones have replaced and that are still kept, newest first; `cause` is not
 * set in them. */
STET_CHECKED stet_status stet_observe_past(stet_space *s, int64_t action, stet_arena *arena, stet_action_record **out,
                                           size_t *count, stet_error *err);

typedef struct stet_action_filter {
    const char *piece, *scope; /* NULL: any piece */
    int64_t generation;        /* negative: any */
    int64_t after;             /* number of the last one seen; 0: from the start */
    size_t limit;
} stet_action_filter;
/* In the order of (piece, action number), which never changes for an action. `next` is the `after` of the next page, 0
 * at the end. */
STET_CHECKED stet_status stet_observe_list(stet_space *s, int64_t branch, const stet_action_filter *f,
                                           stet_arena *arena, stet_action_record **out, size_t *count, int64_t *next,
                                           stet_error *err);
/* The same without decoding: for each action its number and stored bytes, until `each` returns false. */
typedef bool (*stet_observe_each)(void *ctx, int64_t action, const char *name, size_t name_len, const void *bytes,
                                  size_t len);
STET_CHECKED stet_status stet_observe_scan(stet_space *s, int64_t branch, const stet_action_filter *f,
                                           stet_observe_each each, void *ctx, stet_error *err);

/* How many actions of a piece are known. */
STET_CHECKED stet_status stet_observe_known(stet_space *s, int64_t branch, const char *piece, int64_t *out,
                                            stet_error *err);

/* A marked action: direct dirt and unknown. */
typedef struct stet_marked {
    int64_t action;
    stet_action_state state;
    stet_reason reason;
    int64_t seq;
} stet_marked;
/* Marks of a piece (NULL: of the branch), in the order of numbers. Costs what is marked, not what exists. */
STET_CHECKED stet_status stet_observe_marks(stet_space *s, int64_t branch, const char *piece, const char *scope,
                                            stet_arena *arena, stet_marked **out, size_t *count, stet_error *err);
/* The same for the whole branch, from above the number `after` and at most `limit`, of those set since a survey (its
 * `through`; 0: all), with the names of the piece's
 * document and of the action, one at a time; the visitor must not ask the space anything. Marks whose action is gone
 * are passed over. */
STET_CHECKED stet_status stet_observe_each_mark(stet_space *s, int64_t branch, int64_t since, int64_t after,
                                                size_t limit,
                                                stet_status (*visit)(void *ctx, int64_t action, const char *piece,
                                                                     const char *name, stet_action_state state,
                                                                     stet_error *err),
                                                void *ctx, stet_error *err);
/* How many actions of a piece (NULL: of the branch) have one. */
STET_CHECKED stet_status stet_observe_count_marks(stet_space *s, int64_t branch, const char *piece, size_t *out,
                                                  stet_error *err);
/* Is anything of the piece marked? A single look-up. */
STET_CHECKED stet_status stet_observe_any(stet_space *s, int64_t branch, const char *piece, const char *scope,
                                          bool *out, stet_error *err);

/* What was found not to be needed is not looked at again: a survey says that all that was marked on a branch up to
 * `through` is of no use for a demand (any hash that stands for one, and for everything but the record that decides
 * what it needs). It is gone as soon as an action reads what it did not read before, or becomes unknown. STET_NOT_FOUND
 * (without an error): there is none. To be asked for after stet_observe_catch_up. */
typedef struct stet_survey {
    int64_t through;
    int64_t left; /* as it was recorded */
    bool newer;   /* there are marks that were set since */
    bool same;    /* no mark was set or cleared since, anywhere in the space */
} stet_survey;
STET_CHECKED stet_status stet_observe_survey(stet_space *s, int64_t branch, stet_hash demand, stet_survey *out,
                                             stet_error *err);
/* All that is marked on the branch now is not needed for the demand. Nothing is recorded if somebody else has written
 * since the version of the database was `version` (stet_db_data_version), or to a handle that only reads. */
STET_CHECKED stet_status stet_observe_surveyed(stet_space *s, int64_t branch, stet_hash demand, int64_t version,
                                               int64_t left, stet_error *err);

/* Actions of this space (numbers, ascending, each once) whose stored reads a change touches: findSchedulerReaders-
 * ForWrite. And those whose writes a read overlaps; `flags` says which write surfaces count. */
enum { STET_WRITE_KNOWN = 1, STET_WRITE_DECLARED = 2, STET_WRITE_ENVELOPE = 4 };
typedef struct stet_numbers {
    int64_t *at;
    size_t len, cap;
} stet_numbers;
STET_CHECKED stet_status stet_observe_readers(stet_space *s, int64_t branch, const stet_docname *name,
                                              stet_pathref path, stet_change_kind kind, stet_numbers *out,
                                              stet_error *err);
STET_CHECKED stet_status stet_observe_writers(stet_space *s, int64_t branch, const stet_docname *name,
                                              stet_pathref path, unsigned flags, stet_numbers *out, stet_error *err);
/* Actions of other spaces that read what changes, by their mirrors in this one: name and UUID of their space, and their
 * number there. */
typedef struct stet_far_reader {
    const char *space, *uuid;
    int64_t action;
} stet_far_reader;
STET_CHECKED stet_status stet_observe_far_readers(stet_space *s, const stet_docname *name, stet_pathref path,
                                                  stet_change_kind kind, stet_arena *arena, stet_far_reader **out,
                                                  size_t *count, stet_error *err);
/* Everything downstream of these actions over current-known writes and reads, they themselves left out unless they
 * reach themselves. With the marked actions as roots: what is stale. Costs what is reached. `max` 0: no bound. */
STET_CHECKED stet_status stet_observe_downstream(stet_space *s, int64_t branch, const int64_t *roots, size_t root_count,
                                                 size_t max, stet_numbers *out, stet_error *err);
/* State with stale derived: from the marks of the branch downward. `*via` (may be NULL): the marked action that makes
 * it stale. */
STET_CHECKED stet_status stet_observe_state(stet_space *s, int64_t branch, int64_t action, stet_action_state *out,
                                            int64_t *via, stet_error *err);
void stet_numbers_release(stet_numbers *n);

typedef struct stet_observe_stats {
    int64_t actions, observed, dirty, unknown, read_rows, write_rows, mirror_rows, foreign_spaces, observation_bytes;
    int64_t marked_through, seq;
    int64_t past_rows, past_bytes; /* replaced observations that are kept */
    int64_t marks[STET_REASONS];   /* by stet_reason */
    int64_t runs[STET_REASONS];    /* since the space was made: by what was known against the action before */
    int64_t stood;                 /* how many such runs left standing */
    struct stet_observe_counts {   /* of this handle since it was opened: what one run of a pattern did */
        int64_t stored;            /* observations */
        int64_t kept_noops, dropped_noops;
        int64_t marks_set, marks_cleared;
        int64_t lost;        /* observations that could not be stored */
        int64_t rows, bytes; /* index rows written, bytes of observations */
        int64_t runs[STET_REASONS];
        int64_t stood;
    } handle;
} stet_observe_stats;
STET_CHECKED stet_status stet_observe_stat(stet_space *s, stet_observe_stats *out, stet_error *err);
/* `handle` alone, without a look at the file. */
struct stet_observe_counts stet_observe_counted(stet_space *s);

/* As values. They belong to the caller. */
stet_value stet_action_value(const stet_action_record *r); /* what is stored; its state and cause are apart */
stet_value stet_cause_value(const stet_cause *c);          /* {"reason","seq","cell","scope","space","kind"} */
/* {"changed": 3, ...}, from a reason on; the count at 0 is called "asked". */
stet_value stet_reasons_value(const int64_t counts[STET_REASONS], stet_reason from);
stet_value stet_observe_stats_value(const stet_observe_stats *st);
stet_value stet_observe_counts_value(const struct stet_observe_counts *c);

/* Derives every mark again from sequences and revisions, compares index rows with observations, mirrors with foreign
 * reads. One line per difference. With `repair` a difference becomes unknown, an index row is rebuilt. */
STET_CHECKED stet_status stet_observe_check(stet_space *s, bool repair, stet_buf *problems, size_t *found,
                                            size_t *repaired, stet_error *err);
/* Removes what nobody needs: actions of deleted branches and of deleted pieces; actions of an earlier generation whose
 * node is gone; replaced observations beyond what is kept, and those of an earlier generation than their action's;
 * superseded fingerprints; mirrors of owners that are gone. */
typedef struct stet_observe_gc_opts {
    bool dry_run;
    /* Is the node of an action gone, which was last observed in this generation of its piece's graph? NULL: none is. It
     * may read from the space. */
    bool (*gone)(void *ctx, stet_space *s, int64_t branch, const stet_action_key *key, int64_t generation);
    void *ctx;
} stet_observe_gc_opts;
STET_CHECKED stet_status stet_observe_gc(stet_space *s, const stet_observe_gc_opts *opts, int64_t *rows,
                                         stet_error *err);

/* ---- The seam with the commit --------------------------------------------------------------------------------- */

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
/* What could not be stored after all: the actions of these runs (of those that read from `in`, if it is not NULL)
 * become unknown. Inside the transaction of the commit. */
void stet_observe_lost(stet_space *s, int64_t branch, const stet_applied *at, size_t len, const stet_space *in);
/* After the SQLite transaction has ended and every lock is free: marks owed to other spaces are pushed. */
void stet_observe_done(stet_space *s, bool committed);
void stet_observe_release(stet_space *s); /* what the handle holds; by stet_space_close, after stet_observe_sync */

#endif
