/* observe_check.c - deriving marks and index rows again, and removing what nobody needs.
 *
 * A mark is right if it follows from sequences and revisions alone: some change after the sequence that a read saw (or,
 * for what the action wrote, after its observation) overlaps it. Changes above marked_through do not count: they have
 * not been looked at, and everybody knows. */
#include <stdlib.h>

#include "memory/observe_internal.h"

typedef struct checker {
    stet_space *s;
    bool repair;
    stet_buf *problems;
    size_t found, repaired;
    int64_t through;
    stet_map expected;  /* table, key, action, path -> flags */
    stet_numbers wrong; /* actions to be made unknown */
    STET_VEC(stet_row_op) fixes;
    stet_arena arena;
} checker;

static void report(checker *c, int64_t action, const char *name, const char *what) {
    c->found++;
    if (c->found <= 100)
        stet_buf_printf(c->problems, "action %lld (%s): %s\n", (long long)action, name, what);
    stet_numbers_add(&c->wrong, action);
}

static bool changed_since(checker *c, int64_t branch, int64_t doc, stet_pathref path, stet_read_kind kind, int64_t seq,
                          stet_status *st, stet_error *err) {
    stet_overlap *list;
    size_t count = 0;
    if (*st == STET_OK && seq < c->through)
        *st = stet_space_overlaps(c->s, branch, doc, path, kind, seq, c->through + 1, 1, &c->arena, &list, &count, err);
    return count != 0;
}

static void expect(checker *c, bool write, int64_t key, int64_t action, stet_pathref path, unsigned flags) {
    stet_buf b = STET_BUF(0);
    stet_buf_char(&b, write ? 'w' : 'r');
    stet_buf_add(&b, &key, sizeof key);
    stet_buf_add(&b, &action, sizeof action);
    stet_buf_add(&b, path.bytes, path.len);
    stet_slot *slot = stet_map_get(&c->expected, b.data, b.len);
    if (slot)
        slot->n |= flags;
    else
        stet_map_put(&c->expected, b.data, b.len, (stet_slot){.n = flags});
    stet_buf_release(&b);
}

typedef struct action_row {
    int64_t action, branch;
    char *name;
    stet_buf blob;
    int mark; /* state of its own-space mark, 0: none */
} action_row;

static stet_status check_action(checker *c, const action_row *row, stet_error *err) {
    stet_obs obs;
    stet_status st = STET_OK;
    if (row->blob.len == 0)
        return STET_OK;
    stet_places reads = {0}, known = {0}, declared = {0}, envelopes = {0};
    if (!stet_obs_decode(row->blob.data, row->blob.len, &obs) || !stet_obs_reads(&obs, &reads) ||
        !stet_places_unpack(obs.known.at, obs.known.len, &known) ||
        !stet_places_unpack(obs.declared.at, obs.declared.len, &declared) ||
        !stet_places_unpack(obs.envelopes.at, obs.envelopes.len, &envelopes)) {
        if (row->mark != STET_UNKNOWN)
            report(c, row->action, row->name, "its observation does not decode");
    } else {
        bool dirty = false;
        for (size_t i = 0; i < reads.len; i++) {
            expect(c, false, stet_space_key(row->branch, reads.at[i].doc), row->action, reads.at[i].path,
                   reads.at[i].flag);
            dirty = dirty || changed_since(c, row->branch, reads.at[i].doc, reads.at[i].path,
                                           reads.at[i].flag ? STET_SHALLOW : STET_RECURSIVE, reads.at[i].seq, &st, err);
        }
        for (size_t i = 0; i < known.len; i++) {
            expect(c, true, stet_space_key(row->branch, known.at[i].doc), row->action, known.at[i].path,
                   STET_WRITE_KNOWN);
            dirty = dirty || changed_since(c, row->branch, known.at[i].doc, known.at[i].path, STET_RECURSIVE,
                                           obs.observed_at, &st, err);
        }
        for (size_t i = 0; i < declared.len; i++)
            expect(c, true, stet_space_key(row->branch, declared.at[i].doc), row->action, declared.at[i].path,
                   STET_WRITE_DECLARED);
        for (size_t i = 0; i < envelopes.len; i++)
            expect(c, true, stet_space_key(row->branch, envelopes.at[i].doc), row->action, envelopes.at[i].path,
                   STET_WRITE_ENVELOPE);
        if (st == STET_OK && dirty && !row->mark)
            report(c, row->action, row->name, "a change overlaps what it read or wrote, and it is not marked");
        if (st == STET_OK && !dirty && row->mark == STET_DIRTY)
            report(c, row->action, row->name, "it is marked dirty, and no change overlaps what it read or wrote");
    }
    stet_vec_release(&reads);
    stet_vec_release(&known);
    stet_vec_release(&declared);
    stet_vec_release(&envelopes);
    stet_arena_clear(&c->arena);
    return st;
}

/* Rows of one table against what the observations say. */
static void check_rows(checker *c, bool write) {
    stet_stmt *q = write ? stet_db_stmt(c->s->db, "SELECT key, path, action, flags FROM write_index")
                         : stet_db_stmt(c->s->db, "SELECT key, path, action, flags FROM read_index");
    stet_buf b = STET_BUF(0);
    while (stet_step(q)) {
        int64_t key = stet_column_int(q, 0), action = stet_column_int(q, 2);
        size_t len;
        const char *path = stet_column_blob(q, 1, &len);
        stet_buf_clear(&b);
        stet_buf_char(&b, write ? 'w' : 'r');
        stet_buf_add(&b, &key, sizeof key);
        stet_buf_add(&b, &action, sizeof action);
        stet_buf_add(&b, path, len);
        stet_slot *slot = stet_map_get(&c->expected, b.data, b.len);
        if (slot && slot->n == (uint64_t)stet_column_int(q, 3)) {
            stet_map_remove(&c->expected, b.data, b.len);
            continue;
        }
        report(c, action, write ? "write index" : "read index",
               slot ? "an index row has other flags than its observation" : "an index row without an observation");
        if (!slot)
            *stet_vec_add(&c->fixes) = (stet_row_op){
                key, action, {stet_arena_strndup(&c->arena, path ? path : "", len), len}, 0, false, write, 0};
    }
    stet_buf_release(&b);
}

static void check_missing(checker *c) {
    size_t cursor = 0, len;
    const void *key;
    stet_slot *slot;
    while (stet_map_next(&c->expected, &cursor, &key, &len, &slot)) {
        const char *bytes = key;
        stet_row_op op = {.add = true, .write = bytes[0] == 'w', .flags = (unsigned)slot->n};
        memcpy(&op.key, bytes + 1, sizeof op.key);
        memcpy(&op.action, bytes + 1 + sizeof op.key, sizeof op.action);
        size_t head = 1 + sizeof op.key + sizeof op.action;
        op.path = (stet_pathref){stet_arena_strndup(&c->arena, bytes + head, len - head), len - head};
        report(c, op.action, op.write ? "write index" : "read index", "an index row is missing");
        *stet_vec_add(&c->fixes) = op;
    }
}

static void fix_rows(checker *c) {
    for (size_t i = 0; i < c->fixes.len; i++) {
        const stet_row_op *op = &c->fixes.at[i];
        stet_stmt *q;
        if (op->add)
            q = op->write
                    ? stet_db_stmt(c->s->db,
                                   "INSERT OR REPLACE INTO write_index(key, path, action, flags) VALUES(?, ?, ?, ?)")
                    : stet_db_stmt(c->s->db,
                                   "INSERT OR REPLACE INTO read_index(key, path, action, flags) VALUES(?, ?, ?, ?)");
        else
            q = op->write ? stet_db_stmt(c->s->db, "DELETE FROM write_index WHERE key = ? AND path = ? AND action = ?")
                          : stet_db_stmt(c->s->db, "DELETE FROM read_index WHERE key = ? AND path = ? AND action = ?");
        stet_bind_int(q, 1, op->key);
        stet_bind_blob(q, 2, op->path.bytes, op->path.len);
        stet_bind_int(q, 3, op->action);
        if (op->add)
            stet_bind_int(q, 4, op->flags);
        stet_run(q);
    }
}

static void distrust_wrong(checker *c) {
    stet_numbers_settle(&c->wrong);
    for (size_t i = 0; i < c->wrong.len; i++) {
        int64_t branch = -1;
        stet_stmt *q = stet_db_stmt(c->s->db, "SELECT branch FROM action WHERE action = ?");
        stet_bind_int(q, 1, c->wrong.at[i]);
        while (stet_step(q))
            branch = stet_column_int(q, 0);
        if (branch >= 0)
            stet_observe_mark(c->s, c->wrong.at[i], branch, STET_UNKNOWN, STET_REASON_REPAIRED, 0, 0, NULL);
    }
    c->repaired = c->found;
}

static stet_status check_actions(checker *c, stet_error *err) {
    STET_VEC(action_row) rows = {0};
    stet_status st = STET_OK;
    int64_t after = 0;
    do { /* in pages: a statement is not held open while others run */
        enum { PAGE = 2000 };
        stet_vec_clear(&rows);
        stet_stmt *q = stet_db_stmt(
            c->s->db, "SELECT a.action, a.branch, a.name, a.observation, coalesce(m.state, 0) FROM action a"
                      " LEFT JOIN mark m ON m.action = a.action AND m.space = 0"
                      " JOIN branch b ON b.branch = a.branch AND b.deleted_ms IS NULL"
                      " WHERE a.action > ? ORDER BY a.action LIMIT ?");
        stet_bind_int(q, 1, after);
        stet_bind_int(q, 2, PAGE);
        while (stet_step(q)) {
            action_row *r = stet_vec_add(&rows);
            size_t len;
            r->action = after = stet_column_int(q, 0);
            r->branch = stet_column_int(q, 1);
            const char *text = stet_column_text(q, 2, &len);
            r->name = stet_strndup(text, len);
            r->blob = (stet_buf)STET_BUF(0);
            const void *blob = stet_column_blob(q, 3, &len);
            stet_buf_add(&r->blob, blob, len);
            r->mark = (int)stet_column_int(q, 4);
        }
        for (size_t i = 0; i < rows.len; i++) {
            if (st == STET_OK)
                st = check_action(c, &rows.at[i], err);
            free(rows.at[i].name);
            stet_buf_release(&rows.at[i].blob);
        }
    } while (rows.len && st == STET_OK);
    stet_vec_release(&rows);
    return st;
}

stet_status stet_observe_check(stet_space *s, bool repair, stet_buf *problems, size_t *found, size_t *repaired,
                               stet_error *err) {
    checker c = {.s = s, .repair = repair, .problems = problems, .arena = STET_ARENA_INIT};
    bool begun = false;
    stet_status st = stet_observe_sync(s, err);
    if (st == STET_OK && repair)
        st = stet_observe_begin(s, &begun, err);
    else if (st == STET_OK)
        st = stet_space_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    c.through = stet_observe_meta(s, "marked_through", 0);
    st = check_actions(&c, err);
    /* Rows of deleted branches are gc's, not an error. */
    if (st == STET_OK && stet_db_int(s->db, "SELECT count(*) FROM branch WHERE deleted_ms IS NOT NULL", 0) == 0) {
        check_rows(&c, false);
        check_rows(&c, true);
        check_missing(&c);
    }
    if (repair && st == STET_OK && c.found) {
        fix_rows(&c);
        distrust_wrong(&c);
    }
    if (repair) {
        if (st == STET_OK) {
            st = stet_observe_end(s, begun, err);
        } else if (begun) {
            stet_db_rollback(s->db);
            stet_observe_done(s, false);
        }
        if (c.found)
            stet_observe_empty(s);
    } else {
        st = stet_space_leave(s, begun, st, err);
    }
    *found = c.found;
    *repaired = st == STET_OK ? c.repaired : 0;
    stet_map_release(&c.expected);
    stet_numbers_release(&c.wrong);
    stet_vec_release(&c.fixes);
    stet_arena_release(&c.arena);
    return st;
}

/* ---- Cleaning ------------------------------------------------------------------------------------------------- */

/* Actions of deleted branches, and of pieces whose result document is gone on their branch. */
static stet_status superfluous(stet_space *s, stet_numbers *out, stet_error *err) {
    STET_VEC(stet_marked) pieces = {0};
    stet_stmt *q = stet_db_stmt(s->db, "SELECT DISTINCT piece, branch FROM action");
    while (stet_step(q))
        *stet_vec_add(&pieces) = (stet_marked){.action = stet_column_int(q, 0), .seq = stet_column_int(q, 1)};
    stet_status st = stet_db_status(s->db, err);
    for (size_t i = 0; i < pieces.len && st == STET_OK; i++) {
        const stet_branch_entry *b = stet_space_branch_entry(s, pieces.at[i].seq);
        bool gone = !b || b->deleted;
        if (!gone) {
            stet_head head;
            stet_head_load(s, pieces.at[i].seq, pieces.at[i].action, s->known, &head);
            /* Never written is another matter: observations may come before the document does. */
            gone = head.seq != 0 && !head.exists;
            stet_head_release(&head);
        }
        st = stet_db_status(s->db, err);
        if (!gone || st != STET_OK)
            continue;
        q = stet_db_stmt(s->db, "SELECT action FROM action WHERE action >= ? AND action < ? AND branch = ?");
        stet_bind_int(q, 1, pieces.at[i].action << STET_ACTION_BITS);
        stet_bind_int(q, 2, (pieces.at[i].action + 1) << STET_ACTION_BITS);
        stet_bind_int(q, 3, pieces.at[i].seq);
        while (stet_step(q))
            stet_numbers_add(out, stet_column_int(q, 0));
    }
    stet_vec_release(&pieces);
    return st;
}

/* Fingerprints that no observation names. */
static int64_t old_fingerprints(stet_space *s, bool dry_run) {
    stet_map used = {0};
    stet_stmt *q = stet_db_stmt(s->db, "SELECT observation FROM action WHERE observation IS NOT NULL");
    while (stet_step(q)) {
        size_t len;
        const void *blob = stet_column_blob(q, 0, &len);
        stet_obs obs;
        if (!len || !stet_obs_decode(blob, len, &obs))
            continue;
        stet_map_put(&used, &obs.implementation, sizeof obs.implementation, (stet_slot){.n = 1});
        stet_map_put(&used, &obs.runtime, sizeof obs.runtime, (stet_slot){.n = 1});
    }
    stet_numbers old = {0};
    q = stet_db_stmt(s->db, "SELECT fingerprint FROM fingerprint");
    while (stet_step(q)) {
        int64_t n = stet_column_int(q, 0);
        if (!stet_map_get(&used, &n, sizeof n))
            stet_numbers_add(&old, n);
    }
    for (size_t i = 0; i < old.len && !dry_run; i++) {
        q = stet_db_stmt(s->db, "DELETE FROM fingerprint WHERE fingerprint = ?");
        stet_bind_int(q, 1, old.at[i]);
        stet_run(q);
    }
    int64_t n = (int64_t)old.len;
    stet_numbers_release(&old);
    stet_map_release(&used);
    return n;
}

/* Mirrors for owners whose file is no longer there. */
static int64_t lost_owners(stet_space *s, bool dry_run) {
    stet_numbers gone = {0};
    char *dir = stet_file_dirname(s->path);
    stet_stmt *q = stet_db_stmt(s->db, "SELECT owner, name FROM mirror_owner");
    while (stet_step(q)) {
        size_t len;
        const char *name = stet_column_text(q, 1, &len);
        char *path = stet_asprintf("%s/%.*s.db", dir, (int)len, name);
        if (!stet_file_exists(path))
            stet_numbers_add(&gone, stet_column_int(q, 0));
        stet_free(path);
    }
    stet_free(dir);
    int64_t rows = 0;
    for (size_t i = 0; i < gone.len; i++) {
        q = stet_db_stmt(s->db, dry_run ? "SELECT count(*) FROM mirror WHERE owner = ?"
                                        : "DELETE FROM mirror WHERE owner = ?");
        stet_bind_int(q, 1, gone.at[i]);
        if (dry_run) {
            while (stet_step(q))
                rows += stet_column_int(q, 0);
            continue;
        }
        stet_run(q);
        rows += stet_db_changes(s->db);
        q = stet_db_stmt(s->db, "DELETE FROM mirror_owner WHERE owner = ?");
        stet_bind_int(q, 1, gone.at[i]);
        stet_run(q);
    }
    stet_numbers_release(&gone);
    return rows;
}

stet_status stet_observe_gc(stet_space *s, bool dry_run, int64_t *rows, stet_error *err) {
    bool begun = false;
    stet_status st = stet_observe_sync(s, err);
    if (st == STET_OK && !dry_run)
        st = stet_observe_begin(s, &begun, err);
    else if (st == STET_OK)
        st = stet_space_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    stet_numbers actions = {0};
    st = superfluous(s, &actions, err);
    *rows = (int64_t)actions.len;
    for (size_t i = 0; i < actions.len && st == STET_OK && !dry_run; i++)
        stet_observe_remove(s, actions.at[i], true);
    stet_numbers_release(&actions);
    if (st == STET_OK)
        *rows += old_fingerprints(s, dry_run) + lost_owners(s, dry_run);
    if (dry_run) {
        return stet_space_leave(s, begun, st, err);
    }
    if (st != STET_OK) {
        if (begun)
            stet_db_rollback(s->db);
        stet_observe_done(s, false);
        return st;
    }
    st = stet_observe_end(s, begun, err);
    stet_observe_empty(s);
    return st;
}
