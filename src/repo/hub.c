/* hub.c - hubs of any kind: opening, copying objects, claims. */

#include "repo/hub.h"

#include <string.h>

#include "repo/hub_kind.h"

stet_status stet_hub_open(const char *uri, unsigned flags, stet_hub **out, stet_error *err) {
    stet_repo *repo;
    if (strncmp(uri, STET_REMOTE_SCHEME, strlen(STET_REMOTE_SCHEME)) == 0)
        return stet_external_open(uri, 0, out, err);
    stet_status status = stet_repo_open_uri(uri, flags, &repo, err);
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
    return h->repo;
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

stet_status stet_hub_gc(stet_hub *h, stet_error *err) {
    return h->kind->gc ? h->kind->gc(h, err) : STET_OK;
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
