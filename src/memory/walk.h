/* walk.h - the revisions of one document, newest first.
 *
 *     stet_walk w;
 *     stet_walk_begin(&w, s, doc, newest_seq);
 *     while (stet_walk_next(&w, &arena))
 *         printf("%lld: %zu leaves\n", (long long)w.seq, w.rev.leaf_count);
 *
 * Call inside stet_space_enter; failures stick to the database and end the walk.
 */
#ifndef STET_MEMORY_WALK_H
#define STET_MEMORY_WALK_H

#include "memory/internal.h"
#include "memory/record.h"

typedef struct stet_walk {
    stet_space *s;
    int64_t doc;
    int64_t next; /* 0: no more */
    int64_t seq, branch, time_ms;
    stet_record_rev rev; /* its `leaves` are not valid: use the decoded `leaves` */
    const stet_change *leaves;
} stet_walk;

void stet_walk_begin(stet_walk *w, stet_space *s, int64_t doc, int64_t from);
bool stet_walk_next(stet_walk *w, stet_arena *arena);

#endif
