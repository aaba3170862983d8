/* binding.c - bindings: references, links and literals, and what a reference stands for in its pattern. */

#include <string.h>

#include "base/suggest.h"
#include "base/vec.h"
#include "graph/pattern_internal.h"

bool stet_name_valid(const char *name, size_t len) {
    if (len == 0 || len > STET_PATTERN_MAX_NAME)
        return false;
    for (size_t i = 0; i < len; i++) {
        char ch = name[i];
        bool word = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '_';
        if (!word && (i == 0 || (ch != '-' && ch != '.')))
            return false;
    }
    return true;
}

bool stet_binding_is_ref(stet_value v) {
    return stet_value_type(v) == STET_TYPE_OBJECT && stet_value_find(v, "$", 1, NULL);
}

bool stet_binding_is_literal(stet_value v, stet_value *inner) {
    return stet_value_type(v) == STET_TYPE_OBJECT && stet_value_count(v) == 1 &&
           stet_value_find(v, "$literal", 8, inner);
}

bool stet_link_is(stet_value v, stet_value *inner) {
    stet_value sigil, link;
    size_t len;
    if (stet_value_type(v) != STET_TYPE_OBJECT || stet_value_count(v) != 1 || *stet_value_key_at(v, 0, &len) != '/' ||
        len != 1)
        return false;
    sigil = stet_value_at(v, 0);
    if (stet_value_type(sigil) != STET_TYPE_OBJECT || !stet_value_find(sigil, "link@1", 6, &link) ||
        stet_value_type(link) != STET_TYPE_OBJECT)
        return false;
    if (inner)
        *inner = link;
    return true;
}

typedef struct walk_frame {
    stet_value v;
    size_t next;
} walk_frame;

bool stet_binding_walk(stet_value binding, stet_binding_visit visit, void *ctx) {
    STET_VEC(walk_frame) stack = {0};
    stet_path place = STET_PATH_INIT;
    bool go = true;
    *stet_vec_add(&stack) = (walk_frame){binding, 0};
    while (go && stack.len > 0) {
        walk_frame *f = &stack.at[stack.len - 1];
        stet_type t = stet_value_type(f->v);
        bool leaf = t != STET_TYPE_ARRAY && t != STET_TYPE_OBJECT;
        if (f->next == 0 && (stet_binding_is_ref(f->v) || stet_link_is(f->v, NULL))) {
            go = visit(ctx, f->v, stet_path_ref(&place));
            leaf = true;
        } else if (f->next == 0 && stet_binding_is_literal(f->v, NULL)) {
            leaf = true;
        }
        if (leaf || f->next >= stet_value_count(f->v)) {
            if (--stack.len > 0)
                stet_path_pop(&place);
            continue;
        }
        size_t i = f->next++;
        stet_value item = stet_value_at(f->v, i);
        if (t == STET_TYPE_ARRAY) {
            stet_path_push_index(&place, i);
        } else {
            size_t len;
            const char *key = stet_value_key_at(f->v, i, &len);
            stet_path_push_n(&place, key, len);
        }
        *stet_vec_add(&stack) = (walk_frame){item, 0};
    }
    stet_vec_release(&stack);
    stet_path_release(&place);
    return go;
}

/* Splits "NAME/KEY/KEY" and encodes the keys. */
static bool split_reference(const char *text, size_t len, size_t *name_len, stet_path *path, stet_error *err) {
    const char *slash = memchr(text, '/', len);
    *name_len = slash ? (size_t)(slash - text) : len;
    return stet_path_of_pointer(path, text + *name_len, len - *name_len, err) == STET_OK;
}

bool pattern_resolve(stet_pattern *p, stet_value binding, stet_pattern_ref *out, stet_error *err) {
    *out = (stet_pattern_ref){.path = STET_PATH_ROOT};
    stet_value link;
    if (stet_link_is(binding, &link)) {
        stet_value id = stet_value_get(link, "id");
        stet_path path = STET_PATH_INIT;
        stet_value keys;
        if (stet_value_type(id) != STET_TYPE_STRING || stet_value_count(id) > 0) {
            stet_fail(err, STET_INVALID, "a link needs an \"id\" (a string)");
            return false;
        }
        if (stet_value_find(link, "path", 4, &keys) && stet_path_of_value(&path, keys, err) != STET_OK) {
            stet_path_release(&path);
            return false;
        }
        stet_pathref r = stet_path_ref(&path);
        out->kind = STET_REF_LINK;
        out->link = link;
        out->path = (stet_pathref){stet_arena_dup(&p->arena, r.bytes ? r.bytes : "", r.len), r.len};
        out->as_cell = stet_value_as_bool(stet_value_get(link, "asCell"));
        stet_path_release(&path);
        return true;
    }
    stet_value text = stet_value_get(binding, "$");
    size_t len, name_len;
    if (stet_value_type(text) != STET_TYPE_STRING) {
        stet_fail(err, STET_INVALID, "\"$\" must be a string, NAME or NAME/KEY");
        return false;
    }
    const char *s = stet_value_as_string(&text, &len);
    stet_path path = STET_PATH_INIT;
    if (!split_reference(s, len, &name_len, &path, err)) {
        stet_path_release(&path);
        return false;
    }
    stet_pathref r = stet_path_ref(&path);
    out->path = (stet_pathref){stet_arena_dup(&p->arena, r.bytes ? r.bytes : "", r.len), r.len};
    stet_path_release(&path);
    out->as_cell = stet_value_as_bool(stet_value_get(binding, "asCell"));
    if (name_len == 8 && memcmp(s, "argument", 8) == 0) {
        out->kind = STET_REF_ARGUMENT;
        return true;
    }
    const stet_slot *slot = stet_map_get(&p->names, s, name_len);
    if (!slot) {
        stet_fail(err, STET_NOT_FOUND,
                  "\"%.*s\" refers to \"%.*s\", which is no node, no named cell, and not the argument",
                  (int)(len < 200 ? len : 200), s, (int)(name_len < 200 ? name_len : 200), s);
        stet_suggest near = stet_suggest_begin_n(s, name_len);
        const void *known;
        size_t known_len;
        stet_slot *each;
        for (size_t i = 0; stet_map_next(&p->names, &i, &known, &known_len, &each);)
            stet_suggest_offer_n(&near, known, known_len);
        if (near.best)
            stet_hint(err, "did you mean \"%.*s\"?", (int)near.best_len, near.best);
        else
            stet_hint(err, "add a node or a cell of that name, or refer to one of those that are there");
        return false;
    }
    out->kind = slot->n & 1 ? STET_REF_NODE : STET_REF_CELL;
    out->index = (uint32_t)(slot->n >> 1);
    /* A node with an explicit output is read at that output. */
    if (out->kind == STET_REF_NODE && p->nodes[out->index].explicit_output) {
        const stet_pattern_ref *o = &p->nodes[out->index].output;
        char *joined = stet_arena_alloc(&p->arena, o->path.len + out->path.len + 1);
        memcpy(joined, o->path.bytes, o->path.len);
        memcpy(joined + o->path.len, out->path.bytes, out->path.len);
        out->path = (stet_pathref){joined, o->path.len + out->path.len};
        out->kind = o->kind;
        out->index = o->index;
        out->link = o->link;
    }
    return true;
}

bool stet_pattern_resolve(stet_pattern *p, stet_value binding, stet_pattern_ref *out) {
    if (!stet_binding_is_ref(binding) && !stet_link_is(binding, NULL))
        return false;
    return pattern_resolve(p, binding, out, NULL);
}
