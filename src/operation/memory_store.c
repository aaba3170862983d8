/* memory_store.c - the store "memory": every space of the project, its documents and what is recorded about actions. */

#include <string.h>

#include "graph/piece.h"
#include "memory/observe.h"
#include "operation/op.h"
#include "os/clock.h"
#include "os/file.h"
#include "scheduler/sched.h"

static bool present(stet_project *p) {
    stet_names names = {0};
    bool some = stet_space_names(p, &names, NULL) == STET_OK && names.len > 0;
    stet_names_release(&names);
    return some;
}

typedef stet_status (*check_fn)(stet_space *s, bool repair, stet_buf *problems, size_t *found, size_t *repaired,
                                stet_error *err);

static stet_status check_with(check_fn fn, stet_space *s, bool repair, stet_value *problems, stet_error *err) {
    stet_buf lines = STET_BUF(1 << 20);
    size_t found, repaired;
    stet_status st = fn(s, repair, &lines, &found, &repaired, err);
    if (st == STET_OK)
        stet_store_problems(problems, "memory", stet_space_path(s), &lines, found && repaired != 0);
    stet_buf_release(&lines);
    return st;
}

/* A file that can't be opened because of its content is a problem of the space. One that can't be reached fails the
 * check. */
static stet_status check_one(stet_project *p, const char *name, bool repair, stet_value *problems, stet_error *err) {
    stet_error why = STET_ERROR_INIT;
    stet_space *s = NULL;
    stet_status st =
        stet_space_open(p, name, (repair ? STET_SPACE_MUST_EXIST : STET_SPACE_READ_ONLY) | STET_SPACE_CARE, &s, &why);
    if (st == STET_OK)
        st = check_with(stet_space_check, s, repair, problems, &why);
    if (st == STET_OK)
        st = check_with(stet_observe_check, s, repair, problems, &why);
    if (st == STET_OK)
        st = check_with(stet_children_check, s, repair, problems, &why);
    stet_space_close(s);
    if (st == STET_CORRUPT || st == STET_UNSUPPORTED || st == STET_INVALID) {
        stet_store_problem(problems, "memory", name, why.message, strlen(why.message), false);
        stet_error_clear(&why);
        return STET_OK;
    }
    if (st != STET_OK)
        stet_error_move(err, &why);
    return st;
}

static stet_status check(stet_op_ctx *ctx, stet_project *p, bool repair, stet_value *problems, stet_error *err) {
    stet_names names = {0};
    stet_status st = stet_space_names(p, &names, err);
    for (size_t i = 0; i < names.len && st == STET_OK; i++) {
        if (ctx->cancelled(ctx))
            st = stet_fail(err, STET_CANCELLED, "interrupted");
        ctx->progress(ctx, (int64_t)i, (int64_t)names.len, names.at[i]);
        if (st == STET_OK)
            st = check_one(p, names.at[i], repair, problems, err);
    }
    stet_names_release(&names);
    return st;
}

/* Removes documents of events older than [scheduler] event_days: such an event is not expected to be sent again. */
static stet_status gc_events(stet_project *p, stet_space *s, bool dry_run, int64_t *gone, stet_error *err) {
    stet_value days = stet_project_setting(p, "scheduler.event_days");
    int64_t keep = stet_value_type(days) == STET_TYPE_INT && stet_value_as_int(days) > 0 ? stet_value_as_int(days)
                                                                                         : STET_EVENT_DAYS;
    int64_t before = stet_clock_ms() - (keep < 100000 ? keep : 100000) * 86400000;
    stet_arena arena = STET_ARENA_INIT;
    stet_branch_info *at;
    size_t count = 0;
    stet_status st = stet_space_branches(s, NULL, false, 100000, &arena, &at, &count, err);
    for (size_t i = 0; i < count && st == STET_OK; i++) {
        size_t n = 0;
        st = stet_sched_forget_events(s, at[i].name, before, dry_run, &n, err);
        *gone += (int64_t)n;
    }
    stet_arena_release(&arena);
    return st;
}

/* Is the node of an action missing from the graph of its piece? Earlier versions replaced the graph before they forgot
 * its removed nodes: a crash in between left such actions. */
typedef struct last_piece {
    int64_t branch;
    stet_piece *piece;
} last_piece;

static bool node_gone(void *ctx, stet_space *s, int64_t branch, const stet_action_key *key, int64_t generation) {
    last_piece *last = ctx;
    if (!last->piece || last->branch != branch || !stet_piece_has(last->piece, key)) {
        char *name = stet_piece_of_action(key);
        stet_piece_free(last->piece);
        last->piece = NULL;
        last->branch = branch;
        stet_status loaded = name ? stet_piece_load(s, branch, name, -1, &last->piece, NULL) : STET_NOT_FOUND;
        stet_free(name);
        if (loaded != STET_OK)
            return false;
    }
    stet_value row;
    if (generation >= last->piece->generation)
        return false;
    stet_status st = stet_piece_row(s, branch, last->piece, key->action, &row, NULL);
    if (st == STET_OK)
        stet_value_release(row);
    return st == STET_NOT_FOUND;
}

static stet_status gc_one(stet_project *p, const char *name, bool dry_run, stet_value *report, stet_error *err) {
    stet_space *s = NULL;
    stet_space_gc_report r = {0};
    int64_t rows = 0, events = 0;
    last_piece last = {0};
    stet_status st = stet_space_open(p, name, dry_run ? STET_SPACE_READ_ONLY : STET_SPACE_MUST_EXIST, &s, err);
    if (st == STET_OK)
        st = gc_events(p, s, dry_run, &events, err);
    if (st == STET_OK)
        st = stet_observe_gc(s, &(stet_observe_gc_opts){dry_run, node_gone, &last}, &rows, err);
    stet_piece_free(last.piece);
    if (st == STET_OK)
        st = stet_space_gc(s, dry_run, &r, err);
    stet_space_close(s);
    if (st != STET_OK)
        return st;
    int64_t items = r.branches + r.commits + r.snapshots + r.documents + rows + events;
    stet_value_put(report, "items", stet_value_int(stet_value_as_int(stet_value_get(*report, "items")) + items));
    stet_value_put(report, "bytes",
                   stet_value_int(stet_value_as_int(stet_value_get(*report, "bytes")) + (r.bytes > 0 ? r.bytes : 0)));
    return STET_OK;
}

static stet_status gc(stet_op_ctx *ctx, stet_project *p, bool dry_run, stet_value *report, stet_error *err) {
    stet_names names = {0};
    stet_value_put(report, "items", stet_value_int(0));
    stet_value_put(report, "bytes", stet_value_int(0));
    stet_status st = stet_space_names(p, &names, err);
    for (size_t i = 0; i < names.len && st == STET_OK; i++) {
        if (ctx->cancelled(ctx))
            st = stet_fail(err, STET_CANCELLED, "interrupted");
        if (st == STET_OK)
            st = gc_one(p, names.at[i], dry_run, report, err);
    }
    stet_names_release(&names);
    return st;
}

const stet_store stet_store_memory = {
    .name = "memory",
    .summary = "Spaces of documents, and what is recorded of actions",
    .present = present,
    .check = check,
    .gc = gc,
};
