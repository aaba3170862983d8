/* piece.h - stored pieces: the result document that owns one, its argument, its cells, its graph.
 *
 *     stet_piece *p;
 *     stet_status status = stet_piece_load(space, branch, "totals", -1, &p, &err); // STET_NOT_FOUND: no such piece
 *     if (status != STET_OK)
 *         return status;
 *     stet_value row; // one node, without loading the others
 *     status = stet_piece_row(space, branch, p, "total", &row, &err);
 *     stet_piece_free(p);
 *
 * Setting up writes everything in one group, which is stored as one SQLite transaction:
 *
 *     stet_piece_setup s = {.process = g, .pattern = pattern, .before = old, .group = group};
 *     stet_status status = stet_piece_write_rows(&s, &err); // members of their own
 *     if (status == STET_OK) // tx was begun in the group, and is added after this
 *         status = stet_piece_write(tx, &s, &err);
 *
 * Programs (`program:HASH`) and schemas (`schema:HASH`) are stored once, by hash, before that (stet_piece_keep_*): a
 * hash that nothing refers to does no harm.
 *
 * Opening a piece reads only its result document, whatever the size of its graph.
 */
#ifndef STET_GRAPH_PIECE_H
#define STET_GRAPH_PIECE_H

#include "graph/process.h"
#include "memory/space.h"

typedef struct stet_piece {
    char *name;  /* NAME or NAME@SCOPE (process.h) */
    char *doc;   /* "piece:NAME", the id of the result document */
    char *scope; /* of every document that the piece owns; "" is the common one */
    char *key;   /* what the scheduler knows it by: "piece:NAME" or "piece:NAME@SCOPE" */
    int64_t generation;
    uint32_t chunks;
    size_t node_count;
    size_t effect_count; /* nodes that are effects; restart_count: those that run at every start */
    size_t restart_count;
    bool has_verifiers; /* some of its nodes, or possibly of its children's, are verifiers */
    bool has_children;  /* some of its nodes are coordinators: there are more actions than nodes */
    /* Nodes that are event handlers: not actions, they have no state and do not run by themselves. */
    size_t handler_count;
    stet_hash program, runtime;
    bool stopped;
    bool marked;         /* its last set-up knew STET_PROCESS_MARKED */
    bool rebuild;        /* its graph is damaged, or of an older form: it must be set up again */
    bool closed;         /* its bindings lead only to documents of pieces: it reads no files */
    stet_value envelope; /* of the result document */
    int64_t seq;         /* of its newest revision */
} stet_piece;

STET_CHECKED stet_status stet_piece_load(stet_space *s, int64_t branch, const char *name, int64_t at, stet_piece **out,
                                         stet_error *err);
void stet_piece_free(stet_piece *p);
/* Names a document that the piece owns; `id` is borrowed. NULL: its result document. */
stet_docname stet_piece_name(const stet_piece *p, const char *id);
/* The key of one of its actions, and whether an action is one of its own. */
stet_action_key stet_piece_action(const stet_piece *p, const char *node);
bool stet_piece_has(const stet_piece *p, const stet_action_key *key);
/* A `runtime` that never ran anything. It is stored for a piece if nothing is recorded about its current graph, so that
 * no older record of the piece is mistaken for one of this graph. */
stet_hash stet_piece_unrecorded(void);
/* Visits every piece, in one snapshot. A piece that can't be loaded is skipped: operations that show it report that.
 * `each` must not write to the space. */
STET_CHECKED stet_status stet_piece_each(stet_space *s, int64_t branch, void (*each)(void *ctx, const stet_piece *p),
                                         void *ctx, stet_error *err);
/* Pieces of all scopes after `after` (NULL: all), at most `limit`; an array of strings. Pieces of one name stand
 * together, by their scopes. */
STET_CHECKED stet_status stet_piece_names(stet_space *s, int64_t branch, const char *after, size_t limit,
                                          stet_value *out, bool *more, stet_error *err);
/* One row; the caller releases it. */
STET_CHECKED stet_status stet_piece_row(stet_space *s, int64_t branch, const stet_piece *p, const char *node,
                                        stet_value *row, stet_error *err);
/* Adds the rows of children to a graph that was read at the same sequence. `modules` may be NULL. */
STET_CHECKED stet_status stet_piece_children(stet_space *s, int64_t branch, int64_t at, stet_process *g,
                                             const stet_process_modules *modules, stet_error *err);
/* The whole graph without children, at a sequence or, if `at` is negative, now. */
STET_CHECKED stet_status stet_piece_process(stet_space *s, int64_t branch, const stet_piece *p, int64_t at,
                                            stet_process **out, stet_error *err);
/* The schemas that the rows of a graph refer to: {HASH: schema}. */
STET_CHECKED stet_status stet_piece_schemas(stet_space *s, int64_t branch, const stet_process *g, stet_value *out,
                                            stet_error *err);
/* The sequence at which a generation of the piece was set up; STET_NOT_FOUND: no such generation. */
STET_CHECKED stet_status stet_piece_generation_seq(stet_space *s, int64_t branch, const stet_piece *p,
                                                   int64_t generation, int64_t *seq, stet_error *err);

/* Store a program (before its pattern is used up), and the schemas of a graph, if they are not stored yet. */
STET_CHECKED stet_status stet_piece_keep_program(stet_space *s, const char *branch, const stet_pattern *p,
                                                 stet_error *err);
STET_CHECKED stet_status stet_piece_keep_schemas(stet_space *s, const char *branch, const stet_process *g,
                                                 stet_error *err);

/* Member of `process`: overrides of argument and cells are marked (argument.h, A5). A piece without it is set up again,
 * even by the same program. */
#define STET_PROCESS_MARKED "marked"
/* Member of `process`: its rows tell where they may write (cells.h). A piece without it is set up again, too. */
#define STET_PROCESS_ENVELOPES "envelopes"

typedef struct stet_piece_setup {
    const stet_process *process;
    const stet_pattern *pattern;
    const stet_piece *before;           /* the existing piece, or NULL */
    const stet_process *before_process; /* its graph, if before is given */
    const stet_process_diff *diff;
    stet_hash runtime;
    int64_t branch;
    /* The group of the transaction. Rows are members of their own, so that one can be read without the others. */
    stet_group *group;
    stet_value source; /* where the program came from, or null */
    stet_value set;    /* {KEY or POINTER: value} for the argument, or null */
    stet_value unset;  /* names of overrides to remove first (argument.h), or null */
} stet_piece_setup;
/* Names of the other pieces that the bindings lead to, which come first in the order of running; an array that belongs
 * to the caller. `*closed`: bindings lead only to pieces, and no module has its code in a file or names environment
 * variables. */
stet_value stet_process_linked(const stet_process *g, bool *closed);
/* Writes the rows; call it first. Each of its transactions reads the result document, so that a conflict there drops
 * them all. */
STET_CHECKED stet_status stet_piece_write_rows(const stet_piece_setup *s, stet_error *err);
/* Writes result document, argument and cells; deletes outputs of removed nodes. The generation of `process` must be
 * set. */
STET_CHECKED stet_status stet_piece_write(stet_tx *tx, const stet_piece_setup *s, stet_error *err);
/* Sets the member of the result document's envelope that marks a piece as stopped. */
STET_CHECKED stet_status stet_piece_set_stopped(stet_tx *tx, const stet_piece *p, bool stopped, stet_error *err);
/* Marks a piece with a damaged graph to be set up again (`rebuild`). */
STET_CHECKED stet_status stet_piece_set_rebuild(stet_tx *tx, const stet_piece *p, stet_error *err);
/* Deletes up to `max` documents that the piece owns, the result document first; `*more`: some are left. */
STET_CHECKED stet_status stet_piece_drop(stet_tx *tx, stet_space *s, int64_t branch, const char *name, size_t max,
                                         bool *more, stet_error *err);

/* Checks, on the default branch, that the documents and records of children are exactly those that the indexes name,
 * and that there is a record for each action of a piece and for no other. Adds one line per problem. With `repair`
 * leftovers are deleted; an action without a record, and a coordinator that misses a child, become unknown. */
STET_CHECKED stet_status stet_children_check(stet_space *s, bool repair, stet_buf *problems, size_t *found,
                                             size_t *repaired, stet_error *err);

#endif
