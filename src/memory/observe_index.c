/* observe_index.c - which actions read a document and which write it: rows of read_index and write_index, those that
 * wait for the end of the transaction included, and the questions about them. */
#include <stdlib.h>

#include "memory/observe_internal.h"

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
            {stet_bytes_keep(&o->arena, path, len).at, len}, stet_column_int(q, 1), (unsigned)stet_column_int(q, 2)};
    }
    q = stet_db_stmt(s->db, "SELECT path, action, flags FROM write_index WHERE key = ? LIMIT ?");
    stet_bind_int(q, 1, key);
    stet_bind_int(q, 2, STET_DOC_ROWS + 1);
    while (stet_step(q)) {
        size_t len;
        const void *path = stet_column_blob(q, 0, &len);
        *stet_vec_add(&d->writes) = (stet_index_row){
            {stet_bytes_keep(&o->arena, path, len).at, len}, stet_column_int(q, 1), (unsigned)stet_column_int(q, 2)};
    }
    o->doc_bytes += (d->reads.len + d->writes.len) * sizeof(stet_index_row);
    if (d->reads.len > STET_DOC_ROWS || d->writes.len > STET_DOC_ROWS) {
        d->wide = true;
        stet_vec_release(&d->reads);
        stet_vec_release(&d->writes);
    }
    return d;
}

void stet_observe_row_now(stet_space *s, const stet_row_op *op) {
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
    stet_observe_of(s)->now.rows++;
}

/* The pending rows of one document go to SQL now: it has become wide, and questions about it go there. */
static void spill(stet_space *s, int64_t key) {
    struct stet_observe *o = stet_observe_of(s);
    size_t to = 0;
    for (size_t i = 0; i < o->ops.len; i++) {
        if (o->ops.at[i].key == key)
            stet_observe_row_now(s, &o->ops.at[i]);
        else
            o->ops.at[to++] = o->ops.at[i];
    }
    o->ops.len = to;
}

static void row(stet_space *s, int64_t key, stet_pathref path, int64_t action, unsigned flags, bool add, bool write) {
    struct stet_observe *o = stet_observe_of(s);
    stet_index_doc *d = stet_observe_doc(s, key);
    stet_row_op op = {key, action, path, flags, add, write, o->op_order++};
    o->reads_more = o->reads_more || (add && !write);
    if (d->wide) {
        stet_observe_row_now(s, &op);
        return;
    }
    op.path.bytes = stet_bytes_keep(&o->tx_arena, path.bytes, path.len).at;
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
    stet_index_row r = {{stet_bytes_keep(&o->arena, path.bytes, path.len).at, path.len}, action, flags};
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
        a->reads = stet_bytes_keep(&o->arena, reads.at, reads.len);
    }
    if (!same_bytes(a->known, known) || !same_bytes(a->declared, declared) || !same_bytes(a->envelopes, envelopes)) {
        write_rows(a->known, a->declared, a->envelopes, &o->places);
        write_rows(known, declared, envelopes, &o->places2);
        merge_rows(s, a, &o->places, &o->places2, true);
        a->declared = stet_bytes_keep(&o->arena, declared.at, declared.len);
        a->known = same_bytes(known, declared) ? a->declared : stet_bytes_keep(&o->arena, known.at, known.len);
        a->envelopes = stet_bytes_keep(&o->arena, envelopes.at, envelopes.len);
    }
}

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
