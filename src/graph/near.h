/* near.h - the way out for somebody who named a node that is not there.
 *
 *     if (status == STET_NOT_FOUND)
 *         stet_piece_hint_node(space, branch, piece, typed, err);   // did you mean "load"?  or: its nodes are ...
 *
 * Sets the hint of `err`, which may be NULL. It reads the whole graph, and fails silently: the error is told anyway. */
#ifndef STET_GRAPH_NEAR_H
#define STET_GRAPH_NEAR_H

#include "graph/piece.h"

void stet_piece_hint_node(stet_space *space, int64_t branch, const stet_piece *p, const char *typed, stet_error *err);

#endif
