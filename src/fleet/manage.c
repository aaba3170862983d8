/* manage.c - archives, labels and repeats runs without changing them. */

#include "fleet/manage.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "fleet/overlay.h"
#include "os/clock.h"
#include "os/file.h"

#define LABEL_MAX 64

static stet_value checked_text(const char *s) {
    stet_value v;
    return s != NULL && stet_value_string_checked(s, strlen(s), &v, NULL) == STET_OK ? v : stet_value_null();
}

/* A mark of another program is its own to clear. */
static stet_status check_own_marks(const stet_registry *reg, const stet_fleet_records *runs, stet_error *err) {
    for (size_t i = 0; i < runs->len; i++) {
        const stet_fleet_record *r = runs->at[i];
        stet_value marks = reg->repos.at[r->repo_index].overlays[STET_OVERLAY_ARCHIVE],
                   by = stet_value_get(stet_value_get(marks, r->id), STET_OVERLAY_BY);
        if (stet_value_type(by) != STET_TYPE_STRING)
            continue;
        stet_fail(err, STET_CONFLICT, "run %s was archived by another program, in %s", r->id, stet_value_text(&by, ""));
        stet_hint(err, "clear the mark with that program");
        return STET_CONFLICT;
    }
    return STET_OK;
}

stet_status stet_runs_archive(const stet_registry *reg, const stet_fleet_records *runs, bool unarchive,
                              const char *reason, const char *actor, const char *at, stet_error *err) {
    stet_status own = unarchive ? check_own_marks(reg, runs, err) : STET_OK;
    if (own != STET_OK)
        return own;
    for (size_t k = 0; k < reg->repos.len; k++) {
        stet_value changes = stet_value_object(), mark = stet_value_null();
        if (!unarchive) {
            mark = stet_value_object();
            stet_value_put(&mark, "archivedAt", stet_value_string(at));
            stet_value_put(&mark, "reason", checked_text(reason));
            stet_value_put(&mark, "actor", checked_text(actor));
        }
        for (size_t i = 0; i < runs->len; i++)
            if (runs->at[i]->repo_index == k)
                stet_value_put(&changes, runs->at[i]->id, stet_value_retain(mark));
        stet_status st = stet_overlay_update(reg->repos.at[k].registry_dir, STET_OVERLAY_ARCHIVE, changes, err);
        stet_value_release(changes);
        stet_value_release(mark);
        if (st != STET_OK)
            return st;
    }
    return STET_OK;
}

bool stet_label_valid(const char *label) {
    size_t len = strlen(label);
    if (len == 0 || len > LABEL_MAX)
        return false;
    for (const char *s = label; *s != 0; s++)
        if ((unsigned char)*s <= ' ' || *s == 0x7f || *s == ',')
            return false;
    return true;
}

stet_status stet_runs_label(const stet_registry *reg, const stet_fleet_record *r, stet_value labels, stet_error *err) {
    stet_value changes = stet_value_object();
    stet_value_put(&changes, r->id, stet_value_retain(labels));
    stet_status st = stet_overlay_update(reg->repos.at[r->repo_index].registry_dir, STET_OVERLAY_LABELS, changes, err);
    stet_value_release(changes);
    return st;
}

static stet_value rerun_link(const stet_fleet_record *r, const char *reason, const char *actor) {
    stet_value link = stet_value_object();
    bool chained = r->provenance.generation > 0;
    stet_value_put(&link, "rerunOf", stet_value_string(r->id));
    stet_value_put(&link, "rerunOfRepo", stet_value_string(r->repo));
    stet_value_put(
        &link, "originRunId",
        stet_value_string(chained && r->provenance.origin_run_id[0] != 0 ? r->provenance.origin_run_id : r->id));
    stet_value_put(&link, "generation", stet_value_int(r->provenance.generation + 1));
    stet_value why = checked_text(reason), who = checked_text(actor);
    stet_value_put(&link, "reason", stet_value_type(why) == STET_TYPE_STRING ? why : stet_value_string(""));
    stet_value_put(&link, "createdAt", stet_time_value(stet_clock_ms()));
    stet_value_put(&link, "actor", stet_value_type(who) == STET_TYPE_STRING ? who : stet_value_string(""));
    return link;
}

/* Copies the tasks of the original run, all of them pending. */
static void copy_tasks(stet_runfile *run, stet_value tasks) {
    for (size_t i = 0; i < stet_value_count(tasks); i++) {
        stet_value task = stet_value_at(tasks, i), id, action, kind;
        stet_task_spec spec = {.action = stet_value_text_at(task, "action", &action),
                               .kind = stet_value_text_at(task, "kind", &kind),
                               .verifier = stet_value_as_bool(stet_value_get(task, "verifier"))};
        stet_runfile_task(run, stet_value_text_at(task, "id", &id), &spec);
    }
}

static stet_status make_rerun(stet_project *p, const char *dir, const stet_state *s, stet_value overrides,
                              stet_value link, const char *actor, char new_id[STET_RUN_ID_MAX + 1], stet_error *err) {
    stet_value app = stet_value_get(s->root, "app"), keep[6], inputs = stet_value_get(s->root, "inputs"), argument;
    bool has_argument;
    stet_status st = stet_runfile_read_argument(dir, s, &has_argument, &argument, err);
    if (st != STET_OK)
        return st;
    inputs = stet_value_type(inputs) == STET_TYPE_OBJECT ? stet_value_retain(inputs) : stet_value_object();
    for (size_t i = 0; i < stet_value_count(overrides); i++) {
        size_t len;
        const char *key = stet_value_key_at(overrides, i, &len);
        stet_value_put_n(&inputs, key, len, stet_value_retain(stet_value_at(overrides, i)));
    }
    stet_runfile_spec spec = {.app_id = stet_value_text_at(app, "id", &keep[0]),
                              .app_version = stet_value_text_at(app, "version", &keep[1]),
                              .app_title = stet_value_text_at(app, "title", &keep[2]),
                              .piece = stet_value_text_at(s->root, "piece", &keep[3]),
                              .workflow_id = stet_value_text_at(s->root, "workflowId", &keep[4]),
                              .title = stet_value_text_at(s->root, "title", &keep[5]),
                              .actor = actor,
                              .inputs = inputs,
                              .has_argument = has_argument,
                              .argument = argument,
                              .options = stet_value_get(s->root, "options"),
                              .provenance = link};
    spec.name = spec.app_id ? spec.app_id : spec.workflow_id;
    stet_runfile *run = NULL;
    st = stet_runfile_create(p, &spec, &run, err);
    if (st == STET_OK) {
        copy_tasks(run, stet_value_get(s->root, "tasks"));
        snprintf(new_id, STET_RUN_ID_MAX + 1, "%s", stet_runfile_id(run));
        st = stet_runfile_flush(run, err);
        stet_runfile_close(run);
    }
    stet_value_release(inputs);
    stet_value_release(argument);
    return st;
}

stet_status stet_runs_rerun(const stet_registry *reg, const stet_fleet_record *r, stet_value overrides,
                            const char *reason, const char *actor, char new_id[STET_RUN_ID_MAX + 1],
                            stet_value *provenance, stet_error *err) {
    stet_state s;
    stet_project *p = NULL;
    stet_status st = stet_fleet_record_reread(r, &s, err);
    if (st != STET_OK)
        return st;
    char *dir = stet_fleet_record_dir(r);
    stet_value owner = stet_value_null();
    if (stet_runfile_driver(dir, &owner) == STET_DRIVER_ALIVE) {
        stet_buf b = STET_BUF(1024);
        stet_runfile_owner_text(owner, &b);
        st = stet_fail(err, STET_BUSY, "run %s is being driven by %s", r->id, stet_buf_cstr(&b));
        stet_hint(err, "wait for its end, or: stet runs cancel %s", r->id);
        stet_buf_release(&b);
    }
    stet_value_release(owner);
    stet_value link = rerun_link(r, reason, actor);
    if (st == STET_OK)
        st = stet_project_open(r->repo, &p, err);
    if (st == STET_OK)
        st = make_rerun(p, dir, &s, overrides, link, actor, new_id, err);
    if (st == STET_OK) {
        /* The new run also names its origin, so that the link survives a failure here. */
        stet_value changes = stet_value_object();
        stet_value_put(&changes, new_id, stet_value_retain(link));
        st = stet_overlay_update(reg->repos.at[r->repo_index].registry_dir, STET_OVERLAY_PROVENANCE, changes, err);
        stet_value_release(changes);
    }
    stet_project_close(p);
    stet_state_release(&s);
    stet_free(dir);
    if (st == STET_OK)
        *provenance = link;
    else
        stet_value_release(link);
    return st;
}

void stet_runs_undo_rerun(const stet_registry *reg, const stet_fleet_record *r, const char *new_id) {
    const stet_registry_repo *repo = &reg->repos.at[r->repo_index];
    char *dir = stet_file_join(repo->runs_dir, new_id), *path = stet_file_join(dir, "state.json");
    stet_state s;
    if (stet_state_read(path, new_id, NULL, &s, NULL) == STET_OK) {
        bool untouched = stet_lifecycle_of(&s.counts) == STET_LIFE_QUEUED &&
                         stet_value_text_is(stet_value_get(s.root, "loopStage"), stet_stage_name(STET_STAGE_SETUP));
        stet_state_release(&s);
        stet_value changes = stet_value_object();
        stet_value_put(&changes, new_id, stet_value_null());
        if (untouched && stet_runfile_driver(dir, NULL) != STET_DRIVER_ALIVE &&
            stet_file_remove_tree(dir, NULL) == STET_OK &&
            stet_overlay_update(repo->registry_dir, STET_OVERLAY_PROVENANCE, changes, NULL) != STET_OK) {
            /* A link of a run that is not there does no harm. */
        }
        stet_value_release(changes);
    }
    stet_free(path);
    stet_free(dir);
}

stet_status stet_runs_cancel(const stet_fleet_record *r, const char *reason, bool *asked, stet_error *err) {
    char *dir = stet_fleet_record_dir(r);
    stet_status st = STET_OK;
    bool open_ended = r->counts.tasks[STET_TASK_PENDING] + r->counts.tasks[STET_TASK_RUNNING] > 0 ||
                      (r->counts.total == 0 && r->derived == STET_LIFE_QUEUED);
    *asked = stet_runfile_driver(dir, NULL) == STET_DRIVER_ALIVE;
    if (*asked)
        st = stet_runfile_ask_cancel(dir, reason, err);
    else if (!open_ended)
        st = stet_fail(err, STET_CONFLICT, "run %s has ended (%s): there is nothing to cancel", r->id,
                       stet_lifecycle_name(r->derived));
    else {
        stet_project *p = NULL;
        stet_runfile *run = NULL;
        st = stet_project_open(r->repo, &p, err);
        if (st == STET_OK)
            st = stet_runfile_open(p, r->id, &run, err);
        if (st == STET_OK) {
            if (r->counts.total == 0) /* nothing to mark: the run itself is what was cancelled */
                stet_runfile_task(run, "run", NULL);
            stet_runfile_cancel_rest(run, reason);
            st = stet_runfile_finish(run, err);
        }
        stet_runfile_close(run);
        stet_project_close(p);
    }
    stet_free(dir);
    return st;
}
