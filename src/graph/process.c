#include "graph/process.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "graph/cells.h"
#include "graph/order.h"

/* ---- Names ------------------------------------------------------------------------------------------------------ */

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

/* ---- Links ------------------------------------------------------------------------------------------------------- */

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
    stet_value link = stet_object(), sigil = stet_object(), out = stet_object();
    stet_put(&link, "id", stet_string(id));
    stet_put(&link, "path", stet_path_to_value(path));
    stet_put(&sigil, "link@1", link);
    stet_put(&out, "/", sigil);
    return out;
}

/* ---- Building ------------------------------------------------------------------------------------------------------
 */

typedef struct builder {
    stet_pattern *p;
    stet_process *g;
    const stet_process_modules *modules;
} builder;

static stet_value link_of_ref(builder *b, const stet_pattern_ref *r) {
    char *id = NULL;
    if (r->kind == STET_REF_LINK) {
        stet_value link = stet_retain(r->link), sigil = stet_object(), out = stet_object();
        stet_put(&link, "path", stet_path_to_value(r->path));
        stet_put(&sigil, "link@1", link);
        stet_put(&out, "/", sigil);
        return out;
    }
    if (r->kind == STET_REF_ARGUMENT)
        id = stet_piece_part(b->g->piece, "argument", NULL);
    else if (r->kind == STET_REF_CELL)
        id = stet_piece_part(b->g->piece, "cell", b->p->cells[r->index].name);
    else
        id = stet_piece_part(b->g->piece, "node", b->p->nodes[r->index].id);
    stet_value out = stet_link_make(id, r->path);
    if (r->as_cell) {
        stet_value sigil = stet_retain(stet_get(out, "/")), link = stet_retain(stet_get(sigil, "link@1"));
        stet_put(&link, "asCell", stet_bool(true));
        stet_put(&sigil, "link@1", link);
        stet_put(&out, "/", sigil);
    }
    stet_free(id);
    return out;
}

typedef struct copy_frame {
    stet_value from, to;
    size_t next;
} copy_frame;

/* A binding with every reference replaced by a link. Parts without references are shared, not copied. */
static stet_value resolve_binding(builder *b, stet_value binding) {
    STET_VEC(copy_frame) stack = {0};
    stet_value done = stet_null();
    bool have = false;
    *stet_vec_add(&stack) = (copy_frame){binding, stet_retain(binding), 0};
    while (stack.len > 0) {
        copy_frame *f = &stack.at[stack.len - 1];
        stet_type t = stet_typeof(f->from);
        stet_pattern_ref ref;
        stet_value inner;
        if (have) { /* a child is ready: put it in its place */
            size_t i = f->next++;
            if (t == STET_ARRAY) {
                stet_put_at(&f->to, i, done);
            } else {
                size_t len;
                const char *key = stet_key_at(f->from, i, &len);
                stet_put_n(&f->to, key, len, done);
            }
            have = false;
        }
        bool leaf = t != STET_ARRAY && t != STET_OBJECT;
        if (f->next == 0 && !leaf && stet_pattern_resolve(b->p, f->from, &ref)) {
            stet_release(f->to);
            f->to = link_of_ref(b, &ref);
            leaf = true;
        } else if (f->next == 0 && !leaf && stet_binding_is_literal(f->from, &inner)) {
            leaf = true; /* stays wrapped: what is inside is not looked at when it is read */
        }
        if (leaf || f->next >= stet_count(f->from)) {
            done = f->to;
            have = true;
            stack.len--;
            continue;
        }
        stet_value child = stet_at(f->from, f->next);
        if (stet_typeof(child) != STET_ARRAY && stet_typeof(child) != STET_OBJECT) {
            f->next++; /* a scalar stays what it is */
            continue;
        }
        *stet_vec_add(&stack) = (copy_frame){child, stet_retain(child), 0};
    }
    stet_vec_release(&stack);
    return done;
}

/* Keeps a schema once, by hash. */
static stet_value keep(builder *b, stet_value schema) {
    char hex[STET_HASH_HEX];
    stet_hash_hex(stet_hash_value(schema), hex);
    stet_put(&b->g->schemas, hex, stet_retain(schema));
    return stet_string(hex);
}

/* The row holds the hash. */
static void keep_schema(builder *b, stet_value from, const char *key, stet_value *to) {
    stet_value schema;
    if (stet_find(from, key, strlen(key), &schema))
        stet_put(to, key, keep(b, schema));
}

static void copy_member(stet_value from, const char *key, stet_value *to) {
    stet_value v;
    if (stet_find(from, key, strlen(key), &v))
        stet_put(to, key, stet_retain(v));
}

/* The fingerprint covers what makes the result: code, bindings, schemas, kind. Not: rank, options of timing, texts. */
static stet_status fingerprint(builder *b, const stet_pattern_node *n, stet_value *row, stet_error *err) {
    stet_hash code = {{0}};
    stet_status status = b->modules ? b->modules->fingerprint(b->modules->ctx, n->module, &code, err) : STET_OK;
    if (status != STET_OK) {
        stet_fail_in(err, "node \"%s\"", n->id);
        return status;
    }
    static const char *const covered[] = {"inputs",         "output",       "stream", "kind",
                                          "argumentSchema", "resultSchema", "module"};
    stet_value all = stet_object();
    for (size_t i = 0; i < sizeof covered / sizeof *covered; i++)
        copy_member(*row, covered[i], &all);
    if (b->modules) { /* the kind says what of the descriptor counts */
        char hex[STET_HASH_HEX];
        stet_hash_hex(code, hex);
        stet_value schemas = stet_object(), module = stet_get(all, "module");
        copy_member(module, "argumentSchema", &schemas);
        copy_member(module, "resultSchema", &schemas);
        stet_put(&all, "module", schemas);
        stet_put(&all, "code", stet_string(hex));
    }
    char hex[STET_HASH_HEX];
    stet_hash_hex(stet_hash_value(all), hex);
    stet_release(all);
    stet_put(row, "fingerprint", stet_string(hex));
    return STET_OK;
}

static stet_status build_row(builder *b, const stet_pattern_node *n, stet_value *out, stet_error *err) {
    stet_value row = stet_object(), module = stet_retain(n->module);
    keep_schema(b, n->module, "argumentSchema", &module);
    keep_schema(b, n->module, "resultSchema", &module);
    stet_put(&row, "module", module);
    if (stet_typeof(n->inputs) == STET_ARRAY) {
        /* Positions are keys from here on. */
        stet_value inputs = stet_object();
        for (size_t i = 0; i < stet_count(n->inputs); i++) {
            char key[24];
            snprintf(key, sizeof key, "%zu", i);
            stet_put(&inputs, key, resolve_binding(b, stet_at(n->inputs, i)));
        }
        stet_put(&row, "inputs", inputs);
    } else if (stet_typeof(n->inputs) == STET_OBJECT) {
        stet_put(&row, "inputs", resolve_binding(b, n->inputs));
    } else {
        stet_put(&row, "inputs", stet_object());
    }
    if (stet_find(n->value, "argumentSchema", 14, NULL) || stet_find(n->module, "argumentSchema", 14, NULL)) {
        stet_value inputs = stet_retain(stet_get(row, "inputs"));
        stet_cells_mark(&inputs, n->value, n->module);
        stet_put(&row, "inputs", inputs);
    }
    stet_put(&row, n->kind == STET_NODE_HANDLER ? "stream" : "output", link_of_ref(b, &n->output));
    if (n->kind == STET_NODE_EFFECT)
        stet_put(&row, "kind", stet_string("effect"));
    else if (n->kind == STET_NODE_HANDLER)
        stet_put(&row, "kind", stet_string("event-handler"));
    keep_schema(b, n->value, "argumentSchema", &row);
    keep_schema(b, n->value, "resultSchema", &row);
    static const char *const options[] = {"debounceMs", "throttleMs", "noDebounce",
                                          "onRestart",  "verifier",   "materializerWriteInputPaths"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        copy_member(n->value, options[i], &row);
    stet_status status = fingerprint(b, n, &row, err);
    if (status == STET_OK)
        *out = row;
    else
        stet_release(row);
    return status;
}

stet_process *stet_process_new(const char *piece) {
    stet_process *g = stet_alloc_zero(sizeof *g);
    g->piece = stet_strdup(piece);
    g->result = stet_piece_doc(piece);
    g->schemas = stet_object();
    return g;
}

static void add_node(stet_process *g, const char *id, size_t len, stet_value row, size_t capacity) {
    if (g->node_count == 0 || (g->node_count & (g->node_count - 1)) == 0 || capacity) {
        size_t want = capacity > g->node_count ? capacity : (g->node_count ? g->node_count * 2 : 1);
        g->nodes = stet_realloc(g->nodes, want * sizeof *g->nodes);
    }
    stet_map_put(&g->ids, id, len, (stet_slot){.n = g->node_count});
    g->nodes[g->node_count++] = (stet_process_node){stet_arena_strndup(&g->arena, id, len), row};
}

stet_status stet_process_build(stet_pattern *p, const char *piece, const stet_process_modules *modules,
                               stet_process **out, stet_error *err) {
    stet_process *g = stet_process_new(piece);
    builder b = {p, g, modules};
    g->program = p->hash;
    if (stet_typeof(p->argument_schema) != STET_NULL)
        stet_release(keep(&b, p->argument_schema));
    for (size_t i = 0; i < p->cell_count; i++)
        if (stet_typeof(p->cells[i].schema) != STET_NULL)
            stet_release(keep(&b, p->cells[i].schema));
    stet_status status = STET_OK;
    for (size_t i = 0; i < p->node_count && status == STET_OK; i++) {
        stet_value row;
        status = build_row(&b, &p->nodes[i], &row, err);
        if (status == STET_OK)
            add_node(g, p->nodes[i].id, strlen(p->nodes[i].id), row, i == 0 ? p->node_count : 0);
    }
    if (status != STET_OK) {
        stet_process_free(g);
        return status;
    }
    g->binding = resolve_binding(&b, p->result);
    g->wants_all = p->wants_all;
    stet_cells_envelopes(g, p);
    stet_order_compute(g, modules);
    *out = g;
    return STET_OK;
}

stet_status stet_process_add_rows(stet_process *g, stet_value rows, stet_error *err) {
    if (stet_typeof(rows) != STET_OBJECT)
        return stet_fail(err, STET_CORRUPT, "piece \"%s\": a part of its process graph is not an object", g->piece);
    for (size_t i = 0; i < stet_count(rows); i++) {
        size_t len;
        const char *id = stet_key_at(rows, i, &len);
        stet_value row = stet_at(rows, i);
        if (!stet_name_valid(id, len) || stet_typeof(row) != STET_OBJECT ||
            stet_typeof(stet_get(row, "module")) != STET_OBJECT || stet_typeof(stet_get(row, "inputs")) != STET_OBJECT)
            return stet_fail(err, STET_CORRUPT, "piece \"%s\": the row of node \"%.*s\" is damaged", g->piece,
                             (int)(len < 200 ? len : 200), id);
        if (!stet_map_get(&g->ids, id, len))
            add_node(g, id, len, stet_retain(row), 0);
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
    free(g);
}

const stet_process_node *stet_process_find(const stet_process *g, const char *id) {
    const stet_slot *slot = stet_map_get(&g->ids, id, strlen(id));
    return slot ? &g->nodes[slot->n] : NULL;
}

/* ---- Differences
 * ------------------------------------------------------------------------------------------------------ */

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

void stet_process_diff_release(stet_process_diff *d) {
    stet_vec_release(d);
}
