/* sched_want.c - what is wanted, and what a start has to do for it.
 *
 * That is: pieces that this version has not met yet, cells and where they lead, and what failed before.
 *
 * The result of a piece is wanted with everything that it shows. Most outputs hold values, and it is enough to want the
 * action that makes them. Links in an output show more: `filter` passes on the links in the elements that it keeps, the
 * result of a child may be a place in its argument, and a function may return a link. What is there may be made by
 * another piece, here or in another space, and no action of this piece reads it. So:
 *
 *   W1. A run whose output shows more records a read of the document "piece:NAME:links", which does not exist.
 *   W2. As long as the record of an action in the result has that read, the result is read as a whole before and after
 *       anything runs, and all that this reads is wanted. A null start of other pieces reads nothing of their results.
 */

#include "graph/stream.h"
#include "scheduler/sched_internal.h"
#include "scheduler/standing.h"

/* What was recorded may not be about here and now: another version of stet ran the piece, it was observed on another
 * branch, or the records are gone. Everything is unknown then. */
static stet_status adopt(stet_sched *s, sched_piece *p, stet_error *err) {
    bool knows = true;
    if (!s->memo->durable || p->piece->node_count == p->piece->handler_count)
        return STET_OK;
    stet_status status = stet_standing_adopt(s->space, s->branch, err);
    if (status == STET_OK)
        status = stet_memo_knows(s->memo, p->piece->key, &knows, err);
    if (status != STET_OK || (knows && stet_hash_equal(p->piece->runtime, s->runtime)))
        return status;
    status = stet_standing_adopt_piece(s->space, s->branch, p->piece->name, err);
    if (status != STET_OK)
        return status;
    stet_piece *fresh;
    status = stet_piece_load(s->space, s->branch, p->piece->name, -1, &fresh, err);
    if (status == STET_OK) {
        stet_piece_free(p->piece);
        p->piece = fresh;
    }
    return status;
}

static stet_status touch(stet_sched *s, const char *piece, sched_piece **out, stet_error *err) {
    char *key = stet_piece_key(piece);
    stet_status status = sched_piece_of(s, key, out, err);
    stet_free(key);
    return status == STET_OK ? adopt(s, *out, err) : status;
}

stet_status stet_sched_touch_piece(stet_sched *s, const char *piece, stet_error *err) {
    sched_piece *p;
    stet_status status = touch(s, piece, &p, err);
    if (status == STET_OK)
        p->part = true;
    return status;
}

typedef struct beyond {
    stet_sched *s;
    const char *nodes, *scope; /* how ids of its own outputs begin, and their scope */
    stet_status status;
    stet_error *err;
} beyond;

/* Most links of a result are: that is to be told before a path is made of one. */
static bool is_own_output(const beyond *b, stet_value binding) {
    stet_value link;
    if (!stet_link_is(binding, &link) || stet_value_find(link, "space", 5, NULL))
        return false;
    stet_value id = stet_value_get(link, "id");
    return stet_value_type(id) == STET_TYPE_STRING &&
           strncmp(stet_value_as_string(&id, NULL), b->nodes, strlen(b->nodes)) == 0;
}

/* A cell that is no output of the piece may hold links, which lead to what other pieces write. */
static bool want_beyond(void *ctx, stet_value binding, stet_pathref place) {
    beyond *b = ctx;
    if (is_own_output(b, binding))
        return true;
    stet_link l;
    stet_space *space = NULL;
    stet_path path = STET_PATH_INIT;
    (void)place;
    stet_path_push(&path, "value");
    if (stet_link_read(binding, &l, &path)) {
        if (l.space && sched_space(b->s, l.space, &space, NULL) == STET_OK && space)
            sched_doc(b->s, stet_space_uuid(space), &(stet_docname){l.id, l.scope}); /* there is something far */
        else if (!space && (strcmp(l.scope, b->scope) != 0 || strncmp(l.id, b->nodes, strlen(b->nodes)) != 0))
            b->status = stet_sched_demand_cell(b->s, l.id, l.scope, stet_path_ref(&path), b->err);
    }
    stet_path_release(&path);
    return b->status == STET_OK;
}

stet_status stet_sched_demand_piece(stet_sched *s, const char *piece, stet_error *err) {
    sched_piece *p;
    stet_status status = touch(s, piece, &p, err);
    if (status != STET_OK)
        return status;
    p->whole = true;
    char *nodes = stet_piece_part(piece, "node", "");
    beyond b = {s, nodes, p->piece->scope, STET_OK, err};
    stet_binding_walk(stet_value_get(p->piece->envelope, "value"), want_beyond, &b);
    stet_free(nodes);
    return b.status;
}

stet_status stet_sched_demand_cell(stet_sched *s, const char *id, const char *scope, stet_pathref path,
                                   stet_error *err) {
    stet_docname name = {id, scope};
    stet_status status = stet_docname_check(&name, err);
    if (status != STET_OK)
        return status;
    stet_value cell = stet_value_array();
    stet_value_push(&cell, stet_value_string(id));
    stet_value_push(&cell, stet_value_string(scope ? scope : ""));
    stet_value_push(&cell, stet_path_to_value(path));
    char *text = stet_json_print(cell, STET_JSON_CANONICAL, NULL);
    stet_value_release(cell);
    if (stet_map_get(&s->want.named, text, strlen(text))) {
        stet_free(text);
        return STET_OK;
    }
    stet_map_put(&s->want.named, text, strlen(text), (stet_slot){.n = 1});
    *stet_vec_add(&s->want.names) = text;
    return STET_OK;
}

typedef struct links_out {
    const char *children, *scope; /* how ids of documents of its children begin, and their scope */
    bool found;
} links_out;

static bool find_link_out(void *ctx, stet_value binding, stet_pathref place) {
    links_out *o = ctx;
    stet_link l;
    stet_path path = STET_PATH_INIT;
    (void)place;
    if (stet_link_read(binding, &l, &path))
        o->found = l.space || strcmp(l.scope, o->scope) != 0 || strncmp(l.id, o->children, strlen(o->children)) != 0;
    stet_path_release(&path);
    return !o->found;
}

stet_status sched_note_links(action_run *r, bool links, stet_error *err) {
    const stet_piece *p = r->a->piece->piece;
    if (links) {
        char *children = stet_piece_part(p->name, "child", "");
        links_out o = {children, p->scope, false};
        stet_binding_walk(r->result, find_link_out, &o);
        stet_free(children);
        r->leads = o.found;
    }
    if (!r->leads)
        return STET_OK;
    stet_value ignored;
    stet_error mine = STET_ERROR_INIT;
    char *id = stet_piece_part(p->name, "links", NULL);
    stet_docname name = stet_piece_name(p, id);
    stet_status status = stet_tx_read(r->tx, NULL, &name, STET_PATH_ROOT, STET_SHALLOW, &ignored, &mine);
    stet_free(id);
    if (status == STET_NOT_FOUND)
        status = STET_OK;
    if (status != STET_OK && err)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    return status;
}

typedef struct child_shows {
    stet_pattern *pattern;
    bool more;
} child_shows;

static bool shows_more(void *ctx, stet_value binding, stet_pathref place) {
    child_shows *c = ctx;
    stet_pattern_ref ref;
    (void)place;
    c->more = !stet_pattern_resolve(c->pattern, binding, &ref) || ref.kind != STET_REF_NODE;
    return !c->more;
}

bool sched_child_leads(const stet_template *t) {
    child_shows c = {t->pattern, false};
    stet_binding_walk(t->pattern->result, shows_more, &c);
    return c.more;
}

typedef STET_VEC(int64_t) reader_list;

static stet_status note_reader(void *ctx, int64_t number, stet_error *err) {
    (void)err;
    *stet_vec_add((reader_list *)ctx) = number;
    return STET_OK;
}

typedef struct shown_ids {
    const char *scope;
    stet_map ids;
} shown_ids;

static bool note_id(void *ctx, stet_value binding, stet_pathref place) {
    shown_ids *shown = ctx;
    stet_link l;
    stet_path path = STET_PATH_INIT;
    (void)place;
    if (stet_link_read(binding, &l, &path) && !l.space && strcmp(l.scope, shown->scope) == 0)
        stet_map_put(&shown->ids, l.id, strlen(l.id), (stet_slot){.n = 1});
    stet_path_release(&path);
    return true;
}

/* Is one of these actions in the result, by itself or as a child of one that is? An output that lies in a named cell is
 * wanted as a cell already. */
static stet_status in_result(stet_sched *s, const sched_piece *p, const reader_list *n, bool *out, stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    shown_ids shown = {.scope = p->piece->scope};
    stet_status status = STET_OK;
    if (n->len > 0)
        stet_binding_walk(stet_value_get(p->piece->envelope, "value"), note_id, &shown);
    for (size_t i = 0; i < n->len && !*out && status == STET_OK; i++) {
        stet_action_record r;
        stet_error mine = STET_ERROR_INIT;
        stet_arena_clear(&arena);
        status = stet_observe_brief(s->space, n->at[i], &arena, &r, &mine);
        bool gone = status == STET_NOT_FOUND;
        if (gone)
            status = STET_OK;
        else if (status != STET_OK && err)
            stet_error_move(err, &mine);
        stet_error_clear(&mine);
        if (gone || status != STET_OK)
            continue;
        char *node = stet_strndup(r.key.action, strcspn(r.key.action, "["));
        char *id = stet_piece_part(p->piece->name, "node", node);
        *out = stet_map_get(&shown.ids, id, strlen(id)) != NULL;
        stet_free(id);
        stet_free(node);
    }
    stet_map_release(&shown.ids);
    stet_arena_release(&arena);
    return status;
}

static stet_status result_leads(stet_sched *s, const sched_piece *p, bool *out, stet_error *err) {
    reader_list readers = {0};
    bool complete;
    *out = p->leads;
    if (!s->memo->durable)
        return STET_OK;
    char *id = stet_piece_part(p->piece->name, "links", NULL);
    stet_status status = stet_memo_readers(s->memo, NULL, &(stet_docname){id, p->piece->scope}, STET_PATH_ROOT,
                                           STET_VALUE, note_reader, &readers, &complete, err);
    stet_free(id);
    *out = false;
    if (status == STET_OK)
        status = in_result(s, p, &readers, out, err);
    stet_vec_release(&readers);
    return status;
}

stet_status sched_show_results(stet_sched *s, stet_error *err) {
    const void *key;
    size_t len;
    stet_slot *slot;
    stet_status status = STET_OK;
    stet_path value = STET_PATH_INIT;
    stet_path_push(&value, "value");
    for (size_t i = 0; status == STET_OK && stet_map_next(&s->pieces, &i, &key, &len, &slot);) {
        sched_piece *p = slot->p;
        if (!p->whole || p->shown)
            continue;
        status = result_leads(s, p, &p->shown, err);
        if (status == STET_OK && p->shown)
            status = stet_sched_demand_cell(s, p->piece->doc, p->piece->scope, stet_path_ref(&value), err);
    }
    stet_path_release(&value);
    return status;
}

bool sched_demand_link(void *ctx, stet_value binding, stet_pathref place) {
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
                             stet_path_ref(&path), STET_RECURSIVE);
    }
    stet_path_release(&path);
    return true;
}

/* The cells that a wanted cell consists of right now: those that reading it reads. `*grew`: some are new. */
stet_status sched_demand_cells(stet_sched *s, bool *grew, stet_error *err) {
    *grew = false;
    for (size_t i = 0; i < s->want.names.len; i++) {
        stet_value cell;
        stet_status status = stet_json_parse(s->want.names.at[i], strlen(s->want.names.at[i]), &cell, err);
        if (status != STET_OK)
            return status;
        stet_value id = stet_value_at(cell, 0), scope = stet_value_at(cell, 1);
        stet_path path = STET_PATH_INIT;
        stet_reader r = {.record = true, .space = sched_space, .ctx = s};
        status = stet_path_of_value(&path, stet_value_at(cell, 2), err);
        if (status == STET_OK)
            status = stet_tx_begin(s->space, s->branch_name, &r.tx, err);
        if (status == STET_OK) {
            stet_docname name = {stet_value_as_string(&id, NULL), stet_value_as_string(&scope, NULL)};
            stet_reader_visit(&r, &name, stet_path_ref(&path));
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
                uint64_t wants = at[k].kind == STET_SHALLOW ? 1 : 2; /* all of it, or less */
                const stet_slot *slot = stet_map_get(&s->want.cells, place.data, place.len);
                if (slot && slot->n >= wants)
                    continue;
                *grew = true;
                stet_map_put(&s->want.cells, place.data, place.len, (stet_slot){.n = wants});
                stet_plan_demand(s->plan, doc, at[k].path, at[k].kind);
            }
            stet_buf_release(&place);
            stet_arena_release(&arena);
            stet_reader_release(&r);
            stet_tx_abort(r.tx);
        }
        stet_path_release(&path);
        stet_value_release(cell);
        if (status != STET_OK)
            return status;
    }
    return STET_OK;
}

/* Brings nodes of a piece into memory: all of them, or those that run at every start, which are marked. */
static stet_status load_nodes(stet_sched *s, sched_piece *p, bool all, stet_error *err) {
    stet_process *g;
    stet_status status = stet_piece_process(s->space, s->branch, p->piece, -1, &g, err);
    if (status != STET_OK)
        return status;
    status = stet_piece_children(s->space, s->branch, -1, g, NULL, err);
    for (size_t i = 0; i < g->node_count && status == STET_OK; i++) {
        stet_value again = stet_value_get(g->nodes[i].row, "onRestart");
        bool restart =
            stet_value_type(again) == STET_TYPE_STRING && strcmp(stet_value_as_string(&again, NULL), "run") == 0;
        uint32_t id;
        if ((!all && !restart) || stet_stream_is_handler(g->nodes[i].row))
            continue;
        status = sched_load(s, p->piece->key, g->nodes[i].id, &id, err);
        if (status == STET_OK && !all) {
            sched_action *a = stet_plan_data(s->plan, id);
            a->asked = true;
            stet_plan_mark(s->plan, id, STET_PLAN_DIRTY, INT64_MIN / 2);
        }
    }
    stet_process_free(g);
    return status;
}

/* A piece, if it is there. NULL: none. */
static stet_status meet_piece(stet_sched *s, const char *piece, stet_error *err) {
    stet_error mine = STET_ERROR_INIT;
    sched_piece *p;
    if (!piece)
        return STET_OK;
    char *key = stet_piece_key(piece);
    stet_status status = sched_piece_of(s, key, &p, &mine);
    stet_free(key);
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
    stet_value names = stet_value_get(stet_value_get(p->piece->envelope, "process"), "pieces");
    stet_status status = STET_OK;
    p->loaded = true;
    for (size_t i = 0; i < stet_value_count(names) && status == STET_OK; i++) {
        stet_value name = stet_value_at(names, i);
        if (stet_value_type(name) != STET_TYPE_STRING)
            continue;
        status = meet_piece(s, stet_value_as_string(&name, NULL), err);
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
    p->entered = true;
    want_loaded(s, p);
    stet_binding_walk(stet_value_get(p->piece->envelope, "value"), sched_demand_link, s);
    return p->piece->restart_count > 0 ? load_nodes(s, p, false, err) : STET_OK;
}

stet_status sched_enter(stet_sched *s, stet_error *err) {
    const void *key;
    size_t len;
    stet_slot *slot;
    stet_status status = STET_OK;
    for (size_t i = 0; !s->memo->durable && i < s->want.names.len && status == STET_OK; i++) {
        stet_value cell;
        status = stet_json_parse(s->want.names.at[i], strlen(s->want.names.at[i]), &cell, err);
        if (status != STET_OK)
            return status;
        stet_value id = stet_value_at(cell, 0), scope = stet_value_at(cell, 1);
        char *piece =
            stet_piece_around(&(stet_docname){stet_value_as_string(&id, NULL), stet_value_as_string(&scope, NULL)});
        status = meet_piece(s, piece, err);
        stet_free(piece);
        stet_value_release(cell);
    }
    /* Pieces may be added while we load: the map keeps its order. */
    for (size_t i = 0; status == STET_OK && stet_map_next(&s->pieces, &i, &key, &len, &slot);) {
        sched_piece *p = slot->p;
        if (!s->memo->durable && !p->loaded)
            status = load_unrecorded(s, p, err);
        if (status == STET_OK && p->whole && !p->entered)
            status = enter_piece(s, p, err);
    }
    return status;
}

stet_status stet_sched_is_wanted(stet_sched *s, const char *piece_key, const char *node, bool *wanted,
                                 stet_error *err) {
    bool grew;
    uint32_t id;
    *wanted = false;
    stet_status status = stet_map_len(&s->want.cells) > 0 ? STET_OK : sched_enter(s, err);
    if (status == STET_OK && stet_map_len(&s->want.cells) == 0)
        status = sched_demand_cells(s, &grew, err);
    if (status == STET_OK)
        status = sched_load(s, piece_key, node, &id, err);
    return status == STET_OK ? stet_plan_is_live(s->plan, id, wanted, err) : status;
}
