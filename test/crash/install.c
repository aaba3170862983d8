/* install.c - a process dies at every system call in turn while it gives a piece another program.
 *
 * However far it got, the next process sets the program up, or finds it set up, and ends with what a run from scratch
 * would give; what did not change does not run again, and nothing is recorded of a node that is gone.
 */

#include "../sched_kit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../faults.h"

#define NODES(last)                                                                                                    \
    "{'pattern':1,'name':'t','argument':{'default':{'a':1,'b':2}},'nodes':["                                           \
    "{'id':'keep','module':{'type':'ref','ref':'add'},'inputs':[{'$':'argument/b'},1]}," last
static const char before[] = NODES("{'id':'x','module':{'type':'ref','ref':'add'},'inputs':[{'$':'argument/a'},1]},"
                                   "{'id':'gone','module':{'type':'ref','ref':'add'},'inputs':[{'$':'x'},1]}],"
                                   "'result':[{'$':'keep'},{'$':'x'},{'$':'gone'}]}");
static const char after[] = NODES("{'id':'x','module':{'type':'ref','ref':'add'},'inputs':[{'$':'argument/a'},1000]},"
                                  "{'id':'new','module':{'type':'ref','ref':'add'},'inputs':[{'$':'x'},5]}],"
                                  "'result':[{'$':'keep'},{'$':'x'},{'$':'new'}]}");

/* True if the child was killed, false if it came to its end. */
static bool install_in_a_child(const char *root, long calls) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        world *w = stet_alloc_zero(sizeof *w);
        w->ran = w->log = (stet_buf)STET_BUF(0);
        w->opts = (stet_sched_opts){.persist = true};
        faults_arm_any(calls, STET_SYS_KILL, 0);
        kit_open(w, root);
        kit_install(w, "t", after);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

static bool is_recorded(world *w, const char *node) {
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    stet_action_key key = {"piece:t", NULL, node};
    bool there = stet_observe_find(w->space, 0, &key, &arena, &r, NULL) == STET_OK;
    stet_arena_release(&arena);
    return there;
}

/* The graph and the record of its actions are replaced together. */
static void is_one_or_the_other(world *w) {
    stet_piece *p;
    stet_value row;
    ok(stet_piece_load(w->space, 0, "t", -1, &p, &err));
    bool old = stet_piece_row(w->space, 0, p, "gone", &row, NULL) == STET_OK;
    if (old)
        stet_value_release(row);
    assert_int_equal(is_recorded(w, "gone"), old);
    assert_int_equal(is_recorded(w, "new"), !old);
    stet_piece_free(p);
}

static void killed_while_a_program_is_set_up(void **state) {
    (void)state;
    long step = getenv("STET_TEST_SHORT") ? 7 : getenv("STET_TEST_LONG") ? 1 : 2, kills = 0;
    bool killed = true;
    for (long calls = 1; killed; calls += step) {
        world *w = kit_start();
        char *root = stet_strdup(stet_project_root(w->project));
        kit_install(w, "t", before);
        kit_run(w, "t");
        kit_is(w, "piece:t", "[3,2,3]");
        kit_close(w);
        killed = install_in_a_child(root, calls);
        kills += killed;
        kit_open(w, root);
        is_one_or_the_other(w);
        kit_install(w, "t", after);
        kit_run(w, "t");
        kit_ran(w, "x new");
        kit_is(w, "piece:t", "[3,1001,1006]");
        kit_restart(w);
        kit_run(w, "t");
        kit_ran(w, "");
        kit_is(w, "piece:t:node:gone", "not_found");
        assert_false(is_recorded(w, "gone"));
        kit_sound(w);
        stet_free(root);
        kit_stop(w);
    }
    printf("# %ld kills\n", kills);
    assert_true(kills * step > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_while_a_program_is_set_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
