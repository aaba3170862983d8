/* fleet.c - drives runs for the fleet: resume, rerun and the queue's workers call stet_drive_fleet. */

#include <stdio.h>

#include "base/text.h"
#include "drive/drive_internal.h"
#include "fleet/state.h"
#include "os/file.h"

static char *run_dir(const stet_project *project, const char *id) {
    char *relative = stet_asprintf("runs/%s", id), *dir = stet_project_path(project, relative);
    stet_free(relative);
    return dir;
}

/* An entry of the queue names its run before the run is made. */
static bool is_there(const stet_project *project, const char *id) {
    char *dir = run_dir(project, id);
    bool there = stet_file_exists(dir);
    stet_free(dir);
    return there;
}

/* Has somebody else brought the run to its end? Then what was asked for is done. */
static bool is_completed(const stet_project *project, const char *id) {
    char *dir = run_dir(project, id), *path = stet_file_join(dir, "state.json");
    stet_state state;
    bool completed = stet_state_read(path, id, NULL, &state, NULL) == STET_OK;
    if (completed) {
        completed = stet_state_refuse_completed(&state, id, NULL) == STET_CONFLICT;
        stet_state_release(&state);
    }
    stet_free(path);
    stet_free(dir);
    return completed;
}

/* What the run says about itself: its piece, what is demanded of it, and the argument that it has. */
static stet_status continue_from(stet_project *project, const char *id, stet_state *state, stet_drive_spec *spec,
                                 stet_value hold[5], stet_error *err) {
    char *dir = run_dir(project, id), *path = stet_file_join(dir, "state.json");
    stet_status status = stet_state_read(path, id, NULL, state, err);
    if (status == STET_OK)
        status = stet_state_refuse_completed(state, id, err);
    if (status == STET_OK)
        status = stet_runfile_read_argument(dir, state, &spec->own_argument, &hold[4], err);
    spec->argument = hold[4];
    stet_free(path);
    stet_free(dir);
    if (status != STET_OK)
        return status;
    stet_value options = stet_value_get(state->root, "options"), inputs = stet_value_get(state->root, "inputs");
    const char *from = stet_value_text_at(options, "pattern", &hold[1]);
    bool begun = state->counts.tasks[STET_TASK_COMPLETED] + state->counts.tasks[STET_TASK_FAILED] > 0;
    spec->piece = stet_value_text_at(state->root, "piece", &hold[0]);
    spec->space = stet_value_text_at(options, "space", &hold[2]);
    spec->branch = stet_value_text_at(options, "branch", &hold[3]);
    spec->demand = stet_value_get(options, "demand");
    spec->nodes = stet_value_get(options, "nodes");
    /* One that has begun has its inputs in its argument. */
    if (!begun && stet_value_type(inputs) == STET_TYPE_OBJECT)
        spec->lend = inputs;
    /* The file of a run may come from another machine or person: a pattern elsewhere is not this project's. */
    bool inside = false;
    if (!begun && from)
        status = stet_file_inside(stet_project_root(project), from, &inside, err);
    if (status == STET_OK && inside && stet_file_exists(from))
        spec->pattern = from;
    if (status != STET_OK)
        return status;
    if (!spec->piece)
        return stet_fail(err, STET_UNSUPPORTED, "run %s does not say which piece it is of", id);
    return STET_OK;
}

stet_status stet_drive_fleet(const stet_drive_request *q, stet_drive_result *out, stet_error *err) {
    stet_project *project;
    *out = (stet_drive_result){0};
    stet_status status = stet_project_open(q->root, &project, err);
    if (status != STET_OK)
        return status;
    bool named = q->app || q->workflow, again = q->run_id && (!named || is_there(project, q->run_id));
    stet_drive_spec spec = {.run_id = again ? q->run_id : NULL,
                            .actor = q->actor,
                            .retry_failed = true,
                            .record = true,
                            .alone = true,
                            .result = STET_DRIVE_SHOW_RESULT,
                            .no_wait = q->no_wait,
                            .ctx = q->context,
                            .cancelled = q->cancelled,
                            .begun = again ? NULL : q->begun,
                            .progress = q->progress,
                            .output = q->output,
                            .live = q->live};
    stet_state state = {0};
    char *file = NULL;
    stet_value hold[5] = {stet_value_null(), stet_value_null(), stet_value_null(), stet_value_null(),
                          stet_value_null()};
    if (again) {
        status = continue_from(project, q->run_id, &state, &spec, hold, err);
    } else {
        /* The name of a pattern file of the project, otherwise of a piece. */
        const char *app = q->workflow ? q->workflow : q->app ? q->app : "";
        file = app[0] == '/' ? stet_strdup(app) : stet_file_join(q->root, app);
        if (app[0] && stet_file_exists(file))
            spec.pattern = file;
        else
            spec.piece = app;
        spec.lend = stet_value_type(q->inputs) == STET_TYPE_OBJECT ? q->inputs : stet_value_null();
    }
    if (status == STET_OK) {
        stet_drive_outcome o;
        status = stet_drive(project, &spec, &o, err);
        out->ran = (int64_t)o.report.ran;
        out->stood = (int64_t)o.stood;
        snprintf(out->run_id, sizeof out->run_id, "%s", o.run_id ? o.run_id : "");
        out->verdict = STET_DRIVE_COMPLETED;
        if (o.occupied) {
            out->verdict = STET_DRIVE_WAITING;
            snprintf(out->reason, sizeof out->reason, "somebody else drives the piece");
            if (err)
                stet_error_clear(err);
            status = STET_OK;
        } else if (status == STET_CANCELLED) {
            out->verdict = STET_DRIVE_STOPPED;
            snprintf(out->reason, sizeof out->reason, "stopped");
            if (err)
                stet_error_clear(err);
            status = STET_OK;
        } else if (o.report.failed > 0 || o.report.aside > 0) {
            drive_failure first;
            drive_first_failure(o.report.problems, o.failed_before, &first);
            out->verdict = STET_DRIVE_FAILED;
            snprintf(out->reason, sizeof out->reason, "%s: %s", first.node, first.message);
        }
        stet_drive_outcome_release(&o);
    }
    if (status == STET_CONFLICT && q->no_wait && again && is_completed(project, q->run_id)) {
        if (err)
            stet_error_clear(err);
        *out = (stet_drive_result){.verdict = STET_DRIVE_COMPLETED};
        snprintf(out->run_id, sizeof out->run_id, "%s", q->run_id);
        status = STET_OK;
    }
    stet_value_release(hold[4]);
    stet_state_release(&state);
    stet_free(file);
    stet_project_close(project);
    return status;
}
