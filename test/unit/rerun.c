/* rerun.c - stet_sched_rerun: what is up to date is computed again and compared.
 *
 * A wrong output, a wrong error and a read that the record lacks are reported, and nothing is stored. The damage is
 * done through the tables, as no run does it.
 */

#include "scheduler/rerun.h"

#include <unistd.h>

#include "../faults.h"
#include "../sched_kit.h"

/* Of db/db.h, whose stet_run is another one than that of scheduler/module.h. */
void stet_db_exec(stet_db *db, const char *sql);
STET_CHECKED stet_status stet_db_begin_write(stet_db *db, stet_error *err);
STET_CHECKED stet_status stet_db_commit(stet_db *db, stet_error *err);

static void sql(world *w, const char *text) {
    ok(stet_db_begin_write(stet_space_db(w->space), &err));
    stet_db_exec(stet_space_db(w->space), text);
    ok(stet_db_commit(stet_space_db(w->space), &err));
}

/* One action again: its outcome, and what is different as JSON. */
static void again(world *w, const char *node, stet_rerun_outcome outcome, const char *differences,
                  const char *unrecorded) {
    stet_rerun r;
    int64_t number, before, after;
    stet_action_key key = {"piece:p", NULL, node};
    ok(stet_observe_number(w->space, 0, &key, &number, &err));
    ok(stet_space_seq(w->space, &before, &err));
    ok(stet_sched_rerun(w->sched, number, &r, &err));
    char *a = stet_json_print(r.differences, STET_JSON_CANONICAL, NULL),
         *b = stet_json_print(r.unrecorded, STET_JSON_CANONICAL, NULL);
    char *want_a = kit_json(differences), *want_b = kit_json(unrecorded);
    assert_string_equal(a, want_a);
    assert_string_equal(b, want_b);
    assert_int_equal(r.outcome, outcome);
    assert_string_equal(r.node, node);
    ok(stet_space_seq(w->space, &after, &err));
    assert_int_equal(before, after);
    stet_free(a);
    stet_free(b);
    stet_free(want_a);
    stet_free(want_b);
    stet_rerun_release(&r);
}

static const char pattern[] =
    "{'pattern':1,'name':'p','argument':{'default':{'x':3,'rows':[{'id':'a','n':1},{'id':'b','n':2}]}},'cells':{'c':{"
    "'default':0}},'nodes':["
    "{'id':'twice','inputs':{'v':{'$':'argument/x'}},'module':#({v}) => v * 2#},"
    "{'id':'minus','inputs':{'value':{'$':'twice'}},'module':{'type':'ref','ref':'negate'}},"
    "{'id':'bad','inputs':{'value':{'$':'argument/rows'}},'module':{'type':'ref','ref':'negate'}},"
    "{'id':'writes','inputs':{'v':{'$':'argument/x'},'c':{'$':'c','asCell':true}},'module':#({v, c}) => { c.set(v); "
    "return v }#},"
    "{'id':'act','kind':'effect','inputs':{'v':{'$':'argument/x'}},'module':#({v}) => v#},"
    "{'id':'items','inputs':{'list':{'$':'argument/rows'}},'module':{'type':'ref','ref':'map','key':'id','pattern':{"
    "'pattern':1,'name':'c','nodes':[{'id':'y','inputs':{'value':{'$':'argument/element/n'}},'module':{'type':'ref',"
    "'ref':'negate'}}],'result':{'$':'y'}}}}],"
    "'result':{'m':{'$':'minus'},'b':{'$':'bad'},'w':{'$':'writes'},'i':{'$':'items'}}}";

static world *settled(void) {
    world *w = kit_piece("p", pattern);
    kit_restart(w);
    return w;
}

static void a_clean_piece_is_the_same(void **state) {
    static const char *const nodes[] = {"twice", "minus", "bad", "writes", "items", "items[a].y", "items[b].y"};
    (void)state;
    world *w = settled();
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
            again(w, nodes[i], STET_RERUN_SAME, "[]", "[]");
    again(w, "act", STET_RERUN_LEFT_OUT, "[]", "[]");
    kit_runs(w, "p", "");
    kit_end(w);
}

static void what_is_outdated_is_not_compared(void **state) {
    (void)state;
    world *w = settled();
    kit_set(w, "piece:p:argument/x", "4");
    again(w, "twice", STET_RERUN_OUTDATED, "[]", "[]");
    /* Stale: right for the input that is stored. */
    again(w, "minus", STET_RERUN_SAME, "[]", "[]");
    kit_set(w, "piece:p:node:items[a].y", "9");
    again(w, "items[a].y", STET_RERUN_OUTDATED, "[]", "[]");
    kit_end(w);
}

static void a_wrong_output_is_told(void **state) {
    (void)state;
    world *w = settled();
    kit_set(w, "piece:p:node:minus", "77");
    kit_set(w, "piece:p:node:items[b].y", "{'a':[1]}");
    kit_set(w, "piece:p:cell:c", "8");
    kit_set(w, "piece:p:child:items[a]/argument/element/n", "5");
    sql(w, "DELETE FROM mark");
    kit_restart(w);
    again(w, "minus", STET_RERUN_DIFFERS, "[{'cell':'piece:p:node:minus','recomputed':'-6','stored':'77'}]", "[]");
    again(w, "items[b].y", STET_RERUN_DIFFERS,
          "[{'cell':'piece:p:node:items[b].y','recomputed':'-2','stored':'{\\'a\\':[1]}'}]", "[]");
    again(w, "writes", STET_RERUN_DIFFERS, "[{'cell':'piece:p:cell:c','recomputed':'3','stored':'8'}]", "[]");
    again(w, "items[a].y", STET_RERUN_DIFFERS, "[{'cell':'piece:p:node:items[a].y','recomputed':'-5','stored':'-1'}]",
          "[]");
    again(w, "items", STET_RERUN_DIFFERS,
          "[{'cell':'piece:p:child:items[a]/argument/element/n','recomputed':'1','stored':'5'}]", "[]");
    again(w, "twice", STET_RERUN_SAME, "[]", "[]");
    kit_stop(w);
}

/* Its failure was another one, or none. */
static void a_wrong_error_is_told(void **state) {
    (void)state;
    world *w = settled();
    kit_set(w, "piece:p:argument/rows", "5");
    kit_set(w, "piece:p:argument/x", "'a'");
    sql(w, "DELETE FROM mark");
    kit_restart(w);
    again(w, "bad", STET_RERUN_DIFFERS,
          "[{'cell':'error','recomputed':'(succeeded)','stored':'negate: value: expected a number, found an "
          "array'},{'cell':'piece:p:node:bad','recomputed':'-5','stored':'(absent)'}]",
          "[]");
    kit_set(w, "piece:p:node:twice", "null");
    sql(w, "DELETE FROM mark");
    kit_restart(w);
    again(w, "minus", STET_RERUN_DIFFERS,
          "[{'cell':'error','recomputed':'negate: value: expected a number, found null','stored':'(succeeded)'}]",
          "[]");
    kit_stop(w);
}

/* A record without one of the reads, as a module that does not say what it read would leave. */
static void a_read_without_record_is_told(void **state) {
    (void)state;
    world *w = settled();
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    stet_action_key key = {"piece:p", NULL, "minus"};
    stet_tx *tx;
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    stet_address out = {NULL, {"piece:p:node:minus", NULL}, stet_path_ref(&path)};
    ok(stet_observe_find(w->space, 0, &key, &arena, &r, &err));
    stet_observation o = {.key = key,
                          .kind = r.kind,
                          .generation = r.generation,
                          .implementation = r.implementation,
                          .runtime = r.runtime,
                          .run = STET_RUN_ACTION,
                          .declared_writes = &out,
                          .declared_count = 1};
    ok(stet_tx_begin(w->space, "", &tx, &err));
    ok(stet_observe_attach(tx, &o, &err));
    ok(stet_tx_commit(tx, NULL, &err));
    ok(stet_space_sync(w->space, &err));
    kit_restart(w);
    again(w, "minus", STET_RERUN_DIFFERS, "[]", "['piece:p:node:twice']");
    stet_path_release(&path);
    stet_arena_release(&arena);
    kit_stop(w);
}

/* Others are told apart by their spaces; long values are cut. */
static void other_spaces_and_long_values(void **state) {
    (void)state;
    world *w = kit_start();
    stet_space *far;
    stet_tx *tx;
    stet_buf text = STET_BUF(0), want = STET_BUF(0);
    ok(stet_space_open(w->project, "far", 0, &far, &err));
    ok(stet_tx_begin(far, "", &tx, &err));
    ok(stet_tx_set(tx, "f", NULL, stet_value_int(4), &err));
    ok(stet_tx_commit(tx, NULL, &err));
    stet_space_close(far);
    kit_install(w, "p",
                "{'pattern':1,'name':'p','nodes':[{'id':'n','inputs':{'value':{'/':{'link@1':{'id':'f','path':[],"
                "'space':'far'}}}},'module':{'type':'ref','ref':'negate'}}],'result':{'$':'n'}}");
    kit_run(w, "p");
    again(w, "n", STET_RERUN_SAME, "[]", "[]");
    stet_buf_char(&text, '\'');
    for (int i = 0; i < 300; i++)
        stet_buf_str(&text, "\xc3\xa9");
    stet_buf_char(&text, '\'');
    kit_set(w, "piece:p:node:n", stet_buf_cstr(&text));
    sql(w, "DELETE FROM mark");
    kit_restart(w);
    stet_buf_str(&want, "[{'cell':'piece:p:node:n','recomputed':'-4','stored':'\\'");
    for (int i = 0; i < 99; i++)
        stet_buf_str(&want, "\xc3\xa9");
    stet_buf_str(&want, "...'}]");
    again(w, "n", STET_RERUN_DIFFERS, stet_buf_cstr(&want), "[]");
    stet_buf_release(&text);
    stet_buf_release(&want);
    kit_stop(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_piece_is_the_same),     cmocka_unit_test(what_is_outdated_is_not_compared),
        cmocka_unit_test(a_wrong_output_is_told),        cmocka_unit_test(a_wrong_error_is_told),
        cmocka_unit_test(a_read_without_record_is_told), cmocka_unit_test(other_spaces_and_long_values),
    };
    faults_fast_directory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
