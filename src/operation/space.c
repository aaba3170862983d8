/* space.c - the operations space list, stats and changes. */

#include <string.h>

#include "base/text.h"
#include "operation/space_common.h"
#include "operation/text.h"
#include "os/file.h"

static stet_value space_row(stet_project *p, const char *name) {
    stet_error why = STET_ERROR_INIT;
    stet_space *s = NULL;
    stet_space_stats stats;
    stet_value row = stet_value_object();
    stet_value_put(&row, "name", stet_value_string(name));
    stet_status st = stet_space_open(p, name, STET_SPACE_READ_ONLY, &s, &why);
    if (st == STET_OK)
        st = stet_space_stat(s, &stats, &why);
    if (st == STET_OK) {
        stet_value_put(&row, "uuid", stet_value_string(stet_space_uuid(s)));
        stet_value_put(&row, "seq", stet_value_int(stats.seq));
        stet_value_put(&row, "documents", stet_value_int(stats.documents));
        stet_value_put(&row, "bytes", stet_value_int(stats.bytes));
    } else { /* a space that can't be opened is listed as such */
        stet_value_put(&row, "error", stet_value_string(why.message));
    }
    stet_error_clear(&why);
    stet_space_close(s);
    return row;
}

static stet_status spaces_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    (void)args;
    stet_project *p;
    stet_names names = {0};
    stet_status st = ctx->project(ctx, &p, err);
    if (st == STET_OK)
        st = stet_space_names(p, &names, err);
    if (st != STET_OK)
        return st;
    stet_value list = stet_value_array();
    for (size_t i = 0; i < names.len; i++)
        stet_value_push(&list, space_row(p, names.at[i]));
    stet_names_release(&names);
    *result = stet_value_object();
    stet_value_put(result, "spaces", list);
    return STET_OK;
}

static void spaces_render(stet_render *r, stet_value result) {
    stet_value list = stet_value_get(result, "spaces");
    if (stet_value_count(list) == 0) {
        stet_buf_str(r->out, "no spaces; the first write makes one\n");
        return;
    }
    stet_table t = stet_table_begin(5, (const char *const[]){"SPACE", "SEQ", "DOCUMENTS", "BYTES", "UUID"});
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value row = stet_value_at(list, i), name = stet_value_get(row, "name"),
                   error = stet_value_get(row, "error");
        stet_value uuid = stet_value_get(row, "uuid");
        bool bad = stet_value_type(error) == STET_TYPE_STRING;
        stet_table_cell(&t, stet_value_as_string(&name, NULL));
        static const char *const numbers[] = {"seq", "documents", "bytes"};
        for (size_t j = 0; j < 3; j++)
            if (bad)
                stet_table_cell(&t, "?");
            else
                stet_table_cellf(&t, "%lld", (long long)stet_value_as_int(stet_value_get(row, numbers[j])));
        stet_table_cell(&t, bad ? stet_value_as_string(&error, NULL) : stet_value_as_string(&uuid, NULL));
    }
    stet_table_print(&t, r, true);
}

static stet_status stat_space(space_call *c, stet_value args, stet_value *result, stet_error *err) {
    (void)args;
    stet_space_stats stats;
    stet_status st = stet_space_stat(c->space, &stats, err);
    if (st != STET_OK)
        return st;
    *result = stet_value_object();
    stet_value_put(result, "name", stet_value_string(c->space_name));
    stet_value_put(result, "uuid", stet_value_string(stet_space_uuid(c->space)));
    stet_value_put(result, "seq", stet_value_int(stats.seq));
    stet_value_put(result, "documents", stet_value_int(stats.documents));
    stet_value_put(result, "branches", stet_value_int(stats.branches));
    stet_value_put(result, "commits", stet_value_int(stats.commits));
    stet_value_put(result, "snapshots", stet_value_int(stats.snapshots));
    stet_value_put(result, "sessions", stet_value_int(stats.sessions));
    stet_value_put(result, "bytes", stet_value_int(stats.bytes));
    stet_value_put(result, "wal_bytes", stet_value_int(stats.wal_bytes));
    return observe_stats(c->space, result, err);
}

static stet_status stats_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    return space_run(ctx, args, SPACE_READ, stat_space, result, err);
}

static void stats_render(stet_render *r, stet_value result) {
    for (size_t i = 0; i < stet_value_count(result); i++) {
        stet_value v = stet_value_at(result, i);
        stet_buf_printf(r->out, "%-17s ", stet_value_key_at(result, i, NULL));
        if (stet_value_type(v) == STET_TYPE_OBJECT)
            observe_render_marks(r, v);
        else if (stet_value_type(v) == STET_TYPE_STRING)
            stet_text_plain(r, stet_value_as_string(&v, NULL), strlen(stet_value_as_string(&v, NULL)));
        else
            stet_buf_printf(r->out, "%lld", (long long)stet_value_as_int(v));
        stet_buf_char(r->out, '\n');
    }
}

/* The changes of one cell: walks the history of its document, newest first. */
static stet_status cell_changes(space_call *c, stet_value args, size_t limit, stet_value *list, stet_error *err) {
    stet_overlap *at = NULL;
    size_t count = 0;
    int64_t doc = 0;
    stet_status st = space_cell(c, args, err);
    if (st != STET_OK || (st = stet_space_doc(c->space, &c->doc, &doc, err)) != STET_OK || !doc)
        return st;
    st = stet_space_overlaps(c->space, c->branch, doc, stet_path_ref(&c->path),
                             stet_value_as_bool(stet_value_get(args, "shallow")) ? STET_SHALLOW : STET_RECURSIVE,
                             stet_value_int_at(args, "after", 0), stet_value_int_at(args, "before", 0), limit,
                             &c->arena, &at, &count, err);
    for (size_t i = 0; st == STET_OK && i < count; i++) {
        stet_doc_change one = {.doc = doc, .name = c->doc, .at = &at[i].change, .len = 1};
        stet_value change = stet_changes_value(&one, 1), leaf = stet_value_retain(stet_value_at(change, 0));
        stet_value_release(change);
        stet_value_put(&leaf, "seq", stet_value_int(at[i].seq));
        stet_value_push(list, leaf);
    }
    return st;
}

/* All changes, oldest first, in whole commits. `*next`: the --after of the next page. */
static stet_status all_changes(space_call *c, stet_value args, size_t limit, stet_value *list, int64_t *next,
                               stet_error *err) {
    int64_t after = stet_value_int_at(args, "after", 0), before = stet_value_int_at(args, "before", 0);
    stet_status st = STET_OK;
    *next = 0;
    while (st == STET_OK && stet_value_count(*list) < limit) {
        stet_arena arena = STET_ARENA_INIT;
        stet_commit_record *at;
        size_t count = 0;
        st = before == 1 ? STET_OK
                         : stet_space_commits(c->space, after, before ? before - 1 : 0, 256, &arena, &at, &count, err);
        for (size_t i = 0; st == STET_OK && i < count; i++) {
            after = at[i].seq;
            if (at[i].branch != c->branch)
                continue;
            stet_value leaves = stet_changes_value(at[i].at, at[i].len);
            for (size_t j = 0; j < stet_value_count(leaves); j++) {
                stet_value leaf = stet_value_retain(stet_value_at(leaves, j));
                stet_value_put(&leaf, "seq", stet_value_int(at[i].seq));
                stet_value_push(list, leaf);
            }
            stet_value_release(leaves);
            if (stet_value_count(*list) >= limit) {
                *next = after;
                break;
            }
        }
        stet_arena_release(&arena);
        if (count < 256)
            break;
    }
    if (*next == stet_space_known(c->space))
        *next = 0;
    return st;
}

static stet_status list_changes(space_call *c, stet_value args, stet_value *result, stet_error *err) {
    stet_value list = stet_value_array();
    int64_t next = 0;
    size_t limit = (size_t)stet_value_int_at(args, "limit", 100);
    stet_status st = STET_OK;
    if (c->space && stet_value_type(stet_value_get(args, "cell")) == STET_TYPE_STRING)
        st = cell_changes(c, args, limit, &list, err);
    else if (c->space)
        st = all_changes(c, args, limit, &list, &next, err);
    *result = stet_value_object();
    stet_value_put(result, "seq", stet_value_int(c->space ? stet_space_known(c->space) : 0));
    stet_value_put(result, "changes", list);
    if (next)
        stet_value_put(result, "next", stet_value_int(next));
    return st;
}

static stet_status changes_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    return space_run(ctx, args, SPACE_LIST, list_changes, result, err);
}

static void changes_render(stet_render *r, stet_value result) {
    stet_value list = stet_value_get(result, "changes");
    if (stet_value_count(list) == 0)
        stet_buf_str(r->out, "no changes\n");
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value leaf = stet_value_at(list, i), one = stet_value_array();
        stet_value_push(&one, stet_value_retain(leaf));
        stet_buf_printf(r->out, "%lld", (long long)stet_value_as_int(stet_value_get(leaf, "seq")));
        space_render_changes(r, one, true);
        stet_value_release(one);
    }
    if (stet_value_type(stet_value_get(result, "next")) == STET_TYPE_INT)
        stet_buf_printf(r->out, "more: --after %lld\n", (long long)stet_value_as_int(stet_value_get(result, "next")));
}

static const stet_param stats_params[] = {PARAM_SPACE, {0}};
static const stet_param changes_params[] = {
    {.name = "cell",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL,
     .metavar = "CELL",
     .summary = "Only changes that touch this cell, newest first; without it all, oldest first"},
    {.name = "after",
     .type = STET_PARAM_INT,
     .metavar = "SEQ",
     .summary = "Only after this sequence",
     .default_json = "0",
     .min = 0,
     .max = INT64_MAX},
    {.name = "before",
     .type = STET_PARAM_INT,
     .metavar = "SEQ",
     .summary = "Only before this sequence",
     .min = 1,
     .max = INT64_MAX},
    {.name = "shallow",
     .type = STET_PARAM_BOOL,
     .summary = "Of the cell alone: its type, key set or length, not what is below"},
    PARAM_LIMIT,
    PARAM_META,
    PARAM_SPACE,
    PARAM_BRANCH,
    PARAM_SCOPE,
    {0},
};

static const stet_example spaces_examples[] = {{"space list", "which spaces the project has"}, {0}};
static const stet_example stats_examples[] = {{"space stats", "how large the default space is"}, {0}};
static const stet_example changes_examples[] = {{"space changes --after 1", "everything that changed after a sequence"},
                                                {"space changes config/theme", "what changed one field"},
                                                {0}};

#define CHANGES_SCHEMA                                                                                                 \
    "{\"type\":\"object\",\"required\":[\"seq\",\"changes\"],\"properties\":{\"seq\":{\"type\":\"integer\"},"          \
    "\"changes\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"seq\",\"id\",\"scope\",\"path\","  \
    "\"kind\"]}},\"next\":{\"type\":\"integer\"}}}"

const stet_op stet_ops_space[] = {
    {.name = "space list",
     .summary = "List the spaces of the project",
     .result_schema = "{\"type\":\"object\",\"required\":[\"spaces\"],\"properties\":{\"spaces\":{\"type\":\"array\","
                      "\"items\":{\"type\":\"object\",\"required\":[\"name\"]}}}}",
     .examples = spaces_examples,
     .flags = STET_OP_READ_ONLY,
     .run = spaces_run,
     .render = spaces_render},
    {.name = "space stats",
     .summary = "Show how much a space holds",
     .params = stats_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"name\",\"uuid\",\"seq\",\"documents\",\"bytes\"]}",
     .examples = stats_examples,
     .flags = STET_OP_READ_ONLY,
     .run = stats_run,
     .render = stats_render},
    {.name = "space changes",
     .summary = "Show which leaves changed after a sequence",
     .description = "A changed leaf is a path whose value changed (`value`), or a key that appeared or went (`keys`).",
     .params = changes_params,
     .result_schema = CHANGES_SCHEMA,
     .examples = changes_examples,
     .flags = STET_OP_READ_ONLY,
     .run = changes_run,
     .render = changes_render},
    {0},
};
