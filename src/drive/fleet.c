/* fleet.c - drives runs for the fleet: resume, rerun and the queue's workers call stet_drive_fleet. */

#include <stdio.h>

#include "base/text.h"
#include "drive/drive_internal.h"
#include "fleet/state.h"
#include "os/file.h"

/* What the run says about itself: its piece, what is demanded of it, and the argument that it has. */
static stet_status continue_from(stet_project *project, const char *id, stet_state *state, stet_drive_spec *spec,
                                 stet_value hold[4], stet_error *err) {
    char *relative = stet_asprintf("runs/%s/state.json", id), *path = stet_project_path(project, relative);
    stet_status status = stet_state_read(path, id, NULL, state, err);
    stet_free(path);
    stet_free(relative);
    if (status == STET_OK)
        status = stet_state_refuse_completed(state, id, err);
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
    spec->own_argument = stet_value_find(state->root, "argument", 8, &spec->argument);
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
    stet_drive_spec spec = {.run_id = q->run_id,
                            .actor = q->actor,
                            .retry_failed = true,
                            .record = true,
                            .alone = true,
                            .result = STET_DRIVE_SHOW_RESULT,
                            .no_wait = q->no_wait,
                            .ctx = q->context,
                            .cancelled = q->cancelled,
                            .progress = q->progress};
    stet_state state = {0};
    char *file = NULL;
    stet_value hold[4];
    if (q->run_id) {
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
    stet_state_release(&state);
    stet_free(file);
    stet_project_close(project);
    return status;
}
