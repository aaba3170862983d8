/* owned.h - what computations write into the argument and the named cells of their piece.
 *
 *     stet_status status = stet_piece_take_back(tx, piece, &name, path, true, &err); // only an earlier run wrote this
 *     if (status == STET_OK)                                                         // after a computation wrote
 *         status = stet_piece_mark_own(tx, &name, path, &err);
 *
 * Rules
 *
 *   O1. What a computation wrote stays as long as its runs write it. A place that a run no longer writes returns to the
 *       default of the cell, or is removed if the default has nothing there, together with objects that were created to
 *       hold it.
 *   O2. A cell or key that is marked as set (argument.h) belongs to somebody: only what nobody else has changed since
 *       the computation wrote it is taken back there. A computation that writes all of it removes the mark, since
 *       nothing of what was set is left.
 *   O3. An array is one place: elements after a removed one would move.
 *
 * The default of a child's cell lies beside its value (scheduler/children_one.c), any other default in the program.
 */
#ifndef STET_GRAPH_OWNED_H
#define STET_GRAPH_OWNED_H

#include "graph/piece.h"

/* Is this the argument or a named cell of this piece, or of a child of it? */
bool stet_piece_owns(const stet_piece *p, const stet_docname *name);
/* Is the place marked as set? */
bool stet_piece_is_marked(stet_tx *tx, const stet_docname *name, stet_pathref path);
/* O1. `path` is in the envelope. Documents for which stet_piece_owns is false are not changed. Records no read. `last`:
 * nothing is written there afterwards, and an empty cell is removed. */
STET_CHECKED stet_status stet_piece_take_back(stet_tx *tx, const stet_piece *p, const stet_docname *name,
                                              stet_pathref path, bool last, stet_error *err);
/* O2. Does nothing where there is no mark, or if the document is not an argument or cell of a piece. */
STET_CHECKED stet_status stet_piece_mark_own(stet_tx *tx, const stet_docname *name, stet_pathref path, stet_error *err);

#endif
