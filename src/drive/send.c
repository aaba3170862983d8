/* send.c - stet_piece_send, the public way to send an event. */

#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "drive/drive.h"

stet_status stet_piece_send(stet_project *project, const stet_event *given, stet_event_result *result,
                            stet_error *err) {
    if (!project)
        return stet_fail_null(err);
    stet_event known, *event = &known;
    stet_status status = stet_options_read(event, sizeof *event, given, "stet_event", err);
    if (status != STET_OK)
        return status;
    stet_sched_sent sent;
    stet_drive_event send = {.stream = event->stream, .event = event->value, .id = event->id, .sent = &sent};
    stet_drive_spec spec = {
        .space = event->space, .branch = event->branch, .piece = event->piece, .scope = event->scope, .send = &send};
    stet_drive_outcome out;
    if (!event->piece || !event->stream)
        return stet_fail(err, STET_INVALID, "an event needs a piece and a stream");
    status = stet_drive(project, &spec, &out, err);
    stet_drive_outcome_release(&out);
    if (status == STET_OK && result) {
        *result = (stet_event_result){.applied = sent.applied, .seq = sent.seq};
        snprintf(result->id, sizeof result->id, "%s", sent.id);
    }
    return status;
}
