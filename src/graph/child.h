/* child.h - children: graphs that a node of a graph creates while it runs.
 *
 * A coordinator is a node that has children: `map`, `filter` and `reduce` have one for each element of a list; an
 * action that returns a pattern has one. The pattern of a child is a template. A child is an instance of it:
 *
 *   rows[7]              the child of coordinator "rows" for the element with key 7
 *   rows[7].double       its node "double"
 *   rows[7].inner[x].y   a node of a child of its node "inner"
 *   filtered[]           the coordinator of the filter "filtered", whose children are filtered[KEY]
 *   made[]               the only child of "made", an action that returns a pattern
 *
 * A child owns these documents, which are deleted with it:
 *
 *   piece:NAME:child:INSTANCE           {"argument": {"element", ...}, "result"?}; the child exists as long as this
 *                                       document
 *   piece:NAME:node:INSTANCE.NODE       outputs of its nodes, {"$stream": true} for a handler's own stream
 *   piece:NAME:cell:INSTANCE.CELL       its named cells
 *
 * A coordinator owns this document:
 *
 *   piece:NAME:children:COORDINATOR     which children exist: {"serial", "template", "nodes", "cells", "keys",
 *                                       "prints", "marks", "pattern"?}; keys in the order of the list, with
 *                                       fingerprints of their arguments
 *
 * Rows of children are not stored: a row follows from the coordinator's row (which holds the template) and the key. So
 * a new child costs one small document and one entry of the index, whatever the size of its graph.
 *
 * Keys. A key is a value. Its text in an id is the string itself, or JSON for other values (and for strings that look
 * like JSON). Every byte except letters, digits, "_", "-" and "." is percent-escaped. Arrays, objects and texts longer
 * than STET_CHILD_KEY_TEXT bytes are replaced by their hash, after a "+". The second child with the same key has ",2"
 * after it, and so on. So no key contains a bracket, and an id can be parsed from either end.
 */
#ifndef STET_GRAPH_CHILD_H
#define STET_GRAPH_CHILD_H

#include "graph/process.h"

#define STET_CHILD_MAX_DEPTH 8     /* nesting of patterns */
#define STET_CHILDREN_MAX    50000 /* per coordinator: all may have to be created in one commit */
#define STET_CHILD_KEY_TEXT  64
#define STET_CHILD_SHAPE     "-[-]" /* the instance that a template is built as */
#define STET_CHILD_ID_MAX    300    /* bytes of a node's id, so that ids of its documents fit */
/* Ranks reserved for a chain of children, whose length is not known in advance. */
#define STET_CHILD_CHAIN 1048576

typedef enum stet_child_role {
    STET_CHILD_NONE, /* not a coordinator */
    STET_CHILD_MAP,
    STET_CHILD_FILTER,
    STET_CHILD_REDUCE,
    STET_CHILD_RETURNS /* its result is a pattern */
} stet_child_role;
/* `row` is a node's, as authored or in the graph. */
stet_child_role stet_child_role_of(stet_value row);
/* Does this input go to the coordinator itself, and not to its children? */
bool stet_child_input_own(stet_child_role role, const char *name, size_t len);

bool stet_child_id_valid(const char *id, size_t len); /* of a node, a child's or not */
/* The length of the instance in an id: that of "rows[7]" in "rows[7].double"; 0: not the id of a child's node. */
size_t stet_child_instance(const char *id);
/* The coordinator of an instance: "rows" or, if `hidden`, that of a filter, "rows[]". Caller frees. */
char *stet_child_coordinator(const char *instance, size_t len, bool hidden);
/* "rows[7]" from coordinator "rows" (or "rows[]") and key text "7". Caller frees. */
char *stet_child_instance_id(const char *coordinator, const char *key);
/* Key text of a key. */
void stet_child_key_text(stet_value key, stet_buf *out);

typedef struct stet_template {
    stet_pattern *pattern;
    stet_process *shape; /* with ranks; ids of documents in it mean nothing */
    stet_hash hash;
    uint32_t span; /* ranks that a child needs, its own children included */
    int height;    /* patterns inside each other, this one included */
    int64_t effects, restarts, verifiers;
    stet_value passes; /* what it takes as cells (cells.h) */
    bool index;        /* it uses argument/index */
    size_t fresh;      /* memory used when the pattern was read */
} stet_template;

typedef struct stet_templates {
    stet_map by_hash;
} stet_templates;
void stet_templates_release(stet_templates *t);
/* The template of a pattern, which is kept. `modules` may be NULL. STET_LIMIT: nested too deeply. */
STET_CHECKED stet_status stet_template_of(stet_templates *all, stet_value pattern, const stet_process_modules *modules,
                                          int depth, stet_template **out, stet_error *err);

stet_template *stet_template_find(const stet_templates *all, stet_hash hash); /* NULL: not there */

/* Rows of one child, {ID: ROW}, or of one of its nodes (`only`, its name in the template). The coordinator's row
 * provides order and outer bindings. */
STET_CHECKED stet_status stet_child_rows(stet_template *t, const char *piece, const char *coordinator,
                                         stet_value coordinator_row, const char *instance, const char *only,
                                         const stet_process_modules *modules, stet_value *out, stet_error *err);
/* A link into the document of a child: argument/element, result. */
stet_value stet_child_place(const char *piece, const char *instance, const char *first, const char *second);
/* Is a binding a single cell? Then the output of a coordinator links to it directly. */
bool stet_child_is_cell(stet_value binding);
/* The initial value of a chain. Caller releases. */
stet_value stet_child_initial(stet_value coordinator_row);
/* The binding of its result. */
stet_value stet_child_result(stet_template *t, const char *piece, stet_value coordinator_row, const char *instance);

/* Loads values of documents; the caller of `load` releases the value; null if there is none. */
typedef struct stet_child_docs {
    void *ctx;
    stet_status (*load)(void *ctx, const char *id, stet_value *value, stet_error *err);
} stet_child_docs;

/* piece:NAME:children:COORDINATOR. Everything is borrowed from the value read. */
typedef struct stet_child_index {
    int64_t serial; /* counts changes */
    stet_value template, nodes, cells, keys, prints, pattern;
    size_t count;
} stet_child_index;
/* A fingerprint of what a child was given: its element and, where they count, its place (or -1) and its predecessor's
 * key (or NULL). */
stet_value stet_child_print(stet_value element, int64_t place, const char *before);
/* False: it is malformed. An empty one is valid: no children. */
bool stet_child_index_read(stet_value v, stet_child_index *out);
char *stet_child_index_doc(const char *piece, const char *coordinator); /* caller frees */

struct stet_piece;
/* Computes the row of a child's node, from those of the coordinators above it. */
STET_CHECKED stet_status stet_child_row(const stet_child_docs *docs, const struct stet_piece *p, const char *node,
                                        const stet_process_modules *modules, stet_templates *all, stet_value *row,
                                        stet_error *err);
/* The template of a coordinator. `row` is its row. STET_NOT_FOUND: it has not returned a pattern yet. */
STET_CHECKED stet_status stet_child_template(const stet_child_docs *docs, const char *piece, const char *coordinator,
                                             stet_value row, const stet_process_modules *modules, stet_templates *all,
                                             stet_template **out, stet_error *err);
/* Adds the rows of all children of all coordinators of `g`, recursively. If a coordinator has not run since its
 * template changed, these are the rows that the children were made with. */
STET_CHECKED stet_status stet_child_add_all(const stet_child_docs *docs, stet_process *g,
                                            const stet_process_modules *modules, stet_error *err);

/* Visits everything that belongs to children, for teardown. `node`: the id of a removed action, its failure too. `doc`:
 * the id of a document. */
typedef struct stet_child_visitor {
    void *ctx;
    stet_status (*node)(void *ctx, const char *id, stet_error *err);
    stet_status (*doc)(void *ctx, const char *id, stet_error *err);
} stet_child_visitor;
/* Visits one child and its own children. `index` is its coordinator's. */
STET_CHECKED stet_status stet_child_walk(const stet_child_docs *docs, const char *piece, const stet_child_index *index,
                                         const char *instance, const stet_child_visitor *visit, stet_error *err);
/* Visits all children of a coordinator, and its index. Does nothing if it has none. */
STET_CHECKED stet_status stet_child_walk_all(const stet_child_docs *docs, const char *piece, const char *coordinator,
                                             const stet_child_visitor *visit, stet_error *err);

#endif
