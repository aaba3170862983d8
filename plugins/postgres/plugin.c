/* plugin.c - the kind `postgres:` of hubs: opening, closing, and what the plug-in exports. */

#define STET_HUB_LIBRARY_CALLS
#include <stdlib.h>

#include "postgres.h"

static void close_hub(stet_hub *h) {
    pg *p = h->ctx;
    pg_disconnect(p);
    pg_address_release(&p->address);
    stet_free(p);
    stet_free(h);
}

static const stet_hub_kind postgres_kind = {.refs = pg_refs,
                                            .close = close_hub,
                                            .get_claim = pg_get_claim,
                                            .swap_claim = pg_swap_claim,
                                            .find_claims = pg_find_claims,
                                            .gc = pg_gc,
                                            .now = pg_now,
                                            .news = pg_news,
                                            .wait = pg_wait,
                                            .has_blob = pg_has_blob,
                                            .put_blob = pg_put_blob,
                                            .get_blob = pg_get_blob,
                                            .announce = pg_announce,
                                            .list_workers = pg_list_workers,
                                            .count = pg_count,
                                            .check = pg_check};

static stet_status check_uri(const char *uri, stet_error *err) {
    pg_address a;
    stet_status status = pg_address_parse(uri, &a, err);
    if (status == STET_OK)
        pg_address_release(&a);
    return status;
}

static stet_status open_hub(const char *uri, unsigned flags, stet_hub **out, stet_error *err) {
    pg *p = stet_alloc_zero(sizeof *p);
    (void)flags; /* a hub must exist in any case, and reading renews what is read */
    stet_status status = pg_address_parse(uri, &p->address, err);
    if (status == STET_OK)
        status = pg_connect(p, err);
    if (status == STET_OK)
        status = pg_schema_check(p, err);
    if (status != STET_OK) {
        pg_disconnect(p);
        pg_address_release(&p->address);
        stet_free(p);
        return status;
    }
    *out = stet_alloc_zero(sizeof **out);
    **out = (stet_hub){.kind = &postgres_kind,
                       .side = {.ctx = p, .name = p->address.shown, .have = pg_have, .get = pg_get, .put = pg_put},
                       .ctx = p};
    return STET_OK;
}

static void attach(const void *library) {
    if (!stet_hub_library_given)
        stet_hub_library_given = library;
}

extern const stet_hub_plugin stet_plugin_postgres;
__attribute__((visibility("default"))) const stet_hub_plugin stet_plugin_postgres = {
    .plugin = {STET_VERSION, sizeof(stet_hub_library), attach},
    .check_uri = check_uri,
    .open = open_hub,
    .init = pg_init,
};
