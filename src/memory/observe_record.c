/* observe_record.c - stored observations as records: by number or key, past ones, and lists by number.
 *
 * Numbers become names here. Nothing here changes anything. Questions about many actions at once are in
 * observe_query.c.
 */

#include "memory/observe_internal.h"

typedef struct reader {
    stet_space *s;
    stet_arena *arena;
    bool brief; /* only what is needed to restore the action */
    bool past;  /* of a replaced observation: gc may have removed names that nothing else needs */
} reader;

/* Names are looked up after the statement that found the row has ended. */
static stet_status name_places(reader *r, const stet_places *p, const stet_observed **out, size_t *count,
                               stet_error *err) {
    stet_observed *list = stet_arena_zero(r->arena, (p->len + 1) * sizeof *list);
    for (size_t i = 0; i < p->len; i++) {
        if (i && p->at[i].doc == p->at[i - 1].doc) {
            list[i].name = list[i - 1].name;
        } else {
            stet_status st = stet_space_docname(r->s, p->at[i].doc, r->arena, &list[i].name, err);
            if (st != STET_OK)
                return st;
        }
        list[i].doc = p->at[i].doc;
        list[i].path = p->at[i].path;
        list[i].kind = p->at[i].flag ? STET_SHALLOW : STET_RECURSIVE;
        list[i].seq = p->at[i].seq;
    }
    *out = list;
    *count = p->len;
    return STET_OK;
}

static void leave_out_nameless(reader *r, stet_places *p) {
    size_t to = 0;
    for (size_t i = 0; i < p->len; i++) {
        bool named = to && p->at[to - 1].doc == p->at[i].doc;
        if (!named) {
            stet_stmt *q = stet_db_stmt(r->s->db, "SELECT 1 FROM document WHERE doc = ?");
            stet_bind_int(q, 1, p->at[i].doc);
            while (stet_step(q))
                named = true;
        }
        if (named)
            p->at[to++] = p->at[i];
    }
    p->len = to;
}

static stet_status section(reader *r, stet_bytes b, const stet_observed **out, size_t *count, stet_error *err) {
    stet_places p = {0};
    stet_status st = stet_places_unpack(b.at, b.len, &p) ? STET_OK : STET_CORRUPT;
    if (st == STET_OK && r->past)
        leave_out_nameless(r, &p);
    if (st == STET_OK)
        st = name_places(r, &p, out, count, err);
    stet_vec_release(&p);
    return st;
}

/* A section without index rows: gc may have removed names of documents that nothing else needs. They are left out. */
static stet_status loose_section(reader *r, stet_bytes b, const stet_observed **out, size_t *count, stet_error *err) {
    bool past = r->past;
    r->past = true;
    stet_status st = section(r, b, out, count, err);
    r->past = past;
    return st;
}

static stet_status hash_of(reader *r, int64_t number, stet_hash *out, stet_error *err) {
    memset(out, 0, sizeof *out);
    stet_stmt *q = stet_db_stmt(r->s->db, "SELECT fingerprint, hash, sum FROM fingerprint WHERE fingerprint = ?");
    stet_bind_int(q, 1, number);
    while (stet_step(q)) {
        size_t len;
        bool sound = stet_column_sound(q, 0, 2);
        const void *bytes = stet_column_blob(q, 1, &len);
        if (sound && len == sizeof out->bytes)
            memcpy(out->bytes, bytes, len);
    }
    return stet_db_status(r->s->db, err);
}

static const char *uuid_of(reader *r, int64_t space) {
    const char *uuid = "";
    stet_stmt *q = stet_db_stmt(r->s->db, "SELECT uuid FROM foreign_space WHERE space = ?");
    stet_bind_int(q, 1, space);
    while (stet_step(q))
        uuid = stet_observe_text(q, 0, r->arena);
    return uuid;
}

const char *stet_observe_space_name(stet_space *s, const char *uuid, stet_arena *arena) {
    const char *name = uuid;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT name FROM foreign_space WHERE uuid = ?");
    stet_bind_text(q, 1, uuid, strlen(uuid));
    while (stet_step(q))
        name = stet_observe_text(q, 0, arena);
    return name;
}

static stet_status reads_of(reader *r, const stet_obs *obs, stet_action_record *out, stet_error *err) {
    stet_places own = {0};
    stet_foreign_places other = {0};
    stet_status st = stet_obs_reads(obs, &own) && stet_foreign_unpack(obs->foreign, &other) ? STET_OK : STET_CORRUPT;
    const stet_observed *mine = NULL;
    size_t count = 0;
    if (st == STET_OK && r->past)
        leave_out_nameless(r, &own);
    if (st == STET_OK)
        st = name_places(r, &own, &mine, &count, err);
    if (st == STET_OK) {
        stet_observed *all = stet_arena_zero(r->arena, (count + other.len + 1) * sizeof *all);
        if (count)
            memcpy(all, mine, count * sizeof *all);
        for (size_t i = 0; i < other.len; i++)
            all[count + i] = (stet_observed){uuid_of(r, other.at[i].space),
                                             {stet_observe_name(other.at[i].id.at, other.at[i].id.len, r->arena),
                                              stet_observe_name(other.at[i].scope.at, other.at[i].scope.len, r->arena)},
                                             0,
                                             other.at[i].path,
                                             other.at[i].flag ? STET_SHALLOW : STET_RECURSIVE,
                                             other.at[i].seq};
        out->reads = all;
        out->read_count = count + other.len;
    }
    stet_vec_release(&own);
    stet_vec_release(&other);
    return st;
}

/* The mark of an action: unknown before dirty, then the newest cause in its own space. */
static stet_status cause_of(reader *r, int64_t action, stet_cause *out, stet_error *err) {
    *out = (stet_cause){.state = STET_STATE_STANDS};
    if (r->brief) {
        stet_stmt *b = stet_db_stmt(r->s->db, "SELECT state, reason FROM mark WHERE action = ?");
        stet_bind_int(b, 1, action);
        while (stet_step(b))
            if (out->state != STET_STATE_UNKNOWN) {
                out->state = stet_column_int(b, 0) == STET_STATE_DIRTY ? STET_STATE_DIRTY : STET_STATE_UNKNOWN;
                out->reason = (stet_reason)stet_column_int(b, 1);
            }
        return stet_db_status(r->s->db, err);
    }
    int64_t doc = 0, space = 0;
    stet_stmt *q = stet_db_stmt(r->s->db, "SELECT space, state, reason, seq, doc, id, scope, path, kind FROM mark"
                                          " WHERE action = ? ORDER BY state DESC, space LIMIT 1");
    stet_bind_int(q, 1, action);
    while (stet_step(q)) {
        size_t len;
        space = stet_column_int(q, 0);
        out->state = stet_column_int(q, 1) == STET_STATE_DIRTY ? STET_STATE_DIRTY : STET_STATE_UNKNOWN;
        out->reason = (stet_reason)stet_column_int(q, 2);
        out->seq = stet_column_int(q, 3);
        doc = stet_column_int(q, 4);
        if (!stet_column_is_null(q, 5)) {
            out->name.id = stet_observe_text(q, 5, r->arena);
            out->name.scope = stet_observe_text(q, 6, r->arena);
        }
        const char *path = stet_column_blob(q, 7, &len);
        out->change.path = (stet_pathref){stet_arena_strndup(r->arena, path ? path : "", len), len};
        if (!stet_path_valid(out->change.path))
            out->change.path = STET_PATH_ROOT;
        out->change.kind = stet_column_int(q, 8) == STET_KEYSET ? STET_KEYSET : STET_VALUE;
    }
    stet_status st = stet_db_status(r->s->db, err);
    if (st == STET_OK && space)
        out->space = uuid_of(r, space);
    if (st == STET_OK && doc && !space)
        st = stet_space_docname(r->s, doc, r->arena, &out->name, err);
    if (st == STET_CORRUPT) { /* a mark exists, and nothing else is known about it */
        stet_error_clear(err);
        *out = (stet_cause){.state = STET_STATE_UNKNOWN, .reason = STET_REASON_CORRUPT};
        st = STET_OK;
    }
    return st;
}

typedef struct stored_row {
    int64_t action, piece, generation;
    const char *name, *blob;
    size_t blob_len;
} stored_row;

static stet_status decode(reader *r, const stored_row *row, stet_action_record *out, stet_error *err) {
    memset(out, 0, sizeof *out);
    out->action = row->action;
    out->generation = row->generation;
    stet_docname piece;
    stet_status st = stet_space_docname(r->s, row->piece, r->arena, &piece, err);
    if (st != STET_OK)
        return st;
    out->key = (stet_action_key){piece.id, piece.scope, row->name};
    out->options = out->note = "null";
    out->options_len = out->note_len = 4;
    if (!r->past)
        st = cause_of(r, row->action, &out->cause, err);
    if (st != STET_OK)
        return st;
    stet_obs obs;
    if (row->blob_len == 0) {
        if (out->cause.state != STET_STATE_UNKNOWN)
            out->cause = (stet_cause){.state = STET_STATE_UNKNOWN, .reason = STET_REASON_NEVER};
        return STET_OK;
    }
    if (stet_obs_decode(row->blob, row->blob_len, &obs)) {
        out->kind = obs.kind;
        out->run = obs.run;
        out->parent = obs.parent.at ? stet_observe_name(obs.parent.at, obs.parent.len, r->arena) : NULL;
        out->observed_at = obs.observed_at;
        out->commit_seq = obs.changed ? obs.observed_at : 0;
        out->time_ms = obs.time_ms;
        out->failed = obs.failed;
        out->accepted = obs.accepted;
        out->error = obs.error;
        if (obs.options.len) {
            out->options = obs.options.at;
            out->options_len = obs.options.len;
        }
        if (obs.note.len) {
            out->note = obs.note.at;
            out->note_len = obs.note.len;
        }
        st = hash_of(r, obs.implementation, &out->implementation, err);
        if (st == STET_OK)
            st = hash_of(r, obs.runtime, &out->runtime, err);
        if (st == STET_OK)
            st = reads_of(r, &obs, out, err);
        if (st == STET_OK)
            st = section(r, obs.known, &out->known, &out->known_count, err);
        if (st == STET_OK && !r->brief)
            st = section(r, obs.declared, &out->declared, &out->declared_count, err);
        if (st == STET_OK && !r->brief)
            st = loose_section(r, obs.actual, &out->changed, &out->changed_count, err);
        if (st == STET_OK)
            st = section(r, obs.envelopes, &out->envelopes, &out->envelope_count, err);
        if (st == STET_OK && !r->brief)
            st = loose_section(r, obs.ignored, &out->ignored, &out->ignored_count, err);
        if (st == STET_OK) {
            out->observed = true;
            return STET_OK;
        }
    }
    if (stet_db_status(r->s->db, err) != STET_OK)
        return STET_IO;
    /* Bytes that can't be decoded prove nothing: the action is unknown, and the others are still listed. */
    stet_error_clear(err);
    out->cause = (stet_cause){.state = STET_STATE_UNKNOWN, .reason = STET_REASON_CORRUPT};
    return STET_OK;
}

static void copy_row(stet_stmt *q, stet_arena *arena, stored_row *row) {
    const void *blob = stet_observe_blob(q, 0, &row->blob_len);
    row->action = stet_column_int(q, 0);
    row->piece = stet_column_int(q, STET_ACTION_PIECE);
    row->generation = stet_column_int(q, STET_ACTION_GENERATION);
    row->name = stet_observe_text(q, STET_ACTION_NAME, arena);
    row->blob = stet_arena_strndup(arena, blob ? blob : "", row->blob_len);
}

stet_status stet_observe_enter(stet_space *s, bool *begun, stet_error *err) {
    stet_status st = stet_observe_sync(s, err);
    return st == STET_OK ? stet_space_enter(s, begun, err) : st;
}

static stet_status get(stet_space *s, int64_t action, bool brief, stet_arena *arena, stet_action_record *out,
                       stet_error *err) {
    bool begun, found = false;
    stet_status st = stet_observe_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    stored_row row = {0};
    stet_stmt *q = stet_db_stmt(s->db, "SELECT " STET_ACTION_COLUMNS " FROM action WHERE action = ?");
    stet_bind_int(q, 1, action);
    while (stet_step(q)) {
        copy_row(q, arena, &row);
        found = true;
    }
    reader r = {.s = s, .arena = arena, .brief = brief};
    if (found && !stet_observe_of(s)->off)
        st = decode(&r, &row, out, err);
    else
        st = stet_fail(err, STET_NOT_FOUND, "no action with the number %lld in space \"%s\"", (long long)action,
                       s->name);
    return stet_space_leave(s, begun, st, err);
}

stet_status stet_observe_get(stet_space *s, int64_t action, stet_arena *arena, stet_action_record *out,
                             stet_error *err) {
    return get(s, action, false, arena, out, err);
}

stet_status stet_observe_past(stet_space *s, int64_t action, stet_arena *arena, stet_action_record **out, size_t *count,
                              stet_error *err) {
    bool begun;
    *count = 0;
    stet_status st = stet_observe_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    STET_VEC(stored_row) rows = {0};
    stet_stmt *q = stet_db_stmt(s->db, "SELECT p.action, p.number, p.generation, p.observation, p.sum, a.piece, a.name"
                                       " FROM past_observation p JOIN action a ON a.action = p.action"
                                       " WHERE p.action = ? ORDER BY p.number DESC");
    stet_bind_int(q, 1, action);
    while (stet_step(q)) {
        size_t len;
        if (!stet_column_sound(q, 0, 4)) /* it only describes the past */
            continue;
        const void *blob = stet_column_blob(q, 3, &len);
        *stet_vec_add(&rows) = (stored_row){stet_column_int(q, 0),
                                            stet_column_int(q, 5),
                                            stet_column_int(q, 2),
                                            stet_observe_text(q, 6, arena),
                                            stet_arena_strndup(arena, blob ? blob : "", len),
                                            len};
    }
    reader r = {.s = s, .arena = arena, .past = true};
    *out = stet_arena_zero(arena, (rows.len + 1) * sizeof **out);
    for (size_t i = 0; i < rows.len && st == STET_OK && !stet_observe_of(s)->off; i++) {
        st = decode(&r, &rows.at[i], &(*out)[*count], err);
        *count += st == STET_OK && (*out)[*count].observed; /* what can't be decoded is left out */
    }
    stet_vec_release(&rows);
    return stet_space_leave(s, begun, st, err);
}

stet_status stet_observe_brief(stet_space *s, int64_t action, stet_arena *arena, stet_action_record *out,
                               stet_error *err) {
    return get(s, action, true, arena, out, err);
}

stet_status stet_observe_number(stet_space *s, int64_t branch, const stet_action_key *key, int64_t *out,
                                stet_error *err) {
    stet_docname piece = {key->piece, key->scope};
    int64_t doc;
    *out = 0;
    stet_status st = stet_observe_sync(s, err);
    if (st == STET_OK)
        st = stet_space_doc(s, &piece, &doc, err);
    if (st != STET_OK)
        return st;
    /* The index has no checksum: the row that it leads to says which action it is. */
    stet_stmt *q =
        stet_db_stmt(s->db, "SELECT a.action, b.piece IS ?1 AND b.branch IS ?2 AND b.name IS ?3 FROM action a"
                            " LEFT JOIN action b NOT INDEXED ON b.action = a.action"
                            " WHERE a.piece = ?1 AND a.branch = ?2 AND a.name = ?3");
    stet_bind_int(q, 1, doc);
    stet_bind_int(q, 2, branch);
    stet_bind_text(q, 3, key->action, strlen(key->action));
    bool own = true;
    while (stet_step(q)) {
        *out = stet_column_int(q, 0);
        own = stet_column_int(q, 1) != 0;
    }
    if (!own)
        stet_observe_damage(s, "the index of actions");
    st = stet_db_status(s->db, err);
    if (st == STET_OK && !*out)
        st = stet_fail(err, STET_NOT_FOUND, "piece \"%s\" has no observed action \"%s\"", key->piece, key->action);
    return st;
}

stet_status stet_observe_find(stet_space *s, int64_t branch, const stet_action_key *key, stet_arena *arena,
                              stet_action_record *out, stet_error *err) {
    int64_t action;
    stet_status st = stet_observe_number(s, branch, key, &action, err);
    return st == STET_OK ? stet_observe_get(s, action, arena, out, err) : st;
}

/* Selects the rows of a filter, ordered by number. */
static stet_status select_rows(stet_space *s, int64_t branch, const stet_action_filter *f, stet_stmt **out,
                               stet_error *err) {
    int64_t first = 0, last = INT64_MAX;
    if (f->piece) {
        stet_docname piece = {f->piece, f->scope};
        int64_t doc;
        stet_status st = stet_space_doc(s, &piece, &doc, err);
        if (st != STET_OK)
            return st;
        first = doc << STET_ACTION_BITS;
        last = (doc + 1) << STET_ACTION_BITS;
    }
    if (f->after >= first)
        first = f->after + 1;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT " STET_ACTION_COLUMNS " FROM action"
                                       " WHERE action >= ? AND action < ? AND branch = ? AND (? < 0 OR generation = ?)"
                                       " ORDER BY action LIMIT ?");
    stet_bind_int(q, 1, first);
    stet_bind_int(q, 2, last);
    stet_bind_int(q, 3, branch);
    stet_bind_int(q, 4, f->generation);
    stet_bind_int(q, 5, f->generation);
    stet_bind_int(q, 6, f->limit && f->limit < INT64_MAX ? (int64_t)f->limit + 1 : INT64_MAX);
    *out = q;
    return STET_OK;
}

stet_status stet_observe_list(stet_space *s, int64_t branch, const stet_action_filter *f, stet_arena *arena,
                              stet_action_record **out, size_t *count, int64_t *next, stet_error *err) {
    bool begun;
    stet_status st = stet_observe_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    STET_VEC(stored_row) rows = {0};
    stet_stmt *q = NULL;
    *count = 0;
    *next = 0;
    if (!stet_observe_of(s)->off)
        st = select_rows(s, branch, f, &q, err);
    if (st == STET_OK && !stet_observe_of(s)->off)
        while (stet_step(q))
            copy_row(q, arena, stet_vec_add(&rows));
    if (f->limit && rows.len > f->limit) {
        rows.len = f->limit;
        *next = rows.at[rows.len - 1].action;
    }
    stet_action_record *list = stet_arena_zero(arena, (rows.len + 1) * sizeof *list);
    reader r = {.s = s, .arena = arena};
    for (size_t i = 0; i < rows.len && st == STET_OK; i++)
        st = decode(&r, &rows.at[i], &list[i], err);
    if (st == STET_OK) {
        *out = list;
        *count = rows.len;
    }
    stet_vec_release(&rows);
    return stet_space_leave(s, begun, st, err);
}

stet_status stet_observe_scan(stet_space *s, int64_t branch, const stet_action_filter *f, stet_observe_each each,
                              void *ctx, stet_error *err) {
    bool begun;
    stet_status st = stet_observe_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    stet_stmt *q = NULL;
    if (!stet_observe_of(s)->off)
        st = select_rows(s, branch, f, &q, err);
    if (st == STET_OK && !stet_observe_of(s)->off)
        for (size_t n = 0; stet_step(q); n++) {
            size_t name_len, len;
            const void *blob = stet_observe_blob(q, 0, &len);
            const char *name = stet_column_text(q, STET_ACTION_NAME, &name_len);
            if ((f->limit && n == f->limit) || !each(ctx, stet_column_int(q, 0), name, name_len, blob, len)) {
                stet_reset(q);
                break;
            }
        }
    return stet_space_leave(s, begun, st, err);
}
