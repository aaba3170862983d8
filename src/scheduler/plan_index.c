/* plan_index.c - who reads and who writes a document, by path. */

#include "scheduler/plan_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define TAIL 128 /* entries searched one by one before they are sorted in */

uint32_t plan_path(plan_paths *p, stet_pathref path) {
    const stet_slot *slot = stet_map_get(&p->map, path.bytes, path.len);
    if (slot)
        return (uint32_t)slot->n;
    uint32_t id = (uint32_t)p->list.len;
    *stet_vec_add(&p->list) = (stet_pathref){stet_arena_strndup(&p->arena, path.bytes, path.len), path.len};
    stet_map_put(&p->map, path.bytes, path.len, (stet_slot){.n = id});
    return id;
}

void plan_paths_release(plan_paths *p) {
    stet_map_release(&p->map);
    stet_vec_release(&p->list);
    stet_arena_release(&p->arena);
}

static int compare_paths(const plan_paths *paths, uint32_t a, uint32_t b) {
    return a == b ? 0 : stet_path_compare(paths->list.at[a], paths->list.at[b]);
}

static int compare_entries(const void *a, const void *b, void *ctx) {
    const plan_entry *x = a, *y = b;
    int c = compare_paths(ctx, x->path, y->path);
    if (c == 0)
        c = x->node < y->node ? -1 : x->node > y->node;
    if (c == 0)
        c = (int)(x->kind & ~PLAN_DEAD) - (int)(y->kind & ~PLAN_DEAD);
    return c;
}

/* Sorts the tail in and drops what was removed. */
static void settle(plan_index *x, const plan_paths *paths) {
    size_t tail = x->len - x->sorted;
    if (tail == 0 && x->dead == 0)
        return;
    plan_entry *out = stet_alloc((x->len ? x->len : 1) * sizeof *out);
    if (tail > 1)
        qsort_r(x->at + x->sorted, tail, sizeof *x->at, compare_entries, (void *)(uintptr_t)paths);
    size_t i = 0, j = x->sorted, n = 0;
    while (i < x->sorted || j < x->len) {
        bool first =
            j >= x->len || (i < x->sorted && compare_entries(&x->at[i], &x->at[j], (void *)(uintptr_t)paths) <= 0);
        plan_entry e = first ? x->at[i++] : x->at[j++];
        if (!(e.kind & PLAN_DEAD))
            out[n++] = e;
    }
    free(x->at);
    x->at = out;
    x->cap = x->len ? x->len : 1;
    x->len = x->sorted = (uint32_t)n;
    x->dead = 0;
}

static void settle_if_long(plan_index *x, const plan_paths *paths) {
    if (x->len - x->sorted > TAIL || (x->dead > TAIL && x->dead > x->len / 2))
        settle(x, paths);
}

void plan_index_add(plan_index *x, uint32_t path, uint32_t node, uint32_t kind) {
    if (x->len == x->cap) {
        assert(x->cap < UINT32_MAX / 2);
        x->cap = x->cap ? 2 * x->cap : 1;
        x->at = stet_realloc(x->at, x->cap * sizeof *x->at);
    }
    x->at[x->len++] = (plan_entry){path, node, kind};
}

/* First entry of the sorted part whose path is not below `key`. */
static size_t lower_bound(const plan_index *x, const plan_paths *paths, stet_pathref key) {
    size_t lo = 0, hi = x->sorted;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (stet_path_compare(paths->list.at[x->at[mid].path], key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void plan_index_remove(plan_index *x, const plan_paths *paths, uint32_t path, uint32_t node, uint32_t kind) {
    settle_if_long(x, paths);
    for (size_t i = x->sorted; i < x->len; i++) {
        if (x->at[i].path == path && x->at[i].node == node && x->at[i].kind == kind) {
            x->at[i] = x->at[--x->len];
            return;
        }
    }
    plan_entry e = {path, node, kind};
    size_t lo = 0, hi = x->sorted;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare_entries(&x->at[mid], &e, (void *)(uintptr_t)paths) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    /* Equal ones stand together: one that was removed and came back, one that is there twice. */
    for (; lo < x->sorted && compare_entries(&x->at[lo], &e, (void *)(uintptr_t)paths) == 0; lo++) {
        if (x->at[lo].kind & PLAN_DEAD)
            continue;
        x->at[lo].kind |= PLAN_DEAD;
        x->dead++;
        return;
    }
}

void plan_index_touched(plan_index *x, const plan_paths *paths, stet_pathref change, stet_change_kind kind,
                        plan_hit hit, void *ctx) {
    settle_if_long(x, paths);
    /* The prefixes of the changed path, from the root down to its parent. */
    for (size_t n = 0; x->sorted > 0 && n < change.len; n++) {
        if (n > 0 && change.bytes[n - 1] != 0)
            continue;
        stet_pathref prefix = {change.bytes, n};
        for (size_t i = lower_bound(x, paths, prefix); i < x->sorted; i++) {
            stet_pathref read = paths->list.at[x->at[i].path];
            if (read.len != n || memcmp(read.bytes, change.bytes, n) != 0)
                break;
            if (!(x->at[i].kind & PLAN_DEAD) && stet_touches(change, kind, read, (stet_read_kind)x->at[i].kind))
                hit(ctx, x->at[i].node);
        }
    }
    /* The path itself and everything below it: one range. */
    for (size_t i = lower_bound(x, paths, change); i < x->sorted; i++) {
        stet_pathref read = paths->list.at[x->at[i].path];
        if (!stet_path_is_prefix(change, read))
            break;
        if (!(x->at[i].kind & PLAN_DEAD) && stet_touches(change, kind, read, (stet_read_kind)x->at[i].kind))
            hit(ctx, x->at[i].node);
    }
    for (size_t i = x->sorted; i < x->len; i++)
        if (stet_touches(change, kind, paths->list.at[x->at[i].path], (stet_read_kind)x->at[i].kind))
            hit(ctx, x->at[i].node);
}

void plan_index_release(plan_index *x) {
    free(x->at);
    *x = (plan_index){0};
}
