/* observe_push.c - carries marks between spaces. Rules M2 to M4 of observe_mirror.c.
 *
 * It records what a change in a space owes to the owners of its readers, notifies those owners, and fetches for an
 * owner what nobody told it.
 */

#include <stdlib.h>

#include "memory/observe_internal.h"

enum { OWNER_SUMMED = 6, FOREIGN_SUMMED = 5 }; /* columns before the sum */
#define OWNER_DAMAGED   "what another space is to be told"
#define FOREIGN_DAMAGED "what is known of another space"

/* M2. `pushed` never passes a change that was not reported: what this transaction reports moves it only if everything
 * up to the `pending` it found had been reported. A commit that is processed late (above marked_through, but below
 * `pushed`) moves `pushed` back to before it. */
static void note_pending(stet_space *s, int64_t owner, int64_t seq) {
    struct stet_observe *o = stet_observe_of(s);
    stet_owed_base *base = NULL;
    for (size_t i = 0; i < o->bases.len && !base; i++)
        if (o->bases.at[i].owner == owner)
            base = &o->bases.at[i];
    int64_t pending = 0;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT " STET_OWNER_COLUMNS ", sum FROM mirror_owner WHERE owner = ?");
    stet_bind_int(q, 1, owner);
    while (stet_step(q)) {
        if (!stet_column_sound(q, 0, OWNER_SUMMED))
            stet_observe_damage(s, OWNER_DAMAGED);
        pending = stet_column_int(q, 4);
    }
    if (!base) {
        base = stet_vec_add(&o->bases);
        *base = (stet_owed_base){owner, pending};
    }
    if (seq <= pending)
        base->base = INT64_MAX;
    q = stet_db_stmt(s->db,
                     "UPDATE mirror_owner SET pending = max(pending, ?1), pushed = min(pushed, ?1 - 1), sum ="
                     " row_sum(owner, uuid, name, stamp, max(pending, ?1), min(pushed, ?1 - 1)) WHERE owner = ?2");
    stet_bind_int(q, 1, seq);
    stet_bind_int(q, 2, owner);
    stet_run(q);
}

void stet_observe_owe(stet_space *s, int64_t branch, int64_t seq, const stet_doc_change *at, size_t len) {
    if (branch != 0)
        return;
    struct stet_observe *o = stet_observe_of(s);
    size_t from = o->pushes.len;
    for (size_t i = 0; i < len; i++)
        for (size_t k = 0; k < at[i].len; k++)
            stet_observe_mirrors_of(s, at[i].doc, &at[i].at[k], seq, 0, &o->push_arena);
    int64_t last = 0;
    for (size_t i = from; i < o->pushes.len; i++) {
        if (o->pushes.at[i].owner == last)
            continue;
        last = o->pushes.at[i].owner;
        note_pending(s, last, seq);
    }
}

void stet_observe_owe_nothing(struct stet_observe *o) {
    stet_vec_clear(&o->pushes);
    stet_vec_clear(&o->leave);
    stet_vec_clear(&o->bases);
    stet_arena_clear(&o->push_arena);
}

/* Applies M3. The caller has begun a write transaction of the owner. */
static void apply_mark(stet_space *owner, const stet_space *from, const stet_owed *p, const stet_docname *name) {
    int64_t space = 0, branch = 0;
    stet_stmt *q = stet_db_stmt(owner->db, "SELECT space FROM foreign_space WHERE uuid = ?");
    stet_bind_text(q, 1, from->uuid, strlen(from->uuid));
    while (stet_step(q))
        space = stet_column_int(q, 0);
    if (!space)
        return;
    bool counts = false;
    stet_foreign_places reads = {0};
    q = stet_db_stmt(owner->db, "SELECT " STET_ACTION_COLUMNS " FROM action WHERE action = ?");
    stet_bind_int(q, 1, p->action);
    while (stet_step(q)) {
        size_t len;
        const void *blob = stet_observe_blob(q, 0, &len);
        stet_obs obs;
        branch = stet_column_int(q, STET_ACTION_BRANCH);
        if (!len || !stet_obs_decode(blob, len, &obs) || !stet_foreign_unpack(obs.foreign, &reads))
            continue;
        for (size_t i = 0; i < reads.len && !counts; i++) {
            const stet_foreign_place *r = &reads.at[i];
            counts = r->space == space && r->seq < p->seq && r->id.len == strlen(name->id) &&
                     memcmp(r->id.at, name->id, r->id.len) == 0 && r->scope.len == strlen(name->scope) &&
                     memcmp(r->scope.at, name->scope, r->scope.len) == 0 &&
                     stet_touches(p->path, p->kind, r->path, r->flag ? STET_SHALLOW : STET_RECURSIVE);
        }
    }
    stet_vec_release(&reads);
    if (!counts)
        return;
    int64_t stamp = stet_observe_stamp(owner);
    stet_old_mark old;
    if (stet_observe_old_mark(owner, p->action, space, &old)) {
        if (p->seq <= old.seq || old.state > STET_STATE_DIRTY)
            return;
        stet_observe_digest(owner, STET_DIGEST_MARK, -1, old.sum);
        stamp = old.stamp;
    }
    q = stet_db_stmt(owner->db, "INSERT OR REPLACE INTO mark(" STET_MARK_COLUMNS ")"
                                " VALUES(?, ?, ?, ?, ?, ?, NULL, ?, ?, ?, ?, ?)");
    stet_bind_int(q, 1, p->action);
    stet_bind_int(q, 2, space);
    stet_bind_int(q, 3, branch);
    stet_bind_int(q, 4, STET_STATE_DIRTY);
    stet_bind_int(q, 5, STET_REASON_CHANGED);
    stet_bind_int(q, 6, p->seq);
    stet_bind_text(q, 7, name->id, strlen(name->id));
    stet_bind_text(q, 8, name->scope, strlen(name->scope));
    stet_bind_blob(q, 9, p->path.bytes, p->path.len);
    stet_bind_int(q, 10, p->kind);
    stet_bind_int(q, 11, stamp);
    stet_run(q);
    stet_observe_of(owner)->marked++;
    if (stet_observe_old_mark(owner, p->action, space, &old))
        stet_observe_digest(owner, STET_DIGEST_MARK, 1, old.sum);
}

/* Notes that the owner knows of everything there up to this sequence. The caller has begun a write transaction of the
 * owner. */
static void note_seen(stet_space *owner, const stet_space *from, int64_t through) {
    stet_stmt *q = stet_db_stmt(owner->db, "UPDATE foreign_space SET seen = max(seen, ?1), sum ="
                                           " row_sum(space, uuid, name, max(seen, ?1), stamp) WHERE uuid = ?2 AND"
                                           " seen < ?1 AND sum = " STET_FOREIGN_SUM);
    stet_bind_int(q, 1, through);
    stet_bind_text(q, 2, from->uuid, strlen(from->uuid));
    stet_run(q);
}

/* Makes all pushes to one owner, then advances `pushed` here if nothing older is still unreported. Both transactions
 * end before this returns. A failure to note it is harmless: the owner asks again (M3). */
static stet_status push_to(stet_space *s, stet_space *owner, int64_t number, int64_t base, int64_t through,
                           stet_error *err) {
    struct stet_observe *o = stet_observe_of(s);
    stet_arena arena = STET_ARENA_INIT;
    stet_status st = stet_db_begin_write(owner->db, err);
    if (st != STET_OK)
        return st;
    for (size_t i = 0; i < o->pushes.len && st == STET_OK; i++) {
        stet_docname name;
        if (o->pushes.at[i].owner != number)
            continue;
        st = stet_space_docname(s, o->pushes.at[i].doc, &arena, &name, err);
        if (st == STET_OK)
            apply_mark(owner, s, &o->pushes.at[i], &name);
    }
    note_seen(owner, s, through);
    stet_arena_release(&arena);
    stet_observe_empty(owner); /* the cached marks of its handle are invalid now, whatever the result */
    if (st == STET_OK)
        st = stet_db_commit(owner->db, err);
    else
        stet_db_rollback(owner->db);
    if (st != STET_OK || stet_db_begin_write(s->db, NULL) != STET_OK)
        return st;
    stet_stmt *q = stet_db_stmt(s->db, "UPDATE mirror_owner SET pushed = max(pushed, ?1), sum ="
                                       " row_sum(owner, uuid, name, stamp, pending, max(pushed, ?1))"
                                       " WHERE owner = ?2 AND pushed >= ?3 AND sum = " STET_OWNER_SUM);
    stet_bind_int(q, 1, through);
    stet_bind_int(q, 2, number);
    stet_bind_int(q, 3, base);
    stet_run(q);
    if (stet_db_commit(s->db, NULL) != STET_OK)
        stet_observe_empty(s);
    return STET_OK;
}

/* Removes the mirrors of one action from a space that it no longer reads. Under both locks, because another process may
 * meanwhile have stored an observation that reads the space again. */
static void leave_space(stet_space *s, stet_space *in, int64_t space, int64_t action) {
    bool first = strcmp(s->uuid, in->uuid) < 0;
    stet_db *one = first ? s->db : in->db, *two = first ? in->db : s->db;
    if (stet_db_begin_write(one, NULL) != STET_OK)
        return;
    if (stet_db_begin_write(two, NULL) != STET_OK) {
        stet_db_rollback(one);
        return;
    }
    bool again = false;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT 1 FROM foreign_read WHERE space = ? AND action = ?");
    stet_bind_int(q, 1, space);
    stet_bind_int(q, 2, action);
    while (stet_step(q))
        again = true;
    if (stet_db_status(s->db, NULL) != STET_OK || again)
        stet_db_rollback(s->db);
    else if (stet_observe_confirm(s) == STET_OK) /* M5 */
        stet_observe_drop_mirrors(in, stet_observe_owner_number(in, s, false), action);
    if (stet_db_commit(in->db, NULL) != STET_OK)
        stet_observe_empty(in);
}

void stet_observe_leave_all(stet_space *s, int64_t action) {
    stet_stmt *q = stet_db_stmt(s->db, "SELECT space FROM foreign_read WHERE action = ?");
    stet_bind_int(q, 1, action);
    while (stet_step(q))
        *stet_vec_add(&stet_observe_of(s)->leave) = (stet_marked){.action = action, .seq = stet_column_int(q, 0)};
    stet_observe_drop_foreign(s, 0, action);
}

/* A commit does not wait long for writers of another space: the owner fetches what is not pushed now. In particular it
 * must not wait for a lock that its own caller holds. */
#define PUSH_PATIENCE_MS 250

static void leave_spaces(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    for (size_t i = 0; i < o->leave.len; i++) {
        stet_arena arena = STET_ARENA_INIT;
        const char *name = NULL, *uuid = NULL;
        stet_stmt *q = stet_db_stmt(s->db, "SELECT name, uuid FROM foreign_space WHERE space = ?");
        stet_bind_int(q, 1, o->leave.at[i].seq);
        while (stet_step(q)) {
            name = stet_observe_text(q, 0, &arena);
            uuid = stet_observe_text(q, 1, &arena);
        }
        stet_space *in;
        /* Surplus rows are harmless, so a failure here is too; gc removes them. */
        if (name && stet_observe_sibling(s, name, uuid, &in, NULL) == STET_OK) {
            int patience = stet_db_patience(in->db, PUSH_PATIENCE_MS);
            leave_space(s, in, o->leave.at[i].seq, o->leave.at[i].action);
            stet_db_patience(in->db, patience);
        }
        stet_arena_release(&arena);
    }
    stet_vec_clear(&o->leave);
}

static void push_one(stet_space *s, int64_t number) {
    struct stet_observe *o = stet_observe_of(s);
    stet_arena arena = STET_ARENA_INIT;
    int64_t through = 0, base = INT64_MAX;
    const char *name = NULL, *uuid = NULL;
    for (size_t i = 0; i < o->pushes.len; i++)
        if (o->pushes.at[i].owner == number && o->pushes.at[i].seq > through)
            through = o->pushes.at[i].seq;
    for (size_t i = 0; i < o->bases.len; i++)
        if (o->bases.at[i].owner == number)
            base = o->bases.at[i].base;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT name, uuid FROM mirror_owner WHERE owner = ?");
    stet_bind_int(q, 1, number);
    while (stet_step(q)) {
        name = stet_observe_text(q, 0, &arena);
        uuid = stet_observe_text(q, 1, &arena);
    }
    stet_space *owner;
    stet_error err = STET_ERROR_INIT;
    if (name && stet_observe_sibling(s, name, uuid, &owner, &err) == STET_OK) {
        int patience = stet_db_patience(owner->db, PUSH_PATIENCE_MS);
        if (push_to(s, owner, number, base, through, &err) != STET_OK)
            stet_error_clear(&err); /* M2: it stays pending, and the owner fetches it */
        stet_db_patience(owner->db, patience);
    }
    stet_error_clear(&err);
    stet_arena_release(&arena);
}

void stet_observe_push(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    leave_spaces(s);
    while (o->pushes.len) {
        int64_t number = o->pushes.at[0].owner;
        push_one(s, number);
        size_t to = 0;
        for (size_t i = 0; i < o->pushes.len; i++)
            if (o->pushes.at[i].owner != number)
                o->pushes.at[to++] = o->pushes.at[i];
        o->pushes.len = to;
    }
    stet_observe_owe_nothing(o);
    stet_error stuck = STET_ERROR_INIT;
    /* The data is committed, so that a failure to process marks is not its failure. */
    if (stet_db_status(s->db, &stuck) != STET_OK)
        stet_error_clear(&stuck);
}

/* M2: processes commits that touched mirrors of this owner and were not pushed to it. */
static stet_status fetch(stet_space *s, stet_space *in, int64_t number, int64_t pushed, int64_t pending,
                         stet_error *err) {
    struct stet_observe *o = stet_observe_of(in);
    stet_arena arena = STET_ARENA_INIT;
    stet_observe_owe_nothing(o);
    stet_status st = STET_OK;
    for (int64_t after = pushed; st == STET_OK && after < pending;) {
        stet_commit_record *list;
        size_t count;
        st = stet_space_commits(in, after, pending, 10000, &arena, &list, &count, err);
        if (st != STET_OK || count == 0)
            break;
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < list[i].len && list[i].branch == 0; k++)
                for (size_t n = 0; n < list[i].at[k].len; n++)
                    stet_observe_mirrors_of(in, list[i].at[k].doc, &list[i].at[k].at[n], list[i].seq, number, &arena);
        after = list[count - 1].seq;
    }
    if (st == STET_OK)
        st = push_to(in, s, number, pushed, pending, err);
    stet_observe_owe_nothing(o);
    stet_arena_release(&arena);
    return st;
}

typedef struct owner_row {
    int64_t number, stamp, pending, pushed; /* number 0: this space is unknown there */
} owner_row;

static stet_status owner_row_of(stet_space *in, const stet_space *s, owner_row *out, stet_error *err) {
    *out = (owner_row){0};
    stet_stmt *q = stet_db_stmt(in->db, "SELECT " STET_OWNER_COLUMNS ", sum FROM mirror_owner WHERE uuid = ?");
    stet_bind_text(q, 1, s->uuid, strlen(s->uuid));
    while (stet_step(q)) {
        if (!stet_column_sound(q, 0, OWNER_SUMMED))
            stet_observe_damage(in, OWNER_DAMAGED);
        *out = (owner_row){stet_column_int(q, 0), stet_column_int(q, 3), stet_column_int(q, 4), stet_column_int(q, 5)};
    }
    if (out->pending > in->known) /* damaged: nothing above `known` can be owed */
        out->pending = in->known;
    return stet_db_status(in->db, err);
}

/* M4. Was an older copy of either space restored? `seen` is read again, because another process may have pushed since
 * the row was read: it is written before `pushed`. */
static bool is_older(const stet_space *s, const owner_row *row, const stet_space *in, const stet_foreign_row *f) {
    if (stet_observe_older(f->stamp, row->stamp, in->known, f->seen, 0))
        return true;
    if (f->seen >= row->pushed)
        return false;
    int64_t seen = 0;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT seen FROM foreign_space WHERE space = ?");
    stet_bind_int(q, 1, f->space);
    while (stet_step(q))
        seen = stet_column_int(q, 0);
    return seen < row->pushed;
}

/* Does what is recorded about the space differ from the space as it is? `in` NULL: the space is gone. `row`: what the
 * space records about this one. */
static bool differs(const stet_space *s, const stet_space *in, const owner_row *row, const stet_foreign_row *f) {
    return !in || row->number == 0 ? f->stamp != STET_STAMP_GONE : is_older(s, row, in, f);
}

/* Checks again and, if the result is the same, makes every reader unknown. Under the lock of `s`: a process that stores
 * an observation changes both sides, and releases that lock after the second. Without the lock, a check in between
 * would take a run that has just ended for a space that was restored. */
static stet_status distrust_space(stet_space *s, stet_space *in, const stet_foreign_row *f, stet_error *err) {
    bool begun;
    owner_row row = {0};
    stet_foreign_row now = *f; /* its strings are not used */
    stet_status st = stet_observe_begin(s, &begun, err);
    if (st != STET_OK)
        return st;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT seen, stamp FROM foreign_space WHERE space = ?");
    stet_bind_int(q, 1, f->space);
    while (stet_step(q)) {
        now.seen = stet_column_int(q, 0);
        now.stamp = stet_column_int(q, 1);
    }
    if (in && (st = stet_space_refresh(in, err)) == STET_OK)
        st = owner_row_of(in, s, &row, err);
    if (st == STET_OK && differs(s, in, &row, &now)) {
        stet_observe_distrust_readers(s, f->space);
        q = stet_db_stmt(s->db, "UPDATE foreign_space SET seen = ?1, stamp = ?2, sum ="
                                " row_sum(space, uuid, name, ?1, ?2) WHERE space = ?3");
        stet_bind_int(q, 1, in ? in->known : 0);
        stet_bind_int(q, 2, row.number ? row.stamp : STET_STAMP_GONE);
        stet_bind_int(q, 3, f->space);
        stet_run(q);
    }
    stet_status ended = stet_observe_end(s, begun, st == STET_OK ? err : NULL);
    return st == STET_OK ? ended : st;
}

static stet_status catch_up_with(stet_space *s, const stet_foreign_row *f, stet_error *err) {
    stet_space *in;
    stet_error ours = STET_ERROR_INIT;
    stet_status st = stet_observe_sibling(s, f->name, f->uuid, &in, &ours);
    if (st == STET_BUSY) { /* nothing is known against the space */
        stet_error_move(err, &ours);
        return st;
    }
    stet_error_clear(&ours);
    if (st != STET_OK)
        return f->stamp == STET_STAMP_GONE ? STET_OK : distrust_space(s, NULL, f, err);
    st = stet_space_refresh(in, err);
    owner_row row;
    if (st == STET_OK)
        st = owner_row_of(in, s, &row, err);
    if (st != STET_OK)
        return st;
    /* Commits there that were not processed yet, made while observing was off, may owe marks too. */
    int64_t through = stet_observe_through(in);
    if ((st = stet_db_status(in->db, err)) == STET_OK && row.number && through < in->known) {
        st = stet_observe_look(in, err);
        if (st == STET_OK)
            st = owner_row_of(in, s, &row, err);
    }
    if (st != STET_OK)
        return st;
    if (differs(s, in, &row, f))
        st = distrust_space(s, in, f, err);
    if (st == STET_OK && row.number && row.pending > row.pushed)
        st = fetch(s, in, row.number, row.pushed, row.pending, err);
    return st;
}

stet_status stet_observe_foreign_rows(stet_space *s, stet_foreign_rows *rows, stet_error *err) {
    stet_stmt *q =
        stet_db_stmt(s->db, "SELECT " STET_FOREIGN_COLUMNS ", sum FROM foreign_space"
                            " WHERE EXISTS(SELECT 1 FROM foreign_read r WHERE r.space = foreign_space.space)");
    while (stet_step(q)) {
        stet_foreign_row *f = stet_vec_add(rows);
        size_t len;
        if (!stet_column_sound(q, 0, FOREIGN_SUMMED))
            stet_observe_damage(s, FOREIGN_DAMAGED);
        f->space = stet_column_int(q, 0);
        f->seen = stet_column_int(q, 3);
        f->stamp = stet_column_int(q, 4);
        const char *text = stet_column_text(q, 1, &len);
        f->uuid = stet_strndup(text, len);
        text = stet_column_text(q, 2, &len);
        f->name = stet_strndup(text, len);
    }
    return stet_db_status(s->db, err);
}

void stet_foreign_rows_release(stet_foreign_rows *rows) {
    for (size_t i = 0; i < rows->len; i++) {
        free(rows->at[i].uuid);
        free(rows->at[i].name);
    }
    stet_vec_release(rows);
}

stet_status stet_observe_foreign_catch_up(stet_space *s, stet_error *err) {
    stet_foreign_rows rows = {0};
    stet_status st = stet_observe_foreign_rows(s, &rows, err);
    for (size_t i = 0; i < rows.len && st == STET_OK; i++)
        st = catch_up_with(s, &rows.at[i], err);
    stet_foreign_rows_release(&rows);
    return st;
}

/* The conditions of catch_up_with. */
stet_status stet_observe_owes(const stet_space *s, stet_space *in, const stet_foreign_row *f, bool *out,
                              stet_error *err) {
    owner_row row = {0};
    *out = f->stamp != STET_STAMP_GONE;
    if (!in)
        return STET_OK;
    stet_status st = stet_space_refresh(in, err);
    if (st == STET_OK)
        st = owner_row_of(in, s, &row, err);
    if (st != STET_OK || row.number == 0)
        return st;
    int64_t through = stet_observe_through(in);
    *out = through < in->known || is_older(s, &row, in, f) || row.pending > row.pushed;
    return stet_db_status(in->db, err);
}

stet_status stet_observe_foreign_owed(stet_space *s, int64_t *spaces, stet_error *err) {
    stet_foreign_rows rows = {0};
    stet_status st = stet_observe_foreign_rows(s, &rows, err);
    for (size_t i = 0; i < rows.len && st == STET_OK; i++) {
        bool some = false;
        stet_space *in;
        if (stet_observe_sibling(s, rows.at[i].name, rows.at[i].uuid, &in, NULL) != STET_OK)
            in = NULL;
        st = stet_observe_owes(s, in, &rows.at[i], &some, err);
        *spaces += some;
    }
    stet_foreign_rows_release(&rows);
    return st;
}
