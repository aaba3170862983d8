/* tx.c - what a transaction has read and written so far. commit.c commits it.
 *
 * A document that is touched is loaded once, as of the snapshot (in a group: as of the overlay at that moment).
 * `before` is what was there, `after` what the transaction has made of it. Writes are kept as operations too, because
 * at commit they are applied to what is there then.
 */

#include "memory/commit.h"
#include "memory/internal.h"

void *stet_arena_more(stet_arena *a, const void *at, size_t *cap, size_t size) {
    size_t more = *cap ? *cap * 2 : 2;
    void *grown = stet_arena_alloc(a, more * size);
    if (*cap)
        memcpy(grown, at, *cap * size);
    *cap = more;
    return grown;
}

void stet_sort(void *at, size_t len, size_t size, int (*order)(const void *a, const void *b)) {
    const char *p = at;
    for (size_t i = 1; i < len; i++)
        if (order(p + (i - 1) * size, p + i * size) > 0) {
            qsort(at, len, size, order);
            return;
        }
}

stet_tx_memory *stet_tx_memory_new(stet_group *g) {
    stet_tx_memory *m = g ? g->spare : NULL;
    if (m)
        g->spare = NULL;
    else
        m = stet_alloc_zero(sizeof *m);
    m->group = g;
    m->users = 1;
    return m;
}

void stet_tx_memory_leave(stet_tx_memory *m) {
    enum { SPARE_MAX = 64 << 20 };
    if (--m->users)
        return;
    if (m->group && !m->group->spare && m->arena.total <= SPARE_MAX) {
        stet_arena_rewind(&m->arena);
        m->group->spare = m;
        return;
    }
    stet_arena_release(&m->arena);
    free(m);
}

stet_tx *stet_tx_new(stet_space *s, int64_t branch, int64_t snapshot, stet_group *g, stet_tx_memory *m) {
    stet_tx *tx = stet_arena_zero(&m->arena, sizeof *tx);
    tx->memory = m;
    tx->arena = &m->arena;
    tx->space = s;
    tx->branch = branch;
    tx->group = g;
    *stet_arena_add(tx->arena, &tx->views) = (stet_tx_view){s, snapshot};
    return tx;
}

static void drop_ops(stet_tx_doc *d) {
    for (size_t i = 0; i < d->ops.len; i++)
        stet_value_release(d->ops.at[i].value);
    d->ops.len = 0;
}

static void free_doc(stet_tx_doc *d) {
    stet_value_release(d->before);
    stet_value_release(d->after);
    drop_ops(d);
}

void stet_tx_withhold(stet_tx *tx) {
    if (!tx->observation || tx->observation->run != STET_RUN_DEPENDENCIES)
        return;
    for (size_t i = 0; i < tx->docs.len; i++) {
        stet_tx_doc *d = tx->docs.at[i];
        if (d->write == STET_TX_NONE)
            continue;
        drop_ops(d);
        stet_value_release(d->after);
        d->after = stet_value_null();
        d->after_exists = d->changes_known = false;
        d->write = STET_TX_NONE;
    }
}

void stet_tx_free(stet_tx *tx) {
    for (size_t i = 0; i < tx->docs.len; i++)
        free_doc(tx->docs.at[i]);
    stet_map_release(&tx->index);
    stet_map_release(&tx->reads);
    stet_buf_release(&tx->scratch);
    if (tx->why) {
        stet_error_clear(tx->why);
        free(tx->why);
    }
    if (tx->observation) {
        stet_value_release(tx->observation->options);
        stet_value_release(tx->observation->note);
    }
    stet_tx_memory_leave(tx->memory);
}

stet_status stet_tx_begin(stet_space *s, const char *branch, stet_tx **out, stet_error *err) {
    if (!s || !out)
        return stet_fail_null(err);
    int64_t number;
    stet_status st = stet_space_branch(s, branch, &number, err);
    if (st == STET_OK)
        st = stet_space_refresh(s, err);
    if (st == STET_OK)
        *out = stet_tx_new(s, number, s->known, NULL, stet_tx_memory_new(NULL));
    return st;
}

stet_status stet_tx_begin_at(stet_space *s, const char *branch, int64_t at, stet_tx **out, stet_error *err) {
    stet_status st = stet_tx_begin(s, branch, out, err);
    if (st == STET_OK && at >= 0)
        (*out)->views.at[0].snapshot = at;
    return st;
}

void stet_tx_abort(stet_tx *tx) {
    if (!tx)
        return;
    stet_group *g = stet_group_forget(tx);
    stet_tx_free(tx);
    stet_group_leave(g); /* last, because the transaction is in its memory */
}

stet_space *stet_tx_space(const stet_tx *tx) {
    return tx->space;
}

bool stet_tx_empty(const stet_tx *tx) {
    for (size_t i = 0; i < tx->docs.len; i++) {
        const stet_tx_doc *d = tx->docs.at[i];
        if (d->write != STET_TX_NONE &&
            (d->before_exists != d->after_exists || (d->after_exists && !stet_value_equal(d->before, d->after))))
            return false;
    }
    return true;
}

static stet_status view_of(stet_tx *tx, stet_space *from, size_t *index, stet_error *err) {
    for (size_t i = 0; i < tx->views.len; i++)
        if (tx->views.at[i].space == from) {
            *index = i;
            return STET_OK;
        }
    if (tx->views.len == 64)
        return stet_fail(err, STET_LIMIT, "a transaction reads from at most 64 spaces");
    stet_status st = stet_space_refresh(from, err);
    if (st != STET_OK)
        return st;
    *index = tx->views.len;
    *stet_arena_add(tx->arena, &tx->views) = (stet_tx_view){from, from->known};
    return STET_OK;
}

static stet_status load(stet_tx *tx, stet_tx_doc *d, int64_t snapshot, stet_error *err) {
    stet_space *s = d->space;
    d->seen = snapshot;
    if (tx->group && s == tx->space && stet_group_overlay(tx->group, d))
        return STET_OK;
    stet_cached *c = NULL;
    d->doc = stet_space_known_doc(s, &d->name);
    if (d->doc)
        c = stet_cache_find(s, stet_space_key(d->branch, d->doc));
    stet_head h = {0};
    if (d->doc == 0) { /* it was never written */
        stet_status st = stet_db_status(s->db, err);
        if (st != STET_OK)
            return st;
    } else if (c && !c->old && c->head.seq <= snapshot) { /* the common case, without a query */
        s->hits++;
        h.exists = c->head.exists;
        h.value = stet_value_retain(c->head.value);
    } else {
        bool begun;
        stet_status st = stet_space_enter(s, &begun, err);
        if (st != STET_OK)
            return st;
        stet_head_load(s, d->branch, d->doc, snapshot, &h);
        st = stet_space_leave(s, begun, STET_OK, err);
        if (st != STET_OK) {
            stet_head_release(&h);
            return st;
        }
    }
    d->before_exists = d->after_exists = h.exists;
    d->before = h.value;
    d->after = stet_value_retain(h.value);
    return STET_OK;
}

#define FEW_DOCS 8 /* up to this number a linear search is faster than a map */
#define DOC_KEY  (2 * STET_ID_MAX + 4)

static size_t doc_key(size_t view, const stet_docname *name, char out[DOC_KEY]) {
    const char *scope = name->scope ? name->scope : "";
    size_t id_len = strlen(name->id), scope_len = strlen(scope);
    out[0] = (char)view;
    memcpy(out + 1, name->id, id_len + 1);
    memcpy(out + id_len + 2, scope, scope_len);
    return id_len + scope_len + 2;
}

static bool find_doc(const stet_tx *tx, size_t view, const stet_docname *name, size_t *position) {
    const char *scope = name->scope ? name->scope : "";
    if (tx->docs.len <= FEW_DOCS) {
        const stet_space *s = tx->views.at[view].space;
        for (size_t i = 0; i < tx->docs.len; i++) {
            const stet_tx_doc *d = tx->docs.at[i];
            if (d->space == s && strcmp(d->name.id, name->id) == 0 && strcmp(d->name.scope, scope) == 0) {
                *position = i;
                return true;
            }
        }
        return false;
    }
    char key[DOC_KEY];
    if (strnlen(name->id, STET_ID_MAX + 1) > STET_ID_MAX || strnlen(scope, STET_ID_MAX + 1) > STET_ID_MAX)
        return false;
    stet_slot *slot = stet_map_get(&tx->index, key, doc_key(view, name, key));
    if (slot)
        *position = slot->n;
    return slot != NULL;
}

stet_tx_doc *stet_tx_find(const stet_tx *tx, size_t view, const stet_docname *name) {
    size_t position;
    return find_doc(tx, view, name, &position) ? tx->docs.at[position] : NULL;
}

static void index_doc(stet_tx *tx, size_t position) {
    const stet_tx_doc *d = tx->docs.at[position];
    size_t view = 0;
    while (tx->views.at[view].space != d->space)
        view++;
    char key[DOC_KEY];
    size_t len = doc_key(view, &d->name, key);
    stet_map_put(&tx->index, key, len, (stet_slot){.n = position});
}

static void add_doc(stet_tx *tx, stet_tx_doc *d) {
    *stet_arena_add(tx->arena, &tx->docs) = d;
    if (tx->docs.len == FEW_DOCS + 1)
        for (size_t i = 0; i < tx->docs.len; i++)
            index_doc(tx, i);
    else if (tx->docs.len > FEW_DOCS)
        index_doc(tx, tx->docs.len - 1);
}

/* Finds the document in the transaction, or loads it. */
static stet_status touch(stet_tx *tx, stet_space *from, const stet_docname *name, size_t *position, stet_error *err) {
    size_t view = 0;
    stet_status st;
    if (tx->ended)
        return stet_fail(err, STET_INVALID, "the transaction has ended");
    if (from && from != tx->space && (st = view_of(tx, from, &view, err)) != STET_OK)
        return st;
    if (name->id && find_doc(tx, view, name, position))
        return STET_OK;
    if ((st = stet_docname_check(name, err)) != STET_OK)
        return st;
    if (tx->docs.len == STET_COMMIT_MAX_DOCS)
        return stet_fail(err, STET_LIMIT, "a transaction touches at most %d documents", STET_COMMIT_MAX_DOCS);
    stet_tx_doc *d = stet_arena_zero(tx->arena, sizeof *d);
    d->space = tx->views.at[view].space;
    d->branch = view == 0 ? tx->branch : 0;
    d->name.id = stet_arena_strdup(tx->arena, name->id);
    d->name.scope = name->scope && *name->scope ? stet_arena_strdup(tx->arena, name->scope) : "";
    if ((st = load(tx, d, tx->views.at[view].snapshot, err)) != STET_OK)
        return st;
    *position = tx->docs.len;
    add_doc(tx, d);
    return STET_OK;
}

static void collapse_reads(stet_tx *tx, stet_tx_doc *d, stet_pathref path) {
    stet_pathref common = path;
    for (size_t i = 0; i < d->reads.len; i++)
        common = stet_path_common(common, d->reads.at[i].path);
    d->reads.len = 0;
    common.bytes = stet_arena_strndup(tx->arena, common.bytes, common.len);
    *stet_arena_add(tx->arena, &d->reads) = (stet_tx_path){common, STET_RECURSIVE};
    d->reads_collapsed = true;
}

static void note_read(stet_tx *tx, size_t position, stet_pathref path, stet_read_kind kind) {
    stet_tx_doc *d = tx->docs.at[position];
    if (d->write == STET_TX_SET || d->write == STET_TX_DELETE)
        return; /* the transaction wrote it itself, so earlier contents do not matter */
    if (d->reads_collapsed) {
        if (!stet_path_is_prefix(d->reads.at[0].path, path))
            d->reads.at[0].path = stet_path_common(d->reads.at[0].path, path);
        return;
    }
    for (size_t i = 0; i < d->reads.len && i < 4; i++) /* few reads: no map needed */
        if (d->reads.at[i].kind == kind && d->reads.at[i].path.len == path.len &&
            memcmp(d->reads.at[i].path.bytes, path.bytes, path.len) == 0)
            return;
    if (d->reads.len >= 4) {
        struct {
            uint32_t position, kind;
        } head = {(uint32_t)position, (uint32_t)kind};
        stet_buf_clear(&tx->scratch);
        stet_buf_add(&tx->scratch, &head, sizeof head);
        stet_buf_add(&tx->scratch, path.bytes, path.len);
        if (stet_map_get(&tx->reads, tx->scratch.data, tx->scratch.len))
            return;
        if (d->reads.len == STET_TX_READS_PER_DOC) {
            collapse_reads(tx, d, path);
            return;
        }
        stet_map_put(&tx->reads, tx->scratch.data, tx->scratch.len, (stet_slot){.n = 1});
    }
    path.bytes = stet_arena_strndup(tx->arena, path.bytes, path.len);
    *stet_arena_add(tx->arena, &d->reads) = (stet_tx_path){path, kind};
}

static stet_status value_at(const stet_tx_doc *d, stet_pathref path, stet_value *out, stet_error *err) {
    if (d->after_exists && stet_path_lookup(d->after, path, out))
        return STET_OK;
    stet_buf b = STET_BUF(0);
    if (!d->after_exists) {
        stet_fail(err, STET_NOT_FOUND, "no document \"%s\"%s%s in space \"%s\"", d->name.id,
                  d->name.scope[0] ? " of scope " : "", d->name.scope, d->space->name);
    } else {
        stet_cell_print(d->name.id, path, &b);
        stet_fail(err, STET_NOT_FOUND, "nothing at %s in space \"%s\"", stet_buf_cstr(&b), d->space->name);
        stet_buf_release(&b);
    }
    return STET_NOT_FOUND;
}

stet_status stet_tx_read(stet_tx *tx, stet_space *from, const stet_docname *name, stet_pathref path,
                         stet_read_kind kind, stet_value *out, stet_error *err) {
    size_t position;
    stet_status st = touch(tx, from, name, &position, err);
    if (st != STET_OK)
        return st;
    note_read(tx, position, path, kind);
    return value_at(tx->docs.at[position], path, out, err);
}

bool stet_tx_has_read(const stet_tx *tx, const stet_space *from, const stet_docname *name) {
    const stet_space *space = from ? from : tx->space;
    for (size_t i = 0; i < tx->views.len; i++)
        if (tx->views.at[i].space == space) {
            const stet_tx_doc *d = stet_tx_find(tx, i, &(stet_docname){name->id, name->scope ? name->scope : ""});
            return d && d->reads.len > 0;
        }
    return false;
}

stet_status stet_tx_peek(stet_tx *tx, stet_space *from, const stet_docname *name, stet_pathref path, stet_value *out,
                         stet_error *err) {
    size_t position;
    stet_status st = touch(tx, from, name, &position, err);
    return st != STET_OK ? st : value_at(tx->docs.at[position], path, out, err);
}

stet_status stet_tx_snapshot(stet_tx *tx, stet_space *from, int64_t *seq, stet_error *err) {
    size_t view = 0;
    stet_status st = from ? view_of(tx, from, &view, err) : STET_OK;
    if (st == STET_OK)
        *seq = tx->views.at[view].snapshot;
    return st;
}

static int compare_reads(const void *a, const void *b) {
    const stet_tx_read_record *x = a, *y = b;
    int order = strcmp(x->space->uuid, y->space->uuid);
    if (order == 0)
        order = strcmp(x->name.id, y->name.id);
    if (order == 0)
        order = strcmp(x->name.scope, y->name.scope);
    if (order == 0)
        order = stet_path_compare(x->path, y->path);
    return order ? order : (int)x->kind - (int)y->kind;
}

stet_tx_read_record *stet_tx_read_list(const stet_tx *tx, stet_arena *arena, size_t *count) {
    size_t n = 0;
    for (size_t i = 0; i < tx->docs.len; i++)
        n += tx->docs.at[i]->reads.len;
    stet_tx_read_record *list = stet_arena_alloc(arena, (n + 1) * sizeof *list);
    *count = n;
    n = 0;
    for (size_t i = 0; i < tx->docs.len; i++) {
        const stet_tx_doc *d = tx->docs.at[i];
        for (size_t j = 0; j < d->reads.len; j++)
            list[n++] = (stet_tx_read_record){
                d->space, d->name, d->doc, d->reads.at[j].path, d->reads.at[j].kind, d->holds ? d->holds : d->seen};
    }
    return list;
}

void stet_tx_reads(const stet_tx *tx, stet_arena *arena, const stet_tx_read_record **out, size_t *count) {
    stet_tx_read_record *list = stet_tx_read_list(tx, arena, count);
    if (*count > 1)
        qsort(list, *count, sizeof *list, compare_reads);
    *out = list;
}

/* Prepares a document of the written space for a change. */
static stet_status touch_to_write(stet_tx *tx, const stet_docname *name, stet_tx_doc **out, stet_error *err) {
    if (tx->space->read_only)
        return stet_fail(err, STET_DENIED, "space \"%s\" was opened read-only", tx->space->name);
    size_t position;
    stet_status st = touch(tx, NULL, name, &position, err);
    if (st != STET_OK)
        return st;
    *out = tx->docs.at[position];
    (*out)->changes_known = false;
    return STET_OK;
}

stet_status stet_tx_put(stet_tx *tx, const stet_docname *name, stet_value envelope, stet_error *err) {
    stet_tx_doc *d = NULL;
    stet_status st = STET_OK;
    if (stet_value_type(envelope) != STET_TYPE_OBJECT)
        st = stet_fail(err, STET_INVALID,
                       "document \"%s\": the whole of a document is an object with a member \"value\"",
                       name->id ? name->id : "");
    else if (stet_value_depth(envelope) > STET_DOC_MAX_DEPTH)
        st = stet_fail(err, STET_LIMIT, "document \"%s\": deeper than the %d levels allowed", name->id ? name->id : "",
                       STET_DOC_MAX_DEPTH);
    if (st == STET_OK)
        st = touch_to_write(tx, name, &d, err);
    if (st != STET_OK) {
        stet_value_release(envelope);
        return st;
    }
    drop_ops(d);
    stet_value_release(d->after);
    d->after = envelope;
    d->after_exists = true;
    d->write = STET_TX_SET;
    return STET_OK;
}

stet_status stet_tx_drop(stet_tx *tx, const stet_docname *name, stet_error *err) {
    stet_tx_doc *d = NULL;
    stet_status st = touch_to_write(tx, name, &d, err);
    if (st != STET_OK)
        return st;
    drop_ops(d);
    stet_value_release(d->after);
    d->after = stet_value_null();
    d->after_exists = false;
    d->write = STET_TX_DELETE;
    return STET_OK;
}

/* Keeps the operations for the commit, in memory of the transaction. */
static void keep_ops(stet_tx *tx, stet_tx_doc *d, const stet_patch *at, size_t len) {
    for (size_t i = 0; i < len; i++) {
        stet_patch op = at[i];
        op.path.bytes = stet_arena_strndup(tx->arena, op.path.bytes, op.path.len);
        if (op.kind == STET_PATCH_MOVE)
            op.from.bytes = stet_arena_strndup(tx->arena, op.from.bytes, op.from.len);
        op.value = stet_value_retain(op.value);
        *stet_arena_add(tx->arena, &d->ops) = op;
    }
    tx->op_count += len;
}

stet_status stet_tx_patch(stet_tx *tx, const stet_docname *name, const stet_patch *at, size_t len, stet_error *err) {
    stet_tx_doc *d = NULL;
    stet_status st = touch_to_write(tx, name, &d, err);
    if (st != STET_OK)
        return st;
    if (tx->op_count + len > STET_COMMIT_MAX_OPS)
        return stet_fail(err, STET_LIMIT, "a commit holds at most %d patch operations", STET_COMMIT_MAX_OPS);
    bool made = !d->after_exists;
    stet_value work = made ? stet_value_object() : stet_value_retain(d->after);
    stet_value_release(d->after); /* so that `work` may be changed in place, if only this transaction holds it */
    d->after = stet_value_null();
    st = stet_patches_apply(at, len, &work, err);
    if (st != STET_OK) {
        if (made)
            stet_value_release(work);
        else
            d->after = work;
        stet_fail_in(err, "document \"%s\"", d->name.id);
        return st;
    }
    d->after = work;
    d->after_exists = true;
    if (d->write == STET_TX_DELETE) {
        d->write = STET_TX_SET; /* replaces the deleted document as a whole */
    } else if (d->write != STET_TX_SET) {
        d->write = STET_TX_PATCH;
        keep_ops(tx, d, at, len);
    }
    return STET_OK;
}

stet_status stet_tx_write(stet_tx *tx, const stet_docname *name, stet_pathref path, stet_value value, stet_error *err) {
    stet_patch op = {.kind = STET_PATCH_REPLACE, .path = path, .value = value};
    stet_status st = stet_tx_patch(tx, name, &op, 1, err);
    stet_value_release(value);
    return st;
}

stet_status stet_tx_write_member(stet_tx *tx, const stet_docname *name, const char *member, stet_value value,
                                 stet_error *err) {
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, member);
    stet_status st = stet_tx_write(tx, name, stet_path_ref(&path), value, err);
    stet_path_release(&path);
    return st;
}

stet_status stet_tx_doc_apply(const stet_tx_doc *d, bool exists, stet_value before, bool *after_exists,
                              stet_value *after, stet_error *err) {
    if (d->write != STET_TX_PATCH) {
        *after_exists = d->after_exists;
        *after = stet_value_retain(d->after);
        return STET_OK;
    }
    stet_value work = exists ? stet_value_retain(before) : stet_value_object();
    stet_status st = stet_patches_apply(d->ops.at, d->ops.len, &work, err);
    if (st != STET_OK) {
        stet_value_release(work);
        return st;
    }
    *after_exists = true;
    *after = work;
    return STET_OK;
}

stet_status stet_tx_need_absent(stet_tx *tx, const stet_docname *name, stet_error *err) {
    stet_tx_doc *d = NULL;
    stet_status st = touch_to_write(tx, name, &d, err);
    if (st == STET_OK)
        d->need_absent = true;
    return st;
}

stet_status stet_tx_need_hash(stet_tx *tx, const stet_docname *name, stet_hash hash, stet_error *err) {
    stet_tx_doc *d = NULL;
    stet_status st = touch_to_write(tx, name, &d, err);
    if (st == STET_OK)
        d->need_hash = stet_arena_dup(tx->arena, &hash, sizeof hash);
    return st;
}

stet_status stet_tx_session(stet_tx *tx, const char *session, int64_t local, stet_error *err) {
    if (!tx || !session)
        return stet_fail_null(err);
    stet_docname as_id = {session, NULL};
    if (!session || !*session || strlen(session) > STET_SESSION_MAX)
        return stet_fail(err, STET_INVALID, "session name: expected 1 to %d bytes", STET_SESSION_MAX);
    if (local < 0)
        return stet_fail(err, STET_INVALID, "local sequence %lld: expected a number from 0", (long long)local);
    stet_status st = stet_docname_check(&as_id, err);
    if (st != STET_OK)
        return st;
    tx->session = stet_arena_strdup(tx->arena, session);
    tx->local = local;
    return STET_OK;
}
