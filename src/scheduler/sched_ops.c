/* sched_ops.c - what a module kind may do with a run of an action: read, write, end. */

#include "scheduler/sched_internal.h"

/* Every run has a transaction, but for one that is under way outside of a section (module.h). */
static bool outside(const action_run *r, stet_status *status, stet_error *err) {
    if (r->tx)
        return false;
    *status = stet_fail(err, STET_INTERNAL, "%s: read or written without a new look at its inputs", r->base.name);
    return true;
}

static stet_status run_read(stet_run *run, stet_pathref path, stet_read_kind kind, stet_value *out, stet_error *err) {
    action_run *r = (action_run *)run;
    stet_status status;
    if (outside(r, &status, err))
        return status;
    sched_earlier_look(r, path);
    return stet_reader_binding(&r->reader, run->bindings, path, kind, out, err);
}

static stet_status run_peek(stet_run *run, stet_pathref path, stet_value *out, stet_error *err) {
    action_run *r = (action_run *)run;
    bool record = r->reader.record;
    stet_status status;
    if (outside(r, &status, err))
        return status;
    r->reader.record = false;
    status = stet_reader_binding(&r->reader, run->bindings, path, STET_SHALLOW, out, err);
    r->reader.record = record;
    return status;
}

static stet_status run_write(stet_run *run, stet_pathref path, stet_value value, stet_error *err) {
    return sched_cell_write((action_run *)run, path, value, err);
}

static stet_status run_read_doc(stet_run *run, const char *id, stet_value *out, stet_error *err) {
    action_run *r = (action_run *)run;
    stet_path path = STET_PATH_INIT;
    stet_status status;
    if (outside(r, &status, err))
        return status;
    stet_path_push(&path, "value");
    status =
        stet_reader_cell(&r->reader, NULL, &(stet_docname){id, NULL}, stet_path_ref(&path), STET_RECURSIVE, out, err);
    stet_path_release(&path);
    return status;
}

static stet_status run_write_doc(stet_run *run, const char *id, stet_value value, stet_error *err) {
    action_run *r = (action_run *)run;
    stet_docname name = {id, NULL};
    stet_status status = STET_OK;
    if (outside(r, &status, err) || r->s->opts.observe_only) {
        stet_value_release(value);
        return status;
    }
    bool known = false;
    for (size_t i = 0; i < r->docs.len && !known; i++)
        known = strcmp(r->docs.at[i], id) == 0;
    if (!known)
        *stet_vec_add(&r->docs) = stet_strdup(id);
    if (stet_value_type(value) == STET_TYPE_NULL)
        return stet_tx_drop(r->tx, &name, err);
    stet_value envelope = stet_value_object();
    stet_value_put(&envelope, "value", value);
    return stet_tx_put(r->tx, &name, envelope, err);
}

static void run_suspend(stet_run *run) {
    sched_async_suspend((action_run *)run);
}

static stet_status run_refresh(stet_run *run, stet_error *err) {
    return sched_async_refresh((action_run *)run, err);
}

static stet_status run_raw(stet_run *run, stet_pathref path, stet_value *out, stet_error *err) {
    action_run *r = (action_run *)run;
    stet_status status;
    if (outside(r, &status, err))
        return status;
    sched_earlier_look(r, path);
    return stet_reader_raw(&r->reader, run->bindings, path, out, err);
}

static stet_status run_children(stet_run *run, const stet_run_child *at, size_t len, stet_error *err) {
    return sched_children_set((action_run *)run, at, len, err);
}

static stet_status run_send(stet_run *run, stet_pathref path, stet_value value, stet_error *err) {
    return sched_cell_send((action_run *)run, path, value, err);
}

static void run_log(stet_run *run, const char *stream, const char *bytes, size_t len) {
    action_run *r = (action_run *)run;
    if (r->log)
        stet_buf_add(r->log, bytes, len);
    else if (r->s->opts.log)
        r->s->opts.log(r->s->opts.ctx, r->a->node, stream, bytes, len);
}

static void run_say(stet_run *run, const char *stream, const char *bytes, size_t len) {
    action_run *r = (action_run *)run;
    if (!r->log && r->s->opts.say)
        r->s->opts.say(r->s->opts.ctx, r->a->node, stream, bytes, len);
}

static void run_succeed(stet_run *run, stet_value result) {
    action_run *r = (action_run *)run;
    r->result = result;
    if (r->asynchronous)
        sched_async_ended(r);
}

static void run_fail(stet_run *run, const stet_error *err) {
    action_run *r = (action_run *)run;
    r->failed = true;
    stet_error_copy(&r->error, err);
    if (r->asynchronous)
        sched_async_ended(r);
}

static void run_decline(stet_run *run, const stet_error *err) {
    ((action_run *)run)->declined = true;
    run_fail(run, err);
}

static bool run_yield(stet_run *run) {
    action_run *r = (action_run *)run;
    return r->asynchronous && sched_async_yield(r);
}

static bool run_waits(stet_run *run) {
    action_run *r = (action_run *)run;
    if (!r->a->unsure || !r->tx)
        return false;
    r->a->unsure = false;
    r->turn = sched_turn_now(r);
    return r->turn != SCHED_GO;
}

static bool run_has_company(const stet_run *run) {
    const stet_sched *s = ((const action_run *)run)->s;
    return s->company || stet_memo_version(s->space) != s->version;
}

static void run_works(stet_run *run, bool works) {
    action_run *r = (action_run *)run;
    sched_emit(r->s, works ? STET_SCHED_WORKS : STET_SCHED_WAITS, r->a, NULL);
}

const stet_run_ops sched_run_ops = {.read = run_read,
                                    .write = run_write,
                                    .succeed = run_succeed,
                                    .fail = run_fail,
                                    .decline = run_decline,
                                    .suspend = run_suspend,
                                    .log = run_log,
                                    .say = run_say,
                                    .read_doc = run_read_doc,
                                    .write_doc = run_write_doc,
                                    .refresh = run_refresh,
                                    .yield = run_yield,
                                    .has_company = run_has_company,
                                    .waits = run_waits,
                                    .peek = run_peek,
                                    .raw = run_raw,
                                    .children = run_children,
                                    .send = run_send,
                                    .works = run_works};
