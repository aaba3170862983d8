/* observe_history.c - what is kept of earlier observations, what gc removes by generation, and what is counted. */

#include "observe_kit.h"

#include "project/project.h"

static size_t past(const char *action, stet_action_record **out) {
    size_t count;
    ok(stet_observe_past(a, record_on("", action).action, &arena, out, &count, &err));
    return count;
}

static void by_default_the_latest_observation_alone_is_kept(void **state) {
    (void)state;
    set(a, "", "in", "1");
    for (int i = 0; i < 4; i++)
        run_simple("x", "in", "/value", STET_RECURSIVE, "out", i);
    stet_action_record *old;
    assert_int_equal(past("x", &old), 0);
    stet_observe_stats st;
    ok(stet_observe_stat(a, &st, &err));
    assert_int_equal(st.past_rows, 0);
}

static void as_many_observations_are_kept_as_the_setting_says(void **state) {
    (void)state;
    set(a, "", "in", "1");
    stet_observe_keep(a, 3);
    for (int i = 0; i < 6; i++)
        run_simple("x", "in", i % 2 ? "/value" : "/value/deep", STET_RECURSIVE, "out", i);
    run_simple("y", "in", "/value", STET_RECURSIVE, "out2", 1);
    run_simple("y", "in", "/value", STET_SHALLOW, "out2", 1); /* changes nothing, is batched, and counts all the same */
    stet_action_record *old, now = record_on("", "x");
    assert_int_equal(past("x", &old), 2);
    assert_int_equal(now.observed_at, 7);
    assert_int_equal(old[0].observed_at, 6); /* newest first, whole records */
    assert_int_equal(old[1].observed_at, 5);
    assert_int_equal(old[0].read_count, 1);
    assert_int_equal(stet_path_compare(old[0].reads[0].path, at("/value/deep")), 0);
    assert_int_equal(stet_path_compare(old[1].reads[0].path, at("/value")), 0);
    assert_string_equal(old[0].key.action, "x");
    assert_int_equal(past("y", &old), 1);
    assert_int_equal(old[0].reads[0].kind, STET_RECURSIVE);
    reopen(); /* they are durable, and not marked by anything */
    set(a, "", "in", "2");
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
    assert_int_equal(past("x", &old), 2);
}

/* A group is one SQLite transaction; runs of one action in it are still runs. */
static void two_runs_in_one_group_are_two_observations(void **state) {
    (void)state;
    stet_observe_keep(a, 10);
    stet_group *g;
    ok(stet_group_begin(a, "", &g, &err));
    for (int i = 0; i < 3; i++) {
        run r = {
            .o = {.key = {"piece", "", "x"}, .kind = STET_ACTION_COMPUTATION, .generation = 1, .run = STET_RUN_ACTION}};
        ok(stet_tx_begin_in(g, &r.tx, &err));
        reads(&r, NULL, "in", "/value", STET_RECURSIVE);
        writes(&r, "out", i);
        ok(stet_observe_attach(r.tx, &r.o, &err));
        ok(stet_group_add(g, r.tx, NULL, NULL, &err));
    }
    ok(stet_group_flush(g, &err));
    stet_group_end(g);
    stet_action_record *old;
    assert_int_equal(past("x", &old), 2);
    assert_int_equal(record_on("", "x").observed_at, 3);
    assert_int_equal(old[0].observed_at, 2);
    assert_int_equal(old[1].observed_at, 1);
}

static void gc_takes_what_is_beyond_the_setting_or_of_an_earlier_generation(void **state) {
    (void)state;
    stet_observe_keep(a, 10);
    for (int i = 0; i < 5; i++) {
        run r = begin("", "x");
        r.o.generation = i < 2 ? 1 : 2;
        reads(&r, NULL, "in", "/value", STET_RECURSIVE);
        writes(&r, "out", i);
        commit(&r);
    }
    stet_action_record *old;
    int64_t rows;
    assert_int_equal(past("x", &old), 4);
    ok(stet_observe_gc(a, &(stet_observe_gc_opts){.dry_run = true}, &rows, &err));
    assert_int_equal(rows, 2); /* of the first generation: it can never be trusted again */
    assert_int_equal(past("x", &old), 4);
    ok(stet_observe_gc(a, &(stet_observe_gc_opts){0}, &rows, &err));
    assert_int_equal(rows, 2);
    assert_int_equal(past("x", &old), 2);
    stet_observe_keep(a, 2);
    ok(stet_observe_gc(a, &(stet_observe_gc_opts){0}, &rows, &err));
    assert_int_equal(rows, 1);
    stet_observe_keep(a, 1);
    ok(stet_observe_gc(a, &(stet_observe_gc_opts){0}, &rows, &err));
    assert_int_equal(past("x", &old), 0);
    assert_true(record_on("", "x").observed); /* the latest is not history */
}

static bool gone_below(void *ctx, stet_space *s, int64_t branch, const stet_action_key *key, int64_t generation) {
    assert_ptr_equal(s, a);
    assert_int_equal(branch, 0);
    assert_string_equal(key->piece, "piece");
    return strcmp(key->action, "kept") != 0 && generation < *(const int64_t *)ctx;
}

static void gc_takes_actions_of_an_earlier_generation_whose_node_is_gone(void **state) {
    (void)state;
    static const char *const names[] = {"gone", "kept", "new"};
    for (int i = 0; i < 3; i++) {
        run r = begin("", names[i]);
        r.o.generation = i == 2 ? 2 : 1;
        reads(&r, NULL, "in", "/value", STET_RECURSIVE);
        reads(&r, b, "far", "/value", STET_RECURSIVE);
        commit(&r);
    }
    int64_t rows, current = 2;
    stet_action_record rec;
    ok(stet_observe_gc(a, &(stet_observe_gc_opts){true, gone_below, &current}, &rows, &err));
    assert_int_equal(rows, 1);
    ok(stet_observe_gc(a, &(stet_observe_gc_opts){false, gone_below, &current}, &rows, &err));
    assert_int_equal(stet_observe_find(a, 0, &(stet_action_key){"piece", "", "gone"}, &arena, &rec, &err),
                     STET_NOT_FOUND);
    stet_error_clear(&err);
    assert_int_equal(state_of("kept"), STET_STATE_STANDS);
    assert_int_equal(state_of("new"), STET_STATE_STANDS);
    stet_far_reader *far;
    size_t count;
    ok(stet_observe_far_readers(b, &(stet_docname){"far", ""}, at("/value"), STET_VALUE, &arena, &far, &count, &err));
    assert_int_equal(count, 2); /* its mirror is gone too */
}

/* It comes back while gc asks about it: another program has a node of that name. */
static bool gone_and_back(void *ctx, stet_space *s, int64_t branch, const stet_action_key *key, int64_t generation) {
    (void)branch, (void)key, (void)generation;
    assert_ptr_equal(s, a);
    stet_space *mine = a;
    a = ctx;
    run r = begin("", "x");
    r.o.generation = 2;
    reads(&r, NULL, "in", "/value", STET_RECURSIVE);
    writes(&r, "out", 2);
    commit(&r);
    a = mine;
    return true;
}

static void gc_leaves_an_action_that_is_observed_again_meanwhile(void **state) {
    (void)state;
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    stet_space *other = space_named("a");
    int64_t rows;
    ok(stet_observe_gc(a, &(stet_observe_gc_opts){false, gone_and_back, other}, &rows, &err));
    assert_int_equal(rows, 0);
    assert_int_equal(record_on("", "x").generation, 2);
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
    stet_space_close(other);
}

static void runs_are_counted_by_what_was_known_against_the_action(void **state) {
    (void)state;
    set(a, "", "in", "1");
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1); /* never ran */
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 2); /* stood: asked for */
    set(a, "", "in", "2");
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 3); /* changed */
    set(a, "", "out", "7");
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 4); /* overwritten */
    stet_action_key key = {"piece", "", "x"};
    ok(stet_observe_distrust(a, 0, &key, 1, STET_REASON_IMPLEMENTATION, &err));
    reopen();              /* the reason is read back */
    set(a, "", "in", "3"); /* unknown stays unknown, for its reason */
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 5);
    stet_observe_stats st;
    ok(stet_observe_stat(a, &st, &err));
    assert_int_equal(st.runs[STET_REASON_NEVER], 1);
    assert_int_equal(st.runs[STET_REASON_NONE], 1);
    assert_int_equal(st.runs[STET_REASON_CHANGED], 1);
    assert_int_equal(st.runs[STET_REASON_OVERWRITTEN], 1);
    assert_int_equal(st.runs[STET_REASON_IMPLEMENTATION], 1);
    assert_int_equal(st.handle.runs[STET_REASON_IMPLEMENTATION], 1); /* of this handle, since it was opened */
    assert_int_equal(st.handle.runs[STET_REASON_NEVER], 0);
    assert_int_equal(st.handle.stored, 1);
    assert_true(st.handle.bytes > 0);
    stet_value v = stet_observe_stats_value(&st);
    char *text = stet_json_print(stet_value_get(v, "runsByCause"), STET_JSON_CANONICAL, NULL);
    assert_string_equal(text, "{\"asked\":1,\"changed\":1,\"implementation\":1,\"never\":1,\"overwritten\":1}");
    stet_free(text);
    stet_value_release(v);
}

/* A change in another space that this handle finds out about by itself, because nobody told it. */
static void a_run_for_a_change_in_another_space_is_counted_as_that(void **state) {
    (void)state;
    cross("x", 1); /* never ran */
    stet_observe_switch(b, false);
    set(b, "", "far", "2");
    stet_observe_switch(b, true);
    ok(stet_observe_catch_up(a, &err));
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
    cross("x", 2);
    stet_observe_stats st;
    ok(stet_observe_stat(a, &st, &err));
    assert_int_equal(st.runs[STET_REASON_NEVER], 1);
    assert_int_equal(st.runs[STET_REASON_CHANGED], 1);
    assert_int_equal(st.runs[STET_REASON_NONE], 0);
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
}

/* The same, fetched by the owner: it has the action in memory, with the reason of an older mark. */
static void a_run_for_a_change_that_was_fetched_is_counted_as_that(void **state) {
    (void)state;
    cross("x", 1); /* never ran */
    stet_action_key key = {"piece", "", "x"};
    ok(stet_observe_distrust(a, 0, &key, 1, STET_REASON_IMPLEMENTATION, &err));
    cross("x", 2);
    sql(b, "UPDATE mirror_owner SET name = 'nowhere'"); /* the push will not reach */
    set(b, "", "far", "2");
    sql(b, "UPDATE mirror_owner SET name = 'a'");
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
    cross("x", 3);
    stet_observe_stats st;
    ok(stet_observe_stat(a, &st, &err));
    assert_int_equal(st.runs[STET_REASON_NEVER], 1);
    assert_int_equal(st.runs[STET_REASON_IMPLEMENTATION], 1);
    assert_int_equal(st.runs[STET_REASON_CHANGED], 1);
}

static void a_run_that_is_not_stored_is_not_counted(void **state) {
    (void)state;
    set(a, "", "in", "1");
    run r = begin("", "x");
    reads(&r, NULL, "in", "/value", STET_RECURSIVE);
    writes(&r, "out", 1);
    set(a, "", "in", "2");
    ok(stet_observe_attach(r.tx, &r.o, &err));
    assert_int_equal(stet_tx_commit(r.tx, NULL, &err), STET_CONFLICT);
    stet_error_clear(&err);
    stet_observe_stats st;
    ok(stet_observe_stat(a, &st, &err));
    assert_int_equal(st.runs[STET_REASON_NEVER], 0);
    assert_int_equal(st.handle.stored, 0);
}

static void what_was_left_standing_is_counted_by_those_who_ran_something(void **state) {
    (void)state;
    stet_observe_stood(a, 5); /* and it runs nothing */
    reopen();
    stet_observe_stats st;
    ok(stet_observe_stat(a, &st, &err));
    assert_int_equal(st.stood, 0);
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    stet_observe_stood(a, 7);
    reopen();
    ok(stet_observe_stat(a, &st, &err));
    assert_int_equal(st.stood, 7);
}

static void the_number_kept_is_a_setting_of_the_project(void **state) {
    (void)state;
    const struct {
        const char *text;
        bool good;
    } rows[] = {{"[scheduler]\nkeep_observations = 2\n", true},
                {"[scheduler]\nkeep_observations = 0\n", false},
                {"[scheduler]\nkeep_observations = 1001\n", false},
                {"[scheduler]\nkeep_observations = \"2\"\n", false}};
    bool created;
    ok(stet_project_init("project", &created, &err));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = stet_asprintf("version = 1\n%s", rows[i].text);
        ok(stet_file_replace("project/.stet/config.toml", text, strlen(text), 0644, &err));
        stet_free(text);
        stet_project *p;
        stet_space *s = NULL;
        ok(stet_project_open("project", &p, &err));
        stet_status st = stet_space_open(p, "main", 0, &s, &err);
        assert_int_equal(st, rows[i].good ? STET_OK : STET_INVALID);
        if (st != STET_OK)
            assert_non_null(strstr(err.message, "keep_observations"));
        stet_error_clear(&err);
        if (s) {
            for (int n = 0; n < 5; n++) {
                stet_tx *tx;
                stet_observation o = {.key = {"piece", "", "x"},
                                      .kind = STET_ACTION_COMPUTATION,
                                      .generation = 1,
                                      .run = STET_RUN_ACTION};
                ok(stet_tx_begin(s, "", &tx, &err));
                ok(stet_tx_set(tx, "out", NULL, stet_value_int(n), &err));
                ok(stet_observe_attach(tx, &o, &err));
                ok(stet_tx_commit(tx, NULL, &err));
            }
            stet_observe_stats stats;
            ok(stet_observe_stat(s, &stats, &err));
            assert_int_equal(stats.past_rows, 1);
        }
        stet_space_close(s);
        stet_project_close(p);
    }
    ok(stet_file_remove_tree("project", &err));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        test(by_default_the_latest_observation_alone_is_kept),
        test(as_many_observations_are_kept_as_the_setting_says),
        test(two_runs_in_one_group_are_two_observations),
        test(gc_takes_what_is_beyond_the_setting_or_of_an_earlier_generation),
        test(gc_takes_actions_of_an_earlier_generation_whose_node_is_gone),
        test(gc_leaves_an_action_that_is_observed_again_meanwhile),
        test(runs_are_counted_by_what_was_known_against_the_action),
        test(a_run_for_a_change_in_another_space_is_counted_as_that),
        test(a_run_for_a_change_that_was_fetched_is_counted_as_that),
        test(a_run_that_is_not_stored_is_not_counted),
        test(what_was_left_standing_is_counted_by_those_who_ran_something),
        test(the_number_kept_is_a_setting_of_the_project),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
