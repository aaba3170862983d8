/* cells.c - which inputs of a node are cells, and where the node may write through them. */

#include "graph/cells.h"

#include <stdio.h>
#include <string.h>

#include "graph/child.h"

static bool says_cell(stet_value schema) {
    return stet_value_type(schema) == STET_TYPE_OBJECT && stet_value_as_bool(stet_value_get(schema, "asCell"));
}

/* What a schema of all inputs says about one input: by name, by position, or by name in the only object of a tuple. */
static bool schema_says(stet_value schema, bool handler, const char *key, size_t len) {
    stet_value v, items = stet_value_get(schema, "prefixItems");
    size_t index, first = handler; /* a handler's first argument is the event */
    if (stet_value_type(schema) != STET_TYPE_OBJECT)
        return false;
    if (stet_value_find(stet_value_get(schema, "properties"), key, len, &v) && says_cell(v))
        return true;
    if (stet_value_type(items) != STET_TYPE_ARRAY || stet_value_count(items) <= first)
        return false;
    if (stet_path_index(key, len, &index))
        return index < stet_value_count(items) - first && says_cell(stet_value_at(items, index + first));
    return stet_value_find(stet_value_get(stet_value_at(items, first), "properties"), key, len, &v) && says_cell(v);
}

bool stet_cells_by_schema(stet_value node, stet_value module, const char *key, size_t len) {
    bool handler = stet_value_as_bool(stet_value_get(module, "handler"));
    return schema_says(stet_value_get(node, "argumentSchema"), handler, key, len) ||
           schema_says(stet_value_get(module, "argumentSchema"), handler, key, len);
}

void stet_cells_mark(stet_value *inputs, stet_value node, stet_value module) {
    for (size_t i = 0; i < stet_value_count(*inputs); i++) {
        size_t len;
        const char *key = stet_value_key_at(*inputs, i, &len);
        if (!stet_link_is(stet_value_at(*inputs, i), NULL) || !stet_cells_by_schema(node, module, key, len))
            continue;
        char *name = stet_strndup(key, len);
        stet_value link = stet_value_retain(stet_value_at(*inputs, i));
        stet_link_put(&link, "asCell", stet_value_bool(true));
        stet_value_put_n(inputs, name, len, link);
        stet_free(name);
    }
}

bool stet_cells_input_path(stet_value v, stet_path *out) {
    if (stet_value_type(v) == STET_TYPE_ARRAY)
        return stet_value_count(v) > 0 && stet_path_of_value(out, v, NULL) == STET_OK;
    size_t len;
    const char *s = stet_value_type(v) == STET_TYPE_STRING ? stet_value_as_string(&v, &len) : NULL;
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
        else if (stet_value_type(cur) == STET_TYPE_OBJECT)
            there = stet_value_find(cur, key, len, &cur);
        else if (stet_value_type(cur) == STET_TYPE_ARRAY && stet_path_index(key, len, &index) &&
                 index < stet_value_count(cur))
            cur = stet_value_at(cur, index);
        else
            there = false;
    }
    stet_buf_release(&scratch);
    *reference = cur;
    *taken = cursor;
    return there;
}

bool stet_cells_outside(const char *id) {
    return strncmp(id, "file:", 5) == 0 || strncmp(id, "glob:", 5) == 0 || strncmp(id, "env:", 4) == 0;
}

bool stet_cells_closed(const char *id) {
    static const char *const kept[] = {"program:", "schema:"};
    if (stet_cells_outside(id))
        return true;
    static const char *const parts[] = {
        ":node:", ":child:", ":children:", ":process:", ":event:", ":queue", ":undelivered:"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strncmp(id, kept[i], strlen(kept[i])) == 0)
            return true;
    const char *part = strncmp(id, "piece:", 6) == 0 ? strchr(id + 6, ':') : NULL;
    for (size_t i = 0; part && i < sizeof parts / sizeof *parts; i++)
        if (strncmp(part, parts[i], strlen(parts[i])) == 0)
            return true;
    return stet_piece_name_of(id) != NULL;
}

/* The link with more keys at its end. */
static stet_value extended(stet_value link, stet_pathref rest) {
    stet_link l;
    stet_path path = STET_PATH_INIT;
    stet_value out = stet_value_null();
    if (stet_link_read(link, &l, &path)) {
        stet_buf_add(&path.buf, rest.bytes, rest.len);
        out = stet_link_make(&(stet_docname){l.id, l.scope}, stet_path_ref(&path));
    }
    stet_path_release(&path);
    return out;
}

static void declared(stet_value row, stet_value paths, stet_value *out) {
    for (size_t i = 0; i < stet_value_count(paths); i++) {
        stet_path path = STET_PATH_INIT;
        stet_value link;
        size_t taken;
        if (stet_cells_input_path(stet_value_at(paths, i), &path) &&
            stet_cells_reference(stet_value_get(row, "inputs"), stet_path_ref(&path), &link, &taken)) {
            stet_pathref p = stet_path_ref(&path);
            stet_value_push(out, extended(link, (stet_pathref){p.bytes + taken, p.len - taken}));
        }
        stet_path_release(&path);
    }
}

typedef struct cell_list {
    stet_value links;
    bool all; /* every link, and not only inputs that are cells */
} cell_list;

static void add_link(stet_value *links, stet_value link) {
    for (size_t i = 0; i < stet_value_count(*links); i++)
        if (stet_value_equal(stet_value_at(*links, i), link)) {
            stet_value_release(link);
            return;
        }
    stet_value_push(links, link);
}

static bool add_cell(void *ctx, stet_value binding, stet_pathref place) {
    cell_list *c = ctx;
    stet_link l;
    stet_path path = STET_PATH_INIT;
    (void)place;
    if (stet_link_read(binding, &l, &path) && (l.as_cell || c->all) && !l.space)
        add_link(&c->links, extended(binding, STET_PATH_ROOT));
    stet_path_release(&path);
    return true;
}

/* Adds what is at a path into the inputs: one link with more keys, or all links below. */
static void add_passed(stet_value inputs, stet_pathref path, stet_value *out) {
    stet_value cur = inputs;
    size_t cursor = 0, len, index;
    const char *key;
    stet_buf scratch = STET_BUF(0);
    bool there = true;
    while (there && !stet_link_is(cur, NULL) && !stet_binding_is_literal(cur, NULL) &&
           stet_path_next(path, &cursor, &scratch, &key, &len)) {
        if (stet_value_type(cur) == STET_TYPE_OBJECT)
            there = stet_value_find(cur, key, len, &cur);
        else if (stet_value_type(cur) == STET_TYPE_ARRAY && stet_path_index(key, len, &index) &&
                 index < stet_value_count(cur))
            cur = stet_value_at(cur, index);
        else
            there = false;
    }
    stet_buf_release(&scratch);
    stet_link l;
    stet_path to = STET_PATH_INIT;
    if (there && stet_link_is(cur, NULL)) {
        if (stet_link_read(cur, &l, &to) && !l.space)
            add_link(out, extended(cur, (stet_pathref){path.bytes + cursor, path.len - cursor}));
    } else if (there) {
        cell_list all = {*out, true};
        stet_binding_walk(cur, add_cell, &all);
        *out = all.links;
    }
    stet_path_release(&to);
}

static bool note_read(void *ctx, stet_value binding, stet_pathref place) {
    stet_map *read = ctx;
    stet_link l;
    stet_path path = STET_PATH_INIT;
    (void)place;
    if (stet_link_read(binding, &l, &path) && !l.space) {
        char *key = stet_asprintf("%s\n%s", l.scope, l.id);
        stet_map_put(read, key, strlen(key), (stet_slot){.n = 1});
        stet_free(key);
    }
    stet_path_release(&path);
    return true;
}

static bool is_declared(stet_value row) {
    return stet_value_find(row, "materializerWriteInputPaths", 27, NULL);
}

stet_value stet_cells_row_envelopes(stet_value row) {
    stet_value paths = stet_value_get(row, "materializerWriteInputPaths"), inputs = stet_value_get(row, "inputs"),
               passes = stet_value_get(row, "passes");
    cell_list cells = {stet_value_array(), false};
    declared(row, paths, &cells.links);
    /* What a coordinator declares about itself does not bind its children. */
    if (!is_declared(row) || stet_child_role_of(row) != STET_CHILD_NONE)
        stet_binding_walk(inputs, add_cell, &cells);
    for (size_t i = 0; i < stet_value_count(passes); i++) {
        stet_value to = stet_value_at(passes, i);
        stet_path path = STET_PATH_INIT;
        if (stet_link_is(to, NULL))
            add_link(&cells.links, stet_value_retain(to));
        else if (stet_path_of_value(&path, to, NULL) == STET_OK)
            add_passed(inputs, stet_path_ref(&path), &cells.links);
        stet_path_release(&path);
    }
    return cells.links;
}

/* The input of a coordinator that provides a member of its children's argument, if that has another name. */
static const char *input_behind(const char *key, size_t len) {
    if (len == 7 && memcmp(key, "element", 7) == 0)
        return "list"; /* a copy, but links in it keep their targets */
    return len == 11 && memcmp(key, "accumulator", 11) == 0 ? "initial" : NULL;
}

/* Adds a place in the argument of a child. */
static void add_pass(stet_pathref path, stet_value *out) {
    stet_buf scratch = STET_BUF(0);
    size_t cursor = 0, len;
    const char *key, *input = NULL;
    stet_value keys = stet_value_array();
    bool some = stet_path_next(path, &cursor, &scratch, &key, &len); /* "argument" */
    while (some && stet_path_next(path, &cursor, &scratch, &key, &len)) {
        if (stet_value_count(keys) == 0)
            input = input_behind(key, len);
        stet_value_push(&keys, stet_value_string_n(key, len));
    }
    add_link(out, keys);
    if (input) {
        stet_value behind = stet_value_array();
        stet_value_push(&behind, stet_value_string(input));
        add_link(out, behind);
    }
    stet_buf_release(&scratch);
}

stet_value stet_cells_passes(const stet_process *shape) {
    stet_value out = stet_value_array();
    char *argument = stet_piece_part(shape->piece, "child", STET_CHILD_SHAPE),
         *own = stet_asprintf("%s:", shape->result);
    for (size_t i = 0; i < shape->node_count; i++) {
        stet_value links = stet_value_get(shape->nodes[i].row, "materializer");
        for (size_t k = 0; k < stet_value_count(links); k++) {
            stet_link l;
            stet_path path = STET_PATH_INIT;
            bool there = stet_link_read(stet_value_at(links, k), &l, &path);
            if (there && strcmp(l.id, argument) == 0)
                add_pass(stet_path_ref(&path), &out);
            else if (there && strncmp(l.id, own, strlen(own)) != 0) /* not a cell of the child itself */
                add_link(&out, stet_value_retain(stet_value_at(links, k)));
            stet_path_release(&path);
        }
    }
    stet_free(argument);
    stet_free(own);
    return out;
}

/* The document that is the node's own output, as scope and id in the form of note_read; or NULL. */
static char *own_output(stet_value row) {
    stet_link l;
    stet_path path = STET_PATH_INIT;
    char *id = stet_link_read(stet_value_get(row, "output"), &l, &path) ? stet_asprintf("%s\n%s", l.scope, l.id) : NULL;
    stet_path_release(&path);
    return id;
}

/* The pattern node from which a row was made; that of a filter's coordinator is called NAME[]. */
static const stet_pattern_node *authored(const stet_pattern *p, const char *id) {
    size_t len = strlen(id);
    if (len > 2 && strcmp(id + len - 2, "[]") == 0)
        len -= 2;
    const stet_slot *slot = stet_map_get(&p->names, id, len);
    return slot ? &p->nodes[slot->n / 2] : NULL;
}

void stet_cells_envelopes(stet_process *g, const stet_pattern *p) {
    stet_map read = {0};
    bool looked = false;
    for (size_t i = 0; i < g->node_count; i++) {
        stet_value *row = &g->nodes[i].row;
        const stet_pattern_node *n = authored(p, g->nodes[i].id);
        if (!n || n->kind == STET_NODE_HANDLER)
            continue;
        stet_value envelopes = stet_cells_row_envelopes(*row);
        if (stet_value_count(envelopes) == 0) {
            stet_value_release(envelopes);
            continue;
        }
        stet_value_put(row, "materializer", envelopes);
        if (is_declared(*row))
            continue;
        for (size_t k = 0; !looked && k <= g->node_count; k++) {
            stet_binding_walk(k < g->node_count ? stet_value_get(g->nodes[k].row, "inputs") : g->binding, note_read,
                              &read);
            looked = k == g->node_count;
        }
        char *own = own_output(*row);
        if (n->kind != STET_NODE_COMPUTATION || n->explicit_output || (own && stet_map_get(&read, own, strlen(own))))
            stet_value_put(row, "onDemand", stet_value_bool(true));
        stet_free(own);
    }
    stet_map_release(&read);
}
