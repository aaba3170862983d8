/* file_store.c - the store "files": what `check` and `gc` do about followed files.
 *
 * `stet gc` stops following files that nothing reads, writes or names any more, such as a header that is no longer
 * included. An output of a removed command stays followed as long as it is what the command wrote: `stet gc --outputs`
 * deletes it.
 */

#include "base/vec.h"
#include "drive/leftover.h"
#include "files/path.h"
#include "operation/op.h"
#include "os/file.h"
#include "os/lock.h"

static char *index_of(stet_project *p) {
    return stet_project_path(p, "local/files/main/index");
}

static bool present(stet_project *p) {
    char *index = index_of(p);
    bool there = stet_file_exists(index);
    stet_free(index);
    return there;
}

/* Nothing to do: every scan compares documents with files and repairs differences. */
static stet_status check(stet_op_ctx *ctx, stet_project *p, bool repair, stet_value *problems, stet_error *err) {
    (void)ctx;
    (void)p;
    (void)repair;
    (void)problems;
    (void)err;
    return STET_OK;
}

static stet_status gc(stet_op_ctx *ctx, stet_project *p, bool dry_run, stet_value *report, stet_error *err) {
    stet_space *s;
    stet_files *f = NULL;
    stet_needs *needs = NULL;
    stet_idles idle = {0};
    STET_VEC(const char *) ids = {0};
    size_t outputs = 0;
    stet_status status = stet_space_open(p, "main", dry_run ? STET_SPACE_READ_ONLY : 0, &s, err);
    if (status != STET_OK)
        return status;
    status = stet_files_open(p, s, &f, err);
    if (status == STET_OK)
        status = stet_needs_open(p, &needs, err);
    if (status == STET_LIMIT) { /* then all of them stay followed */
        stet_error_clear(err);
        status = STET_OK;
    } else if (status == STET_OK) {
        status = stet_idle_find(needs, f, "main", stet_op_cancelled, ctx, &idle, err);
    }
    for (size_t i = 0; i < idle.len; i++) {
        bool output = idle.at[i].path && !idle.at[i].changed; /* `gc --outputs` needs its record */
        outputs += output && !idle.at[i].kept;
        if (!output)
            *stet_vec_add(&ids) = idle.at[i].id;
    }
    if (status == STET_OK && !dry_run && ids.len)
        status = stet_files_forget(f, ids.at, ids.len, err);
    stet_value_put(report, "items", stet_value_int((int64_t)ids.len));
    stet_value_put(report, "bytes", stet_value_int(0));
    stet_value_put(report, "outputs", stet_value_int((int64_t)outputs));
    stet_vec_release(&ids);
    stet_idle_release(&idle);
    stet_needs_close(needs);
    stet_files_close(f);
    stet_space_close(s);
    return status;
}

static void put_path(stet_value *row, const char *path) {
    stet_buf shown = STET_BUF(0);
    stet_path_escape(path, &shown);
    stet_value_put(row, "path", stet_value_string_n(shown.data, shown.len));
    stet_buf_release(&shown);
}

/* Removes the outputs of one space, then their records: a kill in between leaves only records of files that no longer
 * exist. */
static stet_status remove_outputs(stet_op_ctx *ctx, stet_project *p, const char *space, bool dry_run, stet_value *gone,
                                  stet_value *kept, int64_t *bytes, stet_error *err) {
    stet_space *s;
    stet_files *f = NULL;
    stet_needs *needs = NULL;
    stet_idles idle = {0};
    STET_VEC(const char *) ids = {0};
    stet_status status = stet_space_open(p, space, dry_run ? STET_SPACE_READ_ONLY : 0, &s, err);
    if (status != STET_OK)
        return status;
    status = stet_files_open(p, s, &f, err);
    if (status == STET_OK)
        status = stet_needs_open(p, &needs, err);
    if (status == STET_OK)
        status = stet_idle_find(needs, f, space, stet_op_cancelled, ctx, &idle, err);
    for (size_t i = 0; i < idle.len && status == STET_OK; i++) {
        stet_idle *at = &idle.at[i];
        if (!at->path)
            continue;
        if (!at->kept && !dry_run)
            status = stet_idle_remove(needs, f, at, err);
        if (status != STET_OK)
            break;
        stet_value row = stet_value_object();
        put_path(&row, at->path);
        if (at->kept) {
            stet_value_put(&row, "why", stet_value_string(at->kept));
            stet_value_push(kept, row);
        } else {
            stet_value_put(&row, "size", stet_value_int((int64_t)at->look.size));
            stet_value_push(gone, row);
            *bytes += at->look.mode == STET_LOOK_DIRECTORY ? 0 : (int64_t)at->look.size;
            *stet_vec_add(&ids) = at->id;
        }
    }
    if (ids.len && !dry_run) { /* of the files that were removed, whatever failed afterwards */
        stet_error second = STET_ERROR_INIT;
        stet_status forgot = stet_files_forget(f, ids.at, ids.len, &second);
        if (status == STET_OK) {
            status = forgot;
            stet_error_move(err, &second);
        }
        stet_error_clear(&second);
    }
    stet_vec_release(&ids);
    stet_idle_release(&idle);
    stet_needs_close(needs);
    stet_files_close(f);
    stet_space_close(s);
    return status;
}

stet_status stet_outputs_gc(stet_op_ctx *ctx, stet_project *p, bool dry_run, stet_value *report, stet_error *err) {
    stet_names names = {0};
    stet_lock *lock = NULL;
    stet_value gone = stet_value_array(), kept = stet_value_array();
    int64_t bytes = 0;
    char *path = stet_project_path(p, STET_FILES_COMMANDS_LOCK), *dir = stet_file_dirname(path);
    stet_status status = STET_OK;
    if (!dry_run) { /* ensures that no run begins meanwhile */
        status = stet_file_mkdirs(dir, 0755, err);
        if (status == STET_OK)
            status = stet_lock_open(path, STET_LOCK_PLAIN, &lock, err);
        if (status == STET_OK)
            status = stet_files_take_commands(lock, err);
        if (status == STET_BUSY)
            stet_fail_in(err, "commands are running");
    }
    if (status == STET_OK)
        status = stet_space_names(p, &names, err);
    for (size_t i = 0; i < names.len && status == STET_OK; i++) {
        char *relative = stet_asprintf("local/files/%s/index", names.at[i]), *index = stet_project_path(p, relative);
        if (stet_file_exists(index))
            status = remove_outputs(ctx, p, names.at[i], dry_run, &gone, &kept, &bytes, err);
        stet_free(index);
        stet_free(relative);
    }
    stet_value_put(report, "removed", gone);
    stet_value_put(report, "kept", kept);
    stet_value_put(report, "bytes", stet_value_int(bytes));
    stet_lock_close(lock);
    stet_names_release(&names);
    stet_free(path);
    stet_free(dir);
    return status;
}

const stet_store stet_store_files = {
    .name = "files",
    .summary = "Which files are followed as documents",
    .present = present,
    .check = check,
    .gc = gc,
};
