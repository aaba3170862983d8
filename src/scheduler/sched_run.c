/* sched_run.c - one run of one action: beginning, checks, what is recorded about it, effects. */

#include "graph/stream.h"
#include "scheduler/sched_internal.h"

/* Inputs by position as an array; named ones as an array with one object. */
static stet_value as_tuple(stet_value inputs) {
    stet_value list = stet_value_array();
    size_t n = stet_value_count(inputs), index;
    bool positions = n > 0;
    for (size_t i = 0; i < n && positions; i++) {
        size_t len;
        const char *key = stet_value_key_at(inputs, i, &len);
        positions = stet_path_index(key, len, &index) && index < n;
    }
    if (!positions) {
        stet_value_push(&list, stet_value_retain(inputs));
        return list;
    }
    for (size_t i = 0; i < n; i++) {
        char key[24];
        snprintf(key, sizeof key, "%zu", i);
        stet_value_push(&list, stet_value_retain(stet_value_get(inputs, key)));
    }
    return list;
}

/* The inputs with the values of cells in place of the cells. They are read, though the run may not look at them:
 * whether it runs at all depends on what is in them. */
static stet_status with_cells(action_run *r, stet_value inputs, stet_value *out, stet_error *err) {
    stet_value all = stet_value_retain(inputs);
    stet_status status = STET_OK;
    for (size_t i = 0; i < stet_value_count(r->base.bindings) && status == STET_OK; i++) {
        size_t len;
        const char *key = stet_value_key_at(r->base.bindings, i, &len);
        stet_link l;
        stet_path path = STET_PATH_INIT;
        if (stet_link_read(stet_value_at(r->base.bindings, i), &l, &path) && l.as_cell) {
            stet_value v = stet_value_null();
            stet_error mine = STET_ERROR_INIT;
            stet_path_set(&path, STET_PATH_ROOT);
            stet_path_push_n(&path, key, len);
            status = stet_reader_binding(&r->reader, r->base.bindings, stet_path_ref(&path), STET_RECURSIVE, &v, &mine);
            if (status == STET_OK)
                stet_value_put_n(&all, key, len, stet_value_retain(v));
            else if (status == STET_NOT_FOUND)
                stet_value_remove(&all, key, len), status = STET_OK;
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
    if (status != STET_OK || stet_value_type(schema) == STET_TYPE_NULL)
        return status;
    status = stet_reader_binding(&r->reader, r->base.bindings, STET_PATH_ROOT, STET_RECURSIVE, &inputs, err);
    if (status != STET_OK)
        return status;
    status = with_cells(r, inputs, &all, err);
    if (status != STET_OK) {
        stet_value_release(all);
        return status;
    }
    stet_value type = stet_value_get(schema, "type");
    bool tuple = stet_value_find(schema, "prefixItems", 11, NULL) ||
                 (stet_value_type(type) == STET_TYPE_STRING && strcmp(stet_value_as_string(&type, NULL), "array") == 0);
    if (tuple) {
        stet_value list = as_tuple(all);
        if (stet_stream_is_handler(r->a->row)) /* called with the event first */
            stet_value_insert_at(&list, 0, stet_value_retain(r->base.event));
        status = stet_schema_check(schema, list, err);
        stet_value_release(list);
    } else {
        status = stet_schema_check(schema, all, err);
    }
    stet_value_release(all);
    if (status != STET_OK)
        stet_fail_in(err, "the inputs do not match the argument schema");
    return status;
}

/* A failure is an observation as a success is. Where the run can't say what its failure rests on, that is all that it
 * is bound to: each input by itself, since one that can't be read must not hide the others. */
static void read_all_inputs(action_run *r) {
    for (size_t i = 0; i < stet_value_count(r->base.bindings); i++) {
        size_t len;
        const char *key = stet_value_key_at(r->base.bindings, i, &len);
        stet_path path = STET_PATH_INIT;
        stet_value seen;
        stet_error ignored = STET_ERROR_INIT;
        stet_path_push_n(&path, key, len);
        if (stet_reader_binding(&r->reader, r->base.bindings, stet_path_ref(&path), STET_RECURSIVE, &seen, &ignored) !=
            STET_OK)
            stet_error_clear(&ignored);
        stet_path_release(&path);
    }
}

/* What comes from the machine and not from the inputs: nothing that was read tells when it is over. */
static bool is_doubtful(stet_status status) {
    return status == STET_IO || status == STET_BUSY || status == STET_UNSUPPORTED || status == STET_DENIED ||
           status == STET_INTERNAL || status == STET_CORRUPT;
}

static stet_status check_result(action_run *r, stet_value hash, stet_error *err) {
    stet_value schema;
    stet_status status = sched_schema(r->s, hash, &schema, err);
    if (status != STET_OK || stet_value_type(schema) == STET_TYPE_NULL)
        return status;
    status = stet_schema_check(schema, r->result, err);
    if (status != STET_OK)
        stet_fail_in(err, "the result does not match the result schema");
    return status;
}

/* An output lies where the pattern says. Written below a link it would lie in the link itself, and destroy it. The link
 * is read: without it the action runs again. */
static stet_status check_output(action_run *r, stet_error *err) {
    const sched_action *a = r->a;
    stet_docname name = {a->out_id, a->out_scope};
    stet_value cur, seen;
    if (!a->out_id)
        return STET_OK;
    stet_status status = stet_tx_peek(r->tx, NULL, &name, STET_PATH_ROOT, &cur, err);
    if (status != STET_OK) {
        if (status == STET_NOT_FOUND) {
            stet_error_clear(err);
            status = STET_OK;
        }
        return status; /* damage of its name must not pass for a document that is not there */
    }
    stet_pathref path = stet_path_ref(&a->out_path);
    stet_buf scratch = STET_BUF(0);
    const char *key;
    size_t cursor = 0, len;
    bool linked = false;
    while (!linked && stet_path_next(path, &cursor, &scratch, &key, &len) && stet_value_find(cur, key, len, &cur))
        linked = cursor < path.len && stet_link_is(cur, NULL);
    stet_buf_release(&scratch);
    if (!linked ||
        stet_tx_read(r->tx, NULL, &name, (stet_pathref){path.bytes, cursor}, STET_RECURSIVE, &seen, err) != STET_OK)
        return STET_OK;
    stet_fail(err, STET_INVALID, "its output lies in document \"%.200s\", below a link: it can't be written there",
              a->out_id);
    stet_hint(err, "name the document that the link leads to as \"output\", or replace the link");
    return STET_INVALID;
}

typedef struct link_check {
    const action_run *r;
    stet_status status;
    stet_error *err;
} link_check;

static bool check_link(void *ctx, stet_value binding, stet_pathref place) {
    link_check *c = ctx;
    const sched_action *a = c->r->a;
    stet_link l;
    stet_path to = STET_PATH_INIT, at = STET_PATH_INIT;
    if (!stet_link_is(binding, NULL))
        return true;
    stet_path_push(&to, "value");
    stet_path_set(&at, stet_path_ref(&a->out_path));
    stet_buf_add(&at.buf, place.bytes, place.len);
    if (!stet_link_read(binding, &l, &to)) {
        c->status = stet_fail(c->err, STET_INVALID, "it returns a link that makes no sense");
        stet_hint(c->err, "a link needs an id, and a path of keys");
    } else if (!l.as_cell && (!l.space || strcmp(l.space, stet_space_name(c->r->s->space)) == 0) &&
               strcmp(l.id, a->out_id) == 0 && strcmp(l.scope, a->out_scope ? a->out_scope : "") == 0 &&
               (stet_path_is_prefix(stet_path_ref(&to), stet_path_ref(&at)) ||
                stet_path_is_prefix(stet_path_ref(&at), stet_path_ref(&to)))) {
        c->status = stet_fail(c->err, STET_INVALID, "it returns a link to itself");
        stet_hint(c->err, "return the value, or a link to another document");
    }
    stet_path_release(&to);
    stet_path_release(&at);
    return c->status == STET_OK;
}

/* Such links can never be read; one that leads nowhere can, once something is there. */
static stet_status check_links(action_run *r, stet_error *err) {
    link_check c = {r, STET_OK, err};
    stet_binding_walk(r->result, check_link, &c);
    return c.status;
}

static void set_error(action_run *r, stet_status status, stet_error *err) {
    if (status != STET_OK && !r->failed) {
        r->failed = true;
        stet_error_move(&r->error, err);
        return;
    }
    stet_error_clear(err);
}

/* The start; a failure is the action's. */
void sched_run_execute(action_run *r) {
    stet_error err = STET_ERROR_INIT;
    sched_action *a = r->a;
    stet_value module = stet_value_get(a->row, "module");
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
        status = check_output(r, &err);
    if (status == STET_OK)
        status = check_inputs(r, stet_value_get(module, "argumentSchema"), &err);
    if (status == STET_OK)
        status = check_inputs(r, stet_value_get(a->row, "argumentSchema"), &err);
    if (status == STET_OK) {
        begun = true;
        status = a->kind->start(state, &r->base, &err);
        if (status == STET_OK && !r->base.ended && !a->kind->asynchronous)
            status = stet_fail(&err, STET_INTERNAL, "the module came back without a result");
    }
    set_error(r, status, &err);
    if (!begun) /* what it would have looked at is not known: any of it may mend it */
        read_all_inputs(r);
}

/* May it rest on what it has read? To judge that, more is read for it, though it has ended. */
static stet_status check_reads(action_run *r, stet_error *err) {
    stet_sched *s = r->s;
    const stet_tx_read_record *at;
    size_t count;
    stet_status status = STET_OK;
    stet_sched_place place = {s->opts.files, s->space, s->branch};
    if (!s->opts.accept_read || !r->a->kind || r->a->kind->sees_files)
        return STET_OK;
    bool ended = r->base.ended;
    r->base.ended = false;
    stet_arena arena = STET_ARENA_INIT;
    stet_tx_reads(r->tx, &arena, &at, &count);
    for (size_t i = 0; i < count && status == STET_OK; i++)
        if (at[i].space == s->space)
            status = s->opts.accept_read(s->opts.ctx, &place, &r->base, at[i].name.id, err);
    r->base.ended = ended;
    stet_arena_release(&arena);
    return status;
}

void sched_run_check(action_run *r) {
    stet_error err = STET_ERROR_INIT;
    sched_action *a = r->a;
    stet_value module = stet_value_get(a->row, "module");
    stet_status status = STET_OK;
    if (r->failed)
        return;
    bool links = !r->placed && a->out_id && stet_reader_has_links(r->result);
    status = check_reads(r, &err);
    if (status == STET_OK && links)
        status = check_links(r, &err);
    if (status == STET_OK)
        status = sched_earlier_end(r, &err);
    if (status == STET_OK)
        status = check_result(r, stet_value_get(module, "resultSchema"), &err);
    if (status == STET_OK)
        status = check_result(r, stet_value_get(a->row, "resultSchema"), &err);
    if (status == STET_OK && r->wrote.len > 0) {
        status = sched_cells_check(r, &err);
        if (status == STET_OK)
            status = check_inputs(r, stet_value_get(module, "argumentSchema"), &err);
        if (status == STET_OK)
            status = check_inputs(r, stet_value_get(a->row, "argumentSchema"), &err);
    }
    if (status == STET_OK && a->role == STET_CHILD_RETURNS && !r->s->opts.observe_only)
        status = sched_children_returned(r, r->result, &err);
    if (status == STET_OK && a->out_id && !r->placed && !r->s->opts.observe_only) {
        status = stet_tx_write(r->tx, &(stet_docname){a->out_id, a->out_scope}, stet_path_ref(&a->out_path),
                               stet_value_retain(r->result), &err);
    }
    if (status == STET_OK)
        status = sched_note_links(r, links, &err);
    set_error(r, status, &err);
}

/* What is too long to be kept is left out: the error itself never is. */
static stet_value note_of(const stet_error *error) {
    stet_value note = stet_value_object(), e = stet_error_value(error);
    size_t len;
    char *text = stet_json_print(e, STET_JSON_CANONICAL, &len);
    stet_free(text);
    if (len > STET_OBSERVE_NOTE_MAX - 32)
        stet_value_remove(&e, "details", 7);
    stet_value_put(&note, "error", e);
    return note;
}

static stet_status attach(action_run *r, stet_error *err) {
    stet_sched *s = r->s;
    sched_action *a = r->a;
    stet_address out = {NULL, {a->out_id, a->out_scope}, stet_path_ref(&a->out_path)};
    stet_address *envelopes = NULL;
    stet_arena_clear(&s->arena);
    stet_address *declared = stet_arena_alloc(&s->arena, (r->docs.len + 1) * sizeof *declared);
    size_t declared_count = 0;
    if (a->out_id)
        declared[declared_count++] = out;
    for (size_t i = 0; i < r->docs.len; i++)
        declared[declared_count++] = (stet_address){NULL, {r->docs.at[i], ""}, STET_PATH_ROOT};
    stet_value makes = sched_may_make(a) ? stet_makes_of(s->space, s->branch, a->row, true) : stet_value_null();
    size_t envelope_count =
        a->materializer || stet_value_count(makes) > 0 ? sched_envelopes_with(a, makes, &s->arena, &envelopes) : 0;
    stet_value_release(makes);
    stet_address *written = NULL;
    size_t written_count = a->has_cells ? sched_cells_set(r, &s->arena, &written) : 0;
    stet_observation o = {.key = stet_piece_action(a->piece->piece, a->node),
                          .kind = a->effect ? STET_ACTION_EFFECT : STET_ACTION_COMPUTATION,
                          .generation = a->piece->piece->generation,
                          .implementation = a->fingerprint,
                          .runtime = s->runtime,
                          .run = s->opts.observe_only ? STET_RUN_DEPENDENCIES : STET_RUN_ACTION,
                          .rests_on = stet_path_ref(&s->ground),
                          .rests_since = a->piece->piece->seq,
                          .declared_writes = declared,
                          .declared_count = declared_count,
                          .envelopes = envelopes,
                          .envelope_count = envelope_count,
                          .new_code = !a->same_code,
                          .tells_written = a->has_cells,
                          .written = written,
                          .written_count = written_count,
                          .failed = r->failed};
    stet_value parent = stet_value_get(a->row, "parent");
    if (stet_value_type(parent) == STET_TYPE_STRING)
        o.parent = stet_value_as_string(&parent, NULL);
    sched_children_lists(r, &o);
    static const char *const options[] = {"debounceMs", "noDebounce", "throttleMs", "onRestart"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        stet_value v;
        if (!stet_value_find(a->row, options[i], strlen(options[i]), &v))
            continue;
        if (stet_value_type(o.options) == STET_TYPE_NULL)
            o.options = stet_value_object();
        stet_value_put(&o.options, options[i], stet_value_retain(v));
    }
    if (r->failed) {
        o.error = stet_hash_of(r->error.message, strlen(r->error.message));
        o.note = note_of(&r->error);
        o.doubtful = is_doubtful(r->error.status);
    }
    stet_status status = stet_observe_attach(r->tx, &o, err);
    stet_value_release(o.options);
    stet_value_release(o.note);
    return status;
}

static bool has_reads(action_run *r) {
    const stet_tx_read_record *at;
    size_t count;
    stet_arena_clear(&r->s->arena);
    stet_tx_reads(r->tx, &r->s->arena, &at, &count);
    return count > 0;
}

/* Tells the plan what the run read. */
static void learn_reads(action_run *r) {
    stet_sched *s = r->s;
    const stet_tx_read_record *at;
    size_t count;
    stet_arena_clear(&s->arena);
    stet_tx_reads(r->tx, &s->arena, &at, &count);
    bool tied = !r->a->child_doc;
    stet_docname child = stet_piece_name(r->a->piece->piece, r->a->child_doc);
    for (size_t i = 0; i < count && !tied; i++)
        tied = at[i].space == s->space && strcmp(at[i].name.scope, child.scope) == 0 &&
               strcmp(at[i].name.id, child.id) == 0;
    if (!tied) { /* a child that does not look at its element must not outlive it, either */
        stet_value seen;
        if (stet_tx_read(r->tx, NULL, &child, STET_PATH_ROOT, STET_SHALLOW, &seen, NULL) == STET_OK) {
            stet_arena_clear(&s->arena);
            stet_tx_reads(r->tx, &s->arena, &at, &count);
        }
    }
    stet_plan_read small[32], *reads = count <= 32 ? small : stet_alloc(count * sizeof *reads);
    for (size_t i = 0; i < count; i++) {
        const char *uuid = at[i].space == s->space ? NULL : stet_space_uuid(at[i].space);
        reads[i] = (stet_plan_read){sched_doc(s, uuid, &at[i].name), at[i].path, at[i].kind};
    }
    r->a->own_reads = 0;
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
                          .queued = stet_plan_queued(s->plan) + s->marks.remaining};
    s->opts.event(s->opts.ctx, &e);
}

static stet_status open_group(stet_sched *s, stet_error *err) {
    if (!s->batch.group) {
        stet_status status = stet_space_seq(s->space, &s->batch.head, err); /* not newer than the snapshot */
        if (status == STET_OK)
            status = stet_group_begin(s->space, s->branch_name, &s->batch.group, err);
        if (status != STET_OK)
            return status;
    }
    if (s->batch.members.len == 0)
        s->batch.since = stet_clock_monotonic_us();
    return STET_OK;
}

stet_status sched_run_transaction(action_run *r, stet_error *err) {
    stet_sched *s = r->s;
    stet_status status = open_group(s, err);
    if (status == STET_OK)
        status = stet_tx_begin_in(s->batch.group, &r->tx, err);
    if (status != STET_OK) {
        r->tx = NULL;
        return status;
    }
    r->reader = (stet_reader){.tx = r->tx,
                              .record = true,
                              .space = sched_space,
                              .ctx = s,
                              .piece = r->a->piece->piece->name,
                              .node = r->a->node};
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
                         .descriptor = stet_value_get(a->view, "module"),
                         .bindings = stet_value_get(a->view, "inputs"),
                         .event = stet_value_null(),
                         .name = stet_plan_name(s->plan, a->id),
                         .effect = a->effect};
    sched_emit(s, STET_SCHED_STARTED, a, NULL);
    return STET_OK;
}

static stet_status put_off(stet_sched *s, sched_action *a, sched_turn turn, stet_error *err) {
    sched_note(s, a);
    /* F4. What its inputs lead to may have grown while it waited for its turn. */
    bool needs_all = a->failed || stet_plan_is_unknown(s->plan, a->id);
    stet_status status = turn == SCHED_WAITS && needs_all ? sched_also_declared(s, a, err) : STET_OK;
    stet_plan_finish(s->plan, a->id, turn == SCHED_POSTPONED ? STET_PLAN_NOT_YET : STET_PLAN_LEFT, sched_now(s));
    if (turn == SCHED_WAITS) {
        sched_failed_upstream(s, a);
        sched_fell(s, a); /* F5: what it waits for was perhaps not among its reads when `below` was computed */
    }
    return status;
}

/* It read what a failed one should have made: what it made of that is of no use. */
stet_status sched_run_give_way(action_run *r, sched_turn turn, stet_error *err) {
    stet_reader_release(&r->reader);
    stet_tx_abort(r->tx);
    r->tx = NULL;
    stet_status status = put_off(r->s, r->a, turn, err);
    sched_emit(r->s, STET_SCHED_CANCELLED, r->a, NULL);
    sched_cells_release(r);
    stet_value_release(r->result);
    stet_error_clear(&r->error);
    sched_children_give_up(r);
    return status;
}

static void release_run(action_run *r) {
    sched_cells_release(r);
    stet_reader_release(&r->reader);
    stet_value_release(r->result);
    stet_error_clear(&r->error);
    sched_children_release(r);
}

/* Takes back what a run has written, and reads what the writes led over instead. On an error the run has ended. */
static stet_status drop_writes(action_run *r, stet_error *err) {
    stet_status status = sched_cells_drop(r, err);
    sched_children_give_up(r);
    if (status == STET_OK)
        return STET_OK;
    stet_tx_abort(r->tx);
    r->tx = NULL;
    stet_plan_finish(r->s->plan, r->a->id, STET_PLAN_AGAIN, sched_now(r->s));
    release_run(r);
    return status;
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
    if ((sched_has_trouble(s) || r.failed) && !s->opts.observe_only) {
        const stet_tx_read_record *at;
        size_t count;
        /* As the record will say: judged by less, it would be asked again and again. */
        if (r.failed && r.wrote.len > 0 && (status = drop_writes(&r, err)) != STET_OK)
            return status;
        if (r.failed && !has_reads(&r))
            read_all_inputs(&r);
        stet_arena_clear(&s->arena);
        stet_tx_reads(r.tx, &s->arena, &at, &count);
        sched_turn turn = sched_turn_of(s, a, at, count, r.failed && !a->effect);
        if (turn != SCHED_GO)
            return sched_run_give_way(&r, turn, err);
    }
    if (!sched_run_tells_nothing(&r))
        return sched_run_store(&r, err);
    stet_reader_release(&r.reader);
    stet_tx_abort(r.tx);
    r.tx = NULL;
    sched_run_leave(&r);
    return STET_OK;
}

bool sched_run_tells_nothing(const action_run *r) {
    return r->declined || (r->failed && stet_run_is_ours(r->error.status));
}

/* Only a kind that is asked to stop, and the end of the whole settling, can stop a run. */
static bool was_stopped(const action_run *r) {
    const stet_sched_opts *opts = &r->s->opts;
    return r->error.status == STET_CANCELLED &&
           ((r->a->kind && r->a->kind->asynchronous) || (opts->cancelled && opts->cancelled(opts->ctx)));
}

void sched_run_leave(action_run *r) {
    stet_sched *s = r->s;
    sched_action *a = r->a;
    stet_plan_finish(s->plan, a->id, STET_PLAN_AGAIN, sched_now(s));
    sched_note(s, a);
    if (was_stopped(r))
        sched_emit(s, STET_SCHED_CANCELLED, a, &r->error);
    else if (r->error.status != STET_CONFLICT || ++a->conflicts > STET_SCHED_MAX_CONFLICTS)
        sched_decline(s, a, &r->error);
    else
        sched_emit(s, STET_SCHED_CANCELLED, a, NULL);
    sched_cells_release(r);
    stet_value_release(r->result);
    stet_error_clear(&r->error);
    sched_children_give_up(r);
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
    stet_value_release(r->result);
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
    if ((r->wrote.len > 0 && (r->failed || s->opts.observe_only)) || (r->failed && r->children)) {
        status = drop_writes(r, err);
        if (status != STET_OK)
            return status;
    }
    if (r->failed && !has_reads(r))
        read_all_inputs(r);
    learn_reads(r);
    s->report.runs++;
    s->report.effects += a->effect;
    s->done_before -= a->done_before;
    a->done_before = false;
    if (stet_plan_is_unknown(s->plan, a->id))
        s->report.causes[0]++;
    else
        s->report.causes[a->asked ? 2 : 1]++;
    a->asked = false;
    sched_note(s, a);
    s->report.restored -= a->ran && a->restored;
    a->restored = r->base.restored && !r->failed && (!a->ran || a->restored);
    s->report.restored += a->restored;
    if (!a->ran) {
        a->ran = true;
        s->report.ran++;
        s->ran_whole += a->piece->whole;
    }
    const stet_doc_change *changes = NULL;
    size_t count = 0;
    bool failed = r->failed;
    if (status == STET_OK && s->memo->durable)
        status = attach(r, err);
    if (status == STET_OK)
        status = stet_group_add(s->batch.group, r->tx, &changes, &count, err);
    if (status == STET_OK) {
        *stet_vec_add(&s->batch.members) = a->id;
        a->observed = a->same_code = true;
        s->report.unchanged += count == 0;
        sched_cells_learn(r);
        a->writes_known = !failed && !s->opts.observe_only;
        status = sched_tell_changes(s, changes, count, a->id, err);
        if (status == STET_OK && r->children && !failed)
            status = sched_children_apply(s, a, r->children, err);
        a->piece->leads |= r->leads && !failed;
        stet_plan_finish(s->plan, a->id, failed ? STET_PLAN_FAILED : STET_PLAN_DONE, sched_now(s));
    } else {
        stet_tx_abort(r->tx);
        stet_plan_finish(s->plan, a->id, STET_PLAN_AGAIN, sched_now(s));
    }
    if (failed) {
        s->report.failed_now++;
        a->failed = s->blocked.any = true;
        a->doubtful = is_doubtful(r->error.status);
        a->tried = sched_round(s);
        sched_fell(s, a);
        sched_failed_upstream(s, a);
        sched_problem(s, a, &r->error, NULL);
        sched_emit(s, STET_SCHED_FAILED, a, &r->error);
    } else {
        if (a->failed)
            sched_take_back(s, a);
        if (a->failed || a->below_failed)
            sched_rose(s);
        a->failed = a->doubtful = a->below_failed = false;
        sched_emit(s, STET_SCHED_DONE, a, NULL);
    }
    release_run(r);
    return status;
}

/* Does the record say by now that it stands? Then another process did it. */
static bool stands_now(stet_sched *s, const sched_action *a) {
    stet_arena arena = STET_ARENA_INIT;
    stet_memo_action x = {0};
    if (!s->memo->durable || a->asked)
        return false;
    bool stands = stet_memo_load(s->memo, a->piece->piece->key, a->node, &arena, &x, NULL) == STET_OK && x.observed &&
                  x.state == STET_STATE_STANDS && stet_hash_equal(x.implementation, a->fingerprint) &&
                  stet_hash_equal(x.runtime, s->runtime);
    stet_arena_release(&arena);
    return stands;
}

/* Is what lies at a place of a document now what lay there at `seq`? */
static bool is_as_at(stet_sched *s, const stet_observed *read, int64_t seq) {
    stet_doc_state then = {0}, now = {0};
    stet_value before, after;
    if (read->space)
        return false;
    bool same = stet_space_load(s->space, s->branch, &read->name, seq, &then, NULL) == STET_OK &&
                stet_space_load(s->space, s->branch, &read->name, -1, &now, NULL) == STET_OK;
    if (same && then.seq != now.seq) {
        bool was = then.exists && stet_path_lookup(then.value, read->path, &before),
             is = now.exists && stet_path_lookup(now.value, read->path, &after);
        same = was == is && (!was || stet_value_equal(before, after));
    }
    stet_value_release(then.value);
    stet_value_release(now.value);
    return same;
}

/* Did the run that is continued do this effect, on what its inputs are now? The argument of such a run is given back
 * when the run stops and lent again when it goes on, which marks its readers although no value differs. What it wrote
 * must still be there, too: others may have done the effect in between, on other inputs. */
static bool done_before(stet_sched *s, const sched_action *a) {
    int64_t at = s->opts.done_at && s->memo->durable && !a->asked
                     ? s->opts.done_at(s->opts.ctx, a->piece->piece->name, a->node)
                     : 0;
    if (at <= 0)
        return false;
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    stet_action_key key = stet_piece_action(a->piece->piece, a->node);
    bool done = stet_observe_find(s->space, s->branch, &key, &arena, &r, NULL) == STET_OK && r.observed && !r.failed &&
                stet_hash_equal(r.implementation, a->fingerprint) && stet_hash_equal(r.runtime, s->runtime);
    for (size_t i = 0; done && i < r.read_count; i++)
        done = is_as_at(s, &r.reads[i], at);
    for (size_t i = 0; done && i < r.known_count; i++)
        done = is_as_at(s, &r.known[i], at);
    stet_arena_release(&arena);
    return done;
}

/* Whoever has the lock may be at it for long: waiting for it can be given up. Kinds have locks of their own, which come
 * after this one: whoever waits for it holds none of them, or the one who has it could wait for those. */
static stet_status take_effects(stet_sched *s, stet_error *err) {
    for (int ms = 0;; ms = 100) {
        stet_error mine = STET_ERROR_INIT;
        stet_status status = stet_lock_take(s->effects, STET_LOCK_EXCLUSIVE, ms, ms ? &mine : NULL);
        if (status == STET_BUSY && ms == 0) {
            sched_tell_pause(s);
            continue;
        }
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

#define MAX_MOVES 100

/* A snapshot of which the plan has heard all. In a newer one there may be children that others have made and that are
 * not in memory here: whoever reads their outputs would run before them, and find nothing. False: the plan has heard of
 * something, and is to be asked again. When others commit faster than this looks, it goes on: what it does on such a
 * snapshot is marked by their commits. */
static stet_status known_ground(stet_sched *s, bool *known, stet_error *err) {
    bool news;
    *known = true;
    if (s->batch.group)
        return STET_OK;
    stet_status status = open_group(s, err);
    if (status == STET_OK && s->batch.moves < MAX_MOVES) {
        status = sched_news(s, &news, err);
        *known = !news;
    }
    s->batch.moves = *known ? 0 : s->batch.moves + 1;
    return status;
}

/* Under the lock between processes, and only if nobody else did it meanwhile. One that is under way while others run
 * keeps the lock until its end is stored. */
static stet_status run_effect(stet_sched *s, sched_action *a, stet_error *err) {
    bool known = false, asynchronous = a->kind && a->kind->asynchronous;
    stet_status status = sched_flush(s, err);
    if (status == STET_OK && s->effects)
        status = take_effects(s, err);
    if (status == STET_OK) {
        sched_group_end(s); /* a snapshot from under the lock */
        status = known_ground(s, &known, err);
    }
    if (status != STET_OK) {
        stet_plan_finish(s->plan, a->id, STET_PLAN_AGAIN, sched_now(s));
    } else if (s->outdated || !known || !stet_plan_still_first(s->plan, a->id)) {
        /* What it would have read did not hold when it was stored, or others changed it, or what it would do: an effect
         * is seen outside and is not done on values that are about to change. */
        stet_plan_finish(s->plan, a->id, STET_PLAN_NOT_YET, sched_now(s));
    } else if (stands_now(s, a)) {
        stet_plan_finish(s->plan, a->id, STET_PLAN_DONE, sched_now(s));
    } else if (done_before(s, a)) {
        stet_plan_finish(s->plan, a->id, STET_PLAN_DONE, sched_now(s));
        s->done_before += !a->done_before;
        a->done_before = true;
        sched_emit(s, STET_SCHED_DONE, a, NULL);
    } else {
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

/* Asynchronous actions and effects are seen outside: they must not begin on what is not as it should be. */
static stet_status may_begin(stet_sched *s, sched_action *a, sched_turn *turn, stet_error *err) {
    *turn = SCHED_GO;
    return a->kind && (a->effect || a->kind->asynchronous) ? sched_turn_before(s, a, turn, err) : STET_OK;
}

stet_status sched_run(stet_sched *s, uint32_t id, stet_error *err) {
    sched_action *a = stet_plan_data(s->plan, id);
    /* Commands, calls and effects act on the world outside: to see what they read is no reason to start them. */
    if (s->opts.observe_only && (a->effect || (a->kind && a->kind->asynchronous))) {
        stet_plan_finish(s->plan, id, STET_PLAN_LEFT, sched_now(s));
        sched_note(s, a);
        return STET_OK;
    }
    bool known = true;
    stet_status status = a->effect ? STET_OK : known_ground(s, &known, err);
    if (status != STET_OK || !known) {
        stet_plan_finish(s->plan, id, status == STET_OK ? STET_PLAN_NOT_YET : STET_PLAN_AGAIN, sched_now(s));
        return status;
    }
    stet_error gone = STET_ERROR_INIT;
    status = sched_row_take(s, a, &gone);
    if (status == STET_NOT_FOUND) { /* somebody has set the piece up anew, and it was not heard of yet */
        stet_error_clear(&gone);
        a->piece->outdated = s->outdated = true;
        stet_plan_finish(s->plan, id, STET_PLAN_NOT_YET, sched_now(s));
        return STET_OK;
    }
    stet_error_move(err, &gone);
    sched_turn turn;
    if (status == STET_OK && sched_has_trouble(s))
        status = sched_find_below(s, err);
    if (status == STET_OK)
        status = may_begin(s, a, &turn, err);
    if (status != STET_OK) {
        stet_plan_finish(s->plan, id, STET_PLAN_AGAIN, sched_now(s));
        return status;
    }
    if (turn != SCHED_GO) {
        status = put_off(s, a, turn, err);
        sched_row_drop(a);
        return status;
    }
    if (a->effect)
        return run_effect(s, a, err);
    if (a->kind && a->kind->asynchronous)
        status = sched_async_run(s, a, err);
    else
        status = run_once(s, a, err);
    return status == STET_OK ? sched_flush_due(s, err) : status;
}
