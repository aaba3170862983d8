#include "files/look.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "os/clock.h"
#include "os/file.h"

#define TICK_NS    10000000           /* file systems take their times from a clock that ticks every 1 to 10 ms */
#define WAIT_BYTES ((int64_t)1 << 20) /* larger files are worth waiting for the tick: then they are read once */
#define MAX_FILES  10000000           /* in a directory */

static int64_t ns(struct timespec t) {
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The clock of the kernel's file times. Not stet_clock_ns: it must tick as they do. */
static int64_t file_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME_COARSE, &t);
    return ns(t);
}

static bool recent(int64_t time, int64_t now) {
    return time >= now - TICK_NS;
}

static uint32_t mode_of(const struct stat *st) {
    return st->st_mode & 0111 ? STET_LOOK_EXECUTABLE : STET_LOOK_FILE;
}

/* ---- Directories ---------------------------------------------------------------------------------------------- */

typedef struct member {
    char *path; /* below the directory */
    struct stat st;
} member;
typedef STET_VEC(member) members;

static void members_release(members *m) {
    for (size_t i = 0; i < m->len; i++)
        stet_free(m->at[i].path);
    stet_vec_release(m);
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const member *)a)->path, ((const member *)b)->path);
}

/* Everything below `dir` that is no directory. What goes away meanwhile is not there; *gone: `dir` itself. */
static stet_status walk(const char *dir, members *out, bool *gone, stet_error *err) {
    STET_VEC(char *) todo = {0};
    stet_status status = STET_OK;
    *stet_vec_add(&todo) = stet_strdup("");
    while (todo.len > 0 && status == STET_OK) {
        char *below = todo.at[--todo.len], *full = *below ? stet_file_join(dir, below) : stet_strdup(dir);
        stet_names names = {0};
        stet_error inner = STET_ERROR_INIT;
        status = stet_file_list(full, &names, &inner);
        if (status == STET_NOT_FOUND) {
            *gone |= !*below;
            stet_error_clear(&inner);
            status = STET_OK;
        }
        stet_error_move(err, &inner);
        for (size_t i = 0; i < names.len && status == STET_OK; i++) {
            const char *name = names.at[i];
            if (strcmp(name, ".stet") == 0 || strcmp(name, ".git") == 0)
                continue;
            char *path = *below ? stet_file_join(below, name) : stet_strdup(name), *at = stet_file_join(dir, path);
            struct stat st;
            if (stet_sys_lstat(at, &st) != 0)
                st.st_mode = 0; /* gone meanwhile */
            if (S_ISDIR(st.st_mode)) {
                *stet_vec_add(&todo) = path;
                path = NULL;
            } else if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)) {
                *stet_vec_add(out) = (member){path, st};
                path = NULL;
            }
            if (out->len > MAX_FILES)
                status = stet_fail(err, STET_LIMIT, "%s: more than %d files in it", dir, MAX_FILES);
            stet_free(path);
            stet_free(at);
        }
        stet_names_release(&names);
        stet_free(below);
        stet_free(full);
    }
    for (size_t i = 0; i < todo.len; i++)
        stet_free(todo.at[i]);
    stet_vec_release(&todo);
    if (out->len)
        qsort(out->at, out->len, sizeof *out->at, by_path);
    return status;
}

/* Hash of a file or of a link's text. A file that is gone meanwhile counts as empty: the next look sees it. */
static stet_status hash_member(const char *dir, const member *m, stet_hash *out, stet_error *err) {
    char *at = stet_file_join(dir, m->path);
    uint64_t size;
    stet_status status = STET_OK;
    if (S_ISLNK(m->st.st_mode)) {
        char target[4096];
        ssize_t n = readlink(at, target, sizeof target);
        *out = stet_hash_of(target, n < 0 ? 0 : (size_t)n);
    } else {
        stet_error inner = STET_ERROR_INIT;
        status = stet_file_hash(at, out, &size, &inner);
        if (status == STET_NOT_FOUND) {
            stet_error_clear(&inner);
            *out = stet_hash_of("", 0);
            status = STET_OK;
        }
        stet_error_move(err, &inner);
    }
    stet_free(at);
    return status;
}

static stet_status look_directory(const char *dir, const stet_look *known, int64_t now, stet_look *out,
                                  stet_error *err) {
    members m = {0};
    bool gone = false;
    stet_status status = walk(dir, &m, &gone, err);
    if (status != STET_OK || gone) {
        members_release(&m);
        *out = (stet_look){0};
        return status;
    }
    /* What stat says of everything, as one hash: a directory with the same is not read again. */
    stet_hasher *h = stet_hasher_begin();
    bool racy = false;
    for (size_t i = 0; i < m.len; i++) {
        const struct stat *st = &m.at[i].st;
        int64_t numbers[5] = {ns(st->st_mtim), ns(st->st_ctim), (int64_t)st->st_ino, (int64_t)st->st_size,
                              (int64_t)st->st_mode};
        stet_hasher_add(h, m.at[i].path, strlen(m.at[i].path) + 1);
        stet_hasher_add(h, numbers, sizeof numbers);
        racy |= recent(numbers[0], now) || recent(numbers[1], now);
    }
    stet_hash print = stet_hasher_end(h);
    *out = (stet_look){.mode = STET_LOOK_DIRECTORY, .size = m.len, .flags = racy ? STET_LOOK_RACY : 0};
    memcpy(&out->mtime, print.bytes, 8);
    memcpy(&out->ctime, print.bytes + 8, 8);
    memcpy(&out->inode, print.bytes + 16, 8);
    if (known && known->mode == out->mode && known->size == out->size && known->mtime == out->mtime &&
        known->ctime == out->ctime && known->inode == out->inode && !(known->flags & STET_LOOK_RACY)) {
        out->hash = known->hash;
        members_release(&m);
        return STET_OK;
    }
    h = stet_hasher_begin();
    for (size_t i = 0; i < m.len && status == STET_OK; i++) {
        stet_hash content;
        status = hash_member(dir, &m.at[i], &content, err);
        char kind = S_ISLNK(m.at[i].st.st_mode) ? 'l' : m.at[i].st.st_mode & 0111 ? 'x' : 'f';
        stet_hasher_add(h, m.at[i].path, strlen(m.at[i].path) + 1);
        stet_hasher_add(h, &kind, 1);
        stet_hasher_add(h, content.bytes, sizeof content.bytes);
    }
    out->hash = stet_hasher_end(h);
    members_release(&m);
    return status;
}

/* ---- One file ------------------------------------------------------------------------------------------------- */

static bool same_stat(const stet_look *known, const struct stat *st) {
    return known && known->mode == mode_of(st) && known->size == (uint64_t)st->st_size &&
           known->inode == (uint64_t)st->st_ino && known->mtime == ns(st->st_mtim) && known->ctime == ns(st->st_ctim) &&
           !(known->flags & STET_LOOK_RACY);
}

/* The whole path, for messages and for functions that take no directory. Caller frees. */
static char *whole(int root_fd, const char *path) {
    if (*path == '/' || root_fd == AT_FDCWD)
        return stet_strdup(path);
    char link[64], root[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", root_fd);
    ssize_t n = readlink(link, root, sizeof root - 1);
    root[n < 0 ? 0 : n] = 0;
    return stet_file_join(root, path);
}

static stet_status read_file(int root_fd, const char *path, stet_look *out, stet_error *err) {
    static const size_t block = 256 * 1024;
    int fd = stet_sys_openat(root_fd, path, O_RDONLY | O_NOCTTY, 0);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        *out = (stet_look){0};
        return STET_OK;
    }
    if (fd < 0)
        return stet_fail_errno(err, errno, "cannot read %s", path);
    struct stat st;
    stet_status status = STET_OK;
    if (stet_sys_fstat(fd, &st) != 0)
        status = stet_fail_errno(err, errno, "cannot look at %s", path);
    stet_hasher *h = stet_hasher_begin();
    char small[8192], *bytes = st.st_size > (off_t)sizeof small ? stet_alloc(block) : small;
    uint64_t size = 0;
    for (ssize_t n = 1; n > 0 && status == STET_OK;) {
        n = stet_sys_read(fd, bytes, bytes == small ? sizeof small : block);
        if (n < 0)
            status = stet_fail_errno(err, errno, "cannot read %s", path);
        else if (n > 0)
            stet_hasher_add(h, bytes, (size_t)n);
        size += n > 0 ? (uint64_t)n : 0;
    }
    if (bytes != small)
        stet_free(bytes);
    stet_hash hash = stet_hasher_end(h);
    /* What was opened may be another file than the one that was looked at first. */
    *out = (stet_look){.hash = hash,
                       .mtime = ns(st.st_mtim),
                       .ctime = ns(st.st_ctim),
                       .inode = st.st_ino,
                       .size = size,
                       .mode = mode_of(&st),
                       .flags = size == (uint64_t)st.st_size ? 0 : STET_LOOK_RACY};
    stet_sys_close(fd);
    return status;
}

stet_status stet_look_at(int root_fd, const char *path, const stet_look *known, stet_look *out, stet_error *err) {
    struct stat st;
    int64_t now = file_clock();
    if (fstatat(root_fd, path, &st, 0) != 0) {
        if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) {
            *out = (stet_look){0};
            return STET_OK;
        }
        return stet_fail_errno(err, errno, "cannot look at %s", path);
    }
    if (S_ISREG(st.st_mode)) {
        if (same_stat(known, &st)) {
            *out = *known;
            return STET_OK;
        }
        if (st.st_size >= WAIT_BYTES && recent(ns(st.st_mtim), now)) {
            stet_clock_sleep_ms(2 * TICK_NS / 1000000);
            now = file_clock();
        }
        stet_status status = read_file(root_fd, path, out, err);
        if (status == STET_OK && out->mode && (recent(out->mtime, now) || recent(out->ctime, now)))
            out->flags |= STET_LOOK_RACY;
        return status;
    }
    if (!S_ISDIR(st.st_mode))
        return stet_fail(err, STET_INVALID, "%s is neither a file nor a directory", path);
    char *dir = whole(root_fd, path);
    stet_status status = look_directory(dir, known, now, out, err);
    stet_free(dir);
    return status;
}

stet_status stet_look_placed(int root_fd, const char *path, stet_hash hash, const struct stat *as, stet_look *out,
                             stet_error *err) {
    struct stat st;
    if (as->st_size >= WAIT_BYTES) /* past the tick, so that the next look need not read it either */
        stet_clock_sleep_ms(2 * TICK_NS / 1000000);
    int64_t now = file_clock();
    if (fstatat(root_fd, path, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_ino != as->st_ino || st.st_dev != as->st_dev ||
        st.st_size != as->st_size || ns(st.st_mtim) != ns(as->st_mtim))
        return stet_look_at(root_fd, path, NULL, out, err);
    *out = (stet_look){.hash = hash,
                       .mtime = ns(st.st_mtim),
                       .ctime = ns(st.st_ctim),
                       .inode = st.st_ino,
                       .size = (uint64_t)st.st_size,
                       .mode = mode_of(&st)};
    if (recent(out->mtime, now) || recent(out->ctime, now))
        out->flags |= STET_LOOK_RACY;
    return STET_OK;
}

bool stet_look_same(const stet_look *a, const stet_look *b) {
    return a->mode == b->mode && (a->mode == 0 || (a->size == b->size && stet_hash_equal(a->hash, b->hash)));
}

stet_value stet_look_value(const stet_look *l) {
    stet_value v = stet_object();
    char hex[STET_HASH_HEX];
    stet_hash_hex(l->hash, hex);
    stet_put(&v, "hash", stet_string(hex));
    stet_put(&v, "mode", stet_int(l->mode == STET_LOOK_DIRECTORY ? l->mode : l->mode & 0777));
    stet_put(&v, "size", stet_int((int64_t)l->size));
    return v;
}

bool stet_look_of_value(stet_value v, stet_look *out) {
    stet_value hash = stet_get(v, "hash"), mode = stet_get(v, "mode"), size = stet_get(v, "size");
    size_t len;
    *out = (stet_look){0};
    if (stet_typeof(hash) != STET_STRING || stet_typeof(mode) != STET_INT || stet_typeof(size) != STET_INT)
        return false;
    const char *hex = stet_as_string(&hash, &len);
    int64_t m = stet_as_int(mode);
    if (!stet_hash_of_hex(hex, len, &out->hash) || stet_as_int(size) < 0)
        return false;
    if (m != STET_LOOK_DIRECTORY && m != 0644 && m != 0755)
        return false;
    out->mode = m == STET_LOOK_DIRECTORY ? STET_LOOK_DIRECTORY : 0100000u | (uint32_t)m;
    out->size = (uint64_t)stet_as_int(size);
    return true;
}
