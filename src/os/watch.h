/* watch.h - raw inotify over directories.
 *
 *     stet_watch *w;
 *     stet_watch_open(&w, &err);
 *     stet_watch_add(w, dir, &err);                         // this directory, not what is below
 *     poll(stet_watch_fd(w)) ...
 *     while (stet_watch_next(w, &event, &err) == STET_OK) ...   // STET_NOT_FOUND: nothing more now
 *     stet_watch_close(w);
 *
 * An overflow of the kernel's queue comes as an event with kind STET_WATCH_OVERFLOW: the caller scans everything again.
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
    const char *name; /* in it; "" for the directory itself. Valid until the next call. */
    bool is_dir;
} stet_watch_event;

STET_CHECKED stet_status stet_watch_open(stet_watch **out, stet_error *err);
STET_CHECKED stet_status stet_watch_add(stet_watch *w, const char *dir,
                                        stet_error *err); /* STET_LIMIT names the sysctl to raise */
void stet_watch_remove(stet_watch *w, const char *dir);
int stet_watch_fd(const stet_watch *w);
STET_CHECKED stet_status stet_watch_next(stet_watch *w, stet_watch_event *out, stet_error *err);
void stet_watch_close(stet_watch *w);

#endif
