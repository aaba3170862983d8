/* remote.h - other repositories that this one fetches from and pushes to.
 *
 *     stet_status status = stet_remote_add(r, "origin", "file:///srv/shared", &err);
 *     if (status == STET_OK) // refs/heads/X there becomes refs/remotes/origin/X here
 *         status = stet_remote_fetch(r, "origin", &opts, &report, &err);
 *     if (status == STET_OK)
 *         status = stet_remote_push(r, "origin", NULL, 0, &opts, &report, &err);
 *
 * A remote stores objects and swaps refs; what is missing and what is reachable is computed here (repo/transfer.h). Its
 * address is one of:
 *
 *   file:///PATH                    another repository on this machine (stet_repo_open_uri)
 *   dml+remote://NAME/PATH?QUERY    interpreted by the program stet-remote-NAME (docs/repository.md), which is found in
 *                                   $PATH and started without a shell. The prefix of its name prevents an address from
 *                                   starting an arbitrary program.
 *
 * Everything that comes from a remote is verified before it is stored, and can't replace anything that is here. A
 * transfer that is interrupted at any point leaves a sound repository, and the next one continues where it ended.
 *
 * Failures:
 *
 *   STET_NOT_FOUND    no such remote or head
 *   STET_CONFLICT     the push is not a fast-forward, or a ref was swapped by somebody else meanwhile
 *   STET_CORRUPT      received data does not verify
 *   STET_BUSY         the program asks to be called later, or did not answer in time
 *   STET_FAILED       the program failed
 *   STET_UNSUPPORTED  an address of another kind
 */
#ifndef STET_EXEC_REMOTE_H
#define STET_EXEC_REMOTE_H

#include "repo/repo.h"

#define STET_REMOTE_SCHEME  "dml+remote://"
#define STET_REMOTE_PROGRAM "stet-remote-"
#define STET_REMOTE_REFS    100000 /* maximum number of refs that a remote may list */

/* Adds a remote. STET_CONFLICT: the name is taken. The remote itself is not contacted. */
STET_CHECKED stet_status stet_remote_add(stet_repo *r, const char *name, const char *uri, stet_error *err);
/* Removes a remote and its refs/remotes/NAME/...; adds the number of refs to `*refs` (may be NULL). */
STET_CHECKED stet_status stet_remote_remove(stet_repo *r, const char *name, int64_t *refs, stet_error *err);

typedef struct stet_remote_row {
    char *name, *uri;
    int64_t added_ms;
} stet_remote_row;
typedef struct stet_remote_rows {
    stet_remote_row *at;
    size_t len, cap;
} stet_remote_rows;
/* Sorted by name. */
STET_CHECKED stet_status stet_remote_list(stet_repo *r, stet_remote_rows *out, stet_error *err);
void stet_remote_rows_release(stet_remote_rows *rows);

typedef struct stet_remote_opts {
    /* Fetch: walk everything that the heads reach, not only what is new. Restores lost objects. */
    bool whole;
    bool pins;          /* carry pins of successes, with their results, from or to the index of the remote */
    int64_t timeout_ms; /* for one answer of a program; 0: 60000 */
    bool (*cancelled)(void *ctx);
    void (*progress)(void *ctx, int64_t done, int64_t total);
    void *ctx; /* for these two callbacks, which may be NULL */
} stet_remote_opts;

/* What happened to a ref. `kind`: "new", "moved", "same", "gone". */
typedef struct stet_remote_change {
    char *name; /* its local name */
    const char *kind;
    bool had, has;
    stet_hash before, after;
} stet_remote_change;
typedef struct stet_remote_report {
    stet_remote_change *at;
    size_t len, cap;
    int64_t objects, bytes;
    int64_t pins; /* pins that are new or replaced on the receiving side */
} stet_remote_report;
void stet_remote_report_release(stet_remote_report *report);

STET_CHECKED stet_status stet_remote_fetch(stet_repo *r, const char *name, const stet_remote_opts *opts,
                                           stet_remote_report *report, stet_error *err);
/* Pushes heads by name ("main"); none given: all heads. All or none: a head that is not a fast-forward refuses the
 * push. */
STET_CHECKED stet_status stet_remote_push(stet_repo *r, const char *name, const char *const *heads, size_t count,
                                          const stet_remote_opts *opts, stet_remote_report *report, stet_error *err);

#endif
