/* memory_old.h - makes a space's file what an earlier version of stet would have left. */
#ifndef STET_TEST_MEMORY_OLD_H
#define STET_TEST_MEMORY_OLD_H

#include "db/db.h"
#include "memory/record.h"

/* The record as version 1 had it: without checksums. */
static void old_record(const char *bytes, size_t len, stet_buf *out) {
    stet_record r;
    stet_record_rev rev;
    int64_t last = 0;
    stet_buf_clear(out);
    stet_buf_char(out, 1);
    stet_record_begin(&r, bytes, len);
    while (stet_record_next(&r, &rev)) {
        stet_varint_put(out, (uint64_t)(rev.doc - last));
        stet_varint_put(out, (uint64_t)rev.kind);
        stet_varint_put(out, (uint64_t)rev.back);
        stet_varint_put(out, rev.body_len);
        stet_varint_put(out, rev.leaf_count);
        stet_buf_add(out, rev.leaves, rev.leaves_len);
        last = rev.doc;
    }
    if (len == 1) /* emptied by gc */
        stet_buf_clear(out);
}

/* From version 12 of the format to version 8: no row that says whom a change concerns has a checksum. */
static inline void without_reader_sums(stet_db *db) {
    stet_db_exec(db, "DELETE FROM space_meta WHERE name LIKE 'digest:%';"
                     "ALTER TABLE space_meta DROP COLUMN sum; ALTER TABLE place_index DROP COLUMN sum;"
                     "ALTER TABLE mirror DROP COLUMN sum; ALTER TABLE mirror_owner DROP COLUMN sum;"
                     "ALTER TABLE foreign_space DROP COLUMN sum; ALTER TABLE survey DROP COLUMN sum;"
                     "ALTER TABLE complete_branch DROP COLUMN sum;"
                     "DROP TABLE place_digest; DROP TABLE name_digest; DROP INDEX action_accepted;"
                     "DELETE FROM space_meta WHERE name = 'places';"
                     "PRAGMA user_version=8");
}

/* To version 6: no row at all has one. */
static inline void without_sums(stet_db *db) {
    without_reader_sums(db);
    stet_buf record = STET_BUF(0);
    stet_db_exec(db, "CREATE TABLE old_commits(seq INTEGER PRIMARY KEY, branch INTEGER NOT NULL, time_ms INTEGER NOT"
                     " NULL, changes BLOB NOT NULL, body BLOB NOT NULL)");
    stet_stmt *q = stet_db_stmt(db, "SELECT seq, branch, time_ms, changes, body FROM commits");
    while (stet_step(q)) {
        size_t len, body_len;
        const char *changes = stet_column_blob(q, 3, &len), *body = stet_column_blob(q, 4, &body_len);
        old_record(changes, len, &record);
        stet_stmt *to = stet_db_stmt(db, "INSERT INTO old_commits VALUES(?, ?, ?, ?, ?)");
        for (int i = 0; i < 3; i++)
            stet_bind_int(to, 1 + i, stet_column_int(q, i));
        stet_bind_blob(to, 4, record.len ? record.data : "", record.len);
        stet_bind_blob(to, 5, body_len ? body : "", body_len);
        stet_run(to);
    }
    stet_buf_release(&record);
    stet_db_exec(db, "DROP TABLE commits; ALTER TABLE old_commits RENAME TO commits;"
                     "ALTER TABLE head DROP COLUMN sum; ALTER TABLE snapshot DROP COLUMN sum;"
                     "ALTER TABLE branch DROP COLUMN sum; ALTER TABLE session DROP COLUMN sum;"
                     "ALTER TABLE replay DROP COLUMN sum; ALTER TABLE action DROP COLUMN sum;"
                     "ALTER TABLE past_observation DROP COLUMN sum; ALTER TABLE fingerprint DROP COLUMN sum;"
                     "ALTER TABLE document DROP COLUMN sum; ALTER TABLE document DROP COLUMN written;"
                     "DROP INDEX IF EXISTS action_failed;"
                     "PRAGMA user_version=6");
}

#endif
