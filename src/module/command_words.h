/* command_words.h - finds the words of a command that may name a file it reads or a program it starts.
 *
 * To stet a command is text, and a shell string is a program in a language with countless ways to name a file. So this
 * errs on the side of too many: every word counts that could be a path, whether it is quoted, after "--option=", the
 * target of "<", or in a string that is passed to another interpreter. It is resolved from the directory of the command
 * and from each directory that the command changes to. One name too many costs a look at a file that does not exist.
 *
 * Two kinds of words are left out:
 *   - what the command is certain to write before it reads it: the target of ">", and what `rm -rf` names. It is
 *     certain only if no condition comes before it: "[ -e f ] || cp g f" reads f if it exists. What `cp`, `mv`, `rm` or
 *     `tee` write is certain only if they succeed, that is, for what comes after "&&";
 *   - a word of which only a shell could tell everything: "$1".
 *
 * A word with a variable that the string sets stands for each value that the variable gets anywhere in the string. What
 * only a shell could tell (other variables, the output of a command) becomes patterns that cover it, with and without a
 * slash: "$i.txt" may be any text file in any directory.
 */
#ifndef STET_MODULE_COMMAND_WORDS_H
#define STET_MODULE_COMMAND_WORDS_H

#include "base/map.h"

typedef enum command_word_kind {
    COMMAND_WORD,          /* may be a file or directory */
    COMMAND_WORD_PROGRAM,  /* is in the place of a program's name */
    COMMAND_WORD_PATTERN,  /* a pattern that the shell expands to files */
    COMMAND_WORD_WRITTEN,  /* is written, whatever it contained before */
    COMMAND_WORD_MAY_WRITE /* is written somewhere in the command; reported in addition to its other kind */
} command_word_kind;

typedef struct command_word {
    const char *text;
    /* The directory that it is relative to, itself relative to that of the command; "" for the latter. */
    const char *from;
    command_word_kind kind;
    unsigned list; /* the number of its and-or list */
    /* Written for the rest of its list, and perhaps not at all: after "&&", or by a program that may fail. */
    bool chained;
    bool into; /* of a written word: an existing directory is written into, and stays */
    /* In a string that may be for any program, among what is only printed, or a pattern in place of what only a shell
     * could tell: it may not be a file at all. */
    bool guessed;
    bool anywhere; /* of a pattern: it may be an absolute path or lead upwards, so it counts from the top as well */
    bool unlikely; /* looks like an option, or stands behind letters of options: a file only if there is one */
} command_word;
typedef void (*command_word_fn)(void *ctx, const command_word *w);

/* Of a word that may name a file of the project: is it read, or may it be, before the command is certain to have
 * written it? `path` is what the word names. `seen` keeps what is written between calls: paths, whose slots are not 0;
 * a path that the caller enters as COMMAND_WORD_TAKEN is not asked for again. */
#define COMMAND_WORD_TAKEN 1
bool command_word_reads(stet_map *seen, const char *path, const command_word *w);

/* The words of a list: argv as it is started. For "sh -c TEXT" they are the words of the text. `env`: "NAME=VALUE" of
 * variables that it gets, as far as they are known. `names` (NULL: none): words that are names of files, as a whole: no
 * part of them is a word of its own. Slots: COMMAND_NAME_WORD, or COMMAND_NAME_EXACT if it is no pattern either. */
#define COMMAND_NAME_WORD  1
#define COMMAND_NAME_EXACT 2
void command_words_of_list(char *const *argv, size_t len, char *const *env, size_t env_len, const stet_map *names,
                           command_word_fn each, void *ctx);

#endif
