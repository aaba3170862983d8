/* policy.h - what a user wants done with runs and the queue: $STET_HOME/policy.toml.
 *
 *     stet_policy p;
 *     stet_status status = stet_policy_load(home, &p, &err); // without the file: the defaults
 *
 *   [archive]
 *   older-than-days = 30                  # runs archive --policy
 *   states = ["completed", "failed"]
 *
 *   [delete]
 *   older-than-days = 365                 # runs delete --policy
 *   states = ["completed"]
 *   max-bytes = 2_000_000_000             # of all runs of one project: the oldest go first
 *
 *   [queue]
 *   order = "oldest"                      # or "newest": which of the entries of one priority comes first
 *   jobs = 4                              # queue work without -j
 *   max-attempts = 5                      # queue add without --max-attempts
 *   back-off = 10                         # seconds before a second attempt, doubled for each further one
 *
 * A member that is not known, or of the wrong type, is STET_INVALID, with its line: a policy that is misspelt must not
 * be taken for none. Nothing here is ever stored in an index.
 */
#ifndef STET_FLEET_POLICY_H
#define STET_FLEET_POLICY_H

#include "base/error.h"

/* Which runs a rule picks. */
typedef struct stet_policy_runs {
    int64_t older_than_days; /* 0: none by age */
    int64_t max_bytes;       /* 0: none by size */
    unsigned statuses;       /* bits 1 << stet_lifecycle; 0: what the operation takes by itself */
} stet_policy_runs;

typedef struct stet_policy {
    stet_policy_runs archive, remove;
    bool newest_first;
    int64_t jobs, max_attempts, back_off_ms; /* 0: the default */
} stet_policy;

STET_CHECKED stet_status stet_policy_load(const char *home, stet_policy *out, stet_error *err);

#endif
