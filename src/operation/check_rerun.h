/* check_rerun.h - `check --rerun`: computes what is up to date again and compares (drive/rerun.h). */
#ifndef STET_OPERATION_CHECK_RERUN_H
#define STET_OPERATION_CHECK_RERUN_H

#include "operation/op.h"

#define STET_CHECK_RERUN_SCHEMA                                                                                        \
    "{\"type\":\"object\",\"required\":[\"actions\",\"compared\",\"leftOut\",\"outdated\",\"differ\",\"wrong\"],"      \
    "\"additionalProperties\":false,\"properties\":{\"actions\":{\"type\":\"integer\"},\"compared\":{\"type\":"        \
    "\"integer\"},\"leftOut\":{\"type\":\"integer\"},\"accepted\":{\"type\":\"integer\"},\"outdated\":{\"type\":"      \
    "\"integer\"},\"differ\":{\"type\":"                                                                               \
    "\"integer\"},\"seed\":{\"type\":\"integer\"},\"commands\":{\"type\":\"boolean\"},\"varying\":{\"type\":"          \
    "\"array\"},\"notes\":{\"type\":\"array\"},\"wrong\":{\"type\":\"array\","                                         \
    "\"items\":{\"type\":\"object\","                                                                                  \
    "\"required\":[\"space\",\"branch\",\"piece\",\"node\",\"differences\",\"unrecordedReads\"],\"properties\":{"      \
    "\"space\":{\"type\":\"string\"},\"branch\":{\"type\":\"string\"},\"piece\":{\"type\":\"string\"},\"node\":{"      \
    "\"type\":\"string\"},\"differences\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"cell\","  \
    "\"stored\",\"recomputed\"],\"properties\":{\"cell\":{\"type\":\"string\"},\"stored\":{\"type\":\"string\"},"      \
    "\"recomputed\":{\"type\":\"string\"}}}},\"unrecordedReads\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}" \
    "}"                                                                                                                \
    "}}}}"

/* Checks --rerun, its sample and its seed together, before anything else is checked. */
STET_CHECKED stet_status stet_check_rerun_args(stet_value args, stet_error *err);
STET_CHECKED stet_status stet_check_rerun(stet_op_ctx *ctx, stet_value args, stet_value *out, stet_error *err);
void stet_check_rerun_render(stet_render *r, stet_value rerun);

#endif
