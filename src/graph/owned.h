/* owned.h - what computations write into the argument and the named cells of their piece.
 *
 *     stet_status status = stet_piece_take_back(tx, piece, &name, path, true, &err); // only an earlier run wrote this
 *     if (status == STET_OK)                                                         // before a computation writes
 *         status = stet_piece_keep_hand(tx, &name, &err);
 *
 * Rules
 *
 *   O1. What a computation wrote stays as long as its runs write it. A place that a run no longer writes returns to what
 *       was set by hand (O2) or else to the default of the cell, or is removed if there is nothing in either, together
 *       with objects that were created to hold it.
 *   O2. What people and handlers set in a cell, and what computations write there, are two layers. A computation that
 *       writes over what was set hides it, and does not end the override. So what a cell holds follows from the pattern,
 *       the inputs and what was set, and not from what ran before. The lower layer is the member `hand` of the envelope,
 *       {"value": VALUE} or {}: the cell without what computations wrote. Without `hand`, a part that is marked as set
 *       (argument.h) is as it was set.
 *   O3. An array is one place: elements after a removed one would move.
 *   O4. A cell that a computation reached through a link has the member `written`: that its value differs from the
 *       default does not make it an override.
 *
 * The default of a child's cell lies beside its value (scheduler/children_one.c), any other default in the program.
 */
#ifndef STET_GRAPH_OWNED_H
#define STET_GRAPH_OWNED_H

#include "graph/piece.h"

#define STET_CELL_HAND    "hand"    /* O2 */
#define STET_CELL_WRITTEN "written" /* O4 */

/* Is this the argument or a named cell of this piece, or of a child of it? */
bool stet_piece_owns(const stet_piece *p, const stet_docname *name);
/* O1. `path` is in the envelope. Documents for which stet_piece_owns is false are not changed. Records no read. `last`:
 * nothing is written there afterwards, and an empty cell is removed. */
STET_CHECKED stet_status stet_piece_take_back(stet_tx *tx, const stet_piece *p, const stet_docname *name,
                                              stet_pathref path, bool last, stet_error *err);
/* O2, O4: before a computation writes. Does nothing if the document is not an argument or cell of a piece. */
STET_CHECKED stet_status stet_piece_keep_hand(stet_tx *tx, const stet_docname *name, stet_error *err);
/* O2: after a person or handler wrote the place `path`. `before` is the mark that there was, or null. `*nothing`: it removed
 * what a computation had written, where nothing was set. */
STET_CHECKED stet_status stet_piece_set_hand(stet_tx *tx, const stet_docname *name, stet_value before,
                                             stet_pathref path, bool *nothing, stet_error *err);

#endif
