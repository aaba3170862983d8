/* sched_far.c - pull across spaces: what is read in another space is brought up to date there first.
 *
 * Each other space that something wanted is read from has a scheduler of its own, over a handle of its own, kept by the
 * scheduler that was asked (the root). The cells wanted there are:
 *   - cells that are not up to date there and that a live action here has read (stet_standing, by the mirrors), or an
 *     action that leads to a materializer which runs at idle;
 *   - cells read by a live action that is going to run here, according to its record or its bindings;
 *   - cells that the demand itself leads to.
 *
 * Those schedulers ask further spaces in the same way. A space that is already being settled is not entered again; it
 * takes up what is wanted of it when it goes on. In a cycle over spaces the scheduler that began goes round again as
 * long as something ran, up to FAR_ROUNDS times.
 */

#include "scheduler/sched_internal.h"
#include "scheduler/standing.h"

#define FAR_ROUNDS 100

typedef struct far_space {
    stet_space *space;
    stet_sched *sched;
    stet_map asked; /* cells that are wanted there */
    bool wanted;    /* some were named since it was last settled */
    size_t failed;  /* actions there that failed and are wanted */
    size_t aside;   /* and that were put aside */
} far_space;

struct sched_far {
    STET_VEC(far_space *) at;
    far_space own; /* what others want of the root: `sched` is the root itself */
};

static stet_sched *root_of(stet_sched *s) {
    return s->root ? s->root : s;
}

void sched_far_free(stet_sched *s) {
    for (size_t i = 0; s->far && i < s->far->at.len; i++) {
        far_space *f = s->far->at.at[i];
        stet_sched_close(f->sched);
        stet_space_close(f->space);
        stet_map_release(&f->asked);
        free(f);
    }
    if (s->far) {
        stet_vec_release(&s->far->at);
        stet_map_release(&s->far->own.asked);
    }
    free(s->far);
    s->far = NULL;
}

static stet_status open_far(stet_sched *root, const char *name, far_space **out, stet_error *err) {
    far_space *f = stet_alloc_zero(sizeof *f);
    stet_sched_opts opts = root->opts;
    opts.files = NULL;
    opts.rested = NULL;
    stet_status status = stet_space_open(root->project, name, STET_SPACE_MUST_EXIST, &f->space, err);
    if (status == STET_OK)
        stet_observe_switch(f->space, root->memo->durable);
    if (status == STET_OK && opts.files_of)
        status = opts.files_of(opts.ctx, f->space, &opts.files, err);
    if (status == STET_OK)
        status = stet_sched_open(root->project, f->space, "", &opts, &f->sched, err);
    if (status != STET_OK) {
        stet_space_close(f->space);
        free(f);
        return status;
    }
    f->sched->root = root;
    *stet_vec_add(&root->far->at) = *out = f;
    return STET_OK;
}

/* The scheduler of another space, which may be the root. NULL: the space is gone. */
static stet_status far_of(stet_sched *s, const char *name, far_space **out, stet_error *err) {
    stet_sched *root = root_of(s);
    stet_error mine = STET_ERROR_INIT;
    *out = NULL;
    if (!root->far) {
        root->far = stet_alloc_zero(sizeof *root->far);
        root->far->own.sched = root;
    }
    if (root->branch == 0 && strcmp(stet_space_name(root->space), name) == 0) {
        *out = &root->far->own;
        return STET_OK;
    }
    for (size_t i = 0; i < root->far->at.len; i++) {
        far_space *f = root->far->at.at[i];
        if (strcmp(stet_space_name(f->space), name) != 0)
            continue;
        if (f->sched->settling || !stet_space_replaced(f->space)) {
            *out = f;
            return STET_OK;
        }
        stet_sched_close(f->sched);
        stet_space_close(f->space);
        stet_map_release(&f->asked);
        free(f);
        root->far->at.at[i] = root->far->at.at[--root->far->at.len];
        break;
    }
    stet_status status = open_far(root, name, out, &mine);
    if (status == STET_NOT_FOUND)
        status = STET_OK;
    else if (status != STET_OK && err)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    return status;
}

/* What failed before counts only in pieces that are known to be looked at. */
static stet_status touch_piece(stet_sched *s, const stet_docname *of, stet_error *err) {
    stet_error mine = STET_ERROR_INIT;
    char *piece = stet_piece_around(of);
    if (!piece)
        return STET_OK;
    stet_status status = stet_sched_touch_piece(s, piece, &mine);
    stet_free(piece);
    if (status == STET_NOT_FOUND || status == STET_INVALID || status == STET_CORRUPT)
        status = STET_OK;
    else if (status != STET_OK && err)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    return status;
}

static stet_status want_cell(stet_sched *s, const char *space, const stet_docname *name, stet_pathref path,
                             stet_error *err) {
    far_space *f;
    stet_status status = far_of(s, space, &f, err);
    if (status != STET_OK || !f)
        return status;
    stet_buf key = STET_BUF(0);
    const char *scope = name->scope ? name->scope : "";
    stet_buf_add(&key, name->id, strlen(name->id) + 1);
    stet_buf_add(&key, scope, strlen(scope) + 1);
    stet_buf_add(&key, path.bytes, path.len);
    f->wanted = true;
    if (!stet_map_get(&f->asked, key.data, key.len)) {
        stet_map_put(&f->asked, key.data, key.len, (stet_slot){.n = 1});
        f->sched->far_state.asked = true;
        status = touch_piece(f->sched, name, err);
        if (status == STET_OK)
            status = stet_sched_demand_cell(f->sched, name->id, scope, path, err);
    }
    stet_buf_release(&key);
    return status;
}

bool sched_far_knows(stet_sched *s, const stet_sched *other) {
    const stet_sched *root = root_of(s);
    bool known = other == root || other == s;
    for (size_t i = 0; root->far && i < root->far->at.len && !known; i++)
        known = root->far->at.at[i]->sched == other;
    return known;
}

/* The name of a space whose UUID is known because something there was read or is bound. */
static const char *name_of(stet_sched *s, const char *uuid, stet_arena *arena) {
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&s->spaces, &i, &key, &len, &slot);)
        if (strcmp(stet_space_uuid(slot->p), uuid) == 0)
            return stet_arena_strndup(arena, key, len);
    const char *name = stet_observe_space_name(s->space, uuid, arena);
    return strcmp(name, uuid) == 0 ? NULL : name;
}

static stet_status want_doc(stet_sched *s, uint32_t doc, stet_pathref path, stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    const char *uuid;
    stet_docname name;
    sched_doc_parts(s, doc, &uuid, &name);
    const char *space = uuid ? name_of(s, uuid, &arena) : NULL;
    stet_status status = space ? want_cell(s, space, &name, path, err) : STET_OK;
    stet_arena_release(&arena);
    return status;
}

stet_status sched_far_makers(stet_sched *s, uint32_t doc, stet_pathref path, stet_sched **in, stet_plan_nodes *out,
                             stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    const char *uuid;
    stet_docname name;
    far_space *f = NULL;
    *in = NULL;
    sched_doc_parts(s, doc, &uuid, &name);
    const char *space = uuid ? name_of(s, uuid, &arena) : NULL;
    stet_status status = space ? far_of(s, space, &f, err) : STET_OK;
    if (status == STET_OK && f) {
        *in = f->sched;
        stet_plan_makers(f->sched->plan, sched_doc(f->sched, NULL, &name), path, out);
    }
    stet_arena_release(&arena);
    return status;
}

/* Is it live, or does it lead to a materializer that runs at idle without being asked for? */
static stet_status is_wanted(stet_sched *s, uint32_t node, bool *wanted, stet_error *err) {
    stet_plan_nodes down = {0};
    stet_status status = stet_plan_is_live(s->plan, node, wanted, err);
    if (status != STET_OK || *wanted || s->preflight.active)
        return status;
    status = stet_plan_downstream(s->plan, &node, 1, &down, err);
    for (size_t i = 0; i < down.len && status == STET_OK && !*wanted; i++) {
        const sched_action *a = stet_plan_data(s->plan, down.at[i]);
        *wanted = a && a->unasked && a->piece->whole;
    }
    stet_vec_release(&down);
    return status;
}

/* What live actions read that are in memory: of those that are going to run, or of all. */
static stet_status want_reads(stet_sched *s, bool all, stet_error *err) {
    STET_VEC(stet_plan_read) reads = {0};
    stet_status status = STET_OK;
    for (size_t i = 0; i < stet_plan_count(s->plan) && status == STET_OK; i++) {
        const sched_action *a = stet_plan_data(s->plan, (uint32_t)i);
        bool live = false, far = false;
        if (!a || a->id != i || !(all || stet_plan_is_dirty(s->plan, a->id) || stet_plan_is_unknown(s->plan, a->id)))
            continue;
        stet_vec_reserve(&reads, stet_plan_reads(s->plan, a->id, NULL, 0) + 1);
        reads.len = stet_plan_reads(s->plan, a->id, reads.at, reads.cap);
        for (size_t k = 0; k < reads.len && !far; k++)
            far = sched_doc_is_far(s, reads.at[k].doc);
        if (far)
            status = is_wanted(s, a->id, &live, err);
        for (size_t k = 0; k < reads.len && live && status == STET_OK; k++)
            status = want_doc(s, reads.at[k].doc, reads.at[k].path, err);
    }
    stet_vec_release(&reads);
    return status;
}

typedef struct linking {
    stet_sched *s;
    stet_status status;
    stet_error *err;
} linking;

static bool want_link(void *ctx, stet_value binding, stet_pathref place) {
    linking *l = ctx;
    stet_link link;
    stet_path path = STET_PATH_INIT;
    (void)place;
    stet_path_push(&path, "value");
    if (stet_link_read(binding, &link, &path) && link.space && strcmp(link.space, stet_space_name(l->s->space)) != 0)
        l->status = want_cell(l->s, link.space, &(stet_docname){link.id, link.scope}, stet_path_ref(&path), l->err);
    stet_path_release(&path);
    return l->status == STET_OK;
}

/* Where the demand itself leads. */
static stet_status want_demand(stet_sched *s, stet_error *err) {
    const void *key;
    size_t len;
    stet_slot *slot;
    linking l = {s, STET_OK, err};
    for (size_t i = 0; stet_map_next(&s->pieces, &i, &key, &len, &slot) && l.status == STET_OK;)
        if (((sched_piece *)slot->p)->whole)
            stet_binding_walk(stet_value_get(((sched_piece *)slot->p)->piece->envelope, "value"), want_link, &l);
    for (size_t i = 0; stet_map_next(&s->want.cells, &i, &key, &len, &slot) && l.status == STET_OK;) {
        uint32_t doc;
        memcpy(&doc, key, sizeof doc);
        l.status = want_doc(s, doc, (stet_pathref){(const char *)key + sizeof doc, len - sizeof doc}, err);
    }
    for (size_t i = 0; i < s->preflight.read_count && l.status == STET_OK; i++)
        if (s->preflight.reads[i].space != s->space)
            l.status = want_cell(s, stet_space_name(s->preflight.reads[i].space), &s->preflight.reads[i].name,
                                 s->preflight.reads[i].path, err);
    return l.status;
}

/* What was read there and is not up to date there, by those that are live here. */
static stet_status want_stale(stet_sched *s, const stet_standing *all, stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    stet_status status = STET_OK;
    for (size_t i = 0; i < all->far_count && status == STET_OK; i++) {
        const stet_far_stale *f = &all->far[i];
        bool live = false;
        status = sched_load_number(s, f->action, &arena, err);
        const stet_slot *slot = stet_map_get(&s->numbers, &f->action, sizeof f->action);
        if (status == STET_OK && slot)
            status = is_wanted(s, (uint32_t)slot->n, &live, err);
        if (status == STET_OK && live)
            status = want_cell(s, stet_space_name(f->space), &f->name, f->path, err);
    }
    stet_arena_release(&arena);
    return status;
}

/* Another value whenever something there changes that makes actions here stale. */
static stet_hash hash_of(const stet_standing *all) {
    stet_buf b = STET_BUF(0);
    const stet_space *last = NULL;
    for (size_t i = 0; i < all->far_count; i++) {
        int64_t seq = 0;
        if (all->far[i].space != last && stet_space_seq(all->far[i].space, &seq, NULL) != STET_OK)
            seq = -1;
        last = all->far[i].space;
        stet_buf_printf(&b, "%lld %lld %s\n", (long long)all->far[i].action, (long long)seq, all->far[i].name.id);
    }
    stet_hash h = stet_hash_of(b.data ? b.data : "", b.len);
    stet_buf_release(&b);
    return h;
}

/* The index of the problem of the same action in the report; the number of problems if there is none. */
static size_t place_of(const stet_sched *s, stet_value problem) {
    static const char *const names[] = {"space", "piece", "node"};
    for (size_t i = 0; i < stet_value_count(s->report.problems); i++) {
        stet_value p = stet_value_at(s->report.problems, i);
        bool same = true;
        for (size_t k = 0; k < sizeof names / sizeof *names && same; k++)
            same = stet_value_equal(stet_value_get(p, names[k]), stet_value_get(problem, names[k]));
        if (same)
            return i;
    }
    return stet_value_count(s->report.problems);
}

/* A space may be settled more than once in one settling here: its last report about an action is the valid one. */
static void take_report(stet_sched *s, far_space *f, stet_sched_report *r) {
    stet_sched_report *out = &s->report;
    out->runs += r->runs;
    out->ran += r->ran;
    out->failed_now += r->failed_now;
    f->aside = r->aside;
    out->dropped += r->dropped;
    out->unchanged += r->unchanged;
    out->effects += r->effects;
    out->flushes += r->flushes;
    for (size_t i = 0; i < sizeof out->causes / sizeof *out->causes; i++)
        out->causes[i] += r->causes[i];
    for (size_t i = 0; i < stet_value_count(r->problems); i++) {
        stet_value v = stet_value_retain(stet_value_at(r->problems, i));
        if (stet_value_type(stet_value_get(v, "space")) != STET_TYPE_STRING)
            stet_value_put(&v, "space", stet_value_string(stet_space_name(f->space)));
        size_t at = place_of(s, v);
        if (at < stet_value_count(out->problems))
            stet_value_remove_at(&out->problems, at);
        if (stet_value_count(out->problems) < 100)
            stet_value_insert_at(&out->problems, at, v);
        else
            stet_value_release(v);
    }
}

static stet_status settle_far(stet_sched *s, bool *ran, stet_error *err) {
    stet_sched *root = root_of(s);
    stet_status status = STET_OK;
    for (size_t i = 0; root->far && i < root->far->at.len && status == STET_OK; i++) {
        far_space *f = root->far->at.at[i];
        if (!f->wanted || f->sched->settling)
            continue;
        stet_sched_report r = {0};
        f->wanted = false;
        status = stet_sched_settle(f->sched, &r, err);
        if (status != STET_OK)
            stet_fail_in(err, "space \"%s\"", stet_space_name(f->space));
        else
            take_report(s, f, &r);
        f->failed = r.failed;
        *ran = *ran || r.runs > 0;
        stet_value_release(r.problems);
    }
    return status;
}

void sched_far_begin(stet_sched *s) {
    s->far_state.rounds = 0;
    s->round += !s->root;
    for (size_t i = 0; s->far && i < s->far->at.len; i++) /* counted again, as far as it is wanted still */
        s->far->at.at[i]->failed = s->far->at.at[i]->aside = 0;
}

uint64_t sched_round(const stet_sched *s) {
    return s->root ? s->root->round : s->round;
}

static stet_status reads_others(stet_sched *s, bool *out, stet_error *err) {
    *out = false;
    return s->memo->durable ? stet_observe_reads_others(s->space, out, err) : STET_OK;
}

stet_status sched_far_stale(stet_sched *s, bool *out, stet_error *err) {
    stet_standing all;
    stet_status status = reads_others(s, out, err);
    if (status != STET_OK || !*out)
        return status;
    status = stet_standing_load_far(s->space, s->branch, &all, err);
    if (status == STET_OK) {
        *out = all.far_count > 0;
        stet_standing_release(&all);
    }
    return status;
}

/* Has a space changed in which something is wanted that no action here reads: what the result shows through links? */
static stet_status has_moved(const stet_sched *s, bool *out, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; s->far && i < s->far->at.len && !*out && status == STET_OK; i++) {
        const far_space *f = s->far->at.at[i];
        int64_t head;
        if (f->sched->begun != s->round) /* nothing there was wanted the last time */
            continue;
        status = stet_space_seq(f->space, &head, err);
        *out = status == STET_OK && head > f->sched->batch.seen + (int64_t)f->sched->batch.own.len;
    }
    return status;
}

stet_status sched_far_news(stet_sched *s, bool *out, stet_error *err) {
    stet_standing all;
    *out = false;
    stet_status status = has_moved(s, out, err);
    if (status != STET_OK || *out)
        return status;
    status = reads_others(s, out, err);
    if (status != STET_OK || !*out)
        return status;
    status = stet_standing_load_far(s->space, s->branch, &all, err);
    if (status == STET_OK) {
        *out = !stet_hash_equal(hash_of(&all), s->far_state.seen);
        stet_standing_release(&all);
    }
    return status;
}

/* What fails in the other spaces by now, and what that means here. */
static stet_status judge_far(stet_sched *s, stet_error *err) {
    const stet_sched *root = root_of(s);
    bool before = s->blocked.any_far;
    stet_status status = STET_OK;
    s->blocked.any_far = root != s && root->far && sched_has_trouble(root);
    for (size_t i = 0; root->far && i < root->far->at.len && status == STET_OK; i++) {
        stet_sched *other = root->far->at.at[i]->sched;
        if (other == s || !sched_has_trouble(other))
            continue;
        s->blocked.any_far = true;
        if (!other->settling)
            status = sched_find_below(other, err);
    }
    return status == STET_OK && (before || s->blocked.any_far) ? sched_far_judge(s, err) : status;
}

/* All that is wanted elsewhere. `standing`: also for actions that have run. */
static stet_status want_all(stet_sched *s, bool standing, stet_error *err) {
    bool others = false;
    stet_status status = want_demand(s, err);
    if (status == STET_OK && s->far_state.has_cells)
        status = want_reads(s, standing, err);
    if (status == STET_OK)
        status = reads_others(s, &others, err);
    if (status == STET_OK && others) {
        stet_standing all;
        status = stet_standing_load_far(s->space, s->branch, &all, err);
        if (status == STET_OK) {
            s->far_state.looked = hash_of(&all);
            status = want_stale(s, &all, err);
            stet_standing_release(&all);
        }
    } else {
        s->far_state.looked = stet_hash_of("", 0);
    }
    return status;
}

stet_status sched_far_fresh(stet_sched *s, bool *ran, stet_error *err) {
    bool before = *ran;
    *ran = false;
    if (s->opts.observe_only || s->stopped || (before && !s->memo->durable) || s->far_state.rounds >= FAR_ROUNDS)
        return STET_OK;
    stet_status status = want_all(s, false, err);
    if (status == STET_OK)
        status = settle_far(s, ran, err);
    if (status == STET_OK)
        status = judge_far(s, err);
    if (status == STET_OK && s->far_state.asked) {
        bool grew;
        s->far_state.asked = false;
        status = sched_demand_cells(s, &grew, err);
        if (grew)
            sched_wake(s);
        *ran = *ran || grew;
    }
    s->far_state.rounds += *ran;
    if (status == STET_OK && s->far_state.rounds == FAR_ROUNDS && *ran) {
        stet_error why = STET_ERROR_INIT;
        stet_value v = stet_value_object();
        stet_fail(&why, STET_LIMIT, "spaces read each other in a circle that does not come to rest: %d rounds",
                  FAR_ROUNDS);
        stet_value_put(&v, "space", stet_value_string(stet_space_name(s->space)));
        stet_value_put(&v, "error", stet_error_value(&why));
        stet_value_push(&s->report.problems, v);
        stet_error_clear(&why);
        s->report.aside++;
        *ran = false;
    }
    return status;
}

/* What others want of a space is found again from nothing. */
static void forget_wanted(far_space *f) {
    stet_sched *o = f->sched;
    for (size_t i = 0; i < o->want.names.len; i++)
        stet_free(o->want.names.at[i]);
    stet_vec_clear(&o->want.names);
    stet_map_clear(&o->want.named);
    stet_map_clear(&o->want.cells);
    stet_map_clear(&f->asked);
    stet_plan_demand_clear(o->plan);
    f->wanted = false;
}

/* Of the problems of that space only those are told that are problems still. */
static void keep_problems(stet_sched *s, const far_space *f) {
    for (size_t i = stet_value_count(s->report.problems); i-- > 0;) {
        stet_value p = stet_value_at(s->report.problems, i), space = stet_value_get(p, "space"),
                   piece = stet_value_get(p, "piece"), node = stet_value_get(p, "node");
        if (stet_value_type(space) == STET_TYPE_STRING && stet_value_type(node) == STET_TYPE_STRING &&
            strcmp(stet_value_as_string(&space, NULL), stet_space_name(f->space)) == 0 &&
            !stet_sched_fails(f->sched, stet_value_as_string(&piece, NULL), stet_value_as_string(&node, NULL)))
            stet_value_remove_at(&s->report.problems, i);
    }
}

/* What failed elsewhere was wanted when it was asked for, by what actions here had read before. They have run since,
 * and may read something else. */
static stet_status count_again(stet_sched *s, stet_error *err) {
    bool failed = false, grew = true;
    for (size_t i = 0; s->far && i < s->far->at.len; i++)
        failed |= s->far->at.at[i]->failed > 0;
    if (!failed)
        return STET_OK;
    for (size_t i = 0; i < s->far->at.len; i++)
        forget_wanted(s->far->at.at[i]);
    stet_status status = want_all(s, true, err);
    while (grew && status == STET_OK) {
        grew = false;
        for (size_t i = 0; i < s->far->at.len && status == STET_OK; i++) {
            far_space *f = s->far->at.at[i];
            bool more;
            size_t before = stet_map_len(&f->asked);
            if (!f->wanted)
                continue;
            f->wanted = false;
            status = sched_demand_cells(f->sched, &more, err);
            if (status == STET_OK && more) {
                grew = true;
                status = want_all(f->sched, true, err);
            }
            f->wanted |= stet_map_len(&f->asked) > before;
        }
    }
    for (size_t i = 0; i < s->far->at.len && status == STET_OK; i++) {
        far_space *f = s->far->at.at[i];
        f->wanted = false;
        stet_value_release(f->sched->blocked.failed_before);
        f->sched->blocked.failed_before = stet_value_array();
        status = sched_report_count(f->sched, -1, err);
        f->failed = f->sched->report.failed;
        keep_problems(s, f);
    }
    return status;
}

stet_status sched_far_end(stet_sched *s, stet_error *err) {
    bool others;
    stet_status status = s->root ? STET_OK : count_again(s, err);
    if (status != STET_OK)
        return status;
    for (size_t i = 0; s->far && i < s->far->at.len; i++) {
        const far_space *f = s->far->at.at[i];
        stet_value before = stet_sched_failed_before(f->sched);
        for (size_t k = 0;
             k < stet_value_count(before) && f->failed > 0 && stet_value_count(s->blocked.failed_before) < 100; k++) {
            stet_value v = stet_value_retain(stet_value_at(before, k));
            stet_value_put(&v, "space", stet_value_string(stet_space_name(f->space)));
            if (place_of(s, v) < stet_value_count(s->report.problems)) /* told as one that ran and failed */
                stet_value_release(v);
            else
                stet_value_push(&s->blocked.failed_before, v);
        }
    }
    status = reads_others(s, &others, err);
    if (status != STET_OK || !others || s->root)
        return status;
    /* What came after the last look is news. Where the looks were given up, or were for something else, it would be news
     * for ever. */
    if (!s->stopped && !s->opts.observe_only && s->far_state.rounds < FAR_ROUNDS && !sched_has_trouble(s)) {
        s->far_state.seen = s->far_state.looked;
        return STET_OK;
    }
    stet_standing all;
    status = stet_standing_load_far(s->space, s->branch, &all, err);
    if (status == STET_OK) {
        s->far_state.seen = hash_of(&all);
        stet_standing_release(&all);
    }
    return status;
}

bool sched_far_aside(const stet_sched *s) {
    const stet_sched *root = s->root ? s->root : s;
    bool any = false;
    for (size_t i = 0; root->far && i < root->far->at.len; i++)
        any |= root->far->at.at[i]->aside > 0;
    return any;
}

void sched_far_count(const stet_sched *s, stet_sched_report *out) {
    for (size_t i = 0; s->far && i < s->far->at.len; i++) {
        out->failed += s->far->at.at[i]->failed;
        out->aside += s->far->at.at[i]->aside;
    }
}
