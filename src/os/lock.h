/* lock.h - byte-range locks between processes and threads (open-file-description locks, which belong to the open file
 * and not to the process).
 *
 *     stet_lock *l;
 *     status = stet_lock_open("x.lock", STET_LOCK_PLAIN, &l, &err);
 *     status = stet_lock_take(l, STET_LOCK_EXCLUSIVE, 5000, &err);    // STET_BUSY after 5 s, naming the file and,
 * where known, the holder
 *     ...
 *     stet_lock_drop(l);
 *     stet_lock_close(l);
 *
 * The range is SQLite's (pending, reserved and shared bytes at 1 GiB) for STET_LOCK_SQLITE files, taken in SQLite's own
 * order, so that a process which uses the same file as a SQLite database (rollback-journal mode) is excluded, and
 * excludes us; else one byte at 0. */
#ifndef STET_OS_LOCK_H
#define STET_OS_LOCK_H

#include "base/error.h"

typedef struct stet_lock stet_lock;
typedef enum stet_lock_mode { STET_LOCK_SHARED, STET_LOCK_EXCLUSIVE } stet_lock_mode;
typedef enum stet_lock_range { STET_LOCK_PLAIN, STET_LOCK_SQLITE } stet_lock_range;

/* Opens or creates the lock file (0644; an unwritable one is opened for reading and can be taken shared). */
STET_CHECKED stet_status stet_lock_open(const char *path, stet_lock_range range, stet_lock **out, stet_error *err);
/* For those who only look and so change no file, not even this one: it is not created, and can be taken shared. */
STET_CHECKED stet_status stet_lock_open_read(const char *path, stet_lock_range range, stet_lock **out, stet_error *err);
/* timeout_ms 0 tries once, negative waits for ever. Taking it again while held is a bug: asserted. */
STET_CHECKED stet_status stet_lock_take(stet_lock *l, stet_lock_mode mode, int timeout_ms, stet_error *err);
void stet_lock_drop(stet_lock *l);
bool stet_lock_held(const stet_lock *l);
void stet_lock_close(stet_lock *l); /* drops it too; NULL is fine */
/* pid of a process that holds a conflicting lock, 0 if none or not told. */
long stet_lock_holder(stet_lock *l);

#endif
