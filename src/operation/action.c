/* action.c - the operations action list and action show: the states of actions. */

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "graph/stream.h"
#include "operation/subject.h"
#include "operation/text.h"
#include "os/clock.h"
#include "scheduler/standing.h"

void piece_print_cell(stet_space *s, const char *uuid, const stet_docname *name, stet_pathref path, stet_buf *out) {
    stet_cell_print(name->id, path, out);
    if (name->scope && *name->scope)
        stet_buf_printf(out, " (scope %s)", name->scope);
    if (uuid) {
        stet_arena arena = STET_ARENA_INIT;
        stet_buf_printf(out, " in space %s", stet_observe_space_name(s, uuid, &arena));
        stet_arena_release(&arena);
    }
}

void piece_print_action(const stet_action_key *key, stet_buf *out) {
    char *piece = stet_piece_of_action(key);
    stet_buf_str(out, piece ? piece : key->piece);
    if (!piece && key->scope && *key->scope)
        stet_buf_printf(out, " (scope %s)", key->scope);
    stet_buf_printf(out, "/%s", key->action);
    stet_free(piece);
}

static stet_value cell_value(piece_call *c, const char *space, const stet_docname *name, stet_pathref path) {
    stet_buf b = STET_BUF(0);
    piece_print_cell(c->space, space, name, path, &b);
    stet_value v = stet_value_string_n(stet_buf_cstr(&b), b.len);
    stet_buf_release(&b);
    return v;
}

static stet_value cells_value(piece_call *c, const stet_observed *at, size_t count, bool reads) {
    stet_value list = stet_value_array();
    for (size_t i = 0; i < count; i++) {
        stet_value row = stet_value_object();
        stet_value_put(&row, "cell", cell_value(c, at[i].space, &at[i].name, at[i].path));
        if (reads) {
            stet_value_put(&row, "kind", stet_value_string(at[i].kind == STET_SHALLOW ? "shallow" : "recursive"));
            stet_value_put(&row, "seq", stet_value_int(at[i].seq));
        }
        stet_value_push(&list, row);
    }
    return list;
}

/* Says why an action is stale. */
static stet_value root_value(piece_call *c, const stet_stale_root *root) {
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    stet_action_key key = {.piece = root->piece, .scope = root->scope, .action = root->name};
    stet_value v = stet_value_object();
    stet_value_put(&v, "reason", stet_value_string(root->failed ? "failed" : "upstream"));
    if (root->action && stet_observe_brief(root->space, root->action, &arena, &r, NULL) == STET_OK)
        key = r.key;
    if (key.piece) {
        stet_buf b = STET_BUF(0);
        piece_print_action(&key, &b);
        stet_value_put(&v, "action", stet_value_string_n(stet_buf_cstr(&b), b.len));
        stet_buf_release(&b);
    }
    if (root->space != c->space)
        stet_value_put(&v, "space", stet_value_string(stet_space_name(root->space)));
    else if (!key.piece && key.action)
        stet_value_put(&v, "space", stet_value_string(key.action));
    stet_arena_release(&arena);
    return v;
}

const char *piece_state_name(const stet_action_record *r, stet_action_state state) {
    return stet_action_fails(r) && state == STET_STATE_STANDS ? "failed" : stet_action_state_name(state);
}

stet_value piece_acceptance(const stet_action_record *r) {
    stet_value v = stet_value_object(), note, reason;
    if (r->note_len && stet_json_parse(r->note, r->note_len, &note, NULL) == STET_OK) {
        reason = stet_value_get(stet_value_get(note, "accepted"), "reason");
        stet_value_put(&v, "reason", stet_value_retain(reason));
        stet_value_release(note);
    }
    stet_value_put(&v, "time", stet_time_value(r->time_ms));
    return v;
}

stet_value piece_action_value(piece_call *c, const stet_standing *s, const stet_action_record *r,
                              stet_action_state state, bool full) {
    static const char *const kinds[] = {"", "computation", "effect", "event-handler"};
    static const char *const runs[] = {"", "dependency-collection", "action-run", "event-preflight"};
    stet_value v = stet_value_object();
    stet_value_put(&v, "action", stet_value_string(r->key.action));
    bool failed = stet_action_fails(r);
    const stet_stale_root *root = state == STET_STATE_STALE ? stet_standing_root(s, r->action) : NULL;
    const stet_stale_root *through = state == STET_STATE_STANDS ? stet_standing_through(s, r->action) : NULL;
    stet_value_put(&v, "state", stet_value_string(piece_state_name(r, state)));
    stet_value_put(&v, "failed", stet_value_bool(failed));
    if (r->cause.state != STET_STATE_STANDS) {
        stet_value cause = stet_value_object();
        stet_value_put(&cause, "reason", stet_value_string(stet_reason_name(r->cause.reason)));
        if (r->cause.seq && !piece_is_preview(c, r->cause.space, r->cause.seq))
            stet_value_put(&cause, "seq", stet_value_int(r->cause.seq));
        if (r->cause.name.id)
            stet_value_put(&cause, "cell", cell_value(c, r->cause.space, &r->cause.name, r->cause.change.path));
        stet_value_put(&v, "cause", cause);
    } else if (root) {
        stet_value_put(&v, "cause", root_value(c, root));
    } else if (state == STET_STATE_ACCEPTED) {
        stet_value_put(&v, "accepted", piece_acceptance(r));
    } else if (through) {
        stet_value_put(&v, "through", root_value(c, through));
    } else if (state == STET_STATE_UNKNOWN) { /* the piece as a whole is wrong */
        stet_value cause = stet_value_object();
        stet_value_put(&cause, "reason", stet_value_string("wrong"));
        stet_value_put(&v, "cause", cause);
    }
    if (!r->observed || !full)
        return v;
    stet_value_put(&v, "kind", stet_value_string(kinds[r->kind]));
    stet_value_put(&v, "run", stet_value_string(runs[r->run]));
    stet_value_put(&v, "generation", stet_value_int(r->generation));
    stet_value_put(&v, "observedAt", stet_value_int(r->observed_at));
    stet_value_put(&v, "commitSeq", r->commit_seq ? stet_value_int(r->commit_seq) : stet_value_null());
    if (r->parent)
        stet_value_put(&v, "parent", stet_value_string(r->parent));
    stet_value_put(&v, "time", stet_time_value(r->time_ms));
    stet_value_put(&v, "implementation", stet_hash_text(r->implementation));
    stet_value_put(&v, "runtime", stet_hash_text(r->runtime));
    stet_value_put(&v, "reads", cells_value(c, r->reads, r->read_count, true));
    stet_value_put(&v, "writes", cells_value(c, r->known, r->known_count, false));
    stet_value_put(&v, "changed", cells_value(c, r->changed, r->changed_count, false));
    stet_value_put(&v, "declaredWrites", cells_value(c, r->declared, r->declared_count, false));
    stet_value_put(&v, "envelopes", cells_value(c, r->envelopes, r->envelope_count, false));
    stet_value_put(&v, "ignoredWrites", cells_value(c, r->ignored, r->ignored_count, false));
    stet_value note, options;
    if (r->options_len && stet_json_parse(r->options, r->options_len, &options, NULL) == STET_OK)
        stet_value_put(&v, "options", options);
    if (failed)
        stet_value_put(&v, "errorFingerprint", stet_hash_text(r->error));
    if (r->note_len && stet_json_parse(r->note, r->note_len, &note, NULL) == STET_OK)
        stet_value_put(&v, "note", note);
    return v;
}

/* Earlier observations, newest first, if [scheduler] keep_observations is set. */
static stet_value past_value(piece_call *c, const stet_action_record *at, size_t count) {
    stet_value list = stet_value_array();
    for (size_t i = 0; i < count; i++) {
        stet_value v = stet_value_object();
        stet_value_put(&v, "generation", stet_value_int(at[i].generation));
        stet_value_put(&v, "observedAt", stet_value_int(at[i].observed_at));
        stet_value_put(&v, "time", stet_time_value(at[i].time_ms));
        stet_value_put(&v, "failed", stet_value_bool(at[i].failed));
        stet_value_put(&v, "reads", cells_value(c, at[i].reads, at[i].read_count, true));
        stet_value_put(&v, "changed", cells_value(c, at[i].changed, at[i].changed_count, false));
        stet_value_push(&list, v);
    }
    return list;
}

/* Actions without a row have no number: they come on the last pages, after all others. */
#define AFTER_RECORDED (INT64_C(1) << 62)
#define PAGE           500 /* actions per page */

static void list_missing(piece_call *c, const stet_piece *p, const char *wanted, size_t limit, int64_t *next,
                         stet_value *rows) {
    const stet_standing *s = piece_standing(c);
    size_t i = *next >= AFTER_RECORDED ? (size_t)(*next - AFTER_RECORDED) : 0;
    if ((*next > 0 && *next < AFTER_RECORDED) || (wanted && strcmp(wanted, "unknown") != 0))
        return;
    *next = 0;
    for (; i < s->missing_count && piece_good(c); i++) {
        stet_arena arena = STET_ARENA_INIT;
        stet_action_record r;
        stet_action_key key = {
            .piece = s->missing[i].piece, .scope = s->missing[i].scope, .action = s->missing[i].action};
        if (!stet_piece_has(p, &key))
            continue;
        if (stet_value_count(*rows) >= limit) {
            *next = AFTER_RECORDED + (int64_t)i;
            break;
        }
        piece_find_action(c, &key, &arena, &r);
        if (piece_good(c) && !r.action)
            stet_value_push(rows, piece_action_value(c, s, &r, STET_STATE_UNKNOWN, false));
        stet_arena_release(&arena);
    }
}

static stet_status list_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    piece_call c;
    stet_value hold, rows = stet_value_array();
    const char *wanted = stet_value_text_at(args, "state", &hold);
    size_t limit = (size_t)stet_value_as_int(stet_value_get(args, "limit"));
    int64_t next = stet_value_as_int(stet_value_get(args, "after"));
    piece_begin(ctx, args, PIECE_NOW, &c, err);
    const stet_piece *p = piece_pick(&c, args);
    const stet_standing *s = piece_standing(&c);
    stet_value wrong = piece_wrong(&c, p);
    while (piece_good(&c) && stet_value_count(rows) < limit && next < AFTER_RECORDED) {
        stet_arena arena = STET_ARENA_INIT;
        size_t left = limit - stet_value_count(rows), count = 0;
        stet_action_filter f = {
            .piece = p->doc, .scope = p->scope, .generation = -1, .after = next, .limit = left < PAGE ? left : PAGE};
        stet_action_record *at;
        c.status = stet_observe_list(c.space, c.branch, &f, &arena, &at, &count, &next, err);
        for (size_t i = 0; i < count && piece_good(&c); i++) {
            stet_action_state state = piece_state_in(wrong, s, &at[i]);
            if (!wanted || strcmp(wanted, piece_state_name(&at[i], state)) == 0)
                stet_value_push(&rows, piece_action_value(&c, s, &at[i], state, false));
        }
        stet_arena_release(&arena);
        if (next == 0 || next >= AFTER_RECORDED)
            break;
    }
    list_missing(&c, p, wanted, limit, &next, &rows);
    if (piece_good(&c)) {
        *result = stet_value_object();
        stet_value_put(result, "piece", stet_value_string(p->name));
        stet_value_put(result, "actions", stet_value_retain(rows));
        stet_value_put(result, "next", next ? stet_value_int(next) : stet_value_null());
        if (stet_value_type(wrong) == STET_TYPE_STRING)
            stet_value_put(result, "wrong", stet_value_retain(wrong));
        piece_put_changed(&c, p, result);
    }
    stet_value_release(wrong);
    stet_value_release(rows);
    return piece_end(&c);
}

/* "changed CELL", "waits for PIECE/NODE, which failed", "upstream PIECE/NODE in space NAME" */
static void print_cause(stet_value cause, stet_buf *out) {
    stet_value reason = stet_value_get(cause, "reason"), action = stet_value_get(cause, "action"),
               cell = stet_value_get(cause, "cell"), space = stet_value_get(cause, "space");
    if (stet_value_type(reason) != STET_TYPE_STRING)
        return;
    bool failed = strcmp(stet_value_as_string(&reason, NULL), "failed") == 0;
    stet_buf_str(out, failed ? "waits for" : stet_value_as_string(&reason, NULL));
    if (stet_value_type(action) == STET_TYPE_STRING)
        stet_buf_printf(out, " %s", stet_value_as_string(&action, NULL));
    if (stet_value_type(cell) == STET_TYPE_STRING)
        stet_buf_printf(out, " %s", stet_value_as_string(&cell, NULL));
    if (stet_value_type(space) == STET_TYPE_STRING)
        stet_buf_printf(out, " in space %s", stet_value_as_string(&space, NULL));
    if (failed)
        stet_buf_str(out, ", which failed");
}

/* "only a comment", or "through PIECE/NODE, which was accepted" */
static void print_acceptance(stet_value row, stet_buf *out) {
    stet_value through = stet_value_get(row, "through"), accepted = stet_value_get(row, "accepted"),
               reason = stet_value_get(accepted, "reason"), action = stet_value_get(through, "action");
    if (stet_value_type(through) == STET_TYPE_OBJECT)
        stet_buf_printf(out, "through %s, which was accepted", stet_value_text(&action, "an action"));
    if (stet_value_type(accepted) == STET_TYPE_OBJECT)
        stet_buf_str(out, stet_value_text(&reason, ""));
}

static void list_render(stet_render *r, stet_value result) {
    stet_value rows = stet_value_get(result, "actions");
    if (stet_value_count(rows) == 0) {
        stet_buf_str(r->out, "no such actions\n");
        return;
    }
    stet_table t = stet_table_begin(3, (const char *const[]){"ACTION", "STATE", "CAUSE"});
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        stet_value row = stet_value_at(rows, i), name = stet_value_get(row, "action"),
                   state = stet_value_get(row, "state");
        stet_buf cause = STET_BUF(0);
        print_cause(stet_value_get(row, "cause"), &cause);
        print_acceptance(row, &cause);
        stet_table_cell(&t, stet_value_as_string(&name, NULL));
        const char *text = stet_value_as_string(&state, NULL);
        stet_table_cellf(&t, "%s%s", text,
                         stet_value_as_bool(stet_value_get(row, "failed")) && strcmp(text, "failed") != 0 ? ", failed"
                                                                                                          : "");
        stet_table_cell(&t, stet_buf_cstr(&cause));
        stet_buf_release(&cause);
    }
    stet_table_print(&t, r, true);
    piece_render_changed(r, result);
    piece_render_wrong(r, result);
    if (stet_value_type(stet_value_get(result, "next")) == STET_TYPE_INT)
        stet_buf_printf(r->out, "more: --after %lld\n", (long long)stet_value_as_int(stet_value_get(result, "next")));
}

static stet_status show_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    piece_call c;
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r, *old = NULL;
    size_t old_count = 0;
    stet_value row = stet_value_null();
    piece_subject s;
    piece_begin(ctx, args, PIECE_NOW, &c, err);
    piece_subject_find(&c, args, &s);
    piece_subject_action(&c, &s);
    const stet_piece *p = s.piece;
    const char *node = s.node;
    if (piece_good(&c))
        c.status = stet_piece_row(c.space, c.branch, p, node, &row, err);
    stet_action_key key = piece_good(&c) ? stet_piece_action(p, node) : (stet_action_key){0};
    piece_find_action(&c, &key, &arena, &r);
    stet_value wrong = piece_wrong(&c, p);
    if (piece_good(&c))
        c.status = stet_observe_past(c.space, r.action, &arena, &old, &old_count, err);
    if (piece_good(&c)) {
        const stet_standing *all = piece_standing(&c);
        *result = piece_action_value(&c, all, &r, piece_state_in(wrong, all, &r), true);
        if (stet_stream_is_handler(row)) { /* a handler is not an action: it is neither up to date nor outdated */
            stet_value_put(result, "state", stet_value_string("handler"));
            stet_value_put(result, "kind", stet_value_string("event-handler"));
            stet_value_put(result, "stream", stet_value_retain(stet_value_get(row, "stream")));
            stet_value_remove(result, "cause", 5);
        }
        if (old_count)
            stet_value_put(result, "past", past_value(&c, old, old_count));
        stet_value_put(result, "piece", stet_value_string(p->name));
        if (stet_value_type(wrong) == STET_TYPE_STRING)
            stet_value_put(result, "wrong", stet_value_retain(wrong));
        stet_value_put(result, "module", stet_value_retain(stet_value_get(row, "module")));
        stet_value_put(result, "inputs", stet_value_retain(stet_value_get(row, "inputs")));
    }
    stet_value_release(wrong);
    stet_value_release(row);
    stet_arena_release(&arena);
    piece_subject_release(&s);
    return piece_end(&c);
}

static void render_cells(stet_render *r, const char *what, stet_value list) {
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value row = stet_value_at(list, i), seq = stet_value_get(row, "seq"), kind = stet_value_get(row, "kind");
        stet_buf_printf(r->out, "  %-7s ", what);
        stet_text_value(r, stet_value_get(row, "cell"));
        if (stet_value_type(seq) == STET_TYPE_INT)
            stet_buf_printf(r->out, "  %s, up to %lld", stet_value_as_string(&kind, NULL),
                            (long long)stet_value_as_int(seq));
        stet_buf_char(r->out, '\n');
    }
}

static void show_render(stet_render *r, stet_value result) {
    stet_text_value(r, stet_value_get(result, "piece"));
    stet_buf_char(r->out, '/');
    stet_text_value(r, stet_value_get(result, "action"));
    stet_buf_str(r->out, ": ");
    stet_value state = stet_value_get(result, "state");
    if (strcmp(stet_value_as_string(&state, NULL), "handler") == 0) {
        stet_buf_str(r->out, "an event handler, which runs when an event is sent to its stream\n");
        return;
    }
    stet_text_value(r, state);
    bool shown = strcmp(stet_value_as_string(&state, NULL), "failed") == 0;
    stet_buf_str(r->out, stet_value_as_bool(stet_value_get(result, "failed")) && !shown ? ", failed" : "");
    stet_value cause = stet_value_get(result, "cause");
    bool accepted = stet_value_find(result, "accepted", 8, NULL) || stet_value_find(result, "through", 7, NULL);
    if (stet_value_type(cause) == STET_TYPE_OBJECT || accepted) {
        stet_buf_str(r->out, ": ");
        stet_buf text = STET_BUF(0);
        print_cause(cause, &text);
        print_acceptance(result, &text);
        stet_text_plain(r, stet_buf_cstr(&text), text.len);
        stet_buf_release(&text);
    }
    stet_buf_char(r->out, '\n');
    piece_render_wrong(r, result);
    render_cells(r, "reads", stet_value_get(result, "reads"));
    render_cells(r, "writes", stet_value_get(result, "writes"));
    render_cells(r, "may write", stet_value_get(result, "envelopes"));
    render_cells(r, "ignored", stet_value_get(result, "ignoredWrites"));
    stet_value kind = stet_value_get(result, "kind"), parent = stet_value_get(result, "parent"),
               seq = stet_value_get(result, "commitSeq"), options = stet_value_get(result, "options"),
               error = stet_value_get(result, "errorFingerprint");
    if (stet_value_type(kind) != STET_TYPE_STRING)
        return;
    stet_buf_printf(r->out, "%s, ", stet_value_as_string(&kind, NULL));
    stet_text_value(r, stet_value_get(result, "run"));
    if (stet_value_type(seq) == STET_TYPE_INT)
        stet_buf_printf(r->out, ", stored with revision %lld\n", (long long)stet_value_as_int(seq));
    else
        stet_buf_str(r->out, ", which changed nothing\n");
    if (stet_value_type(parent) == STET_TYPE_STRING)
        stet_buf_printf(r->out, "child of %s\n", stet_value_as_string(&parent, NULL));
    if (stet_value_type(options) == STET_TYPE_OBJECT) {
        char *text = stet_json_print(options, STET_JSON_CANONICAL, NULL);
        stet_buf_printf(r->out, "options %s\n", text);
        stet_free(text);
    }
    if (stet_value_type(error) == STET_TYPE_STRING)
        stet_buf_printf(r->out, "error %.12s: ", stet_value_as_string(&error, NULL));
    if (stet_value_type(error) == STET_TYPE_STRING) {
        stet_text_value(r, stet_value_get(stet_value_get(stet_value_get(result, "note"), "error"), "message"));
        stet_buf_char(r->out, '\n');
    }
}

static const char *const state_names[] = {"stands", "dirty", "stale", "unknown", "failed", "accepted", NULL};

static const stet_param list_params[] = {
    PIECE_PARAM_ONLY_PIECE,
    {.name = "state", .type = STET_PARAM_ENUM, .choices = state_names, .summary = "Only actions in this state"},
    {.name = "after",
     .type = STET_PARAM_INT,
     .metavar = "N",
     .summary = "The `next` of the page before",
     .default_json = "0"},
    {.name = "limit",
     .type = STET_PARAM_INT,
     .metavar = "N",
     .summary = "At most so many",
     .default_json = "100",
     .min = 1,
     .max = 100000},
    PIECE_PARAM_SPACE,
    PIECE_PARAM_BRANCH,
    PIECE_PARAM_SCOPE,
    {0},
};
static const stet_param show_params[] = {PIECE_PARAM_PIECE,  PIECE_PARAM_ACTION(0), PIECE_PARAM_SPACE,
                                         PIECE_PARAM_BRANCH, PIECE_PARAM_SCOPE,     {0}};

static const stet_example list_examples[] = {{"action list totals --state dirty", "what would run, and why"}, {0}};
static const stet_example show_examples[] = {{"action show totals total", "what it read and wrote"}, {0}};

const stet_op stet_ops_action[] = {
    {.name = "action list",
     .summary = "List the actions of a piece with their states",
     .params = list_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"piece\",\"actions\",\"next\"],\"properties\":{\"piece\":{"
         "\"type\":\"string\"},\"actions\":{\"type\":\"array\"},\"next\":{\"type\":[\"integer\",\"null\"]},\"wrong\":{"
         "\"type\":\"string\"},\"patternChanged\":{\"type\":\"object\"}}}",
     .examples = list_examples,
     .flags = STET_OP_READ_ONLY,
     .run = list_run,
     .render = list_render},
    {.name = "action show",
     .summary = "Show one action: its state, what it read and what it wrote",
     .params = show_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"piece\",\"action\",\"state\"],\"properties\":{\"piece\":{"
                      "\"type\":\"string\"},\"action\":{\"type\":\"string\"},\"state\":{\"type\":\"string\"}}}",
     .examples = show_examples,
     .flags = STET_OP_READ_ONLY,
     .run = show_run,
     .render = show_render},
    {0},
};
