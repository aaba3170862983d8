/* command_scan.h - what the files that read the words of a command share (command_words.h). Included nowhere else.
 *
 *   command_words.c      passes over the words, until nothing new is learned of their variables
 *   command_shell.c      reads shell text: quotes, expansions, redirections, lists of commands
 *   command_variables.c  what the variables of the text may be
 *   command_programs.c   what programs do with their arguments: which are written, which are texts of their own
 *   command_tell.c       tells the caller of words, and of everything in them that may be a name
 */
#ifndef STET_MODULE_COMMAND_SCAN_H
#define STET_MODULE_COMMAND_SCAN_H

#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "module/command_values.h"
#include "module/command_words.h"

#define MAX_DEPTH 8 /* strings in strings */
#define MAX_FLAGS 4 /* letters of options before a name: "-nfFILE" */
#define BREAKS    " \t\r\n'\"`()<>|&;,:={}[]#"
static const char unknown_text[] = {COMMAND_UNKNOWN, 0};

/* WRITTEN is sure to be so: the shell opens it first. COPIED is written by a program that may fail, or leave what is
 * there as it is. */
typedef enum word_role { PLAIN, READ, WRITTEN, COPIED, APPENDED, NO_FILE } word_role;

/* A word of a command, its quotes gone. */
typedef struct word {
    char *text;    /* COMMAND_UNKNOWN in it: only a shell could tell */
    char *pattern; /* if the shell would match it with files: the same with quoted characters after backslashes */
    command_forms others; /* that it may become as well */
    bool unknown;         /* part of it only a shell could tell */
    bool unsure;          /* it may become something else, or nothing */
    bool into;            /* if a directory is there, it is written into */
    word_role role;
} word;

/* A variable that the text sets. What it may be is joined over the whole text: functions and loops run in any order. */
typedef struct variable {
    command_forms values;
    int pass, times; /* when it was set last; how often in that pass */
    bool sure;       /* the last time was no condition's, and in no shell of its own */
    bool single;     /* in the pass before, it was set once, and for sure */
} variable;

typedef struct scanner {
    command_word_fn each;
    void *ctx;
    STET_VEC(char *) from;
    STET_VEC(char *) among; /* directories that it changes to of which part is unknown: patterns */
    char *here;             /* the directory that it is in now, as far as can be told */
    stet_map variables;     /* name -> variable, own */
    command_forms words;    /* any of its words: what "$1" or a variable that is read from somewhere may be */
    int pass;
    size_t work;       /* bytes of strings that were read as commands in this pass */
    bool learned;      /* in this pass: a variable has a new value */
    bool dynamic;      /* "eval", ".": variables may be set where nobody sees it */
    const char *array; /* in "NAME=(...)": NAME */
    char *token;       /* of "xargs -I TOKEN", or NULL */
    int depth;
    int strings;           /* in a string of which it is not known that it is a command */
    const stet_map *names; /* words that are names of files as a whole, or NULL */
    bool prints;           /* a word that is only printed or searched for */
    bool exact;            /* words that begin with a dash are files: behind "<" and "--" */
    bool target;           /* behind "<": a file for certain */
    bool behind_option;    /* the word may be what an option takes */
    int blocks;            /* in what may be left out or repeated: if, for, a function */
    int shells;            /* in "(...)" and "$(...)": what is set there is not set outside */
    unsigned lists;        /* and-or lists that have begun */
    bool chained;          /* behind "&&": what is written is so for the rest of this list alone */
    bool maybe;            /* behind "||" */
    bool negated;          /* behind "!": what comes after "&&" does so if it fails */
} scanner;

typedef STET_VEC(word) words;

/* In command_words.c. */

void words_release_one(word *w);
void words_clear(words *w);
/* The `each` of a pass that only learns what variables may be. */
void words_tell_nobody(void *ctx, const command_word *w);

/* In command_shell.c. */

/* Reads a shell text to its end: its commands are passed to words_take_command. */
void words_scan(scanner *s, const char *p);

/* In command_variables.c. */

/* The length of the variable's name that the text begins with, or 0. */
size_t words_name_length(const char *p);
/* "NAME=VALUE", "NAME+=VALUE", "NAME[...]=VALUE". */
bool words_is_assignment(const char *text, size_t *name_len, const char **value);
variable *words_variable_of(scanner *s, const char *name, size_t len);
/* The variable may have this value, any value, that of a word, or that of an assignment. */
void words_join(scanner *s, const char *name, size_t len, const command_form *f);
void words_join_unknown(scanner *s, const char *name, size_t len);
/* It is set here. `sure`: in every run, and in the shell itself. */
void words_note_set(scanner *s, const char *name, size_t len, bool sure);
void words_assign(scanner *s, const word *w, size_t name_len, bool sure);
void words_join_word(scanner *s, const char *name, size_t len, const word *w);

/* In command_programs.c. */

bool words_is_keyword(const char *text); /* after which another command begins: "if", "do" */
/* One simple command, or what is left of it after its keywords and assignments. Clears the words. */
void words_take_command(scanner *s, words *w);

/* In command_tell.c. */

void words_tell(scanner *s, const char *text, command_word_kind kind);
void words_tell_unlikely(scanner *s, const char *text);
void words_tell_written(scanner *s, const word *one, bool certain);
void words_tell_may_write(scanner *s, const word *w);
/* The command changes to this directory, or to one that the pattern matches: words count from there as well. */
void words_changes_among(scanner *s, const char *pattern);
void words_changes_to(scanner *s, const char *dir);
void words_goes_to(scanner *s, const char *dir);
void words_tell_module(scanner *s, const char *name);
/* Names in a text: its parts between signs, those in quotes, and all that it is as a command. */
void words_tell_broken(scanner *s, const char *text);
void words_tell_quoted(scanner *s, const char *text);
void words_tell_string(scanner *s, const char *text);
void words_tell_form(scanner *s, const char *text, const char *pattern);
void words_tell_word(scanner *s, const word *w);

static inline bool is_one_of(const char *text, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(text, names[i]) == 0)
            return true;
    return false;
}
#define ONE_OF(text, names) is_one_of(text, names, sizeof(names) / sizeof *(names))

#endif
