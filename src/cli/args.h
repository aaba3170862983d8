/* args.h - parses the words of a command line into an operation and its arguments, strictly.
 *
 *     stet_cli_words w = {0};
 *     stet_status status = stet_cli_parse(argc - 1, argv + 1, &w, &err);
 *     if (status == STET_OK && w.op)
 *         printf("%s\n", w.op->name);
 *     stet_cli_words_release(&w);
 *
 * Grammar: `stet [NOUN] VERB`, and flags anywhere after it; global flags also before it.
 *
 *   value      `--name value`, `--name=value`, `-n value`, `-n3`; hyphens and underscores are alike
 *   boolean    `--name`, `--no-name`, `--name=true|false` (`--name false` too, unless the operation has a positional
 *              parameter that could be meant)
 *   --         nothing after it is a flag
 *   -word      a flag, unless it is "-" or a negative number; a flag's value that begins with a dash is written
 *              `--name=-value`
 *
 * A mistake is STET_INVALID; the error lists the valid names and, if one is near, "did you mean". Nothing is
 * abbreviated and nothing is ignored. Global flags are filled in as far as they were read even on failure, so that the
 * error can be shown in the requested form.
 */
#ifndef STET_CLI_ARGS_H
#define STET_CLI_ARGS_H

#include "operation/op.h"

typedef enum stet_cli_colour { STET_COLOUR_AUTO, STET_COLOUR_ALWAYS, STET_COLOUR_NEVER } stet_cli_colour;

typedef struct stet_cli_words {
    bool json, help, version, quiet, verbose;
    stet_cli_colour colour;
    const char *project; /* borrowed from argv */
    const stet_op *op;   /* NULL: no operation was named (overview, or help about `noun`) */
    char noun[64];       /* the first word, if it has verbs and none was given */
    stet_value given;    /* an object, for stet_op_check_spelled */
    /* A JSON parameter was "-": the caller reads standard input and fills in `stdin_param`. */
    bool reads_stdin;
    const stet_param *stdin_param;
} stet_cli_words;

/* A global flag, for help, the man page and completion. */
typedef struct stet_cli_global {
    const char *name;
    char letter;
    const char *metavar; /* NULL: takes no value */
    const char *summary;
    const char *const *choices;
} stet_cli_global;
extern const stet_cli_global stet_cli_globals[]; /* ends with a row whose name is NULL */

STET_CHECKED stet_status stet_cli_parse(int count, char *const *words, stet_cli_words *out, stet_error *err);
/* The same for words that follow an operation's name. */
STET_CHECKED stet_status stet_cli_parse_for(const stet_op *op, int count, char *const *words, stet_cli_words *out,
                                            stet_error *err);
void stet_cli_words_release(stet_cli_words *w);

/* Is there an operation "noun ..."? */
bool stet_cli_is_noun(const char *word);

#endif
