/* calls.h - calls of a project: settings, making nodes, and workers.
 *
 *     stet_calls_config config;
 *     stet_status status = stet_calls_config_read(project, &config, &err);
 *     if (status == STET_OK)
 *         status = stet_calls_open(project, repo, loop, &config, remote, NULL, &executor, &err);
 *     stet_call_arg args[] = {{.value = value}, {.node = &other}};
 *     stet_calls_node_spec spec = {.root = ".", .function = "dml+exec://stet-exec-local/sort", .args = args, .count = 2};
 *     stet_hash node;
 *     if (status == STET_OK)
 *         status = stet_calls_node(repo, &spec, &node, &err);
 *     if (status == STET_OK) // call/executor.h
 *         status = stet_executor_start(executor, &(stet_call_request){.node = node}, ended, ctx, &call, &err);
 *
 * Settings, in [calls] of config.toml:
 *
 *   attempts        5: maximum number of tries
 *   first           "1s": first wait of the back-off
 *   most            "60s": longest wait of the back-off
 *   poll_timeout    "60s": time limit for one question to an adapter
 *   adapters        16: adapter processes at the same time
 *   lease           "30s": lease of a claim
 *   remote          a file: or postgres: URI; without it calls run on this machine
 *   slots           maximum number of jobs at the same time on this machine; without it there is none
 *   pools           {NAME: places...}: what all projects of this user share on this machine
 */
#ifndef STET_EXEC_CALLS_H
#define STET_EXEC_CALLS_H

#include "call/executor.h"
#include "repo/hub.h"

typedef struct stet_calls_config {
    stet_backoff backoff;
    int64_t poll_timeout_ms, lease_ms;
    size_t adapters;
    char *remote;     /* NULL: none */
    int64_t slots;    /* 0: no limit */
    stet_value pools; /* {NAME: places} or null */
} stet_calls_config;

STET_CHECKED stet_status stet_calls_config_read(const stet_project *p, stet_calls_config *out, stet_error *err);
void stet_calls_config_release(stet_calls_config *c);

/* Opens the executor of a project. `remote` overrides the configured one; NULL: use the configured one, if any. Only
 * the callbacks and `ctx` of `more` are used; `more` may be NULL. */
STET_CHECKED stet_status stet_calls_open(stet_project *p, stet_repo *repo, struct uv_loop_s *loop,
                                         const stet_calls_config *config, const char *remote,
                                         const stet_executor_opts *more, stet_executor **out, stet_error *err);
char *stet_calls_dir(const stet_project *p); /* .stet/local/calls; caller frees */

/* An argument: a value, or the value of a node of the repository, which must exist. */
typedef struct stet_call_arg {
    stet_value value;
    const stet_hash *node; /* NULL: `value` */
} stet_call_arg;

typedef struct stet_calls_node_spec {
    const char *root; /* directory of the project, for the code of the call */
    const char *function;
    const stet_call_arg *args;
    size_t count;
    stet_value beside; /* counts, but is not passed; null: nothing */
    char **open;       /* if not NULL: why the result must not answer a later call, the caller's; NULL: it may */
} stet_calls_node_spec;

/* Stores a call node with everything it names. A function of stet-exec-local gets its code from the project's directory
 * (call/function.h): the content of each file, or, for a call that runs in place, the SHA-256 of it. What the node holds
 * beside the inputs is {"inputs": what counts but is not passed, "job": the canonical JSON of {"env": {NAME: VALUE...},
 * "dirs": [PATH...], "places": {ABSOLUTE PATH: PATH...}, "open": true}, as bytes}, each only if there is any: the
 * environment of this process, and what call/function.h finds. An open call has to be made with `cache` off. STET_INVALID: the
 * function can't be called this way. */
STET_CHECKED stet_status stet_calls_node(stet_repo *r, const stet_calls_node_spec *s, stet_hash *node, stet_error *err);
/* Could the call read more of the project than the files that it names? Why, which is the caller's; NULL: it could not. */
STET_CHECKED stet_status stet_calls_unseen(stet_repo *r, const stet_calls_node_spec *s, char **why, stet_error *err);
bool stet_calls_is_local(const char *function); /* is it one of stet-exec-local? */
/* Checks that this is a valid function URI; checks the options of stet-exec-local too. */
STET_CHECKED stet_status stet_calls_check(const char *function, stet_error *err);

/* The name under which this machine runs calls of this directory. A process with the same name can continue them. */
STET_CHECKED stet_status stet_calls_owner(const char *dir, char out[200], stet_error *err);

/* Lends a hub the repository of the project whose jobs are in `dir`, if it needs one. `*lent` is NULL or the caller's:
 * close it after the hub. */
STET_CHECKED stet_status stet_calls_lend(stet_hub *hub, const char *dir, stet_repo **lent, stet_error *err);

/* The URI of a hub: a `file:` or `postgres:` URI as it is, or that of a remote by its name in the repository (`stet remote
 * add`). Caller frees. STET_INVALID: the URI holds a password. */
STET_CHECKED stet_status stet_calls_remote(stet_repo *r, const char *text, char **uri, stet_error *err);

#define STET_CALLS_KEEP_MS ((int64_t)7 * 24 * 3600 * 1000) /* how long a finished claim is kept */
/* For `stet gc`: removes claims that ended long ago and logs of removed attempts. Adds their number to `*count`. */
STET_CHECKED stet_status stet_calls_sweep(stet_project *p, stet_repo *r, bool dry_run, int64_t *count, stet_error *err);

typedef enum stet_worker_event {
    STET_WORKER_TAKEN, /* a call was taken from the queue, or from an owner whose lease ended */
    STET_WORKER_OK,    /* it succeeded, and its result is published */
    STET_WORKER_ERROR, /* it failed, and its error is published */
    STET_WORKER_LOST   /* another worker has taken it over, or it was cancelled: the job was stopped */
} stet_worker_event;

typedef struct stet_worker_opts {
    const char *remote; /* URI of a hub */
    const char *dir, *root;
    int64_t slots; /* as in stet_calls_config */
    stet_value pools;
    size_t jobs;
    const char *const *labels; /* takes calls that ask for these, or for none; NULL-terminated, or NULL */
    int64_t lease_ms;
    int64_t idle_ms; /* ends after this long without work, and without calls that are going to be tried again; negative:
                      * never */
    stet_backoff backoff; /* how long callers wait before they try again */
    /* True: the worker takes nothing new, and ends when what it has taken is published. */
    bool (*cancelled)(void *ctx);
    void (*event)(void *ctx, stet_worker_event event, stet_hash key, const char *function);
    void (*say)(void *ctx, const char *line); /* an error that will be retried */
    void *ctx;
} stet_worker_opts;

typedef struct stet_worker_report {
    int64_t taken, ok, failed, lost;
} stet_worker_report;

/* Runs until it is cancelled or idle. If the process is killed, running jobs continue under their supervisor, and the next
 * worker takes them up. While it runs, the hub lists it: {"host","pid","jobs","running","labels","state","started"}. */
STET_CHECKED stet_status stet_worker_run(const stet_worker_opts *o, stet_worker_report *report, stet_error *err);

#endif
