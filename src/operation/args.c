/* args.c - reads arguments that are paths or durations. */

#include "operation/args.h"

#include <string.h>

#include "base/units.h"
#include "os/file.h"

char *stet_op_path(const stet_op_ctx *ctx, const char *typed) {
    return typed[0] == '/' ? stet_strdup(typed) : stet_file_join(ctx->cwd, typed);
}

char *stet_op_path_arg(const stet_op_ctx *ctx, stet_value args, const char *name) {
    stet_value hold;
    const char *typed = stet_value_text_at(args, name, &hold);
    return typed ? stet_op_path(ctx, typed) : NULL;
}

stet_status stet_op_duration_arg(stet_value args, const char *name, bool zero, int64_t *ms, stet_error *err) {
    stet_value v = stet_value_get(args, name);
    if (stet_value_type(v) == STET_TYPE_NULL)
        return STET_OK;
    if (zero && stet_value_text_is(v, "0")) {
        *ms = 0;
        return STET_OK;
    }
    *ms = stet_units_ms(v);
    if (*ms > 0)
        return STET_OK;
    stet_fail(err, STET_INVALID, "--%s is no time", name);
    stet_hint(err, "write seconds, or 90s, 10m, 2h");
    return STET_INVALID;
}
