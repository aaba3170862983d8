/* repo_store.c - the store "repo": objects and refs of calls. */

#include <string.h>

#include "call/calls.h"
#include "operation/op.h"
#include "os/file.h"
#include "repo/repo.h"

static bool present(stet_project *p) {
    char *path = stet_project_path(p, "local/repo.db");
    bool there = stet_file_exists(path);
    stet_free(path);
    return there;
}

static stet_status check(stet_op_ctx *ctx, stet_project *p, bool repair, stet_value *problems, stet_error *err) {
    (void)ctx;
    stet_repo *r = NULL;
    stet_buf lines = STET_BUF(1 << 20);
    stet_error why = STET_ERROR_INIT;
    size_t found, repaired;
    char *path = stet_project_path(p, "local/repo.db");
    stet_status st = stet_repo_open(p, repair ? 0 : STET_REPO_READ_ONLY, &r, &why);
    if (st == STET_OK)
        st = stet_repo_check(r, repair, &lines, &found, &repaired, &why);
    if (st == STET_OK)
        stet_store_problems(problems, "repo", path, &lines, found && repaired == found);
    if (st == STET_CORRUPT || st == STET_UNSUPPORTED || st == STET_INVALID) {
        stet_store_problem(problems, "repo", path, why.message, strlen(why.message), false);
        st = STET_OK;
    } else if (st != STET_OK) {
        stet_error_move(err, &why);
    }
    stet_error_clear(&why);
    stet_repo_close(r);
    stet_buf_release(&lines);
    stet_free(path);
    return st;
}

static stet_status gc(stet_op_ctx *ctx, stet_project *p, bool dry_run, stet_value *report, stet_error *err) {
    (void)ctx;
    stet_repo *r = NULL;
    stet_value grace = stet_project_setting(p, "repo.gc_grace_s");
    stet_repo_gc_opts o = {.dry_run = dry_run, .grace_s = -1};
    stet_repo_gc_report got = {0};
    if (stet_value_type(grace) == STET_TYPE_INT && stet_value_as_int(grace) >= 0)
        o.grace_s = stet_value_as_int(grace) < 1000000000 ? stet_value_as_int(grace) : 1000000000;
    stet_status st = stet_repo_open(p, dry_run ? STET_REPO_READ_ONLY : 0, &r, err);
    if (st == STET_OK)
        st = stet_repo_gc(r, &o, &got, err);
    if (st == STET_OK)
        st = stet_calls_sweep(p, r, dry_run, &got.refs, err);
    stet_repo_close(r);
    stet_value_put(report, "items", stet_value_int(got.objects + got.refs + got.attempts + got.incoming));
    stet_value_put(report, "bytes", stet_value_int(got.bytes));
    stet_value_put(report, "objects", stet_value_int(got.objects));
    stet_value_put(report, "attempts", stet_value_int(got.attempts));
    return st;
}

const stet_store stet_store_repo = {
    .name = "repo",
    .summary = "Objects and refs of calls, and what is in flight",
    .present = present,
    .check = check,
    .gc = gc,
};
