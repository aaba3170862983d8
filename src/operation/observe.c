/* observe.c - the operation space readers, and the part of space stats that is about actions. */

#include <string.h>

#include "graph/piece.h"
#include "memory/observe.h"
#include "operation/memory.h"
#include "operation/piece_common.h"
#include "operation/text.h"
#include "scheduler/standing.h"

stet_status observe_stats(stet_space *s, stet_value *result, stet_error *err) {
    stet_observe_stats st;
    stet_status status = stet_observe_stat(s, &st, err);
    if (status != STET_OK)
        return status;
    const struct {
        const char *name;
        int64_t n;
    } rows[] = {{"actions", st.actions},
                {"observed", st.observed},
                {"dirty", st.dirty},
                {"unknown", st.unknown},
                {"read_rows", st.read_rows},
                {"write_rows", st.write_rows},
                {"mirror_rows", st.mirror_rows},
                {"foreign_spaces", st.foreign_spaces},
                {"observation_bytes", st.observation_bytes},
                {"past_rows", st.past_rows},
                {"past_bytes", st.past_bytes},
                {"skipped", st.stood},
                {"marked_through", st.marked_through}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        stet_put(result, rows[i].name, stet_int(rows[i].n));
    stet_put(result, "marks", stet_reasons_value(st.marks, STET_REASON_CHANGED));
    stet_put(result, "runs", stet_reasons_value(st.runs, STET_REASON_NONE));
    return STET_OK;
}

void observe_render_marks(stet_render *r, stet_value marks) {
    for (size_t i = 0; i < stet_count(marks); i++)
        stet_buf_printf(r->out, "%s%lld %s", i ? ", " : "", (long long)stet_as_int(stet_at(marks, i)),
                        stet_key_at(marks, i, NULL));
    if (stet_count(marks) == 0)
        stet_buf_str(r->out, "none");
}

static stet_value reader_value(const stet_action_record *r, stet_action_state state, const char *space) {
    stet_value v = stet_object();
    const char *piece = stet_piece_name_of_key(&r->key);
    stet_put(&v, "space", stet_string(space));
    stet_put(&v, "piece", stet_string(piece ? piece : r->key.piece));
    stet_put(&v, "scope", stet_string(r->key.scope ? r->key.scope : ""));
    stet_put(&v, "action", stet_string(r->key.action));
    stet_put(&v, "state", stet_string(piece_state_name(r, state)));
    return v;
}

static stet_status add_readers(stet_space *s, int64_t branch, const char *space, const int64_t *at, size_t len,
                               stet_value *list, stet_error *err) {
    stet_standing all;
    stet_status status = len > 0 ? stet_standing_load(s, branch, &all, err) : STET_OK;
    if (status != STET_OK || len == 0)
        return status;
    for (size_t i = 0; i < len && status == STET_OK; i++) {
        stet_arena arena = STET_ARENA_INIT;
        stet_action_record r;
        status = stet_observe_get(s, at[i], &arena, &r, err);
        if (status == STET_OK)
            stet_push(list, reader_value(&r, piece_state_of(&all, &r), space));
        stet_arena_release(&arena);
    }
    stet_standing_release(&all);
    return status;
}

/* Actions of other spaces. One whose space can't be opened is shown by its number: it reads all the same. */
static stet_status add_far(stet_op_ctx *ctx, const stet_far_reader *at, size_t len, stet_value *list, stet_error *err) {
    stet_project *p;
    stet_status status = ctx->project(ctx, &p, err);
    for (size_t i = 0; i < len && status == STET_OK; i++) {
        stet_space *owner = NULL;
        stet_error why = STET_ERROR_INIT;
        stet_status one = stet_space_open(p, at[i].space, STET_SPACE_READ_ONLY, &owner, &why);
        if (one == STET_OK && strcmp(stet_space_uuid(owner), at[i].uuid) == 0)
            one = add_readers(owner, 0, at[i].space, &at[i].action, 1, list, &why);
        else if (one == STET_OK)
            one = STET_NOT_FOUND;
        if (one != STET_OK) {
            stet_value v = stet_object(), name;
            if (stet_string_checked(at[i].space, strlen(at[i].space), &name, NULL) != STET_OK)
                name = stet_string("?");
            stet_put(&v, "space", name);
            stet_put(&v, "piece", stet_string("?"));
            stet_put(&v, "scope", stet_string(""));
            stet_put(&v, "action", stet_stringf("%lld", (long long)at[i].action));
            stet_put(&v, "state", stet_string("unknown"));
            stet_push(list, v);
        }
        stet_error_clear(&why);
        stet_space_close(owner);
    }
    return status;
}

static stet_status readers_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    memory_call c;
    stet_value hold;
    const char *cell = memory_text(args, "cell", &hold);
    stet_status status = memory_begin(ctx, args, MEMORY_READ, &c, err);
    if (status != STET_OK)
        return status;
    char *id = NULL;
    stet_path path = STET_PATH_INIT;
    stet_numbers readers = {0}, writers = {0};
    stet_far_reader *far = NULL;
    size_t far_count = 0;
    stet_arena arena = STET_ARENA_INIT;
    stet_value list = stet_array(), owners = stet_array();
    stet_change_kind kind = stet_as_bool(stet_get(args, "value")) ? STET_VALUE : STET_KEYSET;
    status = stet_cell_parse(cell, stet_as_bool(stet_get(args, "meta")), &id, &path, err);
    stet_docname name = {id, c.scope};
    if (status == STET_OK)
        status = stet_observe_readers(c.space, c.branch, &name, stet_path_ref(&path), kind, &readers, err);
    if (status == STET_OK && c.branch == 0)
        status = stet_observe_far_readers(c.space, &name, stet_path_ref(&path), kind, &arena, &far, &far_count, err);
    if (status == STET_OK)
        status = stet_observe_writers(c.space, c.branch, &name, stet_path_ref(&path),
                                      STET_WRITE_KNOWN | STET_WRITE_DECLARED | STET_WRITE_ENVELOPE, &writers, err);
    if (status == STET_OK)
        status = add_readers(c.space, c.branch, c.space_name, readers.at, readers.len, &list, err);
    if (status == STET_OK && far_count)
        status = add_far(ctx, far, far_count, &list, err);
    if (status == STET_OK)
        status = add_readers(c.space, c.branch, c.space_name, writers.at, writers.len, &owners, err);
    if (status == STET_OK) {
        *result = stet_object();
        stet_put(result, "cell", stet_string(cell));
        stet_put(result, "readers", stet_retain(list));
        stet_put(result, "writers", stet_retain(owners));
    }
    stet_release(list);
    stet_release(owners);
    stet_numbers_release(&readers);
    stet_numbers_release(&writers);
    stet_arena_release(&arena);
    stet_free(id);
    stet_path_release(&path);
    memory_end(&c);
    return status;
}

static void render_actions(stet_render *r, const char *verb, stet_value list) {
    static const char *const columns[] = {"state", "space", "piece", "action"};
    stet_table t = {.columns = 5};
    for (size_t i = 0; i < stet_count(list); i++) {
        stet_table_cell(&t, verb);
        for (size_t k = 0; k < 4; k++) {
            stet_value row = stet_at(list, i), v = stet_get(row, columns[k]), scope = stet_get(row, "scope");
            const char *text = stet_as_string(&v, NULL), *in = stet_as_string(&scope, NULL);
            char *shown = stet_asprintf(k == 2 && in && *in ? "%s (scope %s)" : "%s", text ? text : "", in);
            stet_table_cell(&t, shown);
            stet_free(shown);
        }
    }
    if (stet_count(list))
        stet_table_print(&t, r, false);
}

static void readers_render(stet_render *r, stet_value result) {
    stet_value readers = stet_get(result, "readers"), writers = stet_get(result, "writers");
    if (stet_count(readers) == 0)
        stet_buf_str(r->out, "no action reads it\n");
    render_actions(r, "reads", readers);
    render_actions(r, "writes", writers);
}

static const stet_param readers_params[] = {
    {.name = "cell",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL | STET_PARAM_REQUIRED,
     .metavar = "CELL",
     .summary = "The cell that would be written: ID[/KEY...]"},
    {.name = "value",
     .type = STET_PARAM_BOOL,
     .summary = "Only who reads its value, not who reads which keys its parent has"},
    PARAM_META,
    PARAM_SCOPE,
    PARAM_SPACE,
    PARAM_BRANCH,
    {0},
};
static const stet_example readers_examples[] = {
    {"space readers piece:totals:argument/factor", "which actions a change of one field would make dirty"}, {0}};

const stet_op stet_ops_observe[] = {
    {.name = "space readers",
     .summary = "Show which actions read a cell, and which write it",
     .description =
         "The readers are those that a write to the cell would make dirty, in every piece and in every space "
         "whose actions read this one, running or not.",
     .params = readers_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"cell\",\"readers\",\"writers\"],\"properties\":{\"cell\":{"
         "\"type\":\"string\"},\"readers\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":"
         "[\"space\",\"piece\",\"scope\",\"action\",\"state\"]}},\"writers\":{\"type\":\"array\"}}}",
     .examples = readers_examples,
     .flags = STET_OP_READ_ONLY,
     .run = readers_run,
     .render = readers_render},
    {0},
};
