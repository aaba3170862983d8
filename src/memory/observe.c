#include "memory/observe.h"

#include "memory/internal.h"

static const stet_address *copy_addresses(stet_arena *a, const stet_address *at, size_t len) {
    stet_address *out = stet_arena_alloc(a, (len ? len : 1) * sizeof *out);
    for (size_t i = 0; i < len; i++) {
        out[i].space = at[i].space ? stet_arena_strdup(a, at[i].space) : NULL;
        out[i].name.id = stet_arena_strdup(a, at[i].name.id);
        out[i].name.scope = stet_arena_strdup(a, at[i].name.scope ? at[i].name.scope : "");
        out[i].path.bytes = stet_arena_strndup(a, at[i].path.bytes, at[i].path.len);
        out[i].path.len = at[i].path.len;
    }
    return out;
}

static stet_status check_addresses(const stet_address *at, size_t len, stet_error *err) {
    for (size_t i = 0; i < len; i++) {
        stet_status st = stet_docname_check(&at[i].name, err);
        if (st != STET_OK)
            return st;
    }
    return STET_OK;
}

stet_status stet_observe_attach(stet_tx *tx, const stet_observation *o, stet_error *err) {
    if (tx->observation)
        return stet_fail(err, STET_INVALID, "the transaction has an observation already");
    stet_docname piece = {o->key.piece, o->key.scope}, action = {o->key.action, NULL};
    stet_status st;
    if ((st = stet_docname_check(&piece, err)) != STET_OK || (st = stet_docname_check(&action, err)) != STET_OK ||
        (st = check_addresses(o->declared_writes, o->declared_count, err)) != STET_OK ||
        (st = check_addresses(o->envelopes, o->envelope_count, err)) != STET_OK ||
        (st = check_addresses(o->ignored_writes, o->ignored_count, err)) != STET_OK)
        return st;
    stet_arena *a = &tx->arena;
    stet_observation *c = stet_arena_dup(a, o, sizeof *o);
    c->key.piece = stet_arena_strdup(a, o->key.piece);
    c->key.scope = stet_arena_strdup(a, o->key.scope ? o->key.scope : "");
    c->key.action = stet_arena_strdup(a, o->key.action);
    c->parent = o->parent ? stet_arena_strdup(a, o->parent) : NULL;
    c->declared_writes = copy_addresses(a, o->declared_writes, o->declared_count);
    c->envelopes = copy_addresses(a, o->envelopes, o->envelope_count);
    c->ignored_writes = copy_addresses(a, o->ignored_writes, o->ignored_count);
    c->options = stet_retain(o->options);
    c->note = stet_retain(o->note);
    tx->observation = c;
    return STET_OK;
}

/* Nothing is stored yet for observations: `marked_through` stays where it is, so every commit counts as not looked at
 * (O4), and no action can be called standing. */
void stet_observe_apply(stet_space *s, int64_t branch, const stet_applied *at, size_t len) {
    (void)s;
    (void)branch;
    (void)at;
    (void)len;
}

/* Runs that changed nothing are stored with their commit so far: there is no batch. */
stet_status stet_sync(stet_space *s, stet_error *err) {
    return stet_db_status(s->db, err);
}
