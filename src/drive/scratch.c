/* scratch.c - a temporary copy of a project's spaces and file index. */

#include "drive/scratch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "db/db.h"
#include "os/clock.h"
#include "os/file.h"

#define ATTEMPTS 50
#define TICK_NS  20000000 /* a file changed this recently may change again with the same time stamp */

static int64_t ns(struct timespec t) {
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool same_file(const struct stat *a, const struct stat *b) {
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           ns(a->st_mtim) == ns(b->st_mtim) && ns(a->st_ctim) == ns(b->st_ctim);
}

/* Copies a file if it exists. */
static stet_status copy_if_there(const char *from, const char *to, bool database, stet_error *err) {
    stet_error inner = STET_ERROR_INIT;
    stet_status status = stet_file_remove(to, err);
    if (status != STET_OK)
        return status;
    status = database ? stet_db_copy_file(from, to, &inner) : stet_file_copy(from, to, 0600, false, NULL, &inner);
    if (status == STET_NOT_FOUND) {
        stet_error_clear(&inner);
        status = STET_OK;
    }
    stet_error_move(err, &inner);
    return status;
}

static stet_status copy_space(const char *from, const char *to, stet_error *err) {
    char *log = stet_asprintf("%s-wal", from), *log_to = stet_asprintf("%s-wal", to);
    stet_status status = STET_OK;
    bool good = false;
    for (int i = 0; i < ATTEMPTS && status == STET_OK && !good; i++) {
        struct stat before, after;
        if (stet_sys_stat(from, &before) != 0)
            break; /* a space that was deleted meanwhile */
        if (ns(before.st_mtim) > stet_clock_ns() - TICK_NS) {
            stet_clock_sleep_ms(TICK_NS / 1000000);
            continue;
        }
        status = copy_if_there(from, to, true, err);
        if (status == STET_OK)
            status = copy_if_there(log, log_to, false, err);
        good = status == STET_OK && stet_sys_stat(from, &after) == 0 && same_file(&before, &after);
    }
    if (status == STET_OK && !good && stet_file_exists(from))
        status = stet_fail(err, STET_BUSY, "%s: others write to it all the time", from);
    stet_free(log);
    stet_free(log_to);
    return status;
}

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n > m && strcmp(s + n - m, end) == 0;
}

/* Copies the entries of a directory of local/ that `wanted` accepts. */
static stet_status copy_dir(const stet_project *p, const stet_project *to, const char *relative,
                            bool (*wanted)(const char *name),
                            stet_status (*copy)(const char *from, const char *to, stet_error *err), stet_error *err) {
    char *from_dir = stet_project_path(p, relative), *to_dir = stet_project_path(to, relative);
    stet_names names = {0};
    stet_status status = stet_file_mkdirs(to_dir, 0700, err);
    if (status == STET_OK && stet_file_exists(from_dir))
        status = stet_file_list(from_dir, &names, err);
    for (size_t i = 0; i < names.len && status == STET_OK; i++) {
        if (!wanted(names.at[i]))
            continue;
        char *from = stet_file_join(from_dir, names.at[i]), *at = stet_file_join(to_dir, names.at[i]);
        status = copy(from, at, err);
        stet_free(from);
        stet_free(at);
    }
    stet_names_release(&names);
    stet_free(from_dir);
    stet_free(to_dir);
    return status;
}

static bool is_space(const char *name) {
    return ends_with(name, ".db");
}

static bool is_name(const char *name) {
    return name[0] != '.';
}

/* Copies the index of one space, with the notes of processes that died (files.h). A damaged copy is rebuilt from the
 * documents. */
static stet_status copy_index(const char *from, const char *to, stet_error *err) {
    stet_names names = {0};
    stet_status status = stet_file_mkdirs(to, 0700, err);
    if (status == STET_OK)
        status = stet_file_list(from, &names, err);
    for (size_t i = 0; i < names.len && status == STET_OK; i++) {
        const char *name = names.at[i];
        if (strcmp(name, "index") != 0 && strcmp(name, "index.log") != 0 && strncmp(name, "unsettled", 9) != 0)
            continue;
        char *a = stet_file_join(from, name), *b = stet_file_join(to, name);
        status = copy_if_there(a, b, false, err);
        stet_free(a);
        stet_free(b);
    }
    stet_names_release(&names);
    return status;
}

stet_status stet_scratch_open(const stet_project *p, stet_scratch *out, stet_error *err) {
    const char *temp = getenv("TMPDIR");
    *out = (stet_scratch){.dir = stet_asprintf("%s/stet-dry.XXXXXX", temp && *temp ? temp : "/tmp")};
    stet_status status = STET_OK;
    if (!mkdtemp(out->dir)) {
        status = stet_fail_errno(err, errno, "cannot make a directory for a dry run (%s)", out->dir);
        stet_free(out->dir);
        out->dir = NULL;
    }
    if (status == STET_OK)
        status = stet_project_open_beside(p, out->dir, &out->project, err);
    if (status == STET_OK)
        status = copy_dir(p, out->project, "local/files", is_name, copy_index, err);
    if (status == STET_OK)
        status = copy_dir(p, out->project, "local/spaces", is_space, copy_space, err);
    if (status != STET_OK)
        stet_scratch_close(out);
    return status;
}

void stet_scratch_close(stet_scratch *s) {
    stet_project_close(s->project);
    if (s->dir && stet_file_remove_tree(s->dir, NULL) != STET_OK) {
        /* the copy stays in the directory for temporary files */
    }
    stet_free(s->dir);
    *s = (stet_scratch){0};
}
