/* command_fill.h - fills names in: "{name}", "{name.stem}" and "{name@list}" in the words of a command.
 *
 *     command_filler f = {.run = run, .root = root, .lists = dir, .s = spec, .values = values, .err = err};
 *     command_fill_shell(&f, "sort {in} > \"{out}\"", &spec->argv);
 *     if (f.failed)
 *         return STET_FAILED; // `err` says why
 *
 * In a string for the shell, what is filled in stays what it is, whatever bytes it has: it is quoted for the place where
 * it stands.
 *
 *   place                                         how
 *   between quotes of no kind                     in single quotes; each of many files is a word
 *   in "double quotes"                            with a backslash before \ " $ and `
 *   in 'single quotes'                            each single quote as '\''
 *   in a comment, or after a backslash            not at all: there it is text
 *   in `...`, ${...}, $((...)), $'...', or a      as it is, if it has only letters, digits and ,./_+@%:=- in it;
 *     here-document                                 otherwise it is refused
 *
 * In quotes a name stands for one file: many files are refused.
 *
 * Names that are none of the node's own are those of its module's member `vars`: a text or number is a word, a list of
 * them as many. Behind a dollar they are left alone: that is a variable of the shell.
 */
#ifndef STET_MODULE_COMMAND_FILL_H
#define STET_MODULE_COMMAND_FILL_H

#include "module/command.h"

typedef struct command_filler {
    stet_run *run;
    const char *root, *lists; /* lists: directory for files of names */
    command_spec *s;          /* its inputs and outputs are set; lists are added */
    stet_value values;        /* inputs that are not files */
    const char *begin;        /* of the text that is being filled in */
    bool dashed;              /* a path that begins with a dash was filled in, with "./" before it */
    bool in_quotes;           /* something was filled in within quotes, or where it can't be quoted */
    bool failed;
    stet_error *err;
} command_filler;

/* One word of a list. If it is a name alone, it becomes as many words as there are files. */
void command_fill_word(command_filler *f, const char *text, command_words *out);
/* A string for the shell: one word. */
void command_fill_shell(command_filler *f, const char *text, command_words *out);

#endif
