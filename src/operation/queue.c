/* queue.c - the operations queue add, list, show, drain, cancel, move, requeue, done and work. */

#include "fleet/queue.h"
#include "base/text.h"

#include <string.h>

#include "fleet/policy.h"
#include "fleet/repos.h"
#include "operation/runs_common.h"
#include "os/clock.h"
#include "os/proc.h"

static stet_status open_with(stet_queue *q, char **home, stet_policy *policy, stet_error *err) {
    *home = NULL;
    stet_status st = stet_home_dir(home, err);
    if (st == STET_OK)
        st = stet_policy_load(*home, policy, err);
    *q = (stet_queue){.home = *home, .newest_first = st == STET_OK && policy->newest_first};
    return st;
}

static stet_status open_queue(stet_queue *q, char **home, stet_error *err) {
    stet_policy policy;
    return open_with(q, home, &policy, err);
}

/* The project that an entry is for: --repo, or the current one. It is put on the list of known ones. */
static stet_status entry_repo(stet_op_ctx *ctx, stet_value args, const char *home, char **out, stet_error *err) {
    stet_status st = stet_runs_repo(ctx, args, out, err);
    stet_project *p;
    bool added;
    char *root = NULL;
    if (st == STET_OK && *out == NULL) {
        st = ctx->project(ctx, &p, err);
        if (st == STET_OK)
            *out = stet_strdup(stet_project_root(p));
    }
    if (st == STET_OK)
        st = stet_runs_confine(ctx, *out, err);
    if (st == STET_OK)
        st = stet_repos_add(home, *out, stet_clock_ms(), NULL, &root, &added, err);
    stet_free(root);
    return st;
}

/* The project whose entries are taken: --repo, or NULL for all. Whoever is confined takes those of its own. */
static stet_status taken_repo(stet_op_ctx *ctx, stet_value args, char **out, stet_error *err) {
    stet_project *p;
    stet_status st = stet_runs_repo(ctx, args, out, err);
    if (st != STET_OK || !ctx->confined)
        return st;
    if (*out != NULL)
        return stet_runs_confine(ctx, *out, err);
    st = ctx->project(ctx, &p, err);
    if (st == STET_OK)
        *out = stet_strdup(stet_project_root(p));
    return st;
}

static stet_status add_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_queue q;
    stet_policy policy;
    char *home = NULL, *repo = NULL;
    stet_value app, workflow, run, note;
    stet_registry *reg = NULL;
    const stet_fleet_record *rec = NULL;
    stet_queue_spec spec = {.app = stet_value_text_at(args, "app", &app),
                            .workflow = stet_value_text_at(args, "workflow", &workflow),
                            .run_id = stet_value_text_at(args, "run_id", &run),
                            .priority = stet_value_as_int(stet_value_get(args, "priority")),
                            .inputs = stet_value_get(args, "input"),
                            .note = stet_value_text_at(args, "note", &note),
                            .max_attempts = stet_value_as_int(stet_value_get(args, "max_attempts"))};
    stet_status st = open_with(&q, &home, &policy, err);
    if (st == STET_OK && spec.max_attempts == 0)
        spec.max_attempts = policy.max_attempts;
    /* An entry for a run that is not there could only fail later. */
    if (st == STET_OK && spec.run_id != NULL) {
        st = stet_runs_find(ctx, args, "run_id", &reg, &rec, NULL, err);
        if (st == STET_OK) {
            spec.run_id = rec->id;
            repo = stet_strdup(rec->repo);
            st = stet_runs_confine(ctx, repo, err);
        }
        if (st == STET_OK) {
            char *root = NULL;
            bool added;
            st = stet_repos_add(home, repo, stet_clock_ms(), NULL, &root, &added, err);
            stet_free(root);
        }
    } else if (st == STET_OK && spec.app == NULL && spec.workflow == NULL)
        st = stet_queue_add(&q, &spec, result, err); /* says what is missing */
    else if (st == STET_OK)
        st = entry_repo(ctx, args, home, &repo, err);
    spec.repo = repo;
    if (st == STET_OK)
        st = stet_queue_add(&q, &spec, result, err);
    stet_registry_free(reg);
    stet_free(repo);
    stet_free(home);
    return st;
}

static stet_status list_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_queue q;
    char *home = NULL, *repo = NULL;
    stet_value status, entries;
    stet_status st = open_queue(&q, &home, err);
    if (st == STET_OK)
        st = stet_runs_repo(ctx, args, &repo, err);
    if (st == STET_OK)
        st = stet_queue_list(&q, repo, stet_value_text_at(args, "status", &status), &entries, err);
    if (st == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "schemaVersion", stet_value_int(STET_QUEUE_SCHEMA));
        stet_value_put(result, "total", stet_value_int((int64_t)stet_value_count(entries)));
        stet_value_put(result, "entries", entries);
    }
    stet_free(repo);
    stet_free(home);
    return st;
}

static stet_status show_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    (void)ctx;
    stet_queue q;
    char *home = NULL;
    stet_value id;
    stet_status st = open_queue(&q, &home, err);
    if (st == STET_OK)
        st = stet_queue_show(&q, stet_value_text_at(args, "id", &id), result, err);
    stet_free(home);
    return st;
}

static stet_status drain_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_queue q;
    char *home = NULL, *repo = NULL;
    stet_value drained, limit = stet_value_get(args, "limit");
    size_t remaining = 0;
    stet_status st = open_queue(&q, &home, err);
    if (st == STET_OK)
        st = taken_repo(ctx, args, &repo, err);
    if (st == STET_OK)
        st = stet_queue_drain(&q, repo,
                              stet_value_type(limit) == STET_TYPE_INT ? (size_t)stet_value_as_int(limit) : SIZE_MAX,
                              &drained, &remaining, err);
    if (st == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "schemaVersion", stet_value_int(STET_QUEUE_SCHEMA));
        stet_value_put(result, "drained", drained);
        stet_value_put(result, "remaining", stet_value_int((int64_t)remaining));
    }
    stet_free(repo);
    stet_free(home);
    return st;
}

static stet_status change(stet_value args, stet_queue_move move, stet_value *result, stet_error *err) {
    stet_queue q;
    char *home = NULL;
    stet_value id, note;
    stet_status st = open_queue(&q, &home, err);
    if (st == STET_OK)
        st = stet_queue_change(&q, stet_value_text_at(args, "id", &id), move,
                               stet_value_as_int(stet_value_get(args, "priority")),
                               stet_value_text_at(args, "note", &note), result, err);
    stet_free(home);
    return st;
}

static stet_status cancel_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    (void)ctx;
    return change(args, STET_QUEUE_CANCEL, result, err);
}

static stet_status move_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    (void)ctx;
    return change(args, STET_QUEUE_PRIORITY, result, err);
}

static stet_status requeue_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    (void)ctx;
    return change(args, STET_QUEUE_REQUEUE, result, err);
}

static stet_status done_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    (void)ctx;
    return change(args, stet_value_as_bool(stet_value_get(args, "failed")) ? STET_QUEUE_FAIL : STET_QUEUE_DONE, result,
                  err);
}

static bool give_up(void *context) {
    stet_op_ctx *ctx = context;
    return ctx->cancelled(ctx);
}

static void settled(void *context, stet_value entry, const stet_drive_result *drive) {
    stet_op_ctx *ctx = context;
    stet_value event = stet_value_object();
    stet_value_put(&event, "entry", stet_value_retain(entry));
    stet_value_put(&event, "drive", stet_drive_result_value(drive));
    /* Nobody listens any more: the workers hear it from `cancelled`. */
    if (ctx->emit(ctx, event, NULL) != STET_OK)
        ctx->warn(ctx, "an entry was settled, and nobody heard");
    stet_value_release(event);
}

static stet_status work_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_queue q;
    char *home = NULL, *repo = NULL;
    stet_value limit = stet_value_get(args, "limit"), jobs = stet_value_get(args, "jobs");
    stet_policy policy;
    stet_queue_work_report report = {0};
    stet_queue_work_opts opts = {.workers = (size_t)stet_value_as_int(jobs),
                                 .limit = stet_value_type(limit) == STET_TYPE_INT ? (size_t)stet_value_as_int(limit)
                                                                                  : SIZE_MAX,
                                 .lease_ms = stet_value_as_int(stet_value_get(args, "lease")) * 1000,
                                 .actor = stet_runs_actor(),
                                 .driver = stet_runs_driver(ctx),
                                 .cancelled = give_up,
                                 .settled = settled,
                                 .output = ctx->output,
                                 .live = ctx->live,
                                 .context = ctx};
    stet_value waiting = stet_value_null();
    stet_status st = open_with(&q, &home, &policy, err);
    if (st == STET_OK && stet_value_type(jobs) != STET_TYPE_INT)
        opts.workers = policy.jobs > 0 ? (size_t)policy.jobs : 1;
    if (st == STET_OK)
        opts.retry_ms = policy.back_off_ms;
    if (st == STET_OK)
        st = taken_repo(ctx, args, &repo, err);
    opts.repo = repo;
    if (st == STET_OK)
        st = stet_queue_list(&q, repo, NULL, &waiting, err);
    if (st == STET_OK && stet_value_count(waiting) > 0 && opts.limit > 0)
        st = stet_queue_work(&q, &opts, &report, err);
    stet_value_release(waiting);
    if (st == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "schemaVersion", stet_value_int(STET_QUEUE_SCHEMA));
        stet_value_put(result, "done", stet_value_int((int64_t)report.done));
        stet_value_put(result, "failed", stet_value_int((int64_t)report.failed));
        stet_value_put(result, "returned", stet_value_int((int64_t)report.returned));
        stet_value_put(result, "parked", stet_value_int((int64_t)report.parked));
        stet_value_put(result, "stopped", stet_value_bool(ctx->cancelled(ctx)));
    }
    stet_free(repo);
    stet_free(home);
    return st;
}

static stet_status work_verdict(stet_value result) {
    if (stet_value_as_bool(stet_value_get(result, "stopped")))
        return STET_CANCELLED;
    return stet_value_as_int(stet_value_get(result, "failed")) + stet_value_as_int(stet_value_get(result, "parked")) > 0
               ? STET_FAILED
               : STET_OK;
}

static const char *named(stet_value e, stet_value *keep) {
    static const char *const keys[] = {"runId", "app", "workflow"};
    for (int i = 0; i < 3; i++) {
        *keep = stet_value_get(e, keys[i]);
        if (stet_value_type(*keep) == STET_TYPE_STRING)
            return stet_value_as_string(keep, NULL);
    }
    return "-";
}

/* Ids end with ten digits that tell them apart. */
static const char *brief_of(const char *id) {
    const char *dash = strrchr(id, '-');
    return dash && dash[1] ? dash + 1 : id;
}

static void put_entries(stet_render *r, stet_value entries) {
    static const char *const heads[] = {"ENTRY", "STATUS", "PRIO", "TRIES", "RUNS", "PROJECT", "NOTE"};
    stet_table t = {.columns = 7};
    for (size_t i = 0; i < 7 && stet_value_count(entries) > 0; i++)
        stet_table_cell(&t, heads[i]);
    for (size_t i = 0; i < stet_value_count(entries); i++) {
        stet_value e = stet_value_at(entries, i), id = stet_value_get(e, "id"), status = stet_value_get(e, "status"),
                   note = stet_value_get(e, "note"), error = stet_value_get(e, "lastError"), keep;
        stet_table_cell(&t, brief_of(stet_value_text(&id, "")));
        stet_table_style(&t, stet_runs_style(stet_value_text(&status, "")));
        stet_table_cell(&t, stet_value_text(&status, ""));
        stet_table_cellf(&t, "%lld", (long long)stet_value_as_int(stet_value_get(e, "priority")));
        stet_table_cellf(&t, "%lld", (long long)stet_value_as_int(stet_value_get(e, "attempts")));
        stet_table_cell(&t, stet_runs_short(named(e, &keep)));
        stet_runs_cell_project(&t, e);
        stet_table_cell(&t, stet_value_text(&error, stet_value_text(&note, "")));
    }
    if (stet_value_count(entries) > 0)
        stet_table_print(&t, r, true);
}

static void entry_render(stet_render *r, stet_value entry) {
    stet_value one = stet_value_array();
    stet_value_push(&one, stet_value_retain(entry));
    put_entries(r, one);
    stet_value_release(one);
}

static void list_render(stet_render *r, stet_value result) {
    put_entries(r, stet_value_get(result, "entries"));
    int64_t total = stet_value_as_int(stet_value_get(result, "total"));
    stet_buf_printf(r->out, "%lld %s\n", (long long)total, total == 1 ? "entry" : "entries");
}

static void drain_render(stet_render *r, stet_value result) {
    put_entries(r, stet_value_get(result, "drained"));
    stet_buf_printf(r->out, "%zu drained, %lld remain\n", stet_value_count(stet_value_get(result, "drained")),
                    (long long)stet_value_as_int(stet_value_get(result, "remaining")));
    if (stet_value_count(stet_value_get(result, "drained")) > 0)
        stet_buf_str(r->out, "next: stet queue done ENTRY, or stet queue requeue ENTRY to give it back\n");
}

static void work_render(stet_render *r, stet_value result) {
    stet_value entry = stet_value_get(result, "entry"), keep;
    if (stet_value_type(entry) == STET_TYPE_OBJECT) { /* an event */
        stet_value status = stet_value_get(entry, "status");
        const char *s = stet_value_as_string(&status, NULL), *what = named(entry, &keep);
        stet_text_styled(r, stet_runs_style(s), s);
        stet_buf_char(r->out, ' ');
        stet_text_plain(r, what, strlen(what));
        stet_buf_char(r->out, '\n');
        return;
    }
    stet_buf_printf(r->out, "%s%lld done, %lld failed, %lld returned, %lld parked\n",
                    stet_value_as_bool(stet_value_get(result, "stopped")) ? "stopped: " : "",
                    (long long)stet_value_as_int(stet_value_get(result, "done")),
                    (long long)stet_value_as_int(stet_value_get(result, "failed")),
                    (long long)stet_value_as_int(stet_value_get(result, "returned")),
                    (long long)stet_value_as_int(stet_value_get(result, "parked")));
}

static const char *const statuses[] = {"pending", "leased", "drained", "done", "failed", "cancelled", "parked", NULL};

#define ENTRY_PARAM                                                                                                    \
    {                                                                                                                  \
        .name = "id", .type = STET_PARAM_STRING, .flags = STET_PARAM_REQUIRED | STET_PARAM_POSITIONAL,                 \
        .metavar = "ENTRY", .summary = "Id of the entry, or a unique beginning or ending of it"                        \
    }
#define NOTE_PARAM                                                                                                     \
    { .name = "note", .type = STET_PARAM_STRING, .summary = "A note that is kept with it" }
#define PRIORITY_MIN (-1000000000)
#define PRIORITY_MAX 1000000000

static const stet_param add_params[] = {
    {.name = "app", .type = STET_PARAM_STRING, .metavar = "ID", .summary = "The app (pattern) to run"},
    {.name = "workflow", .type = STET_PARAM_STRING, .metavar = "ID", .summary = "The workflow to run"},
    {.name = "run-id", .type = STET_PARAM_STRING, .metavar = "RUN", .summary = "The run to go on with"},
    RUNS_REPO_PARAM,
    {.name = "priority",
     .type = STET_PARAM_INT,
     .default_json = "0",
     .min = PRIORITY_MIN,
     .max = PRIORITY_MAX,
     .summary = "Lower comes first"},
    {.name = "input", .type = STET_PARAM_PAIR, .summary = "An input of the app"},
    {.name = "max-attempts",
     .type = STET_PARAM_INT,
     .min = 1,
     .max = 1000,
     .summary = "Park it after so many attempts without an outcome; without it 3, or what policy.toml says"},
    NOTE_PARAM,
    {0},
};
static const stet_param list_params[] = {
    {.name = "status", .type = STET_PARAM_ENUM, .choices = statuses, .summary = "With this status"},
    RUNS_REPO_PARAM,
    {0},
};
static const stet_param entry_params[] = {ENTRY_PARAM, {0}};
static const stet_param note_params[] = {ENTRY_PARAM, NOTE_PARAM, {0}};
static const stet_param move_params[] = {
    ENTRY_PARAM,
    {.name = "priority",
     .type = STET_PARAM_INT,
     .flags = STET_PARAM_REQUIRED,
     .min = PRIORITY_MIN,
     .max = PRIORITY_MAX,
     .summary = "Its new priority; lower comes first"},
    {0},
};
static const stet_param done_params[] = {
    ENTRY_PARAM,
    {.name = "failed", .type = STET_PARAM_BOOL, .default_json = "false", .summary = "It came to an end, and failed"},
    NOTE_PARAM,
    {0},
};
static const stet_param drain_params[] = {
    {.name = "limit", .type = STET_PARAM_INT, .min = 0, .max = 1000000, .summary = "At most so many; 0: none"},
    RUNS_REPO_PARAM,
    {0},
};
static const stet_param work_params[] = {
    {.name = "jobs",
     .letter = 'j',
     .type = STET_PARAM_INT,
     .min = 1,
     .max = 64,
     .summary = "Entries at a time; without it 1, or what policy.toml says"},
    {.name = "limit", .type = STET_PARAM_INT, .min = 0, .max = 1000000, .summary = "At most so many entries"},
    {.name = "lease",
     .type = STET_PARAM_INT,
     .default_json = "60",
     .min = 1,
     .max = 86400,
     .summary = "Seconds after which an entry goes back, if its worker does not renew it"},
    RUNS_REPO_PARAM,
    {0},
};

#define ENTRY_SCHEMA                                                                                                   \
    "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"id\",\"runId\",\"app\",\"workflow\",\"repo\","             \
    "\"priority\","                                                                                                    \
    "\"enqueuedAt\",\"status\",\"attempts\",\"maxAttempts\",\"lease\",\"note\"],\"properties\":{\"id\":{\"type\":"     \
    "\"string\"},\"status\":{\"enum\":[\"pending\",\"leased\",\"drained\",\"done\",\"failed\",\"cancelled\","          \
    "\"parked\"]},\"priority\":{\"type\":\"integer\"},\"attempts\":{\"type\":\"integer\"}}}"

/* Ids are random: the examples use the one that the prepared project has. */
#define EXAMPLE_ENTRY "q20261115T174500Z-0a1b2c3d4e"

static const stet_example add_examples[] = {
    {"queue add --app report --priority 5", "a report, when its turn comes"},
    {"queue add --run-id 20261115T174500Z-report-0a1b2c3d --note later", "go on with a run later"},
    {0},
};
static const stet_example list_examples[] = {
    {"queue list", "everything, in the order in which it is taken"},
    {"queue list --status parked", "what needs somebody to look at it"},
    {0},
};
static const stet_example show_examples[] = {{"queue show " EXAMPLE_ENTRY, "one entry"}, {0}};
static const stet_example drain_examples[] = {{"queue drain --limit 1", "take the next one, to run it elsewhere"}, {0}};
static const stet_example cancel_examples[] = {{"queue cancel " EXAMPLE_ENTRY, "it should not run"}, {0}};
static const stet_example move_examples[] = {{"queue move " EXAMPLE_ENTRY " --priority -1", "before the others"}, {0}};
static const stet_example requeue_examples[] = {
    {"queue requeue q20261115T174501Z-1b2c3d4e5f", "give back what was drained"},
    {0},
};
static const stet_example done_examples[] = {
    {"queue done q20261115T174501Z-1b2c3d4e5f", "what was drained is done"},
    {0},
};
static const stet_example work_examples[] = {
    {"queue work --repo . -j 2", "run what is in the queue for this project, two at a time"}, {0}};

const stet_op stet_ops_queue[] = {
    {.name = "queue add",
     .summary = "Put something to run into the queue",
     .description =
         "An entry names an app, a workflow or a run, and belongs to a project, which becomes a known one. It is "
         "kept in registry/queue.json below STET_HOME. Nothing runs by itself: queue work does it.",
     .params = add_params,
     .result_schema = ENTRY_SCHEMA,
     .examples = add_examples,
     .flags = STET_OP_NO_PROJECT,
     .run = add_run,
     .render = entry_render},
    {.name = "queue list",
     .summary = "List the queue in the order in which it is taken",
     .description = "By priority (lower first), then by the time it was added, then by id.",
     .params = list_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"total\",\"entries\"],"
                      "\"additionalProperties\":false,\"properties\":{\"schemaVersion\":{\"const\":1},\"total\":{"
                      "\"type\":\"integer\"},\"entries\":{\"type\":\"array\",\"items\":" ENTRY_SCHEMA "}}}",
     .examples = list_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_NO_PROJECT,
     .run = list_run,
     .render = list_render},
    {.name = "queue show",
     .summary = "Show one entry of the queue",
     .params = entry_params,
     .result_schema = ENTRY_SCHEMA,
     .examples = show_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_NO_PROJECT,
     .run = show_run,
     .render = entry_render},
    {.name = "queue drain",
     .summary = "Hand the next entries to somebody outside",
     .description = "Marks them as drained and prints them. They stay in the queue until queue done ends them or queue "
                    "requeue gives them back, so that a crash of who took them loses nothing.",
     .params = drain_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"drained\",\"remaining\"],"
                      "\"additionalProperties\":false,\"properties\":{\"schemaVersion\":{\"const\":1},\"drained\":{"
                      "\"type\":\"array\",\"items\":" ENTRY_SCHEMA "},\"remaining\":{\"type\":\"integer\"}}}",
     .examples = drain_examples,
     .flags = STET_OP_NO_PROJECT,
     .run = drain_run,
     .render = drain_render},
    {.name = "queue cancel",
     .summary = "Take an entry out of its turn",
     .description =
         "It stays in the file as cancelled. A drive that goes on already is not stopped: runs cancel does that.",
     .params = note_params,
     .result_schema = ENTRY_SCHEMA,
     .examples = cancel_examples,
     .flags = STET_OP_NO_PROJECT,
     .run = cancel_run,
     .render = entry_render},
    {.name = "queue move",
     .summary = "Change the priority of an entry",
     .params = move_params,
     .result_schema = ENTRY_SCHEMA,
     .examples = move_examples,
     .flags = STET_OP_NO_PROJECT | STET_OP_IDEMPOTENT,
     .run = move_run,
     .render = entry_render},
    {.name = "queue requeue",
     .summary = "Give an entry back that was drained, parked, failed or cancelled",
     .description = "Its attempts are counted from zero again.",
     .params = note_params,
     .result_schema = ENTRY_SCHEMA,
     .examples = requeue_examples,
     .flags = STET_OP_NO_PROJECT,
     .run = requeue_run,
     .render = entry_render},
    {.name = "queue done",
     .summary = "Say what became of a drained entry",
     .params = done_params,
     .result_schema = ENTRY_SCHEMA,
     .examples = done_examples,
     .flags = STET_OP_NO_PROJECT,
     .run = done_run,
     .render = entry_render},
    {.name = "queue work",
     .summary = "Run what is in the queue",
     .description =
         "Leases one entry after the other, drives it and notes the outcome, until nothing is ready. A lease is "
         "renewed "
         "while the drive goes on; if the worker dies, the entry goes back and the attempt is counted, and after the "
         "last attempt it is parked. Exit status 1 if something failed or was parked; 130 if it was stopped, with what "
         "was under way given back.",
     .params = work_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"done\",\"failed\",\"returned\","
         "\"parked\",\"stopped\"],\"additionalProperties\":false,\"properties\":{\"schemaVersion\":{\"const\":1},"
         "\"done\":{\"type\":\"integer\"},\"failed\":{\"type\":\"integer\"},\"returned\":{\"type\":"
         "\"integer\"},\"parked\":{\"type\":\"integer\"},\"stopped\":{\"type\":\"boolean\"}}}",
     .examples = work_examples,
     .flags = STET_OP_NO_PROJECT | STET_OP_LONG,
     .run = work_run,
     .render = work_render,
     .verdict = work_verdict},
    {0},
};
