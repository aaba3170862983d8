/* repo_gc.c - sweeping what no ref reaches, and taking single objects away for good. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "repo/execmap.h"
#include "repo/text.h"

/* Objects are marked by their number. Numbers count from one; a database that says otherwise is damaged, and still
 * asks for no more memory than that, and loses nothing. */
#define MARK_BITS_MAX ((int64_t)1 << 31)
typedef struct marks {
    stet_repo *r;
    uint8_t *bits; /* of 0 to max */
    int64_t max;
    stet_map far; /* the others */
    STET_VEC(int64_t) stack;
    stet_record_list names;
    stet_error *err;
} marks;

static bool is_marked(const marks *m, int64_t number) {
    if (number < 0 || number > m->max)
        return stet_map_get(&m->far, &number, sizeof number) != NULL;
    return m->bits[number / 8] >> (number % 8) & 1;
}

static void mark(marks *m, int64_t number) {
    if (is_marked(m, number))
        return;
    if (number < 0 || number > m->max)
        stet_map_put(&m->far, &number, sizeof number, (stet_slot){.n = 1});
    else
        m->bits[number / 8] |= (uint8_t)(1u << (number % 8));
    *stet_vec_add(&m->stack) = number;
}

static stet_status mark_id(marks *m, stet_hash id, const char *who) {
    bool there;
    stet_object_row row;
    stet_status st = stet_object_row_of(m->r, id, &there, &row, m->err);
    if (st == STET_OK && !there) {
        st = stet_fail(m->err, STET_CORRUPT, "%s names %s, which is not there: nothing was deleted", who,
                       stet_hash_print(id).text);
        stet_hint(m->err, "stet check --only repo says more");
    }
    if (st == STET_OK)
        mark(m, row.number);
    return st;
}

static stet_status mark_children(marks *m, int64_t number) {
    char who[100] = "";
    stet_hash id;
    stet_status st = STET_OK;
    stet_stmt *s = stet_db_stmt(m->r->db, "SELECT id, type, state, bytes FROM object WHERE number = ?");
    stet_vec_clear(&m->names);
    stet_bind_int(s, 1, number);
    if (stet_step(s)) {
        size_t len;
        bool fine = stet_column_id(s, 0, &id);
        int64_t type = stet_column_int(s, 1);
        const char *bytes = stet_column_blob(s, 3, &len);
        fine =
            fine && type >= 0 && type < STET_RECORD_TYPES && bytes &&
            stet_object_names((stet_record_type)type, (stet_object_state)stet_column_int(s, 2), bytes, len, &m->names);
        snprintf(who, sizeof who, "object %s", stet_hash_print(id).text);
        if (!fine) {
            st = stet_fail(m->err, STET_CORRUPT, "%s can't be read: nothing was deleted", who);
            stet_hint(m->err, "stet check --only repo --repair, then once more");
        }
    }
    stet_reset(s);
    for (size_t i = 0; i < m->names.len && st == STET_OK; i++)
        st = mark_id(m, m->names.at[i].id, who);
    return st;
}

static bool is_old(const stet_attempt *a, int64_t before_ms) {
    return a->done && a->updated_ms <= before_ms;
}

/* Which refs/exec/UUID go: those of attempts that ended before `before_ms`, and those that nobody here knows (an executor
 * elsewhere made them and did not remove them) once their object was put long ago. Claims keep what they name. */
static stet_status find_over(stet_repo *r, const stet_refs *refs, const stet_attempts *all, int64_t before_ms,
                             stet_map *over, stet_error *err) {
    static const char prefix[] = "refs/exec/";
    stet_map known = {0};
    stet_status st = STET_OK;
    for (size_t i = 0; i < all->len; i++)
        stet_map_put(&known, all->at[i].execution, strlen(all->at[i].execution),
                     (stet_slot){.n = is_old(&all->at[i], before_ms)});
    for (size_t i = 0; i < refs->len && st == STET_OK; i++) {
        const char *name = refs->at[i].name;
        stet_object_row row;
        bool there;
        if (strncmp(name, prefix, sizeof prefix - 1) != 0)
            continue;
        stet_slot *slot = stet_map_get(&known, name + sizeof prefix - 1, strlen(name + sizeof prefix - 1));
        bool gone = slot && slot->n;
        if (!slot) {
            st = stet_object_row_of(r, refs->at[i].target, &there, &row, err);
            gone = st == STET_OK && there && row.added_s * 1000 < before_ms - STET_REPO_ABANDONED_S * 1000;
        }
        if (gone)
            stet_map_put(over, name, strlen(name), (stet_slot){.n = 1});
    }
    stet_map_release(&known);
    return st;
}

/* Is everything that the exec record names stored? One that lost its result is not worth keeping. */
static bool is_complete(marks *m, int64_t number) {
    stet_stmt *s = stet_db_stmt(m->r->db, "SELECT bytes FROM object WHERE number = ? AND state = 0");
    bool fine = false;
    stet_bind_int(s, 1, number);
    stet_vec_clear(&m->names);
    if (stet_step(s)) {
        size_t len;
        const char *bytes = stet_column_blob(s, 0, &len);
        fine = bytes && stet_object_names(STET_RECORD_EXEC, STET_OBJECT_KEPT, bytes, len, &m->names);
    }
    stet_reset(s);
    for (size_t i = 0; i < m->names.len && fine; i++) {
        stet_object_row row;
        bool there = false;
        fine = stet_object_row_of(m->r, m->names.at[i].id, &there, &row, NULL) == STET_OK && there;
    }
    return fine;
}

/* Records are only ever added: all execs of a call that is kept are kept with it. *more: some were not marked yet. */
static stet_status mark_execs(marks *m, bool *more) {
    STET_VEC(int64_t) found = {0};
    stet_stmt *s = stet_db_stmt(m->r->db, "SELECT o.number, e.object FROM exec_of e JOIN object o ON o.id = e.node");
    while (stet_step(s))
        if (is_marked(m, stet_column_int(s, 0)) && !is_marked(m, stet_column_int(s, 1)))
            *stet_vec_add(&found) = stet_column_int(s, 1);
    *more = false;
    for (size_t i = 0; i < found.len; i++)
        if (is_complete(m, found.at[i])) {
            mark(m, found.at[i]);
            *more = true;
        }
    stet_vec_release(&found);
    return stet_db_status(m->r->db, m->err);
}

/* Calls that are under way, here or at a remote, and those that ended a short time ago. */
static stet_status mark_attempts(marks *m, const stet_attempts *list, int64_t before_ms) {
    stet_status st = STET_OK;
    for (size_t i = 0; i < list->len && st == STET_OK; i++) {
        bool there = false;
        stet_object_row row = {0};
        if (!is_old(&list->at[i], before_ms))
            st = stet_object_row_of(m->r, list->at[i].node, &there, &row, m->err);
        if (st == STET_OK && there)
            mark(m, row.number);
    }
    return st;
}

/* What claims name (H5 of hub.h). */
static stet_status mark_claims(marks *m) {
    stet_stmt *s = stet_db_stmt(m->r->db, "SELECT number FROM claim JOIN object ON id = node "
                                          "UNION SELECT number FROM claim JOIN object ON id = result");
    while (stet_step(s))
        mark(m, stet_column_int(s, 0));
    return stet_db_status(m->r->db, m->err);
}

/* Contents of a hub that were asked for a short time ago. */
static stet_status mark_blobs(marks *m, int64_t young) {
    stet_stmt *s = stet_db_stmt(m->r->db, "SELECT number FROM blob JOIN object ON id = datum WHERE used_s > ?");
    stet_bind_int(s, 1, young);
    while (stet_step(s))
        mark(m, stet_column_int(s, 0));
    return stet_db_status(m->r->db, m->err);
}

static void drop_blobs(stet_repo *r, int64_t before_s, bool dry_run, stet_repo_gc_report *report) {
    stet_stmt *s = stet_db_stmt(r->db, "SELECT count(*), coalesce(sum(size), 0) FROM blob WHERE used_s <= ?");
    stet_bind_int(s, 1, before_s);
    if (stet_step(s)) {
        report->blobs = stet_column_int(s, 0);
        report->blob_bytes = stet_column_int(s, 1);
    }
    stet_reset(s);
    if (dry_run)
        return;
    s = stet_db_stmt(r->db, "DELETE FROM blob WHERE used_s <= ?");
    stet_bind_int(s, 1, before_s);
    stet_run(s);
}

/* Young objects are roots too: somebody may be about to name them. So are tombstones made here. */
static stet_status mark_roots(marks *m, const stet_refs *refs, const stet_map *over, int64_t young) {
    stet_status st = mark_claims(m);
    if (st == STET_OK)
        st = mark_blobs(m, young);
    for (size_t i = 0; i < refs->len && st == STET_OK; i++)
        if (!stet_map_get(over, refs->at[i].name, strlen(refs->at[i].name)))
            st = mark_id(m, refs->at[i].target, refs->at[i].name);
    if (st != STET_OK)
        return st;
    stet_stmt *s = stet_db_stmt(m->r->db, "SELECT number FROM object WHERE added_s > ? OR state = 2");
    stet_bind_int(s, 1, young);
    while (stet_step(s))
        mark(m, stet_column_int(s, 0));
    return stet_db_status(m->r->db, m->err);
}

static stet_status sweep(marks *m, bool dry_run, stet_repo_gc_report *report) {
    STET_VEC(int64_t) gone = {0};
    stet_stmt *s = stet_db_stmt(m->r->db, "SELECT number, length(bytes) FROM object");
    while (stet_step(s)) {
        int64_t number = stet_column_int(s, 0);
        if (is_marked(m, number))
            continue;
        *stet_vec_add(&gone) = number;
        report->objects++;
        report->bytes += stet_column_int(s, 1);
    }
    for (size_t i = 0; i < gone.len && !dry_run; i++) {
        s = stet_db_stmt(m->r->db, "DELETE FROM object WHERE number = ?");
        stet_bind_int(s, 1, gone.at[i]);
        stet_run(s);
    }
    if (gone.len && !dry_run)
        stet_run(stet_db_stmt(m->r->db, "DELETE FROM exec_of WHERE object NOT IN (SELECT number FROM object)"));
    stet_vec_release(&gone);
    return stet_db_status(m->r->db, m->err);
}

static stet_status drop_done(stet_repo *r, const stet_attempts *done, const stet_map *over, stet_error *err) {
    stet_status st = STET_OK;
    const void *name;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(over, &i, &name, &len, &slot);) {
        stet_stmt *s = stet_db_stmt(r->db, "DELETE FROM ref WHERE name = ?");
        stet_bind_text(s, 1, name, len);
        stet_run(s);
    }
    for (size_t i = 0; i < done->len && st == STET_OK; i++)
        st = stet_attempt_remove(r, done->at[i].execution, err);
    return st;
}

/* Leaves in `list` the attempts that ended before `before_ms`. */
static void keep_old(stet_attempts *list, int64_t before_ms) {
    size_t n = 0;
    for (size_t i = 0; i < list->len; i++)
        if (is_old(&list->at[i], before_ms))
            list->at[n++] = list->at[i];
        else
            stet_attempt_release(&list->at[i]);
    list->len = n;
}

static int64_t drop_incoming(stet_repo *r, int64_t before_s, bool dry_run) {
    stet_stmt *s = stet_db_stmt(r->db, "SELECT count(*) FROM incoming WHERE added_s <= ?");
    stet_bind_int(s, 1, before_s);
    int64_t count = stet_step(s) ? stet_column_int(s, 0) : 0;
    stet_reset(s);
    if (!dry_run) {
        s = stet_db_stmt(r->db, "DELETE FROM incoming WHERE added_s <= ?");
        stet_bind_int(s, 1, before_s);
        stet_run(s);
    }
    return count;
}

static stet_status collect(stet_repo *r, bool dry_run, int64_t grace_s, stet_repo_gc_report *report, stet_error *err) {
    int64_t now_ms = stet_clock_ms(), before_s = now_ms / 1000 - grace_s;
    int64_t max = stet_db_int(r->db, "SELECT max(number) FROM object", 0);
    marks m = {.r = r, .max = max < 0 ? 0 : max > MARK_BITS_MAX ? MARK_BITS_MAX : max, .err = err};
    stet_refs refs = {0};
    stet_attempts done = {0};
    stet_map over = {0};
    m.bits = stet_alloc_zero((size_t)m.max / 8 + 1);
    stet_status st = stet_repo_refs(r, "", &refs, err);
    if (st == STET_OK)
        st = stet_attempt_list(r, NULL, &done, NULL, err);
    if (st == STET_OK)
        st = mark_attempts(&m, &done, now_ms - grace_s * 1000);
    if (st == STET_OK)
        st = find_over(r, &refs, &done, now_ms - grace_s * 1000, &over, err);
    keep_old(&done, now_ms - grace_s * 1000);
    if (st == STET_OK)
        st = mark_roots(&m, &refs, &over, before_s);
    for (bool more = true; more && st == STET_OK;) {
        while (m.stack.len && st == STET_OK)
            st = mark_children(&m, m.stack.at[--m.stack.len]);
        if (st == STET_OK)
            st = mark_execs(&m, &more);
    }
    if (st == STET_OK)
        st = sweep(&m, dry_run, report);
    report->refs = (int64_t)stet_map_len(&over);
    report->attempts = (int64_t)done.len;
    if (st == STET_OK && !dry_run)
        st = drop_done(r, &done, &over, err);
    if (st == STET_OK)
        report->incoming = drop_incoming(r, before_s, dry_run);
    if (st == STET_OK)
        drop_blobs(r, before_s, dry_run, report);
    stet_refs_release(&refs);
    stet_attempts_release(&done);
    stet_map_release(&over);
    stet_vec_release(&m.stack);
    stet_vec_release(&m.names);
    stet_map_release(&m.far);
    free(m.bits);
    return st == STET_OK ? stet_db_status(r->db, err) : st;
}

/* Gives pages back where many are unused. */
static stet_status shrink(stet_repo *r, stet_error *err) {
    stet_status st = stet_db_checkpoint(r->db, err);
    int64_t pages = st == STET_OK ? stet_db_int(r->db, "PRAGMA page_count", 0) : 0;
    int64_t unused = st == STET_OK ? stet_db_int(r->db, "PRAGMA freelist_count", 0) : 0;
    if (st == STET_OK && unused > 256 && unused * 4 > pages)
        st = stet_db_vacuum(r->db, err);
    return st == STET_OK ? stet_db_status(r->db, err) : st;
}

stet_status stet_repo_gc(stet_repo *r, const stet_repo_gc_opts *opts, stet_repo_gc_report *report, stet_error *err) {
    bool nothing;
    int64_t grace_s = opts->grace_s < 0 ? STET_REPO_GRACE_S : opts->grace_s;
    *report = (stet_repo_gc_report){0};
    stet_status st = stet_repo_ready(r, &nothing, err);
    if (st != STET_OK || nothing)
        return st;
    st = opts->dry_run ? stet_repo_begin_read(r, err) : stet_repo_begin(r, err);
    if (st != STET_OK)
        return st;
    st = collect(r, opts->dry_run, grace_s, report, err);
    if (st != STET_OK || opts->dry_run) {
        stet_repo_rollback(r);
        return st;
    }
    st = stet_repo_commit(r, err);
    return st == STET_OK ? shrink(r, err) : st;
}

static stet_status tombstone_of(stet_hash id, const char *reason, stet_buf *out, stet_error *err) {
    stet_buf text = STET_BUF(0);
    stet_value v = stet_value_object(), said;
    stet_hash unused;
    stet_status st = stet_value_string_checked(reason, strlen(reason), &said, err);
    if (st != STET_OK) {
        stet_value_release(v);
        return st;
    }
    stet_value_release(said);
    stet_text_nfc(reason, strlen(reason), &text);
    stet_value_put(&v, "object", stet_hash_text(id));
    stet_value_put(&v, "reason", stet_value_string_n(stet_buf_cstr(&text), text.len));
    stet_value_put(&v, "time", stet_value_int(stet_clock_ms()));
    stet_value_put(&v, "type", stet_value_string("tombstone"));
    st = stet_record_make(v, STET_RECORD_TOMBSTONE, NULL, &unused, err);
    size_t len;
    char *canonical = stet_json_print(v, STET_JSON_CANONICAL, &len);
    stet_buf_add(out, canonical, len);
    stet_free(canonical);
    stet_value_release(v);
    stet_buf_release(&text);
    return st;
}

static stet_status bury(stet_repo *r, stet_hash id, const stet_buf *tombstone, stet_error *err) {
    bool there;
    stet_object_row row;
    stet_status st = stet_object_row_of(r, id, &there, &row, err);
    if (st != STET_OK)
        return st;
    if (!there)
        return stet_fail(err, STET_NOT_FOUND, "object %s is not there", stet_hash_print(id).text);
    if (row.type == STET_RECORD_COMMIT || row.type == STET_RECORD_TREE || row.type == STET_RECORD_EXECMAP)
        return stet_fail(err, STET_INVALID,
                         "%s is a %s: data, nodes, DAGs and exec records can be excised, the history "
                         "that names them stays",
                         stet_short(id).text, stet_record_type_name(row.type));
    if (row.state == STET_OBJECT_EXCISED)
        return stet_fail(err, STET_CONFLICT, "object %s is excised already", stet_hash_print(id).text);
    stet_stmt *s = stet_db_stmt(r->db, "UPDATE object SET state = 2, bytes = ? WHERE number = ?");
    stet_bind_blob(s, 1, tombstone->data, tombstone->len);
    stet_bind_int(s, 2, row.number);
    stet_run(s);
    s = stet_db_stmt(r->db, "DELETE FROM incoming WHERE id = ?");
    stet_bind_id(s, 1, &id);
    stet_run(s);
    return stet_db_status(r->db, err);
}

stet_status stet_repo_excise(stet_repo *r, stet_hash id, const char *reason, stet_error *err) {
    bool nothing;
    stet_buf tombstone = STET_BUF(0);
    stet_status st = stet_repo_ready(r, &nothing, err);
    if (st == STET_OK && nothing)
        st = stet_fail(err, STET_NOT_FOUND, "object %s is not there", stet_hash_print(id).text);
    if (st == STET_OK)
        st = tombstone_of(id, reason, &tombstone, err);
    if (st == STET_OK)
        st = stet_repo_begin(r, err);
    if (st == STET_OK) {
        st = bury(r, id, &tombstone, err);
        if (st == STET_OK)
            st = stet_repo_commit(r, err);
        else
            stet_repo_rollback(r);
    }
    stet_buf_release(&tombstone);
    /* The old bytes lie in pages that are not used any more, and in the WAL. */
    if (st == STET_OK)
        st = stet_db_vacuum(r->db, err);
    return st == STET_OK ? stet_db_checkpoint(r->db, err) : st;
}
