/* observe_check.c - derives marks and index rows again, and compares the scheduler's tables with each other.
 *
 * A mark is right if it follows from sequences and revisions alone: a change after the sequence that a read saw (or,
 * for what the action wrote, after its observation) overlaps it. A change above marked_through need not have a mark,
 * because it has not been processed yet; but it may have one. The same holds for reads in other spaces, where the bound
 * is what has been pushed.
 */

#include <stdlib.h>

#include "memory/observe_internal.h"

/* A space that actions of this one read. */
typedef struct foreign_space {
    int64_t number;
    stet_space *in; /* NULL: it does not exist, or one of the two is an older copy, which catching up will notice */
    int64_t through, stamp, seen;
} foreign_space;

typedef struct checker {
    stet_space *s;
    STET_VEC(foreign_space) foreign;
    stet_buf *problems;
    size_t found, repaired;
    int64_t through;
    stet_map expected; /* table, key, action, path -> flags */
    stet_map deleted;  /* branches */
    /* Documents that have a name and fingerprints that have a hash, as far as they were asked for. */
    stet_map named;
    stet_numbers wrong; /* actions to be made unknown */
    stet_numbers stray; /* actions to remove: their names do not lead to them */
    bool all;           /* make every action unknown: a mark is missing, and nobody knows of which one */
    STET_VEC(stet_row_op) fixes;
    stet_arena arena;
} checker;

static void report(checker *c, int64_t action, const char *name, const char *what) {
    c->found++;
    if (c->found <= 100)
        stet_buf_printf(c->problems, "action %lld (%s): %s\n", (long long)action, name, what);
    stet_numbers_add(&c->wrong, action);
}

/* Reports a problem that does not belong to a single action. */
static void report_table(checker *c, const char *what) {
    c->found++;
    if (c->found <= 100)
        stet_buf_printf(c->problems, "%s\n", what);
}

/* Is there a change after `seq`, up to `upto`? */
static bool changed_since(checker *c, stet_space *in, int64_t branch, int64_t doc, stet_pathref path,
                          stet_read_kind kind, int64_t seq, int64_t upto, stet_status *st, stet_error *err) {
    stet_overlap *list;
    size_t count = 0;
    if (*st == STET_OK && seq < upto)
        *st = stet_space_overlaps(in, branch, doc, path, kind, seq, upto + 1, 1, &c->arena, &list, &count, err);
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

/* A mark as stored. */
typedef struct mark_row {
    int64_t state; /* 0: there is none */
    int64_t branch, reason, seq, doc, kind;
    stet_pathref path; /* in the checker's arena */
} mark_row;

typedef struct action_row {
    int64_t action, branch, piece;
    char *name;
    stet_buf blob;
    bool sound; /* the checksum is right */
    int mark;   /* state of its own-space mark, 0: none */
} action_row;

/* Does the row exist that other rows refer to by number? Each is asked for once. `table`: 'd' documents, 'f'
 * fingerprints. */
static bool is_there(checker *c, char table, int64_t number) {
    char key[1 + sizeof number] = {table};
    memcpy(key + 1, &number, sizeof number);
    bool added;
    stet_slot *slot = stet_map_have(&c->named, key, sizeof key, (stet_slot){.n = 0}, &added);
    if (!added)
        return slot->n != 0;
    stet_stmt *q = table == 'd' ? stet_db_stmt(c->s->db, "SELECT 1 FROM document WHERE doc = ?")
                                : stet_db_stmt(c->s->db, "SELECT length(hash) = 32 AND sum ="
                                                         " row_sum(fingerprint, hash) FROM fingerprint WHERE"
                                                         " fingerprint = ?");
    stet_bind_int(q, 1, number);
    uint64_t there = 0;
    while (stet_step(q))
        there = stet_column_int(q, 0) != 0;
    slot->n = there;
    return there != 0;
}

static bool all_named(checker *c, const stet_places *p) {
    for (size_t i = 0; i < p->len; i++)
        if (!is_there(c, 'd', p->at[i].doc))
            return false;
    return true;
}

/* Did the change that a mark names happen? */
static bool happened(checker *c, stet_space *in, int64_t branch, int64_t doc, const mark_row *m, stet_status *st,
                     stet_error *err) {
    stet_overlap *list;
    size_t count = 0;
    if (*st == STET_OK && m->seq > 0)
        *st = stet_space_overlaps(in, branch, doc, m->path, STET_RECURSIVE, m->seq - 1, m->seq + 1, SIZE_MAX, &c->arena,
                                  &list, &count, err);
    for (size_t i = 0; i < count; i++)
        if (list[i].seq == m->seq && list[i].change.kind == (stet_change_kind)m->kind &&
            stet_path_compare(list[i].change.path, m->path) == 0)
            return true;
    return false;
}

static mark_row mark_of(checker *c, int64_t action, int64_t space) {
    mark_row m = {0};
    stet_stmt *q = stet_db_stmt(
        c->s->db, "SELECT state, branch, reason, seq, doc, kind, path FROM mark WHERE action = ? AND space = ?");
    stet_bind_int(q, 1, action);
    stet_bind_int(q, 2, space);
    while (stet_step(q)) {
        size_t len;
        const char *path = stet_column_blob(q, 6, &len);
        m = (mark_row){stet_column_int(q, 0),
                       stet_column_int(q, 1),
                       stet_column_int(q, 2),
                       stet_column_int(q, 3),
                       stet_column_int(q, 4),
                       stet_column_int(q, 5),
                       {stet_arena_strndup(&c->arena, path ? path : "", len), len}};
        if (m.state == 0)
            m.state = -1; /* a row exists, but its state is not a valid one */
    }
    return m;
}

/* Could such a mark have been set? A dirty one, for a change, is checked together with the reads. */
static bool sound_mark(const mark_row *m, const action_row *row, bool own) {
    return m->branch == row->branch && stet_path_valid(m->path) &&
           (m->state == STET_STATE_DIRTY || (own && m->state == STET_STATE_UNKNOWN)) && (own || m->doc == 0);
}

static foreign_space *foreign_of(checker *c, int64_t number) {
    for (size_t i = 0; i < c->foreign.len; i++)
        if (c->foreign.at[i].number == number)
            return &c->foreign.at[i];
    return NULL;
}

static bool exists(checker *c, const char *sql, int64_t first, int64_t second) {
    bool found = false;
    stet_stmt *q = stet_db_stmt(c->s->db, sql);
    stet_bind_int(q, 1, first);
    stet_bind_int(q, 2, second);
    while (stet_step(q))
        found = true;
    return found;
}

/* Checks the reads in one other space, `at[0..len)`: each needs its mirror, and a mark if and only if something
 * changed. */
static stet_status check_foreign(checker *c, const action_row *row, const stet_foreign_place *at, size_t len,
                                 stet_error *err) {
    foreign_space *f = foreign_of(c, at[0].space);
    stet_status st = STET_OK;
    if (row->mark == STET_STATE_UNKNOWN)
        return STET_OK;
    if (!exists(c, "SELECT 1 FROM foreign_space WHERE space = ?1 AND ?2 != 0", at[0].space, row->action))
        report(c, row->action, row->name, "it read a space that is not known");
    else if (!exists(c, "SELECT 1 FROM foreign_read WHERE space = ? AND action = ?", at[0].space, row->action))
        report(c, row->action, row->name, "that it read another space is not noted");
    bool seen = true;
    for (size_t i = 0; i < len && f; i++)
        seen = seen && at[i].seq <= f->seen;
    if (!seen)
        report(c, row->action, row->name, "it read another space at a sequence that was not noted");
    if (!f || !f->in)
        return STET_OK;
    mark_row m = mark_of(c, row->action, at[0].space);
    bool mirrored = true, must = false, may = false, caused = false;
    for (size_t i = 0; i < len && st == STET_OK; i++) {
        mirrored = mirrored && stet_observe_mirrored(f->in, c->s, row->action, &at[i]);
        stet_docname name = {stet_arena_strndup(&c->arena, at[i].id.at, at[i].id.len),
                             stet_arena_strndup(&c->arena, at[i].scope.at, at[i].scope.len)};
        int64_t doc = 0;
        st = stet_space_doc(f->in, &name, &doc, err);
        if (st != STET_OK || !doc)
            continue;
        stet_read_kind kind = at[i].flag ? STET_SHALLOW : STET_RECURSIVE;
        must = must || changed_since(c, f->in, 0, doc, at[i].path, kind, at[i].seq, f->through, &st, err);
        may = may || changed_since(c, f->in, 0, doc, at[i].path, kind, at[i].seq, f->in->known, &st, err);
        if (m.state && !caused && m.seq > at[i].seq && sound_mark(&m, row, false) &&
            stet_touches(m.path, (stet_change_kind)m.kind, at[i].path, kind))
            caused = happened(c, f->in, 0, doc, &m, &st, err);
    }
    if (st != STET_OK)
        return st;
    if (!mirrored)
        report(c, row->action, row->name, "a read in another space has no mirror there");
    if (must && !m.state)
        report(c, row->action, row->name, "a change in another space overlaps what it read, and it is not marked");
    if (!may && m.state)
        report(c, row->action, row->name, "it is marked by another space, and no change there overlaps what it read");
    if (may && m.state && !caused)
        report(c, row->action, row->name, "its mark names a change in another space that is not its cause");
    return STET_OK;
}

static stet_status check_foreign_reads(checker *c, const action_row *row, const stet_obs *obs, stet_error *err) {
    stet_foreign_places all = {0};
    stet_status st = STET_OK;
    if (!stet_foreign_unpack(obs->foreign, &all)) {
        if (row->mark != STET_STATE_UNKNOWN)
            report(c, row->action, row->name, "its observation does not decode");
    } else {
        for (size_t i = 0, end; i < all.len && st == STET_OK; i = end) {
            for (end = i; end < all.len && all.at[end].space == all.at[i].space;)
                end++;
            st = check_foreign(c, row, &all.at[i], end - i, err);
        }
    }
    stet_vec_release(&all);
    return st;
}

static stet_status check_action(checker *c, const action_row *row, stet_error *err) {
    stet_obs obs;
    stet_status st = STET_OK;
    if (row->action >> STET_ACTION_BITS != row->piece) {
        report(c, row->action, row->name, "its number is not one of its piece");
        stet_numbers_add(&c->stray, row->action);
        return STET_OK;
    }
    mark_row m = mark_of(c, row->action, 0);
    if (m.state && !sound_mark(&m, row, true))
        report(c, row->action, row->name, "its mark is damaged");
    if (row->blob.len == 0) {
        if (!m.state)
            report(c, row->action, row->name, "it has no observation, and is not marked");
        return STET_OK;
    }
    stet_places reads = {0}, known = {0}, declared = {0}, envelopes = {0};
    if (!row->sound && stet_obs_decode(row->blob.data, row->blob.len, &obs)) { /* otherwise the checks below say more */
        if (row->mark != STET_STATE_UNKNOWN)
            report(c, row->action, row->name, "its row is damaged");
        return STET_OK;
    }
    if (!stet_obs_decode(row->blob.data, row->blob.len, &obs) || !stet_obs_reads(&obs, &reads) ||
        !stet_places_unpack(obs.known.at, obs.known.len, &known) ||
        !stet_places_unpack(obs.declared.at, obs.declared.len, &declared) ||
        !stet_places_unpack(obs.envelopes.at, obs.envelopes.len, &envelopes)) {
        if (row->mark != STET_STATE_UNKNOWN)
            report(c, row->action, row->name, "its observation does not decode");
    } else {
        bool must = false, may = false, caused = m.state != STET_STATE_DIRTY;
        if (row->mark != STET_STATE_UNKNOWN && !(is_there(c, 'f', obs.implementation) && is_there(c, 'f', obs.runtime)))
            report(c, row->action, row->name, "what computed it is not known");
        if (row->mark != STET_STATE_UNKNOWN &&
            !(all_named(c, &reads) && all_named(c, &known) && all_named(c, &declared) && all_named(c, &envelopes)))
            report(c, row->action, row->name, "a document that it read or wrote has no name");
        for (size_t i = 0; i < reads.len; i++) {
            stet_read_kind kind = reads.at[i].flag ? STET_SHALLOW : STET_RECURSIVE;
            expect(c, false, stet_space_key(row->branch, reads.at[i].doc), row->action, reads.at[i].path,
                   reads.at[i].flag);
            must = must || changed_since(c, c->s, row->branch, reads.at[i].doc, reads.at[i].path, kind, reads.at[i].seq,
                                         c->through, &st, err);
            may = must || may ||
                  changed_since(c, c->s, row->branch, reads.at[i].doc, reads.at[i].path, kind, reads.at[i].seq,
                                c->s->known, &st, err);
            if (!caused && m.reason == STET_REASON_CHANGED && m.doc == reads.at[i].doc && m.seq > reads.at[i].seq &&
                sound_mark(&m, row, true) && stet_touches(m.path, (stet_change_kind)m.kind, reads.at[i].path, kind))
                caused = happened(c, c->s, row->branch, m.doc, &m, &st, err);
        }
        for (size_t i = 0; i < known.len; i++) {
            expect(c, true, stet_space_key(row->branch, known.at[i].doc), row->action, known.at[i].path,
                   STET_WRITE_KNOWN);
            must = must || changed_since(c, c->s, row->branch, known.at[i].doc, known.at[i].path, STET_RECURSIVE,
                                         obs.observed_at, c->through, &st, err);
            may = must || may ||
                  changed_since(c, c->s, row->branch, known.at[i].doc, known.at[i].path, STET_RECURSIVE,
                                obs.observed_at, c->s->known, &st, err);
            if (!caused && m.reason == STET_REASON_OVERWRITTEN && m.doc == known.at[i].doc && m.seq > obs.observed_at &&
                sound_mark(&m, row, true) &&
                stet_touches(m.path, (stet_change_kind)m.kind, known.at[i].path, STET_RECURSIVE))
                caused = happened(c, c->s, row->branch, m.doc, &m, &st, err);
        }
        for (size_t i = 0; i < declared.len; i++)
            expect(c, true, stet_space_key(row->branch, declared.at[i].doc), row->action, declared.at[i].path,
                   STET_WRITE_DECLARED);
        for (size_t i = 0; i < envelopes.len; i++)
            expect(c, true, stet_space_key(row->branch, envelopes.at[i].doc), row->action, envelopes.at[i].path,
                   STET_WRITE_ENVELOPE);
        if (st == STET_OK && must && !row->mark)
            report(c, row->action, row->name, "a change overlaps what it read or wrote, and it is not marked");
        if (st == STET_OK && !may && row->mark == STET_STATE_DIRTY)
            report(c, row->action, row->name, "it is marked dirty, and no change overlaps what it read or wrote");
        if (st == STET_OK && may && !caused && sound_mark(&m, row, true))
            report(c, row->action, row->name, "its mark names a change that is not its cause");
        if (st == STET_OK && obs.foreign.len)
            st = check_foreign_reads(c, row, &obs, err);
    }
    stet_vec_release(&reads);
    stet_vec_release(&known);
    stet_vec_release(&declared);
    stet_vec_release(&envelopes);
    stet_arena_clear(&c->arena);
    return st;
}

/* Compares what a row says about one action with what the observations say. */
static void check_bit(checker *c, const stet_block_row *r, bool write, int64_t action, unsigned flags, stet_buf *b) {
    stet_buf_clear(b);
    stet_buf_char(b, write ? 'w' : 'r');
    stet_buf_add(b, &r->key, sizeof r->key);
    stet_buf_add(b, &action, sizeof action);
    stet_buf_add(b, r->path.bytes, r->path.len);
    stet_slot *slot = stet_map_get(&c->expected, b->data, b->len);
    if (!write && flags == 0 && (r->bits[STET_BIT_SHALLOW] & stet_block_bit(action)))
        flags = ~0u; /* recursive and shallow at the same time, which stet never writes */
    if (slot && slot->n == flags) {
        stet_map_remove(&c->expected, b->data, b->len);
        return;
    }
    report(c, action, write ? "write index" : "read index",
           slot ? "an index row has other flags than its observation" : "an index row without an observation");
    if (!slot) /* a row with other flags is found again as missing, and replaced */
        *stet_vec_add(&c->fixes) =
            (stet_row_op){.key = r->key,
                          .action = action,
                          .path = {stet_arena_strndup(&c->arena, r->path.bytes, r->path.len), r->path.len},
                          .write = write};
}

static void check_rows(checker *c) {
    stet_stmt *q = stet_db_stmt(c->s->db, "SELECT " STET_BLOCK_COLUMNS ", sum FROM place_index");
    stet_buf b = STET_BUF(0);
    while (stet_step(q)) {
        stet_block_row r;
        if (!stet_observe_block_row(q, &r)) {
            report_table(c, "a row of readers and writers is damaged"); /* its content is found again as missing */
            continue;
        }
        int64_t branch = r.key >> 40, action;
        unsigned flags;
        if (stet_map_get(&c->deleted, &branch, sizeof branch))
            continue; /* left for gc, not an error */
        for (int write = 0; write < 2; write++)
            for (unsigned at = 0; stet_block_next(&r, write != 0, &at, &action, &flags);)
                check_bit(c, &r, write, action, flags, &b);
    }
    stet_buf_release(&b);
}

static void check_missing(checker *c) {
    size_t cursor = 0, len;
    const void *key;
    stet_slot *slot;
    while (stet_map_next(&c->expected, &cursor, &key, &len, &slot)) {
        const char *bytes = key;
        stet_row_op op = {.add = true, .write = bytes[0] == 'w', .replaces = true, .flags = (unsigned)slot->n};
        memcpy(&op.key, bytes + 1, sizeof op.key);
        memcpy(&op.action, bytes + 1 + sizeof op.key, sizeof op.action);
        size_t head = 1 + sizeof op.key + sizeof op.action;
        op.path = (stet_pathref){stet_arena_strndup(&c->arena, bytes + head, len - head), len - head};
        report(c, op.action, op.write ? "write index" : "read index", "an index row is missing");
        *stet_vec_add(&c->fixes) = op;
    }
}

/* Removes rows whose keys are not numbers: no number matches them, so that they can't be removed by key. */
static void drop_malformed(stet_space *s) {
    static const char *const statements[] = {
        "DELETE FROM place_index WHERE typeof(key) != 'integer' OR typeof(path) != 'blob' OR typeof(block) !="
        " 'integer' OR sum IS NOT " STET_BLOCK_SUM,
        "DELETE FROM mirror WHERE typeof(key) != 'integer' OR typeof(path) != 'blob' OR typeof(owner) != 'integer'"
        " OR typeof(action) != 'integer' OR sum IS NOT " STET_MIRROR_SUM,
        "DELETE FROM mark WHERE typeof(action) != 'integer' OR typeof(space) != 'integer'",
        "DELETE FROM foreign_read WHERE typeof(action) != 'integer' OR typeof(space) != 'integer'"};
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        stet_run(stet_db_stmt(s->db, statements[i]));
}

static void fix_rows(checker *c) {
    struct stet_observe *o = stet_observe_of(c->s);
    if (c->fixes.len)
        stet_observe_drop_surveys(c->s);
    for (size_t i = 0; i < c->fixes.len; i++) {
        *stet_vec_add(&o->ops) = c->fixes.at[i];
        o->ops.at[o->ops.len - 1].order = o->op_order++;
    }
    stet_observe_write_rows(c->s);
}

static void distrust_wrong(checker *c) {
    stet_stmt *every = c->all ? stet_db_stmt(c->s->db, "SELECT action FROM action") : NULL;
    while (every && stet_step(every))
        stet_numbers_add(&c->wrong, stet_column_int(every, 0));
    stet_numbers_settle(&c->wrong);
    for (size_t i = 0; i < c->stray.len; i++) {
        stet_stmt *q = stet_db_stmt(c->s->db, "DELETE FROM action WHERE action = ?");
        stet_bind_int(q, 1, c->stray.at[i]);
        stet_run(q);
    }
    stet_observe_actions_renew(c->s);
    for (size_t i = 0; i < c->wrong.len; i++) {
        int64_t branch = -1;
        stet_stmt *q = stet_db_stmt(c->s->db, "SELECT branch FROM action WHERE action = ?");
        stet_bind_int(q, 1, c->wrong.at[i]);
        while (stet_step(q))
            branch = stet_column_int(q, 0);
        stet_observe_drop_marks(c->s, c->wrong.at[i], -1); /* it may contain anything */
        q = stet_db_stmt(c->s->db,
                         "UPDATE action SET observation = NULL, sum = row_sum(action, branch, piece, generation,"
                         " name, NULL) WHERE action = ? AND sum IS NOT row_sum(action, branch, piece,"
                         " generation, name, observation)");
        stet_bind_int(q, 1, c->wrong.at[i]);
        stet_run(q);
        if (branch >= 0)
            stet_observe_mark(c->s, c->wrong.at[i], branch, STET_STATE_UNKNOWN, STET_REASON_REPAIRED, 0, 0, NULL);
    }
}

/* Marks of actions that do not exist, or from spaces that an action does not read. */
static void check_marks(checker *c) {
    stet_stmt *q = stet_db_stmt(
        c->s->db, "SELECT m.action, a.action FROM mark m LEFT JOIN action a ON a.action = m.action"
                  " WHERE a.action IS NULL OR (m.space != 0"
                  " AND NOT EXISTS(SELECT 1 FROM foreign_read r WHERE r.space = m.space AND r.action = m.action)"
                  " AND NOT EXISTS(SELECT 1 FROM mark u WHERE u.action = m.action AND u.space = 0 AND u.state = 3))");
    while (stet_step(q))
        report(c, stet_column_int(q, 0), "marks",
               stet_column_is_null(q, 1) ? "a mark without an action"
                                         : "it is marked by a space that it does not read");
}

/* Checks the numbers that record progress, and the rows of spaces. */
static void check_progress(checker *c, bool repair) {
    static const char through[] = "SELECT count(*) = 1 AND min(sum IS row_sum(name, value) AND value BETWEEN 0 AND"
                                  " (SELECT coalesce(max(seq), 0) FROM commits)) FROM space_meta"
                                  " WHERE name = 'marked_through'";
    static const char stamp[] = "SELECT count(*) = 1 AND min(sum IS row_sum(name, value) AND"
                                " value >= max((SELECT coalesce(max(through), 0) FROM survey),"
                                " (SELECT coalesce(max(stamp), 0) FROM mark))) FROM space_meta"
                                " WHERE name = 'mark_stamp'";
    if (!stet_observe_int(c->s, through, 0)) {
        report_table(c, "up to which commit marks have been set is not known");
        /* So marks are derived up to the newest commit, and every action that differs becomes unknown. */
        c->through = c->s->known;
        if (repair)
            stet_observe_set_progress(c->s, "marked_through",
                                      stet_observe_int(c->s, "SELECT coalesce(max(seq), 0) FROM commits", 0));
    }
    if (!stet_observe_int(c->s, stamp, 0)) {
        report_table(c, "marks may be older than what was found not to be needed says");
        if (repair) {
            stet_observe_drop_surveys(c->s);
            stet_run(stet_db_stmt(c->s->db, "UPDATE mark SET stamp = 0 WHERE typeof(stamp) != 'integer'"));
            stet_observe_set_progress(c->s, "mark_stamp",
                                      1 + stet_observe_int(c->s, "SELECT coalesce(max(stamp), 0) FROM mark", 0));
        }
    }
    /* A number 0 says that there is none. */
#define BAD_SPACE       "foreign_space WHERE space <= 0 OR sum IS NOT " STET_FOREIGN_SUM
#define BAD_OWNER       "mirror_owner WHERE owner <= 0 OR sum IS NOT " STET_OWNER_SUM
#define BAD_FINGERPRINT "fingerprint WHERE fingerprint <= 0 OR sum IS NOT row_sum(fingerprint, hash)"
#define BAD_PAST        "past_observation WHERE sum IS NOT row_sum(action, number, generation, observation)"
    if (stet_observe_int(c->s,
                         "SELECT (SELECT count(*) FROM " BAD_SPACE ") + (SELECT count(*) FROM " BAD_OWNER
                         ") + (SELECT count(*) FROM " BAD_FINGERPRINT ")",
                         0)) {
        report_table(c, "a row of a space or a fingerprint is damaged");
        if (repair) {
            stet_run(stet_db_stmt(c->s->db, "DELETE FROM " BAD_SPACE));
            stet_run(stet_db_stmt(c->s->db, "DELETE FROM " BAD_OWNER));
            stet_run(stet_db_stmt(c->s->db, "DELETE FROM " BAD_FINGERPRINT));
        }
    }
    if (stet_observe_int(c->s,
                         "SELECT (SELECT count(*) FROM survey WHERE sum IS NOT " STET_SURVEY_SUM
                         ") + (SELECT count(*) FROM complete_branch WHERE sum IS NOT row_sum(branch, runtime))",
                         0)) {
        report_table(c, "a row that says what need not be looked at is damaged");
        if (repair) {
            stet_observe_drop_surveys(c->s);
            stet_run(stet_db_stmt(c->s->db, "DELETE FROM complete_branch"));
        }
    }
    if (stet_observe_int(c->s, "SELECT count(*) FROM mirror WHERE sum IS NOT " STET_MIRROR_SUM, 0))
        report_table(c, "a row of readers in another space is damaged");
    if (!stet_observe_digests_fit(c->s, true)) {
        report_table(c, "a mark, or a note of what is read in another space, is missing or damaged");
        c->all = true;
    }
    if (stet_observe_int(c->s, "SELECT count(*) FROM " BAD_PAST, 0)) {
        report_table(c, "an observation that a later one has replaced is damaged");
        if (repair)
            stet_run(stet_db_stmt(c->s->db, "DELETE FROM " BAD_PAST));
    }
    if (stet_observe_int(c->s, "SELECT count(*) FROM mirror WHERE owner NOT IN (SELECT owner FROM mirror_owner)", 0)) {
        report_table(c, "there are mirrors of actions of a space that is not known");
        if (repair)
            stet_run(stet_db_stmt(c->s->db, "DELETE FROM mirror WHERE owner NOT IN (SELECT owner FROM mirror_owner)"));
    }
}

static stet_status check_actions(checker *c, stet_error *err) {
    STET_VEC(action_row) rows = {0};
    stet_status st = STET_OK;
    int64_t after = INT64_MIN; /* read from a file, so the first number may be anything */
    do {                       /* in pages, so that no statement stays open while others run */
        enum { PAGE = 2000 };
        stet_vec_clear(&rows);
        stet_stmt *q =
            stet_db_stmt(c->s->db, "SELECT a.action, a.branch, a.piece, a.generation, a.name, a.observation, a.sum,"
                                   " coalesce(m.state, 0) FROM action a"
                                   " LEFT JOIN mark m ON m.action = a.action AND m.space = 0"
                                   " JOIN branch b ON b.branch = a.branch AND b.deleted_ms IS NULL"
                                   " WHERE a.action > ? ORDER BY a.action LIMIT ?");
        stet_bind_int(q, 1, after);
        stet_bind_int(q, 2, PAGE);
        while (stet_step(q)) {
            action_row *r = stet_vec_add(&rows);
            size_t len;
            r->sound = stet_column_sound(q, 0, STET_ACTION_BLOB + 1);
            r->action = stet_column_int(q, 0);
            /* Only in a damaged file: otherwise the next page would begin with these rows again, for ever. */
            if (r->action <= after)
                stet_db_fail(c->s->db, STET_CORRUPT, "%s: the numbers of actions are out of order", c->s->path);
            after = r->action;
            r->branch = stet_column_int(q, STET_ACTION_BRANCH);
            const char *text = stet_column_text(q, STET_ACTION_NAME, &len);
            r->name = stet_strndup(text, len);
            r->blob = (stet_buf)STET_BUF(0);
            const void *blob = stet_column_blob(q, STET_ACTION_BLOB, &len);
            stet_buf_add(&r->blob, blob, len);
            r->mark = (int)stet_column_int(q, 7);
            r->piece = stet_column_int(q, STET_ACTION_PIECE);
        }
        st = stet_db_status(c->s->db, err);
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

/* Opens the other spaces and reads how far each has notified this one. This happens before the state of this space is
 * read, so that everything they have reported by then is included. */
static stet_status open_others(checker *c, stet_error *err) {
    STET_VEC(char *) texts = {0};
    stet_stmt *q = stet_db_stmt(c->s->db, "SELECT space, seen, stamp, name, uuid FROM foreign_space WHERE sum IS"
                                          " " STET_FOREIGN_SUM);
    while (stet_step(q)) {
        size_t len;
        *stet_vec_add(&c->foreign) = (foreign_space){
            .number = stet_column_int(q, 0), .seen = stet_column_int(q, 1), .stamp = stet_column_int(q, 2)};
        for (int i = 3; i < 5; i++) {
            const char *text = stet_column_text(q, i, &len);
            *stet_vec_add(&texts) = stet_strndup(text, len);
        }
    }
    stet_status st = stet_db_status(c->s->db, err);
    for (size_t i = 0; i < c->foreign.len; i++) {
        foreign_space *f = &c->foreign.at[i];
        stet_space *in;
        int64_t stamp = -1, pending = 0, pushed = 0;
        if (st == STET_OK && stet_observe_sibling(c->s, texts.at[2 * i], texts.at[2 * i + 1], &in, NULL) == STET_OK &&
            (st = stet_space_refresh(in, err)) == STET_OK) {
            q = stet_db_stmt(in->db, "SELECT stamp, pending, pushed FROM mirror_owner WHERE uuid = ? AND sum IS"
                                     " " STET_OWNER_SUM);
            stet_bind_text(q, 1, c->s->uuid, strlen(c->s->uuid));
            while (stet_step(q)) {
                stamp = stet_column_int(q, 0);
                pending = stet_column_int(q, 1);
                pushed = stet_column_int(q, 2);
            }
            f->through = stet_observe_progress(in, "marked_through", 0);
            if (pending > pushed && pushed < f->through)
                f->through = pushed;
            st = stet_db_status(in->db, err);
            f->in = stet_observe_older(f->stamp, stamp, in->known, f->seen, pushed) ? NULL : in;
        }
        free(texts.at[2 * i]);
        free(texts.at[2 * i + 1]);
    }
    stet_vec_release(&texts);
    return st;
}

/* Only if nothing else was found, which would say more. */
static void check_digests(checker *c) {
    if (c->found == 0 && !(stet_observe_all_places_fit(c->s) && stet_observe_places_there(c->s)))
        report_table(c, "a row of readers and writers is missing, or one that tells of it");
    if (c->found == 0 && !stet_observe_actions_fit(c->s, true))
        report_table(c, "an action is missing");
}

static stet_status check_once(stet_space *s, bool repair, stet_buf *problems, size_t *found, size_t *repaired,
                              stet_error *err) {
    checker c = {.s = s, .problems = problems, .arena = STET_ARENA_INIT};
    bool begun = false;
    stet_status st = stet_observe_sync(s, err);
    if (st == STET_OK)
        st = open_others(&c, err);
    if (st == STET_OK && repair)
        st = stet_observe_begin(s, &begun, err);
    else if (st == STET_OK)
        st = stet_space_enter(s, &begun, err);
    *found = *repaired = 0;
    if (st != STET_OK) {
        stet_vec_release(&c.foreign);
        return st;
    }
    if (repair) { /* cached marks may have been changed by another process since */
        stet_observe_empty(s);
        stet_observe_fresh(s);
    }
    stet_space_catch_up(s);
    c.through = stet_observe_progress(s, "marked_through", 0);
    stet_stmt *q = stet_db_stmt(s->db, "SELECT branch FROM branch WHERE deleted_ms IS NOT NULL");
    while (stet_step(q)) {
        int64_t branch = stet_column_int(q, 0);
        stet_map_put(&c.deleted, &branch, sizeof branch, (stet_slot){.n = 1});
    }
    check_progress(&c, repair); /* first, so that actions which need what it removes are found */
    st = check_actions(&c, err);
    if (st == STET_OK) {
        check_rows(&c);
        check_missing(&c);
        check_marks(&c);
        check_digests(&c);
    }
    if (repair && st == STET_OK && c.found) {
        drop_malformed(s);
        stet_observe_digests_renew(s);
        stet_observe_places_renew(s);
        /* A row of an action may be among what was removed. */
        stet_run(stet_db_stmt(s->db, "DELETE FROM complete_branch"));
        fix_rows(&c);
        distrust_wrong(&c);
        c.repaired = c.found;
    }
    if (repair) {
        if (st == STET_OK) {
            st = stet_observe_end(s, begun, err);
        } else {
            if (begun)
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
    stet_map_release(&c.deleted);
    stet_map_release(&c.named);
    stet_numbers_release(&c.wrong);
    stet_numbers_release(&c.stray);
    stet_vec_release(&c.fixes);
    stet_vec_release(&c.foreign);
    stet_arena_release(&c.arena);
    return st;
}

stet_status stet_observe_check(stet_space *s, bool repair, stet_buf *problems, size_t *found, size_t *repaired,
                               stet_error *err) {
    enum { ATTEMPTS = 3 };
    size_t start = problems->len;
    for (int attempt = 1;; attempt++) {
        int64_t version = stet_db_data_version(s->db);
        stet_status st = check_once(s, repair, problems, found, repaired, err);
        /* Two files are not read at the same moment: a difference found while others were writing is checked again. */
        if (st != STET_OK || repair || *found == 0 || attempt == ATTEMPTS || stet_db_in_transaction(s->db) ||
            stet_db_data_version(s->db) == version)
            return st;
        problems->len = start;
    }
}
