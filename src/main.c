/* main.c - the `stet` program: the command line over libstet's operation table. */

#include <malloc.h>

#include "cli/cli.h"
#include "cli/help.h"
#include "mcp/server.h"

int main(int argc, char **argv) {
    /* Values are many small blocks (those of large documents aside, base/pool.h). With glibc's fast bins, freeing them
     * is put off until the next large allocation, which then pays for all. A program may say so; a library may not
     * change its host's allocator. */
    mallopt(M_MXFAST, 0);
    stet_op_add(stet_ops_help);
    stet_op_add(stet_ops_mcp);
    return stet_cli_main(argc, argv);
}
