/* remove.h - deletes runs by a plan that is looked at first and verified when it is carried out.
 *
 *     stet_removal plan;
 *     stet_status status = stet_removal_plan(reg, &choice, &plan, &err); // changes nothing
 *     if (status == STET_OK && stet_hash_equal(plan.id, wanted))
 *         status = stet_removal_apply(reg, &plan, &err);
 *     stet_removal_release(&plan);
 *
 * Rules
 *   D1  Only runs that have ended are deleted: completed, failed, resolved or blocked, and driven by nobody.
 *   D2  A run stays while an entry of the queue that may still run names it.
 *   D3  A run stays if it resolves a failed run that stays: that one would be an open failure again.
 *   D4  A run with the label `keep` stays. One that is named is refused, and says so.
 *       So does each run of a project whose labels or marks can't be read.
 *   D5  Runs of other programs (runs/ is a symbolic link) stay.
 *   D6  A run goes whole or not at all: its directory is renamed to a name that no reader takes for a run, under the lock
 *       of its driver, and only then emptied. What a crash leaves then is collected by `gc`.
 *   D7  A plan is named by the SHA-256 over each run's project, id, the SHA-256 of its state, and number and size of its
 *       files. A run that is not as the plan says when its turn comes stays, and is reported.
 */
#ifndef STET_FLEET_REMOVE_H
#define STET_FLEET_REMOVE_H

#include "fleet/policy.h"
#include "fleet/query.h"

typedef struct stet_removal_choice {
    const stet_fleet_records *named; /* these runs; or NULL: by the rules below */
    stet_policy_runs rules;          /* statuses 0: completed and resolved */
    const char *app, *repo;          /* only of these; NULL: any */
    int64_t now_ms;
    stet_value queue; /* the entries of the queue */
} stet_removal_choice;

typedef struct stet_removal_run {
    const stet_fleet_record *record;
    uint64_t files, bytes;
    stet_hash state;    /* SHA-256 of state.json */
    const char *reason; /* NULL: it goes. Otherwise why it stays; in the plan's arena */
} stet_removal_run;

typedef struct stet_removal {
    STET_VEC(stet_removal_run) runs; /* that go */
    STET_VEC(stet_removal_run) kept; /* that were named, or picked, and stay */
    uint64_t bytes;
    stet_hash id;
    stet_arena arena;
} stet_removal;

STET_CHECKED stet_status stet_removal_plan(const stet_registry *reg, const stet_removal_choice *choice,
                                           stet_removal *out, stet_error *err);
/* Deletes the runs of the plan. Those that are no longer as the plan says are moved to `kept`, with the reason. */
STET_CHECKED stet_status stet_removal_apply(const stet_registry *reg, stet_removal *plan, stet_error *err);
void stet_removal_release(stet_removal *plan);

#endif
