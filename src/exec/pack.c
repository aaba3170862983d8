#include "exec/pack.h"

#include <string.h>

#include "exec/repo_internal.h"

static const char magic[] = "stet pack 1\n";
enum { MAGIC = sizeof magic - 1, ID = 32 };

static void little(stet_buf *b, uint64_t v, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        stet_buf_char(b, (char)(v >> (8 * i) & 0xFF));
}

static uint64_t read_little(const char *p, size_t bytes) {
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++)
        v |= (uint64_t)(unsigned char)p[i] << (8 * i);
    return v;
}

/* The body is `a` and then `b`. */
static void add(stet_pack *p, char kind, const void *a, size_t a_len, const void *b, size_t b_len) {
    if (p->bytes.len == 0)
        stet_buf_add(&p->bytes, magic, MAGIC);
    little(&p->bytes, a_len + b_len, 4);
    size_t from = p->bytes.len;
    stet_buf_char(&p->bytes, kind);
    stet_buf_add(&p->bytes, a, a_len);
    stet_buf_add(&p->bytes, b, b_len);
    if (!p->bytes.overflow)
        little(&p->bytes, stet_checksum(p->bytes.data + from, p->bytes.len - from), 8);
}

void stet_pack_object(stet_pack *p, stet_hash id, const char *bytes, size_t len) {
    add(p, 'o', id.bytes, ID, bytes, len);
    p->count++;
}

void stet_pack_lost(stet_pack *p, stet_hash id, stet_record_type type, const char *tombstone, size_t len) {
    char head[ID + 1];
    memcpy(head, id.bytes, ID);
    head[ID] = (char)type;
    add(p, 't', head, sizeof head, tombstone, len);
    p->count++;
}

void stet_pack_end(stet_pack *p) {
    char count[8];
    for (size_t i = 0; i < 8; i++)
        count[i] = (char)(p->count >> (8 * i) & 0xFF);
    add(p, 'e', count, 8, NULL, 0);
}

void stet_pack_clear(stet_pack *p) {
    stet_buf_clear(&p->bytes);
    p->count = 0;
}

void stet_pack_release(stet_pack *p) {
    stet_buf_release(&p->bytes);
    p->count = 0;
}

/* ---- Applying ---- */

typedef struct reader {
    const char *at, *end;
    uint64_t count;
    bool over; /* the last record has been there */
} reader;

static stet_status damaged(stet_error *err, const char *what) {
    return stet_fail(err, STET_CORRUPT, "a stream of objects: %s", what);
}

static stet_status next(reader *in, char *kind, const char **body, size_t *len, stet_error *err) {
    if (in->end - in->at < 4 + 1 + 8)
        return damaged(err, "cut off");
    uint64_t n = read_little(in->at, 4);
    if (n > STET_RECORD_MAX_BYTES + ID + 1)
        return damaged(err, "a record is larger than one can be");
    if ((uint64_t)(in->end - in->at) < 4 + 1 + n + 8)
        return damaged(err, "cut off");
    const char *from = in->at + 4;
    if (stet_checksum(from, 1 + n) != read_little(from + 1 + n, 8))
        return damaged(err, "damaged on the way: a checksum is wrong");
    *kind = from[0];
    *body = from + 1;
    *len = n;
    in->at = from + 1 + n + 8;
    return STET_OK;
}

static stet_status apply_lost(stet_repo *r, const char *body, size_t len, stet_error *err) {
    stet_hash id, of;
    stet_value v;
    if (len < ID + 1 || (unsigned char)body[ID] >= STET_RECORD_TOMBSTONE)
        return damaged(err, "a tombstone that is none");
    memcpy(id.bytes, body, ID);
    const char *text = body + ID + 1;
    size_t n = len - ID - 1;
    stet_status st = stet_record_read(stet_hash_of(text, n), text, n, STET_RECORD_TOMBSTONE, &v, err);
    if (st != STET_OK)
        return st;
    bool fits = stet_hash_of_text(stet_get(v, "object"), &of) && stet_hash_equal(of, id);
    stet_release(v);
    return fits ? stet_object_store_lost(r, id, (stet_record_type)body[ID], text, n, err)
                : damaged(err, "the tombstone of another object");
}

static stet_status apply_one(stet_repo *r, reader *in, stet_copy_report *report, stet_error *err) {
    char kind = 0;
    const char *body = NULL;
    size_t len = 0;
    stet_status st = next(in, &kind, &body, &len, err);
    if (st != STET_OK)
        return st;
    if (kind == 'e') {
        in->over = true;
        return len == 8 && read_little(body, 8) == in->count && in->at == in->end
                   ? STET_OK
                   : damaged(err, "its end does not fit what came before");
    }
    in->count++;
    report->objects++;
    report->bytes += (int64_t)len;
    if (kind == 't')
        return apply_lost(r, body, len, err);
    if (kind != 'o' || len < ID)
        return damaged(err, "an unknown kind of record");
    stet_hash id;
    memcpy(id.bytes, body, ID);
    return stet_repo_put_bytes(r, id, body + ID, len - ID, err);
}

stet_status stet_pack_apply(stet_repo *r, const char *bytes, size_t len, stet_copy_report *report, stet_error *err) {
    stet_copy_report done = {0};
    bool begun;
    if (len < MAGIC || memcmp(bytes, magic, MAGIC) != 0)
        return damaged(err, "it does not begin as one");
    reader in = {bytes + MAGIC, bytes + len, 0, false};
    stet_status st = stet_repo_enter(r, &begun, err);
    while (st == STET_OK && !in.over)
        st = apply_one(r, &in, &done, err);
    st = stet_repo_leave(r, begun, st, err);
    if (st == STET_OK && report) {
        report->objects += done.objects;
        report->bytes += done.bytes;
    }
    return st;
}
