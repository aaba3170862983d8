/* arena.h - memory that is freed all at once.
 *
 *     stet_arena a = STET_ARENA_INIT;
 *     char *s = stet_arena_strndup(&a, p, n);
 *     stet_arena_release(&a); // frees s too
 *
 * An allocation moves a pointer; a single piece can't be freed. stet_arena_clear keeps the largest block for reuse.
 * stet_arena_rewind keeps all blocks, for an arena that is filled again to the same size.
 */
#ifndef STET_BASE_ARENA_H
#define STET_BASE_ARENA_H

#include <stddef.h>

typedef struct stet_arena {
    struct stet_arena_block *head;
    struct stet_arena_block *spare; /* blocks from before the last rewind, not used again yet */
    size_t total;                   /* bytes handed out since init or clear */
} stet_arena;

#define STET_ARENA_INIT                                                                                                \
    { NULL, NULL, 0 }

void *stet_arena_alloc(stet_arena *a, size_t size) __attribute__((returns_nonnull)); /* aligned to 16 */
void *stet_arena_zero(stet_arena *a, size_t size) __attribute__((returns_nonnull));
void *stet_arena_dup(stet_arena *a, const void *bytes, size_t len) __attribute__((returns_nonnull));
char *stet_arena_strndup(stet_arena *a, const char *s, size_t len) __attribute__((returns_nonnull));
char *stet_arena_strdup(stet_arena *a, const char *s) __attribute__((returns_nonnull));
void stet_arena_clear(stet_arena *a);
void stet_arena_rewind(stet_arena *a);
void stet_arena_release(stet_arena *a);

#endif
