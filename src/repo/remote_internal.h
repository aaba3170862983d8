/* remote_internal.h - the operations of a remote of any kind. Private to src/repo. */
#ifndef STET_EXEC_REMOTE_INTERNAL_H
#define STET_EXEC_REMOTE_INTERNAL_H

#include "repo/remote.h"
#include "repo/transfer.h"

typedef struct stet_remote {
    stet_side side;
    /* Refs with this prefix. Names and ids are well-formed. */
    stet_status (*refs)(struct stet_remote *remote, const char *prefix, stet_refs *out, stet_error *err);
    void (*close)(struct stet_remote *remote);
    stet_repo *repo; /* for file: addresses */
    struct stet_external *external;
} stet_remote;

/* Opens a remote behind a program, which is asked by JSON requests (remote_external.c). */
stet_status stet_external_open(const char *uri, int64_t timeout_ms, stet_remote *out, stet_error *err);

/* Parse a program's reply to a question. They are separate from asking so that tests can pass arbitrary bytes. */
stet_status stet_external_refs_of(const char *who, stet_value reply, const char *prefix, stet_refs *out,
                                  stet_error *err);
stet_status stet_external_have_of(const char *who, stet_value reply, const stet_hash *ids, size_t count, bool *out,
                                  stet_error *err);
/* Passes each object to `take`; `*missing` counts those that the program says it does not have, `*given` those passed.
 */
stet_status stet_external_objects_of(const char *who, stet_value reply, stet_take_fn *take, void *ctx, size_t *given,
                                     size_t *missing, stet_error *err);
/* The reply to update-refs; a conflict is STET_CONFLICT. */
stet_status stet_external_updated_of(const char *who, stet_value reply, stet_error *err);

#endif
