/* dag.c - the operations dag refs, list, log and diff: what the repository of calls holds. */

#include <string.h>

#include "base/text.h"
#include "operation/repo_common.h"
#include "operation/text.h"
#include "os/clock.h"
#include "repo/history.h"

/* {"total": the number of rows, `key`: the rows}. Consumes `rows`. */
static stet_value counted(const char *key, stet_value rows) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "total", stet_value_int((int64_t)stet_value_count(rows)));
    stet_value_put(&v, key, rows);
    return v;
}

static stet_value ref_row(stet_repo *r, const stet_ref *ref) {
    stet_value row = stet_value_object(), record;
    stet_record_type type;
    bool there = stet_repo_get_any(r, ref->target, &type, &record, NULL) == STET_OK;
    stet_value_put(&row, "name", stet_value_string(ref->name));
    stet_value_put(&row, "target", stet_hash_text(ref->target));
    stet_value_put(&row, "type", there ? stet_value_string(stet_record_type_name(type)) : stet_value_null());
    if (there)
        stet_value_release(record);
    return row;
}

static stet_status list_refs(stet_repo *r, stet_value args, stet_value *result, stet_error *err) {
    stet_refs refs = {0};
    stet_value prefix = stet_value_get(args, "prefix"), rows = stet_value_array();
    stet_status st = stet_repo_refs(r, stet_value_text(&prefix, ""), &refs, err);
    for (size_t i = 0; i < refs.len && st == STET_OK; i++)
        stet_value_push(&rows, ref_row(r, &refs.at[i]));
    stet_refs_release(&refs);
    *result = counted("refs", rows);
    return st;
}

static stet_status refs_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    return stet_repo_op_run(ctx, args, list_refs, result, err);
}

static void cell(stet_table *t, stet_value row, const char *key) {
    stet_value v = stet_value_get(row, key);
    stet_table_cell(t, stet_value_text(&v, "-"));
}

static void cell_id(stet_table *t, stet_value row, const char *key) {
    char text[16];
    stet_repo_op_short(stet_value_get(row, key), text);
    stet_table_cell(t, text);
}

typedef struct column {
    const char *key;
    bool id; /* shown abbreviated */
} column;

/* Prints a line for each row, or `none` if there are none. */
static void rows_render(stet_render *r, stet_value rows, const column columns[3], const char *none) {
    stet_table t = {.columns = 3};
    for (size_t i = 0; i < stet_value_count(rows); i++)
        for (size_t k = 0; k < 3; k++)
            (columns[k].id ? cell_id : cell)(&t, stet_value_at(rows, i), columns[k].key);
    if (stet_value_count(rows))
        stet_table_print(&t, r, false);
    else
        stet_buf_str(r->out, none);
}

static void refs_render(stet_render *r, stet_value result) {
    static const column columns[] = {{"target", true}, {"type", false}, {"name", false}};
    rows_render(r, stet_value_get(result, "refs"), columns, "no refs\n");
}

static stet_status add_tree(stet_repo *r, const char *head, stet_hash commit, stet_value *rows, stet_error *err) {
    stet_value c, tree;
    stet_hash id = {{0}};
    stet_status st = stet_repo_get(r, commit, STET_RECORD_COMMIT, &c, err);
    if (st != STET_OK)
        return st;
    stet_hash_of_text(stet_value_get(c, "tree"), &id);
    stet_value_release(c);
    st = stet_repo_get(r, id, STET_RECORD_TREE, &tree, err);
    if (st != STET_OK)
        return st;
    stet_value dags = stet_value_get(tree, "dags");
    for (size_t i = 0; i < stet_value_count(dags); i++) {
        size_t len;
        const char *name = stet_value_key_at(dags, i, &len);
        stet_value row = stet_value_object();
        stet_value_put(&row, "head", stet_value_string(head));
        stet_value_put(&row, "name", stet_value_string_n(name, len));
        stet_value_put(&row, "dag", stet_value_retain(stet_value_at(dags, i)));
        stet_value_push(rows, row);
    }
    stet_value_release(tree);
    return STET_OK;
}

static stet_status list_dags(stet_repo *r, stet_value args, stet_value *result, stet_error *err) {
    stet_refs refs = {0};
    stet_value head = stet_value_get(args, "head"), rows = stet_value_array();
    const char *only = stet_value_as_string(&head, NULL);
    stet_hash commit;
    stet_status st =
        only ? stet_history_resolve_commit(r, only, &commit, err) : stet_repo_refs(r, "refs/heads/", &refs, err);
    if (st != STET_OK)
        return st;
    if (only)
        st = add_tree(r, only, commit, &rows, err);
    for (size_t i = 0; i < refs.len && st == STET_OK; i++)
        st = add_tree(r, refs.at[i].name + strlen("refs/heads/"), refs.at[i].target, &rows, err);
    stet_refs_release(&refs);
    *result = counted("dags", rows);
    return st;
}

static stet_status list_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    return stet_repo_op_run(ctx, args, list_dags, result, err);
}

static void list_render(stet_render *r, stet_value result) {
    static const column columns[] = {{"head", false}, {"dag", true}, {"name", false}};
    rows_render(r, stet_value_get(result, "dags"), columns, "no DAGs; stet dag commit NAME VALUE makes one\n");
}

static bool add_commit(void *ctx, stet_hash id, stet_value record) {
    stet_value *rows = ctx, row = stet_value_object();
    stet_value_put(&row, "commit", stet_hash_text(id));
    stet_value_put(&row, "time", stet_time_value(stet_value_as_int(stet_value_get(record, "time"))));
    stet_value_put(&row, "message", stet_value_retain(stet_value_get(record, "message")));
    stet_value_put(&row, "parents", stet_value_retain(stet_value_get(record, "parents")));
    stet_value_put(&row, "tree", stet_value_retain(stet_value_get(record, "tree")));
    stet_value_push(rows, row);
    return true;
}

static stet_status log_head(stet_repo *r, stet_value args, stet_value *result, stet_error *err) {
    stet_hash id;
    stet_value head = stet_value_get(args, "head"), rows = stet_value_array();
    stet_status st = stet_history_resolve_commit(r, stet_value_text(&head, "main"), &id, err);
    if (st != STET_OK)
        return st;
    st = stet_history_log(r, id, (size_t)stet_value_as_int(stet_value_get(args, "limit")), add_commit, &rows, err);
    *result = stet_value_object();
    stet_value_put(result, "commits", rows);
    return st;
}

static stet_status log_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    return stet_repo_op_run(ctx, args, log_head, result, err);
}

static void log_render(stet_render *r, stet_value result) {
    static const column columns[] = {{"commit", true}, {"time", false}, {"message", false}};
    rows_render(r, stet_value_get(result, "commits"), columns, "");
}

static stet_status diff_commits(stet_repo *r, stet_value args, stet_value *result, stet_error *err) {
    stet_hash a, b;
    stet_value from = stet_value_get(args, "from"), to = stet_value_get(args, "to");
    stet_status st = stet_history_resolve_commit(r, stet_value_as_string(&from, NULL), &a, err);
    if (st != STET_OK)
        return st;
    st = stet_history_resolve_commit(r, stet_value_as_string(&to, NULL), &b, err);
    if (st != STET_OK)
        return st;
    return stet_history_diff(r, a, b, (size_t)stet_value_as_int(stet_value_get(args, "limit")), result, err);
}

static stet_status diff_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    return stet_repo_op_run(ctx, args, diff_commits, result, err);
}

static void diff_rows(stet_table *t, stet_value rows, const char *what, bool ids) {
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        stet_value row = stet_value_at(rows, i);
        cell(t, row, "change");
        stet_table_cell(t, what);
        if (ids)
            cell_id(t, row, "node");
        else
            cell(t, row, "name");
        cell_id(t, row, "before");
        cell_id(t, row, "after");
    }
}

static void diff_render(stet_render *r, stet_value result) {
    stet_value dags = stet_value_get(result, "dags"), pins = stet_value_get(result, "pins");
    int64_t more = stet_value_as_int(stet_value_get(result, "pinCount")) - (int64_t)stet_value_count(pins);
    stet_table t = {.columns = 5};
    diff_rows(&t, dags, "dag", false);
    diff_rows(&t, pins, "pin", true);
    if (stet_value_count(dags) + stet_value_count(pins))
        stet_table_print(&t, r, false);
    else
        stet_buf_str(r->out, "nothing differs\n");
    if (more > 0)
        stet_buf_printf(r->out, "and %lld more pins\n", (long long)more);
}

static const stet_param refs_params[] = {
    {.name = "prefix",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL,
     .metavar = "PREFIX",
     .summary = "Those whose names begin so"},
    {0},
};
static const stet_param list_params[] = {
    {.name = "head",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL,
     .metavar = "HEAD",
     .summary = "A head, a ref or a commit; without it all heads"},
    {0},
};
static const stet_param log_params[] = {
    {.name = "head",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL,
     .metavar = "HEAD",
     .summary = "A head, a ref or a commit; without it the head main"},
    {.name = "limit",
     .letter = 'n',
     .type = STET_PARAM_INT,
     .default_json = "50",
     .min = 1,
     .max = 1000,
     .summary = "At most so many"},
    {0},
};
static const stet_param diff_params[] = {
    {.name = "from",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL | STET_PARAM_REQUIRED,
     .metavar = "FROM",
     .summary = "A head, a ref or a commit"},
    {.name = "to",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL | STET_PARAM_REQUIRED,
     .metavar = "TO",
     .summary = "Another one"},
    {.name = "limit",
     .type = STET_PARAM_INT,
     .default_json = "100",
     .min = 0,
     .max = 100000,
     .summary = "List at most so many pins; all are counted"},
    {0},
};

static const stet_example refs_examples[] = {
    {"dag refs", "what is named"}, {"dag refs refs/heads/", "the heads alone"}, {0}};
static const stet_example list_examples[] = {
    {"dag list", "the DAGs of all heads"}, {"dag list main", "those of one head"}, {0}};
static const stet_example log_examples[] = {{"dag log", "the commits of the head main"}, {0}};
static const stet_example diff_examples[] = {{"dag diff main side", "what differs between two heads"}, {0}};

const stet_op stet_ops_dag[] = {
    {.name = "dag refs",
     .summary = "List the refs of the repository of calls",
     .description = "Heads, the index of what is computed, what is in flight, claims, and what remotes had.",
     .params = refs_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"total\",\"refs\"],\"additionalProperties\":false,"
                      "\"properties\":{\"total\":{\"type\":\"integer\"},\"refs\":{\"type\":\"array\",\"items\":{"
                      "\"type\":\"object\",\"required\":[\"name\",\"target\",\"type\"],\"additionalProperties\":false,"
                      "\"properties\":{\"name\":{\"type\":\"string\"},\"target\":" REPO_ID
                      ",\"type\":{\"type\":[\"string\",\"null\"]}}}}}}",
     .examples = refs_examples,
     .flags = STET_OP_READ_ONLY,
     .run = refs_run,
     .render = refs_render},
    {.name = "dag list",
     .summary = "List the DAGs that commits name",
     .description = "A DAG is what a name stands for in the tree of a commit: a node, and all that leads to it.",
     .params = list_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"total\",\"dags\"],\"additionalProperties\":false,"
         "\"properties\":{\"total\":{\"type\":\"integer\"},\"dags\":{\"type\":\"array\",\"items\":{"
         "\"type\":\"object\",\"required\":[\"head\",\"name\",\"dag\"],\"additionalProperties\":false,"
         "\"properties\":{\"head\":{\"type\":\"string\"},\"name\":{\"type\":\"string\"},\"dag\":" REPO_ID "}}}}}",
     .examples = list_examples,
     .flags = STET_OP_READ_ONLY,
     .run = list_run,
     .render = list_render},
    {.name = "dag log",
     .summary = "List the commits of a head, newest first",
     .params = log_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"commits\"],\"additionalProperties\":false,\"properties\":{\"commits\":{"
         "\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"commit\",\"time\",\"message\",\"parents\","
         "\"tree\"],\"additionalProperties\":false,\"properties\":{\"commit\":" REPO_ID
         ",\"time\":{\"type\":\"string\"},\"message\":{\"type\":\"string\"},\"parents\":{\"type\":\"array\","
         "\"items\":" REPO_ID "},\"tree\":" REPO_ID "}}}}}",
     .examples = log_examples,
     .flags = STET_OP_READ_ONLY,
     .run = log_run,
     .render = log_render},
    {.name = "dag diff",
     .summary = "Show what differs between two commits",
     .description = "Which DAGs were added, removed or changed, and for which calls other results are pinned.",
     .params = diff_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"dags\",\"pins\",\"pinCount\"],\"additionalProperties\":false,"
         "\"properties\":{\"dags\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"name\","
         "\"change\",\"before\",\"after\"],\"additionalProperties\":false,\"properties\":{\"name\":{\"type\":"
         "\"string\"},\"change\":{\"enum\":[\"added\",\"removed\",\"changed\"]},\"before\":" REPO_ID_OR_NULL
         ",\"after\":" REPO_ID_OR_NULL
         "}}},\"pins\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"node\",\"change\","
         "\"before\",\"after\"],\"additionalProperties\":false,\"properties\":{\"node\":" REPO_ID
         ",\"change\":{\"enum\":[\"added\",\"removed\",\"changed\"]},\"before\":" REPO_ID_OR_NULL
         ",\"after\":" REPO_ID_OR_NULL "}}},\"pinCount\":{\"type\":\"integer\"}}}",
     .examples = diff_examples,
     .flags = STET_OP_READ_ONLY,
     .run = diff_run,
     .render = diff_render},
    {0},
};
