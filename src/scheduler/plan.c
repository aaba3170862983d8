/* plan.c - the planner: which action runs next. Rules R1 to R9 are in plan.h. */

#include "scheduler/plan_internal.h"

#define MAX_BUMPS 8 /* times an action is put behind a writer in one settling; more means that they form a cycle */

stet_plan *stet_plan_new(const stet_plan_source *source) {
    stet_plan *p = stet_alloc_zero(sizeof *p);
    if (source)
        p->source = *source;
    p->live_epoch = p->none_epoch = p->asked_epoch = p->down_epoch = 1;
    p->shape = 1;
    return p;
}

void stet_plan_free(stet_plan *p) {
    if (!p)
        return;
    for (size_t i = 0; i < p->nodes.len; i++) {
        stet_free(p->nodes.at[i].name);
        free(p->nodes.at[i].reads);
        free(p->nodes.at[i].writes);
        free(p->nodes.at[i].envelopes);
    }
    for (size_t i = 0; i < p->docs.len; i++) {
        stet_free(p->docs.at[i].name);
        plan_index_release(&p->docs.at[i].readers);
        plan_index_release(&p->docs.at[i].writers);
        plan_index_release(&p->docs.at[i].envelopes);
    }
    plan_paths_release(&p->paths);
    stet_map_release(&p->doc_names);
    stet_map_release(&p->node_names);
    stet_map_release(&p->left);
    stet_map_release(&p->asked);
    stet_vec_release(&p->free_nodes);
    stet_vec_release(&p->free_docs);
    stet_vec_release(&p->docs);
    stet_vec_release(&p->nodes);
    stet_vec_release(&p->heap);
    stet_vec_release(&p->timers);
    stet_vec_release(&p->demands);
    stet_vec_release(&p->demanded);
    stet_vec_release(&p->waiting);
    stet_vec_release(&p->held);
    stet_vec_release(&p->scratch);
    stet_vec_release(&p->walk);
    stet_vec_release(&p->found);
    stet_vec_release(&p->unwanted);
    free(p);
}

static char *copy_name(const char *name, size_t len) {
    char *copy = stet_alloc(len + 1); /* a document's may have NUL bytes in it */
    memcpy(copy, name, len);
    copy[len] = 0;
    return copy;
}

uint32_t stet_plan_doc(stet_plan *p, const char *name, size_t len) {
    const stet_slot *slot = stet_map_get(&p->doc_names, name, len);
    if (slot)
        return (uint32_t)slot->n;
    doc d = {.name = copy_name(name, len), .len = len};
    uint32_t id = (uint32_t)p->docs.len;
    if (p->free_docs.len > 0) {
        id = p->free_docs.at[--p->free_docs.len];
        d.turn = p->docs.at[id].turn;
        p->docs.at[id] = d;
    } else {
        *stet_vec_add(&p->docs) = d;
    }
    stet_map_put(&p->doc_names, name, len, (stet_slot){.n = id});
    return id;
}

const char *stet_plan_doc_name(const stet_plan *p, uint32_t id, size_t *len) {
    if (len)
        *len = p->docs.at[id].len;
    return p->docs.at[id].name;
}

void stet_plan_doc_covered(stet_plan *p, uint32_t id) {
    p->docs.at[id].covered_at = p->asked_epoch;
}

uint32_t stet_plan_add(stet_plan *p, const char *name, size_t len, const stet_plan_opts *o) {
    assert(!stet_map_get(&p->node_names, name, len));
    p->shape++;
    uint32_t id = (uint32_t)p->nodes.len;
    if (p->free_nodes.len > 0)
        id = p->free_nodes.at[--p->free_nodes.len];
    else
        (void)stet_vec_add(&p->nodes);
    p->nodes.at[id] = (node){
        .name = copy_name(name, len),
        .flags = (o->effect ? N_EFFECT : 0) | (o->certain ? N_CERTAIN : 0) | (o->effect || o->late ? N_LATE : 0) |
                 (o->materializer ? N_MATERIALIZER : 0) | (o->makes_files ? N_MAKES : 0),
        .rank = o->rank,
        .circle = o->circle,
        .turn = o->turn,
        .debounce_ms = o->debounce_ms,
        .throttle_ms = o->throttle_ms,
        .started_at = INT64_MIN,
        .dirty_at = INT64_MIN,
        .into = STET_PLAN_NONE,
        .heir = STET_PLAN_NONE,
        .data = o->data,
    };
    stet_map_put(&p->node_names, name, len, (stet_slot){.n = id});
    const stet_slot *before = stet_map_get(&p->left, name, len);
    if (before) {
        p->nodes.at[before->n].heir = id;
        p->nodes.at[id].unwanted_at = p->nodes.at[before->n].unwanted_at;
        p->nodes.at[id].flags |= N_LEADS;
        stet_map_remove(&p->left, name, len);
    }
    return id;
}

uint32_t stet_plan_find(const stet_plan *p, const char *name, size_t len) {
    const stet_slot *slot = stet_map_get(&p->node_names, name, len);
    return slot ? (uint32_t)slot->n : STET_PLAN_NONE;
}

const char *stet_plan_name(const stet_plan *p, uint32_t id) {
    return p->nodes.at[id].name ? p->nodes.at[id].name : "";
}

void *stet_plan_data(const stet_plan *p, uint32_t id) {
    return p->nodes.at[id].data;
}

void *stet_plan_data_there(const stet_plan *p, uint32_t id) {
    return p->nodes.at[id].flags & N_GONE ? NULL : p->nodes.at[id].data;
}

size_t stet_plan_count(const stet_plan *p) {
    return p->nodes.len;
}

/* An action runs, or waits for what runs: so do all into whose outputs it leads. */
static void count_below(stet_plan *p, uint32_t id, bool more) {
    for (uint32_t c = plan_leader(p, id); c != STET_PLAN_NONE; c = plan_leader(p, c)) {
        node *n = &p->nodes.at[c];
        n->below = more ? n->below + 1 : n->below > 0 ? n->below - 1 : 0; /* 0: loaded anew meanwhile */
    }
}

size_t plan_uncount_below(stet_plan *p, uint32_t id) {
    size_t times = p->nodes.at[id].flags & N_RUNNING ? 1 : 0;
    for (size_t i = 0; i < p->waiting.len; i++)
        times += p->waiting.at[i] == id;
    for (size_t i = 0; i < times; i++)
        count_below(p, id, false);
    return times;
}

void plan_count_below(stet_plan *p, uint32_t id, size_t times) {
    for (size_t i = 0; i < times; i++)
        count_below(p, id, true);
}

void stet_plan_replace(stet_plan *p, uint32_t id, const stet_plan_opts *o) {
    node *n = &p->nodes.at[id];
    stet_plan_set_rank(p, id, o->rank);
    n->circle = o->circle;
    n->turn = o->turn;
    n->debounce_ms = o->debounce_ms;
    n->throttle_ms = o->throttle_ms;
    n->flags = o->certain ? n->flags | N_CERTAIN : n->flags & ~(uint32_t)N_CERTAIN;
    n->flags = o->makes_files ? n->flags | N_MAKES : n->flags & ~(uint32_t)N_MAKES;
    n->flags = o->materializer ? n->flags | N_MATERIALIZER : n->flags & ~(uint32_t)N_MATERIALIZER;
    p->live_epoch++;
}

void stet_plan_remove(stet_plan *p, uint32_t id) {
    stet_plan_set_reads(p, id, NULL, 0);
    stet_plan_set_writes(p, id, NULL, 0);
    stet_plan_set_envelopes(p, id, NULL, 0);
    node *n = &p->nodes.at[id];
    if (n->flags & N_RUNNING) {
        p->running--;
        count_below(p, id, false);
    }
    if (n->flags & N_LEADS)
        stet_map_put(&p->left, n->name, strlen(n->name), (stet_slot){.n = id});
    n->flags = N_GONE;
    stet_map_remove(&p->node_names, n->name, strlen(n->name));
    stet_plan_forget_asked(p); /* it may come back */
}

/* Does one that blocks lead to this action, as far as loaded actions tell? Those that stand between are loaded
 * (plan_load_downstream). */
static bool upstream_blocks(stet_plan *p, uint32_t id, uint32_t stamp, bool (*blocks)(const node *n, uint32_t stamp)) {
    /* A child is there because of the list that its coordinator read: that leads to it, too. Its brothers, which the
     * coordinator waits for, may run beside it. */
    for (uint32_t c = plan_leader(p, id); c != STET_PLAN_NONE; c = plan_leader(p, c))
        p->nodes.at[c].own = stamp;
    stet_plan_nodes stack = {0};
    bool behind = false;
    *stet_vec_add(&stack) = id;
    p->nodes.at[id].seen = stamp;
    while (stack.len > 0 && !behind) {
        uint32_t at = stack.at[--stack.len];
        const node *n = &p->nodes.at[at];
        for (uint32_t c = plan_leader(p, at); c != STET_PLAN_NONE; c = plan_leader(p, c))
            if (p->nodes.at[c].seen != stamp) {
                p->nodes.at[c].seen = stamp;
                *stet_vec_add(&stack) = c;
            }
        for (uint32_t r = 0; r < n->read_count && !behind; r++) {
            stet_vec_clear(&p->found);
            stet_plan_makers(p, n->reads[r].doc, plan_path_at(p, n->reads[r].path), &p->found);
            for (size_t i = 0; i < p->found.len; i++) {
                node *w = &p->nodes.at[p->found.at[i]];
                if (p->found.at[i] != id && blocks(w, stamp)) {
                    behind = true;
                    break;
                }
                if (w->seen == stamp)
                    continue;
                w->seen = stamp;
                *stet_vec_add(&stack) = p->found.at[i];
            }
        }
    }
    stet_vec_release(&stack);
    return behind;
}

/* It runs, or waits for what runs, or one that leads into it does. */
static bool runs(const node *n, uint32_t stamp) {
    return (n->flags & (N_RUNNING | N_WAITING)) || (n->below > 0 && n->own != stamp);
}

static bool upstream_runs(stet_plan *p, uint32_t id) {
    return p->running > 0 && upstream_blocks(p, id, ++p->stamp, runs);
}

static bool is_timed(const node *n, uint32_t stamp) {
    return (n->flags & N_TIMED) || (n->timed == stamp && n->own != stamp);
}

/* Does its debounce or throttle keep one from running that leads to this late action? By rank it would have come
 * first. */
static bool upstream_timed(stet_plan *p, uint32_t id) {
    uint32_t stamp = ++p->stamp;
    bool any = false;
    for (size_t i = 0; i < p->timers.len; i++) {
        if (!(p->nodes.at[p->timers.at[i].node].flags & N_TIMED))
            continue;
        any = true;
        for (uint32_t c = plan_leader(p, p->timers.at[i].node); c != STET_PLAN_NONE; c = plan_leader(p, c))
            p->nodes.at[c].timed = stamp;
    }
    return any && upstream_blocks(p, id, stamp, is_timed);
}

/* An effect is seen outside: it waits for all. */
static bool behind_running(stet_plan *p, uint32_t id) {
    return upstream_runs(p, id) || (p->running > 0 && (p->nodes.at[id].flags & N_EFFECT));
}

/* What is downstream of those upstream of this action is no longer all loaded: if one of them runs again, it is loaded
 * then. */
static void forget_downstream(stet_plan *p, uint32_t id) {
    stet_plan_nodes stack = {0};
    *stet_vec_add(&stack) = id;
    while (stack.len > 0) {
        const node *n = &p->nodes.at[stack.at[--stack.len]];
        for (uint32_t r = 0; r < n->read_count; r++) {
            stet_vec_clear(&p->found);
            stet_plan_makers(p, n->reads[r].doc, plan_path_at(p, n->reads[r].path), &p->found);
            for (size_t i = 0; i < p->found.len; i++) {
                node *w = &p->nodes.at[p->found.at[i]];
                if (w->flags & N_LEADS) /* and so are all that lead into it */
                    p->down_epoch++;
                if (w->down_at != p->down_epoch)
                    continue;
                w->down_at = 0;
                *stet_vec_add(&stack) = p->found.at[i];
            }
        }
    }
    stet_vec_release(&stack);
}

bool stet_plan_unload(stet_plan *p, uint32_t id) {
    node *n = &p->nodes.at[id];
    if (n->flags & ~(uint32_t)(N_CERTAIN | N_EFFECT | N_LATE | N_FILLED | N_MAKES)) /* and none that leads to others */
        return false;
    if (upstream_runs(p, id))
        return false; /* it may stand between that and one that has to wait for it */
    n->down_at = 0;
    p->shape++;
    forget_downstream(p, id);
    stet_map_remove(&p->node_names, n->name, strlen(n->name));
    edge *edges[3] = {n->reads, n->writes, n->envelopes};
    uint32_t counts[3] = {n->read_count, n->write_count, n->envelope_count};
    plan_edges_drop(p, id);
    for (int side = 0; side < 3; side++) {
        for (uint32_t i = 0; i < counts[side]; i++) {
            doc *d = &p->docs.at[edges[side][i].doc];
            if (side == 0) { /* a change there has to find the action on disk again */
                d->turn++;
                d->covered_at = 0;
            }
            if (d->edges > 0 || d->demands || !d->name)
                continue;
            stet_map_remove(&p->doc_names, d->name, d->len);
            stet_free(d->name);
            plan_index_release(&d->readers);
            plan_index_release(&d->writers);
            plan_index_release(&d->envelopes);
            d->name = NULL;
            d->turn++;
            *stet_vec_add(&p->free_docs) = edges[side][i].doc;
        }
        free(edges[side]);
    }
    n = &p->nodes.at[id];
    stet_free(n->name);
    *n = (node){.flags = N_GONE, .into = STET_PLAN_NONE, .heir = STET_PLAN_NONE};
    *stet_vec_add(&p->free_nodes) = id;
    return true;
}

bool stet_plan_any_parked(const stet_plan *p) {
    for (size_t i = 0; i < p->nodes.len; i++)
        if (p->nodes.at[i].flags & N_PARKED)
            return true;
    return false;
}

bool stet_plan_at_rest(const stet_plan *p) {
    for (size_t i = 0; i < p->nodes.len; i++)
        if ((p->nodes.at[i].flags & (N_PENDING | N_RUNNING)) && !(p->nodes.at[i].flags & (N_PARKED | N_GONE)))
            return false;
    return true;
}

size_t stet_plan_loaded(const stet_plan *p) {
    return p->nodes.len - p->free_nodes.len;
}

uint64_t stet_plan_shape(const stet_plan *p) {
    return p->shape;
}

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

#define MAX_ASKED 1000000 /* beyond, it begins anew: places of changes are many in documents of many leaves */

void stet_plan_forget_asked(stet_plan *p) {
    stet_map_clear(&p->asked);
    p->asked_epoch++;
    p->down_epoch++;
    p->shape++;
}

/* Makes sure that every reader of a change is loaded. What was asked once is in memory, and memory is kept up to date
 * by what the actions tell: without this, half of the time of a chain went into asking again. */
stet_status plan_load_readers(stet_plan *p, uint32_t d, stet_pathref path, stet_change_kind kind, stet_error *err) {
    if (!p->source.readers || p->docs.at[d].covered_at == p->asked_epoch)
        return STET_OK;
    uint32_t key[4] = {d, p->docs.at[d].turn, plan_path(&p->paths, path), kind};
    if (stet_map_get(&p->asked, key, sizeof key))
        return STET_OK;
    bool covered = false;
    stet_status status = p->source.readers(p->source.ctx, p, d, path, kind, &covered, err);
    if (status != STET_OK)
        return status;
    if (covered)
        p->docs.at[d].covered_at = p->asked_epoch;
    if (stet_map_len(&p->asked) >= MAX_ASKED)
        stet_map_clear(&p->asked);
    stet_map_put(&p->asked, key, sizeof key, (stet_slot){.n = 1});
    return STET_OK;
}

static void mark_changed(stet_plan *p, uint32_t id, int64_t now) {
    if (p->heard && !(p->nodes.at[id].flags & (N_PENDING | N_RUNNING)))
        *stet_vec_add(p->heard) = id;
    stet_plan_mark(p, id, STET_PLAN_DIRTY, now);
}

stet_status stet_plan_changed(stet_plan *p, uint32_t d, stet_pathref path, stet_change_kind kind, uint32_t by,
                              int64_t now, stet_error *err) {
    stet_status status = plan_load_readers(p, d, path, kind, err);
    if (status != STET_OK)
        return status;
    stet_vec_clear(&p->found);
    stet_plan_readers(p, d, path, kind, &p->found);
    for (size_t i = 0; i < p->found.len; i++) {
        uint32_t r = p->found.at[i];
        if (r == by)
            continue;
        if (by != STET_PLAN_NONE)
            plan_raise_rank(p, r, p->nodes.at[by].rank + 1);
        mark_changed(p, r, now);
    }
    stet_vec_clear(&p->found);
    stet_plan_writers(p, d, path, &p->found);
    for (size_t i = 0; i < p->found.len; i++)
        if (p->found.at[i] != by)
            mark_changed(p, p->found.at[i], now);
    return STET_OK;
}

void stet_plan_listen(stet_plan *p, stet_plan_nodes *heard) {
    p->heard = heard;
}

static void begin(stet_plan *p, uint32_t released) {
    p->down_epoch++;
    for (size_t i = 0; i < p->nodes.len; i++) {
        node *n = &p->nodes.at[i];
        n->runs = n->bumps = 0;
        n->flags &= ~(uint32_t)N_BLOCKS;
        if (n->flags & (N_IDLE | N_FILLED)) { /* its turn comes at the end, as that of all; who reads it has run */
            n->flags &= ~(uint32_t)(N_IDLE | N_FILLED);
            p->live_epoch++;
        }
        if (n->flags & released) {
            n->flags &= ~released;
            if ((n->flags & N_PENDING) && !(n->flags & (N_PLACED | N_ASIDE)))
                plan_queue_push(p, (uint32_t)i);
        }
    }
}

void stet_plan_begin(stet_plan *p) {
    begin(p, N_ASIDE | N_LEFT);
}

void stet_plan_resume(stet_plan *p) {
    begin(p, N_LEFT);
}

/* Puts an action behind a writer of what it reads, if that waits to run and ranks no lower (R2). */
static bool put_behind_writer(stet_plan *p, uint32_t id) {
    node *n = &p->nodes.at[id];
    uint32_t above = 0;
    if (n->bumps >= MAX_BUMPS)
        return false;
    for (uint32_t r = 0; r < n->read_count; r++) {
        stet_vec_clear(&p->found);
        stet_plan_makers(p, n->reads[r].doc, plan_path_at(p, n->reads[r].path), &p->found);
        for (size_t i = 0; i < p->found.len; i++) {
            const node *w = &p->nodes.at[p->found.at[i]];
            bool follows = n->circle && w->circle == n->circle && n->turn < w->turn;
            if (p->found.at[i] != id && !follows && (w->flags & N_QUEUED) && (w->flags & N_PENDING) &&
                w->rank >= n->rank && w->rank + 1 > above)
                above = w->rank + 1;
        }
    }
    if (above == 0)
        return false;
    n->bumps++;
    n->rank = above;
    plan_queue_push(p, id);
    return true;
}

typedef struct named {
    const char *name;
    uint32_t id;
} named;

static int by_name(const void *a, const void *b) {
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

/* Numbers follow the order in which actions were loaded; names are the same in every process. */
static void sort_by_name(const stet_plan *p, stet_plan_nodes *list) {
    named *all = stet_alloc((list->len + 1) * sizeof *all);
    for (size_t i = 0; i < list->len; i++)
        all[i] = (named){p->nodes.at[list->at[i]].name, list->at[i]};
    qsort(all, list->len, sizeof *all, by_name);
    for (size_t i = 0; i < list->len; i++)
        list->at[i] = all[i].id;
    stet_free(all);
}

/* The last node of a shortest way from this one back to it, over `from`; STET_PLAN_NONE: there is none. */
static uint32_t find_cycle(stet_plan *p, uint32_t id) {
    uint32_t stamp = ++p->stamp;
    stet_plan_nodes queue = {0};
    uint32_t last = STET_PLAN_NONE;
    *stet_vec_add(&queue) = id;
    p->nodes.at[id].from = STET_PLAN_NONE;
    /* Breadth first: the shortest way round is the one to show. */
    for (size_t head = 0; head < queue.len && last == STET_PLAN_NONE; head++) {
        uint32_t at = queue.at[head], writes = p->nodes.at[at].write_count + p->nodes.at[at].envelope_count;
        for (uint32_t w = 0; w < writes && last == STET_PLAN_NONE; w++) {
            const node *n = &p->nodes.at[at];
            edge e = w < n->write_count ? n->writes[w] : n->envelopes[w - n->write_count];
            stet_vec_clear(&p->found);
            stet_plan_readers(p, e.doc, plan_path_at(p, e.path), STET_KEYSET, &p->found);
            sort_by_name(p, &p->found);
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
    stet_vec_release(&queue);
    return last;
}

/* R5: a circle is put aside at the same member whichever began, the first by turn of those that run without an end. One
 * that got ahead of it runs on until that one has had its runs. */
static bool gives_way(const stet_plan *p, const node *n) {
    if (n->circle == 0 || n->runs >= 2 * STET_PLAN_MAX_RUNS)
        return false;
    for (size_t i = 0; i < p->nodes.len; i++) {
        const node *o = &p->nodes.at[i];
        if (o->circle == n->circle && o->turn < n->turn && o->runs + 1 >= STET_PLAN_MAX_RUNS && !(o->flags & N_ASIDE))
            return true;
    }
    return false;
}

/* R5 */
static bool runs_without_end(stet_plan *p, uint32_t id) {
    const node *n = &p->nodes.at[id];
    if (n->runs >= STET_PLAN_MAX_RUNS)
        return !gives_way(p, n);
    return (n->flags & N_MAKES) && n->runs >= STET_PLAN_MAX_MAKING && find_cycle(p, id) != STET_PLAN_NONE;
}

stet_status stet_plan_next(stet_plan *p, int64_t now, stet_plan_step *out, stet_error *err) {
    *out = (stet_plan_step){STET_PLAN_IDLE, STET_PLAN_NONE, 0};
    while (p->timers.len > 0 && p->timers.at[0].at <= now) {
        uint32_t id = p->timers.at[0].node;
        plan_timer_pop(p);
        if (p->nodes.at[id].flags & N_TIMED)
            plan_queue_push(p, id);
    }
    uint32_t id;
    while (plan_queue_pop(p, &id)) {
        node *n = &p->nodes.at[id];
        if (!(n->flags & N_PENDING) || (n->flags & (N_ASIDE | N_RUNNING | N_GONE)))
            continue;
        bool live;
        stet_status status = stet_plan_is_live(p, id, &live, err);
        n = &p->nodes.at[id]; /* the walk may have loaded others */
        if (status != STET_OK) {
            plan_queue_push(p, id);
            return status;
        }
        if (!live) {
            n->flags |= N_PARKED;
            continue;
        }
        if (p->not_all && (n->flags & N_LATE)) {
            n->flags |= N_HELD;
            *stet_vec_add(&p->held) = id;
            continue;
        }
        if (put_behind_writer(p, id))
            continue;
        if (behind_running(p, id)) {
            n->flags |= N_WAITING;
            *stet_vec_add(&p->waiting) = id;
            count_below(p, id, true);
            continue;
        }
        if ((n->flags & N_LATE) && upstream_timed(p, id)) {
            plan_timer_push(p, p->timers.at[0].at, id); /* then it is looked at again */
            continue;
        }
        int64_t due = INT64_MIN;
        if (n->debounce_ms > 0 && n->dirty_at != INT64_MIN)
            due = n->dirty_at + n->debounce_ms;
        if (n->throttle_ms > 0 && n->started_at != INT64_MIN && n->started_at + n->throttle_ms > due)
            due = n->started_at + n->throttle_ms;
        if (due > now) {
            status = plan_load_downstream(p, id, err); /* late ones there must find it */
            if (status != STET_OK) {
                plan_queue_push(p, id);
                return status;
            }
            plan_timer_push(p, due, id);
            continue;
        }
        if (runs_without_end(p, id)) {
            n->flags |= N_ASIDE;
            continue;
        }
        if ((n->flags & (N_LATE | N_EFFECT)) == N_LATE) { /* others may begin while it runs */
            status = plan_load_downstream(p, id, err);
            n = &p->nodes.at[id];
            if (status != STET_OK) {
                plan_queue_push(p, id);
                return status;
            }
        }
        n->runs++;
        n->started_at = now;
        n->flags |= N_RUNNING;
        n->flags &= ~(uint32_t)N_AGAIN;
        p->running++;
        count_below(p, id, true);
        *out = (stet_plan_step){STET_PLAN_RUN, id, 0};
        return STET_OK;
    }
    while (p->timers.len > 0 && !(p->nodes.at[p->timers.at[0].node].flags & N_TIMED))
        plan_timer_pop(p);
    if (p->timers.len > 0)
        *out = (stet_plan_step){STET_PLAN_WAIT, STET_PLAN_NONE, p->timers.at[0].at};
    else if (p->running > 0)
        out->kind = STET_PLAN_BUSY;
    return STET_OK;
}

void stet_plan_known(stet_plan *p, bool all) {
    p->not_all = !all;
    for (size_t i = 0; all && i < p->held.len; i++)
        if (p->nodes.at[p->held.at[i]].flags & N_HELD)
            plan_queue_push(p, p->held.at[i]);
    if (all)
        stet_vec_clear(&p->held);
}

bool stet_plan_still_first(stet_plan *p, uint32_t id) {
    node *n = &p->nodes.at[id];
    uint32_t first;
    n->flags &= ~(uint32_t)N_AGAIN;
    bool good = true;
    /* What is at the top may be dead, of no use, or not live: all of that is found out by taking it. */
    while (good && plan_queue_pop(p, &first)) {
        node *f = &p->nodes.at[first];
        bool live = false;
        if (!(f->flags & N_PENDING) || (f->flags & (N_ASIDE | N_RUNNING | N_GONE)))
            continue;
        if (f->rank >= n->rank) {
            plan_queue_push(p, first);
            break;
        }
        good = stet_plan_is_live(p, first, &live, NULL) == STET_OK && !live;
        f = &p->nodes.at[first];
        if (good)
            f->flags |= N_PARKED;
        else
            plan_queue_push(p, first);
        n = &p->nodes.at[id];
    }
    return good;
}

void stet_plan_set_blocks(stet_plan *p, uint32_t id) {
    p->nodes.at[id].flags |= N_BLOCKS;
}

void stet_plan_release(stet_plan *p, uint32_t id) {
    if (p->nodes.at[id].flags & N_LEFT)
        plan_queue_push(p, id);
}

/* Those that were left because of it. */
static void release_left(stet_plan *p, uint32_t id) {
    stet_vec_clear(&p->found);
    const node *n = &p->nodes.at[id];
    for (uint32_t w = 0; w < n->write_count + n->envelope_count; w++) {
        edge e = w < n->write_count ? n->writes[w] : n->envelopes[w - n->write_count];
        stet_plan_readers(p, e.doc, plan_path_at(p, e.path), STET_KEYSET, &p->found);
    }
    for (size_t i = 0; i < p->found.len; i++)
        if (p->nodes.at[p->found.at[i]].flags & N_LEFT)
            plan_queue_push(p, p->found.at[i]);
}

/* Something ended: those that wait for what runs are looked at again. */
static void release_waiting(stet_plan *p) {
    for (size_t i = 0; i < p->waiting.len; i++) {
        count_below(p, p->waiting.at[i], false);
        if (p->nodes.at[p->waiting.at[i]].flags & N_WAITING)
            plan_queue_push(p, p->waiting.at[i]);
    }
    stet_vec_clear(&p->waiting);
}

void stet_plan_finish(stet_plan *p, uint32_t id, stet_plan_outcome outcome, int64_t now) {
    node *n = &p->nodes.at[id];
    if (n->flags & N_GONE) { /* removed since it was given out */
        release_waiting(p);
        return;
    }
    assert(n->flags & N_RUNNING);
    p->running--;
    count_below(p, id, false);
    bool left = outcome == STET_PLAN_LEFT, undone = left || outcome == STET_PLAN_AGAIN || outcome == STET_PLAN_NOT_YET;
    bool again = (n->flags & N_AGAIN) || (undone && !left);
    if ((left || outcome == STET_PLAN_NOT_YET) && n->runs > 0)
        n->runs--;
    n->flags &= ~(uint32_t)(N_RUNNING | N_AGAIN | N_FAILED);
    if ((n->flags & N_IDLE) && !undone) {
        n->flags &= ~(uint32_t)N_IDLE;
        p->live_epoch++; /* what only it needed is not needed any more */
    }
    if (outcome == STET_PLAN_FAILED)
        n->flags |= N_FAILED;
    if (left)
        n->flags |= N_LEFT;
    if (left || outcome == STET_PLAN_FAILED)
        n->flags |= N_BLOCKS;
    if (outcome == STET_PLAN_DONE && (n->flags & N_BLOCKS)) {
        n->flags &= ~(uint32_t)N_BLOCKS;
        release_left(p, id);
    }
    if (!undone)
        n->flags &= ~(uint32_t)N_PENDING;
    if (again) {
        n->flags |= (n->flags & N_PENDING) ? 0 : N_DIRTY;
        n->flags &= ~(uint32_t)N_FAILED;
        n->dirty_at = now;
        plan_queue_push(p, id);
    }
    release_waiting(p);
}

void stet_plan_put_aside(stet_plan *p, uint32_t id) {
    node *n = &p->nodes.at[id];
    n->flags &= ~(uint32_t)(N_QUEUED | N_PARKED | N_TIMED | N_WAITING | N_HELD);
    n->flags |= N_ASIDE | N_DIRTY;
}

size_t stet_plan_queued(const stet_plan *p) {
    return p->heap.len;
}

void stet_plan_dropped(stet_plan *p, uint32_t id, int64_t now) {
    stet_plan_mark(p, id, STET_PLAN_DIRTY, now);
}

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

bool stet_plan_is_left(const stet_plan *p, uint32_t id) {
    return p->nodes.at[id].flags & N_LEFT;
}

uint32_t stet_plan_runs(const stet_plan *p, uint32_t id) {
    return p->nodes.at[id].runs;
}

bool stet_plan_cycle(stet_plan *p, uint32_t id, stet_buf *out) {
    stet_plan_nodes queue = {0};
    uint32_t last = find_cycle(p, id);
    for (uint32_t at = last; at != STET_PLAN_NONE; at = p->nodes.at[at].from)
        *stet_vec_add(&queue) = at;
    for (size_t i = queue.len; i > 0; i--)
        stet_buf_printf(out, "%s -> ", p->nodes.at[queue.at[i - 1]].name);
    if (last != STET_PLAN_NONE)
        stet_buf_str(out, p->nodes.at[id].name);
    stet_vec_release(&queue);
    return last != STET_PLAN_NONE;
}
