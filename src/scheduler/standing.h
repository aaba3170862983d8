/* standing.h - actions that the record does not know, and the states of all actions including them.
 *
 *     stet_standing all;
 *     stet_status status = stet_standing_load(space, branch, &all, &err); // reads, and changes nothing
 *     if (status == STET_OK && stet_standing_of(&all, number) == STET_STATE_STANDS)
 *         up_to_date++;
 *     stet_standing_release(&all);
 *
 * Without a record an action is unknown. A piece may have actions without a row: on a forked branch, which inherits
 * documents but no rows, or after the scheduler's tables were emptied. A caller that only reads gets a list of them
 * (`missing`). A caller that is going to run something gives each of them a row first (stet_standing_adopt).
 */
#ifndef STET_SCHEDULER_STANDING_H
#define STET_SCHEDULER_STANDING_H

#include "graph/piece.h"
#include "memory/observe.h"

/* The states of the actions of a branch: the one answer for status, why, lists and dry runs. */
STET_CHECKED stet_status stet_standing_load(stet_space *s, int64_t branch, stet_standing *out, stet_error *err);
/* The same for a caller that needs only `far`, to bring it up to date: unrecorded actions here are not looked for. */
STET_CHECKED stet_status stet_standing_load_far(stet_space *s, int64_t branch, stet_standing *out, stet_error *err);

/* Spaces that actions of the branch (of one piece, unless `piece` is NULL) read from and that still do not exist:
 * [{"space","piece","action","input"?}]. `input` is missing if a link in a document led there. The caller releases it.
 */
STET_CHECKED stet_status stet_standing_absent(stet_space *s, int64_t branch, const char *piece, stet_value *out,
                                              stet_error *err);
/* Appends one of these as a sentence without a full stop: `space "x" does not exist (input "v" of node p/s)`. */
void stet_standing_print_absent(stet_value absent, stet_buf *out);

/* Makes every action of the branch without a row unknown, and those of pieces that another version of the scheduler
 * ran. One look-up if there is none. */
STET_CHECKED stet_status stet_standing_adopt(stet_space *s, int64_t branch, stet_error *err);
/* The same for one piece, whatever is known about the branch. */
STET_CHECKED stet_status stet_standing_adopt_piece(stet_space *s, int64_t branch, const char *name, stet_error *err);

#endif
