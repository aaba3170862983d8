/* sched.c - the loop: takes actions from the planner, runs them and settles the demand. */

#include "scheduler/sched_internal.h"

/* Counts up when a run records more of what it rests on than it did before: older records prove too little.
 * 2: reads behind links. 3: code in files. 4: all that was written through cells, changed or not.
 * 5: all that may be written through cells, by itself or by children. 6: links in outputs, and coordinators of
 * children that were read. 7: which files a coordinator's children may make. */
#define STET_SCHED_RECORD 7

#define MAX_ROUNDS 1000 /* times that others' commits are taken up in one settling */

int64_t sched_now(stet_sched *s) {
    return s->opts.now_ms ? s->opts.now_ms(s->opts.ctx) : stet_clock_monotonic_us() / 1000;
}

stet_hash stet_sched_runtime(const stet_sched_opts *opts) {
    char text[64];
    (void)opts; /* there is one mode: pull */
    int n = snprintf(text, sizeof text, "stet %d pull %d", STET_VERSION_NUMBER / 1000, STET_SCHED_RECORD);
    return stet_hash_of(text, (size_t)n);
}

stet_status stet_sched_open(stet_project *project, stet_space *space, const char *branch, const stet_sched_opts *opts,
                            stet_sched **out, stet_error *err) {
    stet_sched *s = stet_alloc_zero(sizeof *s);
    s->project = project;
    s->space = space;
    s->opts = *opts;
    s->marks.window = opts->window ? opts->window : SCHED_WINDOW;
    s->branch_name = stet_strdup(branch ? branch : "");
    s->runtime = stet_sched_runtime(opts);
    s->ground = (stet_path)STET_PATH_INIT;
    stet_path_push(&s->ground, "process");
    stet_path_push(&s->ground, "generation");
    stet_status status = stet_space_branch(space, s->branch_name, &s->branch, err);
    s->envelopes =
        (stet_envelopes){.space = space, .branch = s->branch, .open = sched_space, .ctx = s, .arena = STET_ARENA_INIT};
    if (status == STET_OK)
        s->memo = stet_memo_open(space, s->branch, opts->persist);
    if (status == STET_OK)
        status = stet_space_seq(space, &s->batch.seen, err);
    s->plan = stet_plan_new(&(stet_plan_source){s, sched_readers});
    if (status != STET_OK) {
        stet_sched_close(s);
        return status;
    }
    *out = s;
    return STET_OK;
}

void stet_sched_close(stet_sched *s) {
    if (!s)
        return;
    sched_group_end(s);
    for (size_t i = 0; i < stet_plan_count(s->plan); i++) {
        sched_action *a = stet_plan_data(s->plan, (uint32_t)i);
        if (a)
            sched_action_free(a);
    }
    stet_plan_free(s->plan);
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&s->pieces, &i, &key, &len, &slot);) {
        sched_piece_free(slot->p);
    }
    for (size_t i = 0; stet_map_next(&s->states, &i, &key, &len, &slot);) {
        const stet_module_kind *kind = stet_module_find(key);
        if (kind && kind->close)
            kind->close(slot->p);
    }
    sched_async_free(s);
    sched_far_free(s);
    if (s->memo)
        stet_memo_close(s->memo);
    for (size_t i = 0; stet_map_next(&s->spaces, &i, &key, &len, &slot);)
        stet_space_close(slot->p);
    for (size_t i = 0; i < s->schema_values.len; i++)
        stet_value_release(s->schema_values.at[i]);
    for (size_t i = 0; i < s->want.names.len; i++)
        stet_free(s->want.names.at[i]);
    stet_map_release(&s->pieces);
    stet_map_release(&s->numbers);
    stet_map_release(&s->marks.unloaded);
    stet_map_release(&s->states);
    stet_map_release(&s->spaces);
    stet_map_release(&s->schemas);
    stet_map_release(&s->plain);
    stet_envelopes_release(&s->envelopes);
    stet_templates_release(&s->templates);
    stet_vec_release(&s->schema_values);
    stet_vec_release(&s->want.names);
    stet_map_release(&s->want.named);
    stet_map_release(&s->want.cells);
    stet_vec_release(&s->batch.members);
    stet_vec_release(&s->batch.stored);
    stet_vec_release(&s->blocked.new_roots);
    stet_vec_release(&s->blocked.roots);
    stet_vec_release(&s->blocked.below);
    stet_vec_release(&s->noted);
    stet_vec_release(&s->batch.own);
    stet_lock_close(s->effects);
    stet_value_release(s->report.problems);
    stet_value_release(s->blocked.failed_before);
    stet_arena_release(&s->arena);
    stet_path_release(&s->ground);
    stet_free(s->branch_name);
    free(s);
}

stet_memo *stet_sched_memo(stet_sched *s) {
    return s->memo;
}

stet_plan *stet_sched_plan(stet_sched *s) {
    return s->plan;
}

stet_status stet_sched_resolve(stet_sched *s, stet_value v, stet_value *out, stet_error *err) {
    stet_reader r = {.space = sched_space, .ctx = s};
    stet_status status = stet_tx_begin(s->space, s->branch_name, &r.tx, err);
    if (status != STET_OK)
        return status;
    stet_value got;
    status = stet_reader_value(&r, v, &got, err);
    if (status == STET_OK)
        *out = stet_value_retain(got);
    stet_reader_release(&r);
    stet_tx_abort(r.tx);
    return status;
}

stet_status stet_sched_get(stet_sched *s, const char *id, const char *scope, stet_pathref path, stet_value *out,
                           stet_error *err) {
    return stet_sched_get_at(s, id, scope, path, -1, out, err);
}

stet_status stet_sched_get_at(stet_sched *s, const char *id, const char *scope, stet_pathref path, int64_t at,
                              stet_value *out, stet_error *err) {
    stet_reader r = {.space = sched_space, .ctx = s};
    stet_status status = stet_tx_begin_at(s->space, s->branch_name, at, &r.tx, err);
    if (status != STET_OK)
        return status;
    stet_value got;
    status = stet_reader_cell(&r, NULL, &(stet_docname){id, scope}, path, STET_RECURSIVE, &got, err);
    if (status == STET_OK)
        *out = stet_value_retain(got);
    stet_reader_release(&r);
    stet_tx_abort(r.tx);
    return status;
}

static bool cancelled(stet_sched *s) {
    return s->opts.cancelled && s->opts.cancelled(s->opts.ctx);
}

/* At idle the materializers of those pieces run that are wanted as a whole; before an event nothing that it does not
 * need. */
static bool idle_wanted(void *ctx, uint32_t node) {
    stet_sched *s = ctx;
    sched_action *a = stet_plan_data(s->plan, node);
    return !s->preflight.active && a && a->piece->whole;
}

/* What others commit while commands run: it may be that one of them is not wanted any more. */
static stet_status look_around(stet_sched *s, stet_error *err) {
    int64_t head;
    bool news;
    if (s->batch.members.len > 0)
        return STET_OK; /* looked at when they are stored */
    stet_status status = stet_space_seq(s->space, &head, err);
    if (status == STET_OK && s->batch.group && head != s->batch.head)
        sched_group_end(s);
    return status == STET_OK ? sched_news(s, &news, err) : status;
}

/* The plan may have to look at many that turn out to be of no use: on one snapshot. */
static stet_status next_step(stet_sched *s, stet_plan_step *step, stet_error *err) {
    s->marks.snapshot = SCHED_SNAPSHOT_WANTED;
    stet_status status = stet_plan_next(s->plan, sched_now(s), step, err);
    stet_memo_let_go(s->space, s->marks.snapshot == SCHED_SNAPSHOT_HELD);
    s->marks.snapshot = SCHED_SNAPSHOT_EACH;
    return status;
}

static void tell_idle(stet_sched *s) {
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&s->states, &i, &key, &len, &slot);) {
        const stet_module_kind *kind = stet_module_find(key);
        if (kind && kind->idle)
            kind->idle(slot->p);
    }
}

/* Goes on with the graphs that others have set up. */
static stet_status renew(stet_sched *s, stet_error *err) {
    stet_status status = sched_flush(s, err);
    if (status != STET_OK)
        return status;
    sched_renew(s);
    tell_idle(s); /* what kinds know of the graph is of the one before: which node writes which file */
    status = sched_enter(s, err);
    return status == STET_OK ? sched_load_pending(s, err) : status;
}

/* Others have made children: they run before what reads them. */
static stet_status take_up_children(stet_sched *s, stet_error *err) {
    stet_status status = sched_flush(s, err);
    return status == STET_OK ? sched_load_pending(s, err) : status;
}

/* Runs until the plan has nothing left. What is under way when it fails is the caller's to stop. */
static stet_status drain(stet_sched *s, stet_error *err) {
    for (;;) {
        stet_plan_step step;
        if (cancelled(s))
            return stet_fail(err, STET_CANCELLED, "stopped");
        stet_status status = STET_OK;
        if (s->outdated && !s->stopped && sched_async_count(s) == 0)
            status = renew(s, err);
        else if (s->marks.children_remade && !s->stopped)
            status = take_up_children(s, err);
        if (status != STET_OK)
            return status;
        /* One failed, or is not what it was: those under way come to their end, no other begins. */
        if (s->stopped || s->outdated)
            step = (stet_plan_step){.kind = sched_async_count(s) ? STET_PLAN_BUSY : STET_PLAN_IDLE};
        else if (sched_async_count(s) >= STET_SCHED_MAX_ASYNC)
            step = (stet_plan_step){.kind = STET_PLAN_BUSY};
        else
            status = next_step(s, &step, err);
        if (status != STET_OK)
            return status;
        if (step.kind == STET_PLAN_RUN) {
            status = sched_run(s, step.node, err);
            /* It read what nothing needed before: whoever writes that comes before those who read this one. */
            if (status == STET_OK && s->marks.recheck)
                status = sched_flush(s, err);
            if (status == STET_OK && s->marks.recheck)
                status = sched_load_more(s, err);
            if (status == STET_OK && sched_async_count(s) > 0) /* take up what has ended, without waiting */
                status = sched_async_wait(s, 0, err);
        } else if (sched_async_count(s) > 0) {
            int64_t rest = step.kind == STET_PLAN_WAIT ? step.until - sched_now(s) : 100;
            status = sched_async_wait(s, rest < 0 ? 0 : rest < 100 ? rest : 100, err);
            if (status == STET_OK)
                status = sched_flush_due(s, err);
            if (status == STET_OK)
                status = look_around(s, err);
        } else {
            bool news;
            status = sched_flush(s, err);
            if (status == STET_OK && s->marks.has_more && !s->stopped) {
                status = sched_load_more(s, err);
            } else if (status == STET_OK && (stet_plan_queued(s->plan) == 0 || s->stopped)) {
                if (step.kind == STET_PLAN_IDLE && !s->stopped && stet_plan_idle(s->plan, idle_wanted, s) > 0)
                    continue;
                if (step.kind == STET_PLAN_IDLE)
                    return STET_OK;
                int64_t rest = step.until - sched_now(s);
                if (rest > 0 && !s->opts.now_ms)
                    stet_clock_sleep_ms(rest < 20 ? rest : 20);
                status = sched_news(s, &news, err);
            }
        }
        if (status != STET_OK)
            return status;
    }
}

/* A link that is pointed elsewhere can make a materializer needed, and marks nobody for that: a survey that left one
 * out, or something that leads to one, would not see it. */
static bool left_materializers(stet_sched *s) {
    bool any = false;
    bool parked = stet_plan_any_parked(s->plan);
    const sched_action *a;
    for (size_t i = 0; parked && !any && (a = sched_noted(s, &i));)
        any = a->materializer;
    return any;
}

/* All is done, and what is marked still is not needed: it need not be looked at again for this. To remember that is a
 * help and no more. */
static void remember(stet_sched *s) {
    bool any = false;
    stet_survey known;
    if (!s->memo->durable || s->opts.observe_only || s->opts.done_at || s->stopped || s->marks.has_more ||
        s->marks.changed_by_others || s->report.aside > 0 || !stet_plan_at_rest(s->plan) || left_materializers(s) ||
        stet_memo_any(s->memo, &any, NULL) != STET_OK || !any)
        return;
    if (sched_far_aside(s)) /* who waits for that is not done */
        return;
    int64_t left = (int64_t)(s->report.left);
    if (sched_survey(s, &known, NULL) == STET_OK && known.same && known.left == left)
        return;
    if (stet_memo_surveyed(s->memo, s->marks.demand, s->marks.version, (size_t)left, NULL) != STET_OK)
        return; /* then the next one looks at them again */
}

static stet_status open_lock(stet_sched *s, stet_error *err) {
    if (s->effects)
        return STET_OK;
    char *path = stet_asprintf("%s.effects", stet_space_path(s->space));
    stet_status status = stet_lock_open(path, STET_LOCK_PLAIN, &s->effects, err);
    stet_free(path);
    return status;
}

void sched_tell_pause(stet_sched *s) {
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&s->states, &i, &key, &len, &slot);) {
        const stet_module_kind *kind = stet_module_find(key);
        if (kind && kind->pause)
            kind->pause(slot->p);
    }
}

void stet_sched_pause(stet_sched *s) {
    sched_tell_pause(s);
}

/* What was found not to be needed, of what is marked: `s->marks.surveyed`. */
static stet_status look_for_survey(stet_sched *s, bool pending, stet_survey *out, stet_error *err) {
    bool grew;
    s->marks.surveyed = 0;
    stet_status status = sched_show_results(s, err);
    if (status == STET_OK)
        status = sched_demand_cells(s, &grew, err); /* where a wanted cell leads is part of what is wanted */
    if (status == STET_OK && pending)
        status = sched_survey(s, out, err);
    return status == STET_NOT_FOUND ? STET_OK : status;
}

/* What holds for one settling is forgotten. */
static void forget_last(stet_sched *s, bool again) {
    for (size_t i = 0; i < s->noted.len; i++) {
        if (!s->noted.at[i])
            continue;
        sched_action *a = stet_plan_data(s->plan, (uint32_t)i);
        if (stet_plan_data_there(s->plan, (uint32_t)i))
            sched_forget_waiting(s, a);
        if (a) {
            a->ran = a->came_back = false;
            a->declined = a->declined && again;
            a->conflicts = again ? a->conflicts : 0;
        }
        s->noted.at[i] =
            a && (a->failed || a->declined || a->conflicts > 0 || a->materializer || stet_value_count(a->makes) > 0 ||
                  stet_plan_is_aside(s->plan, (uint32_t)i) || stet_plan_is_left(s->plan, (uint32_t)i));
    }
}

/* One settling, as its phases hand it on. */
typedef struct settling {
    stet_sched *s;
    bool again;   /* in one settling that a user asked for, another space may be settled several times */
    bool pending; /* there are marks */
    bool rests;   /* everything that is needed is up to date: nothing has to be loaded */
    bool far;     /* something ran in another space, or is outdated there */
    stet_survey survey;
} settling;

/* Forgets the last settling, and takes a snapshot of now. */
static stet_status begin_settling(settling *w, stet_error *err) {
    stet_sched *s = w->s;
    bool news;
    stet_value_release(s->report.problems);
    s->report = (stet_sched_report){.problems = stet_value_array()};
    s->ran_whole = 0;
    stet_value_release(s->blocked.failed_before);
    s->blocked.failed_before = stet_value_array();
    w->again = s->begun == sched_round(s); /* what was put aside before in this round stays so */
    s->begun = sched_round(s);
    forget_last(s, w->again);
    stet_map_clear(&s->marks.unloaded);
    s->company = false;
    sched_group_end(s);
    sched_spaces_look(s);
    stet_status status = sched_news(s, &news, err);
    if (status == STET_OK && s->outdated)
        sched_renew(s);
    return status;
}

/* Is there anything to do? */
static stet_status look_for_work(settling *w, stet_error *err) {
    stet_sched *s = w->s;
    stet_numbers failed = {0};
    stet_status status = stet_memo_any(s->memo, &w->pending, err);
    if (status == STET_OK)
        status = look_for_survey(s, w->pending, &w->survey, err);
    if (status == STET_OK)
        status = stet_memo_failed(s->memo, &failed, err);
    bool rests = status == STET_OK && (!w->pending || (s->marks.surveyed > 0 && !w->survey.newer)) &&
                 s->memo->durable && failed.len == 0 && stet_plan_count(s->plan) == 0 && !s->far_state.has_cells;
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&s->pieces, &i, &key, &len, &slot);) {
        const sched_piece *p = slot->p;
        rests = rests && p->piece->restart_count == 0;
        /* Whether what is wanted needs one that failed, only the graph in memory tells. */
        if (sched_part(s, p) && failed.len > 0)
            s->marks.surveyed = 0;
    }
    stet_numbers_release(&failed);
    if (rests)
        status = sched_far_stale(s, &w->far, err);
    w->rests = rests && status == STET_OK && !w->far;
    return status;
}

static stet_status load_work(settling *w, stet_error *err) {
    stet_sched *s = w->s;
    bool grew;
    stet_status status = open_lock(s, err);
    if (status == STET_OK)
        status = sched_enter(s, err);
    if (status == STET_OK)
        status = sched_demand_cells(s, &grew, err);
    if (status == STET_OK)
        status = sched_load_pending(s, err);
    if (status == STET_OK)
        status = sched_envelopes_again(s, err);
    if (status == STET_OK)
        status = sched_retry(s, err);
    if (w->again)
        stet_plan_resume(s->plan);
    else
        stet_plan_begin(s->plan);
    s->stopped = false;
    w->far = false;
    if (status == STET_OK)
        status = sched_far_fresh(s, &w->far, err);
    if (status == STET_OK && w->far)
        status = sched_load_pending(s, err);
    return status;
}

/* Runs what is outdated, then looks at what came of it. `*more`: another round is needed. */
static stet_status run_round(settling *w, bool first, bool *more, stet_error *err) {
    stet_sched *s = w->s;
    size_t before = s->report.runs;
    bool news = false, grew = false;
    stet_status status = drain(s, err);
    /* The first time in any case: others may have run what is wanted here. */
    if (status == STET_OK && s->opts.rested && (s->report.runs > before || first) && !s->opts.observe_only)
        status = s->opts.rested(s->opts.ctx, err);
    /* What others did meanwhile, and where a wanted cell leads now. And marks that own commits set on actions that are
     * not in memory: those whose output was overwritten. */
    if (status == STET_OK)
        status = sched_news(s, &news, err);
    news = news || s->marks.changed_by_others || s->marks.reload;
    s->marks.reload = false;
    if (status == STET_OK && (news || s->report.runs > before) && !s->opts.observe_only)
        status = sched_load_pending(s, err);
    if (status == STET_OK)
        status = sched_envelopes_again(s, err);
    if (status == STET_OK && (news || s->report.runs > before))
        status = sched_show_results(s, err);
    if (status == STET_OK)
        status = sched_demand_cells(s, &grew, err);
    if (grew)
        sched_wake(s);
    /* Until nothing runs elsewhere, and nobody there wants more of what is here. */
    if (status == STET_OK && (w->far || news || grew || s->far_state.gained || s->report.runs > before)) {
        w->far = true;
        s->far_state.gained = false;
        status = sched_far_fresh(s, &w->far, err);
        sched_far_looked(s, w->far);
    }
    if (status == STET_OK && w->far)
        status = sched_load_pending(s, err);
    *more = !s->stopped && (news || grew || w->far || s->marks.has_more || stet_plan_queued(s->plan) > 0);
    return status;
}

static stet_status run_rounds(settling *w, stet_error *err) {
    stet_status status = STET_OK;
    bool more = true;
    for (int round = 0; status == STET_OK && more && round < MAX_ROUNDS; round++)
        status = run_round(w, round == 0, &more, err);
    return status;
}

/* Stores and reports what was done, also after a failure or a stop. `status`: how the phases ended. */
static stet_status end_settling(stet_sched *s, stet_status status, stet_error *err) {
    sched_async_cancel(s);
    stet_status stored = sched_flush(s, status == STET_OK ? err : NULL);
    if (status == STET_OK)
        status = stored;
    if (status == STET_OK)
        status = sched_doubt_waiting(s, err);
    stet_status synced = stet_space_sync(s->space, status == STET_OK ? err : NULL);
    if (status == STET_OK)
        status = synced;
    tell_idle(s);
    sched_report_cycles(s);
    s->report.loaded = stet_plan_loaded(s->plan);
    if (status == STET_OK || status == STET_CANCELLED) {
        stet_status counted = sched_report_count(s, -1, status == STET_OK ? err : NULL);
        if (status == STET_OK && counted == STET_OK)
            remember(s);
        if (status == STET_OK)
            status = counted;
    }
    return status;
}

static stet_status settle(stet_sched *s, stet_sched_report *out, stet_error *err) {
    static stet_status (*const phases[])(settling *, stet_error *) = {begin_settling, look_for_work, load_work,
                                                                      run_rounds};
    settling w = {.s = s};
    stet_status status = STET_OK;
    for (size_t i = 0; i < sizeof phases / sizeof *phases && status == STET_OK && !w.rests; i++)
        status = phases[i](&w, err);
    if (w.rests)
        status = sched_report_count(s, !w.pending ? 0 : w.survey.same ? w.survey.left : -1, err);
    else
        status = end_settling(s, status, err);
    *out = s->report;
    out->problems = stet_value_retain(s->report.problems);
    return status;
}

stet_status stet_sched_settle(stet_sched *s, stet_sched_report *out, stet_error *err) {
    s->settling = true;
    s->far_state.asked = false;
    sched_far_begin(s);
    stet_status status = settle(s, out, err);
    s->settling = false;
    if (status == STET_OK) {
        status = sched_far_end(s, err);
        sched_far_count(s, out);
        stet_value_release(out->problems);
        out->problems = stet_value_retain(s->report.problems);
    }
    return status;
}

/* "PIECE_KEY NODE", where a scope may hold spaces and a node does not. One that is not there is of no use to anybody. */
static stet_status demand_action(stet_sched *s, const char *action, stet_error *err) {
    uint32_t id;
    stet_error mine = STET_ERROR_INIT;
    const char *space = strrchr(action, ' ');
    char *piece = stet_strndup(action, (size_t)(space - action));
    stet_status status = sched_load(s, piece, space + 1, &id, &mine);
    stet_free(piece);
    if (status == STET_OK)
        stet_plan_demand_node(s->plan, id);
    else if (status == STET_NOT_FOUND)
        status = STET_OK;
    else if (err)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    return status;
}

/* Something of what was wanted could not be had, and was not tried to the end. */
static stet_status not_settled(const stet_sched_report *r, stet_error *err) {
    stet_value p = stet_value_at(r->problems, 0);
    for (size_t i = 1; i < stet_value_count(r->problems) && !stet_value_as_bool(stet_value_get(p, "outdated")); i++)
        p = stet_value_at(r->problems, i);
    stet_value piece = stet_value_get(p, "piece"), node = stet_value_get(p, "node"), error = stet_value_get(p, "error"),
               code = stet_value_get(error, "code"), said = stet_value_get(error, "message");
    bool moved =
        stet_value_type(code) == STET_TYPE_STRING && strcmp(stet_value_as_string(&code, NULL), "conflict") == 0;
    return stet_fail(err, moved ? STET_CONFLICT : STET_FAILED, "not fresh: %s%s%s: %s",
                     stet_value_type(piece) == STET_TYPE_STRING ? stet_value_as_string(&piece, NULL) : "",
                     stet_value_type(node) == STET_TYPE_STRING ? "/" : "",
                     stet_value_type(node) == STET_TYPE_STRING ? stet_value_as_string(&node, NULL) : "an action",
                     stet_value_type(said) == STET_TYPE_STRING ? stet_value_as_string(&said, NULL)
                                                               : "it could not be tried");
}

stet_status sched_make_fresh(stet_sched *s, const stet_tx_read_record *at, size_t count, const char *const *nodes,
                             size_t node_count, size_t *runs, stet_error *err) {
    bool pending, far = false;
    *runs = 0;
    stet_status status = stet_memo_any(s->memo, &pending, err);
    /* What is read in another space, here or by what is read here, may be outdated there without a mark here. */
    for (size_t i = 0; i < count; i++)
        far = far || at[i].space != s->space;
    if (status == STET_OK && !pending && !far)
        status = sched_far_stale(s, &far, err);
    if (status != STET_OK || (!pending && !far && s->memo->durable))
        return status;
    for (size_t i = 0; i < node_count && status == STET_OK; i++)
        status = demand_action(s, nodes[i], err);
    if (status != STET_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        const char *uuid = at[i].space == s->space ? NULL : stet_space_uuid(at[i].space);
        stet_plan_demand(s->plan, sched_doc(s, uuid, &at[i].name), at[i].path, at[i].kind);
    }
    stet_sched_report report = {0};
    s->preflight.active = true;
    s->preflight.reads = at;
    s->preflight.read_count = count;
    s->preflight.nodes = nodes;
    s->preflight.node_count = node_count;
    status = stet_sched_settle(s, &report, err);
    s->preflight.active = false;
    s->preflight.read_count = s->preflight.node_count = 0;
    *runs = report.runs;
    if (status == STET_OK && report.aside > 0)
        status = not_settled(&report, err);
    stet_value_release(report.problems);
    /* What was wanted before is wanted again at the next settling, and nothing else. */
    stet_plan_demand_clear(s->plan);
    stet_map_clear(&s->want.cells);
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&s->pieces, &i, &key, &len, &slot);)
        stet_binding_walk(((sched_piece *)slot->p)->whole
                              ? stet_value_get(((sched_piece *)slot->p)->piece->envelope, "value")
                              : stet_value_null(),
                          sched_demand_link, s);
    return status;
}

stet_status stet_sched_wait(stet_sched *s, int timeout_ms, bool *news, stet_error *err) {
    int64_t until = stet_clock_monotonic_us() / 1000 + timeout_ms;
    *news = false;
    for (;;) {
        int64_t head;
        stet_status status = stet_space_seq(s->space, &head, err);
        if (status != STET_OK)
            return status;
        /* Marks come from other spaces, too, without a commit here. */
        if (head > s->batch.seen + (int64_t)s->batch.own.len ||
            (s->memo->durable && stet_memo_version(s->space) != s->version)) {
            *news = true;
            return STET_OK;
        }
        int64_t rest = until - stet_clock_monotonic_us() / 1000;
        if (rest <= 0 && s->memo->durable) {
            stet_observe_debt debt; /* a space appeared, or its changes could not be told */
            status = stet_observe_owed(s->space, &debt, err);
            *news = status == STET_OK && debt.commits + debt.spaces > 0;
            return status == STET_OK && !*news ? sched_far_news(s, news, err) : status;
        }
        if (rest <= 0 || cancelled(s))
            return STET_OK;
        stet_clock_sleep_ms(rest < 20 ? rest : 20);
    }
}
