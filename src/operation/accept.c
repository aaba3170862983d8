/* accept.c - the operation accept: lets the result of an outdated action stand, and takes that back. */

#include <string.h>

#include "base/text.h"
#include "drive/accepted.h"
#include "operation/subject.h"
#include "operation/text.h"

typedef struct choice {
    char *piece, *node;
} choice;

/* The action that the arguments name; of a file the one that makes it. */
static stet_status choose(stet_op_ctx *ctx, stet_value args, choice *out, stet_error *err) {
    piece_call c;
    piece_subject s;
    piece_begin(ctx, args, PIECE_READ, &c, err);
    piece_subject_find(&c, args, &s);
    piece_subject_action(&c, &s);
    if (piece_good(&c))
        *out = (choice){stet_strdup(s.piece->name), stet_strdup(s.node)};
    piece_subject_release(&s);
    return piece_end(&c);
}

static void show_note(void *ctx, const stet_error *what) {
    stet_op_ctx *c = ctx;
    c->warn(c, "%s", what->message);
}

static stet_status accept_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_value hold[3];
    stet_project *project;
    choice chosen = {0};
    const char *reason = stet_value_text_at(args, "reason", &hold[0]);
    bool revoke = stet_value_as_bool(stet_value_get(args, "revoke"));
    stet_drive_spec spec = {.space = stet_value_text_at_or(args, "space", "main", &hold[1]),
                            .branch = stet_value_text_at_or(args, "branch", "", &hold[2]),
                            .ctx = ctx,
                            .note = show_note,
                            .cancelled = stet_op_cancelled};
    if (revoke == (reason != NULL)) {
        stet_fail(err, STET_INVALID, revoke ? "--revoke takes no reason" : "an acceptance needs a reason");
        stet_hint(err, revoke ? "stet accept NODE --revoke" : "stet accept NODE --reason \"only a comment changed\"");
        return STET_INVALID;
    }
    if (reason && !*reason)
        return stet_fail(err, STET_INVALID, "the reason is empty");
    stet_status status = ctx->project(ctx, &project, err);
    if (status == STET_OK)
        status = choose(ctx, args, &chosen, err); /* a misspelt name changes nothing */
    if (status == STET_OK)
        status = stet_drive_look(project, &spec, err);
    if (status == STET_OK)
        status = stet_drive_accept(project, &spec, chosen.piece, chosen.node, reason, err);
    if (status == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "piece", stet_value_string(chosen.piece));
        stet_value_put(result, "action", stet_value_string(chosen.node));
        stet_value_put(result, "state", stet_value_string(reason ? "accepted" : "unknown"));
        if (reason)
            stet_value_put(result, "reason", stet_value_string(reason));
    }
    stet_free(chosen.piece);
    stet_free(chosen.node);
    return status;
}

static void accept_render(stet_render *r, stet_value result) {
    bool accepted = stet_value_find(result, "reason", 6, NULL);
    stet_text_value(r, stet_value_get(result, "piece"));
    stet_buf_char(r->out, '/');
    stet_text_value(r, stet_value_get(result, "action"));
    stet_buf_str(r->out, accepted ? " is accepted until something that it reads changes again\n"
                                  : " is not accepted any more; the next run that needs it runs it\n");
}

static const stet_param accept_params[] = {
    PIECE_PARAM_ONLY_PIECE,
    PIECE_PARAM_ACTION(0),
    {.name = "reason",
     .type = STET_PARAM_STRING,
     .metavar = "TEXT",
     .summary = "Why the result may stand; `why` and `action show` give it"},
    {.name = "revoke", .type = STET_PARAM_BOOL, .summary = "Take an acceptance back: the action runs again"},
    PIECE_PARAM_SPACE,
    PIECE_PARAM_BRANCH,
    PIECE_PARAM_SCOPE,
    {0},
};

static const stet_example accept_examples[] = {
    {"accept totals@user:ann/scaled --reason 'the factor does not matter here'",
     "keep a result, although something it read has changed"},
    {0},
};

const stet_op stet_ops_accept[] = {
    {.name = "accept",
     .summary = "Let the result of an outdated action stand",
     .description =
         "For a change that can't matter, such as a comment: the action does not run, and keeps its last result. Its "
         "state is `accepted`, not up to date. An acceptance proves nothing: it is kept in this project alone, on this "
         "branch, and is never stored in a cache, pinned or shared. `status`, `why` and the summary of a run count "
         "accepted actions apart, and tell which actions depend on them.\n\n"
         "It lapses as soon as anything that the action reads changes again, or the action itself does. Only a change "
         "of what the action has read can be accepted: an action that has never run, that failed, or whose command is "
         "another one has to run. PIECE may be PIECE/ACTION, an action, or a file that the action makes.",
     .params = accept_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"piece\",\"action\",\"state\"],\"properties\":{\"piece\":{"
                      "\"type\":\"string\"},\"action\":{\"type\":\"string\"},\"state\":{\"type\":\"string\"},"
                      "\"reason\":{\"type\":\"string\"}}}",
     .examples = accept_examples,
     .run = accept_run,
     .render = accept_render},
    {0},
};
