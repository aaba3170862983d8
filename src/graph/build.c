/* build.c - makes rows of the process graph from nodes of a pattern. */

#include "graph/build.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "graph/cells.h"

/* "piece:NAME:node:rows[7].double" */
static char *part(const stet_build *b, const char *what, const char *name) {
    return b->instance ? stet_asprintf("%s:%s:%s.%s", b->g->result, what, b->instance, name)
                       : stet_piece_part(b->g->piece, what, name);
}

static stet_value with_cell(stet_value out, bool as_cell) {
    if (as_cell)
        stet_link_put(&out, "asCell", stet_value_bool(true));
    return out;
}

static stet_value link_to(const stet_build *b, const char *id, stet_pathref path) {
    stet_docname name = stet_process_name(b->g, id);
    return stet_link_make(&name, path);
}

/* The part of a binding at a path: further along a link, or inside a value. Null if there is none. */
static stet_value below(stet_value binding, stet_pathref path, bool as_cell) {
    stet_value cur = binding, inner, link;
    stet_buf scratch = STET_BUF(0);
    size_t cursor = 0, len, index;
    const char *key;
    bool literal = false, there = true;
    while (there) {
        if (!literal && stet_link_is(cur, &link)) {
            stet_value made = stet_value_retain(link), keys;
            stet_value all = stet_value_find(link, "path", 4, &keys) ? stet_value_retain(keys) : stet_value_array();
            while (stet_path_next(path, &cursor, &scratch, &key, &len))
                stet_value_push(&all, stet_value_string_n(key, len));
            stet_value_put(&made, "path", all);
            stet_buf_release(&scratch);
            return with_cell(stet_link_wrap(made), as_cell);
        }
        if (!literal && stet_binding_is_literal(cur, &inner)) {
            cur = inner;
            literal = true;
        }
        if (!stet_path_next(path, &cursor, &scratch, &key, &len))
            break;
        if (stet_value_type(cur) == STET_TYPE_OBJECT)
            there = stet_value_find(cur, key, len, &cur);
        else if (stet_value_type(cur) == STET_TYPE_ARRAY && stet_path_index(key, len, &index) &&
                 index < stet_value_count(cur))
            cur = stet_value_at(cur, index);
        else
            there = false;
    }
    stet_buf_release(&scratch);
    if (!there)
        return stet_value_null();
    if (!literal)
        return stet_value_retain(cur);
    stet_value out = stet_value_object();
    stet_value_put(&out, "$literal", stet_value_retain(cur));
    return out;
}

static stet_value own_argument(const stet_build *b, stet_pathref path) {
    char *id = stet_piece_part(b->g->piece, "child", b->instance);
    stet_path at = STET_PATH_INIT;
    stet_path_push(&at, "argument");
    stet_buf_add(&at.buf, path.bytes, path.len);
    stet_value out = link_to(b, id, stet_path_ref(&at));
    stet_path_release(&at);
    stet_free(id);
    return out;
}

/* The argument of a child, or a part of it: what its coordinator passes on is read at its source. */
static stet_value child_argument(const stet_build *b, const stet_pattern_ref *r) {
    stet_buf scratch = STET_BUF(0);
    size_t cursor = 0, len;
    const char *key;
    stet_value given, out;
    if (stet_path_next(r->path, &cursor, &scratch, &key, &len)) {
        if (stet_value_find(b->outer, key, len, &given))
            out = below(given, (stet_pathref){r->path.bytes + cursor, r->path.len - cursor}, r->as_cell);
        else
            out = with_cell(own_argument(b, r->path), r->as_cell);
    } else if (stet_value_count(b->outer) == 0) {
        out = with_cell(own_argument(b, r->path), r->as_cell);
    } else {
        out = stet_value_retain(b->outer);
        for (size_t i = 0; i < stet_value_count(b->own); i++) {
            stet_value name = stet_value_at(b->own, i);
            const char *text = stet_value_as_string(&name, &len);
            stet_path path = STET_PATH_INIT;
            stet_path_push_n(&path, text, len);
            if (!stet_value_find(out, text, len, NULL))
                stet_value_put_n(&out, text, len, own_argument(b, stet_path_ref(&path)));
            stet_path_release(&path);
        }
    }
    stet_buf_release(&scratch);
    return out;
}

static stet_value link_of_ref(stet_build *b, const stet_pattern_ref *r) {
    char *id = NULL;
    bool whole = b->links && r->kind == STET_REF_NODE && r->path.len == 0 && !r->as_cell;
    if (whole && stet_value_type(b->links[r->index]) != STET_TYPE_NULL)
        return stet_value_retain(b->links[r->index]);
    if (r->kind == STET_REF_LINK) {
        stet_value link = stet_value_retain(r->link);
        stet_value_put(&link, "path", stet_path_to_value(r->path));
        return stet_link_wrap(link);
    }
    if (r->kind == STET_REF_ARGUMENT && b->instance)
        return child_argument(b, r);
    if (r->kind == STET_REF_ARGUMENT)
        id = stet_piece_part(b->g->piece, "argument", NULL);
    else if (r->kind == STET_REF_CELL)
        id = part(b, "cell", b->p->cells[r->index].name);
    else
        id = part(b, "node", b->p->nodes[r->index].id);
    stet_value out = with_cell(link_to(b, id, r->path), r->as_cell);
    stet_free(id);
    if (whole)
        b->links[r->index] = stet_value_retain(out);
    return out;
}

typedef struct copy_frame {
    stet_value from, to;
    size_t next;
} copy_frame;

/* A binding with every reference replaced by a link. Parts without references are shared, not copied. */
stet_value stet_build_binding(stet_build *b, stet_value binding) {
    STET_VEC(copy_frame) stack = {0};
    stet_value done = stet_value_null();
    bool have = false;
    *stet_vec_add(&stack) = (copy_frame){binding, stet_value_retain(binding), 0};
    while (stack.len > 0) {
        copy_frame *f = &stack.at[stack.len - 1];
        stet_type t = stet_value_type(f->from);
        stet_pattern_ref ref;
        stet_value inner;
        if (have) { /* a child is complete: put it in its place */
            size_t i = f->next++;
            if (t == STET_TYPE_ARRAY) {
                stet_value_put_at(&f->to, i, done);
            } else {
                size_t len;
                const char *key = stet_value_key_at(f->from, i, &len);
                stet_value_put_n(&f->to, key, len, done);
            }
            have = false;
        }
        bool leaf = t != STET_TYPE_ARRAY && t != STET_TYPE_OBJECT;
        if (f->next == 0 && !leaf && stet_pattern_resolve(b->p, f->from, &ref)) {
            stet_value_release(f->to);
            f->to = link_of_ref(b, &ref);
            leaf = true;
        } else if (f->next == 0 && !leaf && stet_binding_is_literal(f->from, &inner)) {
            leaf = true; /* stays wrapped: its content is not evaluated when it is read */
        }
        if (leaf || f->next >= stet_value_count(f->from)) {
            done = f->to;
            have = true;
            stack.len--;
            continue;
        }
        stet_value child = stet_value_at(f->from, f->next);
        if (stet_value_type(child) != STET_TYPE_ARRAY && stet_value_type(child) != STET_TYPE_OBJECT) {
            f->next++; /* a scalar stays as it is */
            continue;
        }
        *stet_vec_add(&stack) = (copy_frame){child, stet_value_retain(child), 0};
    }
    stet_vec_release(&stack);
    return done;
}

/* Keeps each schema once, by hash. */
static stet_value keep(stet_build *b, stet_value schema) {
    char hex[STET_HASH_HEX];
    stet_hash_hex(stet_hash_value(schema), hex);
    stet_value_put(&b->g->schemas, hex, stet_value_retain(schema));
    return stet_value_string(hex);
}

/* The row holds the hash. */
static void keep_schema(stet_build *b, stet_value from, const char *key, stet_value *to) {
    stet_value schema;
    if (stet_value_find(from, key, strlen(key), &schema))
        stet_value_put(to, key, keep(b, schema));
}

static void copy_member(stet_value from, const char *key, stet_value *to) {
    stet_value v;
    if (stet_value_find(from, key, strlen(key), &v))
        stet_value_put(to, key, stet_value_retain(v));
}

/* The fingerprint covers what determines the result: code, bindings, schemas, kind; not rank, timing options or texts.
 * It covers `after` as well: a file that the node read as a source may now be written by another node, which then runs
 * first. */
static stet_status fingerprint(stet_build *b, const char *id, stet_value descriptor, stet_value *row, stet_error *err) {
    stet_hash code = {{0}};
    stet_status status = b->modules ? b->modules->fingerprint(b->modules->ctx, descriptor, &code, err) : STET_OK;
    if (status != STET_OK) {
        stet_fail_in(err, "node \"%s\"", id);
        return status;
    }
    static const char *const covered[] = {"inputs",       "output", "stream",  "kind",  "argumentSchema",
                                          "resultSchema", "module", "returns", "after", "materializerWriteInputPaths"};
    stet_value all = stet_value_object();
    for (size_t i = 0; i < sizeof covered / sizeof *covered; i++)
        copy_member(*row, covered[i], &all);
    if (b->modules) { /* the kind of the module says which parts of the descriptor count */
        char hex[STET_HASH_HEX];
        stet_hash_hex(code, hex);
        stet_value schemas = stet_value_object(), module = stet_value_get(all, "module");
        copy_member(module, "argumentSchema", &schemas);
        copy_member(module, "resultSchema", &schemas);
        stet_value_put(&all, "module", schemas);
        stet_value_put(&all, "code", stet_value_string(hex));
    }
    char hex[STET_HASH_HEX];
    stet_hash_hex(stet_hash_value(all), hex);
    stet_value_release(all);
    stet_value_put(row, "fingerprint", stet_value_string(hex));
    return STET_OK;
}

/* Adds what the row of a coordinator says about its children: the template, how many ranks they take, and what they
 * contain. */
static stet_status add_template(stet_build *b, const stet_pattern_node *n, stet_child_role role, stet_value *row,
                                stet_error *err) {
    if (role == STET_CHILD_RETURNS) {
        stet_value_put(row, "returns", stet_value_string("pattern"));
        stet_value_put(row, "span", stet_value_int(STET_CHILD_CHAIN / 16));
        return STET_OK;
    }
    stet_templates mine = {0};
    stet_template *t;
    stet_templates *all = b->modules && b->modules->templates ? b->modules->templates : &mine;
    stet_status status = stet_template_of(all, stet_value_get(n->module, "pattern"), b->modules, b->depth + 1, &t, err);
    if (status == STET_OK) {
        char hex[STET_HASH_HEX];
        stet_hash_hex(t->hash, hex);
        stet_value_put(row, "template", stet_value_string(hex));
        stet_value_put(row, "span", stet_value_int(role == STET_CHILD_REDUCE ? STET_CHILD_CHAIN : (int64_t)t->span));
        if (t->height > b->height)
            b->height = t->height;
        if (t->effects)
            stet_value_put(row, "effects", stet_value_int(t->effects));
        if (t->verifiers)
            stet_value_put(row, "verifiers", stet_value_int(t->verifiers));
        if (t->restarts)
            stet_value_put(row, "restarts", stet_value_int(t->restarts));
        if (stet_value_count(t->passes) > 0)
            stet_value_put(row, "passes", stet_value_retain(t->passes));
        for (size_t i = 0; i < stet_value_count(t->shape->schemas); i++) {
            size_t len;
            const char *key = stet_value_key_at(t->shape->schemas, i, &len);
            stet_value_put_n(&b->g->schemas, key, len, stet_value_retain(stet_value_at(t->shape->schemas, i)));
        }
    } else {
        stet_fail_in(err, "the child pattern of node \"%s\"", n->id);
    }
    stet_templates_release(&mine);
    return status;
}

/* `link`: where the result goes; null: where the node says. */
static stet_status build_row(stet_build *b, const stet_pattern_node *n, stet_value link, stet_value *out,
                             stet_error *err) {
    stet_value row = stet_value_object(), module = stet_value_retain(n->module);
    stet_child_role role = stet_child_role_of(n->value);
    keep_schema(b, n->module, "argumentSchema", &module);
    keep_schema(b, n->module, "resultSchema", &module);
    stet_value_put(&row, "module", module);
    if (stet_value_type(n->inputs) == STET_TYPE_ARRAY) {
        /* From here on, positions are keys. */
        stet_value inputs = stet_value_object();
        for (size_t i = 0; i < stet_value_count(n->inputs); i++) {
            char key[24];
            snprintf(key, sizeof key, "%zu", i);
            stet_value_put(&inputs, key, stet_build_binding(b, stet_value_at(n->inputs, i)));
        }
        stet_value_put(&row, "inputs", inputs);
    } else if (stet_value_type(n->inputs) == STET_TYPE_OBJECT) {
        stet_value_put(&row, "inputs", stet_build_binding(b, n->inputs));
    } else {
        stet_value_put(&row, "inputs", stet_value_object());
    }
    if (stet_value_find(n->value, "argumentSchema", 14, NULL) ||
        stet_value_find(n->module, "argumentSchema", 14, NULL)) {
        stet_value inputs = stet_value_retain(stet_value_get(row, "inputs"));
        stet_cells_mark(&inputs, n->value, n->module);
        stet_value_put(&row, "inputs", inputs);
    }
    stet_value after;
    if (stet_value_find(b->p->after, n->id, strlen(n->id), &after))
        stet_value_put(&row, "after", stet_build_binding(b, after));
    stet_value_put(&row, n->kind == STET_NODE_HANDLER ? "stream" : "output",
                   stet_value_type(link) == STET_TYPE_NULL ? link_of_ref(b, &n->output) : stet_value_retain(link));
    if (n->kind == STET_NODE_EFFECT)
        stet_value_put(&row, "kind", stet_value_string("effect"));
    else if (n->kind == STET_NODE_HANDLER)
        stet_value_put(&row, "kind", stet_value_string("event-handler"));
    keep_schema(b, n->value, "argumentSchema", &row);
    keep_schema(b, n->value, "resultSchema", &row);
    static const char *const options[] = {"debounceMs", "throttleMs", "noDebounce",
                                          "onRestart",  "verifier",   "materializerWriteInputPaths",
                                          "title",      "metadata"}; /* the last two are for people */
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        copy_member(n->value, options[i], &row);
    stet_status status = role == STET_CHILD_NONE ? STET_OK : add_template(b, n, role, &row, err);
    if (status == STET_OK)
        status = fingerprint(b, n->id, n->module, &row, err);
    if (status == STET_OK)
        *out = row;
    else
        stet_value_release(row);
    return status;
}

/* A filter is two actions: the coordinator, which has a child for each element, and the action that reads the results
 * of the children and keeps the elements. */
static stet_status build_filter(stet_build *b, const stet_pattern_node *n, stet_built *out, stet_error *err) {
    char *hidden = stet_asprintf("%s[]", n->id), *doc = part(b, "node", hidden);
    stet_value link = link_to(b, doc, STET_PATH_ROOT), row = stet_value_object(), module = stet_value_object(),
               inputs = stet_value_object();
    stet_status status = build_row(b, n, link, &out->row[1], err);
    out->id[1] = stet_arena_strdup(&b->g->arena, hidden);
    stet_value_put(&module, "type", stet_value_string("ref"));
    stet_value_put(&module, "ref", stet_value_string("filter"));
    stet_value_put(&inputs, "tested", link);
    stet_value_put(&row, "module", module);
    stet_value_put(&row, "inputs", inputs);
    stet_value_put(&row, "output", link_of_ref(b, &n->output));
    if (status == STET_OK)
        status = fingerprint(b, n->id, module, &row, err);
    if (status == STET_OK) {
        out->row[0] = row;
        out->count = 2;
    } else {
        stet_value_release(row);
    }
    stet_free(hidden);
    stet_free(doc);
    return status;
}

stet_status stet_build_node(stet_build *b, const stet_pattern_node *n, stet_built *out, stet_error *err) {
    *out = (stet_built){.id = {n->id}, .count = 1};
    if (stet_child_role_of(n->value) == STET_CHILD_FILTER)
        return build_filter(b, n, out, err);
    return build_row(b, n, stet_value_null(), &out->row[0], err);
}

/* Modules of large graphs are mostly alike: equal ones that follow each other closely share one value. */
#define RECENT 8
typedef struct recent {
    stet_value at[RECENT];
    size_t next;
} recent;

static void share_module(recent *r, stet_value *row) {
    stet_value module = stet_value_get(*row, "module");
    for (size_t i = 0; i < RECENT; i++)
        if (stet_value_equal(r->at[i], module)) {
            stet_value_put(row, "module", stet_value_retain(r->at[i]));
            return;
        }
    stet_value_release(r->at[r->next]);
    r->at[r->next] = stet_value_retain(module);
    r->next = (r->next + 1) % RECENT;
}

/* Releases a node of the pattern that is not needed any more. */
static void use_up(stet_build *b, stet_value *authored, size_t i) {
    stet_pattern_node *n = &b->p->nodes[i];
    n->id = b->g->nodes[stet_map_get(&b->g->ids, n->id, strlen(n->id))->n].id;
    if (n->explicit_output) /* others may still be bound to its output */
        return;
    n->value = n->module = n->inputs = stet_value_null();
    stet_value_put_at(authored, i, stet_value_null());
}

stet_status stet_build_all(stet_build *b, stet_error *err) {
    stet_status status = STET_OK;
    recent modules = {0};
    stet_value authored = stet_value_null();
    b->links = stet_alloc_zero((b->p->node_count + 1) * sizeof *b->links);
    if (b->p->use_up && stet_value_count(stet_value_get(b->p->root, "nodes")) == b->p->node_count) {
        authored = stet_value_retain(stet_value_get(b->p->root, "nodes"));
        stet_value_remove(&b->p->root, "nodes", 5);
    }
    if (stet_value_type(b->p->argument_schema) != STET_TYPE_NULL)
        stet_value_release(keep(b, b->p->argument_schema));
    for (size_t i = 0; i < b->p->cell_count; i++)
        if (stet_value_type(b->p->cells[i].schema) != STET_TYPE_NULL)
            stet_value_release(keep(b, b->p->cells[i].schema));
    for (size_t i = 0; i < b->p->node_count && status == STET_OK; i++) {
        stet_built made;
        status = stet_build_node(b, &b->p->nodes[i], &made, err);
        for (int k = 0; status == STET_OK && k < made.count; k++) {
            share_module(&modules, &made.row[k]);
            stet_process_add(b->g, made.id[k], strlen(made.id[k]), made.row[k], i + (size_t)k ? 0 : b->p->node_count);
        }
        if (status == STET_OK && stet_value_type(authored) == STET_TYPE_ARRAY)
            use_up(b, &authored, i);
    }
    if (status == STET_OK)
        b->g->binding = stet_build_binding(b, b->p->result);
    for (size_t i = 0; i < b->p->node_count; i++)
        stet_value_release(b->links[i]);
    for (size_t i = 0; i < RECENT; i++)
        stet_value_release(modules.at[i]);
    free(b->links);
    b->links = NULL;
    if (status == STET_OK)
        stet_cells_envelopes(b->g, b->p);
    if (stet_value_type(authored) == STET_TYPE_ARRAY) { /* `output` of some nodes may point into it */
        stet_map_release(&b->p->names);
        free(b->p->nodes);
        b->p->names = (stet_map){0};
        b->p->nodes = NULL;
        b->p->node_count = 0;
        stet_value_release(authored);
    }
    return status;
}
