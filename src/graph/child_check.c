/* child_check.c - checks that the stored children match the indexes, and that each action has its record. */

#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "db/db.h"
#include "graph/child.h"
#include "graph/piece.h"
#include "graph/stream.h"
#include "memory/observe.h"
#include "os/clock.h"

typedef struct checking {
    stet_space *s;
    const stet_piece *p;
    stet_process *g;
    stet_map children; /* instance -> 1: its document was found */
    bool repair;
    stet_buf *problems;
    size_t *found, *repaired;
} checking;

static void problem(checking *c, const char *what, const char *id, bool mended) {
    stet_buf_printf(c->problems, "piece \"%s\": %s %s\n", c->p->name, what, id);
    ++*c->found;
    *c->repaired += mended;
}

static stet_status load_value(void *ctx, const char *id, stet_value *value, stet_error *err) {
    const checking *c = ctx;
    stet_doc_state state;
    stet_docname name = stet_scoped(c->p->scope, id);
    stet_status status = stet_space_load(c->s, 0, &name, -1, &state, err);
    if (status != STET_OK)
        return status;
    *value = state.exists ? stet_value_retain(stet_value_get(state.value, "value")) : stet_value_null();
    stet_value_release(state.value);
    return STET_OK;
}

/* Notes the children in the indexes; a child may have no nodes at all. */
static stet_status note_children(checking *c, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < c->g->node_count && status == STET_OK; i++) {
        stet_child_index index;
        stet_value v;
        if (stet_child_role_of(c->g->nodes[i].row) == STET_CHILD_NONE)
            continue;
        char *id = stet_child_index_doc(c->p->name, c->g->nodes[i].id);
        status = load_value(c, id, &v, err);
        stet_free(id);
        if (status != STET_OK)
            break;
        for (size_t k = 0, n = stet_child_index_read(v, &index) ? index.count : 0; k < n; k++) {
            stet_value key = stet_value_at(index.keys, k);
            char *instance = stet_child_instance_id(c->g->nodes[i].id, stet_value_as_string(&key, NULL));
            if (!stet_map_get(&c->children, instance, strlen(instance)))
                stet_map_put(&c->children, instance, strlen(instance), (stet_slot){.n = 0});
            stet_free(instance);
        }
        stet_value_release(v);
    }
    return status;
}

static stet_status drop(stet_tx *tx, void *ctx, stet_error *err) {
    return stet_tx_drop(tx, ctx, err);
}

/* `what` is the part of the id after "piece:NAME:"; `skip` is the length of its kind. */
static bool belongs(checking *c, const char *what, size_t skip) {
    const char *id = what + skip;
    if (strncmp(what, "children:", 9) == 0) {
        const stet_process_node *n = stet_process_find(c->g, id);
        return n && stet_child_role_of(n->row) != STET_CHILD_NONE;
    }
    bool child = strncmp(what, "child:", 6) == 0;
    size_t len = child ? strlen(id) : stet_child_instance(id);
    if (len == 0)
        return true; /* it belongs to the piece itself */
    stet_slot *slot = stet_map_get(&c->children, id, len);
    if (slot && child)
        slot->n = 1;
    return slot != NULL;
}

/* Is its record that of a successful run, whatever changed since? A node that failed after its program was changed has
 * left the children of the earlier program unchanged, and so may a node without a record: it visits all of them when it
 * runs. What is neither recorded nor a node never runs. */
static bool has_succeeded(checking *c, const stet_action_key *key) {
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    bool has = stet_observe_find(c->s, 0, key, &arena, &r, NULL) == STET_OK
                   ? r.cause.state != STET_STATE_UNKNOWN && !r.failed
                   : !stet_process_find(c->g, key->action);
    stet_arena_release(&arena);
    return has;
}

/* The coordinator that a child's action, or a child, belongs to. The caller frees it. */
static char *coordinator_of(checking *c, const char *id, size_t len) {
    char *coordinator = stet_child_coordinator(id, len, true);
    if (stet_process_find(c->g, coordinator))
        return coordinator;
    stet_free(coordinator);
    return stet_child_coordinator(id, len, false);
}

/* Does something of a child, given by name, wait for a coordinator above it to succeed? */
static bool awaits(checking *c, const char *id) {
    bool waits = false;
    for (const char *at = strchr(id, '['); at && !waits; at = strchr(at + 1, '[')) {
        char *above = coordinator_of(c, id, (size_t)(at - id) + 1);
        stet_action_key key = stet_piece_action(c->p, above);
        waits = !has_succeeded(c, &key);
        stet_free(above);
    }
    return waits;
}

static stet_status check_docs(checking *c, const char *kind, stet_error *err) {
    char *prefix = stet_piece_part(c->p->name, kind, "");
    char *last = NULL;
    stet_status status = STET_OK;
    bool more = true;
    while (status == STET_OK && more) {
        stet_arena arena = STET_ARENA_INIT;
        stet_docname after = stet_piece_name(c->p, last);
        stet_doc_filter filter = {.prefix = prefix, .scope = c->p->scope, .after = last ? &after : NULL, .limit = 1000};
        stet_doc_info *at;
        size_t count = 0;
        status = stet_space_list(c->s, 0, &filter, &arena, &at, &count, &more, err);
        for (size_t i = 0; i < count && status == STET_OK; i++) {
            char *id = stet_strdup(at[i].name.id);
            size_t own = strlen(c->p->doc) + 1;
            if (!belongs(c, id + own, strlen(kind) + 1) && !awaits(c, id + own + strlen(kind) + 1)) {
                if (c->repair)
                    status = stet_space_transact(c->s, "", drop, &at[i].name, NULL, err);
                problem(c, "a document of a child that is gone:", id, c->repair && status == STET_OK);
            }
            stet_free(last);
            last = id;
        }
        stet_arena_release(&arena);
    }
    stet_free(last);
    stet_free(prefix);
    return status;
}

/* A child without a document is repaired by its coordinator, which visits all of its children when it is unknown: then
 * nothing is wrong any more. */
static stet_status check_missing(checking *c, stet_error *err) {
    const void *key;
    size_t len;
    stet_slot *slot;
    stet_status status = STET_OK;
    for (size_t i = 0; status == STET_OK && stet_map_next(&c->children, &i, &key, &len, &slot);) {
        if (slot->n)
            continue;
        char *instance = stet_strndup(key, len);
        if (!awaits(c, instance)) {
            char *coordinator = coordinator_of(c, instance, len);
            stet_action_key action = stet_piece_action(c->p, coordinator);
            if (c->repair)
                status = stet_observe_distrust(c->s, 0, &action, 1, STET_REASON_REPAIRED, err);
            problem(c, "the document is missing of child", instance, c->repair && status == STET_OK);
            stet_free(coordinator);
        }
        stet_free(instance);
    }
    return status;
}

/* Does a link of a chain lead to the output of its predecessor? */
static bool follows(checking *c, stet_template *t, const stet_process_node *n, stet_value child, stet_value before) {
    stet_value want;
    if (stet_value_type(before) != STET_TYPE_STRING) {
        want = stet_child_initial(n->row);
    } else {
        char *instance = stet_child_instance_id(n->id, stet_value_as_string(&before, NULL));
        want = stet_child_result(t, c->p->name, n->row, instance);
        if (!stet_child_is_cell(want)) {
            stet_value_release(want);
            want = stet_child_place(c->p->name, instance, "result", NULL);
        }
        stet_free(instance);
    }
    bool same = stet_value_equal(want, stet_value_get(stet_value_get(child, "argument"), "accumulator"));
    stet_value_release(want);
    return same;
}

/* Does the document of a child show its result as the template defines it, and nothing if the result is one cell? */
static bool shows_result(checking *c, stet_template *t, const stet_process_node *n, stet_value child,
                         const char *instance) {
    stet_value want = stet_child_result(t, c->p->name, n->row, instance), shown;
    bool there = stet_value_find(child, "result", 6, &shown);
    bool same = stet_child_is_cell(want) ? !there : there && stet_value_equal(want, shown);
    stet_value_release(want);
    return same;
}

/* Do the documents that represent streams of handlers exist, with the right content? */
static stet_status has_streams(checking *c, const stet_template *t, const char *instance, bool *has, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < t->shape->node_count && *has && status == STET_OK; i++) {
        stet_link l;
        stet_path path = STET_PATH_INIT;
        stet_value v;
        bool own =
            stet_link_read(stet_value_get(t->shape->nodes[i].row, "stream"), &l, &path) && strstr(l.id, ":node:");
        stet_path_release(&path);
        if (!own)
            continue;
        char *local = stet_asprintf("%s%s", instance, strrchr(l.id, ']') + 1),
             *id = stet_piece_part(c->p->name, "node", local);
        status = load_value(c, id, &v, err);
        if (status == STET_OK) {
            *has = stet_value_as_bool(stet_value_get(v, "$stream")) && stet_value_count(v) == 1;
            stet_value_release(v);
        }
        stet_free(local);
        stet_free(id);
    }
    return status;
}

/* Does a child have what its coordinator gave it? A child without a document is checked elsewhere. */
static stet_status is_as_given(checking *c, const stet_child_index *index, stet_template *t, const stet_process_node *n,
                               size_t i, bool *is, stet_error *err) {
    stet_value key = stet_value_at(index->keys, i), before = i ? stet_value_at(index->keys, i - 1) : stet_value_null(),
               child;
    stet_child_role role = stet_child_role_of(n->row);
    char *instance = stet_child_instance_id(n->id, stet_value_as_string(&key, NULL));
    char *id = stet_piece_part(c->p->name, "child", instance);
    stet_status status = load_value(c, id, &child, err);
    if (status == STET_OK) {
        stet_value argument = stet_value_get(child, "argument");
        stet_value print =
            stet_child_print(role == STET_CHILD_RETURNS ? argument : stet_value_get(argument, "element"),
                             t->index ? stet_value_as_int(stet_value_get(argument, "index")) : -1,
                             role == STET_CHILD_REDUCE && i ? stet_value_as_string(&before, NULL) : NULL);
        *is = stet_value_type(child) == STET_TYPE_NULL ||
              (stet_value_equal(print, stet_value_at(index->prints, i)) && shows_result(c, t, n, child, instance) &&
               (role != STET_CHILD_REDUCE || follows(c, t, n, child, before)));
        if (*is && stet_value_type(child) != STET_TYPE_NULL)
            status = has_streams(c, t, instance, is, err);
        stet_value_release(print);
        stet_value_release(child);
    }
    stet_free(instance);
    stet_free(id);
    return status;
}

/* A run does not notice what others wrote into the document of a child as long as no action read it there: the indexes
 * know only the output of the coordinator, not each of its children. */
static stet_status check_given(checking *c, const stet_process_node *n, stet_templates *all, stet_error *err) {
    stet_child_docs docs = {c, load_value};
    stet_child_index index;
    stet_template *t;
    stet_value v = stet_value_null();
    stet_action_key action = stet_piece_action(c->p, n->id);
    char *id = stet_child_index_doc(c->p->name, n->id);
    stet_status status = load_value(c, id, &v, err);
    stet_free(id);
    if (status == STET_OK && stet_child_index_read(v, &index) && index.count > 0 && has_succeeded(c, &action) &&
        !awaits(c, n->id)) { /* what is above it may have had another template then */
        bool is = true;
        status = stet_child_template(&docs, c->p->name, n->id, n->row, NULL, all, &t, err);
        for (size_t i = 0; i < index.count && is && status == STET_OK; i++) {
            status = is_as_given(c, &index, t, n, i, &is, err);
            if (status != STET_OK || is)
                continue;
            if (c->repair) /* the coordinator gives all of them their elements again */
                status = stet_observe_distrust(c->s, 0, &action, 1, STET_REASON_REPAIRED, err);
            stet_value key = stet_value_at(index.keys, i);
            char *instance = stet_child_instance_id(n->id, stet_value_as_string(&key, NULL));
            problem(c, "somebody else changed what was given to child", instance, c->repair && status == STET_OK);
            stet_free(instance);
        }
    }
    stet_value_release(v);
    return status;
}

static stet_status check_all_given(checking *c, stet_error *err) {
    stet_templates all = {0};
    stet_status status = STET_OK;
    for (size_t i = 0; i < c->g->node_count && status == STET_OK; i++)
        if (stet_child_role_of(c->g->nodes[i].row) != STET_CHILD_NONE)
            status = check_given(c, &c->g->nodes[i], &all, err);
    stet_templates_release(&all);
    return status;
}

/* A start asks only for marked actions: one without a record would never run. */

typedef struct gone_list {
    checking *c;
    stet_map known; /* names of actions that have a record */
    STET_VEC(char *) at;
} gone_list;

static bool note_action(void *ctx, int64_t action, const char *name, size_t name_len, const void *bytes, size_t len) {
    gone_list *l = ctx;
    (void)action, (void)bytes, (void)len;
    char *id = stet_strndup(name, name_len);
    stet_map_put(&l->known, id, name_len, (stet_slot){.n = 1});
    if (!stet_process_find(l->c->g, id))
        *stet_vec_add(&l->at) = id;
    else
        stet_free(id);
    return true;
}

/* An action that was observed in a later generation than the one that was read has its node there. */
static bool is_of_this(checking *c, const stet_action_key *key) {
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    bool is = stet_observe_find(c->s, 0, key, &arena, &r, NULL) == STET_OK && r.generation <= c->p->generation;
    stet_arena_release(&arena);
    return is;
}

/* A crash in a set-up by an earlier version of stet left the records of removed actions. They are harmless and not
 * reported, but a repair removes them, as gc does. For a child it is a problem: coordinators remove the records of
 * their children together with the children. */
static stet_status check_left_over(checking *c, gone_list *l, stet_status status, stet_error *err) {
    for (size_t i = 0; i < l->at.len; i++) {
        stet_action_key key = stet_piece_action(c->p, l->at.at[i]);
        bool child = stet_child_instance(key.action) != 0;
        bool left = child ? !awaits(c, key.action) : is_of_this(c, &key);
        if (status == STET_OK && left) {
            if (c->repair)
                status = stet_observe_forget(c->s, 0, c->p->doc, c->p->scope, &key, 1, err);
            if (status == STET_OK && child)
                problem(c, "a record of an action of a child that is gone:", key.action, c->repair);
        }
        stet_free(l->at.at[i]);
    }
    stet_vec_release(&l->at);
    return status;
}

/* A child that a coordinator created without recording it belongs to that coordinator, which is outdated. */
static bool is_awaited(checking *c, const char *id) {
    size_t len = stet_child_instance(id);
    if (len == 0)
        return true;
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    char *coordinator = coordinator_of(c, id, len);
    stet_action_key key = stet_piece_action(c->p, coordinator);
    bool stands = stet_observe_find(c->s, 0, &key, &arena, &r, NULL) == STET_OK && r.cause.state == STET_STATE_STANDS &&
                  !r.failed;
    stet_free(coordinator);
    stet_arena_release(&arena);
    return stands;
}

static stet_status check_lost(checking *c, const gone_list *l, stet_error *err) {
    stet_observe_debt debt;
    stet_status status = stet_observe_owed(c->s, &debt, err);
    for (size_t i = 0; i < c->g->node_count && status == STET_OK; i++) {
        const char *id = c->g->nodes[i].id;
        if (stet_stream_is_handler(c->g->nodes[i].row) || stet_map_get(&l->known, id, strlen(id)) ||
            (debt.commits && stet_child_instance(id)) || !is_awaited(c, id))
            continue;
        stet_action_key key = stet_piece_action(c->p, id);
        if (c->repair)
            status = stet_observe_distrust(c->s, 0, &key, 1, STET_REASON_REPAIRED, err);
        if (status == STET_OK)
            problem(c, "there is no record of action", id, c->repair);
    }
    return status;
}

static stet_status check_records(checking *c, stet_error *err) {
    gone_list l = {.c = c};
    stet_action_filter all = {.piece = c->p->doc, .scope = c->p->scope, .generation = -1};
    if (stet_hash_equal(c->p->runtime, stet_piece_unrecorded()))
        return STET_OK; /* the records are not about this graph, and every start knows */
    stet_status status = stet_observe_scan(c->s, 0, &all, note_action, &l, err);
    bool some = stet_map_len(&l.known) != 0; /* without any record the piece counts as one that was never recorded */
    status = check_left_over(c, &l, status, err);
    if (status == STET_OK && some)
        status = check_lost(c, &l, err);
    stet_map_release(&l.known);
    return status;
}

static stet_status mark_rebuild(stet_tx *tx, void *ctx, stet_error *err) {
    return stet_piece_set_rebuild(tx, ctx, err);
}

static stet_status check_piece(stet_space *s, const char *name, bool repair, stet_buf *problems, size_t *found,
                               size_t *repaired, stet_error *err) {
    static const char *const kinds[] = {"child", "children", "node", "cell"};
    checking c = {.s = s, .repair = repair, .problems = problems, .found = found, .repaired = repaired};
    stet_piece *p = NULL;
    stet_error mine = STET_ERROR_INIT;
    stet_status status = stet_piece_load(s, 0, name, -1, &p, &mine);
    if (status == STET_OK)
        status = stet_piece_process(s, 0, p, -1, &c.g, &mine);
    c.p = p;
    if (status == STET_OK)
        status = stet_piece_children(s, 0, -1, c.g, NULL, &mine);
    if (status == STET_CORRUPT && p && p->rebuild) { /* the next run sets it up again */
        status = STET_OK;
    } else if (status == STET_CORRUPT && p) {
        stet_error why = STET_ERROR_INIT;
        status = repair ? stet_space_transact(s, "", mark_rebuild, p, NULL, &why) : STET_OK;
        problem(&c, "its graph:", mine.message, repair && status == STET_OK);
        if (status != STET_OK) {
            stet_error_clear(&mine);
            stet_error_move(&mine, &why);
        }
        stet_error_clear(&why);
    } else if (status == STET_OK) {
        status = note_children(&c, &mine);
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds && status == STET_OK; i++)
            status = check_docs(&c, kinds[i], &mine);
        if (status == STET_OK)
            status = check_missing(&c, &mine);
        if (status == STET_OK)
            status = check_all_given(&c, &mine);
        if (status == STET_OK)
            status = check_records(&c, &mine);
    }
    stet_map_release(&c.children);
    stet_process_free(c.g);
    stet_piece_free(p);
    if (status != STET_OK && err)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    return status;
}

/* Setting up a program takes several transactions, and a piece is read in several: a problem found while others write
 * is checked again. */
static stet_status check_calmly(stet_space *s, const char *name, bool repair, stet_buf *problems, size_t *found,
                                size_t *repaired, bool *waited, stet_error *err) {
    enum { ATTEMPTS = 3, PAUSE_MS = 100 };
    size_t start = problems->len, before = *found;
    for (int attempt = 1;; attempt++) {
        int64_t version = stet_db_data_version(stet_space_db(s));
        stet_status status = check_piece(s, name, repair, problems, found, repaired, err);
        if (status != STET_OK || repair || *found == before || attempt == ATTEMPTS)
            return status;
        if (!*waited)
            stet_clock_sleep_ms(PAUSE_MS);
        *waited = true;
        if (stet_db_data_version(stet_space_db(s)) == version)
            return status;
        problems->len = start;
        *found = before;
    }
}

stet_status stet_children_check(stet_space *s, bool repair, stet_buf *problems, size_t *found, size_t *repaired,
                                stet_error *err) {
    stet_value names;
    bool more, waited = false;
    *found = *repaired = 0;
    stet_status status = stet_piece_names(s, 0, NULL, SIZE_MAX, &names, &more, err);
    if (status != STET_OK)
        return status;
    for (size_t i = 0; i < stet_value_count(names) && status == STET_OK; i++) {
        stet_value name = stet_value_at(names, i);
        status = check_calmly(s, stet_value_as_string(&name, NULL), repair, problems, found, repaired, &waited, err);
        /* Not a piece, or one that is reported when it is opened. */
        if (status == STET_NOT_FOUND || status == STET_CORRUPT) {
            if (err)
                stet_error_clear(err);
            status = STET_OK;
        }
    }
    stet_value_release(names);
    return status;
}
