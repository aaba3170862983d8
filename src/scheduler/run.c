/* run.c - the functions of module.h that a kind calls: checks the rules and passes on to the run's maker. */

#include <assert.h>

#include "scheduler/module.h"

stet_value stet_run_descriptor(const stet_run *run) {
    return run->descriptor;
}

stet_value stet_run_node(const stet_run *run) {
    return run->node;
}

const char *stet_run_name(const stet_run *run) {
    return run->name;
}

bool stet_run_is_effect(const stet_run *run) {
    return run->effect;
}

stet_value stet_run_bindings(const stet_run *run) {
    return run->bindings;
}

stet_value stet_run_event(const stet_run *run) {
    return run->event;
}

stet_status stet_run_read(stet_run *run, stet_pathref path, stet_read_kind kind, stet_value *out, stet_error *err) {
    assert(!run->ended);
    return run->ops->read(run, path, kind, out, err);
}

stet_status stet_run_peek(stet_run *run, stet_pathref path, stet_value *out, stet_error *err) {
    assert(!run->ended);
    return run->ops->peek ? run->ops->peek(run, path, out, err) : run->ops->read(run, path, STET_SHALLOW, out, err);
}

stet_status stet_run_raw(stet_run *run, stet_pathref path, stet_value *out, stet_error *err) {
    assert(!run->ended);
    return run->ops->raw ? run->ops->raw(run, path, out, err) : run->ops->read(run, path, STET_RECURSIVE, out, err);
}

stet_status stet_run_children(stet_run *run, const stet_run_child *at, size_t len, stet_error *err) {
    assert(!run->ended);
    if (!run->ops->children)
        return stet_fail(err, STET_UNSUPPORTED, "%s: no children can be made here", run->name);
    return run->ops->children(run, at, len, err);
}

stet_status stet_run_inputs(stet_run *run, stet_value *out, stet_error *err) {
    return stet_run_read(run, STET_PATH_ROOT, STET_RECURSIVE, out, err);
}

stet_status stet_run_write(stet_run *run, stet_pathref path, stet_value value, stet_error *err) {
    assert(!run->ended);
    return run->ops->write(run, path, value, err);
}

stet_status stet_run_send(stet_run *run, stet_pathref path, stet_value event, stet_error *err) {
    assert(!run->ended);
    if (!run->ops->send) {
        stet_value_release(event);
        return stet_fail(err, STET_UNSUPPORTED, "%s: no events can be sent here", run->name);
    }
    return run->ops->send(run, path, event, err);
}

stet_status stet_run_read_doc(stet_run *run, const char *id, stet_value *out, stet_error *err) {
    assert(!run->ended);
    if (!run->ops->read_doc)
        return stet_fail(err, STET_UNSUPPORTED, "%s: no documents can be read here", run->name);
    return run->ops->read_doc(run, id, out, err);
}

stet_status stet_run_write_doc(stet_run *run, const char *id, stet_value value, stet_error *err) {
    assert(!run->ended);
    if (!run->ops->write_doc) {
        stet_value_release(value);
        return stet_fail(err, STET_UNSUPPORTED, "%s: no documents can be written here", run->name);
    }
    return run->ops->write_doc(run, id, value, err);
}

stet_status stet_run_refresh(stet_run *run, stet_error *err) {
    assert(!run->ended);
    if (!run->ops->refresh)
        return stet_fail(err, STET_UNSUPPORTED, "%s: it can't look again here", run->name);
    return run->ops->refresh(run, err);
}

bool stet_run_yield(stet_run *run) {
    assert(!run->ended);
    return run->ops->yield && run->ops->yield(run);
}

bool stet_run_waits(stet_run *run) {
    return run->ops->waits && run->ops->waits(run);
}

bool stet_run_has_company(const stet_run *run) {
    return run->ops->has_company && run->ops->has_company(run);
}

void stet_run_suspend(stet_run *run) {
    assert(!run->ended);
    if (run->ops->suspend)
        run->ops->suspend(run);
}

void stet_run_log(stet_run *run, const char *stream, const char *bytes, size_t len) {
    assert(!run->ended);
    if (run->ops->log)
        run->ops->log(run, stream, bytes, len);
}

void stet_run_say(stet_run *run, const char *stream, const char *bytes, size_t len) {
    assert(!run->ended);
    if (run->ops->say)
        run->ops->say(run, stream, bytes, len);
}

void stet_run_progress(stet_run *run, int64_t done, int64_t total, const char *note) {
    assert(!run->ended);
    if (run->ops->progress)
        run->ops->progress(run, done, total, note);
}

void stet_run_works(stet_run *run, bool works) {
    assert(!run->ended);
    if (run->ops->works)
        run->ops->works(run, works);
}

void stet_run_restored(stet_run *run) {
    run->restored = true;
}

void stet_run_succeed(stet_run *run, stet_value result) {
    assert(!run->ended);
    run->ended = true;
    run->ops->succeed(run, result);
}

void stet_run_fail(stet_run *run, const stet_error *err) {
    assert(!run->ended);
    run->ended = true;
    run->ops->fail(run, err);
}

void stet_run_decline(stet_run *run, const stet_error *err) {
    assert(!run->ended);
    run->ended = true;
    if (run->ops->decline)
        run->ops->decline(run, err);
    else
        run->ops->fail(run, err);
}

bool stet_run_is_ours(stet_status status) {
    return status == STET_CANCELLED || status == STET_CONFLICT || status == STET_BUSY || status == STET_IO ||
           status == STET_INTERNAL;
}
