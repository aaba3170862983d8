/* memory.c - spaces: transactions, conflicts, sessions, branches, past reads, feeds, bad input, damage. */

#include "../memory_kit.h"
#include "../memory_old.h"
#include "base/json.h"

static void opens_and_keeps(void **state) {
    (void)state;
    char *path = fresh_path();
    stet_space *s = again(path);
    char uuid[37];
    strcpy(uuid, stet_space_uuid(s));
    int64_t seq;
    OK(stet_space_seq(s, &seq, &err));
    assert_int_equal(seq, 0);
    assert_int_equal(set(s, "", "config/theme", "\"dark\""), 1);
    assert_int_equal(set(s, "", "config/size", "12"), 2);
    expect(s, "", "config", -1, "{\"theme\":\"dark\",\"size\":12}");
    expect(s, "", "config/size", 1, NULL);
    expect(s, "", "config/theme", 1, "\"dark\"");
    expect(s, "", "config", 0, NULL);
    done(s);
    s = again(path);
    assert_string_equal(uuid, stet_space_uuid(s));
    expect(s, "", "config", -1, "{\"theme\":\"dark\",\"size\":12}");
    FAILS(stet_space_get(s, "", "config", NULL, 99, &(stet_value){0}, &err), STET_NOT_FOUND, "is at 2");
    done(s);
    free(path);
}

static void a_write_that_changes_nothing_is_none(void **state) {
    (void)state;
    stet_space *s = fresh();
    stet_commit_result r;
    OK(try_set(s, "", "a/x", NULL, "{\"k\":[1,2]}", &r));
    assert_true(r.changed);
    OK(try_set(s, "", "a/x", NULL, "{\"k\":[1,2]}", &r));
    assert_false(r.changed);
    assert_int_equal(r.seq, 1);
    stet_tx *tx;
    OK(stet_tx_begin(s, "", &tx, &err));
    OK(stet_tx_delete(tx, "nobody", NULL, &err));
    OK(stet_tx_commit(tx, &r, &err));
    assert_false(r.changed);
    int64_t seq;
    OK(stet_space_seq(s, &seq, &err));
    assert_int_equal(seq, 1);
    done(s);
}

static void reads_conflict_with_later_changes(void **state) {
    (void)state;
    char *path = fresh_path();
    stet_space *s = again(path), *other = again(path);
    set(s, "", "a", "{\"x\":1,\"y\":{\"k\":1}}");
    struct {
        const char *read;
        bool shallow;
        const char *change, *to;
        bool conflicts;
    } rows[] = {
        {"a/x", false, "a/x", "2", true},
        {"a/x", false, "a/z", "2", false},
        {"a", false, "a/y/k", "7", true},
        {"a", true, "a/y/k", "8", false},
        {"a", true, "a/new", "1", true},
        {"a/y", true, "a/y/k2", "1", true},
        {"a/y", true, "a/y", "5", true},
        {"a/y/k", false, "a/y", "6", true},
        {"a/none", false, "a/other", "1", false},
        {"a/none", false, "a/none", "1", true},
        {"b", false, "b", "1", true},
        {"c", false, "d", "1", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stet_tx *tx;
        stet_value v;
        OK(stet_tx_begin(s, "", &tx, &err));
        stet_status st = rows[i].shallow ? stet_tx_get_shallow(tx, rows[i].read, NULL, &v, &err)
                                         : stet_tx_get(tx, rows[i].read, NULL, &v, &err);
        assert_true(st == STET_OK || st == STET_NOT_FOUND);
        stet_error_clear(&err);
        OK(stet_tx_set(tx, "result", NULL, stet_value_int((int64_t)i), &err));
        int64_t seq = set(other, "", rows[i].change, rows[i].to);
        st = stet_tx_commit(tx, NULL, &err);
        if (st != (rows[i].conflicts ? STET_CONFLICT : STET_OK))
            print_message("row %zu: %s %s\n", i, stet_status_name(st), err.message);
        assert_int_equal(st, rows[i].conflicts ? STET_CONFLICT : STET_OK);
        if (st == STET_CONFLICT) {
            assert_int_equal(stet_value_as_int(stet_value_get(err.details, "seq")), seq);
            stet_value read = stet_value_get(err.details, "read"), id = stet_value_get(read, "id");
            assert_string_equal(stet_value_as_string(&id, NULL), rows[i].read[0] == 'b' ? "b" : "a");
            stet_error_clear(&err);
        }
    }
    stet_space_close(other);
    done(s);
    free(path);
}

static void blind_patches_do_not_conflict(void **state) {
    (void)state;
    char *path = fresh_path();
    stet_space *s = again(path), *other = again(path);
    set(s, "", "n", "5");
    stet_tx *one;
    OK(stet_tx_begin(s, "", &one, &err));
    stet_value ops = json("[{\"op\":\"increment\",\"path\":\"\"}]");
    OK(stet_tx_patch_value(one, "n", NULL, ops, &err));
    set(other, "", "n", "50");
    OK(stet_tx_commit(one, NULL, &err));
    expect(s, "", "n", -1, "51");
    expect(other, "", "n", -1, "51");
    /* but one that no longer applies is refused, and nothing changes */
    OK(stet_tx_begin(s, "", &one, &err));
    OK(stet_tx_patch_value(one, "n", NULL, ops, &err));
    OK(stet_tx_set(one, "witness", NULL, stet_value_int(1), &err));
    set(other, "", "n", "\"text\"");
    FAILS(stet_tx_commit(one, NULL, &err), STET_INVALID, "a number was expected");
    expect(s, "", "witness", -1, NULL);
    stet_value_release(ops);
    stet_space_close(other);
    done(s);
    free(path);
}

static void a_transaction_sees_one_snapshot_and_itself(void **state) {
    (void)state;
    char *path = fresh_path();
    stet_space *s = again(path), *other = again(path);
    set(s, "", "a", "1");
    set(s, "", "b", "1");
    stet_tx *tx;
    stet_value v;
    OK(stet_tx_begin(s, "", &tx, &err));
    OK(stet_tx_get(tx, "a", NULL, &v, &err));
    set(other, "", "b", "2");
    expect(s, "", "b", -1, "2"); /* the handle has moved on, the transaction has not */
    OK(stet_tx_get(tx, "b", NULL, &v, &err));
    holds_value(v, "1");
    OK(stet_tx_set(tx, "b/deep/er", NULL, stet_value_int(3), &err) == STET_INVALID ? STET_OK : STET_FAILED);
    stet_error_clear(&err);
    OK(stet_tx_set(tx, "c/deep/er", NULL, stet_value_int(3), &err));
    OK(stet_tx_get(tx, "c", NULL, &v, &err));
    holds_value(v, "{\"deep\":{\"er\":3}}");
    OK(stet_tx_delete(tx, "c", NULL, &err));
    FAILS(stet_tx_get(tx, "c", NULL, &v, &err), STET_NOT_FOUND, "no document");
    stet_tx_abort(tx);
    expect(s, "", "c", -1, NULL);
    stet_space_close(other);
    done(s);
    free(path);
}

static void preconditions(void **state) {
    (void)state;
    stet_space *s = fresh();
    stet_tx *tx;
    OK(stet_tx_begin(s, "", &tx, &err));
    OK(stet_tx_require_absent(tx, "event", NULL, &err));
    OK(stet_tx_set(tx, "event", NULL, stet_value_int(1), &err));
    OK(stet_tx_commit(tx, NULL, &err));
    OK(stet_tx_begin(s, "", &tx, &err));
    OK(stet_tx_require_absent(tx, "event", NULL, &err));
    OK(stet_tx_set(tx, "event", NULL, stet_value_int(2), &err));
    FAILS(stet_tx_commit(tx, NULL, &err), STET_CONFLICT, "exists already");
    char hex[STET_HASH_HEX];
    stet_hash_hex(stet_hash_value(stet_value_int(1)), hex);
    OK(stet_tx_begin(s, "", &tx, &err));
    OK(stet_tx_require_hash(tx, "event", NULL, hex, &err));
    OK(stet_tx_set(tx, "event", NULL, stet_value_int(3), &err));
    OK(stet_tx_commit(tx, NULL, &err));
    OK(stet_tx_begin(s, "", &tx, &err));
    OK(stet_tx_require_hash(tx, "event", NULL, hex, &err));
    OK(stet_tx_set(tx, "event", NULL, stet_value_int(4), &err));
    FAILS(stet_tx_commit(tx, NULL, &err), STET_CONFLICT, "another value");
    OK(stet_tx_begin(s, "", &tx, &err));
    OK(stet_tx_require_hash(tx, "absent", NULL, hex, &err));
    OK(stet_tx_set(tx, "event", NULL, stet_value_int(4), &err));
    FAILS(stet_tx_commit(tx, NULL, &err), STET_CONFLICT, "does not exist");
    OK(stet_tx_begin(s, "", &tx, &err));
    FAILS(stet_tx_require_hash(tx, "event", NULL, "12", &err), STET_INVALID, "64 hexadecimal");
    stet_tx_abort(tx);
    expect(s, "", "event", -1, "3");
    done(s);
}

static stet_status session_commit(stet_space *s, const char *session, int64_t local, const char *text,
                                  stet_commit_result *r) {
    stet_tx *tx;
    OK(stet_tx_begin(s, "", &tx, &err));
    OK(stet_tx_session(tx, session, local, &err));
    OK(stet_tx_set(tx, "s/v", NULL, json(text), &err));
    return stet_tx_commit(tx, r, &err);
}

static void sessions_replay(void **state) {
    (void)state;
    stet_space *s = fresh();
    stet_commit_result first, second;
    OK(session_commit(s, "client", 1, "\"one\"", &first));
    assert_true(first.changed && !first.replayed);
    OK(session_commit(s, "client", 2, "\"two\"", &second));
    OK(session_commit(s, "client", 1, "\"one\"", &second));
    assert_true(second.changed && second.replayed);
    assert_int_equal(second.seq, first.seq);
    expect(s, "", "s/v", -1, "\"two\"");
    FAILS(session_commit(s, "client", 1, "\"other\"", &second), STET_CONFLICT, "other content");
    OK(session_commit(s, "another", 1, "\"two\"", &second)); /* a no-op keeps its answer too */
    assert_true(!second.changed && !second.replayed);
    set(s, "", "s/v", "\"three\"");
    OK(session_commit(s, "another", 1, "\"two\"", &first));
    assert_true(!first.changed && first.replayed);
    assert_int_equal(first.seq, second.seq);
    expect(s, "", "s/v", -1, "\"three\"");
    stet_tx *tx;
    OK(stet_tx_begin(s, "", &tx, &err));
    FAILS(stet_tx_session(tx, "", 1, &err), STET_INVALID, "session name");
    FAILS(stet_tx_session(tx, "x", -1, &err), STET_INVALID, "local sequence");
    stet_tx_abort(tx);
    done(s);
}

static stet_status observe_commit(stet_space *s, const char *read, const char *code, stet_run_kind kind,
                                  stet_commit_result *out) {
    stet_tx *tx;
    stet_value v;
    stet_cell writes = {"o", NULL};
    stet_action_run run = STET_ACTION_RUN_INIT;
    run.key = (stet_action_key){"piece", NULL, "act"};
    run.implementation = code;
    run.run = kind;
    run.writes = &writes;
    run.write_count = 1;
    OK(stet_tx_begin(s, "", &tx, &err));
    stet_status st = stet_tx_get(tx, read, NULL, &v, &err);
    assert_true(st == STET_OK || st == STET_NOT_FOUND);
    stet_error_clear(&err);
    if (kind == STET_RUN_DEPENDENCIES) {
        OK(stet_tx_set(tx, "o", NULL, stet_value_int(5), &err));
        OK(stet_tx_set(tx, "made/k", NULL, stet_value_int(6), &err));
        OK(stet_tx_delete(tx, "in", NULL, &err));
    } else {
        OK(stet_tx_session(tx, "client", 9, &err));
    }
    OK(stet_tx_observe(tx, &run, &err));
    return stet_tx_commit(tx, out, &err);
}

/* A run that changed nothing is content, too: who ran, with which code, and what it read. */
static void an_observation_is_replayed_only_as_it_was(void **state) {
    (void)state;
    stet_space *s = fresh();
    stet_commit_result r;
    set(s, "", "in", "1");
    OK(observe_commit(s, "in", "code", STET_RUN_ACTION, &r));
    assert_true(!r.changed && !r.replayed);
    set(s, "", "other", "2"); /* the sequence is another one, the content is not */
    OK(observe_commit(s, "in", "code", STET_RUN_ACTION, &r));
    assert_true(!r.changed && r.replayed);
    FAILS(observe_commit(s, "in", "other code", STET_RUN_ACTION, &r), STET_CONFLICT, "other content");
    FAILS(observe_commit(s, "other", "code", STET_RUN_ACTION, &r), STET_CONFLICT, "other content");
    done(s);
}

static void collecting_dependencies_publishes_nothing(void **state) {
    (void)state;
    stet_space *s = fresh();
    stet_commit_result r;
    stet_value v;
    int64_t before, after;
    set(s, "", "in", "1");
    set(s, "", "o", "0");
    OK(stet_space_seq(s, &before, &err));
    OK(observe_commit(s, "in", "code", STET_RUN_DEPENDENCIES, &r));
    OK(stet_space_sync(s, &err));
    assert_false(r.changed);
    OK(stet_space_seq(s, &after, &err));
    assert_int_equal(after, before);
    expect(s, "", "o", -1, "0");
    expect(s, "", "in", -1, "1");
    FAILS(stet_space_get(s, "", "made", NULL, -1, &v, &err), STET_NOT_FOUND, "made");
    /* What it read is known. */
    OK(stet_action_get(s, "", &(stet_action_key){"piece", NULL, "act"}, &v, &err));
    stet_buf text = STET_BUF(0);
    stet_json_write(&text, v, STET_JSON_CANONICAL);
    assert_non_null(strstr(stet_buf_cstr(&text), "\"in\""));
    assert_non_null(strstr(stet_buf_cstr(&text), "\"state\":\"unknown\""));
    stet_buf_release(&text);
    stet_value_release(v);
    done(s);
}

static void scopes_are_identity(void **state) {
    (void)state;
    stet_space *s = fresh();
    OK(try_set(s, "", "doc", "user:x", "1", NULL));
    OK(try_set(s, "", "doc", "user:y", "2", NULL));
    OK(try_set(s, "", "doc", NULL, "3", NULL));
    stet_value v;
    OK(stet_space_get(s, "", "doc", "user:x", -1, &v, &err));
    assert_int_equal(stet_value_as_int(v), 1);
    OK(stet_space_get(s, "", "doc", "user:y", -1, &v, &err));
    assert_int_equal(stet_value_as_int(v), 2);
    OK(stet_space_get(s, "", "doc", "", -1, &v, &err));
    assert_int_equal(stet_value_as_int(v), 3);
    FAILS(stet_space_get(s, "", "doc", "user:z", -1, &v, &err), STET_NOT_FOUND, "of scope user:z");
    stet_tx *tx;
    OK(stet_tx_begin(s, "", &tx, &err));
    OK(stet_tx_delete(tx, "doc", "user:x", &err));
    OK(stet_tx_commit(tx, NULL, &err));
    FAILS(stet_space_get(s, "", "doc", "user:x", -1, &v, &err), STET_NOT_FOUND, "");
    OK(stet_space_get(s, "", "doc", "user:y", -1, &v, &err));
    done(s);
}

/* A handle remembers that a document is not there. It must not go on believing it. */
static void a_document_made_by_another_handle_is_seen(void **state) {
    (void)state;
    char *path = fresh_path();
    stet_space *s = again(path), *other = again(path);
    for (int i = 0; i < 3; i++) {
        char cell[16], json[16];
        snprintf(cell, sizeof cell, "new%d", i);
        snprintf(json, sizeof json, "%d", i);
        stet_tx *tx;
        stet_value v;
        OK(stet_tx_begin(s, "", &tx, &err));
        FAILS(stet_tx_get(tx, cell, NULL, &v, &err), STET_NOT_FOUND, "no document");
        OK(stet_tx_set(tx, "mine", NULL, stet_value_int(i), &err));
        set(other, "", cell, json);
        FAILS(stet_tx_commit(tx, NULL, &err), STET_CONFLICT, "has changed since");
        expect(s, "", cell, -1, json);
        set(other, "", "also", json); /* a name that neither has looked up here */
        OK(stet_tx_begin(s, "", &tx, &err));
        OK(stet_tx_set(tx, i ? "also" : cell, NULL, stet_value_int(7),
                       &err)); /* blind: the number given by the other */
        OK(stet_tx_commit(tx, NULL, &err));
        expect(other, "", i ? "also" : cell, -1, "7");
    }
    done(other);
    done(s);
    free(path);
}

/* A handle that has met many new names knows all there are, so that one more costs no look at the file. Two handles
 * make names by turns, alone and in groups that are stored or not, and gc takes some away: each always finds what is
 * there, and a name has one number. */
static void names_are_found_by_handles_that_know_all_of_them(void **state) {
    (void)state;
    enum { NAMES = 300, STEPS = 600 };
    static int model[NAMES];
    memset(model, 0, sizeof model);
    unsigned seed = 7;
    char *path = fresh_path(), cell[16], text[16];
    stet_space *at[2] = {again(path), again(path)};
    for (int step = 1; step <= STEPS; step++) {
        unsigned which = (unsigned)rand_r(&seed) % 4 == 0, action = (unsigned)rand_r(&seed) % 16;
        stet_space *s = at[which];
        if (action == 0) { /* a name without a document: the highest is kept, so two */
            stet_docname unused = {"unused", ""}, last = {"last", ""};
            OK(stet_db_begin_write(stet_space_db(s), &err));
            int64_t doc = stet_space_intern(s, &unused);
            assert_true(doc && doc == stet_space_intern(s, &unused));
            assert_true(stet_space_intern(s, &last) != doc);
            OK(stet_db_commit(stet_space_db(s), &err));
            stet_space_gc_report report;
            if (step % 2)
                OK(stet_space_gc(at[!which], false, &report, &err));
            continue;
        }
        if (action < 4) {
            int n = rand_r(&seed) % NAMES;
            snprintf(cell, sizeof cell, "n%d", n);
            snprintf(text, sizeof text, "%d", model[n]);
            expect(s, "", cell, -1, model[n] ? text : NULL);
            continue;
        }
        stet_group *g;
        int taken[8];
        size_t count = 1 + (size_t)rand_r(&seed) % 8;
        OK(stet_group_begin(s, "", &g, &err));
        for (size_t i = 0; i < count; i++) {
            stet_tx *tx;
            taken[i] = rand_r(&seed) % NAMES;
            snprintf(cell, sizeof cell, "n%d", taken[i]);
            OK(stet_tx_begin_in(g, &tx, &err));
            OK(stet_tx_set(tx, cell, NULL, stet_value_int(step), &err));
            OK(stet_group_add(g, tx, NULL, NULL, &err));
        }
        if (action > 5) {
            OK(stet_group_flush(g, &err));
            for (size_t i = 0; i < count; i++)
                model[taken[i]] = step;
        }
        stet_group_end(g);
    }
    stet_space_close(at[1]);
    stet_space *s = again(path); /* one that knows nothing yet */
    for (int n = 0; n < NAMES; n++) {
        snprintf(cell, sizeof cell, "n%d", n);
        snprintf(text, sizeof text, "%d", model[n]);
        expect(s, "", cell, -1, model[n] ? text : NULL);
        expect(at[0], "", cell, -1, model[n] ? text : NULL);
    }
    done(at[0]);
    done(s);
    free(path);
}

static void branches_fork_and_read_through(void **state) {
    (void)state;
    char *path = fresh_path();
    stet_space *s = again(path);
    set(s, "", "a", "1"); /* 1 */
    set(s, "", "b", "1"); /* 2 */
    OK(stet_branch_create(s, "dev", NULL, -1, &err));
    set(s, "", "a", "2");    /* 3 */
    set(s, "dev", "b", "9"); /* 4 */
    set(s, "", "c", "1");    /* 5 */
    expect(s, "dev", "a", -1, "1");
    expect(s, "dev", "b", -1, "9");
    expect(s, "dev", "c", -1, NULL);
    expect(s, "", "b", -1, "1");
    expect(s, "dev", "b", 3, "1");
    expect(s, "dev", "b", 1, NULL);
    expect(s, "dev", "a", 5, "1");
    OK(stet_branch_create(s, "dev2", "dev", -1, &err));
    OK(stet_branch_create(s, "past", "", 1, &err));
    expect(s, "past", "a", -1, "1");
    expect(s, "past", "b", -1, NULL);
    OK(patch(s, "dev2", "b", "[{\"op\":\"increment\",\"path\":\"\"}]", NULL)); /* 6: a patch on what was read through */
    expect(s, "dev2", "b", -1, "10");
    expect(s, "dev", "b", -1, "9");
    expect(s, "dev2", "a", -1, "1");
    stet_tx *tx;
    OK(stet_tx_begin(s, "dev2", &tx, &err));
    OK(stet_tx_delete(tx, "a", NULL, &err));
    OK(stet_tx_commit(tx, NULL, &err)); /* 7 */
    expect(s, "dev2", "a", -1, NULL);
    expect(s, "dev2", "a", 6, "1");
    expect(s, "dev", "a", -1, "1");
    /* changes on the parent after the fork do not disturb a transaction on the branch */
    stet_value v;
    OK(stet_tx_begin(s, "dev", &tx, &err));
    OK(stet_tx_get(tx, "a", NULL, &v, &err));
    OK(stet_tx_set(tx, "z", NULL, stet_value_int(1), &err));
    stet_space *other = again(path);
    set(other, "", "a", "77");
    OK(stet_tx_commit(tx, NULL, &err));
    FAILS(stet_branch_create(s, "dev", NULL, -1, &err), STET_CONFLICT, "exists");
    FAILS(stet_branch_create(s, "x", "nope", -1, &err), STET_NOT_FOUND, "no branch \"nope\"");
    FAILS(stet_branch_create(s, "x", NULL, 4711, &err), STET_NOT_FOUND, "is at");
    FAILS(stet_branch_create(s, "", NULL, -1, &err), STET_INVALID, "default branch");
    FAILS(stet_branch_delete(s, "", &err), STET_INVALID, "default branch");
    FAILS(stet_branch_delete(s, "nope", &err), STET_NOT_FOUND, "no branch");
    /* deleted: gone at once for others too, children go on, the name is free */
    expect(other, "dev", "b", -1, "9");
    OK(stet_tx_begin(other, "dev", &tx, &err));
    OK(stet_tx_set(tx, "q", NULL, stet_value_int(1), &err));
    OK(stet_branch_delete(s, "dev", &err));
    FAILS(stet_tx_commit(tx, NULL, &err), STET_NOT_FOUND, "deleted");
    FAILS(stet_space_get(other, "dev", "b", NULL, -1, &v, &err), STET_NOT_FOUND, "no branch");
    expect(other, "dev2", "b", -1, "10");
    OK(stet_branch_create(s, "dev", NULL, -1, &err));
    expect(s, "dev", "a", -1, "77");
    stet_space_close(other);
    done(s);
    s = again(path);
    stet_space_gc_report report;
    OK(stet_space_gc(s, false, &report, &err));
    assert_int_equal(report.branches, 0); /* dev2 still reads through the old dev */
    OK(stet_branch_delete(s, "dev2", &err));
    OK(stet_space_gc(s, true, &report, &err));
    assert_int_equal(report.branches, 2);
    OK(stet_space_gc(s, false, &report, &err));
    assert_int_equal(report.branches, 2);
    assert_int_equal(report.commits, 4);
    expect(s, "", "a", 3, "2");
    expect(s, "", "b", -1, "1");
    done(s);
    free(path);
}

static void long_chains_are_read_at_every_sequence(void **state) {
    (void)state;
    char *path = fresh_path();
    stet_space *s = again(path);
    stet_space_set_cache(s, 0);
    set(s, "", "doc", "{\"n\":0,\"list\":[]}");
    stet_value big = stet_value_object(); /* beyond what is kept in the head */
    for (int i = 0; i < 300; i++) {
        char key[32];
        snprintf(key, sizeof key, "key%03d", i);
        stet_value_put(&big, key, stet_value_stringf("value %d of a large document", i));
    }
    stet_tx *tx;
    OK(stet_tx_begin(s, "", &tx, &err));
    OK(stet_tx_set(tx, "big", NULL, big, &err));
    OK(stet_tx_commit(tx, NULL, &err));
    stet_group *g;
    OK(stet_group_begin(s, "", &g, &err));
    stet_docname doc = {"doc", NULL}, large = {"big", NULL};
    stet_path p = STET_PATH_INIT;
    for (int i = 1; i <= 400; i++) {
        OK(stet_tx_begin_in(g, &tx, &err));
        OK(stet_tx_write(tx, &doc, path_of(&p, "/value/n"), stet_value_int(i), &err));
        OK(stet_tx_write(tx, &large, path_of(&p, "/value/key007"), stet_value_int(i), &err));
        OK(stet_group_add(g, tx, NULL, NULL, &err));
        if (i % 37 == 0)
            OK(stet_group_flush(g, &err));
    }
    OK(stet_group_flush(g, &err));
    stet_group_end(g);
    stet_space_stats stats;
    OK(stet_space_stat(s, &stats, &err));
    assert_int_equal(stats.seq, 402);
    assert_true(stats.snapshots >= 6);
    for (int64_t i = 400; i >= 1; i -= 3) {
        char want[32];
        snprintf(want, sizeof want, "%lld", (long long)i);
        expect(s, "", "doc/n", i + 2, want);
        expect(s, "", "big/key007", i + 2, want);
        expect(s, "", "big/key008", i + 2, "\"value 8 of a large document\"");
    }
    done(s);
    s = again(path);
    expect(s, "", "big/key007", -1, "400");
    done(s);
    stet_path_release(&p);
    free(path);
}

static void history_and_lists(void **state) {
    (void)state;
    stet_space *s = fresh();
    stet_arena a = STET_ARENA_INIT;
    set(s, "", "doc", "{\"n\":1}");
    OK(patch(s, "", "doc", "[{\"op\":\"increment\",\"path\":\"/n\"}]", NULL));
    stet_tx *tx;
    OK(stet_tx_begin(s, "", &tx, &err));
    OK(stet_tx_delete(tx, "doc", NULL, &err));
    OK(stet_tx_commit(tx, NULL, &err));
    set(s, "", "doc", "4");
    stet_docname name = {"doc", NULL};
    stet_revision *revs;
    size_t count;
    int64_t next;
    OK(stet_space_history(s, 0, &name, 0, 3, &a, &revs, &count, &next, &err));
    assert_int_equal(count, 3);
    assert_int_equal(next, 2);
    assert_int_equal(revs[0].kind, STET_REVISION_SET);
    assert_int_equal(revs[1].kind, STET_REVISION_DELETE);
    assert_int_equal(revs[2].kind, STET_REVISION_PATCH);
    holds_value(revs[2].payload, "[{\"op\":\"increment\",\"path\":\"/value/n\",\"by\":1}]");
    for (size_t i = 0; i < count; i++)
        stet_value_release(revs[i].payload);
    OK(stet_space_history(s, 0, &name, next, 3, &a, &revs, &count, &next, &err));
    assert_int_equal(count, 1);
    assert_int_equal(next, 0);
    holds_value(revs[0].payload, "{\"value\":{\"n\":1}}");
    stet_value_release(revs[0].payload);
    stet_docname none = {"none", NULL};
    OK(stet_space_history(s, 0, &none, 0, 3, &a, &revs, &count, &next, &err));
    assert_int_equal(count, 0);
    for (int i = 0; i < 5; i++) {
        char cell[32];
        snprintf(cell, sizeof cell, "list:%d", i);
        set(s, "", cell, "1");
    }
    OK(stet_branch_create(s, "b", NULL, -1, &err));
    set(s, "b", "list:9", "1");
    OK(stet_tx_begin(s, "b", &tx, &err));
    OK(stet_tx_delete(tx, "list:0", NULL, &err));
    OK(stet_tx_commit(tx, NULL, &err));
    stet_doc_info *docs;
    bool more;
    int64_t branch;
    OK(stet_space_branch(s, "b", &branch, &err));
    OK(stet_space_list(s, branch, &(stet_doc_filter){.prefix = "list:", .limit = 3}, &a, &docs, &count, &more, &err));
    assert_int_equal(count, 3);
    assert_true(more);
    assert_string_equal(docs[0].name.id, "list:1");
    OK(stet_space_list(s, branch, &(stet_doc_filter){.prefix = "list:", .limit = 3, .after = &docs[2].name}, &a, &docs,
                       &count, &more, &err));
    assert_int_equal(count, 2);
    assert_false(more);
    assert_string_equal(docs[1].name.id, "list:9");
    OK(stet_space_list(s, 0, &(stet_doc_filter){.limit = 100}, &a, &docs, &count, &more, &err));
    assert_int_equal(count, 6);
    stet_arena_release(&a);
    done(s);
}

static void feeds_tell_every_commit_once(void **state) {
    (void)state;
    char *path = fresh_path();
    stet_space *s = again(path);
    set(s, "", "a/x", "0");
    OK(stet_branch_create(s, "side", NULL, -1, &err));
    stet_feed *f;
    OK(stet_feed_open(s, 0, -1, &f, &err));
    stet_docname name = {"a", NULL};
    stet_path p = STET_PATH_INIT;
    OK(stet_feed_add(f, &name, path_of(&p, "/value/x"), STET_RECURSIVE, &err));
    pid_t child = fork();
    if (child == 0) {
        stet_space *mine = again(path);
        for (int i = 1; i <= 40; i++) {
            char text[32];
            snprintf(text, sizeof text, "%d", i);
            set(mine, "", "a/x", text);
            set(mine, "", "a/y", text);     /* not asked for */
            set(mine, "side", "a/x", text); /* another branch */
            set(mine, "", "a/x", text);     /* changes nothing */
        }
        _exit(0);
    }
    int64_t last = 0;
    for (int i = 1; i <= 40; i++) {
        const stet_commit_record *r;
        OK(stet_feed_next(f, 20000, &r, &err));
        assert_true(r->seq > last);
        last = r->seq;
        assert_int_equal(r->len, 1);
        assert_string_equal(r->at[0].name.id, "a");
        assert_int_equal(r->at[0].len, 1);
        char text[32];
        snprintf(text, sizeof text, "%d", i);
        expect(s, "", "a/x", r->seq, text);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    const stet_commit_record *r;
    FAILS(stet_feed_next(f, 0, &r, &err), STET_BUSY, "no change");
    set(s, "", "a", "1"); /* own commits too; a whole replaced touches what was below */
    OK(stet_feed_next(f, 0, &r, &err));
    stet_feed_close(f);
    FAILS(stet_feed_open(s, 0, 99999, &f, &err), STET_NOT_FOUND, "is at");
    stet_path_release(&p);
    done(s);
    free(path);
}

static void metadata_stands_beside_the_value(void **state) {
    (void)state;
    stet_space *s = fresh();
    stet_tx *tx;
    stet_docname name = {"piece", NULL};
    stet_path p = STET_PATH_INIT;
    OK(stet_tx_begin(s, "", &tx, &err));
    OK(stet_tx_put(tx, &name, json("{\"value\":{\"total\":6},\"pattern\":{\"name\":\"totals\"}}"), &err));
    OK(stet_tx_commit(tx, NULL, &err));
    expect(s, "", "piece/total", -1, "6");
    OK(stet_tx_begin(s, "", &tx, &err));
    stet_value v;
    OK(stet_tx_read(tx, NULL, &name, path_of(&p, "/pattern/name"), STET_RECURSIVE, &v, &err));
    holds_value(v, "\"totals\"");
    OK(stet_tx_write(tx, &name, path_of(&p, "/process/generation"), stet_value_int(1), &err));
    OK(stet_tx_commit(tx, NULL, &err));
    set(s, "", "piece", "7"); /* the value alone */
    stet_doc_state d;
    OK(stet_space_load(s, 0, &name, -1, &d, &err));
    holds_value(d.value, "{\"value\":7,\"pattern\":{\"name\":\"totals\"},\"process\":{\"generation\":1}}");
    stet_value_release(d.value);
    OK(stet_tx_begin(s, "", &tx, &err));
    FAILS(stet_tx_put(tx, &name, stet_value_int(3), &err), STET_INVALID, "an object");
    stet_tx_abort(tx);
    stet_path_release(&p);
    done(s);
}

static void bad_input_changes_nothing(void **state) {
    (void)state;
    stet_space *s = fresh();
    set(s, "", "a", "{\"x\":1}");
    char longest[600];
    memset(longest, 'i', sizeof longest);
    longest[513] = 0;
    FAILS(try_set(s, "", longest, NULL, "1", NULL), STET_LIMIT, "512");
    longest[512] = 0;
    OK(try_set(s, "", longest, NULL, "1", NULL));
    FAILS(try_set(s, "", "", NULL, "1", NULL), STET_INVALID, "empty document id");
    FAILS(try_set(s, "", "/x", NULL, "1", NULL), STET_INVALID, "empty document id");
    FAILS(try_set(s, "", "a\nb", NULL, "1", NULL), STET_INVALID, "control character");
    FAILS(try_set(s, "", "a\xc2\x85", NULL, "1", NULL), STET_INVALID, "control character");
    FAILS(try_set(s, "", "a\xff", NULL, "1", NULL), STET_INVALID, "UTF-8");
    FAILS(try_set(s, "", "a~2", NULL, "1", NULL), STET_INVALID, "~0");
    FAILS(try_set(s, "", "a", "s\x01", "1", NULL), STET_INVALID, "scope");
    FAILS(try_set(s, "", "a/x/y", NULL, "1", NULL), STET_INVALID, "no object or array");
    FAILS(try_set(s, "nope", "a", NULL, "1", NULL), STET_NOT_FOUND, "no branch");
    stet_value v;
    FAILS(stet_space_get(s, "", "a/y", NULL, -1, &v, &err), STET_NOT_FOUND, "nothing at a/y");
    FAILS(stet_space_get(s, "", "a/x/y", NULL, -1, &v, &err), STET_NOT_FOUND, "nothing at");
    FAILS(stet_space_get(s, "", "b", NULL, -1, &v, &err), STET_NOT_FOUND, "no document \"b\"");
    FAILS(stet_space_name_check("Upper", &err), STET_INVALID, "space name");
    FAILS(stet_space_name_check("../x", &err), STET_INVALID, "space name");
    FAILS(stet_space_name_check("", &err), STET_INVALID, "space name");
    /* too deep, too large */
    stet_value deep = stet_value_int(1);
    for (int i = 0; i < 511; i++) {
        stet_value outer = stet_value_array();
        stet_value_push(&outer, deep);
        deep = outer;
    }
    stet_tx *tx;
    OK(stet_tx_begin(s, "", &tx, &err));
    FAILS(stet_tx_set(tx, "deep", NULL, stet_value_retain(deep), &err), STET_LIMIT, "511");
    OK(stet_tx_set(tx, "deep", NULL, stet_value_retain(stet_value_at(deep, 0)), &err));
    OK(stet_tx_commit(tx, NULL, &err));
    stet_value_release(deep);
    char *huge = malloc(33 << 20);
    memset(huge, 'x', 33 << 20);
    stet_value text = stet_value_string_n(huge, 33 << 20);
    free(huge);
    OK(stet_tx_begin(s, "", &tx, &err));
    OK(stet_tx_set(tx, "huge/a", NULL, stet_value_retain(text), &err));
    OK(stet_tx_commit(tx, NULL, &err));
    OK(stet_tx_begin(s, "", &tx, &err));
    OK(stet_tx_set(tx, "huge/b", NULL, text, &err));
    FAILS(stet_tx_commit(tx, NULL, &err), STET_LIMIT, "bytes of text");
    FAILS(stet_space_get(s, "", "huge/b", NULL, -1, &v, &err), STET_NOT_FOUND, "");
    int64_t seq;
    OK(stet_space_seq(s, &seq, &err));
    assert_int_equal(seq, 4);
    done(s);
}

static void hostile_files_are_refused(void **state) {
    (void)state;
    stet_space *s;
    OK(stet_file_replace("text.db", "this is no database, but long enough to be looked at", 52, 0644, &err));
    FAILS(stet_space_open_path("text.db", "x", 0, &s, &err), STET_CORRUPT, "text.db");
    FAILS(stet_space_open_path("none.db", "x", STET_SPACE_MUST_EXIST, &s, &err), STET_NOT_FOUND, "none.db");
    FAILS(stet_space_open_path("none.db", "x", STET_SPACE_READ_ONLY, &s, &err), STET_NOT_FOUND, "none.db");
    assert_false(stet_file_exists("none.db"));
    s = again("good.db");
    set(s, "", "a", "{\"x\":1}");
    stet_space *reader;
    OK(stet_space_open_path("good.db", "x", STET_SPACE_READ_ONLY, &reader, &err));
    FAILS(try_set(reader, "", "a", NULL, "2", NULL), STET_DENIED, "read-only");
    expect(reader, "", "a/x", -1, "1");
    stet_space_close(reader);
    stet_db_exec(stet_space_db(s), "PRAGMA user_version=99");
    OK(stet_db_status(stet_space_db(s), &err));
    stet_space_close(s);
    FAILS(stet_space_open_path("good.db", "x", 0, &s, &err), STET_UNSUPPORTED, "version 99");
    /* truncated in the middle of a page */
    s = again("cut.db");
    for (int i = 0; i < 50; i++) {
        char cell[32];
        snprintf(cell, sizeof cell, "d%d/x", i);
        set(s, "", cell, "\"some text that fills pages of the database\"");
    }
    stet_space_close(s);
    assert_int_equal(truncate("cut.db", 9000), 0);
    stet_value v;
    stet_status st = stet_space_open_path("cut.db", "x", 0, &s, &err);
    if (st == STET_OK) {
        st = stet_space_get(s, "", "d49/x", NULL, -1, &v, &err);
        stet_space_close(s);
    }
    assert_int_equal(st, STET_CORRUPT);
    stet_error_clear(&err);
}

static void damage_is_found_and_derived_tables_rebuilt(void **state) {
    (void)state;
    stet_space *s = again("damage.db");
    for (int i = 0; i < 100; i++)
        OK(patch(s, "", "n", "[{\"op\":\"increment\",\"path\":\"/n\"}]", NULL));
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    stet_db_exec(stet_space_db(s),
                 "UPDATE head SET value = CAST('{\"value\":{\"n\":7}}' AS BLOB); DELETE FROM snapshot");
    OK(stet_space_check(s, false, &problems, &found, &repaired, &err));
    assert_int_equal(found, 1);
    assert_int_equal(repaired, 0);
    OK(stet_space_check(s, true, &problems, &found, &repaired, &err));
    assert_int_equal(repaired, 1);
    expect(s, "", "n/n", -1, "100");
    expect(s, "", "n/n", 50, "50");
    OK(patch(s, "", "n", "[{\"op\":\"increment\",\"path\":\"/n\"}]", NULL));
    OK(stet_space_check(s, false, &problems, &found, &repaired, &err));
    assert_int_equal(found, 0);
    /* A commit is damaged: reading past it is an error that names the document and the way out. */
    stet_db_exec(stet_space_db(s), "UPDATE commits SET body = x'ff', changes = x'0201' WHERE seq = 60");
    stet_value v;
    FAILS(stet_space_get(s, "", "n/n", NULL, 62, &v, &err), STET_CORRUPT, "document \"n\": commit 60");
    expect(s, "", "n/n", -1, "101");
    stet_buf_clear(&problems);
    OK(stet_space_check(s, true, &problems, &found, &repaired, &err));
    assert_non_null(strstr(stet_buf_cstr(&problems), "commit 60 is damaged\n"));
    assert_non_null(
        strstr(stet_buf_cstr(&problems), "lost: document \"n\": its revisions at 60 to 99; it is what it was\n"));
    assert_int_equal(found, repaired + 1);
    FAILS(stet_space_get(s, "", "n/n", NULL, 62, &v, &err), STET_CORRUPT, "at sequence 60 is lost");
    expect(s, "", "n/n", 59, "59");
    expect(s, "", "n/n", -1, "101");
    OK(stet_space_check(s, false, &problems, &found, &repaired, &err));
    assert_int_equal(found, 0);
    stet_buf_release(&problems);
    stet_space_close(s);
}

/* Documents small and large, patched, deleted, on branches, replayed: as they were, and with checksums. */
static void a_file_without_checksums_is_taken_over(void **state) {
    (void)state;
    stet_space *s = again("old.db");
    char large[4000] = "\"";
    memset(large + 1, 'x', sizeof large - 3);
    large[sizeof large - 2] = '"';
    set(s, "", "large", large);
    set(s, "", "a/k", "1");
    OK(stet_branch_create(s, "b", "", -1, &err));
    set(s, "b", "a/k", "2");
    set(s, "b", "new", "3");
    for (int i = 0; i < 70; i++)
        OK(patch(s, "", "n", "[{\"op\":\"increment\",\"path\":\"/n\"}]", NULL));
    OK(patch(s, "", "large", "[{\"op\":\"replace\",\"path\":\"\",\"value\":5}]", NULL));
    stet_tx *tx;
    OK(stet_tx_begin(s, "", &tx, &err));
    OK(stet_tx_set(tx, "replayed", NULL, stet_value_int(1), &err));
    OK(stet_tx_session(tx, "client", 7, &err));
    OK(stet_tx_commit(tx, NULL, &err));
    OK(stet_branch_create(s, "gone", "", -1, &err));
    set(s, "gone", "a/k", "9");
    OK(stet_branch_delete(s, "gone", &err));
    stet_space_gc_report report;
    OK(stet_space_gc(s, false, &report, &err));
    assert_int_equal(report.commits, 1);
    without_sums(stet_space_db(s));
    /* One commit is damaged already: it does not decode, so it gets no checksum. */
    stet_db_exec(stet_space_db(s), "UPDATE commits SET changes = x'01ff' WHERE seq = 40");
    OK(stet_db_status(stet_space_db(s), &err));
    stet_space_close(s);
    s = again("old.db");
    expect(s, "", "large", -1, "5");
    expect(s, "", "large", 1, large);
    expect(s, "", "a/k", -1, "1");
    expect(s, "b", "a/k", -1, "2");
    expect(s, "b", "new", -1, "3");
    expect(s, "", "n/n", -1, "70");
    OK(stet_tx_begin(s, "", &tx, &err));
    OK(stet_tx_set(tx, "replayed", NULL, stet_value_int(1), &err));
    OK(stet_tx_session(tx, "client", 7, &err));
    stet_commit_result again_result;
    OK(stet_tx_commit(tx, &again_result, &err));
    assert_true(again_result.replayed);
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    OK(stet_space_check(s, false, &problems, &found, &repaired, &err));
    assert_string_equal(stet_buf_cstr(&problems),
                        "commit 40 is damaged\ndocument \"n\": its revision at 40 is damaged\n");
    /* And each of them vouches for what it is in. */
    stet_db_exec(stet_space_db(s), "UPDATE document SET written = 1 WHERE id = 'new'");
    stet_space_close(s);
    s = again("old.db");
    stet_value v;
    FAILS(stet_space_get(s, "", "new", NULL, -1, &v, &err), STET_CORRUPT, "the name of document \"new\" is damaged");
    OK(stet_space_check(s, true, &problems, &found, &repaired, &err));
    expect(s, "b", "new", -1, "3");
    FAILS(stet_space_get(s, "", "new", NULL, -1, &v, &err), STET_NOT_FOUND, "new");
    stet_buf_release(&problems);
    done(s);
}

static void cells_as_text(void **state) {
    (void)state;
    struct {
        const char *cell, *id, *printed;
        bool meta;
    } rows[] = {{"a", "a", "a", false},
                {"a/b~1c/~0", "a", "a/b~1c/~0", false},
                {"file:src~1x.c/hash", "file:src/x.c", "file:src~1x.c/hash", false},
                {"p/process/0", "p", "p//process/0", true},
                {"p", "p", "p", true},
                {"a/", "a", "a/", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *id;
        stet_path p = STET_PATH_INIT;
        stet_buf b = STET_BUF(0);
        OK(stet_cell_parse(rows[i].cell, rows[i].meta, &id, &p, &err));
        assert_string_equal(id, rows[i].id);
        stet_cell_print(id, stet_path_ref(&p), &b);
        assert_string_equal(stet_buf_cstr(&b), rows[i].printed);
        stet_free(id);
        stet_path_release(&p);
        stet_buf_release(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_and_keeps),
        cmocka_unit_test(a_write_that_changes_nothing_is_none),
        cmocka_unit_test(reads_conflict_with_later_changes),
        cmocka_unit_test(blind_patches_do_not_conflict),
        cmocka_unit_test(a_transaction_sees_one_snapshot_and_itself),
        cmocka_unit_test(preconditions),
        cmocka_unit_test(sessions_replay),
        cmocka_unit_test(an_observation_is_replayed_only_as_it_was),
        cmocka_unit_test(collecting_dependencies_publishes_nothing),
        cmocka_unit_test(scopes_are_identity),
        cmocka_unit_test(a_document_made_by_another_handle_is_seen),
        cmocka_unit_test(names_are_found_by_handles_that_know_all_of_them),
        cmocka_unit_test(branches_fork_and_read_through),
        cmocka_unit_test(long_chains_are_read_at_every_sequence),
        cmocka_unit_test(history_and_lists),
        cmocka_unit_test(feeds_tell_every_commit_once),
        cmocka_unit_test(metadata_stands_beside_the_value),
        cmocka_unit_test(bad_input_changes_nothing),
        cmocka_unit_test(hostile_files_are_refused),
        cmocka_unit_test(damage_is_found_and_derived_tables_rebuilt),
        cmocka_unit_test(a_file_without_checksums_is_taken_over),
        cmocka_unit_test(cells_as_text),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
