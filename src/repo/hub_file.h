/* hub_file.h - the parts of the kind `file:` that have nothing to do with claims. Private to src/repo. */
#ifndef STET_EXEC_HUB_FILE_H
#define STET_EXEC_HUB_FILE_H

#include "repo/hub_kind.h"

stet_status stet_hub_file_has_blob(stet_hub *h, stet_hash hash, bool *there, int64_t *size, stet_error *err);
stet_status stet_hub_file_put_blob(stet_hub *h, stet_hash hash, stet_hub_source *source, void *ctx, stet_error *err);
stet_status stet_hub_file_get_blob(stet_hub *h, stet_hash hash, int64_t offset, stet_hub_sink *sink, void *ctx,
                                   stet_error *err);
stet_status stet_hub_file_announce(stet_hub *h, const char *name, const char *body, size_t len, int64_t for_ms,
                                   stet_error *err);
stet_status stet_hub_file_list_workers(stet_hub *h, stet_hub_workers *out, stet_error *err);
stet_status stet_hub_file_count(stet_hub *h, stet_hub_counts *out, stet_error *err);
stet_status stet_hub_file_check(stet_hub *h, stet_buf *problems, size_t *found, stet_error *err);

#endif
