/* piece_common.h - what the operations on patterns, pieces and actions share. */
#ifndef STET_OPERATION_PIECE_COMMON_H
#define STET_OPERATION_PIECE_COMMON_H

#include "drive/drive.h"
#include "operation/op.h"
#include "scheduler/standing.h"

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
#define PIECE_PARAM_SCOPE                                                                                              \
    {                                                                                                                  \
        .name = "scope", .type = STET_PARAM_STRING, .metavar = "NAME",                                                 \
        .summary = "The scope of the piece, such as user:x; PIECE@SCOPE names the same piece"                          \
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

/* The piece that `piece` and `scope` of the arguments name; NULL: none is named. Caller frees. */
STET_CHECKED stet_status piece_named(stet_value args, char **out, stet_error *err);

/* A project's space opened for a piece, with the scheduler's view of it.
 *
 *     piece_call c;
 *     piece_begin(ctx, args, PIECE_NOW, &c, err);
 *     const stet_piece *p = piece_pick(&c, args);
 *     stet_value wrong = piece_wrong(&c, p);
 *     if (piece_good(&c))
 *         *result = wrong;
 *     return piece_end(&c);
 *
 * The first failure sticks: after it the functions that take a piece_call and return no status do nothing, and
 * piece_end returns it. What they return then is NULL, null or empty.
 */
typedef struct piece_call {
    stet_status status; /* the first failure; a handler may set it, too */
    stet_error *err;    /* receives it */
    stet_op_ctx *ctx;
    stet_project *project;
    stet_space *space;
    stet_sched *sched;
    int64_t branch;
    stet_value hold[3];
    const char *space_name, *branch_name;
    stet_value invalid;   /* PIECE_NOW: {PIECE: message} of pieces whose pattern files are invalid */
    stet_scratch now;     /* PIECE_NOW: the copy that is read, if patterns or files have changed */
    stet_project *stored; /* the project itself, which `project` is not if the copy is read */
    stet_piece *piece;    /* of piece_pick and piece_named_by */
    stet_standing standing;
    bool standing_loaded;
    /* The default space was never written, and the default branch is requested: there is no piece yet. */
    bool absent;
} piece_call;
typedef enum piece_access { PIECE_READ, PIECE_NOW, PIECE_WRITE } piece_access;
/* Opens the space that the arguments name. A project whose space was never written has no pieces: STET_NOT_FOUND.
 *
 *   PIECE_READ     writes nothing at all: marks that are still owed are not fetched (stet_observe_owed reports them)
 *   PIECE_NOW      reads too, but with patterns and files as they are now (stet_drive_preview)
 *   PIECE_WRITE    may write
 */
void piece_begin(stet_op_ctx *ctx, stet_value args, piece_access access, piece_call *c, stet_error *err);
/* The same for lists: a space that was never written is no failure (`absent`), and the list is empty. */
void piece_begin_list(stet_op_ctx *ctx, stet_value args, piece_access access, piece_call *c, stet_error *err);
bool piece_good(const piece_call *c); /* nothing has failed so far */
/* Releases everything that the call holds; returns the first failure. */
STET_CHECKED stet_status piece_end(piece_call *c);

/* How the actions of the branch stand; loaded once. */
const stet_standing *piece_standing(piece_call *c);
/* Is this a sequence of the copy alone? Nothing was stored under it: the next run will. `uuid` NULL: of the space. */
bool piece_is_preview(const piece_call *c, const char *uuid, int64_t seq);
/* Why a piece as a whole is not up to date, whatever its actions: its pattern file is invalid or no longer defines it,
 * or its argument does not match its schema. Null: nothing is wrong. The caller releases it. */
stet_value piece_wrong(piece_call *c, const stet_piece *p);

/* The piece that the arguments name; without a name, the only piece (of the scope that they name). STET_INVALID: there
 * are several; the message lists them. It belongs to the call. */
const stet_piece *piece_pick(piece_call *c, stet_value args);
/* The piece that the arguments must name. It belongs to the call. */
const stet_piece *piece_named_by(piece_call *c, stet_value args);
/* The same as piece_pick, for a caller that goes on without the piece. The caller frees it. */
STET_CHECKED stet_status piece_find(piece_call *c, stet_value args, stet_piece **out, stet_error *err);

/* Names of pieces, after `after` of the arguments, at most `limit`, of the scope that the arguments name, or of any.
 * The caller releases them. */
stet_value piece_names_in(piece_call *c, stet_value args, size_t limit, bool *more);

/* The state of an action (stet_standing_state) in a piece that is wrong as a whole (`wrong` is a string): nothing in it is known to be correct, so what
 * would be up to date is unknown. Failed actions are reported as failed. */
stet_action_state piece_state_in(stet_value wrong, const stet_standing *s, const stet_action_record *r);
/* Prints "PIECE is not up to date: ...", if the result says what is wrong with it. */
void piece_render_wrong(stet_render *r, stet_value result);
/* The record of an action of the graph. An action without a row is a record without an observation, unknown. */
void piece_find_action(piece_call *c, const stet_action_key *key, stet_arena *arena, stet_action_record *out);
/* Prints "ID/KEY (scope S) in space NAME", without the parts that have their default. `uuid` NULL: the own space. */
void piece_print_cell(stet_space *s, const char *uuid, const stet_docname *name, stet_pathref path, stet_buf *out);
/* Prints "PIECE/ACTION", where PIECE has its scope: "totals@user:x/sum". What is not a piece is named by its document:
 * "ID (scope S)/ACTION". */
void piece_print_action(const stet_action_key *key, stet_buf *out);
/* The name of a state. An otherwise up-to-date action whose last run failed is "failed". */
const char *piece_state_name(const stet_action_record *r, stet_action_state state);
/* {"action","state","failed","cause"?} and, with `full`, what is recorded about its last run. The cause of a stale
 * action is the action that it waits for: {"reason":"failed" or "upstream","space"?,"action"?}. */
stet_value piece_action_value(piece_call *c, const stet_standing *s, const stet_action_record *r,
                              stet_action_state state, bool full);
/* {"reason","time"} of an accepted action. */
stet_value piece_acceptance(const stet_action_record *r);
/* {"commits","spaces"} of stet_observe_owed, or null if nothing is owed; piece_render_owed renders it. */
stet_value piece_owed(piece_call *c);
/* Renders "overridden a, b (stet run --unset KEY ...)", or nothing. */
void piece_render_overridden(stet_render *r, stet_value names);
void piece_render_owed(stet_render *r, stet_value owed);
/* `absentSpaces` of a result: spaces that actions of a piece (NULL: of all) read from and that do not exist. */
void piece_put_absent(piece_call *c, const char *piece, stet_value *result);
void piece_render_absent(stet_render *r, stet_value result);
/* `leadsTo` of a row of a piece: outdated actions of other pieces that its result links to; omitted if there are none.
 */
void piece_put_leads(piece_call *c, const stet_piece *p, stet_value *row);
void piece_render_leads(stet_render *r, stet_value row);
/* PIECE_NOW: `patternChanged` of a row of a piece, {"generation","file"?}: its pattern is another one than it was last
 * set up with, whether or not any of its actions is affected. Omitted if it is the same. */
void piece_put_changed(piece_call *c, const stet_piece *p, stet_value *row);
void piece_render_changed(stet_render *r, stet_value row);
/* Appends the message of a failure, without the name of the action at its beginning, which is shown beside it. */
void piece_render_message(stet_buf *out, stet_value failure, const char *piece, const char *node);
/* The same, with the last line that the command printed, if the failure has it. */
void piece_render_failure(stet_buf *out, stet_value failure, const char *piece, const char *node);
/* Adds to failures by node what their commands printed, from the newest runs (fleet/recall.h). */
void piece_recall(stet_project *project, const char *piece, stet_value *failures);

/* A picture of a graph: `format` is "dot" or "mermaid". The caller releases it. */
stet_value piece_picture(const stet_process *g, const char *format);
/* Renders "ran 3 (1 restored), up to date 97, failed 0 in 0.12 s", preceded by what failed. */
void piece_render_outcome(stet_render *r, stet_value result);
stet_status piece_outcome_verdict(stet_value result);
extern const char piece_outcome_schema[];
/* Drives with the context's progress and cancellation. */
STET_CHECKED stet_status piece_drive(stet_op_ctx *ctx, stet_drive_spec *spec, stet_value *result, stet_error *err);

/* Brings a cell up to date and reads it, links followed (`get --fresh`). The caller releases `*out`. */
STET_CHECKED stet_status piece_fresh(stet_op_ctx *ctx, stet_value args, const stet_docname *name, stet_pathref path,
                                     stet_value *out, stet_error *err);

#endif
