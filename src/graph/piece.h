/* piece.h - pieces as they are stored: the result document that owns one, its argument, its cells, its graph.
 *
 *     stet_piece *p;
 *     status = stet_piece_load(space, branch, "totals", &p, &err);            // STET_NOT_FOUND: there is none
 *     status = stet_piece_row(space, branch, p, "total", &row, &err);         // one node, without loading the others
 *     stet_piece_free(p);
 *
 * Setting up writes everything in one group, which is stored as one SQLite transaction:
 *
 *     stet_piece_setup s = {.process = g, .pattern = pattern, .before = old, .group = group, ...};
 *     status = stet_piece_write_rows(&s, &err);       // members of their own
 *     status = stet_piece_write(tx, &s, &err);        // tx is begun in the group, and added after this
 *
 * Programs (`program:HASH`) and schemas (`schema:HASH`) are stored once, by hash, before that (stet_piece_keep_*): a
 * hash that nobody refers to does no harm.
 *
 * Opening a piece reads its result document alone, whatever the size of its graph.
 */
#ifndef STET_GRAPH_PIECE_H
#define STET_GRAPH_PIECE_H

#include "graph/process.h"
#include "memory/space.h"

typedef struct stet_piece {
    char *name, *doc;
    int64_t generation;
    uint32_t chunks;
    size_t node_count;
    size_t effect_count; /* nodes that are effects, and of them those that run at every start */
    size_t restart_count;
    bool has_children;    /* some of its nodes are coordinators: there are more actions than nodes */
    size_t handler_count; /* nodes that are event handlers: no actions, they neither stand nor run by themselves */
    stet_hash program, runtime;
    bool stopped;
    bool closed;         /* its bindings are known to lead to documents of pieces alone: it reads no files */
    stet_value envelope; /* of the result document */
    int64_t seq;         /* of its newest revision */
} stet_piece;

STET_CHECKED stet_status stet_piece_load(stet_space *s, int64_t branch, const char *name, int64_t at, stet_piece **out,
                                         stet_error *err);
void stet_piece_free(stet_piece *p);
/* Stands for the version that ran a piece (`runtime`) if nothing is recorded of what its graph is now: it is none that
 * ever ran, so that whoever records takes no older record of the piece for one of this graph. */
stet_hash stet_piece_unrecorded(void);
/* Names of pieces after `after` (NULL: all), at most `limit`; an array of strings. */
STET_CHECKED stet_status stet_piece_names(stet_space *s, int64_t branch, const char *after, size_t limit,
                                          stet_value *out, bool *more, stet_error *err);
/* One row; the caller releases it. */
STET_CHECKED stet_status stet_piece_row(stet_space *s, int64_t branch, const stet_piece *p, const char *node,
                                        stet_value *row, stet_error *err);
/* Adds the rows of children to a graph that was read at the same sequence. `modules` may be NULL. */
STET_CHECKED stet_status stet_piece_children(stet_space *s, int64_t branch, int64_t at, stet_process *g,
                                             const stet_process_modules *modules, stet_error *err);
/* The whole graph without children, at a sequence or (negative) now. */
STET_CHECKED stet_status stet_piece_process(stet_space *s, int64_t branch, const stet_piece *p, int64_t at,
                                            stet_process **out, stet_error *err);
/* {HASH: schema} of what the rows of a graph refer to. */
STET_CHECKED stet_status stet_piece_schemas(stet_space *s, int64_t branch, const stet_process *g, stet_value *out,
                                            stet_error *err);
/* The sequence at which a generation of the piece was set up; STET_NOT_FOUND. */
STET_CHECKED stet_status stet_piece_generation_seq(stet_space *s, int64_t branch, const stet_piece *p,
                                                   int64_t generation, int64_t *seq, stet_error *err);

/* Store a program (before its pattern is used up), and the schemas of a graph, as far as they are not there. */
STET_CHECKED stet_status stet_piece_keep_program(stet_space *s, const char *branch, const stet_pattern *p,
                                                 stet_error *err);
STET_CHECKED stet_status stet_piece_keep_schemas(stet_space *s, const char *branch, const stet_process *g,
                                                 stet_error *err);

typedef struct stet_piece_setup {
    const stet_process *process;
    const stet_pattern *pattern;
    const stet_piece *before;           /* what is there, or NULL */
    const stet_process *before_process; /* its graph, if before is given */
    const stet_process_diff *diff;
    stet_hash runtime;
    stet_group *group;  /* of the transaction: rows are members of their own, so that one is read without the others */
    const char *branch; /* name of the branch it is set up on */
    stet_value source;  /* where the program came from, or null */
    stet_value set;     /* {KEY or POINTER: value} for the argument, or null */
} stet_piece_setup;
/* Result document, argument, cells, rows; outputs of nodes that are gone are deleted. Generation of `process` must be
 * set. */
/* Rows first. Each of its transactions reads the result document, so that a conflict there drops them all. */
STET_CHECKED stet_status stet_piece_write_rows(const stet_piece_setup *s, stet_error *err);
STET_CHECKED stet_status stet_piece_write(stet_tx *tx, const stet_piece_setup *s, stet_error *err);
/* Sets parts of the argument: {KEY or /POINTER: value}. `schema` is what the whole must match then, or null. */
STET_CHECKED stet_status stet_piece_set_argument(stet_tx *tx, const char *piece, stet_value set, stet_value schema,
                                                 stet_error *err);
/* Member of the result document's envelope that marks a piece as stopped. */
STET_CHECKED stet_status stet_piece_set_stopped(stet_tx *tx, const stet_piece *p, bool stopped, stet_error *err);
/* Drops up to `max` documents that the piece owns, the result document first; `*more`: not all are gone yet. */
STET_CHECKED stet_status stet_piece_drop(stet_tx *tx, stet_space *s, int64_t branch, const char *name, size_t max,
                                         bool *more, stet_error *err);

/* Are the children of pieces there that the indexes name, documents and records, and no others? Is there a record of
 * each action of a piece, and of no other? On the default branch. One line per problem. With `repair` what is left over
 * goes, and an action without a record, and who misses a child, is unknown. */
STET_CHECKED stet_status stet_children_check(stet_space *s, bool repair, stet_buf *problems, size_t *found,
                                             size_t *repaired, stet_error *err);

#endif
