/* hub_kind.h - what a kind of hub implements. For src/repo, plug-ins and tests.
 *
 * Each function is that of hub.h with the same name. The rules H1 to H5 of hub.h are the kind's to keep; a test runs
 * random operations against a model of them over every kind (test/property/hub.c).
 */
#ifndef STET_EXEC_HUB_KIND_H
#define STET_EXEC_HUB_KIND_H

#include "os/plugin.h"
#include "repo/hub.h"
#include "repo/remote.h"
#include "repo/transfer.h"

typedef struct stet_hub_kind {
    /* Refs with this prefix. Names and ids are well-formed. */
    stet_status (*refs)(stet_hub *h, const char *prefix, stet_refs *out, stet_error *err);
    void (*close)(stet_hub *h);
    /* A kind without claims leaves the rest out. The body of `next` is given as text, with its hash as version. */
    stet_status (*get_claim)(stet_hub *h, stet_hash key, bool *there, stet_hub_claim *out, stet_error *err);
    stet_status (*swap_claim)(stet_hub *h, stet_hash key, const stet_hash *expect, const stet_hub_claim *next,
                              const char *text, size_t len, stet_error *err); /* `next` NULL: remove it */
    stet_status (*find_claims)(stet_hub *h, stet_hub_which which, int64_t before_ms, size_t limit, stet_hub_keys *out,
                               stet_error *err);
    stet_status (*gc)(stet_hub *h, int64_t grace_s, stet_hub_gc_report *report, stet_error *err);
    stet_status (*now)(stet_hub *h, int64_t *ms, stet_error *err);
    int64_t (*news)(stet_hub *h);
    void (*wait)(stet_hub *h, int64_t news, int timeout_ms);
    stet_status (*has_blob)(stet_hub *h, stet_hash hash, bool *there, int64_t *size, stet_error *err);
    /* The source is checked by the caller: if it fails or ends with STET_CORRUPT, nothing is stored. */
    stet_status (*put_blob)(stet_hub *h, stet_hash hash, stet_hub_source *source, void *ctx, stet_error *err);
    stet_status (*get_blob)(stet_hub *h, stet_hash hash, int64_t offset, stet_hub_sink *sink, void *ctx,
                            stet_error *err);
    stet_status (*announce)(stet_hub *h, const char *name, const char *body, size_t len, int64_t for_ms,
                            stet_error *err);
    stet_status (*list_workers)(stet_hub *h, stet_hub_workers *out, stet_error *err);
    stet_status (*count)(stet_hub *h, stet_hub_counts *out, stet_error *err);
    stet_status (*check)(stet_hub *h, stet_buf *problems, size_t *found, stet_error *err);
} stet_hub_kind;

struct stet_hub {
    const stet_hub_kind *kind;
    stet_side side;  /* objects in batches; swaps of refs */
    stet_repo *repo; /* it is this repository; NULL: it lies elsewhere */
    stet_repo *lent; /* see stet_hub_lend */
    void *ctx;       /* the kind's */
};

/* What a plug-in for a kind of hub exports. The functions are those of hub.h. */
typedef struct stet_hub_plugin {
    stet_plugin plugin;
    stet_status (*check_uri)(const char *uri, stet_error *err);
    stet_status (*open)(const char *uri, unsigned flags, stet_hub **out, stet_error *err);
    stet_status (*init)(const char *uri, bool *changed, stet_error *err);
} stet_hub_plugin;

/* Opens a hub behind a program, which is asked by JSON requests (remote_external.c). It has no claims. */
stet_status stet_external_open(const char *uri, int64_t timeout_ms, stet_hub **out, stet_error *err);

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
