/* put.c - stores an entry with its contents.
 *
 *   P1. Nothing of an entry is visible before put_end; a kill leaves at most a temporary file, or an object that no
 *       entry names.
 *   P2. The log names an object only after the object is in place, complete and synced.
 *   P3. An object that already exists and is right is kept; one that is wrong is replaced.
 */

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/toml.h"
#include "base/utf8.h"
#include "os/clock.h"
#include "persist/internal.h"

enum {
    BUFFERED = 64 * 1024,
    CHUNK = 256 * 1024,
    HASH_CHUNK = 1024 * 1024,
    COMPRESS_FROM = 256,
    HOLE_FROM = 65536,
    COMPRESS_LEVEL = 3
};

typedef struct extras {
    stet_pextra *at;
    size_t len, cap;
} extras;

typedef struct content {
    char kind[STET_PERSIST_KIND_MAX + 1], format[STET_PERSIST_KIND_MAX + 1], id[STET_PERSIST_ID_MAX];
    extras extra;
    bool compress;
    uint64_t size;
    stet_buf bytes; /* the content itself, while it is small */
    char *temp;     /* otherwise the file that it was written to */
    int fd;         /* of temp, while it is written */
    uint64_t hole;  /* zeros at its end that were not written */
    stet_hasher *hasher;
    bool finished, trivial;
    bool compressed; /* the form of the bytes in `bytes` or `temp` */
    bool synced;
    bool here; /* the object is present and right; `seen` is its stat */
    struct stat seen;
} content;

struct stet_persist_put {
    stet_persist *p;
    stet_arena arena; /* key, extras, the entry */
    stet_persist_key key;
    struct {
        content *at;
        size_t len, cap;
    } contents;
    extras extra;     /* of the entry */
    stet_error error; /* the first one */
    stet_status status;
};

static bool fine(const stet_persist_put *w) {
    return w && w->status == STET_OK;
}

stet_persist_put *stet_persist_put_begin(stet_persist *p, const stet_persist_key *key) {
    stet_persist_put *w = stet_alloc_zero(sizeof *w);
    w->p = p;
    w->status = p && key ? stet_persist_may_write(p, &w->error) : stet_fail_null(&w->error);
    if (fine(w))
        w->status = stet_persist_key_check(key, true, &w->error);
    if (fine(w)) {
        w->key = *key;
        w->key.block_len = key->block_len ? key->block_len : strlen(key->block_id);
        w->key.block_id = stet_arena_strndup(&w->arena, key->block_id, w->key.block_len);
        w->key.module_hash = stet_arena_strndup(&w->arena, key->module_hash, STET_PERSIST_HASH);
    }
    return w;
}

static content *current(stet_persist_put *w) {
    return w && w->contents.len ? &w->contents.at[w->contents.len - 1] : NULL;
}

static stet_status open_temp(stet_persist *p, const char *prefix, char **path, int *fd, stet_error *err) {
    if (!atomic_load(&p->ready)) {
        stet_status status = stet_persist_make_layout(p, err);
        if (status != STET_OK)
            return status;
    }
    char *name = stet_file_temp_name(p->temp, prefix);
    for (int attempt = 0;; attempt++) {
        /* Read-only, because objects never change. */
        *fd = stet_sys_open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0444);
        if (*fd >= 0)
            break;
        int saved = errno;
        if (saved == ENOENT && attempt == 0 && stet_persist_make_layout(p, NULL) == STET_OK)
            continue; /* a synchroniser or Git may remove empty directories */
        stet_status status = stet_fail_errno(err, saved, "%s: cannot create", name);
        stet_free(name);
        return status;
    }
    *path = name;
    return STET_OK;
}

static void drop_temp(content *c) {
    if (c->fd >= 0) {
        stet_sys_close(c->fd);
        c->fd = -1;
    }
    if (c->temp) {
        unlink(c->temp); /* without the hook: failing to clean up is not a failure */
        stet_free(c->temp);
        c->temp = NULL;
    }
}

/* Moves the buffered bytes to a file; everything that follows goes there as well. */
static void spill(stet_persist_put *w, content *c) {
    w->status = open_temp(w->p, "put", &c->temp, &c->fd, &w->error);
    if (fine(w) && c->bytes.len)
        w->status = stet_file_write_all(c->fd, c->temp, c->bytes.data, c->bytes.len, &w->error);
    c->hasher = stet_hasher_begin();
    stet_hasher_add(c->hasher, stet_buf_cstr(&c->bytes), c->bytes.len);
    stet_buf_release(&c->bytes);
}

/* Writes a part of a large content. Long runs of zeros become holes of the file. */
static void write_piece(stet_persist_put *w, content *c, const char *bytes, size_t len) {
    if (len >= HOLE_FROM && bytes[0] == 0 && !memcmp(bytes, bytes + 1, len - 1)) {
        c->hole += len;
        return;
    }
    if (c->hole && lseek(c->fd, (off_t)c->hole, SEEK_CUR) < 0)
        w->status = stet_fail_errno(&w->error, errno, "%s: cannot seek", c->temp);
    c->hole = 0;
    if (fine(w))
        w->status = stet_file_write_all(c->fd, c->temp, bytes, len, &w->error);
}

void stet_persist_put_bytes(stet_persist_put *w, const void *bytes, size_t len) {
    content *c = current(w);
    if (!fine(w) || !len)
        return;
    if (!bytes) {
        w->status = stet_fail_null(&w->error);
        return;
    }
    if (!c || c->finished) {
        w->status = stet_fail(&w->error, STET_INVALID, "bytes without a content that was begun");
        return;
    }
    if (len > (uint64_t)INT64_MAX - c->size) {
        w->status = stet_fail(&w->error, STET_LIMIT, "a content of more than 2^63 bytes");
        return;
    }
    c->size += len;
    if (!c->temp && c->size <= BUFFERED) {
        stet_buf_add(&c->bytes, bytes, len);
        return;
    }
    if (!c->temp)
        spill(w, c);
    /* In parts that stay in the processor's cache between being written and being hashed. */
    for (const char *at = bytes; len && fine(w);) {
        size_t n = len < HASH_CHUNK ? len : HASH_CHUNK;
        write_piece(w, c, at, n);
        stet_hasher_add(c->hasher, at, n);
        at += n;
        len -= n;
    }
}

void stet_persist_put_fd(stet_persist_put *w, int fd, const char *name) {
    char *bytes = stet_alloc(CHUNK);
    size_t got = 1;
    struct stat st;
    if (fine(w) && stet_sys_fstat(fd, &st) != 0)
        w->status = stet_fail_errno(&w->error, errno, "%s: cannot stat", name);
    while (fine(w) && got) {
        w->status = stet_pobject_read_piece(fd, name, &st, bytes, CHUNK, &got, &w->error);
        if (fine(w))
            stet_persist_put_bytes(w, bytes, got);
    }
    stet_free(bytes);
}

void stet_persist_put_file(stet_persist_put *w, const char *path) {
    if (fine(w) && !path)
        w->status = stet_fail_null(&w->error);
    if (!fine(w))
        return;
    int fd = stet_sys_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    struct stat st;
    if (fd < 0 || stet_sys_fstat(fd, &st) != 0)
        w->status = stet_fail_errno(&w->error, errno, "%s: cannot open", path);
    else if (!S_ISREG(st.st_mode))
        w->status = stet_fail(&w->error, STET_INVALID, "%s: not a regular file", path);
    else
        stet_persist_put_fd(w, fd, path);
    if (fd >= 0)
        stet_sys_close(fd);
}

void stet_persist_put_compress(stet_persist_put *w, bool compress) {
    if (current(w))
        current(w)->compress = compress;
}

static void add_extra(stet_persist_put *w, const char *key, const char *raw) {
    if (fine(w) && !key)
        w->status = stet_fail(&w->error, STET_INVALID, "a key of an entry is NULL");
    if (!fine(w))
        return;
    content *c = current(w);
    size_t len = strlen(key);
    if (!stet_persist_valid_kind(key, len) ||
        (c && (!strcmp(key, "id") || !strcmp(key, "size") || !strcmp(key, "format")))) {
        w->status = stet_fail(&w->error, STET_INVALID, "not a key that an entry may have: \"%.80s\"", key);
        return;
    }
    *stet_vec_add(c ? &c->extra : &w->extra) =
        (stet_pextra){.key = stet_arena_strdup(&w->arena, key), .raw = stet_arena_strdup(&w->arena, raw)};
}

void stet_persist_put_string(stet_persist_put *w, const char *key, const char *value) {
    if (fine(w) && !value)
        w->status = stet_fail_null(&w->error);
    if (fine(w) && !stet_utf8_valid(value, strlen(value)))
        w->status = stet_fail(&w->error, STET_INVALID, "a text of an entry is not UTF-8");
    if (!fine(w))
        return;
    stet_buf raw = STET_BUF(STET_PERSIST_ENTRY_MAX);
    stet_toml_write_string(&raw, value, strlen(value));
    if (raw.overflow)
        w->status = stet_fail(&w->error, STET_LIMIT, "%s: more than 1 MiB", key ? key : "");
    add_extra(w, key, stet_buf_cstr(&raw));
    stet_buf_release(&raw);
}

void stet_persist_put_int(stet_persist_put *w, const char *key, int64_t value) {
    char *raw = stet_asprintf("%lld", (long long)value);
    add_extra(w, key, raw);
    stet_free(raw);
}

void stet_persist_put_elapsed(stet_persist_put *w, int64_t ms) {
    if (fine(w) && ms >= 0) {
        char *raw = stet_asprintf("%lld", (long long)ms);
        *stet_vec_add(&w->extra) = (stet_pextra){.key = "elapsed_ms", .raw = stet_arena_strdup(&w->arena, raw)};
        stet_free(raw);
    }
}

/* Makes a compressed copy, which is kept if it saves a tenth. */
static void compress_content(stet_persist_put *w, content *c) {
    char *path = NULL;
    int fd = -1;
    w->status = open_temp(w->p, "zstd", &path, &fd, &w->error);
    if (!fine(w))
        return;
    ZSTD_CCtx *z = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, COMPRESS_LEVEL);
    char *in = c->temp ? stet_alloc(CHUNK) : NULL, *out = stet_alloc(CHUNK);
    uint64_t total = 0;
    bool worth = true, last = false;
    if (c->temp && lseek(c->fd, 0, SEEK_SET) != 0)
        w->status = stet_fail_errno(&w->error, errno, "%s: cannot seek", c->temp);
    while (fine(w) && worth && !last) {
        size_t got = c->bytes.len;
        if (c->temp)
            w->status = stet_file_read_all(c->fd, c->temp, in, CHUNK, &got, &w->error);
        last = !c->temp || got < CHUNK;
        ZSTD_inBuffer from = {c->temp ? in : stet_buf_cstr(&c->bytes), got, 0};
        bool done = false;
        while (fine(w) && !done) {
            ZSTD_outBuffer to = {out, CHUNK, 0};
            size_t left = ZSTD_compressStream2(z, &to, &from, last ? ZSTD_e_end : ZSTD_e_continue);
            if (ZSTD_isError(left)) {
                w->status = stet_fail(&w->error, STET_INTERNAL, "zstd: %s", ZSTD_getErrorName(left));
                break;
            }
            done = last ? left == 0 : from.pos == from.size;
            total += to.pos;
            worth = total <= c->size - c->size / 10;
            if (to.pos && worth)
                w->status = stet_file_write_all(fd, path, out, to.pos, &w->error);
            if (!worth)
                break;
        }
    }
    ZSTD_freeCCtx(z);
    stet_free(in);
    stet_free(out);
    if (fine(w) && worth) {
        drop_temp(c);
        stet_buf_release(&c->bytes);
        c->temp = path;
        c->fd = fd;
        c->compressed = true;
    } else {
        stet_sys_close(fd);
        unlink(path);
        stet_free(path);
    }
}

static void finish(stet_persist_put *w, content *c) {
    if (c->finished)
        return;
    c->finished = true;
    stet_hash h = c->hasher ? stet_hasher_end(c->hasher) : stet_hash_of(stet_buf_cstr(&c->bytes), c->bytes.len);
    c->hasher = NULL;
    if (fine(w) && c->hole && stet_sys_ftruncate(c->fd, (off_t)c->size) != 0)
        w->status = stet_fail_errno(&w->error, errno, "%s: cannot extend", c->temp);
    c->hole = 0;
    if (!fine(w))
        return;
    stet_base64url_encode(h.bytes, sizeof h.bytes, c->id);
    size_t len;
    c->trivial = stet_pobject_trivial(c->id, &len) != NULL;
    if (!c->trivial && w->p->config.object_id_mode == STET_PERSIST_EXECUTION_KEY_QUALIFIED) {
        char created[24];
        stet_created_print(w->key.created_at, created);
        c->id[STET_PERSIST_HASH] = '.';
        memcpy(c->id + STET_PERSIST_HASH + 1, w->key.module_hash, STET_PERSIST_HASH);
        c->id[2 * STET_PERSIST_HASH + 1] = '.';
        memcpy(c->id + 2 * STET_PERSIST_HASH + 2, created, strlen(created) + 1);
    }
}

void stet_persist_put_content(stet_persist_put *w, const char *kind, const char *format) {
    if (current(w))
        finish(w, current(w));
    if (fine(w) && (!kind || !format))
        w->status = stet_fail_null(&w->error);
    if (!fine(w))
        return;
    if (!strcmp(format, "auto"))
        format = w->p->config.auto_variables_format;
    size_t kind_len = strlen(kind), format_len = strlen(format);
    if (!stet_persist_valid_kind(kind, kind_len)) {
        w->status = stet_fail(&w->error, STET_INVALID, "not a content kind: \"%.80s\"", kind);
        stet_hint(&w->error, "1 to %d characters of A-Z a-z 0-9 _ -, and not `hash`", STET_PERSIST_KIND_MAX);
        return;
    }
    if (!format_len || format_len > STET_PERSIST_KIND_MAX) {
        w->status = stet_fail(&w->error, STET_INVALID, "not a content format: \"%.80s\"", format);
        return;
    }
    for (size_t i = 0; i < w->contents.len; i++)
        if (!strcmp(w->contents.at[i].kind, kind)) {
            w->status = stet_fail(&w->error, STET_INVALID, "content %s is given twice", kind);
            return;
        }
    if (w->contents.len == STET_PERSIST_CONTENTS_MAX) {
        w->status = stet_fail(&w->error, STET_LIMIT, "more than %d contents", STET_PERSIST_CONTENTS_MAX);
        return;
    }
    content *c = stet_vec_add(&w->contents);
    memset(c, 0, sizeof *c);
    memcpy(c->kind, kind, kind_len);
    memcpy(c->format, format, format_len);
    c->fd = -1;
    c->compress = w->p->config.compress;
}

static char *object_path(const stet_persist *p, const content *c, bool compressed) {
    return stet_asprintf("%s/%s%s", p->objects_dir, c->id, compressed ? STET_POBJECT_SUFFIX : "");
}

/* Stats the object that is in place: the plain file, or the compressed one. */
static bool stat_object(const stet_persist *p, const content *c, struct stat *st) {
    for (int compressed = 0; compressed < 2; compressed++) {
        char *path = object_path(p, c, compressed);
        bool there = stet_sys_lstat(path, st) == 0;
        stet_free(path);
        if (there)
            return true;
    }
    return false;
}

static bool looks_the_same(const struct stat *a, const struct stat *b) {
    return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Writes its bytes to a synced temporary file. */
static stet_status stage(stet_persist_put *w, content *c, stet_error *err) {
    stet_persist *p = w->p;
    stet_status status = STET_OK;
    if (c->compress && !c->compressed && c->size >= COMPRESS_FROM) {
        compress_content(w, c);
        if (!fine(w))
            return w->status;
    }
    if (!c->temp) {
        status = open_temp(p, "put", &c->temp, &c->fd, err);
        if (status == STET_OK)
            status = stet_file_write_all(c->fd, c->temp, stet_buf_cstr(&c->bytes), c->bytes.len, err);
    }
    if (status == STET_OK && !c->synced) {
        if (stet_sys_fsync(c->fd) != 0)
            status = stet_fail_errno(err, errno, "%s: cannot sync", c->temp);
        c->synced = true;
    }
    if (status == STET_OK && c->fd >= 0) {
        if (stet_sys_close(c->fd) != 0)
            status = stet_fail_errno(err, errno, "%s: cannot close", c->temp);
        c->fd = -1;
    }
    return status;
}

/* Before the lock is taken: checks whether the object is present and right, and otherwise stages it. */
static stet_status prepare(stet_persist_put *w, content *c, stet_error *err) {
    stet_status status;
    if (c->trivial) {
        drop_temp(c);
        return STET_OK;
    }
    c->here = stat_object(w->p, c, &c->seen) && stet_pobject_read(w->p, c->id, c->size, STET_POBJECT_BY_HASH, NULL,
                                                                  NULL, &status, NULL) == STET_POBJECT_GOOD;
    return c->here ? STET_OK : stage(w, c, err);
}

/* A marker is an empty file. It is made as a hard link to an empty file of today, because a new inode for each marker
 * would double what a put has to commit to the disk. False: the link is not possible, and the marker must be made as a
 * file. */
static bool link_marker(stet_persist *p, const char *path) {
    int64_t today = stet_clock_ms() / 86400000;
    for (int attempt = 0; attempt < 2; attempt++) {
        if (!p->marker || p->marker_day != today || attempt) {
            stet_free(p->marker);
            p->marker = stet_asprintf("%s/marker.%lld", p->local, (long long)today);
            p->marker_day = today;
            if (attempt)
                unlink(p->marker); /* it has the maximum number of links */
            int fd = stet_sys_open(p->marker, O_WRONLY | O_CREAT | O_NOFOLLOW, 0666);
            if (fd < 0)
                return false;
            stet_sys_close(fd);
        }
        if (stet_sys_link(p->marker, path) == 0 || errno == EEXIST)
            return true;
        if (errno != EMLINK && errno != ENOENT)
            return false;
    }
    return false;
}

static stet_status mark_fresh(stet_persist *p, const content *c, stet_error *err) {
    char *path = stet_ppath(p->fresh_dir, c->id);
    int fd = -1;
    if (link_marker(p, path)) {
        stet_free(path);
        return STET_OK;
    }
    for (int attempt = 0; attempt < 2; attempt++) {
        fd = stet_sys_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
        if (fd >= 0 || errno != ENOENT || stet_persist_make_layout(p, NULL) != STET_OK)
            break;
    }
    stet_status status = STET_OK;
    if (fd < 0 && errno != EEXIST)
        status = stet_fail_errno(err, errno, "%s: cannot create", path);
    if (fd >= 0)
        stet_sys_close(fd);
    stet_free(path);
    return status;
}

/* The temporary file turned out to be on another file system (a bind mount): copies it to the right one. */
static stet_status copy_to_file_system(stet_persist *p, content *c, stet_error *err) {
    char *dir = stet_ppath(p->dir, "local/temp"), *near = stet_file_temp_name(dir, "put");
    stet_status status = stet_file_mkdirs(dir, 0777, err);
    if (status == STET_OK)
        status = stet_file_copy(c->temp, near, 0444, false, NULL, err);
    int fd = -1;
    if (status == STET_OK && ((fd = stet_sys_open(near, O_RDONLY, 0)) < 0 || stet_sys_fsync(fd) != 0))
        status = stet_fail_errno(err, errno, "%s: cannot sync", near);
    if (fd >= 0)
        stet_sys_close(fd);
    if (status == STET_OK) {
        unlink(c->temp);
        stet_free(c->temp);
        c->temp = near;
    } else {
        unlink(near);
        stet_free(near);
    }
    stet_free(dir);
    return status;
}

/* The caller holds the lock. */
static stet_status install(stet_persist_put *w, content *c, stet_error *err) {
    stet_persist *p = w->p;
    struct stat now;
    stet_status status = STET_OK;
    if (c->here && stat_object(p, c, &now) && looks_the_same(&now, &c->seen))
        return STET_OK;
    if (!c->temp || c->fd >= 0) {
        status = stage(w, c, err); /* it vanished after the check */
        if (status != STET_OK)
            return status;
    }
    char *path = object_path(p, c, c->compressed);
    bool near = false, made = false;
    for (;;) {
        if (stet_sys_rename_new(c->temp, path) == 0) {
            stet_free(c->temp);
            c->temp = NULL;
            break;
        }
        int saved = errno;
        if (saved == EEXIST) {
            stet_status ignored;
            if (stet_pobject_read(p, c->id, c->size, STET_POBJECT_BY_HASH, NULL, NULL, &ignored, NULL) ==
                STET_POBJECT_GOOD)
                break;
            if (stet_sys_rename(c->temp, path) == 0) { /* the file that is in place is wrong */
                stet_free(c->temp);
                c->temp = NULL;
                break;
            }
            saved = errno;
        }
        if (saved == EXDEV && !near) {
            near = true;
            if ((status = copy_to_file_system(p, c, err)) == STET_OK)
                continue;
            break;
        }
        if (saved == ENOENT && !made && stet_persist_make_layout(p, NULL) == STET_OK) {
            made = true;
            continue;
        }
        status = stet_fail_errno(err, saved, "%s: cannot put the object in place", path);
        break;
    }
    if (status == STET_OK && !c->compressed)
        stet_pseal_put(p, c->id, path);
    stet_free(path);
    return status;
}

/* The entry exists already, maybe with ids of the other mode: then the objects with those ids have to be in place. */
static void use_objects_of(stet_persist_put *w, const stet_pentry *there) {
    stet_pcontent c;
    for (size_t at = 0; stet_pentry_content(there, &at, &c);)
        for (size_t i = 0; i < w->contents.len; i++) {
            content *mine = &w->contents.at[i];
            if (strlen(mine->kind) != c.kind_len || memcmp(mine->kind, c.kind, c.kind_len) != 0 ||
                (strlen(mine->id) == c.id_len && !memcmp(mine->id, c.id, c.id_len)))
                continue;
            memcpy(mine->id, c.id, c.id_len);
            mine->id[c.id_len] = '\0';
            mine->here = false; /* that was for the other id */
        }
}

static stet_status store_locked(stet_persist_put *w, stet_pentry *e, stet_error *err) {
    stet_persist *p = w->p;
    pthread_mutex_lock(&p->state_mutex);
    stet_status status = stet_persist_load(p, true, err);
    bool known = false;
    if (status == STET_OK) {
        const stet_pentry *there = stet_pset_find(&p->live, e);
        known = there != NULL;
        if (there && !stet_pentry_same_contents(there, e)) {
            status = stet_fail(
                err, STET_CONFLICT,
                "execution key clash: block %.*s, module %.43s, created_at %llu is there with other contents",
                (int)(e->block_len > 200 ? 200 : e->block_len), e->block, e->module, (unsigned long long)e->created);
            stet_hint(err, "two executions started in the same millisecond: use another created_at");
        } else if (there) {
            e->in_log = there->in_log;
            use_objects_of(w, there);
        }
    }
    pthread_mutex_unlock(&p->state_mutex);
    for (size_t i = 0; i < w->contents.len && status == STET_OK; i++) {
        content *c = &w->contents.at[i];
        if (c->trivial)
            continue;
        if (p->config.use_fresh_object_statuses && !known)
            status = mark_fresh(p, c, err);
        if (status == STET_OK)
            status = install(w, c, err);
    }
    if (status != STET_OK || known)
        return status;
    pthread_mutex_lock(&p->state_mutex);
    status = stet_plog_append(p, e, 1, err);
    bool due = false;
    if (status == STET_OK) {
        e->in_log = true;
        if (p->log.stamp.there)
            stet_pset_add(&p->live, &p->log.entries.at[p->log.entries.len - 1]);
        p->generation++;
        due = stet_persist_merge_due(p, NULL);
    }
    pthread_mutex_unlock(&p->state_mutex);
    if (due) {
        /* The entry is stored, whether or not the merge succeeds. */
        stet_error ignored = STET_ERROR_INIT;
        if (stet_persist_merge_locked(p, &ignored) != STET_OK)
            stet_error_clear(&ignored);
    }
    return status;
}

static void release(stet_persist_put *w) {
    for (size_t i = 0; i < w->contents.len; i++) {
        content *c = &w->contents.at[i];
        if (c->hasher)
            stet_hasher_end(c->hasher);
        drop_temp(c);
        stet_buf_release(&c->bytes);
        stet_vec_release(&c->extra);
    }
    stet_vec_release(&w->contents);
    stet_vec_release(&w->extra);
    stet_arena_release(&w->arena);
    stet_error_clear(&w->error);
    stet_free(w);
}

stet_status stet_persist_put_end(stet_persist_put *w, stet_persist_entry **entry, stet_error *err) {
    if (!w)
        return stet_fail_null(err);
    if (w->contents.len)
        finish(w, current(w));
    stet_pcontent_in *in = stet_alloc((w->contents.len + 1) * sizeof *in);
    stet_pentry_scratch scratch = {0};
    stet_pentry e;
    for (size_t i = 0; i < w->contents.len; i++) {
        content *c = &w->contents.at[i];
        in[i] = (stet_pcontent_in){.kind = c->kind,
                                   .id = c->id,
                                   .format = c->format,
                                   .size = c->size,
                                   .extra = c->extra.at,
                                   .extra_count = c->extra.len};
    }
    if (fine(w))
        w->status = stet_pentry_make(&w->key, in, w->contents.len, w->extra.at, w->extra.len, &w->arena, &scratch, &e,
                                     &w->error);
    for (size_t i = 0; i < w->contents.len && fine(w); i++)
        w->status = prepare(w, &w->contents.at[i], &w->error);
    if (fine(w)) {
        w->status = stet_persist_lock(w->p, false, &w->error);
        if (fine(w)) {
            w->status = store_locked(w, &e, &w->error);
            stet_persist_unlock(w->p);
        }
    }
    stet_status status = w->status;
    if (status == STET_OK && entry)
        *entry = stet_pentry_copy(&e);
    stet_error_move(err, &w->error);
    stet_pentry_scratch_release(&scratch);
    stet_free(in);
    release(w);
    return status;
}

void stet_persist_put_abort(stet_persist_put *w) {
    if (w)
        release(w);
}
