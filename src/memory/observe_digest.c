/* observe_digest.c - notices that marks are missing.
 *
 * A mark that vanishes, or that ends up under the number of another action, leaves no trace in what is read with its
 * action: the action would be called up to date. So space_meta holds a digest of all marks. It also holds a digest of
 * all foreign reads: without its row, changes of another space are never asked for. Both tables are small or about to
 * be worked off, and comparing them costs about as much as listing them.
 *
 * Rejected: a bit in the row of the action. A change with 10,000 readers would have to rewrite 10,000 rows.
 */

#include "memory/observe_internal.h"

#define MARKS_COMPARED 4096 /* if there are surveys, so that a start need not read more */

void stet_observe_digest(stet_space *s, const char *name, int64_t rows, int64_t sum) {
    stet_stmt *q = stet_db_stmt(s->db, "UPDATE space_meta SET value = ?2 WHERE name = ?1");
    stet_bind_text(q, 1, name, strlen(name));
    stet_bind_int(q, 2, stet_digest_add(stet_observe_meta(s, name, 0), rows, sum));
    stet_run(q);
}

bool stet_observe_old_mark(stet_space *s, int64_t action, int64_t space, stet_old_mark *out) {
    bool there = false;
    stet_stmt *q =
        stet_db_stmt(s->db, "SELECT state, seq, stamp, " STET_MARK_SUM " FROM mark WHERE action = ? AND space = ?");
    stet_bind_int(q, 1, action);
    stet_bind_int(q, 2, space);
    while (stet_step(q)) {
        there = true;
        *out =
            (stet_old_mark){stet_column_int(q, 0), stet_column_int(q, 1), stet_column_int(q, 2), stet_column_int(q, 3)};
    }
    return there;
}

int64_t stet_observe_drop_marks(stet_space *s, int64_t action, int64_t space) {
    enum { OF_ACTION, FROM_SPACE, ONE };
    static const char *const digests[] = {"SELECT " STET_MARK_DIGEST " FROM mark WHERE action = ?1 AND ?2 < 0",
                                          "SELECT " STET_MARK_DIGEST " FROM mark WHERE ?1 = 0 AND space = ?2",
                                          "SELECT " STET_MARK_DIGEST " FROM mark WHERE action = ?1 AND space = ?2"};
    static const char *const deletes[] = {"DELETE FROM mark WHERE action = ?1 AND ?2 < 0",
                                          "DELETE FROM mark WHERE ?1 = 0 AND space = ?2",
                                          "DELETE FROM mark WHERE action = ?1 AND space = ?2"};
    int which = space < 0 ? OF_ACTION : action == 0 ? FROM_SPACE : ONE;
    int64_t gone = 0;
    stet_stmt *q = stet_db_stmt(s->db, digests[which]);
    stet_bind_int(q, 1, action);
    stet_bind_int(q, 2, space);
    while (stet_step(q))
        gone = stet_column_int(q, 0);
    if (gone == 0)
        return 0;
    q = stet_db_stmt(s->db, deletes[which]);
    stet_bind_int(q, 1, action);
    stet_bind_int(q, 2, space);
    stet_run(q);
    stet_observe_digest(s, STET_DIGEST_MARK, -(gone >> 32), gone);
    return gone >> 32;
}

static int64_t foreign_sum(int64_t space, int64_t action) {
    return stet_fields_sum((stet_field[]){{STET_FIELD_INT, space, NULL, 0}, {STET_FIELD_INT, action, NULL, 0}}, 2);
}

void stet_observe_note_foreign(stet_space *s, int64_t space, int64_t action) {
    stet_stmt *q = stet_db_stmt(s->db, "INSERT OR IGNORE INTO foreign_read(space, action) VALUES(?, ?)");
    stet_bind_int(q, 1, space);
    stet_bind_int(q, 2, action);
    stet_run(q);
    if (stet_db_changes(s->db))
        stet_observe_digest(s, STET_DIGEST_FOREIGN, 1, foreign_sum(space, action));
}

void stet_observe_drop_foreign(stet_space *s, int64_t space, int64_t action) {
    int64_t gone = 0;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT " STET_FOREIGN_DIGEST
                                       " FROM foreign_read WHERE action = ?2 AND (?1 = 0 OR space = ?1)");
    stet_bind_int(q, 1, space);
    stet_bind_int(q, 2, action);
    while (stet_step(q))
        gone = stet_column_int(q, 0);
    if (gone == 0)
        return;
    q = stet_db_stmt(s->db, "DELETE FROM foreign_read WHERE action = ?2 AND (?1 = 0 OR space = ?1)");
    stet_bind_int(q, 1, space);
    stet_bind_int(q, 2, action);
    stet_run(q);
    stet_observe_digest(s, STET_DIGEST_FOREIGN, -(gone >> 32), gone);
}

bool stet_observe_digests_fit(stet_space *s, bool all) {
    struct stet_observe *o = stet_observe_of(s);
    int64_t version = stet_db_data_version(s->db);
    if (!all && o->fitting == version) /* own changes keep them fitting */
        return true;
    bool bounded = !all && stet_observe_int(s, "SELECT EXISTS(SELECT 1 FROM survey)", 0);
    stet_stmt *q = stet_db_stmt(s->db, "SELECT " STET_MARK_DIGEST " FROM (SELECT * FROM mark LIMIT ?)");
    int64_t marks = 0;
    stet_bind_int(q, 1, bounded ? MARKS_COMPARED + 1 : -1);
    while (stet_step(q))
        marks = stet_column_int(q, 0);
    bool fit = ((bounded && marks >> 32 > MARKS_COMPARED) || marks == stet_observe_meta(s, STET_DIGEST_MARK, -1)) &&
               stet_observe_int(s, "SELECT " STET_FOREIGN_DIGEST " FROM foreign_read", 0) ==
                   stet_observe_meta(s, STET_DIGEST_FOREIGN, -1);
    o->fitting = fit ? version : 0;
    return fit;
}

void stet_observe_digests_renew(stet_space *s) {
    stet_run(stet_db_stmt(s->db, "INSERT OR REPLACE INTO space_meta(name, value) SELECT '" STET_DIGEST_MARK
                                 "', " STET_MARK_DIGEST " FROM mark"));
    stet_run(stet_db_stmt(s->db, "INSERT OR REPLACE INTO space_meta(name, value) SELECT '" STET_DIGEST_FOREIGN
                                 "', " STET_FOREIGN_DIGEST " FROM foreign_read"));
}
