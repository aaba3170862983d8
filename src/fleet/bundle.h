/* bundle.h - one run as one file that proves itself.
 *
 * The file is a first line of JSON
 * {"format":"stet-run","version":1,"runId","exportedAt","files":[{"path","size","sha256"}]}, then the bytes of the
 * files one after the other in that order, then a last line {"sha256":"<of all bytes before this line>"}. Files are
 * state.json, events.jsonl and what lies in logs/; never the driver's lock.
 *
 * Import checks every byte before anything appears: the sum of the whole, each file's, that state.json is a conforming
 * state with this id. Paths are those three kinds and nothing else, so that a crafted file can't write elsewhere.
 */
#ifndef STET_FLEET_BUNDLE_H
#define STET_FLEET_BUNDLE_H

#include "fleet/state.h"
#include "project/project.h"

#define STET_BUNDLE_VERSION   1
#define STET_BUNDLE_FILES_MAX 100000
#define STET_BUNDLE_MAX_BYTES ((uint64_t)64 << 30)

typedef struct stet_bundle_info {
    char run_id[STET_RUN_ID_MAX + 1];
    size_t files;
    uint64_t bytes;   /* of the bundle */
    stet_hash sha256; /* of all of it but the last line */
} stet_bundle_info;

/* Writes the run of `run_dir` to `path`, which must not exist (STET_CONFLICT) unless `replace`. STET_BUSY while it is
 * driven. */
STET_CHECKED stet_status stet_bundle_export(const char *run_dir, const char *id, const char *path, bool replace,
                                            stet_bundle_info *info, stet_error *err);
/* Checks the bundle and, unless `verify_only`, makes the run in the project. STET_CONFLICT if the project has a run
 * with this id already; STET_CORRUPT if a byte is not what was exported. */
STET_CHECKED stet_status stet_bundle_import(stet_project *p, const char *path, bool verify_only, stet_bundle_info *info,
                                            stet_error *err);

#endif
