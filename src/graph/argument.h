/* argument.h - what was set in a piece's argument and cells, and what follows its pattern.
 *
 *     stet_status status = stet_piece_follow(tx, &setup, &err); // when setting up: new defaults arrive
 *     if (status == STET_OK)                                    // --unset, --set
 *         status = stet_piece_adjust(tx, branch, piece, unset, set, &err);
 *     if (status == STET_OK) // which parts were set
 *         status = stet_piece_overrides(space, branch, piece, &names, &err);
 *
 * Rules
 *
 *   A1. Each top-level key of an argument either was set by somebody (an override), or follows the pattern's default:
 *       it is changed, added and removed with it. An argument or default that is not an object is one part, and so is a
 *       named cell.
 *   A2. A part is an override if it is marked (member `set` of the envelope: {KEY: true}, or true for all of it), or if
 *       it differs from the default of the program that the piece was last set up with. So a part that was set to the
 *       value of its default is an override if the writer marked it.
 *   A3. A cell that is the output of a node belongs to that node and is an override only if it is marked. If the output
 *       is a part of the cell, only that part belongs to the node. Without the node it returns to what was set by hand
 *       (owned.h, O2) or else to the default.
 *   A4. A part that a computation has as a cell (asCell), and so may write, is an override only if it is marked:
 *       handlers and people mark what they write. Setting up resets it to what was set or to the default, and the
 *       computation runs again.
 *   A5. A piece that was last set up before there were marks (its `process` lacks `marked`) may hold an old default,
 *       since defaults did not follow the pattern then. In such a piece a part that equals the default of any earlier
 *       program of the piece is not an override.
 *   A6. The argument and each named cell match the schemas of the pattern that the piece was set up with. A write that
 *       does not match is refused; a piece that does not match nevertheless does not run, and is not up to date. A cell
 *       that is the output of a node is checked by the node's resultSchema instead.
 *
 * Overrides have names for people: KEY, "cell:NAME", "." for an argument as a whole, and "/KEY" (a JSON Pointer) for
 * keys that look like one of the others. A cell of a child ("cell:ROWS[KEY].NAME") is an override if it is marked; its
 * default lies beside its value.
 */
#ifndef STET_GRAPH_ARGUMENT_H
#define STET_GRAPH_ARGUMENT_H

#include "graph/piece.h"

/* Updates argument and cells to the defaults of the new pattern, except for overrides. Reads them: a concurrent change
 * is a conflict. */
STET_CHECKED stet_status stet_piece_follow(stet_tx *tx, const stet_piece_setup *s, stet_error *err);
/* Removes the overrides named in `unset`, then sets {KEY or /POINTER: value} in the argument; either may be null. A6:
 * STET_INVALID if the result does not match. */
STET_CHECKED stet_status stet_piece_adjust(stet_tx *tx, int64_t branch, const stet_piece *p, stet_value unset,
                                           stet_value set, stet_error *err);
/* A6: does the current state of the piece match? STET_INVALID names the part, the place in it, and a fix. */
STET_CHECKED stet_status stet_piece_check_parts(stet_space *s, int64_t branch, const stet_piece *p, stet_error *err);
/* A6, after a write to a document: if it is an argument or a named cell of a piece, checks that it matches. */
STET_CHECKED stet_status stet_piece_wrote(stet_tx *tx, const stet_docname *name, stet_error *err);
/* Marks the place `path` in the envelope of a document as set, if the document is an argument or a named cell of a
 * piece; otherwise does nothing. Call it after the write. */
STET_CHECKED stet_status stet_piece_mark_set(stet_tx *tx, const stet_docname *name, stet_pathref path, stet_error *err);
/* Resets overrides to the defaults of the current program. STET_INVALID: a name of something that was not set. */
STET_CHECKED stet_status stet_piece_unset(stet_tx *tx, int64_t branch, const stet_piece *p, stet_value names,
                                          stet_error *err);
/* The parts that computations have as cells: {"argument": true or {KEY: true}, "cells": {NAME: true}}, as far as there
 * are any. */
stet_value stet_piece_cell_inputs(const stet_process *g);
/* The cells that are the output of a node: {NAME: true}. */
stet_value stet_piece_cell_outputs(const stet_process *g);
/* Names of overrides; an array. */
STET_CHECKED stet_status stet_piece_overrides(stet_space *s, int64_t branch, const stet_piece *p, stet_value *names,
                                              stet_error *err);

#endif
