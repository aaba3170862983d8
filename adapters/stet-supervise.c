/* stet-supervise.c - runs commands for a client and records in DIR how they ended.
 *
 *     stet-supervise DIR
 *
 * The library starts this program and talks to it on standard input (src/process/local.h). It is not meant to be run by
 * hand.
 */

#include <unistd.h>

#include "process/local.h"

int main(int argc, char **argv) {
    if (argc != 2 || isatty(0))
        return 2;
    return stet_supervisor_run(0, argv[1]);
}
