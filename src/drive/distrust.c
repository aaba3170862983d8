/* distrust.c - in a copy of a project, makes unknown what depends on a piece whose pattern file is invalid.
 *
 * All actions of the piece become unknown, which makes the readers of their outputs stale. Readers of other documents of
 * the piece (a part of its result that no node makes, its argument, its cells) become unknown as well, because the
 * pattern decides what those documents contain.
 */

#include <string.h>

#include "drive/drive_internal.h"

typedef struct piece_actions {
    const stet_piece *p;
    stet_numbers failed;
    stet_arena arena;
    STET_VEC(stet_action_key) keys;
} piece_actions;

static bool add_action(void *ctx, int64_t action, const char *name, size_t name_len, const void *bytes, size_t len) {
    piece_actions *all = ctx;
    (void)bytes, (void)len;
    for (size_t i = 0; i < all->failed.len; i++)
        if (all->failed.at[i] == action)
            return true;
    *stet_vec_add(&all->keys) = stet_piece_action(all->p, stet_arena_strndup(&all->arena, name, name_len));
    return true;
}

/* Makes all actions of the piece unknown, except failed ones, which are not up to date anyway. */
static stet_status distrust_own(stet_space *space, int64_t branch, const stet_piece *p, stet_error *err) {
    piece_actions all = {.p = p, .arena = STET_ARENA_INIT};
    stet_action_filter filter = {.piece = p->doc, .scope = p->scope, .generation = -1};
    stet_status status = stet_observe_failed(space, branch, p->doc, p->scope, &all.failed, err);
    if (status == STET_OK)
        status = stet_observe_scan(space, branch, &filter, add_action, &all, err);
    if (status == STET_OK)
        status = stet_observe_distrust(space, branch, all.keys.at, all.keys.len, STET_REASON_PATTERN, err);
    stet_numbers_release(&all.failed);
    stet_vec_release(&all.keys);
    stet_arena_release(&all.arena);
    return status;
}

/* Is the action already known to be outdated: an action of the piece itself (`here`), or a reader of an output of its
 * nodes? */
static bool is_told(const stet_action_record *r, const stet_piece *p, bool here) {
    size_t len = strlen(p->doc);
    if ((here && stet_piece_has(p, &r->key)) || r->cause.state == STET_STATE_UNKNOWN)
        return true;
    for (size_t i = 0; i < r->read_count; i++)
        if (strcmp(r->reads[i].name.scope, p->scope) == 0 && strncmp(r->reads[i].name.id, p->doc, len) == 0 &&
            strncmp(r->reads[i].name.id + len, ":node:", 6) == 0)
            return true;
    return false;
}

static stet_status distrust_one(stet_space *space, int64_t branch, int64_t action, const stet_piece *p, bool here,
                                stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    stet_status status = stet_observe_get(space, action, &arena, &r, err);
    if (status == STET_OK && !is_told(&r, p, here))
        status = stet_observe_distrust(space, branch, &r.key, 1, STET_REASON_PATTERN, err);
    stet_arena_release(&arena);
    return status;
}

/* Makes the readers of one document unknown, in this space and, for its default branch, in others. */
static stet_status distrust_readers(stet_project *project, stet_space *space, int64_t branch, const stet_piece *p,
                                    const stet_docname *name, stet_error *err) {
    stet_numbers readers = {0};
    stet_arena arena = STET_ARENA_INIT;
    stet_far_reader *far = NULL;
    size_t count = 0;
    stet_status status = stet_observe_readers(space, branch, name, STET_PATH_ROOT, STET_VALUE, &readers, err);
    for (size_t i = 0; i < readers.len && status == STET_OK; i++)
        status = distrust_one(space, branch, readers.at[i], p, true, err);
    if (status == STET_OK && branch == 0)
        status = stet_observe_far_readers(space, name, STET_PATH_ROOT, STET_VALUE, &arena, &far, &count, err);
    for (size_t i = 0; i < count && status == STET_OK; i++) {
        stet_space *other;
        if (stet_space_open(project, far[i].space, STET_SPACE_MUST_EXIST, &other, NULL) != STET_OK)
            continue;
        stet_observe_switch(other, stet_drive_persist(project));
        status = distrust_one(other, 0, far[i].action, p, false, err);
        stet_space_close(other);
    }
    stet_numbers_release(&readers);
    stet_arena_release(&arena);
    return status;
}

stet_status drive_distrust(stet_project *project, stet_space *space, int64_t branch, const stet_piece *p,
                           stet_error *err) {
    enum { PAGE = 1000 };
    stet_docname after;
    size_t len = strlen(p->doc);
    stet_doc_filter filter = {.prefix = p->doc, .limit = PAGE};
    stet_arena arena = STET_ARENA_INIT;
    stet_status status = distrust_own(space, branch, p, err);
    for (bool more = true; more && status == STET_OK;) {
        stet_doc_info *at;
        size_t count;
        status = stet_space_list(space, branch, &filter, &arena, &at, &count, &more, err);
        for (size_t i = 0; i < count && status == STET_OK; i++) {
            const char *part = at[i].name.id + len;
            bool here = strcmp(at[i].name.scope, p->scope) == 0;
            if (here && (!*part || (*part == ':' && strncmp(part, ":node:", 6) != 0)))
                status = distrust_readers(project, space, branch, p, &at[i].name, err);
        }
        if (count > 0)
            after = at[count - 1].name;
        filter.after = &after;
        more = more && count > 0;
    }
    stet_arena_release(&arena);
    return status;
}
