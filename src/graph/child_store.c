/* child_store.c - stored children: rows derived from the coordinator's, its index, and what belongs to a child. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/vec.h"
#include "graph/build.h"
#include "graph/piece.h"

char *stet_child_index_doc(const char *piece, const char *coordinator) {
    return stet_piece_part(piece, "children", coordinator);
}

static bool texts(stet_value v) {
    if (stet_value_type(v) != STET_TYPE_ARRAY)
        return false;
    for (size_t i = 0; i < stet_value_count(v); i++)
        if (stet_value_type(stet_value_at(v, i)) != STET_TYPE_STRING)
            return false;
    return true;
}

stet_value stet_child_print(stet_value element, int64_t place, const char *before) {
    enum { PRINT = 14 }; /* bytes: a string of that length needs no memory of its own */
    stet_buf b = STET_BUF(0);
    char text[48];
    stet_json_write(&b, element, STET_JSON_CANONICAL);
    if (place >= 0)
        stet_buf_printf(&b, "\n%lld", (long long)place);
    if (before)
        stet_buf_printf(&b, "\n[%s]", before);
    stet_hash h = stet_hash_of(b.data, b.len);
    stet_buf_release(&b);
    stet_base64url_encode(h.bytes, sizeof h.bytes, text);
    return stet_value_string_n(text, PRINT);
}

bool stet_child_index_read(stet_value v, stet_child_index *out) {
    *out = (stet_child_index){.serial = stet_value_as_int(stet_value_get(v, "serial")),
                              .template = stet_value_get(v, "template"),
                              .nodes = stet_value_get(v, "nodes"),
                              .cells = stet_value_get(v, "cells"),
                              .keys = stet_value_get(v, "keys"),
                              .prints = stet_value_get(v, "prints"),
                              .pattern = stet_value_get(v, "pattern")};
    if (stet_value_type(v) == STET_TYPE_NULL)
        return true;
    out->count = stet_value_count(out->keys);
    return stet_value_type(out->template) == STET_TYPE_STRING && texts(out->nodes) && texts(out->cells) &&
           texts(out->keys) && texts(out->prints) && stet_value_count(out->prints) == out->count &&
           out->count <= STET_CHILDREN_MAX;
}

static stet_status load_index(const stet_child_docs *docs, const char *piece, const char *coordinator, stet_value *hold,
                              stet_child_index *out, stet_error *err) {
    char *id = stet_child_index_doc(piece, coordinator);
    stet_status status = docs->load(docs->ctx, id, hold, err);
    if (status == STET_OK && !stet_child_index_read(*hold, out)) {
        stet_value_release(*hold);
        status = stet_fail(err, STET_CORRUPT, "document \"%s\" is damaged", id);
        stet_hint(err, "stet check --repair, or stet piece delete %s", piece);
    }
    stet_free(id);
    return status;
}

stet_status stet_child_template(const stet_child_docs *docs, const char *piece, const char *coordinator, stet_value row,
                                const stet_process_modules *modules, stet_templates *all, stet_template **out,
                                stet_error *err) {
    stet_child_role role = stet_child_role_of(row);
    stet_value hex = stet_value_get(row, "template"), hold;
    stet_hash hash;
    size_t len = 0;
    const char *text = stet_value_type(hex) == STET_TYPE_STRING ? stet_value_as_string(&hex, &len) : "";
    if (role == STET_CHILD_NONE)
        return stet_fail(err, STET_NOT_FOUND, "node \"%s\" of piece \"%s\" has no children", coordinator, piece);
    if (role != STET_CHILD_RETURNS) {
        *out = stet_hash_of_hex(text, len, &hash) ? stet_template_find(all, hash) : NULL;
        return *out ? STET_OK
                    : stet_template_of(all, stet_value_get(stet_value_get(row, "module"), "pattern"), modules, 1, out,
                                       err);
    }
    stet_child_index index;
    stet_status status = load_index(docs, piece, coordinator, &hold, &index, err);
    if (status != STET_OK)
        return status;
    if (stet_value_type(index.pattern) == STET_TYPE_OBJECT)
        status = stet_template_of(all, index.pattern, modules, 1, out, err);
    else
        status =
            stet_fail(err, STET_NOT_FOUND, "node \"%s\" of piece \"%s\" has returned no pattern", coordinator, piece);
    stet_value_release(hold);
    return status;
}

static stet_status static_row(const stet_child_docs *docs, const stet_piece *p, const char *node, stet_value *row,
                              stet_error *err) {
    char number[16];
    snprintf(number, sizeof number, "%u", stet_process_chunk(node, p->chunks));
    char *id = stet_piece_part(p->name, "process", number);
    stet_value rows, found;
    stet_status status = docs->load(docs->ctx, id, &rows, err);
    stet_free(id);
    if (status != STET_OK)
        return status;
    bool there = stet_value_find(rows, node, strlen(node), &found);
    if (there && stet_value_type(found) == STET_TYPE_OBJECT) {
        *row = stet_value_retain(found);
    } else if (there || (stet_value_type(rows) != STET_TYPE_OBJECT && stet_value_type(rows) != STET_TYPE_NULL)) {
        status = stet_fail(err, STET_CORRUPT, "piece \"%s\": a part of its graph is damaged", p->name);
        stet_hint(err, "stet check --repair has the next stet run of its pattern rebuild it");
    } else
        status = stet_fail(err, STET_NOT_FOUND, "piece \"%s\" has no node \"%s\"", p->name, node);
    stet_value_release(rows);
    return status;
}

/* A node of the piece (`parent` NULL) or of a child. */
static stet_status one_row(const stet_child_docs *docs, const stet_piece *p, const char *parent, stet_value parent_row,
                           const char *instance, const char *local, const stet_process_modules *modules,
                           stet_templates *all, stet_value *row, stet_error *err) {
    if (!parent)
        return static_row(docs, p, local, row, err);
    stet_template *t;
    stet_value rows;
    stet_status status = stet_child_template(docs, p->name, parent, parent_row, modules, all, &t, err);
    if (status == STET_OK)
        status = stet_child_rows(t, p->name, parent, parent_row, instance, local, modules, &rows, err);
    if (status != STET_OK)
        return status;
    if (stet_value_count(rows) == 1)
        *row = stet_value_retain(stet_value_at(rows, 0));
    else
        status = stet_fail(err, STET_NOT_FOUND, "piece \"%s\" has no node \"%s.%s\"", p->name, instance, local);
    stet_value_release(rows);
    return status;
}

stet_status stet_child_row(const stet_child_docs *docs, const stet_piece *p, const char *node,
                           const stet_process_modules *modules, stet_templates *all, stet_value *row, stet_error *err) {
    char *parent = NULL, *instance = NULL;
    stet_value parent_row = stet_value_null();
    stet_status status = STET_OK;
    if (!stet_child_id_valid(node, strlen(node)))
        return stet_fail(err, STET_NOT_FOUND, "piece \"%s\" has no node \"%.100s\"", p->name, node);
    /* From the outermost coordinator inwards; the length of an id limits the number of steps. */
    for (const char *at = node; status == STET_OK;) {
        const char *end = strstr(at, "].");
        if (!end) { /* the node itself */
            status = one_row(docs, p, parent, parent_row, instance, at, modules, all, row, err);
            break;
        }
        char *local = stet_strndup(at, strcspn(at, "["));
        stet_value made;
        status = one_row(docs, p, parent, parent_row, instance, local, modules, all, &made, err);
        if (status == STET_OK && stet_child_role_of(made) == STET_CHILD_NONE) { /* maybe a filter */
            char *hidden = stet_asprintf("%s[]", local);
            stet_value_release(made);
            status = one_row(docs, p, parent, parent_row, instance, hidden, modules, all, &made, err);
            stet_free(hidden);
        }
        stet_free(local);
        if (status == STET_OK) {
            size_t len = (size_t)(end - node) + 1;
            stet_value_release(parent_row);
            parent_row = made;
            stet_free(parent);
            stet_free(instance);
            instance = stet_strndup(node, len);
            parent = stet_child_coordinator(instance, len, stet_child_role_of(made) == STET_CHILD_FILTER);
        }
        at = end + 2;
    }
    stet_value_release(parent_row);
    stet_free(parent);
    stet_free(instance);
    return status;
}

/* A changed template takes effect only when its coordinator has run. Until then a child has the nodes it was made with,
 * as far as the new template still has them. A record of any other node would belong to nobody, and survive a return to
 * the old template. */
static stet_value rows_of_made(const stet_child_index *index, const stet_template *t, const char *instance,
                               stet_value rows) {
    char hex[STET_HASH_HEX];
    stet_hash_hex(t->hash, hex);
    if (strcmp(stet_value_as_string(&index->template, NULL), hex) == 0)
        return rows;
    stet_value some = stet_value_object();
    size_t skip = strlen(instance) + 1; /* and a dot */
    for (size_t i = 0; i < stet_value_count(index->nodes); i++) {
        stet_value name = stet_value_at(index->nodes, i);
        for (size_t k = 0; k < stet_value_count(rows); k++)
            if (strcmp(stet_value_key_at(rows, k, NULL) + skip, stet_value_as_string(&name, NULL)) == 0)
                stet_value_put(&some, stet_value_key_at(rows, k, NULL), stet_value_retain(stet_value_at(rows, k)));
    }
    stet_value_release(rows);
    return some;
}

stet_status stet_child_add_all(const stet_child_docs *docs, stet_process *g, const stet_process_modules *modules,
                               stet_error *err) {
    stet_templates mine = {0}, *all = modules && modules->templates ? modules->templates : &mine;
    stet_status status = STET_OK;
    /* Rows that are added here are visited later in the same loop. */
    for (size_t i = 0; i < g->node_count && status == STET_OK; i++) {
        stet_value row = stet_value_retain(g->nodes[i].row), hold = stet_value_null();
        const char *coordinator = g->nodes[i].id;
        stet_child_index index = {0};
        stet_template *t = NULL;
        if (stet_child_role_of(row) == STET_CHILD_NONE) {
            stet_value_release(row);
            continue;
        }
        status = load_index(docs, g->piece, coordinator, &hold, &index, err);
        /* The node had children before and now returns a pattern, but has not run yet. The old children have no rows
         * any more, and are removed by its next successful run. */
        if (stet_child_role_of(row) == STET_CHILD_RETURNS && stet_value_type(index.pattern) != STET_TYPE_OBJECT)
            index.count = 0;
        if (status == STET_OK && index.count > 0)
            status = stet_child_template(docs, g->piece, coordinator, row, modules, all, &t, err);
        for (size_t k = 0; status == STET_OK && k < index.count; k++) {
            stet_value key = stet_value_at(index.keys, k), rows;
            char *instance = stet_child_instance_id(coordinator, stet_value_as_string(&key, NULL));
            status = stet_child_rows(t, g->piece, coordinator, row, instance, NULL, modules, &rows, err);
            if (status == STET_OK) {
                rows = rows_of_made(&index, t, instance, rows);
                status = stet_process_add_rows(g, rows, err);
                stet_value_release(rows);
            }
            stet_free(instance);
            if (status == STET_OK && g->node_count > STET_PATTERN_MAX_NODES)
                status =
                    stet_fail(err, STET_LIMIT, "piece \"%s\" has more than %d nodes", g->piece, STET_PATTERN_MAX_NODES);
        }
        stet_value_release(hold);
        stet_value_release(row);
    }
    stet_templates_release(&mine);
    return status;
}

static stet_status visit_doc(const stet_child_visitor *v, const char *piece, const char *what, const char *instance,
                             stet_value name, stet_error *err) {
    char *local = stet_value_type(name) == STET_TYPE_STRING
                      ? stet_asprintf("%s.%s", instance, stet_value_as_string(&name, NULL))
                      : stet_strdup(instance);
    char *id = stet_piece_part(piece, what, local);
    stet_status status = v->doc(v->ctx, id, err);
    stet_free(local);
    stet_free(id);
    return status;
}

static stet_status visit_child(const stet_child_visitor *v, const char *piece, const stet_child_index *index,
                               const char *instance, stet_error *err) {
    stet_status status = visit_doc(v, piece, "child", instance, stet_value_null(), err);
    for (size_t i = 0; i < stet_value_count(index->nodes) && status == STET_OK; i++) {
        stet_value name = stet_value_at(index->nodes, i);
        char *id = stet_asprintf("%s.%s", instance, stet_value_as_string(&name, NULL));
        status = visit_doc(v, piece, "node", instance, name, err);
        if (status == STET_OK)
            status = v->node(v->ctx, id, err);
        stet_free(id);
    }
    for (size_t i = 0; i < stet_value_count(index->cells) && status == STET_OK; i++)
        status = visit_doc(v, piece, "cell", instance, stet_value_at(index->cells, i), err);
    return status;
}

typedef STET_VEC(char *) id_list;

/* Visits the children of these coordinators, and of the coordinators among their nodes. */
static stet_status walk(const stet_child_docs *docs, const char *piece, id_list *todo, const stet_child_visitor *v,
                        stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < todo->len && status == STET_OK; i++) {
        stet_value hold;
        stet_child_index index;
        status = load_index(docs, piece, todo->at[i], &hold, &index, err);
        if (status != STET_OK)
            break;
        for (size_t k = 0; k < index.count && status == STET_OK; k++) {
            stet_value key = stet_value_at(index.keys, k);
            char *instance = stet_child_instance_id(todo->at[i], stet_value_as_string(&key, NULL));
            status = visit_child(v, piece, &index, instance, err);
            for (size_t n = 0; n < stet_value_count(index.nodes); n++) {
                stet_value name = stet_value_at(index.nodes, n);
                *stet_vec_add(todo) = stet_asprintf("%s.%s", instance, stet_value_as_string(&name, NULL));
            }
            stet_free(instance);
        }
        if (status == STET_OK && stet_value_type(hold) != STET_TYPE_NULL) {
            char *id = stet_child_index_doc(piece, todo->at[i]);
            status = v->doc(v->ctx, id, err);
            stet_free(id);
        }
        stet_value_release(hold);
    }
    for (size_t i = 0; i < todo->len; i++)
        stet_free(todo->at[i]);
    stet_vec_release(todo);
    return status;
}

stet_status stet_child_walk(const stet_child_docs *docs, const char *piece, const stet_child_index *index,
                            const char *instance, const stet_child_visitor *visit, stet_error *err) {
    id_list todo = {0};
    stet_status status = visit_child(visit, piece, index, instance, err);
    for (size_t n = 0; n < stet_value_count(index->nodes); n++) {
        stet_value name = stet_value_at(index->nodes, n);
        *stet_vec_add(&todo) = stet_asprintf("%s.%s", instance, stet_value_as_string(&name, NULL));
    }
    stet_status inner = walk(docs, piece, &todo, visit, status == STET_OK ? err : NULL);
    return status == STET_OK ? inner : status;
}

stet_status stet_child_walk_all(const stet_child_docs *docs, const char *piece, const char *coordinator,
                                const stet_child_visitor *visit, stet_error *err) {
    id_list todo = {0};
    *stet_vec_add(&todo) = stet_strdup(coordinator);
    return walk(docs, piece, &todo, visit, err);
}
