/* observe_places.c - the index of places: a bit for each action, 64 to a row.
 *
 * Many actions read places one by one, with flags that change, and writes ask for them. A file of the previous layout
 * is migrated.
 */

#include "observe_kit.h"

#include "../memory_old.h"

enum { MANY = 300 }; /* more than a handle keeps of one document, and several blocks */

static const char *name_of(int i) {
    static char name[16];
    snprintf(name, sizeof name, "x%d", i);
    return name;
}

/* Action i reads /value/k<i % 7> of one document: every third one shallowly, if `i % 3` is `shallow`. */
static void reads_one(int i, int shallow) {
    char pointer[32];
    snprintf(pointer, sizeof pointer, "/value/k%d", i % 7);
    run r = begin("", name_of(i));
    reads(&r, NULL, "shared", pointer, i % 3 == shallow ? STET_SHALLOW : STET_RECURSIVE);
    commit(&r);
}

/* Reads another document instead, and writes one of its own. */
static void reads_other(int i) {
    char out[16];
    snprintf(out, sizeof out, "out%d", i);
    run_simple(name_of(i), "other", "/value", STET_RECURSIVE, out, i);
}

static int dirty(void) {
    int n = 0;
    for (int i = 0; i < MANY; i++)
        n += state_of(name_of(i)) == STET_STATE_DIRTY;
    return n;
}

static void a_change_marks_exactly_those_of_many_readers_whom_it_touches(void **state) {
    (void)state;
    set(a, "", "shared", "{\"k0\": {\"x\": 1}, \"k1\": 1, \"k2\": 1, \"k3\": 1, \"k4\": 1, \"k5\": 1, \"k6\": 1}");
    for (int i = 0; i < MANY; i++)
        reads_one(i, 1);
    set(a, "", "shared/k0/x", "2");
    for (int i = 0; i < MANY; i++)
        assert_int_equal(state_of(name_of(i)), i % 7 == 0 && i % 3 != 1 ? STET_STATE_DIRTY : STET_STATE_STANDS);
}

static void one_that_reads_otherwise_than_before_is_marked_as_it_reads_now(void **state) {
    (void)state;
    set(a, "", "shared", "{\"k0\": {\"x\": 1}, \"k1\": 1, \"k2\": 1, \"k3\": 1, \"k4\": 1, \"k5\": 1, \"k6\": 1}");
    for (int i = 0; i < MANY; i++)
        reads_one(i, 1);
    for (int i = 0; i < MANY; i++)
        reads_one(i, 2); /* shallow ones become recursive, others shallow */
    set(a, "", "shared/k0/x", "2");
    for (int i = 0; i < MANY; i++)
        assert_int_equal(state_of(name_of(i)), i % 7 == 0 && i % 3 != 2 ? STET_STATE_DIRTY : STET_STATE_STANDS);
}

static void one_that_reads_something_else_is_no_longer_marked(void **state) {
    (void)state;
    set(a, "", "shared", "{\"k0\": 1}");
    for (int i = 0; i < MANY; i++)
        reads_one(i, -1);
    for (int i = 0; i < MANY; i += 2)
        reads_other(i);
    set(a, "", "shared/k0", "2");
    for (int i = 0; i < MANY; i++)
        assert_int_equal(state_of(name_of(i)), i % 7 == 0 && i % 2 ? STET_STATE_DIRTY : STET_STATE_STANDS);
    /* Where nobody of a block is left, no row is. */
    for (int i = 1; i < MANY; i += 2)
        reads_other(i);
    assert_int_equal(stet_db_int(stet_space_db(a),
                                 "SELECT count(*) FROM place_index WHERE key ="
                                 " (SELECT doc FROM document WHERE id = 'shared')",
                                 -1),
                     0);
}

static void an_action_that_stands_twice_at_a_place_is_found_by_check(void **state) {
    (void)state;
    char text[512];
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    sql(a, "UPDATE place_index SET shallow = reads"); /* both at once: nothing writes that */
    assert_int_equal(problems_of(a, false, text), 2); /* other flags, and the right ones are missing */
    assert_non_null(strstr(text, "other flags"));
    problems_of(a, true, text);
    assert_int_equal(problems_of(a, false, text), 0);
    assert_int_equal(state_of("x"), STET_STATE_UNKNOWN);
}

/* The tables as they were: a row for each action. */
static const char before[] =
    "CREATE TABLE read_index("
    "  key INTEGER NOT NULL, path BLOB NOT NULL, action INTEGER NOT NULL, flags INTEGER NOT NULL,"
    "  PRIMARY KEY(key, path, action)) WITHOUT ROWID;"
    "CREATE TABLE write_index("
    "  key INTEGER NOT NULL, path BLOB NOT NULL, action INTEGER NOT NULL, flags INTEGER NOT NULL,"
    "  PRIMARY KEY(key, path, action)) WITHOUT ROWID;"
    "WITH RECURSIVE bit(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM bit WHERE n < 63)"
    " INSERT INTO read_index SELECT key, path, block * 64 + n, shallow >> n & 1 FROM place_index, bit"
    " WHERE (reads | shallow) >> n & 1;"
    "WITH RECURSIVE bit(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM bit WHERE n < 63)"
    " INSERT INTO write_index SELECT key, path, block * 64 + n,"
    " (known >> n & 1) + (declared >> n & 1) * 2 + (envelopes >> n & 1) * 4 FROM place_index, bit"
    " WHERE (known | declared | envelopes) >> n & 1;"
    "DROP TABLE place_index;"
    "DROP TABLE complete_branch;"
    "CREATE TABLE run_count(reason INTEGER PRIMARY KEY, runs INTEGER NOT NULL);"
    "INSERT INTO run_count SELECT substr(name, 6), value FROM space_meta WHERE name LIKE 'runs:%';"
    "DELETE FROM space_meta WHERE name LIKE 'runs:%';"
    "DROP INDEX IF EXISTS action_failed;"
    "PRAGMA user_version = 4";

static void a_file_with_a_row_for_each_action_is_taken_over(void **state) {
    (void)state;
    set(a, "", "shared", "{\"k0\": {\"x\": 1}}");
    for (int i = 0; i < MANY; i++)
        reads_one(i, 1);
    run_simple("writer", "in", "/value", STET_RECURSIVE, "out", 1);
    stet_observe_stats was, is;
    ok(stet_observe_stat(a, &was, &err));
    without_sums(stet_space_db(a));
    ok(stet_db_begin_write(stet_space_db(a), &err));
    stet_db_exec(stet_space_db(a), before);
    ok(stet_db_commit(stet_space_db(a), &err));
    reopen();
    ok(stet_observe_stat(a, &is, &err));
    assert_int_equal(is.read_rows, was.read_rows);
    assert_int_equal(is.read_rows, MANY + 1);
    assert_int_equal(is.write_rows, was.write_rows);
    assert_memory_equal(is.runs, was.runs, sizeof is.runs);
    assert_int_equal(is.runs[STET_REASON_NEVER], MANY + 1);
    char text[512];
    assert_int_equal(problems_of(a, false, text), 0);
    set(a, "", "shared/k0/x", "2");
    assert_int_equal(dirty(), MANY / 7 + 1 - (MANY / 7 + 1 + 1) / 3);
    set(a, "", "out", "7");
    assert_int_equal(state_of("writer"), STET_STATE_DIRTY);
}

static void a_file_without_sums_of_readers_is_taken_over(void **state) {
    (void)state;
    set(a, "", "in", "1");
    run_simple("x", "in", "/value", STET_RECURSIVE, "out", 1);
    run_simple("y", "in2", "/value", STET_RECURSIVE, "out2", 1);
    cross("z", 1);
    set(a, "", "in", "2");
    without_reader_sums(stet_space_db(a));
    without_reader_sums(stet_space_db(b));
    reopen();
    char text[512];
    assert_int_equal(problems_of(a, false, text), 0);
    assert_int_equal(problems_of(b, false, text), 0);
    assert_int_equal(state_of("x"), STET_STATE_DIRTY);
    assert_int_equal(state_of("y"), STET_STATE_STANDS);
    set(b, "", "far", "1");
    set(a, "", "in2", "1");
    assert_int_equal(state_of("z"), STET_STATE_DIRTY);
    assert_int_equal(state_of("y"), STET_STATE_DIRTY);
    /* From now on a mark that is gone is missed. */
    ok(stet_db_begin_write(stet_space_db(a), &err));
    stet_db_exec(stet_space_db(a), "DELETE FROM mark WHERE action = (SELECT action FROM action WHERE name = 'y')");
    ok(stet_db_commit(stet_space_db(a), &err));
    reopen();
    assert_int_equal(state_of("y"), STET_STATE_UNKNOWN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        test(a_change_marks_exactly_those_of_many_readers_whom_it_touches),
        test(one_that_reads_otherwise_than_before_is_marked_as_it_reads_now),
        test(one_that_reads_something_else_is_no_longer_marked),
        test(an_action_that_stands_twice_at_a_place_is_found_by_check),
        test(a_file_with_a_row_for_each_action_is_taken_over),
        test(a_file_without_sums_of_readers_is_taken_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
