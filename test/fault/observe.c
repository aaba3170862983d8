/* observe.c - each statement and file operation of a commit with an observation fails in turn.
 *
 * This happens in the space written to and in the space read. The data is there completely or not at all. Acknowledged
 * commits stay. After catching up nothing that should be dirty or unknown is called up to date. The same handles work
 * again.
 */

#include "../unit/observe_kit.h"

#include <errno.h>

#include "../faults.h"

/* What is tried under faults. Returns its status. */
typedef stet_status (*attempt)(void);

typedef struct outcome {
    stet_status status;
    int64_t out, far; /* values after it */
} outcome;

static stet_status run_x(stet_space *far, int64_t n) {
    stet_tx *tx;
    stet_status st = stet_tx_begin(a, "", &tx, &err);
    if (st != STET_OK)
        return st;
    stet_docname in = {"in", ""}, other = {"far", ""}, out = {"out", ""};
    stet_value v;
    st = stet_tx_read(tx, NULL, &in, at("/value"), STET_RECURSIVE, &v, &err);
    if (st == STET_OK && far)
        st = stet_tx_read(tx, far, &other, at("/value"), STET_RECURSIVE, &v, &err);
    if (st == STET_OK)
        st = stet_tx_write(tx, &out, at("/value"), stet_value_int(n), &err);
    stet_address declared = {NULL, out, at("/value")};
    stet_observation o = {.key = {"piece", "", "x"},
                          .kind = STET_ACTION_COMPUTATION,
                          .generation = 1,
                          .run = STET_RUN_ACTION,
                          .implementation = stet_hash_of("code", 4),
                          .declared_writes = &declared,
                          .declared_count = 1};
    if (st == STET_OK)
        st = stet_observe_attach(tx, &o, &err);
    if (st == STET_OK)
        return stet_tx_commit(tx, NULL, &err);
    stet_tx_abort(tx);
    return st;
}

static stet_status own_space(void) {
    return run_x(NULL, 2);
}

static stet_status two_spaces(void) {
    return run_x(b, 2);
}

/* Nothing changes: the observation is batched, and stored by the sync. */
static stet_status no_op(void) {
    stet_status st = run_x(NULL, 1);
    return st == STET_OK ? stet_space_sync(a, &err) : st;
}

/* A write that touches a mirror, and the push of its mark. */
static stet_status far_write(void) {
    stet_tx *tx;
    stet_status st = stet_tx_begin(b, "", &tx, &err);
    if (st != STET_OK)
        return st;
    st = stet_tx_set(tx, "far", NULL, stet_value_int(2), &err);
    if (st == STET_OK)
        return stet_tx_commit(tx, NULL, &err);
    stet_tx_abort(tx);
    return st;
}

/* Two runs in one SQLite transaction, the second reads what the first wrote. */
static stet_status group_of_two(void) {
    stet_group *g;
    stet_status st = stet_group_begin(a, "", &g, &err);
    if (st != STET_OK)
        return st;
    for (int i = 0; i < 2 && st == STET_OK; i++) {
        stet_tx *tx;
        stet_docname from = {i ? "out" : "in", ""}, to = {i ? "out2" : "out", ""};
        stet_value v;
        st = stet_tx_begin_in(g, &tx, &err);
        if (st != STET_OK)
            break;
        st = stet_tx_read(tx, NULL, &from, at("/value"), STET_RECURSIVE, &v, &err);
        if (st == STET_OK)
            st = stet_tx_write(tx, &to, at("/value"), stet_value_int(2), &err);
        stet_address declared = {NULL, to, at("/value")};
        stet_observation o = {.key = {"piece", "", i ? "y" : "x"},
                              .kind = STET_ACTION_COMPUTATION,
                              .generation = 1,
                              .run = STET_RUN_ACTION,
                              .declared_writes = &declared,
                              .declared_count = 1};
        if (st == STET_OK)
            st = stet_observe_attach(tx, &o, &err);
        if (st == STET_OK)
            st = stet_group_add(g, tx, NULL, NULL, &err);
        if (st != STET_OK)
            stet_tx_abort(tx);
    }
    if (st == STET_OK)
        st = stet_group_flush(g, &err);
    stet_group_end(g);
    return st;
}

static int64_t value_of(stet_space *s, const char *id) {
    stet_docname name = {id, ""};
    stet_doc_state d;
    stet_value v;
    ok(stet_space_load(s, 0, &name, -1, &d, &err));
    assert_true(d.exists);
    assert_true(stet_value_find(d.value, "value", 5, &v));
    int64_t n = stet_value_as_int(v);
    stet_value_release(d.value);
    return n;
}

/* x reads in (and far), writes out; y reads out; z reads far alone. */
static void prepare(void) {
    faults_arm_any(0, STET_SYS_FAIL, 0); /* opened with the hook set, SQLite's files ask it too */
    a = space_named("a");
    b = space_named("b");
    set(a, "", "in", "1");
    set(b, "", "far", "1");
    run_simple("y", "out", "/value", STET_RECURSIVE, "out2", 1);
    ok(run_x(b, 1));
    run_simple("y", "out", "/value", STET_RECURSIVE, "out2", 1);
    run r = begin("", "z");
    reads(&r, b, "far", "/value", STET_RECURSIVE);
    commit(&r);
    assert_int_equal(state_of("x"), STET_STATE_STANDS);
    assert_int_equal(state_of("y"), STET_STATE_STANDS);
    assert_int_equal(state_of("z"), STET_STATE_STANDS);
}

static void no_problems(stet_space *s, const char *what, int n) {
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    ok(stet_observe_check(s, false, &problems, &found, &repaired, &err));
    if (found)
        fail_msg("%s, fault %d: %s", what, n, stet_buf_cstr(&problems));
    stet_buf_release(&problems);
}

static int
    lost; /* times that the action of a run whose data is there was unknown, because nothing else could be stored */

static void verify(const outcome *before, const outcome *got, const char *what, int n) {
    outcome now = {.out = value_of(a, "out"), .far = value_of(b, "far")};
    if (now.out != got->out || now.far != got->far)
        fail_msg("%s, fault %d: out %lld, was %lld when it was over", what, n, (long long)now.out, (long long)got->out);
    ok(stet_observe_catch_up(a, &err));
    ok(stet_observe_catch_up(b, &err));
    no_problems(a, what, n);
    no_problems(b, what, n);
    stet_action_record x = record_on("", "x"), y = record_on("", "y"), z = record_on("", "z");
    lost += now.out != before->out && x.cause.state == STET_STATE_UNKNOWN && x.cause.reason == STET_REASON_LOST;
    /* x wrote out: whoever read it before does not stand, unless it ran again in the same group. */
    if (now.out != before->out && y.cause.state == STET_STATE_STANDS && y.observed_at <= x.observed_at &&
        value_of(a, "out2") == 1)
        fail_msg("%s, fault %d: out changed, and its reader stands", what, n);
    if (now.out != before->out && x.cause.state == STET_STATE_STANDS && x.commit_seq == 0)
        fail_msg("%s, fault %d: x wrote, and an observation that does not know of it stands", what, n);
    if (now.far != before->far && z.cause.state == STET_STATE_STANDS)
        fail_msg("%s, fault %d: far changed, and its reader stands", what, n);
}

static void remove_spaces(void) {
    stet_space_close(a);
    stet_space_close(b);
    a = b = NULL;
    stet_names names = {0};
    ok(stet_file_list(".", &names, &err));
    for (size_t i = 0; i < names.len; i++)
        ok(stet_file_remove(names.at[i], &err));
    stet_names_release(&names);
    stet_arena_release(&arena);
}

/* Fails the n-th call for every n, until a run passes untouched. `path`: only calls on files with this in their name.
 */
static void try(const char *what, attempt f, bool sql, const char *path, int step, int *committed, int *failed) {
    *committed = *failed = 0;
    for (int n = 1;; n += step) {
        prepare();
        outcome before = {.out = value_of(a, "out"), .far = value_of(b, "far")}, got = before;
        if (sql)
            faults_arm(STET_SYS_SQL, n, STET_SYS_FAIL, EIO);
        else
            faults_arm_any(n, STET_SYS_FAIL, n % 2 ? EIO : ENOSPC);
        if (path)
            faults_path(path);
        got.status = f();
        faults_disarm();
        bool fired = faults_fired();
        stet_error_clear(&err);
        got.out = value_of(a, "out");
        got.far = value_of(b, "far");
        if (got.status == STET_OK && f == far_write)
            assert_int_equal(got.far, 2);
        if (got.status == STET_OK && (f == own_space || f == two_spaces || f == group_of_two))
            assert_int_equal(got.out, 2);
        *committed += fired && got.status == STET_OK;
        *failed += fired && got.status != STET_OK;
        verify(&before, &got, what, n);
        /* The same handles: the next commit works, and says the truth again. */
        ok(run_x(b, 3));
        assert_int_equal(state_of("x"), STET_STATE_STANDS);
        assert_int_not_equal(state_of("y"), STET_STATE_STANDS);
        got.out = 3;
        reopen(); /* and what was acknowledged is in the files */
        verify(&before, &got, what, n);
        set(b, "", "far", "9");
        assert_int_not_equal(state_of("x"), STET_STATE_STANDS);
        assert_int_not_equal(state_of("z"), STET_STATE_STANDS);
        remove_spaces();
        if (!fired)
            break;
    }
    print_message("# %s: %d faults left the data committed, %d failed it whole\n", what, *committed, *failed);
}

static int some(int n) {
    return getenv("STET_TEST_SHORT") ? 7 * n : n;
}

static void a_failing_statement_of_an_observation_does_not_fail_the_data(void **state) {
    (void)state;
    int committed, failed;
    lost = 0;
    try("a run in one space", own_space, true, NULL, 1, &committed, &failed);
    assert_true(lost > committed / 2);
    assert_true(committed > failed); /* most statements are the observation's */
    try("a run over two spaces", two_spaces, true, NULL, 1, &committed, &failed);
    assert_true(committed > failed);
}

static void a_failing_statement_in_the_space_read_does_not_fail_the_data(void **state) {
    (void)state;
    int committed, failed;
    try("a run over two spaces, in the one read", two_spaces, true, "b.db", 1, &committed, &failed);
    assert_true(committed > 2);
}

static void a_failing_statement_of_a_run_that_changed_nothing_harms_nobody(void **state) {
    (void)state;
    int committed, failed;
    try("a run that changed nothing", no_op, true, NULL, some(1), &committed, &failed);
}

static void a_failing_statement_of_a_push_does_not_fail_the_write(void **state) {
    (void)state;
    int committed, failed;
    try("a write that another space's action reads", far_write, true, NULL, 1, &committed, &failed);
    assert_true(committed > failed);
    try("the same, in the owner's space", far_write, true, "a.db", 1, &committed, &failed);
    assert_true(committed > 0);
    assert_int_equal(failed, 0);
}

static void a_failing_statement_of_a_group_harms_nobody(void **state) {
    (void)state;
    int committed, failed;
    try("two runs in a group", group_of_two, true, NULL, some(1), &committed, &failed);
    if (!getenv("STET_TEST_SHORT")) /* a few picked out do not say which are most */
        assert_true(committed > failed);
}

static void a_failing_system_call_harms_nobody(void **state) {
    (void)state;
    int committed, failed;
    try("a run in one space, system calls", own_space, false, NULL, some(1), &committed, &failed);
    try("a run over two spaces, system calls", two_spaces, false, NULL, some(1), &committed, &failed);
    try("a write that another space's action reads, system calls", far_write, false, NULL, some(1), &committed,
        &failed);
    try("a run over two spaces, system calls in the one read", two_spaces, false, "b.db", some(1), &committed, &failed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_statement_of_an_observation_does_not_fail_the_data),
        cmocka_unit_test(a_failing_statement_in_the_space_read_does_not_fail_the_data),
        cmocka_unit_test(a_failing_statement_of_a_run_that_changed_nothing_harms_nobody),
        cmocka_unit_test(a_failing_statement_of_a_push_does_not_fail_the_write),
        cmocka_unit_test(a_failing_statement_of_a_group_harms_nobody),
        cmocka_unit_test(a_failing_system_call_harms_nobody),
    };
    faults_fast_directory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
