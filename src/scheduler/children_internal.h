/* children_internal.h - what the files about children of an action share. Nobody else includes it.
 *
 * children.c compares the list with the index and writes index and output; children_one.c makes, changes and tears down
 * one child; children_plan.c tells the plan what follows, and looks after what others do to children. graph/child.h
 * says what children are.
 *
 * Invariants
 *   K1. Everything that a run of a coordinator does to its children is in the transaction of that run: their documents,
 *       the index, the output, actions made known as unknown, actions forgotten, failures taken back.
 *   K2. The index says which children there are and what each was given. Nobody else is asked: a coordinator that is
 *       run because one element changed compares the list with the index, and writes what differs.
 *   K3. A run of a child's node reads the document of the child, so that it can't be stored after the child is gone.
 *   K4. A coordinator that is unknown looks at every child: whose record is missing or of other code becomes unknown.
 */
#ifndef STET_SCHEDULER_CHILDREN_INTERNAL_H
#define STET_SCHEDULER_CHILDREN_INTERNAL_H

#include "scheduler/sched_internal.h"

/* What was given to the children last, by this process: spares a hash for each element that is the same. */
typedef struct sched_children {
    int64_t serial; /* of the index it belongs to */
    stet_value keys, elements;
    stet_map places; /* of a chain: key -> ranks above the first */
} sched_children;

typedef STET_VEC(char *) name_list;
struct sched_lists {
    name_list made, gone;
    name_list moved; /* nodes of links of a chain that may have another predecessor */
};

/* One run of a coordinator. */
typedef struct reconciling {
    action_run *r;
    stet_sched *s;
    sched_action *a;
    stet_tx *tx;
    const char *piece;
    stet_child_role role;
    stet_template *t;
    stet_process_modules modules;
    stet_child_docs docs;
    char *index_id;
    stet_value hold; /* the index as it was */
    stet_child_index old;
    stet_map positions; /* key -> position in the old index + 1; made when it is first asked for */
    bool mapped;
    bool same;  /* the template is the one that the children were made from */
    bool full;  /* K4 */
    bool known; /* `memory` is about the old index */
    sched_children *memory;
    stet_value failures;
    bool plain; /* the result of a child is a cell: the output leads there at once */
} reconciling;

/* ---- children_one.c: documents through the transaction */

/* For stet_child_docs: the value of a document as the transaction `ctx` sees it; null if there is none. */
stet_status children_peek(void *ctx, const char *id, stet_value *value, stet_error *err);
bool children_doc_there(stet_tx *tx, const char *id);
/* Was this document written after the index? Also true where there is no telling. */
bool children_written_after(stet_sched *s, const stet_docname *name, const char *index_id);
STET_CHECKED stet_status children_put(stet_tx *tx, const char *id, stet_value value, stet_error *err); /* consumes */
void children_value_path(stet_path *path, const char *key);

/* ---- children_one.c: one child */

STET_CHECKED stet_status children_make(reconciling *x, const stet_run_child *at, size_t i, stet_error *err);
STET_CHECKED stet_status children_give(reconciling *x, const stet_run_child *at, size_t i, stet_error *err);
/* Another template, or records that can't be trusted (K4). */
STET_CHECKED stet_status children_look_at(reconciling *x, const stet_run_child *at, size_t i, stet_error *err);
STET_CHECKED stet_status children_tear_down(reconciling *x, const char *key, stet_error *err);
/* What a child is given, in few bytes. */
stet_value children_print_of(const reconciling *x, const stet_run_child *at, size_t i);
/* Where the result of a child is found. */
stet_value children_result_link(const reconciling *x, const char *key);

#endif
