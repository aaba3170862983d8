/* calls.h - calls of a project: their settings, making the nodes, and workers.
 *
 *     stet_calls_config config;
 *     status = stet_calls_config_read(project, &config, &err);
 *     status = stet_calls_open(project, repo, loop, &config, remote, &more, &executor, &err);
 *     stet_call_arg args[] = {{.value = value}, {.node = &other}};
 *     status = stet_calls_node(repo, "dml+exec://stet-exec-local/sort", args, 2, &node, &err);
 *     status = stet_executor_start(executor, ...);                        // exec/executor.h
 *
 * Settings, in [calls] of config.toml: `attempts` (5), `first` ("1s") and `most` ("60s") of the back-off,
 * `poll_timeout`
 * ("60s", one question to an adapter), `adapters` (16, processes at a time), `lease` ("30s", of a claim), `remote` (a
 * file: URI; none: calls run on this machine). */
#ifndef STET_EXEC_CALLS_H
#define STET_EXEC_CALLS_H

#include "exec/executor.h"

typedef struct stet_calls_config {
    stet_backoff backoff;
    int64_t poll_timeout_ms, lease_ms;
    size_t adapters;
    char *remote; /* or NULL */
} stet_calls_config;

STET_CHECKED stet_status stet_calls_config_read(const stet_project *p, stet_calls_config *out, stet_error *err);
void stet_calls_config_release(stet_calls_config *c);

/* The executor of a project. `remote` beats the configured one; NULL: that one, or none. Of `more` only the callbacks
 * and `ctx` are looked at; NULL: none. */
STET_CHECKED stet_status stet_calls_open(stet_project *p, stet_repo *repo, struct uv_loop_s *loop,
                                         const stet_calls_config *config, const char *remote,
                                         const stet_executor_opts *more, stet_executor **out, stet_error *err);
char *stet_calls_dir(const stet_project *p); /* .stet/local/calls; caller frees */

/* An argument: a value, or the value of a node of the repository, which must have one. */
typedef struct stet_call_arg {
    stet_value value;
    const stet_hash *node; /* NULL: `value` */
} stet_call_arg;

/* The call node, stored with all it names. STET_INVALID: the function can't be called so. */
STET_CHECKED stet_status stet_calls_node(stet_repo *r, const char *function, const stet_call_arg *args, size_t count,
                                         stet_hash *node, stet_error *err);
/* Is it a function at all? Options of stet-exec-local are looked at, too. */
STET_CHECKED stet_status stet_calls_check(const char *function, stet_error *err);

/* The name under which this machine runs calls of this directory: whoever has it can go on with them. */
STET_CHECKED stet_status stet_calls_owner(const char *dir, char out[200], stet_error *err);

/* A remote by its name in the repository (`stet remote add`), or a `file:` URI as it is. Caller frees. */
STET_CHECKED stet_status stet_calls_remote(stet_repo *r, const char *text, char **uri, stet_error *err);

/* What `stet gc` has to do for calls: claims that ended long ago, and logs of attempts that are gone. Their number is
 * added to `*count`. */
STET_CHECKED stet_status stet_calls_sweep(stet_project *p, stet_repo *r, bool dry_run, int64_t *count, stet_error *err);

/* ---- Workers ---- */

typedef enum stet_worker_event {
    STET_WORKER_TAKEN, /* a call was taken from the queue, or from an owner that is gone */
    STET_WORKER_OK,    /* it ended, and its result is published */
    STET_WORKER_ERROR, /* the same; it failed */
    STET_WORKER_LOST   /* somebody has taken it over, or it was cancelled: what ran was ended */
} stet_worker_event;

typedef struct stet_worker_opts {
    const char *remote; /* URI */
    const char *dir, *root;
    size_t jobs;
    int64_t lease_ms;
    int64_t idle_ms; /* ends when there was nothing to do for that long; negative: never */
    bool (*cancelled)(void *ctx);
    void (*event)(void *ctx, stet_worker_event event, stet_hash key, const char *function);
    void (*say)(void *ctx, const char *line); /* something went wrong, and is tried again */
    void *ctx;
} stet_worker_opts;

typedef struct stet_worker_report {
    int64_t taken, ok, failed, lost;
} stet_worker_report;

/* Runs until it is cancelled (what runs goes on under its supervisor, and whoever comes next takes it up) or idle. */
STET_CHECKED stet_status stet_worker_run(const stet_worker_opts *o, stet_worker_report *report, stet_error *err);

#endif
