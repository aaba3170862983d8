/* guard.h - which documents of a piece people may write by hand.
 *
 * This is the guard of writes from outside (memory/space.h: stet_outside_guard), which piece.c installs when the
 * program starts:
 *
 *   G1. The result document of a piece, the parts of its graph, programs and schemas belong to stet: nothing would run
 *       to correct them. No write from outside may change them.
 *   G2. An argument or a cell of the pattern can't be deleted: it would be read as nothing.
 *   G3. A value written to an argument or a named cell is marked as set, and must match the schema there (argument.h).
 *
 * STET_INVALID says what to do instead. Outputs of nodes may be written: their node runs again. Documents that look
 * like those of a piece that does not exist are like any others.
 */
#ifndef STET_GRAPH_GUARD_H
#define STET_GRAPH_GUARD_H

#include "memory/space.h"

extern const stet_write_guard stet_piece_guard;

#endif
