/* child_streams.c - streams of children: an event finds its element, and a removed element refuses it.
 *
 * Nothing runs that the handler does not ask for.
 */

#include "../sched_kit.h"
#include "graph/piece.h"

/* Rows with a counter of their own: "add" adds to it, after looking at what is computed for the row; "both" goes to two
 * handlers; the outer "all" sends to every row, and each row's "drop" to the outer "remove". */
#define ADD                                                                                                            \
    "{'id':'add','stream':{'$':'add'},'inputs':{'count':{'$':'count','asCell':true},'scaled':{'$':'scaled'}},"         \
    "'module':^(e, {count, scaled}) => { if (e === null) throw new Error(`none`); count.set(count.get() + e); "        \
    "console.log(scaled) }^}"
#define ROW                                                                                                            \
    "{'pattern':1,'name':'row','cells':{'count':{'default':0},'inbox':{}},'nodes':["                                   \
    "{'id':'scaled','inputs':[{'$':'argument/element/n'},{'$':'argument/factor'}],'module':{'type':'ref','ref':"       \
    "'multiply'}}," ADD ",{'id':'h1','stream':{'$':'inbox'},'inputs':{'count':{'$':'count','asCell':true}},'module':"  \
    "^(e, {count}) => { count.set(count.get() * 2) }^},{'id':'h2','stream':{'$':'inbox'},'inputs':{'count':{'$':"      \
    "'count','asCell':true}},'module':^(e, {count}) => { count.set(count.get() + e) }^},"                              \
    "{'id':'drop','stream':{'$':'drop'},'inputs':{'id':{'$':'argument/element/id'},'remove':{'$':'argument/remove',"   \
    "'asCell':true}},'module':^(e, {id, remove}) => { remove.send(id) }^}],"                                           \
    "'result':{'scaled':{'$':'scaled'},'count':{'$':'count'},'add':{'$':'add'}}}"
#define OUTER                                                                                                          \
    "{'pattern':1,'name':'t','argument':{'default':{'rows':[{'id':'a','n':1},{'id':'b','n':2}],'factor':10}},"         \
    "'nodes':[{'id':'rows','inputs':{'list':{'$':'argument/rows'},'factor':{'$':'argument/factor'},'remove':"          \
    "{'$':'remove','asCell':true}},'module':{'type':'ref','ref':'map','key':'id','pattern':" ROW "}},"                 \
    "{'id':'remove','stream':{'$':'remove'},'inputs':{'rows':{'$':'argument/rows','asCell':true}},'module':"           \
    "^(e, {rows}) => { rows.set(rows.get().filter((r) => r.id !== e)) }^},"                                            \
    "{'id':'all','stream':{'$':'all'},'inputs':{'rows':{'$':'rows','asCell':true},'list':{'$':'argument/rows'}},"      \
    "'module':^(e, {rows, list}) => { for (let i = 0; i < list.length; i++) rows.key(i).key(`add`).send(e) }^}],"      \
    "'result':{'items':{'$':'rows'},'all':{'$':'all'}}}"

static world *with_rows(void) {
    world *w = kit_piece("t", OUTER);
    kit_ran(w, "rows rows[a].scaled rows[b].scaled");
    kit_restart(w); /* who sends asks for nothing else */
    return w;
}

static void sent(world *w, const char *stream, const char *json, const char *id, const char *ran) {
    stet_error e = STET_ERROR_INIT;
    if (kit_send(w, "t", stream, json, id, &e) != STET_OK)
        fail_msg("%s: %s", stream, e.message);
    kit_ran(w, ran);
}

static void refused(world *w, const char *stream, const char *json, stet_status status, const char *says) {
    stet_error e = STET_ERROR_INIT;
    stet_status got = kit_send(w, "t", stream, json, NULL, &e);
    if (got != status || !strstr(e.message, says))
        fail_msg("%s: %s: %s", stream, stet_status_name(got), e.message);
    stet_error_clear(&e);
}

static void an_event_finds_its_element(void **state) {
    (void)state;
    world *w = with_rows();
    sent(w, "rows[a].add", "5", NULL, "");
    assert_string_equal(w->sent.stream, "rows[a].add");
    kit_is(w, "piece:t:cell:rows[a].count", "5");
    kit_is(w, "piece:t:cell:rows[b].count", "0");
    sent(w, "items/1/add", "7", NULL, ""); /* as the result shows it */
    assert_string_equal(w->sent.stream, "rows[b].add");
    kit_is(w, "piece:t:cell:rows[b].count", "7");
    sent(w, "piece:t:node:rows[b].add", "1", NULL, ""); /* as a link in a document has it */
    kit_is(w, "piece:t:cell:rows[b].count", "8");
    kit_restart(w);
    sent(w, "rows[b].inbox", "3", NULL, ""); /* two handlers, in the order of their names */
    kit_is(w, "piece:t:cell:rows[b].count", "19");
    sent(w, "rows[b].h2", "1", NULL, ""); /* by the name of one of them: the same stream */
    assert_string_equal(w->sent.stream, "rows[b].inbox");
    kit_is(w, "piece:t:cell:rows[b].count", "39");
    kit_runs(w, "t", "");
    kit_is(w, "piece:t/items/1/count", "39");
    refused(w, "rows[a].none", "1", STET_NOT_FOUND, "no stream \"none\"");
    refused(w, "rows[q].add", "1", STET_NOT_FOUND, "no child \"rows[q]\"");
    refused(w, "nodes[a].add", "1", STET_NOT_FOUND, "no node \"nodes\"");
    refused(w, "rows[a.add", "1", STET_NOT_FOUND, "no stream");
    refused(w, "items/7/add", "1", STET_NOT_FOUND, "no stream");
    refused(w, "items/0/scaled", "1", STET_NOT_FOUND, "no stream");
    kit_end(w);
}

static void preflight_makes_fresh_what_the_handler_of_a_child_reads_and_nothing_else(void **state) {
    (void)state;
    world *w = with_rows();
    kit_set(w, "piece:t:argument/factor", "100");
    sent(w, "rows[b].add", "1", NULL, "rows[b].scaled"); /* and not rows[a].scaled */
    assert_string_equal(stet_buf_cstr(&w->log), "200\n");
    kit_set(w, "piece:t:argument/rows/1/n", "3");
    sent(w, "rows[a].inbox", "1", NULL, "rows"); /* who is there is asked of the list; none of the rows runs */
    sent(w, "rows[b].add", "1", NULL, "rows[b].scaled");
    kit_restart(w);
    kit_runs(w, "t", "rows[a].scaled");
    kit_end(w);
}

static void an_event_for_an_element_that_has_just_come_finds_it(void **state) {
    (void)state;
    world *w = with_rows();
    kit_set(w, "piece:t:argument/rows", "[{'id':'a','n':1},{'id':'b','n':2},{'id':'c','n':3}]");
    kit_restart(w);
    sent(w, "rows[c].add", "4", NULL, "rows rows[c].scaled");
    kit_is(w, "piece:t:cell:rows[c].count", "4");
    kit_set(w, "piece:t:argument/rows", "[{'id':'d','n':3},{'id':'c','n':3}]");
    sent(w, "items/0/add", "4", NULL, "rows rows[d].scaled"); /* what is first now */
    kit_is(w, "piece:t:cell:rows[d].count", "4");
    /* The same where nothing was before: by its place in the result, and sent to by a handler. */
    kit_set(w, "piece:t:argument/rows", "[]");
    kit_run(w, "t");
    kit_set(w, "piece:t:argument/rows", "[{'id':'x','n':3}]");
    kit_restart(w);
    sent(w, "all", "1", NULL, "rows rows[x].scaled");
    kit_is(w, "piece:t:cell:rows[x].count", "1");
    kit_set(w, "piece:t:argument/rows", "[{'id':'x','n':3},{'id':'y','n':3}]");
    kit_restart(w);
    sent(w, "items/1/add", "2", NULL, "rows rows[y].scaled");
    kit_is(w, "piece:t:cell:rows[y].count", "2");
    kit_end(w);
}

static void an_event_for_an_element_that_is_gone_is_refused(void **state) {
    (void)state;
    world *w = with_rows();
    sent(w, "rows[a].add", "4", "first", "");
    kit_set(w, "piece:t:argument/rows", "[{'id':'b','n':2}]"); /* nothing has run since */
    refused(w, "rows[a].add", "5", STET_NOT_FOUND, "no child \"rows[a]\"");
    kit_set(w, "piece:t:argument/rows", "[{'id':'b','n':2},{'id':'a','n':9}]");
    kit_restart(w);
    kit_run(w, "t");
    kit_is(w, "piece:t:cell:rows[a].count", "0"); /* a new one, to which nothing was sent */
    sent(w, "rows[a].add", "4", "first", "");
    assert_false(w->sent.applied); /* that one was for the element before it */
    kit_is(w, "piece:t:cell:rows[a].count", "0");
    sent(w, "rows[a].add", "6", NULL, "");
    kit_is(w, "piece:t:cell:rows[a].count", "6");
    kit_set(w, "piece:t:argument/rows", "[]");
    sent(w, "rows[a].add", "4", "first", "");
    assert_false(w->sent.applied); /* also when there is none */
    kit_end(w);
}

static void documents_of_streams_go_with_their_element(void **state) {
    (void)state;
    world *w = with_rows();
    kit_is(w, "piece:t:node:rows[a].add", "{'$stream':true}");
    kit_set(w, "piece:t:argument/rows", "[{'id':'b','n':2}]");
    kit_run(w, "t");
    kit_is(w, "piece:t:node:rows[a].add", "not_found");
    kit_is(w, "piece:t:node:rows[b].add", "{'$stream':true}");
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    ok(stet_children_check(w->space, false, &problems, &found, &repaired, &err));
    assert_string_equal(stet_buf_cstr(&problems), "");
    stet_buf_release(&problems);
    kit_end(w);
}

static void handlers_send_to_children_and_children_to_handlers(void **state) {
    (void)state;
    world *w = with_rows();
    sent(w, "all", "3", "e", "");
    assert_string_equal(w->sent.stream, "all");
    kit_is(w, "piece:t:cell:rows[a].count", "3");
    kit_is(w, "piece:t:cell:rows[b].count", "3");
    sent(w, "all", "3", "e", "");
    assert_false(w->sent.applied);
    kit_is(w, "piece:t:cell:rows[a].count", "3");
    refused(w, "all", "null", STET_FAILED, "none");
    kit_is(w, "piece:t:cell:rows[a].count", "3");
    sent(w, "rows[a].drop", "null", NULL, "");
    kit_is(w, "piece:t:argument/rows", "[{'id':'b','n':2}]");
    kit_run(w, "t");
    kit_is(w, "piece:t/items", "[{'add':{'$stream':true},'count':3,'scaled':20}]");
    kit_end(w);
}

static void events_in_a_circle_end(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(
        w, "t",
        "{'pattern':1,'name':'t','cells':{'n':{'default':0},'p':{}},'nodes':["
        "{'id':'a','stream':{'$':'a'},'inputs':{'b':{'$':'b','asCell':true},'n':{'$':'n','asCell':true}},"
        "'module':^(e, {b, n}) => { n.set(n.get() + 1); if (e > 0) b.send(e - 1) }^},"
        "{'id':'b','stream':{'$':'b'},'inputs':{'a':{'$':'a','asCell':true},'p':{'$':'p','asCell':true}},"
        "'module':^(e, {a, p}) => { a.send(e); p.set(1) }^},"
        "{'id':'c','stream':{'$':'c'},'inputs':{'p':{'$':'n','asCell':true}},'module':^(e, {p}) => { p.send(e) }^},"
        "{'id':'d','inputs':{'a':{'$':'a','asCell':true}},'module':#({a}) => { a.send(1) }#}],"
        "'result':{'d':{'$':'d'}}}");
    sent(w, "a", "9", NULL, "");
    kit_is(w, "piece:t:cell:n", "10");
    refused(w, "a", "1000", STET_FAILED, "more than 999 events"); /* a and b in turn, up to the last */
    kit_is(w, "piece:t:cell:n", "510");
    refused(w, "c", "1", STET_NOT_FOUND, "no stream \"n\"");
    kit_run(w, "t");
    stet_value failures;
    ok(stet_observe_failures(w->space, 0, "piece:t", NULL, &failures, &err));
    stet_value message = stet_value_get(stet_value_get(failures, "d"), "message");
    assert_string_equal(stet_value_as_string(&message, NULL), "only an event handler sends events");
    stet_value_release(failures);
    kit_end(w);
}

static void a_copy_of_an_element_is_not_written_to(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(
        w, "t",
        "{'pattern':1,'name':'t','argument':{'default':{'rows':[{'id':'a','n':1}]}},'nodes':[{'id':'rows','inputs':"
        "{'list':{'$':'argument/rows'}},'module':{'type':'ref','ref':'map','key':'id','pattern':{'pattern':1,"
        "'name':'c','nodes':[{'id':'h','stream':{'$':'h'},'inputs':{'e':{'$':'argument/element','asCell':true}},"
        "'module':^(v, {e}) => { e.key(`n`).set(v) }^}],'result':{'$':'argument/element'}}}}],'result':{'$':'rows'}}");
    refused(w, "rows[a].h", "1", STET_INVALID, "a copy of its element");
    kit_end(w);
}

static void streams_of_nested_filtered_folded_and_returned_children(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(
        w, "t",
        "{'pattern':1,'name':'t','argument':{'default':{'rows':[{'id':1,'l':['x','y']}],'made':{'pattern':1,'name':'m',"
        "'cells':{'c':{'default':0}},'nodes':[{'id':'h','stream':{'$':'h'},'inputs':{'c':{'$':'c','asCell':true}},"
        "'module':^(e, {c}) => { c.set(e) }^}],'result':{'$':'c'}}}},'nodes':["
        "{'id':'rows','inputs':{'list':{'$':'argument/rows'}},'module':{'type':'ref','ref':'map','key':'id','pattern':"
        "{'pattern':1,'name':'c','nodes':[{'id':'in','inputs':{'list':{'$':'argument/element/"
        "l'}},'module':{'type':'ref',"
        "'ref':'map','pattern':{'pattern':1,'name':'d','cells':{'c':{'default':0}},'nodes':[{'id':'h','stream':"
        "{'$':'h'},'inputs':{'c':{'$':'c','asCell':true}},'module':^(e, {c}) => { c.set(e) }^}],'result':{'$':'c'}}}}],"
        "'result':{'$':'in'}}}},"
        "{'id':'kept','inputs':{'list':{'$':'argument/"
        "rows'}},'module':{'type':'ref','ref':'filter','key':'id','pattern':"
        "{'pattern':1,'name':'f','cells':{'on':{'default':true}},'nodes':[{'id':'flip','stream':{'$':'flip'},'inputs':"
        "{'on':{'$':'on','asCell':true}},'module':^(e, {on}) => { on.set(!on.get()) }^}],'result':{'$':'on'}}}},"
        "{'id':'sum','inputs':{'list':{'$':'argument/rows'},'initial':1},'module':{'type':'ref','ref':'reduce','key':"
        "'id','pattern':{'pattern':1,'name':'r','cells':{'by':{'default':1}},'nodes':[{'id':'x','inputs':[{'$':"
        "'argument/accumulator'},{'$':'by'}],'module':{'type':'ref','ref':'add'}},{'id':'by-','stream':{'$':'by-'},"
        "'inputs':{'by':{'$':'by','asCell':true}},'module':^(e, {by}) => { by.set(e) }^}],'result':{'$':'x'}}}},"
        "{'id':'make','returns':'pattern','inputs':{'value':{'$':'argument/"
        "made'}},'module':{'type':'ref','ref':'value'}}],"
        "'result':{'rows':{'$':'rows'},'kept':{'$':'kept'},'sum':{'$':'sum'},'make':{'$':'make'}}}");
    /* Nothing has run: who is there is found out on the way, and nothing else. */
    sent(w, "rows[1].in[y].h", "5", NULL, "rows rows[1].in");
    sent(w, "kept[1].flip", "5", NULL, "kept[]");
    sent(w, "sum[1].by-", "5", NULL, "sum");
    sent(w, "make[].h", "5", NULL, "make");
    kit_restart(w);
    kit_run(w, "t");
    kit_is(w, "piece:t", "{'kept':[],'make':5,'rows':[[0,5]],'sum':6}");
    refused(w, "make", "7", STET_NOT_FOUND, "no stream"); /* what the result shows there is a cell */
    kit_end(w);
}

static void a_program_with_other_streams(void **state) {
    (void)state;
    world *w = with_rows();
    sent(w, "rows[a].add", "5", NULL, "");
    /* "scaled" becomes a stream, "add" a computation; the cell keeps what is in it. */
    kit_install(
        w, "t",
        "{'pattern':1,'name':'t','argument':{'default':{'rows':[{'id':'a','n':1},{'id':'b','n':2}],'factor':10}},"
        "'nodes':[{'id':'rows','inputs':{'list':{'$':'argument/"
        "rows'}},'module':{'type':'ref','ref':'map','key':'id','pattern':{'pattern':1,'name':'row',"
        "'cells':{'count':{'default':0}},'nodes':[{'id':'scaled','stream':{'$':'scaled'},'inputs':{'count':"
        "{'$':'count','asCell':true}},'module':^(e, {count}) => { count.set(e) }^},{'id':'add','inputs':[{'$':"
        "'count'},1],'module':{'type':'ref','ref':'add'}}],'result':{'$':'add'}}}}],'result':{'rows':{'$':'rows'}}}");
    refused(w, "rows[a].add", "5", STET_NOT_FOUND, "no stream \"add\"");
    sent(w, "rows[a].scaled", "8", NULL, "");
    kit_restart(w);
    kit_run(w, "t");
    kit_is(w, "piece:t", "{'rows':[9,1]}");
    kit_install(w, "t", OUTER);
    kit_run(w, "t");
    kit_is(w, "piece:t/items/0", "{'add':{'$stream':true},'count':8,'scaled':10}");
    sent(w, "rows[a].add", "1", NULL, "");
    kit_is(w, "piece:t:cell:rows[a].count", "9");
    kit_end(w);
}

/* Somebody takes the element away while the handler runs: the commit does not hold, and the event is refused. */
static void other_takes_it(void *ctx, const stet_sched_event *e) {
    world *w = ctx;
    kit_event(ctx, e);
    if (e->kind != STET_SCHED_DONE || strcmp(e->node, "rows[a].scaled") != 0 || w->opts.jobs)
        return;
    w->opts.jobs = 1;
    kit_set(w, "piece:t:argument/rows", "[{'id':'b','n':2}]");
}

static void an_element_that_goes_meanwhile_takes_its_event_along(void **state) {
    (void)state;
    world *w = with_rows();
    kit_set(w, "piece:t:argument/factor", "100");
    w->opts.event = other_takes_it;
    kit_restart(w);
    refused(w, "rows[a].add", "5", STET_NOT_FOUND, "no child \"rows[a]\"");
    kit_run(w, "t");
    kit_is(w, "piece:t/items", "[{'add':{'$stream':true},'count':0,'scaled':200}]");
    kit_end(w);
}

static void streams_of_children_without_a_record_of_runs(void **state) {
    (void)state;
    world *w = with_rows();
    w->opts.persist = false;
    kit_restart(w);
    stet_error e = STET_ERROR_INIT;
    kit_set(w, "piece:t:argument/rows", "[{'id':'b','n':2},{'id':'c','n':2}]");
    assert_int_equal(kit_send(w, "t", "rows[c].add", "5", NULL, &e), STET_OK);
    kit_is(w, "piece:t:cell:rows[c].count", "5");
    refused(w, "rows[a].add", "5", STET_NOT_FOUND, "no child \"rows[a]\"");
    kit_stop(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_finds_its_element),
        cmocka_unit_test(preflight_makes_fresh_what_the_handler_of_a_child_reads_and_nothing_else),
        cmocka_unit_test(an_event_for_an_element_that_has_just_come_finds_it),
        cmocka_unit_test(an_event_for_an_element_that_is_gone_is_refused),
        cmocka_unit_test(an_element_that_goes_meanwhile_takes_its_event_along),
        cmocka_unit_test(documents_of_streams_go_with_their_element),
        cmocka_unit_test(handlers_send_to_children_and_children_to_handlers),
        cmocka_unit_test(events_in_a_circle_end),
        cmocka_unit_test(a_copy_of_an_element_is_not_written_to),
        cmocka_unit_test(streams_of_nested_filtered_folded_and_returned_children),
        cmocka_unit_test(a_program_with_other_streams),
        cmocka_unit_test(streams_of_children_without_a_record_of_runs),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
