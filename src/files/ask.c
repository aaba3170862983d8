/* ask.c - asking a process that watches whether documents are up to date. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "files/internal.h"
#include "files/path.h"
#include "files/watch.h"
#include "os/clock.h"
#include "os/lock.h"

bool stet_files_is_watched(stet_files *f) {
    stet_lock *lock;
    char *path = stet_file_join(f->dir, STET_WATCH_LOCK);
    bool watched = false;
    if (stet_file_exists(path) && stet_lock_open(path, STET_LOCK_PLAIN, &lock, NULL) == STET_OK) {
        watched = stet_lock_take(lock, STET_LOCK_SHARED, 0, NULL) == STET_BUSY;
        stet_lock_close(lock);
    }
    stet_free(path);
    return watched;
}

/* The cookie: made and opened under another name, so that it can be written to as soon as it is heard of. */
static int make_cookie(stet_files *f, char **path) {
    char *temp = stet_file_temp_name(f->dir, "tmp");
    int fd = -1;
    *path = stet_asprintf("%s/" STET_ASK_PREFIX "%s", f->dir, stet_file_basename(temp));
    if (mkfifo(temp, 0600) == 0) {
        fd = stet_sys_open(temp, O_RDONLY | O_NONBLOCK, 0);
        if (fd >= 0 && stet_sys_rename(temp, *path) != 0) {
            stet_sys_close(fd);
            fd = -1;
        }
        if (fd < 0)
            unlink(temp);
    }
    stet_free(temp);
    return fd;
}

bool stet_files_ask(stet_files *f, int timeout_ms) {
    char *path, text[STET_ANSWER_MAX + 1];
    stet_value_release(f->fresh);
    f->fresh = stet_value_null();
    if (!stet_files_is_watched(f))
        return false;
    int fd = make_cookie(f, &path);
    int64_t until = stet_clock_monotonic_us() / 1000 + timeout_ms;
    ssize_t got = -1;
    while (fd >= 0 && got <= 0) {
        int64_t rest = until - stet_clock_monotonic_us() / 1000;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (rest <= 0 || (poll(&p, 1, (int)rest) < 0 && errno != EINTR))
            break;
        if (p.revents & POLLIN)
            got = stet_sys_read(fd, text, sizeof text);
        else if (p.revents) /* it was closed without a word */
            break;
    }
    if (fd >= 0) {
        unlink(path);
        stet_sys_close(fd);
    }
    stet_free(path);
    stet_value v = stet_value_null();
    if (got > 0 && stet_json_parse(text, (size_t)got, &v, NULL) == STET_OK &&
        stet_value_as_bool(stet_value_get(v, "current"))) {
        f->fresh = v;
        return true;
    }
    stet_value_release(v);
    return false;
}

/* Are the variables of this process those that documents speak of? */
static bool same_variables(const stet_files *f, stet_value said) {
    size_t n = stet_value_type(said) == STET_TYPE_OBJECT ? stet_value_count(said) : 0;
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *id = stet_value_key_at(said, i, &len);
        stet_value v = stet_value_at(said, i);
        stet_buf name = STET_BUF(0);
        size_t skip = strlen(STET_ENV_PREFIX);
        bool same = len > skip && stet_path_unescape(id + skip, len - skip, &name);
        stet_look now = same ? stet_files_variable(f, stet_buf_cstr(&name)) : (stet_look){0}, was = {0};
        if (stet_value_type(v) != STET_TYPE_NULL)
            same = same && stet_look_of_value(v, &was);
        same = same && stet_look_same(&was, &now);
        stet_buf_release(&name);
        if (!same)
            return false;
    }
    return true;
}

bool stet_files_is_overruled(stet_files *f, const char *name, stet_value said) {
    stet_look was = {0}, now = stet_files_variable(f, name);
    if (!stet_map_get(&f->told, name, strlen(name)))
        return false;
    return !(stet_value_type(said) == STET_TYPE_NULL || stet_look_of_value(said, &was)) || !stet_look_same(&was, &now);
}

#define MAX_RACES                                                                                                      \
    10 /* how often others may be faster; then what was seen is written, and whoever is right comes later */

static stet_status look_at_rest(stet_files *f, stet_files_report *report, bool trust, bool *raced, stet_error *err) {
    stet_status status = stet_files_reconcile(f, err);
    stet_files_batch b = {.f = f, .report = report, .since = trust ? STET_FILES_TRUST : f->index.seq};
    if (status == STET_OK)
        status = stet_files_scan_doubted(&b, err);
    for (size_t i = 0; i < f->index.at.len && status == STET_OK; i++) {
        stet_files_entry *e = &f->index.at.at[i];
        bool variable = e->key[0] == 'e';
        if (e->gone || e->key[0] == 'g' || (variable ? !stet_files_tells(f, e) : e->looked && !e->doubt))
            continue;
        stet_look now = {0};
        if (variable)
            now = stet_files_variable(f, e->key + 1);
        else
            status = stet_look_at(f->root_fd, e->key + 1, e->looked ? &e->look : NULL, &now, err);
        if (status == STET_OK && (!e->looked || e->doubt || memcmp(&e->look, &now, sizeof now) != 0))
            status = stet_files_bring_up(&b, e, &now, err);
    }
    if (status == STET_OK)
        status = stet_files_scan_doubted(&b, err);
    status = stet_files_batch_end(&b, status, err);
    *raced = b.raced;
    return status;
}

/* What the watcher can't know: variables, and what was followed just now and by nobody before. */
stet_status stet_files_look_at_rest(stet_files *f, stet_files_report *report, stet_error *err) {
    bool raced = true, begun;
    stet_status status = STET_OK;
    stet_files_look_begin(f, &begun);
    for (int i = 0; raced && i <= MAX_RACES && status == STET_OK; i++)
        status = look_at_rest(f, report, i == MAX_RACES, &raced, err);
    stet_files_look_end(f, begun);
    if (status == STET_OK && f->index.dirty)
        status = stet_files_save(f, err);
    return status;
}

stet_status stet_files_refresh(stet_files *f, stet_files_report *report, stet_error *err) {
    if (stet_value_type(f->fresh) == STET_TYPE_NULL)
        return stet_files_scan(f, report, err);
    stet_value said = f->fresh;
    f->fresh = stet_value_null(); /* it is true of this moment */
    stet_status status = STET_OK;
    *report = (stet_files_report){.list = stet_value_array(),
                                  .followed = (size_t)stet_value_as_int(stet_value_get(said, "followed"))};
    if (f->loaded || !same_variables(f, stet_value_get(said, "variables"))) {
        status = stet_files_ready(f, err);
        if (status == STET_OK)
            status = stet_files_catch_up(f, err);
        if (status == STET_OK)
            status = stet_files_look_at_rest(f, report, err);
        report->followed = f->index.at.len - f->index.gone;
    }
    stet_value_release(said);
    if (status == STET_OK && f->branch_name)
        status = stet_files_ready(f, err);
    return status == STET_OK ? stet_files_mirror(f, NULL, 0, err) : status;
}
