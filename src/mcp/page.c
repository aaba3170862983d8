/* page.c - keeps results that are too large for one answer, and hands them out in pages. */

#include "mcp/page.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "os/clock.h"

typedef struct kept {
    struct kept *next; /* older */
    char id[STET_MCP_PAGE_ID_MAX];
    char *text;
    size_t len;
} kept;

struct stet_mcp_pages {
    pthread_mutex_t lock;
    kept *newest;
    size_t max_results, max_bytes;
};

stet_mcp_pages *stet_mcp_pages_new(size_t max_results, size_t max_bytes) {
    stet_mcp_pages *p = stet_alloc_zero(sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    p->max_results = max_results;
    p->max_bytes = max_bytes;
    return p;
}

static void free_from(kept *k) {
    while (k) {
        kept *older = k->next;
        free(k->text);
        free(k);
        k = older;
    }
}

void stet_mcp_pages_free(stet_mcp_pages *p) {
    if (!p)
        return;
    free_from(p->newest);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

bool stet_mcp_pages_keep(stet_mcp_pages *p, char *text, size_t len, char id[STET_MCP_PAGE_ID_MAX]) {
    if (len > p->max_bytes) {
        free(text);
        return false;
    }
    kept *k = stet_alloc_zero(sizeof *k);
    uint64_t random;
    stet_random(&random, sizeof random);
    snprintf(k->id, sizeof k->id, "r%016llx", (unsigned long long)random);
    memcpy(id, k->id, sizeof k->id);
    k->text = text;
    k->len = len;
    pthread_mutex_lock(&p->lock);
    k->next = p->newest;
    p->newest = k;
    size_t bytes = 0, n = 0;
    for (kept **at = &p->newest; *at; at = &(*at)->next) {
        bytes += (*at)->len;
        if (++n > p->max_results || bytes > p->max_bytes) {
            free_from(*at);
            *at = NULL;
            break;
        }
    }
    pthread_mutex_unlock(&p->lock);
    return true;
}

bool stet_mcp_pages_read(stet_mcp_pages *p, const char *id, int64_t offset, size_t size, stet_value *out) {
    bool found = false;
    pthread_mutex_lock(&p->lock);
    kept *k = p->newest;
    while (k && strcmp(k->id, id) != 0)
        k = k->next;
    if (k && offset >= 0 && (uint64_t)offset < k->len) {
        const char *text = k->text + offset;
        size_t rest = k->len - (size_t)offset, take = size < rest ? size : rest;
        /* Only the last character may be cut; an offset inside one starts with bytes that are no text. */
        take = stet_utf8_valid_prefix(text, take);
        found = take > 0;
        if (found) {
            *out = stet_value_object();
            stet_value_put(out, "result", stet_value_string(id));
            stet_value_put(out, "bytes", stet_value_int((int64_t)k->len));
            stet_value_put(out, "offset", stet_value_int(offset));
            stet_value_put(out, "next", take < rest ? stet_value_int(offset + (int64_t)take) : stet_value_null());
            stet_value_put(out, "text", stet_value_string_n(text, take));
        }
    }
    pthread_mutex_unlock(&p->lock);
    return found;
}
