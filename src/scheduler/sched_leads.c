/* sched_leads.c - finds the actions that make what was read and are not up to date.
 *
 * It is used for the result of a piece, which may link to what other pieces make without an action of its own that
 * reads it, and is only as fresh as those. It is also used for what a handler has read: an event is not applied on what
 * a failed action made last.
 */

#include "scheduler/sched_internal.h"
#include "scheduler/standing.h"

#define LEADS_MAX 100

typedef struct leads {
    const stet_piece *own; /* its own actions are not listed; NULL: list all */
    stet_space *space;
    int64_t branch;
    const stet_standing *standing; /* of that space and branch */
    stet_arena arena;
    bool failures; /* only what failed, and what is stale because of a failure */
    stet_map told; /* "PIECE NODE\nSCOPE" */
    stet_value *out;
} leads;

static void add(leads *l, bool far, const stet_action_key *who, const char *state) {
    const char *piece = who->piece, *node = who->action, *scope = who->scope ? who->scope : "";
    char *key = stet_asprintf("%s %s\n%s", piece, node, scope);
    size_t before = stet_map_len(&l->told);
    if (far || !l->own || !stet_piece_has(l->own, who))
        stet_map_put(&l->told, key, strlen(key), (stet_slot){.n = 1});
    stet_free(key);
    if (stet_map_len(&l->told) == before || stet_value_count(*l->out) >= LEADS_MAX)
        return;
    stet_value v = stet_value_object();
    char *name = stet_piece_of_action(who);
    stet_value_put(&v, "piece",
                   name     ? stet_value_string(name)
                   : *scope ? stet_value_stringf("%s (scope %s)", piece, scope)
                            : stet_value_string(piece));
    stet_free(name);
    stet_value_put(&v, "node", stet_value_string(node));
    stet_value_put(&v, "state", stet_value_string(state));
    if (far)
        stet_value_put(&v, "space", stet_value_string(stet_space_name(l->space)));
    stet_value_push(l->out, v);
}

static void add_outdated(leads *l, bool far, int64_t number) {
    stet_action_record r;
    if (stet_observe_brief(l->space, number, &l->arena, &r, NULL) != STET_OK)
        return;
    stet_action_state state = stet_standing_state(l->standing, &r);
    const stet_stale_root *root = state == STET_STATE_STALE ? stet_standing_root(l->standing, number) : NULL;
    if (l->failures ? r.failed || (root && root->failed) : !stet_state_holds(state) || r.failed)
        add(l, far, &r.key, stet_state_holds(state) ? "failed" : stet_action_state_name(state));
}

/* Actions without a row: the index does not know what they write. */
static void add_missing(leads *l, bool far, const stet_tx_read_record *read) {
    for (size_t i = 0; i < l->standing->missing_count; i++) {
        const stet_unrecorded *u = &l->standing->missing[i];
        for (size_t k = 0; k < u->count; k++)
            if (strcmp(u->writes[k].name.id, read->name.id) == 0 &&
                strcmp(u->writes[k].name.scope, read->name.scope) == 0 &&
                (stet_path_is_prefix(u->writes[k].path, read->path) ||
                 stet_path_is_prefix(read->path, u->writes[k].path)))
                add(l, far, &(stet_action_key){u->piece, u->scope, u->action},
                    stet_action_state_name(STET_STATE_UNKNOWN));
    }
}

/* Those that may write it: how they stand is known, and where they will write is not. */
static void add_perhaps(leads *l, bool far, const stet_tx_read_record *read) {
    for (size_t i = 0; i < l->standing->may_count; i++) {
        const stet_may_write *m = &l->standing->may[i];
        if (strcmp(m->name.id, read->name.id) == 0 && strcmp(m->name.scope, read->name.scope) == 0 &&
            (stet_path_is_prefix(m->path, read->path) || stet_path_is_prefix(read->path, m->path)))
            add_outdated(l, far, m->action);
    }
}

/* Those that write what was read in one space. */
static stet_status look_in(leads *l, bool far, const stet_tx_read_record *at, size_t count, stet_error *err) {
    stet_numbers writers = {0};
    stet_status status = STET_OK;
    for (size_t i = 0; i < count && status == STET_OK; i++) {
        if (at[i].space != l->space)
            continue;
        stet_vec_clear(&writers);
        status = stet_observe_writers(l->space, l->branch, &at[i].name, at[i].path,
                                      STET_WRITE_KNOWN | STET_WRITE_DECLARED, &writers, err);
        for (size_t k = 0; k < writers.len && status == STET_OK; k++)
            add_outdated(l, far, writers.at[k]);
        add_perhaps(l, far, &at[i]);
        if (!l->failures)
            add_missing(l, far, &at[i]);
    }
    stet_numbers_release(&writers);
    return status;
}

/* Each other space that was read, once: reads come sorted by space. */
static stet_status look_elsewhere(stet_sched *s, const stet_tx_read_record *at, size_t count, bool failures,
                                  stet_value *out, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < count && status == STET_OK; i++) {
        if (at[i].space == s->space || (i > 0 && at[i].space == at[i - 1].space))
            continue;
        stet_standing standing = {0};
        leads l = {.own = NULL,
                   .space = at[i].space,
                   .standing = &standing,
                   .failures = failures,
                   .arena = STET_ARENA_INIT,
                   .out = out};
        status = stet_space_branch(l.space, "", &l.branch, err); /* other spaces are read on their default branch */
        if (status == STET_OK)
            status = stet_standing_load(l.space, l.branch, &standing, err);
        if (status == STET_OK)
            status = look_in(&l, true, at, count, err);
        stet_standing_release(&standing);
        stet_arena_release(&l.arena);
        stet_map_release(&l.told);
    }
    return status;
}

stet_status stet_sched_leads_to(stet_sched *s, const stet_piece *piece, const stet_standing *standing, stet_value *out,
                                stet_error *err) {
    stet_path value = STET_PATH_INIT;
    stet_docname result = stet_piece_name(piece, NULL);
    stet_reader r = {.record = true, .space = sched_space, .ctx = s};
    leads l = {.own = piece,
               .space = s->space,
               .branch = s->branch,
               .standing = standing,
               .arena = STET_ARENA_INIT,
               .out = out};
    *out = stet_value_array();
    stet_status status = stet_tx_begin(s->space, s->branch_name, &r.tx, err);
    if (status != STET_OK)
        return status;
    stet_path_push(&value, "value");
    stet_reader_visit(&r, &result, stet_path_ref(&value));
    stet_path_release(&value);
    const stet_tx_read_record *at;
    size_t count;
    stet_tx_reads(r.tx, &l.arena, &at, &count);
    status = look_in(&l, false, at, count, err);
    if (status == STET_OK)
        status = look_elsewhere(s, at, count, false, out, err);
    stet_reader_release(&r);
    stet_tx_abort(r.tx);
    stet_arena_release(&l.arena);
    stet_map_release(&l.told);
    if (status != STET_OK) {
        stet_value_release(*out);
        *out = stet_value_null();
    }
    return status;
}

/* Those that wait in this settling. They may be marked for another reason as well, which hides what they wait for. */
static void add_waiting(stet_sched *s, leads *l, const stet_tx_read_record *read) {
    stet_plan_nodes makers = {0};
    if (read->space == s->space)
        stet_plan_makers(s->plan, sched_doc(s, NULL, &read->name), read->path, &makers);
    for (size_t i = 0; i < makers.len; i++) {
        const sched_action *a = stet_plan_data_there(s->plan, makers.at[i]);
        if (!a || !stet_plan_is_left(s->plan, a->id))
            continue;
        stet_action_key key = stet_piece_action(a->piece->piece, a->node);
        add(l, false, &key, stet_action_state_name(STET_STATE_STALE));
    }
    stet_vec_release(&makers);
}

stet_status sched_failed_makers(stet_sched *s, const stet_tx_read_record *at, size_t count, stet_value *out,
                                stet_error *err) {
    stet_numbers failed = {0};
    bool others = false;
    *out = stet_value_array();
    stet_status status = stet_observe_failed(s->space, s->branch, NULL, NULL, &failed, err);
    if (status == STET_OK && failed.len == 0)
        status = stet_observe_reads_others(s->space, &others, err);
    for (size_t i = 0; i < count; i++)
        others = others || at[i].space != s->space;
    bool any = failed.len > 0 || others;
    stet_numbers_release(&failed);
    if (status != STET_OK || !any)
        return status;
    stet_standing standing = {0};
    leads l = {.own = NULL,
               .space = s->space,
               .branch = s->branch,
               .standing = &standing,
               .failures = true,
               .arena = STET_ARENA_INIT,
               .out = out};
    status = stet_standing_load(s->space, s->branch, &standing, err);
    if (status == STET_OK)
        status = look_in(&l, false, at, count, err);
    for (size_t i = 0; i < count && status == STET_OK; i++)
        add_waiting(s, &l, &at[i]);
    if (status == STET_OK)
        status = look_elsewhere(s, at, count, true, out, err);
    stet_standing_release(&standing);
    stet_arena_release(&l.arena);
    stet_map_release(&l.told);
    return status;
}
