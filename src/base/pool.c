/* pool.c - allocates the blocks of one large document side by side in chunks. */

#include "base/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/error.h"

#ifdef STET_POOL_POISONS
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(bytes, len)   ((void)(bytes), (void)(len))
#define ASAN_UNPOISON_MEMORY_REGION(bytes, len) ((void)(bytes), (void)(len))
#endif

/* While a pool still allocates from a chunk, the chunk counts this many blocks more than it has, so that blocks
 * released meanwhile can't free it. When the pool ends, it replaces the surcharge by the true number. */
#define OPEN ((uint32_t)1 << 31)

struct stet_chunk {
    _Atomic uint32_t live; /* blocks */
    uint32_t unused;       /* blocks are aligned to 8 */
};

static void drop(stet_chunk *chunk, uint32_t n) {
    if (atomic_fetch_sub_explicit(&chunk->live, n, memory_order_acq_rel) != n)
        return;
    ASAN_UNPOISON_MEMORY_REGION(chunk, STET_POOL_CHUNK);
    free(chunk);
}

/* Asks the kernel for all pages at once, since all of them will be written. If the kernel refuses, they come one by
 * one, so a failure has no consequence. This does not use os/sys.h, which is a layer above. */
static void make_present(char *from, char *to) {
#ifdef MADV_POPULATE_WRITE
    enum { PAGE = 4096 }; /* with larger pages the call fails */
    int kept = errno;
    char *first = (char *)((uintptr_t)from & ~(uintptr_t)(PAGE - 1)),
         *last = (char *)((uintptr_t)to & ~(uintptr_t)(PAGE - 1));
    (void)madvise(first, (size_t)(last - first), MADV_POPULATE_WRITE);
    errno = kept;
#else
    (void)from, (void)to;
#endif
}

void stet_pool_grow(stet_pool *pool) {
    stet_pool_end(pool);
    stet_chunk *chunk = stet_alloc(STET_POOL_CHUNK);
    make_present((char *)chunk, (char *)chunk + STET_POOL_CHUNK);
    atomic_init(&chunk->live, OPEN);
    pool->chunk = chunk;
    pool->at = (char *)(chunk + 1);
    pool->end = (char *)chunk + STET_POOL_CHUNK;
}

void stet_pool_end(stet_pool *pool) {
    if (pool->chunk)
        drop(pool->chunk, OPEN - pool->taken);
    *pool = (stet_pool)STET_POOL_INIT;
}

void stet_pool_flush(stet_pool_bin *bin) {
    if (bin->gone)
        drop(bin->chunk, bin->gone);
    *bin = (stet_pool_bin){0};
}

void stet_pool_poison(void *bytes, size_t len) {
    ASAN_POISON_MEMORY_REGION(bytes, len);
}
