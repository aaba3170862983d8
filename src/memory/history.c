/* history.c - what happened: revisions of a document, commits of a space, overlapping changes, lists. */
#include "memory/walk.h"

void stet_walk_begin(stet_walk *w, stet_space *s, int64_t doc, int64_t from) {
    *w = (stet_walk){.s = s, .doc = doc, .next = from};
}

bool stet_walk_next(stet_walk *w, stet_arena *arena) {
    if (w->next <= 0)
        return false;
    w->seq = w->next;
    stet_stmt *q = stet_db_stmt(w->s->db, "SELECT " STET_COMMIT_COLUMNS " FROM commits WHERE seq = ?");
    stet_bind_int(q, 1, w->seq);
    bool good = false, damaged = false;
    if (stet_step(q)) {
        size_t len;
        const char *changes;
        bool sound = stet_commit_sound(q, &changes, &len);
        w->branch = stet_column_int(q, STET_COMMIT_BRANCH);
        w->time_ms = stet_column_int(q, STET_COMMIT_TIME);
        good = sound && stet_record_find(changes, len, w->doc, &w->rev, &damaged) && w->rev.back < w->seq &&
               (w->leaves = stet_record_leaves(&w->rev, arena)) != NULL;
    }
    stet_reset(q);
    if (!good) {
        stet_space_damaged(w->s, w->doc, "commit %lld is damaged or gone, or does not have it", (long long)w->seq);
        w->next = 0;
        return false;
    }
    w->next = w->rev.back ? w->seq - w->rev.back : 0;
    return true;
}

stet_status stet_space_head_seq(stet_space *s, int64_t branch, int64_t doc, int64_t *seq, stet_error *err) {
    bool begun;
    stet_status st = stet_space_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    int64_t found = stet_document_revision_at(s, branch, doc, INT64_MAX);
    st = stet_space_leave(s, begun, STET_OK, err);
    if (st == STET_OK)
        *seq = found;
    return st;
}

stet_status stet_space_overlaps(stet_space *s, int64_t branch, int64_t doc, stet_pathref path, stet_read_kind kind,
                                int64_t after, int64_t before, size_t limit, stet_arena *arena, stet_overlap **out,
                                size_t *count, stet_error *err) {
    STET_VEC(stet_overlap) found = {0};
    bool begun;
    stet_status st = stet_space_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    stet_walk w;
    stet_walk_begin(&w, s, doc, stet_document_revision_at(s, branch, doc, before > 0 ? before - 1 : INT64_MAX));
    while (found.len < limit && w.next > after && stet_walk_next(&w, arena))
        for (size_t i = 0; i < w.rev.leaf_count && found.len < limit; i++)
            if (stet_touches(w.leaves[i].path, w.leaves[i].kind, path, kind))
                *stet_vec_add(&found) = (stet_overlap){w.seq, w.leaves[i]};
    st = stet_space_leave(s, begun, STET_OK, err);
    if (st == STET_OK) {
        *out = stet_arena_dup(arena, found.at, found.len * sizeof *found.at);
        *count = found.len;
    }
    stet_vec_release(&found);
    return st;
}

static bool decode_commit(stet_space *s, stet_stmt *q, stet_arena *arena, stet_commit_record *out) {
    size_t len;
    const char *changes;
    bool sound = stet_commit_sound(q, &changes, &len);
    STET_VEC(stet_doc_change) list = {0};
    stet_record r;
    stet_record_rev rev;
    *out = (stet_commit_record){
        .seq = stet_column_int(q, 0), .branch = stet_column_int(q, 1), .time_ms = stet_column_int(q, 2)};
    stet_record_begin(&r, changes, len);
    r.damaged = r.damaged || !sound;
    while (stet_record_next(&r, &rev)) {
        const stet_change *leaves = stet_record_leaves(&rev, arena);
        r.damaged = r.damaged || !leaves;
        *stet_vec_add(&list) = (stet_doc_change){.doc = rev.doc, .kind = rev.kind, .at = leaves, .len = rev.leaf_count};
    }
    if (r.damaged)
        stet_space_damaged(s, 0, "commit %lld is damaged", (long long)out->seq);
    out->at = stet_arena_dup(arena, list.at, list.len * sizeof *list.at);
    out->len = list.len;
    stet_vec_release(&list);
    return !r.damaged;
}

/* Replaces numbers of documents by names; each is looked up once. */
static stet_status name_changes(stet_space *s, stet_commit_record *at, size_t len, stet_arena *arena, stet_error *err) {
    stet_map seen = {0};
    stet_status st = STET_OK;
    for (size_t i = 0; i < len && st == STET_OK; i++)
        for (size_t j = 0; j < at[i].len && st == STET_OK; j++) {
            /* Decoded by this function, so that it may be changed. */
            stet_doc_change *c = (stet_doc_change *)&at[i].at[j];
            stet_slot *slot = stet_map_get(&seen, &c->doc, sizeof c->doc);
            if (slot) {
                c->name = *(stet_docname *)slot->p;
                continue;
            }
            st = stet_space_docname(s, c->doc, arena, &c->name, err);
            stet_map_put(&seen, &c->doc, sizeof c->doc,
                         (stet_slot){.p = stet_arena_dup(arena, &c->name, sizeof c->name)});
        }
    stet_map_release(&seen);
    return st;
}

stet_status stet_space_commits(stet_space *s, int64_t after, int64_t upto, size_t limit, stet_arena *arena,
                               stet_commit_record **out, size_t *count, stet_error *err) {
    STET_VEC(stet_commit_record) found = {0};
    bool begun;
    stet_status st = stet_space_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT " STET_COMMIT_COLUMNS " FROM commits WHERE seq > ? AND seq <= ?"
                                       " ORDER BY seq LIMIT ?");
    stet_bind_int(q, 1, after);
    stet_bind_int(q, 2, upto > 0 ? upto : INT64_MAX);
    stet_bind_int(q, 3, (int64_t)limit);
    while (stet_step(q)) {
        stet_commit_record one;
        if (!decode_commit(s, q, arena, &one))
            break;
        *stet_vec_add(&found) = one;
    }
    stet_reset(q);
    st = stet_db_status(s->db, err);
    if (st == STET_OK)
        st = name_changes(s, found.at, found.len, arena, err);
    st = stet_space_leave(s, begun, st, err);
    if (st == STET_OK) {
        *out = stet_arena_dup(arena, found.at, found.len * sizeof *found.at);
        *count = found.len;
    }
    stet_vec_release(&found);
    return st;
}

stet_status stet_space_load(stet_space *s, int64_t branch, const stet_docname *name, int64_t at, stet_doc_state *out,
                            stet_error *err) {
    stet_status st = stet_docname_check(name, err);
    if (st != STET_OK || (st = stet_space_refresh(s, err)) != STET_OK)
        return st;
    if (at > s->known)
        return stet_fail(err, STET_NOT_FOUND, "sequence %lld: space \"%s\" is at %lld", (long long)at, s->name,
                         (long long)s->known);
    at = at < 0 ? s->known : at;
    int64_t doc = stet_space_find_doc(s, name);
    stet_cached *c = doc ? stet_cache_find(s, stet_space_key(branch, doc)) : NULL;
    if (c && !c->old && c->head.seq <= at) { /* answered from the cache */
        s->hits++;
        *out = (stet_doc_state){c->head.exists, stet_value_retain(c->head.value), c->head.seq};
        return stet_db_status(s->db, err);
    }
    bool begun;
    if ((st = stet_space_enter(s, &begun, err)) != STET_OK)
        return st;
    stet_head h = {0};
    stet_head_load(s, branch, doc, at, &h);
    st = stet_space_leave(s, begun, STET_OK, err);
    if (st == STET_OK)
        *out = (stet_doc_state){h.exists, h.value, h.seq};
    else
        stet_head_release(&h);
    return st;
}

static stet_value payload_of(stet_space *s, const stet_walk *w) {
    stet_value v = stet_value_null();
    if (w->rev.kind == STET_REVISION_DELETE || w->rev.kind == STET_REVISION_LOST)
        return v;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT body FROM commits WHERE seq = ?");
    stet_bind_int(q, 1, w->seq);
    bool good = false;
    if (stet_step(q)) {
        size_t len;
        const char *body = stet_column_blob(q, 0, &len);
        stet_patches ops = {0};
        body = stet_record_body(&w->rev, body, len);
        if (!body)
            good = false;
        else if (w->rev.kind == STET_REVISION_SET)
            good = stet_json_read(body, w->rev.body_len, NULL, &v, NULL) == STET_OK;
        else if ((good = stet_patches_decode(body, w->rev.body_len, &ops)))
            v = stet_patches_to_value(ops.at, ops.len);
        stet_patches_release(&ops);
    }
    stet_reset(q);
    if (!good)
        stet_space_damaged(s, w->doc, "what commit %lld says of it is damaged", (long long)w->seq);
    return v;
}

stet_status stet_space_history(stet_space *s, int64_t branch, const stet_docname *name, int64_t before, size_t limit,
                               stet_arena *arena, stet_revision **out, size_t *count, int64_t *next, stet_error *err) {
    STET_VEC(stet_revision) found = {0};
    bool begun;
    stet_status st = stet_docname_check(name, err);
    if (st != STET_OK || (st = stet_space_enter(s, &begun, err)) != STET_OK)
        return st;
    int64_t doc = stet_space_find_doc(s, name);
    stet_walk w;
    stet_walk_begin(&w, s, doc,
                    doc ? stet_document_revision_at(s, branch, doc, before > 0 ? before - 1 : INT64_MAX) : 0);
    while (found.len < limit && stet_walk_next(&w, arena))
        *stet_vec_add(&found) =
            (stet_revision){w.seq, w.time_ms, w.branch, w.rev.kind, w.leaves, w.rev.leaf_count, payload_of(s, &w)};
    st = stet_space_leave(s, begun, STET_OK, err);
    if (st == STET_OK) {
        *out = stet_arena_dup(arena, found.at, found.len * sizeof *found.at);
        *count = found.len;
        *next = w.next > 0 && found.len ? found.at[found.len - 1].seq : 0;
    } else {
        for (size_t i = 0; i < found.len; i++)
            stet_value_release(found.at[i].payload);
    }
    stet_vec_release(&found);
    return st;
}

/* Does a document exist on a branch that has no revision of it, as seen through its ancestors? */
static bool seen_through(stet_space *s, int64_t branch, int64_t doc, int64_t *seq, stet_arena *arena) {
    *seq = stet_document_revision_at(s, branch, doc, INT64_MAX);
    stet_walk w;
    stet_walk_begin(&w, s, doc, *seq);
    return stet_walk_next(&w, arena) && w.rev.kind != STET_REVISION_DELETE;
}

stet_status stet_space_list(stet_space *s, int64_t branch, const stet_doc_filter *filter, stet_arena *arena,
                            stet_doc_info **out, size_t *count, bool *more, stet_error *err) {
    const char *prefix = filter->prefix ? filter->prefix : "";
    char *upper = stet_asprintf("%s\xff", prefix);
    STET_VEC(stet_doc_info) found = {0};
    bool begun;
    stet_status st = stet_space_enter(s, &begun, err);
    if (st != STET_OK) {
        free(upper);
        return st;
    }
    stet_stmt *q = stet_db_stmt(
        s->db, "SELECT d.doc, d.id, d.scope, d.written, d.sum, h.key, h.seq, h.live, h.links, h.chain, h.bytes,"
               " h.value, h.sum FROM document d LEFT JOIN head h"
               " ON h.key = (?1 << 40) + d.doc WHERE (d.id, d.scope) > (?2, ?3) AND d.id >= ?4 AND d.id < ?5"
               " AND (?6 IS NULL OR d.scope = ?6) ORDER BY d.id, d.scope");
    stet_bind_int(q, 1, branch);
    const char *after_id = filter->after ? filter->after->id : "";
    const char *after_scope = filter->after && filter->after->scope ? filter->after->scope : "";
    stet_bind_text(q, 2, after_id, strlen(after_id));
    stet_bind_text(q, 3, after_scope, strlen(after_scope));
    stet_bind_text(q, 4, prefix, strlen(prefix));
    stet_bind_text(q, 5, upper, strlen(upper));
    if (filter->scope)
        stet_bind_text(q, 6, filter->scope, strlen(filter->scope));
    else
        stet_bind_null(q, 6);
    bool extra = false;
    while (!extra && stet_step(q)) {
        stet_doc_info d = {
            .doc = stet_column_int(q, 0), .seq = stet_column_int(q, 6), .bytes = (size_t)stet_column_int(q, 10)};
        bool own = !stet_column_is_null(q, 5);
        if (!stet_column_sound(q, 0, 4) || (own && !stet_column_sound(q, 5, 7)) ||
            (!own && branch < STET_WRITTEN_BRANCHES && (stet_column_int(q, 3) >> branch & 1))) {
            stet_reset(q);
            stet_space_damaged(s, d.doc, "the row that names its newest revision is damaged or gone");
            break;
        }
        bool there = own ? stet_column_int(q, 7) != 0 : branch != 0 && seen_through(s, branch, d.doc, &d.seq, arena);
        if (!there)
            continue;
        extra = found.len == filter->limit;
        if (extra)
            break;
        size_t len;
        const char *text = stet_column_text(q, 1, &len);
        d.name.id = stet_arena_strndup(arena, text, len);
        text = stet_column_text(q, 2, &len);
        d.name.scope = stet_arena_strndup(arena, text, len);
        *stet_vec_add(&found) = d;
    }
    stet_reset(q);
    st = stet_space_leave(s, begun, STET_OK, err);
    if (st == STET_OK) {
        *out = stet_arena_dup(arena, found.at, found.len * sizeof *found.at);
        *count = found.len;
        *more = extra;
    }
    stet_vec_release(&found);
    free(upper);
    return st;
}

stet_status stet_space_branches(stet_space *s, const char *after, bool deleted_too, size_t limit, stet_arena *arena,
                                stet_branch_info **out, size_t *count, stet_error *err) {
    STET_VEC(stet_branch_info) found = {0};
    stet_stmt *q =
        stet_db_stmt(s->db, "SELECT b.branch, b.name, b.parent, b.fork, b.created_ms, b.deleted_ms, b.sum, p.name"
                            " FROM branch b"
                            " LEFT JOIN branch p ON p.branch = b.parent"
                            " WHERE (?1 IS NULL OR b.name > ?1) AND (?2 OR b.deleted_ms IS NULL)"
                            " ORDER BY b.name, b.branch LIMIT ?3");
    if (after)
        stet_bind_text(q, 1, after, strlen(after));
    else
        stet_bind_null(q, 1);
    stet_bind_int(q, 2, deleted_too);
    stet_bind_int(q, 3, (int64_t)limit);
    while (stet_step(q)) {
        size_t len;
        stet_branch_info b = {.branch = stet_column_int(q, 0),
                              .fork = stet_column_int(q, 3),
                              .created_ms = stet_column_int(q, 4),
                              .deleted = !stet_column_is_null(q, 5)};
        if (!stet_column_sound(q, 0, 6)) {
            stet_reset(q);
            stet_space_damaged(s, 0, "branch number %lld is damaged", (long long)b.branch);
            break;
        }
        const char *text = stet_column_text(q, 1, &len);
        b.name = stet_arena_strndup(arena, text, len);
        if (!stet_column_is_null(q, 7)) {
            text = stet_column_text(q, 7, &len);
            b.parent = stet_arena_strndup(arena, text, len);
        }
        *stet_vec_add(&found) = b;
    }
    stet_status st = stet_db_status(s->db, err);
    if (st == STET_OK) {
        *out = stet_arena_dup(arena, found.at, found.len * sizeof *found.at);
        *count = found.len;
    }
    stet_vec_release(&found);
    return st;
}
