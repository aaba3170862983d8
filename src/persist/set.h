/* set.h - sets of entries with an index, and the texts that entries point into.
 *
 * Entries are small structs that point into text. The text belongs to a stet_ptexts, which is reference-counted, so
 * that a view of the entries outlives a reload. For each block and module, a set links the entries from the newest to
 * the oldest.
 */
#ifndef STET_PERSIST_SET_H
#define STET_PERSIST_SET_H

#include "persist/format.h"

typedef struct stet_ptexts {
    atomic_int refs;
    stet_arena arena; /* only the writer of the set adds here; what was handed out never moves */
    struct {
        char **at;
        size_t len, cap;
    } blocks; /* from malloc */
} stet_ptexts;

stet_ptexts *stet_ptexts_new(void);
stet_ptexts *stet_ptexts_hold(stet_ptexts *t);
void stet_ptexts_drop(stet_ptexts *t); /* NULL is fine */

typedef struct stet_pentries {
    stet_pentry *at;
    size_t len, cap;
} stet_pentries;

/* Sorts by key; of several entries with the same key the preferred one stays. */
void stet_pentries_sort(stet_pentries *v);

typedef struct stet_pset {
    stet_pentries entries;
    uint32_t *newest; /* open addressing by block and module: index plus one of the newest entry */
    size_t newest_cap, pairs;
} stet_pset;

/* Takes over the entries (already unique by key) and builds the index. */
void stet_pset_build(stet_pset *s, stet_pentries *entries);
/* Adds an entry whose key is not in the set. Pointers into the set become invalid. */
void stet_pset_add(stet_pset *s, const stet_pentry *e);
/* The newest entry of a block and module with created_at up to `until`; NULL if none. */
const stet_pentry *stet_pset_newest(const stet_pset *s, const char *block, size_t block_len, const char *module,
                                    uint64_t until);
const stet_pentry *stet_pset_older(const stet_pset *s, const stet_pentry *e);
const stet_pentry *stet_pset_find(const stet_pset *s, const stet_pentry *key);
void stet_pset_release(stet_pset *s);

#endif
