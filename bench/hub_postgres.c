/* hub_postgres.c - calls per second over PostgreSQL with four workers, beside the same calls on this machine alone.
 *
 * Each call runs a program that does nothing. All calls are made at once by one process; the server, its client and the
 * workers share the machine.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "call/calls.h"

enum { CALLS = 200, WORKERS = 4 };

static stet_error err;
static int open_calls;

static void must(stet_status status, const char *what) {
    if (status == STET_OK)
        return;
    fprintf(stderr, "bench/hub_postgres: %s: %s\n", what, err.message);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void ended(void *ctx, stet_call *c) {
    (void)ctx;
    if (stet_call_state_of(c) != STET_CALL_COMPLETED_OK) {
        const stet_error *e = stet_call_outcome_of(c)->error;
        fprintf(stderr, "bench/hub_postgres: a call is %s: %s\n", stet_call_state_name(stet_call_state_of(c)),
                e ? e->message : "");
        exit(1);
    }
    stet_call_free(c);
    open_calls--;
}

/* Seconds for all calls. `v` makes them calls of their own. */
static double run(stet_project *p, const char *hub, int v) {
    stet_repo *r;
    stet_calls_config config;
    stet_executor *x;
    uv_loop_t loop;
    must(stet_calls_config_read(p, &config, &err), "config");
    must(stet_repo_open(p, 0, &r, &err), "repository");
    uv_loop_init(&loop);
    must(stet_calls_open(p, r, &loop, &config, hub, NULL, &x, &err), "executor");
    double begin = now();
    for (int i = 0; i < CALLS; i++) {
        char function[100];
        stet_hash node;
        stet_call *c;
        stet_call_arg arg = {.value = stet_value_int(i)};
        snprintf(function, sizeof function, "dml+exec://stet-exec-local/true?stdin=null&v=%d", v);
        must(stet_calls_node(r, &(stet_calls_node_spec){.root = ".", .function = function, .args = &arg, .count = 1},
                             &node, &err),
             "node");
        must(stet_executor_start(x, &(stet_call_request){.node = node, .cache = true}, ended, NULL, &c, &err), "start");
        open_calls++;
    }
    while (open_calls > 0)
        uv_run(&loop, UV_RUN_ONCE);
    double took = now() - begin;
    stet_executor_close(x);
    uv_run(&loop, UV_RUN_NOWAIT);
    uv_loop_close(&loop);
    stet_repo_close(r);
    stet_calls_config_release(&config);
    return took;
}

static pid_t start_worker(const char *dir, const char *hub) {
    pid_t pid = fork();
    if (pid == 0) {
        if (chdir(dir) != 0 || !freopen("/dev/null", "w", stdout))
            _exit(1);
        execl(getenv("STET"), "stet", "worker", "--hub", hub, "-j", "2", (char *)NULL);
        _exit(127);
    }
    return pid;
}

int main(void) {
    char hub[4200] = "", command[4200], path[8300];
    bool changed;
    stet_project *p;
    pid_t pids[WORKERS];
    snprintf(command, sizeof command, "chmod 711 . && %s/test/postgres pg start", getenv("STET_SOURCE"));
    snprintf(path, sizeof path, "%s:%s", getenv("STET_BUILD"), getenv("PATH"));
    setenv("PATH", path, 1);
    FILE *server = popen(command, "r");
    if (!server || !fgets(hub, sizeof hub, server)) {
        fprintf(stderr, "bench/hub_postgres: no server (package postgresql-15)\n");
        return 1;
    }
    pclose(server);
    hub[strcspn(hub, "\n")] = 0;
    must(stet_hub_init(hub, &changed, &err), "hub");
    must(stet_project_init("p", &changed, &err), "init");
    must(stet_project_open("p", &p, &err), "open");
    double local = run(p, NULL, 1);
    for (int i = 0; i < WORKERS; i++) {
        char dir[20];
        snprintf(dir, sizeof dir, "w%d", i);
        must(stet_project_init(dir, &changed, &err), "init");
        pids[i] = start_worker(dir, hub);
    }
    run(p, hub, 2); /* workers are up */
    double far = run(p, hub, 3);
    for (int i = 0; i < WORKERS; i++)
        kill(pids[i], SIGTERM);
    for (int i = 0; i < WORKERS; i++)
        waitpid(pids[i], NULL, 0);
    printf("calls of /bin/true: %.0f/s over PostgreSQL with %d workers on this machine; %.0f/s without a hub\n",
           CALLS / far, WORKERS, CALLS / local);
    stet_project_close(p);
    snprintf(command, sizeof command, "%s/test/postgres pg stop", getenv("STET_SOURCE"));
    return system(command) == 0 ? 0 : 1;
}
