/* pack.h - objects on their way: a stream of records, each with its length and a checksum. Private to src/exec.
 *
 *     stet_pack p = STET_PACK_INIT;
 *     stet_pack_object(&p, id, bytes, len);           // what an object names comes before it
 *     stet_pack_end(&p);
 *     status = stet_pack_apply(repo, p.bytes.data, p.bytes.len, &report, &err);      // all of it or nothing
 *     stet_pack_release(&p);
 *
 * The format: "stet pack 1\n", then records
 *
 *     length of the body (4 bytes, little-endian)   kind (1 byte)   body   checksum over kind and body (8 bytes)
 *
 *     o    id (32 bytes), the record's text
 *     t    id, type (1 byte), the text of a tombstone: the sender has no more than that
 *     e    how many of the others there were (8 bytes); the last record
 *
 * Bytes of a pack come from elsewhere: nothing of it is believed. The checksum tells a stream that was cut or damaged
 * on the way apart from a sender that sends what is no object; the hash of each object decides. */
#ifndef STET_EXEC_PACK_H
#define STET_EXEC_PACK_H

#include "exec/repo.h"

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

/* An object as it travels. `lost`: `bytes` is a tombstone, and `type` what the object was; else `type` is not set. */
typedef struct stet_sent {
    stet_hash id;
    stet_record_type type;
    bool lost;
    const char *bytes;
    size_t len;
} stet_sent;
typedef stet_status stet_take_fn(void *ctx, const stet_sent *sent, stet_error *err);

/* Gives each of its objects to `take`; unverified, but for the stream itself. */
STET_CHECKED stet_status stet_pack_each(const char *bytes, size_t len, stet_take_fn *take, void *ctx, stet_error *err);
/* Stores what is in it, in one transaction (its own, or the caller's). STET_CORRUPT: a stream that is cut or damaged,
 * an object that is none. STET_NOT_FOUND: an object names something that is neither there nor before it in the stream.
 */
STET_CHECKED stet_status stet_pack_apply(stet_repo *r, const char *bytes, size_t len, stet_copy_report *report,
                                         stet_error *err);

#endif
