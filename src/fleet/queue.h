/* queue.h - what should run, in which order: $STET_HOME/registry/queue.json.
 *
 *     stet_queue q = {.home = home};
 *     stet_queue_spec spec = {.app = "report", .repo = root, .priority = 5};
 *     stet_status status = stet_queue_add(&q, &spec, &entry, &err);
 *     if (status == STET_OK) // leases entries, drives them and settles them
 *         status = stet_queue_work(&q, &opts, &report, &err);
 *
 * The file is {"schemaVersion":1,"entries":[...]}. Readers take no lock. A change replaces the file once, under
 * queue.lock. So after a crash an entry is in its old state or in its new one, never lost and never there twice.
 *
 *   pending --lease--> leased
 *   leased --done--> done              the drive completed
 *   leased --failed--> failed          the drive ended with a verdict, which was a failure
 *   leased --lease ended--> pending    no verdict: its holder died, or did not renew it in time; `parked` instead if it
 *                                      was leased max_attempts times
 *   pending --drain--> drained         handed to somebody outside; `requeue`, `done` and `failed` end that
 *   any but done --cancel--> cancelled
 *   parked, failed, cancelled, drained --requeue--> pending
 *
 * A lease names its holder (process, host) and a random token; only the token can renew or settle it. It ends when its
 * holder is a process of this machine that has ended, or when its time is over. Leases are checked when somebody wants
 * to lease.
 *
 * Order: priority (lower first), then enqueuedAt, then id; with `newest_first` the last two are turned round. The file
 * is always in the former order. An entry waits while another one of the same app or run in
 * the same project is leased; those after it proceed.
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
    bool newest_first;   /* of the entries of one priority the newest is taken first */
} stet_queue;

typedef struct stet_queue_spec {
    const char *app, *workflow, *run_id; /* at least one must be set, otherwise STET_INVALID */
    const char *repo;                    /* real path of the project */
    int64_t priority;
    stet_value inputs; /* object or null; for the app */
    const char *note;
    int64_t max_attempts; /* 0: STET_QUEUE_MAX_ATTEMPTS */
} stet_queue_spec;

const char *stet_queue_status_name(stet_queue_status s);
bool stet_queue_status_of_name(const char *name, stet_queue_status *out);

/* All entries in order (objects as on disk), optionally of one project or one status. Belongs to the caller. */
STET_CHECKED stet_status stet_queue_list(const stet_queue *q, const char *repo, const char *status, stet_value *out,
                                         stet_error *err);
/* An entry by id, by a unique beginning of it (at least 6 characters), or by a unique ending (at least 4). */
STET_CHECKED stet_status stet_queue_show(const stet_queue *q, const char *id, stet_value *out, stet_error *err);
STET_CHECKED stet_status stet_queue_add(const stet_queue *q, const stet_queue_spec *spec, stet_value *entry,
                                        stet_error *err);
/* Marks the next pending entries `drained`, at most `limit` (0: none), and returns them; `remaining` is the number
 * still pending. */
STET_CHECKED stet_status stet_queue_drain(const stet_queue *q, const char *repo, size_t limit, stet_value *drained,
                                          size_t *remaining, stet_error *err);

/* A move that a user requests. STET_CONFLICT: the table above has no such arrow from the entry's state. */
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

/* Leases the next entry for this process. STET_NOT_FOUND: none is ready; then `*ready_at` (may be NULL) tells when one
 * will be, in milliseconds since 1970 (0: none waits; now or earlier: when a lease ends). `token` settles the lease. Ended leases of others are returned
 * or parked on the way. */
#define STET_QUEUE_TOKEN 33
STET_CHECKED stet_status stet_queue_lease(const stet_queue *q, const char *repo, int64_t lease_ms,
                                          char token[STET_QUEUE_TOKEN], stet_value *entry, int64_t *ready_at,
                                          stet_error *err);
/* The same, but not an entry for which `but` (may be NULL) is true. */
STET_CHECKED stet_status stet_queue_lease_but(const stet_queue *q, const char *repo, int64_t lease_ms,
                                              bool (*but)(void *ctx, const char *id), void *ctx,
                                              char token[STET_QUEUE_TOKEN], stet_value *entry, int64_t *ready_at,
                                              stet_error *err);
/* STET_CONFLICT: the lease no longer belongs to this token. */
STET_CHECKED stet_status stet_queue_renew(const stet_queue *q, const char *id, const char *token, int64_t lease_ms,
                                          stet_error *err);
/* The entry gets this run. STET_CONFLICT: the lease no longer belongs to this token. */
STET_CHECKED stet_status stet_queue_begun(const stet_queue *q, const char *id, const char *token, const char *run_id,
                                          stet_error *err);
typedef enum stet_queue_outcome {
    STET_OUTCOME_DONE,
    /* A verdict: the drive failed. */
    STET_OUTCOME_FAILED,
    /* No further attempt can help. */
    STET_OUTCOME_PARKED,
    /* No verdict: back to pending, not before `retry_ms` doubled per attempt; parked if that was the last attempt. */
    STET_OUTCOME_RETRY,
    /* The worker was asked to stop: back to pending, and the attempt does not count. */
    STET_OUTCOME_RETURN
} stet_queue_outcome;
/* Settles a lease. `run_id` and `note` may be NULL. STET_CONFLICT: the lease no longer belongs to this token. */
STET_CHECKED stet_status stet_queue_settle(const stet_queue *q, const char *id, const char *token,
                                           stet_queue_outcome outcome, int64_t retry_ms, const char *run_id,
                                           const char *note, stet_value *entry, stet_error *err);
/* Removes entries that ended before `before_ms`; `*dropped` is their number. */
STET_CHECKED stet_status stet_queue_prune(const stet_queue *q, int64_t before_ms, bool dry_run, size_t *dropped,
                                          stet_error *err);

typedef struct stet_queue_work_opts {
    stet_fleet_driver driver;
    const char *repo; /* NULL: all */
    size_t workers;   /* threads, at least 1 */
    size_t limit;     /* maximum number of entries; SIZE_MAX: until none is ready */
    int64_t lease_ms; /* 0: STET_QUEUE_LEASE_MS */
    int64_t retry_ms; /* 0: STET_QUEUE_RETRY_MS */
    const char *actor;
    bool (*cancelled)(void *context);
    /* An entry was settled. Called by one thread at a time. May be NULL. */
    void (*settled)(void *context, stet_value entry, const stet_drive_result *result);
    /* What a task printed (fleet/drive.h). Called by one thread at a time. May be NULL. */
    void (*output)(void *context, const char *node, const char *bytes, size_t len, bool live);
    bool live;
    void *context;
} stet_queue_work_opts;

typedef struct stet_queue_work_report {
    size_t done, failed, returned, parked;
} stet_queue_work_report;

/* Leases and drives entries until none is ready, `limit` is reached or `cancelled` returns true. A lease is renewed
 * during its drive. */
STET_CHECKED stet_status stet_queue_work(const stet_queue *q, const stet_queue_work_opts *opts,
                                         stet_queue_work_report *report, stet_error *err);

#endif
