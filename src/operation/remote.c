/* remote.c - the operations remote add, list, fetch, push and remove: other repositories of calls. */

#include "repo/remote.h"

#include <stdlib.h>
#include <string.h>

#include "operation/repo_common.h"
#include "operation/text.h"
#include "os/clock.h"

static bool give_up(void *ctx) {
    stet_op_ctx *c = ctx;
    return c->cancelled(c);
}

static void tell(void *ctx, int64_t done, int64_t total) {
    stet_op_ctx *c = ctx;
    c->progress(c, done, total, "objects");
}

static stet_status add_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_repo *r = NULL;
    stet_value name = stet_value_get(args, "name"), uri = stet_value_get(args, "uri");
    stet_status st = stet_repo_op_open(ctx, &r, err);
    if (st == STET_OK)
        st = stet_remote_add(r, stet_value_as_string(&name, NULL), stet_value_as_string(&uri, NULL), err);
    stet_repo_close(r);
    if (st != STET_OK)
        return st;
    *result = stet_value_object();
    stet_value_put(result, "name", stet_value_retain(name));
    stet_value_put(result, "uri", stet_value_retain(uri));
    stet_value_put(result, "added", stet_value_bool(true));
    return STET_OK;
}

static void add_render(stet_render *r, stet_value result) {
    stet_value name = stet_value_get(result, "name"), uri = stet_value_get(result, "uri");
    stet_buf_str(r->out, "added ");
    stet_text_plain(r, stet_value_as_string(&name, NULL), strlen(stet_value_as_string(&name, NULL)));
    stet_buf_str(r->out, ": ");
    stet_text_plain(r, stet_value_as_string(&uri, NULL), strlen(stet_value_as_string(&uri, NULL)));
    stet_buf_char(r->out, '\n');
}

static stet_status list_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    (void)args;
    stet_repo *r = NULL;
    stet_remote_rows rows = {0};
    stet_value list = stet_value_array();
    stet_status st = stet_repo_op_open(ctx, &r, err);
    if (st == STET_OK)
        st = stet_remote_list(r, &rows, err);
    for (size_t i = 0; i < rows.len; i++) {
        stet_value row = stet_value_object(), text;
        if (stet_value_string_checked(rows.at[i].uri, strlen(rows.at[i].uri), &text, NULL) != STET_OK)
            text = stet_value_string("");
        stet_value_put(&row, "name", stet_value_string(rows.at[i].name));
        stet_value_put(&row, "uri", text);
        stet_value_put(&row, "addedAt", stet_time_value(rows.at[i].added_ms));
        stet_value_push(&list, row);
    }
    stet_remote_rows_release(&rows);
    stet_repo_close(r);
    if (st != STET_OK) {
        stet_value_release(list);
        return st;
    }
    *result = stet_value_object();
    stet_value_put(result, "total", stet_value_int((int64_t)stet_value_count(list)));
    stet_value_put(result, "remotes", list);
    return STET_OK;
}

static void list_render(stet_render *r, stet_value result) {
    stet_value rows = stet_value_get(result, "remotes");
    stet_table t = {.columns = 2};
    if (stet_value_count(rows) == 0) {
        stet_buf_str(r->out, "no remotes; add one with: stet remote add NAME file:///PATH\n");
        return;
    }
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        stet_value name = stet_value_get(stet_value_at(rows, i), "name"),
                   uri = stet_value_get(stet_value_at(rows, i), "uri");
        stet_table_cell(&t, stet_value_as_string(&name, NULL));
        stet_table_cell(&t, stet_value_as_string(&uri, NULL));
    }
    stet_table_print(&t, r, false);
}

static stet_status remove_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_repo *r = NULL;
    int64_t refs = 0;
    stet_value name = stet_value_get(args, "name");
    stet_status st = stet_repo_op_open(ctx, &r, err);
    if (st == STET_OK)
        st = stet_remote_remove(r, stet_value_as_string(&name, NULL), &refs, err);
    stet_repo_close(r);
    if (st != STET_OK)
        return st;
    *result = stet_value_object();
    stet_value_put(result, "name", stet_value_retain(name));
    stet_value_put(result, "refs", stet_value_int(refs));
    stet_value_put(result, "removed", stet_value_bool(true));
    return STET_OK;
}

static void remove_render(stet_render *r, stet_value result) {
    stet_value name = stet_value_get(result, "name");
    stet_buf_str(r->out, "removed ");
    stet_text_plain(r, stet_value_as_string(&name, NULL), strlen(stet_value_as_string(&name, NULL)));
    stet_buf_printf(r->out, " and %lld refs\n", (long long)stet_value_as_int(stet_value_get(result, "refs")));
}

static stet_value report_value(const char *remote, const stet_remote_report *report) {
    stet_value v = stet_value_object(), rows = stet_value_array();
    for (size_t i = 0; i < report->len; i++) {
        const stet_remote_change *c = &report->at[i];
        stet_value row = stet_value_object();
        stet_value_put(&row, "ref", stet_value_string(c->name));
        stet_value_put(&row, "change", stet_value_string(c->kind));
        stet_value_put(&row, "before", c->had ? stet_hash_text(c->before) : stet_value_null());
        stet_value_put(&row, "after", c->has ? stet_hash_text(c->after) : stet_value_null());
        stet_value_push(&rows, row);
    }
    stet_value_put(&v, "remote", stet_value_string(remote));
    stet_value_put(&v, "objects", stet_value_int(report->objects));
    stet_value_put(&v, "bytes", stet_value_int(report->bytes));
    stet_value_put(&v, "pins", stet_value_int(report->pins));
    stet_value_put(&v, "refs", rows);
    return v;
}

static stet_status fetch_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_repo *r = NULL;
    stet_remote_report report = {0};
    stet_value name = stet_value_get(args, "name");
    stet_remote_opts o = {.whole = stet_value_as_bool(stet_value_get(args, "whole")),
                          .pins = stet_value_as_bool(stet_value_get(args, "pins")),
                          .cancelled = give_up,
                          .progress = tell,
                          .ctx = ctx};
    stet_status st = stet_repo_op_open(ctx, &r, err);
    if (st == STET_OK)
        st = stet_remote_fetch(r, stet_value_as_string(&name, NULL), &o, &report, err);
    stet_repo_close(r);
    if (st == STET_OK)
        *result = report_value(stet_value_as_string(&name, NULL), &report);
    stet_remote_report_release(&report);
    return st;
}

static stet_status push_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_repo *r = NULL;
    stet_remote_report report = {0};
    stet_value name = stet_value_get(args, "name"), heads = stet_value_get(args, "head");
    stet_remote_opts o = {
        .pins = stet_value_as_bool(stet_value_get(args, "pins")), .cancelled = give_up, .progress = tell, .ctx = ctx};
    size_t count = stet_value_count(heads);
    stet_value *kept = stet_alloc((count + 1) * sizeof *kept); /* short strings are stored inside their values */
    const char **names = stet_alloc((count + 1) * sizeof *names);
    for (size_t i = 0; i < count; i++) {
        kept[i] = stet_value_at(heads, i);
        names[i] = stet_value_as_string(&kept[i], NULL);
    }
    stet_status st = stet_repo_op_open(ctx, &r, err);
    if (st == STET_OK)
        st = stet_remote_push(r, stet_value_as_string(&name, NULL), names, count, &o, &report, err);
    stet_repo_close(r);
    free(names);
    free(kept);
    if (st == STET_OK)
        *result = report_value(stet_value_as_string(&name, NULL), &report);
    stet_remote_report_release(&report);
    return st;
}

static void report_render(stet_render *r, stet_value result) {
    stet_value rows = stet_value_get(result, "refs");
    stet_table t = {.columns = 4};
    int64_t pins = stet_value_as_int(stet_value_get(result, "pins"));
    size_t shown = 0;
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        stet_value row = stet_value_at(rows, i), ref = stet_value_get(row, "ref"),
                   change = stet_value_get(row, "change");
        char before[16], after[16];
        if (strcmp(stet_value_as_string(&change, NULL), "same") == 0)
            continue;
        stet_repo_op_short(stet_value_get(row, "before"), before);
        stet_repo_op_short(stet_value_get(row, "after"), after);
        stet_table_cell(&t, stet_value_as_string(&change, NULL));
        stet_table_cell(&t, before);
        stet_table_cell(&t, after);
        stet_table_cell(&t, stet_value_as_string(&ref, NULL));
        shown++;
    }
    if (shown)
        stet_table_print(&t, r, false);
    else
        stet_buf_str(r->out, "everything is up to date\n");
    stet_buf_printf(r->out, "%lld objects, %lld bytes", (long long)stet_value_as_int(stet_value_get(result, "objects")),
                    (long long)stet_value_as_int(stet_value_get(result, "bytes")));
    if (pins)
        stet_buf_printf(r->out, ", %lld results of calls", (long long)pins);
    stet_buf_char(r->out, '\n');
}

#define NAME                                                                                                           \
    {                                                                                                                  \
        .name = "name", .type = STET_PARAM_STRING, .flags = STET_PARAM_POSITIONAL | STET_PARAM_REQUIRED,               \
        .metavar = "NAME", .summary = "What the remote is called here"                                                 \
    }

static const stet_param name_params[] = {NAME, {0}};
static const stet_param add_params[] = {
    NAME,
    {.name = "uri",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL | STET_PARAM_REQUIRED,
     .metavar = "URI",
     .summary = "file:///PATH of a project, a directory or a file; postgres://USER@HOST/DATABASE; or "
                "dml+remote://PROGRAM/PATH"},
    {0},
};
static const stet_param fetch_params[] = {
    NAME,
    {.name = "pins",
     .type = STET_PARAM_BOOL,
     .default_json = "true",
     .summary = "Use results of calls that were made there; with --no-pins such calls run here too"},
    {.name = "whole",
     .type = STET_PARAM_BOOL,
     .default_json = "false",
     .summary = "Compare everything that its heads reach, not only what is new: brings back what was lost here"},
    {0},
};
static const stet_param push_params[] = {
    NAME,
    {.name = "head",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL | STET_PARAM_REPEATED,
     .metavar = "HEAD",
     .summary = "These heads; without one all of them"},
    {.name = "pins",
     .type = STET_PARAM_BOOL,
     .default_json = "true",
     .summary = "Send results of calls; with --no-pins heads only"},
    {0},
};

static const stet_example add_examples[] = {
    {"remote add backup file:///tmp/stet-backup", "a directory on this machine"}, {0}};
static const stet_example list_examples[] = {{"remote list", "which there are"}, {0}};
static const stet_example remove_examples[] = {{"remote remove origin", "forget a remote and what was seen of it"},
                                               {0}};
static const stet_example fetch_examples[] = {
    {"remote fetch origin", "get what is new there, with results of calls"},
    {"remote fetch origin --no-pins", "from a remote whose results are not to be used"},
    {0}};
static const stet_example push_examples[] = {
    {"remote push origin", "bring all heads there"}, {"remote push origin main", "one of them"}, {0}};

#define REPORT                                                                                                         \
    "{\"type\":\"object\",\"required\":[\"remote\",\"objects\",\"bytes\",\"pins\",\"refs\"],"                          \
    "\"additionalProperties\":false,\"properties\":{\"remote\":{\"type\":\"string\"},\"objects\":{\"type\":"           \
    "\"integer\"},\"bytes\":{\"type\":\"integer\"},\"pins\":{\"type\":\"integer\"},\"refs\":{\"type\":\"array\","      \
    "\"items\":{\"type\":\"object\",\"required\":[\"ref\",\"change\",\"before\",\"after\"],"                           \
    "\"additionalProperties\":false,\"properties\":{\"ref\":{\"type\":\"string\"},\"change\":{\"enum\":[\"new\","      \
    "\"moved\",\"same\",\"gone\"]},\"before\":" REPO_ID_OR_NULL ",\"after\":" REPO_ID_OR_NULL "}}}}}"

const stet_op stet_ops_remote[] = {
    {.name = "remote add",
     .summary = "Name another repository of calls, to fetch from and push to",
     .description =
         "It is not looked at yet. dml+remote://PROGRAM/... is asked through the program stet-remote-PROGRAM "
         "on $PATH (docs/repository.md). Only on the command line: where a repository is sent to is for its "
         "user to say.",
     .params = add_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"name\",\"uri\",\"added\"],\"additionalProperties\":false,"
                      "\"properties\":{\"name\":{\"type\":\"string\"},\"uri\":{\"type\":\"string\"},\"added\":{"
                      "\"type\":\"boolean\"}}}",
     .examples = add_examples,
     .flags = STET_OP_CLI_ONLY,
     .run = add_run,
     .render = add_render},
    {.name = "remote list",
     .summary = "List the remotes",
     .result_schema = "{\"type\":\"object\",\"required\":[\"total\",\"remotes\"],\"additionalProperties\":false,"
                      "\"properties\":{\"total\":{\"type\":\"integer\"},\"remotes\":{\"type\":\"array\",\"items\":{"
                      "\"type\":\"object\",\"required\":[\"name\",\"uri\",\"addedAt\"],\"additionalProperties\":false,"
                      "\"properties\":{\"name\":{\"type\":\"string\"},\"uri\":{\"type\":\"string\"},\"addedAt\":{"
                      "\"type\":\"string\"}}}}}}",
     .examples = list_examples,
     .flags = STET_OP_READ_ONLY,
     .run = list_run,
     .render = list_render},
    {.name = "remote remove",
     .summary = "Forget a remote and what was seen of its heads",
     .description = "The remote itself is not touched. Objects that nothing else names are swept by `stet gc`.",
     .params = name_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"name\",\"refs\",\"removed\"],\"additionalProperties\":false,"
         "\"properties\":{\"name\":{\"type\":\"string\"},\"refs\":{\"type\":\"integer\"},\"removed\":{"
         "\"type\":\"boolean\"}}}",
     .examples = remove_examples,
     .flags = STET_OP_DESTRUCTIVE,
     .run = remove_run,
     .render = remove_render},
    {.name = "remote fetch",
     .summary = "Get what is new in a remote",
     .description =
         "Its head X becomes refs/remotes/NAME/X here. Everything is verified before it is stored. Interrupted, "
         "it goes on the next time.",
     .params = fetch_params,
     .result_schema = REPORT,
     .examples = fetch_examples,
     .flags = STET_OP_IDEMPOTENT | STET_OP_LONG,
     .run = fetch_run,
     .render = report_render},
    {.name = "remote push",
     .summary = "Bring heads to a remote",
     .description =
         "All of them or none. A head that is no fast-forward of the one there is refused, with exit status 4: "
         "fetch, and build on what is there.",
     .params = push_params,
     .result_schema = REPORT,
     .examples = push_examples,
     .flags = STET_OP_IDEMPOTENT | STET_OP_LONG,
     .run = push_run,
     .render = report_render},
    {0},
};
