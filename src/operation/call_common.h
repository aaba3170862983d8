/* call_common.h - what the operations on calls share.
 *
 * That is: the repository, an executor on a loop, finding a call, and a call as a value.
 */
#ifndef STET_OPERATION_CALL_COMMON_H
#define STET_OPERATION_CALL_COMMON_H

#include <uv.h>

#include "call/calls.h"
#include "operation/op.h"

typedef struct call_session {
    stet_op_ctx *ctx;
    stet_project *project;
    stet_repo *repo;
    stet_calls_config config;
    uv_loop_t loop;
    bool looping;
    stet_executor *executor;
    bool ended;
} call_session;

/* Opens the repository, and an executor too if `executor`. `remote` may be NULL. */
STET_CHECKED stet_status call_begin(stet_op_ctx *ctx, bool executor, const char *remote, call_session *s,
                                    stet_error *err);
void call_end(call_session *s);

/* Finds the attempt whose execution or node begins with `id`; of a node the newest attempt. `*out` belongs to the
 * caller. */
STET_CHECKED stet_status call_find(call_session *s, const char *id, stet_attempt *out, stet_error *err);

/* Runs the loop until the call has ended, a stop was requested, or `until` returns true; at most `patience_ms`
 * (negative: for ever). STET_CANCELLED: a stop was requested. STET_BUSY: the time is over. */
STET_CHECKED stet_status call_drive(call_session *s, stet_call *c, bool (*until)(const stet_call *c),
                                    int64_t patience_ms, stet_error *err);
void call_ended(void *session, stet_call *c); /* a callback for the executor */

/* The value of an attempt: {"id","node","function","state",...}. With `whole` its value or failure is read too. */
STET_CHECKED stet_status call_value(call_session *s, const stet_attempt *a, bool whole, stet_value *out,
                                    stet_error *err);
/* The id under which everybody finds a call that was driven: that of its attempt, or of the attempt of another process
 * that was joined or that gave the result, or else of its node. Returns the state of that attempt. */
#define CALL_ID STET_HASH_HEX
stet_call_state call_id(call_session *s, const stet_call *c, char out[CALL_ID]);
/* The same as call_value for a call that was driven. */
STET_CHECKED stet_status call_outcome_value(call_session *s, const stet_call *c, stet_value *out, stet_error *err);

/* The function of `call run`, as a URI (the caller's), and its arguments (the caller's). */
stet_status call_words(stet_op_ctx *ctx, stet_project *p, stet_value args, char **function, stet_value *list,
                       stet_error *err);
stet_status call_logs_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err);
void call_logs_render(stet_render *r, stet_value result);
stet_status call_get_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err);
void call_get_render(stet_render *r, stet_value result);
void call_render(stet_render *r, stet_value call);
stet_status call_verdict(stet_value call);

#define CALL_SCHEMA                                                                                                    \
    "{\"type\":\"object\",\"required\":[\"id\",\"node\",\"function\",\"state\",\"cached\"],\"properties\":{"           \
    "\"id\":{\"type\":[\"string\",\"null\"]},\"node\":{\"type\":\"string\"},\"function\":{\"type\":\"string\"},"       \
    "\"state\":{\"enum\":[\"resolve_call_node\",\"poll_adapter\",\"integrate_ok\",\"integrate_error\",\"retry_wait\"," \
    "\"pinned_hit\",\"completed_ok\",\"completed_error\",\"failed_terminal\"]},\"cached\":{\"type\":\"boolean\"},"     \
    "\"ok\":{\"type\":\"boolean\"},\"value\":{},\"failure\":{},\"exec\":{\"type\":\"string\"},"                        \
    "\"result\":{\"type\":\"string\"},\"retries\":{\"type\":\"integer\"},\"next\":{\"type\":\"string\"},"              \
    "\"created\":{\"type\":\"string\"},\"updated\":{\"type\":\"string\"},\"progress\":{\"type\":\"object\"},"          \
    "\"lastError\":{\"type\":\"object\"},\"claim\":{\"type\":\"object\"},\"execs\":{\"type\":\"array\"},"              \
    "\"remote\":{\"type\":\"string\"},\"labels\":{\"type\":\"array\"},\"log\":{\"type\":\"string\"}}}"

#endif
