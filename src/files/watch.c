/* watch.c - the process that watches files and keeps their documents up to date. */

#include "files/watch.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/glob.h"
#include "files/internal.h"
#include "files/path.h"
#include "files/places.h"
#include "os/clock.h"
#include "os/lock.h"

#define TROUBLE_MS   500 /* after something that may pass; twice as long each time */
#define TROUBLE_MOST 16000
#define RETRY_MS     20   /* while commands run */
#define TAKE_MS      1000 /* those who ask hold the lock for a moment */

struct stet_watcher {
    stet_files *f;
    stet_lock *lock, *commands;
    stet_watch *watch;
    stet_places *places;
    int own;                      /* number of the watch of the index's directory */
    bool all;                     /* everything is to be placed and looked at anew */
    bool others;                  /* somebody has saved the index */
    bool tried;                   /* to take something up, but commands run */
    int64_t trouble_ms, retry_ms; /* how long to wait after something that may pass; until when. 0: all is well */
    stet_map dirty;               /* keys to look at */
    STET_VEC(char *) asks;        /* names of cookies that wait */
    stet_error failed;            /* of a visit in the midst of a pass */
};

static stet_status lock_of(stet_project *p, const char *relative, stet_lock **out, stet_error *err) {
    char *path = stet_project_path(p, relative), *dir = stet_file_dirname(path);
    stet_status status = stet_file_mkdirs(dir, 0755, err);
    if (status == STET_OK)
        status = stet_lock_open(path, STET_LOCK_PLAIN, out, err);
    stet_free(dir);
    stet_free(path);
    return status;
}

/* Each once: it may be listed and heard of as well. */
static void add_ask(stet_watcher *w, const char *name) {
    for (size_t i = 0; i < w->asks.len; i++)
        if (strcmp(w->asks.at[i], name) == 0)
            return;
    *stet_vec_add(&w->asks) = stet_strdup(name);
}

/* Cookies that nobody waits for any more, and those that came before the watch was there. */
static void list_asks(stet_watcher *w) {
    stet_names names = {0};
    if (stet_file_list(w->f->dir, &names, NULL) == STET_OK)
        for (size_t i = 0; i < names.len; i++)
            if (strncmp(names.at[i], STET_ASK_PREFIX, strlen(STET_ASK_PREFIX)) == 0)
                add_ask(w, names.at[i]);
    stet_names_release(&names);
}

stet_status stet_watcher_open(stet_project *p, stet_space *s, stet_files *files, stet_watcher **out, stet_error *err) {
    stet_watcher *w = stet_alloc_zero(sizeof *w);
    char *lock = stet_asprintf("local/files/%s/" STET_WATCH_LOCK, stet_space_name(s));
    w->f = files;
    files->no_variables = true;
    w->all = true;
    stet_status status = lock_of(p, lock, &w->lock, err);
    if (status == STET_OK)
        status = lock_of(p, STET_FILES_COMMANDS_LOCK, &w->commands, err);
    if (status == STET_OK) {
        stet_error inner = STET_ERROR_INIT;
        status = stet_lock_take(w->lock, STET_LOCK_EXCLUSIVE, TAKE_MS, &inner);
        if (status == STET_BUSY) {
            stet_error_clear(&inner);
            stet_fail(&inner, STET_BUSY, "another process watches the files of this project");
            stet_hint(&inner, "one is enough: every stet run asks it");
        }
        stet_error_move(err, &inner);
    }
    if (status == STET_OK)
        status = stet_watch_open(&w->watch, err);
    if (status == STET_OK)
        status = stet_watch_place(w->watch, files->dir, false, &w->own, err);
    if (status == STET_OK)
        status = stet_files_ready(files, err);
    stet_free(lock);
    if (status != STET_OK) {
        stet_watcher_close(w);
        return status;
    }
    w->places = stet_places_new(w->watch, files->root);
    list_asks(w);
    *out = w;
    return STET_OK;
}

void stet_watcher_close(stet_watcher *w) {
    if (!w)
        return;
    for (size_t i = 0; i < w->asks.len; i++)
        stet_free(w->asks.at[i]);
    stet_vec_release(&w->asks);
    stet_map_release(&w->dirty);
    stet_places_free(w->places);
    stet_watch_close(w->watch);
    stet_lock_close(w->commands);
    stet_lock_close(w->lock);
    stet_error_clear(&w->failed);
    stet_free(w);
}

size_t stet_watcher_count(const stet_watcher *w) {
    return stet_places_count(w->places);
}

typedef struct visit {
    stet_watcher *w;
    const char *key;
} visit;

/* A directory that a pattern is about to list, or a link in one. */
static void place_visited(void *ctx, const char *path, bool link) {
    visit *v = ctx;
    if (v->w->failed.status != STET_OK)
        return;
    stet_status status = link ? stet_places_put(v->w->places, v->key, path, &v->w->failed)
                              : stet_places_deep(v->w->places, v->key, path, false, &v->w->failed);
    if (status != STET_OK) {
        /* kept in `failed`, for the end of the walk */
    }
}

/* Does a link lead to a directory of the project that was not entered before? As where a directory is looked at
 * (look.h), or more: who listens to too much hears of changes that are none. */
static bool enters(const stet_watcher *w, const char *at, stet_names *entered) {
    char real[PATH_MAX];
    struct stat st;
    size_t n = strlen(w->f->root);
    if (stet_sys_stat(at, &st) != 0 || !S_ISDIR(st.st_mode) || !realpath(at, real) ||
        strncmp(real, w->f->root, n) != 0 || real[n] != '/')
        return false;
    for (size_t i = 0; i < entered->len; i++)
        if (strcmp(entered->at[i], real) == 0)
            return false;
    *stet_vec_add(entered) = stet_strdup(real);
    return true;
}

/* Everything below a directory that is an input. */
static stet_status place_tree(stet_watcher *w, const char *key, const char *top, stet_error *err) {
    STET_VEC(char *) todo = {0};
    stet_names entered = {0};
    stet_status status = STET_OK;
    *stet_vec_add(&todo) = stet_strdup(top);
    while (todo.len > 0 && status == STET_OK) {
        char *dir = todo.at[--todo.len], *full = dir[0] == '/' ? stet_strdup(dir) : stet_file_join(w->f->root, dir);
        stet_names names = {0};
        status = stet_places_deep(w->places, key, dir, true, err);
        if (status == STET_OK && stet_file_list(full, &names, NULL) != STET_OK)
            stet_names_release(&names); /* gone meanwhile */
        for (size_t i = 0; i < names.len && status == STET_OK; i++) {
            struct stat st;
            char *path = stet_file_join(dir, names.at[i]), *at = stet_file_join(full, names.at[i]);
            bool there = !stet_path_is_uncounted(at) && stet_sys_lstat(at, &st) == 0;
            if (there && S_ISDIR(st.st_mode))
                *stet_vec_add(&todo) = stet_strdup(path);
            else if (there && (S_ISLNK(st.st_mode) || (S_ISREG(st.st_mode) && st.st_nlink > 1)))
                status = stet_places_put(w->places, key, path, err);
            if (there && S_ISLNK(st.st_mode) && enters(w, at, &entered))
                *stet_vec_add(&todo) = stet_strdup(path);
            stet_free(path);
            stet_free(at);
        }
        stet_names_release(&names);
        stet_free(dir);
        stet_free(full);
    }
    for (size_t i = 0; i < todo.len; i++)
        stet_free(todo.at[i]);
    stet_vec_release(&todo);
    stet_names_release(&entered);
    return status;
}

/* Listens to what an entry is about. Patterns are placed while they are expanded; here only the way to them. */
static stet_status place_entry(stet_watcher *w, const char *key, bool directory, stet_error *err) {
    size_t way = strlen(STET_WAY_VARIABLE);
    if (key[0] == 'e')
        return strncmp(key + 1, STET_WAY_VARIABLE, way) == 0 ? stet_places_put(w->places, key, key + 1 + way, err)
                                                             : STET_OK;
    if (key[0] == 'g') {
        char *prefix = stet_strndup(key + 1, stet_glob_prefix(key + 1));
        stet_status status = *prefix ? stet_places_put(w->places, key, prefix, err) : STET_OK;
        stet_free(prefix);
        return status;
    }
    stet_status status = stet_places_put(w->places, key, key + 1, err);
    return status == STET_OK && directory ? place_tree(w, key, key + 1, err) : status;
}

static bool is_directory(const stet_watcher *w, const char *key) {
    struct stat st;
    return key[0] == 'f' && fstatat(w->f->root_fd, key + 1, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

static stet_status look_at_key(stet_watcher *w, stet_files_batch *b, const char *key, size_t len, stet_error *err) {
    stet_files_entry *e = stet_files_index_find(&w->f->index, key, len);
    if (!e)
        return STET_OK;
    stet_status status = place_entry(w, e->key, is_directory(w, e->key), err);
    if (status != STET_OK)
        return status;
    e->placed = true;
    if (e->key[0] == 'g') {
        visit v = {w, e->key};
        status = stet_files_scan_glob(b, (size_t)(e - w->f->index.at.at), place_visited, &v, err);
        if (status == STET_OK && w->failed.status != STET_OK) {
            stet_error_move(err, &w->failed);
            status = err ? err->status : STET_INTERNAL;
        }
        return status;
    }
    if (stet_files_is_variable(e))
        return STET_OK;
    stet_look now = {0};
    if (e->key[0] == 'e')
        now = stet_files_variable(w->f, e->key + 1);
    else
        status = stet_look_at(w->f->root_fd, e->key + 1, e->looked ? &e->look : NULL, &now, err);
    return status == STET_OK ? stet_files_bring_up(b, e, &now, err) : status;
}

static stet_status look_at_dirty(stet_watcher *w, stet_files_report *report, stet_error *err) {
    stet_files_batch b = {.f = w->f, .report = report, .since = STET_FILES_TRUST}; /* W3 */
    const void *key;
    size_t len;
    stet_slot *slot;
    stet_status status = stet_files_reconcile(w->f, err);
    stet_files_index *x = &w->f->index;
    for (size_t i = 0; status == STET_OK && stet_map_next(&w->dirty, &i, &key, &len, &slot);)
        status = look_at_key(w, &b, key, len, err);
    /* New ones, and documents that somebody else has changed. A pattern adds what it matches: that comes round too. */
    for (size_t i = 0; i < x->at.len && status == STET_OK; i++) {
        const stet_files_entry *e = &x->at.at[i];
        if (!e->gone && (!e->placed || (e->doubt && !stet_files_is_variable(e))))
            status = look_at_key(w, &b, e->key, e->key_len, err);
    }
    if (status == STET_OK)
        status = stet_files_scan_doubted(&b, err);
    status = stet_files_batch_end(&b, status, err);
    if (status == STET_OK)
        stet_map_clear(&w->dirty);
    return status;
}

static void mark(void *ctx, const char *key) {
    stet_watcher *w = ctx;
    size_t len = strlen(key);
    if (!stet_map_get(&w->dirty, key, len))
        stet_map_put(&w->dirty, key, len, (stet_slot){.n = 1});
}

/* W1: each path is listened to, then everything is looked at. Patterns and directories, which have to be listed to know
 * what to listen to, come round a second time. */
static stet_status look_at_all(stet_watcher *w, stet_files_report *report, stet_error *err) {
    stet_files_index *x = &w->f->index;
    stet_status status = STET_OK;
    stet_places_begin(w->places);
    stet_map_clear(&w->dirty);
    for (size_t i = 0; i < x->at.len && status == STET_OK; i++) {
        stet_files_entry *e = &x->at.at[i];
        e->placed = !e->gone;
        if (!e->gone)
            status = place_entry(w, e->key, false, err);
    }
    if (status == STET_OK) {
        stet_value_release(report->list);
        status = stet_files_scan(w->f, report, err);
    }
    for (size_t i = 0; i < x->at.len && status == STET_OK; i++) {
        const stet_files_entry *e = &x->at.at[i];
        if (!e->gone && (e->key[0] == 'g' || e->look.mode == STET_LOOK_DIRECTORY))
            mark(w, e->key);
    }
    if (status == STET_OK)
        status = look_at_dirty(w, report, err);
    if (status == STET_OK)
        stet_places_end(w->places);
    return status;
}

/* What is followed of the environment: who asks compares it with its own. */
static stet_value variables(stet_watcher *w) {
    stet_value v = stet_value_object();
    const stet_files_index *x = &w->f->index;
    /* Keys are sorted by kind, but for those that were added since. */
    for (size_t i = 0; i < x->at.len; i++) {
        const stet_files_entry *e = &x->at.at[i];
        if (e->key[0] != 'e') {
            if (i < x->sorted && e->key[0] > 'e')
                i = x->sorted - 1;
            continue;
        }
        if (e->gone)
            continue;
        char *id = stet_files_id(e);
        bool known = e->looked && !e->doubt;
        stet_value_put(&v, id,
                       known ? (e->look.mode ? stet_look_value(&e->look) : stet_value_null()) : stet_value_bool(false));
        stet_free(id);
    }
    return v;
}

static void answer(stet_watcher *w, bool current) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "current", stet_value_bool(current));
    if (current && w->asks.len) {
        stet_value_put(&v, "followed", stet_value_int((int64_t)(w->f->index.at.len - w->f->index.gone)));
        stet_value_put(&v, "variables", variables(w));
    }
    size_t len;
    char *text = stet_json_print(v, STET_JSON_CANONICAL, &len);
    if (len > STET_ANSWER_MAX) { /* a pipe takes no more at once */
        stet_free(text);
        text = stet_strdup("{\"current\":false}");
        len = strlen(text);
    }
    for (size_t i = 0; i < w->asks.len; i++) {
        char *path = stet_file_join(w->f->dir, w->asks.at[i]);
        int fd = stet_sys_open(path, O_WRONLY | O_NONBLOCK, 0);
        if (fd < 0 || stet_sys_write(fd, text, len) < 0)
            unlink(path); /* nobody waits any more */
        if (fd >= 0)
            stet_sys_close(fd);
        stet_free(path);
        stet_free(w->asks.at[i]);
    }
    stet_vec_clear(&w->asks);
    stet_free(text);
    stet_value_release(v);
}

static stet_status hear(stet_watcher *w, stet_error *err) {
    stet_watch_event e;
    stet_status status;
    while ((status = stet_watch_next(w->watch, &e, err)) == STET_OK) {
        if (e.kind == STET_WATCH_OVERFLOW) { /* W2; a cookie may be among what was lost */
            w->all = w->others = true;
            list_asks(w);
        } else if (e.number == w->own && !*e.name && e.kind == STET_WATCH_REMOVED) {
            return stet_fail(err, STET_NOT_FOUND, "%s is gone, and the watch with it", w->f->dir);
        } else if (e.number == w->own) {
            if (strncmp(e.name, STET_ASK_PREFIX, strlen(STET_ASK_PREFIX)) == 0 && e.kind == STET_WATCH_CREATED)
                add_ask(w, e.name);
            w->others |= strncmp(e.name, "index", 5) == 0 && strcmp(e.name, "index.lock") != 0;
        } else if (!stet_places_heard(w->places, &e, mark, w)) {
            w->all = true;
        }
    }
    return status == STET_NOT_FOUND ? STET_OK : status;
}

/* The project may have been moved away, and another put in its place. */
static stet_status check_root(const stet_watcher *w, stet_error *err) {
    struct stat a, b;
    if (stet_sys_fstat(w->f->root_fd, &a) == 0 && stet_sys_stat(w->f->root, &b) == 0 && a.st_dev == b.st_dev &&
        a.st_ino == b.st_ino)
        return STET_OK;
    return stet_fail(err, STET_NOT_FOUND, "%s is no longer the project that was watched", w->f->root);
}

static stet_status take_up(stet_watcher *w, stet_files_report *report, stet_error *err) {
    stet_files *f = w->f;
    unsigned reloads = f->reloads;
    stet_status status = check_root(w, err);
    if (status == STET_OK && w->others)
        status = stet_files_catch_up(f, err);
    w->others = false;
    w->all |= f->reloads != reloads; /* keys that places hold are void */
    reloads = f->reloads;
    if (status == STET_OK)
        status = w->all ? look_at_all(w, report, err) : look_at_dirty(w, report, err);
    w->all &= status != STET_OK;
    if (status == STET_OK && f->index.dirty)
        status = stet_files_save(f, err);
    w->all |= f->reloads != reloads;
    return status;
}

/* An index that was lost does not say what is followed and not there: the next drive makes it again, until then there
 * is nothing that could be called current. */
static stet_status find_index(stet_watcher *w, stet_error *err) {
    if (!w->f->lost || !w->others)
        return STET_OK;
    w->others = false;
    w->all = true;
    w->f->lost = w->f->loaded = false;
    stet_places_begin(w->places);
    stet_map_clear(&w->dirty);
    stet_files_index_release(&w->f->index);
    return stet_files_ready(w->f, err);
}

static int64_t now_ms(void) {
    return stet_clock_monotonic_us() / 1000;
}

static bool has_work(const stet_watcher *w) {
    return !w->f->lost && now_ms() >= w->retry_ms && (w->all || w->others || stet_map_len(&w->dirty) > 0);
}

/* A file that can't be read just now, a database that is busy: whoever asks looks by himself and tells. What can't be
 * watched at all ends the watch. */
static stet_status bear(stet_watcher *w, stet_status status, stet_error *err) {
    if (status == STET_OK) {
        w->trouble_ms = w->retry_ms = 0;
        return STET_OK;
    }
    if (status != STET_IO && status != STET_DENIED && status != STET_BUSY && status != STET_INVALID &&
        status != STET_CONFLICT)
        return status;
    stet_error_clear(err);
    w->all = true;
    w->trouble_ms = w->trouble_ms == 0 ? TROUBLE_MS : w->trouble_ms < TROUBLE_MOST ? w->trouble_ms * 2 : TROUBLE_MOST;
    w->retry_ms = now_ms() + w->trouble_ms;
    return STET_OK;
}

stet_status stet_watcher_step(stet_watcher *w, int timeout_ms, stet_files_report *report, stet_error *err) {
    stet_error none = STET_ERROR_INIT;
    stet_files_report own = {0};
    err = err ? err : &none;
    stet_files_report *r = report ? report : &own;
    struct pollfd poll_fd = {.fd = stet_watch_fd(w->watch), .events = POLLIN};
    int wait = timeout_ms;
    if (w->asks.len > 0 || (has_work(w) && !w->tried))
        wait = 0;
    else if (has_work(w) && timeout_ms > RETRY_MS)
        wait = RETRY_MS;
    *r = (stet_files_report){.list = stet_value_array()};
    stet_status status = STET_OK;
    if (poll(&poll_fd, 1, wait) < 0 && errno != EINTR)
        status = stet_fail_errno(err, errno, "cannot wait for file events");
    if (status == STET_OK)
        status = hear(w, err);
    if (status == STET_OK)
        status = find_index(w, err);
    w->tried = false;
    if (status == STET_OK && !w->f->lost && (has_work(w) || w->asks.len > 0)) {
        /* W3 */
        w->tried = stet_lock_take(w->commands, STET_LOCK_SHARED, 0, NULL) != STET_OK;
        if (!w->tried) {
            do
                status = take_up(w, r, err);
            while (status == STET_OK && w->all);
            stet_lock_drop(w->commands);
            status = bear(w, status, err);
        }
    }
    answer(w, status == STET_OK && !w->f->lost && !w->tried && w->trouble_ms == 0);
    if (status != STET_OK)
        stet_lock_drop(w->lock);
    if (!report)
        stet_value_release(own.list);
    stet_error_clear(&none);
    return status;
}
