/* batch.c - observations of runs that changed nothing.
 *
 * Such an observation needs no sync of its own: if it is lost, its action runs again. So observations wait here as
 * members of a group and are stored together: before the handle's next data commit, by stet_space_sync, before any question
 * about actions, when there are many, and at close. Each is validated then, and kept or dropped on its own. A dropped
 * one is not an error: its action keeps the mark it had.
 */

#include "memory/commit.h"
#include "memory/observe_internal.h"

#define BATCH_MAX 4096

/* Does the transaction carry an observation and nothing else? */
static bool only_observes(const stet_tx *tx) {
    if (!tx->observation || !stet_tx_empty(tx))
        return false;
    for (size_t i = 0; i < tx->docs.len; i++)
        if (tx->docs.at[i]->need_absent || tx->docs.at[i]->need_hash)
            return false;
    return true;
}

bool stet_observe_stale(const stet_tx *tx) {
    if (!only_observes(tx))
        return false;
    stet_observe_of(tx->space)->counts.dropped_noops++;
    return true;
}

bool stet_batch_take(stet_tx *tx) {
    stet_space *s = tx->space;
    /* Reads in other spaces need the handles of those spaces, which the caller may close. A session needs its answer
     * stored now. */
    if (tx->views.len > 1 || tx->session || tx->locked || tx->group || s->read_only || stet_observe_of(s)->off ||
        !only_observes(tx))
        return false;
    if (s->batch && (s->batch->branch != tx->branch || s->batch->members.len >= BATCH_MAX) &&
        stet_observe_sync(s, NULL) != STET_OK)
        return false;
    if (!s->batch) {
        s->batch = stet_alloc_zero(sizeof *s->batch);
        s->batch->space = s;
        s->batch->branch = tx->branch;
    }
    tx->ended = true;
    *stet_vec_add(&s->batch->members) = (stet_group_member){.tx = tx};
    return true;
}

stet_status stet_observe_sync(stet_space *s, stet_error *err) {
    stet_group *g = s->batch;
    if (!g || stet_db_in_transaction(s->db))
        return STET_OK;
    s->batch = NULL;
    stet_status st = stet_group_store(g, err);
    if (st != STET_OK) {
        s->batch = g;
        return st;
    }
    for (size_t i = 0; i < g->members.len; i++)
        if (g->members.at[i].outcome == STET_MEMBER_DROPPED)
            stet_observe_of(s)->counts.dropped_noops++;
    stet_group_end(g);
    return STET_OK;
}

stet_status stet_space_sync(stet_space *s, stet_error *err) {
    if (!s)
        return stet_fail_null(err);
    return stet_observe_sync(s, err);
}

void stet_batch_drop(stet_space *s) {
    stet_group_end(s->batch);
    s->batch = NULL;
}
