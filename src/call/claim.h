/* claim.h - who runs a call: one small record for each execution key, in a hub (repo/hub.h).
 *
 *     stet_claim before, after;
 *     bool there;
 *     stet_status status = stet_claim_get(hub, key, &there, &before, &err);
 *     if (status != STET_OK || !there)
 *         return status;
 *     after = stet_claim_copy(&before);
 *     snprintf(after.owner, sizeof after.owner, "%s", me);
 *     after.attempt++;
 *     after.lease_for_ms = lease;
 *     status = stet_claim_swap(hub, key, &before, &after, &err); // STET_CONFLICT: too late
 *     stet_claim_release(&before);
 *     stet_claim_release(&after);
 *
 * A record holds the state of the work, its owner and lease, the number of the attempt, the backend's name for the job,
 * the request (so that a worker that has only the hub can run it), and the outcome. Every change is a compare-and-swap
 * of the whole record, and every attempt has its own number. So an owner whose lease was taken over holds a record that
 * no longer exists, and can't publish anything. Two keys never wait for each other.
 */
#ifndef STET_EXEC_CLAIM_H
#define STET_EXEC_CLAIM_H

#include "repo/hub.h"

#define STET_CLAIM_OWNER_MAX 256

typedef enum stet_claim_state {
    STET_CLAIM_QUEUED,    /* has no owner: a worker may take it */
    STET_CLAIM_CLAIMED,   /* owned, and not yet submitted to the backend, as far as is known */
    STET_CLAIM_RUNNING,   /* `job` is the backend's name for it */
    STET_CLAIM_OK,        /* succeeded: `result` is a DAG */
    STET_CLAIM_ERROR,     /* failed: `result` is a DAG */
    STET_CLAIM_CANCELLED, /* cancelled by the execution of the request */
    STET_CLAIM_STATES
} stet_claim_state;
const char *stet_claim_state_name(stet_claim_state state);

typedef struct stet_claim {
    stet_claim_state state;
    char owner[STET_CLAIM_OWNER_MAX]; /* "": none */
    int64_t attempt;                  /* from 1; counts changes of ownership and of job: the fencing number */
    int64_t lost;                     /* how many of its jobs were lost */
    stet_value job;                   /* the backend's name for the job, or null */
    stet_value request;               /* {"node","function","inputs":[ID...],"execution","ref","tries"} */
    stet_hash result;
    bool passing; /* in state error: the failure is not kept */
    bool retry;   /* in state error: and worth another try */
    stet_hash id; /* the version that the hub has of it */
    /* By the hub's clock: when it was last swapped, what was left of its lease when it was read (zero or less: the lease
     * has ended), and, for a swap, how long its lease is from then on. */
    int64_t changed_ms, left_ms, lease_for_ms;
} stet_claim;

/* Reads the claim of a key. `*out` belongs to the caller (stet_claim_release) if *there. A malformed record is
 * STET_CORRUPT. */
STET_CHECKED stet_status stet_claim_get(stet_hub *h, stet_hash key, bool *there, stet_claim *out, stet_error *err);
void stet_claim_release(stet_claim *c);
stet_claim stet_claim_copy(const stet_claim *c); /* belongs to the caller */

/* Replaces `before` (NULL: there is none) by `after`, whose id is set. STET_CONFLICT: somebody else was faster, and
 * nothing has happened. If the hub's answer gets lost, the claim is read back to find out. STET_NOT_FOUND: the result or
 * the node is not stored in the hub. */
STET_CHECKED stet_status stet_claim_swap(stet_hub *h, stet_hash key, const stet_claim *before, stet_claim *after,
                                         stet_error *err);

/* Forgets claims that ended more than `age_ms` ago: nobody can still follow them, and results are pinned. Adds their
 * number to `*count`. */
STET_CHECKED stet_status stet_claim_sweep(stet_hub *h, int64_t age_ms, bool dry_run, int64_t *count, stet_error *err);

#endif
