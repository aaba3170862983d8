/* vec.h - growable arrays: macros over any struct { T *at; size_t len, cap; }.
 *
 *     typedef STET_VEC(int) ints;
 *     ints v = {0};
 *     *stet_vec_add(&v) = 3;
 *     for (size_t i = 0; i < v.len; i++)
 *         total += v.at[i];
 *     stet_vec_release(&v);
 */
#ifndef STET_BASE_VEC_H
#define STET_BASE_VEC_H

#include <stdlib.h>

#include "base/error.h"

#define STET_VEC(T)                                                                                                    \
    struct {                                                                                                           \
        T *at;                                                                                                         \
        size_t len, cap;                                                                                               \
    }

/* Grows to hold at least `want` elements. */
#define stet_vec_reserve(v, want) ((v)->at = stet_vec_grow((v)->at, &(v)->cap, (want), sizeof *(v)->at))
/* Adds one uninitialised element and returns a pointer to it. */
#define stet_vec_add(v)     (stet_vec_reserve((v), (v)->len + 1), &(v)->at[(v)->len++])
#define stet_vec_clear(v)   ((v)->len = 0)
#define stet_vec_release(v) (free((v)->at), (v)->at = NULL, (v)->len = (v)->cap = 0)

void *stet_vec_grow(void *at, size_t *cap, size_t want, size_t size);

#endif
