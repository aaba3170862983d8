/* execmap.c - the exec map of a commit: which exec is pinned for which node. */

#include "repo/execmap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS "0123456789abcdef"
enum { DEPTH_MAX = 64 };

static unsigned digit_of(stet_hash id, unsigned depth) {
    unsigned byte = id.bytes[depth / 2];
    return depth % 2 ? byte & 0x0F : byte >> 4;
}

static stet_hash with_digit(stet_hash id, unsigned depth, unsigned digit) {
    id.bytes[depth / 2] |= (unsigned char)(depth % 2 ? digit : digit << 4);
    return id;
}

static bool same_start(stet_hash a, stet_hash b, unsigned depth) {
    return memcmp(a.bytes, b.bytes, depth / 2) == 0 &&
           (depth % 2 == 0 || digit_of(a, depth - 1) == digit_of(b, depth - 1));
}

/* A record of a map: entries, or parts. */
typedef struct chunk {
    bool leaf;
    int64_t count;
    stet_pin entries[STET_EXECMAP_LEAF];
    bool has[16];
    stet_hash parts[16];
} chunk;

static void chunk_of(stet_value v, chunk *c) {
    stet_value execs = stet_value_get(v, "execs"), parts = stet_value_get(v, "parts");
    memset(c, 0, sizeof *c);
    c->leaf = stet_value_type(parts) == STET_TYPE_NULL;
    c->count = c->leaf ? (int64_t)stet_value_count(execs) : stet_value_as_int(stet_value_get(v, "count"));
    for (size_t i = 0; c->leaf && i < stet_value_count(execs); i++) {
        size_t len;
        const char *key = stet_value_key_at(execs, i, &len);
        bool fine = stet_hash_of_hex(key, len, &c->entries[i].node) &&
                    stet_hash_of_text(stet_value_at(execs, i), &c->entries[i].exec);
        assert(fine); /* the record was checked */
        (void)fine;
    }
    for (size_t i = 0; !c->leaf && i < stet_value_count(parts); i++) {
        size_t d = (size_t)(strchr(DIGITS, stet_value_key_at(parts, i, NULL)[0]) - DIGITS);
        c->has[d] = stet_hash_of_text(stet_value_at(parts, i), &c->parts[d]);
    }
}

static stet_status load(stet_repo *r, stet_hash id, unsigned depth, chunk *c, stet_error *err) {
    stet_value v;
    stet_slot *borrowed = stet_map_get(&r->borrowed, id.bytes, sizeof id.bytes);
    stet_status st = STET_OK;
    if (borrowed)
        v = stet_value_retain(*(stet_value *)borrowed->p);
    else
        st = stet_repo_get(r, id, STET_RECORD_EXECMAP, &v, err);
    if (st != STET_OK)
        return st;
    chunk_of(v, c);
    stet_value_release(v);
    if (!c->leaf && depth >= DEPTH_MAX)
        return stet_fail(err, STET_CORRUPT, "record %s: an exec map deeper than its ids are long",
                         stet_hash_print(id).text);
    return STET_OK;
}

static stet_status misplaced(stet_hash id, stet_error *err) {
    return stet_fail(err, STET_CORRUPT, "record %s: its entries belong elsewhere in the exec map",
                     stet_hash_print(id).text);
}

stet_status stet_execmap_get(stet_repo *r, stet_hash map, stet_hash node, bool *there, stet_hash *exec,
                             stet_error *err) {
    chunk c;
    *there = false;
    for (unsigned depth = 0;; depth++) {
        stet_status st = load(r, map, depth, &c, err);
        if (st != STET_OK)
            return st;
        if (c.leaf)
            break;
        unsigned d = digit_of(node, depth);
        if (!c.has[d])
            return STET_OK;
        map = c.parts[d];
    }
    for (int64_t i = 0; i < c.count; i++)
        if (stet_hash_equal(c.entries[i].node, node)) {
            *there = true;
            *exec = c.entries[i].exec;
        }
    return STET_OK;
}

typedef struct place {
    stet_hash id;
    unsigned depth;
} place;

stet_status stet_execmap_list(stet_repo *r, stet_hash map, stet_pins *out, stet_error *err) {
    STET_VEC(place) stack = {0};
    stet_status st = STET_OK;
    chunk *c = stet_alloc(sizeof *c);
    *stet_vec_add(&stack) = (place){map, 0};
    while (stack.len && st == STET_OK) {
        place at = stack.at[--stack.len];
        st = load(r, at.id, at.depth, c, err);
        /* An empty part is no part: maps that have them could name one part in more places than can be walked. */
        if (st == STET_OK && c->leaf && c->count == 0 && at.depth)
            st = misplaced(at.id, err);
        if (st != STET_OK)
            break;
        for (int64_t i = 0; c->leaf && i < c->count; i++) {
            if (out->len && stet_hash_compare(out->at[out->len - 1].node, c->entries[i].node) >= 0) {
                st = misplaced(at.id, err);
                break;
            }
            *stet_vec_add(out) = c->entries[i];
        }
        for (unsigned d = 16; !c->leaf && d-- > 0;)
            if (c->has[d])
                *stet_vec_add(&stack) = (place){c->parts[d], at.depth + 1};
    }
    free(c);
    stet_vec_release(&stack);
    return st;
}

typedef struct pair {
    bool has_from, has_to;
    stet_hash from, to;
    unsigned depth;
    stet_hash place; /* its first `depth` digits */
} pair;

/* Two small or unlike maps, entry by entry. */
static void merge(const stet_pins *from, const stet_pins *to, stet_pins *out) {
    size_t i = 0, j = 0;
    while (i < from->len || j < to->len) {
        int order = i == from->len ? 1 : j == to->len ? -1 : stet_hash_compare(from->at[i].node, to->at[j].node);
        if (order < 0)
            *stet_vec_add(out) = (stet_pin){.node = from->at[i].node};
        else if (order > 0 || !stet_hash_equal(from->at[i].exec, to->at[j].exec))
            *stet_vec_add(out) = to->at[j];
        i += order <= 0;
        j += order >= 0;
    }
}

/* The entries of a part, which are some, and all of this place: so each part is named in one place. */
static stet_status list_of(stet_repo *r, bool has, stet_hash id, const pair *at, stet_pins *out, stet_error *err) {
    stet_status st = has ? stet_execmap_list(r, id, out, err) : STET_OK;
    if (st != STET_OK || !has || at->depth == 0)
        return st;
    bool fine = out->len && same_start(out->at[0].node, at->place, at->depth) &&
                same_start(out->at[out->len - 1].node, at->place, at->depth);
    return fine ? STET_OK : misplaced(id, err);
}

stet_status stet_execmap_diff(stet_repo *r, const stet_hash *from, const stet_hash *to, stet_pins *out,
                              stet_error *err) {
    STET_VEC(pair) stack = {0};
    stet_status st = STET_OK;
    chunk *a = stet_alloc_zero(sizeof *a), *b = stet_alloc_zero(sizeof *b);
    pair first = {.has_from = from != NULL, .has_to = to != NULL};
    if (from)
        first.from = *from;
    if (to)
        first.to = *to;
    *stet_vec_add(&stack) = first;
    while (stack.len && st == STET_OK) {
        pair at = stack.at[--stack.len];
        if (at.has_from == at.has_to && (!at.has_from || stet_hash_equal(at.from, at.to)))
            continue;
        a->leaf = b->leaf = true;
        if (at.has_from)
            st = load(r, at.from, at.depth, a, err);
        if (st == STET_OK && at.has_to)
            st = load(r, at.to, at.depth, b, err);
        if (st != STET_OK)
            break;
        if (at.has_from && at.has_to && !a->leaf && !b->leaf) {
            for (unsigned d = 16; d-- > 0;)
                *stet_vec_add(&stack) = (pair){a->has[d],   b->has[d],    a->parts[d],
                                               b->parts[d], at.depth + 1, with_digit(at.place, at.depth, d)};
            continue;
        }
        stet_pins old = {0}, new = {0};
        st = list_of(r, at.has_from, at.from, &at, &old, err);
        if (st == STET_OK)
            st = list_of(r, at.has_to, at.to, &at, &new, err);
        if (st == STET_OK)
            merge(&old, &new, out);
        stet_vec_release(&old);
        stet_vec_release(&new);
    }
    free(a);
    free(b);
    stet_vec_release(&stack);
    return st;
}

typedef struct edit {
    stet_repo *r;                 /* NULL: ids alone */
    const stet_record_sink *sink; /* takes new records, which are not stored then; NULL: none */
    stet_object_state state;
    stet_hashes *replaced;
    stet_map made; /* ids of records that are part of the new map, though one of them may have been part of the old */
    stet_error *err;
} edit;

static stet_status put(edit *e, stet_value record, stet_hash *id) {
    stet_value_put(&record, "type", stet_value_string(stet_record_type_name(STET_RECORD_EXECMAP)));
    stet_status st = e->r && !e->sink ? stet_object_make(e->r, record, STET_RECORD_EXECMAP, e->state, id, e->err)
                                      : stet_record_make(record, STET_RECORD_EXECMAP, e->sink, id, e->err);
    stet_value_release(record);
    if (st == STET_OK && e->replaced)
        stet_map_put(&e->made, id->bytes, sizeof id->bytes, (stet_slot){.n = 1});
    return st;
}

static stet_status put_leaf(edit *e, const stet_pin *entries, size_t count, stet_hash *id) {
    stet_value record = stet_value_object(), execs = stet_value_object();
    for (size_t i = 0; i < count; i++)
        stet_value_put(&execs, stet_hash_print(entries[i].node).text, stet_hash_text(entries[i].exec));
    stet_value_put(&record, "execs", execs);
    return put(e, record, id);
}

static stet_status put_parts(edit *e, const chunk *c, stet_hash *id) {
    stet_value record = stet_value_object(), parts = stet_value_object();
    for (unsigned d = 0; d < 16; d++)
        if (c->has[d])
            stet_value_put_n(&parts, &DIGITS[d], 1, stet_hash_text(c->parts[d]));
    stet_value_put(&record, "count", stet_value_int(c->count));
    stet_value_put(&record, "parts", parts);
    return put(e, record, id);
}

/* A map of these entries, which agree in the first `depth` digits. */
static stet_status build(edit *e, const stet_pin *entries, size_t count, unsigned depth, stet_hash *id) {
    if (count <= STET_EXECMAP_LEAF)
        return put_leaf(e, entries, count, id);
    assert(depth < DEPTH_MAX); /* more than one entry with one id: stet_pins_sort */
    chunk c = {.count = (int64_t)count};
    for (size_t from = 0, to; from < count; from = to) {
        unsigned d = digit_of(entries[from].node, depth);
        for (to = from + 1; to < count && digit_of(entries[to].node, depth) == d; to++)
            ;
        c.has[d] = true;
        stet_status st = build(e, entries + from, to - from, depth + 1, &c.parts[d]);
        if (st != STET_OK)
            return st;
    }
    return put_parts(e, &c, id);
}

static void replace(edit *e, stet_hash id) {
    if (e->replaced)
        *stet_vec_add(e->replaced) = id;
}

/* The same for a part that may have been made a moment ago. */
static void take_back(edit *e, stet_hash id) {
    stet_map_remove(&e->made, id.bytes, sizeof id.bytes);
    replace(e, id);
}

/* Entries of a leaf with changes: `out` has room for both. */
static size_t mix(const chunk *c, const stet_pin *pins, size_t count, stet_pin *out) {
    size_t i = 0, j = 0, n = 0, have = (size_t)c->count;
    while (i < have || j < count) {
        int order = i == have ? 1 : j == count ? -1 : stet_hash_compare(c->entries[i].node, pins[j].node);
        if (order < 0)
            out[n++] = c->entries[i];
        else if (!stet_hash_is_zero(pins[j].exec))
            out[n++] = pins[j];
        i += order <= 0;
        j += order >= 0;
    }
    return n;
}

static stet_status change_leaf(edit *e, const chunk *c, const stet_pin *pins, size_t count, unsigned depth,
                               stet_hash *id, int64_t *now) {
    stet_pin *all = stet_alloc(((size_t)c->count + count) * sizeof *all + 1);
    size_t n = mix(c, pins, count, all);
    stet_status st = n || depth == 0 ? build(e, all, n, depth, id) : STET_OK; /* an empty part is no part */
    *now = (int64_t)n;
    free(all);
    return st;
}

/* Parts that have become so few entries that they are one record. */
static stet_status collapse(edit *e, const chunk *c, stet_hash *id) {
    stet_pins all = {0};
    stet_status st = STET_OK;
    for (unsigned d = 0; d < 16 && st == STET_OK; d++)
        if (c->has[d]) {
            st = stet_execmap_list(e->r, c->parts[d], &all, e->err);
            take_back(e, c->parts[d]); /* a leaf: it holds no more than what is left */
        }
    if (st == STET_OK && all.len != (size_t)c->count)
        st = stet_fail(e->err, STET_CORRUPT, "the counts of an exec map are wrong");
    if (st == STET_OK)
        st = put_leaf(e, all.at, all.len, id);
    stet_vec_release(&all);
    return st;
}

/* Do the entries of a leaf begin as those do that are looked for there? A map of somebody else's may say anything. */
static bool belongs(const chunk *c, stet_hash node, unsigned depth) {
    for (int64_t i = 0; i < c->count; i++)
        if (!same_start(c->entries[i].node, node, depth))
            return false;
    return true;
}

/* The map `*id` (if `has`) with changes; `*now` is how many entries it has then, and `*id` is set unless that is 0
 * below the root. */
static stet_status change(edit *e, bool has, stet_hash *id, const stet_pin *pins, size_t count, unsigned depth,
                          int64_t *before, int64_t *now) {
    chunk *c = stet_alloc_zero(sizeof *c);
    stet_hash old = *id;
    c->leaf = true;
    stet_status st = has ? load(e->r, *id, depth, c, e->err) : STET_OK;
    *before = c->count;
    if (st == STET_OK && c->leaf && depth && !belongs(c, pins[0].node, depth))
        st = misplaced(old, e->err);
    if (st == STET_OK && c->leaf) {
        st = change_leaf(e, c, pins, count, depth, id, now);
    } else if (st == STET_OK) {
        for (size_t from = 0, to; from < count && st == STET_OK; from = to) {
            unsigned d = digit_of(pins[from].node, depth);
            int64_t had, have;
            for (to = from + 1; to < count && digit_of(pins[to].node, depth) == d; to++)
                ;
            st = change(e, c->has[d], &c->parts[d], pins + from, to - from, depth + 1, &had, &have);
            if (st == STET_OK) {
                c->count += have - had;
                c->has[d] = have > 0;
            }
        }
        *now = c->count;
        if (st == STET_OK && c->count < 0)
            st = stet_fail(e->err, STET_CORRUPT, "the counts of an exec map are wrong");
        if (st == STET_OK && (c->count > STET_EXECMAP_LEAF))
            st = put_parts(e, c, id);
        else if (st == STET_OK && (c->count || depth == 0))
            st = collapse(e, c, id);
    }
    if (st == STET_OK && has && (*now == 0 || !stet_hash_equal(old, *id)))
        replace(e, old);
    free(c);
    return st;
}

stet_status stet_execmap_set(stet_repo *r, const stet_hash *map, const stet_pin *pins, size_t count,
                             stet_object_state state, stet_hash *out, stet_hashes *replaced, stet_error *err) {
    edit e = {.r = r, .state = state, .replaced = replaced, .err = err};
    stet_hash id = {{0}};
    int64_t before, now;
    if (map)
        id = *map;
    stet_status st = change(&e, map != NULL, &id, pins, count, 0, &before, &now);
    size_t n = 0;
    for (size_t i = 0; replaced && i < replaced->len; i++)
        if (!stet_map_get(&e.made, replaced->at[i].bytes, sizeof replaced->at[i].bytes))
            replaced->at[n++] = replaced->at[i];
    if (replaced)
        replaced->len = n;
    stet_map_release(&e.made);
    if (st == STET_OK)
        *out = id;
    return st;
}

stet_status stet_execmap_make(stet_repo *r, const stet_hash *map, const stet_pin *pins, size_t count,
                              const stet_record_sink *sink, stet_hash *out, stet_error *err) {
    edit e = {.r = r, .sink = sink, .err = err};
    int64_t before, now;
    *out = map ? *map : (stet_hash){{0}};
    return change(&e, map != NULL, out, pins, count, 0, &before, &now);
}

stet_status stet_execmap_id(const stet_pin *pins, size_t count, stet_hash *out, stet_error *err) {
    edit e = {.err = err};
    return build(&e, pins, count, 0, out);
}

typedef struct numbered {
    stet_pin pin;
    size_t number;
} numbered;

static int by_node(const void *a, const void *b) {
    const numbered *x = a, *y = b;
    int order = stet_hash_compare(x->pin.node, y->pin.node);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

void stet_pins_sort(stet_pins *pins) {
    if (pins->len < 2)
        return;
    numbered *all = stet_alloc(pins->len * sizeof *all);
    for (size_t i = 0; i < pins->len; i++)
        all[i] = (numbered){pins->at[i], i};
    qsort(all, pins->len, sizeof *all, by_node);
    size_t n = 0;
    for (size_t i = 0; i < pins->len; i++) {
        if (n && stet_hash_equal(pins->at[n - 1].node, all[i].pin.node))
            n--;
        pins->at[n++] = all[i].pin;
    }
    pins->len = n;
    free(all);
}
