/* internal.h - what the files of this folder share. Not included anywhere else.
 *
 * The handle's view. `known` is the sequence through which the cache is right: an entry that is not `old` is the
 * document as of every sequence from its own up to `known`. refresh() reads the commits above `known`, marks what they
 * touched as old, and moves `known`. The handle's own commits move it too, but only after SQLite has committed: a
 * failed commit leaves the handle as it was.
 */
#ifndef STET_MEMORY_INTERNAL_H
#define STET_MEMORY_INTERNAL_H

#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "db/db.h"
#include "memory/observe.h"
#include "memory/space.h"
#include "os/clock.h"
#include "os/file.h"

#define STET_INLINE_BYTES     2048 /* a document up to this size is kept completely in its head */
#define STET_ANCHOR_LINKS     64   /* revisions between anchors; more for large documents, see commit.c */
#define STET_ANCHOR_MAX       1024
#define STET_WRITTEN_BRANCHES 62     /* branches that have a bit in document.written */
#define STET_NAMES_MAX        262144 /* names kept in memory; beyond that a look-up may cost two locks */

extern const stet_db_migration stet_space_migrations[];
extern const int stet_space_migration_count;

/* A document's newest revision on a branch, decoded. */
typedef struct stet_head {
    int64_t seq; /* 0: never existed */
    bool own;    /* the branch has a revision of its own; otherwise it is the parent's */
    bool exists;
    int64_t links, chain, bytes; /* as in the table head */
    stet_value value;            /* the envelope, one reference held; null if it does not exist */
} stet_head;

typedef struct stet_cached {
    int64_t key;
    bool old; /* a newer revision exists; still usable as a base for patches */
    stet_head head;
    size_t cost;
    struct stet_cached *newer, *older;
} stet_cached;

typedef struct stet_branch_entry {
    int64_t branch, parent, fork; /* parent -1: none */
    bool deleted;
} stet_branch_entry;

/* A name that has its number, to be written with the others of its transaction. */
typedef struct stet_new_name {
    int64_t doc, written;
    const char *id, *scope;
    size_t id_len, scope_len;
} stet_new_name;
typedef STET_VEC(stet_new_name) stet_new_names;

struct stet_space {
    stet_db *db;
    char *name, *path;
    char *root; /* of the project; NULL: opened without one */
    char uuid[37];
    bool read_only;
    uint64_t device, inode; /* of the open file; 0: not known */
    bool care;              /* opened for a check: a damaged newest commit is not a failure */
    bool probing;           /* damage found while reading documents sets `damaged`, and is not a failure */
    bool damaged;
    int64_t known;
    int64_t data_version;
    stet_map names;        /* id NUL scope -> number, or ABSENT and the epoch in which it did not exist (space.c) */
    uint64_t names_epoch;  /* counts detected commits by others */
    stet_map names_fit;    /* first name of a range -> the digest that its names were found to have */
    int64_t names_sum;     /* the digest of the names up to names_through */
    int64_t names_gone;    /* how often gc has removed names, as far as this handle knows */
    int64_t names_given;   /* numbers that this handle has assigned, stored or not */
    int64_t names_through; /* every name with a number up to this is in `names`, as of names_whole; 0: not complete */
    uint64_t names_whole;  /* the epoch in which names_through was the highest number */
    size_t names_missed;   /* failed look-ups since names_through was 0 */
    size_t names_try;      /* at this many, count the names */
    stet_map named;        /* number -> "id NUL scope NUL", for the way back; emptied by stet_space_forget_names */
    stet_arena named_arena;
    bool names_wait; /* new names are kept in names_new until stet_space_write_names */
    stet_new_names names_new;
    stet_arena names_arena; /* of names_new */
    int64_t names_next;     /* the number for the next new name; 0: not known */
    int64_t names_first;    /* the lowest number assigned in this transaction; 0: none */
    int64_t names_held;     /* the lowest number in names_new */
    stet_map branch_names;  /* name -> number */
    stet_map branches;      /* number -> stet_branch_entry * */
    stet_map cache;         /* key -> stet_cached * */
    stet_cached *newest, *oldest;
    size_t cache_bytes, cache_max;
    int64_t hits, misses;
    struct stet_observe *observe; /* observe_internal.h; NULL until it is needed */
    stet_group *batch;            /* observations of runs that changed nothing, waiting to be stored; or NULL */
    bool locked;                  /* the write lock is held across a transaction (stet_space_transact) */
    stet_buf text;                /* scratch */
    stet_changes leaves;          /* scratch */
};

/* In space.c. */
STET_CHECKED stet_status stet_space_refresh(stet_space *s, stet_error *err);
/* The same inside a transaction; errors stick. */
void stet_space_catch_up(stet_space *s);
/* NULL: there is none, or a failure sticks. Valid until the next refresh. */
const stet_branch_entry *stet_space_branch_entry(stet_space *s, int64_t branch);
void stet_space_forget_branches(stet_space *s);
void stet_space_forget_names(stet_space *s);
int64_t stet_space_find_doc(stet_space *s, const stet_docname *name); /* 0: none, or a failure sticks */
/* The same as of `known`: a name that did not exist at the last look is not looked up again. */
int64_t stet_space_known_doc(stet_space *s, const stet_docname *name);
/* Until stet_space_write_names, stet_space_intern writes no rows, so that those of a whole group are written to the
 * table and its index in order. Needs one write transaction that has caught up. Nothing may look up the new names in
 * SQL meanwhile. */
void stet_space_hold_names(stet_space *s);
void stet_space_write_names(stet_space *s);
/* In name_digest.c. */
#define STET_DIGEST_NAMES "digest:document"
int64_t stet_name_sum(int64_t doc, const char *id, size_t id_len, const char *scope, size_t scope_len);
/* Names were stored (rows is 1) or removed (-1), in the same transaction. They are sorted by id and scope. */
void stet_space_names_changed(stet_space *s, const stet_new_name *names, size_t count, int64_t rows);
/* A name was looked for and not found. Is one missing that it may be? */
bool stet_space_name_gone(stet_space *s, const char *id, size_t id_len, const char *scope, size_t scope_len);
/* Are all names there, as they were given? Reads all of them. */
bool stet_space_names_all_fit(stet_space *s);
bool stet_space_few_names_fit(stet_space *s);   /* the same, but not looked at if there are many */
bool stet_space_name_ranges_fit(stet_space *s); /* and is that what name_digest says? */
void stet_space_names_renew(stet_space *s);     /* accepts those that are there: for a repair */
void stet_names_divide_all(stet_db *db);        /* for a file that has no ranges yet */
/* Begins a read transaction unless one is open, so that statements that belong together see one state of the file. */
STET_CHECKED stet_status stet_space_enter(stet_space *s, bool *begun, stet_error *err);
/* Ends it. Returns `st` if that is a failure, otherwise what sticks to the database. */
STET_CHECKED stet_status stet_space_leave(stet_space *s, bool begun, stet_status st, stet_error *err);

/* Notes that the document has a revision on the branch: from now on a missing head is an error. Call it before
 * stet_space_write_names. */
void stet_space_note_written(stet_space *s, int64_t doc, int64_t branch);
/* Was it noted? */
bool stet_space_written(stet_space *s, int64_t doc, int64_t branch);

/* In document.c. Call inside stet_space_enter; failures stick to the database. */
/* A stored row is damaged: STET_CORRUPT, with the document's name (0: none) and a hint. */
void stet_space_damaged(stet_space *s, int64_t doc, const char *format, ...) STET_PRINTF(3, 4);
void stet_head_release(stet_head *h);
/* The document as of sequence `at`, at most `known`; its value comes with a reference. */
void stet_head_load(stet_space *s, int64_t branch, int64_t doc, int64_t at, stet_head *out);
/* The value after revision `seq` of a document; false if it does not exist then, or on failure. */
bool stet_document_rebuild(stet_space *s, int64_t doc, int64_t seq, bool use_cache, stet_value *out);
/* Sequence of the newest revision up to `at` on a branch, read-through included; 0: none. */
int64_t stet_document_revision_at(stet_space *s, int64_t branch, int64_t doc, int64_t at);

/* In cache.c. */
stet_cached *stet_cache_find(stet_space *s, int64_t key);            /* also makes it the newest */
void stet_cache_put(stet_space *s, int64_t key, const stet_head *h); /* retains the value */
void stet_cache_old(stet_space *s, int64_t key);
void stet_cache_clear(stet_space *s);
void stet_cache_shrink(stet_space *s);

/* A recorded read of one document. */
typedef struct stet_tx_path {
    stet_pathref path;
    stet_read_kind kind;
} stet_tx_path;

typedef enum stet_tx_write_kind { STET_TX_NONE, STET_TX_SET, STET_TX_PATCH, STET_TX_DELETE } stet_tx_write_kind;

/* A document that a transaction has touched. */
typedef struct stet_tx_doc {
    stet_space *space;
    int64_t branch;
    stet_docname name;
    int64_t doc;         /* 0: not known to the space */
    int64_t seen;        /* sequence at which it was read */
    size_t seen_members; /* number of members of the group's overlay that it saw */
    int64_t holds;       /* after the commit: the sequence up to which the reads are known to hold; 0 before */
    struct stet_overlay_doc *overlay; /* in the group it belongs to, if it is in the overlay */
    bool before_exists, after_exists;
    stet_value before, after; /* references held; `after` from the first write on */
    stet_tx_write_kind write;
    stet_patches ops; /* STET_TX_PATCH: values are retained; everything else, and the array, is in the arena */
    STET_VEC(stet_tx_path) reads; /* in the arena */
    bool reads_collapsed;
    bool need_absent;
    const stet_hash *need_hash; /* of its value, or NULL; in the arena */
    const stet_change *changes; /* from before to after, if known; in the arena */
    size_t change_count;
    bool changes_known;
} stet_tx_doc;

typedef struct stet_tx_view {
    stet_space *space;
    int64_t snapshot;
} stet_tx_view;

/* Memory of one transaction, or of all that are begun in a group between two flushes, so that thousands of small ones
 * share blocks. Freed with the last of them. */
typedef struct stet_tx_memory {
    stet_arena arena;
    size_t users;
    stet_group *group; /* the group reuses it, while it lives */
} stet_tx_memory;

struct stet_tx {
    stet_tx_memory *memory; /* this transaction lies in it */
    stet_arena *arena;      /* its arena */
    stet_space *space;
    int64_t branch;
    stet_group *group;            /* the group it was begun in, or NULL */
    stet_tx *next, *prev;         /* live transactions of the group */
    STET_VEC(stet_tx_doc *) docs; /* in the arena, as are the views */
    stet_map index;               /* from the ninth document on: space, id, scope -> position in docs */
    stet_map reads;               /* doc position, kind, path: already recorded */
    STET_VEC(stet_tx_view) views; /* the first is the space written to */
    size_t op_count, bytes;
    const char *session;
    int64_t local;
    bool doomed; /* a flush of the group invalidated it */
    bool locked; /* begun under the write lock */
    bool ended;
    stet_error *why; /* if doomed */
    stet_observation *observation;
    struct stet_turnover *turnover;
    stet_buf scratch;
};

/* In observe_cache.c: numbers of names may have changed. */
void stet_observe_forget_piece(stet_space *s);

/* In batch.c. */
/* Takes over a transaction that changes nothing and carries an observation, to store it later. True: taken. */
bool stet_batch_take(stet_tx *tx);
void stet_batch_drop(stet_space *s);

/* qsort for arrays that are mostly in order. */
void stet_sort(void *at, size_t len, size_t size, int (*order)(const void *a, const void *b));

/* Adds an element to an array in an arena. */
#define stet_arena_add(arena, v)                                                                                       \
    ((v)->len == (v)->cap ? (void)((v)->at = stet_arena_more((arena), (v)->at, &(v)->cap, sizeof *(v)->at)) : (void)0, \
     &(v)->at[(v)->len++])
void *stet_arena_more(stet_arena *a, const void *at, size_t *cap, size_t size);

/* In tx.c. */
void stet_tx_free(stet_tx *tx);
/* STET_RUN_DEPENDENCIES publishes nothing: the writes of such a transaction are discarded, its reads are kept. */
void stet_tx_withhold(stet_tx *tx);
stet_tx_memory *stet_tx_memory_new(stet_group *g); /* one user; of a group, or NULL */
void stet_tx_memory_leave(stet_tx_memory *m);
/* Takes over one use of `m`. */
stet_tx *stet_tx_new(stet_space *s, int64_t branch, int64_t snapshot, stet_group *g, stet_tx_memory *m);
/* The same as stet_tx_reads, in no order. */
stet_tx_read_record *stet_tx_read_list(const stet_tx *tx, stet_arena *arena, size_t *count);
stet_tx_doc *stet_tx_find(const stet_tx *tx, size_t view, const stet_docname *name); /* NULL: not touched */
/* Compares two states of a document; the leaves go to `arena`. */
const stet_change *stet_space_compare(stet_space *s, bool before_exists, stet_value before, bool after_exists,
                                      stet_value after, stet_arena *arena, size_t *count);
/* The changed leaves of a written document against another state than the one it was written on: applies the writes to
 * (exists, before) and compares. `*after` gets a reference. */
STET_CHECKED stet_status stet_tx_doc_apply(const stet_tx_doc *d, bool exists, stet_value before, bool *after_exists,
                                           stet_value *after, stet_error *err);
bool stet_same_value(stet_value a, stet_value b); /* identical, without comparing contents */
int stet_value_depth(stet_value v);               /* nested containers; stops at STET_DOC_MAX_DEPTH + 2 */

/* In patch.c: binary form of operations, in commit bodies. */
void stet_patches_encode(stet_buf *out, const stet_patch *at, size_t len);
/* Paths point into `bytes`; values are retained in `out`. False: damaged. */
bool stet_patches_decode(const char *bytes, size_t len, stet_patches *out);

#endif
