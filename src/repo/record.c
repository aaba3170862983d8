/* record.c - encodes, decodes and hashes the immutable records of calls. */

#include "repo/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "repo/text.h"

#define MAX_PARENTS 64

static const char *const type_names[STET_RECORD_TYPES] = {"datum", "node",   "dag",     "exec",
                                                          "tree",  "commit", "execmap", "tombstone"};

const char *stet_record_type_name(stet_record_type type) {
    return type_names[type];
}

static bool is_id(stet_value v) {
    stet_hash h;
    return stet_hash_of_text(v, &h);
}

static bool ids_of(stet_value list) {
    if (stet_value_type(list) != STET_TYPE_ARRAY)
        return false;
    for (size_t i = 0; i < stet_value_count(list); i++)
        if (!is_id(stet_value_at(list, i)))
            return false;
    return true;
}

static bool is_text(stet_value v) {
    size_t len;
    if (stet_value_type(v) != STET_TYPE_STRING)
        return false;
    const char *s = stet_value_as_string(&v, &len);
    return stet_text_is_nfc(s, len);
}

/* Names are texts that are not empty. */
static bool has_names(stet_value object) {
    if (stet_value_type(object) != STET_TYPE_OBJECT)
        return false;
    for (size_t i = 0; i < stet_value_count(object); i++) {
        size_t len;
        const char *name = stet_value_key_at(object, i, &len);
        if (len == 0 || !stet_text_is_nfc(name, len))
            return false;
    }
    return true;
}

static bool named_ids(stet_value object) {
    for (size_t i = 0; i < stet_value_count(object); i++)
        if (!is_id(stet_value_at(object, i)))
            return false;
    return has_names(object);
}

/* A URI in its canonical form. */
static bool is_uri(stet_value v) {
    size_t len;
    if (stet_value_type(v) != STET_TYPE_STRING)
        return false;
    const char *s = stet_value_as_string(&v, &len);
    stet_buf b = STET_BUF(0);
    bool same = !stet_text_uri(s, len, &b) && b.len == len && memcmp(b.data, s, len) == 0;
    stet_buf_release(&b);
    return same;
}

static bool reserved(stet_value uri) {
    size_t len;
    const char *s = stet_value_as_string(&uri, &len);
    return len >= 4 && memcmp(s, "dml:", 4) == 0;
}

static const char *check_datum(stet_value r) {
    stet_value kind = stet_value_get(r, "kind"), payload;
    if (stet_value_count(r) != 3 || stet_value_type(kind) != STET_TYPE_STRING ||
        !stet_value_find(r, "payload", 7, &payload))
        return "a datum has a kind and a payload, and nothing else";
    stet_type t = stet_value_type(payload);
    if (stet_value_text_is(kind, "null"))
        return t == STET_TYPE_NULL ? NULL : "the payload of null is null";
    if (stet_value_text_is(kind, "bool"))
        return t == STET_TYPE_BOOL ? NULL : "the payload of a bool is true or false";
    if (stet_value_text_is(kind, "int"))
        return t == STET_TYPE_INT ? NULL : "the payload of an int is an integer";
    if (stet_value_text_is(kind, "double"))
        return t == STET_TYPE_DOUBLE ? NULL : "the payload of a double is a number that is no integer";
    if (stet_value_text_is(kind, "string"))
        return is_text(payload) ? NULL : "the payload of a string is a string, in normal form C";
    if (stet_value_text_is(kind, "uri"))
        return is_uri(payload) && !reserved(payload) ? NULL
                                                     : "the payload of a uri is a canonical URI, and not one of dml:";
    if (stet_value_text_is(kind, "bytes")) {
        size_t len, out_len;
        if (t != STET_TYPE_STRING)
            return "the payload of bytes is base64url";
        const char *s = stet_value_as_string(&payload, &len);
        char *out = stet_alloc(len + 1);
        bool fine = stet_base64url_decode(s, len, out, &out_len);
        free(out);
        return fine ? NULL : "the payload of bytes is base64url";
    }
    if (stet_value_text_is(kind, "blob")) {
        stet_value size = stet_value_get(payload, "size"), parts = stet_value_get(payload, "parts");
        return t == STET_TYPE_OBJECT && stet_value_count(payload) == 3 && is_id(stet_value_get(payload, "sha256")) &&
                       stet_value_type(size) == STET_TYPE_INT && stet_value_as_int(size) > 0 && ids_of(parts) &&
                       stet_value_count(parts) > 1
                   ? NULL
                   : "a blob has parts, ids, its sha256 and its size";
    }
    bool set = stet_value_text_is(kind, "set");
    if (set || stet_value_text_is(kind, "list")) {
        if (!ids_of(payload))
            return "the payload of a list or a set is an array of ids";
        for (size_t i = 1; set && i < stet_value_count(payload); i++)
            if (stet_value_compare(stet_value_at(payload, i - 1), stet_value_at(payload, i)) >= 0)
                return "the ids of a set are sorted, each there once";
        return NULL;
    }
    if (stet_value_text_is(kind, "map")) {
        if (t != STET_TYPE_ARRAY)
            return "the payload of a map is an array of pairs";
        for (size_t i = 0; i < stet_value_count(payload); i++) {
            stet_value pair = stet_value_at(payload, i);
            if (stet_value_count(pair) != 2 || !ids_of(pair))
                return "the payload of a map is an array of pairs of ids";
            if (i > 0 &&
                stet_value_compare(stet_value_at(stet_value_at(payload, i - 1), 0), stet_value_at(pair, 0)) >= 0)
                return "the keys of a map are sorted, each there once";
        }
        return NULL;
    }
    return "unknown kind of datum";
}

/* A relative path without empty, "." and ".." parts. It is the name of a file, so it is not normalised. */
static bool is_file_name(const char *path, size_t len) {
    size_t from = 0;
    if (memchr(path, 0, len))
        return false;
    for (size_t i = 0; i <= len; i++) {
        if (i < len && path[i] != '/')
            continue;
        size_t n = i - from;
        if (n == 0 || (n == 1 && path[from] == '.') || (n == 2 && memcmp(path + from, "..", 2) == 0))
            return false;
        from = i + 1;
    }
    return true;
}

static bool is_code(stet_value code) {
    if (stet_value_type(code) != STET_TYPE_OBJECT || stet_value_count(code) == 0)
        return false;
    for (size_t i = 0; i < stet_value_count(code); i++) {
        size_t len;
        const char *path = stet_value_key_at(code, i, &len);
        if (!is_file_name(path, len) || !is_id(stet_value_at(code, i)))
            return false;
    }
    return true;
}

static const char *check_node(stet_value r) {
    stet_value kind = stet_value_get(r, "kind");
    if (stet_value_text_is(kind, "literal") || stet_value_text_is(kind, "import"))
        return stet_value_count(r) == 3 && is_id(stet_value_get(r, "target"))
                   ? NULL
                   : "a literal or import has a target, an id";
    bool builtin = stet_value_text_is(kind, "builtin");
    if (!builtin && !stet_value_text_is(kind, "call"))
        return "unknown kind of node";
    stet_value function = stet_value_get(r, "function"), code;
    stet_value beside;
    bool has_code = !builtin && stet_value_find(r, "code", 4, &code);
    bool has_beside = !builtin && stet_value_find(r, "beside", 6, &beside);
    if (has_beside && !is_id(beside))
        return "what stands beside the inputs of a call is an id";
    if (has_code && !is_code(code))
        return "the code of a call is an object of ids by relative paths, and not empty";
    if (stet_value_count(r) != 4 + (size_t)has_code + (size_t)has_beside || !is_uri(function) ||
        !ids_of(stet_value_get(r, "inputs")))
        return "a call has a function, a canonical URI, and inputs, ids";
    return builtin == reserved(function) ? NULL : "functions of dml: are builtins, and all others are calls";
}

static const char *check_dag(stet_value r) {
    return stet_value_count(r) == 3 && is_id(stet_value_get(r, "root")) && named_ids(stet_value_get(r, "names"))
               ? NULL
               : "a dag has a root, an id, and names, an object of ids by names in normal form C";
}

static const char *check_exec(stet_value r) {
    stet_value status = stet_value_get(r, "status"), attempt = stet_value_get(r, "attempt"),
               timings = stet_value_get(r, "timings");
    if (stet_value_count(r) != 6 || !is_id(stet_value_get(r, "node")) || !is_id(stet_value_get(r, "result")))
        return "an exec has a node and a result, ids";
    if (!stet_value_text_is(status, "ok") && !stet_value_text_is(status, "error"))
        return "the status of an exec is ok or error";
    if (stet_value_type(attempt) != STET_TYPE_INT || stet_value_as_int(attempt) < 1)
        return "the attempt of an exec is a positive integer";
    if (!has_names(timings))
        return "the timings of an exec are an object, its names in normal form C";
    for (size_t i = 0; i < stet_value_count(timings); i++)
        if (stet_value_type(stet_value_at(timings, i)) != STET_TYPE_INT ||
            stet_value_as_int(stet_value_at(timings, i)) < 0)
            return "the timings of an exec are integers, none of them negative";
    return NULL;
}

static const char *check_tree(stet_value r) {
    return stet_value_count(r) == 2 && named_ids(stet_value_get(r, "dags"))
               ? NULL
               : "a tree has dags, an object of ids by names in normal form C";
}

static bool is_time(stet_value v) {
    return stet_value_type(v) == STET_TYPE_INT && stet_value_as_int(v) >= 0;
}

static const char *check_commit(stet_value r) {
    stet_value parents = stet_value_get(r, "parents");
    if (stet_value_count(r) != 6 || !is_id(stet_value_get(r, "tree")) || !is_id(stet_value_get(r, "execs")) ||
        !ids_of(parents))
        return "a commit has a tree, execs and parents, ids";
    if (stet_value_count(parents) > MAX_PARENTS)
        return "a commit has at most 64 parents";
    for (size_t i = 0; i < stet_value_count(parents); i++)
        for (size_t j = 0; j < i; j++)
            if (stet_value_equal(stet_value_at(parents, i), stet_value_at(parents, j)))
                return "the parents of a commit are different ones";
    return is_text(stet_value_get(r, "message")) && is_time(stet_value_get(r, "time"))
               ? NULL
               : "a commit has a message, a string in normal form C, and a time in milliseconds";
}

/* No map has as many entries; counts up to it can be added up. */
#define EXECMAP_MAX ((int64_t)1 << 53)

/* Which shape a map has follows from how many entries it has; here is seen what one record alone tells of it. */
static const char *check_execmap(stet_value r) {
    stet_value execs = stet_value_get(r, "execs"), parts = stet_value_get(r, "parts"),
               count = stet_value_get(r, "count");
    if (stet_value_count(r) == 2) {
        stet_hash h;
        size_t len;
        if (stet_value_type(execs) != STET_TYPE_OBJECT || stet_value_count(execs) > STET_EXECMAP_LEAF)
            return "the execs of an exec map are an object of at most 16 ids";
        for (size_t i = 0; i < stet_value_count(execs); i++) {
            const char *key = stet_value_key_at(execs, i, &len);
            if (!stet_hash_of_hex(key, len, &h) || !is_id(stet_value_at(execs, i)))
                return "the execs of an exec map are ids by ids";
        }
        return NULL;
    }
    if (stet_value_count(r) != 3 || stet_value_type(count) != STET_TYPE_INT ||
        stet_value_as_int(count) <= STET_EXECMAP_LEAF || stet_value_as_int(count) > EXECMAP_MAX ||
        stet_value_type(parts) != STET_TYPE_OBJECT || stet_value_count(parts) < 1)
        return "an exec map has execs, or else a count and parts";
    for (size_t i = 0; i < stet_value_count(parts); i++) {
        size_t len;
        const char *key = stet_value_key_at(parts, i, &len);
        if (len != 1 || !memchr("0123456789abcdef", key[0], 16) || !is_id(stet_value_at(parts, i)))
            return "the parts of an exec map are ids by a hexadecimal digit";
    }
    return NULL;
}

static const char *check_tombstone(stet_value r) {
    return stet_value_count(r) == 4 && is_id(stet_value_get(r, "object")) && is_text(stet_value_get(r, "reason")) &&
                   is_time(stet_value_get(r, "time"))
               ? NULL
               : "a tombstone has an object, an id, a reason, a string in normal form C, and a time";
}

/* NULL, or what is wrong. */
static const char *check(stet_value r, stet_record_type type) {
    static const char *(*const checks[STET_RECORD_TYPES])(stet_value) = {
        check_datum, check_node, check_dag, check_exec, check_tree, check_commit, check_execmap, check_tombstone};
    if (stet_value_type(r) != STET_TYPE_OBJECT || !stet_value_text_is(stet_value_get(r, "type"), type_names[type]))
        return "it is of another type";
    return checks[type](r);
}

stet_status stet_record_make(stet_value record, stet_record_type type, const stet_record_sink *sink, stet_hash *id,
                             stet_error *err) {
    const char *wrong = check(record, type);
    if (wrong)
        return stet_fail(err, STET_INVALID, "not a record of type %s: %s", type_names[type], wrong);
    stet_buf text = STET_BUF(STET_RECORD_MAX_BYTES);
    stet_json_write(&text, record, STET_JSON_CANONICAL);
    stet_status status = STET_OK;
    if (text.overflow) {
        status = stet_fail(err, STET_LIMIT, "a record of type %s is larger than %zu bytes", type_names[type],
                           STET_RECORD_MAX_BYTES);
    } else {
        *id = stet_hash_of(text.data, text.len);
        if (sink)
            status = sink->put(sink->ctx, *id, text.data, text.len, err);
    }
    stet_buf_release(&text);
    return status;
}

stet_status stet_record_read(stet_hash id, const char *bytes, size_t len, stet_record_type type, stet_value *out,
                             stet_error *err) {
    char hex[STET_HASH_HEX];
    stet_hash_hex(id, hex);
    if (len > STET_RECORD_MAX_BYTES || !stet_hash_equal(stet_hash_of(bytes, len), id))
        return stet_fail(err, STET_CORRUPT, "record %s: its bytes are not those that were written", hex);
    stet_value record;
    if (stet_json_parse(bytes, len, &record, NULL) != STET_OK)
        return stet_fail(err, STET_CORRUPT, "record %s: not JSON", hex);
    const char *wrong = check(record, type);
    if (!wrong) {
        size_t text_len;
        char *text = stet_json_print(record, STET_JSON_CANONICAL, &text_len);
        if (text_len != len || memcmp(text, bytes, len) != 0)
            wrong = "its text is not canonical";
        stet_free(text);
    }
    if (wrong) {
        stet_value_release(record);
        return stet_fail(err, STET_CORRUPT, "record %s: not a %s: %s", hex, type_names[type], wrong);
    }
    *out = record;
    return STET_OK;
}

bool stet_record_says(const char *bytes, size_t len, stet_record_type *type) {
    for (int t = 0; t < STET_RECORD_TYPES; t++) {
        /* Keys are sorted, and no record has one beyond "type": it comes last. */
        char end[32];
        size_t n = (size_t)snprintf(end, sizeof end, "\"type\":\"%s\"}", type_names[t]);
        if (len > n && memcmp(bytes + len - n, end, n) == 0) {
            *type = (stet_record_type)t;
            return true;
        }
    }
    return false;
}

stet_status stet_record_read_any(stet_hash id, const char *bytes, size_t len, stet_record_type *type, stet_value *out,
                                 stet_error *err) {
    if (!stet_record_says(bytes, len, type)) {
        char hex[STET_HASH_HEX];
        stet_hash_hex(id, hex);
        return stet_fail(err, STET_CORRUPT, "record %s: it has no type", hex);
    }
    return stet_record_read(id, bytes, len, *type, out, err);
}

static void name(stet_record_list *out, stet_value id, stet_record_type type) {
    stet_record_name n = {.type = type};
    if (stet_hash_of_text(id, &n.id))
        *stet_vec_add(out) = n;
}

static void name_each(stet_record_list *out, stet_value list, stet_record_type type) {
    for (size_t i = 0; i < stet_value_count(list); i++)
        name(out, stet_value_at(list, i), type);
}

void stet_record_named(stet_value r, stet_record_type type, stet_record_list *out) {
    stet_value kind = stet_value_get(r, "kind"), payload = stet_value_get(r, "payload");
    switch (type) {
    case STET_RECORD_DATUM:
        if (stet_value_text_is(kind, "list") || stet_value_text_is(kind, "set"))
            name_each(out, payload, STET_RECORD_DATUM);
        else if (stet_value_text_is(kind, "blob"))
            name_each(out, stet_value_get(payload, "parts"), STET_RECORD_DATUM);
        else if (stet_value_text_is(kind, "map"))
            for (size_t i = 0; i < stet_value_count(payload); i++)
                name_each(out, stet_value_at(payload, i), STET_RECORD_DATUM);
        break;
    case STET_RECORD_NODE:
        name(out, stet_value_get(r, "target"),
             stet_value_text_is(kind, "import") ? STET_RECORD_DAG : STET_RECORD_DATUM);
        name_each(out, stet_value_get(r, "inputs"), STET_RECORD_NODE);
        name_each(out, stet_value_get(r, "code"), STET_RECORD_DATUM);
        name(out, stet_value_get(r, "beside"), STET_RECORD_DATUM);
        break;
    case STET_RECORD_DAG:
        name(out, stet_value_get(r, "root"), STET_RECORD_NODE);
        name_each(out, stet_value_get(r, "names"), STET_RECORD_NODE);
        break;
    case STET_RECORD_EXEC:
        name(out, stet_value_get(r, "node"), STET_RECORD_NODE);
        name(out, stet_value_get(r, "result"), STET_RECORD_DAG);
        break;
    case STET_RECORD_TREE:
        name_each(out, stet_value_get(r, "dags"), STET_RECORD_DAG);
        break;
    case STET_RECORD_COMMIT:
        name(out, stet_value_get(r, "tree"), STET_RECORD_TREE);
        name(out, stet_value_get(r, "execs"), STET_RECORD_EXECMAP);
        name_each(out, stet_value_get(r, "parents"), STET_RECORD_COMMIT);
        break;
    case STET_RECORD_EXECMAP:
        name_each(out, stet_value_get(r, "execs"), STET_RECORD_EXEC);
        name_each(out, stet_value_get(r, "parts"), STET_RECORD_EXECMAP);
        break;
    case STET_RECORD_TOMBSTONE:
        break;
    }
}

static stet_status make(stet_value record, stet_record_type type, const stet_record_sink *sink, stet_hash *id,
                        stet_error *err) {
    stet_value_put(&record, "type", stet_value_string(type_names[type]));
    stet_status status = stet_record_make(record, type, sink, id, err);
    stet_value_release(record);
    return status;
}

static stet_status make_datum(const char *kind, stet_value payload, const stet_record_sink *sink, stet_hash *id,
                              stet_error *err) {
    stet_value r = stet_value_object();
    stet_value_put(&r, "kind", stet_value_string(kind));
    stet_value_put(&r, "payload", payload);
    return make(r, STET_RECORD_DATUM, sink, id, err);
}

static stet_status take_uri(const char *s, size_t len, stet_value *out, stet_error *err) {
    if (len > STET_RECORD_MAX_BYTES)
        return stet_fail(err, STET_LIMIT, "a URI is larger than %zu bytes", STET_RECORD_MAX_BYTES);
    stet_buf b = STET_BUF(0);
    const char *wrong = stet_text_uri(s, len, &b);
    if (!wrong)
        *out = stet_value_string_n(stet_buf_cstr(&b), b.len);
    stet_buf_release(&b);
    return wrong ? stet_fail(err, STET_INVALID, "not a URI: %s", wrong) : STET_OK;
}

/* What a text becomes. */
typedef enum form {
    FORM_TEXT, /* a string in normal form C: two ways to write one text are one */
    FORM_EXACT /* the same for what is in normal form C, bytes for all else: no two are one */
} form;

static stet_value nfc_of(const char *s, size_t len) {
    stet_buf b = STET_BUF(0);
    stet_text_nfc(s, len, &b);
    stet_value v = stet_value_string_n(stet_buf_cstr(&b), b.len);
    stet_buf_release(&b);
    return v;
}

static stet_status make_text(const char *s, size_t len, form f, const stet_record_sink *sink, stet_hash *id,
                             stet_error *err) {
    if (len > STET_RECORD_MAX_BYTES)
        return stet_fail(err, STET_LIMIT, "a text is larger than %zu bytes", STET_RECORD_MAX_BYTES);
    if (stet_text_is_nfc(s, len))
        return make_datum("string", stet_value_string_n(s, len), sink, id, err);
    if (f == FORM_TEXT)
        return make_datum("string", nfc_of(s, len), sink, id, err);
    char *encoded = stet_alloc((len * 4 + 2) / 3 + 1);
    stet_base64url_encode(s, len, encoded);
    stet_status status = make_datum("bytes", stet_value_string(encoded), sink, id, err);
    stet_free(encoded);
    return status;
}

static int by_key(const void *a, const void *b) {
    return stet_value_compare(stet_value_at(*(const stet_value *)a, 0), stet_value_at(*(const stet_value *)b, 0));
}

/* A container whose children have their ids: the last `n` of `ids`. */
static stet_status close_container(stet_value v, form f, const stet_hash *ids, size_t n, const stet_record_sink *sink,
                                   stet_hash *id, stet_error *err) {
    stet_value payload = stet_value_array();
    if (stet_value_type(v) == STET_TYPE_ARRAY) {
        for (size_t i = 0; i < n; i++)
            stet_value_push(&payload, stet_hash_text(ids[i]));
        return make_datum("list", payload, sink, id, err);
    }
    STET_VEC(stet_value) pairs = {0};
    stet_status status = STET_OK;
    for (size_t i = 0; i < n && status == STET_OK; i++) {
        size_t len;
        const char *key = stet_value_key_at(v, i, &len);
        stet_hash key_id;
        status = make_text(key, len, f, sink, &key_id, err);
        if (status != STET_OK)
            break;
        stet_value pair = stet_value_array();
        stet_value_push(&pair, stet_hash_text(key_id));
        stet_value_push(&pair, stet_hash_text(ids[i]));
        *stet_vec_add(&pairs) = pair;
    }
    if (pairs.len)
        qsort(pairs.at, pairs.len, sizeof *pairs.at, by_key);
    for (size_t i = 0; i < pairs.len; i++) {
        if (i > 0 && status == STET_OK && by_key(&pairs.at[i - 1], &pairs.at[i]) == 0)
            status = stet_fail(err, STET_INVALID, "two keys of an object are the same text, written in two ways");
        stet_value_push(&payload, pairs.at[i]);
    }
    stet_vec_release(&pairs);
    if (status != STET_OK) {
        stet_value_release(payload);
        return status;
    }
    return make_datum("map", payload, sink, id, err);
}

typedef struct frame {
    stet_value v;
    size_t next;
} frame;

static stet_status datum_id(stet_value v, form texts, const stet_record_sink *sink, stet_hash *id, stet_error *err) {
    static const char *const scalars[] = {"null", "bool", "int", "double"};
    STET_VEC(frame) stack = {0};
    STET_VEC(stet_hash) ids = {0}; /* of finished values whose container is open */
    stet_status status = STET_OK;
    stet_vec_reserve(&ids, 16); /* never NULL from here on */
    *stet_vec_add(&stack) = (frame){v, 0};
    while (stack.len > 0 && status == STET_OK) {
        frame *f = &stack.at[stack.len - 1];
        size_t n = stet_value_count(f->v);
        if (f->next < n) {
            stet_value child = stet_value_at(f->v, f->next++);
            *stet_vec_add(&stack) = (frame){child, 0};
            continue;
        }
        stet_hash made;
        stet_type t = stet_value_type(f->v);
        if (t == STET_TYPE_ARRAY || t == STET_TYPE_OBJECT)
            status = close_container(f->v, texts, ids.at + ids.len - n, n, sink, &made, err);
        else if (t == STET_TYPE_STRING) {
            size_t len;
            const char *s = stet_value_as_string(&f->v, &len);
            status = make_text(s, len, texts, sink, &made, err);
        } else
            status = make_datum(scalars[t], stet_value_retain(f->v), sink, &made, err);
        ids.len -= n;
        if (status == STET_OK)
            *stet_vec_add(&ids) = made;
        stack.len--;
    }
    if (status == STET_OK)
        *id = ids.at[0];
    stet_vec_release(&stack);
    stet_vec_release(&ids);
    return status;
}

stet_status stet_datum_id(stet_value v, const stet_record_sink *sink, stet_hash *id, stet_error *err) {
    return datum_id(v, FORM_TEXT, sink, id, err);
}

stet_status stet_datum_exact_id(stet_value v, const stet_record_sink *sink, stet_hash *id, stet_error *err) {
    return datum_id(v, FORM_EXACT, sink, id, err);
}

stet_status stet_datum_uri_id(const char *uri, size_t len, const stet_record_sink *sink, stet_hash *id,
                              stet_error *err) {
    stet_value v;
    stet_status status = take_uri(uri, len, &v, err);
    return status == STET_OK ? make_datum("uri", v, sink, id, err) : status;
}

stet_status stet_node_literal(stet_hash datum, const stet_record_sink *sink, stet_hash *id, stet_error *err) {
    stet_value r = stet_value_object();
    stet_value_put(&r, "kind", stet_value_string("literal"));
    stet_value_put(&r, "target", stet_hash_text(datum));
    return make(r, STET_RECORD_NODE, sink, id, err);
}

stet_status stet_node_call(const char *function, const stet_hash *inputs, size_t count, const stet_record_sink *sink,
                           stet_hash *id, stet_error *err) {
    return stet_node_call_with(function, inputs, count, NULL, sink, id, err);
}

stet_status stet_node_call_with(const char *function, const stet_hash *inputs, size_t count, const stet_node_more *more,
                                const stet_record_sink *sink, stet_hash *id, stet_error *err) {
    stet_value uri;
    stet_status status = take_uri(function, strlen(function), &uri, err);
    if (status != STET_OK)
        return status;
    stet_value r = stet_value_object(), list = stet_value_array();
    for (size_t i = 0; i < count; i++)
        stet_value_push(&list, stet_hash_text(inputs[i]));
    stet_value_put(&r, "kind", stet_value_string(reserved(uri) ? "builtin" : "call"));
    stet_value_put(&r, "function", uri);
    stet_value_put(&r, "inputs", list);
    if (more && stet_value_count(more->code) > 0)
        stet_value_put(&r, "code", stet_value_retain(more->code));
    if (more && more->beside)
        stet_value_put(&r, "beside", stet_hash_text(*more->beside));
    return make(r, STET_RECORD_NODE, sink, id, err);
}

stet_status stet_dag_id(stet_hash root, stet_value names, const stet_record_sink *sink, stet_hash *id,
                        stet_error *err) {
    if (stet_value_type(names) != STET_TYPE_NULL && stet_value_type(names) != STET_TYPE_OBJECT)
        return stet_fail(err, STET_INVALID, "the names of a dag are an object");
    stet_value r = stet_value_object(), normal = stet_value_object();
    for (size_t i = 0; i < stet_value_count(names); i++) {
        size_t len;
        const char *name = stet_value_key_at(names, i, &len);
        stet_value text = nfc_of(name, len);
        name = stet_value_as_string(&text, &len);
        stet_value_put_n(&normal, name, len, stet_value_retain(stet_value_at(names, i)));
        stet_value_release(text);
    }
    bool merged = stet_value_count(normal) != stet_value_count(names);
    stet_value_put(&r, "root", stet_hash_text(root));
    stet_value_put(&r, "names", normal);
    if (merged) {
        stet_value_release(r);
        return stet_fail(err, STET_INVALID, "two names of a dag are the same text, written in two ways");
    }
    return make(r, STET_RECORD_DAG, sink, id, err);
}
