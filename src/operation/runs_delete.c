/* runs_delete.c - the operation runs delete: a plan first, and then exactly what the plan says. */

#include <string.h>

#include "base/text.h"
#include "fleet/queue.h"
#include "fleet/remove.h"
#include "operation/runs_common.h"
#include "os/clock.h"
#include "os/proc.h"

#define PLAN_MIN 8 /* digits of a plan's id that name it */

/* Which runs: named ones, or those that a policy or the flags pick. */
static stet_status choose(stet_value args, const char *home, stet_removal_choice *c, stet_error *err) {
    stet_value ids = stet_value_get(args, "run_id"), days = stet_value_get(args, "older_than_days"),
               bytes = stet_value_get(args, "max_bytes"), states = stet_value_get(args, "state");
    bool by_flags = stet_value_type(days) == STET_TYPE_INT || stet_value_type(bytes) == STET_TYPE_INT ||
                    stet_value_count(states) > 0;
    bool by_policy = stet_value_as_bool(stet_value_get(args, "policy"));
    if ((stet_value_count(ids) > 0) + by_flags + by_policy > 1)
        return stet_fail(err, STET_INVALID,
                         "name runs, or say which by age, size and state, or give --policy: one of them");
    if (stet_value_count(ids) > 0)
        return STET_OK;
    if (stet_value_type(days) != STET_TYPE_INT && stet_value_type(bytes) != STET_TYPE_INT && !by_policy) {
        stet_fail(err, STET_INVALID, "there is nothing to delete: no run is named, and no limit is given");
        stet_hint(err, "stet runs delete RUN, or --older-than-days N, or --max-bytes N, or --policy");
        return STET_INVALID;
    }
    if (by_policy) {
        stet_policy policy;
        stet_status st = stet_policy_load(home, &policy, err);
        c->rules = policy.remove;
        return st;
    }
    c->rules = (stet_policy_runs){.older_than_days = stet_value_as_int(days), .max_bytes = stet_value_as_int(bytes)};
    for (size_t i = 0; i < stet_value_count(states); i++) {
        stet_value name = stet_value_at(states, i);
        stet_lifecycle l;
        if (stet_lifecycle_of_name(stet_value_as_string(&name, NULL), &l))
            c->rules.statuses |= 1u << l;
    }
    return STET_OK;
}

static stet_value run_value(const stet_removal_run *run) {
    stet_value v = stet_value_object();
    const stet_fleet_record *r = run->record;
    stet_value_put(&v, "runId", stet_value_string(r->id));
    stet_value_put(&v, "repo", stet_value_string(r->repo));
    stet_value_put(&v, "lifecycle", stet_value_string(stet_lifecycle_name(r->lifecycle)));
    stet_value_put(&v, "updatedAt", stet_value_string(r->updated_at));
    stet_value_put(&v, "sourceFingerprint", stet_hash_text(run->state));
    stet_value_put(&v, "files", stet_value_int((int64_t)run->files));
    stet_value_put(&v, "bytes", stet_value_int((int64_t)run->bytes));
    if (run->reason)
        stet_value_put(&v, "reason", stet_value_string(run->reason));
    return v;
}

static stet_value plan_value(const stet_registry *reg, const stet_removal *plan, bool applied) {
    stet_value v = stet_value_object(), runs = stet_value_array(), kept = stet_value_array();
    char hex[STET_HASH_HEX];
    stet_hash_hex(plan->id, hex);
    for (size_t i = 0; i < plan->runs.len; i++)
        stet_value_push(&runs, run_value(&plan->runs.at[i]));
    for (size_t i = 0; i < plan->kept.len; i++)
        stet_value_push(&kept, run_value(&plan->kept.at[i]));
    stet_value_put(&v, "schemaVersion", stet_value_int(STET_REGISTRY_SCHEMA));
    stet_value_put(&v, "plan", stet_value_string(hex));
    stet_value_put(&v, "applied", stet_value_bool(applied));
    stet_value_put(&v, "runs", runs);
    stet_value_put(&v, "kept", kept);
    stet_value_put(&v, "bytes", stet_value_int((int64_t)plan->bytes));
    stet_value_put(&v, "problems", stet_value_retain(reg->problems));
    return v;
}

/* Is the plan that is made now the one that was looked at? */
static stet_status check_plan(const stet_removal *plan, const char *wanted, stet_error *err) {
    char hex[STET_HASH_HEX];
    stet_hash_hex(plan->id, hex);
    if (strlen(wanted) >= PLAN_MIN && strncmp(hex, wanted, strlen(wanted)) == 0)
        return STET_OK;
    stet_fail(err, STET_CONFLICT, "plan %.64s is not the plan for these runs now, which is %.12s", wanted, hex);
    stet_hint(
        err,
        "runs have changed, begun or ended since, or other runs were named: look at the new plan, without --apply");
    return STET_CONFLICT;
}

/* Runs that stet has deleted are not reported as missing. */
static void forget(const stet_registry *reg) {
    if (!reg->index.present)
        return;
    stet_registry_opts opts = {.home = reg->home, .root = reg->root, .scope = reg->scope};
    stet_registry *fresh = NULL;
    if (stet_registry_refresh(&opts, &fresh, NULL) == STET_OK) /* otherwise the index says so until a refresh */
        stet_registry_free(fresh);
}

static stet_status delete_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_value keep_app, keep_plan, ids = stet_value_get(args, "run_id");
    const char *wanted = stet_value_text_at(args, "apply", &keep_plan);
    stet_removal_choice c = {.app = stet_value_text_at(args, "app", &keep_app), .now_ms = stet_clock_ms()};
    stet_registry *reg = NULL;
    stet_fleet_records named = {0};
    stet_removal plan = {0};
    char *home = NULL, *repo = NULL;
    bool planned = false;
    stet_status st = stet_home_dir(&home, err);
    if (st == STET_OK)
        st = choose(args, home, &c, err);
    if (st == STET_OK)
        st = stet_runs_repo(ctx, args, &repo, err);
    if (st == STET_OK)
        st = stet_runs_load(ctx, args, &reg, err);
    if (st == STET_OK) {
        stet_queue q = {.home = home};
        st = stet_queue_list(&q, NULL, NULL, &c.queue, err);
    }
    if (st == STET_OK && stet_value_count(ids) > 0) {
        st = stet_runs_pick_named(reg, ids, repo, &named, err);
        c.named = &named;
    }
    /* Without --repo only the current project: deleting is not done by the way. */
    c.repo = repo ? repo : reg ? reg->root : NULL;
    if (st == STET_OK && !c.named && c.repo == NULL)
        st = stet_fail(err, STET_NOT_FOUND, "there is no project here: say which with --repo PATH");
    if (st == STET_OK) {
        st = stet_removal_plan(reg, &c, &plan, err);
        planned = st == STET_OK;
    }
    for (size_t i = 0; i < plan.runs.len && st == STET_OK && wanted; i++)
        st = stet_runs_confine(ctx, plan.runs.at[i].record->repo, err);
    if (st == STET_OK && wanted)
        st = check_plan(&plan, wanted, err);
    if (st == STET_OK && wanted)
        st = stet_removal_apply(reg, &plan, err);
    if (st == STET_OK)
        *result = plan_value(reg, &plan, wanted != NULL);
    if (planned && wanted)
        forget(reg);
    if (planned)
        stet_removal_release(&plan);
    stet_vec_release(&named);
    stet_value_release(c.queue);
    stet_registry_free(reg);
    stet_free(repo);
    stet_free(home);
    return st;
}

static void put_runs(stet_render *r, stet_value runs) {
    enum { SHOWN = 20 };
    size_t n = stet_value_count(runs);
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        stet_value v = stet_value_at(runs, i), id = stet_value_get(v, "runId"), why = stet_value_get(v, "reason");
        stet_buf_printf(r->out, "  %s", stet_runs_short(stet_value_text(&id, "")));
        if (stet_value_type(why) == STET_TYPE_STRING) {
            stet_buf_str(r->out, " stays: ");
            stet_text_value(r, why);
        } else {
            stet_buf_printf(r->out, "  %lld files, %lld bytes",
                            (long long)stet_value_as_int(stet_value_get(v, "files")),
                            (long long)stet_value_as_int(stet_value_get(v, "bytes")));
        }
        stet_buf_char(r->out, '\n');
    }
    if (n > SHOWN)
        stet_buf_printf(r->out, "  and %zu more: --json lists them\n", n - SHOWN);
}

static void delete_render(stet_render *r, stet_value result) {
    stet_value runs = stet_value_get(result, "runs"), plan = stet_value_get(result, "plan");
    size_t n = stet_value_count(runs);
    bool applied = stet_value_as_bool(stet_value_get(result, "applied"));
    long long bytes = (long long)stet_value_as_int(stet_value_get(result, "bytes"));
    put_runs(r, runs);
    put_runs(r, stet_value_get(result, "kept"));
    stet_runs_put_problems(r, stet_value_get(result, "problems"));
    stet_buf_printf(r->out, "%s %zu %s, %lld bytes\n", applied ? "deleted" : "would delete", n, n == 1 ? "run" : "runs",
                    bytes);
    if (!applied && n > 0)
        stet_buf_printf(r->out, "nothing was deleted; next: the same command with --apply %.12s\n",
                        stet_value_text(&plan, ""));
}

/* A run that was to go and stays is no success. */
static stet_status delete_verdict(stet_value result) {
    bool applied = stet_value_as_bool(stet_value_get(result, "applied"));
    if (applied && stet_value_count(stet_value_get(result, "kept")) > 0)
        return STET_CONFLICT;
    return stet_runs_verdict(result);
}

static const char *const states[] = {"completed", "failed", "blocked", "resolved", "archived", NULL};

static const stet_param params[] = {
    {.name = "run-id",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL | STET_PARAM_REPEATED,
     .metavar = "RUN",
     .summary = "Runs to delete"},
    {.name = "older-than-days",
     .type = STET_PARAM_INT,
     .min = 0,
     .max = 100000,
     .summary = "Runs that did not change for so many days; 0: none"},
    {.name = "max-bytes",
     .type = STET_PARAM_INT,
     .min = 1,
     .max = INT64_MAX,
     .summary = "The oldest runs, until the runs of the project take no more than this"},
    {.name = "state",
     .type = STET_PARAM_ENUM,
     .flags = STET_PARAM_REPEATED,
     .choices = states,
     .summary = "With these limits: only runs in this state; without it completed and resolved ones"},
    {.name = "app", .type = STET_PARAM_STRING, .summary = "With these limits: only runs of this app"},
    {.name = "policy",
     .type = STET_PARAM_BOOL,
     .default_json = "false",
     .summary = "Runs that [delete] in policy.toml below STET_HOME picks"},
    RUNS_REPO_PARAM,
    {.name = "apply",
     .type = STET_PARAM_STRING,
     .metavar = "PLAN",
     .summary = "Delete, if this is the plan: its id, or the first 8 digits or more"},
    {0},
};

static const stet_example examples[] = {
    {"runs delete --older-than-days 90", "which runs of this project would be deleted, and the id of that plan"},
    {0},
};

#define RUNS                                                                                                           \
    "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"runId\",\"repo\",\"lifecycle\",\"files\","     \
    "\"bytes\",\"sourceFingerprint\"]}}"

const stet_op stet_ops_runs_delete[] = {
    {.name = "runs delete",
     .summary = "Delete runs, after a look at the plan",
     .description =
         "Without --apply nothing is deleted: the answer lists the runs that would go, the runs that stay with the "
         "reason, and the id of this plan. The same command with --apply PLAN deletes them, if the plan is still the "
         "same: a run that has changed makes another plan.\n\n"
         "Only runs that have ended are deleted. A run stays if somebody drives it, if an entry of the queue is to run "
         "it, if it has mended a failed run that stays, or if it has the label keep. Without --repo only runs of the "
         "current project are picked.",
     .params = params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"plan\",\"applied\",\"runs\",\"kept\","
                      "\"bytes\",\"problems\"],\"additionalProperties\":false,\"properties\":{\"schemaVersion\":{"
                      "\"const\":1},\"plan\":{\"type\":\"string\"},\"applied\":{\"type\":\"boolean\"},\"runs\":" RUNS
                      ",\"kept\":" RUNS ",\"bytes\":{\"type\":\"integer\"},\"problems\":" RUNS_PROBLEMS "}}",
     .examples = examples,
     .flags = STET_OP_NO_PROJECT | STET_OP_DESTRUCTIVE,
     .run = delete_run,
     .render = delete_render,
     .verdict = delete_verdict},
    {0},
};
