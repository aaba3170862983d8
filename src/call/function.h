/* function.h - functions of stet-exec-local: what a URI says about the program to run, and the files that it runs.
 *
 *     stet_function f;
 *     stet_function_found found;
 *     stet_status status = stet_function_parse("dml+exec://stet-exec-local/sort?arg=-n", &f, &err);
 *     if (status == STET_OK) {
 *         stet_value env = stet_function_environment(&f); // of this process
 *         stet_function_bind(&f, env);
 *         status = stet_function_find(&f, ".", &found, &err); // files of the project that are part of the call
 *         if (status == STET_OK)
 *             stet_function_found_release(&found);
 *         stet_value_release(env);
 *         stet_function_release(&f);
 *     }
 *
 * dml+exec://stet-exec-local/PROGRAM?OPTIONS:
 *
 *   PROGRAM         a bare name is looked up in $PATH; a name with a slash is a file of the project; //usr/bin/x is
 *                   /usr/bin/x
 *   arg=TEXT        an argument; any number, in order
 *   command=TEXT    instead of PROGRAM: a line for sh -c
 *   files=PATTERN   files of the project that it reads: a path, a directory with everything in it, or a pattern with *,
 *                   ? and []; any number
 *   file=PATH       a file that it makes, relative to its working directory; any number. The result is then
 *                   {"files":{PATH:{"/":{"bytes@1":...}}},"stdout":...}
 *   cwd=PATH        the working directory, relative to the directory of the job
 *   in-place=true   run in the project itself, instead of in a directory of its own
 *   env=NAME        pass this variable on; env=NAME=VALUE sets it. PATH, HOME, USER, LOGNAME and SHELL are always passed
 *                   on, others never. The values are those of the process that makes the call
 *   timeout=10m, max-memory=2G, max-cpu=5m, max-file-size=1G
 *                   limits
 *   cpus=N          so many of the project's slots; 1 if it is not said
 *   pool=NAME, pool=NAME:N
 *                   a place, or N, in a pool of this machine; any number
 *   retry-on=N      an exit status that means "not now": tried again later, like 75; any number
 *   stdin=null      no standard input; otherwise it is the arguments of the call, as a JSON array
 *   stdout=text     the result is the text itself; otherwise the output is parsed as JSON (no output at all is null)
 *   needs=NAME      only a worker with this label takes it; any number. On this machine it means nothing
 *   v=TEXT          ignored: stands for a version of the program, for what is not seen in the code of the call
 *
 * Any other option is refused.
 *
 * The code of a call is the content of the project's files that the function names: PROGRAM (also where PATH finds it),
 * arguments, words of `command` (with wildcards expanded, without targets of >), values of `env`, and `files`. Whether a
 * path is relative, absolute or begins with ~ makes no difference: an absolute path leads to the copy in the directory of
 * the job (stet_function_place). A word that names no file is left out; files that the job makes (`file`) and everything
 * in .stet are left out too.
 *
 * Some functions can read files of the project that they do not name: those that have the absolute path of a directory
 * in them, or a path inside other text, or that of a directory above the project, or run in place without `files`. Such a
 * function is *open*: what it gives is never taken for the answer of a later call. The same holds for a call with such a
 * path among its arguments.
 */
#ifndef STET_EXEC_FUNCTION_H
#define STET_EXEC_FUNCTION_H

#include "os/file.h"

#define STET_FUNCTION_CODE_MAX 10000 /* files */

typedef struct stet_words {
    char **at; /* NULL-terminated if it has any */
    size_t len, cap;
} stet_words;

void stet_words_add(stet_words *w, char *word); /* takes over `word` */
void stet_words_release(stet_words *w);

typedef struct stet_function {
    stet_words argv;
    stet_words set, passed;    /* as written in env=: NAME=VALUE, and NAME */
    stet_words env;            /* NAME=VALUE of all variables (stet_function_bind) */
    stet_words outputs, files; /* as written in file= and files= */
    stet_words needs;          /* that a worker must have */
    char *command;             /* NULL: argv[0] is the program */
    char *cwd;                 /* "": the directory of the job */
    bool in_place, text, no_input;
    int64_t timeout_ms;
    uint64_t max_memory, max_cpu_s, max_file_size;
    int64_t cpus;         /* slots that it takes */
    stet_words pools;     /* as written in pool= */
    uint64_t retry_on[4]; /* one bit for each exit status; 75 is always among them */
} stet_function;

bool stet_function_is_label(const char *name);
/* STET_INVALID: the message says what is wrong. */
STET_CHECKED stet_status stet_function_parse(const char *uri, stet_function *out, stet_error *err);
void stet_function_release(stet_function *f);
bool stet_function_pool_name(const char *name, size_t len); /* can it be the name of a pool? */

/* The path from the top for `path` as written in the directory `cwd`, without empty and "." parts, ".." resolved as
 * text. NULL: it is absolute, the top itself, or outside. Caller frees. */
char *stet_function_path(const char *cwd, const char *path);

/* Visits the variables that are passed on. */
void stet_function_variables(const stet_function *f, void (*visit)(void *ctx, const char *name), void *ctx);
/* Their values in this process: {NAME: TEXT, or [BASE64URL] if it is not plain ASCII}. The caller's. */
stet_value stet_function_environment(const stet_function *f);
/* Sets `env` to these values and to those that the function sets itself. */
void stet_function_bind(stet_function *f, stet_value environment);

typedef enum stet_function_use {
    STET_FUNCTION_WORD,          /* may be a file */
    STET_FUNCTION_PATTERN,       /* the same, with wildcards */
    STET_FUNCTION_FILES,         /* in files=: a directory stands for everything in it */
    STET_FUNCTION_FILES_PATTERN, /* the same, with wildcards */
    STET_FUNCTION_IN_PLACE       /* may be read in the project itself; "" is the project's directory */
} stet_function_use;

/* Visits everything that the function, once it is bound, names and that may be in the project, whether it exists or not:
 * paths relative to the project's directory `root`. `written`: the absolute path in the function; NULL: it is written
 * otherwise. */
typedef void stet_function_visit(void *ctx, const char *path, stet_function_use use, const char *written);
void stet_function_named(const stet_function *f, const char *root, stet_function_visit *visit, void *ctx);

typedef struct stet_function_found {
    stet_names code;   /* files that are part of the call, sorted, each once */
    stet_names dirs;   /* directories that have to be there although no file in them is, and those behind links */
    stet_value places; /* {ABSOLUTE PATH: PATH} of what stands in the function with its absolute path */
    char *open;        /* why it is open; NULL: it is not */
    bool unseen;       /* it is open, and what it could read is more than the files that it names */
} stet_function_found;

/* Finds what the function names. STET_NOT_FOUND: a pattern of files= matches nothing. STET_LIMIT: too many files. */
STET_CHECKED stet_status stet_function_find(const stet_function *f, const char *root, stet_function_found *out,
                                            stet_error *err);
void stet_function_found_release(stet_function_found *found);
/* Why the function, which is bound, could read files of the project that it does not name, through a directory above the
 * project or a path in one of its scripts (`code`); the caller's. NULL: it could not. */
char *stet_function_above(const stet_function *f, const char *root, const stet_names *code);
/* The same for a value that it gets on standard input. */
char *stet_function_value_above(const stet_function *f, const char *root, stet_value argument);
/* Makes absolute paths in the program, the arguments and the environment lead to the directory of the job. */
void stet_function_place(stet_function *f, stet_value places);

/* The first file or directory of the project that a text names and that is not among the code: for a hint when a job has
 * failed to find it. `work` is the directory of the job. The path is relative to the project, and the caller's; NULL:
 * none. */
char *stet_function_unnamed(const stet_function *f, const char *root, const char *work, const stet_names *code,
                            const char *text);

#endif
