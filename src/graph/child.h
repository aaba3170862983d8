/* child.h - children: graphs that a node of a graph brings forth while it runs.
 *
 * A coordinator is a node that has children: `map`, `filter` and `reduce` have one for each element of a list, an
 * action that returns a pattern has one. The pattern of a child is a template. A child is an instance of it:
 *
 *     rows[7]              the child of coordinator "rows" for the element with key 7
 *     rows[7].double       its node "double"
 *     rows[7].inner[x].y   a node of a child of its node "inner"
 *     filtered[]           the coordinator of the filter "filtered", whose children are filtered[KEY]
 *     made[]               the only child of "made", an action that returns a pattern
 *
 * It owns these documents, which go when it goes:
 *
 *     piece:NAME:child:INSTANCE           {"argument": {"element", ...}, "result"?}; as long as this is, the child is
 *     piece:NAME:node:INSTANCE.NODE       outputs of its nodes, {"$stream": true} for a handler's own stream
 *     piece:NAME:cell:INSTANCE.CELL       its named cells
 *
 * and a coordinator owns
 *
 *     piece:NAME:children:COORDINATOR     which children there are: {"serial", "template", "nodes", "cells", "keys",
 *                                         "prints", "pattern"?}; keys in the order of the list, prints of their
 *                                         arguments beside
 *
 * Rows of children are not stored: a row follows from the coordinator's row (which holds the template) and the key. So
 * a new child costs one small document and one entry of the index, whatever the size of its graph.
 *
 * Keys. A key is a value; its text in an id is the string itself, or JSON for what is none (and for strings that look
 * like it), every byte but letters, digits, "_", "-" and "." as %XX; arrays, objects and what is longer than
 * STET_CHILD_KEY_TEXT bytes by their hash, after a "+". The second child with one key has ",2" behind it, and so on. So
 * no key has a bracket in it, and an id is read from either end.
 */
#ifndef STET_GRAPH_CHILD_H
#define STET_GRAPH_CHILD_H

#include "graph/process.h"

#define STET_CHILD_MAX_DEPTH 8     /* patterns inside each other */
#define STET_CHILDREN_MAX    50000 /* of one coordinator: all may have to be made in one commit */
#define STET_CHILD_KEY_TEXT  64
#define STET_CHILD_ID_MAX    300     /* of a node, so that ids of its documents fit */
#define STET_CHILD_CHAIN     1048576 /* ranks left for a chain of children, whose length is not known beforehand */

typedef enum stet_child_role {
    STET_CHILD_NONE, /* no coordinator */
    STET_CHILD_MAP,
    STET_CHILD_FILTER,
    STET_CHILD_REDUCE,
    STET_CHILD_RETURNS /* its result is a pattern */
} stet_child_role;
/* `row`: of a node, as authored or in the graph. */
stet_child_role stet_child_role_of(stet_value row);
/* Is this name of an input given to the coordinator itself, and not to its children? */
bool stet_child_input_own(stet_child_role role, const char *name, size_t len);

/* ---- Ids ------------------------------------------------------------------------------------------------------ */

bool stet_child_id_valid(const char *id, size_t len); /* of a node, a child's or not */
/* "rows[7].double": the length of its instance "rows[7]"; 0: it is no child's. */
size_t stet_child_instance(const char *id);
/* The coordinator of an instance: "rows" or "rows[]". Is this a candidate's instance? Caller frees. `hidden`: the one
 * that a filter has. */
char *stet_child_coordinator(const char *instance, size_t len, bool hidden);
/* "rows[7]" from coordinator "rows" (or "rows[]") and key text "7". Caller frees. */
char *stet_child_instance_id(const char *coordinator, const char *key);
/* Key text of a key. */
void stet_child_key_text(stet_value key, stet_buf *out);

/* ---- Templates ------------------------------------------------------------------------------------------------ */

typedef struct stet_template {
    stet_pattern *pattern;
    stet_process *shape; /* with ranks; ids of documents in it mean nothing */
    stet_hash hash;
    uint32_t span; /* ranks that a child needs, its own children included */
    int64_t effects, restarts;
    bool index;   /* it names argument/index */
    size_t fresh; /* memory of the pattern when it was read */
} stet_template;

typedef struct stet_templates {
    stet_map by_hash;
} stet_templates;
void stet_templates_release(stet_templates *t);
/* The template of a pattern; kept. `modules` may be NULL. STET_LIMIT: too deep. */
STET_CHECKED stet_status stet_template_of(stet_templates *all, stet_value pattern, const stet_process_modules *modules,
                                          int depth, stet_template **out, stet_error *err);

stet_template *stet_template_find(const stet_templates *all, stet_hash hash); /* NULL: not there */

/* Rows of one child, {ID: ROW}, or of one node of it (`only`, its name in the template). The row of the coordinator
 * gives order and outer bindings. */
STET_CHECKED stet_status stet_child_rows(stet_template *t, const char *piece, const char *coordinator,
                                         stet_value coordinator_row, const char *instance, const char *only,
                                         const stet_process_modules *modules, stet_value *out, stet_error *err);
/* A place in the document of a child: argument/element, result. */
stet_value stet_child_place(const char *piece, const char *instance, const char *first, const char *second);
/* Is a binding one cell, whose value it stands for? Then the output of a coordinator leads there at once. */
bool stet_child_is_cell(stet_value binding);
/* What the first link of a chain is given. Caller releases. */
stet_value stet_child_initial(stet_value coordinator_row);
/* The binding of its result. */
stet_value stet_child_result(stet_template *t, const char *piece, stet_value coordinator_row, const char *instance);

/* ---- As stored ------------------------------------------------------------------------------------------------- */

/* Values of documents, from wherever the caller looks: the caller of `load` releases the value; null if there is none.
 */
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
/* What a child was given, in few bytes: its element, and where these count its place (or -1) and its predecessor's key
 * (or NULL). */
stet_value stet_child_print(stet_value element, int64_t place, const char *before);
/* False: it makes no sense (an empty one does: no children). */
bool stet_child_index_read(stet_value v, stet_child_index *out);
char *stet_child_index_doc(const char *piece, const char *coordinator); /* caller frees */

struct stet_piece;
/* The row of a child's node, and of the coordinators above it. */
STET_CHECKED stet_status stet_child_row(const stet_child_docs *docs, const struct stet_piece *p, const char *node,
                                        const stet_process_modules *modules, stet_templates *all, stet_value *row,
                                        stet_error *err);
/* The template of a coordinator. `row` is its row. STET_NOT_FOUND: it returned no pattern yet. */
STET_CHECKED stet_status stet_child_template(const stet_child_docs *docs, const char *piece, const char *coordinator,
                                             stet_value row, const stet_process_modules *modules, stet_templates *all,
                                             stet_template **out, stet_error *err);
/* Adds the rows of all children of all coordinators of `g`, and of theirs. */
STET_CHECKED stet_status stet_child_add_all(const stet_child_docs *docs, stet_process *g,
                                            const stet_process_modules *modules, stet_error *err);

/* Everything that belongs to children, for teardown. `node`: the id of an action that is gone, its failure too;
 * `doc`: the id of a document. */
typedef struct stet_child_visitor {
    void *ctx;
    stet_status (*node)(void *ctx, const char *id, stet_error *err);
    stet_status (*doc)(void *ctx, const char *id, stet_error *err);
} stet_child_visitor;
/* One child, with its own children. `index` is its coordinator's. */
STET_CHECKED stet_status stet_child_walk(const stet_child_docs *docs, const char *piece, const stet_child_index *index,
                                         const char *instance, const stet_child_visitor *visit, stet_error *err);
/* All children of a coordinator, and its index. Nothing if it has none. */
STET_CHECKED stet_status stet_child_walk_all(const stet_child_docs *docs, const char *piece, const char *coordinator,
                                             const stet_child_visitor *visit, stet_error *err);

#endif
