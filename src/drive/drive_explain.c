/* drive_explain.c - what a run would do and why: outdated actions, and actions that may follow or must wait. */

#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "drive/drive_internal.h"
#include "scheduler/standing.h"

#define SHOWN 1000 /* actions */

typedef struct explaining {
    driver *d;
    stet_value failures; /* {NODE: error}, or null */
    stet_map marked;     /* nodes of the piece that are dirty or unknown */
    char *prefix;        /* of the documents of its nodes' outputs */
} explaining;

/* The nodes whose outputs an action reads, nearest first. */
typedef struct makers {
    const char *prefix, *scope;
    STET_VEC(char *) at;
    stet_map seen;
} makers;

static void add_maker(makers *m, const char *node) {
    size_t before = stet_map_len(&m->seen);
    stet_map_put(&m->seen, node, strlen(node), (stet_slot){.n = 1});
    if (stet_map_len(&m->seen) > before)
        *stet_vec_add(&m->at) = stet_strdup(node);
}

static bool take_link(void *ctx, stet_value binding, stet_pathref place) {
    makers *m = ctx;
    stet_link l;
    stet_path path = STET_PATH_INIT;
    (void)place;
    if (stet_link_read(binding, &l, &path) && strcmp(l.scope, m->scope) == 0 &&
        strncmp(l.id, m->prefix, strlen(m->prefix)) == 0)
        add_maker(m, l.id + strlen(m->prefix));
    stet_path_release(&path);
    return true;
}

static bool is_command(stet_value row) {
    stet_value type = stet_value_get(stet_value_get(row, "module"), "type");
    return stet_value_text_is(type, "command");
}

/* The failed command that this one waits for, as the scheduler decides it (must_wait of sched_run.c): upstream of it,
 * through commands that are outdated and wait themselves. NULL: none. Caller frees. */
static char *waits_for(const explaining *x, const char *node) {
    makers m = {.prefix = x->prefix, .scope = x->d->stored->scope};
    char *found = NULL;
    if (stet_value_count(x->failures) > 0)
        add_maker(&m, node);
    for (size_t i = 0; i < m.at.len && !found; i++) {
        stet_value row;
        const char *at = m.at.at[i];
        size_t len = strlen(at);
        if (stet_piece_row(x->d->space, x->d->branch, x->d->stored, at, &row, NULL) != STET_OK)
            continue;
        bool pending = stet_map_get(&x->marked, at, len) != NULL;
        if (!is_command(row)) {
            /* its last output is still valid, so nothing waits for it */
        } else if (i > 0 && !pending && stet_value_find(x->failures, at, len, NULL)) {
            found = stet_strdup(at);
        } else if (i == 0 || pending) {
            stet_binding_walk(stet_value_get(row, "inputs"), take_link, &m);
        }
        stet_value_release(row);
    }
    for (size_t i = 0; i < m.at.len; i++)
        stet_free(m.at.at[i]);
    stet_vec_release(&m.at);
    stet_map_release(&m.seen);
    return found;
}

/* Will the node run? A run of a part of the piece runs only what that part needs. In doubt, it runs. */
static bool is_wanted(const explaining *x, const char *node) {
    bool wanted = true;
    if (x->d->out->part && stet_sched_is_wanted(x->d->sched, x->d->stored->key, node, &wanted, NULL) != STET_OK)
        wanted = true;
    return wanted;
}

static void explain_action(const explaining *x, const stet_standing *all, int64_t action, stet_arena *arena) {
    stet_drive_outcome *out = x->d->out;
    stet_action_record r;
    if (stet_value_count(out->actions) >= SHOWN || stet_observe_get(x->d->space, action, arena, &r, NULL) != STET_OK ||
        !stet_piece_has(x->d->stored, &r.key) || !is_wanted(x, r.key.action))
        return;
    stet_value v = stet_value_object();
    stet_action_state state = stet_standing_state(all, &r);
    bool stale = state == STET_STATE_STALE;
    stet_value_put(&v, "node", stet_value_string(r.key.action));
    stet_value_put(&v, "state", stet_value_string(stet_action_state_name(state)));
    stet_value_put(&v, "reason", stet_value_string(stale ? "upstream" : stet_reason_name(r.cause.reason)));
    if (!stale && r.cause.name.id)
        stet_value_put(&v, "document", stet_value_string(r.cause.name.id));
    if (!stale && r.cause.name.id && r.cause.name.scope && *r.cause.name.scope)
        stet_value_put(&v, "scope", stet_value_string(r.cause.name.scope));
    char *failed = stale ? NULL : waits_for(x, r.key.action);
    if (failed)
        stet_value_put(&v, "waitsFor", stet_value_string(failed));
    stet_free(failed);
    stet_value_push(&out->actions, v);
}

static void note_marked(explaining *x, const stet_marked *marks, size_t count, stet_arena *arena) {
    stet_action_record r;
    for (size_t i = 0; i < count && stet_value_count(x->failures) > 0; i++)
        if (stet_observe_get(x->d->space, marks[i].action, arena, &r, NULL) == STET_OK &&
            stet_piece_has(x->d->stored, &r.key))
            stet_map_put(&x->marked, r.key.action, strlen(r.key.action), (stet_slot){.n = 1});
}

/* Failed actions whose inputs have not changed run only on request (retry_failed). */
static void explain_failures(const explaining *x) {
    stet_drive_outcome *out = x->d->out;
    stet_value *list = x->d->spec->retry_failed ? &out->actions : &out->failed_before;
    if (!x->d->spec->retry_failed) {
        stet_value_release(out->failed_before);
        out->failed_before = stet_value_array();
    }
    for (size_t i = 0; i < stet_value_count(x->failures) && stet_value_count(*list) < SHOWN; i++) {
        size_t len;
        const char *node = stet_value_key_at(x->failures, i, &len);
        stet_value v = stet_value_object();
        if (stet_map_get(&x->marked, node, len) || !is_wanted(x, node)) {
            stet_value_release(v);
            continue;
        }
        stet_value_put(&v, "node", stet_value_string(node));
        if (x->d->spec->retry_failed) {
            stet_value_put(&v, "state", stet_value_string("failed"));
            stet_value_put(&v, "reason", stet_value_string("asked"));
        } else {
            stet_value_put(&v, "piece", stet_value_string(x->d->stored->name));
            stet_value_put(&v, "error", stet_value_retain(stet_value_at(x->failures, i)));
        }
        stet_value_push(list, v);
    }
}

/* Effects that run at every start, whether or not they are up to date. A run of a part does not start them. */
static stet_status explain_restarts(const explaining *x, stet_error *err) {
    stet_drive_outcome *out = x->d->out;
    stet_process *g = NULL;
    stet_map listed = {0};
    if (out->part || x->d->stored->restart_count == 0)
        return STET_OK;
    for (size_t i = 0; i < stet_value_count(out->actions); i++) {
        stet_value v = stet_value_at(out->actions, i), node = stet_value_get(v, "node");
        size_t len;
        const char *id = stet_value_as_string(&node, &len);
        if (stet_value_type(stet_value_get(v, "piece")) != STET_TYPE_STRING)
            stet_map_put(&listed, id, len, (stet_slot){.n = 1});
    }
    stet_status status = stet_piece_process(x->d->space, x->d->branch, x->d->stored, -1, &g, err);
    if (status == STET_OK)
        status = stet_piece_children(x->d->space, x->d->branch, -1, g, NULL, err);
    for (size_t i = 0; status == STET_OK && i < g->node_count && stet_value_count(out->actions) < SHOWN; i++) {
        stet_value again = stet_value_get(g->nodes[i].row, "onRestart"), v;
        if (!stet_value_text_is(again, "run") || stet_map_get(&listed, g->nodes[i].id, strlen(g->nodes[i].id)))
            continue;
        v = stet_value_object();
        stet_value_put(&v, "node", stet_value_string(g->nodes[i].id));
        stet_value_put(&v, "state", stet_value_string(stet_action_state_name(STET_STATE_STANDS)));
        stet_value_put(&v, "reason", stet_value_string("restart"));
        stet_value_push(&out->actions, v);
    }
    stet_map_release(&listed);
    stet_process_free(g);
    return status;
}

/* Outdated actions of other pieces to which the result links: they run first. */
static stet_status explain_leads(const explaining *x, const stet_standing *all, stet_error *err) {
    stet_drive_outcome *out = x->d->out;
    stet_value list = stet_value_null();
    stet_status status = out->part ? STET_OK : stet_sched_leads_to(x->d->sched, x->d->stored, all, &list, err);
    for (size_t i = 0; i < stet_value_count(list) && stet_value_count(out->actions) < SHOWN; i++) {
        stet_value v = stet_value_retain(stet_value_at(list, i));
        stet_value_put(&v, "reason", stet_value_string("linked"));
        stet_value_push(&out->actions, v);
    }
    stet_value_release(list);
    return status;
}

stet_value drive_waiting(driver *d, size_t most) {
    stet_arena arena = STET_ARENA_INIT;
    stet_standing all = {0};
    explaining x = {.d = d, .failures = stet_value_null(), .prefix = stet_piece_part(d->piece, "node", "")};
    stet_value list = stet_value_array();
    stet_action_record r;
    bool known =
        stet_observe_failures(d->space, d->branch, d->stored->doc, d->stored->scope, &x.failures, NULL) == STET_OK &&
        stet_standing_load(d->space, d->branch, &all, NULL) == STET_OK;
    if (known)
        note_marked(&x, all.marked, all.marked_count, &arena);
    size_t count = known ? all.marked_count + all.stale.len : 0;
    for (size_t i = 0; i < count && stet_value_count(list) < most; i++) {
        int64_t action = i < all.marked_count ? all.marked[i].action : all.stale.at[i - all.marked_count];
        if (stet_observe_get(d->space, action, &arena, &r, NULL) != STET_OK || !stet_piece_has(d->stored, &r.key) ||
            !is_wanted(&x, r.key.action))
            continue;
        char *failed = waits_for(&x, r.key.action);
        if (failed) {
            stet_value v = stet_value_object();
            stet_value_put(&v, "node", stet_value_string(r.key.action));
            stet_value_put(&v, "waitsFor", stet_value_string(failed));
            stet_value_push(&list, v);
        }
        stet_free(failed);
    }
    stet_map_release(&x.marked);
    stet_standing_release(&all);
    stet_value_release(x.failures);
    stet_free(x.prefix);
    stet_arena_release(&arena);
    return list;
}

stet_status drive_explain(driver *d, stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    stet_standing all = {0};
    explaining x = {.d = d, .failures = stet_value_null(), .prefix = stet_piece_part(d->piece, "node", "")};
    d->out->actions = stet_value_array();
    stet_status status = stet_observe_failures(d->space, d->branch, d->stored->doc, d->stored->scope, &x.failures, err);
    if (status == STET_OK)
        status = stet_observe_catch_up(d->space, err);
    if (status == STET_OK)
        status = stet_standing_adopt(d->space, d->branch, err);
    if (status == STET_OK)
        status = stet_standing_load(d->space, d->branch, &all, err);
    if (status == STET_OK)
        note_marked(&x, all.marked, all.marked_count, &arena);
    for (size_t i = 0; i < all.marked_count && status == STET_OK; i++)
        explain_action(&x, &all, all.marked[i].action, &arena);
    for (size_t i = 0; i < all.stale.len && status == STET_OK; i++)
        explain_action(&x, &all, all.stale.at[i], &arena);
    if (status == STET_OK)
        status = explain_leads(&x, &all, err);
    if (status == STET_OK)
        explain_failures(&x);
    if (status == STET_OK)
        status = explain_restarts(&x, err);
    stet_map_release(&x.marked);
    stet_standing_release(&all);
    stet_value_release(x.failures);
    stet_free(x.prefix);
    stet_arena_release(&arena);
    return status;
}
