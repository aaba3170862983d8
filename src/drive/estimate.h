/* estimate.h - how long a drive will still take, by how long the same actions took in earlier runs.
 *
 *     stet_estimate *e = stet_estimate_new(project, "books");       // reads the newest run files of the piece
 *     stet_estimate_started(e, "count");
 *     stet_estimate_note(e, queued, &buf);                          // "12 s, about 8 s left: count, longest"
 *     stet_estimate_ended(e, "count");
 *     stet_estimate_free(e);
 *
 * The times lie in the run files, where each task has its beginning and its end; nothing else is kept for it. An action
 * counts with its longest completed run of those. What is not known of is left out, and without any past there is no
 * estimate, only the time gone by. Never fails: runs that can't be read tell nothing.
 */
#ifndef STET_DRIVE_ESTIMATE_H
#define STET_DRIVE_ESTIMATE_H

#include "base/buf.h"
#include "project/project.h"

#define STET_ESTIMATE_RUNS 10 /* of the past that are looked at */

typedef struct stet_estimate stet_estimate;

stet_estimate *stet_estimate_new(stet_project *project, const char *piece);
void stet_estimate_free(stet_estimate *e); /* NULL is fine */
void stet_estimate_started(stet_estimate *e, const char *node);
void stet_estimate_ended(stet_estimate *e, const char *node);
/* How long an action took, -1 if that is not known. */
int64_t stet_estimate_of(const stet_estimate *e, const char *node);
/* Milliseconds to go, with `queued` actions that have not begun; -1 if nothing is known. `now_us` is monotonic. */
int64_t stet_estimate_left(const stet_estimate *e, size_t queued, int64_t now_us);
/* What the actions that have not begun took, those alone that are `there` (NULL: all): the time that was saved if they
 * stood. */
int64_t stet_estimate_saved(const stet_estimate *e, bool (*there)(void *ctx, const char *node), void *ctx);
/* "12 s, about 8 s left: count, longest": what has gone by, what is left, what runs. */
void stet_estimate_note(const stet_estimate *e, size_t queued, stet_buf *out);

#endif
