/* watch.h - a process that follows files as they change, and the proof, for others, that it has seen everything.
 *
 * The one that watches (`stet file watch`, `stet run --watch`):
 *
 *     stet_watcher *w;
 *     status = stet_watcher_open(project, space, files, &w, &err);     // STET_BUSY: there is one already
 *     while (...) status = stet_watcher_step(w, 200, &report, &err);   // documents are brought up to date, questions
 * answered stet_watcher_close(w);
 *
 * The one that wants to know (`stet run`):
 *
 *     if (stet_files_ask(files, 2000)) ...                  // every change made before this call is in the documents
 *     status = stet_files_refresh(files, &report, &err);    // that, or else a scan
 *
 * The proof. Who watches holds the lock `watch.lock` of the index's directory; without it there is nobody to ask. Who
 * asks makes a cookie in that directory, a FIFO named `ask.*`. The kernel tells events in the order in which they
 * happened, so when the watcher hears of the cookie it has heard of everything before it; it brings the documents up to
 * date, commits, saves the index, and writes its answer into the FIFO. No answer in time is no proof: then everything
 * is looked at, as without a watch. Whatever goes wrong costs a scan.
 *
 * W1. The watcher says "current" only after a pass in which each path was listened to (places.h) before it was looked
 *     at, and everything heard up to the cookie has been looked at since.
 * W2. An overflow of the kernel's queue, and a change of the directories on the way to a file, lead to a new pass over
 *     everything.
 * W3. It does not look while a drive runs commands (their lock): outputs are being written, and their documents are the
 *     drive's business. Questions in that time are answered with "look yourself".
 * W4. What others follow anew it hears of through the index: their additions are saved before they end.
 *
 * What the kernel does not tell is not seen: a file that is changed through a shared mapping counts when the mapping is
 * closed; changes that other machines make on a network file system never do (such file systems are refused); a hard
 * link that is made elsewhere while the watch runs is not told, nor then changes under that name, until the file itself
 * is touched (those that were there before are listened to). */
#ifndef STET_FILES_WATCH_H
#define STET_FILES_WATCH_H

#include "files/files.h"

typedef struct stet_watcher stet_watcher;

/* `files` is borrowed, and is used by nobody else meanwhile. STET_BUSY: another process watches; STET_LIMIT and
 * STET_UNSUPPORTED: it can't be done here, and the error says why. */
STET_CHECKED stet_status stet_watcher_open(stet_project *p, stet_space *s, stet_files *files, stet_watcher **out,
                                           stet_error *err);
/* Waits for something to happen, at most so long, and takes it up. `report` (may be NULL; the caller releases its list)
 * says what changed. An error ends the watching: the lock is free from then on. */
STET_CHECKED stet_status stet_watcher_step(stet_watcher *w, int timeout_ms, stet_files_report *report, stet_error *err);
size_t stet_watcher_count(const stet_watcher *w); /* directories that are listened to */
void stet_watcher_close(stet_watcher *w);         /* NULL is fine */

/* Is there a live watch, and is it current? False in doubt. */
bool stet_files_ask(stet_files *f, int timeout_ms);
/* Brings documents up to date: after a stet_files_ask that was answered only what it can't know (what is followed
 * since, variables of this process), else by stet_files_scan. */
STET_CHECKED stet_status stet_files_refresh(stet_files *f, stet_files_report *report, stet_error *err);
/* Is somebody watching (though perhaps not current)? */
bool stet_files_is_watched(stet_files *f);

#endif
