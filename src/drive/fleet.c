/* fleet.c - drives runs for the fleet: resume, rerun and the queue's workers call stet_drive_fleet. */

#include <stdio.h>

#include "base/text.h"
#include "drive/drive_internal.h"
#include "fleet/state.h"
#include "os/file.h"

stet_status stet_drive_fleet(const stet_drive_request *q, stet_drive_result *out, stet_error *err) {
    stet_project *project;
    *out = (stet_drive_result){0};
    stet_status status = stet_project_open(q->root, &project, err);
    if (status != STET_OK)
        return status;
    stet_drive_spec spec = {.run_id = q->run_id,
                            .actor = q->actor,
                            .retry_failed = true,
                            .ctx = q->context,
                            .cancelled = q->cancelled,
                            .progress = q->progress};
    stet_state state = {0};
    char *file = NULL;
    stet_value hold[2] = {stet_value_null(), stet_value_null()};
    if (q->run_id) {
        char *relative = stet_asprintf("runs/%s/state.json", q->run_id);
        char *path = stet_project_path(project, relative);
        status = stet_state_read(path, q->run_id, NULL, &state, err);
        stet_free(path);
        stet_free(relative);
        if (status == STET_OK) {
            spec.piece = stet_value_text_at(state.root, "piece", &hold[0]);
            spec.demand = stet_value_get(stet_value_get(state.root, "options"), "demand");
            /* A rerun that has not begun brings its inputs, and uses the pattern file of the first run. A resumed run
             * has both already. */
            if (state.counts.tasks[STET_TASK_COMPLETED] + state.counts.tasks[STET_TASK_FAILED] == 0 &&
                stet_value_type(stet_value_get(state.root, "provenance")) == STET_TYPE_OBJECT) {
                const char *from = stet_value_text_at(stet_value_get(state.root, "options"), "pattern", &hold[1]);
                spec.set = stet_value_get(state.root, "inputs");
                spec.pattern = from && stet_file_exists(from) ? from : NULL;
            }
            if (!spec.piece)
                status = stet_fail(err, STET_UNSUPPORTED, "run %s does not say which piece it is of", q->run_id);
        }
    } else {
        /* The name of a pattern file of the project, otherwise of a piece. */
        const char *app = q->workflow ? q->workflow : q->app ? q->app : "";
        file = app[0] == '/' ? stet_strdup(app) : stet_file_join(q->root, app);
        if (app[0] && stet_file_exists(file))
            spec.pattern = file;
        else
            spec.piece = app;
        spec.set = stet_value_type(q->inputs) == STET_TYPE_OBJECT ? q->inputs : stet_value_null();
    }
    if (status == STET_OK) {
        stet_drive_outcome o;
        status = stet_drive(project, &spec, &o, err);
        out->ran = (int64_t)o.report.ran;
        out->stood = (int64_t)o.stood;
        snprintf(out->run_id, sizeof out->run_id, "%s", o.run_id ? o.run_id : "");
        out->verdict = STET_DRIVE_COMPLETED;
        if (status == STET_CANCELLED) {
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
