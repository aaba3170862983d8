/* observe_internal.h - what the files observe*.c share.
 *
 * The handle's cache of the durable index is right as long as no other connection has committed (data_version is
 * compared at the start of every use under the write lock) and no transaction of the handle was rolled back
 * (stet_observe_done(s, false)); otherwise it is emptied completely. It holds:
 *
 *   actions    number and packed index rows of actions met, so that an observation with the same reads as last time
 *              writes no index row and reads none
 *   docs       readers and writers of one document, if they are few. A document with more than STET_DOC_ROWS rows is
 *              `wide` and queried in SQL, path by path, so that one reader among 100,000 costs what it costs among
 *              1,000
 *
 * Within one SQLite transaction changes of marks, observations and index rows are collected and written at the end, net
 * and in key order, many in one statement. Questions about a wide document go to SQL: if rows of it wait, all waiting
 * rows are written first.
 */
#ifndef STET_MEMORY_OBSERVE_INTERNAL_H
#define STET_MEMORY_OBSERVE_INTERNAL_H

#include "base/utf8.h"
#include "memory/observe_rows.h"

#define STET_ACTION_BITS   22 /* actions per piece: four million */
#define STET_DOC_ROWS      128
#define STET_BUCKET        4                  /* STET_BUCKET_BITS as a number */
#define STET_BLOCK_ACTIONS 64                 /* actions in a row of place_index */
#define STET_OBSERVE_MAX   ((size_t)96 << 20) /* bytes of cache; beyond that it is emptied */

/* Maps numbers to pointers. Numbers are given one after the other, and those used together lie together: so one look-up
 * leads to a block of neighbours, and a large cache does not cost a cache miss of the processor for each. */
#define STET_BLOCK_BITS 6
typedef struct stet_blocks {
    stet_map map; /* number >> STET_BLOCK_BITS -> void *[1 << STET_BLOCK_BITS], in the cache's arena */
} stet_blocks;
/* The slot of a number; a NULL pointer in it means that it is empty. With an arena a missing slot is created, otherwise
 * NULL is returned. */
void **stet_blocks_at(stet_blocks *b, int64_t number, stet_arena *make);

typedef struct stet_index_row {
    stet_pathref path;
    int64_t action;
    unsigned flags;
} stet_index_row;

typedef struct stet_index_doc {
    bool wide;
    uint64_t waiting;               /* if wide: rows of it wait in `ops` if this equals ops_round */
    STET_VEC(stet_index_row) reads; /* all in the cache's arena */
    STET_VEC(stet_index_row) writes;
} stet_index_doc;

typedef struct stet_known_action {
    int64_t action, branch, piece;
    const char *unborn; /* its name while its row waits for the end of the transaction; otherwise NULL */
    bool observed;
    bool marked;                                  /* it has a mark */
    stet_reason reason;                           /* of that mark */
    bool foreign_marked;                          /* it has a mark from another space */
    bool foreign;                                 /* its last observation read other spaces */
    bool made;                                    /* its last observation was of a run that made its output */
    stet_bytes reads, known, declared, envelopes; /* packed, in the cache's arena */
    stet_bytes foreign_reads;
    uint64_t pending_tx; /* the transaction that `pending` belongs to */
    size_t pending;      /* its index in the list of pending changes */
} stet_known_action;

/* What will be done to one action at the end of the transaction. */
typedef struct stet_pending {
    int64_t action, branch;
    bool clear; /* remove the mark of the own space, before `set` */
    bool set;   /* set a mark of the own space */
    stet_action_state state;
    stet_reason reason;
    int64_t seq, doc;
    stet_pathref path; /* in the transaction's arena */
    stet_change_kind kind;
    stet_known_action *known; /* or NULL */
    bool store;
    int64_t generation;
    stet_bytes blob; /* in the transaction's arena */
    bool kept;       /* the existing mark is stronger than `set`: it stays */
    int64_t stamp;   /* of the replaced mark; -1: there is none */
} stet_pending;

/* An action starts or stops reading (writing) a place. */
typedef struct stet_row_op {
    int64_t key, action;
    stet_pathref path;
    unsigned flags;
    bool add, write;
    bool replaces; /* it may already exist, with other flags */
    size_t order;
} stet_row_op;

/* A row of place_index: which actions of a block read or write a place, one bit for each. */
enum { STET_BIT_READ, STET_BIT_SHALLOW, STET_BIT_KNOWN, STET_BIT_DECLARED, STET_BIT_ENVELOPE, STET_BIT_KINDS };
typedef struct stet_block_row {
    int64_t key, block;
    stet_pathref path;
    uint64_t bits[STET_BIT_KINDS];
} stet_block_row;
static inline int64_t stet_block_of(int64_t action) {
    return action >> 6;
}
static inline uint64_t stet_block_bit(int64_t action) {
    return (uint64_t)1 << (action & (STET_BLOCK_ACTIONS - 1));
}
enum { STET_BLOCK_SUMMED = 3 + STET_BIT_KINDS }; /* number of columns in STET_BLOCK_COLUMNS, before the sum */

/* The change up to which an owner must already have been notified, so that pushing what this transaction owes leaves
 * nothing out. */
typedef struct stet_owed_base {
    int64_t owner, base;
} stet_owed_base;

typedef struct stet_owed {
    int64_t owner, action, seq, doc;
    stet_pathref path; /* in the arena of pushes */
    stet_change_kind kind;
} stet_owed;

struct stet_observe {
    bool off;
    bool fresh; /* the caches below are right as of data_version */
    int64_t data_version;
    int64_t verified; /* data version when rows were last checked for damage */
    int64_t counted;  /* data version when all actions were there */
    int64_t fitting;  /* data version when the digests last matched */
    int64_t marked_through;
    int64_t marked; /* marks that this handle has set since it was opened, stored or not */
    /* Documents from this number on were created by the running transaction: they have no rows yet. */
    int64_t first_new_doc;
    int has_mirrors; /* -1 not known */
    int has_foreign;
    stet_arena arena;
    stet_map by_name;      /* stet_space_key of branch and piece, name -> stet_known_action * */
    stet_blocks by_number; /* action -> stet_known_action * */
    stet_blocks docs;      /* key -> stet_index_doc * */
    stet_map buckets;      /* those of place_digest that were found to match */
    bool has_places;       /* space_meta says that place_digest has rows */
    bool has_actions;      /* there were some, or place_digest was begun anew */
    stet_map fingerprints; /* hash -> number */
    stet_map counters;     /* piece -> next action number * 2, plus 1 if every action of it is in by_name */

    stet_arena tx_arena;
    STET_VEC(stet_pending) pending;
    stet_map pending_of; /* action -> position in pending + 1, of those not in by_number */
    uint64_t tx;         /* counts transactions */
    STET_VEC(stet_row_op) ops;
    STET_VEC(stet_block_row) block_rows; /* the rows to write */
    size_t op_order;
    uint64_t ops_round;         /* counts how often they were written */
    bool reads_more;            /* in this transaction an action read something it did not read before */
    bool removed;               /* in this transaction an action was removed */
    STET_VEC(stet_owed) pushes; /* marks that the commit owes to other spaces */
    STET_VEC(stet_owed_base) bases;
    stet_arena push_arena;
    STET_VEC(stet_marked) leave; /* spaces no longer read: action, and the space's number in `seq` */
    stet_numbers scratch;
    stet_buf buf, buf2;
    stet_places places, places2, own, out;
    stet_foreign_places other;
    int64_t last_key; /* of last_doc */
    stet_index_doc *last_doc;
    char *last_piece; /* id NUL scope of the piece met last, and its number */
    size_t last_piece_cap;
    int64_t last_piece_doc;

    stet_space **owners; /* open handles of spaces whose actions read this one */
    size_t owner_count;
    int keep;                          /* observations per action; 0 is 1 */
    struct stet_observe_counts counts; /* of what is committed */
    struct stet_observe_counts now;    /* of the transaction at hand */
    int64_t written[STET_REASONS];     /* the part of now.runs that is in the table */
    int64_t stood;                     /* not yet added to the table */
};

/* All functions below run inside a write transaction; errors stick to the database. */

/* The row of an action as selected for stet_observe_blob. */
#define STET_ACTION_COLUMNS "action, branch, piece, generation, name, observation, sum"
enum { STET_ACTION_BRANCH = 1, STET_ACTION_PIECE, STET_ACTION_GENERATION, STET_ACTION_NAME, STET_ACTION_BLOB };
/* The observation of the row whose STET_ACTION_COLUMNS begin at `first`. A damaged one proves nothing: it is returned
 * as bytes that do not decode. NULL and 0: there is none. */
const void *stet_observe_blob(stet_stmt *q, int first, size_t *len);

/* In observe_cache.c. */
struct stet_observe *stet_observe_of(stet_space *s);
void stet_observe_fresh(stet_space *s); /* empties the cache if it is no longer right */
void stet_observe_empty(stet_space *s);
void stet_observe_drop_pending(stet_space *s);
/* Adds the counts of the transaction, or discards them. */
void stet_observe_count(struct stet_observe *o, bool committed);
/* The action of a key; with `make` it is created if missing (its row is written at the end). NULL: a sticky failure. */
stet_known_action *stet_observe_action(stet_space *s, int64_t branch, int64_t piece, const char *name, bool make);
/* Writes the row of an action that was created in this transaction: with its observation, or without if `blob.at` is
 * NULL. */
void stet_observe_insert_action(stet_space *s, stet_known_action *a, int64_t generation, stet_bytes blob);
/* The same without an observation, if the row does not exist yet. */
void stet_observe_bear(stet_space *s, stet_known_action *a);
/* For a transaction that removed actions of a piece: writes what is pending and empties the cache, which may hold their
 * names. Numbers continue from `next` (stet_observe_next before the removal): a number that was just released must not
 * go to another action before everyone who knew it has been notified. */
void stet_observe_restart(stet_space *s, int64_t piece, int64_t next);
int64_t stet_observe_next(stet_space *s, int64_t piece);
int64_t stet_observe_fingerprint(stet_space *s, stet_hash h);
/* One integer of a kept statement; `otherwise` if it has no row. */
int64_t stet_observe_int(stet_space *s, const char *sql, int64_t otherwise);
int64_t stet_observe_meta(stet_space *s, const char *name, int64_t otherwise);
/* The same for a value with a checksum; `otherwise` also if it is damaged. */
int64_t stet_observe_progress(stet_space *s, const char *name, int64_t otherwise);
void stet_observe_set_progress(stet_space *s, const char *name, int64_t value);
/* marked_through. If it is damaged, the failure sticks, because it is not known which commits were processed. */
int64_t stet_observe_through(stet_space *s);
/* A row that says whom a change concerns is damaged: the failure sticks. `what` is the kind of row. */
void stet_observe_damage(stet_space *s, const char *what);
void stet_observe_set_marked_through(stet_space *s, int64_t seq);
static inline stet_bytes stet_bytes_keep(stet_arena *a, const void *bytes, size_t len) {
    return (stet_bytes){len ? stet_arena_dup(a, bytes, len) : "", len};
}

/* In observe_index.c. */
stet_index_doc *stet_observe_doc(stet_space *s, int64_t key);
/* Reads a row; the statement selects STET_BLOCK_COLUMNS and the sum first. The path belongs to the statement, until its
 * next step. False: it is damaged. */
bool stet_observe_block_row(stet_stmt *q, stet_block_row *out);
/* Walks the actions of a row in the order of their numbers: those that read (write) the place, with their flags. *at
 * starts at 0; false: no more. */
bool stet_block_next(const stet_block_row *r, bool write, unsigned *at, int64_t *action, unsigned *flags);
void stet_observe_write_rows(stet_space *s); /* writes the waiting rows, net and in key order */
/* Adds the numbers of actions whose reads of a document the change touches, or whose writes overlap the path. */
void stet_observe_readers_of(stet_space *s, int64_t key, const stet_change *change, stet_numbers *out);
void stet_observe_writers_of(stet_space *s, int64_t key, stet_pathref path, unsigned flags, stet_numbers *out);
/* Adds the readers of anything that a write to `path` may change. */
void stet_observe_readers_below(stet_space *s, int64_t key, stet_pathref path, stet_numbers *out);
/* Replaces the index rows of an action. */
void stet_observe_reindex(stet_space *s, stet_known_action *a, stet_bytes reads, stet_bytes known, stet_bytes declared,
                          stet_bytes envelopes);
void stet_numbers_settle(stet_numbers *n); /* sorts and removes duplicates */
static inline void stet_numbers_add(stet_numbers *n, int64_t v) {
    *stet_vec_add(n) = v;
}

/* In observe_digest.c: the digests of `mark`, `foreign_read` and `action` in space_meta. A function that writes to one of these
 * tables reports what was added and removed, in the same transaction. */
#define STET_DIGEST_MARK    "digest:mark"
#define STET_DIGEST_FOREIGN "digest:foreign_read"
#define STET_DIGEST_ACTION  "digest:action" /* only the number of rows */
void stet_observe_digest(stet_space *s, const char *name, int64_t rows, int64_t sum);
/* The mark of an action from a space (0: the own one), if there is one. */
typedef struct stet_old_mark {
    int64_t state, seq, stamp, sum;
} stet_old_mark;
bool stet_observe_old_mark(stet_space *s, int64_t action, int64_t space, stet_old_mark *out);
/* Deletes marks: of an action (0: of all), from a space (negative: from all). Returns their number. */
int64_t stet_observe_drop_marks(stet_space *s, int64_t action, int64_t space);
void stet_observe_note_foreign(stet_space *s, int64_t space, int64_t action);
void stet_observe_drop_foreign(stet_space *s, int64_t space, int64_t action); /* space 0: every one */
/* Do the digests match? Not checked if there are too many marks and most of them are known not to be needed, unless
 * `all`. */
bool stet_observe_digests_fit(stet_space *s, bool all);
/* Are all rows of place_index there that a document's bucket had? Otherwise a failure sticks. */
bool stet_observe_places_fit(stet_space *s, int64_t key);
/* Rows of the bucket have changed, and it had matched. */
void stet_observe_places_changed(stet_space *s, int64_t bucket);
bool stet_observe_all_places_fit(stet_space *s); /* each bucket: for check */
void stet_observe_places_renew(stet_space *s);   /* accepts the rows that are there: for a repair */
/* Is place_digest itself there, as far as it is needed? */
bool stet_observe_places_there(stet_space *s);
bool stet_observe_has_actions(stet_space *s);
/* Before the first action gets a row: what is left of emptied tables is accepted. */
void stet_observe_begin_places(stet_space *s);
/* Are all rows of `action` there? Counted up to a bound, unless `all`. */
bool stet_observe_actions_fit(stet_space *s, bool all);
bool stet_observe_actions_counted(stet_space *s); /* are they few enough that each start counts all of them? */
/* Accepts those that are there, and drops marks of others: for a caller that has given each action a row. */
void stet_observe_actions_renew(stet_space *s);
/* Accepts the current tables as right: for a caller that makes every action unknown. */
void stet_observe_digests_renew(stet_space *s);

/* For a repair: no record proves anything. The next check or start makes every action unknown, and every reader in
 * another space. */
void stet_observe_prove_nothing(stet_space *s);

/* In observe_store.c. */
stet_pending *stet_observe_pending(stet_space *s, int64_t action, int64_t branch);
stet_pending *stet_observe_pending_of(stet_space *s, stet_known_action *a); /* the same, without a look-up */
void stet_observe_mark(stet_space *s, int64_t action, int64_t branch, stet_action_state state, stet_reason reason,
                       int64_t seq, int64_t doc, const stet_change *change);
/* Marks for one commit, without an observation. */
void stet_observe_changes(stet_space *s, int64_t branch, int64_t seq, const stet_doc_change *at, size_t len,
                          int64_t except);
/* Removes the index rows, marks and foreign reads of an action. With `row`: the action itself too. */
void stet_observe_remove(stet_space *s, int64_t action, bool row);
void stet_observe_flush(stet_space *s);                        /* writes what is pending */
void stet_observe_write(stet_space *s, const stet_pending *p); /* only its row and observation */
/* At close: stores the count of stet_observe_stood; a failure is ignored. */
void stet_observe_save_stood(stet_space *s);
/* A write transaction of its own, or the one that is open. */
STET_CHECKED stet_status stet_observe_begin(stet_space *s, bool *begun, stet_error *err);
STET_CHECKED stet_status stet_observe_end(stet_space *s, bool begun, stet_error *err);

/* In observe_record.c: stet_space_enter for questions about actions; stores what is batched first. */
STET_CHECKED stet_status stet_observe_enter(stet_space *s, bool *begun, stet_error *err);

/* In observe_query.c. */
/* Begins to read, with the cached index rows up to date. */
STET_CHECKED stet_status stet_observe_rows_ready(stet_space *s, bool *begun, stet_error *err);
/* Actions of the branch whose row can't be decoded, among the first 256 rows of the space. Others are found when
 * they are loaded, and by check. Fails if rows have vanished without which nobody knows whom a change concerns. */
STET_CHECKED stet_status stet_observe_damaged(stet_space *s, int64_t branch, stet_numbers *out, stet_error *err);
/* Current-known writes of an action and its envelopes, from its row; paths point into `blob`. Empty if the row can't be
 * decoded. */
void stet_observe_writes_of(stet_space *s, int64_t action, stet_buf *blob, stet_places *out, stet_places *envelopes);
/* Adds the children of an action and theirs, found by name: "rows[7].total" is a child of "rows". */
void stet_observe_children_of(stet_space *s, int64_t action, stet_numbers *out);

/* In observe_survey.c. */
int64_t stet_observe_stamp(stet_space *s); /* the stamp for marks that are set now; 0: no survey needs it */
void stet_observe_drop_surveys(stet_space *s);

/* In observe_mirror.c: mirror rows. */
/* Number of a foreign space, created if missing; remembers the highest sequence read. */
int64_t stet_observe_foreign(stet_space *s, const char *uuid, const char *name, int64_t seen);
/* Writes mirror rows of an action's reads in other spaces, whose write locks the commit holds. False: one could not be
 * written, so its changes may go unnoticed. */
bool stet_observe_mirror(stet_space *s, int64_t branch, stet_known_action *a, const stet_applied *m,
                         stet_bytes foreign);
/* Clears marks from other spaces that the new observation makes obsolete. True: some are left. */
bool stet_observe_clear_foreign(stet_space *s, int64_t action, stet_bytes foreign);
/* Removes mirrors of actions that do not read this space any more. Not inside a transaction. */
int64_t stet_observe_orphans(stet_space *s, bool dry_run);
/* Is the action `action` of `owner` mirrored in `in` at this place? */
bool stet_observe_mirrored(stet_space *in, const stet_space *owner, int64_t action, const stet_foreign_place *r);
/* Closes handles whose file was replaced; the next call opens the current file. Nobody may be using them. */
void stet_observe_drop_replaced(stet_space *s);
void stet_observe_close_owners(stet_space *s);
/* The number of `owner` in `in`; created if `make`. 0: not known. */
int64_t stet_observe_owner_number(stet_space *in, const stet_space *owner, bool make);
void stet_observe_drop_mirrors(stet_space *in, int64_t owner, int64_t action);
/* M4: do the notes of two spaces about each other say that one of them is an older copy? */
bool stet_observe_older(int64_t stamp_here, int64_t stamp_there, int64_t known, int64_t seen, int64_t pushed);
/* M5: commits the write transaction of `owner` with a write, so that what it says is what will be read after a crash. */
STET_CHECKED stet_status stet_observe_confirm(stet_space *owner);
/* Makes every action that read the space unknown; marks of a history that no longer exists mean nothing. */
void stet_observe_distrust_readers(stet_space *s, int64_t space);
/* Adds to `pushes` the mirror rows that a changed leaf touches; `only` 0: of every owner. */
void stet_observe_mirrors_of(stet_space *s, int64_t doc, const stet_change *c, int64_t seq, int64_t only,
                             stet_arena *arena);
/* A stamp of foreign_space: the space does not exist, or does not know this one, and its readers are unknown. */
#define STET_STAMP_GONE (-1)

/* In observe_push.c: carries marks between spaces. */
/* Collects the marks that a change owes to other spaces and notes them as pending, in the transaction of the change. */
void stet_observe_owe(stet_space *s, int64_t branch, int64_t seq, const stet_doc_change *at, size_t len);
/* An action is gone: its mirrors are removed after the transaction. */
void stet_observe_leave_all(stet_space *s, int64_t action);
void stet_observe_owe_nothing(struct stet_observe *o); /* the transaction was rolled back, or everything is pushed */
void stet_observe_push(stet_space *s);                 /* pushes what is owed to each owner; what fails stays pending */
STET_CHECKED stet_status stet_observe_foreign_catch_up(stet_space *s, stet_error *err);
/* Spaces that actions of this one read. */
typedef struct stet_foreign_row {
    int64_t space, seen, stamp;
    char *uuid, *name;
} stet_foreign_row;
typedef STET_VEC(stet_foreign_row) stet_foreign_rows;
STET_CHECKED stet_status stet_observe_foreign_rows(stet_space *s, stet_foreign_rows *out, stet_error *err);
void stet_foreign_rows_release(stet_foreign_rows *rows);
/* Does stet_observe_foreign_catch_up have to do something about this space? `in` is the space; NULL: it does not exist,
 * or is another one. */
STET_CHECKED stet_status stet_observe_owes(const stet_space *s, stet_space *in, const stet_foreign_row *f, bool *out,
                                           stet_error *err);
/* The number of other spaces that it would have to do something about. */
STET_CHECKED stet_status stet_observe_foreign_owed(stet_space *s, int64_t *spaces, stet_error *err);

/* A name from a file, for display: it may be any bytes. */
static inline const char *stet_observe_name(const char *text, size_t len, stet_arena *arena) {
    return stet_utf8_valid(text, len) ? stet_arena_strndup(arena, text, len) : "(damaged)";
}

static inline const char *stet_observe_text(stet_stmt *q, int column, stet_arena *arena) {
    size_t len;
    const char *text = stet_column_text(q, column, &len);
    return stet_observe_name(text, len, arena);
}

/* In batch.c. For a transaction that conflicts and only carried an observation: counts it as dropped; not an error. */
bool stet_observe_stale(const stet_tx *tx);

/* In observe_absent.c. */
typedef struct stet_appeared_read {
    int64_t action, branch, doc;
} stet_appeared_read;
typedef STET_VEC(stet_appeared_read) stet_appeared;
/* Actions that read from a space that did not exist and exists now, and that are not unknown yet. */
STET_CHECKED stet_status stet_observe_appeared(stet_space *s, stet_appeared *out, stet_error *err);
STET_CHECKED stet_status stet_observe_absent_catch_up(stet_space *s, stet_error *err);

/* In observe.c: marks of commits above marked_through. */
STET_CHECKED stet_status stet_observe_look(stet_space *s, stet_error *err);

#endif
