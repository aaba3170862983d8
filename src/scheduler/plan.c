#include "scheduler/plan.h"

#include <assert.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "scheduler/plan_index.h"

#define MAX_BUMPS 8 /* times an action is put behind a writer in one settling; more means that they form a cycle */

enum {
    N_DIRTY = 1,
    N_UNKNOWN = 2,
    N_FAILED = 4,
    N_ASIDE = 8,
    N_RUNNING = 16,
    N_REDIRTY = 32, /* marked while it ran */
    N_QUEUED = 64,
    N_PARKED = 128,  /* dirty, and not live */
    N_TIMED = 256,   /* waits for its debounce or throttle */
    N_WAITING = 512, /* waits for something running to end */
    N_EFFECT = 1024,
    N_CERTAIN = 2048,
    N_DEMANDED = 4096,
    N_GONE = 8192
};
#define N_PENDING (N_DIRTY | N_UNKNOWN)
#define N_PLACED  (N_QUEUED | N_PARKED | N_TIMED | N_WAITING | N_RUNNING)

typedef struct edge {
    uint32_t doc, path, kind;
} edge;

typedef struct node {
    const char *name;
    edge *reads, *writes;
    uint32_t read_count, write_count;
    uint32_t flags;
    uint32_t rank;
    uint32_t runs, bumps;
    uint32_t live_at, none_at; /* epochs in which it was found live, or found not to be */
    uint32_t seen, from;       /* stamp and predecessor of the walk under way */
    int64_t dirty_at, started_at;
    int64_t debounce_ms, throttle_ms;
    void *data;
} node;

typedef struct doc {
    const char *name;
    size_t len;
    plan_index readers, writers;
    bool covered;
    bool demanded; /* some cell of it is */
} doc;

typedef struct queued {
    uint64_t key; /* rank, then order of arrival */
    uint32_t rank, node;
} queued;

typedef struct timer {
    int64_t at;
    uint32_t node;
} timer;

struct stet_plan {
    stet_plan_source source;
    stet_arena arena;
    plan_paths paths;
    stet_map doc_names, node_names;
    STET_VEC(doc) docs;
    STET_VEC(node) nodes;
    STET_VEC(queued) heap;
    STET_VEC(timer) timers;
    STET_VEC(edge) demands;
    stet_plan_nodes waiting;
    stet_plan_nodes scratch, walk, found;
    size_t running;
    uint32_t arrivals;
    uint32_t live_epoch, none_epoch, stamp;
};

stet_plan *stet_plan_new(const stet_plan_source *source) {
    stet_plan *p = stet_alloc_zero(sizeof *p);
    if (source)
        p->source = *source;
    p->live_epoch = p->none_epoch = 1;
    return p;
}

void stet_plan_free(stet_plan *p) {
    if (!p)
        return;
    for (size_t i = 0; i < p->nodes.len; i++) {
        free(p->nodes.at[i].reads);
        free(p->nodes.at[i].writes);
    }
    for (size_t i = 0; i < p->docs.len; i++) {
        plan_index_release(&p->docs.at[i].readers);
        plan_index_release(&p->docs.at[i].writers);
    }
    plan_paths_release(&p->paths);
    stet_map_release(&p->doc_names);
    stet_map_release(&p->node_names);
    stet_vec_release(&p->docs);
    stet_vec_release(&p->nodes);
    stet_vec_release(&p->heap);
    stet_vec_release(&p->timers);
    stet_vec_release(&p->demands);
    stet_vec_release(&p->waiting);
    stet_vec_release(&p->scratch);
    stet_vec_release(&p->walk);
    stet_vec_release(&p->found);
    stet_arena_release(&p->arena);
    free(p);
}

/* ---- Documents and actions -------------------------------------------------------------------------------------- */

uint32_t stet_plan_doc(stet_plan *p, const char *name, size_t len) {
    const stet_slot *slot = stet_map_get(&p->doc_names, name, len);
    if (slot)
        return (uint32_t)slot->n;
    uint32_t id = (uint32_t)p->docs.len;
    *stet_vec_add(&p->docs) = (doc){.name = stet_arena_strndup(&p->arena, name, len), .len = len};
    stet_map_put(&p->doc_names, name, len, (stet_slot){.n = id});
    return id;
}

const char *stet_plan_doc_name(const stet_plan *p, uint32_t id, size_t *len) {
    if (len)
        *len = p->docs.at[id].len;
    return p->docs.at[id].name;
}

void stet_plan_doc_covered(stet_plan *p, uint32_t id) {
    p->docs.at[id].covered = true;
}

uint32_t stet_plan_add(stet_plan *p, const char *name, size_t len, const stet_plan_opts *o) {
    assert(!stet_map_get(&p->node_names, name, len));
    uint32_t id = (uint32_t)p->nodes.len;
    *stet_vec_add(&p->nodes) = (node){
        .name = stet_arena_strndup(&p->arena, name, len),
        .flags = (o->effect ? N_EFFECT : 0) | (o->certain ? N_CERTAIN : 0),
        .rank = o->rank,
        .debounce_ms = o->debounce_ms,
        .throttle_ms = o->throttle_ms,
        .started_at = INT64_MIN,
        .dirty_at = INT64_MIN,
        .data = o->data,
    };
    stet_map_put(&p->node_names, name, len, (stet_slot){.n = id});
    return id;
}

uint32_t stet_plan_find(const stet_plan *p, const char *name, size_t len) {
    const stet_slot *slot = stet_map_get(&p->node_names, name, len);
    return slot ? (uint32_t)slot->n : STET_PLAN_NONE;
}

const char *stet_plan_name(const stet_plan *p, uint32_t id) {
    return p->nodes.at[id].name;
}

void *stet_plan_data(const stet_plan *p, uint32_t id) {
    return p->nodes.at[id].data;
}

uint32_t stet_plan_rank(const stet_plan *p, uint32_t id) {
    return p->nodes.at[id].rank;
}

size_t stet_plan_count(const stet_plan *p) {
    return p->nodes.len;
}

void stet_plan_remove(stet_plan *p, uint32_t id) {
    stet_plan_set_reads(p, id, NULL, 0);
    stet_plan_set_writes(p, id, NULL, 0);
    node *n = &p->nodes.at[id];
    if (n->flags & N_RUNNING)
        p->running--;
    n->flags = N_GONE;
    stet_map_remove(&p->node_names, n->name, strlen(n->name));
}

/* ---- Looking up -----------------------------------------------------------------------------------------------------
 */

static void collect(void *ctx, uint32_t id) {
    stet_plan_nodes *out = ctx;
    *stet_vec_add(out) = id;
}

void stet_plan_readers(stet_plan *p, uint32_t d, stet_pathref path, stet_change_kind kind, stet_plan_nodes *out) {
    plan_index_touched(&p->docs.at[d].readers, &p->paths, path, kind, collect, out);
}

void stet_plan_writers(stet_plan *p, uint32_t d, stet_pathref path, stet_plan_nodes *out) {
    plan_index_touched(&p->docs.at[d].writers, &p->paths, path, STET_KEYSET, collect, out);
}

static stet_pathref path_at(const stet_plan *p, uint32_t path) {
    return p->paths.list.at[path];
}

/* Makes sure that every reader of a change is loaded. */
static stet_status load_readers(stet_plan *p, uint32_t d, stet_pathref path, stet_change_kind kind, stet_error *err) {
    if (!p->source.readers || p->docs.at[d].covered)
        return STET_OK;
    bool covered = false;
    stet_status status = p->source.readers(p->source.ctx, p, d, path, kind, &covered, err);
    if (status == STET_OK && covered)
        p->docs.at[d].covered = true;
    return status;
}

/* ---- The queue ------------------------------------------------------------------------------------------------------
 */

static void heap_push(stet_plan *p, uint32_t id) {
    node *n = &p->nodes.at[id];
    queued q = {((uint64_t)n->rank << 32) | p->arrivals++, n->rank, id};
    (void)stet_vec_add(&p->heap);
    size_t i = p->heap.len - 1;
    while (i > 0 && p->heap.at[(i - 1) / 2].key > q.key) {
        p->heap.at[i] = p->heap.at[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    p->heap.at[i] = q;
    n->flags |= N_QUEUED;
    n->flags &= ~(uint32_t)(N_PARKED | N_TIMED | N_WAITING);
}

/* Drops entries that are no longer meant: the action left the queue, or stands in it again with another rank. */
static bool heap_pop(stet_plan *p, uint32_t *id) {
    while (p->heap.len > 0) {
        queued top = p->heap.at[0], last = p->heap.at[--p->heap.len];
        size_t i = 0, n = p->heap.len;
        while (2 * i + 1 < n) {
            size_t child = 2 * i + 1;
            if (child + 1 < n && p->heap.at[child + 1].key < p->heap.at[child].key)
                child++;
            if (p->heap.at[child].key >= last.key)
                break;
            p->heap.at[i] = p->heap.at[child];
            i = child;
        }
        if (n > 0)
            p->heap.at[i] = last;
        node *node_ = &p->nodes.at[top.node];
        if ((node_->flags & N_QUEUED) && node_->rank == top.rank) {
            node_->flags &= ~(uint32_t)N_QUEUED;
            *id = top.node;
            return true;
        }
    }
    return false;
}

static void raise_rank(stet_plan *p, uint32_t id, uint32_t rank) {
    node *n = &p->nodes.at[id];
    if (n->rank >= rank)
        return;
    n->rank = rank;
    if (n->flags & N_QUEUED)
        heap_push(p, id);
}

static void timer_push(stet_plan *p, int64_t at, uint32_t id) {
    (void)stet_vec_add(&p->timers);
    size_t i = p->timers.len - 1;
    while (i > 0 && p->timers.at[(i - 1) / 2].at > at) {
        p->timers.at[i] = p->timers.at[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    p->timers.at[i] = (timer){at, id};
    p->nodes.at[id].flags |= N_TIMED;
}

static void timer_pop(stet_plan *p) {
    timer last = p->timers.at[--p->timers.len];
    size_t i = 0, n = p->timers.len;
    while (2 * i + 1 < n) {
        size_t child = 2 * i + 1;
        if (child + 1 < n && p->timers.at[child + 1].at < p->timers.at[child].at)
            child++;
        if (p->timers.at[child].at >= last.at)
            break;
        p->timers.at[i] = p->timers.at[child];
        i = child;
    }
    if (n > 0)
        p->timers.at[i] = last;
}

void stet_plan_mark(stet_plan *p, uint32_t id, stet_plan_mark_kind kind, int64_t now) {
    node *n = &p->nodes.at[id];
    if (n->flags & N_GONE)
        return;
    n->flags |= kind == STET_PLAN_UNKNOWN ? N_UNKNOWN : N_DIRTY;
    n->flags &= ~(uint32_t)N_FAILED;
    n->dirty_at = now;
    if (n->flags & N_RUNNING)
        n->flags |= N_REDIRTY;
    if (!(n->flags & (N_PLACED | N_ASIDE)))
        heap_push(p, id);
}

void stet_plan_unmark(stet_plan *p, uint32_t id) {
    node *n = &p->nodes.at[id];
    n->flags &= ~(uint32_t)(N_PENDING | N_QUEUED | N_PARKED | N_TIMED | N_WAITING | N_REDIRTY);
}

/* ---- Liveness
 * --------------------------------------------------------------------------------------------------------- */

static bool known_live(const stet_plan *p, const node *n) {
    return (n->flags & (N_CERTAIN | N_DEMANDED)) || n->live_at == p->live_epoch;
}

static bool cell_demanded(const stet_plan *p, uint32_t d, stet_pathref path) {
    if (!p->docs.at[d].demanded)
        return false;
    for (size_t i = 0; i < p->demands.len; i++)
        if (p->demands.at[i].doc == d &&
            stet_touches(path, STET_KEYSET, path_at(p, p->demands.at[i].path), STET_RECURSIVE))
            return true;
    return false;
}

/* Walks down from an action until the first demand. On the way it marks: with a demand at the end, the way there is
 * live; without, everything that was reached is not. */
static stet_status walk_down(stet_plan *p, uint32_t start, bool *live, stet_error *err) {
    uint32_t stamp = ++p->stamp, last = STET_PLAN_NONE;
    stet_vec_clear(&p->walk);
    size_t reached = 0; /* walk holds all that was reached; the next to look at is taken from its end first */
    stet_plan_nodes stack = {0};
    *stet_vec_add(&stack) = start;
    p->nodes.at[start].seen = stamp;
    p->nodes.at[start].from = STET_PLAN_NONE;
    *live = false;
    stet_status status = STET_OK;
    while (stack.len > 0 && !*live && status == STET_OK) {
        uint32_t id = stack.at[--stack.len];
        *stet_vec_add(&p->walk) = id;
        reached++;
        for (uint32_t w = 0; w < p->nodes.at[id].write_count && !*live; w++) {
            edge e = p->nodes.at[id].writes[w];
            if (cell_demanded(p, e.doc, path_at(p, e.path))) {
                *live = true;
                last = id;
                break;
            }
            status = load_readers(p, e.doc, path_at(p, e.path), STET_KEYSET, err);
            if (status != STET_OK)
                break;
            stet_vec_clear(&p->found);
            stet_plan_readers(p, e.doc, path_at(p, e.path), STET_KEYSET, &p->found);
            for (size_t i = 0; i < p->found.len; i++) {
                uint32_t r = p->found.at[i];
                node *n = &p->nodes.at[r];
                if (n->seen == stamp || n->none_at == p->none_epoch)
                    continue;
                n->seen = stamp;
                n->from = id;
                if (known_live(p, n)) {
                    *live = true;
                    last = r;
                    break;
                }
                *stet_vec_add(&stack) = r;
            }
        }
    }
    stet_vec_release(&stack);
    if (status != STET_OK)
        return status;
    if (*live) {
        for (uint32_t id = last; id != STET_PLAN_NONE; id = p->nodes.at[id].from)
            p->nodes.at[id].live_at = p->live_epoch;
    } else {
        for (size_t i = 0; i < reached; i++)
            p->nodes.at[p->walk.at[i]].none_at = p->none_epoch;
    }
    return STET_OK;
}

stet_status stet_plan_is_live(stet_plan *p, uint32_t id, bool *live, stet_error *err) {
    node *n = &p->nodes.at[id];
    *live = known_live(p, n);
    if (*live || n->none_at == p->none_epoch)
        return STET_OK;
    return walk_down(p, id, live, err);
}

/* A live action reads this cell from now on: whatever leads there is live, as far as it was thought not to be. */
static void revive(stet_plan *p, uint32_t d, stet_pathref path) {
    stet_plan_nodes stack = {0};
    stet_plan_writers(p, d, path, &stack);
    while (stack.len > 0) {
        uint32_t id = stack.at[--stack.len];
        node *n = &p->nodes.at[id];
        if (n->none_at != p->none_epoch)
            continue;
        n->none_at = 0;
        n->live_at = p->live_epoch;
        if (n->flags & N_PARKED)
            heap_push(p, id);
        for (uint32_t r = 0; r < n->read_count; r++)
            stet_plan_writers(p, n->reads[r].doc, path_at(p, n->reads[r].path), &stack);
    }
    stet_vec_release(&stack);
}

void stet_plan_demand(stet_plan *p, uint32_t d, stet_pathref path) {
    *stet_vec_add(&p->demands) = (edge){d, plan_path(&p->paths, path), 0};
    p->docs.at[d].demanded = true;
    revive(p, d, path);
}

void stet_plan_demand_node(stet_plan *p, uint32_t id) {
    node *n = &p->nodes.at[id];
    n->flags |= N_DEMANDED;
    if (n->flags & N_PARKED)
        heap_push(p, id);
    n->none_at = 0;
    for (uint32_t r = 0; r < n->read_count; r++)
        revive(p, n->reads[r].doc, path_at(p, n->reads[r].path));
}

void stet_plan_demand_clear(stet_plan *p) {
    for (size_t i = 0; i < p->demands.len; i++)
        p->docs.at[p->demands.at[i].doc].demanded = false;
    stet_vec_clear(&p->demands);
    p->live_epoch++;
    p->none_epoch++;
    for (size_t i = 0; i < p->nodes.len; i++) {
        p->nodes.at[i].flags &= ~(uint32_t)N_DEMANDED;
        if (p->nodes.at[i].flags & N_PARKED)
            heap_push(p, (uint32_t)i);
    }
}

/* ---- Edges
 * ------------------------------------------------------------------------------------------------------------- */

static bool has_edge(const edge *at, uint32_t len, edge e) {
    for (uint32_t i = 0; i < len; i++)
        if (at[i].doc == e.doc && at[i].path == e.path && at[i].kind == e.kind)
            return true;
    return false;
}

typedef struct edge_list {
    edge *at;
    uint32_t len;
} edge_list;

static edge_list make_edges(const edge *from, size_t len) {
    edge_list l = {NULL, 0};
    if (len > 0)
        l.at = stet_alloc(len * sizeof *l.at);
    /* A long list is taken as it is: a duplicate costs a look-up, finding it would cost more. */
    for (size_t i = 0; i < len; i++)
        if (len > 64 || !has_edge(l.at, l.len, from[i]))
            l.at[l.len++] = from[i];
    return l;
}

static bool same_edges(const edge *a, uint32_t an, const edge *b, uint32_t bn) {
    return an == bn && (an == 0 || memcmp(a, b, an * sizeof *a) == 0);
}

void stet_plan_set_reads(stet_plan *p, uint32_t id, const stet_plan_read *at, size_t len) {
    edge small[16] = {{0}}, *tmp = len <= 16 ? small : stet_alloc(len * sizeof *tmp);
    for (size_t i = 0; i < len; i++)
        tmp[i] = (edge){at[i].doc, plan_path(&p->paths, at[i].path), at[i].kind};
    edge_list l = make_edges(tmp, len);
    if (tmp != small)
        free(tmp);
    node *n = &p->nodes.at[id];
    if (same_edges(n->reads, n->read_count, l.at, l.len)) {
        free(l.at);
        return;
    }
    edge *old = n->reads;
    uint32_t old_count = n->read_count;
    bool lost = false;
    for (uint32_t i = 0; i < old_count; i++) {
        if (l.len > 64 || !has_edge(l.at, l.len, old[i]))
            lost = true;
        plan_index_remove(&p->docs.at[old[i].doc].readers, &p->paths, old[i].path, id, old[i].kind);
    }
    for (uint32_t i = 0; i < l.len; i++)
        plan_index_add(&p->docs.at[l.at[i].doc].readers, l.at[i].path, id, l.at[i].kind);
    n->reads = l.at;
    n->read_count = l.len;
    if (lost)
        p->live_epoch++; /* some way to a demand may be gone */
    /* Something that was found to lead nowhere may lead somewhere now, if this action does. */
    bool live = n->flags & (N_CERTAIN | N_DEMANDED | N_RUNNING) || n->live_at == p->live_epoch;
    for (uint32_t i = 0; i < l.len; i++) {
        if (old_count <= 64 && has_edge(old, old_count, l.at[i]))
            continue;
        if (live) {
            revive(p, l.at[i].doc, path_at(p, l.at[i].path));
            continue;
        }
        stet_vec_clear(&p->scratch);
        stet_plan_writers(p, l.at[i].doc, path_at(p, l.at[i].path), &p->scratch);
        for (size_t k = 0; k < p->scratch.len; k++) {
            if (p->nodes.at[p->scratch.at[k]].none_at == p->none_epoch && n->none_at != p->none_epoch) {
                /* Not known either way: forget what was found, and ask again. */
                p->none_epoch++;
                for (size_t m = 0; m < p->nodes.len; m++)
                    if (p->nodes.at[m].flags & N_PARKED)
                        heap_push(p, (uint32_t)m);
                break;
            }
        }
    }
    free(old);
}

void stet_plan_set_writes(stet_plan *p, uint32_t id, const stet_plan_write *at, size_t len) {
    edge small[16] = {{0}}, *tmp = len <= 16 ? small : stet_alloc(len * sizeof *tmp);
    for (size_t i = 0; i < len; i++)
        tmp[i] = (edge){at[i].doc, plan_path(&p->paths, at[i].path), STET_RECURSIVE};
    edge_list l = make_edges(tmp, len);
    if (tmp != small)
        free(tmp);
    node *n = &p->nodes.at[id];
    if (same_edges(n->writes, n->write_count, l.at, l.len)) {
        free(l.at);
        return;
    }
    for (uint32_t i = 0; i < n->write_count; i++)
        plan_index_remove(&p->docs.at[n->writes[i].doc].writers, &p->paths, n->writes[i].path, id, STET_RECURSIVE);
    for (uint32_t i = 0; i < l.len; i++)
        plan_index_add(&p->docs.at[l.at[i].doc].writers, l.at[i].path, id, STET_RECURSIVE);
    free(n->writes);
    bool had = n->write_count > 0;
    n->writes = l.at;
    n->write_count = l.len;
    if (had)
        p->live_epoch++;
    if (n->none_at == p->none_epoch) {
        /* Its new writes may lead to a demand. */
        n->none_at = 0;
        if (n->flags & N_PARKED)
            heap_push(p, id);
    }
}

size_t stet_plan_reads(const stet_plan *p, uint32_t id, stet_plan_read *out, size_t max) {
    const node *n = &p->nodes.at[id];
    for (size_t i = 0; i < n->read_count && i < max; i++)
        out[i] = (stet_plan_read){n->reads[i].doc, path_at(p, n->reads[i].path), (stet_read_kind)n->reads[i].kind};
    return n->read_count;
}

size_t stet_plan_writes(const stet_plan *p, uint32_t id, stet_plan_write *out, size_t max) {
    const node *n = &p->nodes.at[id];
    for (size_t i = 0; i < n->write_count && i < max; i++)
        out[i] = (stet_plan_write){n->writes[i].doc, path_at(p, n->writes[i].path)};
    return n->write_count;
}

/* ---- Changes
 * -------------------------------------------------------------------------------------------------------------- */

stet_status stet_plan_changed(stet_plan *p, uint32_t d, stet_pathref path, stet_change_kind kind, uint32_t by,
                              int64_t now, stet_error *err) {
    stet_status status = load_readers(p, d, path, kind, err);
    if (status != STET_OK)
        return status;
    stet_vec_clear(&p->found);
    stet_plan_readers(p, d, path, kind, &p->found);
    for (size_t i = 0; i < p->found.len; i++) {
        uint32_t r = p->found.at[i];
        if (r == by)
            continue;
        if (by != STET_PLAN_NONE)
            raise_rank(p, r, p->nodes.at[by].rank + 1);
        stet_plan_mark(p, r, STET_PLAN_DIRTY, now);
    }
    stet_vec_clear(&p->found);
    stet_plan_writers(p, d, path, &p->found);
    for (size_t i = 0; i < p->found.len; i++)
        if (p->found.at[i] != by)
            stet_plan_mark(p, p->found.at[i], STET_PLAN_DIRTY, now);
    return STET_OK;
}

/* ---- What next
 * -------------------------------------------------------------------------------------------------------------- */

void stet_plan_begin(stet_plan *p) {
    for (size_t i = 0; i < p->nodes.len; i++) {
        node *n = &p->nodes.at[i];
        n->runs = n->bumps = 0;
        if (n->flags & N_ASIDE) {
            n->flags &= ~(uint32_t)N_ASIDE;
            if ((n->flags & N_PENDING) && !(n->flags & N_PLACED))
                heap_push(p, (uint32_t)i);
        }
    }
}

/* Puts an action behind a writer of what it reads, if that waits to run and ranks no lower (R2). */
static bool put_behind_writer(stet_plan *p, uint32_t id) {
    node *n = &p->nodes.at[id];
    uint32_t above = 0;
    if (n->bumps >= MAX_BUMPS)
        return false;
    for (uint32_t r = 0; r < n->read_count; r++) {
        stet_vec_clear(&p->found);
        stet_plan_writers(p, n->reads[r].doc, path_at(p, n->reads[r].path), &p->found);
        for (size_t i = 0; i < p->found.len; i++) {
            const node *w = &p->nodes.at[p->found.at[i]];
            if (p->found.at[i] != id && (w->flags & N_QUEUED) && (w->flags & N_PENDING) && w->rank >= n->rank &&
                w->rank + 1 > above)
                above = w->rank + 1;
        }
    }
    if (above == 0)
        return false;
    n->bumps++;
    n->rank = above;
    heap_push(p, id);
    return true;
}

/* Is something that is running upstream of this action, as far as loaded actions tell? */
static bool behind_running(stet_plan *p, uint32_t id) {
    if (p->running == 0)
        return false;
    uint32_t stamp = ++p->stamp;
    stet_plan_nodes stack = {0};
    bool behind = false;
    *stet_vec_add(&stack) = id;
    p->nodes.at[id].seen = stamp;
    while (stack.len > 0 && !behind) {
        const node *n = &p->nodes.at[stack.at[--stack.len]];
        for (uint32_t r = 0; r < n->read_count && !behind; r++) {
            stet_vec_clear(&p->found);
            stet_plan_writers(p, n->reads[r].doc, path_at(p, n->reads[r].path), &p->found);
            for (size_t i = 0; i < p->found.len; i++) {
                node *w = &p->nodes.at[p->found.at[i]];
                if (w->seen == stamp)
                    continue;
                w->seen = stamp;
                if (w->flags & N_RUNNING) {
                    behind = true;
                    break;
                }
                *stet_vec_add(&stack) = p->found.at[i];
            }
        }
    }
    stet_vec_release(&stack);
    /* An effect is seen outside: it waits for all. */
    return behind || (p->nodes.at[id].flags & N_EFFECT);
}

stet_status stet_plan_next(stet_plan *p, int64_t now, stet_plan_step *out, stet_error *err) {
    *out = (stet_plan_step){STET_PLAN_IDLE, STET_PLAN_NONE, 0};
    while (p->timers.len > 0 && p->timers.at[0].at <= now) {
        uint32_t id = p->timers.at[0].node;
        timer_pop(p);
        if (p->nodes.at[id].flags & N_TIMED)
            heap_push(p, id);
    }
    uint32_t id;
    while (heap_pop(p, &id)) {
        node *n = &p->nodes.at[id];
        if (!(n->flags & N_PENDING) || (n->flags & (N_ASIDE | N_RUNNING | N_GONE)))
            continue;
        bool live;
        stet_status status = stet_plan_is_live(p, id, &live, err);
        n = &p->nodes.at[id]; /* the walk may have loaded others */
        if (status != STET_OK) {
            heap_push(p, id);
            return status;
        }
        if (!live) {
            n->flags |= N_PARKED;
            continue;
        }
        if (put_behind_writer(p, id))
            continue;
        if (behind_running(p, id)) {
            n->flags |= N_WAITING;
            *stet_vec_add(&p->waiting) = id;
            continue;
        }
        int64_t due = INT64_MIN;
        if (n->debounce_ms > 0 && n->dirty_at != INT64_MIN)
            due = n->dirty_at + n->debounce_ms;
        if (n->throttle_ms > 0 && n->started_at != INT64_MIN && n->started_at + n->throttle_ms > due)
            due = n->started_at + n->throttle_ms;
        if (due > now) {
            timer_push(p, due, id);
            continue;
        }
        if (n->runs >= STET_PLAN_MAX_RUNS) {
            n->flags |= N_ASIDE;
            continue;
        }
        n->runs++;
        n->started_at = now;
        n->flags |= N_RUNNING;
        n->flags &= ~(uint32_t)N_REDIRTY;
        p->running++;
        *out = (stet_plan_step){STET_PLAN_RUN, id, 0};
        return STET_OK;
    }
    while (p->timers.len > 0 && !(p->nodes.at[p->timers.at[0].node].flags & N_TIMED))
        timer_pop(p);
    if (p->timers.len > 0)
        *out = (stet_plan_step){STET_PLAN_WAIT, STET_PLAN_NONE, p->timers.at[0].at};
    else if (p->running > 0)
        out->kind = STET_PLAN_BUSY;
    return STET_OK;
}

void stet_plan_finish(stet_plan *p, uint32_t id, stet_plan_outcome outcome, int64_t now) {
    node *n = &p->nodes.at[id];
    assert(n->flags & N_RUNNING);
    p->running--;
    bool again = (n->flags & N_REDIRTY) || outcome == STET_PLAN_AGAIN;
    n->flags &= ~(uint32_t)(N_RUNNING | N_REDIRTY | N_FAILED);
    if (outcome == STET_PLAN_FAILED)
        n->flags |= N_FAILED;
    if (outcome != STET_PLAN_AGAIN)
        n->flags &= ~(uint32_t)N_PENDING;
    if (again) {
        n->flags |= (n->flags & N_PENDING) ? 0 : N_DIRTY;
        n->flags &= ~(uint32_t)N_FAILED;
        n->dirty_at = now;
        heap_push(p, id);
    }
    for (size_t i = 0; i < p->waiting.len; i++)
        if (p->nodes.at[p->waiting.at[i]].flags & N_WAITING)
            heap_push(p, p->waiting.at[i]);
    stet_vec_clear(&p->waiting);
}

void stet_plan_put_aside(stet_plan *p, uint32_t id) {
    node *n = &p->nodes.at[id];
    n->flags &= ~(uint32_t)(N_QUEUED | N_PARKED | N_TIMED | N_WAITING);
    n->flags |= N_ASIDE | N_DIRTY;
}

size_t stet_plan_queued(const stet_plan *p) {
    return p->heap.len;
}

void stet_plan_dropped(stet_plan *p, uint32_t id, int64_t now) {
    stet_plan_mark(p, id, STET_PLAN_DIRTY, now);
}

/* ---- Telling
 * ------------------------------------------------------------------------------------------------------------------ */

bool stet_plan_is_dirty(const stet_plan *p, uint32_t id) {
    return p->nodes.at[id].flags & N_DIRTY;
}

bool stet_plan_is_unknown(const stet_plan *p, uint32_t id) {
    return p->nodes.at[id].flags & N_UNKNOWN;
}

bool stet_plan_is_failed(const stet_plan *p, uint32_t id) {
    return p->nodes.at[id].flags & N_FAILED;
}

bool stet_plan_is_aside(const stet_plan *p, uint32_t id) {
    return p->nodes.at[id].flags & N_ASIDE;
}

uint32_t stet_plan_runs(const stet_plan *p, uint32_t id) {
    return p->nodes.at[id].runs;
}

bool stet_plan_cycle(stet_plan *p, uint32_t id, stet_buf *out) {
    uint32_t stamp = ++p->stamp;
    stet_plan_nodes queue = {0};
    uint32_t last = STET_PLAN_NONE;
    *stet_vec_add(&queue) = id;
    p->nodes.at[id].from = STET_PLAN_NONE;
    /* Breadth first: the shortest way round is the one to show. */
    for (size_t head = 0; head < queue.len && last == STET_PLAN_NONE; head++) {
        uint32_t at = queue.at[head];
        for (uint32_t w = 0; w < p->nodes.at[at].write_count && last == STET_PLAN_NONE; w++) {
            edge e = p->nodes.at[at].writes[w];
            stet_vec_clear(&p->found);
            stet_plan_readers(p, e.doc, path_at(p, e.path), STET_KEYSET, &p->found);
            for (size_t i = 0; i < p->found.len; i++) {
                uint32_t r = p->found.at[i];
                if (r == id && at != id) {
                    last = at;
                    break;
                }
                if (r == id || p->nodes.at[r].seen == stamp)
                    continue;
                p->nodes.at[r].seen = stamp;
                p->nodes.at[r].from = at;
                *stet_vec_add(&queue) = r;
            }
        }
    }
    stet_vec_clear(&queue);
    for (uint32_t at = last; at != STET_PLAN_NONE; at = p->nodes.at[at].from)
        *stet_vec_add(&queue) = at;
    for (size_t i = queue.len; i > 0; i--)
        stet_buf_printf(out, "%s -> ", p->nodes.at[queue.at[i - 1]].name);
    if (last != STET_PLAN_NONE)
        stet_buf_str(out, p->nodes.at[id].name);
    stet_vec_release(&queue);
    return last != STET_PLAN_NONE;
}
