/* index.c - reads and writes the index of followed files. */

#include "files/index.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "os/file.h"
#include "os/lock.h"

#define MAGIC     "stetfil3"
#define LOG_MAGIC "stetlog3"
#define BASE_FILE "index"
#define LOG_FILE  "index.log"
#define LOCK_FILE "index.lock"
#define UNSEEN    1u /* mode of a row that is no look */
#define GONE      5u /* mode of a row of what is no longer followed: in the log only */
#define MAX_BYTES ((size_t)1 << 31)
#define LOG_BYTES ((size_t)64 << 10) /* a log of so much, and a quarter of the index, is folded into a new one */
#define LOCK_MS   5000

typedef struct header {
    char magic[8];
    uint64_t check; /* of everything after this member */
    uint64_t rows, key_bytes;
    int64_t seq;
    char space[40];
} header;

/* One batch of the log; rows and keys follow. */
typedef struct batch_header {
    char magic[8];
    uint64_t check; /* as above */
    uint64_t rows, key_bytes;
    int64_t seq;
    uint64_t base; /* the checksum of the index that it belongs to */
} batch_header;

/* 0 stands for none. */
static uint64_t checksum(const char *bytes, size_t len) {
    uint64_t sum = stet_checksum(bytes, len);
    return sum ? sum : 1;
}

static int by_key(const void *a, const void *b) {
    const stet_files_entry *x = a, *y = b;
    size_t n = x->key_len < y->key_len ? x->key_len : y->key_len;
    int order = memcmp(x->key, y->key, n);
    return order ? order : (x->key_len > y->key_len) - (x->key_len < y->key_len);
}

static bool row_fits(const stet_index_row *r, const char *keys, uint64_t key_bytes) {
    return (uint64_t)r->key_at + r->key_len < key_bytes && r->key_len > 1 && keys[r->key_at + r->key_len] == 0;
}

static stet_status load_base(const char *path, const char *space_uuid, stet_files_index *x, stet_error *err) {
    stet_buf b = STET_BUF(MAX_BYTES);
    stet_status status = stet_file_read(path, MAX_BYTES, &b, err);
    if (status != STET_OK) {
        stet_buf_release(&b);
        return status;
    }
    header h = {0};
    bool fine = b.len >= sizeof h;
    if (fine)
        memcpy(&h, b.data, sizeof h);
    fine = fine && memcmp(h.magic, MAGIC, 8) == 0 && h.rows < MAX_BYTES / sizeof(stet_index_row) &&
           h.key_bytes < MAX_BYTES && b.len == sizeof h + h.rows * sizeof(stet_index_row) + h.key_bytes &&
           checksum(b.data + 16, b.len - 16) == h.check;
    if (!fine || strncmp(h.space, space_uuid, sizeof h.space) != 0) {
        stet_buf_release(&b);
        return stet_fail(err, STET_CORRUPT, "%s: %s", path, fine ? "of another space" : "damaged");
    }
    x->base_len = b.len;
    x->text = stet_buf_take(&b, NULL);
    const char *keys = x->text + sizeof h + h.rows * sizeof(stet_index_row);
    stet_vec_reserve(&x->at, h.rows);
    for (size_t i = 0; i < h.rows && fine; i++) {
        stet_index_row r;
        memcpy(&r, x->text + sizeof h + i * sizeof r, sizeof r);
        fine = row_fits(&r, keys, h.key_bytes);
        if (fine)
            x->at.at[x->at.len++] = (stet_files_entry){
                .look = r.look, .key = keys + r.key_at, .key_len = r.key_len, .looked = r.look.mode != UNSEEN};
    }
    x->sorted = x->at.len;
    x->seq = h.seq;
    x->base = h.check;
    if (fine)
        return STET_OK;
    stet_files_index_release(x);
    return stet_fail(err, STET_CORRUPT, "%s: damaged", path);
}

static void apply_row(stet_files_index *x, const stet_index_row *r, const char *key) {
    stet_files_entry *e =
        r->look.mode == GONE ? stet_files_index_find(x, key, r->key_len) : stet_files_index_add(x, key, r->key_len);
    if (!e || (e->unsaved && e->looked)) /* what we know ourselves is newer for us */
        return;
    e->unsaved = false;
    e->doubt = false;
    if (r->look.mode == GONE) {
        x->gone += !e->gone;
        e->gone = true;
        return;
    }
    e->look = r->look;
    e->looked = r->look.mode != UNSEEN;
}

/* The batches after `x->log_at`. One that is not whole is the end: its writer was killed, or is still writing. */
static stet_status apply_log(const char *path, stet_files_index *x, stet_error *err) {
    stet_buf b = STET_BUF(MAX_BYTES);
    stet_error inner = STET_ERROR_INIT;
    stet_status status = stet_file_read(path, MAX_BYTES, &b, &inner);
    if (status == STET_NOT_FOUND) {
        stet_error_clear(&inner);
        status = STET_OK;
    }
    stet_error_move(err, &inner);
    bool dirty = x->dirty;
    while (status == STET_OK && b.len >= x->log_at + sizeof(batch_header)) {
        const char *at = b.data + x->log_at;
        batch_header h;
        memcpy(&h, at, sizeof h);
        size_t room = b.len - x->log_at - sizeof h;
        if (memcmp(h.magic, LOG_MAGIC, 8) != 0 || h.rows > room / sizeof(stet_index_row) || h.key_bytes > room ||
            h.rows * sizeof(stet_index_row) + h.key_bytes > room)
            break;
        size_t len = sizeof h + h.rows * sizeof(stet_index_row) + h.key_bytes;
        if (checksum(at + 16, len - 16) != h.check)
            break;
        const char *keys = at + sizeof h + h.rows * sizeof(stet_index_row);
        for (size_t i = 0; i < h.rows && h.base == x->base; i++) {
            stet_index_row r;
            memcpy(&r, at + sizeof h + i * sizeof r, sizeof r);
            if (row_fits(&r, keys, h.key_bytes))
                apply_row(x, &r, keys + r.key_at);
        }
        if (h.base == x->base)
            x->seq = h.seq;
        x->log_at += len;
    }
    x->dirty = dirty;
    stet_buf_release(&b);
    return status;
}

static stet_status load(const char *dir, const char *space_uuid, stet_files_index *x, stet_error *err) {
    char *base = stet_file_join(dir, BASE_FILE), *log = stet_file_join(dir, LOG_FILE);
    *x = (stet_files_index){0};
    stet_status status = load_base(base, space_uuid, x, err);
    if (status == STET_OK)
        status = apply_log(log, x, err);
    if (status != STET_OK)
        stet_files_index_release(x);
    stet_free(base);
    stet_free(log);
    return status;
}

/* Readers take the lock too: between the replacement of the index and the end of its log neither is whole. They
 * never make it: without a lock file there is no log yet, and the index comes and goes whole. */
static stet_status lock(const char *dir, bool write, stet_lock **out, stet_error *err) {
    char *path = stet_file_join(dir, LOCK_FILE);
    stet_error inner = STET_ERROR_INIT;
    stet_status status = write ? stet_lock_open(path, STET_LOCK_PLAIN, out, &inner)
                               : stet_lock_open_read(path, STET_LOCK_PLAIN, out, &inner);
    stet_free(path);
    if (status != STET_OK && !write) {
        stet_error_clear(&inner);
        *out = NULL;
        return STET_OK;
    }
    stet_error_move(err, &inner);
    if (status != STET_OK)
        return status;
    status = stet_lock_take(*out, write ? STET_LOCK_EXCLUSIVE : STET_LOCK_SHARED, LOCK_MS, err);
    if (status != STET_OK)
        stet_lock_close(*out);
    return status;
}

stet_status stet_files_index_load(const char *dir, const char *space_uuid, stet_files_index *x, stet_error *err) {
    stet_lock *l;
    *x = (stet_files_index){0};
    stet_status status = lock(dir, false, &l, err);
    if (status != STET_OK)
        return status;
    status = load(dir, space_uuid, x, err);
    stet_lock_close(l);
    return status;
}

/* Is the index on disk still the one that was read? */
static bool same_base(const char *dir, const stet_files_index *x) {
    char *path = stet_file_join(dir, BASE_FILE);
    header h = {0};
    int fd = stet_sys_open(path, O_RDONLY, 0);
    bool same = fd >= 0 && stet_sys_pread(fd, &h, sizeof h, 0) == (ssize_t)sizeof h && h.check == x->base;
    if (fd >= 0)
        stet_sys_close(fd);
    stet_free(path);
    return same;
}

/* The new index with our own news put over it. */
static void put_over(stet_files_index *y, const stet_files_index *x) {
    for (size_t i = 0; i < x->at.len; i++) {
        const stet_files_entry *from = &x->at.at[i];
        if (!from->unsaved)
            continue;
        stet_files_entry *e = stet_files_index_add(y, from->key, from->key_len);
        if (from->gone) {
            stet_files_index_drop(y, e);
            continue;
        }
        if (from->looked || !e->looked) {
            e->look = from->look;
            e->looked = from->looked;
            e->doubt = from->doubt;
        }
        e->unsaved = true;
    }
    y->dirty = x->dirty;
    y->seq = x->seq < y->seq ? x->seq : y->seq;
}

static stet_status catch_up_locked(const char *dir, const char *space_uuid, stet_files_index *x, bool *reloaded,
                                   stet_error *err) {
    if (x->base && same_base(dir, x)) {
        char *log = stet_file_join(dir, LOG_FILE);
        struct stat st;
        stet_status status = STET_OK;
        int64_t seq = x->seq;
        if (stet_sys_stat(log, &st) == 0 && (size_t)st.st_size > x->log_at)
            status = apply_log(log, x, err);
        x->seq = seq < x->seq ? seq : x->seq; /* rows of ours that were not compared since */
        stet_free(log);
        return status;
    }
    stet_files_index y;
    stet_error inner = STET_ERROR_INIT;
    stet_status status = load(dir, space_uuid, &y, &inner);
    if (status == STET_OK) {
        put_over(&y, x);
        stet_files_index_release(x);
        *x = y;
        *reloaded = true;
    } else if (status == STET_NOT_FOUND || status == STET_CORRUPT) {
        /* Somebody deleted or spoilt it: what is in memory is written out whole. */
        stet_error_clear(&inner);
        x->base = 0;
        x->dirty = true;
        status = STET_OK;
    }
    stet_error_move(err, &inner);
    return status;
}

stet_status stet_files_index_catch_up(const char *dir, const char *space_uuid, stet_files_index *x, bool *reloaded,
                                      stet_error *err) {
    stet_lock *l;
    *reloaded = false;
    stet_status status = lock(dir, false, &l, err);
    if (status != STET_OK)
        return status;
    status = catch_up_locked(dir, space_uuid, x, reloaded, err);
    stet_lock_close(l);
    return status;
}

void stet_files_index_sort(stet_files_index *x) {
    if (x->sorted == x->at.len)
        return;
    qsort(x->at.at, x->at.len, sizeof *x->at.at, by_key);
    x->sorted = x->at.len;
    stet_map_clear(&x->added);
}

static void put_row(stet_buf *rows, stet_buf *keys, const stet_files_entry *e) {
    stet_index_row r;
    memset(&r, 0, sizeof r);
    r.look = e->look;
    r.key_at = (uint32_t)keys->len;
    r.key_len = e->key_len;
    if (!e->looked || e->doubt) /* neither is a look that the next scan may rely on */
        r.look = (stet_look){.mode = UNSEEN};
    if (e->gone)
        r.look = (stet_look){.mode = GONE};
    stet_buf_add(rows, &r, sizeof r);
    stet_buf_add(keys, e->key, e->key_len);
    stet_buf_char(keys, 0);
}

static stet_status store_base(const char *dir, const char *space_uuid, stet_files_index *x, stet_error *err) {
    char *path = stet_file_join(dir, BASE_FILE), *log = stet_file_join(dir, LOG_FILE);
    header h = {.seq = x->seq};
    stet_files_index_sort(x);
    memcpy(h.magic, MAGIC, 8);
    memcpy(h.space, space_uuid, strnlen(space_uuid, sizeof h.space - 1));
    stet_buf b = STET_BUF(MAX_BYTES), keys = STET_BUF(MAX_BYTES);
    stet_buf_add(&b, &h, sizeof h);
    for (size_t i = 0; i < x->at.len; i++)
        if (!x->at.at[i].gone) {
            put_row(&b, &keys, &x->at.at[i]);
            h.rows++;
        }
    h.key_bytes = keys.len;
    stet_buf_add(&b, keys.data, keys.len);
    stet_status status;
    if (b.overflow || keys.overflow) {
        status = stet_fail(err, STET_LIMIT, "%s: too many files are followed", path);
    } else {
        memcpy(b.data, &h, sizeof h);
        h.check = checksum(b.data + 16, b.len - 16);
        memcpy(b.data, &h, sizeof h);
        status = stet_file_replace(path, b.data, b.len, 0644, err);
    }
    if (status == STET_OK) {
        x->base = h.check;
        x->base_len = b.len;
        x->log_at = 0;
        status = stet_file_remove(log, err);
    }
    stet_buf_release(&b);
    stet_buf_release(&keys);
    stet_free(path);
    stet_free(log);
    return status;
}

static stet_status append_log(const char *dir, stet_files_index *x, bool *full, stet_error *err) {
    batch_header h = {.seq = x->seq, .base = x->base};
    stet_buf b = STET_BUF(MAX_BYTES), keys = STET_BUF(MAX_BYTES);
    memcpy(h.magic, LOG_MAGIC, 8);
    stet_buf_add(&b, &h, sizeof h);
    for (size_t i = 0; i < x->at.len; i++)
        if (x->at.at[i].unsaved) {
            put_row(&b, &keys, &x->at.at[i]);
            h.rows++;
        }
    h.key_bytes = keys.len;
    stet_buf_add(&b, keys.data, keys.len);
    stet_status status = STET_OK;
    *full = b.overflow || keys.overflow || x->log_at + b.len > LOG_BYTES + x->base_len / 4;
    if (!*full) {
        char *path = stet_file_join(dir, LOG_FILE);
        memcpy(b.data, &h, sizeof h);
        h.check = checksum(b.data + 16, b.len - 16);
        memcpy(b.data, &h, sizeof h);
        /* What a killed writer left behind is cut off: it would hide everything after it. */
        int fd = stet_sys_open(path, O_WRONLY | O_CREAT, 0644);
        struct stat st;
        if (fd < 0)
            status = stet_fail_errno(err, errno, "%s: cannot open", path);
        else if (stet_sys_fstat(fd, &st) != 0 ||
                 ((size_t)st.st_size > x->log_at && stet_sys_ftruncate(fd, (off_t)x->log_at) != 0))
            status = stet_fail_errno(err, errno, "%s: cannot cut it", path);
        else if (stet_sys_pwrite(fd, b.data, b.len, (off_t)x->log_at) != (ssize_t)b.len)
            status = stet_fail_errno(err, errno ? errno : ENOSPC, "%s: cannot write", path);
        if (fd >= 0)
            stet_sys_close(fd);
        if (status == STET_OK)
            x->log_at += b.len;
        stet_free(path);
    }
    stet_buf_release(&b);
    stet_buf_release(&keys);
    return status;
}

stet_status stet_files_index_save(const char *dir, const char *space_uuid, stet_files_index *x, bool *reloaded,
                                  stet_error *err) {
    stet_lock *l;
    *reloaded = false;
    stet_status status = stet_file_mkdirs(dir, 0755, err);
    if (status == STET_OK)
        status = lock(dir, true, &l, err);
    if (status != STET_OK)
        return status;
    bool full = x->base == 0;
    status = catch_up_locked(dir, space_uuid, x, reloaded, err);
    if (status == STET_OK && !full)
        status = x->base ? append_log(dir, x, &full, err) : STET_OK;
    if (status == STET_OK && (full || x->base == 0))
        status = store_base(dir, space_uuid, x, err);
    stet_lock_close(l);
    if (status != STET_OK)
        return status;
    for (size_t i = 0; i < x->at.len; i++)
        x->at.at[i].unsaved = false;
    x->dirty = false;
    return STET_OK;
}

void stet_files_index_release(stet_files_index *x) {
    for (size_t i = 0; i < x->keys.len; i++)
        stet_free(x->keys.at[i]);
    stet_vec_release(&x->keys);
    stet_vec_release(&x->at);
    stet_map_release(&x->added);
    stet_free(x->text);
    *x = (stet_files_index){0};
}

static stet_files_entry *find(stet_files_index *x, const char *key, size_t len) {
    stet_files_entry want = {.key = key, .key_len = (uint32_t)len};
    if (x->sorted > 0) {
        stet_files_entry *e = bsearch(&want, x->at.at, x->sorted, sizeof want, by_key);
        if (e)
            return e;
    }
    stet_slot *slot = stet_map_get(&x->added, key, len);
    return slot ? &x->at.at[slot->n] : NULL;
}

stet_files_entry *stet_files_index_find(stet_files_index *x, const char *key, size_t len) {
    stet_files_entry *e = find(x, key, len);
    return e && !e->gone ? e : NULL;
}

stet_files_entry *stet_files_index_add(stet_files_index *x, const char *key, size_t len) {
    stet_files_entry *e = find(x, key, len);
    if (e && !e->gone)
        return e;
    if (e) { /* followed again */
        x->gone--;
        e->gone = e->looked = e->doubt = false;
    } else {
        char *copy = stet_strndup(key, len);
        *stet_vec_add(&x->keys) = copy;
        stet_map_put(&x->added, key, len, (stet_slot){.n = x->at.len});
        e = stet_vec_add(&x->at);
        *e = (stet_files_entry){.key = copy, .key_len = (uint32_t)len};
    }
    stet_files_index_touch(x, e);
    return e;
}

void stet_files_index_touch(stet_files_index *x, stet_files_entry *e) {
    e->unsaved = true;
    x->dirty = true;
}

void stet_files_index_drop(stet_files_index *x, stet_files_entry *e) {
    x->gone += !e->gone;
    e->gone = true;
    e->looked = false;
    stet_files_index_touch(x, e);
}
