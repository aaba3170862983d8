/* The record of past runs, over the observations of the space. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "db/db.h"
#include "scheduler/memo.h"

static void x_close(stet_memo *x) {
    free(x);
}

bool stet_memo_hold(stet_space *s) {
    stet_db *db = stet_space_db(s);
    return !stet_db_in_transaction(db) && stet_db_begin_read(db, NULL) == STET_OK;
}

void stet_memo_let_go(stet_space *s, bool held) {
    if (held && stet_db_in_transaction(stet_space_db(s)))
        stet_db_rollback(stet_space_db(s));
}

/* Names of actions by number. Collected first: a visitor may ask the space again. */
static stet_status visit_numbers(stet_memo *x, const int64_t *numbers, size_t count, stet_memo_visit visit, void *ctx,
                                 stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    bool held = count > 1 && stet_memo_hold(x->space);
    stet_status status = STET_OK;
    for (size_t i = 0; i < count && status == STET_OK; i++) {
        stet_action_record r;
        stet_error mine = STET_ERROR_INIT;
        stet_arena_clear(&arena);
        status = stet_observe_get(x->space, numbers[i], &arena, &r, &mine);
        if (status == STET_OK)
            status = visit(ctx, r.key.piece, r.key.action, r.cause.state, err);
        else if (status == STET_NOT_FOUND)
            status = STET_OK; /* forgotten meanwhile */
        else if (err)
            stet_error_move(err, &mine);
        stet_error_clear(&mine);
    }
    stet_memo_let_go(x->space, held);
    stet_arena_release(&arena);
    return status;
}

static stet_status x_pending(stet_memo *x, stet_memo_visit visit, void *ctx, stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    stet_marked *at;
    size_t count = 0;
    stet_status status = stet_observe_catch_up(x->space, err);
    if (status == STET_OK)
        status = stet_observe_marks(x->space, x->branch, NULL, NULL, &arena, &at, &count, err);
    int64_t *numbers = stet_alloc((count ? count : 1) * sizeof *numbers);
    for (size_t i = 0; i < count; i++)
        numbers[i] = at[i].action;
    stet_arena_release(&arena);
    if (status == STET_OK)
        status = visit_numbers(x, numbers, count, visit, ctx, err);
    free(numbers);
    return status;
}

static stet_status x_any(stet_memo *x, bool *out, stet_error *err) {
    stet_status status = stet_observe_catch_up(x->space, err);
    return status == STET_OK ? stet_observe_any(x->space, x->branch, NULL, NULL, out, err) : status;
}

static stet_status x_readers(stet_memo *x, const char *space, const stet_docname *name, stet_pathref path,
                             stet_change_kind kind, stet_memo_visit visit, void *ctx, bool *complete, stet_error *err) {
    stet_numbers found = {0};
    *complete = false;
    if (space) { /* changes over there come as marks, pushed by that space */
        *complete = true;
        return STET_OK;
    }
    stet_status status = stet_observe_readers(x->space, x->branch, name, path, kind, &found, err);
    if (status == STET_OK)
        status = visit_numbers(x, found.at, found.len, visit, ctx, err);
    stet_numbers_release(&found);
    return status;
}

static const stet_memo_cell *cells(stet_arena *arena, const stet_observed *at, size_t count) {
    stet_memo_cell *out = stet_arena_alloc(arena, (count ? count : 1) * sizeof *out);
    for (size_t i = 0; i < count; i++)
        out[i] = (stet_memo_cell){at[i].space, at[i].name, at[i].path, at[i].kind};
    return out;
}

static stet_status x_load(stet_memo *x, const char *piece, const char *action, stet_arena *arena, stet_memo_action *out,
                          stet_error *err) {
    stet_action_record r;
    stet_action_key key = {.piece = piece, .action = action};
    stet_status status = stet_observe_find(x->space, x->branch, &key, arena, &r, err);
    if (status != STET_OK)
        return status;
    *out = (stet_memo_action){.piece = piece,
                              .action = action,
                              .observed = r.observed,
                              .failed = r.observed && r.failed,
                              .state = r.cause.state,
                              .implementation = r.implementation,
                              .runtime = r.runtime,
                              .generation = r.generation};
    if (r.observed) {
        out->reads = cells(arena, r.reads, r.read_count);
        out->read_count = r.read_count;
        out->writes = cells(arena, r.known, r.known_count);
        out->write_count = r.known_count;
    }
    return STET_OK;
}

static stet_action_key *keys_of(const char *piece, const char *const *actions, size_t count) {
    stet_action_key *keys = stet_alloc((count ? count : 1) * sizeof *keys);
    for (size_t i = 0; i < count; i++)
        keys[i] = (stet_action_key){piece, NULL, actions[i]};
    return keys;
}

static stet_status x_distrust(stet_memo *x, const char *piece, const char *const *actions, size_t count,
                              stet_reason reason, stet_error *err) {
    stet_action_key *keys = keys_of(piece, actions, count);
    stet_status status = stet_observe_distrust(x->space, x->branch, keys, count, reason, err);
    free(keys);
    return status;
}

static stet_status x_forget(stet_memo *x, const char *piece, const char *const *actions, size_t count,
                            stet_error *err) {
    if (!actions)
        return stet_observe_forget(x->space, x->branch, piece, NULL, NULL, 0, err);
    stet_action_key *keys = keys_of(piece, actions, count);
    stet_status status = stet_observe_forget(x->space, x->branch, piece, NULL, keys, count, err);
    free(keys);
    return status;
}

static bool stop(void *ctx, int64_t action, const char *name, size_t name_len, const void *bytes, size_t len) {
    (void)action, (void)name, (void)name_len, (void)bytes, (void)len;
    *(bool *)ctx = true;
    return false;
}

static stet_status x_knows(stet_memo *x, const char *piece, bool *out, stet_error *err) {
    stet_action_filter one = {.piece = piece, .generation = -1, .limit = 1};
    *out = false;
    return stet_observe_scan(x->space, x->branch, &one, stop, out, err);
}

static const stet_memo_ops durable_ops = {x_close, x_pending, x_any, x_readers, x_load, x_distrust, x_forget, x_knows};

stet_status stet_memo_open(stet_space *s, int64_t branch, stet_memo **out, stet_error *err) {
    (void)err;
    stet_memo *x = stet_alloc_zero(sizeof *x);
    *x = (stet_memo){&durable_ops, s, branch, true};
    *out = x;
    return STET_OK;
}
