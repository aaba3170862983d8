/* schema.c - the tables of a space's file.
 *
 * Facts: space_meta, branch, document, commits, session, replay. Derived from them, and rebuilt by `stet check
 * --repair`: head, snapshot. The tables of the scheduler (second step) are derived in another sense: deleting them
 * loses no user data, but everything becomes unknown and runs again.
 *
 * Integers are interned everywhere. A document (id, scope) is a number that is never used twice; a branch is a number.
 * The key of what exists per branch and document is branch * 2^40 + document, so that it can be the rowid of its table.
 *
 * Rejected:
 *   - a row per revision: 36,000 commits/s against 100,000 to 330,000 packed;
 *   - an index row (document, sequence) per revision, for the same reason. Instead each revision names its predecessor,
 *     and every 64th (up to every 1024th of a large document) leaves an anchor in `snapshot`, so that a read at any
 *     past sequence follows a bounded number of links;
 *   - the current text of a large document in its head: changing one field of a megabyte would cost a megabyte.
 *
 * Checksums (step 7). Every row whose content answers a question carries a CRC-32C over its key and its other columns
 * (db.h says how). So whoever reads the row, and `stet check`, find a flipped bit, a cut blob and a row that stands in
 * the place of another:
 *
 *   commits        `sum` is over seq, branch, time_ms and `content`; `content` is the checksum of `changes`; `changes`
 *                  has one for each document's part of `body`. They stand before the blobs, so that the newest sequence
 *                  is verified without reading them.
 *   head           Over all columns. A damaged one is an error: without it the newest revision is not known.
 *   snapshot       Over all columns. A damaged one is skipped: the log has the same.
 *   document       Over all columns. `written` has a bit for each of the branches 0 to 61 on which the document has a
 *                  head, so that a head that has vanished is an error, and not a document that does not exist.
 *   branch, session, replay
 *                  Over all columns. A damaged one is an error.
 *   action, past_observation, fingerprint
 *                  Over all columns. A damaged one proves nothing: the action is unknown.
 *   place_index, mirror, mirror_owner, foreign_space (step 9)
 *                  Over all columns. A damaged one is an error: without it nobody knows whom a change concerns. `stet
 *                  check --repair` derives it again.
 *   survey, complete_branch (step 9)
 *                  Over all columns. A damaged one is skipped: it only saves work.
 *   space_meta (step 9)
 *                  `sum` is over name and value of marked_through and mark_stamp; NULL for the others.
 *   mark, foreign_read (step 9)
 *                  No checksum of their own: what matters is that none is missing. space_meta has the digest of each
 *                  table (db.h), as digest:mark and digest:foreign_read. If one does not match, all actions are
 *                  unknown.
 *
 * What vanishes leaves nothing to verify (step 10), so there are counts and digests (db.h) of what there has to be:
 *
 *   place_index    place_digest has the digest of the rows of 16 neighbouring documents, verified before one of them is
 *                  asked for its readers. `places` in space_meta says that place_digest has rows.
 *   action         digest:action in space_meta has their number, compared at a start unless there are more than 1,024.
 *                  Then a mark or an index row that leads to an action without a row tells that it has vanished.
 *   document       name_digest (step 11) has the digest of number, id and scope of the names in each range of names,
 *                  verified before one in that range is said not to be there. digest:document in space_meta is of all.
 *
 * Rows that were damaged before the migration gave them a checksum can't be recognised: their checksum is right for
 * what they say.
 *
 * Rejected: checksums of pages in SQLite's reserved bytes. They don't find a row that was changed by way of SQLite, no
 * other program could write to the file for a repair, and a damaged page would take all of its rows along.
 */

#include "memory/internal.h"
#include "memory/observe_rows.h"
#include "memory/record.h"

static const char step1[] =
    "CREATE TABLE space_meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;"

    /* A line of history. Reads fall back to `parent` as of sequence `fork`. Deletion sets deleted_ms; the name is free
     * then. Number 0 is the default branch, named ''. */
    "CREATE TABLE branch("
    "  branch INTEGER PRIMARY KEY,"
    "  name TEXT NOT NULL,"
    "  parent INTEGER REFERENCES branch(branch),"
    "  fork INTEGER NOT NULL,"
    "  created_ms INTEGER NOT NULL,"
    "  deleted_ms INTEGER);"
    "CREATE UNIQUE INDEX branch_name ON branch(name) WHERE deleted_ms IS NULL;"
    "INSERT INTO branch VALUES(0, '', NULL, 0, 0, NULL);"

    /* Names of documents. A row exists as soon as somebody wrote or durably read the document, on any branch. A number
     * is never given twice: gc leaves the highest row alone. */
    "CREATE TABLE document(doc INTEGER PRIMARY KEY, id TEXT NOT NULL, scope TEXT NOT NULL);"
    "CREATE UNIQUE INDEX document_name ON document(id, scope);"

    /* One logical commit that changed something. `changes`: which documents, the previous revision of each, the changed
     * leaves. `body`: the operations. Apart, because most readers need the first alone and a body may be large
     * (overflow pages are not read then). Formats: record.h. Rows are never changed or deleted, except that gc empties
     * those that only deleted branches needed. */
    "CREATE TABLE commits("
    "  seq INTEGER PRIMARY KEY,"
    "  branch INTEGER NOT NULL,"
    "  time_ms INTEGER NOT NULL,"
    "  changes BLOB NOT NULL,"
    "  body BLOB NOT NULL);"

    /* Answers to commits that carried a session: the same content again gets the same answer. */
    "CREATE TABLE session(session INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "CREATE TABLE replay("
    "  session INTEGER NOT NULL REFERENCES session(session),"
    "  local INTEGER NOT NULL,"
    "  seq INTEGER NOT NULL,"
    "  changed INTEGER NOT NULL,"
    "  content BLOB NOT NULL,"
    "  PRIMARY KEY(session, local)) WITHOUT ROWID;"

    /* Derived: the newest revision of each document on each branch that has one of its own. `live` 0: deleted. `value`
     * is the text of the envelope if it is small; NULL of a live one means: rebuild from the log, where the last whole
     * text and the patches after it are. `links` counts revisions since the last anchor, `chain` the bytes of patches
     * since the last whole text, `bytes` is an upper bound of the text's length. */
    "CREATE TABLE head("
    "  key INTEGER PRIMARY KEY,"
    "  seq INTEGER NOT NULL,"
    "  live INTEGER NOT NULL,"
    "  links INTEGER NOT NULL,"
    "  chain INTEGER NOT NULL,"
    "  bytes INTEGER NOT NULL,"
    "  value BLOB);"

    /* Derived: anchors into long histories. `value` NULL: the revision at `seq` holds the whole text itself. */
    "CREATE TABLE snapshot(key INTEGER NOT NULL, seq INTEGER NOT NULL, value BLOB, PRIMARY KEY(key, seq));";

/* The scheduler's tables: observe_*.c write them, nobody else.
 *
 * Bytes per action are what this layout is about (budget: 670 with three reads and one write): names, documents and
 * fingerprints are numbers, the sequences of reads lie in the observation and not in index rows, and an action's number
 * is that of its piece times 2^22 plus a counter, so that the rows of a piece are one range of every table without
 * naming the piece. */
static const char step2[] =
    /* Who actions are, and the latest observation of each, one blob (observe_rows.h); NULL: none that can be trusted.
     * `piece` is the number of the piece's result document. */
    "CREATE TABLE action("
    "  action INTEGER PRIMARY KEY,"
    "  branch INTEGER NOT NULL,"
    "  piece INTEGER NOT NULL,"
    "  generation INTEGER NOT NULL,"
    "  name TEXT NOT NULL,"
    "  observation BLOB);"
    "CREATE UNIQUE INDEX action_name ON action(piece, branch, name);"
    "CREATE TABLE fingerprint(fingerprint INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE);"

    /* Which actions read a document, and which write it. `key` as in head. Reads: flags 1 is shallow. Writes: 1
     * current-known, 2 declared, 4 materializer envelope. */
    "CREATE TABLE read_index("
    "  key INTEGER NOT NULL, path BLOB NOT NULL, action INTEGER NOT NULL, flags INTEGER NOT NULL,"
    "  PRIMARY KEY(key, path, action)) WITHOUT ROWID;"
    "CREATE TABLE write_index("
    "  key INTEGER NOT NULL, path BLOB NOT NULL, action INTEGER NOT NULL, flags INTEGER NOT NULL,"
    "  PRIMARY KEY(key, path, action)) WITHOUT ROWID;"

    /* Direct dirt and unknown, each with its cause: the newest overlapping change of each space. No row: nothing is
     * known against the action. `space` is 0 for the own one, else a number of `foreign_space`, whose documents are
     * named. */
    "CREATE TABLE mark("
    "  action INTEGER NOT NULL,"
    "  space INTEGER NOT NULL,"
    "  branch INTEGER NOT NULL,"
    "  state INTEGER NOT NULL,"
    "  reason INTEGER NOT NULL,"
    "  seq INTEGER NOT NULL,"
    "  doc INTEGER,"
    "  id TEXT,"
    "  scope TEXT,"
    "  path BLOB,"
    "  kind INTEGER,"
    "  PRIMARY KEY(action, space)) WITHOUT ROWID;"

    /* Spaces that actions of this one read. `seen`: the highest sequence read there; `stamp`: what was last written to
     * its mirror_owner row. A space that is below one of them is an older copy. */
    "CREATE TABLE foreign_space("
    "  space INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, name TEXT NOT NULL, seen INTEGER NOT NULL,"
    "  stamp INTEGER NOT NULL);"
    "CREATE TABLE foreign_read(space INTEGER NOT NULL, action INTEGER NOT NULL, PRIMARY KEY(space, action)) WITHOUT "
    "ROWID;"

    /* Actions of other spaces that read this one. `pending`: the newest change that touched one of its mirrors;
     * `pushed`: how far its marks have been told to the owner. */
    "CREATE TABLE mirror_owner("
    "  owner INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, name TEXT NOT NULL, stamp INTEGER NOT NULL,"
    "  pending INTEGER NOT NULL, pushed INTEGER NOT NULL);"
    "CREATE TABLE mirror("
    "  key INTEGER NOT NULL, path BLOB NOT NULL, owner INTEGER NOT NULL, action INTEGER NOT NULL, flags INTEGER NOT "
    "NULL,"
    "  PRIMARY KEY(key, path, owner, action)) WITHOUT ROWID;"
    "CREATE INDEX mirror_action ON mirror(owner, action);"

    /* Changes above it have not been looked at for marks. */
    "INSERT INTO space_meta VALUES('marked_through', 0);";

/* Both derived in the same sense. */
static const char step3[] =
    /* Observations that a later one has replaced, as many as [scheduler] keep_observations says; the newest has the
     * highest number. Nothing is looked up through them: they only tell what was. */
    "CREATE TABLE past_observation("
    "  action INTEGER NOT NULL, number INTEGER NOT NULL, generation INTEGER NOT NULL, observation BLOB NOT NULL,"
    "  PRIMARY KEY(action, number)) WITHOUT ROWID;"

    /* How often actions ran, by what was known against them before (a stet_reason; 0: they stood, and were asked for);
     * and, as -1, how many were left standing by runs that ran something. Since step 5 in space_meta, as runs:REASON.
     */
    "CREATE TABLE run_count(reason INTEGER PRIMARY KEY, runs INTEGER NOT NULL);";

/* Derived as well: what was found not to be needed (observe_survey.c). Stamps of marks are 0 while nothing is
 * remembered, and the index is as small then. */
static const char step4[] = "ALTER TABLE mark ADD COLUMN stamp INTEGER NOT NULL DEFAULT 0;"
                            "CREATE INDEX mark_stamp ON mark(stamp) WHERE stamp > 0;"
                            "CREATE TABLE survey("
                            "  branch INTEGER NOT NULL, demand BLOB NOT NULL, through INTEGER NOT NULL,"
                            "  unneeded INTEGER NOT NULL, PRIMARY KEY(branch, demand)) WITHOUT ROWID;"
                            "INSERT INTO space_meta VALUES('mark_stamp', 1);";

/* Which actions read a document and which write it, in one table instead of two with a row for each action: a row holds
 * the actions of one block, 64 with neighbouring numbers, one bit for each. Who writes a document and who reads it have
 * mostly neighbouring numbers, and so have the many readers of one document: storing new actions costs half of the rows
 * that it did. `key` as in head; `block` is the action's number >> 6. */
static const char step5[] =
    "CREATE TABLE place_index("
    "  key INTEGER NOT NULL, path BLOB NOT NULL, block INTEGER NOT NULL,"
    "  reads INTEGER NOT NULL, shallow INTEGER NOT NULL,"
    "  known INTEGER NOT NULL, declared INTEGER NOT NULL, envelopes INTEGER NOT NULL,"
    "  PRIMARY KEY(key, path, block)) WITHOUT ROWID;"
    /* Different bits, so that adding them is joining them, and no sum is out of range. */
    "INSERT INTO place_index SELECT key, path, action >> 6,"
    "  sum((flags & 1) << (action & 63)), sum((flags >> 1 & 1) << (action & 63)),"
    "  sum((flags >> 2 & 1) << (action & 63)), sum((flags >> 3 & 1) << (action & 63)),"
    "  sum((flags >> 4 & 1) << (action & 63)) FROM"
    "  (SELECT key, path, action, 1 << (flags & 1) AS flags FROM read_index"
    "   UNION ALL SELECT key, path, action, (flags & 7) << 2 FROM write_index) GROUP BY 1, 2, 3;"
    "DROP TABLE read_index;"
    "DROP TABLE write_index;"
    /* Counts of runs lie with the other numbers that each commit changes: one page less to write for it. */
    "INSERT INTO space_meta SELECT 'runs:' || reason, runs FROM run_count;"
    "DROP TABLE run_count;";

/* Derived: branches on which each action of each piece has a row in `action`, for this version of the scheduler. A fork
 * inherits the pieces and no row, so it is not among them until somebody has looked. */
static const char step6[] = "CREATE TABLE complete_branch(branch INTEGER PRIMARY KEY, runtime BLOB NOT NULL);";

/* Checksums: the comment at the top. */
static const char step7[] =
    "ALTER TABLE head ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;"
    "UPDATE head SET sum = row_sum(key, seq, live, links, chain, bytes, value);"
    "ALTER TABLE snapshot ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;"
    "UPDATE snapshot SET sum = row_sum(key, seq, value);"
    "ALTER TABLE branch ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;"
    "UPDATE branch SET sum = row_sum(branch, name, parent, fork, created_ms, deleted_ms);"
    "ALTER TABLE session ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;"
    "UPDATE session SET sum = row_sum(session, name);"
    "ALTER TABLE replay ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;"
    "UPDATE replay SET sum = row_sum(session, local, seq, changed, content);"
    "ALTER TABLE action ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;"
    "UPDATE action SET sum = row_sum(action, branch, piece, generation, name, observation);"
    "ALTER TABLE past_observation ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;"
    "UPDATE past_observation SET sum = row_sum(action, number, generation, observation);"
    "ALTER TABLE fingerprint ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;"
    "UPDATE fingerprint SET sum = row_sum(fingerprint, hash);"
    "ALTER TABLE document ADD COLUMN written INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE document ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;"
    "UPDATE document SET written = 1 WHERE doc IN (SELECT key FROM head WHERE key < 1099511627776);"
    "ALTER TABLE commits RENAME TO old_commits;"
    "CREATE TABLE commits("
    "  seq INTEGER PRIMARY KEY,"
    "  branch INTEGER NOT NULL,"
    "  time_ms INTEGER NOT NULL,"
    "  content INTEGER NOT NULL,"
    "  sum INTEGER NOT NULL,"
    "  changes BLOB NOT NULL,"
    "  body BLOB NOT NULL);";

/* A record of version 1 as one of version 2. False: it is damaged. */
static bool renew_record(const char *old, size_t len, const char *body, size_t body_len, stet_arena *arena,
                         stet_buf *out) {
    stet_record r;
    stet_record_rev rev;
    int64_t last = 0;
    stet_buf_clear(out);
    stet_record_start(out);
    stet_record_begin_old(&r, old, len);
    while (stet_record_next(&r, &rev)) {
        const stet_change *leaves = stet_record_leaves(&rev, arena);
        if (!leaves || rev.body_at > body_len || rev.body_len > body_len - rev.body_at)
            return false;
        stet_record_add(out, &last, rev.doc, rev.kind, rev.back, body ? body + rev.body_at : "", rev.body_len, leaves,
                        rev.leaf_count);
    }
    return !r.damaged;
}

/* What does not decode is kept as it is, without a checksum that fits: `stet check` names it. */
static void renew_commit(stet_db *db, stet_stmt *from, stet_arena *arena, stet_buf *record) {
    size_t len, body_len;
    const char *old = stet_column_blob(from, 3, &len);
    const char *body = stet_column_blob(from, 4, &body_len);
    bool good = renew_record(old, len, body, body_len, arena, record);
    stet_row row = {0};
    stet_commit_fields(&row, stet_column_int(from, 0), stet_column_int(from, 1), stet_column_int(from, 2),
                       stet_buf_cstr(record), record->len);
    stet_stmt *to = stet_db_stmt(db, "INSERT INTO commits(" STET_COMMIT_COLUMNS ", body) VALUES(?, ?, ?, ?, ?, ?, ?)");
    for (int i = 0; i < STET_COMMIT_CHANGES; i++)
        stet_bind_int(to, 1 + i, row.at[i].number ^ (!good && i == STET_COMMIT_SUM));
    stet_bind_blob(to, 6, good ? record->data : old, good ? record->len : len);
    stet_bind_blob(to, 7, body, body_len);
    stet_run(to);
}

static stet_status give_sums(stet_db *db, void *ctx, stet_error *err) {
    (void)ctx;
    (void)err;
    stet_buf record = STET_BUF(0);
    stet_arena arena = STET_ARENA_INIT;
    stet_stmt *from = stet_db_stmt(db, "SELECT seq, branch, time_ms, changes, body FROM old_commits ORDER BY seq");
    while (stet_step(from)) {
        renew_commit(db, from, &arena, &record);
        stet_arena_clear(&arena);
    }
    stet_buf_release(&record);
    stet_arena_release(&arena);
    stet_db_exec(db, "DROP TABLE old_commits");
    int64_t branches = stet_db_int(db, "SELECT max(branch) FROM branch", 0);
    for (int64_t b = 1; b <= branches && b < STET_WRITTEN_BRANCHES; b++) {
        stet_stmt *q = stet_db_stmt(db, "UPDATE document SET written = written | (1 << ?1) WHERE doc IN"
                                        " (SELECT key - (?1 << 40) FROM head WHERE key >= ?1 << 40 AND key <"
                                        " (?1 + 1) << 40)");
        stet_bind_int(q, 1, b);
        stet_run(q);
    }
    stet_run(stet_db_stmt(db, "UPDATE document SET sum = row_sum(doc, id, scope, written)"));
    return STET_OK;
}

/* Actions whose last run failed, found without looking at the others: bit 16 of the second byte of an observation
 * (observe_rows.h) says so. The index is derived by SQLite from the observation itself, so that no code can forget to
 * keep it. Until this step a document of each piece listed its failures, and was rewritten whole by each of them. */
static const char step8[] = "CREATE INDEX action_failed ON action(branch, action) WHERE " STET_ACTION_FAILED ";";

/* Checksums of the rows that say whom a change concerns: the comment at the top. */
static const char step9[] =
    "ALTER TABLE space_meta ADD COLUMN sum INTEGER;"
    "UPDATE space_meta SET sum = row_sum(name, value) WHERE name IN ('marked_through', 'mark_stamp');"
    "INSERT INTO space_meta(name, value) SELECT 'digest:mark', " STET_MARK_DIGEST " FROM mark;"
    "INSERT INTO space_meta(name, value) SELECT 'digest:foreign_read', " STET_FOREIGN_DIGEST " FROM foreign_read;"
    "ALTER TABLE place_index ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;"
    "UPDATE place_index SET sum = " STET_BLOCK_SUM ";"
    "ALTER TABLE mirror ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;"
    "UPDATE mirror SET sum = " STET_MIRROR_SUM ";"
    "ALTER TABLE mirror_owner ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;"
    "UPDATE mirror_owner SET sum = " STET_OWNER_SUM ";"
    "ALTER TABLE foreign_space ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;"
    "UPDATE foreign_space SET sum = " STET_FOREIGN_SUM ";"
    "ALTER TABLE survey ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;"
    "UPDATE survey SET sum = " STET_SURVEY_SUM ";"
    "ALTER TABLE complete_branch ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;"
    "UPDATE complete_branch SET sum = row_sum(branch, runtime);";

/* So that rows that vanish are noticed: the comment at the top. */
static const char step10[] =
    "CREATE TABLE place_digest(bucket INTEGER PRIMARY KEY, digest INTEGER NOT NULL);"
    "INSERT INTO place_digest SELECT key >> " STET_BUCKET_BITS ", row_digest(" STET_BLOCK_COLUMNS ") FROM place_index"
    "  GROUP BY 1;"
    "INSERT INTO space_meta(name, value) SELECT 'places', 1 FROM place_digest LIMIT 1;"
    "INSERT INTO space_meta(name, value) SELECT 'digest:action', count(*) << 32 FROM action;"
    "INSERT INTO space_meta(name, value) SELECT 'digest:document', " STET_NAME_DIGEST " FROM document"
    "  WHERE sum IS row_sum(doc, id, scope, written);";

/* Names that vanish, at any size: name_digest.c. */
static const char step11[] = "CREATE TABLE name_digest(id TEXT NOT NULL, scope TEXT NOT NULL, digest INTEGER NOT NULL,"
                             " PRIMARY KEY(id, scope)) WITHOUT ROWID;";

/* Accepted actions: observe_accept.c. Derived by SQLite from the observation itself, like action_failed. */
static const char step12[] = "CREATE INDEX action_accepted ON action(branch, action) WHERE " STET_ACTION_ACCEPTED ";";

static stet_status divide_names(stet_db *db, void *ctx, stet_error *err) {
    (void)ctx;
    (void)err;
    stet_names_divide_all(db);
    return STET_OK;
}

static stet_status give_uuid(stet_db *db, void *ctx, stet_error *err) {
    (void)ctx;
    (void)err;
    char uuid[37];
    stet_uuid(uuid);
    stet_stmt *s = stet_db_stmt(db, "INSERT INTO space_meta VALUES('uuid', ?)");
    stet_bind_text(s, 1, uuid, 36);
    stet_run(s);
    s = stet_db_stmt(db, "INSERT INTO space_meta VALUES('created_ms', ?)");
    stet_bind_int(s, 1, stet_clock_ms());
    stet_run(s);
    return STET_OK;
}

const stet_db_migration stet_space_migrations[] = {
    {step1, give_uuid}, {step2, NULL}, {step3, NULL}, {step4, NULL},  {step5, NULL},          {step6, NULL},
    {step7, give_sums}, {step8, NULL}, {step9, NULL}, {step10, NULL}, {step11, divide_names}, {step12, NULL}};
const int stet_space_migration_count = sizeof stet_space_migrations / sizeof *stet_space_migrations;
