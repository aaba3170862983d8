/* backoff.c - how long to wait before a failed poll is tried again. */

#include "call/backoff.h"

/* splitmix64 */
static uint64_t draw(uint64_t *seed) {
    uint64_t z = *seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t stet_backoff_ceiling(const stet_backoff *b, int64_t failures) {
    int64_t ceiling = b->first_ms;
    for (int64_t i = 1; i < failures && ceiling < b->most_ms; i++)
        ceiling *= 2;
    return ceiling < b->most_ms ? ceiling : b->most_ms;
}

int64_t stet_backoff_next(stet_backoff *b, int64_t failures) {
    if (failures >= b->attempts)
        return -1;
    int64_t ceiling = stet_backoff_ceiling(b, failures);
    return ceiling <= 0 ? 0 : (int64_t)(draw(&b->seed) % ((uint64_t)ceiling + 1));
}
