/* hub.c - hubs of any kind: opening, copying objects, claims. */

#include "repo/hub.h"

#include <stdlib.h>
#include <string.h>

#include "repo/hub_kind.h"
#include "repo/hub_library.h"

static bool begins(const char *uri, const char *with) {
    return strncmp(uri, with, strlen(with)) == 0;
}

/* The plug-in for this address; `*out` NULL: the address is of a kind that needs none. */
static stet_status plugin_for(const char *uri, const stet_hub_plugin **out, stet_error *err) {
    static const stet_plugin_request postgres = {.name = "postgres",
                                                 .symbol = "stet_plugin_postgres",
                                                 .package = "libpq5",
                                                 .library = &stet_hub_library_functions,
                                                 .library_size = sizeof stet_hub_library_functions};
    const stet_plugin *plugin;
    *out = NULL;
    if (!begins(uri, "postgres:") && !begins(uri, "postgresql:"))
        return STET_OK;
    stet_status status = stet_plugin_load(&postgres, &plugin, err);
    if (status == STET_OK)
        *out = (const stet_hub_plugin *)plugin; /* which begins with it */
    return status;
}

stet_status stet_hub_check_uri(const char *uri, stet_error *err) {
    const stet_hub_plugin *plugin = NULL;
    if (begins(uri, "file:"))
        return STET_OK;
    stet_status status = plugin_for(uri, &plugin, err);
    if (status != STET_OK || plugin)
        return status == STET_OK ? plugin->check_uri(uri, err) : status;
    stet_fail(err, STET_UNSUPPORTED, "%.*s: not the address of a hub", (int)strcspn(uri, ":"), uri);
    stet_hint(err, "file:///PATH or postgres://USER@HOST/DATABASE");
    return STET_UNSUPPORTED;
}

stet_status stet_hub_init(const char *uri, bool *changed, stet_error *err) {
    const stet_hub_plugin *plugin = NULL;
    stet_repo *repo;
    *changed = false;
    stet_status status = stet_hub_check_uri(uri, err);
    if (status == STET_OK)
        status = plugin_for(uri, &plugin, err);
    if (status != STET_OK || plugin)
        return status == STET_OK ? plugin->init(uri, changed, err) : status;
    status = stet_repo_open_uri(uri, 0, &repo, err);
    if (status != STET_OK)
        return status;
    bool nothing = true;
    status = stet_repo_ready(repo, &nothing, err);
    if (status == STET_OK && nothing) { /* the first write makes the file */
        stet_hash unused;
        status = stet_repo_put_result(repo, stet_value_null(), &unused, err);
        *changed = status == STET_OK;
    }
    stet_repo_close(repo);
    return status;
}

stet_status stet_hub_open(const char *uri, unsigned flags, stet_hub **out, stet_error *err) {
    stet_repo *repo;
    if (begins(uri, STET_REMOTE_SCHEME))
        return stet_external_open(uri, 0, out, err);
    const stet_hub_plugin *plugin = NULL;
    stet_status status = plugin_for(uri, &plugin, err);
    if (status == STET_OK && plugin)
        return plugin->open(uri, flags, out, err);
    if (status == STET_OK)
        status = stet_repo_open_uri(uri, flags, &repo, err);
    if (status != STET_OK)
        return status;
    *out = stet_hub_of_repo(repo);
    (*out)->ctx = repo; /* its own: closed with it */
    return STET_OK;
}

void stet_hub_close(stet_hub *h) {
    if (h)
        h->kind->close(h);
}

stet_repo *stet_hub_repo(stet_hub *h) {
    return h->repo ? h->repo : h->lent;
}

void stet_hub_lend(stet_hub *h, stet_repo *r) {
    h->lent = r;
}

bool stet_hub_is(const stet_hub *h, const stet_repo *r) {
    return h->repo && strcmp(stet_repo_path(h->repo), stet_repo_path(r)) == 0;
}

/* One snapshot of the source: nothing is swept from under the transfer. */
static stet_status copy(stet_repo *snapshot, const stet_side *from, const stet_side *to, const stet_hash *roots,
                        size_t count, stet_error *err) {
    stet_transfer_opts o = {.roots = roots, .root_count = count};
    bool begun = snapshot && !stet_repo_in_transaction(snapshot);
    stet_status status = begun ? stet_repo_begin_read(snapshot, err) : STET_OK;
    if (status != STET_OK)
        return status;
    status = stet_transfer(from, to, &o, NULL, err);
    if (begun)
        stet_repo_rollback(snapshot);
    return status;
}

stet_status stet_hub_send(stet_hub *h, stet_repo *from, const stet_hash *roots, size_t count, stet_error *err) {
    stet_side side = stet_side_of_repo(from);
    return stet_hub_is(h, from) ? STET_OK : copy(from, &side, &h->side, roots, count, err);
}

stet_status stet_hub_bring(stet_hub *h, stet_repo *to, const stet_hash *roots, size_t count, stet_error *err) {
    stet_side side = stet_side_of_repo(to);
    return stet_hub_is(h, to) ? STET_OK : copy(h->repo, &h->side, &side, roots, count, err);
}

stet_status stet_hub_ref(stet_hub *h, const char *name, bool *there, stet_hash *out, stet_error *err) {
    stet_refs refs = {0};
    *there = false;
    stet_status status = h->kind->refs(h, name, &refs, err);
    for (size_t i = 0; i < refs.len && status == STET_OK; i++)
        if (strcmp(refs.at[i].name, name) == 0) {
            *there = true;
            *out = refs.at[i].target;
        }
    stet_refs_release(&refs);
    return status;
}

stet_status stet_hub_swap_ref(stet_hub *h, const char *name, const stet_hash *expect, const stet_hash *set,
                              stet_error *err) {
    stet_pack none = STET_PACK_INIT;
    return h->side.put(h->side.ctx, &none, &(stet_ref_swap){name, expect, set}, 1, err);
}

static stet_status without_claims(const stet_hub *h, stet_error *err) {
    return stet_fail(err, STET_UNSUPPORTED, "%s: this kind of remote has no claims, and so no workers", h->side.name);
}

stet_status stet_hub_get_claim(stet_hub *h, stet_hash key, bool *there, stet_hub_claim *out, stet_error *err) {
    *there = false;
    return h->kind->get_claim ? h->kind->get_claim(h, key, there, out, err) : without_claims(h, err);
}

stet_status stet_hub_swap_claim(stet_hub *h, const stet_hash *expect, stet_hub_claim *next, stet_error *err) {
    size_t len;
    if (!h->kind->swap_claim)
        return without_claims(h, err);
    char *text = stet_json_print(next->body, STET_JSON_CANONICAL, &len);
    next->version = stet_hash_of(text, len);
    stet_status status = h->kind->swap_claim(h, next->key, expect, next, text, len, err);
    stet_free(text);
    return status;
}

stet_status stet_hub_remove_claim(stet_hub *h, stet_hash key, stet_hash expect, stet_error *err) {
    return h->kind->swap_claim ? h->kind->swap_claim(h, key, &expect, NULL, NULL, 0, err) : without_claims(h, err);
}

stet_status stet_hub_find_claims(stet_hub *h, stet_hub_which which, int64_t before_ms, size_t limit, stet_hub_keys *out,
                                 stet_error *err) {
    return h->kind->find_claims ? h->kind->find_claims(h, which, before_ms, limit, out, err) : without_claims(h, err);
}

stet_status stet_hub_gc(stet_hub *h, int64_t grace_s, stet_hub_gc_report *report, stet_error *err) {
    stet_hub_gc_report unused = {0};
    report = report ? report : &unused;
    *report = (stet_hub_gc_report){0};
    return h->kind->gc ? h->kind->gc(h, grace_s < 0 ? STET_REPO_GRACE_S : grace_s, report, err) : STET_OK;
}

stet_status stet_hub_has_blob(stet_hub *h, stet_hash hash, bool *there, int64_t *size, stet_error *err) {
    *there = false;
    *size = 0;
    return h->kind->has_blob ? h->kind->has_blob(h, hash, there, size, err) : without_claims(h, err);
}

typedef struct verified {
    stet_hash expected;
    stet_hasher *hasher; /* NULL: not verified */
    stet_hub_source *source;
    stet_hub_sink *sink;
    void *ctx;
} verified;

static stet_status matches(verified *v, stet_error *err) {
    stet_hash found = stet_hasher_end(v->hasher);
    v->hasher = NULL;
    return stet_hash_equal(found, v->expected)
               ? STET_OK
               : stet_fail(err, STET_CORRUPT, "the blob %s: the bytes have another hash, %s",
                           stet_hash_print(v->expected).text, stet_hash_print(found).text);
}

static stet_status give(void *ctx, void *bytes, size_t room, size_t *got, stet_error *err) {
    verified *v = ctx;
    stet_status status = v->source(v->ctx, bytes, room, got, err);
    if (status != STET_OK || !v->hasher)
        return status;
    stet_hasher_add(v->hasher, bytes, *got);
    return *got < room ? matches(v, err) : STET_OK;
}

static stet_status take(void *ctx, const void *bytes, size_t len, stet_error *err) {
    verified *v = ctx;
    if (v->hasher)
        stet_hasher_add(v->hasher, bytes, len);
    return v->sink(v->ctx, bytes, len, err);
}

stet_status stet_hub_put_blob(stet_hub *h, stet_hash hash, stet_hub_source *source, void *ctx, stet_error *err) {
    verified v = {.expected = hash, .source = source, .ctx = ctx};
    if (!h->kind->put_blob)
        return without_claims(h, err);
    v.hasher = stet_hasher_begin();
    stet_status status = h->kind->put_blob(h, hash, give, &v, err);
    if (v.hasher)
        stet_hasher_end(v.hasher);
    return status;
}

stet_status stet_hub_get_blob(stet_hub *h, stet_hash hash, int64_t offset, stet_hub_sink *sink, void *ctx,
                              stet_error *err) {
    verified v = {.expected = hash, .sink = sink, .ctx = ctx};
    if (!h->kind->get_blob)
        return without_claims(h, err);
    v.hasher = offset == 0 ? stet_hasher_begin() : NULL;
    stet_status status = h->kind->get_blob(h, hash, offset, take, &v, err);
    if (status == STET_OK && v.hasher)
        return matches(&v, err);
    if (v.hasher)
        stet_hasher_end(v.hasher);
    return status;
}

stet_status stet_hub_announce(stet_hub *h, const char *name, stet_value body, int64_t for_ms, stet_error *err) {
    size_t len;
    if (!h->kind->announce)
        return without_claims(h, err);
    char *text = stet_json_print(body, STET_JSON_CANONICAL, &len);
    stet_status status = h->kind->announce(h, name, text, len, for_ms, err);
    stet_free(text);
    return status;
}

stet_status stet_hub_list_workers(stet_hub *h, stet_hub_workers *out, stet_error *err) {
    return h->kind->list_workers ? h->kind->list_workers(h, out, err) : without_claims(h, err);
}

void stet_hub_workers_release(stet_hub_workers *list) {
    for (size_t i = 0; i < list->len; i++) {
        stet_free(list->at[i].name);
        stet_value_release(list->at[i].body);
    }
    stet_vec_release(list);
}

stet_status stet_hub_count(stet_hub *h, stet_hub_counts *out, stet_error *err) {
    *out = (stet_hub_counts){0};
    return h->kind->count ? h->kind->count(h, out, err) : without_claims(h, err);
}

stet_status stet_hub_check(stet_hub *h, stet_buf *problems, size_t *found, stet_error *err) {
    *found = 0;
    return h->kind->check ? h->kind->check(h, problems, found, err) : without_claims(h, err);
}

stet_status stet_hub_now(stet_hub *h, int64_t *ms, stet_error *err) {
    return h->kind->now ? h->kind->now(h, ms, err) : without_claims(h, err);
}

int64_t stet_hub_news(stet_hub *h) {
    return h->kind->news ? h->kind->news(h) : 0;
}

void stet_hub_wait(stet_hub *h, int64_t news, int timeout_ms) {
    if (h->kind->wait)
        h->kind->wait(h, news, timeout_ms);
}
