/* lock.c - locks between processes and threads. See lock.h.
 *
 * Fairness. A byte-range lock that is released and taken again at once nearly always goes to the process that just
 * released it: with eight writers the unluckiest one waits for seconds. So there is a second byte, the gate. A process
 * that finds the lock wanted by another takes the gate first. Only the holder of the gate tries the lock, and it
 * releases the gate once it has the lock. So a process that releases the lock can't overtake the one at the gate, and
 * the others compete for the gate each time it opens.
 *
 * Waiting means trying again after a short sleep, not F_OFD_SETLKW: that call can't be given up after a time without a
 * signal, and a library has no signal to spare. The process at the gate sleeps only briefly, since there is just one.
 *
 * Invariants
 *   1. held: exactly the ranges of `mode` are locked by our open file description, and not the gate.
 *   2. not held: our open file description locks nothing. One F_UNLCK over the whole file ensures that.
 */

#include "os/lock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "os/clock.h"
#include "os/sys.h"

/* The lock bytes of SQLite (from its os.h). */
enum {
    PENDING_BYTE = 0x40000000,
    RESERVED_BYTE = PENDING_BYTE + 1,
    SHARED_FIRST = PENDING_BYTE + 2,
    SHARED_SIZE = 510,
    PLAIN_BYTE = 0,
    GATE_BYTE = 1, /* SQLite never locks it */
};

/* Sleeps between tries, in microseconds. */
enum {
    GATE_HOLDER_US = 60,    /* the process at the gate, which is next */
    QUEUE_US = 300,         /* the others; a random part of up to the same length is added */
    LONG_AFTER_US = 500000, /* after this time the holder is known to be slow, so that checking less often is enough */
    LONG_GATE_HOLDER_US = 2000,
    LONG_QUEUE_US = 10000,
};

struct stet_lock {
    char *path;
    int fd;
    stet_lock_range range;
    stet_lock_mode mode; /* if held */
    bool held, writable;
};

stet_status stet_lock_open(const char *path, stet_lock_range range, stet_lock **out, stet_error *err) {
    bool writable = true;
    int fd = stet_sys_open(path, O_RDWR | O_CREAT | O_NOCTTY, 0644);
    if (fd < 0 && (errno == EACCES || errno == EROFS || errno == EPERM)) {
        int saved = errno;
        writable = false;
        fd = stet_sys_open(path, O_RDONLY | O_NOCTTY, 0);
        if (fd < 0)
            errno = saved; /* the reason why it can't be created says more than that it is absent */
    }
    if (fd < 0)
        return stet_fail_errno(err, errno, "%s: cannot open the lock file", path);
    stet_lock *l = stet_alloc_zero(sizeof *l);
    *l = (stet_lock){.path = stet_strdup(path), .fd = fd, .range = range, .writable = writable};
    *out = l;
    return STET_OK;
}

stet_status stet_lock_open_read(const char *path, stet_lock_range range, stet_lock **out, stet_error *err) {
    int fd = stet_sys_open(path, O_RDONLY | O_NOCTTY, 0);
    if (fd < 0)
        return stet_fail_errno(err, errno, "%s: cannot open the lock file", path);
    stet_lock *l = stet_alloc_zero(sizeof *l);
    *l = (stet_lock){.path = stet_strdup(path), .fd = fd, .range = range};
    *out = l;
    return STET_OK;
}

/* Tries to lock a range. 0: locked; 1: another process holds it; -1: errno. */
static int try_range(stet_lock *l, short type, off_t start, off_t len) {
    struct flock f = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
    if (stet_sys_fcntl_lock(l->fd, F_OFD_SETLK, &f) == 0)
        return 0;
    return errno == EAGAIN || errno == EACCES ? 1 : -1;
}

/* Unlocks all ranges at once. This fails only for an invalid descriptor, so the hook is not asked. */
static void unlock_all(stet_lock *l) {
    struct flock f = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    int r = fcntl(l->fd, F_OFD_SETLK, &f);
    assert(r == 0);
    (void)r;
}

static void unlock_range(stet_lock *l, off_t start, off_t len) {
    struct flock f = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
    int r = fcntl(l->fd, F_OFD_SETLK, &f);
    assert(r == 0);
    (void)r;
}

/* SHARED as in SQLite: first a read lock on PENDING, which proves that no writer waits, then the actual read lock. */
static int try_sqlite_shared(stet_lock *l) {
    int r = try_range(l, F_RDLCK, PENDING_BYTE, 1);
    if (r == 0) {
        r = try_range(l, F_RDLCK, SHARED_FIRST, SHARED_SIZE);
        unlock_range(l, PENDING_BYTE, 1);
    }
    return r;
}

/* EXCLUSIVE as in SQLite. While RESERVED and PENDING are held, no new reader gets in; so they are kept (*pending) until
 * the last readers leave. In every earlier state everything is released before waiting: two processes that wait while
 * holding SHARED would wait for each other for ever. */
static int try_sqlite_exclusive(stet_lock *l, bool *pending) {
    int r = 0;
    if (!*pending) {
        r = try_sqlite_shared(l);
        if (r == 0)
            r = try_range(l, F_WRLCK, RESERVED_BYTE, 1);
        if (r == 0)
            r = try_range(l, F_WRLCK, PENDING_BYTE, 1);
        if (r != 0) {
            unlock_range(l, PENDING_BYTE, SHARED_SIZE + 2);
            return r;
        }
        *pending = true;
    }
    return try_range(l, F_WRLCK, SHARED_FIRST, SHARED_SIZE);
}

static int try_lock(stet_lock *l, stet_lock_mode mode, bool *pending) {
    if (l->range == STET_LOCK_PLAIN)
        return try_range(l, mode == STET_LOCK_SHARED ? F_RDLCK : F_WRLCK, PLAIN_BYTE, 1);
    return mode == STET_LOCK_SHARED ? try_sqlite_shared(l) : try_sqlite_exclusive(l, pending);
}

static bool gate_is_closed(stet_lock *l) {
    struct flock f = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = GATE_BYTE, .l_len = 1};
    return fcntl(l->fd, F_OFD_GETLK, &f) == 0 && f.l_type != F_UNLCK;
}

static void sleep_us(int64_t us) {
    struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = (us % 1000000) * 1000};
    nanosleep(&t, NULL); /* a signal may end the sleep early, which is harmless */
}

/* Waits for the lock. 1: `deadline` has passed (monotonic microseconds; negative: none). */
static int wait_for(stet_lock *l, stet_lock_mode mode, int64_t deadline) {
    int64_t started = stet_clock_monotonic_us();
    bool at_gate = false, pending = false;
    uint32_t lots;
    stet_random(&lots, sizeof lots);
    for (;;) {
        int r;
        if (!at_gate && l->writable) {
            r = try_range(l, F_WRLCK, GATE_BYTE, 1);
            at_gate = r == 0;
        } else {
            r = 0; /* a read-only handle can't take the gate: it tries to take the lock itself, shared */
        }
        if (r == 0) {
            r = try_lock(l, mode, &pending);
            if (r == 0 && at_gate)
                unlock_range(l, GATE_BYTE, 1);
        }
        if (r <= 0)
            return r;
        int64_t now = stet_clock_monotonic_us();
        if (deadline >= 0 && now >= deadline)
            return 1;
        bool slow = now - started > LONG_AFTER_US;
        int64_t base = at_gate ? (slow ? LONG_GATE_HOLDER_US : GATE_HOLDER_US) : (slow ? LONG_QUEUE_US : QUEUE_US);
        lots = lots * 1664525u + 1013904223u;
        int64_t pause = base + (at_gate ? 0 : (int64_t)(lots >> 8) % base);
        if (deadline >= 0 && pause > deadline - now)
            pause = deadline - now;
        sleep_us(pause);
    }
}

stet_status stet_lock_take(stet_lock *l, stet_lock_mode mode, int timeout_ms, stet_error *err) {
    assert(!l->held);
    if (mode == STET_LOCK_EXCLUSIVE && !l->writable) {
        stet_fail(err, STET_IO, "%s: cannot be locked for writing: the file is read-only", l->path);
        stet_hint(err, "make the file and its directory writable for this user");
        return STET_IO;
    }
    bool pending = false;
    int r = 1;
    /* Try at once, unless another process is already waiting. If none is, fairness costs this one check of the gate. */
    if (!gate_is_closed(l) || timeout_ms == 0)
        r = try_lock(l, mode, &pending);
    if (r == 1 && timeout_ms != 0) {
        unlock_all(l);
        int64_t deadline = timeout_ms < 0 ? -1 : stet_clock_monotonic_us() + (int64_t)timeout_ms * 1000;
        r = wait_for(l, mode, deadline);
    }
    if (r == 0) {
        l->held = true;
        l->mode = mode;
        return STET_OK;
    }
    int saved = errno;
    unlock_all(l);
    if (r < 0)
        return stet_fail_errno(err, saved, "%s: cannot lock", l->path);
    if (!err)
        return STET_BUSY; /* the caller ignores the message, so that the holder need not be found */
    long holder = stet_lock_holder(l);
    char by[64] = "another process";
    if (holder == (long)getpid())
        snprintf(by, sizeof by, "this process (%ld)", holder);
    else if (holder > 0)
        snprintf(by, sizeof by, "process %ld", holder);
    if (timeout_ms == 0)
        stet_fail(err, STET_BUSY, "%s: locked by %s", l->path, by);
    else
        stet_fail(err, STET_BUSY, "%s: still locked by %s after %d ms", l->path, by, timeout_ms);
    stet_hint(err, "wait for it to finish, or end it");
    return STET_BUSY;
}

void stet_lock_drop(stet_lock *l) {
    if (!l->held)
        return;
    unlock_all(l);
    l->held = false;
}

bool stet_lock_held(const stet_lock *l) {
    return l->held;
}

void stet_lock_close(stet_lock *l) {
    if (!l)
        return;
    stet_sys_close(l->fd); /* the last close of an open file description drops its locks */
    stet_free(l->path);
    stet_free(l);
}

/* Does descriptor `fd` of process `pid`, known to be open on our file, hold a lock? The kernel says so in fdinfo:
 *     lock:   1: OFDLCK  ADVISORY  WRITE -1 fd:01:1234 0 0 */
static bool holds(const char *pid, const char *fd) {
    char path[600], text[4096];
    snprintf(path, sizeof path, "/proc/%s/fdinfo/%s", pid, fd);
    int f = open(path, O_RDONLY | O_CLOEXEC);
    if (f < 0)
        return false;
    ssize_t n = read(f, text, sizeof text - 1);
    close(f);
    if (n <= 0)
        return false;
    text[n] = 0;
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        unsigned long long start;
        const char *inode = strrchr(line, ':');
        /* A lock on the gate alone belongs to a process that waits. */
        if (strncmp(line, "lock:", 5) == 0 && inode && sscanf(inode, ":%*u %llu", &start) == 1 && start != GATE_BYTE)
            return true;
    }
    return false;
}

/* Open-file-description locks have no pid, so the holder is found by the file that it has open. Only processes that
 * this user may inspect are found. */
static long find_holder(stet_lock *l) {
    struct stat ours, other;
    long found = 0;
    DIR *proc = opendir("/proc");
    if (!proc || fstat(l->fd, &ours) != 0) {
        if (proc)
            closedir(proc);
        return 0;
    }
    for (struct dirent *p; !found && (p = readdir(proc));) {
        char *end;
        long pid = strtol(p->d_name, &end, 10);
        if (*end || pid <= 0)
            continue;
        char path[320];
        snprintf(path, sizeof path, "/proc/%s/fd", p->d_name);
        DIR *fds = opendir(path);
        if (!fds)
            continue;
        for (struct dirent *f; !found && (f = readdir(fds));) {
            if (f->d_name[0] == '.' || (pid == (long)getpid() && atoi(f->d_name) == l->fd))
                continue;
            if (fstatat(dirfd(fds), f->d_name, &other, 0) == 0 && other.st_ino == ours.st_ino &&
                other.st_dev == ours.st_dev && holds(p->d_name, f->d_name))
                found = pid;
        }
        closedir(fds);
    }
    closedir(proc);
    return found;
}

long stet_lock_holder(stet_lock *l) {
    bool sqlite = l->range == STET_LOCK_SQLITE;
    struct flock f = {.l_type = F_WRLCK,
                      .l_whence = SEEK_SET,
                      .l_start = sqlite ? PENDING_BYTE : PLAIN_BYTE,
                      .l_len = sqlite ? SHARED_SIZE + 2 : 1};
    if (fcntl(l->fd, F_OFD_GETLK, &f) != 0 || f.l_type == F_UNLCK)
        return 0;
    return f.l_pid > 0 ? (long)f.l_pid : find_holder(l);
}
