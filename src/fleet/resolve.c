/* resolve.c - which failed runs were mended by later ones.
 *
 * A failed run is resolved by the first run that completed after it, in the same project, and that
 *   1. repeats it, or repeats the same first run; or
 *   2. is of the same piece, with the same argument and the same demand; or
 *   3. is of the whole piece, if both ran with the argument of the piece itself.
 * 2 and 3 are for runs with an open failure. This is derived whenever runs are looked at. The files of the failed run stay as they are.
 */

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "fleet/registry.h"

/* Newest end first; runs that ended at the same time in the reverse of their order. */
static int by_end(const void *a, const void *b) {
    const stet_fleet_record *x = *(stet_fleet_record *const *)a, *y = *(stet_fleet_record *const *)b;
    if (x->updated_ms != y->updated_ms)
        return x->updated_ms < y->updated_ms ? 1 : -1;
    return -stet_fleet_record_compare(x, y);
}

typedef struct keys {
    stet_buf at[3];
} keys;

static const char *origin_of(const stet_fleet_record *r) {
    return r->provenance.generation > 0 && r->provenance.origin_run_id[0] != 0 ? r->provenance.origin_run_id : r->id;
}

static void keys_of(const stet_fleet_record *r, keys *k) {
    const char *const parts[] = {origin_of(r), r->work, r->place};
    for (size_t i = 0; i < 3; i++) {
        stet_buf_clear(&k->at[i]);
        if (*parts[i])
            stet_buf_printf(&k->at[i], "%zu %u %s", i, r->repo_index, parts[i]);
    }
}

void stet_registry_resolve(stet_registry *reg) {
    stet_fleet_records ended = {0};
    bool any = false;
    for (size_t i = 0; i < reg->records.len; i++) {
        stet_fleet_record *r = reg->records.at[i];
        any = any || r->under == STET_LIFE_FAILED;
        if (r->under == STET_LIFE_FAILED || r->under == STET_LIFE_COMPLETED)
            *stet_vec_add(&ended) = r;
    }
    if (any && ended.len > 1)
        qsort(ended.at, ended.len, sizeof *ended.at, by_end);
    stet_map first = {0}; /* the first of those that completed after the run that is looked at, by key */
    keys k = {{STET_BUF(0), STET_BUF(0), STET_BUF(0)}};
    for (size_t i = 0; any && i < ended.len; i++) {
        stet_fleet_record *r = ended.at[i];
        const stet_fleet_record *best = NULL;
        keys_of(r, &k);
        for (size_t n = 0; n < 3; n++) {
            /* One that was cancelled has no open failure; only a repetition is the run that it was to be. */
            if (k.at[n].len == 0 || (n > 0 && r->derived == STET_LIFE_FAILED))
                continue;
            if (r->under == STET_LIFE_COMPLETED) {
                if (n < 2 || r->part == 0)
                    stet_map_put(&first, k.at[n].data, k.at[n].len, (stet_slot){.p = r});
                continue;
            }
            const stet_slot *slot = stet_map_get(&first, k.at[n].data, k.at[n].len);
            const stet_fleet_record *by = slot ? slot->p : NULL;
            if (by && (!best || by->updated_ms < best->updated_ms))
                best = by;
        }
        if (!best)
            continue;
        r->resolved_by = best->id;
        r->under = STET_LIFE_RESOLVED;
        if (!r->archived)
            r->lifecycle = STET_LIFE_RESOLVED;
    }
    for (size_t n = 0; n < 3; n++)
        stet_buf_release(&k.at[n]);
    stet_map_release(&first);
    stet_vec_release(&ended);
}
