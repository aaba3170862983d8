/* stet-supervise DIR - runs commands for a client on standard input, and writes down in DIR how they ended. Started by
 * the library (src/exec/local.h); of no use to people. */
#include <unistd.h>

#include "exec/local.h"

int main(int argc, char **argv) {
    if (argc != 2 || isatty(0))
        return 2;
    return stet_supervisor_run(0, argv[1]);
}
