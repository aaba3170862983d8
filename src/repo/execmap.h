/* execmap.h - the exec map of a commit: which exec is pinned for which node. Private to src/repo.
 *
 * A map of up to 16 entries is one record. A larger one is split by the first digit of the node's id, each part by the
 * next digit, and so on:
 *
 *   {"count":40000,"parts":{"0":ID,...,"f":ID},"type":"execmap"}
 *     {"count":2500,...}                                              nodes that begin with 0
 *       {"execs":{NODE:EXEC,...},"type":"execmap"}                    at most 16, with one common beginning
 *
 * The shape depends only on the entries. So the same entries have the same id however they came together, and comparing
 * two maps walks down only where ids differ. Ids are hashes and spread evenly: pinning one of 100,000 entries rewrites
 * four records of about a kilobyte.
 *
 * Rejected:
 *   - the map as one record: a pin would cost 13 MB at 100,000 entries;
 *   - a balanced tree: its shape depends on the order in which entries came;
 *   - a list of changes since the parent commit: every reader would walk the history.
 *
 * Depth is at most 64, the digits of an id: that bounds the recursion here.
 */
#ifndef STET_EXEC_EXECMAP_H
#define STET_EXEC_EXECMAP_H

#include "repo/repo_internal.h"

typedef struct stet_pins {
    stet_pin *at;
    size_t len, cap;
} stet_pins;

typedef struct stet_hashes {
    stet_hash *at;
    size_t len, cap;
} stet_hashes;

/* The exec of a node. */
stet_status stet_execmap_get(stet_repo *r, stet_hash map, stet_hash node, bool *there, stet_hash *exec,
                             stet_error *err);
/* Appends all entries to `out`, sorted by node. */
stet_status stet_execmap_list(stet_repo *r, stet_hash map, stet_pins *out, stet_error *err);
/* The differences in `to`: for each node its exec there, or zeros. NULL is the empty map. */
stet_status stet_execmap_diff(stet_repo *r, const stet_hash *from, const stet_hash *to, stet_pins *out,
                              stet_error *err);
/* A map with some entries set; entries with an exec of zeros are removed. `pins` are sorted by node, each node once.
 * NULL is the empty map. New records are stored as `state`; `replaced` (may be NULL) gets the ids of records that are
 * not part of the new map. Needs a write transaction. */
stet_status stet_execmap_set(stet_repo *r, const stet_hash *map, const stet_pin *pins, size_t count,
                             stet_object_state state, stet_hash *out, stet_hashes *replaced, stet_error *err);
/* The same, without storing anything: new records go to `sink`, each after its parts. Nothing is removed. */
stet_status stet_execmap_make(stet_repo *r, const stet_hash *map, const stet_pin *pins, size_t count,
                              const stet_record_sink *sink, stet_hash *out, stet_error *err);
/* The id of a map with these entries; nothing is stored. */
stet_status stet_execmap_id(const stet_pin *pins, size_t count, stet_hash *out, stet_error *err);
/* Sorts by node and keeps the last entry of each. */
void stet_pins_sort(stet_pins *pins);

#endif
