/* result.c - the result that a run shows: fresh on one snapshot, or after a failure the last good values. */

#include <string.h>

#include "base/text.h"
#include "drive/drive_internal.h"

#define MAX_TRIES 5

/* Were actions put aside only because others kept changing what they read? Those in a cycle are put aside at every
 * attempt. */
static bool only_conflicts(const stet_sched_report *r) {
    bool only = true;
    for (size_t i = 0; i < stet_value_count(r->problems) && only; i++) {
        stet_value code = stet_value_get(stet_value_get(stet_value_at(r->problems, i), "error"), "code");
        only = stet_value_text_is(code, "conflict");
    }
    return only;
}

static bool may_be_fresh(const driver *d) {
    const stet_sched_report *r = &d->out->report;
    return !d->spec->observe_only && r->failed == 0 && (r->aside == 0 || only_conflicts(r));
}

stet_status drive_settle_again(driver *d, size_t ran, stet_error *err) {
    const stet_sched_report *was = &d->out->report;
    stet_sched_report r = {0};
    stet_status status = stet_sched_settle(d->sched, &r, err);
    size_t more = was->ran + ran;
    size_t moved = d->out->part || more < r.stood ? more : r.stood;
    r.ran += moved;
    r.restored += was->restored;
    r.stood -= d->out->part ? 0 : moved;
    r.runs += was->runs + ran;
    r.failed_now += was->failed_now;
    r.dropped += was->dropped;
    r.unchanged += was->unchanged;
    r.effects += was->effects;
    r.flushes += was->flushes;
    for (size_t i = 0; i < sizeof r.causes / sizeof *r.causes; i++)
        r.causes[i] += was->causes[i];
    drive_take_report(d, &r);
    return status;
}

void drive_first_failure(stet_value problems, stet_value failed_before, drive_failure *out) {
    stet_value first = stet_value_at(stet_value_count(problems) ? problems : failed_before, 0);
    out->piece = stet_value_text_at_or(first, "piece", "", &out->hold[0]);
    out->node = stet_value_text_at_or(first, "node", "an action", &out->hold[1]);
    out->message = stet_value_text_at_or(stet_value_get(first, "error"), "message", "failed", &out->hold[2]);
}

stet_status drive_read_result(driver *d, stet_error *err) {
    stet_drive_outcome *o = d->out;
    char *doc = stet_piece_doc(d->piece);
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    o->has_result = true;
    stet_docname name = stet_piece_at(d->piece, doc);
    stet_sched_want want = {.cell = {name, stet_path_ref(&path)}, .parts = d->parts.at, .part_count = d->parts.len};
    stet_status status = STET_FAILED, settled = STET_OK;
    for (int tries = 0; tries < MAX_TRIES && status == STET_FAILED && may_be_fresh(d) && settled == STET_OK; tries++) {
        size_t ran;
        stet_error_clear(&o->result_error);
        status = stet_sched_get_fresh(d->sched, &want, &ran, &o->result, &o->result_error);
        if (status != STET_CANCELLED && (ran > 0 || o->report.aside > 0))
            settled = drive_settle_again(d, ran, err);
    }
    if (status == STET_FAILED && settled == STET_OK && !may_be_fresh(d)) {
        stet_error_clear(&o->result_error);
        status = stet_sched_get(d->sched, name.id, name.scope, stet_path_ref(&path), &o->result, &o->result_error);
    }
    stet_path_release(&path);
    stet_free(doc);
    if (status == STET_CANCELLED && settled == STET_OK) {
        settled = status;
        if (err)
            stet_error_move(err, &o->result_error);
    }
    return settled; /* a result that can't be shown does not fail the run */
}
