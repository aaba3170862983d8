/* What a settling has come to: how many failed, are left or stand, and what runs in a circle. */
#include "scheduler/sched_internal.h"

#define NAMED_FAILURES 100

void sched_report_cycles(stet_sched *s) {
    for (size_t i = 0; i < stet_plan_count(s->plan); i++) {
        sched_action *a = stet_plan_data(s->plan, (uint32_t)i);
        if (!a || !stet_plan_is_aside(s->plan, (uint32_t)i) || a->conflicts > STET_SCHED_MAX_CONFLICTS)
            continue;
        stet_buf way = STET_BUF(512);
        stet_error e = STET_ERROR_INIT;
        bool found = stet_plan_cycle(s->plan, (uint32_t)i, &way);
        s->report.aside++;
        if (found)
            stet_fail(&e, STET_LIMIT, "it ran %d times and did not come to rest: %s", STET_PLAN_MAX_RUNS,
                      stet_buf_cstr(&way));
        else
            stet_fail(&e, STET_LIMIT, "it ran %d times and did not come to rest", STET_PLAN_MAX_RUNS);
        stet_hint(&e, "break the circle, or make it come to rest");
        sched_problem(s, a, &e, found ? stet_buf_cstr(&way) : NULL);
        stet_error_clear(&e);
        stet_buf_release(&way);
    }
}

bool sched_part(const stet_sched *s, const sched_piece *p) {
    return p->part && !p->whole && !s->preflight;
}

/* One that failed in an earlier settling, and did not run in this one. */
static void note_before(stet_sched *s, const sched_piece *p, const char *node, stet_value error) {
    uint32_t id = sched_find_loaded(s, p, node);
    const sched_action *a = id == STET_PLAN_NONE ? NULL : stet_plan_data(s->plan, id);
    if ((a && a->ran) || stet_count(s->failed_before) >= NAMED_FAILURES)
        return;
    stet_value v = stet_object();
    stet_put(&v, "piece", stet_string(p->piece->name));
    stet_put(&v, "node", stet_string(node));
    stet_put(&v, "error", stet_retain(error));
    stet_push(&s->failed_before, v);
}

static stet_status count_whole(stet_sched *s, const sched_piece *p, bool marks, stet_error *err) {
    int64_t known = 0;
    stet_status status = STET_OK;
    if (p->piece->has_children && s->memo->durable)
        status = stet_observe_known(s->space, s->branch, p->piece->doc, &known, err);
    if (status != STET_OK)
        return status;
    size_t nodes = p->piece->node_count - p->piece->handler_count, marked = 0;
    s->report.total += known > (int64_t)nodes ? (size_t)known : nodes;
    if (!s->memo->durable)
        return STET_OK;
    stet_value failures;
    status = sched_failures(s, p, &failures, err);
    if (status != STET_OK)
        return status;
    s->report.failed += stet_count(failures);
    for (size_t i = 0; i < stet_count(failures) && stet_count(s->failed_before) < NAMED_FAILURES; i++)
        note_before(s, p, stet_key_at(failures, i, NULL), stet_at(failures, i));
    stet_release(failures);
    if (marks)
        status = s->memo->ops->count(s->memo, p->piece->doc, &marked, err);
    s->report.left += marked;
    return status;
}

/* Of a piece of which only a part is wanted: what that part needs. */
static stet_status count_part(stet_sched *s, const sched_piece *p, stet_error *err) {
    stet_value failures;
    stet_status status = sched_failures(s, p, &failures, err);
    if (status != STET_OK)
        return status;
    size_t failed = 0;
    for (size_t i = 0; i < stet_count(failures) && status == STET_OK; i++) {
        const char *node = stet_key_at(failures, i, NULL);
        stet_error mine = STET_ERROR_INIT;
        bool live = false;
        uint32_t id;
        status = sched_load(s, p->piece->doc, node, &id, &mine);
        if (status == STET_OK)
            status = stet_plan_is_live(s->plan, id, &live, &mine);
        if (status == STET_OK && live) {
            note_before(s, p, node, stet_at(failures, i));
            failed++;
        }
        if (status == STET_NOT_FOUND) { /* of a node that is gone */
            stet_error_clear(&mine);
            status = STET_OK;
        }
        stet_error_move(err, &mine);
    }
    stet_release(failures);
    s->report.failed += failed;
    for (size_t i = 0; i < stet_plan_count(s->plan) && (failed > 0 || s->stopped) && status == STET_OK; i++) {
        const sched_action *a = stet_plan_data(s->plan, (uint32_t)i);
        bool live = false;
        if (!a || a->id != i || a->piece != p || stet_plan_is_aside(s->plan, a->id) ||
            !(stet_plan_is_dirty(s->plan, a->id) || stet_plan_is_unknown(s->plan, a->id)))
            continue;
        status = stet_plan_is_live(s->plan, a->id, &live, err);
        s->report.left += live;
    }
    return status;
}

stet_status sched_report_count(stet_sched *s, int64_t left, stet_error *err) {
    const void *key;
    size_t len;
    stet_slot *slot;
    stet_status status = STET_OK;
    s->report.failed = 0;
    s->report.total = 0;
    s->report.left = 0;
    for (size_t i = 0; status == STET_OK && stet_map_next(&s->pieces, &i, &key, &len, &slot);)
        if (((sched_piece *)slot->p)->whole)
            status = count_whole(s, slot->p, left < 0, err);
    if (status != STET_OK)
        return status;
    if (left >= 0)
        s->report.left = (size_t)left;
    s->report.left -= s->report.left < s->report.aside ? s->report.left : s->report.aside;
    if (!s->memo->durable) {
        for (size_t i = 0; i < stet_plan_count(s->plan); i++) {
            const sched_action *a = stet_plan_data(s->plan, (uint32_t)i);
            s->report.failed += a && a->failed;
        }
        return STET_OK;
    }
    for (size_t i = 0; status == STET_OK && stet_map_next(&s->pieces, &i, &key, &len, &slot);)
        if (sched_part(s, slot->p))
            status = count_part(s, slot->p, err);
    return status;
}

stet_value stet_sched_failed_before(const stet_sched *s) {
    return s->failed_before;
}
