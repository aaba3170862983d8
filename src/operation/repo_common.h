/* repo_common.h - what the operations on the repository of calls share. */
#ifndef STET_OPERATION_REPO_COMMON_H
#define STET_OPERATION_REPO_COMMON_H

#include "operation/op.h"
#include "repo/repo.h"

/* Opens the repository of the project; read-only if the operation only reads. */
STET_CHECKED stet_status stet_repo_op_open(stet_op_ctx *ctx, stet_repo **out, stet_error *err);
/* Opens it, calls the function and closes it. */
typedef stet_status stet_repo_op_fn(stet_repo *r, stet_value args, stet_value *result, stet_error *err);
STET_CHECKED stet_status stet_repo_op_run(stet_op_ctx *ctx, stet_value args, stet_repo_op_fn *fn, stet_value *result,
                                          stet_error *err);
/* The first 12 digits of an id, or "-" for null. */
void stet_repo_op_short(stet_value id, char out[16]);

#define REPO_ID         "{\"type\":\"string\",\"pattern\":\"^[0-9a-f]{64}$\"}"
#define REPO_ID_OR_NULL "{\"type\":[\"string\",\"null\"]}"

#endif
