/* executor_store.c - what an executor does with repositories: rows, snapshots, results, pins, locks. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "call/executor_internal.h"
#include "os/clock.h"
#include "os/file.h"

#define WHOLE_MAX 100000

static void say(stet_executor *x, const char *format, stet_hash id, const char *why) {
    if (!x->say)
        return;
    char hex[STET_HASH_HEX];
    stet_hash_hex(id, hex);
    char *line = stet_asprintf(format, hex, why);
    x->say(x->ctx, line);
    stet_free(line);
}

stet_status stet_call_read_node(stet_call *c, stet_error *err) {
    stet_value record, kind, function, inputs;
    stet_status status = stet_repo_get(c->x->repo, c->node, STET_RECORD_NODE, &record, err);
    if (status != STET_OK)
        return status;
    kind = stet_value_get(record, "kind");
    if (strcmp(stet_value_as_string(&kind, NULL), "call") != 0) {
        char hex[STET_HASH_HEX];
        stet_hash_hex(c->node, hex);
        status = stet_fail(err, STET_INVALID, "%s is not a call", hex);
    } else {
        function = stet_value_get(record, "function");
        c->function = stet_strdup(stet_value_as_string(&function, NULL));
        inputs = stet_value_get(record, "inputs");
        c->code = stet_value_retain(stet_value_get(record, "code"));
        for (size_t i = 0; i < stet_value_count(inputs); i++) {
            stet_value id = stet_value_at(inputs, i);
            size_t len;
            const char *hex = stet_value_as_string(&id, &len);
            if (!stet_hash_of_hex(hex, len, stet_vec_add(&c->inputs))) /* it was verified when it was read */
                c->inputs.len--;
        }
        if (!c->remote_uri)
            c->remote_uri = stet_strdup(c->x->remote_uri);
        stet_adapter_uri u;
        status = stet_adapter_uri_parse(c->function, &u, err);
        if (status == STET_OK)
            stet_adapter_uri_release(&u);
    }
    stet_value_release(record);
    return status;
}

/* Is an exec record with its whole result here? */
static stet_status read_exec(stet_call *c, stet_hash id, stet_error *err) {
    stet_exec exec;
    stet_value v = stet_value_null();
    stet_status status = stet_repo_get_exec(c->x->repo, id, &exec, err);
    if (status != STET_OK)
        return status;
    stet_value_release(exec.timings);
    status = stet_repo_dag_value(c->x->repo, exec.result, &v, err);
    stet_value_release(v);
    if (status == STET_LIMIT) { /* too large to be one value, and nobody asked for that */
        stet_error_clear(err);
        status = STET_OK;
    }
    if (status == STET_OK)
        c->outcome = (stet_call_outcome){.exec = id, .result = exec.result, .ok = exec.ok};
    return status;
}

/* What was whole stays so until somebody else has written, who may have swept it. Asked once in a millisecond: the
 * question costs as much as the look at the pin. */
static bool known_whole(stet_call *c, stet_hash exec) {
    stet_executor *x = c->x;
    int64_t now = stet_clock_monotonic_us(), news = x->news;
    if (now - x->asked_us >= 1000) {
        news = stet_repo_news(x->repo);
        x->asked_us = now;
    }
    if (news != x->news || stet_map_len(&x->whole) >= WHOLE_MAX) {
        stet_map_clear(&x->whole);
        stet_vec_clear(&x->outcomes);
        x->news = news;
    }
    stet_slot *slot = stet_map_get(&x->whole, exec.bytes, sizeof exec.bytes);
    if (slot)
        c->outcome = x->outcomes.at[slot->n];
    return slot != NULL;
}

/* Reads all of it. A result of which something is missing is no result. */
static stet_status read_pinned(stet_call *c, stet_hash exec, bool *pinned, stet_error *err) {
    stet_executor *x = c->x;
    stet_error inner = STET_ERROR_INIT;
    stet_status status = read_exec(c, exec, &inner);
    if (status == STET_OK) {
        stet_map_put(&x->whole, exec.bytes, sizeof exec.bytes, (stet_slot){.n = x->outcomes.len});
        *stet_vec_add(&x->outcomes) = c->outcome;
    } else if (status == STET_NOT_FOUND || status == STET_CORRUPT) {
        say(x, "the pinned result of %s is not whole and counts as none: %s", c->node, inner.message);
        *pinned = false;
        stet_error_clear(&inner);
        return STET_OK;
    }
    stet_error_move(err, &inner);
    return status;
}

stet_status stet_call_look_at_pin(stet_call *c, bool *pinned, stet_error *err) {
    stet_hash exec;
    stet_status status = stet_repo_pinned(c->x->repo, c->node, pinned, &exec, err);
    if (status != STET_OK || !*pinned || known_whole(c, exec))
        return status;
    return read_pinned(c, exec, pinned, err);
}

stet_status stet_call_take_lock(stet_call *c, bool *locked, stet_error *err) {
    *locked = c->lock && stet_lock_held(c->lock);
    if (*locked)
        return STET_OK;
    char key[STET_HASH_HEX];
    stet_hash_hex(c->row.key, key);
    char *dir = stet_file_join(c->x->dir, "locks");
    stet_status status = STET_OK;
    if (!c->lock_path) {
        c->lock_path = stet_file_join(dir, key);
        status = stet_file_mkdirs(dir, 0755, err);
    }
    stet_free(dir);
    /* Opened anew each time: whoever held it may have removed the file. */
    stet_lock_close(c->lock);
    c->lock = NULL;
    if (status == STET_OK)
        status = stet_lock_open(c->lock_path, STET_LOCK_PLAIN, &c->lock, err);
    if (status != STET_OK)
        return status;
    stet_error inner = STET_ERROR_INIT;
    status = stet_lock_take(c->lock, STET_LOCK_EXCLUSIVE, 0, &inner);
    *locked = status == STET_OK;
    if (status == STET_BUSY) {
        stet_error_clear(&inner);
        return STET_OK;
    }
    stet_error_move(err, &inner);
    return status;
}

void stet_call_drop_lock(stet_call *c) {
    if (c->lock && stet_lock_held(c->lock) && c->lock_path)
        unlink(c->lock_path); /* whoever waits for the file that is gone finds the pin, or makes a new one */
    stet_lock_close(c->lock);
    c->lock = NULL;
    stet_free(c->lock_path);
    c->lock_path = NULL;
}

static void take_token(stet_call *c, const stet_attempt *a) {
    stet_value_release(c->token);
    c->token = stet_value_null();
    if (a->token && stet_value_string_checked(a->token, a->token_len, &c->token, NULL) != STET_OK)
        c->token = stet_value_null(); /* an adapter that is asked without its token finds its work by the key */
    size_t len = 0;
    c->row.token = stet_value_type(c->token) == STET_TYPE_STRING ? stet_value_as_string(&c->token, &len) : NULL;
    c->row.token_len = len;
}

void stet_call_adopt(stet_call *c, const stet_attempt *a) {
    stet_value_release(c->row.detail);
    c->row = *a;
    c->stored = a->state;
    c->row.detail = stet_value_retain(a->detail);
    take_token(c, a);
    c->cache = a->cache;
    c->row_is = CALL_ROW_STORED;
    c->submitted = a->token != NULL;
    stet_call_restore(&c->m, false, a->state, a->resume);
    stet_value remote = stet_value_get(a->detail, "remote");
    stet_free(c->remote_uri);
    c->remote_uri =
        stet_strdup(stet_value_type(remote) == STET_TYPE_STRING ? stet_value_as_string(&remote, NULL) : c->x->own_uri);
}

static void ref_of(const stet_call *c, char out[64]) {
    snprintf(out, 64, "refs/exec/%s", c->row.execution);
}

stet_status stet_call_begin(stet_call *c, stet_error *err) {
    if (c->row_is == CALL_ROW_TO_RESUME) {
        stet_attempt a;
        stet_status status = stet_attempt_get(c->x->repo, c->row.execution, &a, err);
        if (status != STET_OK)
            return status;
        if (a.done)
            stet_call_take_done(c, &a);
        else
            stet_call_adopt(c, &a);
        if (a.done)
            c->row_is = CALL_ROW_NONE;
        stet_attempt_release(&a);
        return STET_OK;
    }
    char ref[64];
    if (!c->row.execution[0])
        stet_uuid(c->row.execution);
    ref_of(c, ref);
    if (stet_value_type(c->row.detail) != STET_TYPE_OBJECT)
        c->row.detail = stet_value_object();
    bool own = strcmp(c->remote_uri, c->x->own_uri) == 0;
    if (!own) /* the own one is not named: a project may be moved */
        stet_value_put(&c->row.detail, "remote", stet_value_string(c->remote_uri));
    bool known = stet_call_step(&c->m, STET_CALL_UNPINNED);
    (void)known;
    c->row.state = c->stored = (int)c->m.state;
    c->row.resume = (int)c->m.resume;
    stet_status status = stet_repo_begin(c->x->repo, err);
    if (status == STET_OK)
        status = stet_attempt_add(c->x->repo, &c->row, err);
    if (status == STET_OK && own)
        status = stet_repo_swap(c->x->repo, &(stet_ref_swap){.name = ref, .set = &c->node}, 1, err);
    if (status == STET_OK)
        status = stet_repo_commit(c->x->repo, err);
    else
        stet_repo_rollback(c->x->repo);
    c->row_is = status == STET_OK ? CALL_ROW_STORED : CALL_ROW_NONE;
    c->published = own && status == STET_OK;
    return status;
}

stet_status stet_call_hub(stet_call *c, stet_hub **out, stet_error *err) {
    stet_executor *x = c->x;
    *out = NULL;
    if (strcmp(c->remote_uri, x->own_uri) == 0)
        return STET_OK;
    for (size_t i = 0; i < x->remotes.len; i++)
        if (strcmp(x->remotes.at[i].uri, c->remote_uri) == 0) {
            *out = x->remotes.at[i].hub;
            return STET_OK;
        }
    stet_hub *h;
    stet_status status = stet_hub_open(c->remote_uri, 0, &h, err);
    if (status != STET_OK)
        return status;
    stet_hub_lend(h, x->repo);
    if (stet_hub_is(h, x->repo)) { /* written otherwise, and the same */
        stet_hub_close(h);
        stet_free(c->remote_uri);
        c->remote_uri = stet_strdup(x->own_uri);
        return STET_OK;
    }
    *stet_vec_add(&x->remotes) = (executor_remote){stet_strdup(c->remote_uri), h};
    *out = h;
    return STET_OK;
}

stet_status stet_call_publish_snapshot(stet_call *c, stet_error *err) {
    char ref[64];
    stet_hub *hub;
    bool there = false;
    stet_hash at;
    if (c->published)
        return STET_OK;
    ref_of(c, ref);
    stet_status status = stet_call_hub(c, &hub, err);
    if (status == STET_OK && !hub) {
        status = stet_repo_ref(c->x->repo, ref, &there, &at, err);
        if (status == STET_OK && !there)
            status = stet_repo_swap(c->x->repo, &(stet_ref_swap){.name = ref, .set = &c->node}, 1, err);
    } else if (status == STET_OK) {
        status = stet_hub_ref(hub, ref, &there, &at, err);
        if (status == STET_OK && !there)
            status = stet_hub_send(hub, c->x->repo, &c->node, 1, err);
        if (status == STET_OK && !there)
            status = stet_hub_swap_ref(hub, ref, NULL, &c->node, err);
    }
    c->published = status == STET_OK;
    return status;
}

void stet_call_withdraw_snapshot(stet_call *c) {
    char ref[64];
    stet_hub *hub;
    bool there = false;
    stet_hash at;
    if (!c->row.execution[0] || stet_call_hub(c, &hub, NULL) != STET_OK || !hub)
        return; /* in the own repository it goes with its row */
    ref_of(c, ref);
    if (stet_hub_ref(hub, ref, &there, &at, NULL) != STET_OK || !there)
        return;
    stet_error none = STET_ERROR_INIT;
    if (stet_hub_swap_ref(hub, ref, &at, NULL, &none) != STET_OK)
        stet_error_clear(&none); /* the hub's own upkeep finds it later */
}

bool stet_call_passing(const stet_attempt *a) {
    stet_value keep = stet_value_get(a->detail, "keep");
    return stet_value_type(keep) == STET_TYPE_BOOL && !stet_value_as_bool(keep);
}

static stet_status result_of(const stet_attempt *a, stet_hash *out, stet_error *err) {
    stet_value v = stet_value_get(a->detail, "result");
    size_t len = 0;
    const char *hex = stet_value_type(v) == STET_TYPE_STRING ? stet_value_as_string(&v, &len) : NULL;
    if (!hex || !stet_hash_of_hex(hex, len, out))
        return stet_fail(err, STET_CORRUPT, "the attempt %s has no result", a->execution);
    return STET_OK;
}

/* All of the result is in the repository, and verifies. */
static stet_status fetch(stet_call *c, stet_hash result, stet_error *err) {
    stet_hub *hub;
    stet_value v = stet_value_null();
    stet_status status = stet_call_hub(c, &hub, err);
    if (status == STET_OK && hub)
        status = stet_hub_bring(hub, c->x->repo, &result, 1, err);
    if (status == STET_OK)
        status = stet_repo_get(c->x->repo, result, STET_RECORD_DAG, &v, err);
    stet_value_release(v);
    v = stet_value_null();
    if (status == STET_OK)
        status = stet_repo_dag_value(c->x->repo, result, &v, err);
    stet_value_release(v);
    if (status == STET_LIMIT) {
        stet_error_clear(err);
        status = STET_OK;
    }
    return status;
}

/* The row as it is when `event` has happened, with the exec that was just recorded. Its detail is the caller's. */
static stet_attempt row_after(const stet_call *c, stet_call_event event, int64_t next_ms, stet_hash exec) {
    stet_attempt row = c->row;
    stet_call_machine next = c->m;
    bool known = stet_call_step(&next, event);
    assert(known);
    (void)known;
    row.state = (int)next.state;
    row.resume = (int)next.resume;
    row.done = stet_call_terminal(next.state);
    row.detail = stet_value_retain(c->row.detail);
    if (row.done)
        stet_value_put(&row.detail, "exec", stet_hash_text(exec));
    else {
        stet_value before = stet_value_get(row.detail, "failed"), failed = stet_value_array();
        for (size_t i = 0; i < stet_value_count(before); i++)
            stet_value_push(&failed, stet_value_retain(stet_value_at(before, i)));
        stet_value_push(&failed, stet_hash_text(exec));
        stet_value_put(&row.detail, "failed", failed);
        row.next_ms = next_ms;
        row.token = NULL;
        row.token_len = 0;
    }
    return row;
}

/* Rows may be dropped. Asked first: a move that finds none would be the end of the transaction. */
static stet_status move_row(stet_call *c, const stet_attempt *row, stet_error *err) {
    stet_attempt there = {.detail = stet_value_null()};
    stet_status status = stet_attempt_get(c->x->repo, row->execution, &there, NULL) == STET_NOT_FOUND
                             ? stet_attempt_add(c->x->repo, row, err)
                             : stet_attempt_move(c->x->repo, row, c->stored, err);
    stet_attempt_release(&there);
    return status;
}

/* With the pin in place, does the call have a value? A result that rests on the call itself has none. */
static stet_status check_own(stet_call *c, stet_error *err) {
    stet_hash datum;
    stet_error inner = STET_ERROR_INIT;
    stet_status status = stet_repo_eval(c->x->repo, c->node, &datum, &inner);
    stet_error_clear(&inner);
    return status == STET_FAILED ? stet_fail(err, STET_INVALID, "the result of the call rests on the call itself")
                                 : STET_OK;
}

stet_status stet_call_integrate(stet_call *c, stet_call_event event, int64_t next_ms, bool *moved, stet_error *err) {
    stet_repo *r = c->x->repo;
    stet_hash *execs = NULL, id, result;
    size_t count = 0;
    bool ok = c->m.state == STET_CALL_INTEGRATE_OK, passing = stet_call_passing(&c->row);
    *moved = false;
    stet_status status = result_of(&c->row, &result, err);
    if (status == STET_OK)
        status = fetch(c, result, err);
    if (status != STET_OK)
        return status;
    stet_error inner = STET_ERROR_INIT;
    stet_value timings = stet_value_object();
    int64_t began = c->row.created_ms ? c->row.created_ms : c->started_ms, now = stet_clock_ms();
    stet_value_put(&timings, "total", stet_value_int(now > began ? now - began : 0));
    status = stet_repo_begin(r, err);
    if (status == STET_OK)
        status = stet_repo_execs(r, c->node, &execs, &count, &inner);
    stet_exec exec = {.node = c->node, .result = result, .ok = ok, .attempt = (int64_t)count + 1, .timings = timings};
    if (status == STET_OK)
        status = passing ? stet_repo_put_exec(r, &exec, &id, &inner) : stet_repo_pin_exec(r, &exec, &id, &inner);
    if (status == STET_OK && ok)
        status = check_own(c, &inner);
    stet_attempt row = {.detail = stet_value_null()};
    if (status == STET_OK) {
        row = row_after(c, event, next_ms, id);
        status = move_row(c, &row, &inner);
        *moved = status == STET_CONFLICT;
    }
    if (status == STET_OK)
        status = stet_repo_commit(r, &inner);
    else
        stet_repo_rollback(r);
    stet_free(execs);
    stet_value_release(timings);
    if (status == STET_OK && !row.done) { /* the next try begins without a token */
        stet_value_release(c->row.detail);
        stet_value_release(c->token);
        c->token = stet_value_null();
        c->row = row;
    } else
        stet_value_release(row.detail);
    if (*moved) {
        stet_error_clear(&inner);
        return STET_OK;
    }
    stet_error_move(err, &inner);
    if (status == STET_OK)
        c->outcome = (stet_call_outcome){.exec = id, .result = result, .ok = ok, .passing = passing};
    if (status == STET_OK && row.done)
        stet_call_withdraw_snapshot(c);
    return status;
}

void stet_call_take_error(stet_call *c, stet_value error) {
    stet_value message = stet_value_get(error, "message"), code = stet_value_get(error, "code"),
               hint = stet_value_get(error, "hint");
    stet_status status = STET_FAILED;
    if (stet_value_type(code) == STET_TYPE_STRING && !stet_status_of_name(stet_value_as_string(&code, NULL), &status))
        status = STET_FAILED;
    if (status == STET_OK)
        status = STET_FAILED;
    stet_error_clear(&c->error);
    stet_fail(&c->error, status, "%s",
              stet_value_type(message) == STET_TYPE_STRING ? stet_value_as_string(&message, NULL) : "the call failed");
    if (stet_value_type(hint) == STET_TYPE_STRING)
        stet_hint(&c->error, "%s", stet_value_as_string(&hint, NULL));
}

void stet_call_take_done(stet_call *c, const stet_attempt *a) {
    stet_value exec = stet_value_get(a->detail, "exec");
    size_t len = 0;
    stet_hash id;
    stet_error err = STET_ERROR_INIT;
    const char *hex = stet_value_type(exec) == STET_TYPE_STRING ? stet_value_as_string(&exec, &len) : NULL;
    stet_call_restore(&c->m, true, a->state, a->resume);
    bool passing = stet_call_passing(a);
    if (c->m.state == STET_CALL_FAILED) {
        stet_call_take_error(c, stet_attempt_error(a));
    } else if (!hex || !stet_hash_of_hex(hex, len, &id) || read_exec(c, id, &err) != STET_OK) {
        stet_call_restore(&c->m, true, STET_CALL_FAILED, a->resume);
        stet_error_clear(&c->error);
        stet_error_move(&c->error, &err);
        stet_fail(&c->error, STET_CORRUPT, "the result of %s is no longer there", a->execution);
        stet_hint(&c->error, "run the call again");
    }
    c->outcome.passing = passing;
    stet_error_clear(&err);
}
