/* check.c - proves and rebuilds what is derived, removes what nobody needs.
 *
 * check reads the whole log once, oldest first, and keeps the newest sequence of each (branch, document): that is what
 * head rows must say, what each revision must name as the one before it (L1), and whether it may be a patch (L2). Then
 * every head and snapshot text is compared with the document rebuilt from the log. */
#include <stdio.h>

#include "memory/internal.h"
#include "memory/record.h"

typedef struct report {
    stet_space *s;
    stet_buf *problems;
    size_t found, log; /* log: of facts, which can't be rebuilt */
    stet_map newest;   /* key -> sequence times 2, plus 1 if it is live */
    int64_t last;
} report;

static void problem(report *r, const char *format, ...) STET_PRINTF(2, 3);
static void problem(report *r, const char *format, ...) {
    enum { SHOWN_MAX = 1000 };
    if (r->found++ >= SHOWN_MAX)
        return;
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    stet_buf_printf(r->problems, "%s\n", line);
}

/* ---- The log ---- */

/* The newest revision of a document that a branch sees, from what was read so far. */
static uint64_t newest_seen(report *r, int64_t branch, int64_t doc, int64_t upto) {
    for (;;) {
        int64_t key = stet_space_key(branch, doc);
        stet_slot *slot = stet_map_get(&r->newest, &key, sizeof key);
        if (slot && (int64_t)(slot->n >> 1) <= upto)
            return slot->n;
        if (slot) { /* the parent has moved on since the fork: ask the log */
            int64_t seq = stet_document_revision_at(r->s, branch, doc, upto);
            stet_value v;
            bool live = seq && stet_document_rebuild(r->s, doc, seq, false, &v);
            if (live)
                stet_release(v);
            return (uint64_t)seq << 1 | live;
        }
        const stet_branch_entry *b = stet_space_branch_entry(r->s, branch);
        if (!b || b->parent < 0)
            return 0;
        upto = upto < b->fork ? upto : b->fork;
        branch = b->parent;
    }
}

static void check_revision(report *r, int64_t seq, int64_t branch, const stet_record_rev *rev, const char *body,
                           size_t body_len, stet_arena *arena) {
    long long at = seq, doc = rev->doc;
    uint64_t before = newest_seen(r, branch, rev->doc, INT64_MAX >> 1);
    int64_t named = rev->back ? seq - rev->back : 0;
    if (named != (int64_t)(before >> 1))
        problem(r, "commit %lld, document %lld: names %lld as the revision before, which is %lld", at, doc,
                (long long)named, (long long)(before >> 1));
    if (rev->kind == STET_REVISION_PATCH && !(before & 1))
        problem(r, "commit %lld, document %lld: a patch of nothing", at, doc);
    if (rev->body_at > body_len || rev->body_len > body_len - rev->body_at) {
        problem(r, "commit %lld, document %lld: its body is cut", at, doc);
        return;
    }
    const char *text = body + rev->body_at;
    stet_value v;
    stet_patches ops = {0};
    if (rev->kind == STET_REVISION_SET) {
        bool good = stet_json_read(text, rev->body_len, NULL, &v, NULL) == STET_OK;
        if (!good || stet_typeof(v) != STET_OBJECT)
            problem(r, "commit %lld, document %lld: its text is damaged", at, doc);
        if (good)
            stet_release(v);
    } else if (rev->kind == STET_REVISION_PATCH && !stet_patches_decode(text, rev->body_len, &ops)) {
        problem(r, "commit %lld, document %lld: its patch is damaged", at, doc);
    }
    stet_patches_release(&ops);
    if (rev->leaf_count == 0 || !stet_record_leaves(rev, arena))
        problem(r, "commit %lld, document %lld: its changed leaves are damaged", at, doc);
    int64_t key = stet_space_key(branch, rev->doc);
    uint64_t now = (uint64_t)seq << 1 | (rev->kind != STET_REVISION_DELETE);
    stet_map_put(&r->newest, &key, sizeof key, (stet_slot){.n = now});
}

static void check_log(report *r) {
    stet_stmt *q = stet_db_stmt(r->s->db, "SELECT seq, branch, changes, body FROM commits ORDER BY seq");
    stet_arena arena = STET_ARENA_INIT;
    while (stet_step(q)) {
        int64_t seq = stet_column_int(q, 0), branch = stet_column_int(q, 1);
        if (seq != r->last + 1)
            problem(r, "commits %lld to %lld are missing", (long long)r->last + 1, (long long)seq - 1);
        r->last = seq;
        size_t len, body_len;
        const char *changes = stet_column_blob(q, 2, &len);
        const char *body = stet_column_blob(q, 3, &body_len);
        stet_record rec;
        stet_record_rev rev;
        stet_record_begin(&rec, changes, len);
        while (stet_record_next(&rec, &rev))
            check_revision(r, seq, branch, &rev, body, body_len, &arena);
        if (rec.damaged)
            problem(r, "commit %lld is damaged", (long long)seq);
        stet_arena_clear(&arena);
    }
    stet_arena_release(&arena);
    r->log = r->found;
}

/* ---- Derived tables ---- */

static void check_heads(report *r) {
    stet_stmt *q = stet_db_stmt(r->s->db, "SELECT key, seq, live, value FROM head ORDER BY key");
    size_t rows = 0;
    while (stet_step(q)) {
        int64_t key = stet_column_int(q, 0), seq = stet_column_int(q, 1);
        bool live = stet_column_int(q, 2) != 0;
        stet_slot *slot = stet_map_get(&r->newest, &key, sizeof key);
        rows++;
        if (!slot || (int64_t)(slot->n >> 1) != seq || (bool)(slot->n & 1) != live) {
            problem(r, "the head of document %lld on branch %lld is not its newest revision",
                    (long long)(key & (((int64_t)1 << 40) - 1)), (long long)(key >> 40));
            continue;
        }
        if (!live)
            continue;
        stet_value v;
        if (!stet_document_rebuild(r->s, key & (((int64_t)1 << 40) - 1), seq, false, &v))
            break; /* sticks */
        size_t len;
        const char *text = stet_column_blob(q, 3, &len);
        if (text) {
            stet_buf_clear(&r->s->text);
            stet_json_write(&r->s->text, v, STET_JSON_CANONICAL);
            if (r->s->text.len != len || memcmp(r->s->text.data, text, len) != 0)
                problem(r, "the head of document %lld on branch %lld has another text than its history",
                        (long long)(key & (((int64_t)1 << 40) - 1)), (long long)(key >> 40));
        }
        stet_release(v);
    }
    stet_reset(q);
    if (rows < stet_map_len(&r->newest))
        problem(r, "%zu documents have no head", stet_map_len(&r->newest) - rows);
}

/* The document after `seq`, from the revision before it: a snapshot at `seq` itself is not used. */
static bool rebuild_without(stet_space *s, int64_t doc, int64_t seq, stet_value *out) {
    stet_stmt *q = stet_db_stmt(s->db, "SELECT changes, body FROM commits WHERE seq = ?");
    stet_bind_int(q, 1, seq);
    bool good = false;
    if (stet_step(q)) {
        size_t len, body_len;
        stet_record_rev rev;
        bool damaged;
        const char *changes = stet_column_blob(q, 0, &len);
        const char *body = stet_column_blob(q, 1, &body_len);
        stet_patches ops = {0};
        if (stet_record_find(changes, len, doc, &rev, &damaged) && rev.body_at <= body_len &&
            rev.body_len <= body_len - rev.body_at) {
            if (rev.kind == STET_REVISION_SET)
                good = stet_json_read(body + rev.body_at, rev.body_len, NULL, out, NULL) == STET_OK;
            else if (rev.kind == STET_REVISION_PATCH && rev.back && rev.back < seq &&
                     stet_patches_decode(body + rev.body_at, rev.body_len, &ops)) {
                /* another row of the same statement's table is read below: the text has been copied into ops' values,
                 * but its paths still point into it, so the statement stays open */
                good = stet_document_rebuild(s, doc, seq - rev.back, false, out) &&
                       stet_patches_apply(ops.at, ops.len, out, NULL) == STET_OK;
            }
        }
        stet_patches_release(&ops);
    }
    stet_reset(q);
    return good;
}

static void check_snapshots(report *r) {
    stet_stmt *q = stet_db_stmt(r->s->db, "SELECT key, seq, value FROM snapshot ORDER BY key, seq");
    while (stet_step(q)) {
        int64_t key = stet_column_int(q, 0), seq = stet_column_int(q, 1), doc = key & (((int64_t)1 << 40) - 1);
        size_t len;
        const char *text = stet_column_blob(q, 2, &len);
        if (!text)
            continue;
        stet_value v = stet_null();
        bool good = rebuild_without(r->s, doc, seq, &v);
        stet_buf_clear(&r->s->text);
        if (good)
            stet_json_write(&r->s->text, v, STET_JSON_CANONICAL);
        if (!good || r->s->text.len != len || memcmp(r->s->text.data, text, len) != 0)
            problem(r, "the snapshot of document %lld at %lld has another text than its history", (long long)doc,
                    (long long)seq);
        stet_release(v);
    }
    stet_reset(q);
}

/* Heads and snapshots from the log alone. */
static stet_status rebuild_derived(report *r, stet_error *err) {
    stet_space *s = r->s;
    stet_status st = stet_db_begin_write(s->db, err);
    if (st != STET_OK)
        return st;
    stet_db_exec(s->db, "DELETE FROM snapshot; DELETE FROM head");
    const void *bytes;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&r->newest, &i, &bytes, &len, &slot);) {
        int64_t key, seq = (int64_t)(slot->n >> 1);
        memcpy(&key, bytes, sizeof key);
        stet_value v = stet_null();
        bool live = slot->n & 1;
        if (live && !stet_document_rebuild(s, key & (((int64_t)1 << 40) - 1), seq, false, &v))
            break;
        stet_buf_clear(&s->text);
        if (live)
            stet_json_write(&s->text, v, STET_JSON_CANONICAL);
        stet_release(v);
        bool small = live && s->text.len <= STET_INLINE_BYTES;
        stet_stmt *q = stet_db_stmt(s->db, "INSERT INTO head(key, seq, live, links, chain, bytes, value)"
                                           " VALUES(?, ?, ?, 0, 0, ?, ?)");
        stet_bind_int(q, 1, key);
        stet_bind_int(q, 2, seq);
        stet_bind_int(q, 3, live);
        stet_bind_int(q, 4, (int64_t)s->text.len);
        if (small)
            stet_bind_blob(q, 5, s->text.data, s->text.len);
        else
            stet_bind_null(q, 5);
        stet_run(q);
        q = stet_db_stmt(s->db, "INSERT INTO snapshot(key, seq, value) VALUES(?, ?, ?)");
        stet_bind_int(q, 1, key);
        stet_bind_int(q, 2, seq);
        if (live)
            stet_bind_blob(q, 3, s->text.data, s->text.len);
        else
            stet_bind_null(q, 3);
        stet_run(q);
    }
    st = stet_db_commit(s->db, err);
    stet_cache_clear(s);
    return st;
}

stet_status stet_space_check(stet_space *s, bool repair, stet_buf *problems, size_t *found, size_t *repaired,
                             stet_error *err) {
    report r = {.s = s, .problems = problems};
    *found = *repaired = 0;
    size_t before = problems->len;
    stet_status st = stet_db_check(s->db, problems, err);
    if (st != STET_OK)
        return st;
    for (size_t i = before; i < problems->len; i++)
        r.found += problems->data[i] == '\n';
    bool sound = r.found == 0; /* else the tables themselves can't be trusted */
    bool begun;
    if (sound && (st = stet_space_enter(s, &begun, err)) == STET_OK) {
        stet_error damage = STET_ERROR_INIT;
        check_log(&r);
        check_heads(&r);
        check_snapshots(&r);
        st = stet_space_leave(s, begun, STET_OK, &damage);
        if (st == STET_CORRUPT) { /* found while rebuilding: a problem, not a failure of the check */
            problem(&r, "%s", damage.message);
            st = STET_OK;
        } else if (st != STET_OK) {
            stet_error_move(err, &damage);
        }
        stet_error_clear(&damage);
    }
    if (st == STET_OK && repair && sound && r.found && r.log == 0) {
        st = rebuild_derived(&r, err);
        *repaired = st == STET_OK ? r.found : 0;
    }
    *found = r.found;
    stet_map_release(&r.newest);
    return st;
}

/* ---- gc ---- */

/* Deleted branches that no branch in use reads through. Newest first, so that children come before parents. */
#define DEAD_BRANCHES                                                                                                  \
    "WITH RECURSIVE used(branch) AS ("                                                                                 \
    " SELECT branch FROM branch WHERE deleted_ms IS NULL UNION SELECT b.parent FROM branch b JOIN used u"              \
    " ON b.branch = u.branch WHERE b.parent IS NOT NULL)"                                                              \
    " SELECT branch FROM branch WHERE branch NOT IN used"

static int64_t count_of(stet_space *s, const char *sql) {
    return stet_db_int(s->db, sql, 0);
}

static void measure(stet_space *s, stet_space_gc_report *out) {
    out->branches =
        count_of(s, "SELECT count(*) FROM (" DEAD_BRANCHES ") d"
                    " WHERE EXISTS(SELECT 1 FROM head WHERE key >= d.branch << 40 AND key < (d.branch + 1) << 40)");
    out->commits = count_of(s, "SELECT count(*) FROM commits WHERE branch IN (" DEAD_BRANCHES ") AND changes <> x''");
    out->snapshots = count_of(s, "SELECT count(*) FROM snapshot WHERE key >> 40 IN (" DEAD_BRANCHES ")");
    out->bytes =
        count_of(s, "SELECT coalesce(sum(length(changes) + length(body)), 0) FROM commits"
                    " WHERE branch IN (" DEAD_BRANCHES ")") +
        count_of(s, "SELECT coalesce(sum(length(value)), 0) FROM snapshot WHERE key >> 40 IN (" DEAD_BRANCHES ")");
}

/* Names that no head, no action and no index row needs any more; never the highest number, so that none is given twice.
 */
#define UNUSED_DOCUMENTS                                                                                               \
    " FROM document WHERE doc < (SELECT max(doc) FROM document)"                                                       \
    " AND doc NOT IN (SELECT key & 1099511627775 FROM head)"                                                           \
    " AND doc NOT IN (SELECT key & 1099511627775 FROM place_index)"                                                    \
    " AND doc NOT IN (SELECT key & 1099511627775 FROM mirror)"                                                         \
    " AND doc NOT IN (SELECT piece FROM action) AND doc NOT IN (SELECT doc FROM mark WHERE doc IS NOT NULL)"

stet_status stet_space_gc(stet_space *s, bool dry_run, stet_space_gc_report *out, stet_error *err) {
    *out = (stet_space_gc_report){0};
    stet_status st = dry_run ? stet_db_begin_read(s->db, err) : stet_db_begin_write(s->db, err);
    if (st != STET_OK)
        return st;
    measure(s, out);
    if (dry_run) {
        out->documents = count_of(s, "SELECT count(*)" UNUSED_DOCUMENTS);
        return stet_db_commit(s->db, err);
    }
    stet_db_exec(s->db, "DELETE FROM snapshot WHERE key >> 40 IN (" DEAD_BRANCHES ")");
    stet_db_exec(s->db, "DELETE FROM head WHERE key >> 40 IN (" DEAD_BRANCHES ")");
    stet_db_exec(s->db, "UPDATE commits SET changes = x'', body = x'' WHERE branch IN (" DEAD_BRANCHES ")");
    out->documents = count_of(s, "SELECT count(*)" UNUSED_DOCUMENTS);
    if (out->documents)
        stet_db_exec(s->db, "DELETE" UNUSED_DOCUMENTS ";INSERT INTO space_meta VALUES('names_gone', 1)"
                            " ON CONFLICT(name) DO UPDATE SET value = value + 1");
    st = stet_db_commit(s->db, err);
    stet_cache_clear(s);
    stet_space_forget_names(s);
    if (st == STET_OK)
        st = stet_db_checkpoint(s->db, err);
    int64_t pages = st == STET_OK ? stet_db_int(s->db, "PRAGMA page_count", 0) : 0;
    int64_t unused = st == STET_OK ? stet_db_int(s->db, "PRAGMA freelist_count", 0) : 0;
    int64_t size = st == STET_OK ? stet_db_bytes(s->db) : 0;
    if (st == STET_OK && unused > 256 && unused * 4 > pages)
        st = stet_db_vacuum(s->db, err);
    if (st == STET_OK) {
        st = stet_db_status(s->db, err);
        out->bytes = size - stet_db_bytes(s->db);
    }
    return st;
}

stet_status stet_space_stat(stet_space *s, stet_space_stats *out, stet_error *err) {
    bool begun;
    stet_status st = stet_space_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    *out = (stet_space_stats){
        .seq = count_of(s, "SELECT max(seq) FROM commits"),
        .documents = count_of(s, "SELECT count(*) FROM head WHERE live AND key < 1099511627776"),
        .branches = count_of(s, "SELECT count(*) FROM branch WHERE deleted_ms IS NULL"),
        .commits = count_of(s, "SELECT count(*) FROM commits"),
        .snapshots = count_of(s, "SELECT count(*) FROM snapshot"),
        .sessions = count_of(s, "SELECT count(*) FROM session"),
        .bytes = stet_db_bytes(s->db),
        .cache_documents = (int64_t)stet_map_len(&s->cache),
        .cache_bytes = (int64_t)s->cache_bytes,
        .cache_hits = s->hits,
        .cache_misses = s->misses,
    };
    char *wal = stet_asprintf("%s-wal", s->path);
    struct stat file;
    if (stet_sys_stat(wal, &file) == 0)
        out->wal_bytes = file.st_size;
    free(wal);
    return stet_space_leave(s, begun, STET_OK, err);
}
