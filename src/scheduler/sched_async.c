/* sched_async.c - actions that are under way while others run: commands and calls.
 *
 * Each is started on a snapshot that is released at once. Its end is stored on a new snapshot, after the kind has read
 * again what its result depends on. So a run of hours holds nothing.
 *
 *   A1. A run that is under way has a transaction only inside a section (module.h), and at most one run is in a
 *       section: `s->section`. Whatever ends a group is called outside of sections, or ends them first
 *       (sched_group_end).
 *   A2. Only what says something about the action is recorded. A run that was stopped, or that failed because of stet
 *       itself, leaves the action as outdated as it was.
 *   A3. A run counts as under way from before its kind begins with it. The kind may look at what others have stored; an
 *       action that is taken out of the plan for that, and comes back, would otherwise run twice at the same time.
 */

#include <uv.h>

#include "scheduler/sched_internal.h"

typedef struct sched_async {
    uv_loop_t loop;
    uv_timer_t timer;
    STET_VEC(action_run *) runs;
    stet_status status; /* of storing a result: the first failure */
    stet_error err;
} sched_async;

static void no_more(uv_timer_t *t) {
    (void)t;
}

stet_status sched_async_loop(stet_sched *s, struct uv_loop_s **out, stet_error *err) {
    if (!s->async) {
        sched_async *x = stet_alloc_zero(sizeof *x);
        if (uv_loop_init(&x->loop) != 0) {
            stet_free(x);
            return stet_fail(err, STET_IO, "cannot make an event loop");
        }
        uv_timer_init(&x->loop, &x->timer);
        s->async = x;
    }
    *out = &s->async->loop;
    return STET_OK;
}

size_t sched_async_count(const stet_sched *s) {
    return s->async ? s->async->runs.len : 0;
}

action_run *sched_async_running(const stet_sched *s, const sched_action *a) {
    for (size_t i = 0; s->async && i < s->async->runs.len; i++)
        if (s->async->runs.at[i]->a == a)
            return s->async->runs.at[i];
    return NULL;
}

static void drop_transaction(action_run *r) {
    if (r->s->section == r)
        r->s->section = NULL;
    if (!r->tx)
        return;
    stet_reader_release(&r->reader);
    stet_tx_abort(r->tx);
    r->tx = NULL;
}

static void forget(stet_sched *s, action_run *r) {
    for (size_t i = 0; s->async && i < s->async->runs.len; i++)
        if (s->async->runs.at[i] == r) {
            s->async->runs.at[i] = s->async->runs.at[--s->async->runs.len];
            break;
        }
}

/* A failure that came without a look at the inputs rests on all of them: any of them may mend it. */
static stet_status look_at_inputs(action_run *r, stet_error *err) {
    stet_value seen;
    stet_error ignored = STET_ERROR_INIT;
    stet_status status = sched_run_transaction(r, err);
    if (status == STET_OK &&
        stet_reader_binding(&r->reader, r->base.bindings, STET_PATH_ROOT, STET_RECURSIVE, &seen, &ignored) != STET_OK)
        stet_error_clear(&ignored); /* what is absent was looked at, too */
    return status;
}

/* Stores what ended, or leaves it as outdated as it was. */
static stet_status end_run(action_run *r, stet_error *err) {
    stet_sched *s = r->s;
    stet_status status = STET_OK;
    bool dropped = false; /* with its child */
    if (s->section == r)
        s->section = NULL;
    if (sched_run_tells_nothing(r)) {
        drop_transaction(r);
        /* One whose child is gone was stopped for that, and does not come back. */
        if (r->a->child_doc)
            status = sched_run_transaction(r, err);
        if (r->tx && !sched_child_there(r)) {
            sched_run_drop(r);
            dropped = true;
        } else {
            drop_transaction(r);
            if (status == STET_OK && r->turn != SCHED_GO)
                status = sched_run_give_way(r, r->turn, err);
            else
                sched_run_leave(r);
        }
    } else {
        if (!r->tx)
            status = look_at_inputs(r, err);
        if (status == STET_OK && !sched_child_there(r)) {
            sched_run_drop(r);
            dropped = true;
        } else if (status == STET_OK) {
            s->stopped |= r->failed && s->opts.stop_on_failure;
            sched_run_check(r);
            status = sched_run_store(r, err);
        }
    }
    if (r->a->effect) { /* nobody else does it again: that it was done is stored before others may look */
        if (status == STET_OK)
            status = sched_flush(s, err);
        sched_effect_done(s);
    }
    forget(s, r);
    if (!dropped)
        sched_row_drop(r->a);
    stet_free(r);
    return status;
}

stet_status sched_async_run(stet_sched *s, sched_action *a, stet_error *err) {
    action_run *r = stet_alloc_zero(sizeof *r);
    struct uv_loop_s *loop;
    stet_status status = sched_async_loop(s, &loop, err);
    if (status == STET_OK)
        status = sched_run_begin(s, a, r, err);
    if (status != STET_OK) {
        if (a->effect)
            sched_effect_done(s);
        stet_free(r);
        return status;
    }
    s->section = r;
    *stet_vec_add(&s->async->runs) = r; /* A3 */
    sched_run_execute(r);
    if (r->base.ended || r->failed)
        return end_run(r, err);
    drop_transaction(r);
    r->asynchronous = true;
    if (r->unwanted)
        sched_async_stop(r);
    return STET_OK;
}

void sched_async_stop(action_run *r) {
    void *state = NULL;
    r->unwanted = true;
    if (r->asynchronous && r->a->kind->cancel && sched_kind_state(r->s, r->a->kind, &state, NULL) == STET_OK)
        r->a->kind->cancel(state, &r->base);
}

stet_status sched_async_refresh(action_run *r, stet_error *err) {
    stet_sched *s = r->s;
    int64_t head;
    drop_transaction(r);
    if (s->section) /* the kind turns to another run: A1 */
        drop_transaction(s->section);
    /* The group's snapshot must have what others committed since, this kind's own commits among them. */
    stet_status status = stet_space_seq(s->space, &head, err);
    if (status == STET_OK && s->batch.group && head != s->batch.head) {
        bool news;
        status = s->batch.members.len > 0 ? sched_flush(s, err) : sched_news(s, &news, err);
        if (status == STET_OK)
            sched_group_end(s);
    }
    if (status == STET_OK)
        status = sched_run_transaction(r, err);
    if (status == STET_OK && r->a->kind->asynchronous) { /* the transaction of any other ends with its run */
        s->section = r;
        if (!s->far_state.has_cells) /* other spaces are read as they are known here, which may be older */
            stet_plan_reads_anew(s->plan, r->a->id);
    }
    return status;
}

/* All that others have stored is heard of first, and nothing of our own is unstored: then the record tells. What it says
 * may be newer than what was heard: then the rest of it is heard later, and marks too much at the most. */
static bool has_stored(action_run *r, stet_arena *arena, stet_memo_action *x) {
    stet_sched *s = r->s;
    const sched_action *a = r->a;
    stet_error err = STET_ERROR_INIT;
    bool news, stands = false;
    drop_transaction(r);
    if (s->section) /* A1 */
        drop_transaction(s->section);
    stet_status status = sched_flush(s, &err);
    if (status == STET_OK)
        status = sched_news(s, &news, &err);
    if (status == STET_OK) {
        sched_group_end(s);
        status = sched_run_transaction(r, &err);
    }
    if (status == STET_OK && !s->outdated && !r->unwanted && sched_child_there(r))
        stands = stet_memo_load(s->memo, a->piece->piece->key, a->node, arena, x, &err) == STET_OK && x->observed &&
                 x->state == STET_STATE_STANDS && !x->failed && stet_hash_equal(x->implementation, a->fingerprint) &&
                 stet_hash_equal(x->runtime, s->runtime);
    drop_transaction(r);
    stet_error_clear(&err); /* whatever it is, the run meets it, too */
    return stands;
}

bool sched_async_yield(action_run *r) {
    stet_sched *s = r->s;
    sched_action *a = r->a;
    stet_arena arena = STET_ARENA_INIT;
    stet_memo_action x = {0};
    if (!s->memo->durable || s->opts.observe_only || a->asked || a->effect || a->materializer || a->has_cells ||
        a->role != STET_CHILD_NONE || !has_stored(r, &arena, &x)) {
        stet_arena_release(&arena);
        return false;
    }
    r->base.ended = true;
    forget(s, r);
    stet_plan_finish(s->plan, a->id, STET_PLAN_DONE, sched_now(s));
    sched_restore(s, a, &x);
    stet_plan_unmark(s->plan, a->id);
    a->observed = a->same_code = true;
    if (a->failed)
        sched_take_back(s, a);
    if (a->failed || a->below_failed)
        sched_rose(s);
    a->failed = a->doubtful = a->below_failed = a->verify = false;
    a->conflicts = 0;
    sched_emit(s, STET_SCHED_CANCELLED, a, NULL);
    sched_cells_release(r);
    stet_value_release(r->result);
    stet_error_clear(&r->error);
    sched_children_release(r);
    sched_row_drop(a);
    stet_free(r);
    stet_arena_release(&arena);
    return true;
}

void sched_async_suspend(action_run *r) {
    drop_transaction(r);
}

void sched_async_ended(action_run *r) {
    sched_async *x = r->s->async;
    stet_error err = STET_ERROR_INIT;
    stet_status status = end_run(r, &err);
    if (x->status == STET_OK && status != STET_OK) {
        x->status = status;
        stet_error_move(&x->err, &err);
    }
    stet_error_clear(&err);
}

stet_status sched_async_wait(stet_sched *s, int64_t ms, stet_error *err) {
    sched_async *x = s->async;
    size_t before = x->runs.len;
    if (ms > 0 &&
        s->batch.members.len > 0) { /* what waits to be stored does not wait longer than it should, nor spins */
        int64_t rest = sched_flush_in_us(s);
        ms = rest < 0 ? 0 : ms < rest / 1000 + 1 ? ms : rest / 1000 + 1;
    }
    if (ms > 0)
        uv_timer_start(&x->timer, no_more, (uint64_t)ms, 0);
    uv_run(&x->loop, ms > 0 ? UV_RUN_ONCE : UV_RUN_NOWAIT);
    if (ms > 0 && x->runs.len == before && uv_is_active((uv_handle_t *)&x->timer))
        uv_run(&x->loop, UV_RUN_NOWAIT);
    uv_timer_stop(&x->timer);
    if (s->section) /* A1 */
        drop_transaction(s->section);
    stet_status status = x->status;
    x->status = STET_OK;
    if (status != STET_OK)
        stet_error_move(err, &x->err);
    return status;
}

void sched_async_cancel(stet_sched *s) {
    sched_async *x = s->async;
    if (!x)
        return;
    while (x->runs.len > 0) {
        size_t n = x->runs.len;
        action_run **copy = stet_alloc(n * sizeof *copy);
        memcpy(copy, x->runs.at, n * sizeof *copy);
        for (size_t i = 0; i < n; i++) {
            bool there = false;
            for (size_t k = 0; k < x->runs.len; k++)
                there |= x->runs.at[k] == copy[i];
            void *state = NULL;
            if (there && sched_kind_state(s, copy[i]->a->kind, &state, NULL) == STET_OK)
                copy[i]->a->kind->cancel(state, &copy[i]->base);
        }
        stet_free(copy);
        if (x->runs.len > 0) {
            uv_timer_start(&x->timer, no_more, 50, 0);
            uv_run(&x->loop, UV_RUN_ONCE);
        }
    }
    uv_timer_stop(&x->timer);
    x->status = STET_OK;
    stet_error_clear(&x->err);
}

void sched_async_free(stet_sched *s) {
    sched_async *x = s->async;
    if (!x)
        return;
    uv_close((uv_handle_t *)&x->timer, NULL);
    uv_run(&x->loop, UV_RUN_NOWAIT);
    uv_loop_close(&x->loop);
    stet_vec_release(&x->runs);
    stet_error_clear(&x->err);
    stet_free(x);
    s->async = NULL;
}
