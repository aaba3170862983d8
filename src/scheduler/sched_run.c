/* One run of one action: beginning, checks, what is recorded of it, effects. */
#include "graph/stream.h"
#include "scheduler/sched_internal.h"

/* ---- Checking inputs and results
 * ---------------------------------------------------------------------------------------------- */

/* Inputs by position as an array; named ones as an array with one object. */
static stet_value as_tuple(stet_value inputs) {
    stet_value list = stet_array();
    size_t n = stet_count(inputs), index;
    bool positions = n > 0;
    for (size_t i = 0; i < n && positions; i++) {
        size_t len;
        const char *key = stet_key_at(inputs, i, &len);
        positions = stet_path_index(key, len, &index) && index < n;
    }
    if (!positions) {
        stet_push(&list, stet_retain(inputs));
        return list;
    }
    for (size_t i = 0; i < n; i++) {
        char key[24];
        snprintf(key, sizeof key, "%zu", i);
        stet_push(&list, stet_retain(stet_get(inputs, key)));
    }
    return list;
}

/* The inputs with the values of cells in place of the cells. That these were looked at is no read: a run that does not
 * look at a cell does not depend on it. */
static stet_status with_cells(action_run *r, stet_value inputs, stet_value *out, stet_error *err) {
    stet_value all = stet_retain(inputs);
    stet_status status = STET_OK;
    for (size_t i = 0; i < stet_count(r->base.bindings) && status == STET_OK; i++) {
        size_t len;
        const char *key = stet_key_at(r->base.bindings, i, &len);
        stet_link l;
        stet_path path = STET_PATH_INIT;
        if (stet_link_read(stet_at(r->base.bindings, i), &l, &path) && l.as_cell) {
            stet_value v = stet_null();
            stet_error mine = STET_ERROR_INIT;
            stet_path_set(&path, STET_PATH_ROOT);
            stet_path_push_n(&path, key, len);
            r->reader.record = false;
            status = stet_reader_binding(&r->reader, r->base.bindings, stet_path_ref(&path), STET_RECURSIVE, &v, &mine);
            r->reader.record = true;
            if (status == STET_OK)
                stet_put_n(&all, key, len, stet_retain(v));
            else if (status == STET_NOT_FOUND)
                stet_remove(&all, key, len), status = STET_OK;
            else
                stet_error_move(err, &mine);
            stet_error_clear(&mine);
        }
        stet_path_release(&path);
    }
    *out = all;
    return status;
}

static stet_status check_inputs(action_run *r, stet_value hash, stet_error *err) {
    stet_value schema, inputs, all;
    stet_status status = sched_schema(r->s, hash, &schema, err);
    if (status != STET_OK || stet_typeof(schema) == STET_NULL)
        return status;
    status = stet_reader_binding(&r->reader, r->base.bindings, STET_PATH_ROOT, STET_RECURSIVE, &inputs, err);
    if (status != STET_OK)
        return status;
    status = with_cells(r, inputs, &all, err);
    if (status != STET_OK) {
        stet_release(all);
        return status;
    }
    stet_value type = stet_get(schema, "type");
    bool tuple = stet_find(schema, "prefixItems", 11, NULL) ||
                 (stet_typeof(type) == STET_STRING && strcmp(stet_as_string(&type, NULL), "array") == 0);
    if (tuple) {
        stet_value list = as_tuple(all);
        if (stet_stream_is_handler(r->a->row)) /* called with the event first */
            stet_insert_at(&list, 0, stet_retain(r->base.event));
        status = stet_schema_check(schema, list, err);
        stet_release(list);
    } else {
        status = stet_schema_check(schema, all, err);
    }
    stet_release(all);
    if (status != STET_OK)
        stet_fail_in(err, "the inputs do not match the argument schema");
    return status;
}

static stet_status check_result(action_run *r, stet_value hash, stet_error *err) {
    stet_value schema;
    stet_status status = sched_schema(r->s, hash, &schema, err);
    if (status != STET_OK || stet_typeof(schema) == STET_NULL)
        return status;
    status = stet_schema_check(schema, r->result, err);
    if (status != STET_OK)
        stet_fail_in(err, "the result does not match the result schema");
    return status;
}

static void set_error(action_run *r, stet_status status, stet_error *err) {
    if (status != STET_OK && !r->failed) {
        r->failed = true;
        r->error = *err;
        return;
    }
    stet_error_clear(err);
}

/* The start; a failure is the action's. */
void sched_run_execute(action_run *r) {
    stet_error err = STET_ERROR_INIT;
    sched_action *a = r->a;
    stet_value module = stet_get(a->row, "module");
    void *state = NULL;
    stet_status status = STET_OK;
    bool begun = false;
    if (!a->kind) {
        status = stet_module_check(NULL, module, a->view, &err);
        if (status == STET_OK)
            status = stet_fail(&err, STET_CORRUPT, "its module is of another type than when it was loaded");
    }
    if (status == STET_OK)
        status = sched_kind_state(r->s, a->kind, &state, &err);
    if (status == STET_OK)
        status = check_inputs(r, stet_get(module, "argumentSchema"), &err);
    if (status == STET_OK)
        status = check_inputs(r, stet_get(a->row, "argumentSchema"), &err);
    if (status == STET_OK) {
        begun = true;
        status = a->kind->start(state, NULL, &r->base, &err);
        if (status == STET_OK && !r->base.ended && !a->kind->asynchronous)
            status = stet_fail(&err, STET_INTERNAL, "the module came back without a result");
    }
    set_error(r, status, &err);
    if (!begun) { /* what it would have looked at is not known: any of it may mend it */
        stet_value seen;
        stet_error ignored = STET_ERROR_INIT;
        if (stet_reader_binding(&r->reader, r->base.bindings, STET_PATH_ROOT, STET_RECURSIVE, &seen, &ignored) !=
            STET_OK)
            stet_error_clear(&ignored);
    }
}

void sched_run_check(action_run *r) {
    stet_error err = STET_ERROR_INIT;
    sched_action *a = r->a;
    stet_value module = stet_get(a->row, "module");
    stet_status status = STET_OK;
    if (r->failed)
        return;
    status = check_result(r, stet_get(module, "resultSchema"), &err);
    if (status == STET_OK)
        status = check_result(r, stet_get(a->row, "resultSchema"), &err);
    if (status == STET_OK && r->wrote.len > 0) {
        status = sched_cells_check(r, &err);
        if (status == STET_OK)
            status = check_inputs(r, stet_get(module, "argumentSchema"), &err);
        if (status == STET_OK)
            status = check_inputs(r, stet_get(a->row, "argumentSchema"), &err);
    }
    if (status == STET_OK && a->role == STET_CHILD_RETURNS && !r->s->opts.observe_only)
        status = sched_children_returned(r, r->result, &err);
    if (status == STET_OK && a->out_id && !r->placed && !r->s->opts.observe_only) {
        status = stet_tx_write(r->tx, &(stet_docname){a->out_id, a->out_scope}, stet_path_ref(&a->out_path),
                               stet_retain(r->result), &err);
    }
    set_error(r, status, &err);
}

/* ---- Recording
 * ----------------------------------------------------------------------------------------------------------------- */

static stet_status attach(action_run *r, stet_error *err) {
    stet_sched *s = r->s;
    sched_action *a = r->a;
    stet_address out = {NULL, {a->out_id, a->out_scope}, stet_path_ref(&a->out_path)};
    stet_address ignored = {NULL, {a->piece->failures, NULL}, STET_PATH_ROOT}, *envelopes = NULL;
    stet_arena_clear(&s->arena);
    size_t envelope_count = a->materializer ? sched_envelopes(a, &s->arena, &envelopes) : 0;
    stet_address *cells = NULL;
    size_t cell_count = a->has_cells && !a->same_code ? sched_bound_cells(a, &s->arena, &cells) : 0;
    stet_observation o = {.key = {.piece = a->piece->piece->doc, .action = a->node},
                          .kind = a->effect ? STET_ACTION_EFFECT : STET_ACTION_COMPUTATION,
                          .generation = a->piece->piece->generation,
                          .implementation = a->fingerprint,
                          .runtime = s->runtime,
                          .run = s->opts.observe_only ? STET_RUN_DEPENDENCIES : STET_RUN_ACTION,
                          .rests_on = stet_path_ref(&s->ground),
                          .rests_since = a->piece->piece->seq,
                          .declared_writes = &out,
                          .declared_count = a->out_id ? 1 : 0,
                          .envelopes = envelopes,
                          .envelope_count = envelope_count,
                          .ignored_writes = &ignored,
                          .ignored_count = 1,
                          .keeps_known = a->has_cells && a->same_code,
                          .cells = cells,
                          .cell_count = cell_count,
                          .failed = r->failed};
    stet_value parent = stet_get(a->row, "parent");
    if (stet_typeof(parent) == STET_STRING)
        o.parent = stet_as_string(&parent, NULL);
    sched_children_lists(r, &o);
    static const char *const options[] = {"debounceMs", "noDebounce", "throttleMs", "onRestart"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        stet_value v;
        if (!stet_find(a->row, options[i], strlen(options[i]), &v))
            continue;
        if (stet_typeof(o.options) == STET_NULL)
            o.options = stet_object();
        stet_put(&o.options, options[i], stet_retain(v));
    }
    if (r->failed) {
        o.error = stet_hash_of(r->error.message, strlen(r->error.message));
        o.note = stet_object();
        stet_put(&o.note, "error", stet_error_value(&r->error));
    }
    stet_status status = stet_observe_attach(r->tx, &o, err);
    stet_release(o.options);
    stet_release(o.note);
    return status;
}

static bool was_failing(stet_sched *s, sched_piece *p) {
    stet_value failures;
    if (!p->looked && sched_failures(s, p, &failures, NULL) == STET_OK) {
        p->failing |= stet_count(failures) > 0;
        stet_release(failures);
    }
    p->looked = true;
    return p->failing;
}

/* Keeps the list of what fails, in the transaction of the run that fails or mends it: a start must know without looking
 * at every action. */
static stet_status note_failure(action_run *r, stet_error *err) {
    sched_action *a = r->a;
    /* Of one whose code has changed the record does not tell whether it failed: the list does. */
    if (!r->s->memo->durable || (!r->failed && !a->failed && (a->same_code || !was_failing(r->s, a->piece))))
        return STET_OK;
    stet_docname name = {a->piece->failures, NULL};
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    stet_path_push(&path, a->node);
    stet_status status;
    if (r->failed) {
        a->piece->failing = true;
        stet_value e = stet_error_value(&r->error);
        stet_remove(&e, "details", 7);
        status = stet_tx_write(r->tx, &name, stet_path_ref(&path), e, err);
    } else {
        stet_value there;
        status = STET_OK;
        if (stet_tx_peek(r->tx, NULL, &name, stet_path_ref(&path), &there, NULL) == STET_OK) {
            stet_patch gone = {.kind = STET_PATCH_REMOVE, .path = stet_path_ref(&path)};
            status = stet_tx_patch(r->tx, &name, &gone, 1, err);
        }
    }
    stet_path_release(&path);
    return status;
}

/* Tells the plan what the run read. */
static void learn_reads(action_run *r) {
    stet_sched *s = r->s;
    const stet_tx_read_record *at;
    size_t count;
    stet_arena_clear(&s->arena);
    stet_tx_reads(r->tx, &s->arena, &at, &count);
    bool tied = !r->a->child_doc;
    for (size_t i = 0; i < count && !tied; i++)
        tied = at[i].space == s->space && strcmp(at[i].name.id, r->a->child_doc) == 0;
    if (!tied) { /* a child that does not look at its element must not outlive it, either */
        stet_value seen;
        if (stet_tx_read(r->tx, NULL, &(stet_docname){r->a->child_doc, NULL}, STET_PATH_ROOT, STET_SHALLOW, &seen,
                         NULL) == STET_OK) {
            stet_arena_clear(&s->arena);
            stet_tx_reads(r->tx, &s->arena, &at, &count);
        }
    }
    stet_plan_read small[32], *reads = count <= 32 ? small : stet_alloc(count * sizeof *reads);
    for (size_t i = 0; i < count; i++) {
        const char *uuid = at[i].space == s->space ? NULL : stet_space_uuid(at[i].space);
        reads[i] = (stet_plan_read){sched_doc(s, uuid, &at[i].name), at[i].path, at[i].kind};
    }
    if (stet_plan_set_reads(s->plan, r->a->id, reads, count))
        sched_wake(s);
    if (reads != small)
        free(reads);
}

void sched_emit(stet_sched *s, stet_sched_event_kind kind, const sched_action *a, const stet_error *error) {
    if (!s->opts.event)
        return;
    stet_sched_event e = {.kind = kind,
                          .piece = a ? a->piece->piece->name : NULL,
                          .node = a ? a->node : NULL,
                          .effect = a && a->effect,
                          .verifier = a && a->verifier,
                          .synchronous = !a || !a->kind || !a->kind->asynchronous,
                          .error = error,
                          .done = s->report.runs,
                          .queued = stet_plan_queued(s->plan) + s->left};
    s->opts.event(s->opts.ctx, &e);
}

void sched_problem(stet_sched *s, const sched_action *a, const stet_error *error, const char *cycle) {
    if (stet_count(s->report.problems) >= 100)
        return;
    stet_value p = stet_object();
    stet_put(&p, "piece", stet_string(a->piece->piece->name));
    stet_put(&p, "node", stet_string(a->node));
    stet_put(&p, "error", stet_error_value(error));
    if (cycle)
        stet_put(&p, "cycle", stet_string(cycle));
    stet_push(&s->report.problems, p);
}

/* ---- The run
 * ---------------------------------------------------------------------------------------------------------------------
 */

static stet_status open_group(stet_sched *s, stet_error *err) {
    if (!s->group) {
        stet_status status = stet_space_seq(s->space, &s->group_head, err); /* not newer than the snapshot */
        if (status == STET_OK)
            status = stet_group_begin(s->space, s->branch_name, &s->group, err);
        if (status != STET_OK)
            return status;
    }
    if (s->members.len == 0)
        s->group_since = stet_clock_monotonic_us();
    return STET_OK;
}

stet_status sched_run_transaction(action_run *r, stet_error *err) {
    stet_sched *s = r->s;
    stet_status status = open_group(s, err);
    if (status == STET_OK)
        status = stet_tx_begin_in(s->group, &r->tx, err);
    if (status != STET_OK) {
        r->tx = NULL;
        return status;
    }
    r->reader = (stet_reader){.tx = r->tx, .record = true, .space = sched_space, .ctx = s};
    return STET_OK;
}

stet_status sched_run_begin(stet_sched *s, sched_action *a, action_run *r, stet_error *err) {
    *r = (action_run){.s = s, .a = a};
    stet_status status = sched_row_take(s, a, err);
    if (status == STET_OK)
        status = sched_run_transaction(r, err);
    if (status != STET_OK)
        return status;
    r->base = (stet_run){.ops = &sched_run_ops,
                         .node = a->view,
                         .descriptor = stet_get(a->view, "module"),
                         .bindings = stet_get(a->view, "inputs"),
                         .event = stet_null(),
                         .name = stet_plan_name(s->plan, a->id),
                         .effect = a->effect};
    sched_emit(s, STET_SCHED_STARTED, a, NULL);
    return STET_OK;
}

/* Runs it in a transaction of the group. */
static stet_status run_once(stet_sched *s, sched_action *a, stet_error *err) {
    action_run r;
    stet_status status = sched_run_begin(s, a, &r, err);
    if (status != STET_OK)
        return status;
    if (!sched_child_there(&r)) {
        sched_run_drop(&r);
        return STET_OK;
    }
    sched_run_execute(&r);
    sched_run_check(&r);
    return sched_run_store(&r, err);
}

/* Its child is gone, and it with it. */
void sched_run_drop(action_run *r) {
    stet_sched *s = r->s;
    stet_reader_release(&r->reader);
    stet_tx_abort(r->tx);
    r->tx = NULL;
    stet_plan_finish(s->plan, r->a->id, STET_PLAN_DONE, sched_now(s));
    stet_plan_remove(s->plan, r->a->id);
    sched_forget_asked(s);
    stet_release(r->result);
    stet_error_clear(&r->error);
    sched_children_release(r);
}

stet_status sched_run_store(action_run *r, stet_error *err) {
    stet_sched *s = r->s;
    sched_action *a = r->a;
    if (s->opts.observe_only && r->failed) {
        /* What it reads is what counts here; what it would have read was not published. */
        r->failed = false;
        stet_error_clear(&r->error);
    }
    stet_status status = STET_OK;
    if (r->wrote.len > 0 && (r->failed || s->opts.observe_only)) {
        status = sched_cells_drop(r, err);
        if (status != STET_OK) {
            stet_tx_abort(r->tx);
            stet_plan_finish(s->plan, a->id, STET_PLAN_AGAIN, sched_now(s));
            goto end;
        }
    }
    learn_reads(r);
    status = note_failure(r, err);
    s->report.runs++;
    s->report.effects += a->effect;
    if (stet_plan_is_unknown(s->plan, a->id))
        s->report.causes[0]++;
    else
        s->report.causes[a->asked ? 2 : 1]++;
    a->asked = false;
    if (!a->ran) {
        a->ran = true;
        s->report.ran++;
    }
    const stet_doc_change *changes = NULL;
    size_t count = 0;
    bool failed = r->failed;
    if (status == STET_OK && s->memo->durable)
        status = attach(r, err);
    if (status == STET_OK)
        status = stet_group_add(s->group, r->tx, &changes, &count, err);
    if (status == STET_OK) {
        *stet_vec_add(&s->members) = a->id;
        a->observed = a->same_code = true;
        s->report.unchanged += count == 0;
        sched_cells_learn(s, a, changes, count);
        status = sched_tell_changes(s, changes, count, a->id, err);
        if (status == STET_OK && r->children && !failed)
            status = sched_children_apply(s, a, r->children, err);
        stet_plan_finish(s->plan, a->id, failed ? STET_PLAN_FAILED : STET_PLAN_DONE, sched_now(s));
    } else {
        stet_tx_abort(r->tx);
        stet_plan_finish(s->plan, a->id, STET_PLAN_AGAIN, sched_now(s));
    }
    if (failed) {
        s->report.failed_now++;
        a->failed = true;
        s->trouble |= a->kind && a->kind->asynchronous;
        sched_problem(s, a, &r->error, NULL);
        sched_emit(s, STET_SCHED_FAILED, a, &r->error);
    } else {
        a->failed = false;
        sched_emit(s, STET_SCHED_DONE, a, NULL);
    }
end:
    sched_cells_release(r);
    stet_reader_release(&r->reader);
    stet_release(r->result);
    stet_error_clear(&r->error);
    sched_children_release(r);
    return status;
}

/* Does the record say by now that it stands? Then another process did it. */
static bool stands_now(stet_sched *s, const sched_action *a) {
    stet_arena arena = STET_ARENA_INIT;
    stet_memo_action x = {0};
    if (!s->memo->durable || a->asked)
        return false;
    bool stands = s->memo->ops->load(s->memo, a->piece->piece->doc, a->node, &arena, &x, NULL) == STET_OK &&
                  x.observed && x.state == STET_STANDS && stet_hash_equal(x.implementation, a->fingerprint) &&
                  stet_hash_equal(x.runtime, s->runtime);
    stet_arena_release(&arena);
    return stands;
}

/* Whoever has the lock may be at it for long: waiting for it can be given up. */
static stet_status take_effects(stet_sched *s, stet_error *err) {
    for (;;) {
        stet_error mine = STET_ERROR_INIT;
        stet_status status = stet_lock_take(s->effects, STET_LOCK_EXCLUSIVE, 100, &mine);
        if (status != STET_BUSY) {
            if (status != STET_OK && err)
                stet_error_move(err, &mine);
            stet_error_clear(&mine);
            return status;
        }
        stet_error_clear(&mine);
        if (s->opts.cancelled && s->opts.cancelled(s->opts.ctx))
            return stet_fail(err, STET_CANCELLED, "stopped");
    }
}

/* Under the lock between processes, and only if nobody else did it meanwhile. One that is under way while others run
 * keeps the lock until its end is stored. */
static stet_status run_effect(stet_sched *s, sched_action *a, stet_error *err) {
    bool news, asynchronous = a->kind && a->kind->asynchronous;
    stet_status status = sched_flush(s, err);
    if (status == STET_OK && s->effects)
        status = take_effects(s, err);
    if (status == STET_OK)
        status = sched_news(s, &news, err);
    if (status != STET_OK) {
        stet_plan_finish(s->plan, a->id, STET_PLAN_AGAIN, sched_now(s));
    } else if (s->outdated || !stet_plan_still_first(s->plan, a->id)) {
        /* What it would have read did not hold when it was stored, or others changed it, or what it would do: an effect
         * is seen outside and is not done on values that are about to change. */
        stet_plan_finish(s->plan, a->id, STET_PLAN_NOT_YET, sched_now(s));
    } else if (stands_now(s, a)) {
        stet_plan_finish(s->plan, a->id, STET_PLAN_DONE, sched_now(s));
    } else {
        if (s->group)
            stet_group_end(s->group); /* a snapshot from under the lock */
        s->group = NULL;
        status = asynchronous ? sched_async_run(s, a, err) : run_once(s, a, err);
        if (status == STET_OK && asynchronous)
            return STET_OK; /* its end drops the lock */
        if (status == STET_OK)
            status = sched_flush(s, err);
    }
    sched_effect_done(s);
    return status;
}

void sched_effect_done(stet_sched *s) {
    if (s->effects && stet_lock_held(s->effects))
        stet_lock_drop(s->effects);
}

static bool costs_much(const sched_action *a) {
    return a && a->kind && a->kind->asynchronous;
}

/* What failed in an earlier process, so that those who read it find it. */
static stet_status know_failures(stet_sched *s, sched_piece *p, stet_error *err) {
    stet_value failures;
    if (p->known_failures || !s->memo->durable)
        return STET_OK;
    stet_status status = sched_failures(s, p, &failures, err);
    if (status != STET_OK)
        return status;
    p->known_failures = true;
    for (size_t i = 0; i < stet_count(failures) && status == STET_OK; i++) {
        uint32_t id;
        stet_error mine = STET_ERROR_INIT;
        status = sched_load(s, p->piece->doc, stet_key_at(failures, i, NULL), &id, &mine);
        s->trouble = true;
        if (status == STET_NOT_FOUND) { /* of a node that is gone */
            stet_error_clear(&mine);
            status = STET_OK;
        }
        stet_error_move(err, &mine);
    }
    stet_release(failures);
    return status;
}

/* Does it read what another one makes that failed, or that has to wait itself? Only among those that cost much: what
 * others made last is a value still, files of a failed command are gone. */
static bool must_wait(stet_sched *s, const sched_action *a) {
    stet_plan_nodes makers = {0};
    bool wait = false;
    size_t count = stet_plan_reads(s->plan, a->id, NULL, 0);
    stet_plan_read *reads = stet_alloc((count + 1) * sizeof *reads);
    stet_plan_reads(s->plan, a->id, reads, count);
    for (size_t i = 0; i < count && !wait; i++) {
        stet_vec_clear(&makers);
        stet_plan_writers(s->plan, reads[i].doc, reads[i].path, &makers);
        for (size_t k = 0; k < makers.len && !wait; k++) {
            const sched_action *m = stet_plan_data(s->plan, makers.at[k]);
            wait = makers.at[k] != a->id && costs_much(m) && (m->failed || stet_plan_is_left(s->plan, makers.at[k]));
        }
    }
    stet_free(reads);
    stet_vec_release(&makers);
    return wait;
}

stet_status sched_run(stet_sched *s, uint32_t id, stet_error *err) {
    sched_action *a = stet_plan_data(s->plan, id);
    stet_status status;
    if (costs_much(a)) {
        status = know_failures(s, a->piece, err);
        if (status != STET_OK || (s->trouble && must_wait(s, a))) {
            s->trouble = true;
            stet_plan_finish(s->plan, id, status == STET_OK ? STET_PLAN_LEFT : STET_PLAN_AGAIN, sched_now(s));
            return status;
        }
    }
    if (a->effect)
        return run_effect(s, a, err);
    stet_error gone = STET_ERROR_INIT;
    status = sched_row_take(s, a, &gone);
    if (status == STET_NOT_FOUND) { /* somebody has set the piece up anew, and it was not heard of yet */
        stet_error_clear(&gone);
        a->piece->outdated = s->outdated = true;
        stet_plan_finish(s->plan, id, STET_PLAN_NOT_YET, sched_now(s));
        return STET_OK;
    }
    stet_error_move(err, &gone);
    if (status != STET_OK)
        stet_plan_finish(s->plan, id, STET_PLAN_AGAIN, sched_now(s));
    else if (a->kind && a->kind->asynchronous)
        status = sched_async_run(s, a, err);
    else
        status = run_once(s, a, err);
    return status == STET_OK ? sched_flush_due(s, err) : status;
}
