/* watch.c - the operation watch: changes of a cell as they are committed, by any process. */

#include <string.h>

#include "base/text.h"
#include "operation/space_common.h"
#include "operation/text.h"
#include "os/clock.h"

#define LOOK_MS 100 /* how often cancellation is checked */

typedef struct watch {
    space_call *c;
    stet_feed *feed;
    bool has_cell;
    int64_t count, events;
    int64_t deadline_us; /* 0: none */
} watch;

/* The event with the current value of the cell; without "value" if there is none. */
static stet_status event_of(watch *w, const stet_commit_record *r, stet_value *out, stet_error *err) {
    stet_doc_state d = {0};
    stet_value v;
    const space_call *c = w->c;
    stet_status st = w->has_cell ? stet_space_load(c->space, c->branch, &c->doc, r->seq, &d, err) : STET_OK;
    if (st != STET_OK)
        return st;
    *out = stet_commit_value(r, c->branch_name);
    if (d.exists && stet_path_lookup(d.value, stet_path_ref(&c->path), &v))
        stet_value_put(out, "value", stet_value_retain(v));
    stet_value_release(d.value);
    return STET_OK;
}

static stet_status emit(watch *w, const stet_commit_record *r, stet_error *err) {
    stet_value event;
    stet_status st = event_of(w, r, &event, err);
    if (st != STET_OK)
        return st;
    st = w->c->ctx->emit(w->c->ctx, event, err);
    stet_value_release(event);
    w->events += st == STET_OK;
    return st;
}

static stet_status follow(watch *w, stet_error *err) {
    stet_op_ctx *ctx = w->c->ctx;
    while (w->count == 0 || w->events < w->count) {
        const stet_commit_record *r;
        stet_error why = STET_ERROR_INIT;
        stet_status st = stet_feed_next(w->feed, LOOK_MS, &r, &why);
        if (st == STET_OK) {
            if ((st = emit(w, r, err)) != STET_OK)
                return st;
            continue;
        }
        if (st != STET_BUSY) {
            stet_error_move(err, &why);
            return st;
        }
        stet_error_clear(&why);
        if (ctx->cancelled(ctx))
            return stet_fail(err, STET_CANCELLED, "interrupted after %lld events", (long long)w->events);
        if (w->deadline_us && stet_clock_monotonic_us() >= w->deadline_us)
            return STET_OK;
    }
    return STET_OK;
}

/* Restricts the feed to the cell that the arguments name, if they do. */
static stet_status restrict_feed(watch *w, stet_value args, stet_error *err) {
    w->has_cell = stet_value_type(stet_value_get(args, "cell")) == STET_TYPE_STRING;
    if (!w->has_cell)
        return STET_OK;
    stet_status st = space_cell(w->c, args, err);
    if (st != STET_OK)
        return st;
    return stet_feed_add(w->feed, &w->c->doc, stet_path_ref(&w->c->path),
                         stet_value_as_bool(stet_value_get(args, "shallow")) ? STET_SHALLOW : STET_RECURSIVE, err);
}

static stet_status watch_space(space_call *c, stet_value args, stet_value *result, stet_error *err) {
    watch w = {.c = c, .count = stet_value_int_at(args, "count", 0)};
    stet_value timeout = stet_value_get(args, "timeout");
    if (stet_value_type(timeout) != STET_TYPE_NULL)
        w.deadline_us = stet_clock_monotonic_us() + (int64_t)(stet_value_as_double(timeout) * 1e6) + 1;
    stet_status st = stet_feed_open(c->space, c->branch, stet_value_int_at(args, "after", -1), &w.feed, err);
    if (st != STET_OK)
        return st;
    st = restrict_feed(&w, args, err);
    if (st == STET_OK)
        st = follow(&w, err);
    *result = stet_value_object();
    stet_value_put(result, "events", stet_value_int(w.events));
    stet_value_put(result, "seq", stet_value_int(stet_feed_position(w.feed)));
    stet_feed_close(w.feed);
    return st;
}

static stet_status run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    return space_run(ctx, args, SPACE_READ, watch_space, result, err);
}

static void render(stet_render *r, stet_value v) {
    stet_value changes = stet_value_get(v, "changes"), value, time = stet_value_get(v, "time");
    if (stet_value_type(changes) != STET_TYPE_ARRAY) {
        stet_buf_printf(r->out, "%lld events, up to sequence %lld\n",
                        (long long)stet_value_as_int(stet_value_get(v, "events")),
                        (long long)stet_value_as_int(stet_value_get(v, "seq")));
        return;
    }
    stet_buf_printf(r->out, "%lld  %s\n", (long long)stet_value_as_int(stet_value_get(v, "seq")),
                    stet_value_as_string(&time, NULL));
    space_render_changes(r, changes, true);
    if (stet_value_find(v, "value", 5, &value)) {
        size_t len;
        char *text = stet_json_print(value, STET_JSON_CANONICAL, &len);
        stet_buf_str(r->out, "  = ");
        stet_text_plain(r, text, len);
        stet_buf_char(r->out, '\n');
        stet_free(text);
    }
}

static const stet_param params[] = {
    {.name = "cell",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL,
     .metavar = "CELL",
     .summary = "ID[/KEY...]; without it every document"},
    {.name = "count",
     .type = STET_PARAM_INT,
     .metavar = "N",
     .summary = "End after so many events",
     .min = 1,
     .max = INT64_MAX},
    {.name = "timeout",
     .type = STET_PARAM_NUMBER,
     .metavar = "SECONDS",
     .summary = "End after so long, with what came"},
    {.name = "after",
     .type = STET_PARAM_INT,
     .metavar = "SEQ",
     .summary = "From this sequence on; without it from now on",
     .min = 0,
     .max = INT64_MAX},
    {.name = "shallow", .type = STET_PARAM_BOOL, .summary = "Only its type, key set or length, not what is below it"},
    PARAM_META,
    PARAM_SPACE,
    PARAM_BRANCH,
    PARAM_SCOPE,
    {0},
};

static const stet_example examples[] = {
    {"watch config --after 0 --count 1", "the first change there ever was"},
    {"watch config/theme --timeout 0.2", "whatever changes it in a fifth of a second"},
    {0}};

const stet_op stet_ops_watch[] = {
    {.name = "watch",
     .summary = "Follow the changes of a cell",
     .description =
         "One event per commit that touches the cell, by any process, in order, each once, with the leaves that "
         "changed and the cell's value after it. Runs until it is interrupted, unless --count or --timeout ends "
         "it.",
     .params = params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"events\",\"seq\"],\"properties\":{\"events\":{\"type\":"
                      "\"integer\"},\"seq\":{\"type\":\"integer\"}}}",
     .examples = examples,
     .flags = STET_OP_READ_ONLY | STET_OP_LONG | STET_OP_COMMON,
     .run = run,
     .render = render},
    {0},
};
