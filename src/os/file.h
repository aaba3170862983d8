/* file.h - whole files: complete reads and writes, atomic replacement, durable appends, directories.
 *
 * Errors name the path and what was tried. No function here writes through a symlink, unless its description says so.
 */
#ifndef STET_OS_FILE_H
#define STET_OS_FILE_H

#include "base/buf.h"
#include "base/hash.h"
#include "os/sys.h"

/* Reads a whole file, at most `max` bytes (0: STET_BUF_MAX), into `out` (appended). A larger one is STET_LIMIT, a
 * missing one STET_NOT_FOUND, a directory or device STET_INVALID. */
STET_CHECKED stet_status stet_file_read(const char *path, size_t max, stet_buf *out, stet_error *err);
/* Writes all `len` bytes to a descriptor, however few the kernel accepts at once. `path` is for the message. */
STET_CHECKED stet_status stet_file_write_all(int fd, const char *path, const void *bytes, size_t len, stet_error *err);
STET_CHECKED stet_status stet_file_read_all(int fd, const char *path, void *bytes, size_t len, size_t *got,
                                            stet_error *err);

/* Replaces the content of `path`: temporary file beside it, write, fsync, rename, fsync of the directory. After a crash
 * either the old or the new content is there, complete. The temporary file is removed on failure. */
STET_CHECKED stet_status stet_file_replace(const char *path, const void *bytes, size_t len, mode_t mode,
                                           stet_error *err);
/* The same, but STET_CONFLICT if `path` exists. */
STET_CHECKED stet_status stet_file_create(const char *path, const void *bytes, size_t len, mode_t mode,
                                          stet_error *err);
/* Appends these bytes and, if `sync`, calls fdatasync. A short write is cut back, so that the file has all of the bytes
 * or none. Creates the file. Appenders of one file must exclude each other (lock.h), because cutting back needs to be
 * alone. */
STET_CHECKED stet_status stet_file_append(const char *path, const void *bytes, size_t len, bool sync, stet_error *err);

STET_CHECKED stet_status stet_file_mkdirs(const char *path, mode_t mode, stet_error *err); /* like mkdir -p, durable */
STET_CHECKED stet_status stet_file_sync_dir(const char *path, stet_error *err);            /* fsync of a directory */
STET_CHECKED stet_status stet_file_sync_parent(const char *path, stet_error *err);
STET_CHECKED stet_status stet_file_remove(const char *path, stet_error *err); /* no error if it is absent */
/* No error if it is absent; never follows a symlink. */
STET_CHECKED stet_status stet_file_remove_tree(const char *path, stet_error *err);
bool stet_file_exists(const char *path);

/* Names in a directory, sorted by bytes, without "." and "..". */
typedef struct stet_names {
    char **at;
    size_t len, cap;
} stet_names;
STET_CHECKED stet_status stet_file_list(const char *path, stet_names *out, stet_error *err);
/* The same; an absent directory has no names. */
STET_CHECKED stet_status stet_file_list_if_there(const char *path, stet_names *out, stet_error *err);
void stet_names_release(stet_names *names);

/* Paths, as text. Results belong to the caller (stet_free). */
char *stet_file_join(const char *dir, const char *name);
char *stet_file_dirname(const char *path);
const char *stet_file_basename(const char *path); /* points into `path` */
STET_CHECKED stet_status stet_file_realpath(const char *path, char **out, stet_error *err);
/* The absolute path, without empty and "." parts. Symlinks stay in it, so they are resolved when the path is used. It
 * need not exist. */
STET_CHECKED stet_status stet_file_absolute(const char *path, char **out, stet_error *err);
/* Is `path`, with symlinks resolved, the directory `root` or inside it? If it does not exist, its nearest existing
 * parent decides. A dangling symlink is not inside. */
STET_CHECKED stet_status stet_file_inside(const char *root, const char *path, bool *out, stet_error *err);

/* A unique name in `dir`: "<prefix>.<pid>.<start time>.<random>", so that a sweep can tell whose file it is. Creates
 * nothing. */
char *stet_file_temp_name(const char *dir, const char *prefix);
/* Is this such a name, and was the file made by a process that has ended, or longer than `max_age_s` ago? For sweeping.
 */
bool stet_file_temp_is_dead(const char *name, int64_t max_age_s, const struct stat *st);

typedef enum stet_copy_how { STET_COPY_REFLINK, STET_COPY_HARDLINK, STET_COPY_BYTES } stet_copy_how;
/* Copies `from` to `to`, which must not exist: by reflink, otherwise by hard link if `allow_hardlink`, otherwise by
 * bytes (copy_file_range, holes kept). `*how` tells which (`how` may be NULL). A hard link has the mode of `from`, not
 * `mode`. The copy is not synced, and is removed on failure. */
STET_CHECKED stet_status stet_file_copy(const char *from, const char *to, mode_t mode, bool allow_hardlink,
                                        stet_copy_how *how, stet_error *err);
/* The same of a file that is open; `from` is its name, for messages. */
STET_CHECKED stet_status stet_file_copy_open(int in, const char *from, const char *to, mode_t mode, stet_error *err);
STET_CHECKED stet_status stet_file_hash(const char *path, stet_hash *out, uint64_t *size, stet_error *err);

/* Is `path` (or its nearest existing parent) on a network file system (NFS, SMB, 9p, FUSE sshfs...)? `*name` is set to
 * its name or "". */
STET_CHECKED stet_status stet_file_is_network(const char *path, bool *out, const char **name, stet_error *err);
/* For tests: called instead of statfs(2), if set. Returns 0, or -1 with errno. */
struct statfs;
extern int (*stet_file_statfs_hook)(const char *path, struct statfs *out);

#endif
