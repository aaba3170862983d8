/* observe_store.c - collects what a transaction does to actions, and writes it at the end of the transaction.
 *
 * That is: marks, observations and index rows. The scheduler's tables are written only by this file, observe_cache.c,
 * observe_index.c and, for the readers of other spaces, observe_mirror.c and observe_push.c.
 */

#include <stdlib.h>

#include "memory/observe_internal.h"

#define FORGET_OBSERVATION                                                                                             \
    "UPDATE action SET observation = NULL, sum = row_sum(action, branch, piece, generation, name, NULL)"               \
    " WHERE action = ?"

stet_pending *stet_observe_pending(stet_space *s, int64_t action, int64_t branch) {
    struct stet_observe *o = stet_observe_of(s);
    void **known = stet_blocks_at(&o->by_number, action, NULL);
    if (known && *known)
        return stet_observe_pending_of(s, *known);
    stet_slot *slot = stet_map_get(&o->pending_of, &action, sizeof action);
    if (slot)
        return &o->pending.at[slot->n - 1];
    *stet_vec_add(&o->pending) = (stet_pending){.action = action, .branch = branch};
    stet_map_put(&o->pending_of, &action, sizeof action, (stet_slot){.n = o->pending.len});
    return &o->pending.at[o->pending.len - 1];
}

stet_pending *stet_observe_pending_of(stet_space *s, stet_known_action *a) {
    struct stet_observe *o = stet_observe_of(s);
    if (a->pending_tx == o->tx)
        return &o->pending.at[a->pending];
    /* Earlier in the transaction the action may have been known by number alone. */
    stet_slot *slot = stet_map_len(&o->pending_of) ? stet_map_get(&o->pending_of, &a->action, sizeof a->action) : NULL;
    a->pending = slot ? slot->n - 1 : o->pending.len;
    a->pending_tx = o->tx;
    if (!slot)
        *stet_vec_add(&o->pending) = (stet_pending){.action = a->action, .branch = a->branch};
    o->pending.at[a->pending].known = a;
    return &o->pending.at[a->pending];
}

void stet_observe_mark(stet_space *s, int64_t action, int64_t branch, stet_action_state state, stet_reason reason,
                       int64_t seq, int64_t doc, const stet_change *change) {
    struct stet_observe *o = stet_observe_of(s);
    stet_pending *p = stet_observe_pending(s, action, branch);
    if (p->set && p->state == STET_STATE_UNKNOWN && state == STET_STATE_DIRTY)
        return; /* unknown is stricter */
    if (p->set && p->state == state && p->seq == seq)
        return; /* one cause per commit is enough */
    p->set = true;
    p->state = state;
    p->reason = reason;
    p->seq = seq;
    p->doc = doc;
    if (change) {
        p->path =
            (stet_pathref){stet_bytes_keep(&o->tx_arena, change->path.bytes, change->path.len).at, change->path.len};
        p->kind = change->kind;
    } else {
        p->path = STET_PATH_ROOT;
    }
}

void stet_observe_changes(stet_space *s, int64_t branch, int64_t seq, const stet_doc_change *at, size_t len,
                          int64_t except) {
    struct stet_observe *o = stet_observe_of(s);
    for (size_t i = 0; i < len; i++) {
        int64_t key = stet_space_key(branch, at[i].doc);
        for (size_t k = 0; k < at[i].len; k++) {
            stet_vec_clear(&o->scratch);
            stet_observe_writers_of(s, key, at[i].at[k].path, STET_WRITE_KNOWN, &o->scratch);
            for (size_t n = 0; n < o->scratch.len; n++)
                if (o->scratch.at[n] != except)
                    stet_observe_mark(s, o->scratch.at[n], branch, STET_STATE_DIRTY, STET_REASON_OVERWRITTEN, seq,
                                      at[i].doc, &at[i].at[k]);
            stet_vec_clear(&o->scratch);
            stet_observe_readers_of(s, key, &at[i].at[k], &o->scratch);
            for (size_t n = 0; n < o->scratch.len; n++)
                stet_observe_mark(s, o->scratch.at[n], branch, STET_STATE_DIRTY, STET_REASON_CHANGED, seq, at[i].doc,
                                  &at[i].at[k]);
        }
    }
    if (o->has_mirrors)
        stet_observe_owe(s, branch, seq, at, len);
}

static int by_action(const void *a, const void *b) {
    const stet_pending *x = a, *y = b;
    return x->action < y->action ? -1 : x->action > y->action;
}

/* Keeps the observation that is about to be replaced, and removes those that are too old by then. */
static void keep_past(stet_space *s, int64_t action) {
    int keep = stet_observe_of(s)->keep;
    if (keep < 2)
        return;
    stet_stmt *q = stet_db_stmt(
        s->db,
        "INSERT INTO past_observation(action, number, generation, observation, sum)"
        " SELECT a.action, n, a.generation, a.observation, row_sum(a.action, n, a.generation, a.observation) FROM"
        " action a, (SELECT 1 + coalesce(max(number), 0) AS n FROM past_observation WHERE action = ?1)"
        " WHERE a.action = ?1 AND a.observation IS NOT NULL"
        " AND a.sum = row_sum(a.action, a.branch, a.piece, a.generation, a.name, a.observation)");
    stet_bind_int(q, 1, action);
    stet_run(q);
    q = stet_db_stmt(s->db, "DELETE FROM past_observation WHERE action = ?1 AND number <="
                            " (SELECT max(p.number) FROM past_observation p WHERE p.action = ?1) - ?2");
    stet_bind_int(q, 1, action);
    stet_bind_int(q, 2, keep - 1);
    stet_run(q);
}

void stet_observe_write(stet_space *s, const stet_pending *p) {
    if (p->known && p->known->unborn) {
        stet_observe_insert_action(s, p->known, p->generation, p->blob);
        return;
    }
    if (!p->store)
        return;
    keep_past(s, p->action);
    /* The identity comes from the cache, which found the row by name: if the row says otherwise, the checksum shows
     * it. */
    const stet_known_action *a = p->known;
    stet_stmt *q = a ? stet_db_stmt(s->db, "UPDATE action SET generation = ?1, observation = ?2, sum ="
                                           " row_sum(action, ?4, ?5, ?1, name, ?2) WHERE action = ?3")
                     : stet_db_stmt(s->db, "UPDATE action SET generation = ?1, observation = ?2, sum = row_sum(action,"
                                           " branch, piece, ?1, name, ?2) WHERE action = ?3");
    stet_bind_int(q, 1, p->generation);
    stet_bind_blob(q, 2, p->blob.at, p->blob.len);
    stet_bind_int(q, 3, p->action);
    if (a) {
        stet_bind_int(q, 4, a->branch);
        stet_bind_int(q, 5, a->piece);
    }
    stet_run(q);
}

static void add_runs(stet_space *s, int64_t reason, int64_t runs) {
    if (runs == 0)
        return;
    stet_stmt *q = stet_db_stmt(s->db, "INSERT INTO space_meta(name, value) VALUES('runs:' || ?, ?)"
                                       " ON CONFLICT(name) DO UPDATE SET value = value + excluded.value");
    stet_bind_int(q, 1, reason);
    stet_bind_int(q, 2, runs);
    stet_run(q);
}

enum { STOOD = -1 }; /* among the counts of runs by reason */

static void count_runs(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    for (size_t i = 0; i < STET_REASONS; i++) {
        add_runs(s, (int64_t)i, o->now.runs[i] - o->written[i]);
        o->written[i] = o->now.runs[i];
    }
    add_runs(s, STOOD, o->stood);
    o->stood = 0;
}

void stet_observe_save_stood(stet_space *s) {
    struct stet_observe *o = s->observe;
    bool begun;
    if (!o || o->off || !o->stood || !o->counts.stored || stet_db_in_transaction(s->db) ||
        stet_observe_begin(s, &begun, NULL) != STET_OK)
        return;
    if (stet_observe_end(s, begun, NULL) != STET_OK)
        o->stood = 0; /* only a count */
}

/* The stamp of marks that are set now. All surveys end if some action reads more than before, or if its reads are
 * unknown. */
static int64_t stamp_now(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    bool doubt = o->reads_more;
    for (size_t i = 0; i < o->pending.len && !doubt; i++)
        doubt = o->pending.at[i].set && o->pending.at[i].state == STET_STATE_UNKNOWN;
    if (doubt)
        stet_observe_drop_surveys(s);
    return doubt || (!o->pending.len && !o->removed) ? 0 : stet_observe_stamp(s);
}

typedef struct pending_walk {
    const stet_pending *at, *end;
    int64_t stamp;
    int64_t digest; /* of the marks that were added and of those that were removed */
} pending_walk;

static bool next_born(void *ctx, stet_row *out) {
    pending_walk *w = ctx;
    while (w->at < w->end && !(w->at->known && w->at->known->unborn))
        w->at++;
    if (w->at == w->end)
        return false;
    const stet_pending *p = w->at++;
    const stet_known_action *a = p->known;
    stet_row_int(out, 0, a->action);
    stet_row_int(out, 1, a->branch);
    stet_row_int(out, 2, a->piece);
    stet_row_int(out, 3, p->generation);
    stet_row_text(out, 4, a->unborn, strlen(a->unborn));
    if (p->blob.at)
        stet_row_blob(out, 5, p->blob.at, p->blob.len);
    else
        stet_row_null(out, 5);
    stet_row_sum(out, 6);
    return true;
}

static bool next_mark(void *ctx, stet_row *out) {
    pending_walk *w = ctx;
    while (w->at < w->end && (!w->at->set || w->at->kept))
        w->at++;
    if (w->at == w->end)
        return false;
    const stet_pending *p = w->at++;
    stet_row_int(out, 0, p->action);
    stet_row_int(out, 1, 0);
    stet_row_int(out, 2, p->branch);
    stet_row_int(out, 3, p->state);
    stet_row_int(out, 4, p->reason);
    stet_row_int(out, 5, p->seq);
    if (p->doc)
        stet_row_int(out, 6, p->doc);
    else
        stet_row_null(out, 6);
    stet_row_null(out, 7);
    stet_row_null(out, 8);
    stet_row_blob(out, 9, p->path.bytes, p->path.len);
    stet_row_int(out, 10, p->kind);
    stet_row_int(out, 11, p->stamp < 0 ? w->stamp : p->stamp); /* a mark that exists keeps its stamp */
    w->digest = stet_digest_add(w->digest, 1, stet_fields_sum(out->at, 12));
    return true;
}

/* Writes rows of actions, and observations; new ones in one statement. */
static void write_actions(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    size_t unborn = 0;
    for (size_t i = 0; i < o->pending.len; i++) {
        const stet_pending *p = &o->pending.at[i];
        if (p->known && p->known->unborn)
            unborn++;
        else
            stet_observe_write(s, p);
    }
    pending_walk w = {o->pending.at, o->pending.at + o->pending.len, 0, 0};
    if (unborn)
        stet_observe_begin_places(s);
    if (unborn)
        stet_db_rows(s->db, "INSERT OR FAIL INTO action(" STET_ACTION_COLUMNS ") SELECT a, b, c, d, e, f, g FROM given",
                     next_born, &w);
    if (unborn)
        stet_observe_digest(s, STET_DIGEST_ACTION, (int64_t)unborn, 0);
    for (size_t i = 0; i < o->pending.len && unborn; i++)
        if (o->pending.at[i].known)
            o->pending.at[i].known->unborn = NULL;
}

static void write_marks(stet_space *s, int64_t stamp) {
    struct stet_observe *o = stet_observe_of(s);
    size_t set = 0;
    pending_walk w = {o->pending.at, o->pending.at + o->pending.len, stamp, 0};
    for (size_t i = 0; i < o->pending.len; i++) {
        stet_pending *p = &o->pending.at[i];
        stet_known_action *a = p->known;
        stet_old_mark old;
        bool may_be = (p->set || p->clear) && (!a || a->marked || (p->set && p->clear));
        bool there = may_be && stet_observe_old_mark(s, p->action, 0, &old);
        p->kept = there && !p->clear && p->set && old.state > (int64_t)p->state;
        p->stamp = there && !p->clear ? old.stamp : -1;
        if (there && !p->kept) /* it is removed or replaced */
            w.digest = stet_digest_add(w.digest, -1, old.sum);
        if (there && p->clear) {
            stet_stmt *q = stet_db_stmt(s->db, "DELETE FROM mark WHERE action = ? AND space = 0");
            stet_bind_int(q, 1, p->action);
            stet_run(q);
            o->now.marks_cleared++;
        }
        if (p->clear && a && !p->set)
            a->marked = a->foreign_marked;
        if (!p->set)
            continue;
        set++;
        if (a && (!a->marked || p->clear || p->state == STET_STATE_UNKNOWN || a->reason < STET_REASON_NEVER))
            a->reason = p->reason; /* an unknown action stays unknown, for the same reason */
        if (a)
            a->marked = true;
    }
    if (set)
        stet_db_rows(s->db,
                     "INSERT OR REPLACE INTO mark(" STET_MARK_COLUMNS ")"
                     " SELECT a, b, c, d, e, f, g, h, i, j, k, l FROM given",
                     next_mark, &w);
    if (w.digest)
        stet_observe_digest(s, STET_DIGEST_MARK, w.digest >> 32, w.digest);
    o->now.marks_set += (int64_t)set;
    o->marked += (int64_t)set;
}

void stet_observe_flush(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    int64_t stamp = stamp_now(s);
    stet_observe_write_rows(s);
    stet_sort(o->pending.at, o->pending.len, sizeof *o->pending.at, by_action);
    write_actions(s);
    write_marks(s, stamp);
    count_runs(s);
    stet_observe_drop_pending(s);
}

void stet_observe_remove(stet_space *s, int64_t action, bool row_too) {
    stet_stmt *q = stet_db_stmt(s->db, "SELECT branch, piece, name FROM action WHERE action = ?");
    stet_bind_int(q, 1, action);
    int64_t branch = 0, piece = 0;
    char *name = NULL;
    while (stet_step(q)) {
        size_t len;
        branch = stet_column_int(q, 0);
        piece = stet_column_int(q, 1);
        const char *text = stet_column_text(q, 2, &len);
        name = stet_strndup(text, len);
    }
    if (!name)
        return;
    stet_known_action *a = stet_observe_action(s, branch, piece, name, false);
    free(name);
    if (!a)
        return;
    stet_bytes none = {"", 0};
    stet_observe_reindex(s, a, none, none, none, none);
    stet_observe_drop_marks(s, action, -1);
    static const char *const statements[] = {"DELETE FROM past_observation WHERE action = ?", FORGET_OBSERVATION,
                                             "DELETE FROM action WHERE action = ?"};
    for (size_t i = 0; i < (row_too ? 3u : 2u); i++) {
        q = stet_db_stmt(s->db, statements[i]);
        stet_bind_int(q, 1, action);
        stet_run(q);
    }
    if (row_too)
        stet_observe_digest(s, STET_DIGEST_ACTION, -1, 0);
    stet_observe_leave_all(s, action);
    a->observed = a->marked = false;
    stet_observe_of(s)->removed = true;
    if (row_too)
        stet_observe_of(s)->fresh = false; /* the number may be given again: empty the cache */
}

stet_status stet_observe_begin(stet_space *s, bool *begun, stet_error *err) {
    *begun = !stet_db_in_transaction(s->db);
    if (*begun) {
        stet_status st = stet_db_begin_write(s->db, err);
        if (st != STET_OK)
            return st;
    }
    stet_observe_fresh(s);
    return STET_OK;
}

stet_status stet_observe_end(stet_space *s, bool begun, stet_error *err) {
    stet_observe_flush(s);
    if (!begun)
        return stet_db_status(s->db, err);
    stet_status st = stet_db_commit(s->db, err);
    stet_observe_done(s, st == STET_OK);
    return st;
}
