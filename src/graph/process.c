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

/* The length of NAME. */
static int name_len(const char *piece) {
    return (int)strcspn(piece, "@");
}

bool stet_piece_name_valid(const char *piece) {
    size_t len = (size_t)name_len(piece);
    return stet_name_valid(piece, len) &&
           (!piece[len] ||
            (piece[len + 1] && stet_docname_check(&(stet_docname){"piece", piece + len + 1}, NULL) == STET_OK));
}

const char *stet_piece_scope(const char *piece) {
    const char *at = strchr(piece, '@');
    return at ? at + 1 : "";
}

char *stet_piece_bare(const char *piece) {
    return stet_strndup(piece, (size_t)name_len(piece));
}

stet_status stet_piece_in(const char *name, const char *scope, char **out, stet_error *err) {
    const char *own = stet_piece_scope(name);
    if (!scope || !*scope || strcmp(own, scope) == 0) {
        *out = stet_strdup(name);
        return STET_OK;
    }
    if (*own)
        return stet_fail(err, STET_INVALID, "piece \"%s\" is not of scope \"%s\"", name, scope);
    stet_status status = stet_docname_check(&(stet_docname){"piece", scope}, err);
    if (status == STET_OK)
        *out = stet_asprintf("%s@%s", name, scope);
    return status;
}

char *stet_piece_doc(const char *piece) {
    return stet_asprintf("piece:%.*s", name_len(piece), piece);
}

char *stet_piece_part(const char *piece, const char *part, const char *name) {
    return name ? stet_asprintf("piece:%.*s:%s:%s", name_len(piece), piece, part, name)
                : stet_asprintf("piece:%.*s:%s", name_len(piece), piece, part);
}

stet_docname stet_piece_at(const char *piece, const char *id) {
    return (stet_docname){id, stet_piece_scope(piece)};
}

stet_docname stet_scoped(const char *scope, const char *id) {
    return (stet_docname){id, strncmp(id, "piece:", 6) == 0 ? scope : ""};
}

char *stet_piece_of(const stet_docname *name) {
    const char *own = stet_piece_name_of(name->id);
    return !own ? NULL : name->scope && *name->scope ? stet_asprintf("%s@%s", own, name->scope) : stet_strdup(own);
}

char *stet_piece_around(const stet_docname *name) {
    if (strncmp(name->id, "piece:", 6) != 0)
        return NULL;
    char *doc = stet_strndup(name->id, 6 + strcspn(name->id + 6, ":"));
    char *piece = stet_piece_of(&(stet_docname){doc, name->scope});
    stet_free(doc);
    return piece;
}

char *stet_piece_of_action(const stet_action_key *key) {
    return stet_piece_of(&(stet_docname){key->piece, key->scope});
}

char *stet_piece_key(const char *piece) {
    return stet_asprintf("piece:%s", piece);
}

char *stet_piece_key_of(const stet_docname *name) {
    return !stet_piece_name_of(name->id) ? NULL
           : name->scope && *name->scope ? stet_asprintf("%s@%s", name->id, name->scope)
                                         : stet_strdup(name->id);
}

void stet_piece_id_of(const char *key, stet_piece_id *out) {
    size_t len = strcspn(key, "@");
    if (!key[len] || len >= sizeof out->id) { /* too long for a piece: some other document */
        out->name = (stet_docname){key, ""};
        return;
    }
    memcpy(out->id, key, len);
    out->id[len] = 0;
    out->name = (stet_docname){out->id, key + len + 1};
}

const char *stet_piece_name_of(const char *id) {
    if (strncmp(id, "piece:", 6) != 0 || !stet_name_valid(id + 6, strlen(id + 6)))
        return NULL;
    return id + 6;
}

uint32_t stet_process_chunks(size_t nodes) {
    uint32_t n = 1;
    while ((size_t)n * STET_PROCESS_PER_CHUNK < nodes)
        n *= 2;
    return n;
}

uint32_t stet_process_chunk(const char *id, uint32_t chunks) {
    /* FNV-1a, which unlike the hash of maps is the same in all processes and on all machines. */
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
    stet_value link, keys = stet_value_null();
    if (!stet_link_is(v, &link))
        return false;
    *out =
        (stet_link){.id_value = stet_value_null(), .scope_value = stet_value_null(), .space_value = stet_value_null()};
    bool pathed = false;
    for (size_t i = 0; i < stet_value_count(link);
         i++) { /* one pass, because most links have two members and results have many links */
        size_t len;
        const char *key = stet_value_key_at(link, i, &len);
        stet_value member = stet_value_at(link, i);
        if (len == 2 && memcmp(key, "id", 2) == 0) {
            out->id_value = member;
        } else if (len == 4 && memcmp(key, "path", 4) == 0) {
            keys = member;
            pathed = true;
        } else if (len == 5 && memcmp(key, "scope", 5) == 0) {
            out->scope_value = member;
        } else if (len == 5 && memcmp(key, "space", 5) == 0) {
            out->space_value = member;
        } else if (len == 6 && memcmp(key, "asCell", 6) == 0) {
            out->as_cell = stet_value_as_bool(member);
        }
    }
    if (stet_value_type(out->id_value) != STET_TYPE_STRING)
        return false;
    out->id = stet_value_as_string(&out->id_value, NULL);
    out->scope =
        stet_value_type(out->scope_value) == STET_TYPE_STRING ? stet_value_as_string(&out->scope_value, NULL) : "";
    out->space =
        stet_value_type(out->space_value) == STET_TYPE_STRING ? stet_value_as_string(&out->space_value, NULL) : NULL;
    if (!pathed)
        return true;
    if (stet_value_type(keys) != STET_TYPE_ARRAY)
        return false;
    for (size_t i = 0; i < stet_value_count(keys); i++) {
        stet_value key = stet_value_at(keys, i);
        size_t len;
        if (stet_value_type(key) == STET_TYPE_INT && stet_value_as_int(key) >= 0) {
            stet_path_push_index(path, (size_t)stet_value_as_int(key));
        } else if (stet_value_type(key) == STET_TYPE_STRING) {
            const char *s = stet_value_as_string(&key, &len);
            stet_path_push_n(path, s, len);
        } else {
            return false;
        }
    }
    return !path->buf.overflow;
}

stet_value stet_link_make(const stet_docname *name, stet_pathref path) {
    stet_value link = stet_value_object();
    stet_value_put(&link, "id", stet_value_string(name->id));
    stet_value_put(&link, "path", stet_path_to_value(path));
    if (name->scope && *name->scope)
        stet_value_put(&link, "scope", stet_value_string(name->scope));
    return stet_link_wrap(link);
}

stet_value stet_link_wrap(stet_value members) {
    stet_value sigil = stet_value_object(), out = stet_value_object();
    stet_value_put(&sigil, "link@1", members);
    stet_value_put(&out, "/", sigil);
    return out;
}

void stet_link_put(stet_value *link, const char *member, stet_value value) {
    stet_value sigil = stet_value_retain(stet_value_get(*link, "/")),
               members = stet_value_retain(stet_value_get(sigil, "link@1"));
    stet_value_put(&members, member, value);
    stet_value_put(&sigil, "link@1", members);
    stet_value_put(link, "/", sigil);
}

stet_process *stet_process_new(const char *piece) {
    stet_process *g = stet_alloc_zero(sizeof *g);
    g->piece = stet_strdup(piece);
    g->result = stet_piece_doc(piece);
    g->scope = stet_strdup(stet_piece_scope(piece));
    g->schemas = stet_value_object();
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
    if (stet_value_type(rows) != STET_TYPE_OBJECT)
        return stet_fail(err, STET_CORRUPT, "piece \"%s\": a part of its process graph is not an object", g->piece);
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        size_t len;
        const char *id = stet_value_key_at(rows, i, &len);
        stet_value row = stet_value_at(rows, i);
        if (!stet_child_id_valid(id, len) || stet_value_type(row) != STET_TYPE_OBJECT ||
            stet_value_type(stet_value_get(row, "module")) != STET_TYPE_OBJECT ||
            stet_value_type(stet_value_get(row, "inputs")) != STET_TYPE_OBJECT)
            return stet_fail(err, STET_CORRUPT, "piece \"%s\": the row of node \"%.*s\" is damaged", g->piece,
                             (int)(len < 200 ? len : 200), id);
        if (!stet_map_get(&g->ids, id, len))
            stet_process_add(g, id, len, stet_value_retain(row), 0);
    }
    return STET_OK;
}

void stet_process_free(stet_process *g) {
    if (!g)
        return;
    for (size_t i = 0; i < g->node_count; i++)
        stet_value_release(g->nodes[i].row);
    free(g->nodes);
    stet_map_release(&g->ids);
    stet_value_release(g->binding);
    stet_value_release(g->schemas);
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

void stet_process_walk_row(const char *top, stet_value row, stet_node_visit each, void *ctx) {
    STET_VEC(stet_value) patterns = {0};
    stet_value pattern;
    each(ctx, top, row);
    if (stet_value_find(stet_value_get(row, "module"), "pattern", 7, &pattern))
        *stet_vec_add(&patterns) = pattern;
    while (patterns.len > 0) {
        stet_value nodes = stet_value_get(patterns.at[--patterns.len], "nodes");
        for (size_t k = 0; stet_value_type(nodes) == STET_TYPE_ARRAY && k < stet_value_count(nodes); k++) {
            each(ctx, top, stet_value_at(nodes, k));
            if (stet_value_find(stet_value_get(stet_value_at(nodes, k), "module"), "pattern", 7, &pattern))
                *stet_vec_add(&patterns) = pattern;
        }
    }
    stet_vec_release(&patterns);
}

void stet_process_walk(const stet_process *g, stet_node_visit each, void *ctx) {
    for (size_t i = 0; i < g->node_count; i++)
        stet_process_walk_row(g->nodes[i].id, g->nodes[i].row, each, ctx);
}

static int change_compare(const void *a, const void *b) {
    return strcmp(((const stet_process_change *)a)->id, ((const stet_process_change *)b)->id);
}

void stet_process_compare(const stet_process *before, const stet_process *after, stet_process_diff *out) {
    *out = (stet_process_diff){0};
    for (size_t i = 0; i < after->node_count; i++) {
        const stet_process_node *now = &after->nodes[i], *was = before ? stet_process_find(before, now->id) : NULL;
        if (was && stet_value_equal(was->row, now->row)) {
            out->kept++;
            continue;
        }
        stet_process_change *c = stet_vec_add(out);
        c->id = now->id;
        c->kind = !was ? STET_CHANGE_ADDED
                  : stet_value_equal(stet_value_get(was->row, "fingerprint"), stet_value_get(now->row, "fingerprint"))
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
        if (!stet_value_equal(stet_value_get(was, names[i]), stet_value_get(now, names[i])))
            return true;
    return false;
}

stet_value stet_process_differences(stet_value was, stet_value now) {
    static const char *const bindings[] = {"inputs", "output", "stream", "after"};
    static const char *const schemas[] = {"argumentSchema", "resultSchema"};
    static const char *const options[] = {"debounceMs", "throttleMs", "noDebounce", "onRestart",
                                          "verifier",   "title",      "metadata",   "materializerWriteInputPaths"};
    stet_value a = stet_value_retain(stet_value_get(was, "module")),
               b = stet_value_retain(stet_value_get(now, "module")), list = stet_value_array();
    bool schema = members_differ(was, now, schemas, 2) || members_differ(a, b, schemas, 2);
    for (int i = 0; i < 2; i++) {
        stet_value_remove(&a, schemas[i], strlen(schemas[i]));
        stet_value_remove(&b, schemas[i], strlen(schemas[i]));
    }
    bool binding = members_differ(was, now, bindings, 4);
    bool print = !stet_value_equal(stet_value_get(was, "fingerprint"), stet_value_get(now, "fingerprint"));
    /* The version of a kind is part of its code, and shows only in the fingerprint. */
    if (!stet_value_equal(a, b) || !stet_value_equal(stet_value_get(was, "kind"), stet_value_get(now, "kind")) ||
        (print && !schema && !binding))
        stet_value_push(&list, stet_value_string("code"));
    if (binding)
        stet_value_push(&list, stet_value_string("binding"));
    if (schema)
        stet_value_push(&list, stet_value_string("schema"));
    if (members_differ(was, now, options, sizeof options / sizeof *options))
        stet_value_push(&list, stet_value_string("options"));
    stet_value_release(a);
    stet_value_release(b);
    return list;
}

void stet_process_diff_release(stet_process_diff *d) {
    stet_vec_release(d);
}
