/* observe_internal.h - what the files observe*.c share.
 *
 * The handle's cache of the durable index. It is right as long as no other connection has committed (data_version is
 * compared at the start of every use under the write lock) and no own transaction was rolled back
 * (stet_observe_done(s, false)); otherwise it is emptied, whole. What it holds:
 *
 *   actions    number and packed index rows of actions met, so that an observation with the same reads as last time
 *              touches no index row and reads none
 *   docs       readers and writers of one document, if they are few; a document with more than STET_DOC_ROWS rows is
 *              `wide` and asked in SQL, path by path, so that one reader among 100,000 costs what it costs among 1,000
 *
 * Within one SQLite transaction changes of marks, observations and index rows are collected and written at the end, net
 * and in key order, many in one statement. Questions about a wide document go to SQL: if rows of it wait, all that wait
 * are written before.
 */
#ifndef STET_MEMORY_OBSERVE_INTERNAL_H
#define STET_MEMORY_OBSERVE_INTERNAL_H

#include "base/utf8.h"
#include "memory/observe_rows.h"

#define STET_ACTION_BITS   22 /* actions per piece: four million */
#define STET_DOC_ROWS      128
#define STET_BLOCK_ACTIONS 64                 /* in a row of place_index */
#define STET_OBSERVE_MAX   ((size_t)96 << 20) /* bytes of cache; beyond, it is emptied */
#define STET_OBS_NOTE_MAX  4096

/* From numbers to pointers. Numbers are given one after the other, and those that are met together lie together: so one
 * look leads to a block of neighbours, and a large cache does not cost a miss of the processor's for each. */
#define STET_BLOCK_BITS 6
typedef struct stet_blocks {
    stet_map map; /* number >> STET_BLOCK_BITS -> void *[1 << STET_BLOCK_BITS], in the cache's arena */
} stet_blocks;
/* NULL pointer: nothing is there. With an arena the place is made, else NULL is returned if it is not there. */
void **stet_blocks_at(stet_blocks *b, int64_t number, stet_arena *make);

typedef struct stet_index_row {
    stet_pathref path;
    int64_t action;
    unsigned flags;
} stet_index_row;

typedef struct stet_index_doc {
    bool wide;
    uint64_t waiting;               /* wide: rows of it wait in `ops` if this is ops_round */
    STET_VEC(stet_index_row) reads; /* all of it in the cache's arena */
    STET_VEC(stet_index_row) writes;
} stet_index_doc;

typedef struct stet_known_action {
    int64_t action, branch, piece;
    const char *unborn; /* its name, while its row waits for the end of the transaction; else NULL */
    bool observed;
    bool marked;                                  /* it has a mark */
    stet_reason reason;                           /* of that mark */
    bool foreign_marked;                          /* one from another space */
    bool foreign;                                 /* its last observation read other spaces */
    bool ran;                                     /* its last observation was of a run, not of dependencies alone */
    stet_bytes reads, known, declared, envelopes; /* packed, in the cache's arena */
    stet_bytes foreign_reads;
    uint64_t pending_tx; /* of which transaction `pending` is */
    size_t pending;      /* its place in the list of what is pending */
} stet_known_action;

/* What is to be done to one action at the end of the transaction. */
typedef struct stet_pending {
    int64_t action, branch;
    bool clear; /* own-space mark goes, before `set` */
    bool set;   /* a mark of the own space */
    stet_action_state state;
    stet_reason reason;
    int64_t seq, doc;
    stet_pathref path; /* in the transaction's arena */
    stet_change_kind kind;
    stet_known_action *known; /* or NULL */
    bool store;
    int64_t generation;
    stet_bytes blob; /* in the transaction's arena */
} stet_pending;

/* One action comes to read (write) a place, or no longer does. */
typedef struct stet_row_op {
    int64_t key, action;
    stet_pathref path;
    unsigned flags;
    bool add, write;
    bool replaces; /* it may be there already, with other flags */
    size_t order;
} stet_row_op;

/* A row of place_index: who of a block reads or writes a place, one bit for each. */
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
#define STET_BLOCK_COLUMNS "path, block, reads, shallow, known, declared, envelopes"

/* Up to which change an owner must have been told already, so that telling it what this transaction owes leaves nothing
 * out. */
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
    int64_t marked_through;
    int64_t first_new_doc; /* documents from this number on were made by the running transaction: no rows yet */
    int has_mirrors;       /* -1 not known */
    int has_foreign;
    stet_arena arena;
    stet_map by_name;      /* stet_space_key of branch and piece, name -> stet_known_action * */
    stet_blocks by_number; /* action -> stet_known_action * */
    stet_blocks docs;      /* key -> stet_index_doc * */
    stet_map fingerprints; /* hash -> number */
    stet_map counters;     /* piece -> next action number * 2, plus 1 if every action of it is in by_name */

    stet_arena tx_arena;
    STET_VEC(stet_pending) pending;
    stet_map pending_of; /* action -> position in pending + 1, of those not in by_number */
    uint64_t tx;         /* counts transactions */
    STET_VEC(stet_row_op) ops;
    STET_VEC(stet_block_row) block_rows; /* those of them to be written */
    size_t op_order;
    uint64_t ops_round;         /* counts how often they were written */
    bool reads_more;            /* in this transaction an action came to read what it did not read before */
    bool removed;               /* and one was taken out */
    STET_VEC(stet_owed) pushes; /* marks that the commit owes to other spaces */
    STET_VEC(stet_owed_base) bases;
    stet_arena push_arena;
    STET_VEC(stet_marked) leave; /* spaces no longer read: action, and the space's number in `seq` */
    stet_numbers scratch;
    stet_buf buf, buf2;
    stet_places places, places2, own, out, skip;
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
    int64_t written[STET_REASONS];     /* of now.runs: is in the table */
    int64_t stood;                     /* waits to be added to the table */
};

/* All of these run inside a write transaction; errors stick to the database. */

/* observe_cache.c */
struct stet_observe *stet_observe_of(stet_space *s);
void stet_observe_fresh(stet_space *s); /* empties the cache if it is not right any more */
void stet_observe_empty(stet_space *s);
void stet_observe_drop_pending(stet_space *s);
void stet_observe_count(struct stet_observe *o, bool committed); /* what the transaction counted, or nothing of it */
/* The action of a key; made if it is not there (its row is written at the end). NULL: a sticky failure. */
stet_known_action *stet_observe_action(stet_space *s, int64_t branch, int64_t piece, const char *name, bool make);
/* Writes the row of an action that was made in this transaction: with its observation, or (at NULL) without. */
void stet_observe_insert_action(stet_space *s, stet_known_action *a, int64_t generation, stet_bytes blob);
void stet_observe_bear(stet_space *s, stet_known_action *a); /* the same, if it is not there yet, and without */
/* In the middle of a transaction that removed actions of a piece: writes what is pending and empties the cache, which
 * may hold their names. Numbers go on from `next` (stet_observe_next before the removal): one that was just given up
 * must not be given to another action before those who knew it are told. */
void stet_observe_restart(stet_space *s, int64_t piece, int64_t next);
int64_t stet_observe_next(stet_space *s, int64_t piece);
int64_t stet_observe_fingerprint(stet_space *s, stet_hash h);
/* One integer of a kept statement; `otherwise` if it has no row. */
int64_t stet_observe_int(stet_space *s, const char *sql, int64_t otherwise);
int64_t stet_observe_meta(stet_space *s, const char *name, int64_t otherwise);
void stet_observe_set_marked_through(stet_space *s, int64_t seq);
static inline stet_bytes stet_bytes_keep(stet_arena *a, const void *bytes, size_t len) {
    return (stet_bytes){len ? stet_arena_dup(a, bytes, len) : "", len};
}

/* observe_index.c */
stet_index_doc *stet_observe_doc(stet_space *s, int64_t key);
/* A row of which STET_BLOCK_COLUMNS are selected first; the path is the statement's, until its next step. */
stet_block_row stet_observe_block_row(stet_stmt *q);
/* The actions of a row in the order of their numbers, those that read it (write it), with their flags. From *at = 0 on;
 * false: no more. */
bool stet_block_next(const stet_block_row *r, bool write, unsigned *at, int64_t *action, unsigned *flags);
void stet_observe_write_rows(stet_space *s); /* those that wait, net and in the order of keys */
/* Adds the numbers of actions whose reads (writes) of a document the change (a change at the path) touches. */
void stet_observe_readers_of(stet_space *s, int64_t key, const stet_change *change, stet_numbers *out);
void stet_observe_writers_of(stet_space *s, int64_t key, stet_pathref path, unsigned flags, stet_numbers *out);
/* Readers of anything that a write to `path` may change. */
void stet_observe_readers_below(stet_space *s, int64_t key, stet_pathref path, stet_numbers *out);
/* Replaces the index rows of an action. */
void stet_observe_reindex(stet_space *s, stet_known_action *a, stet_bytes reads, stet_bytes known, stet_bytes declared,
                          stet_bytes envelopes);
void stet_numbers_settle(stet_numbers *n); /* sorted, each once */
static inline void stet_numbers_add(stet_numbers *n, int64_t v) {
    *stet_vec_add(n) = v;
}

/* observe_store.c */
stet_pending *stet_observe_pending(stet_space *s, int64_t action, int64_t branch);
stet_pending *stet_observe_pending_of(stet_space *s, stet_known_action *a); /* the same, without a look-up */
void stet_observe_mark(stet_space *s, int64_t action, int64_t branch, stet_action_state state, stet_reason reason,
                       int64_t seq, int64_t doc, const stet_change *change);
/* Marks for one commit, without an observation. */
void stet_observe_changes(stet_space *s, int64_t branch, int64_t seq, const stet_doc_change *at, size_t len,
                          int64_t except);
/* Takes its index rows, marks and foreign reads away. `row` too: the action itself. */
void stet_observe_remove(stet_space *s, int64_t action, bool row);
void stet_observe_flush(stet_space *s);                        /* writes what is pending */
void stet_observe_write(stet_space *s, const stet_pending *p); /* its row and observation alone */
void stet_observe_save_stood(stet_space *s); /* at close: what stet_observe_stood was told; a failure is none */
/* A write transaction of its own, or the one that is open. */
STET_CHECKED stet_status stet_observe_begin(stet_space *s, bool *begun, stet_error *err);
STET_CHECKED stet_status stet_observe_end(stet_space *s, bool begun, stet_error *err);

/* observe_record.c: stet_space_enter for questions about actions: what is batched is stored before. */
STET_CHECKED stet_status stet_observe_enter(stet_space *s, bool *begun, stet_error *err);

/* observe_survey.c */
int64_t stet_observe_stamp(stet_space *s); /* for marks that are set now; 0: nobody would ask for it */
void stet_observe_drop_surveys(stet_space *s);

/* observe_mirror.c: mirror rows. */
/* Number of a foreign space, made if it is not there; remembers the highest sequence read. */
int64_t stet_observe_foreign(stet_space *s, const char *uuid, const char *name, int64_t seen);
/* Mirror rows of an action's reads in other spaces, whose write locks the commit holds. False: one of them could not be
 * written, so its changes may go unnoticed. */
bool stet_observe_mirror(stet_space *s, int64_t branch, stet_known_action *a, const stet_applied *m,
                         stet_bytes foreign);
/* Marks from other spaces that the new observation has overtaken. True: some are left. */
bool stet_observe_clear_foreign(stet_space *s, int64_t action, stet_bytes foreign);
/* Removes mirrors of actions that do not read this space any more. Not inside a transaction. */
int64_t stet_observe_orphans(stet_space *s, bool dry_run);
/* The space with this name and UUID beside `s`, opened once and kept. STET_NOT_FOUND also for one with another UUID. */
STET_CHECKED stet_status stet_observe_sibling(stet_space *s, const char *name, const char *uuid, stet_space **out,
                                              stet_error *err);
/* Is the action `action` of `owner` mirrored in `in` at this place? */
bool stet_observe_mirrored(stet_space *in, const stet_space *owner, int64_t action, const stet_foreign_place *r);
void stet_observe_close_owners(stet_space *s);
/* The number under which `owner` is known in `in`; made if asked. 0: not known. */
int64_t stet_observe_owner_number(stet_space *in, const stet_space *owner, bool make);
void stet_observe_drop_mirrors(stet_space *in, int64_t owner, int64_t action);
/* Every action that read the space becomes unknown; marks of a history that is no more mean nothing. */
void stet_observe_distrust_readers(stet_space *s, int64_t space);
/* Adds to `pushes` the mirror rows that a changed leaf touches; `only` 0: of every owner. */
void stet_observe_mirrors_of(stet_space *s, int64_t doc, const stet_change *c, int64_t seq, int64_t only,
                             stet_arena *arena);
/* A stamp of foreign_space: there is no such space, or it does not know this one, and its readers are unknown. */
#define STET_STAMP_GONE (-1)

/* observe_push.c: marks on their way between spaces. */
/* Collects the marks that a change owes to other spaces and notes them as pending, in the transaction of the change. */
void stet_observe_owe(stet_space *s, int64_t branch, int64_t seq, const stet_doc_change *at, size_t len);
/* An action is gone: its mirrors go after the transaction. */
void stet_observe_leave_all(stet_space *s, int64_t action);
void stet_observe_owe_nothing(struct stet_observe *o); /* the transaction that owed it is undone, or all is told */
void stet_observe_push(stet_space *s);                 /* what is owed, to each owner; what fails stays pending */
STET_CHECKED stet_status stet_observe_foreign_catch_up(stet_space *s, stet_error *err);
/* How many other spaces it would have to do something about. */
STET_CHECKED stet_status stet_observe_foreign_owed(stet_space *s, int64_t *spaces, stet_error *err);

/* A name from a file: it may be anything, and is shown. */
static inline const char *stet_observe_name(const char *text, size_t len, stet_arena *arena) {
    return stet_utf8_valid(text, len) ? stet_arena_strndup(arena, text, len) : "(damaged)";
}

static inline const char *stet_observe_text(stet_stmt *q, int column, stet_arena *arena) {
    size_t len;
    const char *text = stet_column_text(q, column, &len);
    return stet_observe_name(text, len, arena);
}

/* batch.c: a transaction that conflicts and only carried an observation: counted as dropped, and no error. */
bool stet_observe_stale(const stet_tx *tx);

/* observe.c: marks of commits above marked_through. */
STET_CHECKED stet_status stet_observe_look(stet_space *s, stet_error *err);

#endif
