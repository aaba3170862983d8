/* value.c - JSON values: making, reading, changing, comparing and freeing them. */

#include "base/value.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "base/vec.h"

static const double exact_integers = 9007199254740992.0; /* 2^53 */

stet_type stet_value_type(stet_value v) {
    static const unsigned char types[16] = {
        [STET_TAG_NULL] = STET_TYPE_NULL,     [STET_TAG_BOOL] = STET_TYPE_BOOL,    [STET_TAG_INT] = STET_TYPE_INT,
        [STET_TAG_DOUBLE] = STET_TYPE_DOUBLE, [STET_TAG_SHORT] = STET_TYPE_STRING, [STET_TAG_LONG] = STET_TYPE_STRING,
        [STET_TAG_ARRAY] = STET_TYPE_ARRAY,   [STET_TAG_OBJECT] = STET_TYPE_OBJECT};
    return (stet_type)types[stet_value_tag(v)];
}

static stet_block *block_of(stet_value v) {
    return stet_value_tag(v) >= STET_TAG_LONG ? stet_value_block(v) : NULL;
}

stet_value stet_value_retain(stet_value v) {
    stet_block *b = block_of(v);
    if (b)
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return v;
}

/* Removes one reference; true if it was the last. The holder of the only reference needs no locked instruction: no
 * other thread can be about to add one. */
static bool drop(stet_block *b) {
    if (atomic_load_explicit(&b->refs, memory_order_acquire) == 1)
        return true;
    return atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1;
}

/* Frees the memory of a block whose contents are gone. */
static inline void dispose(stet_block *b, uint32_t home, size_t bytes, stet_pool_bin *bin) {
    if (home)
        stet_pool_drop(bin, b, home, bytes);
    else
        free(b);
}

/* Blocks without references that still have to be freed. */
struct doomed {
    stet_block *arrays, *objects;
    stet_pool_bin bin;
};

static inline void drop_into(stet_value v, struct doomed *d) {
    enum stet_tag tag = stet_value_tag(v);
    if (tag < STET_TAG_LONG)
        return;
    stet_block *b = stet_value_block(v);
    if (!b || !drop(b))
        return;
    if (tag == STET_TAG_LONG) {
        dispose(b, b->home, sizeof *b + b->len + 1, &d->bin);
        return;
    }
    stet_block **list = tag == STET_TAG_ARRAY ? &d->arrays : &d->objects;
    atomic_store_explicit(&b->refs, b->home, memory_order_relaxed);
    b->next = *list;
    *list = b;
}

void stet_value_release(stet_value v) {
    struct doomed d = {0};
    drop_into(v, &d);
    while (d.arrays || d.objects) {
        if (d.arrays) {
            stet_list *list = (stet_list *)d.arrays;
            d.arrays = d.arrays->next;
            for (uint32_t i = 0; i < list->head.len; i++)
                drop_into(list->at[i], &d);
            dispose(&list->head, atomic_load_explicit(&list->head.refs, memory_order_relaxed),
                    sizeof *list + list->head.len * sizeof *list->at, &d.bin);
        } else {
            stet_table *table = (stet_table *)d.objects;
            d.objects = d.objects->next;
            for (uint32_t i = 0; i < table->head.len; i++) {
                drop_into(table->at[i].key, &d);
                drop_into(table->at[i].value, &d);
            }
            dispose(&table->head, atomic_load_explicit(&table->head.refs, memory_order_relaxed),
                    sizeof *table + table->head.len * sizeof *table->at, &d.bin);
        }
    }
    stet_pool_flush(&d.bin);
}

stet_value stet_value_null(void) {
    return stet_value_make(STET_TAG_NULL, 0);
}

stet_value stet_value_bool(bool b) {
    return stet_value_make(STET_TAG_BOOL, b);
}

stet_value stet_value_int(int64_t i) {
    return stet_value_make(STET_TAG_INT, (uint64_t)i);
}

stet_value stet_value_make_double(double d) {
    assert(isfinite(d));
    if (d >= -exact_integers && d <= exact_integers) {
        int64_t i = (int64_t)d;
        if ((double)i == d)
            return stet_value_int(i);
    }
    uint64_t payload;
    memcpy(&payload, &d, sizeof payload);
    return stet_value_make(STET_TAG_DOUBLE, payload);
}

stet_status stet_value_double(double d, stet_value *out, stet_error *err) {
    if (!out)
        return stet_fail_null(err);
    if (!isfinite(d))
        return stet_fail(err, STET_INVALID, "%s is not a JSON number",
                         isnan(d) ? "NaN"
                         : d > 0  ? "Infinity"
                                  : "-Infinity");
    *out = stet_value_make_double(d);
    return STET_OK;
}

/* Lengths are 32 bits wide. A value of 4 GiB or more is treated like a failed allocation. */
static uint32_t check_len(size_t len) {
    if (len >= UINT32_MAX)
        abort();
    return (uint32_t)len;
}

static inline stet_block *new_block(size_t bytes, size_t len, size_t cap, stet_pool *pool) {
    uint32_t home = 0;
    stet_block *b = pool && bytes <= STET_POOL_MOST ? stet_pool_take(pool, bytes, &home) : stet_alloc(bytes);
    atomic_init(&b->refs, 1);
    b->len = check_len(len);
    b->cap = check_len(cap);
    b->home = home;
    return b;
}

stet_value stet_value_make_string(const char *bytes, size_t len, stet_pool *pool) {
    if (len <= STET_SHORT_MAX)
        return stet_value_short(bytes, len);
    stet_text *text = (stet_text *)new_block(sizeof *text + len + 1, len, 0, pool);
    memcpy(text->bytes, bytes, len);
    text->bytes[len] = 0;
    return stet_value_of_block(STET_TAG_LONG, text);
}

/* A string of any bytes: each that is not part of valid UTF-8 becomes U+FFFD. */
static stet_value replacing_string(const char *bytes, size_t len) {
    size_t valid = stet_utf8_valid_prefix(bytes, len);
    if (valid == len)
        return stet_value_make_string(bytes, len, NULL);
    char *mended = stet_alloc(len * 3), *to = mended;
    for (const char *from = bytes;; valid = stet_utf8_valid_prefix(from, len)) {
        memcpy(to, from, valid);
        to += valid;
        from += valid;
        len -= valid;
        if (!len)
            break;
        to += stet_utf8_encode(0xFFFD, to);
        from++;
        len--;
    }
    stet_value v = stet_value_make_string(mended, (size_t)(to - mended), NULL);
    stet_free(mended);
    return v;
}

stet_value stet_value_string_n(const char *utf8, size_t len) {
    return utf8 ? replacing_string(utf8, len) : len ? stet_value_null() : stet_value_short("", 0);
}

stet_value stet_value_string(const char *utf8) {
    return utf8 ? replacing_string(utf8, strlen(utf8)) : stet_value_null();
}

stet_status stet_value_string_checked(const char *bytes, size_t len, stet_value *out, stet_error *err) {
    if (!out || (!bytes && len))
        return stet_fail_null(err);
    size_t valid = len ? stet_utf8_valid_prefix(bytes, len) : 0;
    if (valid != len)
        return stet_fail(err, STET_INVALID, "not UTF-8: byte 0x%02x at offset %zu", (unsigned char)bytes[valid], valid);
    *out = stet_value_make_string(len ? bytes : "", len, NULL);
    return STET_OK;
}

stet_value stet_value_stringf(const char *format, ...) {
    if (!format)
        return stet_value_null();
    char *text;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0)
        abort(); /* no memory */
    stet_value v = replacing_string(text, (size_t)len);
    free(text);
    return v;
}

stet_value stet_value_array(void) {
    return stet_value_make(STET_TAG_ARRAY, 0);
}

stet_value stet_value_object(void) {
    return stet_value_make(STET_TAG_OBJECT, 0);
}

stet_value stet_value_make_array(const stet_value *items, size_t n, stet_pool *pool) {
    if (!n)
        return stet_value_array();
    stet_list *list = (stet_list *)new_block(sizeof *list + n * sizeof *list->at, n, n, pool);
    memcpy(list->at, items, n * sizeof *items);
    return stet_value_of_block(STET_TAG_ARRAY, list);
}

static inline const char *string_bytes(const stet_value *v, size_t *len) {
    if (stet_value_tag(*v) == STET_TAG_SHORT) {
        *len = stet_value_meta(*v) >> 4;
        return (const char *)v;
    }
    stet_text *text = stet_value_block(*v);
    *len = text->head.len;
    return text->bytes;
}

static int compare_bytes(const char *a, size_t a_len, const char *b, size_t b_len) {
    size_t common = a_len < b_len ? a_len : b_len;
    int order = common ? memcmp(a, b, common) : 0;
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

int stet_value_compare_long(const stet_value *a, const stet_value *b) {
    size_t a_len, b_len;
    const char *a_bytes = string_bytes(a, &a_len), *b_bytes = string_bytes(b, &b_len);
    return a_bytes == b_bytes ? 0 : compare_bytes(a_bytes, a_len, b_bytes, b_len);
}

static int compare_members(const void *a, const void *b) {
    return stet_value_compare_strings(&((const stet_member *)a)->key, &((const stet_member *)b)->key);
}

static void sort_few(stet_member *members, size_t n) {
    for (size_t i = 1; i < n; i++) {
        stet_member moved = members[i];
        size_t at = i;
        for (; at > 0 && stet_value_compare_strings(&members[at - 1].key, &moved.key) > 0; at--)
            members[at] = members[at - 1];
        members[at] = moved;
    }
}

/* Are the keys strictly ascending? If not, `*at` is the first key that is not greater than its predecessor. */
static bool ascending(const stet_member *members, size_t n, size_t *at) {
    for (size_t i = 1; i < n; i++)
        if (stet_value_compare_strings(&members[i - 1].key, &members[i].key) >= 0) {
            *at = i;
            return false;
        }
    return true;
}

bool stet_value_make_object(stet_member *members, size_t n, stet_value *out, size_t *duplicate, stet_pool *pool) {
    if (!n) {
        *out = stet_value_object();
        return true;
    }
    size_t at;
    if (!ascending(members, n, &at)) {
        if (n <= 24)
            sort_few(members, n);
        else
            qsort(members, n, sizeof *members, compare_members);
        if (!ascending(members, n, &at)) {
            *duplicate = at;
            return false;
        }
    }
    stet_table *table = (stet_table *)new_block(sizeof *table + n * sizeof *table->at, n, n, pool);
    memcpy(table->at, members, n * sizeof *members);
    *out = stet_value_of_block(STET_TAG_OBJECT, table);
    return true;
}

bool stet_value_as_bool(stet_value v) {
    return stet_value_tag(v) == STET_TAG_BOOL && v.bits[0];
}

int64_t stet_value_as_int(stet_value v) {
    return stet_value_tag(v) == STET_TAG_INT ? (int64_t)v.bits[0] : 0;
}

double stet_value_as_double(stet_value v) {
    if (stet_value_tag(v) == STET_TAG_INT)
        return (double)(int64_t)v.bits[0];
    if (stet_value_tag(v) != STET_TAG_DOUBLE)
        return 0;
    double d;
    memcpy(&d, &v.bits[0], sizeof d);
    return d;
}

const char *stet_value_as_string(const stet_value *v, size_t *len) {
    size_t n = 0;
    enum stet_tag tag = v ? stet_value_tag(*v) : STET_TAG_NULL;
    const char *bytes = tag == STET_TAG_SHORT || tag == STET_TAG_LONG ? string_bytes(v, &n) : NULL;
    if (len)
        *len = n;
    return bytes;
}

char *stet_value_copy_string(stet_value v, size_t *len) {
    size_t n;
    const char *bytes = stet_value_as_string(&v, &n);
    if (len)
        *len = n;
    if (!bytes)
        return NULL;
    char *copy = stet_alloc(n + 1);
    memcpy(copy, bytes, n + 1);
    return copy;
}

static bool is_container(stet_value v) {
    return stet_value_tag(v) >= STET_TAG_ARRAY;
}

size_t stet_value_count(stet_value v) {
    return is_container(v) && stet_value_block(v) ? ((stet_block *)stet_value_block(v))->len : 0;
}

/* The place of an element in its container, or NULL. */
static const stet_value *element(stet_value v, size_t index) {
    if (index >= stet_value_count(v))
        return NULL;
    if (stet_value_tag(v) == STET_TAG_ARRAY)
        return &((stet_list *)stet_value_block(v))->at[index];
    return &((stet_table *)stet_value_block(v))->at[index].value;
}

stet_value stet_value_at(stet_value v, size_t index) {
    const stet_value *at = element(v, index);
    return at ? *at : stet_value_null();
}

static const char *string_in(const stet_value *at, size_t *len) {
    if (at)
        return stet_value_as_string(at, len);
    if (len)
        *len = 0;
    return NULL;
}

const char *stet_value_at_string(stet_value v, size_t index, size_t *len) {
    return string_in(element(v, index), len);
}

const char *stet_value_key_at(stet_value object, size_t index, size_t *len) {
    size_t n = 0;
    const char *key = NULL;
    if (stet_value_tag(object) == STET_TAG_OBJECT && index < stet_value_count(object))
        key = string_bytes(&((stet_table *)stet_value_block(object))->at[index].key, &n);
    if (len)
        *len = n;
    return key;
}

/* Finds the index of a key among the members, or the index where it would be inserted. */
static bool search(const stet_table *table, const char *key, size_t key_len, size_t *place) {
    size_t low = 0, high = table ? table->head.len : 0;
    stet_value probe = stet_value_null();
    bool is_short = key_len <= STET_SHORT_MAX;
    if (is_short)
        probe = stet_value_short(key, key_len);
    while (low < high) {
        size_t middle = (low + high) / 2;
        const stet_value *candidate = &table->at[middle].key;
        int order;
        if (is_short && stet_value_tag(*candidate) == STET_TAG_SHORT) {
            order = stet_value_compare_strings(candidate, &probe);
        } else {
            size_t len;
            const char *bytes = string_bytes(candidate, &len);
            order = compare_bytes(bytes, len, key, key_len);
        }
        if (!order) {
            *place = middle;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *place = low;
    return false;
}

bool stet_value_find(stet_value object, const char *key, size_t key_len, stet_value *out) {
    if (stet_value_tag(object) != STET_TAG_OBJECT || (!key && key_len))
        return false;
    stet_table *table = stet_value_block(object);
    size_t place;
    if (!search(table, key, key_len, &place))
        return false;
    if (out)
        *out = table->at[place].value;
    return true;
}

stet_value stet_value_get(stet_value object, const char *key) {
    stet_value v = stet_value_null();
    if (key)
        stet_value_find(object, key, strlen(key), &v);
    return v;
}

const char *stet_value_get_string(stet_value object, const char *key, size_t *len) {
    size_t place;
    bool found =
        key && stet_value_tag(object) == STET_TAG_OBJECT && search(stet_value_block(object), key, strlen(key), &place);
    return string_in(found ? element(object, place) : NULL, len);
}

static bool unshared(stet_block *b) {
    return atomic_load_explicit(&b->refs, memory_order_acquire) == 1;
}

/* Capacity after growth: half as much again costs amortised O(1) and wastes at most a third. One or two elements get
 * exact room: most small objects (envelopes, links) stay that small, and there are many of them. */
static size_t grown(size_t need) {
    return need <= 2 ? need : need < 4 ? 4 : need + need / 2;
}

/* Frees an array or object whose elements were moved elsewhere. */
static void free_block(stet_block *b, size_t size) {
    stet_pool_bin bin = {0};
    dispose(b, b->home, sizeof *b + b->len * size, &bin);
    stet_pool_flush(&bin);
}

/* Makes `*v` the only holder of its container, with room for `extra` more elements. An element has `size` bytes: one
 * value, or the two of a member. */
static stet_block *own(stet_value *v, size_t extra, size_t size) {
    stet_block *b = stet_value_block(*v);
    size_t len = b ? b->len : 0, need = len + extra;
    if (b && unshared(b)) {
        if (need > b->cap) {
            size_t cap = grown(need);
            check_len(cap);
            if (b->home) {
                stet_block *moved = new_block(sizeof *b + cap * size, len, cap, NULL);
                memcpy(moved + 1, b + 1, len * size);
                free_block(b, size);
                b = moved;
            } else {
                b = stet_realloc(b, sizeof *b + cap * size);
                b->cap = (uint32_t)cap;
            }
            v->bits[0] = (uint64_t)(uintptr_t)b;
        }
        return b;
    }
    size_t cap = extra ? grown(need) : need;
    check_len(cap);
    stet_block *copy = new_block(sizeof *copy + cap * size, len, cap, NULL);
    if (len)
        memcpy(copy + 1, b + 1, len * size);
    const stet_value *parts = (const stet_value *)(copy + 1);
    for (size_t i = 0; i < len * (size / sizeof *parts); i++)
        stet_value_retain(parts[i]);
    stet_value_release(*v);
    v->bits[0] = (uint64_t)(uintptr_t)copy;
    return copy;
}

static stet_list *own_list(stet_value *array, size_t extra) {
    assert(stet_value_tag(*array) == STET_TAG_ARRAY);
    return (stet_list *)own(array, extra, sizeof(stet_value));
}

static stet_table *own_table(stet_value *object, size_t extra) {
    assert(stet_value_tag(*object) == STET_TAG_OBJECT);
    return (stet_table *)own(object, extra, sizeof(stet_member));
}

/* An empty container has no block (V3): frees the block after its last element was removed. */
static void drop_if_empty(stet_value *v) {
    stet_block *b = stet_value_block(*v);
    if (b->len)
        return;
    free_block(b, 0);
    v->bits[0] = 0;
}

static bool is_array(const stet_value *v) {
    return v && stet_value_tag(*v) == STET_TAG_ARRAY;
}

static bool is_object(const stet_value *v) {
    return v && stet_value_tag(*v) == STET_TAG_OBJECT;
}

/* A changer consumes its item even if it can't change anything. */
static bool refuse(stet_value item) {
    stet_value_release(item);
    return false;
}

bool stet_value_push(stet_value *array, stet_value item) {
    if (!is_array(array))
        return refuse(item);
    stet_list *list = own_list(array, 1);
    list->at[list->head.len++] = item;
    return true;
}

bool stet_value_put_at(stet_value *array, size_t index, stet_value item) {
    if (!is_array(array) || index >= stet_value_count(*array))
        return refuse(item);
    stet_list *list = own_list(array, 0);
    stet_value old = list->at[index];
    list->at[index] = item;
    stet_value_release(old);
    return true;
}

bool stet_value_insert_at(stet_value *array, size_t index, stet_value item) {
    if (!is_array(array) || index > stet_value_count(*array))
        return refuse(item);
    stet_list *list = own_list(array, 1);
    memmove(list->at + index + 1, list->at + index, (list->head.len - index) * sizeof *list->at);
    list->at[index] = item;
    list->head.len++;
    return true;
}

bool stet_value_remove_at(stet_value *array, size_t index) {
    if (!is_array(array) || index >= stet_value_count(*array))
        return false;
    stet_list *list = own_list(array, 0);
    stet_value old = list->at[index];
    list->head.len--;
    memmove(list->at + index, list->at + index + 1, (list->head.len - index) * sizeof *list->at);
    drop_if_empty(array);
    stet_value_release(old);
    return true;
}

bool stet_value_put_n(stet_value *object, const char *key, size_t key_len, stet_value item) {
    if (!is_object(object) || (!key && key_len))
        return refuse(item);
    size_t place;
    if (search(stet_value_block(*object), key, key_len, &place)) {
        stet_table *table = own_table(object, 0);
        stet_value old = table->at[place].value;
        table->at[place].value = item;
        stet_value_release(old);
        return true;
    }
    if (!stet_utf8_valid(key, key_len))
        return refuse(item);
    /* Made before anything moves: `key` may be one of the object's own. */
    stet_value name = stet_value_make_string(key, key_len, NULL);
    stet_table *table = own_table(object, 1);
    memmove(table->at + place + 1, table->at + place, (table->head.len - place) * sizeof *table->at);
    table->at[place] = (stet_member){name, item};
    table->head.len++;
    return true;
}

bool stet_value_put(stet_value *object, const char *key, stet_value item) {
    return key ? stet_value_put_n(object, key, strlen(key), item) : refuse(item);
}

bool stet_value_remove(stet_value *object, const char *key, size_t key_len) {
    size_t place;
    if (!is_object(object) || (!key && key_len) || !search(stet_value_block(*object), key, key_len, &place))
        return false;
    stet_table *table = own_table(object, 0);
    stet_member old = table->at[place];
    table->head.len--;
    memmove(table->at + place, table->at + place + 1, (table->head.len - place) * sizeof *table->at);
    drop_if_empty(object);
    stet_value_release(old.key);
    stet_value_release(old.value);
    return true;
}

static int compare_int_double(int64_t i, double d) {
    if (d >= 9223372036854775808.0)
        return -1;
    if (d < -9223372036854775808.0)
        return 1;
    int64_t whole = (int64_t)d;
    if (i != whole)
        return i < whole ? -1 : 1;
    double rest = d - (double)whole;
    /* Numerically equal beyond 2^53, yet different values: the integer comes first. */
    return rest < 0 ? 1 : -1;
}

static int compare_numbers(stet_value a, stet_value b) {
    bool a_int = stet_value_tag(a) == STET_TAG_INT, b_int = stet_value_tag(b) == STET_TAG_INT;
    if (a_int && b_int)
        return (stet_value_as_int(a) > stet_value_as_int(b)) - (stet_value_as_int(a) < stet_value_as_int(b));
    if (a_int)
        return compare_int_double(stet_value_as_int(a), stet_value_as_double(b));
    if (b_int)
        return -compare_int_double(stet_value_as_int(b), stet_value_as_double(a));
    return (stet_value_as_double(a) > stet_value_as_double(b)) - (stet_value_as_double(a) < stet_value_as_double(b));
}

static int rank(stet_value v) {
    static const unsigned char ranks[] = {
        [STET_TYPE_NULL] = 0,   [STET_TYPE_BOOL] = 1,  [STET_TYPE_INT] = 2,   [STET_TYPE_DOUBLE] = 2,
        [STET_TYPE_STRING] = 3, [STET_TYPE_ARRAY] = 4, [STET_TYPE_OBJECT] = 5};
    return ranks[stet_value_type(v)];
}

static int compare_leaves(const stet_value *a, const stet_value *b) {
    int order = rank(*a) - rank(*b);
    if (order)
        return order < 0 ? -1 : 1;
    switch (stet_value_type(*a)) {
    case STET_TYPE_BOOL:
        return (int)stet_value_as_bool(*a) - (int)stet_value_as_bool(*b);
    case STET_TYPE_INT:
    case STET_TYPE_DOUBLE:
        return compare_numbers(*a, *b);
    case STET_TYPE_STRING:
        return stet_value_compare_strings(a, b);
    default:
        return 0;
    }
}

struct pair {
    stet_value a, b; /* containers of the same type */
    size_t next;
};

/* `equality`: only whether the result is zero matters, so that a different count decides at once. */
static int walk(stet_value a, stet_value b, bool equality) {
    STET_VEC(struct pair) stack = {0};
    int order = 0;
    for (;;) {
        if (a.bits[0] != b.bits[0] || a.bits[1] != b.bits[1]) {
            order = compare_leaves(&a, &b);
            if (!order && is_container(a)) {
                if (equality && stet_value_count(a) != stet_value_count(b))
                    order = 1;
                else
                    *stet_vec_add(&stack) = (struct pair){a, b, 0};
            }
        }
        for (;;) { /* go to the next pair of elements */
            if (order || !stack.len)
                goto out;
            struct pair *top = &stack.at[stack.len - 1];
            size_t a_count = stet_value_count(top->a), b_count = stet_value_count(top->b), i = top->next++;
            if (i < a_count && i < b_count) {
                if (stet_value_tag(top->a) == STET_TAG_OBJECT)
                    order = stet_value_compare_strings(&((stet_table *)stet_value_block(top->a))->at[i].key,
                                                       &((stet_table *)stet_value_block(top->b))->at[i].key);
                if (order)
                    goto out;
                a = stet_value_at(top->a, i);
                b = stet_value_at(top->b, i);
                break;
            }
            order = (a_count > b_count) - (a_count < b_count);
            stack.len--;
        }
    }
out:
    stet_vec_release(&stack);
    return order;
}

bool stet_value_equal(stet_value a, stet_value b) {
    return walk(a, b, true) == 0;
}

int stet_value_compare(stet_value a, stet_value b) {
    int order = walk(a, b, false);
    return (order > 0) - (order < 0);
}
