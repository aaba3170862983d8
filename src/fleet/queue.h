/* queue.h - what should run, in which order: $STET_HOME/registry/queue.json.
 *
 *     stet_queue q = {.home = home};
 *     status = stet_queue_add(&q, &(stet_queue_spec){.app = "report", .repo = root, .priority = 5}, &entry, &err);
 *     status = stet_queue_work(&q, &opts, &report, &err);         // leases entries, drives them, says what became of
 * them
 *
 * The file is {"schemaVersion":1,"entries":[...]}. Readers take no lock. A change is one replacement of the file under
 * queue.lock, so that after a crash an entry is in its old state or in its new one, never lost, never twice.
 *
 *     pending --lease--> leased --done--> done          the drive completed
 *        ^                 |  `--failed--> failed        the drive came to a verdict, and that was a failure
 *        |                 |
 *        `-----------------+      the lease ended without a verdict (its holder died, or did not renew it in time):
 *                                 back, or `parked` when it was leased max_attempts times
 *     pending --drain--> drained      handed to somebody outside; `requeue`, `done` and `failed` end that
 *     any but done --cancel--> cancelled;  parked, failed, cancelled, drained --requeue--> pending
 *
 * A lease names its holder (process, host) and a random token; only the token can renew or settle it. It ends when its
 * holder is a process of this machine that is gone, or when its time is over. Leases are looked at by whoever wants to
 * lease.
 *
 * Order: priority (lower first), then enqueuedAt, then id.
 */
#ifndef STET_FLEET_QUEUE_H
#define STET_FLEET_QUEUE_H

#include "base/error.h"
#include "fleet/drive.h"

#define STET_QUEUE_SCHEMA       1
#define STET_QUEUE_MAX_ATTEMPTS 3
#define STET_QUEUE_LEASE_MS     60000
#define STET_QUEUE_RETRY_MS     1000
#define STET_QUEUE_ENTRIES_MAX  1000000

typedef enum stet_queue_status {
    STET_QUEUED_PENDING,
    STET_QUEUED_LEASED,
    STET_QUEUED_DRAINED,
    STET_QUEUED_DONE,
    STET_QUEUED_FAILED,
    STET_QUEUED_CANCELLED,
    STET_QUEUED_PARKED,
    STET_QUEUE_STATUSES
} stet_queue_status;

typedef struct stet_queue {
    const char *home;
    int lock_timeout_ms; /* 0: 30 s */
} stet_queue;

typedef struct stet_queue_spec {
    const char *app, *workflow, *run_id; /* at least one of them: an entry that names nothing is STET_INVALID */
    const char *repo;                    /* real path of the project */
    int64_t priority;
    stet_value inputs; /* object or null; for the app */
    const char *note;
    int64_t max_attempts; /* 0: STET_QUEUE_MAX_ATTEMPTS */
} stet_queue_spec;

const char *stet_queue_status_name(stet_queue_status s);
bool stet_queue_status_of_name(const char *name, stet_queue_status *out);

/* All entries in order (objects as on disk), perhaps of one project or one status. Belongs to the caller. */
STET_CHECKED stet_status stet_queue_list(const stet_queue *q, const char *repo, const char *status, stet_value *out,
                                         stet_error *err);
/* Entry by id, or by the only id that begins so (at least 6 characters). */
STET_CHECKED stet_status stet_queue_show(const stet_queue *q, const char *id, stet_value *out, stet_error *err);
STET_CHECKED stet_status stet_queue_add(const stet_queue *q, const stet_queue_spec *spec, stet_value *entry,
                                        stet_error *err);
/* Marks the next pending entries `drained`, at most `limit` (0: none), and returns them; `remaining` are still pending.
 */
STET_CHECKED stet_status stet_queue_drain(const stet_queue *q, const char *repo, size_t limit, stet_value *drained,
                                          size_t *remaining, stet_error *err);

/* A move that a person asks for. STET_CONFLICT if the table above has no such arrow from where the entry is. */
typedef enum stet_queue_move {
    STET_QUEUE_CANCEL,
    STET_QUEUE_REQUEUE,
    STET_QUEUE_DONE,
    STET_QUEUE_FAIL,
    STET_QUEUE_PRIORITY /* only the priority changes */
} stet_queue_move;
STET_CHECKED stet_status stet_queue_change(const stet_queue *q, const char *id, stet_queue_move move, int64_t priority,
                                           const char *note, stet_value *entry, stet_error *err);
bool stet_queue_allowed(stet_queue_status from, stet_queue_move move, stet_queue_status *to);

/* Leases the next entry for this process; STET_NOT_FOUND if none is ready (`*ready_at` then tells when one will be, in
 * milliseconds since 1970; 0: none waits; may be NULL). `token` is what settles it. Ended leases of
 * others are returned or parked on the way. */
#define STET_QUEUE_TOKEN 33
STET_CHECKED stet_status stet_queue_lease(const stet_queue *q, const char *repo, int64_t lease_ms,
                                          char token[STET_QUEUE_TOKEN], stet_value *entry, int64_t *ready_at,
                                          stet_error *err);
/* STET_CONFLICT if the lease is no longer this token's. */
STET_CHECKED stet_status stet_queue_renew(const stet_queue *q, const char *id, const char *token, int64_t lease_ms,
                                          stet_error *err);
typedef enum stet_queue_outcome {
    STET_OUTCOME_DONE,
    STET_OUTCOME_FAILED, /* a verdict */
    STET_OUTCOME_PARKED, /* no attempt can help */
    STET_OUTCOME_RETRY,  /* no verdict: back, not before `retry_ms` doubled per attempt; parked if that was the last one
                          */
    STET_OUTCOME_RETURN  /* not its fault (the worker was asked to stop): back, and the attempt does not count */
} stet_queue_outcome;
/* `run_id` and `note` may be NULL. STET_CONFLICT if the lease is no longer this token's. */
STET_CHECKED stet_status stet_queue_settle(const stet_queue *q, const char *id, const char *token,
                                           stet_queue_outcome outcome, int64_t retry_ms, const char *run_id,
                                           const char *note, stet_value *entry, stet_error *err);
/* Drops entries that ended before `before_ms`; says how many. */
STET_CHECKED stet_status stet_queue_prune(const stet_queue *q, int64_t before_ms, bool dry_run, size_t *dropped,
                                          stet_error *err);

typedef struct stet_queue_work_opts {
    stet_fleet_driver driver;
    const char *repo; /* or NULL: all */
    size_t workers;   /* threads, at least 1 */
    size_t limit;     /* entries; SIZE_MAX: until none is ready */
    int64_t lease_ms; /* 0: STET_QUEUE_LEASE_MS */
    int64_t retry_ms; /* 0: STET_QUEUE_RETRY_MS */
    const char *actor;
    bool (*cancelled)(void *context);
    /* An entry was settled; called by one thread at a time. May be NULL. */
    void (*settled)(void *context, stet_value entry, const stet_drive_result *result);
    void *context;
} stet_queue_work_opts;

typedef struct stet_queue_work_report {
    size_t done, failed, returned, parked;
} stet_queue_work_report;

/* Leases and drives until nothing is ready, `limit` is reached or `cancelled` says so. A lease is renewed while its
 * drive goes on. */
STET_CHECKED stet_status stet_queue_work(const stet_queue *q, const stet_queue_work_opts *opts,
                                         stet_queue_work_report *report, stet_error *err);

#endif
