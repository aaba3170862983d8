/* dir.c - directories: making, syncing, listing and removing them. Part of file.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "os/clock.h"
#include "os/file.h"

enum {
    NAMES_MAX = 16 * 1024 * 1024, /* names in one directory */
    OPEN_LEVELS = 64,             /* directories held open while a tree is removed */
};

stet_status stet_file_sync_dir(const char *path, stet_error *err) {
    int fd = stet_sys_open(path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return stet_fail_errno(err, errno, "%s: cannot open the directory", path);
    stet_status status = STET_OK;
    /* EINVAL: this file system does not sync directories (some FUSE file systems), and there is no better call. */
    if (stet_sys_fsync(fd) != 0 && errno != EINVAL)
        status = stet_fail_errno(err, errno, "%s: cannot sync the directory", path);
    if (stet_sys_close(fd) != 0 && status == STET_OK)
        status = stet_fail_errno(err, errno, "%s: cannot close the directory", path);
    return status;
}

stet_status stet_file_sync_parent(const char *path, stet_error *err) {
    char *dir = stet_file_dirname(path);
    stet_status status = stet_file_sync_dir(dir, err);
    stet_free(dir);
    return status;
}

static stet_status make_one(const char *path, mode_t mode, stet_error *err) {
    if (stet_sys_mkdir(path, mode) != 0) {
        if (errno != EEXIST)
            return stet_fail_errno(err, errno, "%s: cannot make the directory", path);
        struct stat st;
        if (stet_sys_stat(path, &st) != 0)
            return stet_fail_errno(err, errno, "%s: cannot stat", path);
        if (!S_ISDIR(st.st_mode))
            return stet_fail(err, STET_INVALID, "%s: exists and is not a directory", path);
        return STET_OK; /* another process made it at the same time; it syncs the parent, but maybe not yet */
    }
    return stet_file_sync_parent(path, err);
}

stet_status stet_file_mkdirs(const char *path, mode_t mode, stet_error *err) {
    struct stat st;
    if (stet_sys_stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return STET_OK;
        return stet_fail(err, STET_INVALID, "%s: exists and is not a directory", path);
    }
    if (errno != ENOENT)
        return stet_fail_errno(err, errno, "%s: cannot stat", path);
    size_t len = strlen(path);
    if (len == 0)
        return stet_fail(err, STET_INVALID, "the name of a directory is empty");
    char *copy = stet_strdup(path);
    stet_status status = STET_OK;
    /* Creates each prefix that ends before a slash, from the left. A prefix that exists costs one stat. */
    for (size_t i = 1; i <= len && status == STET_OK; i++) {
        if (copy[i] != '/' && copy[i] != 0)
            continue;
        if (copy[i - 1] == '/')
            continue;
        char saved = copy[i];
        copy[i] = 0;
        if (stet_sys_stat(copy, &st) != 0)
            status = errno == ENOENT ? make_one(copy, mode, err) : stet_fail_errno(err, errno, "%s: cannot stat", copy);
        else if (!S_ISDIR(st.st_mode))
            status = stet_fail(err, STET_INVALID, "%s: exists and is not a directory", copy);
        copy[i] = saved;
    }
    stet_free(copy);
    return status;
}

stet_status stet_file_remove(const char *path, stet_error *err) {
    if (stet_sys_unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR)
        return STET_OK;
    return stet_fail_errno(err, errno, "%s: cannot remove", path);
}

bool stet_file_exists(const char *path) {
    struct stat st;
    return stet_sys_lstat(path, &st) == 0;
}

/* Removes a tree with a stack of open directories. Each is reached by openat without following a symlink, so that
 * nobody can lead the removal elsewhere by replacing a directory with a symlink. The stack is bounded: a directory
 * deeper than OPEN_LEVELS is first moved up to the root of the tree, and removed from there later. */
typedef struct level {
    DIR *dir;
    char *name; /* in the level above */
} level;

static bool is_dots(const char *name) {
    return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0));
}

static stet_status enter(level *stack, size_t *depth, int parent, const char *name, const char *root, stet_error *err) {
    int fd = stet_sys_openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0)
        return stet_fail_errno(err, errno, "%s: cannot open %s to remove it", root, name);
    /* The owner may remove a read-only directory (caches are often read-only). If chmod fails, the unlink below reports
     * it. */
    struct stat st;
    if (fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700 && fchmod(fd, (st.st_mode | 0700) & 07777) != 0)
        errno = 0;
    DIR *dir = fdopendir(fd);
    if (!dir) {
        stet_status status = stet_fail_errno(err, errno, "%s: cannot list %s", root, name);
        stet_sys_close(fd);
        return status;
    }
    stack[*depth] = (level){dir, stet_strdup(name)};
    ++*depth;
    return STET_OK;
}

static stet_status empty_tree(level *stack, size_t *depth, const char *root, stet_error *err) {
    while (*depth > 0) {
        level *top = &stack[*depth - 1];
        int fd = dirfd(top->dir);
        struct dirent *e = stet_sys_readdir(top->dir);
        if (!e) {
            if (errno != 0)
                return stet_fail_errno(err, errno, "%s: cannot list %s", root, top->name);
            if (*depth == 1)
                return STET_OK;
            level gone = *top;
            --*depth;
            closedir(gone.dir);
            int r = stet_sys_unlinkat(dirfd(stack[*depth - 1].dir), gone.name, AT_REMOVEDIR);
            int saved = errno;
            /* Another process added a file, or readdir skipped a name while others were removed: read the directory
             * again. */
            if (r != 0 && saved != ENOENT) {
                stet_status status = stet_fail_errno(err, saved, "%s: cannot remove %s", root, gone.name);
                stet_free(gone.name);
                return status;
            }
            stet_free(gone.name);
            continue;
        }
        if (is_dots(e->d_name))
            continue;
        bool is_dir = e->d_type == DT_DIR;
        if (e->d_type == DT_UNKNOWN) {
            struct stat st;
            is_dir = fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
        }
        if (!is_dir) {
            if (stet_sys_unlinkat(fd, e->d_name, 0) != 0 && errno != ENOENT)
                return stet_fail_errno(err, errno, "%s: cannot remove %s", root, e->d_name);
        } else if (*depth < OPEN_LEVELS) {
            stet_status status = enter(stack, depth, fd, e->d_name, root, err);
            if (status != STET_OK)
                return status;
        } else {
            char up[64], unique[37];
            stet_uuid(unique);
            snprintf(up, sizeof up, ".stet-removing.%s", unique);
            if (renameat(fd, e->d_name, dirfd(stack[0].dir), up) != 0)
                return stet_fail_errno(err, errno, "%s: cannot move %s up to remove it", root, e->d_name);
        }
    }
    return STET_OK;
}

/* Empties a directory, again if other directories were moved up into it meanwhile, and removes it. */
static stet_status empty_and_remove(const char *path, stet_error *err) {
    for (int pass = 0;; pass++) {
        level stack[OPEN_LEVELS];
        size_t depth = 0;
        stet_status status = enter(stack, &depth, AT_FDCWD, path, path, err);
        if (status == STET_OK)
            status = empty_tree(stack, &depth, path, err);
        while (depth > 0) {
            depth--;
            closedir(stack[depth].dir);
            stet_free(stack[depth].name);
        }
        if (status != STET_OK)
            return status;
        if (stet_sys_rmdir(path) == 0 || errno == ENOENT)
            return STET_OK;
        if ((errno != ENOTEMPTY && errno != EEXIST) || pass == 1000)
            return stet_fail_errno(err, errno, "%s: cannot remove", path);
    }
}

stet_status stet_file_remove_tree(const char *path, stet_error *err) {
    struct stat st;
    if (stet_sys_lstat(path, &st) != 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return STET_OK;
        return stet_fail_errno(err, errno, "%s: cannot stat", path);
    }
    return S_ISDIR(st.st_mode) ? empty_and_remove(path, err) : stet_file_remove(path, err);
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

stet_status stet_file_list(const char *path, stet_names *out, stet_error *err) {
    DIR *dir = stet_sys_opendir(path);
    if (!dir)
        return stet_fail_errno(err, errno, "%s: cannot open the directory", path);
    stet_names names = {0};
    stet_status status = STET_OK;
    struct dirent *e;
    while (status == STET_OK && (e = stet_sys_readdir(dir))) {
        if (is_dots(e->d_name))
            continue;
        if (names.len == NAMES_MAX)
            status = stet_fail(err, STET_LIMIT, "%s: more than %d names in one directory", path, NAMES_MAX);
        else
            *stet_vec_add(&names) = stet_strdup(e->d_name);
    }
    if (status == STET_OK && errno != 0)
        status = stet_fail_errno(err, errno, "%s: cannot list", path);
    closedir(dir);
    if (status != STET_OK) {
        stet_names_release(&names);
        return status;
    }
    if (names.len > 1)
        qsort(names.at, names.len, sizeof *names.at, by_bytes);
    *out = names;
    return STET_OK;
}

stet_status stet_file_list_if_there(const char *path, stet_names *out, stet_error *err) {
    stet_error why = STET_ERROR_INIT;
    stet_status status = stet_file_list(path, out, &why);
    if (status == STET_NOT_FOUND) {
        stet_error_clear(&why);
        return STET_OK;
    }
    stet_error_move(err, &why);
    return status;
}

void stet_names_release(stet_names *names) {
    for (size_t i = 0; i < names->len; i++)
        stet_free(names->at[i]);
    stet_vec_release(names);
}
