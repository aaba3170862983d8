/* repos.c - the list of projects that this user's registry knows. */

#include "fleet/repos.h"

#include <string.h>

#include "base/json.h"
#include "fleet/overlay.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"
#include "project/project.h"

#define FILE_MAX   ((size_t)64 << 20)
#define HINT       "move the file away, then add the projects again with: stet project add"
#define WAIT_SLICE 50 /* ms between two looks at `cancelled` */

static char *file_in(const char *home, const char *name) {
    char *dir = stet_file_join(home, "registry"), *path = stet_file_join(dir, name);
    stet_free(dir);
    return path;
}

static bool valid_entry(stet_value entry) {
    stet_value path = stet_value_get(entry, "path"), added = stet_value_get(entry, "addedAt");
    size_t len;
    if (stet_value_type(path) != STET_TYPE_STRING || stet_value_type(added) != STET_TYPE_STRING)
        return false;
    const char *text = stet_value_as_string(&path, &len);
    return len > 0 && text[0] == '/' && strlen(text) == len;
}

static stet_status corrupt(const char *file, const char *what, stet_error *err) {
    stet_fail(err, STET_CORRUPT, "%s: %s", file, what);
    stet_hint(err, HINT);
    return STET_CORRUPT;
}

static stet_status check_shape(const char *file, stet_value all, stet_error *err) {
    stet_value repos = stet_value_get(all, "repos");
    if (stet_value_type(repos) != STET_TYPE_ARRAY || stet_value_count(repos) > STET_REPOS_MAX)
        return corrupt(file, "no list of projects: repos is no array, or too long", err);
    for (size_t i = 0; i < stet_value_count(repos); i++)
        if (!valid_entry(stet_value_at(repos, i)))
            return corrupt(file, "an entry without an absolute path or addedAt", err);
    return STET_OK;
}

/* The whole file, checked; null when there is none. */
static stet_status load(const char *home, stet_value *out, stet_error *err) {
    char *file = file_in(home, "repos.json");
    stet_status status = stet_derived_load(file, FILE_MAX, STET_REPOS_SCHEMA, out, err);
    if (status == STET_CORRUPT)
        stet_hint(err, HINT);
    if (status == STET_OK && stet_value_type(*out) != STET_TYPE_NULL &&
        (status = check_shape(file, *out, err)) != STET_OK)
        stet_value_release(*out);
    stet_free(file);
    return status;
}

static int order(stet_value entry, const char *path) {
    stet_value own = stet_value_get(entry, "path");
    size_t len;
    return strcmp(stet_value_as_string(&own, &len), path);
}

/* Sorts by path and drops duplicates: people may have edited the file. */
static stet_value sorted(stet_value repos) {
    stet_value out = stet_value_array();
    for (size_t i = 0; i < stet_value_count(repos); i++) {
        stet_value entry = stet_value_at(repos, i), path = stet_value_get(entry, "path");
        size_t len, low = 0, high = stet_value_count(out);
        const char *text = stet_value_as_string(&path, &len);
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (order(stet_value_at(out, middle), text) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == stet_value_count(out) || order(stet_value_at(out, low), text) != 0)
            stet_value_insert_at(&out, low, stet_value_retain(entry));
    }
    return out;
}

stet_status stet_repos_list(const char *home, stet_value *out, stet_error *err) {
    stet_value all;
    stet_status status = load(home, &all, err);
    if (status != STET_OK)
        return status;
    *out = sorted(stet_value_get(all, "repos"));
    stet_value_release(all);
    return STET_OK;
}

stet_status stet_repos_make_home(const char *home, stet_error *err) {
    char *dir = stet_file_join(home, "registry");
    stet_status status = stet_file_mkdirs(dir, 0755, err);
    if (status != STET_OK) {
        /* a hint that names the way out */
        stet_hint_instead(err, "make it writable, or set STET_HOME to another directory");
    }
    stet_free(dir);
    return status;
}

static stet_status take_lock(const char *home, const stet_repos_wait *wait, stet_lock **out, stet_error *err) {
    char *path = file_in(home, "repos.lock");
    stet_lock *lock = NULL;
    stet_status status = stet_repos_make_home(home, err);
    if (status == STET_OK)
        status = stet_lock_open(path, STET_LOCK_PLAIN, &lock, err);
    int64_t until = stet_clock_monotonic_us() + (int64_t)(wait ? wait->timeout_ms : 10000) * 1000;
    while (status == STET_OK) {
        stet_error why = STET_ERROR_INIT;
        int64_t left = (until - stet_clock_monotonic_us()) / 1000;
        int slice = left <= 0 ? 0 : left < WAIT_SLICE ? (int)left : WAIT_SLICE;
        stet_status taken = stet_lock_take(lock, STET_LOCK_EXCLUSIVE, slice, &why);
        if (taken == STET_OK)
            break;
        if (taken == STET_BUSY && wait && wait->cancelled && wait->cancelled(wait->ctx)) {
            stet_error_clear(&why);
            status = stet_fail(err, STET_CANCELLED, "interrupted while waiting for %s", path);
        } else if (taken != STET_BUSY || left <= 0) {
            stet_error_move(err, &why);
            status = taken;
        } else {
            stet_error_clear(&why);
        }
    }
    if (status == STET_OK)
        *out = lock;
    else
        stet_lock_close(lock);
    stet_free(path);
    return status;
}

/* Consumes `repos`. Members of the file that are not ours are kept. */
static stet_status store(const char *home, stet_value all, stet_value repos, stet_error *err) {
    stet_value whole = stet_value_type(all) == STET_TYPE_OBJECT ? stet_value_retain(all) : stet_value_object();
    stet_value_put(&whole, "schemaVersion", stet_value_int(STET_REPOS_SCHEMA));
    stet_value_put(&whole, "repos", repos);
    stet_buf text = STET_BUF(FILE_MAX);
    stet_json_write(&text, whole, STET_JSON_PRETTY);
    char *file = file_in(home, "repos.json");
    stet_status status = text.overflow ? stet_fail(err, STET_LIMIT, "%s: more than %zu bytes", file, FILE_MAX)
                                       : stet_file_replace(file, stet_buf_cstr(&text), text.len, 0644, err);
    stet_free(file);
    stet_buf_release(&text);
    stet_value_release(whole);
    return status;
}

/* Index of `path` in a sorted list; count if absent. */
static size_t index_of(stet_value repos, const char *path) {
    size_t i = 0, n = stet_value_count(repos);
    while (i < n && order(stet_value_at(repos, i), path) != 0)
        i++;
    return i;
}

static stet_status project_root(const char *dir, char **out, stet_error *err) {
    stet_project *p;
    stet_status status = stet_project_find(dir, &p, err);
    if (status != STET_OK)
        return status;
    *out = stet_strdup(stet_project_root(p));
    stet_project_close(p);
    return STET_OK;
}

stet_status stet_repos_add(const char *home, const char *dir, int64_t now_ms, const stet_repos_wait *wait, char **root,
                           bool *added, stet_error *err) {
    char *path;
    stet_lock *lock;
    stet_status status = project_root(dir, &path, err);
    if (status != STET_OK)
        return status;
    status = take_lock(home, wait, &lock, err);
    if (status != STET_OK) {
        stet_free(path);
        return status;
    }
    stet_value all, text;
    bool fresh = false;
    status = load(home, &all, err);
    if (status == STET_OK) {
        stet_value repos = sorted(stet_value_get(all, "repos"));
        fresh = index_of(repos, path) == stet_value_count(repos);
        status = fresh ? stet_value_string_checked(path, strlen(path), &text, err) : STET_OK;
        if (fresh && status == STET_OK && stet_value_count(repos) >= STET_REPOS_MAX) {
            stet_value_release(text);
            status = stet_fail(err, STET_LIMIT, "%d projects are listed, which is the most", STET_REPOS_MAX);
        }
        if (fresh && status == STET_OK) {
            stet_value entry = stet_value_object();
            stet_value_put(&entry, "path", text);
            stet_value_put(&entry, "addedAt", stet_time_value(now_ms));
            stet_value_push(&repos, entry);
            stet_value list = sorted(repos);
            stet_value_release(repos);
            status = store(home, all, list, err);
        } else {
            stet_value_release(repos);
        }
        stet_value_release(all);
    }
    stet_lock_close(lock);
    if (status == STET_OK) {
        *root = path;
        *added = fresh;
    } else {
        stet_free(path);
    }
    return status;
}

/* What `dir` is called in the list: the root of the project around it, else its real path, else the words as given. */
static stet_status listed_name(stet_value repos, const char *dir, char **out, stet_error *err) {
    char *candidates[3] = {NULL, NULL, stet_strdup(dir)};
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        candidates[2][--n] = 0;
    if (project_root(dir, &candidates[0], NULL) != STET_OK)
        candidates[0] = NULL;
    if (stet_file_realpath(dir, &candidates[1], NULL) != STET_OK)
        candidates[1] = NULL;
    *out = NULL;
    /* The exact path first: a project whose .stet/ is gone may lie inside another one. */
    for (int i = 2; i >= 0; i--) {
        if (candidates[i] && !*out && index_of(repos, candidates[i]) < stet_value_count(repos)) {
            *out = candidates[i];
            candidates[i] = NULL;
        }
    }
    for (int i = 0; i < 3; i++)
        stet_free(candidates[i]);
    if (*out)
        return STET_OK;
    stet_fail(err, STET_NOT_FOUND, "%s: not among the listed projects", dir);
    stet_hint(err, "stet project list shows them");
    return STET_NOT_FOUND;
}

stet_status stet_repos_remove(const char *home, const char *dir, const stet_repos_wait *wait, char **path,
                              stet_error *err) {
    stet_lock *lock;
    stet_status status = take_lock(home, wait, &lock, err);
    if (status != STET_OK)
        return status;
    stet_value all;
    status = load(home, &all, err);
    if (status == STET_OK) {
        stet_value repos = sorted(stet_value_get(all, "repos"));
        char *name = NULL;
        status = listed_name(repos, dir, &name, err);
        if (status == STET_OK) {
            stet_value_remove_at(&repos, index_of(repos, name));
            status = store(home, all, repos, err);
        } else {
            stet_value_release(repos);
        }
        if (status == STET_OK)
            *path = name;
        else
            stet_free(name);
        stet_value_release(all);
    }
    stet_lock_close(lock);
    return status;
}
