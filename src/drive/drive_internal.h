/* drive_internal.h - what the files of a drive share. Nobody else includes it. */
#ifndef STET_DRIVE_DRIVE_INTERNAL_H
#define STET_DRIVE_DRIVE_INTERNAL_H

#include "drive/drive.h"
#include "drive/estimate.h"
#include "drive/lookout.h"

typedef struct driver {
    stet_project *project;
    const stet_drive_spec *spec;
    stet_drive_outcome *out;
    stet_space *space;
    stet_sched *sched;
    stet_files *files;
    stet_lookout *follow; /* the watch of a drive that goes on */
    char *piece;
    stet_runfile *run;
    bool run_failed; /* the run's files can't be written: said once, at the end */
    stet_error run_error;
    stet_estimate *estimate; /* from the first action that is worth it; NULL before */
    size_t done, running, queued, total;
    int64_t shown_us; /* when progress was last told */
} driver;

/* drive_run.c: the files of the run, made with the first action that is worth a line in them or at the end, and what is
 * told while it goes. The first three are the scheduler's callbacks; `ctx` is the driver. */
void drive_on_event(void *ctx, const stet_sched_event *e);
void drive_on_log(void *ctx, const char *node, const char *stream, const char *bytes, size_t len);
bool drive_is_cancelled(void *ctx);
/* drive_explain.c: what does not stand, what may follow from it, and what waits, into the outcome. */
STET_CHECKED stet_status drive_explain(driver *d, stet_error *err);
/* Completes and closes the run's files, if there are any or should be. `status`: how the drive went; what it is then.
 */
STET_CHECKED stet_status drive_end_run(driver *d, stet_status status, stet_error *err);

#endif
