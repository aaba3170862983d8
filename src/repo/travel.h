/* travel.h - pins that travel between repositories with fetch, push and merge. Private to src/repo.
 *
 * A call that was made on one machine is not made again on another one that has fetched its pin. What travels:
 *
 *   T1. Pins of successes. A failure stays where it happened.
 *   T2. Pins whose result is complete on the receiving side of a fetch or merge, and on the sending side of a push. A
 *       result that was lost or excised leaves the pins of the receiver as they are.
 *   T3. Two successes of one call: the one with the smaller id, everywhere. So machines that ran the same call agree
 *       after they have exchanged their pins, in whatever order.
 *
 * Exec maps are compared by their ids. The records of a remote's map are read as far as they are not stored here, and
 * kept in memory: stored, they would need every result that they name (R1 of repo.h).
 */
#ifndef STET_EXEC_TRAVEL_H
#define STET_EXEC_TRAVEL_H

#include "repo/execmap.h"
#include "repo/hub_kind.h"

/* Adds the number of pins that moved to `*count`. */

/* Takes over what the exec map `theirs` pins; what is not stored here is left out. Needs a write transaction. */
stet_status stet_travel_merge(stet_repo *r, stet_hash theirs, int64_t *count, stet_error *err);
/* Takes over what the index of a remote pins, with the results. */
stet_status stet_travel_fetch(stet_repo *r, stet_hub *remote, const stet_remote_opts *o, stet_remote_report *report,
                              stet_error *err);
/* Adds the pins of this repository to the index of a remote, with the results. STET_CONFLICT: the index was swapped by
 * somebody else meanwhile. Needs a read transaction. */
stet_status stet_travel_push(stet_repo *r, stet_hub *remote, const stet_remote_opts *o, stet_remote_report *report,
                             stet_error *err);

#endif
