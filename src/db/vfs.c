/* vfs.c - SQLite's file operations through the hook of os/sys.h, so that a test can fail or kill at each one.
 *
 * This is a shim over SQLite's own unix layer: each operation that matters asks the hook first. The shim is registered
 * when a database is opened while the hook is set. Without the hook SQLite's own layer is used, at no cost.
 */

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "db/internal.h"
#include "os/sys.h"

typedef struct shim_file {
    sqlite3_file base;
    const char *path; /* SQLite keeps it as long as the file is open; NULL for a temporary one */
    sqlite3_file *real;
} shim_file;

static sqlite3_vfs *under(sqlite3_vfs *vfs) {
    return vfs->pAppData;
}

static sqlite3_file *real(sqlite3_file *file) {
    return ((shim_file *)file)->real;
}

/* Asks the hook. True: do not make the call, but return *rc. SQLite has a code of its own for a full disk. */
static bool faulted(sqlite3_file *file, stet_sys_call call, int code, int *rc, stet_sys_action *action) {
    int error_number = EIO;
    *action = stet_sys_before(call, ((shim_file *)file)->path, -1, &error_number);
    *rc = error_number == ENOSPC || error_number == EDQUOT ? SQLITE_FULL : code;
    return *action == STET_SYS_FAIL;
}

static int shim_close(sqlite3_file *file) {
    sqlite3_file *r = real(file);
    int rc = r->pMethods ? r->pMethods->xClose(r) : SQLITE_OK;
    sqlite3_free(r);
    return rc;
}

static int shim_read(sqlite3_file *file, void *to, int amount, sqlite3_int64 at) {
    int rc;
    stet_sys_action action;
    if (faulted(file, STET_SYS_READ, SQLITE_IOERR_READ, &rc, &action))
        return rc;
    rc = real(file)->pMethods->xRead(real(file), to, amount, at);
    stet_sys_after(action);
    return rc;
}

static int shim_write(sqlite3_file *file, const void *from, int amount, sqlite3_int64 at) {
    int rc;
    stet_sys_action action;
    if (faulted(file, STET_SYS_WRITE, SQLITE_IOERR_WRITE, &rc, &action))
        return rc;
    if (action == STET_SYS_SHORT) { /* a torn write: half of it is stored, and the call fails */
        int half = real(file)->pMethods->xWrite(real(file), from, amount / 2, at);
        return half == SQLITE_OK ? SQLITE_IOERR_WRITE : half;
    }
    rc = real(file)->pMethods->xWrite(real(file), from, amount, at);
    stet_sys_after(action);
    return rc;
}

static int shim_truncate(sqlite3_file *file, sqlite3_int64 size) {
    int rc;
    stet_sys_action action;
    if (faulted(file, STET_SYS_TRUNCATE, SQLITE_IOERR_TRUNCATE, &rc, &action))
        return rc;
    rc = real(file)->pMethods->xTruncate(real(file), size);
    stet_sys_after(action);
    return rc;
}

static int shim_sync(sqlite3_file *file, int flags) {
    int rc;
    stet_sys_action action;
    if (faulted(file, STET_SYS_FSYNC, SQLITE_IOERR_FSYNC, &rc, &action))
        return rc == SQLITE_FULL ? SQLITE_IOERR_FSYNC : rc;
    rc = real(file)->pMethods->xSync(real(file), flags);
    stet_sys_after(action);
    return rc;
}

static int shim_file_size(sqlite3_file *file, sqlite3_int64 *size) {
    int rc;
    stet_sys_action action;
    if (faulted(file, STET_SYS_STAT, SQLITE_IOERR_FSTAT, &rc, &action))
        return SQLITE_IOERR_FSTAT;
    return real(file)->pMethods->xFileSize(real(file), size);
}

static int shim_lock(sqlite3_file *file, int level) {
    int rc;
    stet_sys_action action;
    if (faulted(file, STET_SYS_LOCK, SQLITE_IOERR_LOCK, &rc, &action))
        return SQLITE_IOERR_LOCK;
    return real(file)->pMethods->xLock(real(file), level);
}

static int shim_unlock(sqlite3_file *file, int level) {
    return real(file)->pMethods->xUnlock(real(file), level);
}

static int shim_check_reserved(sqlite3_file *file, int *out) {
    return real(file)->pMethods->xCheckReservedLock(real(file), out);
}

static int shim_control(sqlite3_file *file, int op, void *arg) {
    return real(file)->pMethods->xFileControl(real(file), op, arg);
}

static int shim_sector_size(sqlite3_file *file) {
    return real(file)->pMethods->xSectorSize(real(file));
}

static int shim_characteristics(sqlite3_file *file) {
    return real(file)->pMethods->xDeviceCharacteristics(real(file));
}

static int shim_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **out) {
    int rc;
    stet_sys_action action;
    if (faulted(file, STET_SYS_MMAP, SQLITE_IOERR_SHMMAP, &rc, &action))
        return SQLITE_IOERR_SHMMAP;
    return real(file)->pMethods->xShmMap(real(file), page, size, extend, out);
}

static int shim_shm_lock(sqlite3_file *file, int offset, int n, int flags) {
    int rc;
    stet_sys_action action;
    if (flags & SQLITE_SHM_LOCK && faulted(file, STET_SYS_LOCK, SQLITE_IOERR_SHMLOCK, &rc, &action))
        return SQLITE_IOERR_SHMLOCK;
    return real(file)->pMethods->xShmLock(real(file), offset, n, flags);
}

static void shim_shm_barrier(sqlite3_file *file) {
    real(file)->pMethods->xShmBarrier(real(file));
}

static int shim_shm_unmap(sqlite3_file *file, int delete) {
    return real(file)->pMethods->xShmUnmap(real(file), delete);
}

/* No memory mapping in the shim, so that the hook sees every read. */
static int shim_fetch(sqlite3_file *file, sqlite3_int64 at, int amount, void **out) {
    (void)file, (void)at, (void)amount;
    *out = NULL;
    return SQLITE_OK;
}

static int shim_unfetch(sqlite3_file *file, sqlite3_int64 at, void *page) {
    (void)file, (void)at, (void)page;
    return SQLITE_OK;
}

static const sqlite3_io_methods shim_methods = {
    .iVersion = 3,
    .xClose = shim_close,
    .xRead = shim_read,
    .xWrite = shim_write,
    .xTruncate = shim_truncate,
    .xSync = shim_sync,
    .xFileSize = shim_file_size,
    .xLock = shim_lock,
    .xUnlock = shim_unlock,
    .xCheckReservedLock = shim_check_reserved,
    .xFileControl = shim_control,
    .xSectorSize = shim_sector_size,
    .xDeviceCharacteristics = shim_characteristics,
    .xShmMap = shim_shm_map,
    .xShmLock = shim_shm_lock,
    .xShmBarrier = shim_shm_barrier,
    .xShmUnmap = shim_shm_unmap,
    .xFetch = shim_fetch,
    .xUnfetch = shim_unfetch,
};

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags) {
    shim_file *f = (shim_file *)file;
    f->base.pMethods = NULL;
    int error_number = EIO;
    stet_sys_action action = stet_sys_before(STET_SYS_OPEN, name, -1, &error_number);
    if (action == STET_SYS_FAIL)
        return error_number == ENOSPC || error_number == EDQUOT ? SQLITE_FULL : SQLITE_CANTOPEN;
    f->path = name;
    f->real = sqlite3_malloc(under(vfs)->szOsFile);
    if (!f->real)
        return SQLITE_NOMEM;
    memset(f->real, 0, (size_t)under(vfs)->szOsFile);
    int rc = under(vfs)->xOpen(under(vfs), name, f->real, flags, out_flags);
    stet_sys_after(action);
    if (f->real->pMethods)
        f->base.pMethods = &shim_methods;
    else
        sqlite3_free(f->real);
    return rc;
}

static int shim_delete(sqlite3_vfs *vfs, const char *name, int sync) {
    int error_number = EIO;
    stet_sys_action action = stet_sys_before(STET_SYS_UNLINK, name, -1, &error_number);
    if (action == STET_SYS_FAIL)
        return SQLITE_IOERR_DELETE;
    int rc = under(vfs)->xDelete(under(vfs), name, sync);
    stet_sys_after(action);
    return rc;
}

static int shim_access(sqlite3_vfs *vfs, const char *name, int flags, int *out) {
    int error_number = EIO;
    if (stet_sys_ask(STET_SYS_STAT, name, &error_number) == STET_SYS_FAIL)
        return SQLITE_IOERR_ACCESS;
    return under(vfs)->xAccess(under(vfs), name, flags, out);
}

static int shim_full_path(sqlite3_vfs *vfs, const char *name, int size, char *out) {
    return under(vfs)->xFullPathname(under(vfs), name, size, out);
}

static int shim_randomness(sqlite3_vfs *vfs, int size, char *out) {
    return under(vfs)->xRandomness(under(vfs), size, out);
}

static int shim_sleep(sqlite3_vfs *vfs, int microseconds) {
    return under(vfs)->xSleep(under(vfs), microseconds);
}

static int shim_time(sqlite3_vfs *vfs, double *out) {
    return under(vfs)->xCurrentTime(under(vfs), out);
}

static int shim_time64(sqlite3_vfs *vfs, sqlite3_int64 *out) {
    return under(vfs)->xCurrentTimeInt64(under(vfs), out);
}

static int shim_last_error(sqlite3_vfs *vfs, int size, char *out) {
    return under(vfs)->xGetLastError(under(vfs), size, out);
}

static sqlite3_vfs shim = {
    .iVersion = 2,
    .szOsFile = sizeof(shim_file),
    .zName = "stet",
    .xOpen = shim_open,
    .xDelete = shim_delete,
    .xAccess = shim_access,
    .xFullPathname = shim_full_path,
    .xRandomness = shim_randomness,
    .xSleep = shim_sleep,
    .xCurrentTime = shim_time,
    .xGetLastError = shim_last_error,
    .xCurrentTimeInt64 = shim_time64,
};

static bool registered;

static void register_shim(void) {
    sqlite3_vfs *plain = sqlite3_vfs_find(NULL);
    if (!plain)
        return;
    shim.mxPathname = plain->mxPathname;
    shim.pAppData = plain;
    registered = sqlite3_vfs_register(&shim, 0) == SQLITE_OK;
}

const char *db_vfs_name(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!stet_sys_hook)
        return NULL;
    pthread_once(&once, register_shim);
    return registered ? shim.zName : NULL;
}
