/* live.c - counts the bytes of the heap that are in use, for a test of leaks.
 *
 * The library is loaded before the C library (LD_PRELOAD). It writes the count to the file that LIVE names, where a
 * test reads it: eight bytes, in the machine's order. The size of the process says little about a leak: it grows as
 * blocks of several threads come to lie between each other, long after the program uses no more than before.
 */

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static _Atomic long early; /* before the file is there */
static _Atomic long *live = &early;

__attribute__((constructor)) static void open_file(void) {
    const char *path = getenv("LIVE");
    int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    void *shared = ftruncate(fd, sizeof *live) == 0
                       ? mmap(NULL, sizeof *live, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                       : MAP_FAILED;
    close(fd);
    if (shared == MAP_FAILED)
        return;
    live = shared;
    *live = early;
}

static void *count(void *p) {
    if (p)
        *live += (long)malloc_usable_size(p);
    return p;
}

static void uncount(void *p) {
    if (p)
        *live -= (long)malloc_usable_size(p);
}

void *malloc(size_t size) {
    return count(__libc_malloc(size));
}

void *calloc(size_t n, size_t size) {
    return count(__libc_calloc(n, size));
}

void *realloc(void *old, size_t size) {
    uncount(old);
    void *p = __libc_realloc(old, size);
    count(p ? p : size ? old : NULL);
    return p;
}

void free(void *p) {
    uncount(p);
    __libc_free(p);
}

void *memalign(size_t alignment, size_t size) {
    return count(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    void *p = memalign(alignment, size);
    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}
