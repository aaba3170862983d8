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

/* While its pool still takes from it, a chunk counts as many blocks as it can never have: those that go meanwhile can't
 * free it. The pool knows how many there are, and settles it at the end. */
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

/* Pages are made present at once, all of which are about to be written. A kernel that can't is as good: they come one
 * by one then. Not through the seam of os/sys.h, which is above: a failure here has no consequence. */
static void make_present(char *from, char *to) {
#ifdef MADV_POPULATE_WRITE
    enum { PAGE = 4096 }; /* larger ones: the call fails */
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
