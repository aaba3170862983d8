/* observe.h - what actions read and wrote: observations, the durable index, dirty marks, mirrors.
 *
 * An observation is the record of one run of one action. It is part of the transaction of that run and is stored in the
 * same SQLite transaction as the data or, if the run changed nothing, in a batch:
 *
 *     stet_tx *tx;
 *     stet_status status = stet_tx_begin_in(group, &tx, &err);
 *     if (status != STET_OK)
 *         return status;
 *     stet_value rows;
 *     status = stet_tx_read(tx, NULL, &name, path, STET_RECURSIVE, &rows, &err);
 *     if (status == STET_OK) // copied; reads and changed writes come from the transaction
 *         status = stet_observe_attach(tx, &observation, &err);
 *     if (status == STET_OK) // or stet_tx_commit(tx, NULL, &err)
 *         status = stet_group_add(group, tx, NULL, NULL, &err);
 *     if (status != STET_OK)
 *         stet_tx_abort(tx);
 *
 * The order inside a commit (commit.c calls stet_observe_apply once per SQLite transaction, after the heads):
 *
 *   1. data: commit rows and heads, net and in key order;
 *   2. marks: every action whose stored reads a changed leaf touches becomes dirty; every action whose current-known
 *      writes are touched by another writer's change becomes dirty (overwritten); each with its cause;
 *   3. the observations of the group: snapshot blob, read and write index rows; unchanged rows are not rewritten;
 *   4. the action's own mark is cleared if its cause is not newer than what the run saw.
 *
 * Invariants
 *
 *   O1. An action that is up to date ("stands") is a proof: for every read of its observation no overlapping change has
 *       a sequence above the stored one. The mark is the index of that proof; check derives each mark again.
 *   O2. Only directly dirty and `unknown` are stored. Stale is derived.
 *   O3. An observation that can't be stored never fails the data commit: the action becomes unknown.
 *   O4. Commits above `marked_through` have not been processed by step 2 (they were made with the switch off, or by an
 *       older version); they are scanned before anything is called up to date.
 *   O5. An aborted transaction leaves no observation; attempted writes that changed nothing are never recorded.
 *
 * The sequence of reads. When a commit holds, every read of it was just verified against everything up to that commit,
 * its own writes included. So the stored sequence of each read in the space written to is the sequence of the commit
 * (of the space, for a run that changed nothing). For a read in another space it is the sequence of that space when it
 * was validated under its lock. stet_tx_reads returns these sequences after the commit.
 */
#ifndef STET_MEMORY_OBSERVE_H
#define STET_MEMORY_OBSERVE_H

#include "base/map.h"
#include "memory/space.h"
#include "os/file.h"

/* stet_action_kind, stet_action_state, stet_run_kind and stet_action_key are in stet.h. */

/* A cell, in any space. */
typedef struct stet_address {
    const char *space; /* UUID; NULL: the owner space */
    stet_docname name;
    stet_pathref path; /* in the envelope */
} stet_address;

#define STET_OBSERVE_NOTE_MAX 4096 /* bytes of a note, or of options, as text */

struct stet_observation {
    stet_action_key key;
    stet_action_kind kind;
    int64_t generation;       /* of the process graph */
    stet_hash implementation; /* fingerprint of the code */
    stet_hash runtime;        /* fingerprint of the runtime, scheduler mode included */
    stet_run_kind run;
    /* The description of how to run the action: in the document `key.piece` at this path, as of this sequence (0:
     * none). If it has changed since, the run does not hold, as with a read; but it is not a read, and is not stored.
     */
    stet_pathref rests_on;
    int64_t rests_since;
    const char *parent; /* parent action of a dynamic child; NULL: none */
    const stet_address *declared_writes;
    size_t declared_count;
    const stet_address *envelopes; /* of a materializer */
    size_t envelope_count;
    const stet_address *ignored_writes; /* never indexed */
    size_t ignored_count;
    /* Everything that the run set, whether it changed anything or not. With `tells_written` these and the declared
     * writes are all that the action owns from now on. Otherwise it owns what changed, or what was known before. */
    bool tells_written;
    const stet_address *written;
    size_t written_count;
    bool new_code;       /* what an earlier run is known to have written was written by other code */
    bool declared_alone; /* writes that are not declared are not indexed */
    stet_value options;  /* {"debounceMs","noDebounce","throttleMs","onRestart"} or null */
    bool failed;
    stet_hash error; /* fingerprint of the failure */
    bool doubtful;   /* nobody can say what the failure depends on: the action is unknown from now on */
    stet_value note; /* shown by `why`: last error message, durations; or null. Omitted if too long */
    /* `made`: actions of the same piece that the run created or changed; they are unknown from this commit on. `gone`:
     * actions that it removed; they are deleted from every table, in the same SQLite transaction. */
    const char *const *made;
    size_t made_count;
    const char *const *gone;
    size_t gone_count;
};

/* Copies the observation into the transaction; once per transaction. STET_INVALID: the transaction has ended, or the
 * key is not a valid id. */
STET_CHECKED stet_status stet_observe_attach(stet_tx *tx, const stet_observation *o, stet_error *err);

/* Why an action is not up to date. The numbers are stored: append only. */
typedef enum stet_reason {
    STET_REASON_NONE = 0,
    STET_REASON_CHANGED = 1,         /* dirty: a change overlaps a read */
    STET_REASON_OVERWRITTEN = 2,     /* dirty: another writer changed what it had written */
    STET_REASON_NEVER = 16,          /* unknown from here on: no observation */
    STET_REASON_IMPLEMENTATION = 17, /* the code changed */
    STET_REASON_SCHEMA = 18,
    STET_REASON_RUNTIME = 19,    /* another version of the runtime, or another mode of the scheduler */
    STET_REASON_GENERATION = 20, /* the process graph was rebuilt and the node changed */
    STET_REASON_BINDING = 21,    /* its inputs or outputs changed */
    STET_REASON_BRANCH = 22,     /* forked or merged: observed on another line of history */
    STET_REASON_LOST = 23,       /* its observation could not be stored */
    STET_REASON_CORRUPT = 24,    /* its row does not decode */
    STET_REASON_RESTORED = 25,   /* a space that it read or belongs to was replaced by an older copy */
    STET_REASON_REPAIRED = 26,   /* check found that its mark was wrong */
    STET_REASON_REQUESTED = 27,  /* a rerun was requested */
    STET_REASON_SPACE = 28,      /* a space that did not exist when it looked exists now */
    STET_REASON_WAITS = 29,      /* it failed, and now waits for another failing action: it was not tried since */
    STET_REASON_PATTERN = 30,    /* the pattern file of its piece, or of one that it reads, is invalid */
    STET_REASON_LEFT = 31        /* the action that wrote a file it read is gone */
} stet_reason;
#define STET_REASONS 32                      /* larger than the largest reason */
const char *stet_reason_name(stet_reason r); /* "changed", "overwritten", "never", ... */

/* A mark with its cause, the newest known change that overlaps. */
typedef struct stet_cause {
    stet_action_state state; /* STET_STATE_DIRTY or STET_STATE_UNKNOWN; STET_STATE_STANDS: there is no mark */
    stet_reason reason;
    const char *space; /* UUID of the space of the change; NULL: the action's own */
    int64_t seq;       /* of that change; 0 for unknown */
    stet_docname name; /* of the document that changed; id NULL for unknown */
    stet_change change;
} stet_cause;

/* Makes actions of one piece unknown, in a transaction of its own (or in the open one of `s`). An action that was never
 * recorded is recorded by name, without an observation: it is unknown too. */
STET_CHECKED stet_status stet_observe_distrust(stet_space *s, int64_t branch, const stet_action_key *keys, size_t len,
                                               stet_reason reason, stet_error *err);
/* Deletes actions from every table, mirrors included, because their nodes are gone. All actions of a piece if `keys` is
 * NULL. Documents of files outlive the actions that wrote them: actions of this space that read one are unknown from now
 * on, since a project without a past would not have it. The same holds for `gone` of an observation. */
STET_CHECKED stet_status stet_observe_forget(stet_space *s, int64_t branch, const char *piece, const char *scope,
                                             const stet_action_key *keys, size_t len, stet_error *err);

/* What a transaction that replaces the graph of a piece does to the record of its actions. `gone`: they are forgotten, as
 * by stet_observe_forget; `all_gone`: every action that is recorded now is, also those not named. `unknown`: they are
 * distrusted, after that. */
typedef struct stet_turnover {
    const char *piece, *scope; /* the document of the piece; scope may be NULL */
    const char *const *gone;
    size_t gone_count;
    bool all_gone;
    const char *const *unknown;
    size_t unknown_count;
    stet_reason reason;
} stet_turnover;
/* Copies the turnover into the transaction; once per transaction. It is stored in the same SQLite transaction as the
 * data. Unlike an observation it fails the data if it can't be stored: a graph beside records of another one would show
 * old results as up to date, or list actions that no longer exist. */
STET_CHECKED stet_status stet_observe_turn_over(stet_tx *tx, const stet_turnover *t, stet_error *err);

/* Call this before anything is called up to date. It processes commits above marked_through, fetches marks that other
 * spaces could not push, and makes readers of a replaced or restored space unknown. If there is nothing to do and no
 * other space was read, it costs one integer comparison. Not allowed inside a transaction of the handle. */
STET_CHECKED stet_status stet_observe_catch_up(stet_space *s, stet_error *err);
/* What stet_observe_catch_up would have to do, for a read-only handle: the states that such a handle reports do not
 * include it. In nearly all cases it is nothing. */
typedef struct stet_observe_debt {
    int64_t commits; /* commits of this space that were not processed */
    int64_t spaces;  /* spaces that were read and owe marks, or were replaced */
} stet_observe_debt;
STET_CHECKED stet_status stet_observe_owed(stet_space *s, stet_observe_debt *out, stet_error *err);
/* Makes batched observations (of runs that changed nothing) durable. A data commit, a flush and stet_space_close do so
 * too. */
STET_CHECKED stet_status stet_observe_sync(stet_space *s, stet_error *err);
/* Switches observing off or on (the default). While it is off, nothing is stored, marked or listed, and stored
 * observations have no effect. The first stet_observe_catch_up after switching on processes the commits made meanwhile.
 */
void stet_observe_switch(stet_space *s, bool on);

/* How many observations of an action are kept, including the latest: 1 by default, at most STET_OBSERVE_KEEP_MAX. Older
 * ones are removed with the next observation of their action, or by gc. stet_space_open takes it from the setting
 * scheduler.keep_observations of the project. */
#define STET_OBSERVE_KEEP_MAX 1000
void stet_observe_keep(stet_space *s, int count);
/* Counts actions that a run found up to date. The count is stored with the next transaction that stores something, at
 * the latest when the handle is closed. A handle that stored no run does not store it, so that a start that runs
 * nothing writes nothing. */
void stet_observe_stood(stet_space *s, int64_t count);

/* Does any action read another space? One look-up. */
STET_CHECKED stet_status stet_observe_reads_others(stet_space *s, bool *out, stet_error *err);
/* The space with this name beside `s` (and with this UUID, unless it is NULL), opened once and kept as long as `s`.
 * STET_NOT_FOUND also for one with another UUID. */
STET_CHECKED stet_status stet_observe_sibling(stet_space *s, const char *name, const char *uuid, stet_space **out,
                                              stet_error *err);
/* Names of the spaces that actions of this one read. */
STET_CHECKED stet_status stet_observe_others(stet_space *s, stet_names *out, stet_error *err);

/* Spaces that do not exist. A link into such a space leads to nothing, and that is recorded as a read of the document
 * `space:NAME` of the action's own space. As soon as a space of that name exists, actions with that read are unknown.
 */
#define STET_SPACE_PREFIX "space:"
typedef struct stet_absent_space {
    const char *name;
    int64_t doc; /* number of `space:NAME` */
    bool exists; /* it exists now */
} stet_absent_space;
/* Spaces that did not exist when some action read from them. */
STET_CHECKED stet_status stet_observe_absent(stet_space *s, stet_arena *arena, stet_absent_space **out, size_t *count,
                                             stet_error *err);

/* One read or write of an observation. */
typedef struct stet_observed {
    const char *space; /* UUID; NULL: the action's own space */
    stet_docname name;
    int64_t doc; /* number in that space; 0 if it is another space */
    stet_pathref path;
    stet_read_kind kind; /* of a read */
    int64_t seq;         /* the sequence up to which the read is known to hold */
} stet_observed;

/* An action as stored. Everything lives in the arena given; `options` and `note` are texts, parsed on demand. */
typedef struct stet_action_record {
    int64_t action; /* number: the order of lists, and the cursor of pages */
    stet_action_key key;
    bool observed; /* false: only the name is known; of the following only `cause` is set */
    stet_action_kind kind;
    int64_t generation;
    stet_hash implementation, runtime;
    stet_run_kind run;
    const char *parent;  /* or NULL */
    int64_t observed_at; /* sequence of the space when it was stored */
    int64_t commit_seq;  /* of its data commit; 0: it changed nothing */
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
    bool accepted; /* without a mark: it is not proved, but accepted; `note` is {"accepted": {"reason"}} */
    stet_hash error;
    stet_cause cause; /* its mark, if any */
} stet_action_record;

/* STET_NOT_FOUND: the action was never recorded. */
STET_CHECKED stet_status stet_observe_find(stet_space *s, int64_t branch, const stet_action_key *key, stet_arena *arena,
                                           stet_action_record *out, stet_error *err);
STET_CHECKED stet_status stet_observe_get(stet_space *s, int64_t action, stet_arena *arena, stet_action_record *out,
                                          stet_error *err);
/* The number of an action; STET_NOT_FOUND: it was never recorded. */
STET_CHECKED stet_status stet_observe_number(stet_space *s, int64_t branch, const stet_action_key *key, int64_t *out,
                                             stet_error *err);
/* What a scheduler needs to restore an action: key, fingerprints, state, failure, reads, current-known writes and
 * envelopes. Everything else is empty; of the cause only the state is set. */
STET_CHECKED stet_status stet_observe_brief(stet_space *s, int64_t action, stet_arena *arena, stet_action_record *out,
                                            stet_error *err);

/* The name of a space that actions of this one read, by its UUID; the UUID itself if the name is not known. */
const char *stet_observe_space_name(stet_space *s, const char *uuid, stet_arena *arena);

/* Replaced observations of an action that are still kept, newest first; their `cause` is not set. */
STET_CHECKED stet_status stet_observe_past(stet_space *s, int64_t action, stet_arena *arena, stet_action_record **out,
                                           size_t *count, stet_error *err);

typedef struct stet_action_filter {
    const char *piece, *scope; /* NULL: any piece */
    int64_t generation;        /* negative: any */
    int64_t after;             /* number of the last one seen; 0: from the start */
    size_t limit;
} stet_action_filter;
/* Lists actions in the order of (piece, action number), which never changes for an action. `next` is the `after` of the
 * next page, 0 at the end. */
STET_CHECKED stet_status stet_observe_list(stet_space *s, int64_t branch, const stet_action_filter *f,
                                           stet_arena *arena, stet_action_record **out, size_t *count, int64_t *next,
                                           stet_error *err);
/* The same without decoding: the number and stored bytes of each action, until `each` returns false. */
typedef bool (*stet_observe_each)(void *ctx, int64_t action, const char *name, size_t name_len, const void *bytes,
                                  size_t len);
STET_CHECKED stet_status stet_observe_scan(stet_space *s, int64_t branch, const stet_action_filter *f,
                                           stet_observe_each each, void *ctx, stet_error *err);

/* How many actions of a piece are known. */
STET_CHECKED stet_status stet_observe_known(stet_space *s, int64_t branch, const char *piece, const char *scope,
                                            int64_t *out, stet_error *err);

typedef struct stet_numbers {
    int64_t *at;
    size_t len, cap;
} stet_numbers;
void stet_numbers_release(stet_numbers *n);

/* Lets the last result of an action stand although something that it read has changed (observe_accept.c). `note`:
 * canonical JSON, at most STET_OBSERVE_NOTE_MAX bytes. STET_INVALID: it is up to date, or more than its inputs has
 * changed. */
STET_CHECKED stet_status stet_observe_accept(stet_space *s, int64_t branch, const stet_action_key *key,
                                             const char *note, stet_error *err);
/* Is any action of the branch, or of a space that it reads, accepted? */
STET_CHECKED stet_status stet_standing_any_accepted(stet_space *s, int64_t branch, bool *out, stet_error *err);
/* Adds the numbers, ascending, of accepted actions of the branch, marked since or not. */
STET_CHECKED stet_status stet_observe_accepted(stet_space *s, int64_t branch, stet_numbers *out, stet_error *err);

/* A marked action: directly dirty, or unknown. */
typedef struct stet_marked {
    int64_t action;
    stet_action_state state;
    stet_reason reason;
    int64_t seq;
} stet_marked;
/* Marks of a piece (NULL: of the branch), in the order of numbers. The cost depends on the number of marks, not of
 * actions. */
STET_CHECKED stet_status stet_observe_marks(stet_space *s, int64_t branch, const char *piece, const char *scope,
                                            stet_arena *arena, stet_marked **out, size_t *count, stet_error *err);
/* The same for the whole branch, one at a time: marks above the number `after`, at most `limit`, set since a survey
 * (its `through`; 0: all), with the names of the piece's document and of the action. The visitor must not use the
 * space. Marks whose action is gone are skipped. */
STET_CHECKED stet_status stet_observe_each_mark(stet_space *s, int64_t branch, int64_t since, int64_t after,
                                                size_t limit,
                                                stet_status (*visit)(void *ctx, int64_t action,
                                                                     const stet_docname *piece, const char *name,
                                                                     stet_action_state state, stet_error *err),
                                                void *ctx, stet_error *err);
/* How many actions of a piece (NULL: of the branch) are marked. */
STET_CHECKED stet_status stet_observe_count_marks(stet_space *s, int64_t branch, const char *piece, const char *scope,
                                                  size_t *out, stet_error *err);
/* Adds the numbers, ascending, of actions of a piece (NULL: of the branch) whose last run failed, marked or not. The
 * cost depends on the number of failures, not of actions. */
STET_CHECKED stet_status stet_observe_failed(stet_space *s, int64_t branch, const char *piece, const char *scope,
                                             stet_numbers *out, stet_error *err);
/* Does it fail, as far as is known? False for an action that failed once and has waited for others to succeed since.
 * Everything that counts or shows failures asks this. */
bool stet_action_fails(const stet_action_record *r);
/* The failing actions of a piece as {ACTION: error}. The caller releases it. */
STET_CHECKED stet_status stet_observe_failures(stet_space *s, int64_t branch, const char *piece, const char *scope,
                                               stet_value *out, stet_error *err);
/* Is any action of the piece marked? One look-up. */
STET_CHECKED stet_status stet_observe_any(stet_space *s, int64_t branch, const char *piece, const char *scope,
                                          bool *out, stet_error *err);

/* A survey records that everything marked on a branch up to `through` is not needed for a demand, so that it is not
 * looked at again. The demand is any hash that stands for one, and for everything except the record that decides what
 * it needs. A survey is deleted as soon as an action reads something it did not read before, or becomes unknown.
 * STET_NOT_FOUND (without an error): there is none. Ask after stet_observe_catch_up. */
typedef struct stet_survey {
    int64_t through;
    int64_t left; /* as recorded */
    bool newer;   /* marks were set since */
    bool same;    /* no mark was set or cleared since, anywhere in the space */
} stet_survey;
STET_CHECKED stet_status stet_observe_survey(stet_space *s, int64_t branch, stet_hash demand, stet_survey *out,
                                             stet_error *err);
/* Another number whenever another connection has written, or this handle has set a mark: it does that, too, when it
 * catches up with what other spaces owe it. Never goes back while the handle is open. */
int64_t stet_observe_version(stet_space *s);
/* Does any action of the space, on any branch, read another space? */
bool stet_observe_reads_far(stet_space *s);
/* Records that everything marked on the branch now is not needed for the demand. Nothing is recorded by a read-only
 * handle, or if a mark may have been set since the caller took `version` (stet_observe_version), which it did before it
 * looked at the marks. */
STET_CHECKED stet_status stet_observe_surveyed(stet_space *s, int64_t branch, stet_hash demand, int64_t version,
                                               int64_t left, stet_error *err);

/* Actions of this space (numbers, ascending, each once) whose stored reads a change touches, and those whose writes
 * overlap a read. `flags` says which kinds of writes count. */
enum { STET_WRITE_KNOWN = 1, STET_WRITE_DECLARED = 2, STET_WRITE_ENVELOPE = 4 };
STET_CHECKED stet_status stet_observe_readers(stet_space *s, int64_t branch, const stet_docname *name,
                                              stet_pathref path, stet_change_kind kind, stet_numbers *out,
                                              stet_error *err);
STET_CHECKED stet_status stet_observe_writers(stet_space *s, int64_t branch, const stet_docname *name,
                                              stet_pathref path, unsigned flags, stet_numbers *out, stet_error *err);
/* Actions of other spaces that read what changes, found by their mirrors in this one: name and UUID of their space, and
 * their number there. */
typedef struct stet_far_reader {
    const char *space, *uuid;
    int64_t action;
} stet_far_reader;
STET_CHECKED stet_status stet_observe_far_readers(stet_space *s, const stet_docname *name, stet_pathref path,
                                                  stet_change_kind kind, stet_arena *arena, stet_far_reader **out,
                                                  size_t *count, stet_error *err);
/* States of actions. This is the one answer to "in which state is this action on this branch", for every caller that
 * only looks: marks, and what is stale because of them. Spaces that were read count too: what is marked there makes its
 * readers here stale, over any number of spaces. The cost depends on what is not up to date in these spaces, not on
 * what exists. */

/* An action whose writes the tables do not know: it has no row, or none that can be trusted. */
typedef struct stet_unrecorded {
    const char *piece, *scope, *action;
    bool missing;               /* it has no row, or none of this version of the scheduler */
    int64_t number;             /* number of the row; 0: none */
    bool failed;                /* the row is that of a failed run */
    const stet_address *writes; /* its output, followed by the places in its envelopes */
    size_t count, sure;         /* `sure`: the number of those that are its output */
    const char *circle;         /* "PIECE NODE": actions with the same one read each other in a circle; NULL: in none */
} stet_unrecorded;
/* Lists these actions, from the graphs of the pieces. Called once for each space and branch. */
typedef struct stet_standing_source {
    void *ctx;
    stet_status (*unrecorded)(void *ctx, stet_space *s, int64_t branch, const stet_marked *marked, size_t count,
                              stet_arena *arena, stet_unrecorded **out, size_t *out_count, stet_error *err);
    /* Where a write through a cell may go as the documents are now: the cell itself, and what links lead to. The answer
     * is the source's memory. It is asked while the space is being read. */
    stet_status (*leads)(void *ctx, stet_space *s, int64_t branch, const stet_address *cell, const stet_address **out,
                         size_t *count, stet_error *err);
} stet_standing_source;

/* A place inside its envelopes that an action which is not up to date may write. */
typedef struct stet_may_write {
    int64_t action;
    stet_docname name;
    stet_pathref path;
} stet_may_write;

/* The marked or failed action that makes another one stale, in its space. */
typedef struct stet_stale_root {
    stet_space *space; /* open as long as the space that was queried */
    int64_t branch;
    int64_t action;                   /* 0: it has no row */
    bool failed;                      /* its last run failed, which makes others stale */
    const char *piece, *scope, *name; /* set if there is no row; NULL: see `reason` */
    stet_reason reason;               /* for a space that was read and whose state is not fully known */
} stet_stale_root;

/* A cell of another space that is not up to date, and its reader here. */
typedef struct stet_far_stale {
    int64_t action; /* here */
    stet_space *space;
    stet_docname name;
    stet_pathref path;
} stet_far_stale;

typedef struct stet_standing {
    stet_marked *marked; /* in the order of numbers */
    size_t marked_count;
    stet_numbers accepted;    /* and not marked or stale, in the order of numbers */
    stet_numbers through;     /* up to date only if accepted ones are, in the order of numbers */
    stet_numbers through_of;  /* for each of them: the index in `roots` of one that is accepted */
    stet_numbers stale;       /* stale and not marked, in the order of numbers */
    stet_numbers root_of;     /* for each stale action: its index in `roots` */
    stet_unrecorded *missing; /* actions of the graph without a valid row: they are unknown */
    size_t missing_count;
    stet_map missing_set; /* piece NUL scope NUL action, with its NUL -> place in `missing` */
    stet_stale_root *roots;
    size_t root_count;
    stet_far_stale *far;
    size_t far_count;
    stet_may_write *may; /* by actions with a row, in the space and branch that was asked about */
    size_t may_count;
    stet_arena arena;
} stet_standing;
/* Computes the states. `source` NULL: only what the tables know. */
STET_CHECKED stet_status stet_observe_standing(stet_space *s, int64_t branch, const stet_standing_source *source,
                                               stet_standing *out, stet_error *err);
stet_action_state stet_standing_of(const stet_standing *s, int64_t action);
/* The state of an action whose record is at hand: the one answer for every surface that tells states. Unknown, too, if it
 * has no valid row, or one that can't be decoded. */
stet_action_state stet_standing_state(const stet_standing *s, const stet_action_record *r);
bool stet_standing_misses(const stet_standing *s, const stet_action_key *key);
/* The accepted action that one which is not marked or stale depends on; NULL: it depends on none. */
const stet_stale_root *stet_standing_through(const stet_standing *s, int64_t action);
/* Does its result hold, proved or accepted? */
static inline bool stet_state_holds(stet_action_state state) {
    return state == STET_STATE_STANDS || state == STET_STATE_ACCEPTED;
}
/* The root of a stale action; otherwise NULL. */
const stet_stale_root *stet_standing_root(const stet_standing *s, int64_t action);
void stet_standing_release(stet_standing *s);

/* Does each action of the branch's pieces have a row, made by this version of the scheduler (`runtime`)? That is not so
 * on a fork, which inherits the pieces without rows, or after the tables were emptied, until the scheduler has given
 * each action a row and called stet_observe_set_complete. One look-up. Setting NULL: no longer complete, also with the
 * switch off. */
STET_CHECKED stet_status stet_observe_complete(stet_space *s, int64_t branch, const stet_hash *runtime, bool *out,
                                               stet_error *err);
STET_CHECKED stet_status stet_observe_set_complete(stet_space *s, int64_t branch, const stet_hash *runtime,
                                                   stet_error *err);

/* State of one action according to the tables. `*via` (may be NULL): the action of this space that makes it stale; 0 if
 * that is one of another space. */
STET_CHECKED stet_status stet_observe_state(stet_space *s, int64_t branch, int64_t action, stet_action_state *out,
                                            int64_t *via, stet_error *err);

typedef struct stet_observe_stats {
    int64_t actions, observed, dirty, unknown, read_rows, write_rows, mirror_rows, foreign_spaces, observation_bytes;
    int64_t marked_through, seq;
    int64_t past_rows, past_bytes; /* replaced observations that are kept */
    int64_t marks[STET_REASONS];   /* by stet_reason */
    int64_t runs[STET_REASONS];    /* since the space was created, by the reason of the mark before the run */
    int64_t stood;                 /* actions that such runs found up to date */
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
/* Only `handle`, without reading the file. */
struct stet_observe_counts stet_observe_counted(stet_space *s);

/* The same as JSON values. They belong to the caller. */
stet_value stet_action_value(const stet_action_record *r); /* what is stored, without its state and cause */
stet_value stet_cause_value(const stet_cause *c);          /* {"reason","seq","cell","scope","space","kind"} */
/* {"changed": 3, ...}, starting with the reason `from`; the count at 0 is called "asked". */
stet_value stet_reasons_value(const int64_t counts[STET_REASONS], stet_reason from);
stet_value stet_observe_stats_value(const stet_observe_stats *st);
stet_value stet_observe_counts_value(const struct stet_observe_counts *c);

/* Derives every mark again from sequences and revisions, and compares index rows with observations, and mirrors with
 * foreign reads. Adds one line per difference. With `repair` an action with a difference becomes unknown, and its index
 * rows are rebuilt. */
STET_CHECKED stet_status stet_observe_check(stet_space *s, bool repair, stet_buf *problems, size_t *found,
                                            size_t *repaired, stet_error *err);
/* Removes what nothing needs: actions of deleted branches and pieces; actions of an earlier generation whose node is
 * gone; replaced observations beyond the number kept, and those of an earlier generation than their action's;
 * superseded fingerprints; mirrors of owners that are gone. */
typedef struct stet_observe_gc_opts {
    bool dry_run;
    /* Is the node of this action gone? The action was last observed in this generation of its piece's graph. NULL: none
     * is gone. The function may read from the space. */
    bool (*gone)(void *ctx, stet_space *s, int64_t branch, const stet_action_key *key, int64_t generation);
    void *ctx;
} stet_observe_gc_opts;
STET_CHECKED stet_status stet_observe_gc(stet_space *s, const stet_observe_gc_opts *opts, int64_t *rows,
                                         stet_error *err);

/* Called by the commit inside its SQLite transaction with every applied member, in order. An observation never fails
 * the data: a failed observation is undone to a savepoint, and its action becomes unknown. A turnover does. A failure of the database
 * itself sticks to the handle as always. */
typedef struct stet_applied {
    int64_t seq;                    /* 0: changed nothing */
    const stet_doc_change *changes; /* final, with document numbers */
    size_t change_count;
    const stet_doc_change *own;       /* the same number, without ignored places (stet_observe_beside) */
    const stet_tx_read_record *reads; /* validated, each with the sequence up to which it holds */
    size_t read_count;
    const stet_observation *observation; /* or NULL */
    const stet_turnover *turnover;       /* or NULL */
} stet_applied;
/* The changes of one document without ignored writes. A leaf above an ignored place is split: if a document or a member
 * was added or removed, `value` (the current value or, if removed, the former one) says what else lies there. */
stet_doc_change stet_observe_beside(const stet_observation *o, const stet_doc_change *c, stet_value value,
                                    stet_arena *arena);
void stet_observe_apply(stet_space *s, int64_t branch, const stet_applied *at, size_t len);
/* Observations that could not be stored after all: the actions of these runs (only those that read from `in`, if it is
 * not NULL) become unknown. Inside the transaction of the commit. */
void stet_observe_lost(stet_space *s, int64_t branch, const stet_applied *at, size_t len, const stet_space *in);
/* After the SQLite transaction has ended and every lock is released: pushes marks owed to other spaces. */
void stet_observe_done(stet_space *s, bool committed);
/* Frees what the handle holds; called by stet_space_close, after stet_observe_sync. */
void stet_observe_release(stet_space *s);

#endif
