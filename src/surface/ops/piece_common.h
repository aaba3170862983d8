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
#define PIECE_PARAM_ONLY_PIECE                                                                                         \
    {                                                                                                                  \
        .name = "piece", .type = STET_PARAM_STRING, .flags = STET_PARAM_POSITIONAL, .metavar = "PIECE",                \
        .summary = "Name of the piece; may be left out where there is only one"                                        \
    }
#define PIECE_PARAM_ACTION(more)                                                                                       \
    {                                                                                                                  \
        .name = "action", .type = STET_PARAM_STRING, .flags = STET_PARAM_POSITIONAL | (more), .metavar = "ACTION",     \
        .summary = "Id of the node"                                                                                    \
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
typedef enum piece_access { PIECE_READ, PIECE_WRITE } piece_access;
/* Opens the space that the arguments name. A project whose space was never written has no pieces: STET_NOT_FOUND.
 * PIECE_READ writes nothing at all: marks that are still owed are not fetched (stet_observe_owed tells of them). */
STET_CHECKED stet_status piece_begin(stet_op_ctx *ctx, stet_value args, piece_access access, piece_call *c,
                                     stet_error *err);
void piece_end(piece_call *c);

/* The piece that the arguments name; without a name the only one that there is. STET_INVALID lists them if there are
 * several. The caller frees it. */
STET_CHECKED stet_status piece_pick(piece_call *c, stet_value args, stet_piece **out, stet_error *err);

/* {"action","state","failed","cause"?}, and with `full` what is recorded of its last run. */
stet_value piece_action_value(const stet_action_record *r, stet_action_state state, bool full);
/* {"commits","spaces"} of stet_observe_owed, or null if nothing is owed; and the sentence about it. */
STET_CHECKED stet_status piece_owed(piece_call *c, stet_value *out, stet_error *err);
void piece_render_owed(stet_render *r, stet_value owed);
/* What is told rests on files too, and those were last looked at by a run, a scan or a watch: `filesLookedAt` of a
 * result is false then, and left out if no file is followed. And the line about it. */
void piece_put_files(piece_call *c, stet_value *result);
void piece_render_files(stet_render *r, stet_value result);
/* The message of a failure, without the name of the action if it begins with that: it is told beside it. */
void piece_render_message(stet_buf *out, stet_value failure, const char *piece, const char *node);

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
