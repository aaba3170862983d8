/* observe_store.c - the tables of the scheduler and this handle's cache of them. The only file that writes them, with
 * observe_mirror.c for the tables of other spaces' readers. */
#include <stdlib.h>

#include "memory/observe_internal.h"

struct stet_observe *stet_observe_of(stet_space *s) {
    if (!s->observe) {
        s->observe = stet_alloc_zero(sizeof *s->observe);
        s->observe->has_mirrors = s->observe->has_foreign = -1;
        s->observe->tx = 1; /* an action that was never pending has 0 */
    }
    return s->observe;
}

static void free_docs(struct stet_observe *o) {
    size_t cursor = 0, len;
    const void *key;
    stet_slot *slot;
    while (stet_map_next(&o->docs, &cursor, &key, &len, &slot)) {
        stet_index_doc *d = slot->p;
        stet_vec_release(&d->reads);
        stet_vec_release(&d->writes);
        free(d);
    }
    stet_map_clear(&o->docs);
    o->doc_bytes = 0;
    o->last_doc = NULL;
}

void stet_observe_drop_pending(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    stet_vec_clear(&o->pending);
    stet_vec_clear(&o->ops);
    o->op_order = 0;
    o->tx++;
    stet_map_clear(&o->pending_of);
    stet_arena_clear(&o->tx_arena);
}

void stet_observe_forget_piece(stet_space *s) {
    if (s->observe)
        s->observe->last_piece_doc = 0;
}

void stet_observe_empty(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    free_docs(o);
    stet_map_clear(&o->by_name);
    stet_map_clear(&o->by_number);
    stet_map_clear(&o->fingerprints);
    stet_map_clear(&o->counters);
    stet_arena_clear(&o->arena);
    o->has_mirrors = o->has_foreign = -1;
    o->max_doc = 0;
    o->fresh = false;
    o->last_piece_doc = 0;
}

void stet_observe_release(stet_space *s) {
    if (!s->observe)
        return;
    struct stet_observe *o = s->observe;
    stet_observe_close_owners(s);
    stet_observe_empty(s);
    stet_observe_drop_pending(s);
    stet_map_release(&o->by_name);
    stet_map_release(&o->by_number);
    stet_map_release(&o->docs);
    stet_map_release(&o->fingerprints);
    stet_map_release(&o->counters);
    stet_map_release(&o->pending_of);
    stet_arena_release(&o->arena);
    stet_arena_release(&o->tx_arena);
    stet_vec_release(&o->pending);
    stet_vec_release(&o->ops);
    stet_vec_release(&o->pushes);
    stet_vec_release(&o->leave);
    stet_vec_release(&o->bases);
    stet_arena_release(&o->push_arena);
    stet_vec_release(&o->places);
    stet_vec_release(&o->places2);
    stet_vec_release(&o->own);
    stet_vec_release(&o->out);
    stet_vec_release(&o->skip);
    stet_vec_release(&o->other);
    free(o->last_piece);
    stet_numbers_release(&o->scratch);
    stet_buf_release(&o->buf);
    stet_buf_release(&o->buf2);
    free(o);
    s->observe = NULL;
}

int64_t stet_observe_int(stet_space *s, const char *sql, int64_t otherwise) {
    stet_stmt *q = stet_db_stmt(s->db, sql);
    int64_t v = otherwise;
    while (stet_step(q))
        v = stet_column_int(q, 0);
    return v;
}

int64_t stet_observe_meta(stet_space *s, const char *name, int64_t otherwise) {
    stet_stmt *q = stet_db_stmt(s->db, "SELECT value FROM space_meta WHERE name = ?");
    stet_bind_text(q, 1, name, strlen(name));
    int64_t v = otherwise;
    while (stet_step(q))
        v = stet_column_int(q, 0);
    return v;
}

void stet_observe_fresh(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    int64_t now = stet_db_data_version(s->db);
    if (!o->fresh || now != o->data_version || o->arena.total + o->doc_bytes > STET_OBSERVE_MAX) {
        stet_observe_empty(s);
        o->marked_through = stet_observe_meta(s, "marked_through", 0);
        o->data_version = now;
        o->fresh = true;
    }
    if (o->has_mirrors < 0)
        o->has_mirrors = stet_observe_int(s, "SELECT count(*) FROM (SELECT 1 FROM mirror LIMIT 1)", 0) != 0;
    if (o->has_foreign < 0)
        o->has_foreign = stet_observe_int(s, "SELECT count(*) FROM (SELECT 1 FROM foreign_space LIMIT 1)", 0) != 0;
}

void stet_observe_set_marked_through(stet_space *s, int64_t seq) {
    struct stet_observe *o = stet_observe_of(s);
    if (o->marked_through == seq)
        return;
    stet_stmt *q = stet_db_stmt(s->db, "UPDATE space_meta SET value = ? WHERE name = 'marked_through'");
    stet_bind_int(q, 1, seq);
    stet_run(q);
    o->marked_through = seq;
}

/* ---- Actions ------------------------------------------------------------------------------------------------ */

static stet_bytes keep(stet_arena *a, const void *bytes, size_t len) {
    return (stet_bytes){len ? stet_arena_dup(a, bytes, len) : "", len};
}

/* The counter of a piece: twice the next number, plus 1 if the piece had no action when it was first asked for, so that
 * the cache holds all there are and a name that is not in it is new. */
static stet_slot *counter_of(stet_space *s, int64_t piece) {
    struct stet_observe *o = stet_observe_of(s);
    stet_slot *slot = stet_map_get(&o->counters, &piece, sizeof piece);
    if (slot)
        return slot;
    int64_t first = piece << STET_ACTION_BITS;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT max(action) FROM action WHERE action >= ? AND action < ?");
    stet_bind_int(q, 1, first);
    stet_bind_int(q, 2, first + ((int64_t)1 << STET_ACTION_BITS));
    uint64_t next = ((uint64_t)first + 1) * 2 + (stet_db_status(s->db, NULL) == STET_OK);
    while (stet_step(q))
        if (!stet_column_is_null(q, 0))
            next = ((uint64_t)stet_column_int(q, 0) + 1) * 2;
    return stet_map_put(&o->counters, &piece, sizeof piece, (stet_slot){.n = next});
}

/* What the cache keeps of a stored observation. Damaged bytes count as none. */
static void learn(struct stet_observe *o, stet_known_action *a, const void *blob, size_t len) {
    stet_obs obs;
    a->observed = len && stet_obs_decode(blob, len, &obs) && stet_obs_sound(&obs);
    if (!a->observed) {
        a->reads = a->known = a->declared = a->envelopes = a->foreign_reads = (stet_bytes){"", 0};
        a->foreign = a->ran = false;
        return;
    }
    a->reads = keep(&o->arena, obs.reads.at, obs.reads.len);
    a->declared = keep(&o->arena, obs.declared.at, obs.declared.len);
    a->known = obs.known_is_declared ? a->declared : keep(&o->arena, obs.known.at, obs.known.len);
    a->envelopes = keep(&o->arena, obs.envelopes.at, obs.envelopes.len);
    a->foreign_reads = keep(&o->arena, obs.foreign.at, obs.foreign.len);
    a->foreign = obs.foreign.len != 0;
    a->ran = obs.run != STET_RUN_DEPENDENCIES;
}

stet_known_action *stet_observe_action(stet_space *s, int64_t branch, int64_t piece, const char *name, bool make) {
    struct stet_observe *o = stet_observe_of(s);
    size_t name_len = strlen(name);
    stet_buf_clear(&o->buf);
    stet_buf_add(&o->buf, &piece, sizeof piece);
    stet_buf_add(&o->buf, &branch, sizeof branch);
    stet_buf_add(&o->buf, name, name_len);
    stet_slot *slot = stet_map_get(&o->by_name, o->buf.data, o->buf.len);
    if (slot)
        return slot->p;
    stet_bytes none = {"", 0};
    stet_known_action found = {.branch = branch,
                               .piece = piece,
                               .reads = none,
                               .known = none,
                               .declared = none,
                               .envelopes = none,
                               .foreign_reads = none};
    stet_slot *counter = counter_of(s, piece);
    if (!(counter->n & 1)) {
        stet_stmt *q = stet_db_stmt(
            s->db, "SELECT a.action, a.observation, EXISTS(SELECT 1 FROM mark m WHERE m.action = a.action),"
                   " EXISTS(SELECT 1 FROM mark m WHERE m.action = a.action AND m.space != 0)"
                   " FROM action a WHERE a.piece = ? AND a.branch = ? AND a.name = ?");
        stet_bind_int(q, 1, piece);
        stet_bind_int(q, 2, branch);
        stet_bind_text(q, 3, name, name_len);
        while (stet_step(q)) {
            size_t len;
            const void *blob = stet_column_blob(q, 1, &len);
            found.action = stet_column_int(q, 0);
            found.marked = stet_column_int(q, 2) != 0;
            found.foreign_marked = stet_column_int(q, 3) != 0;
            learn(o, &found, blob, len);
            found.ran = found.ran || (found.observed && !found.marked); /* it stands, so it ran */
        }
    }
    if (found.action == 0) {
        if (!make || stet_db_status(s->db, NULL) != STET_OK)
            return NULL;
        found.action = (int64_t)(counter->n / 2);
        counter->n += 2;
        if (found.action >> STET_ACTION_BITS != piece) {
            stet_db_fail(s->db, STET_LIMIT, "a piece has at most %d actions", 1 << STET_ACTION_BITS);
            return NULL;
        }
        found.unborn = stet_arena_strndup(&o->arena, name, name_len);
    }
    stet_known_action *a = stet_arena_dup(&o->arena, &found, sizeof found);
    stet_map_put(&o->by_name, o->buf.data, o->buf.len, (stet_slot){.p = a});
    stet_map_put(&o->by_number, &a->action, sizeof a->action, (stet_slot){.p = a});
    if (a->unborn)
        stet_observe_pending_of(s, a);
    return a;
}

static void insert_action(stet_space *s, stet_known_action *a, int64_t generation, stet_bytes blob) {
    stet_stmt *q = stet_db_stmt(
        s->db, "INSERT INTO action(action, branch, piece, generation, name, observation) VALUES(?, ?, ?, ?, ?, ?)");
    stet_bind_int(q, 1, a->action);
    stet_bind_int(q, 2, a->branch);
    stet_bind_int(q, 3, a->piece);
    stet_bind_int(q, 4, generation);
    stet_bind_text(q, 5, a->unborn, strlen(a->unborn));
    if (blob.at)
        stet_bind_blob(q, 6, blob.at, blob.len);
    else
        stet_bind_null(q, 6);
    stet_run(q);
    a->unborn = NULL;
}

void stet_observe_bear(stet_space *s, stet_known_action *a) {
    if (a->unborn)
        insert_action(s, a, 0, (stet_bytes){NULL, 0});
}

int64_t stet_observe_fingerprint(stet_space *s, stet_hash h) {
    struct stet_observe *o = stet_observe_of(s);
    stet_slot *slot = stet_map_get(&o->fingerprints, h.bytes, sizeof h.bytes);
    if (slot)
        return (int64_t)slot->n;
    int64_t number = 0;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT fingerprint FROM fingerprint WHERE hash = ?");
    stet_bind_blob(q, 1, h.bytes, sizeof h.bytes);
    while (stet_step(q))
        number = stet_column_int(q, 0);
    if (number == 0) {
        q = stet_db_stmt(s->db, "INSERT INTO fingerprint(hash) VALUES(?)");
        stet_bind_blob(q, 1, h.bytes, sizeof h.bytes);
        stet_run(q);
        number = stet_db_last_id(s->db);
    }
    stet_map_put(&o->fingerprints, h.bytes, sizeof h.bytes, (stet_slot){.n = (uint64_t)number});
    return number;
}

/* ---- Index rows --------------------------------------------------------------------------------------------- */

stet_index_doc *stet_observe_doc(stet_space *s, int64_t key) {
    struct stet_observe *o = stet_observe_of(s);
    if (o->last_doc && o->last_key == key) /* writers and readers of one document are asked for one after the other */
        return o->last_doc;
    stet_slot *slot = stet_map_get(&o->docs, &key, sizeof key);
    o->last_key = key;
    if (slot)
        return o->last_doc = slot->p;
    stet_index_doc *d = o->last_doc = stet_alloc_zero(sizeof *d);
    stet_map_put(&o->docs, &key, sizeof key, (stet_slot){.p = d});
    o->doc_bytes += sizeof *d + 64;
    if (o->first_new_doc && (key & (((int64_t)1 << 40) - 1)) >= o->first_new_doc)
        return d;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT path, action, flags FROM read_index WHERE key = ? LIMIT ?");
    stet_bind_int(q, 1, key);
    stet_bind_int(q, 2, STET_DOC_ROWS + 1);
    while (stet_step(q)) {
        size_t len;
        const void *path = stet_column_blob(q, 0, &len);
        *stet_vec_add(&d->reads) = (stet_index_row){
            {keep(&o->arena, path, len).at, len}, stet_column_int(q, 1), (unsigned)stet_column_int(q, 2)};
    }
    q = stet_db_stmt(s->db, "SELECT path, action, flags FROM write_index WHERE key = ? LIMIT ?");
    stet_bind_int(q, 1, key);
    stet_bind_int(q, 2, STET_DOC_ROWS + 1);
    while (stet_step(q)) {
        size_t len;
        const void *path = stet_column_blob(q, 0, &len);
        *stet_vec_add(&d->writes) = (stet_index_row){
            {keep(&o->arena, path, len).at, len}, stet_column_int(q, 1), (unsigned)stet_column_int(q, 2)};
    }
    o->doc_bytes += (d->reads.len + d->writes.len) * sizeof(stet_index_row);
    if (d->reads.len > STET_DOC_ROWS || d->writes.len > STET_DOC_ROWS) {
        d->wide = true;
        stet_vec_release(&d->reads);
        stet_vec_release(&d->writes);
    }
    return d;
}

static void row_sql(stet_space *s, const stet_row_op *op) {
    stet_stmt *q;
    if (op->add && op->write)
        q = stet_db_stmt(s->db, "INSERT OR REPLACE INTO write_index(key, path, action, flags) VALUES(?, ?, ?, ?)");
    else if (op->add)
        q = stet_db_stmt(s->db, "INSERT OR REPLACE INTO read_index(key, path, action, flags) VALUES(?, ?, ?, ?)");
    else if (op->write)
        q = stet_db_stmt(s->db, "DELETE FROM write_index WHERE key = ? AND path = ? AND action = ?");
    else
        q = stet_db_stmt(s->db, "DELETE FROM read_index WHERE key = ? AND path = ? AND action = ?");
    stet_bind_int(q, 1, op->key);
    stet_bind_blob(q, 2, op->path.bytes, op->path.len);
    stet_bind_int(q, 3, op->action);
    if (op->add)
        stet_bind_int(q, 4, op->flags);
    stet_run(q);
}

/* The pending rows of one document go to SQL now: it has become wide, and questions about it go there. */
static void spill(stet_space *s, int64_t key) {
    struct stet_observe *o = stet_observe_of(s);
    size_t to = 0;
    for (size_t i = 0; i < o->ops.len; i++) {
        if (o->ops.at[i].key == key)
            row_sql(s, &o->ops.at[i]);
        else
            o->ops.at[to++] = o->ops.at[i];
    }
    o->ops.len = to;
}

static void row(stet_space *s, int64_t key, stet_pathref path, int64_t action, unsigned flags, bool add, bool write) {
    struct stet_observe *o = stet_observe_of(s);
    stet_index_doc *d = stet_observe_doc(s, key);
    stet_row_op op = {key, action, path, flags, add, write, o->op_order++};
    if (d->wide) {
        row_sql(s, &op);
        return;
    }
    op.path.bytes = keep(&o->tx_arena, path.bytes, path.len).at;
    *stet_vec_add(&o->ops) = op;
    stet_index_row **at = write ? &d->writes.at : &d->reads.at;
    size_t *len = write ? &d->writes.len : &d->reads.len;
    for (size_t i = 0; i < *len; i++)
        if ((*at)[i].action == action && stet_path_compare((*at)[i].path, path) == 0) {
            if (add)
                (*at)[i].flags = flags;
            else
                (*at)[i] = (*at)[--*len];
            return;
        }
    if (!add)
        return;
    if (*len == STET_DOC_ROWS) {
        d->wide = true;
        stet_vec_release(&d->reads);
        stet_vec_release(&d->writes);
        spill(s, key);
        return;
    }
    stet_index_row r = {{keep(&o->arena, path.bytes, path.len).at, path.len}, action, flags};
    if (write)
        *stet_vec_add(&d->writes) = r;
    else
        *stet_vec_add(&d->reads) = r;
    o->doc_bytes += sizeof r;
}

/* Adds the places of a packed set with these flags; flags of a place that is there already are joined. */
static bool gather(stet_bytes packed, unsigned flags, stet_places *out) {
    size_t from = out->len;
    if (!stet_places_unpack(packed.at, packed.len, out))
        return false;
    for (size_t i = from; i < out->len; i++)
        out->at[i].seq = flags; /* carried in `seq`: the packed form has one bit for flags */
    return true;
}

static int by_doc_and_path(const void *a, const void *b) {
    const stet_place *x = a, *y = b;
    if (x->doc != y->doc)
        return x->doc < y->doc ? -1 : 1;
    return stet_path_compare(x->path, y->path);
}

static void write_rows(stet_bytes known, stet_bytes declared, stet_bytes envelopes, stet_places *out) {
    stet_vec_clear(out);
    if (!gather(known, STET_WRITE_KNOWN, out) || !gather(declared, STET_WRITE_DECLARED, out) ||
        !gather(envelopes, STET_WRITE_ENVELOPE, out))
        return; /* packed by this process or checked when it was decoded */
    if (out->len > 1)
        qsort(out->at, out->len, sizeof *out->at, by_doc_and_path);
    size_t to = 0;
    for (size_t i = 0; i < out->len; i++)
        if (to && by_doc_and_path(&out->at[to - 1], &out->at[i]) == 0)
            out->at[to - 1].seq |= out->at[i].seq;
        else
            out->at[to++] = out->at[i];
    out->len = to;
}

/* Two sorted lists of places, one row operation for each difference. */
static void merge_rows(stet_space *s, const stet_known_action *a, const stet_places *was, const stet_places *is,
                       bool write) {
    size_t i = 0, k = 0;
    while (i < was->len || k < is->len) {
        int order = i == was->len ? 1 : k == is->len ? -1 : by_doc_and_path(&was->at[i], &is->at[k]);
        if (order < 0) {
            const stet_place *p = &was->at[i++];
            row(s, stet_space_key(a->branch, p->doc), p->path, a->action, 0, false, write);
            continue;
        }
        const stet_place *p = &is->at[k++];
        unsigned flags = write ? (unsigned)p->seq : p->flag;
        bool same = order == 0 && (write ? was->at[i].seq == p->seq : was->at[i].flag == p->flag);
        i += order == 0;
        if (!same)
            row(s, stet_space_key(a->branch, p->doc), p->path, a->action, flags, true, write);
    }
}

static bool same_bytes(stet_bytes a, stet_bytes b) {
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

void stet_observe_reindex(stet_space *s, stet_known_action *a, stet_bytes reads, stet_bytes known, stet_bytes declared,
                          stet_bytes envelopes) {
    struct stet_observe *o = stet_observe_of(s);
    if (!same_bytes(a->reads, reads)) {
        stet_vec_clear(&o->places);
        stet_vec_clear(&o->places2);
        if (stet_places_unpack(a->reads.at, a->reads.len, &o->places) &&
            stet_places_unpack(reads.at, reads.len, &o->places2))
            merge_rows(s, a, &o->places, &o->places2, false);
        a->reads = keep(&o->arena, reads.at, reads.len);
    }
    if (!same_bytes(a->known, known) || !same_bytes(a->declared, declared) || !same_bytes(a->envelopes, envelopes)) {
        write_rows(a->known, a->declared, a->envelopes, &o->places);
        write_rows(known, declared, envelopes, &o->places2);
        merge_rows(s, a, &o->places, &o->places2, true);
        a->declared = keep(&o->arena, declared.at, declared.len);
        a->known = same_bytes(known, declared) ? a->declared : keep(&o->arena, known.at, known.len);
        a->envelopes = keep(&o->arena, envelopes.at, envelopes.len);
    }
}

/* ---- Questions about rows ----------------------------------------------------------------------------------- */

void stet_numbers_release(stet_numbers *n) {
    stet_vec_release(n);
}

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

void stet_numbers_settle(stet_numbers *n) {
    if (n->len < 2)
        return;
    if (n->len > 1)
        qsort(n->at, n->len, sizeof *n->at, by_number);
    size_t to = 1;
    for (size_t i = 1; i < n->len; i++)
        if (n->at[i] != n->at[to - 1])
            n->at[to++] = n->at[i];
    n->len = to;
}

/* Rows of one table at a path, and below it (`below`). */
static stet_stmt *rows_at(stet_space *s, bool write, int64_t key, stet_pathref path, bool below) {
    struct stet_observe *o = stet_observe_of(s);
    stet_stmt *q;
    if (below)
        q = write ? stet_db_stmt(s->db,
                                 "SELECT action, flags, path FROM write_index WHERE key = ? AND path >= ? AND path < ?")
                  : stet_db_stmt(s->db,
                                 "SELECT action, flags, path FROM read_index WHERE key = ? AND path >= ? AND path < ?");
    else
        q = write ? stet_db_stmt(s->db, "SELECT action, flags, path FROM write_index WHERE key = ? AND path = ?")
                  : stet_db_stmt(s->db, "SELECT action, flags, path FROM read_index WHERE key = ? AND path = ?");
    stet_bind_int(q, 1, key);
    stet_bind_blob(q, 2, path.bytes, path.len);
    if (below) {
        stet_buf_clear(&o->buf2);
        stet_buf_add(&o->buf2, path.bytes, path.len);
        stet_buf_char(&o->buf2, (char)0xFF);
        stet_bind_blob(q, 3, o->buf2.data, o->buf2.len);
    }
    return q;
}

static stet_pathref row_path(stet_stmt *q) {
    size_t len;
    const char *bytes = stet_column_blob(q, 2, &len);
    return (stet_pathref){bytes ? bytes : "", len};
}

void stet_observe_readers_of(stet_space *s, int64_t key, const stet_change *change, stet_numbers *out) {
    stet_index_doc *d = stet_observe_doc(s, key);
    if (!d->wide) {
        for (size_t i = 0; i < d->reads.len; i++)
            if (stet_touches(change->path, change->kind, d->reads.at[i].path,
                             d->reads.at[i].flags & 1 ? STET_SHALLOW : STET_RECURSIVE))
                stet_numbers_add(out, d->reads.at[i].action);
        return;
    }
    /* Strict ancestors one by one, then the path and all below it as one range. */
    for (stet_pathref p = change->path; p.len;) {
        p = stet_path_parent(p);
        stet_stmt *q = rows_at(s, false, key, p, false);
        while (stet_step(q))
            if (stet_touches(change->path, change->kind, p, stet_column_int(q, 1) & 1 ? STET_SHALLOW : STET_RECURSIVE))
                stet_numbers_add(out, stet_column_int(q, 0));
    }
    stet_stmt *q = rows_at(s, false, key, change->path, true);
    while (stet_step(q))
        if (stet_touches(change->path, change->kind, row_path(q),
                         stet_column_int(q, 1) & 1 ? STET_SHALLOW : STET_RECURSIVE))
            stet_numbers_add(out, stet_column_int(q, 0));
}

static bool along(stet_pathref a, stet_pathref b) {
    return stet_path_is_prefix(a, b) || stet_path_is_prefix(b, a);
}

void stet_observe_readers_below(stet_space *s, int64_t key, stet_pathref path, stet_numbers *out) {
    stet_index_doc *d = stet_observe_doc(s, key);
    if (!d->wide) {
        for (size_t i = 0; i < d->reads.len; i++)
            if (along(path, d->reads.at[i].path))
                stet_numbers_add(out, d->reads.at[i].action);
        return;
    }
    for (stet_pathref p = path; p.len;) {
        p = stet_path_parent(p);
        stet_stmt *q = rows_at(s, false, key, p, false);
        while (stet_step(q))
            stet_numbers_add(out, stet_column_int(q, 0));
    }
    stet_stmt *q = rows_at(s, false, key, path, true);
    while (stet_step(q))
        stet_numbers_add(out, stet_column_int(q, 0));
}

void stet_observe_writers_of(stet_space *s, int64_t key, stet_pathref path, unsigned flags, stet_numbers *out) {
    stet_index_doc *d = stet_observe_doc(s, key);
    if (!d->wide) {
        for (size_t i = 0; i < d->writes.len; i++)
            if ((d->writes.at[i].flags & flags) && along(path, d->writes.at[i].path))
                stet_numbers_add(out, d->writes.at[i].action);
        return;
    }
    for (stet_pathref p = path; p.len;) {
        p = stet_path_parent(p);
        stet_stmt *q = rows_at(s, true, key, p, false);
        while (stet_step(q))
            if ((unsigned)stet_column_int(q, 1) & flags)
                stet_numbers_add(out, stet_column_int(q, 0));
    }
    stet_stmt *q = rows_at(s, true, key, path, true);
    while (stet_step(q))
        if ((unsigned)stet_column_int(q, 1) & flags)
            stet_numbers_add(out, stet_column_int(q, 0));
}

/* ---- Marks -------------------------------------------------------------------------------------------------- */

stet_pending *stet_observe_pending(stet_space *s, int64_t action, int64_t branch) {
    struct stet_observe *o = stet_observe_of(s);
    stet_slot *slot = stet_map_get(&o->by_number, &action, sizeof action);
    if (slot)
        return stet_observe_pending_of(s, slot->p);
    slot = stet_map_get(&o->pending_of, &action, sizeof action);
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
    /* It may have been met by number alone, earlier in the transaction. */
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
    if (p->set && p->state == STET_UNKNOWN && state == STET_DIRTY)
        return; /* unknown is the stricter one */
    if (p->set && p->state == state && p->seq == seq)
        return; /* one cause of a commit is enough */
    p->set = true;
    p->state = state;
    p->reason = reason;
    p->seq = seq;
    p->doc = doc;
    if (change) {
        p->path = (stet_pathref){keep(&o->tx_arena, change->path.bytes, change->path.len).at, change->path.len};
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
                    stet_observe_mark(s, o->scratch.at[n], branch, STET_DIRTY, STET_REASON_OVERWRITTEN, seq, at[i].doc,
                                      &at[i].at[k]);
            stet_vec_clear(&o->scratch);
            stet_observe_readers_of(s, key, &at[i].at[k], &o->scratch);
            for (size_t n = 0; n < o->scratch.len; n++)
                stet_observe_mark(s, o->scratch.at[n], branch, STET_DIRTY, STET_REASON_CHANGED, seq, at[i].doc,
                                  &at[i].at[k]);
        }
    }
    if (o->has_mirrors)
        stet_observe_owe(s, branch, seq, at, len);
}

/* ---- Writing it all ----------------------------------------------------------------------------------------- */

static int by_op(const void *a, const void *b) {
    const stet_row_op *x = a, *y = b;
    if (x->write != y->write)
        return x->write ? 1 : -1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    int order = stet_path_compare(x->path, y->path);
    if (order)
        return order;
    if (x->action != y->action)
        return x->action < y->action ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int by_action(const void *a, const void *b) {
    const stet_pending *x = a, *y = b;
    return x->action < y->action ? -1 : x->action > y->action;
}

void stet_observe_flush(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    if (o->ops.len > 1)
        qsort(o->ops.at, o->ops.len, sizeof *o->ops.at, by_op);
    for (size_t i = 0; i < o->ops.len; i++) {
        const stet_row_op *op = &o->ops.at[i];
        if (i + 1 < o->ops.len) { /* only the last word about a row counts */
            const stet_row_op *next = op + 1;
            if (next->write == op->write && next->key == op->key && next->action == op->action &&
                stet_path_compare(next->path, op->path) == 0)
                continue;
        }
        row_sql(s, op);
    }
    if (o->pending.len > 1)
        qsort(o->pending.at, o->pending.len, sizeof *o->pending.at, by_action);
    for (size_t i = 0; i < o->pending.len; i++) {
        const stet_pending *p = &o->pending.at[i];
        if (p->known && p->known->unborn) {
            insert_action(s, p->known, p->generation, p->blob);
            continue;
        }
        if (!p->store)
            continue;
        stet_stmt *q = stet_db_stmt(s->db, "UPDATE action SET generation = ?, observation = ? WHERE action = ?");
        stet_bind_int(q, 1, p->generation);
        stet_bind_blob(q, 2, p->blob.at, p->blob.len);
        stet_bind_int(q, 3, p->action);
        stet_run(q);
    }
    for (size_t i = 0; i < o->pending.len; i++) {
        const stet_pending *p = &o->pending.at[i];
        stet_known_action *a = p->known;
        if (p->clear && (p->set || !a || a->marked)) {
            stet_stmt *q = stet_db_stmt(s->db, "DELETE FROM mark WHERE action = ? AND space = 0");
            stet_bind_int(q, 1, p->action);
            stet_run(q);
            o->marks_cleared += stet_db_changes(s->db);
            if (a && !p->set)
                a->marked = a->foreign_marked;
        }
        if (p->set) {
            stet_stmt *q = stet_db_stmt(
                s->db, "INSERT INTO mark(action, space, branch, state, reason, seq, doc, path, kind)"
                       " VALUES(?, 0, ?, ?, ?, ?, ?, ?, ?)"
                       " ON CONFLICT(action, space) DO UPDATE SET state = excluded.state, reason = excluded.reason,"
                       " seq = excluded.seq, doc = excluded.doc, path = excluded.path, kind = excluded.kind"
                       " WHERE excluded.state >= state");
            stet_bind_int(q, 1, p->action);
            stet_bind_int(q, 2, p->branch);
            stet_bind_int(q, 3, p->state);
            stet_bind_int(q, 4, p->reason);
            stet_bind_int(q, 5, p->seq);
            if (p->doc)
                stet_bind_int(q, 6, p->doc);
            else
                stet_bind_null(q, 6);
            stet_bind_blob(q, 7, p->path.bytes, p->path.len);
            stet_bind_int(q, 8, p->kind);
            stet_run(q);
            o->marks_set++;
            if (a)
                a->marked = true;
        }
    }
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
    static const char *const statements[] = {"DELETE FROM mark WHERE action = ?",
                                             "UPDATE action SET observation = NULL WHERE action = ?",
                                             "DELETE FROM action WHERE action = ?"};
    for (size_t i = 0; i < (row_too ? 3u : 2u); i++) {
        q = stet_db_stmt(s->db, statements[i]);
        stet_bind_int(q, 1, action);
        stet_run(q);
    }
    stet_observe_leave_all(s, action);
    a->observed = a->marked = false;
    if (row_too)
        stet_observe_of(s)->fresh = false; /* the number may be given again: the cache starts over */
}

stet_status stet_observe_begin(stet_space *s, bool *begun, stet_error *err) {
    *begun = !stet_db_in_transaction(s->db);
    if (*begun) {
        stet_status st = stet_db_begin_write(s->db, err);
        if (st != STET_OK)
            return st;
    }
    stet_observe_fresh(s);
    stet_observe_of(s)->max_doc = 0; /* what is begun here may name documents that no commit has seen */
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
