/* build.h - makes rows of the process graph from nodes of a pattern: every reference becomes a link.
 *
 * Used by process.c for a piece and by child.c for the children of a node; not included anywhere else.
 *
 * In a child (`instance` is not NULL) ids of documents contain the instance, and the argument is the child's own: what
 * its coordinator's inputs give it under their names (`outer`), and otherwise the document of the child.
 */
#ifndef STET_GRAPH_BUILD_H
#define STET_GRAPH_BUILD_H

#include "graph/child.h"

typedef struct stet_build {
    stet_pattern *p;
    stet_process *g; /* piece name; schemas are kept here */
    const stet_process_modules *modules;
    const char *instance; /* "rows[7]"; NULL: the piece itself */
    stet_value outer;     /* {NAME: binding}; null: none */
    stet_value own;       /* names of members of the argument that are in the child's document */
    int depth;            /* nesting depth of child patterns */
    int height;           /* most patterns inside each other that a node has as its children */
    stet_value *links;    /* for stet_build_all: links to the outputs of nodes, made once; null: not made yet */
} stet_build;

/* Adds all nodes of the pattern to `g`, with the binding of its result. */
STET_CHECKED stet_status stet_build_all(stet_build *b, stet_error *err);
/* Rows of one node: one, or two for a `filter`, whose coordinator has an id of its own. `ids` are in the arena of g. */
typedef struct stet_built {
    const char *id[2];
    stet_value row[2];
    int count;
} stet_built;
STET_CHECKED stet_status stet_build_node(stet_build *b, const stet_pattern_node *n, stet_built *out, stet_error *err);
/* A binding with every reference replaced by a link. */
stet_value stet_build_binding(stet_build *b, stet_value binding);

void stet_process_add(stet_process *g, const char *id, size_t len, stet_value row, size_t capacity);

#endif
