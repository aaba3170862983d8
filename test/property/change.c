/* change.c - changed leaves and overlap, compared with a naive definition that reads the values again.
 *
 * For a read R of a document before and after, what the reader saw is
 *   recursive: the value at R, or that nothing is there;
 *   shallow:   the type at R, with its key set, its length or the scalar itself; or that nothing is there.
 * R is touched if some changed leaf touches it. What must hold:
 *
 *   C1. exact: if what the reader saw differs, R is touched. Nothing is ever missed. A reader that looks through links
 *       sees, at a sigil on the way to R or at R, what that leads to: if it meets one before or after, and not the same
 *       one, it may have seen something else.
 *   C2. exact, recursive: unless a leaf stands above R, R is touched only if what it saw differs.
 *   C3. exact, shallow: the same.
 *   C4. wider than needed, by the rule itself: a leaf above R (a proper prefix of it) touches R, although R may have
 *       seen the same both times. That happens in two ways only: nothing is at R on either side (2 became 3 at /a, and
 *       somebody had looked for /a/x); or an array became an object, or the reverse, or one side is a sigil, and both
 *       have the same at R.
 *   C5. the leaves are sorted, no path stands twice, none is a prefix of another, and each is named by the naive
 *       definition of a leaf; no leaf of the naive definition is missing.
 *   C6. with a bound on their number, what the leaves touch only grows, and their number keeps the bound.
 */

#include "base/change.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static uint64_t rng_state;

static uint64_t rng(void) { /* xorshift64* */
    rng_state ^= rng_state >> 12;
    rng_state ^= rng_state << 25;
    rng_state ^= rng_state >> 27;
    return rng_state * 2685821657736338717u;
}

static size_t below(size_t n) {
    return (size_t)(rng() >> 33) % n;
}

/* Few keys, so that both sides meet; one is a prefix of another, one needs escapes, some look like indices. */
static const struct {
    const char *bytes;
    size_t len;
} keys[] = {{"a", 1},  {"b", 1}, {"ab", 2}, {"0", 1},    {"1", 1},
            {"10", 2}, {"/", 1}, {"", 0},   {"\0\1", 2}, {"a long key, not inline", 22}};
enum { KEYS = sizeof keys / sizeof *keys };

static stet_value random_scalar(void) {
    stet_value v = stet_value_null();
    switch (below(8)) {
    case 0:
        return stet_value_null();
    case 1:
        return stet_value_bool(below(2));
    case 2:
    case 3:
        return stet_value_int((int64_t)below(3));
    case 4:
        if (stet_value_double((double)below(4) / 2, &v, NULL) != STET_OK)
            abort();
        return v;
    case 5:
        return stet_value_string("a string that is not held inline");
    case 6:
        return stet_value_array();
    default:
        return below(2) ? stet_value_object() : stet_value_string("x");
    }
}

static stet_value random_value(unsigned depth) {
    size_t kind = below(depth == 0 ? 8 : 4);
    if (depth >= 4 || kind == 0)
        return random_scalar();
    size_t count = below(4);
    if (below(8) == 0) { /* a link */
        stet_value link = stet_value_object();
        stet_value_put(&link, "/", below(4) ? stet_value_int((int64_t)below(3)) : random_value(depth + 1));
        return link;
    }
    if (below(12) == 0)
        count = 11; /* indices of one and of two digits */
    stet_value v = kind == 1 ? stet_value_array() : stet_value_object();
    for (size_t i = 0; i < count; i++) {
        stet_value item = count > 4 ? random_scalar() : random_value(depth + 1);
        if (kind == 1) {
            stet_value_push(&v, item);
        } else {
            size_t k = below(KEYS);
            stet_value_put_n(&v, keys[k].bytes, keys[k].len, item);
        }
    }
    return v;
}

/* A changed copy that shares what did not change, as a write makes it. Consumes nothing. */
static stet_value edited(stet_value v, unsigned depth) {
    stet_type type = stet_value_type(v);
    size_t count = stet_value_count(v);
    if ((type != STET_TYPE_ARRAY && type != STET_TYPE_OBJECT) || below(8) == 0)
        return below(4) ? random_value(depth) : stet_value_retain(v);
    stet_value copy = stet_value_retain(v);
    size_t at = count ? below(count) : 0, k = below(KEYS), len = 0;
    switch (below(4)) {
    case 0: /* goes */
        if (count && type == STET_TYPE_ARRAY) {
            stet_value_remove_at(&copy, at);
        } else if (count) {
            const char *key = stet_value_key_at(v, at, &len);
            stet_value_remove(&copy, key, len);
        }
        break;
    case 1: /* appears, or is replaced */
        if (type == STET_TYPE_ARRAY)
            stet_value_insert_at(&copy, below(count + 1), random_value(depth + 1));
        else
            stet_value_put_n(&copy, keys[k].bytes, keys[k].len, random_value(depth + 1));
        break;
    default: /* changes inside */
        if (count && type == STET_TYPE_ARRAY) {
            stet_value_put_at(&copy, at, edited(stet_value_at(v, at), depth + 1));
        } else if (count) {
            const char *key = stet_value_key_at(v, at, &len);
            stet_value_put_n(&copy, key, len, edited(stet_value_at(v, at), depth + 1));
        }
    }
    return copy;
}

/* The same value with nothing shared. */
static stet_value unshared(stet_value v) {
    size_t len;
    char *text = stet_json_print(v, STET_JSON_CANONICAL, &len);
    stet_value copy;
    if (stet_json_parse(text, len, &copy, NULL) != STET_OK)
        abort();
    stet_free(text);
    return copy;
}

/* A path that often leads somewhere in the value, and often just beyond. */
static void random_path(stet_path *p, const stet_value *in) {
    stet_value at = in ? *in : stet_value_null();
    stet_path_set(p, STET_PATH_ROOT);
    while (below(4)) {
        size_t count = stet_value_count(at), index = count ? below(count) : 0, len = 0;
        if (count && below(8)) {
            const char *key = stet_value_key_at(at, index, &len);
            if (key)
                stet_path_push_n(p, key, len);
            else
                stet_path_push_index(p, index);
            at = stet_value_at(at, index);
        } else {
            size_t k = below(KEYS);
            stet_path_push_n(p, keys[k].bytes, keys[k].len);
            if (below(2))
                break;
            at = stet_value_null();
        }
    }
}

typedef struct view {
    bool there;
    stet_value value;
} view;

static view look(const stet_value *root, stet_pathref p) {
    view v = {false, stet_value_null()};
    if (root)
        v.there = stet_path_lookup(*root, p, &v.value);
    return v;
}

static bool saw_the_same(view a, view b, stet_read_kind kind) {
    if (a.there != b.there)
        return false;
    if (!a.there)
        return true;
    if (kind == STET_RECURSIVE)
        return stet_value_equal(a.value, b.value);
    stet_type type = stet_value_type(a.value);
    if (type != stet_value_type(b.value))
        return false;
    if (type == STET_TYPE_ARRAY)
        return stet_value_count(a.value) == stet_value_count(b.value);
    if (type != STET_TYPE_OBJECT)
        return stet_value_equal(a.value, b.value);
    if (stet_value_count(a.value) != stet_value_count(b.value))
        return false;
    for (size_t i = 0; i < stet_value_count(a.value); i++) {
        size_t len_a, len_b;
        const char *key_a = stet_value_key_at(a.value, i, &len_a), *key_b = stet_value_key_at(b.value, i, &len_b);
        if (len_a != len_b || memcmp(key_a, key_b, len_a) != 0)
            return false;
    }
    return true;
}

static bool is_sigil(stet_value v) {
    return stet_value_type(v) == STET_TYPE_OBJECT && stet_value_count(v) == 1 && stet_value_find(v, "/", 1, NULL);
}

/* The first sigil on the way to a path, or at it. */
static view sigil_on(const stet_value *root, stet_pathref p) {
    size_t cursor = 0;
    for (;;) {
        view v = look(root, (stet_pathref){p.bytes, cursor});
        const char *key;
        size_t len;
        stet_buf scratch = STET_BUF(0);
        if (v.there && is_sigil(v.value))
            return v;
        bool more = stet_path_next(p, &cursor, &scratch, &key, &len);
        stet_buf_release(&scratch);
        if (!more)
            return (view){false, stet_value_null()};
    }
}

static bool touched(const stet_changes *c, stet_pathref read, stet_read_kind kind) {
    for (size_t i = 0; i < c->len; i++)
        if (stet_touches(c->at[i].path, c->at[i].kind, read, kind))
            return true;
    return false;
}

/* Containers of one type: what differs between them lies below. A sigil is no container. */
static bool walked(stet_value a, stet_value b) {
    stet_type type = stet_value_type(a);
    return type == stet_value_type(b) && (type == STET_TYPE_ARRAY || type == STET_TYPE_OBJECT) && !is_sigil(a) &&
           !is_sigil(b);
}

/* A leaf by its definition: there on one side only, with the parent walked (or the root); or there on both, different,
 * and not walked. All that is above it must be walked, too. */
static bool is_leaf(const stet_value *before, const stet_value *after, stet_pathref p, stet_change_kind kind) {
    view a = look(before, p), b = look(after, p);
    for (stet_pathref up = p; up.len;) {
        up = stet_path_parent(up);
        view parent_a = look(before, up), parent_b = look(after, up);
        if (!parent_a.there || !parent_b.there || !walked(parent_a.value, parent_b.value))
            return false;
    }
    if (a.there != b.there)
        return kind == STET_KEYSET;
    if (!a.there || stet_value_equal(a.value, b.value))
        return false;
    return kind == STET_VALUE && !walked(a.value, b.value);
}

/* How many leaves there are, by walking every path of both. Recursion is fine here: the values are ours, and shallow.
 */
static size_t count_leaves(view a, view b) {
    if (!a.there && !b.there)
        return 0;
    if (a.there != b.there)
        return 1;
    if (!walked(a.value, b.value))
        return !stet_value_equal(a.value, b.value);
    size_t n = 0;
    if (stet_value_type(a.value) == STET_TYPE_ARRAY) {
        for (size_t i = 0; i < stet_value_count(a.value) || i < stet_value_count(b.value); i++)
            n += count_leaves((view){i < stet_value_count(a.value), stet_value_at(a.value, i)},
                              (view){i < stet_value_count(b.value), stet_value_at(b.value, i)});
        return n;
    }
    for (size_t k = 0; k < KEYS; k++) {
        view x = {false, stet_value_null()}, y = x;
        x.there = stet_value_find(a.value, keys[k].bytes, keys[k].len, &x.value);
        y.there = stet_value_find(b.value, keys[k].bytes, keys[k].len, &y.value);
        n += count_leaves(x, y);
    }
    return n;
}

static void explain(const stet_value *before, const stet_value *after, const stet_changes *c, stet_pathref read,
                    const char *what) {
    stet_buf b = STET_BUF(0);
    stet_buf_str(&b, "before ");
    if (before)
        stet_json_write(&b, *before, STET_JSON_CANONICAL);
    stet_buf_str(&b, "\nafter ");
    if (after)
        stet_json_write(&b, *after, STET_JSON_CANONICAL);
    stet_buf_str(&b, "\nread ");
    stet_path_print(read, &b);
    for (size_t i = 0; i < c->len; i++) {
        stet_buf_printf(&b, "\nleaf %s ", c->at[i].kind == STET_KEYSET ? "keyset" : "value");
        stet_path_print(c->at[i].path, &b);
    }
    fail_msg("%s\n%s", what, stet_buf_cstr(&b));
}

static void check_leaves(const stet_value *before, const stet_value *after, const stet_changes *c) {
    for (size_t i = 0; i < c->len; i++) {
        if (!is_leaf(before, after, c->at[i].path, c->at[i].kind))
            explain(before, after, c, c->at[i].path, "C5: not a leaf");
        if (i && (stet_path_compare(c->at[i - 1].path, c->at[i].path) >= 0 ||
                  stet_path_is_prefix(c->at[i - 1].path, c->at[i].path)))
            explain(before, after, c, c->at[i].path, "C5: order");
    }
    view a = look(before, STET_PATH_ROOT), b = look(after, STET_PATH_ROOT);
    if (count_leaves(a, b) != c->len)
        explain(before, after, c, STET_PATH_ROOT, "C5: a leaf is missing");
}

static void check_read(const stet_value *before, const stet_value *after, const stet_changes *all,
                       const stet_changes *bounded, stet_pathref read, stet_read_kind kind) {
    view a = look(before, read), b = look(after, read);
    bool same = saw_the_same(a, b, kind), touch = touched(all, read, kind);
    if (!same && !touch)
        explain(before, after, all, read, "C1: missed");
    view link_a = sigil_on(before, read), link_b = sigil_on(after, read);
    if (!touch && (link_a.there != link_b.there || !stet_value_equal(link_a.value, link_b.value)))
        explain(before, after, all, read, "C1: missed behind a link");
    if (touch && same) {
        const stet_change *above = NULL;
        for (size_t i = 0; i < all->len; i++) {
            if (stet_path_is_prefix(all->at[i].path, read))
                above = &all->at[i];
        }
        if (!above)
            explain(before, after, all, read, kind == STET_RECURSIVE ? "C2: needless" : "C3: needless");
        if (a.there && !(above->kind == STET_VALUE && stet_value_count(look(before, above->path).value) &&
                         stet_value_count(look(after, above->path).value)))
            explain(before, after, all, read, "C4: needless");
    }
    if (touch && !touched(bounded, read, kind))
        explain(before, after, bounded, read, "C6: narrower");
}

/* One pair of values, and some reads of it. */
static void check_pair(stet_arena *arena, stet_changes *all, stet_changes *bounded, stet_path *p) {
    stet_value x = random_value(0), y;
    switch (below(8)) {
    case 0:
        y = random_value(0);
        break;
    case 1:
        y = stet_value_retain(x);
        break;
    case 2:
        y = unshared(x);
        break;
    case 3: {
        stet_value changed = edited(x, 0);
        y = unshared(changed);
        stet_value_release(changed);
        break;
    }
    default:
        y = edited(x, 0);
        for (size_t more = below(4); more; more--) {
            stet_value next = edited(y, 0);
            stet_value_release(y);
            y = next;
        }
    }
    const stet_value *before = below(50) ? &x : NULL, *after = below(50) ? &y : NULL;
    size_t max = 1 + below(4);
    stet_arena_clear(arena);
    stet_vec_clear(all);
    stet_vec_clear(bounded);
    stet_changes_between(before, after, 0, arena, all);
    stet_changes_between(before, after, max, arena, bounded);
    check_leaves(before, after, all);
    if (bounded->len > max || (all->len <= max && bounded->len != all->len) || (all->len > max && bounded->len != 1))
        explain(before, after, bounded, STET_PATH_ROOT, "C6: the bound");
    for (size_t i = 0; i < 4; i++) {
        if (all->len && below(2)) { /* around what changed, or anywhere */
            stet_path_set(p, all->at[below(all->len)].path);
            for (size_t up = below(3); up; up--)
                stet_path_pop(p);
            if (below(3) == 0)
                stet_path_push(p, keys[below(KEYS)].bytes);
        } else {
            random_path(p, below(2) ? before : after);
        }
        check_read(before, after, all, bounded, stet_path_ref(p), below(2) ? STET_RECURSIVE : STET_SHALLOW);
    }
    stet_value_release(x);
    stet_value_release(y);
}

static void overlap_equals_the_naive_definition(void **state) {
    (void)state;
    size_t cases = getenv("STET_TEST_LONG") ? 50000000 : getenv("STET_TEST_SHORT") ? 50000 : 1000000;
    const char *seed = getenv("STET_TEST_SEED");
    rng_state = seed ? strtoull(seed, NULL, 10) | 1 : 88172645463325252u;
    stet_arena arena = STET_ARENA_INIT;
    stet_changes all = {0}, bounded = {0};
    stet_path p = STET_PATH_INIT;
    for (size_t done = 0; done < cases; done++)
        check_pair(&arena, &all, &bounded, &p);
    stet_path_release(&p);
    stet_changes_release(&all);
    stet_changes_release(&bounded);
    stet_arena_release(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(overlap_equals_the_naive_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
