/* invalid.c - refuses what rests on a piece whose pattern file is invalid.
 *
 * Such a piece stays as it was, so that no mark reaches what reads it. What reads it is found in a copy of the project,
 * in which all actions of such pieces are unknown (drive_bring_up).
 */

#include "drive/drive_internal.h"
#include "drive/scratch.h"

static stet_status look_in(driver *copy, const stet_docname *name, stet_pathref path, stet_value *out,
                           stet_error *err) {
    stet_sched_opts opts = {0}; /* whoever only reads has no use for a memory of runs */
    stet_status status = stet_space_open(copy->project, copy->spec->space, STET_SPACE_READ_ONLY, &copy->space, err);
    if (status == STET_OK) {
        stet_observe_switch(copy->space, stet_drive_persist(copy->project));
        status = stet_sched_open(copy->project, copy->space, copy->spec->branch, &opts, &copy->sched, err);
    }
    if (status == STET_OK)
        status = stet_sched_outdated_makers(copy->sched, name, path, out, err);
    stet_sched_close(copy->sched);
    stet_space_close(copy->space);
    return status;
}

stet_status drive_refuse_invalid(driver *d, const stet_docname *name, stet_pathref path, stet_error *err) {
    stet_drive_spec spec = {.space = stet_space_name(d->space), .branch = d->spec->branch};
    stet_scratch scratch;
    stet_value makers = stet_null();
    bool changed = false;
    if (stet_map_len(&d->wrong) == 0)
        return STET_OK;
    stet_status status = stet_drive_preview(d->project, &spec, &scratch, &changed, err);
    if (status != STET_OK || !changed)
        return status;
    driver copy = {.project = scratch.project, .spec = &spec};
    status = look_in(&copy, name, path, &makers, err);
    if (status == STET_OK && stet_count(makers) > 0) {
        const void *message;
        size_t len, i = 0;
        stet_slot *slot;
        stet_value first = stet_at(makers, 0), piece = stet_get(first, "piece"), node = stet_get(first, "node");
        bool any = stet_map_next(&d->wrong, &i, &message, &len, &slot);
        status = stet_fail(err, STET_INVALID, "not up to date: %s/%s; %.*s", stet_as_string(&piece, NULL),
                           stet_as_string(&node, NULL), any ? (int)len : 0, any ? (const char *)message : "");
        stet_hint(err, "mend the pattern file; stet status lists what rests on it");
    }
    stet_release(makers);
    stet_scratch_close(&scratch);
    return status;
}
