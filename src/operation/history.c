/* history.c - the operation history: one timeline of the runs of all known projects, newest first. */

#include <string.h>

#include "base/text.h"
#include "operation/runs_common.h"
#include "os/clock.h"

static stet_value entry_of(const stet_fleet_record *r) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "runId", stet_value_string(r->id));
    stet_value_put(&v, "repo", stet_value_string(r->repo));
    stet_value_put(&v, "app", r->app_id[0] != 0 ? stet_value_string(r->app_id) : stet_value_null());
    stet_value_put(&v, "title", r->title[0] != 0 ? stet_value_string(r->title) : stet_value_null());
    stet_value_put(&v, "lifecycle", stet_value_string(stet_lifecycle_name(r->lifecycle)));
    stet_value_put(&v, "derivedLifecycle", stet_value_string(stet_lifecycle_name(r->derived)));
    stet_value_put(&v, "loopStage", stet_value_string(r->loop_stage));
    stet_value_put(&v, "createdAt", stet_value_string(r->created_at));
    stet_value_put(&v, "updatedAt", stet_value_string(r->updated_at));
    stet_value_put(&v, "duration", stet_value_int(stet_fleet_record_duration(r, stet_clock_ms())));
    stet_value_put(&v, "freshness", stet_value_string(stet_freshness_name(r->freshness)));
    stet_value_put(&v, "provenance", stet_provenance_value(&r->provenance));
    return v;
}

static stet_status run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_registry *reg;
    stet_status st = stet_runs_page(ctx, args, true, "entries", entry_of, &reg, result, err);
    if (st == STET_OK)
        stet_value_put(result, "repos", stet_registry_repos(reg));
    stet_registry_free(reg);
    return st;
}

static void render(stet_render *r, stet_value result) {
    stet_value entries = stet_value_get(result, "entries");
    bool several = stet_runs_several_projects(entries);
    stet_table t = {.columns = several ? 6 : 5};
    static const char *const heads[] = {"AGO", "STATE", "TOOK", "PROJECT", "RUN", "WHAT"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads && stet_value_count(entries) > 0; i++)
        if (several || strcmp(heads[i], "PROJECT") != 0)
            stet_table_cell(&t, heads[i]);
    for (size_t i = 0; i < stet_value_count(entries); i++) {
        stet_value e = stet_value_at(entries, i), life = stet_value_get(e, "lifecycle"),
                   id = stet_value_get(e, "runId"), title,
                   from = stet_value_get(stet_value_get(e, "provenance"), "rerunOf");
        char ago[STET_TIME_TEXT], took[STET_TIME_TEXT];
        stet_runs_age(e, "createdAt", ago);
        stet_duration_print(stet_value_as_int(stet_value_get(e, "duration")), took);
        stet_table_cell(&t, ago);
        stet_table_style(&t, stet_runs_style(stet_value_text(&life, "")));
        stet_table_cell(&t, stet_value_text(&life, ""));
        stet_table_cell(&t, took);
        if (several)
            stet_runs_cell_project(&t, e);
        stet_table_cell(&t, stet_runs_short(stet_value_text(&id, "")));
        if (stet_value_type(from) == STET_TYPE_STRING)
            stet_table_cellf(&t, "rerun of %s", stet_runs_short(stet_value_text(&from, "")));
        else
            stet_table_cell(&t, stet_runs_what(e, "app", &title));
    }
    if (stet_value_count(entries) > 0)
        stet_table_print(&t, r, true);
    stet_runs_put_page(r, result, stet_value_count(entries), "newest");
    stet_runs_put_freshness(r, stet_value_get(result, "freshness"));
    stet_runs_put_problems(r, stet_value_get(result, "problems"));
    stet_runs_put_next(r, stet_value_get(result, "nextAction"));
}

static const stet_param params[] = {
    RUNS_SCOPE_PARAM("All known projects, or the current one alone", "\"home\""),
    {.name = "app", .type = STET_PARAM_STRING, .metavar = "ID", .summary = "Runs of this app (pattern)"},
    {.name = "status",
     .type = STET_PARAM_ENUM,
     .flags = STET_PARAM_REPEATED,
     .choices = stet_runs_lifecycles,
     .summary = "With this lifecycle; an archived run also by what it was before"},
    RUNS_REPO_PARAM,
    {.name = "since", .type = STET_PARAM_TIME, .summary = "Begun at this time or later"},
    {.name = "until", .type = STET_PARAM_TIME, .summary = "Begun at this time or earlier"},
    {.name = "label", .type = STET_PARAM_STRING, .summary = "With this label"},
    {.name = "include-archived", .type = STET_PARAM_BOOL, .default_json = "true", .summary = "Also archived runs"},
    {.name = "limit",
     .type = STET_PARAM_INT,
     .default_json = "50",
     .min = 0,
     .max = STET_FLEET_QUERY_LIMIT_MAX,
     .summary = "At most so many"},
    {.name = "offset",
     .type = STET_PARAM_INT,
     .default_json = "0",
     .min = 0,
     .max = INT32_MAX,
     .summary = "Leave out so many before"},
    {.name = "cursor", .type = STET_PARAM_STRING, .summary = "Go on after the page whose nextCursor this is"},
    RUNS_VERIFY_PARAM,
    {0},
};

static const stet_example examples[] = {
    {"history", "what ran lately, in all known projects"},
    {"history --since 7d --status failed", "what failed in the last week"},
    {0},
};

const stet_op stet_ops_history[] = {
    {.name = "history",
     .summary = "One timeline of the runs of all known projects, newest first",
     .description = "Every entry is read from its run's own file. Reruns name the run that they repeat.",
     .params = params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"scope\",\"freshness\",\"total\",\"offset\",\"limit\","
         "\"nextCursor\",\"repos\",\"entries\",\"problems\",\"nextAction\"],\"additionalProperties\":false,"
         "\"properties\":{\"schemaVersion\":{\"const\":1},\"scope\":{\"enum\":[\"repo\",\"home\"]},"
         "\"freshness\":" RUNS_FRESHNESS
         ",\"total\":{\"type\":\"integer\"},\"offset\":{\"type\":\"integer\"},\"limit\":{"
         "\"type\":\"integer\"},\"nextCursor\":{\"type\":[\"string\",\"null\"]},\"repos\":{\"type\":\"array\"},"
         "\"entries\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"runId\",\"repo\",\"app\","
         "\"lifecycle\",\"derivedLifecycle\",\"loopStage\",\"createdAt\",\"updatedAt\",\"duration\",\"freshness\","
         "\"provenance\"]}},\"problems\":" RUNS_PROBLEMS ",\"nextAction\":{\"type\":\"string\"}}}",
     .examples = examples,
     .flags = STET_OP_READ_ONLY | STET_OP_NO_PROJECT | STET_OP_COMMON,
     .run = run,
     .render = render,
     .verdict = stet_runs_verdict},
    {0},
};
