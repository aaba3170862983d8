/* group.c - groups of transactions: the overlay, and committing one or many. */
#include "memory/commit.h"
#include "memory/observe_internal.h"

#define NAME_KEY (2 * STET_ID_MAX + 2)

static size_t name_key(const stet_docname *name, char out[NAME_KEY]) {
    size_t id_len = strlen(name->id), scope_len = strlen(name->scope);
    memcpy(out, name->id, id_len + 1);
    memcpy(out + id_len + 1, name->scope, scope_len);
    return id_len + 1 + scope_len;
}

stet_overlay_doc *stet_group_find(const stet_group *g, const stet_docname *name) {
    char key[NAME_KEY];
    stet_slot *slot = stet_map_get(&g->overlay, key, name_key(name, key));
    return slot ? slot->p : NULL;
}

static void clear_overlay(stet_group *g) {
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&g->overlay, &i, &key, &len, &slot);) {
        stet_overlay_doc *o = slot->p; /* in the memory of the group, like everything except the value */
        stet_value_release(o->value);
    }
    stet_map_clear(&g->overlay);
}

void stet_group_member_clear(stet_group_member *m) {
    if (!m->error)
        return;
    stet_error_clear(m->error);
    free(m->error);
    m->error = NULL;
}

static void clear_members(stet_group *g) {
    for (size_t i = 0; i < g->members.len; i++) {
        stet_group_member_clear(&g->members.at[i]);
        stet_tx_free(g->members.at[i].tx);
    }
    stet_vec_clear(&g->members);
    g->flushed = false;
    g->ground = NULL; /* it was in one of them */
}

bool stet_group_overlay(stet_group *g, stet_tx_doc *d) {
    d->seen_members = g->flushed ? 0 : g->members.len;
    stet_overlay_doc *o = stet_group_find(g, &d->name);
    if (!o)
        return false;
    d->overlay = o;
    d->doc = o->doc;
    d->before_exists = d->after_exists = o->exists;
    d->before = stet_value_retain(o->value);
    d->after = stet_value_retain(o->value);
    return true;
}

stet_group *stet_group_forget(stet_tx *tx) {
    stet_group *g = tx->group;
    if (!g)
        return NULL;
    *(tx->prev ? &tx->prev->next : &g->live) = tx->next;
    if (tx->next)
        tx->next->prev = tx->prev;
    tx->group = NULL;
    return g;
}

const stet_change *stet_space_compare(stet_space *s, bool before_exists, stet_value before, bool after_exists,
                                      stet_value after, stet_arena *arena, size_t *count) {
    stet_vec_clear(&s->leaves);
    stet_changes_between(before_exists ? &before : NULL, after_exists ? &after : NULL, STET_CHANGES_MAX, arena,
                         &s->leaves);
    *count = s->leaves.len;
    return stet_arena_dup(arena, s->leaves.at, s->leaves.len * sizeof *s->leaves.at);
}

const stet_change *stet_tx_doc_changes(stet_tx *tx, stet_tx_doc *d, size_t *count) {
    if (!d->changes_known) {
        d->changes = stet_space_compare(tx->space, d->before_exists, d->before, d->after_exists, d->after, tx->arena,
                                        &d->change_count);
        d->changes_known = true;
    }
    *count = d->change_count;
    return d->changes;
}

bool stet_reads_touched(const stet_tx_doc *d, const stet_change *at, size_t len, size_t which[2]) {
    for (size_t i = 0; i < d->reads.len; i++)
        for (size_t j = 0; j < len; j++)
            if (stet_touches(at[j].path, at[j].kind, d->reads.at[i].path, d->reads.at[i].kind)) {
                which[0] = i;
                which[1] = j;
                return true;
            }
    return false;
}

stet_status stet_group_begin(stet_space *s, const char *branch, stet_group **out, stet_error *err) {
    int64_t number;
    stet_status st = stet_space_branch(s, branch, &number, err);
    if (st == STET_OK)
        st = stet_space_refresh(s, err);
    if (st != STET_OK)
        return st;
    stet_group *g = stet_alloc_zero(sizeof *g);
    g->space = s;
    g->branch = number;
    g->snapshot = s->known;
    g->memory = stet_tx_memory_new(g);
    *out = g;
    return STET_OK;
}

stet_status stet_tx_begin_in(stet_group *g, stet_tx **out, stet_error *err) {
    stet_status st = stet_db_status(g->space->db, err);
    if (st != STET_OK)
        return st;
    g->memory->users++;
    stet_tx *tx = stet_tx_new(g->space, g->branch, g->snapshot, g, g->memory);
    tx->next = g->live;
    if (g->live)
        g->live->prev = tx;
    g->live = tx;
    *out = tx;
    return STET_OK;
}

/* Did a member that was added after the transaction read a document change what it read there? */
static stet_status check_overlay(stet_group *g, stet_tx *tx, stet_error *err) {
    for (size_t i = 0; i < tx->docs.len; i++) {
        stet_tx_doc *d = tx->docs.at[i];
        if (d->space != g->space || d->reads.len == 0 || d->seen_members == g->members.len)
            continue;
        stet_overlay_doc *o = stet_group_find(g, &d->name);
        for (size_t j = o ? o->members.len : 0; j-- > 0 && o->members.at[j] >= d->seen_members;) {
            stet_tx *other = g->members.at[o->members.at[j]].tx;
            stet_tx_doc *written = stet_tx_find(other, 0, &d->name);
            size_t which[2], n;
            const stet_change *c = stet_tx_doc_changes(other, written, &n);
            if (stet_reads_touched(d, c, n, which))
                return stet_fail(err, STET_CONFLICT, "document \"%s\": changed in the group after it was read",
                                 d->name.id);
        }
    }
    return STET_OK;
}

/* Applies the writes of a transaction to the document as the group has changed it meanwhile. */
static stet_status rebase_doc(stet_tx *tx, stet_tx_doc *d, const stet_overlay_doc *o, stet_error *err) {
    if (!o || (o->exists == d->before_exists && stet_same_value(o->value, d->before)))
        return STET_OK;
    bool exists;
    stet_value after;
    stet_status st = stet_tx_doc_apply(d, o->exists, o->value, &exists, &after, err);
    if (st != STET_OK)
        return st;
    stet_value_release(d->before);
    stet_value_release(d->after);
    d->before_exists = o->exists;
    d->before = stet_value_retain(o->value);
    d->after_exists = exists;
    d->after = after;
    d->changes_known = false;
    (void)tx;
    return STET_OK;
}

static void advance_overlay(stet_group *g, size_t member, stet_tx_doc *d) {
    stet_overlay_doc *o = d->overlay;
    if (!o && d->seen_members != g->members.len)
        o = stet_group_find(g, &d->name); /* it was added after this transaction looked */
    if (!o) {
        char key[NAME_KEY];
        size_t len = name_key(&d->name, key);
        o = stet_arena_zero(&g->memory->arena, sizeof *o);
        o->doc = d->doc;
        stet_map_put(&g->overlay, key, len, (stet_slot){.p = o});
    }
    d->overlay = o;
    stet_value_release(o->value);
    o->exists = d->after_exists;
    o->value = stet_value_retain(d->after);
    *stet_arena_add(&g->memory->arena, &o->members) = member;
}

stet_status stet_group_add(stet_group *g, stet_tx *tx, const stet_doc_change **changes, size_t *count,
                           stet_error *err) {
    if (!g || tx->group != g)
        return stet_fail(err, STET_CONFLICT, "the group of the transaction has ended");
    stet_tx_withhold(tx);
    if (g->flushed)
        clear_members(g);
    if (tx->doomed)
        return stet_fail(err, tx->why->status, "%s", tx->why->message);
    if (g->members.len == STET_GROUP_MAX)
        return stet_fail(err, STET_LIMIT, "a group has at most %d members", STET_GROUP_MAX);
    stet_status st = check_overlay(g, tx, err);
    size_t written = 0;
    for (size_t i = 0; i < tx->docs.len && st == STET_OK; i++) {
        stet_tx_doc *d = tx->docs.at[i];
        if (d->write == STET_TX_NONE)
            continue;
        written++;
        if (d->seen_members != g->members.len)
            st = rebase_doc(tx, d, stet_group_find(g, &d->name), err);
    }
    if (st != STET_OK)
        return st;
    stet_doc_change *list = stet_arena_alloc(tx->arena, (written + 1) * sizeof *list);
    size_t n = 0;
    for (size_t i = 0; i < tx->docs.len; i++) {
        stet_tx_doc *d = tx->docs.at[i];
        size_t leaves = 0;
        const stet_change *c = d->write == STET_TX_NONE ? NULL : stet_tx_doc_changes(tx, d, &leaves);
        if (leaves == 0)
            continue;
        advance_overlay(g, g->members.len, d);
        list[n++] =
            (stet_doc_change){d->doc, d->name, d->after_exists ? STET_REVISION_SET : STET_REVISION_DELETE, c, leaves};
    }
    stet_group_forget(tx);
    tx->ended = true;
    *stet_vec_add(&g->members) = (stet_group_member){.tx = tx, .changes = list, .change_count = n};
    if (changes) {
        *changes = list;
        *count = n;
    }
    return STET_OK;
}

size_t stet_group_len(const stet_group *g) {
    return g->members.len;
}

/* An unfinished transaction saw the snapshot and `seen` members of the overlay. Those members are now commits, above
 * those that others made meanwhile. Gives the transaction the sequence that it saw, or makes it void if what it saw was
 * not stored that way. */
static void move_live(stet_group *g, stet_tx *tx, const int64_t *after, int64_t before_flush) {
    for (size_t i = 0; i < tx->docs.len && !tx->doomed; i++) {
        stet_tx_doc *d = tx->docs.at[i];
        d->overlay = NULL;
        if (d->space != g->space || d->seen_members == 0)
            continue;
        for (size_t m = 0; m < d->seen_members; m++)
            if (g->members.at[m].outcome == STET_MEMBER_DROPPED || g->members.at[m].moved)
                tx->doomed = true;
        /* Others committed too, which is not told apart here: the transaction starts again. */
        if (before_flush > g->snapshot && d->reads.len)
            tx->doomed = true;
        d->seen = after[d->seen_members - 1];
        d->seen_members = 0;
    }
    if (tx->doomed && !tx->why) {
        tx->why = stet_alloc_zero(sizeof *tx->why);
        stet_fail(tx->why, STET_CONFLICT,
                  "the group was stored while the transaction ran, and what it read was not as read");
    }
}

stet_status stet_group_flush(stet_group *g, stet_error *err) {
    if (g->flushed)
        clear_members(g);
    stet_status st = stet_group_store(g, err);
    if (st != STET_OK)
        return st;
    int64_t *after = stet_alloc((g->members.len + 1) * sizeof *after), first = g->space->known, last;
    for (size_t i = 0; i < g->members.len; i++)
        if (g->members.at[i].outcome == STET_MEMBER_APPLIED && g->members.at[i].result.changed &&
            !g->members.at[i].result.replayed) {
            first = g->members.at[i].result.seq - 1;
            break;
        }
    last = first;
    for (size_t i = 0; i < g->members.len; i++) {
        const stet_group_member *m = &g->members.at[i];
        if (m->outcome == STET_MEMBER_APPLIED && m->result.changed && !m->result.replayed)
            last = m->result.seq;
        after[i] = last;
    }
    for (stet_tx *tx = g->live; tx; tx = tx->next)
        move_live(g, tx, after, first);
    free(after);
    clear_overlay(g);
    stet_tx_memory_leave(g->memory); /* freed with the last of its transactions */
    g->memory = stet_tx_memory_new(g);
    g->snapshot = g->space->known;
    g->flushed = true;
    return STET_OK;
}

void stet_group_at(const stet_group *g, size_t index, stet_member *out) {
    assert(index < g->members.len);
    const stet_group_member *m = &g->members.at[index];
    *out = (stet_member){.outcome = m->outcome,
                         .result = m->result,
                         .error = m->error,
                         .changes = m->changes,
                         .change_count = m->change_count,
                         .tx = m->tx,
                         .observation = m->tx->observation};
}

void stet_group_end(stet_group *g) {
    if (!g)
        return;
    g->ended = true;
    stet_group_leave(g);
}

void stet_group_leave(stet_group *g) {
    if (!g || !g->ended || g->live)
        return;
    clear_members(g);
    clear_overlay(g);
    stet_vec_release(&g->members);
    stet_map_release(&g->overlay);
    if (g->memory) /* a batch has no memory of its own: its transactions bring theirs */
        stet_tx_memory_leave(g->memory);
    if (g->spare) {
        stet_arena_release(&g->spare->arena);
        free(g->spare);
    }
    free(g);
}

static bool only_reads(const stet_tx *tx) {
    for (size_t i = 0; i < tx->docs.len; i++) {
        const stet_tx_doc *d = tx->docs.at[i];
        if (d->write != STET_TX_NONE || d->need_absent || d->need_hash)
            return false;
    }
    return !tx->session && !tx->observation && !tx->turnover;
}

/* A transaction that read other spaces takes its locks in the order of the spaces, so it can't keep the lock it has. */
static void drop_early_lock(stet_tx *tx) {
    if (tx->locked && tx->views.len > 1)
        stet_db_rollback(tx->space->db);
}

stet_status stet_tx_commit(stet_tx *tx, stet_commit_result *result, stet_error *err) {
    if (!tx)
        return stet_fail_null(err);
    stet_status st = STET_OK;
    stet_commit_result r = {0};
    stet_tx_withhold(tx);
    if (tx->group) {
        st = stet_fail(err, STET_INVALID, "a transaction of a group is added to it, not committed alone");
        stet_tx_abort(tx);
        return st;
    } else if (only_reads(tx)) { /* its reads are one consistent state already */
        r.seq = tx->views.at[0].snapshot;
        if (tx->locked)
            stet_db_rollback(tx->space->db);
    } else if (stet_batch_take(tx)) {
        if (result)
            *result = (stet_commit_result){tx->views.at[0].snapshot, false, false};
        return STET_OK;
    } else {
        drop_early_lock(tx);
        stet_group_member m = {.tx = tx};
        stet_group g = {.space = tx->space, .branch = tx->branch, .snapshot = tx->views.at[0].snapshot};
        g.members.at = &m;
        g.members.len = g.members.cap = 1;
        st = stet_group_store(&g, err);
        if (st == STET_OK && m.outcome == STET_MEMBER_DROPPED) {
            st = m.error->status;
            if (m.stale && stet_observe_stale(tx))
                st = STET_OK; /* nothing was to be changed: an observation out of date is dropped, as in a batch */
            else
                stet_error_move(err, m.error);
        }
        stet_group_member_clear(&m);
        r = m.result;
    }
    stet_tx_free(tx);
    if (st == STET_OK && result)
        *result = r;
    return st;
}

stet_status stet_space_transact(stet_space *s, const char *branch,
                                stet_status (*fn)(stet_tx *tx, void *ctx, stet_error *err), void *ctx,
                                stet_commit_result *result, stet_error *err) {
    if (!s || !fn)
        return stet_fail_null(err);
    enum { FREE_ATTEMPTS = 3, ATTEMPTS = 1000 };
    for (int attempt = 0;; attempt++) {
        stet_error mine = STET_ERROR_INIT;
        bool lock = attempt >= FREE_ATTEMPTS && !s->read_only && !stet_db_in_transaction(s->db);
        stet_status st = lock ? stet_db_begin_write(s->db, &mine) : STET_OK;
        stet_tx *tx = NULL;
        bool alone = false; /* nobody can have come between: a conflict is one that stays (a precondition) */
        if (st == STET_OK) {
            st = stet_tx_begin(s, branch, &tx, &mine);
            if (st != STET_OK && lock)
                stet_db_rollback(s->db);
        }
        if (st == STET_OK) {
            tx->locked = lock;
            st = fn(tx, ctx, &mine);
            alone = lock && tx->views.len == 1;
            if (st == STET_OK) {
                st = stet_tx_commit(tx, result, &mine);
            } else {
                if (lock)
                    stet_db_rollback(s->db);
                stet_tx_abort(tx);
            }
        }
        if (st != STET_CONFLICT || alone || attempt == ATTEMPTS) {
            if (st != STET_OK && mine.status == STET_OK)
                stet_fail(&mine, st, "the transaction was given up");
            if (st != STET_OK)
                stet_error_move(err, &mine);
            stet_error_clear(&mine);
            return st;
        }
        stet_error_clear(&mine);
    }
}
