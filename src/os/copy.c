/* copy.c - a copy of a file by the cheapest means that the file system has. Part of file.h. */
#include <errno.h>
#include <linux/fs.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "os/file.h"

/* The last device on which a reflink failed, so that restoring many files does not try each of them. 0: none. */
static _Atomic uint64_t no_reflink;

static bool reflink(int from, int to, uint64_t device) {
    int error_number = EIO;
    if (atomic_load_explicit(&no_reflink, memory_order_relaxed) == device)
        return false;
    stet_sys_action action = stet_sys_before(STET_SYS_LINK, NULL, to, &error_number);
    if (action == STET_SYS_FAIL)
        return false;
    bool done = ioctl(to, FICLONE, from) == 0;
    stet_sys_after(action);
    if (!done && (errno == EOPNOTSUPP || errno == ENOTTY || errno == ENOSYS))
        atomic_store_explicit(&no_reflink, device, memory_order_relaxed);
    return done;
}

/* Copies [at, end) by copy_file_range, or by read and write where the kernel can't. */
static stet_status copy_range(int from, int to, off_t at, off_t end, const char *to_path, stet_error *err) {
    bool by_hand = false;
    char *bytes = NULL;
    stet_status status = STET_OK;
    while (at < end && status == STET_OK) {
        size_t want = end - at > 1 << 30 ? 1u << 30 : (size_t)(end - at);
        ssize_t n;
        if (!by_hand) {
            int error_number = EIO;
            stet_sys_action action = stet_sys_before(STET_SYS_WRITE, NULL, to, &error_number);
            if (action == STET_SYS_SHORT && want > 1)
                want /= 2;
            loff_t in = at, out = at;
            if (action == STET_SYS_FAIL) {
                errno = error_number;
                n = -1;
            } else {
                n = copy_file_range(from, &in, to, &out, want, 0);
                stet_sys_after(action);
            }
            if (n < 0 &&
                (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM)) {
                by_hand = true;
                continue;
            }
            if (n < 0 && errno == EINTR)
                continue;
            if (n < 0)
                status = stet_fail_errno(err, errno, "%s: cannot write", to_path);
        } else {
            enum { CHUNK = 256 * 1024 };
            if (!bytes)
                bytes = stet_alloc(CHUNK);
            n = stet_sys_pread(from, bytes, want < CHUNK ? want : CHUNK, at);
            if (n < 0)
                status = stet_fail_errno(err, errno, "%s: cannot read its source", to_path);
            for (ssize_t done = 0; done < n && status == STET_OK;) {
                ssize_t w = stet_sys_pwrite(to, bytes + done, (size_t)(n - done), at + done);
                if (w <= 0)
                    status = stet_fail_errno(err, w < 0 ? errno : EIO, "%s: cannot write", to_path);
                else
                    done += w;
            }
        }
        if (n == 0)
            status = stet_fail(err, STET_CONFLICT, "%s: its source shrank while it was copied", to_path);
        if (n > 0)
            at += n;
    }
    stet_free(bytes);
    return status;
}

static stet_status copy_bytes(int from, int to, off_t size, const char *to_path, stet_error *err) {
    if (stet_sys_ftruncate(to, size) != 0)
        return stet_fail_errno(err, errno, "%s: cannot set its size", to_path);
    for (off_t at = 0; at < size;) {
        off_t data = lseek(from, at, SEEK_DATA), hole = size;
        if (data < 0 && errno == ENXIO)
            break; /* a hole up to the end */
        if (data < 0)
            data = at; /* SEEK_DATA is not supported here: treat everything as data */
        else if ((hole = lseek(from, data, SEEK_HOLE)) < 0 || hole > size)
            hole = size;
        stet_status status = copy_range(from, to, data, hole, to_path, err);
        if (status != STET_OK)
            return status;
        at = hole;
    }
    return STET_OK;
}

/* Failures of link(2) that mean "not possible here"; any other is a real failure. */
static bool cannot_link(int error_number) {
    return error_number == EXDEV || error_number == EPERM || error_number == EMLINK || error_number == EOPNOTSUPP ||
           error_number == EACCES || error_number == ENOSYS;
}

/* The caller closes `in`. */
static stet_status copy_open(int in, const char *from, const char *to, mode_t mode, bool allow_hardlink,
                             stet_copy_how *how, stet_error *err) {
    stet_copy_how by = STET_COPY_REFLINK;
    struct stat st;
    stet_status status = STET_OK;
    if (stet_sys_fstat(in, &st) != 0)
        return stet_fail_errno(err, errno, "%s: cannot stat", from);
    if (!S_ISREG(st.st_mode))
        return stet_fail(err, STET_INVALID, "%s: not a regular file", from);

    bool try_reflink = atomic_load_explicit(&no_reflink, memory_order_relaxed) != (uint64_t)st.st_dev;
    struct stat named;
    /* link(2) does not follow a symlink in `from`, so it would link the wrong thing. */
    bool may_link = allow_hardlink && lstat(from, &named) == 0 && S_ISREG(named.st_mode);
    int out = -1;
    for (int pass = try_reflink ? 0 : 1; pass < 3; pass++) {
        if (pass == 1) {
            if (!may_link)
                continue;
            if (out >= 0) {
                stet_sys_close(out);
                out = -1;
                unlink(to);
            }
            by = STET_COPY_HARDLINK;
            if (stet_sys_link(from, to) == 0)
                break;
            if (!cannot_link(errno)) {
                status = stet_fail_errno(err, errno, "%s: cannot link", to);
                break;
            }
            continue;
        }
        if (out < 0 && (out = stet_sys_open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode)) < 0) {
            status = stet_fail_errno(err, errno, "%s: cannot create", to);
            break;
        }
        if (pass == 0 && reflink(in, out, (uint64_t)st.st_dev))
            break;
        if (pass == 2) {
            by = STET_COPY_BYTES;
            status = copy_bytes(in, out, st.st_size, to, err);
        }
    }
    if (out >= 0) {
        if (stet_sys_close(out) != 0 && status == STET_OK)
            status = stet_fail_errno(err, errno, "%s: cannot close", to);
        if (status != STET_OK)
            unlink(to);
    }
    if (status == STET_OK && how)
        *how = by;
    return status;
}

stet_status stet_file_copy(const char *from, const char *to, mode_t mode, bool allow_hardlink, stet_copy_how *how,
                           stet_error *err) {
    int in = stet_sys_open(from, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (in < 0)
        return stet_fail_errno(err, errno, "%s: cannot open", from);
    stet_status status = copy_open(in, from, to, mode, allow_hardlink, how, err);
    stet_sys_close(in);
    return status;
}

stet_status stet_file_copy_open(int in, const char *from, const char *to, mode_t mode, stet_error *err) {
    return copy_open(in, from, to, mode, false, NULL, err);
}
