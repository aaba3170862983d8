/* backoff.h - how long to wait before a failed poll is tried again: exponential, with full jitter, and a budget.
 *
 *     stet_backoff b = {.attempts = 5, .first_ms = 1000, .most_ms = 60000, .seed = seed};
 *     int64_t wait = stet_backoff_next(&b, failures);     // failures so far in a row, from 1; -1: the budget is spent
 *
 * The wait is a random number of milliseconds from 0 to the ceiling of that failure (first_ms, doubled each time, up to
 * most_ms): many callers that failed together do not come back together. The source is the seed and nothing else, so
 * that a test knows what comes. */
#ifndef STET_EXEC_BACKOFF_H
#define STET_EXEC_BACKOFF_H

#include <stdint.h>

typedef struct stet_backoff {
    int64_t attempts; /* how often a call is tried in all before it is given up; at least 1 */
    int64_t first_ms, most_ms;
    uint64_t seed; /* changes with each number that is drawn */
} stet_backoff;

#define STET_BACKOFF_ATTEMPTS 5
#define STET_BACKOFF_FIRST_MS 1000
#define STET_BACKOFF_MOST_MS  60000

/* The longest wait after that many failures. */
int64_t stet_backoff_ceiling(const stet_backoff *b, int64_t failures);
int64_t stet_backoff_next(stet_backoff *b, int64_t failures);

#endif
