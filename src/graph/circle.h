/* circle.h - finds a path along edges that returns to its start, for messages.
 *
 * Linear in nodes and edges, except for the search of one shortest path. Nothing recurses.
 */
#ifndef STET_GRAPH_CIRCLE_H
#define STET_GRAPH_CIRCLE_H

#include "base/vec.h"

typedef struct stet_circle_edge {
    size_t from, to; /* numbers of nodes */
    bool closes;     /* a cycle counts if one of these edges is in it */
} stet_circle_edge;

/* Finds the edges of a cycle, in order, beginning with one that `closes`: writes their indices in `edges` to `way`,
 * which has room for one more than there are nodes. Returns their number; 0: there is no cycle. */
size_t stet_circle_find(size_t nodes, const stet_circle_edge *edges, size_t count, size_t *way);

#endif
