/* main.c - the program. Everything is in libstet; this calls it. */
#include <malloc.h>

#include "surface/cli/cli.h"

int main(int argc, char **argv) {
    /* Values are many small blocks (those of large documents aside, base/pool.h). With glibc's fast bins, freeing them
     * is put off until the next large allocation, which then pays for all. A program may say so; a library may not
     * change its host's allocator. */
    mallopt(M_MXFAST, 0);
    return stet_cli_main(argc, argv);
}
