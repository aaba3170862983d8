/* overlay.h - marks on runs, kept beside the runs in one small file per kind and project.
 *
 *   .stet/local/registry/archive.json {"schemaVersion":1,"archived":{"<run>":{"archivedAt","reason","actor"}}}
 *   .stet/local/registry/provenance.json {"schemaVersion":1,"links":{"<run>":{"rerunOf", ...}}}
 *   .stet/local/registry/labels.json {"schemaVersion":1,"labels":{"<run>":["...", ...]}}
 *
 * Reading takes no lock and writes nothing. An update changes any number of marks by replacing the file once, under
 * registry/overlay.lock. A malformed file is STET_CORRUPT, one from a newer stet STET_UNSUPPORTED. Both are left as
 * they are, and updates are refused: a file that can't be read must not be overwritten.
 */
#ifndef STET_FLEET_OVERLAY_H
#define STET_FLEET_OVERLAY_H

#include "base/error.h"

#define STET_OVERLAY_SCHEMA 1
/* Member of a mark in a loaded registry: the directory of another program that keeps it. Never written. */
#define STET_OVERLAY_BY "markedIn"

typedef enum stet_overlay {
    STET_OVERLAY_ARCHIVE,
    STET_OVERLAY_PROVENANCE,
    STET_OVERLAY_LABELS,
    STET_OVERLAYS
} stet_overlay;

const char *stet_overlay_file(stet_overlay kind); /* "archive.json" */
/* The marks by run id: an object, empty if there is no file. Belongs to the caller. */
STET_CHECKED stet_status stet_overlay_load(const char *registry_dir, stet_overlay kind, stet_value *out,
                                           stet_error *err);
/* Sets each member of `changes`; null removes a mark. */
STET_CHECKED stet_status stet_overlay_update(const char *registry_dir, stet_overlay kind, stet_value changes,
                                             stet_error *err);

/* Every derived file of the registry is an object with a schemaVersion, read and replaced as a whole. An absent file
 * leaves `*out` null and is STET_OK. */
STET_CHECKED stet_status stet_derived_load(const char *path, size_t max, int64_t version, stet_value *out,
                                           stet_error *err);
STET_CHECKED stet_status stet_derived_store(const char *path, size_t max, stet_value v, stet_error *err);

#endif
