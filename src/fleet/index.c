/* index.c - reads and writes index.json, the derived table of records. */

#include "fleet/index.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "os/file.h"

#define TAIL_OPEN  "],\"check\":\""
#define TAIL_CLOSE "\"}\n"
#define TAIL_LEN   (sizeof TAIL_OPEN - 1 + STET_HASH_HEX - 1 + sizeof TAIL_CLOSE - 1)
#define REPOS_MAX  100000

stet_hash stet_fleet_index_fingerprint(const stet_fleet_records *rows) {
    stet_hasher *h = stet_hasher_begin();
    stet_buf b = STET_BUF(0);
    for (size_t i = 0; i < rows->len; i++) {
        const stet_fleet_record *r = rows->at[i];
        stet_buf_add(&b, r->repo, strlen(r->repo) + 1);
        stet_buf_add(&b, r->id, strlen(r->id) + 1);
        stet_buf_add(&b, r->fingerprint.bytes, sizeof r->fingerprint.bytes);
        if (b.len > 65536 || i + 1 == rows->len) {
            stet_hasher_add(h, b.data, b.len);
            stet_buf_clear(&b);
        }
    }
    stet_buf_release(&b);
    return stet_hasher_end(h);
}

stet_status stet_fleet_index_store(const char *path, const char *scope, const char *root, const char *generated_at,
                                   const char *const *repos, size_t repo_count, const stet_fleet_records *rows,
                                   stet_error *err) {
    stet_buf b = STET_BUF(STET_FLEET_INDEX_MAX_BYTES);
    char hex[STET_HASH_HEX];
    stet_hash_hex(stet_fleet_index_fingerprint(rows), hex);
    stet_buf_printf(&b, "{\"schemaVersion\":%d,\"scope\":\"%s\",\"root\":", STET_FLEET_INDEX_SCHEMA, scope);
    stet_json_write_string(&b, root, strlen(root));
    stet_buf_printf(&b, ",\"generatedAt\":\"%s\",\"sourceFingerprint\":\"%s\",\"repos\":[", generated_at, hex);
    for (size_t i = 0; i < repo_count; i++) {
        if (i > 0)
            stet_buf_char(&b, ',');
        stet_json_write_string(&b, repos[i], strlen(repos[i]));
    }
    stet_buf_str(&b, "],\"records\":[\n");
    for (size_t i = 0; i < rows->len; i++) {
        stet_fleet_record_write(rows->at[i], &b);
        stet_buf_str(&b, i + 1 < rows->len ? ",\n" : "\n");
    }
    stet_status st;
    if (b.overflow)
        st = stet_fail(err, STET_LIMIT, "%s: more than %zu bytes", path, STET_FLEET_INDEX_MAX_BYTES);
    else {
        stet_hash_hex(stet_hash_of(b.data, b.len), hex);
        stet_buf_printf(&b, TAIL_OPEN "%s" TAIL_CLOSE, hex);
        st = stet_file_replace(path, b.data, b.len, 0644, err);
    }
    stet_buf_release(&b);
    return st;
}

static stet_status corrupt(const char *path, const char *what, stet_error *err) {
    stet_status st = stet_fail(err, STET_CORRUPT, "%s: %s", path, what);
    stet_hint(err, "it is derived: stet registry refresh makes a new one");
    return st;
}

static stet_status read_head(const char *path, const char *text, size_t len, stet_arena *arena, stet_fleet_index *out,
                             stet_error *err) {
    stet_buf head = STET_BUF(0);
    stet_value v = stet_value_null();
    stet_buf_add(&head, text, len);
    stet_buf_str(&head, "]}");
    stet_status st = stet_json_read(head.data, head.len, NULL, &v, NULL);
    stet_buf_release(&head);
    if (st != STET_OK)
        return corrupt(path, "its first line is not what it should be", err);
    stet_value version = stet_value_get(v, "schemaVersion"), at = stet_value_get(v, "generatedAt"),
               repos = stet_value_get(v, "repos"), print = stet_value_get(v, "sourceFingerprint");
    size_t print_len;
    const char *hex = stet_value_as_string(&print, &print_len), *when = stet_value_as_string(&at, NULL);
    if (stet_value_type(version) == STET_TYPE_INT && stet_value_as_int(version) > STET_FLEET_INDEX_SCHEMA) {
        st = stet_fail(err, STET_UNSUPPORTED, "%s: schemaVersion %lld, this stet knows %d", path,
                       (long long)stet_value_as_int(version), STET_FLEET_INDEX_SCHEMA);
        stet_hint(err, "it is derived: stet registry refresh makes one of this version");
    } else if (stet_value_type(version) == STET_TYPE_INT && stet_value_as_int(version) > 0 &&
               stet_value_as_int(version) < STET_FLEET_INDEX_SCHEMA) {
        out->present = false; /* rows of an older version lack members: as if there were no index */
    } else if (stet_value_as_int(version) != STET_FLEET_INDEX_SCHEMA || when == NULL || hex == NULL ||
               !stet_hash_of_hex(hex, print_len, &out->fingerprint) || stet_value_type(repos) != STET_TYPE_ARRAY ||
               stet_value_count(repos) > REPOS_MAX)
        st = corrupt(path, "its first line is not what it should be", err);
    if (st == STET_OK && out->present) {
        out->generated_at = stet_arena_strdup(arena, when);
        out->repo_count = stet_value_count(repos);
        out->repos = stet_arena_alloc(arena, (out->repo_count + 1) * sizeof *out->repos);
        for (size_t i = 0; i < out->repo_count && st == STET_OK; i++) {
            stet_value repo = stet_value_at(repos, i);
            const char *root = stet_value_as_string(&repo, NULL);
            if (root == NULL)
                st = corrupt(path, "a repo is not a string", err);
            else
                out->repos[i] = stet_arena_strdup(arena, root);
        }
    }
    stet_value_release(v);
    return st;
}

static stet_status read_rows(const char *path, const char *text, size_t len, stet_arena *arena, stet_fleet_index *out,
                             stet_error *err) {
    const char *p = text, *end = text + len;
    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        if (newline == NULL)
            return corrupt(path, "a row is cut off", err);
        size_t n = (size_t)(newline - p);
        if (n > 0 && p[n - 1] == ',')
            n--;
        stet_fleet_record *r = stet_arena_alloc(arena, sizeof *r);
        stet_error why = STET_ERROR_INIT;
        if (stet_fleet_record_read(p, n, out->repos, out->repo_count, arena, r, &why) != STET_OK) {
            stet_status st = corrupt(path, why.message, err);
            stet_error_clear(&why);
            return st;
        }
        *stet_vec_add(&out->rows) = r;
        p = newline + 1;
    }
    return STET_OK;
}

static stet_status read_index(const char *path, const stet_buf *b, stet_arena *arena, stet_fleet_index *out,
                              stet_error *err) {
    if (b->len < TAIL_LEN)
        return corrupt(path, "it is cut off", err);
    size_t body = b->len - TAIL_LEN;
    const char *tail = b->data + body;
    stet_hash check;
    /* The version comes first: a newer one may be laid out in another way. */
    const char *newline = memchr(b->data, '\n', b->len);
    stet_status st = newline == NULL ? corrupt(path, "it has no rows", err)
                                     : read_head(path, b->data, (size_t)(newline - b->data), arena, out, err);
    if (st != STET_OK || !out->present)
        return st;
    if (memcmp(tail, TAIL_OPEN, sizeof TAIL_OPEN - 1) != 0 ||
        !stet_hash_of_hex(tail + sizeof TAIL_OPEN - 1, STET_HASH_HEX - 1, &check) ||
        !stet_hash_equal(check, stet_hash_of(b->data, body)) || newline >= tail)
        return corrupt(path, "its content is not what was written", err);
    return read_rows(path, newline + 1, (size_t)(tail - newline - 1), arena, out, err);
}

stet_status stet_fleet_index_load(const char *path, stet_arena *arena, stet_fleet_index *out, stet_error *err) {
    stet_buf b = STET_BUF(STET_FLEET_INDEX_MAX_BYTES);
    stet_error why = STET_ERROR_INIT;
    stet_fleet_index index = {.generated_at = ""};
    stet_status st = stet_file_read(path, STET_FLEET_INDEX_MAX_BYTES, &b, &why);
    if (st == STET_NOT_FOUND) {
        stet_error_clear(&why);
        st = STET_OK;
    } else if (st == STET_OK) {
        index.present = true;
        st = read_index(path, &b, arena, &index, &why);
    }
    stet_buf_release(&b);
    if (st == STET_OK)
        *out = index;
    else {
        stet_vec_release(&index.rows);
        stet_error_move(err, &why);
    }
    return st;
}
