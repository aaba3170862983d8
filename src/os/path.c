/* path.c - names of files: as text, resolved, and temporary ones. Part of file.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/file.h"
#include "os/proc.h"

char *stet_file_join(const char *dir, const char *name) {
    size_t len = strlen(dir);
    if (len == 0 || name[0] == '/')
        return stet_strdup(name);
    return stet_asprintf(dir[len - 1] == '/' ? "%s%s" : "%s/%s", dir, name);
}

char *stet_file_dirname(const char *path) {
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    while (len > 0 && path[len - 1] != '/')
        len--;
    while (len > 1 && path[len - 1] == '/')
        len--;
    return len == 0 ? stet_strdup(".") : stet_strndup(path, len);
}

const char *stet_file_basename(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static char *resolve(const char *path) {
    int error_number = EIO;
    if (stet_sys_ask(STET_SYS_STAT, path, &error_number) == STET_SYS_FAIL) {
        errno = error_number;
        return NULL;
    }
    return realpath(path, NULL);
}

stet_status stet_file_realpath(const char *path, char **out, stet_error *err) {
    char *real = resolve(path);
    if (!real)
        return stet_fail_errno(err, errno, "%s: cannot resolve", path);
    *out = real;
    return STET_OK;
}

stet_status stet_file_absolute(const char *path, char **out, stet_error *err) {
    stet_buf b = STET_BUF(0);
    bool firm = true; /* no symlink is in the path so far: ".." simply removes the last component */
    if (path[0] != '/') {
        char *cwd = getcwd(NULL, 0);
        if (!cwd)
            return stet_fail_errno(err, errno, "%s: the working directory is not known", path);
        stet_buf_str(&b, strcmp(cwd, "/") == 0 ? "" : cwd);
        free(cwd);
    }
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        bool up = n == 2 && p[0] == '.' && p[1] == '.';
        if (up && firm) {
            while (b.len > 0 && b.data[--b.len] != '/')
                ;
        } else if (n > 0 && !(n == 1 && p[0] == '.')) {
            stet_buf_char(&b, '/');
            stet_buf_add(&b, p, n);
            firm = false;
        }
        p += n;
        p += strspn(p, "/");
    }
    if (b.len == 0)
        stet_buf_char(&b, '/');
    *out = stet_strndup(b.data, b.len);
    stet_buf_release(&b);
    return STET_OK;
}

/* Is there a ".." among the components? A missing directory has no parent, so nothing can be decided about such a
 * path. */
static bool climbs(const char *rest) {
    for (const char *p = rest; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.')
            return true;
        p += n;
        p += strspn(p, "/");
    }
    return false;
}

stet_status stet_file_inside(const char *root, const char *path, bool *out, stet_error *err) {
    char *real_root = NULL; /* gcc does not see that realpath set it */
    stet_status status = stet_file_realpath(root, &real_root, err);
    if (status != STET_OK)
        return status;
    /* A path that does not exist yet is judged by its nearest existing parent. */
    char *at = stet_strdup(path[0] ? path : "."), *real = NULL;
    bool outside = false;
    int tries = 100;
    while (!(real = resolve(at))) {
        struct stat st;
        if (errno != ENOENT && errno != ENOTDIR) {
            status = stet_fail_errno(err, errno, "%s: cannot resolve", at);
            break;
        }
        if (lstat(at, &st) == 0) {
            /* Another process has just made it, so that it can be resolved now. */
            if (!S_ISLNK(st.st_mode) && tries-- > 0)
                continue;
            outside = true; /* it exists but leads nowhere: a dangling symlink */
            break;
        }
        char *up = stet_file_dirname(at);
        bool stuck = strcmp(up, at) == 0;
        stet_free(at);
        at = up;
        if (stuck) {
            outside = true;
            break;
        }
    }
    if (status == STET_OK) {
        if (!outside && strncmp(path, at, strlen(at)) == 0 && strlen(path) > strlen(at))
            outside = climbs(path + strlen(at));
        size_t len = strlen(real_root);
        *out = !outside && (len == 1 || (strncmp(real, real_root, len) == 0 && (real[len] == 0 || real[len] == '/')));
    }
    free(real);
    stet_free(at);
    stet_free(real_root);
    return status;
}

char *stet_file_temp_name(const char *dir, const char *prefix) {
    stet_proc_id self = stet_proc_self();
    uint64_t random;
    stet_random(&random, sizeof random);
    char *name = stet_asprintf("%s.%" PRId64 ".%" PRIu64 ".%016" PRIx64, prefix, self.pid, self.start, random);
    char *path = stet_file_join(dir, name);
    stet_free(name);
    return path;
}

/* Reads the pid and the start time from a temporary name: they are among its last three fields, whatever the prefix
 * contains. */
static bool parse_temp_name(const char *name, int64_t *pid, uint64_t *start) {
    const char *base = stet_file_basename(name), *field[3], *end = base + strlen(base);
    for (int i = 2; i >= 0; i--) {
        const char *p = end;
        while (p > base && p[-1] != '.')
            p--;
        if (p == base || p == end)
            return false;
        field[i] = p;
        end = p - 1;
    }
    if (strlen(field[2]) != 16 || strspn(field[2], "0123456789abcdef") != 16)
        return false;
    char *stop;
    errno = 0;
    *pid = strtoll(field[0], &stop, 10);
    if (errno || stop == field[0] || *stop != '.' || *pid <= 0)
        return false;
    *start = strtoull(field[1], &stop, 10);
    return !errno && stop != field[1] && *stop == '.';
}

bool stet_file_temp_is_dead(const char *name, int64_t max_age_s, const struct stat *st) {
    int64_t pid;
    uint64_t start;
    if (!parse_temp_name(name, &pid, &start))
        return false; /* not one of stet's: not ours to delete, however old */
    /* Old enough is dead whoever made it: a pid of another machine or container says nothing here. */
    if (st && stet_clock_ms() / 1000 - (int64_t)st->st_mtime > max_age_s)
        return true;
    stet_proc_id id = stet_proc_self();
    id.pid = pid;
    id.start = start;
    return !stet_proc_alive(id);
}
