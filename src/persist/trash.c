/* trash.c - deleted entries and objects, kept until their time is over.
 *
 * Each deletion makes a batch, a directory TRASH/<milliseconds>.<random> with
 *   entries.toml        the entries, in the format of the log
 *   objects/NAME        the objects, moved here
 *   snapshots/NAME      corrupt snapshots that a repair took out of the way
 * The entries are written before they vanish from the snapshots, so that they can always be restored.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/clock.h"
#include "persist/internal.h"

static stet_status make_batch(stet_persist *p, stet_ptrash *t, stet_error *err) {
    if (t->dir)
        return STET_OK;
    uint32_t random;
    stet_random(&random, sizeof random);
    t->dir = stet_asprintf("%s/%" PRId64 ".%08x", p->trash, stet_clock_ms(), random);
    return stet_file_mkdirs(t->dir, 0777, err);
}

stet_status stet_ptrash_entries(stet_persist *p, stet_ptrash *t, const stet_pentry *const *entries, size_t count,
                                stet_error *err) {
    if (t->off || !count)
        return STET_OK;
    stet_status status = make_batch(p, t, err);
    if (status != STET_OK)
        return status;
    stet_buf text = STET_BUF(STET_PERSIST_FILE_MAX);
    stet_buf_str(&text, stet_plog_header);
    for (size_t i = 0; i < count; i++) {
        stet_buf_char(&text, '\n');
        stet_buf_add(&text, entries[i]->text, entries[i]->text_len);
    }
    char *path = stet_ppath(t->dir, "entries.toml");
    status = text.overflow
                 ? stet_fail(err, STET_LIMIT, "more than %u bytes of entries to delete at once", STET_PERSIST_FILE_MAX)
                 : stet_file_replace(path, text.data, text.len, 0666, err);
    stet_free(path);
    stet_buf_release(&text);
    return status;
}

stet_status stet_ptrash_file(stet_persist *p, stet_ptrash *t, const char *path, const char *name, stet_error *err) {
    if (t->off)
        return stet_file_remove(path, err);
    stet_status status = make_batch(p, t, err);
    if (status != STET_OK)
        return status;
    char *to = stet_ppath(t->dir, name), *dir = stet_file_dirname(to);
    int r = stet_sys_rename(path, to), saved = errno;
    if (r != 0 && saved == ENOENT && (status = stet_file_mkdirs(dir, 0777, err)) == STET_OK) {
        r = stet_sys_rename(path, to);
        saved = errno;
    }
    if (status == STET_OK && r != 0) {
        if (saved == EXDEV) { /* there can be no trash on that file system, so the file is deleted as requested */
            status = stet_file_remove(path, err);
        } else if (saved != ENOENT)
            status = stet_fail_errno(err, saved, "%s: cannot move to the trash", path);
    }
    stet_free(dir);
    stet_free(to);
    return status;
}

void stet_ptrash_release(stet_ptrash *t) {
    stet_free(t->dir);
    t->dir = NULL;
}

static bool batch_name(const char *name, int64_t *ms) {
    char *end;
    if (*name < '0' || *name > '9' || strlen(name) >= sizeof(((stet_persist_trashed *)0)->batch))
        return false;
    errno = 0;
    *ms = strtoll(name, &end, 10);
    return !errno && *end == '.' && strlen(end) == 9 && strspn(end + 1, "0123456789abcdef") == 8;
}

/* Reads the valid entries of a batch. */
static void read_entries(const char *dir, stet_ptexts *texts, stet_pentries *out) {
    char *path = stet_ppath(dir, "entries.toml"), *text;
    size_t len;
    stet_plog_parsed parsed = {0};
    if (stet_persist_read_file(path, &text, &len, NULL, NULL) == STET_OK) {
        *stet_vec_add(&texts->blocks) = text;
        stet_plog_parse(text, len, texts, out, &parsed);
    }
    stet_free(path);
}

static void measure_dir(const char *dir, uint64_t *items, uint64_t *bytes) {
    stet_names names = {0};
    if (stet_file_list(dir, &names, NULL) == STET_OK)
        for (size_t i = 0; i < names.len; i++) {
            char *path = stet_ppath(dir, names.at[i]);
            struct stat st;
            if (stet_sys_lstat(path, &st) == 0) {
                ++*items;
                *bytes += (uint64_t)st.st_size;
            }
            stet_free(path);
        }
    stet_names_release(&names);
}

stet_status stet_persist_trash_each(stet_persist *p, stet_persist_trash_fn fn, void *ctx, stet_error *err) {
    stet_names names = {0};
    stet_status status = stet_file_list_if_there(p->trash, &names, err);
    for (size_t i = 0; i < names.len; i++) {
        stet_persist_trashed b = {0};
        if (!batch_name(names.at[i], &b.deleted_at))
            continue;
        snprintf(b.batch, sizeof b.batch, "%s", names.at[i]);
        char *dir = stet_ppath(p->trash, names.at[i]), *objects = stet_ppath(dir, "objects");
        stet_ptexts *texts = stet_ptexts_new();
        stet_pentries entries = {0};
        read_entries(dir, texts, &entries);
        b.entries = entries.len;
        measure_dir(objects, &b.objects, &b.bytes);
        stet_vec_release(&entries);
        stet_ptexts_drop(texts);
        stet_free(objects);
        stet_free(dir);
        if (!fn(ctx, &b))
            break;
    }
    stet_names_release(&names);
    return status;
}

static stet_status restore_object(stet_persist *p, const char *dir, const char *id, bool dry_run, uint64_t *objects,
                                  stet_error *err) {
    for (int compressed = 0; compressed < 2; compressed++) {
        char *from = stet_asprintf("%s/objects/%s%s", dir, id, compressed ? STET_POBJECT_SUFFIX : "");
        char *to = stet_asprintf("%s/%s%s", p->objects_dir, id, compressed ? STET_POBJECT_SUFFIX : "");
        char *marker = stet_ppath(p->fresh_dir, id);
        stet_status status = STET_OK;
        struct stat st;
        if (stet_sys_lstat(from, &st) == 0) {
            ++*objects;
            if (!dry_run) {
                if (p->config.use_fresh_object_statuses) {
                    int fd = stet_sys_open(marker, O_WRONLY | O_CREAT | O_NOFOLLOW, 0666);
                    if (fd >= 0)
                        stet_sys_close(fd);
                }
                if (stet_sys_rename_new(from, to) != 0) {
                    if (errno == EEXIST)
                        stet_sys_unlink(from);
                    else
                        status = stet_fail_errno(err, errno, "%s: cannot put back", to);
                }
            }
        }
        stet_free(marker);
        stet_free(to);
        stet_free(from);
        if (status != STET_OK)
            return status;
    }
    return STET_OK;
}

/* Restores one batch. The caller holds the modification lock, except for a dry run. */
static stet_status undelete_batch(stet_persist *p, const char *name, const char *block_id, const char *module,
                                  bool dry_run, stet_persist_undeleted *out, stet_error *err) {
    char *dir = stet_ppath(p->trash, name);
    stet_ptexts *texts = stet_ptexts_new();
    stet_pentries all = {0}, back = {0};
    read_entries(dir, texts, &all);
    stet_status status = STET_OK;
    bool whole = !block_id && !module;
    pthread_mutex_lock(&p->state_mutex);
    status = stet_persist_load(p, !dry_run, err);
    for (size_t i = 0; i < all.len && status == STET_OK; i++) {
        const stet_pentry *e = &all.at[i];
        if ((block_id && (strlen(block_id) != e->block_len || memcmp(block_id, e->block, e->block_len) != 0)) ||
            (module && memcmp(module, e->module, STET_PERSIST_HASH) != 0))
            continue;
        bool live = stet_pset_find(&p->live, e) != NULL;
        bool twice = false;
        for (size_t k = 0; k < back.len && !twice; k++)
            twice = stet_pentry_same_key(&back.at[k], e);
        stet_pcontent c;
        for (size_t at = 0; status == STET_OK && stet_pentry_content(e, &at, &c);) {
            char id[STET_PERSIST_ID_MAX];
            memcpy(id, c.id, c.id_len);
            id[c.id_len] = '\0';
            status = restore_object(p, dir, id, dry_run, &out->objects, err);
        }
        if (!live && !twice)
            *stet_vec_add(&back) = *e;
    }
    if (status == STET_OK && whole) {
        /* Orphans have no entry; they are restored too. */
        char *dead = stet_ppath(dir, "objects");
        stet_names names = {0};
        bool compressed;
        if (stet_file_list(dead, &names, NULL) == STET_OK)
            for (size_t i = 0; i < names.len && status == STET_OK; i++) {
                size_t len = stet_pobject_name(names.at[i], &compressed);
                if (len && !dry_run) {
                    names.at[i][len] = '\0';
                    status = restore_object(p, dir, names.at[i], dry_run, &out->objects, err);
                }
            }
        stet_names_release(&names);
        stet_free(dead);
    }
    if (status == STET_OK && back.len && !dry_run)
        status = stet_plog_append(p, back.at, back.len, err);
    if (status == STET_OK) {
        out->entries += back.len;
        if (!dry_run) {
            p->log.stamp.there = false;
            p->stale = true;
            status = stet_persist_load(p, true, err);
        }
    }
    pthread_mutex_unlock(&p->state_mutex);
    if (status == STET_OK && whole && !dry_run)
        status = stet_file_remove_tree(dir, err);
    stet_vec_release(&back);
    stet_vec_release(&all);
    stet_ptexts_drop(texts);
    stet_free(dir);
    return status;
}

stet_status stet_persist_undelete(stet_persist *p, const char *batch, const char *block_id, const char *module_hash,
                                  bool dry_run, stet_persist_undeleted *out, stet_error *err) {
    if (!p || !out)
        return stet_fail_null(err);
    *out = (stet_persist_undeleted){0};
    if (module_hash && !stet_persist_valid_hash(module_hash, strlen(module_hash)))
        return stet_fail(err, STET_INVALID, "not a module hash: \"%.80s\"", module_hash);
    stet_status status = dry_run ? STET_OK : stet_persist_lock(p, false, err);
    if (status != STET_OK)
        return status;
    stet_names names = {0};
    status = stet_file_list_if_there(p->trash, &names, err);
    bool found = false;
    for (size_t i = names.len; i-- > 0 && status == STET_OK;) { /* the latest first */
        int64_t ms;
        if (!batch_name(names.at[i], &ms) || (batch && strcmp(batch, names.at[i]) != 0))
            continue;
        found = true;
        status = undelete_batch(p, names.at[i], block_id, module_hash, dry_run, out, err);
    }
    stet_names_release(&names);
    if (!dry_run)
        stet_persist_unlock(p);
    if (status == STET_OK && batch && !found) {
        stet_fail(err, STET_NOT_FOUND, "no batch \"%.60s\" in the trash", batch);
        stet_hint(err, "`stet persist undelete --dry-run` shows what is there");
        return STET_NOT_FOUND;
    }
    return status;
}

static stet_status sweep_temp(const char *dir, bool dry_run, uint64_t *items, uint64_t *bytes, stet_error *err) {
    static const char *const ours[] = {"put.", "zstd.", "snapshot.", "restore."};
    stet_names names = {0};
    stet_status status = STET_OK;
    if (stet_file_list(dir, &names, NULL) != STET_OK)
        return STET_OK;
    for (size_t i = 0; i < names.len && status == STET_OK; i++) {
        bool mine = false;
        for (size_t k = 0; k < sizeof ours / sizeof *ours; k++)
            mine = mine || !strncmp(names.at[i], ours[k], strlen(ours[k]));
        char *path = stet_ppath(dir, names.at[i]);
        struct stat st;
        if (mine && stet_sys_lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
            stet_file_temp_is_dead(names.at[i], 86400, &st)) {
            ++*items;
            *bytes += (uint64_t)st.st_size;
            if (!dry_run)
                status = stet_file_remove(path, err);
        }
        stet_free(path);
    }
    stet_names_release(&names);
    return status;
}

/* Removes the empty files of earlier days to which markers were linked. The markers themselves stay. */
static void drop_old_markers(stet_persist *p) {
    stet_names names = {0};
    char today[40];
    snprintf(today, sizeof today, "marker.%lld", (long long)(stet_clock_ms() / 86400000));
    if (stet_file_list(p->local, &names, NULL) == STET_OK)
        for (size_t i = 0; i < names.len; i++)
            if (!strncmp(names.at[i], "marker.", 7) && strcmp(names.at[i], today) != 0) {
                char *path = stet_ppath(p->local, names.at[i]);
                stet_sys_unlink(path);
                stet_free(path);
            }
    stet_names_release(&names);
}

stet_status stet_persist_sweep(stet_persist *p, bool everything, bool dry_run, uint64_t *items, uint64_t *bytes,
                               stet_error *err) {
    *items = *bytes = 0;
    if (!dry_run) {
        stet_status status = stet_persist_may_write(p, err);
        if (status != STET_OK)
            return status;
    }
    char *near = stet_ppath(p->dir, "local/temp");
    stet_status status = sweep_temp(p->temp, dry_run, items, bytes, err);
    if (status == STET_OK && strcmp(near, p->temp) != 0)
        status = sweep_temp(near, dry_run, items, bytes, err);
    stet_free(near);
    if (status == STET_OK && !dry_run) {
        drop_old_markers(p);
        stet_pseal_sweep(p);
    }
    stet_names names = {0};
    if (status == STET_OK)
        status = stet_file_list_if_there(p->trash, &names, err);
    int64_t now = stet_clock_ms(), ms;
    for (size_t i = 0; i < names.len && status == STET_OK; i++) {
        if (!batch_name(names.at[i], &ms) || (!everything && now - ms < p->config.trash_days * 86400000))
            continue;
        char *dir = stet_ppath(p->trash, names.at[i]), *objects = stet_ppath(dir, "objects");
        uint64_t count = 0;
        measure_dir(objects, &count, bytes);
        *items += count + 1;
        if (!dry_run)
            status = stet_file_remove_tree(dir, err);
        stet_free(objects);
        stet_free(dir);
    }
    stet_names_release(&names);
    return status;
}
