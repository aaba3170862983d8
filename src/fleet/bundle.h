/* bundle.h - one run as a single self-verifying file.
 *
 * The file consists of
 *   1. a line of JSON, {"format":"stet-run","version":1,"runId","exportedAt","files":[{"path","size","sha256"}]};
 *   2. the bytes of the files, one after the other, in that order;
 *   3. a last line, {"sha256":"<of all bytes before this line>"}.
 * The files are state.json, events.jsonl and what lies in logs/; never the driver's lock.
 *
 * Import checks every byte before anything is written: the hash of the whole, the hash of each file, and that
 * state.json is a valid state with this id. Only those three kinds of paths are accepted, so that a crafted file can't
 * write elsewhere.
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
    stet_hash sha256; /* of everything except the last line */
} stet_bundle_info;

/* Writes the run of `run_dir` to `path`, which must not exist (STET_CONFLICT) unless `replace`. STET_BUSY: the run is
 * being driven. */
STET_CHECKED stet_status stet_bundle_export(const char *run_dir, const char *id, const char *path, bool replace,
                                            stet_bundle_info *info, stet_error *err);
/* Checks the bundle and, unless `verify_only`, creates the run in the project. STET_CONFLICT: the project already has a
 * run with this id. STET_CORRUPT: a byte differs from what was exported. */
STET_CHECKED stet_status stet_bundle_import(stet_project *p, const char *path, bool verify_only, stet_bundle_info *info,
                                            stet_error *err);

#endif
