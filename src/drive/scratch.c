/* scratch.c - a temporary copy of a project's spaces and file index. */

#include "drive/scratch.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
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

static stet_status make_dir(stet_scratch *out, stet_error *err) {
    const char *temp = getenv("TMPDIR");
    *out = (stet_scratch){.dir = stet_asprintf("%s/stet-dry.XXXXXX", temp && *temp ? temp : "/tmp")};
    if (mkdtemp(out->dir))
        return STET_OK;
    stet_fail_errno(err, errno, "cannot make a temporary directory (%s)", out->dir);
    stet_free(out->dir);
    out->dir = NULL;
    return err->status;
}

/* One directory after the other, without recursion. */
typedef struct tree_copy {
    const char *from, *to; /* absolute */
    struct stat skip;      /* the directory of the copy, which may lie in the project */
    STET_VEC(char *) dirs; /* still to be copied: relative, "" is the project */
} tree_copy;

/* A link keeps its text, unless that leads into the project by its absolute path. */
static stet_status copy_link(const tree_copy *t, const char *from, const char *to, stet_error *err) {
    char target[PATH_MAX], *real = NULL, *moved = NULL;
    ssize_t n = readlink(from, target, sizeof target - 1);
    size_t len = strlen(t->from);
    if (n < 0)
        return stet_fail_errno(err, errno, "cannot read the link %s", from);
    target[n] = 0;
    if (target[0] == '/') {
        if (stet_file_realpath(target, &real, NULL) != STET_OK)
            real = stet_strdup(target); /* it leads to nothing yet */
        if (strncmp(real, t->from, len) == 0 && (!real[len] || real[len] == '/'))
            moved = stet_asprintf("%s%s", t->to, real + len);
    }
    stet_status status =
        symlink(moved ? moved : target, to) == 0 ? STET_OK : stet_fail_errno(err, errno, "cannot make the link %s", to);
    stet_free(moved);
    stet_free(real);
    return status;
}

static stet_status copy_entry(tree_copy *t, const char *relative, stet_error *err) {
    char *from = stet_file_join(t->from, relative), *to = stet_file_join(t->to, relative);
    struct stat st;
    stet_status status = STET_OK;
    stet_error inner = STET_ERROR_INIT;
    if (stet_sys_lstat(from, &st) != 0) {
        /* it was removed meanwhile */
    } else if (S_ISDIR(st.st_mode)) {
        if ((st.st_ino != t->skip.st_ino || st.st_dev != t->skip.st_dev) && !stet_project_is_own(from)) {
            status = stet_file_mkdirs(to, (st.st_mode & 0777) | 0700, err);
            *stet_vec_add(&t->dirs) = stet_strdup(relative);
        }
    } else if (S_ISLNK(st.st_mode)) {
        status = copy_link(t, from, to, err);
    } else if (S_ISREG(st.st_mode)) {
        status = stet_file_copy(from, to, st.st_mode & 0777, false, NULL, &inner);
        if (status == STET_NOT_FOUND)
            status = STET_OK;
        else
            stet_error_move(err, &inner);
    }
    stet_error_clear(&inner);
    stet_free(from);
    stet_free(to);
    return status;
}

static stet_status copy_tree(tree_copy *t, stet_error *err) {
    stet_status status = STET_OK;
    *stet_vec_add(&t->dirs) = stet_strdup("");
    while (t->dirs.len > 0) {
        char *dir = t->dirs.at[--t->dirs.len], *full = *dir ? stet_file_join(t->from, dir) : stet_strdup(t->from);
        stet_names names = {0};
        if (status == STET_OK)
            status = stet_file_list_if_there(full, &names, err);
        for (size_t i = 0; i < names.len && status == STET_OK; i++) {
            char *relative = *dir ? stet_file_join(dir, names.at[i]) : stet_strdup(names.at[i]);
            if (strcmp(relative, ".stet") != 0)
                status = copy_entry(t, relative, err);
            stet_free(relative);
        }
        stet_names_release(&names);
        stet_free(full);
        stet_free(dir);
    }
    stet_vec_release(&t->dirs);
    return status;
}

stet_status stet_scratch_open_tree(const stet_project *p, stet_scratch *out, stet_error *err) {
    char *real = NULL, *to = NULL;
    bool created;
    stet_status status = make_dir(out, err);
    if (status == STET_OK)
        status = stet_file_realpath(out->dir, &real, err);
    if (status == STET_OK) {
        const char *name = stet_file_basename(stet_project_root(p));
        to = stet_file_join(real, *name ? name : "project");
        status = stet_project_init(to, &created, err);
    }
    tree_copy t = {.from = stet_project_root(p), .to = to};
    if (status == STET_OK && stet_sys_stat(real, &t.skip) != 0)
        status = stet_fail_errno(err, errno, "cannot look at %s", real);
    if (status == STET_OK)
        status = copy_tree(&t, err);
    if (status == STET_OK)
        status = stet_project_open(to, &out->project, err);
    if (status ==
        STET_OK) /* it says what is followed; the files themselves are looked at anew, as they have other inodes */
        status = copy_dir(p, out->project, "local/files", is_name, copy_index, err);
    if (status == STET_OK)
        status = copy_dir(p, out->project, "local/spaces", is_space, copy_space, err);
    free(real);
    stet_free(to);
    if (status != STET_OK)
        stet_scratch_close(out);
    return status;
}

stet_status stet_scratch_open(const stet_project *p, stet_scratch *out, stet_error *err) {
    stet_status status = make_dir(out, err);
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
