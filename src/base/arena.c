/* arena.c - memory that is freed all at once. */

#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { ALIGN = 16, FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20 };

struct stet_arena_block {
    struct stet_arena_block *next;
    size_t size, used; /* of bytes */
    size_t pad;        /* keeps bytes aligned to 16 */
    char bytes[];
};

_Static_assert(offsetof(struct stet_arena_block, bytes) % ALIGN == 0, "blocks hand out memory aligned to 16");

/* The head is the block that is being filled. A piece too large for the normal block size gets a block of its own
 * behind the head, so that the room left in the head is not lost. */
static struct stet_arena_block *add_block(stet_arena *a, size_t size) {
    struct stet_arena_block *head = a->head;
    size_t normal = head ? head->size * 2 : FIRST_BLOCK;
    if (normal > LARGEST_BLOCK)
        normal = LARGEST_BLOCK;
    bool alone = size > normal / 2 && head && head->size - head->used >= FIRST_BLOCK / 4;
    size_t bytes = alone || size > normal ? size : normal;
    struct stet_arena_block *block = a->spare;
    if (block && block->size >= bytes) {
        a->spare = block->next;
    } else {
        block = stet_alloc(sizeof *block + bytes);
        block->size = bytes;
    }
    block->used = 0;
    if (alone) {
        block->next = head->next;
        head->next = block;
    } else {
        block->next = head;
        a->head = block;
    }
    return block;
}

void *stet_arena_alloc(stet_arena *a, size_t size) {
    if (size > SIZE_MAX / 2)
        size = SIZE_MAX / 2; /* no machine has that much: stet_alloc ends the process */
    size_t rounded = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    struct stet_arena_block *block = a->head;
    if (!block || block->size - block->used < rounded)
        block = add_block(a, rounded);
    void *p = block->bytes + block->used;
    block->used += rounded;
    a->total += size;
    return p;
}

void *stet_arena_zero(stet_arena *a, size_t size) {
    return memset(stet_arena_alloc(a, size), 0, size);
}

void *stet_arena_dup(stet_arena *a, const void *bytes, size_t len) {
    void *p = stet_arena_alloc(a, len);
    if (len)
        memcpy(p, bytes, len);
    return p;
}

char *stet_arena_strndup(stet_arena *a, const char *s, size_t len) {
    char *p = stet_arena_alloc(a, len + 1);
    if (len)
        memcpy(p, s, len);
    p[len] = 0;
    return p;
}

char *stet_arena_strdup(stet_arena *a, const char *s) {
    return stet_arena_strndup(a, s, strlen(s));
}

static void free_blocks(struct stet_arena_block *b) {
    while (b) {
        struct stet_arena_block *next = b->next;
        free(b);
        b = next;
    }
}

/* Keeps the blocks in the order in which they were filled, the small ones first: they will be needed again. */
void stet_arena_rewind(stet_arena *a) {
    for (struct stet_arena_block *b = a->head, *next; b; b = next) {
        next = b->next;
        b->next = a->spare;
        a->spare = b;
    }
    a->head = NULL;
    a->total = 0;
}

void stet_arena_clear(stet_arena *a) {
    struct stet_arena_block *largest = NULL;
    free_blocks(a->spare);
    a->spare = NULL;
    for (struct stet_arena_block *b = a->head, *next; b; b = next) {
        next = b->next;
        if (!largest || b->size > largest->size) {
            free(largest);
            largest = b;
        } else {
            free(b);
        }
    }
    if (largest) {
        largest->next = NULL;
        largest->used = 0;
    }
    a->head = largest;
    a->total = 0;
}

void stet_arena_release(stet_arena *a) {
    free_blocks(a->head);
    free_blocks(a->spare);
    *a = (stet_arena)STET_ARENA_INIT;
}
