/* watch.h - a process that follows files as they change, and the proof for others that it has seen everything.
 *
 * The process that watches (`stet file watch`, `stet run --watch`):
 *
 *     stet_watcher *w;
 *     stet_status status = stet_watcher_open(project, space, files, &w, &err); // STET_BUSY: one is already watching
 *     while (status == STET_OK && !stop)
 *         status = stet_watcher_step(w, 200, &report, &err); // updates documents, answers questions
 *     stet_watcher_close(w);
 *
 * The process that asks (`stet run`):
 *
 *     bool current = stet_files_ask(files, 2000); // every change made before this call is in the documents
 *     stet_status status = stet_files_refresh(files, &report, &err); // uses that answer, or scans
 *
 * The proof. The watcher holds the lock `watch.lock` in the index's directory; without it there is nobody to ask. A
 * process that asks creates a cookie in that directory, a FIFO named `ask.*`. The kernel reports events in the order in
 * which they happened, so when the watcher sees the cookie it has seen everything before it. It brings the documents up
 * to date, commits, saves the index, and writes its answer into the FIFO. Without an answer in time there is no proof,
 * and everything is scanned, as without a watch. Whatever goes wrong costs a scan.
 *
 *   W1. The watcher says "current" only after a pass in which each path was watched (places.h) before it was looked at,
 *       and everything reported up to the cookie has been looked at since.
 *   W2. An overflow of the kernel's queue, and a change of the directories on the way to a file, lead to a new pass
 *       over everything.
 *   W3. The watcher does not look while a drive runs commands (their lock): outputs are being written, and the drive
 *       writes their documents. Questions in that time are answered with "look yourself".
 *   W4. The watcher learns from the index what others newly follow: their additions are saved before they end.
 *
 * What the kernel does not report is not seen:
 *   - a file that is changed through a shared mapping counts when the mapping is closed;
 *   - changes that other machines make on a network file system never count (such file systems are refused);
 *   - a hard link that is made elsewhere while the watch runs is not reported, nor are changes under that name, until
 *     the file itself is touched (links that existed before are watched).
 */
#ifndef STET_FILES_WATCH_H
#define STET_FILES_WATCH_H

#include "files/files.h"

typedef struct stet_watcher stet_watcher;

/* `files` is borrowed, and must not be used by others meanwhile. STET_BUSY: another process watches. STET_LIMIT,
 * STET_UNSUPPORTED: watching is not possible here; the error says why. */
STET_CHECKED stet_status stet_watcher_open(stet_project *p, stet_space *s, stet_files *files, stet_watcher **out,
                                           stet_error *err);
/* Waits for events, at most timeout_ms, and processes them. `report` (may be NULL; the caller releases its list) says
 * what changed. An error ends the watching: the lock is released. */
STET_CHECKED stet_status stet_watcher_step(stet_watcher *w, int timeout_ms, stet_files_report *report, stet_error *err);
size_t stet_watcher_count(const stet_watcher *w); /* watched directories */
void stet_watcher_close(stet_watcher *w);         /* NULL is fine */

/* Is there a live watch, and is it current? False if unsure. */
bool stet_files_ask(stet_files *f, int timeout_ms);
/* Brings documents up to date. After a successful stet_files_ask it looks only at what the watch can't know (newly
 * followed files, variables of this process); otherwise it scans. */
STET_CHECKED stet_status stet_files_refresh(stet_files *f, stet_files_report *report, stet_error *err);
/* Is a process watching (though perhaps not current)? */
bool stet_files_is_watched(stet_files *f);

#endif
