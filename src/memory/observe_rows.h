/* observe_rows.h - sets of places in documents, and the blob that an observation is stored as.
 *
 * A place is (document number, path, flag). A set of places is kept sorted by document and path, each once; a recursive
 * read swallows a shallow one of the same path; more than STET_PLACES_PER_DOC of one document collapse to their common
 * prefix, recursive: wider, never narrower.
 *
 * Packed, a set is, for each document: varint difference of its number to the one before, varint count, and for each
 * path varint (length * 2 + flag) and its bytes. Equal sets have equal bytes, so that "the reads are the same as last
 * time" is one memcmp, and index rows are not touched then.
 *
 * The observation: version byte 1, then
 *
 *     byte     kind (2 bits), run kind (2), failed, changed, has parent, known is declared
 *     varint   fingerprint numbers of implementation and runtime
 *     varint   observed_at; time in ms
 *     bytes    parent if any (varint length first); error hash if failed (32 bytes)
 *     bytes    own reads (varint length, packed), then one byte: 0 if every read holds through observed_at, else 1 and
 *              a length and a varint difference for each
 *     bytes    known (absent if it is declared), declared, changed, envelopes, ignored: varint length, packed
 *     bytes    foreign reads: varint length; for each space varint its number, varint count of reads; for each read
 *              varint length and bytes of id, of scope; varint (path length * 2 + flag), path; varint sequence; varint
 *              document
 *     bytes    options and note: varint length, canonical JSON ("" is null)
 *
 * Readers take hostile bytes: what does not decode is damaged, never a crash.
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

/* Sorts, merges, collapses. Collapsed paths point into the ones that were there. */
void stet_places_settle(stet_places *p);
void stet_places_pack(const stet_places *p, stet_buf *out);
/* Paths point into `bytes`. False: damaged; `out` is then incomplete. `out` NULL: only looks. */
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
    bool failed, changed, known_is_declared;
    int64_t implementation, runtime; /* fingerprint numbers */
    int64_t observed_at, time_ms;
    stet_bytes parent; /* at NULL: none */
    stet_hash error;
    stet_bytes reads, known, declared, actual, envelopes, ignored; /* packed; `known` is filled in from declared */
    stet_bytes offsets;                                            /* len 0: all hold through observed_at */
    stet_bytes foreign;                                            /* as stored; stet_obs_foreign decodes */
    stet_bytes options, note;
} stet_obs;

void stet_obs_encode(const stet_obs *o, stet_buf *out);
bool stet_obs_decode(const void *bytes, size_t len, stet_obs *out);
/* Do the sections that have index rows unpack? */
bool stet_obs_sound(const stet_obs *o);
/* The own reads with their sequences. */
bool stet_obs_reads(const stet_obs *o, stet_places *out);
typedef STET_VEC(stet_foreign_place) stet_foreign_places;
/* Sorts, merges, collapses, as stet_places_settle does. */
void stet_foreign_settle(stet_foreign_places *f);
void stet_foreign_pack(const stet_foreign_places *p, stet_buf *out); /* sorted by space */
bool stet_foreign_unpack(stet_bytes b, stet_foreign_places *out);

#endif
