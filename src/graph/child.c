/* child.c - children: ids, templates, and the graphs that a node creates while it runs. */

#include "graph/child.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "graph/build.h"
#include "graph/cells.h"
#include "graph/order.h"

stet_child_role stet_child_role_of(stet_value row) {
    stet_value module = stet_value_get(row, "module"), ref = stet_value_get(module, "ref");
    if (stet_value_text_is(stet_value_get(row, "returns"), "pattern"))
        return STET_CHILD_RETURNS;
    if (!stet_value_text_is(stet_value_get(module, "type"), "ref") ||
        stet_value_type(stet_value_get(module, "pattern")) != STET_TYPE_OBJECT)
        return STET_CHILD_NONE;
    return stet_value_text_is(ref, "map")      ? STET_CHILD_MAP
           : stet_value_text_is(ref, "filter") ? STET_CHILD_FILTER
           : stet_value_text_is(ref, "reduce") ? STET_CHILD_REDUCE
                                               : STET_CHILD_NONE;
}

bool stet_child_input_own(stet_child_role role, const char *name, size_t len) {
    static const char *const own[] = {"list", "keys", "initial"};
    if (role == STET_CHILD_NONE || role == STET_CHILD_RETURNS)
        return false;
    for (size_t i = 0; i < (role == STET_CHILD_REDUCE ? 3u : 2u); i++)
        if (strlen(own[i]) == len && memcmp(own[i], name, len) == 0)
            return true;
    return false;
}

static bool key_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
}

/* NAME or NAME[KEY], any number of times, with dots between; NAME at the end, or NAME[]. */
bool stet_child_id_valid(const char *id, size_t len) {
    size_t at = 0;
    if (len > STET_CHILD_ID_MAX)
        return false;
    for (;;) {
        size_t name = at;
        while (at < len && id[at] != '[')
            at++;
        if (!stet_name_valid(id + name, at - name))
            return false;
        if (at == len)
            return true;
        size_t key = ++at;
        while (at < len && (key_char(id[at]) || id[at] == '%' || id[at] == '+' || id[at] == ','))
            at++;
        if (at >= len || id[at] != ']')
            return false;
        if (++at == len)
            return at - key == 1; /* NAME[] */
        if (id[at++] != '.')
            return false;
    }
}

size_t stet_child_instance(const char *id) {
    size_t found = 0;
    for (const char *p = strstr(id, "]."); p; p = strstr(p + 1, "]."))
        found = (size_t)(p - id) + 1;
    return found;
}

char *stet_child_coordinator(const char *instance, size_t len, bool hidden) {
    size_t base = len;
    while (base > 0 && instance[base - 1] != '[')
        base--;
    assert(base > 0);
    return stet_asprintf("%.*s%s", (int)(base - 1), instance, hidden ? "[]" : "");
}

char *stet_child_instance_id(const char *coordinator, const char *key) {
    size_t len = strlen(coordinator);
    if (len > 2 && strcmp(coordinator + len - 2, "[]") == 0)
        len -= 2;
    return stet_asprintf("%.*s[%s]", (int)len, coordinator, key);
}

static void add_hash(stet_hash h, stet_buf *out) {
    char hex[STET_HASH_HEX];
    stet_hash_hex(h, hex);
    stet_buf_char(out, '+');
    stet_buf_add(out, hex, 32);
}

void stet_child_key_text(stet_value key, stet_buf *out) {
    stet_buf raw = STET_BUF(0);
    size_t len, from = out->len;
    if (stet_value_type(key) == STET_TYPE_ARRAY || stet_value_type(key) == STET_TYPE_OBJECT) {
        add_hash(stet_hash_value(key), out);
        return;
    }
    const char *text = stet_value_as_string(&key, &len);
    bool plain = text && len > 0 && text[0] != '"' && text[0] != '-' && !(text[0] >= '0' && text[0] <= '9') &&
                 strcmp(text, "true") != 0 && strcmp(text, "false") != 0 && strcmp(text, "null") != 0;
    if (plain)
        stet_buf_add(&raw, text, len);
    else
        stet_json_write(&raw, key, STET_JSON_CANONICAL);
    for (size_t i = 0; i < raw.len && out->len - from <= STET_CHILD_KEY_TEXT; i++) {
        if (key_char(raw.data[i]))
            stet_buf_char(out, raw.data[i]);
        else
            stet_buf_printf(out, "%%%02X", (unsigned char)raw.data[i]);
    }
    if (out->len - from > STET_CHILD_KEY_TEXT) {
        size_t cut = from + 24;
        while (cut > from && (out->data[cut - 1] == '%' || (cut - 1 > from && out->data[cut - 2] == '%')))
            cut--; /* not inside a %XX */
        out->len = cut;
        add_hash(stet_hash_of(raw.data, raw.len), out);
    }
    stet_buf_release(&raw);
}

static void template_free(stet_template *t) {
    stet_process_free(t->shape);
    stet_pattern_free(t->pattern);
    stet_value_release(t->passes);
    free(t);
}

void stet_templates_release(stet_templates *all) {
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&all->by_hash, &i, &key, &len, &slot);)
        template_free(slot->p);
    stet_map_release(&all->by_hash);
}

typedef struct index_search {
    stet_pattern *p;
    bool found;
} index_search;

static bool find_index(void *ctx, stet_value binding, stet_pathref place) {
    index_search *s = ctx;
    stet_pattern_ref ref;
    stet_buf scratch = STET_BUF(0);
    size_t cursor = 0, len;
    const char *key;
    (void)place;
    if (stet_pattern_resolve(s->p, binding, &ref) && ref.kind == STET_REF_ARGUMENT &&
        stet_path_next(ref.path, &cursor, &scratch, &key, &len))
        s->found = len == 5 && memcmp(key, "index", 5) == 0;
    stet_buf_release(&scratch);
    return !s->found;
}

/* Does the template use the position of the element? If not, its children are not touched when elements move. */
static bool names_index(stet_pattern *p) {
    index_search s = {p, false};
    for (size_t i = 0; i < p->node_count && !s.found; i++)
        stet_binding_walk(p->nodes[i].inputs, find_index, &s);
    if (!s.found)
        stet_binding_walk(p->result, find_index, &s);
    return s.found;
}

static void measure(stet_template *t) {
    for (size_t i = 0; i < t->shape->node_count; i++) {
        stet_value row = t->shape->nodes[i].row;
        int64_t top =
            stet_value_as_int(stet_value_get(row, "rank")) + 1 + stet_value_as_int(stet_value_get(row, "span"));
        if (top > (int64_t)t->span)
            t->span = top < INT32_MAX ? (uint32_t)top : INT32_MAX;
        t->effects += stet_value_text_is(stet_value_get(row, "kind"), "effect") +
                      stet_value_as_int(stet_value_get(row, "effects"));
        t->verifiers +=
            stet_value_as_bool(stet_value_get(row, "verifier")) + stet_value_as_int(stet_value_get(row, "verifiers"));
        t->restarts += stet_value_text_is(stet_value_get(row, "onRestart"), "run") +
                       stet_value_as_int(stet_value_get(row, "restarts"));
    }
}

stet_template *stet_template_find(const stet_templates *all, stet_hash hash) {
    const stet_slot *slot = stet_map_get(&all->by_hash, hash.bytes, sizeof hash.bytes);
    return slot ? slot->p : NULL;
}

stet_status stet_template_of(stet_templates *all, stet_value pattern, const stet_process_modules *modules, int depth,
                             stet_template **out, stet_error *err) {
    stet_hash hash = stet_hash_value(pattern);
    *out = stet_template_find(all, hash);
    if (depth + (*out ? (*out)->height : 1) - 1 > STET_CHILD_MAX_DEPTH) {
        stet_fail(err, STET_LIMIT, "more than %d patterns inside each other", STET_CHILD_MAX_DEPTH);
        return STET_LIMIT;
    }
    if (*out)
        return STET_OK;
    stet_template *t = stet_alloc_zero(sizeof *t);
    t->hash = hash;
    stet_status status = stet_pattern_of_value("child", stet_value_retain(pattern), NULL, &t->pattern, NULL, err);
    if (status == STET_OK) {
        stet_build b = {.p = t->pattern,
                        .g = stet_process_new("-"),
                        .modules = modules,
                        .instance = STET_CHILD_SHAPE,
                        .depth = depth};
        b.g->template = true;
        t->shape = b.g;
        status = stet_build_all(&b, err);
        t->height = b.height + 1;
    }
    if (status != STET_OK) {
        template_free(t);
        return status;
    }
    stet_order_compute(t->shape, modules);
    measure(t);
    t->passes = stet_cells_passes(t->shape);
    t->index = names_index(t->pattern);
    t->fresh = t->pattern->arena.total;
    stet_map_put(&all->by_hash, hash.bytes, sizeof hash.bytes, (stet_slot){.p = t});
    *out = t;
    return STET_OK;
}

static void begin(stet_build *b, stet_template *t, const char *piece, stet_value row, const char *instance) {
    stet_child_role role = stet_child_role_of(row);
    stet_value inputs = stet_value_get(row, "inputs");
    *b = (stet_build){.p = t->pattern, .g = stet_process_new(piece), .instance = instance};
    b->outer = stet_value_object();
    b->own = stet_value_array();
    for (size_t i = 0; i < stet_value_count(inputs); i++) {
        size_t len;
        const char *name = stet_value_key_at(inputs, i, &len);
        if (!stet_child_input_own(role, name, len))
            stet_value_put_n(&b->outer, name, len, stet_value_retain(stet_value_at(inputs, i)));
    }
    if (role == STET_CHILD_RETURNS) {
        for (size_t i = 0; i < stet_value_count(t->pattern->argument_default); i++)
            if (stet_value_type(t->pattern->argument_default) == STET_TYPE_OBJECT)
                stet_value_push(&b->own, stet_value_string(stet_value_key_at(t->pattern->argument_default, i, NULL)));
        return;
    }
    stet_value_push(&b->own, stet_value_string("element"));
    if (t->index)
        stet_value_push(&b->own, stet_value_string("index"));
    if (role == STET_CHILD_REDUCE)
        stet_value_push(&b->own, stet_value_string("accumulator"));
}

static void end(stet_build *b) {
    stet_process_free(b->g);
    stet_value_release(b->outer);
    stet_value_release(b->own);
}

/* Resolving a reference leaves its path in the memory of the pattern, so that after very many of them the pattern is
 * parsed again. */
static stet_status refresh(stet_template *t, stet_error *err) {
    if (t->pattern->arena.total < t->fresh + ((size_t)8 << 20))
        return STET_OK;
    stet_pattern *p;
    stet_status status = stet_pattern_of_value("child", stet_value_retain(t->pattern->root), NULL, &p, NULL, err);
    if (status == STET_OK) {
        stet_pattern_free(t->pattern);
        t->pattern = p;
    }
    return status;
}

/* Adjusts the cells of a child: an input may be a cell only for its coordinator, which the shape does not know. The
 * child runs unasked if it would as part of its pattern, or if the coordinator does, since nobody reads the output of
 * either. */
static void place_cells(stet_value shape, stet_value parent, stet_value *row) {
    if (stet_value_find(*row, "stream", 6, NULL))
        return;
    stet_value envelopes = stet_cells_row_envelopes(*row);
    if (stet_value_count(envelopes) == 0) {
        stet_value_release(envelopes);
        return;
    }
    bool unasked =
        stet_value_find(parent, "materializer", 12, NULL) && !stet_value_as_bool(stet_value_get(parent, "onDemand"));
    stet_value_put(row, "materializer", envelopes);
    if (!unasked &&
        (!stet_value_find(shape, "materializer", 12, NULL) || stet_value_as_bool(stet_value_get(shape, "onDemand"))))
        stet_value_put(row, "onDemand", stet_value_bool(true));
}

/* Children have circles of their own; otherwise they belong to the circle of their coordinator. */
static void place_in_circle(stet_value shape, const char *instance, stet_value parent, stet_value *row) {
    stet_value own = stet_value_get(shape, "circle"), around = stet_value_get(parent, "circle");
    if (stet_value_type(own) == STET_TYPE_STRING) {
        stet_value_put(row, "circle", stet_value_stringf("%s.%s", instance, stet_value_as_string(&own, NULL)));
        stet_value_put(row, "turn", stet_value_retain(stet_value_get(shape, "turn")));
    } else if (stet_value_type(around) == STET_TYPE_STRING) {
        stet_value_put(row, "circle", stet_value_retain(around));
        stet_value_put(row, "turn", stet_value_retain(stet_value_get(parent, "turn")));
    }
}

/* Adds what the row of a child has beside its bindings: its rank, whether it is wanted, and its coordinator. */
static void place(stet_template *t, const char *local, const char *instance, const char *coordinator, stet_value parent,
                  stet_value *row) {
    const stet_process_node *shape = stet_process_find(t->shape, local);
    int64_t rank = stet_value_as_int(stet_value_get(parent, "rank")) + 1;
    /* Whoever is certain to read the parent's output reads the results in it if it is shown, or if it is a filter. */
    bool wanted =
        stet_value_as_bool(stet_value_get(parent, "certain")) &&
        (stet_value_as_bool(stet_value_get(parent, "shown")) || stet_child_role_of(parent) == STET_CHILD_FILTER);
    bool shown = shape && stet_value_as_bool(stet_value_get(shape->row, "shown"));
    bool certain = shape && (stet_value_as_bool(stet_value_get(shape->row, "effectual")) ||
                             (wanted && stet_value_as_bool(stet_value_get(shape->row, "certain"))));
    if (shape)
        rank += stet_value_as_int(stet_value_get(shape->row, "rank"));
    place_cells(shape ? shape->row : stet_value_null(), parent, row);
    stet_value_put(row, "rank", stet_value_int(rank));
    if (certain)
        stet_value_put(row, "certain", stet_value_bool(true));
    if (shown)
        stet_value_put(row, "shown", stet_value_bool(true));
    stet_value_put(row, "parent", stet_value_string(coordinator));
    place_in_circle(shape ? shape->row : stet_value_null(), instance, parent, row);
}

stet_status stet_child_rows(stet_template *t, const char *piece, const char *coordinator, stet_value coordinator_row,
                            const char *instance, const char *only, const stet_process_modules *modules,
                            stet_value *out, stet_error *err) {
    stet_build b;
    stet_status status = refresh(t, err);
    if (status != STET_OK)
        return status;
    size_t only_len = only ? strlen(only) : 0;
    if (only_len > 2 && strcmp(only + only_len - 2, "[]") == 0)
        only_len -= 2; /* the coordinator of a filter */
    begin(&b, t, piece, coordinator_row, instance);
    b.modules = modules;
    b.depth = 1;
    *out = stet_value_object();
    for (size_t i = 0; i < t->pattern->node_count && status == STET_OK; i++) {
        const stet_pattern_node *n = &t->pattern->nodes[i];
        if (only && (strlen(n->id) != only_len || memcmp(n->id, only, only_len) != 0))
            continue;
        stet_built made;
        status = stet_build_node(&b, n, &made, err);
        for (int k = 0; status == STET_OK && k < made.count; k++) {
            if (only && strcmp(made.id[k], only) != 0) {
                stet_value_release(made.row[k]);
                continue;
            }
            char *id = stet_asprintf("%s.%s", instance, made.id[k]);
            place(t, made.id[k], instance, coordinator, coordinator_row, &made.row[k]);
            if (strlen(id) > STET_CHILD_ID_MAX) {
                stet_value_release(made.row[k]);
                status = stet_fail(err, STET_LIMIT, "the id \"%.80s...\" of a child has more than %d bytes", id,
                                   STET_CHILD_ID_MAX);
            } else {
                stet_value_put(out, id, made.row[k]);
            }
            stet_free(id);
        }
    }
    end(&b);
    if (status != STET_OK)
        stet_value_release(*out);
    return status;
}

stet_value stet_child_result(stet_template *t, const char *piece, stet_value coordinator_row, const char *instance) {
    stet_build b;
    begin(&b, t, piece, coordinator_row, instance);
    stet_value out = stet_build_binding(&b, t->pattern->result);
    end(&b);
    return out;
}

stet_value stet_child_place(const char *piece, const char *instance, const char *first, const char *second) {
    char *id = stet_piece_part(piece, "child", instance);
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, first);
    if (second)
        stet_path_push(&path, second);
    stet_docname name = stet_piece_at(piece, id);
    stet_value out = stet_link_make(&name, stet_path_ref(&path));
    stet_path_release(&path);
    stet_free(id);
    return out;
}

bool stet_child_is_cell(stet_value binding) {
    stet_value link;
    return stet_link_is(binding, &link) && !stet_value_as_bool(stet_value_get(link, "asCell"));
}

/* A binding as a value: links stay, what is wrapped because it looks like one is unwrapped. */
stet_value stet_child_initial(stet_value row) {
    stet_value initial, inner;
    if (!stet_value_find(stet_value_get(row, "inputs"), "initial", 7, &initial))
        return stet_value_null();
    return stet_value_retain(stet_binding_is_literal(initial, &inner) ? inner : initial);
}
