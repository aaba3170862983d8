/* sched_queue.c - the queue of a piece: turns of handlers that follow from an event and were not taken yet.
 *
 * An event with several handlers, and events that handlers send on, need several transactions: each handler sees a
 * settled state, and what the handler before it wrote has to be stored before computations can follow it. The document
 * `piece:NAME:queue` holds what is left:
 *
 *     {"event": ID, "sent": N, "next": {"0000": ENTRY, "0001": ENTRY, ...}}
 *
 * An ENTRY has "event", a value, and where it goes: "piece" and "stream"; or "to" (id, scope, path of a cell) if the
 * stream did not exist when it was sent. "after" is the last handler that had it; "only" names the one that gets it.
 *
 * Q1. A handler's commit takes its turn from the queue, and adds what the handler sent: each handler has each event once,
 *     wherever a process dies.
 * Q2. Every such commit requires the queue to be as it was found: turns are taken one at a time, in order, whoever takes
 *     them. Processes that meet at one turn run the handler both, and one of them stores it.
 * Q3. An event is applied only while the queue of its piece is empty; whoever sends it works the queue off first. So
 *     events of a piece, each with all that follows from it, are applied one after the other.
 * Q4. A turn that fails leaves the queue and goes to `piece:NAME:undelivered:ID`, with its error; the turns after it go
 *     on. Sending the event again puts such turns back into the queue. A problem of the machine or of stet is no failure
 *     of a turn: the turn stays where it is.
 *
 * Rejected: one transaction for all of it, with computations run on what the transaction has not stored yet. It would be
 * all or nothing; but commands, effects, other spaces and the records of actions need stored values, and such an event
 * could only be refused.
 */

#include "base/text.h"
#include "scheduler/sched_event.h"

static stet_status peek(stet_tx *tx, const stet_docname *name, stet_value *out, stet_error *err) {
    stet_path path = STET_PATH_INIT;
    stet_error mine = STET_ERROR_INIT;
    stet_path_push(&path, "value");
    *out = stet_value_null();
    stet_status status = stet_tx_peek(tx, NULL, name, stet_path_ref(&path), out, &mine);
    if (status == STET_NOT_FOUND)
        status = STET_OK;
    else if (status == STET_OK)
        *out = stet_value_retain(*out);
    else if (err)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    stet_path_release(&path);
    return status;
}

/* Requires the queue to be as it was found. */
static stet_status require(sched_sending *e, stet_tx *tx, stet_error *err) {
    stet_docname name = stet_piece_name(e->piece->piece, e->queue_doc);
    return stet_value_type(e->queue) == STET_TYPE_NULL ? stet_tx_need_absent(tx, &name, err)
                                                       : stet_tx_need_hash(tx, &name, stet_hash_value(e->queue), err);
}

static stet_status put(stet_tx *tx, const stet_docname *name, stet_value value, stet_error *err) {
    stet_value envelope = stet_value_object();
    stet_value_put(&envelope, "value", value);
    return stet_tx_put(tx, name, envelope, err);
}

/* Consumes `queue`. */
static stet_status write_queue(sched_sending *e, stet_tx *tx, stet_value queue, stet_error *err) {
    stet_docname name = stet_piece_name(e->piece->piece, e->queue_doc);
    bool empty = stet_value_count(stet_value_get(queue, "next")) == 0;
    if (!empty)
        return put(tx, &name, queue, err);
    stet_value_release(queue);
    return stet_value_type(e->queue) == STET_TYPE_NULL ? STET_OK : stet_tx_drop(tx, &name, err);
}

stet_status sched_queue_look(sched_sending *e, stet_tx *tx, stet_error *err) {
    stet_docname name = stet_piece_name(e->piece->piece, e->queue_doc);
    stet_value_release(e->queue);
    e->queue = stet_value_null();
    e->turn.key = NULL;
    e->turn.entry = stet_value_null();
    memcpy(e->about, e->out->id, sizeof e->about);
    stet_status status = peek(tx, &name, &e->queue, err);
    if (status != STET_OK)
        return status;
    stet_value next = stet_value_get(e->queue, "next");
    if (stet_value_count(next) > 0) {
        stet_value hold;
        snprintf(e->about, sizeof e->about, "%s", stet_value_text_at_or(e->queue, "event", "", &hold));
        e->turn.key = stet_value_key_at(next, 0, NULL);
        e->turn.entry = stet_value_at(next, 0);
    } else if (!e->asked || e->done) {
        e->idle = true;
    }
    return e->idle ? STET_OK : require(e, tx, err);
}

static void replace_entry(stet_value *queue, const char *key, stet_value entry) {
    stet_value next = stet_value_retain(stet_value_get(*queue, "next"));
    if (stet_value_type(entry) == STET_TYPE_NULL)
        stet_value_remove(&next, key, strlen(key));
    else
        stet_value_put(&next, key, entry);
    stet_value_put(queue, "next", next);
}

static stet_value new_queue(const char *event) {
    stet_value queue = stet_value_object();
    stet_value_put(&queue, "event", stet_value_string(event));
    stet_value_put(&queue, "sent", stet_value_int(0));
    stet_value_put(&queue, "next", stet_value_object());
    return queue;
}

static void add_entry(stet_value *queue, stet_value entry) {
    char key[24];
    int64_t number = stet_value_int_at(*queue, "sent", 0) + 1;
    snprintf(key, sizeof key, "%04lld", (long long)number);
    stet_value_put(queue, "sent", stet_value_int(number));
    replace_entry(queue, key, entry);
}

/* The queue without the turn; the entry stays if other handlers of the stream are to have it. */
static stet_value after_turn(sched_sending *e) {
    const sched_event_turn *t = &e->turn;
    stet_value queue = t->key ? stet_value_retain(e->queue) : new_queue(e->out->id), rest = stet_value_null();
    if (t->handler && t->more) {
        rest = t->key ? stet_value_retain(t->entry) : stet_value_object();
        if (!t->key) {
            stet_value_put(&rest, "piece", stet_value_string(e->piece->piece->name));
            stet_value_put(&rest, "stream", stet_value_string(e->turn.stream));
            stet_value_put(&rest, "event", stet_value_retain(e->event));
        }
        stet_value_put(&rest, "after", stet_value_string(t->handler));
    }
    if (t->key || stet_value_type(rest) != STET_TYPE_NULL)
        replace_entry(&queue, t->key ? t->key : "0000", rest);
    return queue;
}

stet_status sched_queue_write(sched_sending *e, stet_tx *tx, stet_error *err) {
    stet_value queue = after_turn(e);
    for (size_t i = 0; i < stet_value_count(e->turn.sent); i++)
        add_entry(&queue, stet_value_retain(stet_value_at(e->turn.sent, i)));
    if (!e->turn.key)
        e->queued = stet_value_count(stet_value_get(queue, "next")) > 0;
    return write_queue(e, tx, queue, err);
}

/* A transaction of the queue alone. `*lost`: somebody else has changed it meanwhile. */
static stet_status commit(stet_tx *tx, stet_status status, bool *lost, stet_error *err) {
    stet_error mine = STET_ERROR_INIT;
    *lost = false;
    if (status == STET_OK) {
        status = stet_tx_commit(tx, NULL, &mine);
        *lost = status == STET_CONFLICT;
        if (status != STET_OK && !*lost && err)
            stet_error_move(err, &mine);
        stet_error_clear(&mine);
        return *lost ? STET_OK : status;
    }
    stet_tx_abort(tx);
    return status;
}

/* The turn as it is kept after it failed: to be tried again by this handler alone; or by all that did not have it, if it
 * did not get as far as a handler. */
static stet_value failed_turn(sched_sending *e, const stet_error *why) {
    stet_value entry = stet_value_retain(e->turn.entry);
    if (e->turn.handler) {
        stet_value_remove(&entry, "after", 5);
        stet_value_put(&entry, "only", stet_value_string(e->turn.handler));
    }
    stet_value_put(&entry, "error", stet_error_value(why));
    return entry;
}

/* Q4. */
static stet_status give_up(sched_sending *e, const stet_error *why, stet_error *err) {
    char *doc = stet_piece_part(e->piece->piece->name, "undelivered", e->about);
    stet_docname name = stet_piece_name(e->piece->piece, doc);
    stet_value list;
    bool lost;
    stet_tx *tx;
    stet_status status = stet_tx_begin(e->s->space, e->s->branch_name, &tx, err);
    if (status == STET_OK) {
        status = peek(tx, &name, &list, err);
        if (stet_value_type(list) != STET_TYPE_ARRAY)
            stet_value_release(list), list = stet_value_array();
        stet_value_push(&list, failed_turn(e, why));
        if (status == STET_OK)
            status = require(e, tx, err);
        if (status == STET_OK)
            status = write_queue(e, tx, after_turn(e), err);
        if (status == STET_OK)
            status = put(tx, &name, list, err);
        else
            stet_value_release(list);
        status = commit(tx, status, &lost, err);
    }
    stet_free(doc);
    return status;
}

/* The event was sent before, and some turns failed: they are tried again. */
static stet_status try_again(sched_sending *e, stet_error *err) {
    stet_docname name = stet_piece_name(e->piece->piece, e->lost_doc);
    bool lost = true;
    stet_status status = STET_OK;
    while (lost && status == STET_OK) {
        stet_tx *tx;
        status = stet_tx_begin(e->s->space, e->s->branch_name, &tx, err);
        if (status != STET_OK)
            break;
        stet_value list = stet_value_null(), queue = new_queue(e->out->id);
        lost = e->idle = false;
        status = sched_queue_look(e, tx, err);
        if (status == STET_OK && e->idle)
            status = peek(tx, &name, &list, err);
        if (stet_value_count(list) > 0) {
            for (size_t i = 0; i < stet_value_count(list); i++) {
                stet_value entry = stet_value_retain(stet_value_at(list, i));
                stet_value_remove(&entry, "error", 5);
                add_entry(&queue, entry);
            }
            status = require(e, tx, err);
            if (status == STET_OK)
                status = write_queue(e, tx, stet_value_retain(queue), err);
            if (status == STET_OK)
                status = stet_tx_drop(tx, &name, err);
            status = commit(tx, status, &lost, err);
        } else {
            stet_tx_abort(tx);
        }
        stet_value_release(list);
        stet_value_release(queue);
    }
    return status;
}

/* Is the error one of the machine or of stet, and not of this turn? */
static bool is_passing(stet_status status) {
    return stet_run_is_ours(status) || status == STET_UNSUPPORTED || status == STET_DENIED || status == STET_CORRUPT;
}

/* Takes turns until the event is applied and the queue is empty. `lost`: the first turn that failed; may be NULL. */
static stet_status take_turns(sched_sending *e, stet_error *lost, stet_error *err) {
    stet_status status = STET_OK;
    int tries = 0;
    while (status == STET_OK) {
        stet_error mine = STET_ERROR_INIT;
        if (e->s->opts.cancelled && e->s->opts.cancelled(e->s->opts.ctx)) {
            status = stet_fail(err, STET_CANCELLED, "stopped");
            break;
        }
        status = sched_event_attempt(e, &mine);
        if (status == STET_OK && e->idle)
            break;
        if (status == STET_OK && e->known && !e->done) {
            e->done = e->queued = true;
            status = try_again(e, err);
        } else if (status == STET_OK) {
            tries = 0;
        } else if (status == STET_CONFLICT && e->moved && tries < STET_SCHED_MAX_CONFLICTS) {
            stet_clock_sleep_ms(tries < 2 ? 1 : 5 << (tries < 6 ? tries : 6));
            tries++;
            status = STET_OK;
        } else if (e->turn.key && !is_passing(status)) {
            status = give_up(e, &mine, err);
            if (lost)
                stet_error_move(lost, &mine);
        } else {
            if (e->moved)
                stet_fail_in(&mine, "event \"%s\" was not applied: others keep changing what its handler reads",
                             e->about);
            if (err)
                stet_error_move(err, &mine);
        }
        stet_error_clear(&mine);
    }
    return status;
}

/* What follows from the event is done, here or by others: all of it? */
static stet_status look_for_lost(sched_sending *e, stet_error *err) {
    stet_doc_state d;
    stet_docname name = stet_piece_name(e->piece->piece, e->lost_doc);
    stet_status status = stet_space_load(e->s->space, e->s->branch, &name, -1, &d, err);
    if (status != STET_OK)
        return status;
    stet_value list = stet_value_get(d.value, "value"), first = stet_value_at(list, 0), hold[4];
    if (d.exists && stet_value_count(list) > 0) {
        stet_value error = stet_value_get(first, "error");
        const char *place = stet_value_text_at_or(stet_value_get(first, "to"), "path", "", &hold[0]);
        place = stet_value_text_at_or(first, "stream", place, &hold[1]);
        place = stet_value_text_at_or(first, "only", place, &hold[2]); /* the handler, if one had it */
        status = stet_fail(err, STET_FAILED, "event \"%s\" was applied, but \"%s\", which follows from it, failed: %s",
                           e->out->id, place, stet_value_text_at_or(error, "message", "", &hold[3]));
        stet_hint(err, "send it again with --id %s to try that again, and nothing else", e->out->id);
    }
    stet_value_release(d.value);
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

static stet_status prepare(sched_sending *e, const char *piece, stet_error *err) {
    stet_status status = stet_sched_touch_piece(e->s, piece, err);
    char *key = stet_piece_key(piece);
    if (status == STET_OK)
        status = sched_piece_of(e->s, key, &e->piece, err);
    stet_free(key);
    e->queue_doc = stet_piece_part(piece, "queue", NULL);
    return status;
}

static stet_status name_event(sched_sending *e, const char *piece, const char *id, stet_error *err) {
    if (id) {
        stet_status status = check_id(id, err);
        if (status != STET_OK)
            return status;
        snprintf(e->out->id, sizeof e->out->id, "%s", id);
    } else {
        char uuid[37];
        stet_uuid(uuid);
        snprintf(e->out->id, sizeof e->out->id, "%s", uuid);
    }
    e->doc = stet_piece_part(piece, "event", e->out->id);
    e->lost_doc = stet_piece_part(piece, "undelivered", e->out->id);
    return STET_OK;
}

stet_status stet_sched_send(stet_sched *s, const char *piece, const char *stream, stet_value event, const char *id,
                            stet_sched_sent *out, stet_error *err) {
    sched_sending e = {.s = s, .asked = stream, .event = event, .out = out};
    *out = (stet_sched_sent){0};
    stet_status status = prepare(&e, piece, err);
    if (status == STET_OK)
        status = name_event(&e, piece, id, err);
    if (status == STET_OK)
        status = take_turns(&e, NULL, err);
    if (status == STET_OK && e.queued)
        status = look_for_lost(&e, err);
    sched_sending_release(&e);
    return status;
}

stet_status stet_sched_finish_events(stet_sched *s, const char *piece, stet_error *lost, stet_error *err) {
    stet_sched_sent ignored = {0};
    sched_sending e = {.s = s, .out = &ignored};
    stet_doc_state d;
    char *queue = stet_piece_part(piece, "queue", NULL);
    stet_docname name = stet_piece_at(piece, queue);
    stet_status status = stet_space_load(s->space, s->branch, &name, -1, &d, err);
    stet_free(queue);
    if (status == STET_OK)
        stet_value_release(d.value);
    if (status != STET_OK || !d.exists) /* as nearly always: the piece need not even be loaded */
        return status;
    status = prepare(&e, piece, err);
    if (status == STET_OK)
        status = take_turns(&e, lost, err);
    sched_sending_release(&e);
    return status;
}

typedef struct forgetting {
    const char *piece;
    size_t prefix; /* bytes of an id before that of the event */
    const stet_doc_info *at;
    size_t count;
} forgetting;

static stet_status drop_documents(stet_tx *tx, void *ctx, stet_error *err) {
    forgetting *f = ctx;
    stet_status status = STET_OK;
    for (size_t i = 0; i < f->count && status == STET_OK; i++) {
        char *lost = stet_piece_part(f->piece, "undelivered", f->at[i].name.id + f->prefix);
        status = stet_tx_drop(tx, &f->at[i].name, err);
        if (status == STET_OK)
            status = stet_tx_drop(tx, &(stet_docname){lost, f->at[i].name.scope}, err);
        stet_free(lost);
    }
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
            status = stet_space_transact(s, branch_name, drop_documents, &(forgetting){piece, strlen(prefix), at, old},
                                         NULL, err);
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
