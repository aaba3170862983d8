/* status, action list, action show: how actions stand */
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "surface/ops/piece_common.h"
#include "surface/text.h"

/* States of the actions of a branch that do not stand, by number. */
typedef struct states {
    stet_marked *marked;
    size_t marked_count;
    stet_numbers stale;
    stet_arena arena;
} states;

static stet_status load_states(piece_call *c, states *s, stet_error *err) {
    *s = (states){0};
    stet_status status =
        stet_observe_marks(c->space, c->branch, NULL, NULL, &s->arena, &s->marked, &s->marked_count, err);
    if (status != STET_OK || s->marked_count == 0)
        return status;
    int64_t *roots = stet_alloc(s->marked_count * sizeof *roots);
    for (size_t i = 0; i < s->marked_count; i++)
        roots[i] = s->marked[i].action;
    status = stet_observe_downstream(c->space, c->branch, roots, s->marked_count, 0, &s->stale, err);
    free(roots);
    return status;
}

static void free_states(states *s) {
    stet_numbers_release(&s->stale);
    stet_arena_release(&s->arena);
}

static int by_action(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = ((const stet_marked *)b)->action;
    return x < y ? -1 : x > y;
}

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static stet_action_state state_of(const states *s, int64_t action) {
    const stet_marked *m =
        s->marked_count ? bsearch(&action, s->marked, s->marked_count, sizeof *s->marked, by_action) : NULL;
    if (m)
        return m->state;
    if (s->stale.len && bsearch(&action, s->stale.at, s->stale.len, sizeof *s->stale.at, by_number))
        return STET_STALE;
    return STET_STANDS;
}

/* ---- status
 * ----------------------------------------------------------------------------------------------------------------- */

static stet_status count_piece(piece_call *c, const states *s, const stet_piece *p, stet_value *row, stet_error *err) {
    size_t counts[4] = {0}, recorded = 0, failed = 0; /* failed: of those that are recorded as marked or stale */
    stet_status status = STET_OK;
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    /* What does not stand is few, or it is about to run: each is looked at by name. */
    for (size_t i = 0; i < s->marked_count && status == STET_OK; i++) {
        status = stet_observe_get(c->space, s->marked[i].action, &arena, &r, err);
        if (status == STET_OK && strcmp(r.key.piece, p->doc) == 0)
            counts[s->marked[i].state]++, recorded++, failed += r.observed && r.failed;
        stet_arena_clear(&arena);
    }
    for (size_t i = 0; i < s->stale.len && status == STET_OK; i++) {
        if (state_of(s, s->stale.at[i]) != STET_STALE)
            continue;
        status = stet_observe_get(c->space, s->stale.at[i], &arena, &r, err);
        if (status == STET_OK && strcmp(r.key.piece, p->doc) == 0)
            counts[STET_STALE]++, recorded++, failed += r.observed && r.failed;
        stet_arena_clear(&arena);
    }
    stet_arena_release(&arena);
    if (status != STET_OK)
        return status;
    char *id = stet_piece_part(p->name, "failures", NULL);
    stet_doc_state failures;
    status = stet_space_load(c->space, c->branch, &(stet_docname){id, NULL}, -1, &failures, err);
    stet_free(id);
    if (status != STET_OK)
        return status;
    /* One that failed, and whose inputs are what they were, does not run again by itself; but it does not stand. */
    size_t all_failed = stet_count(stet_get(failures.value, "value")), actions = p->node_count - p->handler_count;
    int64_t known = 0;
    if (p->has_children)
        status = stet_observe_known(c->space, c->branch, p->doc, &known, err);
    if (status != STET_OK) {
        stet_release(failures.value);
        return status;
    }
    if (known > (int64_t)actions)
        actions = (size_t)known;
    recorded += all_failed > failed ? all_failed - failed : 0;
    counts[STET_STANDS] = actions > recorded ? actions - recorded : 0;
    *row = stet_object();
    stet_put(row, "piece", stet_string(p->name));
    stet_put(row, "generation", stet_int(p->generation));
    stet_put(row, "nodes", stet_int((int64_t)p->node_count));
    for (int i = 0; i < 4; i++)
        stet_put(row, stet_state_name((stet_action_state)i), stet_int((int64_t)counts[i]));
    stet_put(row, "failed", stet_int((int64_t)all_failed));
    if (all_failed > 0)
        stet_put(row, "failures", stet_retain(stet_get(failures.value, "value")));
    stet_put(row, "stopped", stet_bool(p->stopped));
    stet_release(failures.value);
    return STET_OK;
}

static stet_status status_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    piece_call c;
    states s = {0};
    stet_value hold, rows = stet_array(), names = stet_array();
    stet_error mine = STET_ERROR_INIT;
    const char *only = piece_text(args, "piece", NULL, &hold);
    stet_status status = piece_begin(ctx, args, PIECE_READ, &c, &mine);
    if (status == STET_NOT_FOUND && !c.space && !only) {
        stet_project *p;
        stet_error_clear(&mine);
        status = ctx->project(ctx, &p, err);
        if (status == STET_OK) {
            *result = stet_object();
            stet_put(result, "pieces", rows);
            stet_put(result, "persist", stet_bool(stet_drive_persist(p)));
            stet_release(names);
            return STET_OK;
        }
    }
    if (status != STET_OK) {
        if (err)
            stet_error_move(err, &mine);
        stet_release(rows);
        stet_release(names);
        return status;
    }
    bool more = false, persist = stet_drive_persist(c.project);
    status = load_states(&c, &s, err);
    if (status == STET_OK && only) {
        stet_push(&names, stet_string(only));
    } else if (status == STET_OK) {
        stet_release(names);
        names = stet_null();
        status = stet_piece_names(c.space, c.branch, NULL, 10000, &names, &more, err);
    }
    for (size_t i = 0; i < stet_count(names) && status == STET_OK; i++) {
        stet_value name = stet_at(names, i), row;
        stet_piece *p;
        stet_error bad = STET_ERROR_INIT;
        status = stet_piece_load(c.space, c.branch, stet_as_string(&name, NULL), -1, &p, &bad);
        if (status != STET_OK) {
            if (only && err)
                stet_error_move(err, &bad);
            else
                status = STET_OK;
            stet_error_clear(&bad);
            continue;
        }
        status = count_piece(&c, &s, p, &row, err);
        if (status == STET_OK)
            stet_push(&rows, row);
        stet_piece_free(p);
    }
    stet_observe_stats st = {0};
    stet_value owed = stet_null();
    if (status == STET_OK)
        status = piece_owed(&c, &owed, err);
    if (status == STET_OK)
        status = stet_observe_stat(c.space, &st, err);
    if (status == STET_OK) {
        *result = stet_object();
        stet_put(result, "pieces", stet_retain(rows));
        stet_put(result, "persist", stet_bool(persist));
        stet_put(result, "metrics", stet_observe_stats_value(&st));
        stet_put(result, "owed", owed);
        piece_put_files(&c, result);
        owed = stet_null();
    }
    stet_release(owed);
    stet_release(rows);
    stet_release(names);
    free_states(&s);
    piece_end(&c);
    return status;
}

static void status_render(stet_render *r, stet_value result) {
    stet_value rows = stet_get(result, "pieces");
    if (!stet_as_bool(stet_get(result, "persist")))
        stet_buf_str(r->out, "nothing is recorded: [scheduler] persist = false in config.toml\n");
    if (stet_count(rows) == 0) {
        stet_buf_str(r->out, "no pieces; make one with: stet run PATTERN\n");
        return;
    }
    static const char *const columns[] = {"stands", "dirty", "stale", "unknown", "failed"};
    stet_table t = {.columns = 6};
    stet_table_cell(&t, "PIECE");
    stet_table_cell(&t, "STANDS");
    stet_table_cell(&t, "DIRTY");
    stet_table_cell(&t, "STALE");
    stet_table_cell(&t, "UNKNOWN");
    stet_table_cell(&t, "FAILED");
    for (size_t i = 0; i < stet_count(rows); i++) {
        stet_value row = stet_at(rows, i), name = stet_get(row, "piece");
        stet_table_cell(&t, stet_as_string(&name, NULL));
        for (size_t k = 0; k < 5; k++)
            stet_table_cellf(&t, "%lld", (long long)stet_as_int(stet_get(row, columns[k])));
    }
    stet_table_print(&t, r, true);
    piece_render_owed(r, stet_get(result, "owed"));
    piece_render_files(r, result);
    for (size_t i = 0; i < stet_count(rows); i++) {
        stet_value row = stet_at(rows, i), failures = stet_get(row, "failures");
        for (size_t k = 0; k < stet_count(failures) && k < 20; k++) {
            size_t len;
            const char *node = stet_key_at(failures, k, &len);
            stet_text_styled(r, STET_STYLE_BAD, "failed ");
            piece_render_text(r, stet_get(row, "piece"));
            stet_buf_char(r->out, '/');
            stet_text_plain(r, node, len);
            stet_buf_str(r->out, ": ");
            stet_value piece = stet_get(row, "piece");
            piece_render_message(r->out, stet_at(failures, k), stet_as_string(&piece, NULL), node);
            stet_buf_char(r->out, '\n');
        }
    }
}

/* ---- Actions
 * ---------------------------------------------------------------------------------------------------------------- */

static stet_value cell_value(const char *space, const char *id, stet_pathref path) {
    stet_buf b = STET_BUF(0);
    stet_cell_print(id, path, &b);
    stet_value v =
        space ? stet_stringf("%s (space %s)", stet_buf_cstr(&b), space) : stet_string_n(stet_buf_cstr(&b), b.len);
    stet_buf_release(&b);
    return v;
}

static stet_value cells_value(const stet_observed *at, size_t count, bool reads) {
    stet_value list = stet_array();
    for (size_t i = 0; i < count; i++) {
        stet_value row = stet_object();
        stet_put(&row, "cell", cell_value(at[i].space, at[i].name.id, at[i].path));
        if (reads) {
            stet_put(&row, "kind", stet_string(at[i].kind == STET_SHALLOW ? "shallow" : "recursive"));
            stet_put(&row, "seq", stet_int(at[i].seq));
        }
        stet_push(&list, row);
    }
    return list;
}

static stet_value time_value(int64_t ms) {
    char text[STET_TIME_TEXT];
    stet_time_print(ms, text);
    return stet_string(text);
}

stet_value piece_action_value(const stet_action_record *r, stet_action_state state, bool full) {
    static const char *const kinds[] = {"", "computation", "effect", "event-handler"};
    stet_value v = stet_object();
    stet_put(&v, "action", stet_string(r->key.action));
    bool failed = r->observed && r->failed;
    stet_put(&v, "state", stet_string(failed && state == STET_STANDS ? "failed" : stet_state_name(state)));
    stet_put(&v, "failed", stet_bool(failed));
    if (r->cause.state != STET_STANDS) {
        stet_value cause = stet_object();
        stet_put(&cause, "reason", stet_string(stet_reason_name(r->cause.reason)));
        if (r->cause.seq)
            stet_put(&cause, "seq", stet_int(r->cause.seq));
        if (r->cause.name.id)
            stet_put(&cause, "cell", cell_value(r->cause.space, r->cause.name.id, r->cause.change.path));
        stet_put(&v, "cause", cause);
    }
    if (!r->observed || !full)
        return v;
    char hex[STET_HASH_HEX];
    stet_put(&v, "kind", stet_string(kinds[r->kind]));
    stet_put(&v, "generation", stet_int(r->generation));
    stet_put(&v, "observedAt", stet_int(r->observed_at));
    stet_put(&v, "time", time_value(r->time_ms));
    stet_hash_hex(r->implementation, hex);
    stet_put(&v, "implementation", stet_string(hex));
    stet_hash_hex(r->runtime, hex);
    stet_put(&v, "runtime", stet_string(hex));
    stet_put(&v, "reads", cells_value(r->reads, r->read_count, true));
    stet_put(&v, "writes", cells_value(r->known, r->known_count, false));
    stet_put(&v, "changed", cells_value(r->changed, r->changed_count, false));
    stet_value note;
    if (r->note_len && stet_json_parse(r->note, r->note_len, &note, NULL) == STET_OK)
        stet_put(&v, "note", note);
    return v;
}

/* Earlier observations, newest first, if [scheduler] keep_observations keeps any. */
static stet_value past_value(const stet_action_record *at, size_t count) {
    stet_value list = stet_array();
    for (size_t i = 0; i < count; i++) {
        stet_value v = stet_object();
        stet_put(&v, "generation", stet_int(at[i].generation));
        stet_put(&v, "observedAt", stet_int(at[i].observed_at));
        stet_put(&v, "time", time_value(at[i].time_ms));
        stet_put(&v, "failed", stet_bool(at[i].failed));
        stet_put(&v, "reads", cells_value(at[i].reads, at[i].read_count, true));
        stet_put(&v, "changed", cells_value(at[i].changed, at[i].changed_count, false));
        stet_push(&list, v);
    }
    return list;
}

static stet_status list_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    piece_call c;
    states s = {0};
    stet_piece *p = NULL;
    stet_value hold;
    const char *wanted = piece_text(args, "state", NULL, &hold);
    size_t limit = (size_t)stet_as_int(stet_get(args, "limit"));
    int64_t next = stet_as_int(stet_get(args, "after"));
    stet_status status = piece_begin(ctx, args, PIECE_READ, &c, err);
    if (status != STET_OK)
        return status;
    status = piece_pick(&c, args, &p, err);
    if (status == STET_OK)
        status = load_states(&c, &s, err);
    stet_value rows = stet_array();
    while (status == STET_OK && stet_count(rows) < limit) {
        stet_arena arena = STET_ARENA_INIT;
        stet_action_filter f = {.piece = p->doc, .generation = -1, .after = next, .limit = 1};
        stet_action_record *at;
        size_t count = 0;
        f.limit = limit - stet_count(rows) < 500 ? limit - stet_count(rows) : 500;
        status = stet_observe_list(c.space, c.branch, &f, &arena, &at, &count, &next, err);
        for (size_t i = 0; i < count && status == STET_OK; i++) {
            stet_action_state state = state_of(&s, at[i].action);
            bool failed = at[i].observed && at[i].failed;
            bool only_failed = failed && state == STET_STANDS;
            if (!wanted || (!only_failed && strcmp(wanted, stet_state_name(state)) == 0) ||
                (failed && strcmp(wanted, "failed") == 0))
                stet_push(&rows, piece_action_value(&at[i], state, false));
        }
        stet_arena_release(&arena);
        if (next == 0)
            break;
    }
    if (status == STET_OK) {
        *result = stet_object();
        stet_put(result, "piece", stet_string(p->name));
        stet_put(result, "actions", stet_retain(rows));
        stet_put(result, "next", next ? stet_int(next) : stet_null());
    }
    stet_release(rows);
    free_states(&s);
    stet_piece_free(p);
    piece_end(&c);
    return status;
}

static void list_render(stet_render *r, stet_value result) {
    stet_value rows = stet_get(result, "actions");
    if (stet_count(rows) == 0) {
        stet_buf_str(r->out, "no such actions\n");
        return;
    }
    stet_table t = {.columns = 3};
    stet_table_cell(&t, "ACTION");
    stet_table_cell(&t, "STATE");
    stet_table_cell(&t, "CAUSE");
    for (size_t i = 0; i < stet_count(rows); i++) {
        stet_value row = stet_at(rows, i), name = stet_get(row, "action"), state = stet_get(row, "state"),
                   cause = stet_get(row, "cause"), reason = stet_get(cause, "reason"), cell = stet_get(cause, "cell");
        stet_table_cell(&t, stet_as_string(&name, NULL));
        const char *text = stet_as_string(&state, NULL);
        stet_table_cellf(&t, "%s%s", text,
                         stet_as_bool(stet_get(row, "failed")) && strcmp(text, "failed") != 0 ? ", failed" : "");
        stet_table_cellf(&t, "%s%s%s", stet_typeof(reason) == STET_STRING ? stet_as_string(&reason, NULL) : "",
                         stet_typeof(cell) == STET_STRING ? " " : "",
                         stet_typeof(cell) == STET_STRING ? stet_as_string(&cell, NULL) : "");
    }
    stet_table_print(&t, r, true);
    if (stet_typeof(stet_get(result, "next")) == STET_INT)
        stet_buf_printf(r->out, "more: --after %lld\n", (long long)stet_as_int(stet_get(result, "next")));
}

static stet_status show_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    piece_call c;
    stet_value hold[2];
    const char *name = piece_text(args, "piece", "", &hold[0]), *node = piece_text(args, "action", "", &hold[1]);
    stet_status status = piece_begin(ctx, args, PIECE_READ, &c, err);
    if (status != STET_OK)
        return status;
    stet_piece *p;
    status = stet_piece_load(c.space, c.branch, name, -1, &p, err);
    if (status == STET_OK) {
        stet_arena arena = STET_ARENA_INIT;
        stet_action_record r;
        stet_action_state state = STET_UNKNOWN;
        stet_value row = stet_null();
        stet_action_key key = {.piece = p->doc, .action = node};
        status = stet_piece_row(c.space, c.branch, p, node, &row, err);
        if (status == STET_OK)
            status = stet_observe_find(c.space, c.branch, &key, &arena, &r, err);
        if (status == STET_OK)
            status = stet_observe_state(c.space, c.branch, r.action, &state, NULL, err);
        stet_action_record *old = NULL;
        size_t old_count = 0;
        if (status == STET_OK)
            status = stet_observe_past(c.space, r.action, &arena, &old, &old_count, err);
        if (status == STET_OK) {
            *result = piece_action_value(&r, state, true);
            if (old_count)
                stet_put(result, "past", past_value(old, old_count));
            stet_put(result, "piece", stet_string(p->name));
            stet_put(result, "module", stet_retain(stet_get(row, "module")));
            stet_put(result, "inputs", stet_retain(stet_get(row, "inputs")));
        }
        stet_release(row);
        stet_arena_release(&arena);
        stet_piece_free(p);
    }
    piece_end(&c);
    return status;
}

static void render_cells(stet_render *r, const char *what, stet_value list) {
    for (size_t i = 0; i < stet_count(list); i++) {
        stet_value row = stet_at(list, i), seq = stet_get(row, "seq"), kind = stet_get(row, "kind");
        stet_buf_printf(r->out, "  %-7s ", what);
        piece_render_text(r, stet_get(row, "cell"));
        if (stet_typeof(seq) == STET_INT)
            stet_buf_printf(r->out, "  %s, up to %lld", stet_as_string(&kind, NULL), (long long)stet_as_int(seq));
        stet_buf_char(r->out, '\n');
    }
}

static void show_render(stet_render *r, stet_value result) {
    piece_render_text(r, stet_get(result, "piece"));
    stet_buf_char(r->out, '/');
    piece_render_text(r, stet_get(result, "action"));
    stet_buf_str(r->out, ": ");
    stet_value state = stet_get(result, "state");
    piece_render_text(r, state);
    bool said = strcmp(stet_as_string(&state, NULL), "failed") == 0;
    stet_buf_str(r->out, stet_as_bool(stet_get(result, "failed")) && !said ? ", failed\n" : "\n");
    render_cells(r, "reads", stet_get(result, "reads"));
    render_cells(r, "writes", stet_get(result, "writes"));
}

/* ---- The table
 * ------------------------------------------------------------------------------------------------------------------ */

static const char *const state_names[] = {"stands", "dirty", "stale", "unknown", "failed", NULL};

static const stet_param status_params[] = {{.name = "piece",
                                            .type = STET_PARAM_STRING,
                                            .flags = STET_PARAM_POSITIONAL,
                                            .metavar = "PIECE",
                                            .summary = "One piece; without it all"},
                                           PIECE_PARAM_SPACE,
                                           PIECE_PARAM_BRANCH,
                                           {0}};
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
    {0},
};
static const stet_param show_params[] = {
    PIECE_PARAM_PIECE, PIECE_PARAM_ACTION(STET_PARAM_REQUIRED), PIECE_PARAM_SPACE, PIECE_PARAM_BRANCH, {0}};

static const stet_example status_examples[] = {
    {"status", "how everything stands"}, {"status totals", "how one piece stands"}, {0}};
static const stet_example list_examples[] = {{"action list totals --state dirty", "what would run, and why"}, {0}};
static const stet_example show_examples[] = {{"action show totals total", "what it read and wrote"}, {0}};

const stet_op stet_ops_state[] = {
    {.name = "status",
     .summary = "Show how pieces stand: what stands, what is dirty, stale, unknown or failed",
     .description =
         "stands: nothing that it read has changed. dirty: something has. stale: something upstream is dirty or "
         "unknown. unknown: there is no record of it that can be trusted. failed: its last run did. Only looks: what "
         "commits by others still owe to the marks is told as owed, and left to the next run.",
     .params = status_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"pieces\",\"persist\"],\"properties\":{\"pieces\":{\"type\":"
                      "\"array\"},\"persist\":{\"type\":\"boolean\"},\"metrics\":{\"type\":\"object\"},"
                      "\"owed\":{\"type\":[\"object\",\"null\"]},"
                      "\"filesLookedAt\":{\"type\":\"boolean\"}}}",
     .examples = status_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_COMMON,
     .run = status_run,
     .render = status_render},
    {.name = "action list",
     .summary = "List the actions of a piece with their states",
     .params = list_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"piece\",\"actions\",\"next\"],\"properties\":{\"piece\":{"
         "\"type\":\"string\"},\"actions\":{\"type\":\"array\"},\"next\":{\"type\":[\"integer\",\"null\"]}}}",
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
