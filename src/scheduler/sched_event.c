/* Events: the handlers of a stream run once for each, on fresh inputs, in one transaction.
 *
 * Preflight. What a handler reads is known only when it runs. So it runs on what is there; then everything it read is
 * wanted, and if making that fresh ran anything at all, the transaction is given up and the handler runs again. Actions
 * that it does not ask for do not run, and a handler whose inputs stand runs once. This is possible because a handler
 * has no effect but its transaction; what it printed is kept back until it is stored.
 *
 * At most once. The document of the event is made in the same commit and required to be absent: of two commits with the
 * same event one is refused, whoever makes them. */
#include "graph/stream.h"
#include "scheduler/sched_internal.h"

#define MAX_PREFLIGHTS 100 /* rounds until what a handler reads is fresh */
#define MAX_LOG        (1u << 20)

typedef struct handler {
    sched_action *a;
    char *name; /* "piece/node" */
} handler;

typedef struct sending {
    stet_sched *s;
    sched_piece *piece;
    const char *stream; /* borrowed from the piece */
    stet_value event;
    STET_VEC(handler) handlers;
    char *doc; /* of the event */
    char hash[STET_HASH_HEX];
    stet_sched_sent *out;
} sending;

static void end_sending(sending *e) {
    for (size_t i = 0; i < e->handlers.len; i++) {
        if (e->handlers.at[i].a)
            sched_action_free(e->handlers.at[i].a);
        stet_free(e->handlers.at[i].name);
    }
    stet_vec_release(&e->handlers);
    stet_free(e->doc);
}

static stet_status load_handler(sending *e, const char *node, stet_error *err) {
    sched_action *a = stet_alloc_zero(sizeof *a);
    a->piece = e->piece;
    a->node = stet_strdup(node);
    a->id = STET_PLAN_NONE;
    *stet_vec_add(&e->handlers) = (handler){a, stet_asprintf("%s/%s", e->piece->piece->name, node)};
    stet_status status = stet_piece_row(e->s->space, e->s->branch, e->piece->piece, node, &a->row, err);
    return status == STET_OK ? sched_decode_row(a, err) : status;
}

/* ---- One run --------------------------------------------------------------------------------------------------- */

/* All handlers of the stream in one transaction, in the order of their names. */
static stet_status run_handlers(sending *e, stet_tx *tx, stet_buf *log, bool *failed, stet_error *err) {
    stet_sched *s = e->s;
    *failed = false;
    for (size_t i = 0; i < e->handlers.len && !*failed; i++) {
        sched_action *a = e->handlers.at[i].a;
        action_run r = {.s = s, .a = a, .tx = tx, .log = log};
        r.reader = (stet_reader){.tx = tx, .record = true, .space = sched_space, .ctx = s};
        r.base = (stet_run){.ops = &sched_run_ops,
                            .node = a->view,
                            .descriptor = stet_get(a->view, "module"),
                            .bindings = stet_get(a->view, "inputs"),
                            .event = e->event,
                            .name = e->handlers.at[i].name};
        sched_run_execute(&r);
        sched_run_check(&r);
        *failed = r.failed;
        if (r.failed) {
            stet_fail_in(&r.error, "%s", e->handlers.at[i].name);
            if (err)
                stet_error_move(err, &r.error);
        }
        stet_error_clear(&r.error);
        sched_cells_release(&r);
        stet_reader_release(&r.reader);
        stet_release(r.result);
    }
    return STET_OK;
}

static void tell_log(sending *e, const stet_buf *log) {
    if (e->s->opts.log && log->len > 0)
        e->s->opts.log(e->s->opts.ctx, e->handlers.at[0].a->node, "console", log->data, log->len);
}

/* ---- The event's document -------------------------------------------------------------------------------------- */

/* Was it applied before? `*known`. Another event under the same id is a conflict. */
static stet_status look_before(sending *e, bool *known, stet_error *err) {
    stet_doc_state d;
    stet_status status = stet_space_load(e->s->space, e->s->branch, &(stet_docname){e->doc, NULL}, -1, &d, err);
    if (status != STET_OK)
        return status;
    *known = d.exists;
    if (d.exists) {
        stet_value hash = stet_get(stet_get(d.value, "value"), "hash");
        e->out->applied = false;
        e->out->seq = d.seq;
        if (stet_typeof(hash) != STET_STRING || strcmp(stet_as_string(&hash, NULL), e->hash) != 0) {
            stet_fail(err, STET_CONFLICT, "event \"%s\" was sent to piece \"%s\" before, with another content",
                      e->out->id, e->piece->piece->name);
            stet_hint(err, "give every event an id of its own, or none");
            status = STET_CONFLICT;
        }
    }
    stet_release(d.value);
    return status;
}

static stet_status write_event(sending *e, stet_tx *tx, stet_error *err) {
    stet_docname name = {e->doc, NULL};
    stet_value value = stet_object(), envelope = stet_object();
    stet_put(&value, "stream", stet_string(e->stream));
    stet_put(&value, "hash", stet_string(e->hash));
    stet_put(&value, "at", stet_int(stet_clock_ms()));
    stet_put(&envelope, "value", value);
    stet_status status = stet_tx_need_absent(tx, &name, err);
    if (status != STET_OK) {
        stet_release(envelope);
        return status;
    }
    return stet_tx_put(tx, &name, envelope, err);
}

/* ---- Sending --------------------------------------------------------------------------------------------------- */

/* Runs the handlers until everything that they read is fresh. The transaction is the caller's. */
static stet_status preflight(sending *e, stet_tx **out, stet_buf *log, bool *failed, stet_error *err) {
    stet_sched *s = e->s;
    for (int round = 0; round < MAX_PREFLIGHTS; round++) {
        stet_tx *tx;
        stet_error mine = STET_ERROR_INIT;
        stet_buf_clear(log);
        stet_status status = stet_tx_begin(s->space, s->branch_name, &tx, err);
        if (status != STET_OK)
            return status;
        status = run_handlers(e, tx, log, failed, &mine);
        const stet_tx_read_record *at;
        size_t count, runs = 0;
        stet_arena arena = STET_ARENA_INIT;
        stet_tx_reads(tx, &arena, &at, &count);
        if (status == STET_OK)
            status = sched_make_fresh(s, at, count, &runs, err);
        stet_arena_release(&arena);
        e->out->made_fresh += runs;
        if (status == STET_OK && runs == 0) {
            if (*failed && err)
                stet_error_move(err, &mine);
            stet_error_clear(&mine);
            *out = tx;
            return STET_OK;
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
    bool known, failed;
    stet_tx *tx = NULL;
    stet_buf log = STET_BUF(MAX_LOG);
    *done = true;
    stet_status status = look_before(e, &known, err);
    if (status != STET_OK || known)
        return status;
    status = preflight(e, &tx, &log, &failed, err);
    if (status == STET_OK && failed) {
        stet_status said = err ? err->status : STET_FAILED;
        stet_tx_abort(tx);
        stet_buf_release(&log);
        return said == STET_OK ? STET_FAILED : said;
    }
    if (status == STET_OK) {
        stet_commit_result result;
        status = write_event(e, tx, err);
        if (status == STET_OK)
            status = stet_tx_commit(tx, &result, err);
        else
            stet_tx_abort(tx);
        if (status == STET_OK) {
            e->out->applied = true;
            e->out->seq = result.seq;
            tell_log(e, &log);
        }
        *done = status != STET_CONFLICT;
    }
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

static stet_status prepare(sending *e, const char *piece, const char *stream, const char *id, stet_error *err) {
    stet_sched *s = e->s;
    stet_value nodes;
    stet_status status = stet_sched_touch_piece(s, piece, err);
    char *doc = stet_piece_doc(piece);
    if (status == STET_OK)
        status = sched_piece_of(s, doc, &e->piece, err);
    stet_free(doc);
    if (status == STET_OK)
        status = stet_stream_find(e->piece->piece, stream, &e->stream, &nodes, err);
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
    snprintf(e->out->stream, sizeof e->out->stream, "%s", e->stream);
    e->doc = stet_piece_part(piece, "event", e->out->id);
    stet_value whole = stet_array();
    stet_push(&whole, stet_string(e->stream));
    stet_push(&whole, stet_retain(e->event));
    stet_hash_hex(stet_hash_value(whole), e->hash);
    stet_release(whole);
    for (size_t i = 0; i < stet_count(nodes) && status == STET_OK; i++) {
        stet_value node = stet_at(nodes, i);
        status = load_handler(e, stet_typeof(node) == STET_STRING ? stet_as_string(&node, NULL) : "", err);
    }
    return status;
}

stet_status stet_sched_send(stet_sched *s, const char *piece, const char *stream, stet_value event, const char *id,
                            stet_sched_sent *out, stet_error *err) {
    sending e = {.s = s, .event = event, .out = out};
    *out = (stet_sched_sent){0};
    stet_status status = prepare(&e, piece, stream, id, err);
    bool done = status != STET_OK;
    for (int tries = 0; !done; tries++) {
        stet_error mine = STET_ERROR_INIT;
        if (s->opts.cancelled && s->opts.cancelled(s->opts.ctx))
            status = stet_fail(&mine, STET_CANCELLED, "stopped");
        else
            status = attempt(&e, &done, &mine);
        if (status != STET_CONFLICT || done || tries >= STET_SCHED_MAX_CONFLICTS) {
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

/* ---- Forgetting ------------------------------------------------------------------------------------------------ */

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
    char *prefix = stet_asprintf("piece:%s:event:", piece), *cursor = NULL;
    bool more = true;
    stet_status status = STET_OK;
    while (more && status == STET_OK) {
        stet_arena arena = STET_ARENA_INIT;
        stet_docname last = {cursor, ""};
        stet_doc_filter filter = {.prefix = prefix, .scope = "", .after = cursor ? &last : NULL, .limit = 1000};
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
            if (status == STET_OK && d.exists && stet_as_int(stet_get(stet_get(d.value, "value"), "at")) < before_ms)
                at[old++] = at[i];
            if (status == STET_OK)
                stet_release(d.value);
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
        for (size_t i = 0; i < stet_count(names) && status == STET_OK; i++) {
            stet_value name = stet_at(names, i);
            const char *piece = stet_as_string(&name, NULL);
            status = forget_of(space, branch, number, piece, before_ms, dry_run, count, err);
            stet_free(after);
            after = stet_strdup(piece);
        }
        more = more && stet_count(names) > 0;
        stet_release(names);
    }
    stet_free(after);
    return status;
}
