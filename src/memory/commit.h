/* commit.h - groups of transactions, shared by tx.c, group.c, commit.c, validate.c and replay.c. */
#ifndef STET_MEMORY_COMMIT_H
#define STET_MEMORY_COMMIT_H

#include "memory/internal.h"

/* A member of a group: a transaction that was added, and its outcome. */
typedef struct stet_group_member {
    stet_tx *tx;
    stet_member_outcome outcome;
    stet_commit_result result;
    stet_error *error;        /* if dropped */
    stet_doc_change *changes; /* in the transaction's arena */
    size_t change_count;
    stet_doc_change *own;             /* with ignored writes: the changes without them; otherwise NULL */
    const stet_tx_read_record *reads; /* with an observation: the validated reads; in the arena of the store */
    size_t read_count;
    bool stale; /* dropped because a read no longer holds */
    /* Applied to another state than it was staged on: members that read it in the group read something else. */
    bool moved;
} stet_group_member;

/* A document after the members so far. */
typedef struct stet_overlay_doc {
    int64_t doc;
    bool exists;
    stet_value value;
    STET_VEC(size_t) members; /* members that changed it, ascending; in the arena */
    void *work;               /* used by commit.c while store number `work_store` runs */
    uint64_t work_store;
} stet_overlay_doc;

struct stet_group {
    stet_space *space;
    int64_t branch;
    int64_t snapshot;
    STET_VEC(stet_group_member) members;
    bool flushed;           /* the members are those of the last flush */
    stet_tx_memory *memory; /* of the transactions since the last flush, and of the overlay */
    /* Memory of earlier transactions, for reuse: fresh pages cost a twentieth of a flush. */
    stet_tx_memory *spare;
    stet_map overlay; /* id NUL scope -> stet_overlay_doc * */
    uint64_t stores;  /* number of stores */
    stet_tx *live;    /* begun and not yet added or aborted */
    bool ended;       /* its owner has ended it: freed with the last live transaction */
    /* What the last member depends on (`rests_on`), if it was found to hold: the next member usually depends on the
     * same. */
    const char *ground, *ground_scope;
    int64_t ground_since, ground_start;
};

/* In group.c. */
/* Fills a document from the overlay; false: it is not there. Sets seen and seen_members either way. */
bool stet_group_overlay(stet_group *g, stet_tx_doc *d);
stet_overlay_doc *stet_group_find(const stet_group *g, const stet_docname *name); /* NULL: not in the overlay */
/* The transaction is no longer live. Returns the group that it was live in, or NULL. After the transaction is freed,
 * stet_group_leave is called with that group. */
stet_group *stet_group_forget(stet_tx *tx);
void stet_group_leave(stet_group *g); /* frees a group that has ended and has no live transaction; NULL is fine */
void stet_group_member_clear(stet_group_member *m); /* its error */
/* The changed leaves of a document that a transaction has written, as staged. */
const stet_change *stet_tx_doc_changes(stet_tx *tx, stet_tx_doc *d, size_t *count);
/* Does any of the leaves touch a read of `d`? Fills `which` if so (which[0] the read, which[1] the change). */
bool stet_reads_touched(const stet_tx_doc *d, const stet_change *at, size_t len, size_t which[2]);

/* In validate.c: do the reads of `tx` hold? `start`: the space's sequence when the store began. `members`: an earlier
 * member of the group was dropped, or applied to another state than staged. STET_CONFLICT: no. */
STET_CHECKED stet_status stet_group_validate(stet_group *g, stet_tx *tx, int64_t start, bool members, stet_arena *arena,
                                             stet_error *err);

/* In replay.c, for members that carry a session. STET_NOT_FOUND: not seen before. STET_OK: the answer is in m->result.
 */
STET_CHECKED stet_status stet_replay_find(stet_space *s, stet_group_member *m, stet_error *err);
void stet_replay_keep(stet_space *s, const stet_group_member *m);

/* In commit.c: stores the whole group in one SQLite transaction. If the one member holds the space's write lock
 * (`locked`), continues in that transaction. Ends the transaction either way. */
STET_CHECKED stet_status stet_group_store(stet_group *g, stet_error *err);

#endif
