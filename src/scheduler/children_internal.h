/* children_internal.h - what the files about children of an action share. Not included anywhere else.
 *
 *   children.c         compares the list with the index, and writes index and output
 *   children_one.c     creates, changes and tears down one child
 *   children_plan.c    tells the plan what follows, and handles what others do to children
 *
 * graph/child.h describes children.
 *
 * Invariants
 *
 *   K1. Everything that a run of a coordinator does to its children is in the transaction of that run: their documents,
 *       the index, the output, actions that become known as unknown, actions that are forgotten. Of a run that fails
 *       only its reads are stored.
 *   K2. The index alone says which children exist and what each was given: a coordinator that runs because one element
 *       changed compares the list with the index, and writes the difference.
 *   K3. A run of a child's node reads the document of the child, so that it can't be stored after the child is gone.
 *   K4. A coordinator that is unknown looks at every child: a child whose record is missing or of other code becomes
 *       unknown. One that the record calls unknown already is left alone: another process may be running it, and what
 *       that stores before this run is stored must not be lost.
 */
#ifndef STET_SCHEDULER_CHILDREN_INTERNAL_H
#define STET_SCHEDULER_CHILDREN_INTERNAL_H

#include "scheduler/sched_internal.h"

/* What this process last gave to the children: saves a hash for each unchanged element. */
typedef struct sched_children {
    int64_t serial; /* of the index it belongs to */
    stet_value keys, elements;
    stet_map places; /* for a chain: key -> ranks above the first */
} sched_children;

typedef STET_VEC(char *) name_list;
struct sched_lists {
    name_list made, gone;
    name_list known; /* children that are there, and unknown in the record */
    name_list moved; /* nodes of chain links whose predecessor may have changed */
    bool renewed;    /* children that stay have another template */
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
    stet_map positions; /* key -> position in the old index + 1; made on first use */
    bool mapped;
    bool same;  /* the children were made from this template */
    bool full;  /* K4 */
    bool known; /* `memory` is about the old index */
    sched_children *memory;
    bool plain;        /* the result of a child is a cell: the output links to it directly */
    bool passes_cells; /* removed nodes may have written into cells that stay */
} reconciling;

/* In children_one.c: documents through the transaction. */

/* For stet_child_docs: the value of a document as the transaction of `ctx`, a reconciling, sees it; null: none. */
stet_status children_peek(void *ctx, const char *id, stet_value *value, stet_error *err);
bool children_doc_there(stet_tx *tx, const stet_docname *name);
/* Was this document written after the index? True if unsure. */
bool children_written_after(stet_sched *s, const stet_docname *name, const stet_docname *index);
STET_CHECKED stet_status children_put(reconciling *x, const char *id, stet_value value, stet_error *err); /* consumes */
void children_value_path(stet_path *path, const char *key);

/* In children_one.c: one child. */

STET_CHECKED stet_status children_make(reconciling *x, const stet_run_child *at, size_t i, stet_error *err);
STET_CHECKED stet_status children_give(reconciling *x, const stet_run_child *at, size_t i, stet_error *err);
/* For another template, or records that can't be trusted (K4). */
STET_CHECKED stet_status children_look_at(reconciling *x, const stet_run_child *at, size_t i, stet_error *err);
STET_CHECKED stet_status children_tear_down(reconciling *x, const char *key, stet_error *err);
/* A fingerprint of what a child is given. */
stet_value children_print_of(const reconciling *x, const stet_run_child *at, size_t i);
/* A link to the result of a child. */
stet_value children_result_link(const reconciling *x, const char *key);

#endif
