/* stet-exec-local.c - the execution adapter that runs programs on this machine (docs/calls.md).
 *
 * The adapter reads one request on standard input and writes one reply on standard output (src/call/adapter.h). It is
 * started in the directory of a project. A call whose snapshot lies in that project's own repository runs here, under a
 * supervisor that outlives this process. A call whose snapshot lies in another repository is left there for a worker.
 *
 *     stet-exec-local keep DIR ROOT HUB LEASE_MS CLIENT
 *
 * is the keeper of running jobs (src/call/keeper.h), which this program and workers start.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"
#include "call/adapter.h"
#include "call/calls.h"
#include "call/keeper.h"
#include "call/orchestrate_local.h"
#include "os/clock.h"
#include "os/file.h"

#define REQUEST_MAX ((size_t)64 << 20)
#define LINGER_MS   200 /* a short job has ended when its first poll is answered */
#define AFTER_LEAST 50
#define AFTER_MOST  2000

typedef struct request {
    bool cancel;
    char *function, *remote, *ref, *execution;
    stet_hash node, key;
    stet_hash *inputs;
    size_t count;
    int64_t since_ms; /* when it was first asked for: what the token says */
    int64_t tries;
    bool fresh; /* there was no token */
} request;

static bool take(stet_value v, request *r) {
    stet_value snapshot = stet_value_get(v, "snapshot"), inputs = stet_value_get(v, "inputs");
    char *op = stet_value_text_copy(v, "op"), *token = stet_value_text_copy(v, "token");
    r->cancel = op && strcmp(op, "cancel") == 0;
    bool fine = stet_value_as_int(stet_value_get(v, "v")) == 2 && op && (r->cancel || strcmp(op, "poll") == 0) &&
                stet_hash_of_text(stet_value_get(v, "node"), &r->node) &&
                stet_hash_of_text(stet_value_get(v, "key"), &r->key) && stet_value_type(inputs) == STET_TYPE_ARRAY;
    r->function = stet_value_text_copy(v, "function");
    r->execution = stet_value_text_copy(v, "execution");
    r->remote = stet_value_text_copy(snapshot, "remote");
    r->ref = stet_value_text_copy(snapshot, "ref");
    r->count = stet_value_count(inputs);
    r->inputs = stet_alloc_zero((r->count + 1) * sizeof *r->inputs);
    for (size_t i = 0; i < r->count; i++)
        fine = fine && stet_hash_of_text(stet_value_at(inputs, i), &r->inputs[i]);
    r->tries = stet_value_as_int(stet_value_get(v, "tries"));
    r->fresh = !token;
    r->since_ms = token ? strtoll(token, NULL, 10) : 0;
    stet_free(op);
    stet_free(token);
    return fine && r->function && r->execution && r->remote && r->ref;
}

static stet_status read_request(request *r, stet_error *err) {
    stet_buf b = STET_BUF(REQUEST_MAX);
    for (;;) {
        char block[65536];
        ssize_t n = stet_sys_read(0, block, sizeof block);
        if (n <= 0)
            break;
        stet_buf_add(&b, block, (size_t)n);
    }
    stet_value v = stet_value_null();
    stet_status status = b.overflow ? stet_fail(err, STET_LIMIT, "the request is too long")
                                    : stet_json_parse(stet_buf_cstr(&b), b.len, &v, err);
    if (status == STET_OK && !take(v, r))
        status = stet_fail(err, STET_INVALID, "the request is not one of version 2");
    stet_value_release(v);
    stet_buf_release(&b);
    return status;
}

/* Is this the repository of that project? */
static bool same_file(stet_project *p, const stet_repo *remote) {
    char *own = stet_project_path(p, "local/repo.db");
    struct stat a, b;
    bool same = stet_sys_stat(own, &a) == 0 && stet_sys_stat(stet_repo_path(remote), &b) == 0 && a.st_dev == b.st_dev &&
                a.st_ino == b.st_ino;
    stet_free(own);
    return same;
}

static void print(stet_value reply) {
    size_t len;
    char *line = stet_json_print(reply, STET_JSON_CANONICAL, &len);
    printf("%.*s\n", (int)len, line);
    stet_free(line);
    stet_value_release(reply);
}

/* `said`: what the job says of its progress, taken over. */
static void reply_pending(const request *r, const stet_orch_answer *a, stet_value said) {
    int64_t now = stet_clock_ms(), since = r->since_ms > 0 && r->since_ms <= now ? r->since_ms : now;
    int64_t after = (now - since) / 10;
    stet_value v = stet_value_object(), progress = stet_value_object(), part;
    static const char *const counts[] = {"done", "total"};
    after = after < AFTER_LEAST ? AFTER_LEAST : after > AFTER_MOST ? AFTER_MOST : after;
    for (size_t i = 0; i < 2; i++)
        if (stet_value_find(said, counts[i], strlen(counts[i]), &part))
            stet_value_put(&progress, counts[i], stet_value_retain(part));
    stet_value_put(&progress, "note",
                   stet_value_find(said, "note", 4, &part) ? stet_value_retain(part)
                                                           : stet_value_string(stet_claim_state_name(a->claim)));
    stet_value_release(said);
    stet_value_put(&v, "v", stet_value_int(1));
    stet_value_put(&v, "status", stet_value_string("pending"));
    stet_value_put(&v, "token", stet_value_stringf("%lld", (long long)since));
    stet_value_put(&v, "poll_after_ms", stet_value_int(after));
    stet_value_put(&v, "progress", progress);
    print(v);
}

static void reply_done(const stet_orch_answer *a) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "v", stet_value_int(1));
    stet_value_put(&v, "status", stet_value_string("done"));
    stet_value_put(&v, "outcome", stet_value_string(a->state == STET_ORCH_DONE_OK ? "ok" : "error"));
    stet_value_put(&v, "result", stet_hash_text(a->result));
    if (a->state == STET_ORCH_DONE_ERROR && !a->kept) {
        stet_value_put(&v, "keep", stet_value_bool(false));
        stet_value_put(&v, "retry", stet_value_bool(a->retry));
    }
    print(v);
}

static stet_status serve(stet_orch *o, const request *r, stet_backend_local *backend, const stet_keeper_opts *keeper,
                         stet_error *err) {
    stet_orch_job job = {.key = r->key,
                         .node = r->node,
                         .function = r->function,
                         .inputs = r->inputs,
                         .input_count = r->count,
                         .execution = r->execution,
                         .ref = r->ref,
                         .tries = r->tries,
                         .fresh = r->fresh};
    stet_orch_answer a;
    if (r->cancel)
        return stet_orch_cancel(o, &job, err);
    stet_status status = stet_orch_poll(o, &job, &a, err);
    if (status == STET_OK && a.state == STET_ORCH_PENDING && backend && a.mine) {
        stet_backend_local_wait(backend, LINGER_MS);
        job.fresh = false;
        status = stet_orch_poll(o, &job, &a, err);
    }
    if (status == STET_OK && a.state == STET_ORCH_PENDING && backend && a.mine)
        stet_keeper_need(keeper); /* nobody may ask for it again */
    if (status == STET_OK && a.state == STET_ORCH_PENDING)
        reply_pending(r, &a, stet_orch_progress(o, &job));
    else if (status == STET_OK)
        reply_done(&a);
    return status;
}

static stet_status answer(const request *r, stet_error *err) {
    stet_hub *hub = NULL;
    stet_project *p = NULL;
    stet_backend_local *backend = NULL;
    stet_calls_config config = {.lease_ms = STET_ORCH_LEASE_MS};
    char owner[200] = "", *dir = NULL;
    stet_repo *own = NULL;
    stet_status status = stet_hub_open(r->remote, STET_REPO_MUST_EXIST, &hub, err);
    bool project = status == STET_OK && stet_project_find(".", &p, NULL) == STET_OK;
    bool here = project && stet_hub_repo(hub) && same_file(p, stet_hub_repo(hub));
    if (project && !stet_hub_repo(hub)) {
        status = stet_repo_open(p, 0, &own, err);
        if (status == STET_OK)
            stet_hub_lend(hub, own);
    } else if (status == STET_OK && !stet_hub_repo(hub))
        status = stet_fail(err, STET_NOT_FOUND, "a call that is left in a hub needs a project here");
    if (here) {
        status = stet_calls_config_read(p, &config, err);
        dir = stet_calls_dir(p);
        if (status == STET_OK)
            status = stet_calls_owner(dir, owner, err);
        backend = stet_backend_local_open(dir, stet_project_root(p), false);
        stet_backend_local_limit(backend, config.slots, config.pools);
    }
    stet_orch o = {.hub = hub,
                   .backend = &stet_backend_local_kind,
                   .backend_ctx = backend,
                   .owner = owner,
                   .lease_ms = config.lease_ms,
                   .queue = !here};
    stet_keeper_opts keeper = {.dir = dir, .root = here ? stet_project_root(p) : NULL, .hub = r->remote};
    keeper.lease_ms = config.lease_ms;
    if (status == STET_OK)
        status = serve(&o, r, backend, &keeper, err);
    stet_backend_local_close(backend);
    stet_hub_close(hub);
    stet_repo_close(own);
    stet_calls_config_release(&config);
    stet_project_close(p);
    stet_free(dir);
    return status;
}

static int keep(char **argv) {
    stet_error err = STET_ERROR_INIT;
    stet_keeper_opts o = {.dir = argv[2], .root = argv[3], .hub = argv[4], .lease_ms = strtoll(argv[5], NULL, 10)};
    char *dot;
    o.client.pid = strtoll(argv[6], &dot, 10);
    o.client.start = *dot == '.' ? strtoull(dot + 1, NULL, 16) : 0;
    stet_status status = stet_keeper_run(&o, &err);
    stet_error_clear(&err);
    return status == STET_OK ? 0 : 1;
}

int main(int argc, char **argv) {
    stet_error err = STET_ERROR_INIT;
    request r = {0};
    if (argc == 7 && strcmp(argv[1], "keep") == 0)
        return keep(argv);
    if (isatty(0)) {
        fputs("stet-exec-local is asked by stet: one JSON request on standard input\n", stderr);
        return 2;
    }
    stet_status status = read_request(&r, &err);
    if (status == STET_OK)
        status = answer(&r, &err);
    if (status == STET_OK && (fflush(stdout) != 0 || ferror(stdout)))
        status = stet_fail(&err, STET_IO, "cannot write the reply");
    if (status != STET_OK)
        fprintf(stderr, "stet-exec-local: %s\n", err.message);
    stet_error_clear(&err);
    stet_free(r.function);
    stet_free(r.remote);
    stet_free(r.ref);
    stet_free(r.execution);
    stet_free(r.inputs);
    bool again = status == STET_BUSY || status == STET_IO || status == STET_CONFLICT || status == STET_NOT_FOUND;
    return status == STET_OK ? 0 : again ? STET_ADAPTER_TRANSIENT : 1;
}
