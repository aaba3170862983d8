/* observe_rows.c - sets of places in documents, and the blob that an observation is stored as. */

#include "memory/observe_rows.h"

#include <stdlib.h>

#include "memory/record.h"

int stet_bytes_compare(stet_bytes a, stet_bytes b) {
    int order = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int by_place(const void *a, const void *b) {
    const stet_place *x = a, *y = b;
    if (x->doc != y->doc)
        return x->doc < y->doc ? -1 : 1;
    int order = stet_path_compare(x->path, y->path);
    if (order != 0)
        return order;
    return (int)x->flag - (int)y->flag;
}

void stet_places_settle(stet_places *p) {
    bool sorted = true;
    for (size_t i = 1; i < p->len && sorted; i++)
        sorted = by_place(&p->at[i - 1], &p->at[i]) < 0;
    if (!sorted)
        qsort(p->at, p->len, sizeof *p->at, by_place);
    size_t to = 0;
    for (size_t i = 0; i < p->len;) {
        size_t first = to, end = i;
        for (; end < p->len && p->at[end].doc == p->at[i].doc; end++) {
            stet_place *last = to > first ? &p->at[to - 1] : NULL;
            if (last && stet_path_compare(last->path, p->at[end].path) == 0) {
                /* The same path: flag 0 comes first and wins. The lower sequence holds for both. */
                if (p->at[end].seq < last->seq)
                    last->seq = p->at[end].seq;
                continue;
            }
            p->at[to++] = p->at[end];
        }
        if (to - first > STET_PLACES_PER_DOC) {
            stet_place all = p->at[first];
            all.flag = 0;
            for (size_t k = first + 1; k < to; k++) {
                all.path = stet_path_common(all.path, p->at[k].path);
                if (p->at[k].seq < all.seq)
                    all.seq = p->at[k].seq;
            }
            p->at[first] = all;
            to = first + 1;
        }
        i = end;
    }
    p->len = to;
}

void stet_places_pack(const stet_places *p, stet_buf *out) {
    int64_t last = 0;
    for (size_t i = 0; i < p->len;) {
        size_t end = i;
        while (end < p->len && p->at[end].doc == p->at[i].doc)
            end++;
        stet_varint_put(out, (uint64_t)(p->at[i].doc - last));
        stet_varint_put(out, end - i);
        last = p->at[i].doc;
        for (; i < end; i++) {
            stet_varint_put(out, p->at[i].path.len * 2 + (p->at[i].flag & 1));
            stet_buf_add(out, p->at[i].path.bytes, p->at[i].path.len);
        }
    }
}

#define DOC_MAX ((int64_t)1 << 40) /* as in stet_space_key */

bool stet_places_unpack(const char *bytes, size_t len, stet_places *out) {
    const char *p = bytes, *end = bytes + len;
    int64_t doc = 0;
    while (p < end) {
        uint64_t step, count;
        if (!stet_varint_get(&p, end, &step) || !stet_varint_get(&p, end, &count) || step == 0 ||
            step >= (uint64_t)(DOC_MAX - doc) || count == 0 || count > (uint64_t)(end - p))
            return false;
        doc += (int64_t)step;
        stet_pathref last = STET_PATH_ROOT;
        for (uint64_t i = 0; i < count; i++) {
            uint64_t n;
            if (!stet_varint_get(&p, end, &n) || n / 2 > (uint64_t)(end - p))
                return false;
            stet_pathref path = {p, (size_t)(n / 2)};
            if (!stet_path_valid(path) || (i && stet_path_compare(last, path) >= 0)) /* sorted, without duplicates */
                return false;
            if (out)
                *stet_vec_add(out) = (stet_place){doc, path, (unsigned)(n & 1), 0};
            last = path;
            p += n / 2;
        }
    }
    return true;
}

bool stet_obs_sound(const stet_obs *o) {
    return stet_places_unpack(o->reads.at, o->reads.len, NULL) && stet_places_unpack(o->known.at, o->known.len, NULL) &&
           stet_places_unpack(o->declared.at, o->declared.len, NULL) &&
           stet_places_unpack(o->envelopes.at, o->envelopes.len, NULL);
}

static void put_bytes(stet_buf *out, stet_bytes b) {
    stet_varint_put(out, b.len);
    stet_buf_add(out, b.at, b.len);
}

static bool get_bytes(const char **p, const char *end, stet_bytes *out) {
    uint64_t n;
    if (!stet_varint_get(p, end, &n) || n > (uint64_t)(end - *p))
        return false;
    *out = (stet_bytes){*p, (size_t)n};
    *p += n;
    return true;
}

static bool get_number(const char **p, const char *end, int64_t *out) {
    uint64_t n;
    if (!stet_varint_get(p, end, &n) || n > INT64_MAX)
        return false;
    *out = (int64_t)n;
    return true;
}

enum { PROVED = 1, ACCEPTED = 2 }; /* the first byte */
enum { FAILED = 16, CHANGED = 32, PARENT = 64, KNOWN_IS_DECLARED = 128 };

void stet_obs_encode(const stet_obs *o, stet_buf *out) {
    stet_buf_char(out, o->accepted ? ACCEPTED : PROVED);
    stet_buf_char(out, (char)((unsigned)o->kind | (unsigned)o->run << 2 | (o->failed ? FAILED : 0u) |
                              (o->changed ? CHANGED : 0u) | (o->parent.at ? PARENT : 0u) |
                              (o->known_is_declared ? KNOWN_IS_DECLARED : 0u)));
    stet_varint_put(out, (uint64_t)o->implementation);
    stet_varint_put(out, (uint64_t)o->runtime);
    stet_varint_put(out, (uint64_t)o->observed_at);
    stet_varint_put(out, (uint64_t)o->time_ms);
    if (o->parent.at)
        put_bytes(out, o->parent);
    if (o->failed)
        stet_buf_add(out, o->error.bytes, sizeof o->error.bytes);
    put_bytes(out, o->reads);
    stet_buf_char(out, o->offsets.len ? 1 : 0);
    if (o->offsets.len)
        put_bytes(out, o->offsets);
    if (!o->known_is_declared)
        put_bytes(out, o->known);
    put_bytes(out, o->declared);
    put_bytes(out, o->actual);
    put_bytes(out, o->envelopes);
    put_bytes(out, o->ignored);
    put_bytes(out, o->foreign);
    put_bytes(out, o->options);
    put_bytes(out, o->note);
}

bool stet_obs_decode(const void *bytes, size_t len, stet_obs *o) {
    memset(o, 0, sizeof *o);
    const char *p = bytes, *end = p + len;
    if (len < 2 || (p[0] != PROVED && p[0] != ACCEPTED))
        return false;
    o->accepted = p[0] == ACCEPTED;
    unsigned flags = (unsigned char)p[1];
    p += 2;
    o->kind = (stet_action_kind)(flags & 3);
    o->run = (stet_run_kind)(flags >> 2 & 3);
    o->failed = (flags & FAILED) != 0;
    o->changed = (flags & CHANGED) != 0;
    o->known_is_declared = (flags & KNOWN_IS_DECLARED) != 0;
    if (o->kind == 0 || o->run == 0 || !get_number(&p, end, &o->implementation) || !get_number(&p, end, &o->runtime) ||
        !get_number(&p, end, &o->observed_at) || !get_number(&p, end, &o->time_ms) ||
        ((flags & PARENT) && !get_bytes(&p, end, &o->parent)))
        return false;
    if (o->failed) {
        if ((size_t)(end - p) < sizeof o->error.bytes)
            return false;
        memcpy(o->error.bytes, p, sizeof o->error.bytes);
        p += sizeof o->error.bytes;
    }
    if (!get_bytes(&p, end, &o->reads) || p == end)
        return false;
    char offsets = *p++;
    if (offsets > 1 || (offsets == 1 && !get_bytes(&p, end, &o->offsets)))
        return false;
    if (!o->known_is_declared && !get_bytes(&p, end, &o->known))
        return false;
    if (!get_bytes(&p, end, &o->declared) || !get_bytes(&p, end, &o->actual) || !get_bytes(&p, end, &o->envelopes) ||
        !get_bytes(&p, end, &o->ignored) || !get_bytes(&p, end, &o->foreign) || !get_bytes(&p, end, &o->options) ||
        !get_bytes(&p, end, &o->note))
        return false;
    if (o->known_is_declared)
        o->known = o->declared;
    return p == end;
}

bool stet_obs_reads(const stet_obs *o, stet_places *out) {
    size_t from = out->len;
    if (!stet_places_unpack(o->reads.at, o->reads.len, out))
        return false;
    const char *p = o->offsets.at, *end = p + o->offsets.len;
    for (size_t i = from; i < out->len; i++) {
        int64_t back = 0;
        if (o->offsets.len && !get_number(&p, end, &back))
            return false;
        out->at[i].seq = o->observed_at - back;
    }
    return p == end;
}

void stet_foreign_pack(const stet_foreign_places *f, stet_buf *out) {
    for (size_t i = 0; i < f->len;) {
        size_t end = i;
        while (end < f->len && f->at[end].space == f->at[i].space)
            end++;
        stet_varint_put(out, (uint64_t)f->at[i].space);
        stet_varint_put(out, end - i);
        for (; i < end; i++) {
            const stet_foreign_place *r = &f->at[i];
            put_bytes(out, r->id);
            put_bytes(out, r->scope);
            stet_varint_put(out, r->path.len * 2 + (r->flag & 1));
            stet_buf_add(out, r->path.bytes, r->path.len);
            stet_varint_put(out, (uint64_t)r->seq);
            stet_varint_put(out, (uint64_t)r->doc);
        }
    }
}

static int by_foreign_place(const void *a, const void *b) {
    const stet_foreign_place *x = a, *y = b;
    if (x->space != y->space)
        return x->space < y->space ? -1 : 1;
    int order = stet_bytes_compare(x->id, y->id);
    if (order == 0)
        order = stet_bytes_compare(x->scope, y->scope);
    if (order == 0)
        order = stet_path_compare(x->path, y->path);
    return order ? order : (int)x->flag - (int)y->flag;
}

/* Like stet_places_settle, for documents that are named. */
void stet_foreign_settle(stet_foreign_places *f) {
    if (f->len > 1)
        qsort(f->at, f->len, sizeof *f->at, by_foreign_place);
    size_t to = 0;
    for (size_t i = 0; i < f->len;) {
        size_t first = to, end = i;
        for (; end < f->len && f->at[end].space == f->at[i].space &&
               stet_bytes_compare(f->at[end].id, f->at[i].id) == 0 &&
               stet_bytes_compare(f->at[end].scope, f->at[i].scope) == 0;
             end++) {
            stet_foreign_place *last = to > first ? &f->at[to - 1] : NULL;
            if (last && stet_path_compare(last->path, f->at[end].path) == 0) {
                if (f->at[end].seq < last->seq)
                    last->seq = f->at[end].seq;
                continue;
            }
            f->at[to++] = f->at[end];
        }
        if (to - first > STET_PLACES_PER_DOC) {
            stet_foreign_place all = f->at[first];
            all.flag = 0;
            for (size_t k = first + 1; k < to; k++) {
                all.path = stet_path_common(all.path, f->at[k].path);
                if (f->at[k].seq < all.seq)
                    all.seq = f->at[k].seq;
            }
            f->at[first] = all;
            to = first + 1;
        }
        i = end;
    }
    f->len = to;
}

bool stet_foreign_unpack(stet_bytes b, stet_foreign_places *out) {
    const char *p = b.at, *end = p + b.len;
    while (p < end) {
        int64_t space;
        uint64_t count;
        if (!get_number(&p, end, &space) || !stet_varint_get(&p, end, &count) || count > b.len)
            return false;
        for (uint64_t i = 0; i < count; i++) {
            stet_foreign_place r = {.space = space};
            uint64_t n;
            if (!get_bytes(&p, end, &r.id) || !get_bytes(&p, end, &r.scope) || !stet_varint_get(&p, end, &n) ||
                n / 2 > (uint64_t)(end - p))
                return false;
            r.path = (stet_pathref){p, (size_t)(n / 2)};
            r.flag = (unsigned)(n & 1);
            p += n / 2;
            if (!stet_path_valid(r.path) || !get_number(&p, end, &r.seq) || !get_number(&p, end, &r.doc))
                return false;
            *stet_vec_add(out) = r;
        }
    }
    return true;
}
