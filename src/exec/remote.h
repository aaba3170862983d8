/* remote.h - other repositories that this one fetches from and pushes to.
 *
 *     status = stet_remote_add(r, "origin", "file:///srv/shared", &err);
 *     status = stet_remote_fetch(r, "origin", &opts, &report, &err);      // refs/heads/X there: refs/remotes/origin/X
 *     status = stet_remote_push(r, "origin", NULL, 0, &opts, &report, &err);
 *
 * A remote stores objects and swaps refs; what is missing and what is reachable is worked out here (exec/transfer.h).
 * Its address is
 *
 *     file:///PATH                    another repository on this machine (stet_repo_open_uri)
 *     dml+remote://NAME/PATH?QUERY    whatever the program stet-remote-NAME makes of it (docs/repository.md). The
 * program is found on $PATH and started without a shell. It has that beginning so that an address can't start just any
 * program.
 *
 * Everything that comes from a remote is verified before it is stored; nothing of it can replace what is here. A
 * transfer that is interrupted at any point leaves a repository in which all is whole, and the next one goes on where
 * it ended.
 *
 * Failure: STET_NOT_FOUND no such remote or head. STET_CONFLICT a push that is no fast-forward, or a ref that somebody
 * else swapped meanwhile. STET_CORRUPT what came is not what it says it is. STET_BUSY a program that asks to be asked
 * later, or is late. STET_FAILED a program that failed. STET_UNSUPPORTED an address of another kind. */
#ifndef STET_EXEC_REMOTE_H
#define STET_EXEC_REMOTE_H

#include "exec/repo.h"

#define STET_REMOTE_SCHEME  "dml+remote://"
#define STET_REMOTE_PROGRAM "stet-remote-"
#define STET_REMOTE_REFS    100000 /* refs that a remote may list */

/* STET_CONFLICT: there is one of that name. The remote itself is not looked at. */
STET_CHECKED stet_status stet_remote_add(stet_repo *r, const char *name, const char *uri, stet_error *err);
/* Forgets it, and its refs/remotes/NAME/...: their number is added to `*refs` (may be NULL). */
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
    bool whole; /* fetch: look through all that the heads reach, not only what is new: brings lost objects back */
    bool pins;  /* fetch: also pin what the remote's index pins and this one does not */
    int64_t timeout_ms; /* for one answer of a program; 0: 60000 */
    bool (*cancelled)(void *ctx);
    void (*progress)(void *ctx, int64_t done, int64_t total);
    void *ctx; /* of these two, which may be NULL */
} stet_remote_opts;

/* What happened to a ref. `kind`: "new", "moved", "same", "gone". */
typedef struct stet_remote_change {
    char *name; /* as it is called here */
    const char *kind;
    bool had, has;
    stet_hash before, after;
} stet_remote_change;
typedef struct stet_remote_report {
    stet_remote_change *at;
    size_t len, cap;
    int64_t objects, bytes;
    int64_t pins; /* that are new */
} stet_remote_report;
void stet_remote_report_release(stet_remote_report *report);

STET_CHECKED stet_status stet_remote_fetch(stet_repo *r, const char *name, const stet_remote_opts *opts,
                                           stet_remote_report *report, stet_error *err);
/* Heads by their names ("main"); none: all. All of them, or none: one that is no fast-forward refuses the push. */
STET_CHECKED stet_status stet_remote_push(stet_repo *r, const char *name, const char *const *heads, size_t count,
                                          const stet_remote_opts *opts, stet_remote_report *report, stet_error *err);

#endif
