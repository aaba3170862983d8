/* memo.c - the record of past runs, over the observations of the space.
 *
 * A record that is not durable (`[scheduler] persist = false`) knows and stores nothing: each function says so first.
 */

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "db/db.h"
#include "scheduler/memo.h"
#include "scheduler/standing.h"

void stet_memo_close(stet_memo *x) {
    free(x);
}

bool stet_memo_hold(stet_space *s) {
    stet_db *db = stet_space_db(s);
    return !stet_db_in_transaction(db) && stet_db_begin_read(db, NULL) == STET_OK;
}

void stet_memo_let_go(stet_space *s, bool held) {
    if (held && stet_db_in_transaction(stet_space_db(s)))
        stet_db_rollback(stet_space_db(s));
}

int64_t stet_memo_version(stet_space *s) {
    return stet_db_data_version(stet_space_db(s));
}

/* Before anything is called standing: marks that are owed, and actions without a record. */
static stet_status be_current(stet_memo *x, stet_error *err) {
    stet_status status = stet_observe_catch_up(x->space, err);
    return status == STET_OK ? stet_standing_adopt(x->space, x->branch, err) : status;
}

typedef struct visiting {
    stet_memo_visit_pending visit;
    void *ctx;
} visiting;

static stet_status visit_mark(void *ctx, int64_t number, const stet_docname *piece, const char *action,
                              stet_action_state state, stet_error *err) {
    const visiting *v = ctx;
    char *key = *piece->scope ? stet_piece_key_of(piece) : NULL;
    bool other = *piece->scope ? !key : strchr(piece->id, '@') != NULL; /* not the name of a piece */
    stet_status status = v->visit(v->ctx, number, other ? NULL : key ? key : piece->id, action, state, err);
    stet_free(key);
    return status;
}

stet_status stet_memo_pending(stet_memo *x, int64_t since, int64_t after, size_t limit, stet_memo_visit_pending visit,
                              void *ctx, stet_error *err) {
    if (!x->durable)
        return STET_OK;
    visiting v = {visit, ctx};
    stet_status status = be_current(x, err);
    return status == STET_OK ? stet_observe_each_mark(x->space, x->branch, since, after, limit, visit_mark, &v, err)
                             : status;
}

stet_status stet_memo_count(stet_memo *x, const char *piece, size_t *out, stet_error *err) {
    *out = 0;
    if (!x->durable)
        return STET_OK;
    stet_piece_id id = {.name = {NULL, NULL}};
    if (piece)
        stet_piece_id_of(piece, &id);
    return stet_observe_count_marks(x->space, x->branch, id.name.id, id.name.scope, out, err);
}

stet_status stet_memo_survey(stet_memo *x, stet_hash demand, stet_survey *out, stet_error *err) {
    if (!x->durable)
        return STET_NOT_FOUND;
    stet_status status = be_current(x, err);
    return status == STET_OK ? stet_observe_survey(x->space, x->branch, demand, out, err) : status;
}

stet_status stet_memo_surveyed(stet_memo *x, stet_hash demand, int64_t version, size_t left, stet_error *err) {
    if (!x->durable)
        return STET_OK;
    return stet_observe_surveyed(x->space, x->branch, demand, version, (int64_t)left, err);
}

stet_status stet_memo_any(stet_memo *x, bool *out, stet_error *err) {
    *out = false;
    if (!x->durable)
        return STET_OK;
    stet_status status = be_current(x, err);
    return status == STET_OK ? stet_observe_any(x->space, x->branch, NULL, NULL, out, err) : status;
}

stet_status stet_memo_readers(stet_memo *x, const char *space, const stet_docname *name, stet_pathref path,
                              stet_change_kind kind, stet_memo_visit visit, void *ctx, bool *complete,
                              stet_error *err) {
    stet_numbers found = {0};
    *complete = space || !x->durable; /* changes in another space come as marks, pushed by that space */
    if (*complete)
        return STET_OK;
    stet_status status = stet_observe_readers(x->space, x->branch, name, path, kind, &found, err);
    if (status == STET_OK)
        for (size_t i = 0; i < found.len && status == STET_OK; i++)
            status = visit(ctx, found.at[i], err);
    stet_numbers_release(&found);
    return status;
}

stet_status stet_memo_failed(stet_memo *x, stet_numbers *out, stet_error *err) {
    if (!x->durable)
        return STET_OK;
    return stet_observe_failed(x->space, x->branch, NULL, NULL, out, err);
}

static const stet_memo_cell *cells(stet_arena *arena, const stet_observed *at, size_t count) {
    stet_memo_cell *out = stet_arena_alloc(arena, (count ? count : 1) * sizeof *out);
    for (size_t i = 0; i < count; i++)
        out[i] = (stet_memo_cell){at[i].space, at[i].name, at[i].path, at[i].kind};
    return out;
}

static void describe(const stet_action_record *r, stet_arena *arena, stet_memo_action *out) {
    *out = (stet_memo_action){.number = r->action,
                              .piece = r->key.piece,
                              .action = r->key.action,
                              .observed = r->observed,
                              .failed = r->observed && r->failed,
                              .state = r->cause.state,
                              .reason = r->cause.reason,
                              .implementation = r->implementation,
                              .runtime = r->runtime,
                              .generation = r->generation,
                              .observed_at = r->observed_at};
    if (r->observed) {
        out->reads = cells(arena, r->reads, r->read_count);
        out->read_count = r->read_count;
        out->writes = cells(arena, r->known, r->known_count);
        out->write_count = r->known_count;
    }
}

stet_status stet_memo_get(stet_memo *x, int64_t number, stet_arena *arena, stet_memo_action *out, stet_error *err) {
    if (!x->durable)
        return stet_fail(err, STET_NOT_FOUND, "nothing is recorded of action %lld", (long long)number);
    stet_action_record r;
    stet_status status = stet_observe_brief(x->space, number, arena, &r, err);
    if (status != STET_OK)
        return status;
    describe(&r, arena, out);
    char *key = *r.key.scope ? stet_piece_key_of(&(stet_docname){r.key.piece, r.key.scope}) : NULL;
    if (*r.key.scope ? !key : strchr(r.key.piece, '@') != NULL)
        return stet_fail(err, STET_NOT_FOUND, "\"%s\" of scope \"%s\" is no piece", r.key.piece, r.key.scope);
    if (key)
        out->piece = stet_arena_strdup(arena, key);
    stet_free(key);
    return STET_OK;
}

stet_status stet_memo_load(stet_memo *x, const char *piece, const char *action, stet_arena *arena,
                           stet_memo_action *out, stet_error *err) {
    if (!x->durable)
        return stet_fail(err, STET_NOT_FOUND, "%s: nothing is recorded of %s", piece, action);
    stet_piece_id id;
    stet_piece_id_of(piece, &id);
    stet_action_key key = {.piece = id.name.id, .scope = id.name.scope, .action = action};
    int64_t number;
    stet_status status = stet_observe_number(x->space, x->branch, &key, &number, err);
    return status == STET_OK ? stet_memo_get(x, number, arena, out, err) : status;
}

stet_status stet_memo_distrust(stet_memo *x, const char *piece, const char *action, stet_reason reason,
                               stet_error *err) {
    if (!x->durable)
        return STET_OK;
    stet_piece_id id;
    stet_piece_id_of(piece, &id);
    stet_action_key key = {id.name.id, id.name.scope, action};
    return stet_observe_distrust(x->space, x->branch, &key, 1, reason, err);
}

stet_status stet_memo_turn_over(stet_memo *x, stet_tx *tx, const char *piece, stet_turnover t, stet_error *err) {
    if (!x->durable)
        return STET_OK;
    stet_piece_id id;
    stet_piece_id_of(piece, &id);
    t.piece = id.name.id;
    t.scope = id.name.scope;
    return stet_observe_turn_over(tx, &t, err);
}

static bool stop(void *ctx, int64_t action, const char *name, size_t name_len, const void *bytes, size_t len) {
    (void)action, (void)name, (void)name_len, (void)bytes, (void)len;
    *(bool *)ctx = true;
    return false;
}

stet_status stet_memo_knows(stet_memo *x, const char *piece, bool *out, stet_error *err) {
    stet_piece_id id;
    stet_piece_id_of(piece, &id);
    stet_action_filter one = {.piece = id.name.id, .scope = id.name.scope, .generation = -1, .limit = 1};
    *out = !x->durable; /* as much as it ever will be */
    if (!x->durable)
        return STET_OK;
    return stet_observe_scan(x->space, x->branch, &one, stop, out, err);
}

stet_memo *stet_memo_open(stet_space *s, int64_t branch, bool durable) {
    stet_memo *x = stet_alloc_zero(sizeof *x);
    *x = (stet_memo){s, branch, durable};
    return x;
}
