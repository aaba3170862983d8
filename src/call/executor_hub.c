/* executor_hub.c - calls that are left in a hub elsewhere: the executor looks at their claims itself.
 *
 * For a hub in a file the adapter does this. For a hub on a server that would be a process and a connection for each look,
 * and the executor has a connection already.
 */

#include <string.h>

#include "call/calls.h"
#include "call/executor_internal.h"
#include "call/orchestrate.h"
#include "os/clock.h"

#define AFTER_LEAST 10
#define AFTER_MOST  1000

stet_status stet_call_left_in_hub(stet_call *c, bool *out, stet_error *err) {
    stet_hub *hub;
    *out = false;
    if (!stet_calls_is_local(c->function))
        return STET_OK;
    stet_status status = stet_call_hub(c, &hub, err);
    *out = status == STET_OK && hub && !stet_hub_is(hub, stet_hub_repo(hub));
    return status;
}

static void take_answer(const stet_call *c, const stet_orch_answer *a, stet_adapter_reply *out) {
    int64_t after = (stet_clock_ms() - c->started_ms) / 10;
    if (a->state == STET_ORCH_PENDING) {
        out->status = STET_ADAPTER_PENDING;
        out->token = stet_value_string("hub");
        out->poll_after_ms = after < AFTER_LEAST ? AFTER_LEAST : after > AFTER_MOST ? AFTER_MOST : after;
        out->note = stet_value_string(stet_claim_state_name(a->claim));
        return;
    }
    out->status = a->state == STET_ORCH_DONE_OK ? STET_ADAPTER_DONE_OK : STET_ADAPTER_DONE_ERROR;
    out->result = a->result;
    out->passing = a->state == STET_ORCH_DONE_ERROR && !a->kept;
    out->retry = out->passing && a->retry;
}

void stet_call_ask_hub(stet_call *c, bool cancel, stet_adapter_reply *out) {
    stet_hub *hub;
    stet_orch_answer a;
    char ref[64];
    snprintf(ref, sizeof ref, "refs/exec/%s", c->row.execution);
    stet_orch_job job = {.key = c->row.key,
                         .node = c->node,
                         .function = c->function,
                         .inputs = c->inputs.at,
                         .input_count = c->inputs.len,
                         .execution = c->row.execution,
                         .ref = ref,
                         .tries = (int64_t)stet_value_count(stet_value_get(c->row.detail, "failed")),
                         .fresh = stet_value_type(c->token) == STET_TYPE_NULL};
    *out = (stet_adapter_reply){.status = STET_ADAPTER_FAILED_PERMANENT,
                                .token = stet_value_null(),
                                .note = stet_value_null(),
                                .poll_after_ms = -1,
                                .done = -1,
                                .total = -1,
                                .error = STET_ERROR_INIT};
    stet_status status = stet_call_hub(c, &hub, &out->error);
    stet_orch o = {.hub = hub, .owner = "", .queue = true};
    if (status == STET_OK)
        status = cancel ? stet_orch_cancel(&o, &job, &out->error) : stet_orch_poll(&o, &job, &a, &out->error);
    if (status == STET_OK && !cancel)
        take_answer(c, &a, out);
    else if (status == STET_IO || status == STET_BUSY || status == STET_CONFLICT || status == STET_NOT_FOUND)
        out->status = STET_ADAPTER_FAILED_TRANSIENT;
}
