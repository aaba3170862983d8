/* sys.h - every system call that can fail and matters to durability, with a hook for tests.
 *
 * Each function is the system call of the same name. EINTR is retried where POSIX allows it; short reads and writes are
 * left to the caller (file.h has the complete ones). If a test has set stet_sys_hook, each function calls it first:
 *
 *   STET_SYS_GO          make the call
 *   STET_SYS_FAIL        return -1 with errno = fault->error_number, without making the call
 *   STET_SYS_SHORT       read or write at most half of what was requested (other calls: go)
 *   STET_SYS_EINTR       behave as if interrupted once, then go
 *   STET_SYS_KILL        SIGKILL to this process, before the call
 *   STET_SYS_KILL_AFTER  the same, right after the call
 *
 * src/db routes SQLite's file operations through the same hook. The product never sets it: test/faults.c is linked into
 * test programs and into build/test/stet, and reads STET_FAULT. Memory allocation has no hook (running out of memory
 * ends the process).
 */
#ifndef STET_OS_SYS_H
#define STET_OS_SYS_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef enum stet_sys_call {
    STET_SYS_OPEN,
    STET_SYS_CLOSE,
    STET_SYS_READ,
    STET_SYS_WRITE,
    STET_SYS_FSYNC,
    STET_SYS_TRUNCATE,
    STET_SYS_RENAME,
    STET_SYS_LINK,
    STET_SYS_UNLINK,
    STET_SYS_MKDIR,
    STET_SYS_RMDIR,
    STET_SYS_STAT,
    STET_SYS_READDIR,
    STET_SYS_LOCK,
    STET_SYS_SPAWN,
    STET_SYS_MMAP,
    STET_SYS_WATCH,
    STET_SYS_SQL, /* a statement is about to be stepped */
    STET_SYS_CALLS
} stet_sys_call;

typedef enum stet_sys_action {
    STET_SYS_GO,
    STET_SYS_FAIL,
    STET_SYS_SHORT,
    STET_SYS_EINTR,
    STET_SYS_KILL,
    STET_SYS_KILL_AFTER
} stet_sys_action;

typedef struct stet_sys_fault {
    stet_sys_call call;
    const char *path; /* NULL where only a descriptor is known */
    int fd;           /* -1 where only a path is known */
    int error_number; /* set by the hook for STET_SYS_FAIL; EIO on entry */
} stet_sys_fault;

extern stet_sys_action (*stet_sys_hook)(stet_sys_fault *fault);
const char *stet_sys_call_name(stet_sys_call call); /* "open", "fsync", ... */
/* Asks the hook about a call made elsewhere (SQLite's VFS, libuv). GO if no hook is set; the KILL actions do not
 * return. */
stet_sys_action stet_sys_ask(stet_sys_call call, const char *path, int *error_number);
/* The same in two halves, around the call: the first returns KILL_AFTER, and the second carries it out. */
stet_sys_action stet_sys_before(stet_sys_call call, const char *path, int fd, int *error_number);
void stet_sys_after(stet_sys_action action);

int stet_sys_open(const char *path, int flags, mode_t mode); /* always O_CLOEXEC */
int stet_sys_openat(int dir, const char *path, int flags, mode_t mode);
/* If set: may the descriptor not be closed now? True: it is taken over (db/held.c). Any thread. */
extern bool (*_Atomic stet_sys_keeps)(int fd);
int stet_sys_close(int fd); /* closes it even if it fails, as Linux does: never called twice */
ssize_t stet_sys_read(int fd, void *bytes, size_t len);
ssize_t stet_sys_pread(int fd, void *bytes, size_t len, off_t at);
ssize_t stet_sys_write(int fd, const void *bytes, size_t len);
ssize_t stet_sys_pwrite(int fd, const void *bytes, size_t len, off_t at);
int stet_sys_fsync(int fd);
int stet_sys_fdatasync(int fd);
int stet_sys_ftruncate(int fd, off_t len);
int stet_sys_rename(const char *from, const char *to);
/* Rename that fails with EEXIST instead of replacing; uses link and unlink where the file system lacks renameat2. */
int stet_sys_rename_new(const char *from, const char *to);
int stet_sys_link(const char *from, const char *to);
int stet_sys_symlink(const char *target, const char *path);
int stet_sys_unlink(const char *path);
int stet_sys_mkdir(const char *path, mode_t mode);
int stet_sys_rmdir(const char *path);
int stet_sys_unlinkat(int dir, const char *name, int flags); /* with AT_REMOVEDIR the hook sees a rmdir */
int stet_sys_stat(const char *path, struct stat *out);
int stet_sys_lstat(const char *path, struct stat *out);
int stet_sys_fstat(int fd, struct stat *out);
int stet_sys_lstatat(int dir, const char *path, struct stat *out); /* relative to an open directory */
int stet_sys_chmod(const char *path, mode_t mode);
DIR *stet_sys_opendir(const char *path);
struct dirent *stet_sys_readdir(DIR *dir); /* NULL with errno 0 at the end */
int stet_sys_fcntl_lock(int fd, int command, struct flock *lock);

#endif
