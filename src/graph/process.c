/* process.c - builds, stores and compares process graphs. */

#include "graph/process.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "graph/build.h"
#include "graph/child.h"
#include "graph/order.h"

bool stet_piece_name_valid(const char *name) {
    return stet_name_valid(name, strlen(name));
}

char *stet_piece_doc(const char *piece) {
    return stet_asprintf("piece:%s", piece);
}

char *stet_piece_part(const char *piece, const char *part, const char *name) {
    return name ? stet_asprintf("piece:%s:%s:%s", piece, part, name) : stet_asprintf("piece:%s:%s", piece, part);
}

const char *stet_piece_name_of(const char *id) {
    if (strncmp(id, "piece:", 6) != 0 || strchr(id + 6, ':') || !stet_piece_name_valid(id + 6))
        return NULL;
    return id + 6;
}

const char *stet_piece_name_of_key(const stet_action_key *key) {
    return key->scope && *key->scope ? NULL : stet_piece_name_of(key->piece);
}

uint32_t stet_process_chunks(size_t nodes) {
    uint32_t n = 1;
    while ((size_t)n * STET_PROCESS_PER_CHUNK < nodes)
        n *= 2;
    return n;
}

uint32_t stet_process_chunk(const char *id, uint32_t chunks) {
    /* FNV-1a: stable across processes and machines, unlike the hash of maps. */
    uint32_t h = 2166136261u;
    for (; *id; id++)
        h = (h ^ (unsigned char)*id) * 16777619u;
    h ^= h >> 15;
    return h & (chunks - 1);
}

bool stet_link_leads_to(const stet_link *l, const stet_docname *name) {
    return !l->space && strcmp(l->id, name->id) == 0 && strcmp(l->scope, name->scope ? name->scope : "") == 0;
}

bool stet_link_read(stet_value v, stet_link *out, stet_path *path) {
    stet_value link, keys;
    if (!stet_link_is(v, &link))
        return false;
    *out = (stet_link){.id_value = stet_get(link, "id"),
                       .scope_value = stet_get(link, "scope"),
                       .space_value = stet_get(link, "space"),
                       .as_cell = stet_as_bool(stet_get(link, "asCell"))};
    if (stet_typeof(out->id_value) != STET_STRING)
        return false;
    out->id = stet_as_string(&out->id_value, NULL);
    out->scope = stet_typeof(out->scope_value) == STET_STRING ? stet_as_string(&out->scope_value, NULL) : "";
    out->space = stet_typeof(out->space_value) == STET_STRING ? stet_as_string(&out->space_value, NULL) : NULL;
    if (!stet_find(link, "path", 4, &keys))
        return true;
    if (stet_typeof(keys) != STET_ARRAY)
        return false;
    for (size_t i = 0; i < stet_count(keys); i++) {
        stet_value key = stet_at(keys, i);
        size_t len;
        if (stet_typeof(key) == STET_INT && stet_as_int(key) >= 0) {
            stet_path_push_index(path, (size_t)stet_as_int(key));
        } else if (stet_typeof(key) == STET_STRING) {
            const char *s = stet_as_string(&key, &len);
            stet_path_push_n(path, s, len);
        } else {
            return false;
        }
    }
    return !path->buf.overflow;
}

stet_value stet_link_make(const char *id, stet_pathref path) {
    stet_value link = stet_object();
    stet_put(&link, "id", stet_string(id));
    stet_put(&link, "path", stet_path_to_value(path));
    return stet_link_wrap(link);
}

stet_value stet_link_wrap(stet_value members) {
    stet_value sigil = stet_object(), out = stet_object();
    stet_put(&sigil, "link@1", members);
    stet_put(&out, "/", sigil);
    return out;
}

void stet_link_put(stet_value *link, const char *member, stet_value value) {
    stet_value sigil = stet_retain(stet_get(*link, "/")), members = stet_retain(stet_get(sigil, "link@1"));
    stet_put(&members, member, value);
    stet_put(&sigil, "link@1", members);
    stet_put(link, "/", sigil);
}

stet_process *stet_process_new(const char *piece) {
    stet_process *g = stet_alloc_zero(sizeof *g);
    g->piece = stet_strdup(piece);
    g->result = stet_piece_doc(piece);
    g->scope = stet_strdup("");
    g->schemas = stet_object();
    return g;
}

stet_docname stet_process_name(const stet_process *g, const char *id) {
    return (stet_docname){id ? id : g->result, g->scope};
}

void stet_process_add(stet_process *g, const char *id, size_t len, stet_value row, size_t capacity) {
    if (g->node_count == 0 || (g->node_count & (g->node_count - 1)) == 0 || capacity) {
        size_t want = capacity > g->node_count ? capacity : (g->node_count ? g->node_count * 2 : 1);
        g->nodes = stet_realloc(g->nodes, want * sizeof *g->nodes);
    }
    stet_map_put(&g->ids, id, len, (stet_slot){.n = g->node_count});
    g->nodes[g->node_count++] = (stet_process_node){stet_arena_strndup(&g->arena, id, len), row};
}

stet_status stet_process_build(stet_pattern *p, const char *piece, const stet_process_modules *modules,
                               stet_process **out, stet_error *err) {
    stet_build b = {.p = p, .g = stet_process_new(piece), .modules = modules};
    b.g->program = p->hash;
    stet_status status = stet_build_all(&b, err);
    if (status != STET_OK) {
        stet_process_free(b.g);
        return status;
    }
    b.g->wants_all = p->wants_all;
    stet_order_compute(b.g, modules);
    *out = b.g;
    return STET_OK;
}

stet_status stet_process_add_rows(stet_process *g, stet_value rows, stet_error *err) {
    if (stet_typeof(rows) != STET_OBJECT)
        return stet_fail(err, STET_CORRUPT, "piece \"%s\": a part of its process graph is not an object", g->piece);
    for (size_t i = 0; i < stet_count(rows); i++) {
        size_t len;
        const char *id = stet_key_at(rows, i, &len);
        stet_value row = stet_at(rows, i);
        if (!stet_child_id_valid(id, len) || stet_typeof(row) != STET_OBJECT ||
            stet_typeof(stet_get(row, "module")) != STET_OBJECT || stet_typeof(stet_get(row, "inputs")) != STET_OBJECT)
            return stet_fail(err, STET_CORRUPT, "piece \"%s\": the row of node \"%.*s\" is damaged", g->piece,
                             (int)(len < 200 ? len : 200), id);
        if (!stet_map_get(&g->ids, id, len))
            stet_process_add(g, id, len, stet_retain(row), 0);
    }
    return STET_OK;
}

void stet_process_free(stet_process *g) {
    if (!g)
        return;
    for (size_t i = 0; i < g->node_count; i++)
        stet_release(g->nodes[i].row);
    free(g->nodes);
    stet_map_release(&g->ids);
    stet_release(g->binding);
    stet_release(g->schemas);
    stet_arena_release(&g->arena);
    stet_free(g->piece);
    stet_free(g->result);
    stet_free(g->scope);
    free(g);
}

const stet_process_node *stet_process_find(const stet_process *g, const char *id) {
    const stet_slot *slot = stet_map_get(&g->ids, id, strlen(id));
    return slot ? &g->nodes[slot->n] : NULL;
}

void stet_process_walk(const stet_process *g, stet_node_visit each, void *ctx) {
    STET_VEC(stet_value) patterns = {0};
    for (size_t i = 0; i < g->node_count; i++) {
        stet_value pattern, row = g->nodes[i].row;
        const char *top = g->nodes[i].id;
        each(ctx, top, row);
        if (stet_find(stet_get(row, "module"), "pattern", 7, &pattern))
            *stet_vec_add(&patterns) = pattern;
        while (patterns.len > 0) {
            stet_value nodes = stet_get(patterns.at[--patterns.len], "nodes");
            for (size_t k = 0; stet_typeof(nodes) == STET_ARRAY && k < stet_count(nodes); k++) {
                each(ctx, top, stet_at(nodes, k));
                if (stet_find(stet_get(stet_at(nodes, k), "module"), "pattern", 7, &pattern))
                    *stet_vec_add(&patterns) = pattern;
            }
        }
    }
    stet_vec_release(&patterns);
}

static int change_compare(const void *a, const void *b) {
    return strcmp(((const stet_process_change *)a)->id, ((const stet_process_change *)b)->id);
}

void stet_process_compare(const stet_process *before, const stet_process *after, stet_process_diff *out) {
    *out = (stet_process_diff){0};
    for (size_t i = 0; i < after->node_count; i++) {
        const stet_process_node *now = &after->nodes[i], *was = before ? stet_process_find(before, now->id) : NULL;
        if (was && stet_equal(was->row, now->row)) {
            out->kept++;
            continue;
        }
        stet_process_change *c = stet_vec_add(out);
        c->id = now->id;
        c->kind = !was ? STET_CHANGE_ADDED
                  : stet_equal(stet_get(was->row, "fingerprint"), stet_get(now->row, "fingerprint"))
                      ? STET_CHANGE_MOVED
                      : STET_CHANGE_CHANGED;
        out->kept += c->kind == STET_CHANGE_MOVED;
    }
    for (size_t i = 0; before && i < before->node_count; i++) {
        assert(before->nodes);
        if (stet_process_find(after, before->nodes[i].id))
            continue;
        stet_process_change *c = stet_vec_add(out);
        c->id = before->nodes[i].id;
        c->kind = STET_CHANGE_GONE;
    }
    if (out->len > 1)
        qsort(out->at, out->len, sizeof *out->at, change_compare);
}

static bool members_differ(stet_value was, stet_value now, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!stet_equal(stet_get(was, names[i]), stet_get(now, names[i])))
            return true;
    return false;
}

stet_value stet_process_differences(stet_value was, stet_value now) {
    static const char *const bindings[] = {"inputs", "output", "stream", "after"};
    static const char *const schemas[] = {"argumentSchema", "resultSchema"};
    static const char *const options[] = {"debounceMs", "throttleMs", "noDebounce", "onRestart",
                                          "verifier",   "title",      "metadata",   "materializerWriteInputPaths"};
    stet_value a = stet_retain(stet_get(was, "module")), b = stet_retain(stet_get(now, "module")), list = stet_array();
    bool schema = members_differ(was, now, schemas, 2) || members_differ(a, b, schemas, 2);
    for (int i = 0; i < 2; i++) {
        stet_remove(&a, schemas[i], strlen(schemas[i]));
        stet_remove(&b, schemas[i], strlen(schemas[i]));
    }
    bool binding = members_differ(was, now, bindings, 4);
    bool print = !stet_equal(stet_get(was, "fingerprint"), stet_get(now, "fingerprint"));
    /* The version of a kind is part of its code, and is seen in the fingerprint alone. */
    if (!stet_equal(a, b) || !stet_equal(stet_get(was, "kind"), stet_get(now, "kind")) ||
        (print && !schema && !binding))
        stet_push(&list, stet_string("code"));
    if (binding)
        stet_push(&list, stet_string("binding"));
    if (schema)
        stet_push(&list, stet_string("schema"));
    if (members_differ(was, now, options, sizeof options / sizeof *options))
        stet_push(&list, stet_string("options"));
    stet_release(a);
    stet_release(b);
    return list;
}

void stet_process_diff_release(stet_process_diff *d) {
    stet_vec_release(d);
}
