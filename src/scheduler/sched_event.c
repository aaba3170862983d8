/* sched_event.c - events: the handlers of a stream run once for each, on fresh inputs, in one transaction.
 *
 * Preflight. What a handler reads is known only when it runs. So it runs on what is there; then everything it read is
 * demanded. If bringing that up to date ran anything at all, the transaction is given up and the handler runs again.
 * Actions that the handler does not need do not run, and a handler whose inputs are up to date runs once. This works
 * because a handler has no effect but its transaction; what it printed is held back until it is stored.
 *
 * Others commit meanwhile. What is stored was read before everything was found to be up to date, and the commit proves
 * that it has not changed since: so it is up to date. The same is proved of what made a handler fail, or be refused,
 * before that is reported. Otherwise the handler runs again, up to a bound.
 *
 * Streams of children. The coordinators, which are demanded too, tell which children exist: an event for an element
 * that has just been added finds it, and one for a removed element is refused. What the coordinators read is read by
 * the transaction, so that it is not stored if the list changes meanwhile.
 *
 * At most once. The document of the event is created in the same commit and required to be absent: of two commits with
 * the same event one is refused, whoever makes them. Events that handlers send in turn are delivered in the same
 * transaction, after all handlers of the event before.
 */

#include "graph/stream.h"
#include "scheduler/sched_internal.h"

#define MAX_PREFLIGHTS 100  /* rounds until what a handler reads is fresh */
#define MAX_DELIVERIES 1000 /* of one event: itself, and what handlers send */
#define MAX_LOG        (1u << 20)

/* One event on its way. */
typedef struct delivery {
    char *piece;  /* its name */
    char *stream; /* as it was given */
    stet_value event;
} delivery;

typedef struct sending {
    stet_sched *s;
    sched_piece *piece;
    const char *asked; /* the stream as it was given */
    stet_value event;
    char *doc; /* of the event */
    stet_sched_sent *out;
    /* Of one round */
    STET_VEC(delivery) queue;
    STET_VEC(char *) coordinators; /* "PIECE_KEY NODE": on whose word a child is there */
    char hash[STET_HASH_HEX];
    bool known;     /* it was applied before */
    bool moved;     /* others changed what was read: it is worth another try */
    char *log_node; /* who printed first */
} sending;

static void end_round(sending *e) {
    for (size_t i = 0; i < e->queue.len; i++) {
        stet_free(e->queue.at[i].piece);
        stet_free(e->queue.at[i].stream);
        stet_value_release(e->queue.at[i].event);
    }
    for (size_t i = 0; i < e->coordinators.len; i++)
        stet_free(e->coordinators.at[i]);
    stet_vec_clear(&e->queue);
    stet_vec_clear(&e->coordinators);
}

static void end_sending(sending *e) {
    end_round(e);
    stet_vec_release(&e->queue);
    stet_vec_release(&e->coordinators);
    stet_free(e->doc);
    stet_free(e->log_node);
}

static stet_status enqueue(sending *e, const char *piece, const char *stream, stet_value event, stet_error *err) {
    if (e->queue.len >= MAX_DELIVERIES) {
        stet_fail(err, STET_LIMIT, "handlers sent more than %d events because of one", MAX_DELIVERIES - 1);
        stet_hint(err, "do they send to each other in a circle?");
        return STET_LIMIT;
    }
    *stet_vec_add(&e->queue) = (delivery){stet_strdup(piece), stet_strdup(stream), stet_value_retain(event)};
    return STET_OK;
}

/* As a path into the result: where that leads, through links, is the cell of a stream. Each of them is a read. */
static stet_status by_result(sending *e, stet_tx *tx, const sched_piece *p, const char *text, stet_buf *name,
                             stet_error *err) {
    stet_reader r = {.tx = tx, .record = true, .space = sched_space, .ctx = e->s};
    stet_reader_place at = {.path = STET_PATH_INIT};
    stet_path path = STET_PATH_INIT;
    stet_value link = stet_value_object();
    char *pointer = stet_asprintf("%s%s", text[0] == '/' ? "" : "/", text);
    stet_value_put(&link, "id", stet_value_string(p->piece->doc));
    stet_value_put(&link, "scope", stet_value_string(p->piece->scope));
    stet_value_put(&link, "asCell", stet_value_bool(true));
    stet_value binding = stet_link_wrap(link);
    stet_status status = stet_path_of_pointer(&path, pointer, strlen(pointer), err);
    if (status == STET_OK)
        status = stet_reader_locate(&r, binding, stet_path_ref(&path), &at, err);
    if (status == STET_OK)
        status = stet_reader_place_read(&r, &at, err);
    if (status == STET_OK) {
        stet_path_set(&path, STET_PATH_ROOT);
        stet_path_push(&path, "value");
        stet_pathref in = stet_path_ref(&at.path), value = stet_path_ref(&path);
        bool below = stet_path_is_prefix(value, in);
        stet_pathref rest = below ? (stet_pathref){in.bytes + value.len, in.len - value.len} : STET_PATH_ROOT;
        if (!below || (at.space && at.space != e->s->space) ||
            !stet_stream_name(p->piece->name, &(stet_docname){at.id, at.scope}, rest, name))
            status = STET_NOT_FOUND;
    }
    stet_reader_place_release(&at);
    stet_reader_release(&r);
    stet_path_release(&path);
    stet_value_release(binding);
    stet_free(pointer);
    return status;
}

typedef struct row_source {
    stet_sched *s;
    const stet_piece *piece;
} row_source;

static stet_status load_value(void *ctx, const char *id, stet_value *value, stet_error *err) {
    const row_source *from = ctx;
    stet_doc_state state;
    stet_docname name = stet_scoped(from->piece->scope, id);
    stet_status status = stet_space_load(from->s->space, from->s->branch, &name, -1, &state, err);
    if (status != STET_OK)
        return status;
    *value = state.exists ? stet_value_retain(stet_value_get(state.value, "value")) : stet_value_null();
    stet_value_release(state.value);
    return STET_OK;
}

/* The coordinators on whose word a child is there, from the outermost inwards. */
static void note_coordinators(sending *e, const sched_piece *p, const char *child) {
    stet_child_docs docs = {&(row_source){e->s, p->piece}, load_value};
    stet_process_modules modules = sched_modules(e->s);
    for (const char *end = strchr(child, ']'); end; end = strchr(end + 1, ']')) {
        size_t len = (size_t)(end - child) + 1;
        char *node = stet_child_coordinator(child, len, false);
        stet_value row;
        if (stet_child_row(&docs, p->piece, node, &modules, &e->s->templates, &row, NULL) == STET_OK) {
            bool hidden = stet_child_role_of(row) == STET_CHILD_NONE; /* a filter's */
            *stet_vec_add(&e->coordinators) = stet_asprintf("%s %s%s", p->piece->key, node, hidden ? "[]" : "");
            stet_value_release(row);
        }
        stet_free(node);
    }
}

/* "rows[7]" of "rows[7].add", or NULL. */
static char *child_in(const char *name) {
    size_t id = strcspn(name, "/"), len = stet_child_id_valid(name, id) ? stet_child_instance(name) : 0;
    return len > 0 && len < id ? stet_strndup(name, len) : NULL;
}

/* By its name, or else by what the result shows there. */
static stet_status find_stream(sending *e, stet_tx *tx, const sched_piece *p, const char *name, stet_stream *out,
                               stet_error *err) {
    stet_child_docs docs = {&(row_source){e->s, p->piece}, load_value};
    stet_process_modules modules = sched_modules(e->s);
    char *child = child_in(name);
    if (child)
        note_coordinators(e, p, child); /* one that returned no pattern yet has to run first */
    stet_status status = stet_stream_find(&docs, p->piece, name, &modules, &e->s->templates, out, err);
    if (status == STET_NOT_FOUND && !child) {
        stet_buf shown = STET_BUF(4096);
        stet_error ignored = STET_ERROR_INIT;
        if (by_result(e, tx, p, name, &shown, &ignored) == STET_OK) {
            child = child_in(stet_buf_cstr(&shown));
            if (child)
                note_coordinators(e, p, child);
            if (err)
                stet_error_clear(err);
            status = stet_stream_find(&docs, p->piece, stet_buf_cstr(&shown), &modules, &e->s->templates, out, err);
        }
        stet_error_clear(&ignored);
        stet_buf_release(&shown);
    }
    stet_free(child);
    return status;
}

/* Is the child there whose stream it is? That is a read. */
static stet_status child_there(sending *e, stet_tx *tx, const sched_piece *p, const stet_stream *to, stet_error *err) {
    stet_path path = STET_PATH_INIT;
    stet_value v;
    stet_error mine = STET_ERROR_INIT;
    (void)e;
    if (!to->child)
        return STET_OK;
    char *id = stet_piece_part(p->piece->name, "child", to->child);
    stet_docname child = stet_piece_name(p->piece, id);
    stet_path_push(&path, "value");
    stet_status status = stet_tx_read(tx, NULL, &child, stet_path_ref(&path), STET_SHALLOW, &v, &mine);
    if (status == STET_NOT_FOUND) {
        stet_fail(err, STET_NOT_FOUND, "piece \"%s\" has no child \"%s\": there is no such element, or not any more",
                  p->piece->name, to->child);
        stet_hint(err, "stet action list %s shows the children that are there", p->piece->name);
    } else if (status != STET_OK && err) {
        stet_error_move(err, &mine);
    }
    stet_error_clear(&mine);
    stet_path_release(&path);
    stet_free(id);
    return status;
}

/* Events that it sent; the first of them that can't be delivered is its failure. */
static stet_status take_sent(sending *e, action_run *r, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < r->sent.len && status == STET_OK; i++)
        status = enqueue(e, r->sent.at[i].piece, r->sent.at[i].stream, r->sent.at[i].event, err);
    return status;
}

static stet_status run_handler(sending *e, stet_tx *tx, sched_piece *p, const char *node, stet_value row,
                               stet_value event, stet_buf *log, stet_error *err) {
    stet_sched *s = e->s;
    char *name = stet_asprintf("%s/%s", p->piece->name, node);
    sched_action *a = stet_alloc_zero(sizeof *a);
    a->piece = p;
    a->node = stet_strdup(node);
    a->id = STET_PLAN_NONE;
    a->row = stet_value_retain(row);
    stet_status status = sched_decode_row(a, err);
    if (status == STET_OK)
        status = sched_row_take(s, a, err);
    if (status == STET_OK) {
        action_run r = {.s = s, .a = a, .tx = tx, .log = log};
        r.reader = (stet_reader){
            .tx = tx, .record = true, .space = sched_space, .ctx = s, .piece = p->piece->name, .node = node};
        r.base = (stet_run){.ops = &sched_run_ops,
                            .node = a->view,
                            .descriptor = stet_value_get(a->view, "module"),
                            .bindings = stet_value_get(a->view, "inputs"),
                            .event = event,
                            .name = name};
        sched_run_execute(&r);
        sched_run_check(&r);
        if (!r.failed)
            status = take_sent(e, &r, err);
        if (r.failed) {
            status = r.error.status == STET_OK ? STET_FAILED : r.error.status;
            stet_fail_in(&r.error, "%s", name);
            if (err)
                stet_error_move(err, &r.error);
        }
        if (log->len > 0 && !e->log_node)
            e->log_node = stet_strdup(node);
        stet_error_clear(&r.error);
        sched_cells_release(&r);
        sched_sent_release(&r);
        stet_reader_release(&r.reader);
        stet_value_release(r.result);
    }
    sched_action_free(a);
    stet_free(name);
    return status;
}

/* Was it applied before? e->known. Another event under the same id is a conflict. */
static stet_status look_before(sending *e, stet_error *err) {
    stet_doc_state d;
    stet_docname name = stet_piece_name(e->piece->piece, e->doc);
    stet_status status = stet_space_load(e->s->space, e->s->branch, &name, -1, &d, err);
    if (status != STET_OK)
        return status;
    e->known = d.exists;
    if (d.exists) {
        stet_value hash = stet_value_get(stet_value_get(d.value, "value"), "hash");
        e->out->applied = false;
        e->out->seq = d.seq;
        if (stet_value_type(hash) != STET_TYPE_STRING || strcmp(stet_value_as_string(&hash, NULL), e->hash) != 0) {
            stet_fail(err, STET_CONFLICT, "event \"%s\" was sent to piece \"%s\" before, with another content",
                      e->out->id, e->piece->piece->name);
            stet_hint(err, "give every event an id of its own, or none");
            status = STET_CONFLICT;
        }
    }
    stet_value_release(d.value);
    return status;
}

static void set_hash(sending *e) {
    stet_value whole = stet_value_array();
    stet_value_push(&whole, stet_value_string(e->out->stream));
    stet_value_push(&whole, stet_value_retain(e->event));
    stet_hash_hex(stet_hash_value(whole), e->hash);
    stet_value_release(whole);
}

static stet_status write_event(sending *e, stet_tx *tx, stet_error *err) {
    stet_docname name = stet_piece_name(e->piece->piece, e->doc);
    stet_value value = stet_value_object(), envelope = stet_value_object();
    stet_value_put(&value, "stream", stet_value_string(e->out->stream));
    stet_value_put(&value, "hash", stet_value_string(e->hash));
    stet_value_put(&value, "at", stet_value_int(stet_clock_ms()));
    stet_value_put(&envelope, "value", value);
    stet_status status = stet_tx_need_absent(tx, &name, err);
    if (status != STET_OK) {
        stet_value_release(envelope);
        return status;
    }
    return stet_tx_put(tx, &name, envelope, err);
}

/* One delivery: all handlers of its stream, in the order of their names. */
static stet_status deliver(sending *e, stet_tx *tx, size_t i, stet_buf *log, stet_error *err) {
    stet_value event = stet_value_retain(e->queue.at[i].event);
    char *key = stet_piece_key(e->queue.at[i].piece);
    sched_piece *p;
    stet_stream to = {.handlers = stet_value_null()};
    stet_status status = sched_piece_of(e->s, key, &p, err);
    if (status == STET_OK)
        status = find_stream(e, tx, p, e->queue.at[i].stream, &to, err);
    if (status == STET_OK && i == 0) {
        snprintf(e->out->stream, sizeof e->out->stream, "%s", to.name);
        set_hash(e);
        status = look_before(e, err);
    }
    if (status == STET_OK && !e->known)
        status = child_there(e, tx, p, &to, err);
    for (size_t k = 0; status == STET_OK && !e->known && k < stet_value_count(to.handlers); k++)
        status = run_handler(e, tx, p, stet_value_key_at(to.handlers, k, NULL), stet_value_at(to.handlers, k), event,
                             log, err);
    stet_stream_release(&to);
    stet_value_release(event);
    stet_free(key);
    return status;
}

static stet_status deliver_all(sending *e, stet_tx *tx, stet_buf *log, stet_error *err) {
    stet_status status = enqueue(e, e->piece->piece->name, e->asked, e->event, err);
    for (size_t i = 0; i < e->queue.len && status == STET_OK && !e->known; i++)
        status = deliver(e, tx, i, log, err);
    return status;
}

/* What the coordinators of children have read is read here, too: whoever changes the list before this is stored makes
 * it void. Their reads in other spaces are left out. */
static stet_status guard(sending *e, stet_tx *tx, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < e->coordinators.len && status == STET_OK; i++) {
        stet_arena arena = STET_ARENA_INIT;
        stet_memo_action x = {0};
        const char *space = strrchr(e->coordinators.at[i], ' '); /* a scope may hold spaces */
        char *piece = stet_strndup(e->coordinators.at[i], (size_t)(space - e->coordinators.at[i]));
        if (stet_memo_load(e->s->memo, piece, space + 1, &arena, &x, NULL) != STET_OK)
            x.read_count = 0;
        for (size_t k = 0; k < x.read_count && status == STET_OK; k++) {
            stet_value ignored;
            stet_error mine = STET_ERROR_INIT;
            if (x.reads[k].space && strcmp(x.reads[k].space, stet_space_uuid(e->s->space)) != 0)
                continue;
            status = stet_tx_read(tx, NULL, &x.reads[k].name, x.reads[k].path, x.reads[k].kind, &ignored, &mine);
            if (status == STET_NOT_FOUND)
                status = STET_OK;
            if (status != STET_OK && err)
                stet_error_move(err, &mine);
            stet_error_clear(&mine);
        }
        stet_free(piece);
        stet_arena_release(&arena);
    }
    return status;
}

/* Nothing is applied on what an action made before it failed. */
static stet_status refuse_old_values(sending *e, const stet_tx_read_record *at, size_t count, stet_error *err) {
    stet_value list;
    stet_status status = sched_failed_makers(e->s, at, count, &list, err);
    if (status == STET_OK && stet_value_count(list) > 0) {
        stet_value first = stet_value_at(list, 0), piece = stet_value_get(first, "piece"),
                   node = stet_value_get(first, "node"), state = stet_value_get(first, "state");
        bool failed = strcmp(stet_value_as_string(&state, NULL), "failed") == 0;
        status = stet_fail(err, STET_FAILED, "event \"%s\" was not applied: its handler reads %s/%s, which %s",
                           e->out->id, stet_value_as_string(&piece, NULL), stet_value_as_string(&node, NULL),
                           failed ? "failed" : "waits for an action that failed");
        stet_hint(err, "mend that and send the event again; stet why %s tells the failure",
                  stet_value_as_string(&piece, NULL));
    }
    stet_value_release(list);
    return status;
}

/* What is going to be told rests on what was read, and that was found to be fresh: is it so still? */
static stet_status prove(sending *e, stet_tx *tx, stet_status told, stet_error *err) {
    stet_error mine = STET_ERROR_INIT;
    stet_status status = stet_tx_holds(tx, &mine);
    e->moved = status == STET_CONFLICT;
    if (status == STET_OK)
        return told;
    if (err)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    return status;
}

/* Delivers until everything that was read is fresh. `*out` is the caller's to commit; NULL: it was applied before. What
 * handlers said, on fresh inputs, is returned. */
static stet_status preflight(sending *e, stet_tx **out, stet_buf *log, stet_error *err) {
    stet_sched *s = e->s;
    for (int round = 0; round < MAX_PREFLIGHTS; round++) {
        stet_tx *tx;
        stet_error mine = STET_ERROR_INIT;
        stet_buf_clear(log);
        end_round(e);
        stet_status status = stet_tx_begin(s->space, s->branch_name, &tx, err);
        if (status != STET_OK)
            return status;
        stet_status said = deliver_all(e, tx, log, &mine);
        const stet_tx_read_record *at;
        size_t count, runs = 0;
        stet_arena arena = STET_ARENA_INIT;
        stet_tx_reads(tx, &arena, &at, &count);
        if (!e->known)
            status = sched_make_fresh(s, at, count, (const char *const *)e->coordinators.at, e->coordinators.len, &runs,
                                      err);
        e->moved = status == STET_CONFLICT;
        if (status == STET_OK && runs == 0 && !e->known) {
            status = refuse_old_values(e, at, count, err);
            if (status != STET_OK || said != STET_OK)
                status = prove(e, tx, status, err);
        }
        stet_arena_release(&arena);
        e->out->made_fresh += runs;
        if (status == STET_OK && runs == 0) {
            status = said;
            if (said != STET_OK && err)
                stet_error_move(err, &mine);
            stet_error_clear(&mine);
            if (status == STET_OK && !e->known)
                status = guard(e, tx, err);
            if (status == STET_OK && !e->known)
                *out = tx;
            else
                stet_tx_abort(tx);
            return status;
        }
        stet_error_clear(&mine);
        stet_tx_abort(tx);
        if (status != STET_OK)
            return status;
    }
    return stet_fail(err, STET_LIMIT, "event \"%s\": what its handler reads was made fresh %d times, and is not",
                     e->out->id, MAX_PREFLIGHTS);
}

static stet_status attempt(sending *e, bool *done, stet_error *err) {
    stet_tx *tx = NULL;
    stet_buf log = STET_BUF(MAX_LOG);
    e->moved = false;
    stet_status status = preflight(e, &tx, &log, err);
    if (status == STET_OK && tx) {
        stet_commit_result result;
        status = write_event(e, tx, err);
        if (status == STET_OK)
            status = stet_tx_commit(tx, &result, err);
        else
            stet_tx_abort(tx);
        e->moved = status == STET_CONFLICT;
        if (status == STET_OK) {
            e->out->applied = true;
            e->out->seq = result.seq;
            if (e->s->opts.log && log.len > 0)
                e->s->opts.log(e->s->opts.ctx, e->log_node, "console", log.data, log.len);
        }
    }
    *done = !e->moved;
    stet_buf_release(&log);
    return status;
}

static stet_status check_id(const char *id, stet_error *err) {
    size_t len = strlen(id);
    bool fine = len > 0 && len <= STET_EVENT_MAX_ID;
    for (size_t i = 0; i < len && fine; i++)
        fine = (unsigned char)id[i] > ' ' && id[i] != 127;
    if (fine)
        return STET_OK;
    stet_fail(err, STET_INVALID, "that is no id for an event");
    stet_hint(err, "use 1 to %d bytes without spaces", STET_EVENT_MAX_ID);
    return STET_INVALID;
}

static stet_status prepare(sending *e, const char *piece, const char *id, stet_error *err) {
    stet_sched *s = e->s;
    stet_status status = stet_sched_touch_piece(s, piece, err);
    char *key = stet_piece_key(piece);
    if (status == STET_OK)
        status = sched_piece_of(s, key, &e->piece, err);
    stet_free(key);
    if (status == STET_OK && id)
        status = check_id(id, err);
    if (status != STET_OK)
        return status;
    if (id) {
        snprintf(e->out->id, sizeof e->out->id, "%s", id);
    } else {
        char uuid[37];
        stet_uuid(uuid);
        snprintf(e->out->id, sizeof e->out->id, "%s", uuid);
    }
    e->doc = stet_piece_part(piece, "event", e->out->id);
    return STET_OK;
}

stet_status stet_sched_send(stet_sched *s, const char *piece, const char *stream, stet_value event, const char *id,
                            stet_sched_sent *out, stet_error *err) {
    sending e = {.s = s, .asked = stream, .event = event, .out = out};
    *out = (stet_sched_sent){0};
    stet_status status = prepare(&e, piece, id, err);
    bool done = status != STET_OK;
    for (int tries = 0; !done; tries++) {
        stet_error mine = STET_ERROR_INIT;
        if (s->opts.cancelled && s->opts.cancelled(s->opts.ctx))
            status = stet_fail(&mine, STET_CANCELLED, "stopped");
        else
            status = attempt(&e, &done, &mine);
        if (status != STET_CONFLICT || done || tries >= STET_SCHED_MAX_CONFLICTS) {
            if (!done)
                stet_fail_in(&mine, "event \"%s\" was not applied: others keep changing what its handler reads",
                             out->id);
            done = true;
            if (err)
                stet_error_move(err, &mine);
        } else {
            stet_clock_sleep_ms(tries < 2 ? 1 : 5 << (tries < 6 ? tries : 6));
        }
        stet_error_clear(&mine);
    }
    end_sending(&e);
    return status;
}

typedef struct forgetting {
    const stet_doc_info *at;
    size_t count;
} forgetting;

static stet_status drop_documents(stet_tx *tx, void *ctx, stet_error *err) {
    forgetting *f = ctx;
    stet_status status = STET_OK;
    for (size_t i = 0; i < f->count && status == STET_OK; i++)
        status = stet_tx_drop(tx, &f->at[i].name, err);
    return status;
}

static stet_status forget_of(stet_space *s, const char *branch_name, int64_t branch, const char *piece,
                             int64_t before_ms, bool dry_run, size_t *count, stet_error *err) {
    char *prefix = stet_piece_part(piece, "event", ""), *cursor = NULL;
    const char *scope = stet_piece_scope(piece);
    bool more = true;
    stet_status status = STET_OK;
    while (more && status == STET_OK) {
        stet_arena arena = STET_ARENA_INIT;
        stet_docname last = {cursor, scope};
        stet_doc_filter filter = {.prefix = prefix, .scope = scope, .after = cursor ? &last : NULL, .limit = 1000};
        stet_doc_info *at;
        size_t n = 0, old = 0;
        status = stet_space_list(s, branch, &filter, &arena, &at, &n, &more, err);
        if (status == STET_OK && n > 0) {
            stet_free(cursor);
            cursor = stet_strdup(at[n - 1].name.id);
        }
        for (size_t i = 0; i < n && status == STET_OK; i++) {
            stet_doc_state d;
            status = stet_space_load(s, branch, &at[i].name, -1, &d, err);
            if (status == STET_OK && d.exists &&
                stet_value_as_int(stet_value_get(stet_value_get(d.value, "value"), "at")) < before_ms)
                at[old++] = at[i];
            if (status == STET_OK)
                stet_value_release(d.value);
        }
        *count += old;
        if (status == STET_OK && old > 0 && !dry_run)
            status = stet_space_transact(s, branch_name, drop_documents, &(forgetting){at, old}, NULL, err);
        more = more && n > 0;
        stet_arena_release(&arena);
    }
    stet_free(cursor);
    stet_free(prefix);
    return status;
}

stet_status stet_sched_forget_events(stet_space *space, const char *branch, int64_t before_ms, bool dry_run,
                                     size_t *count, stet_error *err) {
    int64_t number;
    stet_status status = stet_space_branch(space, branch, &number, err);
    bool more = true;
    char *after = NULL;
    *count = 0;
    while (status == STET_OK && more) {
        stet_value names;
        status = stet_piece_names(space, number, after, 1000, &names, &more, err);
        if (status != STET_OK)
            break;
        for (size_t i = 0; i < stet_value_count(names) && status == STET_OK; i++) {
            stet_value name = stet_value_at(names, i);
            const char *piece = stet_value_as_string(&name, NULL);
            status = forget_of(space, branch, number, piece, before_ms, dry_run, count, err);
            stet_free(after);
            after = stet_strdup(piece);
        }
        more = more && stet_value_count(names) > 0;
        stet_value_release(names);
    }
    stet_free(after);
    return status;
}
