/* pack.c - streams of objects between repositories: records with a length and a checksum. */

#include "repo/pack.h"

#include <string.h>

#include "repo/repo_internal.h"

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
    add(p, 'e', count, 8, "", 0);
}

void stet_pack_clear(stet_pack *p) {
    stet_buf_clear(&p->bytes);
    p->count = 0;
}

void stet_pack_release(stet_pack *p) {
    stet_buf_release(&p->bytes);
    p->count = 0;
}

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

/* Takes a record apart. `*over`: it was the last one. */
static stet_status next_object(reader *in, stet_sent *out, stet_error *err) {
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
    size_t head = kind == 't' ? ID + 1 : ID;
    if ((kind != 'o' && kind != 't') || len < head)
        return damaged(err, "an unknown kind of record");
    if (kind == 't' && (unsigned char)body[ID] >= STET_RECORD_TOMBSTONE)
        return damaged(err, "a tombstone that is none");
    *out = (stet_sent){.lost = kind == 't', .bytes = body + head, .len = len - head};
    memcpy(out->id.bytes, body, ID);
    if (out->lost)
        out->type = (stet_record_type)body[ID];
    return STET_OK;
}

stet_status stet_pack_each(const char *bytes, size_t len, stet_take_fn *take, void *ctx, stet_error *err) {
    if (len < MAGIC || memcmp(bytes, magic, MAGIC) != 0)
        return damaged(err, "it does not begin as one");
    reader in = {bytes + MAGIC, bytes + len, 0, false};
    stet_status st = STET_OK;
    while (st == STET_OK && !in.over) {
        stet_sent sent;
        st = next_object(&in, &sent, err);
        if (st == STET_OK && !in.over)
            st = take(ctx, &sent, err);
    }
    return st;
}

static stet_status apply_lost(stet_repo *r, const stet_sent *sent, stet_error *err) {
    stet_hash of;
    stet_value v;
    stet_status st =
        stet_record_read(stet_hash_of(sent->bytes, sent->len), sent->bytes, sent->len, STET_RECORD_TOMBSTONE, &v, err);
    if (st != STET_OK)
        return st;
    bool fits = stet_hash_of_text(stet_value_get(v, "object"), &of) && stet_hash_equal(of, sent->id);
    stet_value_release(v);
    return fits ? stet_object_store_lost(r, sent->id, sent->type, sent->bytes, sent->len, err)
                : damaged(err, "the tombstone of another object");
}

typedef struct applying {
    stet_repo *r;
    stet_copy_report report;
} applying;

static stet_status apply_one(void *ctx, const stet_sent *sent, stet_error *err) {
    applying *a = ctx;
    a->report.objects++;
    a->report.bytes += (int64_t)sent->len;
    return sent->lost ? apply_lost(a->r, sent, err) : stet_repo_put_bytes(a->r, sent->id, sent->bytes, sent->len, err);
}

stet_status stet_pack_apply(stet_repo *r, const char *bytes, size_t len, stet_copy_report *report, stet_error *err) {
    applying a = {.r = r};
    bool begun;
    stet_status st = stet_repo_enter(r, &begun, err);
    if (st == STET_OK)
        st = stet_pack_each(bytes, len, apply_one, &a, err);
    st = stet_repo_leave(r, begun, st, err);
    if (st == STET_OK && report) {
        report->objects += a.report.objects;
        report->bytes += a.report.bytes;
    }
    return st;
}
