/* key.c - tokens and keys: hashes, ids, kinds, blocks, times. */
#include "persist/format.h"

#include <string.h>

#include "base/utf8.h"
#include "os/clock.h"

bool stet_persist_valid_hash(const char *s, size_t len) {
    if (len != STET_PERSIST_HASH)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!stet_token_char((unsigned char)s[i]))
            return false;
    return true;
}

bool stet_created_parse(const char *s, size_t len, uint64_t *out) {
    if (len < 1 || len > 15 || s[0] == '0')
        return false;
    uint64_t v = 0;
    for (size_t i = 0; i < len; i++) {
        if (s[i] < '0' || s[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(s[i] - '0');
    }
    *out = v;
    return true;
}

size_t stet_created_print(uint64_t created, char out[24]) {
    char digits[24];
    size_t n = 0;
    do {
        digits[n++] = (char)('0' + created % 10);
    } while (created /= 10);
    for (size_t i = 0; i < n; i++)
        out[i] = digits[n - 1 - i];
    out[n] = '\0';
    return n;
}

bool stet_persist_valid_id(const char *s, size_t len) {
    uint64_t created;
    if (len < STET_PERSIST_HASH || !stet_persist_valid_hash(s, STET_PERSIST_HASH))
        return false;
    if (len == STET_PERSIST_HASH)
        return true;
    const size_t rest = STET_PERSIST_HASH + 1 + STET_PERSIST_HASH;
    return len > rest + 1 && s[STET_PERSIST_HASH] == '.' &&
           stet_persist_valid_hash(s + STET_PERSIST_HASH + 1, STET_PERSIST_HASH) && s[rest] == '.' &&
           stet_created_parse(s + rest + 1, len - rest - 1, &created);
}

bool stet_persist_valid_kind(const char *s, size_t len) {
    if (!len || len > STET_PERSIST_KIND_MAX || (len == 4 && !memcmp(s, "hash", 4)))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!stet_token_char((unsigned char)s[i]))
            return false;
    return true;
}

bool stet_block_valid(const char *s, size_t len) {
    if (!len || len > STET_PERSIST_BLOCK_MAX)
        return false;
    if ((len == 6 && !memcmp(s, "header", 6)) || (len == 7 && !memcmp(s, "parents", 7)))
        return false;
    bool ascii = true;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c < 0x20 || c == 0x7f)
            return false;
        ascii = ascii && c < 0x80;
    }
    return ascii || stet_utf8_valid(s, len);
}

bool stet_persist_is_call(const char *block_id, size_t len) {
    size_t n = strlen(STET_PERSIST_CALL_PREFIX);
    return len > n && !memcmp(block_id, STET_PERSIST_CALL_PREFIX, n);
}

stet_status stet_persist_key_check(const stet_persist_key *key, bool with_time, stet_error *err) {
    size_t len = !key->block_id ? 0 : key->block_len ? key->block_len : strlen(key->block_id);
    if (!len || !stet_block_valid(key->block_id, len)) {
        stet_fail(err, STET_INVALID, "not a block id: \"%.*s\"", (int)(len > 80 ? 80 : len), len ? key->block_id : "");
        stet_hint(
            err, "1 to %d bytes of UTF-8 without control characters; `header` and `parents` are reserved by the format",
            STET_PERSIST_BLOCK_MAX);
        return STET_INVALID;
    }
    if (!key->module_hash ||
        !stet_persist_valid_hash(key->module_hash, strnlen(key->module_hash, STET_PERSIST_HASH + 1))) {
        stet_fail(err, STET_INVALID, "not a module hash: \"%.80s\"", key->module_hash ? key->module_hash : "");
        stet_hint(err, "a SHA-256 in base64url without padding: 43 characters of A-Z a-z 0-9 - _");
        return STET_INVALID;
    }
    if (with_time && (!key->created_at || key->created_at > STET_PERSIST_CREATED_MAX))
        return stet_fail(err, STET_INVALID, "created_at is missing or beyond 15 digits");
    return STET_OK;
}

/* Milliseconds from 0001-01-01 to 1970-01-01: 719,162 days. */
#define EPOCH 62135596800000

bool stet_persist_created_of_unix(int64_t unix_ms, uint64_t *created_at) {
    if (unix_ms <= -EPOCH || unix_ms > (int64_t)(STET_PERSIST_CREATED_MAX - EPOCH))
        return false;
    *created_at = (uint64_t)(unix_ms + EPOCH);
    return true;
}

int64_t stet_persist_created_to_unix(uint64_t created_at) {
    return (int64_t)created_at - EPOCH;
}

uint64_t stet_persist_now(void) {
    uint64_t now;
    return stet_persist_created_of_unix(stet_clock_ms(), &now) ? now : 1;
}
