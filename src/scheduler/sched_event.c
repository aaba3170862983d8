/* sched_event.c - events: each handler of a stream runs once for each, on a settled state, in a transaction of its own.
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
 * At most once. The document of the event is created in the commit of the first handler and required to be absent: of
 * two commits with the same event one is refused, whoever makes them.
 *
 * The other handlers of the stream, and events that handlers send on, wait in the queue of the piece (sched_queue.c).
 * The commit of a handler takes its turn from the queue, and adds to it what the handler has sent.
 */

#include "scheduler/sched_event.h"
#include "base/text.h"
#include "graph/stream.h"

#define MAX_PREFLIGHTS 100 /* rounds until what a handler reads is fresh */

static void end_round(sched_sending *e) {
    for (size_t i = 0; i < e->coordinators.len; i++)
        stet_free(e->coordinators.at[i]);
    stet_vec_clear(&e->coordinators);
    stet_free(e->turn.stream);
    stet_free(e->turn.handler);
    e->turn.stream = e->turn.handler = NULL;
    e->turn.more = false;
    stet_value_release(e->turn.sent);
    e->turn.sent = stet_value_array();
}

void sched_sending_release(sched_sending *e) {
    end_round(e);
    stet_vec_release(&e->coordinators);
    stet_value_release(e->turn.sent);
    stet_value_release(e->queue);
    stet_free(e->doc);
    stet_free(e->queue_doc);
    stet_free(e->lost_doc);
    stet_free(e->log_node);
}

/* Where a path below a document leads, through links: the piece and the name of the stream whose cell is there. Each
 * link on the way is read. STET_NOT_FOUND: no cell of a stream. The caller frees `*piece`. */
static stet_status leads_to(sched_sending *e, stet_tx *tx, const stet_docname *doc, const char *text, char **piece,
                            stet_buf *name, stet_error *err) {
    stet_reader r = {.tx = tx, .record = true, .space = sched_space, .ctx = e->s};
    stet_reader_place at = {.path = STET_PATH_INIT};
    stet_path path = STET_PATH_INIT;
    stet_value link = stet_value_object();
    char *pointer = stet_asprintf("%s%s", text[0] == '/' ? "" : "/", text);
    *piece = NULL;
    stet_value_put(&link, "id", stet_value_string(doc->id));
    stet_value_put(&link, "scope", stet_value_string(doc->scope ? doc->scope : ""));
    stet_value_put(&link, "asCell", stet_value_bool(true));
    stet_value binding = stet_link_wrap(link);
    stet_status status = stet_path_of_pointer(&path, pointer, strlen(pointer), err);
    if (status == STET_OK)
        status = stet_reader_locate(&r, binding, stet_path_ref(&path), &at, err);
    if (status == STET_OK)
        status = stet_reader_place_read(&r, &at, err);
    if (status == STET_OK) {
        stet_docname found = {at.id, at.scope};
        stet_path_set(&path, STET_PATH_ROOT);
        stet_path_push(&path, "value");
        stet_pathref in = stet_path_ref(&at.path), value = stet_path_ref(&path);
        bool below = stet_path_is_prefix(value, in);
        stet_pathref rest = below ? (stet_pathref){in.bytes + value.len, in.len - value.len} : STET_PATH_ROOT;
        *piece = stet_piece_around(&found);
        if (!*piece || !below || (at.space && at.space != e->s->space) || !stet_stream_name(*piece, &found, rest, name))
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
static void note_coordinators(sched_sending *e, const sched_piece *p, const char *child) {
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

static stet_status find_named(sched_sending *e, const sched_piece *p, const char *name, stet_stream *out,
                              stet_error *err) {
    stet_child_docs docs = {&(row_source){e->s, p->piece}, load_value};
    stet_process_modules modules = sched_modules(e->s);
    char *child = child_in(name);
    if (child)
        note_coordinators(e, p, child); /* one that returned no pattern yet has to run first */
    stet_free(child);
    return stet_stream_find(&docs, p->piece, name, &modules, &e->s->templates, out, err);
}

/* By its name, or else by what the result shows there. */
static stet_status find_stream(sched_sending *e, stet_tx *tx, const sched_piece *p, const char *name, stet_stream *out,
                               stet_error *err) {
    stet_status status = find_named(e, p, name, out, err);
    char *child = child_in(name);
    if (status == STET_NOT_FOUND && !child) {
        stet_buf shown = STET_BUF(4096);
        stet_error ignored = STET_ERROR_INIT;
        stet_docname result = stet_piece_name(p->piece, NULL);
        char *piece;
        if (leads_to(e, tx, &result, name, &piece, &shown, &ignored) == STET_OK && strcmp(piece, p->piece->name) == 0) {
            if (err)
                stet_error_clear(err);
            status = find_named(e, p, stet_buf_cstr(&shown), out, err);
        }
        stet_error_clear(&ignored);
        stet_buf_release(&shown);
        stet_free(piece);
    }
    stet_free(child);
    return status;
}

/* The stream of a turn that waited in the queue, and its piece. */
static stet_status find_queued(sched_sending *e, stet_tx *tx, sched_piece **p, stet_stream *out, stet_error *err) {
    stet_value entry = e->turn.entry, hold[3];
    const char *id = stet_value_text_at(stet_value_get(entry, "to"), "id", &hold[0]);
    char *piece = stet_value_text_copy(entry, "piece");
    stet_buf name = STET_BUF(0);
    stet_status status = STET_OK;
    if (id) { /* what the sender could not see yet */
        stet_value to = stet_value_get(entry, "to");
        stet_docname doc = {id, stet_value_text_at_or(to, "scope", "", &hold[1])};
        const char *path = stet_value_text_at_or(to, "path", "", &hold[2]);
        stet_free(piece);
        status = leads_to(e, tx, &doc, path, &piece, &name, err);
        if (status == STET_NOT_FOUND)
            status = stet_fail(err, STET_NOT_FOUND, "there is no stream at %s%s: no such element was added", id, path);
    } else {
        stet_buf_str(&name, stet_value_text_at_or(entry, "stream", "", &hold[0]));
    }
    if (status == STET_OK && !piece)
        status = stet_fail(err, STET_CORRUPT, "the queue of piece \"%s\" has an entry without a piece",
                           e->piece->piece->name);
    if (status == STET_OK)
        status = stet_sched_touch_piece(e->s, piece, err);
    if (status == STET_OK) {
        char *key = stet_piece_key(piece);
        status = sched_piece_of(e->s, key, p, err);
        stet_free(key);
    }
    if (status == STET_OK)
        status = find_named(e, *p, stet_buf_cstr(&name), out, err);
    stet_buf_release(&name);
    stet_free(piece);
    return status;
}

/* Is the child there whose stream it is? That is a read. */
static stet_status child_there(stet_tx *tx, const sched_piece *p, const stet_stream *to, stet_error *err) {
    stet_path path = STET_PATH_INIT;
    stet_value v;
    stet_error mine = STET_ERROR_INIT;
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

/* May a stream appear there once everything is up to date? Below the output of a node: an element that was added. */
static bool may_come(const sched_sent *x) {
    return x->path[0] && strstr(x->id, ":node:");
}

/* An entry of the queue: "piece" and "stream", or "to" if the stream is not there yet. */
static stet_status queue_entry(sched_sending *e, const sched_sent *x, stet_value *out, stet_error *err) {
    stet_error mine = STET_ERROR_INIT;
    stet_stream to = {.handlers = stet_value_null()};
    char *key = stet_piece_key(x->piece);
    sched_piece *p;
    *out = stet_value_object();
    stet_status status = sched_piece_of(e->s, key, &p, &mine);
    if (status == STET_OK) {
        stet_child_docs docs = {&(row_source){e->s, p->piece}, load_value};
        stet_process_modules modules = sched_modules(e->s);
        status = stet_stream_find(&docs, p->piece, x->stream, &modules, &e->s->templates, &to, &mine);
    }
    if (status == STET_OK) {
        stet_value_put(out, "piece", stet_value_string(x->piece));
        stet_value_put(out, "stream", stet_value_string(to.name));
    } else if (status == STET_NOT_FOUND && may_come(x)) {
        stet_value at = stet_value_object();
        stet_value_put(&at, "id", stet_value_string(x->id));
        stet_value_put(&at, "scope", stet_value_string(x->scope));
        stet_value_put(&at, "path", stet_value_string(x->path));
        stet_value_put(out, "to", at);
        status = STET_OK;
    }
    stet_value_put(out, "event", stet_value_retain(x->event));
    if (status != STET_OK && err)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    stet_stream_release(&to);
    stet_free(key);
    return status;
}

/* Events that it sent; the first of them that can't be delivered is its failure. */
static stet_status take_sent(sched_sending *e, action_run *r, stet_error *err) {
    stet_status status = STET_OK;
    if (stet_value_int_at(e->queue, "sent", 0) + (int64_t)r->sent.len >= SCHED_MAX_DELIVERIES) {
        status =
            stet_fail(err, STET_LIMIT, "handlers sent more than %d events because of one", SCHED_MAX_DELIVERIES - 1);
        stet_hint(err, "do they send to each other in a circle?");
    }
    for (size_t i = 0; i < r->sent.len && status == STET_OK; i++) {
        stet_value entry;
        status = queue_entry(e, &r->sent.at[i], &entry, err);
        stet_value_push(&e->turn.sent, entry);
    }
    return status;
}

static stet_status run_handler(sched_sending *e, stet_tx *tx, sched_piece *p, const char *node, stet_value row,
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
static stet_status look_before(sched_sending *e, stet_error *err) {
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

static void set_hash(sched_sending *e) {
    stet_value whole = stet_value_array();
    stet_value_push(&whole, stet_value_string(e->out->stream));
    stet_value_push(&whole, stet_value_retain(e->event));
    stet_hash_hex(stet_hash_value(whole), e->hash);
    stet_value_release(whole);
}

static stet_status write_event(sched_sending *e, stet_tx *tx, stet_error *err) {
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

/* The handler whose turn it is: the first, the one after the last that had the event, or a certain one. Its place in
 * the list; STREAM_DONE: none. They run in the order of their ids. */
#define STREAM_DONE SIZE_MAX
static size_t next_handler(stet_value entry, stet_value handlers, bool *more) {
    stet_value hold[2];
    const char *after = stet_value_text_at(entry, "after", &hold[0]),
               *only = stet_value_text_at(entry, "only", &hold[1]);
    size_t count = stet_value_count(handlers), i = 0;
    while (i < count && ((after && strcmp(stet_value_key_at(handlers, i, NULL), after) <= 0) ||
                         (only && strcmp(stet_value_key_at(handlers, i, NULL), only) != 0)))
        i++;
    *more = !only && i + 1 < count;
    return i < count ? i : STREAM_DONE; /* a new program may have fewer */
}

/* The event's next handler. */
static stet_status deliver(sched_sending *e, stet_tx *tx, stet_buf *log, stet_error *err) {
    sched_piece *p = e->piece;
    stet_stream to = {.handlers = stet_value_null()};
    stet_value entry = e->turn.entry, event = e->turn.key ? stet_value_get(entry, "event") : e->event;
    stet_status status = e->turn.key ? find_queued(e, tx, &p, &to, err) : find_stream(e, tx, p, e->asked, &to, err);
    if (status == STET_OK)
        e->turn.stream = stet_strdup(to.name);
    if (status == STET_OK && !e->turn.key) {
        snprintf(e->out->stream, sizeof e->out->stream, "%s", to.name);
        set_hash(e);
        status = look_before(e, err);
    }
    if (status == STET_OK && !e->known)
        status = child_there(tx, p, &to, err);
    size_t at = status == STET_OK && !e->known ? next_handler(entry, to.handlers, &e->turn.more) : STREAM_DONE;
    if (at != STREAM_DONE) {
        e->turn.handler = stet_strdup(stet_value_key_at(to.handlers, at, NULL));
        status = run_handler(e, tx, p, e->turn.handler, stet_value_at(to.handlers, at), event, log, err);
    }
    stet_stream_release(&to);
    return status;
}

/* What the coordinators of children have read is read here, too: whoever changes the list before this is stored makes
 * it void. Their reads in other spaces are left out. */
static stet_status guard(sched_sending *e, stet_tx *tx, stet_error *err) {
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
static stet_status refuse_old_values(sched_sending *e, const stet_tx_read_record *at, size_t count, stet_error *err) {
    stet_value list;
    stet_status status = sched_failed_makers(e->s, at, count, &list, err);
    if (status == STET_OK && stet_value_count(list) > 0) {
        stet_value first = stet_value_at(list, 0), piece = stet_value_get(first, "piece"),
                   node = stet_value_get(first, "node"), state = stet_value_get(first, "state");
        bool failed = strcmp(stet_value_as_string(&state, NULL), "failed") == 0;
        status = stet_fail(err, STET_FAILED, "event \"%s\" was not applied: its handler reads %s/%s, which %s",
                           e->about, stet_value_as_string(&piece, NULL), stet_value_as_string(&node, NULL),
                           failed ? "failed" : "waits for an action that failed");
        stet_hint(err, "mend that and send the event again; stet why %s tells the failure",
                  stet_value_as_string(&piece, NULL));
    }
    stet_value_release(list);
    return status;
}

/* What is going to be told rests on what was read, and that was found to be fresh: is it so still? */
static stet_status prove(sched_sending *e, stet_tx *tx, stet_status told, stet_error *err) {
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

/* Delivers until everything that was read is fresh. `*out` is the caller's to commit; NULL: the event was applied
 * before, or nothing is left to do. What handlers said, on fresh inputs, is returned. */
static stet_status preflight(sched_sending *e, stet_tx **out, stet_buf *log, stet_error *err) {
    stet_sched *s = e->s;
    for (int round = 0; round < MAX_PREFLIGHTS; round++) {
        stet_tx *tx;
        stet_error mine = STET_ERROR_INIT;
        stet_buf_clear(log);
        end_round(e);
        stet_status status = stet_tx_begin(s->space, s->branch_name, &tx, err);
        if (status != STET_OK)
            return status;
        status = sched_queue_look(e, tx, err);
        if (status != STET_OK || e->idle) {
            stet_tx_abort(tx);
            return status;
        }
        stet_status said = deliver(e, tx, log, &mine);
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
                     e->about, MAX_PREFLIGHTS);
}

stet_status sched_event_attempt(sched_sending *e, stet_error *err) {
    stet_tx *tx = NULL;
    stet_buf log = STET_BUF(SCHED_EVENT_MAX_LOG);
    e->moved = e->idle = e->known = false;
    stet_free(e->log_node);
    e->log_node = NULL;
    stet_status status = preflight(e, &tx, &log, err);
    if (status == STET_OK && tx) {
        stet_commit_result result;
        if (!e->turn.key)
            status = write_event(e, tx, err);
        if (status == STET_OK)
            status = sched_queue_write(e, tx, err);
        if (status == STET_OK)
            status = stet_tx_commit(tx, &result, err);
        else
            stet_tx_abort(tx);
        e->moved = status == STET_CONFLICT;
        if (status == STET_OK && !e->turn.key) {
            e->out->applied = e->done = true;
            e->out->seq = result.seq;
        }
        if (status == STET_OK && e->s->opts.log && log.len > 0)
            e->s->opts.log(e->s->opts.ctx, e->log_node, "console", log.data, log.len);
    }
    stet_buf_release(&log);
    return status;
}
