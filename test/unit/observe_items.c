/* observe_items.c - what must hold for observations, item by item, and the test that tries to break it.
 *
 * A test without a file is in this file or in unit/observe.c; the others are named with theirs.
 */

/* clang-format off */
/*
 * Invariants
 *   an observation is used only for the action that it names, by piece, branch, scope and own name
 *       two_uses_of_one_function_never_share_a_row, scope_is_part_of_identity, branch_is_part_of_identity,
 *       an_observation_keeps_identity_and_fingerprints
 *   and only if code, schema, runtime (with the mode of the scheduler), generation and bindings are those of the action
 *       an_action_of_other_code_runtime_or_schema_is_unknown;
 *       unit/sched: changed_program_reuses_what_is_the_same,
 *       unit/sched_window: another_runtime_makes_everything_unknown
 *   an action stands only if no later change overlaps a recursive or shallow read
 *       a_recursive_read_stands_until_an_overlapping_write, a_shallow_read_stands_while_the_key_set_does;
 *       property/observe, property/observe_processes
 *   a missing or damaged observation is never clean
 *       a_missing_observation_is_never_clean, a_damaged_observation_is_never_clean; unit/observe_damage
 *   writes are wider than what is certain, never narrower
 *       a_write_inside_a_declared_output_owns_the_whole_output,
 *       many_reads_of_one_document_collapse_to_their_common_prefix,
 *       known_writes_are_the_precise_ones_else_the_previous_else_the_declared
 *   an observation is atomic with the commit whose writes it describes
 *       an_observation_is_stored_with_its_commit_or_not_at_all; crash/observe
 *   an observation that can't be stored never fails the data
 *       fault/observe: a_failing_statement_of_an_observation_does_not_fail_the_data
 *   mirrors are there before the owner's observation, and what a crash left is repaired
 *       a_mark_that_was_not_pushed_is_fetched_by_the_owner; crash/observe, unit/observe_repair
 *   an observation of a run that changed nothing has the head and the sequences that it saw
 *       a_no_op_records_the_head_and_the_sequences_it_saw
 *   every committed change is in the marks before anything is called standing
 *       with_the_switch_off_nothing_is_stored_and_later_commits_are_looked_at;
 *       fault/observe: a_failing_statement_of_a_group_harms_nobody
 *   changes by nobody's action count as well
 *       a_commit_by_nobody_in_particular_dirties_readers
 *   a read of another space is held against that space's own sequence
 *       only_the_space_that_changed_counts
 *   a reader is found though its piece does not run
 *       a_piece_that_does_not_run_is_found_dirty_when_it_starts, a_piece_is_dirtied_by_another_piece
 *   the branch is part of every key; fork and deletion prove nothing
 *       branch_is_part_of_identity, a_branch_that_is_made_again_under_its_name_knows_nothing,
 *       gc_removes_actions_of_deleted_pieces_and_branches
 *   attempted writes are no evidence
 *       an_attempted_write_never_enters
 *
 * Observations
 *   built from the transaction: recursive and shallow reads, changed, declared, known, ignored writes, envelopes
 *       unit/observe_api: a_commit_carries_its_observation
 *   an aborted transaction leaves none
 *       an_observation_is_stored_with_its_commit_or_not_at_all
 *   a run that changed nothing makes no revision, notifies nobody, and is durable
 *       a_no_op_makes_no_revision_notifies_nobody_and_is_durable
 *   in a batch each is kept or dropped on its own; a stale one without an error; a data write flushes before itself
 *       a_no_op_that_is_stale_is_dropped_without_an_error, a_data_write_flushes_the_batch_before_it
 *   the same batch again changes nothing
 *       a_no_op_sent_again_in_its_session_is_stored_once
 *   only dependencies collected: reads are known, nothing is published
 *       collecting_dependencies_publishes_nothing_and_calls_nothing_standing
 *   history and counts
 *       unit/observe_history
 *
 * After a restart
 *   clean computations need not run
 *       unit/sched: clean_piece_restarts_with_zero_runs
 *   an unrelated write dirties nothing, an overlapping one exactly the chain
 *       after_a_restart_an_overlapping_write_dirties_exactly_the_chain
 *   a condition that turned
 *       when_a_condition_turns_the_branch_not_taken_no_longer_counts
 *   dependencies changed and the output did not
 *       a_no_op_whose_dependencies_changed_is_indexed_anew
 *   a materializer: promoted by demand, precise by what it changed
 *       after_a_restart_a_materializer_is_found_by_demand_and_dirties_what_it_changed,
 *       a_materializer_has_three_write_surfaces_and_fans_out_through_two
 *   a write in a space dirties an action of another
 *       a_write_in_a_space_that_was_read_dirties_the_owner
 *   memory and scheduler judge overlap alike
 *       one function for both; property/change
 *   large clean start, few dirty, broad materializer
 *       bench/observe, bench/sched */
/* clang-format on */
#include "observe_kit.h"

static stet_action_state stale_state(const char *action) {
    stet_action_state state;
    ok(stet_observe_state(a, 0, record_on("", action).action, &state, NULL, &err));
    return state;
}

/* Two rows of a list, two uses of one function: same code, same document, other names. */
static void two_uses_of_one_function_never_share_a_row(void **state) {
    (void)state;
    run_simple("f(1)", "in", "/value/one", STET_RECURSIVE, "o1", 1);
    run_simple("f(2)", "in", "/value/two", STET_RECURSIVE, "o2", 1);
    assert_int_not_equal(record_on("", "f(1)").action, record_on("", "f(2)").action);
    set(a, "", "in", "{}");
    run_simple("f(1)", "in", "/value/one", STET_RECURSIVE, "o1", 1);
    run_simple("f(2)", "in", "/value/two", STET_RECURSIVE, "o2", 1);
    set(a, "", "in/two", "7");
    assert_int_equal(state_of("f(1)"), STET_STATE_STANDS);
    assert_int_equal(state_of("f(2)"), STET_STATE_DIRTY);
}

static void a_piece_that_does_not_run_is_found_dirty_when_it_starts(void **state) {
    (void)state;
    run r = begin("", "y");
    r.o.key.piece = "sleeping";
    reads(&r, NULL, "shared", "/value", STET_RECURSIVE);
    writes(&r, "end", 1);
    commit(&r);
    stet_space_close(a); /* nobody has the piece open; another handle writes */
    a = space_named("a");
    run_simple("x", "in", "/value", STET_RECURSIVE, "shared", 2);
    reopen();
    stet_marked *marks;
    size_t count;
    ok(stet_observe_catch_up(a, &err));
    ok(stet_observe_marks(a, 0, "sleeping", "", &arena, &marks, &count, &err));
    assert_int_equal(count, 1);
    assert_int_equal(marks[0].state, STET_STATE_DIRTY);
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
}

static void a_branch_that_is_made_again_under_its_name_knows_nothing(void **state) {
    (void)state;
    set(a, "", "in", "1");
    ok(stet_branch_create(a, "side", "", -1, &err));
    run r = begin("side", "x");
    reads(&r, NULL, "in", "/value", STET_RECURSIVE);
    commit(&r);
    assert_int_equal(record_on("side", "x").cause.state, STET_STATE_STANDS);
    ok(stet_branch_delete(a, "side", &err));
    ok(stet_branch_create(a, "side", "", -1, &err));
    int64_t number;
    stet_action_record rec;
    ok(stet_space_branch(a, "side", &number, &err));
    assert_int_equal(stet_observe_find(a, number, &(stet_action_key){"piece", "", "x"}, &arena, &rec, &err),
                     STET_NOT_FOUND);
    stet_error_clear(&err);
}

static void a_no_op_makes_no_revision_notifies_nobody_and_is_durable(void **state) {
    (void)state;
    set(a, "", "in", "1");
    set(a, "", "out", "5");
    int64_t before, after;
    ok(stet_space_seq(a, &before, &err));
    stet_space *listener = space_named("a");
    stet_follower *f;
    stet_value event;
    ok(stet_space_follow(listener, NULL, NULL, NULL, -1, &f, &err));
    assert_false(run_simple("x", "in", "/value", STET_RECURSIVE, "out", 5).changed);
    ok(stet_space_sync(a, &err));
    assert_int_equal(stet_follower_next(f, 50, &event, &err), STET_BUSY);
    stet_error_clear(&err);
    ok(stet_space_seq(a, &after, &err));
    assert_int_equal(after, before);
    stet_action_record rec;
    ok(stet_observe_find(listener, 0, &(stet_action_key){"piece", "", "x"}, &arena, &rec, &err)); /* another handle */
    assert_true(rec.observed);
    set(a, "", "in", "2");
    ok(stet_follower_next(f, 5000, &event, &err)); /* and a change is heard */
    stet_value_release(event);
    stet_follower_close(f);
    stet_space_close(listener);
}

/* A commit with nothing but an observation, which names its session: the second is answered like the first, and what
 * came in between is not undone by it. */
static void a_no_op_sent_again_in_its_session_is_stored_once(void **state) {
    (void)state;
    stet_commit_result result;
    set(a, "", "in", "1");
    for (int i = 0; i < 3; i++) {
        run r = begin("", "x");
        reads(&r, NULL, i == 2 ? "other" : "in", "/value", STET_RECURSIVE);
        ok(stet_tx_session(r.tx, "device", 1, &err));
        if (i == 2) { /* another observation under the same number */
            ok(stet_observe_attach(r.tx, &r.o, &err));
            assert_int_equal(stet_tx_commit(r.tx, &result, &err), STET_CONFLICT);
            stet_error_clear(&err);
            continue;
        }
        result = commit(&r);
        assert_false(result.changed);
        assert_int_equal(result.replayed, i == 1);
        assert_int_equal(result.seq, 1);
        if (i == 0)
            set(a, "", "in", "2");
    }
    stet_action_record rec = record_on("", "x");
    assert_string_equal(rec.reads[0].name.id, "in");
    assert_int_equal(rec.cause.state, STET_STATE_DIRTY);
}

static void after_a_restart_an_overlapping_write_dirties_exactly_the_chain(void **state) {
    (void)state;
    set(a, "", "in", "{\"left\":1,\"right\":1}");
    run_simple("left", "in", "/value/left", STET_RECURSIVE, "l", 1);
    run_simple("right", "in", "/value/right", STET_RECURSIVE, "r", 1);
    run_simple("left2", "l", "/value", STET_RECURSIVE, "l2", 1);
    run_simple("left3", "l2", "/value", STET_RECURSIVE, "l3", 1);
    run_simple("right2", "r", "/value", STET_RECURSIVE, "r2", 1);
    reopen();
    set(a, "", "in/beside", "1"); /* read by nobody */
    set(a, "", "elsewhere", "1");
    static const char *const all[] = {"left", "right", "left2", "left3", "right2"};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(stale_state(all[i]), STET_STATE_STANDS);
    reopen();
    set(a, "", "in/left", "2");
    reopen();
    assert_int_equal(stale_state("left"), STET_STATE_DIRTY);
    assert_int_equal(stale_state("left2"), STET_STATE_STALE);
    assert_int_equal(stale_state("left3"), STET_STATE_STALE);
    assert_int_equal(stale_state("right"), STET_STATE_STANDS);
    assert_int_equal(stale_state("right2"), STET_STATE_STANDS);
}

static void run_condition(bool left, int64_t n) {
    run r = begin("", "choice");
    reads(&r, NULL, "condition", "/value", STET_RECURSIVE);
    reads(&r, NULL, left ? "left" : "right", "/value", STET_RECURSIVE);
    writes(&r, "out", n);
    commit(&r);
}

static void when_a_condition_turns_the_branch_not_taken_no_longer_counts(void **state) {
    (void)state;
    set(a, "", "condition", "true");
    run_condition(true, 1);
    set(a, "", "right", "1");
    assert_int_equal(state_of("choice"), STET_STATE_STANDS);
    set(a, "", "condition", "false");
    assert_int_equal(state_of("choice"), STET_STATE_DIRTY);
    run_condition(false, 2);
    reopen();
    set(a, "", "left", "9");
    assert_int_equal(state_of("choice"), STET_STATE_STANDS);
    set(a, "", "right", "2");
    assert_int_equal(state_of("choice"), STET_STATE_DIRTY);
}

static void a_no_op_whose_dependencies_changed_is_indexed_anew(void **state) {
    (void)state;
    set(a, "", "condition", "true");
    run_condition(true, 1);
    set(a, "", "condition", "false");
    run_condition(false, 1); /* the output is what it was */
    run_simple("reader", "out", "/value", STET_RECURSIVE, "end", 1);
    reopen();
    stet_action_record rec = record_on("", "choice");
    assert_int_equal(rec.changed_count, 0);
    assert_int_equal(rec.known_count, 1); /* still its own: what follows it is found */
    set(a, "", "left", "1");
    assert_int_equal(state_of("choice"), STET_STATE_STANDS);
    set(a, "", "right", "1");
    assert_int_equal(state_of("choice"), STET_STATE_DIRTY);
    assert_int_equal(stale_state("reader"), STET_STATE_STALE);
}

static void after_a_restart_a_materializer_is_found_by_demand_and_dirties_what_it_changed(void **state) {
    (void)state;
    set(a, "", "rows", "{}");
    for (int i = 0; i < 2; i++) {
        run r = begin("", "m");
        reads(&r, NULL, "in", "/value", STET_RECURSIVE);
        r.envelopes[r.o.envelope_count++] = (stet_address){NULL, {"rows", ""}, at("/value")};
        writes(&r, i ? "rows/k7" : "rows/first", i);
        commit(&r);
        if (i)
            break;
        char id[16], path[32];
        for (int k = 0; k < 20; k++) {
            snprintf(id, sizeof id, "reader%d", k);
            snprintf(path, sizeof path, "/value/k%d", k);
            run_simple(id, "rows", path, STET_RECURSIVE, id, 1);
        }
        reopen();
        set(a, "", "in", "2");
        stet_numbers found = {0};
        ok(stet_observe_writers(a, 0, &(stet_docname){"rows", ""}, at("/value/k7"), STET_WRITE_ENVELOPE, &found, &err));
        assert_int_equal(found.len, 1);
        assert_int_equal(found.at[0], record_on("", "m").action);
        stet_numbers_release(&found);
        assert_int_equal(state_of("m"), STET_STATE_DIRTY);
        for (int k = 0; k < 20; k++) {
            snprintf(id, sizeof id, "reader%d", k);
            assert_int_equal(stale_state(id), STET_STATE_STANDS); /* the envelope alone makes nobody stale */
        }
        reopen();
    }
    for (int k = 0; k < 20; k++) {
        char id[16];
        snprintf(id, sizeof id, "reader%d", k);
        assert_int_equal(state_of(id), k == 7 ? STET_STATE_DIRTY : STET_STATE_STANDS);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        test(two_uses_of_one_function_never_share_a_row),
        test(a_piece_that_does_not_run_is_found_dirty_when_it_starts),
        test(a_branch_that_is_made_again_under_its_name_knows_nothing),
        test(a_no_op_makes_no_revision_notifies_nobody_and_is_durable),
        test(a_no_op_sent_again_in_its_session_is_stored_once),
        test(after_a_restart_an_overlapping_write_dirties_exactly_the_chain),
        test(when_a_condition_turns_the_branch_not_taken_no_longer_counts),
        test(a_no_op_whose_dependencies_changed_is_indexed_anew),
        test(after_a_restart_a_materializer_is_found_by_demand_and_dirties_what_it_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
