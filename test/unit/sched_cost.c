/* sched_cost.c - what a settling costs follows from what it does, and not from what is in memory. */

#include <time.h>

#include "../faults.h"
#include "../sched_kit.h"

#define WAITING 10000
#define SETTLED 20
#define AT_MOST 8 /* times as much beside the others: it was 26 while walks went over all actions, and is 3 */
#define ONE_NODE                                                                                                       \
    "{'pattern':1,'name':'one','argument':{'default':{'x':1}},'nodes':[{'id':'n','module':{'type':'ref',"              \
    "'ref':'add'},'inputs':[{'$':'argument/x'},1]}],'result':{'n':{'$':'n'}}}"

/* The first fails, and the others wait for it. */
static void install_failing(world *w) {
    stet_buf b = STET_BUF(0);
    stet_buf_str(&b, "{'pattern':1,'name':'bad','argument':{'default':{'x':'text'}},'nodes':[");
    for (int i = 0; i < WAITING; i++) {
        char from[16] = "argument/x";
        if (i > 0)
            snprintf(from, sizeof from, "n%d", i - 1);
        stet_buf_printf(&b, "%s{'id':'n%d','module':{'type':'ref','ref':'add'},'inputs':[{'$':'%s'},1]}", i ? "," : "",
                        i, from);
    }
    stet_buf_printf(&b, "],'result':{'r':{'$':'n%d'}}}", WAITING - 1);
    kit_install(w, "bad", b.data);
    stet_buf_release(&b);
}

/* CPU seconds of the cheapest of some settlings with one run each. */
static double cheapest(world *w, size_t *loaded) {
    double best = 1e9;
    stet_sched_report r;
    for (int i = 0; i < SETTLED; i++) {
        struct timespec from, to;
        char value[32];
        snprintf(value, sizeof value, "%d", 100 + i);
        kit_set(w, "piece:one:argument/x", value);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
        ok(stet_sched_settle(w->sched, &r, &err));
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
        assert_int_equal(r.runs, 1);
        stet_value_release(r.problems);
        *loaded = r.loaded;
        double took = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
        best = took < best ? took : best;
    }
    return best;
}

static void failures_of_others_cost_nothing_again(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "one", ONE_NODE);
    kit_run(w, "one");
    size_t loaded;
    double alone = cheapest(w, &loaded);
    world other = {.opts = {.persist = true}}; /* here nobody wants it */
    kit_open(&other, stet_project_root(w->project));
    install_failing(&other);
    kit_run(&other, "bad");
    assert_int_equal(other.report.failed, 1);
    kit_close(&other);
    double beside = cheapest(w, &loaded);
    assert_true(loaded >= WAITING); /* they are in memory */
    print_message("# %.3f ms alone, %.3f ms beside\n", alone * 1000, beside * 1000);
    if (beside > AT_MOST * alone)
        fail_msg("a settling takes %.3f ms alone and %.3f ms beside %d that wait", alone * 1000, beside * 1000,
                 WAITING);
    kit_end(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(failures_of_others_cost_nothing_again)};
    faults_fast_directory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
