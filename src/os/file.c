/* file.c - complete reads and writes, atomic replacement and durable appends. */

#include "os/file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Opens a regular file for reading. O_NONBLOCK so that a FIFO with no writer is refused instead of waited for. */
static stet_status open_regular(const char *path, int *fd, struct stat *st, stet_error *err) {
    *fd = stet_sys_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (*fd < 0)
        return stet_fail_errno(err, errno, "%s: cannot open", path);
    stet_status status = STET_OK;
    if (stet_sys_fstat(*fd, st) != 0)
        status = stet_fail_errno(err, errno, "%s: cannot stat", path);
    else if (!S_ISREG(st->st_mode))
        status = stet_fail(err, STET_INVALID, "%s: %s, not a regular file", path,
                           S_ISDIR(st->st_mode) ? "a directory" : "a device, pipe or socket");
    if (status != STET_OK) {
        stet_sys_close(*fd);
        *fd = -1;
    }
    return status;
}

stet_status stet_file_read(const char *path, size_t max, stet_buf *out, stet_error *err) {
    if (max == 0)
        max = STET_BUF_MAX;
    size_t room = (out->max ? out->max : STET_BUF_MAX) - out->len;
    if (max > room)
        max = room;
    int fd;
    struct stat st;
    stet_status status = open_regular(path, &fd, &st, err);
    if (status != STET_OK)
        return status;

    size_t start = out->len;
    /* The size is only a hint: files of /proc report 0, and a file may grow while it is read. Reading one byte more
     * than the hint finds the end without another call. */
    size_t chunk = st.st_size > 0 && (uintmax_t)st.st_size < max ? (size_t)st.st_size + 1 : 4096;
    if (st.st_size > 0 && (uintmax_t)st.st_size > max)
        status =
            stet_fail(err, STET_LIMIT, "%s: %jd bytes, more than the %zu allowed", path, (intmax_t)st.st_size, max);
    while (status == STET_OK) {
        size_t have = out->len - start;
        if (have == max) { /* full: is there another byte? */
            char one;
            ssize_t n = stet_sys_read(fd, &one, 1);
            if (n < 0)
                status = stet_fail_errno(err, errno, "%s: cannot read", path);
            else if (n > 0)
                status = stet_fail(err, STET_LIMIT, "%s: more than the %zu bytes allowed", path, max);
            break;
        }
        if (chunk > max - have)
            chunk = max - have;
        char *to = stet_buf_reserve(out, chunk);
        if (!to) {
            status = stet_fail(err, STET_LIMIT, "%s: more than the %zu bytes allowed", path, max);
            break;
        }
        ssize_t n = stet_sys_read(fd, to, chunk);
        if (n < 0)
            status = stet_fail_errno(err, errno, "%s: cannot read", path);
        if (n <= 0)
            break;
        out->len += (size_t)n;
        chunk = chunk > (size_t)n ? chunk - (size_t)n : 65536;
    }
    if (status != STET_OK)
        out->len = start;
    if (out->data)
        out->data[out->len] = 0;
    stet_sys_close(fd);
    return status;
}

stet_status stet_file_write_all(int fd, const char *path, const void *bytes, size_t len, stet_error *err) {
    const char *p = bytes;
    while (len > 0) {
        ssize_t n = stet_sys_write(fd, p, len);
        if (n < 0)
            return stet_fail_errno(err, errno, "%s: cannot write", path);
        if (n == 0)
            return stet_fail(err, STET_IO, "%s: cannot write: the kernel takes no bytes", path);
        p += n;
        len -= (size_t)n;
    }
    return STET_OK;
}

stet_status stet_file_read_all(int fd, const char *path, void *bytes, size_t len, size_t *got, stet_error *err) {
    char *p = bytes;
    size_t have = 0;
    while (have < len) {
        ssize_t n = stet_sys_read(fd, p + have, len - have);
        if (n < 0)
            return stet_fail_errno(err, errno, "%s: cannot read", path);
        if (n == 0)
            break;
        have += (size_t)n;
    }
    *got = have;
    return STET_OK;
}

/* Writes a synced temporary file beside `path`. `*temp` is its name, which the caller frees. A failure leaves nothing
 * behind. */
static stet_status write_temp(const char *path, const void *bytes, size_t len, mode_t mode, char **temp,
                              stet_error *err) {
    char *dir = stet_file_dirname(path);
    char *name = stet_file_temp_name(dir, ".stet-temp");
    stet_free(dir);
    int fd = stet_sys_open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    if (fd < 0) {
        stet_status status = stet_fail_errno(err, errno, "%s: cannot create a temporary file beside it", path);
        stet_free(name);
        return status;
    }
    stet_status status = stet_file_write_all(fd, path, bytes, len, err);
    if (status == STET_OK && stet_sys_fsync(fd) != 0)
        status = stet_fail_errno(err, errno, "%s: cannot sync", path);
    if (stet_sys_close(fd) != 0 && status == STET_OK)
        status = stet_fail_errno(err, errno, "%s: cannot close", path);
    if (status != STET_OK) {
        unlink(name); /* clean-up does not go through the hook: a fault there would only test the test */
        stet_free(name);
        return status;
    }
    *temp = name;
    return STET_OK;
}

static stet_status put_in_place(const char *path, const void *bytes, size_t len, mode_t mode, bool replace,
                                stet_error *err) {
    char *temp = NULL;
    stet_status status = write_temp(path, bytes, len, mode, &temp, err);
    if (status != STET_OK)
        return status;
    int r = replace ? stet_sys_rename(temp, path) : stet_sys_rename_new(temp, path);
    if (r != 0) {
        status = errno == EEXIST ? stet_fail(err, STET_CONFLICT, "%s: exists already", path)
                                 : stet_fail_errno(err, errno, "%s: cannot put in place", path);
        unlink(temp);
    } else {
        status = stet_file_sync_parent(path, err);
    }
    stet_free(temp);
    return status;
}

stet_status stet_file_replace(const char *path, const void *bytes, size_t len, mode_t mode, stet_error *err) {
    return put_in_place(path, bytes, len, mode, true, err);
}

stet_status stet_file_create(const char *path, const void *bytes, size_t len, mode_t mode, stet_error *err) {
    return put_in_place(path, bytes, len, mode, false, err);
}

/* Opens a file for appending. `*created`: the file is new, so its name has to be made durable too. */
static int open_append(const char *path, bool *created) {
    *created = false;
    for (int tries = 0; tries < 8; tries++) {
        int fd = stet_sys_open(path, O_WRONLY | O_APPEND | O_NOFOLLOW, 0);
        if (fd >= 0 || errno != ENOENT)
            return fd;
        fd = stet_sys_open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CREAT | O_EXCL, 0644);
        if (fd >= 0)
            *created = true;
        if (fd >= 0 || errno != EEXIST)
            return fd; /* EEXIST: another process created it, so it can be opened now */
    }
    return -1;
}

stet_status stet_file_append(const char *path, const void *bytes, size_t len, bool sync, stet_error *err) {
    bool created;
    int fd = open_append(path, &created);
    if (fd < 0)
        return stet_fail_errno(err, errno, "%s: cannot open for appending", path);
    struct stat before;
    if (stet_sys_fstat(fd, &before) != 0) {
        stet_status status = stet_fail_errno(err, errno, "%s: cannot stat", path);
        stet_sys_close(fd);
        return status;
    }
    stet_status status = STET_OK;
    if (!S_ISREG(before.st_mode))
        status = stet_fail(err, STET_INVALID, "%s: not a regular file", path);
    if (status == STET_OK) {
        status = stet_file_write_all(fd, path, bytes, len, err);
        if (status == STET_OK && sync && stet_sys_fdatasync(fd) != 0)
            status = stet_fail_errno(err, errno, "%s: cannot sync", path);
        /* Cuts the file back, without the hook. If even that fails, readers see a torn tail, which they must handle
         * after a power cut anyway. */
        if (status != STET_OK && ftruncate(fd, before.st_size) != 0)
            stet_hint(err, "%s may end in an incomplete record: it could not be cut back", path);
    }
    if (stet_sys_close(fd) != 0 && status == STET_OK)
        status = stet_fail_errno(err, errno, "%s: cannot close", path);
    if (status == STET_OK && created && sync)
        status = stet_file_sync_parent(path, err);
    return status;
}

stet_status stet_file_hash(const char *path, stet_hash *out, uint64_t *size, stet_error *err) {
    int fd;
    struct stat st;
    stet_status status = open_regular(path, &fd, &st, err);
    if (status != STET_OK)
        return status;
    enum { CHUNK = 256 * 1024 };
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    char *bytes = stet_alloc(st.st_size > 0 && st.st_size < CHUNK ? (size_t)st.st_size + 1 : CHUNK);
    size_t chunk = st.st_size > 0 && st.st_size < CHUNK ? (size_t)st.st_size + 1 : CHUNK;
    stet_hasher *h = stet_hasher_begin();
    uint64_t total = 0;
    for (;;) {
        ssize_t n = stet_sys_read(fd, bytes, chunk);
        if (n < 0)
            status = stet_fail_errno(err, errno, "%s: cannot read", path);
        if (n <= 0)
            break;
        stet_hasher_add(h, bytes, (size_t)n);
        total += (uint64_t)n;
    }
    stet_hash hash = stet_hasher_end(h);
    stet_free(bytes);
    stet_sys_close(fd);
    if (status != STET_OK)
        return status;
    *out = hash;
    if (size)
        *size = total;
    return STET_OK;
}
