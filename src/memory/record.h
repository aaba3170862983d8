/* record.h - the two blobs of a commit row.
 *
 * `changes`: one byte 2 (the version), then for each document in the order of their numbers
 *
 *   varint document   difference to the previous document's number
 *   varint kind       stet_revision_kind
 *   varint back       this sequence minus that of the document's previous revision; 0: there is none
 *   varint length     of its part of `body`
 *   4 bytes           CRC-32C of its part of `body`, least significant byte first
 *   varint leaves     their number, and for each leaf, sorted by path:
 *     varint shared   bytes in common with the path of the leaf before, times 2, plus 1 if the key set changed
 *     varint rest     the number of bytes that follow
 *     bytes
 *
 * `body`: the parts of the documents, one after the other. Set: the canonical text of the envelope. Patch: see patch.c.
 * Delete, lost: nothing.
 *
 * The columns `content` and `sum` of the row verify `changes` (schema.c), and `changes` verifies each part of the body.
 * So a part is verified alone, and a damaged part costs no other document its revision. Version 1 had no checksums;
 * only the migration reads it, because a flipped bit in the version must not switch the verification off.
 *
 * Varints are LEB128: seven bits a byte, least significant first, at most ten bytes. Readers accept hostile bytes: a
 * record that does not decode is STET_CORRUPT, never a crash.
 *
 *     stet_record r;
 *     stet_record_rev rev;
 *     stet_record_begin(&r, bytes, len);
 *     while (stet_record_next(&r, &rev))
 *         changes = stet_record_leaves(&rev, &arena);
 *     if (r.damaged)
 *         return STET_CORRUPT;
 */
#ifndef STET_MEMORY_RECORD_H
#define STET_MEMORY_RECORD_H

#include "base/arena.h"
#include "db/db.h"
#include "memory/space.h"

typedef struct stet_record {
    const char *p, *end;
    int64_t doc;
    size_t body_at;
    bool sums; /* version 2 */
    bool damaged;
} stet_record;

typedef struct stet_record_rev {
    int64_t doc;
    stet_revision_kind kind;
    int64_t back;
    size_t body_at, body_len;
    uint32_t body_sum;
    size_t leaf_count;
    const char *leaves;
    size_t leaves_len;
} stet_record_rev;

void stet_varint_put(stet_buf *b, uint64_t n);
bool stet_varint_get(const char **p, const char *end, uint64_t *n);

void stet_record_start(stet_buf *changes); /* appends, like the functions below */
/* `*last` is the number of the document before, 0 at first. `body` is this document's part of the body. */
void stet_record_add(stet_buf *changes, int64_t *last, int64_t doc, stet_revision_kind kind, int64_t back,
                     const char *body, size_t body_len, const stet_change *at, size_t len);

void stet_record_begin(stet_record *r, const void *bytes, size_t len);
/* Version 1, or a row that gc emptied. */
void stet_record_begin_old(stet_record *r, const void *bytes, size_t len);
bool stet_record_next(stet_record *r, stet_record_rev *out);
/* The revision of one document; false if it is not in the record (or damaged). */
bool stet_record_find(const void *bytes, size_t len, int64_t doc, stet_record_rev *out, bool *damaged);
/* Decoded leaves in memory of `arena`. NULL: damaged. */
const stet_change *stet_record_leaves(const stet_record_rev *rev, stet_arena *arena);
/* The revision's part of the body, rev->body_len bytes. NULL: cut or damaged. */
const char *stet_record_body(const stet_record_rev *rev, const char *body, size_t body_len);

/* The columns that a reader of the table commits selects first. `sum` verifies the columns before it and `content`
 * verifies `changes`, so that the newest sequence can be verified without reading a large record. */
#define STET_COMMIT_HEAD    "seq, branch, time_ms, content, sum"
#define STET_COMMIT_COLUMNS STET_COMMIT_HEAD ", changes"
enum {
    STET_COMMIT_SEQ,
    STET_COMMIT_BRANCH,
    STET_COMMIT_TIME,
    STET_COMMIT_CONTENT,
    STET_COMMIT_SUM,
    STET_COMMIT_CHANGES
};
/* Is the current row of the statement what was written? Then `*changes` is its record. */
bool stet_commit_sound(stet_stmt *q, const char **changes, size_t *len);
/* Fields 0 to 4 of a row: as STET_COMMIT_HEAD. */
void stet_commit_fields(stet_row *out, int64_t seq, int64_t branch, int64_t time_ms, const char *changes, size_t len);

#endif
