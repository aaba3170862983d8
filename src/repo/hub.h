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

/* Opens a hub by its address: `file:` (a repository on this machine), `postgres:` (a PostgreSQL database, through a
 * plug-in) or `dml+remote:` (a program; without claims). The flags are those of stet_repo_open_uri. STET_NOT_FOUND: the
 * database has no hub yet (stet_hub_init). STET_UNSUPPORTED: the hub has a schema of another version. */
STET_CHECKED stet_status stet_hub_open(const char *uri, unsigned flags, stet_hub **out, stet_error *err);
/* Is this the address of a kind with claims? Nothing is contacted. STET_INVALID: the address holds a password, which
 * would be stored and printed with it. STET_UNSUPPORTED: another kind. */
STET_CHECKED stet_status stet_hub_check_uri(const char *uri, stet_error *err);
/* Makes a hub, or brings the schema of one up to date. *changed: there was something to do. */
STET_CHECKED stet_status stet_hub_init(const char *uri, bool *changed, stet_error *err);
/* An open repository as a hub. It stays the caller's and must outlive the hub. */
stet_hub *stet_hub_of_repo(stet_repo *r);
void stet_hub_close(stet_hub *h); /* NULL is fine */

/* The repository on this machine in which objects of the hub are read and results are made: that of a `file:` hub is
 * the hub itself; another kind uses the one that it was lent. NULL: none. */
stet_repo *stet_hub_repo(stet_hub *h);
/* Lends the hub a repository of this machine. It stays the caller's and must outlive the hub. A `file:` hub does not use
 * it. */
void stet_hub_lend(stet_hub *h, stet_repo *r);
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

typedef struct stet_hub_gc_report {
    int64_t objects, bytes, refs, blobs, blob_bytes;
} stet_hub_gc_report;
/* Deletes objects that nothing names any more, refs of executions that were abandoned (STET_REPO_ABANDONED_S), and blobs
 * that nobody has asked for within the grace period of `grace_s` seconds (negative: STET_REPO_GRACE_S). Asking whether an
 * object or a blob is there renews it. `report` may be NULL. */
STET_CHECKED stet_status stet_hub_gc(stet_hub *h, int64_t grace_s, stet_hub_gc_report *report, stet_error *err);

/* Blobs: bytes named by their SHA-256, of any size, never in memory as a whole. They are kept for the grace period of gc
 * after they were last asked for. */
STET_CHECKED stet_status stet_hub_has_blob(stet_hub *h, stet_hash hash, bool *there, int64_t *size, stet_error *err);
/* Fills the buffer, less only at the end. */
typedef stet_status stet_hub_source(void *ctx, void *bytes, size_t room, size_t *got, stet_error *err);
/* Stores what the source gives. STET_CORRUPT: the bytes do not have this hash; nothing is stored. */
STET_CHECKED stet_status stet_hub_put_blob(stet_hub *h, stet_hash hash, stet_hub_source *source, void *ctx,
                                           stet_error *err);
/* Passes the bytes from `offset` to the end to `sink`. STET_NOT_FOUND: no such blob. Read from the beginning, the hash is
 * verified: STET_CORRUPT, and what was passed must not be used. */
typedef stet_status stet_hub_sink(void *ctx, const void *bytes, size_t len, stet_error *err);
STET_CHECKED stet_status stet_hub_get_blob(stet_hub *h, stet_hash hash, int64_t offset, stet_hub_sink *sink, void *ctx,
                                           stet_error *err);

/* Workers say who they are, again and again: an announcement ends after `for_ms` of the hub's clock (0: at once).
 * `body` is a JSON object; the hub does not look into it. */
STET_CHECKED stet_status stet_hub_announce(stet_hub *h, const char *name, stet_value body, int64_t for_ms,
                                           stet_error *err);
typedef struct stet_hub_worker {
    char *name;
    stet_value body;
} stet_hub_worker;
typedef struct stet_hub_workers {
    stet_hub_worker *at;
    size_t len, cap;
} stet_hub_workers;
/* Those whose announcement has not ended, sorted by name. */
STET_CHECKED stet_status stet_hub_list_workers(stet_hub *h, stet_hub_workers *out, stet_error *err);
void stet_hub_workers_release(stet_hub_workers *list);

typedef struct stet_hub_counts {
    int64_t schema; /* its version */
    int64_t objects, bytes, refs, blobs, blob_bytes;
    int64_t queued, held, lapsed, ended; /* claims; lapsed: held with a lease that has ended */
} stet_hub_counts;
STET_CHECKED stet_status stet_hub_count(stet_hub *h, stet_hub_counts *out, stet_error *err);
/* Verifies every object, claim and blob. Adds a line to `problems` for each problem. */
STET_CHECKED stet_status stet_hub_check(stet_hub *h, stet_buf *problems, size_t *found, stet_error *err);

/* The time of the hub, in milliseconds since 1970. */
STET_CHECKED stet_status stet_hub_now(stet_hub *h, int64_t *ms, stet_error *err);
/* Changes whenever somebody else has queued, ended or removed a claim, and at times when nobody has. */
int64_t stet_hub_news(stet_hub *h);
/* Returns when the hub has changed since `news`, or after the time. */
void stet_hub_wait(stet_hub *h, int64_t news, int timeout_ms);

#endif
