/* sys.c - the system calls that tests can make fail. */

#include "os/sys.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

stet_sys_action (*stet_sys_hook)(stet_sys_fault *fault);

/* One predictable branch is all that a call costs when no test has set the hook. */
#define HOOKED __builtin_expect(stet_sys_hook != NULL, 0)

const char *stet_sys_call_name(stet_sys_call call) {
    static const char *const names[STET_SYS_CALLS] = {
        "open",  "close", "read", "write",   "fsync", "truncate", "rename", "link",  "unlink",
        "mkdir", "rmdir", "stat", "readdir", "lock",  "spawn",    "mmap",   "watch", "sql",
    };
    return call < STET_SYS_CALLS ? names[call] : "?";
}

static _Noreturn void die(void) {
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

stet_sys_action stet_sys_before(stet_sys_call call, const char *path, int fd, int *error_number) {
    if (!HOOKED)
        return STET_SYS_GO;
    stet_sys_fault fault = {.call = call, .path = path, .fd = fd, .error_number = EIO};
    stet_sys_action action = stet_sys_hook(&fault);
    if (action == STET_SYS_KILL)
        die();
    if (error_number)
        *error_number = fault.error_number;
    return action;
}

void stet_sys_after(stet_sys_action action) {
    if (action == STET_SYS_KILL_AFTER)
        die();
}

stet_sys_action stet_sys_ask(stet_sys_call call, const char *path, int *error_number) {
    stet_sys_action action = stet_sys_before(call, path, -1, error_number);
    stet_sys_after(action);
    return action;
}

/* The common form of a call that returns -1 and errno on failure: ask the hook, repeat the call while it is
 * interrupted, and kill afterwards if the hook says so. A macro, because the calls have no common signature. A
 * simulated interruption is one iteration without the call. */
#define CALL(result, which, path, fd, expression)                                                                      \
    do {                                                                                                               \
        int fault_errno_ = EIO;                                                                                        \
        stet_sys_action action_ = HOOKED ? stet_sys_before(which, path, fd, &fault_errno_) : STET_SYS_GO;              \
        bool interrupted_ = action_ == STET_SYS_EINTR;                                                                 \
        if (action_ == STET_SYS_FAIL) {                                                                                \
            errno = fault_errno_;                                                                                      \
            (result) = -1;                                                                                             \
            break;                                                                                                     \
        }                                                                                                              \
        do {                                                                                                           \
            if (interrupted_) {                                                                                        \
                interrupted_ = false;                                                                                  \
                errno = EINTR;                                                                                         \
                (result) = -1;                                                                                         \
                continue;                                                                                              \
            }                                                                                                          \
            (result) = (expression);                                                                                   \
        } while ((result) < 0 && errno == EINTR);                                                                      \
        if (HOOKED)                                                                                                    \
            stet_sys_after(action_);                                                                                   \
    } while (0)

int stet_sys_open(const char *path, int flags, mode_t mode) {
    int r;
    CALL(r, STET_SYS_OPEN, path, -1, open(path, flags | O_CLOEXEC, mode));
    return r;
}

int stet_sys_openat(int dir, const char *path, int flags, mode_t mode) {
    int r;
    CALL(r, STET_SYS_OPEN, path, -1, openat(dir, path, flags | O_CLOEXEC, mode));
    return r;
}

bool (*_Atomic stet_sys_keeps)(int fd);

int stet_sys_close(int fd) {
    int error_number = EIO;
    stet_sys_action action = stet_sys_before(STET_SYS_CLOSE, NULL, fd, &error_number);
    bool (*keeps)(int) = stet_sys_keeps;
    int r = keeps && keeps(fd) ? 0 : close(fd);
    stet_sys_after(action);
    if (action == STET_SYS_FAIL) {
        errno = error_number;
        return -1;
    }
    /* close releases the descriptor even after EINTR, and the kernel writes the data as after any other close. */
    return r < 0 && errno == EINTR ? 0 : r;
}

/* Reads and writes ask with their length, which STET_SYS_SHORT halves. */
static bool ask_length(stet_sys_call call, int fd, size_t *len, stet_sys_action *action) {
    int error_number = EIO;
    *action = stet_sys_before(call, NULL, fd, &error_number);
    if (*action == STET_SYS_FAIL) {
        errno = error_number;
        return false;
    }
    if (*action == STET_SYS_SHORT && *len > 1)
        *len /= 2;
    return true;
}

#define TRANSFER(result, which, fd, len, expression)                                                                   \
    do {                                                                                                               \
        stet_sys_action action_ = STET_SYS_GO;                                                                         \
        if (HOOKED && !ask_length(which, fd, &(len), &action_)) {                                                      \
            (result) = -1;                                                                                             \
            break;                                                                                                     \
        }                                                                                                              \
        do                                                                                                             \
            (result) = (expression);                                                                                   \
        while ((result) < 0 && errno == EINTR);                                                                        \
        if (HOOKED)                                                                                                    \
            stet_sys_after(action_);                                                                                   \
    } while (0)

ssize_t stet_sys_read(int fd, void *bytes, size_t len) {
    ssize_t r;
    TRANSFER(r, STET_SYS_READ, fd, len, read(fd, bytes, len));
    return r;
}

ssize_t stet_sys_pread(int fd, void *bytes, size_t len, off_t at) {
    ssize_t r;
    TRANSFER(r, STET_SYS_READ, fd, len, pread(fd, bytes, len, at));
    return r;
}

ssize_t stet_sys_write(int fd, const void *bytes, size_t len) {
    ssize_t r;
    TRANSFER(r, STET_SYS_WRITE, fd, len, write(fd, bytes, len));
    return r;
}

ssize_t stet_sys_pwrite(int fd, const void *bytes, size_t len, off_t at) {
    ssize_t r;
    TRANSFER(r, STET_SYS_WRITE, fd, len, pwrite(fd, bytes, len, at));
    return r;
}

int stet_sys_fsync(int fd) {
    int r;
    CALL(r, STET_SYS_FSYNC, NULL, fd, fsync(fd));
    return r;
}

int stet_sys_fdatasync(int fd) {
    int r;
    CALL(r, STET_SYS_FSYNC, NULL, fd, fdatasync(fd));
    return r;
}

int stet_sys_ftruncate(int fd, off_t len) {
    int r;
    CALL(r, STET_SYS_TRUNCATE, NULL, fd, ftruncate(fd, len));
    return r;
}

int stet_sys_rename(const char *from, const char *to) {
    int r;
    CALL(r, STET_SYS_RENAME, to, -1, rename(from, to));
    return r;
}

static int rename_new(const char *from, const char *to) {
    int r = renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
    if (r == 0 || (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP))
        return r;
    if (link(from, to) != 0)
        return -1;
    /* The new name exists, so that a failure to remove the old one is not a failure of this call. */
    if (unlink(from) != 0)
        errno = 0;
    return 0;
}

int stet_sys_rename_new(const char *from, const char *to) {
    int r;
    CALL(r, STET_SYS_RENAME, to, -1, rename_new(from, to));
    return r;
}

int stet_sys_link(const char *from, const char *to) {
    int r;
    CALL(r, STET_SYS_LINK, to, -1, link(from, to));
    return r;
}

int stet_sys_symlink(const char *target, const char *path) {
    int r;
    CALL(r, STET_SYS_LINK, path, -1, symlink(target, path));
    return r;
}

int stet_sys_unlink(const char *path) {
    int r;
    CALL(r, STET_SYS_UNLINK, path, -1, unlink(path));
    return r;
}

int stet_sys_unlinkat(int dir, const char *name, int flags) {
    int r;
    CALL(r, flags & AT_REMOVEDIR ? STET_SYS_RMDIR : STET_SYS_UNLINK, name, -1, unlinkat(dir, name, flags));
    return r;
}

int stet_sys_mkdir(const char *path, mode_t mode) {
    int r;
    CALL(r, STET_SYS_MKDIR, path, -1, mkdir(path, mode));
    return r;
}

int stet_sys_rmdir(const char *path) {
    int r;
    CALL(r, STET_SYS_RMDIR, path, -1, rmdir(path));
    return r;
}

int stet_sys_stat(const char *path, struct stat *out) {
    int r;
    CALL(r, STET_SYS_STAT, path, -1, stat(path, out));
    return r;
}

int stet_sys_lstat(const char *path, struct stat *out) {
    int r;
    CALL(r, STET_SYS_STAT, path, -1, lstat(path, out));
    return r;
}

int stet_sys_lstatat(int dir, const char *path, struct stat *out) {
    int r;
    CALL(r, STET_SYS_STAT, path, -1, fstatat(dir, path, out, AT_SYMLINK_NOFOLLOW));
    return r;
}

int stet_sys_fstat(int fd, struct stat *out) {
    int r;
    CALL(r, STET_SYS_STAT, NULL, fd, fstat(fd, out));
    return r;
}

int stet_sys_chmod(const char *path, mode_t mode) {
    int r;
    CALL(r, STET_SYS_STAT, path, -1, chmod(path, mode));
    return r;
}

DIR *stet_sys_opendir(const char *path) {
    int fd = stet_sys_open(path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return NULL;
    DIR *dir = fdopendir(fd);
    if (!dir) {
        int saved = errno;
        close(fd);
        errno = saved;
    }
    return dir;
}

struct dirent *stet_sys_readdir(DIR *dir) {
    int error_number = EIO;
    stet_sys_action action = stet_sys_before(STET_SYS_READDIR, NULL, dirfd(dir), &error_number);
    if (action == STET_SYS_FAIL) {
        errno = error_number;
        return NULL;
    }
    errno = 0;
    struct dirent *entry = readdir(dir);
    stet_sys_after(action);
    return entry;
}

int stet_sys_fcntl_lock(int fd, int command, struct flock *lock) {
    int r;
    CALL(r, STET_SYS_LOCK, NULL, fd, fcntl(fd, command, lock));
    return r;
}
