/* listen.c - subscriptions: who listens to which changes, and finding out that something changed.
 *
 * Nothing pushes changes into this process: another process commits, and its commit is a new sequence in a file. So
 * while somebody listens, a worker checks four times a second whether any sequence or run file has moved, which is
 * cheap. Only then does it read and compare what is listened to.
 *
 *   L1. The state that a subscription starts from is read before the subscription is acknowledged, so every change
 *       after the acknowledgement is reported.
 *   L2. A change is reported once to each listener; several changes between two looks count as one.
 */

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "mcp/internal.h"
#include "os/clock.h"

#define PERIOD_US 250000

static void free_listener(mcp_listener *l) {
    stet_value_release(l->id);
    stet_map_release(&l->uris);
    mcp_request_unref(l->request);
    free(l);
}

static mcp_listener *add_listener(stet_mcp_server *s, mcp_request *r) {
    mcp_listener *l = stet_alloc_zero(sizeof *l);
    if (r) {
        l->id = stet_value_retain(r->id);
        l->request = mcp_request_ref(r);
    }
    *stet_vec_add(&s->listeners) = l;
    return l;
}

/* The session's listener, created with the first subscription. */
static mcp_listener *session_listener(stet_mcp_server *s) {
    for (size_t i = 0; i < s->listeners.len; i++)
        if (!s->listeners.at[i]->request)
            return s->listeners.at[i];
    return add_listener(s, NULL);
}

void mcp_listener_end(stet_mcp_server *s, const mcp_request *r) {
    for (size_t i = 0; i < s->listeners.len; i++)
        if (s->listeners.at[i]->request == r) {
            free_listener(s->listeners.at[i]);
            s->listeners.at[i] = s->listeners.at[--s->listeners.len];
            return;
        }
}

static stet_value subscription_meta(const mcp_listener *l) {
    stet_value meta = stet_value_object();
    stet_value_put(&meta, META_PREFIX "subscriptionId", stet_value_retain(l->id));
    return meta;
}

void mcp_listeners_close(stet_mcp_server *s, bool answer) {
    while (s->listeners.len) {
        mcp_listener *l = s->listeners.at[--s->listeners.len];
        if (answer && l->request) {
            stet_value result = stet_value_object();
            stet_value_put(&result, "_meta", subscription_meta(l));
            mcp_answer(l->request, result);
        }
        free_listener(l);
    }
}

void mcp_unsubscribe(stet_mcp_server *s, const char *uri) {
    for (size_t i = 0; i < s->listeners.len; i++)
        if (!s->listeners.at[i]->request)
            stet_map_remove(&s->listeners.at[i]->uris, uri, strlen(uri));
}

void mcp_session_sees_list(stet_mcp_server *s, uint64_t digest) {
    if (s->ended)
        return;
    mcp_listener *l = session_listener(s);
    l->list = true;
    l->list_digest = digest;
}

static uint64_t digest_of(stet_value v) {
    stet_hash hash = stet_hash_value(v);
    uint64_t number;
    memcpy(&number, hash.bytes, sizeof number);
    return number | 1; /* 0 means absent */
}

uint64_t mcp_list_digest(stet_value list) {
    stet_value uris = stet_value_array();
    for (size_t i = 0; i < stet_value_count(list); i++)
        stet_value_push(&uris, stet_value_retain(stet_value_get(stet_value_at(list, i), "uri")));
    uint64_t digest = digest_of(uris);
    stet_value_release(uris);
    return digest;
}

static void look(mcp_scan *scan) {
    stet_mcp_caller caller = mcp_caller(scan->request);
    stet_error err = STET_ERROR_INIT;
    stet_value v;
    for (size_t i = 0; i < stet_value_count(scan->uris); i++) {
        stet_value uri = stet_value_at(scan->uris, i);
        uint64_t digest = 0;
        if (stet_mcp_resource_read(&caller, stet_value_as_string(&uri, NULL), &v, &err) == STET_OK) {
            digest = digest_of(v);
            stet_value_release(v);
        }
        stet_error_clear(&err);
        *stet_vec_add(&scan->digests) = digest;
    }
    if (scan->list) {
        bool found = stet_mcp_resource_list(&caller, &v, &err) == STET_OK;
        stet_value list = found ? v : stet_value_array();
        scan->list_digest = mcp_list_digest(list);
        stet_value_release(list);
        stet_error_clear(&err);
    }
    mcp_release_project(scan->request);
    scan->looked = true;
}

static void run_scan(stet_mcp_job *job) {
    mcp_scan *scan = (mcp_scan *)job;
    stet_mcp_server *s = scan->request->s;
    if (scan->waited) {
        look(scan);
    } else {
        uint64_t mark =
            stet_mcp_watch_mark(s->watch); /* taken before looking, so that a change in between is seen the next time */
        if (mark != s->mark)
            look(scan);
        s->mark = mark;
    }
    mcp_tell(s, scan->request, false, NULL, scan);
}

void mcp_scan_free(mcp_scan *scan) {
    stet_value_release(scan->uris);
    stet_vec_release(&scan->digests);
    mcp_request_unref(scan->request);
    free(scan);
}

static mcp_scan *new_scan(mcp_request *r, bool waited, stet_value uris, bool list) {
    mcp_scan *scan = stet_alloc_zero(sizeof *scan);
    scan->job.run = run_scan;
    scan->request = mcp_request_ref(r);
    scan->waited = waited;
    scan->uris = uris;
    scan->list = list;
    return scan;
}

void mcp_subscribe(mcp_request *r, stet_value uris, bool list) {
    stet_mcp_server *s = r->s;
    if (r->modern && s->listeners.len >= STET_MCP_MAX_LISTENERS) {
        stet_value_release(uris);
        mcp_refuse(r, STET_RPC_INTERNAL_ERROR, stet_value_null(), "more than %d subscriptions at once",
                   STET_MCP_MAX_LISTENERS);
        return;
    }
    stet_mcp_pool_submit(s->pool, &new_scan(r, true, uris, list)->job);
}

void mcp_scan_when_due(stet_mcp_server *s) {
    int64_t now = stet_clock_monotonic_us();
    if (s->listeners.len == 0 || s->scanning || s->ended || now < s->scan_next)
        return;
    stet_value uris = stet_value_array();
    stet_map seen = {0};
    bool list = false;
    for (size_t i = 0; i < s->listeners.len; i++) {
        const mcp_listener *l = s->listeners.at[i];
        const void *key;
        size_t len;
        stet_slot *slot;
        list = list || l->list;
        for (size_t at = 0; stet_map_next(&l->uris, &at, &key, &len, &slot);) {
            if (stet_map_get(&seen, key, len))
                continue;
            stet_map_put(&seen, key, len, (stet_slot){.n = 1});
            stet_value_push(&uris, stet_value_string_n(key, len));
        }
    }
    stet_map_release(&seen);
    s->scan_next = now + PERIOD_US;
    if (!list && stet_value_count(uris) == 0) {
        stet_value_release(uris);
        return;
    }
    s->scanning = true;
    mcp_request *bare = mcp_request_new(s, stet_value_null(), NULL);
    stet_mcp_pool_submit(s->pool, &new_scan(bare, false, uris, list)->job);
    mcp_request_unref(bare);
}

static void acknowledge(mcp_request *r, const mcp_listener *l, const mcp_scan *scan) {
    stet_value params = stet_value_object(), agreed = stet_value_object();
    if (scan->list)
        stet_value_put(&agreed, "resourcesListChanged", stet_value_bool(true));
    if (stet_value_count(scan->uris))
        stet_value_put(&agreed, "resourceSubscriptions", stet_value_retain(scan->uris));
    stet_value_put(&params, "_meta", subscription_meta(l));
    stet_value_put(&params, "notifications", agreed);
    mcp_notify(r->s, r, "notifications/subscriptions/acknowledged", params);
}

static void begin_listening(mcp_request *r, const mcp_scan *scan) {
    stet_mcp_server *s = r->s;
    if (s->ended) { /* the client is gone already */
        mcp_answer(r, stet_value_object());
        return;
    }
    mcp_listener *l = r->modern ? add_listener(s, r) : session_listener(s);
    if (l->uris.len + stet_value_count(scan->uris) > STET_MCP_MAX_WATCHED) {
        mcp_refuse(r, STET_RPC_INTERNAL_ERROR, stet_value_null(), "more than %d addresses watched",
                   STET_MCP_MAX_WATCHED);
        return;
    }
    for (size_t i = 0; i < stet_value_count(scan->uris); i++) {
        stet_value uri = stet_value_at(scan->uris, i);
        size_t len;
        const char *text = stet_value_as_string(&uri, &len);
        stet_map_put(&l->uris, text, len, (stet_slot){.n = scan->digests.at[i]});
    }
    if (scan->list) {
        l->list = true;
        l->list_digest = scan->list_digest;
    }
    if (r->modern)
        acknowledge(r, l, scan);
    else
        mcp_answer(r, stet_value_object());
}

static void tell_change(stet_mcp_server *s, const mcp_listener *l, const char *method, stet_value uri) {
    stet_value params = l->request || stet_value_type(uri) != STET_TYPE_NULL ? stet_value_object() : stet_value_null();
    if (l->request)
        stet_value_put(&params, "_meta", subscription_meta(l));
    if (stet_value_type(uri) != STET_TYPE_NULL)
        stet_value_put(&params, "uri", stet_value_retain(uri));
    mcp_notify(s, l->request, method, params);
}

static void compare(stet_mcp_server *s, mcp_listener *l, const mcp_scan *scan) {
    for (size_t i = 0; i < stet_value_count(scan->uris); i++) {
        stet_value uri = stet_value_at(scan->uris, i);
        size_t len;
        const char *text = stet_value_as_string(&uri, &len);
        stet_slot *slot = stet_map_get(&l->uris, text, len);
        if (!slot || slot->n == scan->digests.at[i])
            continue;
        slot->n = scan->digests.at[i];
        tell_change(s, l, "notifications/resources/updated", uri);
    }
    if (scan->list && l->list && l->list_digest != scan->list_digest) {
        l->list_digest = scan->list_digest;
        tell_change(s, l, "notifications/resources/list_changed", stet_value_null());
    }
}

void mcp_scan_landed(stet_mcp_server *s, mcp_request *r, mcp_scan *scan) {
    if (scan->waited && !r->over) {
        begin_listening(r, scan);
    } else if (!scan->waited) {
        s->scanning = false;
        for (size_t i = 0; scan->looked && i < s->listeners.len; i++)
            compare(s, s->listeners.at[i], scan);
    }
    mcp_scan_free(scan);
}
