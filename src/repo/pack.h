/* pack.h - objects in transit: a stream of records, each with its length and a checksum. Private to src/repo.
 *
 *     stet_pack p = STET_PACK_INIT;
 *     stet_pack_object(&p, id, bytes, len); // after the objects that it names
 *     stet_pack_end(&p);
 *     stet_status status = stet_pack_apply(repo, p.bytes.data, p.bytes.len, &report, &err); // all of it or nothing
 *     stet_pack_release(&p);
 *
 * The format is "stet pack 1\n", then records:
 *
 *   length of the body (4 bytes, little-endian), kind (1 byte), body, checksum over kind and body (8 bytes)
 *
 * The kinds and their bodies:
 *
 *   o    id (32 bytes), the record's text
 *   t    id, type (1 byte), the text of a tombstone: the sender no longer has the object
 *   e    the number of the other records (8 bytes); the last record
 *
 * Bytes of a pack come from elsewhere and are not trusted. The checksum distinguishes a stream that was cut or damaged
 * on the way from a sender that sends invalid objects; the hash of each object decides.
 */
#ifndef STET_EXEC_PACK_H
#define STET_EXEC_PACK_H

#include "repo/repo.h"

typedef struct stet_pack {
    stet_buf bytes;
    uint64_t count;
} stet_pack;

#define STET_PACK_INIT                                                                                                 \
    { STET_BUF(0), 0 }

void stet_pack_object(stet_pack *p, stet_hash id, const char *bytes, size_t len);
void stet_pack_lost(stet_pack *p, stet_hash id, stet_record_type type, const char *tombstone, size_t len);
void stet_pack_end(stet_pack *p);
void stet_pack_clear(stet_pack *p);
void stet_pack_release(stet_pack *p);

/* An object in transit. `lost`: `bytes` is a tombstone, and `type` is what the object was; otherwise `type` is not set.
 */
typedef struct stet_sent {
    stet_hash id;
    stet_record_type type;
    bool lost;
    const char *bytes;
    size_t len;
} stet_sent;
typedef stet_status stet_take_fn(void *ctx, const stet_sent *sent, stet_error *err);

/* Passes each object to `take`. Only the stream itself is verified. */
STET_CHECKED stet_status stet_pack_each(const char *bytes, size_t len, stet_take_fn *take, void *ctx, stet_error *err);
/* Stores the objects in one transaction (its own, or the caller's). STET_CORRUPT: the stream is cut or damaged, or
 * contains an invalid object. STET_NOT_FOUND: an object names something that is neither stored nor earlier in the
 * stream. */
STET_CHECKED stet_status stet_pack_apply(stet_repo *r, const char *bytes, size_t len, stet_copy_report *report,
                                         stet_error *err);

#endif
