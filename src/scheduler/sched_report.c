/* sched_report.c - reports what a settling came to: failed, left and up-to-date actions, and cycles. */

#include "scheduler/sched_internal.h"

#define NAMED_FAILURES 100
#define NAMED_PROBLEMS 100

void sched_problem(stet_sched *s, const sched_action *a, const stet_error *error, const char *cycle) {
    if (stet_value_count(s->report.problems) >= NAMED_PROBLEMS)
        return;
    stet_value p = stet_value_object();
    stet_value_put(&p, "piece", stet_value_string(a->piece->piece->name));
    stet_value_put(&p, "node", stet_value_string(a->node));
    stet_value_put(&p, "error", stet_error_value(error));
    if (cycle)
        stet_value_put(&p, "cycle", stet_value_string(cycle));
    if (a->declined)
        stet_value_put(&p, "outdated", stet_value_bool(true));
    stet_value_push(&s->report.problems, p);
}

void sched_report_cycles(stet_sched *s) {
    const sched_action *a;
    for (size_t i = 0; (a = sched_noted(s, &i));) {
        if (!stet_plan_is_aside(s->plan, a->id))
            continue;
        s->report.aside++;
        /* One that was declined is told already; and finding a circle costs a walk. */
        if (a->declined || stet_value_count(s->report.problems) >= NAMED_PROBLEMS)
            continue;
        stet_buf way = STET_BUF(512);
        stet_error e = STET_ERROR_INIT;
        bool found = stet_plan_cycle(s->plan, a->id, &way);
        if (found)
            stet_fail(&e, STET_LIMIT, "it ran %u times and did not come to rest: %s",
                      (unsigned)stet_plan_runs(s->plan, a->id), stet_buf_cstr(&way));
        else
            stet_fail(&e, STET_LIMIT, "it ran %u times and did not come to rest",
                      (unsigned)stet_plan_runs(s->plan, a->id));
        stet_hint(&e, "break the circle, or make it come to rest");
        sched_problem(s, a, &e, found ? stet_buf_cstr(&way) : NULL);
        stet_error_clear(&e);
        stet_buf_release(&way);
    }
}

bool sched_part(const stet_sched *s, const sched_piece *p) {
    return p->part && !p->whole && !s->preflight.active;
}

/* What is recorded of its failure. The caller releases it. */
static stet_value error_of(stet_sched *s, const sched_action *a) {
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    stet_value note = stet_value_null(), error = stet_value_object();
    stet_action_key key = stet_piece_action(a->piece->piece, a->node);
    if (stet_observe_find(s->space, s->branch, &key, &arena, &r, NULL) == STET_OK && r.observed && r.note_len > 0 &&
        stet_json_parse(r.note, r.note_len, &note, NULL) == STET_OK) {
        if (stet_value_type(stet_value_get(note, "error")) == STET_TYPE_OBJECT) {
            stet_value_release(error);
            error = stet_value_retain(stet_value_get(note, "error"));
            stet_value_remove(&error, "details", 7);
        }
        stet_value_release(note);
    }
    stet_arena_release(&arena);
    return error;
}

/* One that failed in an earlier settling, and did not run in this one. */
static void note_before(stet_sched *s, const sched_action *a) {
    if (stet_value_count(s->blocked.failed_before) >= NAMED_FAILURES)
        return;
    stet_value v = stet_value_object();
    stet_value_put(&v, "piece", stet_value_string(a->piece->piece->name));
    stet_value_put(&v, "node", stet_value_string(a->node));
    stet_value_put(&v, "error", error_of(s, a));
    stet_value_push(&s->blocked.failed_before, v);
}

/* How many actions of the piece are there. */
static stet_status count_all(stet_sched *s, const sched_piece *p, size_t *out, stet_error *err) {
    int64_t known = 0;
    stet_status status = STET_OK;
    if (p->piece->has_children && s->memo->durable)
        status = stet_observe_known(s->space, s->branch, p->piece->doc, p->piece->scope, &known, err);
    size_t nodes = p->piece->node_count - p->piece->handler_count;
    *out = known > (int64_t)nodes ? (size_t)known : nodes;
    return status;
}

typedef struct tally {
    stet_plan_nodes failed; /* wanted, and their last run failed */
    size_t before;          /* of those: did not run in this settling */
    size_t aside;
    size_t marked; /* what the record has marks for */
    size_t twice;  /* of those: are counted as something else */
    size_t more;   /* is left without a mark */
} tally;

static stet_status count_failed(stet_sched *s, tally *t, stet_error *err) {
    stet_status status = STET_OK;
    const sched_action *a;
    for (size_t i = 0; status == STET_OK && (a = sched_noted(s, &i));) {
        bool live = false;
        if (!sched_fails(s, a))
            continue;
        status = stet_plan_is_live(s->plan, a->id, &live, err);
        if (live)
            *stet_vec_add(&t->failed) = a->id;
        if (live && !a->ran)
            note_before(s, a);
        t->before += live && !a->ran && a->piece->whole;
        bool marked = a->doubtful || (!a->asked && stet_plan_is_dirty(s->plan, a->id));
        t->twice += marked && s->memo->durable && a->piece->whole;
        t->more += !live && !a->ran && a->piece->whole; /* nothing needs it */
    }
    return status;
}

/* One that is in memory and neither stands nor fails. */
static stet_status count_one(stet_sched *s, const sched_action *a, tally *t, stet_error *err) {
    stet_status status = STET_OK;
    bool aside = stet_plan_is_aside(s->plan, a->id), live = false,
         pending = stet_plan_is_dirty(s->plan, a->id) || stet_plan_is_unknown(s->plan, a->id);
    if (sched_fails(s, a))
        return STET_OK;
    if (a->piece->whole) {
        t->aside += aside;
        t->twice += s->memo->durable && pending && (a->ran || aside);
        t->more += !s->memo->durable && pending && !a->ran && !aside;
    } else if (pending && !a->ran && !aside && sched_part(s, a->piece)) {
        status = stet_plan_is_live(s->plan, a->id, &live, err);
        t->more += live;
    }
    return status;
}

/* Of those that neither ran nor were put aside the record tells, if there is one; but not which of them are needed for
 * a part of a piece. */
static stet_status count_pending(stet_sched *s, tally *t, stet_error *err) {
    stet_status status = STET_OK;
    const void *key;
    size_t len;
    stet_slot *slot;
    const sched_action *a;
    bool all = !s->memo->durable;
    for (size_t i = 0; !all && stet_map_next(&s->pieces, &i, &key, &len, &slot);)
        all = sched_part(s, slot->p);
    for (size_t i = 0; !all && status == STET_OK && (a = sched_noted(s, &i));)
        status = count_one(s, a, t, err);
    for (size_t i = 0; all && i < stet_plan_count(s->plan) && status == STET_OK; i++)
        if ((a = stet_plan_data_there(s->plan, (uint32_t)i)))
            status = count_one(s, a, t, err);
    return status;
}

/* Adds those downstream of what fails or was put aside: whether they stand or not, they are not what they should be. */
static stet_status count_waiting(stet_sched *s, tally *t, stet_error *err) {
    stet_plan_nodes roots = {0}, below = {0};
    for (size_t i = 0; i < t->failed.len; i++)
        *stet_vec_add(&roots) = t->failed.at[i];
    const sched_action *left;
    for (size_t i = 0; (left = sched_noted(s, &i));)
        if (stet_plan_is_left(s->plan, left->id) || stet_plan_is_aside(s->plan, left->id))
            *stet_vec_add(&roots) = left->id;
    /* And who reads what fails in another space. */
    stet_status status = STET_OK;
    for (size_t i = 0; i < stet_plan_count(s->plan) && s->blocked.any_far && status == STET_OK; i++) {
        sched_action *a = stet_plan_data_there(s->plan, (uint32_t)i);
        bool far = false;
        if (a && !sched_fails(s, a))
            status = sched_waits_far(s, a, &far, err);
        if (far)
            *stet_vec_add(&roots) = a->id;
    }
    if (status == STET_OK)
        status = roots.len ? stet_plan_downstream(s->plan, roots.at, roots.len, &below, err) : STET_OK;
    for (size_t i = 0; i < below.len && status == STET_OK; i++) {
        const sched_action *a = stet_plan_data(s->plan, below.at[i]);
        bool live = false;
        if (!a || sched_fails(s, a) || a->ran || stet_plan_is_aside(s->plan, a->id))
            continue;
        status = stet_plan_is_live(s->plan, below.at[i], &live, err);
        s->report.waiting += live;
        t->more += live && !stet_plan_is_dirty(s->plan, a->id) && !stet_plan_is_unknown(s->plan, a->id) &&
                   (a->piece->whole || sched_part(s, a->piece));
    }
    stet_vec_release(&roots);
    stet_vec_release(&below);
    return status;
}

/* Of the problems that were met only those are told that are still there: some have recovered since, wait, or are not
 * wanted any more. */
static void keep_problems(stet_sched *s, const stet_plan_nodes *failed) {
    stet_value kept = stet_value_array();
    stet_map told = {0};
    for (size_t i = 0; i < failed->len; i++)
        stet_map_put(&told, &failed->at[i], sizeof *failed->at, (stet_slot){.n = 1});
    for (size_t i = stet_value_count(s->report.problems); i > 0;
         i--) { /* the last of an action is the one that holds */
        stet_value p = stet_value_at(s->report.problems, i - 1), piece = stet_value_get(p, "piece"),
                   node = stet_value_get(p, "node");
        if (stet_value_find(p, "space", 5, NULL)) { /* that space has chosen */
            stet_value_insert_at(&kept, 0, stet_value_retain(p));
            continue;
        }
        stet_buf name = STET_BUF(0);
        stet_buf_printf(&name, "%s/%s", stet_value_as_string(&piece, NULL), stet_value_as_string(&node, NULL));
        uint32_t id = stet_plan_find(s->plan, name.data, name.len);
        if (stet_value_find(p, "cycle", 5, NULL) || (stet_map_get(&told, &id, sizeof id) != NULL) ||
            (id != STET_PLAN_NONE && stet_plan_is_aside(s->plan, id)))
            stet_value_insert_at(&kept, 0, stet_value_retain(p));
        stet_map_remove(&told, &id, sizeof id);
        stet_buf_release(&name);
    }
    stet_map_release(&told);
    stet_value_release(s->report.problems);
    s->report.problems = kept;
}

/* Every action of the pieces that are wanted as a whole is one of these: it ran (and may have failed), failed before,
 * was put aside, is left (waits for what failed, was not reached, or is not needed), or stood. */
stet_status sched_report_count(stet_sched *s, int64_t left, stet_error *err) {
    const void *key;
    size_t len;
    stet_slot *slot;
    tally t = {0};
    s->report.failed = s->report.total = s->report.left = s->report.waiting = s->report.stood = 0;
    stet_status status = count_failed(s, &t, err);
    if (status == STET_OK)
        status = count_pending(s, &t, err);
    if (status == STET_OK)
        status = count_waiting(s, &t, err);
    for (size_t i = 0; status == STET_OK && stet_map_next(&s->pieces, &i, &key, &len, &slot);) {
        const sched_piece *p = slot->p;
        size_t n = 0;
        if (!p->whole)
            continue;
        status = count_all(s, p, &n, err);
        s->report.total += n;
        n = 0;
        if (status == STET_OK && left < 0)
            status = stet_memo_count(s->memo, p->piece->key, &n, err);
        t.marked += n;
    }
    if (left >= 0)
        t.marked = (size_t)left;
    s->report.failed = t.failed.len;
    keep_problems(s, &t.failed);
    t.twice += s->done_before;
    s->report.left = t.marked - (t.marked < t.twice ? t.marked : t.twice) + t.more;
    size_t off = s->ran_whole + t.before + t.aside + s->report.left;
    s->report.stood = s->report.total > off ? s->report.total - off : 0;
    stet_vec_release(&t.failed);
    return status;
}

bool stet_sched_fails(stet_sched *s, const char *piece, const char *node) {
    stet_buf name = STET_BUF(0);
    bool live = false;
    stet_buf_printf(&name, "%s/%s", piece, node);
    uint32_t id = stet_plan_find(s->plan, name.data, name.len);
    stet_buf_release(&name);
    return id != STET_PLAN_NONE && (sched_fails(s, stet_plan_data(s->plan, id)) || stet_plan_is_aside(s->plan, id)) &&
           stet_plan_is_live(s->plan, id, &live, NULL) == STET_OK && live;
}

stet_value stet_sched_failed_before(const stet_sched *s) {
    return s->blocked.failed_before;
}
