/* watch.c - for long-lived processes: notices changes, and merges when that is due. */

#include <errno.h>
#include <poll.h>

#include "os/clock.h"
#include "persist/internal.h"

static stet_status open_watch(stet_persist *p, stet_error *err) {
    if (p->watch)
        return STET_OK;
    stet_status status = STET_OK;
    if (!p->read_only[0] && !atomic_load(&p->ready))
        status = stet_persist_make_layout(p, err);
    stet_watch *w = NULL;
    if (status == STET_OK)
        status = stet_watch_open(&w, err);
    const char *const dirs[] = {p->snapshots_dir, p->log_dir};
    for (size_t i = 0; i < 2 && status == STET_OK; i++)
        status = stet_watch_add(w, dirs[i], err);
    /* The present state is known; everything after it is a change. */
    if (status == STET_OK)
        status = stet_persist_load(p, false, err);
    if (status == STET_OK) {
        p->watch = w;
        p->reported = p->generation;
    } else if (w)
        stet_watch_close(w);
    return status;
}

int stet_persist_watch_fd(stet_persist *p, stet_error *err) {
    pthread_mutex_lock(&p->state_mutex);
    stet_status status = open_watch(p, err);
    int fd = status == STET_OK ? stet_watch_fd(p->watch) : -1;
    pthread_mutex_unlock(&p->state_mutex);
    return fd;
}

/* The content of the events does not matter: the directory itself is read again. */
static bool drain(stet_persist *p) {
    stet_watch_event event;
    bool any = false;
    pthread_mutex_lock(&p->state_mutex);
    while (stet_watch_next(p->watch, &event, NULL) == STET_OK)
        any = true;
    pthread_mutex_unlock(&p->state_mutex);
    return any;
}

stet_status stet_persist_wait(stet_persist *p, int timeout_ms, stet_error *err) {
    if (!p)
        return stet_fail_null(err);
    int fd = stet_persist_watch_fd(p, err);
    if (fd < 0)
        return err && err->status != STET_OK ? err->status : STET_IO;
    int64_t until = timeout_ms < 0 ? -1 : stet_clock_monotonic_us() + (int64_t)timeout_ms * 1000;
    for (;;) {
        /* Includes what other users of the handle have loaded meanwhile. */
        pthread_mutex_lock(&p->state_mutex);
        stet_status status = stet_persist_load(p, false, err);
        bool changed = p->generation != p->reported;
        p->reported = p->generation;
        pthread_mutex_unlock(&p->state_mutex);
        if (status != STET_OK || changed)
            return status;
        int64_t left = until < 0 ? -1 : (until - stet_clock_monotonic_us()) / 1000;
        if (until >= 0 && left <= 0)
            return stet_fail(err, STET_BUSY, "nothing changed in %s for %d ms", p->dir, timeout_ms);
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, (int)left) < 0) {
            if (errno == EINTR)
                return stet_fail(err, STET_CANCELLED, "interrupted while waiting for changes in %s", p->dir);
            return stet_fail_errno(err, errno, "%s: cannot wait for changes", p->dir);
        }
        drain(p);
    }
}

stet_status stet_persist_tick(stet_persist *p, int64_t *next_ms, stet_error *err) {
    if (!p)
        return stet_fail_null(err);
    pthread_mutex_lock(&p->state_mutex);
    stet_status status = stet_persist_load(p, false, err);
    bool due = status == STET_OK && stet_persist_merge_due(p, next_ms);
    pthread_mutex_unlock(&p->state_mutex);
    if (status != STET_OK || !due || p->read_only[0])
        return status;
    status = stet_persist_lock(p, false, err);
    if (status != STET_OK)
        return status;
    status = stet_persist_merge_locked(p, err);
    stet_persist_unlock(p);
    return status;
}

stet_status stet_persist_on_exit(stet_persist *p, stet_error *err) {
    if (!p)
        return stet_fail_null(err);
    if (!p->config.cleanup_on_exit || p->read_only[0])
        return STET_OK;
    pthread_mutex_lock(&p->state_mutex);
    stet_status status = stet_persist_load(p, false, err);
    bool needed = status == STET_OK && (p->log.entries.len || p->tips.len > 1);
    pthread_mutex_unlock(&p->state_mutex);
    if (!needed)
        return status;
    stet_persist_cleanup how = {0};
    stet_persist_cleaned out;
    status = stet_persist_cleanup_run(p, &how, &out, err);
    stet_persist_cleaned_release(&out);
    return status;
}
