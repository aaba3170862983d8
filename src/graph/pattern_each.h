/* pattern_each.h - a command for each of many files (`each` in stet.toml), as nodes of the JSON form.
 *
 * The node of one command, whose input NAME is a list of files, becomes two: `ID.files`, the list of existing files,
 * and `ID`, a `map` over it whose children run the command. References to other nodes are passed to the children with
 * their argument; links to documents stay as they are.
 */
#ifndef STET_GRAPH_PATTERN_EACH_H
#define STET_GRAPH_PATTERN_EACH_H

#include "base/error.h"

/* Appends the two nodes to `nodes`. Consumes `node`. */
void stet_pattern_each(stet_value node, const char *name, stet_value *nodes);
/* {"each": {"$": ID}, "name": NAME}: the files NAME of all its commands; with `matching` (may be NULL) only the files
 * that match this pattern. */
stet_value stet_pattern_each_files(const char *id, const char *name, const char *matching);

#endif
