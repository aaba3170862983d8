/* observe_check.c - deriving marks and index rows again, and removing what nobody needs.
 *
 * A mark is right if it follows from sequences and revisions alone: some change after the sequence that a read saw (or,
 * for what the action wrote, after its observation) overlaps it. A change above marked_through need not have a mark: it
 * has not been looked at, and everybody knows; but it may have one. The same for reads in other spaces, where the bound
 * is what has been pushed. */
#include <stdlib.h>

#include "memory/observe_internal.h"

/* A space that actions of this one read. */
typedef struct foreign_space {
    int64_t number;
    stet_space *in; /* NULL: it is not there, or one of the two is an older copy: catching up will tell */
    int64_t through, stamp;
} foreign_space;

typedef struct checker {
    stet_space *s;
    STET_VEC(foreign_space) foreign;
    stet_buf *problems;
    size_t found, repaired;
    int64_t through;
    stet_map expected;  /* table, key, action, path -> flags */
    stet_map deleted;   /* branches */
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

typedef struct action_row {
    int64_t action, branch;
    char *name;
    stet_buf blob;
    int mark; /* state of its own-space mark, 0: none */
} action_row;

static foreign_space *foreign_of(checker *c, int64_t number) {
    for (size_t i = 0; i < c->foreign.len; i++)
        if (c->foreign.at[i].number == number)
            return c->foreign.at[i].in ? &c->foreign.at[i] : NULL;
    return NULL;
}

static bool marked_from(checker *c, int64_t action, int64_t space) {
    bool found = false;
    stet_stmt *q = stet_db_stmt(c->s->db, "SELECT 1 FROM mark WHERE action = ? AND space = ?");
    stet_bind_int(q, 1, action);
    stet_bind_int(q, 2, space);
    while (stet_step(q))
        found = true;
    return found;
}

/* Reads in one other space, `at[0..len)`: each has its mirror, and a mark if and only if something changed. */
static stet_status check_foreign(checker *c, const action_row *row, const stet_foreign_place *at, size_t len,
                                 stet_error *err) {
    foreign_space *f = foreign_of(c, at[0].space);
    stet_status st = STET_OK;
    if (!f || row->mark == STET_UNKNOWN)
        return STET_OK;
    bool mirrored = true, must = false, may = false, marked = marked_from(c, row->action, at[0].space);
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
    }
    if (st != STET_OK)
        return st;
    if (!mirrored)
        report(c, row->action, row->name, "a read in another space has no mirror there");
    if (must && !marked)
        report(c, row->action, row->name, "a change in another space overlaps what it read, and it is not marked");
    if (!may && marked)
        report(c, row->action, row->name, "it is marked by another space, and no change there overlaps what it read");
    return STET_OK;
}

static stet_status check_foreign_reads(checker *c, const action_row *row, const stet_obs *obs, stet_error *err) {
    stet_foreign_places all = {0};
    stet_status st = STET_OK;
    if (!stet_foreign_unpack(obs->foreign, &all)) {
        if (row->mark != STET_UNKNOWN)
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
        bool must = false, may = false;
        for (size_t i = 0; i < reads.len; i++) {
            stet_read_kind kind = reads.at[i].flag ? STET_SHALLOW : STET_RECURSIVE;
            expect(c, false, stet_space_key(row->branch, reads.at[i].doc), row->action, reads.at[i].path,
                   reads.at[i].flag);
            must = must || changed_since(c, c->s, row->branch, reads.at[i].doc, reads.at[i].path, kind, reads.at[i].seq,
                                         c->through, &st, err);
            may = must || may ||
                  changed_since(c, c->s, row->branch, reads.at[i].doc, reads.at[i].path, kind, reads.at[i].seq,
                                c->s->known, &st, err);
        }
        for (size_t i = 0; i < known.len; i++) {
            expect(c, true, stet_space_key(row->branch, known.at[i].doc), row->action, known.at[i].path,
                   STET_WRITE_KNOWN);
            must = must || changed_since(c, c->s, row->branch, known.at[i].doc, known.at[i].path, STET_RECURSIVE,
                                         obs.observed_at, c->through, &st, err);
            may = must || may ||
                  changed_since(c, c->s, row->branch, known.at[i].doc, known.at[i].path, STET_RECURSIVE,
                                obs.observed_at, c->s->known, &st, err);
        }
        for (size_t i = 0; i < declared.len; i++)
            expect(c, true, stet_space_key(row->branch, declared.at[i].doc), row->action, declared.at[i].path,
                   STET_WRITE_DECLARED);
        for (size_t i = 0; i < envelopes.len; i++)
            expect(c, true, stet_space_key(row->branch, envelopes.at[i].doc), row->action, envelopes.at[i].path,
                   STET_WRITE_ENVELOPE);
        if (st == STET_OK && must && !row->mark)
            report(c, row->action, row->name, "a change overlaps what it read or wrote, and it is not marked");
        if (st == STET_OK && !may && row->mark == STET_DIRTY)
            report(c, row->action, row->name, "it is marked dirty, and no change overlaps what it read or wrote");
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

/* What a row says of one action, against what the observations say. */
static void check_bit(checker *c, const stet_block_row *r, bool write, int64_t action, unsigned flags, stet_buf *b) {
    stet_buf_clear(b);
    stet_buf_char(b, write ? 'w' : 'r');
    stet_buf_add(b, &r->key, sizeof r->key);
    stet_buf_add(b, &action, sizeof action);
    stet_buf_add(b, r->path.bytes, r->path.len);
    stet_slot *slot = stet_map_get(&c->expected, b->data, b->len);
    if (!write && flags == 0 && (r->bits[STET_BIT_SHALLOW] & stet_block_bit(action)))
        flags = ~0u; /* recursive and shallow: not written by stet */
    if (slot && slot->n == flags) {
        stet_map_remove(&c->expected, b->data, b->len);
        return;
    }
    report(c, action, write ? "write index" : "read index",
           slot ? "an index row has other flags than its observation" : "an index row without an observation");
    if (!slot) /* one with other flags is met again as missing, and replaced */
        *stet_vec_add(&c->fixes) =
            (stet_row_op){.key = r->key,
                          .action = action,
                          .path = {stet_arena_strndup(&c->arena, r->path.bytes, r->path.len), r->path.len},
                          .write = write};
}

static void check_rows(checker *c) {
    stet_stmt *q = stet_db_stmt(c->s->db, "SELECT " STET_BLOCK_COLUMNS ", key FROM place_index");
    stet_buf b = STET_BUF(0);
    while (stet_step(q)) {
        stet_block_row r = stet_observe_block_row(q);
        r.key = stet_column_int(q, 2 + STET_BIT_KINDS);
        int64_t branch = r.key >> 40, action;
        unsigned flags;
        if (stet_map_get(&c->deleted, &branch, sizeof branch))
            continue; /* gc's, not an error */
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

/* The other spaces, and how far each has told this one: looked at before this one's own state is, so that what they
 * have told by then is in it. */
static stet_status meet_others(checker *c, stet_error *err) {
    STET_VEC(stet_marked) rows = {0};
    STET_VEC(char *) texts = {0};
    stet_stmt *q = stet_db_stmt(c->s->db, "SELECT space, seen, stamp, name, uuid FROM foreign_space");
    while (stet_step(q)) {
        size_t len;
        *stet_vec_add(&c->foreign) = (foreign_space){.number = stet_column_int(q, 0), .stamp = stet_column_int(q, 2)};
        *stet_vec_add(&rows) = (stet_marked){.seq = stet_column_int(q, 1)};
        for (int i = 3; i < 5; i++) {
            const char *text = stet_column_text(q, i, &len);
            *stet_vec_add(&texts) = stet_strndup(text, len);
        }
    }
    stet_status st = stet_db_status(c->s->db, err);
    for (size_t i = 0; i < rows.len; i++) {
        foreign_space *f = &c->foreign.at[i];
        stet_space *in;
        int64_t stamp = -1, pending = 0, pushed = 0;
        if (st == STET_OK && stet_observe_sibling(c->s, texts.at[2 * i], texts.at[2 * i + 1], &in, NULL) == STET_OK &&
            (st = stet_space_refresh(in, err)) == STET_OK) {
            q = stet_db_stmt(in->db, "SELECT stamp, pending, pushed FROM mirror_owner WHERE uuid = ?");
            stet_bind_text(q, 1, c->s->uuid, strlen(c->s->uuid));
            while (stet_step(q)) {
                stamp = stet_column_int(q, 0);
                pending = stet_column_int(q, 1);
                pushed = stet_column_int(q, 2);
            }
            f->through = stet_observe_meta(in, "marked_through", 0);
            if (pending > pushed && pushed < f->through)
                f->through = pushed;
            st = stet_db_status(in->db, err);
            f->in = stamp == f->stamp && in->known >= rows.at[i].seq ? in : NULL;
        }
        free(texts.at[2 * i]);
        free(texts.at[2 * i + 1]);
    }
    stet_vec_release(&rows);
    stet_vec_release(&texts);
    return st;
}

static stet_status check_once(stet_space *s, bool repair, stet_buf *problems, size_t *found, size_t *repaired,
                              stet_error *err) {
    checker c = {.s = s, .problems = problems, .arena = STET_ARENA_INIT};
    bool begun = false;
    stet_status st = stet_observe_sync(s, err);
    if (st == STET_OK)
        st = meet_others(&c, err);
    if (st == STET_OK && repair)
        st = stet_observe_begin(s, &begun, err);
    else if (st == STET_OK)
        st = stet_space_enter(s, &begun, err);
    *found = *repaired = 0;
    if (st != STET_OK) {
        stet_vec_release(&c.foreign);
        return st;
    }
    stet_space_catch_up(s);
    c.through = stet_observe_meta(s, "marked_through", 0);
    stet_stmt *q = stet_db_stmt(s->db, "SELECT branch FROM branch WHERE deleted_ms IS NOT NULL");
    while (stet_step(q)) {
        int64_t branch = stet_column_int(q, 0);
        stet_map_put(&c.deleted, &branch, sizeof branch, (stet_slot){.n = 1});
    }
    st = check_actions(&c, err);
    if (st == STET_OK) {
        check_rows(&c);
        check_missing(&c);
    }
    if (repair && st == STET_OK && c.found) {
        fix_rows(&c);
        distrust_wrong(&c);
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
    stet_numbers_release(&c.wrong);
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
        /* Two files are not seen at one moment: a difference found while others were writing is looked at again. */
        if (st != STET_OK || repair || *found == 0 || attempt == ATTEMPTS || stet_db_in_transaction(s->db) ||
            stet_db_data_version(s->db) == version)
            return st;
        problems->len = start;
    }
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

/* Actions whose nodes are gone: a crash between replacing the graph of a piece and forgetting what it no longer has
 * leaves them. Asked before the transaction, because the answer reads documents; whoever was observed again meanwhile
 * is left alone. */
typedef struct node {
    int64_t action, branch, piece, generation;
    char *name;
} node;

static stet_status gone_nodes(stet_space *s, const stet_observe_gc_opts *opts, stet_numbers *out, stet_error *err) {
    STET_VEC(node) nodes = {0};
    stet_stmt *q = stet_db_stmt(s->db, "SELECT action, branch, piece, generation, name FROM action ORDER BY action");
    while (stet_step(q)) {
        size_t len;
        const char *name = stet_column_text(q, 4, &len);
        *stet_vec_add(&nodes) = (node){stet_column_int(q, 0), stet_column_int(q, 1), stet_column_int(q, 2),
                                       stet_column_int(q, 3), stet_strndup(name, len)};
    }
    stet_status st = stet_db_status(s->db, err);
    for (size_t i = 0; i < nodes.len; i++) {
        const node *n = &nodes.at[i];
        stet_arena arena = STET_ARENA_INIT;
        stet_docname piece = {0};
        if (st == STET_OK)
            st = stet_space_docname(s, n->piece, &arena, &piece, err);
        stet_action_key key = {piece.id, piece.scope, n->name};
        if (st == STET_OK && opts->gone(opts->ctx, s, n->branch, &key, n->generation)) {
            stet_numbers_add(out, n->action);
            stet_numbers_add(out, n->generation);
        }
        stet_arena_release(&arena);
        stet_free(n->name);
    }
    stet_vec_release(&nodes);
    return st;
}

static bool still_of(stet_space *s, int64_t action, int64_t generation) {
    stet_stmt *q = stet_db_stmt(s->db, "SELECT 1 FROM action WHERE action = ? AND generation = ?");
    stet_bind_int(q, 1, action);
    stet_bind_int(q, 2, generation);
    bool same = false;
    while (stet_step(q))
        same = true;
    return same;
}

/* Replaced observations: beyond what is kept, of another generation than the latest, of actions that are not there. */
static int64_t old_past(stet_space *s, bool dry_run) {
    int keep = stet_observe_of(s)->keep;
    static const char *const sql[] = {
        "SELECT count(*) FROM past_observation WHERE number <= (SELECT max(p.number) FROM past_observation p WHERE"
        " p.action = past_observation.action) - ?1 OR generation IS NOT (SELECT a.generation FROM action a WHERE"
        " a.action = past_observation.action)",
        "DELETE FROM past_observation WHERE number <= (SELECT max(p.number) FROM past_observation p WHERE"
        " p.action = past_observation.action) - ?1 OR generation IS NOT (SELECT a.generation FROM action a WHERE"
        " a.action = past_observation.action)"};
    stet_stmt *q = stet_db_stmt(s->db, sql[!dry_run]);
    stet_bind_int(q, 1, keep > 1 ? keep - 1 : 0);
    int64_t rows = 0;
    if (!dry_run) {
        stet_run(q);
        return stet_db_changes(s->db);
    }
    while (stet_step(q))
        rows = stet_column_int(q, 0);
    return rows;
}

/* Fingerprints that no observation names. */
static int64_t old_fingerprints(stet_space *s, bool dry_run) {
    stet_map used = {0};
    stet_stmt *q = stet_db_stmt(s->db, "SELECT observation FROM action WHERE observation IS NOT NULL"
                                       " UNION ALL SELECT observation FROM past_observation");
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

stet_status stet_observe_gc(stet_space *s, const stet_observe_gc_opts *opts, int64_t *rows, stet_error *err) {
    bool begun = false, dry_run = opts->dry_run;
    stet_numbers gone = {0}; /* pairs: action, generation */
    stet_status st = stet_observe_sync(s, err);
    if (st == STET_OK && opts->gone)
        st = gone_nodes(s, opts, &gone, err);
    if (st == STET_OK && !dry_run)
        st = stet_observe_begin(s, &begun, err);
    else if (st == STET_OK)
        st = stet_space_enter(s, &begun, err);
    if (st != STET_OK) {
        stet_numbers_release(&gone);
        return st;
    }
    stet_numbers actions = {0};
    st = superfluous(s, &actions, err);
    for (size_t i = 0; i + 1 < gone.len; i += 2)
        if (still_of(s, gone.at[i], gone.at[i + 1]))
            stet_numbers_add(&actions, gone.at[i]);
    stet_numbers_release(&gone);
    stet_numbers_settle(&actions);
    *rows = (int64_t)actions.len;
    for (size_t i = 0; i < actions.len && st == STET_OK && !dry_run; i++)
        stet_observe_remove(s, actions.at[i], true);
    stet_numbers_release(&actions);
    if (st == STET_OK)
        *rows += old_past(s, dry_run);
    if (st == STET_OK) /* in this order: those say which fingerprints are named */
        *rows += old_fingerprints(s, dry_run) + lost_owners(s, dry_run);
    if (dry_run) {
        st = stet_space_leave(s, begun, st, err);
    } else if (st != STET_OK) {
        if (begun)
            stet_db_rollback(s->db);
        stet_observe_done(s, false);
    } else {
        st = stet_observe_end(s, begun, err);
        stet_observe_empty(s);
    }
    if (st == STET_OK && !stet_db_in_transaction(s->db)) {
        *rows += stet_observe_orphans(s, dry_run);
        st = stet_db_status(s->db, err);
    }
    return st;
}
