/* sched_drift.c - checks that what a scheduler has in memory agrees with the tables. */

#include "scheduler/sched_internal.h"

#define NAMED 100 /* differences that are told; all are counted */

static const char *state_in_memory(const stet_sched *s, const sched_action *a) {
    if (stet_plan_is_unknown(s->plan, a->id))
        return "unknown";
    return stet_plan_is_dirty(s->plan, a->id) && !a->asked ? "dirty" : a->failed ? "failed" : "stands";
}

static const char *state_in_tables(const stet_memo_action *x) {
    return x->state != STET_STANDS ? stet_state_name(x->state) : x->failed ? "failed" : "stands";
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
    if (stet_count(out->list) >= NAMED)
        return;
    stet_value v = stet_object();
    stet_put(&v, "piece", stet_string(a->piece->piece->name));
    stet_put(&v, "action", stet_string(a->node));
    stet_put(&v, "memory", stet_string(memory));
    stet_put(&v, "tables", stet_string(tables));
    stet_push(&out->list, v);
}

static stet_status compare(stet_sched *s, const sched_action *a, stet_sched_drift *out, stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    stet_memo_action x = {0};
    stet_error mine = STET_ERROR_INIT;
    stet_status status = s->memo->ops->load(s->memo, a->piece->piece->doc, a->node, &arena, &x, &mine);
    const char *memory = state_in_memory(s, a), *tables = state_in_tables(&x);
    out->actions++;
    if (status == STET_NOT_FOUND) {
        tell(out, a, memory, "no record");
        status = STET_OK;
    } else if (status == STET_OK && strcmp(memory, tables) != 0) {
        /* One that others ran stays dirty here if it can't be restored: it may run once more, and misses nothing. */
        if (sched_restorable(a) || !stet_plan_is_dirty(s->plan, a->id) || x.state != STET_STANDS)
            tell(out, a, memory, tables);
    } else if (status == STET_OK && x.observed && x.state == STET_STANDS &&
               !stet_hash_equal(x.implementation, a->fingerprint)) {
        tell(out, a, memory, "other code");
    } else if (status == STET_OK && x.observed && x.state == STET_STANDS && lacks_read(s, a, &x)) {
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
    *out = (stet_sched_drift){.list = stet_array()};
    if (!s->memo->durable)
        return STET_OK;
    for (size_t i = 0; i < stet_plan_count(s->plan) && status == STET_OK; i++) {
        const sched_action *a = stet_plan_data_there(s->plan, (uint32_t)i);
        if (a && a->number)
            status = compare(s, a, out, err);
    }
    if (status != STET_OK)
        stet_release(out->list);
    return status;
}
