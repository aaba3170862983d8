/* hub.h - a hub: the shared place of calls, with objects, refs and claims. Which kind it is, nobody above knows.
 *
 *     stet_hub *h;
 *     stet_status status = stet_hub_open("file:///srv/calls.db", 0, &h, &err);
 *     if (status != STET_OK)
 *         return status;
 *     status = stet_hub_send(h, mine, &node, 1, &err); // objects first ...
 *     stet_hub_claim next = {.key = key, .phase = STET_HUB_QUEUED, .node = node, .body = body};
 *     if (status == STET_OK)                           // ... then one swap that names them
 *         status = stet_hub_swap_claim(h, NULL, &next, &err);
 *     stet_hub_close(h);
 *
 * Rules that every kind follows:
 *
 *   H1. An object is stored only if everything that it names is stored (R1 of repo.h). A ref and a claim name stored
 *       objects.
 *   H2. A swap changes one ref or one claim, if it is as expected; otherwise nothing. No operation swaps two things. So
 *       a store that has nothing but conditional writes of single items can be a hub.
 *   H3. Times are the hub's. A lease is given as a duration and judged by the clock of the hub, never by that of a
 *       host: hosts with wrong clocks do not take work from each other.
 *   H4. The version of a claim is the hash of its body. A body that is written carries a nonce, so no two writes have
 *       the same version. A writer that got no answer reads the claim back, and knows by the version whether its write
 *       happened.
 *   H5. The objects that a claim names are kept for as long as the claim is there.
 *
 * Failures:
 *
 *   STET_CONFLICT     a swap came too late
 *   STET_NOT_FOUND    a swap names an object that is not stored (swept meanwhile: send it again); or there is no hub
 *   STET_UNSUPPORTED  the kind is not known, or does not have claims
 *   STET_IO, STET_BUSY  it may have happened or not (H4); asking again is safe
 *
 * A handle is used by one thread at a time.
 */
#ifndef STET_EXEC_HUB_H
#define STET_EXEC_HUB_H

#include "repo/repo.h"

typedef struct stet_hub stet_hub;

/* Opens a hub by its address: `file:` (a repository on this machine) or `dml+remote:` (a program; without claims). The
 * flags are those of stet_repo_open_uri. */
STET_CHECKED stet_status stet_hub_open(const char *uri, unsigned flags, stet_hub **out, stet_error *err);
/* An open repository as a hub. It stays the caller's and must outlive the hub. */
stet_hub *stet_hub_of_repo(stet_repo *r);
void stet_hub_close(stet_hub *h); /* NULL is fine */

/* The repository on this machine in which objects of the hub are read and results are made: that of a `file:` hub is
 * the hub itself. NULL: the hub has none. */
stet_repo *stet_hub_repo(stet_hub *h);
/* Is this repository the hub itself? */
bool stet_hub_is(const stet_hub *h, const stet_repo *r);
/* Copies what is missing there: these objects of `from` with everything that they name. */
STET_CHECKED stet_status stet_hub_send(stet_hub *h, stet_repo *from, const stet_hash *roots, size_t count,
                                       stet_error *err);
/* Copies what is missing here. */
STET_CHECKED stet_status stet_hub_bring(stet_hub *h, stet_repo *to, const stet_hash *roots, size_t count,
                                        stet_error *err);

/* `*there` false: no such ref. */
STET_CHECKED stet_status stet_hub_ref(stet_hub *h, const char *name, bool *there, stet_hash *out, stet_error *err);
STET_CHECKED stet_status stet_hub_swap_ref(stet_hub *h, const char *name, const stet_hash *expect, const stet_hash *set,
                                           stet_error *err);

typedef enum stet_hub_phase {
    STET_HUB_QUEUED, /* nobody has it: open work */
    STET_HUB_HELD,   /* somebody has it until its lease ends; then it is open work too */
    STET_HUB_ENDED
} stet_hub_phase;

typedef struct stet_hub_claim {
    stet_hash key;
    stet_hub_phase phase;
    stet_hash node, result; /* objects that it keeps; zeros: none */
    stet_value body;        /* an object; the hub does not look into it */
    /* Written: how long the lease is from now, if it is held. */
    int64_t lease_for_ms;
    /* Read, by the hub's clock: the hash of its body; when it was last swapped, and what is left of its lease (zero or
     * less: it has ended). */
    stet_hash version;
    int64_t changed_ms, left_ms;
} stet_hub_claim;

/* `out->body` belongs to the caller if *there. */
STET_CHECKED stet_status stet_hub_get_claim(stet_hub *h, stet_hash key, bool *there, stet_hub_claim *out,
                                            stet_error *err);
/* Replaces the claim with the version `expect` (NULL: there is none) by `next`, and sets its version. */
STET_CHECKED stet_status stet_hub_swap_claim(stet_hub *h, const stet_hash *expect, stet_hub_claim *next,
                                             stet_error *err);
STET_CHECKED stet_status stet_hub_remove_claim(stet_hub *h, stet_hash key, stet_hash expect, stet_error *err);

typedef enum stet_hub_which {
    STET_HUB_OPEN, /* queued, or held with a lease that has ended; oldest first */
    STET_HUB_LIVE, /* held, with a lease */
    /* Ended, last swapped before `before_ms` of the hub's clock, and awaited by no attempt that the hub knows of;
     * oldest first. */
    STET_HUB_OVER
} stet_hub_which;
typedef struct stet_hub_keys {
    stet_hash *at;
    size_t len, cap;
} stet_hub_keys;
/* Appends the keys of claims, at most `limit`. The cost is that of the keys returned: claims of other phases cost
 * nothing. */
STET_CHECKED stet_status stet_hub_find_claims(stet_hub *h, stet_hub_which which, int64_t before_ms, size_t limit,
                                              stet_hub_keys *out, stet_error *err);

/* Deletes objects that nothing names any more, by the hub's own rules. A kind that needs no such call does nothing. */
STET_CHECKED stet_status stet_hub_gc(stet_hub *h, stet_error *err);

/* The time of the hub, in milliseconds since 1970. */
STET_CHECKED stet_status stet_hub_now(stet_hub *h, int64_t *ms, stet_error *err);
/* Changes whenever somebody else has written. */
int64_t stet_hub_news(stet_hub *h);
/* Returns when the hub has changed since `news`, or after the time. */
void stet_hub_wait(stet_hub *h, int64_t news, int timeout_ms);

#endif
