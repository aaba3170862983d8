/* command.h - the `command` module: programs over files. Shared by the files of src/module/command*.c;
 * docs/pipelines.md says what a node can say.
 *
 * A run goes through these steps:
 *
 *   evaluate   the inputs are read and the call's id computed: what would run, on what (command_spec.c)
 *   look up    an entry of the persist directory with that id gives the results: outputs are restored (command_store.c)
 *   queue      at most `jobs` at a time
 *   run        outputs are removed, the command starts under the supervisor (exec/local.h), or one that an earlier
 * process left behind is found by the call's id collect    on a worker thread: inputs, outputs and what a dependency
 * file names are looked at, the entry is stored conclude   inputs are evaluated again on the newest state: another id
 * means that something changed meanwhile, and the result counts for nothing; else reads, documents of outputs and
 * result are published
 *
 * Calls with a dependency file have two ids. The first, over what was declared, leads to the list of files that were
 * read the last time; the second, over those files as well, to the result. */
#ifndef STET_MODULE_COMMAND_H
#define STET_MODULE_COMMAND_H

#include "base/buf.h"
#include "base/hash.h"
#include "exec/local.h"
#include "files/files.h"
#include "module/kinds.h"
#include "persist/persist.h"
#include "scheduler/module.h"

#define STET_COMMAND_FUNCTION "dml+exec://stet-exec-local/command"

/* One file that a command reads or writes. */
typedef struct command_file {
    char *name; /* of the input or output; "" for one that a dependency file named */
    char *path; /* any bytes */
    stet_look look;
    stet_look known; /* of an output: what is there, so far as the scan knows */
} command_file;

typedef struct command_files {
    command_file *at;
    size_t len, cap;
} command_files;
command_file *command_files_add(command_files *f, const char *name, const char *path);
void command_files_release(command_files *f);

typedef struct command_words {
    char **at; /* NULL-terminated */
    size_t len, cap;
} command_words;
void command_words_add(command_words *w, char *word); /* takes it over */
void command_words_release(command_words *w);

/* A command with its inputs as they are now. */
typedef struct command_spec {
    command_files inputs, outputs; /* outputs in the order of their names */
    command_words argv, env;
    char *cwd;            /* absolute */
    char *cwd_rel;        /* relative to the project, "" for its root */
    char *depfile;        /* normal path, or NULL */
    char *standard_input; /* JSON, or NULL */
    size_t standard_input_len;
    int64_t timeout_ms;
    uint64_t max_memory, max_cpu_s, max_file_size;
    bool cache, json_output, text_output;
    stet_hash call;
} command_spec;

/* Errors are the node's: a file that is not there, an output outside the project. */
STET_CHECKED stet_status command_evaluate(stet_run *run, const char *root, command_spec *out, stet_error *err);
void command_spec_release(command_spec *s);
bool command_reads_pattern(stet_run *run); /* is one of its inputs a pattern of files? */
stet_status command_check(stet_value descriptor, stet_value node, stet_error *err);
/* The second id: over what the dependency file named as well. */
STET_CHECKED stet_status command_second_id(const command_spec *s, const command_files *found, stet_hash *out,
                                           stet_error *err);

/* ---- The persist directory ---- */

/* Contents of an entry: "variables" (the result, JSON), "output", "stderr", and "file-N" for output N. */
typedef struct command_entry {
    stet_persist_entry *entry;
    stet_value result; /* {"files": {NAME: {"hash","mode","path","size"}}, "stdout"?} */
} command_entry;
/* STET_NOT_FOUND. Checks that it is about the same outputs. */
STET_CHECKED stet_status command_entry_get(stet_persist *p, const command_spec *s, stet_hash id, command_entry *out,
                                           stet_error *err);
void command_entry_release(command_entry *e);
/* The list of files that a dependency file named, the `age`-th newest (0: the newest). STET_NOT_FOUND. Looks are not
 * set. */
STET_CHECKED stet_status command_deps_get(stet_persist *p, stet_hash call, size_t age, command_files *out,
                                          stet_error *err);
/* Puts outputs where they belong; those that are there and right are left alone. `looks` of s->outputs are set. Any
 * thread. */
STET_CHECKED stet_status command_restore(stet_persist *p, int root_fd, const char *root, const char *temp_dir,
                                         command_spec *s, const command_entry *e, bool hardlink, stet_error *err);
/* Stores the outcome under `id` and, if a dependency file was read, the list under the call's first id. Any thread. */
STET_CHECKED stet_status command_store(stet_persist *p, const char *root, const command_spec *s, stet_hash id,
                                       const command_files *found, stet_value result, const char *output_path,
                                       const char *error_path, int64_t elapsed_ms, stet_error *err);
stet_value command_result_files(const command_spec *s);

/* ---- Directories (command_dir.c) ---- */

/* Everything in a directory, as the content that was begun. */
STET_CHECKED stet_status command_dir_put(stet_persist_put *w, const char *top, stet_error *err);
/* Puts it back, whole or not at all, in place of what is there. */
STET_CHECKED stet_status command_dir_restore(stet_persist *p, const stet_persist_content *c, const char *temp_dir,
                                             const char *path, stet_error *err);

#endif
