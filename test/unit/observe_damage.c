/* observe_damage.c - single rows of the scheduler's tables are lost or altered.
 *
 * Nothing crashes, check names what it can see, repair makes it unknown, nothing that should run is called up to date,
 * and the next run of each action puts it right.
 */

#include "observe_kit.h"

#include "../faults.h"

/* x and w read the other space, x was changed there; y was changed here; z follows x, s reads keys alone, m is a
 * materializer, v never ran. */
static const char *const all[] = {"x", "w", "y", "z", "s", "m"};
static const char *doing = ""; /* the damage at hand */
enum { ACTIONS = sizeof all / sizeof *all };

static void run_again(const char *action, int64_t n) {
    if (strcmp(action, "x") == 0) {
        cross("x", n);
    } else if (strcmp(action, "w") == 0) {
        cross_from("w", "other", "out-w", n);
    } else if (strcmp(action, "y") == 0) {
        run_simple("y", "in", "/value", STET_RECURSIVE, "out-y", n);
    } else if (strcmp(action, "z") == 0) {
        run_simple("z", "out", "/value", STET_RECURSIVE, "out-z", n);
    } else if (strcmp(action, "s") == 0) {
        run_simple("s", "keys", "/value", STET_SHALLOW, "out-s", n);
    } else {
        run r = begin("", "m");
        r.o.implementation = stet_hash_of("other code", 10);
        r.envelopes[r.o.envelope_count++] = (stet_address){NULL, {"rows", ""}, at("/value")};
        reads(&r, NULL, "kept", "/value", STET_RECURSIVE);
        writes(&r, "rows/k", n);
        commit(&r);
    }
}

static void edit_all(int n) {
    char text[16];
    snprintf(text, sizeof text, "%d", n);
    set(b, "", "far", text);
    set(b, "", "other", text);
    set(a, "", "in", text);
    set(a, "", "out", text);
    snprintf(text, sizeof text, "{\"k%d\":1}", n);
    set(a, "", "keys", text);
    set(a, "", "kept", text);
}

/* As it is before the damage: kept in two files, and copied for each case. */
static void make_base(void) {
    a = space_named("a");
    b = space_named("b");
    set(a, "", "rows", "{}");
    edit_all(0);
    for (size_t i = 0; i < ACTIONS; i++)
        run_again(all[i], 1);
    run_again("w", 1); /* changes nothing */
    stet_action_key never = {"piece", "", "v"};
    ok(stet_observe_distrust(a, 0, &never, 1, STET_REASON_NEVER, &err));
    set(b, "", "far", "9");
    set(a, "", "in", "9");
    stet_space_close(a);
    stet_space_close(b);
    copy_file("a.db", "base-a");
    copy_file("b.db", "base-b");
}

static void restore(void) {
    static const char *const rests[] = {"a.db-wal", "a.db-shm", "b.db-wal", "b.db-shm"};
    for (size_t i = 0; i < 4; i++)
        ok(stet_file_remove(rests[i], &err));
    copy_file("base-a", "a.db");
    copy_file("base-b", "b.db");
}

static bool opens(void) {
    a = b = NULL;
    stet_status st = stet_space_open_path("a.db", "a", 0, &a, &err);
    if (st == STET_OK)
        st = stet_space_open_path("b.db", "b", 0, &b, &err);
    if (st == STET_OK)
        return true;
    assert_int_equal(st, STET_CORRUPT); /* and says so */
    stet_error_clear(&err);
    stet_space_close(a);
    stet_space_close(b);
    return false;
}

/* STET_STATE_STALE stands for: no record of it is found. */
static stet_action_state state_now(const char *action) {
    stet_action_record rec;
    stet_action_key key = {"piece", "", action};
    stet_status st = stet_observe_find(a, 0, &key, &arena, &rec, &err);
    if (st != STET_OK && st != STET_NOT_FOUND)
        fail_msg("%s: %s: %s", doing, action, err.message);
    stet_error_clear(&err);
    return st == STET_OK ? rec.cause.state : STET_STATE_STALE;
}

static void expect_sound(const char *what, const char *when) {
    char text[512];
    for (int i = 0; i < 2; i++)
        if (problems_of(i ? b : a, false, text))
            fail_msg("%s: %s: %s", what, when, text);
}

static bool answers(stet_status st) {
    assert_true(st == STET_OK || st == STET_CORRUPT);
    stet_error_clear(&err);
    return st == STET_OK;
}

/* Questions of every kind: any answer will do, also that the file is damaged. */
static void ask_everything(void) {
    stet_action_record *list, *past;
    stet_marked *marks;
    stet_observe_stats stats;
    size_t count = 0, past_count;
    int64_t next, rows;
    stet_action_filter f = {.generation = -1};
    for (int i = 0; i < 2; i++) {
        stet_space *s = i ? b : a;
        if (!answers(stet_observe_list(s, 0, &f, &arena, &list, &count, &next, &err)))
            count = 0;
        for (size_t k = 0; k < count; k++) {
            stet_action_state state;
            stet_value v = stet_action_value(&list[k]);
            stet_value_release(v);
            answers(stet_observe_state(s, 0, list[k].action, &state, NULL, &err));
            answers(stet_observe_past(s, list[k].action, &arena, &past, &past_count, &err));
        }
        answers(stet_observe_marks(s, 0, NULL, NULL, &arena, &marks, &count, &err));
        answers(stet_observe_stat(s, &stats, &err));
        answers(stet_observe_gc(s, &(stet_observe_gc_opts){.dry_run = true}, &rows, &err));
    }
}

/* What `stet check --repair` does before it looks at actions. */
static void repair_documents(stet_space *s) {
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    ok(stet_space_check(s, true, &problems, &found, &repaired, &err));
    stet_buf_release(&problems);
}

/* The damage is done. Returns how much check found. */
static size_t put_right(const char *what, char text[512]) {
    char more[512];
    size_t found = problems_of(a, false, text);
    if (found == 0)
        found = problems_of(b, false, text);
    ask_everything();
    repair_documents(a);
    repair_documents(b);
    problems_of(a, true, more);
    problems_of(b, true, more);
    expect_sound(what, "after the repair");
    ok(stet_observe_catch_up(a, &err));
    for (size_t i = 0; i < ACTIONS; i++) {
        bool changed = strcmp(all[i], "x") == 0 || strcmp(all[i], "y") == 0;
        if (changed && state_now(all[i]) == STET_STATE_STANDS)
            fail_msg("%s: %s is called standing", what, all[i]);
    }
    if (state_now("v") == STET_STATE_STANDS)
        fail_msg("%s: v is called standing", what);
    edit_all(20); /* what still stands has its rows */
    ok(stet_observe_catch_up(a, &err));
    for (size_t i = 0; i < ACTIONS; i++)
        if (state_now(all[i]) == STET_STATE_STANDS)
            fail_msg("%s: %s is called standing after an edit", what, all[i]);
    for (size_t i = 0; i < ACTIONS; i++)
        run_again(all[i], 30);
    ok(stet_observe_catch_up(a, &err));
    for (size_t i = 0; i < ACTIONS; i++)
        if (state_now(all[i]) != STET_STATE_STANDS)
            fail_msg("%s: %s ran, and is %s", what, all[i], stet_action_state_name(state_now(all[i])));
    expect_sound(what, "after the next run");
    edit_all(40);
    ok(stet_observe_catch_up(a, &err));
    for (size_t i = 0; i < ACTIONS; i++)
        if (state_now(all[i]) != STET_STATE_DIRTY)
            fail_msg("%s: %s was changed, and is %s", what, all[i], stet_action_state_name(state_now(all[i])));
    return found;
}

static void close_all(void) {
    stet_space_close(a);
    stet_space_close(b);
    stet_arena_clear(&arena);
}

/* Does the damage, if it can be done. `in`: 'a' or 'b'. `sealed`: checksums fit, as if stet had written it so. */
static bool hurts(char in, const char *text, bool sealed) {
    stet_db *db = stet_space_db(in == 'a' ? a : b);
    ok(stet_db_begin_write(db, &err));
    stet_db_exec(db, text);
    int64_t rows = stet_db_changes(db);
    if (sealed)
        reseal(db);
    stet_status st = stet_db_commit(db, &err);
    stet_error_clear(&err);
    close_all();
    return st == STET_OK && rows > 0;
}

static void check_names_what_is_lost_or_altered(void **state) {
    (void)state;
#define OF(name) "(SELECT action FROM action WHERE name = '" name "')"
    static const struct {
        char in;
        const char *damage, *named; /* NULL: catching up tells it, or nothing depends on it */
    } cases[] = {
        {'a', "DELETE FROM action WHERE name = 'z'", "an index row without an observation"},
        {'a', "DELETE FROM action WHERE name = 'y'", "a mark without an action"},
        {'a', "UPDATE action SET observation = NULL WHERE name = 'z'", "it has no observation, and is not marked"},
        {'a', "UPDATE action SET observation = x'FF' WHERE name = 'z'", "its observation does not decode"},
        {'a', "UPDATE action SET piece = piece + 1 WHERE name = 'z'", "its number is not one of its piece"},
        {'a', "UPDATE action SET branch = 77 WHERE name = 'z'", "an index row without an observation"},
        {'a', "DELETE FROM place_index WHERE key = (SELECT doc FROM document WHERE id = 'out')",
         "index row is missing"},
        {'a', "UPDATE place_index SET reads = 0", "an index row is missing"},
        {'a', "UPDATE place_index SET shallow = 0", "an index row is missing"},
        {'a', "UPDATE place_index SET reads = shallow, shallow = 0 WHERE shallow", "other flags than its observation"},
        {'a', "UPDATE place_index SET reads = reads | shallow WHERE shallow", "other flags than its observation"},
        {'a', "UPDATE place_index SET reads = reads | 1 << 62", "an index row without an observation"},
        {'a', "UPDATE place_index SET known = 0", "an index row"},
        {'a', "UPDATE place_index SET declared = 0", "an index row"},
        {'a', "UPDATE place_index SET envelopes = 0", "an index row is missing"},
        {'a', "UPDATE place_index SET path = x'01' WHERE reads", "an index row is missing"},
        {'a', "UPDATE place_index SET block = block + 1", "an index row without an observation"},
        {'a', "DELETE FROM mark WHERE action = " OF("x"), "a change in another space overlaps what it read, and it"},
        {'a', "DELETE FROM mark WHERE action = " OF("y"), "a change overlaps what it read or wrote, and it is not"},
        {'a', "DELETE FROM mark WHERE action = " OF("v"), "it has no observation, and is not marked"},
        {'a', "UPDATE mark SET action = " OF("z") " WHERE action = " OF("y"), "is not marked"},
        {'a', "UPDATE mark SET action = " OF("z") " WHERE action = " OF("y"), "it is marked dirty, and no change"},
        {'a', "UPDATE mark SET branch = 7 WHERE action = " OF("y"), "its mark is damaged"},
        {'a', "UPDATE mark SET state = 77 WHERE action = " OF("y"), "its mark is damaged"},
        {'a', "UPDATE mark SET state = 0 WHERE action = " OF("y"), "its mark is damaged"},
        {'a', "UPDATE mark SET seq = seq - 1 WHERE action = " OF("y"), "names a change that is not its cause"},
        {'a', "UPDATE mark SET doc = doc + 1 WHERE action = " OF("y"), "names a change that is not its cause"},
        {'a', "UPDATE mark SET kind = 1 - kind WHERE action = " OF("y"), "names a change that is not its cause"},
        {'a', "UPDATE mark SET reason = 2 WHERE action = " OF("y"), "names a change that is not its cause"},
        {'a', "UPDATE mark SET seq = 1 WHERE action = " OF("x"), "a change in another space that is not its cause"},
        {'a', "UPDATE mark SET space = 9 WHERE action = " OF("x"), "marked by a space that it does not read"},
        {'a', "DELETE FROM foreign_space", "it read a space that is not known"},
        {'a', "UPDATE foreign_space SET seen = 0", "at a sequence that was not noted"},
        {'a', "UPDATE foreign_space SET seen = 1000", NULL},
        {'a', "UPDATE foreign_space SET stamp = stamp + 1", NULL},
        {'a', "UPDATE foreign_space SET uuid = 'no'", NULL},
        {'a', "UPDATE foreign_space SET name = 'no'", NULL},
        {'a', "DELETE FROM foreign_read WHERE action = " OF("w"), "that it read another space is not noted"},
        {'a', "DELETE FROM fingerprint WHERE hash = (SELECT max(hash) FROM fingerprint)", "what computed it"},
        {'a', "DELETE FROM document WHERE id = 'kept'", "a document that it read or wrote has no name"},
        {'a', "DELETE FROM space_meta WHERE name = 'marked_through'", "up to which commit marks have been set"},
        {'a', "UPDATE space_meta SET value = 1000 WHERE name = 'marked_through'", "up to which commit"},
        {'a', "UPDATE space_meta SET value = 0 WHERE name = 'marked_through'", NULL},
        {'a', "DELETE FROM space_meta WHERE name = 'mark_stamp'", "found not to be needed"},
        {'a', "UPDATE space_meta SET value = '00000000-0000-4000-8000-000000000000' WHERE name = 'uuid'", NULL},
        {'b', "DELETE FROM mirror WHERE action = (SELECT max(action) FROM mirror)", "has no mirror there"},
        {'b', "UPDATE mirror SET flags = 1", "has no mirror there"},
        {'b', "UPDATE mirror SET path = x'01'", "has no mirror there"},
        {'b', "UPDATE mirror SET owner = 9", "has no mirror there"},
        {'b', "DELETE FROM mirror_owner", "mirrors of actions of a space that is not known"},
        {'b', "UPDATE mirror_owner SET stamp = stamp - 1", NULL},
        {'b', "UPDATE mirror_owner SET pushed = 0", NULL},
        {'b', "UPDATE mirror_owner SET pending = 1000", NULL},
        {'b', "UPDATE mirror_owner SET name = 'no'", NULL},
    };
#undef OF
    char text[512];
    enum { COUNT = sizeof cases / sizeof *cases };
    for (size_t n = 0; n < 2 * COUNT; n++) {
        size_t i = n / 2;
        bool sealed = n % 2;
        restore();
        assert_true(opens());
        if (!hurts(cases[i].in, cases[i].damage, sealed))
            fail_msg("%s: changes nothing", cases[i].damage);
        if (!opens())
            fail_msg("%s: can't be opened", cases[i].damage);
        size_t found = put_right(cases[i].damage, text);
        if (!sealed) { /* then the checksums tell, whatever else does; the UUID has none */
            if (!found && !strstr(cases[i].damage, "uuid'"))
                fail_msg("%s: check finds nothing", cases[i].damage);
            close_all();
            continue;
        }
        if (cases[i].named && !strstr(text, cases[i].named))
            fail_msg("%s: check does not say \"%s\", but: %s", cases[i].damage, cases[i].named, text);
        if (!cases[i].named && found)
            fail_msg("%s: %s", cases[i].damage, text);
        close_all();
    }
}

/* Each column of each row gets values that it should not have, and each row is taken away. */
static void no_single_row_makes_anything_stand_that_does_not(void **state) {
    (void)state;
    static const struct {
        char in;
        const char *table, *key, *columns;
    } tables[] = {
        {'a', "action", "action", "action branch piece generation name observation"},
        {'a', "place_index", "key, path, block", "key path block reads shallow known declared envelopes"},
        {'a', "mark", "action, space", "action space branch state reason seq doc id scope path kind stamp"},
        {'a', "foreign_space", "space", "space uuid name seen stamp"},
        {'a', "foreign_read", "space, action", "space action"},
        {'a', "fingerprint", "fingerprint", "fingerprint hash"},
        {'a', "space_meta", "name", "name value"},
        {'b', "space_meta", "name", "name value"},
        {'b', "mirror", "key, path, owner, action", "key path owner action flags"},
        {'b', "mirror_owner", "owner", "owner uuid name stamp pending pushed"},
    };
    static const char *const values[] = {"NULL", "0", "1", "3", "77", "-1", "'text'", "x'FF'", "x''"};
    enum { VALUES = sizeof values / sizeof *values };
    size_t step = getenv("STET_TEST_LONG") ? 1 : getenv("STET_TEST_SHORT") ? 97 : 23, n = 0, done = 0, seen = 0;
    char text[512];
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        char columns[128];
        snprintf(columns, sizeof columns, "%s", tables[t].columns);
        for (char *column = strtok(columns, " "); column; column = strtok(NULL, " "))
            for (int row = 0; row < 12; row++)
                for (size_t v = 0; v <= VALUES; v++) {
                    if (n++ % step)
                        continue;
                    char *sql_text =
                        v < VALUES ? stet_asprintf("UPDATE OR IGNORE %s SET %s = %s WHERE (%s) IN (SELECT %s FROM"
                                                   " %s LIMIT 1 OFFSET %d) AND %s IS NOT %s",
                                                   tables[t].table, column, values[v], tables[t].key, tables[t].key,
                                                   tables[t].table, row, column, values[v])
                                   : stet_asprintf("DELETE FROM %s WHERE (%s) IN (SELECT %s FROM %s LIMIT 1"
                                                   " OFFSET %d)",
                                                   tables[t].table, tables[t].key, tables[t].key, tables[t].table, row);
                    restore();
                    assert_true(opens());
                    doing = sql_text;
                    if (hurts(tables[t].in, sql_text, n % 2) && opens()) {
                        done++;
                        seen += put_right(sql_text, text) > 0;
                        close_all();
                    }
                    stet_free(sql_text);
                }
    }
    print_message("# %zu kinds of damage, %zu named by check\n", done, seen);
    assert_true(seen > done / 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_names_what_is_lost_or_altered),
        cmocka_unit_test(no_single_row_makes_anything_stand_that_does_not),
    };
    faults_fast_directory();
    make_base();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    stet_arena_release(&arena);
    return failed;
}
