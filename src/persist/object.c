/* object.c - the bytes of objects: finding, reading and restoring them as files.
 *
 *   O1. Bytes are handed out as right only after their size and, unless the caller opts out, their hash were compared
 *       with the id, or if a seal says that they were compared and that the file was not touched since.
 *   O2. An object is stored as it is in objects/ID, or compressed in objects/ID.zst; the id is always that of the plain
 *       bytes.
 *   O3. A symbolic link is followed only if the hash is checked (git-annex keeps objects this way).
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "persist/internal.h"

enum { CHUNK = 256 * 1024 };

static const struct {
    const char *id, *bytes;
    size_t len;
} trivial[] = {
    {"kmJI5S0fpTLDF-N9ok7WUq5kEQ-CGcteBhZovTCR8Eg", "\x80\x04}\x94.", 5}, /* {} pickled */
    {"RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o", "{}", 2},
    {"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", "", 0},
};

const char *stet_pobject_trivial(const char *id, size_t *len) {
    for (size_t i = 0; i < sizeof trivial / sizeof *trivial; i++)
        if (!strcmp(id, trivial[i].id)) {
            *len = trivial[i].len;
            return trivial[i].bytes;
        }
    return NULL;
}

size_t stet_pobject_name(const char *name, bool *compressed) {
    size_t len = strlen(name), suffix = strlen(STET_POBJECT_SUFFIX);
    *compressed = len > suffix && !strcmp(name + len - suffix, STET_POBJECT_SUFFIX);
    if (*compressed)
        len -= suffix;
    return stet_persist_valid_id(name, len) ? len : 0;
}

static bool matches(stet_hash h, const char *id) {
    char text[STET_HASH_BASE64];
    stet_base64url_encode(h.bytes, sizeof h.bytes, text);
    return !memcmp(text, id, STET_PERSIST_HASH);
}

stet_status stet_pobject_read_piece(int fd, const char *path, const struct stat *st, char *bytes, size_t room,
                                    size_t *got, stet_error *err) {
    if (!S_ISREG(st->st_mode) || (int64_t)st->st_blocks * 512 >= st->st_size)
        return stet_file_read_all(fd, path, bytes, room, got, err);
    off_t at = lseek(fd, 0, SEEK_CUR), data = at < 0 ? -1 : lseek(fd, at, SEEK_DATA);
    if (at < 0 || (data < 0 && errno != ENXIO))
        return stet_fail_errno(err, errno, "%s: cannot seek", path);
    if (data < 0)
        data = st->st_size > at ? st->st_size : at; /* a hole to the end */
    size_t hole = (uint64_t)(data - at) > room ? room : (size_t)(data - at);
    if (lseek(fd, at + (off_t)hole, SEEK_SET) < 0)
        return stet_fail_errno(err, errno, "%s: cannot seek", path);
    memset(bytes, 0, hole);
    *got = hole;
    return hole || data == st->st_size ? STET_OK : stet_file_read_all(fd, path, bytes, room, got, err);
}

/* A reader of an object file: plain or compressed. */
typedef struct source {
    struct stat st;
    int fd;
    const char *path;
    ZSTD_DCtx *zstd; /* NULL: plain */
    char *in;
    size_t in_len, in_at;
    bool frame_open;
} source;

/* The next bytes, up to `room`. *got 0: the end. A malformed compressed file is STET_CORRUPT. */
static stet_status source_read(source *s, char *bytes, size_t room, size_t *got, stet_error *err) {
    if (!s->zstd)
        return stet_pobject_read_piece(s->fd, s->path, &s->st, bytes, room, got, err);
    ZSTD_outBuffer out = {bytes, room, 0};
    while (out.pos < room) {
        if (s->in_at == s->in_len) {
            stet_status status = stet_file_read_all(s->fd, s->path, s->in, CHUNK, &s->in_len, err);
            if (status != STET_OK)
                return status;
            s->in_at = 0;
            if (!s->in_len) {
                if (s->frame_open)
                    return stet_fail(err, STET_CORRUPT, "%s: the compressed object ends too early", s->path);
                break;
            }
        }
        ZSTD_inBuffer in = {s->in, s->in_len, s->in_at};
        size_t r = ZSTD_decompressStream(s->zstd, &out, &in);
        s->in_at = in.pos;
        if (ZSTD_isError(r))
            return stet_fail(err, STET_CORRUPT, "%s: %s", s->path, ZSTD_getErrorName(r));
        s->frame_open = r != 0;
    }
    *got = out.pos;
    return STET_OK;
}

static stet_pobject_state read_source(source *s, const char *id, uint64_t size, bool sealed, stet_persist_sink sink,
                                      void *ctx, stet_status *status, stet_error *err) {
    size_t room = size < CHUNK ? (size_t)size + 1 : CHUNK, got;
    char *bytes = stet_alloc(room);
    /* A plain file is known to have the right size, so that its end need not be found. */
    bool plain = !s->zstd;
    if (plain && size < CHUNK)
        room = (size_t)size;
    stet_hasher *hasher = NULL;
    stet_hash hash = {{0}};
    uint64_t total = 0;
    *status = STET_OK;
    while (!(plain && total == size) && (*status = source_read(s, bytes, room, &got, err)) == STET_OK && got) {
        if (got > size - total) {
            total = size + 1;
            break;
        }
        total += got;
        if (!sealed && total == size && !hasher && total == got)
            hash = stet_hash_of(bytes, got);
        else if (!sealed) {
            if (!hasher)
                hasher = stet_hasher_begin();
            stet_hasher_add(hasher, bytes, got);
        }
        if (sink && (*status = sink(ctx, bytes, got, err)) != STET_OK)
            break;
    }
    if (hasher)
        hash = stet_hasher_end(hasher);
    else if (size == 0)
        hash = stet_hash_of("", 0);
    stet_free(bytes);
    if (*status == STET_CORRUPT)
        return STET_POBJECT_WRONG;
    return *status == STET_OK && total == size && (sealed || matches(hash, id)) ? STET_POBJECT_GOOD
                                                                                : STET_POBJECT_WRONG;
}

stet_pobject_state stet_pobject_read(stet_persist *p, const char *id, uint64_t size, stet_pobject_proof proof,
                                     stet_persist_sink sink, void *ctx, stet_status *status, stet_error *err) {
    size_t trivial_len;
    const char *known = stet_pobject_trivial(id, &trivial_len);
    *status = STET_OK;
    if (known) {
        if (size != trivial_len)
            return STET_POBJECT_WRONG;
        if (sink && trivial_len)
            *status = sink(ctx, known, trivial_len, err);
        return *status == STET_OK ? STET_POBJECT_GOOD : STET_POBJECT_WRONG;
    }
    if (!stet_persist_valid_id(id, strlen(id)))
        return STET_POBJECT_MISSING;
    char path[4096];
    stet_pobject_state state = STET_POBJECT_MISSING;
    int dir = atomic_load(&p->objects_fd);
    for (int compressed = 0; compressed < 2 && state == STET_POBJECT_MISSING; compressed++) {
        int n = snprintf(path, sizeof path, "%s/%s%s", p->objects_dir, id, compressed ? STET_POBJECT_SUFFIX : "");
        if (n < 0 || (size_t)n >= sizeof path)
            return STET_POBJECT_MISSING;
        bool check = proof != STET_POBJECT_BY_SIZE || sink;
        int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | (check ? 0 : O_NOFOLLOW);
        int fd = dir < 0 ? -1 : stet_sys_openat(dir, path + strlen(p->objects_dir) + 1, flags, 0);
        if (fd < 0) /* the descriptor may refer to a directory that was replaced */
            fd = stet_sys_open(path, flags, 0);
        if (fd < 0) {
            if (errno != ENOENT && errno != ENOTDIR) {
                *status = stet_fail_errno(err, errno, "%s: cannot open", path);
                return STET_POBJECT_WRONG;
            }
            continue;
        }
        struct stat st;
        if (stet_sys_fstat(fd, &st) != 0) {
            *status = stet_fail_errno(err, errno, "%s: cannot stat", path);
            state = STET_POBJECT_WRONG;
        } else if (!S_ISREG(st.st_mode) || (!compressed && (uint64_t)st.st_size != size))
            state = STET_POBJECT_WRONG;
        else if (!check)
            state = STET_POBJECT_GOOD;
        else {
            source s = {.st = st, .fd = fd, .path = path};
            if (compressed) {
                s.zstd = ZSTD_createDCtx();
                s.in = stet_alloc(CHUNK);
            }
            bool sealed = proof == STET_POBJECT_BY_SEAL && !compressed && stet_pseal_holds(p, id, &st);
            state = sealed && !sink ? STET_POBJECT_GOOD : read_source(&s, id, size, sealed, sink, ctx, status, err);
            if (state == STET_POBJECT_GOOD && proof == STET_POBJECT_BY_SEAL && !sealed && !compressed)
                stet_pseal_put_as(p, id, &st);
            ZSTD_freeDCtx(s.zstd);
            stet_free(s.in);
        }
        stet_sys_close(fd);
    }
    return state;
}

stet_status stet_persist_read(stet_persist *p, const char *id, uint64_t size, stet_persist_sink sink, void *ctx,
                              stet_error *err) {
    if (!p || !id)
        return stet_fail_null(err);
    stet_status status;
    stet_pobject_state state = stet_pobject_read(p, id, size, STET_POBJECT_BY_SEAL, sink, ctx, &status, err);
    if (status != STET_OK)
        return status;
    if (state == STET_POBJECT_MISSING) {
        stet_fail(err, STET_NOT_FOUND, "object %.120s is not here", id);
        stet_hint(err, "it may not be synchronised yet, or was deleted");
        return STET_NOT_FOUND;
    }
    if (state == STET_POBJECT_WRONG)
        return stet_fail(err, STET_CORRUPT, "object %.120s: its bytes are not what its name says", id);
    return STET_OK;
}

bool stet_persist_has_object(stet_persist *p, const char *id, uint64_t size, bool verify) {
    stet_status status;
    stet_pobject_proof proof = verify ? STET_POBJECT_BY_HASH : STET_POBJECT_BY_SIZE;
    return stet_pobject_read(p, id, size, proof, NULL, NULL, &status, NULL) == STET_POBJECT_GOOD;
}

typedef struct file_sink {
    int fd;
    const char *path;
} file_sink;

static stet_status write_sink(void *ctx, const void *bytes, size_t len, stet_error *err) {
    file_sink *f = ctx;
    return stet_file_write_all(f->fd, f->path, bytes, len, err);
}

static stet_status restore_stream(stet_persist *p, const char *id, uint64_t size, const char *temp, mode_t mode,
                                  stet_error *err) {
    file_sink f = {.fd = stet_sys_open(temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode), .path = temp};
    if (f.fd < 0)
        return stet_fail_errno(err, errno, "%s: cannot create", temp);
    stet_status status = stet_persist_read(p, id, size, write_sink, &f, err);
    if (stet_sys_close(f.fd) != 0 && status == STET_OK)
        status = stet_fail_errno(err, errno, "%s: cannot close", temp);
    return status;
}

/* The name under which bytes wait until they are complete: in the temporary directory, which is swept, and not among
 * the user's files, unless it is on another file system. Caller frees. */
static char *waiting_name(const stet_persist *p, const char *path) {
    char *dir = stet_file_dirname(path);
    struct stat here, there;
    bool near = stet_sys_stat(p->temp, &here) == 0 && stet_sys_stat(dir, &there) == 0 && here.st_dev == there.st_dev;
    char *name = near ? stet_file_temp_name(p->temp, "restore") : stet_file_temp_name(dir, ".stet-restore");
    stet_free(dir);
    return name;
}

/* The object as it is, cloned, linked or copied. */
static stet_status restore_whole(stet_persist *p, const char *id, const char *object, const struct stat *st,
                                 const char *temp, mode_t mode, bool allow_hardlink, stet_persist_restored *done,
                                 stet_error *err) {
    stet_copy_how by;
    stet_hash hash;
    uint64_t copied;
    stet_status status = stet_file_copy(object, temp, mode, allow_hardlink, &by, err);
    if (status != STET_OK)
        return status;
    *done = by == STET_COPY_REFLINK    ? STET_PERSIST_REFLINK
            : by == STET_COPY_HARDLINK ? STET_PERSIST_HARDLINK
                                       : STET_PERSIST_COPY;
    if (stet_pseal_holds(p, id, st))
        return STET_OK;
    status = stet_file_hash(temp, &hash, &copied, err);
    if (status == STET_OK && (copied != (uint64_t)st->st_size || !matches(hash, id)))
        return stet_fail(err, STET_CORRUPT, "object %.120s: its bytes are not what its name says", id);
    if (status == STET_OK && *done != STET_PERSIST_COPY)
        stet_pseal_put(p, id, object);
    return status;
}

stet_status stet_persist_restore(stet_persist *p, const char *id, uint64_t size, const char *path, mode_t mode,
                                 bool allow_hardlink, stet_persist_restored *how, struct stat *as, stet_error *err) {
    if (!stet_persist_valid_id(id, strlen(id)))
        return stet_fail(err, STET_INVALID, "not an object id: \"%.120s\"", id);
    char *object = stet_ppath(p->objects_dir, id), *temp = waiting_name(p, path);
    stet_persist_restored done = STET_PERSIST_COPY;
    struct stat st;
    stet_status status;
    /* An object that is stored as it is can be cloned or linked. One that is compressed, trivial or behind a link is
     * written out. */
    if (stet_sys_lstat(object, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == size)
        status = restore_whole(p, id, object, &st, temp, mode, allow_hardlink, &done, err);
    else
        status = restore_stream(p, id, size, temp, mode, err);
    if (status == STET_OK && as && stet_sys_lstat(temp, as) != 0)
        status = stet_fail_errno(err, errno, "%s: cannot look at it", temp);
    if (status == STET_OK && stet_sys_rename(temp, path) != 0)
        status = stet_fail_errno(err, errno, "%s: cannot replace", path);
    /* rename does nothing if both names are links to one file, and leaves the first name. */
    if (status != STET_OK || done == STET_PERSIST_HARDLINK)
        unlink(temp);
    if (status == STET_OK && how)
        *how = done;
    stet_free(temp);
    stet_free(object);
    return status;
}
