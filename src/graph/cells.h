/* cells.h - inputs that are cells: which they are, and where a node may write through them.
 *
 * Part of building a process graph (process.c calls both):
 *
 *     stet_cells_mark(&inputs, node, module);     // a schema may say asCell instead of the binding
 *     stet_cells_envelopes(g, pattern);           // after all rows: "materializer" in those that are
 *
 * A materializer is a node with a large or changing write surface. Its row has "materializer": an array of links, its
 * envelopes: it writes nowhere but there, beside its output. They come from `materializerWriteInputPaths`, paths into
 * its inputs that lead to cells. A computation without these paths, whose inputs have cells and whose own output nobody
 * looks at, can have no purpose but to write through them: all of its cells are its envelopes (the opaque result).
 */
#ifndef STET_GRAPH_CELLS_H
#define STET_GRAPH_CELLS_H

#include "graph/process.h"

/* Puts asCell into those links of `inputs` whose property (or, by position, item) in an argument schema says so. */
void stet_cells_mark(stet_value *inputs, stet_value node, stet_value module);
/* Does an argument schema of the node or of its module say that this input is a cell? */
bool stet_cells_by_schema(stet_value node, stet_value module, const char *key, size_t len);
void stet_cells_envelopes(stet_process *g, const stet_pattern *p);
/* The envelopes of one row that is known to be a materializer: those it declares, or else all of its cells. */
stet_value stet_cells_row_envelopes(stet_value row);

/* One of `materializerWriteInputPaths`, "NAME/KEY" or a list of keys, as a path. False: neither. */
bool stet_cells_input_path(stet_value v, stet_path *out);
/* Walks a binding to the reference on the way of `path`: the reference, and how much of the path it took. False if
 * there is none. */
bool stet_cells_reference(stet_value inputs, stet_pathref path, stet_value *reference, size_t *taken);

#endif
