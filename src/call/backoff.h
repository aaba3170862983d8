/* backoff.h - how long to wait before a failed poll is tried again: exponential, with full jitter and a budget.
 *
 *     stet_backoff b = {.attempts = 5, .first_ms = 1000, .most_ms = 60000, .seed = seed};
 *     int64_t wait = stet_backoff_next(&b, failures); // consecutive failures, from 1; -1: the budget is spent
 *
 * The wait is a random number of milliseconds from 0 to a ceiling (first_ms, doubled with each failure, up to most_ms):
 * callers that failed together do not all come back together. The random numbers depend on the seed alone, so that a
 * test can predict them.
 */
#ifndef STET_EXEC_BACKOFF_H
#define STET_EXEC_BACKOFF_H

#include <stdint.h>

typedef struct stet_backoff {
    int64_t attempts; /* maximum number of tries; at least 1 */
    int64_t first_ms, most_ms;
    uint64_t seed; /* changes with each random number */
} stet_backoff;

#define STET_BACKOFF_ATTEMPTS 5
#define STET_BACKOFF_FIRST_MS 1000
#define STET_BACKOFF_MOST_MS  60000

/* The longest wait after that many failures. */
int64_t stet_backoff_ceiling(const stet_backoff *b, int64_t failures);
int64_t stet_backoff_next(stet_backoff *b, int64_t failures);

#endif
