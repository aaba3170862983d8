/* command.h - the `command` module: programs over files. Shared by the files src/module/command*.c.
 *
 * docs/pipelines.md describes the descriptor of a node.
 *
 * A run goes through these steps:
 *
 *   evaluate   the inputs are read and the call's id is computed: what would run, on what (command_spec.c)
 *   look up    if the persist directory has an entry with that id, its outputs are restored: a cache hit
 *              (command_store.c)
 *   queue      at most `jobs` commands at the same time
 *   run        outputs are removed, and the command starts under the supervisor (process/local.h); or a command that an
 *              earlier process left behind is found by the call's id
 *   collect    on a worker thread: inputs, outputs and the files that a dependency file names are looked at, and the
 *              entry is stored
 *   conclude   inputs are evaluated again on the newest state. Another id means that something changed meanwhile, and
 *              the result is discarded; otherwise reads, documents of outputs and the result are published
 *
 * Calls with a dependency file have two ids. The first, over what was declared, leads to the list of files that were
 * read the last time. The second, over those files as well, leads to the result.
 */
#ifndef STET_MODULE_COMMAND_H
#define STET_MODULE_COMMAND_H

#include "base/buf.h"
#include "base/hash.h"
#include "base/vec.h"
#include "files/files.h"
#include "module/kinds.h"
#include "persist/persist.h"
#include "process/local.h"
#include "scheduler/module.h"

#define STET_COMMAND_FUNCTION "dml+exec://stet-exec-local/command"

#define COMMAND_MADE    "made"    /* name of a suspect (command_run.h) that did not exist before */
#define COMMAND_TOUCHED "touched" /* name of one that is written and stays the same: an edit by others counts */

/* One file that a command reads or writes. */
typedef struct command_file {
    char *name;   /* name of the input or output; "" for a file from a dependency file */
    char *path;   /* any bytes */
    char *target; /* for an output that is a symbolic link: its target; otherwise NULL */
    stet_look look;
    stet_look known; /* for an output: the current file, as far as the scan knows */
    bool matched;    /* an input that a pattern matched */
    bool named;      /* an input that the author names by its path */
    bool may_write;  /* named by words of the command that may mean writing it */
    bool made;       /* another node writes it, or that is not known; set for scripts when the command begins */
    bool guessed;    /* a pattern that may not be one */
    bool declared;   /* a pattern behind links of one of `files`: the command gets names that are not left behind */
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
void command_words_add(command_words *w, char *word); /* takes the word over */
void command_words_release(command_words *w);

/* Names in a file, for a command that takes more of them than fit into its words. */
typedef struct command_list {
    char *path; /* absolute */
    stet_buf names;
} command_list;

/* A command with its inputs as they are now. */
typedef struct command_spec {
    command_files inputs, outputs; /* outputs in the order of their names */
    command_files patterns;        /* paths are patterns; matched: one of `files`, otherwise a word of the command */
    /* Files that its words name, existing or not, and its programs (command_scripts.c) */
    command_files scripts;
    bool new_tools; /* some of these programs were not followed before */
    command_words argv, env;
    STET_VEC(command_list) lists; /* written before it starts, and removed when it has ended */
    char *cwd;                    /* absolute */
    char *cwd_rel;                /* relative to the project, "" for its root */
    char *depfile;                /* normal path, or NULL */
    command_words filled;         /* words that are one name, with those of files filled in: "dep/{in.name}.d" */
    command_words ways;           /* paths of outputs as they were written, if ".." is in them */
    command_words detours;        /* "DIRECTORY=WHERE" of links that ".." comes after */
    char *standard_input;         /* JSON, or NULL */
    size_t standard_input_len;
    int64_t timeout_ms;
    uint64_t max_memory, max_cpu_s, max_file_size;
    bool cache, json_output, text_output;
    bool place; /* its outcome is of use in this directory alone */
    stet_hash call;
} command_spec;

/* Evaluates a command. Errors are the node's, such as a missing file or an output outside the project. `lists`: the
 * directory for lists of names. `files` may be NULL: scripts are then taken from their documents. `except`: paths that
 * are not scripts, whatever words say. */
STET_CHECKED stet_status command_evaluate(stet_run *run, const char *root, const char *lists, stet_files *files,
                                          const command_files *except, command_spec *out, stet_error *err);
/* Adds the scripts and programs of s->argv. */
STET_CHECKED stet_status command_scripts(stet_run *run, const char *root, stet_files *files,
                                         const command_files *except, command_spec *s, stet_error *err);
void command_spec_release(command_spec *s);
/* A declared file as a word of the command: from where the command runs, and not to be taken for an option. Caller
 * frees. */
char *command_file_word(const command_spec *s, const char *root, const char *path);
stet_status command_check(stet_value descriptor, stet_value node, stet_error *err);
/* The files that it names before it is run (command_names.c). */
void command_names(const char *root, stet_value descriptor, stet_value node, stet_named_fn each, void *ctx);
/* The second id, which also covers what the dependency file named. */
STET_CHECKED stet_status command_second_id(const command_spec *s, const command_files *found, stet_hash *out,
                                           stet_error *err);

/* The id of an outcome that contains the path of the project: it can't be used elsewhere. */
stet_hash command_placed_id(stet_hash id, const char *root);

/* Contents of an entry: "variables" (the result, JSON), "output", "stderr", and "file-N" for output N. */
typedef struct command_entry {
    stet_persist_entry *entry;
    stet_value result; /* {"files": {NAME: {"hash","mode","path","size","link"?,"target"?}}, "stdout"?} */
} command_entry;
/* Finds an entry, and checks that it is about the same outputs. STET_NOT_FOUND: a cache miss. */
STET_CHECKED stet_status command_entry_get(stet_persist *p, const command_spec *s, stet_hash id, command_entry *out,
                                           stet_error *err);
void command_entry_release(command_entry *e);
/* The list of files that a dependency file named, the `age`-th newest (0: the newest). STET_NOT_FOUND: none. Looks are
 * not set. */
STET_CHECKED stet_status command_deps_get(stet_persist *p, stet_hash call, size_t age, command_files *out,
                                          stet_error *err);
/* Restores outputs to their places; those that are present and right are left alone. Sets the looks of s->outputs. Any
 * thread may call. */
STET_CHECKED stet_status command_restore(stet_persist *p, int root_fd, const char *root, const char *temp_dir,
                                         command_spec *s, const command_entry *e, bool hardlink, stet_error *err);
/* Stores the outcome under `id` and, if a dependency file was read, the list under the call's first id. Any thread may
 * call. */
STET_CHECKED stet_status command_store(stet_persist *p, const char *root, const command_spec *s, stet_hash id,
                                       const command_files *found, stet_value result, const char *output_path,
                                       const char *error_path, int64_t elapsed_ms, stet_error *err);
stet_value command_result_files(const command_spec *s);

/* In command_dir.c. */

/* Puts everything in a directory as the content that was begun. */
STET_CHECKED stet_status command_dir_put(stet_persist_put *w, const char *top, stet_error *err);
/* Restores a directory, completely or not at all, in place of what is there. */
STET_CHECKED stet_status command_dir_restore(stet_persist *p, const stet_persist_content *c, const char *temp_dir,
                                             const char *path, stet_error *err);

#endif
