/* piece_send.c - the operation piece send. */

#include <string.h>

#include "base/text.h"
#include "operation/piece_common.h"
#include "operation/text.h"

static stet_status send_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_value hold[6];
    stet_sched_sent sent = {0};
    stet_drive_event send = {.stream = stet_value_text_at_or(args, "stream", "", &hold[0]),
                             .event = stet_value_get(args, "event"),
                             .id = stet_value_text_at(args, "id", &hold[1]),
                             .settle = stet_value_as_bool(stet_value_get(args, "settle")),
                             .sent = &sent};
    stet_drive_spec spec = {.space = stet_value_text_at_or(args, "space", "main", &hold[2]),
                            .branch = stet_value_text_at_or(args, "branch", "", &hold[3]),
                            .piece = stet_value_text_at_or(args, "piece", "", &hold[4]),
                            .scope = stet_value_text_at(args, "scope", &hold[5]),
                            .send = &send};
    stet_value outcome = stet_value_null();
    stet_status status = piece_drive(ctx, &spec, &outcome, err);
    if (status == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "piece", stet_value_retain(stet_value_get(outcome, "piece")));
        stet_value_put(result, "stream", stet_value_string(sent.stream));
        stet_value_put(result, "event", stet_value_string(sent.id));
        stet_value_put(result, "applied", stet_value_bool(sent.applied));
        stet_value_put(result, "seq", stet_value_int(sent.seq));
        stet_value_put(result, "madeFresh", stet_value_int((int64_t)sent.made_fresh));
        if (send.settle)
            stet_value_put(result, "settled", stet_value_retain(outcome));
    }
    stet_value_release(outcome);
    return status;
}

static void send_render(stet_render *r, stet_value result) {
    bool applied = stet_value_as_bool(stet_value_get(result, "applied"));
    stet_value settled;
    stet_text_value(r, stet_value_get(result, "piece"));
    stet_buf_char(r->out, '/');
    stet_text_value(r, stet_value_get(result, "stream"));
    stet_buf_str(r->out, ": event ");
    stet_text_value(r, stet_value_get(result, "event"));
    stet_buf_printf(r->out, applied ? " applied at sequence %lld\n" : " had been applied at sequence %lld already\n",
                    (long long)stet_value_as_int(stet_value_get(result, "seq")));
    if (stet_value_find(result, "settled", 7, &settled))
        piece_render_outcome(r, settled);
}

static stet_status send_verdict(stet_value result) {
    stet_value settled;
    return stet_value_find(result, "settled", 7, &settled) ? piece_outcome_verdict(settled) : STET_OK;
}

static const stet_param send_params[] = {
    PIECE_PARAM_PIECE,
    {.name = "stream",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_REQUIRED | STET_PARAM_POSITIONAL,
     .metavar = "STREAM",
     .summary =
         "Where the event goes: the name of the stream, or of its handler; of an element, NODE[KEY].STREAM; or the "
         "path to it in the result"},
    {.name = "event",
     .type = STET_PARAM_JSON,
     .flags = STET_PARAM_POSITIONAL,
     .metavar = "JSON",
     .summary = "The event: any value, null unless given; - reads standard input"},
    {.name = "id",
     .type = STET_PARAM_STRING,
     .metavar = "EVENT",
     .summary = "Id of the event; sent again with the same id it is not applied again"},
    {.name = "settle",
     .type = STET_PARAM_BOOL,
     .summary = "Run afterwards what no longer stands, as `piece pull` does"},
    PIECE_PARAM_SPACE,
    PIECE_PARAM_BRANCH,
    PIECE_PARAM_SCOPE,
    {0},
};

static const stet_example send_examples[] = {
    {"piece send counter add 5", "apply an event"},
    {"piece send counter add 5 --id order-17 --settle", "once, however often this is typed, and run what follows"},
    {0},
};

const stet_op stet_ops_send[] = {
    {.name = "piece send",
     .summary = "Send an event to a stream of a piece",
     .description =
         "Each handler of the stream runs in a transaction of its own, on what it reads, which is brought up to date "
         "first; then the handlers of events that were sent on. An event is applied at most once: whoever may have to "
         "send it again, after a crash or a time-out, gives it an id. If the first handler fails, nothing is written, "
         "and its error is the answer. If a later one fails, the answer says that the event was applied; sent again "
         "with its id, the event goes to the handlers that failed, and to no others.\n\n"
         "Streams are the piece's own (`add`) or those of one of its children (`items[a].toggle`: the stream `toggle` "
         "of the "
         "child of `items` with the key `a`). A path in the result that leads to a stream will do, too "
         "(`items/0/toggle`). "
         "An event for an element that is not there is refused, and not kept for one that may come.\n\n"
         "What the event has changed makes its readers dirty. They run when somebody wants them: with --settle, with "
         "the next `run` or `piece pull`, or at once where `run --watch` is on.",
     .params = send_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"piece\",\"stream\",\"event\",\"applied\",\"seq\","
                      "\"madeFresh\"],\"properties\":{\"piece\":{\"type\":\"string\"},\"stream\":{\"type\":\"string\"},"
                      "\"event\":{\"type\":\"string\"},\"applied\":{\"type\":\"boolean\"},\"seq\":{\"type\":"
                      "\"integer\"},\"madeFresh\":{\"type\":\"integer\"},\"settled\":{\"type\":\"object\"}}}",
     .examples = send_examples,
     .flags = STET_OP_LONG | STET_OP_COMMON,
     .run = send_run,
     .render = send_render,
     .verdict = send_verdict},
    {0},
};
