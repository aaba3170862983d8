/* executor.c - the executor's interface: opening and closing; starting, resuming, cancelling and freeing calls.
 *
 * What a call does in between is in executor_loop.c.
 */

#include "call/executor.h"

#include <assert.h>
#include <string.h>

#include "base/vec.h"
#include "call/adapter.h"
#include "call/executor_internal.h"
#include "os/clock.h"

stet_hash stet_call_key(stet_hash node) {
    return stet_hash_of(node.bytes, sizeof node.bytes);
}

static stet_hash own_key(stet_hash node, const char *execution) {
    stet_hasher *h = stet_hasher_begin();
    stet_hasher_add(h, node.bytes, sizeof node.bytes);
    stet_hasher_add(h, execution, strlen(execution));
    return stet_hasher_end(h);
}

stet_value stet_attempt_error(const stet_attempt *a) {
    return stet_value_get(a->detail, "error");
}

char *stet_executor_log_path(const char *dir, const char *execution) {
    return stet_asprintf("%s/logs/%s.log", dir, execution);
}

stet_call_state stet_call_state_of(const stet_call *c) {
    return c->m.state;
}

const stet_call_outcome *stet_call_outcome_of(const stet_call *c) {
    return &c->outcome;
}

stet_hash stet_call_node(const stet_call *c) {
    return c->node;
}

const char *stet_call_execution(const stet_call *c) {
    return c->row.execution;
}

bool stet_call_submitted(const stet_call *c) {
    return c->submitted;
}

static stet_call *call_new(stet_executor *x, stet_hash node, stet_call_ended *ended, void *ctx) {
    stet_call *c = stet_alloc_zero(sizeof *c);
    c->x = x;
    c->node = node;
    c->ended = ended;
    c->ctx = ctx;
    c->m = (stet_call_machine)STET_CALL_MACHINE;
    c->started_ms = stet_clock_ms();
    c->row.node = node;
    uv_timer_init(x->loop, &c->timer);
    c->timer.data = c;
    x->handles++;
    *stet_vec_add(&x->calls) = c;
    return c;
}

stet_status stet_executor_pinned(stet_executor *x, stet_hash node, bool *there, stet_hash *exec, stet_error *err) {
    return stet_repo_pinned(x->repo, node, there, exec, err);
}

stet_status stet_executor_start(stet_executor *x, const stet_call_request *r, stet_call_ended *ended, void *ctx,
                                stet_call **out, stet_error *err) {
    stet_call *c = call_new(x, r->node, ended, ctx);
    c->cache = r->cache;
    c->row.cache = r->cache;
    c->row.key = stet_call_key(r->node);
    if (!r->cache) {
        stet_uuid(c->row.execution);
        c->row.key = own_key(r->node, c->row.execution);
    }
    if (r->remote)
        c->remote_uri = stet_strdup(r->remote);
    if (r->attempts > 0)
        stet_call_detail(c, "attempts", stet_value_int(r->attempts));
    if (stet_value_count(r->labels) > 0)
        stet_call_detail(c, "labels", stet_value_retain(r->labels));
    if (r->timeout_ms > 0)
        stet_call_detail(c, "deadline", stet_value_int(stet_clock_ms() + r->timeout_ms));
    /* A hit needs no more than the pin. */
    bool pinned = false;
    stet_status status = r->cache ? stet_call_look_at_pin(c, &pinned, err) : STET_OK;
    c->pin_checked = true;
    if (status == STET_OK && pinned)
        stet_call_advance(c, STET_CALL_PINNED);
    else if (status == STET_OK)
        status = stet_call_read_node(c, err);
    if (status != STET_OK) {
        stet_call_free(c);
        return status;
    }
    if (!pinned)
        stet_call_act(c);
    *out = c;
    return STET_OK;
}

stet_status stet_executor_resume(stet_executor *x, const char *execution, stet_call_ended *ended, void *ctx,
                                 stet_call **out, stet_error *err) {
    stet_attempt a;
    stet_status status = stet_attempt_get(x->repo, execution, &a, err);
    if (status != STET_OK)
        return status;
    stet_call *c = call_new(x, a.node, ended, ctx);
    c->cache = a.cache;
    c->row.key = a.key;
    c->row.cache = a.cache;
    status = stet_call_read_node(c, err);
    if (status == STET_OK && a.done) {
        memcpy(c->row.execution, a.execution, sizeof a.execution);
        stet_call_take_done(c, &a);
        stet_call_finish(c);
    } else if (status == STET_OK) {
        memcpy(c->row.execution, a.execution, sizeof a.execution);
        stet_value_release(c->row.detail);
        c->row.detail = stet_value_retain(a.detail);
        if (!a.cache)
            c->row_is = CALL_ROW_TO_RESUME; /* its own key: nobody else has a row for it */
        stet_call_act(c);
    }
    stet_attempt_release(&a);
    if (status != STET_OK) {
        stet_call_free(c);
        return status;
    }
    *out = c;
    return STET_OK;
}

stet_status stet_executor_cancel(stet_executor *x, const char *execution, stet_call_ended *ended, void *ctx,
                                 stet_call **out, stet_error *err) {
    for (int round = 0;; round++) {
        stet_attempt a;
        stet_status status = stet_attempt_get(x->repo, execution, &a, err);
        if (status != STET_OK)
            return status;
        if (a.done) {
            stet_attempt_release(&a);
            return stet_fail(err, STET_CONFLICT, "the call %s has ended already", execution);
        }
        stet_call *c = call_new(x, a.node, ended, ctx);
        stet_call_adopt(c, &a);
        stet_attempt_release(&a);
        status = stet_call_read_node(c, err);
        stet_error why = STET_ERROR_INIT, inner = STET_ERROR_INIT;
        stet_fail(&why, STET_CANCELLED, "the call was cancelled");
        stet_call_detail(c, "error", stet_error_value(&why));
        bool known = stet_call_step(&c->m, STET_CALL_CANCELLED);
        assert(known);
        (void)known;
        c->row.state = (int)c->m.state;
        c->row.done = true;
        if (status == STET_OK)
            status = stet_attempt_move(x->repo, &c->row, c->stored, &inner);
        if (status != STET_OK) {
            stet_call_free(c);
            stet_error_clear(&why);
            if (status == STET_CONFLICT && round < 100) {
                stet_error_clear(&inner);
                continue;
            }
            stet_error_move(err, &inner);
            return status;
        }
        stet_error_move(&c->error, &why);
        c->stop_work = true;
        stet_call_finish(c);
        *out = c;
        return STET_OK;
    }
}

static void timer_closed(uv_handle_t *h) {
    stet_call *c = h->data;
    c->x->handles--;
    stet_free(c);
}

void stet_call_bury(stet_call *c) {
    stet_value_release(c->row.detail);
    stet_value_release(c->token);
    stet_error_clear(&c->error);
    stet_free(c->function);
    stet_free(c->remote_uri);
    stet_vec_release(&c->inputs);
    stet_value_release(c->code);
    uv_timer_stop(&c->timer);
    uv_close((uv_handle_t *)&c->timer, timer_closed);
}

void stet_call_free(stet_call *c) {
    if (!c)
        return;
    stet_executor *x = c->x;
    for (size_t i = 0; i < x->calls.len; i++)
        if (x->calls.at[i] == c) {
            x->calls.at[i] = x->calls.at[--x->calls.len];
            break;
        }
    for (size_t i = 0; i < x->queue.len; i++)
        if (x->queue.at[i] == c) {
            memmove(x->queue.at + i, x->queue.at + i + 1, (--x->queue.len - i) * sizeof *x->queue.at);
            break;
        }
    c->life = CALL_FREED;
    stet_call_drop_lock(c);
    if (c->poll) /* its answer comes from the loop, and must find the call there */
        stet_adapter_stop(c->poll);
    else
        stet_call_bury(c);
}

stet_status stet_executor_open(stet_repo *repo, struct uv_loop_s *loop, const stet_executor_opts *o,
                               stet_executor **out, stet_error *err) {
    stet_executor *x = stet_alloc_zero(sizeof *x);
    (void)err;
    x->repo = repo;
    x->loop = loop;
    x->root = stet_strdup(o->root);
    x->dir = stet_strdup(o->dir);
    x->own_uri = stet_repo_uri(repo);
    x->remote_uri = stet_strdup(o->remote ? o->remote : x->own_uri);
    x->backoff = o->backoff;
    if (x->backoff.attempts <= 0)
        x->backoff = (stet_backoff){.attempts = STET_BACKOFF_ATTEMPTS,
                                    .first_ms = STET_BACKOFF_FIRST_MS,
                                    .most_ms = STET_BACKOFF_MOST_MS,
                                    .seed = o->backoff.seed};
    if (x->backoff.seed == 0)
        stet_random(&x->backoff.seed, sizeof x->backoff.seed);
    x->poll_timeout_ms = o->poll_timeout_ms > 0 ? o->poll_timeout_ms : STET_ADAPTER_POLL_MS;
    x->adapters = o->adapters > 0 ? o->adapters : STET_EXECUTOR_ADAPTERS;
    x->say = o->say;
    x->log = o->log;
    x->progress = o->progress;
    x->ctx = o->ctx;
    *out = x;
    return STET_OK;
}

void stet_executor_close(stet_executor *x) {
    if (!x)
        return;
    x->closing = true;
    while (x->calls.len > 0)
        stet_call_free(x->calls.at[x->calls.len - 1]);
    while (x->handles > 0)
        uv_run(x->loop, UV_RUN_NOWAIT);
    for (size_t i = 0; i < x->remotes.len; i++) {
        stet_hub_close(x->remotes.at[i].hub);
        stet_free(x->remotes.at[i].uri);
    }
    stet_vec_release(&x->remotes);
    stet_map_release(&x->whole);
    stet_vec_release(&x->outcomes);
    stet_vec_release(&x->calls);
    stet_vec_release(&x->queue);
    stet_free(x->root);
    stet_free(x->dir);
    stet_free(x->own_uri);
    stet_free(x->remote_uri);
    stet_free(x);
}
