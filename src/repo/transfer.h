/* transfer.h - copies the objects that one side has and the other lacks. Private to src/repo.
 *
 * A side is a repository (transfer_repo.c) or a program that speaks for a remote (remote_external.c). Sides only store
 * and swap; what is missing and what is reachable is computed here:
 *
 *   1. plan: walk from the roots down, in portions of ids. Which of these does the other side have? The rest is read,
 *      verified, and searched for the ids it names. If the other side has an object it has all of it (R1), and the walk
 *      stops there.
 *   2. send: the missing objects, each after what it names, in portions. Each portion is stored completely or not at
 *      all.
 *   3. the last portion goes together with the refs.
 *
 * A transfer that dies leaves portions that are complete in themselves, and the next one finds them. Objects that are
 * expensive to get (a program is asked for each portion) are put aside in the receiving repository as they arrive, and
 * not requested again.
 */
#ifndef STET_EXEC_TRANSFER_H
#define STET_EXEC_TRANSFER_H

#include "repo/pack.h"
#include "repo/repo_internal.h"

#define STET_TRANSFER_IDS   512                /* ids in one question */
#define STET_TRANSFER_BYTES ((size_t)4 << 20)  /* bytes of objects in one portion, unless one object is larger */
#define STET_TRANSFER_MAX   ((size_t)16 << 20) /* maximum number of objects in one transfer */

typedef struct stet_side {
    void *ctx;
    const char *name; /* for messages */
    bool costly;      /* expensive to get objects from */
    /* Which of these does it have? */
    stet_status (*have)(void *ctx, const stet_hash *ids, size_t count, bool *out, stet_error *err);
    /* Passes the objects that it has to `take`, in any order, unverified. */
    stet_status (*get)(void *ctx, const stet_hash *ids, size_t count, stet_take_fn *take, void *take_ctx,
                       stet_error *err);
    /* Stores a pack, and swaps refs after it, all or nothing. Either may be empty. */
    stet_status (*put)(void *ctx, const stet_pack *pack, const stet_ref_swap *swaps, size_t count, stet_error *err);
} stet_side;

stet_side stet_side_of_repo(stet_repo *r);

typedef struct stet_transfer_opts {
    const stet_hash *roots;
    size_t root_count;
    const stet_ref_swap *swaps;
    size_t swap_count;
    bool whole;       /* do not stop where the other side has an object: it may be damaged further down */
    stet_repo *aside; /* where expensive objects are put aside; NULL: nowhere */
    bool (*cancelled)(void *ctx);
    void (*progress)(void *ctx, int64_t done, int64_t total);
    void *ctx; /* for these two callbacks; each may be NULL */
} stet_transfer_opts;

stet_status stet_transfer(const stet_side *from, const stet_side *to, const stet_transfer_opts *opts,
                          stet_copy_report *report, stet_error *err);

#endif
