/* runs.c - the operations runs search, list, show, stats and compare. Nothing here writes. */

#include <string.h>

#include "base/text.h"
#include "fleet/manage.h"
#include "operation/runs_common.h"
#include "os/clock.h"

static stet_status search_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_registry *reg;
    stet_status st = stet_runs_page(ctx, args, false, "records", stet_fleet_record_value, &reg, result, err);
    if (st == STET_OK)
        stet_value_put(result, "query", stet_runs_query_value(args));
    stet_registry_free(reg);
    return st;
}

static void search_render(stet_render *r, stet_value result) {
    stet_value records = stet_value_get(result, "records"),
               order = stet_value_get(stet_value_get(result, "query"), "order");
    stet_runs_put_records(r, records);
    stet_runs_put_page(r, result, stet_value_count(records), stet_value_text(&order, "newest"));
    stet_runs_put_freshness(r, stet_value_get(result, "freshness"));
    stet_runs_put_problems(r, stet_value_get(result, "problems"));
    stet_value next = stet_value_get(result, "nextAction");
    const char *step = stet_value_text(&next, "");
    if (strcmp(step, "stet runs search") != 0) /* which is what was just done */
        stet_runs_put_next(r, next);
}

/* A run that is there: read again now, whatever the index says. */
static stet_status show_found(const stet_registry *reg, const stet_fleet_record *rec, const char *from, stet_value *v,
                              stet_error *err) {
    stet_state s;
    stet_arena arena = STET_ARENA_INIT;
    stet_status st = stet_fleet_record_reread(rec, &s, err);
    if (st != STET_OK)
        return st;
    stet_fleet_record now;
    stet_fleet_record_derive(&s, rec->repo, rec->repo_index, &arena, &now);
    now.lifecycle = rec->archived || now.derived == rec->derived ? rec->lifecycle : stet_fleet_record_surface(&now);
    now.resolved_by = now.lifecycle == rec->lifecycle ? rec->resolved_by : "";
    now.archived = rec->archived;
    now.archived_at = rec->archived_at;
    now.archive_reason = rec->archive_reason;
    now.labels = rec->labels;
    now.provenance = rec->provenance;
    const stet_fleet_record *row = rec->persisted != NULL ? rec->persisted : reg->index.present ? rec : NULL;
    for (size_t i = 0; i < reg->fresh.len && row == rec; i++)
        if (reg->fresh.at[i] == rec)
            row = NULL;
    bool same = row == NULL || stet_hash_equal(row->fingerprint, now.fingerprint);
    now.freshness = same ? STET_FRESH_VALID : STET_FRESH_STALE;
    stet_value_put(v, "found", stet_value_bool(true));
    stet_value_put(v, "freshness", stet_value_string(stet_freshness_name(now.freshness)));
    stet_value_put(v, "resolvedFrom", stet_value_string(from));
    stet_value_put(v, "repo", stet_value_string(rec->repo));
    stet_value_put(v, "record", stet_fleet_record_value(&now));
    stet_value_put(v, "persisted", row != NULL ? stet_fleet_record_value(row) : stet_value_null());
    stet_value_put(v, "tasks", stet_value_retain(stet_value_get(s.root, "tasks")));
    stet_value_put(v, "argument", stet_value_retain(stet_value_get(s.root, "argument")));
    stet_value_put(v, "result", stet_value_retain(stet_value_get(s.root, "result")));
    stet_value_put(v, "unreadable", stet_value_null());
    stet_value_put(v, "nextAction", stet_runs_next_step(&now));
    stet_state_release(&s);
    stet_arena_release(&arena);
    return STET_OK;
}

/* One that is gone or can't be trusted: only what was known of it once, and flagged so. */
static void show_missing(const stet_fleet_record *last, const stet_error *why, stet_value *v) {
    stet_value repo = stet_value_get(why->details, "repo");
    stet_value_put(v, "found", stet_value_bool(false));
    stet_value_put(v, "freshness", stet_value_string("missing"));
    stet_value_put(v, "resolvedFrom", stet_value_null());
    stet_value_put(v, "repo",
                   last != NULL                                ? stet_value_string(last->repo)
                   : stet_value_type(repo) == STET_TYPE_STRING ? stet_value_retain(repo)
                                                               : stet_value_null());
    stet_value_put(v, "record", stet_value_null());
    stet_value_put(v, "persisted", last != NULL ? stet_fleet_record_value(last) : stet_value_null());
    stet_value_put(v, "tasks", stet_value_array());
    stet_value_put(v, "unreadable", why->status == STET_NOT_FOUND ? stet_value_null() : stet_error_value(why));
    stet_value found = stet_value_get(*v, "repo"); /* a refresh forgets a run that is gone, and mends none */
    stet_value_put(v, "nextAction",
                   why->status != STET_NOT_FOUND && stet_value_type(found) == STET_TYPE_STRING
                       ? stet_value_stringf("stet --project %s check --only runs", stet_value_as_string(&found, NULL))
                   : last == NULL ? stet_value_string("stet runs search")
                                  : stet_value_string("stet registry refresh"));
}

static stet_status show_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_value keep;
    stet_registry *reg = NULL;
    const stet_fleet_record *rec = NULL, *last = NULL;
    const char *id = stet_value_text_at(args, "run_id", &keep), *from = "home";
    char *repo = NULL;
    stet_error why = STET_ERROR_INIT;
    stet_status st = stet_runs_repo(ctx, args, &repo, err);
    if (st == STET_OK)
        st = stet_runs_load(ctx, args, &reg, err);
    if (st != STET_OK) {
        stet_free(repo);
        return st;
    }
    stet_value v = stet_value_object();
    st = stet_registry_find(reg, id, repo, &rec, &from, &last, &why);
    if (st == STET_OK)
        st = show_found(reg, rec, from, &v, &why);
    stet_value_put(&v, "schemaVersion", stet_value_int(STET_REGISTRY_SCHEMA));
    stet_value_put(&v, "runId", stet_value_string(rec != NULL ? rec->id : id));
    if (st == STET_NOT_FOUND || st == STET_CORRUPT || st == STET_UNSUPPORTED || st == STET_LIMIT || st == STET_IO) {
        show_missing(last, &why, &v);
        st = STET_OK;
    }
    stet_value_put(&v, "problems", rec != NULL ? stet_registry_problems_of(reg, rec->repo) : stet_value_array());
    if (st == STET_OK)
        *result = v;
    else {
        stet_value_release(v);
        stet_error_move(err, &why);
    }
    stet_error_clear(&why);
    stet_registry_free(reg);
    stet_free(repo);
    return st;
}

static stet_status show_verdict(stet_value result) {
    if (stet_value_as_bool(stet_value_get(result, "found")))
        return stet_runs_verdict(result);
    return stet_value_type(stet_value_get(result, "unreadable")) == STET_TYPE_NULL ? STET_NOT_FOUND : STET_CORRUPT;
}

static void show_render(stet_render *r, stet_value result) {
    stet_value record = stet_value_get(result, "record"), persisted = stet_value_get(result, "persisted");
    if (stet_value_as_bool(stet_value_get(result, "found"))) {
        stet_runs_put_record(r, record);
        stet_runs_put_tasks(r, stet_value_get(result, "tasks"));
    } else {
        stet_value bad = stet_value_get(result, "unreadable");
        bool unheard = stet_value_type(bad) == STET_TYPE_NULL && stet_value_type(persisted) == STET_TYPE_NULL;
        stet_text_styled(r, STET_STYLE_WARN, unheard ? "there is no run " : "missing: ");
        stet_runs_put(r, result, "runId");
        stet_buf_char(r->out, '\n');
        if (stet_value_type(bad) == STET_TYPE_OBJECT) {
            stet_buf_str(r->out, "  ");
            stet_runs_put(r, bad, "message");
            stet_buf_char(r->out, '\n');
        }
        if (stet_value_type(persisted) == STET_TYPE_OBJECT) {
            stet_buf_str(r->out, "last known, not what it is now:\n");
            stet_runs_put_record(r, persisted);
        }
    }
    stet_runs_put_problems(r, stet_value_get(result, "problems"));
    stet_text_styled(r, STET_STYLE_DIM, "next: ");
    stet_runs_put_command(r, stet_value_get(result, "nextAction"), record);
    stet_buf_char(r->out, '\n');
}

static stet_status stats_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_fleet_query q;
    stet_runs_query_keep keep;
    stet_registry *reg = NULL;
    stet_status st = stet_runs_query(ctx, args, &q, &keep, err);
    if (st == STET_OK)
        st = stet_runs_load(ctx, args, &reg, err);
    if (st == STET_OK) {
        stet_value v = stet_runs_stats(reg, &q);
        stet_value_put(&v, "schemaVersion", stet_value_int(STET_REGISTRY_SCHEMA));
        stet_value_put(&v, "scope", stet_value_string(reg->scope == STET_SCOPE_HOME ? "home" : "repo"));
        stet_value_put(&v, "query", stet_runs_query_value(args));
        stet_value_put(&v, "unreadable", stet_value_int((int64_t)reg->unreadable.len));
        stet_value_put(&v, "problems", stet_value_retain(reg->problems));
        *result = v;
    }
    stet_registry_free(reg);
    stet_free(keep.repo);
    return st;
}

static void put_percent(stet_table *t, stet_value rate) {
    if (stet_value_type(rate) == STET_TYPE_NULL)
        stet_table_cell(t, "-");
    else
        stet_table_cellf(t, "%.1f %%", stet_value_as_double(rate) * 100);
}

static void put_duration(stet_table *t, stet_value ms) {
    char text[STET_TIME_TEXT] = "-";
    if (stet_value_type(ms) == STET_TYPE_INT)
        stet_duration_print(stet_value_as_int(ms), text);
    stet_table_cell(t, text);
}

static void put_group(stet_table *t, const char *name, stet_value g) {
    stet_value d = stet_value_get(g, "durationMs");
    stet_table_cell(t, name);
    stet_table_cellf(t, "%lld", (long long)stet_value_as_int(stet_value_get(g, "total")));
    put_percent(t, stet_value_get(g, "failureRate"));
    put_duration(t, stet_value_get(d, "median"));
    put_duration(t, stet_value_get(d, "p90"));
    put_percent(t, stet_value_get(stet_value_get(g, "actions"), "hitRate"));
    put_duration(t, stet_value_get(g, "savedMs"));
}

static void stats_render(stet_render *r, stet_value result) {
    static const char *const heads[] = {"APP", "RUNS", "FAILED", "MEDIAN", "P90", "STOOD", "SAVED"};
    stet_table t = {.columns = 7};
    stet_value apps = stet_value_get(result, "apps");
    for (size_t i = 0; i < 7; i++)
        stet_table_cell(&t, heads[i]);
    for (size_t i = 0; i < stet_value_count(apps); i++) {
        stet_value name = stet_value_get(stet_value_at(apps, i), "app");
        put_group(&t, stet_value_as_string(&name, NULL), stet_value_at(apps, i));
    }
    put_group(&t, "all", result);
    stet_table_print(&t, r, true);
    stet_runs_put_problems(r, stet_value_get(result, "problems"));
}

static stet_status compare_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    static const char *const keys[] = {"a", "b"};
    stet_registry *reg = NULL;
    const stet_fleet_record *rec[2];
    stet_state s[2];
    stet_status st = stet_runs_load(ctx, args, &reg, err);
    size_t got = 0;
    for (int i = 0; i < 2 && st == STET_OK; i++) {
        stet_value keep;
        st = stet_registry_find(reg, stet_value_text_at(args, keys[i], &keep), NULL, &rec[i], NULL, NULL, err);
        if (st == STET_OK)
            st = stet_fleet_record_reread(rec[i], &s[i], err);
        if (st == STET_OK)
            got++;
    }
    if (st == STET_OK) {
        stet_value v = stet_runs_compare(&s[0], &s[1]);
        stet_value_put(&v, "schemaVersion", stet_value_int(STET_REGISTRY_SCHEMA));
        stet_value_put(&v, "a", stet_fleet_record_value(rec[0]));
        stet_value_put(&v, "b", stet_fleet_record_value(rec[1]));
        *result = v;
    }
    for (size_t i = 0; i < got; i++)
        stet_state_release(&s[i]);
    stet_registry_free(reg);
    return st;
}

static void put_side(stet_render *r, stet_value v) {
    if (stet_value_type(v) == STET_TYPE_STRING) {
        stet_text_value(r, v);
    } else {
        char *text = stet_json_print(v, STET_JSON_CANONICAL, NULL);
        stet_text_plain(r, text, strlen(text));
        stet_free(text);
    }
}

static void put_differences(stet_render *r, const char *name, stet_value list) {
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value d = stet_value_at(list, i), side;
        stet_buf_printf(r->out, "%s", name);
        stet_runs_put(r, d, "path");
        stet_buf_str(r->out, ": ");
        if (stet_value_find(d, "a", 1, &side))
            put_side(r, side);
        else
            stet_buf_str(r->out, "(none)");
        stet_buf_str(r->out, " -> ");
        if (stet_value_find(d, "b", 1, &side))
            put_side(r, side);
        else
            stet_buf_str(r->out, "(none)");
        stet_buf_char(r->out, '\n');
    }
}

static void compare_render(stet_render *r, stet_value result) {
    stet_value tasks = stet_value_get(result, "tasks");
    stet_runs_put(r, stet_value_get(result, "a"), "runId");
    stet_buf_str(r->out, " -> ");
    stet_runs_put(r, stet_value_get(result, "b"), "runId");
    stet_buf_str(r->out, stet_value_as_bool(stet_value_get(result, "same")) ? ": the same\n" : ": they differ\n");
    put_differences(r, "app", stet_value_get(result, "app"));
    put_differences(r, "inputs", stet_value_get(result, "inputs"));
    put_differences(r, "options", stet_value_get(result, "options"));
    for (size_t i = 0; i < stet_value_count(tasks); i++) {
        stet_value t = stet_value_at(tasks, i);
        if (stet_value_as_bool(stet_value_get(t, "same")))
            continue;
        stet_buf_str(r->out, "task ");
        stet_runs_put(r, t, "id");
        stet_buf_str(r->out, ": ");
        stet_runs_put(r, stet_value_get(t, "a"), "status");
        stet_buf_str(r->out, " -> ");
        stet_runs_put(r, stet_value_get(t, "b"), "status");
        if (stet_value_equal(stet_value_get(stet_value_get(t, "a"), "status"),
                             stet_value_get(stet_value_get(t, "b"), "status")))
            stet_buf_str(r->out, ", with another result");
        stet_buf_char(r->out, '\n');
    }
}

static const char *const orders[] = {"oldest", "newest", NULL};

#define FILTERS                                                                                                        \
    {.name = "app", .type = STET_PARAM_STRING, .metavar = "ID", .summary = "Runs of this app (pattern)"},              \
        {.name = "status",                                                                                             \
         .type = STET_PARAM_ENUM,                                                                                      \
         .flags = STET_PARAM_REPEATED,                                                                                 \
         .choices = stet_runs_lifecycles,                                                                              \
         .summary = "With this lifecycle; an archived run also by what it was before"},                                \
        RUNS_REPO_PARAM, {.name = "since", .type = STET_PARAM_TIME, .summary = "Begun at this time or later"},         \
        {.name = "until", .type = STET_PARAM_TIME, .summary = "Begun at this time or earlier"},                        \
        {.name = "label", .type = STET_PARAM_STRING, .summary = "With this label"}, {                                  \
        .name = "include-archived", .type = STET_PARAM_BOOL, .default_json = "true", .summary = "Also archived runs"   \
    }

#define PAGES                                                                                                          \
    {.name = "limit",                                                                                                  \
     .type = STET_PARAM_INT,                                                                                           \
     .default_json = "50",                                                                                             \
     .min = 0,                                                                                                         \
     .max = STET_FLEET_QUERY_LIMIT_MAX,                                                                                \
     .summary = "At most so many"},                                                                                    \
        {.name = "offset",                                                                                             \
         .type = STET_PARAM_INT,                                                                                       \
         .default_json = "0",                                                                                          \
         .min = 0,                                                                                                     \
         .max = INT32_MAX,                                                                                             \
         .summary = "Leave out so many before"},                                                                       \
        {.name = "cursor", .type = STET_PARAM_STRING, .summary = "Go on after the page whose nextCursor this is"},     \
        {.name = "order",                                                                                              \
         .type = STET_PARAM_ENUM,                                                                                      \
         .choices = orders,                                                                                            \
         .summary = "Which come first, by the time they began; without it the newest, with --json the oldest"},        \
        RUNS_VERIFY_PARAM

static const stet_param search_params[] = {
    {.name = "text",
     .type = STET_PARAM_STRING,
     .metavar = "WORDS",
     .summary = "Each word is in the id, app, workflow, title, project, lifecycle, stage, labels or inputs"},
    FILTERS,
    RUNS_SCOPE_PARAM("All known projects, or the current one alone", "\"home\""),
    PAGES,
    {0},
};
static const stet_param list_params[] = {
    RUNS_SCOPE_PARAM("The current project alone, or all known ones", "\"home\""),
    FILTERS,
    PAGES,
    {0},
};
static const stet_param show_params[] = {
    RUNS_ID_PARAM,
    RUNS_REPO_PARAM,
    RUNS_SCOPE_PARAM("Where to look", "\"home\""),
    {0},
};
static const stet_param stats_params[] = {
    {.name = "text", .type = STET_PARAM_STRING, .metavar = "WORDS", .summary = "As of runs search"},
    FILTERS,
    RUNS_SCOPE_PARAM("All known projects, or the current one alone", "\"home\""),
    {0},
};
static const stet_param compare_params[] = {
    {.name = "a",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_REQUIRED | STET_PARAM_POSITIONAL,
     .metavar = "RUN",
     .summary = "One run"},
    {.name = "b",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_REQUIRED | STET_PARAM_POSITIONAL,
     .metavar = "RUN",
     .summary = "The other"},
    {0},
};

#define PAGE_SCHEMA                                                                                                    \
    "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"scope\",\"query\",\"freshness\",\"total\",\"offset\","     \
    "\"limit\",\"nextCursor\",\"records\",\"problems\",\"nextAction\"],\"additionalProperties\":false,"                \
    "\"properties\":{\"schemaVersion\":{\"const\":1},\"scope\":{\"enum\":[\"repo\",\"home\"]},\"query\":{\"type\":"    \
    "\"object\"},\"freshness\":" RUNS_FRESHNESS                                                                        \
    ",\"total\":{\"type\":\"integer\",\"minimum\":0},\"offset\":{\"type\":\"integer\"},\"limit\":{\"type\":"           \
    "\"integer\"},\"nextCursor\":{\"type\":[\"string\",\"null\"]},\"records\":{\"type\":\"array\","                    \
    "\"items\":" RUNS_RECORD "},\"problems\":" RUNS_PROBLEMS ",\"nextAction\":{\"type\":\"string\"}}}"

static const stet_example search_examples[] = {
    {"runs search --text report", "runs that have to do with reports"},
    {"runs search --status failed --since 2d --json", "what failed since two days ago, as JSON"},
    {0},
};
static const stet_example list_examples[] = {
    {"runs list", "all runs of all known projects"},
    {"runs list --scope repo --order newest --limit 10", "the last ten of this project"},
    {0},
};
static const stet_example show_examples[] = {{"runs show 20261115T174500Z-report-0a1b2c3d", "one run"}, {0}};
static const stet_example stats_examples[] = {{"runs stats --since 30d", "the last month in figures"}, {0}};
static const stet_example compare_examples[] = {
    {"runs compare 20261115T174500Z-report-0a1b2c3d 20261115T180000Z-report-4e5f6a7b", "what differs between two runs"},
    {0},
};

const stet_op stet_ops_runs[] = {
    {.name = "runs search",
     .summary = "Find runs of all known projects",
     .description =
         "Sorted by the time they began, then by id. Every record is what its state.json says now; runs that "
         "can't be read are counted and named beside them. Nothing is written.",
     .params = search_params,
     .result_schema = PAGE_SCHEMA,
     .examples = search_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_NO_PROJECT | STET_OP_COMMON,
     .run = search_run,
     .render = search_render,
     .verdict = stet_runs_verdict},
    {.name = "runs list",
     .summary = "List runs",
     .description = "As runs search, without words to look for.",
     .params = list_params,
     .result_schema = PAGE_SCHEMA,
     .examples = list_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_NO_PROJECT,
     .run = search_run,
     .render = search_render,
     .verdict = stet_runs_verdict},
    {.name = "runs show",
     .summary = "Show one run",
     .description = "A run whose state.json is gone or can't be trusted is not found (exit status 3 or 6): only what "
                    "the index last knew of it is shown, and flagged so. The current project's run wins over others "
                    "with the same id; --repo says which.",
     .params = show_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"runId\",\"found\",\"freshness\",\"resolvedFrom\","
         "\"repo\",\"record\",\"persisted\",\"tasks\",\"unreadable\",\"nextAction\"],\"additionalProperties\":false,"
         "\"properties\":{\"schemaVersion\":{\"const\":1},\"runId\":{\"type\":\"string\"},\"found\":{\"type\":"
         "\"boolean\"},\"freshness\":{\"enum\":[\"valid\",\"stale\",\"missing\"]},\"resolvedFrom\":{\"enum\":[\"repo\","
         "\"home\",null]},\"repo\":{\"type\":[\"string\",\"null\"]},\"record\":{\"anyOf\":[{\"type\":\"null\"}"
         "," RUNS_RECORD "]},\"persisted\":{\"anyOf\":[{\"type\":\"null\"}," RUNS_RECORD
         "]},\"tasks\":{\"type\":\"array\"},\"argument\":{},\"result\":{},\"unreadable\":{\"type\":[\"object\","
         "\"null\"]},\"problems\":" RUNS_PROBLEMS ",\"nextAction\":{\"type\":"
         "\"string\"}}}",
     .examples = show_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_NO_PROJECT | STET_OP_COMMON,
     .run = show_run,
     .render = show_render,
     .verdict = show_verdict},
    {.name = "runs stats",
     .summary = "Durations, failure and hit rates, and time saved",
     .description =
         "Over all runs that match, and per app. A rate is of the runs that ended; what stood is the share of "
         "actions that did not have to run.",
     .params = stats_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"scope\",\"query\",\"total\",\"byLifecycle\","
         "\"failureRate\",\"durationMs\",\"actions\",\"savedMs\",\"apps\",\"unreadable\",\"problems\"],"
         "\"properties\":{\"total\":{\"type\":\"integer\"},\"failureRate\":{\"type\":[\"number\",\"null\"]},"
         "\"durationMs\":{\"type\":\"object\"},\"actions\":{\"type\":\"object\"},\"savedMs\":{\"type\":\"integer\"},"
         "\"apps\":{\"type\":\"array\"},\"problems\":" RUNS_PROBLEMS "}}",
     .examples = stats_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_NO_PROJECT,
     .run = stats_run,
     .render = stats_render,
     .verdict = stet_runs_verdict},
    {.name = "runs compare",
     .summary = "Show what differs between two runs",
     .description = "App, inputs and options by member, tasks by status and digest of the result. Times and summaries "
                    "are told but do not count as a difference.",
     .params = compare_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"same\",\"a\",\"b\",\"app\",\"inputs\",\"options\","
         "\"tasks\",\"summary\",\"commits\"],\"properties\":{\"same\":{\"type\":\"boolean\"},\"a\":" RUNS_RECORD
         ",\"b\":" RUNS_RECORD ",\"tasks\":{\"type\":\"array\"},\"inputs\":{\"type\":\"array\"}}}",
     .examples = compare_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_NO_PROJECT,
     .run = compare_run,
     .render = compare_render},
    {0},
};
