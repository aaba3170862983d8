/* process.c - what is stored of a process graph, and what a rebuild does to it.
 *
 * Tests rows, schemas and programs by hash, the snapshot that is read, teardown that takes what a node owns and nothing
 * else, and damaged rows.
 */

#include "../sched_kit.h"

#include "memory/observe.h"

static size_t documents(world *w, const char *prefix) {
    stet_arena arena = STET_ARENA_INIT;
    stet_doc_info *at;
    size_t count;
    bool more;
    stet_doc_filter filter = {.prefix = prefix, .limit = 1000};
    ok(stet_space_list(w->space, 0, &filter, &arena, &at, &count, &more, &err));
    stet_arena_release(&arena);
    return count;
}

static bool recorded(world *w, const char *node) {
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    stet_action_key key = {.piece = "piece:t", .action = node};
    stet_status status = stet_observe_find(w->space, 0, &key, &arena, &r, NULL);
    stet_arena_release(&arena);
    assert_true(status == STET_OK || status == STET_NOT_FOUND);
    return status == STET_OK;
}

static size_t readers(world *w, const char *id, const char *key) {
    stet_numbers found = {0};
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    stet_path_push(&path, key);
    ok(stet_observe_readers(w->space, 0, &(stet_docname){id, NULL}, stet_path_ref(&path), STET_VALUE, &found, &err));
    size_t n = found.len;
    stet_path_release(&path);
    stet_numbers_release(&found);
    return n;
}

#define NODE(id, ref, inputs, more)                                                                                    \
    "{'id':'" id "','module':{'type':'ref','ref':'" ref "'},'inputs':[" inputs "]" more "}"
#define GRAPH(nodes, result)                                                                                           \
    "{'pattern':1,'name':'t','argument':{'default':{'a':1,'b':2}},'cells':{'log':{}},'nodes':[" nodes                  \
    "],'result':" result "}"

static void gone_node_takes_what_is_its_own_and_nothing_else(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t",
                GRAPH(NODE("own", "add", "{'$':'argument/a'},1",
                           "") "," NODE("shared", "add", "{'$':'argument/b'},1",
                                        ",'output':{'$':'log/s'}") "," NODE("stays", "add", "{'$':'argument/a'},2", ""),
                      "[{'$':'own'},{'$':'shared'},{'$':'stays'}]"));
    kit_run(w, "t");
    kit_is(w, "piece:t", "[2,3,3]");
    kit_set(w, "piece:t:cell:log/mine", "7");
    assert_int_equal(readers(w, "piece:t:argument", "a"), 2);
    assert_int_equal(readers(w, "piece:t:argument", "b"), 1);
    kit_restart(w);
    stet_sched_installed in =
        kit_install(w, "t", GRAPH(NODE("stays", "add", "{'$':'argument/a'},2", ""), "[{'$':'stays'}]"));
    assert_int_equal(in.gone, 2);
    assert_int_equal(in.kept, 1);
    assert_int_equal(in.altered, 0);
    kit_is(w, "piece:t:node:own", "not_found");
    kit_is(w, "piece:t:cell:log", "{'mine':7}"); /* a cell that people edit: their part of it stays */
    assert_false(recorded(w, "own"));
    assert_false(recorded(w, "shared"));
    assert_int_equal(readers(w, "piece:t:argument", "a"), 1);
    assert_int_equal(readers(w, "piece:t:argument", "b"), 0);
    kit_runs(w, "t", "");
    kit_end(w);
}

static void output_that_moves_leaves_nothing_behind(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t", GRAPH(NODE("x", "add", "{'$':'argument/a'},1", ""), "{'$':'x'}"));
    kit_run(w, "t");
    kit_install(w, "t", GRAPH(NODE("x", "add", "{'$':'argument/a'},1", ",'output':{'$':'log/x'}"), "{'$':'x'}"));
    kit_restart(w);
    kit_is(w, "piece:t:node:x", "not_found");
    kit_runs(w, "t", "x"); /* other bindings: unknown */
    kit_is(w, "piece:t", "2");
    kit_is(w, "piece:t:cell:log", "{'x':2}");
    kit_install(w, "t", GRAPH(NODE("x", "add", "{'$':'argument/a'},1", ""), "{'$':'x'}"));
    kit_runs(w, "t", "x");
    kit_is(w, "piece:t:node:x", "2");
    kit_is(w, "piece:t:cell:log", "not_found"); /* as in a new project */
    kit_end(w);
}

#define WITH_SCHEMA(max)                                                                                               \
    GRAPH(NODE("x", "add", "{'$':'argument/a'},1", ",'resultSchema':{'maximum':" max "}"), "{'$':'x'}")

static void schemas_and_programs_are_kept_once_by_hash(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t", WITH_SCHEMA("10"));
    size_t schemas = documents(w, "schema:"), programs = documents(w, "program:");
    assert_true(schemas >= 1);
    assert_int_equal(programs, 1);
    kit_install(w, "u", WITH_SCHEMA("10"));
    assert_int_equal(documents(w, "schema:"), schemas);
    assert_int_equal(documents(w, "program:"), 1);
    kit_install(w, "t", WITH_SCHEMA("20"));
    assert_int_equal(documents(w, "schema:"), schemas + 1);
    assert_int_equal(documents(w, "program:"), 2);
    /* The history of schemas a piece has used has both. */
    stet_piece *p;
    ok(stet_piece_load(w->space, 0, "t", -1, &p, &err));
    assert_int_equal(p->generation, 2);
    assert_int_equal(stet_value_count(stet_value_get(stet_value_get(p->envelope, "process"), "schemas")), schemas + 1);
    stet_piece_free(p);
    kit_stop(w);
}

static void snapshot_has_modules_bindings_and_whole_schemas(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t", WITH_SCHEMA("10"));
    stet_piece *p;
    stet_process *g;
    stet_value schemas;
    ok(stet_piece_load(w->space, 0, "t", -1, &p, &err));
    ok(stet_piece_process(w->space, 0, p, -1, &g, &err));
    ok(stet_piece_schemas(w->space, 0, g, &schemas, &err));
    stet_value snapshot = stet_process_snapshot(g, schemas), node = stet_value_at(stet_value_get(snapshot, "nodes"), 0);
    char *text = stet_json_print(snapshot, STET_JSON_CANONICAL, NULL);
    assert_int_equal(stet_value_as_int(stet_value_get(snapshot, "version")), 1);
    assert_int_equal(stet_value_as_int(stet_value_get(snapshot, "generation")), 1);
    assert_int_equal(stet_value_count(stet_value_get(snapshot, "nodes")), 1);
    static const char *const parts[] = {
        "'ref':'add'", "'resultSchema':{'maximum':10}", "'output':{'/':{'link@1':{'id':'piece:t:node:x','path':[]}}}",
        "'0':{'/':{'link@1':{'id':'piece:t:argument','path':['a']}}},'1':1", "'prefixItems'"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *part = kit_json(parts[i]);
        if (!strstr(text, part))
            fail_msg("%s is not in %s", part, text);
        stet_free(part);
    }
    assert_int_equal(stet_value_type(stet_value_get(node, "module")), STET_TYPE_OBJECT);
    stet_free(text);
    stet_value_release(snapshot);
    stet_value_release(schemas);
    stet_process_free(g);
    stet_piece_free(p);
    kit_stop(w);
}

static const char two[] =
    GRAPH(NODE("x", "add", "{'$':'argument/a'},1", "") "," NODE("q", "add", "{'$':'argument/b'},1", ""),
          "[{'$':'x'},{'$':'q'}]");

/* Writes over a member of a stored row. */
static void damage(world *w, const char *node, const char *member, const char *deeper, const char *json) {
    stet_piece *p;
    stet_tx *tx;
    char number[16];
    stet_path path = STET_PATH_INIT;
    ok(stet_piece_load(w->space, 0, "t", -1, &p, &err));
    snprintf(number, sizeof number, "%u", stet_process_chunk(node, p->chunks));
    char *id = stet_piece_part("t", "process", number);
    stet_path_push(&path, "value");
    stet_path_push(&path, node);
    stet_path_push(&path, member);
    if (deeper)
        stet_path_push(&path, deeper);
    ok(stet_tx_begin(w->space, "", &tx, &err));
    ok(stet_tx_write(tx, &(stet_docname){id, NULL}, stet_path_ref(&path), kit_value(json), &err));
    ok(stet_tx_commit(tx, NULL, &err));
    stet_path_release(&path);
    stet_free(id);
    stet_piece_free(p);
}

/* A module that is not there (any more) is a failure of its node, named; the others go on. */
static void unknown_module_fails_alone(void **state) {
    (void)state;
    world *w = kit_piece("t", two);
    damage(w, "x", "module", "type", "'elsewhere'");
    kit_set(w, "piece:t:argument", "{'a':10,'b':20}");
    kit_restart(w);
    kit_run(w, "t");
    assert_int_equal(w->report.failed, 1);
    stet_value problem = stet_value_at(w->report.problems, 0), node = stet_value_get(problem, "node"),
               message = stet_value_get(stet_value_get(problem, "error"), "message");
    assert_string_equal(stet_value_as_string(&node, NULL), "x");
    assert_non_null(strstr(stet_value_as_string(&message, NULL), "elsewhere"));
    kit_is(w, "piece:t", "[2,21]"); /* the last good one, and the fresh one */
    /* Set up again it is what it was, and runs when something changes, as all that failed. */
    kit_install(w, "t", two);
    kit_set(w, "piece:t:argument/a", "30");
    kit_runs(w, "t", "x");
    assert_int_equal(w->report.failed, 0);
    kit_is(w, "piece:t", "[31,21]");
    kit_stop(w);
}

/* A row without a fingerprint says nothing: it is refused by name, and setting the piece up again mends it. */
static void damaged_row_is_named_and_mended(void **state) {
    (void)state;
    world *w = kit_piece("t", two);
    damage(w, "x", "fingerprint", NULL, "'nonsense'");
    kit_set(w, "piece:t:argument/a", "10");
    kit_restart(w);
    stet_error e = STET_ERROR_INIT;
    ok(stet_sched_demand_piece(w->sched, "t", &err));
    stet_value_release(w->report.problems);
    assert_int_equal(stet_sched_settle(w->sched, &w->report, &e), STET_CORRUPT);
    assert_non_null(strstr(e.message, "\"x\""));
    stet_error_clear(&e);
    kit_restart(w);
    kit_install(w, "t", two);
    kit_runs(w, "t", "x");
    kit_is(w, "piece:t", "[11,3]");
    kit_end(w);
}

/* The tables of the scheduler hold no user data: without them everything is unknown, and runs. */
static void lost_records_make_everything_unknown(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t", two);
    kit_install(w, "u", two);
    kit_run(w, "t");
    kit_run(w, "u");
    ok(stet_observe_forget(w->space, 0, "piece:t", NULL, NULL, 0, &err));
    kit_restart(w);
    kit_runs(w, "u", "");
    kit_restart(w);
    kit_runs(w, "t", "q x");
    kit_is(w, "piece:t", "[2,3]");
    assert_int_equal(w->report.causes[0], 2);
    kit_restart(w);
    kit_runs(w, "t", "");
    kit_end(w);
}

static void text_is(char *got, const char *want) {
    if (want)
        assert_string_equal(got, want);
    else
        assert_null(got);
    stet_free(got);
}

/* A name and a scope are one text, and each of them follows from it. */
static void pieces_are_named_with_their_scopes(void **state) {
    (void)state;
    static const char *const scopes[] = {"s", "user:a b/c@d", "@", "piece:x:argument", "\xc3\xa9 /1"};
    char *in, long_id[STET_PIECE_MAX_NAME + 40];
    stet_piece_id id;
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++) {
        ok(stet_piece_in("p", scopes[i], &in, &err));
        assert_true(stet_piece_name_valid(in));
        assert_string_equal(stet_piece_scope(in), scopes[i]);
        text_is(stet_piece_bare(in), "p");
        text_is(stet_piece_doc(in), "piece:p");
        text_is(stet_piece_part(in, "cell", "c"), "piece:p:cell:c");
        text_is(stet_piece_of(&(stet_docname){"piece:p", scopes[i]}), in);
        text_is(stet_piece_around(&(stet_docname){"piece:p:child:m[1]", scopes[i]}), in);
        char *key = stet_piece_key(in);
        text_is(stet_piece_key_of(&(stet_docname){"piece:p", scopes[i]}), key);
        stet_piece_id_of(key, &id);
        assert_string_equal(id.name.id, "piece:p");
        assert_string_equal(id.name.scope, scopes[i]);
        stet_free(key);
        assert_int_equal(stet_piece_in(in, "other", &key, NULL), STET_INVALID);
        stet_free(in);
    }
    ok(stet_piece_in("p", NULL, &in, &err));
    text_is(in, "p");
    assert_int_equal(stet_piece_in("p", "a\tb", &in, NULL), STET_INVALID);
    assert_false(stet_piece_name_valid("p@"));
    assert_false(stet_piece_name_valid("@s"));
    assert_string_equal(stet_piece_scope("p"), "");
    /* A document that somebody called like that is none. */
    text_is(stet_piece_of(&(stet_docname){"piece:p@s", ""}), NULL);
    text_is(stet_piece_key_of(&(stet_docname){"piece:p@s", ""}), NULL);
    text_is(stet_piece_around(&(stet_docname){"piece:p@s:argument", ""}), NULL);
    text_is(stet_piece_around(&(stet_docname){"other", "s"}), NULL);
    memset(long_id, 'x', sizeof long_id - 1);
    long_id[sizeof long_id - 1] = 0;
    long_id[sizeof long_id - 3] = '@';
    stet_piece_id_of(long_id, &id);
    assert_string_equal(id.name.id, long_id);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_named_with_their_scopes),
        cmocka_unit_test(gone_node_takes_what_is_its_own_and_nothing_else),
        cmocka_unit_test(output_that_moves_leaves_nothing_behind),
        cmocka_unit_test(schemas_and_programs_are_kept_once_by_hash),
        cmocka_unit_test(snapshot_has_modules_bindings_and_whole_schemas),
        cmocka_unit_test(unknown_module_fails_alone),
        cmocka_unit_test(damaged_row_is_named_and_mended),
        cmocka_unit_test(lost_records_make_everything_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
