/* watch.c - the operation watch: changes of a cell as they are committed, by any process. */

#include <string.h>

#include "base/text.h"
#include "operation/space_common.h"
#include "operation/text.h"
#include "os/clock.h"

#define LOOK_MS 100 /* how often cancellation is checked */

typedef struct watch {
    stet_op_ctx *ctx;
    space_call c;
    stet_feed *feed;
    bool has_cell;
    stet_docname name;
    stet_path path;
    int64_t count, events;
    int64_t deadline_us; /* 0: none */
} watch;

/* The event with the current value of the cell; without "value" if there is none. */
static stet_status event_of(watch *w, const stet_commit_record *r, stet_value *out, stet_error *err) {
    stet_doc_state d = {0};
    stet_value v;
    *out = stet_commit_value(r, w->c.branch_name);
    stet_status st = w->has_cell ? stet_space_load(w->c.space, w->c.branch, &w->name, r->seq, &d, err) : STET_OK;
    if (st == STET_OK && d.exists && stet_path_lookup(d.value, stet_path_ref(&w->path), &v))
        stet_value_put(out, "value", stet_value_retain(v));
    stet_value_release(d.value);
    if (st != STET_OK)
        stet_value_release(*out);
    return st;
}

static stet_status follow(watch *w, stet_error *err) {
    while (w->count == 0 || w->events < w->count) {
        const stet_commit_record *r;
        stet_error why = STET_ERROR_INIT;
        stet_status st = stet_feed_next(w->feed, LOOK_MS, &r, &why);
        if (st == STET_OK) {
            stet_value event;
            st = event_of(w, r, &event, err);
            if (st == STET_OK) {
                st = w->ctx->emit(w->ctx, event, err);
                stet_value_release(event);
            }
            if (st != STET_OK)
                return st;
            w->events++;
            continue;
        }
        if (st != STET_BUSY) {
            stet_error_move(err, &why);
            return st;
        }
        stet_error_clear(&why);
        if (w->ctx->cancelled(w->ctx))
            return stet_fail(err, STET_CANCELLED, "interrupted after %lld events", (long long)w->events);
        if (w->deadline_us && stet_clock_monotonic_us() >= w->deadline_us)
            return STET_OK;
    }
    return STET_OK;
}

static stet_status run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    watch w = {.ctx = ctx, .path = STET_PATH_INIT, .count = stet_value_int_at(args, "count", 0)};
    stet_value hold, timeout = stet_value_get(args, "timeout");
    char *id = NULL;
    stet_status st = space_begin(ctx, args, SPACE_READ, &w.c, err);
    if (st != STET_OK)
        return st;
    if (stet_value_type(timeout) != STET_TYPE_NULL)
        w.deadline_us = stet_clock_monotonic_us() + (int64_t)(stet_value_as_double(timeout) * 1e6) + 1;
    st = stet_feed_open(w.c.space, w.c.branch, stet_value_int_at(args, "after", -1), &w.feed, err);
    const char *cell = stet_value_text_at(args, "cell", &hold);
    if (st == STET_OK && cell) {
        st = stet_cell_parse(cell, stet_value_as_bool(stet_value_get(args, "meta")), &id, &w.path, err);
        w.name = (stet_docname){id, w.c.scope};
        w.has_cell = true;
        if (st == STET_OK)
            st =
                stet_feed_add(w.feed, &w.name, stet_path_ref(&w.path),
                              stet_value_as_bool(stet_value_get(args, "shallow")) ? STET_SHALLOW : STET_RECURSIVE, err);
    }
    if (st == STET_OK)
        st = follow(&w, err);
    if (st == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "events", stet_value_int(w.events));
        stet_value_put(result, "seq", stet_value_int(stet_feed_position(w.feed)));
    }
    stet_feed_close(w.feed);
    stet_free(id);
    stet_path_release(&w.path);
    space_end(&w.c);
    return st;
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
