/* space_readers.c - the operation space readers, and the part of space stats that is about actions. */

#include <string.h>

#include "base/text.h"
#include "graph/piece.h"
#include "memory/observe.h"
#include "operation/piece_common.h"
#include "operation/space_common.h"
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
        stet_value_put(result, rows[i].name, stet_value_int(rows[i].n));
    stet_value_put(result, "marks", stet_reasons_value(st.marks, STET_REASON_CHANGED));
    stet_value_put(result, "runs", stet_reasons_value(st.runs, STET_REASON_NONE));
    return STET_OK;
}

void observe_render_marks(stet_render *r, stet_value marks) {
    for (size_t i = 0; i < stet_value_count(marks); i++)
        stet_buf_printf(r->out, "%s%lld %s", i ? ", " : "", (long long)stet_value_as_int(stet_value_at(marks, i)),
                        stet_value_key_at(marks, i, NULL));
    if (stet_value_count(marks) == 0)
        stet_buf_str(r->out, "none");
}

static stet_value reader_value(const stet_action_record *r, stet_action_state state, const char *space) {
    stet_value v = stet_value_object();
    char *piece = stet_piece_of_action(&r->key);
    stet_value_put(&v, "space", stet_value_string(space));
    stet_value_put(&v, "piece", stet_value_string(piece ? piece : r->key.piece));
    stet_free(piece);
    stet_value_put(&v, "scope", stet_value_string(r->key.scope ? r->key.scope : ""));
    stet_value_put(&v, "action", stet_value_string(r->key.action));
    stet_value_put(&v, "state", stet_value_string(piece_state_name(r, state)));
    return v;
}

/* The problem that the piece of an action has as a whole, or null; determined once for each piece. Borrowed from
 * `known`. */
static stet_value wrong_of(piece_call *c, const stet_action_key *key, stet_value *known) {
    char *name = stet_piece_of_action(key);
    stet_piece *p = NULL;
    stet_value wrong = stet_value_null();
    if (name && !stet_value_find(*known, name, strlen(name), &wrong)) {
        if (stet_piece_load(c->space, c->branch, name, -1, &p, NULL) == STET_OK)
            wrong = piece_wrong(c, p);
        stet_piece_free(p);
        stet_value_put(known, name, wrong);
    }
    stet_free(name);
    return wrong;
}

static void add_readers(piece_call *c, const int64_t *at, size_t len, stet_value *list) {
    stet_value known = stet_value_object();
    const stet_standing *all = len > 0 ? piece_standing(c) : NULL;
    for (size_t i = 0; i < len && piece_good(c); i++) {
        stet_arena arena = STET_ARENA_INIT;
        stet_action_record r;
        stet_error mine = STET_ERROR_INIT;
        stet_status status = stet_observe_get(c->space, at[i], &arena, &r, &mine);
        if (status == STET_OK) {
            stet_value wrong = wrong_of(c, &r.key, &known);
            if (piece_good(c))
                stet_value_push(list, reader_value(&r, piece_state_in(wrong, all, &r), c->space_name));
        } else if (status != STET_NOT_FOUND) { /* not found: the pattern has changed, and the node no longer exists */
            c->status = status;
            stet_error_move(c->err, &mine);
        }
        stet_error_clear(&mine);
        stet_arena_release(&arena);
    }
    stet_value_release(known);
}

/* Adds the readers in one other space, which are consecutive in the list. */
static stet_status add_far_space(stet_op_ctx *ctx, const stet_far_reader *at, size_t len, stet_value *list,
                                 stet_error *err) {
    piece_call c;
    stet_value args = stet_value_object(), name;
    stet_numbers actions = {0};
    stet_status status = stet_value_string_checked(at->space, strlen(at->space), &name, err);
    if (status == STET_OK) {
        stet_value_put(&args, "space", name);
        for (size_t i = 0; i < len; i++)
            *stet_vec_add(&actions) = at[i].action;
        piece_begin(ctx, args, PIECE_NOW, &c, err);
        if (piece_good(&c) && strcmp(stet_space_uuid(c.space), at->uuid) != 0)
            c.status = STET_NOT_FOUND;
        add_readers(&c, actions.at, len, list);
        status = piece_end(&c);
    }
    stet_numbers_release(&actions);
    stet_value_release(args);
    return status;
}

/* Adds actions of other spaces. If a space can't be opened, its action is shown by number, because it is a reader all
 * the same. */
static void add_far(stet_op_ctx *ctx, const stet_far_reader *at, size_t len, stet_value *list) {
    for (size_t i = 0, end; i < len; i = end) {
        stet_error why = STET_ERROR_INIT;
        stet_value found = stet_value_array();
        for (end = i + 1; end < len && strcmp(at[end].space, at[i].space) == 0;)
            end++;
        bool known = add_far_space(ctx, at + i, end - i, &found, &why) == STET_OK;
        for (size_t k = 0; known && k < stet_value_count(found); k++)
            stet_value_push(list, stet_value_retain(stet_value_at(found, k)));
        for (size_t k = i; !known && k < end; k++) {
            stet_value v = stet_value_object(), name;
            if (stet_value_string_checked(at[k].space, strlen(at[k].space), &name, NULL) != STET_OK)
                name = stet_value_string("?");
            stet_value_put(&v, "space", name);
            stet_value_put(&v, "piece", stet_value_string("?"));
            stet_value_put(&v, "scope", stet_value_string(""));
            stet_value_put(&v, "action", stet_value_stringf("%lld", (long long)at[k].action));
            stet_value_put(&v, "state", stet_value_string("unknown"));
            stet_value_push(list, v);
        }
        stet_error_clear(&why);
        stet_value_release(found);
    }
}

static stet_status readers_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    space_call asked;
    piece_call c;
    stet_value hold;
    const char *cell = stet_value_text_at(args, "cell", &hold);
    stet_status status = space_begin(ctx, args, SPACE_READ, &asked, err);
    if (status != STET_OK)
        return status;
    /* The readers are recorded in the space. Their states take patterns and files as they are now, if need be in a
     * copy. */
    piece_begin(ctx, args, PIECE_NOW, &c, err);
    stet_numbers readers = {0}, writers = {0};
    stet_far_reader *far = NULL;
    size_t far_count = 0;
    stet_value list = stet_value_array(), owners = stet_value_array();
    stet_change_kind kind = stet_value_as_bool(stet_value_get(args, "value")) ? STET_VALUE : STET_KEYSET;
    if (piece_good(&c))
        c.status = space_cell(&asked, args, err);
    stet_pathref path = stet_path_ref(&asked.path);
    if (piece_good(&c))
        c.status = stet_observe_readers(asked.space, asked.branch, &asked.doc, path, kind, &readers, err);
    if (piece_good(&c) && c.branch == 0)
        c.status = stet_observe_far_readers(asked.space, &asked.doc, path, kind, &asked.arena, &far, &far_count, err);
    if (piece_good(&c))
        c.status = stet_observe_writers(asked.space, asked.branch, &asked.doc, path,
                                        STET_WRITE_KNOWN | STET_WRITE_DECLARED | STET_WRITE_ENVELOPE, &writers, err);
    add_readers(&c, readers.at, readers.len, &list);
    if (piece_good(&c))
        add_far(ctx, far, far_count, &list);
    add_readers(&c, writers.at, writers.len, &owners);
    *result = stet_value_object();
    stet_value_put(result, "cell", stet_value_string(cell));
    stet_value_put(result, "readers", list);
    stet_value_put(result, "writers", owners);
    stet_numbers_release(&readers);
    stet_numbers_release(&writers);
    space_end(&asked);
    return piece_end(&c);
}

static void render_actions(stet_render *r, const char *verb, stet_value list) {
    static const char *const columns[] = {"state", "space", "piece", "action"};
    stet_table t = {.columns = 5};
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_table_cell(&t, verb);
        for (size_t k = 0; k < 4; k++) {
            stet_value row = stet_value_at(list, i), v = stet_value_get(row, columns[k]),
                       scope = stet_value_get(row, "scope");
            const char *text = stet_value_as_string(&v, NULL), *in = stet_value_as_string(&scope, NULL);
            /* The name of a piece includes its scope. */
            bool complete = k != 2 || !in || !*in || (text && strchr(text, '@'));
            char *shown = stet_asprintf(complete ? "%s" : "%s (scope %s)", text ? text : "", in);
            stet_table_cell(&t, shown);
            stet_free(shown);
        }
    }
    if (stet_value_count(list))
        stet_table_print(&t, r, false);
}

static void readers_render(stet_render *r, stet_value result) {
    stet_value readers = stet_value_get(result, "readers"), writers = stet_value_get(result, "writers");
    if (stet_value_count(readers) == 0)
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
