/* observe_api.c - the public functions about actions: cells as text in, values out; thin wrappers over observe.h. */

#include <stdlib.h>

#include "base/options.h"
#include "memory/observe_internal.h"

enum { PAGE = 100 }; /* the default limit of a list */

static stet_hash fingerprint(const char *text) {
    return stet_hash_of(text ? text : "", text ? strlen(text) : 0);
}

/* Converts cells to addresses in the arena. */
static stet_status addresses(const stet_cell *at, size_t count, stet_arena *arena, const stet_address **out,
                             stet_error *err) {
    stet_address *list = stet_arena_zero(arena, (count + 1) * sizeof *list);
    stet_status st = STET_OK;
    for (size_t i = 0; i < count && st == STET_OK; i++) {
        char *id = NULL;
        stet_path path = STET_PATH_INIT;
        st = at[i].cell ? stet_cell_parse(at[i].cell, false, &id, &path, err) : stet_fail_null(err);
        if (st == STET_OK) {
            stet_pathref p = stet_path_ref(&path);
            list[i].name.id = stet_arena_strdup(arena, id);
            list[i].name.scope = stet_arena_strdup(arena, at[i].scope ? at[i].scope : "");
            list[i].path = (stet_pathref){stet_arena_strndup(arena, p.bytes, p.len), p.len};
        }
        stet_free(id);
        stet_path_release(&path);
    }
    *out = list;
    return st;
}

static stet_status check_name(const char *id, const char *scope, stet_error *err) {
    stet_docname name = {id, scope};
    return stet_docname_check(&name, err);
}

static stet_status check_key(const stet_action_key *key, stet_error *err) {
    if (!key || !key->piece || !key->action)
        return stet_fail(err, STET_INVALID, "an action is named by its piece and its own name: one is missing");
    stet_status st = check_name(key->piece, key->scope, err);
    return st == STET_OK ? check_name(key->action, NULL, err) : st;
}

stet_status stet_tx_observe(stet_tx *tx, const stet_action_run *given, stet_error *err) {
    if (!tx)
        return stet_fail_null(err);
    stet_action_run known, *run = &known;
    stet_status st = stet_options_read(run, sizeof *run, given, "stet_action_run", err);
    if (st != STET_OK)
        return st;
    stet_observation o = {.key = run->key,
                          .kind = run->kind ? run->kind : STET_ACTION_COMPUTATION,
                          .run = run->run ? run->run : STET_RUN_ACTION,
                          .generation = run->generation,
                          .implementation = fingerprint(run->implementation),
                          .runtime = fingerprint(run->runtime),
                          .parent = run->parent,
                          .declared_count = run->write_count,
                          .envelope_count = run->envelope_count,
                          .ignored_count = run->ignored_count,
                          .options = run->options,
                          .failed = run->error != NULL,
                          .note = run->note};
    st = check_key(&run->key, err);
    if (st == STET_OK && run->parent)
        st = check_name(run->parent, NULL, err);
    if (st != STET_OK)
        return st;
    if (o.kind > STET_ACTION_HANDLER || o.run > STET_RUN_PREFLIGHT || o.generation < 0)
        return stet_fail(err, STET_INVALID, "action \"%s\": kind, run or generation has an invalid value",
                         run->key.action);
    if ((run->write_count && !run->writes) || (run->envelope_count && !run->envelopes) ||
        (run->ignored_count && !run->ignored))
        return stet_fail(err, STET_INVALID, "action \"%s\": a list of cells has a count, and is NULL", run->key.action);
    if (stet_value_type(run->options) != STET_TYPE_NULL && stet_value_type(run->options) != STET_TYPE_OBJECT)
        return stet_fail(err, STET_INVALID, "action \"%s\": options must be an object or null", run->key.action);
    if (run->error)
        o.error = fingerprint(run->error);
    stet_arena arena = STET_ARENA_INIT;
    st = addresses(run->writes, run->write_count, &arena, &o.declared_writes, err);
    if (st == STET_OK)
        st = addresses(run->envelopes, run->envelope_count, &arena, &o.envelopes, err);
    if (st == STET_OK)
        st = addresses(run->ignored, run->ignored_count, &arena, &o.ignored_writes, err);
    if (st == STET_OK)
        st = stet_observe_attach(tx, &o, err);
    stet_arena_release(&arena);
    return st;
}

/* Brings the marks up to date, and looks up the number of the branch. */
static stet_status ask(stet_space *s, const char *branch, int64_t *number, stet_error *err) {
    stet_status st = stet_observe_catch_up(s, err);
    return st == STET_OK ? stet_space_branch(s, branch, number, err) : st;
}

static stet_value with_state(const stet_action_record *r, stet_action_state state) {
    stet_value v = stet_action_value(r);
    bool failed = stet_action_fails(r) && state == STET_STATE_STANDS;
    stet_value_put(&v, "state", stet_value_string(failed ? "failed" : stet_action_state_name(state)));
    if (r->cause.state != STET_STATE_STANDS)
        stet_value_put(&v, "cause", stet_cause_value(&r->cause));
    return v;
}

stet_status stet_action_state_of(stet_space *s, const char *branch, const stet_action_key *key, stet_action_state *out,
                                 stet_error *err) {
    if (!s || !out)
        return stet_fail_null(err);
    int64_t number, action;
    stet_error mine = STET_ERROR_INIT;
    stet_status st = check_key(key, err);
    if (st == STET_OK)
        st = ask(s, branch, &number, err);
    if (st != STET_OK)
        return st;
    st = stet_observe_number(s, number, key, &action, &mine);
    if (st == STET_OK && !stet_observe_of(s)->off)
        return stet_observe_state(s, number, action, out, NULL, err);
    if (st == STET_OK || st == STET_NOT_FOUND) {
        *out = STET_STATE_UNKNOWN;
        st = STET_OK;
    } else {
        stet_error_move(err, &mine);
    }
    stet_error_clear(&mine);
    return st;
}

/* Describes the cause of staleness, {"space","piece","scope","action"}: an action of this space or of another one. */
static stet_value root_value(stet_space *s, const stet_stale_root *root, stet_arena *arena) {
    stet_action_record r;
    stet_value v = stet_value_object();
    if (root->space != s)
        stet_value_put(&v, "space", stet_value_string(root->space->name));
    if (root->action && stet_observe_get(root->space, root->action, arena, &r, NULL) == STET_OK) {
        stet_value_put(&v, "piece", stet_value_string(r.key.piece));
        stet_value_put(&v, "scope", stet_value_string(r.key.scope));
        stet_value_put(&v, "action", stet_value_string(r.key.action));
    } else if (!root->piece && root->name) {
        stet_value_put(&v, "space", stet_value_string(root->name));
    }
    return v;
}

stet_status stet_action_get(stet_space *s, const char *branch, const stet_action_key *key, stet_value *out,
                            stet_error *err) {
    if (!s || !out)
        return stet_fail_null(err);
    int64_t number;
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    stet_standing all = {0};
    stet_status st = check_key(key, err);
    if (st == STET_OK)
        st = ask(s, branch, &number, err);
    if (st == STET_OK)
        st = stet_observe_find(s, number, key, &arena, &r, err);
    if (st == STET_OK)
        st = stet_observe_standing(s, number, NULL, &all, err);
    if (st == STET_OK) {
        stet_action_state state = stet_standing_state(&all, &r);
        *out = with_state(&r, state);
        if (state == STET_STATE_STALE)
            stet_value_put(out, "via", root_value(s, stet_standing_root(&all, r.action), &arena));
        stet_standing_release(&all);
    }
    stet_arena_release(&arena);
    return st;
}

stet_status stet_actions_list(stet_space *s, const char *branch, const stet_actions_query *query, stet_value *out,
                              int64_t *next, stet_error *err) {
    if (!s || !out || !next)
        return stet_fail_null(err);
    stet_actions_query q;
    stet_status st = stet_options_read(&q, sizeof q, query, "stet_actions_query", err);
    if (st != STET_OK)
        return st;
    int64_t number, following = 0;
    stet_standing marked = {0};
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record *at = NULL;
    size_t count = 0;
    stet_action_filter f = {.piece = q.piece,
                            .scope = q.scope,
                            .generation = q.generation ? *q.generation : -1,
                            .after = q.after,
                            .limit = q.limit ? q.limit : PAGE};
    st = ask(s, branch, &number, err);
    if (st == STET_OK)
        st = stet_observe_standing(s, number, NULL, &marked, err);
    if (st == STET_OK)
        st = stet_observe_list(s, number, &f, &arena, &at, &count, &following, err);
    if (st == STET_OK) {
        stet_value list = stet_value_array();
        for (size_t i = 0; i < count; i++) {
            stet_action_state state = at[i].cause.state;
            stet_value_push(
                &list,
                with_state(&at[i], state == STET_STATE_STANDS ? stet_standing_of(&marked, at[i].action) : state));
        }
        *out = list;
        *next = following;
    }
    stet_standing_release(&marked);
    stet_arena_release(&arena);
    return st;
}

typedef struct counting {
    const stet_standing *states;
    int64_t actions, by_state[STET_STATE_ACCEPTED + 1], failed;
} counting;

static int by_action(const void *key, const void *mark) {
    int64_t a = *(const int64_t *)key, b = ((const stet_marked *)mark)->action;
    return a < b ? -1 : a > b;
}

static bool count_one(void *ctx, int64_t action, const char *name, size_t name_len, const void *bytes, size_t len) {
    (void)name;
    (void)name_len;
    counting *c = ctx;
    stet_obs obs;
    bool good = len && stet_obs_decode(bytes, len, &obs);
    c->actions++;
    stet_action_state state = good ? stet_standing_of(c->states, action) : STET_STATE_UNKNOWN;
    const stet_marked *mark = c->states->marked_count ? bsearch(&action, c->states->marked, c->states->marked_count,
                                                                sizeof *c->states->marked, by_action)
                                                      : NULL;
    stet_action_record r = {.observed = good, .failed = good && obs.failed};
    if (mark)
        r.cause = (stet_cause){.state = mark->state, .reason = mark->reason};
    bool failed = stet_action_fails(&r);
    c->by_state[state] += !(failed && state == STET_STATE_STANDS);
    c->failed += failed;
    return true;
}

stet_status stet_actions_count(stet_space *s, const char *branch, const char *piece, const char *scope, stet_value *out,
                               stet_error *err) {
    if (!s || !out)
        return stet_fail_null(err);
    int64_t number = 0;
    stet_standing marked = {0};
    counting c = {.states = &marked};
    stet_action_filter f = {.piece = piece, .scope = scope, .generation = -1};
    stet_status st = ask(s, branch, &number, err);
    if (st == STET_OK)
        st = stet_observe_standing(s, number, NULL, &marked, err);
    if (st == STET_OK)
        st = stet_observe_scan(s, number, &f, count_one, &c, err);
    if (st == STET_OK) {
        stet_value v = stet_value_object();
        stet_value_put(&v, "actions", stet_value_int(c.actions));
        for (int i = STET_STATE_STANDS; i <= STET_STATE_ACCEPTED; i++)
            stet_value_put(&v, stet_action_state_name((stet_action_state)i), stet_value_int(c.by_state[i]));
        stet_value_put(&v, "failed", stet_value_int(c.failed));
        *out = v;
    }
    stet_standing_release(&marked);
    return st;
}

static void put_key(stet_value *v, const stet_action_key *key) {
    stet_value_put(v, "piece", stet_value_string(key->piece));
    stet_value_put(v, "scope", stet_value_string(key->scope ? key->scope : ""));
    stet_value_put(v, "action", stet_value_string(key->action));
}

static stet_status name_actions(stet_space *s, const stet_numbers *at, stet_value *list, stet_error *err) {
    stet_status st = STET_OK;
    for (size_t i = 0; i < at->len && st == STET_OK; i++) {
        stet_arena arena = STET_ARENA_INIT;
        stet_action_record r;
        st = stet_observe_get(s, at->at[i], &arena, &r, err);
        if (st == STET_OK) {
            stet_value v = stet_value_object();
            stet_value_put(&v, "space", stet_value_string(s->name));
            put_key(&v, &r.key);
            stet_value_push(list, v);
        }
        stet_arena_release(&arena);
    }
    return st;
}

static void name_far(stet_space *s, const stet_far_reader *at, size_t count, stet_value *list) {
    for (size_t i = 0; i < count; i++) {
        stet_arena arena = STET_ARENA_INIT;
        stet_space *owner;
        stet_action_record r;
        stet_value v = stet_value_object();
        stet_value_put(&v, "space", stet_value_string(at[i].space));
        if (stet_observe_sibling(s, at[i].space, at[i].uuid, &owner, NULL) == STET_OK &&
            stet_observe_get(owner, at[i].action, &arena, &r, NULL) == STET_OK)
            put_key(&v, &r.key);
        else
            stet_value_put(&v, "number", stet_value_int(at[i].action));
        stet_value_push(list, v);
        stet_arena_release(&arena);
    }
}

stet_status stet_space_readers(stet_space *s, const char *branch, const char *cell, const char *scope, stet_value *out,
                               stet_error *err) {
    if (!s || !cell || !out)
        return stet_fail_null(err);
    int64_t number = 0;
    char *id = NULL;
    stet_path path = STET_PATH_INIT;
    stet_arena arena = STET_ARENA_INIT;
    stet_numbers readers = {0}, writers = {0};
    stet_far_reader *far = NULL;
    size_t far_count = 0;
    stet_value reads = stet_value_array(), writes = stet_value_array();
    stet_status st = stet_cell_parse(cell, false, &id, &path, err);
    stet_docname name = {id, scope};
    stet_pathref p = stet_path_ref(&path);
    if (st == STET_OK)
        st = ask(s, branch, &number, err);
    if (st == STET_OK) /* as if the key itself were added or removed, which is the widest possible write */
        st = stet_observe_readers(s, number, &name, p, STET_KEYSET, &readers, err);
    if (st == STET_OK)
        st = stet_observe_writers(s, number, &name, p, STET_WRITE_KNOWN | STET_WRITE_DECLARED | STET_WRITE_ENVELOPE,
                                  &writers, err);
    if (st == STET_OK && number == 0) /* other spaces read only the default branch */
        st = stet_observe_far_readers(s, &name, p, STET_KEYSET, &arena, &far, &far_count, err);
    if (st == STET_OK)
        st = name_actions(s, &readers, &reads, err);
    if (st == STET_OK)
        st = name_actions(s, &writers, &writes, err);
    if (st == STET_OK) {
        name_far(s, far, far_count, &reads);
        *out = stet_value_object();
        stet_value_put(out, "readers", stet_value_retain(reads));
        stet_value_put(out, "writers", stet_value_retain(writes));
    }
    stet_value_release(reads);
    stet_value_release(writes);
    stet_numbers_release(&readers);
    stet_numbers_release(&writers);
    stet_arena_release(&arena);
    stet_free(id);
    stet_path_release(&path);
    return st;
}

stet_status stet_space_changes_after(stet_space *s, const char *branch, const stet_changes_query *query,
                                     stet_value *out, stet_error *err) {
    if (!s || !out)
        return stet_fail_null(err);
    stet_changes_query q;
    stet_status st = stet_options_read(&q, sizeof q, query, "stet_changes_query", err);
    if (st == STET_OK && !q.cell)
        st = stet_fail(err, STET_INVALID, "a stet_changes_query needs a cell");
    if (st != STET_OK)
        return st;
    int64_t number, doc = 0;
    char *id = NULL;
    stet_path path = STET_PATH_INIT;
    stet_arena arena = STET_ARENA_INIT;
    stet_overlap *at = NULL;
    size_t count = 0;
    st = stet_cell_parse(q.cell, false, &id, &path, err);
    stet_docname name = {id, q.scope};
    if (st == STET_OK)
        st = stet_space_branch(s, branch, &number, err);
    if (st == STET_OK)
        st = stet_space_refresh(s, err);
    if (st == STET_OK)
        st = stet_space_doc(s, &name, &doc, err);
    if (st == STET_OK && doc)
        st = stet_space_overlaps(s, number, doc, stet_path_ref(&path), q.shallow ? STET_SHALLOW : STET_RECURSIVE,
                                 q.after, q.before, q.limit ? q.limit : PAGE, &arena, &at, &count, err);
    if (st == STET_OK) {
        stet_value list = stet_value_array();
        stet_buf b = STET_BUF(0);
        for (size_t i = 0; i < count; i++) {
            stet_value v = stet_value_object();
            stet_buf_clear(&b);
            stet_path_print(at[i].change.path, &b);
            stet_value_put(&v, "seq", stet_value_int(at[i].seq));
            stet_value_put(&v, "path", stet_value_string_n(stet_buf_cstr(&b), b.len));
            stet_value_put(&v, "kind", stet_value_string(at[i].change.kind == STET_KEYSET ? "keys" : "value"));
            stet_value_push(&list, v);
        }
        stet_buf_release(&b);
        *out = list;
    }
    stet_arena_release(&arena);
    stet_free(id);
    stet_path_release(&path);
    return st;
}

stet_status stet_actions_stats(stet_space *s, stet_value *out, stet_error *err) {
    if (!s || !out)
        return stet_fail_null(err);
    stet_observe_stats st;
    int64_t number = 0;
    stet_status status = ask(s, NULL, &number, err);
    if (status == STET_OK)
        status = stet_observe_stat(s, &st, err);
    if (status == STET_OK) {
        *out = stet_observe_stats_value(&st);
        stet_value_put(out, "handle", stet_observe_counts_value(&st.handle));
    }
    return status;
}

stet_status stet_action_distrust(stet_space *s, const char *branch, const stet_action_key *keys, size_t count,
                                 stet_error *err) {
    if (!s || (count && !keys))
        return stet_fail_null(err);
    int64_t number = 0;
    stet_status st = stet_observe_sync(s, err);
    if (st == STET_OK)
        st = stet_space_branch(s, branch, &number, err);
    for (size_t i = 0; i < count && st == STET_OK; i++)
        st = check_key(&keys[i], err);
    return st == STET_OK ? stet_observe_distrust(s, number, keys, count, STET_REASON_REQUESTED, err) : st;
}

stet_status stet_actions_forget(stet_space *s, const char *branch, const char *piece, const char *scope,
                                const stet_action_key *keys, size_t count, stet_error *err) {
    if (!s || !piece)
        return stet_fail_null(err);
    int64_t number = 0;
    stet_status st = check_name(piece, scope, err);
    for (size_t i = 0; keys && i < count && st == STET_OK; i++)
        st = keys[i].action ? check_name(keys[i].action, NULL, err) : stet_fail_null(err);
    if (st == STET_OK)
        st = stet_observe_sync(s, err);
    if (st == STET_OK)
        st = stet_space_branch(s, branch, &number, err);
    return st == STET_OK ? stet_observe_forget(s, number, piece, scope, keys, count, err) : st;
}

void stet_actions_switch(stet_space *s, bool on) {
    if (!s)
        return;
    stet_observe_switch(s, on);
}
