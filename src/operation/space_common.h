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

/* The arguments that most operations share, with the space open. */
typedef struct space_call {
    stet_space *space;
    int64_t branch;
    const char *space_name, *branch_name, *scope;
    stet_value hold[4]; /* keeps the texts above */
} space_call;

typedef enum space_access { SPACE_READ, SPACE_WRITE } space_access;
/* Opens the space that the arguments name. To read, it must exist: STET_NOT_FOUND. Close with space_end. */
STET_CHECKED stet_status space_begin(stet_op_ctx *ctx, stet_value args, space_access access, space_call *c,
                                     stet_error *err);
/* The same for lists. If the default space was never written, that is not an error: *none, and the list is empty. */
STET_CHECKED stet_status space_begin_list(stet_op_ctx *ctx, stet_value args, space_call *c, bool *none,
                                          stet_error *err);
void space_end(space_call *c);

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
