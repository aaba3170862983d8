/* plan_live.c - edges and demands: what reads what, and which actions lead to something wanted. */

#include "scheduler/plan_internal.h"

static void collect(void *ctx, uint32_t id) {
    stet_plan_nodes *out = ctx;
    *stet_vec_add(out) = id;
}

static bool known_live(const stet_plan *p, const node *n) {
    return (n->flags & (N_CERTAIN | N_DEMANDED | N_IDLE)) || n->live_at == p->live_epoch;
}

static bool cell_demanded(const stet_plan *p, uint32_t d, stet_pathref path) {
    for (uint32_t i = p->docs.at[d].demands; i; i = p->demands.at[i - 1].next)
        if (stet_touches(path, STET_KEYSET, plan_path_at(p, p->demands.at[i - 1].path), p->demands.at[i - 1].kind))
            return true;
    return false;
}

typedef struct descent {
    stet_plan *p;
    uint32_t stamp;
    uint32_t last; /* where the demand was found */
    bool live;
    stet_plan_nodes stack;
} descent;

/* Who reads what `id` writes at a place. */
static stet_status descend(descent *d, uint32_t id, uint32_t in, stet_pathref path, stet_error *err) {
    stet_plan *p = d->p;
    if (cell_demanded(p, in, path)) {
        d->live = true;
        d->last = id;
        return STET_OK;
    }
    stet_status status = plan_load_readers(p, in, path, STET_KEYSET, err);
    if (status != STET_OK)
        return status;
    stet_vec_clear(&p->found);
    stet_plan_readers(p, in, path, STET_KEYSET, &p->found);
    for (size_t i = 0; i < p->found.len; i++) {
        uint32_t r = p->found.at[i];
        node *n = &p->nodes.at[r];
        if (n->seen == d->stamp || n->none_at == p->none_epoch)
            continue;
        n->seen = d->stamp;
        n->from = id;
        if (known_live(p, n)) {
            d->live = true;
            d->last = r;
            break;
        }
        *stet_vec_add(&d->stack) = r;
    }
    return STET_OK;
}

uint32_t plan_leader(stet_plan *p, uint32_t id) {
    uint32_t into = p->nodes.at[id].into;
    while (into != STET_PLAN_NONE && (p->nodes.at[into].flags & N_GONE) && p->nodes.at[into].heir != STET_PLAN_NONE)
        into = p->nodes.at[into].heir;
    p->nodes.at[id].into = into;
    return into;
}

/* A place in the output of a coordinator that only who reads all of it reads: two keys below. While that was empty
 * nobody could read further, and who looked at it may do so now: one key below, which who looked at it reads. */
static void place_below(const stet_plan *p, uint32_t coordinator, edge write, stet_path *out) {
    stet_path_set(out, plan_path_at(p, write.path));
    stet_path_push(out, "0");
    if (!(p->nodes.at[coordinator].flags & N_FILLED))
        stet_path_push(out, "0");
}

/* Who reads what it writes through the output of its coordinator, or through the output that leads to that one, if the
 * coordinator is a child itself. */
static stet_status descend_into(descent *d, uint32_t id, stet_error *err) {
    stet_plan *p = d->p;
    stet_path path = STET_PATH_INIT;
    stet_status status = STET_OK;
    for (uint32_t c = plan_leader(p, id); c != STET_PLAN_NONE && !d->live && status == STET_OK; c = plan_leader(p, c))
        for (uint32_t w = 0; w < p->nodes.at[c].write_count && !d->live && status == STET_OK; w++) {
            edge e = p->nodes.at[c].writes[w];
            place_below(p, c, e, &path);
            status = descend(d, id, e.doc, stet_path_ref(&path), err);
        }
    stet_path_release(&path);
    return status;
}

/* Not live, as far as is known. Who comes to want the output of its coordinator has to find it again (revive): no
 * writer of that output leads to it. */
static void found_unwanted(stet_plan *p, uint32_t id) {
    node *n = &p->nodes.at[id];
    n->none_at = p->none_epoch;
    if (n->into == STET_PLAN_NONE)
        return;
    if (p->unwanted_epoch != p->none_epoch)
        stet_vec_clear(&p->unwanted);
    p->unwanted_epoch = p->none_epoch;
    for (uint32_t c = plan_leader(p, id); c != STET_PLAN_NONE; c = plan_leader(p, c))
        p->nodes.at[c].unwanted_at = p->none_epoch;
    *stet_vec_add(&p->unwanted) = id;
}

/* Walks down from an action until the first demand. On the way it marks: with a demand at the end, the way there is
 * live; without, everything that was reached is not. */
static stet_status walk_down(stet_plan *p, uint32_t start, bool *live, stet_error *err) {
again:;
    descent d = {.p = p, .stamp = ++p->stamp, .last = STET_PLAN_NONE};
    uint32_t epoch = p->none_epoch;
    p->walking = d.stamp;
    p->missed = false;
    stet_vec_clear(&p->walk);
    size_t reached = 0; /* walk holds all that was reached; the next to look at is taken from its end first */
    *stet_vec_add(&d.stack) = start;
    p->nodes.at[start].seen = d.stamp;
    p->nodes.at[start].from = STET_PLAN_NONE;
    stet_status status = STET_OK;
    while (d.stack.len > 0 && !d.live && status == STET_OK) {
        uint32_t id = d.stack.at[--d.stack.len];
        *stet_vec_add(&p->walk) = id;
        reached++;
        if (p->nodes.at[id].into != STET_PLAN_NONE)
            status = descend_into(&d, id, err);
        /* `at` is kept in numbers: loading readers may move the nodes. */
        for (uint32_t w = 0;
             status == STET_OK && w < p->nodes.at[id].write_count + p->nodes.at[id].envelope_count && !d.live; w++) {
            const node *at = &p->nodes.at[id];
            edge e = w < at->write_count ? at->writes[w] : at->envelopes[w - at->write_count];
            status = descend(&d, id, e.doc, plan_path_at(p, e.path), err);
        }
    }
    stet_vec_release(&d.stack);
    p->walking = 0;
    if (status != STET_OK)
        return status;
    /* Whoever is found not to be live has no reader that is not found so as well: revive() goes up by that. An action
     * that was loaded on the way may read what was passed before it came, or lead to one that was passed over as not
     * live; then this is not known yet. */
    if (!d.live && (p->missed || p->none_epoch != epoch))
        goto again;
    *live = d.live;
    if (d.live) {
        for (uint32_t id = d.last; id != STET_PLAN_NONE; id = p->nodes.at[id].from)
            p->nodes.at[id].live_at = p->live_epoch;
    } else {
        for (size_t i = 0; i < reached; i++)
            found_unwanted(p, p->walk.at[i]);
    }
    return STET_OK;
}

static stet_status load_at(stet_plan *p, uint32_t in, stet_pathref path, stet_plan_nodes *stack, stet_error *err) {
    stet_status status = plan_load_readers(p, in, path, STET_KEYSET, err);
    stet_vec_clear(&p->found);
    stet_plan_readers(p, in, path, STET_KEYSET, &p->found);
    for (size_t i = 0; i < p->found.len && status == STET_OK; i++) {
        node *n = &p->nodes.at[p->found.at[i]];
        if (n->down_at == p->down_epoch)
            continue;
        n->down_at = p->down_epoch;
        *stet_vec_add(stack) = p->found.at[i];
    }
    return status;
}

/* From those on the stack. Without `met` everybody is loaded who may come to read what they make, those included that
 * read something in an envelope, or the output of a coordinator which leads there; with it only those are met that have
 * read what is known to be made. */
static stet_status go_down(stet_plan *p, stet_plan_nodes *stack, stet_plan_nodes *met, stet_error *err) {
    stet_path path = STET_PATH_INIT;
    stet_status status = STET_OK;
    while (stack->len > 0 && status == STET_OK) {
        uint32_t id = stack->at[--stack->len];
        if (met)
            *stet_vec_add(met) = id;
        /* Edges by number: loading readers may move the nodes. */
        for (uint32_t w = 0;
             status == STET_OK && w < p->nodes.at[id].write_count + (met ? 0 : p->nodes.at[id].envelope_count); w++) {
            const node *at = &p->nodes.at[id];
            edge e = w < at->write_count ? at->writes[w] : at->envelopes[w - at->write_count];
            status = load_at(p, e.doc, plan_path_at(p, e.path), stack, err);
        }
        for (uint32_t c = met ? STET_PLAN_NONE : plan_leader(p, id); c != STET_PLAN_NONE && status == STET_OK;
             c = plan_leader(p, c))
            for (uint32_t w = 0; status == STET_OK && w < p->nodes.at[c].write_count; w++) {
                edge e = p->nodes.at[c].writes[w];
                place_below(p, c, e, &path);
                status = load_at(p, e.doc, stet_path_ref(&path), stack, err);
            }
    }
    if (status != STET_OK)
        p->down_epoch++; /* what is marked now was not all looked at */
    stet_path_release(&path);
    return status;
}

stet_status plan_load_downstream(stet_plan *p, uint32_t start, stet_error *err) {
    if (p->nodes.at[start].down_at == p->down_epoch)
        return STET_OK;
    stet_plan_nodes stack = {0};
    p->nodes.at[start].down_at = p->down_epoch;
    *stet_vec_add(&stack) = start;
    stet_status status = go_down(p, &stack, NULL, err);
    stet_vec_release(&stack);
    return status;
}

stet_status stet_plan_downstream(stet_plan *p, const uint32_t *roots, size_t count, stet_plan_nodes *out,
                                 stet_error *err) {
    stet_plan_nodes stack = {0};
    p->down_epoch++;
    for (size_t i = 0; i < count; i++) {
        if (p->nodes.at[roots[i]].down_at == p->down_epoch)
            continue;
        p->nodes.at[roots[i]].down_at = p->down_epoch;
        *stet_vec_add(&stack) = roots[i];
    }
    stet_status status = go_down(p, &stack, out, err);
    p->down_epoch++; /* for plan_load_downstream these were not looked at */
    stet_vec_release(&stack);
    return status;
}

void stet_plan_set_into(stet_plan *p, uint32_t id, uint32_t coordinator) {
    uint32_t before = p->nodes.at[id].into;
    if (before == coordinator)
        return;
    size_t counted = plan_uncount_below(p, id);
    if (before != STET_PLAN_NONE)
        p->live_epoch++; /* some way to a demand may be gone */
    p->nodes.at[id].into = coordinator;
    if (coordinator != STET_PLAN_NONE)
        p->nodes.at[coordinator].flags |= N_LEADS;
    plan_count_below(p, id, counted);
}

void stet_plan_set_filled(stet_plan *p, uint32_t coordinator, bool filled) {
    node *n = &p->nodes.at[coordinator];
    n->flags = filled ? n->flags | N_FILLED : n->flags & ~(uint32_t)N_FILLED;
}

stet_status stet_plan_is_live(stet_plan *p, uint32_t id, bool *live, stet_error *err) {
    node *n = &p->nodes.at[id];
    *live = known_live(p, n);
    if (*live || n->none_at == p->none_epoch)
        return STET_OK;
    return walk_down(p, id, live, err);
}

void stet_plan_makers(stet_plan *p, uint32_t d, stet_pathref path, stet_plan_nodes *out) {
    stet_plan_writers(p, d, path, out);
    if (p->docs.at[d].envelopes.len > 0)
        plan_index_touched(&p->docs.at[d].envelopes, &p->paths, path, STET_KEYSET, collect, out);
}

/* Those of the unwanted whose coordinator is not marked (any more) as having some. */
static void take_unwanted(stet_plan *p, stet_plan_nodes *out) {
    size_t kept = 0;
    for (size_t i = 0; i < p->unwanted.len; i++) {
        uint32_t id = p->unwanted.at[i];
        const node *n = &p->nodes.at[id];
        bool all = true; /* of those that lead to it: none was asked for */
        if (n->none_at != p->none_epoch || n->into == STET_PLAN_NONE)
            continue;
        for (uint32_t c = plan_leader(p, id); c != STET_PLAN_NONE && all; c = plan_leader(p, c))
            all = p->nodes.at[c].unwanted_at == p->none_epoch;
        if (all)
            p->unwanted.at[kept++] = id;
        else
            *stet_vec_add(out) = id;
    }
    p->unwanted.len = kept;
}

/* A live action reads this cell from now on: whatever leads there is live, as far as it was thought not to be. Children
 * of a coordinator that leads there may be: that is asked again. */
static void revive(stet_plan *p, uint32_t d, stet_pathref path) {
    stet_plan_nodes stack = {0};
    stet_plan_makers(p, d, path, &stack);
    for (bool sure = true; stack.len > 0; sure = false) {
        bool children = false;
        while (stack.len > 0) {
            uint32_t id = stack.at[--stack.len];
            node *n = &p->nodes.at[id];
            if (n->unwanted_at == p->none_epoch) {
                n->unwanted_at = 0;
                children = true;
            }
            if (n->none_at != p->none_epoch)
                continue;
            n->none_at = 0;
            if (sure)
                n->live_at = p->live_epoch;
            if (n->flags & N_PARKED)
                plan_queue_push(p, id);
            for (uint32_t r = 0; r < n->read_count; r++)
                stet_plan_makers(p, n->reads[r].doc, plan_path_at(p, n->reads[r].path), &stack);
        }
        if (children)
            take_unwanted(p, &stack);
    }
    stet_vec_release(&stack);
}

void stet_plan_demand(stet_plan *p, uint32_t d, stet_pathref path, stet_read_kind kind) {
    if (!p->docs.at[d].demands)
        *stet_vec_add(&p->demanded) = d;
    *stet_vec_add(&p->demands) = (demand){plan_path(&p->paths, path), p->docs.at[d].demands, kind};
    p->docs.at[d].demands = (uint32_t)p->demands.len;
    revive(p, d, path);
}

static void want(stet_plan *p, uint32_t id, uint32_t flag) {
    node *n = &p->nodes.at[id];
    n->flags |= flag;
    if (n->flags & N_PARKED)
        plan_queue_push(p, id);
    n->none_at = 0;
    for (uint32_t r = 0; r < n->read_count; r++)
        revive(p, n->reads[r].doc, plan_path_at(p, n->reads[r].path));
}

void stet_plan_demand_node(stet_plan *p, uint32_t id) {
    want(p, id, N_DEMANDED);
}

void stet_plan_set_certain(stet_plan *p, uint32_t id) {
    want(p, id, N_CERTAIN);
}

void stet_plan_demand_clear(stet_plan *p) {
    for (size_t i = 0; i < p->demanded.len; i++)
        p->docs.at[p->demanded.at[i]].demands = 0;
    stet_vec_clear(&p->demands);
    stet_vec_clear(&p->demanded);
    p->live_epoch++;
    p->none_epoch++;
    for (size_t i = 0; i < p->nodes.len; i++) {
        p->nodes.at[i].flags &= ~(uint32_t)(N_DEMANDED | N_IDLE);
        if (p->nodes.at[i].flags & N_PARKED)
            plan_queue_push(p, (uint32_t)i);
    }
}

void stet_plan_doubt_unwanted(stet_plan *p) {
    p->none_epoch++;
    for (size_t i = 0; i < p->nodes.len; i++)
        if (p->nodes.at[i].flags & N_PARKED)
            plan_queue_push(p, (uint32_t)i);
}

static bool has_edge(const edge *at, uint32_t len, edge e) {
    for (uint32_t i = 0; i < len; i++)
        if (at[i].doc == e.doc && at[i].path == e.path && at[i].kind == e.kind)
            return true;
    return false;
}

/* Does the walk that is under way lead here, from a place that it has left behind? */
static void note_missed(stet_plan *p, uint32_t id, edge read) {
    if (!p->walking || p->missed || p->nodes.at[id].seen == p->walking)
        return;
    stet_vec_clear(&p->scratch);
    stet_plan_makers(p, read.doc, plan_path_at(p, read.path), &p->scratch);
    for (size_t i = 0; i < p->scratch.len && !p->missed; i++)
        p->missed = p->nodes.at[p->scratch.at[i]].seen == p->walking;
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

bool stet_plan_set_reads(stet_plan *p, uint32_t id, const stet_plan_read *at, size_t len) {
    edge small[16] = {{0}}, *tmp = len <= 16 ? small : stet_alloc(len * sizeof *tmp);
    for (size_t i = 0; i < len; i++)
        tmp[i] = (edge){at[i].doc, plan_path(&p->paths, at[i].path), at[i].kind};
    edge_list l = make_edges(tmp, len);
    if (tmp != small)
        free(tmp);
    node *n = &p->nodes.at[id];
    if (same_edges(n->reads, n->read_count, l.at, l.len)) {
        free(l.at);
        return false;
    }
    p->shape++;
    edge *old = n->reads;
    uint32_t old_count = n->read_count;
    bool lost = false, gained = false;
    for (uint32_t i = 0; i < old_count; i++) {
        if (l.len > 64 || !has_edge(l.at, l.len, old[i]))
            lost = true;
        plan_index_remove(&p->docs.at[old[i].doc].readers, &p->paths, old[i].path, id, old[i].kind);
        p->docs.at[old[i].doc].edges--;
    }
    for (uint32_t i = 0; i < l.len; i++) {
        plan_index_add(&p->docs.at[l.at[i].doc].readers, l.at[i].path, id, l.at[i].kind);
        p->docs.at[l.at[i].doc].edges++;
    }
    n->reads = l.at;
    n->read_count = l.len;
    if (lost)
        p->live_epoch++; /* some way to a demand may be gone */
    /* Something that was found to lead nowhere may lead somewhere now, if this action does. */
    bool live = n->flags & (N_CERTAIN | N_DEMANDED | N_IDLE | N_RUNNING) || n->live_at == p->live_epoch;
    for (uint32_t i = 0; i < l.len; i++) {
        if (old_count <= 64 && has_edge(old, old_count, l.at[i]))
            continue;
        gained = true;
        note_missed(p, id, l.at[i]);
        if (live) {
            revive(p, l.at[i].doc, plan_path_at(p, l.at[i].path));
            continue;
        }
        stet_vec_clear(&p->scratch);
        stet_plan_makers(p, l.at[i].doc, plan_path_at(p, l.at[i].path), &p->scratch);
        for (size_t k = 0; k < p->scratch.len; k++) {
            const node *writer = &p->nodes.at[p->scratch.at[k]];
            if ((writer->none_at == p->none_epoch || writer->unwanted_at == p->none_epoch) &&
                n->none_at != p->none_epoch) {
                stet_plan_doubt_unwanted(p); /* not known either way */
                break;
            }
        }
    }
    free(old);
    return gained;
}

static void drop_writes(stet_plan *p, uint32_t id) {
    const node *n = &p->nodes.at[id];
    for (uint32_t i = 0; i < n->write_count; i++) {
        doc *d = &p->docs.at[n->writes[i].doc];
        plan_index_remove(&d->writers, &p->paths, n->writes[i].path, id, STET_RECURSIVE);
        d->edges--;
    }
}

static void drop_envelopes(stet_plan *p, uint32_t id) {
    const node *n = &p->nodes.at[id];
    for (uint32_t i = 0; i < n->envelope_count; i++) {
        doc *d = &p->docs.at[n->envelopes[i].doc];
        plan_index_remove(&d->envelopes, &p->paths, n->envelopes[i].path, id, STET_RECURSIVE);
        d->edges--;
    }
}

void plan_edges_drop(stet_plan *p, uint32_t id) {
    const node *n = &p->nodes.at[id];
    for (uint32_t i = 0; i < n->read_count; i++) {
        doc *d = &p->docs.at[n->reads[i].doc];
        plan_index_remove(&d->readers, &p->paths, n->reads[i].path, id, n->reads[i].kind);
        d->edges--;
    }
    drop_writes(p, id);
    drop_envelopes(p, id);
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
    p->shape++;
    drop_writes(p, id);
    for (uint32_t i = 0; i < l.len; i++) {
        plan_index_add(&p->docs.at[l.at[i].doc].writers, l.at[i].path, id, STET_RECURSIVE);
        p->docs.at[l.at[i].doc].edges++;
    }
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
            plan_queue_push(p, id);
    }
}

void stet_plan_set_envelopes(stet_plan *p, uint32_t id, const stet_plan_write *at, size_t len) {
    node *n = &p->nodes.at[id];
    bool same = n->envelope_count == len;
    for (size_t i = 0; i < len && same; i++)
        same = n->envelopes[i].doc == at[i].doc && n->envelopes[i].path == plan_path(&p->paths, at[i].path);
    if (same)
        return;
    drop_envelopes(p, id);
    if (n->envelope_count > 0)
        stet_plan_doubt_unwanted(p); /* so may what leads to it, if it was found to lead nowhere */
    free(n->envelopes);
    n->envelopes = len > 0 ? stet_alloc(len * sizeof *n->envelopes) : NULL;
    n->envelope_count = (uint32_t)len;
    for (size_t i = 0; i < len; i++) {
        n->envelopes[i] = (edge){at[i].doc, plan_path(&p->paths, at[i].path), STET_RECURSIVE};
        plan_index_add(&p->docs.at[at[i].doc].envelopes, n->envelopes[i].path, id, STET_RECURSIVE);
        p->docs.at[at[i].doc].edges++;
    }
    p->live_epoch++;
    n->none_at = 0;
    if (n->flags & N_PARKED)
        plan_queue_push(p, id);
}

/* Rare: only when all else is done. A materializer that stands is a root, too: something upstream of it may not. */
size_t stet_plan_idle(stet_plan *p, bool (*wanted)(void *ctx, uint32_t node), void *ctx) {
    size_t before = p->heap.len;
    for (size_t i = 0; i < p->nodes.len; i++) {
        node *n = &p->nodes.at[i];
        if (!(n->flags & N_MATERIALIZER) || (n->flags & (N_GONE | N_IDLE | N_ASIDE)) ||
            (wanted && !wanted(ctx, (uint32_t)i)))
            continue;
        n->flags |= N_IDLE;
        n->none_at = 0;
        if (n->flags & N_PARKED)
            plan_queue_push(p, (uint32_t)i);
        for (uint32_t r = 0; r < n->read_count; r++)
            revive(p, n->reads[r].doc, plan_path_at(p, n->reads[r].path));
    }
    return p->heap.len - before;
}

size_t stet_plan_reads(const stet_plan *p, uint32_t id, stet_plan_read *out, size_t max) {
    const node *n = &p->nodes.at[id];
    for (size_t i = 0; i < n->read_count && i < max; i++)
        out[i] = (stet_plan_read){n->reads[i].doc, plan_path_at(p, n->reads[i].path), (stet_read_kind)n->reads[i].kind};
    return n->read_count;
}

size_t stet_plan_writes(const stet_plan *p, uint32_t id, stet_plan_write *out, size_t max) {
    const node *n = &p->nodes.at[id];
    for (size_t i = 0; i < n->write_count && i < max; i++)
        out[i] = (stet_plan_write){n->writes[i].doc, plan_path_at(p, n->writes[i].path)};
    return n->write_count;
}
