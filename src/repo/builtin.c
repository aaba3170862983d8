/* builtin.c - the functions of `dml:`, which stet evaluates itself. */

#include "repo/builtin.h"

#include <stdlib.h>
#include <string.h>

#include "repo/execmap.h"
#include "repo/repo_internal.h"

#define ELEMENTS_MAX ((size_t)1 << 20) /* of what a function makes: its record stays below what one may have */

typedef enum kind { ANY, LIST, SET, MAP, INT } kind;
static const char *const kind_names[] = {"datum", "list", "set", "map", "int"};

/* Elements of a list or a set; keys and values in turn of a map. */
typedef stet_hashes items;

typedef struct call {
    stet_repo *r;
    const char *name;
    const stet_hash *in;
    size_t count;
    stet_error *err;
} call;

static stet_status refuse(call *c, const char *format, ...) STET_PRINTF(2, 3);
static stet_status refuse(call *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    stet_vfail(c->err, STET_FAILED, format, args);
    va_end(args);
    stet_fail_in(c->err, "%s", c->name);
    return STET_FAILED;
}

static stet_status read_datum(call *c, size_t i, kind want, stet_value *payload) {
    stet_value record;
    stet_status st = stet_repo_get(c->r, c->in[i], STET_RECORD_DATUM, &record, c->err);
    if (st != STET_OK)
        return st;
    stet_value is = stet_value_get(record, "kind");
    if (strcmp(stet_value_as_string(&is, NULL), kind_names[want]) != 0)
        st = refuse(c, "argument %zu is a %s, and not a %s", i + 1, stet_value_as_string(&is, NULL), kind_names[want]);
    else
        *payload = stet_value_retain(stet_value_get(record, "payload"));
    stet_value_release(record);
    return st;
}

static void add_id(items *out, stet_value id) {
    stet_hash h;
    if (stet_hash_of_text(id, &h))
        *stet_vec_add(out) = h;
}

/* Adds the elements of argument i. */
static stet_status read_items(call *c, size_t i, kind want, items *out) {
    stet_value payload;
    stet_status st = read_datum(c, i, want, &payload);
    if (st != STET_OK)
        return st;
    for (size_t j = 0; j < stet_value_count(payload); j++) {
        stet_value one = stet_value_at(payload, j);
        if (want == MAP) {
            add_id(out, stet_value_at(one, 0));
            add_id(out, stet_value_at(one, 1));
        } else {
            add_id(out, one);
        }
    }
    stet_value_release(payload);
    return out->len > ELEMENTS_MAX ? refuse(c, "more than %zu elements", ELEMENTS_MAX) : STET_OK;
}

static stet_status read_position(call *c, size_t i, size_t *out) {
    stet_value payload;
    stet_status st = read_datum(c, i, INT, &payload);
    if (st != STET_OK)
        return st;
    if (stet_value_as_int(payload) < 0)
        return refuse(c, "argument %zu is %lld; positions count from 0", i + 1, (long long)stet_value_as_int(payload));
    *out = (size_t)stet_value_as_int(payload);
    return STET_OK;
}

static void add_arguments(call *c, size_t from, items *out) {
    for (size_t i = from; i < c->count; i++)
        *stet_vec_add(out) = c->in[i];
}

static stet_status give(call *c, const char *name, stet_value payload, stet_hash *out) {
    stet_value record = stet_value_object();
    stet_value_put(&record, "kind", stet_value_string(name));
    stet_value_put(&record, "payload", payload);
    stet_value_put(&record, "type", stet_value_string("datum"));
    stet_status st = stet_object_derive(c->r, record, out, c->err);
    stet_value_release(record);
    return st;
}

static stet_status give_list(call *c, const items *all, stet_hash *out) {
    stet_value payload = stet_value_array();
    for (size_t i = 0; i < all->len; i++)
        stet_value_push(&payload, stet_hash_text(all->at[i]));
    return give(c, "list", payload, out);
}

static int by_id(const void *a, const void *b) {
    return stet_hash_compare(*(const stet_hash *)a, *(const stet_hash *)b);
}

static void sort_unique(items *all) {
    size_t n = 0;
    if (all->len)
        qsort(all->at, all->len, sizeof *all->at, by_id);
    for (size_t i = 0; i < all->len; i++)
        if (n == 0 || !stet_hash_equal(all->at[n - 1], all->at[i]))
            all->at[n++] = all->at[i];
    all->len = n;
}

static stet_status give_set(call *c, items *all, stet_hash *out) {
    stet_value payload = stet_value_array();
    sort_unique(all);
    for (size_t i = 0; i < all->len; i++)
        stet_value_push(&payload, stet_hash_text(all->at[i]));
    return give(c, "set", payload, out);
}

/* Entries as pins are: by key, the last one of a key counts, one of zeros takes it away. */
static stet_status give_map(call *c, stet_pins *entries, stet_hash *out) {
    stet_value payload = stet_value_array();
    stet_pins_sort(entries);
    for (size_t i = 0; i < entries->len; i++) {
        if (stet_hash_is_zero(entries->at[i].exec))
            continue;
        stet_value pair = stet_value_array();
        stet_value_push(&pair, stet_hash_text(entries->at[i].node));
        stet_value_push(&pair, stet_hash_text(entries->at[i].exec));
        stet_value_push(&payload, pair);
    }
    return give(c, "map", payload, out);
}

static void add_entries(stet_pins *entries, const stet_hash *at, size_t len) {
    for (size_t i = 0; i + 1 < len; i += 2)
        *stet_vec_add(entries) = (stet_pin){at[i], at[i + 1]};
}

static bool contains(const items *all, stet_hash id, size_t step, size_t *at) {
    for (size_t i = 0; i < all->len; i += step)
        if (stet_hash_equal(all->at[i], id)) {
            *at = i;
            return true;
        }
    return false;
}

/* Each gets `all`, empty, and gives what it made of it. */

typedef stet_status function(call *c, items *all, stet_hash *out);

static stet_status list_of(call *c, items *all, stet_hash *out) {
    add_arguments(c, 0, all);
    return give_list(c, all, out);
}

static stet_status length(call *c, kind k, items *all, stet_hash *out) {
    stet_status st = read_items(c, 0, k, all);
    return st == STET_OK ? give(c, "int", stet_value_int((int64_t)(k == MAP ? all->len / 2 : all->len)), out) : st;
}

static stet_status list_length(call *c, items *all, stet_hash *out) {
    return length(c, LIST, all, out);
}

static stet_status list_get(call *c, items *all, stet_hash *out) {
    size_t at = 0;
    stet_status st = read_items(c, 0, LIST, all);
    if (st == STET_OK)
        st = read_position(c, 1, &at);
    if (st != STET_OK)
        return st;
    if (at >= all->len && c->count < 3)
        return refuse(c, "there is no position %zu in a list of %zu", at, all->len);
    *out = at < all->len ? all->at[at] : c->in[2];
    return STET_OK;
}

static stet_status list_slice(call *c, items *all, stet_hash *out) {
    size_t from = 0, to = SIZE_MAX;
    stet_status st = read_items(c, 0, LIST, all);
    if (st == STET_OK)
        st = read_position(c, 1, &from);
    if (st == STET_OK && c->count > 2)
        st = read_position(c, 2, &to);
    if (st != STET_OK)
        return st;
    to = to < all->len ? to : all->len;
    from = from < to ? from : to;
    items part = {all->at ? all->at + from : NULL, to - from, to - from};
    return give_list(c, &part, out);
}

static stet_status list_append(call *c, items *all, stet_hash *out) {
    stet_status st = read_items(c, 0, LIST, all);
    add_arguments(c, 1, all);
    return st == STET_OK ? give_list(c, all, out) : st;
}

static stet_status list_assoc(call *c, items *all, stet_hash *out) {
    size_t at = 0;
    stet_status st = read_items(c, 0, LIST, all);
    if (st == STET_OK)
        st = read_position(c, 1, &at);
    if (st != STET_OK)
        return st;
    if (at >= all->len)
        return refuse(c, "there is no position %zu in a list of %zu", at, all->len);
    all->at[at] = c->in[2];
    return give_list(c, all, out);
}

static stet_status read_each(call *c, size_t from, kind k, items *all) {
    stet_status st = STET_OK;
    for (size_t i = from; i < c->count && st == STET_OK; i++)
        st = read_items(c, i, k, all);
    return st;
}

static stet_status list_concat(call *c, items *all, stet_hash *out) {
    stet_status st = read_each(c, 0, LIST, all);
    return st == STET_OK ? give_list(c, all, out) : st;
}

static stet_status list_reverse(call *c, items *all, stet_hash *out) {
    stet_status st = read_items(c, 0, LIST, all);
    for (size_t i = 0; i < all->len / 2; i++) {
        stet_hash other = all->at[i];
        all->at[i] = all->at[all->len - 1 - i];
        all->at[all->len - 1 - i] = other;
    }
    return st == STET_OK ? give_list(c, all, out) : st;
}

static stet_status has(call *c, kind k, items *all, stet_hash *out) {
    size_t at;
    stet_status st = read_items(c, 0, k, all);
    return st == STET_OK ? give(c, "bool", stet_value_bool(contains(all, c->in[1], k == MAP ? 2 : 1, &at)), out) : st;
}

static stet_status list_contains(call *c, items *all, stet_hash *out) {
    return has(c, LIST, all, out);
}

static stet_status set_of(call *c, items *all, stet_hash *out) {
    add_arguments(c, 0, all);
    return give_set(c, all, out);
}

static stet_status set_from_list(call *c, items *all, stet_hash *out) {
    stet_status st = read_items(c, 0, LIST, all);
    return st == STET_OK ? give_set(c, all, out) : st;
}

static stet_status set_to_list(call *c, items *all, stet_hash *out) {
    stet_status st = read_items(c, 0, SET, all);
    return st == STET_OK ? give_list(c, all, out) : st;
}

static stet_status set_length(call *c, items *all, stet_hash *out) {
    return length(c, SET, all, out);
}

static stet_status set_contains(call *c, items *all, stet_hash *out) {
    return has(c, SET, all, out);
}

static stet_status set_add(call *c, items *all, stet_hash *out) {
    stet_status st = read_items(c, 0, SET, all);
    add_arguments(c, 1, all);
    return st == STET_OK ? give_set(c, all, out) : st;
}

/* Keeps of `all` what is in `others`, or what is not. All are sorted. */
static void keep(items *all, const items *others, bool in) {
    size_t n = 0;
    for (size_t i = 0; i < all->len; i++) {
        bool there = others->len && bsearch(&all->at[i], others->at, others->len, sizeof *others->at, by_id);
        if (there == in)
            all->at[n++] = all->at[i];
    }
    all->len = n;
}

static stet_status set_remove(call *c, items *all, stet_hash *out) {
    items gone = {0};
    stet_status st = read_items(c, 0, SET, all);
    add_arguments(c, 1, &gone);
    sort_unique(&gone);
    keep(all, &gone, false);
    stet_vec_release(&gone);
    return st == STET_OK ? give_set(c, all, out) : st;
}

static stet_status set_union(call *c, items *all, stet_hash *out) {
    stet_status st = read_each(c, 0, SET, all);
    return st == STET_OK ? give_set(c, all, out) : st;
}

static stet_status filter(call *c, items *all, bool in, stet_hash *out) {
    stet_status st = read_items(c, 0, SET, all);
    for (size_t i = 1; i < c->count && st == STET_OK; i++) {
        items other = {0};
        st = read_items(c, i, SET, &other);
        keep(all, &other, in);
        stet_vec_release(&other);
    }
    return st == STET_OK ? give_set(c, all, out) : st;
}

static stet_status set_intersect(call *c, items *all, stet_hash *out) {
    return filter(c, all, true, out);
}

static stet_status set_difference(call *c, items *all, stet_hash *out) {
    return filter(c, all, false, out);
}

static stet_status map_of(call *c, items *all, stet_hash *out) {
    stet_pins entries = {0};
    (void)all;
    if (c->count % 2)
        return refuse(c, "%zu arguments: keys and values come in pairs", c->count);
    add_entries(&entries, c->in, c->count);
    stet_pins_sort(&entries);
    stet_status st = entries.len * 2 < c->count ? refuse(c, "the same key twice") : give_map(c, &entries, out);
    stet_vec_release(&entries);
    return st;
}

static stet_status map_length(call *c, items *all, stet_hash *out) {
    return length(c, MAP, all, out);
}

static stet_status map_get(call *c, items *all, stet_hash *out) {
    size_t at;
    stet_status st = read_items(c, 0, MAP, all);
    if (st != STET_OK)
        return st;
    bool there = contains(all, c->in[1], 2, &at);
    if (!there && c->count < 3)
        return refuse(c, "the map has no key %s", stet_short(c->in[1]).text);
    *out = there ? all->at[at + 1] : c->in[2];
    return STET_OK;
}

static stet_status map_contains(call *c, items *all, stet_hash *out) {
    return has(c, MAP, all, out);
}

static stet_status every_second(call *c, size_t from, items *all, stet_hash *out) {
    stet_status st = read_items(c, 0, MAP, all);
    for (size_t i = 0; i < all->len / 2; i++)
        all->at[i] = all->at[2 * i + from];
    all->len /= 2;
    return st == STET_OK ? give_list(c, all, out) : st;
}

static stet_status map_keys(call *c, items *all, stet_hash *out) {
    return every_second(c, 0, all, out);
}

static stet_status map_values(call *c, items *all, stet_hash *out) {
    return every_second(c, 1, all, out);
}

static stet_status map_assoc(call *c, items *all, stet_hash *out) {
    stet_pins entries = {0};
    if (c->count % 2 == 0)
        return refuse(c, "%zu arguments: a map, and keys and values in pairs", c->count);
    stet_status st = read_items(c, 0, MAP, all);
    add_entries(&entries, all->at, all->len);
    add_entries(&entries, c->in + 1, c->count - 1);
    if (st == STET_OK)
        st = give_map(c, &entries, out);
    stet_vec_release(&entries);
    return st;
}

static stet_status map_dissoc(call *c, items *all, stet_hash *out) {
    stet_pins entries = {0};
    stet_status st = read_items(c, 0, MAP, all);
    add_entries(&entries, all->at, all->len);
    for (size_t i = 1; i < c->count; i++)
        *stet_vec_add(&entries) = (stet_pin){.node = c->in[i]};
    if (st == STET_OK)
        st = give_map(c, &entries, out);
    stet_vec_release(&entries);
    return st;
}

static stet_status map_merge(call *c, items *all, stet_hash *out) {
    stet_pins entries = {0};
    stet_status st = read_each(c, 0, MAP, all);
    add_entries(&entries, all->at, all->len);
    if (st == STET_OK)
        st = give_map(c, &entries, out);
    stet_vec_release(&entries);
    return st;
}

static const struct row {
    const char *name;
    function *apply;
    size_t min, max; /* arguments */
} functions[] = {
    {"dml://list/append", list_append, 1, SIZE_MAX},
    {"dml://list/assoc", list_assoc, 3, 3},
    {"dml://list/concat", list_concat, 0, SIZE_MAX},
    {"dml://list/contains", list_contains, 2, 2},
    {"dml://list/get", list_get, 2, 3},
    {"dml://list/length", list_length, 1, 1},
    {"dml://list/of", list_of, 0, SIZE_MAX},
    {"dml://list/reverse", list_reverse, 1, 1},
    {"dml://list/slice", list_slice, 2, 3},
    {"dml://map/assoc", map_assoc, 1, SIZE_MAX},
    {"dml://map/contains", map_contains, 2, 2},
    {"dml://map/dissoc", map_dissoc, 1, SIZE_MAX},
    {"dml://map/get", map_get, 2, 3},
    {"dml://map/keys", map_keys, 1, 1},
    {"dml://map/length", map_length, 1, 1},
    {"dml://map/merge", map_merge, 0, SIZE_MAX},
    {"dml://map/of", map_of, 0, SIZE_MAX},
    {"dml://map/values", map_values, 1, 1},
    {"dml://set/add", set_add, 1, SIZE_MAX},
    {"dml://set/contains", set_contains, 2, 2},
    {"dml://set/difference", set_difference, 1, SIZE_MAX},
    {"dml://set/from-list", set_from_list, 1, 1},
    {"dml://set/intersect", set_intersect, 1, SIZE_MAX},
    {"dml://set/length", set_length, 1, 1},
    {"dml://set/of", set_of, 0, SIZE_MAX},
    {"dml://set/remove", set_remove, 1, SIZE_MAX},
    {"dml://set/to-list", set_to_list, 1, 1},
    {"dml://set/union", set_union, 0, SIZE_MAX},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

const char *stet_builtin_name(size_t index) {
    return index < FUNCTIONS ? functions[index].name : NULL;
}

stet_status stet_builtin_apply(stet_repo *r, const char *name, const stet_hash *arguments, size_t count,
                               stet_hash *datum, stet_error *err) {
    const struct row *f = NULL;
    for (size_t i = 0; i < FUNCTIONS && !f; i++)
        if (strcmp(functions[i].name, name) == 0)
            f = &functions[i];
    if (!f)
        return stet_fail(err, STET_UNSUPPORTED, "there is no builtin %.200s", name);
    call c = {r, f->name, arguments, count, err};
    if (count < f->min || count > f->max)
        return refuse(&c, "%zu arguments, and it takes %zu%s", count, f->min,
                      f->max == f->min     ? ""
                      : f->max == SIZE_MAX ? " or more"
                                           : " or one more");
    items all = {0};
    stet_hash out;
    stet_status st = f->apply(&c, &all, &out);
    stet_vec_release(&all);
    if (st == STET_OK)
        *datum = out;
    return st;
}
