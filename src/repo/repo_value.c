/* repo_value.c - JSON values as data, and data as JSON values. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "repo/repo_internal.h"

enum {
    LEVELS_MAX = 500,         /* of the value: fewer than what a reader of JSON takes */
    TEXT_MAX = (int)256 << 20 /* bytes of all records that one value is put together from */
};

typedef enum shape { SCALAR, LIST, OBJECT, SET, PAIRS, BYTES, BLOB, URI } shape;

static const struct {
    const char *name;
    shape shape;
} sigils[] = {{"bytes@1", BYTES}, {"blob@1", BLOB}, {"uri@1", URI}, {"set@1", SET}, {"map@1", PAIRS}};

/* {"/":{NAME:X}} with one of our names: its shape, and X. */
static shape sigil_of(stet_value v, stet_value *inner) {
    stet_value body;
    size_t len;
    if (stet_value_type(v) != STET_TYPE_OBJECT || stet_value_count(v) != 1 || !stet_value_find(v, "/", 1, &body) ||
        stet_value_type(body) != STET_TYPE_OBJECT || stet_value_count(body) != 1)
        return SCALAR;
    const char *key = stet_value_key_at(body, 0, &len);
    for (size_t i = 0; i < sizeof sigils / sizeof *sigils; i++)
        if (len == strlen(sigils[i].name) && memcmp(key, sigils[i].name, len) == 0) {
            *inner = stet_value_at(body, 0);
            return sigils[i].shape;
        }
    return SCALAR;
}

typedef struct frame {
    stet_value v; /* borrowed: what the children are taken from */
    shape shape;
    size_t next, count;
} frame;

static stet_status frame_of(stet_value v, frame *f, stet_error *err) {
    stet_value inner = v;
    shape s = sigil_of(v, &inner);
    if (s == SCALAR) {
        stet_type t = stet_value_type(v);
        s = t == STET_TYPE_ARRAY ? LIST : t == STET_TYPE_OBJECT ? OBJECT : SCALAR;
    }
    *f = (frame){inner, s, 0, stet_value_count(inner)};
    if ((s == BYTES || s == URI) && stet_value_type(inner) != STET_TYPE_STRING)
        return stet_fail(err, STET_INVALID, "%s holds a string", s == URI ? "uri@1" : "bytes@1");
    if ((s == SET || s == PAIRS) && stet_value_type(inner) != STET_TYPE_ARRAY)
        return stet_fail(err, STET_INVALID, "%s holds an array", s == SET ? "set@1" : "map@1");
    if (s == SCALAR || s == BYTES || s == BLOB || s == URI)
        f->count = 0;
    if (s != PAIRS)
        return STET_OK;
    for (size_t i = 0; i < f->count; i++)
        if (stet_value_type(stet_value_at(inner, i)) != STET_TYPE_ARRAY ||
            stet_value_count(stet_value_at(inner, i)) != 2)
            return stet_fail(err, STET_INVALID, "map@1 holds an array of pairs");
    f->count *= 2;
    return STET_OK;
}

static stet_value child_of(const frame *f, size_t i) {
    return f->shape == PAIRS ? stet_value_at(stet_value_at(f->v, i / 2), i % 2) : stet_value_at(f->v, i);
}

static stet_status put_datum(stet_repo *r, const char *kind, stet_value payload, stet_hash *id, stet_error *err) {
    stet_value record = stet_value_object();
    stet_value_put(&record, "kind", stet_value_string(kind));
    stet_value_put(&record, "payload", payload);
    stet_value_put(&record, "type", stet_value_string("datum"));
    stet_status st = stet_object_make(r, record, STET_RECORD_DATUM, STET_OBJECT_KEPT, id, err);
    stet_value_release(record);
    return st;
}

static int by_id(const void *a, const void *b) {
    return stet_hash_compare(*(const stet_hash *)a, *(const stet_hash *)b); /* of pairs: the key comes first */
}

static stet_status put_set(stet_repo *r, stet_hash *ids, size_t n, stet_hash *id, stet_error *err) {
    stet_value payload = stet_value_array();
    if (n)
        qsort(ids, n, sizeof *ids, by_id);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || !stet_hash_equal(ids[i - 1], ids[i]))
            stet_value_push(&payload, stet_hash_text(ids[i]));
    return put_datum(r, "set", payload, id, err);
}

/* `ids`: key, value, key, value. */
static stet_status put_map(stet_repo *r, stet_hash *ids, size_t pairs, stet_hash *id, stet_error *err) {
    stet_value payload = stet_value_array();
    if (pairs)
        qsort(ids, pairs, 2 * sizeof *ids, by_id);
    for (size_t i = 0; i < pairs; i++) {
        if (i > 0 && stet_hash_equal(ids[2 * i - 2], ids[2 * i])) {
            stet_value_release(payload);
            return stet_fail(err, STET_INVALID, "two keys of a map are the same");
        }
        stet_value pair = stet_value_array();
        stet_value_push(&pair, stet_hash_text(ids[2 * i]));
        stet_value_push(&pair, stet_hash_text(ids[2 * i + 1]));
        stet_value_push(&payload, pair);
    }
    return put_datum(r, "map", payload, id, err);
}

static stet_status put_object(stet_repo *r, const frame *f, const stet_hash *ids, stet_hash *id, stet_error *err) {
    stet_hash *pairs = stet_alloc((f->count * 2 + 1) * sizeof *pairs);
    stet_status st = STET_OK;
    for (size_t i = 0; i < f->count && st == STET_OK; i++) {
        size_t len;
        const char *key = stet_value_key_at(f->v, i, &len);
        stet_value text = stet_value_string_n(key, len);
        st = stet_datum_id(text, stet_repo_sink(r), &pairs[2 * i], err);
        stet_value_release(text);
        pairs[2 * i + 1] = ids[i];
    }
    if (st == STET_OK)
        st = put_map(r, pairs, f->count, id, err);
    free(pairs);
    return st;
}

bool stet_value_is_blob(stet_value v, stet_hash *datum) {
    stet_value inner;
    return sigil_of(v, &inner) == BLOB && stet_hash_of_text(stet_value_get(inner, "id"), datum);
}

/* A blob is named, not contained: it has to be there, and to be what the value says. */
static stet_status find_blob(stet_repo *r, stet_value said, stet_hash *id, stet_error *err) {
    stet_value record;
    if (!stet_hash_of_text(stet_value_get(said, "id"), id))
        return stet_fail(err, STET_INVALID, "blob@1 holds an id, a sha256 and a size");
    stet_status st = stet_repo_get(r, *id, STET_RECORD_DATUM, &record, err);
    if (st != STET_OK)
        return st;
    stet_value payload = stet_value_get(record, "payload");
    if (!stet_value_text_is(stet_value_get(record, "kind"), "blob") ||
        !stet_value_equal(stet_value_get(payload, "sha256"), stet_value_get(said, "sha256")) ||
        !stet_value_equal(stet_value_get(payload, "size"), stet_value_get(said, "size")))
        st = stet_fail(err, STET_INVALID, "blob@1: object %s is something else", stet_short(*id).text);
    stet_value_release(record);
    return st;
}

static stet_status close_frame(stet_repo *r, const frame *f, stet_hash *ids, stet_hash *id, stet_error *err) {
    stet_value payload;
    const char *text;
    size_t len;
    switch (f->shape) {
    case SCALAR:
        return stet_datum_id(f->v, stet_repo_sink(r), id, err);
    case URI:
        text = stet_value_as_string(&f->v, &len);
        return stet_datum_uri_id(text, len, stet_repo_sink(r), id, err);
    case BYTES:
        return put_datum(r, "bytes", stet_value_retain(f->v), id, err);
    case BLOB:
        return find_blob(r, f->v, id, err);
    case SET:
        return put_set(r, ids, f->count, id, err);
    case PAIRS:
        return put_map(r, ids, f->count / 2, id, err);
    case OBJECT:
        return put_object(r, f, ids, id, err);
    case LIST:
        break;
    }
    payload = stet_value_array();
    for (size_t i = 0; i < f->count; i++)
        stet_value_push(&payload, stet_hash_text(ids[i]));
    return put_datum(r, "list", payload, id, err);
}

static stet_status put_all(stet_repo *r, stet_value v, stet_hash *id, stet_error *err) {
    STET_VEC(frame) stack = {0};
    STET_VEC(stet_hash) ids = {0}; /* of finished values whose container is open */
    stet_vec_reserve(&ids, 16);
    stet_status st = frame_of(v, stet_vec_add(&stack), err);
    while (stack.len && st == STET_OK) {
        frame *f = &stack.at[stack.len - 1];
        if (f->next < f->count) {
            stet_value child = child_of(f, f->next++);
            st = stack.len >= LEVELS_MAX ? stet_fail(err, STET_LIMIT, "a value has more than %d levels", LEVELS_MAX)
                                         : frame_of(child, stet_vec_add(&stack), err);
            continue;
        }
        stet_hash made;
        st = close_frame(r, f, ids.at + ids.len - f->count, &made, err);
        ids.len -= f->count;
        *stet_vec_add(&ids) = made;
        stack.len--;
    }
    if (st == STET_OK)
        *id = ids.at[0];
    stet_vec_release(&stack);
    stet_vec_release(&ids);
    return st;
}

stet_status stet_repo_put_value(stet_repo *r, stet_value v, stet_hash *datum, stet_error *err) {
    bool begun;
    stet_hash id;
    stet_status st = stet_repo_enter(r, &begun, err);
    if (st == STET_OK)
        st = put_all(r, v, &id, err);
    st = stet_repo_leave(r, begun, st, err);
    if (st == STET_OK)
        *datum = id;
    return st;
}

stet_status stet_repo_put_result(stet_repo *r, stet_value v, stet_hash *dag, stet_error *err) {
    bool begun;
    stet_hash datum, node, id;
    stet_status st = stet_repo_enter(r, &begun, err);
    if (st == STET_OK)
        st = put_all(r, v, &datum, err);
    if (st == STET_OK)
        st = stet_node_literal(datum, stet_repo_sink(r), &node, err);
    if (st == STET_OK)
        st = stet_dag_id(node, stet_value_null(), stet_repo_sink(r), &id, err);
    st = stet_repo_leave(r, begun, st, err);
    if (st == STET_OK)
        *dag = id;
    return st;
}

typedef struct open {
    stet_hash id;
    stet_value payload; /* ours */
    shape shape;
    size_t next, count, levels;
} open;

static stet_value sigil(const char *name, stet_value inner) {
    stet_value body = stet_value_object(), v = stet_value_object();
    stet_value_put(&body, name, inner);
    stet_value_put(&v, "/", body);
    return v;
}

/* A map with string keys is an object, unless it would be taken for a sigil. */
static stet_value map_value(stet_value *items, size_t pairs) {
    bool plain = true;
    for (size_t i = 0; i < pairs && plain; i++)
        plain = stet_value_type(items[2 * i]) == STET_TYPE_STRING;
    stet_value v = stet_value_object(), inner;
    for (size_t i = 0; i < pairs && plain; i++) {
        size_t len;
        const char *key = stet_value_as_string(&items[2 * i], &len);
        stet_value_put_n(&v, key, len, stet_value_retain(items[2 * i + 1]));
    }
    if (!plain || sigil_of(v, &inner) != SCALAR) {
        stet_value list = stet_value_array();
        for (size_t i = 0; i < pairs; i++) {
            stet_value pair = stet_value_array();
            stet_value_push(&pair, stet_value_retain(items[2 * i]));
            stet_value_push(&pair, stet_value_retain(items[2 * i + 1]));
            stet_value_push(&list, pair);
        }
        stet_value_release(v);
        v = sigil("map@1", list);
    }
    for (size_t i = 0; i < 2 * pairs; i++)
        stet_value_release(items[i]);
    return v;
}

static stet_value list_value(stet_value *items, size_t n) {
    stet_value v = stet_value_array();
    for (size_t i = 0; i < n; i++)
        stet_value_push(&v, items[i]);
    return v;
}

static stet_value close_open(const open *o, stet_value *items) {
    switch (o->shape) {
    case BYTES:
        return sigil("bytes@1", stet_value_retain(o->payload));
    case BLOB: {
        stet_value named = stet_value_object();
        stet_value_put(&named, "id", stet_hash_text(o->id));
        stet_value_put(&named, "sha256", stet_value_retain(stet_value_get(o->payload, "sha256")));
        stet_value_put(&named, "size", stet_value_retain(stet_value_get(o->payload, "size")));
        return sigil("blob@1", named);
    }
    case URI:
        return sigil("uri@1", stet_value_retain(o->payload));
    case LIST:
        return list_value(items, o->count);
    case SET:
        return sigil("set@1", list_value(items, o->count));
    case PAIRS:
        return map_value(items, o->count / 2);
    default:
        return stet_value_retain(o->payload);
    }
}

static shape shape_of_kind(stet_value kind) {
    static const struct {
        const char *name;
        shape shape;
    } kinds[] = {{"list", LIST}, {"set", SET}, {"map", PAIRS}, {"bytes", BYTES}, {"blob", BLOB}, {"uri", URI}};
    const char *text = stet_value_as_string(&kind, NULL);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(text, kinds[i].name) == 0)
            return kinds[i].shape;
    return SCALAR;
}

static stet_status open_datum(stet_repo *r, stet_hash id, size_t levels, size_t *left, size_t *text, open *out,
                              stet_error *err) {
    static const size_t deep[] = {[LIST] = 1, [SET] = 3, [PAIRS] = 4, [BYTES] = 2, [BLOB] = 3, [URI] = 2};
    stet_value record;
    if ((*left)-- == 0)
        return stet_fail(err, STET_LIMIT, "a value of more than %zu data", STET_VALUE_MAX);
    stet_status st = stet_repo_get(r, id, STET_RECORD_DATUM, &record, err);
    if (st != STET_OK)
        return st;
    shape s = shape_of_kind(stet_value_get(record, "kind"));
    stet_value payload = stet_value_retain(stet_value_get(record, "payload"));
    size_t len = 16 + stet_value_count(payload) * 80;
    if (stet_value_type(payload) == STET_TYPE_STRING)
        stet_value_as_string(&payload, &len);
    bool scalar = s == SCALAR || s == BYTES || s == BLOB || s == URI;
    if (s == BLOB)
        len = 200;
    stet_value_release(record);
    *out = (open){id,
                  payload,
                  s,
                  0,
                  scalar ? 0 : stet_value_count(payload) * (s == PAIRS ? 2 : 1),
                  levels + (s == SCALAR ? 0 : deep[s])};
    if (len > *text)
        st = stet_fail(err, STET_LIMIT, "a value of more than %d MiB of text", TEXT_MAX >> 20);
    else if (out->levels > LEVELS_MAX)
        st = stet_fail(err, STET_LIMIT, "a value of more than %d levels", LEVELS_MAX);
    *text -= len < *text ? len : *text;
    if (st != STET_OK)
        stet_value_release(payload);
    return st;
}

stet_status stet_repo_value(stet_repo *r, stet_hash datum, stet_value *out, stet_error *err) {
    STET_VEC(open) stack = {0};
    STET_VEC(stet_value) done = {0};
    size_t left = STET_VALUE_MAX, text = TEXT_MAX;
    open o;
    stet_vec_reserve(&done, 16);
    stet_status st = open_datum(r, datum, 0, &left, &text, &o, err);
    if (st == STET_OK)
        *stet_vec_add(&stack) = o;
    while (stack.len && st == STET_OK) {
        open *top = &stack.at[stack.len - 1];
        if (top->next < top->count) {
            size_t i = top->next++;
            stet_hash id = {{0}};
            stet_hash_of_text(top->shape == PAIRS ? stet_value_at(stet_value_at(top->payload, i / 2), i % 2)
                                                  : stet_value_at(top->payload, i),
                              &id);
            st = open_datum(r, id, top->levels, &left, &text, &o, err);
            if (st == STET_OK)
                *stet_vec_add(&stack) = o;
            continue;
        }
        stet_value v = close_open(top, done.at + done.len - top->count);
        done.len -= top->count;
        *stet_vec_add(&done) = v;
        stet_value_release(top->payload);
        stack.len--;
    }
    if (st == STET_OK) {
        *out = done.at[0];
        done.len = 0;
    }
    for (size_t i = 0; i < stack.len; i++)
        stet_value_release(stack.at[i].payload);
    for (size_t i = 0; i < done.len; i++)
        stet_value_release(done.at[i]);
    stet_vec_release(&stack);
    stet_vec_release(&done);
    return st;
}
