/* strategy.c - which entries the default strategy removes.
 *
 * Ties in time are broken by the key, so that every machine decides alike. */

#include <stdlib.h>
#include <string.h>

#include "persist/persist.h"

stet_status stet_persist_strategy_none(void *ctx, stet_persist_item *items, size_t count, uint64_t now,
                                       stet_error *err) {
    (void)ctx, (void)items, (void)count, (void)now, (void)err;
    return STET_OK;
}

static int compare_blocks(const stet_persist_item *a, const stet_persist_item *b) {
    size_t n = a->block_len < b->block_len ? a->block_len : b->block_len;
    int c = memcmp(a->block_id, b->block_id, n);
    return c ? c : (a->block_len > b->block_len) - (a->block_len < b->block_len);
}

static int compare_modules(const stet_persist_item *a, const stet_persist_item *b) {
    return memcmp(a->module_hash, b->module_hash, STET_PERSIST_HASH);
}

static int newest_first(const stet_persist_item *a, const stet_persist_item *b) {
    return (a->created_at < b->created_at) - (a->created_at > b->created_at);
}

static int by_block(const void *x, const void *y) {
    const stet_persist_item *a = *(stet_persist_item *const *)x, *b = *(stet_persist_item *const *)y;
    int c = compare_blocks(a, b);
    if (!c)
        c = newest_first(a, b);
    return c ? c : compare_modules(a, b);
}

static int by_module(const void *x, const void *y) {
    const stet_persist_item *a = *(stet_persist_item *const *)x, *b = *(stet_persist_item *const *)y;
    int c = compare_modules(a, b);
    if (!c)
        c = newest_first(a, b);
    return c ? c : compare_blocks(a, b);
}

static int oldest_first(const void *x, const void *y) {
    const stet_persist_item *a = *(stet_persist_item *const *)x, *b = *(stet_persist_item *const *)y;
    int c = newest_first(b, a);
    if (!c)
        c = compare_blocks(a, b);
    return c ? c : compare_modules(a, b);
}

/* Keeps the first `limit` entries of each group. Entries of calls are not counted: switching back and forth between
 * versions of a computation must find all of them. */
static void limit_groups(stet_persist_item **order, size_t count, int64_t limit,
                         int (*same)(const stet_persist_item *, const stet_persist_item *)) {
    int64_t seen = 0;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || same(order[i - 1], order[i]) != 0)
            seen = 0;
        if (!order[i]->is_call && ++seen > limit)
            order[i]->remove = true;
    }
}

/* Removes the oldest entries first, and the latest entry of a block only if that is not enough. */
static void limit_size(stet_persist_item **order, size_t count, uint64_t limit) {
    uint64_t total = 0;
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (!order[i]->remove || order[i]->keep) {
            total = order[i]->size > UINT64_MAX - total ? UINT64_MAX : total + order[i]->size;
            order[n++] = order[i];
        }
    if (total <= limit)
        return;
    /* In this order (by block, newest first) the first of each group is the latest of its block. */
    qsort(order, n, sizeof *order, by_block);
    bool *latest = stet_alloc_zero(n + 1);
    stet_persist_item **sorted = stet_alloc(n * sizeof *sorted);
    memcpy(sorted, order, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, oldest_first);

    for (size_t i = 0; i < n; i++) {
        if (i > 0 && compare_blocks(order[i - 1], order[i]) == 0)
            continue;
        stet_persist_item **at = bsearch(&order[i], sorted, n, sizeof *sorted, oldest_first);
        latest[at - sorted] = true;
    }
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < n && total > limit; i++)
            if (latest[i] == (pass == 1) && !sorted[i]->keep) {
                sorted[i]->remove = true;
                total -= sorted[i]->size < total ? sorted[i]->size : total;
            }
    stet_free(latest);
    stet_free(sorted);
}

stet_status stet_persist_strategy_default(void *ctx, stet_persist_item *items, size_t count, uint64_t now,
                                          stet_error *err) {
    const stet_persist_limits *l = ctx;
    stet_status status = stet_persist_limits_check(l, err);
    if (status != STET_OK || !count)
        return status;
    stet_persist_item **order = stet_alloc(count * sizeof *order);
    for (size_t i = 0; i < count; i++)
        order[i] = &items[i];
    if (l->max_entries_per_block > 0) {
        qsort(order, count, sizeof *order, by_block);
        limit_groups(order, count, l->max_entries_per_block, compare_blocks);
    }
    if (l->max_entries_per_module > 0) {
        qsort(order, count, sizeof *order, by_module);
        limit_groups(order, count, l->max_entries_per_module, compare_modules);
    }
    if (l->max_entry_age_days > 0) {
        uint64_t age = (uint64_t)l->max_entry_age_days > UINT64_MAX / 86400000
                           ? UINT64_MAX
                           : (uint64_t)l->max_entry_age_days * 86400000;
        for (size_t i = 0; i < count; i++)
            if (now > age && items[i].created_at < now - age)
                items[i].remove = true;
    }
    if (l->max_total_content_size > 0)
        limit_size(order, count, (uint64_t)l->max_total_content_size);
    stet_free(order);
    return STET_OK;
}
