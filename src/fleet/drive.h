/* drive.h - how the fleet starts a drive, without knowing what one is.
 *
 * Resume, rerun and the queue's workers hand a run (or what to run) to one function, which the surface gives them. It
 * drives to the end, or one task with `once`, and says what became of it. It may be called from several threads at once
 * with different requests; it opens handles of its own.
 *
 * Returns STET_OK with a verdict when the drive came to an end of its own, whatever that was; a status other than OK
 * means that there was no verdict (an I/O error, a lock): trying again may help unless the status says it can't.
 */
#ifndef STET_FLEET_DRIVE_H
#define STET_FLEET_DRIVE_H

#include "base/error.h"

typedef enum stet_drive_verdict {
    STET_DRIVE_COMPLETED, /* everything asked for stands */
    STET_DRIVE_FAILED,    /* a task failed */
    STET_DRIVE_BLOCKED,   /* it can't go on without somebody: something it needs is not configured */
    STET_DRIVE_STOPPED,   /* asked to stop; what is left can be resumed */
    STET_DRIVE_PAUSED     /* `once`: one task ran, more are left */
} stet_drive_verdict;

typedef struct stet_drive_request {
    const char *root;     /* real path of the project */
    const char *run_id;   /* the run to go on with, or NULL: start one */
    const char *app;      /* what to start, when run_id is NULL: a pattern or piece */
    const char *workflow; /* or this */
    stet_value inputs;    /* object or null, when run_id is NULL */
    const char *actor;
    bool once;        /* one task, then stop */
    bool incremental; /* reuse what stands (what a drive does anyway); false: as the driver's default says */
    /* Asked between tasks: stop? May be NULL. `context` is the caller's. */
    bool (*cancelled)(void *context);
    void (*progress)(void *context, int64_t done, int64_t total, const char *note);
    void *context;
} stet_drive_request;

typedef struct stet_drive_result {
    stet_drive_verdict verdict;
    char run_id[256];   /* the run that was driven; "" if none was left (everything stood) */
    int64_t ran, stood; /* tasks executed, actions that stood */
    char reason[512];   /* why not completed; may be empty */
} stet_drive_result;

typedef stet_status (*stet_fleet_driver)(const stet_drive_request *request, stet_drive_result *result, stet_error *err);

const char *stet_drive_verdict_name(stet_drive_verdict v);
/* {status, runId, ran, stood, reason}: `drive` of a result. Belongs to the caller. */
stet_value stet_drive_result_value(const stet_drive_result *r);

#endif
