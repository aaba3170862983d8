/* Children of an action: making those that are missing, giving each its element, tearing down those that are gone, and
 * what follows from that for the plan. graph/child.h says what they are.
 *
 * Invariants
 *   K1. Everything that a run of a coordinator does to its children is in the transaction of that run: their documents,
 *       the index, the output, actions made known as unknown, actions forgotten, failures taken back.
 *   K2. The index says which children there are and what each was given. Nobody else is asked: a coordinator that is
 * run because one element changed compares the list with the index, and writes what differs. K3. A run of a child's
 * node reads the document of the child, so that it can't be stored after the child is gone. K4. A coordinator that is
 * unknown looks at every child: whose record is missing or of other code becomes unknown.
 */
#include "base/json.h"
#include "scheduler/sched_internal.h"

/* What was given to the children last, by this process: spares a hash for each element that is the same. */
typedef struct sched_children {
    int64_t serial; /* of the index it belongs to */
    stet_value keys, elements;
    stet_map places; /* of a chain: key -> ranks above the first */
} sched_children;

typedef STET_VEC(char *) name_list;
struct sched_lists {
    name_list made, gone;
};

typedef struct reconciling {
    action_run *r;
    stet_sched *s;
    sched_action *a;
    stet_tx *tx;
    const char *piece;
    stet_child_role role;
    stet_template *t;
    stet_process_modules modules;
    stet_child_docs docs;
    char *index_id;
    stet_value hold; /* the index as it was */
    stet_child_index old;
    stet_map positions; /* key -> position in the old index + 1; made when it is first asked for */
    bool mapped;
    bool same;  /* the template is the one that the children were made from */
    bool full;  /* K4 */
    bool known; /* `memory` is about the old index */
    sched_children *memory;
    stet_value failures;
    bool plain; /* the result of a child is a cell: the output leads there at once */
} reconciling;

/* ---- Documents through the transaction ----------------------------------------------------------------------------
 */

static stet_status peek_value(void *ctx, const char *id, stet_value *value, stet_error *err) {
    stet_tx *tx = ctx;
    stet_value envelope;
    stet_error mine = STET_ERROR_INIT;
    stet_status status = stet_tx_peek(tx, NULL, &(stet_docname){id, NULL}, STET_PATH_ROOT, &envelope, &mine);
    *value = status == STET_OK ? stet_retain(stet_get(envelope, "value")) : stet_null();
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

static bool there(stet_tx *tx, const char *id) {
    stet_value v;
    return stet_tx_peek(tx, NULL, &(stet_docname){id, NULL}, STET_PATH_ROOT, &v, NULL) == STET_OK;
}

/* Was this document written after the index? Also true where there is no telling. */
static bool written_after(stet_sched *s, const stet_docname *name, const char *index_id) {
    int64_t seq[2] = {0, 0};
    stet_docname names[2] = {*name, {index_id, NULL}};
    for (int i = 0; i < 2; i++) {
        int64_t doc;
        if (stet_space_doc(s->space, &names[i], &doc, NULL) != STET_OK)
            return true;
        if (doc && stet_space_head_seq(s->space, s->branch, doc, &seq[i], NULL) != STET_OK)
            return true;
    }
    return seq[0] > seq[1];
}

static stet_status put_value(stet_tx *tx, const char *id, stet_value value, stet_error *err) {
    stet_value envelope = stet_object();
    stet_put(&envelope, "value", value);
    return stet_tx_put(tx, &(stet_docname){id, NULL}, envelope, err);
}

static void value_path(stet_path *path, const char *key) {
    *path = (stet_path)STET_PATH_INIT;
    stet_path_push(path, "value");
    if (key)
        stet_path_push(path, key);
}

/* ---- Teardown -----------------------------------------------------------------------------------------------------
 */

static stet_status drop_doc(void *ctx, const char *id, stet_error *err) {
    reconciling *x = ctx;
    return stet_tx_drop(x->tx, &(stet_docname){id, NULL}, err);
}

static stet_status drop_node(void *ctx, const char *id, stet_error *err) {
    reconciling *x = ctx;
    *stet_vec_add(&x->r->children->gone) = stet_strdup(id);
    if (!stet_find(x->failures, id, strlen(id), NULL))
        return STET_OK;
    stet_path path;
    value_path(&path, id);
    stet_patch gone = {.kind = STET_PATCH_REMOVE, .path = stet_path_ref(&path)};
    stet_status status = stet_tx_patch(x->tx, &(stet_docname){x->a->piece->failures, NULL}, &gone, 1, err);
    stet_path_release(&path);
    return status;
}

static const stet_child_visitor teardown = {NULL, drop_node, drop_doc};

static stet_status tear_down(reconciling *x, const char *key, stet_error *err) {
    stet_child_visitor v = teardown;
    v.ctx = x;
    char *instance = stet_child_instance_id(x->a->node, key);
    stet_status status = stet_child_walk(&x->docs, x->piece, &x->old, instance, &v, err);
    stet_free(instance);
    return status;
}

/* ---- One child ----------------------------------------------------------------------------------------------------
 */

static stet_value own_link(const reconciling *x, const char *instance, const char *first, const char *second) {
    char *id = stet_piece_part(x->piece, "child", instance);
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, first);
    if (second)
        stet_path_push(&path, second);
    stet_value out = stet_link_make(id, stet_path_ref(&path));
    stet_path_release(&path);
    stet_free(id);
    return out;
}

static bool is_cell(stet_value binding) {
    stet_value link;
    return stet_link_is(binding, &link) && !stet_as_bool(stet_get(link, "asCell"));
}

/* Where the result of a child is found. */
static stet_value result_link(const reconciling *x, const char *key) {
    char *instance = stet_child_instance_id(x->a->node, key);
    stet_value out =
        x->plain ? stet_child_result(x->t, x->piece, x->a->row, instance) : own_link(x, instance, "result", NULL);
    stet_free(instance);
    return out;
}

static stet_value initial_of(const reconciling *x) {
    stet_value inputs = stet_get(x->a->row, "inputs"), initial;
    return stet_find(inputs, "initial", 7, &initial) ? stet_retain(initial) : stet_null();
}

/* A binding as a value: links stay, what is wrapped because it looks like one is unwrapped. */
static stet_value unwrapped(stet_value binding) {
    stet_value inner;
    if (!stet_binding_is_literal(binding, &inner))
        return binding;
    stet_retain(inner);
    stet_release(binding);
    return inner;
}

static stet_value argument_of(const reconciling *x, const stet_run_child *at, size_t i) {
    stet_value argument = stet_object();
    if (x->role == STET_CHILD_RETURNS) {
        stet_release(argument);
        return stet_retain(at[i].element);
    }
    stet_put(&argument, "element", stet_retain(at[i].element));
    if (x->t->index)
        stet_put(&argument, "index", stet_int((int64_t)i));
    if (x->role == STET_CHILD_REDUCE)
        stet_put(&argument, "accumulator", i ? result_link(x, at[i - 1].key) : unwrapped(initial_of(x)));
    return argument;
}

static stet_value print_of(const reconciling *x, const stet_run_child *at, size_t i) {
    return stet_child_print(at[i].element, x->t->index ? (int64_t)i : -1,
                            x->role == STET_CHILD_REDUCE && i ? at[i - 1].key : NULL);
}

/* Cells of a new child, or those that a new template has more. What is there is somebody's. */
static stet_status write_cells(reconciling *x, const char *instance, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < x->t->pattern->cell_count && status == STET_OK; i++) {
        const stet_pattern_cell *c = &x->t->pattern->cells[i];
        char *local = stet_asprintf("%s.%s", instance, c->name), *id = stet_piece_part(x->piece, "cell", local);
        if (c->has_default && !there(x->tx, id))
            status = put_value(x->tx, id, stet_retain(c->initial), err);
        stet_free(local);
        stet_free(id);
    }
    return status;
}

static stet_status make_child(reconciling *x, const stet_run_child *at, size_t i, stet_error *err) {
    char *instance = stet_child_instance_id(x->a->node, at[i].key), *id = stet_piece_part(x->piece, "child", instance);
    stet_value child = stet_object();
    stet_put(&child, "argument", argument_of(x, at, i));
    if (!x->plain)
        stet_put(&child, "result", stet_child_result(x->t, x->piece, x->a->row, instance));
    stet_status status = put_value(x->tx, id, child, err);
    if (status == STET_OK)
        status = write_cells(x, instance, err);
    for (size_t n = 0; n < x->t->shape->node_count && status == STET_OK; n++) {
        char *node = stet_asprintf("%s.%s", instance, x->t->shape->nodes[n].id);
        if (strlen(node) > STET_CHILD_ID_MAX) {
            status = stet_fail(err, STET_LIMIT, "the id \"%.80s...\" of a child has more than %d bytes", node,
                               STET_CHILD_ID_MAX);
            stet_hint(err, "give nodes that have children shorter names, or nest them less deeply");
            stet_free(node);
        } else {
            *stet_vec_add(&x->r->children->made) = node;
        }
    }
    stet_free(instance);
    stet_free(id);
    return status;
}

static stet_status give_argument(reconciling *x, const stet_run_child *at, size_t i, stet_error *err) {
    char *instance = stet_child_instance_id(x->a->node, at[i].key), *id = stet_piece_part(x->piece, "child", instance);
    stet_path path;
    value_path(&path, "argument");
    stet_status status =
        stet_tx_write(x->tx, &(stet_docname){id, NULL}, stet_path_ref(&path), argument_of(x, at, i), err);
    stet_path_release(&path);
    stet_free(instance);
    stet_free(id);
    return status;
}

/* ---- Every child: another template, or records that can't be trusted ----------------------------------------------
 */

static bool trusted(reconciling *x, const char *id, stet_value row) {
    stet_arena arena = STET_ARENA_INIT;
    stet_memo_action m = {0};
    stet_value print = stet_get(row, "fingerprint");
    stet_hash want;
    size_t len = 0;
    const char *hex = stet_typeof(print) == STET_STRING ? stet_as_string(&print, &len) : "";
    bool yes = stet_hash_of_hex(hex, len, &want) &&
               x->s->memo->ops->load(x->s->memo, x->a->piece->piece->doc, id, &arena, &m, NULL) == STET_OK &&
               m.observed && m.state != STET_UNKNOWN && stet_hash_equal(m.implementation, want) &&
               stet_hash_equal(m.runtime, x->s->runtime);
    stet_arena_release(&arena);
    return yes;
}

static stet_status drop_children_of(reconciling *x, const char *node, stet_error *err) {
    stet_child_visitor v = teardown;
    v.ctx = x;
    return stet_child_walk_all(&x->docs, x->piece, node, &v, err);
}

/* Nodes of a child that the template no longer has, and children of nodes that have none any more. */
static stet_status drop_old_nodes(reconciling *x, const char *instance, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t n = 0; n < stet_count(x->old.nodes) && status == STET_OK; n++) {
        stet_value name = stet_at(x->old.nodes, n);
        const stet_process_node *now = stet_process_find(x->t->shape, stet_as_string(&name, NULL));
        if (now && stet_child_role_of(now->row) != STET_CHILD_NONE)
            continue;
        char *node = stet_asprintf("%s.%s", instance, stet_as_string(&name, NULL));
        status = drop_children_of(x, node, err);
        if (status == STET_OK && !now) {
            char *id = stet_piece_part(x->piece, "node", node);
            status = drop_doc(x, id, err);
            stet_free(id);
            if (status == STET_OK)
                status = drop_node(x, node, err);
        }
        stet_free(node);
    }
    return status;
}

static stet_status look_at_child(reconciling *x, const stet_run_child *at, size_t i, stet_error *err) {
    char *instance = stet_child_instance_id(x->a->node, at[i].key), *id = stet_piece_part(x->piece, "child", instance);
    stet_value rows, child = stet_object();
    stet_put(&child, "argument", argument_of(x, at, i));
    if (!x->plain)
        stet_put(&child, "result", stet_child_result(x->t, x->piece, x->a->row, instance));
    stet_status status = put_value(x->tx, id, child, err);
    if (status == STET_OK)
        status = write_cells(x, instance, err);
    if (status == STET_OK && !x->same)
        status = drop_old_nodes(x, instance, err);
    if (status == STET_OK)
        status = stet_child_rows(x->t, x->piece, x->a->node, x->a->row, instance, NULL, &x->modules, &rows, err);
    if (status == STET_OK) {
        for (size_t n = 0; n < stet_count(rows); n++) {
            const char *node = stet_key_at(rows, n, NULL);
            if (!trusted(x, node, stet_at(rows, n)))
                *stet_vec_add(&x->r->children->made) = stet_strdup(node);
        }
        stet_release(rows);
    }
    stet_free(instance);
    stet_free(id);
    return status;
}

/* ---- The list ------------------------------------------------------------------------------------------------------
 */

static bool key_is(stet_value keys, size_t i, const char *key) {
    stet_value v = stet_at(keys, i);
    return strcmp(stet_as_string(&v, NULL), key) == 0;
}

/* The position of a key in the old index, or SIZE_MAX. Most often it is where it was. */
static size_t old_position(reconciling *x, const char *key, size_t guess) {
    size_t len;
    if (guess < x->old.count && key_is(x->old.keys, guess, key))
        return guess;
    if (!x->mapped) {
        x->mapped = true;
        for (size_t i = 0; i < x->old.count; i++) {
            stet_value v = stet_at(x->old.keys, i);
            const char *text = stet_as_string(&v, &len);
            stet_map_put(&x->positions, text, len, (stet_slot){.n = i + 1});
        }
    }
    const stet_slot *slot = stet_map_get(&x->positions, key, strlen(key));
    return slot ? (size_t)slot->n - 1 : SIZE_MAX;
}

/* Is it the very element that this process gave it last? */
static bool same_element(const reconciling *x, const stet_run_child *at, size_t i, size_t was) {
    if (!x->known || !stet_equal(stet_at(x->memory->elements, was), at[i].element))
        return false;
    if (x->t->index && was != i)
        return false;
    if (x->role != STET_CHILD_REDUCE)
        return true;
    return i == 0 ? was == 0 : was > 0 && key_is(x->old.keys, was - 1, at[i - 1].key);
}

static stet_status each_child(reconciling *x, const stet_run_child *at, size_t len, stet_value *keys,
                              stet_value *prints, stet_error *err) {
    stet_status status = STET_OK;
    bool *kept = stet_alloc_zero((x->old.count ? x->old.count : 1) * sizeof *kept);
    size_t shift = 0;
    for (size_t i = 0; i < len && status == STET_OK; i++) {
        size_t was = old_position(x, at[i].key, i + shift);
        stet_value print;
        if (was == SIZE_MAX) {
            print = print_of(x, at, i);
            status = make_child(x, at, i, err);
        } else {
            stet_value old = stet_at(x->old.prints, was);
            kept[was] = true;
            shift = was > i ? was - i : 0;
            print = same_element(x, at, i, was) ? stet_retain(old) : print_of(x, at, i);
            if (x->full)
                status = look_at_child(x, at, i, err);
            else if (!stet_equal(old, print))
                status = give_argument(x, at, i, err);
        }
        stet_push(keys, stet_string(at[i].key));
        stet_push(prints, print);
    }
    for (size_t i = 0; i < x->old.count && status == STET_OK; i++) {
        stet_value key = stet_at(x->old.keys, i);
        if (!kept[i])
            status = tear_down(x, stet_as_string(&key, NULL), err);
    }
    free(kept);
    return status;
}

/* How many at the start and at the end are the same. */
static void common(stet_value a, stet_value b, size_t *before, size_t *after) {
    size_t n = stet_count(a), m = stet_count(b), least = n < m ? n : m;
    *before = *after = 0;
    while (*before < least && stet_equal(stet_at(a, *before), stet_at(b, *before)))
        ++*before;
    while (*after < least - *before && stet_equal(stet_at(a, n - 1 - *after), stet_at(b, m - 1 - *after)))
        ++*after;
}

static stet_value slice(stet_value list, size_t from, size_t to) {
    stet_value out = stet_array();
    for (size_t i = from; i < to; i++)
        stet_push(&out, stet_retain(stet_at(list, i)));
    return out;
}

/* ---- The index -----------------------------------------------------------------------------------------------------
 */

static stet_value node_names(const reconciling *x) {
    stet_value names = stet_array();
    for (size_t i = 0; x->t && i < x->t->shape->node_count; i++)
        stet_push(&names, stet_string(x->t->shape->nodes[i].id));
    return names;
}

/* All that ever were: a value somebody put there stays until the child goes. */
static stet_value cell_names(const reconciling *x) {
    stet_value names = stet_typeof(x->old.cells) == STET_ARRAY ? stet_retain(x->old.cells) : stet_array();
    for (size_t i = 0; x->t && i < x->t->pattern->cell_count; i++) {
        stet_value name = stet_string(x->t->pattern->cells[i].name);
        bool known = false;
        for (size_t k = 0; k < stet_count(names) && !known; k++)
            known = stet_equal(stet_at(names, k), name);
        if (known)
            stet_release(name);
        else
            stet_push(&names, name);
    }
    return names;
}

static stet_status put_index(reconciling *x, stet_value keys, stet_value prints, stet_value pattern, stet_error *err) {
    char hex[STET_HASH_HEX] = "";
    stet_value v = stet_object();
    if (x->t)
        stet_hash_hex(x->t->hash, hex);
    stet_put(&v, "serial", stet_int(x->old.serial + 1));
    stet_put(&v, "template", stet_string(hex));
    stet_put(&v, "nodes", node_names(x));
    stet_put(&v, "cells", cell_names(x));
    stet_put(&v, "keys", stet_retain(keys));
    stet_put(&v, "prints", stet_retain(prints));
    if (stet_typeof(pattern) != STET_NULL)
        stet_put(&v, "pattern", stet_retain(pattern));
    return put_value(x->tx, x->index_id, v, err);
}

/* Only what differs: an edit of one element must not rewrite the list of all. */
static stet_status patch_index(reconciling *x, stet_value keys, stet_value prints, bool *changed, stet_error *err) {
    size_t before, after, n = stet_count(x->old.keys), m = stet_count(keys);
    STET_VEC(stet_patch) ops = {0};
    stet_arena arena = STET_ARENA_INIT;
    stet_path serial, key_path, print_path;
    value_path(&serial, "serial");
    value_path(&key_path, "keys");
    value_path(&print_path, "prints");
    common(x->old.keys, keys, &before, &after);
    if (before + after < n || before + after < m) {
        *stet_vec_add(&ops) = (stet_patch){.kind = STET_PATCH_SPLICE,
                                           .path = stet_path_ref(&key_path),
                                           .index = before,
                                           .count = n - after - before,
                                           .value = slice(keys, before, m - after)};
        *stet_vec_add(&ops) = (stet_patch){.kind = STET_PATCH_SPLICE,
                                           .path = stet_path_ref(&print_path),
                                           .index = before,
                                           .count = n - after - before,
                                           .value = slice(prints, before, m - after)};
    }
    for (size_t i = 0; i < m; i++) {
        if (i == before && m - after > before)
            i = m - after; /* those were put in as a whole */
        if (i >= m)
            break;
        size_t was = i < before ? i : i + n - m;
        if (stet_equal(stet_at(x->old.prints, was), stet_at(prints, i)))
            continue;
        stet_path_push_index(&print_path, i);
        stet_pathref at = stet_path_ref(&print_path);
        *stet_vec_add(&ops) = (stet_patch){.kind = STET_PATCH_REPLACE,
                                           .path = {stet_arena_dup(&arena, at.bytes, at.len), at.len},
                                           .value = stet_retain(stet_at(prints, i))};
        stet_path_pop(&print_path);
    }
    stet_status status = STET_OK;
    *changed = ops.len > 0;
    if (ops.len > 1000) { /* as much as all of it */
        status = put_index(x, keys, prints, x->old.pattern, err);
    } else if (ops.len > 0) {
        *stet_vec_add(&ops) = (stet_patch){
            .kind = STET_PATCH_REPLACE, .path = stet_path_ref(&serial), .value = stet_int(x->old.serial + 1)};
        status = stet_tx_patch(x->tx, &(stet_docname){x->index_id, NULL}, ops.at, ops.len, err);
    }
    for (size_t i = 0; i < ops.len; i++)
        stet_release(ops.at[i].value);
    stet_vec_release(&ops);
    stet_arena_release(&arena);
    stet_path_release(&serial);
    stet_path_release(&key_path);
    stet_path_release(&print_path);
    return status;
}

/* ---- The output ----------------------------------------------------------------------------------------------------
 */

static stet_value output_entry(const reconciling *x, stet_value key) {
    const char *text = stet_as_string(&key, NULL);
    stet_value link = result_link(x, text);
    if (x->role != STET_CHILD_FILTER)
        return link;
    stet_value entry = stet_object();
    char *instance = stet_child_instance_id(x->a->node, text);
    stet_put(&entry, "element", own_link(x, instance, "argument", "element"));
    stet_put(&entry, "keep", link);
    stet_free(instance);
    return entry;
}

static stet_value output_entries(const reconciling *x, stet_value keys, size_t from, size_t to) {
    stet_value out = stet_array();
    for (size_t i = from; i < to; i++)
        stet_push(&out, output_entry(x, stet_at(keys, i)));
    return out;
}

/* Did anybody else write to the output since the index last changed? A run that changes the one changes the other, in
 * one commit. */
static bool output_touched(reconciling *x) {
    return written_after(x->s, &(stet_docname){x->a->out_id, x->a->out_scope}, x->index_id);
}

static stet_status write_output(reconciling *x, stet_value keys, bool changed, stet_error *err) {
    stet_docname name = {x->a->out_id, x->a->out_scope};
    stet_pathref at = stet_path_ref(&x->a->out_path);
    size_t before, after, n = x->old.count, m = stet_count(keys);
    if (!x->a->out_id)
        return STET_OK;
    if (x->role == STET_CHILD_REDUCE || x->role == STET_CHILD_RETURNS) {
        stet_value last = m ? stet_at(keys, m - 1) : stet_null();
        stet_value out = m                              ? result_link(x, stet_as_string(&last, NULL))
                         : x->role == STET_CHILD_REDUCE ? unwrapped(initial_of(x))
                                                        : stet_null();
        return stet_tx_write(x->tx, &name, at, out, err);
    }
    bool whole = x->full || stet_typeof(x->hold) == STET_NULL || output_touched(x);
    if (!whole && !changed)
        return STET_OK;
    common(x->old.keys, keys, &before, &after);
    if (!whole && before + after == n && n == m)
        return STET_OK;
    if (whole || (n - before - after) + (m - before - after) > 1000)
        return stet_tx_write(x->tx, &name, at, output_entries(x, keys, 0, m), err);
    stet_patch op = {.kind = STET_PATCH_SPLICE,
                     .path = at,
                     .index = before,
                     .count = n - after - before,
                     .value = output_entries(x, keys, before, m - after)};
    stet_status status = stet_tx_patch(x->tx, &name, &op, 1, err);
    stet_release(op.value);
    return status;
}

/* ---- The whole ------------------------------------------------------------------------------------------------------
 */

static stet_status begin(reconciling *x, action_run *r, stet_error *err) {
    *x = (reconciling){.r = r,
                       .s = r->s,
                       .a = r->a,
                       .tx = r->tx,
                       .piece = r->a->piece->piece->name,
                       .role = stet_child_role_of(r->a->row),
                       .modules = sched_modules(r->s),
                       .docs = {r->tx, peek_value}};
    x->index_id = stet_child_index_doc(x->piece, x->a->node);
    if (!r->children)
        r->children = stet_alloc_zero(sizeof *r->children);
    stet_path serial;
    stet_value seen;
    stet_error mine = STET_ERROR_INIT;
    value_path(&serial, "serial");
    /* Who changes the index meanwhile makes this run void: what it writes is a difference. */
    stet_status status = stet_tx_read(x->tx, NULL, &(stet_docname){x->index_id, NULL}, stet_path_ref(&serial),
                                      STET_RECURSIVE, &seen, &mine);
    stet_path_release(&serial);
    if (status == STET_OK || status == STET_NOT_FOUND) {
        stet_error_clear(&mine);
        status = peek_value(x->tx, x->index_id, &x->hold, err);
    } else if (err) {
        stet_error_move(err, &mine);
    }
    if (status == STET_OK && !stet_child_index_read(x->hold, &x->old)) {
        /* A damaged index: whoever it named is found by `stet check`; what there should be is made anew. */
        stet_release(x->hold);
        x->hold = stet_null();
        x->old = (stet_child_index){0};
    }
    if (status == STET_OK)
        status = peek_value(x->tx, x->a->piece->failures, &x->failures, err);
    return status;
}

static void end(reconciling *x) {
    stet_release(x->hold);
    stet_release(x->failures);
    stet_map_release(&x->positions);
    stet_free(x->index_id);
}

static void remember(reconciling *x, const stet_run_child *at, size_t len, bool changed) {
    if (!x->memory)
        x->memory = x->a->children = stet_alloc_zero(sizeof *x->memory);
    if (x->known && !changed)
        return;
    sched_children_forget(x->a);
    x->memory->serial = x->old.serial + (changed ? 1 : 0);
    x->memory->elements = stet_array();
    for (size_t i = 0; i < len; i++)
        stet_push(&x->memory->elements, stet_retain(at[i].element));
    for (size_t i = 0; x->role == STET_CHILD_REDUCE && i < len; i++) {
        uint64_t place = (uint64_t)i * x->t->span;
        stet_map_put(&x->memory->places, at[i].key, strlen(at[i].key),
                     (stet_slot){.n = place < STET_CHILD_CHAIN / 2 ? place : STET_CHILD_CHAIN / 2});
    }
}

static stet_status reconcile(reconciling *x, const stet_run_child *at, size_t len, stet_value pattern,
                             stet_error *err) {
    char hex[STET_HASH_HEX] = "";
    stet_value keys = stet_array(), prints = stet_array();
    bool changed = true;
    if (x->t) {
        stet_value shown = stet_child_result(x->t, x->piece, x->a->row, "-[-]");
        stet_hash_hex(x->t->hash, hex);
        x->plain = is_cell(shown);
        stet_release(shown);
    }
    x->same = stet_typeof(x->old.template) == STET_STRING && strcmp(stet_as_string(&x->old.template, NULL), hex) == 0;
    x->full = x->a->verify || !x->same;
    x->memory = x->a->children;
    x->known =
        !x->full && x->memory && x->memory->serial == x->old.serial && stet_count(x->memory->elements) == x->old.count;
    stet_status status = each_child(x, at, len, &keys, &prints, err);
    if (status == STET_OK) {
        if (x->full || stet_typeof(x->hold) == STET_NULL)
            status = put_index(x, keys, prints, pattern, err);
        else
            status = patch_index(x, keys, prints, &changed, err);
    }
    if (status == STET_OK)
        status = write_output(x, keys, changed, err);
    if (status == STET_OK)
        remember(x, at, len, changed);
    stet_release(keys);
    stet_release(prints);
    return status;
}

stet_status sched_children_set(action_run *r, const stet_run_child *at, size_t len, stet_error *err) {
    reconciling x;
    if (r->s->opts.observe_only)
        return STET_OK;
    if (len > STET_CHILDREN_MAX) {
        stet_fail(err, STET_LIMIT, "%zu elements, more than the %d that may have children of their own", len,
                  STET_CHILDREN_MAX);
        stet_hint(err, "split the list, or compute over it in one action");
        return STET_LIMIT;
    }
    stet_status status = begin(&x, r, err);
    if (status == STET_OK)
        status = stet_child_template(&x.docs, x.piece, x.a->node, x.a->row, &x.modules, &r->s->templates, &x.t, err);
    if (status == STET_OK)
        status = reconcile(&x, at, len, stet_null(), err);
    end(&x);
    r->placed = status == STET_OK;
    return status;
}

/* Schemas that a returned pattern brings with it. */
static stet_status keep_schemas(reconciling *x, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < stet_count(x->t->shape->schemas) && status == STET_OK; i++) {
        char *id = stet_asprintf("schema:%s", stet_key_at(x->t->shape->schemas, i, NULL));
        if (!there(x->tx, id))
            status = put_value(x->tx, id, stet_retain(stet_at(x->t->shape->schemas, i)), err);
        stet_free(id);
    }
    return status;
}

stet_status sched_children_returned(action_run *r, stet_value pattern, stet_error *err) {
    static const stet_pattern_checks checks = {.module = stet_module_check};
    reconciling x;
    stet_pattern *p = NULL;
    stet_status status = STET_OK;
    bool none = stet_typeof(pattern) == STET_NULL;
    if (!none) {
        status = stet_pattern_of_value("the returned pattern", stet_retain(pattern), &checks, &p, NULL, err);
        if (status != STET_OK)
            return status;
    }
    status = begin(&x, r, err);
    if (status == STET_OK && !none) {
        size_t depth = 1;
        for (const char *c = x.a->node; *c; c++)
            depth += *c == ']';
        status = stet_template_of(&r->s->templates, pattern, &x.modules, (int)depth, &x.t, err);
        if (status == STET_OK)
            status = keep_schemas(&x, err);
    }
    if (status == STET_OK) {
        stet_value argument = none                      ? stet_null()
                              : p->has_argument_default ? stet_retain(p->argument_default)
                                                        : stet_object();
        stet_run_child only = {"", argument};
        status = reconcile(&x, &only, none ? 0 : 1, pattern, err);
        stet_release(argument);
    }
    end(&x);
    stet_pattern_free(p);
    r->placed = status == STET_OK;
    return status;
}

/* ---- What follows for the plan
 * ---------------------------------------------------------------------------------------- */

void sched_children_forget(sched_action *a) {
    if (!a->children)
        return;
    stet_release(a->children->keys);
    stet_release(a->children->elements);
    stet_map_release(&a->children->places);
    *a->children = (sched_children){.serial = -1};
}

static void lists_free(struct sched_lists *l) {
    for (size_t i = 0; i < l->made.len; i++)
        stet_free(l->made.at[i]);
    for (size_t i = 0; i < l->gone.len; i++)
        stet_free(l->gone.at[i]);
    stet_vec_release(&l->made);
    stet_vec_release(&l->gone);
    stet_free(l);
}

void sched_children_release(action_run *r) {
    if (r->children)
        lists_free(r->children);
    r->children = NULL;
}

void sched_children_lists(const action_run *r, stet_observation *o) {
    if (!r->children)
        return;
    o->declared_alone = true;
    o->made = (const char *const *)r->children->made.at;
    o->made_count = r->children->made.len;
    o->gone = (const char *const *)r->children->gone.at;
    o->gone_count = r->children->gone.len;
}

static uint32_t find_action(stet_sched *s, const sched_piece *p, const char *node) {
    stet_buf name = STET_BUF(0);
    stet_buf_printf(&name, "%s/%s", p->piece->name, node);
    uint32_t id = stet_plan_find(s->plan, name.data, name.len);
    stet_buf_release(&name);
    return id;
}

/* Out of the plan, unless it is under way: then its end is thrown away (sched_child_there). */
static bool unload(stet_sched *s, const sched_piece *p, const char *node) {
    uint32_t id = find_action(s, p, node);
    if (id == STET_PLAN_NONE)
        return false;
    sched_action *a = stet_plan_data(s->plan, id);
    if (sched_async_running(s, a)) {
        void *state = NULL;
        action_run *run = sched_async_running(s, a);
        if (a->kind->cancel && sched_kind_state(s, a->kind, &state, NULL) == STET_OK)
            a->kind->cancel(state, &run->base);
        return false;
    }
    stet_plan_remove(s->plan, id);
    return true;
}

uint32_t sched_child_place(stet_sched *s, const sched_action *a) {
    stet_value parent = stet_get(a->row, "parent");
    size_t end = stet_child_instance(a->node), from = end;
    if (end == 0 || stet_typeof(parent) != STET_STRING)
        return 0;
    uint32_t id = find_action(s, a->piece, stet_as_string(&parent, NULL));
    const sched_action *c = id == STET_PLAN_NONE ? NULL : stet_plan_data(s->plan, id);
    if (!c || c->role != STET_CHILD_REDUCE || !c->children)
        return 0;
    while (from > 0 && a->node[from - 1] != '[')
        from--;
    const stet_slot *slot = stet_map_get(&c->children->places, a->node + from, end - 1 - from);
    return slot ? (uint32_t)slot->n : 0;
}

/* Links of a chain rank by their place: by what they read alone, a later one that is dirty, too, would not know of
 * those between that still stand. */
static void rank_chain(stet_sched *s, const sched_action *coordinator) {
    for (size_t i = 0; i < stet_plan_count(s->plan); i++) {
        const sched_action *a = stet_plan_data(s->plan, (uint32_t)i);
        if (!a)
            continue;
        stet_value parent = stet_get(a->row, "parent");
        int64_t rank = stet_as_int(stet_get(a->row, "rank"));
        if (stet_typeof(parent) == STET_STRING && a->piece == coordinator->piece && rank > 0 && rank < INT32_MAX &&
            strcmp(stet_as_string(&parent, NULL), coordinator->node) == 0)
            stet_plan_set_rank(s->plan, (uint32_t)i, (uint32_t)rank + sched_child_place(s, a));
    }
}

stet_status sched_children_apply(stet_sched *s, sched_action *a, struct sched_lists *lists, stet_error *err) {
    stet_status status = STET_OK;
    bool some = false;
    if (a->role == STET_CHILD_REDUCE)
        rank_chain(s, a);
    for (size_t i = 0; i < lists->gone.len; i++)
        some |= unload(s, a->piece, lists->gone.at[i]);
    for (size_t i = 0; i < lists->made.len; i++)
        some |= unload(s, a->piece, lists->made.at[i]);
    if (some)
        sched_forget_asked(s);
    for (size_t i = 0; i < lists->made.len && status == STET_OK; i++) {
        uint32_t id;
        status = sched_load_new(s, a->piece->piece->doc, lists->made.at[i], &id, err);
    }
    return status;
}

bool sched_child_there(action_run *r) {
    return !r->a->child_doc || there(r->tx, r->a->child_doc);
}

static bool stored(stet_sched *s, const char *id) {
    stet_doc_state state;
    if (!id || stet_space_load(s->space, s->branch, &(stet_docname){id, NULL}, -1, &state, NULL) != STET_OK)
        return false;
    stet_release(state.value);
    return state.exists;
}

/* A coordinator changes the document of a child in one commit with its index. If it was written later, that was
 * somebody else, and the coordinator puts right what it gave. */
stet_status sched_child_mend(stet_sched *s, sched_action *a, stet_error *err) {
    stet_value parent = stet_get(a->row, "parent");
    if (!a->child_doc || stet_typeof(parent) != STET_STRING || s->opts.observe_only)
        return STET_OK;
    char *index_id = stet_child_index_doc(a->piece->piece->name, stet_as_string(&parent, NULL));
    bool other = written_after(s, &(stet_docname){a->child_doc, NULL}, index_id);
    stet_free(index_id);
    if (!other)
        return STET_OK;
    uint32_t id;
    stet_status status = sched_load(s, a->piece->piece->doc, stet_as_string(&parent, NULL), &id, err);
    if (status != STET_OK)
        return status;
    ((sched_action *)stet_plan_data(s->plan, id))->verify = true;
    if (!stet_plan_is_unknown(s->plan, id))
        stet_plan_mark(s->plan, id, STET_PLAN_UNKNOWN, INT64_MIN / 2);
    return STET_OK;
}

stet_status sched_children_overwritten(stet_sched *s, const stet_doc_change *at, size_t len, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < len; i++)
        if (strstr(at[i].name.id, ":children:"))
            return STET_OK; /* a coordinator's */
    for (size_t i = 0; i < len && status == STET_OK; i++) {
        if (strncmp(at[i].name.id, "piece:", 6) != 0 || !strstr(at[i].name.id, ":child:"))
            continue;
        for (size_t k = 0; k < stet_plan_count(s->plan) && status == STET_OK; k++) {
            sched_action *a = stet_plan_data(s->plan, (uint32_t)k);
            if (a && a->child_doc && strcmp(a->child_doc, at[i].name.id) == 0 &&
                find_action(s, a->piece, a->node) == k) {
                status = sched_child_mend(s, a, err);
                break;
            }
        }
    }
    return status;
}

void sched_children_news(stet_sched *s, const char *doc) {
    const char *name = strncmp(doc, "piece:", 6) == 0 ? strstr(doc, ":children:") : NULL;
    if (!name)
        return;
    char *piece = stet_strndup(doc, (size_t)(name - doc));
    const char *coordinator = name + strlen(":children:");
    bool some = false;
    for (size_t i = 0; i < stet_plan_count(s->plan); i++) {
        sched_action *a = stet_plan_data(s->plan, (uint32_t)i);
        if (!a)
            continue;
        stet_value parent = stet_get(a->row, "parent");
        if (stet_typeof(parent) == STET_STRING && strcmp(stet_as_string(&parent, NULL), coordinator) == 0 &&
            strcmp(a->piece->piece->doc, piece) == 0 && find_action(s, a->piece, a->node) == i &&
            !(sched_async_running(s, a) && stored(s, a->child_doc))) /* its end will be looked at */
            some |= unload(s, a->piece, a->node);
    }
    if (some)
        sched_forget_asked(s);
    stet_free(piece);
}
