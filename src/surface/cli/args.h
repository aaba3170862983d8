/* args.h - the words of a command line to an operation and its arguments, strictly.
 *
 *     stet_cli_words w = {0};
 *     status = stet_cli_parse(argc - 1, argv + 1, &w, &err);
 *     ... w.op, w.given, w.json ...
 *     stet_cli_words_release(&w);
 *
 * Grammar: `stet [NOUN] VERB`, and flags anywhere after it; the global ones also before. A flag is `--name value`,
 * `--name=value`, `-n value`, `-n3`; hyphens and underscores are alike. `--name`, `--no-name` and `--name=true|false`
 * for a boolean (`--name false` too where the operation has no positional parameter that could be meant). After `--`
 * nothing is a flag. A word that begins with a dash is a flag unless it is "-" or a negative number; a flag's value
 * that does is written `--name=-value`.
 *
 * What is wrong is STET_INVALID with the valid ones and, where one is near, "did you mean". Nothing is abbreviated and
 * nothing is ignored. The globals are filled in as far as they were read even on failure, so that an error can be shown
 * the way that was asked for.
 */
#ifndef STET_SURFACE_CLI_ARGS_H
#define STET_SURFACE_CLI_ARGS_H

#include "surface/op.h"

typedef enum stet_cli_colour { STET_COLOUR_AUTO, STET_COLOUR_ALWAYS, STET_COLOUR_NEVER } stet_cli_colour;

typedef struct stet_cli_words {
    bool json, help, version, quiet;
    stet_cli_colour colour;
    const char *project; /* borrowed from argv */
    const stet_op *op;   /* NULL: none was named (overview, or help about `noun`) */
    char noun[64];       /* the first word, when it has verbs and none was given */
    stet_value given;    /* an object, for stet_op_check_spelled */
    bool reads_stdin;    /* a JSON parameter was "-": `stdin_param` is to be filled with what is read */
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
