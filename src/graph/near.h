/* near.h - suggests node names when a name is not found.
 *
 *     if (status == STET_NOT_FOUND)
 *         stet_piece_hint_node(space, branch, piece, typed, err); // did you mean "load"?  or: its nodes are ...
 *
 * Sets the hint of `err`, which may be NULL. It reads the whole graph, and fails silently: the error is reported
 * anyway.
 */
#ifndef STET_GRAPH_NEAR_H
#define STET_GRAPH_NEAR_H

#include "graph/piece.h"

/* The same for a graph in memory. */
void stet_process_hint_node(const stet_process *g, const char *typed, stet_error *err);
void stet_piece_hint_node(stet_space *space, int64_t branch, const stet_piece *p, const char *typed, stet_error *err);

#endif
