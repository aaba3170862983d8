/* persist_common.h - what the operations of `persist` share: opening, naming an entry, showing one. */
#ifndef STET_OPERATION_PERSIST_COMMON_H
#define STET_OPERATION_PERSIST_COMMON_H

#include "operation/op.h"
#include "persist/project_dir.h"

/* Opens the project's persist directory. If it can't be written, it is opened read-only, with a warning. */
STET_CHECKED stet_status stet_persist_op_open(stet_op_ctx *ctx, stet_persist **out, stet_error *err);

/* Parses a module hash: 43 characters of base64url, or 64 hexadecimal digits. */
STET_CHECKED stet_status stet_persist_op_module(const char *text, char out[STET_PERSIST_HASH + 1], stet_error *err);
/* Parses the digits of a created_at, a time, or what people type ("2h ago"). */
STET_CHECKED stet_status stet_persist_op_created(stet_value text, uint64_t *out, stet_error *err);

/* The newest entry that the arguments name: `block` (optional); `module` (complete, or a prefix of at least 6
 * characters, in either spelling; optional); `created_at` (optional; with `exact` exactly this, otherwise the latest up
 * to it). A prefix that matches several modules is STET_INVALID. The entry belongs to the caller. */
STET_CHECKED stet_status stet_persist_op_find(stet_persist *p, stet_value args, stet_persist_entry **out,
                                              stet_error *err);

/* {"block","module","created_at","time","size","hash","in_log","call","elapsed_ms","contents":[...]} */
stet_value stet_persist_op_entry(const stet_persist_entry *e);
#define STET_PERSIST_ENTRY_SCHEMA                                                                                      \
    "{\"type\":\"object\",\"required\":[\"block\",\"module\",\"created_at\",\"time\",\"size\",\"hash\",\"in_log\","    \
    "\"call\",\"contents\"],\"properties\":{\"block\":{\"type\":\"string\"},\"module\":{\"type\":\"string\"},"         \
    "\"created_at\":{\"type\":\"integer\"},\"time\":{\"type\":\"string\"},\"size\":{\"type\":\"integer\"},"            \
    "\"hash\":{\"type\":\"string\"},\"in_log\":{\"type\":\"boolean\"},\"call\":{\"type\":\"boolean\"},"                \
    "\"elapsed_ms\":{\"type\":\"integer\"},\"marks\":{\"type\":\"array\"},\"contents\":{\"type\":\"array\","           \
    "\"items\":{\"type\":\"object\",\"required\":[\"kind\",\"id\",\"size\",\"format\"]}}}}"

/* Bytes for people: "1.5 MB". */
void stet_persist_op_bytes(uint64_t bytes, char out[32]);

#endif
