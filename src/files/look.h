/* look.h - what a file is now: its hash, size and mode, with as little reading as is safe.
 *
 *     stet_look now;
 *     stet_status status = stet_look_at(root_fd, "src/a.c", &known, &now, &err); // known: an earlier look, or NULL
 *     if (status == STET_OK && !stet_look_same(&known, &now))
 *         changed++;
 *
 * A file whose size, times, inode and mode are those of an earlier look is not read again. The exception is a look so
 * soon after the file's last change that another change right after it could have left the same times (`racy`): such a
 * file is read again, until a look finds it old enough.
 *
 * What counts:
 *   - A symbolic link counts twice: as what a program that opens it reads and, in `link`, by its target. A dangling
 *     link does not exist.
 *   - A directory counts as everything in it, including empty directories, but not `.stet` and `.git`. A link in it
 *     counts as itself and as the file that it leads to, or as everything in the directory of the project that it leads
 *     to.
 *   - Anything else (a device, a pipe, a socket) does not exist. Nor does a file of stet's in a directory of its own
 *     (project.h), or a database that this process has open.
 *   - A file or directory that can't be read counts by its stat.
 *   - If nothing is there, that is not an error: stet_look_there is false.
 *
 * Functions here have no state: any thread may call them.
 */
#ifndef STET_FILES_LOOK_H
#define STET_FILES_LOOK_H

#include <sys/stat.h>

#include "base/hash.h"
#include "os/file.h"

#define STET_LOOK_FILE       0100644u
#define STET_LOOK_EXECUTABLE 0100755u
#define STET_LOOK_DIRECTORY  0040755u

typedef struct stet_look {
    stet_hash hash;
    /* Nanoseconds since 1970. For a directory: fingerprints of the stat of everything in it, with all changes of
     * attributes in `ctime` alone. */
    int64_t mtime, ctime;
    uint64_t inode, size; /* for a directory: the number of files in it */
    uint64_t link;        /* for a symbolic link: a fingerprint of its target; 0: not a link */
    uint32_t mode;        /* one of the above; 0: does not exist */
    uint32_t flags;
} stet_look;

enum {
    STET_LOOK_RACY = 1,
    STET_LOOK_MADE = 2, /* set by files.c: it is still as a command wrote it */
    /* A link is part of it that leads elsewhere in the project: what is written there changes it. */
    STET_LOOK_LINKED = 4
};

STET_CHECKED stet_status stet_look_at(int root_fd, const char *path, const stet_look *known, stet_look *out,
                                      stet_error *err);
/* The same, but always reads, and searches for a text on the way: *found is set if a file, a file in the directory, the
 * target of a link in it, or a path below it contains these bytes. Searching costs a small part of hashing. */
STET_CHECKED stet_status stet_look_search(int root_fd, const char *path, const char *text, bool *found, stet_look *out,
                                          stet_error *err);
/* Looks at a file that was just put in place, with its known hash and its stat before that. It is not read, unless it
 * was replaced meanwhile. */
STET_CHECKED stet_status stet_look_placed(int root_fd, const char *path, stet_hash hash, const struct stat *as,
                                          stet_look *out, stet_error *err);
static inline bool stet_look_there(const stet_look *l) {
    return l->mode != 0;
}
/* Do both have the same content, mode and link, or both not exist? */
bool stet_look_same(const stet_look *a, const stet_look *b);
/* Is it still as it was made? A link is while it is the same link, whatever becomes of what it leads to, also if that
 * does not exist. */
bool stet_look_unaltered(const stet_look *made, const stet_look *now);

/* What happened to a file between two looks that found it the same. Another file may have been in its place for a
 * while. */
typedef enum stet_look_rest {
    STET_LOOK_UNTOUCHED,
    STET_LOOK_ATTRIBUTES, /* its change time differs: a new name, a mode, a rename there and back */
    STET_LOOK_REWRITTEN   /* it was written, or is another file */
} stet_look_rest;
stet_look_rest stet_look_between(const stet_look *was, const stet_look *now);
/* The clock that file systems use: whatever changes from now on has this time or a later one. */
int64_t stet_look_clock(void);
/* Has the file, or anything in the directory, changed in any way since that time? True if unsure. */
bool stet_look_changed_since(int root_fd, const char *path, int64_t since);
/* Is it a file of stet's, which counts as not there? */
bool stet_look_is_own(int root_fd, const char *path);
/* Adds the places in the project, outside of the directory, that links in it lead to: relative to the project, and
 * whether or not anything is there. */
void stet_look_links(int root_fd, const char *path, stet_names *out);
/* The target of a symbolic link, or NULL. Caller frees. */
char *stet_look_target(int root_fd, const char *path);

/* {"hash","mode","size"} and, for a link, "link"; mode as in Git: 420 (0644), 493 (0755), or 16877 for a directory. */
stet_value stet_look_value(const stet_look *l);
/* The inverse: hash, size, mode and link only. False: not such a value. */
bool stet_look_of_value(stet_value v, stet_look *out);

#endif
