/* patch.c - the nine patch operations: read, print, apply, encode, decode.
 *
 * Binary form (in commit bodies): for each operation
 *
 *     varint kind
 *     varint length, path
 *     move:   varint length, path moved from
 *     splice: varint index, varint count
 *     all but remove and move: varint length, canonical text of the value
 *
 * Applying walks down to the container that holds the last key, taking each container out of its parent on the way, so
 * that one nobody else shares is changed in place, and puts them back on the way up. No recursion: paths are data.
 */

#include <math.h>

#include "memory/internal.h"
#include "memory/record.h"

typedef struct kind_row {
    const char *name;
    bool value;
} kind_row;

static const kind_row kinds[] = {
    [STET_PATCH_REPLACE] = {"replace", true},       [STET_PATCH_ADD] = {"add", true},
    [STET_PATCH_REMOVE] = {"remove", false},        [STET_PATCH_MOVE] = {"move", false},
    [STET_PATCH_SPLICE] = {"splice", true},         [STET_PATCH_APPEND] = {"append", true},
    [STET_PATCH_ADD_UNIQUE] = {"add-unique", true}, [STET_PATCH_REMOVE_VALUE] = {"remove-by-value", true},
    [STET_PATCH_INCREMENT] = {"increment", true}};
#define KINDS (sizeof kinds / sizeof *kinds)

static const char *value_member(stet_patch_kind kind) {
    switch (kind) {
    case STET_PATCH_SPLICE:
        return "add";
    case STET_PATCH_APPEND:
        return "values";
    case STET_PATCH_INCREMENT:
        return "by";
    default:
        return "value";
    }
}

static stet_status path_member(stet_value op, const char *member, bool meta, stet_arena *arena, stet_pathref *out,
                               stet_error *err) {
    stet_value v = stet_value_get(op, member);
    stet_path p = STET_PATH_INIT, inner = STET_PATH_INIT;
    stet_status st;
    if (stet_value_type(v) == STET_TYPE_STRING) {
        size_t len;
        const char *text = stet_value_as_string(&v, &len);
        st = stet_path_of_pointer(&inner, text, len, err);
    } else if (stet_value_type(v) == STET_TYPE_ARRAY) {
        st = stet_path_of_value(&inner, v, err);
    } else {
        st = stet_fail(err, STET_INVALID, "\"%s\": expected a JSON Pointer or an array of keys", member);
    }
    if (st == STET_OK) {
        if (!meta)
            stet_path_push(&p, "value");
        stet_buf_add(&p.buf, inner.buf.data ? inner.buf.data : "", inner.buf.len);
        if (p.buf.overflow || stet_path_depth(stet_path_ref(&p)) >= STET_DOC_MAX_DEPTH)
            st = stet_fail(err, STET_LIMIT, "\"%s\": path too long", member);
    }
    if (st == STET_OK) {
        stet_pathref r = stet_path_ref(&p);
        *out = (stet_pathref){stet_arena_strndup(arena, r.bytes, r.len), r.len};
    }
    stet_path_release(&p);
    stet_path_release(&inner);
    return st;
}

static stet_status count_member(stet_value op, const char *member, size_t otherwise, size_t *out, stet_error *err) {
    stet_value v;
    if (!stet_value_find(op, member, strlen(member), &v)) {
        *out = otherwise;
        return STET_OK;
    }
    if (stet_value_type(v) != STET_TYPE_INT || stet_value_as_int(v) < 0)
        return stet_fail(err, STET_INVALID, "\"%s\": expected a number from 0", member);
    *out = (size_t)stet_value_as_int(v);
    return STET_OK;
}

static bool member_known(const stet_patch *op, const char *key, size_t len) {
    const char *known[] = {"op",
                           "path",
                           kinds[op->kind].value ? value_member(op->kind) : "op",
                           op->kind == STET_PATCH_MOVE ? "from" : "op",
                           op->kind == STET_PATCH_SPLICE ? "index" : "op",
                           op->kind == STET_PATCH_SPLICE ? "remove" : "op"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i]) == len && memcmp(known[i], key, len) == 0)
            return true;
    return false;
}

static stet_status read_value_member(stet_value op, stet_patch *p, stet_error *err) {
    const char *member = value_member(p->kind);
    stet_value v;
    bool there = stet_value_find(op, member, strlen(member), &v);
    if (!there && p->kind == STET_PATCH_INCREMENT) {
        v = stet_value_int(1);
    } else if (!there && p->kind == STET_PATCH_SPLICE) {
        p->value = stet_value_array();
        return STET_OK;
    } else if (!there) {
        return stet_fail(err, STET_INVALID, "\"%s\" is missing", member);
    }
    stet_type t = stet_value_type(v);
    if ((p->kind == STET_PATCH_SPLICE || p->kind == STET_PATCH_APPEND) && t != STET_TYPE_ARRAY)
        return stet_fail(err, STET_INVALID, "\"%s\": expected an array", member);
    if (p->kind == STET_PATCH_INCREMENT && t != STET_TYPE_INT && t != STET_TYPE_DOUBLE)
        return stet_fail(err, STET_INVALID, "\"%s\": expected a number", member);
    p->value = stet_value_retain(v);
    return STET_OK;
}

static stet_status read_op(stet_value op, bool meta, stet_arena *arena, stet_patch *p, stet_error *err) {
    if (stet_value_type(op) != STET_TYPE_OBJECT)
        return stet_fail(err, STET_INVALID, "expected an object");
    stet_value name = stet_value_get(op, "op");
    size_t len;
    const char *text = stet_value_as_string(&name, &len);
    for (size_t k = 1; k < KINDS && text; k++)
        if (strlen(kinds[k].name) == len && memcmp(kinds[k].name, text, len) == 0)
            p->kind = (stet_patch_kind)k;
    if (!p->kind)
        return stet_fail(err, STET_INVALID,
                         "\"op\": expected replace, add, remove, move, splice, append, add-unique, remove-by-value or "
                         "increment");
    for (size_t i = 0; i < stet_value_count(op); i++) {
        const char *key = stet_value_key_at(op, i, &len);
        if (!member_known(p, key, len))
            return stet_fail(err, STET_INVALID, "%s: unknown member \"%.100s\"", kinds[p->kind].name, key);
    }
    stet_status st = path_member(op, "path", meta, arena, &p->path, err);
    if (st == STET_OK && p->kind == STET_PATCH_MOVE)
        st = path_member(op, "from", meta, arena, &p->from, err);
    if (st == STET_OK && p->kind == STET_PATCH_SPLICE)
        st = count_member(op, "index", 0, &p->index, err);
    if (st == STET_OK && p->kind == STET_PATCH_SPLICE)
        st = count_member(op, "remove", 0, &p->count, err);
    if (st == STET_OK && kinds[p->kind].value)
        st = read_value_member(op, p, err);
    return st;
}

stet_status stet_patches_of_value(stet_value list, bool meta, stet_arena *arena, stet_patches *out, stet_error *err) {
    if (stet_value_type(list) != STET_TYPE_ARRAY)
        return stet_fail(err, STET_INVALID, "patches: expected an array of operations");
    if (stet_value_count(list) > STET_COMMIT_MAX_OPS)
        return stet_fail(err, STET_LIMIT, "%zu patch operations: at most %d are allowed", stet_value_count(list),
                         STET_COMMIT_MAX_OPS);
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_patch p = {0};
        stet_status st = read_op(stet_value_at(list, i), meta, arena, &p, err);
        if (st != STET_OK) {
            stet_fail_in(err, "patch %zu", i);
            stet_patches_release(out);
            return st;
        }
        *stet_vec_add(out) = p;
    }
    return STET_OK;
}

static stet_value pointer(stet_pathref path) {
    stet_buf b = STET_BUF(0);
    stet_path_print(path, &b);
    stet_value v = stet_value_string_n(stet_buf_cstr(&b), b.len);
    stet_buf_release(&b);
    return v;
}

stet_value stet_patches_to_value(const stet_patch *at, size_t len) {
    stet_value list = stet_value_array();
    for (size_t i = 0; i < len; i++) {
        stet_value op = stet_value_object();
        stet_value_put(&op, "op", stet_value_string(kinds[at[i].kind].name));
        stet_value_put(&op, "path", pointer(at[i].path));
        if (at[i].kind == STET_PATCH_MOVE)
            stet_value_put(&op, "from", pointer(at[i].from));
        if (at[i].kind == STET_PATCH_SPLICE) {
            stet_value_put(&op, "index", stet_value_int((int64_t)at[i].index));
            stet_value_put(&op, "remove", stet_value_int((int64_t)at[i].count));
        }
        if (kinds[at[i].kind].value)
            stet_value_put(&op, value_member(at[i].kind), stet_value_retain(at[i].value));
        stet_value_push(&list, op);
    }
    return list;
}

void stet_patches_release(stet_patches *p) {
    for (size_t i = 0; i < p->len; i++)
        stet_value_release(p->at[i].value);
    stet_vec_release(p);
}

/* A container on the way down, taken out of its parent, and the key that is followed in it. */
typedef struct level {
    stet_value container;
    const char *key;
    size_t key_len, index;
    bool new; /* the key was absent */
    bool is_array;
} level;

#define FEW_LEVELS 8
#define FEW_BYTES  256

/* Ordinary paths need no other memory. */
typedef struct editor {
    level *levels;
    size_t len, cap;
    char *keys; /* decoded keys, one after the other; has at least the size of the path, so that it never moves */
    size_t keys_cap;
    stet_error *err;
    level few_levels[FEW_LEVELS];
    char few_bytes[FEW_BYTES];
} editor;

static void edit_begin(editor *e, stet_error *err) {
    e->levels = e->few_levels;
    e->len = 0;
    e->cap = FEW_LEVELS;
    e->keys = e->few_bytes;
    e->keys_cap = FEW_BYTES;
    e->err = err;
}

static void edit_end(editor *e) {
    if (e->levels != e->few_levels)
        free(e->levels);
    if (e->keys != e->few_bytes)
        free(e->keys);
}

static level *edit_push(editor *e, stet_value container) {
    if (e->len == e->cap) {
        level *more = stet_alloc(2 * e->cap * sizeof *more);
        memcpy(more, e->levels, e->len * sizeof *more);
        if (e->levels != e->few_levels)
            free(e->levels);
        e->levels = more;
        e->cap *= 2;
    }
    e->levels[e->len] = (level){.container = container};
    return &e->levels[e->len++];
}

static void edit_room(editor *e, size_t bytes) {
    if (bytes <= e->keys_cap)
        return;
    if (e->keys != e->few_bytes)
        free(e->keys);
    e->keys = stet_alloc(bytes);
    e->keys_cap = bytes;
}

bool stet_same_value(stet_value a, stet_value b) {
    return a.bits[0] == b.bits[0] && a.bits[1] == b.bits[1];
}

static stet_status blame(stet_status st, stet_error *err, stet_pathref path, const char *what) {
    stet_buf b = STET_BUF(0);
    stet_path_print(path, &b);
    stet_fail(err, st, "%s: %s", b.len ? stet_buf_cstr(&b) : "the whole document", what);
    stet_buf_release(&b);
    return st;
}

/* Finds the key of `l` in its container; `*child` is borrowed. STET_NOT_FOUND: it is absent, but could be added. */
static stet_status find_key(level *l, stet_pathref upto, bool dash, stet_value *child, stet_error *err) {
    stet_type t = stet_value_type(l->container);
    l->is_array = t == STET_TYPE_ARRAY;
    if (t == STET_TYPE_OBJECT)
        return stet_value_find(l->container, l->key, l->key_len, child) ? STET_OK : STET_NOT_FOUND;
    if (t != STET_TYPE_ARRAY)
        return blame(STET_INVALID, err, upto, "the path leads through a value that is no object or array");
    size_t n = stet_value_count(l->container);
    if (dash && l->key_len == 1 && l->key[0] == '-') {
        l->index = n;
        return STET_NOT_FOUND;
    }
    if (!stet_path_index(l->key, l->key_len, &l->index))
        return blame(STET_INVALID, err, upto, "an array index was expected");
    if (l->index > n || (l->index == n && !dash))
        return blame(STET_NOT_FOUND, err, upto, "beyond the end of the array");
    if (l->index == n)
        return STET_NOT_FOUND;
    *child = stet_value_at(l->container, l->index);
    return STET_OK;
}

/* Puts `child` (consumed) at the place that the level points to. */
static void put_back(level *l, stet_value child) {
    if (!l->is_array)
        stet_value_put_n(&l->container, l->key, l->key_len, child);
    else if (l->new && l->index == stet_value_count(l->container))
        stet_value_push(&l->container, child);
    else
        stet_value_put_at(&l->container, l->index, child);
}

/* Puts all levels back, so that `*doc` is the whole document again. */
static void ascend(editor *e, stet_value *doc) {
    while (e->len > 1) {
        level *l = &e->levels[--e->len];
        put_back(&e->levels[e->len - 1], l->container);
    }
    *doc = e->levels[0].container;
    e->len = 0;
}

/* Goes down to the container of the last key of `path`, which is not the root. Takes `*doc`. On failure everything is
 * put back as it was. The last level has its key set but not looked up. */
static stet_status descend(editor *e, stet_value *doc, stet_pathref path, bool create) {
    stet_status st = STET_OK;
    size_t cursor = 0, used = 0;
    edit_room(e, path.len);
    stet_buf scratch = STET_BUF(0);
    e->len = 0;
    edit_push(e, *doc);
    for (;;) {
        level *l = &e->levels[e->len - 1];
        const char *key;
        size_t key_len;
        bool more = stet_path_next(path, &cursor, &scratch, &key, &key_len);
        assert(more);
        (void)more;
        char *copy = e->keys + used;
        memcpy(copy, key, key_len);
        used += key_len;
        l->key = copy;
        l->key_len = key_len;
        if (cursor == path.len)
            break;
        stet_pathref upto = {path.bytes, cursor};
        stet_value child;
        st = find_key(l, upto, false, &child, e->err);
        if (st == STET_NOT_FOUND && create && !l->is_array) {
            l->new = true;
            edit_push(e, stet_value_object());
            st = STET_OK;
            continue;
        }
        if (st != STET_OK) {
            blame(st, e->err, upto, "nothing is there");
            break;
        }
        stet_type t = stet_value_type(child);
        if (t != STET_TYPE_OBJECT && t != STET_TYPE_ARRAY) {
            st = blame(STET_INVALID, e->err, upto, "the path leads through a value that is no object or array");
            break;
        }
        child = stet_value_retain(child);
        put_back(l, stet_value_null()); /* taken out, so that nobody else may hold it */
        edit_push(e, child);
    }
    stet_buf_release(&scratch);
    if (st != STET_OK) { /* only levels that existed are on the stack: no failure can follow a new one */
        ascend(e, doc);
    }
    return st;
}

/* Computes the new content of a target that is an array. Consumes `*target` and sets the new one. */
static stet_status edit_array(const stet_patch *p, stet_value *target, stet_error *err) {
    if (stet_value_type(*target) != STET_TYPE_ARRAY)
        return blame(STET_INVALID, err, p->path, "an array was expected");
    size_t n = stet_value_count(*target);
    switch (p->kind) {
    case STET_PATCH_SPLICE: {
        if (p->index > n)
            return blame(STET_NOT_FOUND, err, p->path, "splice beyond the end of the array");
        size_t gone = p->count < n - p->index ? p->count : n - p->index;
        stet_value made = stet_value_array();
        for (size_t i = 0; i < p->index; i++)
            stet_value_push(&made, stet_value_retain(stet_value_at(*target, i)));
        for (size_t i = 0; i < stet_value_count(p->value); i++)
            stet_value_push(&made, stet_value_retain(stet_value_at(p->value, i)));
        for (size_t i = p->index + gone; i < n; i++)
            stet_value_push(&made, stet_value_retain(stet_value_at(*target, i)));
        stet_value_release(*target);
        *target = made;
        return STET_OK;
    }
    case STET_PATCH_APPEND:
        for (size_t i = 0; i < stet_value_count(p->value); i++)
            stet_value_push(target, stet_value_retain(stet_value_at(p->value, i)));
        return STET_OK;
    case STET_PATCH_ADD_UNIQUE:
        for (size_t i = 0; i < n; i++)
            if (stet_value_equal(stet_value_at(*target, i), p->value))
                return STET_OK;
        stet_value_push(target, stet_value_retain(p->value));
        return STET_OK;
    default: {
        assert(p->kind == STET_PATCH_REMOVE_VALUE);
        stet_value made = stet_value_array();
        for (size_t i = 0; i < n; i++)
            if (!stet_value_equal(stet_value_at(*target, i), p->value))
                stet_value_push(&made, stet_value_retain(stet_value_at(*target, i)));
        stet_value_release(*target);
        *target = made;
        return STET_OK;
    }
    }
}

static stet_status edit_number(const stet_patch *p, stet_value *target, stet_error *err) {
    stet_type t = stet_value_type(*target);
    if (t != STET_TYPE_INT && t != STET_TYPE_DOUBLE)
        return blame(STET_INVALID, err, p->path, "increment: a number was expected");
    if (t == STET_TYPE_INT && stet_value_type(p->value) == STET_TYPE_INT) {
        int64_t sum;
        if (__builtin_add_overflow(stet_value_as_int(*target), stet_value_as_int(p->value), &sum))
            return blame(STET_LIMIT, err, p->path, "increment: beyond 64 bits");
        *target = stet_value_int(sum);
        return STET_OK;
    }
    double sum = stet_value_as_double(*target) + stet_value_as_double(p->value);
    if (!isfinite(sum))
        return blame(STET_LIMIT, err, p->path, "increment: not a finite number any more");
    return stet_value_double(sum, target, err);
}

/* Applies the operation at its last key. */
static stet_status apply_here(const stet_patch *p, level *l, stet_value moved, stet_error *err) {
    stet_value child = stet_value_null();
    bool inserts = p->kind == STET_PATCH_ADD || p->kind == STET_PATCH_MOVE;
    stet_status st = find_key(l, p->path, inserts || p->kind == STET_PATCH_REPLACE, &child, err);
    if (st != STET_OK && st != STET_NOT_FOUND)
        return st;
    bool there = st == STET_OK;
    bool possible = there || (!l->is_array) || l->index == stet_value_count(l->container);
    l->new = !there;
    switch (p->kind) {
    case STET_PATCH_REPLACE:
        if (!possible)
            return st;
        put_back(l, stet_value_retain(p->value));
        return STET_OK;
    case STET_PATCH_ADD:
    case STET_PATCH_MOVE:
        if (!possible)
            return st;
        if (l->is_array)
            stet_value_insert_at(&l->container, l->index,
                                 stet_value_retain(p->kind == STET_PATCH_MOVE ? moved : p->value));
        else
            put_back(l, stet_value_retain(p->kind == STET_PATCH_MOVE ? moved : p->value));
        return STET_OK;
    case STET_PATCH_REMOVE:
        if (!there)
            return blame(STET_NOT_FOUND, err, p->path, "nothing is there to remove");
        if (l->is_array)
            stet_value_remove_at(&l->container, l->index);
        else
            stet_value_remove(&l->container, l->key, l->key_len);
        return STET_OK;
    default:
        break;
    }
    bool made = p->kind == STET_PATCH_APPEND || p->kind == STET_PATCH_ADD_UNIQUE || p->kind == STET_PATCH_INCREMENT;
    if (!there && (!made || l->is_array))
        return blame(STET_NOT_FOUND, err, p->path, "nothing is there");
    bool number = p->kind == STET_PATCH_INCREMENT;
    stet_value target = there ? stet_value_retain(child) : number ? stet_value_int(0) : stet_value_array();
    if (there)
        put_back(l, stet_value_null());
    st = number ? edit_number(p, &target, err) : edit_array(p, &target, err);
    if (there || st == STET_OK)
        put_back(l, target); /* unchanged after a failure */
    else
        stet_value_release(target);
    return st;
}

static stet_status apply_at(editor *e, const stet_patch *p, stet_value moved, stet_value *doc) {
    if (p->path.len == 0) {
        if (p->kind != STET_PATCH_REPLACE || stet_value_type(p->value) != STET_TYPE_OBJECT)
            return blame(STET_INVALID, e->err, p->path, "only replaced, and by an object");
        stet_value_release(*doc);
        *doc = stet_value_retain(p->value);
        return STET_OK;
    }
    bool create = p->kind != STET_PATCH_REMOVE && p->kind != STET_PATCH_SPLICE && p->kind != STET_PATCH_REMOVE_VALUE;
    stet_status st = descend(e, doc, p->path, create);
    if (st != STET_OK)
        return st;
    st = apply_here(p, &e->levels[e->len - 1], moved, e->err);
    ascend(e, doc);
    return st;
}

int stet_value_depth(stet_value v) {
    typedef struct place {
        stet_value v;
        size_t i;
    } place;
    stet_type t = stet_value_type(v);
    if (t != STET_TYPE_ARRAY && t != STET_TYPE_OBJECT)
        return 0;
    STET_VEC(place) stack = {0};
    size_t deepest = 1;
    *stet_vec_add(&stack) = (place){v, 0};
    while (stack.len && deepest <= STET_DOC_MAX_DEPTH + 1) {
        place *top = &stack.at[stack.len - 1];
        if (top->i == stet_value_count(top->v)) {
            stack.len--;
            continue;
        }
        stet_value child = stet_value_at(top->v, top->i++);
        t = stet_value_type(child);
        if (t != STET_TYPE_ARRAY && t != STET_TYPE_OBJECT)
            continue;
        *stet_vec_add(&stack) = (place){child, 0};
        deepest = stack.len > deepest ? stack.len : deepest;
    }
    stet_vec_release(&stack);
    return (int)deepest;
}

static stet_status check_depth(const stet_patch *p, stet_value v, stet_error *err) {
    size_t path = stet_path_depth(p->path), value = (size_t)stet_value_depth(v);
    if (p->kind == STET_PATCH_ADD_UNIQUE)
        value++;
    if (path + value > STET_DOC_MAX_DEPTH)
        return blame(STET_LIMIT, err, p->path, "deeper than the 511 levels allowed");
    return STET_OK;
}

static stet_status apply_one(editor *e, const stet_patch *p, stet_value *doc) {
    if (p->kind != STET_PATCH_MOVE) {
        stet_status st = kinds[p->kind].value ? check_depth(p, p->value, e->err) : STET_OK;
        return st != STET_OK ? st : apply_at(e, p, stet_value_null(), doc);
    }
    if (stet_path_is_prefix(p->from, p->path))
        return p->from.len == p->path.len ? STET_OK
                                          : blame(STET_INVALID, e->err, p->path, "can't be moved into itself");
    stet_value moved;
    if (p->from.len == 0 || !stet_path_lookup(*doc, p->from, &moved))
        return blame(STET_NOT_FOUND, e->err, p->from, "nothing is there to move");
    stet_status st = check_depth(p, moved, e->err);
    if (st != STET_OK)
        return st;
    stet_patch gone = {.kind = STET_PATCH_REMOVE, .path = p->from};
    moved = stet_value_retain(moved);
    st = apply_at(e, &gone, stet_value_null(), doc);
    if (st == STET_OK)
        st = apply_at(e, p, moved, doc);
    stet_value_release(moved);
    return st;
}

stet_status stet_patches_apply(const stet_patch *at, size_t len, stet_value *doc, stet_error *err) {
    if (len == 1 && at[0].kind != STET_PATCH_MOVE) {
        /* A single operation that fails changes nothing, so that no copy has to be kept, and an unshared document is
         * changed in place. */
        editor one;
        edit_begin(&one, err);
        stet_status st = apply_one(&one, &at[0], doc);
        edit_end(&one);
        return st;
    }
    stet_error mine = STET_ERROR_INIT;
    editor e;
    edit_begin(&e, &mine);
    stet_value work = stet_value_retain(*doc); /* shared with *doc, so that the first change copies it */
    stet_status st = STET_OK;
    for (size_t i = 0; i < len && st == STET_OK; i++) {
        st = apply_one(&e, &at[i], &work);
        if (st != STET_OK)
            stet_fail_in(&mine, "patch %zu (%s)", i, kinds[at[i].kind].name);
    }
    if (st == STET_OK) {
        stet_value_release(*doc);
        *doc = work;
    } else {
        stet_value_release(work);
        stet_error_move(err, &mine);
    }
    stet_error_clear(&mine);
    edit_end(&e);
    return st;
}

static void put_bytes(stet_buf *out, const char *bytes, size_t len) {
    stet_varint_put(out, len);
    stet_buf_add(out, bytes, len);
}

static bool get_bytes(const char **p, const char *end, const char **bytes, size_t *len) {
    uint64_t n;
    if (!stet_varint_get(p, end, &n) || n > (size_t)(end - *p))
        return false;
    *bytes = *p;
    *len = n;
    *p += n;
    return true;
}

static bool get_path(const char **p, const char *end, stet_pathref *out) {
    return get_bytes(p, end, &out->bytes, &out->len) && out->len <= STET_PATH_MAX_BYTES && stet_path_valid(*out);
}

/* Prints the text in place, then moves it behind its length. */
static void put_text(stet_buf *out, stet_value v) {
    size_t at = out->len;
    stet_json_write(out, v, STET_JSON_CANONICAL);
    size_t len = out->len - at;
    char prefix[10];
    size_t size = 0;
    for (size_t n = len; size == 0 || n; n >>= 7)
        prefix[size++] = (char)(n >= 0x80 ? n | 0x80 : n);
    if (out->overflow || !stet_buf_reserve(out, size))
        return;
    memmove(out->data + at + size, out->data + at, len);
    memcpy(out->data + at, prefix, size);
    out->len += size;
    out->data[out->len] = 0;
}

void stet_patches_encode(stet_buf *out, const stet_patch *at, size_t len) {
    for (size_t i = 0; i < len; i++) {
        stet_varint_put(out, (uint64_t)at[i].kind);
        put_bytes(out, at[i].path.bytes, at[i].path.len);
        if (at[i].kind == STET_PATCH_MOVE)
            put_bytes(out, at[i].from.bytes, at[i].from.len);
        if (at[i].kind == STET_PATCH_SPLICE) {
            stet_varint_put(out, at[i].index);
            stet_varint_put(out, at[i].count);
        }
        if (kinds[at[i].kind].value)
            put_text(out, at[i].value);
    }
}

bool stet_patches_decode(const char *bytes, size_t len, stet_patches *out) {
    const char *p = bytes, *end = bytes + len;
    while (p < end) {
        stet_patch op = {0};
        uint64_t kind, index = 0, count = 0;
        if (!stet_varint_get(&p, end, &kind) || kind < 1 || kind >= KINDS || !get_path(&p, end, &op.path))
            return false;
        op.kind = (stet_patch_kind)kind;
        if (op.kind == STET_PATCH_MOVE && !get_path(&p, end, &op.from))
            return false;
        if (op.kind == STET_PATCH_SPLICE && (!stet_varint_get(&p, end, &index) || !stet_varint_get(&p, end, &count)))
            return false;
        op.index = index;
        op.count = count;
        if (kinds[kind].value) {
            const char *text;
            size_t text_len;
            if (!get_bytes(&p, end, &text, &text_len) ||
                stet_json_read(text, text_len, NULL, &op.value, NULL) != STET_OK)
                return false;
            stet_type t = stet_value_type(op.value);
            bool array = op.kind == STET_PATCH_SPLICE || op.kind == STET_PATCH_APPEND;
            bool number = op.kind == STET_PATCH_INCREMENT;
            if ((array && t != STET_TYPE_ARRAY) || (number && t != STET_TYPE_INT && t != STET_TYPE_DOUBLE)) {
                stet_value_release(op.value);
                return false;
            }
        }
        *stet_vec_add(out) = op;
    }
    return true;
}
