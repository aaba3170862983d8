/* observe_api.c - actions through the public header alone, as a program that embeds the library uses them. */

#include "../expect.h"

static stet_project *project;
static stet_space *s, *other;

#define ok    OK
#define fails FAILS

static void open_all(void) {
    ok(stet_project_open(".", &project, &err));
    ok(stet_space_open(project, "main", 0, &s, &err));
    ok(stet_space_open(project, "other", 0, &other, &err));
}

static void close_all(void) {
    stet_space_close(other);
    stet_space_close(s);
    stet_project_close(project);
}

static int setup(void **state) {
    (void)state;
    bool created;
    ok(stet_project_init(".", &created, &err));
    open_all();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    close_all();
    return system("rm -rf .stet");
}

static stet_action_key named(const char *action) {
    return (stet_action_key){"piece", NULL, action};
}

static void set(stet_space *in, const char *cell, int64_t n) {
    stet_tx *tx;
    ok(stet_tx_begin(in, NULL, &tx, &err));
    ok(stet_tx_set(tx, cell, NULL, stet_value_int(n), &err));
    ok(stet_tx_commit(tx, NULL, &err));
}

/* Reads a cell of a space, writes another one. */
static stet_commit_result run(const char *action, stet_space *from, const char *in, const char *out, int64_t n) {
    stet_tx *tx;
    stet_value v;
    stet_commit_result result;
    stet_cell cell = {out, NULL};
    stet_action_run r = STET_ACTION_RUN_INIT;
    r.key = named(action);
    r.writes = &cell;
    r.write_count = 1;
    ok(stet_tx_begin(s, NULL, &tx, &err));
    stet_status st = from ? stet_tx_get_from(tx, from, in, NULL, &v, &err) : stet_tx_get(tx, in, NULL, &v, &err);
    assert_true(st == STET_OK || st == STET_NOT_FOUND);
    stet_error_clear(&err);
    ok(stet_tx_set(tx, out, NULL, stet_value_int(n), &err));
    ok(stet_tx_observe(tx, &r, &err));
    ok(stet_tx_commit(tx, &result, &err));
    return result;
}

static stet_action_state state_of(const char *action) {
    stet_action_state state;
    stet_action_key key = named(action);
    ok(stet_action_state_of(s, NULL, &key, &state, &err));
    return state;
}

static void expect(stet_value v, const char *key, const char *text) {
    char *got = stet_json_print(key ? stet_value_get(v, key) : v, STET_JSON_CANONICAL, NULL);
    assert_string_equal(got, text);
    stet_free(got);
}

static stet_value get(const char *action) {
    stet_value v;
    stet_action_key key = named(action);
    ok(stet_action_get(s, NULL, &key, &v, &err));
    return v;
}

static void a_commit_carries_its_observation(void **state) {
    (void)state;
    set(s, "in/x", 1);
    assert_int_equal(state_of("a"), STET_STATE_UNKNOWN);
    stet_tx *tx;
    stet_value v, note = stet_value_object(), options = stet_value_object();
    stet_cell writes[] = {{"out", "mine"}}, envelopes[] = {{"wide", NULL}}, ignored[] = {{"log", NULL}};
    stet_action_run r = STET_ACTION_RUN_INIT;
    stet_value_put(&note, "took", stet_value_int(3));
    stet_value_put(&options, "throttleMs", stet_value_int(100));
    r.key = named("a");
    r.kind = STET_ACTION_EFFECT;
    r.generation = 4;
    r.implementation = "code";
    r.runtime = "this";
    r.parent = "above";
    r.writes = writes;
    r.write_count = 1;
    r.envelopes = envelopes;
    r.envelope_count = 1;
    r.ignored = ignored;
    r.ignored_count = 1;
    r.options = options;
    r.error = "it broke";
    r.note = note;
    ok(stet_tx_begin(s, NULL, &tx, &err));
    ok(stet_tx_get(tx, "in/x", NULL, &v, &err));
    ok(stet_tx_get_shallow(tx, "in", NULL, &v, &err));
    ok(stet_tx_set(tx, "out", "mine", stet_value_int(1), &err));
    ok(stet_tx_set(tx, "log", NULL, stet_value_int(1), &err));
    ok(stet_tx_observe(tx, &r, &err));
    fails(stet_tx_observe(tx, &r, &err), STET_INVALID, "already");
    stet_commit_result done;
    ok(stet_tx_commit(tx, &done, &err));
    stet_value_release(note);
    stet_value_release(options);
    close_all(); /* all of it is durable */
    open_all();
    v = get("a");
    expect(v, "state", "\"failed\"");
    expect(v, "failed", "true");
    expect(v, "kind", "\"effect\"");
    expect(v, "run", "\"action-run\"");
    expect(v, "generation", "4");
    expect(v, "commitSeq", "2");
    expect(v, "parent", "\"above\"");
    expect(v, "reads",
           "[{\"cell\":\"in\",\"kind\":\"shallow\",\"seq\":2},{\"cell\":\"in/x\",\"kind\":\"recursive\",\"seq\":2}]");
    expect(v, "knownWrites", "[{\"cell\":\"out\",\"scope\":\"mine\"}]");
    expect(v, "declaredWrites", "[{\"cell\":\"out\",\"scope\":\"mine\"}]");
    expect(v, "envelopes", "[{\"cell\":\"wide\"}]");
    expect(v, "ignoredWrites", "[{\"cell\":\"log\"}]");
    expect(v, "options", "{\"throttleMs\":100}");
    expect(v, "note", "{\"took\":3}");
    assert_int_equal(stet_value_count(stet_value_get(v, "implementation")), 0);
    stet_value_release(v);
}

static void runs_that_change_nothing_are_batched(void **state) {
    (void)state;
    set(s, "in", 1);
    set(s, "out", 7);
    int64_t before, after;
    ok(stet_space_seq(s, &before, &err));
    assert_false(run("a", NULL, "in", "out", 7).changed);
    assert_true(run("b", NULL, "in", "out2/none", 0).changed);
    ok(stet_space_sync(s, &err));
    ok(stet_space_seq(s, &after, &err));
    assert_int_equal(after, before + 1); /* of b alone */
    assert_int_equal(state_of("a"), STET_STATE_STANDS);
    /* Stale by the time the batch is stored: dropped on its own, no error, and the other is kept. */
    run("b", NULL, "in", "out2/none", 0);
    stet_tx *tx;
    stet_value v;
    stet_action_run r = STET_ACTION_RUN_INIT;
    r.key = named("c");
    ok(stet_tx_begin(s, NULL, &tx, &err));
    ok(stet_tx_get(tx, "in", NULL, &v, &err));
    ok(stet_tx_observe(tx, &r, &err));
    stet_space *second;
    ok(stet_space_open(project, "main", 0, &second, &err));
    set(second, "in", 2);
    stet_space_close(second);
    ok(stet_tx_commit(tx, NULL, &err));
    ok(stet_space_sync(s, &err));
    assert_int_equal(state_of("c"), STET_STATE_UNKNOWN);
    assert_int_equal(state_of("a"), STET_STATE_DIRTY);
    ok(stet_actions_stats(s, &v, &err));
    expect(stet_value_get(v, "handle"), "droppedNoops", "2"); /* c and the second run of b */
    stet_value_release(v);
}

static void a_mark_has_its_cause_and_what_follows_names_it(void **state) {
    (void)state;
    set(s, "in/x", 1);
    run("a", NULL, "in/x", "mid", 1);
    run("b", NULL, "mid", "end", 1);
    stet_value v = get("a");
    assert_false(stet_value_find(v, "cause", 5, &(stet_value){0}));
    stet_value_release(v);
    set(s, "in/y", 1); /* beside what it read */
    assert_int_equal(state_of("a"), STET_STATE_STANDS);
    set(s, "in/x", 2);
    v = get("a");
    expect(v, "state", "\"dirty\"");
    expect(v, "cause", "{\"cell\":\"in/x\",\"kind\":\"value\",\"reason\":\"changed\",\"seq\":5}");
    stet_value_release(v);
    v = get("b");
    expect(v, "state", "\"stale\"");
    expect(v, "via", "{\"action\":\"a\",\"piece\":\"piece\",\"scope\":\"\"}");
    stet_value_release(v);
    ok(stet_actions_count(s, NULL, "piece", NULL, &v, &err));
    expect(v, NULL, "{\"accepted\":0,\"actions\":2,\"dirty\":1,\"failed\":0,\"stale\":1,\"stands\":0,\"unknown\":0}");
    stet_value_release(v);
    run("a", NULL, "in/x", "mid", 1); /* early cut-off: it changed nothing, so b stands */
    assert_int_equal(state_of("b"), STET_STATE_STANDS);
}

static void readers_of_a_cell_in_every_space(void **state) {
    (void)state;
    set(other, "far/k", 1);
    run("a", other, "far/k", "out", 1);
    run("b", NULL, "near", "out2", 1);
    stet_value v;
    ok(stet_space_readers(other, NULL, "far", NULL, &v, &err));
    expect(v, "readers", "[{\"action\":\"a\",\"piece\":\"piece\",\"scope\":\"\",\"space\":\"main\"}]");
    stet_value_release(v);
    ok(stet_space_readers(s, NULL, "near/deep", NULL, &v, &err));
    expect(v, "readers", "[{\"action\":\"b\",\"piece\":\"piece\",\"scope\":\"\",\"space\":\"main\"}]");
    expect(v, "writers", "[]");
    stet_value_release(v);
    ok(stet_space_readers(s, NULL, "out2", NULL, &v, &err));
    expect(v, "writers", "[{\"action\":\"b\",\"piece\":\"piece\",\"scope\":\"\",\"space\":\"main\"}]");
    stet_value_release(v);
    set(other, "far/k", 2);
    assert_int_equal(state_of("a"), STET_STATE_DIRTY);
    v = get("a");
    expect(stet_value_get(v, "cause"), "cell", "\"far/k\"");
    assert_true(stet_value_find(stet_value_get(v, "cause"), "space", 5, &(stet_value){0}));
    stet_value_release(v);
}

static stet_status changes(const char *cell, bool shallow, int64_t after, int64_t before, size_t limit,
                           stet_value *out) {
    stet_changes_query q = STET_CHANGES_QUERY_INIT;
    q.cell = cell;
    q.shallow = shallow;
    q.after = after;
    q.before = before;
    q.limit = limit;
    return stet_space_changes_after(s, NULL, &q, out, &err);
}

static stet_status page(int64_t generation, int64_t after, stet_value *out, int64_t *next) {
    stet_actions_query q = STET_ACTIONS_QUERY_INIT;
    q.piece = "piece";
    q.generation = &generation;
    q.after = after;
    q.limit = 5;
    return stet_actions_list(s, NULL, &q, out, next, &err);
}

static void overlapping_changes_after_a_sequence(void **state) {
    (void)state;
    set(s, "d/a", 1);   /* 1 */
    set(s, "d/b/c", 1); /* 2 */
    set(s, "d/a", 2);   /* 3 */
    set(s, "d/b/c", 2); /* 4 */
    stet_value v;
    ok(changes("d/a", false, 1, 0, 10, &v));
    expect(v, NULL, "[{\"kind\":\"value\",\"path\":\"/value/a\",\"seq\":3}]");
    stet_value_release(v);
    ok(changes("d", false, 0, 0, 2, &v));
    assert_int_equal(stet_value_count(v), 2);
    expect(stet_value_at(v, 0), "seq", "4"); /* newest first */
    stet_value_release(v);
    ok(changes("d", true, 2, 0, 10, &v));
    assert_int_equal(stet_value_count(v), 0); /* the key set is as it was */
    stet_value_release(v);
    ok(changes("d", false, 0, 3, 10, &v));
    expect(stet_value_at(v, 0), "seq", "2");
    stet_value_release(v);
    ok(changes("nobody", false, 0, 0, 10, &v));
    assert_int_equal(stet_value_count(v), 0);
    stet_value_release(v);
}

static void pages_are_stable(void **state) {
    (void)state;
    enum { ACTIONS = 23 };
    char name[16], out[16], seen[ACTIONS] = {0};
    for (int i = 0; i < ACTIONS; i++) {
        snprintf(name, sizeof name, "a%d", i);
        snprintf(out, sizeof out, "out%d", i);
        run(name, NULL, "in", out, i);
    }
    int64_t next = 0;
    size_t pages = 0;
    do {
        stet_value v;
        ok(page(0, next, &v, &next));
        for (size_t i = 0; i < stet_value_count(v); i++) {
            stet_value action = stet_value_get(stet_value_at(v, i), "action");
            seen[atoi(stet_value_as_string(&action, NULL) + 1)]++;
        }
        stet_value_release(v);
        run("a3", NULL, "in", "out3", (int64_t)pages + 100); /* those that run meanwhile keep their place */
        pages++;
    } while (next);
    assert_int_equal(pages, 5);
    for (int i = 0; i < ACTIONS; i++)
        assert_int_equal(seen[i], 1);
    stet_value v;
    ok(page(99, 0, &v, &next)); /* of another generation */
    assert_int_equal(stet_value_count(v), 0);
    stet_value_release(v);
}

static void distrusting_forgetting_and_the_switch(void **state) {
    (void)state;
    run("a", NULL, "in", "out", 1);
    run("b", NULL, "in", "out2", 1);
    stet_action_key keys[] = {named("a"), named("new")};
    ok(stet_action_distrust(s, NULL, keys, 2, &err));
    stet_value v = get("a");
    expect(stet_value_get(v, "cause"), "reason", "\"requested\"");
    stet_value_release(v);
    assert_int_equal(state_of("new"), STET_STATE_UNKNOWN);
    ok(stet_actions_forget(s, NULL, "piece", NULL, keys, 1, &err));
    fails(stet_action_get(s, NULL, keys, &v, &err), STET_NOT_FOUND, "no observed action");
    stet_actions_switch(s, false);
    set(s, "in", 5);
    assert_int_equal(state_of("b"), STET_STATE_UNKNOWN); /* what is stored is inert */
    stet_actions_switch(s, true);
    assert_int_equal(state_of("b"), STET_STATE_DIRTY);
    ok(stet_actions_forget(s, NULL, "piece", NULL, NULL, 0, &err));
    ok(stet_actions_count(s, NULL, NULL, NULL, &v, &err));
    expect(v, "actions", "0");
    stet_value_release(v);
}

static void an_aborted_transaction_leaves_no_observation(void **state) {
    (void)state;
    stet_tx *tx;
    stet_action_run r = STET_ACTION_RUN_INIT;
    r.key = named("a");
    ok(stet_tx_begin(s, NULL, &tx, &err));
    ok(stet_tx_observe(tx, &r, &err));
    stet_tx_abort(tx);
    stet_value v;
    stet_action_key key = named("a");
    fails(stet_action_get(s, NULL, &key, &v, &err), STET_NOT_FOUND, "piece");
}

static void bad_input_is_refused_whole(void **state) {
    (void)state;
    stet_tx *tx;
    stet_value v;
    stet_cell bad = {"", NULL};
    ok(stet_tx_begin(s, NULL, &tx, &err));
    stet_action_run r = STET_ACTION_RUN_INIT;
    fails(stet_tx_observe(tx, &r, &err), STET_INVALID, "missing");
    r.key = named("");
    fails(stet_tx_observe(tx, &r, &err), STET_INVALID, "empty");
    r.key = named("a");
    r.writes = &bad;
    r.write_count = 1;
    fails(stet_tx_observe(tx, &r, &err), STET_INVALID, "empty");
    r.write_count = 0;
    r.kind = (stet_action_kind)9;
    fails(stet_tx_observe(tx, &r, &err), STET_INVALID, "an invalid value");
    stet_tx_abort(tx);
    stet_action_key key = {"\x01", NULL, "a"};
    assert_int_equal(stet_action_distrust(s, NULL, &key, 1, &err), STET_INVALID);
    stet_error_clear(&err);
    fails(stet_space_readers(s, NULL, "~", NULL, &v, &err), STET_INVALID, "tilde");
    fails(stet_actions_count(s, "nowhere", NULL, NULL, &v, &err), STET_NOT_FOUND, "nowhere");
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        test(a_commit_carries_its_observation),
        test(runs_that_change_nothing_are_batched),
        test(a_mark_has_its_cause_and_what_follows_names_it),
        test(readers_of_a_cell_in_every_space),
        test(overlapping_changes_after_a_sequence),
        test(pages_are_stable),
        test(distrusting_forgetting_and_the_switch),
        test(an_aborted_transaction_leaves_no_observation),
        test(bad_input_is_refused_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
