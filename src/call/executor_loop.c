/* executor_loop.c - the loop around the machine: resolve, poll, integrate, wait, each with its row. */
#include "call/executor_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "call/adapter.h"
#include "os/clock.h"
#include "os/file.h"

#define LOOK_FIRST_MS 20 /* how soon a lock that somebody else holds is looked at again */
#define LOOK_MOST_MS  250
#define POLL_FIRST_MS 100 /* where an adapter does not say when to ask again */
#define POLL_MOST_MS  5000
#define POLL_LEAST_MS 20 /* an adapter that says "at once" is not asked in a circle */
#define LOG_MAX       ((int64_t)4 << 20)
#define LIST_MAX      10000

void stet_call_detail(stet_call *c, const char *key, stet_value v) {
    if (stet_value_type(c->row.detail) != STET_TYPE_OBJECT) {
        stet_value_release(c->row.detail);
        c->row.detail = stet_value_object();
    }
    stet_value_put(&c->row.detail, key, v);
}

static int64_t detail_int(const stet_call *c, const char *key) {
    return stet_value_as_int(stet_value_get(c->row.detail, key));
}

static void set_token(stet_call *c, stet_value token) {
    stet_value_release(c->token);
    c->token = stet_value_retain(token);
    size_t len = 0;
    c->row.token = stet_value_type(c->token) == STET_TYPE_STRING ? stet_value_as_string(&c->token, &len) : NULL;
    c->row.token_len = len;
}

static void tell(stet_call *c) {
    if (c->life >= CALL_REPORTED)
        return;
    c->life = CALL_REPORTED;
    if (c->ended)
        c->ended(c->ctx, c);
}

static void on_timer(uv_timer_t *t) {
    stet_call *c = t->data;
    if (c->life != CALL_ACTIVE)
        tell(c);
    else
        stet_call_act(c);
}

/* The next step after that long, or when the time of the whole call is over. */
static void later(stet_call *c, int64_t ms) {
    int64_t deadline = c->patience_ms ? c->patience_ms : detail_int(c, "deadline");
    if (deadline && c->life == CALL_ACTIVE) {
        int64_t left = deadline - stet_clock_ms();
        ms = left < ms ? left : ms;
    }
    uv_timer_start(&c->timer, on_timer, ms > 0 ? (uint64_t)ms : 0, 0);
}

/* This executor cannot continue; c->error says why. The row stays as it is, for whoever can. */
static void abandon(stet_call *c) {
    bool known = stet_call_step(&c->m, STET_CALL_ABANDONED);
    assert(known);
    (void)known;
    stet_call_finish(c);
}

/* Somebody else has moved the row, or it is gone (E6). */
static void overtaken(stet_call *c) {
    stet_attempt now = {0};
    stet_error err = STET_ERROR_INIT;
    stet_status status = stet_attempt_get(c->x->repo, c->row.execution, &now, &err);
    stet_error_clear(&err);
    stet_error_clear(&c->error);
    if (status == STET_OK && now.done) {
        stet_call_take_done(c, &now);
        stet_call_finish(c);
    } else {
        stet_fail(&c->error, STET_CONFLICT, "the attempt %s was taken away by somebody else", c->row.execution);
        abandon(c);
    }
    if (status == STET_OK)
        stet_attempt_release(&now);
}

/* Stores the row in the state that the machine is going to be in. False: that failed, and the call has ended. */
static bool save(stet_call *c, const stet_call_machine *next) {
    c->row.state = (int)next->state;
    c->row.resume = (int)next->resume;
    c->row.done = stet_call_terminal(next->state);
    stet_error err = STET_ERROR_INIT;
    stet_status status = stet_attempt_move(c->x->repo, &c->row, c->stored, &err);
    if (status == STET_NOT_FOUND && !c->row.done) { /* rows may be dropped: they hold nothing that is not found again */
        stet_error_clear(&err);
        status = stet_attempt_add(c->x->repo, &c->row, &err);
    }
    if (status == STET_OK || (status == STET_NOT_FOUND && c->row.done)) {
        stet_error_clear(&err);
        c->stored = c->row.state;
        return true;
    }
    if (status == STET_CONFLICT) {
        stet_error_clear(&err);
        overtaken(c);
        return false;
    }
    /* The disk is full or broken: nothing that could be relied on can be written. */
    stet_error_clear(&c->error);
    stet_error_move(&c->error, &err);
    abandon(c);
    return false;
}

void stet_call_advance(stet_call *c, stet_call_event event) {
    stet_call_machine next = c->m;
    bool known = stet_call_step(&next, event);
    assert(known);
    (void)known;
    if (c->row_is == CALL_ROW_STORED && !save(c, &next))
        return;
    c->m = next;
    if (stet_call_terminal(c->m.state))
        stet_call_finish(c);
}

/* It failed, and may succeed later. `err` is taken over. */
static void retry_later(stet_call *c, stet_error *err) {
    c->row.retries++;
    stet_backoff b = c->x->backoff;
    int64_t attempts = detail_int(c, "attempts");
    b.attempts = attempts > 0 ? attempts : b.attempts;
    int64_t wait = stet_backoff_next(&b, c->row.retries);
    c->x->backoff.seed = b.seed;
    stet_call_detail(c, "error", stet_error_value(err));
    c->row.next_ms = wait < 0 ? 0 : stet_clock_ms() + wait;
    stet_error_clear(&c->error);
    stet_error_move(&c->error, err);
    if (wait < 0) {
        char *last = stet_strdup(c->error.message);
        stet_status status = c->error.status;
        stet_error_clear(&c->error);
        stet_fail(&c->error, status, "given up after %lld attempt%s: %s", (long long)c->row.retries,
                  c->row.retries == 1 ? "" : "s", last);
        stet_free(last);
        stet_call_detail(c, "error", stet_error_value(&c->error));
    }
    stet_call_advance(c, STET_CALL_TRANSIENT);
    if (c->life != CALL_ACTIVE)
        return;
    if (wait < 0)
        stet_call_advance(c, STET_CALL_EXHAUSTED);
    else
        later(c, wait);
}

static void fail_permanently(stet_call *c, stet_error *err) {
    stet_call_detail(c, "error", stet_error_value(err));
    stet_error_clear(&c->error);
    stet_error_move(&c->error, err);
    stet_call_advance(c, STET_CALL_FINAL);
}

static bool is_transient(stet_status status) {
    return status == STET_BUSY || status == STET_IO || status == STET_NOT_FOUND || status == STET_CONFLICT;
}

static void keep_log(stet_call *c, const char *bytes, size_t len) {
    if (len == 0)
        return;
    char *path = stet_executor_log_path(c->x->dir, c->row.execution), *dir = stet_file_dirname(path);
    struct stat st;
    bool room = stet_sys_stat(path, &st) != 0 || st.st_size < LOG_MAX;
    if (room &&
        (stet_file_mkdirs(dir, 0755, NULL) != STET_OK || stet_file_append(path, bytes, len, false, NULL) != STET_OK)) {
        /* a log that can't be written is no reason to stop */
    }
    stet_free(path);
    stet_free(dir);
    if (c->x->log)
        c->x->log(c->x->ctx, c, bytes, len);
}

static void on_pending(stet_call *c, const stet_adapter_reply *r) {
    stet_value progress = stet_value_null();
    if (r->done >= 0 || r->total >= 0 || stet_value_type(r->note) == STET_TYPE_STRING) {
        progress = stet_value_object();
        if (r->done >= 0)
            stet_value_put(&progress, "done", stet_value_int(r->done));
        if (r->total >= 0)
            stet_value_put(&progress, "total", stet_value_int(r->total));
        if (stet_value_type(r->note) == STET_TYPE_STRING)
            stet_value_put(&progress, "note", stet_value_retain(r->note));
        if (c->x->progress) {
            stet_value note = r->note;
            c->x->progress(c->x->ctx, c, r->done < 0 ? 0 : r->done, r->total < 0 ? 0 : r->total,
                           stet_value_type(note) == STET_TYPE_STRING ? stet_value_as_string(&note, NULL) : NULL);
        }
    }
    /* Nothing new is not written: a sync for each look would be the larger part of the work. */
    bool news = !stet_value_equal(c->token, r->token) || c->row.retries != 0 ||
                !stet_value_equal(stet_value_get(c->row.detail, "progress"), progress) ||
                stet_value_type(stet_value_get(c->row.detail, "error")) != STET_TYPE_NULL;
    set_token(c, r->token);
    c->row.retries = 0;
    c->submitted = true;
    c->taken_up = false;
    int64_t wait = r->poll_after_ms;
    if (wait < 0) {
        wait = c->wait_ms ? c->wait_ms : POLL_FIRST_MS;
        c->wait_ms = wait * 2 < POLL_MOST_MS ? wait * 2 : POLL_MOST_MS;
    }
    wait = wait < POLL_LEAST_MS ? POLL_LEAST_MS : wait;
    if (news) {
        stet_call_detail(c, "progress", progress);
        stet_call_detail(c, "error", stet_value_null());
        stet_call_advance(c, STET_CALL_PENDING);
    } else {
        stet_value_release(progress);
        /* What somebody else did to the row is looked for all the same. */
        stet_attempt now;
        if (stet_attempt_get(c->x->repo, c->row.execution, &now, NULL) == STET_OK) {
            bool moved = now.state != c->stored;
            stet_attempt_release(&now);
            if (moved)
                overtaken(c);
        }
    }
    if (c->life == CALL_ACTIVE)
        later(c, wait);
}

static void answered(void *ctx, const stet_adapter_reply *r) {
    stet_call *c = ctx;
    stet_executor *x = c->x;
    c->poll = NULL;
    x->asking--;
    if (c->life == CALL_FREED) {
        stet_call_bury(c);
        stet_executor_pump(x);
        return;
    }
    keep_log(c, r->log, r->log_len);
    stet_error err = STET_ERROR_INIT;
    switch (r->status) {
    case STET_ADAPTER_PENDING:
        on_pending(c, r);
        break;
    case STET_ADAPTER_DONE_OK:
    case STET_ADAPTER_DONE_ERROR:
        c->submitted = true;
        c->row.retries = 0;
        stet_call_detail(c, "result", stet_hash_text(r->result));
        stet_call_detail(c, "error", stet_value_null());
        stet_call_detail(c, "keep", r->passing ? stet_value_bool(false) : stet_value_null());
        stet_call_detail(c, "retry", r->retry ? stet_value_bool(true) : stet_value_null());
        stet_call_advance(c, r->status == STET_ADAPTER_DONE_OK ? STET_CALL_DONE_OK : STET_CALL_DONE_ERROR);
        if (c->life == CALL_ACTIVE)
            stet_call_act(c);
        break;
    case STET_ADAPTER_FAILED_TRANSIENT:
        stet_fail(&err, r->error.status, "%s", r->error.message);
        retry_later(c, &err);
        break;
    case STET_ADAPTER_FAILED_PERMANENT:
        stet_fail(&err, r->error.status, "%s", r->error.message);
        fail_permanently(c, &err);
        break;
    case STET_ADAPTER_STOPPED:
        break; /* the executor is being closed */
    }
    stet_error_clear(&err);
    stet_executor_pump(x);
}

/* A cancelled call is told by the caller, as if no adapter had to be heard. */
static stet_status ask_hub(stet_call *c, bool cancel, stet_adapter_answer *answer, stet_error *err) {
    stet_adapter_reply reply;
    stet_call_ask_hub(c, cancel, &reply);
    if (!cancel) {
        c->x->asking++;
        answer(c, &reply);
    }
    stet_adapter_reply_release(&reply);
    return cancel ? stet_fail(err, STET_UNSUPPORTED, "a hub is not an adapter") : STET_OK;
}

/* Asks the adapter. */
static stet_status ask(stet_call *c, bool cancel, stet_adapter_answer *answer, stet_error *err) {
    char ref[64], key[STET_HASH_HEX];
    bool left;
    stet_status status = stet_call_left_in_hub(c, &left, err);
    if (status != STET_OK || left)
        return left ? ask_hub(c, cancel, answer, err) : status;
    snprintf(ref, sizeof ref, "refs/exec/%s", c->row.execution);
    stet_hash_hex(c->row.key, key);
    stet_adapter_request r = {.function = c->function,
                              .cancel = cancel,
                              .node = c->node,
                              .inputs = c->inputs.at,
                              .input_count = c->inputs.len,
                              .remote = c->remote_uri,
                              .ref = ref,
                              .execution = c->row.execution,
                              .key = key,
                              .code = c->code,
                              .tries = (int64_t)stet_value_count(stet_value_get(c->row.detail, "failed")),
                              .token = c->token,
                              .cwd = c->x->root,
                              .timeout_ms = c->x->poll_timeout_ms};
    status = stet_adapter_start(c->x->loop, &r, answer, c, &c->poll, err);
    if (status == STET_OK)
        c->x->asking++;
    return status;
}

static void poll_adapter(stet_call *c) {
    stet_error err = STET_ERROR_INIT;
    if (c->x->asking >= c->x->adapters) {
        if (!c->queued)
            *stet_vec_add(&c->x->queue) = c;
        c->queued = true;
        return;
    }
    stet_status status = stet_call_publish_snapshot(c, &err);
    if (status == STET_OK)
        status = ask(c, false, answered, &err);
    if (status == STET_OK)
        return;
    if (is_transient(status) && status != STET_NOT_FOUND)
        retry_later(c, &err);
    else
        fail_permanently(c, &err);
    stet_error_clear(&err);
}

void stet_executor_pump(stet_executor *x) {
    while (!x->closing && x->asking < x->adapters && x->queue.len > 0) {
        stet_call *c = x->queue.at[0];
        memmove(x->queue.at, x->queue.at + 1, --x->queue.len * sizeof *x->queue.at);
        c->queued = false;
        stet_call_act(c);
    }
}

/* How long to wait before the failed job is tried again; negative: it is not. */
static int64_t next_try(stet_call *c) {
    stet_backoff b = c->x->backoff;
    int64_t attempts = detail_int(c, "attempts");
    b.attempts = attempts > 0 ? attempts : b.attempts;
    bool old = c->taken_up && stet_call_passing(&c->row);
    c->taken_up = false;
    if (old)
        return 0; /* it failed before this call was made, which is no answer to it */
    if (!stet_call_passing(&c->row) || !stet_value_as_bool(stet_value_get(c->row.detail, "retry")))
        return -1;
    int64_t wait = stet_backoff_next(&b, (int64_t)stet_value_count(stet_value_get(c->row.detail, "failed")) + 1);
    c->x->backoff.seed = b.seed;
    return wait;
}

static void integrate(stet_call *c) {
    stet_error err = STET_ERROR_INIT;
    bool moved = false;
    int64_t wait = next_try(c);
    stet_call_event event = wait < 0 ? STET_CALL_INTEGRATED : STET_CALL_AGAIN;
    stet_status status = stet_call_integrate(c, event, stet_clock_ms() + wait, &moved, &err);
    if (status == STET_OK && moved)
        overtaken(c);
    else if (status == STET_OK) { /* the row was moved with the record: E1 */
        bool known = stet_call_step(&c->m, event);
        assert(known);
        (void)known;
        c->stored = (int)c->m.state;
        if (stet_call_terminal(c->m.state))
            stet_call_finish(c);
        else
            later(c, wait);
    } else if (is_transient(status))
        retry_later(c, &err);
    else
        fail_permanently(c, &err);
    stet_error_clear(&err);
}

/* Did somebody who held the lock while we waited for it fail, and leave no pin? Then that is our answer, too. The state is
 * terminal then. */
static bool failed_meanwhile(stet_call *c) {
    stet_attempts list = {0};
    bool failed = false;
    stet_attempt_filter of_node = {.node = &c->node, .limit = LIST_MAX};
    if (!c->waited || stet_attempt_list(c->x->repo, &of_node, &list, NULL, NULL) != STET_OK)
        return false;
    for (size_t i = 0; i < list.len && !failed; i++) {
        const stet_attempt *a = &list.at[i];
        bool passing = a->state == STET_CALL_COMPLETED_ERROR && stet_call_passing(a);
        if (a->done && (a->state == STET_CALL_FAILED || passing) && a->updated_ms >= c->started_ms &&
            stet_hash_equal(a->key, c->row.key)) {
            stet_call_take_done(c, a);
            memcpy(c->row.execution, a->execution, sizeof a->execution);
            failed = true;
        }
    }
    stet_attempts_release(&list);
    return failed;
}

/* An attempt of this key that somebody has begun and not ended. */
static bool find_live(stet_call *c) {
    stet_attempts list = {0};
    bool found = false;
    stet_attempt_filter live = {.node = &c->node, .live = true, .limit = LIST_MAX};
    if (stet_attempt_list(c->x->repo, &live, &list, NULL, NULL) != STET_OK)
        return false;
    for (size_t i = list.len; i-- > 0 && !found;) /* the oldest */
        if (stet_hash_equal(list.at[i].key, c->row.key)) {
            /* The time that its first caller gave it ended with that caller; this caller has its own. */
            c->patience_ms = detail_int(c, "deadline");
            stet_call_adopt(c, &list.at[i]);
            stet_call_detail(c, "deadline", stet_value_null());
            found = true;
        }
    stet_attempts_release(&list);
    return found;
}

/* Of an attempt that is taken up again, though somebody else's result is pinned by now: its row ends, too. */
static bool end_row(stet_call *c) {
    bool locked = false;
    if (!c->row.execution[0] || stet_call_take_lock(c, &locked, NULL) != STET_OK || !locked || !find_live(c))
        return false;
    if (c->m.state == STET_CALL_POLL || c->m.state == STET_CALL_RETRY_WAIT) {
        stet_call_detail(c, "exec", stet_hash_text(c->outcome.exec));
        stet_call_advance(c, STET_CALL_PINNED);
    } else
        stet_call_act(c);
    return true;
}

/* Has the one who is at it an attempt yet? Until then nobody could find the call by anything that it is given. */
static bool is_begun(stet_call *c) {
    stet_attempts list = {0};
    stet_attempt_filter live = {.node = &c->node, .live = true, .limit = LIST_MAX};
    bool begun = false;
    if (stet_attempt_list(c->x->repo, &live, &list, NULL, NULL) != STET_OK)
        return false;
    for (size_t i = 0; i < list.len && !begun; i++)
        begun = stet_hash_equal(list.at[i].key, c->row.key);
    stet_attempts_release(&list);
    return begun;
}

static void give_up(stet_call *c, stet_error *err) {
    stet_error_clear(&c->error);
    stet_error_move(&c->error, err);
    abandon(c);
}

static void resolve(stet_call *c) {
    stet_error err = STET_ERROR_INIT;
    bool pinned = false, locked = false;
    stet_status status = c->cache && !c->pin_checked ? stet_call_look_at_pin(c, &pinned, &err) : STET_OK;
    c->pin_checked = false;
    if (status == STET_OK && pinned) {
        if (!end_row(c))
            stet_call_advance(c, STET_CALL_PINNED);
        return;
    }
    if (status == STET_OK)
        status = stet_call_take_lock(c, &locked, &err);
    if (status == STET_OK && !locked) { /* somebody of this project is at it */
        c->waited = true;
        c->submitted = c->submitted || is_begun(c);
        c->wait_ms = c->wait_ms ? c->wait_ms * 2 : LOOK_FIRST_MS;
        c->wait_ms = c->wait_ms < LOOK_MOST_MS ? c->wait_ms : LOOK_MOST_MS;
        later(c, c->wait_ms);
        return;
    }
    c->wait_ms = 0;
    if (status == STET_OK && c->cache && c->waited) /* and may just have ended */
        status = stet_call_look_at_pin(c, &pinned, &err);
    if (status != STET_OK) {
        give_up(c, &err);
        return;
    }
    if (pinned) {
        stet_call_advance(c, STET_CALL_PINNED);
        return;
    }
    if (failed_meanwhile(c)) {
        stet_call_finish(c);
        return;
    }
    if (c->row_is != CALL_ROW_STORED && c->cache && find_live(c)) {
        c->taken_up = true;
        stet_call_act(c);
        return;
    }
    status = stet_call_begin(c, &err);
    if (status != STET_OK)
        give_up(c, &err);
    else if (stet_call_terminal(c->m.state)) /* taken up when it had ended */
        stet_call_finish(c);
    else
        stet_call_act(c);
}

void stet_call_act(stet_call *c) {
    int64_t now = stet_clock_ms(), deadline = detail_int(c, "deadline");
    if (c->patience_ms && now >= c->patience_ms && c->life == CALL_ACTIVE) {
        stet_error err = STET_ERROR_INIT;
        stet_fail(&err, STET_BUSY, "the call, which was under way already, has not ended within the time given");
        stet_hint(&err, "it goes on; wait for it with: stet call wait %.36s", c->row.execution);
        give_up(c, &err);
        return;
    }
    if (deadline && now >= deadline && c->life == CALL_ACTIVE) {
        stet_error err = STET_ERROR_INIT;
        stet_fail(&err, STET_BUSY, "the call took longer than the time it was given");
        if (c->row_is == CALL_ROW_STORED) {
            c->stop_work = true;
            stet_call_detail(c, "error", stet_error_value(&err));
        }
        stet_error_clear(&c->error);
        stet_error_move(&c->error, &err);
        stet_call_advance(c, STET_CALL_CANCELLED);
        return;
    }
    switch (c->m.state) {
    case STET_CALL_RESOLVE:
        resolve(c);
        break;
    case STET_CALL_POLL:
        poll_adapter(c);
        break;
    case STET_CALL_INTEGRATE_OK:
    case STET_CALL_INTEGRATE_ERROR:
        integrate(c);
        break;
    case STET_CALL_RETRY_WAIT:
        if (c->row.next_ms > now + c->x->backoff.most_ms)
            c->row.next_ms = now + c->x->backoff.most_ms; /* the clock was set */
        if (c->row.next_ms > now)
            later(c, c->row.next_ms - now);
        else {
            stet_call_advance(c, STET_CALL_DUE);
            if (c->life == CALL_ACTIVE)
                stet_call_act(c);
        }
        break;
    default:
        break;
    }
}

static void cancel_heard(void *ctx, const stet_adapter_reply *r) {
    stet_call *c = ctx;
    c->poll = NULL;
    c->x->asking--;
    if (c->life == CALL_FREED) {
        stet_call_bury(c);
        return;
    }
    keep_log(c, r->log, r->log_len);
    if (r->status != STET_ADAPTER_STOPPED)
        tell(c);
}

void stet_call_finish(stet_call *c) {
    c->life = CALL_ENDED;
    c->outcome.error = c->m.state == STET_CALL_FAILED ? &c->error : NULL;
    stet_call_drop_lock(c);
    stet_error err = STET_ERROR_INIT;
    /* Work that nobody waits for any more is ended before it is told. */
    if (c->stop_work && c->function && ask(c, true, cancel_heard, &err) == STET_OK)
        return;
    stet_error_clear(&err);
    later(c, 0);
}
