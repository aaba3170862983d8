/* sched_pending.c - loads dirty and unknown actions a window at a time, and unloads finished ones.
 *
 * It also finds who reads what changed.
 */

#include "scheduler/sched_internal.h"

void sched_doc_parts(const stet_sched *s, uint32_t doc, const char **uuid, stet_docname *name) {
    size_t len;
    const char *key = stet_plan_doc_name(s->plan, doc, &len);
    *uuid = key[0] ? key : NULL;
    name->scope = key + strlen(key) + 1;
    name->id = name->scope + strlen(name->scope) + 1;
}

bool sched_doc_is_far(const stet_sched *s, uint32_t doc) {
    size_t len;
    return stet_plan_doc_name(s->plan, doc, &len)[0] != 0;
}

/* One whose piece or node is gone is passed over: its row is a left-over that `stet gc` removes. */
static stet_status pass_over(stet_status status, stet_error *mine, stet_error *err) {
    if (status == STET_NOT_FOUND)
        status = STET_OK;
    if (status != STET_OK)
        stet_error_move(err, mine);
    stet_error_clear(mine);
    return status;
}

/* Loads one by its number. */
stet_status sched_load_number(stet_sched *s, int64_t number, stet_arena *arena, stet_error *err) {
    stet_error mine = STET_ERROR_INIT;
    stet_memo_action x;
    uint32_t id;
    stet_arena_clear(arena);
    stet_status status = stet_memo_get(s->memo, number, arena, &x, &mine);
    if (status == STET_OK)
        status = sched_load_action(s, x.piece, x.action, number, &x, &id, &mine);
    return pass_over(status, &mine, err);
}

/* Those that are not loaded yet. */
typedef struct number_list {
    stet_sched *s;
    STET_VEC(int64_t) at;
} number_list;

static stet_status note_number(void *ctx, int64_t number, stet_error *err) {
    number_list *l = ctx;
    (void)err;
    if (!stet_map_get(&l->s->numbers, &number, sizeof number))
        *stet_vec_add(&l->at) = number;
    return STET_OK;
}

stet_status sched_readers(void *ctx, stet_plan *p, uint32_t doc, stet_pathref path, stet_change_kind kind,
                          bool *covered, stet_error *err) {
    stet_sched *s = ctx;
    (void)p;
    const char *uuid;
    stet_docname name;
    number_list l = {.s = s};
    sched_doc_parts(s, doc, &uuid, &name);
    /* One snapshot for all the look-ups: beginning one for each costs more than the look-up. */
    bool held = s->marks.snapshot != SCHED_SNAPSHOT_HELD && stet_memo_hold(s->space);
    if (held && s->marks.snapshot == SCHED_SNAPSHOT_WANTED) {
        s->marks.snapshot = SCHED_SNAPSHOT_HELD; /* until the plan has said what is next */
        held = false;
    }
    stet_status status = stet_memo_readers(s->memo, uuid, &name, path, kind, note_number, &l, covered, err);
    stet_arena arena = STET_ARENA_INIT;
    for (size_t i = 0; i < l.at.len && status == STET_OK; i++)
        status = sched_load_number(s, l.at.at[i], &arena, err);
    stet_memo_let_go(s->space, held);
    stet_arena_release(&arena);
    stet_vec_release(&l.at);
    return status;
}

typedef struct mark_entry {
    int64_t number;
    const char *piece, *action; /* of unknown ones: all that is needed of them is the name */
} mark_entry;

typedef struct mark_list {
    stet_sched *s;
    STET_VEC(mark_entry) fresh; /* not loaded yet */
    const char *piece;
    stet_arena arena;
    size_t seen;
    int64_t last;
} mark_list;

/* It failed in this round, and nobody can say what that rests on: the next round is the next chance. */
static bool tried(const stet_sched *s, const sched_action *a) {
    return a->doubtful && a->tried == sched_round(s);
}

static stet_status note_mark(void *ctx, int64_t number, const char *piece, const char *action, stet_action_state state,
                             stet_error *err) {
    mark_list *l = ctx;
    stet_sched *s = l->s;
    (void)err;
    l->seen++;
    l->last = number;
    if (!piece)
        return STET_OK;
    const stet_slot *slot = stet_map_get(&s->numbers, &number, sizeof number);
    if (slot) {
        /* One that was loaded before may have been marked since, by another process. */
        uint32_t id = (uint32_t)slot->n;
        sched_action *a = stet_plan_data(s->plan, id);
        a->verify |= state == STET_STATE_UNKNOWN;
        if (tried(s, a))
            return STET_OK;
        if (!stet_plan_is_dirty(s->plan, id) && !stet_plan_is_unknown(s->plan, id))
            stet_plan_mark(s->plan, id, state == STET_STATE_UNKNOWN ? STET_PLAN_UNKNOWN : STET_PLAN_DIRTY,
                           sched_now(s));
        return STET_OK;
    }
    mark_entry e = {.number = number};
    if (state == STET_STATE_UNKNOWN) {
        if (!l->piece || strcmp(l->piece, piece) != 0)
            l->piece = stet_arena_strdup(&l->arena, piece);
        e.piece = l->piece;
        e.action = stet_arena_strdup(&l->arena, action);
    }
    *stet_vec_add(&l->fresh) = e;
    return STET_OK;
}

/* A record that says it is unknown tells nothing else. One that is in memory under its name only (its number was not
 * known then) is marked here. */
static stet_status load_unknown(stet_sched *s, const mark_entry *e, stet_error *err) {
    stet_error mine = STET_ERROR_INIT;
    uint32_t id;
    stet_status status = sched_load_action(s, e->piece, e->action, e->number, NULL, &id, &mine);
    if (status == STET_OK)
        ((sched_action *)stet_plan_data(s->plan, id))->verify = true;
    if (status == STET_OK && !tried(s, stet_plan_data(s->plan, id)) && !stet_plan_is_dirty(s->plan, id) &&
        !stet_plan_is_unknown(s->plan, id))
        stet_plan_mark(s->plan, id, STET_PLAN_UNKNOWN, sched_now(s));
    return pass_over(status, &mine, err);
}

static stet_status load_dirty(stet_sched *s, int64_t number, stet_arena *arena, stet_error *err) {
    stet_status status = sched_load_number(s, number, arena, err);
    const stet_slot *slot = status == STET_OK ? stet_map_get(&s->numbers, &number, sizeof number) : NULL;
    if (slot && !stet_plan_is_dirty(s->plan, (uint32_t)slot->n) && !stet_plan_is_unknown(s->plan, (uint32_t)slot->n))
        stet_plan_mark(s->plan, (uint32_t)slot->n, STET_PLAN_DIRTY, sched_now(s));
    return status;
}

void sched_wake(stet_sched *s) {
    if (s->marks.surveyed == 0)
        return;
    s->marks.surveyed = s->marks.last = 0;
    s->marks.has_more = s->marks.recheck = true;
    stet_plan_known(s->plan, false);
}

/* Stands for all that is wanted: pieces as they were set up, and cells with where they lead now. */
static stet_hash demand_hash(stet_sched *s) {
    stet_buf b = STET_BUF(0);
    const void *key;
    size_t len;
    stet_slot *slot;
    stet_buf_printf(&b, "3 %d\n",
                    s->preflight.active); /* counts up when more makes an action needed: 3: files that it may make */
    for (size_t i = 0; stet_map_next(&s->pieces, &i, &key, &len, &slot);) {
        const stet_piece *p = ((sched_piece *)slot->p)->piece;
        if (((sched_piece *)slot->p)->whole)
            stet_buf_printf(&b, "%s %lld\n", p->key, (long long)p->seq);
    }
    size_t place;
    for (size_t i = 0; stet_map_next(&s->want.cells, &i, &key, &place, &slot);) {
        uint32_t doc;
        memcpy(&doc, key, sizeof doc);
        const char *name = stet_plan_doc_name(s->plan, doc, &len);
        stet_buf_printf(&b, "%zu %zu\n", len, place - sizeof doc);
        stet_buf_add(&b, name, len);
        stet_buf_add(&b, (const char *)key + sizeof doc, place - sizeof doc);
    }
    for (size_t i = 0; i < s->preflight.node_count; i++)
        stet_buf_printf(&b, "%s\n", s->preflight.nodes[i]);
    for (size_t i = 0; i < s->preflight.read_count; i++) {
        const stet_tx_read_record *r = &s->preflight.reads[i];
        stet_buf_printf(&b, "%s\n%s\n%s\n%zu\n", r->space == s->space ? "" : stet_space_uuid(r->space), r->name.id,
                        r->name.scope ? r->name.scope : "", r->path.len);
        stet_buf_add(&b, r->path.bytes, r->path.len);
    }
    stet_hash h = stet_hash_of(b.data ? b.data : "", b.len);
    stet_buf_release(&b);
    return h;
}

stet_status sched_survey(stet_sched *s, stet_survey *out, stet_error *err) {
    s->marks.surveyed = 0;
    s->marks.demand = demand_hash(s);
    if (!s->memo->durable || s->opts.observe_only)
        return STET_NOT_FOUND;
    stet_status status = stet_memo_survey(s->memo, s->marks.demand, out, err);
    if (status == STET_OK)
        s->marks.surveyed = out->through;
    return status;
}

stet_status sched_load_more(stet_sched *s, stet_error *err) {
    mark_list l = {.s = s};
    stet_arena arena = STET_ARENA_INIT;
    s->marks.recheck = false;
    /* What is of no use now may be of use to one that is not loaded yet: then there is no telling without all. */
    size_t limit = stet_plan_any_parked(s->plan) ? SIZE_MAX : s->marks.window;
    stet_status status = stet_memo_pending(s->memo, s->marks.surveyed, s->marks.last, limit, note_mark, &l, err);
    s->report.looked += l.seen;
    s->marks.has_more = l.seen == limit;
    s->marks.last = l.last;
    s->marks.remaining = l.seen < s->marks.remaining ? s->marks.remaining - l.seen : 0;
    bool held = status == STET_OK && l.fresh.len > 1 && stet_memo_hold(s->space);
    for (size_t i = 0; i < l.fresh.len && status == STET_OK; i++)
        status = l.fresh.at[i].piece ? load_unknown(s, &l.fresh.at[i], err)
                                     : load_dirty(s, l.fresh.at[i].number, &arena, err);
    stet_memo_let_go(s->space, held);
    stet_plan_known(s->plan, !s->marks.has_more);
    stet_vec_release(&l.fresh);
    stet_arena_release(&l.arena);
    stet_arena_release(&arena);
    return status;
}

/* Others have written: what is dirty or unknown in memory may have run there. Nobody may be interested in it here, and it would
 * stay so for as long as this process lives. */
static stet_status look_at_dirty(stet_sched *s, stet_error *err) {
    stet_status status = STET_OK;
    bool held = stet_memo_hold(s->space);
    for (size_t i = 0; i < stet_plan_count(s->plan) && status == STET_OK; i++) {
        const sched_action *a = stet_plan_data_there(s->plan, (uint32_t)i);
        if (a && (stet_plan_is_dirty(s->plan, a->id) || stet_plan_is_unknown(s->plan, a->id)) &&
            !stet_plan_is_aside(s->plan, a->id) && !sched_async_running(s, a))
            status = sched_look_again(s, a->id, err);
    }
    stet_memo_let_go(s->space, held);
    return status;
}

stet_status sched_load_pending(stet_sched *s, stet_error *err) {
    stet_survey survey;
    bool others = s->marks.changed_by_others;
    s->marks.changed_by_others = s->marks.children_remade = false;
    s->marks.last = 0;
    s->marks.remaining = 0;
    s->marks.version = stet_observe_version(s->space);
    stet_status status = STET_OK;
    if (others && s->batch.members.len == 0) /* of what is in memory: what is loaded from here on is as recorded */
        status = look_at_dirty(s, err);
    if (status == STET_OK && s->marks.surveyed > 0)
        status = sched_survey(s, &survey, err);
    if (status == STET_OK || status == STET_NOT_FOUND)
        status = sched_load_more(s, err);
    if (status == STET_OK && s->marks.has_more) {
        status = stet_memo_count(s->memo, NULL, &s->marks.remaining, err);
        s->marks.remaining = s->marks.remaining > s->marks.window ? s->marks.remaining - s->marks.window : 0;
    }
    return status == STET_OK ? sched_meet_failures(s, err) : status;
}

#define UNLOAD_AT_ONCE 1024 /* looking whether any may go costs a look at all that are loaded */

void sched_unload(stet_sched *s) {
    if (!s->memo->durable || stet_plan_loaded(s->plan) <= 2 * s->marks.window) {
        stet_vec_clear(&s->batch.stored);
        return;
    }
    for (size_t i = 0; i < s->batch.members.len; i++)
        *stet_vec_add(&s->batch.stored) = s->batch.members.at[i];
    if (s->batch.stored.len < (s->marks.window < UNLOAD_AT_ONCE ? s->marks.window : UNLOAD_AT_ONCE))
        return;
    bool parked = stet_plan_any_parked(s->plan);
    for (size_t i = 0; i < s->batch.stored.len && !parked; i++) {
        uint32_t id = s->batch.stored.at[i];
        sched_action *a = stet_plan_data(s->plan, id);
        /* A coordinator stays: its children refer to it. */
        if (!a || !a->number || a->role != STET_CHILD_NONE || a->came_back || a->conflicts > 0 || a->failed ||
            a->effect || a->has_cells || a->asked || !stet_plan_unload(s->plan, id))
            continue;
        stet_map_remove(&s->numbers, &a->number, sizeof a->number);
        stet_map_put(&s->marks.unloaded, &a->number, sizeof a->number, (stet_slot){.n = 1});
        sched_action_free(a);
    }
    stet_vec_clear(&s->batch.stored);
}
