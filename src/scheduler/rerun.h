/* rerun.h - computes the result of an action again from what is stored, and compares it with the stored result.
 *
 *     stet_rerun r;
 *     stet_status status = stet_sched_rerun(sched, number, &r, &err);
 *     if (status == STET_OK && r.outcome == STET_RERUN_DIFFERS)
 *         wrong++; // r.differences and r.unrecorded say how
 *     stet_rerun_release(&r);
 *
 * The action runs in a transaction that is never stored. Its space must still be a copy (drive/rerun.h): only the
 * transaction is known not to write.
 *
 * An action is compared if its record is up to date: of this code, of this version, and without a mark. Whether
 * something upstream of it is outdated does not matter, since it runs on the stored inputs. A failure for a reason
 * outside the inputs (a part that is not installed, a full disk) is not compared. Effects, event handlers and what runs
 * outside this process (commands, calls) are left out. For a command that is up to date, `row` is set: it can be run
 * again in a copy of the project (drive/rerun_command.h).
 */
#ifndef STET_SCHEDULER_RERUN_H
#define STET_SCHEDULER_RERUN_H

#include "scheduler/sched.h"

#define STET_RERUN_SHOWN 200 /* bytes of a value that are shown */

typedef enum stet_rerun_outcome {
    STET_RERUN_SAME,
    STET_RERUN_DIFFERS,
    STET_RERUN_VARIES,   /* a command: two reruns differ from each other */
    STET_RERUN_LEFT_OUT, /* an effect, a command, a call */
    STET_RERUN_ACCEPTED, /* something it read has changed, and its result was let stand */
    STET_RERUN_OUTDATED  /* not up to date according to its record */
} stet_rerun_outcome;

typedef struct stet_rerun {
    stet_rerun_outcome outcome;
    char *piece, *node;
    stet_value row; /* of a command's node, or null */
    /* [{"cell","stored","recomputed"}]: texts, shortened; "cell" is "error" for how a run ended. */
    stet_value differences;
    stet_value unrecorded; /* [CELL]: what this run read and the record lacks */
} stet_rerun;

STET_CHECKED stet_status stet_sched_rerun(stet_sched *s, int64_t action, stet_rerun *out, stet_error *err);
void stet_rerun_release(stet_rerun *r);

#endif
