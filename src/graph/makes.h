/* makes.h - which files an action may make, and what is read of them: the answer before it has run.
 *
 *     stet_makes_known known = {0};
 *     stet_value makes = stet_makes_of(s, 0, row, true); // ["gen/{in.stem}.o"]
 *     for (size_t i = 0; i < stet_value_count(makes); i++) {
 *         stet_value path = stet_value_at(makes, i);
 *         stet_address cell = stet_makes_cell(stet_value_as_string(&path, NULL), &arena);
 *         stet_status status = stet_makes_places(&known, s, 0, cell.name.id, &arena, &places, &count, &err);
 *     }
 *     stet_value_release(makes);
 *
 * A command says in its row which files it makes. Which ones the children of a coordinator make is not known while the
 * list is outdated: the paths have {...} in them, and the coordinator stands for all of them, those that it does not
 * have yet and those that it will have no more. What others read of that are documents: of a file, whether it is there
 * or not, of a directory above it, of a pattern that matches it. All of those are places in the envelope of the action
 * (scheduler/envelope.h), so the plan, `status`, `why` and a dry run ask the same question and get the same answer.
 *
 *   M1. A coordinator, and a command that makes up the paths from names of inputs, have them in every record.
 *   M2. Of other commands the record has what they wrote. Without a record that can be trusted the row counts.
 *   M3. A read that only might be concerned counts: what is missed would be wrong, what is taken in costs a look.
 */
#ifndef STET_GRAPH_MAKES_H
#define STET_GRAPH_MAKES_H

#include "base/map.h"
#include "memory/observe.h"

#define STET_MAKES_PREFIX "makes:" /* of the cell in an envelope that stands for such a path */

/* The patterns that are documents, read once for many questions. */
typedef struct stet_makes_known {
    bool loaded;
    const char *const *ids;  /* "glob:..." */
    char **patterns, **real; /* the same as paths, and with links followed; NULL: it has none */
    size_t count;
} stet_makes_known;

/* The paths that the row names, an array of strings. `recorded`: those of M1 alone. Otherwise {...} are filled in with
 * what the inputs of the action say now. */
stet_value stet_makes_of(stet_space *s, int64_t branch, stet_value row, bool recorded);
/* The cell that stands for one of them. In the arena. */
stet_address stet_makes_cell(const char *path, stet_arena *arena);
/* What was ever read that such a cell may be, lie in, or take in. */
STET_CHECKED stet_status stet_makes_places(stet_makes_known *known, stet_space *s, int64_t branch, const char *cell,
                                           stet_arena *arena, const stet_address **out, size_t *count, stet_error *err);

#endif
