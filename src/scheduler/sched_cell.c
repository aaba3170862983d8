/* sched_cell.c - cells that a run is given: writing through an input, checking those writes, and undoing them.
 *
 * What a run wrote lies in its transaction: its own reads see it, and nobody else does before it is stored. The writes
 * of a run that fails are taken back.
 */

#include "graph/argument.h"
#include "graph/cells.h"
#include "graph/owned.h"
#include "graph/stream.h"
#include "scheduler/sched_internal.h"

#define MOST_WRITES                                                                                                    \
    64 /* of one document that are told apart; more are one, at their common prefix (as in the record) */

void sched_cells_note(action_run *r, const stet_docname *name) {
    for (size_t i = 0; i < r->wrote.len; i++)
        if (strcmp(r->wrote.at[i].id, name->id) == 0 && strcmp(r->wrote.at[i].scope, name->scope) == 0)
            return;
    *stet_vec_add(&r->wrote) = (stet_docname){stet_strdup(name->id), stet_strdup(name->scope)};
}

static void note_set(action_run *r, const stet_docname *name, stet_pathref path) {
    enum { LAST = 64 }; /* one that is listed twice does no harm */
    for (size_t i = r->set.len; i > 0 && r->set.len - i < LAST; i--) {
        const stet_address *s = &r->set.at[i - 1];
        if (strcmp(s->name.id, name->id) == 0 && strcmp(s->name.scope, name->scope) == 0 &&
            stet_path_is_prefix(s->path, path))
            return;
    }
    *stet_vec_add(&r->set) = (stet_address){
        NULL, {stet_strdup(name->id), stet_strdup(name->scope)}, {stet_strndup(path.bytes, path.len), path.len}};
}

/* Does the document hold what a node computes? Then writing there would be undone by it. */
static stet_status refuse_output(const action_run *r, const stet_reader_place *at, stet_error *err) {
    /* What stet keeps lies in the common scope; in another one a name alone does not make a document a piece's. */
    bool common = !*at->scope;
    if (!common) {
        sched_piece *p;
        char *piece = stet_piece_around(&(stet_docname){at->id, at->scope}),
             *key = piece ? stet_piece_key(piece) : NULL;
        common = key && sched_piece_of(r->s, key, &p, NULL) == STET_OK;
        stet_free(piece);
        stet_free(key);
    }
    const char *part = common && strncmp(at->id, "piece:", 6) == 0 ? strchr(at->id + 6, ':') : NULL;
    if (part && strncmp(part, ":node:", 6) == 0) {
        stet_fail(err, STET_INVALID, "node \"%s\" computes what is in that cell: it can't be written to", part + 6);
        stet_hint(err, "write to the argument or to a named cell (\"cells\"), and let the node read that");
        return STET_INVALID;
    }
    if (part && strncmp(part, ":child:", 7) == 0) {
        stet_fail(err, STET_INVALID, "child \"%s\" has a copy of its element there: it can't be written to", part + 7);
        stet_hint(err,
                  "write to the list that the element comes from (give it to the children as a cell), or to a named "
                  "cell of the child");
        return STET_INVALID;
    }
    if (common && stet_piece_name_of(at->id))
        return stet_fail(err, STET_INVALID, "the result of a piece can't be written to");
    if (common && stet_cells_closed(at->id))
        return stet_fail(err, STET_INVALID, "document \"%.200s\" is kept by stet and can't be written to", at->id);
    if (at->space && at->space != r->s->space)
        return stet_fail(err, STET_INVALID,
                         "the cell lies in space \"%s\": an action writes to the space of its piece alone",
                         stet_space_name(at->space));
    return STET_OK;
}

/* Who says where it writes is believed by all who read elsewhere. `path` is one into the inputs. */
static stet_status refuse_unsaid(const action_run *r, stet_pathref path, stet_error *err) {
    stet_value paths;
    if (!stet_value_find(r->a->row, "materializerWriteInputPaths", 27, &paths))
        return STET_OK;
    bool said = false;
    for (size_t i = 0; i < stet_value_count(paths) && !said; i++) {
        stet_path one = STET_PATH_INIT;
        said = stet_cells_input_path(stet_value_at(paths, i), &one) && stet_path_is_prefix(stet_path_ref(&one), path);
        stet_path_release(&one);
    }
    if (said)
        return STET_OK;
    stet_buf text = STET_BUF(0);
    stet_path_print(path, &text);
    stet_fail(err, STET_INVALID, "it writes to its input %.200s, which \"materializerWriteInputPaths\" does not name",
              stet_buf_cstr(&text));
    stet_hint(err, "name it there: nobody waits for a write that is not announced");
    stet_buf_release(&text);
    return STET_INVALID;
}

/* Whether a write succeeds depends on what is on the way to its place. Of a run that succeeds, its writes tell that; of
 * one that fails, or that goes on after a failed write, this read does. */
static void read_way(action_run *r, const stet_docname *name, stet_pathref path) {
    stet_value ignored;
    stet_error mine = STET_ERROR_INIT; /* that nothing is there is recorded, too */
    if (stet_tx_read(r->tx, NULL, name, path, STET_SHALLOW, &ignored, &mine) != STET_OK)
        stet_error_clear(&mine);
}

stet_status sched_cell_write(action_run *r, stet_pathref path, stet_value value, stet_error *err) {
    stet_reader_place at = {.path = STET_PATH_INIT};
    stet_status status = refuse_unsaid(r, path, err);
    if (status == STET_OK)
        status = stet_reader_locate(&r->reader, r->base.bindings, path, &at, err);
    if (status == STET_OK)
        status = refuse_output(r, &at, err);
    if (status != STET_OK) {
        stet_value_release(value);
    } else {
        stet_docname name = {at.id, at.scope};
        bool handler = stet_stream_is_handler(r->a->row);
        sched_cells_note(r, &name);
        if (!handler)
            status = sched_earlier_before(r, &name, err);
        bool sets = handler || r->a->effect;
        if (status == STET_OK && !sets)
            status = stet_piece_keep_hand(r->tx, &name, err);
        if (status == STET_OK)
            status = stet_tx_write(r->tx, &name, stet_path_ref(&at.path), value, err);
        else
            stet_value_release(value);
        /* What a computation writes is its own: a new default there makes it run again. What an effect or a handler has
         * done is done, and is set as a person sets it: it would not be done again for a new pattern. */
        if (status == STET_OK && sets)
            status = stet_piece_mark_set(r->tx, &name, stet_path_ref(&at.path), err);
        if (status == STET_OK)
            note_set(r, &name, stet_path_ref(&at.path));
        else
            read_way(r, &name, stet_path_ref(&at.path));
    }
    stet_reader_place_release(&at);
    return status;
}

stet_status sched_cell_send(action_run *r, stet_pathref path, stet_value value, stet_error *err) {
    stet_reader_place at = {.path = STET_PATH_INIT};
    stet_status status = STET_OK;
    if (!stet_stream_is_handler(r->a->row)) {
        status = stet_fail(err, STET_INVALID, "only an event handler sends events");
        stet_hint(err, "a computation may run again at any time, and would send again");
    }
    if (status == STET_OK)
        status = stet_reader_locate(&r->reader, r->base.bindings, path, &at, err);
    if (status == STET_OK)
        status = stet_reader_place_read(&r->reader, &at, err);
    if (status == STET_OK) {
        stet_path root = STET_PATH_INIT;
        stet_buf stream = STET_BUF(4096);
        stet_docname name = {at.id, at.scope};
        char *piece = stet_piece_around(&name);
        stet_path_push(&root, "value");
        stet_pathref in = stet_path_ref(&at.path), value_path = stet_path_ref(&root);
        bool below = stet_path_is_prefix(value_path, in);
        stet_pathref rest = below ? (stet_pathref){in.bytes + value_path.len, in.len - value_path.len} : STET_PATH_ROOT;
        if (!piece || (at.space && at.space != r->s->space) || !below ||
            !stet_stream_name(piece, &name, rest, &stream)) {
            status = stet_fail(err, STET_INVALID, "that cell is no stream: events are sent to streams of pieces");
            stet_value_release(value);
            stet_free(piece);
        } else {
            stet_buf pointer = STET_BUF(0);
            stet_path_print(rest, &pointer);
            *stet_vec_add(&r->sent) = (sched_sent){piece,
                                                   stet_strdup(stet_buf_cstr(&stream)),
                                                   stet_strdup(at.id),
                                                   stet_strdup(at.scope),
                                                   stet_strdup(stet_buf_cstr(&pointer)),
                                                   value};
            stet_buf_release(&pointer);
        }
        stet_buf_release(&stream);
        stet_path_release(&root);
    } else {
        stet_value_release(value);
    }
    stet_reader_place_release(&at);
    return status;
}

void sched_sent_release(action_run *r) {
    for (size_t i = 0; i < r->sent.len; i++) {
        stet_free(r->sent.at[i].piece);
        stet_free(r->sent.at[i].stream);
        stet_free(r->sent.at[i].id);
        stet_free(r->sent.at[i].scope);
        stet_free(r->sent.at[i].path);
        stet_value_release(r->sent.at[i].event);
    }
    stet_vec_release(&r->sent);
}

static void release_name(stet_docname name) {
    stet_free((char *)(uintptr_t)name.id);
    stet_free((char *)(uintptr_t)name.scope);
}

/* What the transaction has; what earlier runs wrote is known still. */
static void forget_written(action_run *r) {
    for (size_t i = 0; i < r->wrote.len; i++)
        release_name(r->wrote.at[i]);
    for (size_t i = 0; i < r->set.len; i++) {
        release_name(r->set.at[i].name);
        stet_free((char *)(uintptr_t)r->set.at[i].path.bytes);
    }
    stet_vec_release(&r->wrote);
    stet_vec_release(&r->set);
    for (size_t i = 0; i < r->docs.len; i++)
        stet_free(r->docs.at[i]);
    stet_vec_release(&r->docs);
}

void sched_cells_release(action_run *r) {
    forget_written(r);
    sched_earlier_release(r);
}

/* The schema that the pattern gives an argument or a named cell; null if there is none. */
static stet_status schema_of(stet_sched *s, const stet_docname *name, stet_value *out, stet_error *err) {
    const char *id = name->id;
    const char *part = strncmp(id, "piece:", 6) == 0 ? strchr(id + 6, ':') : NULL;
    *out = stet_value_null();
    if (!part || (strcmp(part, ":argument") != 0 && strncmp(part, ":cell:", 6) != 0))
        return STET_OK;
    char *piece = stet_piece_around(name), *key = piece ? stet_piece_key(piece) : NULL;
    sched_piece *p;
    stet_error mine = STET_ERROR_INIT;
    stet_status status = key ? sched_piece_of(s, key, &p, &mine) : STET_NOT_FOUND;
    stet_free(piece);
    stet_free(key);
    if (status != STET_OK) { /* a document that only looks like a piece's */
        stet_error_clear(&mine);
        return STET_OK;
    }
    stet_value process = stet_value_get(p->piece->envelope, "process");
    return sched_schema(s,
                        part[1] == 'a' ? stet_value_get(process, "argumentSchema")
                                       : stet_value_get(stet_value_get(process, "cellSchemas"), part + 6),
                        out, err);
}

stet_status sched_cells_check(action_run *r, stet_error *err) {
    stet_status status = STET_OK;
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    for (size_t i = 0; i < r->wrote.len && status == STET_OK; i++) {
        stet_value schema, value;
        status = schema_of(r->s, &r->wrote.at[i], &schema, err);
        if (status != STET_OK || stet_value_type(schema) == STET_TYPE_NULL)
            continue;
        if (stet_tx_peek(r->tx, NULL, &r->wrote.at[i], stet_path_ref(&path), &value, NULL) != STET_OK)
            value = stet_value_null();
        status = stet_schema_check(schema, value, err);
        /* It may be the fault of what was there already. */
        if (status != STET_OK &&
            stet_tx_read(r->tx, NULL, &r->wrote.at[i], stet_path_ref(&path), STET_RECURSIVE, &value, NULL) != STET_OK)
            value = stet_value_null();
        if (status != STET_OK)
            stet_fail_in(err, "what it wrote to %s does not match the schema there", r->wrote.at[i].id);
    }
    stet_path_release(&path);
    return status;
}

stet_status sched_cells_drop(action_run *r, stet_error *err) {
    const stet_tx_read_record *at;
    size_t count;
    stet_arena arena = STET_ARENA_INIT;
    stet_tx_reads(r->tx, &arena, &at, &count);
    /* Names and paths may lie in the transaction that is given up. */
    stet_tx_read_record *copy = stet_arena_alloc(&arena, (count ? count : 1) * sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        copy[i] = at[i];
        copy[i].name.id = stet_arena_strdup(&arena, at[i].name.id);
        copy[i].name.scope = stet_arena_strdup(&arena, at[i].name.scope ? at[i].name.scope : "");
        copy[i].path.bytes = stet_arena_strndup(&arena, at[i].path.bytes, at[i].path.len);
    }
    stet_tx_abort(r->tx);
    r->tx = r->reader.tx = NULL;
    stet_status status = stet_tx_begin_in(r->s->batch.group, &r->tx, err);
    r->reader.tx = r->tx;
    for (size_t i = 0; i < count && status == STET_OK; i++) {
        stet_value ignored;
        stet_error mine = STET_ERROR_INIT;
        status = stet_tx_read(r->tx, copy[i].space == r->s->space ? NULL : copy[i].space, &copy[i].name, copy[i].path,
                              copy[i].kind, &ignored, &mine);
        if (status == STET_NOT_FOUND || status == STET_OK)
            status = STET_OK;
        else if (err)
            stet_error_move(err, &mine);
        stet_error_clear(&mine);
    }
    for (size_t i = 0; i < r->set.len && status == STET_OK; i++)
        read_way(r, &r->set.at[i].name, r->set.at[i].path);
    stet_arena_release(&arena);
    forget_written(r);
    return status;
}

typedef STET_VEC(stet_plan_write) write_list;

static int by_place(const void *a, const void *b) {
    const stet_plan_write *x = a, *y = b;
    return x->doc != y->doc ? (x->doc < y->doc ? -1 : 1) : stet_path_compare(x->path, y->path);
}

/* Each once; too many of one document become one. The same rule as for the stored record. */
static void settle_writes(write_list *l) {
    size_t to = 0;
    if (l->len > 1)
        qsort(l->at, l->len, sizeof *l->at, by_place);
    for (size_t i = 0; i < l->len;) {
        size_t first = to, end = i;
        for (; end < l->len && l->at[end].doc == l->at[i].doc; end++)
            if (to == first || stet_path_compare(l->at[to - 1].path, l->at[end].path) != 0)
                l->at[to++] = l->at[end];
        if (to - first > MOST_WRITES) {
            for (size_t k = first + 1; k < to; k++)
                l->at[first].path = stet_path_common(l->at[first].path, l->at[k].path);
            to = first + 1;
        }
        i = end;
    }
    l->len = to;
}

size_t sched_cells_set(action_run *r, stet_arena *arena, stet_address **out) {
    size_t kept = sched_earlier_kept(r, NULL);
    *out = stet_arena_alloc(arena, (kept + r->set.len + 1) * sizeof **out);
    for (size_t i = 0; i < r->set.len; i++)
        (*out)[i] = r->set.at[i];
    return r->set.len + sched_earlier_kept(r, *out + r->set.len);
}

void sched_cells_learn(action_run *r) {
    stet_sched *s = r->s;
    const sched_action *a = r->a;
    write_list l = {0};
    if (!a->has_cells && r->docs.len == 0)
        return;
    stet_arena arena = STET_ARENA_INIT;
    stet_address *set;
    size_t count = sched_cells_set(r, &arena, &set);
    if (a->out_id)
        *stet_vec_add(&l) = (stet_plan_write){sched_doc(s, NULL, &(stet_docname){a->out_id, a->out_scope}),
                                              stet_path_ref(&a->out_path)};
    for (size_t i = 0; i < r->docs.len; i++)
        *stet_vec_add(&l) = (stet_plan_write){sched_doc(s, NULL, &(stet_docname){r->docs.at[i], ""}), STET_PATH_ROOT};
    for (size_t i = 0; i < count; i++)
        *stet_vec_add(&l) = (stet_plan_write){sched_doc(s, NULL, &set[i].name), set[i].path};
    settle_writes(&l);
    stet_plan_set_writes(s->plan, a->id, l.at, l.len);
    stet_vec_release(&l);
    stet_arena_release(&arena);
}

size_t sched_envelopes_with(const sched_action *a, stet_value makes, stet_arena *arena, stet_address **out) {
    stet_value links = a->materializer ? stet_value_get(a->row, "materializer") : stet_value_null();
    size_t n = stet_value_count(links), count = 0;
    *out = stet_arena_alloc(arena, (n + stet_value_count(makes) + 1) * sizeof **out);
    for (size_t i = 0; i < n; i++) {
        stet_link l;
        stet_path path = STET_PATH_INIT;
        stet_path_push(&path, "value");
        if (stet_link_read(stet_value_at(links, i), &l, &path) && !l.space) {
            stet_pathref p = stet_path_ref(&path);
            (*out)[count++] = (stet_address){NULL,
                                             {stet_arena_strdup(arena, l.id), stet_arena_strdup(arena, l.scope)},
                                             {stet_arena_strndup(arena, p.bytes, p.len), p.len}};
        }
        stet_path_release(&path);
    }
    for (size_t i = 0; i < stet_value_count(makes); i++) {
        stet_value path = stet_value_at(makes, i);
        (*out)[count++] = stet_makes_cell(stet_value_as_string(&path, NULL), arena);
    }
    return count;
}

size_t sched_envelopes(const sched_action *a, stet_arena *arena, stet_address **out) {
    return sched_envelopes_with(a, stet_value_null(), arena, out);
}

typedef struct cell_list {
    stet_arena *arena;
    STET_VEC(stet_address) found;
} cell_list;

static bool note_cell(void *ctx, stet_value binding, stet_pathref place) {
    cell_list *c = ctx;
    stet_link l;
    stet_path path = STET_PATH_INIT;
    (void)place;
    stet_path_push(&path, "value");
    if (stet_link_read(binding, &l, &path) && l.as_cell && !l.space) {
        stet_pathref p = stet_path_ref(&path);
        *stet_vec_add(&c->found) =
            (stet_address){NULL,
                           {stet_arena_strdup(c->arena, l.id), stet_arena_strdup(c->arena, l.scope)},
                           {stet_arena_strndup(c->arena, p.bytes, p.len), p.len}};
    }
    stet_path_release(&path);
    return true;
}

size_t sched_bound_cells(const sched_action *a, stet_arena *arena, stet_address **out) {
    cell_list c = {.arena = arena};
    stet_binding_walk(stet_value_get(a->row, "inputs"), note_cell, &c);
    size_t count = c.found.len;
    *out = count > 0 ? stet_arena_dup(arena, c.found.at, count * sizeof **out) : NULL;
    stet_vec_release(&c.found);
    return count;
}

void sched_cells_recall(stet_sched *s, const sched_action *a) {
    stet_arena arena = STET_ARENA_INIT;
    stet_memo_action x = {0};
    stet_address *cells;
    size_t count = sched_bound_cells(a, &arena, &cells);
    write_list l = {0};
    if (count > 0 && stet_memo_load(s->memo, a->piece->piece->key, a->node, &arena, &x, NULL) == STET_OK &&
        x.observed) {
        stet_vec_reserve(&l, stet_plan_writes(s->plan, a->id, NULL, 0) + 1);
        l.len = stet_plan_writes(s->plan, a->id, l.at, l.cap);
        for (size_t i = 0; i < x.write_count; i++)
            for (size_t k = 0; k < count; k++)
                if (strcmp(x.writes[i].name.id, cells[k].name.id) == 0 &&
                    strcmp(x.writes[i].name.scope ? x.writes[i].name.scope : "", cells[k].name.scope) == 0 &&
                    stet_path_is_prefix(cells[k].path, x.writes[i].path)) {
                    *stet_vec_add(&l) = (stet_plan_write){sched_doc(s, NULL, &x.writes[i].name), x.writes[i].path};
                    break;
                }
        settle_writes(&l);
        stet_plan_set_writes(s->plan, a->id, l.at, l.len);
        stet_vec_release(&l);
    }
    stet_arena_release(&arena);
}

typedef struct cell_search {
    bool found;
} cell_search;

static bool meet_binding(void *ctx, stet_value binding, stet_pathref place) {
    cell_search *c = ctx;
    stet_link l;
    stet_path path = STET_PATH_INIT;
    (void)place;
    c->found = c->found || (stet_link_read(binding, &l, &path) && l.as_cell);
    stet_path_release(&path);
    return !c->found;
}

bool sched_has_cells(stet_value inputs) {
    cell_search c = {false};
    stet_binding_walk(inputs, meet_binding, &c);
    return c.found;
}
