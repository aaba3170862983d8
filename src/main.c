/* main.c - the program. Everything is in libstet; this calls it. */
#include "surface/cli/cli.h"

int main(int argc, char **argv) {
    return stet_cli_main(argc, argv);
}
