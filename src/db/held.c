/* held.c - descriptors of database files that are not SQLite's. Part of db.h.
 *
 * SQLite's locks belong to the process: when the process closes any descriptor of a file, it loses all locks that it
 * holds there. Another process that closes the database then considers itself the last one, and removes the log that
 * this process still writes to: commits are lost, and the file may be corrupt. So code that reads the file of a
 * database as bytes gets a descriptor from here, which stays open while the process has a connection to that file. Other
 * code that happens on such a file, by a link for example, must not open it (stet_db_is_open); if it has, its descriptor
 * stays open as well (stet_sys_keeps).
 *
 * Invariants
 *   1. A connection is counted before it takes its first lock, until SQLite has closed it.
 *   2. A descriptor of a file that has connections is not closed; there is at most one for each file.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "base/vec.h"
#include "db/internal.h"
#include "os/file.h"

#define INDEX_BLOCK 32768 /* the size of a file of shared memory is a multiple of it */

struct db_file {
    dev_t device;
    ino_t inode;
    char *index;                /* path of the file beside it on which SQLite holds locks as well; NULL: not known */
    size_t connections, copies; /* both 0: the entry can be removed */
    int descriptor;             /* for copying; -1: none yet */
    STET_VEC(int) kept;         /* descriptors of the file or its index that other code is done with */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static STET_VEC(db_file *) files; /* guarded by `lock` */

static db_file *find(const struct stat *st) {
    for (size_t i = 0; i < files.len; i++)
        if (files.at[i]->device == st->st_dev && files.at[i]->inode == st->st_ino)
            return files.at[i];
    db_file *f = stet_alloc_zero(sizeof *f);
    *f = (db_file){.device = st->st_dev, .inode = st->st_ino, .descriptor = -1};
    *stet_vec_add(&files) = f;
    return f;
}

static void forget_unused(db_file *f) {
    if (f->connections > 0 || f->copies > 0)
        return;
    if (f->descriptor >= 0)
        close(f->descriptor);
    for (size_t i = 0; i < f->kept.len; i++)
        close(f->kept.at[i]);
    stet_vec_release(&f->kept);
    stet_free(f->index);
    for (size_t i = 0; i < files.len; i++)
        if (files.at[i] == f)
            files.at[i] = files.at[--files.len];
    stet_free(f);
    if (files.len == 0)
        stet_vec_release(&files);
}

/* The database, with a connection, to which this file or index belongs; NULL: none. The caller holds the lock. */
static db_file *connected(const struct stat *st) {
    for (size_t i = 0; i < files.len; i++) {
        struct stat index;
        db_file *f = files.at[i];
        if (f->connections == 0)
            continue;
        if (f->device == st->st_dev && f->inode == st->st_ino)
            return f;
        if (f->device == st->st_dev && f->index && st->st_size > 0 && st->st_size % INDEX_BLOCK == 0 &&
            stat(f->index, &index) == 0 && index.st_dev == st->st_dev && index.st_ino == st->st_ino)
            return f;
    }
    return NULL;
}

bool stet_db_is_open(const struct stat *st) {
    pthread_mutex_lock(&lock);
    bool open = connected(st) != NULL;
    pthread_mutex_unlock(&lock);
    return open;
}

/* The hook of stet_sys_close: keeps a descriptor open if closing it would drop locks. */
static bool keeps(int fd) {
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    pthread_mutex_lock(&lock);
    db_file *f = connected(&st);
    if (f)
        *stet_vec_add(&f->kept) = fd;
    pthread_mutex_unlock(&lock);
    return f != NULL;
}

db_file *db_file_connected(const char *path) {
    struct stat st;
    db_file *f = NULL;
    pthread_mutex_lock(&lock);
    if (stat(path, &st) == 0) {
        f = find(&st);
        f->connections++;
        if (!f->index)
            f->index = stet_asprintf("%s-shm", path);
        stet_sys_keeps = keeps;
    }
    pthread_mutex_unlock(&lock);
    return f;
}

void db_file_disconnected(db_file *f) {
    if (!f)
        return;
    pthread_mutex_lock(&lock);
    f->connections--;
    forget_unused(f);
    pthread_mutex_unlock(&lock);
}

/* Opens the file that `path` names, for copying. */
static stet_status begin_copy(const char *path, db_file **out, stet_error *err) {
    struct stat st;
    db_file *f = NULL;
    int error_number = 0;
    pthread_mutex_lock(&lock);
    if (stet_sys_stat(path, &st) != 0) {
        error_number = errno;
    } else {
        f = find(&st);
        f->copies++;
        if (f->descriptor < 0 && (f->descriptor = stet_sys_open(path, O_RDONLY | O_NOCTTY, 0)) < 0) {
            error_number = errno;
            f->copies--;
            forget_unused(f);
        }
    }
    pthread_mutex_unlock(&lock);
    *out = f;
    return error_number ? stet_fail_errno(err, error_number, "%s: cannot open", path) : STET_OK;
}

static void end_copy(db_file *f) {
    pthread_mutex_lock(&lock);
    f->copies--;
    forget_unused(f);
    pthread_mutex_unlock(&lock);
}

stet_status stet_db_copy_file(const char *from, const char *to, stet_error *err) {
    db_file *f;
    stet_status status = begin_copy(from, &f, err);
    if (status != STET_OK)
        return status;
    status = stet_file_copy_open(f->descriptor, from, to, 0600, err);
    end_copy(f);
    return status;
}
