#include "graph/stream.h"
#include "scheduler/sched_internal.h"

#define MAX_ROUNDS 1000 /* times that others' commits are taken up in one settling */

int64_t sched_now(stet_sched *s) {
    return s->opts.now_ms ? s->opts.now_ms(s->opts.ctx) : stet_clock_monotonic_us() / 1000;
}

stet_hash stet_sched_runtime(const stet_sched_opts *opts) {
    char text[64];
    (void)opts; /* there is one mode: pull */
    int n = snprintf(text, sizeof text, "stet %d pull", STET_VERSION_NUMBER / 1000);
    return stet_hash_of(text, (size_t)n);
}

stet_status stet_sched_open(stet_project *project, stet_space *space, const char *branch, const stet_sched_opts *opts,
                            stet_sched **out, stet_error *err) {
    stet_sched *s = stet_alloc_zero(sizeof *s);
    s->project = project;
    s->space = space;
    s->opts = *opts;
    s->window = opts->window ? opts->window : SCHED_WINDOW;
    s->branch_name = stet_strdup(branch ? branch : "");
    s->runtime = stet_sched_runtime(opts);
    s->ground = (stet_path)STET_PATH_INIT;
    stet_path_push(&s->ground, "process");
    stet_path_push(&s->ground, "generation");
    stet_status status = stet_space_branch(space, s->branch_name, &s->branch, err);
    if (status == STET_OK && opts->persist)
        status = stet_memo_open(space, s->branch, &s->memo, err);
    else if (status == STET_OK)
        s->memo = stet_memo_volatile(space, s->branch);
    if (status == STET_OK)
        status = stet_space_seq(space, &s->seen, err);
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
    stet_group_end(s->group);
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
    if (s->memo)
        s->memo->ops->close(s->memo);
    for (size_t i = 0; stet_map_next(&s->spaces, &i, &key, &len, &slot);)
        stet_space_close(slot->p);
    for (size_t i = 0; i < s->schema_values.len; i++)
        stet_release(s->schema_values.at[i]);
    for (size_t i = 0; i < s->wanted_cells.len; i++)
        stet_free(s->wanted_cells.at[i]);
    stet_map_release(&s->pieces);
    stet_map_release(&s->numbers);
    stet_map_release(&s->gone);
    stet_map_release(&s->states);
    stet_map_release(&s->spaces);
    stet_map_release(&s->schemas);
    stet_map_release(&s->plain);
    stet_templates_release(&s->templates);
    stet_vec_release(&s->schema_values);
    stet_vec_release(&s->wanted_cells);
    stet_map_release(&s->wanted);
    stet_vec_release(&s->members);
    stet_vec_release(&s->stored);
    stet_vec_release(&s->mine);
    stet_lock_close(s->effects);
    stet_release(s->report.problems);
    stet_release(s->failed_before);
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

/* ---- Values with links, for showing
 * ------------------------------------------------------------------------------------------- */

stet_status stet_sched_resolve(stet_sched *s, stet_value v, stet_value *out, stet_error *err) {
    stet_reader r = {.space = sched_space, .ctx = s};
    stet_status status = stet_tx_begin(s->space, s->branch_name, &r.tx, err);
    if (status != STET_OK)
        return status;
    stet_value got;
    status = stet_reader_value(&r, v, &got, err);
    if (status == STET_OK)
        *out = stet_retain(got);
    stet_reader_release(&r);
    stet_tx_abort(r.tx);
    return status;
}

stet_status stet_sched_get(stet_sched *s, const char *id, const char *scope, stet_pathref path, stet_value *out,
                           stet_error *err) {
    stet_reader r = {.space = sched_space, .ctx = s};
    stet_status status = stet_tx_begin(s->space, s->branch_name, &r.tx, err);
    if (status != STET_OK)
        return status;
    stet_value got;
    status = stet_reader_cell(&r, NULL, &(stet_docname){id, scope}, path, STET_RECURSIVE, &got, err);
    if (status == STET_OK)
        *out = stet_retain(got);
    stet_reader_release(&r);
    stet_tx_abort(r.tx);
    return status;
}

/* ---- What is wanted
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct adopting {
    stet_sched *s;
    stet_piece *piece;
} adopting;

static stet_status write_header(stet_tx *tx, void *ctx, stet_error *err) {
    adopting *a = ctx;
    char hex[STET_HASH_HEX];
    stet_hash_hex(a->s->runtime, hex);
    stet_path path = STET_PATH_INIT;
    stet_docname name = {a->piece->doc, NULL};
    stet_path_push(&path, "process");
    stet_path_push(&path, "runtime");
    stet_status status = stet_tx_write(tx, &name, stet_path_ref(&path), stet_string(hex), err);
    stet_path_pop(&path);
    stet_path_push(&path, "branch");
    if (status == STET_OK)
        status = stet_tx_write(tx, &name, stet_path_ref(&path), stet_string(a->s->branch_name), err);
    stet_path_release(&path);
    return status;
}

typedef struct left_over {
    const stet_process *now;
    STET_VEC(const char *) ids;
    stet_arena arena;
} left_over;

static bool note_left_over(void *ctx, int64_t action, const char *name, size_t len, const void *bytes, size_t size) {
    left_over *l = ctx;
    (void)action, (void)bytes, (void)size;
    char *id = stet_arena_strndup(&l->arena, name, len);
    if (!stet_process_find(l->now, id))
        *stet_vec_add(&l->ids) = id;
    return true;
}

/* Records of nodes that went while nothing was recorded. */
static stet_status forget_left_over(stet_sched *s, const sched_piece *p, const stet_process *now, stet_error *err) {
    left_over l = {.now = now};
    stet_action_filter filter = {.piece = p->piece->doc, .generation = -1};
    stet_status status = stet_observe_scan(s->space, s->branch, &filter, note_left_over, &l, err);
    if (status == STET_OK && l.ids.len > 0)
        status = s->memo->ops->forget(s->memo, p->piece->doc, l.ids.at, l.ids.len, err);
    stet_vec_release(&l.ids);
    stet_arena_release(&l.arena);
    return status;
}

/* The graph is as it was, but what was recorded is not about here and now: another version of stet ran it, it was
 * observed on another branch, or the records are gone. Everything is unknown, and then the piece is taken over. */
static stet_status adopt(stet_sched *s, sched_piece *p, stet_error *err) {
    bool knows = true;
    stet_reason reason = STET_REASON_NONE;
    stet_value branch = stet_get(stet_get(p->piece->envelope, "process"), "branch");
    stet_status status = STET_OK;
    if (!s->memo->durable || p->piece->node_count == p->piece->handler_count)
        return STET_OK;
    if (stet_typeof(branch) != STET_STRING || strcmp(stet_as_string(&branch, NULL), s->branch_name) != 0) {
        reason = STET_REASON_BRANCH;
    } else if (!stet_hash_equal(p->piece->runtime, s->runtime)) {
        reason = STET_REASON_RUNTIME;
    } else {
        status = s->memo->ops->knows(s->memo, p->piece->doc, &knows, err);
        if (!knows)
            reason = STET_REASON_LOST;
    }
    if (status != STET_OK || reason == STET_REASON_NONE)
        return status;
    stet_process *g;
    status = stet_piece_process(s->space, s->branch, p->piece, -1, &g, err);
    if (status != STET_OK)
        return status;
    status = stet_piece_children(s->space, s->branch, -1, g, NULL, err);
    STET_VEC(const char *) ids = {0};
    for (size_t i = 0; i < g->node_count; i++)
        if (!stet_stream_is_handler(g->nodes[i].row))
            *stet_vec_add(&ids) = g->nodes[i].id;
    if (status == STET_OK)
        status = s->memo->ops->distrust(s->memo, p->piece->doc, ids.at, ids.len, reason, err);
    if (status == STET_OK)
        status = forget_left_over(s, p, g, err);
    stet_vec_release(&ids);
    stet_process_free(g);
    if (status == STET_OK)
        status = stet_space_transact(s->space, s->branch_name, write_header, &(adopting){s, p->piece}, NULL, err);
    stet_piece *fresh;
    if (status == STET_OK)
        status = stet_piece_load(s->space, s->branch, p->piece->name, -1, &fresh, err);
    if (status == STET_OK) {
        stet_piece_free(p->piece);
        p->piece = fresh;
    }
    return status;
}

static stet_status touch(stet_sched *s, const char *piece, sched_piece **out, stet_error *err) {
    char *doc = stet_piece_doc(piece);
    stet_status status = sched_piece_of(s, doc, out, err);
    stet_free(doc);
    return status == STET_OK ? adopt(s, *out, err) : status;
}

stet_status stet_sched_touch_piece(stet_sched *s, const char *piece, stet_error *err) {
    sched_piece *p;
    stet_status status = touch(s, piece, &p, err);
    if (status == STET_OK)
        p->part = true;
    return status;
}

stet_status stet_sched_demand_piece(stet_sched *s, const char *piece, stet_error *err) {
    sched_piece *p;
    stet_status status = touch(s, piece, &p, err);
    if (status == STET_OK)
        p->whole = true;
    return status;
}

stet_status stet_sched_demand_cell(stet_sched *s, const char *id, const char *scope, stet_pathref path,
                                   stet_error *err) {
    stet_docname name = {id, scope};
    stet_status status = stet_docname_check(&name, err);
    if (status != STET_OK)
        return status;
    stet_value cell = stet_array();
    stet_push(&cell, stet_string(id));
    stet_push(&cell, stet_string(scope ? scope : ""));
    stet_push(&cell, stet_path_to_value(path));
    *stet_vec_add(&s->wanted_cells) = stet_json_print(cell, STET_JSON_CANONICAL, NULL);
    stet_release(cell);
    return STET_OK;
}

static bool demand_link(void *ctx, stet_value binding, stet_pathref place) {
    stet_sched *s = ctx;
    (void)place;
    stet_link l;
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    if (stet_link_read(binding, &l, &path)) {
        stet_space *space = NULL;
        if (!l.space || (sched_space(s, l.space, &space, NULL) == STET_OK))
            stet_plan_demand(s->plan,
                             sched_doc(s, space ? stet_space_uuid(space) : NULL, &(stet_docname){l.id, l.scope}),
                             stet_path_ref(&path));
    }
    stet_path_release(&path);
    return true;
}

/* The cells that a wanted cell consists of right now: those that reading it reads. `*grew`: some are new. */
static stet_status demand_cells(stet_sched *s, bool *grew, stet_error *err) {
    *grew = false;
    for (size_t i = 0; i < s->wanted_cells.len; i++) {
        stet_value cell;
        stet_status status = stet_json_parse(s->wanted_cells.at[i], strlen(s->wanted_cells.at[i]), &cell, err);
        if (status != STET_OK)
            return status;
        stet_value id = stet_at(cell, 0), scope = stet_at(cell, 1), got;
        stet_path path = STET_PATH_INIT;
        stet_reader r = {.record = true, .space = sched_space, .ctx = s};
        stet_error ignored = STET_ERROR_INIT;
        status = stet_path_of_value(&path, stet_at(cell, 2), err);
        if (status == STET_OK)
            status = stet_tx_begin(s->space, s->branch_name, &r.tx, err);
        if (status == STET_OK) {
            stet_docname name = {stet_as_string(&id, NULL), stet_as_string(&scope, NULL)};
            if (stet_reader_cell(&r, NULL, &name, stet_path_ref(&path), STET_RECURSIVE, &got, &ignored) != STET_OK)
                stet_error_clear(&ignored); /* not there yet: that is a read, too */
            const stet_tx_read_record *at;
            size_t count;
            stet_arena arena = STET_ARENA_INIT;
            stet_buf place = STET_BUF(0);
            stet_tx_reads(r.tx, &arena, &at, &count);
            for (size_t k = 0; k < count; k++) {
                const char *uuid = at[k].space == s->space ? NULL : stet_space_uuid(at[k].space);
                uint32_t doc = sched_doc(s, uuid, &at[k].name);
                stet_buf_clear(&place);
                stet_buf_add(&place, &doc, sizeof doc);
                stet_buf_add(&place, at[k].path.bytes, at[k].path.len);
                if (stet_map_get(&s->wanted, place.data, place.len))
                    continue;
                *grew = true;
                stet_map_put(&s->wanted, place.data, place.len, (stet_slot){.n = 1});
                stet_plan_demand(s->plan, doc, at[k].path);
            }
            stet_buf_release(&place);
            stet_arena_release(&arena);
            stet_reader_release(&r);
            stet_tx_abort(r.tx);
        }
        stet_path_release(&path);
        stet_release(cell);
        if (status != STET_OK)
            return status;
    }
    return STET_OK;
}

/* ---- Starting
 * -----------------------------------------------------------------------------------------------------------------------
 */

static stet_status mark_failed(stet_sched *s, sched_piece *p, stet_error *err) {
    stet_value failures;
    stet_status status = sched_failures(s, p, &failures, err);
    if (status != STET_OK)
        return status;
    p->retried = true;
    for (size_t i = 0; i < stet_count(failures) && status == STET_OK; i++) {
        uint32_t id;
        stet_error mine = STET_ERROR_INIT;
        status = sched_load(s, p->piece->doc, stet_key_at(failures, i, NULL), &id, &mine);
        if (status == STET_OK) {
            sched_action *a = stet_plan_data(s->plan, id);
            a->asked = !stet_plan_is_dirty(s->plan, id) && !stet_plan_is_unknown(s->plan, id);
            stet_plan_mark(s->plan, id, STET_PLAN_DIRTY, INT64_MIN / 2);
        } else if (status == STET_NOT_FOUND) {
            stet_error_clear(&mine);
            status = STET_OK;
        } else if (err) {
            stet_error_move(err, &mine);
        }
    }
    stet_release(failures);
    return status;
}

/* Brings nodes of a piece into memory: all of them, or those that run at every start, which are marked. */
static stet_status load_nodes(stet_sched *s, sched_piece *p, bool all, stet_error *err) {
    stet_process *g;
    stet_status status = stet_piece_process(s->space, s->branch, p->piece, -1, &g, err);
    if (status != STET_OK)
        return status;
    status = stet_piece_children(s->space, s->branch, -1, g, NULL, err);
    for (size_t i = 0; i < g->node_count && status == STET_OK; i++) {
        stet_value again = stet_get(g->nodes[i].row, "onRestart");
        bool restart = stet_typeof(again) == STET_STRING && strcmp(stet_as_string(&again, NULL), "run") == 0;
        uint32_t id;
        if ((!all && !restart) || stet_stream_is_handler(g->nodes[i].row))
            continue;
        status = sched_load(s, p->piece->doc, g->nodes[i].id, &id, err);
        if (status == STET_OK && !all) {
            sched_action *a = stet_plan_data(s->plan, id);
            a->asked = true;
            stet_plan_mark(s->plan, id, STET_PLAN_DIRTY, INT64_MIN / 2);
        }
    }
    stet_process_free(g);
    return status;
}

/* The piece that a document belongs to, if it is that of a piece and there. */
static stet_status meet_piece(stet_sched *s, const char *id, stet_error *err) {
    stet_error mine = STET_ERROR_INIT;
    sched_piece *p;
    if (strncmp(id, "piece:", 6) != 0)
        return STET_OK;
    char *doc = stet_strndup(id, 6 + strcspn(id + 6, ":"));
    stet_status status = sched_piece_of(s, doc, &p, &mine);
    stet_free(doc);
    if (status == STET_NOT_FOUND || status == STET_INVALID || status == STET_CORRUPT)
        status = STET_OK;
    if (status != STET_OK && err)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    return status;
}

/* Where nothing is recorded nobody can tell who writes what is wanted: everything is unknown, in the piece and in those
 * that it reads. */
static stet_status load_unrecorded(stet_sched *s, sched_piece *p, stet_error *err) {
    stet_value names = stet_get(stet_get(p->piece->envelope, "process"), "pieces");
    stet_status status = STET_OK;
    p->loaded = true;
    for (size_t i = 0; i < stet_count(names) && status == STET_OK; i++) {
        stet_value name = stet_at(names, i);
        if (stet_typeof(name) != STET_STRING)
            continue;
        char *doc = stet_piece_doc(stet_as_string(&name, NULL));
        status = meet_piece(s, doc, err);
        stet_free(doc);
    }
    return status == STET_OK ? load_nodes(s, p, true, err) : status;
}

/* Those of its actions that are in memory were loaded when only a part of it was wanted, by a demand or by an event. */
static void want_loaded(stet_sched *s, const sched_piece *p) {
    for (size_t i = 0; i < stet_plan_count(s->plan); i++) {
        const sched_action *a = stet_plan_data(s->plan, (uint32_t)i);
        if (a && a->piece == p && a->id == i && a->certain &&
            stet_plan_find(s->plan, stet_plan_name(s->plan, (uint32_t)i),
                           strlen(stet_plan_name(s->plan, (uint32_t)i))) == i)
            stet_plan_set_certain(s->plan, (uint32_t)i);
    }
}

/* What a start has to do for a piece that is wanted as a whole. */
static stet_status enter_piece(stet_sched *s, sched_piece *p, stet_error *err) {
    stet_status status = STET_OK;
    p->entered = true;
    want_loaded(s, p);
    stet_binding_walk(stet_get(p->piece->envelope, "value"), demand_link, s);
    if (s->opts.retry_failed)
        status = mark_failed(s, p, err);
    return status == STET_OK && p->piece->restart_count > 0 ? load_nodes(s, p, false, err) : status;
}

static stet_status enter(stet_sched *s, stet_error *err) {
    const void *key;
    size_t len;
    stet_slot *slot;
    stet_status status = STET_OK;
    for (size_t i = 0; !s->memo->durable && i < s->wanted_cells.len && status == STET_OK; i++) {
        stet_value cell;
        status = stet_json_parse(s->wanted_cells.at[i], strlen(s->wanted_cells.at[i]), &cell, err);
        if (status != STET_OK)
            return status;
        stet_value id = stet_at(cell, 0);
        status = meet_piece(s, stet_as_string(&id, NULL), err);
        stet_release(cell);
    }
    /* Pieces may be added while we load: the map keeps its order. */
    for (size_t i = 0; status == STET_OK && stet_map_next(&s->pieces, &i, &key, &len, &slot);) {
        sched_piece *p = slot->p;
        if (!s->memo->durable && !p->loaded)
            status = load_unrecorded(s, p, err);
        if (status == STET_OK && p->whole && !p->entered)
            status = enter_piece(s, p, err);
        else if (status == STET_OK && sched_part(s, p) && s->opts.retry_failed && !p->retried)
            status = mark_failed(s, p, err);
    }
    return status;
}

stet_status stet_sched_is_wanted(stet_sched *s, const char *piece_doc, const char *node, bool *wanted,
                                 stet_error *err) {
    bool grew;
    uint32_t id;
    *wanted = false;
    stet_status status = stet_map_len(&s->wanted) > 0 ? STET_OK : enter(s, err);
    if (status == STET_OK && stet_map_len(&s->wanted) == 0)
        status = demand_cells(s, &grew, err);
    if (status == STET_OK)
        status = sched_load(s, piece_doc, node, &id, err);
    return status == STET_OK ? stet_plan_is_live(s->plan, id, wanted, err) : status;
}

/* ---- Settling
 * ------------------------------------------------------------------------------------------------------------------------
 */

static bool cancelled(stet_sched *s) {
    return s->opts.cancelled && s->opts.cancelled(s->opts.ctx);
}

/* At idle the materializers of those pieces run that are wanted as a whole; before an event nothing that it does not
 * need. */
static bool idle_wanted(void *ctx, uint32_t node) {
    stet_sched *s = ctx;
    sched_action *a = stet_plan_data(s->plan, node);
    return !s->preflight && a && a->piece->whole;
}

/* What others commit while commands run: it may be that one of them is not wanted any more. */
static stet_status look_around(stet_sched *s, stet_error *err) {
    int64_t head;
    bool news;
    if (s->members.len > 0)
        return STET_OK; /* looked at when they are stored */
    stet_status status = stet_space_seq(s->space, &head, err);
    if (status == STET_OK && s->group && head != s->group_head) {
        stet_group_end(s->group);
        s->group = NULL;
    }
    return status == STET_OK ? sched_news(s, &news, err) : status;
}

/* The plan may have to look at many that turn out to be of no use: on one snapshot. */
static stet_status next_step(stet_sched *s, stet_plan_step *step, stet_error *err) {
    s->hold = true;
    stet_status status = stet_plan_next(s->plan, sched_now(s), step, err);
    s->hold = false;
    stet_memo_let_go(s->space, s->holding);
    s->holding = false;
    return status;
}

/* Goes on with the graphs that others have set up. */
static stet_status renew(stet_sched *s, stet_error *err) {
    stet_status status = sched_flush(s, err);
    if (status != STET_OK)
        return status;
    sched_renew(s);
    status = enter(s, err);
    return status == STET_OK ? sched_load_pending(s, err) : status;
}

/* Runs until the plan has nothing left. */
static stet_status drain(stet_sched *s, stet_error *err) {
    for (;;) {
        stet_plan_step step;
        if (cancelled(s)) {
            sched_async_cancel(s);
            return stet_fail(err, STET_CANCELLED, "stopped");
        }
        stet_status status = STET_OK;
        if (s->outdated && !s->stopped && sched_async_count(s) == 0)
            status = renew(s, err);
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
            if (status == STET_OK && s->woken)
                status = sched_flush(s, err);
            if (status == STET_OK && s->woken)
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
            if (status == STET_OK && s->more && !s->stopped) {
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
        if (status != STET_OK) {
            sched_async_cancel(s);
            return status;
        }
    }
}

/* All is done, and what is marked still is not needed: it need not be looked at again for this. To remember that is a
 * help and no more. */
static void remember(stet_sched *s) {
    bool any = false;
    stet_survey known;
    if (!s->memo->durable || s->opts.observe_only || s->stopped || s->more || s->others || s->report.aside > 0 ||
        !stet_plan_at_rest(s->plan) || s->memo->ops->any(s->memo, &any, NULL) != STET_OK || !any)
        return;
    int64_t left = (int64_t)(s->report.left);
    if (sched_survey(s, &known, NULL) == STET_OK && known.same && known.left == left)
        return;
    if (s->memo->ops->surveyed(s->memo, s->demand, s->looked, (size_t)left, NULL) != STET_OK)
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

/* What was found not to be needed, of what is marked: `s->since`. */
static stet_status look_for_survey(stet_sched *s, bool pending, stet_survey *out, stet_error *err) {
    bool grew;
    s->since = 0;
    if (!pending)
        return STET_OK;
    stet_status status = demand_cells(s, &grew, err); /* where a wanted cell leads is part of what is wanted */
    if (status == STET_OK)
        status = sched_survey(s, out, err);
    return status == STET_NOT_FOUND ? STET_OK : status;
}

stet_status stet_sched_settle(stet_sched *s, stet_sched_report *out, stet_error *err) {
    stet_release(s->report.problems);
    s->report = (stet_sched_report){.problems = stet_array()};
    stet_release(s->failed_before);
    s->failed_before = stet_array();
    for (size_t i = 0; i < stet_plan_count(s->plan); i++) {
        sched_action *a = stet_plan_data(s->plan, (uint32_t)i);
        if (a)
            a->ran = a->stays = false;
    }
    stet_map_clear(&s->gone);
    bool pending = false, news, grew = false;
    if (s->group) { /* a snapshot of now */
        stet_group_end(s->group);
        s->group = NULL;
    }
    stet_status status = sched_news(s, &news, err);
    if (status == STET_OK && s->outdated)
        sched_renew(s);
    if (status == STET_OK)
        status = s->memo->ops->any(s->memo, &pending, err);
    stet_survey survey = {0};
    if (status == STET_OK)
        status = look_for_survey(s, pending, &survey, err);
    bool quiet = status == STET_OK && (!pending || (s->since > 0 && !survey.newer)) && s->memo->durable &&
                 !s->opts.retry_failed && stet_plan_count(s->plan) == 0;
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&s->pieces, &i, &key, &len, &slot);) {
        sched_piece *p = slot->p;
        quiet = quiet && p->piece->restart_count == 0;
        p->known_failures = false; /* others may have run since */
        /* Whether what is wanted needs one that failed, only the graph in memory tells. */
        if (status == STET_OK && sched_part(s, p) && s->memo->durable) {
            stet_value failures;
            status = sched_failures(s, p, &failures, err);
            if (status == STET_OK && stet_count(failures) > 0) {
                quiet = false;
                s->since = 0;
            }
            if (status == STET_OK)
                stet_release(failures);
        }
    }
    if (quiet && status == STET_OK) { /* everything that is needed stands: nothing is loaded at all */
        status = sched_report_count(s, !pending ? 0 : survey.same ? survey.left : -1, err);
        *out = s->report;
        out->problems = stet_retain(s->report.problems);
        return status;
    }
    if (status == STET_OK)
        status = open_lock(s, err);
    if (status == STET_OK)
        status = enter(s, err);
    if (status == STET_OK)
        status = demand_cells(s, &grew, err);
    if (status == STET_OK)
        status = sched_load_pending(s, err);
    stet_plan_begin(s->plan);
    s->stopped = false;
    for (int round = 0; status == STET_OK && round < MAX_ROUNDS; round++) {
        size_t before = s->report.runs;
        status = drain(s, err);
        if (status != STET_OK)
            break;
        /* What others did meanwhile, and where a wanted cell leads now. And marks that own commits set on actions that
         * are not in memory: those whose output was overwritten. */
        status = sched_news(s, &news, err);
        news = news || s->others || s->reload;
        s->reload = false;
        if (status == STET_OK && (news || s->report.runs > before) && !s->opts.observe_only)
            status = sched_load_pending(s, err);
        if (status == STET_OK)
            status = demand_cells(s, &grew, err);
        if (grew)
            sched_wake(s);
        if (status != STET_OK || (!news && !grew && !s->more && stet_plan_queued(s->plan) == 0) || s->stopped)
            break;
    }
    stet_status stored = sched_flush(s, status == STET_OK ? err : NULL);
    if (status == STET_OK)
        status = stored;
    stet_status synced = stet_sync(s->space, status == STET_OK ? err : NULL);
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
    *out = s->report;
    out->problems = stet_retain(s->report.problems);
    return status;
}

/* "piece:NAME NODE". One that is not there is of no use to anybody. */
static stet_status demand_action(stet_sched *s, const char *action, stet_error *err) {
    uint32_t id;
    stet_error mine = STET_ERROR_INIT;
    char *doc = stet_strndup(action, strcspn(action, " "));
    stet_status status = sched_load(s, doc, action + strlen(doc) + 1, &id, &mine);
    stet_free(doc);
    if (status == STET_OK)
        stet_plan_demand_node(s->plan, id);
    else if (status == STET_NOT_FOUND)
        status = STET_OK;
    else if (err)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    return status;
}

stet_status sched_make_fresh(stet_sched *s, const stet_tx_read_record *at, size_t count, const char *const *nodes,
                             size_t node_count, size_t *runs, stet_error *err) {
    bool pending;
    *runs = 0;
    stet_status status = s->memo->ops->any(s->memo, &pending, err);
    if (status != STET_OK || (!pending && s->memo->durable))
        return status;
    for (size_t i = 0; i < node_count && status == STET_OK; i++)
        status = demand_action(s, nodes[i], err);
    if (status != STET_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        const char *uuid = at[i].space == s->space ? NULL : stet_space_uuid(at[i].space);
        stet_plan_demand(s->plan, sched_doc(s, uuid, &at[i].name), at[i].path);
    }
    stet_sched_report report = {0};
    s->preflight = true;
    s->preflight_reads = at;
    s->preflight_count = count;
    s->preflight_nodes = nodes;
    s->preflight_node_count = node_count;
    status = stet_sched_settle(s, &report, err);
    s->preflight = false;
    s->preflight_count = s->preflight_node_count = 0;
    *runs = report.runs;
    stet_release(report.problems);
    /* What was wanted before is wanted again at the next settling, and nothing else. */
    stet_plan_demand_clear(s->plan);
    stet_map_clear(&s->wanted);
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&s->pieces, &i, &key, &len, &slot);)
        stet_binding_walk(((sched_piece *)slot->p)->whole ? stet_get(((sched_piece *)slot->p)->piece->envelope, "value")
                                                          : stet_null(),
                          demand_link, s);
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
        if (head > s->seen + (int64_t)s->mine.len) {
            *news = true;
            return STET_OK;
        }
        int64_t rest = until - stet_clock_monotonic_us() / 1000;
        if (rest <= 0 || cancelled(s))
            return STET_OK;
        stet_clock_sleep_ms(rest < 20 ? rest : 20);
    }
}
