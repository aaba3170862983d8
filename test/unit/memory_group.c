/* memory_group.c - groups of transactions: overlay, drops, transactions that outlive a flush, retries, other spaces. */

#include "../memory_kit.h"

static void other_spaces_are_read_and_locked(void **state) {
    (void)state;
    char *path = fresh_path(), *path2 = fresh_path();
    stet_space *s = again(path), *t = again(path2), *t2 = again(path2);
    set(t, "", "rate", "3");
    stet_tx *tx;
    stet_value v;
    OK(stet_tx_begin(s, "", &tx, &err));
    OK(stet_tx_get_from(tx, t, "rate", NULL, &v, &err));
    OK(stet_tx_set(tx, "total", NULL, stet_value_int(stet_value_as_int(v) * 2), &err));
    OK(stet_tx_commit(tx, NULL, &err));
    expect(s, "", "total", -1, "6");
    OK(stet_tx_begin(s, "", &tx, &err));
    OK(stet_tx_get_from(tx, t, "rate", NULL, &v, &err));
    OK(stet_tx_set(tx, "total", NULL, stet_value_int(stet_value_as_int(v) * 3), &err));
    set(t2, "", "rate", "4");
    FAILS(stet_tx_commit(tx, NULL, &err), STET_CONFLICT, "rate");
    expect(s, "", "total", -1, "6");
    /* neither space is left locked */
    set(s, "", "free", "1");
    set(t2, "", "free", "1");
    stet_space_close(t2);
    done(t);
    done(s);
    free(path);
    free(path2);
}

static void groups(void **state) {
    (void)state;
    char *path = fresh_path();
    stet_space *s = again(path), *other = again(path);
    set(s, "", "a", "1");
    set(s, "", "z", "1");
    stet_group *g;
    stet_tx *tx, *early;
    stet_value v;
    stet_member m;
    const stet_doc_change *changes;
    size_t count;
    OK(stet_group_begin(s, "", &g, &err));
    OK(stet_tx_begin_in(g, &early, &err));
    OK(stet_tx_get(early, "a", NULL, &v, &err));
    /* 0 writes a, 1 reads it in the overlay, 2 changes nothing, 3 is independent, 4 reads what 1 wrote */
    OK(stet_tx_begin_in(g, &tx, &err));
    OK(stet_tx_get(tx, "z", NULL, &v, &err));
    OK(stet_tx_set(tx, "a", NULL, stet_value_int(2), &err));
    OK(stet_group_add(g, tx, &changes, &count, &err));
    assert_int_equal(count, 1);
    assert_int_equal(changes[0].len, 1);
    OK(stet_tx_begin_in(g, &tx, &err));
    OK(stet_tx_get(tx, "a", NULL, &v, &err));
    assert_int_equal(stet_value_as_int(v), 2);
    OK(stet_tx_set(tx, "b", NULL, stet_value_int(stet_value_as_int(v) * 10), &err));
    OK(stet_group_add(g, tx, NULL, NULL, &err));
    OK(stet_tx_begin_in(g, &tx, &err));
    OK(stet_tx_set(tx, "a", NULL, stet_value_int(2), &err));
    OK(stet_group_add(g, tx, &changes, &count, &err));
    assert_int_equal(count, 0);
    OK(stet_tx_begin_in(g, &tx, &err));
    OK(stet_tx_set(tx, "free", NULL, stet_value_int(1), &err));
    OK(stet_group_add(g, tx, NULL, NULL, &err));
    OK(stet_tx_begin_in(g, &tx, &err));
    OK(stet_tx_get(tx, "b", NULL, &v, &err));
    OK(stet_tx_set(tx, "c", NULL, stet_value_int(stet_value_as_int(v) + 1), &err));
    OK(stet_group_add(g, tx, NULL, NULL, &err));
    /* one that read before member 0 wrote can't be added any more */
    OK(stet_tx_set(early, "late", NULL, stet_value_int(1), &err));
    FAILS(stet_group_add(g, early, NULL, NULL, &err), STET_CONFLICT, "changed in the group");
    stet_tx_abort(early);
    expect(other, "", "a", -1, "1");
    /* what member 0 read changes: 0, 1 and 4 fall, 2 has something to change now, 3 stays */
    set(other, "", "z", "9");
    OK(stet_group_flush(g, &err));
    stet_member_outcome want[] = {STET_MEMBER_DROPPED, STET_MEMBER_DROPPED, STET_MEMBER_APPLIED, STET_MEMBER_APPLIED,
                                  STET_MEMBER_DROPPED};
    assert_int_equal(stet_group_len(g), 5);
    for (size_t i = 0; i < 5; i++) {
        stet_group_at(g, i, &m);
        assert_int_equal(m.outcome, want[i]);
    }
    expect(other, "", "a", -1, "2");
    expect(other, "", "free", -1, "1");
    expect(other, "", "b", -1, NULL);
    expect(other, "", "c", -1, NULL);
    /* the group goes on, on a new snapshot; each logical commit has a sequence of its own */
    for (int i = 0; i < 3; i++) {
        OK(stet_tx_begin_in(g, &tx, &err));
        OK(stet_tx_get(tx, "a", NULL, &v, &err));
        OK(stet_tx_set(tx, "a", NULL, stet_value_int(stet_value_as_int(v) + 1), &err));
        OK(stet_group_add(g, tx, NULL, NULL, &err));
    }
    OK(stet_group_flush(g, &err));
    int64_t first = 0;
    for (size_t i = 0; i < 3; i++) {
        stet_group_at(g, i, &m);
        assert_int_equal(m.outcome, STET_MEMBER_APPLIED);
        if (i == 0)
            first = m.result.seq;
        assert_int_equal(m.result.seq, first + (int64_t)i);
        char text[32];
        snprintf(text, sizeof text, "%d", 3 + (int)i);
        expect(other, "", "a", m.result.seq, text);
    }
    stet_group_end(g);
    stet_space_close(other);
    done(s);
    free(path);
}

static void members_applied_to_another_state_void_their_readers(void **state) {
    (void)state;
    char *path = fresh_path();
    stet_space *s = again(path), *other = again(path);
    set(s, "", "list", "[1,2]");
    stet_group *g;
    stet_tx *tx;
    stet_value v;
    stet_member m;
    OK(stet_group_begin(s, "", &g, &err));
    OK(stet_tx_begin_in(g, &tx, &err));
    stet_value ops = json("[{\"op\":\"append\",\"path\":\"\",\"values\":[3]}]");
    OK(stet_tx_patch_value(tx, "list", NULL, ops, &err));
    OK(stet_group_add(g, tx, NULL, NULL, &err));
    OK(stet_tx_begin_in(g, &tx, &err));
    OK(stet_tx_get(tx, "list/2", NULL, &v, &err));
    OK(stet_tx_set(tx, "copy", NULL, stet_value_retain(v), &err));
    OK(stet_group_add(g, tx, NULL, NULL, &err));
    set(other, "", "list", "[1]"); /* changes list/1 alone, yet list/2 will not be there */
    OK(stet_group_flush(g, &err));
    stet_group_at(g, 0, &m);
    assert_int_equal(m.outcome, STET_MEMBER_APPLIED);
    stet_group_at(g, 1, &m);
    assert_int_equal(m.outcome, STET_MEMBER_DROPPED);
    expect(s, "", "list", -1, "[1,3]");
    expect(s, "", "copy", -1, NULL);
    stet_value_release(ops);
    stet_group_end(g);
    stet_space_close(other);
    done(s);
    free(path);
}

static void a_transaction_outlives_a_flush(void **state) {
    (void)state;
    char *path = fresh_path();
    stet_space *s = again(path), *other = again(path);
    set(s, "", "a", "1");
    stet_group *g;
    stet_tx *tx, *slow, *slower;
    stet_value v;
    stet_member m;
    OK(stet_group_begin(s, "", &g, &err));
    OK(stet_tx_begin_in(g, &tx, &err));
    OK(stet_tx_set(tx, "a", NULL, stet_value_int(2), &err));
    OK(stet_group_add(g, tx, NULL, NULL, &err));
    OK(stet_tx_begin_in(g, &slow, &err)); /* both read what is only in the overlay so far */
    OK(stet_tx_get(slow, "a", NULL, &v, &err));
    assert_int_equal(stet_value_as_int(v), 2);
    OK(stet_tx_begin_in(g, &slower, &err));
    OK(stet_tx_get(slower, "a", NULL, &v, &err));
    OK(stet_group_flush(g, &err));
    OK(stet_tx_set(slow, "b", NULL, stet_value_int(20), &err));
    OK(stet_group_add(g, slow, NULL, NULL, &err));
    OK(stet_group_flush(g, &err));
    stet_group_at(g, 0, &m);
    assert_int_equal(m.outcome, STET_MEMBER_APPLIED);
    expect(other, "", "b", -1, "20");
    set(other, "", "a", "3"); /* and what the other one read changes before it is done */
    OK(stet_tx_set(slower, "c", NULL, stet_value_int(1), &err));
    OK(stet_group_add(g, slower, NULL, NULL, &err));
    OK(stet_group_flush(g, &err));
    stet_group_at(g, 0, &m);
    assert_int_equal(m.outcome, STET_MEMBER_DROPPED);
    assert_int_equal(m.error->status, STET_CONFLICT);
    /* one that saw a member which was then dropped is void */
    OK(stet_tx_begin_in(g, &tx, &err));
    OK(stet_tx_get(tx, "a", NULL, &v, &err));
    OK(stet_tx_set(tx, "d", NULL, stet_value_int(1), &err));
    OK(stet_group_add(g, tx, NULL, NULL, &err));
    OK(stet_tx_begin_in(g, &slow, &err));
    OK(stet_tx_get(slow, "d", NULL, &v, &err));
    set(other, "", "a", "4");
    OK(stet_group_flush(g, &err));
    OK(stet_tx_set(slow, "e", NULL, stet_value_int(1), &err));
    FAILS(stet_group_add(g, slow, NULL, NULL, &err), STET_CONFLICT, "not as read");
    stet_tx_abort(slow);
    /* one that is live when the group ends reads on as before, and goes nowhere */
    stet_group *next;
    OK(stet_tx_begin_in(g, &tx, &err));
    OK(stet_tx_set(tx, "f", NULL, stet_value_int(7), &err));
    OK(stet_group_add(g, tx, NULL, NULL, &err));
    OK(stet_tx_begin_in(g, &slow, &err));
    OK(stet_tx_begin_in(g, &slower, &err));
    stet_group_end(g);
    OK(stet_group_begin(s, "", &next, &err));
    OK(stet_tx_get(slow, "f", NULL, &v, &err));
    assert_int_equal(stet_value_as_int(v), 7);
    OK(stet_tx_set(slow, "e", NULL, stet_value_int(1), &err));
    FAILS(stet_group_add(next, slow, NULL, NULL, &err), STET_CONFLICT, "has ended");
    FAILS(stet_group_add(NULL, slow, NULL, NULL, &err), STET_CONFLICT, "has ended");
    stet_tx_abort(slow);
    OK(stet_tx_get(slower, "f", NULL, &v, &err));
    stet_tx_abort(slower);
    stet_group_end(next);
    expect(s, "", "c", -1, NULL);
    expect(s, "", "e", -1, NULL);
    expect(s, "", "f", -1, NULL);
    stet_space_close(other);
    done(s);
    free(path);
}

static stet_status bump(stet_tx *tx, void *ctx, stet_error *e) {
    stet_value n;
    stet_space *other = ctx;
    stet_status st = stet_tx_get(tx, "n", NULL, &n, e);
    if (st != STET_OK)
        return st;
    if (other) /* somebody always comes between, until the lock is held first */
        if (!stet_db_in_transaction(stet_space_db(stet_tx_space(tx))))
            set(other, "", "n", stet_value_as_int(n) % 2 ? "10" : "21");
    return stet_tx_set(tx, "n", NULL, stet_value_int(stet_value_as_int(n) + 1), e);
}

static stet_status refuse(stet_tx *tx, void *ctx, stet_error *e) {
    (void)tx;
    (void)ctx;
    return stet_fail(e, STET_FAILED, "no");
}

static stet_status need_nothing(stet_tx *tx, void *ctx, stet_error *e) {
    ++*(int *)ctx;
    stet_status st = stet_tx_require_absent(tx, "n", NULL, e);
    return st != STET_OK ? st : stet_tx_set(tx, "n", NULL, stet_value_int(1), e);
}

static void transact_tries_again_and_then_holds_the_lock(void **state) {
    (void)state;
    char *path = fresh_path();
    stet_space *s = again(path), *other = again(path);
    set(s, "", "n", "0");
    stet_commit_result r;
    OK(stet_space_transact(s, NULL, bump, other, &r, &err));
    assert_true(r.changed);
    OK(stet_space_transact(s, NULL, bump, NULL, &r, &err));
    FAILS(stet_space_transact(s, NULL, refuse, NULL, &r, &err), STET_FAILED, "no");
    FAILS(stet_space_transact(s, "nope", bump, NULL, &r, &err), STET_NOT_FOUND, "nope");
    int calls = 0;
    FAILS(stet_space_transact(s, NULL, need_nothing, &calls, &r, &err), STET_CONFLICT, "exists already");
    assert_int_equal(calls, 4);
    set(other, "", "n", "5"); /* no lock is left */
    stet_space_close(other);
    done(s);
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_spaces_are_read_and_locked),
        cmocka_unit_test(groups),
        cmocka_unit_test(members_applied_to_another_state_void_their_readers),
        cmocka_unit_test(a_transaction_outlives_a_flush),
        cmocka_unit_test(transact_tries_again_and_then_holds_the_lock),
    };
    return cmocka_run_group_tests_name("memory groups", tests, NULL, NULL);
}
