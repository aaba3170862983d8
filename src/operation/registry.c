/* registry.c - the operations registry refresh and show: the derived index over all runs. */

#include <string.h>

#include "fleet/queue.h"
#include "operation/runs_common.h"
#include "os/clock.h"

/* The queue as `index.queue`: entries of this scope. A damaged queue is a problem beside the others. */
static stet_value queue_of(const stet_registry *reg, stet_value *problems) {
    stet_queue q = {.home = reg->home};
    stet_value entries;
    stet_error why = STET_ERROR_INIT;
    if (stet_queue_list(&q, reg->scope == STET_SCOPE_REPO ? reg->root : NULL, NULL, &entries, &why) == STET_OK)
        return entries;
    stet_value p = stet_value_object();
    stet_value_put(&p, "repo", stet_value_null());
    stet_value_put(&p, "path", stet_value_stringf("%s/registry/queue.json", reg->home));
    stet_value_put(&p, "code", stet_value_string(stet_status_name(why.status)));
    stet_value_put(&p, "message", stet_value_string(why.message));
    stet_value_put(&p, "hint", stet_value_string(why.hint));
    stet_value_push(problems, p);
    stet_error_clear(&why);
    return stet_value_array();
}

static stet_status report(stet_registry *reg, stet_value args, stet_value *result, stet_error *err) {
    stet_fleet_query q = {.limit = (size_t)stet_value_as_int(stet_value_get(args, "limit")),
                          .offset = (size_t)stet_value_as_int(stet_value_get(args, "offset"))};
    stet_fleet_page page;
    stet_status st = stet_fleet_query_run(reg, &q, &page, err);
    if (st != STET_OK)
        return st;
    stet_value v = stet_value_object(), index = stet_value_object(), records = stet_value_array(),
               problems = stet_value_retain(reg->problems);
    for (size_t i = 0; i < page.rows.len; i++)
        stet_value_push(&records, stet_fleet_record_value(page.rows.at[i]));
    stet_value_put(&index, "repos", stet_registry_repos(reg));
    stet_value_put(&index, "total", stet_value_int((int64_t)page.total));
    stet_value_put(&index, "offset", stet_value_int((int64_t)page.offset));
    stet_value_put(&index, "limit", stet_value_int((int64_t)q.limit));
    stet_value_put(&index, "nextCursor", page.next_cursor ? stet_value_string(page.next_cursor) : stet_value_null());
    stet_value_put(&index, "records", records);
    stet_value_put(&index, "queue", queue_of(reg, &problems));
    stet_value_put(&v, "schemaVersion", stet_value_int(STET_REGISTRY_SCHEMA));
    stet_value_put(&v, "scope", stet_value_string(reg->scope == STET_SCOPE_HOME ? "home" : "repo"));
    stet_value_put(&v, "root", stet_value_string(reg->scope == STET_SCOPE_HOME ? reg->home : reg->root));
    stet_value_put(&v, "generatedAt",
                   reg->index.present ? stet_value_string(reg->index.generated_at) : stet_value_null());
    stet_value_put(&v, "freshness", stet_registry_freshness(reg, 0));
    stet_value_put(&v, "index", index);
    stet_value_put(&v, "counts", stet_registry_counts(reg));
    stet_value_put(&v, "problems", problems);
    stet_value_put(&v, "nextAction", stet_registry_next_action(reg));
    stet_fleet_page_release(&page);
    *result = v;
    return STET_OK;
}

static stet_status run_with(stet_op_ctx *ctx, stet_value args, bool refresh, stet_value *result, stet_error *err) {
    stet_registry_opts opts;
    stet_registry *reg;
    char *home, *root;
    stet_value with = stet_value_retain(args);
    stet_project *p;
    /* Repo where there is a project, home elsewhere. */
    if (stet_value_type(stet_value_get(args, "scope")) == STET_TYPE_NULL)
        stet_value_put(
            &with, "scope",
            stet_value_string(ctx->project_dir != NULL || ctx->project(ctx, &p, NULL) == STET_OK ? "repo" : "home"));
    stet_status st = stet_runs_options(ctx, with, &opts, &home, &root, err);
    stet_value_release(with);
    if (st != STET_OK)
        return st;
    st = refresh ? stet_registry_refresh(&opts, &reg, err) : stet_registry_load(&opts, &reg, err);
    if (st == STET_OK) {
        st = report(reg, args, result, err);
        stet_registry_free(reg);
    }
    stet_free(home);
    stet_free(root);
    return st;
}

static stet_status show_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    return run_with(ctx, args, false, result, err);
}

static stet_status refresh_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    return run_with(ctx, args, true, result, err);
}

static void render(stet_render *r, stet_value result) {
    static const char *const order[] = {"running", "interrupted", "blocked",  "failed",    "resolved",
                                        "queued",  "completed",   "archived", "unreadable"};
    stet_value counts = stet_value_get(result, "counts"), index = stet_value_get(result, "index");
    stet_buf_str(r->out, "registry of ");
    stet_runs_put(r, result, "root");
    size_t projects = stet_value_count(stet_value_get(index, "repos"));
    stet_buf_printf(r->out, " (%zu project%s)\n", projects, projects == 1 ? "" : "s");
    stet_runs_put_freshness(r, stet_value_get(result, "freshness"));
    stet_buf_printf(r->out, "%lld runs", (long long)stet_value_as_int(stet_value_get(counts, "total")));
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        int64_t n = stet_value_as_int(stet_value_get(counts, order[i]));
        if (n == 0)
            continue;
        stet_buf_printf(r->out, ", %lld ", (long long)n);
        stet_text_styled(r, stet_runs_style(order[i]), order[i]);
    }
    stet_buf_char(r->out, '\n');
    size_t waiting = 0;
    for (size_t i = 0; i < stet_value_count(stet_value_get(index, "queue")); i++) {
        stet_value status = stet_value_get(stet_value_at(stet_value_get(index, "queue"), i), "status");
        waiting += strcmp(stet_value_as_string(&status, NULL), "pending") == 0;
    }
    if (waiting > 0)
        stet_buf_printf(r->out, "%zu in the queue\n", waiting);
    stet_runs_put_problems(r, stet_value_get(result, "problems"));
    stet_runs_put_next(r, stet_value_get(result, "nextAction"));
}

static const stet_param params[] = {
    {.name = "scope",
     .type = STET_PARAM_ENUM,
     .summary = "The current project, or all known ones; without it the project, where there is one",
     .choices = stet_runs_scopes},
    RUNS_VERIFY_PARAM,
    {.name = "limit",
     .type = STET_PARAM_INT,
     .summary = "At most so many records in the answer",
     .default_json = "100",
     .min = 0,
     .max = STET_FLEET_QUERY_LIMIT_MAX},
    {.name = "offset",
     .type = STET_PARAM_INT,
     .summary = "Leave out so many records before",
     .default_json = "0",
     .min = 0,
     .max = INT32_MAX},
    {0},
};

#define REPORT_SCHEMA                                                                                                  \
    "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"scope\",\"root\",\"generatedAt\",\"freshness\",\"index\"," \
    "\"counts\",\"problems\",\"nextAction\"],\"additionalProperties\":false,\"properties\":{\"schemaVersion\":{"       \
    "\"const\":1},\"scope\":{\"enum\":[\"repo\",\"home\"]},\"root\":{\"type\":\"string\"},\"generatedAt\":{\"type\":[" \
    "\"string\",\"null\"]},\"freshness\":" RUNS_FRESHNESS                                                              \
    ",\"index\":{\"type\":\"object\",\"required\":[\"repos\",\"total\",\"offset\",\"limit\",\"nextCursor\","           \
    "\"records\",\"queue\"],\"properties\":{\"repos\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"           \
    "\"records\":{\"type\":\"array\",\"items\":" RUNS_RECORD                                                           \
    "},\"queue\":{\"type\":\"array\"}}},\"counts\":{\"type\":\"object\",\"required\":[\"total\",\"queued\","           \
    "\"running\",\"blocked\",\"completed\",\"failed\",\"archived\",\"interrupted\",\"unreadable\"],"                   \
    "\"additionalProperties\":{\"type\":\"integer\",\"minimum\":0}},\"problems\":" RUNS_PROBLEMS                       \
    ",\"nextAction\":{\"type\":\"string\"}}}"

static const stet_example show_examples[] = {
    {"registry show", "how the index of this project compares with its runs"},
    {"registry show --scope home --json", "the same over all known projects, as JSON"},
    {0},
};
static const stet_example refresh_examples[] = {
    {"registry refresh", "write the index anew from the runs' own files"},
    {"registry refresh --scope home --verify", "over all known projects, reading every file"},
    {0},
};

const stet_op stet_ops_registry[] = {
    {.name = "registry show",
     .summary = "Compare the index of runs with the runs' own files",
     .description =
         "The index is derived and disposable: what is shown of a run is always what its state.json says now. The "
         "index "
         "is absent before the first refresh, valid if nothing changed since, and stale if runs changed, appeared or "
         "went; they are named. Nothing is written.",
     .params = params,
     .result_schema = REPORT_SCHEMA,
     .examples = show_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_NO_PROJECT,
     .run = show_run,
     .render = render,
     .verdict = stet_runs_verdict},
    {.name = "registry refresh",
     .summary = "Write the index of runs anew",
     .description =
         "Reads what changed since the last refresh, and all of it with --verify, writes the index of this project and "
         "the one of all known projects, and puts this project on the list of known ones. No run is touched.",
     .params = params,
     .result_schema = REPORT_SCHEMA,
     .examples = refresh_examples,
     .flags = STET_OP_IDEMPOTENT | STET_OP_NO_PROJECT,
     .run = refresh_run,
     .render = render,
     .verdict = stet_runs_verdict},
    {0},
};
