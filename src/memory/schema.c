/* schema.c - the tables of a space's file.
 *
 * Facts: space_meta, branch, document, commits, session, replay. Derived from them, and rebuilt by `stet check
 * --repair`: head, snapshot. The tables of the scheduler (second step) are derived in another sense: deleting them
 * loses no user data, everything becomes unknown and is run again.
 *
 * Integers are interned everywhere: a document (id, scope) is a number, never given twice; a branch is a number; the
 * key of what exists per branch and document is branch * 2^40 + document, so that it can be the rowid of its table.
 *
 * Rejected: a row per revision (36,000 commits/s against 100,000 to 330,000 packed); an index row (document, sequence)
 * per revision, for the same reason: each revision names the one before it instead, and every 64th (up to every 1024th
 * of a large document) leaves an anchor in `snapshot`, so that a read at any past sequence follows a bounded number of
 * links; keeping the current text of a large document in its head, which makes changing one field of a megabyte cost a
 * megabyte.
 */
#include "memory/internal.h"

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
    {step1, give_uuid}, {step2, NULL}, {step3, NULL}, {step4, NULL}, {step5, NULL}};
const int stet_space_migration_count = 5;
