/* sched_rests.c - does a cell rest on one of some pieces?
 *
 * A cell rests on what it consists of, links followed, on what the actions that made that have read, and so on, over all
 * spaces. Records say what was read: ask after a settling. An action without a record may have read anything.
 */

#include <string.h>

#include "scheduler/sched_internal.h"

typedef struct place {
    stet_space *space;
    stet_docname name;
    stet_pathref path;
} place;

typedef struct rests {
    stet_sched *s;
    stet_sched_is_piece *is;
    void *ctx;
    stet_map seen; /* {space, action number} */
    stet_arena arena;
    STET_VEC(place) todo;
    char **found;
} rests;

static void push(rests *r, stet_space *space, const stet_docname *name, stet_pathref path) {
    *stet_vec_add(&r->todo) =
        (place){space,
                {stet_arena_strdup(&r->arena, name->id), stet_arena_strdup(&r->arena, name->scope ? name->scope : "")},
                {stet_arena_strndup(&r->arena, path.bytes, path.len), path.len}};
}

/* "piece:NAME" and "piece:NAME:..." are documents of the piece. */
static bool is_of(rests *r, stet_space *space, const char *id) {
    if (strncmp(id, "piece:", 6) != 0)
        return false;
    char *piece = stet_strndup(id + 6, strcspn(id + 6, ":"));
    bool is = r->is(r->ctx, stet_space_name(space), piece);
    if (is)
        *r->found = piece;
    else
        stet_free(piece);
    return is;
}

/* Adds what an action has read. */
static stet_status visit(rests *r, stet_space *space, int64_t number, stet_error *err) {
    struct {
        stet_space *space;
        int64_t number;
    } key = {space, number};
    bool added;
    stet_action_record a;
    stet_map_have(&r->seen, &key, sizeof key, (stet_slot){.n = 1}, &added);
    if (!added)
        return STET_OK;
    stet_arena arena = STET_ARENA_INIT;
    stet_status status = stet_observe_get(space, number, &arena, &a, err);
    if (status == STET_OK && !a.observed)
        *r->found = stet_strdup("");
    for (size_t i = 0; status == STET_OK && a.observed && i < a.read_count; i++) {
        stet_space *in = space;
        if (a.reads[i].space)
            status = sched_space(r->s, stet_observe_space_name(space, a.reads[i].space, &arena), &in, NULL);
        if (status == STET_OK)
            push(r, in, &a.reads[i].name, a.reads[i].path);
        else /* it does not exist: nothing there is anybody's */
            status = STET_OK;
    }
    stet_arena_release(&arena);
    return status;
}

static stet_status walk(rests *r, stet_error *err) {
    stet_numbers writers = {0};
    stet_status status = STET_OK;
    while (status == STET_OK && !*r->found && r->todo.len > 0) {
        place at = r->todo.at[--r->todo.len];
        int64_t branch = r->s->branch;
        if (is_of(r, at.space, at.name.id))
            break;
        if (at.space != r->s->space)
            status = stet_space_branch(at.space, "", &branch, err);
        stet_vec_clear(&writers);
        if (status == STET_OK)
            status = stet_observe_writers(at.space, branch, &at.name, at.path,
                                          STET_WRITE_KNOWN | STET_WRITE_DECLARED | STET_WRITE_ENVELOPE, &writers, err);
        for (size_t i = 0; i < writers.len && status == STET_OK && !*r->found; i++)
            status = visit(r, at.space, writers.at[i], err);
    }
    stet_numbers_release(&writers);
    return status;
}

stet_status stet_sched_rests_on(stet_sched *s, const stet_docname *name, stet_pathref path, stet_sched_is_piece *is,
                                void *ctx, char **found, stet_error *err) {
    rests r = {.s = s, .is = is, .ctx = ctx, .arena = STET_ARENA_INIT, .found = found};
    stet_reader reader = {.record = true, .space = sched_space, .ctx = s};
    const stet_tx_read_record *at;
    size_t count;
    *found = NULL;
    stet_status status = stet_tx_begin(s->space, s->branch_name, &reader.tx, err);
    if (status != STET_OK)
        return status;
    stet_reader_visit(&reader, name, path);
    stet_tx_reads(reader.tx, &r.arena, &at, &count);
    for (size_t i = 0; i < count; i++)
        push(&r, at[i].space, &at[i].name, at[i].path);
    stet_reader_release(&reader);
    stet_tx_abort(reader.tx);
    status = walk(&r, err);
    if (status != STET_OK) {
        stet_free(*found);
        *found = NULL;
    }
    stet_vec_release(&r.todo);
    stet_map_release(&r.seen);
    stet_arena_release(&r.arena);
    return status;
}
