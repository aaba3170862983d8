/* claim.c - reads and writes the record that says who runs a call. */

#include "call/claim.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define MORE_MAX 4

static const char *const names[STET_CLAIM_STATES] = {"queued", "claimed", "running", "ok", "error", "cancelled"};

const char *stet_claim_state_name(stet_claim_state state) {
    return names[state];
}

static void ref_name(stet_hash key, char out[sizeof STET_CLAIMS + STET_HASH_HEX]) {
    memcpy(out, STET_CLAIMS, sizeof STET_CLAIMS - 1);
    stet_hash_hex(key, out + sizeof STET_CLAIMS - 1);
}

static stet_value claim_value(const stet_claim *c) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "v", stet_value_int(2));
    stet_value_put(&v, "state", stet_value_string(names[c->state]));
    stet_value_put(&v, "owner", stet_value_string(c->owner));
    stet_value_put(&v, "attempt", stet_value_int(c->attempt));
    stet_value_put(&v, "lost", stet_value_int(c->lost));
    stet_value_put(&v, "lease", stet_value_int(c->lease_ms));
    stet_value_put(&v, "heartbeat", stet_value_int(c->heartbeat_ms));
    stet_value_put(&v, "job", stet_value_retain(c->job));
    stet_value_put(&v, "request", stet_value_retain(c->request));
    if (c->state == STET_CLAIM_OK || c->state == STET_CLAIM_ERROR)
        stet_value_put(&v, "result", stet_hash_text(c->result));
    if (c->state == STET_CLAIM_ERROR && c->passing) {
        stet_value_put(&v, "keep", stet_value_bool(false));
        stet_value_put(&v, "retry", stet_value_bool(c->retry));
    }
    return v;
}

static bool take(stet_value v, stet_claim *out) {
    stet_value state = stet_value_get(v, "state"), owner = stet_value_get(v, "owner"),
               result = stet_value_get(v, "result"), request = stet_value_get(v, "request");
    size_t len = 0;
    int64_t version = stet_value_as_int(stet_value_get(v, "v")); /* 1: every failure was kept */
    if (stet_value_type(v) != STET_TYPE_OBJECT || version < 1 || version > 2 ||
        stet_value_type(state) != STET_TYPE_STRING || stet_value_type(owner) != STET_TYPE_STRING ||
        stet_value_type(request) != STET_TYPE_OBJECT)
        return false;
    bool known = false;
    for (int i = 0; i < STET_CLAIM_STATES; i++)
        if (strcmp(names[i], stet_value_as_string(&state, NULL)) == 0) {
            out->state = (stet_claim_state)i;
            known = true;
        }
    const char *text = stet_value_as_string(&owner, &len);
    if (!known || len >= sizeof out->owner || strlen(text) != len)
        return false;
    memcpy(out->owner, text, len + 1);
    bool ended = out->state == STET_CLAIM_OK || out->state == STET_CLAIM_ERROR;
    const char *hex = stet_value_type(result) == STET_TYPE_STRING ? stet_value_as_string(&result, &len) : NULL;
    if (ended && (!hex || !stet_hash_of_hex(hex, len, &out->result)))
        return false;
    stet_value keep = stet_value_get(v, "keep");
    out->passing = stet_value_type(keep) == STET_TYPE_BOOL && !stet_value_as_bool(keep);
    out->retry = out->passing && stet_value_as_bool(stet_value_get(v, "retry"));
    out->attempt = stet_value_as_int(stet_value_get(v, "attempt"));
    out->lost = stet_value_as_int(stet_value_get(v, "lost"));
    out->lease_ms = stet_value_as_int(stet_value_get(v, "lease"));
    out->heartbeat_ms = stet_value_as_int(stet_value_get(v, "heartbeat"));
    out->job = stet_value_retain(stet_value_get(v, "job"));
    out->request = stet_value_retain(request);
    return true;
}

void stet_claim_release(stet_claim *c) {
    stet_value_release(c->job);
    stet_value_release(c->request);
    *c = (stet_claim){0};
}

stet_claim stet_claim_copy(const stet_claim *c) {
    stet_claim copy = *c;
    stet_value_retain(copy.job);
    stet_value_retain(copy.request);
    return copy;
}

stet_status stet_claim_read(stet_repo *r, stet_hash id, stet_claim *out, stet_error *err) {
    stet_value v;
    stet_status status = stet_repo_get_loose(r, id, &v, err);
    if (status != STET_OK)
        return status;
    *out = (stet_claim){.id = id};
    bool fine = take(v, out);
    stet_value_release(v);
    if (fine)
        return STET_OK;
    stet_claim_release(out);
    char hex[STET_HASH_HEX];
    stet_hash_hex(id, hex);
    return stet_fail(err, STET_CORRUPT, "%s is not the record of a claim", hex);
}

stet_status stet_claim_get(stet_repo *r, stet_hash key, bool *there, stet_claim *out, stet_error *err) {
    char name[sizeof STET_CLAIMS + STET_HASH_HEX];
    ref_name(key, name);
    /* A record that was replaced between the two looks is gone: look again. */
    for (int i = 0;; i++) {
        stet_hash id;
        stet_error inner = STET_ERROR_INIT;
        stet_status status = stet_repo_ref(r, name, there, &id, err);
        if (status != STET_OK || !*there)
            return status;
        status = stet_claim_read(r, id, out, &inner);
        if (status == STET_NOT_FOUND && i < 100) {
            stet_error_clear(&inner);
            continue;
        }
        stet_error_move(err, &inner);
        return status;
    }
}

stet_status stet_claim_swap(stet_repo *r, stet_hash key, const stet_claim *before, stet_claim *after,
                            const stet_ref_swap *more, size_t more_count, stet_error *err) {
    char name[sizeof STET_CLAIMS + STET_HASH_HEX];
    stet_ref_swap swaps[1 + MORE_MAX];
    assert(more_count <= MORE_MAX);
    ref_name(key, name);
    bool own = !stet_repo_in_transaction(r);
    stet_status status = own ? stet_repo_begin(r, err) : STET_OK;
    stet_hash id;
    if (status == STET_OK) {
        stet_value v = claim_value(after);
        status = stet_repo_put_loose(r, v, &id, err);
        stet_value_release(v);
    }
    if (status == STET_OK) {
        swaps[0] = (stet_ref_swap){.name = name, .expect = before ? &before->id : NULL, .set = &id, .drop = true};
        for (size_t i = 0; i < more_count; i++)
            swaps[1 + i] = more[i];
        status = stet_repo_swap(r, swaps, 1 + more_count, err);
    }
    if (own && status == STET_OK)
        status = stet_repo_commit(r, err);
    else if (own)
        stet_repo_rollback(r);
    if (status == STET_OK)
        after->id = id;
    return status;
}

stet_status stet_claim_sweep(stet_repo *r, int64_t before_ms, bool dry_run, int64_t *count, stet_error *err) {
    stet_refs refs = {0};
    stet_status status = stet_repo_refs(r, STET_CLAIMS, &refs, err);
    for (size_t i = 0; i < refs.len && status == STET_OK; i++) {
        stet_claim c;
        stet_error inner = STET_ERROR_INIT;
        if (stet_claim_read(r, refs.at[i].target, &c, &inner) != STET_OK) { /* just replaced; or `check` tells */
            stet_error_clear(&inner);
            continue;
        }
        bool old = c.state >= STET_CLAIM_OK && c.heartbeat_ms < before_ms;
        stet_claim_release(&c);
        if (!old)
            continue;
        stet_ref_swap swap = {.name = refs.at[i].name, .expect = &refs.at[i].target, .drop = true};
        stet_status swapped = dry_run ? STET_OK : stet_repo_swap(r, &swap, 1, &inner);
        *count += swapped == STET_OK;
        if (swapped == STET_CONFLICT) /* somebody has use for it after all */
            stet_error_clear(&inner);
        else
            status = swapped;
        stet_error_move(err, &inner);
    }
    stet_refs_release(&refs);
    return status;
}
