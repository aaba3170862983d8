/* observe_repair.c - what crashes, older copies, other processes, damaged rows and late looks leave behind.
 *
 * Tests how it is put right. Each test is named after what must hold.
 */

#include "observe_kit.h"

#include "os/clock.h"

static void a_push_does_not_hide_an_older_one_that_a_crash_left_undone(void **state) {
    (void)state;
    cross_from("x", "far", "out", 1);
    cross_from("y", "other", "out2", 1);
    set(b, "", "far", "1");
    sql(b, "UPDATE mirror_owner SET pushed = 0"); /* the process died before it pushed */
    sql(a, "DELETE FROM mark");
    set(b, "", "other", "1"); /* the next commit pushes its own mark */
    assert_int_equal(stet_db_int(stet_space_db(a), "SELECT count(*) FROM mark", -1), 1);
    reopen();
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
    assert_int_equal(state_of("y"), STET_STATE_DIRTY);
    assert_int_equal(stet_db_int(stet_space_db(b), "SELECT pending - pushed FROM mirror_owner", -1), 0);
}

static void commits_of_a_read_space_that_nobody_looked_at_are_looked_at_by_the_owner(void **state) {
    (void)state;
    stet_observe_debt debt;
    cross("x", 1);
    ok(stet_observe_owed(a, &debt, &err));
    assert_int_equal(debt.commits + debt.spaces, 0);
    stet_observe_switch(b, false);
    set(b, "", "far", "1");
    stet_observe_switch(b, true);
    ok(stet_observe_owed(a, &debt, &err));
    assert_int_equal(debt.commits, 0);
    assert_int_equal(debt.spaces, 1);
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
    ok(stet_observe_owed(a, &debt, &err));
    assert_int_equal(debt.spaces, 0);
}

static void a_late_look_does_not_move_what_is_pending_backwards(void **state) {
    (void)state;
    cross_from("x", "far", "out", 1);
    cross_from("y", "other", "out2", 1);
    stet_observe_switch(b, false);
    set(b, "", "far", "1");
    stet_observe_switch(b, true);
    set(b, "", "other", "1");                           /* pushed, and above the commit that was not looked at */
    sql(b, "UPDATE mirror_owner SET name = 'nowhere'"); /* the push after the late look will not reach */
    ok(stet_observe_catch_up(b, &err));
    sql(b, "UPDATE mirror_owner SET name = 'a'");
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
    assert_int_equal(state_of("y"), STET_STATE_DIRTY);
}

static void a_push_does_not_wait_for_a_lock_of_its_own_process(void **state) {
    (void)state;
    cross("x", 1);
    ok(stet_db_begin_write(stet_space_db(a), &err));
    int64_t start = stet_clock_monotonic_us();
    set(b, "", "far", "1");
    assert_true(stet_clock_monotonic_us() - start < 5000000);
    stet_db_rollback(stet_space_db(a));
    assert_int_equal(state_of("x"), STET_STATE_DIRTY); /* fetched */
}

static void mirrors_of_a_space_under_an_old_name_are_not_taken_from_the_new_one(void **state) {
    (void)state;
    cross("x", 1);
    stet_space_close(b);
    stet_space_close(a);
    ok(stet_file_remove("b.db", &err));
    ok(stet_file_remove("b.db-wal", &err));
    ok(stet_file_remove("b.db-shm", &err));
    b = space_named("b");
    a = space_named("a");
    assert_int_equal(state_of("x"), STET_STATE_UNKNOWN);
    cross("x", 2); /* reads the new one, and leaves the old one */
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
    set(b, "", "far", "1");
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
}

static void a_mark_newer_than_a_restored_space_does_not_outlive_the_next_run(void **state) {
    (void)state;
    set(b, "", "far", "1");
    cross("x", 1);
    back_up_b();
    for (int i = 2; i < 9; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        set(b, "", "far", text);
    }
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
    restore_b();
    assert_int_equal(state_of("x"), STET_STATE_UNKNOWN);
    cross("x", 2);
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
}

/* Its sequences have passed those that were read before: the numbers are those of another history. */
static void a_restored_backup_that_has_gone_on_is_known_by_its_stamp(void **state) {
    (void)state;
    set(b, "", "far", "1");
    back_up_b();
    set(b, "", "far", "2");
    cross("x", 1);
    cross_from("w", "far", "out-w", 1);
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
    restore_b();
    for (int i = 0; i < 9; i++)
        set(b, "", "elsewhere", i % 2 ? "1" : "2");
    assert_int_equal(record_on("", "x").cause.reason, STET_REASON_RESTORED);
    assert_int_equal(record_on("", "w").cause.reason, STET_REASON_RESTORED);
}

static void a_run_that_makes_the_stamps_equal_again_does_not_hide_that_they_differed(void **state) {
    (void)state;
    cross_from("x", "other", "out-x", 1);
    set(b, "", "far", "1");
    back_up_b();
    set(b, "", "far", "2");
    cross_from("w", "far", "out-w", 1);
    restore_b();
    for (int i = 0; i < 9; i++)
        set(b, "", "elsewhere", i % 2 ? "1" : "2");
    cross_from("x", "other", "out-x", 2); /* before anybody has looked */
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
    assert_int_equal(record_on("", "w").cause.reason, STET_REASON_RESTORED);
}

static void a_mark_that_is_newer_than_what_a_run_saw_stays(void **state) {
    (void)state;
    char text[512];
    cross("x", 1);
    set(b, "", "far", "1");
    sql(a, "UPDATE mark SET seq = 1000");
    reopen();
    cross("x", 2);
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
    assert_int_equal(problems_of(a, true, text), 1); /* and that it can't be is found */
    cross("x", 3);
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
}

static void a_stale_run_over_two_spaces_that_changed_nothing_is_dropped_without_an_error(void **state) {
    (void)state;
    cross("x", 1);
    set(b, "", "far", "1");
    run r = begin("", "x");
    reads(&r, b, "far", "/value", STET_RECURSIVE);
    declares(&r, "out", "/value");
    writes(&r, "out", 1);
    set(b, "", "far", "2");
    commit(&r);
    stet_observe_stats st;
    ok(stet_observe_stat(a, &st, &err));
    assert_int_equal(st.handle.dropped_noops, 1);
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
}

static void a_read_through_a_handle_that_can_not_write_is_never_called_standing(void **state) {
    (void)state;
    set(b, "", "far", "1");
    stet_space *ro;
    ok(stet_space_open_path("b.db", "b", STET_SPACE_READ_ONLY, &ro, &err));
    run r = begin("", "x");
    reads(&r, ro, "far", "/value", STET_RECURSIVE);
    writes(&r, "out", 1);
    commit(&r);
    stet_space_close(ro);
    stet_action_record rec = record_on("", "x");
    assert_int_equal(rec.cause.state, STET_STATE_UNKNOWN);
    assert_int_equal(rec.cause.reason, STET_REASON_LOST);
}

static void many_reads_of_one_document_of_another_space_collapse_too(void **state) {
    (void)state;
    run r = begin("", "x");
    for (int i = 0; i < 65; i++) {
        char pointer[32];
        snprintf(pointer, sizeof pointer, "/value/rows/%d", i);
        reads(&r, b, "far", pointer, STET_SHALLOW);
    }
    writes(&r, "out", 1);
    commit(&r);
    stet_action_record rec = record_on("", "x");
    assert_int_equal(rec.read_count, 1);
    assert_string_equal(rec.reads[0].space, stet_space_uuid(b));
    assert_int_equal(stet_path_compare(rec.reads[0].path, at("/value/rows")), 0);
    set(b, "", "far/rows", "[1]");
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
}

static void a_run_that_saw_a_commit_is_not_dirtied_by_a_late_look_at_it(void **state) {
    (void)state;
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    run_simple("y", "in", "/value", STET_RECURSIVE, "out2", 1);
    stet_observe_switch(a, false);
    set(a, "", "in", "1");
    stet_observe_switch(a, true);
    stet_observe_debt debt;
    ok(stet_observe_owed(a, &debt, &err));
    assert_int_equal(debt.commits, 1);
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 2); /* before anybody has looked */
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
    assert_int_equal(state_of("y"), STET_STATE_DIRTY);
}

static void check_knows_that_marks_above_the_last_look_may_be_there(void **state) {
    (void)state;
    char text[512];
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    run_simple("y", "in2", "/value", STET_RECURSIVE, "out2", 1);
    stet_observe_switch(a, false);
    set(a, "", "in2", "1");
    stet_observe_switch(a, true);
    set(a, "", "in", "1"); /* marked at once, though an older commit is still to be looked at */
    assert_int_equal(problems_of(a, false, text), 0);
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
    assert_int_equal(state_of("y"), STET_STATE_DIRTY);
}

/* The last word about an index row counts, also when another document became too wide for memory in between. */
static void the_last_of_two_runs_in_a_group_decides_its_rows(void **state) {
    (void)state;
    stet_group *g;
    ok(stet_group_begin(a, "", &g, &err));
    for (int i = 0; i < 140; i++) {
        char key[16], pointer[32];
        bool mine = i == 120 || i == 139;
        snprintf(key, sizeof key, "n%d", i);
        snprintf(pointer, sizeof pointer, "/value/k%d", i);
        run r = {.o = {.key = {"piece", "", mine ? "x" : key},
                       .kind = STET_ACTION_COMPUTATION,
                       .generation = 1,
                       .run = STET_RUN_ACTION}};
        ok(stet_tx_begin_in(g, &r.tx, &err));
        reads(&r, NULL, i == 120 ? "first" : i == 139 ? "second" : "wide", mine ? "/value" : pointer, STET_RECURSIVE);
        ok(stet_observe_attach(r.tx, &r.o, &err));
        ok(stet_group_add(g, r.tx, NULL, NULL, &err));
    }
    ok(stet_group_flush(g, &err));
    stet_group_end(g);
    reopen();
    set(a, "", "first", "1");
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
    set(a, "", "second", "1");
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
}

static void add_reader(stet_group *g, const char *action, const char *id, const char *pointer) {
    run r = {
        .o = {.key = {"piece", "", action}, .kind = STET_ACTION_COMPUTATION, .generation = 1, .run = STET_RUN_ACTION}};
    ok(stet_tx_begin_in(g, &r.tx, &err));
    reads(&r, NULL, id, pointer, STET_RECURSIVE);
    ok(stet_observe_attach(r.tx, &r.o, &err));
    ok(stet_group_add(g, r.tx, NULL, NULL, &err));
}

static void add_edit(stet_group *g, const char *cell, int64_t n) {
    stet_tx *tx;
    ok(stet_tx_begin_in(g, &tx, &err));
    ok(stet_tx_set(tx, cell, NULL, stet_value_int(n), &err));
    ok(stet_group_add(g, tx, NULL, NULL, &err));
}

/* Rows of a document with many readers wait for the end of the transaction like others; a question that comes before is
 * answered as if they were there, and those taken away were not. */
static void many_readers_are_found_and_lost_inside_one_group(void **state) {
    (void)state;
    set(a, "", "wide/k", "0"); /* it is there, so that a new member of it touches nobody else */
    set(a, "", "wide/k7", "0");
    set(a, "", "wide/k8", "0");
    set(a, "", "wide/k9", "0");
    stet_group *g;
    ok(stet_group_begin(a, "", &g, &err));
    for (int i = 0; i < 200; i++) {
        char key[16], pointer[32];
        snprintf(key, sizeof key, "n%d", i);
        snprintf(pointer, sizeof pointer, "/value/k%d", i);
        add_reader(g, key, "wide", pointer);
    }
    add_edit(g, "wide/k7", 1);
    add_edit(g, "wide/k9", 1);
    add_reader(g, "n7", "other", "/value"); /* does not read it any more */
    add_reader(g, "n9", "wide", "/value/k9");
    add_edit(g, "wide/k7", 2);
    add_edit(g, "wide/k8", 2);
    add_reader(g, "late", "wide", "/value/k8");
    ok(stet_group_flush(g, &err));
    stet_group_end(g);
    for (int i = 0; i < 2; i++) {
        stet_observe_stats st;
        ok(stet_observe_stat(a, &st, &err));
        assert_int_equal(st.dirty, 1);
        assert_int_equal(st.unknown, 0);
        assert_int_equal(st.read_rows, 201);
        assert_int_equal(state_of("n8"), STET_STATE_DIRTY);
        reopen();
    }
    set(a, "", "wide/k8", "3");
    set(a, "", "wide/k7", "3");
    assert_int_equal(state_of("late"), STET_STATE_DIRTY);
    assert_int_equal(state_of("n7"), STET_STATE_STANDS);
}

static void what_a_run_made_unknown_is_not_softened_by_a_change_in_the_same_group(void **state) {
    (void)state;
    static const char *const made[] = {"x"};
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    stet_group *g;
    ok(stet_group_begin(a, "", &g, &err));
    run r = {.o = {.key = {"piece", "", "maker"},
                   .kind = STET_ACTION_COMPUTATION,
                   .generation = 1,
                   .run = STET_RUN_ACTION,
                   .made = made,
                   .made_count = 1}};
    ok(stet_tx_begin_in(g, &r.tx, &err));
    ok(stet_observe_attach(r.tx, &r.o, &err));
    ok(stet_group_add(g, r.tx, NULL, NULL, &err));
    add_edit(g, "in", 2);
    ok(stet_group_flush(g, &err));
    stet_group_end(g);
    assert_int_equal(record_on("", "x").cause.reason, STET_REASON_NEVER);
    assert_int_equal(state_of("x"), STET_STATE_UNKNOWN);
}

static void a_failed_transaction_leaves_no_numbers_behind(void **state) {
    (void)state;
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    stet_action_key key = {"new piece", "", "x"};
    ok(stet_db_begin_write(stet_space_db(a), &err));
    ok(stet_observe_distrust(a, 0, &key, 1, STET_REASON_NEVER, &err));
    stet_db_rollback(stet_space_db(a));
    stet_observe_done(a, false);
    set(a, "", "another", "1"); /* might get the number that was given and is not stored */
    run r = begin("", "x");
    r.o.key.piece = "new piece";
    reads(&r, NULL, "another", "/value", STET_RECURSIVE);
    writes(&r, "out2", 1);
    commit(&r);
    stet_action_record rec;
    ok(stet_observe_find(a, 0, &key, &arena, &rec, &err));
    assert_string_equal(rec.key.piece, "new piece");
    assert_string_equal(rec.reads[0].name.id, "another");
}

static void a_number_given_again_after_forgetting_takes_nothing_over(void **state) {
    (void)state;
    cross("x", 1);
    stet_action_key key = {"piece", "", "x"};
    int64_t was = record_on("", "x").action;
    ok(stet_observe_forget(a, 0, "piece", "", &key, 1, &err));
    run_simple("y", "in", "/value", STET_RECURSIVE, "out2", 1);
    assert_int_equal(record_on("", "y").action, was);
    set(b, "", "far", "1");
    set(a, "", "near", "1");
    assert_int_equal(state_of("y"), STET_STATE_STANDS);
}

static void a_run_after_a_damaged_observation_is_indexed_whole(void **state) {
    (void)state;
    char text[512];
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    /* The sections are where they should be, and the first does not unpack: a length beyond its end. */
    sql(a, "UPDATE action SET observation = x'01050101000002FF7F000000000000000000'");
    reopen();
    assert_int_equal(state_of("x"), STET_STATE_UNKNOWN);
    assert_true(problems_of(a, true, text) > 0);
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 2);
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
    set(a, "", "in", "1");
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
}

static void a_damaged_mark_counts_as_unknown(void **state) {
    (void)state;
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    set(a, "", "in", "1");
    sql(a, "UPDATE mark SET state = 77, reason = 4000, path = x'01', kind = 9");
    reopen();
    stet_action_record rec = record_on("", "x");
    assert_int_equal(rec.cause.state, STET_STATE_UNKNOWN);
    assert_string_equal(stet_action_state_name(rec.cause.state), "unknown");
    assert_string_equal(stet_action_state_name((stet_action_state)77), "unknown");
    stet_marked *marks;
    size_t count;
    ok(stet_observe_marks(a, 0, NULL, NULL, &arena, &marks, &count, &err));
    assert_int_equal(count, 1);
    assert_int_equal(marks[0].state, STET_STATE_UNKNOWN);
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 2);
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
}

static void a_name_of_a_space_that_is_a_path_opens_nothing(void **state) {
    (void)state;
    cross("x", 1);
    sql(a, "UPDATE foreign_space SET name = '../b'");
    sql(b, "UPDATE mirror_owner SET name = '../a'");
    reopen();
    assert_int_equal(state_of("x"), STET_STATE_UNKNOWN);
    set(b, "", "far", "1");
    cross("x", 2);
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
}

static void check_finds_a_mark_that_another_space_should_have_set(void **state) {
    (void)state;
    char text[512];
    cross("x", 1);
    set(b, "", "far", "1");
    sql(a, "DELETE FROM mark");
    assert_int_equal(problems_of(a, false, text), 1);
    assert_non_null(strstr(text, "another space"));
    problems_of(a, true, text);
    assert_int_equal(record_on("", "x").cause.reason, STET_REASON_REPAIRED);
    cross("x", 2);
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
}

static void check_finds_a_mark_from_another_space_without_a_cause(void **state) {
    (void)state;
    char text[512];
    cross("x", 1);
    set(b, "", "far", "1");
    sql(a, "CREATE TEMP TABLE kept AS SELECT * FROM mark");
    cross("x", 2);
    sql(a, "INSERT INTO mark SELECT * FROM kept");
    assert_int_equal(problems_of(a, false, text), 1);
    problems_of(a, true, text);
    assert_int_equal(state_of("x"), STET_STATE_UNKNOWN);
    cross("x", 3);
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
}

static void check_finds_a_mirror_that_is_missing(void **state) {
    (void)state;
    char text[512];
    cross("x", 1);
    sql(b, "DELETE FROM mirror");
    assert_int_equal(problems_of(a, false, text), 1);
    assert_non_null(strstr(text, "mirror"));
    problems_of(a, true, text);
    assert_int_equal(state_of("x"), STET_STATE_UNKNOWN);
    cross("x", 2); /* writes it again */
    set(b, "", "far", "1");
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
}

static void check_looks_at_index_rows_though_a_branch_was_deleted(void **state) {
    (void)state;
    char text[512];
    ok(stet_branch_create(a, "side", "", -1, &err));
    run r = begin("side", "x");
    reads(&r, NULL, "in", "/value", STET_RECURSIVE);
    commit(&r);
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    ok(stet_branch_delete(a, "side", &err));
    assert_int_equal(problems_of(a, false, text), 0);
    sql(a, "UPDATE place_index SET reads = 0 WHERE key < 1099511627776");
    assert_int_equal(problems_of(a, false, text), 1);
    problems_of(a, true, text);
    assert_int_equal(state_of("x"), STET_STATE_UNKNOWN);
}

static void gc_removes_mirrors_of_actions_that_no_longer_read(void **state) {
    (void)state;
    cross("x", 1);
    cross_from("y", "far", "out2", 1);
    sql(a, "DELETE FROM foreign_read WHERE action = (SELECT action FROM action WHERE name = 'y')");
    int64_t rows;
    ok(stet_observe_gc(b, &(stet_observe_gc_opts){.dry_run = true}, &rows, &err));
    assert_int_equal(rows, 1);
    ok(stet_observe_gc(b, &(stet_observe_gc_opts){.dry_run = false}, &rows, &err));
    assert_int_equal(rows, 1);
    assert_int_equal(stet_db_int(stet_space_db(b), "SELECT count(*) FROM mirror", -1), 1);
    run_simple("y", "near", "/value", STET_RECURSIVE, "out2", 2);
}

static void a_name_that_nothing_else_needs_may_go_without_damage(void **state) {
    (void)state;
    run r = begin("", "x");
    r.ignored[r.o.ignored_count++] = (stet_address){NULL, {"never written", ""}, at("/value")};
    reads(&r, NULL, "in", "/value", STET_RECURSIVE);
    commit(&r);
    run_simple("y", "in", "/value", STET_RECURSIVE, "zz", 1);
    stet_space_gc_report report;
    ok(stet_space_gc(a, false, &report, &err));
    assert_int_equal(report.documents, 1);
    reopen();
    stet_action_record rec = record_on("", "x");
    assert_true(rec.observed);
    assert_int_equal(rec.ignored_count, 0);
    assert_int_equal(rec.cause.state, STET_STATE_STANDS);
}

static void a_name_that_another_process_takes_away_gets_a_number_again(void **state) {
    (void)state;
    stet_space *other = space_named("a");
    run r = begin("", "x");
    reads(&r, NULL, "gone", "/value", STET_RECURSIVE);
    commit(&r);
    ok(stet_space_sync(a, &err)); /* the name is known to this handle */
    set(a, "", "last", "1");
    stet_action_key key = {"piece", "", "x"};
    ok(stet_observe_forget(a, 0, "piece", "", &key, 1, &err));
    stet_tx *tx;
    stet_docname gone = {"gone", ""};
    stet_value v;
    ok(stet_tx_begin(a, "", &tx, &err));
    assert_int_equal(stet_tx_read(tx, NULL, &gone, at("/value"), STET_RECURSIVE, &v, &err), STET_NOT_FOUND);
    stet_error_clear(&err);
    stet_space_gc_report report;
    ok(stet_space_gc(other, false, &report, &err));
    assert_true(report.documents > 0);
    ok(stet_tx_set(tx, "gone", NULL, stet_value_int(1), &err));
    ok(stet_tx_commit(tx, NULL, &err));
    stet_space_close(other);
    reopen();
    stet_doc_state d;
    ok(stet_space_load(a, 0, &gone, -1, &d, &err));
    assert_true(d.exists);
    stet_value_release(d.value);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        test(a_push_does_not_hide_an_older_one_that_a_crash_left_undone),
        test(commits_of_a_read_space_that_nobody_looked_at_are_looked_at_by_the_owner),
        test(a_late_look_does_not_move_what_is_pending_backwards),
        test(a_push_does_not_wait_for_a_lock_of_its_own_process),
        test(mirrors_of_a_space_under_an_old_name_are_not_taken_from_the_new_one),
        test(a_mark_newer_than_a_restored_space_does_not_outlive_the_next_run),
        test(a_restored_backup_that_has_gone_on_is_known_by_its_stamp),
        test(a_run_that_makes_the_stamps_equal_again_does_not_hide_that_they_differed),
        test(a_mark_that_is_newer_than_what_a_run_saw_stays),
        test(a_stale_run_over_two_spaces_that_changed_nothing_is_dropped_without_an_error),
        test(a_read_through_a_handle_that_can_not_write_is_never_called_standing),
        test(many_reads_of_one_document_of_another_space_collapse_too),
        test(a_run_that_saw_a_commit_is_not_dirtied_by_a_late_look_at_it),
        test(check_knows_that_marks_above_the_last_look_may_be_there),
        test(the_last_of_two_runs_in_a_group_decides_its_rows),
        test(many_readers_are_found_and_lost_inside_one_group),
        test(what_a_run_made_unknown_is_not_softened_by_a_change_in_the_same_group),
        test(a_failed_transaction_leaves_no_numbers_behind),
        test(a_number_given_again_after_forgetting_takes_nothing_over),
        test(a_run_after_a_damaged_observation_is_indexed_whole),
        test(a_damaged_mark_counts_as_unknown),
        test(a_name_of_a_space_that_is_a_path_opens_nothing),
        test(check_finds_a_mark_that_another_space_should_have_set),
        test(check_finds_a_mark_from_another_space_without_a_cause),
        test(check_finds_a_mirror_that_is_missing),
        test(check_looks_at_index_rows_though_a_branch_was_deleted),
        test(gc_removes_mirrors_of_actions_that_no_longer_read),
        test(a_name_that_nothing_else_needs_may_go_without_damage),
        test(a_name_that_another_process_takes_away_gets_a_number_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
