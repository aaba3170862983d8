/* observe_standing.c - the state of a branch's actions: what is marked, and what is stale because of it.
 *
 *   S1. Roots are: the marked actions of the branch and of every space that it reads, directly or through others;
 *       actions without a row (stet_standing_source); actions whose last run failed; and readers of a space with
 *       changes that were not pushed to them yet.
 *   S2. An action that reads what a root or a stale action writes is stale, in its own space and, through the mirrors,
 *       in others. Its children are stale too: the action decides which children exist and what they compute. A failed
 *       action is not stale because of itself, nor because of what waits for it (S4). For callers with a source, what an
 *       action may write counts as what it writes: an action with envelopes may write anywhere in them, and where links
 *       in them lead, and only its run tells what changes. No mark follows from that.
 *   S3. Other spaces are read on their default branch. So only that branch of them is considered, and only what is
 *       written there has readers elsewhere.
 *   S4. In a circle everything is downstream of what failed, and waits for it; and the failed action reads what waits. It
 *       failed, and is not stale, unless a way leads to it from a root that is not downstream of it.
 *
 * Rejected: durable stale marks in the owner space. They would have to be taken back when the cause goes, in every
 * space downstream, and a crash in between would leave them behind.
 */

#include <stdlib.h>

#include "memory/observe_internal.h"

typedef struct member {
    stet_space *space;
    int64_t branch;
    stet_marked *marks;
    size_t mark_count;
    stet_numbers failed;
    bool begun; /* a read transaction */
} member;

/* An action that was reached, and the root it was reached from. */
typedef struct reached {
    size_t member, root;
    int64_t action;
} reached;

typedef struct walk {
    stet_space *s;
    stet_standing *out;
    const stet_standing_source *source; /* NULL: only what the tables know */
    STET_VEC(member) members;           /* the first is the one that was asked about */
    STET_VEC(reached) queue;
    STET_VEC(stet_stale_root) roots;
    STET_VEC(stet_far_stale) far;
    stet_map seen;         /* member and action -> 1 */
    const stet_map *apart; /* these are not roots; NULL: all are */
    const char *circle;    /* nor are those of this circle in the first member; NULL: none */
    size_t owed;           /* the number of queue entries that were reached before the roots */
    STET_VEC(stet_may_write) may;
    stet_places places, envelopes;
    stet_numbers found;
    stet_buf blob;
} walk;

static size_t find_member(const walk *w, const char *uuid, int64_t branch) {
    for (size_t i = 0; i < w->members.len; i++)
        if (w->members.at[i].branch == branch && strcmp(w->members.at[i].space->uuid, uuid) == 0)
            return i;
    return SIZE_MAX;
}

static size_t add_root(walk *w, const stet_stale_root *root) {
    *stet_vec_add(&w->roots) = *root;
    return w->roots.len - 1;
}

typedef struct seen_key {
    uint64_t member;
    int64_t action;
} seen_key;

static void reach(walk *w, size_t m, int64_t action, size_t root) {
    seen_key key = {m, action};
    if (stet_map_get(&w->seen, &key, sizeof key))
        return;
    stet_map_put(&w->seen, &key, sizeof key, (stet_slot){.n = 1});
    *stet_vec_add(&w->queue) = (reached){m, root, action};
}

/* Reaches every reader of a space with changes that were not pushed to them. */
static void reach_readers(walk *w, size_t m, const stet_foreign_row *f) {
    const member *o = &w->members.at[m];
    size_t root = add_root(w, &(stet_stale_root){.space = o->space,
                                                 .branch = o->branch,
                                                 .name = stet_arena_strdup(&w->out->arena, f->name),
                                                 .reason = STET_REASON_RESTORED});
    stet_stmt *q = stet_db_stmt(o->space->db, "SELECT r.action FROM foreign_read r JOIN action a ON a.action = r.action"
                                              " WHERE r.space = ? AND a.branch = ?");
    stet_bind_int(q, 1, f->space);
    stet_bind_int(q, 2, o->branch);
    while (stet_step(q))
        reach(w, m, stet_column_int(q, 0), root);
}

/* The spaces that a member reads become members. */
static stet_status collect(walk *w, size_t m, stet_error *err) {
    stet_foreign_rows rows = {0};
    stet_status st = stet_observe_foreign_rows(w->members.at[m].space, &rows, err);
    for (size_t i = 0; i < rows.len && st == STET_OK; i++) {
        const stet_foreign_row *f = &rows.at[i];
        stet_space *in = strcmp(f->uuid, w->s->uuid) == 0 ? w->s : NULL;
        bool owes = false;
        stet_error mine = STET_ERROR_INIT;
        if (!in && stet_observe_sibling(w->s, f->name, f->uuid, &in, &mine) != STET_OK)
            in = NULL;
        stet_error_clear(&mine);
        st = stet_observe_owes(w->members.at[m].space, in, f, &owes, err);
        if (st == STET_OK && owes)
            reach_readers(w, m, f);
        if (st == STET_OK && in && find_member(w, f->uuid, 0) == SIZE_MAX)
            *stet_vec_add(&w->members) = (member){.space = in};
    }
    stet_foreign_rows_release(&rows);
    stet_appeared appeared = {0};
    if (st == STET_OK)
        st = stet_observe_appeared(w->members.at[m].space, &appeared, err);
    for (size_t i = 0; i < appeared.len; i++)
        if (appeared.at[i].branch == w->members.at[m].branch)
            reach(w, m, appeared.at[i].action,
                  add_root(w, &(stet_stale_root){.space = w->members.at[m].space,
                                                 .branch = w->members.at[m].branch,
                                                 .reason = STET_REASON_SPACE}));
    stet_vec_release(&appeared);
    return st;
}

/* Reaches the reader `action` of the space `uuid` through its mirror. */
static void reach_far(walk *w, size_t m, const stet_place *p, const char *uuid, int64_t action, size_t root) {
    for (size_t i = 0; i < w->members.len; i++) {
        const member *o = &w->members.at[i];
        if (strcmp(o->space->uuid, uuid) != 0)
            continue;
        bool on = false;
        stet_stmt *q = stet_db_stmt(o->space->db, "SELECT 1 FROM action WHERE action = ? AND branch = ?");
        stet_bind_int(q, 1, action);
        stet_bind_int(q, 2, o->branch);
        while (stet_step(q))
            on = true;
        if (!on)
            continue;
        reach(w, i, action, root);
        stet_far_stale f = {.action = action, .space = w->members.at[m].space};
        if (i == 0 && m != 0 && stet_space_docname(f.space, p->doc, &w->out->arena, &f.name, NULL) == STET_OK) {
            f.path = (stet_pathref){stet_arena_strndup(&w->out->arena, p->path.bytes, p->path.len), p->path.len};
            *stet_vec_add(&w->far) = f;
        }
    }
}

typedef struct mirror_row {
    int64_t owner, action;
    char uuid[37];
} mirror_row;

/* Reaches the readers of a place that may have been written, here and in other spaces. */
static void reach_readers_of(walk *w, size_t m, const stet_place *p, size_t root) {
    const member *o = &w->members.at[m];
    stet_vec_clear(&w->found);
    stet_observe_readers_below(o->space, stet_space_key(o->branch, p->doc), p->path, &w->found);
    for (size_t i = 0; i < w->found.len; i++)
        reach(w, m, w->found.at[i], root);
    if (o->branch != 0 || w->members.len == 1)
        return;
    STET_VEC(mirror_row) rows = {0};
    stet_stmt *q = stet_db_stmt(o->space->db, "SELECT m.key, m.path, m.owner, m.action, m.flags, m.sum, o.uuid FROM"
                                              " mirror m JOIN mirror_owner o ON o.owner = m.owner WHERE m.key = ?");
    stet_bind_int(q, 1, stet_space_key(0, p->doc));
    while (stet_step(q)) {
        size_t len, uuid_len;
        const char *uuid = stet_column_text(q, 6, &uuid_len), *bytes = stet_column_blob(q, 1, &len);
        if (!stet_column_sound(q, 0, 5))
            stet_observe_damage(o->space, "a row of readers in another space");
        stet_pathref path = {bytes ? bytes : "", len};
        if (uuid_len != 36 || !(stet_path_is_prefix(path, p->path) || stet_path_is_prefix(p->path, path)))
            continue;
        mirror_row *r = stet_vec_add(&rows);
        *r = (mirror_row){.owner = stet_column_int(q, 2), .action = stet_column_int(q, 3)};
        memcpy(r->uuid, uuid, 36);
    }
    for (size_t i = 0; i < rows.len; i++)
        reach_far(w, m, p, rows.at[i].uuid, rows.at[i].action, root);
    stet_vec_release(&rows);
}

/* S1 for one member. Collected before any read transaction, because the source reads documents. */
typedef struct member_roots {
    stet_unrecorded *at;
    size_t count;
} member_roots;

/* A row that can't be decoded proves nothing, whatever its mark says. */
static stet_status add_damaged(walk *w, member *o, stet_error *err) {
    stet_numbers damaged = {0};
    stet_status st = stet_observe_damaged(o->space, o->branch, &damaged, err);
    if (st == STET_OK && damaged.len > 0) {
        stet_marked *all = stet_arena_alloc(&w->out->arena, (o->mark_count + damaged.len) * sizeof *all);
        size_t n = 0, k = 0;
        for (size_t i = 0; i < o->mark_count || k < damaged.len;) {
            bool mark = k == damaged.len || (i < o->mark_count && o->marks[i].action <= damaged.at[k]);
            bool same = mark && k < damaged.len && o->marks[i].action == damaged.at[k];
            all[n] =
                mark && !same ? o->marks[i] : (stet_marked){damaged.at[k], STET_STATE_UNKNOWN, STET_REASON_CORRUPT, 0};
            i += mark;
            k += !mark || same;
            n++;
        }
        o->marks = all;
        o->mark_count = n;
    }
    stet_numbers_release(&damaged);
    return st;
}

static stet_status load_member(walk *w, size_t m, const stet_standing_source *source, member_roots *roots,
                               stet_error *err) {
    member *o = &w->members.at[m];
    stet_status st = stet_space_refresh(o->space, err);
    if (st == STET_OK)
        st = stet_observe_marks(o->space, o->branch, NULL, NULL, &w->out->arena, &o->marks, &o->mark_count, err);
    if (st == STET_OK)
        st = add_damaged(w, o, err);
    if (st == STET_OK)
        st = stet_observe_failed(o->space, o->branch, NULL, NULL, &o->failed, err);
    if (st == STET_OK && source && !stet_observe_of(o->space)->off)
        st = source->unrecorded(source->ctx, o->space, o->branch, o->marks, o->mark_count, &w->out->arena, &roots->at,
                                &roots->count, err);
    return st;
}

/* Reaches the readers of a place given by name. */
static void reach_readers_at(walk *w, size_t m, const stet_address *at, size_t root) {
    int64_t doc = stet_space_find_doc(w->members.at[m].space, &at->name);
    if (doc)
        reach_readers_of(w, m, &(stet_place){doc, at->path, 0, 0}, root);
}

static void reach_unrecorded(walk *w, size_t m, const stet_unrecorded *u, size_t root) {
    for (size_t k = 0; k < u->count; k++) {
        reach_readers_at(w, m, &u->writes[k], root);
        if (m == 0 && u->number && k >= u->sure)
            *stet_vec_add(&w->may) = (stet_may_write){u->number, u->writes[k].name, u->writes[k].path};
    }
}

static bool is_apart(const walk *w, size_t m, int64_t action) {
    seen_key key = {m, action};
    return w->apart && stet_map_get(w->apart, &key, sizeof key);
}

static bool in_circle(const walk *w, size_t m, const stet_unrecorded *u) {
    return w->circle && m == 0 && u->circle && strcmp(u->circle, w->circle) == 0;
}

static void start(walk *w, size_t m, const member_roots *roots) {
    const member *o = &w->members.at[m];
    for (size_t i = 0; i < o->mark_count; i++)
        reach(w, m, o->marks[i].action,
              add_root(w, &(stet_stale_root){.space = o->space, .branch = o->branch, .action = o->marks[i].action}));
    for (size_t i = 0; i < roots->count; i++) {
        const stet_unrecorded *u = &roots->at[i];
        if (!u->failed && !is_apart(w, m, u->number) && !in_circle(w, m, u))
            reach_unrecorded(w, m, u,
                             add_root(w, &(stet_stale_root){.space = o->space,
                                                            .branch = o->branch,
                                                            .piece = u->piece,
                                                            .scope = u->scope,
                                                            .name = u->action,
                                                            .reason = STET_REASON_NEVER}));
    }
}

/* Reaches the readers of what the action may write through one cell. */
static stet_status reach_through(walk *w, size_t m, int64_t action, const stet_place *p, size_t root, stet_error *err) {
    const member *o = &w->members.at[m];
    stet_arena *arena = &w->out->arena;
    stet_address cell = {.path = p->path};
    const stet_address *at = NULL;
    size_t count = 0;
    stet_status st = stet_space_docname(o->space, p->doc, arena, &cell.name, err);
    if (st == STET_OK)
        st = w->source->leads(w->source->ctx, o->space, o->branch, &cell, &at, &count, err);
    for (size_t k = 0; k < count && st == STET_OK; k++) {
        reach_readers_at(w, m, &at[k], root);
        if (m == 0)
            *stet_vec_add(&w->may) =
                (stet_may_write){action,
                                 {stet_arena_strdup(arena, at[k].name.id), stet_arena_strdup(arena, at[k].name.scope)},
                                 {stet_arena_strndup(arena, at[k].path.bytes, at[k].path.len), at[k].path.len}};
    }
    return st;
}

static int by_marked(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = ((const stet_marked *)b)->action;
    return x < y ? -1 : x > y;
}

/* Does an action have envelopes? For an unknown action, the source has said where it may write, according to its
 * current graph. */
static bool has_envelopes(const walk *w, size_t m, int64_t action) {
    const member *o = &w->members.at[m];
    const stet_marked *mark =
        o->mark_count ? bsearch(&action, o->marks, o->mark_count, sizeof *o->marks, by_marked) : NULL;
    return w->source && w->source->leads && !(mark && mark->state == STET_STATE_UNKNOWN);
}

/* Reaches the readers of what the action writes, and its children. */
static stet_status reach_from(walk *w, size_t m, int64_t action, size_t root, stet_error *err) {
    stet_status st = STET_OK;
    stet_observe_writes_of(w->members.at[m].space, action, &w->blob, &w->places, &w->envelopes);
    for (size_t k = 0; k < w->places.len; k++)
        reach_readers_of(w, m, &w->places.at[k], root);
    bool envelopes = w->envelopes.len > 0 && has_envelopes(w, m, action);
    for (size_t k = 0; envelopes && k < w->envelopes.len && st == STET_OK; k++)
        st = reach_through(w, m, action, &w->envelopes.at[k], root, err);
    stet_vec_clear(&w->found);
    stet_observe_children_of(w->members.at[m].space, action, &w->found);
    for (size_t k = 0; k < w->found.len; k++)
        reach(w, m, w->found.at[k], root);
    return st;
}

/* Failed actions come after all other roots: an action that is stale for another reason as well is reported with that
 * reason. */
static stet_status start_failed(walk *w, size_t m, const member_roots *roots, stet_error *err) {
    const member *o = &w->members.at[m];
    stet_stale_root root = {.space = o->space, .branch = o->branch, .failed = true};
    stet_status st = STET_OK;
    for (size_t i = 0; i < o->failed.len && st == STET_OK; i++) {
        root.action = o->failed.at[i];
        if (is_apart(w, m, root.action))
            continue;
        st = reach_from(w, m, root.action, add_root(w, &root), err);
    }
    for (size_t i = 0; i < roots->count; i++) {
        root.action = roots->at[i].number;
        if (roots->at[i].failed && !is_apart(w, m, root.action))
            reach_unrecorded(w, m, &roots->at[i], add_root(w, &root));
    }
    return st;
}

static stet_status spread(walk *w, size_t *at, stet_error *err) {
    stet_status st = STET_OK;
    for (; *at < w->queue.len && st == STET_OK; (*at)++)
        st = reach_from(w, w->queue.at[*at].member, w->queue.at[*at].action, w->queue.at[*at].root, err);
    return st;
}

/* Starts from every root, one after the other. */
static stet_status reach_all(walk *w, const member_roots *roots, stet_error *err) {
    size_t at = 0;
    stet_status st = STET_OK;
    for (size_t m = 0; m < w->members.len; m++)
        start(w, m, &roots[m]);
    st = spread(w, &at, err);
    for (size_t m = 0; m < w->members.len && st == STET_OK; m++)
        st = start_failed(w, m, &roots[m], err);
    return st == STET_OK ? spread(w, &at, err) : st;
}

static void release_walk(walk *w) {
    stet_vec_release(&w->queue);
    stet_vec_release(&w->roots);
    stet_vec_release(&w->far);
    stet_vec_release(&w->may);
    stet_vec_release(&w->places);
    stet_vec_release(&w->envelopes);
    stet_numbers_release(&w->found);
    stet_buf_release(&w->blob);
    stet_map_release(&w->seen);
}

/* S4. Is a failed action stale only because others wait for it? If not, `root` becomes the reason. `*steps` counts the
 * cost. */
static stet_status fails_by_itself(walk *w, const member_roots *roots, reached *r, size_t *steps, bool *out,
                                   stet_error *err) {
    walk below = {.s = w->s, .out = w->out, .source = w->source}, others = below;
    size_t at = 0;
    memcpy(&below.members, &w->members, sizeof w->members); /* borrowed */
    memcpy(&others.members, &w->members, sizeof w->members);
    reach(&below, r->member, r->action, add_root(&below, &(stet_stale_root){.space = w->s}));
    /* An action that never ran has read nothing: the graph says that it is downstream. */
    for (size_t i = 0; i < roots[0].count && !others.circle; i++)
        if (roots[0].at[i].number == r->action)
            others.circle = roots[0].at[i].circle;
    for (size_t i = 0; i < roots[0].count; i++)
        if (roots[0].at[i].number && in_circle(&others, 0, &roots[0].at[i]))
            reach(&below, 0, roots[0].at[i].number, 0);
    stet_status st = spread(&below, &at, err);
    others.apart = &below.seen;
    for (size_t i = 1; i < below.queue.len; i++) /* a way through these is not a reason */
        stet_map_put(&others.seen, &(seen_key){below.queue.at[i].member, below.queue.at[i].action}, sizeof(seen_key),
                     (stet_slot){.n = 1});
    for (size_t i = 0; i < w->owed; i++)
        reach(&others, w->queue.at[i].member, w->queue.at[i].action,
              add_root(&others, &w->roots.at[w->queue.at[i].root]));
    if (st == STET_OK)
        st = reach_all(&others, roots, err);
    *out = true;
    for (size_t i = 0; i < others.queue.len && *out; i++)
        if (others.queue.at[i].member == r->member && others.queue.at[i].action == r->action) {
            r->root = add_root(w, &others.roots.at[others.queue.at[i].root]);
            *out = false;
        }
    *steps += below.queue.len + others.queue.len;
    release_walk(&below);
    release_walk(&others);
    return st;
}

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Removes actions that failed by themselves from those that were reached. With very many failures some are left in, and
 * shown as both stale and failed. */
static stet_status keep_stale(walk *w, const member_roots *roots, stet_error *err) {
    enum { MAX_STEPS = 100000 };
    const stet_numbers *failed = &w->members.at[0].failed;
    size_t steps = 0, n = 0, all = w->queue.len;
    stet_status st = STET_OK;
    bool *itself = stet_alloc_zero(all + 1);
    for (size_t i = 0; i < all && st == STET_OK && steps < MAX_STEPS; i++) {
        reached *r = &w->queue.at[i];
        if (r->member == 0 && failed->len > 0 &&
            bsearch(&r->action, failed->at, failed->len, sizeof *failed->at, by_number) &&
            !(w->members.at[0].mark_count && bsearch(&r->action, w->members.at[0].marks, w->members.at[0].mark_count,
                                                     sizeof *w->members.at[0].marks, by_marked)))
            st = fails_by_itself(w, roots, r, &steps, &itself[i], err);
    }
    for (size_t i = 0; i < all; i++)
        if (!itself[i])
            w->queue.at[n++] = w->queue.at[i];
    w->queue.len = n;
    stet_free(itself);
    return st;
}

static int by_action(const void *a, const void *b) {
    const reached *x = a, *y = b;
    return x->action < y->action ? -1 : x->action > y->action;
}

static const stet_marked *find_mark(const stet_standing *s, int64_t action) {
    return s->marked_count ? bsearch(&action, s->marked, s->marked_count, sizeof *s->marked, by_marked) : NULL;
}

static const int64_t *find_number(const stet_numbers *n, int64_t number) {
    return n->len ? bsearch(&number, n->at, n->len, sizeof *n->at, by_number) : NULL;
}

static const int64_t *find_stale(const stet_standing *s, int64_t action) {
    return find_number(&s->stale, action);
}

static void take_result(walk *w) {
    stet_standing *out = w->out;
    out->marked = w->members.at[0].marks;
    out->marked_count = w->members.at[0].mark_count;
    size_t n = 0;
    for (size_t i = 0; i < w->queue.len; i++) {
        const stet_stale_root *root = &w->roots.at[w->queue.at[i].root];
        bool itself = root->failed && root->action == w->queue.at[i].action && root->space == w->s;
        if (w->queue.at[i].member == 0 && !itself && !find_mark(out, w->queue.at[i].action))
            w->queue.at[n++] = w->queue.at[i];
    }
    if (n > 1)
        qsort(w->queue.at, n, sizeof *w->queue.at, by_action);
    for (size_t i = 0; i < n; i++) {
        stet_numbers_add(&out->stale, w->queue.at[i].action);
        stet_numbers_add(&out->root_of, (int64_t)w->queue.at[i].root);
    }
    out->root_count = w->roots.len;
    out->roots =
        stet_arena_dup(&out->arena, w->roots.at ? (void *)w->roots.at : "", w->roots.len * sizeof *w->roots.at);
    out->far_count = w->far.len;
    out->far = stet_arena_dup(&out->arena, w->far.at ? (void *)w->far.at : "", w->far.len * sizeof *w->far.at);
    out->may_count = w->may.len;
    out->may = stet_arena_dup(&out->arena, w->may.at ? (void *)w->may.at : "", w->may.len * sizeof *w->may.at);
}

/* A1 of observe_accept.c. Everything that is up to date, and downstream of what is accepted. */
static stet_status find_through(walk *w, const stet_numbers *accepted, stet_error *err) {
    stet_standing *out = w->out;
    walk t = {.s = w->s, .out = out, .source = w->source};
    size_t at = 0, n = 0, first = out->root_count;
    bool any = false;
    for (size_t m = 0; m < w->members.len; m++)
        any |= accepted[m].len > 0;
    if (!any)
        return STET_OK;
    memcpy(&t.members, &w->members, sizeof w->members); /* borrowed */
    for (size_t m = 0; m < w->members.len; m++)
        for (size_t i = 0; i < accepted[m].len; i++)
            reach(&t, m, accepted[m].at[i],
                  add_root(&t, &(stet_stale_root){.space = w->members.at[m].space,
                                                  .branch = w->members.at[m].branch,
                                                  .action = accepted[m].at[i]}));
    stet_status st = spread(&t, &at, err);
    for (size_t i = 0; i < t.queue.len; i++) {
        int64_t action = t.queue.at[i].action;
        if (t.queue.at[i].member == 0 && !find_mark(out, action) && !find_stale(out, action))
            t.queue.at[n++] = t.queue.at[i];
    }
    if (n > 1)
        qsort(t.queue.at, n, sizeof *t.queue.at, by_action);
    for (size_t i = 0; i < n; i++) {
        int64_t action = t.queue.at[i].action;
        if (find_number(&accepted[0], action)) {
            stet_numbers_add(&out->accepted, action);
            continue;
        }
        stet_numbers_add(&out->through, action);
        stet_numbers_add(&out->through_of, (int64_t)(first + t.queue.at[i].root));
    }
    stet_stale_root *roots = stet_arena_alloc(&out->arena, (first + t.roots.len + 1) * sizeof *roots);
    memcpy(roots, out->roots, first * sizeof *roots);
    memcpy(roots + first, t.roots.at, t.roots.len * sizeof *roots);
    out->roots = roots;
    out->root_count = first + t.roots.len;
    release_walk(&t);
    return st;
}

static void missing_key(stet_buf *out, const char *piece, const char *scope, const char *action) {
    stet_buf_clear(out);
    stet_buf_add(out, piece, strlen(piece) + 1);
    stet_buf_add(out, scope ? scope : "", (scope ? strlen(scope) : 0) + 1);
    stet_buf_add(out, action, strlen(action) + 1);
}

stet_status stet_observe_standing(stet_space *s, int64_t branch, const stet_standing_source *source, stet_standing *out,
                                  stet_error *err) {
    *out = (stet_standing){.arena = STET_ARENA_INIT};
    walk w = {.s = s, .out = out, .source = source};
    STET_VEC(member_roots) roots = {0};
    stet_status st = STET_OK;
    stet_observe_drop_replaced(s);
    *stet_vec_add(&w.members) = (member){.space = s, .branch = branch};
    for (size_t m = 0; m < w.members.len && st == STET_OK; m++) {
        *stet_vec_add(&roots) = (member_roots){0};
        st = load_member(&w, m, source, &roots.at[m], err);
        if (st == STET_OK && !stet_observe_of(s)->off)
            st = collect(&w, m, err);
    }
    stet_numbers *accepted = stet_alloc_zero(w.members.len * sizeof *accepted);
    for (size_t m = 0; m < w.members.len && st == STET_OK; m++)
        st = stet_observe_accepted(w.members.at[m].space, w.members.at[m].branch, &accepted[m], err);
    size_t begun = 0;
    for (; begun < w.members.len && st == STET_OK; begun++) {
        st = stet_observe_rows_ready(w.members.at[begun].space, &w.members.at[begun].begun, err);
        if (st != STET_OK)
            break;
    }
    w.owed = w.queue.len;
    if (st == STET_OK)
        st = reach_all(&w, roots.at, err);
    if (st == STET_OK)
        st = keep_stale(&w, roots.at, err);
    if (st == STET_OK) {
        take_result(&w);
        st = find_through(&w, accepted, err);
        size_t missing = 0;
        for (size_t i = 0; i < roots.at[0].count; i++)
            if (roots.at[0].at[i].missing)
                roots.at[0].at[missing++] = roots.at[0].at[i];
        out->missing = roots.at[0].at;
        out->missing_count = missing;
        for (size_t i = 0; i < missing; i++) {
            missing_key(&w.blob, out->missing[i].piece, out->missing[i].scope, out->missing[i].action);
            stet_map_put(&out->missing_set, w.blob.data, w.blob.len, (stet_slot){.n = i});
        }
    }
    for (size_t m = 0; m < begun; m++)
        st = stet_space_leave(w.members.at[m].space, w.members.at[m].begun, st, err);
    stet_vec_release(&roots);
    for (size_t m = 0; m < w.members.len; m++) {
        stet_numbers_release(&w.members.at[m].failed);
        stet_numbers_release(&accepted[m]);
    }
    stet_free(accepted);
    stet_vec_release(&w.members);
    release_walk(&w);
    if (st != STET_OK)
        stet_standing_release(out);
    return st;
}

stet_action_state stet_standing_of(const stet_standing *s, int64_t action) {
    const stet_marked *m = find_mark(s, action);
    if (m)
        return m->state;
    if (find_stale(s, action))
        return STET_STATE_STALE;
    return find_number(&s->accepted, action) ? STET_STATE_ACCEPTED : STET_STATE_STANDS;
}

const stet_stale_root *stet_standing_through(const stet_standing *s, int64_t action) {
    const int64_t *at = find_number(&s->through, action);
    return at ? &s->roots[s->through_of.at[at - s->through.at]] : NULL;
}

stet_action_state stet_standing_state(const stet_standing *s, const stet_action_record *r) {
    if (!r->action || r->cause.state == STET_STATE_UNKNOWN || stet_standing_misses(s, &r->key))
        return STET_STATE_UNKNOWN;
    return stet_standing_of(s, r->action);
}

const stet_stale_root *stet_standing_root(const stet_standing *s, int64_t action) {
    const int64_t *at = find_mark(s, action) ? NULL : find_stale(s, action);
    return at ? &s->roots[s->root_of.at[at - s->stale.at]] : NULL;
}

bool stet_standing_misses(const stet_standing *s, const stet_action_key *action) {
    if (s->missing_count == 0)
        return false;
    stet_buf key = STET_BUF(0);
    missing_key(&key, action->piece, action->scope, action->action);
    bool misses = stet_map_get(&s->missing_set, key.data, key.len) != NULL;
    stet_buf_release(&key);
    return misses;
}

void stet_standing_release(stet_standing *s) {
    stet_map_release(&s->missing_set);
    stet_numbers_release(&s->stale);
    stet_numbers_release(&s->root_of);
    stet_numbers_release(&s->accepted);
    stet_numbers_release(&s->through);
    stet_numbers_release(&s->through_of);
    stet_arena_release(&s->arena);
    *s = (stet_standing){.arena = STET_ARENA_INIT};
}

stet_status stet_observe_state(stet_space *s, int64_t branch, int64_t action, stet_action_state *out, int64_t *via,
                               stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    stet_standing all;
    stet_action_record record;
    stet_status st = stet_observe_get(s, action, &arena, &record, err);
    stet_arena_release(&arena);
    if (st != STET_OK)
        return st;
    *out = record.cause.state;
    if (via)
        *via = action;
    if (*out != STET_STATE_STANDS)
        return STET_OK;
    st = stet_observe_standing(s, branch, NULL, &all, err);
    if (st != STET_OK)
        return st;
    const stet_stale_root *root = stet_standing_root(&all, action);
    *out = stet_standing_of(&all, action);
    if (via)
        *via = root && root->space == s && root->branch == branch ? root->action : 0;
    stet_standing_release(&all);
    return STET_OK;
}

stet_status stet_observe_reads_others(stet_space *s, bool *out, stet_error *err) {
    bool begun;
    *out = false;
    if (stet_observe_of(s)->off)
        return STET_OK;
    stet_status st = stet_observe_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    *out = stet_observe_int(s, "SELECT EXISTS(SELECT 1 FROM foreign_read)", 0) != 0;
    return stet_space_leave(s, begun, STET_OK, err);
}

stet_status stet_observe_others(stet_space *s, stet_names *out, stet_error *err) {
    stet_foreign_rows rows = {0};
    stet_status st = stet_observe_of(s)->off ? STET_OK : stet_observe_foreign_rows(s, &rows, err);
    for (size_t i = 0; i < rows.len; i++)
        *stet_vec_add(out) = stet_strdup(rows.at[i].name);
    stet_foreign_rows_release(&rows);
    return st;
}

stet_status stet_observe_complete(stet_space *s, int64_t branch, const stet_hash *runtime, bool *out, stet_error *err) {
    bool begun;
    *out = true;
    if (stet_observe_of(s)->off)
        return STET_OK;
    stet_status st = stet_observe_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    stet_stmt *q =
        stet_db_stmt(s->db, "SELECT EXISTS(SELECT 1 FROM complete_branch WHERE branch = ? AND runtime = ? AND"
                            " sum = row_sum(branch, runtime))"
                            " AND EXISTS(SELECT 1 FROM action)");
    stet_bind_int(q, 1, branch);
    stet_bind_blob(q, 2, runtime->bytes, sizeof runtime->bytes);
    *out = false;
    while (stet_step(q))
        *out = stet_column_int(q, 0) != 0;
    *out = *out && stet_observe_actions_fit(s, false);
    return stet_space_leave(s, begun, STET_OK, err);
}

stet_status stet_observe_set_complete(stet_space *s, int64_t branch, const stet_hash *runtime, stet_error *err) {
    bool begun, same = false;
    if ((runtime && stet_observe_of(s)->off) || s->read_only)
        return STET_OK;
    stet_status st = stet_observe_begin(s, &begun, err);
    if (st != STET_OK)
        return st;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT runtime FROM complete_branch WHERE branch = ? AND"
                                       " sum = row_sum(branch, runtime)");
    stet_bind_int(q, 1, branch);
    while (stet_step(q)) {
        size_t len;
        const void *bytes = stet_column_blob(q, 0, &len);
        same = runtime && len == sizeof runtime->bytes && memcmp(bytes, runtime->bytes, len) == 0;
    }
    /* Rows have vanished: what was recorded about the other branches does not hold any more either. */
    if (!stet_observe_has_actions(s) || !stet_observe_actions_fit(s, false)) {
        stet_run(stet_db_stmt(s->db, "DELETE FROM complete_branch"));
        if (runtime)
            stet_observe_actions_renew(s);
        same = false;
    }
    if (!same) {
        q = stet_db_stmt(s->db, runtime ? "INSERT OR REPLACE INTO complete_branch(branch, runtime, sum)"
                                          " VALUES(?1, ?2, row_sum(?1, ?2))"
                                        : "DELETE FROM complete_branch WHERE branch = ?1");
        stet_bind_int(q, 1, branch);
        if (runtime)
            stet_bind_blob(q, 2, runtime->bytes, sizeof runtime->bytes);
        stet_run(q);
    }
    return stet_observe_end(s, begun, err);
}
