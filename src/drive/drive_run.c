/* drive_run.c - the run file of a drive: when it is created, what is recorded in it, and how it ends. */

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "drive/drive_internal.h"
#include "os/clock.h"
#include "os/file.h"
#include "scheduler/standing.h"

/* Bytes of a result that a run keeps. */
#define RESULT_MAX ((size_t)1 << 20)

static bool fits(stet_value v, size_t max) {
    size_t len;
    char *text = stet_json_print(v, STET_JSON_CANONICAL, &len);
    stet_free(text);
    return len <= max;
}

/* The argument that the run has; false: there is none. The caller releases it. */
static bool argument_to_keep(driver *d, int64_t *seq, stet_value *out) {
    bool exists;
    return drive_argument(d, &exists, seq, out, NULL) == STET_OK && exists;
}

/* Any revision of the argument since the run began may have been read: also one that was taken back before the run wrote
 * its argument down. */
void drive_keep_argument(driver *d, bool ended) {
    stet_value argument;
    int64_t seq;
    if (!argument_to_keep(d, &seq, &argument))
        return;
    if (d->own_argument)
        stet_runfile_option(d->run, "ownArgument", stet_value_bool(true));
    bool other = stet_runfile_argument(d->run, argument);
    if (ended && (other || seq != d->argument_seq))
        stet_runfile_summary(d->run, "argumentChanged", stet_value_bool(true));
    stet_value_release(argument);
}

/* What a run needs, beside its argument, to be repeated or continued. */
static stet_value options_of(const driver *d) {
    const stet_drive_spec *spec = d->spec;
    stet_value options = stet_value_object();
    if (spec->pattern)
        stet_value_put(&options, "pattern", stet_value_string(spec->pattern));
    if (spec->space && strcmp(spec->space, "main") != 0)
        stet_value_put(&options, "space", stet_value_string(spec->space));
    if (spec->branch && *spec->branch)
        stet_value_put(&options, "branch", stet_value_string(spec->branch));
    if (stet_value_count(spec->demand) > 0)
        stet_value_put(&options, "demand", stet_value_retain(spec->demand));
    if (stet_value_count(spec->nodes) > 0)
        stet_value_put(&options, "nodes", drive_words_value(d));
    if (d->own_argument)
        stet_value_put(&options, "ownArgument", stet_value_bool(true));
    return options;
}

static stet_value inputs_of(const stet_drive_spec *spec) {
    stet_value given = drive_lends(spec) ? spec->lend : spec->set;
    return stet_value_type(given) == STET_TYPE_OBJECT ? given : stet_value_null();
}

void drive_begin_run(driver *d) {
    /* A pattern that can't be read names no piece, so that no run can be recorded. */
    if (d->run || d->run_failed || !d->piece)
        return;
    d->estimate = stet_estimate_new(d->project, d->piece);
    stet_status status;
    if (d->spec->run_id) {
        status = stet_runfile_open(d->project, d->spec->run_id, &d->run, &d->run_error);
    } else {
        stet_value pattern = d->stored ? stet_value_get(d->stored->envelope, "pattern") : stet_value_null(), hold[3];
        stet_value options = options_of(d);
        char *id = stet_piece_bare(d->piece);
        stet_runfile_spec spec = {.name = id,
                                  .app_id = stet_value_text_at_or(pattern, "name", d->piece, &hold[0]),
                                  .app_version = stet_value_text_at(pattern, "version", &hold[1]),
                                  .app_title = stet_value_text_at(pattern, "title", &hold[2]),
                                  .piece = d->piece,
                                  .actor = d->spec->actor,
                                  .inputs = inputs_of(d->spec),
                                  .options = options,
                                  .provenance = d->spec->provenance,
                                  .stage = STET_STAGE_RUNNING};
        int64_t seq;
        spec.has_argument = argument_to_keep(d, &seq, &spec.argument);
        spec.named = d->spec->begun;
        spec.named_ctx = d->spec->ctx;
        status = stet_runfile_create(d->project, &spec, &d->run, &d->run_error);
        if (spec.has_argument)
            stet_value_release(spec.argument);
        stet_value_release(options);
        stet_free(id);
    }
    if (status != STET_OK) {
        d->run = NULL;
        d->run_failed = true;
        return;
    }
    if (d->spec->run_id)
        stet_runfile_stage(d->run, STET_STAGE_RUNNING);
}

stet_status drive_continue_run(driver *d, stet_error *err) {
    drive_begin_run(d);
    if (!d->run_failed)
        return STET_OK;
    d->run_failed = false;
    stet_status status = d->run_error.status;
    if (err)
        stet_error_move(err, &d->run_error);
    return status;
}

/* How often progress is reported while no action ends, to show that the run is alive. */
#define TELL_US 100000

static void report_progress(driver *d, bool ended) {
    int64_t now = stet_clock_monotonic_us();
    bool waiting = d->running + d->queued == 0; /* a watch that waits for a change */
    if (!d->spec->progress || (!ended && (waiting || now - d->shown_us < TELL_US)))
        return;
    stet_buf note = STET_BUF(4096);
    d->shown_us = now;
    if (d->estimate)
        stet_estimate_note(d->estimate, d->queued, &note);
    d->spec->progress(d->spec->ctx, (int64_t)d->done, (int64_t)d->total, d->estimate ? stet_buf_cstr(&note) : NULL);
    stet_buf_release(&note);
}

int64_t drive_done_at(void *ctx, const char *piece, const char *node) {
    driver *d = ctx;
    stet_runfile_effect_state was;
    if (!d->run || strcmp(piece, d->piece) != 0 || !stet_runfile_effect_of(d->run, node, &was))
        return 0;
    if (was.stored > 0)
        return was.stored;
    /* Killed after it was stored, before the run knew of it? */
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    stet_action_key key = stet_piece_action(d->stored, node);
    int64_t at = 0;
    if (stet_observe_find(d->space, d->branch, &key, &arena, &r, NULL) == STET_OK && r.observed && !r.failed &&
        r.observed_at >= was.begun && r.time_ms >= was.begun_ms)
        at = r.observed_at;
    stet_arena_release(&arena);
    return at;
}

/* Which effects the run did is written down, for the case that the run is stopped or killed and continued. */
static void note_effects(driver *d, const stet_sched_event *e) {
    int64_t seq;
    if (!d->run || (e->kind == STET_SCHED_FLUSHED && d->effects_done.len == 0) ||
        (e->kind != STET_SCHED_FLUSHED && (!e->effect || strcmp(e->piece, d->piece) != 0)) ||
        stet_space_seq(d->space, &seq, NULL) != STET_OK)
        return;
    if (e->kind == STET_SCHED_STARTED) {
        stet_runfile_effect(d->run, e->node, false, seq);
    } else if (e->kind == STET_SCHED_DONE) {
        *stet_vec_add(&d->effects_done) = stet_strdup(e->node);
    } else if (e->kind == STET_SCHED_FLUSHED) {
        for (size_t i = 0; i < d->effects_done.len; i++)
            stet_runfile_effect(d->run, d->effects_done.at[i], true, seq);
        stet_names_release(&d->effects_done);
    }
}

/* A task that has waited until now, and works, or has ended without that. The first one is written at once. */
static void start_task(driver *d, const char *node) {
    stet_task_status was;
    if (!d->run || !stet_runfile_has_task(d->run, node, &was) || was != STET_TASK_PENDING)
        return;
    stet_runfile_task_start(d->run, node);
    bool first = !d->worked;
    d->worked = true;
    if (first && stet_runfile_flush(d->run, &d->run_error) != STET_OK)
        d->run_failed = true;
}

void drive_on_event(void *ctx, const stet_sched_event *e) {
    driver *d = ctx;
    bool listed = e->effect || e->verifier || !e->synchronous;
    if (e->kind == STET_SCHED_STARTED && listed) {
        stet_task_status was;
        bool first = !d->run;
        drive_begin_run(d);
        if (d->run) {
            stet_runfile_task(d->run, e->node,
                              &(stet_task_spec){.kind = e->effect ? "effect" : "computation", .verifier = e->verifier});
            if (e->synchronous)
                stet_runfile_task_start(d->run, e->node);
            else if (stet_runfile_has_task(d->run, e->node, &was) && was != STET_TASK_PENDING)
                stet_runfile_task_reset(d->run, e->node); /* its earlier attempt has ended */
            stet_estimate_started(d->estimate, e->node, e->synchronous);
            /* The first task is written at once, not a second later. */
            if (first && stet_runfile_flush(d->run, &d->run_error) != STET_OK)
                d->run_failed = true;
        }
    } else if (e->kind == STET_SCHED_WORKS || e->kind == STET_SCHED_WAITS) {
        if (d->estimate)
            stet_estimate_works(d->estimate, e->node, e->kind == STET_SCHED_WORKS);
        if (e->kind == STET_SCHED_WORKS)
            start_task(d, e->node);
    } else if (e->kind == STET_SCHED_DONE) {
        stet_task_status was;
        bool there = d->run && stet_runfile_has_task(d->run, e->node, &was);
        start_task(d, e->node);
        if ((there && was != STET_TASK_COMPLETED) || (!there && d->run && listed))
            stet_runfile_task_done(d->run, e->node, NULL);
    } else if (e->kind == STET_SCHED_FAILED || e->kind == STET_SCHED_ASIDE) {
        drive_begin_run(d);
        start_task(d, e->node);
        if (d->run)
            stet_runfile_task_failed(d->run, e->node, e->error);
        char *name = stet_asprintf("%s/%s", e->piece, e->node);
        stet_map_put(&d->failed, name, strlen(name), (stet_slot){.n = 1});
        stet_free(name);
    } else if (e->kind == STET_SCHED_CANCELLED) {
        stet_task_status was;
        if (d->run && stet_runfile_has_task(d->run, e->node, &was))
            stet_runfile_task_reset(d->run, e->node);
    }
    note_effects(d, e);
    if (d->run && stet_runfile_tick(d->run, &d->run_error) != STET_OK)
        d->run_failed = true;
    bool ended = e->kind == STET_SCHED_DONE || e->kind == STET_SCHED_FAILED || e->kind == STET_SCHED_ASIDE ||
                 e->kind == STET_SCHED_CANCELLED;
    if (ended && d->estimate)
        stet_estimate_ended(d->estimate, e->node);
    d->running += e->kind == STET_SCHED_STARTED;
    d->running -= ended && d->running > 0;
    d->done = e->done;
    d->queued = e->queued;
    if (d->done + d->running + d->queued > d->total)
        d->total = d->done + d->running + d->queued;
    report_progress(d, ended);
}

/* Called between any two steps and while commands run, so it also writes the run file, at most once a second. */
bool drive_is_cancelled(void *ctx) {
    driver *d = ctx;
    if (d->run && !d->run_failed && stet_runfile_tick(d->run, &d->run_error) != STET_OK)
        d->run_failed = true;
    report_progress(d, false);
    return (d->spec->cancelled && d->spec->cancelled(d->spec->ctx)) || (d->run && stet_runfile_cancelled(d->run));
}

/* A verifier that did not run counts as a check of the result too: passed if it is up to date, otherwise missing,
 * because it was not requested. */
static stet_status enter_verifiers(driver *d, stet_error *err) {
    stet_process *g = NULL;
    stet_standing all = {0};
    stet_status status = stet_piece_process(d->space, d->branch, d->stored, -1, &g, err);
    if (status == STET_OK)
        status = stet_piece_children(d->space, d->branch, -1, g, NULL, err);
    if (status == STET_OK)
        status = stet_standing_load(d->space, d->branch, &all, err);
    for (size_t i = 0; status == STET_OK && i < g->node_count; i++) {
        const char *id = g->nodes[i].id;
        stet_arena arena = STET_ARENA_INIT;
        stet_action_record r;
        stet_task_status was;
        stet_action_key key = stet_piece_action(d->stored, id);
        if (!stet_value_as_bool(stet_value_get(g->nodes[i].row, "verifier")) || stet_runfile_has_task(d->run, id, &was))
            continue;
        bool fine =
            stet_observe_find(d->space, d->branch, &key, &arena, &r, NULL) == STET_OK && r.observed && !r.failed;
        const stet_stale_root *accepted = fine ? stet_standing_through(&all, r.action) : NULL;
        bool passed = fine && !accepted && stet_standing_state(&all, &r) == STET_STATE_STANDS;
        stet_runfile_task(d->run, id, &(stet_task_spec){.kind = "computation", .verifier = true});
        if (passed)
            stet_runfile_task_done(d->run, id, NULL);
        else {
            stet_runfile_task_skipped(d->run, id,
                                      accepted ? "it rests on an accepted result: the result has no verdict"
                                               : "not asked for: the result has no verdict");
            stet_value_push(&d->out->unverified, stet_value_string(id));
        }
        stet_arena_release(&arena);
    }
    if (status == STET_OK)
        stet_standing_release(&all);
    stet_process_free(g);
    return status;
}

/* Commits the run, if its verifiers passed. Its result is the state of the space at its end. */
static bool commit_run(driver *d) {
    stet_value_release(d->out->unverified);
    d->out->unverified = stet_value_array();
    bool known = !d->stored->has_verifiers || enter_verifiers(d, NULL) == STET_OK;
    if (stet_value_count(d->out->unverified) > 0)
        stet_runfile_summary(d->run, "unverified", stet_value_retain(d->out->unverified));
    if (!known)
        return false;
    int64_t seq = 0;
    char text[96];
    if (stet_space_seq(d->space, &seq, NULL) != STET_OK)
        return false;
    int n = snprintf(text, sizeof text, "%s %lld", stet_space_uuid(d->space), (long long)seq);
    stet_hash h = stet_hash_of(text, (size_t)n);
    return stet_runfile_commit(d->run, &h);
}

static bool has_node(void *ctx, const char *node) {
    const driver *d = ctx;
    stet_value row = stet_value_null();
    bool there = stet_piece_row(d->space, d->branch, d->stored, node, &row, NULL) == STET_OK;
    stet_value_release(row);
    return there;
}

/* The time that the actions which did not have to run took when they last ran, according to run files. Removed nodes do
 * not count; there are some only if the graph has changed. */
static int64_t time_saved(driver *d) {
    bool held = stet_memo_hold(d->space); /* one snapshot for all look-ups */
    int64_t saved = stet_estimate_saved(d->estimate, d->stored->generation > 1 ? has_node : NULL, d);
    stet_memo_let_go(d->space, held);
    return saved;
}

/* Records failing actions as failed tasks, whether or not they ran in this drive. */
static void list_failed(driver *d, stet_value list) {
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value p = stet_value_at(list, i), node = stet_value_get(p, "node"),
                   said = stet_value_get(stet_value_get(p, "error"), "message");
        const char *id = stet_value_as_string(&node, NULL);
        stet_task_status was;
        stet_error e = STET_ERROR_INIT;
        if (!id) /* a problem of a whole space */
            continue;
        if (stet_runfile_has_task(d->run, id, &was) && was == STET_TASK_FAILED)
            continue;
        stet_fail(&e, STET_FAILED, "%s", stet_value_text(&said, "it failed"));
        stet_runfile_task_failed(d->run, id, &e);
        stet_error_clear(&e);
    }
}

/* Makes the tasks agree with the summary: some actions that failed during the run now wait, or are no longer needed. */
static void agree(driver *d) {
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&d->failed, &i, &key, &len, &slot);) {
        char *piece = stet_strndup(key, len), *node = strchr(piece, '/') + 1;
        stet_task_status was;
        node[-1] = 0;
        if (stet_runfile_has_task(d->run, node, &was) && was == STET_TASK_FAILED &&
            !stet_sched_fails(d->sched, piece, node))
            stet_runfile_task_skipped(d->run, node, "it waits for what failed, or is not needed any more");
        stet_free(piece);
    }
    list_failed(d, d->out->report.problems);
    list_failed(d, d->out->failed_before);
    /* A run that is continued: what failed in it before may be up to date by now, by what another run did. */
    if (d->spec->run_id && d->out->report.failed == 0 && d->out->report.aside == 0)
        stet_runfile_skip_failed(d->run, "up to date by now: another run did it");
}

/* What waits for a failure is listed with it: people look at the run to see what is left to do. */
static void list_waiting(driver *d) {
    enum { MOST = 100 };
    stet_value list = drive_waiting(d, MOST);
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value v = stet_value_at(list, i), node = stet_value_get(v, "node"), maker = stet_value_get(v, "waitsFor");
        const char *id = stet_value_as_string(&node, NULL);
        stet_task_status was;
        bool there = stet_runfile_has_task(d->run, id, &was);
        if (there && was != STET_TASK_PENDING && was != STET_TASK_SKIPPED)
            continue;
        char *why = stet_asprintf("waits for %s", stet_value_as_string(&maker, NULL));
        stet_runfile_task(d->run, id, &(stet_task_spec){.kind = "computation"});
        stet_runfile_task_skipped(d->run, id, why);
        stet_free(why);
    }
    stet_value_release(list);
}

/* The drive could not go on: that is how the run ended. */
static void end_broken(driver *d, stet_status status, const stet_error *err) {
    stet_error why = STET_ERROR_INIT;
    stet_fail(&why, status, "%s", err && err->message[0] ? err->message : stet_status_name(status));
    stet_runfile_task_failed(d->run, "settle", &why);
    stet_error_clear(&why);
    if (stet_runfile_finish(d->run, &d->run_error) != STET_OK)
        d->run_failed = true;
}

/* The piece goes back to its own argument, so that the result is found here alone. After a failure, and in what a run of a
 * part did not ask for, there may be values of another argument. */
static void keep_result(driver *d) {
    const stet_drive_outcome *o = d->out;
    bool whole = o->report.failed == 0 && o->report.aside == 0 && o->report.waiting == 0 && o->report.left == 0 &&
                 o->result_error.status == STET_OK;
    if (!d->lent || !o->has_result || !whole || !fits(o->result, RESULT_MAX))
        return;
    if (!o->part) {
        stet_runfile_result(d->run, o->result);
        return;
    }
    stet_value parts = stet_value_object();
    for (size_t i = 0; i < stet_value_count(d->spec->demand); i++) {
        stet_value name = stet_value_at(d->spec->demand, i), envelope = stet_value_object(), v;
        size_t len;
        const char *text = stet_value_as_string(&name, &len);
        stet_path path = STET_PATH_INIT;
        stet_value_put(&envelope, "value", stet_value_retain(o->result));
        if (stet_drive_demand_path(text, &path, NULL) == STET_OK &&
            stet_path_lookup(envelope, stet_path_ref(&path), &v))
            stet_value_put_n(&parts, text, len, stet_value_retain(v));
        stet_path_release(&path);
        stet_value_release(envelope);
    }
    if (stet_value_count(parts) > 0)
        stet_runfile_summary(d->run, "resultParts", stet_value_retain(parts));
    stet_value_release(parts);
}

stet_status drive_end_run(driver *d, stet_status status, stet_error *err) {
    const stet_sched_report *r = &d->out->report;
    stet_observe_stood(d->space, (int64_t)d->out->stood);
    struct stet_observe_counts counted = stet_observe_counted(d->space);
    stet_value_release(d->out->metrics);
    d->out->metrics = stet_observe_counts_value(&counted);
    bool ended = status == STET_OK || status == STET_CANCELLED;
    if (!d->run && (r->runs > 0 || (d->spec->record && ended)))
        drive_begin_run(d);
    if (d->run) {
        /* Cheap actions are counted, not listed: together they are one task, so that a run which consists of them is
         * complete. */
        d->out->run_id = stet_strdup(stet_runfile_id(d->run));
        stet_runfile_task(d->run, "settle", &(stet_task_spec){.kind = "settle"});
        stet_runfile_task_start(d->run, "settle");
        if (status == STET_OK)
            stet_runfile_task_done(d->run, "settle", NULL);
        else if (status == STET_CANCELLED)
            stet_runfile_task_reset(d->run, "settle");
        else
            end_broken(d, status, err);
        stet_runfile_summary(d->run, "ran", stet_value_int((int64_t)r->ran));
        stet_runfile_summary(d->run, "restored", stet_value_int((int64_t)r->restored));
        stet_runfile_summary(d->run, "runs", stet_value_int((int64_t)r->runs));
        stet_runfile_summary(d->run, "stood", stet_value_int((int64_t)d->out->stood));
        if (r->accepted + r->through > 0) {
            stet_runfile_summary(d->run, "accepted", stet_value_int((int64_t)r->accepted));
            stet_runfile_summary(d->run, "throughAccepted", stet_value_int((int64_t)r->through));
        }
        stet_runfile_summary(d->run, "failed", stet_value_int((int64_t)r->failed));
        stet_runfile_summary(d->run, "aside", stet_value_int((int64_t)r->aside));
        stet_runfile_summary(d->run, "left", stet_value_int((int64_t)r->left));
        stet_runfile_summary(d->run, "waiting", stet_value_int((int64_t)r->waiting));
        /* Another process may have deleted the piece. */
        bool there = status == STET_OK && drive_look(d, NULL) == STET_OK;
        if (there)
            drive_keep_argument(d, true);
        if (there)
            keep_result(d);
        if (status == STET_OK) {
            agree(d);
            if (there && r->failed > 0 && r->waiting + r->left > 0)
                list_waiting(d);
            stet_runfile_summary(d->run, "savedMs", stet_value_int(there ? time_saved(d) : 0));
        }
        stet_runfile_summary(d->run, "metrics", stet_value_retain(d->out->metrics));
        if (status == STET_CANCELLED || d->spec->run_id) /* a resumed run may have been cancelled before */
            stet_runfile_summary(d->run, "cancelled", stet_value_bool(status == STET_CANCELLED));
        if (status == STET_CANCELLED) {
            stet_runfile_event(d->run, "cancelled", stet_value_null());
            if (stet_runfile_flush(d->run, &d->run_error) != STET_OK)
                d->run_failed = true;
        } else if (status == STET_OK) {
            stet_runfile_stage(d->run, STET_STAGE_VERIFYING);
            if (there && r->failed == 0 && r->aside == 0 && r->accepted + r->through == 0)
                d->out->committed = commit_run(d);
            if (stet_runfile_finish(d->run, &d->run_error) != STET_OK)
                d->run_failed = true;
        }
        stet_runfile_close(d->run);
        d->run = NULL;
    }
    stet_map_release(&d->failed);
    stet_names_release(&d->effects_done);
    stet_map_release(&d->said);
    stet_estimate_free(d->estimate);
    d->estimate = NULL;
    if (d->run_failed && status == STET_OK) {
        status = d->run_error.status;
        if (err)
            stet_error_move(err, &d->run_error);
    }
    stet_error_clear(&d->run_error);
    return status;
}
