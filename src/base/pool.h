/* pool.h - blocks of values in bulk: those of one large document lie side by side in chunks.
 *
 *     stet_pool pool = STET_POOL_INIT;
 *     stet_block *b = stet_pool_take(&pool, bytes);   // any number
 *     stet_pool_end(&pool);                           // always; the blocks live on
 *     ...
 *     stet_pool_bin bin = {0};
 *     stet_pool_drop(&bin, b, home, bytes);           // each, in any order, on any thread
 *     stet_pool_flush(&bin);
 *
 * Private to values and the readers that build them. A chunk is freed with the last of its blocks, and until then all
 * of it is kept: a string of 20 bytes that outlives its document keeps 64 KiB. Therefore only documents of at least
 * STET_POOL_WORTH bytes of text are read this way, where the gain is also largest.
 *
 * Why: a process that reads a document into memory it never had before pays for the pages. Of 50 MB of text
 * (bench/json.c) 24,700 pages took 60 to 87 ms of 180 with one allocation for each block and one fault for each page.
 * With chunks, whose pages are made present by one system call, and without malloc's headers, 22,600 pages take 36 to
 * 51 ms of 150: 340 MB/s in place of 280. Most of what is left is the kernel clearing pages. Rejected: huge pages (up
 * to 400 MB/s, but one read in three fell to 120 while the kernel made room for them, and a string would keep 2 MiB);
 * raising M_TOP_PAD (as many faults; and a library does not tune its host's allocator).
 *
 * Memory that is not there ends the process as in stet_alloc. */
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
    STET_POOL_WORTH = 1 << 20,  /* bytes of text from which on a reader uses a pool */
    STET_POOL_CHUNK = 64 << 10, /* below malloc's threshold for mmap: memory that was used before is used again */
    STET_POOL_MOST = 4 << 10    /* a larger block is one of its own: it would waste the rest of a chunk */
};

typedef struct stet_chunk stet_chunk;

typedef struct stet_pool {
    stet_chunk *chunk;
    char *at, *end;
    uint32_t taken; /* blocks of the chunk */
} stet_pool;

#define STET_POOL_INIT                                                                                                 \
    { NULL, NULL, NULL, 0 }

/* Blocks that have gone, of one chunk: one locked instruction for a row of them. */
typedef struct stet_pool_bin {
    stet_chunk *chunk;
    uint32_t gone;
} stet_pool_bin;

void stet_pool_end(stet_pool *pool);
/* A new chunk for the pool. */
void stet_pool_grow(stet_pool *pool);
void stet_pool_flush(stet_pool_bin *bin);
/* In programs built with the address sanitizer: using these bytes is a mistake from now on. */
void stet_pool_poison(void *bytes, size_t len);

/* Room for `bytes` (at most STET_POOL_MOST), aligned to 8, `*home` bytes after the beginning of its chunk. */
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
