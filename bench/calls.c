/* calls.c - how fast a pinned call is answered, and what a call costs that runs a program.
 *
 * A pinned call is answered by the look-up alone, and by a complete executor. The program runs through stet-exec-local.
 * Times are processor time, since the disk is shared.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <uv.h>

#include "call/calls.h"

enum { PINS = 10000, HITS = 300000, LOOKS = 1000000, COLD = 100 };

static stet_error err;

static void must(stet_status status, const char *what) {
    if (status == STET_OK)
        return;
    fprintf(stderr, "bench/calls: %s: %s\n", what, err.message);
    exit(1);
}

static double cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* With what its children took. */
static double cpu_of_all(void) {
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return cpu() + (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static stet_pin *prepare(stet_repo *r) {
    stet_pin *pins = malloc(PINS * sizeof *pins);
    must(stet_repo_begin(r, &err), "begin");
    for (int i = 0; i < PINS; i++) {
        stet_hash datum, node, dag;
        must(stet_repo_put_result(r, stet_value_int(i), &dag, &err), "result");
        must(stet_datum_id(stet_value_int(i), stet_repo_sink(r), &datum, &err), "datum");
        must(stet_node_literal(datum, stet_repo_sink(r), &node, &err), "literal");
        must(stet_node_call("dml+exec://bench/f", &node, 1, stet_repo_sink(r), &pins[i].node, &err), "call");
        stet_exec e = {.node = pins[i].node, .result = dag, .ok = true, .attempt = 1};
        must(stet_repo_put_exec(r, &e, &pins[i].exec, &err), "exec");
    }
    must(stet_repo_pin(r, pins, PINS, NULL, &err), "pin");
    must(stet_repo_commit(r, &err), "commit");
    return pins;
}

static int open_calls;

static void ended(void *ctx, stet_call *c) {
    stet_call_state *want = ctx;
    if (stet_call_state_of(c) != *want) {
        const stet_error *e = stet_call_outcome_of(c)->error;
        fprintf(stderr, "bench/calls: a call is %s: %s\n", stet_call_state_name(stet_call_state_of(c)),
                e ? e->message : "");
        exit(1);
    }
    stet_call_free(c);
    open_calls--;
}

static void look_ups(stet_executor *x, const stet_pin *pins) {
    double begin = cpu();
    for (int i = 0; i < LOOKS; i++) {
        bool there;
        stet_hash exec;
        must(stet_executor_pinned(x, pins[(size_t)i * 7919 % PINS].node, &there, &exec, &err), "pinned");
        if (!there)
            exit(1);
    }
    double rate = LOOKS / (cpu() - begin);
    printf("pinned hits, looked up: ours %.0f/s, peer 100000/s, ratio %.2f (goal 1.00)\n", rate, rate / 100000);
}

static void hits(stet_executor *x, uv_loop_t *loop, const stet_pin *pins) {
    stet_call_state want = STET_CALL_PINNED_HIT;
    double begin = cpu();
    for (int i = 0; i < HITS; i++) {
        stet_call *c;
        stet_call_request r = {.node = pins[(size_t)i * 7919 % PINS].node, .cache = true};
        must(stet_executor_start(x, &r, ended, &want, &c, &err), "start");
        open_calls++;
        if (i % 64 == 63)
            while (open_calls > 0)
                uv_run(loop, UV_RUN_ONCE);
    }
    while (open_calls > 0)
        uv_run(loop, UV_RUN_ONCE);
    double rate = HITS / (cpu() - begin);
    printf("pinned hits, started and ended by an executor: ours %.0f/s, peer 100000/s, ratio %.2f (goal 1.00)\n", rate,
           rate / 100000);
}

static void cold(stet_executor *x, uv_loop_t *loop, stet_repo *r) {
    stet_call_state want = STET_CALL_COMPLETED_OK;
    double begin = cpu_of_all();
    for (int i = 0; i < COLD; i++) {
        stet_hash node;
        stet_call *c;
        stet_call_arg arg = {.value = stet_value_int(i)};
        must(stet_calls_node(r,
                             &(stet_calls_node_spec){
                                 .root = ".", .function = "dml+exec://stet-exec-local/cat", .args = &arg, .count = 1},
                             &node, &err),
             "node");
        must(stet_executor_start(x, &(stet_call_request){.node = node, .cache = true}, ended, &want, &c, &err),
             "start");
        open_calls++;
    }
    while (open_calls > 0)
        uv_run(loop, UV_RUN_ONCE);
    printf("a call of /bin/cat through stet-exec-local: %.1f ms of processor time, supervisors not counted\n",
           (cpu_of_all() - begin) / COLD * 1e3);
}

int main(void) {
    bool created;
    stet_project *p;
    stet_repo *r;
    uv_loop_t loop;
    stet_executor *x;
    stet_calls_config config;
    must(stet_project_init("p", &created, &err), "init");
    must(stet_project_open("p", &p, &err), "open");
    must(stet_calls_config_read(p, &config, &err), "config");
    must(stet_repo_open(p, 0, &r, &err), "repository");
    uv_loop_init(&loop);
    must(stet_calls_open(p, r, &loop, &config, NULL, NULL, &x, &err), "executor");
    stet_pin *pins = prepare(r);
    look_ups(x, pins);
    hits(x, &loop, pins);
    cold(x, &loop, r);
    stet_executor_close(x);
    uv_loop_close(&loop);
    stet_repo_close(r);
    stet_calls_config_release(&config);
    stet_project_close(p);
    free(pins);
    return 0;
}
