/* cells.h - which inputs are cells, and where a node may write through them.
 *
 * Part of building a process graph (process.c calls both):
 *
 *     stet_cells_mark(&inputs, node, module); // a schema may say asCell instead of the binding
 *     stet_cells_envelopes(g, pattern);       // after all rows: sets "materializer" in materializers
 *
 * The graph tells who may write a place before anything has run. The row of such a node has "materializer": an array of
 * links, its envelopes. Besides its output, it writes only inside them. They are
 *   - of a computation or effect: the cells that `materializerWriteInputPaths` names, otherwise all of its cells;
 *   - of a coordinator: all cells that its children are given, or take (`passes`). Which children will exist is not
 *     known while it is outdated, so it stands for them.
 *
 * A node that declares these paths runs without being requested. So does a computation that does not declare them and
 * whose output nobody reads: it can only exist to write through its cells (the opaque result). All others have
 * "onDemand": they run when their output is needed, or when something in their envelopes is read.
 */
#ifndef STET_GRAPH_CELLS_H
#define STET_GRAPH_CELLS_H

#include "graph/process.h"

/* Sets asCell in the links of `inputs` whose property (or, by position, item) in an argument schema says so. */
void stet_cells_mark(stet_value *inputs, stet_value node, stet_value module);
/* Does an argument schema of the node or of its module say that this input is a cell? */
bool stet_cells_by_schema(stet_value node, stet_value module, const char *key, size_t len);
void stet_cells_envelopes(stet_process *g, const stet_pattern *p);
/* The envelopes of a row; an empty array if it has no cells. */
stet_value stet_cells_row_envelopes(stet_value row);
/* What children of this shape take as cells: paths into the inputs of their coordinator, and links. Goes into its row
 * as "passes". */
stet_value stet_cells_passes(const stet_process *shape);

/* Is it a document that no action may write to through a cell? What a node computes, copies of elements, results of
 * pieces, and what stet keeps for itself. Links in it may lead to others. */
bool stet_cells_closed(const char *id);

/* Is it a document that says what is outside (a file, a pattern of files, a variable)? Each space has its own, and looks
 * at what its own nodes name. */
bool stet_cells_outside(const char *id);

/* Parses one of `materializerWriteInputPaths`, "NAME/KEY" or a list of keys, as a path. False: neither. */
bool stet_cells_input_path(stet_value v, stet_path *out);
/* Walks a binding to the reference on the way of `path`: returns the reference, and how much of the path was used.
 * False: there is none. */
bool stet_cells_reference(stet_value inputs, stet_pathref path, stet_value *reference, size_t *taken);

#endif
