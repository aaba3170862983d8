/* args.h - reads arguments that need more than their type: paths and durations. Texts and numbers: base/text.h. */
#ifndef STET_OPERATION_ARGS_H
#define STET_OPERATION_ARGS_H

#include "base/text.h"
#include "operation/op.h"

/* A path as the user typed it, taken from the directory where the user is. The caller frees it. */
char *stet_op_path(const stet_op_ctx *ctx, const char *typed);
/* The same for an argument; NULL: it was not given. */
char *stet_op_path_arg(const stet_op_ctx *ctx, stet_value args, const char *name);
/* A duration such as "90s" or "10m", in milliseconds; `*ms` stays as it is if the argument was not given. Zero is
 * refused unless `zero` is set. */
STET_CHECKED stet_status stet_op_duration_arg(stet_value args, const char *name, bool zero, int64_t *ms,
                                              stet_error *err);

#endif
