/* claim.c - reads and writes the record that says who runs a call. */

#include "call/claim.h"

#include <stdlib.h>
#include <string.h>

#include "os/clock.h"

#define SWEEP_KEYS 1000 /* of one question */

static const char *const names[STET_CLAIM_STATES] = {"queued", "claimed", "running", "ok", "error", "cancelled"};

const char *stet_claim_state_name(stet_claim_state state) {
    return names[state];
}

static stet_value claim_value(const stet_claim *c) {
    stet_value v = stet_value_object();
    uint64_t nonce = 0;
    stet_value_put(&v, "v", stet_value_int(3));
    stet_value_put(&v, "state", stet_value_string(names[c->state]));
    stet_value_put(&v, "owner", stet_value_string(c->owner));
    stet_value_put(&v, "attempt", stet_value_int(c->attempt));
    stet_value_put(&v, "lost", stet_value_int(c->lost));
    stet_random(&nonce, sizeof nonce); /* no two writes have the same version */
    stet_value_put(&v, "nonce", stet_value_stringf("%016llx", (unsigned long long)nonce));
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
    if (stet_value_type(v) != STET_TYPE_OBJECT || stet_value_as_int(stet_value_get(v, "v")) != 3 ||
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

stet_status stet_claim_get(stet_hub *h, stet_hash key, bool *there, stet_claim *out, stet_error *err) {
    stet_hub_claim c;
    stet_status status = stet_hub_get_claim(h, key, there, &c, err);
    if (status != STET_OK || !*there)
        return status;
    *out = (stet_claim){.id = c.version, .changed_ms = c.changed_ms, .left_ms = c.left_ms};
    bool fine = take(c.body, out);
    stet_value_release(c.body);
    if (fine)
        return STET_OK;
    stet_claim_release(out);
    *there = false;
    char hex[STET_HASH_HEX];
    stet_hash_hex(key, hex);
    return stet_fail(err, STET_CORRUPT, "the claim of key %s is not the record of a claim", hex);
}

static stet_hub_phase phase_of(stet_claim_state state) {
    return state == STET_CLAIM_QUEUED ? STET_HUB_QUEUED : state < STET_CLAIM_OK ? STET_HUB_HELD : STET_HUB_ENDED;
}

/* Did a swap happen, although the hub reported something else? */
static bool happened(stet_hub *h, stet_hash key, stet_hash version) {
    stet_hub_claim now;
    bool there;
    if (stet_hub_get_claim(h, key, &there, &now, NULL) != STET_OK || !there)
        return false;
    stet_value_release(now.body);
    return stet_hash_equal(now.version, version);
}

stet_status stet_claim_swap(stet_hub *h, stet_hash key, const stet_claim *before, stet_claim *after, stet_error *err) {
    stet_error inner = STET_ERROR_INIT;
    stet_hub_claim next = {
        .key = key, .phase = phase_of(after->state), .lease_for_ms = after->lease_for_ms, .body = claim_value(after)};
    stet_hash_of_text(stet_value_get(after->request, "node"), &next.node);
    if (after->state == STET_CLAIM_OK || after->state == STET_CLAIM_ERROR)
        next.result = after->result;
    stet_status status = stet_hub_swap_claim(h, before ? &before->id : NULL, &next, &inner);
    if (status != STET_OK && status != STET_NOT_FOUND && happened(h, key, next.version)) {
        stet_error_clear(&inner);
        status = STET_OK;
    }
    stet_value_release(next.body);
    stet_error_move(err, &inner);
    if (status == STET_OK) {
        after->id = next.version;
        after->left_ms = after->lease_for_ms;
    }
    return status;
}

/* True: it went, or would go. */
static stet_status sweep_one(stet_hub *h, stet_hash key, bool dry_run, bool *gone, stet_error *err) {
    stet_hub_claim c;
    bool there;
    stet_error inner = STET_ERROR_INIT;
    stet_status status = stet_hub_get_claim(h, key, &there, &c, &inner);
    *gone = status == STET_OK && there && c.phase == STET_HUB_ENDED;
    if (status == STET_OK && there)
        stet_value_release(c.body);
    if (*gone && !dry_run) {
        status = stet_hub_remove_claim(h, key, c.version, &inner);
        *gone = status == STET_OK;
    }
    if (status == STET_CONFLICT || status == STET_CORRUPT) { /* somebody has use for it; or `check` tells */
        stet_error_clear(&inner);
        return STET_OK;
    }
    stet_error_move(err, &inner);
    return status;
}

stet_status stet_claim_sweep(stet_hub *h, int64_t age_ms, bool dry_run, int64_t *count, stet_error *err) {
    int64_t now = 0;
    stet_status status = stet_hub_now(h, &now, err);
    for (bool more = true; more && status == STET_OK;) {
        stet_hub_keys keys = {0};
        int64_t before = *count;
        status = stet_hub_find_claims(h, STET_HUB_OVER, now - age_ms, dry_run ? SIZE_MAX : SWEEP_KEYS, &keys, err);
        for (size_t i = 0; i < keys.len && status == STET_OK; i++) {
            bool gone;
            status = sweep_one(h, keys.at[i], dry_run, &gone, err);
            *count += gone;
        }
        more = !dry_run && keys.len == SWEEP_KEYS && *count > before;
        free(keys.at);
    }
    return status;
}
