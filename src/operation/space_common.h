/* space_common.h - what the operations on spaces share. */
#ifndef STET_OPERATION_SPACE_COMMON_H
#define STET_OPERATION_SPACE_COMMON_H

#include "memory/space.h"
#include "operation/op.h"

#define PARAM_SPACE                                                                                                    \
    {                                                                                                                  \
        .name = "space", .type = STET_PARAM_STRING, .metavar = "NAME", .summary = "The space",                         \
        .default_json = "\"main\""                                                                                     \
    }
#define PARAM_BRANCH                                                                                                   \
    {                                                                                                                  \
        .name = "branch", .type = STET_PARAM_STRING, .metavar = "NAME",                                                \
        .summary = "The branch; the empty name is the default branch", .default_json = "\"\""                          \
    }
#define PARAM_SCOPE                                                                                                    \
    {                                                                                                                  \
        .name = "scope", .type = STET_PARAM_STRING, .metavar = "NAME",                                                 \
        .summary = "The scope, such as user:x; the empty name is the common one", .default_json = "\"\""               \
    }
#define PARAM_META                                                                                                     \
    {                                                                                                                  \
        .name = "meta", .type = STET_PARAM_BOOL,                                                                       \
        .summary = "Address the whole document, metadata and value, not the value alone"                               \
    }
#define PARAM_LIMIT                                                                                                    \
    {                                                                                                                  \
        .name = "limit", .type = STET_PARAM_INT, .metavar = "N", .summary = "At most so many", .default_json = "100",  \
        .min = 1, .max = 10000                                                                                         \
    }

/* The arguments that most operations share, with the space open:
 *
 *     static stet_status read_seq(space_call *c, stet_value args, stet_value *result, stet_error *err) {
 *         int64_t seq;
 *         stet_status status = stet_space_seq(c->space, &seq, err);
 *         if (status != STET_OK)
 *             return status; // space_run releases what the call holds
 *         *result = stet_value_int(seq);
 *         return STET_OK;
 *     }
 *     static stet_status run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
 *         return space_run(ctx, args, SPACE_READ, read_seq, result, err);
 *     }
 */
typedef struct space_call {
    stet_op_ctx *ctx;
    stet_space *space;
    int64_t branch;
    const char *space_name, *branch_name, *scope;
    stet_value hold[4]; /* keeps the texts above */
    stet_docname doc;   /* set by space_cell */
    stet_path path;
    char *id;         /* of `doc` */
    stet_arena arena; /* for what the operation lists */
} space_call;

/* SPACE_READ: the space must exist. SPACE_LIST: if the default space was never written, the function is called with
 * `space` NULL, because an empty list is not an error. */
typedef enum space_access { SPACE_READ, SPACE_LIST, SPACE_WRITE } space_access;
typedef stet_status space_fn(space_call *c, stet_value args, stet_value *result, stet_error *err);
/* Opens the space that the arguments name, calls the function and closes the space. */
STET_CHECKED stet_status space_run(stet_op_ctx *ctx, stet_value args, space_access access, space_fn *fn,
                                   stet_value *result, stet_error *err);
/* The same in two steps, for an operation that needs more than one space. */
STET_CHECKED stet_status space_begin(stet_op_ctx *ctx, stet_value args, space_access access, space_call *c,
                                     stet_error *err);
void space_end(space_call *c);
/* Reads the argument `cell` into `doc` and `path`; with the argument `meta`, of the whole document. */
STET_CHECKED stet_status space_cell(space_call *c, stet_value args, stet_error *err);

/* Path as a JSON Pointer. */
stet_value space_pointer(stet_pathref path);
/* [{"path","kind"}] */
stet_value space_leaves(const stet_change *at, size_t len);
/* Renders one line per change, " value /value/n". */
void space_render_changes(stet_render *r, stet_value changes, bool ids);

/* In space_readers.c: adds what is recorded about actions of a space; and renders "3 changed, 1 never" from its member
 * `marks`. */
STET_CHECKED stet_status observe_stats(stet_space *s, stet_value *result, stet_error *err);
void observe_render_marks(stet_render *r, stet_value marks);

#endif
