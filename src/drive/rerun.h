/* rerun.h - reruns up-to-date actions in a copy of the project and compares the results.
 *
 *     stet_rerun_spec spec = {.most = 100, .seed = 7};
 *     stet_value report;
 *     stet_status status = stet_rerun_project(project, &spec, &report, &err);
 *     if (status == STET_OK)
 *         stet_value_release(report);
 *
 * Nothing in the project changes: everything happens in a scratch copy (scratch.h). Patterns and files are brought up
 * to date in the copy first, as in a run, so that an action that read a changed file, or belongs to an edited pattern,
 * does not count as up to date. Actions are taken from all spaces and branches. Memory: eight bytes for each action,
 * plus what a few thousand actions need.
 *
 * With `commands`, commands are run again, too, in a copy with the files of the project (rerun_command.h).
 *
 * The report is {"seed","actions","compared","leftOut","outdated","differ","wrong","varying","notes"}:
 *   wrong     at most STET_RERUN_MOST of {"space","branch","piece","node","differences","unrecordedReads"}
 *   differ    how many there are
 *   varying   commands whose reruns differ from each other, if any: {"space","branch","piece","node"}
 *   notes     problems of patterns, if any; pieces of such patterns are compared as they were set up
 */
#ifndef STET_DRIVE_RERUN_H
#define STET_DRIVE_RERUN_H

#include "project/project.h"
#include "scheduler/rerun.h"

#define STET_RERUN_MOST 100

typedef struct stet_rerun_spec {
    size_t most;   /* maximum number of actions to compare, chosen at random; 0: all */
    uint64_t seed; /* of the random choice */
    bool commands; /* also run commands again */
    void *ctx;
    bool (*cancelled)(void *ctx);                                               /* may be NULL */
    void (*progress)(void *ctx, int64_t done, int64_t total, const char *note); /* may be NULL */
} stet_rerun_spec;

/* The report belongs to the caller. */
STET_CHECKED stet_status stet_rerun_project(stet_project *project, const stet_rerun_spec *spec, stet_value *report,
                                            stet_error *err);

#endif
