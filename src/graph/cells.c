#include "graph/cells.h"

#include <stdio.h>
#include <string.h>

#include "graph/child.h"

/* ---- Cells by schema ------------------------------------------------------------------------------------------- */

static bool says_cell(stet_value schema) {
    return stet_typeof(schema) == STET_OBJECT && stet_as_bool(stet_get(schema, "asCell"));
}

/* What a schema of all inputs says of one: by name, by position, or by name in the one object of a tuple. */
static bool schema_says(stet_value schema, bool handler, const char *key, size_t len) {
    stet_value v, items = stet_get(schema, "prefixItems");
    size_t index, first = handler; /* a handler's first argument is the event */
    if (stet_typeof(schema) != STET_OBJECT)
        return false;
    if (stet_find(stet_get(schema, "properties"), key, len, &v) && says_cell(v))
        return true;
    if (stet_typeof(items) != STET_ARRAY || stet_count(items) <= first)
        return false;
    if (stet_path_index(key, len, &index))
        return index < stet_count(items) - first && says_cell(stet_at(items, index + first));
    return stet_find(stet_get(stet_at(items, first), "properties"), key, len, &v) && says_cell(v);
}

bool stet_cells_by_schema(stet_value node, stet_value module, const char *key, size_t len) {
    bool handler = stet_as_bool(stet_get(module, "handler"));
    return schema_says(stet_get(node, "argumentSchema"), handler, key, len) ||
           schema_says(stet_get(module, "argumentSchema"), handler, key, len);
}

void stet_cells_mark(stet_value *inputs, stet_value node, stet_value module) {
    for (size_t i = 0; i < stet_count(*inputs); i++) {
        size_t len;
        const char *key = stet_key_at(*inputs, i, &len);
        if (!stet_link_is(stet_at(*inputs, i), NULL) || !stet_cells_by_schema(node, module, key, len))
            continue;
        char *name = stet_strndup(key, len);
        stet_value link = stet_retain(stet_at(*inputs, i));
        stet_link_put(&link, "asCell", stet_bool(true));
        stet_put_n(inputs, name, len, link);
        stet_free(name);
    }
}

/* ---- Paths into inputs ----------------------------------------------------------------------------------------- */

bool stet_cells_input_path(stet_value v, stet_path *out) {
    if (stet_typeof(v) == STET_ARRAY)
        return stet_count(v) > 0 && stet_path_of_value(out, v, NULL) == STET_OK;
    size_t len;
    const char *s = stet_typeof(v) == STET_STRING ? stet_as_string(&v, &len) : NULL;
    if (!s || len == 0)
        return false;
    char *pointer = stet_asprintf("%s%s", s[0] == '/' ? "" : "/", s);
    bool fine = stet_path_of_pointer(out, pointer, strlen(pointer), NULL) == STET_OK;
    stet_free(pointer);
    return fine;
}

bool stet_cells_reference(stet_value inputs, stet_pathref path, stet_value *reference, size_t *taken) {
    stet_value cur = inputs;
    size_t cursor = 0, len, index;
    const char *key;
    stet_buf scratch = STET_BUF(0);
    bool there = true;
    while (there && !stet_link_is(cur, NULL) && !stet_binding_is_ref(cur)) {
        if (stet_binding_is_literal(cur, NULL) || !stet_path_next(path, &cursor, &scratch, &key, &len))
            there = false;
        else if (stet_typeof(cur) == STET_OBJECT)
            there = stet_find(cur, key, len, &cur);
        else if (stet_typeof(cur) == STET_ARRAY && stet_path_index(key, len, &index) && index < stet_count(cur))
            cur = stet_at(cur, index);
        else
            there = false;
    }
    stet_buf_release(&scratch);
    *reference = cur;
    *taken = cursor;
    return there;
}

/* ---- Envelopes ------------------------------------------------------------------------------------------------- */

/* The link with more keys at its end. */
static stet_value extended(stet_value link, stet_pathref rest) {
    stet_link l;
    stet_path path = STET_PATH_INIT;
    stet_value out = stet_null();
    if (stet_link_read(link, &l, &path)) {
        stet_buf_add(&path.buf, rest.bytes, rest.len);
        out = stet_link_make(l.id, stet_path_ref(&path));
        if (l.scope[0])
            stet_link_put(&out, "scope", stet_string(l.scope));
    }
    stet_path_release(&path);
    return out;
}

static void declared(stet_value row, stet_value paths, stet_value *out) {
    for (size_t i = 0; i < stet_count(paths); i++) {
        stet_path path = STET_PATH_INIT;
        stet_value link;
        size_t taken;
        if (stet_cells_input_path(stet_at(paths, i), &path) &&
            stet_cells_reference(stet_get(row, "inputs"), stet_path_ref(&path), &link, &taken)) {
            stet_pathref p = stet_path_ref(&path);
            stet_push(out, extended(link, (stet_pathref){p.bytes + taken, p.len - taken}));
        }
        stet_path_release(&path);
    }
}

typedef struct cell_list {
    stet_value links;
} cell_list;

static bool add_cell(void *ctx, stet_value binding, stet_pathref place) {
    cell_list *c = ctx;
    stet_link l;
    stet_path path = STET_PATH_INIT;
    (void)place;
    if (stet_link_read(binding, &l, &path) && l.as_cell && !l.space)
        stet_push(&c->links, extended(binding, STET_PATH_ROOT));
    stet_path_release(&path);
    return true;
}

static bool note_read(void *ctx, stet_value binding, stet_pathref place) {
    stet_map *read = ctx;
    stet_link l;
    stet_path path = STET_PATH_INIT;
    (void)place;
    if (stet_link_read(binding, &l, &path))
        stet_map_put(read, l.id, strlen(l.id), (stet_slot){.n = 1});
    stet_path_release(&path);
    return true;
}

stet_value stet_cells_row_envelopes(stet_value row) {
    stet_value paths;
    cell_list cells = {stet_array()};
    if (stet_find(row, "materializerWriteInputPaths", 27, &paths))
        declared(row, paths, &cells.links);
    else
        stet_binding_walk(stet_get(row, "inputs"), add_cell, &cells);
    return cells.links;
}

/* The document that is the node's own output, or NULL. */
static char *own_output(stet_value row) {
    stet_link l;
    stet_path path = STET_PATH_INIT;
    char *id = stet_link_read(stet_get(row, "output"), &l, &path) ? stet_strdup(l.id) : NULL;
    stet_path_release(&path);
    return id;
}

void stet_cells_envelopes(stet_process *g, const stet_pattern *p) {
    stet_map read = {0};
    bool looked = false;
    for (size_t i = 0; i < g->node_count; i++) {
        stet_value *row = &g->nodes[i].row, envelopes = stet_null();
        const stet_slot *slot = stet_map_get(&p->names, g->nodes[i].id, strlen(g->nodes[i].id));
        if (!slot || stet_child_role_of(*row) != STET_CHILD_NONE) /* a coordinator only passes cells on */
            continue;
        const stet_pattern_node *n = &p->nodes[slot->n / 2];
        if (n->kind != STET_NODE_HANDLER && stet_find(*row, "materializerWriteInputPaths", 27, NULL)) {
            envelopes = stet_cells_row_envelopes(*row);
        } else if (n->kind == STET_NODE_COMPUTATION && !n->explicit_output) {
            envelopes = stet_cells_row_envelopes(*row);
            for (size_t k = 0; !looked && stet_count(envelopes) > 0 && k <= g->node_count; k++) {
                stet_binding_walk(k < g->node_count ? stet_get(g->nodes[k].row, "inputs") : g->binding, note_read,
                                  &read);
                looked = k == g->node_count;
            }
            char *own = stet_count(envelopes) > 0 ? own_output(*row) : NULL;
            if (own && stet_map_get(&read, own, strlen(own))) {
                stet_release(envelopes);
                envelopes = stet_null();
            }
            stet_free(own);
        }
        if (stet_count(envelopes) > 0)
            stet_put(row, "materializer", envelopes);
        else
            stet_release(envelopes);
    }
    stet_map_release(&read);
}
