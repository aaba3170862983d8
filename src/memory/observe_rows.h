/* observe_rows.h - sets of places in documents, and the blob that an observation is stored as.
 *
 * A place is (document number, path, flag). A set of places is sorted by document and path, each once. A recursive read
 * replaces a shallow one of the same path. More than STET_PLACES_PER_DOC places of one document collapse to their
 * common prefix, recursive: wider, never narrower.
 *
 * A packed set is, for each document: varint difference of its number to the one before, varint count, and for each
 * path varint (length * 2 + flag) and its bytes. Equal sets have equal bytes. So "the reads are the same as last time"
 * is one memcmp, and then index rows are not touched.
 *
 * The observation: version byte 1, or 2 if it is accepted (observe_accept.c), then
 *
 *   byte     kind (2 bits), run kind (2), failed, changed, has parent, known is declared
 *   varint   fingerprint numbers of implementation and runtime
 *   varint   observed_at; time in ms
 *   bytes    parent if any (varint length first); error hash if failed (32 bytes)
 *   bytes    own reads (varint length, packed), then one byte: 0 if every read holds through observed_at, otherwise 1
 *            and a length and a varint difference for each
 *   bytes    known (absent if it is declared), declared, changed, envelopes, ignored: varint length, packed
 *   bytes    foreign reads: varint length; for each space varint its number, varint count of reads; for each read
 *            varint length and bytes of id, of scope; varint (path length * 2 + flag), path; varint sequence; varint
 *            document
 *   bytes    options and note: varint length, canonical JSON ("" is null)
 *
 * Readers accept hostile bytes: what does not decode is damaged, never a crash.
 */
#ifndef STET_MEMORY_OBSERVE_ROWS_H
#define STET_MEMORY_OBSERVE_ROWS_H

#include "memory/internal.h"

#define STET_PLACES_PER_DOC 64

typedef struct stet_place {
    int64_t doc;
    stet_pathref path;
    unsigned flag; /* of a read: 1 is shallow */
    int64_t seq;   /* of a read; not part of the packed form */
} stet_place;

typedef struct stet_places {
    stet_place *at;
    size_t len, cap;
} stet_places;

/* Sorts, merges and collapses. Collapsed paths point into existing ones. */
void stet_places_settle(stet_places *p);
void stet_places_pack(const stet_places *p, stet_buf *out);
/* Paths point into `bytes`. False: damaged, and `out` is incomplete. `out` NULL: only checks. */
bool stet_places_unpack(const char *bytes, size_t len, stet_places *out);

typedef struct stet_bytes {
    const char *at;
    size_t len;
} stet_bytes;

int stet_bytes_compare(stet_bytes a, stet_bytes b);

typedef struct stet_foreign_place {
    int64_t space; /* number of foreign_space */
    stet_bytes id, scope;
    stet_pathref path;
    unsigned flag;
    int64_t seq, doc;
} stet_foreign_place;

/* An observation blob with its sections found but not unpacked. Everything points into the blob. */
typedef struct stet_obs {
    stet_action_kind kind;
    stet_run_kind run;
    bool failed, changed, known_is_declared, accepted;
    int64_t implementation, runtime; /* fingerprint numbers */
    int64_t observed_at, time_ms;
    stet_bytes parent; /* at NULL: none */
    stet_hash error;
    stet_bytes reads, known, declared, actual, envelopes, ignored; /* packed; `known` is filled in from declared */
    stet_bytes offsets;                                            /* len 0: all hold through observed_at */
    stet_bytes foreign;                                            /* as stored; stet_obs_foreign decodes */
    stet_bytes options, note;
} stet_obs;

/* SQL over the table `action`: did the run of the observation fail? An index has the same condition (schema.c). */
#define STET_ACTION_FAILED "hex(substr(observation, 2, 1)) GLOB '[13579BDF]?'"

/* Is it accepted? An index has the same condition, too. */
#define STET_ACTION_ACCEPTED "substr(observation, 1, 1) = x'02'"

/* Columns of the scheduler's tables in the order of their checksums (schema.c), and the checksums in SQL. */
#define STET_MARK_COLUMNS    "action, space, branch, state, reason, seq, doc, id, scope, path, kind, stamp"
#define STET_MARK_SUM        "row_sum(" STET_MARK_COLUMNS ")"
#define STET_MARK_DIGEST     "row_digest(" STET_MARK_COLUMNS ")"
#define STET_FOREIGN_DIGEST  "row_digest(space, action)" /* of foreign_read */
#define STET_BLOCK_COLUMNS   "key, path, block, reads, shallow, known, declared, envelopes"
#define STET_BLOCK_SUM       "row_sum(" STET_BLOCK_COLUMNS ")"
#define STET_BUCKET_BITS     "4"                          /* place_digest: documents with the same number >> 4 */
#define STET_NAME_DIGEST     "row_digest(doc, id, scope)" /* of document */
#define STET_MIRROR_COLUMNS  "key, path, owner, action, flags"
#define STET_MIRROR_SUM      "row_sum(" STET_MIRROR_COLUMNS ")"
#define STET_OWNER_COLUMNS   "owner, uuid, name, stamp, pending, pushed" /* of mirror_owner */
#define STET_OWNER_SUM       "row_sum(" STET_OWNER_COLUMNS ")"
#define STET_FOREIGN_COLUMNS "space, uuid, name, seen, stamp" /* of foreign_space */
#define STET_FOREIGN_SUM     "row_sum(" STET_FOREIGN_COLUMNS ")"
#define STET_SURVEY_SUM      "row_sum(branch, demand, through, unneeded)"

void stet_obs_encode(const stet_obs *o, stet_buf *out);
bool stet_obs_decode(const void *bytes, size_t len, stet_obs *out);
/* Can the sections that have index rows be unpacked? */
bool stet_obs_sound(const stet_obs *o);
/* The own reads with their sequences. */
bool stet_obs_reads(const stet_obs *o, stet_places *out);
typedef STET_VEC(stet_foreign_place) stet_foreign_places;
/* Sorts, merges and collapses, like stet_places_settle. */
void stet_foreign_settle(stet_foreign_places *f);
void stet_foreign_pack(const stet_foreign_places *p, stet_buf *out); /* sorted by space */
bool stet_foreign_unpack(stet_bytes b, stet_foreign_places *out);

#endif
