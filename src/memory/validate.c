/* validate.c - checks whether the reads of a transaction still hold.
 *
 * They are checked against commits by others since the transaction looked, and against members of its group that were
 * not stored as it saw them (C2 of commit.c), under the write locks of all spaces it read.
 */

#include <string.h>

#include "memory/commit.h"
#include "memory/walk.h"

static stet_value describe_read(const stet_tx_doc *d, size_t read) {
    stet_buf b = STET_BUF(0);
    stet_value v = stet_value_object();
    stet_value_put(&v, "space", stet_value_string(d->space->name));
    stet_value_put(&v, "id", stet_value_string(d->name.id));
    stet_value_put(&v, "scope", stet_value_string(d->name.scope));
    stet_path_print(d->reads.at[read].path, &b);
    stet_value_put(&v, "path", stet_value_string_n(stet_buf_cstr(&b), b.len));
    stet_value_put(&v, "kind", stet_value_string(d->reads.at[read].kind == STET_SHALLOW ? "shallow" : "recursive"));
    stet_value_put(&v, "seq", stet_value_int(d->seen));
    stet_buf_release(&b);
    return v;
}

static stet_status conflict(stet_error *err, const stet_tx_doc *d, const size_t which[2], const stet_change *at,
                            int64_t seq) {
    stet_buf read = STET_BUF(0), change = STET_BUF(0);
    stet_cell_print(d->name.id, d->reads.at[which[0]].path, &read);
    stet_cell_print(d->name.id, at[which[1]].path, &change);
    stet_fail(err, STET_CONFLICT, "%s was read at sequence %lld; %s has changed since, at %lld", stet_buf_cstr(&read),
              (long long)d->seen, stet_buf_cstr(&change), (long long)seq);
    stet_hint(err, "read again and repeat the change");
    if (err) {
        stet_detail(err, "read", describe_read(d, which[0]));
        stet_value c = stet_value_object();
        stet_buf_clear(&change);
        stet_path_print(at[which[1]].path, &change);
        stet_value_put(&c, "path", stet_value_string_n(stet_buf_cstr(&change), change.len));
        stet_value_put(&c, "kind", stet_value_string(at[which[1]].kind == STET_KEYSET ? "keys" : "value"));
        stet_detail(err, "change", c);
        stet_detail(err, "seq", stet_value_int(seq));
    }
    stet_buf_release(&read);
    stet_buf_release(&change);
    return STET_CONFLICT;
}

static int64_t head_seq(stet_space *s, int64_t branch, int64_t doc) {
    stet_cached *c = stet_cache_find(s, stet_space_key(branch, doc));
    if (c && !c->old)
        return c->head.seq;
    return stet_document_revision_at(s, branch, doc, s->known);
}

/* Checks commits that others made since the document was read. */
static stet_status check_committed(stet_tx_doc *d, int64_t through, stet_arena *arena, stet_error *err) {
    if (d->seen >= through)
        return STET_OK;
    if (d->doc == 0)
        d->doc = stet_space_find_doc(d->space, &d->name);
    if (d->doc == 0)
        return STET_OK;
    int64_t head = head_seq(d->space, d->branch, d->doc);
    if (head <= d->seen)
        return STET_OK;
    stet_walk w;
    stet_walk_begin(&w, d->space, d->doc, head);
    while (w.next > d->seen && stet_walk_next(&w, arena)) {
        size_t which[2];
        if (stet_reads_touched(d, w.leaves, w.rev.leaf_count, which))
            return conflict(err, d, which, w.leaves, w.seq);
    }
    return STET_OK;
}

/* Checks members that the reader saw in the overlay but that were not stored as it saw them. */
static stet_status check_members(const stet_group *g, const stet_tx_doc *d, stet_error *err) {
    for (size_t i = 0; i < d->seen_members; i++) {
        const stet_group_member *m = &g->members.at[i];
        if (m->outcome != STET_MEMBER_DROPPED && !m->moved)
            continue;
        stet_tx_doc *staged = stet_tx_find(m->tx, 0, &d->name);
        size_t which[2], n;
        if (staged && staged->write != STET_TX_NONE) {
            const stet_change *at = stet_tx_doc_changes(m->tx, staged, &n);
            bool touched = stet_reads_touched(d, at, n, which);
            for (size_t j = 0; j < m->change_count && !touched && m->outcome == STET_MEMBER_APPLIED; j++)
                touched = m->changes[j].doc == staged->doc &&
                          stet_reads_touched(d, m->changes[j].at, m->changes[j].len, which);
            if (touched)
                return stet_fail(err, STET_CONFLICT,
                                 "document \"%s\": what was read was written by an earlier "
                                 "transaction of the group, which was not stored so",
                                 d->name.id);
        }
    }
    return STET_OK;
}

/* Checks that the documents which say how to run the action are the same as when it was run. */
static stet_status check_ground(stet_group *g, const stet_observation *o, int64_t start, stet_arena *arena,
                                stet_error *err) {
    if (g->ground && g->ground_start == start && g->ground_since == o->rests_since &&
        strcmp(g->ground, o->key.piece) == 0 && strcmp(g->ground_scope, o->key.scope) == 0)
        return STET_OK;
    stet_tx_path path = {o->rests_on, STET_RECURSIVE};
    stet_tx_doc d = {.space = g->space,
                     .branch = g->branch,
                     .name = {o->key.piece, o->key.scope},
                     .seen = o->rests_since,
                     .reads = {&path, 1, 1}};
    stet_status st = check_committed(&d, start, arena, err);
    if (st == STET_OK) {
        g->ground = o->key.piece;
        g->ground_scope = o->key.scope;
        g->ground_since = o->rests_since;
        g->ground_start = start;
    }
    return st;
}

stet_status stet_tx_holds(stet_tx *tx, stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    stet_status st = STET_OK;
    for (size_t i = 0; i < tx->views.len && st == STET_OK; i++) {
        stet_space *s = tx->views.at[i].space;
        bool begun;
        st = stet_space_enter(s, &begun, err);
        if (st != STET_OK)
            break;
        stet_space_catch_up(s);
        for (size_t k = 0; k < tx->docs.len && st == STET_OK; k++)
            if (tx->docs.at[k]->space == s && tx->docs.at[k]->reads.len > 0)
                st = check_committed(tx->docs.at[k], s->known, &arena, err);
        st = stet_space_leave(s, begun, st, err);
    }
    stet_arena_release(&arena);
    return st;
}

stet_status stet_group_validate(stet_group *g, stet_tx *tx, int64_t start, bool members, stet_arena *arena,
                                stet_error *err) {
    if (tx->observation && tx->observation->rests_since > 0) {
        stet_status st = check_ground(g, tx->observation, start, arena, err);
        if (st != STET_OK)
            return st;
    }
    for (size_t i = 0; i < tx->docs.len; i++) {
        stet_tx_doc *d = tx->docs.at[i];
        if (d->reads.len == 0)
            continue;
        bool own = d->space == g->space;
        stet_status st = check_committed(d, own ? start : d->space->known, arena, err);
        if (st == STET_OK && members && own)
            st = check_members(g, d, err);
        if (st != STET_OK)
            return st;
    }
    return STET_OK;
}
