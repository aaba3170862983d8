/* seal.c - remembers which large objects were hashed and not touched since.
 *
 * local/sealed/ID holds "SIZE MTIME_NS INODE DEVICE" of the object's file when its bytes were last known to be right. A
 * read-only file that still looks the same needs no second hash to be read, linked or cloned. Hard links change the change
 * time and the link count of the file, so those are not part of the seal. Changing the bytes takes a chmod first and
 * changes the modification time. Losing a seal costs one hash. `stet check` never trusts a seal.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "persist/internal.h"

#define SEALED_SIZE ((uint64_t)1 << 20) /* smaller objects can be hashed as quickly */

static int text_of(const struct stat *st, char text[128]) {
    return snprintf(text, 128, "%" PRId64 " %" PRId64 ".%09ld %" PRIu64 " %" PRIu64 "\n", (int64_t)st->st_size,
                    (int64_t)st->st_mtim.tv_sec, st->st_mtim.tv_nsec, (uint64_t)st->st_ino, (uint64_t)st->st_dev);
}

static bool may_be_sealed(const struct stat *st) {
    return S_ISREG(st->st_mode) && (uint64_t)st->st_size >= SEALED_SIZE && (st->st_mode & 0222) == 0;
}

static char *seal_path(const stet_persist *p, const char *id) {
    char *dir = stet_ppath(p->local, "sealed"), *path = stet_ppath(dir, id);
    stet_free(dir);
    return path;
}

void stet_pseal_put(stet_persist *p, const char *id, const char *object) {
    struct stat st;
    if (stet_sys_lstat(object, &st) == 0)
        stet_pseal_put_as(p, id, &st);
}

void stet_pseal_put_as(stet_persist *p, const char *id, const struct stat *object) {
    char text[128];
    if (p->read_only[0] || !may_be_sealed(object))
        return;
    char *path = seal_path(p, id), *dir = stet_file_dirname(path);
    size_t len = (size_t)text_of(object, text);
    stet_error why = STET_ERROR_INIT;
    if (stet_file_mkdirs(dir, 0777, &why) == STET_OK) {
        /* Neither synced nor renamed into place, because a torn file is not a valid seal. */
        int fd = stet_sys_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0666);
        if (fd >= 0 && stet_file_write_all(fd, path, text, len, &why) != STET_OK)
            stet_sys_unlink(path);
        if (fd >= 0)
            stet_sys_close(fd);
    }
    stet_error_clear(&why);
    stet_free(dir);
    stet_free(path);
}

bool stet_pseal_holds(stet_persist *p, const char *id, const struct stat *object) {
    char want[128];
    stet_buf have = STET_BUF(256);
    if (!may_be_sealed(object))
        return false;
    size_t len = (size_t)text_of(object, want);
    char *path = seal_path(p, id);
    bool same =
        stet_file_read(path, 128, &have, NULL) == STET_OK && have.len == len && memcmp(have.data, want, len) == 0;
    stet_buf_release(&have);
    stet_free(path);
    return same;
}

void stet_pseal_sweep(stet_persist *p) {
    char *dir = stet_ppath(p->local, "sealed");
    stet_names names = {0};
    struct stat st;
    if (stet_file_list(dir, &names, NULL) == STET_OK)
        for (size_t i = 0; i < names.len; i++) {
            char *object = stet_ppath(p->objects_dir, names.at[i]), *path = stet_ppath(dir, names.at[i]);
            if (stet_sys_lstat(object, &st) != 0)
                stet_sys_unlink(path);
            stet_free(object);
            stet_free(path);
        }
    stet_names_release(&names);
    stet_free(dir);
}
