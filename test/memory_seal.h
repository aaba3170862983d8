/* memory_seal.h - makes the checksums of the scheduler's rows right for what they say: for tests that alter rows as a
 * crash or a fault of stet would leave them, and not as damage of the file. */
#ifndef STET_TEST_MEMORY_SEAL_H
#define STET_TEST_MEMORY_SEAL_H

#include "db/db.h"
#include "memory/observe_rows.h"

/* Inside a write transaction. */
static inline void reseal(stet_db *db) {
    stet_db_exec(db, "UPDATE OR IGNORE place_index SET sum = " STET_BLOCK_SUM ";"
                     "UPDATE mirror SET sum = " STET_MIRROR_SUM ";"
                     "UPDATE mirror_owner SET sum = " STET_OWNER_SUM ";"
                     "UPDATE foreign_space SET sum = " STET_FOREIGN_SUM ";"
                     "UPDATE survey SET sum = " STET_SURVEY_SUM ";"
                     "UPDATE complete_branch SET sum = row_sum(branch, runtime);"
                     "UPDATE space_meta SET sum = row_sum(name, value) WHERE name IN ('marked_through', 'mark_stamp');"
                     "UPDATE space_meta SET value = (SELECT " STET_MARK_DIGEST " FROM mark)"
                     " WHERE name = 'digest:mark';"
                     "UPDATE space_meta SET value = (SELECT " STET_FOREIGN_DIGEST " FROM foreign_read)"
                     " WHERE name = 'digest:foreign_read'");
}

#endif
