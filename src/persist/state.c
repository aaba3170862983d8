/* state.c - the entries in memory, and how they follow the directory.
 *
 * The entries are those of the tips (the snapshots that no other one descends from) and of the log. A snapshot that
 * this machine knew last, and that disappeared although no descendant of it is present, counts as a tip: its deletion
 * was synchronised before its replacement.
 */

#include <errno.h>
#include <string.h>
#include <time.h>

#include "os/clock.h"
#include "persist/internal.h"

static int64_t mtime_ns(const struct stat *st) {
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static void release_file(stet_pfile *f) {
    stet_psnapshot_drop(f->snapshot);
    stet_free(f->name);
}

/* Reads one file of entry_snapshots/. A file that can't be read is treated as corrupt for now. */
static void load_file(stet_persist *p, const char *name, const struct stat *st, stet_pfile *out) {
    *out = (stet_pfile){.name = stet_strdup(name), .ino = st->st_ino, .size = st->st_size, .mtime_ns = mtime_ns(st)};
    char *path = stet_ppath(p->snapshots_dir, name), *text;
    size_t len;
    out->state = STET_PSNAPSHOT_CORRUPT;
    if (!S_ISREG(st->st_mode))
        out->why = "not a regular file";
    else if (stet_persist_read_file(path, &text, &len, NULL, NULL) != STET_OK)
        out->why = "it can't be read";
    else
        out->state = stet_psnapshot_parse(text, len, &out->snapshot, &out->why);
    stet_free(path);
}

static bool is_candidate(const char *name) {
    return strstr(name, ".toml") != NULL;
}

static stet_status load_files(stet_persist *p, bool force, bool *changed, stet_error *err) {
    struct stat st;
    *changed = false;
    if (stet_sys_lstat(p->snapshots_dir, &st) != 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return stet_fail_errno(err, errno, "%s: cannot stat", p->snapshots_dir);
        *changed = p->files.len > 0;
        for (size_t i = 0; i < p->files.len; i++)
            release_file(&p->files.at[i]);
        p->files.len = 0;
        p->files_stamp = (stet_pstamp){.known = true};
        return STET_OK;
    }
    if (!S_ISDIR(st.st_mode))
        return stet_fail(err, STET_DENIED, "%s is not a directory", p->snapshots_dir);
    stet_pstamp *stamp = &p->files_stamp;
    if (!force && stamp->there && !stamp->racy && stamp->ino == st.st_ino && stamp->mtime_ns == mtime_ns(&st))
        return STET_OK;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    stet_names names = {0};
    stet_status status = stet_file_list(p->snapshots_dir, &names, err);
    if (status != STET_OK)
        return status;
    struct {
        stet_pfile *at;
        size_t len, cap;
    } files = {0};
    size_t reused = 0;
    bool incomplete = false;
    for (size_t i = 0; i < names.len; i++) {
        if (!is_candidate(names.at[i]))
            continue;
        char *path = stet_ppath(p->snapshots_dir, names.at[i]);
        struct stat is;
        bool there = stet_sys_lstat(path, &is) == 0;
        stet_free(path);
        if (!there)
            continue;
        size_t k = 0;
        while (k < p->files.len && (!p->files.at[k].name || strcmp(p->files.at[k].name, names.at[i]) != 0 ||
                                    p->files.at[k].ino != is.st_ino || p->files.at[k].size != is.st_size ||
                                    p->files.at[k].mtime_ns != mtime_ns(&is)))
            k++;
        stet_pfile *f = stet_vec_add(&files);
        if (k < p->files.len && p->files.at[k].state == STET_PSNAPSHOT_OK) {
            *f = p->files.at[k];
            p->files.at[k].name = NULL;
            reused++;
        } else
            load_file(p, names.at[i], &is, f);
        incomplete = incomplete || f->state == STET_PSNAPSHOT_CORRUPT;
    }
    *changed = reused != files.len || reused != p->files.len;
    for (size_t k = 0; k < p->files.len; k++)
        if (p->files.at[k].name)
            release_file(&p->files.at[k]);
    stet_vec_release(&p->files);
    p->files.at = files.at;
    p->files.len = files.len;
    p->files.cap = files.cap;
    stet_names_release(&names);
    int64_t age = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - mtime_ns(&st);
    /* A file that is being written grows without a change of its directory. */
    *stamp = (stet_pstamp){.known = true,
                           .there = true,
                           .racy = incomplete || age < (st.st_mtim.tv_nsec ? 50000000 : 2100000000),
                           .ino = st.st_ino,
                           .mtime_ns = mtime_ns(&st)};
    return STET_OK;
}

bool stet_persist_is_known(const stet_persist *p, const char *hash) {
    for (size_t i = 0; i < p->files.len; i++) {
        const stet_psnapshot *s = p->files.at[i].snapshot;
        if (s && (!memcmp(s->hash.text, hash, STET_PERSIST_HASH) || stet_psnapshot_has_ancestor(s, hash)))
            return true;
    }
    return false;
}

static char *remembered_dir(const stet_persist *p) {
    return stet_ppath(p->local, "last");
}

/* The names in local/last. They are read once, and stet_persist_remember keeps the list up to date. */
static void load_remembered(stet_persist *p) {
    char *dir = remembered_dir(p), *config = stet_ppath(p->dir, "config.toml");
    stet_names names = {0};
    /* A directory without config.toml is new, whatever was there before. */
    if (stet_file_exists(config) && stet_file_list(dir, &names, NULL) == STET_OK)
        for (size_t i = 0; i < names.len && p->remembered.len < 16; i++) {
            size_t len = strlen(names.at[i]);
            if (len != STET_PERSIST_HASH + 5 || !stet_persist_valid_hash(names.at[i], STET_PERSIST_HASH) ||
                strcmp(names.at[i] + STET_PERSIST_HASH, ".toml") != 0)
                continue;
            stet_premembered *r = stet_vec_add(&p->remembered);
            memset(r, 0, sizeof *r);
            memcpy(r->hash.text, names.at[i], STET_PERSIST_HASH);
        }
    stet_names_release(&names);
    stet_free(config);
    stet_free(dir);
}

static void read_remembered(stet_persist *p, stet_premembered *r) {
    if (r->snapshot)
        return;
    char *dir = remembered_dir(p), *path = stet_asprintf("%s/%s.toml", dir, r->hash.text), *text;
    size_t len;
    const char *why;
    r->lost = stet_persist_read_file(path, &text, &len, NULL, NULL) != STET_OK ||
              stet_psnapshot_parse(text, len, &r->snapshot, &why) != STET_PSNAPSHOT_OK ||
              memcmp(r->snapshot->hash.text, r->hash.text, STET_PERSIST_HASH) != 0;
    if (r->lost) {
        stet_psnapshot_drop(r->snapshot);
        r->snapshot = NULL;
    }
    stet_free(path);
    stet_free(dir);
}

void stet_persist_remember(stet_persist *p, const stet_pid *hash) {
    if (p->read_only[0])
        return;
    if (p->remembered.len == 1 && !memcmp(p->remembered.at[0].hash.text, hash->text, STET_PERSIST_HASH))
        return;
    char *dir = remembered_dir(p), *to = stet_asprintf("%s/%s.toml", dir, hash->text),
         *from = stet_asprintf("%s/%s.toml", p->snapshots_dir, hash->text);
    /* A hard link to the same bytes, or a copy where links are not possible. */
    bool kept = stet_file_mkdirs(dir, 0777, NULL) == STET_OK;
    if (kept && stet_sys_link(from, to) != 0 && errno != EEXIST) {
        char *text;
        size_t len;
        kept = stet_persist_read_file(from, &text, &len, NULL, NULL) == STET_OK;
        if (kept) {
            kept = stet_file_replace(to, text, len, 0666, NULL) == STET_OK;
            stet_free(text);
        }
    }
    stet_names names = {0};
    if (kept && stet_file_list(dir, &names, NULL) == STET_OK)
        for (size_t i = 0; i < names.len; i++)
            if (strncmp(names.at[i], hash->text, STET_PERSIST_HASH) != 0) {
                char *old = stet_ppath(dir, names.at[i]);
                stet_sys_unlink(old);
                stet_free(old);
            }
    stet_names_release(&names);
    if (kept) {
        for (size_t i = 0; i < p->remembered.len; i++)
            stet_psnapshot_drop(p->remembered.at[i].snapshot);
        p->remembered.len = 0;
        stet_premembered *r = stet_vec_add(&p->remembered);
        memset(r, 0, sizeof *r);
        r->hash = *hash;
    }
    stet_free(dir);
    stet_free(to);
    stet_free(from);
}

void stet_persist_forget(stet_persist *p) {
    char *dir = remembered_dir(p), *uses = stet_ppath(p->local, "uses");
    stet_names names = {0};
    if (stet_file_list(dir, &names, NULL) == STET_OK)
        for (size_t i = 0; i < names.len; i++) {
            char *path = stet_ppath(dir, names.at[i]);
            stet_sys_unlink(path);
            stet_free(path);
        }
    if (!stet_file_exists(p->dir))
        stet_sys_unlink(uses);
    stet_names_release(&names);
    for (size_t i = 0; i < p->remembered.len; i++)
        stet_psnapshot_drop(p->remembered.at[i].snapshot);
    p->remembered.len = 0;
    p->stale = true;
    stet_free(uses);
    stet_free(dir);
}

bool stet_persist_was_used(const char *local) {
    char *dir = stet_ppath(local, "last"), *uses = stet_ppath(local, "uses");
    stet_names names = {0};
    bool used = stet_file_exists(uses) || (stet_file_list(dir, &names, NULL) == STET_OK && names.len > 0);
    stet_names_release(&names);
    stet_free(uses);
    stet_free(dir);
    return used;
}

static int by_hash(const void *a, const void *b) {
    return memcmp((*(stet_psnapshot *const *)a)->hash.text, (*(stet_psnapshot *const *)b)->hash.text,
                  STET_PERSIST_HASH);
}

static void find_tips(stet_persist *p) {
    p->tips.len = 0;
    p->vanished = false;
    struct {
        stet_psnapshot **at;
        size_t len, cap;
    } all = {0};
    for (size_t i = 0; i < p->files.len; i++)
        if (p->files.at[i].snapshot)
            *stet_vec_add(&all) = p->files.at[i].snapshot;
    for (size_t i = 0; i < p->remembered.len; i++) {
        stet_premembered *r = &p->remembered.at[i];
        r->lost = false;
        if (stet_persist_is_known(p, r->hash.text))
            continue;
        p->vanished = true;
        read_remembered(p, r);
        if (r->snapshot && !r->lost)
            *stet_vec_add(&all) = r->snapshot;
    }
    if (all.len)
        qsort(all.at, all.len, sizeof *all.at, by_hash);
    for (size_t i = 0; i < all.len; i++) {
        bool tip = i == 0 || by_hash(&all.at[i - 1], &all.at[i]) != 0;
        for (size_t k = 0; k < all.len && tip; k++)
            tip = k == i || !stet_psnapshot_has_ancestor(all.at[k], all.at[i]->hash.text);
        if (tip)
            *stet_vec_add(&p->tips) = all.at[i];
    }
    stet_vec_release(&all);
}

static void rebuild(stet_persist *p) {
    stet_pentries all = {0};
    size_t count = p->log.entries.len;
    for (size_t i = 0; i < p->tips.len; i++)
        count += p->tips.at[i]->entries.len;
    stet_pset_release(&p->live);
    if (count) {
        all.at = stet_alloc(count * sizeof *all.at);
        all.cap = count;
        for (size_t i = 0; i < p->tips.len; i++) {
            const stet_pentries *from = &p->tips.at[i]->entries;
            if (from->len)
                memcpy(all.at + all.len, from->at, from->len * sizeof *all.at);
            all.len += from->len;
        }
        if (p->log.entries.len)
            memcpy(all.at + all.len, p->log.entries.at, p->log.entries.len * sizeof *all.at);
        all.len = count;
        stet_pentries_sort(&all);
    }
    stet_pset_build(&p->live, &all);
    p->generation++;
}

/* Adds the entries of the log from index `from` on. */
static void add_from_log(stet_persist *p, size_t from) {
    for (size_t i = from; i < p->log.entries.len; i++) {
        const stet_pentry *e = &p->log.entries.at[i];
        stet_pentry *there = (stet_pentry *)stet_pset_find(&p->live, e);
        if (!there)
            stet_pset_add(&p->live, e);
        else if (stet_pentry_prefer(e, there) > 0) {
            uint32_t older = there->older;
            *there = *e;
            there->older = older;
        }
    }
    p->generation++;
}

enum { LOOK_US = 1000000 };

static bool same_as(const stet_pstamp *stamp, int fd, bool sized) {
    struct stat st;
    return fd >= 0 && stamp->there && !stamp->racy && stet_sys_fstat(fd, &st) == 0 && st.st_nlink > 0 &&
           st.st_ino == stamp->ino && mtime_ns(&st) == stamp->mtime_ns && (!sized || st.st_size == stamp->size);
}

/* Checks through the open descriptors whether anything has changed. */
static bool looks_unchanged(stet_persist *p) {
    return !p->stale && p->looked_at_us && stet_clock_monotonic_us() - p->looked_at_us < LOOK_US &&
           same_as(&p->log.stamp, p->log_look_fd, true) && same_as(&p->files_stamp, p->files_fd, false);
}

static void keep_open(int *fd, const char *path, int flags, const stet_pstamp *stamp) {
    struct stat st;
    if (*fd >= 0 && (!stamp->there || (stet_sys_fstat(*fd, &st) == 0 && st.st_ino == stamp->ino && st.st_nlink > 0)))
        return;
    if (*fd >= 0)
        stet_sys_close(*fd);
    *fd = stamp->there ? stet_sys_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | flags, 0) : -1;
}

static void prepare_looking(stet_persist *p) {
    keep_open(&p->files_fd, p->snapshots_dir, O_DIRECTORY, &p->files_stamp);
    keep_open(&p->log_look_fd, p->log_path, 0, &p->log.stamp);
    if (atomic_load(&p->objects_fd) < 0)
        atomic_store(&p->objects_fd, stet_sys_open(p->objects_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0));
    p->looked_at_us = stet_clock_monotonic_us();
}

static stet_status load(stet_persist *p, bool locked, bool force, stet_error *err) {
    if (!force && !locked && looks_unchanged(p))
        return STET_OK;
    bool files = false, log = false, anew = false;
    bool first = !p->files_stamp.known;
    if (first)
        load_remembered(p);
    /* The log first: an entry that leaves the log is in a snapshot by then, and is found there. */
    size_t entries = p->log.entries.len;
    stet_status status = stet_plog_load(p, !locked, &log, &anew, err);
    if (status == STET_OK)
        status = load_files(p, force || anew, &files, err);
    if (status != STET_OK) {
        p->log.stamp.there = false; /* `live` may lack some of what was read: read everything again */
        p->log.offset = 0;
        p->log.entries.len = 0;
        p->files_stamp.there = false;
        p->files_stamp.racy = true;
        p->stale = true;
        stet_pset_release(&p->live); /* it may point into texts that were freed */
        p->tips.len = 0;
        return status;
    }
    if (first || files || anew || p->stale) {
        find_tips(p);
        rebuild(p);
        p->stale = false;
        if (p->tips.len == 1 && !p->vanished)
            for (size_t i = 0; i < p->files.len; i++)
                if (p->files.at[i].snapshot == p->tips.at[0] &&
                    !strncmp(p->files.at[i].name, p->tips.at[0]->hash.text, STET_PERSIST_HASH) &&
                    !strcmp(p->files.at[i].name + STET_PERSIST_HASH, ".toml")) {
                    stet_persist_remember(p, &p->tips.at[0]->hash);
                    break;
                }
    } else if (log)
        add_from_log(p, entries);
    if (!locked)
        prepare_looking(p);
    return STET_OK;
}

stet_status stet_persist_load(stet_persist *p, bool locked, stet_error *err) {
    return load(p, locked, false, err);
}

stet_status stet_persist_reload(stet_persist *p, bool locked, stet_error *err) {
    return load(p, locked, true, err);
}

void stet_persist_state_release(stet_persist *p) {
    stet_pset_release(&p->live);
    stet_plog_release(&p->log);
    for (size_t i = 0; i < p->files.len; i++)
        release_file(&p->files.at[i]);
    stet_vec_release(&p->files);
    for (size_t i = 0; i < p->remembered.len; i++)
        stet_psnapshot_drop(p->remembered.at[i].snapshot);
    stet_vec_release(&p->remembered);
    stet_vec_release(&p->tips);
}

void stet_pview_take(stet_persist *p, stet_pview *view) {
    memset(view, 0, sizeof *view);
    size_t n = p->live.entries.len;
    if (n) {
        view->entries.at = stet_alloc(n * sizeof *view->entries.at);
        memcpy(view->entries.at, p->live.entries.at, n * sizeof *view->entries.at);
        view->entries.len = view->entries.cap = n;
        stet_pentries_sort(&view->entries);
    }
    for (size_t i = 0; i < p->tips.len; i++)
        *stet_vec_add(&view->texts) = stet_ptexts_hold(p->tips.at[i]->texts);
    if (p->log.texts)
        *stet_vec_add(&view->texts) = stet_ptexts_hold(p->log.texts);
}

void stet_pview_release(stet_pview *view) {
    for (size_t i = 0; i < view->texts.len; i++)
        stet_ptexts_drop(view->texts.at[i]);
    stet_vec_release(&view->texts);
    stet_vec_release(&view->entries);
}
