/* pattern_toml_beside.c - nodes with `each` whose commands might write the same files as another node.
 *
 * Which files a node with `each` writes is known when its list is made. So its list is told what else is written at
 * such paths, and refuses to name a file whose command would write the same as another one:
 *
 *   taken    paths that nodes without `each` write
 *   beside   other lists, and what their commands write
 *
 * Of two lists one reads the other. It is the later one, unless the earlier one needs the later one for its own files.
 */

#include "graph/pattern_toml_internal.h"

#include <string.h>

#include "base/text.h"
#include "files/meet.h"

typedef struct each_list {
    size_t node; /* index in c->nodes */
    size_t at;   /* index in the converted nodes */
    stet_value templates, name;
} each_list;

typedef STET_VEC(each_list) each_lists;

static bool is_list(stet_value node) {
    stet_value module = stet_value_get(node, "module");
    return stet_value_text_is(stet_value_get(module, "ref"), "files") &&
           stet_value_type(stet_value_get(module, "distinct")) == STET_TYPE_ARRAY;
}

static void collect(toml_converter *c, stet_value nodes, each_lists *out) {
    static const char suffix[] = ".files";
    for (size_t i = 0; i < stet_value_count(nodes); i++) {
        stet_value node = stet_value_at(nodes, i), id = stet_value_get(node, "id"),
                   module = stet_value_get(node, "module");
        size_t len;
        const char *text = stet_value_as_string(&id, &len);
        if (!is_list(node) || len < sizeof suffix)
            continue;
        stet_slot *slot = stet_map_get(&c->numbers, text, len - (sizeof suffix - 1));
        if (slot)
            *stet_vec_add(out) =
                (each_list){slot->n, i, stet_value_get(module, "distinct"), stet_value_get(module, "name")};
    }
}

/* May two such texts become one path? Only what stands before the first and after the last {...} is compared. */
static bool may_meet(const char *a, const char *b) {
    size_t i = 0, x = strlen(a), y = strlen(b);
    while (a[i] && a[i] == b[i] && a[i] != '{')
        i++;
    if (a[i] != '{' && b[i] != '{')
        return !a[i] && !b[i];
    while (x > 0 && y > 0 && a[x - 1] == b[y - 1] && a[x - 1] != '}')
        x--, y--;
    return x == 0 || y == 0 || a[x - 1] == '}' || b[y - 1] == '}';
}

static bool any_meet(stet_value a, stet_value b) {
    for (size_t i = 0; i < stet_value_count(a); i++)
        for (size_t k = 0; k < stet_value_count(b); k++) {
            stet_value x = stet_value_at(a, i), y = stet_value_at(b, k);
            if (may_meet(stet_value_as_string(&x, NULL), stet_value_as_string(&y, NULL)))
                return true;
        }
    return false;
}

/* Does node `from` need node `to`, over any number of others? */
static bool needs(const toml_converter *c, size_t from, size_t to) {
    size_t nodes = stet_value_count(c->nodes);
    bool *seen = stet_alloc_zero(nodes + 1);
    STET_VEC(size_t) queue = {0};
    *stet_vec_add(&queue) = from;
    seen[from] = true;
    for (size_t i = 0; i < queue.len && !seen[to]; i++)
        for (size_t k = 0; k < c->edges.len; k++)
            if (c->edges.at[k].from == queue.at[i] && !seen[c->edges.at[k].to]) {
                seen[c->edges.at[k].to] = true;
                *stet_vec_add(&queue) = c->edges.at[k].to;
            }
    bool found = seen[to];
    stet_vec_release(&queue);
    stet_free(seen);
    return found;
}

static stet_value node_name(const toml_converter *c, size_t node) {
    return stet_value_string(stet_value_key_at(c->nodes, node, NULL));
}

/* Adds an item to the member `name` of the module of a list. */
static void add_to_module(stet_value *nodes, size_t at, const char *name, stet_value item) {
    stet_value node = stet_value_retain(stet_value_at(*nodes, at)),
               module = stet_value_retain(stet_value_get(node, "module")), list = stet_value_get(module, name);
    list = stet_value_type(list) == STET_TYPE_ARRAY ? stet_value_retain(list) : stet_value_array();
    stet_value_push(&list, item);
    stet_value_put(&module, name, list);
    stet_value_put(&node, "module", module);
    stet_value_put_at(nodes, at, node);
}

static void add_input(toml_converter *c, stet_value *nodes, size_t at, size_t other) {
    stet_value node = stet_value_retain(stet_value_at(*nodes, at)),
               inputs = stet_value_retain(stet_value_get(node, "inputs")), list = stet_value_get(inputs, "beside");
    list = stet_value_type(list) == STET_TYPE_ARRAY ? stet_value_retain(list) : stet_value_array();
    stet_value text = stet_value_stringf("%s.files", stet_value_key_at(c->nodes, other, NULL)),
               reference = stet_value_object();
    stet_value_put(&reference, "$", text);
    stet_value_push(&list, reference);
    stet_value_put(&inputs, "beside", list);
    stet_value_put(&node, "inputs", inputs);
    stet_value_put_at(nodes, at, node);
}

static void add_taken(const toml_converter *c, stet_value *nodes, const each_list *l) {
    for (size_t i = 0; i < c->outs.len; i++) {
        const toml_produced *p = &c->outs.at[i];
        bool meets = false;
        for (size_t k = 0; k < stet_value_count(l->templates) && !p->each && !meets; k++) {
            stet_value text = stet_value_at(l->templates, k);
            meets = stet_path_meets(stet_value_as_string(&text, NULL), p->path, false);
        }
        if (!meets)
            continue;
        stet_value item = stet_value_object();
        stet_value_put(&item, "path", stet_value_string(p->path));
        stet_value_put(&item, "node", stet_value_retain(p->node));
        add_to_module(nodes, l->at, "taken", item);
    }
}

void toml_look_beside(toml_converter *c, stet_value *nodes) {
    each_lists lists = {0};
    stet_value before = stet_value_retain(*nodes); /* the templates are borrowed from it */
    collect(c, before, &lists);
    for (size_t i = 0; i < lists.len; i++)
        add_taken(c, nodes, &lists.at[i]);
    for (size_t i = 0; i < lists.len; i++)
        for (size_t k = i + 1; k < lists.len; k++) {
            if (!any_meet(lists.at[i].templates, lists.at[k].templates))
                continue;
            bool turned = needs(c, lists.at[i].node, lists.at[k].node);
            const each_list *reader = &lists.at[turned ? i : k], *other = &lists.at[turned ? k : i];
            stet_value item = stet_value_object();
            stet_value_put(&item, "node", node_name(c, other->node));
            stet_value_put(&item, "name", stet_value_retain(other->name));
            stet_value_put(&item, "distinct", stet_value_retain(other->templates));
            add_to_module(nodes, reader->at, "beside", item);
            add_input(c, nodes, reader->at, other->node);
            *stet_vec_add(&c->edges) = (toml_edge){reader->node, other->node, NULL, NULL, false};
        }
    stet_value_release(before);
    stet_vec_release(&lists);
}
