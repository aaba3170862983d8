/* gc.c - removes what is no longer needed, and counts what there is. */
#include "memory/internal.h"
#include "memory/observe_internal.h"

/* Deleted branches that no branch in use reads through. Newest first, so that children come before parents. */
#define DEAD_BRANCHES                                                                                                  \
    "WITH RECURSIVE used(branch) AS ("                                                                                 \
    " SELECT branch FROM branch WHERE deleted_ms IS NULL UNION SELECT b.parent FROM branch b JOIN used u"              \
    " ON b.branch = u.branch WHERE b.parent IS NOT NULL)"                                                              \
    " SELECT branch FROM branch WHERE branch NOT IN used"

#define EMPTY "x'02'" /* a record without documents */

static int64_t count_of(stet_space *s, const char *sql) {
    return stet_db_int(s->db, sql, 0);
}

static void measure(stet_space *s, stet_space_gc_report *out) {
    out->branches =
        count_of(s, "SELECT count(*) FROM (" DEAD_BRANCHES ") d"
                    " WHERE EXISTS(SELECT 1 FROM head WHERE key >= d.branch << 40 AND key < (d.branch + 1) << 40)");
    out->commits =
        count_of(s, "SELECT count(*) FROM commits WHERE branch IN (" DEAD_BRANCHES ") AND changes <> " EMPTY);
    out->snapshots = count_of(s, "SELECT count(*) FROM snapshot WHERE key >> 40 IN (" DEAD_BRANCHES ")");
    out->bytes =
        count_of(s, "SELECT coalesce(sum(length(changes) + length(body)), 0) FROM commits"
                    " WHERE branch IN (" DEAD_BRANCHES ")") +
        count_of(s, "SELECT coalesce(sum(length(value)), 0) FROM snapshot WHERE key >> 40 IN (" DEAD_BRANCHES ")");
}

/* Names that no head, action or index row needs any more. Never the highest number, so that no number is given
 * twice. */
#define UNUSED_DOCUMENTS                                                                                               \
    " FROM document WHERE doc < (SELECT max(doc) FROM document)"                                                       \
    " AND doc NOT IN (SELECT key & 1099511627775 FROM head)"                                                           \
    " AND doc NOT IN (SELECT key & 1099511627775 FROM place_index)"                                                    \
    " AND doc NOT IN (SELECT key & 1099511627775 FROM mirror)"                                                         \
    " AND doc NOT IN (SELECT piece FROM action) AND doc NOT IN (SELECT doc FROM mark WHERE doc IS NOT NULL)"

/* Removes these names from the digests of names. */
static void unname(stet_space *s) {
    stet_new_names gone = {0};
    stet_arena arena = STET_ARENA_INIT;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT doc, id, scope" UNUSED_DOCUMENTS " ORDER BY id, scope");
    while (stet_step(q)) {
        stet_new_name n = {.doc = stet_column_int(q, 0)};
        const char *id = stet_column_text(q, 1, &n.id_len);
        n.id = stet_arena_strndup(&arena, id, n.id_len);
        const char *scope = stet_column_text(q, 2, &n.scope_len);
        n.scope = stet_arena_strndup(&arena, scope, n.scope_len);
        *stet_vec_add(&gone) = n;
    }
    stet_space_names_changed(s, gone.at, gone.len, -1);
    stet_vec_release(&gone);
    stet_arena_release(&arena);
}

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
    /* Replaced by a record without documents. A damaged row is left alone: its branch may be another one. */
    stet_db_exec(s->db, "UPDATE commits SET changes = " EMPTY ", body = x'', content = crc32c(" EMPTY "),"
                        " sum = row_sum(seq, branch, time_ms, crc32c(" EMPTY ")) WHERE branch IN (" DEAD_BRANCHES ")"
                        " AND changes <> " EMPTY " AND sum = row_sum(seq, branch, time_ms, content)");
    out->documents = count_of(s, "SELECT count(*)" UNUSED_DOCUMENTS);
    if (out->documents)
        unname(s);
    if (out->documents)
        stet_db_exec(s->db, "DELETE" UNUSED_DOCUMENTS ";INSERT INTO space_meta(name, value) VALUES('names_gone', 1)"
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
