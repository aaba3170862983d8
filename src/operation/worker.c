/* worker.c - the operation worker: runs calls from the claims of repositories. */

#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "call/calls.h"
#include "call/function.h"
#include "operation/args.h"
#include "operation/hub_common.h"
#include "operation/op.h"

static bool stop(void *context) {
    stet_op_ctx *ctx = context;
    return ctx->cancelled(ctx);
}

static void say(void *context, const char *line) {
    stet_op_ctx *ctx = context;
    ctx->warn(ctx, "%s", line);
}

static const char *const events[] = {"taken", "ok", "error", "lost"};

static void tell(void *context, stet_worker_event event, stet_hash key, const char *function) {
    stet_op_ctx *ctx = context;
    stet_value v = stet_value_object();
    stet_value_put(&v, "event", stet_value_string(events[event]));
    stet_value_put(&v, "key", stet_hash_text(key));
    stet_value_put(&v, "function", stet_value_string(function));
    if (ctx->emit(ctx, v, NULL) != STET_OK) {
        /* the event is not read: work continues, and `cancelled` says if it should not */
    }
    stet_value_release(v);
}

/* Short texts are stored inside their values: `kept` has those. */
static stet_status take_labels(stet_value args, const char ***labels, stet_value **kept, stet_error *err) {
    stet_value list = stet_value_get(args, "label");
    size_t count = stet_value_count(list);
    *labels = stet_alloc_zero((count + 1) * sizeof **labels);
    *kept = stet_alloc_zero((count + 1) * sizeof **kept);
    for (size_t i = 0; i < count; i++) {
        (*kept)[i] = stet_value_at(list, i);
        (*labels)[i] = stet_value_as_string(&(*kept)[i], NULL);
        if (!stet_function_is_label((*labels)[i]))
            return stet_fail(err, STET_INVALID, "--label %.100s: not a valid label: use letters, digits and ._-",
                             (*labels)[i]);
    }
    return STET_OK;
}

static stet_status worker_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_project *p;
    stet_calls_config config = {0};
    stet_worker_report report;
    stet_value hub = stet_value_get(args, "hub"), remote = stet_value_get(args, "remote");
    char *uri = NULL, *dir = NULL;
    const char **labels = NULL;
    stet_value *kept = NULL;
    stet_worker_opts o = {.jobs = (size_t)stet_value_as_int(stet_value_get(args, "jobs")),
                          .idle_ms = -1,
                          .cancelled = stop,
                          .event = tell,
                          .say = say,
                          .ctx = ctx};
    stet_status status = ctx->project(ctx, &p, err);
    if (status == STET_OK)
        status = stet_calls_config_read(p, &config, err);
    if (status != STET_OK)
        return status;
    o.lease_ms = config.lease_ms;
    o.backoff = config.backoff;
    o.slots = config.slots;
    o.pools = config.pools;
    status = stet_op_duration_arg(args, "idle", true, &o.idle_ms, err);
    if (status == STET_OK)
        status = stet_op_duration_arg(args, "lease", true, &o.lease_ms, err);
    if (status == STET_OK && stet_value_type(hub) == STET_TYPE_STRING && stet_value_type(remote) == STET_TYPE_STRING)
        status = stet_fail(err, STET_INVALID, "--hub and --remote are the same: give one of them");
    if (status == STET_OK)
        status = take_labels(args, &labels, &kept, err);
    if (status == STET_OK)
        status = hub_uri(ctx, stet_value_text(&hub, stet_value_text(&remote, NULL)), &uri, err);
    if (status == STET_OK) {
        o.labels = labels;
        dir = stet_calls_dir(p);
        o.remote = uri;
        o.dir = dir;
        o.root = stet_project_root(p);
        status = stet_worker_run(&o, &report, err);
    }
    if (status == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "taken", stet_value_int(report.taken));
        stet_value_put(result, "ok", stet_value_int(report.ok));
        stet_value_put(result, "failed", stet_value_int(report.failed));
        stet_value_put(result, "lost", stet_value_int(report.lost));
    }
    stet_free(uri);
    stet_free(dir);
    stet_free(labels);
    stet_free(kept);
    stet_calls_config_release(&config);
    return status;
}

static void worker_render(stet_render *r, stet_value v) {
    stet_value event = stet_value_get(v, "event"), key = stet_value_get(v, "key"),
               function = stet_value_get(v, "function");
    if (stet_value_type(event) == STET_TYPE_STRING) {
        stet_buf_printf(r->out, "%-5s  %.12s  %s\n", stet_value_as_string(&event, NULL),
                        stet_value_as_string(&key, NULL), stet_value_as_string(&function, NULL));
        return;
    }
    stet_buf_printf(r->out, "%lld taken: %lld ok, %lld failed, %lld lost\n",
                    (long long)stet_value_as_int(stet_value_get(v, "taken")),
                    (long long)stet_value_as_int(stet_value_get(v, "ok")),
                    (long long)stet_value_as_int(stet_value_get(v, "failed")),
                    (long long)stet_value_as_int(stet_value_get(v, "lost")));
}

static const stet_param worker_params[] = {
    {.name = "hub",
     .type = STET_PARAM_STRING,
     .metavar = "HUB",
     .summary = "Hub whose calls are run: postgres://..., file:..., or the name of a remote; else the configured one, "
                "or this project's repository"},
    {.name = "remote",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_HIDDEN,
     .metavar = "HUB",
     .summary = "Another name for --hub"},
    {.name = "label",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_REPEATED,
     .metavar = "NAME",
     .summary = "This worker has what calls with needs=NAME ask for"},
    {.name = "jobs",
     .letter = 'j',
     .type = STET_PARAM_INT,
     .metavar = "N",
     .min = 1,
     .max = 1000,
     .default_json = "1",
     .summary = "So many calls at a time"},
    {.name = "idle",
     .type = STET_PARAM_STRING,
     .metavar = "TIME",
     .summary = "End when there was nothing to do for so long; 0: when there is nothing"},
    {.name = "lease",
     .type = STET_PARAM_STRING,
     .metavar = "TIME",
     .summary = "How long a call stays this worker's without a sign of life; 30s unless configured"},
    {0},
};

static const stet_example worker_examples[] = {
    {"worker --idle 0", "run what is queued in this project's repository, and end"},
    {"worker --hub file://$PWD/shared.db -j 4 --label gpu --idle 0", "the same for a hub that many projects share"},
    {0},
};

static const stet_param list_params[] = {HUB_PARAM, {0}};
static const stet_example list_examples[] = {{"worker list", "who works for this project's hub"}, {0}};

const stet_op stet_ops_worker[] = {
    {.name = "worker",
     .summary = "Run calls that others have queued in a hub",
     .description =
         "Takes calls from the hub, as many as --jobs at a time, runs them here as stet-exec-local does, with the "
         "files "
         "that they were made with, and publishes their results there. Any number of workers share the work of one "
         "hub: each call is run by one of them. A worker that dies keeps its calls until their leases have run "
         "out; then another takes them over, and what the first might still publish counts for nothing.\n\n"
         "Calls come there by `stet call run --remote`, or from projects whose config.toml says so. After Ctrl-C or "
         "SIGTERM the worker takes nothing new, and ends when its calls have ended. A second one ends it at once; its "
         "jobs go on, and the next worker of this project takes them up.",
     .params = worker_params,
     .result_schema = "{\"type\":\"object\",\"properties\":{\"taken\":{\"type\":\"integer\"},\"ok\":{\"type\":"
                      "\"integer\"},\"failed\":{\"type\":\"integer\"},\"lost\":{\"type\":\"integer\"},\"event\":{"
                      "\"type\":\"string\"},\"key\":{\"type\":\"string\"},\"function\":{\"type\":\"string\"}}}",
     .examples = worker_examples,
     .flags = STET_OP_LONG | STET_OP_CLI_ONLY,
     .run = worker_run,
     .render = worker_render},
    {.name = "worker list",
     .summary = "List the workers of a hub",
     .description = "Each worker says every 10 s that it is there; one that is silent for 30 s is no longer listed.",
     .params = list_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"total\",\"workers\"],\"additionalProperties\":false,"
                      "\"properties\":{\"total\":{\"type\":\"integer\"},\"workers\":{\"type\":\"array\"}}}",
     .examples = list_examples,
     .flags = STET_OP_CLI_ONLY | STET_OP_NO_PROJECT,
     .run = hub_list_workers,
     .render = hub_render_workers},
    {0},
};
