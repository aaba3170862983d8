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
 *       seen of it, or is another one, one of the two is an older copy: its readers become unknown.
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
    char *dir = stet_file_dirname(s->path), *file = stet_asprintf("%s.db", name), *path = stet_file_join(dir, file);
    stet_space *opened = NULL;
    stet_status st = STET_OK;
    if (!stet_file_exists(path))
        st = stet_fail(err, STET_NOT_FOUND, "no space \"%s\" beside \"%s\"", name, s->name);
    else
        st = stet_space_open_path(path, name, STET_SPACE_MUST_EXIST, &opened, err);
    stet_free(dir);
    stet_free(file);
    stet_free(path);
    if (st != STET_OK)
        return st;
    o->owners = stet_realloc(o->owners, (o->owner_count + 1) * sizeof *o->owners);
    o->owners[o->owner_count++] = *out = opened;
    return STET_OK;
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
    return false;
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
        int64_t space = stet_observe_foreign(s, in->uuid, in->name, m->reads[i].seq);
        stet_stmt *q = stet_db_stmt(s->db, "SELECT stamp FROM foreign_space WHERE space = ?");
        stet_bind_int(q, 1, space);
        int64_t stamp = 0;
        while (stet_step(q))
            stamp = stet_column_int(q, 0);
        stamp = stamp < 0 ? 1 : stamp + 1;
        if (!mirror_into(in, s, a->action, m, stamp)) {
            all = false;
            continue;
        }
        q = stet_db_stmt(s->db, "UPDATE foreign_space SET stamp = ? WHERE space = ?");
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
        stet_stmt *q = stet_db_stmt(s->db, "UPDATE mirror_owner SET pending = ? WHERE owner = ?");
        stet_bind_int(q, 1, seq);
        stet_bind_int(q, 2, last);
        stet_run(q);
    }
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

/* All pushes of one owner, then `pushed` here. Both transactions end before this returns. */
static stet_status push_to(stet_space *s, stet_space *owner, int64_t number, int64_t through, stet_error *err) {
    struct stet_observe *o = stet_observe_of(s);
    stet_arena arena = STET_ARENA_INIT;
    stet_status st = stet_db_begin_write(owner->db, err);
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
    if (st == STET_OK)
        st = stet_db_begin_write(s->db, err);
    if (st != STET_OK)
        return st;
    stet_stmt *q = stet_db_stmt(s->db, "UPDATE mirror_owner SET pushed = max(pushed, ?) WHERE owner = ?");
    stet_bind_int(q, 1, through);
    stet_bind_int(q, 2, number);
    stet_run(q);
    return stet_db_commit(s->db, err);
}

void stet_observe_push(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    /* Mirrors in spaces no longer read: rows too many are harmless, so a failure here is too. */
    for (size_t i = 0; i < o->leave.len; i++) {
        stet_arena arena = STET_ARENA_INIT;
        const char *name = NULL;
        stet_stmt *q = stet_db_stmt(s->db, "SELECT name FROM foreign_space WHERE space = ?");
        stet_bind_int(q, 1, o->leave.at[i].seq);
        while (stet_step(q)) {
            size_t len;
            const char *text = stet_column_text(q, 0, &len);
            name = stet_arena_strndup(&arena, text, len);
        }
        stet_space *in;
        if (name && sibling(s, name, &in, NULL) == STET_OK && stet_db_begin_write(in->db, NULL) == STET_OK) {
            drop_mirrors(in, owner_number(in, s, false), o->leave.at[i].action);
            if (stet_db_commit(in->db, NULL) != STET_OK)
                stet_observe_empty(in);
        }
        stet_arena_release(&arena);
    }
    stet_vec_clear(&o->leave);
    while (o->pushes.len) {
        int64_t number = o->pushes.at[0].owner, through = 0;
        char *name = NULL, *uuid = NULL;
        for (size_t i = 0; i < o->pushes.len; i++)
            if (o->pushes.at[i].owner == number && o->pushes.at[i].seq > through)
                through = o->pushes.at[i].seq;
        stet_stmt *q = stet_db_stmt(s->db, "SELECT name, uuid FROM mirror_owner WHERE owner = ?");
        stet_bind_int(q, 1, number);
        while (stet_step(q)) {
            size_t len;
            const char *text = stet_column_text(q, 0, &len);
            name = stet_strndup(text, len);
            text = stet_column_text(q, 1, &len);
            uuid = stet_strndup(text, len);
        }
        stet_space *owner;
        stet_error err = STET_ERROR_INIT;
        if (name && sibling(s, name, &owner, &err) == STET_OK && strcmp(owner->uuid, uuid) == 0 &&
            push_to(s, owner, number, through, &err) != STET_OK)
            stet_error_clear(&err); /* M2: it stays pending, and the owner fetches it */
        stet_error_clear(&err);
        free(name);
        free(uuid);
        size_t to = 0;
        for (size_t i = 0; i < o->pushes.len; i++)
            if (o->pushes.at[i].owner != number)
                o->pushes.at[to++] = o->pushes.at[i];
        o->pushes.len = to;
    }
    stet_arena_clear(&o->push_arena);
}

/* ---- Catching up ---------------------------------------------------------------------------------------------- */

typedef struct foreign_row {
    int64_t space, seen, stamp;
    char *uuid, *name;
} foreign_row;

/* Every action that read the space becomes unknown, and what is known of the space is what it is now. */
static stet_status distrust_space(stet_space *s, const foreign_row *f, int64_t seen, int64_t stamp, stet_error *err) {
    bool begun;
    stet_status st = stet_observe_begin(s, &begun, err);
    if (st != STET_OK)
        return st;
    STET_VEC(stet_marked) list = {0};
    stet_stmt *q = stet_db_stmt(
        s->db, "SELECT r.action, a.branch FROM foreign_read r JOIN action a ON a.action = r.action WHERE r.space = ?");
    stet_bind_int(q, 1, f->space);
    while (stet_step(q))
        *stet_vec_add(&list) = (stet_marked){.action = stet_column_int(q, 0), .seq = stet_column_int(q, 1)};
    for (size_t i = 0; i < list.len; i++)
        stet_observe_mark(s, list.at[i].action, list.at[i].seq, STET_UNKNOWN, STET_REASON_RESTORED, 0, 0, NULL);
    stet_vec_release(&list);
    q = stet_db_stmt(s->db, "UPDATE foreign_space SET seen = ?, stamp = ? WHERE space = ?");
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
    stet_vec_clear(&o->pushes);
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
        st = push_to(in, s, number, pending, err);
    stet_vec_clear(&o->pushes);
    stet_arena_release(&arena);
    return st;
}

static stet_status look_at(stet_space *s, const foreign_row *f, stet_error *err) {
    enum { GONE = -1 };
    stet_space *in;
    stet_error ours = STET_ERROR_INIT;
    stet_status st = sibling(s, f->name, &in, &ours);
    stet_error_clear(&ours);
    if (st != STET_OK || strcmp(in->uuid, f->uuid) != 0)
        return f->stamp == GONE ? STET_OK : distrust_space(s, f, 0, GONE, err);
    st = stet_space_refresh(in, err);
    if (st != STET_OK)
        return st;
    int64_t number = 0, stamp = 0, pending = 0, pushed = 0;
    stet_stmt *q = stet_db_stmt(in->db, "SELECT owner, stamp, pending, pushed FROM mirror_owner WHERE uuid = ?");
    stet_bind_text(q, 1, s->uuid, strlen(s->uuid));
    while (stet_step(q)) {
        number = stet_column_int(q, 0);
        stamp = stet_column_int(q, 1);
        pending = stet_column_int(q, 2);
        pushed = stet_column_int(q, 3);
    }
    st = stet_db_status(in->db, err);
    if (st != STET_OK)
        return st;
    if (number == 0)
        return f->stamp == GONE ? STET_OK : distrust_space(s, f, in->known, GONE, err);
    if (stamp != f->stamp || in->known < f->seen)
        st = distrust_space(s, f, in->known, stamp, err);
    if (st == STET_OK && pending > pushed)
        st = fetch(s, in, number, pushed, pending, err);
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
