/* commit.c - stores a group of transactions: one SQLite transaction, each member kept or dropped on its own.
 *
 * Invariants
 *   C1. Nothing of the handle (cache, known, snapshot) changes before SQLite has committed.
 *   C2. Each member is validated against everything committed up to it: by others since it looked, and by the members
 *       before it that it did not see as they were stored (dropped, or applied to another state than staged).
 *   C3. Commit rows are inserted in the order of their sequences, heads once per document and in the order of keys,
 *       many of each in one statement. Until then nobody asks the tables for what the group has done.
 *   C4. Changed leaves come from the values before and after, never from the operations.
 */

#include "memory/commit.h"
#include "memory/walk.h"

/* Numbers of commits are exact in every JSON reader, and can't overflow. At a million commits a second it takes 285
 * years to get there. */
#define SEQ_MAX ((int64_t)1 << 53)

#define COMMIT_BODY_MAX STET_COMMIT_MAX_BYTES

/* A document of the written space, while a group is being stored. */
typedef struct work_doc {
    int64_t key, doc;
    stet_head head; /* after the members stored so far; holds a reference to the value */
    bool dirty;
} work_doc;

/* The effect of one member on one document. */
typedef struct outcome_doc {
    stet_tx_doc *d;
    work_doc *w;
    bool exists;
    stet_value value;
    const stet_change *at;
    size_t len;
} outcome_doc;

/* A row of the table `commits` that waits to be written, with the positions of its blobs in `changes` and `body`. */
typedef struct commit_row {
    int64_t seq;
    size_t changes_at, changes_len, body_at, body_len;
} commit_row;

typedef struct store {
    stet_group *g;
    stet_space *s;
    int64_t now; /* the newest sequence */
    int64_t start;
    int64_t names_given; /* names_given of the space at the beginning */
    int64_t time_ms;
    stet_map work; /* document number -> work_doc * */
    STET_VEC(work_doc *) docs;
    STET_VEC(stet_space *) others;
    STET_VEC(outcome_doc) outcomes; /* of the current member */
    stet_buf changes, body;         /* of `rows` */
    STET_VEC(commit_row) rows;
    size_t row; /* the next one to write, of `rows` or of `docs` */
    stet_arena arena;
    bool any_dropped;      /* or moved: then C2 requires a check of earlier members */
    bool wrote;            /* there is something to commit */
    stet_applied *applied; /* what the observations are based on; in the arena */
    size_t applied_count;
} store;

static int by_uuid(const void *a, const void *b) {
    return strcmp((*(stet_space *const *)a)->uuid, (*(stet_space *const *)b)->uuid);
}

static stet_status collect_spaces(store *c, stet_error *err) {
    for (size_t i = 0; i < c->g->members.len; i++) {
        const stet_tx *tx = c->g->members.at[i].tx;
        for (size_t j = 1; j < tx->views.len; j++) {
            stet_space *other = tx->views.at[j].space;
            bool known = other == c->s;
            for (size_t k = 0; k < c->others.len && !known; k++)
                known = c->others.at[k] == other;
            if (known)
                continue;
            if (strcmp(other->uuid, c->s->uuid) == 0)
                return stet_fail(err, STET_INVALID,
                                 "space \"%s\" is read through a second handle of the space written to", other->name);
            *stet_vec_add(&c->others) = other;
        }
    }
    return STET_OK;
}

static stet_status lock_one(store *c, stet_space *s, bool held, stet_error *err) {
    if (s == c->s && held)
        return STET_OK;
    if (stet_db_in_transaction(s->db))
        return stet_fail(err, STET_INVALID, "space \"%s\": a commit inside another transaction of the same handle",
                         s->name);
    return s->read_only && s != c->s ? stet_db_begin_read(s->db, err) : stet_db_begin_write(s->db, err);
}

/* Locks all spaces in the order of their UUIDs, so that two such commits never wait for each other. */
static stet_status lock_spaces(store *c, bool held, stet_error *err) {
    stet_status st = collect_spaces(c, err);
    STET_VEC(stet_space *) all = {0};
    *stet_vec_add(&all) = c->s;
    for (size_t i = 0; i < c->others.len; i++)
        *stet_vec_add(&all) = c->others.at[i];
    qsort(all.at, all.len, sizeof *all.at, by_uuid);
    size_t taken = 0;
    for (; taken < all.len && st == STET_OK; taken++) {
        st = lock_one(c, all.at[taken], held, err);
        if (st != STET_OK)
            break;
        stet_space_catch_up(all.at[taken]);
    }
    if (st != STET_OK) {
        for (size_t i = 0; i < taken; i++)
            stet_db_rollback(all.at[i]->db);
        if (held)
            stet_db_rollback(c->s->db);
    }
    stet_vec_release(&all);
    return st;
}

static work_doc *work_of(store *c, stet_tx_doc *d) {
    /* If the document is in the overlay, always by way of the overlay, otherwise by the map: so there is one work_doc
     * for each. */
    stet_overlay_doc *o = d->overlay ? d->overlay : stet_group_find(c->g, &d->name);
    if (o && o->work_store == c->g->stores) {
        d->doc = ((work_doc *)o->work)->doc;
        return o->work;
    }
    int64_t given = c->s->names_given;
    if (d->doc == 0)
        d->doc = stet_space_intern(c->s, &d->name);
    stet_slot *slot = o ? NULL : stet_map_get(&c->work, &d->doc, sizeof d->doc);
    if (slot)
        return slot->p;
    work_doc *w = stet_arena_zero(&c->arena, sizeof *w);
    w->doc = d->doc;
    w->key = stet_space_key(c->g->branch, d->doc);
    if (given == c->s->names_given) /* a document that has just got its number has no head */
        stet_head_load(c->s, c->g->branch, d->doc, c->s->known, &w->head);
    if (o) {
        o->work = w;
        o->work_store = c->g->stores;
    } else {
        stet_map_put(&c->work, &w->doc, sizeof w->doc, (stet_slot){.p = w});
    }
    *stet_vec_add(&c->docs) = w;
    return w;
}

static stet_status check_need(const stet_tx_doc *d, const stet_head *h, stet_error *err) {
    if (d->need_absent && h->exists) {
        stet_fail(err, STET_CONFLICT, "document \"%s\" exists already, at sequence %lld", d->name.id,
                  (long long)h->seq);
        stet_detail(err, "seq", stet_value_int(h->seq));
        return STET_CONFLICT;
    }
    stet_value value;
    if (d->need_hash && !(h->exists && stet_value_find(h->value, "value", 5, &value) &&
                          stet_hash_equal(stet_hash_value(value), *d->need_hash))) {
        stet_fail(err, STET_CONFLICT, "document \"%s\" has another value than the one required%s", d->name.id,
                  h->exists ? "" : ": it does not exist");
        stet_detail(err, "seq", stet_value_int(h->seq));
        return STET_CONFLICT;
    }
    return STET_OK;
}

static void clear_outcomes(store *c) {
    for (size_t i = 0; i < c->outcomes.len; i++)
        stet_value_release(c->outcomes.at[i].value);
    stet_vec_clear(&c->outcomes);
}

/* Computes the effect of a member on the documents that it writes, without changing anything yet. Documents that stay
 * as they are are left out. */
static stet_status work_out(store *c, stet_group_member *m, stet_error *err) {
    for (size_t i = 0; i < m->tx->docs.len; i++) {
        stet_tx_doc *d = m->tx->docs.at[i];
        if (d->write == STET_TX_NONE && !d->need_absent && !d->need_hash)
            continue;
        work_doc *w = work_of(c, d);
        stet_status st = check_need(d, &w->head, err);
        if (st != STET_OK)
            return st;
        if (d->write == STET_TX_NONE)
            continue;
        outcome_doc o = {.d = d, .w = w};
        if (d->before_exists == w->head.exists && stet_same_value(d->before, w->head.value)) {
            o.exists = d->after_exists;
            o.value = stet_value_retain(d->after);
            o.at = stet_tx_doc_changes(m->tx, d, &o.len);
        } else {
            st = stet_tx_doc_apply(d, w->head.exists, w->head.value, &o.exists, &o.value, err);
            if (st != STET_OK) {
                stet_fail_in(err, "document \"%s\", as it is at sequence %lld", d->name.id, (long long)w->head.seq);
                return st;
            }
            o.at = stet_space_compare(c->s, w->head.exists, w->head.value, o.exists, o.value, m->tx->arena, &o.len);
            m->moved = true;
        }
        if (o.len)
            *stet_vec_add(&c->outcomes) = o;
        else
            stet_value_release(o.value);
    }
    return STET_OK;
}

static int by_doc(const void *a, const void *b) {
    const outcome_doc *x = a, *y = b;
    return (x->w->doc > y->w->doc) - (x->w->doc < y->w->doc);
}

static stet_revision_kind kind_of(const outcome_doc *o) {
    if (!o->exists)
        return STET_REVISION_DELETE;
    return o->w->head.exists && o->d->write == STET_TX_PATCH ? STET_REVISION_PATCH : STET_REVISION_SET;
}

static int64_t text_length(stet_space *s, stet_value v) {
    stet_buf_clear(&s->text);
    stet_json_write(&s->text, v, STET_JSON_CANONICAL);
    return s->text.overflow ? INT64_MAX / 4 : (int64_t)s->text.len;
}

static stet_status too_large(const outcome_doc *o, int64_t bytes, stet_error *err) {
    return stet_fail(err, STET_LIMIT, "document \"%s\" would have %lld bytes of text: at most %zu are allowed",
                     o->d->name.id, (long long)bytes, STET_DOC_MAX_BYTES);
}

/* Packs the revisions of the member into c->changes and c->body, and the size of each into bytes_of. */
static stet_status pack_into(store *c, int64_t seq, size_t *body_of, stet_error *err) {
    int64_t last = 0;
    stet_record_start(&c->changes);
    for (size_t i = 0; i < c->outcomes.len; i++) {
        outcome_doc *o = &c->outcomes.at[i];
        stet_revision_kind kind = kind_of(o);
        size_t start = c->body.len;
        if (kind == STET_REVISION_SET)
            stet_json_write(&c->body, o->value, STET_JSON_CANONICAL);
        else if (kind == STET_REVISION_PATCH)
            stet_patches_encode(&c->body, o->d->ops.at, o->d->ops.len);
        body_of[i] = c->body.len - start;
        if (c->body.overflow)
            return stet_fail(err, STET_LIMIT, "a commit of more than %zu bytes", COMMIT_BODY_MAX);
        int64_t bytes = (int64_t)body_of[i] + (kind == STET_REVISION_PATCH ? o->w->head.bytes : 0);
        if (kind == STET_REVISION_PATCH && bytes > (int64_t)STET_DOC_MAX_BYTES)
            bytes = text_length(c->s, o->value); /* the bound is loose: measure the text */
        if (bytes > (int64_t)STET_DOC_MAX_BYTES)
            return too_large(o, bytes, err);
        stet_record_add(&c->changes, &last, o->w->doc, kind, o->w->head.seq ? seq - o->w->head.seq : 0,
                        c->body.data + start, body_of[i], o->at, o->len);
    }
    return c->changes.overflow ? stet_fail(err, STET_LIMIT, "a commit with too many changes") : STET_OK;
}

static bool next_commit(void *ctx, stet_row *out) {
    store *c = ctx;
    if (c->row == c->rows.len)
        return false;
    const commit_row *r = &c->rows.at[c->row++];
    stet_commit_fields(out, r->seq, c->g->branch, c->time_ms, c->changes.data + r->changes_at, r->changes_len);
    stet_row_blob(out, STET_COMMIT_CHANGES, c->changes.data + r->changes_at, r->changes_len);
    stet_row_blob(out, STET_COMMIT_CHANGES + 1, r->body_len ? c->body.data + r->body_at : "", r->body_len);
    return true;
}

static void write_commits(store *c) {
    c->row = 0;
    if (c->rows.len)
        stet_db_rows(c->s->db,
                     "INSERT OR FAIL INTO commits(" STET_COMMIT_COLUMNS ", body) SELECT a, b, c, d, e, f, g FROM given",
                     next_commit, c);
    stet_vec_clear(&c->rows);
    stet_buf_clear(&c->changes);
    stet_buf_clear(&c->body);
}

/* Packs the row of a commit, which is written later with the others. If it can't be packed, nothing of it is left. */
static stet_status pack(store *c, int64_t seq, size_t *body_of, stet_error *err) {
    enum { WAITING_MAX = 1 << 20 }; /* bytes; one commit may be larger */
    if (c->changes.len + c->body.len >= WAITING_MAX)
        write_commits(c);
    size_t changes_at = c->changes.len, body_at = c->body.len;
    c->body.max = body_at + COMMIT_BODY_MAX;
    stet_status st = pack_into(c, seq, body_of, err);
    if (st == STET_OK) {
        *stet_vec_add(&c->rows) =
            (commit_row){seq, changes_at, c->changes.len - changes_at, body_at, c->body.len - body_at};
        c->wrote = true;
        return st;
    }
    c->changes.len = changes_at;
    c->body.len = body_at;
    c->changes.overflow = c->body.overflow = false;
    return st;
}

static void insert_snapshot(stet_space *s, int64_t key, int64_t seq, const stet_buf *text) {
    stet_stmt *q = stet_db_stmt(s->db, "INSERT OR REPLACE INTO snapshot(key, seq, value, sum)"
                                       " VALUES(?1, ?2, ?3, row_sum(?1, ?2, ?3))");
    stet_bind_int(q, 1, key);
    stet_bind_int(q, 2, seq);
    if (text)
        stet_bind_blob(q, 3, text->data, text->len);
    else
        stet_bind_null(q, 3);
    stet_run(q);
}

/* Computes the head after one more revision, and adds an anchor if one is due: after 64 links, or, for a large
 * document, when the patches have grown to an eighth of it, or after 1024 links. */
static void revise(store *c, outcome_doc *o, stet_revision_kind kind, size_t body, int64_t seq) {
    stet_head *h = &o->w->head;
    stet_value_release(h->value);
    h->value = stet_value_retain(o->value);
    h->exists = o->exists;
    h->seq = seq;
    if (!h->own) { /* the links of the parent are counted on the parent */
        h->own = true;
        h->links = h->chain = 0;
        stet_space_note_written(c->s, o->w->doc, c->g->branch);
    }
    h->links++;
    if (kind == STET_REVISION_PATCH) {
        h->chain += (int64_t)body;
        h->bytes += (int64_t)body;
        if (h->links >= STET_ANCHOR_LINKS && (h->chain * 8 >= h->bytes || h->links >= STET_ANCHOR_MAX)) {
            h->bytes = text_length(c->s, h->value);
            insert_snapshot(c->s, o->w->key, seq, &c->s->text);
            h->links = h->chain = 0;
        }
    } else {
        h->chain = 0;
        h->bytes = (int64_t)body;
        if (h->links >= STET_ANCHOR_LINKS) {
            insert_snapshot(c->s, o->w->key, seq, NULL);
            h->links = 0;
        }
    }
    o->w->dirty = true;
}

static int by_key(const void *a, const void *b) {
    const work_doc *x = *(work_doc *const *)a, *y = *(work_doc *const *)b;
    return (x->key > y->key) - (x->key < y->key);
}

static bool next_head(void *ctx, stet_row *out) {
    store *c = ctx;
    while (c->row < c->docs.len && !c->docs.at[c->row]->dirty)
        c->row++;
    if (c->row == c->docs.len)
        return false;
    work_doc *w = c->docs.at[c->row++];
    stet_head *h = &w->head;
    bool small = h->exists && h->bytes <= 4 * STET_INLINE_BYTES;
    if (small) {
        h->bytes = text_length(c->s, h->value);
        small = h->bytes <= STET_INLINE_BYTES;
    }
    stet_row_int(out, 0, w->key);
    stet_row_int(out, 1, h->seq);
    stet_row_int(out, 2, h->exists);
    stet_row_int(out, 3, h->links);
    stet_row_int(out, 4, h->chain);
    stet_row_int(out, 5, h->bytes);
    if (small)
        stet_row_blob(out, 6, c->s->text.data, c->s->text.len);
    else
        stet_row_null(out, 6);
    stet_row_sum(out, 7);
    return true;
}

static void write_heads(store *c) {
    stet_sort(c->docs.at, c->docs.len, sizeof *c->docs.at, by_key);
    c->row = 0;
    if (c->wrote)
        stet_db_rows(c->s->db,
                     "INSERT OR REPLACE INTO head(key, seq, live, links, chain, bytes, value, sum)"
                     " SELECT a, b, c, d, e, f, g, h FROM given",
                     next_head, c);
}

static stet_status publish(store *c, stet_group_member *m, stet_error *err) {
    size_t n = c->outcomes.len;
    if (c->now >= SEQ_MAX || c->now < 0) {
        stet_fail(err, STET_CORRUPT, "the sequence of the space is %lld, which no space reaches", (long long)c->now);
        stet_hint(err, "its database was damaged or changed by another program: see what `stet check` says");
        return STET_CORRUPT;
    }
    int64_t seq = c->now + 1;
    if (n > 1)
        qsort(c->outcomes.at, n, sizeof *c->outcomes.at, by_doc);
    size_t *body_of = stet_arena_alloc(&c->arena, (n + 1) * sizeof *body_of);
    stet_status st = pack(c, seq, body_of, err);
    if (st != STET_OK)
        return st;
    stet_doc_change *list = stet_arena_alloc(m->tx->arena, (n + 1) * sizeof *list);
    const stet_observation *seen = m->tx->observation;
    m->own = seen && seen->ignored_count ? stet_arena_alloc(m->tx->arena, (n + 1) * sizeof *m->own) : NULL;
    for (size_t i = 0; i < n; i++) {
        outcome_doc *o = &c->outcomes.at[i];
        stet_revision_kind kind = kind_of(o);
        list[i] = (stet_doc_change){o->w->doc, o->d->name, kind, o->at, o->len};
        if (m->own)
            m->own[i] = stet_observe_beside(seen, &list[i], o->exists ? o->value : o->w->head.value, m->tx->arena);
        revise(c, o, kind, body_of[i], seq);
    }
    m->changes = list;
    m->change_count = n;
    c->now = seq;
    return STET_OK;
}

/* Stores one member, or says in its error why not. Failures of the database stick to the database. */
static void store_member(store *c, stet_group_member *m) {
    stet_tx *tx = m->tx;
    stet_error e = STET_ERROR_INIT;
    stet_group_member_clear(m);
    m->outcome = STET_MEMBER_STAGED;
    m->moved = m->stale = false;
    m->own = NULL;
    m->reads = NULL;
    m->read_count = 0;
    m->result = (stet_commit_result){0};
    stet_status st = tx->session ? stet_replay_find(c->s, m, &e) : STET_NOT_FOUND;
    if (st == STET_OK) {
        m->outcome = STET_MEMBER_APPLIED;
        m->change_count = 0;
        /* A replayed member changes nothing now, so that those who read it in the overlay read something else. */
        m->moved = c->any_dropped = true;
        return;
    }
    if (st == STET_NOT_FOUND)
        m->stale = (st = stet_group_validate(c->g, tx, c->start, c->any_dropped, &c->arena, &e)) == STET_CONFLICT;
    if (st == STET_OK)
        st = work_out(c, m, &e);
    if (st == STET_OK && c->outcomes.len)
        st = publish(c, m, &e);
    else if (st == STET_OK)
        m->change_count = 0;
    if (st == STET_OK) {
        m->outcome = STET_MEMBER_APPLIED;
        m->result = (stet_commit_result){c->now, c->outcomes.len != 0, false};
        c->any_dropped = c->any_dropped || m->moved;
        for (size_t i = 0; i < tx->docs.len; i++) {
            stet_tx_doc *d = tx->docs.at[i];
            d->holds = d->space == c->s ? c->now : d->space->known;
            if (d->doc == 0 && d->overlay && d->overlay->work_store == c->g->stores)
                d->doc = ((work_doc *)d->overlay->work)->doc; /* where an earlier member has created it */
        }
        if (tx->observation) /* now, while everything is in the processor's cache */
            m->reads = stet_tx_read_list(tx, &c->arena, &m->read_count);
        if (tx->session) {
            stet_replay_keep(c->s, m);
            c->wrote = true;
        }
    } else {
        m->outcome = STET_MEMBER_DROPPED;
        m->error = stet_alloc(sizeof *m->error);
        *m->error = e;
        e.details = stet_value_null();
        c->any_dropped = true;
    }
    stet_value_release(e.details);
    clear_outcomes(c);
}

static void observe(store *c) {
    bool needed = false;
    for (size_t i = 0; i < c->g->members.len; i++) {
        const stet_group_member *m = &c->g->members.at[i];
        needed =
            needed || (m->outcome == STET_MEMBER_APPLIED && (m->change_count || m->tx->observation || m->tx->turnover));
    }
    if (!needed)
        return;
    stet_applied *list = stet_arena_zero(&c->arena, c->g->members.len * sizeof *list);
    size_t n = 0;
    for (size_t i = 0; i < c->g->members.len; i++) {
        const stet_group_member *m = &c->g->members.at[i];
        if (m->outcome != STET_MEMBER_APPLIED || m->result.replayed)
            continue;
        stet_applied *a = &list[n++];
        a->seq = m->result.changed ? m->result.seq : 0;
        a->changes = m->changes;
        a->change_count = m->change_count;
        a->own = m->own ? m->own : m->changes;
        a->observation = m->tx->observation;
        a->turnover = m->tx->turnover;
        c->wrote = c->wrote || a->observation || a->turnover;
        a->reads = m->reads;
        a->read_count = m->read_count;
    }
    stet_observe_apply(c->s, c->g->branch, list, n);
    c->applied = list;
    c->applied_count = n;
}

static stet_status check_branch(store *c, stet_error *err) {
    if (c->g->branch == 0)
        return STET_OK;
    const stet_branch_entry *b = stet_space_branch_entry(c->s, c->g->branch);
    if (b && !b->deleted)
        return STET_OK;
    return stet_fail(err, STET_NOT_FOUND, "the branch has been deleted");
}

/* C1: called after SQLite has committed. */
static void become_known(store *c) {
    for (size_t i = 0; i < c->docs.len; i++)
        if (c->docs.at[i]->dirty)
            stet_cache_put(c->s, c->docs.at[i]->key, &c->docs.at[i]->head);
    c->s->known = c->now;
}

static stet_status finish(store *c, stet_error *err) {
    /* First the spaces that were read, in which only mirrors may have been written; then the written space. Mirrors
     * that can't be stored do not fail the data: the actions that needed them become unknown. */
    for (size_t i = 0; i < c->others.len; i++)
        if (stet_db_commit(c->others.at[i]->db, NULL) != STET_OK) {
            stet_space_forget_names(c->others.at[i]);
            stet_observe_lost(c->s, c->g->branch, c->applied, c->applied_count, c->others.at[i]);
        }
    if (c->wrote)
        return stet_db_commit(c->s->db, err);
    stet_status st = stet_db_status(c->s->db, err);
    if (st == STET_OK && c->s->names_given != c->names_given)
        stet_space_forget_names(c->s); /* forget numbers that were given to names but not stored */
    stet_db_rollback(c->s->db);
    return st;
}

static void release(store *c) {
    for (size_t i = 0; i < c->docs.len; i++)
        stet_head_release(&c->docs.at[i]->head);
    stet_vec_release(&c->docs);
    stet_vec_release(&c->others);
    stet_vec_release(&c->outcomes);
    stet_vec_release(&c->rows);
    stet_map_release(&c->work);
    stet_buf_release(&c->changes);
    stet_buf_release(&c->body);
    stet_arena_release(&c->arena);
}

stet_status stet_group_store(stet_group *g, stet_error *err) {
    store c = {.g = g, .s = g->space, .changes = STET_BUF(0), .body = STET_BUF(0)};
    g->stores++;
    bool held = g->members.len == 1 && g->members.at[0].tx->locked && stet_db_in_transaction(g->space->db);
    /* Earlier observations are stored first. If they can't be, their actions run again; this commit does not fail. */
    stet_error batch = STET_ERROR_INIT;
    if (stet_observe_sync(c.s, &batch) != STET_OK)
        stet_error_clear(&batch);
    int64_t names_gone = c.s->names_gone;
    stet_status st = lock_spaces(&c, held, err);
    if (st != STET_OK) {
        release(&c);
        return st;
    }
    if (names_gone != c.s->names_gone) /* numbers may have been learnt before gc removed names */
        for (size_t i = 0; i < g->members.len; i++)
            for (size_t j = 0; j < g->members.at[i].tx->docs.len; j++)
                g->members.at[i].tx->docs.at[j]->doc = 0;
    c.now = c.start = c.s->known;
    c.names_given = c.s->names_given;
    c.time_ms = stet_clock_ms();
    c.s->names_first = 0;
    stet_space_hold_names(c.s);
    st = check_branch(&c, err);
    for (size_t i = 0; i < g->members.len && st == STET_OK; i++) {
        store_member(&c, &g->members.at[i]);
        st = stet_db_status(c.s->db, err);
    }
    for (size_t i = 0; i < c.others.len && st == STET_OK; i++)
        st = stet_db_status(c.others.at[i]->db, err); /* the reads there could not be validated */
    if (st == STET_OK) {
        stet_space_write_names(c.s);
        write_commits(&c);
        write_heads(&c);
        observe(&c);
        st = finish(&c, err);
    } else {
        for (size_t i = 0; i < c.others.len; i++)
            stet_db_rollback(c.others.at[i]->db);
        stet_db_rollback(c.s->db);
    }
    if (st == STET_OK) {
        become_known(&c);
    } else {
        stet_space_forget_names(c.s); /* forget numbers that were given to names but may not be stored */
        for (size_t i = 0; i < g->members.len; i++) {
            g->members.at[i].outcome = STET_MEMBER_STAGED;
            for (size_t j = 0; j < g->members.at[i].tx->docs.len; j++) {
                stet_tx_doc *d = g->members.at[i].tx->docs.at[j];
                d->holds = 0;
                d->doc = 0; /* looked up again */
            }
        }
    }
    release(&c);
    stet_observe_done(g->space, st == STET_OK);
    return st;
}
