/* observe.c - observations, the durable index, marks, mirrors. Each test is named after what must hold. */

#include "observe_kit.h"

static void an_observation_keeps_identity_and_fingerprints(void **state) {
    (void)state;
    run r = begin("", "x");
    r.o.implementation = stet_hash_of("code", 4);
    r.o.runtime = stet_hash_of("runtime", 7);
    r.o.kind = STET_ACTION_EFFECT;
    r.o.generation = 7;
    r.o.parent = "coordinator";
    reads(&r, NULL, "in", "/value", STET_RECURSIVE);
    commit(&r);
    reopen();
    stet_action_record rec = record_on("", "x");
    assert_true(stet_hash_equal(rec.implementation, stet_hash_of("code", 4)));
    assert_true(stet_hash_equal(rec.runtime, stet_hash_of("runtime", 7)));
    assert_int_equal(rec.kind, STET_ACTION_EFFECT);
    assert_int_equal(rec.generation, 7);
    assert_string_equal(rec.parent, "coordinator");
    assert_string_equal(rec.key.piece, "piece");
    assert_int_equal(rec.cause.state, STET_STATE_STANDS);
}

static void an_action_of_other_code_runtime_or_schema_is_unknown(void **state) {
    (void)state;
    const stet_reason reasons[] = {STET_REASON_IMPLEMENTATION, STET_REASON_RUNTIME, STET_REASON_SCHEMA,
                                   STET_REASON_GENERATION, STET_REASON_BINDING};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        run_simple("x", "in", "/value", STET_RECURSIVE, "out", (int64_t)i);
        run_simple("y", "in", "/value", STET_RECURSIVE, "out2", (int64_t)i);
        stet_action_key key = {"piece", "", "x"};
        ok(stet_observe_distrust(a, 0, &key, 1, reasons[i], &err));
        reopen();
        stet_action_record rec = record_on("", "x");
        assert_int_equal(rec.cause.state, STET_STATE_UNKNOWN);
        assert_int_equal(rec.cause.reason, reasons[i]);
        assert_int_equal(state_of("y"), STET_STATE_STANDS); /* exactly that one */
        set(a, "", "in", i % 2 ? "1" : "2");
        assert_int_equal(state_of("x"), STET_STATE_UNKNOWN); /* dirt does not soften it */
        assert_int_equal(state_of("y"), STET_STATE_DIRTY);
    }
}

static void a_recursive_read_stands_until_an_overlapping_write(void **state) {
    (void)state;
    set(a, "", "in", "{\"p\":{\"q\":1},\"z\":1}");
    run_simple("x", "in", "/value/p", STET_RECURSIVE, "out", 1);
    set(a, "", "in/z", "2");
    set(a, "", "other", "2");
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
    set(a, "", "in/p/q", "2");
    stet_action_record rec = record_on("", "x");
    assert_int_equal(rec.cause.state, STET_STATE_DIRTY);
    assert_int_equal(rec.cause.reason, STET_REASON_CHANGED);
    assert_string_equal(rec.cause.name.id, "in");
    assert_int_equal(stet_path_compare(rec.cause.change.path, at("/value/p/q")), 0);
    int64_t seq;
    ok(stet_space_seq(a, &seq, &err));
    assert_int_equal(rec.cause.seq, seq);
}

static void a_shallow_read_stands_while_the_key_set_does(void **state) {
    (void)state;
    set(a, "", "in", "{\"p\":{\"q\":1}}");
    run_simple("x", "in", "/value/p", STET_SHALLOW, "out", 1);
    set(a, "", "in/p/q", "2");
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
    set(a, "", "in/p/r", "2");
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
    run_simple("x", "in", "/value/p", STET_SHALLOW, "out", 1);
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
    set(a, "", "in", "5");
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
}

static void a_missing_observation_is_never_clean(void **state) {
    (void)state;
    stet_action_key key = {"piece", "", "x"};
    stet_action_record rec;
    assert_int_equal(stet_observe_find(a, 0, &key, &arena, &rec, &err), STET_NOT_FOUND);
    stet_error_clear(&err);
    ok(stet_observe_distrust(a, 0, &key, 1, STET_REASON_NEVER, &err));
    assert_int_equal(state_of("x"), STET_STATE_UNKNOWN);
    assert_false(record_on("", "x").observed);
}

static void a_damaged_observation_is_never_clean(void **state) {
    (void)state;
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    run_simple("y", "in", "/value", STET_RECURSIVE, "out2", 1);
    ok(stet_db_begin_write(stet_space_db(a), &err));
    stet_db_exec(stet_space_db(a), "UPDATE action SET observation = x'01FF00' WHERE name = 'x'");
    ok(stet_db_commit(stet_space_db(a), &err));
    reopen();
    stet_action_record rec = record_on("", "x");
    assert_int_equal(rec.cause.state, STET_STATE_UNKNOWN);
    assert_int_equal(rec.cause.reason, STET_REASON_CORRUPT);
    assert_int_equal(state_of("y"), STET_STATE_STANDS);
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    ok(stet_observe_check(a, false, &problems, &found, &repaired, &err));
    assert_true(found > 0);
    ok(stet_observe_check(a, true, &problems, &found, &repaired, &err));
    assert_int_equal(found, repaired);
    stet_buf_release(&problems);
    assert_int_equal(state_of("x"), STET_STATE_UNKNOWN);
}

static void an_observation_is_stored_with_its_commit_or_not_at_all(void **state) {
    (void)state;
    run r = begin("", "x");
    reads(&r, NULL, "in", "/value", STET_RECURSIVE);
    writes(&r, "out", 1);
    ok(stet_observe_attach(r.tx, &r.o, &err));
    stet_tx_abort(r.tx); /* an aborted transaction leaves none */
    stet_action_key key = {"piece", "", "x"};
    stet_action_record rec;
    assert_int_equal(stet_observe_find(a, 0, &key, &arena, &rec, &err), STET_NOT_FOUND);
    stet_error_clear(&err);
    r = begin("", "x");
    reads(&r, NULL, "in", "/value", STET_RECURSIVE);
    writes(&r, "out", 1);
    ok(stet_observe_attach(r.tx, &r.o, &err));
    set(a, "", "in", "9");
    assert_int_equal(stet_tx_commit(r.tx, NULL, &err), STET_CONFLICT); /* nor does one that lost */
    stet_error_clear(&err);
    assert_int_equal(stet_observe_find(a, 0, &key, &arena, &rec, &err), STET_NOT_FOUND);
    stet_error_clear(&err);
    stet_commit_result result = run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    assert_int_equal(record_on("", "x").commit_seq, result.seq);
}

static void a_no_op_records_the_head_and_the_sequences_it_saw(void **state) {
    (void)state;
    set(a, "", "in", "1");
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    set(a, "", "in", "2");
    int64_t before;
    ok(stet_space_seq(a, &before, &err));
    stet_commit_result result = run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    assert_false(result.changed);
    ok(stet_space_sync(a, &err));
    int64_t after;
    ok(stet_space_seq(a, &after, &err));
    assert_int_equal(before, after); /* no revision, so nobody is notified */
    reopen();
    stet_action_record rec = record_on("", "x");
    assert_int_equal(rec.commit_seq, 0);
    assert_int_equal(rec.observed_at, after);
    assert_int_equal(rec.read_count, 1);
    assert_int_equal(rec.reads[0].seq, after);
    assert_int_equal(rec.changed_count, 0);
    assert_int_equal(rec.known_count, 1); /* it still owns its output */
    assert_int_equal(rec.cause.state, STET_STATE_STANDS);
}

static void a_no_op_that_is_stale_is_dropped_without_an_error(void **state) {
    (void)state;
    set(a, "", "in", "1");
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    stet_space *other = space_named("a");
    run r = begin("", "x");
    reads(&r, NULL, "in", "/value", STET_RECURSIVE);
    commit(&r); /* batched */
    run keep = begin("", "y");
    reads(&keep, NULL, "elsewhere", "/value", STET_RECURSIVE);
    commit(&keep);
    set(other, "", "in", "2");
    ok(stet_space_sync(a, &err));
    stet_observe_stats st;
    ok(stet_observe_stat(a, &st, &err));
    assert_int_equal(st.handle.dropped_noops, 1);
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);  /* it keeps the mark it has */
    assert_int_equal(state_of("y"), STET_STATE_STANDS); /* entries are kept or dropped one by one */
    stet_space_close(other);
}

static void a_question_sees_what_is_batched(void **state) {
    (void)state;
    stet_action_record *list;
    stet_observe_stats st;
    stet_action_state s;
    size_t count;
    int64_t next, known;
    stet_action_filter f = {.generation = -1, .limit = 10};
    static const char *const names[] = {"x", "y", "z", "w"};
    for (size_t i = 0; i < 4; i++) {
        run r = begin("", names[i]);
        reads(&r, NULL, "in", "/value", STET_RECURSIVE);
        commit(&r); /* changes nothing: it waits */
        if (i == 0) {
            ok(stet_observe_list(a, 0, &f, &arena, &list, &count, &next, &err));
            assert_int_equal(count, 1);
        } else if (i == 1) {
            ok(stet_observe_stat(a, &st, &err));
            assert_int_equal(st.observed, 2);
        } else if (i == 2) {
            ok(stet_observe_known(a, 0, "piece", NULL, &known, &err));
            assert_int_equal(known, 3);
        } else {
            ok(stet_observe_state(a, 0, list[0].action + 3, &s, NULL, &err));
            assert_int_equal(s, STET_STATE_STANDS);
        }
    }
}

static void unchanged_rows_are_not_rewritten(void **state) {
    (void)state;
    run_simple("x", "in", "/value/p", STET_RECURSIVE, "out", 1);
    int64_t rows = stet_observe_counted(a).rows;
    assert_true(rows > 0);
    run_simple("x", "in", "/value/p", STET_RECURSIVE, "out", 2);
    assert_int_equal(stet_observe_counted(a).rows, rows);
    run r = begin("", "x"); /* one more read: that row alone */
    reads(&r, NULL, "in", "/value/p", STET_RECURSIVE);
    reads(&r, NULL, "in", "/value/q", STET_SHALLOW);
    declares(&r, "out", "/value");
    writes(&r, "out", 3);
    commit(&r);
    assert_int_equal(stet_observe_counted(a).rows, rows + 1);
    reopen(); /* also by a handle that has to read what was there */
    run_simple("y", "in", "/value/p", STET_RECURSIVE, "out2", 2);
    rows = stet_observe_counted(a).rows;
    r = begin("", "x");
    reads(&r, NULL, "in", "/value/q", STET_SHALLOW);
    reads(&r, NULL, "in", "/value/p", STET_RECURSIVE);
    declares(&r, "out", "/value");
    writes(&r, "out", 4);
    commit(&r);
    assert_int_equal(stet_observe_counted(a).rows, rows);
}

static void a_data_write_flushes_the_batch_before_it(void **state) {
    (void)state;
    set(a, "", "in", "1");
    run r = begin("", "x");
    reads(&r, NULL, "in", "/value", STET_RECURSIVE);
    commit(&r);
    set(a, "", "in", "2"); /* after the observation, in the same handle */
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
}

static void a_commit_by_nobody_in_particular_dirties_readers(void **state) {
    (void)state;
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    stet_space_close(a);
    a = space_named("a"); /* nothing in memory: an inactive piece */
    set(a, "", "in", "1");
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
}

static void a_piece_is_dirtied_by_another_piece(void **state) {
    (void)state;
    run_simple("x", "in", "/value", STET_RECURSIVE, "middle", 1);
    run r = begin("", "y");
    r.o.key.piece = "second piece";
    reads(&r, NULL, "middle", "/value", STET_RECURSIVE);
    declares(&r, "end", "/value");
    writes(&r, "end", 1);
    commit(&r);
    run_simple("x", "in", "/value", STET_RECURSIVE, "middle", 2);
    stet_marked *marks;
    size_t count;
    ok(stet_observe_marks(a, 0, "second piece", "", &arena, &marks, &count, &err));
    assert_int_equal(count, 1);
    assert_int_equal(marks[0].state, STET_STATE_DIRTY);
    bool any;
    ok(stet_observe_any(a, 0, "piece", "", &any, &err));
    assert_false(any);
}

static void scope_is_part_of_identity(void **state) {
    (void)state;
    run r = begin("", "x");
    stet_docname name = {"in", "user:x"};
    stet_value v;
    if (stet_tx_read(r.tx, NULL, &name, at("/value"), STET_RECURSIVE, &v, &err) != STET_OK)
        stet_error_clear(&err);
    commit(&r);
    set(a, "", "in", "1");
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
    stet_tx *tx;
    ok(stet_tx_begin(a, "", &tx, &err));
    ok(stet_tx_set(tx, "in", "user:x", stet_value_int(1), &err));
    ok(stet_tx_commit(tx, NULL, &err));
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
}

static void branch_is_part_of_identity(void **state) {
    (void)state;
    set(a, "", "in", "1");
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    ok(stet_branch_create(a, "side", "", -1, &err));
    int64_t side;
    ok(stet_space_branch(a, "side", &side, &err));
    stet_action_key key = {"piece", "", "x"};
    stet_action_record rec;
    assert_int_equal(stet_observe_find(a, side, &key, &arena, &rec, &err), STET_NOT_FOUND); /* a fork knows nothing */
    stet_error_clear(&err);
    run r = begin("side", "x");
    reads(&r, NULL, "in", "/value", STET_RECURSIVE);
    commit(&r);
    set(a, "side", "in", "2");
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
    assert_int_equal(record_on("side", "x").cause.state, STET_STATE_DIRTY);
    set(a, "", "in", "3");
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
}

static void an_attempted_write_never_enters(void **state) {
    (void)state;
    set(a, "", "out", "1");
    run r = begin("", "x");
    reads(&r, NULL, "in", "/value", STET_RECURSIVE);
    writes(&r, "out", 1); /* the value that is there */
    commit(&r);
    stet_action_record rec = record_on("", "x");
    assert_int_equal(rec.changed_count, 0);
    assert_int_equal(rec.known_count, 0);
    assert_int_equal(rec.declared_count, 0);
    stet_numbers writers = {0};
    stet_docname out = {"out", ""};
    ok(stet_observe_writers(a, 0, &out, at("/value"), 7, &writers, &err));
    assert_int_equal(writers.len, 0);
    stet_numbers_release(&writers);
}

static void known_writes_are_the_precise_ones_else_the_previous_else_the_declared(void **state) {
    (void)state;
    run r = begin("", "x");
    declares(&r, "out", "/value");
    commit(&r); /* wrote nothing: what it declares */
    stet_action_record rec = record_on("", "x");
    assert_int_equal(rec.known_count, 1);
    assert_string_equal(rec.known[0].name.id, "out");
    r = begin("", "x");
    writes(&r, "elsewhere/q", 1);
    commit(&r); /* precise */
    rec = record_on("", "x");
    assert_int_equal(rec.known_count, 1);
    assert_string_equal(rec.known[0].name.id, "elsewhere");
    r = begin("", "x");
    writes(&r, "elsewhere/q", 1);
    commit(&r); /* no effective write: the previous ones */
    rec = record_on("", "x");
    assert_int_equal(rec.changed_count, 0);
    assert_int_equal(rec.known_count, 1);
    assert_string_equal(rec.known[0].name.id, "elsewhere");
}

static void a_write_inside_a_declared_output_owns_the_whole_output(void **state) {
    (void)state;
    run r = begin("", "x");
    declares(&r, "out", "/value");
    writes(&r, "out/p", 1);
    writes(&r, "out/q", 1);
    commit(&r);
    r = begin("", "x");
    declares(&r, "out", "/value");
    writes(&r, "out/p", 2);
    commit(&r);
    set(a, "", "out/q", "7");
    stet_action_record rec = record_on("", "x");
    assert_int_equal(rec.cause.state, STET_STATE_DIRTY);
    assert_int_equal(rec.cause.reason, STET_REASON_OVERWRITTEN);
}

static void a_declared_output_that_a_run_left_as_it_was_stays_its_own(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        run r = begin("", "x");
        declares(&r, "left", "/value");
        declares(&r, "right", "/value");
        writes(&r, "left", i);
        writes(&r, "right", 1); /* the second time it is so */
        commit(&r);
    }
    assert_int_equal(record_on("", "x").changed_count, 1);
    assert_int_equal(record_on("", "x").known_count, 2);
    set(a, "", "right", "9");
    assert_int_equal(record_on("", "x").cause.reason, STET_REASON_OVERWRITTEN);
}

static void an_output_overwritten_by_somebody_else_is_dirty(void **state) {
    (void)state;
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    set(a, "", "out", "99");
    stet_action_record rec = record_on("", "x");
    assert_int_equal(rec.cause.reason, STET_REASON_OVERWRITTEN);
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1); /* its own write is not somebody else's */
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
}

static void ignored_writes_never_enter_the_indexes(void **state) {
    (void)state;
    run r = begin("", "x");
    r.ignored[r.o.ignored_count++] = (stet_address){NULL, {"log", ""}, at("/value")};
    writes(&r, "log/n", 1);
    commit(&r);
    stet_action_record rec = record_on("", "x");
    assert_int_equal(rec.changed_count, 0);
    assert_int_equal(rec.known_count, 0);
    assert_int_equal(rec.ignored_count, 1);
    set(a, "", "log/n", "5");
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
}

/* The document is made with them: what lies beside them is the run's. */
static void ignored_writes_leave_what_is_beside_them(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) { /* the document is made; a member of it changes; the document goes and comes */
        run r = begin("", "x");
        r.ignored[r.o.ignored_count++] = (stet_address){NULL, {"out", ""}, at("/value/log/at")};
        if (i == 2)
            assert_int_equal(stet_tx_drop(r.tx, &(stet_docname){"out", ""}, NULL), STET_OK);
        writes(&r, "out/log/at", i);
        writes(&r, "out/log/by", i);
        writes(&r, "out/sum", i);
        commit(&r);
        stet_action_record rec = record_on("", "x");
        assert_int_equal(rec.changed_count, 2);
        assert_int_equal(rec.known_count, 2);
        for (size_t k = 0; k < 2; k++) {
            stet_buf shown = STET_BUF(0);
            stet_path_print(rec.known[k].path, &shown);
            assert_string_equal(stet_buf_cstr(&shown), k ? "/value/sum" : "/value/log/by");
            stet_buf_release(&shown);
        }
        set(a, "", "out/log/at", "77");
        assert_int_equal(state_of("x"), STET_STATE_STANDS);
        set(a, "", "out/sum", "77");
        assert_int_equal(state_of("x"), STET_STATE_DIRTY);
    }
}

static stet_action_state derived_state_of(const char *action) {
    stet_action_state state;
    ok(stet_observe_state(a, 0, record_on("", action).action, &state, NULL, &err));
    return state;
}

static void a_materializer_has_three_write_surfaces_and_fans_out_through_two(void **state) {
    (void)state;
    set(a, "", "rows", "{}");
    run r = begin("", "m");
    reads(&r, NULL, "in", "/value", STET_RECURSIVE);
    r.envelopes[r.o.envelope_count++] = (stet_address){NULL, {"rows", ""}, at("/value")};
    declares(&r, "out", "/value");
    writes(&r, "rows/first", 1);
    writes(&r, "out", 1);
    commit(&r);
    run_simple("first", "rows", "/value/first", STET_RECURSIVE, "o1", 1);
    run_simple("second", "rows", "/value/second", STET_RECURSIVE, "o2", 1);
    run_simple("normal", "out", "/value", STET_RECURSIVE, "o3", 1);
    stet_action_record rec = record_on("", "m");
    assert_int_equal(rec.envelope_count, 1);
    assert_int_equal(rec.known_count, 2); /* rows/first and out */
    stet_numbers found = {0};
    stet_docname rows = {"rows", ""};
    ok(stet_observe_writers(a, 0, &rows, at("/value/second"), STET_WRITE_ENVELOPE, &found, &err));
    assert_int_equal(found.len, 1); /* demand inside the envelope finds it */
    stet_vec_clear(&found);
    set(a, "", "in", "2");
    assert_int_equal(derived_state_of("first"), STET_STATE_STALE);
    assert_int_equal(derived_state_of("normal"), STET_STATE_STALE);
    assert_int_equal(derived_state_of("second"), STET_STATE_STANDS); /* the envelope alone makes nobody stale */
    stet_numbers_release(&found);
    r = begin("", "m");
    reads(&r, NULL, "in", "/value", STET_RECURSIVE);
    r.envelopes[r.o.envelope_count++] = (stet_address){NULL, {"rows", ""}, at("/value")};
    declares(&r, "out", "/value");
    writes(&r, "rows/second", 2);
    commit(&r);
    assert_int_equal(state_of("first"), STET_STATE_STANDS);
    assert_int_equal(state_of("second"), STET_STATE_DIRTY);
    assert_int_equal(state_of("normal"), STET_STATE_STANDS);
}

static void dependencies_are_replaced_by_each_run(void **state) {
    (void)state;
    run_simple("x", "left", "/value", STET_RECURSIVE, "out", 1);
    run_simple("x", "right", "/value", STET_RECURSIVE, "out", 1); /* same output, other reads */
    ok(stet_space_sync(a, &err));
    set(a, "", "left", "1");
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
    set(a, "", "right", "1");
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
}

static void many_reads_of_one_document_collapse_to_their_common_prefix(void **state) {
    (void)state;
    run r = begin("", "x");
    for (int i = 0; i < 65; i++) {
        char pointer[32];
        snprintf(pointer, sizeof pointer, "/value/rows/%d", i);
        reads(&r, NULL, "in", pointer, STET_SHALLOW);
    }
    writes(&r, "out", 1);
    commit(&r);
    stet_action_record rec = record_on("", "x");
    assert_int_equal(rec.read_count, 1);
    assert_int_equal(stet_path_compare(rec.reads[0].path, at("/value/rows")), 0);
    assert_int_equal(rec.reads[0].kind, STET_RECURSIVE);
    set(a, "", "in/rows", "[1]");
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
}

static void collecting_dependencies_publishes_nothing_and_calls_nothing_standing(void **state) {
    (void)state;
    run r = begin("", "x");
    r.o.run = STET_RUN_DEPENDENCIES;
    reads(&r, NULL, "in", "/value", STET_RECURSIVE);
    declares(&r, "out", "/value");
    commit(&r);
    stet_action_record rec = record_on("", "x");
    assert_int_equal(rec.run, STET_RUN_DEPENDENCIES);
    assert_int_equal(rec.read_count, 1);
    assert_int_equal(rec.cause.state, STET_STATE_UNKNOWN);
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
    /* One that had failed has no output that could be right: also if another process knows of the failure. */
    for (int i = 0; i < 2; i++) {
        r = begin("", "x");
        reads(&r, NULL, "in", "/value", STET_RECURSIVE);
        declares(&r, "out", "/value");
        r.o.failed = true;
        r.o.error = stet_hash_of("boom", 4);
        commit(&r);
        if (i == 1)
            reopen();
        r = begin("", "x");
        r.o.run = STET_RUN_DEPENDENCIES;
        reads(&r, NULL, "in", "/value", STET_RECURSIVE);
        commit(&r);
        assert_int_equal(state_of("x"), STET_STATE_UNKNOWN);
    }
}

static void a_failed_run_is_recorded_and_waits_for_a_change(void **state) {
    (void)state;
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    set(a, "", "in", "2");
    run r = begin("", "x");
    reads(&r, NULL, "in", "/value", STET_RECURSIVE);
    declares(&r, "out", "/value");
    r.o.failed = true;
    r.o.error = stet_hash_of("boom", 4);
    r.o.note = stet_value_string("boom");
    commit(&r);
    stet_value_release(r.o.note);
    stet_action_record rec = record_on("", "x");
    assert_true(rec.failed);
    assert_true(stet_hash_equal(rec.error, stet_hash_of("boom", 4)));
    assert_memory_equal(rec.note, "\"boom\"", 6);
    assert_int_equal(rec.cause.state, STET_STATE_STANDS); /* not to be run again */
    set(a, "", "in", "3");
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
}

static void a_write_in_a_space_that_was_read_dirties_the_owner(void **state) {
    (void)state;
    cross("x", 1);
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
    stet_space_close(a); /* the owner is not even open */
    set(b, "", "elsewhere", "1");
    set(b, "", "far", "1");
    a = space_named("a");
    stet_action_record rec = record_on("", "x");
    assert_int_equal(rec.cause.state, STET_STATE_DIRTY);
    assert_string_equal(rec.cause.space, stet_space_uuid(b));
    assert_string_equal(rec.cause.name.id, "far");
    cross("x", 1); /* a no-op in its own space */
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
}

static void only_the_space_that_changed_counts(void **state) {
    (void)state;
    cross("x", 1);
    set(a, "", "far", "1"); /* the same name in the other space */
    set(b, "", "near", "1");
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
    set(a, "", "near", "1");
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
}

/* A handle fetches a mark from another space after its look at the marks. SQLite does not count what its own connection
 * writes as a change of the database. */
static void a_mark_fetched_after_the_look_is_not_surveyed(void **state) {
    (void)state;
    stet_hash demand = stet_hash_of("x", 1);
    stet_survey survey;
    bool any = true;
    set(b, "", "far", "1");
    cross("act", 1);
    stet_space *lock = space_named("a"); /* whoever changes b can't tell a of it */
    ok(stet_db_begin_write(stet_space_db(lock), &err));
    set(b, "", "far", "2");
    stet_db_rollback(stet_space_db(lock));
    stet_space_close(lock);
    int64_t version = stet_observe_version(a);
    ok(stet_observe_any(a, 0, NULL, NULL, &any, &err));
    assert_false(any);
    ok(stet_observe_catch_up(a, &err));
    ok(stet_observe_any(a, 0, NULL, NULL, &any, &err));
    assert_true(any);
    ok(stet_observe_surveyed(a, 0, demand, version, 0, &err));
    assert_int_equal(stet_observe_survey(a, 0, demand, &survey, &err), STET_NOT_FOUND);
    ok(stet_observe_surveyed(a, 0, demand, stet_observe_version(a), 1, &err));
    ok(stet_observe_survey(a, 0, demand, &survey, &err));
}

static void a_mark_that_was_not_pushed_is_fetched_by_the_owner(void **state) {
    (void)state;
    cross("x", 1);
    set(b, "", "far", "1");
    /* As if the process had died between its commit and the push. */
    sql(b, "UPDATE mirror_owner SET pushed = 0");
    sql(a, "DELETE FROM mark");
    reopen();
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
    assert_int_equal(stet_db_int(stet_space_db(b), "SELECT pending - pushed FROM mirror_owner", -1), 0);
}

static void mirrors_in_spaces_no_longer_read_are_removed(void **state) {
    (void)state;
    cross("x", 1);
    assert_int_equal(stet_db_int(stet_space_db(b), "SELECT count(*) FROM mirror", -1), 1);
    run_simple("x", "near", "/value", STET_RECURSIVE, "out", 2);
    assert_int_equal(stet_db_int(stet_space_db(b), "SELECT count(*) FROM mirror", -1), 0);
    set(b, "", "far", "5");
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
}

static void a_restored_backup_makes_its_readers_unknown(void **state) {
    (void)state;
    set(b, "", "far", "1");
    back_up_b();
    set(b, "", "far", "2");
    cross("x", 1);
    run_simple("y", "near", "/value", STET_RECURSIVE, "out2", 2);
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
    restore_b();
    stet_action_record rec = record_on("", "x");
    assert_int_equal(rec.cause.state, STET_STATE_UNKNOWN);
    assert_int_equal(rec.cause.reason, STET_REASON_RESTORED);
    assert_int_equal(state_of("y"), STET_STATE_STANDS);
    cross("x", 1);
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
}

static void another_space_under_the_same_name_makes_its_readers_unknown(void **state) {
    (void)state;
    cross("x", 1);
    stet_space_close(b);
    stet_space_close(a);
    ok(stet_file_remove("b.db", &err));
    ok(stet_file_remove("b.db-wal", &err));
    ok(stet_file_remove("b.db-shm", &err));
    b = space_named("b");
    a = space_named("a");
    assert_int_equal(record_on("", "x").cause.reason, STET_REASON_RESTORED);
}

static void with_the_switch_off_nothing_is_stored_and_later_commits_are_looked_at(void **state) {
    (void)state;
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    stet_observe_switch(a, false);
    run_simple("y", "in", "/value", STET_RECURSIVE, "out2", 1);
    set(a, "", "in", "1");
    stet_action_record *list;
    size_t count;
    int64_t next;
    stet_action_filter f = {.generation = -1, .limit = 10};
    ok(stet_observe_list(a, 0, &f, &arena, &list, &count, &next, &err));
    assert_int_equal(count, 0); /* what is stored is inert */
    stet_observe_switch(a, true);
    stet_marked *marks;
    stet_action_key key = {"piece", "", "x"};
    ok(stet_observe_distrust(a, 0, &key, 1, STET_REASON_SCHEMA, &err));
    stet_observe_switch(a, false);
    ok(stet_observe_marks(a, 0, NULL, NULL, &arena, &marks, &count, &err));
    assert_int_equal(count, 0);
    ok(stet_observe_count_marks(a, 0, NULL, NULL, &count, &err));
    assert_int_equal(count, 0);
    stet_numbers readers = {0};
    ok(stet_observe_readers(a, 0, &(stet_docname){"in", ""}, at("/value"), STET_VALUE, &readers, &err));
    assert_int_equal(readers.len, 0);
    stet_action_record rec;
    assert_int_equal(stet_observe_find(a, 0, &key, &arena, &rec, &err), STET_NOT_FOUND);
    stet_error_clear(&err);
    stet_observe_switch(a, true);
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 2);
    stet_observe_switch(a, false);
    set(a, "", "in", "2");
    stet_observe_switch(a, true);
    stet_observe_stats st;
    ok(stet_observe_stat(a, &st, &err));
    assert_true(st.marked_through < st.seq);
    assert_int_equal(state_of("x"), STET_STATE_DIRTY); /* catch_up looked */
    ok(stet_observe_list(a, 0, &f, &arena, &list, &count, &next, &err));
    assert_int_equal(count, 1);
}

static void stale_is_derived_and_goes_with_its_cause(void **state) {
    (void)state;
    run_simple("x", "in", "/value", STET_RECURSIVE, "m1", 1);
    run_simple("y", "m1", "/value", STET_RECURSIVE, "m2", 1);
    run_simple("z", "m2", "/value", STET_RECURSIVE, "end", 1);
    run_simple("w", "other", "/value", STET_RECURSIVE, "end2", 1);
    set(a, "", "in", "2");
    stet_action_state s;
    int64_t via, x = record_on("", "x").action, z = record_on("", "z").action, w = record_on("", "w").action;
    ok(stet_observe_state(a, 0, z, &s, &via, &err));
    assert_int_equal(s, STET_STATE_STALE);
    assert_int_equal(via, x);
    ok(stet_observe_state(a, 0, w, &s, &via, &err));
    assert_int_equal(s, STET_STATE_STANDS);
    ok(stet_observe_state(a, 0, x, &s, &via, &err));
    assert_int_equal(s, STET_STATE_DIRTY);
    assert_int_equal(stet_db_int(stet_space_db(a), "SELECT count(*) FROM mark", -1),
                     1);                                      /* direct dirt alone is stored */
    run_simple("x", "in", "/value", STET_RECURSIVE, "m1", 1); /* same value */
    ok(stet_observe_state(a, 0, z, &s, &via, &err));
    assert_int_equal(s, STET_STATE_STANDS);
}

static void lists_come_in_pages_in_a_stable_order(void **state) {
    (void)state;
    for (int i = 0; i < 25; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        run_simple(name, "in", "/value", STET_RECURSIVE, name, 1);
    }
    size_t seen = 0;
    int64_t after = 0, last = 0;
    do {
        stet_action_record *list;
        size_t count;
        stet_action_filter f = {.piece = "piece", .generation = 1, .after = after, .limit = 10};
        ok(stet_observe_list(a, 0, &f, &arena, &list, &count, &after, &err));
        for (size_t i = 0; i < count; i++, seen++) {
            assert_true(list[i].action > last);
            last = list[i].action;
        }
        run_simple("n3", "in", "/value", STET_RECURSIVE, "n3", (int64_t)seen); /* a run in between moves nobody */
    } while (after);
    assert_int_equal(seen, 25);
    stet_action_filter other = {.piece = "piece", .generation = 2, .limit = 10};
    stet_action_record *list;
    size_t count;
    ok(stet_observe_list(a, 0, &other, &arena, &list, &count, &after, &err));
    assert_int_equal(count, 0);
}

static void readers_of_a_write_are_found_at_every_depth(void **state) {
    (void)state;
    run_simple("above", "in", "/value", STET_RECURSIVE, "o1", 1);
    run_simple("shallow", "in", "/value", STET_SHALLOW, "o2", 1);
    run_simple("equal", "in", "/value/p", STET_RECURSIVE, "o3", 1);
    run_simple("below", "in", "/value/p/q", STET_RECURSIVE, "o4", 1);
    run_simple("beside", "in", "/value/z", STET_RECURSIVE, "o5", 1);
    stet_docname in = {"in", ""};
    stet_numbers found = {0};
    ok(stet_observe_readers(a, 0, &in, at("/value/p"), STET_VALUE, &found, &err));
    assert_int_equal(found.len, 3);
    stet_vec_clear(&found);
    ok(stet_observe_readers(a, 0, &in, at("/value/p"), STET_KEYSET, &found, &err));
    assert_int_equal(found.len, 4);
    stet_numbers_release(&found);
}

/* The same answers from SQL, when a document has more readers than are kept in memory. */
static void a_document_with_many_readers_gives_the_same_answers(void **state) {
    (void)state;
    for (int i = 0; i < 300; i++) {
        char name[16], pointer[32];
        snprintf(name, sizeof name, "n%d", i);
        snprintf(pointer, sizeof pointer, "/value/k%d", i);
        run r = begin("", name);
        reads(&r, NULL, "in", pointer, STET_RECURSIVE);
        writes(&r, name, 1);
        commit(&r);
    }
    readers_of_a_write_are_found_at_every_depth(state);
    set(a, "", "in", "{}");
    ok(stet_space_sync(a, &err));
    stet_observe_stats st;
    ok(stet_observe_stat(a, &st, &err));
    assert_int_equal(st.dirty, 305); /* the document appeared: that touches every read of it */
}

static void forgetting_takes_rows_marks_and_mirrors(void **state) {
    (void)state;
    cross("x", 1);
    run_simple("y", "in", "/value", STET_RECURSIVE, "out2", 1);
    set(a, "", "near", "1");
    stet_action_key key = {"piece", "", "x"};
    ok(stet_observe_forget(a, 0, "piece", "", &key, 1, &err));
    stet_observe_stats st;
    ok(stet_observe_stat(a, &st, &err));
    assert_int_equal(stet_db_int(stet_space_db(b), "SELECT count(*) FROM mirror", -1), 0);
    assert_int_equal(st.actions, 1);
    assert_int_equal(st.read_rows, 1);
    assert_int_equal(st.dirty, 0);
    ok(stet_observe_forget(a, 0, "piece", "", NULL, 0, &err));
    ok(stet_observe_stat(a, &st, &err));
    assert_int_equal(st.actions + st.read_rows + st.write_rows, 0);
}

static void gc_removes_actions_of_deleted_pieces_and_branches(void **state) {
    (void)state;
    set(a, "", "piece", "1");
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    ok(stet_branch_create(a, "side", "", -1, &err));
    run r = begin("side", "x");
    r.o.key.piece = "kept";
    reads(&r, NULL, "in", "/value", STET_RECURSIVE);
    commit(&r);
    ok(stet_space_sync(a, &err));
    int64_t rows;
    ok(stet_observe_gc(a, &(stet_observe_gc_opts){.dry_run = true}, &rows, &err));
    assert_int_equal(rows, 0);
    ok(stet_branch_delete(a, "side", &err));
    stet_tx *tx;
    ok(stet_tx_begin(a, "", &tx, &err));
    ok(stet_tx_delete(tx, "piece", NULL, &err));
    ok(stet_tx_commit(tx, NULL, &err));
    ok(stet_observe_gc(a, &(stet_observe_gc_opts){.dry_run = true}, &rows, &err));
    assert_int_equal(rows, 2);
    ok(stet_observe_gc(a, &(stet_observe_gc_opts){.dry_run = false}, &rows, &err));
    assert_int_equal(rows, 3); /* and the fingerprint that nobody names any more */
    stet_observe_stats st;
    ok(stet_observe_stat(a, &st, &err));
    assert_int_equal(st.actions + st.read_rows + st.write_rows, 0);
}

static void check_finds_a_lost_mark_and_repair_makes_it_unknown(void **state) {
    (void)state;
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    run_simple("y", "in2", "/value", STET_RECURSIVE, "out2", 1);
    set(a, "", "in", "1");
    sql(a, "DELETE FROM mark");
    reopen();
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    ok(stet_observe_check(a, false, &problems, &found, &repaired, &err));
    assert_int_equal(found, 1);
    assert_non_null(strstr(stet_buf_cstr(&problems), "not marked"));
    ok(stet_observe_check(a, true, &problems, &found, &repaired, &err));
    assert_int_equal(repaired, 1);
    stet_buf_release(&problems);
    stet_action_record rec = record_on("", "x");
    assert_int_equal(rec.cause.state, STET_STATE_UNKNOWN);
    assert_int_equal(rec.cause.reason, STET_REASON_REPAIRED);
    assert_int_equal(state_of("y"), STET_STATE_STANDS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        test(an_observation_keeps_identity_and_fingerprints),
        test(an_action_of_other_code_runtime_or_schema_is_unknown),
        test(a_recursive_read_stands_until_an_overlapping_write),
        test(a_shallow_read_stands_while_the_key_set_does),
        test(a_missing_observation_is_never_clean),
        test(a_damaged_observation_is_never_clean),
        test(an_observation_is_stored_with_its_commit_or_not_at_all),
        test(a_no_op_records_the_head_and_the_sequences_it_saw),
        test(a_no_op_that_is_stale_is_dropped_without_an_error),
        test(a_question_sees_what_is_batched),
        test(unchanged_rows_are_not_rewritten),
        test(a_data_write_flushes_the_batch_before_it),
        test(a_commit_by_nobody_in_particular_dirties_readers),
        test(a_piece_is_dirtied_by_another_piece),
        test(scope_is_part_of_identity),
        test(branch_is_part_of_identity),
        test(an_attempted_write_never_enters),
        test(known_writes_are_the_precise_ones_else_the_previous_else_the_declared),
        test(a_write_inside_a_declared_output_owns_the_whole_output),
        test(a_declared_output_that_a_run_left_as_it_was_stays_its_own),
        test(an_output_overwritten_by_somebody_else_is_dirty),
        test(ignored_writes_never_enter_the_indexes),
        test(ignored_writes_leave_what_is_beside_them),
        test(a_materializer_has_three_write_surfaces_and_fans_out_through_two),
        test(dependencies_are_replaced_by_each_run),
        test(many_reads_of_one_document_collapse_to_their_common_prefix),
        test(collecting_dependencies_publishes_nothing_and_calls_nothing_standing),
        test(a_failed_run_is_recorded_and_waits_for_a_change),
        test(a_write_in_a_space_that_was_read_dirties_the_owner),
        test(only_the_space_that_changed_counts),
        test(a_mark_that_was_not_pushed_is_fetched_by_the_owner),
        test(a_mark_fetched_after_the_look_is_not_surveyed),
        test(mirrors_in_spaces_no_longer_read_are_removed),
        test(a_restored_backup_makes_its_readers_unknown),
        test(another_space_under_the_same_name_makes_its_readers_unknown),
        test(with_the_switch_off_nothing_is_stored_and_later_commits_are_looked_at),
        test(stale_is_derived_and_goes_with_its_cause),
        test(lists_come_in_pages_in_a_stable_order),
        test(readers_of_a_write_are_found_at_every_depth),
        test(a_document_with_many_readers_gives_the_same_answers),
        test(forgetting_takes_rows_marks_and_mirrors),
        test(gc_removes_actions_of_deleted_pieces_and_branches),
        test(check_finds_a_lost_mark_and_repair_makes_it_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
