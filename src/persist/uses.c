/* uses.c - when entries were last used on this machine, and how much work that saved.
 *
 * local/uses is a list of lines, appended in one write when a handle closes or has gathered many:
 *   u MODULE.CREATED_AT MILLISECONDS ^the last use
 *   h HITS MISSES SAVED_MS ^counts to be added up
 * A torn line is skipped. The file is a hint: losing it loses no data.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "persist/internal.h"

enum { FLUSH_AT = 1000, FILE_MAX = 256 << 20, COMPACT_AT = 1 << 20 };

typedef struct stet_puses {
    stet_map last;
    uint64_t hits, misses, saved_ms;
} stet_puses;

void stet_puses_open(stet_persist *p) {
    p->uses = stet_alloc_zero(sizeof *p->uses);
}

static char *uses_path(const stet_persist *p) {
    return stet_ppath(p->local, "uses");
}

static stet_status lock_uses(stet_persist *p, stet_lock **lock, stet_error *err) {
    char *path = stet_ppath(p->local, "uses.lock");
    stet_status status = stet_lock_open(path, STET_LOCK_PLAIN, lock, err);
    stet_free(path);
    if (status == STET_OK &&
        (status = stet_lock_take(*lock, STET_LOCK_EXCLUSIVE, (int)p->config.lock_timeout_ms, err)) != STET_OK) {
        stet_lock_close(*lock);
        *lock = NULL;
    }
    return status;
}

/* The caller holds uses_mutex. Uses that can't be written are forgotten. */
static void flush(stet_persist *p) {
    stet_puses *u = p->uses;
    if (!u->hits && !u->misses)
        return;
    stet_buf text = STET_BUF(FILE_MAX);
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&u->last, &i, &key, &len, &slot);)
        stet_buf_printf(&text, "u %.*s %" PRIu64 "\n", (int)len, (const char *)key, slot->n);
    stet_buf_printf(&text, "h %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", u->hits, u->misses, u->saved_ms);
    struct stat st;
    bool exists = stet_sys_stat(p->dir, &st) == 0;
    if (!p->read_only[0] && exists && stet_file_mkdirs(p->local, 0777, NULL) == STET_OK) {
        stet_lock *lock;
        if (lock_uses(p, &lock, NULL) == STET_OK) {
            char *path = uses_path(p);
            stet_status ignored = stet_file_append(path, text.data, text.len, false, NULL);
            (void)ignored;
            stet_free(path);
            stet_lock_close(lock);
        }
    }
    stet_buf_release(&text);
    stet_map_clear(&u->last);
    u->hits = u->misses = u->saved_ms = 0;
}

void stet_puses_close(stet_persist *p) {
    if (!p->uses)
        return;
    pthread_mutex_lock(&p->uses_mutex);
    flush(p);
    pthread_mutex_unlock(&p->uses_mutex);
    stet_map_release(&p->uses->last);
    stet_free(p->uses);
    p->uses = NULL;
}

void stet_puses_hit(stet_persist *p, const char *module, uint64_t created, int64_t saved_ms) {
    char key[80];
    memcpy(key, module, STET_PERSIST_HASH);
    key[STET_PERSIST_HASH] = '.';
    size_t len = STET_PERSIST_HASH + 1 + stet_created_print(created, key + STET_PERSIST_HASH + 1);
    pthread_mutex_lock(&p->uses_mutex);
    stet_map_put(&p->uses->last, key, len, (stet_slot){.n = (uint64_t)stet_clock_ms()});
    p->uses->hits++;
    p->uses->saved_ms += (uint64_t)saved_ms;
    if (stet_map_len(&p->uses->last) >= FLUSH_AT)
        flush(p);
    pthread_mutex_unlock(&p->uses_mutex);
}

void stet_puses_miss(stet_persist *p) {
    pthread_mutex_lock(&p->uses_mutex);
    p->uses->misses++;
    pthread_mutex_unlock(&p->uses_mutex);
}

static void parse(const char *text, stet_map *out, uint64_t *hits, uint64_t *misses, uint64_t *saved) {
    for (const char *line = text; *line;) {
        const char *end = strchr(line, '\n');
        if (!end)
            return;
        uint64_t a, b, c;
        char key[80];
        if (*line == 'h' && sscanf(line, "h %" SCNu64 " %" SCNu64 " %" SCNu64 "\n", &a, &b, &c) == 3) {
            *hits += a;
            *misses += b;
            *saved += c;
        } else if (*line == 'u' && end - line < 200 && sscanf(line, "u %79s %" SCNu64 "\n", key, &a) == 2) {
            size_t len = strlen(key);
            stet_slot *slot = stet_map_get(out, key, len);
            if (!slot)
                stet_map_put(out, key, len, (stet_slot){.n = a});
            else if (slot->n < a)
                slot->n = a;
        }
        line = end + 1;
    }
}

stet_status stet_puses_load(stet_persist *p, stet_map *out, uint64_t *hits, uint64_t *misses, uint64_t *saved_ms,
                            stet_error *err) {
    *hits = *misses = *saved_ms = 0;
    pthread_mutex_lock(&p->uses_mutex);
    flush(p);
    pthread_mutex_unlock(&p->uses_mutex);
    stet_buf text = STET_BUF(FILE_MAX);
    char *path = uses_path(p);
    stet_error local = STET_ERROR_INIT;
    stet_status status = stet_file_read(path, FILE_MAX, &text, &local);
    if (status == STET_NOT_FOUND)
        status = STET_OK;
    else if (status != STET_OK)
        stet_error_move(err, &local);
    stet_error_clear(&local);
    if (status == STET_OK)
        parse(stet_buf_cstr(&text), out, hits, misses, saved_ms);
    stet_buf_release(&text);
    stet_free(path);
    return status;
}

stet_status stet_puses_compact(stet_persist *p, const stet_map *live, stet_error *err) {
    char *path = uses_path(p);
    struct stat st;
    if (stet_sys_stat(path, &st) != 0 || st.st_size < COMPACT_AT) {
        stet_free(path);
        return STET_OK;
    }
    stet_lock *lock;
    stet_status status = lock_uses(p, &lock, err);
    if (status != STET_OK) {
        stet_free(path);
        return status;
    }
    stet_buf text = STET_BUF(FILE_MAX), out = STET_BUF(FILE_MAX);
    status = stet_file_read(path, FILE_MAX, &text, err);
    if (status == STET_OK) {
        stet_map last = {0};
        uint64_t hits = 0, misses = 0, saved = 0;
        parse(stet_buf_cstr(&text), &last, &hits, &misses, &saved);
        const void *key;
        size_t len;
        stet_slot *slot;
        for (size_t i = 0; stet_map_next(&last, &i, &key, &len, &slot);)
            if (stet_map_get(live, key, len))
                stet_buf_printf(&out, "u %.*s %" PRIu64 "\n", (int)len, (const char *)key, slot->n);
        stet_buf_printf(&out, "h %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", hits, misses, saved);
        status = stet_file_replace(path, out.data, out.len, 0666, err);
        stet_map_release(&last);
    }
    stet_buf_release(&text);
    stet_buf_release(&out);
    stet_lock_close(lock);
    stet_free(path);
    return status;
}
