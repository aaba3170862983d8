/* drift.h - compares what a running process holds in memory with the stored tables.
 *
 *     stet_live *live = stet_live_open(project);           // in a process that keeps a scheduler: `stet run --watch`
 *     stet_live_answer(live, sched, "main", "", "totals"); // whenever it is idle; costs a stat if nobody asks
 *     stet_live_close(live);
 *
 *     stet_value report;
 *     stet_status status = stet_drift_ask(project, 2000, &report, &err); // in any other process: `stet status --drift`
 *
 * A live process holds the lock of local/live/PID. A process that asks leaves a question beside it (PID.ask), and reads
 * the answer (PID.answer) that carries the question's id. Files are used instead of a socket because they need no
 * thread, and work wherever the locks do. A process that does not answer in time is reported as such; files of a
 * process that has ended are removed. The report:
 *
 *   {"processes":[{"pid","answered","space"?,"branch"?,"piece"?,"actions"?,"differ"?,"drift"?}]}
 */
#ifndef STET_DRIVE_DRIFT_H
#define STET_DRIVE_DRIFT_H

#include "project/project.h"
#include "scheduler/sched.h"

typedef struct stet_live stet_live;
/* NULL: the directory can't be written, so nobody can ask. */
stet_live *stet_live_open(stet_project *project);
void stet_live_answer(stet_live *l, stet_sched *sched, const char *space, const char *branch, const char *piece);
void stet_live_close(stet_live *l); /* NULL is fine */

STET_CHECKED stet_status stet_drift_ask(stet_project *project, int timeout_ms, stet_value *report, stet_error *err);

#endif
