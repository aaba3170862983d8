/* transfer.h - copying what one side has and the other lacks. Private to src/exec.
 *
 * A side is a repository (transfer_repo.c) or a program that speaks for a remote (remote_external.c). Sides only store
 * and swap; what is missing and what is reachable is worked out here:
 *
 *  1. plan: from the roots down, in portions of ids: what does the other side have? The rest is read, verified, and
 * looked through for what it names. Where the other side has something it has all of it (R1), and the walk stops.
 *  2. send: what is missing, each after what it names, in portions, each of which is stored whole or not at all.
 *  3. the last portion goes together with the refs.
 *
 * A transfer that dies leaves portions that need nothing else, and the next one finds them there. What is costly to get
 * (a program is asked for each portion) is put aside in the receiving repository as it comes, and not asked for again.
 */
#ifndef STET_EXEC_TRANSFER_H
#define STET_EXEC_TRANSFER_H

#include "exec/pack.h"
#include "exec/repo_internal.h"

#define STET_TRANSFER_IDS   512                /* ids in one question */
#define STET_TRANSFER_BYTES ((size_t)4 << 20)  /* bytes of objects in one portion, unless one alone has more */
#define STET_TRANSFER_MAX   ((size_t)16 << 20) /* objects of one transfer */

typedef struct stet_side {
    void *ctx;
    const char *name; /* for messages */
    bool costly;      /* to get from */
    /* Which of these are there? */
    stet_status (*have)(void *ctx, const stet_hash *ids, size_t count, bool *out, stet_error *err);
    /* Gives those that it has to `take`, in any order; unverified. */
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
    bool whole;       /* do not stop where the other side has something: it may be damaged further down */
    stet_repo *aside; /* where costly objects wait; NULL: nowhere */
    bool (*cancelled)(void *ctx);
    void (*progress)(void *ctx, int64_t done, int64_t total);
    void *ctx; /* of these two; each may be NULL */
} stet_transfer_opts;

stet_status stet_transfer(const stet_side *from, const stet_side *to, const stet_transfer_opts *opts,
                          stet_copy_report *report, stet_error *err);

#endif
