/* watch.c - inotify watches over directories. */

#include "os/watch.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "os/sys.h"

/* Two maps, because the kernel reports watch numbers and callers name directories. */
struct stet_watch {
    int fd;
    stet_map by_number; /* int -> char *, the directory's name as given; owns it */
    stet_map by_name;   /* the name -> number */
    size_t len, at;     /* events in the buffer, and where the next one is */
    char *gone;         /* name of a directory whose watch ended with the event that was just returned */
    char bytes[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)]
        __attribute__((aligned(__alignof__(struct inotify_event))));
};

stet_status stet_watch_open(stet_watch **out, stet_error *err) {
    int error_number = EIO, fd = -1;
    if (stet_sys_ask(STET_SYS_WATCH, NULL, &error_number) == STET_SYS_FAIL)
        errno = error_number;
    else
        fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0 && errno == EMFILE) {
        stet_fail(err, STET_LIMIT, "cannot watch files: this user has too many inotify instances");
        stet_hint(err, "raise them: sysctl fs.inotify.max_user_instances=1024");
        return STET_LIMIT;
    }
    if (fd < 0)
        return stet_fail_errno(err, errno, "cannot watch files");
    stet_watch *w = stet_alloc_zero(sizeof *w);
    w->fd = fd;
    *out = w;
    return STET_OK;
}

#define NAMES (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)

static stet_status place(stet_watch *w, const char *path, uint32_t mask, int *out, stet_error *err) {
    int error_number = EIO, number = -1;
    if (stet_sys_ask(STET_SYS_WATCH, path, &error_number) == STET_SYS_FAIL)
        errno = error_number;
    else
        number = inotify_add_watch(w->fd, path, mask);
    if (number < 0 && errno == ENOSPC) {
        stet_fail(err, STET_LIMIT, "%s: cannot watch it: this user watches too many directories", path);
        stet_hint(err, "raise the limit: sysctl fs.inotify.max_user_watches=1048576");
        return STET_LIMIT;
    }
    if (number < 0 && errno == ENOTDIR)
        return stet_fail(err, STET_INVALID, "%s: cannot watch it: not a directory", path);
    if (number < 0)
        return stet_fail_errno(err, errno, "%s: cannot watch it", path);
    /* The kernel returns the same number for a directory under another name. The first name is kept. */
    if (!stet_map_get(&w->by_number, &number, sizeof number)) {
        stet_map_put(&w->by_number, &number, sizeof number, (stet_slot){.p = stet_strdup(path)});
        stet_map_put(&w->by_name, path, strlen(path), (stet_slot){.n = (uint64_t)number});
    }
    *out = number;
    return STET_OK;
}

stet_status stet_watch_place(stet_watch *w, const char *path, bool file, int *out, stet_error *err) {
    const uint32_t mask =
        IN_CLOSE_WRITE | IN_MODIFY | IN_ATTRIB | NAMES | IN_EXCL_UNLINK | (file ? 0 : (uint32_t)IN_ONLYDIR);
    return place(w, path, mask, out, err);
}

stet_status stet_watch_add(stet_watch *w, const char *dir, stet_error *err) {
    int number;
    return stet_watch_place(w, dir, false, &number, err);
}

stet_status stet_watch_add_names(stet_watch *w, const char *dir, int *number, stet_error *err) {
    return place(w, dir, NAMES | IN_ONLYDIR, number, err);
}

stet_status stet_watch_hold(stet_watch *w, const char *path, int *number, stet_error *err) {
    struct stat st;
    bool dir = stet_sys_stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    const uint32_t self = IN_DELETE_SELF | IN_MOVE_SELF | IN_MASK_ADD;
    return place(w, path, dir ? self | IN_ONLYDIR : self | IN_MODIFY | IN_ATTRIB, number, err);
}

/* Forgets a watch number; the caller frees the name of the directory. */
static char *forget(stet_watch *w, int number) {
    stet_slot *slot = stet_map_get(&w->by_number, &number, sizeof number);
    if (!slot)
        return NULL;
    char *dir = slot->p;
    stet_map_remove(&w->by_number, &number, sizeof number);
    /* Another directory may be watched under this name by now. */
    const stet_slot *named = stet_map_get(&w->by_name, dir, strlen(dir));
    if (named && named->n == (uint64_t)number)
        stet_map_remove(&w->by_name, dir, strlen(dir));
    return dir;
}

void stet_watch_remove(stet_watch *w, const char *dir) {
    stet_slot *slot = stet_map_get(&w->by_name, dir, strlen(dir));
    if (!slot)
        return;
    stet_watch_lift(w, (int)slot->n);
}

void stet_watch_lift(stet_watch *w, int number) {
    inotify_rm_watch(w->fd, number); /* fails only if the directory, and the watch with it, no longer exists */
    stet_free(forget(w, number));
}

int stet_watch_fd(const stet_watch *w) {
    return w->fd;
}

/* Fills the buffer. STET_NOT_FOUND: there are no events now. */
static stet_status fill(stet_watch *w, stet_error *err) {
    ssize_t n = stet_sys_read(w->fd, w->bytes, sizeof w->bytes);
    w->at = 0;
    w->len = n > 0 ? (size_t)n : 0;
    if (n > 0)
        return STET_OK;
    if (n == 0 || errno == EAGAIN)
        return STET_NOT_FOUND;
    return stet_fail_errno(err, errno, "cannot read file events");
}

static stet_watch_kind kind_of(uint32_t mask) {
    if (mask & (IN_CREATE | IN_MOVED_TO))
        return STET_WATCH_CREATED;
    if (mask & (IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT))
        return STET_WATCH_REMOVED;
    return STET_WATCH_CHANGED;
}

stet_status stet_watch_next(stet_watch *w, stet_watch_event *out, stet_error *err) {
    stet_free(w->gone);
    w->gone = NULL;
    for (;;) {
        if (w->at == w->len) {
            stet_status status = fill(w, err);
            if (status != STET_OK)
                return status;
        }
        /* The kernel returns whole, aligned events, each with a NUL-terminated name. */
        const struct inotify_event *e = (const void *)(w->bytes + w->at);
        assert(w->len - w->at >= sizeof *e && w->len - w->at >= sizeof *e + e->len);
        w->at += sizeof *e + e->len;
        if (e->mask & IN_Q_OVERFLOW) {
            *out = (stet_watch_event){.kind = STET_WATCH_OVERFLOW, .name = "", .number = -1};
            return STET_OK;
        }
        stet_slot *slot = stet_map_get(&w->by_number, &e->wd, sizeof e->wd);
        if (!slot)
            continue; /* the watch was removed while its events were still in the queue */
        const char *dir = slot->p;
        if (e->mask & IN_IGNORED) {
            /* The watch has ended by itself. An earlier event, or the unmount, reported that the directory is gone. */
            stet_free(forget(w, e->wd));
            continue;
        }
        if (e->mask & IN_MOVE_SELF) {
            /* The name no longer leads to this directory: end the watch rather than report wrong names. */
            inotify_rm_watch(w->fd, e->wd);
            w->gone = forget(w, e->wd);
            dir = w->gone;
        }
        *out = (stet_watch_event){.kind = kind_of(e->mask),
                                  .dir = dir,
                                  .name = e->len ? e->name : "",
                                  .is_dir = (e->mask & IN_ISDIR) || e->len == 0,
                                  .attributes = !(e->mask & IN_ALL_EVENTS & ~(uint32_t)(IN_ATTRIB | IN_CLOSE_WRITE)),
                                  .number = e->wd};
        return STET_OK;
    }
}

void stet_watch_close(stet_watch *w) {
    if (!w)
        return;
    const void *key;
    size_t key_len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&w->by_number, &i, &key, &key_len, &slot);)
        stet_free(slot->p);
    stet_map_release(&w->by_number);
    stet_map_release(&w->by_name);
    stet_free(w->gone);
    close(w->fd);
    stet_free(w);
}
