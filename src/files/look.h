/* look.h - what a file is now: its hash, size and mode, found with as little reading as is safe.
 *
 *     stet_look now;
 *     status = stet_look_at(root_fd, "src/a.c", &known, &now, &err);   // known: an earlier look, or NULL
 *     if (!stet_look_same(&known, &now)) ...
 *
 * A file whose size, times, inode and mode are those of an earlier look is not read again, unless that look came so
 * soon after the file's last change that a change right after it could have left the same times (`racy`): such a file
 * is read again, until a look finds it old enough.
 *
 * A symbolic link is followed: a file is what a program that opens it reads. A directory counts as everything in it,
 * links in it as themselves; `.stet` and `.git` in it do not count. What is there and is neither (a device, a pipe) is
 * STET_INVALID. Nothing there: no error, `there` is false.
 *
 * Functions here have no state: any thread may call them. */
#ifndef STET_FILES_LOOK_H
#define STET_FILES_LOOK_H

#include <sys/stat.h>

#include "base/hash.h"

#define STET_LOOK_FILE       0100644u
#define STET_LOOK_EXECUTABLE 0100755u
#define STET_LOOK_DIRECTORY  0040755u

typedef struct stet_look {
    stet_hash hash;
    int64_t mtime, ctime; /* nanoseconds since 1970; of a directory: a fingerprint of what is in it */
    uint64_t inode, size; /* of a directory: files in it */
    uint32_t mode;        /* one of the above; 0: not there */
    uint32_t flags;
} stet_look;

enum { STET_LOOK_RACY = 1 };

STET_CHECKED stet_status stet_look_at(int root_fd, const char *path, const stet_look *known, stet_look *out,
                                      stet_error *err);
/* A file that was just put in place by somebody who knows its hash, and what stat said of it before: it is not read,
 * unless it is another one by now. */
STET_CHECKED stet_status stet_look_placed(int root_fd, const char *path, stet_hash hash, const struct stat *as,
                                          stet_look *out, stet_error *err);
static inline bool stet_look_there(const stet_look *l) {
    return l->mode != 0;
}
/* The same content and mode (or both not there)? */
bool stet_look_same(const stet_look *a, const stet_look *b);
/* {"hash","mode","size"}; mode as in Git: 420 (0644), 493 (0755), or 16877 for a directory. */
stet_value stet_look_value(const stet_look *l);
/* The other way: hash, size and mode alone. False if it is no such value. */
bool stet_look_of_value(stet_value v, stet_look *out);

#endif
