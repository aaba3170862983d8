/* persist_common.c - what the operations of `persist` share. */

#include "operation/persist_common.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "os/clock.h"

stet_status stet_persist_op_open(stet_op_ctx *ctx, stet_persist **out, stet_error *err) {
    stet_project *project;
    stet_status status = ctx->project(ctx, &project, err);
    if (status == STET_OK)
        status = stet_persist_open_project(project, false, NULL, NULL, out, err);
    if (status == STET_OK && stet_persist_read_only(*out) && !(ctx->op->flags & STET_OP_READ_ONLY))
        ctx->warn(ctx, "the persistence directory is only read: %s", stet_persist_read_only(*out));
    return status;
}

stet_status stet_persist_op_module(const char *text, char out[STET_PERSIST_HASH + 1], stet_error *err) {
    size_t len = strlen(text);
    stet_hash h;
    if (stet_hash_of_hex(text, len, &h)) {
        stet_base64url_encode(h.bytes, sizeof h.bytes, out);
        return STET_OK;
    }
    if (!stet_persist_valid_hash(text, len)) {
        stet_fail(err, STET_INVALID, "--module: \"%.80s\" is not a module hash", text);
        stet_hint(err, "a SHA-256, as 43 characters of base64url or as 64 hexadecimal digits");
        return STET_INVALID;
    }
    memcpy(out, text, len + 1);
    return STET_OK;
}

stet_status stet_persist_op_created(stet_value value, uint64_t *out, stet_error *err) {
    size_t len;
    const char *text = stet_value_as_string(&value, &len);
    if (!text)
        return stet_fail(err, STET_INVALID, "--created-at: expected a string");
    if (len >= 9 && len <= 15 && strspn(text, "0123456789") == len && *text != '0') {
        uint64_t v = 0;
        for (size_t i = 0; i < len; i++)
            v = v * 10 + (uint64_t)(text[i] - '0');
        *out = v;
        return STET_OK;
    }
    int64_t ms;
    stet_status status = stet_time_parse_human(text, stet_clock_ms(), &ms, err);
    if (status == STET_OK && !stet_persist_created_of_unix(ms, out))
        status = stet_fail(err, STET_INVALID, "--created-at: %.60s is outside the years 1 to 9999", text);
    return status;
}

typedef struct finder {
    const char *block;
    /* Prefixes: one in base64url, and the part of one that hexadecimal digits determine. */
    char module[2][STET_PERSIST_HASH + 2];
    size_t module_len[2];
    uint64_t created;
    bool exact;
    char found[STET_PERSIST_HASH + 1];
    bool ambiguous;
    stet_persist_key best;
    char *best_block;
} finder;

static bool fits(const finder *f, const char *module) {
    if (!f->module_len[0] && !f->module_len[1])
        return true;
    for (int i = 0; i < 2; i++)
        if (f->module_len[i] && !strncmp(module, f->module[i], f->module_len[i]))
            return true;
    return false;
}

static bool consider(void *ctx, const stet_persist_entry *e) {
    finder *f = ctx;
    if (!fits(f, e->key.module_hash) ||
        (f->created && (f->exact ? e->key.created_at != f->created : e->key.created_at > f->created)))
        return true;
    if (f->found[0] && strcmp(f->found, e->key.module_hash) != 0 && (f->module_len[0] || f->module_len[1]))
        f->ambiguous = true;
    if (!f->found[0] || e->key.created_at > f->best.created_at) {
        memcpy(f->found, e->key.module_hash, sizeof f->found);
        stet_free(f->best_block);
        f->best_block = stet_strndup(e->key.block_id, e->key.block_len);
        f->best = (stet_persist_key){.block_id = f->best_block,
                                     .block_len = e->key.block_len,
                                     .module_hash = f->found,
                                     .created_at = e->key.created_at};
    }
    return true;
}

/* With a block and a whole module, not every entry has to be visited. */
static bool is_whole_key(stet_value block, stet_value module, char hash[STET_PERSIST_HASH + 1]) {
    size_t len;
    const char *text = stet_value_as_string(&module, &len);
    return stet_value_type(block) == STET_TYPE_STRING && text && (len == STET_PERSIST_HASH || len == 64) &&
           stet_persist_op_module(text, hash, NULL) == STET_OK;
}

stet_status stet_persist_op_find(stet_persist *p, stet_value args, stet_persist_entry **out, stet_error *err) {
    finder f = {0};
    stet_value block = stet_value_get(args, "block"), module = stet_value_get(args, "module"),
               created = stet_value_get(args, "created_at");
    f.block = stet_value_as_string(&block, NULL);
    f.exact = stet_value_as_bool(stet_value_get(args, "exact"));
    stet_status status = STET_OK;
    if (stet_value_type(created) == STET_TYPE_STRING)
        status = stet_persist_op_created(created, &f.created, err);
    if (status == STET_OK && f.exact && !f.created)
        status = stet_fail(err, STET_INVALID, "--exact needs --created-at");
    char whole[STET_PERSIST_HASH + 1];
    if (status == STET_OK && is_whole_key(block, module, whole)) {
        stet_persist_key key = {.block_id = f.block, .module_hash = whole, .created_at = f.created};
        return stet_persist_get(p, &key, STET_PERSIST_NO_COUNT | (f.exact ? STET_PERSIST_EXACT : 0),
                                (const char *const[]){NULL}, out, err);
    }
    if (status == STET_OK && stet_value_type(module) == STET_TYPE_STRING) {
        size_t len;
        const char *text = stet_value_as_string(&module, &len);
        if (len < 6 || len > 64) {
            status = stet_fail(err, STET_INVALID, "--module: give at least 6 characters of it");
        } else {
            if (len <= STET_PERSIST_HASH) {
                memcpy(f.module[0], text, len);
                f.module_len[0] = len;
            }
            if (strspn(text, "0123456789abcdef") == len) {
                /* Three bytes make four characters; digits that remain are not part of the prefix. */
                uint8_t bytes[32];
                size_t n = len / 6 * 3;
                if (len == 64)
                    n = 32;
                for (size_t i = 0; i < n; i++) {
                    unsigned b;
                    sscanf(text + 2 * i, "%2x", &b);
                    bytes[i] = (uint8_t)b;
                }
                f.module_len[1] = stet_base64url_encode(bytes, n, f.module[1]);
            }
        }
    }
    if (status == STET_OK)
        status = stet_persist_each(p, f.block, consider, &f, err);
    if (status == STET_OK && f.ambiguous)
        status = stet_fail(err, STET_INVALID, "--module: several modules begin so; give more of it");
    if (status == STET_OK && !f.found[0]) {
        status = stet_fail(err, STET_NOT_FOUND, "no such entry");
        stet_hint(err, "`stet persist list` shows what there is");
    }
    if (status == STET_OK)
        status = stet_persist_get(p, &f.best, STET_PERSIST_EXACT | STET_PERSIST_NO_COUNT, (const char *const[]){NULL},
                                  out, err);
    stet_free(f.best_block);
    return status;
}

stet_value stet_persist_op_entry(const stet_persist_entry *e) {
    stet_value v = stet_value_object(), contents = stet_value_array();
    stet_value_put(&v, "block", stet_value_string_n(e->key.block_id, e->key.block_len));
    stet_value_put(&v, "module", stet_value_string(e->key.module_hash));
    stet_value_put(&v, "created_at", stet_value_int((int64_t)e->key.created_at));
    stet_value_put(&v, "time", stet_time_value(stet_persist_created_to_unix(e->key.created_at)));
    stet_value_put(&v, "size", stet_value_int((int64_t)(e->total_size > INT64_MAX ? INT64_MAX : e->total_size)));
    stet_value_put(&v, "hash", stet_value_string(e->hash));
    stet_value_put(&v, "in_log", stet_value_bool(e->in_log));
    stet_value_put(&v, "call", stet_value_bool(stet_persist_is_call(e->key.block_id, e->key.block_len)));
    if (e->elapsed_ms >= 0)
        stet_value_put(&v, "elapsed_ms", stet_value_int(e->elapsed_ms));
    for (size_t i = 0; i < e->content_count; i++) {
        const stet_persist_content *c = &e->contents[i];
        stet_value x = stet_value_object();
        stet_value_put(&x, "kind", stet_value_string(c->kind));
        stet_value_put(&x, "id", stet_value_string(c->id));
        stet_value_put(&x, "size", stet_value_int((int64_t)(c->size > INT64_MAX ? INT64_MAX : c->size)));
        stet_value_put(&x, "format", stet_value_string(c->format));
        stet_value_push(&contents, x);
    }
    stet_value_put(&v, "contents", contents);
    return v;
}

void stet_persist_op_bytes(uint64_t bytes, char out[32]) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double n = (double)bytes;
    size_t unit = 0;
    while (n >= 1000 && unit < 6) {
        n /= 1000;
        unit++;
    }
    snprintf(out, 32, unit ? "%.1f %s" : "%.0f %s", n, units[unit]);
}
