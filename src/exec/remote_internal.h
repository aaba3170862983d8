/* remote_internal.h - what remotes of all kinds can do. Private to src/exec. */
#ifndef STET_EXEC_REMOTE_INTERNAL_H
#define STET_EXEC_REMOTE_INTERNAL_H

#include "exec/remote.h"
#include "exec/transfer.h"

typedef struct stet_remote {
    stet_side side;
    /* Refs whose names begin so. Names and ids are well-formed. */
    stet_status (*refs)(struct stet_remote *remote, const char *prefix, stet_refs *out, stet_error *err);
    void (*close)(struct stet_remote *remote);
    stet_repo *repo; /* of file: */
    struct stet_external *external;
} stet_remote;

/* A program, asked by requests in JSON (remote_external.c). */
stet_status stet_external_open(const char *uri, int64_t timeout_ms, stet_remote *out, stet_error *err);

/* What a program's bytes say, as far as they are a reply to that question. Apart from the asking, for tests: bytes from
 * elsewhere. */
stet_status stet_external_refs_of(const char *who, stet_value reply, const char *prefix, stet_refs *out,
                                  stet_error *err);
stet_status stet_external_have_of(const char *who, stet_value reply, const stet_hash *ids, size_t count, bool *out,
                                  stet_error *err);
/* Gives each object to `take`; `*missing` of those that it says it has not, `*given` of those given. */
stet_status stet_external_objects_of(const char *who, stet_value reply, stet_take_fn *take, void *ctx, size_t *given,
                                     size_t *missing, stet_error *err);
/* The reply to update-refs; a conflict is STET_CONFLICT. */
stet_status stet_external_updated_of(const char *who, stet_value reply, stet_error *err);

#endif
