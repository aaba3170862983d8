/* set.c - sets of entries with an index, and the texts that entries point into. */

#include "persist/set.h"

#include <assert.h>
#include <string.h>

#include "base/map.h"

stet_ptexts *stet_ptexts_new(void) {
    stet_ptexts *t = stet_alloc_zero(sizeof *t);
    atomic_init(&t->refs, 1);
    return t;
}

stet_ptexts *stet_ptexts_hold(stet_ptexts *t) {
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void stet_ptexts_drop(stet_ptexts *t) {
    if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < t->blocks.len; i++)
        free(t->blocks.at[i]);
    stet_vec_release(&t->blocks);
    stet_arena_release(&t->arena);
    free(t);
}

static int by_key(const void *a, const void *b) {
    return stet_pentry_compare(a, b);
}

void stet_pentries_sort(stet_pentries *v) {
    bool sorted = true;
    for (size_t i = 1; i < v->len && sorted; i++)
        sorted = stet_pentry_compare(&v->at[i - 1], &v->at[i]) < 0;
    if (sorted)
        return;
    qsort(v->at, v->len, sizeof *v->at, by_key);
    size_t n = 0;
    for (size_t i = 0; i < v->len; i++) {
        if (n && stet_pentry_same_key(&v->at[n - 1], &v->at[i])) {
            stet_pentry *kept = &v->at[n - 1];
            int prefer = stet_pentry_prefer(kept, &v->at[i]);
            bool in_log = kept->in_log && v->at[i].in_log; /* an entry that is in a snapshot is not new in the log */
            if (prefer < 0) {
                bool other = v->at[i].in_log;
                *kept = v->at[i];
                in_log = other;
            } else if (prefer > 0)
                in_log = kept->in_log;
            kept->in_log = in_log;
        } else
            v->at[n++] = v->at[i];
    }
    v->len = n;
}

static uint64_t pair_hash(const char *block, size_t block_len, const char *module) {
    return stet_map_hash(block, block_len) * 0x9e3779b97f4a7c15u ^ stet_map_hash(module, STET_PERSIST_HASH);
}

static bool same_pair(const stet_pentry *e, const char *block, size_t block_len, const char *module) {
    return e->block_len == block_len && !memcmp(e->module, module, STET_PERSIST_HASH) &&
           !memcmp(e->block, block, block_len);
}

static uint32_t *slot_of(const stet_pset *s, const char *block, size_t block_len, const char *module) {
    size_t mask = s->newest_cap - 1, i = (size_t)pair_hash(block, block_len, module) & mask;
    while (s->newest[i] && !same_pair(&s->entries.at[s->newest[i] - 1], block, block_len, module))
        i = (i + 1) & mask;
    return &s->newest[i];
}

static void grow(stet_pset *s, size_t pairs) {
    size_t cap = s->newest_cap ? s->newest_cap : 64;
    while (cap < pairs * 2)
        cap *= 2;
    if (cap == s->newest_cap)
        return;
    uint32_t *old = s->newest;
    size_t old_cap = s->newest_cap;
    s->newest = stet_alloc_zero(cap * sizeof *s->newest);
    s->newest_cap = cap;
    for (size_t i = 0; i < old_cap; i++)
        if (old[i]) {
            const stet_pentry *e = &s->entries.at[old[i] - 1];
            *slot_of(s, e->block, e->block_len, e->module) = old[i];
        }
    free(old);
}

static void link_entry(stet_pset *s, uint32_t index) {
    stet_pentry *e = &s->entries.at[index];
    uint32_t *at = slot_of(s, e->block, e->block_len, e->module);
    if (!*at)
        s->pairs++;
    while (*at && s->entries.at[*at - 1].created > e->created)
        at = &s->entries.at[*at - 1].older;
    e->older = *at;
    *at = index + 1;
}

void stet_pset_build(stet_pset *s, stet_pentries *entries) {
    assert(entries->len < UINT32_MAX);
    memset(s, 0, sizeof *s);
    s->entries = *entries;
    memset(entries, 0, sizeof *entries);
    grow(s, s->entries.len);
    for (size_t i = 0; i < s->entries.len; i++)
        link_entry(s, (uint32_t)i);
}

void stet_pset_add(stet_pset *s, const stet_pentry *e) {
    assert(s->entries.len + 1 < UINT32_MAX);
    *stet_vec_add(&s->entries) = *e;
    grow(s, s->pairs + 1);
    link_entry(s, (uint32_t)s->entries.len - 1);
}

const stet_pentry *stet_pset_newest(const stet_pset *s, const char *block, size_t block_len, const char *module,
                                    uint64_t until) {
    if (!s->newest_cap)
        return NULL;
    uint32_t i = *slot_of(s, block, block_len, module);
    while (i && s->entries.at[i - 1].created > until)
        i = s->entries.at[i - 1].older;
    return i ? &s->entries.at[i - 1] : NULL;
}

const stet_pentry *stet_pset_older(const stet_pset *s, const stet_pentry *e) {
    return e->older ? &s->entries.at[e->older - 1] : NULL;
}

const stet_pentry *stet_pset_find(const stet_pset *s, const stet_pentry *key) {
    const stet_pentry *e = stet_pset_newest(s, key->block, key->block_len, key->module, key->created);
    return e && e->created == key->created ? e : NULL;
}

void stet_pset_release(stet_pset *s) {
    stet_vec_release(&s->entries);
    free(s->newest);
    memset(s, 0, sizeof *s);
}
