/* sched_store.c - stores what a group of runs did, and tells the plan what they and others changed. */

#include "scheduler/sched_internal.h"

stet_status sched_tell_changes(stet_sched *s, const stet_doc_change *changes, size_t count, uint32_t by,
                               stet_error *err) {
    int64_t now = sched_now(s);
    for (size_t i = 0; i < count; i++) {
        uint32_t doc = sched_doc(s, NULL, &changes[i].name);
        if (changes[i].doc == 0) /* the space has never heard of it: nothing on disk reads it */
            stet_plan_doc_covered(s->plan, doc);
        for (size_t k = 0; k < changes[i].len; k++) {
            stet_status status =
                stet_plan_changed(s->plan, doc, changes[i].at[k].path, changes[i].at[k].kind, by, now, err);
            if (status != STET_OK)
                return status;
        }
    }
    return STET_OK;
}

void sched_group_end(stet_sched *s) {
    for (size_t i = 0; i < s->batch.members.len; i++) {
        sched_action *a = stet_plan_data(s->plan, s->batch.members.at[i]);
        if (a)
            a->writes_known = false;
        stet_plan_dropped(s->plan, s->batch.members.at[i], sched_now(s));
    }
    stet_vec_clear(&s->batch.members);
    stet_group_end(s->batch.group);
    s->batch.group = NULL;
}

void sched_decline(stet_sched *s, sched_action *a, const stet_error *error) {
    stet_plan_put_aside(s->plan, a->id);
    a->declined = s->blocked.any = true;
    sched_note(s, a);
    sched_fell(s, a);
    sched_problem(s, a, error, NULL);
    sched_emit(s, STET_SCHED_ASIDE, a, error);
}

int64_t sched_flush_in_us(const stet_sched *s) {
    int64_t long_us = (s->opts.group_ms ? s->opts.group_ms : STET_SCHED_GROUP_MS) * 1000;
    /* Storing must not take most of the time: on a slow disk groups are longer. */
    if (!s->opts.group_ms && s->batch.flush_us * 4 > long_us)
        long_us = s->batch.flush_us * 4;
    return s->batch.since + long_us - stet_clock_monotonic_us();
}

stet_status sched_flush_due(stet_sched *s, stet_error *err) {
    size_t most = s->opts.group_runs ? s->opts.group_runs : STET_SCHED_GROUP_RUNS;
    if (s->batch.members.len > 0 &&
        (s->opts.no_group || s->batch.removes_children || s->batch.members.len >= most || sched_flush_in_us(s) < 0))
        return sched_flush(s, err);
    return STET_OK;
}

static void tell_stored(stet_sched *s, const sched_action *a) {
    void *state;
    if (a->kind && a->kind->stored && sched_kind_state(s, a->kind, &state, NULL) == STET_OK)
        a->kind->stored(state, stet_plan_name(s->plan, a->id));
}

/* A run that was not stored has changed nothing: those that it made dirty may stand as they did, and so may it, if it
 * ran because of another that was not stored, either. */
static void in_doubt(stet_sched *s, uint32_t id, const stet_member *m, stet_plan_nodes *out) {
    *stet_vec_add(out) = id;
    for (size_t i = 0; i < m->change_count; i++)
        for (size_t k = 0; k < m->changes[i].len; k++)
            stet_plan_readers(s->plan, sched_doc(s, NULL, &m->changes[i].name), m->changes[i].at[k].path,
                              m->changes[i].at[k].kind, out);
}

void sched_take_back(stet_sched *s, const sched_action *a) {
    for (size_t i = stet_value_count(s->report.problems); i-- > 0;) {
        stet_value p = stet_value_at(s->report.problems, i), node = stet_value_get(p, "node"),
                   piece = stet_value_get(p, "piece");
        if (stet_value_find(p, "space", 5, NULL)) /* of another space, where actions may have the same names */
            continue;
        if (strcmp(stet_value_as_string(&node, NULL), a->node) != 0 ||
            strcmp(stet_value_as_string(&piece, NULL), a->piece->piece->name) != 0)
            continue;
        stet_value_remove_at(&s->report.problems, i);
        s->report.failed_now--;
        return;
    }
}

stet_status sched_flush(stet_sched *s, stet_error *err) {
    s->batch.removes_children = false;
    if (!s->batch.group || s->batch.members.len == 0)
        return STET_OK;
    int64_t start = stet_clock_monotonic_us();
    stet_status status = stet_group_flush(s->batch.group, err);
    if (status != STET_OK)
        return status;
    s->batch.flush_us = stet_clock_monotonic_us() - start;
    stet_plan_nodes doubt = {0};
    s->report.flushes++;
    for (size_t i = 0; i < s->batch.members.len; i++) {
        uint32_t id = s->batch.members.at[i];
        sched_action *a = stet_plan_data(s->plan, id);
        stet_member m;
        stet_group_at(s->batch.group, i, &m);
        if (m.outcome == STET_MEMBER_APPLIED && m.result.seq > s->batch.head)
            s->batch.head = m.result.seq; /* the new snapshot is at least this old */
        if (m.outcome == STET_MEMBER_APPLIED) {
            tell_stored(s, a);
            a->conflicts = 0;
            a->verify = false;
            if (m.result.changed)
                *stet_vec_add(&s->batch.own) = m.result.seq;
            continue;
        }
        s->report.dropped++;
        a->writes_known = false;
        sched_note(s, a);
        if (m.observation ? m.observation->failed : a->failed)
            sched_take_back(s, a);
        if (a->role != STET_CHILD_NONE) {
            sched_children_forget(a);
            s->marks.reload = true;
        }
        if (++a->conflicts <= STET_SCHED_MAX_CONFLICTS) {
            stet_plan_dropped(s->plan, id, sched_now(s));
            in_doubt(s, id, &m, &doubt);
            continue;
        }
        sched_decline(s, a, m.error); /* others keep changing what it reads */
    }
    sched_unload(s);
    stet_vec_clear(&s->batch.members);
    sched_emit(s, STET_SCHED_FLUSHED, NULL, NULL);
    bool news;
    for (size_t i = 0; i < doubt.len && status == STET_OK; i++)
        status = sched_look_again(s, doubt.at[i], err);
    stet_vec_release(&doubt);
    return status == STET_OK ? sched_news(s, &news, err) : status;
}

stet_status sched_news(stet_sched *s, bool *any, stet_error *err) {
    int64_t head;
    *any = false;
    stet_status status = stet_space_seq(s->space, &head, err);
    if (status != STET_OK)
        return status;
    int64_t version = stet_memo_version(s->space);
    if (version != s->version) {
        /* They may have run actions without changing anything, too: no commit tells of that. */
        s->version = version;
        s->marks.changed_by_others = true;
        s->company |= stet_plan_count(s->plan) > 0;
        sched_forget_asked(s);
        stet_plan_doubt_unwanted(s->plan); /* or have set up others that read what nobody wanted here */
    }
    /* Own commits alone: nothing to read back. */
    if (head - s->batch.seen == (int64_t)s->batch.own.len) {
        s->batch.seen = head;
        stet_vec_clear(&s->batch.own);
        return STET_OK;
    }
    size_t own = 0;
    stet_plan_nodes heard = {0};
    stet_plan_listen(s->plan, &heard);
    while (s->batch.seen < head && status == STET_OK) {
        stet_arena arena = STET_ARENA_INIT;
        stet_commit_record *at;
        size_t count = 0;
        status = stet_space_commits(s->space, s->batch.seen, head, 1000, &arena, &at, &count, err);
        for (size_t i = 0; i < count && status == STET_OK; i++) {
            while (own < s->batch.own.len && s->batch.own.at[own] < at[i].seq)
                own++;
            bool is_mine = own < s->batch.own.len && s->batch.own.at[own] == at[i].seq;
            s->batch.seen = at[i].seq;
            if (is_mine || at[i].branch != s->branch)
                continue;
            *any = true;
            for (size_t k = 0; k < at[i].len; k++) {
                sched_children_news(s, &at[i].at[k].name);
                sched_install_news(s, &at[i].at[k], at[i].seq);
            }
            status = sched_tell_changes(s, at[i].at, at[i].len, STET_PLAN_NONE, err);
            if (status == STET_OK)
                status = sched_children_overwritten(s, at[i].at, at[i].len, err);
        }
        if (status == STET_OK && count == 0)
            s->batch.seen = head;
        stet_arena_release(&arena);
    }
    stet_plan_listen(s->plan, NULL);
    /* Others may have run what their commits reach. Nothing of our own is unstored here, so the record tells. What came
     * through this connection was an edit: it ran nothing, and a look at each reader costs as much as running it. */
    bool look = s->marks.changed_by_others && s->batch.members.len == 0,
         held = look && heard.len > 1 && stet_memo_hold(s->space);
    for (size_t i = 0; i < heard.len && status == STET_OK && look; i++)
        status = sched_look_again(s, heard.at[i], err);
    stet_memo_let_go(s->space, held);
    stet_vec_release(&heard);
    if (status == STET_OK)
        stet_vec_clear(&s->batch.own);
    /* The plan knows of these commits now: what it lets run must see them. An action that another process has run
     * stands, and a reader of it would find nothing in an older snapshot. */
    if (status == STET_OK && *any && s->batch.members.len == 0)
        sched_group_end(s);
    return status;
}
