/* index.h - index.json, the derived table of records: one row per line, so that it is read without holding all of it
 * twice.
 *
 * The file is JSON: a line that opens {"schemaVersion", "scope", "root", "generatedAt", "sourceFingerprint", "repos",
 * "records":[, then one line per record, then a line ],"check":"<SHA-256 of all bytes before this line>"}. A row with
 * another byte in it is therefore not believed: a damaged index is STET_CORRUPT as a whole, and rebuilt by a refresh.
 */
#ifndef STET_FLEET_INDEX_H
#define STET_FLEET_INDEX_H

#include "base/vec.h"
#include "fleet/record.h"

#define STET_FLEET_INDEX_SCHEMA    1
#define STET_FLEET_INDEX_MAX_BYTES ((size_t)1 << 30)

typedef STET_VEC(stet_fleet_record *) stet_fleet_records;

typedef struct stet_fleet_index {
    bool present;
    const char *generated_at;
    stet_hash fingerprint;
    const char **repos; /* in the arena */
    size_t repo_count;
    stet_fleet_records rows; /* in the order of the file; structs in the arena, the vector to be released */
} stet_fleet_index;

/* An absent file is STET_OK with present false. */
STET_CHECKED stet_status stet_fleet_index_load(const char *path, stet_arena *arena, stet_fleet_index *out,
                                               stet_error *err);
/* Each row's repo_index must be the position of its repo in `repos`. */
STET_CHECKED stet_status stet_fleet_index_store(const char *path, const char *scope, const char *root,
                                                const char *generated_at, const char *const *repos, size_t repo_count,
                                                const stet_fleet_records *rows, stet_error *err);
/* SHA-256 over repo, id and fingerprint of each, in their order. */
stet_hash stet_fleet_index_fingerprint(const stet_fleet_records *rows);

#endif
