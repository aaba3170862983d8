/* survey.c - what nothing wanted needs stays dirty or unknown, and costs a start nothing.
 *
 * It is looked at once for each demand, and again only when an action comes to read what was not read before.
 */

#include "../sched_kit.h"

#include "memory/observe.h"

#define UNNEEDED 50

/* `total` of argument/rows is wanted; u0, u1... read argument/f and nothing reads them, but `more` may. */
static void install(world *w, const char *piece, const char *more, const char *result) {
    stet_buf b = STET_BUF(0);
    stet_buf_printf(&b,
                    "{'pattern':1,'name':'p','argument':{'default':{'rows':[1,2],'f':3,'on':false}},'nodes':["
                    "{'id':'total','module':{'type':'ref','ref':'sum'},'inputs':{'values':{'$':'argument/rows'}}}%s",
                    more);
    for (int i = 0; i < UNNEEDED; i++)
        stet_buf_printf(&b, ",{'id':'u%d','module':{'type':'ref','ref':'add'},'inputs':[{'$':'argument/f'},%d]}", i, i);
    stet_buf_printf(&b, "],'result':{'total':{'$':'total'}%s}}", result);
    kit_install(w, piece, stet_buf_cstr(&b));
    stet_buf_release(&b);
}

static void run_anew(world *w, const char *piece) {
    kit_restart(w);
    kit_run(w, piece);
}

static void null_start_looks_at_nothing_however_much_is_unneeded(void **state) {
    (void)state;
    world *w = kit_start();
    install(w, "p", "", "");
    kit_runs(w, "p", "total");
    assert_true(w->report.looked >= UNNEEDED + 1);
    assert_int_equal(w->report.left, UNNEEDED);
    for (int i = 0; i < 3; i++) {
        run_anew(w, "p");
        kit_ran(w, "");
        assert_int_equal(w->report.looked, 0);
        assert_int_equal(w->report.loaded, 0);
        assert_int_equal(w->report.left, UNNEEDED);
    }
    kit_end(w);
}

static void change_looks_at_what_it_marked_alone(void **state) {
    (void)state;
    world *w = kit_start();
    install(w, "p", "", "");
    kit_run(w, "p");
    kit_restart(w);
    kit_set(w, "piece:p:argument/rows", "[4,5]");
    run_anew(w, "p");
    kit_ran(w, "total");
    assert_int_equal(w->report.looked, 1);
    assert_int_equal(w->report.loaded, 1);
    assert_int_equal(w->report.left, UNNEEDED);
    kit_is(w, "piece:p/total", "9");
    /* In the same process, too. */
    kit_set(w, "piece:p:argument/rows", "[6]");
    kit_settle(w);
    kit_ran(w, "total");
    assert_true(w->report.looked <= 2);
    run_anew(w, "p");
    assert_int_equal(w->report.looked, 0);
    assert_int_equal(w->report.loaded, 0);
    kit_end(w);
}

/* Dirty ones: they ran once, for somebody. */
static void unneeded_dirt_is_looked_at_once(void **state) {
    (void)state;
    world *w = kit_start();
    install(w, "p", "", "");
    kit_run(w, "p");
    stet_path path = STET_PATH_INIT;
    for (int i = 0; i < 10; i++) {
        char id[32];
        snprintf(id, sizeof id, "piece:p:node:u%d", i);
        ok(stet_sched_demand_cell(w->sched, id, NULL, stet_path_ref(&path), &err));
    }
    kit_settle(w);
    assert_int_equal(w->report.ran, 10);
    run_anew(w, "p");
    assert_int_equal(w->report.looked, UNNEEDED - 10);
    kit_set(w, "piece:p:argument/f", "30");
    run_anew(w, "p");
    kit_ran(w, "");
    assert_int_equal(w->report.looked, 10);
    assert_int_equal(w->report.left, UNNEEDED);
    run_anew(w, "p");
    assert_int_equal(w->report.looked, 0);
    assert_int_equal(w->report.left, UNNEEDED);
    /* And whoever wants one gets it. */
    kit_restart(w);
    ok(stet_sched_demand_cell(w->sched, "piece:p:node:u7", NULL, stet_path_ref(&path), &err));
    kit_settle(w);
    kit_ran(w, "u7");
    kit_is(w, "piece:p:node:u7", "37");
    run_anew(w, "p");
    assert_int_equal(w->report.left, UNNEEDED - 1);
    kit_end(w);
}

/* What is of no use to one is of use to the other; both remember. */
static void each_demand_remembers_by_itself(void **state) {
    (void)state;
    world *w = kit_start();
    install(w, "p", "", "");
    install(w, "q", "", "");
    kit_runs(w, "p", "total");
    run_anew(w, "q");
    kit_ran(w, "total");
    run_anew(w, "p");
    assert_true(w->report.looked > 0); /* q's total read what nobody had read */
    run_anew(w, "q");
    run_anew(w, "p");
    assert_int_equal(w->report.looked, 0);
    run_anew(w, "q");
    assert_int_equal(w->report.looked, 0);
    kit_set(w, "piece:p:argument/rows", "[7]");
    run_anew(w, "q");
    kit_ran(w, "");
    assert_int_equal(w->report.looked, 1);
    run_anew(w, "q");
    assert_int_equal(w->report.looked, 0);
    run_anew(w, "p");
    kit_ran(w, "total");
    assert_int_equal(w->report.looked, 1);
    kit_is(w, "piece:p/total", "7");
    run_anew(w, "q");
    assert_int_equal(w->report.looked, 0);
    kit_end(w);
}

static const char choice[] =
    ",{'id':'either','module':{'type':'ref','ref':'ifElse'},'inputs':{'condition':{'$':'argument/on'},"
    "'then':{'$':'b2'},'else':{'$':'total'}}}"
    ",{'id':'b1','module':{'type':'ref','ref':'add'},'inputs':[{'$':'argument/f'},100]}"
    ",{'id':'b2','module':{'type':'ref','ref':'add'},'inputs':[{'$':'b1'},100]}"
    ",{'id':'say','kind':'effect','module':{'type':'ref','ref':'value'},'inputs':[{'$':'either'}]}";

/* The branch that was not taken is taken now: what it needs runs, and an effect behind it is done once, with the value
 * that is right. */
static void other_branch_wakes_what_it_needs(void **state) {
    (void)state;
    world *w = kit_start();
    install(w, "p", choice, ",'either':{'$':'either'}");
    kit_runs(w, "p", "total either say");
    run_anew(w, "p");
    assert_int_equal(w->report.looked, 0);
    kit_set(w, "piece:p:argument/on", "true");
    run_anew(w, "p");
    kit_is(w, "piece:p/either", "203");
    kit_is(w, "piece:p:node:say", "203");
    assert_int_equal(w->report.effects, 1);
    assert_int_equal(w->report.left, UNNEEDED);
    run_anew(w, "p");
    assert_int_equal(w->report.looked, 0);
    /* And back, with what was needed dirty and not needed any more. */
    kit_set(w, "piece:p:argument/on", "false");
    kit_set(w, "piece:p:argument/f", "4");
    run_anew(w, "p");
    kit_is(w, "piece:p/either", "3");
    assert_int_equal(w->report.effects, 1);
    run_anew(w, "p");
    assert_int_equal(w->report.looked, 0);
    kit_set(w, "piece:p:argument/on", "true");
    run_anew(w, "p");
    kit_is(w, "piece:p:node:say", "204");
    assert_int_equal(w->report.effects, 1);
    kit_end(w);
}

static void new_node_of_the_program_wakes_what_it_needs(void **state) {
    (void)state;
    world *w = kit_start();
    install(w, "p", "", "");
    kit_run(w, "p");
    run_anew(w, "p");
    install(w, "p", ",{'id':'new','module':{'type':'ref','ref':'add'},'inputs':[{'$':'u3'},1]}", ",'new':{'$':'new'}");
    run_anew(w, "p");
    kit_ran(w, "u3 new");
    kit_is(w, "piece:p/new", "7");
    /* The result alone differs: no node is new. */
    install(w, "p", ",{'id':'new','module':{'type':'ref','ref':'add'},'inputs':[{'$':'u3'},1]}",
            ",'new':{'$':'new'},'five':{'$':'u5'}");
    run_anew(w, "p");
    kit_ran(w, "u5");
    kit_is(w, "piece:p/five", "8");
    kit_end(w);
}

static void another_piece_wakes_what_it_needs(void **state) {
    (void)state;
    world *w = kit_start();
    install(w, "p", "", "");
    kit_run(w, "p");
    run_anew(w, "p");
    kit_install(
        w, "r",
        "{'pattern':1,'name':'r','argument':{'default':{}},'nodes':[{'id':'n','module':{'type':'ref','ref':'add'"
        "},'inputs':[{'/':{'link@1':{'id':'piece:p:node:u9','path':[]}}},1]}],'result':{'n':{'$':'n'}}}");
    run_anew(w, "r");
    kit_ran(w, "u9 n");
    kit_is(w, "piece:r/n", "13");
    kit_set(w, "piece:p:argument/f", "10");
    run_anew(w, "p");
    kit_ran(w, "");
    run_anew(w, "r");
    kit_ran(w, "u9 n");
    kit_is(w, "piece:r/n", "20");
    kit_end(w);
}

/* A wanted cell that leads elsewhere after a change. */
static void cell_that_leads_elsewhere_wakes_what_it_needs(void **state) {
    (void)state;
    world *w = kit_start();
    stet_path path = STET_PATH_INIT;
    install(w, "p", "", "");
    kit_run(w, "p");
    kit_set(w, "here", "{'/':{'link@1':{'id':'piece:p:node:u1','path':[]}}}");
    for (int i = 0; i < 2; i++) {
        kit_restart(w);
        ok(stet_sched_demand_cell(w->sched, "here", NULL, stet_path_ref(&path), &err));
        kit_settle(w);
        kit_ran(w, i == 0 ? "u1" : "");
    }
    kit_set(w, "here", "{'/':{'link@1':{'id':'piece:p:node:u2','path':[]}}}");
    kit_restart(w);
    ok(stet_sched_demand_cell(w->sched, "here", NULL, stet_path_ref(&path), &err));
    kit_settle(w);
    kit_ran(w, "u2");
    kit_is(w, "here", "5");
    kit_end(w);
}

static bool stop_at_once(void *ctx) {
    world *w = ctx;
    return w->ran.len > 0;
}

/* What a run was stopped before is needed, and not taken for what is not. */
static void stopped_run_remembers_nothing(void **state) {
    (void)state;
    world *w = kit_start();
    install(w, "p", choice, ",'either':{'$':'either'}");
    w->opts.cancelled = stop_at_once;
    kit_restart(w);
    ok(stet_sched_demand_piece(w->sched, "p", &err));
    stet_error e = STET_ERROR_INIT;
    assert_int_equal(stet_sched_settle(w->sched, &w->report, &e), STET_CANCELLED);
    stet_error_clear(&e);
    w->opts.cancelled = NULL;
    stet_buf_clear(&w->ran);
    run_anew(w, "p");
    kit_ran(w, "either say");
    kit_is(w, "piece:p:node:say", "3");
    kit_end(w);
}

/* Another process that has the space open, and does not know what this one found. */
static void other_process_is_told_by_the_record(void **state) {
    (void)state;
    world *w = kit_start(), other = {.opts = {.persist = true}};
    install(w, "p", choice, ",'either':{'$':'either'}");
    kit_run(w, "p");
    kit_open(&other, stet_project_root(w->project));
    kit_run(&other, "p");
    assert_int_equal(other.report.looked, 0);
    kit_set(&other, "piece:p:argument/on", "true");
    kit_run(w, "p");
    kit_is(w, "piece:p/either", "203");
    kit_set(w, "piece:p:argument/f", "5");
    kit_run(&other, "p");
    kit_is(&other, "piece:p/either", "205");
    kit_run(w, "p");
    kit_is(w, "piece:p/either", "205");
    kit_close(&other);
    stet_buf_release(&other.ran);
    kit_end(w);
}

/* An event makes fresh what its handler reads; what it does not read is looked at for the first event alone. */
static void events_do_not_look_at_the_unneeded_each_time(void **state) {
    (void)state;
    world *w = kit_start();
    install(w, "p",
            ",{'id':'add','stream':{'$':'add'},'inputs':{'n':{'$':'total'},'rows':{'$':'argument/rows','asCell':true}},"
            "'module':^(event, {n, rows}) => { rows.set([n, event]) }^}",
            "");
    kit_run(w, "p");
    stet_error e = STET_ERROR_INIT;
    kit_restart(w);
    ok(kit_send(w, "p", "add", "10", NULL, &err));
    kit_restart(w);
    ok(kit_send(w, "p", "add", "20", NULL, &err));
    assert_int_equal(w->sent.made_fresh, 1);
    assert_true(stet_plan_loaded(stet_sched_plan(w->sched)) < UNNEEDED);
    stet_error_clear(&e);
    run_anew(w, "p");
    kit_is(w, "piece:p/total", "33");
    kit_end(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_start_looks_at_nothing_however_much_is_unneeded),
        cmocka_unit_test(change_looks_at_what_it_marked_alone),
        cmocka_unit_test(unneeded_dirt_is_looked_at_once),
        cmocka_unit_test(each_demand_remembers_by_itself),
        cmocka_unit_test(other_branch_wakes_what_it_needs),
        cmocka_unit_test(new_node_of_the_program_wakes_what_it_needs),
        cmocka_unit_test(another_piece_wakes_what_it_needs),
        cmocka_unit_test(cell_that_leads_elsewhere_wakes_what_it_needs),
        cmocka_unit_test(stopped_run_remembers_nothing),
        cmocka_unit_test(other_process_is_told_by_the_record),
        cmocka_unit_test(events_do_not_look_at_the_unneeded_each_time),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
