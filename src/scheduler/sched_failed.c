/* sched_failed.c - what failed, and what has to wait for it.
 *
 * Invariants
 *   F1. While anything runs, every action of the branch whose last run failed is in memory.
 *   F2. An action that reads what a failed, a declined or a waiting action makes, or may make, waits. A waiting action
 *       is not stored: it stays as dirty as it was, keeps its last good output, and is never counted as a failure.
 *       Synchronous actions are run first and judged by what they read. Asynchronous actions and effects are judged
 *       before they begin, by what their inputs lead to; children also by what the list leads to that they are made
 *       from. A command is judged by what it read in its last run, too; if something of that has changed, only what it
 *       reads now counts, and it tells before it begins (stet_run_waits).
 *   F3. An action does not wait for one that waits for the action itself. So in a cycle there is always one failure
 *       that the others wait for. Nodes that read each other by their pattern have a fixed order (graph/order.c): none
 *       waits for one that comes later, so it is always the same one that fails.
 *   F4. All that a waiting action has read is among its reads in the plan, so that it is wanted, and the success of what
 *       it waits for is noticed. What is not up to date among it runs first: it may lead elsewhere afterwards. So does
 *       what is not up to date among the reads of an action that failed. Of one that failed before and waits now
 *       nothing is known any more: it needs all that it is bound to, as one that never ran.
 *   F5. An up-to-date action downstream of a failed one counts as waiting: its output is as old as the last success of
 *       the failed action. `below` says so; it is computed before anything runs while there is a failure.
 *   F6. All this holds across spaces: a cell of another space is judged by the actions that write it there, which are
 *       settled first.
 *   F7. Asynchronous actions and effects do not begin while something that their inputs lead to is outdated, whether
 *       something has failed or not: so whether they wait does not depend on who ran first.
 */

#include "scheduler/sched_internal.h"

#define MAX_POSTPONED 3
#define MAX_BEHIND    20 /* as many links one behind the other; more means that they form a cycle */
#define MAX_CAUSES    1000

static bool pending(const stet_sched *s, const sched_action *a) {
    return stet_plan_is_dirty(s->plan, a->id) || stet_plan_is_unknown(s->plan, a->id);
}

bool sched_fails(const stet_sched *s, const sched_action *a) {
    return a->failed && !stet_plan_is_left(s->plan, a->id) && !stet_plan_is_aside(s->plan, a->id) &&
           (a->asked || (s->stopped && a->ran) || !pending(s, a)); /* what stopped the others has not run again */
}

/* Others have run it since. */
static stet_status look_at_record(stet_sched *s, sched_action *a, stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    stet_memo_action x = {0};
    stet_error mine = STET_ERROR_INIT;
    stet_status status = stet_memo_load(s->memo, a->piece->piece->key, a->node, &arena, &x, &mine);
    if (status == STET_OK && x.observed && stet_hash_equal(x.implementation, a->fingerprint) &&
        stet_hash_equal(x.runtime, s->runtime)) {
        a->failed = x.failed;
        if (a->failed)
            sched_note(s, a);
        if (sched_restorable(a))
            sched_restore(s, a, &x);
    }
    stet_arena_release(&arena);
    if (status == STET_NOT_FOUND)
        status = STET_OK;
    if (status != STET_OK)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    return status;
}

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

stet_status sched_meet_failures(stet_sched *s, stet_error *err) {
    stet_numbers failed = {0};
    stet_arena arena = STET_ARENA_INIT;
    stet_status status = stet_memo_failed(s->memo, &failed, err);
    for (size_t i = 0; i < failed.len && status == STET_OK; i++) {
        const stet_slot *slot = stet_map_get(&s->numbers, &failed.at[i], sizeof *failed.at);
        if (!slot) {
            status = sched_load_number(s, failed.at[i], &arena, err);
            slot = stet_map_get(&s->numbers, &failed.at[i], sizeof *failed.at);
        }
        const sched_action *a = slot ? stet_plan_data_there(s->plan, (uint32_t)slot->n) : NULL;
        if (a)
            sched_note(s, a);
    }
    s->blocked.any = false;
    s->blocked.is_stale = true;
    sched_action *a;
    for (size_t i = 0; status == STET_OK && (a = sched_noted(s, &i));) {
        bool listed =
            a->number && failed.len && bsearch(&a->number, failed.at, failed.len, sizeof *failed.at, by_number) != NULL;
        if (s->memo->durable && a->number && listed != a->failed && !pending(s, a))
            status = look_at_record(s, a, err);
        s->blocked.any |= a->failed || a->declined;
    }
    stet_arena_release(&arena);
    stet_numbers_release(&failed);
    return status;
}

/* Whoever reads what the coordinators of a child make reads what the child makes, too. */
static stet_status add_coordinators(stet_sched *s, const sched_action *a, stet_plan_nodes *out, stet_error *err) {
    stet_status status = STET_OK;
    while (a && status == STET_OK) {
        stet_value parent = stet_value_get(a->row, "parent");
        uint32_t id;
        if (stet_value_type(parent) != STET_TYPE_STRING)
            break;
        stet_error why = STET_ERROR_INIT;
        status = sched_load(s, a->piece->piece->key, stet_value_as_string(&parent, NULL), &id, &why);
        if (status == STET_OK)
            *stet_vec_add(out) = id;
        a = status == STET_OK ? stet_plan_data(s->plan, id) : NULL;
        if (status == STET_NOT_FOUND) /* the coordinator is gone, and nobody reads what it made */
            status = STET_OK;
        else if (status != STET_OK)
            stet_error_move(err, &why);
        stet_error_clear(&why);
    }
    return status;
}

stet_status sched_retry(stet_sched *s, stet_error *err) {
    if (s->blocked.retried || s->preflight.active || !s->opts.retry_failed)
        return STET_OK;
    s->blocked.retried = true;
    stet_plan_nodes retried = {0}, below = {0};
    sched_action *a;
    for (size_t i = 0; (a = sched_noted(s, &i));) {
        if (!a->failed || pending(s, a))
            continue;
        a->asked = true;
        stet_plan_mark(s->plan, a->id, STET_PLAN_DIRTY, INT64_MIN / 2);
        *stet_vec_add(&retried) = a->id;
    }
    /* What is downstream of them is loaded, up to date or not: so that ranks put effects behind them that they lead to
     * over others (F7). */
    stet_status status = STET_OK;
    for (size_t i = 0, own = retried.len; i < own && status == STET_OK; i++)
        status = add_coordinators(s, stet_plan_data(s->plan, retried.at[i]), &retried, err);
    if (status == STET_OK && retried.len > 0)
        status = stet_plan_downstream(s->plan, retried.at, retried.len, &below, err);
    stet_vec_release(&retried);
    stet_vec_release(&below);
    return status;
}

void sched_fell(stet_sched *s, const sched_action *a) {
    *stet_vec_add(&s->blocked.new_roots) = a->id;
}

/* Can what it makes not be had, now or later in this settling? */
static bool in_trouble(const stet_sched *in, const sched_action *maker) {
    return stet_plan_is_left(in->plan, maker->id) || maker->declined || maker->below_failed ||
           (maker->failed && (!pending(in, maker) || stet_plan_is_aside(in->plan, maker->id)));
}

/* Of those that wait, some may wait for nothing any more. */
static void release_waiting(stet_sched *s) {
    const sched_action *a;
    for (size_t i = 0; (a = sched_noted(s, &i));) {
        if (!stet_plan_is_left(s->plan, a->id) || !a->in || !sched_far_knows(s, a->in))
            continue;
        const sched_action *cause = stet_plan_data(a->in->plan, a->cause);
        if (!cause || !in_trouble(a->in, cause))
            stet_plan_release(s->plan, a->id);
    }
}

void sched_rose(stet_sched *s) {
    s->blocked.is_stale = true;
}

static bool is_root(const stet_sched *s, const sched_action *a) {
    return a->declined || (a->failed && (!pending(s, a) || stet_plan_is_aside(s->plan, a->id)));
}

/* What `below` follows from: failed and declined actions, and after the first `*own` of them whoever reads what fails
 * in another space. */
static stet_status find_roots(stet_sched *s, stet_plan_nodes *roots, size_t *own, stet_error *err) {
    stet_status status = STET_OK;
    sched_action *a;
    for (size_t i = 0; (a = sched_noted(s, &i));)
        if (is_root(s, a))
            *stet_vec_add(roots) = a->id;
    *own = roots->len;
    for (size_t i = 0; i < stet_plan_count(s->plan) && s->blocked.any_far && status == STET_OK; i++) {
        bool far = false;
        a = stet_plan_data_there(s->plan, (uint32_t)i);
        if (a && !is_root(s, a))
            status = sched_waits_far(s, a, &far, err);
        if (far)
            *stet_vec_add(roots) = a->id;
    }
    return status;
}

static bool same_nodes(const stet_plan_nodes *a, const stet_plan_nodes *b) {
    return a->len == b->len && (a->len == 0 || memcmp(a->at, b->at, a->len * sizeof *a->at) == 0);
}

static bool may_be_below(const sched_action *a) {
    return a && !a->failed && !a->declined;
}

/* From the beginning. The walk down is made again only if it could find others than the last one. */
static stet_status find_all_below(stet_sched *s, stet_error *err) {
    stet_plan_nodes roots = {0};
    size_t own;
    for (size_t i = 0; i < s->blocked.below.len; i++) {
        sched_action *a = stet_plan_data(s->plan, s->blocked.below.at[i]);
        if (a)
            a->below_failed = false;
    }
    stet_status status = find_roots(s, &roots, &own, err);
    bool known =
        status == STET_OK && s->blocked.shape == stet_plan_shape(s->plan) && same_nodes(&roots, &s->blocked.roots);
    if (!known) {
        uint64_t shape = 0;
        stet_vec_release(&s->blocked.roots);
        s->blocked.roots = roots;
        /* Again if actions were loaded on the way: one may read what the walk had left behind. */
        while (status == STET_OK && shape != stet_plan_shape(s->plan)) {
            shape = stet_plan_shape(s->plan);
            stet_vec_clear(&s->blocked.below);
            if (roots.len > 0)
                status = stet_plan_downstream(s->plan, roots.at, roots.len, &s->blocked.below, err);
        }
        s->blocked.shape = status == STET_OK ? shape : 0;
    } else {
        stet_vec_release(&roots);
    }
    for (size_t i = 0; i < s->blocked.below.len && status == STET_OK; i++) {
        sched_action *a = stet_plan_data(s->plan, s->blocked.below.at[i]);
        if (may_be_below(a))
            a->below_failed = true;
    }
    for (size_t i = own; i < s->blocked.roots.len && status == STET_OK; i++) /* whether it ran or not */
        ((sched_action *)stet_plan_data(s->plan, s->blocked.roots.at[i]))->below_failed = true;
    return status;
}

/* Adds what is downstream of those that failed since. */
static stet_status find_more_below(stet_sched *s, stet_error *err) {
    stet_plan_nodes below = {0};
    stet_status status = stet_plan_downstream(s->plan, s->blocked.new_roots.at, s->blocked.new_roots.len, &below, err);
    s->blocked.shape = 0; /* not what was found for s->blocked.roots any more */
    for (size_t i = 0; i < below.len && status == STET_OK; i++) {
        sched_action *a = stet_plan_data(s->plan, below.at[i]);
        if (!may_be_below(a) || a->below_failed)
            continue;
        a->below_failed = true;
        *stet_vec_add(&s->blocked.below) = a->id;
    }
    stet_vec_release(&below);
    return status;
}

stet_status sched_find_below(stet_sched *s, stet_error *err) {
    bool all = s->blocked.is_stale;
    if (!all && s->blocked.new_roots.len == 0)
        return STET_OK;
    stet_status status = all ? find_all_below(s, err) : find_more_below(s, err);
    const stet_plan_nodes *roots = all ? &s->blocked.roots : &s->blocked.new_roots;
    for (size_t i = 0; i < roots->len; i++) /* not of itself: it fails */
        stet_plan_set_blocks(s->plan, roots->at[i]);
    if (status == STET_OK) {
        stet_vec_clear(&s->blocked.new_roots);
        s->blocked.is_stale = false;
        if (all)
            release_waiting(s);
    }
    return status;
}

typedef STET_VEC(stet_plan_read) read_list;

bool sched_has_trouble(const stet_sched *s) {
    return s->blocked.any || s->blocked.any_far;
}

/* Does what this one waits for come down to `a` itself? What it waited for first may wait itself by now. */
static bool waits_for(stet_sched *s, stet_sched *in, const sched_action *waiting, const sched_action *a) {
    for (int hops = 0; waiting && stet_plan_is_left(in->plan, waiting->id); hops++) {
        if ((waiting->cause == a->id && waiting->in == s) || hops == MAX_CAUSES)
            return true;
        if (!waiting->in || !sched_far_knows(s, waiting->in))
            return false;
        in = waiting->in;
        waiting = stet_plan_data(in->plan, waiting->cause);
    }
    return false;
}

/* Are they in one circle, of which this one has its turn first? */
static bool comes_before(const sched_action *a, const sched_action *maker) {
    return a->circle && a->circle == maker->circle && a->turn < maker->turn;
}

static sched_turn turn_of(stet_sched *s, const sched_action *a, stet_sched *in, const sched_action *maker) {
    if (!maker || maker == a || comes_before(a, maker))
        return SCHED_GO;
    if (stet_plan_is_left(in->plan, maker->id))
        return waits_for(s, in, maker, a) ? SCHED_GO : SCHED_WAITS; /* F3 */
    if (in_trouble(in, maker))
        return SCHED_WAITS;
    if (!maker->failed || (in != s && !in->settling))
        return SCHED_GO;
    return a->postponed < MAX_POSTPONED ? SCHED_POSTPONED : SCHED_GO; /* in a circle it may come later */
}

/* Those that write what is read or may write there, and the scheduler that they are of. What can't be asked is
 * nobody's. */
static stet_sched *makers_of(stet_sched *s, const stet_plan_read *read, stet_plan_nodes *out) {
    stet_sched *in = s;
    stet_vec_clear(out);
    if (!sched_doc_is_far(s, read->doc))
        stet_plan_makers(s->plan, read->doc, read->path, out);
    else if (sched_far_makers(s, read->doc, read->path, &in, out, NULL) != STET_OK)
        stet_vec_clear(out);
    return in;
}

/* Is it going to run, once somebody wants it? */
static bool may_run(const stet_sched *s, const sched_action *a) {
    return pending(s, a) && !stet_plan_is_left(s->plan, a->id) && !stet_plan_is_aside(s->plan, a->id);
}

/* `*outdated`: something that it read is going to run. That comes first: it may lead elsewhere afterwards. */
static sched_turn judge(stet_sched *s, sched_action *a, const read_list *reads, bool *outdated) {
    stet_plan_nodes makers = {0};
    sched_turn turn = SCHED_GO;
    *outdated = false;
    for (size_t i = 0; i < reads->len; i++) {
        stet_sched *in = makers_of(s, &reads->at[i], &makers);
        for (size_t k = 0; k < makers.len; k++) {
            const sched_action *maker = stet_plan_data(in->plan, makers.at[k]);
            sched_turn one = turn_of(s, a, in, maker);
            if (one == SCHED_WAITS) {
                bool left = stet_plan_is_left(in->plan, makers.at[k]) && maker->in;
                if (in == s)
                    stet_plan_set_blocks(s->plan, makers.at[k]);
                a->cause = left ? maker->cause : makers.at[k];
                a->in = left ? maker->in : in;
            }
            if (turn != SCHED_WAITS && one != SCHED_GO)
                turn = one;
            *outdated = *outdated || (one == SCHED_GO && in == s && maker && maker != a && !comes_before(a, maker) &&
                                      may_run(s, maker));
        }
    }
    stet_vec_release(&makers);
    return turn;
}

static bool any_far(const stet_sched *s, const stet_plan_read *at, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (sched_doc_is_far(s, at[i].doc))
            return true;
    return false;
}

/* Adds a read to a set of them; false: it is in there. */
static bool is_new(stet_map *seen, const stet_plan_read *r, stet_buf *key) {
    const int32_t head[] = {(int32_t)r->doc, (int32_t)r->kind};
    stet_buf_clear(key);
    stet_buf_add(key, head, sizeof head);
    stet_buf_add(key, r->path.bytes, r->path.len);
    if (stet_map_get(seen, key->data, key->len))
        return false;
    stet_map_put(seen, key->data, key->len, (stet_slot){.n = 1});
    return true;
}

/* F4. Actions that nothing needed so far, here and in other spaces, are looked at if some of it is new. Each read is kept
 * once: an action that is put off again and again is given its own reads each time. */
bool sched_also_reads(stet_sched *s, sched_action *a, const stet_plan_read *more, size_t count) {
    sched_note(s, a);
    size_t before = stet_plan_reads(s->plan, a->id, NULL, 0);
    if (!a->own_reads)
        a->own_reads = (uint32_t)before + 1;
    stet_plan_read *all = stet_alloc((before + count + 1) * sizeof *all);
    stet_plan_reads(s->plan, a->id, all, before);
    stet_map seen = {0};
    stet_buf key = STET_BUF(0);
    size_t len = before;
    for (size_t i = 0; i < before; i++)
        is_new(&seen, &all[i], &key);
    for (size_t i = 0; i < count; i++)
        if (is_new(&seen, &more[i], &key))
            all[len++] = more[i];
    stet_buf_release(&key);
    stet_map_release(&seen);
    bool gained = stet_plan_set_reads(s->plan, a->id, all, len);
    if (gained)
        sched_wake(s);
    s->far_state.gained |= gained && any_far(s, more, count);
    stet_free(all);
    return gained;
}

void sched_forget_waiting(stet_sched *s, sched_action *a) {
    size_t count = a->own_reads ? a->own_reads - 1 : 0;
    a->postponed = 0;
    if (!a->own_reads)
        return;
    a->own_reads = 0;
    stet_plan_read *own = stet_alloc((count + 1) * sizeof *own);
    size_t there = stet_plan_reads(s->plan, a->id, own, count);
    stet_plan_set_reads(s->plan, a->id, own, there < count ? there : count);
    stet_free(own);
}

static void add_reads(stet_sched *s, const stet_tx_read_record *at, size_t count, read_list *out) {
    for (size_t i = 0; i < count; i++) {
        const char *uuid = at[i].space == s->space ? NULL : stet_space_uuid(at[i].space);
        *stet_vec_add(out) = (stet_plan_read){sched_doc(s, uuid, &at[i].name), at[i].path, at[i].kind};
    }
}

/* BEGINS: it has not run yet, and must not do so on what is outdated. FAILED, MADE: it ran, which does not count if
 * something is outdated that it read: that may turn out to wait, and then this one waits, too. */
typedef enum { BEGINS, FAILED, MADE } phase;

static sched_turn conclude(stet_sched *s, sched_action *a, const read_list *l, phase at) {
    bool outdated, far = at == BEGINS && any_far(s, l->at, l->len), hidden = s->marks.surveyed > 0;
    sched_turn turn = judge(s, a, l, &outdated);
    hidden &= at != MADE;
    if (turn == SCHED_GO && !(outdated || hidden || far))
        return SCHED_GO;
    bool gained = sched_also_reads(s, a, l->at, l->len);
    outdated |= gained && hidden;
    if (outdated && a->postponed < (turn == SCHED_GO && at == BEGINS ? MAX_BEHIND : MAX_POSTPONED)) {
        turn = SCHED_POSTPONED;
    } else if (turn == SCHED_GO && far && gained) {
        a->in = NULL;
        return SCHED_LATER;
    }
    a->postponed += turn == SCHED_POSTPONED;
    return turn;
}

sched_turn sched_turn_of(stet_sched *s, sched_action *a, const stet_tx_read_record *at, size_t count, bool failed) {
    read_list l = {0};
    add_reads(s, at, count, &l);
    sched_turn turn = conclude(s, a, &l, failed ? FAILED : MADE);
    stet_vec_release(&l);
    return turn;
}

/* A child is there because of a list: while that waits nobody knows whether the child still is. */
static void add_list_of(stet_sched *s, const sched_action *a, stet_arena *arena, read_list *out) {
    stet_value parent = stet_value_get(a->row, "parent");
    if (!a->child_doc || stet_value_type(parent) != STET_TYPE_STRING)
        return;
    stet_buf name = STET_BUF(0);
    stet_buf_printf(&name, "%s/%s", a->piece->piece->name, stet_value_as_string(&parent, NULL));
    uint32_t id = stet_plan_find(s->plan, name.data, name.len);
    stet_buf_release(&name);
    size_t count = id == STET_PLAN_NONE ? 0 : stet_plan_reads(s->plan, id, NULL, 0);
    stet_plan_read *reads = stet_arena_alloc(arena, (count + 1) * sizeof *reads);
    if (count)
        stet_plan_reads(s->plan, id, reads, count);
    for (size_t i = 0; i < count; i++)
        *stet_vec_add(out) = reads[i];
}

/* Adds the makers of what is read that were not met before. */
static void add_makers(stet_sched *s, const stet_plan_read *reads, size_t count, stet_map *met, stet_plan_nodes *todo) {
    stet_plan_nodes makers = {0};
    for (size_t i = 0; i < count; i++) {
        if (sched_doc_is_far(s, reads[i].doc))
            continue; /* F6: settled first */
        stet_vec_clear(&makers);
        stet_plan_makers(s->plan, reads[i].doc, reads[i].path, &makers);
        for (size_t k = 0; k < makers.len; k++)
            if (!stet_map_get(met, &makers.at[k], sizeof *makers.at)) {
                stet_map_put(met, &makers.at[k], sizeof *makers.at, (stet_slot){.n = 1});
                *stet_vec_add(todo) = makers.at[k];
            }
    }
    stet_vec_release(&makers);
}

/* F7, over any number of actions in between: is one going to run that leads to what it reads? Then it is put behind
 * that one. Ranks tell this only of edges that were known when they were given, and not of those to children and to
 * other pieces. */
static bool behind_outdated(stet_sched *s, const sched_action *a, const read_list *l) {
    stet_map met = {0};
    stet_plan_nodes todo = {0};
    bool found = false;
    uint32_t last = 0;
    stet_map_put(&met, &a->id, sizeof a->id, (stet_slot){.n = 1});
    add_makers(s, l->at, l->len, &met, &todo);
    while (todo.len > 0) {
        uint32_t id = todo.at[--todo.len];
        const sched_action *maker = stet_plan_data(s->plan, id);
        if (!maker || comes_before(a, maker))
            continue;
        if (may_run(s, maker)) {
            found = true;
            last = stet_plan_rank(s->plan, id) > last ? stet_plan_rank(s->plan, id) : last;
        }
        size_t count = stet_plan_reads(s->plan, id, NULL, 0);
        stet_plan_read *reads = stet_alloc((count + 1) * sizeof *reads);
        stet_plan_reads(s->plan, id, reads, count);
        add_makers(s, reads, count, &met, &todo);
        stet_free(reads);
    }
    if (found && stet_plan_rank(s->plan, a->id) <= last)
        stet_plan_set_rank(s->plan, a->id, last + 1);
    stet_map_release(&met);
    stet_vec_release(&todo);
    return found;
}

sched_turn sched_turn_now(action_run *r) {
    const stet_tx_read_record *at;
    size_t count;
    read_list l = {0};
    stet_arena arena = STET_ARENA_INIT;
    stet_tx_reads(r->tx, &arena, &at, &count);
    add_reads(r->s, at, count, &l);
    add_list_of(r->s, r->a, &arena, &l);
    sched_turn turn = conclude(r->s, r->a, &l, BEGINS);
    stet_vec_release(&l);
    stet_arena_release(&arena);
    return turn == SCHED_LATER ? SCHED_GO : turn; /* what its inputs lead to in other spaces was judged before */
}

stet_status sched_turn_before(stet_sched *s, sched_action *a, sched_turn *out, stet_error *err) {
    stet_reader r = {.record = true, .space = sched_space, .ctx = s};
    stet_arena arena = STET_ARENA_INIT;
    stet_value bindings = stet_value_get(a->row, "inputs"), module = stet_value_get(a->row, "module");
    read_list l = {0}, named = {0}; /* all of them, and those without what only its last run tells */
    *out = SCHED_GO;
    stet_status status = s->batch.group ? stet_tx_begin_in(s->batch.group, &r.tx, err)
                                        : stet_tx_begin(s->space, s->branch_name, &r.tx, err);
    if (status != STET_OK)
        return status;
    for (size_t i = 0; i < stet_value_count(bindings); i++) {
        size_t len;
        const char *key = stet_value_key_at(bindings, i, &len);
        stet_path path = STET_PATH_INIT;
        stet_value seen;
        stet_error ignored = STET_ERROR_INIT; /* whoever reads it for a purpose will be told */
        stet_path_push_n(&path, key, len);
        if ((!a->kind->use || a->kind->use(module, key, len) != STET_INPUT_CHOSEN) &&
            stet_reader_binding(&r, bindings, stet_path_ref(&path), STET_RECURSIVE, &seen, &ignored) != STET_OK)
            stet_error_clear(&ignored);
        stet_path_release(&path);
    }
    const stet_tx_read_record *at;
    size_t count;
    stet_tx_reads(r.tx, &arena, &at, &count);
    add_reads(s, at, count, &l);
    add_reads(s, at, count, &named);
    add_list_of(s, a, &arena, &named);
    /* And what a command found while it ran, which its inputs do not name. */
    size_t known = a->kind->asynchronous ? stet_plan_reads(s->plan, a->id, NULL, 0) : 0;
    stet_plan_read *reads = stet_arena_alloc(&arena, (known + 1) * sizeof *reads);
    stet_plan_reads(s->plan, a->id, reads, known);
    for (size_t i = 0; i < known; i++)
        *stet_vec_add(&l) = reads[i];
    add_list_of(s, a, &arena, &l);
    *out = conclude(s, a, &l, BEGINS);
    bool outdated;
    a->unsure = *out == SCHED_WAITS && known > 0 && !a->effect && pending(s, a) && !a->asked && a->kind->reads_first &&
                a->kind->reads_first(module) && judge(s, a, &named, &outdated) == SCHED_GO && !outdated;
    if (a->unsure)
        *out = SCHED_GO;
    stet_vec_release(&named);
    if (*out == SCHED_GO && a->effect && stet_plan_queued(s->plan) > 0 && a->postponed < MAX_BEHIND &&
        behind_outdated(s, a, &l)) {
        a->postponed++;
        *out = SCHED_POSTPONED;
    }
    stet_vec_release(&l);
    stet_arena_release(&arena);
    stet_reader_release(&r);
    stet_tx_abort(r.tx);
    return STET_OK;
}

stet_status sched_waits_far(stet_sched *s, sched_action *a, bool *out, stet_error *err) {
    size_t count = stet_plan_reads(s->plan, a->id, NULL, 0);
    stet_plan_read *reads = stet_alloc((count + 1) * sizeof *reads);
    stet_plan_nodes makers = {0};
    stet_status status = STET_OK;
    *out = false;
    stet_plan_reads(s->plan, a->id, reads, count);
    for (size_t i = 0; i < count && !*out && status == STET_OK; i++) {
        stet_sched *in = NULL;
        if (!sched_doc_is_far(s, reads[i].doc))
            continue;
        stet_vec_clear(&makers);
        status = sched_far_makers(s, reads[i].doc, reads[i].path, &in, &makers, err);
        for (size_t k = 0; in && k < makers.len && !*out; k++) {
            const sched_action *maker = stet_plan_data(in->plan, makers.at[k]);
            *out = maker && turn_of(s, a, in, maker) == SCHED_WAITS;
        }
    }
    stet_vec_release(&makers);
    stet_free(reads);
    return status;
}

/* No mark tells of it: what a waiting action has read is not recorded. */
void sched_far_looked(stet_sched *s, bool ran) {
    for (size_t i = 0; i < stet_plan_count(s->plan); i++) {
        const sched_action *a = stet_plan_data_there(s->plan, (uint32_t)i);
        if (!a || !stet_plan_is_left(s->plan, a->id) || (a->in && !ran))
            continue;
        size_t count = stet_plan_reads(s->plan, a->id, NULL, 0);
        stet_plan_read *reads = stet_alloc((count + 1) * sizeof *reads);
        stet_plan_reads(s->plan, a->id, reads, count);
        if (any_far(s, reads, count))
            stet_plan_release(s->plan, a->id);
        stet_free(reads);
    }
}

stet_status sched_far_judge(stet_sched *s, stet_error *err) {
    stet_status status = STET_OK;
    s->blocked.is_stale = true;
    sched_action *a;
    for (size_t i = 0; s->blocked.any_far && status == STET_OK && (a = sched_noted(s, &i));) {
        bool waits = false;
        if (!a->failed || pending(s, a))
            continue;
        status = sched_waits_far(s, a, &waits, err);
        if (status == STET_OK && waits) {
            a->asked = true;
            stet_plan_mark(s->plan, a->id, STET_PLAN_DIRTY, INT64_MIN / 2);
        }
    }
    release_waiting(s);
    return status;
}

void sched_failed_upstream(stet_sched *s, const sched_action *a) {
    stet_plan_nodes readers = {0};
    size_t count = stet_plan_writes(s->plan, a->id, NULL, 0);
    stet_plan_write small[4], *writes = count <= 4 ? small : stet_alloc(count * sizeof *writes);
    stet_plan_writes(s->plan, a->id, writes, count);
    for (size_t i = 0; i < count; i++)
        stet_plan_readers(s->plan, writes[i].doc, writes[i].path, STET_KEYSET, &readers);
    for (size_t i = 0; i < readers.len; i++) {
        sched_action *r = stet_plan_data(s->plan, readers.at[i]);
        if (!r || r == a || !r->failed || pending(s, r) || comes_before(r, a))
            continue;
        r->asked = true;
        stet_plan_mark(s->plan, r->id, STET_PLAN_DIRTY, INT64_MIN / 2);
    }
    stet_vec_release(&readers);
    if (writes != small)
        stet_free(writes);
}

stet_status sched_doubt_waiting(stet_sched *s, stet_error *err) {
    stet_status status = STET_OK;
    sched_action *a;
    for (size_t i = 0; status == STET_OK && (a = sched_noted(s, &i));) {
        if (!stet_plan_is_left(s->plan, a->id))
            sched_forget_waiting(s, a); /* what it waited for has ended well, and nobody wants it: it did not run */
        if (!a->failed || !stet_plan_is_left(s->plan, a->id))
            continue;
        a->failed = a->asked = false;
        status = stet_memo_distrust(s->memo, a->piece->piece->key, a->node, STET_REASON_WAITS, err);
    }
    return status;
}
