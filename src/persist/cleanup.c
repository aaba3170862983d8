/* cleanup.c - writes new snapshots: merges the existing ones, and removes the entries that a strategy chooses.
 *
 *   C1. Machines that merge the same snapshots with the same strategy write the same bytes: nothing here depends on
 *       which objects are on this machine, unless a cap on local bytes was requested.
 *   C2. The new snapshot is durable before the log is cut, and before the files that it replaces are deleted.
 *   C3. Objects are deleted last, only if content was requested, and never while something that might refer to them
 *       can't be read.
 */

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "os/clock.h"
#include "persist/internal.h"

enum { REPORTED = 1000 };

/* Everything that one cleanup needs to know, copied while the state lock was held. */
typedef struct plan {
    stet_pview view; /* all entries, sorted */
    stet_persist_item *items;
    struct {
        stet_psnapshot **at;
        size_t len, cap;
    } tips;
    struct {
        char **at;
        size_t len, cap;
    } merged;       /* names of files whose snapshots are merged into the tips */
    stet_map seen;  /* object ids in anything that could be read */
    stet_map kept;  /* object ids of entries that are kept */
    stet_map gone;  /* seen and not kept */
    stet_map fresh; /* object ids of entries that come from the log and are kept */
    size_t log_entries, removed;
    bool vanished, log_exists;
    const char *unsafe; /* why objects must not be deleted, or NULL */
    char unsafe_name[300];
} plan;

static void name_ids(stet_map *map, const stet_pentry *e) {
    stet_pcontent c;
    for (size_t at = 0; stet_pentry_content(e, &at, &c);)
        stet_map_put(map, c.id, c.id_len, (stet_slot){.n = 1});
}

/* The caller holds the state lock. */
static void make_plan(stet_persist *p, plan *l) {
    stet_pview_take(p, &l->view);
    for (size_t i = 0; i < p->tips.len; i++)
        *stet_vec_add(&l->tips) = stet_psnapshot_hold(p->tips.at[i]);
    l->vanished = p->vanished;
    l->log_entries = p->log.entries.len;
    l->log_exists = p->log.stamp.there && p->log.stamp.size > 0;
    for (size_t i = 0; i < p->remembered.len; i++)
        if (p->remembered.at[i].lost)
            l->unsafe = "the last snapshot that this machine knew is gone, and can't be read back";
    if (l->vanished && !l->unsafe)
        l->unsafe = "the last snapshot that this machine knew is neither there nor an ancestor of one that is";
    for (size_t i = 0; i < p->files.len; i++) {
        const stet_pfile *f = &p->files.at[i];
        if (!f->snapshot || f->snapshot->dropped) {
            l->unsafe = f->snapshot                          ? "a snapshot has a corrupt entry"
                        : f->state == STET_PSNAPSHOT_UNKNOWN ? "a snapshot is of an unknown version"
                                                             : "a snapshot is corrupt";
            strncpy(l->unsafe_name, f->name, sizeof l->unsafe_name - 1);
        }
        if (!f->snapshot)
            continue;
        *stet_vec_add(&l->merged) = stet_strdup(f->name);
        for (size_t k = 0; k < f->snapshot->entries.len; k++)
            name_ids(&l->seen, &f->snapshot->entries.at[k]);
    }
    for (size_t i = 0; i < l->tips.len; i++)
        for (size_t k = 0; k < l->tips.at[i]->entries.len; k++)
            name_ids(&l->seen, &l->tips.at[i]->entries.at[k]);
    for (size_t i = 0; i < p->log.entries.len; i++)
        name_ids(&l->seen, &p->log.entries.at[i]);
}

/* The caller holds the state lock, which guards the reference counts of snapshots. */
static void release_plan(plan *l) {
    stet_pview_release(&l->view);
    for (size_t i = 0; i < l->tips.len; i++)
        stet_psnapshot_drop(l->tips.at[i]);
    stet_vec_release(&l->tips);
    for (size_t i = 0; i < l->merged.len; i++)
        stet_free(l->merged.at[i]);
    stet_vec_release(&l->merged);
    stet_map_release(&l->seen);
    stet_map_release(&l->kept);
    stet_map_release(&l->gone);
    stet_map_release(&l->fresh);
    stet_free(l->items);
}

static size_t use_key(const stet_pentry *e, char out[80]) {
    memcpy(out, e->module, STET_PERSIST_HASH);
    out[STET_PERSIST_HASH] = '.';
    return STET_PERSIST_HASH + 1 + stet_created_print(e->created, out + STET_PERSIST_HASH + 1);
}

static int least_recent_first(const void *a, const void *b) {
    const stet_persist_item *x = *(stet_persist_item *const *)a, *y = *(stet_persist_item *const *)b;
    return x->last_use != y->last_use ? (x->last_use > y->last_use ? 1 : -1)
                                      : (x->created_at > y->created_at) - (x->created_at < y->created_at);
}

static uint64_t object_bytes(stet_persist *p, const char *id, size_t len) {
    for (int compressed = 0; compressed < 2; compressed++) {
        char *path = stet_asprintf("%s/%.*s%s", p->objects_dir, (int)len, id, compressed ? STET_POBJECT_SUFFIX : "");
        struct stat st;
        bool there = stet_sys_lstat(path, &st) == 0;
        stet_free(path);
        if (there)
            return (uint64_t)st.st_size;
    }
    return 0;
}

/* Marks entries for removal, least recently used first, until the objects of the others fit. An object counts until the
 * last entry that refers to it is removed. */
static void apply_cap(stet_persist *p, plan *l, uint64_t cap) {
    size_t n = l->view.entries.len;
    stet_map users = {0}, sizes = {0};
    uint64_t total = 0;
    stet_persist_item **order = stet_alloc((n + 1) * sizeof *order);
    size_t count = 0;
    stet_pcontent c;
    for (size_t i = 0; i < n; i++) {
        if (l->items[i].remove)
            continue;
        order[count++] = &l->items[i];
        for (size_t at = 0; stet_pentry_content(&l->view.entries.at[i], &at, &c);) {
            stet_slot *u = stet_map_get(&users, c.id, c.id_len);
            if (u) {
                u->n++;
                continue;
            }
            uint64_t size = object_bytes(p, c.id, c.id_len);
            stet_map_put(&users, c.id, c.id_len, (stet_slot){.n = 1});
            stet_map_put(&sizes, c.id, c.id_len, (stet_slot){.n = size});
            total += size;
        }
    }
    qsort(order, count, sizeof *order, least_recent_first);
    for (size_t i = 0; i < count && total > cap; i++) {
        if (order[i]->keep)
            continue;
        order[i]->remove = true;
        for (size_t at = 0; stet_pentry_content(&l->view.entries.at[order[i] - l->items], &at, &c);) {
            stet_slot *u = stet_map_get(&users, c.id, c.id_len);
            if (--u->n == 0)
                total -= stet_map_get(&sizes, c.id, c.id_len)->n;
        }
    }
    stet_free(order);
    stet_map_release(&users);
    stet_map_release(&sizes);
}

static stet_status choose(stet_persist *p, plan *l, const stet_persist_cleanup *how, bool content, stet_error *err) {
    size_t n = l->view.entries.len;
    stet_map marks = {0}, uses = {0};
    uint64_t hits, misses, saved;
    int64_t cap = how->max_local_bytes ? how->max_local_bytes : p->config.max_local_bytes;
    stet_status status = stet_pmarks_load(p, &marks, err);
    if (status == STET_OK && ((content && cap > 0) || how->strategy || p->strategy))
        status = stet_puses_load(p, &uses, &hits, &misses, &saved, err);
    l->items = stet_alloc_zero((n + 1) * sizeof *l->items);
    for (size_t i = 0; i < n && status == STET_OK; i++) {
        const stet_pentry *e = &l->view.entries.at[i];
        char key[80];
        size_t len = use_key(e, key);
        const stet_slot *use = stet_map_get(&uses, key, len);
        l->items[i] = (stet_persist_item){.block_id = e->block,
                                          .block_len = e->block_len,
                                          .module_hash = e->module,
                                          .created_at = e->created,
                                          .size = stet_pentry_size(e),
                                          .last_use = use ? (int64_t)use->n : stet_persist_created_to_unix(e->created),
                                          .is_call = stet_persist_is_call(e->block, e->block_len),
                                          .in_log = e->in_log,
                                          .keep = stet_map_get(&marks, key, len) != NULL,
                                          .of = e};
    }
    stet_persist_strategy strategy = how->strategy ? how->strategy
                                     : p->strategy ? p->strategy
                                                   : stet_persist_strategy_default;
    void *ctx = how->strategy ? how->ctx : p->strategy ? p->strategy_ctx : &p->config.strategy;
    if (status == STET_OK)
        status = strategy(ctx, l->items, n, stet_persist_now(), err);
    for (size_t i = 0; i < n; i++)
        l->items[i].remove = l->items[i].remove && !l->items[i].keep;
    if (status == STET_OK && content && cap > 0)
        apply_cap(p, l, (uint64_t)cap);
    for (size_t i = 0; i < n; i++) {
        const stet_pentry *e = &l->view.entries.at[i];
        if (l->items[i].remove) {
            l->removed++;
            continue;
        }
        name_ids(&l->kept, e);
        if (e->in_log)
            name_ids(&l->fresh, e);
    }
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&l->seen, &i, &key, &len, &slot);)
        if (!stet_map_get(&l->kept, key, len))
            stet_map_put(&l->gone, key, len, (stet_slot){.n = 1});
    stet_map_release(&marks);
    stet_map_release(&uses);
    return status;
}

void stet_persist_set_strategy(stet_persist *p, stet_persist_strategy strategy, void *ctx) {
    p->strategy = strategy;
    p->strategy_ctx = ctx;
}

stet_persist_entry *stet_persist_item_entry(const stet_persist_item *item) {
    return stet_pentry_copy(item->of);
}

static bool any_object(stet_persist *p) {
    stet_names names = {0};
    bool any = false, compressed;
    if (stet_file_list(p->objects_dir, &names, NULL) == STET_OK)
        for (size_t i = 0; i < names.len && !any; i++)
            any = stet_pobject_name(names.at[i], &compressed) > 0;
    stet_names_release(&names);
    return any;
}

static stet_status refuse_unsafe(stet_persist *p, const plan *l, bool force, stet_error *err) {
    if (l->unsafe) {
        stet_fail(err, STET_DENIED, "no object is deleted: %s%s%s", l->unsafe,
                  *l->unsafe_name ? ": entry_snapshots/" : "", l->unsafe_name);
        stet_hint(err, *l->unsafe_name ? "let the synchronisation finish, or `stet check --only persist --repair`"
                                       : "let the synchronisation finish, or clean up without content first");
        return STET_DENIED;
    }
    if (!force && l->view.entries.len == l->removed && any_object(p)) {
        stet_fail(err, STET_DENIED, "no object is deleted: not one entry would be kept, while there are objects");
        stet_hint(err, "if that is what you want: --force");
        return STET_DENIED;
    }
    return STET_OK;
}

/* Do the remaining entries differ from the only tip? */
static bool needs_snapshot(const plan *l) {
    size_t kept = l->view.entries.len - l->removed;
    if (l->tips.len != 1)
        return l->tips.len > 1 || kept > 0;
    const stet_pentries *tip = &l->tips.at[0]->entries;
    if (tip->len != kept || l->tips.at[0]->dropped)
        return true; /* a snapshot with a corrupt entry is written again without it */
    size_t k = 0;
    for (size_t i = 0; i < l->view.entries.len; i++) {
        if (l->items[i].remove)
            continue;
        if (l->view.entries.at[i].text_len != tip->at[k].text_len ||
            memcmp(l->view.entries.at[i].text, tip->at[k].text, tip->at[k].text_len) != 0)
            return true;
        k++;
    }
    return false;
}

static stet_status write_temp(stet_persist *p, const stet_buf *text, char **temp, stet_error *err) {
    char *name = stet_file_temp_name(p->temp, "snapshot");
    int fd = stet_sys_open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
    if (fd < 0 && errno == ENOENT && stet_persist_make_layout(p, NULL) == STET_OK)
        fd = stet_sys_open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
    stet_status status = STET_OK;
    if (fd < 0)
        status = stet_fail_errno(err, errno, "%s: cannot create", name);
    else {
        status = stet_file_write_all(fd, name, text->data, text->len, err);
        if (status == STET_OK && stet_sys_fsync(fd) != 0)
            status = stet_fail_errno(err, errno, "%s: cannot sync", name);
        if (stet_sys_close(fd) != 0 && status == STET_OK)
            status = stet_fail_errno(err, errno, "%s: cannot close", name);
        if (status != STET_OK)
            unlink(name);
    }
    if (status == STET_OK)
        *temp = name;
    else
        stet_free(name);
    return status;
}

/* Prints the new snapshot and its hash. `again`: the same bytes, because only the file vanished. */
static void print_snapshot(const plan *l, bool again, stet_buf *text, stet_pid *hash) {
    if (again) {
        const stet_psnapshot *tip = l->tips.at[0];
        *hash = tip->hash;
        stet_buf_add(text, tip->texts->blocks.at[0], tip->text_len);
        return;
    }
    size_t kept = l->view.entries.len - l->removed, n = 0;
    stet_pentry *entries = stet_alloc((kept + 1) * sizeof *entries);
    for (size_t i = 0; i < l->view.entries.len; i++)
        if (!l->items[i].remove)
            entries[n++] = l->view.entries.at[i];
    stet_psnapshot_print(entries, kept, l->tips.at, l->tips.len, text, hash);
    stet_free(entries);
}

static stet_status place_snapshot(stet_persist *p, char **temp, const stet_pid *hash, stet_error *err) {
    char *path = stet_asprintf("%s/%s.toml", p->snapshots_dir, hash->text);
    stet_status status = STET_OK;
    int r = stet_sys_rename(*temp, path);
    if (r != 0 && errno == EXDEV) {
        /* The temporary directory turned out to be on another file system: write beside the target. */
        char *text;
        size_t len;
        status = stet_persist_read_file(*temp, &text, &len, NULL, err);
        if (status == STET_OK) {
            status = stet_file_replace(path, text, len, 0666, err);
            stet_free(text);
        }
        unlink(*temp);
    } else if (r != 0)
        status = stet_fail_errno(err, errno, "%s: cannot put the snapshot in place", path);
    if (r == 0 || status == STET_OK) {
        stet_free(*temp);
        *temp = NULL;
    }
    if (status == STET_OK)
        status = stet_file_sync_dir(p->snapshots_dir, err);
    stet_free(path);
    return status;
}

/* Removes the files whose snapshots were merged. A file with the hash of the new snapshot but another name is
 * renamed. */
static stet_status tidy_snapshots(stet_persist *p, const plan *l, const stet_pid *stands, stet_ptrash *trash,
                                  stet_error *err) {
    char *proper = stet_asprintf("%s.toml", stands->text), *at = stet_ppath(p->snapshots_dir, proper);
    stet_status status = STET_OK;
    bool placed = false;
    for (size_t i = 0; i < l->merged.len && !placed; i++)
        placed = !strcmp(l->merged.at[i], proper);
    struct stat st;
    if (!placed && stands->text[0] && stet_sys_lstat(at, &st) == 0 && l->merged.len && l->tips.len == 1 &&
        !memcmp(l->tips.at[0]->hash.text, stands->text, STET_PERSIST_HASH) && !l->vanished) {
        /* The proper name is taken by a corrupt file. */
        char *name = stet_asprintf("snapshots/%s", proper);
        status = stet_ptrash_file(p, trash, at, name, err);
        stet_free(name);
    }
    for (size_t i = 0; i < l->merged.len && status == STET_OK; i++) {
        if (!strcmp(l->merged.at[i], proper))
            continue;
        char *path = stet_ppath(p->snapshots_dir, l->merged.at[i]), *text;
        size_t len;
        bool same = false;
        if (stands->text[0] && stet_sys_lstat(at, &st) != 0 &&
            stet_persist_read_file(path, &text, &len, NULL, NULL) == STET_OK) {
            stet_psnapshot *s;
            const char *why;
            same = stet_psnapshot_parse(text, len, &s, &why) == STET_PSNAPSHOT_OK &&
                   !memcmp(s->hash.text, stands->text, STET_PERSIST_HASH);
            stet_psnapshot_drop(s);
        }
        if (same) {
            if (stet_sys_rename(path, at) != 0)
                status = stet_fail_errno(err, errno, "%s: cannot rename", path);
        } else
            status = stet_file_remove(path, err);
        stet_free(path);
    }
    stet_free(at);
    stet_free(proper);
    return status;
}

static void report(const plan *l, const stet_pdoomed_list *doomed, stet_persist_cleaned *out) {
    out->entries_before = l->view.entries.len;
    out->entries_removed = l->removed;
    out->entries_after = l->view.entries.len - l->removed;
    out->log_entries = l->log_entries;
    out->objects_removed = doomed->len;
    out->entries = stet_value_array();
    out->objects = stet_value_array();
    for (size_t i = 0; i < l->view.entries.len && stet_value_count(out->entries) < REPORTED; i++) {
        if (!l->items[i].remove)
            continue;
        const stet_pentry *e = &l->view.entries.at[i];
        stet_value v = stet_value_object();
        stet_value_put(&v, "block", stet_value_string_n(e->block, e->block_len));
        stet_value_put(&v, "module", stet_value_string_n(e->module, STET_PERSIST_HASH));
        stet_value_put(&v, "created_at", stet_value_int((int64_t)e->created));
        stet_value_put(&v, "size",
                       stet_value_int((int64_t)(l->items[i].size > INT64_MAX ? INT64_MAX : l->items[i].size)));
        stet_value_push(&out->entries, v);
    }
    for (size_t i = 0; i < doomed->len; i++) {
        out->bytes_removed += doomed->at[i].size;
        if (i >= REPORTED)
            continue;
        stet_value v = stet_value_object();
        stet_value_put(&v, "id", stet_value_string(doomed->at[i].name));
        stet_value_put(&v, "size", stet_value_int((int64_t)doomed->at[i].size));
        stet_value_push(&out->objects, v);
    }
}

/* The part that changes the directory. The caller holds the modification lock and, if content is deleted, the objects
 * lock. */
static stet_status carry_out(stet_persist *p, plan *l, const stet_persist_cleanup *how, bool content, bool orphans,
                             stet_persist_cleaned *out, stet_error *err) {
    stet_ptrash trash = {.off = how->purge || p->config.trash_days == 0};
    stet_status status = STET_OK;
    bool fresh_snapshot = needs_snapshot(l), again = !fresh_snapshot && l->vanished && l->tips.len == 1;
    stet_pid stands;
    memset(&stands, 0, sizeof stands);
    if (l->tips.len == 1)
        stands = l->tips.at[0]->hash;
    if (l->removed) {
        const stet_pentry **gone = stet_alloc(l->removed * sizeof *gone);
        size_t n = 0;
        for (size_t i = 0; i < l->view.entries.len; i++)
            if (l->items[i].remove)
                gone[n++] = &l->view.entries.at[i];
        status = stet_ptrash_entries(p, &trash, gone, n, err);
        stet_free(gone);
    }
    char *temp = NULL;
    if (status == STET_OK && (fresh_snapshot || again)) {
        stet_buf text = STET_BUF(STET_PERSIST_FILE_MAX);
        print_snapshot(l, again, &text, &stands);
        status = text.overflow
                     ? stet_fail(err, STET_LIMIT, "the snapshot would be larger than %u bytes", STET_PERSIST_FILE_MAX)
                     : write_temp(p, &text, &temp, err);
        stet_buf_release(&text);
    }
    /* From here on, readers in this process wait: they must not see the cut log without the new snapshot. */
    pthread_mutex_lock(&p->state_mutex);
    /* Torn tables are dropped with the rest of the log. A log of an unknown version is left alone. */
    bool cut = l->log_entries || (l->log_exists && !p->log.parsed.unknown_version &&
                                  (p->log.parsed.bad || p->log.offset < p->log.stamp.size));
    bool locked = false;
    if (status == STET_OK && cut) {
        status = stet_plog_lock(p, err);
        locked = status == STET_OK;
    }
    if (status == STET_OK && temp)
        status = place_snapshot(p, &temp, &stands, err);
    if (status == STET_OK && stands.text[0])
        stet_persist_remember(p, &stands);
    if (status == STET_OK && cut) {
        status = stet_plog_cut(p, err);
        p->stale = true;
    }
    if (locked)
        stet_plog_unlock(p);
    if (temp) {
        unlink(temp);
        stet_free(temp);
    }
    if (status == STET_OK)
        status = tidy_snapshots(p, l, &stands, &trash, err);
    if (p->stale || status == STET_OK) {
        p->stale = true;
        stet_status loaded = stet_persist_reload(p, true, status == STET_OK ? err : NULL);
        if (status == STET_OK)
            status = loaded;
    }
    pthread_mutex_unlock(&p->state_mutex);

    if (status == STET_OK && p->config.use_fresh_object_statuses)
        status = stet_pmarkers_clean(p, &l->seen, &l->fresh, &out->markers_removed, err);
    stet_pdoomed_list doomed = {0};
    if (status == STET_OK && content)
        status = stet_pobjects_doomed(p, &l->kept, &l->gone, orphans, &doomed, err);
    for (size_t i = 0; i < doomed.len && status == STET_OK; i++) {
        char *path = stet_ppath(p->objects_dir, doomed.at[i].name),
             *name = stet_asprintf("objects/%s", doomed.at[i].name);
        status = stet_ptrash_file(p, &trash, path, name, err);
        stet_free(name);
        stet_free(path);
    }
    report(l, &doomed, out);
    out->wrote_snapshot = fresh_snapshot || again;
    out->snapshots_merged = l->tips.len > 1 ? l->tips.len : 0;
    memcpy(out->snapshot, stands.text, sizeof out->snapshot);
    stet_pdoomed_release(&doomed);
    stet_ptrash_release(&trash);
    return status;
}

static stet_status clean_locked(stet_persist *p, const stet_persist_cleanup *how, bool content, bool orphans,
                                stet_persist_cleaned *out, stet_error *err) {
    plan l = {0};
    pthread_mutex_lock(&p->state_mutex);
    stet_status status = stet_persist_reload(p, !how->dry_run, err);
    if (status == STET_OK) {
        make_plan(p, &l);
        for (size_t i = 0; i < p->files.len; i++)
            if (p->files.at[i].state == STET_PSNAPSHOT_UNKNOWN) {
                status = stet_fail(err, STET_UNSUPPORTED,
                                   "entry_snapshots/%s is of a version that this program does not know",
                                   p->files.at[i].name);
                stet_hint(err, "use the newer program that wrote it; until then the directory is only added to");
            }
    }
    pthread_mutex_unlock(&p->state_mutex);
    if (status == STET_OK)
        status = choose(p, &l, how, content, err);
    if (status == STET_OK && content)
        status = refuse_unsafe(p, &l, how->force, err);
    if (status == STET_OK && how->dry_run) {
        stet_pdoomed_list doomed = {0};
        if (content)
            status = stet_pobjects_doomed(p, &l.kept, &l.gone, orphans, &doomed, err);
        if (status == STET_OK) {
            /* A marker that the cleanup would remove is not listed here; everything that is listed will be removed. */
            report(&l, &doomed, out);
            out->wrote_snapshot = needs_snapshot(&l);
            out->snapshots_merged = l.tips.len > 1 ? l.tips.len : 0;
            if (l.tips.len == 1)
                memcpy(out->snapshot, l.tips.at[0]->hash.text, sizeof out->snapshot);
        }
        stet_pdoomed_release(&doomed);
    } else if (status == STET_OK)
        status = carry_out(p, &l, how, content, orphans, out, err);
    pthread_mutex_lock(&p->state_mutex);
    release_plan(&l);
    pthread_mutex_unlock(&p->state_mutex);
    return status;
}

/* Last uses are remembered only for entries in snapshots. */
static stet_status forget_uses(stet_persist *p, stet_error *err) {
    stet_map live = {0};
    pthread_mutex_lock(&p->state_mutex);
    for (size_t i = 0; i < p->live.entries.len; i++) {
        char key[80];
        size_t len = use_key(&p->live.entries.at[i], key);
        stet_map_put(&live, key, len, (stet_slot){.n = 1});
    }
    pthread_mutex_unlock(&p->state_mutex);
    stet_status status = stet_puses_compact(p, &live, err);
    stet_map_release(&live);
    return status;
}

/* A snapshot vanished and none of its descendants is here: its deletion was synchronised before its successor. Waits
 * for the successor. */
static stet_status wait_for_successor(stet_persist *p, stet_error *err) {
    int64_t until = stet_clock_monotonic_us() + p->config.vanished_wait_ms * 1000;
    for (;;) {
        pthread_mutex_lock(&p->state_mutex);
        stet_status status = stet_persist_reload(p, false, err);
        bool vanished = p->vanished;
        pthread_mutex_unlock(&p->state_mutex);
        if (status != STET_OK || !vanished || stet_clock_monotonic_us() >= until)
            return status;
        stet_clock_sleep_ms(50);
    }
}

stet_status stet_persist_cleanup_run(stet_persist *p, const stet_persist_cleanup *how, stet_persist_cleaned *out,
                                     stet_error *err) {
    memset(out, 0, sizeof *out);
    out->dry_run = how->dry_run;
    bool orphans = how->delete_orphan_objects == STET_PERSIST_AS_CONFIGURED
                       ? p->config.cleanup_default_delete_orphan_objects
                       : how->delete_orphan_objects == STET_PERSIST_YES;
    bool content = how->include_content == STET_PERSIST_AS_CONFIGURED
                       ? p->config.cleanup_default_include_content || how->delete_orphan_objects == STET_PERSIST_YES
                       : how->include_content == STET_PERSIST_YES;
    struct stat st;
    if (stet_sys_stat(p->dir, &st) != 0 && errno == ENOENT) {
        out->entries = stet_value_array();
        out->objects = stet_value_array();
        return STET_OK; /* nothing was ever put here */
    }
    if (how->dry_run)
        return clean_locked(p, how, content, orphans, out, err);
    stet_status status = stet_persist_may_write(p, err);
    if (status == STET_OK)
        status = wait_for_successor(p, err);
    if (status == STET_OK)
        status = stet_persist_lock(p, content, err);
    if (status != STET_OK)
        return status;
    status = clean_locked(p, how, content, orphans, out, err);
    stet_persist_unlock(p);
    uint64_t items, bytes;
    if (status == STET_OK)
        status = forget_uses(p, err);
    if (status == STET_OK && (status = stet_persist_sweep(p, how->purge, false, &items, &bytes, err)) == STET_OK)
        out->trash_purged = items;
    return status;
}

stet_value stet_persist_cleaned_value(const stet_persist_cleaned *c) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "dry_run", stet_value_bool(c->dry_run));
    stet_value_put(&v, "entries_before", stet_value_int((int64_t)c->entries_before));
    stet_value_put(&v, "entries_after", stet_value_int((int64_t)c->entries_after));
    stet_value_put(&v, "entries_removed", stet_value_int((int64_t)c->entries_removed));
    stet_value_put(&v, "log_entries", stet_value_int((int64_t)c->log_entries));
    stet_value_put(&v, "objects_removed", stet_value_int((int64_t)c->objects_removed));
    stet_value_put(&v, "bytes_removed", stet_value_int((int64_t)c->bytes_removed));
    stet_value_put(&v, "markers_removed", stet_value_int((int64_t)c->markers_removed));
    stet_value_put(&v, "snapshots_merged", stet_value_int((int64_t)c->snapshots_merged));
    stet_value_put(&v, "trash_purged", stet_value_int((int64_t)c->trash_purged));
    stet_value_put(&v, "wrote_snapshot", stet_value_bool(c->wrote_snapshot));
    stet_value_put(&v, "snapshot", stet_value_string(c->snapshot));
    stet_value_put(&v, "entries", stet_value_retain(c->entries));
    stet_value_put(&v, "objects", stet_value_retain(c->objects));
    return v;
}

void stet_persist_cleaned_release(stet_persist_cleaned *c) {
    stet_value_release(c->entries);
    stet_value_release(c->objects);
    c->entries = c->objects = stet_value_null();
}

stet_status stet_persist_clean_locked(stet_persist *p, const stet_persist_cleanup *how, stet_error *err) {
    stet_persist_cleaned out = {0};
    stet_status status = clean_locked(p, how, false, false, &out, err);
    stet_persist_cleaned_release(&out);
    return status;
}

stet_status stet_persist_merge_locked(stet_persist *p, stet_error *err) {
    stet_persist_cleanup how = {.include_content = STET_PERSIST_NO};
    return stet_persist_clean_locked(p, &how, err);
}

bool stet_persist_merge_due(stet_persist *p, int64_t *next_ms) {
    if (next_ms)
        *next_ms = -1;
    if (p->vanished)
        return false; /* its successor may still arrive: only a cleanup, which waits for it, continues */
    for (size_t i = 0; i < p->files.len; i++)
        if (p->files.at[i].state == STET_PSNAPSHOT_UNKNOWN)
            return false;
    if (p->tips.len > 1)
        return true;
    size_t n = p->log.entries.len;
    if (!n)
        return false;
    if (p->config.max_entries_in_log > 0 && n > (size_t)p->config.max_entries_in_log)
        return true;
    if (p->config.entry_merge_timeout_seconds <= 0)
        return false;
    /* The time since which something is waiting: that of the oldest entry in the log, but not before the last snapshot
     * was written, because an entry may be stored long after its created_at. */
    stet_plog *log = &p->log;
    for (; log->oldest_of < n; log->oldest_of++)
        if (!log->oldest_of || log->entries.at[log->oldest_of].created < log->oldest)
            log->oldest = log->entries.at[log->oldest_of].created;
    int64_t since = stet_persist_created_to_unix(log->oldest), now = stet_clock_ms();
    for (size_t i = 0; i < p->files.len; i++)
        if (p->files.at[i].mtime_ns / 1000000 > since)
            since = p->files.at[i].mtime_ns / 1000000;
    int64_t left = since + p->config.entry_merge_timeout_seconds * 1000 - now;
    if (left > 0 && next_ms)
        *next_ms = left;
    return left <= 0;
}
