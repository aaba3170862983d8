/* sched_window.c - large graphs in little memory.
 *
 * Dirty and unknown actions are loaded a window at a time, what ran and is stored leaves memory, and the results show
 * none of that.
 */

#include "../sched_kit.h"

#include "files/files.h"
#include "memory/observe.h"
#include "os/file.h"

/* `length` nodes n0..., each one more than the one before; n0 reads argument/a. */
static void chain(world *w, const char *piece, int length, const char *more) {
    stet_buf b = STET_BUF(0);
    stet_buf_printf(&b, "{'pattern':1,'name':'%s','argument':{'default':{'a':1}},'nodes':[", piece);
    for (int i = 0; i < length; i++)
        if (i == 0)
            stet_buf_str(&b, "{'id':'n0','module':{'type':'ref','ref':'add'},'inputs':[{'$':'argument/a'},1]}");
        else
            stet_buf_printf(&b, ",{'id':'n%d','module':{'type':'ref','ref':'add'},'inputs':[{'$':'n%d'},1]}", i, i - 1);
    stet_buf_printf(&b, "%s],'result':{'last':{'$':'n%d'}}}", more, length - 1);
    kit_install(w, piece, stet_buf_cstr(&b));
    stet_buf_release(&b);
}

static world *start_with(size_t window) {
    world *w = kit_start();
    w->opts.window = window;
    kit_restart(w);
    return w;
}

static void a_window_at_a_time_runs_each_once(void **state) {
    (void)state;
    for (size_t window = 1; window <= 50; window = window * 3 + 1) {
        world *w = start_with(window);
        w->opts.group_runs = 4;
        kit_restart(w);
        chain(w, "c", 40, "");
        kit_run(w, "c");
        assert_int_equal(w->report.runs, 40);
        assert_int_equal(w->report.ran, 40);
        assert_true(w->report.loaded <= 2 * window + 4);
        kit_is(w, "piece:c/last", "41");
        kit_sound(w);
        kit_restart(w);
        kit_run(w, "c");
        assert_int_equal(w->report.runs, 0);
        kit_stop(w);
    }
}

/* What left memory is found again by what it reads. */
static void unloaded_actions_come_back(void **state) {
    (void)state;
    world *w = start_with(2);
    w->opts.group_runs = 3;
    kit_restart(w);
    chain(w, "c", 30, "");
    kit_run(w, "c");
    for (int i = 2; i < 6; i++) {
        char value[16], expected[16];
        snprintf(value, sizeof value, "%d", i * 100);
        snprintf(expected, sizeof expected, "%d", i * 100 + 30);
        kit_set(w, "piece:c:argument/a", value);
        kit_run(w, "c");
        assert_int_equal(w->report.runs, 30);
        kit_is(w, "piece:c/last", expected);
    }
    kit_end(w);
}

/* An effect that ranks low is not done before what is not loaded yet, and is done once. */
static void effects_wait_until_all_is_taken_up(void **state) {
    (void)state;
    world *w = start_with(3);
    chain(w, "c", 25,
          ",{'id':'early','kind':'effect','module':{'type':'ref','ref':'value'},'inputs':[{'$':'argument/a'}]}"
          ",{'id':'late','kind':'effect','module':{'type':'ref','ref':'value'},'inputs':[{'$':'n24'}]}");
    kit_run(w, "c");
    assert_int_equal(w->report.effects, 2);
    assert_int_equal(w->report.runs, 27);
    kit_is(w, "piece:c:node:late", "26");
    kit_restart(w);
    kit_run(w, "c");
    assert_int_equal(w->report.runs, 0);
    kit_stop(w);
}

/* Runs are counted across leaving and coming back: a circle ends. */
static void circle_ends_though_its_actions_leave_memory(void **state) {
    (void)state;
    world *w = start_with(1);
    w->opts.group_runs = 1;
    kit_restart(w);
    kit_install(w, "c",
                "{'pattern':1,'name':'c','cells':{'x':{'default':0}},'nodes':["
                "{'id':'a','module':{'type':'ref','ref':'add'},'inputs':[{'$':'x'},1]},"
                "{'id':'b','module':{'type':'ref','ref':'add'},'inputs':[{'$':'a'},1]},"
                "{'id':'c','module':{'type':'ref','ref':'add'},'inputs':[{'$':'b'},1]},"
                "{'id':'d','module':{'type':'ref','ref':'add'},'inputs':[{'$':'c'},1],'output':{'$':'x'}},"
                "{'id':'q','module':{'type':'ref','ref':'add'},'inputs':[1,2]}],"
                "'result':{'d':{'$':'d'},'q':{'$':'q'}}}");
    kit_run(w, "c");
    assert_true(w->report.aside > 0);
    assert_true(w->report.runs < 5 * STET_PLAN_MAX_RUNS);
    kit_is(w, "piece:c/q", "3");
    kit_stop(w);
}

/* The order of numbers need not be that of ranks: nodes added in front have higher ones. It costs runs at most. */
static void numbers_out_of_order_cost_runs_and_no_result(void **state) {
    (void)state;
    world *w = start_with(2);
    kit_install(w, "c",
                "{'pattern':1,'name':'c','argument':{'default':{'a':1}},'nodes':["
                "{'id':'z1','module':{'type':'ref','ref':'add'},'inputs':[{'$':'argument/a'},1]},"
                "{'id':'z2','module':{'type':'ref','ref':'add'},'inputs':[{'$':'z1'},1]}],'result':{'z':{'$':'z2'}}}");
    kit_run(w, "c");
    kit_install(w, "c",
                "{'pattern':1,'name':'c','argument':{'default':{'a':1}},'nodes':["
                "{'id':'a1','module':{'type':'ref','ref':'add'},'inputs':[{'$':'argument/a'},10]},"
                "{'id':'a2','module':{'type':'ref','ref':'add'},'inputs':[{'$':'a1'},10]},"
                "{'id':'a3','module':{'type':'ref','ref':'add'},'inputs':[{'$':'a2'},10]},"
                "{'id':'z1','module':{'type':'ref','ref':'add'},'inputs':[{'$':'a3'},1]},"
                "{'id':'z2','module':{'type':'ref','ref':'add'},'inputs':[{'$':'z1'},2]},"
                "{'id':'say','kind':'effect','module':{'type':'ref','ref':'value'},'inputs':[{'$':'z2'}]}],"
                "'result':{'z':{'$':'z2'}}}");
    kit_run(w, "c");
    kit_is(w, "piece:c/z", "34");
    kit_is(w, "piece:c:node:say", "34");
    assert_int_equal(w->report.effects, 1);
    kit_sound(w);
    kit_restart(w);
    kit_run(w, "c");
    assert_int_equal(w->report.runs, 0);
    kit_stop(w);
}

/* Nodes that are of use only through others, which are not loaded yet. */
static void what_is_not_certain_is_found_to_be_live(void **state) {
    (void)state;
    world *w = start_with(1);
    kit_install(w, "c",
                "{'pattern':1,'name':'c','argument':{'default':{'a':1,'on':true}},'nodes':["
                "{'id':'x1','module':{'type':'ref','ref':'add'},'inputs':[{'$':'argument/a'},1]},"
                "{'id':'x2','module':{'type':'ref','ref':'add'},'inputs':[{'$':'x1'},1]},"
                "{'id':'y1','module':{'type':'ref','ref':'add'},'inputs':[{'$':'argument/a'},100]},"
                "{'id':'y2','module':{'type':'ref','ref':'add'},'inputs':[{'$':'y1'},100]},"
                "{'id':'pick','module':{'type':'ref','ref':'ifElse'},'inputs':{'condition':{'$':'argument/on'},"
                "'then':{'$':'x2'},'else':{'$':'y2'}}}],'result':{'pick':{'$':'pick'}}}");
    kit_run(w, "c");
    kit_is(w, "piece:c/pick", "3");
    kit_set(w, "piece:c:argument/on", "false");
    kit_run(w, "c");
    kit_is(w, "piece:c/pick", "201");
    kit_set(w, "piece:c:argument/a", "5");
    kit_run(w, "c");
    kit_is(w, "piece:c/pick", "205");
    kit_end(w);
}

/* An action of a piece that nobody loaded owns a cell; one that runs writes there. */
static void overwritten_by_another_piece_is_restored_at_once(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "own",
                "{'pattern':1,'name':'own','nodes':[{'id':'o','module':{'type':'ref','ref':'add'},'inputs':[1,2],"
                "'output':{'/':{'link@1':{'id':'shared','path':['v']}}}}],'result':{'o':{'$':'o'}}}");
    kit_run(w, "own");
    kit_is(w, "shared/v", "3");
    kit_restart(w);
    kit_set(w, "shared/v", "9");
    ok(stet_sched_demand_piece(w->sched, "own", &err));
    kit_settle(w);
    kit_is(w, "shared/v", "3");
    kit_ran(w, "o");
    kit_stop(w);
}

/* The record is of another version of what runs actions: nothing of it counts. */
static void another_runtime_makes_everything_unknown(void **state) {
    (void)state;
    world *w = kit_start();
    chain(w, "c", 5, "");
    kit_run(w, "c");
    stet_tx *tx;
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "process");
    stet_path_push(&path, "runtime");
    char hex[STET_HASH_HEX];
    stet_hash_hex(stet_hash_of("an older one", 12), hex);
    ok(stet_tx_begin(w->space, "", &tx, &err));
    ok(stet_tx_write(tx, &(stet_docname){"piece:c", NULL}, stet_path_ref(&path), stet_value_string(hex), &err));
    ok(stet_tx_commit(tx, NULL, &err));
    stet_path_release(&path);
    kit_restart(w);
    kit_run(w, "c");
    assert_int_equal(w->report.runs, 5);
    assert_int_equal(w->report.causes[0], 5);
    kit_restart(w);
    kit_run(w, "c");
    assert_int_equal(w->report.runs, 0);
    kit_stop(w);
}

/* Commands leave memory while others run, and those that depend on them find them again. */
static void commands_that_ran_leave_memory_while_others_run(void **state) {
    (void)state;
    enum { WIDE = 10, DEEP = 4 };
    char *program = stet_file_join(getenv("STET_BUILD"), "stet-supervise");
    setenv("STET_SUPERVISE", program, 1);
    stet_free(program);
    world *w = start_with(3);
    stet_files *files;
    stet_sched_close(w->sched);
    ok(stet_files_open(w->project, w->space, &files, &err));
    w->opts.files = files;
    w->opts.jobs = 3;
    ok(stet_sched_open(w->project, w->space, "", &w->opts, &w->sched, &err));
    stet_buf b = STET_BUF(0);
    stet_buf_str(&b, "{'pattern':1,'name':'c','argument':{'default':{'a':1}},'nodes':[");
    for (int k = 0; k < DEEP; k++)
        for (int i = 0; i < WIDE; i++) {
            stet_buf_printf(&b, "%s{'id':'l%dn%d','module':{'type':'command','shell':'echo {x} {y} %d | cksum',",
                            k + i ? "," : "", k, i, i);
            if (k == 0)
                stet_buf_str(&b, "'stdout':'text'},'inputs':{'x':{'$':'argument/a'},'y':0}}");
            else
                stet_buf_printf(&b, "'stdout':'text'},'inputs':{'x':{'$':'l%dn%d/stdout'},'y':{'$':'l%dn%d/stdout'}}}",
                                k - 1, i, k - 1, (i + 1) % WIDE);
        }
    stet_buf_str(&b, "],'result':{'all':[");
    for (int i = 0; i < WIDE; i++)
        stet_buf_printf(&b, "%s{'$':'l%dn%d/stdout'}", i ? "," : "", DEEP - 1, i);
    stet_buf_str(&b, "]}}");
    kit_install(w, "c", stet_buf_cstr(&b));
    stet_buf_release(&b);
    for (int turn = 0; turn < 3; turn++) {
        char value[8];
        snprintf(value, sizeof value, "%d", turn + 2);
        kit_set(w, "piece:c:argument/a", value);
        kit_run(w, "c");
        assert_int_equal(w->report.failed, 0);
        assert_int_equal(w->report.ran, WIDE * DEEP);
        assert_int_equal(w->report.runs, WIDE * DEEP);
        assert_true(w->report.loaded < WIDE * DEEP / 2);
        kit_run(w, "c");
        assert_int_equal(w->report.runs, 0);
    }
    kit_sound(w);
    stet_sched_close(w->sched);
    w->sched = NULL;
    stet_files_close(files);
    w->opts.files = NULL;
    ok(stet_sched_open(w->project, w->space, "", &w->opts, &w->sched, &err));
    kit_stop(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_at_a_time_runs_each_once),
        cmocka_unit_test(unloaded_actions_come_back),
        cmocka_unit_test(effects_wait_until_all_is_taken_up),
        cmocka_unit_test(circle_ends_though_its_actions_leave_memory),
        cmocka_unit_test(numbers_out_of_order_cost_runs_and_no_result),
        cmocka_unit_test(what_is_not_certain_is_found_to_be_live),
        cmocka_unit_test(overwritten_by_another_piece_is_restored_at_once),
        cmocka_unit_test(another_runtime_makes_everything_unknown),
        cmocka_unit_test(commands_that_ran_leave_memory_while_others_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
