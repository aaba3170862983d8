#include "base/hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* The algorithm is fetched once, in a library context of our own: it reads no openssl.cnf (a millisecond at start), and
 * an embedding program's own OpenSSL settings stay as they are. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static EVP_MD *sha256;
static pthread_key_t context_key;

static void free_context(void *context) {
    EVP_MD_CTX_free(context);
}

static void fetch(void) {
    OSSL_LIB_CTX *library = OSSL_LIB_CTX_new();
    if (!library)
        abort();
    sha256 = EVP_MD_fetch(library, "SHA256", NULL);
    /* A libcrypto without SHA-256 can't serve at all: no caller could go on. */
    if (!sha256 || pthread_key_create(&context_key, free_context) != 0)
        abort();
}

static EVP_MD_CTX *new_context(void) {
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (!context)
        abort(); /* out of memory */
    return context;
}

static void begin(EVP_MD_CTX *context) {
    /* With the same digest as before, libcrypto resets the context in place. */
    if (EVP_DigestInit_ex(context, sha256, NULL) != 1)
        abort();
}

static void add(EVP_MD_CTX *context, const void *bytes, size_t len) {
    if (len && EVP_DigestUpdate(context, bytes, len) != 1)
        abort();
}

static stet_hash end(EVP_MD_CTX *context) {
    stet_hash out;
    unsigned written = 0;
    if (EVP_DigestFinal_ex(context, out.bytes, &written) != 1 || written != sizeof out.bytes)
        abort();
    return out;
}

stet_hash stet_hash_of(const void *bytes, size_t len) {
    pthread_once(&once, fetch);
    EVP_MD_CTX *context = pthread_getspecific(context_key);
    if (!context) {
        context = new_context();
        if (pthread_setspecific(context_key, context) != 0)
            abort();
    }
    begin(context);
    add(context, bytes, len);
    return end(context);
}

stet_hash stet_hash_value(stet_value v) {
    size_t len = 0;
    char *text = stet_json_print(v, STET_JSON_CANONICAL, &len);
    stet_hash out = stet_hash_of(text, len);
    stet_free(text);
    return out;
}

struct stet_hasher {
    EVP_MD_CTX *context;
};

stet_hasher *stet_hasher_begin(void) {
    pthread_once(&once, fetch);
    stet_hasher *h = stet_alloc(sizeof *h);
    h->context = new_context();
    begin(h->context);
    return h;
}

void stet_hasher_add(stet_hasher *h, const void *bytes, size_t len) {
    add(h->context, bytes, len);
}

stet_hash stet_hasher_end(stet_hasher *h) {
    stet_hash out = end(h->context);
    EVP_MD_CTX_free(h->context);
    free(h);
    return out;
}

bool stet_hash_equal(stet_hash a, stet_hash b) {
    return memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

int stet_hash_compare(stet_hash a, stet_hash b) {
    return memcmp(a.bytes, b.bytes, sizeof a.bytes);
}

bool stet_hash_is_zero(stet_hash h) {
    static const stet_hash zero;
    return stet_hash_equal(h, zero);
}

void stet_hash_hex(stet_hash h, char out[STET_HASH_HEX]) {
    stet_hex_encode(h.bytes, sizeof h.bytes, out);
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

bool stet_hash_of_hex(const char *hex, size_t len, stet_hash *out) {
    if (len != 2 * sizeof out->bytes)
        return false;
    stet_hash h;
    for (size_t i = 0; i < sizeof h.bytes; i++) {
        int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        h.bytes[i] = (uint8_t)(high << 4 | low);
    }
    *out = h;
    return true;
}

size_t stet_hex_encode(const void *bytes, size_t len, char *out) {
    static const char digits[] = "0123456789abcdef";
    const uint8_t *in = bytes;
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[in[i] >> 4];
        out[2 * i + 1] = digits[in[i] & 15];
    }
    out[2 * len] = '\0';
    return 2 * len;
}

size_t stet_base64url_encode(const void *bytes, size_t len, char *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const uint8_t *in = bytes;
    size_t n = 0, i = 0;
    for (; i + 3 <= len; i += 3) {
        uint32_t group = (uint32_t)in[i] << 16 | (uint32_t)in[i + 1] << 8 | in[i + 2];
        out[n++] = digits[group >> 18];
        out[n++] = digits[group >> 12 & 63];
        out[n++] = digits[group >> 6 & 63];
        out[n++] = digits[group & 63];
    }
    if (len - i == 1) {
        out[n++] = digits[in[i] >> 2];
        out[n++] = digits[(in[i] & 3) << 4];
    } else if (len - i == 2) {
        out[n++] = digits[in[i] >> 2];
        out[n++] = digits[(in[i] & 3) << 4 | in[i + 1] >> 4];
        out[n++] = digits[(in[i + 1] & 15) << 2];
    }
    out[n] = '\0';
    return n;
}

static int base64url_digit(char c) {
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

bool stet_base64url_decode(const char *text, size_t len, void *out, size_t *out_len) {
    if (len % 4 == 1)
        return false;
    uint8_t *to = out;
    size_t n = 0;
    uint32_t bits = 0; /* only the low `have` bits count */
    unsigned have = 0;
    for (size_t i = 0; i < len; i++) {
        int digit = base64url_digit(text[i]);
        if (digit < 0)
            return false;
        bits = (bits << 6 | (uint32_t)digit) & 0xffff;
        have += 6;
        if (have >= 8) {
            have -= 8;
            to[n++] = (uint8_t)(bits >> have);
        }
    }
    /* The unused bits of the last digit are zero in the one canonical text; any other text would be a second name. */
    if (bits & ((1u << have) - 1))
        return false;
    *out_len = n;
    return true;
}
