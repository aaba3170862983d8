/* children.c - a run that adds, changes and tears down children is killed at each of its system calls in turn.
 *
 * However far it got, the next start makes of it what a run from scratch would have made, and leaves nothing over.
 */

#include "../sched_kit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../faults.h"

static const char pattern_text[] =
    "{\"pattern\":1,\"name\":\"p\",\"argument\":{\"default\":{\"rows\":[]}},\"nodes\":[{\"id\":\"rows\",\"module\":{"
    "\"type\":\"ref\",\"ref\":\"map\",\"key\":\"id\",\"pattern\":{\"pattern\":1,\"name\":\"row\",\"cells\":{\"plus\":{"
    "\"default\":1}},\"nodes\":[{\"id\":\"ns\",\"module\":{\"type\":\"ref\",\"ref\":\"map\",\"pattern\":{\"pattern\":1,"
    "\"name\":\"n\",\"nodes\":[{\"id\":\"x\",\"module\":{\"type\":\"ref\",\"ref\":\"multiply\"},\"inputs\":[{\"$\":"
    "\"argument/element\"},10]}],\"result\":{\"$\":\"x\"}}},\"inputs\":{\"list\":{\"$\":\"argument/element/ns\"}}},{"
    "\"id\":\"sum\",\"module\":{\"type\":\"ref\",\"ref\":\"sum\"},\"inputs\":{\"values\":{\"$\":\"ns\"}}}],\"result\":{"
    "\"$\":\"sum\"}}},\"inputs\":{\"list\":{\"$\":\"argument/rows\"}}}],\"result\":{\"$\":\"rows\"}}";

/* True if the child was killed, false if it came to its end. */
static bool run_killed(world *w, const char *root, long at) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        kit_open(w, root);
        faults_arm_any(at, STET_SYS_KILL, 0);
        kit_run(w, "p");
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

static void killed_at_every_call(void **state) {
    (void)state;
    static const char *const lists[] = {
        "[{'id':'a','ns':[1,2]},{'id':'b','ns':[3]},{'id':'c','ns':[4,5]}]",
        "[{'id':'c','ns':[4,6]},{'id':'d','ns':[7,7]},{'id':'b','ns':[3]}]",
    };
    static const char *const results[] = {"[30,30,90]", "[100,140,30]"};
    world *w = kit_start();
    char *root = stet_strdup(stet_project_root(w->project));
    w->opts.group_runs = 3;
    kit_restart(w);
    kit_install(w, "p", pattern_text);
    long step = getenv("STET_TEST_LONG") ? 1 : getenv("STET_TEST_SHORT") ? 7 : 2;
    bool killed = true;
    for (long at = 1; killed; at += step) {
        int list = (int)(at / step % 2);
        kit_set(w, "piece:p:argument/rows", lists[list]);
        kit_close(w);
        killed = run_killed(w, root, at);
        kit_open(w, root);
        print_message("# killed at call %ld\n", at);
        kit_recorded(w);
        kit_run(w, "p");
        assert_int_equal(w->report.failed, 0);
        kit_is(w, "piece:p", results[list]);
        kit_recorded(w);
    }
    stet_free(root);
    kit_stop(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_at_every_call)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
