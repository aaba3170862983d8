/* observe_query.c - questions about many actions: marks, readers, writers, what is downstream, counts.
 *
 * Nothing here changes anything. What is known about one action is in observe_record.c.
 */

#include "memory/observe_internal.h"

static stet_status piece_range(stet_space *s, const char *piece, const char *scope, int64_t *first, int64_t *last,
                               stet_error *err) {
    *first = 0;
    *last = INT64_MAX;
    if (!piece)
        return STET_OK;
    stet_docname name = {piece, scope};
    int64_t doc;
    stet_status st = stet_space_doc(s, &name, &doc, err);
    *first = doc << STET_ACTION_BITS;
    *last = doc ? (doc + 1) << STET_ACTION_BITS : 0;
    return st;
}

stet_status stet_observe_known(stet_space *s, int64_t branch, const char *piece, const char *scope, int64_t *out,
                               stet_error *err) {
    bool begun;
    int64_t first = 0, last = 0;
    *out = 0;
    stet_status st = stet_observe_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    if (!stet_observe_of(s)->off)
        st = piece_range(s, piece, scope, &first, &last, err);
    if (st == STET_OK && !stet_observe_of(s)->off) {
        stet_stmt *q =
            stet_db_stmt(s->db, "SELECT count(*) FROM action WHERE action >= ? AND action < ? AND branch = ?");
        stet_bind_int(q, 1, first);
        stet_bind_int(q, 2, last);
        stet_bind_int(q, 3, branch);
        while (stet_step(q))
            *out = stet_column_int(q, 0);
    }
    return stet_space_leave(s, begun, st, err);
}

stet_status stet_observe_marks(stet_space *s, int64_t branch, const char *piece, const char *scope, stet_arena *arena,
                               stet_marked **out, size_t *count, stet_error *err) {
    int64_t first, last;
    *count = 0;
    stet_status st = stet_observe_sync(s, err);
    if (st == STET_OK)
        st = piece_range(s, piece, scope, &first, &last, err);
    if (st != STET_OK || stet_observe_of(s)->off)
        return st;
    STET_VEC(stet_marked) list = {0};
    stet_stmt *q = stet_db_stmt(s->db, "SELECT action, state, reason, seq FROM mark"
                                       " WHERE action >= ? AND action < ? AND branch = ?");
    stet_bind_int(q, 1, first);
    stet_bind_int(q, 2, last);
    stet_bind_int(q, 3, branch);
    while (stet_step(q)) {
        stet_marked m = {stet_column_int(q, 0),
                         stet_column_int(q, 1) == STET_STATE_DIRTY ? STET_STATE_DIRTY : STET_STATE_UNKNOWN,
                         (stet_reason)stet_column_int(q, 2), stet_column_int(q, 3)};
        stet_marked *before = list.len ? &list.at[list.len - 1] : NULL;
        if (before && before->action == m.action) { /* marks from several spaces: unknown wins */
            if (m.state > before->state)
                *before = m;
            continue;
        }
        *stet_vec_add(&list) = m;
    }
    *out = stet_arena_dup(arena, list.at ? (void *)list.at : (void *)"", list.len * sizeof *list.at);
    *count = list.len;
    stet_vec_release(&list);
    return stet_db_status(s->db, err);
}

stet_status stet_observe_count_marks(stet_space *s, int64_t branch, const char *piece, const char *scope, size_t *out,
                                     stet_error *err) {
    int64_t first, last;
    stet_status st = stet_observe_sync(s, err);
    *out = 0;
    if (st == STET_OK)
        st = piece_range(s, piece, scope, &first, &last, err);
    if (st != STET_OK || stet_observe_of(s)->off)
        return st;
    stet_stmt *q =
        stet_db_stmt(s->db, "SELECT count(DISTINCT action) FROM mark WHERE action >= ? AND action < ? AND branch = ?");
    stet_bind_int(q, 1, first);
    stet_bind_int(q, 2, last);
    stet_bind_int(q, 3, branch);
    while (stet_step(q))
        *out = (size_t)stet_column_int(q, 0);
    return stet_db_status(s->db, err);
}

stet_status stet_observe_failed(stet_space *s, int64_t branch, const char *piece, const char *scope, stet_numbers *out,
                                stet_error *err) {
    int64_t first, last;
    stet_status st = stet_observe_sync(s, err);
    if (st == STET_OK)
        st = piece_range(s, piece, scope, &first, &last, err);
    if (st != STET_OK || stet_observe_of(s)->off)
        return st;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT action FROM action INDEXED BY action_failed WHERE branch = ? AND"
                                       " action >= ? AND action < ? AND " STET_ACTION_FAILED " ORDER BY action");
    stet_bind_int(q, 1, branch);
    stet_bind_int(q, 2, first);
    stet_bind_int(q, 3, last);
    while (stet_step(q))
        stet_numbers_add(out, stet_column_int(q, 0));
    return stet_db_status(s->db, err);
}

/* A mark or an index row refers to an action without a row. Ignoring it would leave its readers with old values. A
 * start that compares all rows has noticed, and everything runs again; only the old index row may be left. */
static bool action_gone(stet_space *s) {
    bool unnoticed = !stet_observe_actions_counted(s);
    if (unnoticed && !stet_db_failed(s->db))
        stet_observe_damage(s, "the list of actions");
    return unnoticed;
}

/* A few marks are found by their stamps and sorted; if there are many, all marks are read in order. */
static stet_stmt *marks_since(stet_space *s, int64_t since) {
    enum { FEW = 10000 };
    if (since == 0) /* Unknown (3) comes before dirty (1) of the same action, and wins. */
        return stet_db_stmt(s->db, "SELECT m.action, m.state, a.piece, a.name FROM mark m LEFT JOIN action a"
                                   " ON a.action = m.action WHERE m.action > ? AND m.branch = ?"
                                   " ORDER BY m.action, m.state DESC");
    stet_stmt *q =
        stet_db_stmt(s->db, "SELECT count(*) FROM (SELECT 1 FROM mark WHERE stamp > 0 AND stamp > ? LIMIT ?)");
    int64_t count = 0;
    stet_bind_int(q, 1, since);
    stet_bind_int(q, 2, FEW + 1);
    while (stet_step(q))
        count = stet_column_int(q, 0);
    q = count > FEW ? stet_db_stmt(s->db, "SELECT m.action, m.state, a.piece, a.name FROM mark m LEFT JOIN action a"
                                          " ON a.action = m.action WHERE m.action > ? AND m.branch = ? AND +m.stamp > ?"
                                          " ORDER BY m.action, m.state DESC")
                    : stet_db_stmt(s->db, "SELECT m.action, m.state, a.piece, a.name FROM mark m INDEXED BY mark_stamp"
                                          " LEFT JOIN action a ON a.action = m.action WHERE +m.action > ?"
                                          " AND m.branch = ? AND m.stamp > 0 AND m.stamp > ?"
                                          " ORDER BY m.action, m.state DESC");
    stet_bind_int(q, 3, since);
    return q;
}

stet_status stet_observe_each_mark(stet_space *s, int64_t branch, int64_t since, int64_t after, size_t limit,
                                   stet_status (*visit)(void *ctx, int64_t action, const stet_docname *piece,
                                                        const char *name, stet_action_state state, stet_error *err),
                                   void *ctx, stet_error *err) {
    bool begun;
    stet_status st = stet_observe_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    stet_arena arena = STET_ARENA_INIT;
    int64_t piece_doc = -1, last = 0;
    size_t n = 0;
    stet_docname piece = {0};
    if (!stet_observe_of(s)->off) {
        stet_stmt *q = marks_since(s, since);
        stet_bind_int(q, 1, after);
        stet_bind_int(q, 2, branch);
        while (st == STET_OK && stet_step(q)) {
            int64_t action = stet_column_int(q, 0), doc = stet_column_int(q, 2);
            size_t len;
            if (action == last)
                continue;
            last = action;
            if (stet_column_is_null(q, 2)) { /* the row of the action has vanished */
                if (action_gone(s))
                    break;
                continue;
            }
            if (n++ == limit) {
                stet_reset(q);
                break;
            }
            if (doc != piece_doc) {
                stet_arena_clear(&arena);
                st = stet_space_docname(s, doc, &arena, &piece, err);
                piece_doc = doc;
            }
            if (st == STET_OK)
                st = visit(ctx, action, &piece, stet_column_text(q, 3, &len),
                           stet_column_int(q, 1) == STET_STATE_DIRTY ? STET_STATE_DIRTY : STET_STATE_UNKNOWN, err);
        }
        if (st != STET_OK)
            stet_reset(q);
    }
    stet_arena_release(&arena);
    return stet_space_leave(s, begun, st, err);
}

stet_status stet_observe_any(stet_space *s, int64_t branch, const char *piece, const char *scope, bool *out,
                             stet_error *err) {
    int64_t first, last;
    stet_status st = stet_observe_sync(s, err);
    if (st == STET_OK)
        st = piece_range(s, piece, scope, &first, &last, err);
    if (st != STET_OK)
        return st;
    *out = false;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT 1 FROM mark WHERE action >= ? AND action < ? AND branch = ? LIMIT 1");
    stet_bind_int(q, 1, first);
    stet_bind_int(q, 2, last);
    stet_bind_int(q, 3, branch);
    while (stet_step(q))
        *out = true;
    return stet_db_status(s->db, err);
}

/* The cache may be used if it is current: it is, in a read transaction, if no other connection has committed. */
stet_status stet_observe_rows_ready(stet_space *s, bool *begun, stet_error *err) {
    stet_status st = stet_observe_enter(s, begun, err);
    if (st == STET_OK)
        stet_observe_fresh(s);
    return st;
}

static void find_gone(stet_space *s, const stet_numbers *found) {
    for (size_t i = 0; i < found->len; i++) {
        void **known = stet_blocks_at(&stet_observe_of(s)->by_number, found->at[i], NULL);
        if (known && *known)
            continue;
        stet_stmt *q = stet_db_stmt(s->db, "SELECT 1 FROM action WHERE action = ?");
        stet_bind_int(q, 1, found->at[i]);
        bool there = stet_step(q);
        stet_reset(q);
        if (!there && !stet_db_failed(s->db))
            action_gone(s);
    }
}

stet_status stet_observe_readers(stet_space *s, int64_t branch, const stet_docname *name, stet_pathref path,
                                 stet_change_kind kind, stet_numbers *out, stet_error *err) {
    bool begun;
    int64_t doc = 0;
    stet_status st = stet_observe_rows_ready(s, &begun, err);
    if (st != STET_OK)
        return st;
    st = stet_space_doc(s, name, &doc, err);
    stet_change c = {path, kind};
    if (st == STET_OK && doc && !stet_observe_of(s)->off)
        stet_observe_readers_of(s, stet_space_key(branch, doc), &c, out);
    stet_numbers_settle(out);
    find_gone(s, out);
    return stet_space_leave(s, begun, st, err);
}

stet_status stet_observe_writers(stet_space *s, int64_t branch, const stet_docname *name, stet_pathref path,
                                 unsigned flags, stet_numbers *out, stet_error *err) {
    bool begun;
    int64_t doc = 0;
    stet_status st = stet_observe_rows_ready(s, &begun, err);
    if (st != STET_OK)
        return st;
    st = stet_space_doc(s, name, &doc, err);
    if (st == STET_OK && doc && !stet_observe_of(s)->off)
        stet_observe_writers_of(s, stet_space_key(branch, doc), path, flags, out);
    stet_numbers_settle(out);
    return stet_space_leave(s, begun, st, err);
}

void stet_observe_writes_of(stet_space *s, int64_t action, stet_buf *blob, stet_places *out, stet_places *envelopes) {
    stet_buf_clear(blob);
    stet_stmt *q = stet_db_stmt(s->db, "SELECT " STET_ACTION_COLUMNS " FROM action WHERE action = ?");
    stet_bind_int(q, 1, action);
    while (stet_step(q)) {
        size_t len;
        const void *bytes = stet_observe_blob(q, 0, &len);
        stet_buf_add(blob, bytes, len);
    }
    stet_obs obs;
    stet_vec_clear(out);
    stet_vec_clear(envelopes);
    if (!blob->len || !stet_obs_decode(blob->data, blob->len, &obs) ||
        !stet_places_unpack(obs.known.at, obs.known.len, out) ||
        !stet_places_unpack(obs.envelopes.at, obs.envelopes.len, envelopes)) {
        stet_vec_clear(out);
        stet_vec_clear(envelopes);
    }
}

/* Children of `rows` are named `rows[KEY].NODE`. Those of a filter have another coordinator, `rows[]`, which `rows`
 * reads. */
void stet_observe_children_of(stet_space *s, int64_t action, stet_numbers *out) {
    stet_stmt *q = stet_db_stmt(
        s->db, "SELECT c.action FROM (SELECT *, CASE WHEN name LIKE '%[]' THEN substr(name, 1, length(name) - 2) ELSE"
               " name END AS base FROM action WHERE action = ?) a JOIN action c ON c.piece = a.piece AND"
               " c.branch = a.branch AND c.name > a.base || '[' AND c.name < a.base || '\\' WHERE c.action <> a.action"
               " AND (a.name <> a.base OR NOT EXISTS (SELECT 1 FROM action f WHERE f.piece = a.piece AND"
               " f.branch = a.branch AND f.name = a.name || '[]'))");
    stet_bind_int(q, 1, action);
    while (stet_step(q))
        stet_numbers_add(out, stet_column_int(q, 0));
}

#define VERIFIED 256 /* rows; reading all of a large graph would cost more than starting it (1,024 rows: 1 ms) */

stet_status stet_observe_damaged(stet_space *s, int64_t branch, stet_numbers *out, stet_error *err) {
    bool begun;
    if (stet_observe_of(s)->off)
        return STET_OK;
    stet_status st = stet_observe_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    if (!stet_observe_places_there(s))
        stet_observe_damage(s, "the list of who reads and writes what");
    if (!stet_space_few_names_fit(s))
        stet_observe_damage(s, "the list of documents");
    bool fit = stet_observe_digests_fit(s, false); /* otherwise a mark may be missing, of any action */
    stet_stmt *q = stet_db_stmt(s->db, "SELECT " STET_ACTION_COLUMNS " FROM action ORDER BY action LIMIT ?1");
    stet_bind_int(q, 1, fit ? VERIFIED : -1);
    while (stet_step(q)) {
        size_t len = 0;
        if (stet_column_int(q, 1) != branch || (fit && stet_column_is_null(q, STET_ACTION_BLOB)))
            continue;
        const void *blob = fit ? stet_observe_blob(q, 0, &len) : NULL;
        stet_obs obs;
        if (!len || !stet_obs_decode(blob, len, &obs) || !stet_obs_sound(&obs))
            stet_numbers_add(out, stet_column_int(q, 0));
    }
    return stet_space_leave(s, begun, STET_OK, err);
}

/* Counts the places that actions read and write, one for each pair of action and place. */
static void count_places(stet_space *s, int64_t *reads, int64_t *writes) {
    stet_stmt *q = stet_db_stmt(s->db, "SELECT reads | shallow, known | declared | envelopes FROM place_index");
    *reads = *writes = 0;
    while (stet_step(q)) {
        *reads += __builtin_popcountll((uint64_t)stet_column_int(q, 0));
        *writes += __builtin_popcountll((uint64_t)stet_column_int(q, 1));
    }
}

stet_status stet_observe_stat(stet_space *s, stet_observe_stats *out, stet_error *err) {
    bool begun;
    stet_status st = stet_observe_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    const struct stet_observe *o = stet_observe_of(s);
    *out = (stet_observe_stats){
        .actions = stet_observe_int(s, "SELECT count(*) FROM action", 0),
        .observed = stet_observe_int(s, "SELECT count(*) FROM action WHERE observation IS NOT NULL", 0),
        .dirty = stet_observe_int(s, "SELECT count(*) FROM mark WHERE state = 1", 0),
        .unknown = stet_observe_int(s, "SELECT count(*) FROM mark WHERE state = 3", 0),
        .mirror_rows = stet_observe_int(s, "SELECT count(*) FROM mirror", 0),
        .foreign_spaces = stet_observe_int(s, "SELECT count(*) FROM foreign_space", 0),
        .observation_bytes = stet_observe_int(s, "SELECT coalesce(sum(length(observation)), 0) FROM action", 0),
        .marked_through = stet_observe_int(s, "SELECT value FROM space_meta WHERE name = 'marked_through'", 0),
        .seq = s->known,
        .past_rows = stet_observe_int(s, "SELECT count(*) FROM past_observation", 0),
        .past_bytes = stet_observe_int(s, "SELECT coalesce(sum(length(observation)), 0) FROM past_observation", 0),
        .stood = stet_observe_int(s, "SELECT value FROM space_meta WHERE name = 'runs:-1'", 0),
        .handle = o->counts};
    count_places(s, &out->read_rows, &out->write_rows);
    stet_stmt *q = stet_db_stmt(s->db, "SELECT reason, count(*) FROM mark GROUP BY reason");
    while (stet_step(q)) {
        int64_t reason = stet_column_int(q, 0);
        if (reason >= 0 && reason < STET_REASONS)
            out->marks[reason] = stet_column_int(q, 1);
    }
    q = stet_db_stmt(s->db, "SELECT substr(name, 6), value FROM space_meta WHERE name GLOB 'runs:[0-9]*'");
    while (stet_step(q)) {
        int64_t reason = stet_column_int(q, 0);
        if (reason >= 0 && reason < STET_REASONS)
            out->runs[reason] = stet_column_int(q, 1);
    }
    return stet_space_leave(s, begun, STET_OK, err);
}
