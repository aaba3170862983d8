/* hub.c - what a call costs in a hub, and that it costs the same beside 20,000 calls that have ended.
 *
 * A call is queued, found and taken by a worker, and published; its job takes no time. Times are processor time, since
 * the disk is shared.
 */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "call/orchestrate.h"
#include "repo/hub.h"

enum { ENDED = 20000, CALLS = 300 };

static stet_error err;

static void must(stet_status status, const char *what) {
    if (status == STET_OK)
        return;
    fprintf(stderr, "bench/hub: %s: %s\n", what, err.message);
    exit(1);
}

static double cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static stet_status submit(void *ctx, const stet_orch_job *job, stet_repo *repo,
                          stet_status (*still_mine)(void *ctx, stet_error *e), void *mine, stet_value *identity,
                          stet_error *e) {
    (void)ctx;
    (void)job;
    (void)repo;
    *identity = stet_value_null();
    return still_mine(mine, e);
}

static stet_status poll_job(void *ctx, const stet_orch_job *job, stet_repo *repo, stet_job_status *status,
                            stet_value *value, stet_error *e) {
    (void)ctx;
    (void)job;
    (void)repo;
    (void)e;
    *status = STET_JOB_OK;
    *value = stet_value_int(1);
    return STET_OK;
}

static void nothing(void *ctx, const stet_orch_job *job) {
    (void)ctx;
    (void)job;
}

static const stet_backend backend = {submit, poll_job, nothing, nothing, NULL};
static int64_t number;

/* One call from its caller to its result. */
static void call(stet_hub *h, stet_hash node) {
    stet_orch caller = {.hub = h, .backend = &backend, .owner = "caller", .lease_ms = 30000, .queue = true};
    stet_orch worker = {.hub = h, .backend = &backend, .owner = "worker", .lease_ms = 30000};
    stet_orch_job job = {.key = stet_hash_of(&number, sizeof number),
                         .node = node,
                         .function = "dml+exec://bench/f",
                         .execution = "11111111-1111-4111-8111-111111111111",
                         .ref = "refs/exec/11111111-1111-4111-8111-111111111111"};
    stet_orch_answer a;
    stet_hub_keys keys = {0};
    number++;
    must(stet_orch_poll(&caller, &job, &a, &err), "queue");
    must(stet_orch_open_work(h, 8, &keys, &err), "find");
    if (keys.len != 1)
        exit(1);
    must(stet_orch_poll(&worker, &job, &a, &err), "work");
    must(stet_orch_poll(&caller, &job, &a, &err), "result");
    if (a.state != STET_ORCH_DONE_OK)
        exit(1);
    free(keys.at);
}

static double many(stet_hub *h, stet_hash node, int count) {
    double begin = cpu();
    for (int i = 0; i < count; i++)
        call(h, node);
    return (cpu() - begin) / count * 1e6;
}

int main(void) {
    stet_repo *r;
    stet_hash node, datum;
    must(stet_repo_open_path("hub.db", 0, &r, &err), "open");
    stet_hub *h = stet_hub_of_repo(r);
    must(stet_datum_id(stet_value_int(1), stet_repo_sink(r), &datum, &err), "datum");
    must(stet_node_literal(datum, stet_repo_sink(r), &node, &err), "node");
    many(h, node, 10);
    double before = many(h, node, CALLS);
    must(stet_repo_begin(r, &err), "begin");
    many(h, node, ENDED);
    must(stet_repo_commit(r, &err), "commit");
    double after = many(h, node, CALLS);
    printf("a call through a file hub: %.0f us of processor time; beside %d that have ended: %.0f us\n", before, ENDED,
           after);
    stet_hub_close(h);
    stet_repo_close(r);
    return 0;
}
