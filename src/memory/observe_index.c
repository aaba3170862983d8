/* observe_index.c - which actions read a document and which write it: rows of read_index and write_index, those that
 * wait for the end of the transaction included, and the questions about them. */
#include <stdlib.h>

#include "memory/observe_internal.h"

static void load_rows(stet_space *s, const char *sql, int64_t key, stet_index_doc *d, bool write) {
    struct stet_observe *o = stet_observe_of(s);
    stet_stmt *q = stet_db_stmt(s->db, sql);
    stet_bind_int(q, 1, key);
    stet_bind_int(q, 2, STET_DOC_ROWS + 1);
    while (stet_step(q)) {
        size_t len;
        const void *path = stet_column_blob(q, 0, &len);
        stet_index_row r = {
            {stet_bytes_keep(&o->arena, path, len).at, len}, stet_column_int(q, 1), (unsigned)stet_column_int(q, 2)};
        if (write)
            *stet_arena_add(&o->arena, &d->writes) = r;
        else
            *stet_arena_add(&o->arena, &d->reads) = r;
    }
}

stet_index_doc *stet_observe_doc(stet_space *s, int64_t key) {
    struct stet_observe *o = stet_observe_of(s);
    if (o->last_doc && o->last_key == key) /* writers and readers of one document are asked for one after the other */
        return o->last_doc;
    void **place = stet_blocks_at(&o->docs, key, &o->arena);
    o->last_key = key;
    if (*place)
        return o->last_doc = *place;
    stet_index_doc *d = o->last_doc = *place = stet_arena_zero(&o->arena, sizeof *d);
    if (o->first_new_doc && (key & (((int64_t)1 << 40) - 1)) >= o->first_new_doc)
        return d;
    load_rows(s, "SELECT path, action, flags FROM read_index WHERE key = ? LIMIT ?", key, d, false);
    load_rows(s, "SELECT path, action, flags FROM write_index WHERE key = ? LIMIT ?", key, d, true);
    d->wide = d->reads.len > STET_DOC_ROWS || d->writes.len > STET_DOC_ROWS;
    return d;
}

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

static bool same_row(const stet_row_op *x, const stet_row_op *y) {
    return x->action == y->action && x->key == y->key && x->write == y->write &&
           stet_path_compare(x->path, y->path) == 0;
}

static void delete_row(stet_space *s, const stet_row_op *op) {
    stet_stmt *q = op->write ? stet_db_stmt(s->db, "DELETE FROM write_index WHERE key = ? AND path = ? AND action = ?")
                             : stet_db_stmt(s->db, "DELETE FROM read_index WHERE key = ? AND path = ? AND action = ?");
    stet_bind_int(q, 1, op->key);
    stet_bind_blob(q, 2, op->path.bytes, op->path.len);
    stet_bind_int(q, 3, op->action);
    stet_run(q);
}

typedef struct row_walk {
    const stet_row_op *at, *end;
} row_walk;

static bool next_row(void *ctx, stet_row *out) {
    row_walk *w = ctx;
    if (w->at == w->end)
        return false;
    const stet_row_op *op = w->at++;
    stet_row_int(out, 0, op->key);
    stet_row_blob(out, 1, op->path.bytes, op->path.len);
    stet_row_int(out, 2, op->action);
    stet_row_int(out, 3, op->flags);
    return true;
}

void stet_observe_write_rows(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    o->ops_round++;
    if (o->ops.len > 1)
        qsort(o->ops.at, o->ops.len, sizeof *o->ops.at, by_op);
    size_t adds = 0, reads = 0;
    for (size_t i = 0; i < o->ops.len; i++) {
        const stet_row_op *op = &o->ops.at[i];
        if (i + 1 < o->ops.len && same_row(op, op + 1))
            continue; /* only the last word about a row counts */
        o->now.rows++;
        if (!op->add) {
            delete_row(s, op);
            continue;
        }
        reads += !op->write;
        o->ops.at[adds++] = *op;
    }
    row_walk w = {o->ops.at, o->ops.at + reads};
    if (reads)
        stet_db_rows(s->db, "INSERT OR REPLACE INTO read_index(key, path, action, flags) SELECT a, b, c, d FROM given",
                     next_row, &w);
    w.end = o->ops.at + adds;
    if (adds > reads)
        stet_db_rows(s->db, "INSERT OR REPLACE INTO write_index(key, path, action, flags) SELECT a, b, c, d FROM given",
                     next_row, &w);
    stet_vec_clear(&o->ops);
    o->op_order = 0;
}

/* `added`: it is known not to be there. */
static void row(stet_space *s, int64_t key, stet_pathref path, int64_t action, unsigned flags, bool add, bool write,
                bool added) {
    struct stet_observe *o = stet_observe_of(s);
    stet_index_doc *d = stet_observe_doc(s, key);
    path.bytes = stet_bytes_keep(&o->tx_arena, path.bytes, path.len).at;
    *stet_vec_add(&o->ops) = (stet_row_op){key, action, path, flags, add, write, o->op_order++};
    o->reads_more = o->reads_more || (add && !write);
    if (d->wide) {
        d->waiting = o->ops_round;
        return;
    }
    stet_index_row **at = write ? &d->writes.at : &d->reads.at;
    size_t *len = write ? &d->writes.len : &d->reads.len;
    for (size_t i = 0; i < *len && !added; i++)
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
        d->waiting = o->ops_round;
        return;
    }
    stet_index_row r = {{stet_bytes_keep(&o->arena, path.bytes, path.len).at, path.len}, action, flags};
    if (write)
        *stet_arena_add(&o->arena, &d->writes) = r;
    else
        *stet_arena_add(&o->arena, &d->reads) = r;
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
            row(s, stet_space_key(a->branch, p->doc), p->path, a->action, 0, false, write, false);
            continue;
        }
        const stet_place *p = &is->at[k++];
        unsigned flags = write ? (unsigned)p->seq : p->flag;
        bool same = order == 0 && (write ? was->at[i].seq == p->seq : was->at[i].flag == p->flag);
        i += order == 0;
        if (!same)
            row(s, stet_space_key(a->branch, p->doc), p->path, a->action, flags, true, write, a->unborn != NULL);
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

/* A document that is asked about: what SQL says of a wide one is then all there is. */
static const stet_index_doc *asked(stet_space *s, int64_t key) {
    const stet_index_doc *d = stet_observe_doc(s, key);
    if (d->wide && d->waiting == stet_observe_of(s)->ops_round)
        stet_observe_write_rows(s);
    return d;
}

void stet_observe_readers_of(stet_space *s, int64_t key, const stet_change *change, stet_numbers *out) {
    const stet_index_doc *d = asked(s, key);
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
    const stet_index_doc *d = asked(s, key);
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
    const stet_index_doc *d = asked(s, key);
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
