/* cleanup_objects.c - decides which objects and markers are deleted.
 *
 * An object is deleted only if no kept entry names it, no fresh marker stands for it, and either an entry that was
 * removed named it or, with orphans, it is older than the grace period. Names in objects/ that are not object ids are
 * left alone.
 */

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "os/clock.h"
#include "persist/internal.h"

void stet_pdoomed_release(stet_pdoomed_list *l) {
    for (size_t i = 0; i < l->len; i++)
        stet_free(l->at[i].name);
    stet_vec_release(l);
}

/* Markers share an inode with the others of their day: only the time of the content belongs to a marker. */
static int64_t marker_age_ms(const struct stat *st, int64_t now) {
    return now - ((int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000);
}

static int64_t age_ms(const struct stat *st, int64_t now) {
    /* The later of both times, because a synchroniser preserves one and can't preserve the other. */
    int64_t m = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
    int64_t c = (int64_t)st->st_ctim.tv_sec * 1000 + st->st_ctim.tv_nsec / 1000000;
    return now - (m > c ? m : c);
}

static void lower(const char *s, size_t len, char out[STET_PERSIST_ID_MAX]) {
    for (size_t i = 0; i < len; i++)
        out[i] = (char)tolower((unsigned char)s[i]);
    out[len] = '\0';
}

stet_status stet_pobjects_doomed(stet_persist *p, const stet_map *kept, const stet_map *gone, bool orphans,
                                 stet_pdoomed_list *out, stet_error *err) {
    stet_names names = {0}, markers = {0};
    stet_map fresh = {0}, folded = {0};
    stet_status status = stet_file_list_if_there(p->objects_dir, &names, err);
    if (status == STET_OK && p->config.use_fresh_object_statuses)
        status = stet_file_list_if_there(p->fresh_dir, &markers, err);
    for (size_t i = 0; i < markers.len; i++)
        stet_map_put(&fresh, markers.at[i], strlen(markers.at[i]), (stet_slot){.n = 1});
    /* A name that differs from a kept one only in case may be the kept file, on a file system that ignores case. */
    const void *key;
    size_t key_len;
    stet_slot *slot;
    char low[STET_PERSIST_ID_MAX];
    for (size_t i = 0; stet_map_next(kept, &i, &key, &key_len, &slot);) {
        lower(key, key_len, low);
        stet_map_put(&folded, low, key_len, (stet_slot){.n = 1});
    }
    int64_t now = stet_clock_ms();
    for (size_t i = 0; i < names.len && status == STET_OK; i++) {
        bool compressed;
        const char *name = names.at[i];
        size_t len = stet_pobject_name(name, &compressed);
        if (!len)
            continue;
        lower(name, len, low);
        bool was_named = stet_map_get(gone, name, len) != NULL;
        if (stet_map_get(&folded, low, len) || stet_map_get(&fresh, name, len) || (!was_named && !orphans))
            continue;
        char *path = stet_ppath(p->objects_dir, name);
        struct stat st;
        if (stet_sys_lstat(path, &st) == 0 && !S_ISDIR(st.st_mode) &&
            (was_named || age_ms(&st, now) >= p->config.grace_days * 86400000))
            *stet_vec_add(out) = (stet_pdoomed){.name = stet_strdup(name), .size = (uint64_t)st.st_size};
        stet_free(path);
    }
    stet_names_release(&names);
    stet_names_release(&markers);
    stet_map_release(&fresh);
    stet_map_release(&folded);
    return status;
}

stet_status stet_pmarkers_clean(stet_persist *p, const stet_map *seen, const stet_map *fresh, uint64_t *removed,
                                stet_error *err) {
    stet_names names = {0};
    stet_status status = stet_file_list_if_there(p->fresh_dir, &names, err);
    int64_t now = stet_clock_ms();
    for (size_t i = 0; i < names.len && status == STET_OK; i++) {
        size_t len = strlen(names.at[i]);
        if (!stet_persist_valid_id(names.at[i], len) || stet_map_get(fresh, names.at[i], len))
            continue;
        char *path = stet_ppath(p->fresh_dir, names.at[i]);
        bool stale = stet_map_get(seen, names.at[i], len) != NULL;
        struct stat st;
        if (!stale)
            stale = stet_sys_lstat(path, &st) == 0 && marker_age_ms(&st, now) >= p->config.marker_days * 86400000;
        if (stale) {
            status = stet_file_remove(path, err);
            ++*removed;
        }
        stet_free(path);
    }
    stet_names_release(&names);
    return status;
}
