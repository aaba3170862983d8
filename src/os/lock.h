/* lock.h - byte-range locks between processes and threads.
 *
 *     stet_lock *l;
 *     stet_status status = stet_lock_open("x.lock", STET_LOCK_PLAIN, &l, &err);
 *     if (status != STET_OK)
 *         return status;
 *     status = stet_lock_take(l, STET_LOCK_EXCLUSIVE, 5000, &err); // STET_BUSY after 5 s, naming file and holder
 *     if (status == STET_OK)
 *         stet_lock_drop(l);
 *     stet_lock_close(l);
 *
 * These are open-file-description locks: they belong to the open file and not to the process.
 *
 * STET_LOCK_PLAIN locks one byte at 0. STET_LOCK_SQLITE locks SQLite's range (pending, reserved and shared bytes at 1
 * GiB) in SQLite's own order. So a process that uses the same file as a SQLite database (in rollback-journal mode) is
 * excluded, and excludes us.
 */
#ifndef STET_OS_LOCK_H
#define STET_OS_LOCK_H

#include "base/error.h"

typedef struct stet_lock stet_lock;
typedef enum stet_lock_mode { STET_LOCK_SHARED, STET_LOCK_EXCLUSIVE } stet_lock_mode;
typedef enum stet_lock_range { STET_LOCK_PLAIN, STET_LOCK_SQLITE } stet_lock_range;

/* Opens or creates the lock file (0644). A file that can't be written is opened for reading, and can be taken shared.
 */
STET_CHECKED stet_status stet_lock_open(const char *path, stet_lock_range range, stet_lock **out, stet_error *err);
/* For readers that must not change any file: the lock file is not created, and can only be taken shared. */
STET_CHECKED stet_status stet_lock_open_read(const char *path, stet_lock_range range, stet_lock **out, stet_error *err);
/* timeout_ms 0 tries once, negative waits for ever. Taking a lock that is already held is a bug: asserted. */
STET_CHECKED stet_status stet_lock_take(stet_lock *l, stet_lock_mode mode, int timeout_ms, stet_error *err);
void stet_lock_drop(stet_lock *l);
bool stet_lock_held(const stet_lock *l);
void stet_lock_close(stet_lock *l); /* drops it too; NULL is fine */
/* pid of a process that holds a conflicting lock; 0 if there is none or it is not known. */
long stet_lock_holder(stet_lock *l);

#endif
