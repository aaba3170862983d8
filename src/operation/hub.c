/* hub.c - the operations hub init, status, gc and check, and worker list: the shared place of calls. */

#include <string.h>

#include "base/text.h"
#include "call/calls.h"
#include "call/claim.h"
#include "operation/args.h"
#include "operation/hub_common.h"
#include "operation/text.h"
#include "os/clock.h"

/* The address that was given, or that of the remote that was named or configured. A project is needed for the latter only. */
static stet_status uri_of(stet_op_ctx *ctx, stet_value args, char **uri, stet_error *err) {
    stet_value hold;
    return hub_uri(ctx, stet_value_text_at(args, "hub", &hold), uri, err);
}

stet_status hub_uri(stet_op_ctx *ctx, const char *given, char **uri, stet_error *err) {
    stet_project *p;
    stet_calls_config config = {0};
    stet_repo *own = NULL;
    *uri = NULL;
    if (given && strchr(given, ':'))
        return stet_calls_remote(NULL, given, uri, err);
    stet_status status = ctx->project(ctx, &p, err);
    if (status != STET_OK) {
        stet_hint(err, "give the address of the hub: file:///PATH or postgres://USER@HOST/DATABASE");
        return status;
    }
    status = stet_calls_config_read(p, &config, err);
    if (status != STET_OK)
        return status;
    status = stet_repo_open(p, STET_REPO_READ_ONLY, &own, err);
    given = given ? given : config.remote;
    if (status == STET_OK && given)
        status = stet_calls_remote(own, given, uri, err);
    else if (status == STET_OK)
        *uri = stet_repo_uri(own);
    stet_repo_close(own);
    stet_calls_config_release(&config);
    return status;
}

static stet_status open_hub(stet_op_ctx *ctx, stet_value args, char **uri, stet_hub **hub, stet_error *err) {
    stet_status status = uri_of(ctx, args, uri, err);
    return status == STET_OK ? stet_hub_open(*uri, STET_REPO_MUST_EXIST, hub, err) : status;
}

static stet_status init_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    char *uri = NULL;
    bool changed;
    stet_status status = uri_of(ctx, args, &uri, err);
    if (status == STET_OK)
        status = stet_hub_init(uri, &changed, err);
    if (status == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "hub", stet_value_stringf("%s", uri));
        stet_value_put(result, "changed", stet_value_bool(changed));
    }
    stet_free(uri);
    return status;
}

static void init_render(stet_render *r, stet_value v) {
    stet_value uri = stet_value_get(v, "hub");
    stet_buf_str(r->out, stet_value_as_bool(stet_value_get(v, "changed")) ? "ready: " : "nothing to do: ");
    stet_text_plain(r, stet_value_text(&uri, ""), strlen(stet_value_text(&uri, "")));
    stet_buf_char(r->out, '\n');
}

static stet_status status_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    char *uri = NULL;
    stet_hub *hub = NULL;
    stet_hub_counts c;
    stet_hub_workers workers = {0};
    int64_t now = 0;
    stet_status status = open_hub(ctx, args, &uri, &hub, err);
    if (status == STET_OK)
        status = stet_hub_count(hub, &c, err);
    if (status == STET_OK)
        status = stet_hub_list_workers(hub, &workers, err);
    if (status == STET_OK)
        status = stet_hub_now(hub, &now, err);
    if (status == STET_OK) {
        const struct {
            const char *name;
            int64_t n;
        } numbers[] = {{"schema", c.schema}, {"queued", c.queued},       {"running", c.held},
                       {"lapsed", c.lapsed}, {"ended", c.ended},         {"workers", (int64_t)workers.len},
                       {"refs", c.refs},     {"objects", c.objects},     {"bytes", c.bytes},
                       {"blobs", c.blobs},   {"blobBytes", c.blob_bytes}};
        *result = stet_value_object();
        stet_value_put(result, "hub", stet_value_stringf("%s", uri));
        stet_value_put(result, "time", stet_time_value(now));
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            stet_value_put(result, numbers[i].name, stet_value_int(numbers[i].n));
    }
    stet_hub_workers_release(&workers);
    stet_hub_close(hub);
    stet_free(uri);
    return status;
}

static long long number(stet_value v, const char *name) {
    return (long long)stet_value_as_int(stet_value_get(v, name));
}

static void status_render(stet_render *r, stet_value v) {
    stet_value uri = stet_value_get(v, "hub"), now = stet_value_get(v, "time");
    stet_text_plain(r, stet_value_text(&uri, ""), strlen(stet_value_text(&uri, "")));
    stet_buf_printf(r->out, "\nschema %lld, clock %s\n", number(v, "schema"), stet_value_text(&now, ""));
    stet_buf_printf(r->out, "calls: %lld queued, %lld running, %lld with an expired lease, %lld ended\n",
                    number(v, "queued"), number(v, "running"), number(v, "lapsed"), number(v, "ended"));
    stet_buf_printf(r->out, "workers: %lld\n", number(v, "workers"));
    stet_buf_printf(r->out, "stored: %lld objects (%lld bytes), %lld refs, %lld blobs (%lld bytes)\n",
                    number(v, "objects"), number(v, "bytes"), number(v, "refs"), number(v, "blobs"),
                    number(v, "blobBytes"));
}

static stet_status gc_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    char *uri = NULL;
    stet_hub *hub = NULL;
    int64_t grace_ms = (int64_t)STET_REPO_GRACE_S * 1000, keep_ms = STET_CALLS_KEEP_MS, claims = 0;
    stet_hub_gc_report report;
    stet_status status = stet_op_duration_arg(args, "grace", true, &grace_ms, err);
    if (status == STET_OK)
        status = stet_op_duration_arg(args, "ended", true, &keep_ms, err);
    if (status == STET_OK)
        status = open_hub(ctx, args, &uri, &hub, err);
    if (status == STET_OK)
        status = stet_claim_sweep(hub, keep_ms, false, &claims, err);
    if (status == STET_OK)
        status = stet_hub_gc(hub, grace_ms / 1000, &report, err);
    if (status == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "hub", stet_value_stringf("%s", uri));
        stet_value_put(result, "claims", stet_value_int(claims));
        stet_value_put(result, "objects", stet_value_int(report.objects));
        stet_value_put(result, "bytes", stet_value_int(report.bytes));
        stet_value_put(result, "refs", stet_value_int(report.refs));
        stet_value_put(result, "blobs", stet_value_int(report.blobs));
        stet_value_put(result, "blobBytes", stet_value_int(report.blob_bytes));
    }
    stet_hub_close(hub);
    stet_free(uri);
    return status;
}

static void gc_render(stet_render *r, stet_value v) {
    stet_buf_printf(r->out, "removed %lld ended calls, %lld objects (%lld bytes), %lld refs, %lld blobs (%lld bytes)\n",
                    number(v, "claims"), number(v, "objects"), number(v, "bytes"), number(v, "refs"),
                    number(v, "blobs"), number(v, "blobBytes"));
}

static stet_status check_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    char *uri = NULL;
    stet_hub *hub = NULL;
    stet_buf lines = STET_BUF(1 << 20);
    size_t found = 0;
    stet_status status = open_hub(ctx, args, &uri, &hub, err);
    if (status == STET_OK)
        status = stet_hub_check(hub, &lines, &found, err);
    if (status == STET_OK) {
        stet_value problems = stet_value_array();
        for (const char *at = stet_buf_cstr(&lines); *at; at += strcspn(at, "\n"), at += *at == '\n') {
            stet_value line;
            if (stet_value_string_checked(at, strcspn(at, "\n"), &line, NULL) == STET_OK)
                stet_value_push(&problems, line);
        }
        *result = stet_value_object();
        stet_value_put(result, "hub", stet_value_stringf("%s", uri));
        stet_value_put(result, "found", stet_value_int((int64_t)found));
        stet_value_put(result, "problems", problems);
    }
    stet_buf_release(&lines);
    stet_hub_close(hub);
    stet_free(uri);
    return status;
}

static stet_status check_verdict(stet_value v) {
    return number(v, "found") > 0 ? STET_FAILED : STET_OK;
}

static void check_render(stet_render *r, stet_value v) {
    stet_value list = stet_value_get(v, "problems");
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value line = stet_value_at(list, i);
        stet_text_plain(r, stet_value_text(&line, ""), strlen(stet_value_text(&line, "")));
        stet_buf_char(r->out, '\n');
    }
    if (number(v, "found") == 0)
        stet_buf_str(r->out, "no problems\n");
    else
        stet_buf_printf(r->out, "%lld problems\n", number(v, "found"));
}

stet_status hub_list_workers(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    char *uri = NULL;
    stet_hub *hub = NULL;
    stet_hub_workers workers = {0};
    stet_status status = open_hub(ctx, args, &uri, &hub, err);
    if (status == STET_OK)
        status = stet_hub_list_workers(hub, &workers, err);
    if (status == STET_OK) {
        stet_value list = stet_value_array();
        for (size_t i = 0; i < workers.len; i++) {
            stet_value row = stet_value_retain(workers.at[i].body);
            if (stet_value_type(row) == STET_TYPE_OBJECT)
                stet_value_put(&row, "name", stet_value_stringf("%s", workers.at[i].name));
            stet_value_push(&list, row);
        }
        *result = stet_value_object();
        stet_value_put(result, "total", stet_value_int((int64_t)workers.len));
        stet_value_put(result, "workers", list);
    }
    stet_hub_workers_release(&workers);
    stet_hub_close(hub);
    stet_free(uri);
    return status;
}

void hub_render_workers(stet_render *r, stet_value v) {
    static const char *const heads[] = {"HOST", "PID", "STATE", "CALLS", "LABELS", "SINCE"};
    stet_value list = stet_value_get(v, "workers");
    if (stet_value_count(list) == 0) {
        stet_buf_str(r->out, "no workers; start one with: stet worker --hub URI\n");
        return;
    }
    stet_table t = stet_table_begin(6, heads);
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value row = stet_value_at(list, i), host = stet_value_get(row, "host"),
                   state = stet_value_get(row, "state"), labels = stet_value_get(row, "labels"),
                   started = stet_value_get(row, "started");
        stet_buf text = STET_BUF(0);
        for (size_t k = 0; k < stet_value_count(labels); k++) {
            stet_value label = stet_value_at(labels, k);
            stet_buf_printf(&text, "%s%s", k ? " " : "", stet_value_text(&label, ""));
        }
        stet_table_cell(&t, stet_value_text(&host, ""));
        stet_table_cellf(&t, "%lld", number(row, "pid"));
        stet_table_cell(&t, stet_value_text(&state, ""));
        stet_table_cellf(&t, "%lld of %lld", number(row, "running"), number(row, "jobs"));
        stet_table_cell(&t, text.len ? stet_buf_cstr(&text) : "-");
        stet_table_cell(&t, stet_value_text(&started, ""));
        stet_buf_release(&text);
    }
    stet_table_print(&t, r, true);
}

static const stet_param hub_params[] = {HUB_PARAM, {0}};
static const stet_param init_params[] = {{.name = "hub",
                                          .type = STET_PARAM_STRING,
                                          .flags = STET_PARAM_POSITIONAL | STET_PARAM_REQUIRED,
                                          .metavar = "HUB",
                                          .summary = "postgres://USER@HOST/DATABASE?schema=NAME, or file:///PATH"},
                                         {0}};
static const stet_param gc_params[] = {
    HUB_PARAM,
    {.name = "grace",
     .type = STET_PARAM_STRING,
     .metavar = "TIME",
     .summary = "Keep what was stored or asked for within this time; 1h unless given"},
    {.name = "ended",
     .type = STET_PARAM_STRING,
     .metavar = "TIME",
     .summary = "Keep the record of a call for this long after it has ended; 7d unless given"},
    {0}};

static const stet_example init_examples[] = {
    {"hub init file://$PWD/shared.db", "make a hub in a file, for projects of one machine"}, {0}};
static const stet_example status_examples[] = {{"hub status", "what this project's hub has, and who works for it"},
                                               {0}};
static const stet_example gc_examples[] = {{"hub gc", "remove what nobody needs"}, {0}};
static const stet_example check_examples[] = {{"hub check", "verify all that the hub has"}, {0}};

const stet_op stet_ops_hub[] = {
    {.name = "hub init",
     .summary = "Make a hub, or bring its schema up to date",
     .description =
         "A hub is where projects leave calls and workers take them (docs/cluster.md). In PostgreSQL it is a "
         "schema of a database: `stet` unless the address names one. Running it again changes nothing; after "
         "an update of stet it migrates the schema, while nobody else does.",
     .params = init_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"hub\",\"changed\"],\"additionalProperties\":false,"
                      "\"properties\":{\"hub\":{\"type\":\"string\"},\"changed\":{\"type\":\"boolean\"}}}",
     .examples = init_examples,
     .flags = STET_OP_IDEMPOTENT | STET_OP_CLI_ONLY | STET_OP_NO_PROJECT,
     .run = init_run,
     .render = init_render},
    {.name = "hub status",
     .summary = "Count what a hub has: calls, workers, objects",
     .description = "In PostgreSQL the number of objects is an estimate above a million, and their bytes are those of "
                    "the table.",
     .params = hub_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"hub\",\"time\"],\"properties\":{\"hub\":{\"type\":\"string\"},"
         "\"time\":{\"type\":\"string\"}},\"additionalProperties\":{\"type\":\"integer\"}}",
     .examples = status_examples,
     .flags = STET_OP_CLI_ONLY | STET_OP_NO_PROJECT,
     .run = status_run,
     .render = status_render},
    {.name = "hub gc",
     .summary = "Remove from a hub what nobody needs any more",
     .description =
         "Removes the records of calls that ended long ago, then objects that no call and no ref names, refs "
         "of executions that were abandoned a week ago, and blobs that nobody has asked for. What was stored "
         "or asked for within the grace period stays. Workers do this by themselves, once an hour.",
     .params = gc_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"hub\",\"claims\",\"objects\"],\"properties\":{\"hub\":{"
                      "\"type\":\"string\"}},\"additionalProperties\":{\"type\":\"integer\"}}",
     .examples = gc_examples,
     .flags = STET_OP_DESTRUCTIVE | STET_OP_CLI_ONLY | STET_OP_LONG | STET_OP_NO_PROJECT,
     .run = gc_run,
     .render = gc_render},
    {.name = "hub check",
     .summary = "Verify everything that a hub has",
     .description =
         "Reads every object, the record of every call, and every blob, and compares each with its hash. Exit "
         "status 1 if something is damaged.",
     .params = hub_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"hub\",\"found\",\"problems\"],\"additionalProperties\":"
                      "false,\"properties\":{\"hub\":{\"type\":\"string\"},\"found\":{\"type\":\"integer\"},"
                      "\"problems\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}",
     .examples = check_examples,
     .flags = STET_OP_CLI_ONLY | STET_OP_LONG | STET_OP_NO_PROJECT,
     .run = check_run,
     .render = check_render,
     .verdict = check_verdict},
    {0},
};
