/* piece_common.h - what the operations over patterns, pieces and actions share. */
#ifndef STET_SURFACE_OPS_PIECE_COMMON_H
#define STET_SURFACE_OPS_PIECE_COMMON_H

#include "drive/drive.h"
#include "surface/op.h"

#define PIECE_PARAM_SPACE                                                                                              \
    {                                                                                                                  \
        .name = "space", .type = STET_PARAM_STRING, .metavar = "NAME", .summary = "The space that the piece lives in", \
        .default_json = "\"main\""                                                                                     \
    }
#define PIECE_PARAM_BRANCH                                                                                             \
    {                                                                                                                  \
        .name = "branch", .type = STET_PARAM_STRING, .metavar = "NAME",                                                \
        .summary = "The branch; the empty name is the default branch", .default_json = "\"\""                          \
    }
#define PIECE_PARAM_PIECE                                                                                              \
    {                                                                                                                  \
        .name = "piece", .type = STET_PARAM_STRING, .flags = STET_PARAM_REQUIRED | STET_PARAM_POSITIONAL,              \
        .metavar = "PIECE", .summary = "Name of the piece"                                                             \
    }

/* A string argument, or `otherwise`. `hold` keeps it. */
const char *piece_text(stet_value args, const char *name, const char *otherwise, stet_value *hold);

/* A project's space opened for a piece, with the scheduler's view of it. */
typedef struct piece_call {
    stet_project *project;
    stet_space *space;
    stet_sched *sched;
    int64_t branch;
    stet_value hold[3];
    const char *space_name, *branch_name;
} piece_call;
/* Opens the space that the arguments name. A project whose space was never written has no pieces: STET_NOT_FOUND. */
STET_CHECKED stet_status piece_begin(stet_op_ctx *ctx, stet_value args, piece_call *c, stet_error *err);
void piece_end(piece_call *c);

/* A string cut short for people, as it stands in a value. */
void piece_render_text(stet_render *r, stet_value text);
/* "ran 3, stood 97, failed 0 in 0.12 s", preceded by what failed. */
void piece_render_outcome(stet_render *r, stet_value result);
stet_status piece_outcome_verdict(stet_value result);
extern const char piece_outcome_schema[];
/* Drives with the context's progress and cancellation. */
STET_CHECKED stet_status piece_drive(stet_op_ctx *ctx, stet_drive_spec *spec, stet_value *result, stet_error *err);

/* Makes a cell fresh and reads it, links followed (`get --fresh`). The caller releases `*out`. */
STET_CHECKED stet_status piece_fresh(stet_op_ctx *ctx, stet_value args, const stet_docname *name, stet_pathref path,
                                     stet_value *out, stet_error *err);

#endif
