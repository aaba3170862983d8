/* held.c - descriptors of database files that are not SQLite's. Part of db.h.
 *
 * SQLite's locks belong to the process: when the process closes any descriptor of a file, it loses all locks that it
 * holds there. Another process that closes the database then considers itself the last one, and removes the log that
 * this process still writes to: commits are lost, and the file may be corrupt. So code that reads the file of a
 * database as bytes gets a descriptor from here, which stays open while the process has a connection to that file.
 *
 * Invariants
 *   1. A connection is counted before it takes its first lock, until SQLite has closed it.
 *   2. A descriptor of a file that has connections is not closed; there is at most one for each file.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#include "base/vec.h"
#include "db/internal.h"
#include "os/file.h"

struct db_file {
    dev_t device;
    ino_t inode;
    size_t connections, copies; /* both 0: nobody needs this */
    int descriptor;             /* -1: none yet */
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
        stet_sys_close(f->descriptor);
    for (size_t i = 0; i < files.len; i++)
        if (files.at[i] == f)
            files.at[i] = files.at[--files.len];
    stet_free(f);
    if (files.len == 0)
        stet_vec_release(&files);
}

db_file *db_file_connected(const char *path) {
    struct stat st;
    db_file *f = NULL;
    pthread_mutex_lock(&lock);
    if (stat(path, &st) == 0) {
        f = find(&st);
        f->connections++;
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

/* The file that `path` names, open. */
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
