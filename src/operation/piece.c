/* piece.c - the operations piece list, show, graph, stop and delete. */

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "graph/argument.h"
#include "operation/piece_common.h"
#include "operation/text.h"

static stet_value piece_row(const stet_piece *p) {
    stet_value row = stet_value_object(), pattern = stet_value_get(p->envelope, "pattern"), v;
    stet_value_put(&row, "piece", stet_value_string(p->name));
    stet_value_put(&row, "id", stet_value_string(p->doc));
    if (*p->scope)
        stet_value_put(&row, "scope", stet_value_string(p->scope));
    if (stet_value_find(pattern, "name", 4, &v))
        stet_value_put(&row, "pattern", stet_value_retain(v));
    if (stet_value_find(pattern, "version", 7, &v))
        stet_value_put(&row, "version", stet_value_retain(v));
    stet_value_put(&row, "generation", stet_value_int(p->generation));
    stet_value_put(&row, "nodes", stet_value_int((int64_t)p->node_count));
    stet_value_put(&row, "effects", stet_value_int((int64_t)p->effect_count));
    stet_value_put(&row, "stopped", stet_value_bool(p->stopped));
    return row;
}

static stet_status list_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    piece_call c;
    stet_value rows = stet_value_array();
    bool more;
    piece_begin_list(ctx, args, PIECE_READ, &c, err);
    stet_value names = piece_names_in(&c, args, (size_t)stet_value_as_int(stet_value_get(args, "limit")), &more);
    size_t n = stet_value_count(names);
    for (size_t i = 0; piece_good(&c) && i < n; i++) {
        stet_value name = stet_value_at(names, i);
        stet_piece *p;
        if (stet_piece_load(c.space, c.branch, stet_value_as_string(&name, NULL), -1, &p, NULL) != STET_OK)
            continue;
        stet_value_push(&rows, piece_row(p));
        stet_piece_free(p);
    }
    *result = stet_value_object();
    stet_value_put(result, "pieces", rows);
    stet_value_put(result, "next", more && n ? stet_value_retain(stet_value_at(names, n - 1)) : stet_value_null());
    stet_value_release(names);
    return piece_end(&c);
}

static void list_render(stet_render *r, stet_value result) {
    stet_value rows = stet_value_get(result, "pieces");
    if (stet_value_count(rows) == 0) {
        stet_buf_str(r->out, "no pieces; make one with: stet run PATTERN\n");
        return;
    }
    stet_table t = stet_table_begin(4, (const char *const[]){"PIECE", "PATTERN", "NODES", "GENERATION"});
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        stet_value row = stet_value_at(rows, i), name = stet_value_get(row, "piece"),
                   pattern = stet_value_get(row, "pattern");
        stet_table_cell(&t, stet_value_as_string(&name, NULL));
        stet_table_cell(&t, stet_value_text(&pattern, ""));
        stet_table_cellf(&t, "%lld", (long long)stet_value_as_int(stet_value_get(row, "nodes")));
        stet_table_cellf(&t, "%lld%s", (long long)stet_value_as_int(stet_value_get(row, "generation")),
                         stet_value_as_bool(stet_value_get(row, "stopped")) ? " (stopped)" : "");
    }
    stet_table_print(&t, r, true);
}

/* The names to which events can be sent; "rows[KEY].add" for those that each child has. */
static stet_value stream_names(const stet_piece *p) {
    stet_value process = stet_value_get(p->envelope, "process"), streams = stet_value_get(process, "streams"),
               of_children = stet_value_get(process, "childStreams"), names = stet_value_array();
    for (size_t i = 0; i < stet_value_count(streams); i++)
        stet_value_push(&names, stet_value_string(stet_value_key_at(streams, i, NULL)));
    for (size_t i = 0; i < stet_value_count(of_children); i++)
        stet_value_push(&names, stet_value_retain(stet_value_at(of_children, i)));
    return names;
}

/* The stored piece is shown; this adds whether it still agrees with its pattern file. */
static stet_status put_now(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    piece_call c;
    piece_begin(ctx, args, PIECE_NOW, &c, err);
    const stet_piece *p = piece_named_by(&c, args);
    piece_put_changed(&c, p, result);
    stet_value wrong = piece_wrong(&c, p);
    if (stet_value_type(wrong) == STET_TYPE_STRING)
        stet_value_put(result, "wrong", stet_value_retain(wrong));
    stet_value_release(wrong);
    return piece_end(&c);
}

static void put_contents(piece_call *c, const stet_piece *p, stet_value *result) {
    stet_value value = stet_value_null(), argument = stet_value_null(), overridden = stet_value_null();
    stet_path path = STET_PATH_INIT;
    char *id = stet_piece_part(p->name, "argument", NULL);
    stet_path_push(&path, "value");
    c->status = stet_sched_resolve(c->sched, stet_value_get(p->envelope, "value"), &value, c->err);
    if (piece_good(c) && stet_sched_get(c->sched, id, p->scope, stet_path_ref(&path), &argument, NULL) == STET_OK)
        stet_value_put(result, "argument", argument);
    if (piece_good(c))
        c->status = stet_piece_overrides(c->space, c->branch, p, &overridden, c->err);
    stet_value_put(result, "result", value);
    stet_value_put(result, "overridden", overridden);
    stet_value_put(result, "streams", stream_names(p));
    stet_value_put(result, "program",
                   stet_value_retain(stet_value_get(stet_value_get(p->envelope, "process"), "program")));
    stet_value_put(result, "source", stet_value_retain(stet_value_get(p->envelope, "source")));
    stet_free(id);
    stet_path_release(&path);
}

static stet_status show_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    piece_call c;
    piece_begin(ctx, args, PIECE_READ, &c, err);
    const stet_piece *p = piece_named_by(&c, args);
    if (piece_good(&c)) {
        *result = piece_row(p);
        put_contents(&c, p, result);
    }
    stet_status status = piece_end(&c);
    return status == STET_OK ? put_now(ctx, args, result, err) : status;
}

static void show_value(stet_render *r, const char *name, stet_value v) {
    size_t len;
    char *text = stet_json_print(v, STET_JSON_PRETTY, &len);
    stet_text_styled(r, STET_STYLE_BOLD, name);
    stet_buf_char(r->out, '\n');
    stet_buf_add(r->out, text, len);
    stet_free(text);
}

static void show_render(stet_render *r, stet_value result) {
    stet_text_value(r, stet_value_get(result, "piece"));
    stet_buf_str(r->out, ": pattern ");
    stet_text_value(r, stet_value_get(result, "pattern"));
    stet_buf_printf(r->out, ", %lld nodes, generation %lld%s\n",
                    (long long)stet_value_as_int(stet_value_get(result, "nodes")),
                    (long long)stet_value_as_int(stet_value_get(result, "generation")),
                    stet_value_as_bool(stet_value_get(result, "stopped")) ? ", stopped" : "");
    stet_value streams = stet_value_get(result, "streams");
    for (size_t i = 0; i < stet_value_count(streams); i++) {
        stet_buf_str(r->out, i ? ", " : "streams ");
        stet_text_value(r, stet_value_at(streams, i));
    }
    if (stet_value_count(streams) > 0)
        stet_buf_char(r->out, '\n');
    piece_render_changed(r, result);
    piece_render_wrong(r, result);
    piece_render_overridden(r, stet_value_get(result, "overridden"));
    show_value(r, "argument", stet_value_get(result, "argument"));
    show_value(r, "result", stet_value_get(result, "result"));
}

/* The graph with the nodes of children. */
static stet_status whole_graph(piece_call *c, const stet_piece *p, int64_t at, stet_process **out, stet_error *err) {
    *out = NULL;
    stet_status status = stet_piece_process(c->space, c->branch, p, at, out, err);
    if (status == STET_OK)
        status = stet_piece_children(c->space, c->branch, at, *out, NULL, err);
    if (status != STET_OK) {
        stet_process_free(*out);
        *out = NULL;
    }
    return status;
}

static stet_status generation_graph(piece_call *c, const stet_piece *p, int64_t generation, stet_process **out,
                                    stet_error *err) {
    if (generation == p->generation)
        return whole_graph(c, p, -1, out, err);
    int64_t seq;
    stet_piece *then;
    stet_status status = stet_piece_generation_seq(c->space, c->branch, p, generation, &seq, err);
    if (status == STET_OK)
        status = stet_piece_load(c->space, c->branch, p->name, seq, &then, err);
    if (status != STET_OK)
        return status;
    status = whole_graph(c, then, seq, out, err);
    stet_piece_free(then);
    return status;
}

static stet_value changes_value(const stet_process_diff *d, const stet_process *before, const stet_process *after) {
    static const char *const names[] = {"added", "changed", "gone", "moved"};
    stet_value list = stet_value_array();
    for (size_t i = 0; i < d->len; i++) {
        stet_value row = stet_value_object();
        stet_value_put(&row, "node", stet_value_string(d->at[i].id));
        stet_value_put(&row, "change", stet_value_string(names[d->at[i].kind]));
        const stet_process_node *was = stet_process_find(before, d->at[i].id),
                                *now = stet_process_find(after, d->at[i].id);
        if (was && now)
            stet_value_put(&row, "what", stet_process_differences(was->row, now->row));
        stet_value_push(&list, row);
    }
    return list;
}

/* "A..B", or "A": from A until now. */
static stet_status diff_run(piece_call *c, const stet_piece *p, const char *text, stet_value *result, stet_error *err) {
    char *end;
    long long a = strtoll(text, &end, 10), b = p->generation;
    if (end != text && strncmp(end, "..", 2) == 0) {
        const char *second = end + 2;
        b = strtoll(second, &end, 10);
        if (end == second)
            end = (char *)(uintptr_t) "?";
    }
    if (end == text || *end || a < 1 || b < 1) {
        stet_fail(err, STET_INVALID, "--diff %s: not two generations", text);
        stet_hint(err, "write --diff 1..2, or --diff 1 for the way from 1 to now");
        return STET_INVALID;
    }
    stet_process *before, *after;
    stet_status status = generation_graph(c, p, a, &before, err);
    if (status != STET_OK)
        return status;
    status = generation_graph(c, p, b, &after, err);
    if (status == STET_OK) {
        stet_process_diff d;
        stet_process_compare(before, after, &d);
        stet_value_put(result, "from", stet_value_int(a));
        stet_value_put(result, "to", stet_value_int(b));
        stet_value_put(result, "changes", changes_value(&d, before, after));
        stet_value_put(result, "kept", stet_value_int((int64_t)d.kept));
        stet_process_diff_release(&d);
        stet_process_free(after);
    }
    stet_process_free(before);
    return status;
}

static void put_graph(piece_call *c, const stet_piece *p, const char *format, stet_value *result) {
    stet_process *g;
    stet_value schemas = stet_value_null();
    bool json = strcmp(format, "json") == 0;
    c->status = whole_graph(c, p, -1, &g, c->err);
    if (piece_good(c) && json)
        c->status = stet_piece_schemas(c->space, c->branch, g, &schemas, c->err);
    if (piece_good(c))
        stet_value_put(result, json ? "graph" : "text",
                       json ? stet_process_snapshot(g, schemas) : piece_picture(g, format));
    stet_value_release(schemas);
    stet_process_free(g);
}

static stet_status graph_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    piece_call c;
    stet_value hold[2];
    const char *diff = stet_value_text_at(args, "diff", &hold[0]),
               *format = stet_value_text_at_or(args, "format", "json", &hold[1]);
    piece_begin(ctx, args, PIECE_READ, &c, err);
    const stet_piece *p = piece_named_by(&c, args);
    if (piece_good(&c)) {
        *result = stet_value_object();
        stet_value_put(result, "piece", stet_value_string(p->name));
        if (diff)
            c.status = diff_run(&c, p, diff, result, err);
        else
            put_graph(&c, p, format, result);
    }
    return piece_end(&c);
}

static void graph_render(stet_render *r, stet_value result) {
    stet_value text = stet_value_get(result, "text"), changes = stet_value_get(result, "changes");
    size_t len;
    if (stet_value_type(text) == STET_TYPE_STRING) {
        const char *s = stet_value_as_string(&text, &len);
        stet_buf_add(r->out, s, len);
        return;
    }
    if (stet_value_type(changes) == STET_TYPE_ARRAY) {
        for (size_t i = 0; i < stet_value_count(changes); i++) {
            stet_value row = stet_value_at(changes, i), change = stet_value_get(row, "change");
            stet_buf_printf(r->out, "%-8s ", stet_value_as_string(&change, NULL));
            stet_text_value(r, stet_value_get(row, "node"));
            stet_value what = stet_value_get(row, "what");
            for (size_t k = 0; k < stet_value_count(what); k++) {
                stet_buf_str(r->out, k ? ", " : ": ");
                stet_text_value(r, stet_value_at(what, k));
            }
            stet_buf_char(r->out, '\n');
        }
        stet_buf_printf(r->out, "%lld nodes compute what they did\n",
                        (long long)stet_value_as_int(stet_value_get(result, "kept")));
        return;
    }
    char *json = stet_json_print(stet_value_get(result, "graph"), STET_JSON_PRETTY, &len);
    stet_buf_add(r->out, json, len);
    stet_free(json);
}

static stet_status stop_tx(stet_tx *tx, void *ctx, stet_error *err) {
    return stet_piece_set_stopped(tx, ctx, true, err);
}

static stet_status stop_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    piece_call c;
    piece_begin(ctx, args, PIECE_WRITE, &c, err);
    const stet_piece *p = piece_named_by(&c, args);
    if (piece_good(&c)) {
        *result = stet_value_object();
        stet_value_put(result, "piece", stet_value_string(p->name));
        stet_value_put(result, "stopped", stet_value_bool(!p->stopped));
        if (!p->stopped)
            c.status = stet_space_transact(c.space, c.branch_name, stop_tx, c.piece, NULL, err);
    }
    return piece_end(&c);
}

static void stop_render(stet_render *r, stet_value result) {
    stet_text_value(r, stet_value_get(result, "piece"));
    stet_buf_str(r->out,
                 stet_value_as_bool(stet_value_get(result, "stopped")) ? ": stopped\n" : ": was stopped already\n");
}

static stet_status delete_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    piece_call c;
    char *name = NULL;
    piece_begin(ctx, args, PIECE_WRITE, &c, err);
    if (piece_good(&c))
        c.status = piece_named(args, &name, err);
    if (piece_good(&c))
        c.status = stet_sched_delete(c.sched, name ? name : "", err);
    if (piece_good(&c)) {
        *result = stet_value_object();
        stet_value_put(result, "piece", stet_value_string(name));
        stet_value_put(result, "deleted", stet_value_bool(true));
    }
    stet_free(name);
    return piece_end(&c);
}

static void delete_render(stet_render *r, stet_value result) {
    stet_text_value(r, stet_value_get(result, "piece"));
    stet_buf_str(r->out, ": deleted, with what it owned\n");
}

static const char *const graph_formats[] = {"json", "dot", "mermaid", NULL};

static const stet_param list_params[] = {
    {.name = "after", .type = STET_PARAM_STRING, .metavar = "PIECE", .summary = "The `next` of the page before"},
    {.name = "limit",
     .type = STET_PARAM_INT,
     .metavar = "N",
     .summary = "At most so many",
     .default_json = "100",
     .min = 1,
     .max = 10000},
    PIECE_PARAM_SPACE,
    PIECE_PARAM_BRANCH,
    PIECE_PARAM_SCOPE,
    {0},
};
static const stet_param one_params[] = {
    PIECE_PARAM_PIECE, PIECE_PARAM_SPACE, PIECE_PARAM_BRANCH, PIECE_PARAM_SCOPE, {0}};
static const stet_param graph_params[] = {
    PIECE_PARAM_PIECE,
    {.name = "format",
     .type = STET_PARAM_ENUM,
     .choices = graph_formats,
     .summary = "GraphSnapshotV1 in JSON, or a picture for Graphviz or Mermaid",
     .default_json = "\"json\""},
    {.name = "diff",
     .type = STET_PARAM_STRING,
     .metavar = "A..B",
     .summary = "What changed from generation A to generation B; without B: to now"},
    PIECE_PARAM_SPACE,
    PIECE_PARAM_BRANCH,
    PIECE_PARAM_SCOPE,
    {0},
};

static const stet_example list_examples[] = {{"piece list", "which pieces there are"}, {0}};
static const stet_example show_examples[] = {{"piece show totals", "its argument and its result as they are"}, {0}};
static const stet_example graph_examples[] = {
    {"piece graph totals", "the process graph in JSON"},
    {"piece graph totals --format mermaid", "a picture"},
    {"piece graph totals --diff 1", "what changed since it was first set up"},
    {0},
};
static const stet_example stop_examples[] = {{"piece stop totals", "whoever watches it ends"}, {0}};
static const stet_example delete_examples[] = {{"piece delete totals", "the piece and all it owns"}, {0}};

const stet_op stet_ops_piece[] = {
    {.name = "piece list",
     .summary = "List the pieces of a space",
     .params = list_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"pieces\",\"next\"],\"properties\":{\"pieces\":{\"type\":"
                      "\"array\"},\"next\":{\"type\":[\"string\",\"null\"]}}}",
     .examples = list_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_COMMON,
     .run = list_run,
     .render = list_render},
    {.name = "piece show",
     .summary = "Show a piece: its argument and its result, as they are now",
     .description = "Runs nothing: the result may be older than the argument. `piece pull` makes it fresh first.",
     .params = one_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"piece\",\"generation\",\"nodes\",\"result\"],\"properties\":{"
         "\"piece\":{\"type\":\"string\"},\"generation\":{\"type\":\"integer\"},\"nodes\":{\"type\":"
         "\"integer\"},\"streams\":{\"type\":\"array\"},\"overridden\":{\"type\":\"array\"},"
         "\"patternChanged\":{\"type\":\"object\"},\"wrong\":{\"type\":\"string\"}}}",
     .examples = show_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_COMMON,
     .run = show_run,
     .render = show_render},
    {.name = "piece graph",
     .summary = "Show the process graph of a piece, or what changed in it",
     .params = graph_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"piece\"],\"properties\":{\"piece\":{\"type\":\"string\"},"
                      "\"graph\":{\"type\":\"object\"},\"text\":{\"type\":\"string\"},\"changes\":{\"type\":\"array\"},"
                      "\"kept\":{\"type\":\"integer\"}}}",
     .examples = graph_examples,
     .flags = STET_OP_READ_ONLY,
     .run = graph_run,
     .render = graph_render},
    {.name = "piece stop",
     .summary = "Stop a piece: whoever watches it ends",
     .description =
         "The piece stays as it is, and keeps noting what makes it dirty. `stet run` or `stet piece pull` starts "
         "it again.",
     .params = one_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"piece\",\"stopped\"],\"properties\":{\"piece\":{\"type\":"
                      "\"string\"},\"stopped\":{\"type\":\"boolean\"}}}",
     .examples = stop_examples,
     .flags = STET_OP_IDEMPOTENT,
     .run = stop_run,
     .render = stop_render},
    {.name = "piece delete",
     .summary = "Delete a piece with all that it owns",
     .description =
         "Its result, argument, named cells, outputs and records. Documents that it only read or wrote to by a "
         "link stay.",
     .params = one_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"piece\",\"deleted\"],\"properties\":{\"piece\":{\"type\":"
                      "\"string\"},\"deleted\":{\"type\":\"boolean\"}}}",
     .examples = delete_examples,
     .flags = STET_OP_DESTRUCTIVE,
     .run = delete_run,
     .render = delete_render},
    {0},
};
