/* observe_index.c - which actions read a document and which write it: the rows of place_index.
 *
 * Questions about them include rows that wait for the end of the transaction.
 */

#include <stdlib.h>

#include "memory/observe_internal.h"

bool stet_observe_block_row(stet_stmt *q, stet_block_row *out) {
    *out = (stet_block_row){.key = stet_column_int(q, 0), .block = stet_column_int(q, 2)};
    out->path.bytes = stet_column_blob(q, 1, &out->path.len);
    if (!out->path.bytes)
        out->path.bytes = "";
    for (int i = 0; i < STET_BIT_KINDS; i++)
        out->bits[i] = (uint64_t)stet_column_int(q, 3 + i);
    return stet_column_sound(q, 0, STET_BLOCK_SUMMED);
}

static bool take_block_row(stet_space *s, stet_stmt *q, stet_block_row *out) {
    if (stet_observe_block_row(q, out))
        return true;
    stet_observe_damage(s, "a row of readers and writers");
    stet_reset(q);
    return false;
}

bool stet_block_next(const stet_block_row *r, bool write, unsigned *at, int64_t *action, unsigned *flags) {
    const uint64_t *b = r->bits;
    uint64_t left = write ? b[STET_BIT_KNOWN] | b[STET_BIT_DECLARED] | b[STET_BIT_ENVELOPE]
                          : b[STET_BIT_READ] | b[STET_BIT_SHALLOW];
    left = *at < STET_BLOCK_ACTIONS ? left >> *at << *at : 0;
    if (!left)
        return false;
    unsigned bit = (unsigned)__builtin_ctzll(left);
    *at = bit + 1;
    *action = (int64_t)((uint64_t)r->block * STET_BLOCK_ACTIONS + bit);
    if (write)
        *flags = (unsigned)((b[STET_BIT_KNOWN] >> bit & 1) * STET_WRITE_KNOWN |
                            (b[STET_BIT_DECLARED] >> bit & 1) * STET_WRITE_DECLARED |
                            (b[STET_BIT_ENVELOPE] >> bit & 1) * STET_WRITE_ENVELOPE);
    else
        /* Both flags, which stet never writes: choose the one that more changes touch. */
        *flags = !(b[STET_BIT_READ] >> bit & 1);
    return true;
}

/* Adds the readers (writers) in a row to those of a document. */
static void take_row(struct stet_observe *o, const stet_block_row *r, stet_index_doc *d, bool write) {
    stet_index_row row = {.path = {NULL, r->path.len}};
    for (unsigned at = 0; stet_block_next(r, write, &at, &row.action, &row.flags);) {
        if (!row.path.bytes)
            row.path.bytes = stet_bytes_keep(&o->arena, r->path.bytes, r->path.len).at;
        if (write)
            *stet_arena_add(&o->arena, &d->writes) = row;
        else
            *stet_arena_add(&o->arena, &d->reads) = row;
    }
}

stet_index_doc *stet_observe_doc(stet_space *s, int64_t key) {
    struct stet_observe *o = stet_observe_of(s);
    if (o->last_doc && o->last_key == key) /* writers and readers of a document are looked up one after the other */
        return o->last_doc;
    void **place = stet_blocks_at(&o->docs, key, &o->arena);
    o->last_key = key;
    if (*place)
        return o->last_doc = *place;
    stet_index_doc *d = o->last_doc = *place = stet_arena_zero(&o->arena, sizeof *d);
    if (o->first_new_doc && (key & (((int64_t)1 << 40) - 1)) >= o->first_new_doc)
        return d;
    if (!stet_observe_places_fit(s, key))
        return d;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT " STET_BLOCK_COLUMNS ", sum FROM place_index WHERE key = ?");
    stet_bind_int(q, 1, key);
    stet_block_row r;
    while (stet_step(q) && take_block_row(s, q, &r)) {
        take_row(o, &r, d, false);
        take_row(o, &r, d, true);
        if (d->reads.len <= STET_DOC_ROWS && d->writes.len <= STET_DOC_ROWS)
            continue;
        d->wide = true;
        stet_reset(q);
        break;
    }
    return d;
}

/* Orders operations by block, and for one action by reads first. */
static int by_op(const void *a, const void *b) {
    const stet_row_op *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    int order = stet_path_compare(x->path, y->path);
    if (order)
        return order;
    if (x->action != y->action)
        return x->action < y->action ? -1 : 1;
    if (x->write != y->write)
        return x->write ? 1 : -1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Sorts by by_op. There are several operations for each action, and sorting by comparison took a twentieth of the time
 * to store an action. They already come in the order of actions and differ in the document. So they are distributed by
 * the digits of the document, which keeps that order, and little is left to sort within one document. */
static void sort_ops(struct stet_observe *o) {
    enum { DIGIT = 11, VALUES = 1 << DIGIT, FEW = 64 };
    size_t len = o->ops.len;
    uint64_t most = 0;
    for (size_t i = 0; i < len; i++)
        most |= (uint64_t)o->ops.at[i].key;
    if (len < FEW || len > UINT32_MAX) {
        stet_sort(o->ops.at, len, sizeof *o->ops.at, by_op);
        return;
    }
    uint32_t *from = stet_arena_alloc(&o->tx_arena, 2 * len * sizeof *from), *to = from + len;
    uint32_t *count = stet_arena_alloc(&o->tx_arena, VALUES * sizeof *count);
    for (size_t i = 0; i < len; i++)
        from[i] = (uint32_t)i;
    for (int shift = 0; shift < 64 && most >> shift; shift += DIGIT) {
        memset(count, 0, VALUES * sizeof *count);
        for (size_t i = 0; i < len; i++)
            count[(uint64_t)o->ops.at[i].key >> shift & (VALUES - 1)]++;
        uint32_t before = 0;
        for (size_t i = 0; i < VALUES; i++) {
            uint32_t n = count[i];
            count[i] = before;
            before += n;
        }
        for (size_t i = 0; i < len; i++)
            to[count[(uint64_t)o->ops.at[from[i]].key >> shift & (VALUES - 1)]++] = from[i];
        uint32_t *other = from;
        from = to;
        to = other;
    }
    stet_row_op *sorted = stet_arena_alloc(&o->tx_arena, len * sizeof *sorted);
    for (size_t i = 0; i < len; i++)
        sorted[i] = o->ops.at[from[i]];
    memcpy(o->ops.at, sorted, len * sizeof *sorted);
    for (size_t i = 0, end; i < len; i = end) {
        for (end = i + 1; end < len && sorted[end].key == sorted[i].key;)
            end++;
        stet_sort(o->ops.at + i, end - i, sizeof *sorted, by_op);
    }
}

static bool same_block(const stet_row_op *x, const stet_row_op *y) {
    return x->key == y->key && stet_block_of(x->action) == stet_block_of(y->action) &&
           stet_path_compare(x->path, y->path) == 0;
}

/* The checksum of a row whose bits become `bits`. A damaged row stays damaged: adding to it must not make it look
 * right. */
#define SUM_AFTER(bits)                                                                                                \
    "CASE WHEN sum = " STET_BLOCK_SUM " THEN row_sum(key, path, block, " bits ") ELSE ~" STET_BLOCK_SUM " END"

/* Clears bits of a row that may exist, and removes the row if none is left. */
static void clear_bits(stet_space *s, const stet_block_row *r, uint64_t reads, uint64_t writes, bool last) {
    stet_stmt *q =
        stet_db_stmt(s->db, "UPDATE place_index SET reads = reads & ?4, shallow = shallow & ?4,"
                            " known = known & ?5, declared = declared & ?5, envelopes = envelopes & ?5,"
                            " sum = " SUM_AFTER("reads & ?4, shallow & ?4, known & ?5, declared & ?5,"
                                                " envelopes & ?5") " WHERE key = ?1 AND path = ?2 AND block = ?3");
    for (int pass = 0; pass < (last ? 2 : 1); pass++) {
        stet_bind_int(q, 1, r->key);
        stet_bind_blob(q, 2, r->path.bytes, r->path.len);
        stet_bind_int(q, 3, r->block);
        if (pass == 0) {
            stet_bind_int(q, 4, (int64_t)~reads);
            stet_bind_int(q, 5, (int64_t)~writes);
        }
        stet_run(q);
        if (pass == 0 && last)
            q = stet_db_stmt(s->db, "DELETE FROM place_index WHERE key = ? AND path = ? AND block = ?"
                                    " AND (reads | shallow | known | declared | envelopes) = 0");
    }
}

static void set_bits(stet_block_row *r, const stet_row_op *op) {
    uint64_t bit = stet_block_bit(op->action);
    if (!op->write) {
        r->bits[op->flags & 1 ? STET_BIT_SHALLOW : STET_BIT_READ] |= bit;
        return;
    }
    r->bits[STET_BIT_KNOWN] |= op->flags & STET_WRITE_KNOWN ? bit : 0;
    r->bits[STET_BIT_DECLARED] |= op->flags & STET_WRITE_DECLARED ? bit : 0;
    r->bits[STET_BIT_ENVELOPE] |= op->flags & STET_WRITE_ENVELOPE ? bit : 0;
}

typedef struct row_walk {
    const stet_block_row *at, *end;
} row_walk;

static bool next_row(void *ctx, stet_row *out) {
    row_walk *w = ctx;
    if (w->at == w->end)
        return false;
    const stet_block_row *r = w->at++;
    stet_row_int(out, 0, r->key);
    stet_row_blob(out, 1, r->path.bytes, r->path.len);
    stet_row_int(out, 2, r->block);
    for (int i = 0; i < STET_BIT_KINDS; i++)
        stet_row_int(out, 3 + i, (int64_t)r->bits[i]);
    stet_row_sum(out, STET_BLOCK_SUMMED);
    return true;
}

/* The buckets of the waiting rows, which are sorted. Before the rows are written, each bucket has to match, so that a
 * missing row is not covered up; afterwards its digest is computed again. */
static bool buckets_fit(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    bool fit = true;
    for (size_t i = 0; i < o->ops.len && fit; i++)
        if ((i == 0 || o->ops.at[i].key >> STET_BUCKET != o->ops.at[i - 1].key >> STET_BUCKET) &&
            !(o->first_new_doc && (o->ops.at[i].key >> STET_BUCKET << STET_BUCKET & (((int64_t)1 << 40) - 1)) >=
                                      o->first_new_doc)) /* all of its documents are new, and had no rows */
            fit = stet_observe_places_fit(s, o->ops.at[i].key);
    return fit;
}

static void renew_buckets(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    for (size_t i = 0; i < o->ops.len; i++)
        if (i == 0 || o->ops.at[i].key >> STET_BUCKET != o->ops.at[i - 1].key >> STET_BUCKET)
            stet_observe_places_changed(s, o->ops.at[i].key >> STET_BUCKET);
}

void stet_observe_write_rows(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    o->ops_round++;
    sort_ops(o);
    stet_vec_clear(&o->block_rows);
    if (o->ops.len)
        stet_observe_begin_places(s);
    if (!buckets_fit(s))
        return; /* the failure sticks: nothing of this transaction is kept */
    const stet_row_op *end = o->ops.at + o->ops.len;
    for (const stet_row_op *first = o->ops.at, *op = first; first < end; first = op) {
        stet_block_row r = {.key = first->key, .block = stet_block_of(first->action), .path = first->path};
        uint64_t clear[2] = {0};
        bool adds = false;
        for (; op < end && same_block(first, op); op++) {
            uint64_t bit = stet_block_bit(op->action);
            if (op->replaces || !op->add)
                clear[op->write] |= bit;
            bool last =
                op + 1 == end || op[1].action != op->action || op[1].write != op->write || !same_block(first, op + 1);
            if (!last)
                continue; /* only the last operation on a row counts */
            o->now.rows++;
            if (op->add)
                set_bits(&r, op);
            adds = adds || op->add;
        }
        if (clear[0] | clear[1])
            clear_bits(s, &r, clear[0], clear[1], !adds);
        if (adds)
            *stet_vec_add(&o->block_rows) = r;
    }
    row_walk w = {o->block_rows.at, o->block_rows.at + o->block_rows.len};
    if (o->block_rows.len)
        stet_db_rows(s->db,
                     "INSERT INTO place_index(" STET_BLOCK_COLUMNS ", sum)"
                     " SELECT a, b, c, d, e, f, g, h, i FROM given WHERE true ON CONFLICT(key, path, block) DO UPDATE"
                     " SET reads = reads | excluded.reads, shallow = shallow | excluded.shallow,"
                     " known = known | excluded.known, declared = declared | excluded.declared,"
                     " envelopes = envelopes | excluded.envelopes, sum ="
                     " " SUM_AFTER("reads | excluded.reads, shallow | excluded.shallow, known | excluded.known,"
                                   " declared | excluded.declared, envelopes | excluded.envelopes"),
                     next_row, &w);
    renew_buckets(s);
    stet_vec_clear(&o->ops);
    o->op_order = 0;
}

/* The path is in the arena of the cache. `added`: the row is known not to exist. */
static void row(stet_space *s, int64_t key, stet_pathref path, int64_t action, unsigned flags, bool add, bool write,
                bool added) {
    struct stet_observe *o = stet_observe_of(s);
    stet_index_doc *d = stet_observe_doc(s, key);
    *stet_vec_add(&o->ops) = (stet_row_op){key, action, path, flags, add, write, !added, o->op_order++};
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
    stet_index_row r = {path, action, flags};
    if (write)
        *stet_arena_add(&o->arena, &d->writes) = r;
    else
        *stet_arena_add(&o->arena, &d->reads) = r;
}

static bool same_bytes(stet_bytes a, stet_bytes b) {
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

/* Adds the places of a packed set with these flags. Flags of a place that is already present are combined. */
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
    bool same = same_bytes(known, declared); /* as for most actions */
    if (!gather(declared, STET_WRITE_DECLARED | (same ? STET_WRITE_KNOWN : 0), out) ||
        (!same && !gather(known, STET_WRITE_KNOWN, out)) || !gather(envelopes, STET_WRITE_ENVELOPE, out))
        return; /* cannot happen: it was packed by this process, or checked when it was decoded */
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

/* Compares two sorted lists of places and adds one row operation for each difference. */
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
        /* An action without an observation, or with a damaged one, may have left rows behind. */
        if (!same)
            row(s, stet_space_key(a->branch, p->doc), p->path, a->action, flags, true, write,
                order > 0 && (a->unborn || a->observed));
    }
}

void stet_observe_reindex(stet_space *s, stet_known_action *a, stet_bytes reads, stet_bytes known, stet_bytes declared,
                          stet_bytes envelopes) {
    struct stet_observe *o = stet_observe_of(s);
    /* Waiting rows and cached rows point into what is kept of the action. */
    if (!same_bytes(a->reads, reads)) {
        reads = stet_bytes_keep(&o->arena, reads.at, reads.len);
        stet_vec_clear(&o->places);
        stet_vec_clear(&o->places2);
        if (stet_places_unpack(a->reads.at, a->reads.len, &o->places) &&
            stet_places_unpack(reads.at, reads.len, &o->places2))
            merge_rows(s, a, &o->places, &o->places2, false);
        a->reads = reads;
    }
    if (!same_bytes(a->known, known) || !same_bytes(a->declared, declared) || !same_bytes(a->envelopes, envelopes)) {
        bool same = same_bytes(known, declared);
        declared = stet_bytes_keep(&o->arena, declared.at, declared.len);
        known = same ? declared : stet_bytes_keep(&o->arena, known.at, known.len);
        envelopes = stet_bytes_keep(&o->arena, envelopes.at, envelopes.len);
        write_rows(a->known, a->declared, a->envelopes, &o->places);
        write_rows(known, declared, envelopes, &o->places2);
        merge_rows(s, a, &o->places, &o->places2, true);
        a->known = known;
        a->declared = declared;
        a->envelopes = envelopes;
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

/* Rows at a path, and below it (`below`). */
static stet_stmt *rows_at(stet_space *s, int64_t key, stet_pathref path, bool below) {
    struct stet_observe *o = stet_observe_of(s);
    stet_stmt *q =
        below ? stet_db_stmt(s->db, "SELECT " STET_BLOCK_COLUMNS
                                    ", sum FROM place_index WHERE key = ? AND path >= ? AND path < ?")
              : stet_db_stmt(s->db, "SELECT " STET_BLOCK_COLUMNS ", sum FROM place_index WHERE key = ? AND path = ?");
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

/* Adds the readers in a row: all (`change` NULL), or those that the change touches. */
static void add_readers(const stet_block_row *r, const stet_change *change, stet_numbers *out) {
    bool touched[2] = {!change || stet_touches(change->path, change->kind, r->path, STET_RECURSIVE),
                       !change || stet_touches(change->path, change->kind, r->path, STET_SHALLOW)};
    int64_t action;
    unsigned flags;
    for (unsigned at = 0; stet_block_next(r, false, &at, &action, &flags);)
        if (touched[flags])
            stet_numbers_add(out, action);
}

static void add_writers(const stet_block_row *r, unsigned wanted, stet_numbers *out) {
    int64_t action;
    unsigned flags;
    for (unsigned at = 0; stet_block_next(r, true, &at, &action, &flags);)
        if (flags & wanted)
            stet_numbers_add(out, action);
}

/* Prepares a document for a question: for one with many rows, SQL gives the complete answer afterwards. */
static const stet_index_doc *asked(stet_space *s, int64_t key) {
    const stet_index_doc *d = stet_observe_doc(s, key);
    if (d->wide && d->waiting == stet_observe_of(s)->ops_round)
        stet_observe_write_rows(s);
    return d;
}

/* The rows of a document with many rows at strict ancestors of a path, one by one, then those at the path and below it
 * as one range. */
typedef struct rows_along {
    stet_space *s;
    int64_t key;
    stet_pathref path, up;
    stet_stmt *q;
    bool below;
} rows_along;

static bool next_along(rows_along *w, stet_block_row *out) {
    for (;;) {
        if (w->q && stet_step(w->q))
            return take_block_row(w->s, w->q, out);
        if (w->below)
            return false;
        w->below = w->up.len == 0;
        if (!w->below)
            w->up = stet_path_parent(w->up);
        w->q = rows_at(w->s, w->key, w->below ? w->path : w->up, w->below);
    }
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
    stet_block_row r;
    for (rows_along w = {.s = s, .key = key, .path = change->path, .up = change->path}; next_along(&w, &r);)
        add_readers(&r, change, out);
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
    stet_block_row r;
    for (rows_along w = {.s = s, .key = key, .path = path, .up = path}; next_along(&w, &r);)
        add_readers(&r, NULL, out);
}

void stet_observe_writers_of(stet_space *s, int64_t key, stet_pathref path, unsigned flags, stet_numbers *out) {
    const stet_index_doc *d = asked(s, key);
    if (!d->wide) {
        for (size_t i = 0; i < d->writes.len; i++)
            if ((d->writes.at[i].flags & flags) && along(path, d->writes.at[i].path))
                stet_numbers_add(out, d->writes.at[i].action);
        return;
    }
    stet_block_row r;
    for (rows_along w = {.s = s, .key = key, .path = path, .up = path}; next_along(&w, &r);)
        add_writers(&r, flags, out);
}
