/* check.c - statistics of a directory, and checking every file in it. */

#include <errno.h>
#include <string.h>

#include "persist/internal.h"

typedef struct checker {
    stet_persist *p;
    bool repair;
    stet_persist_found_fn found;
    void *ctx;
    stet_ptrash trash;
    stet_error *err;
    stet_status status;
} checker;

static void report_problem(checker *c, const char *what, const char *where, bool repaired) {
    stet_persist_problem problem = {.what = what, .where = where, .repaired = repaired};
    c->found(c->ctx, &problem);
}

/* Moves DIR/NAME into the trash; false if that failed. */
static bool move_to_trash(checker *c, const char *dir, const char *kind, const char *name) {
    if (!c->repair || c->status != STET_OK)
        return false;
    char *path = stet_ppath(dir, name), *to = stet_asprintf("%s/%s", kind, name);
    c->status = stet_ptrash_file(c->p, &c->trash, path, to, c->err);
    stet_free(to);
    stet_free(path);
    return c->status == STET_OK;
}

static void check_snapshots(checker *c) {
    stet_persist *p = c->p;
    bool merge = false;
    pthread_mutex_lock(&p->state_mutex);
    c->status = stet_persist_reload(p, c->repair, c->err);
    for (size_t i = 0; i < p->files.len && c->status == STET_OK; i++) {
        const stet_pfile *f = &p->files.at[i];
        char *where = stet_asprintf("entry_snapshots/%s", f->name);
        if (f->state == STET_PSNAPSHOT_UNKNOWN)
            report_problem(c, "a snapshot of a version that this program does not know", where, false);
        else if (f->state == STET_PSNAPSHOT_CORRUPT) {
            char *what = stet_asprintf("a corrupt snapshot (%s); it may not be wholly synchronised yet", f->why);
            bool done = move_to_trash(c, p->snapshots_dir, "snapshots", f->name);
            report_problem(c, what, where, done);
            stet_free(what);
        } else {
            if (f->snapshot->dropped) {
                report_problem(c, "a snapshot with an entry whose hash does not match", where, c->repair);
                merge = true;
            }
            if (strncmp(f->name, f->snapshot->hash.text, STET_PERSIST_HASH) != 0 ||
                strcmp(f->name + STET_PERSIST_HASH, ".toml") != 0) {
                report_problem(c, "a snapshot under a wrong name", where, c->repair);
                merge = true;
            }
        }
        stet_free(where);
    }
    bool vanished = c->status == STET_OK && p->vanished, back = false;
    pthread_mutex_unlock(&p->state_mutex);
    if ((merge || vanished) && c->repair && c->status == STET_OK) {
        /* Writes the vanished snapshot again, from this machine's copy. */
        stet_persist_cleanup how = {.strategy = stet_persist_strategy_none, .include_content = STET_PERSIST_NO};
        c->status = stet_persist_clean_locked(p, &how, c->err);
        pthread_mutex_lock(&p->state_mutex);
        back = !p->vanished;
        if (c->status == STET_OK && !back) { /* no readable copy exists: its entries are lost */
            stet_persist_forget(p);
            c->status = stet_persist_reload(p, true, c->err);
        }
        pthread_mutex_unlock(&p->state_mutex);
    }
    if (vanished && c->repair && !back)
        report_problem(c, "the last snapshot that this machine knew is lost, with the entries that only it had",
                       "entry_snapshots", c->status == STET_OK);
    else if (vanished)
        report_problem(c, "the last snapshot that this machine knew went away, and none that descends from it is here",
                       "entry_snapshots", c->repair && c->status == STET_OK);
}

/* Finds tables of the log that are not entries, or whose hash is wrong. The repair writes a log of the good ones. */
static void check_log(checker *c) {
    stet_persist *p = c->p;
    char *text;
    size_t len;
    stet_error local = STET_ERROR_INIT;
    stet_status status = stet_persist_read_file(p->log_path, &text, &len, NULL, &local);
    if (status == STET_NOT_FOUND) {
        stet_error_clear(&local);
        return;
    }
    char *where = stet_asprintf("entry_log/machine_%s.toml", p->machine_id);
    if (status != STET_OK) {
        report_problem(c, local.message, where, false);
        stet_error_clear(&local);
        stet_free(where);
        return;
    }
    stet_ptexts *texts = stet_ptexts_new();
    *stet_vec_add(&texts->blocks) = text;
    stet_pentries entries = {0};
    stet_plog_parsed parsed = {0};
    stet_plog_parse(text, len, texts, &entries, &parsed);
    bool unknown = parsed.unknown_version && !entries.len;
    if (unknown)
        report_problem(c, "a log of a version that this program does not know", where, false);
    else if (parsed.bad || (len && !parsed.header_seen)) {
        bool done = false;
        if (c->repair) {
            stet_buf out = STET_BUF(STET_PERSIST_FILE_MAX);
            stet_buf_str(&out, stet_plog_header);
            for (size_t i = 0; i < entries.len; i++) {
                stet_buf_char(&out, '\n');
                stet_buf_add(&out, entries.at[i].text, entries.at[i].text_len);
            }
            pthread_mutex_lock(&p->state_mutex);
            c->status = stet_plog_lock(p, c->err);
            if (c->status == STET_OK) {
                c->status = stet_file_replace(p->log_path, out.data, out.len, 0666, c->err);
                stet_plog_unlock(p);
                p->stale = true;
                if (c->status == STET_OK)
                    c->status = stet_persist_reload(p, true, c->err);
            }
            done = c->status == STET_OK;
            pthread_mutex_unlock(&p->state_mutex);
            stet_buf_release(&out);
        }
        report_problem(c, parsed.bad ? "a torn or corrupt table in the log" : "a log without its header", where, done);
    }
    stet_vec_release(&entries);
    stet_ptexts_drop(texts);
    stet_free(where);
}

/* Collects the object ids that entries refer to, with their sizes. */
static stet_status named_objects(stet_persist *p, stet_map *out, stet_error *err) {
    pthread_mutex_lock(&p->state_mutex);
    stet_status status = stet_persist_load(p, false, err);
    stet_pcontent c;
    for (size_t i = 0; i < p->live.entries.len && status == STET_OK; i++)
        for (size_t at = 0; stet_pentry_content(&p->live.entries.at[i], &at, &c);)
            stet_map_put(out, c.id, c.id_len, (stet_slot){.n = c.size});
    pthread_mutex_unlock(&p->state_mutex);
    return status;
}

/* The id that an object with the bytes of this file would have; "" if the file can't be read. */
static void file_id(const char *path, char out[STET_HASH_BASE64]) {
    stet_hash h;
    uint64_t size;
    out[0] = '\0';
    if (stet_file_hash(path, &h, &size, NULL) == STET_OK)
        stet_base64url_encode(h.bytes, sizeof h.bytes, out);
}

/* Synchronisers name the second of two files "ID (1)", "ID (conflicted copy)" or "ID.sync-conflict-...". */
static void check_stray(checker *c, const char *name) {
    stet_persist *p = c->p;
    size_t len = strlen(name), id_len = 0;
    for (size_t i = STET_PERSIST_HASH; i < len && i < STET_PERSIST_ID_MAX; i++)
        if (stet_persist_valid_id(name, i))
            id_len = i;
    if (!id_len)
        return;
    char *path = stet_ppath(p->objects_dir, name),
         *proper = stet_asprintf("%s/%.*s", p->objects_dir, (int)id_len, name);
    char *where = stet_asprintf("objects/%s", name), hash[STET_HASH_BASE64];
    struct stat st;
    bool done = false;
    if (stet_sys_lstat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        file_id(path, hash);
        bool good = !memcmp(hash, name, STET_PERSIST_HASH);
        if (c->repair && good && stet_sys_rename_new(path, proper) == 0)
            done = true;
        else
            done = move_to_trash(c, p->objects_dir, "objects", name);
        report_problem(c, good ? "an object under a name that a synchroniser gave it" : "a damaged copy of an object",
                       where, done);
    }
    stet_free(where);
    stet_free(proper);
    stet_free(path);
}

/* A strategy: removes entries of which an object is missing. Pinned ones too, because nothing is left to protect. */
static stet_status without_objects(void *ctx, stet_persist_item *items, size_t count, uint64_t now, stet_error *err) {
    const stet_map *missing = ctx;
    (void)now, (void)err;
    for (size_t i = 0; i < count; i++) {
        stet_pcontent content;
        for (size_t at = 0; stet_pentry_content(items[i].of, &at, &content);)
            if (stet_map_get(missing, content.id, content.id_len)) {
                items[i].remove = true;
                items[i].keep = false;
            }
    }
    return STET_OK;
}

/* Entries whose objects are missing are useless on this machine. A repair moves them to the trash, so that the next run
 * stores the result again; `persist undelete` restores them if the objects arrive later. */
static void check_missing(checker *c, const stet_map *named) {
    stet_persist *p = c->p;
    stet_map missing = {0};
    const void *key;
    size_t len, trivial;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(named, &i, &key, &len, &slot);) {
        char *id = stet_strndup(key, len);
        stet_status status;
        if (!stet_pobject_trivial(id, &trivial) &&
            stet_pobject_read(p, id, slot->n, STET_POBJECT_BY_SIZE, NULL, NULL, &status, NULL) == STET_POBJECT_MISSING)
            stet_map_put(&missing, key, len, (stet_slot){.n = 1});
        stet_free(id);
    }
    if (c->repair && stet_map_len(&missing)) {
        stet_persist_cleanup how = {.strategy = without_objects, .ctx = &missing, .include_content = STET_PERSIST_NO};
        c->status = stet_persist_clean_locked(p, &how, c->err);
    }
    for (size_t i = 0; stet_map_next(&missing, &i, &key, &len, &slot);) {
        char *where = stet_asprintf("objects/%.*s", (int)len, (const char *)key);
        report_problem(c, "an entry names an object that is not here; it may not be synchronised yet", where,
                       c->repair && c->status == STET_OK);
        stet_free(where);
    }
    stet_map_release(&missing);
}

static void check_objects(checker *c) {
    stet_persist *p = c->p;
    stet_map named = {0};
    stet_names names = {0};
    c->status = named_objects(p, &named, c->err);
    if (c->status == STET_OK)
        c->status = stet_file_list_if_there(p->objects_dir, &names, c->err);
    for (size_t i = 0; i < names.len && c->status == STET_OK; i++) {
        bool compressed;
        const char *name = names.at[i];
        size_t len = stet_pobject_name(name, &compressed);
        if (!len) {
            check_stray(c, name);
            continue;
        }
        const stet_slot *size = stet_map_get(&named, name, len);
        char *path = stet_ppath(p->objects_dir, name), *where = stet_asprintf("objects/%s", name),
             *id = stet_strndup(name, len);
        bool good = true;
        if (size) {
            stet_status status;
            good =
                stet_pobject_read(p, id, size->n, STET_POBJECT_BY_HASH, NULL, NULL, &status, NULL) == STET_POBJECT_GOOD;
        } else if (!compressed) {
            char hash[STET_HASH_BASE64];
            file_id(path, hash);
            good = !memcmp(hash, name, STET_PERSIST_HASH);
        }
        if (!good)
            report_problem(c, "an object whose bytes are not what its name says", where,
                           move_to_trash(c, p->objects_dir, "objects", name));
        stet_free(id);
        stet_free(where);
        stet_free(path);
    }
    /* After the repairs above, because a stray copy may have been the missing object. */
    if (c->status == STET_OK)
        check_missing(c, &named);
    stet_names_release(&names);
    stet_map_release(&named);
}

stet_status stet_persist_check(stet_persist *p, bool repair, stet_persist_found_fn found, void *ctx, stet_error *err) {
    if (!p || !found)
        return stet_fail_null(err);
    struct stat st;
    checker c = {.p = p, .repair = repair, .found = found, .ctx = ctx, .err = err};
    if (stet_sys_stat(p->dir, &st) != 0 && errno == ENOENT) {
        if (!stet_persist_was_used(p->local))
            return STET_OK; /* nothing was ever put here */
        if (repair)
            stet_persist_forget(p);
        report_problem(&c, "the directory is gone, with all entries and objects that this machine had used", p->dir,
                       repair);
        return STET_OK;
    }
    if (repair && (c.status = stet_persist_lock(p, true, err)) != STET_OK)
        return c.status;
    check_snapshots(&c);
    if (c.status == STET_OK)
        check_log(&c);
    if (c.status == STET_OK)
        check_objects(&c);
    if (repair)
        stet_persist_unlock(p);
    stet_ptrash_release(&c.trash);
    return c.status;
}

static uint64_t dir_count(const char *dir, bool (*counts)(const char *name), uint64_t *bytes) {
    stet_names names = {0};
    uint64_t n = 0;
    if (stet_file_list(dir, &names, NULL) == STET_OK)
        for (size_t i = 0; i < names.len; i++) {
            if (!counts(names.at[i]))
                continue;
            n++;
            char *path = stet_ppath(dir, names.at[i]);
            struct stat is;
            if (bytes && stet_sys_lstat(path, &is) == 0)
                *bytes += (uint64_t)is.st_size;
            stet_free(path);
        }
    stet_names_release(&names);
    return n;
}

static bool is_object(const char *name) {
    bool compressed;
    return stet_pobject_name(name, &compressed) > 0;
}

static bool is_marker(const char *name) {
    return stet_persist_valid_id(name, strlen(name));
}

static bool add_trash(void *ctx, const stet_persist_trashed *batch) {
    *(uint64_t *)ctx += batch->bytes;
    return true;
}

stet_status stet_persist_stats_get(stet_persist *p, stet_persist_stats *out, stet_error *err) {
    memset(out, 0, sizeof *out);
    stet_map blocks = {0}, modules = {0}, ids = {0}, marks = {0}, uses = {0};
    stet_status status = stet_pmarks_load(p, &marks, err);
    pthread_mutex_lock(&p->state_mutex);
    if (status == STET_OK)
        status = stet_persist_load(p, false, err);
    for (size_t i = 0; i < p->live.entries.len && status == STET_OK; i++) {
        const stet_pentry *e = &p->live.entries.at[i];
        out->entries++;
        out->log_entries += e->in_log;
        out->call_entries += stet_persist_is_call(e->block, e->block_len);
        stet_map_put(&blocks, e->block, e->block_len, (stet_slot){.n = 1});
        stet_map_put(&modules, e->module, STET_PERSIST_HASH, (stet_slot){.n = 1});
        char *key = stet_asprintf("%.43s.%llu", e->module, (unsigned long long)e->created);
        out->pinned += stet_map_get(&marks, key, strlen(key)) != NULL;
        stet_free(key);
        stet_pcontent c;
        for (size_t at = 0; stet_pentry_content(e, &at, &c);) {
            out->content_bytes = c.size > UINT64_MAX - out->content_bytes ? UINT64_MAX : out->content_bytes + c.size;
            stet_map_put(&ids, c.id, c.id_len, (stet_slot){.n = c.size});
        }
    }
    for (size_t i = 0; i < p->files.len; i++)
        out->snapshots += p->files.at[i].snapshot != NULL;
    pthread_mutex_unlock(&p->state_mutex);
    if (status == STET_OK) {
        out->blocks = stet_map_len(&blocks);
        out->modules = stet_map_len(&modules);
        out->objects = dir_count(p->objects_dir, is_object, &out->object_bytes);
        out->fresh_markers = dir_count(p->fresh_dir, is_marker, NULL);
        const void *key;
        size_t len, trivial;
        stet_slot *slot;
        for (size_t i = 0; stet_map_next(&ids, &i, &key, &len, &slot);) {
            char *id = stet_strndup(key, len);
            stet_status ignored;
            out->missing_objects +=
                !stet_pobject_trivial(id, &trivial) && stet_pobject_read(p, id, slot->n, STET_POBJECT_BY_SIZE, NULL,
                                                                         NULL, &ignored, NULL) == STET_POBJECT_MISSING;
            stet_free(id);
        }
        status = stet_puses_load(p, &uses, &out->hits, &out->misses, &out->saved_ms, err);
    }
    if (status == STET_OK)
        status = stet_persist_trash_each(p, add_trash, &out->trash_bytes, err);
    stet_map_release(&blocks);
    stet_map_release(&modules);
    stet_map_release(&ids);
    stet_map_release(&marks);
    stet_map_release(&uses);
    return status;
}
