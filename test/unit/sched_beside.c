/* sched_beside.c - a scheduler stays open while another one, with its own handles, sets up programs and runs them. */

#include "../faults.h"
#include "../sched_kit.h"

/* The other sets up a program, or none, runs the piece, and is gone. */
static void beside(world *w, const char *piece, const char *pattern) {
    world other = {.opts = {.persist = true}};
    kit_open(&other, stet_project_root(w->project));
    if (pattern)
        kit_install(&other, piece, pattern);
    kit_run(&other, piece);
    kit_close(&other);
}

#define READS_D0                                                                                                       \
    "{'pattern':1,'name':'a','nodes':[{'id':'made','module':{'type':'ref','ref':'unique'},'inputs':{'value':{'/':{'"   \
    "link@1':{'id':'d0','path':[]}}}}}],'result':{}}"
#define READS_MADE                                                                                                     \
    "{'id':'reads','module':{'type':'ref','ref':'merge'},'inputs':[{'/':{'link@1':{'id':'piece:a:node:made','path':"   \
    "['id']}}},'no object']}"
#define B(nodes, result) "{'pattern':1,'name':'b','nodes':[" nodes "],'result':" result "}"

/* Nothing that the other did was a commit that this one could hear of: all of it failed. Still, what nobody wanted when
 * this one last looked is wanted by the program that the other has set up. */
static void what_was_unwanted_is_asked_again(void **state) {
    (void)state;
    world *w = kit_start();
    beside(w, "a", READS_D0);
    beside(w, "b", B(READS_MADE, "{}"));
    kit_run(w, "a");
    kit_run(w, "b");
    beside(w, "b",
           B(READS_MADE ",{'id':'shown','module':{'type':'ref','ref':'xor'},'inputs':{'a':{'$':'reads'},'b':3}}",
             "{'shown':{'$':'shown'}}"));
    kit_set(w, "d0", "{'x':1}");
    beside(w, "a", NULL);
    kit_runs(w, "b", "made reads shown"); /* "made" fails; the others begin, read of that, and wait */
    kit_end(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_unwanted_is_asked_again)};
    faults_fast_directory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
