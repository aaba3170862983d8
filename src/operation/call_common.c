/* call_common.c - what the operations on calls share. */

#include "operation/call_common.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "call/orchestrate_local.h"
#include "operation/text.h"
#include "os/clock.h"

#define LIST_MAX   100000
#define PREFIX_MIN 6
#define TICK_MS    50

static void say(void *ctx, const char *line) {
    call_session *s = ctx;
    s->ctx->warn(s->ctx, "%s", line);
}

static void progress(void *ctx, stet_call *c, int64_t done, int64_t total, const char *note) {
    call_session *s = ctx;
    (void)c;
    s->ctx->progress(s->ctx, done, total, note);
}

stet_status call_begin(stet_op_ctx *ctx, bool executor, const char *remote, call_session *s, stet_error *err) {
    *s = (call_session){.ctx = ctx};
    bool reads = ctx->op->flags & STET_OP_READ_ONLY;
    stet_status status = ctx->project(ctx, &s->project, err);
    if (status == STET_OK)
        status = stet_calls_config_read(s->project, &s->config, err);
    if (status == STET_OK)
        status = stet_repo_open(s->project, reads ? STET_REPO_READ_ONLY : 0, &s->repo, err);
    if (status == STET_OK && executor) {
        if (uv_loop_init(&s->loop) != 0)
            status = stet_fail(err, STET_BUSY, "there is no event loop to be had");
        else {
            s->looping = true;
            stet_executor_opts more = {.say = say, .progress = progress, .ctx = s};
            status = stet_calls_open(s->project, s->repo, &s->loop, &s->config, remote, &more, &s->executor, err);
        }
    }
    if (status != STET_OK)
        call_end(s);
    return status;
}

void call_end(call_session *s) {
    stet_executor_close(s->executor);
    if (s->looping) {
        uv_run(&s->loop, UV_RUN_NOWAIT);
        uv_loop_close(&s->loop);
    }
    stet_repo_close(s->repo);
    stet_calls_config_release(&s->config);
    *s = (call_session){0};
}

stet_status call_find(call_session *s, const char *id, stet_attempt *out, stet_error *err) {
    stet_attempts list = {0};
    size_t len = strlen(id);
    bool several = false;
    if (len < PREFIX_MIN) {
        stet_fail(err, STET_INVALID, "%s is too short for the id of a call", id);
        stet_hint(err, "give at least %d characters", PREFIX_MIN);
        return STET_INVALID;
    }
    /* Of one node there may be many; more than that many others are several anyway. */
    stet_status status = stet_attempt_find(s->repo, id, LIST_MAX, &list, err);
    for (size_t i = 0; i < list.len && status == STET_OK; i++) {
        char node[STET_HASH_HEX];
        stet_hash_hex(list.at[i].node, node);
        several |= i > 0 && !(strncmp(node, id, len) == 0 && stet_hash_equal(list.at[0].node, list.at[i].node));
    }
    if (status == STET_OK && several)
        status = stet_fail(err, STET_INVALID, "several calls begin with %s", id);
    else if (status == STET_OK && list.len == 0) {
        status = stet_fail(err, STET_NOT_FOUND, "there is no call %s", id);
        stet_hint(err, "stet call list shows those that there are");
    } else if (status == STET_OK)
        status = stet_attempt_get(s->repo, list.at[0].execution, out, err); /* the newest */
    stet_attempts_release(&list);
    return status;
}

void call_ended(void *session, stet_call *c) {
    call_session *s = session;
    (void)c;
    s->ended = true;
    uv_stop(&s->loop);
}

static void on_tick(uv_timer_t *t) {
    uv_stop(t->loop);
}

stet_status call_drive(call_session *s, stet_call *c, bool (*until)(const stet_call *c), int64_t patience_ms,
                       stet_error *err) {
    uv_timer_t tick;
    int64_t from = stet_clock_monotonic_us();
    stet_status status = STET_OK;
    uv_timer_init(&s->loop, &tick);
    uv_timer_start(&tick, on_tick, TICK_MS, TICK_MS);
    while (!s->ended && !(until && until(c))) {
        if (s->ctx->cancelled(s->ctx)) {
            status = stet_fail(err, STET_CANCELLED, "stopped waiting for the call");
            break;
        }
        if (patience_ms >= 0 && stet_clock_monotonic_us() - from > patience_ms * 1000) {
            status = stet_fail(err, STET_BUSY, "the call has not ended yet");
            break;
        }
        uv_run(&s->loop, UV_RUN_DEFAULT);
    }
    uv_timer_stop(&tick);
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&s->loop, UV_RUN_NOWAIT);
    return status;
}

static stet_status put_function(call_session *s, stet_hash node, stet_value *out, stet_error *err) {
    stet_value record;
    stet_value_put(out, "node", stet_hash_text(node));
    stet_error inner = STET_ERROR_INIT;
    stet_status status = stet_repo_get(s->repo, node, STET_RECORD_NODE, &record, &inner);
    if (status == STET_NOT_FOUND || status == STET_CORRUPT) { /* the others are shown all the same; `check` tells */
        stet_value_put(out, "function", stet_value_string(""));
        stet_error_clear(&inner);
        return STET_OK;
    }
    stet_error_move(err, &inner);
    if (status != STET_OK)
        return status;
    stet_value_put(out, "function", stet_value_retain(stet_value_get(record, "function")));
    stet_value_release(record);
    return STET_OK;
}

static stet_status put_result(call_session *s, stet_hash result, bool ok, stet_value *out, stet_error *err) {
    stet_value value;
    stet_status status = stet_repo_dag_value(s->repo, result, &value, err);
    if (status != STET_OK)
        return status;
    if (!ok && stet_value_type(stet_value_get(value, "error")) == STET_TYPE_OBJECT) {
        stet_value_put(out, "failure", stet_value_retain(stet_value_get(value, "error")));
        stet_value_release(value);
    } else
        stet_value_put(out, ok ? "value" : "failure", value);
    return STET_OK;
}

stet_call_state call_id(call_session *s, const stet_call *c, char out[CALL_ID]) {
    stet_call_state state = stet_call_state_of(c);
    stet_hash node = stet_call_node(c);
    snprintf(out, CALL_ID, "%s", stet_call_execution(c));
    if (*out)
        return state;
    bool ended = stet_call_terminal(state), found = false;
    stet_attempts list = {0};
    stet_attempt_filter newest = {.node = &node, .live = !ended, .limit = ended ? 100 : 1};
    stet_hash_hex(node, out); /* a result that came with a fetch has no attempt */
    stet_status status = stet_attempt_list(s->repo, &newest, &list, NULL, NULL);
    for (size_t i = 0; i < list.len && status == STET_OK && !found; i++) {
        stet_hash exec;
        found = !ended || (stet_hash_of_text(stet_value_get(list.at[i].detail, "exec"), &exec) &&
                           stet_hash_equal(exec, stet_call_outcome_of(c)->exec));
        if (found)
            snprintf(out, CALL_ID, "%s", list.at[i].execution);
        if (found && !ended && list.at[i].state >= 0 && list.at[i].state < STET_CALL_STATES)
            state = (stet_call_state)list.at[i].state;
    }
    stet_attempts_release(&list);
    return state;
}

stet_status call_outcome_value(call_session *s, const stet_call *c, stet_value *out, stet_error *err) {
    char id[CALL_ID];
    stet_call_state state = call_id(s, c, id);
    const stet_call_outcome *o = stet_call_outcome_of(c);
    *out = stet_value_object();
    stet_value_put(out, "id", stet_value_string(id));
    stet_value_put(out, "state", stet_value_string(stet_call_state_name(state)));
    stet_value_put(out, "cached", stet_value_bool(state == STET_CALL_PINNED_HIT));
    stet_status status = put_function(s, stet_call_node(c), out, err);
    if (status == STET_OK && stet_call_terminal(state) && state != STET_CALL_FAILED) {
        stet_value_put(out, "ok", stet_value_bool(o->ok));
        stet_value_put(out, "exec", stet_hash_text(o->exec));
        stet_value_put(out, "result", stet_hash_text(o->result));
        status = put_result(s, o->result, o->ok, out, err);
    }
    if (status != STET_OK)
        stet_value_release(*out);
    return status;
}

stet_status call_value(call_session *s, const stet_attempt *a, bool whole, stet_value *out, stet_error *err) {
    stet_value v, exec = stet_value_get(a->detail, "exec");
    stet_hash id;
    size_t len = 0;
    bool known = a->state >= 0 && a->state < STET_CALL_STATES;
    *out = stet_value_object();
    stet_value_put(out, "id", stet_value_string(a->execution));
    stet_value_put(out, "state",
                   stet_value_string(stet_call_state_name(known ? (stet_call_state)a->state : STET_CALL_POLL)));
    stet_value_put(out, "cached", stet_value_bool(a->state == STET_CALL_PINNED_HIT));
    stet_value_put(out, "retries", stet_value_int(a->retries));
    stet_value_put(out, "created", stet_time_value(a->created_ms));
    stet_value_put(out, "updated", stet_time_value(a->updated_ms));
    if (!a->done && a->state == STET_CALL_RETRY_WAIT)
        stet_value_put(out, "next", stet_time_value(a->next_ms));
    static const char *const details[][2] = {
        {"progress", "progress"}, {"error", "lastError"}, {"remote", "remote"}, {"labels", "labels"}};
    for (size_t i = 0; i < sizeof details / sizeof *details; i++)
        if (stet_value_find(a->detail, details[i][0], strlen(details[i][0]), &v) &&
            stet_value_type(v) != STET_TYPE_NULL)
            stet_value_put(out, details[i][1], stet_value_retain(v));
    char *dir = stet_calls_dir(s->project);
    v = stet_backend_local_progress(dir, a->key); /* what the job says itself is newer */
    if (stet_value_type(v) != STET_TYPE_NULL)
        stet_value_put(out, "progress", v);
    stet_free(dir);
    stet_status status = put_function(s, a->node, out, err);
    const char *hex = stet_value_as_string(&exec, &len);
    if (status == STET_OK && hex && stet_hash_of_hex(hex, len, &id)) {
        stet_exec record;
        stet_error gone = STET_ERROR_INIT;
        stet_value_put(out, "exec", stet_hash_text(id));
        if (stet_repo_get_exec(s->repo, id, &record, &gone) == STET_OK) {
            stet_value_put(out, "ok", stet_value_bool(record.ok));
            stet_value_put(out, "result", stet_hash_text(record.result));
            stet_value_release(record.timings);
            if (whole && put_result(s, record.result, record.ok, out, &gone) != STET_OK)
                stet_value_put(out, "lastError", stet_error_value(&gone));
        } else
            stet_value_put(out, "lastError", stet_error_value(&gone));
        stet_error_clear(&gone);
    }
    if (status != STET_OK)
        stet_value_release(*out);
    return status;
}

static void print_json(stet_render *r, stet_value v) {
    char *text = stet_json_print(v, STET_JSON_PRETTY, NULL);
    stet_buf_str(r->out, text);
    stet_free(text);
}

void call_render(stet_render *r, stet_value call) {
    stet_value value, failure, id = stet_value_get(call, "id");
    if (stet_value_find(call, "value", 5, &value)) {
        print_json(r, value);
        return;
    }
    if (stet_value_find(call, "failure", 7, &failure)) {
        stet_text_styled(r, STET_STYLE_BAD, "the call failed: ");
        stet_value said = stet_value_get(failure, "stderr"), message = stet_value_get(failure, "message");
        if (stet_value_type(message) != STET_TYPE_STRING) {
            print_json(r, failure);
            return;
        }
        stet_text_value(r, message);
        stet_buf_char(r->out, '\n');
        stet_value hint = stet_value_get(failure, "hint");
        if (stet_value_type(hint) == STET_TYPE_STRING) {
            stet_buf_str(r->out, "hint: ");
            stet_text_value(r, hint);
            stet_buf_char(r->out, '\n');
        }
        size_t len;
        if (stet_value_type(said) == STET_TYPE_STRING && stet_value_as_string(&said, &len) && len > 0) {
            const char *text = stet_value_as_string(&said, &len);
            for (const char *p = text, *end; p < text + len; p = end + 1) { /* line by line: they are kept */
                end = memchr(p, '\n', (size_t)(text + len - p));
                end = end ? end : text + len;
                stet_text_plain(r, p, (size_t)(end - p));
                stet_buf_char(r->out, '\n');
            }
        }
        return;
    }
    stet_text_value(r, id);
    stet_buf_str(r->out, ": ");
    stet_text_value(r, stet_value_get(call, "state"));
    stet_value error = stet_value_get(call, "lastError");
    if (stet_value_type(stet_value_get(error, "message")) == STET_TYPE_STRING) {
        stet_buf_str(r->out, ": ");
        stet_text_value(r, stet_value_get(error, "message"));
    }
    stet_buf_char(r->out, '\n');
}

stet_status call_verdict(stet_value call) {
    stet_value ok;
    return stet_value_find(call, "ok", 2, &ok) && !stet_value_as_bool(ok) ? STET_FAILED : STET_OK;
}
