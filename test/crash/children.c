/* A run that adds, changes and tears down children is killed at each of its system calls in turn. Whatever it got to,
 * the next start makes of it what a run from scratch would have made, and leaves nothing over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json.h"
#include "graph/piece.h"
#include "memory/observe.h"
#include "os/sys.h"
#include "scheduler/sched.h"

#define ok(call)                                                                                                       \
    do {                                                                                                               \
        stet_error err = STET_ERROR_INIT;                                                                              \
        stet_status status_ = (call);                                                                                  \
        if (status_ != STET_OK)                                                                                        \
            fail_msg("%s: %s: %s", #call, stet_status_name(status_), err.message);                                     \
    } while (0)

static const char pattern_text[] =
    "{\"pattern\":1,\"name\":\"p\",\"argument\":{\"default\":{\"rows\":[]}},\"nodes\":[{\"id\":\"rows\",\"module\":{"
    "\"type\":\"ref\",\"ref\":\"map\",\"key\":\"id\",\"pattern\":{\"pattern\":1,\"name\":\"row\",\"cells\":{\"plus\":{"
    "\"default\":1}},\"nodes\":[{\"id\":\"ns\",\"module\":{\"type\":\"ref\",\"ref\":\"map\",\"pattern\":{\"pattern\":1,"
    "\"name\":\"n\",\"nodes\":[{\"id\":\"x\",\"module\":{\"type\":\"ref\",\"ref\":\"multiply\"},\"inputs\":[{\"$\":"
    "\"argument/element\"},10]}],\"result\":{\"$\":\"x\"}}},\"inputs\":{\"list\":{\"$\":\"argument/element/ns\"}}},{"
    "\"id\":\"sum\",\"module\":{\"type\":\"ref\",\"ref\":\"sum\"},\"inputs\":{\"values\":{\"$\":\"ns\"}}}],\"result\":{"
    "\"$\":\"sum\"}}},\"inputs\":{\"list\":{\"$\":\"argument/rows\"}}}],\"result\":{\"$\":\"rows\"}}";

typedef struct world {
    stet_project *project;
    stet_space *space;
    stet_sched *sched;
} world;

static void open_all(world *w) {
    stet_sched_opts opts = {.persist = true, .group_runs = 3};
    ok(stet_project_open("p", &w->project, &err));
    ok(stet_space_open(w->project, "main", 0, &w->space, &err));
    ok(stet_sched_open(w->project, w->space, "", &opts, &w->sched, &err));
}

static void close_all(world *w) {
    stet_sched_close(w->sched);
    stet_space_close(w->space);
    stet_project_close(w->project);
}

static void set_rows(world *w, const char *json) {
    stet_tx *tx;
    stet_value v;
    ok(stet_json_parse(json, strlen(json), &v, &err));
    ok(stet_tx_begin(w->space, "", &tx, &err));
    ok(stet_tx_set(tx, "piece:p:argument/rows", NULL, v, &err));
    ok(stet_tx_commit(tx, NULL, &err));
}

static void settle(world *w) {
    stet_sched_report report;
    ok(stet_sched_demand_piece(w->sched, "p", &err));
    ok(stet_sched_settle(w->sched, &report, &err));
    assert_int_equal(report.failed, 0);
    stet_release(report.problems);
}

static void is(world *w, long at, const char *expected) {
    stet_path path = STET_PATH_INIT;
    stet_value v;
    stet_path_push(&path, "value");
    ok(stet_sched_get(w->sched, "piece:p", NULL, stet_path_ref(&path), &v, &err));
    char *text = stet_json_print(v, STET_JSON_CANONICAL, NULL);
    if (strcmp(text, expected) != 0)
        fail_msg("killed at call %ld: expected %s, found %s", at, expected, text);
    stet_free(text);
    stet_release(v);
    stet_path_release(&path);
}

static void sound(world *w, long at) {
    stet_buf problems = STET_BUF(0);
    size_t found[2], repaired;
    ok(stet_observe_check(w->space, false, &problems, &found[0], &repaired, &err));
    ok(stet_children_check(w->space, false, &problems, &found[1], &repaired, &err));
    if (found[0] + found[1])
        fail_msg("killed at call %ld: %s", at, stet_buf_cstr(&problems));
    stet_buf_release(&problems);
}

static long kill_after;
static stet_sys_action kill_hook(stet_sys_fault *fault) {
    (void)fault;
    return --kill_after == 0 ? STET_SYS_KILL : STET_SYS_GO;
}

static bool run_killed(world *w, long at) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        open_all(w);
        kill_after = at;
        stet_sys_hook = kill_hook;
        settle(w);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status);
}

static void killed_at_every_call(void **state) {
    (void)state;
    static const char *const lists[] = {
        "[{\"id\":\"a\",\"ns\":[1,2]},{\"id\":\"b\",\"ns\":[3]},{\"id\":\"c\",\"ns\":[4,5]}]",
        "[{\"id\":\"c\",\"ns\":[4,6]},{\"id\":\"d\",\"ns\":[7,7]},{\"id\":\"b\",\"ns\":[3]}]",
    };
    static const char *const results[] = {"[30,30,90]", "[100,140,30]"};
    static const stet_pattern_checks checks = {.module = stet_module_check};
    world w;
    stet_pattern *p;
    stet_sched_installed in;
    bool created;
    ok(stet_project_init("p", &created, &err));
    open_all(&w);
    ok(stet_pattern_parse("p", pattern_text, strlen(pattern_text), &checks, &p, NULL, &err));
    ok(stet_sched_install(w.sched, p, "p", stet_null(), stet_null(), &in, &err));
    stet_pattern_free(p);
    long step = getenv("STET_TEST_LONG") ? 1 : getenv("STET_TEST_SHORT") ? 7 : 2;
    bool killed = true;
    for (long at = 1; killed; at += step) {
        int list = (int)(at / step % 2);
        set_rows(&w, lists[list]);
        close_all(&w);
        killed = run_killed(&w, at);
        open_all(&w);
        sound(&w, at);
        settle(&w);
        is(&w, at, results[list]);
        sound(&w, at);
    }
    close_all(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_at_every_call)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
