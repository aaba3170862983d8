/* plan_index.h - who reads and who writes a document, by path. Private to the planner.
 *
 * Each document has a vector of (path, node, kind), sorted by path except for a short tail. A change finds what it
 * touches by looking up each prefix of its path and the range below it. Paths are interned: comparing two compares
 * pointers first.
 */
#ifndef STET_SCHEDULER_PLAN_INDEX_H
#define STET_SCHEDULER_PLAN_INDEX_H

#include "base/change.h"
#include "base/map.h"

typedef struct plan_paths {
    stet_map map;
    struct {
        stet_pathref *at;
        size_t len, cap;
    } list;
    stet_arena arena;
} plan_paths;

uint32_t plan_path(plan_paths *p, stet_pathref path);
void plan_paths_release(plan_paths *p);

typedef struct plan_entry {
    uint32_t path;
    uint32_t node;
    uint32_t kind; /* stet_read_kind; PLAN_DEAD: removed, but kept in its place until the next sort */
} plan_entry;
#define PLAN_DEAD 0x80000000u

typedef struct plan_index {
    plan_entry *at; /* most documents have one or two entries, so it starts small */
    uint32_t len, cap;
    uint32_t sorted; /* at[0, sorted) is in order */
    uint32_t dead;
} plan_index;

void plan_index_add(plan_index *x, uint32_t path, uint32_t node, uint32_t kind);
void plan_index_remove(plan_index *x, const plan_paths *paths, uint32_t path, uint32_t node, uint32_t kind);
/* Calls `hit` for every entry that a changed leaf touches. `hit` must not change the index. */
typedef void (*plan_hit)(void *ctx, uint32_t node);
void plan_index_touched(plan_index *x, const plan_paths *paths, stet_pathref change, stet_change_kind kind,
                        plan_hit hit, void *ctx);
void plan_index_release(plan_index *x);

#endif
