/* drive.h - how the fleet starts a drive, without depending on the driver.
 *
 * Resume, rerun and the queue's workers pass a run (or what to run) to one function, which the surface provides. It
 * drives to the end, or one task with `once`, and reports the verdict. It may be called from several threads at once
 * with different requests; it opens its own handles.
 *
 * It returns STET_OK with a verdict when the drive came to its own end, whatever that was. Any other status means that
 * there was no verdict (an I/O error, a lock): trying again may help unless the status says otherwise.
 */
#ifndef STET_FLEET_DRIVE_H
#define STET_FLEET_DRIVE_H

#include "base/error.h"

typedef enum stet_drive_verdict {
    STET_DRIVE_COMPLETED, /* everything requested is up to date */
    STET_DRIVE_FAILED,    /* a task failed */
    STET_DRIVE_BLOCKED,   /* it can't continue: something it needs is not configured */
    STET_DRIVE_STOPPED,   /* stopped on request; the rest can be resumed */
    STET_DRIVE_PAUSED,    /* `once`: one task ran, more are left */
    STET_DRIVE_WAITING    /* `no_wait`: somebody else drives the piece; nothing has run */
} stet_drive_verdict;

typedef struct stet_drive_request {
    const char *root;     /* real path of the project */
    const char *run_id;   /* the run to continue, if it is there or `app` and `workflow` are NULL; NULL: start one */
    const char *app;      /* what to start if run_id is NULL: a pattern or piece */
    const char *workflow; /* the same, by workflow */
    stet_value inputs;    /* object or null, if run_id is NULL */
    const char *actor;
    bool once;    /* one task, then stop */
    bool no_wait; /* do not wait for a piece that somebody else drives */
    /* Reuse up-to-date results, which is what a drive does anyway; false: the driver's default. */
    bool incremental;
    /* Called between tasks: stop? May be NULL. `context` is the caller's. */
    bool (*cancelled)(void *context);
    void (*progress)(void *context, int64_t done, int64_t total, const char *note);
    /* What a task printed (stet_drive_spec of drive/drive.h). May be NULL. */
    void (*output)(void *context, const char *node, const char *bytes, size_t len, bool live);
    bool live;
    /* A run begins, of which nothing is on disk yet; another status than STET_OK ends the drive. May be NULL. */
    stet_status (*begun)(void *context, const char *run_id, stet_error *err);
    void *context;
} stet_drive_request;

typedef struct stet_drive_result {
    stet_drive_verdict verdict;
    char run_id[256];   /* the run that was driven; "" if everything was up to date */
    int64_t ran, stood; /* tasks executed, actions that were up to date */
    char reason[512];   /* why it did not complete; may be empty */
} stet_drive_result;

typedef stet_status (*stet_fleet_driver)(const stet_drive_request *request, stet_drive_result *result, stet_error *err);

const char *stet_drive_verdict_name(stet_drive_verdict v);
/* The `drive` member of a result: {status, runId, ran, stood, reason}. Belongs to the caller. */
stet_value stet_drive_result_value(const stet_drive_result *r);

#endif
