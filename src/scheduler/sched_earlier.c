/* sched_earlier.c - what earlier runs of an action wrote through its cells, and what becomes of it in a new run.
 *
 * A computation is a function of what it reads: a place that an earlier run wrote and this one does not is taken back
 * (graph/owned.h), in the transaction of the run. So after any number of runs the documents are what a first run would
 * have left.
 *
 *   E1. It is taken back before the run's first write into that document, so that the run writes on what a first run
 *       would have found; at the latest at the end.
 *   E2. A document that the run read before it wrote there is state that it carries on: nothing of it is taken back.
 *   E3. Effects, runs that fail and runs that only observe take nothing back: everything stays the action's own.
 *   E4. Only the argument and cells of its own piece are concerned. What was written elsewhere, through links, stays.
 *   E5. Where the record can't tell what was written (a fork, a lost record, another version of stet), it may have been
 *       anything in the cells that the action is given.
 *   E6. The same holds for a removed child: if the record can't tell what it wrote, everything that its coordinator may
 *       write through it is taken back. Other actions that had written there find it overwritten, and run again.
 */

#include "graph/owned.h"
#include "graph/stream.h"
#include "scheduler/sched_internal.h"

static void add_earlier(action_run *r, const stet_docname *name, stet_pathref path) {
    const sched_action *a = r->a;
    if (!stet_piece_owns(a->piece->piece, name))
        return;
    if (a->out_id && strcmp(a->out_scope, a->piece->piece->scope) == 0 && strcmp(a->out_id, name->id) == 0 &&
        stet_path_is_prefix(stet_path_ref(&a->out_path), path))
        return;
    for (size_t i = 0; i < r->earlier.len; i++)
        if (strcmp(r->earlier.at[i].id, name->id) == 0 &&
            stet_path_compare(stet_path_ref(&r->earlier.at[i].path), path) == 0)
            return;
    sched_earlier *e = stet_vec_add(&r->earlier);
    *e = (sched_earlier){.id = stet_strdup(name->id), .path = STET_PATH_INIT};
    stet_path_set(&e->path, path);
}

/* E5. One that never ran has written nothing. */
static bool told(const stet_sched *s, const stet_memo_action *x) {
    if (!x->observed)
        return x->state != STET_STATE_UNKNOWN || x->reason == STET_REASON_NEVER || x->reason == STET_REASON_NONE;
    return stet_hash_equal(x->runtime, s->runtime) &&
           !(x->state == STET_STATE_UNKNOWN && x->reason == STET_REASON_LOST);
}

typedef STET_VEC(stet_address) plan_writes;

/* What it wrote in this process, stored or not. Names lie in the plan. */
static plan_writes planned(stet_sched *s, const sched_action *a) {
    STET_VEC(stet_plan_write) own = {0};
    plan_writes out = {0};
    stet_vec_reserve(&own, stet_plan_writes(s->plan, a->id, NULL, 0) + 1);
    own.len = a->observed ? stet_plan_writes(s->plan, a->id, own.at, own.cap) : 0;
    for (size_t i = 0; i < own.len; i++) {
        const char *uuid;
        stet_docname name;
        sched_doc_parts(s, own.at[i].doc, &uuid, &name);
        if (!uuid)
            *stet_vec_add(&out) = (stet_address){NULL, name, own.at[i].path};
    }
    stet_vec_release(&own);
    return out;
}

static bool holds(const plan_writes *list, const stet_memo_cell *cell) {
    bool found = false;
    for (size_t i = 0; i < list->len && !found; i++)
        found = strcmp(list->at[i].name.id, cell->name.id) == 0 &&
                strcmp(list->at[i].name.scope, cell->name.scope) == 0 &&
                stet_path_compare(list->at[i].path, cell->path) == 0;
    return found;
}

/* From the record, and from the plan: what ran in this process may not be stored yet. */
static void load_earlier(action_run *r) {
    stet_sched *s = r->s;
    sched_action *a = r->a;
    if (r->earlier_known)
        return;
    r->earlier_known = true;
    if (!a->has_cells || stet_stream_is_handler(a->row))
        return;
    stet_arena arena = STET_ARENA_INIT;
    stet_memo_action x = {0};
    bool known = true;
    if (!s->memo->durable)
        known = a->writes_known;
    else if (stet_memo_load(s->memo, a->piece->piece->key, a->node, &arena, &x, NULL) == STET_OK)
        known = a->writes_known || told(s, &x);
    plan_writes own = planned(s, a);
    /* Of one that ran in this process the plan tells all. The record may be of a run before that, which had written more:
     * two that write to one cell would take back what the other has just written, until they are stored. */
    for (size_t i = 0; i < x.write_count; i++)
        if (!x.writes[i].space && (!a->writes_known || holds(&own, &x.writes[i])))
            add_earlier(r, &x.writes[i].name, x.writes[i].path);
    stet_address *cells;
    size_t count = known ? 0 : sched_bound_cells(a, &arena, &cells);
    for (size_t i = 0; i < count; i++)
        add_earlier(r, &cells[i].name, cells[i].path);
    for (size_t i = 0; i < own.len; i++)
        add_earlier(r, &own.at[i].name, own.at[i].path);
    stet_vec_release(&own);
    stet_arena_release(&arena);
}

static bool overlap(stet_pathref a, stet_pathref b) {
    return stet_path_is_prefix(a, b) || stet_path_is_prefix(b, a);
}

void sched_earlier_look(action_run *r, stet_pathref path) {
    if (!r->a->has_cells || stet_stream_is_handler(r->a->row))
        return;
    stet_reader_place at = {.path = STET_PATH_INIT};
    stet_error ignored = STET_ERROR_INIT;
    bool record = r->reader.record;
    r->reader.record = false;
    if (stet_reader_locate(&r->reader, r->base.bindings, path, &at, &ignored) == STET_OK && !at.space &&
        stet_piece_owns(r->a->piece->piece, &(stet_docname){at.id, at.scope})) {
        sched_earlier *l = stet_vec_add(&r->looked);
        *l = (sched_earlier){.id = at.id, .path = at.path};
        at.id = NULL;
        at.path = (stet_path)STET_PATH_INIT;
    }
    r->reader.record = record;
    stet_reader_place_release(&at);
    stet_error_clear(&ignored);
}

typedef struct plain_search {
    const sched_earlier *e;
    const char *scope;
    bool found;
} plain_search;

static bool meet_plain(void *ctx, stet_value binding, stet_pathref place) {
    plain_search *c = ctx;
    stet_link l;
    stet_path path = STET_PATH_INIT;
    (void)place;
    stet_path_push(&path, "value");
    c->found =
        c->found || (stet_link_read(binding, &l, &path) && !l.as_cell && !l.space && strcmp(l.scope, c->scope) == 0 &&
                     strcmp(l.id, c->e->id) == 0 && overlap(stet_path_ref(&path), stet_path_ref(&c->e->path)));
    stet_path_release(&path);
    return !c->found;
}

/* E2. What is read to compare the inputs with a schema does not count: the action itself does not look at it. */
static bool was_read(action_run *r, const sched_earlier *e) {
    for (size_t i = 0; i < r->looked.len; i++)
        if (strcmp(r->looked.at[i].id, e->id) == 0 &&
            overlap(stet_path_ref(&r->looked.at[i].path), stet_path_ref(&e->path)))
            return true;
    plain_search c = {e, r->a->piece->piece->scope, false};
    stet_binding_walk(r->base.bindings, meet_plain, &c);
    return c.found;
}

/* `in` NULL: in all documents. */
static stet_status take_back(action_run *r, const stet_docname *in, stet_error *err) {
    stet_status status = STET_OK;
    load_earlier(r);
    if (r->a->effect || r->s->opts.observe_only)
        return STET_OK;
    for (size_t i = 0; i < r->earlier.len && status == STET_OK; i++) {
        sched_earlier *e = &r->earlier.at[i];
        stet_docname name = stet_piece_name(r->a->piece->piece, e->id);
        if (e->met || (in && (strcmp(e->id, in->id) != 0 || strcmp(name.scope, in->scope) != 0)))
            continue;
        e->met = true;
        e->kept = was_read(r, e);
        if (!e->kept) {
            sched_cells_note(r, &name);
            status = stet_piece_take_back(r->tx, r->a->piece->piece, &name, stet_path_ref(&e->path), in == NULL, err);
        }
    }
    return status;
}

stet_status sched_earlier_before(action_run *r, const stet_docname *name, stet_error *err) {
    return take_back(r, name, err);
}

stet_status sched_earlier_end(action_run *r, stet_error *err) {
    return r->a->has_cells && !stet_stream_is_handler(r->a->row) ? take_back(r, NULL, err) : STET_OK;
}

size_t sched_earlier_kept(action_run *r, stet_address *out) {
    size_t count = 0;
    bool all = r->failed || r->a->effect || r->s->opts.observe_only;
    load_earlier(r);
    for (size_t i = 0; i < r->earlier.len; i++)
        if (all || r->earlier.at[i].kept) {
            if (out)
                out[count] = (stet_address){NULL, stet_piece_name(r->a->piece->piece, r->earlier.at[i].id),
                                            stet_path_ref(&r->earlier.at[i].path)};
            count++;
        }
    return count;
}

static void release_places(sched_earlier *at, size_t len) {
    for (size_t i = 0; i < len; i++) {
        stet_free(at[i].id);
        stet_path_release(&at[i].path);
    }
}

void sched_earlier_release(action_run *r) {
    release_places(r->earlier.at, r->earlier.len);
    release_places(r->looked.at, r->looked.len);
    stet_vec_release(&r->earlier);
    stet_vec_release(&r->looked);
    r->earlier_known = false;
}

stet_status sched_earlier_gone(stet_sched *s, stet_tx *tx, const sched_action *coordinator, const char *node,
                               stet_error *err) {
    const sched_piece *p = coordinator->piece;
    stet_arena arena = STET_ARENA_INIT;
    stet_memo_action x = {0};
    stet_status status = STET_OK;
    uint32_t id = sched_find_loaded(s, p, node);
    const sched_action *a = id != STET_PLAN_NONE ? stet_plan_data(s->plan, id) : NULL;
    plan_writes own = {0};
    if (a)
        own = planned(s, a);
    for (size_t i = 0; i < own.len && status == STET_OK; i++)
        status = stet_piece_take_back(tx, p->piece, &own.at[i].name, own.at[i].path, true, err);
    bool there = stet_memo_load(s->memo, p->piece->key, node, &arena, &x, NULL) == STET_OK;
    for (size_t i = 0; there && i < x.write_count && status == STET_OK; i++)
        if (!x.writes[i].space)
            status = stet_piece_take_back(tx, p->piece, &x.writes[i].name, x.writes[i].path, true, err);
    stet_address *cells;
    bool known = (a && a->writes_known) || (s->memo->durable && (!there || told(s, &x)));
    size_t count = known || !coordinator->materializer ? 0 : sched_envelopes(coordinator, &arena, &cells);
    for (size_t i = 0; i < count && status == STET_OK; i++)
        status = stet_piece_take_back(tx, p->piece, &cells[i].name, cells[i].path, true, err);
    stet_vec_release(&own);
    stet_arena_release(&arena);
    return status;
}
