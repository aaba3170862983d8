/* sched_drift.c - checks that what a scheduler has in memory agrees with the tables. */

#include "scheduler/sched_internal.h"

#define NAMED 100 /* differences that are told; all are counted */

static const char *state_in_memory(const stet_sched *s, const sched_action *a) {
    if (stet_plan_is_unknown(s->plan, a->id))
        return "unknown";
    return stet_plan_is_dirty(s->plan, a->id) && !a->asked ? "dirty" : a->failed ? "failed" : "stands";
}

static const char *state_in_tables(const stet_memo_action *x) {
    return x->state != STET_STATE_STANDS ? stet_action_state_name(x->state) : x->failed ? "failed" : "stands";
}

/* A read of the record that the plan does not know: a change there would not reach the action in memory. */
static bool lacks_read(stet_sched *s, const sched_action *a, const stet_memo_action *x) {
    size_t count = stet_plan_reads(s->plan, a->id, NULL, 0);
    stet_plan_read *reads = stet_alloc((count + 1) * sizeof *reads);
    bool lacks = false;
    stet_plan_reads(s->plan, a->id, reads, count);
    for (size_t i = 0; i < x->read_count && !lacks; i++) {
        uint32_t doc = sched_doc(s, x->reads[i].space, &x->reads[i].name);
        lacks = true;
        for (size_t k = 0; k < count && lacks; k++)
            lacks = reads[k].doc != doc || !(stet_path_is_prefix(reads[k].path, x->reads[i].path) ||
                                             stet_path_is_prefix(x->reads[i].path, reads[k].path));
    }
    stet_free(reads);
    return lacks;
}

static void tell(stet_sched_drift *out, const sched_action *a, const char *memory, const char *tables) {
    out->differ++;
    if (stet_value_count(out->list) >= NAMED)
        return;
    stet_value v = stet_value_object();
    stet_value_put(&v, "piece", stet_value_string(a->piece->piece->name));
    stet_value_put(&v, "action", stet_value_string(a->node));
    stet_value_put(&v, "memory", stet_value_string(memory));
    stet_value_put(&v, "tables", stet_value_string(tables));
    stet_value_push(&out->list, v);
}

static stet_status compare(stet_sched *s, const sched_action *a, stet_sched_drift *out, stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    stet_memo_action x = {0};
    stet_error mine = STET_ERROR_INIT;
    stet_status status = stet_memo_load(s->memo, a->piece->piece->key, a->node, &arena, &x, &mine);
    const char *memory = state_in_memory(s, a), *tables = state_in_tables(&x);
    out->actions++;
    if (status == STET_NOT_FOUND) {
        tell(out, a, memory, "no record");
        status = STET_OK;
    } else if (status == STET_OK && strcmp(memory, tables) != 0) {
        /* One that others ran stays dirty here if it can't be restored: it may run once more, and misses nothing. */
        if (sched_restorable(a) || !stet_plan_is_dirty(s->plan, a->id) || x.state != STET_STATE_STANDS)
            tell(out, a, memory, tables);
    } else if (status == STET_OK && x.observed && x.state == STET_STATE_STANDS &&
               !stet_hash_equal(x.implementation, a->fingerprint)) {
        tell(out, a, memory, "other code");
    } else if (status == STET_OK && x.observed && x.state == STET_STATE_STANDS && lacks_read(s, a, &x)) {
        tell(out, a, memory, "other reads");
    }
    if (status != STET_OK)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    stet_arena_release(&arena);
    return status;
}

stet_status stet_sched_compare(stet_sched *s, stet_sched_drift *out, stet_error *err) {
    stet_status status = STET_OK;
    *out = (stet_sched_drift){.list = stet_value_array()};
    if (!s->memo->durable)
        return STET_OK;
    for (size_t i = 0; i < stet_plan_count(s->plan) && status == STET_OK; i++) {
        const sched_action *a = stet_plan_data_there(s->plan, (uint32_t)i);
        if (a && a->number)
            status = compare(s, a, out, err);
    }
    if (status != STET_OK)
        stet_value_release(out->list);
    return status;
}

const char *stet_sched_passed_over(stet_sched *s) {
    stet_plan_nodes down = {0};
    const char *wrong = NULL;
    bool *under = stet_alloc_zero(stet_plan_count(s->plan) + 1);
    for (size_t i = 0; i < s->blocked.below.len; i++)
        under[s->blocked.below.at[i]] = true;
    for (size_t i = 0; i < stet_plan_count(s->plan) && !wrong; i++) {
        const sched_action *a = stet_plan_data_there(s->plan, (uint32_t)i);
        bool noted = i < s->noted.len && s->noted.at[i];
        if (!a)
            continue;
        if ((!noted && (a->failed || a->declined || a->ran || a->came_back || a->conflicts > 0 || a->materializer ||
                        stet_value_count(a->makes) > 0 || a->own_reads || a->postponed ||
                        stet_plan_is_left(s->plan, a->id) || stet_plan_is_aside(s->plan, a->id))) ||
            (a->below_failed && !under[i]))
            wrong = stet_plan_name(s->plan, a->id);
    }
    /* The walk down, which is not made again while the plan has the same shape. */
    uint64_t shape = stet_plan_shape(s->plan);
    if (!wrong && s->blocked.shape == shape && s->blocked.roots.len > 0 &&
        stet_plan_downstream(s->plan, s->blocked.roots.at, s->blocked.roots.len, &down, NULL) == STET_OK) {
        bool same = down.len == s->blocked.below.len && shape == stet_plan_shape(s->plan);
        for (size_t i = 0; i < down.len && same; i++) /* each is there once, in any order */
            same = under[down.at[i]];
        wrong = same ? NULL : "the walk downstream";
    }
    stet_vec_release(&down);
    free(under);
    return wrong;
}
