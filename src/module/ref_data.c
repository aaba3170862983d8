/* ref_data.c - builtin functions that take values apart, put them together, and choose between them.
 *
 * Each reads no more than its answer needs: `keys` and `length` look at the key set alone, `get` and `pick` at the
 * requested keys, `ifElse` at the condition and one branch.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/map.h"
#include "base/vec.h"
#include "module/ref.h"

#define MAX_RANGE 1000000

static stet_status pass(ref_call *call, stet_value *out, stet_error *err) {
    stet_value v;
    stet_status status = ref_arg(call, "value", STET_RECURSIVE, &v, err);
    if (status == STET_OK)
        *out = stet_value_retain(v);
    return status;
}
const ref_row ref_row_value = {"value", "value", pass, NULL, NULL};

/* A path given as "/a/b" (JSON Pointer), as "a" (one key), as a number (one index), or as a list of those keys. */
static stet_status path_of(stet_value v, stet_path *path, stet_error *err) {
    size_t len;
    if (stet_value_type(v) == STET_TYPE_INT && stet_value_as_int(v) >= 0) {
        stet_path_push_index(path, (size_t)stet_value_as_int(v));
        return STET_OK;
    }
    if (stet_value_type(v) == STET_TYPE_STRING) {
        const char *s = stet_value_as_string(&v, &len);
        if (len == 0 || s[0] == '/')
            return stet_path_of_pointer(path, s, len, err);
        stet_path_push_n(path, s, len);
        return STET_OK;
    }
    if (stet_value_type(v) == STET_TYPE_ARRAY) {
        for (size_t i = 0; i < stet_value_count(v); i++) {
            stet_value key = stet_value_at(v, i);
            if (stet_value_type(key) == STET_TYPE_INT && stet_value_as_int(key) >= 0) {
                stet_path_push_index(path, (size_t)stet_value_as_int(key));
            } else if (stet_value_type(key) == STET_TYPE_STRING) {
                const char *s = stet_value_as_string(&key, &len);
                stet_path_push_n(path, s, len);
            } else {
                return ref_expected(err, "path", "keys that are strings or indices", key);
            }
        }
        return path->buf.overflow ? stet_fail(err, STET_LIMIT, "path: too long") : STET_OK;
    }
    return ref_expected(err, "path", "a JSON Pointer, a key, an index or a list of keys", v);
}

static stet_status get(ref_call *call, stet_value *out, stet_error *err) {
    stet_value keys, v;
    bool found;
    stet_status status = ref_arg(call, "path", STET_RECURSIVE, &keys, err);
    if (status != STET_OK)
        return status;
    stet_path path = STET_PATH_INIT;
    status = path_of(keys, &path, err);
    if (status == STET_OK)
        status = ref_arg_at(call, "value", stet_path_ref(&path), STET_RECURSIVE, &v, &found, err);
    stet_path_release(&path);
    if (status == STET_OK && !found)
        status = ref_arg(call, "default", STET_RECURSIVE, &v, err);
    if (status == STET_OK)
        *out = stet_value_retain(v);
    return status;
}
const ref_row ref_row_get = {"get", "value path default?", get, NULL, " default "};

static stet_status pick(ref_call *call, stet_value *out, stet_error *err) {
    stet_value keys;
    stet_status status = ref_arg(call, "keys", STET_RECURSIVE, &keys, err);
    if (status != STET_OK)
        return status;
    if (stet_value_type(keys) != STET_TYPE_ARRAY)
        return ref_expected(err, "keys", "an array of strings", keys);
    stet_value picked = stet_value_object();
    for (size_t i = 0; i < stet_value_count(keys) && status == STET_OK; i++) {
        stet_value key = stet_value_at(keys, i), v;
        bool found;
        size_t len;
        if (stet_value_type(key) != STET_TYPE_STRING) {
            status = ref_expected(err, "keys", "an array of strings", key);
            break;
        }
        const char *s = stet_value_as_string(&key, &len);
        stet_path path = STET_PATH_INIT;
        stet_path_push_n(&path, s, len);
        status = ref_arg_at(call, "value", stet_path_ref(&path), STET_RECURSIVE, &v, &found, err);
        stet_path_release(&path);
        if (status == STET_OK && found)
            stet_value_put_n(&picked, s, len, stet_value_retain(v));
    }
    if (status == STET_OK)
        *out = picked;
    else
        stet_value_release(picked);
    return status;
}
const ref_row ref_row_pick = {"pick", "value keys", pick, " value ", NULL};

static stet_status merge(ref_call *call, stet_value *out, stet_error *err) {
    stet_value list;
    stet_status status = ref_rest(call, &list, err);
    if (status != STET_OK)
        return status;
    stet_value merged = stet_value_object();
    for (size_t i = 0; i < stet_value_count(list) && status == STET_OK; i++) {
        stet_value v = stet_value_at(list, i);
        char name[32];
        snprintf(name, sizeof name, "element %zu", i);
        if (stet_value_type(v) == STET_TYPE_NULL)
            continue;
        if (stet_value_type(v) != STET_TYPE_OBJECT) {
            status = ref_expected(err, name, "an object", v);
            break;
        }
        for (size_t k = 0; k < stet_value_count(v); k++) {
            size_t len;
            const char *key = stet_value_key_at(v, k, &len);
            stet_value_put_n(&merged, key, len, stet_value_retain(stet_value_at(v, k)));
        }
    }
    stet_value_release(list);
    if (status == STET_OK)
        *out = merged;
    else
        stet_value_release(merged);
    return status;
}
const ref_row ref_row_merge = {"merge", "values...", merge, NULL, NULL};

static stet_status keys(ref_call *call, stet_value *out, stet_error *err) {
    stet_value v;
    stet_status status = ref_arg(call, "value", STET_SHALLOW, &v, err);
    if (status != STET_OK)
        return status;
    if (stet_value_type(v) != STET_TYPE_OBJECT)
        return ref_expected(err, "value", "an object", v);
    *out = stet_value_array();
    for (size_t i = 0; i < stet_value_count(v); i++) {
        size_t len;
        const char *key = stet_value_key_at(v, i, &len);
        stet_value_push(out, stet_value_string_n(key, len));
    }
    return STET_OK;
}
const ref_row ref_row_keys = {"keys", "value", keys, NULL, NULL};

static stet_status values(ref_call *call, stet_value *out, stet_error *err) {
    stet_value v;
    stet_status status = ref_arg(call, "value", STET_RECURSIVE, &v, err);
    if (status != STET_OK)
        return status;
    if (stet_value_type(v) != STET_TYPE_OBJECT)
        return ref_expected(err, "value", "an object", v);
    *out = stet_value_array();
    for (size_t i = 0; i < stet_value_count(v); i++)
        stet_value_push(out, stet_value_retain(stet_value_at(v, i)));
    return STET_OK;
}
const ref_row ref_row_values = {"values", "value", values, NULL, NULL};

static stet_status length(ref_call *call, stet_value *out, stet_error *err) {
    stet_value v;
    stet_status status = ref_arg(call, "value", STET_SHALLOW, &v, err);
    if (status != STET_OK)
        return status;
    if (stet_value_type(v) == STET_TYPE_STRING) {
        size_t len, points = 0;
        const char *s = stet_value_as_string(&v, &len);
        for (size_t i = 0; i < len; i++)
            points += ((unsigned char)s[i] & 0xC0) != 0x80;
        *out = stet_value_int((int64_t)points);
        return STET_OK;
    }
    if (stet_value_type(v) != STET_TYPE_ARRAY && stet_value_type(v) != STET_TYPE_OBJECT)
        return ref_expected(err, "value", "a string, an array or an object", v);
    *out = stet_value_int((int64_t)stet_value_count(v));
    return STET_OK;
}
const ref_row ref_row_length = {"length", "value", length, NULL, NULL};

static stet_status concat(ref_call *call, stet_value *out, stet_error *err) {
    stet_value list;
    stet_status status = ref_rest(call, &list, err);
    if (status != STET_OK)
        return status;
    size_t n = stet_value_count(list);
    bool strings = n > 0 && stet_value_type(stet_value_at(list, 0)) == STET_TYPE_STRING;
    stet_value joined = stet_value_array();
    stet_buf text = STET_BUF(0);
    for (size_t i = 0; i < n && status == STET_OK; i++) {
        stet_value v = stet_value_at(list, i);
        char name[32];
        snprintf(name, sizeof name, "element %zu", i);
        if (strings ? stet_value_type(v) != STET_TYPE_STRING : stet_value_type(v) != STET_TYPE_ARRAY)
            status = ref_expected(err, name, strings ? "a string, like the first" : "an array", v);
        else if (strings)
            ref_text(&text, v);
        else
            for (size_t k = 0; k < stet_value_count(v); k++)
                stet_value_push(&joined, stet_value_retain(stet_value_at(v, k)));
    }
    if (status == STET_OK && text.overflow)
        status = stet_fail(err, STET_LIMIT, "the text is too long");
    if (status == STET_OK)
        *out = strings ? stet_value_string_n(stet_buf_cstr(&text), text.len) : stet_value_retain(joined);
    stet_value_release(joined);
    stet_value_release(list);
    stet_buf_release(&text);
    return status;
}
const ref_row ref_row_concat = {"concat", "values...", concat, NULL, NULL};

typedef struct flat_frame {
    stet_value list;
    size_t next;
} flat_frame;

static stet_status flatten(ref_call *call, stet_value *out, stet_error *err) {
    stet_value v, depth;
    stet_status status = ref_arg(call, "value", STET_RECURSIVE, &v, err);
    if (status == STET_OK)
        status = ref_arg(call, "depth", STET_RECURSIVE, &depth, err);
    if (status != STET_OK)
        return status;
    if (stet_value_type(v) != STET_TYPE_ARRAY)
        return ref_expected(err, "value", "an array", v);
    if (stet_value_type(depth) != STET_TYPE_NULL &&
        (stet_value_type(depth) != STET_TYPE_INT || stet_value_as_int(depth) < 0))
        return ref_expected(err, "depth", "an integer, 0 or more", depth);
    size_t levels = stet_value_type(depth) == STET_TYPE_NULL ? 1 : (size_t)stet_value_as_int(depth);
    STET_VEC(flat_frame) stack = {0};
    *out = stet_value_array();
    *stet_vec_add(&stack) = (flat_frame){v, 0};
    while (stack.len > 0) {
        flat_frame *f = &stack.at[stack.len - 1];
        if (f->next >= stet_value_count(f->list)) {
            stack.len--;
            continue;
        }
        stet_value item = stet_value_at(f->list, f->next++);
        if (stet_value_type(item) == STET_TYPE_ARRAY && stack.len <= levels)
            *stet_vec_add(&stack) = (flat_frame){item, 0};
        else
            stet_value_push(out, stet_value_retain(item));
    }
    stet_vec_release(&stack);
    return STET_OK;
}
const ref_row ref_row_flatten = {"flatten", "value depth?", flatten, NULL, NULL};

typedef struct sort_item {
    stet_value key, item;
    size_t index;
    bool descending;
} sort_item;

static int sort_compare(const void *a, const void *b) {
    const sort_item *x = a, *y = b;
    int c = stet_value_compare(x->key, y->key);
    if (c != 0)
        return x->descending ? -c : c;
    return x->index < y->index ? -1 : x->index > y->index;
}

static stet_status sort(ref_call *call, stet_value *out, stet_error *err) {
    stet_value v, field, descending;
    stet_status status = ref_arg(call, "value", STET_RECURSIVE, &v, err);
    if (status == STET_OK)
        status = ref_arg(call, "by", STET_RECURSIVE, &field, err);
    if (status == STET_OK)
        status = ref_arg(call, "descending", STET_RECURSIVE, &descending, err);
    if (status != STET_OK)
        return status;
    if (stet_value_type(v) != STET_TYPE_ARRAY)
        return ref_expected(err, "value", "an array", v);
    stet_path path = STET_PATH_INIT;
    if (stet_value_type(field) != STET_TYPE_NULL && (status = path_of(field, &path, err)) != STET_OK) {
        stet_path_release(&path);
        return status;
    }
    size_t n = stet_value_count(v);
    sort_item *items = stet_alloc((n ? n : 1) * sizeof *items);
    for (size_t i = 0; i < n; i++) {
        items[i] = (sort_item){stet_value_at(v, i), stet_value_at(v, i), i, ref_truth(descending)};
        if (stet_value_type(field) != STET_TYPE_NULL &&
            !stet_path_lookup(items[i].item, stet_path_ref(&path), &items[i].key))
            items[i].key = stet_value_null();
    }
    if (n > 1)
        qsort(items, n, sizeof *items, sort_compare);
    *out = stet_value_array();
    for (size_t i = 0; i < n; i++)
        stet_value_push(out, stet_value_retain(items[i].item));
    free(items);
    stet_path_release(&path);
    return STET_OK;
}
const ref_row ref_row_sort = {"sort", "value by? descending?", sort, NULL, NULL};

static stet_status unique(ref_call *call, stet_value *out, stet_error *err) {
    stet_value v;
    stet_status status = ref_arg(call, "value", STET_RECURSIVE, &v, err);
    if (status != STET_OK)
        return status;
    if (stet_value_type(v) != STET_TYPE_ARRAY)
        return ref_expected(err, "value", "an array", v);
    stet_map seen = {0};
    stet_buf text = STET_BUF(0);
    *out = stet_value_array();
    for (size_t i = 0; i < stet_value_count(v); i++) {
        stet_buf_clear(&text);
        stet_json_write(&text, stet_value_at(v, i), STET_JSON_CANONICAL);
        if (stet_map_get(&seen, stet_buf_cstr(&text), text.len))
            continue;
        stet_map_put(&seen, stet_buf_cstr(&text), text.len, (stet_slot){.n = 1});
        stet_value_push(out, stet_value_retain(stet_value_at(v, i)));
    }
    stet_buf_release(&text);
    stet_map_release(&seen);
    return STET_OK;
}
const ref_row ref_row_unique = {"unique", "value", unique, NULL, NULL};

static stet_status range(ref_call *call, stet_value *out, stet_error *err) {
    static const char *const names[] = {"end", "start", "step"};
    int64_t n[] = {0, 0, 1};
    for (int i = 0; i < 3; i++) {
        stet_value v;
        stet_status status = ref_arg(call, names[i], STET_RECURSIVE, &v, err);
        if (status != STET_OK)
            return status;
        if (i > 0 && stet_value_type(v) == STET_TYPE_NULL)
            continue;
        if (stet_value_type(v) != STET_TYPE_INT)
            return ref_expected(err, names[i], "an integer", v);
        n[i] = stet_value_as_int(v);
    }
    if (n[2] == 0)
        return stet_fail(err, STET_INVALID, "step: 0 leads nowhere");
    *out = stet_value_array();
    int64_t at = n[1];
    for (size_t count = 0; n[2] > 0 ? at < n[0] : at > n[0]; count++) {
        if (count >= MAX_RANGE) {
            stet_value_release(*out);
            *out = stet_value_null();
            return stet_fail(err, STET_LIMIT, "more than %d numbers", MAX_RANGE);
        }
        stet_value_push(out, stet_value_int(at));
        if (__builtin_add_overflow(at, n[2], &at))
            break;
    }
    return STET_OK;
}
const ref_row ref_row_range = {"range", "end start? step?", range, NULL, NULL};

static stet_status hash(ref_call *call, stet_value *out, stet_error *err) {
    stet_value v;
    stet_status status = ref_arg(call, "value", STET_RECURSIVE, &v, err);
    if (status != STET_OK)
        return status;
    char hex[STET_HASH_HEX];
    stet_hash_hex(stet_hash_value(v), hex);
    *out = stet_value_string(hex);
    return STET_OK;
}
const ref_row ref_row_hash = {"hash", "value", hash, NULL, NULL};

/* The value of input `name` if the condition has this truth, else of `other` (NULL: null). The one not taken is not
 * read. */
static stet_status choose(ref_call *call, bool truth, const char *name, const char *other, stet_value *out,
                          stet_error *err) {
    stet_value condition, v = stet_value_null();
    stet_status status = ref_arg(call, "condition", STET_SHALLOW, &condition, err);
    if (status != STET_OK)
        return status;
    const char *taken = ref_truth(condition) == truth ? name : other;
    if (taken)
        status = ref_arg(call, taken, STET_RECURSIVE, &v, err);
    if (status == STET_OK)
        *out = stet_value_retain(v);
    return status;
}

static stet_status if_else(ref_call *call, stet_value *out, stet_error *err) {
    return choose(call, true, "then", "else", out, err);
}
const ref_row ref_row_ifElse = {"ifElse", "condition then else?", if_else, NULL, " then else "};

static stet_status when(ref_call *call, stet_value *out, stet_error *err) {
    return choose(call, true, "value", NULL, out, err);
}
const ref_row ref_row_when = {"when", "condition value", when, NULL, " value "};

static stet_status unless(ref_call *call, stet_value *out, stet_error *err) {
    return choose(call, false, "value", NULL, out, err);
}
const ref_row ref_row_unless = {"unless", "condition value", unless, NULL, " value "};
