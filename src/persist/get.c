/* get.c - finding entries and handing them out. */
#include <string.h>

#include "persist/internal.h"

typedef struct room {
    char *at;
    size_t len;
} room;

static stet_status fill(void *ctx, const void *bytes, size_t len, stet_error *err) {
    (void)err;
    room *r = ctx;
    memcpy(r->at + r->len, bytes, len);
    r->len += len;
    return STET_OK;
}

static bool wanted(const char *kind, const char *const *kinds) {
    for (; kinds && *kinds; kinds++)
        if (!strcmp(kind, *kinds))
            return true;
    return !kinds;
}

/* Are the objects of the wanted kinds present and right? Loads the small ones on request. */
static bool contents_are_right(stet_persist *p, stet_persist_entry *e, unsigned flags, const char *const *kinds) {
    for (const char *const *k = kinds; k && *k; k++)
        if (!stet_persist_entry_content(e, *k))
            return false;
    stet_pobject_proof proof =
        p->config.verify == STET_PERSIST_VERIFY_ALWAYS ? STET_POBJECT_BY_SEAL : STET_POBJECT_BY_SIZE;
    for (size_t i = 0; i < e->content_count; i++) {
        stet_persist_content *c = &e->contents[i];
        if (!wanted(c->kind, kinds))
            continue;
        bool in_memory = flags & STET_PERSIST_LOAD && c->size <= STET_PERSIST_INLINE_MAX;
        room r = {0};
        if (in_memory)
            r.at = stet_persist_entry_room(e, (size_t)c->size + 1);
        stet_status status;
        if (stet_pobject_read(p, c->id, c->size, proof, in_memory ? fill : NULL, &r, &status, NULL) !=
            STET_POBJECT_GOOD)
            return false;
        if (in_memory) {
            r.at[r.len] = '\0';
            c->bytes = r.at;
        }
    }
    return true;
}

stet_status stet_persist_get(stet_persist *p, const stet_persist_key *key, unsigned flags, const char *const *kinds,
                             stet_persist_entry **entry, stet_error *err) {
    if (!p || !key || !entry)
        return stet_fail_null(err);
    bool exact = flags & STET_PERSIST_EXACT;
    if (exact && !key->created_at)
        return stet_fail(err, STET_INVALID, "an exact match needs a created_at");
    stet_status status = stet_persist_key_check(key, false, err);
    if (status != STET_OK)
        return status;
    size_t block_len = key->block_len ? key->block_len : strlen(key->block_id);
    uint64_t until = key->created_at ? key->created_at : UINT64_MAX;
    bool loaded = false;
    for (;;) {
        pthread_mutex_lock(&p->state_mutex);
        if (!loaded)
            status = stet_persist_load(p, false, err);
        loaded = true;
        const stet_pentry *found = NULL;
        if (status == STET_OK)
            found = stet_pset_newest(&p->live, key->block_id, block_len, key->module_hash, until);
        if (found && exact && found->created != key->created_at)
            found = NULL;
        stet_persist_entry *copy = found ? stet_pentry_copy(found) : NULL;
        pthread_mutex_unlock(&p->state_mutex);
        if (status != STET_OK)
            return status;
        if (!copy) {
            if (!(flags & STET_PERSIST_NO_COUNT))
                stet_puses_miss(p);
            return stet_fail(err, STET_NOT_FOUND,
                             "no entry of block %.*s, module %.43s%s whose objects are here and right",
                             (int)(block_len > 200 ? 200 : block_len), key->block_id, key->module_hash,
                             exact ? " at that time" : "");
        }
        if (contents_are_right(p, copy, flags, kinds)) {
            if (!(flags & STET_PERSIST_NO_COUNT))
                stet_puses_hit(p, copy->key.module_hash, copy->key.created_at,
                               copy->elapsed_ms > 0 ? copy->elapsed_ms : 0);
            *entry = copy;
            return STET_OK;
        }
        until = copy->key.created_at - 1;
        stet_persist_entry_free(copy);
        if (exact || !until)
            until = 0; /* no entry is that old, so the next iteration finds none */
    }
}

stet_status stet_persist_each(stet_persist *p, const char *block_id, stet_persist_each_fn fn, void *ctx,
                              stet_error *err) {
    if (!p || !fn)
        return stet_fail_null(err);
    pthread_mutex_lock(&p->state_mutex);
    stet_status status = stet_persist_load(p, false, err);
    stet_pview view = {0};
    if (status == STET_OK)
        stet_pview_take(p, &view);
    pthread_mutex_unlock(&p->state_mutex);
    size_t block_len = block_id ? strlen(block_id) : 0;
    for (size_t i = 0; i < view.entries.len; i++) {
        const stet_pentry *e = &view.entries.at[i];
        if (block_id && (e->block_len != block_len || memcmp(e->block, block_id, block_len) != 0))
            continue;
        stet_persist_entry *copy = stet_pentry_copy(e);
        bool more = fn(ctx, copy);
        stet_persist_entry_free(copy);
        if (!more)
            break;
    }
    stet_pview_release(&view);
    return status;
}
