/* repo_blob.c - contents of files: small ones as bytes in one datum, larger ones as a blob whose parts are data.
 *
 *   B1. One content has one id: the parts are STET_BLOB_PART bytes each, the last one shorter and not empty, and whatever
 *       fits into one part is not a blob.
 *   B2. A content is handed out as right only after its size and its SHA-256 were compared with what the blob says.
 */
#include <string.h>

#include "base/text.h"
#include "os/file.h"
#include "repo/repo_internal.h"

enum { PARTS_AT_ONCE = 16 }; /* in one transaction: others may write in between */

static stet_status put_bytes(stet_repo *r, const char *bytes, size_t len, stet_hash *id, stet_error *err) {
    char *text = stet_alloc(len * 4 / 3 + 8);
    size_t n = stet_base64url_encode(bytes, len, text);
    stet_value record = stet_value_object();
    stet_value_put(&record, "kind", stet_value_string("bytes"));
    stet_value_put(&record, "payload", stet_value_string_n(text, n));
    stet_value_put(&record, "type", stet_value_string("datum"));
    stet_free(text);
    stet_status st = stet_repo_put(r, record, STET_RECORD_DATUM, id, err);
    stet_value_release(record);
    return st;
}

stet_status stet_repo_put_content(stet_repo *r, stet_repo_source *source, void *ctx, stet_hash *datum, int64_t *length,
                                  stet_error *err) {
    char *part = stet_alloc(STET_BLOB_PART);
    stet_value parts = stet_value_array();
    stet_hasher *h = stet_hasher_begin();
    stet_hash id = {{0}}, whole;
    int64_t size = 0;
    bool begun = false;
    stet_status st = STET_OK;
    for (size_t got = STET_BLOB_PART; got == STET_BLOB_PART && st == STET_OK;) {
        st = source(ctx, part, STET_BLOB_PART, &got, err);
        if (st != STET_OK || (got == 0 && size > 0))
            break;
        if (!begun)
            st = stet_repo_enter(r, &begun, err);
        if (st == STET_OK)
            st = put_bytes(r, part, got, &id, err);
        if (st != STET_OK)
            break;
        stet_value_push(&parts, stet_hash_text(id));
        stet_hasher_add(h, part, got);
        size += (int64_t)got;
        if (begun && stet_value_count(parts) % PARTS_AT_ONCE == 0) {
            st = stet_repo_leave(r, begun, st, err);
            begun = false;
        }
    }
    whole = stet_hasher_end(h);
    if (st == STET_OK && !begun)
        st = stet_repo_enter(r, &begun, err);
    if (st == STET_OK && stet_value_count(parts) > 1) {
        stet_value record = stet_value_object(), payload = stet_value_object();
        stet_value_put(&payload, "parts", stet_value_retain(parts));
        stet_value_put(&payload, "sha256", stet_hash_text(whole));
        stet_value_put(&payload, "size", stet_value_int(size));
        stet_value_put(&record, "kind", stet_value_string("blob"));
        stet_value_put(&record, "payload", payload);
        stet_value_put(&record, "type", stet_value_string("datum"));
        st = stet_repo_put(r, record, STET_RECORD_DATUM, &id, err);
        stet_value_release(record);
    }
    if (begun)
        st = stet_repo_leave(r, begun, st, err);
    if (st == STET_OK) {
        *datum = id;
        *length = size;
    }
    stet_value_release(parts);
    stet_free(part);
    return st;
}

typedef struct file_source {
    int fd;
    const char *name;
    int64_t left; /* negative: to the end */
} file_source;

static stet_status read_file(void *ctx, void *bytes, size_t room, size_t *got, stet_error *err) {
    file_source *f = ctx;
    size_t want = f->left >= 0 && f->left < (int64_t)room ? (size_t)f->left : room;
    stet_status st = stet_file_read_all(f->fd, f->name, bytes, want, got, err);
    if (st == STET_OK && f->left >= 0)
        f->left -= (int64_t)*got;
    return st;
}

stet_status stet_repo_put_file(stet_repo *r, int fd, const char *name, int64_t most, stet_hash *datum,
                               stet_error *err) {
    file_source f = {fd, name, most};
    int64_t size;
    return stet_repo_put_content(r, read_file, &f, datum, &size, err);
}

/* The bytes of a datum of kind bytes, appended. */
static stet_status add_bytes(stet_repo *r, stet_hash id, stet_buf *out, stet_error *err) {
    stet_value record;
    size_t n, len = 0;
    stet_status st = stet_repo_get(r, id, STET_RECORD_DATUM, &record, err);
    if (st != STET_OK)
        return st;
    stet_value payload = stet_value_get(record, "payload");
    if (!stet_value_text_is(stet_value_get(record, "kind"), "bytes"))
        st = stet_fail(err, STET_CORRUPT, "object %s is not a part of a content", stet_short(id).text);
    else {
        const char *text = stet_value_as_string(&payload, &n);
        char *room = stet_buf_reserve(out, n + 1);
        if (stet_base64url_decode(text, n, room, &len))
            out->len += len;
        else
            st = stet_fail(err, STET_CORRUPT, "object %s is not base64url", stet_short(id).text);
    }
    stet_value_release(record);
    return st;
}

/* Passes the parts from `offset` on. Part `i` begins at `i` times STET_BLOB_PART (B1). */
static stet_status pass_parts(stet_repo *r, stet_value parts, int64_t offset, stet_repo_sink_fn *sink, void *ctx,
                              stet_error *err) {
    stet_buf b = STET_BUF(0);
    stet_status st = STET_OK;
    for (size_t i = (size_t)offset / STET_BLOB_PART; i < stet_value_count(parts) && st == STET_OK; i++) {
        stet_hash id = {{0}};
        size_t from = (size_t)offset > i * STET_BLOB_PART ? (size_t)offset - i * STET_BLOB_PART : 0;
        stet_buf_clear(&b);
        stet_hash_of_text(stet_value_at(parts, i), &id);
        st = add_bytes(r, id, &b, err);
        if (st == STET_OK && from < b.len)
            st = sink(ctx, b.data + from, b.len - from, err);
    }
    stet_buf_release(&b);
    return st;
}

typedef struct whole {
    stet_hasher *hasher;
    int64_t size;
    stet_repo_sink_fn *sink;
    void *ctx;
} whole;

static stet_status add_to_whole(void *ctx, const void *bytes, size_t len, stet_error *err) {
    whole *w = ctx;
    stet_hasher_add(w->hasher, bytes, len);
    w->size += (int64_t)len;
    return w->sink(w->ctx, bytes, len, err);
}

/* B2. */
static stet_status pass_whole(stet_repo *r, stet_hash datum, stet_value payload, stet_repo_sink_fn *sink, void *ctx,
                              stet_error *err) {
    whole w = {stet_hasher_begin(), 0, sink, ctx};
    stet_hash said = {{0}};
    stet_status st = pass_parts(r, stet_value_get(payload, "parts"), 0, add_to_whole, &w, err);
    stet_hash found = stet_hasher_end(w.hasher);
    if (st == STET_OK &&
        (w.size != stet_value_as_int(stet_value_get(payload, "size")) ||
         !stet_hash_of_text(stet_value_get(payload, "sha256"), &said) || !stet_hash_equal(said, found)))
        st = stet_fail(err, STET_CORRUPT, "object %s: its parts are not what it says", stet_short(datum).text);
    return st;
}

stet_status stet_repo_get_content(stet_repo *r, stet_hash datum, int64_t offset, stet_repo_sink_fn *sink, void *ctx,
                                  stet_error *err) {
    stet_value record, alone = stet_value_array();
    stet_status st = stet_repo_get(r, datum, STET_RECORD_DATUM, &record, err);
    stet_value_push(&alone, stet_hash_text(datum));
    if (st != STET_OK) {
        stet_value_release(alone);
        return st;
    }
    stet_value kind = stet_value_get(record, "kind"), payload = stet_value_get(record, "payload");
    bool blob = stet_value_text_is(kind, "blob");
    if (!blob && !stet_value_text_is(kind, "bytes"))
        st = stet_fail(err, STET_INVALID, "object %s is no content of a file", stet_short(datum).text);
    else if (blob && offset == 0)
        st = pass_whole(r, datum, payload, sink, ctx, err);
    else
        st = pass_parts(r, blob ? stet_value_get(payload, "parts") : alone, offset, sink, ctx, err);
    stet_value_release(alone);
    stet_value_release(record);
    return st;
}

typedef struct file_sink {
    int fd;
    const char *path;
} file_sink;

static stet_status write_part(void *ctx, const void *bytes, size_t len, stet_error *err) {
    const file_sink *f = ctx;
    return stet_file_write_all(f->fd, f->path, bytes, len, err);
}

stet_status stet_repo_write_file(stet_repo *r, stet_hash datum, int fd, const char *path, stet_error *err) {
    file_sink f = {fd, path};
    return stet_repo_get_content(r, datum, 0, write_part, &f, err);
}
