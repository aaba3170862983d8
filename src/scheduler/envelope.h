/* envelope.h - where a materializer may write right now.
 *
 *     stet_envelopes e = {.space = s, .branch = branch, .open = open_space, .ctx = ctx};
 *     stet_status status = stet_envelopes_of(&e, &cell, &places, &count, &err); // `cell`: one of those in its row
 *     stet_envelopes_release(&e);
 *
 * The row of a materializer names cells (graph/cells.h). A write through a cell goes where links lead: links on the way
 * to the cell, the cell itself if it holds one, and links inside its value. So the places that it may write to change
 * with documents that it does not own. Nothing of them is stored: everybody who asks finds them in the documents as
 * they are (the plan, `status`, `why`, a dry run), so that pointing a link elsewhere needs no mark of its own.
 *
 * A cell may also stand for a path of files that are made (makes.h): it leads to all that was read of them.
 */
#ifndef STET_SCHEDULER_ENVELOPE_H
#define STET_SCHEDULER_ENVELOPE_H

#include "base/map.h"
#include "graph/makes.h"
#include "memory/observe.h"

typedef struct stet_envelopes {
    stet_space *space;
    int64_t branch;
    /* Another space, by its name. Whatever it fails with, nothing is written through a link into such a space. */
    stet_status (*open)(void *ctx, const char *name, stet_space **out, stet_error *err);
    void *ctx;
    stet_map known; /* scope, id, path of a cell -> what was found, until the release: many share one cell */
    stet_makes_known patterns;
    stet_arena arena;
} stet_envelopes;

/* Those of the cell and all cells of the same space that links in it lead to, to which something may be written. In the
 * memory of `e`. */
STET_CHECKED stet_status stet_envelopes_of(stet_envelopes *e, const stet_address *cell, const stet_address **out,
                                           size_t *count, stet_error *err);
void stet_envelopes_release(stet_envelopes *e);

#endif
