/* order.c - ranks nodes, and finds those that are certain to be wanted. */

#include "graph/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "graph/cells.h"
#include "graph/child.h"

#define NONE UINT32_MAX

typedef struct writer {
    uint32_t node, next; /* next writer of the same document */
    bool perhaps;        /* it may write there: an envelope */
    bool said;           /* the node declares the envelope itself */
    stet_pathref path;
} writer;

typedef struct edge {
    uint32_t from, to;
    bool sure; /* always read, and completely covered by what is written */
} edge;

typedef struct work {
    stet_process *g;
    const stet_process_modules *modules;
    stet_map docs; /* space, scope, id -> first writer */
    STET_VEC(writer) writers;
    STET_VEC(edge) edges;
    bool *certain, *shown;
    STET_VEC(uint32_t) queue; /* certain nodes whose inputs have not been followed yet */
    stet_arena arena;
    /* of the current walk */
    uint32_t reader; /* NONE: the result */
    stet_value module;
    bool before; /* only ordered after what it is bound to */
    stet_path path;
    stet_buf key;
} work;

static bool doc_key(const stet_link *l, stet_buf *key) {
    stet_buf_clear(key);
    stet_buf_str(key, l->space ? l->space : "");
    stet_buf_char(key, 0);
    stet_buf_str(key, l->scope);
    stet_buf_char(key, 0);
    stet_buf_str(key, l->id);
    return !key->overflow;
}

static bool is_said(stet_value row) {
    return stet_value_find(row, "materializerWriteInputPaths", 27, NULL);
}

static void add_writer(work *w, uint32_t node, stet_value output, bool perhaps) {
    stet_link l;
    w->path.buf.len = 0;
    if (!stet_link_read(output, &l, &w->path) || !doc_key(&l, &w->key) || (perhaps && stet_cells_closed(l.id)))
        return;
    stet_pathref p = stet_path_ref(&w->path);
    stet_slot *slot = stet_map_get(&w->docs, w->key.data, w->key.len);
    uint32_t at = (uint32_t)w->writers.len;
    *stet_vec_add(&w->writers) = (writer){node,
                                          slot ? (uint32_t)slot->n : NONE,
                                          perhaps,
                                          is_said(w->g->nodes[node].row),
                                          {stet_arena_strndup(&w->arena, p.bytes ? p.bytes : "", p.len), p.len}};
    stet_map_put(&w->docs, w->key.data, w->key.len, (stet_slot){.n = at});
}

static void now_certain(work *w, uint32_t node) {
    if (w->certain[node])
        return;
    w->certain[node] = true;
    *stet_vec_add(&w->queue) = node;
}

/* Two nodes are given the same cell, and neither declares how it uses it. That is no reason to order one after the
 * other, let alone each after the other. Their reads are known once they have run. */
static bool share(const work *w, const stet_link *l) {
    stet_value row = w->g->nodes[w->reader].row;
    return l->as_cell && !is_said(row) && stet_value_find(row, "materializer", 12, NULL);
}

/* Visits one link in the inputs of a node, or in the result. */
static bool visit(void *ctx, stet_value binding, stet_pathref place) {
    work *w = ctx;
    stet_link l;
    w->path.buf.len = 0;
    if (!stet_link_read(binding, &l, &w->path) || !doc_key(&l, &w->key))
        return true;
    const stet_slot *slot = stet_map_get(&w->docs, w->key.data, w->key.len);
    if (!slot)
        return true;
    bool always = !w->before;
    if (w->reader != NONE && always) {
        size_t cursor = 0, len;
        const char *input;
        stet_buf scratch = STET_BUF(0);
        always = w->modules && stet_path_next(place, &cursor, &scratch, &input, &len) &&
                 w->modules->use(w->modules->ctx, w->module, input, len) == STET_INPUT_ALWAYS;
        stet_buf_release(&scratch);
    }
    stet_pathref read = stet_path_ref(&w->path);
    for (uint32_t i = (uint32_t)slot->n; i != NONE; i = w->writers.at[i].next) {
        const writer *x = &w->writers.at[i];
        bool covers = stet_path_is_prefix(x->path, read), below = stet_path_is_prefix(read, x->path);
        if (!covers && !below)
            continue;
        if (w->reader == NONE && !x->perhaps)
            w->shown[x->node] = true;
        else if (w->reader != NONE && w->reader != x->node && !(x->perhaps && !x->said && share(w, &l)))
            *stet_vec_add(&w->edges) = (edge){x->node, w->reader, always && covers && !x->perhaps};
    }
    return true;
}

static void collect(work *w) {
    stet_process *g = w->g;
    for (size_t i = 0; i < g->node_count; i++) {
        stet_value row = g->nodes[i].row, envelopes;
        if (stet_value_find(row, "stream", 6, NULL))
            continue;
        add_writer(w, (uint32_t)i, stet_value_get(row, "output"), false);
        for (size_t k = 0; stet_value_find(row, "materializer", 12, &envelopes) && k < stet_value_count(envelopes); k++)
            add_writer(w, (uint32_t)i, stet_value_at(envelopes, k), true);
    }
    w->reader = NONE;
    stet_binding_walk(g->binding, visit, w);
    for (size_t i = 0; i < g->node_count; i++) {
        if (stet_value_find(g->nodes[i].row, "stream", 6, NULL))
            continue; /* a handler is run by its events, and is not a reader before */
        w->reader = (uint32_t)i;
        w->module = stet_value_get(g->nodes[i].row, "module");
        stet_binding_walk(stet_value_get(g->nodes[i].row, "inputs"), visit, w);
        w->before = true;
        stet_binding_walk(stet_value_get(g->nodes[i].row, "after"), visit, w);
        w->before = false;
        stet_value kind = stet_value_get(g->nodes[i].row, "kind");
        /* A verifier is wanted whether or not the result leads to it; effects and verifiers among its children are
         * wanted likewise. */
        if (g->wants_all ||
            (stet_value_type(kind) == STET_TYPE_STRING && strcmp(stet_value_as_string(&kind, NULL), "effect") == 0) ||
            stet_value_as_bool(stet_value_get(g->nodes[i].row, "verifier")) ||
            stet_value_as_int(stet_value_get(g->nodes[i].row, "effects")) > 0 ||
            stet_value_as_int(stet_value_get(g->nodes[i].row, "verifiers")) > 0)
            now_certain(w, (uint32_t)i);
        if (g->wants_all && stet_value_find(g->nodes[i].row, "span", 4, NULL)) /* with its children */
            w->shown[i] = true;
    }
}

/* Edges grouped by one of their ends: at[start[n]] .. at[start[n + 1]] are those of node n. */
typedef struct adjacency {
    uint32_t *start, *at;
} adjacency;

static adjacency by_end(const work *w, bool forward) {
    size_t n = w->g->node_count, m = w->edges.len;
    adjacency a = {stet_alloc_zero((n + 2) * sizeof *a.start), stet_alloc((m ? m : 1) * sizeof *a.at)};
    for (size_t i = 0; i < m; i++)
        a.start[(forward ? w->edges.at[i].from : w->edges.at[i].to) + 2]++;
    for (size_t i = 2; i < n + 2; i++)
        a.start[i] += a.start[i - 1];
    for (size_t i = 0; i < m; i++)
        a.at[a.start[(forward ? w->edges.at[i].from : w->edges.at[i].to) + 1]++] = (uint32_t)i;
    return a;
}

static void release(adjacency *a) {
    free(a->start);
    free(a->at);
}

/* Tarjan's algorithm without recursion: the number of a component is larger than those of all components it leads
 * to. */
static uint32_t components(const work *w, const adjacency *out, uint32_t *component) {
    size_t n = w->g->node_count;
    uint32_t *index = stet_alloc_zero((n ? n : 1) * sizeof *index), *low = stet_alloc((n ? n : 1) * sizeof *low);
    uint32_t *next = stet_alloc((n ? n : 1) * sizeof *next), count = 0, clock = 0;
    STET_VEC(uint32_t) path = {0}, open = {0};
    for (size_t i = 0; i < n; i++)
        component[i] = NONE;
    for (size_t root = 0; root < n; root++) {
        if (index[root])
            continue;
        *stet_vec_add(&path) = (uint32_t)root;
        while (path.len > 0) {
            uint32_t v = path.at[path.len - 1];
            if (!index[v]) {
                index[v] = low[v] = ++clock;
                next[v] = out->start[v];
                *stet_vec_add(&open) = v;
            }
            bool deeper = false;
            while (next[v] < out->start[v + 1]) {
                uint32_t to = w->edges.at[out->at[next[v]]].to;
                if (!index[to]) {
                    *stet_vec_add(&path) = to;
                    deeper = true;
                    break;
                }
                if (component[to] == NONE && low[to] < low[v])
                    low[v] = low[to];
                next[v]++;
            }
            if (deeper)
                continue;
            path.len--;
            if (low[v] == index[v]) {
                uint32_t x;
                do {
                    x = open.at[--open.len];
                    component[x] = count;
                } while (x != v);
                count++;
            }
        }
    }
    stet_vec_release(&path);
    stet_vec_release(&open);
    free(index);
    free(low);
    free(next);
    return count;
}

/* Numbers the members of a circle from `first` on, in the order in which they run: every reader after its writer,
 * except for the edges that close a circle. This is the reverse order of a depth-first search, without recursion. */
static void number_members(const work *w, const adjacency *out, const uint32_t *component, uint32_t first,
                           uint32_t size, uint32_t *next, uint32_t *turn) {
    STET_VEC(uint32_t) path = {0};
    uint32_t left = size;
    *stet_vec_add(&path) = first;
    next[first] = out->start[first];
    while (path.len > 0) {
        uint32_t v = path.at[path.len - 1];
        bool deeper = false;
        while (next[v] < out->start[v + 1] && !deeper) {
            uint32_t to = w->edges.at[out->at[next[v]++]].to;
            if (component[to] != component[v] || next[to] != NONE)
                continue;
            next[to] = out->start[to];
            *stet_vec_add(&path) = to;
            deeper = true;
        }
        if (deeper)
            continue;
        turn[v] = --left;
        path.len--;
    }
    stet_vec_release(&path);
}

/* Nodes in a circle record its name, which is the smallest name in it, and their turn. The node with that name is the
 * first, and none waits for a later one: so a circle that fails always fails at the same node. */
static void name_circles(const work *w, const adjacency *out, const uint32_t *component, uint32_t count) {
    size_t n = w->g->node_count;
    uint32_t *least = stet_alloc_zero(((size_t)count + 1) * sizeof *least),
             *size = stet_alloc_zero(((size_t)count + 1) * sizeof *size);
    uint32_t *next = stet_alloc((n + 1) * sizeof *next), *turn = stet_alloc_zero((n + 1) * sizeof *turn);
    for (size_t i = 0; i < n; i++) {
        uint32_t c = component[i];
        next[i] = NONE;
        if (size[c]++ == 0 || strcmp(w->g->nodes[i].id, w->g->nodes[least[c]].id) < 0)
            least[c] = (uint32_t)i;
    }
    for (uint32_t c = 0; c < count; c++)
        if (size[c] > 1)
            number_members(w, out, component, least[c], size[c], next, turn);
    for (size_t i = 0; i < n; i++) {
        if (size[component[i]] < 2)
            continue;
        stet_value_put(&w->g->nodes[i].row, "circle", stet_value_string(w->g->nodes[least[component[i]]].id));
        stet_value_put(&w->g->nodes[i].row, "turn", stet_value_int(turn[i]));
    }
    free(least);
    free(size);
    free(next);
    free(turn);
}

static void rank_nodes(const work *w, uint32_t *rank) {
    size_t n = w->g->node_count;
    adjacency out = by_end(w, true);
    uint32_t *component = stet_alloc((n ? n : 1) * sizeof *component);
    uint32_t count = components(w, &out, component);
    name_circles(w, &out, component, count);
    /* Nodes by component, sources first: from the highest number down. */
    uint32_t *start = stet_alloc_zero(((size_t)count + 2) * sizeof *start),
             *order = stet_alloc((n ? n : 1) * sizeof *order);
    uint32_t *level = stet_alloc_zero(((size_t)count + 1) * sizeof *level);
    /* Ranks of children, between the node and its readers. */
    uint32_t *span = stet_alloc_zero(((size_t)count + 1) * sizeof *span);
    for (size_t i = 0; i < n; i++) {
        int64_t children = stet_value_as_int(stet_value_get(w->g->nodes[i].row, "span"));
        if (children > span[component[i]])
            span[component[i]] = children < STET_CHILD_CHAIN ? (uint32_t)children : STET_CHILD_CHAIN;
        start[component[i] + 2]++;
    }
    for (size_t i = 2; i < (size_t)count + 2; i++)
        start[i] += start[i - 1];
    for (size_t i = 0; i < n; i++)
        order[start[component[i] + 1]++] = (uint32_t)i;
    for (uint32_t c = count; c-- > 0;)
        for (uint32_t k = start[c]; k < start[c + 1]; k++)
            for (uint32_t e = out.start[order[k]]; e < out.start[order[k] + 1]; e++) {
                uint32_t to = component[w->edges.at[out.at[e]].to];
                if (to != c && level[to] < level[c] + 1 + span[c])
                    level[to] = level[c] + 1 + span[c];
            }
    for (size_t i = 0; i < n; i++)
        rank[i] = level[component[i]];
    free(start);
    free(order);
    free(level);
    free(span);
    free(component);
    release(&out);
}

/* What a certain node always reads is certain too. */
static void follow_certain(work *w, const adjacency *in) {
    while (w->queue.len > 0) {
        uint32_t at = w->queue.at[--w->queue.len];
        for (uint32_t e = in->start[at]; e < in->start[at + 1]; e++)
            if (w->edges.at[in->at[e]].sure)
                now_certain(w, w->edges.at[in->at[e]].from);
    }
}

void stet_order_compute(stet_process *g, const stet_process_modules *modules) {
    size_t n = g->node_count;
    work w = {.g = g, .modules = modules, .path = STET_PATH_INIT, .key = STET_BUF(4096)};
    uint32_t *rank = stet_alloc_zero((n ? n : 1) * sizeof *rank);
    w.certain = stet_alloc_zero((n ? n : 1) * sizeof *w.certain);
    w.shown = stet_alloc_zero((n ? n : 1) * sizeof *w.shown);
    collect(&w);
    rank_nodes(&w, rank);
    adjacency in = by_end(&w, false);
    follow_certain(&w, &in);
    for (size_t i = 0; g->template && i < n; i++)
        if (w.certain[i]) /* independent of the result */
            stet_value_put(&g->nodes[i].row, "effectual", stet_value_bool(true));
    for (size_t i = 0; i < n; i++)
        if (w.shown[i])
            now_certain(&w, (uint32_t)i);
    follow_certain(&w, &in);
    for (size_t i = 0; i < n; i++) {
        stet_value_put(&g->nodes[i].row, "rank", stet_value_int(rank[i]));
        if (w.certain[i])
            stet_value_put(&g->nodes[i].row, "certain", stet_value_bool(true));
        if (w.shown[i] && (g->template || stet_value_find(g->nodes[i].row, "span", 4, NULL)))
            stet_value_put(&g->nodes[i].row, "shown", stet_value_bool(true));
    }
    release(&in);
    free(rank);
    free(w.certain);
    free(w.shown);
    stet_map_release(&w.docs);
    stet_vec_release(&w.writers);
    stet_vec_release(&w.edges);
    stet_vec_release(&w.queue);
    stet_arena_release(&w.arena);
    stet_path_release(&w.path);
    stet_buf_release(&w.key);
}
