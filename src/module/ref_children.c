/* ref_children.c - the builtin functions map, filter and reduce: one child for each element of a list.
 *
 * Only the coordinator reads the list, and it does not follow links in it: what a link leads to is read by the child
 * whose element it is.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "graph/child.h"
#include "module/ref.h"

typedef struct argument_check {
    stet_pattern *p;
    stet_value inputs;
    bool reduce;
    char missing[STET_PATTERN_MAX_NAME + 1];
} argument_check;

static bool check_argument(void *ctx, stet_value binding, stet_pathref place) {
    argument_check *c = ctx;
    stet_pattern_ref ref;
    stet_buf scratch = STET_BUF(0);
    size_t cursor = 0, len;
    const char *key;
    (void)place;
    bool fine = true;
    if (stet_pattern_resolve(c->p, binding, &ref) && ref.kind == STET_REF_ARGUMENT &&
        stet_path_next(ref.path, &cursor, &scratch, &key, &len)) {
        fine = (len == 7 && memcmp(key, "element", 7) == 0) || (len == 5 && memcmp(key, "index", 5) == 0) ||
               (c->reduce && len == 11 && memcmp(key, "accumulator", 11) == 0);
        size_t at;
        if (!fine && stet_value_type(c->inputs) == STET_TYPE_ARRAY)
            fine = stet_path_index(key, len, &at) && at < stet_value_count(c->inputs);
        else if (!fine)
            fine = stet_value_find(c->inputs, key, len, NULL);
        if (!fine)
            snprintf(c->missing, sizeof c->missing, "%.*s", (int)(len < STET_PATTERN_MAX_NAME ? len : 200), key);
    }
    stet_buf_release(&scratch);
    return fine;
}

/* How deep patterns lie inside each other, found without recursion: check is about to recurse so deep. */
static int nesting(stet_value pattern) {
    typedef struct level {
        stet_value pattern;
        int depth;
    } level;
    STET_VEC(level) stack = {0};
    int deepest = 0;
    *stet_vec_add(&stack) = (level){pattern, 1};
    while (stack.len > 0 && deepest <= STET_CHILD_MAX_DEPTH) {
        level l = stack.at[--stack.len];
        stet_value nodes = stet_value_get(l.pattern, "nodes");
        deepest = l.depth > deepest ? l.depth : deepest;
        for (size_t i = 0; stet_value_type(nodes) == STET_TYPE_ARRAY && i < stet_value_count(nodes); i++) {
            stet_value inner = stet_value_get(stet_value_get(stet_value_at(nodes, i), "module"), "pattern");
            if (stet_value_type(inner) == STET_TYPE_OBJECT)
                *stet_vec_add(&stack) = (level){inner, l.depth + 1};
        }
    }
    stet_vec_release(&stack);
    return deepest;
}

static stet_status check_inputs(const ref_row *row, stet_value inputs, stet_error *err) {
    static const char *const taken[] = {"element", "index", "accumulator"};
    for (size_t i = 0; stet_value_type(inputs) == STET_TYPE_OBJECT && i < sizeof taken / sizeof *taken; i++)
        if (stet_value_find(inputs, taken[i], strlen(taken[i]), NULL)) {
            stet_fail(err, STET_INVALID,
                      "ref \"%s\" has no input \"%s\": that is what each child finds in its argument", row->name,
                      taken[i]);
            stet_hint(err, "give what is passed on to the children another name");
            return STET_INVALID;
        }
    return STET_OK;
}

stet_status ref_check_children(const ref_row *row, stet_value descriptor, stet_value node, stet_error *err) {
    static const stet_pattern_checks checks = {.module = stet_module_check};
    stet_value pattern, key, inputs = stet_value_get(node, "inputs");
    if (!stet_value_find(descriptor, "pattern", 7, &pattern) || stet_value_type(pattern) != STET_TYPE_OBJECT) {
        stet_fail(err, STET_INVALID, "ref \"%s\" needs a \"pattern\": what is computed for each element", row->name);
        stet_hint(err, "write {\"pattern\": 1, \"name\": ..., \"nodes\": [...], \"result\": {\"$\": NODE}}; its "
                       "argument is {\"element\": ELEMENT}");
        return STET_INVALID;
    }
    if (stet_value_find(descriptor, "key", 3, &key)) {
        stet_path path = STET_PATH_INIT;
        size_t len;
        const char *text = stet_value_as_string(&key, &len);
        bool fine = text ? text[0] != '/' || stet_path_of_pointer(&path, text, len, NULL) == STET_OK
                         : stet_value_type(key) == STET_TYPE_ARRAY && stet_path_of_value(&path, key, NULL) == STET_OK;
        stet_path_release(&path);
        if (!fine || (text && len == 0)) {
            stet_fail(err, STET_INVALID, "the key of ref \"%s\" is no path into an element", row->name);
            stet_hint(err, "write the name of a member, a JSON Pointer, or a list of keys");
            return STET_INVALID;
        }
    }
    if (stet_value_find(node, "resultSchema", 12, NULL) || stet_value_find(descriptor, "resultSchema", 12, NULL) ||
        stet_value_find(node, "argumentSchema", 14, NULL) || stet_value_find(descriptor, "argumentSchema", 14, NULL)) {
        stet_fail(err, STET_INVALID, "ref \"%s\" has no schemas of its own: it does not look into its elements",
                  row->name);
        stet_hint(err, "put them on the nodes of the child pattern");
        return STET_INVALID;
    }
    stet_status status = check_inputs(row, inputs, err);
    if (status != STET_OK)
        return status;
    if (nesting(pattern) > STET_CHILD_MAX_DEPTH) {
        stet_fail(err, STET_LIMIT, "more than %d patterns inside each other", STET_CHILD_MAX_DEPTH);
        stet_hint(err, "compute the inner ones in one action");
        return STET_LIMIT;
    }
    stet_pattern *p;
    status = stet_pattern_of_value("child pattern", stet_value_retain(pattern), &checks, &p, NULL, err);
    if (status != STET_OK)
        return status;
    argument_check c = {.p = p, .inputs = inputs, .reduce = strcmp(row->name, "reduce") == 0};
    bool fine = stet_binding_walk(p->result, check_argument, &c);
    for (size_t i = 0; i < p->node_count && fine; i++)
        fine = stet_binding_walk(p->nodes[i].inputs, check_argument, &c);
    if (!fine) {
        status =
            stet_fail(err, STET_INVALID, "the child pattern names \"argument/%s\", which it is not given", c.missing);
        stet_hint(err,
                  "add the input \"%s\" beside \"list\"; by itself a child has argument/element and argument/index%s",
                  c.missing, c.reduce ? " and argument/accumulator" : "");
    } else if (stet_value_type(p->result) == STET_TYPE_NULL) {
        status = stet_fail(err, STET_INVALID, "the child pattern has no result");
        stet_hint(err, "add \"result\": {\"$\": NODE}");
    }
    stet_pattern_free(p);
    return status;
}

typedef struct children {
    ref_call *call;
    stet_value list, keys;
    char list_key[24];
    stet_path key_path; /* into an element */
    bool by_path, by_keys;
    STET_VEC(stet_run_child) at;
    stet_map seen; /* key text -> how often */
    stet_arena arena;
    stet_buf text;
} children;

/* The key of one element. Borrowed. A link on the way is followed: that is a read. */
static stet_status key_of(children *c, size_t i, stet_value element, stet_value *out, stet_error *err) {
    *out = stet_value_null();
    if (c->by_keys) {
        if (i < stet_value_count(c->keys))
            *out = stet_value_at(c->keys, i);
        return STET_OK;
    }
    if (!c->by_path) {
        *out = element;
        return STET_OK;
    }
    stet_pathref path = stet_path_ref(&c->key_path);
    stet_buf scratch = STET_BUF(0);
    size_t cursor = 0, len, index;
    const char *key;
    stet_value cur = element;
    bool linked = stet_link_is(cur, NULL), there = true;
    while (!linked && there && stet_path_next(path, &cursor, &scratch, &key, &len)) {
        if (stet_value_type(cur) == STET_TYPE_OBJECT)
            there = stet_value_find(cur, key, len, &cur);
        else if (stet_value_type(cur) == STET_TYPE_ARRAY && stet_path_index(key, len, &index) &&
                 index < stet_value_count(cur))
            cur = stet_value_at(cur, index);
        else
            there = false;
        linked = there && stet_link_is(cur, NULL);
    }
    stet_buf_release(&scratch);
    if (!linked) {
        *out = there ? cur : stet_value_null();
        return STET_OK;
    }
    stet_path whole = STET_PATH_INIT;
    stet_path_push(&whole, c->list_key);
    stet_path_push_index(&whole, i);
    stet_buf_add(&whole.buf, path.bytes, path.len);
    stet_status status = stet_run_read(c->call->run, stet_path_ref(&whole), STET_RECURSIVE, out, err);
    stet_path_release(&whole);
    if (status == STET_NOT_FOUND) {
        if (err)
            stet_error_clear(err);
        *out = stet_value_null();
        status = STET_OK;
    }
    return status;
}

static stet_status add_child(children *c, size_t i, stet_error *err) {
    stet_value element = stet_value_at(c->list, i), key, inner;
    if (stet_binding_is_literal(element, &inner) && !stet_link_is(stet_value_get(c->call->bindings, c->list_key), NULL))
        element = inner; /* a list that is written in the pattern itself */
    stet_status status = key_of(c, i, element, &key, err);
    if (status != STET_OK)
        return status;
    stet_buf_clear(&c->text);
    stet_child_key_text(key, &c->text);
    stet_slot *slot = stet_map_get(&c->seen, c->text.data, c->text.len);
    if (slot)
        stet_buf_printf(&c->text, ",%llu", (unsigned long long)++slot->n);
    else
        stet_map_put(&c->seen, c->text.data, c->text.len, (stet_slot){.n = 1});
    *stet_vec_add(&c->at) = (stet_run_child){stet_arena_strndup(&c->arena, c->text.data, c->text.len), element};
    return STET_OK;
}

static stet_status read_list(children *c, stet_error *err) {
    stet_path path = STET_PATH_INIT;
    if (!ref_key(c->call, "list", c->list_key))
        return stet_fail(err, STET_INVALID, "there is no list");
    stet_path_push(&path, c->list_key);
    stet_status status = stet_run_raw(c->call->run, stet_path_ref(&path), &c->list, err);
    stet_path_release(&path);
    if (status == STET_NOT_FOUND) {
        if (err)
            stet_error_clear(err);
        c->list = stet_value_null();
        status = STET_OK;
    }
    if (status == STET_OK && stet_value_type(c->list) != STET_TYPE_NULL && stet_value_type(c->list) != STET_TYPE_ARRAY)
        status = ref_expected(err, "list", "an array", c->list);
    return status;
}

static stet_status read_keys(children *c, stet_error *err) {
    stet_value key = stet_value_get(stet_run_descriptor(c->call->run), "key");
    size_t len;
    stet_status status = STET_OK;
    if (ref_has(c->call, "keys")) {
        c->by_keys = true;
        status = ref_arg(c->call, "keys", STET_RECURSIVE, &c->keys, err);
        if (status == STET_OK && stet_value_type(c->keys) != STET_TYPE_ARRAY &&
            stet_value_type(c->keys) != STET_TYPE_NULL)
            status = ref_expected(err, "keys", "an array", c->keys);
    } else if (stet_value_type(key) == STET_TYPE_STRING) {
        const char *text = stet_value_as_string(&key, &len);
        c->by_path = true;
        if (text[0] == '/')
            status = stet_path_of_pointer(&c->key_path, text, len, err);
        else
            stet_path_push_n(&c->key_path, text, len);
    } else if (stet_value_type(key) == STET_TYPE_ARRAY) {
        c->by_path = true;
        status = stet_path_of_value(&c->key_path, key, err);
    }
    return status;
}

static stet_status run_children(ref_call *call, stet_value *out, stet_error *err) {
    children c = {.call = call, .key_path = STET_PATH_INIT, .text = STET_BUF(0)};
    stet_status status = read_list(&c, err);
    if (status == STET_OK)
        status = read_keys(&c, err);
    if (status == STET_OK && stet_value_count(c.list) > STET_CHILDREN_MAX) {
        status = stet_fail(err, STET_LIMIT, "%zu elements, more than the %d that may have children of their own",
                           stet_value_count(c.list), STET_CHILDREN_MAX);
        stet_hint(err, "split the list, or compute over it in one action");
    }
    for (size_t i = 0; i < stet_value_count(c.list) && status == STET_OK; i++)
        status = add_child(&c, i, err);
    if (status == STET_OK)
        status = stet_run_children(call->run, c.at.at, c.at.len, err);
    *out = stet_value_null(); /* the output is written with the children */
    stet_vec_release(&c.at);
    stet_map_release(&c.seen);
    stet_arena_release(&c.arena);
    stet_buf_release(&c.text);
    stet_path_release(&c.key_path);
    return status;
}

/* [{"element": LINK, "keep": LINK}]: those whose `keep` is true. */
static stet_status keep_elements(ref_call *call, stet_value *out, stet_error *err) {
    stet_path path = STET_PATH_INIT;
    stet_value tested, kept = stet_value_array();
    stet_path_push(&path, "tested");
    stet_status status = stet_run_raw(call->run, stet_path_ref(&path), &tested, err);
    if (status == STET_NOT_FOUND) {
        if (err)
            stet_error_clear(err);
        tested = stet_value_null();
        status = STET_OK;
    }
    size_t n = stet_value_type(tested) == STET_TYPE_ARRAY ? stet_value_count(tested) : 0;
    for (size_t i = 0; i < n && status == STET_OK; i++) {
        stet_value yes;
        stet_path_push_index(&path, i);
        stet_path_push(&path, "keep");
        status = stet_run_read(call->run, stet_path_ref(&path), STET_RECURSIVE, &yes, err);
        stet_path_pop(&path);
        stet_path_pop(&path);
        if (status == STET_NOT_FOUND) {
            if (err)
                stet_error_clear(err);
            yes = stet_value_null();
            status = STET_OK;
        }
        if (status == STET_OK && ref_truth(yes))
            stet_value_push(&kept, stet_value_retain(stet_value_get(stet_value_at(tested, i), "element")));
    }
    stet_path_release(&path);
    if (status == STET_OK)
        *out = kept;
    else
        stet_value_release(kept);
    return status;
}

static stet_status run_filter(ref_call *call, stet_value *out, stet_error *err) {
    bool coordinator = stet_value_type(stet_value_get(stet_run_descriptor(call->run), "pattern")) == STET_TYPE_OBJECT;
    return coordinator ? run_children(call, out, err) : keep_elements(call, out, err);
}

const ref_row ref_row_map = {.name = "map", .inputs = "list keys? *", .run = run_children};
const ref_row ref_row_filter = {.name = "filter", .inputs = "list keys? *", .run = run_filter};
const ref_row ref_row_reduce = {.name = "reduce", .inputs = "list initial? keys? *", .run = run_children};

bool ref_has_children(const ref_row *row) {
    return row == &ref_row_map || row == &ref_row_filter || row == &ref_row_reduce;
}
