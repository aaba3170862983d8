/* memo_volatile.c - a record of past runs that remembers nothing: every action runs at every start. */

#include <stdlib.h>

#include "scheduler/memo.h"

static void x_close(stet_memo *x) {
    free(x);
}

/* Every action of every piece that somebody may want: but nobody knows which are, so the scheduler adds those of the
 * piece that is driven (they are not found by `load`). */
static stet_status x_pending(stet_memo *x, int64_t since, int64_t after, size_t limit, stet_memo_visit_pending visit,
                             void *ctx, stet_error *err) {
    (void)x, (void)since, (void)after, (void)limit, (void)visit, (void)ctx, (void)err;
    return STET_OK;
}

static stet_status x_count(stet_memo *x, const char *piece, size_t *out, stet_error *err) {
    (void)x, (void)piece, (void)err;
    *out = 0;
    return STET_OK;
}

static stet_status x_survey(stet_memo *x, stet_hash demand, stet_survey *out, stet_error *err) {
    (void)x, (void)demand, (void)out, (void)err;
    return STET_NOT_FOUND;
}

static stet_status x_surveyed(stet_memo *x, stet_hash demand, int64_t version, size_t left, stet_error *err) {
    (void)x, (void)demand, (void)version, (void)left, (void)err;
    return STET_OK;
}

static stet_status x_any(stet_memo *x, bool *out, stet_error *err) {
    (void)x, (void)err;
    *out = false;
    return STET_OK;
}

static stet_status x_readers(stet_memo *x, const char *space, const stet_docname *name, stet_pathref path,
                             stet_change_kind kind, stet_memo_visit visit, void *ctx, bool *complete, stet_error *err) {
    (void)x, (void)space, (void)name, (void)path, (void)kind, (void)visit, (void)ctx, (void)err;
    *complete = true;
    return STET_OK;
}

static stet_status x_failed(stet_memo *x, stet_numbers *out, stet_error *err) {
    (void)x, (void)out, (void)err;
    return STET_OK;
}

static stet_status x_load(stet_memo *x, const char *piece, const char *action, stet_arena *arena, stet_memo_action *out,
                          stet_error *err) {
    (void)x, (void)arena, (void)out;
    return stet_fail(err, STET_NOT_FOUND, "%s: nothing is recorded of %s", piece, action);
}

static stet_status x_get(stet_memo *x, int64_t number, stet_arena *arena, stet_memo_action *out, stet_error *err) {
    (void)x, (void)arena, (void)out;
    return stet_fail(err, STET_NOT_FOUND, "nothing is recorded of action %lld", (long long)number);
}

static stet_status x_distrust(stet_memo *x, const char *piece, const char *const *actions, size_t count,
                              stet_reason reason, stet_error *err) {
    (void)x, (void)piece, (void)actions, (void)count, (void)reason, (void)err;
    return STET_OK;
}

static stet_status x_forget(stet_memo *x, const char *piece, const char *const *actions, size_t count,
                            stet_error *err) {
    (void)x, (void)piece, (void)actions, (void)count, (void)err;
    return STET_OK;
}

static stet_status x_knows(stet_memo *x, const char *piece, bool *out, stet_error *err) {
    (void)x, (void)piece, (void)err;
    *out = true; /* as much as it ever will */
    return STET_OK;
}

static const stet_memo_ops volatile_ops = {.close = x_close,
                                           .pending = x_pending,
                                           .count = x_count,
                                           .survey = x_survey,
                                           .surveyed = x_surveyed,
                                           .any = x_any,
                                           .readers = x_readers,
                                           .failed = x_failed,
                                           .load = x_load,
                                           .get = x_get,
                                           .distrust = x_distrust,
                                           .forget = x_forget,
                                           .knows = x_knows};

stet_memo *stet_memo_volatile(stet_space *s, int64_t branch) {
    stet_memo *x = stet_alloc_zero(sizeof *x);
    *x = (stet_memo){&volatile_ops, s, branch, false};
    return x;
}
