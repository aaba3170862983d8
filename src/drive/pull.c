/* pull.c - stet_piece_pull, the public way to run a piece. */

#include <string.h>

#include "base/options.h"
#include "drive/drive_internal.h"

/* Reports the first failure as the error of the pull. */
static stet_status say_failure(const stet_drive_outcome *o, stet_error *err) {
    drive_failure first;
    drive_first_failure(o->report.problems, o->failed_before, &first);
    const char *why = first.message;
    size_t len = strlen(o->piece);
    bool named = strncmp(why, o->piece, len) == 0 && why[len] == '/'; /* some messages already begin with the name */
    stet_fail(err, STET_FAILED, "%s%s%s%s%s", named ? "" : o->piece, named ? "" : "/", named ? "" : first.node,
              named ? "" : ": ", why);
    if (stet_value_count(o->report.problems) == 0)
        stet_hint(
            err, "it failed before, and nothing that it read has changed since: without no_retry_failed it runs again");
    return STET_FAILED;
}

stet_status stet_piece_pull(stet_project *project, const stet_pull_request *request, stet_value *result,
                            stet_value *report, stet_error *err) {
    if (!project)
        return stet_fail_null(err);
    stet_pull_request known, *q = &known;
    stet_status status = stet_options_read(q, sizeof *q, request, "stet_pull_request", err);
    if (status != STET_OK)
        return status;
    if (!q->pattern && !q->piece)
        return stet_fail(err, STET_INVALID, "a pattern or a piece must be named");
    stet_drive_spec spec = {.space = q->space,
                            .branch = q->branch,
                            .pattern = q->pattern,
                            .piece = q->piece,
                            .scope = q->scope,
                            .set = q->set,
                            .nodes = q->nodes,
                            .demand = q->demand,
                            .jobs = q->jobs,
                            .stop_on_failure = !q->keep_going,
                            .retry_failed = !q->no_retry_failed,
                            .dry_run = q->dry_run,
                            .result = result   ? STET_DRIVE_NEED_RESULT
                                      : report ? STET_DRIVE_SHOW_RESULT
                                               : STET_DRIVE_NO_RESULT,
                            .ctx = q->ctx,
                            .cancelled = q->cancelled};
    stet_drive_outcome out;
    status = stet_drive(project, &spec, &out, err);
    if (status == STET_OK && result)
        *result = stet_value_retain(out.result);
    if (status == STET_OK && report)
        *report = stet_drive_outcome_value(&out);
    if (status == STET_OK && (out.report.failed > 0 || out.report.aside > 0))
        status = say_failure(&out, err);
    stet_drive_outcome_release(&out);
    return status;
}
