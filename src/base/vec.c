/* vec.c - grows the arrays of vec.h. */

#include "base/vec.h"

#include <stdint.h>

void *stet_vec_grow(void *at, size_t *cap, size_t want, size_t size) {
    if (want <= *cap)
        return at;
    size_t max = SIZE_MAX / 2 / size;
    size_t room = *cap < max / 2 ? *cap * 2 : max;
    if (room < 8)
        room = 8;
    if (room < want)
        room = want;
    if (room > max)
        room = SIZE_MAX / size; /* no machine has that much: stet_realloc ends the process */
    at = stet_realloc(at, room * size);
    *cap = room;
    return at;
}
