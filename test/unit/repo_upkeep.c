/* repo_upkeep.c - maintenance of the repository of calls: gc, excising, check and repair; and the builtins. */

#include "../expect.h"

#include "../faults.h"
#include "../repo_kit.h"
#include "os/clock.h"
#include "os/file.h"
#include "repo/builtin.h"
#include "repo/pack.h"

static const stet_repo_gc_opts now = {.grace_s = -1}, at_once = {.grace_s = 0};

static int64_t late(void) {
    static int64_t later;
    later = later ? later : 2000000000ll * 1000000000ll;
    return later;
}

static int64_t swept(stet_repo *r, const stet_repo_gc_opts *o) {
    stet_repo_gc_report report;
    OK(stet_repo_gc(r, o, &report, &err));
    return report.objects;
}

static void gc_keeps_what_a_ref_reaches(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("gc.db");
    stet_hash a = kit_commit(r, NULL, 0, "a"), b = kit_commit(r, &a, 1, "b"), lone = kit_put(r, "[\"nobody\",1]");
    stet_hash got;
    OK(stet_repo_swap(r, &(stet_ref_swap){"refs/heads/main", NULL, &b}, 1, &err));
    stet_exec e = kit_exec(r, kit_call(r, 1), "\"pinned\"");
    OK(stet_repo_pin_exec(r, &e, &got, &err));
    stet_exec old = kit_exec(r, kit_call(r, 2), "\"first\""), new = kit_exec(r, old.node, "\"second\"");
    stet_hash first, second;
    OK(stet_repo_pin_exec(r, &old, &first, &err));
    OK(stet_repo_pin_exec(r, &new, &second, &err));
    stet_exec tried = kit_exec(r, kit_call(r, 3), "\"never pinned\"");
    stet_hash try;
    OK(stet_repo_put_exec(r, &tried, &try, &err));
    assert_int_equal(swept(r, &now), 0); /* everything is young */
    stet_repo_gc_report report;
    OK(stet_repo_gc(r, &(stet_repo_gc_opts){.dry_run = true, .grace_s = 0}, &report, &err));
    int64_t would = report.objects;
    assert_true(would >= 2);
    bool there;
    OK(stet_repo_has(r, lone, &there, &err));
    assert_true(there);
    stet_clock_hook = late;
    assert_int_equal(swept(r, &now), would);
    assert_int_equal(swept(r, &now), 0);
    stet_clock_hook = NULL;
    OK(stet_repo_has(r, lone, &there, &err));
    assert_false(there);
    OK(stet_repo_has(r, first, &there, &err)); /* its pin was replaced: records of a call are only added */
    assert_true(there);
    stet_hash *all;
    size_t n;
    OK(stet_repo_execs(r, old.node, &all, &n, &err));
    assert_int_equal(n, 2);
    free(all);
    OK(stet_repo_has(r, try, &there, &err)); /* of a call that nothing reaches */
    assert_false(there);
    OK(stet_repo_has(r, a, &there, &err)); /* history */
    assert_true(there);
    kit_sound(r);
    stet_repo_close(r);
}

/* What is put again is young again, and keeps what it names. */
static void gc_leaves_the_young(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("young.db");
    stet_hash inner = kit_put(r, "[1,2]"), list;
    stet_db_exec(r->db, "UPDATE object SET added_s = 1");
    list = kit_put(r, "[[1,2]]");
    stet_db_exec(r->db,
                 "UPDATE object SET added_s = 1 WHERE type = 0 AND id <> (SELECT id FROM object ORDER BY number DESC "
                 "LIMIT 1)");
    assert_int_equal(swept(r, &now), 0);
    bool there;
    OK(stet_repo_has(r, inner, &there, &err));
    assert_true(there);
    stet_db_exec(r->db, "UPDATE object SET added_s = 1");
    kit_put(r, "[[1,2]]"); /* the same again */
    assert_int_equal(swept(r, &now), 0);
    stet_db_exec(r->db, "UPDATE object SET added_s = 1");
    assert_int_equal(swept(r, &now), 4);
    OK(stet_repo_has(r, list, &there, &err));
    assert_false(there);
    stet_repo_close(r);
}

static void gc_ends_what_is_done(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("done.db");
    stet_hash dag[2];
    stet_attempt a[2] = {{.done = true, .detail = stet_value_null()}, {.done = false, .detail = stet_value_null()}};
    for (int i = 0; i < 2; i++) {
        char ref[512];
        stet_value v = stet_value_int(i);
        OK(stet_repo_put_result(r, v, &dag[i], &err));
        stet_uuid(a[i].execution);
        OK(stet_attempt_add(r, &a[i], &err));
        snprintf(ref, sizeof ref, "refs/exec/%s", a[i].execution);
        OK(stet_repo_swap(r, &(stet_ref_swap){ref, NULL, &dag[i]}, 1, &err));
    }
    stet_db_exec(r->db, "UPDATE object SET added_s = 1");
    stet_repo_gc_report report;
    OK(stet_repo_gc(r, &at_once, &report, &err));
    assert_int_equal(report.refs, 1);
    assert_int_equal(report.attempts, 1);
    assert_int_equal(report.objects, 3);
    stet_value v;
    OK(stet_repo_dag_value(r, dag[1], &v, &err));
    kit_sound(r);
    stet_repo_close(r);
}

/* A call that runs at a remote has no ref here: its attempt keeps it, with the records of its tries. */
static void gc_keeps_calls_that_are_under_way(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("live.db");
    stet_attempt a = {.node = kit_call(r, 1), .detail = stet_value_null()};
    stet_exec failed = kit_exec(r, a.node, "\"tried\"");
    stet_hash exec;
    bool there;
    OK(stet_repo_put_exec(r, &failed, &exec, &err));
    stet_uuid(a.execution);
    OK(stet_attempt_add(r, &a, &err));
    stet_db_exec(r->db, "UPDATE object SET added_s = 1");
    assert_int_equal(swept(r, &at_once), 0);
    OK(stet_repo_has(r, exec, &there, &err));
    assert_true(there);
    kit_sound(r);
    a.done = true;
    OK(stet_attempt_move(r, &a, a.state, &err));
    assert_true(swept(r, &at_once) > 0);
    OK(stet_repo_has(r, a.node, &there, &err));
    assert_false(there);
    kit_sound(r);
    stet_repo_close(r);
}

static void gc_stops_where_something_is_damaged(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("stop.db");
    stet_hash c = kit_commit(r, NULL, 0, "c");
    OK(stet_repo_swap(r, &(stet_ref_swap){"refs/heads/main", NULL, &c}, 1, &err));
    kit_put(r, "\"nobody\"");
    stet_db_exec(r->db, "UPDATE object SET added_s = 1; DELETE FROM object WHERE type = 2");
    stet_repo_gc_report report;
    int64_t before = kit_count(r, "SELECT count(*) FROM object");
    FAILS(stet_repo_gc(r, &at_once, &report, &err), STET_CORRUPT, "nothing was deleted");
    assert_int_equal(kit_count(r, "SELECT count(*) FROM object"), before);
    stet_repo_close(r);
}

/* Numbers that only damage can make: they cost no memory, and what a ref reaches stays. */
static void gc_bears_numbers_of_any_size(void **state) {
    (void)state;
    static const char *const damage[] = {"UPDATE object SET number = number + 9223372036854770000",
                                         "UPDATE object SET number = -9223372036854770000 - number",
                                         "UPDATE object SET number = 9223372036854775807 WHERE number = 1"};
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        char name[30];
        snprintf(name, sizeof name, "number%zu.db", i);
        stet_repo *r = kit_fresh(name);
        stet_hash c = kit_commit(r, NULL, 0, "c"), lone = kit_put(r, "\"nobody\"");
        OK(stet_repo_swap(r, &(stet_ref_swap){"refs/heads/main", NULL, &c}, 1, &err));
        stet_db_exec(r->db, "UPDATE object SET added_s = 1");
        stet_db_exec(r->db, damage[i]);
        assert_int_equal(swept(r, &at_once), 1);
        bool there;
        OK(stet_repo_has(r, lone, &there, &err));
        assert_false(there);
        kit_sound(r);
        stet_repo_close(r);
    }
}

static bool file_holds(const char *path, const char *text) {
    stet_buf b = STET_BUF(0);
    if (stet_file_read(path, 0, &b, NULL) != STET_OK)
        return false;
    bool there = memmem(b.data, b.len, text, strlen(text)) != NULL;
    stet_buf_release(&b);
    return there;
}

static void excised_objects_do_not_come_back(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("excise.db"), *other = kit_fresh("other.db");
    stet_hash secret = kit_put(r, "\"the secret word\""), again, list = kit_put(r, "[\"the secret word\",1]"), dag;
    stet_value v;
    OK(stet_repo_excise(r, secret, "a password", &err));
    FAILS(stet_repo_value(r, list, &v, &err), STET_CORRUPT, "excised: a password");
    FAILS(stet_repo_get(r, secret, STET_RECORD_DATUM, &v, &err), STET_CORRUPT, stet_hash_print(secret).text);
    v = stet_value_string("the secret word");
    FAILS(stet_repo_put_value(r, v, &again, &err), STET_DENIED, "excised here");
    stet_value_release(v);
    FAILS(stet_repo_excise(r, secret, "x", &err), STET_CONFLICT, "already");
    FAILS(stet_repo_excise(r, stet_hash_of("x", 1), "x", &err), STET_NOT_FOUND, "is not there");
    stet_hash c = kit_commit(r, NULL, 0, "c");
    FAILS(stet_repo_excise(r, c, "x", &err), STET_INVALID, "history");
    kit_sound(r);
    /* others get the tombstone, and give it up for the real thing */
    stet_hash node;
    OK(stet_node_literal(list, stet_repo_sink(r), &node, &err));
    OK(stet_dag_id(node, stet_value_null(), stet_repo_sink(r), &dag, &err));
    OK(stet_repo_copy(r, other, &dag, 1, NULL, 0, NULL, &err));
    FAILS(stet_repo_dag_value(other, dag, &v, &err), STET_CORRUPT, "excised: a password");
    kit_sound(other);
    again = kit_put(other, "\"the secret word\"");
    OK(stet_repo_dag_value(other, dag, &v, &err));
    stet_value_release(v);
    /* and from there it does not come back either */
    OK(stet_repo_copy(other, r, &dag, 1, NULL, 0, NULL, &err));
    FAILS(stet_repo_value(r, list, &v, &err), STET_CORRUPT, "excised");
    stet_repo_close(r);
    stet_repo_close(other);
    assert_false(file_holds("excise.db", "secret"));
    assert_false(file_holds("excise.db-wal", "secret"));
    assert_true(file_holds("other.db", "secret"));
}

static void expect_problems(stet_repo *r, bool repair, size_t want_repaired, const char *text) {
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    OK(stet_repo_check(r, repair, &problems, &found, &repaired, &err));
    if (!strstr(stet_buf_cstr(&problems), text) || !found || repaired != want_repaired)
        fail_msg("%zu found, %zu mended (expected %zu), expected \"%s\" in:\n%s", found, repaired, want_repaired, text,
                 stet_buf_cstr(&problems));
    stet_buf_release(&problems);
}

static stet_hash pinned(stet_repo *r, int n) {
    char text[40];
    snprintf(text, sizeof text, "\"result %d\"", n);
    stet_exec e = kit_exec(r, kit_call(r, n), text);
    stet_hash id;
    OK(stet_repo_pin_exec(r, &e, &id, &err));
    return e.node;
}

static void derived_tables_are_made_anew(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("derived.db");
    for (int i = 0; i < 30; i++)
        pinned(r, i);
    kit_sound(r);
    static const struct {
        const char *sql, *what;
    } damage[] = {
        {"DELETE FROM pin WHERE node = (SELECT min(node) FROM pin)", "table of pins"},
        {"INSERT INTO pin VALUES(zeroblob(32), zeroblob(32))", "table of pins"},
        {"UPDATE pin SET exec = (SELECT max(exec) FROM pin)", "table of pins"},
        {"DELETE FROM exec_of WHERE node = (SELECT max(node) FROM exec_of)", "table of exec records"},
        {"INSERT INTO exec_of VALUES(zeroblob(32), 99999)", "table of exec records"},
    };
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        stet_db_exec(r->db, damage[i].sql);
        expect_problems(r, false, 0, damage[i].what);
        expect_problems(r, true, 1, damage[i].what);
        kit_sound(r);
        assert_int_equal(kit_count(r, "SELECT count(*) FROM pin"), 30);
        assert_int_equal(kit_count(r, "SELECT count(*) FROM exec_of"), 30);
    }
    stet_repo_close(r);
}

static void a_damaged_result_is_a_miss_after_repair(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("result.db");
    stet_hash nodes[3], got;
    bool there;
    for (int i = 0; i < 3; i++)
        nodes[i] = pinned(r, i);
    stet_db_exec(r->db, "UPDATE object SET bytes = replace(bytes, 'result 1', 'rubbish!')");
    expect_problems(r, false, 0, "not those that were written");
    expect_problems(r, true, 2, "is not whole");
    OK(stet_repo_pinned(r, nodes[1], &there, &got, &err));
    assert_false(there);
    OK(stet_repo_pinned(r, nodes[2], &there, &got, &err));
    assert_true(there);
    /* what named it lies about until gc; the call runs again, and makes it whole */
    expect_problems(r, false, 0, "which is not there");
    pinned(r, 1);
    kit_sound(r);
    stet_repo_close(r);
}

static void a_damaged_index_is_made_from_its_table(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("index.db");
    stet_hash node = {{0}}, got;
    bool there;
    for (int i = 0; i < 40; i++)
        node = pinned(r, i);
    static const char *const damage[] = {
        "UPDATE object SET bytes = x'00' WHERE type = 5",
        "DELETE FROM object WHERE type = 6",
        "UPDATE object SET bytes = x'7b7d' WHERE number = (SELECT max(number) FROM object WHERE type = 6)",
    };
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        stet_db_exec(r->db, damage[i]);
        stet_buf problems = STET_BUF(0);
        size_t found, repaired;
        OK(stet_repo_check(r, false, &problems, &found, &repaired, &err));
        assert_true(found > 0);
        OK(stet_repo_check(r, true, &problems, &found, &repaired, &err));
        stet_buf_release(&problems);
        stet_repo_gc_report report;
        OK(stet_repo_gc(r, &at_once, &report, &err));
        kit_sound(r);
        OK(stet_repo_pinned(r, node, &there, &got, &err));
        assert_true(there);
        assert_int_equal(kit_count(r, "SELECT count(*) FROM pin"), 40);
    }
    stet_repo_close(r);
}

static void what_is_missing_is_named(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("missing.db");
    stet_hash c = kit_commit(r, NULL, 0, "c");
    OK(stet_repo_swap(r, &(stet_ref_swap){"refs/heads/main", NULL, &c}, 1, &err));
    stet_db_exec(r->db, "DELETE FROM object WHERE type = 2");
    expect_problems(r, false, 0, "names the dag");
    stet_db_exec(r->db, "DELETE FROM object WHERE type = 5");
    expect_problems(r, false, 0, "ref refs/heads/main names");
    stet_db_exec(r->db, "INSERT INTO ref VALUES('refs/bad name', zeroblob(32))");
    expect_problems(r, false, 0, "a ref begins with");
    stet_db_exec(r->db, "INSERT INTO attempt VALUES('short', x'00', x'00', 1, 1, 0, 0, 0, 0, 0, 0, NULL, NULL)");
    expect_problems(r, false, 0, "row of an attempt");
    stet_repo_close(r);
}

static void a_pack_is_applied_whole_or_not_at_all(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("pack-from.db"), *to = kit_fresh("pack-to.db");
    stet_hash ids[3] = {kit_put(r, "\"one\""), kit_put(r, "\"two\""), kit_put(r, "[\"one\",\"two\"]")};
    stet_pack p = STET_PACK_INIT;
    stet_copy_report report = {0};
    for (int i = 0; i < 3; i++) {
        stet_buf b = STET_BUF(0);
        OK(stet_repo_get_bytes(r, ids[i], &b, &err));
        stet_pack_object(&p, ids[i], b.data, b.len);
        stet_buf_release(&b);
    }
    stet_pack_end(&p);
    bool there;
    for (size_t cut = 0; cut < p.bytes.len; cut++) {
        FAILS(stet_pack_apply(to, p.bytes.data, cut, &report, &err), STET_CORRUPT, "stream");
        p.bytes.data[cut] ^= 0x10;
        assert_int_not_equal(stet_pack_apply(to, p.bytes.data, p.bytes.len, &report, &err), STET_OK);
        stet_error_clear(&err);
        p.bytes.data[cut] ^= 0x10;
    }
    OK(stet_repo_has(to, ids[0], &there, &err));
    assert_false(there);
    OK(stet_pack_apply(to, p.bytes.data, p.bytes.len, &report, &err));
    assert_int_equal(report.objects, 3);
    kit_sound(to);
    /* an object before what it names */
    stet_repo *third = kit_fresh("pack-third.db");
    stet_pack_clear(&p);
    stet_buf b = STET_BUF(0);
    OK(stet_repo_get_bytes(r, ids[2], &b, &err));
    stet_pack_object(&p, ids[2], b.data, b.len);
    stet_pack_end(&p);
    FAILS(stet_pack_apply(third, p.bytes.data, p.bytes.len, &report, &err), STET_NOT_FOUND, "names the datum");
    /* bytes under a wrong name */
    stet_pack_clear(&p);
    stet_pack_object(&p, ids[0], b.data, b.len);
    stet_pack_end(&p);
    FAILS(stet_pack_apply(third, p.bytes.data, p.bytes.len, &report, &err), STET_CORRUPT,
          "not those that were written");
    stet_buf_release(&b);
    stet_pack_release(&p);
    stet_repo_close(r);
    stet_repo_close(to);
    stet_repo_close(third);
}

static stet_status apply(stet_repo *r, const char *function, const char *arguments, char **out) {
    stet_value list = kit_json(arguments), v;
    stet_hash in[8], node, datum;
    size_t n = stet_value_count(list);
    for (size_t i = 0; i < n; i++) {
        OK(stet_repo_put_value(r, stet_value_at(list, i), &datum, &err));
        OK(stet_node_literal(datum, stet_repo_sink(r), &in[i], &err));
    }
    stet_value_release(list);
    OK(stet_node_call(function, in, n, stet_repo_sink(r), &node, &err));
    stet_status st = stet_repo_eval(r, node, &datum, &err);
    if (st == STET_OK)
        st = stet_repo_value(r, datum, &v, &err);
    if (st == STET_OK) {
        *out = stet_json_print(v, STET_JSON_CANONICAL, NULL);
        stet_value_release(v);
    }
    return st;
}

#define SET(x) "{\"/\":{\"set@1\":[" x "]}}"

static void builtins_do_what_they_say(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("builtin.db");
    static const struct {
        const char *function, *arguments, *result;
    } good[] = {
        {"dml://list/of", "[1,\"a\",[]]", "[1,\"a\",[]]"},
        {"dml://list/of", "[]", "[]"},
        {"dml://list/length", "[[1,2,3]]", "3"},
        {"dml://list/get", "[[5,6],1]", "6"},
        {"dml://list/get", "[[5,6],2,null]", "null"},
        {"dml://list/slice", "[[1,2,3,4],1,3]", "[2,3]"},
        {"dml://list/slice", "[[1,2,3,4],2]", "[3,4]"},
        {"dml://list/slice", "[[1,2],5,9]", "[]"},
        {"dml://list/append", "[[1],2,3]", "[1,2,3]"},
        {"dml://list/assoc", "[[1,2],0,9]", "[9,2]"},
        {"dml://list/concat", "[[1],[],[2,3]]", "[1,2,3]"},
        {"dml://list/reverse", "[[1,2,3]]", "[3,2,1]"},
        {"dml://list/contains", "[[1,[2]],[2]]", "true"},
        {"dml://list/contains", "[[1,[2]],2]", "false"},
        {"dml://set/length", "[" SET("1,2,2") "]", "2"},
        {"dml://set/contains", "[" SET("1,2") ",2]", "true"},
        {"dml://set/difference", "[" SET("1,2") "," SET("2") "," SET("3") "]", SET("1")},
        {"dml://set/intersect", "[" SET("1,2") "," SET("2,3") "]", SET("2")},
        {"dml://set/remove", "[" SET("1,2") ",1,7]", SET("2")},
        {"dml://set/to-list", "[" SET("4") "]", "[4]"},
        {"dml://map/of", "[\"a\",1,\"b\",2]", "{\"a\":1,\"b\":2}"},
        {"dml://map/length", "[{\"a\":1}]", "1"},
        {"dml://map/get", "[{\"a\":1},\"a\"]", "1"},
        {"dml://map/get", "[{\"a\":1},\"b\",7]", "7"},
        {"dml://map/contains", "[{\"a\":1},\"b\"]", "false"},
        {"dml://map/keys", "[{\"a\":1}]", "[\"a\"]"},
        {"dml://map/values", "[{\"a\":1}]", "[1]"},
        {"dml://map/assoc", "[{\"a\":1},\"b\",2,\"a\",3]", "{\"a\":3,\"b\":2}"},
        {"dml://map/dissoc", "[{\"a\":1,\"b\":2},\"a\",\"c\"]", "{\"b\":2}"},
        {"dml://map/merge", "[{\"a\":1,\"b\":2},{\"b\":3}]", "{\"a\":1,\"b\":3}"},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char *out;
        print_message("# %s %s\n", good[i].function, good[i].arguments);
        OK(apply(r, good[i].function, good[i].arguments, &out));
        assert_string_equal(out, good[i].result);
        stet_free(out);
    }
    char *one, *two;
    OK(apply(r, "dml://set/union", "[" SET("1,2") "," SET("2,3") "]", &one));
    OK(apply(r, "dml://set/of", "[3,1,2,1]", &two));
    assert_string_equal(one, two);
    stet_free(two);
    OK(apply(r, "dml://set/from-list", "[[3,2,1,2]]", &two));
    assert_string_equal(one, two);
    stet_free(two);
    OK(apply(r, "dml://set/add", "[" SET("1") ",2,3]", &two));
    assert_string_equal(one, two);
    stet_free(one);
    stet_free(two);
    static const struct {
        const char *function, *arguments, *why;
        stet_status status;
    } bad[] = {
        {"dml://list/get", "[[5],1]", "dml://list/get: there is no position 1 in a list of 1", STET_FAILED},
        {"dml://list/get", "[[5],-1]", "positions count from 0", STET_FAILED},
        {"dml://list/get", "[{},0]", "argument 1 is a map, and not a list", STET_FAILED},
        {"dml://list/get", "[[1],\"x\"]", "argument 2 is a string, and not a int", STET_FAILED},
        {"dml://list/length", "[]", "0 arguments", STET_FAILED},
        {"dml://list/assoc", "[[1],1,1]", "no position", STET_FAILED},
        {"dml://map/of", "[1]", "pairs", STET_FAILED},
        {"dml://map/of", "[1,2,1,3]", "the same key twice", STET_FAILED},
        {"dml://map/get", "[{},1]", "no key", STET_FAILED},
        {"dml://map/assoc", "[{},1]", "pairs", STET_FAILED},
        {"dml://list/frob", "[]", "no builtin dml://list/frob", STET_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        FAILS(apply(r, bad[i].function, bad[i].arguments, &one), bad[i].status, bad[i].why);
    size_t n = 0;
    for (; stet_builtin_name(n); n++)
        assert_true(n == 0 || strcmp(stet_builtin_name(n - 1), stet_builtin_name(n)) < 0);
    assert_int_equal(n, 28);
    kit_sound(r);
    stet_repo_close(r);
}

/* Through imports, calls and nested builtins, and without a write where the handle only reads. */
static void nodes_mean_what_they_lead_to(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("eval.db");
    stet_hash call = pinned(r, 1), list, dag, import, node, id;
    stet_hash two[2];
    OK(stet_node_call("dml://list/of", &call, 1, stet_repo_sink(r), &list, &err));
    OK(stet_dag_id(list, stet_value_null(), stet_repo_sink(r), &dag, &err));
    stet_value v = kit_json("{\"kind\":\"import\",\"type\":\"node\"}"), back;
    stet_value_put(&v, "target", stet_hash_text(dag));
    OK(stet_repo_put(r, v, STET_RECORD_NODE, &import, &err));
    stet_value_release(v);
    two[0] = import;
    two[1] = list;
    OK(stet_node_call("dml://list/concat", two, 2, stet_repo_sink(r), &node, &err));
    OK(stet_dag_id(node, stet_value_null(), stet_repo_sink(r), &dag, &err));
    /* a chain: as deep as memory allows, and not as the stack does */
    OK(stet_repo_begin(r, &err));
    for (int i = 0; i < 20000; i++)
        OK(stet_node_call("dml://list/reverse", &node, 1, stet_repo_sink(r), &node, &err));
    OK(stet_repo_commit(r, &err));
    OK(stet_repo_eval(r, node, &id, &err));
    stet_repo_close(r);
    OK(stet_repo_open_path("eval.db", STET_REPO_READ_ONLY, &r, &err));
    OK(stet_repo_dag_value(r, dag, &back, &err));
    char *text = stet_json_print(back, STET_JSON_CANONICAL, NULL);
    assert_string_equal(text, "[\"result 1\",\"result 1\"]");
    stet_free(text);
    stet_value_release(back);
    stet_repo_close(r);
    /* a call that is its own result */
    OK(stet_repo_open_path("eval.db", 0, &r, &err));
    stet_hash own;
    OK(stet_dag_id(call, stet_value_null(), stet_repo_sink(r), &own, &err));
    stet_exec e = {.node = call, .result = own, .ok = true, .attempt = 3};
    OK(stet_repo_pin_exec(r, &e, &id, &err));
    FAILS(stet_repo_eval(r, call, &id, &err), STET_FAILED, "its own result");
    stet_repo_close(r);
}

int main(void) {
    faults_fast_directory();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gc_keeps_what_a_ref_reaches),
        cmocka_unit_test(gc_leaves_the_young),
        cmocka_unit_test(gc_ends_what_is_done),
        cmocka_unit_test(gc_keeps_calls_that_are_under_way),
        cmocka_unit_test(gc_stops_where_something_is_damaged),
        cmocka_unit_test(gc_bears_numbers_of_any_size),
        cmocka_unit_test(excised_objects_do_not_come_back),
        cmocka_unit_test(derived_tables_are_made_anew),
        cmocka_unit_test(a_damaged_result_is_a_miss_after_repair),
        cmocka_unit_test(a_damaged_index_is_made_from_its_table),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(a_pack_is_applied_whole_or_not_at_all),
        cmocka_unit_test(builtins_do_what_they_say),
        cmocka_unit_test(nodes_mean_what_they_lead_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
