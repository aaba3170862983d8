/* manage.h - operations on runs that leave the runs themselves unchanged: marks, and new runs made from old ones. */
#ifndef STET_FLEET_MANAGE_H
#define STET_FLEET_MANAGE_H

#include "fleet/query.h"
#include "fleet/run.h"

/* Marks these records as archived, or clears the mark. One file per project is replaced, however many runs. The runs
 * themselves are not moved, changed or deleted. */
STET_CHECKED stet_status stet_runs_archive(const stet_registry *reg, const stet_fleet_records *runs, bool unarchive,
                                           const char *reason, const char *actor, const char *at, stet_error *err);
/* Sets the labels of a run (array of strings), which replace those in its state. */
STET_CHECKED stet_status stet_runs_label(const stet_registry *reg, const stet_fleet_record *r, stet_value labels,
                                         stet_error *err);
bool stet_label_valid(const char *label);

/* Creates a new run with the app, inputs (overridden by `overrides`) and tasks of the original, all pending; the
 * original stays as it is. The link is recorded in the new run and in the project's provenance.json. STET_BUSY: the
 * original is being driven. */
STET_CHECKED stet_status stet_runs_rerun(const stet_registry *reg, const stet_fleet_record *r, stet_value overrides,
                                         const char *reason, const char *actor, char new_id[STET_RUN_ID_MAX + 1],
                                         stet_value *provenance, stet_error *err);
/* Cancels a run. If nobody drives it, it is ended here: unfinished tasks become failed with status cancelled. Otherwise
 * its driver is asked to stop (`*asked`). STET_CONFLICT: nothing is left to cancel. */
/* Takes a rerun back that could not begin: removes it if it is still as it was made. */
void stet_runs_undo_rerun(const stet_registry *reg, const stet_fleet_record *r, const char *new_id);
STET_CHECKED stet_status stet_runs_cancel(const stet_fleet_record *r, const char *reason, bool *asked, stet_error *err);

/* The differences of two states: {same, app, inputs, options, tasks, summary, commits}. Belongs to the caller. */
stet_value stet_runs_compare(const stet_state *a, const stet_state *b);
/* Statistics of the matching records: {total, byLifecycle, failureRate, durationMs {median, p90, max, total}, actions
 * {stood, ran, hitRate}, savedMs, apps [...]}. */
stet_value stet_runs_stats(const stet_registry *reg, const stet_fleet_query *q);

#endif
