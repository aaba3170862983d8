/* children.c - the children of an action: creates missing ones, gives each its element, tears down removed ones.
 *
 * The list is compared with the index, and only the difference is written.
 */

#include "graph/cells.h"
#include "scheduler/children_internal.h"

static bool key_is(stet_value keys, size_t i, const char *key) {
    stet_value v = stet_value_at(keys, i);
    return strcmp(stet_value_as_string(&v, NULL), key) == 0;
}

/* The position of a key in the old index, or SIZE_MAX. Most often it is where it was. */
static size_t old_position(reconciling *x, const char *key, size_t guess) {
    size_t len;
    if (guess < x->old.count && key_is(x->old.keys, guess, key))
        return guess;
    if (!x->mapped) {
        x->mapped = true;
        for (size_t i = 0; i < x->old.count; i++) {
            stet_value v = stet_value_at(x->old.keys, i);
            const char *text = stet_value_as_string(&v, &len);
            stet_map_put(&x->positions, text, len, (stet_slot){.n = i + 1});
        }
    }
    const stet_slot *slot = stet_map_get(&x->positions, key, strlen(key));
    return slot ? (size_t)slot->n - 1 : SIZE_MAX;
}

/* Is it the very element that this process gave it last? */
static bool same_element(const reconciling *x, const stet_run_child *at, size_t i, size_t was) {
    if (!x->known || !stet_value_equal(stet_value_at(x->memory->elements, was), at[i].element))
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
            print = children_print_of(x, at, i);
            status = children_make(x, at, i, err);
        } else {
            stet_value old = stet_value_at(x->old.prints, was);
            kept[was] = true;
            shift = was > i ? was - i : 0;
            print = same_element(x, at, i, was) ? stet_value_retain(old) : children_print_of(x, at, i);
            if (x->full)
                status = children_look_at(x, at, i, err);
            else if (!stet_value_equal(old, print))
                status = children_give(x, at, i, err);
        }
        stet_value_push(keys, stet_value_string(at[i].key));
        stet_value_push(prints, print);
    }
    for (size_t i = 0; i < x->old.count && status == STET_OK; i++) {
        stet_value key = stet_value_at(x->old.keys, i);
        if (!kept[i])
            status = children_tear_down(x, stet_value_as_string(&key, NULL), err);
    }
    free(kept);
    return status;
}

/* How many at the start and at the end are the same. */
static void common(stet_value a, stet_value b, size_t *before, size_t *after) {
    size_t n = stet_value_count(a), m = stet_value_count(b), least = n < m ? n : m;
    *before = *after = 0;
    while (*before < least && stet_value_equal(stet_value_at(a, *before), stet_value_at(b, *before)))
        ++*before;
    while (*after < least - *before &&
           stet_value_equal(stet_value_at(a, n - 1 - *after), stet_value_at(b, m - 1 - *after)))
        ++*after;
}

static stet_value slice(stet_value list, size_t from, size_t to) {
    stet_value out = stet_value_array();
    for (size_t i = from; i < to; i++)
        stet_value_push(&out, stet_value_retain(stet_value_at(list, i)));
    return out;
}

static stet_value node_names(const reconciling *x) {
    stet_value names = stet_value_array();
    for (size_t i = 0; x->t && i < x->t->shape->node_count; i++)
        stet_value_push(&names, stet_value_string(x->t->shape->nodes[i].id));
    return names;
}

/* All that ever were: a value somebody put there stays until the child goes. */
static stet_value cell_names(const reconciling *x) {
    stet_value names =
        stet_value_type(x->old.cells) == STET_TYPE_ARRAY ? stet_value_retain(x->old.cells) : stet_value_array();
    for (size_t i = 0; x->t && i < x->t->pattern->cell_count; i++) {
        stet_value name = stet_value_string(x->t->pattern->cells[i].name);
        bool known = false;
        for (size_t k = 0; k < stet_value_count(names) && !known; k++)
            known = stet_value_equal(stet_value_at(names, k), name);
        if (known)
            stet_value_release(name);
        else
            stet_value_push(&names, name);
    }
    return names;
}

static stet_status put_index(reconciling *x, stet_value keys, stet_value prints, stet_value pattern, stet_error *err) {
    char hex[STET_HASH_HEX] = "";
    stet_value v = stet_value_object();
    if (x->t)
        stet_hash_hex(x->t->hash, hex);
    stet_value_put(&v, "serial", stet_value_int(x->old.serial + 1));
    stet_value_put(&v, "template", stet_value_string(hex));
    stet_value_put(&v, "nodes", node_names(x));
    stet_value_put(&v, "cells", cell_names(x));
    stet_value_put(&v, "keys", stet_value_retain(keys));
    stet_value_put(&v, "prints", stet_value_retain(prints));
    stet_value_put(&v, "marks", stet_value_bool(true)); /* what people and handlers write into cells is marked */
    if (stet_value_type(pattern) != STET_TYPE_NULL)
        stet_value_put(&v, "pattern", stet_value_retain(pattern));
    return children_put(x, x->index_id, v, err);
}

/* Only what differs: an edit of one element must not rewrite the list of all. */
static stet_status patch_index(reconciling *x, stet_value keys, stet_value prints, bool *changed, stet_error *err) {
    size_t before, after, n = stet_value_count(x->old.keys), m = stet_value_count(keys);
    STET_VEC(stet_patch) ops = {0};
    stet_arena arena = STET_ARENA_INIT;
    stet_path serial, key_path, print_path;
    children_value_path(&serial, "serial");
    children_value_path(&key_path, "keys");
    children_value_path(&print_path, "prints");
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
        if (stet_value_equal(stet_value_at(x->old.prints, was), stet_value_at(prints, i)))
            continue;
        stet_path_push_index(&print_path, i);
        stet_pathref at = stet_path_ref(&print_path);
        *stet_vec_add(&ops) = (stet_patch){.kind = STET_PATCH_REPLACE,
                                           .path = {stet_arena_dup(&arena, at.bytes, at.len), at.len},
                                           .value = stet_value_retain(stet_value_at(prints, i))};
        stet_path_pop(&print_path);
    }
    stet_status status = STET_OK;
    *changed = ops.len > 0;
    if (ops.len > 1000) { /* as much as all of it */
        status = put_index(x, keys, prints, x->old.pattern, err);
    } else if (ops.len > 0) {
        *stet_vec_add(&ops) = (stet_patch){
            .kind = STET_PATCH_REPLACE, .path = stet_path_ref(&serial), .value = stet_value_int(x->old.serial + 1)};
        status = stet_tx_patch(x->tx, &(stet_docname){x->index_id, x->a->piece->piece->scope}, ops.at, ops.len, err);
    }
    for (size_t i = 0; i < ops.len; i++)
        stet_value_release(ops.at[i].value);
    stet_vec_release(&ops);
    stet_arena_release(&arena);
    stet_path_release(&serial);
    stet_path_release(&key_path);
    stet_path_release(&print_path);
    return status;
}

static stet_value output_entry(const reconciling *x, stet_value key) {
    const char *text = stet_value_as_string(&key, NULL);
    stet_value link = children_result_link(x, text);
    if (x->role != STET_CHILD_FILTER)
        return link;
    stet_value entry = stet_value_object();
    char *instance = stet_child_instance_id(x->a->node, text);
    stet_value_put(&entry, "element", stet_child_place(x->piece, instance, "argument", "element"));
    stet_value_put(&entry, "keep", link);
    stet_free(instance);
    return entry;
}

static stet_value output_entries(const reconciling *x, stet_value keys, size_t from, size_t to) {
    stet_value out = stet_value_array();
    for (size_t i = from; i < to; i++)
        stet_value_push(&out, output_entry(x, stet_value_at(keys, i)));
    return out;
}

/* Did anybody else write to the output since the index last changed? A run that changes the one changes the other, in
 * one commit. */
static bool output_touched(reconciling *x) {
    stet_docname index = stet_piece_name(x->a->piece->piece, x->index_id);
    return children_written_after(x->s, &(stet_docname){x->a->out_id, x->a->out_scope}, &index);
}

static stet_status write_output(reconciling *x, stet_value keys, bool changed, stet_error *err) {
    stet_docname name = {x->a->out_id, x->a->out_scope};
    stet_pathref at = stet_path_ref(&x->a->out_path);
    size_t before, after, n = x->old.count, m = stet_value_count(keys);
    if (!x->a->out_id)
        return STET_OK;
    if (x->role == STET_CHILD_REDUCE || x->role == STET_CHILD_RETURNS) {
        stet_value last = m ? stet_value_at(keys, m - 1) : stet_value_null();
        stet_value out = m                              ? children_result_link(x, stet_value_as_string(&last, NULL))
                         : x->role == STET_CHILD_REDUCE ? stet_child_initial(x->a->row)
                                                        : stet_value_null();
        return stet_tx_write(x->tx, &name, at, out, err);
    }
    bool whole = x->full || stet_value_type(x->hold) == STET_TYPE_NULL || output_touched(x);
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
    stet_value_release(op.value);
    return status;
}

static stet_status begin(reconciling *x, action_run *r, stet_error *err) {
    *x = (reconciling){.r = r,
                       .s = r->s,
                       .a = r->a,
                       .tx = r->tx,
                       .piece = r->a->piece->piece->name,
                       .role = stet_child_role_of(r->a->row),
                       .modules = sched_modules(r->s),
                       .docs = {x, children_peek}};
    x->index_id = stet_child_index_doc(x->piece, x->a->node);
    if (!r->children)
        r->children = stet_alloc_zero(sizeof *r->children);
    stet_path serial;
    stet_value seen;
    stet_error mine = STET_ERROR_INIT;
    children_value_path(&serial, "serial");
    /* Who changes the index meanwhile makes this run void: what it writes is a difference. */
    stet_docname index = stet_piece_name(x->a->piece->piece, x->index_id);
    stet_status status = stet_tx_read(x->tx, NULL, &index, stet_path_ref(&serial), STET_RECURSIVE, &seen, &mine);
    stet_path_release(&serial);
    if (status == STET_OK || status == STET_NOT_FOUND) {
        stet_error_clear(&mine);
        status = children_peek(x, x->index_id, &x->hold, err);
    } else if (err) {
        stet_error_move(err, &mine);
    }
    if (status == STET_OK && !stet_child_index_read(x->hold, &x->old)) {
        /* A damaged index: whoever it named is found by `stet check`; what there should be is made anew. */
        stet_value_release(x->hold);
        x->hold = stet_value_null();
        x->old = (stet_child_index){0};
    }
    return status;
}

static void end(reconciling *x) {
    stet_value_release(x->hold);
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
    x->memory->elements = stet_value_array();
    for (size_t i = 0; i < len; i++)
        stet_value_push(&x->memory->elements, stet_value_retain(at[i].element));
    for (size_t i = 0; x->role == STET_CHILD_REDUCE && i < len; i++) {
        uint64_t place = (uint64_t)i * x->t->span;
        stet_map_put(&x->memory->places, at[i].key, strlen(at[i].key),
                     (stet_slot){.n = place < STET_CHILD_CHAIN / 2 ? place : STET_CHILD_CHAIN / 2});
    }
}

/* Does the output show more than what the children make? */
static bool output_leads(const reconciling *x, const stet_run_child *at, size_t len) {
    bool leads = len > 0 && x->t && x->role != STET_CHILD_FILTER && sched_child_leads(x->t);
    for (size_t i = 0; i < len && x->role == STET_CHILD_FILTER && !leads; i++)
        leads = stet_reader_has_links(at[i].element); /* it is shown if it is kept */
    if (len == 0 && x->role == STET_CHILD_REDUCE) {
        stet_value initial = stet_child_initial(x->a->row);
        leads = stet_reader_has_links(initial);
        stet_value_release(initial);
    }
    return leads;
}

static stet_status reconcile(reconciling *x, const stet_run_child *at, size_t len, stet_value pattern,
                             stet_error *err) {
    char hex[STET_HASH_HEX] = "";
    stet_value keys = stet_value_array(), prints = stet_value_array();
    bool changed = true;
    if (x->t) {
        stet_value shown = stet_child_result(x->t, x->piece, x->a->row, STET_CHILD_SHAPE);
        stet_hash_hex(x->t->hash, hex);
        x->plain = stet_child_is_cell(shown);
        stet_value_release(shown);
    }
    x->same = stet_value_type(x->old.template) == STET_TYPE_STRING &&
              strcmp(stet_value_as_string(&x->old.template, NULL), hex) == 0;
    x->full = x->a->verify || !x->same;
    x->r->children->renewed = !x->same && x->old.count > 0;
    x->passes_cells = !x->same || x->a->materializer;
    x->memory = x->a->children;
    x->known = !x->full && x->memory && x->memory->serial == x->old.serial &&
               stet_value_count(x->memory->elements) == x->old.count;
    stet_status status = each_child(x, at, len, &keys, &prints, err);
    if (status == STET_OK) {
        if (x->full || stet_value_type(x->hold) == STET_TYPE_NULL)
            status = put_index(x, keys, prints, pattern, err);
        else
            status = patch_index(x, keys, prints, &changed, err);
    }
    if (status == STET_OK)
        status = write_output(x, keys, changed, err);
    x->r->leads = output_leads(x, at, len);
    stet_plan_set_filled(x->s->plan, x->a->id, x->old.count == 0 && len > 0);
    if (status == STET_OK)
        remember(x, at, len, changed);
    stet_value_release(keys);
    stet_value_release(prints);
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
        status = reconcile(&x, at, len, stet_value_null(), err);
    end(&x);
    r->placed = status == STET_OK;
    return status;
}

/* Schemas that a returned pattern brings with it. */
static stet_status keep_schemas(reconciling *x, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < stet_value_count(x->t->shape->schemas) && status == STET_OK; i++) {
        char *id = stet_asprintf("schema:%s", stet_value_key_at(x->t->shape->schemas, i, NULL));
        if (!children_doc_there(x->tx, &(stet_docname){id, ""}))
            status = children_put(x, id, stet_value_retain(stet_value_at(x->t->shape->schemas, i)), err);
        stet_free(id);
    }
    return status;
}

/* While the node is outdated nobody knows what it will return: what its children may write must be known without them,
 * so they take nothing as a cell that the node is not given as one. */
static stet_status refuse_cells(const reconciling *x, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < stet_value_count(x->t->passes) && status == STET_OK; i++) {
        stet_value to = stet_value_at(x->t->passes, i), given;
        stet_path path = STET_PATH_INIT;
        stet_buf name = STET_BUF(0);
        stet_link l = {0};
        size_t taken;
        bool link = stet_link_is(to, NULL), known = !link && stet_path_of_value(&path, to, NULL) == STET_OK;
        if (link) {
            status = stet_fail(err, STET_INVALID, "the returned pattern takes a document as a cell that is no input");
        } else if (known &&
                   stet_cells_reference(stet_value_get(x->a->row, "inputs"), stet_path_ref(&path), &given, &taken)) {
            stet_path_print(stet_path_ref(&path), &name);
            stet_path_release(&path);
            if (stet_link_read(given, &l, &path) && !l.as_cell)
                status =
                    stet_fail(err, STET_INVALID, "the returned pattern takes %.200s as a cell, and is given a value",
                              stet_buf_cstr(&name));
        }
        if (status != STET_OK)
            stet_hint(err, "bind it to an input of node \"%s\" with \"asCell\": true", x->a->node);
        stet_buf_release(&name);
        stet_path_release(&path);
    }
    return status;
}

stet_status sched_children_returned(action_run *r, stet_value pattern, stet_error *err) {
    static const stet_pattern_checks checks = {.module = stet_module_check};
    reconciling x;
    stet_pattern *p = NULL;
    stet_status status = STET_OK;
    bool none = stet_value_type(pattern) == STET_TYPE_NULL;
    if (!none) {
        status = stet_pattern_of_value("the returned pattern", stet_value_retain(pattern), &checks, &p, NULL, err);
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
            status = refuse_cells(&x, err);
        if (status == STET_OK)
            status = keep_schemas(&x, err);
    }
    if (status == STET_OK) {
        stet_value argument = none                      ? stet_value_null()
                              : p->has_argument_default ? stet_value_retain(p->argument_default)
                                                        : stet_value_object();
        stet_run_child only = {"", argument};
        status = reconcile(&x, &only, none ? 0 : 1, pattern, err);
        stet_value_release(argument);
    }
    end(&x);
    stet_pattern_free(p);
    r->placed = status == STET_OK;
    return status;
}
