/* observe.c - opens, stores and answers questions about observations: the entry points of observe.h. */

#include "memory/observe.h"

#include <stdlib.h>

#include "memory/observe_internal.h"
#include "memory/record.h"

static const stet_address *copy_addresses(stet_arena *a, const stet_address *at, size_t len) {
    if (len == 0) /* true of most lists of most actions */
        return NULL;
    stet_address *out = stet_arena_alloc(a, len * sizeof *out);
    for (size_t i = 0; i < len; i++) {
        out[i].space = at[i].space ? stet_arena_strdup(a, at[i].space) : NULL;
        out[i].name.id = stet_arena_strdup(a, at[i].name.id);
        out[i].name.scope = stet_arena_strdup(a, at[i].name.scope ? at[i].name.scope : "");
        out[i].path.bytes = stet_arena_strndup(a, at[i].path.bytes, at[i].path.len);
        out[i].path.len = at[i].path.len;
    }
    return out;
}

static stet_status check_addresses(const stet_address *at, size_t len, stet_error *err) {
    for (size_t i = 0; i < len; i++) {
        stet_status st = stet_docname_check(&at[i].name, err);
        if (st != STET_OK)
            return st;
    }
    return STET_OK;
}

static const char *const *copy_names(stet_arena *a, const char *const *at, size_t len) {
    if (len == 0)
        return NULL;
    const char **out = stet_arena_alloc(a, len * sizeof *out);
    for (size_t i = 0; i < len; i++)
        out[i] = stet_arena_strdup(a, at[i]);
    return out;
}

static stet_status check_names(const char *const *at, size_t len, stet_error *err) {
    for (size_t i = 0; i < len; i++) {
        stet_status st = stet_docname_check(&(stet_docname){at[i], NULL}, err);
        if (st != STET_OK)
            return st;
    }
    return STET_OK;
}

stet_status stet_observe_attach(stet_tx *tx, const stet_observation *o, stet_error *err) {
    if (tx->observation)
        return stet_fail(err, STET_INVALID, "the transaction has an observation already");
    stet_docname piece = {o->key.piece, o->key.scope}, action = {o->key.action, NULL};
    stet_status st;
    if ((st = stet_docname_check(&piece, err)) != STET_OK || (st = stet_docname_check(&action, err)) != STET_OK ||
        (st = check_addresses(o->declared_writes, o->declared_count, err)) != STET_OK ||
        (st = check_addresses(o->envelopes, o->envelope_count, err)) != STET_OK ||
        (st = check_addresses(o->written, o->written_count, err)) != STET_OK ||
        (st = check_addresses(o->ignored_writes, o->ignored_count, err)) != STET_OK ||
        (st = check_names(o->made, o->made_count, err)) != STET_OK ||
        (st = check_names(o->gone, o->gone_count, err)) != STET_OK)
        return st;
    stet_arena *a = tx->arena;
    stet_observation *c = stet_arena_dup(a, o, sizeof *o);
    c->key.piece = stet_arena_strdup(a, o->key.piece);
    c->key.scope = stet_arena_strdup(a, o->key.scope ? o->key.scope : "");
    c->key.action = stet_arena_strdup(a, o->key.action);
    c->parent = o->parent ? stet_arena_strdup(a, o->parent) : NULL;
    c->rests_on.bytes = o->rests_on.len ? stet_arena_strndup(a, o->rests_on.bytes, o->rests_on.len) : "";
    c->declared_writes = copy_addresses(a, o->declared_writes, o->declared_count);
    c->envelopes = copy_addresses(a, o->envelopes, o->envelope_count);
    c->ignored_writes = copy_addresses(a, o->ignored_writes, o->ignored_count);
    c->written = copy_addresses(a, o->written, o->written_count);
    c->made = copy_names(a, o->made, o->made_count);
    c->gone = copy_names(a, o->gone, o->gone_count);
    c->options = stet_value_retain(o->options);
    c->note = stet_value_retain(o->note);
    tx->observation = c;
    return STET_OK;
}

stet_status stet_observe_turn_over(stet_tx *tx, const stet_turnover *t, stet_error *err) {
    if (tx->turnover)
        return stet_fail(err, STET_INVALID, "the transaction has a turnover already");
    stet_status st = stet_docname_check(&(stet_docname){t->piece, t->scope}, err);
    if (st == STET_OK)
        st = check_names(t->gone, t->gone_count, err);
    if (st == STET_OK)
        st = check_names(t->unknown, t->unknown_count, err);
    if (st != STET_OK)
        return st;
    stet_turnover *c = stet_arena_dup(tx->arena, t, sizeof *t);
    c->piece = stet_arena_strdup(tx->arena, t->piece);
    c->scope = stet_arena_strdup(tx->arena, t->scope ? t->scope : "");
    c->gone = copy_names(tx->arena, t->gone, t->gone_count);
    c->unknown = copy_names(tx->arena, t->unknown, t->unknown_count);
    tx->turnover = c;
    return STET_OK;
}

static stet_bytes packed(stet_space *s, stet_places *p) {
    struct stet_observe *o = stet_observe_of(s);
    stet_places_settle(p);
    stet_buf_clear(&o->buf);
    stet_places_pack(p, &o->buf);
    return (stet_bytes){o->buf.len ? stet_arena_dup(&o->tx_arena, o->buf.data, o->buf.len) : "", o->buf.len};
}

static stet_bytes addresses(stet_space *s, const stet_address *at, size_t len, const stet_applied *m) {
    struct stet_observe *o = stet_observe_of(s);
    if (len == 0)
        return (stet_bytes){"", 0};
    stet_vec_clear(&o->places);
    for (size_t i = 0; i < len; i++) {
        int64_t doc = 0;
        for (size_t k = 0; k < m->change_count && k < 4 && !doc;
             k++) /* most often it is among what the run has just changed */
            if (strcmp(m->changes[k].name.id, at[i].name.id) == 0 &&
                strcmp(m->changes[k].name.scope, at[i].name.scope) == 0)
                doc = m->changes[k].doc;
        *stet_vec_add(&o->places) = (stet_place){doc ? doc : stet_space_intern(s, &at[i].name), at[i].path, 0, 0};
    }
    return packed(s, &o->places);
}

/* Is everything at `path` ignored? `*below`: something below it is. */
static bool is_ignored(const stet_observation *o, const stet_docname *name, stet_pathref path, bool *below) {
    *below = false;
    for (size_t i = 0; i < o->ignored_count; i++) {
        const stet_address *a = &o->ignored_writes[i];
        if (strcmp(a->name.id, name->id) != 0 || strcmp(a->name.scope, name->scope) != 0)
            continue;
        if (stet_path_is_prefix(a->path, path))
            return true;
        *below = *below || stet_path_is_prefix(path, a->path);
    }
    return false;
}

stet_doc_change stet_observe_beside(const stet_observation *o, const stet_doc_change *c, stet_value value,
                                    stet_arena *arena) {
    stet_doc_change out = *c;
    stet_changes kept = {0}, waiting = {0};
    stet_path path = STET_PATH_INIT;
    for (size_t i = c->len; i-- > 0;)
        *stet_vec_add(&waiting) = c->at[i];
    while (waiting.len) {
        stet_change at = waiting.at[--waiting.len];
        stet_value v;
        bool below;
        if (is_ignored(o, &c->name, at.path, &below))
            continue;
        if (!below || at.kind != STET_KEYSET || !stet_path_lookup(value, at.path, &v) || stet_value_count(v) == 0) {
            *stet_vec_add(&kept) = at;
            continue;
        }
        for (size_t i = stet_value_count(v); i-- > 0;) {
            size_t len;
            const char *key = stet_value_key_at(v, i, &len);
            stet_path_set(&path, at.path);
            if (key)
                stet_path_push_n(&path, key, len);
            else
                stet_path_push_index(&path, i);
            stet_pathref to = stet_path_ref(&path);
            if (to.len == at.path.len) /* no path can name the member: it would be too long */
                *stet_vec_add(&kept) = at;
            else
                *stet_vec_add(&waiting) = (stet_change){{stet_arena_dup(arena, to.bytes, to.len), to.len}, STET_KEYSET};
        }
    }
    out.at = kept.len ? stet_arena_dup(arena, kept.at, kept.len * sizeof *kept.at) : NULL;
    out.len = kept.len;
    stet_path_release(&path);
    stet_changes_release(&kept);
    stet_changes_release(&waiting);
    return out;
}

/* Determines what the run changed, and which places belong to the action from now on. If the run says which, those.
 * Otherwise its precise writes; one inside a declared place is widened to that place, because an output cell belongs to
 * the action as a whole, even where this run left it unchanged. Without any writes, the places known before, if the same
 * code wrote them; otherwise the declared ones. Ignored writes are not part of either: they are not in m->own.
 */
static void written(stet_space *s, const stet_applied *m, stet_bytes declared, const stet_known_action *before,
                    stet_bytes *actual, stet_bytes *known) {
    const stet_observation *in = m->observation;
    struct stet_observe *o = stet_observe_of(s);
    stet_places *out = &o->out, *own = &o->own;
    stet_bytes reported = in->tells_written ? addresses(s, in->written, in->written_count, m) : (stet_bytes){"", 0};
    stet_vec_clear(&o->places);
    stet_vec_clear(out);
    stet_vec_clear(own);
    if (!stet_places_unpack(declared.at, declared.len, own)) /* a name that was removed has no number */
        assert(stet_db_failed(s->db));
    for (size_t i = 0; i < m->change_count; i++)
        for (size_t k = 0; k < m->own[i].len; k++) {
            stet_place p = {m->own[i].doc, m->own[i].at[k].path, 0, 0};
            bool left_out = in->declared_alone;
            for (size_t n = 0; n < own->len && left_out; n++)
                left_out = own->at[n].doc != p.doc;
            if (left_out)
                continue;
            *stet_vec_add(&o->places) = p;
            for (size_t n = 0; n < own->len; n++)
                /* A change above a declared place created its document: only the place belongs to the action. */
                if (own->at[n].doc == p.doc &&
                    (stet_path_is_prefix(own->at[n].path, p.path) || stet_path_is_prefix(p.path, own->at[n].path))) {
                    p.path = own->at[n].path;
                    break;
                }
            *stet_vec_add(out) = p;
        }
    *actual = packed(s, &o->places);
    if (in->tells_written) {
        stet_vec_clear(out);
        if (!stet_places_unpack(reported.at, reported.len, out))
            assert(stet_db_failed(s->db));
    }
    if (out->len || in->tells_written) {
        /* Declared outputs that this run did not touch still belong to the action. */
        for (size_t n = 0; n < own->len; n++)
            *stet_vec_add(out) = own->at[n];
        *known = packed(s, out);
    } else if (before->observed && before->known.len && !in->new_code) {
        *known = before->known;
    } else {
        *known = declared;
    }
}

/* A value as text. A long one is left out, because it only explains. */
static stet_bytes text_of(stet_space *s, stet_value v) {
    struct stet_observe *o = stet_observe_of(s);
    if (stet_value_type(v) == STET_TYPE_NULL)
        return (stet_bytes){"", 0};
    stet_buf_clear(&o->buf);
    stet_json_write(&o->buf, v, STET_JSON_CANONICAL);
    if (o->buf.len > STET_OBSERVE_NOTE_MAX)
        return (stet_bytes){"", 0};
    return (stet_bytes){stet_arena_dup(&o->tx_arena, o->buf.data, o->buf.len), o->buf.len};
}

/* Separates own reads, as places with the sequence up to which each holds, from reads in other spaces. */
static void split_reads(stet_space *s, const stet_applied *m, stet_places *own, stet_foreign_places *other) {
    for (size_t i = 0; i < m->read_count; i++) {
        const stet_tx_read_record *r = &m->reads[i];
        unsigned flag = r->kind == STET_SHALLOW;
        if (r->space == s) {
            *stet_vec_add(own) = (stet_place){r->doc ? r->doc : stet_space_intern(s, &r->name), r->path, flag, r->seq};
            continue;
        }
        int64_t space = stet_observe_foreign(s, r->space->uuid, r->space->name, 0);
        const char *scope = r->name.scope ? r->name.scope : "";
        *stet_vec_add(other) = (stet_foreign_place){
            space, {r->name.id, strlen(r->name.id)}, {scope, strlen(scope)}, r->path, flag, r->seq, r->doc};
    }
    stet_foreign_settle(other);
}

/* Why the action ran: what this transaction has found so far, otherwise what was stored. No reason: it was up to date,
 * and was run on request. */
static stet_reason cause_of_run(const stet_pending *p, const stet_known_action *a) {
    if (p->set)
        return p->reason;
    if (!a->observed)
        return a->marked && !p->clear ? a->reason : STET_REASON_NEVER;
    return a->marked && !p->clear ? a->reason : STET_REASON_NONE;
}

/* `looked`: every commit before this transaction has been processed for marks. */
static void store(stet_space *s, int64_t branch, const stet_applied *m, stet_known_action *a, int64_t now,
                  bool looked) {
    struct stet_observe *o = stet_observe_of(s);
    bool was_foreign = a->foreign;
    const stet_observation *in = m->observation;
    stet_obs obs = {.kind = in->kind,
                    .run = in->run,
                    .failed = in->failed,
                    .changed = m->seq != 0,
                    .implementation = stet_observe_fingerprint(s, in->implementation),
                    .runtime = stet_observe_fingerprint(s, in->runtime),
                    .observed_at = now,
                    .time_ms = stet_clock_ms(),
                    .error = in->error};
    if (in->parent)
        obs.parent = (stet_bytes){in->parent, strlen(in->parent)};

    stet_places *own = &o->own;
    stet_foreign_places *other = &o->other;
    stet_vec_clear(own);
    stet_vec_clear(other);
    split_reads(s, m, own, other);
    obs.reads = packed(s, own);
    bool all_now = true;
    for (size_t i = 0; i < own->len && all_now; i++)
        all_now = own->at[i].seq == now;
    if (!all_now) {
        stet_buf_clear(&o->buf);
        for (size_t i = 0; i < own->len; i++)
            stet_varint_put(&o->buf, (uint64_t)(now - own->at[i].seq));
        obs.offsets = (stet_bytes){stet_arena_dup(&o->tx_arena, o->buf.data, o->buf.len), o->buf.len};
    }
    obs.declared = addresses(s, in->declared_writes, in->declared_count, m);
    obs.envelopes = addresses(s, in->envelopes, in->envelope_count, m);
    obs.ignored = addresses(s, in->ignored_writes, in->ignored_count, m);
    written(s, m, obs.declared, a, &obs.actual, &obs.known);
    obs.known_is_declared =
        obs.known.len == obs.declared.len && memcmp(obs.known.at, obs.declared.at, obs.known.len) == 0;
    obs.options = text_of(s, in->options);
    obs.note = text_of(s, in->note);
    stet_buf_clear(&o->buf2);
    stet_foreign_pack(other, &o->buf2);
    obs.foreign = (stet_bytes){o->buf2.len ? stet_arena_dup(&o->tx_arena, o->buf2.data, o->buf2.len) : "", o->buf2.len};
    bool mirrored = true;
    if (other->len || a->foreign)
        mirrored = stet_observe_mirror(s, branch, a, m, obs.foreign);

    stet_observe_reindex(s, a, obs.reads, obs.known, obs.declared, obs.envelopes);
    stet_buf_clear(&o->buf);
    stet_obs_encode(&obs, &o->buf);
    stet_pending *p = stet_observe_pending_of(s, a);
    if (p->store && o->keep > 1)
        stet_observe_write(s, p); /* a second run in one transaction: the first is kept as a past observation */
    p->store = true;
    p->generation = in->generation;
    p->blob = (stet_bytes){stet_arena_dup(&o->tx_arena, o->buf.data, o->buf.len), o->buf.len};
    if (in->run != STET_RUN_DEPENDENCIES) {
        o->now.runs[cause_of_run(p, a)]++;
        p->clear = true;
        p->set = false;
        a->made = !in->failed;
        a->foreign_marked = o->has_foreign && stet_observe_clear_foreign(s, a->action, obs.foreign);
    } else if (a->marked || p->set || !a->observed || !a->made || !looked || was_foreign || obs.foreign.len) {
        /* Knowing what an action would read says nothing about its output. If the action was up to date, it stays
         * so. Otherwise, or if it had failed, its new reads no longer show why, so it is unknown until it runs. It
         * also counts as outdated if a mark may still arrive: from commits that were not processed, or from another
         * space. */
        a->made = false;
        stet_observe_mark(s, a->action, branch, STET_STATE_UNKNOWN, STET_REASON_NEVER, 0, 0, NULL);
    }
    if (!mirrored || in->doubtful)
        stet_observe_mark(s, a->action, branch, STET_STATE_UNKNOWN, STET_REASON_LOST, 0, 0, NULL);
    a->observed = true;
    o->now.stored++;
    o->now.kept_noops += m->seq == 0;
    o->now.bytes += (int64_t)p->blob.len;
}

/* The number of the action's piece; mostly the same as for the action before. */
static int64_t piece_of(stet_space *s, const stet_action_key *key) {
    struct stet_observe *o = stet_observe_of(s);
    const char *scope = key->scope ? key->scope : "";
    size_t id_len = strlen(key->piece) + 1, len = id_len + strlen(scope) + 1;
    if (o->last_piece_doc && strcmp(o->last_piece, key->piece) == 0 && strcmp(o->last_piece + id_len, scope) == 0)
        return o->last_piece_doc;
    if (len > o->last_piece_cap) {
        o->last_piece = stet_realloc(o->last_piece, len);
        o->last_piece_cap = len;
    }
    memcpy(o->last_piece, key->piece, id_len);
    memcpy(o->last_piece + id_len, scope, len - id_len);
    stet_docname piece = {key->piece, scope};
    return o->last_piece_doc = stet_space_intern(s, &piece);
}

static stet_known_action *action_of(stet_space *s, int64_t branch, const stet_observation *o) {
    return stet_observe_action(s, branch, piece_of(s, &o->key), o->key.action, true);
}

/* An action whose record was lost, or was not inherited by the branch, may have run before: its reason still says
 * so. */
static void mark_made(stet_space *s, int64_t branch, int64_t piece, const stet_observation *in) {
    for (size_t i = 0; i < in->made_count; i++) {
        stet_known_action *a = stet_observe_action(s, branch, piece, in->made[i], true);
        if (a)
            stet_observe_mark(s, a->action, branch, STET_STATE_UNKNOWN,
                              a->marked && !a->observed ? a->reason : STET_REASON_NEVER, 0, 0, NULL);
    }
}

#define FILE_PREFIX "file:" /* prefix of documents that describe files */

/* Makes the readers of the files that an action wrote unknown: the action is about to be removed, but its files
 * stay. */
static void distrust_readers(stet_space *s, int64_t branch, int64_t action) {
    stet_buf blob = STET_BUF(0);
    stet_places known = {0}, envelopes = {0};
    stet_arena arena = STET_ARENA_INIT;
    stet_observe_writes_of(s, action, &blob, &known, &envelopes);
    for (size_t i = 0; i < known.len; i++) {
        stet_docname name;
        stet_numbers readers = {0};
        stet_change whole = {STET_PATH_ROOT, STET_VALUE};
        if (stet_space_docname(s, known.at[i].doc, &arena, &name, NULL) == STET_OK &&
            strncmp(name.id, FILE_PREFIX, strlen(FILE_PREFIX)) == 0)
            stet_observe_readers_of(s, stet_space_key(branch, known.at[i].doc), &whole, &readers);
        for (size_t k = 0; k < readers.len; k++)
            if (readers.at[k] != action)
                stet_observe_mark(s, readers.at[k], branch, STET_STATE_UNKNOWN, STET_REASON_LEFT, 0, 0, NULL);
        stet_numbers_release(&readers);
    }
    stet_observe_flush(s);
    stet_arena_release(&arena);
    stet_vec_release(&known);
    stet_vec_release(&envelopes);
    stet_buf_release(&blob);
}

static void find_named(stet_space *s, int64_t branch, int64_t piece, const char *const *names, size_t len,
                       stet_numbers *out) {
    for (size_t i = 0; i < len; i++) {
        stet_known_action *a = stet_observe_action(s, branch, piece, names[i], false);
        if (a)
            stet_numbers_add(out, a->action);
    }
}

static void find_all(stet_space *s, int64_t branch, int64_t piece, stet_numbers *out) {
    stet_stmt *q = stet_db_stmt(s->db, "SELECT action FROM action WHERE action >= ? AND action < ? AND branch = ?");
    stet_bind_int(q, 1, piece << STET_ACTION_BITS);
    stet_bind_int(q, 2, (piece + 1) << STET_ACTION_BITS);
    stet_bind_int(q, 3, branch);
    while (stet_step(q))
        stet_numbers_add(out, stet_column_int(q, 0));
}

static void remove_all(stet_space *s, int64_t branch, const stet_numbers *gone) {
    for (size_t i = 0; i < gone->len; i++) {
        if (!stet_observe_of(s)->off)
            distrust_readers(s, branch, gone->at[i]);
        stet_observe_remove(s, gone->at[i], true);
    }
}

/* Actions that are gone. One of them may come back later in this transaction, with another number. */
static void remove_gone(stet_space *s, int64_t branch, int64_t piece, const stet_numbers *gone) {
    int64_t next = stet_observe_next(s, piece);
    remove_all(s, branch, gone);
    stet_observe_restart(s, piece, next);
}

static void distrust_named(stet_space *s, int64_t branch, int64_t piece, const char *name, stet_reason reason) {
    stet_known_action *a = stet_observe_action(s, branch, piece, name, true);
    if (a)
        stet_observe_mark(s, a->action, branch, STET_STATE_UNKNOWN, reason, 0, 0, NULL);
}

static void turn_over(stet_space *s, int64_t branch, const stet_turnover *t) {
    enum { AT_ONCE = 100000 }; /* a million at once would take half a gigabyte */
    int64_t piece = stet_space_intern(s, &(stet_docname){t->piece, t->scope});
    stet_numbers gone = {0};
    stet_observe_flush(s);
    if (t->all_gone)
        find_all(s, branch, piece, &gone);
    else
        find_named(s, branch, piece, t->gone, t->gone_count, &gone);
    if (gone.len > 0)
        remove_gone(s, branch, piece, &gone);
    stet_numbers_release(&gone);
    for (size_t i = 0; i < t->unknown_count; i++) {
        distrust_named(s, branch, piece, t->unknown[i], t->reason);
        if (i % AT_ONCE == AT_ONCE - 1)
            stet_observe_restart(s, piece, stet_observe_next(s, piece));
    }
}

/* Undoes the savepoint and everything in memory that depends on it: numbers of names, the cache, what is owed. */
static void undo(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    stet_db_savepoint_undo(s->db);
    stet_observe_count(o, false);
    stet_observe_drop_pending(s);
    stet_observe_empty(s);
    stet_space_forget_names(s);
    stet_observe_owe_nothing(o);
}

void stet_observe_lost(stet_space *s, int64_t branch, const stet_applied *at, size_t len, const stet_space *in) {
    struct stet_observe *o = stet_observe_of(s);
    if (o->off || stet_db_status(s->db, NULL) != STET_OK)
        return;
    stet_db_savepoint(s->db);
    stet_observe_fresh(s);
    for (size_t i = 0; i < len; i++) {
        bool met = at[i].observation && !in;
        for (size_t k = 0; k < at[i].read_count && !met && at[i].observation; k++)
            met = at[i].reads[k].space == in;
        stet_known_action *a = met ? action_of(s, branch, at[i].observation) : NULL;
        if (a) {
            stet_observe_mark(s, a->action, branch, STET_STATE_UNKNOWN, STET_REASON_LOST, 0, 0, NULL);
            mark_made(s, branch, a->piece, at[i].observation);
        }
        o->now.lost += met;
    }
    stet_observe_flush(s);
    if (stet_db_status(s->db, NULL) == STET_OK && stet_db_savepoint_release(s->db, NULL) == STET_OK)
        return;
    /* This process does not push what it owed to other spaces then: `pending` records that. */
    undo(s);
}

void stet_observe_apply(stet_space *s, int64_t branch, const stet_applied *at, size_t len) {
    struct stet_observe *o = stet_observe_of(s);
    if (o->off)
        return;
    stet_db_savepoint(s->db);
    stet_observe_fresh(s);
    o->first_new_doc = s->names_first;
    int64_t start = s->known, now = start;
    bool whole = false;
    stet_space_hold_names(s);
    for (size_t i = 0; i < len; i++) {
        const stet_applied *m = &at[i];
        stet_known_action *a = m->observation ? action_of(s, branch, m->observation) : NULL;
        if (m->seq) {
            now = m->seq;
            stet_observe_changes(s, branch, m->seq, m->changes, m->change_count, a ? a->action : 0);
        }
        if (m->turnover) {
            turn_over(s, branch, m->turnover);
            whole = true;
        }
        if (!a)
            continue;
        int64_t piece = a->piece;
        store(s, branch, m, a, now, o->marked_through == start);
        if (m->observation->gone_count) {
            stet_numbers gone = {0};
            stet_observe_flush(s);
            find_named(s, branch, piece, m->observation->gone, m->observation->gone_count, &gone);
            remove_gone(s, branch, piece, &gone);
            stet_numbers_release(&gone);
        }
        mark_made(s, branch, piece, m->observation);
    }
    stet_observe_flush(s);
    stet_space_write_names(s);
    if (o->marked_through == start)
        stet_observe_set_marked_through(s, now);
    o->first_new_doc = 0;
    if (stet_db_status(s->db, NULL) == STET_OK && stet_db_savepoint_release(s->db, NULL) == STET_OK)
        return;
    if (whole)
        return; /* the failure of the database stays, and the commit fails with it */
    /* O3. Without its marks, the commit stays above marked_through, so that nothing is called up to date before the
     * commit has been processed. Each action keeps its observation, as unknown. */
    undo(s);
    stet_observe_lost(s, branch, at, len, NULL);
}

void stet_observe_done(stet_space *s, bool committed) {
    if (!s->observe)
        return;
    stet_observe_count(s->observe, committed);
    if (!committed) {
        stet_observe_drop_pending(s);
        stet_observe_empty(s);
        stet_space_forget_names(s);
        stet_observe_owe_nothing(s->observe);
        return;
    }
    if (s->observe->pushes.len || s->observe->leave.len)
        stet_observe_push(s);
}

void stet_observe_switch(stet_space *s, bool on) {
    struct stet_observe *o = stet_observe_of(s);
    o->off = !on;
    stet_observe_empty(s);
}

void stet_observe_keep(stet_space *s, int count) {
    stet_observe_of(s)->keep = count > STET_OBSERVE_KEEP_MAX ? STET_OBSERVE_KEEP_MAX : count;
}

void stet_observe_stood(stet_space *s, int64_t count) {
    struct stet_observe *o = stet_observe_of(s);
    o->counts.stood += count;
    o->stood += count;
}

struct stet_observe_counts stet_observe_counted(stet_space *s) {
    return stet_observe_of(s)->counts;
}

/* A change makes an action outdated only if its observation is older: a newer one has seen the change. */
static void drop_overtaken(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    for (size_t i = 0; i < o->pending.len; i++) {
        stet_pending *p = &o->pending.at[i];
        if (!p->set || p->state != STET_STATE_DIRTY)
            continue;
        stet_stmt *q = stet_db_stmt(s->db, "SELECT " STET_ACTION_COLUMNS " FROM action WHERE action = ?");
        stet_bind_int(q, 1, p->action);
        while (stet_step(q)) {
            size_t len;
            const void *blob = stet_observe_blob(q, 0, &len);
            stet_obs obs;
            stet_vec_clear(&o->places);
            if (!len || !stet_obs_decode(blob, len, &obs) || !stet_obs_reads(&obs, &o->places))
                continue;
            int64_t seen = obs.observed_at;
            for (size_t k = 0; k < o->places.len; k++)
                seen = o->places.at[k].seq < seen ? o->places.at[k].seq : seen;
            p->set = p->seq > seen;
        }
    }
}

/* A commit without records changed what a piece is made of, other than its argument: actions of the piece ran, were
 * made or were removed, and nothing of that is recorded. The records of the piece describe another time. */
typedef struct unrecorded {
    int64_t piece, branch;
} unrecorded;

static void distrust_piece(stet_space *s, unrecorded *last, int64_t branch, const stet_docname *doc) {
    const char *id = doc->id;
    const char *part = strncmp(id, "piece:", 6) == 0 ? strchr(id + 6, ':') : NULL;
    if (strncmp(id, "piece:", 6) != 0 || (part && strcmp(part, ":argument") == 0))
        return;
    char *name = part ? stet_strndup(id, (size_t)(part - id)) : stet_strdup(id);
    int64_t piece = stet_space_known_doc(s, &(stet_docname){name, doc->scope});
    free(name);
    if (piece == 0 || (piece == last->piece && branch == last->branch))
        return;
    *last = (unrecorded){piece, branch};
    stet_numbers found = {0};
    stet_stmt *q = stet_db_stmt(s->db, "SELECT action FROM action WHERE action >= ? AND action < ? AND branch = ?");
    stet_bind_int(q, 1, piece << STET_ACTION_BITS);
    stet_bind_int(q, 2, (piece + 1) << STET_ACTION_BITS);
    stet_bind_int(q, 3, branch);
    while (stet_step(q))
        stet_numbers_add(&found, stet_column_int(q, 0));
    for (size_t i = 0; i < found.len; i++)
        stet_observe_mark(s, found.at[i], branch, STET_STATE_UNKNOWN, STET_REASON_LOST, 0, 0, NULL);
    stet_numbers_release(&found);
    q = stet_db_stmt(s->db, "DELETE FROM complete_branch WHERE branch = ?");
    stet_bind_int(q, 1, branch);
    stet_run(q);
}

stet_status stet_observe_look(stet_space *s, stet_error *err) {
    enum { BATCH = 10000 };
    for (;;) {
        bool begun;
        stet_status st = stet_observe_begin(s, &begun, err);
        if (st != STET_OK)
            return st;
        stet_space_catch_up(s);
        struct stet_observe *o = stet_observe_of(s);
        stet_arena arena = STET_ARENA_INIT;
        stet_commit_record *list = NULL;
        size_t count = 0;
        st = stet_space_commits(s, o->marked_through, 0, BATCH, &arena, &list, &count, err);
        unrecorded last = {0};
        for (size_t i = 0; i < count && st == STET_OK; i++)
            stet_observe_changes(s, list[i].branch, list[i].seq, list[i].at, list[i].len, 0);
        if (st == STET_OK) {
            drop_overtaken(s);
            for (size_t i = 0; i < count; i++)
                for (size_t k = 0; k < list[i].len; k++)
                    distrust_piece(s, &last, list[i].branch, &list[i].at[k].name);
            stet_observe_set_marked_through(s, count == BATCH ? list[count - 1].seq : s->known);
        }
        stet_arena_release(&arena);
        if (st == STET_OK) {
            st = stet_observe_end(s, begun, err);
        } else {
            if (begun)
                stet_db_rollback(s->db);
            stet_observe_done(s, false);
        }
        if (st != STET_OK || count < BATCH)
            return st;
    }
}

/* A mark is missing, and nobody knows of which action: all become unknown. */
static stet_status distrust_all(stet_space *s, stet_error *err) {
    bool begun;
    stet_status st = stet_observe_begin(s, &begun, err);
    if (st != STET_OK)
        return st;
    if (!stet_observe_digests_fit(s, true)) { /* checked again, under the lock */
        STET_VEC(stet_marked) all = {0};
        stet_stmt *q = stet_db_stmt(s->db, "SELECT action, branch FROM action");
        while (stet_step(q))
            *stet_vec_add(&all) = (stet_marked){.action = stet_column_int(q, 0), .seq = stet_column_int(q, 1)};
        stet_run(stet_db_stmt(s->db, "DELETE FROM mark")); /* a damaged mark would never be cleared */
        stet_observe_digests_renew(s);
        stet_observe_empty(s);
        stet_observe_fresh(s);
        for (size_t i = 0; i < all.len; i++)
            stet_observe_mark(s, all.at[i].action, all.at[i].seq, STET_STATE_UNKNOWN, STET_REASON_CORRUPT, 0, 0, NULL);
        stet_vec_release(&all);
    }
    return stet_observe_end(s, begun, err);
}

/* Rows that can't be decoded: their actions are unknown. Checked again after another process has written. */
static stet_status distrust_damaged(stet_space *s, stet_error *err) {
    struct stet_observe *o = stet_observe_of(s);
    int64_t version = stet_db_data_version(s->db);
    if (o->verified == version)
        return STET_OK;
    bool begun, fit = true;
    stet_status st = stet_observe_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    fit = stet_observe_digests_fit(s, false);
    stet_numbers branches = {0};
    stet_stmt *q = stet_db_stmt(s->db, "SELECT branch FROM branch WHERE deleted_ms IS NULL");
    while (stet_step(q))
        stet_numbers_add(&branches, stet_column_int(q, 0));
    st = stet_space_leave(s, begun, STET_OK, err);
    if (st == STET_OK && !fit)
        st = distrust_all(s, err);
    for (size_t i = 0; i < branches.len && st == STET_OK; i++) {
        stet_numbers damaged = {0};
        st = stet_observe_damaged(s, branches.at[i], &damaged, err);
        if (st == STET_OK && damaged.len > 0 && (st = stet_observe_begin(s, &begun, err)) == STET_OK) {
            for (size_t k = 0; k < damaged.len; k++)
                stet_observe_mark(s, damaged.at[k], branches.at[i], STET_STATE_UNKNOWN, STET_REASON_CORRUPT, 0, 0,
                                  NULL);
            st = stet_observe_end(s, begun, err);
        }
        stet_numbers_release(&damaged);
    }
    stet_numbers_release(&branches);
    if (st == STET_OK)
        o->verified = version;
    return st;
}

stet_status stet_observe_catch_up(stet_space *s, stet_error *err) {
    struct stet_observe *o = stet_observe_of(s);
    if (o->off)
        return STET_OK;
    if (stet_db_in_transaction(s->db)) /* other spaces are written to, and their locks have to be taken in order */
        return stet_fail(err, STET_INVALID, "space \"%s\": catching up inside a transaction", s->name);
    stet_observe_drop_replaced(s);
    stet_status st = stet_observe_sync(s, err);
    if (st == STET_OK)
        st = stet_space_refresh(s, err);
    if (st != STET_OK)
        return st;
    bool begun;
    st = stet_space_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    int64_t through = stet_observe_through(s);
    bool foreign = stet_observe_int(s, "SELECT count(*) FROM (SELECT 1 FROM foreign_space LIMIT 1)", 0) != 0;
    st = stet_space_leave(s, begun, STET_OK, err);
    if (st == STET_OK && through < s->known)
        st = stet_observe_look(s, err);
    if (st == STET_OK && foreign)
        st = stet_observe_foreign_catch_up(s, err);
    if (st == STET_OK)
        st = stet_observe_absent_catch_up(s, err);
    return st == STET_OK ? distrust_damaged(s, err) : st;
}

stet_status stet_observe_owed(stet_space *s, stet_observe_debt *out, stet_error *err) {
    bool begun;
    *out = (stet_observe_debt){0};
    if (stet_observe_of(s)->off)
        return STET_OK;
    stet_observe_drop_replaced(s);
    stet_status st = stet_space_refresh(s, err);
    if (st == STET_OK)
        st = stet_space_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    int64_t through = stet_observe_through(s);
    out->commits = through < s->known ? s->known - through : 0;
    st = stet_space_leave(s, begun, STET_OK, err);
    if (st == STET_OK)
        st = stet_observe_foreign_owed(s, &out->spaces, err);
    stet_appeared appeared = {0};
    if (st == STET_OK)
        st = stet_observe_appeared(s, &appeared, err);
    for (size_t i = 0; i < appeared.len; i++) /* they come ordered by document */
        out->spaces += i == 0 || appeared.at[i].doc != appeared.at[i - 1].doc;
    stet_vec_release(&appeared);
    return st;
}

stet_status stet_observe_distrust(stet_space *s, int64_t branch, const stet_action_key *keys, size_t len,
                                  stet_reason reason, stet_error *err) {
    if (stet_observe_of(s)->off)
        return STET_OK;
    bool begun;
    stet_status st = stet_observe_begin(s, &begun, err);
    if (st != STET_OK)
        return st;
    for (size_t i = 0; i < len; i++)
        distrust_named(s, branch, stet_space_intern(s, &(stet_docname){keys[i].piece, keys[i].scope}), keys[i].action,
                       reason);
    return stet_observe_end(s, begun, err);
}

stet_status stet_observe_forget(stet_space *s, int64_t branch, const char *piece, const char *scope,
                                const stet_action_key *keys, size_t len, stet_error *err) {
    bool begun;
    stet_status st = stet_observe_begin(s, &begun, err);
    if (st != STET_OK)
        return st;
    int64_t doc = stet_space_intern(s, &(stet_docname){piece, scope});
    stet_numbers gone = {0};
    stet_observe_flush(s);
    for (size_t i = 0; i < len && keys; i++)
        find_named(s, branch, doc, &keys[i].action, 1, &gone);
    if (!keys)
        find_all(s, branch, doc, &gone);
    remove_all(s, branch, &gone);
    stet_numbers_release(&gone);
    return stet_observe_end(s, begun, err);
}

const char *stet_reason_name(stet_reason r) {
    switch (r) {
    case STET_REASON_NONE:
        return "none";
    case STET_REASON_CHANGED:
        return "changed";
    case STET_REASON_OVERWRITTEN:
        return "overwritten";
    case STET_REASON_NEVER:
        return "never";
    case STET_REASON_IMPLEMENTATION:
        return "implementation";
    case STET_REASON_SCHEMA:
        return "schema";
    case STET_REASON_RUNTIME:
        return "runtime";
    case STET_REASON_GENERATION:
        return "generation";
    case STET_REASON_BINDING:
        return "binding";
    case STET_REASON_BRANCH:
        return "branch";
    case STET_REASON_LOST:
        return "lost";
    case STET_REASON_CORRUPT:
        return "corrupt";
    case STET_REASON_RESTORED:
        return "restored";
    case STET_REASON_REPAIRED:
        return "repaired";
    case STET_REASON_REQUESTED:
        return "requested";
    case STET_REASON_SPACE:
        return "space";
    case STET_REASON_WAITS:
        return "waits";
    case STET_REASON_PATTERN:
        return "wrong";
    case STET_REASON_LEFT:
        return "left";
    }
    return "other";
}

const char *stet_action_state_name(stet_action_state state) {
    switch (state) {
    case STET_STATE_STANDS:
        return "stands";
    case STET_STATE_DIRTY:
        return "dirty";
    case STET_STATE_STALE:
        return "stale";
    case STET_STATE_ACCEPTED:
        return "accepted";
    case STET_STATE_UNKNOWN:
        break;
    }
    return "unknown";
}
