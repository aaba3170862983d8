/* function.h - functions of stet-exec-local: what a URI says about the program to run, and the files that it runs.
 *
 *     stet_function f;
 *     stet_names paths = {0};
 *     stet_status status = stet_function_parse("dml+exec://stet-exec-local/sort?arg=-n", &f, &err);
 *     if (status == STET_OK) {
 *         status = stet_function_code(&f, ".", &paths, &err); // files of the project that are part of the call
 *         stet_function_release(&f);
 *     }
 *     stet_names_release(&paths);
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
 *   env=NAME        pass this variable on; env=NAME=VALUE sets it. PATH, HOME, USER, LOGNAME, SHELL and TMPDIR are
 *                   always passed on, others never
 *   timeout=10m, max-memory=2G, max-cpu=5m, max-file-size=1G
 *                   limits
 *   retry-on=N      an exit status that means "not now": tried again later, like 75; any number
 *   stdin=null      no standard input; otherwise it is the arguments of the call, as a JSON array
 *   stdout=text     the result is the text itself; otherwise the output is parsed as JSON (no output at all is null)
 *   v=TEXT          ignored: stands for a version of the program, for what is not seen in the code of the call
 *
 * Any other option is refused.
 *
 * The code of a call is the content of the project's files that the function names: PROGRAM, arguments, words of
 * `command` (with wildcards expanded, without targets of >), and `files`. A word that names no file is left out; files
 * that the job makes (`file`) and everything in .stet are left out too.
 */
#ifndef STET_EXEC_FUNCTION_H
#define STET_EXEC_FUNCTION_H

#include "os/file.h"

#define STET_FUNCTION_CODE_MAX 10000 /* files */

typedef struct stet_words {
    char **at; /* NULL-terminated if it has any */
    size_t len, cap;
} stet_words;

typedef struct stet_function {
    stet_words argv, env;
    stet_words outputs, files; /* as written in file= and files= */
    char *command;             /* NULL: argv[0] is the program */
    char *cwd;                 /* "": the directory of the job */
    bool in_place, text, no_input;
    int64_t timeout_ms;
    uint64_t max_memory, max_cpu_s, max_file_size;
    uint64_t retry_on[4]; /* one bit for each exit status; 75 is always among them */
} stet_function;

/* STET_INVALID: the message says what is wrong. */
STET_CHECKED stet_status stet_function_parse(const char *uri, stet_function *out, stet_error *err);
void stet_function_release(stet_function *f);

/* Visits everything that the function names and that may be a file of the project, whether it exists or not: paths
 * relative to the project. `pattern`: with wildcards. `declared`: in files=, so that a directory stands for everything in
 * it. */
typedef void stet_function_visit(void *ctx, const char *path, bool pattern, bool declared);
void stet_function_named(const stet_function *f, stet_function_visit *visit, void *ctx);
/* Appends the paths of the call's code, relative to the project's directory `root`, sorted, each once. STET_NOT_FOUND: a
 * pattern of files= matches nothing. STET_LIMIT: too many files. */
STET_CHECKED stet_status stet_function_code(const stet_function *f, const char *root, stet_names *out, stet_error *err);

/* The first file or directory of the project that a text names and that is not among the code: for a hint when a job has
 * failed to find it. The path is relative to the project, and the caller's; NULL: none. */
char *stet_function_unnamed(const stet_function *f, const char *root, const stet_names *code, const char *text);

#endif
