/* claim.h - who runs a call: one small record for each execution key, behind the ref refs/exec-claims/KEY.
 *
 *     stet_claim c;
 *     bool there;
 *     status = stet_claim_get(remote, key, &there, &c, &err);
 *     c.owner = me; c.attempt++; c.lease_ms = now + lease;
 *     status = stet_claim_swap(remote, key, there ? &before : NULL, &c, NULL, 0, &err);  // STET_CONFLICT: too late
 *
 * A record says in which state the work is, who owns it and until when, which attempt it is, what the backend calls the
 * job, what was asked for (so that somebody who has nothing but the repository can run it), and what came of it. Every
 * change is a compare-and-swap of the whole record by its hash, and every attempt has a number of its own: an owner
 * whose lease was taken over holds a record that is no longer there, and can publish nothing. Two keys have two refs,
 * and wait for each other in nothing but the repository's transactions. */
#ifndef STET_EXEC_CLAIM_H
#define STET_EXEC_CLAIM_H

#include "exec/repo.h"

#define STET_CLAIMS          "refs/exec-claims/"
#define STET_CLAIM_OWNER_MAX 256

typedef enum stet_claim_state {
    STET_CLAIM_QUEUED,    /* nobody's: a worker may take it */
    STET_CLAIM_CLAIMED,   /* owned, and not yet with the backend, as far as is known */
    STET_CLAIM_RUNNING,   /* `job` is what the backend calls it */
    STET_CLAIM_OK,        /* ended: `result` is a DAG */
    STET_CLAIM_ERROR,     /* the same */
    STET_CLAIM_CANCELLED, /* given up by the execution of the request */
    STET_CLAIM_STATES
} stet_claim_state;
const char *stet_claim_state_name(stet_claim_state state);

typedef struct stet_claim {
    stet_claim_state state;
    char owner[STET_CLAIM_OWNER_MAX]; /* "" : nobody */
    int64_t attempt;                  /* from 1; counts changes of ownership and of job */
    int64_t lost;                     /* how often a job of it was lost */
    int64_t lease_ms, heartbeat_ms;   /* UTC */
    stet_value job;                   /* the backend's, or null */
    stet_value request;               /* {"node","function","inputs":[ID...],"execution","ref"} */
    stet_hash result;
    stet_hash id; /* what the ref names */
} stet_claim;

/* `*out` belongs to the caller (stet_claim_release) if *there. A record that makes no sense is STET_CORRUPT. */
STET_CHECKED stet_status stet_claim_get(stet_repo *r, stet_hash key, bool *there, stet_claim *out, stet_error *err);
/* By what the ref names. */
STET_CHECKED stet_status stet_claim_read(stet_repo *r, stet_hash id, stet_claim *out, stet_error *err);
void stet_claim_release(stet_claim *c);
stet_claim stet_claim_copy(const stet_claim *c); /* the caller's */

/* Replaces `before` (NULL: there is none) by `after`, whose id is set, and swaps other refs with it. Belongs to the
 * transaction that is open, if one is. STET_CONFLICT: the ref names something else, and nothing has happened. */
STET_CHECKED stet_status stet_claim_swap(stet_repo *r, stet_hash key, const stet_claim *before, stet_claim *after,
                                         const stet_ref_swap *more, size_t more_count, stet_error *err);

/* Forgets claims that ended before `before_ms`: whoever could still follow them is gone, and results are pinned. Their
 * number is added to `*count`. */
STET_CHECKED stet_status stet_claim_sweep(stet_repo *r, int64_t before_ms, bool dry_run, int64_t *count,
                                          stet_error *err);

#endif
