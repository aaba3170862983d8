/* manage.h - what is done to runs without touching what they are: marks, and new runs made after old ones. */
#ifndef STET_FLEET_MANAGE_H
#define STET_FLEET_MANAGE_H

#include "fleet/query.h"
#include "fleet/run.h"

/* Marks these records as archived, or clears the mark: one replacement of a file per project, however many runs. The
 * runs themselves are not moved, changed or deleted. */
STET_CHECKED stet_status stet_runs_archive(const stet_registry *reg, const stet_fleet_records *runs, bool unarchive,
                                           const char *reason, const char *actor, const char *at, stet_error *err);
/* Sets the labels of a run (array of strings), in place of those that it carries in itself. */
STET_CHECKED stet_status stet_runs_label(const stet_registry *reg, const stet_fleet_record *r, stet_value labels,
                                         stet_error *err);
bool stet_label_valid(const char *label);

/* A new run beside the original: its app, inputs (with `overrides` put over them) and tasks, all pending; the original
 * is left as it is. The link is in the new run and in the project's provenance.json. STET_BUSY while somebody drives
 * the original. */
STET_CHECKED stet_status stet_runs_rerun(const stet_registry *reg, const stet_fleet_record *r, stet_value overrides,
                                         const char *reason, const char *actor, char new_id[STET_RUN_ID_MAX + 1],
                                         stet_value *provenance, stet_error *err);
/* A run that nobody drives is ended here: what is left becomes failed with status cancelled. One that is driven is
 * asked
 * (`*asked`). STET_CONFLICT if there is nothing left to cancel. */
STET_CHECKED stet_status stet_runs_cancel(const stet_fleet_record *r, const char *reason, bool *asked, stet_error *err);

/* How two states differ: {same, app, inputs, options, tasks, summary, commits}. Belongs to the caller. */
stet_value stet_runs_compare(const stet_state *a, const stet_state *b);
/* Durations, rates and savings of the records that match: {total, byLifecycle, failureRate, durationMs {median, p90,
 * max, total}, actions {stood, ran, hitRate}, savedMs, apps [...]}. */
stet_value stet_runs_stats(const stet_registry *reg, const stet_fleet_query *q);

#endif
