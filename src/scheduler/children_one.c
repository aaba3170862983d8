/* children_one.c - one child of an action: its documents, in the transaction of its coordinator. */

#include "graph/owned.h"
#include "graph/stream.h"
#include "scheduler/children_internal.h"

static stet_docname name_of(const reconciling *x, const char *id) {
    return stet_piece_name(x->a->piece->piece, id);
}

stet_status children_peek(void *ctx, const char *id, stet_value *value, stet_error *err) {
    const reconciling *x = ctx;
    stet_value envelope;
    stet_error mine = STET_ERROR_INIT;
    stet_docname name = stet_scoped(x->a->piece->piece->scope, id);
    stet_status status = stet_tx_peek(x->tx, NULL, &name, STET_PATH_ROOT, &envelope, &mine);
    *value = status == STET_OK ? stet_value_retain(stet_value_get(envelope, "value")) : stet_value_null();
    if (status == STET_OK || status == STET_NOT_FOUND) {
        stet_error_clear(&mine);
        return STET_OK;
    }
    if (err)
        stet_error_move(err, &mine);
    else
        stet_error_clear(&mine);
    return status;
}

bool children_doc_there(stet_tx *tx, const stet_docname *name) {
    stet_value v;
    return stet_tx_peek(tx, NULL, name, STET_PATH_ROOT, &v, NULL) == STET_OK;
}

/* Was this document written after the index? Also true where there is no telling. */
bool children_written_after(stet_sched *s, const stet_docname *name, const stet_docname *index) {
    int64_t seq[2] = {0, 0};
    stet_docname names[2] = {*name, *index};
    for (int i = 0; i < 2; i++) {
        int64_t doc;
        if (stet_space_doc(s->space, &names[i], &doc, NULL) != STET_OK)
            return true;
        if (doc && stet_space_head_seq(s->space, s->branch, doc, &seq[i], NULL) != STET_OK)
            return true;
    }
    return seq[0] > seq[1];
}

stet_status children_put(reconciling *x, const char *id, stet_value value, stet_error *err) {
    stet_value envelope = stet_value_object();
    stet_docname name = stet_scoped(x->a->piece->piece->scope, id);
    stet_value_put(&envelope, "value", value);
    return stet_tx_put(x->tx, &name, envelope, err);
}

void children_value_path(stet_path *path, const char *key) {
    *path = (stet_path)STET_PATH_INIT;
    stet_path_push(path, "value");
    if (key)
        stet_path_push(path, key);
}

static stet_status drop_doc(void *ctx, const char *id, stet_error *err) {
    reconciling *x = ctx;
    stet_docname name = name_of(x, id);
    return stet_tx_drop(x->tx, &name, err);
}

static stet_status drop_node(void *ctx, const char *id, stet_error *err) {
    reconciling *x = ctx;
    *stet_vec_add(&x->r->children->gone) = stet_strdup(id);
    /* Cells of a child go with it; what the node wrote into others does not. */
    return x->passes_cells ? sched_earlier_gone(x->s, x->tx, x->a, id, err) : STET_OK;
}

static const stet_child_visitor teardown = {NULL, drop_node, drop_doc};

stet_status children_tear_down(reconciling *x, const char *key, stet_error *err) {
    stet_child_visitor v = teardown;
    v.ctx = x;
    char *instance = stet_child_instance_id(x->a->node, key);
    stet_status status = stet_child_walk(&x->docs, x->piece, &x->old, instance, &v, err);
    stet_free(instance);
    return status;
}

/* Where the result of a child is found. */
stet_value children_result_link(const reconciling *x, const char *key) {
    char *instance = stet_child_instance_id(x->a->node, key);
    stet_value out = x->plain ? stet_child_result(x->t, x->piece, x->a->row, instance)
                              : stet_child_place(x->piece, instance, "result", NULL);
    stet_free(instance);
    return out;
}

static stet_value argument_of(const reconciling *x, const stet_run_child *at, size_t i) {
    stet_value argument = stet_value_object();
    if (x->role == STET_CHILD_RETURNS) {
        stet_value_release(argument);
        return stet_value_retain(at[i].element);
    }
    stet_value_put(&argument, "element", stet_value_retain(at[i].element));
    if (x->t->index)
        stet_value_put(&argument, "index", stet_value_int((int64_t)i));
    if (x->role == STET_CHILD_REDUCE)
        stet_value_put(&argument, "accumulator",
                       i ? children_result_link(x, at[i - 1].key) : stet_child_initial(x->a->row));
    return argument;
}

stet_value children_print_of(const reconciling *x, const stet_run_child *at, size_t i) {
    return stet_child_print(at[i].element, x->t->index ? (int64_t)i : -1,
                            x->role == STET_CHILD_REDUCE && i ? at[i - 1].key : NULL);
}

/* Cells of a new child (`made`), or those that a new template has more or with other defaults. Beside its value a cell
 * keeps the default that it was given. What was marked is somebody's (graph/argument.h); all else follows a new
 * default, and the computation that had written there runs again. Cells from before there were marks are taken for
 * marked. */
static stet_status write_cell(reconciling *x, const char *id, const stet_pattern_cell *c, bool made, stet_error *err) {
    stet_value envelope = stet_value_null(), given = stet_value_null();
    stet_docname name = name_of(x, id);
    bool there = stet_tx_peek(x->tx, NULL, &name, STET_PATH_ROOT, &envelope, NULL) == STET_OK;
    bool had = there && stet_value_find(envelope, "default", 7, &given), set = false;
    if (there && !made) {
        if (had == c->has_default && (!had || stet_value_equal(given, c->initial)))
            return STET_OK;
        bool older = stet_value_type(stet_value_get(x->hold, "marks")) != STET_TYPE_BOOL;
        set = stet_value_as_bool(stet_value_get(envelope, "set")) || (!had && older);
    }
    stet_value value = stet_value_get(envelope, "value"), hand;
    if (set && stet_value_find(envelope, STET_CELL_HAND, strlen(STET_CELL_HAND), &hand))
        set = stet_value_find(hand, "value", 5, &value);
    if (!c->has_default && !set)
        return there ? stet_tx_drop(x->tx, &name, err) : STET_OK;
    stet_value now = stet_value_object();
    stet_value_put(&now, "value", stet_value_retain(set ? value : c->initial));
    if (c->has_default)
        stet_value_put(&now, "default", stet_value_retain(c->initial));
    if (set)
        stet_value_put(&now, "set", stet_value_bool(true));
    return stet_tx_put(x->tx, &name, now, err);
}

static stet_status write_cells(reconciling *x, const char *instance, bool made, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < x->t->pattern->cell_count && status == STET_OK; i++) {
        char *local = stet_asprintf("%s.%s", instance, x->t->pattern->cells[i].name);
        char *id = stet_piece_part(x->piece, "cell", local);
        status = write_cell(x, id, &x->t->pattern->cells[i], made, err);
        stet_free(local);
        stet_free(id);
    }
    return status;
}

/* Streams that are their handlers' own: the documents that stand for them. */
static stet_status write_streams(reconciling *x, const char *instance, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t n = 0; n < x->t->shape->node_count && status == STET_OK; n++) {
        const stet_process_node *node = &x->t->shape->nodes[n];
        stet_link l;
        stet_path path = STET_PATH_INIT;
        const char *own = stet_link_read(stet_value_get(node->row, "stream"), &l, &path) ? strrchr(l.id, ']') : NULL;
        stet_path_release(&path);
        if (!own || strncmp(l.id, "piece:-:node:", 13) != 0 || strcmp(own + 2, node->id) != 0)
            continue;
        stet_value value = stet_value_object();
        char *local = stet_asprintf("%s.%s", instance, node->id), *id = stet_piece_part(x->piece, "node", local);
        stet_value_put(&value, "$stream", stet_value_bool(true));
        status = children_put(x, id, value, err);
        stet_free(local);
        stet_free(id);
    }
    return status;
}

stet_status children_make(reconciling *x, const stet_run_child *at, size_t i, stet_error *err) {
    char *instance = stet_child_instance_id(x->a->node, at[i].key), *id = stet_piece_part(x->piece, "child", instance);
    stet_value child = stet_value_object();
    stet_value_put(&child, "argument", argument_of(x, at, i));
    if (!x->plain)
        stet_value_put(&child, "result", stet_child_result(x->t, x->piece, x->a->row, instance));
    stet_status status = children_put(x, id, child, err);
    if (status == STET_OK)
        status = write_cells(x, instance, true, err);
    if (status == STET_OK)
        status = write_streams(x, instance, err);
    for (size_t n = 0; n < x->t->shape->node_count && status == STET_OK; n++) {
        char *node = stet_asprintf("%s.%s", instance, x->t->shape->nodes[n].id);
        if (strlen(node) > STET_CHILD_ID_MAX) {
            status = stet_fail(err, STET_LIMIT, "the id \"%.80s...\" of a child has more than %d bytes", node,
                               STET_CHILD_ID_MAX);
            stet_hint(err, "give nodes that have children shorter names, or nest them less deeply");
            stet_free(node);
        } else if (stet_stream_is_handler(x->t->shape->nodes[n].row)) {
            stet_free(node); /* no action: events run it */
        } else {
            *stet_vec_add(&x->r->children->made) = node;
        }
    }
    stet_free(instance);
    stet_free(id);
    return status;
}

/* A link of a chain was given something: what it read before may be another link than the one it follows now. */
static void note_moved(reconciling *x, const char *instance) {
    for (size_t n = 0; x->role == STET_CHILD_REDUCE && n < x->t->shape->node_count; n++)
        *stet_vec_add(&x->r->children->moved) = stet_asprintf("%s.%s", instance, x->t->shape->nodes[n].id);
}

stet_status children_give(reconciling *x, const stet_run_child *at, size_t i, stet_error *err) {
    char *instance = stet_child_instance_id(x->a->node, at[i].key), *id = stet_piece_part(x->piece, "child", instance);
    stet_path path;
    children_value_path(&path, "argument");
    stet_docname name = name_of(x, id);
    stet_status status = stet_tx_write(x->tx, &name, stet_path_ref(&path), argument_of(x, at, i), err);
    note_moved(x, instance);
    stet_path_release(&path);
    stet_free(instance);
    stet_free(id);
    return status;
}

/* Lists the action of a child (K4). */
static void look_at_action(reconciling *x, const char *id, stet_value row) {
    stet_arena arena = STET_ARENA_INIT;
    stet_memo_action m = {0};
    stet_value print = stet_value_get(row, "fingerprint");
    stet_hash want;
    size_t len = 0;
    const char *hex = stet_value_type(print) == STET_TYPE_STRING ? stet_value_as_string(&print, &len) : "";
    bool there = stet_hash_of_hex(hex, len, &want) &&
                 stet_memo_load(x->s->memo, x->a->piece->piece->key, id, &arena, &m, NULL) == STET_OK;
    if (there && x->same && !m.observed && m.state == STET_STATE_UNKNOWN)
        *stet_vec_add(&x->r->children->known) = stet_strdup(id);
    else if (!there || !m.observed || m.state == STET_STATE_UNKNOWN || !stet_hash_equal(m.implementation, want) ||
             !stet_hash_equal(m.runtime, x->s->runtime))
        *stet_vec_add(&x->r->children->made) = stet_strdup(id);
    stet_arena_release(&arena);
}

static stet_status drop_children_of(reconciling *x, const char *node, stet_error *err) {
    stet_child_visitor v = teardown;
    v.ctx = x;
    return stet_child_walk_all(&x->docs, x->piece, node, &v, err);
}

/* Nodes of a child that the template no longer has, and children of nodes that have none any more. */
static stet_status drop_old_nodes(reconciling *x, const char *instance, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t n = 0; n < stet_value_count(x->old.nodes) && status == STET_OK; n++) {
        stet_value name = stet_value_at(x->old.nodes, n);
        const stet_process_node *now = stet_process_find(x->t->shape, stet_value_as_string(&name, NULL));
        if (now && stet_child_role_of(now->row) != STET_CHILD_NONE)
            continue;
        char *node = stet_asprintf("%s.%s", instance, stet_value_as_string(&name, NULL));
        status = drop_children_of(x, node, err);
        if (status == STET_OK && !now) {
            char *id = stet_piece_part(x->piece, "node", node);
            status = drop_doc(x, id, err);
            stet_free(id);
        }
        if (status == STET_OK && (!now || stet_stream_is_handler(now->row)))
            status = drop_node(x, node, err);
        stet_free(node);
    }
    return status;
}

stet_status children_look_at(reconciling *x, const stet_run_child *at, size_t i, stet_error *err) {
    char *instance = stet_child_instance_id(x->a->node, at[i].key), *id = stet_piece_part(x->piece, "child", instance);
    stet_value rows, child = stet_value_object();
    stet_value_put(&child, "argument", argument_of(x, at, i));
    if (!x->plain)
        stet_value_put(&child, "result", stet_child_result(x->t, x->piece, x->a->row, instance));
    stet_status status = children_put(x, id, child, err);
    note_moved(x, instance);
    if (status == STET_OK)
        status = write_cells(x, instance, false, err);
    if (status == STET_OK && !x->same)
        status = drop_old_nodes(x, instance, err);
    if (status == STET_OK)
        status = write_streams(x, instance, err);
    if (status == STET_OK)
        status = stet_child_rows(x->t, x->piece, x->a->node, x->a->row, instance, NULL, &x->modules, &rows, err);
    if (status == STET_OK) {
        for (size_t n = 0; n < stet_value_count(rows); n++) {
            if (!stet_stream_is_handler(stet_value_at(rows, n)))
                look_at_action(x, stet_value_key_at(rows, n, NULL), stet_value_at(rows, n));
        }
        stet_value_release(rows);
    }
    stet_free(instance);
    stet_free(id);
    return status;
}
