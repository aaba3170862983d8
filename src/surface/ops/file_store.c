/* The files that are followed, as a store: `stet gc` stops following what nobody reads, writes or names any more, such
 * as a header that is included no longer. */
#include <string.h>

#include "base/vec.h"
#include "drive/lookout.h"
#include "files/glob.h"
#include "files/path.h"
#include "graph/piece.h"
#include "memory/observe.h"
#include "os/file.h"
#include "surface/op.h"

#define BRANCHES 1000 /* with more of them nothing is forgotten */

static char *index_of(stet_project *p) {
    return stet_project_path(p, "local/files/main/index");
}

static bool present(stet_project *p) {
    char *index = index_of(p);
    bool there = stet_file_exists(index);
    stet_free(index);
    return there;
}

/* Documents and looks are compared by every scan, and what differs is mended there: nothing is left to check. */
static stet_status check(stet_op_ctx *ctx, stet_project *p, bool repair, stet_value *problems, stet_error *err) {
    (void)ctx;
    (void)p;
    (void)repair;
    (void)problems;
    (void)err;
    return STET_OK;
}

static void name(void *ctx, const char *id) {
    stet_map_put(ctx, id, strlen(id), (stet_slot){.n = 1});
}

/* Does any action read or write it? */
static stet_status is_used(stet_space *s, int64_t branch, const char *id, bool *used, stet_error *err) {
    const unsigned surfaces = STET_WRITE_KNOWN | STET_WRITE_DECLARED | STET_WRITE_ENVELOPE;
    stet_numbers found = {0};
    stet_docname doc = {id, ""};
    stet_status status = stet_observe_readers(s, branch, &doc, STET_PATH_ROOT, STET_VALUE, &found, err);
    if (status == STET_OK && found.len == 0)
        status = stet_observe_writers(s, branch, &doc, STET_PATH_ROOT, surfaces, &found, err);
    *used |= found.len > 0;
    stet_numbers_release(&found);
    return status;
}

/* Does a pattern that somebody names match it? Then it is followed again by the next scan. */
static bool is_matched(const stet_map *named, const char *path) {
    const void *id;
    size_t len, skip = strlen(STET_GLOB_PREFIX);
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(named, &i, &id, &len, &slot);) {
        stet_buf pattern = STET_BUF(0);
        bool match = len > skip && memcmp(id, STET_GLOB_PREFIX, skip) == 0 &&
                     stet_path_unescape((const char *)id + skip, len - skip, &pattern) &&
                     stet_glob_match(stet_buf_cstr(&pattern), path);
        stet_buf_release(&pattern);
        if (match)
            return true;
    }
    return false;
}

static stet_status is_needed(stet_space *s, const stet_branch_info *branches, size_t count, const stet_map *named,
                             const char *id, bool *needed, stet_error *err) {
    stet_status status = STET_OK;
    *needed = stet_map_get(named, id, strlen(id)) != NULL;
    for (size_t i = 0; i < count && status == STET_OK && !*needed; i++)
        status = is_used(s, branches[i].branch, id, needed, err);
    char *path = *needed ? NULL : stet_file_of_id(id, strlen(id));
    *needed |= path && is_matched(named, path);
    stet_free(path);
    return status;
}

static stet_status gc(stet_op_ctx *ctx, stet_project *p, bool dry_run, stet_value *report, stet_error *err) {
    stet_space *s;
    stet_files *f = NULL;
    stet_arena arena = STET_ARENA_INIT;
    stet_branch_info *branches = NULL;
    size_t count = 0;
    stet_map named = {0};
    STET_VEC(char *) idle = {0};
    stet_status status = stet_space_open(p, "main", dry_run ? STET_SPACE_READ_ONLY : 0, &s, err);
    if (status != STET_OK)
        return status;
    status = stet_files_open(p, s, &f, err);
    if (status == STET_OK)
        status = stet_space_branches(s, NULL, false, BRANCHES, &arena, &branches, &count, err);
    bool all = count < BRANCHES;
    for (size_t i = 0; i < count && status == STET_OK && all; i++)
        status = stet_lookout_names_all(s, branches[i].branch, name, &named, err);
    char *id;
    stet_look look;
    for (size_t i = 0; status == STET_OK && all && !stet_files_was_lost(f) && stet_files_at(f, i, &id, &look); i++) {
        bool needed = true;
        if (id && ctx->cancelled(ctx))
            status = stet_fail(err, STET_CANCELLED, "interrupted");
        if (id && status == STET_OK)
            status = is_needed(s, branches, count, &named, id, &needed, err);
        if (needed)
            stet_free(id);
        else
            *stet_vec_add(&idle) = id;
    }
    if (status == STET_OK && !dry_run && idle.len)
        status = stet_files_forget(f, (const char *const *)idle.at, idle.len, err);
    stet_put(report, "items", stet_int((int64_t)idle.len));
    stet_put(report, "bytes", stet_int(0));
    for (size_t i = 0; i < idle.len; i++)
        stet_free(idle.at[i]);
    stet_vec_release(&idle);
    stet_map_release(&named);
    stet_arena_release(&arena);
    stet_files_close(f);
    stet_space_close(s);
    return status;
}

const stet_store stet_store_files = {
    .name = "files",
    .summary = "Which files are followed as documents",
    .present = present,
    .check = check,
    .gc = gc,
};
