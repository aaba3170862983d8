/* places.h - where the kernel must be listened to, so that no change of a followed file goes unheard. Private to
 * src/files.
 *
 *     stet_places *p = stet_places_new(watch, root);
 *     stet_places_begin(p);                                   // everything anew: after a change of directories
 *     status = stet_places_put(p, key, path, &err);           // a file, there or not
 *     stet_places_deep(p, key, dir, ...)                      // whatever happens in this directory is its business
 *     stet_places_end(p);                                     // what is no longer needed is let go
 *     stet_places_heard(p, &event, each, ctx)                 // whose business is it?
 *
 * Of a path every step is listened to: the directory that holds its first part, the one that part is, and so on,
 * through symbolic links to wherever they lead. A change of a step that is not the last (a directory made, moved or
 * removed, a link set elsewhere) changes what is to be listened to: then `stet_places_heard` says that everything is to
 * be placed anew.
 *
 * Keys are borrowed: they stay valid until the next stet_places_begin. They are compared by address. */
#ifndef STET_FILES_PLACES_H
#define STET_FILES_PLACES_H

#include "os/watch.h"

typedef struct stet_places stet_places;

stet_places *stet_places_new(stet_watch *w, const char *root);
void stet_places_free(stet_places *p);
void stet_places_begin(stet_places *p);
/* `path` absolute, or relative to the root. Again is fine. STET_LIMIT: the kernel gives no more watches.
 * STET_UNSUPPORTED: it leads to a file system whose changes are not told. */
STET_CHECKED stet_status stet_places_put(stet_places *p, const char *key, const char *path, stet_error *err);
/* A directory (relative to the root, "" is the root) in which everything counts. One that is not there is left out:
 * whoever asked has put the path as well. `members`: changes of what is in it count too, not only which there are. */
STET_CHECKED stet_status stet_places_deep(stet_places *p, const char *key, const char *dir, bool members,
                                          stet_error *err);
void stet_places_end(stet_places *p);
size_t stet_places_count(const stet_places *p); /* watches */

typedef void (*stet_places_each)(void *ctx, const char *key);
/* False: everything is to be placed anew. */
bool stet_places_heard(stet_places *p, const stet_watch_event *event, stet_places_each each, void *ctx);

#endif
