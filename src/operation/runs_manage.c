/* runs_manage.c - the operations runs resume, archive, rerun, cancel and label. */

#include <string.h>

#include "base/text.h"
#include "fleet/manage.h"
#include "fleet/policy.h"
#include "fleet/run.h"
#include "operation/runs_common.h"
#include "os/clock.h"
#include "os/proc.h"

#define DAY_MS ((int64_t)86400000)

/* What a drive asks of its surface; with `once` it is told to stop as soon as one task has come to an end. */
typedef struct hearing {
    stet_op_ctx *ctx;
    bool once, one_done;
} hearing;

static bool give_up(void *context) {
    hearing *h = context;
    return (h->once && h->one_done) || h->ctx->cancelled(h->ctx);
}

static void progress(void *context, int64_t done, int64_t total, const char *note) {
    hearing *h = context;
    h->one_done = h->one_done || done > 0;
    h->ctx->progress(h->ctx, done, total, note);
}

static void show_output(void *context, const char *node, const char *bytes, size_t len, bool live) {
    hearing *h = context;
    h->ctx->output(h->ctx, node, bytes, len, live);
}

/* Drives a run if the arguments ask for it, and puts `drive` into the result. */
static stet_status maybe_drive(stet_op_ctx *ctx, stet_value args, const char *root, const char *run_id,
                               stet_value *result, stet_error *err) {
    hearing h = {.ctx = ctx, .once = stet_value_as_bool(stet_value_get(args, "once"))};
    if (!h.once && !stet_value_as_bool(stet_value_get(args, "drive")))
        return STET_OK;
    stet_drive_result outcome = {0};
    stet_drive_request request = {.root = root,
                                  .run_id = run_id,
                                  .actor = stet_runs_actor(),
                                  .once = h.once,
                                  .incremental = stet_value_as_bool(stet_value_get(args, "incremental")),
                                  .cancelled = give_up,
                                  .progress = progress,
                                  .output = ctx->output ? show_output : NULL,
                                  .live = ctx->live,
                                  .context = &h};
    stet_status st = stet_runs_driver(ctx)(&request, &outcome, err);
    if (st == STET_OK) {
        /* Stopped because that was what was asked for. */
        if (outcome.verdict == STET_DRIVE_STOPPED && h.once && h.one_done && !ctx->cancelled(ctx)) {
            outcome.verdict = STET_DRIVE_PAUSED;
            outcome.reason[0] = 0;
        }
        stet_value_put(result, "drive", stet_drive_result_value(&outcome));
    }
    return st;
}

static stet_status drive_verdict(stet_value result) {
    if (stet_value_count(stet_value_get(result, "problems")) > 0)
        return STET_CORRUPT;
    stet_value status = stet_value_get(stet_value_get(result, "drive"), "status");
    const char *s = stet_value_as_string(&status, NULL);
    if (s == NULL || strcmp(s, "completed") == 0 || strcmp(s, "paused") == 0)
        return STET_OK;
    return strcmp(s, "stopped") == 0 ? STET_CANCELLED : STET_FAILED;
}

static void put_drive(stet_render *r, stet_value result) {
    stet_value drive = stet_value_get(result, "drive"), status = stet_value_get(drive, "status"),
               reason = stet_value_get(drive, "reason");
    size_t len = 0;
    if (stet_value_type(drive) != STET_TYPE_OBJECT)
        return;
    stet_buf_str(r->out, "drive ");
    stet_text_styled(r, stet_runs_style(stet_value_as_string(&status, NULL)), stet_value_as_string(&status, NULL));
    stet_buf_printf(r->out, ": %lld ran, %lld stood", (long long)stet_value_as_int(stet_value_get(drive, "ran")),
                    (long long)stet_value_as_int(stet_value_get(drive, "stood")));
    const char *why = stet_value_as_string(&reason, &len);
    if (len > 0) {
        stet_buf_str(r->out, "; ");
        stet_text_plain(r, why, len);
    }
    stet_buf_char(r->out, '\n');
}

static void add_action(stet_value *actions, stet_value command, const char *reason) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "command", command);
    stet_value_put(&v, "reason", stet_value_string(reason));
    stet_value_push(actions, v);
}

/* What would run: pending tasks, those that a dead driver left running, and failed ones. */
static stet_value next_tasks(stet_value tasks, size_t limit, size_t *total) {
    stet_value out = stet_value_array();
    *total = 0;
    for (size_t i = 0; i < stet_value_count(tasks); i++) {
        stet_value task = stet_value_at(tasks, i), item, action = stet_value_get(task, "action");
        stet_task_status status;
        if (!stet_task_status_of(stet_value_get(task, "status"), &status) || status == STET_TASK_COMPLETED ||
            status == STET_TASK_SKIPPED)
            continue;
        if ((*total)++ >= limit)
            continue;
        item = stet_value_object();
        stet_value_put(&item, "id", stet_value_retain(stet_value_get(task, "id")));
        stet_value_put(
            &item, "action",
            stet_value_retain(stet_value_type(action) == STET_TYPE_STRING ? action : stet_value_get(task, "id")));
        stet_value_put(&item, "status", stet_value_retain(stet_value_get(task, "status")));
        stet_value_push(&out, item);
    }
    return out;
}

static void judge(const stet_fleet_record *rec, size_t tasks_left, stet_value *v) {
    char *dir = stet_fleet_record_dir(rec);
    stet_value actions = stet_value_array(), owner;
    stet_driver_state driver = stet_runfile_driver(dir, &owner);
    stet_buf reason = STET_BUF(1024);
    bool resumable = false;
    if (driver == STET_DRIVER_ALIVE) {
        stet_buf_str(&reason, "it is being driven by ");
        stet_runfile_owner_text(owner, &reason);
        add_action(&actions, stet_value_stringf("stet runs logs %s --follow", rec->id), "watch it");
        add_action(&actions, stet_value_stringf("stet runs cancel %s", rec->id), "ask it to stop");
    } else if (rec->archived) {
        stet_buf_str(&reason, "it is archived");
        add_action(&actions, stet_value_stringf("stet runs archive %s --unarchive", rec->id), "clear the mark");
    } else if (rec->derived == STET_LIFE_COMPLETED &&
               (rec->piece[0] == 0 || strcmp(rec->loop_stage, stet_stage_name(STET_STAGE_DONE)) == 0)) {
        stet_buf_str(&reason, "it is completed");
        add_action(&actions, stet_value_stringf("stet runs rerun %s", rec->id), "run it again as a new run");
    } else if (rec->lifecycle == STET_LIFE_RESOLVED) {
        stet_buf_printf(&reason, "run %s has mended what failed", rec->resolved_by);
        add_action(&actions, stet_value_stringf("stet runs show %s", rec->resolved_by), "look at the run that did");
        add_action(&actions, stet_value_stringf("stet runs rerun %s", rec->id), "run it again as a new run");
    } else if (rec->piece[0] == 0) {
        resumable = true;
        stet_buf_printf(&reason, "%zu %s left, for the program that made the run", tasks_left,
                        tasks_left == 1 ? "task is" : "tasks are");
        add_action(&actions, stet_value_stringf("stet queue add --run-id %s", rec->id),
                   "put it into the queue, for its host to drain");
    } else {
        resumable = true;
        if (rec->derived == STET_LIFE_COMPLETED)
            stet_buf_str(&reason, "it was left before its end");
        else if (tasks_left > 0)
            stet_buf_printf(&reason, "%zu %s left", tasks_left, tasks_left == 1 ? "task is" : "tasks are");
        else
            stet_buf_str(&reason, "it has not begun");
        add_action(&actions, stet_value_stringf("stet runs resume %s --drive", rec->id),
                   "run what is left; what stands is not run again");
        add_action(&actions, stet_value_stringf("stet runs resume %s --once", rec->id), "run one task");
        if (rec->derived == STET_LIFE_FAILED || rec->derived == STET_LIFE_BLOCKED)
            add_action(&actions, stet_value_stringf("stet runs rerun %s", rec->id),
                       "leave it as it is, and begin a new one");
    }
    stet_value_put(v, "resumable", stet_value_bool(resumable));
    stet_value_put(v, "reason", stet_value_string(stet_buf_cstr(&reason)));
    stet_value_put(v, "nextActions", actions);
    stet_value_release(owner);
    stet_buf_release(&reason);
    stet_free(dir);
}

/* The past is not rewritten: a run that has come to its end is not driven again. */
static stet_status refuse(const char *id, stet_value v, stet_error *err) {
    stet_value reason = stet_value_get(v, "reason"),
               next = stet_value_get(stet_value_at(stet_value_get(v, "nextActions"), 0), "command");
    stet_fail(err, STET_CONFLICT, "run %s can't be resumed: %s", id, stet_value_text(&reason, ""));
    stet_hint(err, "%s", stet_value_text(&next, "stet runs search"));
    return STET_CONFLICT;
}

/* Whoever asks for what stet does not do is told, and not served something else. */
/* A file that can't be read may say that the run is archived. */
static stet_status refuse_damaged(const char *id, stet_value problems, stet_error *err) {
    stet_value said = stet_value_get(stet_value_at(problems, 0), "message"),
               hint = stet_value_get(stet_value_at(problems, 0), "hint");
    stet_fail(err, STET_CORRUPT, "run %s is not resumed while marks of its project can't be read: %s", id,
              stet_value_text(&said, ""));
    stet_hint(err, "%s", stet_value_text(&hint, ""));
    return STET_CORRUPT;
}

static stet_status check_resume_args(stet_value args, stet_error *err) {
    if (stet_value_as_bool(stet_value_get(args, "incremental")))
        return STET_OK;
    stet_fail(err, STET_UNSUPPORTED, "a run that is resumed never repeats what is up to date");
    stet_hint(err, "leave --no-incremental out; stet check --rerun runs everything again in a copy, and compares");
    return STET_UNSUPPORTED;
}

static stet_status resume_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_registry *reg;
    const stet_fleet_record *rec;
    const char *from;
    stet_state s;
    stet_status st = check_resume_args(args, err);
    if (st != STET_OK)
        return st;
    st = stet_runs_find(ctx, args, "run_id", &reg, &rec, &from, err);
    if (st != STET_OK)
        return st;
    st = stet_fleet_record_reread(rec, &s, err);
    if (st != STET_OK) {
        stet_registry_free(reg);
        return st;
    }
    stet_value v = stet_value_object();
    size_t left;
    stet_value_put(&v, "schemaVersion", stet_value_int(STET_REGISTRY_SCHEMA));
    stet_value_put(&v, "runId", stet_value_string(rec->id));
    stet_value_put(&v, "repo", stet_value_string(rec->repo));
    stet_value_put(&v, "statePath", stet_value_stringf("%s/.stet/runs/%s/state.json", rec->repo, rec->id));
    stet_value_put(&v, "resolvedFrom", stet_value_string(from));
    stet_value_put(&v, "lifecycle", stet_value_string(stet_lifecycle_name(rec->lifecycle)));
    stet_value_put(&v, "derivedLifecycle", stet_value_string(stet_lifecycle_name(rec->derived)));
    stet_value_put(&v, "loopStage", stet_value_string(rec->loop_stage));
    stet_value_put(&v, "freshness", stet_value_string(stet_freshness_name(rec->freshness)));
    stet_value_put(&v, "record", stet_fleet_record_value(rec));
    stet_value_put(
        &v, "nextTasks",
        next_tasks(stet_value_get(s.root, "tasks"), (size_t)stet_value_as_int(stet_value_get(args, "limit")), &left));
    stet_value_put(&v, "tasksLeft", stet_value_int((int64_t)left));
    judge(rec, left, &v);
    stet_state_release(&s);
    bool drive = stet_value_as_bool(stet_value_get(args, "drive")) || stet_value_as_bool(stet_value_get(args, "once"));
    stet_value problems = stet_registry_problems_of(reg, rec->repo);
    stet_value_put(&v, "problems", problems);
    if (drive && !stet_value_as_bool(stet_value_get(v, "resumable")))
        st = refuse(rec->id, v, err);
    else if (drive && stet_value_count(problems) > 0)
        st = refuse_damaged(rec->id, problems, err);
    else if (drive)
        st = stet_runs_confine(ctx, rec->repo, err);
    if (st == STET_OK)
        st = maybe_drive(ctx, args, rec->repo, rec->id, &v, err);
    stet_registry_free(reg);
    if (st == STET_OK)
        *result = v;
    else
        stet_value_release(v);
    return st;
}

static void put_actions(stet_render *r, stet_value actions, stet_value record) {
    for (size_t i = 0; i < stet_value_count(actions); i++) {
        stet_text_styled(r, STET_STYLE_DIM, "next: ");
        stet_runs_put_command(r, stet_value_get(stet_value_at(actions, i), "command"), record);
        stet_buf_str(r->out, "  (");
        stet_runs_put(r, stet_value_at(actions, i), "reason");
        stet_buf_str(r->out, ")\n");
    }
}

static void put_id(stet_render *r, stet_value object, const char *key) {
    stet_value id = stet_value_get(object, key);
    const char *brief = stet_runs_short(stet_value_text(&id, ""));
    stet_text_plain(r, brief, strlen(brief));
}

static void resume_render(stet_render *r, stet_value result) {
    stet_value tasks = stet_value_get(result, "nextTasks"), life = stet_value_get(result, "lifecycle");
    const char *l = stet_value_text(&life, "");
    bool driven = stet_value_type(stet_value_get(result, "drive")) == STET_TYPE_OBJECT;
    stet_buf_str(r->out, "run ");
    put_id(r, result, "runId");
    stet_buf_str(r->out, driven ? "  was " : "  ");
    stet_text_styled(r, stet_runs_style(l), l);
    if (driven) {
        stet_buf_char(r->out, '\n');
        put_drive(r, result);
        return;
    }
    stet_buf_str(r->out, stet_value_as_bool(stet_value_get(result, "resumable")) ? ", can be resumed: "
                                                                                 : ", can't be resumed: ");
    stet_runs_put(r, result, "reason");
    stet_buf_char(r->out, '\n');
    for (size_t i = 0; i < stet_value_count(tasks); i++) {
        stet_buf_str(r->out, "  ");
        stet_runs_put(r, stet_value_at(tasks, i), "id");
        stet_buf_str(r->out, "  ");
        stet_runs_put(r, stet_value_at(tasks, i), "status");
        stet_buf_char(r->out, '\n');
    }
    stet_runs_put_problems(r, stet_value_get(result, "problems"));
    put_actions(r, stet_value_get(result, "nextActions"), stet_value_get(result, "record"));
}

/* The runs that a window and states pick. Only what has ended is ever archived by policy; failures that are open are
 * left alone, and counted. */
static size_t pick_old(const stet_registry *reg, int64_t before_ms, const stet_fleet_query *q, bool unarchive,
                       stet_fleet_records *out) {
    size_t open = 0;
    for (size_t i = 0; i < reg->records.len; i++) {
        stet_fleet_record *r = reg->records.at[i];
        bool resolved = r->under == STET_LIFE_RESOLVED, asked = (q->statuses & 1u << r->derived) != 0;
        unsigned life = 1u << (resolved ? STET_LIFE_FAILED : r->under) | 1u << r->derived;
        if (r->archived == unarchive && r->updated_ms < before_ms && (q->statuses & life) != 0 &&
            (q->repo == NULL || strcmp(q->repo, r->repo) == 0) && (q->until_ms == 0 || r->created_ms <= q->until_ms) &&
            (q->app == NULL || strcmp(q->app, r->app_id) == 0)) {
            if (unarchive || asked || resolved)
                *stet_vec_add(out) = r;
            else
                open++;
        }
    }
    return open;
}

/* Fills in the window and the states, those of policy.toml if that is asked for. */
static stet_status archive_args(stet_value args, stet_fleet_query *q, int64_t *window_days, stet_error *err) {
    stet_value ids = stet_value_get(args, "run_id"), days = stet_value_get(args, "older_than_days"),
               states = stet_value_get(args, "state");
    *window_days = stet_value_as_int(days);
    if (stet_value_as_bool(stet_value_get(args, "policy"))) {
        stet_policy policy;
        char *home = NULL;
        if (stet_value_count(ids) + stet_value_count(states) > 0 || stet_value_type(days) == STET_TYPE_INT)
            return stet_fail(err, STET_INVALID, "--policy says which runs: name none, and give no window and no state");
        stet_status st = stet_home_dir(&home, err);
        if (st == STET_OK)
            st = stet_policy_load(home, &policy, err);
        stet_free(home);
        *window_days = st == STET_OK ? policy.archive.older_than_days : 0;
        q->statuses = st == STET_OK && policy.archive.statuses != 0
                          ? policy.archive.statuses
                          : 1u << STET_LIFE_COMPLETED | 1u << STET_LIFE_FAILED;
        return st;
    }
    bool window = stet_value_type(days) == STET_TYPE_INT; /* 0 is one, which no run is old enough for */
    if (stet_value_count(ids) > 0 && (window || stet_value_count(states) > 0))
        return stet_fail(err, STET_INVALID, "name runs, or give --older-than-days and --state, not both");
    if (stet_value_count(ids) == 0 && !window) {
        stet_status st =
            stet_fail(err, STET_INVALID, "there is nothing to archive: no run is named, and no window is given");
        stet_hint(err, "stet runs archive RUN, or --older-than-days N [--state completed --state failed], or --policy");
        return st;
    }
    for (size_t i = 0; i < stet_value_count(states); i++) {
        stet_value name = stet_value_at(states, i);
        stet_lifecycle l;
        if (stet_lifecycle_of_name(stet_value_as_string(&name, NULL), &l))
            q->statuses |= 1u << l;
    }
    if (q->statuses == 0)
        q->statuses = 1u << STET_LIFE_COMPLETED | 1u << STET_LIFE_FAILED;
    return STET_OK;
}

static stet_value archived_value(const stet_fleet_records *runs, const char *at, stet_value reason, bool unarchive) {
    stet_value out = stet_value_array();
    for (size_t i = 0; i < runs->len; i++) {
        stet_value v = stet_value_object();
        stet_value_put(&v, "runId", stet_value_string(runs->at[i]->id));
        stet_value_put(&v, "repo", stet_value_string(runs->at[i]->repo));
        stet_value_put(&v, "archivedAt", unarchive ? stet_value_null() : stet_value_string(at));
        stet_value_put(&v, "reason",
                       stet_value_type(reason) == STET_TYPE_STRING ? stet_value_retain(reason) : stet_value_null());
        stet_value_push(&out, v);
    }
    return out;
}

static stet_status archive_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_fleet_query q = {0};
    stet_value keep_reason, keep_app, policy = stet_value_object();
    stet_registry *reg = NULL;
    stet_fleet_records runs = {0};
    char *repo = NULL, now[STET_TIME_TEXT];
    const char *reason = stet_value_text_at(args, "reason", &keep_reason);
    bool unarchive = stet_value_as_bool(stet_value_get(args, "unarchive")),
         dry = stet_value_as_bool(stet_value_get(args, "dry_run"));
    int64_t now_ms = stet_clock_ms(), days;
    size_t open = 0;
    stet_status st = archive_args(args, &q, &days, err);
    if (st == STET_OK)
        st = stet_runs_repo(ctx, args, &repo, err);
    q.repo = repo;
    q.app = stet_value_text_at(args, "app", &keep_app);
    q.until_ms = stet_value_as_int(stet_value_get(args, "until"));
    if (st == STET_OK)
        st = stet_runs_load(ctx, args, &reg, err);
    if (st == STET_OK && stet_value_count(stet_value_get(args, "run_id")) > 0)
        st = stet_runs_pick_named(reg, stet_value_get(args, "run_id"), repo, &runs, err);
    else if (st == STET_OK && days > 0)
        open = pick_old(reg, now_ms - days * DAY_MS, &q, unarchive, &runs);
    stet_time_print(now_ms, now);
    for (size_t i = 0; i < runs.len && st == STET_OK && !dry; i++)
        st = stet_runs_confine(ctx, runs.at[i]->repo, err);
    if (st == STET_OK && !dry)
        st = stet_runs_archive(reg, &runs, unarchive, reason, stet_runs_actor(), now, err);
    if (st == STET_OK) {
        stet_value v = stet_value_object(), states = stet_value_array();
        for (int i = 0; i < STET_LIFECYCLES; i++)
            if ((q.statuses & 1u << i) != 0)
                stet_value_push(&states, stet_value_string(stet_lifecycle_name((stet_lifecycle)i)));
        stet_value_put(&policy, "archiveOlderThanDays", stet_value_int(days));
        stet_value_put(&policy, "states", states);
        stet_value_put(&v, "schemaVersion", stet_value_int(STET_REGISTRY_SCHEMA));
        stet_value_put(&v, "unarchive", stet_value_bool(unarchive));
        stet_value_put(&v, "eligible", stet_value_int((int64_t)runs.len));
        stet_value_put(&v, "leftOpen", stet_value_int((int64_t)open));
        stet_value_put(&v, "archived", archived_value(&runs, now, keep_reason, unarchive));
        stet_value_put(&v, "policy", stet_value_retain(policy));
        stet_value_put(&v, "dryRun", stet_value_bool(dry));
        stet_value_put(&v, "problems", stet_value_retain(reg->problems));
        *result = v;
    }
    stet_value_release(policy);
    stet_vec_release(&runs);
    stet_registry_free(reg);
    stet_free(repo);
    return st;
}

static void archive_render(stet_render *r, stet_value result) {
    bool un = stet_value_as_bool(stet_value_get(result, "unarchive")),
         dry = stet_value_as_bool(stet_value_get(result, "dryRun"));
    size_t n = stet_value_count(stet_value_get(result, "archived"));
    stet_buf_printf(r->out, "%s%s %zu %s\n", dry ? "would have " : "", un ? "unarchived" : "archived", n,
                    n == 1 ? "run" : "runs");
    for (size_t i = 0; i < n && i < 20; i++) {
        stet_buf_str(r->out, "  ");
        stet_runs_put(r, stet_value_at(stet_value_get(result, "archived"), i), "runId");
        stet_buf_char(r->out, '\n');
    }
    if (n > 20)
        stet_buf_printf(r->out, "  and %zu more\n", n - 20);
    long long open = (long long)stet_value_as_int(stet_value_get(result, "leftOpen"));
    if (open > 0)
        stet_buf_printf(r->out, "%lld failed %s left alone, since the failure is open: --state blocked archives %s\n",
                        open, open == 1 ? "run was" : "runs were", open == 1 ? "it" : "them");
    stet_runs_put_problems(r, stet_value_get(result, "problems"));
}

static stet_status rerun_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_registry *reg;
    const stet_fleet_record *rec;
    stet_value keep, provenance, actions = stet_value_array();
    const char *reason = stet_value_text_at(args, "reason", &keep);
    char id[STET_RUN_ID_MAX + 1];
    stet_status st = stet_runs_find(ctx, args, "run_id", &reg, &rec, NULL, err);
    if (st != STET_OK) {
        stet_value_release(actions);
        return st;
    }
    st = stet_runs_confine(ctx, rec->repo, err);
    if (st == STET_OK)
        st = stet_runs_rerun(reg, rec, stet_value_get(args, "input"), reason, stet_runs_actor(), id, &provenance, err);
    if (st == STET_OK) {
        stet_value v = stet_value_object();
        if (rec->piece[0] != 0)
            add_action(&actions, stet_value_stringf("stet runs resume %s --drive", id), "run it");
        add_action(&actions, stet_value_stringf("stet queue add --run-id %s", id),
                   rec->piece[0] != 0 ? "run it later" : "put it into the queue, for its host to drain");
        stet_value_put(&v, "schemaVersion", stet_value_int(STET_REGISTRY_SCHEMA));
        stet_value_put(&v, "originalRunId", stet_value_string(rec->id));
        stet_value_put(&v, "originalRepo", stet_value_string(rec->repo));
        stet_value_put(&v, "originalLifecycle", stet_value_string(stet_lifecycle_name(rec->lifecycle)));
        stet_value_put(&v, "newRunId", stet_value_string(id));
        stet_value_put(&v, "repo", stet_value_string(rec->repo));
        stet_value_put(&v, "statePath", stet_value_stringf("%s/.stet/runs/%s/state.json", rec->repo, id));
        stet_value_put(&v, "provenance", provenance);
        stet_value_put(&v, "nextActions", stet_value_retain(actions));
        st = maybe_drive(ctx, args, rec->repo, id, &v, err);
        if (st == STET_OK && stet_value_type(stet_value_get(v, "drive")) == STET_TYPE_OBJECT) {
            stet_value after = stet_value_array();
            add_action(&after, stet_value_stringf("stet runs show %s", id), "what came of it");
            stet_value_put(&v, "nextActions", after);
        }
        if (st == STET_OK)
            *result = v;
        else {
            stet_value_release(v);
            stet_runs_undo_rerun(reg, rec, id); /* the drive could not begin */
        }
    }
    stet_value_release(actions);
    stet_registry_free(reg);
    return st;
}

static void rerun_render(stet_render *r, stet_value result) {
    stet_value record = stet_value_object();
    stet_value_put(&record, "runId", stet_value_retain(stet_value_get(result, "newRunId")));
    stet_buf_str(r->out, "new run ");
    put_id(r, result, "newRunId");
    stet_buf_str(r->out, "\n  repeats ");
    put_id(r, result, "originalRunId");
    stet_buf_printf(r->out, ", generation %lld, which stays as it is\n",
                    (long long)stet_value_as_int(stet_value_get(stet_value_get(result, "provenance"), "generation")));
    if (stet_value_type(stet_value_get(result, "drive")) == STET_TYPE_OBJECT)
        put_drive(r, result);
    else
        put_actions(r, stet_value_get(result, "nextActions"), record);
    stet_value_release(record);
}

static stet_status cancel_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_registry *reg;
    const stet_fleet_record *rec;
    stet_value keep;
    const char *reason = stet_value_text_at(args, "reason", &keep);
    bool asked = false;
    stet_status st = stet_runs_find(ctx, args, "run_id", &reg, &rec, NULL, err);
    if (st != STET_OK)
        return st;
    st = stet_runs_confine(ctx, rec->repo, err);
    if (st == STET_OK)
        st = stet_runs_cancel(rec, reason, &asked, err);
    if (st == STET_OK) {
        stet_value v = stet_value_object();
        stet_value_put(&v, "schemaVersion", stet_value_int(STET_REGISTRY_SCHEMA));
        stet_value_put(&v, "runId", stet_value_string(rec->id));
        stet_value_put(&v, "repo", stet_value_string(rec->repo));
        stet_value_put(&v, "cancelled", stet_value_bool(!asked));
        stet_value_put(&v, "asked", stet_value_bool(asked));
        *result = v;
    }
    stet_registry_free(reg);
    return st;
}

static void cancel_render(stet_render *r, stet_value result) {
    stet_buf_str(r->out,
                 stet_value_as_bool(stet_value_get(result, "asked")) ? "its driver was asked to stop: " : "cancelled ");
    stet_runs_put(r, result, "runId");
    stet_buf_char(r->out, '\n');
}

static stet_status label_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_value add = stet_value_get(args, "add"), drop = stet_value_get(args, "remove");
    stet_registry *reg;
    const stet_fleet_record *rec;
    for (size_t i = 0; i < stet_value_count(add); i++) {
        stet_value label = stet_value_at(add, i);
        if (!stet_label_valid(stet_value_as_string(&label, NULL)))
            return stet_fail(err, STET_INVALID, "\"%.80s\" is no label: up to 64 bytes without blanks and commas",
                             stet_value_as_string(&label, NULL));
    }
    stet_status st = stet_runs_find(ctx, args, "run_id", &reg, &rec, NULL, err);
    if (st != STET_OK)
        return st;
    stet_value set = stet_value_object(), old = stet_fleet_record_labels(rec), labels = stet_value_array();
    for (size_t i = 0; i < stet_value_count(old) + stet_value_count(add); i++) {
        stet_value label =
            i < stet_value_count(old) ? stet_value_at(old, i) : stet_value_at(add, i - stet_value_count(old));
        stet_value_put(&set, stet_value_as_string(&label, NULL), stet_value_null());
    }
    for (size_t i = 0; i < stet_value_count(drop); i++) {
        stet_value label = stet_value_at(drop, i);
        size_t len;
        const char *s = stet_value_as_string(&label, &len);
        stet_value_remove(&set, s, len);
    }
    for (size_t i = 0; i < stet_value_count(set); i++)
        stet_value_push(&labels, stet_value_string(stet_value_key_at(set, i, NULL)));
    if (!stet_value_equal(old, labels))
        st = stet_runs_confine(ctx, rec->repo, err);
    if (st == STET_OK && !stet_value_equal(old, labels))
        st = stet_runs_label(reg, rec, labels, err);
    if (st == STET_OK) {
        stet_value v = stet_value_object();
        stet_value_put(&v, "schemaVersion", stet_value_int(STET_REGISTRY_SCHEMA));
        stet_value_put(&v, "runId", stet_value_string(rec->id));
        stet_value_put(&v, "repo", stet_value_string(rec->repo));
        stet_value_put(&v, "labels", stet_value_retain(labels));
        *result = v;
    }
    stet_value_release(set);
    stet_value_release(old);
    stet_value_release(labels);
    stet_registry_free(reg);
    return st;
}

static void label_render(stet_render *r, stet_value result) {
    stet_value labels = stet_value_get(result, "labels");
    stet_runs_put(r, result, "runId");
    stet_buf_char(r->out, ':');
    for (size_t i = 0; i < stet_value_count(labels); i++) {
        stet_value label = stet_value_at(labels, i);
        stet_buf_char(r->out, ' ');
        stet_text_value(r, label);
    }
    stet_buf_str(r->out, stet_value_count(labels) == 0 ? " no labels\n" : "\n");
}

static const char *const archive_states[] = {"queued", "running", "blocked", "completed", "failed", NULL};

static const stet_param resume_params[] = {
    RUNS_ID_PARAM,
    RUNS_REPO_PARAM,
    {.name = "limit",
     .type = STET_PARAM_INT,
     .default_json = "20",
     .min = 0,
     .max = 100000,
     .summary = "Show at most so many of the tasks that are next"},
    {.name = "drive", .type = STET_PARAM_BOOL, .default_json = "false", .summary = "Run what is left, to the end"},
    {.name = "once", .type = STET_PARAM_BOOL, .default_json = "false", .summary = "Run one task"},
    {.name = "incremental",
     .type = STET_PARAM_BOOL,
     .default_json = "true",
     .summary = "Reuse what is up to date, and run only what changed and what follows from it; always the case"},
    {0},
};
static const stet_param archive_params[] = {
    {.name = "run-id",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL | STET_PARAM_REPEATED,
     .metavar = "RUN",
     .summary = "Runs to archive"},
    {.name = "older-than-days",
     .type = STET_PARAM_INT,
     .min = 0,
     .max = 100000,
     .summary = "All that did not change for so many days; 0: none"},
    {.name = "state",
     .type = STET_PARAM_ENUM,
     .flags = STET_PARAM_REPEATED,
     .choices = archive_states,
     .summary = "With that: only in this lifecycle (completed and failed, if not said)"},
    {.name = "policy",
     .type = STET_PARAM_BOOL,
     .default_json = "false",
     .summary = "Those that [archive] in policy.toml below STET_HOME picks"},
    {.name = "until", .type = STET_PARAM_TIME, .summary = "With that: only those begun at this time or earlier"},
    {.name = "app", .type = STET_PARAM_STRING, .summary = "With that: only of this app"},
    RUNS_REPO_PARAM,
    {.name = "reason", .type = STET_PARAM_STRING, .summary = "Why; kept with the mark"},
    {.name = "unarchive", .type = STET_PARAM_BOOL, .default_json = "false", .summary = "Clear the mark"},
    {.name = "dry-run",
     .letter = 'n',
     .type = STET_PARAM_BOOL,
     .default_json = "false",
     .summary = "Say which, and change nothing"},
    {0},
};
static const stet_param rerun_params[] = {
    RUNS_ID_PARAM,
    RUNS_REPO_PARAM,
    {.name = "reason", .type = STET_PARAM_STRING, .summary = "Why; kept with the link"},
    {.name = "input", .type = STET_PARAM_PAIR, .summary = "Put this input in place of the original's"},
    {.name = "drive", .type = STET_PARAM_BOOL, .default_json = "false", .summary = "And run it"},
    {0},
};
static const stet_param cancel_params[] = {
    RUNS_ID_PARAM,
    RUNS_REPO_PARAM,
    {.name = "reason", .type = STET_PARAM_STRING, .summary = "Why; kept with what it leaves undone"},
    {0},
};
static const stet_param label_params[] = {
    RUNS_ID_PARAM,
    RUNS_REPO_PARAM,
    {.name = "add", .type = STET_PARAM_STRING, .flags = STET_PARAM_REPEATED, .summary = "Add this label"},
    {.name = "remove", .type = STET_PARAM_STRING, .flags = STET_PARAM_REPEATED, .summary = "Remove this label"},
    {0},
};

#define ACTIONS                                                                                                        \
    "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"command\",\"reason\"],\"properties\":{"        \
    "\"command\":{\"type\":\"string\"},\"reason\":{\"type\":\"string\"}}}}"
#define DRIVE                                                                                                          \
    "{\"type\":\"object\",\"required\":[\"status\",\"runId\",\"ran\",\"stood\",\"reason\"],\"properties\":{"           \
    "\"status\":"                                                                                                      \
    "{\"enum\":[\"completed\",\"failed\",\"blocked\",\"stopped\",\"paused\",\"waiting\"]}}}"

static const stet_example resume_examples[] = {
    {"runs resume 20261115T174500Z-report-0a1b2c3d", "what would be next"},
    {0},
};
static const stet_example archive_examples[] = {
    {"runs archive 20261115T174500Z-report-0a1b2c3d --reason done", "retire one run"},
    {"runs archive --older-than-days 30 --state completed --dry-run", "which would be retired by age"},
    {0},
};
static const stet_example rerun_examples[] = {
    {"runs rerun 20261115T174500Z-report-0a1b2c3d --input rows=10", "repeat a run with another input"},
    {0},
};
static const stet_example cancel_examples[] = {
    {"runs cancel 20261115T180000Z-report-4e5f6a7b", "end a run that is not done"},
    {0},
};
static const stet_example label_examples[] = {
    {"runs label 20261115T174500Z-report-0a1b2c3d --add keep", "mark a run"},
    {0},
};

const stet_op stet_ops_runs_manage[] = {
    {.name = "runs resume",
     .summary = "Say what is next in a run, or go on with it",
     .description = "Finds the run in any known project. Without --drive or --once nothing is changed.",
     .params = resume_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"runId\",\"repo\",\"statePath\",\"resolvedFrom\","
         "\"lifecycle\",\"derivedLifecycle\",\"loopStage\",\"freshness\",\"resumable\",\"reason\",\"record\","
         "\"nextTasks\",\"tasksLeft\",\"nextActions\"],\"additionalProperties\":false,\"properties\":{"
         "\"schemaVersion\":{"
         "\"const\":1},\"runId\":{\"type\":\"string\"},\"repo\":{\"type\":\"string\"},\"statePath\":{\"type\":"
         "\"string\"},\"resolvedFrom\":{\"enum\":[\"repo\",\"home\"]},\"lifecycle\":{\"type\":\"string\"},"
         "\"derivedLifecycle\":{\"type\":\"string\"},\"loopStage\":{\"type\":\"string\"},\"freshness\":{\"enum\":["
         "\"valid\",\"stale\",\"missing\"]},\"resumable\":{\"type\":\"boolean\"},\"reason\":{\"type\":\"string\"},"
         "\"record\":" RUNS_RECORD
         ",\"nextTasks\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"id\","
         "\"action\",\"status\"]}},\"tasksLeft\":{\"type\":\"integer\"},\"nextActions\":" ACTIONS ",\"drive\":" DRIVE
         ",\"problems\":" RUNS_PROBLEMS "}}",
     .examples = resume_examples,
     .flags = STET_OP_NO_PROJECT | STET_OP_LONG | STET_OP_COMMON,
     .run = resume_run,
     .render = resume_render,
     .verdict = drive_verdict},
    {.name = "runs archive",
     .summary = "Mark runs as archived, or clear the mark",
     .description =
         "The mark lies over the run: its files are neither moved nor changed, and it is still found. Without a window "
         "nothing is archived by age. Any number of runs costs one write per project.",
     .params = archive_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"archived\",\"eligible\",\"policy\",\"dryRun\","
         "\"unarchive\",\"problems\"],\"additionalProperties\":false,\"properties\":{\"schemaVersion\":{\"const\":1},"
         "\"unarchive\":{\"type\":\"boolean\"},\"archived\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
         "\"required\":[\"runId\",\"repo\",\"archivedAt\",\"reason\"]}},\"eligible\":{\"type\":\"integer\"},"
         "\"leftOpen\":{\"type\":\"integer\"},\"policy\":"
         "{"
         "\"type\":\"object\",\"required\":[\"archiveOlderThanDays\",\"states\"]},\"dryRun\":{\"type\":\"boolean\"},"
         "\"problems\":" RUNS_PROBLEMS "}}",
     .examples = archive_examples,
     .flags = STET_OP_NO_PROJECT | STET_OP_IDEMPOTENT,
     .run = archive_run,
     .render = archive_render,
     .verdict = stet_runs_verdict},
    {.name = "runs rerun",
     .summary = "Repeat a run as a new one that is linked to it",
     .description =
         "The new run lies beside the original, with its app and its inputs, where --input does not say otherwise. The "
         "original stays as it is. A rerun of a rerun counts one generation more and keeps the first run as its "
         "origin.",
     .params = rerun_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"originalRunId\",\"originalRepo\","
         "\"originalLifecycle\","
         "\"newRunId\",\"repo\",\"statePath\",\"provenance\",\"nextActions\"],\"additionalProperties\":false,"
         "\"properties\":{\"schemaVersion\":{\"const\":1},\"originalRunId\":{\"type\":\"string\"},\"originalRepo\":{"
         "\"type\":\"string\"},\"originalLifecycle\":{\"type\":\"string\"},\"newRunId\":{\"type\":\"string\"},\"repo\":"
         "{"
         "\"type\":\"string\"},\"statePath\":{\"type\":\"string\"},\"provenance\":{\"type\":\"object\",\"required\":["
         "\"rerunOf\",\"rerunOfRepo\",\"originRunId\",\"generation\",\"reason\",\"createdAt\",\"actor\"]},"
         "\"nextActions\":" ACTIONS ",\"drive\":" DRIVE "}}",
     .examples = rerun_examples,
     .flags = STET_OP_NO_PROJECT | STET_OP_LONG,
     .run = rerun_run,
     .render = rerun_render,
     .verdict = drive_verdict},
    {.name = "runs cancel",
     .summary = "End a run that is not done, or ask its driver to stop",
     .description =
         "A run that somebody drives is asked to stop: its driver sees it within a quarter of a second. One that "
         "nobody drives is ended here: what is left of it is marked as cancelled, and counts as failed.",
     .params = cancel_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"runId\",\"repo\",\"cancelled\",\"asked\"],"
         "\"additionalProperties\":false,\"properties\":{\"schemaVersion\":{\"const\":1},\"runId\":{"
         "\"type\":\"string\"},\"repo\":{\"type\":\"string\"},\"cancelled\":{\"type\":\"boolean\"},"
         "\"asked\":{\"type\":\"boolean\"}}}",
     .examples = cancel_examples,
     .flags = STET_OP_NO_PROJECT | STET_OP_DESTRUCTIVE,
     .run = cancel_run,
     .render = cancel_render},
    {.name = "runs label",
     .summary = "Add labels to a run, or remove them",
     .description = "Labels lie over the run, as archive marks do. Without --add and --remove they are shown.",
     .params = label_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"schemaVersion\",\"runId\",\"repo\",\"labels\"],"
                      "\"additionalProperties\":false,\"properties\":{\"schemaVersion\":{\"const\":1},\"runId\":{"
                      "\"type\":\"string\"},\"repo\":{\"type\":\"string\"},\"labels\":{\"type\":\"array\",\"items\":{"
                      "\"type\":\"string\"}}}}",
     .examples = label_examples,
     .flags = STET_OP_NO_PROJECT | STET_OP_IDEMPOTENT,
     .run = label_run,
     .render = label_render},
    {0},
};
