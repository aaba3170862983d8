/* places.h - which directories to watch so that no change of a followed file is missed. Private to src/files.
 *
 *     stet_places *p = stet_places_new(watch, root);
 *     stet_places_begin(p); // everything anew: after a change of directories
 *     stet_status status = stet_places_put(p, key, path, &err); // a file, whether it exists or not
 *     if (status == STET_OK) // everything in this directory concerns the key
 *         status = stet_places_deep(p, key, dir, false, &err);
 *     stet_places_end(p); // removes watches that are no longer needed
 *     if (!stet_places_heard(p, &event, each, ctx)) // calls each for every key that the event concerns
 *         stet_places_begin(p);
 *     stet_places_free(p);
 *
 * Every step of a path is watched: the directory that holds its first part, the directory that this part is, and so on,
 * through symbolic links to wherever they lead. If a step other than the last changes (a directory is created, moved or
 * removed, or a link is changed), other directories must be watched: then `stet_places_heard` says that everything must
 * be placed anew.
 *
 * Keys are borrowed until the next stet_places_begin. They are compared by address.
 */
#ifndef STET_FILES_PLACES_H
#define STET_FILES_PLACES_H

#include "os/watch.h"

typedef struct stet_places stet_places;

stet_places *stet_places_new(stet_watch *w, const char *root);
void stet_places_free(stet_places *p);
void stet_places_begin(stet_places *p);
/* `path` is absolute, or relative to the root. It may be put again. STET_LIMIT: the kernel has no more watches.
 * STET_UNSUPPORTED: it leads to a file system that does not report changes. */
STET_CHECKED stet_status stet_places_put(stet_places *p, const char *key, const char *path, stet_error *err);
/* A directory (relative to the root, "" is the root) in which everything counts. A missing one is skipped, because the
 * caller has put its path as well. `members`: changes of the files in it count too, not only which files there are. */
STET_CHECKED stet_status stet_places_deep(stet_places *p, const char *key, const char *dir, bool members,
                                          stet_error *err);
void stet_places_end(stet_places *p);
size_t stet_places_count(const stet_places *p); /* watches */

typedef void (*stet_places_each)(void *ctx, const char *key);
/* False: everything must be placed anew. */
bool stet_places_heard(stet_places *p, const stet_watch_event *event, stet_places_each each, void *ctx);

#endif
