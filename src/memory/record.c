/* record.c - the two blobs of a commit row: writing and reading them. */

#include "memory/record.h"

#include <string.h>

#include "base/crc32c.h"

void stet_varint_put(stet_buf *b, uint64_t n) {
    char bytes[10];
    size_t len = 0;
    while (n >= 0x80) {
        bytes[len++] = (char)(n | 0x80);
        n >>= 7;
    }
    bytes[len++] = (char)n;
    stet_buf_add(b, bytes, len);
}

bool stet_varint_get(const char **p, const char *end, uint64_t *n) {
    uint64_t out = 0;
    for (unsigned shift = 0; shift < 64 && *p < end; shift += 7) {
        unsigned char c = (unsigned char)*(*p)++;
        if (shift == 63 && c > 1)
            return false;
        out |= (uint64_t)(c & 0x7F) << shift;
        if (c < 0x80) {
            *n = out;
            return true;
        }
    }
    return false;
}

void stet_record_start(stet_buf *changes) {
    stet_buf_char(changes, 2);
}

void stet_record_add(stet_buf *changes, int64_t *last, int64_t doc, stet_revision_kind kind, int64_t back,
                     const char *body, size_t body_len, const stet_change *at, size_t len) {
    uint32_t sum = body_len ? stet_crc32c(0, body, body_len) : 0;
    stet_varint_put(changes, (uint64_t)(doc - *last));
    stet_varint_put(changes, (uint64_t)kind);
    stet_varint_put(changes, (uint64_t)back);
    stet_varint_put(changes, body_len);
    stet_buf_add(changes, (char[]){(char)sum, (char)(sum >> 8), (char)(sum >> 16), (char)(sum >> 24)}, 4);
    stet_varint_put(changes, len);
    stet_pathref before = STET_PATH_ROOT;
    for (size_t i = 0; i < len; i++) {
        size_t shared = 0, most = before.len < at[i].path.len ? before.len : at[i].path.len;
        while (shared < most && before.bytes[shared] == at[i].path.bytes[shared])
            shared++;
        stet_varint_put(changes, shared * 2 + (at[i].kind == STET_KEYSET));
        stet_varint_put(changes, at[i].path.len - shared);
        stet_buf_add(changes, at[i].path.bytes + shared, at[i].path.len - shared);
        before = at[i].path;
    }
    *last = doc;
}

void stet_record_begin(stet_record *r, const void *bytes, size_t len) {
    *r = (stet_record){.p = bytes, .end = (const char *)bytes + len, .sums = true};
    r->damaged = len == 0 || *r->p++ != 2;
}

void stet_record_begin_old(stet_record *r, const void *bytes, size_t len) {
    *r = (stet_record){.p = bytes, .end = (const char *)bytes + len};
    r->damaged = len != 0 && *r->p++ != 1;
}

/* The checksum of a part of the body. */
static bool get_sum(stet_record *r, uint32_t *sum) {
    *sum = 0;
    if (!r->sums)
        return true;
    if (r->end - r->p < 4)
        return false;
    for (int i = 0; i < 4; i++)
        *sum |= (uint32_t)(unsigned char)*r->p++ << (8 * i);
    return true;
}

/* Skips the leaves of a revision, so that the next one can be found. */
static bool skip_leaves(stet_record *r, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint64_t shared, rest;
        if (!stet_varint_get(&r->p, r->end, &shared) || !stet_varint_get(&r->p, r->end, &rest) ||
            rest > (size_t)(r->end - r->p))
            return false;
        r->p += rest;
    }
    return true;
}

bool stet_record_next(stet_record *r, stet_record_rev *out) {
    if (r->damaged || r->p == r->end)
        return false;
    uint64_t doc, kind, back, body, leaves;
    uint32_t sum = 0;
    const char *start;
    if (!stet_varint_get(&r->p, r->end, &doc) || !stet_varint_get(&r->p, r->end, &kind) ||
        !stet_varint_get(&r->p, r->end, &back) || !stet_varint_get(&r->p, r->end, &body) || !get_sum(r, &sum) ||
        !stet_varint_get(&r->p, r->end, &leaves) || doc == 0 || doc >= ((uint64_t)1 << 40) ||
        kind < STET_REVISION_SET || kind > STET_REVISION_LOST || back > INT64_MAX || body > STET_BUF_MAX ||
        leaves > (size_t)(r->end - r->p) || (start = r->p, !skip_leaves(r, leaves))) {
        r->damaged = true;
        return false;
    }
    r->doc += (int64_t)doc;
    *out = (stet_record_rev){.doc = r->doc,
                             .kind = (stet_revision_kind)kind,
                             .back = (int64_t)back,
                             .body_at = r->body_at,
                             .body_len = body,
                             .body_sum = sum,
                             .leaf_count = leaves,
                             .leaves = start,
                             .leaves_len = (size_t)(r->p - start)};
    r->body_at += body;
    return true;
}

bool stet_record_find(const void *bytes, size_t len, int64_t doc, stet_record_rev *out, bool *damaged) {
    stet_record r;
    stet_record_begin(&r, bytes, len);
    bool found = false;
    while (stet_record_next(&r, out) && out->doc <= doc) {
        if (out->doc == doc) {
            found = true;
            break;
        }
    }
    *damaged = r.damaged;
    return found;
}

const stet_change *stet_record_leaves(const stet_record_rev *rev, stet_arena *arena) {
    const char *p = rev->leaves, *end = p + rev->leaves_len;
    stet_change *out = stet_arena_alloc(arena, (rev->leaf_count + 1) * sizeof *out);
    stet_pathref before = STET_PATH_ROOT;
    for (size_t i = 0; i < rev->leaf_count; i++) {
        uint64_t shared, rest;
        if (!stet_varint_get(&p, end, &shared) || !stet_varint_get(&p, end, &rest) || shared / 2 > before.len ||
            rest > (size_t)(end - p) || shared / 2 + rest > STET_PATH_MAX_BYTES)
            return NULL;
        size_t keep = shared / 2;
        char *path = stet_arena_alloc(arena, keep + rest + 1);
        memcpy(path, before.bytes, keep);
        memcpy(path + keep, p, rest);
        path[keep + rest] = 0;
        p += rest;
        out[i].path = before = (stet_pathref){path, keep + rest};
        out[i].kind = shared & 1 ? STET_KEYSET : STET_VALUE;
        if (!stet_path_valid(before))
            return NULL;
    }
    return out;
}

const char *stet_record_body(const stet_record_rev *rev, const char *body, size_t body_len) {
    if (rev->body_at > body_len || rev->body_len > body_len - rev->body_at)
        return NULL;
    if (rev->body_len == 0)
        return "";
    const char *part = body + rev->body_at;
    return stet_crc32c(0, part, rev->body_len) == rev->body_sum ? part : NULL;
}

static int64_t content_of(const char *changes, size_t len) {
    return (int32_t)(len ? stet_crc32c(0, changes, len) : 0);
}

bool stet_commit_sound(stet_stmt *q, const char **changes, size_t *len) {
    bool sound = stet_column_sound(q, STET_COMMIT_SEQ, STET_COMMIT_SUM);
    *changes = stet_column_blob(q, STET_COMMIT_CHANGES, len);
    return sound && content_of(*changes, *len) == stet_column_int(q, STET_COMMIT_CONTENT);
}

void stet_commit_fields(stet_row *out, int64_t seq, int64_t branch, int64_t time_ms, const char *changes, size_t len) {
    stet_row_int(out, STET_COMMIT_SEQ, seq);
    stet_row_int(out, STET_COMMIT_BRANCH, branch);
    stet_row_int(out, STET_COMMIT_TIME, time_ms);
    stet_row_int(out, STET_COMMIT_CONTENT, content_of(changes, len));
    stet_row_sum(out, STET_COMMIT_SUM);
}
