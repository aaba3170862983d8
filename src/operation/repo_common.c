/* repo_common.c - what the operations on the repository of calls share. */

#include "operation/repo_common.h"

#include <string.h>

stet_status stet_repo_op_open(stet_op_ctx *ctx, stet_repo **out, stet_error *err) {
    stet_project *p;
    stet_status st = ctx->project(ctx, &p, err);
    return st == STET_OK ? stet_repo_open(p, ctx->op->flags & STET_OP_READ_ONLY ? STET_REPO_READ_ONLY : 0, out, err)
                         : st;
}

stet_status stet_repo_op_run(stet_op_ctx *ctx, stet_value args, stet_repo_op_fn *fn, stet_value *result,
                             stet_error *err) {
    stet_repo *r;
    stet_status st = stet_repo_op_open(ctx, &r, err);
    if (st != STET_OK)
        return st;
    st = fn(r, args, result, err);
    stet_repo_close(r);
    return st;
}

void stet_repo_op_short(stet_value id, char out[16]) {
    if (stet_value_type(id) != STET_TYPE_STRING) {
        memcpy(out, "-", 2);
        return;
    }
    const char *text = stet_value_as_string(&id, NULL);
    size_t len = strlen(text);
    len = len < 12 ? len : 12;
    memcpy(out, text, len);
    out[len] = 0;
}
