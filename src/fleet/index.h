/* index.h - index.json, the derived table of records.
 *
 * It has one row per line, so that it can be read without holding all of it twice. The file is JSON:
 *   1. a line {"schemaVersion", "scope", "root", "generatedAt", "sourceFingerprint", "repos", "records":[
 *   2. one line per record
 *   3. a line ],"check":"<SHA-256 of all bytes before this line>"}
 * So a row with a changed byte is not believed: a damaged index is STET_CORRUPT as a whole, and a refresh rebuilds it.
 */
#ifndef STET_FLEET_INDEX_H
#define STET_FLEET_INDEX_H

#include "base/vec.h"
#include "fleet/record.h"

#define STET_FLEET_INDEX_SCHEMA    3
#define STET_FLEET_INDEX_MAX_BYTES ((size_t)1 << 30)

typedef STET_VEC(stet_fleet_record *) stet_fleet_records;

typedef struct stet_fleet_index {
    bool present;
    const char *generated_at;
    stet_hash fingerprint;
    const char **repos; /* in the arena */
    size_t repo_count;
    stet_fleet_records rows; /* in the order of the file; the structs are in the arena, the vector must be released */
} stet_fleet_index;

/* Loads the index. An absent file is STET_OK with present false. */
STET_CHECKED stet_status stet_fleet_index_load(const char *path, stet_arena *arena, stet_fleet_index *out,
                                               stet_error *err);
/* Each row's repo_index must be the position of its repo in `repos`. */
STET_CHECKED stet_status stet_fleet_index_store(const char *path, const char *scope, const char *root,
                                                const char *generated_at, const char *const *repos, size_t repo_count,
                                                const stet_fleet_records *rows, stet_error *err);
/* SHA-256 over repo, id and fingerprint of each record, in order. */
stet_hash stet_fleet_index_fingerprint(const stet_fleet_records *rows);

#endif
