/* open.c - the handle: its paths, the layout of the directory, write permission, locks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/toml.h"
#include "os/clock.h"
#include "os/proc.h"
#include "persist/internal.h"

char *stet_ppath(const char *dir, const char *name) {
    return stet_asprintf("%s/%s", dir, name);
}

/* A directory of the layout must not be a symlink, which could lead anywhere. */
static stet_status refuse_symlink(const char *path, stet_error *err) {
    struct stat st;
    if (stet_sys_lstat(path, &st) != 0)
        return errno == ENOENT || errno == ENOTDIR ? STET_OK : stet_fail_errno(err, errno, "%s: cannot stat", path);
    if (S_ISLNK(st.st_mode)) {
        stet_fail(err, STET_DENIED, "%s is a symbolic link, and is not followed", path);
        stet_hint(err, "put the whole persistence directory elsewhere instead (persist.defaults.dir_path)");
        return STET_DENIED;
    }
    if (!S_ISDIR(st.st_mode))
        return stet_fail(err, STET_INVALID, "%s is not a directory", path);
    return STET_OK;
}

static stet_status check_layout(stet_persist *p, stet_error *err) {
    const char *const dirs[] = {p->snapshots_dir, p->log_dir, p->objects_dir, p->fresh_dir, p->locks_dir, p->pins_dir};
    stet_status status = STET_OK;
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs && status == STET_OK; i++)
        status = refuse_symlink(dirs[i], err);
    static const char *const locks[] = {"objects.lock", "modification.lock", "entry_log.lock"};
    for (size_t i = 0; i < 3 && status == STET_OK; i++) {
        char *path = stet_ppath(p->locks_dir, locks[i]);
        struct stat st;
        if (stet_sys_lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
            status = stet_fail(err, STET_DENIED, "%s is not a regular file", path);
        stet_free(path);
    }
    return status;
}

stet_status stet_persist_read_file(const char *path, char **text, size_t *len, struct stat *st, stet_error *err) {
    int fd = stet_sys_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return errno == ELOOP ? stet_fail(err, STET_DENIED, "%s is a symbolic link, and is not followed", path)
                              : stet_fail_errno(err, errno, "%s: cannot open", path);
    stet_status status = STET_OK;
    struct stat now;
    if (stet_sys_fstat(fd, &now) != 0)
        status = stet_fail_errno(err, errno, "%s: cannot stat", path);
    else if (!S_ISREG(now.st_mode))
        status = stet_fail(err, STET_INVALID, "%s is not a regular file", path);
    else if ((uint64_t)now.st_size > STET_PERSIST_FILE_MAX)
        status = stet_fail(err, STET_LIMIT, "%s: %lld bytes, more than the %u allowed", path, (long long)now.st_size,
                           STET_PERSIST_FILE_MAX);
    if (status == STET_OK) {
        char *bytes = stet_alloc((size_t)now.st_size + 1);
        status = stet_file_read_all(fd, path, bytes, (size_t)now.st_size, len, err);
        bytes[status == STET_OK ? *len : 0] = '\0';
        if (status == STET_OK) {
            *text = bytes;
            if (st)
                *st = now;
        } else
            stet_free(bytes);
    }
    stet_sys_close(fd);
    return status;
}

/* The version in config.toml decides whether this program may write. The file may be absent (a synchroniser may bring
 * it later). */
static stet_status read_config(stet_persist *p, stet_error *err) {
    char *path = stet_ppath(p->dir, "config.toml"), *text = NULL;
    size_t len;
    stet_error local = STET_ERROR_INIT;
    stet_value config = stet_value_null();
    stet_status status = stet_persist_read_file(path, &text, &len, NULL, &local);
    if (status == STET_OK)
        status = stet_toml_parse(text, len, &config, &local);
    if (status == STET_NOT_FOUND)
        status = STET_OK;
    else if (status == STET_OK) {
        stet_value version = stet_value_get(config, "version"), format = stet_value_get(config, "entry_storage_format");
        const char *v = stet_value_as_string(&version, NULL), *f = stet_value_as_string(&format, NULL);
        if (!v || strcmp(v, "1") != 0)
            snprintf(p->read_only, sizeof p->read_only, "%.150s is of version \"%.20s\", and this program writes \"1\"",
                     path, v ? v : "?");
        else if (f && strcmp(f, "toml") != 0)
            status = stet_fail(err, STET_UNSUPPORTED, "%s: entry_storage_format \"%.40s\" is not known here", path, f);
    } else if (status == STET_INVALID) {
        /* Half a file: it is being synchronised. Reading is safe, because each entry has a hash. */
        snprintf(p->read_only, sizeof p->read_only, "%.150s is malformed", path);
        status = STET_OK;
    } else
        stet_error_move(err, &local);
    stet_error_clear(&local);
    stet_value_release(config);
    stet_free(text);
    stet_free(path);
    return status;
}

/* The nearest existing directory, for questions about the file system. */
static bool nearest(const char *path, struct stat *st) {
    char *at = stet_strdup(path);
    bool found = false;
    while (!(found = stet_sys_stat(at, st) == 0) && (errno == ENOENT || errno == ENOTDIR)) {
        char *slash = strrchr(at, '/');
        if (!slash || slash == at)
            break;
        *slash = '\0';
    }
    if (!found)
        found = stet_sys_stat("/", st) == 0;
    stet_free(at);
    return found;
}

static bool same_file_system(const char *a, const char *b) {
    struct stat x, y;
    return nearest(a, &x) && nearest(b, &y) && x.st_dev == y.st_dev;
}

static char *absolute(const char *path) {
    if (*path == '/')
        return stet_strdup(path);
    char *cwd = getcwd(NULL, 0);
    char *full = stet_asprintf("%s/%s", cwd ? cwd : ".", path);
    free(cwd);
    return full;
}

static stet_status choose_paths(stet_persist *p, const stet_persist_place *o, stet_error *err) {
    if (!o->dir || !*o->dir)
        return stet_fail(err, STET_INVALID, "no persistence directory was named");
    char *given = absolute(o->dir);
    stet_error local = STET_ERROR_INIT;
    if (stet_file_realpath(given, &p->dir, &local) != STET_OK) {
        stet_error_clear(&local);
        p->dir = stet_strdup(given);
    }
    stet_free(given);
    size_t n = strlen(p->dir);
    while (n > 1 && p->dir[n - 1] == '/')
        p->dir[--n] = '\0';
    p->local = o->local_dir ? absolute(o->local_dir) : stet_ppath(p->dir, "local");
    p->temp = o->temp_dir ? absolute(o->temp_dir) : stet_ppath(p->local, "temp");
    if (!same_file_system(p->temp, p->dir)) {
        stet_free(p->temp);
        p->temp = stet_ppath(p->dir, "local/temp");
    }
    p->trash = same_file_system(p->local, p->dir) ? stet_ppath(p->local, "trash") : stet_ppath(p->dir, "local/trash");
    p->snapshots_dir = stet_ppath(p->dir, "entry_snapshots");
    p->log_dir = stet_ppath(p->dir, "entry_log");
    p->objects_dir = stet_ppath(p->dir, "objects");
    p->fresh_dir = stet_ppath(p->dir, "fresh_objects");
    p->locks_dir = stet_ppath(p->dir, "locks");
    p->pins_dir = stet_ppath(p->dir, "pins");
    if (o->machine_id) {
        size_t len = strlen(o->machine_id);
        if (!len || len >= sizeof p->machine_id ||
            strspn(o->machine_id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") != len)
            return stet_fail(err, STET_INVALID, "not a machine id: \"%.60s\"", o->machine_id);
        memcpy(p->machine_id, o->machine_id, len + 1);
    } else {
        char *home;
        stet_status status = stet_home_dir(&home, err);
        if (status != STET_OK)
            return status;
        status = stet_machine_id(home, p->machine_id, err);
        stet_free(home);
        if (status != STET_OK)
            return status;
    }
    char *name = stet_asprintf("machine_%s.toml", p->machine_id);
    p->log_path = stet_ppath(p->log_dir, name);
    stet_free(name);
    return STET_OK;
}

/* Falls back to reading only if the directory can't be written. */
static void probe_writable(stet_persist *p) {
    struct stat st;
    const char *at = stet_sys_stat(p->dir, &st) == 0 ? p->dir : NULL;
    if (!at || p->read_only[0])
        return;
    if (access(at, W_OK) != 0 || (access(p->objects_dir, F_OK) == 0 && access(p->objects_dir, W_OK) != 0))
        snprintf(p->read_only, sizeof p->read_only, "%.180s can't be written: %.40s", p->dir, strerror(errno));
}

stet_status stet_persist_open_place(const stet_persist_place *o, stet_persist **out, stet_error *err) {
    stet_persist *p = stet_alloc_zero(sizeof *p);
    p->config = o->config ? *o->config : stet_persist_config_default();
    p->log_fd = p->files_fd = p->log_look_fd = -1;
    atomic_init(&p->objects_fd, -1);
    pthread_mutex_init(&p->write_mutex, NULL);
    pthread_mutex_init(&p->state_mutex, NULL);
    pthread_mutex_init(&p->uses_mutex, NULL);
    atomic_init(&p->ready, false);
    if (o->read_only)
        strcpy(p->read_only, "it was opened for reading");
    stet_status status = choose_paths(p, o, err);
    if (status == STET_OK)
        status = check_layout(p, err);
    if (status == STET_OK)
        status = read_config(p, err);
    if (status == STET_OK) {
        probe_writable(p);
        stet_puses_open(p);
        *out = p;
        return STET_OK;
    }
    stet_persist_close(p);
    return status;
}

void stet_persist_close(stet_persist *p) {
    if (!p)
        return;
    stet_puses_close(p);
    stet_persist_state_release(p);
    if (p->watch)
        stet_watch_close(p->watch);
    const int fds[] = {p->log_fd, p->files_fd, p->log_look_fd, atomic_load(&p->objects_fd)};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            stet_sys_close(fds[i]);
    stet_lock_close(p->objects_lock);
    stet_lock_close(p->modification_lock);
    stet_lock_close(p->log_lock);
    char *paths[] = {p->marker,  p->dir,      p->local,       p->temp,      p->trash,     p->snapshots_dir,
                     p->log_dir, p->log_path, p->objects_dir, p->fresh_dir, p->locks_dir, p->pins_dir};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        stet_free(paths[i]);
    pthread_mutex_destroy(&p->write_mutex);
    pthread_mutex_destroy(&p->state_mutex);
    pthread_mutex_destroy(&p->uses_mutex);
    stet_free(p);
}

const stet_persist_config *stet_persist_config_of(const stet_persist *p) {
    return &p->config;
}

const char *stet_persist_dir(const stet_persist *p) {
    if (!p)
        return NULL;
    return p->dir;
}

const char *stet_persist_read_only(const stet_persist *p) {
    if (!p)
        return NULL;
    return p->read_only[0] ? p->read_only : NULL;
}

stet_status stet_persist_may_write(const stet_persist *p, stet_error *err) {
    return p->read_only[0] ? stet_fail(err, STET_DENIED, "the persistence directory is only read: %s", p->read_only)
                           : STET_OK;
}

stet_status stet_persist_make_layout(stet_persist *p, stet_error *err) {
    const char *const dirs[] = {p->dir,       p->snapshots_dir, p->log_dir, p->objects_dir,
                                p->fresh_dir, p->locks_dir,     p->local,   p->temp};
    stet_status status = check_layout(p, err);
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs && status == STET_OK; i++)
        status = stet_file_mkdirs(dirs[i], 0777, err);
    if (status != STET_OK)
        return status;
    static const char config[] = "version = \"1\"\n";
    char *path = stet_ppath(p->dir, "config.toml");
    struct stat st;
    if (stet_sys_lstat(path, &st) != 0 && errno == ENOENT) {
        /* Another process may create it first. */
        stet_error local = STET_ERROR_INIT;
        status = stet_file_create(path, config, sizeof config - 1, 0666, &local);
        if (status == STET_CONFLICT)
            status = STET_OK;
        else
            stet_error_move(err, &local);
        stet_error_clear(&local);
    }
    stet_free(path);
    if (status == STET_OK)
        atomic_store(&p->ready, true);
    return status;
}

static stet_status open_lock(stet_persist *p, stet_lock **lock, ino_t *ino, const char *path, stet_error *err) {
    struct stat st;
    stet_error local = STET_ERROR_INIT;
    stet_status status = stet_lock_open(path, STET_LOCK_SQLITE, lock, &local);
    if (status == STET_NOT_FOUND) {
        stet_error_clear(&local);
        status = stet_persist_make_layout(p, &local);
        if (status == STET_OK)
            status = stet_lock_open(path, STET_LOCK_SQLITE, lock, &local);
    }
    if (status == STET_OK && stet_sys_lstat(path, &st) != 0) {
        status = stet_fail_errno(&local, errno, "%s: cannot stat", path);
        stet_lock_close(*lock);
        *lock = NULL;
    }
    if (status == STET_OK)
        *ino = st.st_ino;
    stet_error_move(err, &local);
    return status;
}

/* Takes the lock, and ensures that it is on the file that is there now: somebody may have deleted the files that Git
 * ignores, and a lock on a file that others can't see excludes nobody. */
static stet_status take_lock(stet_persist *p, stet_lock **lock, ino_t *ino, const char *name, int64_t timeout_ms,
                             stet_error *err) {
    char *path = stet_ppath(p->locks_dir, name);
    int64_t until = stet_clock_monotonic_us() + timeout_ms * 1000;
    stet_status status;
    for (;;) {
        status = *lock ? STET_OK : open_lock(p, lock, ino, path, err);
        if (status != STET_OK)
            break;
        int64_t left = (until - stet_clock_monotonic_us()) / 1000;
        status = stet_lock_take(*lock, STET_LOCK_EXCLUSIVE, left > 0 ? (int)left : 0, err);
        struct stat st;
        if (status != STET_OK || (stet_sys_lstat(path, &st) == 0 && st.st_ino == *ino))
            break;
        stet_lock_close(*lock);
        *lock = NULL;
    }
    stet_free(path);
    return status;
}

static bool lock_mutex(pthread_mutex_t *mutex, int64_t timeout_ms) {
    if (pthread_mutex_trylock(mutex) == 0)
        return true;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += (timeout_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return pthread_mutex_timedlock(mutex, &until) == 0;
}

stet_status stet_persist_lock(stet_persist *p, bool objects, stet_error *err) {
    stet_status status = stet_persist_may_write(p, err);
    if (status != STET_OK)
        return status;
    int64_t timeout = p->config.lock_timeout_ms;
    if (!lock_mutex(&p->write_mutex, timeout))
        return stet_fail(err, STET_BUSY, "%s: another thread of this process kept it for %lld ms", p->dir,
                         (long long)timeout);
    if (!atomic_load(&p->ready))
        status = stet_persist_make_layout(p, err);
    if (status == STET_OK && objects)
        status = take_lock(p, &p->objects_lock, &p->objects_lock_ino, "objects.lock", timeout, err);
    if (status == STET_OK) {
        status = take_lock(p, &p->modification_lock, &p->modification_lock_ino, "modification.lock", timeout, err);
        if (status != STET_OK && objects)
            stet_lock_drop(p->objects_lock);
    }
    if (status != STET_OK)
        pthread_mutex_unlock(&p->write_mutex);
    return status;
}

void stet_persist_unlock(stet_persist *p) {
    stet_lock_drop(p->modification_lock);
    if (p->objects_lock && stet_lock_held(p->objects_lock))
        stet_lock_drop(p->objects_lock);
    pthread_mutex_unlock(&p->write_mutex);
}
