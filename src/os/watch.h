/* watch.h - inotify over directories.
 *
 *     stet_watch *w;
 *     stet_status status = stet_watch_open(&w, &err);
 *     if (status != STET_OK)
 *         return status;
 *     status = stet_watch_add(w, dir, &err); // this directory, not what is below it
 *     struct pollfd ready = {.fd = stet_watch_fd(w), .events = POLLIN};
 *     stet_watch_event event;
 *     while (status == STET_OK && poll(&ready, 1, -1) > 0)
 *         while ((status = stet_watch_next(w, &event, &err)) == STET_OK) // STET_NOT_FOUND: nothing more now
 *             printf("%s/%s\n", event.dir, event.name);
 *     stet_watch_close(w);
 *
 * An overflow of the kernel's queue comes as an event of kind STET_WATCH_OVERFLOW: the caller scans everything again.
 */
#ifndef STET_OS_WATCH_H
#define STET_OS_WATCH_H

#include "base/error.h"

typedef struct stet_watch stet_watch;
typedef enum stet_watch_kind {
    STET_WATCH_CHANGED,
    STET_WATCH_CREATED,
    STET_WATCH_REMOVED,
    STET_WATCH_OVERFLOW
} stet_watch_kind;
typedef struct stet_watch_event {
    stet_watch_kind kind;
    const char *dir;  /* as given to stet_watch_add; NULL on overflow */
    const char *name; /* in `dir`; "" for the directory itself. Valid until the next call. */
    bool is_dir;
    bool attributes; /* only its mode, owner, times or number of names have changed */
    int number;      /* of the watch (stet_watch_place); -1 on overflow */
} stet_watch_event;

STET_CHECKED stet_status stet_watch_open(stet_watch **out, stet_error *err);
/* STET_LIMIT: the message names the sysctl to raise. */
STET_CHECKED stet_status stet_watch_add(stet_watch *w, const char *dir, stet_error *err);
/* The same, but only reports what is added to the directory and removed from it: writing to files in it fills no queue.
 * A directory is added in one of the two ways. */
STET_CHECKED stet_status stet_watch_add_names(stet_watch *w, const char *dir, int *number, stet_error *err);
/* Only reports that a directory itself was moved or removed or, for a file, that anything was done to it or its names. `*number`
 * is that of its events. A directory that is watched in another way stays so. */
STET_CHECKED stet_status stet_watch_hold(stet_watch *w, const char *path, int *number, stet_error *err);
void stet_watch_remove(stet_watch *w, const char *dir);
/* The same for callers that keep their own record by the kernel's number. The number identifies the file or directory
 * and not its name: a directory that has two names, or was moved, has one number. `file`: the path may be a file;
 * changes through any of its names are reported. Events name the path that was placed first. */
STET_CHECKED stet_status stet_watch_place(stet_watch *w, const char *path, bool file, int *number, stet_error *err);
void stet_watch_lift(stet_watch *w, int number);
int stet_watch_fd(const stet_watch *w);
STET_CHECKED stet_status stet_watch_next(stet_watch *w, stet_watch_event *out, stet_error *err);
void stet_watch_close(stet_watch *w);

#endif
