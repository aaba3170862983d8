/* repo.c - the repository of calls: objects, refs, pins, attempts, values, and copying. */

#include "../expect.h"

#include <unistd.h>

#include "../faults.h"
#include "../repo_kit.h"
#include "os/clock.h"
#include "repo/execmap.h"

static void nothing_is_created_before_the_first_write(void **state) {
    (void)state;
    stet_repo *r;
    bool there;
    stet_hash id = {{1}};
    stet_value v;
    stet_refs refs = {0};
    OK(stet_repo_open_path("new/dir/repo.db", 0, &r, &err));
    OK(stet_repo_has(r, id, &there, &err));
    assert_false(there);
    FAILS(stet_repo_get(r, id, STET_RECORD_DATUM, &v, &err), STET_NOT_FOUND, "is not there");
    OK(stet_repo_refs(r, "", &refs, &err));
    OK(stet_repo_pinned(r, id, &there, &id, &err));
    assert_false(there);
    OK(stet_repo_begin_read(r, &err));
    FAILS(stet_repo_put_value(r, stet_value_int(1), &id, &err), STET_DENIED, "only reads");
    OK(stet_repo_commit(r, &err));
    assert_int_equal(access("new", F_OK), -1);
    kit_put(r, "1");
    assert_int_equal(access("new/dir/repo.db", F_OK), 0);
    stet_repo_close(r);
    FAILS(stet_repo_open_path("other.db", STET_REPO_MUST_EXIST, &r, &err), STET_NOT_FOUND, "no repository");
}

static void values_come_back_as_they_were(void **state) {
    (void)state;
    static const char *const texts[] = {
        "null",
        "true",
        "-7",
        "1.5",
        "\"caf\u00e9\"",
        "[]",
        "{}",
        "[1,[2,[3,\"x\"]],{\"a\":null}]",
        "{\"/\":{\"uri@1\":\"https://example.com/a\"}}",
        "{\"/\":{\"bytes@1\":\"AAEC\"}}",
        "{\"/\":{\"link@1\":{\"id\":\"x\"}}}",
        "{\"/\":{\"map@1\":[[[1],\"list as key\"]]}}",
        "{\"/\":{\"map@1\":[[\"/\",{\"uri@1\":\"no uri at all\"}]]}}",
        "{\"/\":{\"set@1\":[{\"/\":{\"set@1\":[]}}]}}",
    };
    stet_repo *r = kit_fresh("values.db");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        stet_value v = kit_json(texts[i]), back;
        stet_hash id;
        OK(stet_repo_put_value(r, v, &id, &err));
        OK(stet_repo_value(r, id, &back, &err));
        char *a = stet_json_print(v, STET_JSON_CANONICAL, NULL), *b = stet_json_print(back, STET_JSON_CANONICAL, NULL);
        assert_string_equal(a, b);
        stet_free(a);
        stet_free(b);
        stet_value_release(v);
        stet_value_release(back);
    }
    /* two ways to write one set, or one text */
    stet_hash a = kit_put(r, "{\"/\":{\"set@1\":[1,2,1]}}"), b = kit_put(r, "{\"/\":{\"set@1\":[2,1]}}");
    assert_true(stet_hash_equal(a, b));
    a = kit_put(r, "\"e\u0301\"");
    b = kit_put(r, "\"\u00e9\"");
    assert_true(stet_hash_equal(a, b));
    static const struct {
        const char *text, *why;
    } bad[] = {{"{\"/\":{\"uri@1\":\"no uri\"}}", "URI"},
               {"{\"/\":{\"uri@1\":\"dml://x\"}}", "dml:"},
               {"{\"/\":{\"uri@1\":5}}", "string"},
               {"{\"/\":{\"bytes@1\":\"=\"}}", "base64url"},
               {"{\"/\":{\"set@1\":5}}", "array"},
               {"{\"/\":{\"map@1\":[[1]]}}", "pairs"},
               {"{\"/\":{\"map@1\":[[1,2],[1,3]]}}", "the same"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stet_value v = kit_json(bad[i].text);
        FAILS(stet_repo_put_value(r, v, &a, &err), STET_INVALID, bad[i].why);
        stet_value_release(v);
    }
    stet_repo_close(r);
}

/* A few shared data can mean an endless value. */
static void endless_values_are_refused(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("endless.db");
    stet_hash id = kit_put(r, "1");
    OK(stet_repo_begin(r, &err));
    for (int i = 0; i < 60; i++) {
        stet_value v = kit_json("{\"kind\":\"list\",\"type\":\"datum\"}"), list = stet_value_array();
        stet_value_push(&list, stet_hash_text(id));
        stet_value_push(&list, stet_hash_text(id));
        stet_value_put(&v, "payload", list);
        OK(stet_repo_put(r, v, STET_RECORD_DATUM, &id, &err));
        stet_value_release(v);
        if (i == 12) {
            stet_value small;
            OK(stet_repo_value(r, id, &small, &err));
            stet_value_release(small);
        }
    }
    OK(stet_repo_commit(r, &err));
    if (getenv("STET_TEST_LONG")) {
        stet_value v;
        FAILS(stet_repo_value(r, id, &v, &err), STET_LIMIT, "data");
    }
    OK(stet_repo_begin(r, &err));
    for (int i = 0; i < 600; i++) {
        stet_value v = kit_json("{\"kind\":\"list\",\"type\":\"datum\"}"), list = stet_value_array();
        stet_value_push(&list, stet_hash_text(id));
        stet_value_put(&v, "payload", list);
        OK(stet_repo_put(r, v, STET_RECORD_DATUM, &id, &err));
        stet_value_release(v);
    }
    OK(stet_repo_commit(r, &err));
    stet_value v;
    FAILS(stet_repo_value(r, id, &v, &err), STET_LIMIT, "levels");
    stet_repo_close(r);
}

static void an_object_needs_what_it_names(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("names.db");
    stet_hash absent = stet_hash_of("x", 1), id, datum = kit_put(r, "5");
    FAILS(stet_node_literal(absent, stet_repo_sink(r), &id, &err), STET_NOT_FOUND, "names the datum");
    OK(stet_node_literal(datum, stet_repo_sink(r), &id, &err));
    /* of another type than it must be */
    FAILS(stet_dag_id(datum, stet_value_null(), stet_repo_sink(r), &absent, &err), STET_INVALID, "but it is a datum");
    /* in a transaction the failure sticks, and undoes all */
    stet_hash other;
    OK(stet_repo_begin(r, &err));
    other = kit_put(r, "6");
    FAILS(stet_node_literal(stet_hash_of("y", 1), stet_repo_sink(r), &id, &err), STET_NOT_FOUND, "names");
    FAILS(stet_repo_commit(r, &err), STET_NOT_FOUND, "names");
    bool there;
    OK(stet_repo_has(r, other, &there, &err));
    assert_false(there);
    stet_repo_close(r);
}

static void what_does_not_verify_is_not_handed_out(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("corrupt.db");
    stet_hash id = kit_put(r, "\"hello\""), one = kit_put(r, "1");
    stet_value v;
    FAILS(stet_repo_get(r, id, STET_RECORD_NODE, &v, &err), STET_CORRUPT, "not a node, but a datum");
    stet_db_exec(r->db, "UPDATE object SET bytes = replace(bytes, 'hello', 'hallo')");
    FAILS(stet_repo_get(r, id, STET_RECORD_DATUM, &v, &err), STET_CORRUPT, "not those that were written");
    assert_non_null(strstr(stet_hash_print(id).text, "")); /* the id is in the message: */
    assert_int_equal(stet_repo_get(r, id, STET_RECORD_DATUM, &v, &err), STET_CORRUPT);
    assert_non_null(strstr(err.message, stet_hash_print(id).text));
    stet_error_clear(&err);
    /* right hash, but no record */
    static const char text[] = "{\"kind\":\"int\",\"payload\":\"1\",\"type\":\"datum\"}";
    FAILS(stet_repo_put_bytes(r, stet_hash_of(text, strlen(text)), text, strlen(text), &err), STET_CORRUPT, "integer");
    FAILS(stet_repo_put_bytes(r, one, text, strlen(text), &err), STET_CORRUPT, "not those that were written");
    stet_repo_close(r);
}

static void ids_are_found_by_their_beginning(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("find.db");
    stet_hash id = kit_put(r, "1"), got;
    kit_put(r, "2");
    OK(stet_repo_find(r, stet_short(id).text, &got, &err));
    assert_true(stet_hash_equal(id, got));
    OK(stet_repo_find(r, stet_hash_print(id).text, &got, &err));
    FAILS(stet_repo_find(r, "abc", &got, &err), STET_INVALID, "6 to 64");
    FAILS(stet_repo_find(r, "ABCDEF", &got, &err), STET_INVALID, "lower case");
    FAILS(stet_repo_find(r, "000000000000", &got, &err), STET_NOT_FOUND, "begins with");
    stet_repo_close(r);
}

static void refs_change_by_compare_and_swap(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("refs.db");
    stet_hash a = kit_commit(r, NULL, 0, "a"), b = kit_commit(r, &a, 1, "b"), datum = kit_put(r, "1"), got;
    bool there;
    OK(stet_repo_swap(r, &(stet_ref_swap){"refs/heads/main", NULL, &a}, 1, &err));
    FAILS(stet_repo_swap(r, &(stet_ref_swap){"refs/heads/main", NULL, &b}, 1, &err), STET_CONFLICT, "is there already");
    FAILS(stet_repo_swap(r, &(stet_ref_swap){"refs/heads/main", &b, &a}, 1, &err), STET_CONFLICT, "and not");
    FAILS(stet_repo_swap(r, &(stet_ref_swap){"refs/heads/other", &b, &a}, 1, &err), STET_CONFLICT,
          "not there any more");
    /* all or none */
    stet_ref_swap two[] = {{"refs/heads/main", &a, &b}, {"refs/heads/x", &a, &b}};
    FAILS(stet_repo_swap(r, two, 2, &err), STET_CONFLICT, "refs/heads/x");
    OK(stet_repo_ref(r, "refs/heads/main", &there, &got, &err));
    assert_true(there && stet_hash_equal(got, a));
    two[1].expect = NULL;
    OK(stet_repo_swap(r, two, 2, &err));
    OK(stet_repo_swap(r, &(stet_ref_swap){"refs/heads/x", &b, NULL}, 1, &err));
    stet_refs refs = {0};
    OK(stet_repo_refs(r, "refs/heads/", &refs, &err));
    assert_int_equal(refs.len, 1);
    assert_string_equal(refs.at[0].name, "refs/heads/main");
    stet_refs_release(&refs);
    /* of the right type, and there */
    FAILS(stet_repo_swap(r, &(stet_ref_swap){"refs/heads/y", NULL, &datum}, 1, &err), STET_INVALID, "commit");
    stet_hash absent = stet_hash_of("x", 1);
    FAILS(stet_repo_swap(r, &(stet_ref_swap){"refs/heads/y", NULL, &absent}, 1, &err), STET_NOT_FOUND,
          "no such object");
    static const char *const bad[] = {"heads/x",        "refs/heads/",    "refs/heads//x",  "refs/heads/.x",
                                      "refs/heads/a b", "refs/index/a/b", "refs/remotes/x", "refs/tags/x",
                                      "refs/heads/-x",  "refs/heads/x/",  "refs/exec/../x", "refs/heads/\xC3\xA9"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        FAILS(stet_repo_swap(r, &(stet_ref_swap){bad[i], NULL, &a}, 1, &err), STET_INVALID, "no name of a ref");
    stet_repo_close(r);
}

static stet_hash index_map(stet_repo *r) {
    bool there;
    stet_hash commit, map = {{0}};
    stet_value v;
    OK(stet_repo_ref(r, STET_REPO_INDEX, &there, &commit, &err));
    assert_true(there);
    OK(stet_repo_get(r, commit, STET_RECORD_COMMIT, &v, &err));
    assert_true(stet_hash_of_text(stet_value_get(v, "execs"), &map));
    stet_value_release(v);
    return map;
}

static void pins_are_found_and_replaced(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("pins.db");
    bool there;
    stet_hash call = kit_call(r, 1), id, got, *all;
    stet_exec e = kit_exec(r, call, "{\"answer\":42}");
    OK(stet_repo_pinned(r, call, &there, &got, &err));
    assert_false(there);
    OK(stet_repo_pin_exec(r, &e, &id, &err));
    OK(stet_repo_pinned(r, call, &there, &got, &err));
    assert_true(there && stet_hash_equal(got, id));
    stet_value v;
    stet_hash datum;
    OK(stet_repo_eval(r, call, &datum, &err));
    OK(stet_repo_value(r, datum, &v, &err));
    assert_int_equal(stet_value_as_int(stet_value_get(v, "answer")), 42);
    stet_value_release(v);
    /* again, with another result: the record before stays */
    stet_exec f = kit_exec(r, call, "{\"answer\":43}");
    f.attempt = 2;
    stet_hash second;
    OK(stet_repo_pin_exec(r, &f, &second, &err));
    OK(stet_repo_pinned(r, call, &there, &got, &err));
    assert_true(stet_hash_equal(got, second));
    size_t n;
    OK(stet_repo_execs(r, call, &all, &n, &err));
    assert_int_equal(n, 2);
    assert_true(stet_hash_equal(all[0], id) && stet_hash_equal(all[1], second));
    free(all);
    /* a failure is a result too */
    stet_exec g = kit_exec(r, kit_call(r, 2), "{\"message\":\"no luck\"}");
    g.ok = false;
    OK(stet_repo_pin_exec(r, &g, &id, &err));
    FAILS(stet_repo_eval(r, g.node, &datum, &err), STET_FAILED, "no luck");
    FAILS(stet_repo_eval(r, kit_call(r, 3), &datum, &err), STET_NOT_FOUND, "no result yet");
    /* not of another node */
    FAILS(stet_repo_pin(r, &(stet_pin){call, id}, 1, NULL, &err), STET_INVALID, "is of node");
    /* no longer */
    OK(stet_repo_pin(r, &(stet_pin){.node = call}, 1, NULL, &err));
    OK(stet_repo_pinned(r, call, &there, &got, &err));
    assert_false(there);
    stet_repo_close(r);
}

/* Against the plain truth: a list of what is pinned. */
static void exec_maps_are_the_same_however_they_came(void **state) {
    (void)state;
    enum { NODES = 400 };
    int rounds = getenv("STET_TEST_SHORT") ? 20 : 60;
    stet_repo *r = kit_fresh("maps.db");
    stet_pin all[NODES];
    bool in[NODES] = {false};
    unsigned random = 7;
    OK(stet_repo_begin(r, &err));
    for (int i = 0; i < NODES; i++) {
        stet_exec e = kit_exec(r, kit_call(r, i), "1");
        all[i].node = e.node;
        OK(stet_repo_put_exec(r, &e, &all[i].exec, &err));
    }
    OK(stet_repo_commit(r, &err));
    for (int round = 0; round < rounds; round++) {
        stet_pins change = {0}, want = {0}, have = {0};
        bool fill = round % 20 < 12;
        for (int i = 0; i < NODES; i++) {
            random = random * 1103515245 + 12345;
            if ((random >> 16) % 10 >= 3)
                continue;
            in[i] = fill ? (random >> 20) % 4 != 0 : false;
            *stet_vec_add(&change) = (stet_pin){all[i].node, in[i] ? all[i].exec : (stet_hash){{0}}};
        }
        OK(stet_repo_pin(r, change.at, change.len, NULL, &err));
        for (int i = 0; i < NODES; i++)
            if (in[i])
                *stet_vec_add(&want) = all[i];
        stet_pins_sort(&want);
        stet_hash map = index_map(r), id;
        OK(stet_execmap_list(r, map, &have, &err));
        assert_int_equal(have.len, want.len);
        if (want.len)
            assert_memory_equal(have.at, want.at, want.len * sizeof *want.at);
        OK(stet_execmap_id(want.at, want.len, &id, &err));
        assert_true(stet_hash_equal(map, id));
        assert_int_equal(kit_count(r, "SELECT count(*) FROM pin"), want.len);
        for (int i = 0; i < NODES; i += 37) {
            bool there;
            stet_hash exec;
            OK(stet_execmap_get(r, map, all[i].node, &there, &exec, &err));
            assert_int_equal(there, in[i]);
        }
        stet_vec_release(&change);
        stet_vec_release(&want);
        stet_vec_release(&have);
    }
    /* What the index no longer needs is gone: as many records of maps and commits as one map of this size has. */
    assert_true(kit_count(r, "SELECT count(*) FROM object WHERE type IN (5, 6)") < 120);
    stet_repo_close(r);
}

/* A map that says it is large, with one part under each of these digits. */
static stet_hash hostile_map(stet_repo *r, const char *digits, stet_hash part) {
    stet_value v = kit_json("{\"count\":17,\"type\":\"execmap\"}"), parts = stet_value_object();
    stet_hash id = {{0}};
    for (; *digits; digits++)
        stet_value_put_n(&parts, digits, 1, stet_hash_text(part));
    stet_value_put(&v, "parts", parts);
    OK(stet_object_make(r, v, STET_RECORD_EXECMAP, STET_OBJECT_KEPT, &id, &err));
    stet_value_release(v);
    return id;
}

static stet_hash hostile_leaf(stet_repo *r, stet_value execs) {
    stet_value v = kit_json("{\"type\":\"execmap\"}");
    stet_hash id = {{0}};
    stet_value_put(&v, "execs", execs);
    OK(stet_object_make(r, v, STET_RECORD_EXECMAP, STET_OBJECT_KEPT, &id, &err));
    stet_value_release(v);
    return id;
}

/* Sixteen entries that differ from what is pinned in the first two digits alone, in the place where those are the
 * same: no further digit would ever tell them apart. */
static void exec_maps_with_entries_in_the_wrong_place_are_refused(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("wrong-place.db");
    stet_exec e = kit_exec(r, kit_call(r, 1), "1");
    stet_hash exec, out;
    stet_value execs = stet_value_object();
    OK(stet_repo_put_exec(r, &e, &exec, &err));
    for (int i = 1; i <= STET_EXECMAP_LEAF; i++) {
        stet_hash node = e.node;
        node.bytes[0] = (unsigned char)(node.bytes[0] + i);
        stet_value_put(&execs, stet_hash_print(node).text, stet_hash_text(exec));
    }
    OK(stet_repo_begin(r, &err));
    char hex[STET_HASH_HEX];
    stet_hash_hex(e.node, hex);
    stet_hash map = hostile_map(r, (char[]){hex[1], 0}, hostile_leaf(r, execs));
    map = hostile_map(r, (char[]){hex[0], 0}, map);
    FAILS(stet_execmap_set(r, &map, &(stet_pin){e.node, exec}, 1, STET_OBJECT_KEPT, &out, NULL, &err), STET_CORRUPT,
          "belong elsewhere");
    stet_repo_rollback(r);
    stet_repo_close(r);
}

/* Sixty levels, each of which names the one below sixteen times: nobody could walk all of its places. */
static void exec_maps_that_name_a_part_in_many_places_are_refused(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("many-places.db");
    stet_exec e = kit_exec(r, kit_call(r, 1), "1");
    stet_hash exec, map[3];
    stet_pins out = {0};
    OK(stet_repo_put_exec(r, &e, &exec, &err));
    OK(stet_repo_begin(r, &err));
    for (int i = 0; i < 3; i++) { /* without entries, with one, with another one */
        stet_value execs = stet_value_object();
        stet_hash node = {{0}};
        node.bytes[31] = (unsigned char)i;
        if (i)
            stet_value_put(&execs, stet_hash_print(node).text, stet_hash_text(exec));
        map[i] = hostile_leaf(r, execs);
        for (int depth = 0; depth < 60; depth++)
            map[i] = hostile_map(r, "0123456789abcdef", map[i]);
        FAILS(stet_execmap_list(r, map[i], &out, &err), STET_CORRUPT, "belong elsewhere");
        stet_vec_clear(&out);
    }
    for (int i = 0; i < 3; i++)
        FAILS(stet_execmap_diff(r, &map[i], &map[(i + 1) % 3], &out, &err), STET_CORRUPT, "belong elsewhere");
    stet_vec_release(&out);
    stet_repo_rollback(r);
    stet_repo_close(r);
}

static void exec_maps_with_parts_that_are_no_digits_are_refused(void **state) {
    (void)state;
#define MAP(count, digit) "{\"count\":" count ",\"parts\":{\"" digit "\":\"%s\"},\"type\":\"execmap\"}"
    static const char *const wrong[] = {MAP("17", "\\u0000"), MAP("17", "g"), MAP("17", ""), MAP("16", "0"),
                                        MAP("9223372036854775807", "0")};
#undef MAP
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[200];
        stet_hash id = stet_hash_of("x", 1);
        stet_value v;
        int len = snprintf(text, sizeof text, wrong[i], stet_hash_print(id).text);
        id = stet_hash_of(text, (size_t)len);
        FAILS(stet_record_read(id, text, (size_t)len, STET_RECORD_EXECMAP, &v, &err), STET_CORRUPT, "exec map");
    }
}

static void maps_that_others_name_stay(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("shared.db");
    bool there;
    stet_hash id, commit, got;
    for (int i = 0; i < 40; i++) {
        stet_exec e = kit_exec(r, kit_call(r, i), "1");
        OK(stet_repo_pin_exec(r, &e, &id, &err));
    }
    OK(stet_repo_ref(r, STET_REPO_INDEX, &there, &commit, &err));
    OK(stet_repo_swap(r, &(stet_ref_swap){"refs/heads/kept", NULL, &commit}, 1, &err));
    for (int i = 40; i < 80; i++) {
        stet_exec e = kit_exec(r, kit_call(r, i), "1");
        OK(stet_repo_pin_exec(r, &e, &id, &err));
    }
    stet_pins kept = {0};
    stet_value v;
    OK(stet_repo_get(r, commit, STET_RECORD_COMMIT, &v, &err));
    assert_true(stet_hash_of_text(stet_value_get(v, "execs"), &got));
    stet_value_release(v);
    OK(stet_execmap_list(r, got, &kept, &err));
    assert_int_equal(kept.len, 40);
    stet_vec_release(&kept);
    /* putting the index back makes the table follow */
    OK(stet_repo_ref(r, STET_REPO_INDEX, &there, &got, &err));
    OK(stet_repo_swap(r, &(stet_ref_swap){STET_REPO_INDEX, &got, &commit}, 1, &err));
    assert_int_equal(kit_count(r, "SELECT count(*) FROM pin"), 40);
    OK(stet_repo_swap(r, &(stet_ref_swap){STET_REPO_INDEX, &commit, NULL}, 1, &err));
    assert_int_equal(kit_count(r, "SELECT count(*) FROM pin"), 0);
    stet_repo_close(r);
}

static void attempts_move_by_compare_and_set(void **state) {
    (void)state;
    stet_repo *r = kit_fresh("attempts.db");
    stet_attempt a = {.node = {{1}}, .key = {{2}}, .state = 1, .cache = true, .detail = stet_value_null()}, b;
    stet_uuid(a.execution);
    OK(stet_attempt_add(r, &a, &err));
    FAILS(stet_attempt_add(r, &a, &err), STET_CONFLICT, "there already");
    a.state = 2;
    a.token = "a\0b";
    a.token_len = 3;
    a.retries = 4;
    a.next_ms = 99;
    a.detail = kit_json("{\"pid\":5}");
    FAILS(stet_attempt_move(r, &a, 3, &err), STET_CONFLICT, "somebody else");
    OK(stet_attempt_move(r, &a, 1, &err));
    OK(stet_attempt_get(r, a.execution, &b, &err));
    assert_int_equal(b.state, 2);
    assert_int_equal(b.token_len, 3);
    assert_memory_equal(b.token, "a\0b", 3);
    assert_int_equal(b.retries, 4);
    assert_int_equal(b.next_ms, 99);
    assert_true(b.cache && !b.done && stet_hash_equal(b.node, a.node) && stet_hash_equal(b.key, a.key));
    assert_true(stet_value_equal(b.detail, a.detail));
    stet_attempt_release(&b);
    stet_attempt c = {.node = {{9}}, .state = 1, .done = true, .detail = stet_value_null()};
    stet_uuid(c.execution);
    OK(stet_attempt_add(r, &c, &err));
    stet_attempts list = {0};
    int64_t total;
    OK(stet_attempt_list(r, NULL, &list, &total, &err));
    assert_int_equal(list.len, 2);
    assert_int_equal(total, 2);
    stet_attempts_release(&list);
    OK(stet_attempt_list(r, &(stet_attempt_filter){.live = true, .limit = 10}, &list, &total, &err));
    assert_int_equal(list.len, 1);
    assert_int_equal(total, 1);
    stet_attempts_release(&list);
    OK(stet_attempt_list(r, &(stet_attempt_filter){.node = &c.node}, &list, NULL, &err));
    assert_int_equal(list.len, 1);
    assert_string_equal(list.at[0].execution, c.execution);
    stet_attempts_release(&list);
    OK(stet_attempt_list(r, &(stet_attempt_filter){.states = 1u << 2}, &list, NULL, &err));
    assert_int_equal(list.len, 1);
    assert_string_equal(list.at[0].execution, a.execution);
    stet_attempts_release(&list);
    /* The newest first, and the limit takes the newest. */
    stet_db_exec(r->db, "UPDATE attempt SET created_ms = created_ms - 3600000 * done");
    for (size_t limit = 1; limit < 3; limit++) {
        OK(stet_attempt_list(r, &(stet_attempt_filter){.limit = limit}, &list, &total, &err));
        assert_int_equal(list.len, limit);
        assert_int_equal(total, 2);
        assert_string_equal(list.at[0].execution, a.execution);
        stet_attempts_release(&list);
    }
    /* By any prefix of an execution, or of the digits of a node. */
    static const struct {
        const char *prefix;
        size_t found;
    } by_node[] = {{"0", 1}, {"09", 1}, {"090", 1}, {"09000000", 1}, {"091", 0}, {"08f", 0}, {"x", 0}, {"09x", 0}};
    for (size_t i = 0; i < sizeof by_node / sizeof *by_node; i++) {
        stet_db_exec(r->db, "UPDATE attempt SET execution = 'g' || substr(execution, 2)"); /* no digit */
        OK(stet_attempt_find(r, by_node[i].prefix, 10, &list, &err));
        assert_int_equal(list.len, by_node[i].found + (i == 0 && a.node.bytes[0] < 16));
        stet_attempts_release(&list);
    }
    c.execution[0] = 'g';
    for (size_t len = 6; len <= 36; len++) {
        char prefix[37];
        snprintf(prefix, sizeof prefix, "%.*s", (int)len, c.execution);
        OK(stet_attempt_find(r, prefix, 10, &list, &err));
        assert_int_equal(list.len, 1);
        assert_string_equal(list.at[0].execution, c.execution);
        stet_attempts_release(&list);
    }
    stet_db_exec(r->db, "UPDATE attempt SET detail = '{' WHERE done = 1");
    FAILS(stet_attempt_list(r, NULL, &list, NULL, &err), STET_CORRUPT, "damaged");
    assert_int_equal(list.len, 0); /* nothing is left to be released */
    assert_null(list.at);
    stet_attempt big = {.detail = stet_value_null(), .token = "x", .token_len = STET_REPO_TOKEN_MAX + 1};
    stet_uuid(big.execution);
    FAILS(stet_attempt_add(r, &big, &err), STET_LIMIT, "token");
    OK(stet_attempt_remove(r, a.execution, &err));
    FAILS(stet_attempt_get(r, a.execution, &b, &err), STET_NOT_FOUND, a.execution);
    FAILS(stet_attempt_move(r, &a, 2, &err), STET_NOT_FOUND, a.execution);
    stet_value_release(a.detail);
    stet_repo_close(r);
}

static void what_is_missing_is_copied(void **state) {
    (void)state;
    stet_repo *a = kit_fresh("from.db"), *b = kit_fresh("to.db");
    stet_hash dag, id;
    stet_value v = kit_json("{\"rows\":[1,2,3,{\"deep\":[[[\"x\"]]]}]}");
    stet_copy_report report;
    OK(stet_repo_put_result(a, v, &dag, &err));
    OK(stet_repo_copy(a, b, &dag, 1, &(stet_ref_swap){"refs/exec/1", NULL, &dag}, 1, &report, &err));
    assert_int_equal(report.objects, kit_count(a, "SELECT count(*) FROM object"));
    assert_int_equal(report.objects, kit_count(b, "SELECT count(*) FROM object"));
    stet_value back;
    OK(stet_repo_dag_value(b, dag, &back, &err));
    assert_true(stet_value_equal(v, back));
    stet_value_release(back);
    OK(stet_repo_copy(a, b, &dag, 1, NULL, 0, &report, &err));
    assert_int_equal(report.objects, 0);
    /* a conflict of refs leaves the objects, which need nothing else */
    OK(stet_repo_put_result(a, stet_value_int(77), &id, &err));
    FAILS(stet_repo_copy(a, b, &id, 1, &(stet_ref_swap){"refs/exec/1", NULL, &id}, 1, &report, &err), STET_CONFLICT,
          "refs/exec/1");
    /* damaged where it comes from: nothing arrives */
    stet_value t = stet_value_string("to be damaged");
    OK(stet_repo_put_result(a, t, &id, &err));
    stet_value_release(t);
    stet_db_exec(a->db, "UPDATE object SET bytes = replace(bytes, 'to be', 'was a')");
    int64_t before = kit_count(b, "SELECT count(*) FROM object");
    FAILS(stet_repo_copy(a, b, &id, 1, NULL, 0, &report, &err), STET_CORRUPT, "not those that were written");
    assert_int_equal(kit_count(b, "SELECT count(*) FROM object"), before);
    stet_hash absent = stet_hash_of("x", 1);
    FAILS(stet_repo_copy(a, b, &absent, 1, NULL, 0, &report, &err), STET_NOT_FOUND, "has no object");
    stet_value_release(v);
    stet_repo_close(a);
    stet_repo_close(b);
}

static void repositories_have_addresses(void **state) {
    (void)state;
    stet_repo *r, *again;
    char *cwd = getcwd(NULL, 0), uri[4200];
    snprintf(uri, sizeof uri, "file://%s/with%%20blank/x.db", cwd);
    OK(stet_repo_open_uri(uri, 0, &r, &err));
    kit_put(r, "1");
    char *own = stet_repo_uri(r);
    OK(stet_repo_open_uri(own, STET_REPO_MUST_EXIST, &again, &err));
    assert_int_equal(kit_count(again, "SELECT count(*) FROM object"), 1);
    stet_repo_close(again);
    stet_repo_close(r);
    stet_free(own);
    snprintf(uri, sizeof uri, "file:%s/directory", cwd);
    OK(stet_repo_open_uri(uri, 0, &r, &err));
    assert_non_null(strstr(stet_repo_path(r), "/directory/repo.db"));
    stet_repo_close(r);
    bool created;
    stet_project *p;
    OK(stet_project_init("prj", &created, &err));
    OK(stet_project_open("prj", &p, &err));
    snprintf(uri, sizeof uri, "file://localhost%s/prj/", cwd);
    OK(stet_repo_open_uri(uri, 0, &r, &err));
    OK(stet_repo_open(p, 0, &again, &err));
    assert_string_equal(stet_repo_path(r), stet_repo_path(again));
    stet_repo_close(r);
    stet_repo_close(again);
    stet_project_close(p);
    static const char *const bad[] = {"http://x/y", "file://host/x", "file:relative", "file:///a%00b", "file:///a%zz"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        FAILS(stet_repo_open_uri(bad[i], 0, &r, &err), STET_INVALID, "not the address");
    free(cwd);
}

int main(void) {
    faults_fast_directory();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_created_before_the_first_write),
        cmocka_unit_test(values_come_back_as_they_were),
        cmocka_unit_test(endless_values_are_refused),
        cmocka_unit_test(an_object_needs_what_it_names),
        cmocka_unit_test(what_does_not_verify_is_not_handed_out),
        cmocka_unit_test(ids_are_found_by_their_beginning),
        cmocka_unit_test(refs_change_by_compare_and_swap),
        cmocka_unit_test(pins_are_found_and_replaced),
        cmocka_unit_test(exec_maps_are_the_same_however_they_came),
        cmocka_unit_test(exec_maps_with_entries_in_the_wrong_place_are_refused),
        cmocka_unit_test(exec_maps_that_name_a_part_in_many_places_are_refused),
        cmocka_unit_test(exec_maps_with_parts_that_are_no_digits_are_refused),
        cmocka_unit_test(maps_that_others_name_stay),
        cmocka_unit_test(attempts_move_by_compare_and_set),
        cmocka_unit_test(what_is_missing_is_copied),
        cmocka_unit_test(repositories_have_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
