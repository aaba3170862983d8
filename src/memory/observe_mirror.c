/* observe_mirror.c - reads across spaces.
 *
 * The owner space of an action holds the truth: its observation and its marks. Every other space that the action read
 * holds mirror rows, so that a change there finds the reader.
 *
 *   M1. Mirror first. The commit that stores an observation holds the write locks of the spaces read, writes their
 *       mirror rows, commits those spaces, then the owner. A crash in between leaves too many mirror rows, which cost a
 *       look, and never too few.
 *   M2. A change that touches a mirror notes `pending` for that owner in its own transaction. After it, the marks are
 *       pushed to the owner and `pushed` is noted. pending > pushed means that a crash came in between. The owner
 *       checks that (stet_observe_catch_up) before it calls anything up to date, and does the rest.
 *   M3. A pushed mark counts only if the action's current observation has a read that the change touches and that saw
 *       an earlier sequence. So a late push does no harm.
 *   M4. `stamp` is written to both sides with each observation, and each push moves `seen` of the owner before
 *       `pushed`. One of the two spaces is an older copy, or a crash came between them,
 *         - if the stamps differ,
 *         - if the space read is below `seen`, or is another space,
 *         - if `pushed` is above `seen` (the marks were lost with the newer file of the owner).
 *       Then its readers become unknown, before the next stamp makes the two equal again.
 *   M5. SQLite announces a commit after it is written. A process that is killed in between leaves a commit that the
 *       others do not see, and that is there again once all of them have gone. So whoever removes rows here because of
 *       what another space does not say writes to that space first (stet_observe_confirm): after that write such a
 *       commit cannot come back. Pushes need no such write: M4 notices, because they move `pushed` above `seen`.
 */

#include <stdlib.h>

#include "memory/observe_internal.h"

enum { MIRROR_SUMMED = 5 }; /* columns before the sum */

static stet_status sibling(stet_space *s, const char *name, stet_space **out, stet_error *err) {
    struct stet_observe *o = stet_observe_of(s);
    for (size_t i = 0; i < o->owner_count; i++)
        if (strcmp(o->owners[i]->name, name) == 0) {
            *out = o->owners[i];
            return STET_OK;
        }
    stet_status st = stet_space_name_check(name, err); /* it was read from a file */
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
    opened->root = s->root ? stet_strdup(s->root) : NULL;
    o->owners = stet_realloc(o->owners, (o->owner_count + 1) * sizeof *o->owners);
    o->owners[o->owner_count++] = *out = opened;
    return STET_OK;
}

stet_status stet_observe_sibling(stet_space *s, const char *name, const char *uuid, stet_space **out, stet_error *err) {
    stet_status st = sibling(s, name, out, err);
    if (st == STET_OK && uuid && strcmp((*out)->uuid, uuid) != 0)
        st = stet_fail(err, STET_NOT_FOUND, "space \"%s\" beside \"%s\" is another one than it was", name, s->name);
    return st;
}

void stet_observe_drop_replaced(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    size_t to = 0;
    for (size_t i = 0; i < o->owner_count; i++)
        if (stet_space_replaced(o->owners[i]))
            stet_space_close(o->owners[i]);
        else
            o->owners[to++] = o->owners[i];
    o->owner_count = to;
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
    int64_t number = 0;
    bool sound = true;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT " STET_FOREIGN_COLUMNS ", sum FROM foreign_space WHERE uuid = ?");
    stet_bind_text(q, 1, uuid, strlen(uuid));
    while (stet_step(q)) {
        sound = stet_column_sound(q, 0, 5);
        number = stet_column_int(q, 0);
    }
    if (!sound)
        stet_observe_damage(s, "what is known of another space");
    q = number ? stet_db_stmt(s->db, "UPDATE foreign_space SET name = ?3, seen = max(seen, ?4), sum ="
                                     " row_sum(space, uuid, ?3, max(seen, ?4), stamp) WHERE space = ?1 AND uuid = ?2")
               : stet_db_stmt(s->db, "INSERT INTO foreign_space(" STET_FOREIGN_COLUMNS ", sum)"
                                     " SELECT n, ?2, ?3, ?4, 0, row_sum(n, ?2, ?3, ?4, 0) FROM (SELECT 1 +"
                                     " coalesce(max(space), ?1) AS n FROM foreign_space)");
    stet_bind_int(q, 1, number);
    stet_bind_text(q, 2, uuid, strlen(uuid));
    stet_bind_text(q, 3, name, strlen(name));
    stet_bind_int(q, 4, seen);
    stet_run(q);
    if (number == 0)
        number = stet_db_last_id(s->db);
    stet_observe_of(s)->has_foreign = 1;
    return number;
}

/* The number under which `owner` is known in `in`; `make`: it is assigned if absent. 0: unknown. */
int64_t stet_observe_owner_number(stet_space *in, const stet_space *owner, bool make) {
    int64_t number = 0;
    stet_stmt *q = stet_db_stmt(in->db, "SELECT owner FROM mirror_owner WHERE uuid = ?");
    stet_bind_text(q, 1, owner->uuid, strlen(owner->uuid));
    while (stet_step(q))
        number = stet_column_int(q, 0);
    if (number == 0 && make) {
        q = stet_db_stmt(in->db, "INSERT INTO mirror_owner(" STET_OWNER_COLUMNS ", sum) SELECT n, ?1, ?2, 0, 0, 0,"
                                 " row_sum(n, ?1, ?2, 0, 0, 0) FROM (SELECT 1 + coalesce(max(owner), 0) AS n FROM"
                                 " mirror_owner)");
        stet_bind_text(q, 1, owner->uuid, strlen(owner->uuid));
        stet_bind_text(q, 2, owner->name, strlen(owner->name));
        stet_run(q);
        number = stet_db_last_id(in->db);
    }
    return number;
}

void stet_observe_drop_mirrors(stet_space *in, int64_t owner, int64_t action) {
    stet_stmt *q = stet_db_stmt(in->db, "DELETE FROM mirror WHERE owner = ? AND action = ?");
    stet_bind_int(q, 1, owner);
    stet_bind_int(q, 2, action);
    stet_run(q);
}

/* The caller has begun a write transaction of `in`. */
static bool mirror_into(stet_space *in, stet_space *s, int64_t action, const stet_applied *m, int64_t stamp) {
    if (in->read_only)
        return false;
    stet_db_savepoint(in->db);
    int64_t owner = stet_observe_owner_number(in, s, true);
    stet_observe_drop_mirrors(in, owner, action);
    stet_places p = {0};
    for (size_t i = 0; i < m->read_count; i++) {
        const stet_tx_read_record *r = &m->reads[i];
        if (r->space == in)
            *stet_vec_add(&p) = (stet_place){r->doc ? r->doc : stet_space_intern(in, &r->name), r->path,
                                             r->kind == STET_SHALLOW, r->seq};
    }
    stet_places_settle(&p);
    for (size_t i = 0; i < p.len; i++) {
        stet_stmt *q = stet_db_stmt(in->db, "INSERT OR REPLACE INTO mirror(" STET_MIRROR_COLUMNS ", sum)"
                                            " VALUES(?1, ?2, ?3, ?4, ?5, row_sum(?1, ?2, ?3, ?4, ?5))");
        stet_bind_int(q, 1, stet_space_key(0, p.at[i].doc));
        stet_bind_blob(q, 2, p.at[i].path.bytes, p.at[i].path.len);
        stet_bind_int(q, 3, owner);
        stet_bind_int(q, 4, action);
        stet_bind_int(q, 5, p.at[i].flag);
        stet_run(q);
    }
    stet_vec_release(&p);
    stet_stmt *q = stet_db_stmt(in->db, "UPDATE mirror_owner SET stamp = ?1, name = ?2, sum ="
                                        " row_sum(owner, uuid, ?2, ?1, pending, pushed) WHERE owner = ?3 AND sum ="
                                        " " STET_OWNER_SUM);
    stet_bind_int(q, 1, stamp);
    stet_bind_text(q, 2, s->name, strlen(s->name));
    stet_bind_int(q, 3, owner);
    stet_run(q);
    if (stet_db_status(in->db, NULL) == STET_OK && stet_db_savepoint_release(in->db, NULL) == STET_OK) {
        stet_observe_of(in)->has_mirrors = 1;
        return true;
    }
    stet_db_savepoint_undo(in->db);
    stet_space_forget_names(in); /* forget numbers that were given to names but may not be stored */
    return false;
}

bool stet_observe_mirrored(stet_space *in, const stet_space *owner, int64_t action, const stet_foreign_place *r) {
    stet_arena arena = STET_ARENA_INIT;
    stet_docname name = {stet_arena_strndup(&arena, r->id.at, r->id.len),
                         stet_arena_strndup(&arena, r->scope.at, r->scope.len)};
    int64_t number = stet_observe_owner_number(in, owner, false), doc = 0;
    bool there = false;
    if (stet_docname_check(&name, NULL) == STET_OK)
        doc = stet_space_find_doc(in, &name);
    stet_stmt *q = stet_db_stmt(in->db, "SELECT " STET_MIRROR_COLUMNS
                                        ", sum FROM mirror WHERE key = ? AND path = ? AND owner = ? AND action = ?");
    stet_bind_int(q, 1, stet_space_key(0, doc));
    stet_bind_blob(q, 2, r->path.bytes, r->path.len);
    stet_bind_int(q, 3, number);
    stet_bind_int(q, 4, action);
    while (stet_step(q))
        there = stet_column_sound(q, 0, MIRROR_SUMMED) && stet_column_int(q, 4) == (int64_t)r->flag;
    stet_arena_release(&arena);
    return there && doc && number;
}

/* Every action that read the space becomes unknown: marks of a history that no longer exists mean nothing. */
void stet_observe_distrust_readers(stet_space *s, int64_t space) {
    STET_VEC(stet_marked) list = {0};
    stet_stmt *q = stet_db_stmt(
        s->db, "SELECT r.action, a.branch FROM foreign_read r JOIN action a ON a.action = r.action WHERE r.space = ?");
    stet_bind_int(q, 1, space);
    while (stet_step(q))
        *stet_vec_add(&list) = (stet_marked){.action = stet_column_int(q, 0), .seq = stet_column_int(q, 1)};
    for (size_t i = 0; i < list.len; i++)
        stet_observe_mark(s, list.at[i].action, list.at[i].seq, STET_STATE_UNKNOWN, STET_REASON_RESTORED, 0, 0, NULL);
    stet_vec_release(&list);
    stet_observe_drop_marks(s, 0, space);
}

bool stet_observe_older(int64_t stamp_here, int64_t stamp_there, int64_t known, int64_t seen, int64_t pushed) {
    return stamp_here != stamp_there || known < seen || seen < pushed;
}

stet_status stet_observe_confirm(stet_space *owner) {
    /* A different value each time: SQLite does not write a page that stays the same. */
    stet_run(stet_db_stmt(owner->db, "INSERT INTO space_meta(name, value) VALUES('confirmed', 1)"
                                     " ON CONFLICT(name) DO UPDATE SET value = value + 1"));
    return stet_db_commit(owner->db, NULL);
}

/* M4, under both locks: the stamp for the next observation. If the two sides differ, it is acted on now, because
 * writing a new stamp to both would hide the difference. */
static bool next_stamp(stet_space *s, stet_space *in, int64_t space, int64_t *stamp) {
    int64_t here = 0, seen = 0, there = 0, pushed = 0;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT stamp, seen FROM foreign_space WHERE space = ?");
    stet_bind_int(q, 1, space);
    while (stet_step(q)) {
        here = stet_column_int(q, 0);
        seen = stet_column_int(q, 1);
    }
    q = stet_db_stmt(in->db, "SELECT stamp, pushed FROM mirror_owner WHERE uuid = ?");
    stet_bind_text(q, 1, s->uuid, strlen(s->uuid));
    while (stet_step(q)) {
        there = stet_column_int(q, 0);
        pushed = stet_column_int(q, 1);
    }
    here = here == STET_STAMP_GONE ? 0 : here;
    if (stet_db_status(in->db, NULL) != STET_OK)
        return false;
    if (stet_observe_older(here, there, in->known, seen, pushed)) {
        stet_observe_distrust_readers(s, space);
        q = stet_db_stmt(s->db, "UPDATE foreign_space SET seen = ?1, sum = row_sum(space, uuid, name, ?1, stamp)"
                                " WHERE space = ?2 AND sum = " STET_FOREIGN_SUM);
        stet_bind_int(q, 1, in->known);
        stet_bind_int(q, 2, space);
        stet_run(q);
    }
    *stamp = (here > there ? here : there) + 1;
    return true;
}

bool stet_observe_mirror(stet_space *s, int64_t branch, stet_known_action *a, const stet_applied *m,
                         stet_bytes foreign) {
    (void)branch; /* reads in other spaces are always of their default branch */
    struct stet_observe *o = stet_observe_of(s);
    bool all = true;
    stet_observe_bear(s, a); /* readers of a space are found through their rows */
    stet_foreign_places was = {0}, is = {0};
    if (!stet_foreign_unpack(a->foreign_reads, &was) || !stet_foreign_unpack(foreign, &is))
        all = false;
    for (size_t i = 0; i < was.len; i++) {
        bool again = i > 0 && was.at[i].space == was.at[i - 1].space;
        for (size_t k = 0; k < is.len && !again; k++)
            again = is.at[k].space == was.at[i].space;
        if (again)
            continue;
        stet_observe_drop_foreign(s, was.at[i].space, a->action);
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
            all = false; /* an action that reads more spaces is never called up to date */
            break;
        }
        done[done_count++] = in;
        int64_t stamp, space = stet_observe_foreign(s, in->uuid, in->name, 0);
        if (!next_stamp(s, in, space, &stamp) || !mirror_into(in, s, a->action, m, stamp)) {
            all = false;
            continue;
        }
        stet_observe_foreign(s, in->uuid, in->name, m->reads[i].seq);
        stet_stmt *q = stet_db_stmt(s->db, "UPDATE foreign_space SET stamp = ?1, sum ="
                                           " row_sum(space, uuid, name, seen, ?1) WHERE space = ?2 AND sum ="
                                           " " STET_FOREIGN_SUM);
        stet_bind_int(q, 1, stamp);
        stet_bind_int(q, 2, space);
        stet_run(q);
        stet_observe_note_foreign(s, space, a->action);
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
    for (size_t i = 0; i < gone.len; i++)
        stet_observe_of(s)->now.marks_cleared += stet_observe_drop_marks(s, action, gone.at[i]);
    stet_vec_release(&gone);
    stet_vec_release(&reads);
    return left;
}

/* Finds the mirror rows that a changed leaf touches; `only` 0: of every owner. */
void stet_observe_mirrors_of(stet_space *s, int64_t doc, const stet_change *c, int64_t seq, int64_t only,
                             stet_arena *arena) {
    struct stet_observe *o = stet_observe_of(s);
    size_t from = o->pushes.len;
    int64_t key = stet_space_key(0, doc);
    stet_pathref p = c->path;
    for (bool below = true;; below = false) {
        stet_stmt *q;
        if (below) {
            q = stet_db_stmt(s->db, "SELECT " STET_MIRROR_COLUMNS
                                    ", sum FROM mirror WHERE key = ? AND path >= ? AND path < ?");
            stet_buf_clear(&o->buf2);
            stet_buf_add(&o->buf2, p.bytes, p.len);
            stet_buf_char(&o->buf2, (char)0xFF);
            stet_bind_blob(q, 3, o->buf2.data, o->buf2.len);
        } else {
            q = stet_db_stmt(s->db, "SELECT " STET_MIRROR_COLUMNS ", sum FROM mirror WHERE key = ? AND path = ?");
        }
        stet_bind_int(q, 1, key);
        stet_bind_blob(q, 2, p.bytes, p.len);
        while (stet_step(q)) {
            size_t len;
            const char *path = stet_column_blob(q, 1, &len);
            if (!stet_column_sound(q, 0, MIRROR_SUMMED)) {
                stet_observe_damage(s, "a row of readers in another space");
                continue;
            }
            if ((only == 0 || stet_column_int(q, 2) == only) &&
                stet_touches(c->path, c->kind, (stet_pathref){path ? path : "", len},
                             stet_column_int(q, 4) & 1 ? STET_SHALLOW : STET_RECURSIVE))
                *stet_vec_add(&o->pushes) =
                    (stet_owed){stet_column_int(q, 2), stet_column_int(q, 3), seq, doc, c->path, c->kind};
        }
        if (p.len == 0)
            break;
        p = stet_path_parent(p);
    }
    for (size_t i = from; i < o->pushes.len; i++)
        o->pushes.at[i].path.bytes = stet_arena_strndup(arena, c->path.bytes, c->path.len);
}

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
    size_t from = o->pushes.len; /* borrowed from what commits owe */
    stet_change c = {path, kind};
    if (st == STET_OK && doc && !o->off)
        stet_observe_mirrors_of(s, doc, &c, 0, 0, arena);
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
            list[(*count)++] =
                (stet_far_reader){stet_observe_text(q, 0, arena), stet_observe_text(q, 1, arena), p->action};
    }
    o->pushes.len = from;
    return stet_space_leave(s, begun, st, err);
}

typedef struct mirror_owner {
    int64_t number;
    const char *name, *uuid;
} mirror_owner;

/* Actions of one owner that have mirrors here but no longer read this space. */
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
    bool sound = stet_db_status(s->db, NULL) == STET_OK && stet_db_status(owner->db, NULL) == STET_OK;
    if (sound && gone.len && !dry_run)
        sound = stet_observe_confirm(owner) == STET_OK; /* M5 */
    else
        stet_db_rollback(owner->db);
    for (size_t i = 0; i < gone.len && sound; i++) {
        stet_stmt *q = stet_db_stmt(s->db, "SELECT count(*) FROM mirror WHERE owner = ? AND action = ?");
        stet_bind_int(q, 1, number);
        stet_bind_int(q, 2, gone.at[i]);
        while (stet_step(q))
            rows += stet_column_int(q, 0);
        if (!dry_run)
            stet_observe_drop_mirrors(s, number, gone.at[i]);
    }
    stet_numbers_release(&gone);
    return stet_db_commit(s->db, NULL) == STET_OK ? rows : 0;
}

int64_t stet_observe_orphans(stet_space *s, bool dry_run) {
    stet_arena arena = STET_ARENA_INIT;
    STET_VEC(mirror_owner) owners = {0};
    stet_stmt *q = stet_db_stmt(s->db, "SELECT owner, name, uuid FROM mirror_owner");
    while (stet_step(q))
        *stet_vec_add(&owners) =
            (mirror_owner){stet_column_int(q, 0), stet_observe_text(q, 1, &arena), stet_observe_text(q, 2, &arena)};
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
