/* circle.c - finds a cycle of edges: removes nodes that lead to none, then searches a shortest way back. */

#include "graph/circle.h"

#include <string.h>

typedef struct circles {
    const stet_circle_edge *edges;
    size_t count, nodes;
    size_t *first; /* of each node's edges, in `order` */
    size_t *order; /* edges, sorted by where they begin */
} circles;

/* Finds a shortest way from one node to another and stores its edges in `way` (with room for as many as there are
 * nodes); 0: there is none. */
static size_t find_way(const circles *g, size_t from, size_t to, size_t *way) {
    size_t *via = stet_alloc(g->nodes * sizeof *via), *todo = stet_alloc(g->nodes * sizeof *todo), head = 0, tail = 0;
    for (size_t i = 0; i < g->nodes; i++)
        via[i] = SIZE_MAX;
    todo[tail++] = from;
    while (head < tail && via[to] == SIZE_MAX) {
        size_t at = todo[head++];
        for (size_t i = g->first[at]; i < g->first[at + 1]; i++) {
            size_t next = g->edges[g->order[i]].to;
            if (via[next] != SIZE_MAX || next == from)
                continue;
            via[next] = g->order[i];
            todo[tail++] = next;
        }
    }
    size_t len = 0;
    for (size_t at = to; via[to] != SIZE_MAX && at != from; at = g->edges[via[at]].from)
        way[len++] = via[at];
    for (size_t i = 0; i < len / 2; i++) {
        size_t keep = way[i];
        way[i] = way[len - 1 - i];
        way[len - 1 - i] = keep;
    }
    stet_free(via);
    stet_free(todo);
    return len;
}

/* Removes nodes without outgoing edges until none is left: the others are in a circle, or lead to one. */
static void peel(const circles *g, bool *gone) {
    size_t *waits = stet_alloc_zero((g->nodes + 1) * sizeof *waits), *todo = stet_alloc((g->nodes + 1) * sizeof *todo);
    size_t *back = stet_alloc_zero((g->nodes + 2) * sizeof *back);
    size_t *readers = stet_alloc((g->count + 1) * sizeof *readers), tail = 0;
    for (size_t i = 0; i < g->count; i++) {
        waits[g->edges[i].from]++;
        back[g->edges[i].to + 2]++;
    }
    for (size_t i = 2; i < g->nodes + 2; i++)
        back[i] += back[i - 1];
    for (size_t i = 0; i < g->count; i++)
        readers[back[g->edges[i].to + 1]++] = g->edges[i].from;
    for (size_t i = 0; i < g->nodes; i++)
        if (waits[i] == 0)
            todo[tail++] = i;
    for (size_t head = 0; head < tail; head++) {
        gone[todo[head]] = true;
        for (size_t i = back[todo[head]]; i < back[todo[head] + 1]; i++)
            if (--waits[readers[i]] == 0)
                todo[tail++] = readers[i];
    }
    stet_free(waits);
    stet_free(todo);
    stet_free(back);
    stet_free(readers);
}

size_t stet_circle_find(size_t nodes, const stet_circle_edge *edges, size_t count, size_t *way) {
    circles g = {.edges = edges, .count = count, .nodes = nodes};
    bool *gone = stet_alloc_zero(nodes + 1);
    size_t len = 0, *at = stet_alloc((nodes + 1) * sizeof *at);
    g.first = stet_alloc_zero((nodes + 2) * sizeof *g.first);
    g.order = stet_alloc((count + 1) * sizeof *g.order);
    peel(&g, gone);
    for (size_t i = 0; i < count; i++)
        g.first[edges[i].from + 1]++;
    for (size_t i = 1; i <= nodes; i++)
        g.first[i] += g.first[i - 1];
    memcpy(at, g.first, (nodes + 1) * sizeof *at);
    for (size_t i = 0; i < count; i++)
        g.order[at[edges[i].from]++] = i;
    for (size_t i = 0; i < count && len == 0; i++) {
        if (!edges[i].closes || gone[edges[i].from] || gone[edges[i].to])
            continue;
        way[0] = i;
        len = find_way(&g, edges[i].to, edges[i].from, way + 1);
        len += len > 0; /* one circle is enough: the next may be the same, found from another node */
    }
    stet_free(at);
    stet_free(gone);
    stet_free(g.first);
    stet_free(g.order);
    return len;
}
