/* cli.h - the command line: words in, text or JSON and an exit status out.
 *
 * Results go to standard output, everything else to standard error. With --json standard output holds only lines of
 * JSON: events as they come, then the result, or {"error": {...}}. The exit status is the stet_status of the outcome; a
 * reader of standard output that goes away is not a failure. The first Ctrl-C (or SIGTERM) asks the operation to stop,
 * the second ends the process at once; both exit with 130.
 */
#ifndef STET_CLI_CLI_H
#define STET_CLI_CLI_H

#include "operation/op.h"

int stet_cli_main(int argc, char **argv);
/* The same for the words after an operation's name. `op` NULL: the name is among the words. */
int stet_cli_run(const stet_op *op, int count, char *const *words);

#endif
