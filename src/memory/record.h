/* record.h - the two blobs of a commit row.
 *
 * `changes`: one byte 1 (the version), then for each document in the order of their numbers
 *
 *     varint document   difference to the previous one's number
 *     varint kind       stet_revision_kind
 *     varint back       this sequence minus that of the document's previous revision; 0: there is none
 *     varint length     of its part of `body`
 *     varint leaves     how many, and for each leaf, sorted by path
 *         varint shared     bytes in common with the path of the leaf before, times 2, plus 1 if the key set changed
 *         varint rest       how many bytes follow
 *         bytes
 *
 * `body`: the parts of the documents one after the other. Set: the canonical text of the envelope. Patch: see patch.c.
 * Delete: nothing.
 *
 * Varints are LEB128: seven bits a byte, least first, at most ten bytes. Readers take hostile bytes: a record that does
 * not decode is STET_CORRUPT, never a crash.
 *
 *     stet_record r;
 *     stet_record_begin(&r, bytes, len);
 *     while (stet_record_next(&r, &rev)) ...           // rev.leaves decode with stet_record_leaves
 *     if (r.damaged) ...
 */
#ifndef STET_MEMORY_RECORD_H
#define STET_MEMORY_RECORD_H

#include "base/arena.h"
#include "memory/space.h"

typedef struct stet_record {
    const char *p, *end;
    int64_t doc;
    size_t body_at;
    bool damaged;
} stet_record;

typedef struct stet_record_rev {
    int64_t doc;
    stet_revision_kind kind;
    int64_t back;
    size_t body_at, body_len;
    size_t leaf_count;
    const char *leaves;
    size_t leaves_len;
} stet_record_rev;

void stet_varint_put(stet_buf *b, uint64_t n);
bool stet_varint_get(const char **p, const char *end, uint64_t *n);

void stet_record_start(stet_buf *changes); /* appends, as all of it does */
/* `*last` is the number of the document before, 0 at first. */
void stet_record_add(stet_buf *changes, int64_t *last, int64_t doc, stet_revision_kind kind, int64_t back,
                     size_t body_len, const stet_change *at, size_t len);

void stet_record_begin(stet_record *r, const void *bytes, size_t len);
bool stet_record_next(stet_record *r, stet_record_rev *out);
/* The revision of one document; false if it is not in there (or damaged). */
bool stet_record_find(const void *bytes, size_t len, int64_t doc, stet_record_rev *out, bool *damaged);
/* Decoded leaves in memory of `arena`. NULL: damaged. */
const stet_change *stet_record_leaves(const stet_record_rev *rev, stet_arena *arena);

#endif
