/* cells.c - materializers and events.
 *
 * Measures how many readers of an envelope run when one cell in it changes, after a restart; and how many events are
 * applied per second, each durable, compared with bare commits of the same size.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "os/file.h"
#include "scheduler/sched.h"

#define READERS 1000
#define EVENTS  500

#define must(call)                                                                                                     \
    do {                                                                                                               \
        stet_error err = STET_ERROR_INIT;                                                                              \
        if ((call) != STET_OK) {                                                                                       \
            fprintf(stderr, "%s: %s\n", #call, err.message);                                                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static stet_project *project;
static stet_space *space;
static stet_sched *sched;

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void restart(void) {
    stet_sched_close(sched);
    stet_space_close(space);
    must(stet_space_open(project, "main", 0, &space, &err));
    must(stet_sched_open(project, space, "", &(stet_sched_opts){.persist = true}, &sched, &err));
}

static void install(const char *name, const stet_buf *text) {
    static const stet_pattern_checks checks = {.module = stet_module_check};
    stet_pattern *p;
    stet_sched_installed in;
    must(stet_pattern_parse("bench", text->data, text->len, &checks, &p, NULL, &err));
    must(stet_sched_install(sched, p, name, stet_value_null(), stet_value_null(), &in, &err));
    stet_pattern_free(p);
}

static stet_sched_report settle(const char *piece) {
    stet_sched_report r;
    must(stet_sched_demand_piece(sched, piece, &err));
    must(stet_sched_settle(sched, &r, &err));
    stet_value_release(r.problems);
    return r;
}

static void set(const char *cell, int64_t value) {
    stet_tx *tx;
    must(stet_tx_begin(space, "", &tx, &err));
    must(stet_tx_set(tx, cell, NULL, stet_value_int(value), &err));
    must(stet_tx_commit(tx, NULL, &err));
}

static void materializer(void) {
    stet_buf b = STET_BUF(0);
    stet_buf_str(&b,
                 "{\"pattern\":1,\"name\":\"wide\",\"argument\":{\"default\":{\"key\":7,\"value\":1}},\"cells\":{"
                 "\"index\":{\"default\":{}}},\"nodes\":[{\"id\":\"fill\",\"materializerWriteInputPaths\":[\"index\"],"
                 "\"inputs\":{\"key\":{\"$\":\"argument/key\"},\"value\":{\"$\":\"argument/value\"},\"index\":{\"$\":"
                 "\"index\",\"asCell\":true}},\"module\":{\"type\":\"javascript\",\"implementation\":\"({key, value, "
                 "index}) => { index.key(`k${key}`).set(value) }\"}}");
    for (int i = 0; i < READERS; i++)
        stet_buf_printf(&b,
                        ",{\"id\":\"r%d\",\"inputs\":[{\"$\":\"index/k%d\"},0],\"module\":{\"type\":\"ref\",\"ref\":"
                        "\"max\"}}",
                        i, i);
    stet_buf_str(&b, "],\"result\":[");
    for (int i = 0; i < READERS; i++)
        stet_buf_printf(&b, "%s{\"$\":\"r%d\"}", i ? "," : "", i);
    stet_buf_str(&b, "]}");
    install("wide", &b);
    stet_buf_release(&b);
    settle("wide");
    set("piece:wide:argument/value", 2);
    restart();
    double start = now(CLOCK_PROCESS_CPUTIME_ID);
    stet_sched_report r = settle("wide");
    double ms = (now(CLOCK_PROCESS_CPUTIME_ID) - start) * 1000;
    printf("materializer, %d readers of its envelope, one touched: ours %zu readers ran, peer 1, ratio %.1f (goal 1)\n",
           READERS, r.runs - 1, (double)(r.runs - 1));
    printf("# %.1f ms of processor time after a restart, the engine's start included; %zu actions loaded\n", ms,
           r.loaded);
}

static void events(void) {
    stet_buf b = STET_BUF(0);
    stet_buf_str(
        &b, "{\"pattern\":1,\"name\":\"count\",\"cells\":{\"n\":{\"default\":0}},\"nodes\":[{\"id\":\"add\",\"stream\":"
            "{\"$\":\"add\"},\"inputs\":{\"n\":{\"$\":\"n\",\"asCell\":true}},\"module\":{\"type\":\"javascript\","
            "\"handler\":true,\"implementation\":\"(e, {n}) => { n.set(n.get() + e) }\"}}],\"result\":{\"n\":{"
            "\"$\":\"n\"}}}");
    install("count", &b);
    stet_buf_release(&b);
    stet_sched_sent sent;
    must(stet_sched_send(sched, "count", "add", stet_value_int(1), NULL, &sent, &err));
    double start = now(CLOCK_MONOTONIC);
    for (int i = 0; i < EVENTS; i++)
        must(stet_sched_send(sched, "count", "add", stet_value_int(1), NULL, &sent, &err));
    double ours = EVENTS / (now(CLOCK_MONOTONIC) - start);
    start = now(CLOCK_MONOTONIC);
    for (int i = 0; i < EVENTS; i++) {
        stet_tx *tx;
        stet_value v;
        char id[32];
        snprintf(id, sizeof id, "event-%d", i);
        must(stet_tx_begin(space, "", &tx, &err));
        if (stet_tx_get(tx, "bare", NULL, &v, NULL) != STET_OK)
            v = stet_value_null();
        (void)v;
        must(stet_tx_set(tx, "bare", NULL, stet_value_int(i), &err));
        must(stet_tx_require_absent(tx, id, NULL, &err));
        must(stet_tx_set(tx, id, NULL, stet_value_int(i), &err));
        must(stet_tx_commit(tx, NULL, &err));
    }
    double peer = EVENTS / (now(CLOCK_MONOTONIC) - start);
    printf("events, each durable: ours %.0f/s, peer %.0f/s (bare commits), ratio %.2f (goal 0.5)\n", ours, peer,
           ours / peer);
}

int main(void) {
    char dir[] = "/tmp/stet-bench-cells.XXXXXX", *plugins;
    const char *build = getenv("STET_BUILD");
    must(stet_file_realpath(build ? build : "build", &plugins, &err));
    char *lib = stet_file_join(plugins, "lib/stet");
    setenv("STET_PLUGINS", lib, 0);
    if (!mkdtemp(dir) || chdir(dir) != 0)
        return 1;
    bool created;
    must(stet_project_init(".", &created, &err));
    must(stet_project_open(".", &project, &err));
    restart();
    materializer();
    events();
    stet_sched_close(sched);
    stet_space_close(space);
    stet_project_close(project);
    must(stet_file_remove_tree(dir, &err));
    stet_free(lib);
    stet_free(plugins);
    return 0;
}
