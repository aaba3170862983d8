/* cache.c - decoded documents of one handle; the least recently used is dropped first.
 *
 * An entry that is not old is the document as of every sequence from head.seq to the handle's `known`. An old entry
 * stays as a base for the patches after it: following a large document that others patch then costs only the patches.
 */

#include "memory/internal.h"

#include <assert.h>

static void unlink_entry(stet_space *s, stet_cached *c) {
    *(c->newer ? &c->newer->older : &s->newest) = c->older;
    *(c->older ? &c->older->newer : &s->oldest) = c->newer;
}

static void link_newest(stet_space *s, stet_cached *c) {
    c->newer = NULL;
    c->older = s->newest;
    *(s->newest ? &s->newest->newer : &s->oldest) = c;
    s->newest = c;
}

static void drop(stet_space *s, stet_cached *c) {
    unlink_entry(s, c);
    s->cache_bytes -= c->cost;
    stet_map_remove(&s->cache, &c->key, sizeof c->key);
    stet_head_release(&c->head);
    free(c);
}

static void make_newest(stet_space *s, stet_cached *c) {
    if (s->newest == c)
        return;
    unlink_entry(s, c);
    link_newest(s, c);
}

stet_cached *stet_cache_find(stet_space *s, int64_t key) {
    stet_slot *slot = stet_map_get(&s->cache, &key, sizeof key);
    if (!slot)
        return NULL;
    make_newest(s, slot->p);
    return slot->p;
}

void stet_cache_shrink(stet_space *s) {
    while (s->cache_bytes > s->cache_max && s->oldest && s->oldest != s->newest)
        drop(s, s->oldest);
}

void stet_cache_put(stet_space *s, int64_t key, const stet_head *h) {
    bool added;
    stet_slot *slot = stet_map_have(&s->cache, &key, sizeof key, (stet_slot){.p = NULL}, &added);
    stet_cached *c = slot->p;
    stet_value held = stet_value_retain(h->value);
    if (added) {
        c = slot->p = stet_alloc_zero(sizeof *c);
        c->key = key;
        link_newest(s, c);
    } else {
        make_newest(s, c);
        stet_head_release(&c->head);
        s->cache_bytes -= c->cost;
    }
    c->old = false;
    c->head = *h;
    c->head.value = held;
    c->cost = sizeof *c + 64 + 2 * (size_t)h->bytes; /* a decoded value takes about twice the memory of its text */
    s->cache_bytes += c->cost;
    stet_cache_shrink(s);
}

void stet_cache_old(stet_space *s, int64_t key) {
    stet_slot *slot = stet_map_get(&s->cache, &key, sizeof key);
    if (slot)
        ((stet_cached *)slot->p)->old = true;
}

void stet_cache_clear(stet_space *s) {
    while (s->oldest) {
        stet_cached *c = s->oldest;
        unlink_entry(s, c);
        assert(s->oldest != c);
        stet_head_release(&c->head);
        free(c);
    }
    s->cache_bytes = 0;
    stet_map_clear(&s->cache);
}
