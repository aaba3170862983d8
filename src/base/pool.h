/* pool.h - allocates the blocks of one large document side by side in chunks.
 *
 *     stet_pool pool = STET_POOL_INIT;
 *     uint32_t home;
 *     void *block = stet_pool_take(&pool, bytes, &home); // any number
 *     stet_pool_end(&pool);                              // always; the blocks stay valid
 *
 *     stet_pool_bin bin = {0};
 *     stet_pool_drop(&bin, block, home, bytes); // each block, in any order, on any thread
 *     stet_pool_flush(&bin);
 *
 * Private to values and the readers that build them. A chunk is freed with its last block, and until then all of it is
 * kept: a string of 20 bytes that outlives its document keeps 64 KiB. Therefore only documents of at least
 * STET_POOL_WORTH bytes of text are read this way; for those the gain is also largest.
 *
 * Why: a process that reads a document into fresh memory pays for the pages. For 50 MB of text (bench/json.c), 24,700
 * pages took 60 to 87 ms of 180 with one allocation per block and one fault per page. With chunks, whose pages are made
 * present by one system call, and without malloc's headers, 22,600 pages take 36 to 51 ms of 150: 340 MB/s instead of
 * 280. Most of the rest is the kernel clearing pages.
 *
 * Rejected:
 *   - huge pages: up to 400 MB/s, but one read in three fell to 120 while the kernel made room for them, and a string
 *     would keep 2 MiB;
 *   - raising M_TOP_PAD: as many faults, and a library does not tune its host's allocator.
 *
 * Running out of memory ends the process, as in stet_alloc.
 */
#ifndef STET_BASE_POOL_H
#define STET_BASE_POOL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__)
#define STET_POOL_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STET_POOL_POISONS 1
#endif
#endif

enum {
    STET_POOL_WORTH = 1 << 20,  /* a reader uses a pool from this many bytes of text on */
    STET_POOL_CHUNK = 64 << 10, /* below malloc's threshold for mmap, so that freed memory is reused */
    STET_POOL_MOST = 4 << 10    /* a larger block is allocated by itself: it would waste the rest of a chunk */
};

typedef struct stet_chunk stet_chunk;

typedef struct stet_pool {
    stet_chunk *chunk;
    char *at, *end;
    uint32_t taken; /* blocks of the chunk */
} stet_pool;

#define STET_POOL_INIT                                                                                                 \
    { NULL, NULL, NULL, 0 }

/* Counts freed blocks of one chunk, so that a run of them costs one atomic operation. */
typedef struct stet_pool_bin {
    stet_chunk *chunk;
    uint32_t gone;
} stet_pool_bin;

void stet_pool_end(stet_pool *pool);
/* A new chunk for the pool. */
void stet_pool_grow(stet_pool *pool);
void stet_pool_flush(stet_pool_bin *bin);
/* With the address sanitizer: any use of these bytes is an error from now on. */
void stet_pool_poison(void *bytes, size_t len);

/* Room for `bytes` (at most STET_POOL_MOST), aligned to 8, `*home` bytes after the start of its chunk. */
static inline void *stet_pool_take(stet_pool *pool, size_t bytes, uint32_t *home) {
    bytes = (bytes + 7) & ~(size_t)7;
    if ((size_t)(pool->end - pool->at) < bytes)
        stet_pool_grow(pool);
    char *b = pool->at;
    pool->at += bytes;
    pool->taken++;
    *home = (uint32_t)(b - (char *)pool->chunk);
    return b;
}

static inline void stet_pool_drop(stet_pool_bin *bin, void *block, uint32_t home, size_t bytes) {
    stet_chunk *chunk = (stet_chunk *)((char *)block - home);
#ifdef STET_POOL_POISONS
    stet_pool_poison(block, bytes);
#else
    (void)bytes;
#endif
    if (bin->chunk != chunk) {
        stet_pool_flush(bin);
        bin->chunk = chunk;
    }
    bin->gone++;
}

#endif
