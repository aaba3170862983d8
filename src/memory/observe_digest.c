/* observe_digest.c - notices that rows are missing.
 *
 * A mark that vanishes, or that ends up under the number of another action, leaves no trace in what is read with its
 * action: the action would be called up to date. So space_meta holds a digest of all marks. It also holds a digest of
 * all foreign reads: without such a row, changes in the other space would never be asked for. Both tables are small or
 * shrink soon, and comparing a digest costs about as much as listing the table.
 *
 * place_index has too many rows for that, but each row is looked up by its document. So there is a digest for each
 * bucket of neighbouring documents, which is verified when one of them is looked up for the first time. It is computed
 * from the rows again after each change: a bucket has about fifty. Rejected: one digest, which would cost a start
 * milliseconds; and adding up the changes, which needs the old row of each new one.
 *
 * Rejected: a bit in the row of the action. A change with 10,000 readers would have to rewrite 10,000 rows.
 */

#include "memory/observe_internal.h"

#define ROWS_COMPARED  1024 /* rows of `action` */
#define ROWS_PROBED    64   /* if there are more: proves that the table was not emptied */
#define ORPHANS_SOUGHT 1024 /* marks, whose actions are looked up one by one */
#define MARKS_COMPARED 4096 /* only with surveys, so that a start need not read more */

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

bool stet_observe_reads_far(stet_space *s) {
    return stet_observe_int(s, "SELECT EXISTS(SELECT 1 FROM foreign_read)", 1) != 0;
}

bool stet_observe_digests_fit(stet_space *s, bool all) {
    struct stet_observe *o = stet_observe_of(s);
    int64_t version = stet_db_data_version(s->db);
    if (!all && o->fitting == version) /* changes by this handle keep them matching */
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

bool stet_observe_has_actions(stet_space *s) {
    return stet_observe_int(s, "SELECT EXISTS(SELECT 1 FROM action)", 0) != 0;
}

static int64_t bucket_of(int64_t key) {
    return key >> STET_BUCKET;
}

bool stet_observe_places_fit(stet_space *s, int64_t key) {
    struct stet_observe *o = stet_observe_of(s);
    int64_t bucket = bucket_of(key);
    bool added;
    stet_slot *slot = stet_map_have(&o->buckets, &bucket, sizeof bucket, (stet_slot){.n = 0}, &added);
    if (slot->n)
        return true;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT (SELECT row_digest(" STET_BLOCK_COLUMNS ") FROM place_index WHERE key >="
                                       " ?1 << " STET_BUCKET_BITS " AND key < (?1 + 1) << " STET_BUCKET_BITS ") IS"
                                       " coalesce((SELECT digest FROM place_digest WHERE bucket = ?1), 0)");
    stet_bind_int(q, 1, bucket);
    bool fit = stet_step(q) && stet_column_int(q, 0) != 0;
    stet_reset(q);
    slot->n = fit;
    if (!fit && !stet_observe_has_actions(s))
        return true; /* emptied tables: no action is recorded, so that none can be missing */
    if (!fit)
        stet_observe_damage(s, "the list of who reads and writes what");
    return fit;
}

void stet_observe_places_changed(stet_space *s, int64_t bucket) {
    struct stet_observe *o = stet_observe_of(s);
    stet_stmt *q = stet_db_stmt(s->db, "INSERT OR REPLACE INTO place_digest(bucket, digest) SELECT ?1,"
                                       " row_digest(" STET_BLOCK_COLUMNS ") FROM place_index WHERE key >="
                                       " ?1 << " STET_BUCKET_BITS " AND key < (?1 + 1) << " STET_BUCKET_BITS);
    stet_bind_int(q, 1, bucket);
    stet_run(q);
    if (!o->has_places)
        stet_run(stet_db_stmt(s->db, "INSERT OR IGNORE INTO space_meta(name, value) VALUES('places', 1)"));
    o->has_places = true;
}

bool stet_observe_all_places_fit(stet_space *s) {
    return stet_observe_int(s,
                            "SELECT NOT EXISTS(SELECT bucket, digest FROM place_digest WHERE digest != 0 EXCEPT SELECT"
                            " key >> " STET_BUCKET_BITS ", row_digest(" STET_BLOCK_COLUMNS ") FROM place_index GROUP BY"
                            " 1) AND NOT EXISTS(SELECT key >> " STET_BUCKET_BITS ", row_digest(" STET_BLOCK_COLUMNS
                            ") FROM place_index GROUP BY 1 EXCEPT SELECT bucket, digest FROM place_digest)",
                            0) != 0;
}

void stet_observe_places_renew(stet_space *s) {
    stet_run(stet_db_stmt(s->db, "DELETE FROM place_digest"));
    stet_run(stet_db_stmt(s->db, "INSERT INTO place_digest(bucket, digest) SELECT key >> " STET_BUCKET_BITS
                                 ", row_digest(" STET_BLOCK_COLUMNS ") FROM place_index GROUP BY 1"));
    stet_run(stet_db_stmt(s->db, "DELETE FROM space_meta WHERE name = 'places'"));
    stet_run(stet_db_stmt(s->db, "INSERT INTO space_meta(name, value) SELECT 'places', 1 FROM place_digest LIMIT 1"));
    stet_observe_of(s)->has_places = false;
    stet_map_clear(&stet_observe_of(s)->buckets);
}

void stet_observe_begin_places(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    if (!o->has_actions && !stet_observe_has_actions(s))
        stet_observe_places_renew(s);
    o->has_actions = true;
}

bool stet_observe_places_there(stet_space *s) {
    return stet_observe_int(s,
                            "SELECT EXISTS(SELECT 1 FROM place_digest) OR NOT EXISTS(SELECT 1 FROM space_meta WHERE"
                            " name = 'places') OR NOT EXISTS(SELECT 1 FROM action)",
                            0) != 0;
}

bool stet_observe_actions_fit(stet_space *s, bool all) {
    struct stet_observe *o = stet_observe_of(s);
    int64_t version = stet_db_data_version(s->db);
    if (!all && o->counted == version) /* changes by this handle keep it right */
        return true;
    int64_t want = stet_observe_meta(s, STET_DIGEST_ACTION, -1) >> 32;
    int64_t most = all ? INT64_MAX - 1 : want > ROWS_COMPARED ? ROWS_PROBED : ROWS_COMPARED;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT count(*) FROM (SELECT 1 FROM action INDEXED BY action_name LIMIT ?)");
    stet_bind_int(q, 1, most + 1);
    int64_t there = stet_step(q) ? stet_column_int(q, 0) : -1;
    stet_reset(q);
    if (there != (want > most ? most + 1 : want))
        return false;
    q = stet_db_stmt(s->db, "SELECT NOT EXISTS(SELECT 1 FROM (SELECT action FROM mark LIMIT ?) m WHERE NOT EXISTS"
                            " (SELECT 1 FROM action a WHERE a.action = m.action))");
    stet_bind_int(q, 1, all ? -1 : ORPHANS_SOUGHT);
    bool fit = stet_step(q) && stet_column_int(q, 0) != 0;
    stet_reset(q);
    o->counted = fit ? version : 0;
    return fit;
}

bool stet_observe_actions_counted(stet_space *s) {
    return stet_observe_meta(s, STET_DIGEST_ACTION, -1) >> 32 <= ROWS_COMPARED;
}

void stet_observe_actions_renew(stet_space *s) {
    stet_run(stet_db_stmt(s->db, "INSERT OR REPLACE INTO space_meta(name, value) SELECT '" STET_DIGEST_ACTION
                                 "', count(*) << 32 FROM action"));
    stet_numbers orphans = {0};
    stet_stmt *q = stet_db_stmt(s->db, "SELECT DISTINCT action FROM mark m WHERE NOT EXISTS (SELECT 1 FROM action a"
                                       " WHERE a.action = m.action)");
    while (stet_step(q))
        stet_numbers_add(&orphans, stet_column_int(q, 0));
    for (size_t i = 0; i < orphans.len; i++)
        stet_observe_drop_marks(s, orphans.at[i], -1);
    stet_numbers_release(&orphans);
}

void stet_observe_prove_nothing(stet_space *s) {
    static const char *const statements[] = {
        "INSERT OR REPLACE INTO space_meta(name, value) VALUES('" STET_DIGEST_MARK "', -1)", /* no digest is negative */
        "DELETE FROM mirror",
        "DELETE FROM mirror_owner"}; /* a space that does not know its readers: observe_mirror.c */
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        stet_run(stet_db_stmt(s->db, statements[i]));
}
