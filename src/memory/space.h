/* space.h - spaces of documents: transactions, groups of commits, branches, history, notification.
 *
 * A space is one SQLite file with a UUID and one sequence, shared by its branches. A document has an id, a scope and a
 * history. Its stored form, the envelope, is an object: {"value": ..., and metadata members such as "source",
 * "pattern", "process"}. Every path at this level starts in the envelope, so that value and metadata are read,
 * compared, indexed and notified in the same way: the CELL "a/rows/0" is document "a", path value/rows/0.
 *
 * Calling sequence
 *
 *     stet_space *s;
 *     stet_status status = stet_space_open(project, "main", 0, &s, &err);
 *     if (status != STET_OK)
 *         return status;
 *     stet_tx *tx;
 *     status = stet_tx_begin(s, "", &tx, &err); // a snapshot: one number
 *     if (status == STET_OK) {
 *         stet_value v; // borrowed until the transaction ends
 *         status = stet_tx_read(tx, NULL, &name, path, STET_RECURSIVE, &v, &err);
 *         if (status == STET_OK)
 *             status = stet_tx_patch(tx, &name, &op, 1, &err);
 *         if (status == STET_OK)
 *             status = stet_tx_commit(tx, &result, &err); // ends it; STET_CONFLICT: try again
 *         else
 *             stet_tx_abort(tx);
 *     }
 *     stet_space_close(s);
 *
 * Sequences. Every logical commit that changes something has a sequence of its own, also inside a group. A commit that
 * changes nothing has none: it reports the current sequence of the space and notifies nobody.
 *
 * Snapshots. A transaction reads the space as of one sequence, rebuilt from the log if the document changed since. It
 * holds no lock and no SQLite transaction, so it may live long. At commit, under the write lock, each read is checked
 * against later changes with stet_touches. An overlap is STET_CONFLICT, with the read, the change and its sequence in
 * the details. Patches are applied again to the state at that time, so two transactions that increment one counter
 * without reading it do not conflict.
 *
 * Groups. A stet_group is a snapshot plus an overlay of what its transactions wrote, flushed as one SQLite transaction:
 *
 *     stet_group *g;
 *     stet_tx *tx;
 *     stet_status status = stet_group_begin(s, "", &g, &err);
 *     if (status != STET_OK)
 *         return status;
 *     status = stet_tx_begin_in(g, &tx, &err); // any number of transactions
 *     if (status == STET_OK)
 *         status = stet_group_add(g, tx, NULL, NULL, &err); // advances the overlay
 *     if (status == STET_OK)
 *         status = stet_group_flush(g, &err);
 *     stet_member member;
 *     for (size_t i = 0; i < stet_group_len(g); i++)
 *         stet_group_at(g, i, &member); // applied, or dropped with its reason
 *     stet_group_end(g);
 *
 * A member whose reads no longer hold is dropped, and so is every later member that read what it wrote; the others are
 * applied. A plain stet_tx_commit is a group of one.
 *
 * Commit order, in one SQLite transaction: reads are validated; revisions are packed in the commit rows; heads are
 * written net and in key order; then stet_observe_apply (observe.h) marks the readers of what changed, stores
 * observations and their index rows, and clears the actions' own marks.
 *
 * Other spaces. A transaction reads from any number of spaces and writes to one. At commit the spaces read are locked
 * too, in the order of their UUIDs (unless they are open read-only), so that the reads still hold when the write
 * becomes visible.
 *
 * Ownership. Handles are used by one thread at a time. Values that read functions return are borrowed from the
 * transaction; names, paths and values passed in are copied or retained.
 */
#ifndef STET_MEMORY_SPACE_H
#define STET_MEMORY_SPACE_H

#include "base/arena.h"
#include "base/change.h"
#include "base/hash.h"
#include "base/path.h"
#include "project/project.h"

/* stet_space, stet_tx, stet_commit_result, stet_space_open, stet_tx_begin, ... are public: include/stet.h. */

typedef struct stet_db stet_db;
typedef struct stet_group stet_group;
typedef struct stet_feed stet_feed;
typedef struct stet_observation stet_observation; /* observe.h */

#define STET_DOC_MAX_BYTES    ((size_t)64 << 20) /* of one document's canonical text */
#define STET_DOC_MAX_DEPTH    511                /* nested containers, envelope included */
#define STET_ID_MAX           512
#define STET_BRANCH_NAME_MAX  128
#define STET_SESSION_MAX      128
#define STET_COMMIT_MAX_DOCS  100000
#define STET_COMMIT_MAX_OPS   1000000
#define STET_COMMIT_MAX_BYTES ((size_t)512 << 20)
#define STET_GROUP_MAX        100000 /* members */
#define STET_CHANGES_MAX      1024   /* leaves per document and commit; beyond that: their common prefix */
#define STET_TX_READS_PER_DOC 1024   /* reads of one document; beyond that: their common prefix, recursive */
#define STET_BRANCH_MAX       (1 << 22)

/* A document in a space. Scope NULL or "" is the common scope. */
typedef struct stet_docname {
    const char *id;
    const char *scope;
} stet_docname;

/* UTF-8, 1 to 512 bytes, no control characters. The message names the broken limit. */
STET_CHECKED stet_status stet_docname_check(const stet_docname *name, stet_error *err);
STET_CHECKED stet_status stet_branch_name_check(const char *name, stet_error *err); /* "" is the default branch */
STET_CHECKED stet_status stet_space_name_check(const char *name, stet_error *err);  /* [a-z0-9._-]+, 64 bytes */
/* Parses "ID[/KEY...]", with JSON Pointer escapes in both. The path begins with "value" unless `meta`. `*id` belongs to
 * the caller. */
STET_CHECKED stet_status stet_cell_parse(const char *cell, bool meta, char **id, stet_path *path, stet_error *err);
/* The inverse, appended to `out`. A path outside "value" is printed completely, with a leading "//": "id//process/0".
 * The whole document is printed as its id, like its value. */
void stet_cell_print(const char *id, stet_pathref path, stet_buf *out);

typedef enum stet_patch_kind {
    /* Sets the value, whatever is there; missing parents are created as objects. */
    STET_PATCH_REPLACE = 1,
    /* Sets an object member, or inserts an array element at its index ("-": at the end); parents are created. */
    STET_PATCH_ADD = 2,
    /* Removes a value, which must exist. */
    STET_PATCH_REMOVE = 3,
    /* Removes at `from` and adds at `path`; never into itself. */
    STET_PATCH_MOVE = 4,
    /* At `index` removes `count` elements and inserts those of `value`, an array. */
    STET_PATCH_SPLICE = 5,
    /* Appends the elements of `value`, an array; an absent array is created. */
    STET_PATCH_APPEND = 6,
    /* Appends `value` unless an equal element exists; an absent array is created. */
    STET_PATCH_ADD_UNIQUE = 7,
    /* Removes every element equal to `value`. */
    STET_PATCH_REMOVE_VALUE = 8,
    /* Adds `value`, a number; an absent number counts as 0. */
    STET_PATCH_INCREMENT = 9
} stet_patch_kind;

typedef struct stet_patch {
    stet_patch_kind kind;
    stet_pathref path; /* in the envelope */
    stet_pathref from; /* move */
    size_t index;      /* splice */
    size_t count;      /* splice */
    stet_value value;
} stet_patch;

typedef struct stet_patches {
    stet_patch *at;
    size_t len, cap;
} stet_patches;

/* Reads an array of {"op","path",...} (docs/memory.md). Paths are JSON Pointers or arrays of keys, relative to the
 * value unless `meta`. Paths and retained values live in `out` and `arena`; release both. */
STET_CHECKED stet_status stet_patches_of_value(stet_value list, bool meta, stet_arena *arena, stet_patches *out,
                                               stet_error *err);
stet_value stet_patches_to_value(const stet_patch *at, size_t len);
void stet_patches_release(stet_patches *p);
/* Applies all operations to `*doc` (an envelope), or leaves it as it was. The error names the operation by number and
 * path: STET_NOT_FOUND for a path that does not exist, STET_INVALID for a path through a scalar or a value of the wrong
 * type, STET_LIMIT. */
STET_CHECKED stet_status stet_patches_apply(const stet_patch *at, size_t len, stet_value *doc, stet_error *err);

/* For stet_space_check, in addition to the flags of stet.h: opens a space even if its newest commit is damaged. */
enum { STET_SPACE_CARE = 256 };
/* Opens a space's file at any path, under a name for messages. */
STET_CHECKED stet_status stet_space_open_path(const char *path, const char *name, unsigned flags, stet_space **out,
                                              stet_error *err);
/* Names of the spaces of a project, sorted. */
struct stet_names;
STET_CHECKED stet_status stet_space_names(stet_project *p, struct stet_names *out, stet_error *err);
stet_db *stet_space_db(stet_space *s); /* for observe.c, check and tests */
/* Is the open file no longer the one at its path, because it was deleted or replaced? Then this handle does not read
 * what others read. */
bool stet_space_replaced(const stet_space *s);
const char *stet_space_path(const stet_space *s);
/* The directory of the project, whose spaces may lie elsewhere; NULL: not known. */
const char *stet_space_root(const stet_space *s);
bool stet_space_read_only(const stet_space *s);
/* The newest sequence that this handle knows, without reading the file. */
int64_t stet_space_known(const stet_space *s);
/* The document's number in this space; 0 if it never existed. Numbers are never reused. */
STET_CHECKED stet_status stet_space_doc(stet_space *s, const stet_docname *name, int64_t *doc, stet_error *err);
/* The same inside a write transaction; assigns a number if there is none. Errors stick to the database; then 0. */
int64_t stet_space_intern(stet_space *s, const stet_docname *name);
/* Id and scope of a number, in memory of `arena`. */
STET_CHECKED stet_status stet_space_docname(stet_space *s, int64_t doc, stet_arena *arena, stet_docname *out,
                                            stet_error *err);
/* The ids in the common scope that begin with `prefix`, in order: of documents that were written or only looked for. In
 * the arena. */
STET_CHECKED stet_status stet_space_ids(stet_space *s, const char *prefix, stet_arena *arena, const char *const **out,
                                        size_t *count, stet_error *err);
/* Branch number of a name (0 is the default branch). STET_NOT_FOUND: no such branch, or it was deleted. */
STET_CHECKED stet_status stet_space_branch(stet_space *s, const char *name, int64_t *branch, stet_error *err);
/* The key of tables that hold something per branch and document: branch * 2^40 + document. */
int64_t stet_space_key(int64_t branch, int64_t doc);

typedef struct stet_doc_state {
    bool exists;      /* false: never existed, or deleted */
    stet_value value; /* the envelope; the caller releases it. Null if it does not exist. */
    int64_t seq;      /* of its revision; 0: never existed */
} stet_doc_state;

/* Loads a whole document as of sequence `at` (negative: now), outside any transaction; nothing is recorded. An `at`
 * before a branch's fork reads the parent as it was then. An `at` beyond the space's sequence is STET_NOT_FOUND. */
STET_CHECKED stet_status stet_space_load(stet_space *s, int64_t branch, const stet_docname *name, int64_t at,
                                         stet_doc_state *out, stet_error *err);

/* Reads from `from` (its default branch); NULL: the space and branch written to. The read is recorded, even if nothing
 * is there (STET_NOT_FOUND), except for a document that the transaction itself has set as a whole. `*out` is borrowed
 * until the transaction writes to that document or ends. */
STET_CHECKED stet_status stet_tx_read(stet_tx *tx, stet_space *from, const stet_docname *name, stet_pathref path,
                                      stet_read_kind kind, stet_value *out, stet_error *err);
/* Was anything of the document read, and recorded? `from` NULL: of the space that is written to. */
bool stet_tx_has_read(const stet_tx *tx, const stet_space *from, const stet_docname *name);
/* The same, not recorded: for values that must not become a dependency. */
STET_CHECKED stet_status stet_tx_peek(stet_tx *tx, stet_space *from, const stet_docname *name, stet_pathref path,
                                      stet_value *out, stet_error *err);
/* For reading the past: documents of `s` are as of `at` (-1: now), those of other spaces are current. Never commit such
 * a transaction. */
STET_CHECKED stet_status stet_tx_begin_at(stet_space *s, const char *branch, int64_t at, stet_tx **out,
                                          stet_error *err);
/* The sequence of the snapshot of a space; takes one if the transaction has not read there yet. */
STET_CHECKED stet_status stet_tx_snapshot(stet_tx *tx, stet_space *from, int64_t *seq, stet_error *err);

/* Sets the whole envelope; consumes `envelope`, an object. */
STET_CHECKED stet_status stet_tx_put(stet_tx *tx, const stet_docname *name, stet_value envelope, stet_error *err);
STET_CHECKED stet_status stet_tx_drop(stet_tx *tx, const stet_docname *name, stet_error *err); /* absent: no change */
/* Applies all patches or none. A missing document is created if the patches can be applied to an empty envelope. */
STET_CHECKED stet_status stet_tx_patch(stet_tx *tx, const stet_docname *name, const stet_patch *at, size_t len,
                                       stet_error *err);
/* Replaces the value at a path, the common case. Consumes `value`. */
STET_CHECKED stet_status stet_tx_write(stet_tx *tx, const stet_docname *name, stet_pathref path, stet_value value,
                                       stet_error *err);

/* The same for a member of the envelope. */
STET_CHECKED stet_status stet_tx_write_member(stet_tx *tx, const stet_docname *name, const char *member,
                                              stet_value value, stet_error *err);

/* Writes from outside: by the public functions and operations that take any document. The layer above checks them, and
 * defines the guard (graph/guard.c). Tests replace it. */
typedef struct stet_write_guard {
    /* Before the write; `at` NULL: the document is deleted. STET_INVALID: refused. */
    stet_status (*before)(stet_tx *tx, const stet_docname *name, const stet_patch *at, size_t len, stet_error *err);
    stet_status (*after)(stet_tx *tx, const stet_docname *name, const stet_patch *at, size_t len, stet_error *err);
} stet_write_guard;
extern stet_write_guard stet_outside_guard;
STET_CHECKED stet_status stet_tx_patch_outside(stet_tx *tx, const stet_docname *name, const stet_patch *at, size_t len,
                                               stet_error *err);
/* Also at the root of the envelope. Consumes `value`. */
STET_CHECKED stet_status stet_tx_write_outside(stet_tx *tx, const stet_docname *name, stet_pathref path,
                                               stet_value value, stet_error *err);
STET_CHECKED stet_status stet_tx_drop_outside(stet_tx *tx, const stet_docname *name, stet_error *err);
/* Preconditions, checked under the lock: the document does not exist; the hash of its value member is `hash`. */
STET_CHECKED stet_status stet_tx_need_absent(stet_tx *tx, const stet_docname *name, stet_error *err);
STET_CHECKED stet_status stet_tx_need_hash(stet_tx *tx, const stet_docname *name, stet_hash hash, stet_error *err);
/* Names the commit by (session, local). Repeating it with the same content returns the first answer; other content is
 * STET_CONFLICT. */
STET_CHECKED stet_status stet_tx_session(stet_tx *tx, const char *session, int64_t local, stet_error *err);

/* One recorded read. */
typedef struct stet_tx_read_record {
    stet_space *space;
    stet_docname name;
    int64_t doc; /* number in that space, 0 if not known there */
    stet_pathref path;
    stet_read_kind kind;
    int64_t seq; /* the sequence it saw; after a successful commit: the sequence up to which it is known to hold */
} stet_tx_read_record;

/* Is everything that was read still so? STET_CONFLICT: not all of it. For a transaction that is not committed, and not
 * of a group: what it saw was there up to now, whatever it made of it. */
STET_CHECKED stet_status stet_tx_holds(stet_tx *tx, stet_error *err);
/* The reads so far, by space, document, path; in memory of `arena`. */
void stet_tx_reads(const stet_tx *tx, stet_arena *arena, const stet_tx_read_record **out, size_t *count);
stet_space *stet_tx_space(const stet_tx *tx);
bool stet_tx_empty(const stet_tx *tx); /* no write that changes anything, as far as is known now */

typedef enum stet_revision_kind {
    STET_REVISION_SET = 1,
    STET_REVISION_PATCH = 2,
    STET_REVISION_DELETE = 3,
    STET_REVISION_LOST = 4 /* it existed, but what it changed is lost (repair.c) */
} stet_revision_kind;

/* What one commit did to one document. */
typedef struct stet_doc_change {
    int64_t doc;
    stet_docname name;
    stet_revision_kind kind;
    const stet_change *at; /* changed leaves, sorted, paths in the envelope */
    size_t len;
} stet_doc_change;

typedef struct stet_commit_record {
    int64_t seq;
    int64_t branch;
    int64_t time_ms;
    const stet_doc_change *at; /* in the order of document numbers */
    size_t len;
} stet_commit_record;

/* The commits after `after` (and, if positive, up to `upto`), oldest first, at most `limit`, with their changes; all
 * branches. Memory of `arena`. */
STET_CHECKED stet_status stet_space_commits(stet_space *s, int64_t after, int64_t upto, size_t limit, stet_arena *arena,
                                            stet_commit_record **out, size_t *count, stet_error *err);

/* {"seq","time","branch","changes"} as watchers get it, and its list of changes: [{"id","scope","path","kind"}]. */
stet_value stet_commit_value(const stet_commit_record *r, const char *branch);
stet_value stet_changes_value(const stet_doc_change *at, size_t len);

/* One change that touches a read. */
typedef struct stet_overlap {
    int64_t seq;
    stet_change change;
} stet_overlap;
/* Overlapping changes of one document after a sequence, newest first, at most `limit`. The cost is that of the
 * document's revisions since. `before` 0: no limit. */
STET_CHECKED stet_status stet_space_overlaps(stet_space *s, int64_t branch, int64_t doc, stet_pathref path,
                                             stet_read_kind kind, int64_t after, int64_t before, size_t limit,
                                             stet_arena *arena, stet_overlap **out, size_t *count, stet_error *err);
/* The newest revision of a document on a branch (including its parents' up to the fork); 0 if none. A read that saw
 * this sequence or a later one holds without looking at any change. */
STET_CHECKED stet_status stet_space_head_seq(stet_space *s, int64_t branch, int64_t doc, int64_t *seq, stet_error *err);

STET_CHECKED stet_status stet_group_begin(stet_space *s, const char *branch, stet_group **out, stet_error *err);
/* A transaction that sees the snapshot of the group and what was added to the group so far. */
STET_CHECKED stet_status stet_tx_begin_in(stet_group *g, stet_tx **out, stet_error *err);
/* Adds a transaction and takes it over. `*changes` (may be NULL) are its changed leaves at this point, borrowed from
 * the group until the flush; document numbers are 0 for documents not stored yet. STET_CONFLICT: a member added after
 * the transaction's read changed what it read, or the transaction does not belong to this group. On failure the
 * transaction still belongs to the caller, who aborts it. */
STET_CHECKED stet_status stet_group_add(stet_group *g, stet_tx *tx, const stet_doc_change **changes, size_t *count,
                                        stet_error *err);
size_t stet_group_len(const stet_group *g);
/* Stores all members that still hold, in one SQLite transaction. Then the group is empty again on a new snapshot; its
 * members stay readable until the next add or end. A failure means that nothing was stored; the members are kept, and
 * the flush may be repeated. */
STET_CHECKED stet_status stet_group_flush(stet_group *g, stet_error *err);

typedef enum stet_member_outcome {
    STET_MEMBER_STAGED,
    STET_MEMBER_APPLIED, /* result.changed says whether it has a sequence of its own */
    STET_MEMBER_DROPPED  /* `error` says why: STET_CONFLICT, or the error of a patch */
} stet_member_outcome;

typedef struct stet_member {
    stet_member_outcome outcome;
    stet_commit_result result;
    const stet_error *error;        /* if dropped */
    const stet_doc_change *changes; /* if applied; final */
    size_t change_count;
    stet_tx *tx; /* belongs to the group */
    stet_observation *observation;
} stet_member;
void stet_group_at(const stet_group *g, size_t index, stet_member *out);
/* Drops what was not flushed. NULL is fine. A transaction that is still live keeps the memory of the group: it may be
 * read and must be aborted; it can't be added to another group (STET_CONFLICT). */
void stet_group_end(stet_group *g);

typedef struct stet_branch_info {
    int64_t branch;
    const char *name;
    const char *parent; /* NULL for the default branch */
    int64_t fork;       /* sequence up to which the parent is read through */
    int64_t created_ms;
    bool deleted;
} stet_branch_info;
/* By name, after `after` (NULL: from the start), at most `limit`. Memory of `arena`. */
STET_CHECKED stet_status stet_space_branches(stet_space *s, const char *after, bool deleted_too, size_t limit,
                                             stet_arena *arena, stet_branch_info **out, size_t *count, stet_error *err);

typedef struct stet_doc_info {
    stet_docname name;
    int64_t doc;
    int64_t seq;
    size_t bytes; /* upper estimate of the size of its text */
} stet_doc_info;
typedef struct stet_doc_filter {
    const char *prefix;        /* of the id, or NULL */
    const char *scope;         /* exactly, or NULL: any */
    const stet_docname *after; /* cursor: (id, scope) of the last one seen, or NULL */
    size_t limit;
} stet_doc_filter;
/* Existing documents of a branch in the order of (id, scope). Memory of `arena`. `*more`: there are others. */
STET_CHECKED stet_status stet_space_list(stet_space *s, int64_t branch, const stet_doc_filter *filter,
                                         stet_arena *arena, stet_doc_info **out, size_t *count, bool *more,
                                         stet_error *err);

typedef struct stet_revision {
    int64_t seq;
    int64_t time_ms;
    int64_t branch;
    stet_revision_kind kind;
    const stet_change *at;
    size_t len;
    stet_value payload; /* set: the envelope; patch: the operations; the caller releases it */
} stet_revision;
/* Revisions of a document, newest first, below `before` (0: from the head), at most `limit`. `*next` is the `before` of
 * the next page, 0 at the end. */
STET_CHECKED stet_status stet_space_history(stet_space *s, int64_t branch, const stet_docname *name, int64_t before,
                                            size_t limit, stet_arena *arena, stet_revision **out, size_t *count,
                                            int64_t *next, stet_error *err);

/* Commits of one branch by any process, this handle included, in order, each once, with the changed leaves. */
STET_CHECKED stet_status stet_feed_open(stet_space *s, int64_t branch, int64_t after, stet_feed **out, stet_error *err);
/* Restricts the feed to changes that touch one of the reads added. Without any, the feed has all changes. */
STET_CHECKED stet_status stet_feed_add(stet_feed *f, const stet_docname *name, stet_pathref path, stet_read_kind kind,
                                       stet_error *err);
/* The next commit, valid until the next call. STET_BUSY: timeout_ms is over (0: do not wait, negative: wait for ever).
 */
STET_CHECKED stet_status stet_feed_next(stet_feed *f, int timeout_ms, const stet_commit_record **out, stet_error *err);
int64_t stet_feed_position(const stet_feed *f); /* everything up to here was delivered or did not match */
void stet_feed_close(stet_feed *f);

/* Adds one line per problem: derives chains, heads and snapshots again from the commits and compares them. With
 * `repair`, derived tables that differ are rebuilt from the commits. */
STET_CHECKED stet_status stet_space_check(stet_space *s, bool repair, stet_buf *problems, size_t *found,
                                          size_t *repaired, stet_error *err);
typedef struct stet_space_gc_report {
    int64_t branches, commits, snapshots, documents; /* removed */
    int64_t bytes;                                   /* of the file, freed or (dry run) estimated */
} stet_space_gc_report;
/* Removes what only deleted branches need, and unused document numbers; returns pages to the file system. */
STET_CHECKED stet_status stet_space_gc(stet_space *s, bool dry_run, stet_space_gc_report *out, stet_error *err);

typedef struct stet_space_stats {
    int64_t seq, documents, branches, commits, snapshots, sessions, bytes, wal_bytes;
    int64_t cache_documents, cache_bytes, cache_hits, cache_misses;
} stet_space_stats;
STET_CHECKED stet_status stet_space_stat(stet_space *s, stet_space_stats *out, stet_error *err);

#endif
