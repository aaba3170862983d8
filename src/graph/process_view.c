/* process_view.c - the process graph for other programs: GraphSnapshotV1, Graphviz, Mermaid. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/vec.h"
#include "graph/process.h"
#include "graph/stream.h"

typedef struct ordered {
    int64_t rank;
    const stet_process_node *node;
} ordered;

static int ordered_compare(const void *a, const void *b) {
    const ordered *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return strcmp(x->node->id, y->node->id);
}

static ordered *in_order(const stet_process *g) {
    ordered *o = stet_alloc((g->node_count ? g->node_count : 1) * sizeof *o);
    for (size_t i = 0; i < g->node_count; i++)
        o[i] = (ordered){stet_value_as_int(stet_value_get(g->nodes[i].row, "rank")), &g->nodes[i]};
    if (g->node_count > 1)
        qsort(o, g->node_count, sizeof *o, ordered_compare);
    return o;
}

/* Replaces the hash of a schema by the schema, if it is available. */
static void expand(stet_value *object, const char *key, stet_value schemas) {
    stet_value hash, schema;
    if (!stet_value_find(*object, key, strlen(key), &hash) || stet_value_type(hash) != STET_TYPE_STRING)
        return;
    size_t len;
    const char *hex = stet_value_as_string(&hash, &len);
    if (stet_value_find(schemas, hex, len, &schema))
        stet_value_put(object, key, stet_value_retain(schema));
}

/* {"type":"array","prefixItems":[...]}: one item for each position, or one object for all named inputs. A handler is
 * called with the event first. */
static stet_value tuple_schema(stet_value inputs, bool handler) {
    stet_value schema = stet_value_object(), items = stet_value_array();
    if (handler)
        stet_value_push(&items, stet_value_object());
    size_t n = stet_value_count(inputs), index;
    bool positions = n > 0;
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *key = stet_value_key_at(inputs, i, &len);
        positions = positions && stet_path_index(key, len, &index) && index < n;
    }
    if (positions) {
        for (size_t i = 0; i < n; i++)
            stet_value_push(&items, stet_value_object());
    } else {
        stet_value object = stet_value_object(), properties = stet_value_object(), required = stet_value_array();
        for (size_t i = 0; i < n; i++) {
            size_t len;
            const char *key = stet_value_key_at(inputs, i, &len);
            stet_value_put_n(&properties, key, len, stet_value_object());
            stet_value_push(&required, stet_value_string_n(key, len));
        }
        stet_value_put(&object, "type", stet_value_string("object"));
        stet_value_put(&object, "properties", properties);
        if (n > 0)
            stet_value_put(&object, "required", required);
        else
            stet_value_release(required);
        stet_value_push(&items, object);
    }
    stet_value_put(&schema, "type", stet_value_string("array"));
    stet_value_put(&schema, "prefixItems", items);
    return schema;
}

static stet_value node_snapshot(const stet_process_node *n, stet_value schemas) {
    stet_value out = stet_value_retain(n->row), module = stet_value_retain(stet_value_get(n->row, "module"));
    expand(&module, "argumentSchema", schemas);
    expand(&module, "resultSchema", schemas);
    if (!stet_value_find(module, "argumentSchema", 14, NULL))
        stet_value_put(&module, "argumentSchema",
                       tuple_schema(stet_value_get(n->row, "inputs"), stet_stream_is_handler(n->row)));
    stet_value_put(&out, "module", module);
    expand(&out, "argumentSchema", schemas);
    expand(&out, "resultSchema", schemas);
    stet_value_put(&out, "id", stet_value_string(n->id));
    stet_value_remove(&out, "certain", 7); /* only for the scheduler */
    return out;
}

stet_value stet_process_snapshot(const stet_process *g, stet_value schemas) {
    stet_value out = stet_value_object(), nodes = stet_value_array();
    char hex[STET_HASH_HEX];
    stet_hash_hex(g->program, hex);
    ordered *o = in_order(g);
    for (size_t i = 0; i < g->node_count; i++)
        stet_value_push(&nodes, node_snapshot(o[i].node, schemas));
    free(o);
    stet_value_put(&out, "version", stet_value_int(1));
    stet_value_put(&out, "program", stet_value_stringf("cid:%s", hex));
    stet_value_put(&out, "generation", stet_value_int(g->generation));
    stet_value_put(&out, "nodes", nodes);
    return out;
}

typedef struct picture {
    const stet_process *g;
    stet_map docs; /* key of a document -> number of the node that writes it */
    stet_map outside;
    stet_buf *out;
    size_t to; /* node being drawn; SIZE_MAX: the result */
    bool mermaid;
    stet_path path;
} picture;

/* "ref sum", "javascript", "command" */
static void label(const stet_process_node *n, stet_buf *b) {
    stet_value module = stet_value_get(n->row, "module"), type = stet_value_get(module, "type"),
               ref = stet_value_get(module, "ref");
    stet_buf_str(b, n->id);
    stet_buf_str(b, "\n");
    if (stet_value_type(ref) == STET_TYPE_STRING)
        stet_buf_str(b, stet_value_as_string(&ref, NULL));
    else if (stet_value_type(type) == STET_TYPE_STRING)
        stet_buf_str(b, stet_value_as_string(&type, NULL));
}

static void quote_dot(stet_buf *out, const char *s) {
    stet_buf_char(out, '"');
    for (; *s; s++) {
        if (*s == '\n')
            stet_buf_str(out, "\\n");
        else {
            if (*s == '"' || *s == '\\')
                stet_buf_char(out, '\\');
            stet_buf_char(out, *s);
        }
    }
    stet_buf_char(out, '"');
}

static void quote_mermaid(stet_buf *out, const char *s) {
    stet_buf_char(out, '"');
    for (; *s; s++) {
        if (*s == '\n')
            stet_buf_str(out, "<br/>");
        else if (*s == '"')
            stet_buf_str(out, "#quot;");
        else if (*s == '<' || *s == '>')
            stet_buf_str(out, *s == '<' ? "#lt;" : "#gt;");
        else
            stet_buf_char(out, *s);
    }
    stet_buf_char(out, '"');
}

static void quote(const picture *p, const char *s) {
    if (p->mermaid)
        quote_mermaid(p->out, s);
    else
        quote_dot(p->out, s);
}

/* Space, scope and id: documents with the same id may differ in the others. */
static char *doc_key(const stet_link *l) {
    return stet_asprintf("%s\n%s\n%s", l->space ? l->space : "", l->scope, l->id);
}

static void name_document(const picture *p, const stet_link *l, stet_buf *out) {
    size_t own = strlen(p->g->result);
    bool mine =
        !l->space && strcmp(l->scope, p->g->scope) == 0 && strncmp(l->id, p->g->result, own) == 0 && l->id[own] == ':';
    stet_buf_str(out, mine ? l->id + own + 1 : l->id);
    if (*l->scope && !mine)
        stet_buf_printf(out, " (scope %s)", l->scope);
    if (l->space)
        stet_buf_printf(out, " in space %s", l->space);
}

static bool draw_link(void *ctx, stet_value binding, stet_pathref place) {
    picture *p = ctx;
    stet_link l;
    (void)place;
    p->path.buf.len = 0;
    if (!stet_link_read(binding, &l, &p->path))
        return true;
    stet_buf text = STET_BUF(0);
    stet_path_print(stet_path_ref(&p->path), &text);
    char *key = doc_key(&l);
    const stet_slot *slot = stet_map_get(&p->docs, key, strlen(key));
    char from[32], to[32];
    if (slot) {
        snprintf(from, sizeof from, "n%llu", (unsigned long long)slot->n);
    } else {
        stet_slot *o = stet_map_get(&p->outside, key, strlen(key));
        uint64_t number = o ? o->n : stet_map_len(&p->outside);
        snprintf(from, sizeof from, "d%llu", (unsigned long long)number);
        if (!o) {
            stet_buf shown = STET_BUF(0);
            stet_map_put(&p->outside, key, strlen(key), (stet_slot){.n = number});
            name_document(p, &l, &shown);
            stet_buf_printf(p->out, p->mermaid ? "  %s[(" : "  %s [shape=note, label=", from);
            quote(p, stet_buf_cstr(&shown));
            stet_buf_str(p->out, p->mermaid ? ")]\n" : "];\n");
            stet_buf_release(&shown);
        }
    }
    if (p->to == SIZE_MAX)
        snprintf(to, sizeof to, "result");
    else
        snprintf(to, sizeof to, "n%zu", p->to);
    if (p->mermaid) {
        stet_buf_printf(p->out, "  %s -->", from);
        if (text.len) {
            stet_buf_char(p->out, '|');
            quote_mermaid(p->out, stet_buf_cstr(&text));
            stet_buf_char(p->out, '|');
        }
        stet_buf_printf(p->out, " %s\n", to);
    } else {
        stet_buf_printf(p->out, "  %s -> %s", from, to);
        if (text.len) {
            stet_buf_str(p->out, " [label=");
            quote_dot(p->out, stet_buf_cstr(&text));
            stet_buf_char(p->out, ']');
        }
        stet_buf_str(p->out, ";\n");
    }
    stet_buf_release(&text);
    stet_free(key);
    return true;
}

static void draw(const stet_process *g, stet_buf *out, bool mermaid) {
    picture p = {.g = g, .out = out, .mermaid = mermaid, .path = STET_PATH_INIT};
    ordered *o = in_order(g);
    for (size_t i = 0; i < g->node_count; i++) {
        stet_link l;
        p.path.buf.len = 0;
        if (stet_link_read(stet_value_get(o[i].node->row, "output"), &l, &p.path)) {
            char *key = doc_key(&l);
            stet_map_put(&p.docs, key, strlen(key), (stet_slot){.n = i});
            stet_free(key);
        }
    }
    stet_buf_str(out, mermaid ? "flowchart LR\n" : "digraph piece {\n  rankdir=LR;\n  node [shape=box];\n");
    for (size_t i = 0; i < g->node_count; i++) {
        stet_buf b = STET_BUF(0);
        stet_value kind = stet_value_get(o[i].node->row, "kind");
        bool effect =
            stet_value_type(kind) == STET_TYPE_STRING && strcmp(stet_value_as_string(&kind, NULL), "effect") == 0;
        label(o[i].node, &b);
        stet_buf_printf(out, mermaid ? "  n%zu%s" : "  n%zu [%slabel=", i,
                        mermaid ? (effect ? "([" : "[") : (effect ? "style=bold, " : ""));
        quote(&p, stet_buf_cstr(&b));
        stet_buf_str(out, mermaid ? (effect ? "])\n" : "]\n") : "];\n");
        stet_buf_release(&b);
    }
    stet_buf_str(out, mermaid ? "  result((result))\n" : "  result [shape=ellipse];\n");
    for (size_t i = 0; i < g->node_count; i++) {
        p.to = i;
        stet_binding_walk(stet_value_get(o[i].node->row, "inputs"), draw_link, &p);
    }
    p.to = SIZE_MAX;
    stet_binding_walk(g->binding, draw_link, &p);
    if (!mermaid)
        stet_buf_str(out, "}\n");
    free(o);
    stet_map_release(&p.docs);
    stet_map_release(&p.outside);
    stet_path_release(&p.path);
}

void stet_process_dot(const stet_process *g, stet_buf *out) {
    draw(g, out, false);
}

void stet_process_mermaid(const stet_process *g, stet_buf *out) {
    draw(g, out, true);
}
