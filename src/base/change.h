/* change.h - what changed between two values, and whether a change touches a read.
 *
 * A changed leaf is a path whose value changed, or a key that was added or removed. The latter is STET_KEYSET: the key
 * set of its parent changed too, or the length of an array. Changed leaves always come from comparing values, never
 * from the requested operation.
 *
 * A sigil, an object whose only key is "/" (a link), is a leaf, not a container: a place that is a sigil before or
 * after changes as a whole. Readers look through a link, so everything below the place may have another value, and keys
 * that are not in the link itself may exist or not.
 *
 * A read is recursive (the whole subtree at a path) or shallow (the type, key set, length or scalar at that path, and
 * nothing below).
 *
 * Overlap is the one rule of the live scheduler, the durable index and conflict validation. A changed leaf W touches
 *   - a recursive read R if either is a prefix of the other;
 *   - a shallow read R if W is a prefix of R or equal to it, or if W is R plus one key and W is STET_KEYSET.
 */
#ifndef STET_BASE_CHANGE_H
#define STET_BASE_CHANGE_H

#include "base/arena.h"
#include "base/path.h"
#include "base/vec.h"

typedef enum stet_read_kind { STET_RECURSIVE, STET_SHALLOW } stet_read_kind;
typedef enum stet_change_kind { STET_VALUE, STET_KEYSET } stet_change_kind;

typedef struct stet_change {
    stet_pathref path; /* in the arena given to stet_changes_between */
    stet_change_kind kind;
} stet_change;

typedef struct stet_changes {
    stet_change *at; /* sorted by path, no path twice */
    size_t len, cap;
} stet_changes;

bool stet_touches(stet_pathref change, stet_change_kind change_kind, stet_pathref read, stet_read_kind read_kind);

/* Adds the changed leaves from `before` to `after` to `out`. A NULL pointer means that the document is absent on that
 * side; then the root is one STET_KEYSET leaf. Parts that both values share cost nothing. Beyond `max` leaves (0: no
 * limit) the result is collapsed to one leaf at their common prefix: wider, never narrower. */
void stet_changes_between(const stet_value *before, const stet_value *after, size_t max, stet_arena *arena,
                          stet_changes *out);
void stet_changes_release(stet_changes *c); /* the vector; the paths belong to the arena */

#endif
