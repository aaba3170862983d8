/* observe_mirror.c - reads across spaces.
 *
 * The owner space of an action holds the truth: its observation, its marks. In every other space that the action read
 * lie mirror rows, so that a change there finds the reader.
 *
 *   M1. Mirror first. The commit that stores an observation holds the write locks of the spaces read, writes their
 *       mirror rows, commits those spaces, then the owner. A crash in between leaves mirror rows too many, which cost a
 *       look, and never one too few.
 *   M2. A change that touches a mirror notes `pending` for that owner in its own transaction, and after it pushes the
 *       marks to the owner and notes `pushed`. pending > pushed means: a crash came in between. The owner looks at that
 *       (stet_observe_catch_up) before it calls anything standing, and does the rest.
 *   M3. A pushed mark counts only if the action's observation, as it is now, has a read that the change touches and
 *       that saw less. So a late push harms nobody.
 *   M4. `stamp` is written to both sides with each observation. Where they differ, or the space read is below what was
 *       seen of it, or is another one, one of the two is an older copy, or a crash came between them: its readers
 * become unknown, before the next stamp makes the two equal again.
 */
#include <stdlib.h>

#include "memory/observe_internal.h"

/* ---- Other spaces, by name, beside this one ------------------------------------------------------------------- */

static stet_status sibling(stet_space *s, const char *name, stet_space **out, stet_error *err) {
    struct stet_observe *o = stet_observe_of(s);
    for (size_t i = 0; i < o->owner_count; i++)
        if (strcmp(o->owners[i]->name, name) == 0) {
            *out = o->owners[i];
            return STET_OK;
        }
    stet_status st = stet_space_name_check(name, err); /* it comes from a file */
    if (st != STET_OK)
        return st;
    char *dir = stet_file_dirname(s->path), *file = stet_asprintf("%s.db", name), *path = stet_file_join(dir, file);
    stet_space *opened = NULL;
    if (!stet_file_exists(path))
        st = stet_fail(err, STET_NOT_FOUND, "no space \"%s\" beside \"%s\"", name, s->name);
    else
        st =
            stet_space_open_path(path, name, s->read_only ? STET_SPACE_READ_ONLY : STET_SPACE_MUST_EXIST, &opened, err);
    stet_free(dir);
    stet_free(file);
    stet_free(path);
    if (st != STET_OK)
        return st;
    o->owners = stet_realloc(o->owners, (o->owner_count + 1) * sizeof *o->owners);
    o->owners[o->owner_count++] = *out = opened;
    return STET_OK;
}

stet_status stet_observe_sibling(stet_space *s, const char *name, const char *uuid, stet_space **out, stet_error *err) {
    stet_status st = sibling(s, name, out, err);
    if (st == STET_OK && strcmp((*out)->uuid, uuid) != 0)
        st = stet_fail(err, STET_NOT_FOUND, "space \"%s\" beside \"%s\" is another one than it was", name, s->name);
    return st;
}

void stet_observe_close_owners(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    for (size_t i = 0; i < o->owner_count; i++)
        stet_space_close(o->owners[i]);
    free(o->owners);
    o->owners = NULL;
    o->owner_count = 0;
}

int64_t stet_observe_foreign(stet_space *s, const char *uuid, const char *name, int64_t seen) {
    stet_stmt *q = stet_db_stmt(s->db, "INSERT INTO foreign_space(uuid, name, seen, stamp) VALUES(?, ?, ?, 0)"
                                       " ON CONFLICT(uuid) DO UPDATE SET name = excluded.name,"
                                       " seen = max(seen, excluded.seen)");
    stet_bind_text(q, 1, uuid, strlen(uuid));
    stet_bind_text(q, 2, name, strlen(name));
    stet_bind_int(q, 3, seen);
    stet_run(q);
    q = stet_db_stmt(s->db, "SELECT space FROM foreign_space WHERE uuid = ?");
    stet_bind_text(q, 1, uuid, strlen(uuid));
    int64_t number = 0;
    while (stet_step(q))
        number = stet_column_int(q, 0);
    stet_observe_of(s)->has_foreign = 1;
    return number;
}

/* ---- Writing mirrors ------------------------------------------------------------------------------------------ */

/* The number under which `owner` is known in `in`; made if asked. 0: not known. */
static int64_t owner_number(stet_space *in, const stet_space *owner, bool make) {
    int64_t number = 0;
    stet_stmt *q = stet_db_stmt(in->db, "SELECT owner FROM mirror_owner WHERE uuid = ?");
    stet_bind_text(q, 1, owner->uuid, strlen(owner->uuid));
    while (stet_step(q))
        number = stet_column_int(q, 0);
    if (number == 0 && make) {
        q = stet_db_stmt(in->db, "INSERT INTO mirror_owner(uuid, name, stamp, pending, pushed) VALUES(?, ?, 0, 0, 0)");
        stet_bind_text(q, 1, owner->uuid, strlen(owner->uuid));
        stet_bind_text(q, 2, owner->name, strlen(owner->name));
        stet_run(q);
        number = stet_db_last_id(in->db);
    }
    return number;
}

static void drop_mirrors(stet_space *in, int64_t owner, int64_t action) {
    stet_stmt *q = stet_db_stmt(in->db, "DELETE FROM mirror WHERE owner = ? AND action = ?");
    stet_bind_int(q, 1, owner);
    stet_bind_int(q, 2, action);
    stet_run(q);
}

/* Inside the write transaction of `in`. */
static bool mirror_into(stet_space *in, stet_space *s, int64_t action, const stet_applied *m, int64_t stamp) {
    if (in->read_only)
        return false;
    stet_db_savepoint(in->db);
    int64_t owner = owner_number(in, s, true);
    drop_mirrors(in, owner, action);
    stet_places p = {0};
    for (size_t i = 0; i < m->read_count; i++) {
        const stet_tx_read_record *r = &m->reads[i];
        if (r->space == in)
            *stet_vec_add(&p) = (stet_place){r->doc ? r->doc : stet_space_intern(in, &r->name), r->path,
                                             r->kind == STET_SHALLOW, r->seq};
    }
    stet_places_settle(&p);
    for (size_t i = 0; i < p.len; i++) {
        stet_stmt *q = stet_db_stmt(
            in->db, "INSERT OR REPLACE INTO mirror(key, path, owner, action, flags) VALUES(?, ?, ?, ?, ?)");
        stet_bind_int(q, 1, stet_space_key(0, p.at[i].doc));
        stet_bind_blob(q, 2, p.at[i].path.bytes, p.at[i].path.len);
        stet_bind_int(q, 3, owner);
        stet_bind_int(q, 4, action);
        stet_bind_int(q, 5, p.at[i].flag);
        stet_run(q);
    }
    stet_vec_release(&p);
    stet_stmt *q = stet_db_stmt(in->db, "UPDATE mirror_owner SET stamp = ?, name = ? WHERE owner = ?");
    stet_bind_int(q, 1, stamp);
    stet_bind_text(q, 2, s->name, strlen(s->name));
    stet_bind_int(q, 3, owner);
    stet_run(q);
    if (stet_db_status(in->db, NULL) == STET_OK && stet_db_savepoint_release(in->db, NULL) == STET_OK) {
        stet_observe_of(in)->has_mirrors = 1;
        return true;
    }
    stet_db_savepoint_undo(in->db);
    stet_space_forget_names(in); /* numbers may have been given that are not stored */
    return false;
}

bool stet_observe_mirrored(stet_space *in, const stet_space *owner, int64_t action, const stet_foreign_place *r) {
    stet_arena arena = STET_ARENA_INIT;
    stet_docname name = {stet_arena_strndup(&arena, r->id.at, r->id.len),
                         stet_arena_strndup(&arena, r->scope.at, r->scope.len)};
    int64_t number = owner_number(in, owner, false), doc = 0;
    bool there = false;
    if (stet_docname_check(&name, NULL) == STET_OK)
        doc = stet_space_find_doc(in, &name);
    stet_stmt *q =
        stet_db_stmt(in->db, "SELECT flags FROM mirror WHERE key = ? AND path = ? AND owner = ? AND action = ?");
    stet_bind_int(q, 1, stet_space_key(0, doc));
    stet_bind_blob(q, 2, r->path.bytes, r->path.len);
    stet_bind_int(q, 3, number);
    stet_bind_int(q, 4, action);
    while (stet_step(q))
        there = stet_column_int(q, 0) == (int64_t)r->flag;
    stet_arena_release(&arena);
    return there && doc && number;
}

/* Every action that read the space becomes unknown; marks of a history that is no more mean nothing. */
static void distrust_readers(stet_space *s, int64_t space) {
    STET_VEC(stet_marked) list = {0};
    stet_stmt *q = stet_db_stmt(
        s->db, "SELECT r.action, a.branch FROM foreign_read r JOIN action a ON a.action = r.action WHERE r.space = ?");
    stet_bind_int(q, 1, space);
    while (stet_step(q))
        *stet_vec_add(&list) = (stet_marked){.action = stet_column_int(q, 0), .seq = stet_column_int(q, 1)};
    for (size_t i = 0; i < list.len; i++)
        stet_observe_mark(s, list.at[i].action, list.at[i].seq, STET_UNKNOWN, STET_REASON_RESTORED, 0, 0, NULL);
    stet_vec_release(&list);
    q = stet_db_stmt(s->db, "DELETE FROM mark WHERE space = ?");
    stet_bind_int(q, 1, space);
    stet_run(q);
}

#define SPACE_GONE                                                                                                     \
    (-1) /* a stamp: there is no such space, or it does not know this one, and its readers are unknown                 \
          */

/* M4, under both locks: the stamp for the next observation. If the two sides differ, that is told now, because writing
 * a new one to both would hide it. */
static bool next_stamp(stet_space *s, stet_space *in, int64_t space, int64_t *stamp) {
    int64_t here = 0, seen = 0, there = 0;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT stamp, seen FROM foreign_space WHERE space = ?");
    stet_bind_int(q, 1, space);
    while (stet_step(q)) {
        here = stet_column_int(q, 0);
        seen = stet_column_int(q, 1);
    }
    q = stet_db_stmt(in->db, "SELECT stamp FROM mirror_owner WHERE uuid = ?");
    stet_bind_text(q, 1, s->uuid, strlen(s->uuid));
    while (stet_step(q))
        there = stet_column_int(q, 0);
    here = here == SPACE_GONE ? 0 : here;
    if (stet_db_status(in->db, NULL) != STET_OK)
        return false;
    if (here != there || in->known < seen) {
        distrust_readers(s, space);
        q = stet_db_stmt(s->db, "UPDATE foreign_space SET seen = ? WHERE space = ?");
        stet_bind_int(q, 1, in->known);
        stet_bind_int(q, 2, space);
        stet_run(q);
    }
    *stamp = (here > there ? here : there) + 1;
    return true;
}

static void foreign_read(stet_space *s, const char *sql, int64_t space, int64_t action) {
    stet_stmt *q = stet_db_stmt(s->db, sql);
    stet_bind_int(q, 1, space);
    stet_bind_int(q, 2, action);
    stet_run(q);
}

bool stet_observe_mirror(stet_space *s, int64_t branch, stet_known_action *a, const stet_applied *m,
                         stet_bytes foreign) {
    (void)branch; /* reads in other spaces are of their default branch */
    struct stet_observe *o = stet_observe_of(s);
    bool all = true;
    stet_observe_bear(s, a); /* readers of a space are found by way of their rows */
    stet_foreign_places was = {0}, is = {0};
    if (!stet_foreign_unpack(a->foreign_reads, &was) || !stet_foreign_unpack(foreign, &is))
        all = false;
    for (size_t i = 0; i < was.len; i++) {
        bool again = i > 0 && was.at[i].space == was.at[i - 1].space;
        for (size_t k = 0; k < is.len && !again; k++)
            again = is.at[k].space == was.at[i].space;
        if (again)
            continue;
        foreign_read(s, "DELETE FROM foreign_read WHERE space = ? AND action = ?", was.at[i].space, a->action);
        *stet_vec_add(&o->leave) = (stet_marked){.action = a->action, .seq = was.at[i].space};
    }
    stet_space *done[64];
    size_t done_count = 0;
    for (size_t i = 0; i < m->read_count; i++) {
        stet_space *in = m->reads[i].space;
        bool met = in == s;
        for (size_t k = 0; k < done_count && !met; k++)
            met = done[k] == in;
        if (met)
            continue;
        if (done_count == sizeof done / sizeof *done) {
            all = false; /* an action that reads more spaces than that is never called standing */
            break;
        }
        done[done_count++] = in;
        int64_t stamp, space = stet_observe_foreign(s, in->uuid, in->name, 0);
        if (!next_stamp(s, in, space, &stamp) || !mirror_into(in, s, a->action, m, stamp)) {
            all = false;
            continue;
        }
        stet_observe_foreign(s, in->uuid, in->name, m->reads[i].seq);
        stet_stmt *q = stet_db_stmt(s->db, "UPDATE foreign_space SET stamp = ? WHERE space = ?");
        stet_bind_int(q, 1, stamp);
        stet_bind_int(q, 2, space);
        stet_run(q);
        foreign_read(s, "INSERT OR IGNORE INTO foreign_read(space, action) VALUES(?, ?)", space, a->action);
    }
    a->foreign = foreign.len != 0;
    a->foreign_reads = (stet_bytes){foreign.len ? stet_arena_dup(&o->arena, foreign.at, foreign.len) : "", foreign.len};
    stet_vec_release(&was);
    stet_vec_release(&is);
    return all;
}

bool stet_observe_clear_foreign(stet_space *s, int64_t action, stet_bytes foreign) {
    stet_foreign_places reads = {0};
    STET_VEC(int64_t) gone = {0};
    bool sound = stet_foreign_unpack(foreign, &reads), left = false;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT space, seq FROM mark WHERE action = ? AND space != 0");
    stet_bind_int(q, 1, action);
    while (stet_step(q)) {
        bool keep = !sound;
        for (size_t i = 0; i < reads.len && !keep; i++)
            keep = reads.at[i].space == stet_column_int(q, 0) && reads.at[i].seq < stet_column_int(q, 1);
        left = left || keep;
        if (!keep)
            *stet_vec_add(&gone) = stet_column_int(q, 0);
    }
    for (size_t i = 0; i < gone.len; i++) {
        q = stet_db_stmt(s->db, "DELETE FROM mark WHERE action = ? AND space = ?");
        stet_bind_int(q, 1, action);
        stet_bind_int(q, 2, gone.at[i]);
        stet_run(q);
        stet_observe_of(s)->marks_cleared++;
    }
    stet_vec_release(&gone);
    stet_vec_release(&reads);
    return left;
}

/* ---- What a change owes --------------------------------------------------------------------------------------- */

/* Mirror rows that a changed leaf touches; `only` 0: of every owner. */
static void mirrors_of(stet_space *s, int64_t doc, const stet_change *c, int64_t seq, int64_t only, stet_arena *arena) {
    struct stet_observe *o = stet_observe_of(s);
    size_t from = o->pushes.len;
    int64_t key = stet_space_key(0, doc);
    stet_pathref p = c->path;
    for (bool below = true;; below = false) {
        stet_stmt *q;
        if (below) {
            q = stet_db_stmt(s->db,
                             "SELECT owner, action, flags, path FROM mirror WHERE key = ? AND path >= ? AND path < ?");
            stet_buf_clear(&o->buf2);
            stet_buf_add(&o->buf2, p.bytes, p.len);
            stet_buf_char(&o->buf2, (char)0xFF);
            stet_bind_blob(q, 3, o->buf2.data, o->buf2.len);
        } else {
            q = stet_db_stmt(s->db, "SELECT owner, action, flags, path FROM mirror WHERE key = ? AND path = ?");
        }
        stet_bind_int(q, 1, key);
        stet_bind_blob(q, 2, p.bytes, p.len);
        while (stet_step(q)) {
            size_t len;
            const char *path = stet_column_blob(q, 3, &len);
            if ((only == 0 || stet_column_int(q, 0) == only) &&
                stet_touches(c->path, c->kind, (stet_pathref){path ? path : "", len},
                             stet_column_int(q, 2) & 1 ? STET_SHALLOW : STET_RECURSIVE))
                *stet_vec_add(&o->pushes) =
                    (stet_owed){stet_column_int(q, 0), stet_column_int(q, 1), seq, doc, c->path, c->kind};
        }
        if (p.len == 0)
            break;
        p = stet_path_parent(p);
    }
    for (size_t i = from; i < o->pushes.len; i++)
        o->pushes.at[i].path.bytes = stet_arena_strndup(arena, c->path.bytes, c->path.len);
}

/* M2. `pushed` never passes a change that was not told: what this transaction tells moves it only if everything up to
 * the `pending` that it found had been told. A commit looked at late (above marked_through, but below `pushed`) moves
 * `pushed` back to before it. */
static void note_pending(stet_space *s, int64_t owner, int64_t seq) {
    struct stet_observe *o = stet_observe_of(s);
    stet_owed_base *base = NULL;
    for (size_t i = 0; i < o->bases.len && !base; i++)
        if (o->bases.at[i].owner == owner)
            base = &o->bases.at[i];
    int64_t pending = 0;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT pending FROM mirror_owner WHERE owner = ?");
    stet_bind_int(q, 1, owner);
    while (stet_step(q))
        pending = stet_column_int(q, 0);
    if (!base) {
        base = stet_vec_add(&o->bases);
        *base = (stet_owed_base){owner, pending};
    }
    if (seq <= pending)
        base->base = INT64_MAX;
    q = stet_db_stmt(
        s->db, "UPDATE mirror_owner SET pending = max(pending, ?1), pushed = min(pushed, ?1 - 1) WHERE owner = ?2");
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
            mirrors_of(s, at[i].doc, &at[i].at[k], seq, 0, &o->push_arena);
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

/* ---- Telling the owner ---------------------------------------------------------------------------------------- */

/* In the write transaction of the owner: M3. */
static void take_mark(stet_space *owner, const stet_space *from, const stet_owed *p, const stet_docname *name) {
    int64_t space = 0, branch = 0;
    stet_stmt *q = stet_db_stmt(owner->db, "SELECT space FROM foreign_space WHERE uuid = ?");
    stet_bind_text(q, 1, from->uuid, strlen(from->uuid));
    while (stet_step(q))
        space = stet_column_int(q, 0);
    if (!space)
        return;
    bool counts = false;
    stet_foreign_places reads = {0};
    q = stet_db_stmt(owner->db, "SELECT branch, observation FROM action WHERE action = ?");
    stet_bind_int(q, 1, p->action);
    while (stet_step(q)) {
        size_t len;
        const void *blob = stet_column_blob(q, 1, &len);
        stet_obs obs;
        branch = stet_column_int(q, 0);
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
    q = stet_db_stmt(owner->db, "UPDATE foreign_space SET seen = max(seen, ?) WHERE space = ?");
    stet_bind_int(q, 1, p->seq);
    stet_bind_int(q, 2, space);
    stet_run(q);
    q = stet_db_stmt(owner->db,
                     "INSERT INTO mark(action, space, branch, state, reason, seq, id, scope, path, kind)"
                     " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                     " ON CONFLICT(action, space) DO UPDATE SET state = excluded.state, reason = excluded.reason,"
                     " seq = excluded.seq, id = excluded.id, scope = excluded.scope, path = excluded.path,"
                     " kind = excluded.kind WHERE excluded.seq > seq AND excluded.state >= state");
    stet_bind_int(q, 1, p->action);
    stet_bind_int(q, 2, space);
    stet_bind_int(q, 3, branch);
    stet_bind_int(q, 4, STET_DIRTY);
    stet_bind_int(q, 5, STET_REASON_CHANGED);
    stet_bind_int(q, 6, p->seq);
    stet_bind_text(q, 7, name->id, strlen(name->id));
    stet_bind_text(q, 8, name->scope, strlen(name->scope));
    stet_bind_blob(q, 9, p->path.bytes, p->path.len);
    stet_bind_int(q, 10, p->kind);
    stet_run(q);
    stet_slot *slot = owner->observe ? stet_map_get(&owner->observe->by_number, &p->action, sizeof p->action) : NULL;
    if (slot)
        ((stet_known_action *)slot->p)->marked = ((stet_known_action *)slot->p)->foreign_marked = true;
}

/* All pushes of one owner, then `pushed` here, if nothing older is left untold. Both transactions end before this
 * returns. A note that fails is no failure: the owner asks again, and M3 makes that harmless. */
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
            take_mark(owner, s, &o->pushes.at[i], &name);
    }
    stet_arena_release(&arena);
    if (st == STET_OK)
        st = stet_db_commit(owner->db, err);
    else
        stet_db_rollback(owner->db);
    if (st != STET_OK || stet_db_begin_write(s->db, NULL) != STET_OK)
        return st;
    stet_stmt *q =
        stet_db_stmt(s->db, "UPDATE mirror_owner SET pushed = max(pushed, ?) WHERE owner = ? AND pushed >= ?");
    stet_bind_int(q, 1, through);
    stet_bind_int(q, 2, number);
    stet_bind_int(q, 3, base);
    stet_run(q);
    if (stet_db_commit(s->db, NULL) != STET_OK)
        stet_observe_empty(s);
    return STET_OK;
}

static const char *text_column(stet_stmt *q, int column, stet_arena *arena) {
    size_t len;
    const char *text = stet_column_text(q, column, &len);
    return stet_arena_strndup(arena, text, len);
}

/* Takes the mirrors of one action away from a space it no longer reads: under both locks, because another process may
 * have stored an observation meanwhile that reads it again. */
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
    if (stet_db_status(s->db, NULL) == STET_OK && !again)
        drop_mirrors(in, owner_number(in, s, false), action);
    stet_db_rollback(s->db);
    if (stet_db_commit(in->db, NULL) != STET_OK)
        stet_observe_empty(in);
}

void stet_observe_leave_all(stet_space *s, int64_t action) {
    stet_stmt *q = stet_db_stmt(s->db, "SELECT space FROM foreign_read WHERE action = ?");
    stet_bind_int(q, 1, action);
    while (stet_step(q))
        *stet_vec_add(&stet_observe_of(s)->leave) = (stet_marked){.action = action, .seq = stet_column_int(q, 0)};
    q = stet_db_stmt(s->db, "DELETE FROM foreign_read WHERE action = ?");
    stet_bind_int(q, 1, action);
    stet_run(q);
}

/* A commit does not wait long for another space's writers: what is not told now is fetched. Least of all may it wait
 * for a lock that its own caller holds. */
#define PUSH_PATIENCE_MS 250

static void leave_spaces(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    for (size_t i = 0; i < o->leave.len; i++) {
        stet_arena arena = STET_ARENA_INIT;
        const char *name = NULL, *uuid = NULL;
        stet_stmt *q = stet_db_stmt(s->db, "SELECT name, uuid FROM foreign_space WHERE space = ?");
        stet_bind_int(q, 1, o->leave.at[i].seq);
        while (stet_step(q)) {
            name = text_column(q, 0, &arena);
            uuid = text_column(q, 1, &arena);
        }
        stet_space *in;
        /* Rows too many are harmless, so a failure here is too; gc removes them. */
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
        name = text_column(q, 0, &arena);
        uuid = text_column(q, 1, &arena);
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
    if (stet_db_status(s->db, &stuck) != STET_OK) /* the data is committed: a look that failed is not its failure */
        stet_error_clear(&stuck);
}

/* ---- Asking ---------------------------------------------------------------------------------------------------- */

static int by_owner_and_action(const void *a, const void *b) {
    const stet_owed *x = a, *y = b;
    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    return x->action < y->action ? -1 : x->action > y->action;
}

stet_status stet_observe_far_readers(stet_space *s, const stet_docname *name, stet_pathref path, stet_change_kind kind,
                                     stet_arena *arena, stet_far_reader **out, size_t *count, stet_error *err) {
    struct stet_observe *o = stet_observe_of(s);
    bool begun;
    int64_t doc = 0;
    *count = 0;
    stet_status st = stet_space_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    st = stet_space_doc(s, name, &doc, err);
    size_t from = o->pushes.len; /* lent by what commits owe */
    stet_change c = {path, kind};
    if (st == STET_OK && doc && !o->off)
        mirrors_of(s, doc, &c, 0, 0, arena);
    size_t n = o->pushes.len - from;
    if (n > 1)
        qsort(o->pushes.at + from, n, sizeof *o->pushes.at, by_owner_and_action);
    stet_far_reader *list = *out = stet_arena_zero(arena, (n + 1) * sizeof *list);
    for (size_t i = 0; i < n && st == STET_OK; i++) {
        const stet_owed *p = &o->pushes.at[from + i];
        if (i && by_owner_and_action(p, p - 1) == 0)
            continue;
        stet_stmt *q = stet_db_stmt(s->db, "SELECT name, uuid FROM mirror_owner WHERE owner = ?");
        stet_bind_int(q, 1, p->owner);
        while (stet_step(q))
            list[(*count)++] = (stet_far_reader){text_column(q, 0, arena), text_column(q, 1, arena), p->action};
    }
    o->pushes.len = from;
    return stet_space_leave(s, begun, st, err);
}

/* ---- Cleaning -------------------------------------------------------------------------------------------------- */

typedef struct mirror_owner {
    int64_t number;
    const char *name, *uuid;
} mirror_owner;

/* Actions of one owner that have mirrors here and do not read this space any more. */
static void orphans_of(stet_space *s, stet_space *owner, int64_t number, stet_numbers *out) {
    stet_numbers actions = {0};
    stet_stmt *q = stet_db_stmt(s->db, "SELECT DISTINCT action FROM mirror WHERE owner = ?");
    stet_bind_int(q, 1, number);
    while (stet_step(q))
        stet_numbers_add(&actions, stet_column_int(q, 0));
    for (size_t i = 0; i < actions.len; i++) {
        bool reads = false;
        q = stet_db_stmt(owner->db, "SELECT 1 FROM foreign_read r JOIN foreign_space f ON f.space = r.space"
                                    " WHERE f.uuid = ? AND r.action = ?");
        stet_bind_text(q, 1, s->uuid, strlen(s->uuid));
        stet_bind_int(q, 2, actions.at[i]);
        while (stet_step(q))
            reads = true;
        if (!reads)
            stet_numbers_add(out, actions.at[i]);
    }
    stet_numbers_release(&actions);
}

static int64_t remove_orphans(stet_space *s, stet_space *owner, int64_t number, bool dry_run) {
    bool first = strcmp(s->uuid, owner->uuid) < 0;
    stet_db *one = first ? s->db : owner->db, *two = first ? owner->db : s->db;
    if ((dry_run ? stet_db_begin_read(one, NULL) : stet_db_begin_write(one, NULL)) != STET_OK)
        return 0;
    if ((dry_run ? stet_db_begin_read(two, NULL) : stet_db_begin_write(two, NULL)) != STET_OK) {
        stet_db_rollback(one);
        return 0;
    }
    stet_numbers gone = {0};
    orphans_of(s, owner, number, &gone);
    int64_t rows = 0;
    if (stet_db_status(s->db, NULL) == STET_OK && stet_db_status(owner->db, NULL) == STET_OK)
        for (size_t i = 0; i < gone.len; i++) {
            stet_stmt *q = stet_db_stmt(s->db, "SELECT count(*) FROM mirror WHERE owner = ? AND action = ?");
            stet_bind_int(q, 1, number);
            stet_bind_int(q, 2, gone.at[i]);
            while (stet_step(q))
                rows += stet_column_int(q, 0);
            if (!dry_run)
                drop_mirrors(s, number, gone.at[i]);
        }
    stet_numbers_release(&gone);
    stet_db_rollback(owner->db);
    return stet_db_commit(s->db, NULL) == STET_OK ? rows : 0;
}

int64_t stet_observe_orphans(stet_space *s, bool dry_run) {
    stet_arena arena = STET_ARENA_INIT;
    STET_VEC(mirror_owner) owners = {0};
    stet_stmt *q = stet_db_stmt(s->db, "SELECT owner, name, uuid FROM mirror_owner");
    while (stet_step(q))
        *stet_vec_add(&owners) =
            (mirror_owner){stet_column_int(q, 0), text_column(q, 1, &arena), text_column(q, 2, &arena)};
    int64_t rows = 0;
    for (size_t i = 0; i < owners.len; i++) {
        stet_space *owner;
        if (stet_observe_sibling(s, owners.at[i].name, owners.at[i].uuid, &owner, NULL) == STET_OK)
            rows += remove_orphans(s, owner, owners.at[i].number, dry_run);
    }
    stet_vec_release(&owners);
    stet_arena_release(&arena);
    return rows;
}

/* ---- Catching up ---------------------------------------------------------------------------------------------- */

typedef struct foreign_row {
    int64_t space, seen, stamp;
    char *uuid, *name;
} foreign_row;

/* What is known of the space is what it is now. */
static stet_status distrust_space(stet_space *s, const foreign_row *f, int64_t seen, int64_t stamp, stet_error *err) {
    bool begun;
    stet_status st = stet_observe_begin(s, &begun, err);
    if (st != STET_OK)
        return st;
    distrust_readers(s, f->space);
    stet_stmt *q = stet_db_stmt(s->db, "UPDATE foreign_space SET seen = ?, stamp = ? WHERE space = ?");
    stet_bind_int(q, 1, seen);
    stet_bind_int(q, 2, stamp);
    stet_bind_int(q, 3, f->space);
    stet_run(q);
    return stet_observe_end(s, begun, err);
}

/* M2: commits that touched mirrors of this owner and were not told to it. */
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
                    mirrors_of(in, list[i].at[k].doc, &list[i].at[k].at[n], list[i].seq, number, &arena);
        after = list[count - 1].seq;
    }
    if (st == STET_OK)
        st = push_to(in, s, number, pushed, pending, err);
    stet_observe_owe_nothing(o);
    stet_arena_release(&arena);
    return st;
}

typedef struct owner_row {
    int64_t number, stamp, pending, pushed; /* number 0: not known there */
} owner_row;

static stet_status owner_row_of(stet_space *in, const stet_space *s, owner_row *out, stet_error *err) {
    *out = (owner_row){0};
    stet_stmt *q = stet_db_stmt(in->db, "SELECT owner, stamp, pending, pushed FROM mirror_owner WHERE uuid = ?");
    stet_bind_text(q, 1, s->uuid, strlen(s->uuid));
    while (stet_step(q))
        *out = (owner_row){stet_column_int(q, 0), stet_column_int(q, 1), stet_column_int(q, 2), stet_column_int(q, 3)};
    return stet_db_status(in->db, err);
}

static stet_status look_at(stet_space *s, const foreign_row *f, stet_error *err) {
    stet_space *in;
    stet_error ours = STET_ERROR_INIT;
    stet_status st = stet_observe_sibling(s, f->name, f->uuid, &in, &ours);
    if (st == STET_BUSY) { /* nothing is known against the space */
        stet_error_move(err, &ours);
        return st;
    }
    stet_error_clear(&ours);
    if (st != STET_OK)
        return f->stamp == SPACE_GONE ? STET_OK : distrust_space(s, f, 0, SPACE_GONE, err);
    st = stet_space_refresh(in, err);
    owner_row row;
    if (st == STET_OK)
        st = owner_row_of(in, s, &row, err);
    if (st != STET_OK)
        return st;
    /* Commits there that nobody has looked at, made with the switch off, may owe marks too. */
    int64_t through = stet_observe_meta(in, "marked_through", 0);
    if ((st = stet_db_status(in->db, err)) == STET_OK && row.number && through < in->known) {
        st = stet_observe_look(in, err);
        if (st == STET_OK)
            st = owner_row_of(in, s, &row, err);
    }
    if (st != STET_OK)
        return st;
    if (row.number == 0)
        return f->stamp == SPACE_GONE ? STET_OK : distrust_space(s, f, in->known, SPACE_GONE, err);
    if (row.stamp != f->stamp || in->known < f->seen)
        st = distrust_space(s, f, in->known, row.stamp, err);
    if (st == STET_OK && row.pending > row.pushed)
        st = fetch(s, in, row.number, row.pushed, row.pending, err);
    return st;
}

stet_status stet_observe_foreign_catch_up(stet_space *s, stet_error *err) {
    STET_VEC(foreign_row) rows = {0};
    stet_stmt *q =
        stet_db_stmt(s->db, "SELECT space, seen, stamp, uuid, name FROM foreign_space"
                            " WHERE EXISTS(SELECT 1 FROM foreign_read r WHERE r.space = foreign_space.space)");
    while (stet_step(q)) {
        foreign_row *f = stet_vec_add(&rows);
        size_t len;
        f->space = stet_column_int(q, 0);
        f->seen = stet_column_int(q, 1);
        f->stamp = stet_column_int(q, 2);
        const char *text = stet_column_text(q, 3, &len);
        f->uuid = stet_strndup(text, len);
        text = stet_column_text(q, 4, &len);
        f->name = stet_strndup(text, len);
    }
    stet_status st = stet_db_status(s->db, err);
    for (size_t i = 0; i < rows.len; i++) {
        if (st == STET_OK)
            st = look_at(s, &rows.at[i], err);
        free(rows.at[i].uuid);
        free(rows.at[i].name);
    }
    stet_vec_release(&rows);
    return st;
}
