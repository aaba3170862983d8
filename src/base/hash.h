/* hash.h - SHA-256, the only hash in stet, with its hex and base64url forms.
 *
 * libcrypto computes it (hash.c says which part of libcrypto, and why). Nothing here has state: any thread may call. A
 * stet_hasher is used by one thread at a time.
 */
#ifndef STET_BASE_HASH_H
#define STET_BASE_HASH_H

#include "base/error.h"

#define STET_HASH_HEX    65 /* with the NUL */
#define STET_HASH_BASE64 44 /* with the NUL; no padding */

typedef struct stet_hash {
    uint8_t bytes[32];
} stet_hash;

stet_hash stet_hash_of(const void *bytes, size_t len);
/* The hash of a value's canonical encoding. */
stet_hash stet_hash_value(stet_value v);

/* Streaming: begin, add any number of times, end (which frees). */
typedef struct stet_hasher stet_hasher;
stet_hasher *stet_hasher_begin(void);
void stet_hasher_add(stet_hasher *h, const void *bytes, size_t len);
stet_hash stet_hasher_end(stet_hasher *h);

/* A checksum for derived files, against torn and rotten ones. It does not protect against people, who could write
 * anything there. It is part of the formats of those files. */
uint64_t stet_checksum(const char *bytes, size_t len);

bool stet_hash_equal(stet_hash a, stet_hash b);
int stet_hash_compare(stet_hash a, stet_hash b);
bool stet_hash_is_zero(stet_hash h);
void stet_hash_hex(stet_hash h, char out[STET_HASH_HEX]);
bool stet_hash_of_hex(const char *hex, size_t len, stet_hash *out); /* exactly 64 digits, lower case */
stet_value stet_hash_text(stet_hash h);                             /* its hex, as a string value */
bool stet_hash_of_text(stet_value v, stet_hash *out);               /* the inverse; false for anything else */

/* Hex and base64url (RFC 4648 section 5, no padding, non-canonical tails refused) of any bytes. The encoders write a
 * NUL. */
size_t stet_hex_encode(const void *bytes, size_t len, char *out);                     /* out: 2 * len + 1 */
size_t stet_base64url_encode(const void *bytes, size_t len, char *out);               /* out: (len * 4 + 2) / 3 + 1 */
bool stet_base64url_decode(const char *text, size_t len, void *out, size_t *out_len); /* out: len * 3 / 4 */

#endif
