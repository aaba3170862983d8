/* action.c - the operations status, action list and action show: the states of actions. */

#include <stdlib.h>
#include <string.h>

#include "drive/drift.h"
#include "graph/argument.h"
#include "graph/stream.h"
#include "operation/piece_common.h"
#include "operation/text.h"
#include "os/clock.h"
#include "scheduler/standing.h"

typedef struct counted {
    const stet_piece *piece;
    const stet_standing *standing;
    /* Each action counts once, by its state: one that failed and is outdated counts as outdated. */
    size_t states[4], recorded, failed; /* failed: of those that are counted in another state */
} counted;

static stet_status count_one(piece_call *c, counted *n, int64_t action, stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    stet_error mine = STET_ERROR_INIT;
    stet_status status = stet_observe_get(c->space, action, &arena, &r, &mine);
    if (status == STET_OK && stet_piece_has(n->piece, &r.key) && !stet_standing_misses(n->standing, &r.key)) {
        n->states[stet_standing_of(n->standing, action)]++;
        n->recorded++;
        n->failed += stet_action_fails(&r);
    }
    if (status == STET_NOT_FOUND) /* a mark that is left of an action that is not there any more */
        status = STET_OK;
    else if (status != STET_OK)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    stet_arena_release(&arena);
    return status;
}

static stet_status count_piece(piece_call *c, const stet_standing *s, const stet_piece *p, stet_value *row,
                               stet_error *err) {
    counted n = {.piece = p, .standing = s};
    stet_status status = STET_OK;
    /* What does not stand is few, or it is about to run: each is looked at by name. */
    for (size_t i = 0; i < s->marked_count && status == STET_OK; i++)
        status = count_one(c, &n, s->marked[i].action, err);
    for (size_t i = 0; i < s->stale.len && status == STET_OK; i++)
        status = count_one(c, &n, s->stale.at[i], err);
    if (status != STET_OK)
        return status;
    size_t *counts = n.states, recorded = n.recorded;
    stet_value failures;
    status = stet_observe_failures(c->space, c->branch, p->doc, p->scope, &failures, err);
    if (status != STET_OK)
        return status;
    for (size_t i = 0; i < s->missing_count; i++)
        if (stet_piece_has(p, &(stet_action_key){s->missing[i].piece, s->missing[i].scope, NULL})) {
            counts[STET_STATE_UNKNOWN]++;
            recorded++;
            n.failed += stet_value_find(failures, s->missing[i].action, strlen(s->missing[i].action), NULL);
        }
    /* One that failed, and whose inputs are what they were, does not run again by itself; but it does not stand. */
    size_t all_failed = stet_value_count(failures), actions = p->node_count - p->handler_count;
    int64_t known = 0;
    if (p->has_children)
        status = stet_observe_known(c->space, c->branch, p->doc, p->scope, &known, err);
    if (status != STET_OK) {
        stet_value_release(failures);
        return status;
    }
    if (known > (int64_t)actions)
        actions = (size_t)known;
    size_t only_failed = all_failed > n.failed ? all_failed - n.failed : 0;
    recorded += only_failed;
    if (recorded > actions)
        actions = recorded;
    /* Without records every action is unknown at every start. */
    counts[stet_drive_persist(c->project) ? STET_STATE_STANDS : STET_STATE_UNKNOWN] +=
        actions > recorded ? actions - recorded : 0;
    stet_value wrong;
    status = piece_wrong(c, p, &wrong, err);
    if (status != STET_OK) {
        stet_value_release(failures);
        return status;
    }
    if (stet_value_type(wrong) == STET_TYPE_STRING) { /* then nothing of it is known to be what it should be */
        counts[STET_STATE_UNKNOWN] += counts[STET_STATE_STANDS];
        counts[STET_STATE_STANDS] = 0;
    }
    *row = stet_value_object();
    stet_value_put(row, "piece", stet_value_string(p->name));
    stet_value_put(row, "generation", stet_value_int(p->generation));
    stet_value_put(row, "nodes", stet_value_int((int64_t)p->node_count));
    for (int i = 0; i < 4; i++)
        stet_value_put(row, stet_action_state_name((stet_action_state)i), stet_value_int((int64_t)counts[i]));
    stet_value_put(row, "failed", stet_value_int((int64_t)only_failed));
    if (all_failed > 0)
        stet_value_put(row, "failures", stet_value_retain(failures));
    stet_value_put(row, "stopped", stet_value_bool(p->stopped));
    if (stet_value_type(wrong) == STET_TYPE_STRING)
        stet_value_put(row, "wrong", stet_value_retain(wrong));
    stet_value_release(wrong);
    stet_value_release(failures);
    stet_value overridden;
    status = stet_piece_overrides(c->space, c->branch, p, &overridden, err);
    if (status == STET_OK)
        stet_value_put(row, "overridden", overridden);
    else
        stet_value_release(*row);
    return status;
}

#define DRIFT_MS 5000 /* how long a process has for its answer; it is at rest only when its actions are */

static stet_status put_drift(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_project *p;
    stet_value drift;
    if (!stet_value_as_bool(stet_value_get(args, "drift")))
        return STET_OK;
    stet_status status = ctx->project(ctx, &p, err);
    if (status == STET_OK)
        status = stet_drift_ask(p, DRIFT_MS, &drift, err);
    if (status == STET_OK)
        stet_value_put(result, "drift", drift);
    return status;
}

/* A process that holds something else than the tables is a failure; one that does not answer is not. */
static stet_status status_verdict(stet_value result) {
    stet_value list = stet_value_get(stet_value_get(result, "drift"), "processes");
    int64_t differ = 0;
    for (size_t i = 0; i < stet_value_count(list); i++)
        differ += stet_value_as_int(stet_value_get(stet_value_at(list, i), "differ"));
    return differ > 0 ? STET_FAILED : STET_OK;
}

static void render_drift(stet_render *r, stet_value drift) {
    stet_value list = stet_value_get(drift, "processes");
    if (stet_value_type(drift) != STET_TYPE_OBJECT)
        return;
    if (stet_value_count(list) == 0)
        stet_buf_str(r->out, "no process holds the project open\n");
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value p = stet_value_at(list, i), different = stet_value_get(p, "drift");
        stet_buf_printf(r->out, "process %lld", (long long)stet_value_as_int(stet_value_get(p, "pid")));
        if (!stet_value_as_bool(stet_value_get(p, "answered"))) {
            stet_buf_str(r->out, ": no answer; it may be running something\n");
            continue;
        }
        stet_buf_str(r->out, " (watches ");
        piece_render_text(r, stet_value_get(p, "piece"));
        stet_buf_printf(r->out, "): %lld actions in memory, %lld differ from the tables\n",
                        (long long)stet_value_as_int(stet_value_get(p, "actions")),
                        (long long)stet_value_as_int(stet_value_get(p, "differ")));
        for (size_t k = 0; k < stet_value_count(different); k++) {
            stet_value d = stet_value_at(different, k);
            stet_buf_str(r->out, "  ");
            piece_render_text(r, stet_value_get(d, "piece"));
            stet_buf_char(r->out, '/');
            piece_render_text(r, stet_value_get(d, "action"));
            stet_buf_str(r->out, ": ");
            piece_render_text(r, stet_value_get(d, "memory"));
            stet_buf_str(r->out, " in memory, ");
            piece_render_text(r, stet_value_get(d, "tables"));
            stet_buf_str(r->out, " in the tables\n");
        }
        if (stet_value_count(different) > 0)
            stet_buf_str(r->out, "  stop the process and run stet check\n");
    }
}

static stet_status status_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    piece_call c;
    stet_standing s = {0};
    stet_value rows = stet_value_array(), names = stet_value_array();
    stet_error mine = STET_ERROR_INIT;
    char *only;
    stet_status status = piece_named(args, &only, err);
    if (status != STET_OK) {
        stet_value_release(rows);
        stet_value_release(names);
        return status;
    }
    status = piece_begin(ctx, args, PIECE_NOW, &c, &mine);
    if (status == STET_NOT_FOUND && c.absent && !only) {
        stet_project *p;
        stet_error_clear(&mine);
        status = ctx->project(ctx, &p, err);
        if (status == STET_OK) {
            *result = stet_value_object();
            stet_value_put(result, "pieces", rows);
            stet_value_put(result, "persist", stet_value_bool(stet_drive_persist(p)));
            stet_value_release(names);
            return STET_OK;
        }
    }
    if (status != STET_OK) {
        if (err)
            stet_error_move(err, &mine);
        stet_free(only);
        stet_value_release(rows);
        stet_value_release(names);
        return status;
    }
    bool more = false, persist = stet_drive_persist(c.project);
    status = stet_standing_load(c.space, c.branch, &s, err);
    if (status == STET_OK && only) {
        stet_value_push(&names, stet_value_string(only));
    } else if (status == STET_OK) {
        stet_value_release(names);
        names = stet_value_null();
        status = piece_names_in(&c, args, 10000, &names, &more, err);
    }
    for (size_t i = 0; i < stet_value_count(names) && status == STET_OK; i++) {
        stet_value name = stet_value_at(names, i), row;
        stet_piece *p;
        stet_error bad = STET_ERROR_INIT;
        status = stet_piece_load(c.space, c.branch, stet_value_as_string(&name, NULL), -1, &p, &bad);
        if (status != STET_OK) {
            if (only && err)
                stet_error_move(err, &bad);
            else
                status = STET_OK;
            stet_error_clear(&bad);
            continue;
        }
        status = count_piece(&c, &s, p, &row, err);
        if (status == STET_OK)
            status = piece_put_leads(&c, &s, p, &row, err);
        if (status == STET_OK)
            status = piece_put_changed(&c, p, &row, err);
        if (status == STET_OK)
            stet_value_push(&rows, row);
        stet_piece_free(p);
    }
    stet_observe_stats st = {0};
    stet_value owed = stet_value_null();
    if (status == STET_OK)
        status = piece_owed(&c, &owed, err);
    if (status == STET_OK)
        status = stet_observe_stat(c.space, &st, err);
    if (status == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "pieces", stet_value_retain(rows));
        stet_value_put(result, "persist", stet_value_bool(persist));
        stet_value_put(result, "metrics", stet_observe_stats_value(&st));
        stet_value_put(result, "owed", owed);
        owed = stet_value_null();
        status = piece_put_absent(&c, only, result, err);
        if (status == STET_OK)
            status = put_drift(ctx, args, result, err);
    }
    stet_free(only);
    stet_value_release(owed);
    stet_value_release(rows);
    stet_value_release(names);
    stet_standing_release(&s);
    piece_end(&c);
    return status;
}

static void status_render(stet_render *r, stet_value result) {
    stet_value rows = stet_value_get(result, "pieces");
    if (!stet_value_as_bool(stet_value_get(result, "persist")))
        stet_buf_str(r->out, "nothing is recorded: [scheduler] persist = false in config.toml\n");
    if (stet_value_count(rows) == 0) {
        stet_buf_str(r->out, "no pieces; make one with: stet run PATTERN\n");
        return;
    }
    render_drift(r, stet_value_get(result, "drift"));
    static const char *const columns[] = {"stands", "dirty", "stale", "unknown", "failed"};
    stet_table t = {.columns = 6};
    stet_table_cell(&t, "PIECE");
    stet_table_cell(&t, "STANDS");
    stet_table_cell(&t, "DIRTY");
    stet_table_cell(&t, "STALE");
    stet_table_cell(&t, "UNKNOWN");
    stet_table_cell(&t, "FAILED");
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        stet_value row = stet_value_at(rows, i), name = stet_value_get(row, "piece");
        stet_table_cell(&t, stet_value_as_string(&name, NULL));
        for (size_t k = 0; k < 5; k++)
            stet_table_cellf(&t, "%lld", (long long)stet_value_as_int(stet_value_get(row, columns[k])));
    }
    stet_table_print(&t, r, true);
    piece_render_owed(r, stet_value_get(result, "owed"));
    piece_render_absent(r, result);
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        piece_render_changed(r, stet_value_at(rows, i));
        piece_render_leads(r, stet_value_at(rows, i));
    }
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        stet_value row = stet_value_at(rows, i), names = stet_value_get(row, "overridden");
        piece_render_wrong(r, row);
        if (stet_value_count(names) == 0)
            continue;
        piece_render_text(r, stet_value_get(row, "piece"));
        stet_buf_str(r->out, ": ");
        piece_render_overridden(r, names);
    }
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        stet_value row = stet_value_at(rows, i), failures = stet_value_get(row, "failures");
        for (size_t k = 0; k < stet_value_count(failures) && k < 20; k++) {
            size_t len;
            const char *node = stet_value_key_at(failures, k, &len);
            stet_text_styled(r, STET_STYLE_BAD, "failed ");
            piece_render_text(r, stet_value_get(row, "piece"));
            stet_buf_char(r->out, '/');
            stet_text_plain(r, node, len);
            stet_buf_str(r->out, ": ");
            stet_value piece = stet_value_get(row, "piece");
            piece_render_message(r->out, stet_value_at(failures, k), stet_value_as_string(&piece, NULL), node);
            stet_buf_char(r->out, '\n');
        }
    }
}

void piece_print_cell(stet_space *s, const char *uuid, const stet_docname *name, stet_pathref path, stet_buf *out) {
    stet_cell_print(name->id, path, out);
    if (name->scope && *name->scope)
        stet_buf_printf(out, " (scope %s)", name->scope);
    if (uuid) {
        stet_arena arena = STET_ARENA_INIT;
        stet_buf_printf(out, " in space %s", stet_observe_space_name(s, uuid, &arena));
        stet_arena_release(&arena);
    }
}

void piece_print_action(const stet_action_key *key, stet_buf *out) {
    char *piece = stet_piece_of_action(key);
    stet_buf_str(out, piece ? piece : key->piece);
    if (!piece && key->scope && *key->scope)
        stet_buf_printf(out, " (scope %s)", key->scope);
    stet_buf_printf(out, "/%s", key->action);
    stet_free(piece);
}

static stet_value cell_value(piece_call *c, const char *space, const stet_docname *name, stet_pathref path) {
    stet_buf b = STET_BUF(0);
    piece_print_cell(c->space, space, name, path, &b);
    stet_value v = stet_value_string_n(stet_buf_cstr(&b), b.len);
    stet_buf_release(&b);
    return v;
}

static stet_value cells_value(piece_call *c, const stet_observed *at, size_t count, bool reads) {
    stet_value list = stet_value_array();
    for (size_t i = 0; i < count; i++) {
        stet_value row = stet_value_object();
        stet_value_put(&row, "cell", cell_value(c, at[i].space, &at[i].name, at[i].path));
        if (reads) {
            stet_value_put(&row, "kind", stet_value_string(at[i].kind == STET_SHALLOW ? "shallow" : "recursive"));
            stet_value_put(&row, "seq", stet_value_int(at[i].seq));
        }
        stet_value_push(&list, row);
    }
    return list;
}

static stet_value time_value(int64_t ms) {
    char text[STET_TIME_TEXT];
    stet_time_print(ms, text);
    return stet_value_string(text);
}

/* Why it is stale. */
static stet_value root_value(piece_call *c, const stet_stale_root *root) {
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    stet_action_key key = {.piece = root->piece, .scope = root->scope, .action = root->name};
    stet_value v = stet_value_object();
    stet_value_put(&v, "reason", stet_value_string(root->failed ? "failed" : "upstream"));
    if (root->action && stet_observe_brief(root->space, root->action, &arena, &r, NULL) == STET_OK)
        key = r.key;
    if (key.piece) {
        stet_buf b = STET_BUF(0);
        piece_print_action(&key, &b);
        stet_value_put(&v, "action", stet_value_string_n(stet_buf_cstr(&b), b.len));
        stet_buf_release(&b);
    }
    if (root->space != c->space)
        stet_value_put(&v, "space", stet_value_string(stet_space_name(root->space)));
    else if (!key.piece && key.action)
        stet_value_put(&v, "space", stet_value_string(key.action));
    stet_arena_release(&arena);
    return v;
}

const char *piece_state_name(const stet_action_record *r, stet_action_state state) {
    return stet_action_fails(r) && state == STET_STATE_STANDS ? "failed" : stet_action_state_name(state);
}

stet_value piece_action_value(piece_call *c, const stet_standing *s, const stet_action_record *r,
                              stet_action_state state, bool full) {
    static const char *const kinds[] = {"", "computation", "effect", "event-handler"};
    static const char *const runs[] = {"", "dependency-collection", "action-run", "event-preflight"};
    stet_value v = stet_value_object();
    stet_value_put(&v, "action", stet_value_string(r->key.action));
    bool failed = stet_action_fails(r);
    const stet_stale_root *root = state == STET_STATE_STALE ? stet_standing_root(s, r->action) : NULL;
    stet_value_put(&v, "state", stet_value_string(piece_state_name(r, state)));
    stet_value_put(&v, "failed", stet_value_bool(failed));
    if (r->cause.state != STET_STATE_STANDS) {
        stet_value cause = stet_value_object();
        stet_value_put(&cause, "reason", stet_value_string(stet_reason_name(r->cause.reason)));
        if (r->cause.seq)
            stet_value_put(&cause, "seq", stet_value_int(r->cause.seq));
        if (r->cause.name.id)
            stet_value_put(&cause, "cell", cell_value(c, r->cause.space, &r->cause.name, r->cause.change.path));
        stet_value_put(&v, "cause", cause);
    } else if (root) {
        stet_value_put(&v, "cause", root_value(c, root));
    } else if (state == STET_STATE_UNKNOWN) { /* its piece is wrong as a whole */
        stet_value cause = stet_value_object();
        stet_value_put(&cause, "reason", stet_value_string("wrong"));
        stet_value_put(&v, "cause", cause);
    }
    if (!r->observed || !full)
        return v;
    char hex[STET_HASH_HEX];
    stet_value_put(&v, "kind", stet_value_string(kinds[r->kind]));
    stet_value_put(&v, "run", stet_value_string(runs[r->run]));
    stet_value_put(&v, "generation", stet_value_int(r->generation));
    stet_value_put(&v, "observedAt", stet_value_int(r->observed_at));
    stet_value_put(&v, "commitSeq", r->commit_seq ? stet_value_int(r->commit_seq) : stet_value_null());
    if (r->parent)
        stet_value_put(&v, "parent", stet_value_string(r->parent));
    stet_value_put(&v, "time", time_value(r->time_ms));
    stet_hash_hex(r->implementation, hex);
    stet_value_put(&v, "implementation", stet_value_string(hex));
    stet_hash_hex(r->runtime, hex);
    stet_value_put(&v, "runtime", stet_value_string(hex));
    stet_value_put(&v, "reads", cells_value(c, r->reads, r->read_count, true));
    stet_value_put(&v, "writes", cells_value(c, r->known, r->known_count, false));
    stet_value_put(&v, "changed", cells_value(c, r->changed, r->changed_count, false));
    stet_value_put(&v, "declaredWrites", cells_value(c, r->declared, r->declared_count, false));
    stet_value_put(&v, "envelopes", cells_value(c, r->envelopes, r->envelope_count, false));
    stet_value_put(&v, "ignoredWrites", cells_value(c, r->ignored, r->ignored_count, false));
    stet_value note, options;
    if (r->options_len && stet_json_parse(r->options, r->options_len, &options, NULL) == STET_OK)
        stet_value_put(&v, "options", options);
    if (failed) {
        stet_hash_hex(r->error, hex);
        stet_value_put(&v, "errorFingerprint", stet_value_string(hex));
    }
    if (r->note_len && stet_json_parse(r->note, r->note_len, &note, NULL) == STET_OK)
        stet_value_put(&v, "note", note);
    return v;
}

/* Earlier observations, newest first, if [scheduler] keep_observations keeps any. */
static stet_value past_value(piece_call *c, const stet_action_record *at, size_t count) {
    stet_value list = stet_value_array();
    for (size_t i = 0; i < count; i++) {
        stet_value v = stet_value_object();
        stet_value_put(&v, "generation", stet_value_int(at[i].generation));
        stet_value_put(&v, "observedAt", stet_value_int(at[i].observed_at));
        stet_value_put(&v, "time", time_value(at[i].time_ms));
        stet_value_put(&v, "failed", stet_value_bool(at[i].failed));
        stet_value_put(&v, "reads", cells_value(c, at[i].reads, at[i].read_count, true));
        stet_value_put(&v, "changed", cells_value(c, at[i].changed, at[i].changed_count, false));
        stet_value_push(&list, v);
    }
    return list;
}

/* Actions without a row have no number: in pages they come after all others. */
#define AFTER_RECORDED (INT64_C(1) << 62)

static stet_status list_missing(piece_call *c, const stet_standing *s, const stet_piece *p, const char *wanted,
                                size_t limit, int64_t *next, stet_value *rows, stet_error *err) {
    size_t i = *next >= AFTER_RECORDED ? (size_t)(*next - AFTER_RECORDED) : 0;
    stet_status status = STET_OK;
    if ((*next > 0 && *next < AFTER_RECORDED) || (wanted && strcmp(wanted, "unknown") != 0))
        return STET_OK;
    *next = 0;
    for (; i < s->missing_count && status == STET_OK; i++) {
        stet_arena arena = STET_ARENA_INIT;
        stet_action_record r;
        stet_action_key key = {
            .piece = s->missing[i].piece, .scope = s->missing[i].scope, .action = s->missing[i].action};
        if (!stet_piece_has(p, &key))
            continue;
        if (stet_value_count(*rows) >= limit) {
            *next = AFTER_RECORDED + (int64_t)i;
            break;
        }
        status = piece_find_action(c, s, &key, &arena, &r, err);
        if (status == STET_OK && !r.action)
            stet_value_push(rows, piece_action_value(c, s, &r, STET_STATE_UNKNOWN, false));
        stet_arena_release(&arena);
    }
    return status;
}

static stet_status list_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    piece_call c;
    stet_standing s = {0};
    stet_piece *p = NULL;
    stet_value hold;
    const char *wanted = piece_text(args, "state", NULL, &hold);
    size_t limit = (size_t)stet_value_as_int(stet_value_get(args, "limit"));
    int64_t next = stet_value_as_int(stet_value_get(args, "after"));
    stet_status status = piece_begin(ctx, args, PIECE_NOW, &c, err);
    if (status != STET_OK)
        return status;
    status = piece_pick(&c, args, &p, err);
    if (status == STET_OK)
        status = stet_standing_load(c.space, c.branch, &s, err);
    stet_value rows = stet_value_array(), wrong = stet_value_null();
    if (status == STET_OK)
        status = piece_wrong(&c, p, &wrong, err);
    while (status == STET_OK && stet_value_count(rows) < limit && next < AFTER_RECORDED) {
        stet_arena arena = STET_ARENA_INIT;
        stet_action_filter f = {.piece = p->doc, .scope = p->scope, .generation = -1, .after = next, .limit = 1};
        stet_action_record *at;
        size_t count = 0;
        f.limit = limit - stet_value_count(rows) < 500 ? limit - stet_value_count(rows) : 500;
        status = stet_observe_list(c.space, c.branch, &f, &arena, &at, &count, &next, err);
        for (size_t i = 0; i < count && status == STET_OK; i++) {
            stet_action_state state = piece_state_in(wrong, &s, &at[i]);
            if (!wanted || strcmp(wanted, piece_state_name(&at[i], state)) == 0)
                stet_value_push(&rows, piece_action_value(&c, &s, &at[i], state, false));
        }
        stet_arena_release(&arena);
        if (next == 0 || next >= AFTER_RECORDED)
            break;
    }
    if (status == STET_OK)
        status = list_missing(&c, &s, p, wanted, limit, &next, &rows, err);
    if (status == STET_OK) {
        *result = stet_value_object();
        stet_value_put(result, "piece", stet_value_string(p->name));
        stet_value_put(result, "actions", stet_value_retain(rows));
        stet_value_put(result, "next", next ? stet_value_int(next) : stet_value_null());
        if (stet_value_type(wrong) == STET_TYPE_STRING)
            stet_value_put(result, "wrong", stet_value_retain(wrong));
        status = piece_put_changed(&c, p, result, err);
    }
    stet_value_release(wrong);
    stet_value_release(rows);
    stet_standing_release(&s);
    stet_piece_free(p);
    piece_end(&c);
    return status;
}

/* "changed CELL", "waits for PIECE/NODE, which failed", "upstream PIECE/NODE in space NAME" */
static void print_cause(stet_value cause, stet_buf *out) {
    stet_value reason = stet_value_get(cause, "reason"), action = stet_value_get(cause, "action"),
               cell = stet_value_get(cause, "cell"), space = stet_value_get(cause, "space");
    if (stet_value_type(reason) != STET_TYPE_STRING)
        return;
    bool failed = strcmp(stet_value_as_string(&reason, NULL), "failed") == 0;
    stet_buf_str(out, failed ? "waits for" : stet_value_as_string(&reason, NULL));
    if (stet_value_type(action) == STET_TYPE_STRING)
        stet_buf_printf(out, " %s", stet_value_as_string(&action, NULL));
    if (stet_value_type(cell) == STET_TYPE_STRING)
        stet_buf_printf(out, " %s", stet_value_as_string(&cell, NULL));
    if (stet_value_type(space) == STET_TYPE_STRING)
        stet_buf_printf(out, " in space %s", stet_value_as_string(&space, NULL));
    if (failed)
        stet_buf_str(out, ", which failed");
}

static void list_render(stet_render *r, stet_value result) {
    stet_value rows = stet_value_get(result, "actions");
    if (stet_value_count(rows) == 0) {
        stet_buf_str(r->out, "no such actions\n");
        return;
    }
    stet_table t = {.columns = 3};
    stet_table_cell(&t, "ACTION");
    stet_table_cell(&t, "STATE");
    stet_table_cell(&t, "CAUSE");
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        stet_value row = stet_value_at(rows, i), name = stet_value_get(row, "action"),
                   state = stet_value_get(row, "state");
        stet_buf cause = STET_BUF(0);
        print_cause(stet_value_get(row, "cause"), &cause);
        stet_table_cell(&t, stet_value_as_string(&name, NULL));
        const char *text = stet_value_as_string(&state, NULL);
        stet_table_cellf(&t, "%s%s", text,
                         stet_value_as_bool(stet_value_get(row, "failed")) && strcmp(text, "failed") != 0 ? ", failed"
                                                                                                          : "");
        stet_table_cell(&t, stet_buf_cstr(&cause));
        stet_buf_release(&cause);
    }
    stet_table_print(&t, r, true);
    piece_render_changed(r, result);
    piece_render_wrong(r, result);
    if (stet_value_type(stet_value_get(result, "next")) == STET_TYPE_INT)
        stet_buf_printf(r->out, "more: --after %lld\n", (long long)stet_value_as_int(stet_value_get(result, "next")));
}

static stet_status show_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    piece_call c;
    stet_value hold;
    const char *node = piece_text(args, "action", "", &hold);
    stet_status status = piece_begin(ctx, args, PIECE_NOW, &c, err);
    if (status != STET_OK)
        return status;
    stet_piece *p;
    status = piece_pick(&c, args, &p, err);
    if (status == STET_OK) {
        stet_arena arena = STET_ARENA_INIT;
        stet_action_record r;
        stet_action_state state = STET_STATE_UNKNOWN;
        stet_value row = stet_value_null(), wrong = stet_value_null();
        stet_action_key key = stet_piece_action(p, node);
        stet_standing s = {0};
        status = stet_piece_row(c.space, c.branch, p, node, &row, err);
        if (status == STET_OK)
            status = stet_standing_load(c.space, c.branch, &s, err);
        if (status == STET_OK)
            status = piece_find_action(&c, &s, &key, &arena, &r, err);
        if (status == STET_OK)
            status = piece_wrong(&c, p, &wrong, err);
        if (status == STET_OK)
            state = piece_state_in(wrong, &s, &r);
        stet_action_record *old = NULL;
        size_t old_count = 0;
        if (status == STET_OK)
            status = stet_observe_past(c.space, r.action, &arena, &old, &old_count, err);
        if (status == STET_OK) {
            *result = piece_action_value(&c, &s, &r, state, true);
            if (stet_stream_is_handler(row)) { /* not an action: it is neither up to date nor out of date */
                stet_value_put(result, "state", stet_value_string("handler"));
                stet_value_put(result, "kind", stet_value_string("event-handler"));
                stet_value_put(result, "stream", stet_value_retain(stet_value_get(row, "stream")));
                stet_value_remove(result, "cause", 5);
            }
            if (old_count)
                stet_value_put(result, "past", past_value(&c, old, old_count));
            stet_value_put(result, "piece", stet_value_string(p->name));
            if (stet_value_type(wrong) == STET_TYPE_STRING)
                stet_value_put(result, "wrong", stet_value_retain(wrong));
            stet_value_put(result, "module", stet_value_retain(stet_value_get(row, "module")));
            stet_value_put(result, "inputs", stet_value_retain(stet_value_get(row, "inputs")));
        }
        stet_value_release(wrong);
        stet_value_release(row);
        stet_standing_release(&s);
        stet_arena_release(&arena);
        stet_piece_free(p);
    }
    piece_end(&c);
    return status;
}

static void render_cells(stet_render *r, const char *what, stet_value list) {
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value row = stet_value_at(list, i), seq = stet_value_get(row, "seq"), kind = stet_value_get(row, "kind");
        stet_buf_printf(r->out, "  %-7s ", what);
        piece_render_text(r, stet_value_get(row, "cell"));
        if (stet_value_type(seq) == STET_TYPE_INT)
            stet_buf_printf(r->out, "  %s, up to %lld", stet_value_as_string(&kind, NULL),
                            (long long)stet_value_as_int(seq));
        stet_buf_char(r->out, '\n');
    }
}

static void show_render(stet_render *r, stet_value result) {
    piece_render_text(r, stet_value_get(result, "piece"));
    stet_buf_char(r->out, '/');
    piece_render_text(r, stet_value_get(result, "action"));
    stet_buf_str(r->out, ": ");
    stet_value state = stet_value_get(result, "state");
    if (strcmp(stet_value_as_string(&state, NULL), "handler") == 0) {
        stet_buf_str(r->out, "an event handler, which runs when an event is sent to its stream\n");
        return;
    }
    piece_render_text(r, state);
    bool said = strcmp(stet_value_as_string(&state, NULL), "failed") == 0;
    stet_buf_str(r->out, stet_value_as_bool(stet_value_get(result, "failed")) && !said ? ", failed" : "");
    stet_value cause = stet_value_get(result, "cause");
    if (stet_value_type(cause) == STET_TYPE_OBJECT) {
        stet_buf_str(r->out, ": ");
        stet_buf text = STET_BUF(0);
        print_cause(cause, &text);
        stet_text_plain(r, stet_buf_cstr(&text), text.len);
        stet_buf_release(&text);
    }
    stet_buf_char(r->out, '\n');
    piece_render_wrong(r, result);
    render_cells(r, "reads", stet_value_get(result, "reads"));
    render_cells(r, "writes", stet_value_get(result, "writes"));
    render_cells(r, "may write", stet_value_get(result, "envelopes"));
    render_cells(r, "ignored", stet_value_get(result, "ignoredWrites"));
    stet_value kind = stet_value_get(result, "kind"), parent = stet_value_get(result, "parent"),
               seq = stet_value_get(result, "commitSeq"), options = stet_value_get(result, "options"),
               error = stet_value_get(result, "errorFingerprint");
    if (stet_value_type(kind) != STET_TYPE_STRING)
        return;
    stet_buf_printf(r->out, "%s, ", stet_value_as_string(&kind, NULL));
    piece_render_text(r, stet_value_get(result, "run"));
    if (stet_value_type(seq) == STET_TYPE_INT)
        stet_buf_printf(r->out, ", stored with revision %lld\n", (long long)stet_value_as_int(seq));
    else
        stet_buf_str(r->out, ", which changed nothing\n");
    if (stet_value_type(parent) == STET_TYPE_STRING)
        stet_buf_printf(r->out, "child of %s\n", stet_value_as_string(&parent, NULL));
    if (stet_value_type(options) == STET_TYPE_OBJECT) {
        char *text = stet_json_print(options, STET_JSON_CANONICAL, NULL);
        stet_buf_printf(r->out, "options %s\n", text);
        stet_free(text);
    }
    if (stet_value_type(error) == STET_TYPE_STRING)
        stet_buf_printf(r->out, "error %.12s: ", stet_value_as_string(&error, NULL));
    if (stet_value_type(error) == STET_TYPE_STRING) {
        piece_render_text(r, stet_value_get(stet_value_get(stet_value_get(result, "note"), "error"), "message"));
        stet_buf_char(r->out, '\n');
    }
}

static const char *const state_names[] = {"stands", "dirty", "stale", "unknown", "failed", NULL};

static const stet_param status_params[] = {{.name = "piece",
                                            .type = STET_PARAM_STRING,
                                            .flags = STET_PARAM_POSITIONAL,
                                            .metavar = "PIECE",
                                            .summary = "One piece; without it all"},
                                           {.name = "drift",
                                            .type = STET_PARAM_BOOL,
                                            .summary = "Ask processes that watch the project whether what they hold in "
                                                       "memory agrees with the tables; exit status 1 if it does not"},
                                           PIECE_PARAM_SPACE,
                                           PIECE_PARAM_BRANCH,
                                           PIECE_PARAM_SCOPE,
                                           {0}};
static const stet_param list_params[] = {
    PIECE_PARAM_ONLY_PIECE,
    {.name = "state", .type = STET_PARAM_ENUM, .choices = state_names, .summary = "Only actions in this state"},
    {.name = "after",
     .type = STET_PARAM_INT,
     .metavar = "N",
     .summary = "The `next` of the page before",
     .default_json = "0"},
    {.name = "limit",
     .type = STET_PARAM_INT,
     .metavar = "N",
     .summary = "At most so many",
     .default_json = "100",
     .min = 1,
     .max = 100000},
    PIECE_PARAM_SPACE,
    PIECE_PARAM_BRANCH,
    PIECE_PARAM_SCOPE,
    {0},
};
static const stet_param show_params[] = {PIECE_PARAM_PIECE, PIECE_PARAM_ACTION(STET_PARAM_REQUIRED),
                                         PIECE_PARAM_SPACE, PIECE_PARAM_BRANCH,
                                         PIECE_PARAM_SCOPE, {0}};

static const stet_example status_examples[] = {
    {"status", "how everything stands"}, {"status totals", "how one piece stands"}, {0}};
static const stet_example list_examples[] = {{"action list totals --state dirty", "what would run, and why"}, {0}};
static const stet_example show_examples[] = {{"action show totals total", "what it read and wrote"}, {0}};

const stet_op stet_ops_state[] = {
    {.name = "status",
     .summary = "Show how pieces stand: what stands, what is dirty, stale, unknown or failed",
     .description =
         "stands: nothing that it read has changed. dirty: something has. stale: something upstream is dirty, "
         "unknown or failed. unknown: there is no record of it that can be trusted. failed: its last run did. Only "
         "looks: what "
         "commits by others still owe to the marks is told as owed, and left to the next run.",
     .params = status_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"pieces\",\"persist\"],\"properties\":{\"pieces\":{\"type\":"
                      "\"array\"},\"persist\":{\"type\":\"boolean\"},\"metrics\":{\"type\":\"object\"},"
                      "\"owed\":{\"type\":[\"object\",\"null\"]},"
                      "\"drift\":{\"type\":\"object\"},\"absentSpaces\":{\"type\":\"array\"}}}",
     .examples = status_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_COMMON,
     .run = status_run,
     .verdict = status_verdict,
     .render = status_render},
    {.name = "action list",
     .summary = "List the actions of a piece with their states",
     .params = list_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"piece\",\"actions\",\"next\"],\"properties\":{\"piece\":{"
         "\"type\":\"string\"},\"actions\":{\"type\":\"array\"},\"next\":{\"type\":[\"integer\",\"null\"]},\"wrong\":{"
         "\"type\":\"string\"},\"patternChanged\":{\"type\":\"object\"}}}",
     .examples = list_examples,
     .flags = STET_OP_READ_ONLY,
     .run = list_run,
     .render = list_render},
    {.name = "action show",
     .summary = "Show one action: its state, what it read and what it wrote",
     .params = show_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"piece\",\"action\",\"state\"],\"properties\":{\"piece\":{"
                      "\"type\":\"string\"},\"action\":{\"type\":\"string\"},\"state\":{\"type\":\"string\"}}}",
     .examples = show_examples,
     .flags = STET_OP_READ_ONLY,
     .run = show_run,
     .render = show_render},
    {0},
};
