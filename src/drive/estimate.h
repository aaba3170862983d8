/* estimate.h - estimates how long a drive will still take, from how long its actions took in earlier runs.
 *
 *     stet_estimate *e = stet_estimate_new(project, "books"); // reads the newest run files of the piece
 *     stet_estimate_started(e, "count", true);
 *     stet_estimate_note(e, queued, &buf); // "12 s, about 8 s left: count, longest"
 *     stet_estimate_ended(e, "count");
 *     stet_estimate_free(e);
 *
 * The times are in the run files, where each task has its start and its end; nothing else is stored for this. An action
 * counts with its longest completed run in them. Unknown actions take the mean of the known ones, and without any past
 * there is no estimate, only the elapsed time. Never fails: runs that can't be read are ignored.
 */
#ifndef STET_DRIVE_ESTIMATE_H
#define STET_DRIVE_ESTIMATE_H

#include "base/buf.h"
#include "project/project.h"

#define STET_ESTIMATE_RUNS 10 /* number of past runs that are read */

typedef struct stet_estimate stet_estimate;

stet_estimate *stet_estimate_new(stet_project *project, const char *piece);
void stet_estimate_free(stet_estimate *e); /* NULL is fine */
/* `works`: it works; otherwise it waits for its turn. */
void stet_estimate_started(stet_estimate *e, const char *node, bool works);
void stet_estimate_works(stet_estimate *e, const char *node, bool works);
void stet_estimate_ended(stet_estimate *e, const char *node);
/* How long an action took; -1 if that is not known. */
int64_t stet_estimate_of(const stet_estimate *e, const char *node);
/* Milliseconds to go, with `queued` actions that have not begun; -1 if nothing is known. `now_us` is monotonic. */
int64_t stet_estimate_left(const stet_estimate *e, size_t queued, int64_t now_us);
/* How long the actions that have not begun took, only those that are `there` (NULL: all): the time that was saved if
 * they were up to date. */
int64_t stet_estimate_saved(const stet_estimate *e, bool (*there)(void *ctx, const char *node), void *ctx);
/* Appends "12 s, about 8 s left: count, longest": elapsed time, time left, and what works now. */
void stet_estimate_note(const stet_estimate *e, size_t queued, stet_buf *out);

#endif
