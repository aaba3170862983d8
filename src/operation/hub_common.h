/* hub_common.h - what the operations on hubs and workers share. */
#ifndef STET_OPERATION_HUB_COMMON_H
#define STET_OPERATION_HUB_COMMON_H

#include "operation/op.h"

/* The address of a hub: `given` (an address, or the name of a remote; NULL: the configured one, or this project's
 * repository). Caller frees. */
STET_CHECKED stet_status hub_uri(stet_op_ctx *ctx, const char *given, char **uri, stet_error *err);

stet_status hub_list_workers(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err);
void hub_render_workers(stet_render *r, stet_value v);

#define HUB_PARAM                                                                                                      \
    {                                                                                                                  \
        .name = "hub", .type = STET_PARAM_STRING, .flags = STET_PARAM_POSITIONAL, .metavar = "HUB",                    \
        .summary = "postgres://USER@HOST/DATABASE, file:///PATH, or the name of a remote; without one the hub that "   \
                   "config.toml names, or this project's repository"                                                   \
    }

#endif
