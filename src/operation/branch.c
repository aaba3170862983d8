/* branch.c - the operations branch list, create and delete. */

#include "base/text.h"
#include "operation/space_common.h"
#include "operation/text.h"
#include "os/clock.h"

static stet_status list_branches(space_call *c, stet_value args, stet_value *result, stet_error *err) {
    stet_value hold, list = stet_value_array();
    stet_branch_info *at = NULL;
    size_t count = 0, limit = (size_t)stet_value_int_at(args, "limit", 100);
    *result = stet_value_object();
    if (c->space) {
        stet_status st = stet_space_branches(c->space, stet_value_text_at(args, "after", &hold),
                                             stet_value_as_bool(stet_value_get(args, "deleted")), limit + 1, &c->arena,
                                             &at, &count, err);
        if (st != STET_OK)
            return st;
    }
    for (size_t i = 0; i < count && i < limit; i++) {
        stet_value row = stet_value_object();
        stet_value_put(&row, "name", stet_value_string(at[i].name));
        if (at[i].parent)
            stet_value_put(&row, "parent", stet_value_string(at[i].parent));
        stet_value_put(&row, "fork", stet_value_int(at[i].fork));
        if (at[i].created_ms)
            stet_value_put(&row, "created", stet_time_value(at[i].created_ms));
        stet_value_put(&row, "deleted", stet_value_bool(at[i].deleted));
        stet_value_push(&list, row);
    }
    stet_value_put(result, "branches", list);
    if (count > limit)
        stet_value_put(result, "next", stet_value_string(at[limit - 1].name));
    return STET_OK;
}

static stet_status list_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    return space_run(ctx, args, SPACE_LIST, list_branches, result, err);
}

static void list_render(stet_render *r, stet_value result) {
    stet_value list = stet_value_get(result, "branches");
    stet_table t = stet_table_begin(4, (const char *const[]){"BRANCH", "PARENT", "FORK", ""});
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value row = stet_value_at(list, i), name = stet_value_get(row, "name"),
                   parent = stet_value_get(row, "parent");
        bool root = stet_value_type(parent) != STET_TYPE_STRING;
        size_t parent_len = 0;
        const char *from = root ? "" : stet_value_as_string(&parent, &parent_len);
        stet_table_cell(&t, root ? "(default)" : stet_value_as_string(&name, NULL));
        stet_table_cell(&t, root ? "" : parent_len ? from : "(default)");
        stet_table_cellf(&t, "%lld", (long long)stet_value_as_int(stet_value_get(row, "fork")));
        stet_table_cell(&t, stet_value_as_bool(stet_value_get(row, "deleted")) ? "deleted" : "");
    }
    stet_table_print(&t, r, true);
}

static stet_status create_branch(space_call *c, stet_value args, stet_value *result, stet_error *err) {
    stet_value hold, hold_from;
    const char *name = stet_value_text_at(args, "name", &hold), *from = stet_value_text_at(args, "from", &hold_from);
    int64_t at = stet_value_int_at(args, "at", -1);
    stet_status st = stet_branch_create(c->space, name, from, at, err);
    if (st != STET_OK)
        return st;
    *result = stet_value_object();
    stet_value_put(result, "name", stet_value_string(name));
    stet_value_put(result, "parent", stet_value_string(from ? from : ""));
    stet_value_put(result, "fork", stet_value_int(at >= 0 ? at : stet_space_known(c->space)));
    return STET_OK;
}

static stet_status create_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_value hold;
    /* Before the space is opened, which creates it. */
    stet_status st = stet_branch_name_check(stet_value_text_at(args, "name", &hold), err);
    return st == STET_OK ? space_run(ctx, args, SPACE_WRITE, create_branch, result, err) : st;
}

static void create_render(stet_render *r, stet_value result) {
    stet_value name = stet_value_get(result, "name");
    stet_buf_str(r->out, "created branch ");
    stet_text_value(r, name);
    stet_buf_printf(r->out, " at sequence %lld\n", (long long)stet_value_as_int(stet_value_get(result, "fork")));
}

static stet_status delete_branch(space_call *c, stet_value args, stet_value *result, stet_error *err) {
    stet_value hold;
    const char *name = stet_value_text_at(args, "name", &hold);
    stet_status st = stet_branch_delete(c->space, name, err);
    if (st != STET_OK)
        return st;
    *result = stet_value_object();
    stet_value_put(result, "name", stet_value_string(name));
    stet_value_put(result, "deleted", stet_value_bool(true));
    return STET_OK;
}

static stet_status delete_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    return space_run(ctx, args, SPACE_WRITE, delete_branch, result, err);
}

static void delete_render(stet_render *r, stet_value result) {
    stet_value name = stet_value_get(result, "name");
    stet_buf_str(r->out, "deleted branch ");
    stet_text_value(r, name);
    stet_buf_str(r->out, "; stet gc frees what only it needed\n");
}

#define PARAM_NAME                                                                                                     \
    {                                                                                                                  \
        .name = "name", .type = STET_PARAM_STRING, .flags = STET_PARAM_REQUIRED | STET_PARAM_POSITIONAL,               \
        .metavar = "NAME", .summary = "The branch"                                                                     \
    }

static const stet_param branches_params[] = {
    {.name = "deleted", .type = STET_PARAM_BOOL, .summary = "Deleted ones too, until gc has run"},
    PARAM_LIMIT,
    {.name = "after", .type = STET_PARAM_STRING, .metavar = "NAME", .summary = "Only names after this: the next page"},
    PARAM_SPACE,
    {0},
};
static const stet_param create_params[] = {
    PARAM_NAME,
    {.name = "from",
     .type = STET_PARAM_STRING,
     .metavar = "NAME",
     .summary = "The branch to fork; without it the default branch"},
    {.name = "at",
     .type = STET_PARAM_INT,
     .metavar = "SEQ",
     .summary = "Fork it as it was at this sequence; without it as it is",
     .min = 0,
     .max = INT64_MAX},
    PARAM_SPACE,
    {0},
};
static const stet_param branch_delete_params[] = {PARAM_NAME, PARAM_SPACE, {0}};

static const stet_example branches_examples[] = {{"branch list", "the branches of the default space"}, {0}};
static const stet_example create_examples[] = {{"branch create try", "fork the default branch as it is"},
                                               {"branch create then --at 1", "as it was at a sequence"},
                                               {0}};
static const stet_example branch_delete_examples[] = {{"branch delete side", "its documents are no longer seen"}, {0}};

const stet_op stet_ops_branch[] = {
    {.name = "branch list",
     .summary = "List the branches of a space",
     .params = branches_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"branches\"],\"properties\":{\"branches\":{\"type\":"
                      "\"array\",\"items\":{\"type\":\"object\",\"required\":[\"name\",\"fork\",\"deleted\"]}},"
                      "\"next\":{\"type\":\"string\"}}}",
     .examples = branches_examples,
     .flags = STET_OP_READ_ONLY,
     .run = list_run,
     .render = list_render},
    {.name = "branch create",
     .summary = "Fork a branch",
     .description =
         "Costs the same whatever the size of the space: the new branch reads its parent as of the fork, and "
         "keeps what is written to it.",
     .params = create_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"name\",\"parent\",\"fork\"],\"properties\":{\"name\":{"
                      "\"type\":\"string\"},\"parent\":{\"type\":\"string\"},\"fork\":{\"type\":\"integer\"}}}",
     .examples = create_examples,
     .run = create_run,
     .render = create_render},
    {.name = "branch delete",
     .summary = "Delete a branch",
     .description =
         "It can't be read or written any more and its name is free. Branches forked from it go on. What only "
         "it needed is freed by `stet gc`.",
     .params = branch_delete_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"name\",\"deleted\"]}",
     .examples = branch_delete_examples,
     .flags = STET_OP_DESTRUCTIVE,
     .run = delete_run,
     .render = delete_render},
    {0},
};
