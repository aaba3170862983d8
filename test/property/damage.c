/* damage.c - random damage, compared with an oracle that knows the truth.
 *
 * A space is built at random: documents below and above what a head keeps, set, patched often enough for snapshots,
 * deleted, on branches, with sessions and observations. What each document was at each sequence is kept outside of
 * stet. Then rows are altered by way of SQLite, in any column of any table: bits flipped, blobs cut, rows deleted,
 * copied and swapped. Or the file itself is altered: bits, sectors, pages, its end (DAMAGE_FILE=1: nothing else). From
 * then on
 *
 *   D1. every read gives the true value or STET_CORRUPT, never another value;
 *   D2. whatever a read noticed, check reports;
 *   D3. after a repair check finds nothing, and a second repair has nothing to do;
 *   D4. after a repair a document is what it was, at each sequence, or a line says that something of it is lost;
 *   D5. damage to one row of derived data costs no value at all, and damage to one commit costs only documents that the
 *       commit changed, and none whose newest text its head has;
 *   D6. an action that had to run is never called up to date, before and after a repair;
 *   D7. an action whose input changes after the damage is not called up to date, whichever row was altered or is gone.
 *       If pages of the file are damaged, check finds it;
 *   D8. what could be read before a repair, as the newest value, can be read after it: a repair never takes away what
 *       is good;
 *   D9. after a repair each input can be edited and each action run, as in a fresh project: what was edited is not
 *       called up to date, what ran has the result of its input, and the next edit is noticed, too.
 *
 * A second test takes the rows one after the other instead of at random: each is removed once, and altered once in each
 * of its columns. A third one has more names and actions than a start compares, and takes names, actions and digests of
 * names away: D1, D2, D3 and D7 hold there as well.
 */

#include "../expect.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "base/json.h"
#include "memory/internal.h"
#include "os/file.h"

enum { PAGE = 4096, DOCS = 8, BRANCHES = 3, SEQS = 400, ACTIONS = 6 };

static uint64_t seed;
static unsigned roll(unsigned n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

static char *truth[SEQS][BRANCHES][DOCS]; /* the canonical text of the value; NULL: it does not exist */
static int64_t last;
static int branches;
static const char *const branch_names[BRANCHES] = {"", "side", "deep"};
static bool outdated[ACTIONS]; /* the action has to run */
static char doing[256];
static bool vanished, branchless, facts; /* what the damage has made possible */
static bool readable[BRANCHES][DOCS];    /* D8 */

/* Texts are shared by revisions and branches; all of them are kept until the end. */
static char *text_of(stet_value v) {
    static STET_VEC(char *) texts;
    stet_buf b = STET_BUF(0);
    stet_json_write(&b, v, STET_JSON_CANONICAL);
    return *stet_vec_add(&texts) = stet_buf_take(&b, NULL);
}

static stet_docname name_of(int doc) {
    static char ids[DOCS][16];
    snprintf(ids[doc], sizeof ids[doc], "doc%d", doc);
    return (stet_docname){ids[doc], doc % 3 == 2 ? "user:x" : ""};
}

static stet_value random_value(int doc) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "n", stet_value_int(roll(1000000)));
    if (doc % 2) { /* above what a head keeps */
        char filler[6000];
        size_t len = 2500 + roll(3000);
        for (size_t i = 0; i < len; i++)
            filler[i] = (char)('a' + roll(26));
        stet_value_put(&v, "filler", stet_value_string_n(filler, len));
    }
    return v;
}

/* What every branch sees after the newest commit. */
static void record(stet_space *s, int branch, int doc) {
    int64_t now;
    OK(stet_space_seq(s, &now, &err));
    for (int64_t seq = last + 1; seq <= now; seq++)
        for (int b = 0; b < BRANCHES; b++)
            for (int d = 0; d < DOCS; d++)
                truth[seq][b][d] = seq ? truth[seq - 1][b][d] : NULL;
    last = now;
    (void)branch;
    (void)doc;
}

static void commit_one(stet_space *s, int branch, int doc) {
    stet_docname name = name_of(doc);
    stet_tx *tx;
    const char *cell = name.id;
    OK(stet_tx_begin(s, branch_names[branch], &tx, &err));
    bool exists = truth[last][branch][doc] != NULL;
    stet_value next = stet_value_null();
    if (exists && roll(12) == 0) {
        OK(stet_tx_delete(tx, cell, name.scope, &err));
    } else if (exists && roll(4)) {
        char field[64];
        snprintf(field, sizeof field, "%s/n", cell);
        int64_t n = roll(1000000);
        OK(stet_json_read(truth[last][branch][doc], strlen(truth[last][branch][doc]), NULL, &next, &err));
        stet_value_put(&next, "n", stet_value_int(n));
        OK(stet_tx_set(tx, field, name.scope, stet_value_int(n), &err));
    } else {
        next = random_value(doc);
        OK(stet_tx_set(tx, cell, name.scope, stet_value_retain(next), &err));
    }
    if (roll(10) == 0)
        OK(stet_tx_session(tx, "client", last + 1, &err));
    OK(stet_tx_commit(tx, NULL, &err));
    record(s, branch, doc);
    truth[last][branch][doc] = stet_value_type(next) == STET_TYPE_NULL ? NULL : text_of(next);
    stet_value_release(next);
}

static int input_of(int action) {
    return action % 3 == 2 ? action + 1 : action;
}

static void run_once(stet_space *s, int action) {
    char name[16], in[32], out[16];
    snprintf(name, sizeof name, "act%d", action);
    snprintf(in, sizeof in, "doc%d/n", input_of(action));
    snprintf(out, sizeof out, "out%d", action);
    stet_cell writes = {out, NULL};
    stet_action_run run = STET_ACTION_RUN_INIT;
    run.key = (stet_action_key){"piece", NULL, name};
    run.implementation = "code";
    run.writes = &writes;
    run.write_count = 1;
    stet_tx *tx;
    stet_value v;
    OK(stet_tx_begin(s, "", &tx, &err));
    stet_status st = stet_tx_get(tx, in, NULL, &v, &err);
    if (st == STET_NOT_FOUND)
        stet_error_clear(&err);
    OK(stet_tx_set(tx, out, NULL, st == STET_OK ? stet_value_retain(v) : stet_value_null(), &err));
    OK(stet_tx_observe(tx, &run, &err));
    OK(stet_tx_commit(tx, NULL, &err));
    OK(stet_space_sync(s, &err));
}

static void run_action(stet_space *s, int action) {
    run_once(s, action);
    record(s, 0, 0);
}

static stet_action_state state_of(stet_space *s, int action, stet_status *st) {
    char name[16];
    snprintf(name, sizeof name, "act%d", action);
    stet_action_state state = STET_STATE_UNKNOWN;
    *st = stet_action_state_of(s, "", &(stet_action_key){"piece", NULL, name}, &state, &err);
    return state;
}

static void build(void) {
    for (int64_t i = 0; i < SEQS; i++)
        memset(truth[i], 0, sizeof truth[i]);
    last = 0;
    branches = 1;
    stet_space *s;
    OK(stet_space_open_path("base.db", "base", 0, &s, &err));
    unsigned commits = 40 + roll(200), forks[2] = {roll(commits), roll(commits)};
    unsigned often = roll(DOCS); /* so that it gets snapshots */
    for (unsigned i = 0; i < commits; i++) {
        if (branches < BRANCHES && (i == forks[0] || i == forks[1])) {
            int parent = (int)roll((unsigned)branches);
            OK(stet_branch_create(s, branch_names[branches], branch_names[parent], -1, &err));
            for (int d = 0; d < DOCS; d++)
                truth[last][branches][d] = truth[last][parent][d];
            branches++;
        }
        commit_one(s, (int)roll((unsigned)branches * 2) % branches, (int)(roll(3) ? often : roll(DOCS)));
        if (roll(9) == 0)
            run_action(s, (int)roll(ACTIONS));
    }
    for (int i = 0; i < ACTIONS; i++) {
        stet_status st;
        if (roll(2))
            run_action(s, i);
        outdated[i] = state_of(s, i, &st) != STET_STATE_STANDS;
        OK(st);
    }
    OK(stet_db_checkpoint(stet_space_db(s), &err));
    stet_space_close(s);
}

/* A branch that was forked later than a sequence is not asked for it. */
static bool known_at(int branch, int64_t seq) {
    for (int d = 0; d < DOCS; d++)
        if (branch && truth[seq][branch][d])
            return true;
    return branch == 0;
}

static const char *const tables[] = {"commits",  "commits",     "head",         "head",        "snapshot",
                                     "snapshot", "document",    "branch",       "session",     "replay",
                                     "action",   "mark",        "place_index",  "fingerprint", "past_observation",
                                     "mark",     "place_index", "space_meta",   "survey",      "complete_branch",
                                     "action",   "document",    "place_digest", "name_digest"};
enum { TABLES = sizeof tables / sizeof *tables, COLUMNS = 16 };

typedef struct columns {
    char name[COLUMNS][32];
    bool key[COLUMNS];
    int count;
} columns;

static sqlite3_stmt *prepare(sqlite3 *db, const char *format, ...) {
    char sql[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(sql, sizeof sql, format, args);
    va_end(args);
    sqlite3_stmt *q = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    return q;
}

static void columns_of(sqlite3 *db, const char *table, columns *out) {
    sqlite3_stmt *q = prepare(db, "PRAGMA table_info(%s)", table);
    for (out->count = 0; sqlite3_step(q) == SQLITE_ROW && out->count < COLUMNS; out->count++) {
        snprintf(out->name[out->count], 32, "%s", (const char *)sqlite3_column_text(q, 1));
        out->key[out->count] = sqlite3_column_int(q, 5) > 0;
    }
    sqlite3_finalize(q);
}

/* Another value of the same kind, most often with one bit changed. */
static void bind_other(sqlite3_stmt *to, int at, sqlite3_value *v) {
    int type = sqlite3_value_type(v), len = type == SQLITE_INTEGER ? 0 : sqlite3_value_bytes(v);
    const char *bytes = type == SQLITE_TEXT ? (const char *)sqlite3_value_text(v) : sqlite3_value_blob(v);
    char *copy = stet_alloc((size_t)len + 2);
    if (len)
        memcpy(copy, bytes, (size_t)len);
    unsigned kind = roll(8);
    if (type == SQLITE_INTEGER) {
        int64_t n = sqlite3_value_int64(v), with = (int64_t)1 << (roll(3) ? roll(10) : roll(63));
        sqlite3_bind_int64(to, at, kind == 0 ? 0 : kind == 1 ? -n : n ^ with);
    } else if (type == SQLITE_NULL) {
        sqlite3_bind_int64(to, at, roll(3));
    } else {
        if (len && kind > 1) {
            char bit = (char)(1 << roll(type == SQLITE_TEXT ? 5 : 8));
            copy[roll((unsigned)len)] ^= bit;
        } else if (len && kind == 1) {
            len = (int)roll((unsigned)len); /* cut */
        } else {
            copy[len++] = 'x';
        }
        if (type == SQLITE_TEXT)
            sqlite3_bind_text(to, at, copy, len, SQLITE_TRANSIENT);
        else
            sqlite3_bind_blob(to, at, copy, len, SQLITE_TRANSIENT);
    }
    free(copy);
}

/* "WHERE key1 IS ?n AND ..." */
static void where_key(const columns *c, int first, char out[300]) {
    size_t n = (size_t)snprintf(out, 300, " WHERE ");
    bool any = false;
    for (int i = 0; i < c->count; i++)
        if (c->key[i]) {
            n += (size_t)snprintf(out + n, 300 - n, "%s%s IS ?%d", any ? " AND " : "", c->name[i], first++);
            any = true;
        }
}

static void bind_key(const columns *c, sqlite3_stmt *row, sqlite3_stmt *to, int first) {
    for (int i = 0; i < c->count; i++)
        if (c->key[i])
            sqlite3_bind_value(to, first++, sqlite3_column_value(row, i));
}

static unsigned rows_of(sqlite3 *db, const char *table) {
    sqlite3_stmt *q = prepare(db, "SELECT count(*) FROM %s", table);
    sqlite3_step(q);
    unsigned rows = (unsigned)sqlite3_column_int(q, 0);
    sqlite3_finalize(q);
    return rows;
}

/* Alters, deletes, copies or swaps. False: a constraint forbids it. */
static bool damage_at(sqlite3 *db, const char *table, unsigned rows, unsigned at, unsigned kind, int column) {
    columns c;
    columns_of(db, table, &c);
    unsigned other = roll(rows);
    char where[300];
    sqlite3_stmt *q = prepare(db, "SELECT * FROM %s LIMIT 1 OFFSET %u", table, at);
    sqlite3_step(q);
    sqlite3_stmt *r = prepare(db, "SELECT * FROM %s LIMIT 1 OFFSET %u", table, other), *to;
    sqlite3_step(r);
    where_key(&c, 2, where);
    if (kind == 0) {
        where_key(&c, 1, where);
        to = prepare(db, "DELETE FROM %s%s", table, where);
        bind_key(&c, q, to, 1);
    } else if (kind == 1) { /* what belongs to another row */
        to = prepare(db, "UPDATE %s SET %s = ?1%s", table, c.name[column], where);
        sqlite3_bind_value(to, 1, sqlite3_column_value(r, column));
        bind_key(&c, q, to, 2);
    } else if (kind == 2) { /* all of another row, under this one's key */
        char set[600];
        size_t n = 0;
        int value = 1;
        for (int i = 0; i < c.count; i++)
            if (!c.key[i])
                n += (size_t)snprintf(set + n, sizeof set - n, "%s%s = ?%d", n ? ", " : "", c.name[i], value++);
        where_key(&c, value, where);
        if (n == 0)
            snprintf(set, sizeof set, "%s = %s", c.name[0], c.name[0]);
        to = prepare(db, "UPDATE %s SET %s%s", table, set, where);
        value = 1;
        for (int i = 0; i < c.count; i++)
            if (!c.key[i])
                sqlite3_bind_value(to, value++, sqlite3_column_value(r, i));
        bind_key(&c, q, to, value);
    } else {
        to = prepare(db, "UPDATE %s SET %s = ?1%s", table, c.name[column], where);
        bind_other(to, 1, sqlite3_column_value(q, column));
        bind_key(&c, q, to, 2);
    }
    bool done = sqlite3_step(to) == SQLITE_DONE && sqlite3_changes(db) == 1;
    sqlite3_finalize(to);
    sqlite3_finalize(q);
    sqlite3_finalize(r);
    if (done) {
        const char *name = c.name[column];
        bool whole = kind == 0 || kind == 2;
        /* A branch that is not there any more leaves nothing that a reader could meet. */
        vanished = vanished ||
                   (strcmp(table, "branch") == 0 && (whole || !strcmp(name, "name") || !strcmp(name, "deleted_ms"))) ||
                   (c.key[column] && strcmp(table, "branch") == 0);
        /* The newest branch may go without a trace. */
        branchless = branchless || (strcmp(table, "branch") == 0 && (kind == 0 || c.key[column]));
        facts =
            facts || strcmp(table, "commits") == 0 || strcmp(table, "document") == 0 || strcmp(table, "branch") == 0;
        size_t n = strlen(doing);
        snprintf(doing + n, sizeof doing - n, "[%s.%s row %u of %u kind %u] ", table, name, at, rows, kind);
    }
    return done;
}

/* False: nothing was done. */
static bool damage_row(sqlite3 *db) {
    const char *table = tables[roll(TABLES)];
    unsigned rows = rows_of(db, table);
    columns c;
    columns_of(db, table, &c);
    return rows && damage_at(db, table, rows, roll(rows), roll(10), (int)roll((unsigned)c.count));
}

static bool damage_file(void) {
    int fd = open("work.db", O_RDWR);
    assert_true(fd >= 0);
    off_t size = lseek(fd, 0, SEEK_END),
          at = (off_t)(((uint64_t)roll(1u << 30) << 20 | roll(1u << 20)) % (uint64_t)size);
    unsigned char bytes[PAGE] = {0};
    unsigned kind = roll(16);
    if (kind == 0) {                            /* the end is cut off */
        at = at < PAGE ? PAGE : at - at % PAGE; /* an empty file is one that is not there yet */
        assert_int_equal(ftruncate(fd, at), 0);
    } else if (kind < 3) { /* a page, or a sector of it, is lost */
        size_t len = kind == 1 ? PAGE : 512;
        at -= at % (off_t)len;
        assert_int_equal(pwrite(fd, bytes, len, at), (ssize_t)len);
    } else {
        assert_int_equal(pread(fd, bytes, 1, at), 1);
        bytes[0] ^= (unsigned char)(1u << roll(8));
        assert_int_equal(pwrite(fd, bytes, 1, at), 1);
    }
    close(fd);
    size_t n = strlen(doing);
    snprintf(doing + n, sizeof doing - n, "[file kind %u at %lld of %lld] ", kind, (long long)at, (long long)size);
    return true;
}

typedef enum answer { TRUE_VALUE, SAYS_CORRUPT, NOT_THERE, OTHER_VALUE } answer;

/* A bit of the schema's text: SQLite does not know a column or a table any more, and says so. */
static bool schema_gone(stet_status st) {
    return st == STET_INTERNAL && (strstr(err.message, "no such") || strstr(err.message, "unsupported file format"));
}

static answer ask(stet_space *s, int branch, int doc, int64_t at) {
    int64_t number;
    stet_doc_state d = {0};
    stet_docname name = name_of(doc);
    stet_error_clear(&err);
    stet_status st = stet_space_branch(s, branch_names[branch], &number, &err);
    if (st == STET_OK)
        st = stet_space_load(s, number, &name, at, &d, &err);
    const char *is = truth[at < 0 ? last : at][branch][doc];
    answer a;
    if (st == STET_OK) {
        stet_value v = stet_value_null();
        char *text = d.exists && stet_value_find(d.value, "value", 5, &v) ? text_of(v) : NULL;
        a = (text && is && strcmp(text, is) == 0) || (!text && !is) ? TRUE_VALUE : !text ? NOT_THERE : OTHER_VALUE;
        stet_free(text);
    } else if (schema_gone(st)) {
        a = SAYS_CORRUPT;
    } else if (st == STET_CORRUPT) {
        a = SAYS_CORRUPT;
        if (!strstr(err.message, "damaged") && !strstr(err.message, "missing") && !strstr(err.message, "lost") &&
            !strstr(err.message, "gone") && !strstr(err.message, "malformed") && !strstr(err.message, "have"))
            fail_msg("seed %s: an error that does not say what is damaged: %s", doing, err.message);
    } else if (st == STET_NOT_FOUND && at > 0 && strstr(err.message, "is at")) {
        a = SAYS_CORRUPT; /* the newest commits are gone: no value, and no absence either */
    } else if (st == STET_NOT_FOUND) {
        a = NOT_THERE;
    } else {
        fail_msg("%s: doc%d on \"%s\" at %lld: %s: %s", doing, doc, branch_names[branch], (long long)at,
                 stet_status_name(st), err.message);
        a = OTHER_VALUE;
    }
    stet_value_release(d.value);
    stet_error_clear(&err);
    return a;
}

static void copy_base(void) {
    stet_buf b = STET_BUF(0);
    OK(stet_file_read("base.db", 0, &b, &err));
    static const char *const rests[] = {"work.db-wal", "work.db-shm", "work.db.writer"};
    for (size_t i = 0; i < 3; i++)
        OK(stet_file_remove(rests[i], &err));
    OK(stet_file_replace("work.db", b.data, b.len, 0644, &err));
    stet_buf_release(&b);
}

static size_t check(stet_space *s, bool repair, stet_buf *lines, bool *whole) {
    size_t found, repaired, all = 0;
    stet_buf_clear(lines);
    *whole = true;
    stet_status (*const checks[])(stet_space *, bool, stet_buf *, size_t *, size_t *,
                                  stet_error *) = {stet_space_check, stet_observe_check};
    for (size_t i = 0; i < 2; i++) {
        stet_error_clear(&err);
        stet_status st = checks[i](s, repair, lines, &found, &repaired, &err);
        if (st == STET_CORRUPT || schema_gone(st)) { /* the file itself */
            *whole = false;
            stet_error_clear(&err);
            return all + 1;
        }
        OK(st);
        all += found;
        if (repair && found && !repaired)
            *whole = false;
    }
    return all;
}

/* D1, D2, D6. Returns how many reads were not true. */
static size_t look(stet_space *s, const char *when, const stet_buf *lost, bool raw) {
    size_t off = 0;
    for (int b = 0; b < branches; b++)
        for (int d = 0; d < DOCS; d++)
            for (int i = 0; i < 4; i++) {
                int64_t at = i == 0 ? -1 : 1 + (int64_t)roll((unsigned)last);
                if (at > 0 && !known_at(b, at))
                    continue;
                answer a = ask(s, b, d, at);
                if (!lost && i == 0)
                    readable[b][d] = a == TRUE_VALUE;
                if (a == TRUE_VALUE)
                    continue;
                if (lost && i == 0 && readable[b][d])
                    fail_msg("%s: doc%d on \"%s\" could be read before the repair:\n%s", doing, d, branch_names[b],
                             stet_buf_cstr((stet_buf *)lost));
                off++;
                stet_docname name = name_of(d);
                char quoted[32];
                snprintf(quoted, sizeof quoted, "\"%s\"", name.id);
                bool told = lost && (strstr(stet_buf_cstr((stet_buf *)lost), quoted) ||
                                     strstr(stet_buf_cstr((stet_buf *)lost), "lost: branch") ||
                                     strstr(stet_buf_cstr((stet_buf *)lost), "lost: the name"));
                if (a == OTHER_VALUE && !(told && at < 0))
                    fail_msg("%s: %s: doc%d on \"%s\" at %lld: another value", doing, when, d, branch_names[b],
                             (long long)at);
                bool renamed = lost && strstr(stet_buf_cstr((stet_buf *)lost), "lost: the name");
                bool nothing = told && strstr(stet_buf_cstr((stet_buf *)lost), "nothing of it is left");
                if (a == NOT_THERE && !vanished && !raw && !renamed && !nothing && !(told && at < 0))
                    fail_msg("%s: %s: doc%d on \"%s\" at %lld: not there", doing, when, d, branch_names[b],
                             (long long)at);
                if (lost && !told && !branchless)
                    fail_msg("%s: %s: doc%d on \"%s\" at %lld: nobody said that it is lost:\n%s", doing, when, d,
                             branch_names[b], (long long)at, stet_buf_cstr((stet_buf *)lost));
            }
    for (int i = 0; i < ACTIONS; i++) {
        stet_status st;
        stet_action_state state = state_of(s, i, &st);
        stet_error_clear(&err);
        if (st == STET_OK && outdated[i] && state == STET_STATE_STANDS)
            fail_msg("%s: %s: act%d is called standing", doing, when, i);
    }
    return off;
}

static bool opens(stet_space **s, unsigned flags) {
    stet_error_clear(&err);
    stet_status st = stet_space_open_path("work.db", "work", flags, s, &err);
    if (st != STET_OK && st != STET_CORRUPT && st != STET_INVALID && st != STET_UNSUPPORTED && st != STET_IO &&
        !schema_gone(st))
        fail_msg("%s: open: %s: %s", doing, stet_status_name(st), err.message);
    stet_error_clear(&err);
    return st == STET_OK;
}

static long mended, lossy, beyond, edited, refused, unnoticed;

static void copy_work(void) {
    stet_buf b = STET_BUF(0);
    OK(stet_file_read("work.db", 0, &b, &err));
    static const char *const rests[] = {"edit.db-wal", "edit.db-shm", "edit.db.writer"};
    for (size_t i = 0; i < 3; i++)
        OK(stet_file_remove(rests[i], &err));
    OK(stet_file_replace("edit.db", b.data, b.len, 0644, &err));
    stet_buf_release(&b);
}

static stet_status set_input(stet_space *s, int action, int64_t n) {
    stet_tx *tx;
    char in[32];
    stet_value v = stet_value_object();
    stet_value_put(&v, "n", stet_value_int(n));
    snprintf(in, sizeof in, "doc%d", input_of(action));
    stet_status st = stet_tx_begin(s, "", &tx, &err);
    if (st == STET_OK) {
        st = stet_tx_set(tx, in, NULL, stet_value_retain(v), &err);
        if (st == STET_OK)
            st = stet_tx_commit(tx, NULL, &err);
        else
            stet_tx_abort(tx);
    }
    stet_value_release(v);
    return st;
}

/* D9, on a copy. */
static void go_on(const stet_buf *lines) {
    stet_space *s;
    stet_status st;
    copy_work();
    OK(stet_space_open_path("edit.db", "edit", 0, &s, &err));
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < ACTIONS; i++) {
            int64_t n = 3000000 + i + round * 100;
            char out[16];
            stet_value v;
            OK(set_input(s, i, n));
            stet_action_state state = state_of(s, i, &st);
            stet_error_clear(&err);
            if (st != STET_OK && st != STET_NOT_FOUND)
                fail_msg("%s: act%d after the repair: %s", doing, i, stet_status_name(st));
            if (st == STET_OK && state == STET_STATE_STANDS)
                fail_msg("%s: act%d is called standing after a repair and an edit:\n%s", doing, i,
                         stet_buf_cstr((stet_buf *)lines));
            run_once(s, i);
            state = state_of(s, i, &st);
            OK(st);
            if (state != STET_STATE_STANDS)
                fail_msg("%s: act%d ran after the repair, and is %s", doing, i, stet_action_state_name(state));
            stet_tx *tx;
            snprintf(out, sizeof out, "out%d", i);
            OK(stet_tx_begin(s, "", &tx, &err));
            OK(stet_tx_get(tx, out, NULL, &v, &err));
            assert_int_equal(stet_value_as_int(v), n);
            stet_tx_abort(tx);
        }
    stet_space_close(s);
}

/* D7, on a copy: each input is edited, and its reader has to know. */
static size_t edit_inputs(bool raw) {
    size_t missed = 0;
    copy_work();
    stet_space *s;
    if (stet_space_open_path("edit.db", "edit", 0, &s, &err) != STET_OK) {
        stet_error_clear(&err);
        return 0;
    }
    for (int i = 0; i < ACTIONS; i++) { /* the file lost rows of readers, so nobody is found: check has to tell */
        stet_status st = set_input(s, i, 2000000 + i);
        stet_error_clear(&err);
        if (st == STET_OK) {
            stet_action_state state = state_of(s, i, &st);
            edited++;
            refused += st != STET_OK;
            if (st == STET_OK && state == STET_STATE_STANDS && !raw)
                fail_msg("%s: act%d is called standing after its input was edited", doing, i);
            missed += st == STET_OK && state == STET_STATE_STANDS && raw;
        }
        stet_error_clear(&err);
    }
    stet_space_close(s);
    unnoticed += (long)missed;
    return missed;
}

static void examine(bool raw);

static void begin_case(long number) {
    copy_base();
    snprintf(doing, sizeof doing, "case %ld ", number);
    vanished = branchless = facts = false;
    memset(readable, 0, sizeof readable);
}

static void one_case(long number) {
    bool raw = getenv("DAMAGE_FILE") || roll(4) == 0;
    begin_case(number);
    if (raw) {
        for (unsigned i = 1 + roll(3); i > 0; i--)
            damage_file();
    } else {
        sqlite3 *db;
        assert_int_equal(sqlite3_open("work.db", &db), SQLITE_OK);
        for (unsigned i = roll(3) ? 1 : 1 + roll(4), tries = 0; i > 0 && tries < 100; tries++)
            i -= damage_row(db);
        sqlite3_close(db);
    }
    examine(raw);
}

/* All that has to hold of work.db. `raw`: the file itself was damaged. */
static void examine(bool raw) {
    bool whole;
    size_t missed = edit_inputs(raw);
    stet_space *s;
    stet_buf lines = STET_BUF(0);
    size_t off = 0, found;
    if (opens(&s, 0)) {
        off = look(s, "before", NULL, raw);
        stet_space_close(s);
    } else {
        off = 1;
    }
    if (!opens(&s, STET_SPACE_CARE)) {
        beyond++;
        stet_buf_release(&lines);
        return; /* the file is no database any more, and says so */
    }
    found = check(s, false, &lines, &whole);
    if (missed && !found)
        fail_msg("%s: %zu actions did not learn of an edit, and check says ok", doing, missed);
    if (off && !found && !branchless)
        fail_msg("%s: %zu reads were not true, and check says ok", doing, off);
    check(s, true, &lines, &whole);
    stet_space_close(s);
    if (!whole) {
        beyond++;
    } else {
        stet_buf again = STET_BUF(0);
        if (!opens(&s, 0))
            fail_msg("%s: can't be opened after the repair:\n%s", doing, stet_buf_cstr(&lines));
        off = look(s, "after", &lines, false);
        if (!facts && !raw && off)
            fail_msg("%s: damage of derived rows cost %zu reads:\n%s", doing, off, stet_buf_cstr(&lines));
        bool branch_lost = strstr(stet_buf_cstr(&lines), "lost: branch") != NULL;
        if (check(s, false, &again, &whole) && !branch_lost)
            fail_msg("%s: check after the repair:\n%s\nthe repair:\n%s", doing, stet_buf_cstr(&again),
                     stet_buf_cstr(&lines));
        stet_space_close(s);
        stet_buf_release(&again);
        if (!branch_lost)
            go_on(&lines);
        mended++;
        lossy += off != 0;
    }
    stet_buf_release(&lines);
}

static void damage_is_never_served(void **state) {
    (void)state;
    const char *given = getenv("STET_TEST_SEED");
    long cases = getenv("STET_TEST_LONG") ? 200000 : getenv("STET_TEST_SHORT") ? 100 : 600;
    const char *count = getenv("STET_TEST_CASES");
    cases = count ? atol(count) : cases;
    for (long i = 0; i < cases; i++) {
        seed = (given ? strtoull(given, NULL, 10) : 1) * 1000003 + (uint64_t)(i / 50);
        roll(2);
        if (i % 50 == 0) {
            OK(stet_file_remove("base.db", &err));
            build();
        }
        seed = (given ? strtoull(given, NULL, 10) : 1) * 7919 + (uint64_t)i * 104729;
        roll(2);
        one_case(i);
    }
    print_message("# %ld cases: %ld mended, %ld of them with losses, %ld beyond repair; %ld states after an edit, %ld"
                  " of them refused, %ld wrong (the file itself was damaged)\n",
                  cases, mended, lossy, beyond, edited, refused, unnoticed);
    assert_true(mended > cases / 2);
}

static void each_row_may_be_damaged(void **state) {
    (void)state;
    seed = 42;
    OK(stet_file_remove("base.db", &err));
    build();
    long step = getenv("STET_TEST_LONG") ? 1 : getenv("STET_TEST_SHORT") ? 211 : 41, n = 0, done = 0;
    for (size_t t = 0; t < TABLES; t++) {
        bool again = false;
        for (size_t k = 0; k < t; k++)
            again = again || strcmp(tables[k], tables[t]) == 0;
        if (again)
            continue;
        sqlite3 *db;
        columns c;
        assert_int_equal(sqlite3_open("base.db", &db), SQLITE_OK);
        unsigned rows = rows_of(db, tables[t]);
        columns_of(db, tables[t], &c);
        sqlite3_close(db);
        for (unsigned at = 0; at < rows; at++)
            for (int column = -1; column < c.count; column++) {
                if (n++ % step)
                    continue;
                begin_case(n);
                assert_int_equal(sqlite3_open("work.db", &db), SQLITE_OK);
                bool hurt = damage_at(db, tables[t], rows, at, column < 0 ? 0 : 3, column < 0 ? 0 : column);
                sqlite3_close(db);
                if (hurt)
                    examine(false);
                done += hurt;
            }
    }
    print_message("# %ld of %ld rows and columns\n", done, n);
    assert_true(done > n / step / 2);
}

enum { MANY = 1500 };

static void many_name(int i, char out[32]) {
    snprintf(out, 32, "many%04d", i);
}

static void build_many(void) {
    stet_space *s;
    stet_tx *tx;
    char name[32];
    OK(stet_file_remove("base.db", &err));
    OK(stet_space_open_path("base.db", "base", 0, &s, &err));
    OK(stet_tx_begin(s, "", &tx, &err));
    for (int i = 0; i < MANY; i++) {
        many_name(i, name);
        OK(stet_tx_set(tx, name, i % 3 ? NULL : "user:x", stet_value_int(i), &err));
    }
    OK(stet_tx_commit(tx, NULL, &err));
    for (int i = 0; i < MANY; i++) {
        stet_action_run run = STET_ACTION_RUN_INIT;
        stet_value v;
        many_name(i, name);
        run.key = (stet_action_key){"piece", NULL, name};
        run.implementation = "code";
        OK(stet_tx_begin(s, "", &tx, &err));
        OK(stet_tx_get(tx, name, i % 3 ? NULL : "user:x", &v, &err));
        OK(stet_tx_observe(tx, &run, &err));
        OK(stet_tx_commit(tx, NULL, &err));
    }
    OK(stet_db_checkpoint(stet_space_db(s), &err));
    stet_space_close(s);
}

typedef struct marks_seen {
    const char *name;
    bool met;
} marks_seen;

static stet_status see_mark(void *ctx, int64_t action, const stet_docname *piece, const char *name,
                            stet_action_state state, stet_error *e) {
    marks_seen *seen = ctx;
    (void)action, (void)piece, (void)state, (void)e;
    seen->met = seen->met || strcmp(name, seen->name) == 0;
    return STET_OK;
}

/* One of many rows is gone or altered: its reader learns of an edit, or somebody says that something is damaged. */
static void one_of_many(int i, unsigned kind) {
    static const char *const damages[] = {
        "DELETE FROM document WHERE id = ?1",
        "UPDATE document SET id = 'x' || id WHERE id = ?1",
        "DELETE FROM action WHERE name = ?1",
        "DELETE FROM name_digest WHERE id = (SELECT max(id) FROM name_digest WHERE id <= ?1)",
        "UPDATE name_digest SET digest = digest + 1 WHERE id = (SELECT max(id) FROM name_digest WHERE id <= ?1)",
        "DELETE FROM name_digest",
        "UPDATE action SET name = 'x' || name WHERE name = ?1",
    };
    enum { KINDS = sizeof damages / sizeof *damages };
    kind %= KINDS;
    char name[32];
    const char *scope = i % 3 ? NULL : "user:x";
    stet_space *s;
    stet_tx *tx;
    stet_value v;
    stet_buf lines = STET_BUF(0);
    bool whole, edited_it = false;
    many_name(i, name);
    copy_base();
    snprintf(doing, sizeof doing, "%s of %s: ", damages[kind], name);
    sqlite3 *db;
    sqlite3_stmt *q;
    assert_int_equal(sqlite3_open("work.db", &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, damages[kind], -1, &q, NULL), SQLITE_OK);
    if (sqlite3_bind_parameter_count(q))
        sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(q), SQLITE_DONE);
    assert_true(sqlite3_changes(db) > 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    OK(stet_space_open_path("work.db", "work", 0, &s, &err));
    OK(stet_tx_begin(s, "", &tx, &err));
    stet_status st = stet_tx_get(tx, name, scope, &v, &err);
    if (st == STET_OK ? stet_value_as_int(v) != i : st != STET_CORRUPT)
        fail_msg("%s read: %s: %s", doing, stet_status_name(st), err.message);
    stet_tx_abort(tx);
    stet_error_clear(&err);
    stet_space_close(s);
    OK(stet_space_open_path("work.db", "work", 0, &s, &err));
    st = stet_tx_begin(s, "", &tx, &err);
    if (st == STET_OK) {
        st = stet_tx_set(tx, name, scope, stet_value_int(-1), &err);
        if (st == STET_OK)
            st = stet_tx_commit(tx, NULL, &err);
        else
            stet_tx_abort(tx);
        edited_it = st == STET_OK;
    }
    if (!edited_it && st != STET_CORRUPT)
        fail_msg("%s edit: %s: %s", doing, stet_status_name(st), err.message);
    stet_error_clear(&err);
    stet_space_close(s);
    if (edited_it) {
        marks_seen seen = {name, false};
        OK(stet_space_open_path("work.db", "work", 0, &s, &err));
        st = stet_observe_catch_up(s, &err);
        if (st == STET_OK)
            st = stet_observe_each_mark(s, 0, 0, 0, 10, see_mark, &seen, &err);
        if (st == STET_OK ? !seen.met && kind != KINDS - 1 : st != STET_CORRUPT)
            fail_msg("%s nobody learns of the edit: %s: %s", doing, stet_status_name(st), err.message);
        stet_error_clear(&err);
        stet_space_close(s);
    }
    OK(stet_space_open_path("work.db", "work", STET_SPACE_CARE, &s, &err));
    if (check(s, false, &lines, &whole) == 0)
        fail_msg("%s check says ok", doing);
    check(s, true, &lines, &whole);
    if (check(s, false, &lines, &whole) != 0)
        fail_msg("%s check after a repair: %s", doing, stet_buf_cstr(&lines));
    stet_space_close(s);
    stet_buf_release(&lines);
}

static void one_of_many_may_vanish(void **state) {
    (void)state;
    const char *given = getenv("STET_TEST_SEED");
    int cases = getenv("STET_TEST_LONG") ? 700 : getenv("STET_TEST_SHORT") ? 7 : 28;
    build_many();
    seed = given ? strtoull(given, NULL, 10) : 1;
    for (int i = 0; i < cases; i++)
        one_of_many((int)roll(MANY), (unsigned)i);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(damage_is_never_served),
                                       cmocka_unit_test(one_of_many_may_vanish),
                                       cmocka_unit_test(each_row_may_be_damaged)};
    return cmocka_run_group_tests_name("damage", tests, NULL, NULL);
}
