/* project_dir.h - where the persist directory of a project lies, and how it is configured. */
#ifndef STET_PERSIST_PROJECT_DIR_H
#define STET_PERSIST_PROJECT_DIR_H

#include "persist/persist.h"
#include "project/project.h"

/* Opens .stet/persist (or persist.defaults.dir_path) with the tables [persist.defaults] and
 * [persist.default_cleanup_strategy] of .stet/config.toml. Temporary files, use times and the trash lie below
 * .stet/local. `config` may change what the file says; NULL: nothing is changed. */
STET_CHECKED stet_status stet_persist_open_project(stet_project *project, bool read_only,
                                                   void (*config)(stet_persist_config *config, void *ctx), void *ctx,
                                                   stet_persist **out, stet_error *err);
/* The path of the directory; the caller frees. */
STET_CHECKED stet_status stet_persist_project_path(stet_project *project, char **out, stet_error *err);

#endif
