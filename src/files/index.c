#include "files/index.h"

#include <string.h>

#include "os/file.h"

#define MAGIC     "stetfil1"
#define UNSEEN    1u /* mode of a row that is no look */
#define MAX_BYTES ((size_t)1 << 31)

typedef struct header {
    char magic[8];
    uint64_t check; /* of everything after this member */
    uint64_t rows, key_bytes;
    int64_t seq;
    char space[40];
} header;

/* Against torn and rotten files, not against people. */
static uint64_t checksum(const char *bytes, size_t len) {
    uint64_t a = 0x9E3779B97F4A7C15u, b = len;
    size_t i = 0;
    for (; i + 16 <= len; i += 16) {
        uint64_t x, y;
        memcpy(&x, bytes + i, 8);
        memcpy(&y, bytes + i + 8, 8);
        a = (a ^ x) * 0xD6E8FEB86659FD93u;
        a ^= a >> 32;
        b = (b ^ y) * 0xA0761D6478BD642Fu;
        b ^= b >> 29;
    }
    for (; i < len; i++)
        a = (a ^ (unsigned char)bytes[i]) * 0x100000001B3u;
    return a ^ (b << 1 | b >> 63);
}

stet_status stet_files_index_load(const char *path, const char *space_uuid, stet_files_index *x, stet_error *err) {
    stet_buf b = STET_BUF(MAX_BYTES);
    *x = (stet_files_index){0};
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
    x->text = stet_buf_take(&b, NULL);
    const char *keys = x->text + sizeof h + h.rows * sizeof(stet_index_row);
    stet_vec_reserve(&x->at, h.rows);
    for (size_t i = 0; i < h.rows && fine; i++) {
        stet_index_row r;
        memcpy(&r, x->text + sizeof h + i * sizeof r, sizeof r);
        fine = (uint64_t)r.key_at + r.key_len < h.key_bytes && r.key_len > 1 && keys[r.key_at + r.key_len] == 0;
        if (fine)
            *stet_vec_add(&x->at) =
                (stet_files_entry){r.look, keys + r.key_at, r.key_len, r.look.mode != UNSEEN, false};
    }
    x->sorted = x->at.len;
    x->seq = h.seq;
    if (fine)
        return STET_OK;
    stet_files_index_release(x);
    return stet_fail(err, STET_CORRUPT, "%s: damaged", path);
}

static int by_key(const void *a, const void *b) {
    const stet_files_entry *x = a, *y = b;
    size_t n = x->key_len < y->key_len ? x->key_len : y->key_len;
    int order = memcmp(x->key, y->key, n);
    return order ? order : (x->key_len > y->key_len) - (x->key_len < y->key_len);
}

void stet_files_index_sort(stet_files_index *x) {
    if (x->sorted == x->at.len)
        return;
    qsort(x->at.at, x->at.len, sizeof *x->at.at, by_key);
    x->sorted = x->at.len;
    stet_map_clear(&x->added);
}

stet_status stet_files_index_store(const char *path, const char *space_uuid, stet_files_index *x, stet_error *err) {
    stet_files_index_sort(x);
    header h = {.seq = x->seq};
    memcpy(h.magic, MAGIC, 8);
    memcpy(h.space, space_uuid, strnlen(space_uuid, sizeof h.space - 1));
    stet_buf b = STET_BUF(MAX_BYTES), keys = STET_BUF(MAX_BYTES);
    stet_buf_add(&b, &h, sizeof h);
    for (size_t i = 0; i < x->at.len; i++) {
        const stet_files_entry *e = &x->at.at[i];
        stet_index_row r;
        memset(&r, 0, sizeof r);
        r.look = e->look;
        r.key_at = (uint32_t)keys.len;
        r.key_len = e->key_len;
        if (!e->looked || e->doubt) /* neither is a look that the next scan may rely on */
            r.look = (stet_look){.mode = UNSEEN};
        stet_buf_add(&b, &r, sizeof r);
        stet_buf_add(&keys, e->key, e->key_len);
        stet_buf_char(&keys, 0);
    }
    h.rows = x->at.len;
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
    stet_buf_release(&b);
    stet_buf_release(&keys);
    x->dirty = status != STET_OK;
    return status;
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

stet_files_entry *stet_files_index_find(stet_files_index *x, const char *key, size_t len) {
    stet_files_entry want = {.key = key, .key_len = (uint32_t)len};
    if (x->sorted > 0) {
        stet_files_entry *e = bsearch(&want, x->at.at, x->sorted, sizeof want, by_key);
        if (e)
            return e;
    }
    stet_slot *slot = stet_map_get(&x->added, key, len);
    return slot ? &x->at.at[slot->n] : NULL;
}

stet_files_entry *stet_files_index_add(stet_files_index *x, const char *key, size_t len) {
    stet_files_entry *e = stet_files_index_find(x, key, len);
    if (e)
        return e;
    char *copy = stet_strndup(key, len);
    *stet_vec_add(&x->keys) = copy;
    stet_map_put(&x->added, key, len, (stet_slot){.n = x->at.len});
    e = stet_vec_add(&x->at);
    *e = (stet_files_entry){.key = copy, .key_len = (uint32_t)len};
    x->dirty = true;
    return e;
}
