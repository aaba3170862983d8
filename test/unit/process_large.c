/* process_large.c - the process graph of large patterns.
 *
 * Building it while the pattern is released, and storing it in parts, makes the same graph as building and storing it
 * whole.
 */

#include "../sched_kit.h"

#include "scheduler/sched_internal.h"

static stet_pattern *parse(const char *text) {
    static const stet_pattern_checks checks = {.module = stet_module_check};
    char *copy = kit_json(text);
    stet_pattern *p;
    ok(stet_pattern_parse("test.json", copy, strlen(copy), &checks, &p, NULL, &err));
    stet_free(copy);
    return p;
}

static void same_graph(world *w, const char *text) {
    stet_process *whole, *used;
    stet_process_modules modules = sched_modules(w->sched);
    stet_pattern *a = parse(text), *b = parse(text);
    ok(stet_process_build(a, "x", &modules, &whole, &err));
    b->use_up = true;
    ok(stet_process_build(b, "x", &modules, &used, &err));
    assert_int_equal(whole->node_count, used->node_count);
    for (size_t i = 0; i < whole->node_count; i++) {
        assert_string_equal(whole->nodes[i].id, used->nodes[i].id);
        assert_true(stet_value_equal(whole->nodes[i].row, used->nodes[i].row));
    }
    assert_true(stet_value_equal(whole->binding, used->binding));
    assert_true(stet_value_equal(whole->schemas, used->schemas));
    assert_true(stet_hash_equal(whole->program, used->program));
    assert_int_equal(b->node_count, 0);
    assert_int_not_equal(a->node_count, 0);
    stet_pattern_free(b); /* first: nothing of the graph lies in it */
    stet_value v = stet_process_snapshot(used, used->schemas);
    stet_value_release(v);
    stet_process_free(whole);
    stet_process_free(used);
    stet_pattern_free(a);
}

static void used_up_pattern_makes_the_same_graph(void **state) {
    (void)state;
    world *w = kit_start();
    same_graph(w,
               "{'pattern':1,'name':'x','argument':{'default':{'a':1,'rows':[1]},'schema':{'type':'object'}},"
               "'cells':{'c':{'default':2,'schema':{'type':'integer'}}},'nodes':["
               "{'id':'sum','module':{'type':'ref','ref':'add'},'inputs':[{'$':'later'},{'$':'argument/a'}]},"
               "{'id':'later','module':{'type':'ref','ref':'add'},'inputs':[{'$':'c'},{'$':'far'}],"
               "'output':{'$':'c'}},"
               "{'id':'far','module':{'type':'ref','ref':'value'},'inputs':[{'$':'argument/a'}],"
               "'output':{'/':{'link@1':{'id':'some-other-document','path':['deep','down']}}}},"
               "{'id':'a-node-with-a-name-of-many-letters','module':{'type':'ref','ref':'value'},"
               "'inputs':{'value':{'list':['a literal text of many letters',{'$':'sum'},{'$literal':{'$':'sum'}}]}}},"
               "{'id':'reads','module':{'type':'ref','ref':'pick'},'inputs':"
               "{'value':{'$':'a-node-with-a-name-of-many-letters/list'},'keys':['list']}},"
               "{'id':'again','module':{'type':'ref','ref':'add'},'inputs':[{'$':'sum'},{'$':'sum'}]},"
               "{'id':'kept','module':{'type':'ref','ref':'filter','pattern':{'pattern':1,'name':'f','argument':{},"
               "'nodes':[{'id':'t','module':{'type':'ref','ref':'value'},'inputs':[true]}],'result':{'$':'t'}}},"
               "'inputs':{'list':{'$':'argument/rows'}}},"
               "{'id':'on','stream':{'$':'on'},'module':^(event, {c}) => { c.set(event) }^,"
               "'inputs':{'c':{'$':'c','asCell':true}}},"
               "{'id':'say','kind':'effect','module':{'type':'ref','ref':'value'},'inputs':[{'$':'again'}],"
               "'argumentSchema':{'type':'array'}}],"
               "'result':{'sum':{'$':'sum'},'far':{'$':'far'}}}");
    kit_stop(w);
}

/* More rows than are stored at once: what was stored first means nothing until the last is. */
static void graph_that_is_stored_in_parts_is_whole(void **state) {
    (void)state;
    enum { NODES = 9000 };
    world *w = kit_start();
    stet_buf b = STET_BUF(0);
    stet_buf_str(&b, "{'pattern':1,'name':'x','argument':{'default':{'a':1}},'nodes':[");
    for (int i = 0; i < NODES; i++)
        stet_buf_printf(&b, "%s{'id':'n%d','module':{'type':'ref','ref':'add'},'inputs':[{'$':'argument/a'},%d]}",
                        i ? "," : "", i, i);
    stet_buf_str(&b, "],'result':{'r':{'$':'n8999'}}}");
    char *text = kit_json(stet_buf_cstr(&b));
    stet_pattern *p = parse(text);
    stet_sched_installed in;
    /* Left by a process that died while it stored another graph. */
    kit_set(w, "piece:x:process:3", "{'ghost':{'module':{},'inputs':{}}}");
    kit_set(w, "piece:x:process:99999", "{'ghost':{'module':{},'inputs':{}}}");
    p->use_up = true;
    ok(stet_sched_install(w->sched, p, "x", stet_value_null(), stet_value_null(), &in, &err));
    stet_pattern_free(p);
    stet_piece *piece;
    stet_process *g, *made;
    ok(stet_piece_load(w->space, 0, "x", -1, &piece, &err));
    assert_int_equal(piece->node_count, NODES);
    assert_true(piece->closed);
    ok(stet_piece_process(w->space, 0, piece, -1, &g, &err));
    p = parse(text);
    stet_process_modules modules = sched_modules(w->sched);
    ok(stet_process_build(p, "x", &modules, &made, &err));
    stet_process_diff d;
    stet_process_compare(g, made, &d);
    assert_int_equal(d.len, 0);
    assert_int_equal(d.kept, NODES);
    stet_process_diff_release(&d);
    stet_process_free(made);
    stet_process_free(g);
    /* The program is kept although it was used up: setting it up again finds nothing to do. */
    ok(stet_sched_install(w->sched, p, "x", stet_value_null(), stet_value_null(), &in, &err));
    assert_false(in.created || in.changed);
    stet_doc_state state_of;
    char hex[STET_HASH_HEX], *id;
    stet_hash_hex(p->hash, hex);
    id = stet_asprintf("program:%s:8", hex);
    ok(stet_space_load(w->space, 0, &(stet_docname){id, NULL}, -1, &state_of, &err));
    assert_true(state_of.exists);
    assert_int_equal(stet_value_count(stet_value_get(state_of.value, "value")), 1000);
    stet_value_release(state_of.value);
    stet_free(id);
    stet_pattern_free(p);
    stet_piece_free(piece);
    kit_run(w, "x");
    kit_ran(w, "n8999");
    stet_free(text);
    stet_buf_release(&b);
    kit_stop(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(used_up_pattern_makes_the_same_graph),
        cmocka_unit_test(graph_that_is_stored_in_parts_is_whole),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
