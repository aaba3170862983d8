/* estimate.c - how long a drive will still take: from the times in run files of the same piece alone. */

#include "../expect.h"

#include "../fleet.h"
#include "drive/estimate.h"
#include "os/clock.h"

static char *root;
static stet_project *project;

static int begin(void **state) {
    (void)state;
    root = fleet_project("p");
    OK(stet_project_open(root, &project, &err));
    return 0;
}

static int end(void **state) {
    (void)state;
    stet_project_close(project);
    stet_free(root);
    return system("rm -rf p") == 0 ? 0 : -1;
}

#define TASK(id, from, to, status)                                                                                     \
    "{\"id\":\"" id "\",\"status\":\"" status "\",\"startedAt\":\"2026-01-01T00:00:" from                              \
    "Z\",\"endedAt\":\"2026-01-01T00:00:" to "Z\"}"

static void past(const char *id, const char *piece, const char *tasks) {
    char *more = stet_asprintf(",\"piece\":\"%s\"", piece);
    fleet_run(root, id, "2026-01-01T00:00:00Z", tasks, more);
    stet_free(more);
}

static bool all(void *ctx, const char *node) {
    return ctx == NULL || strcmp(ctx, node) == 0;
}

static void the_longest_completed_run_of_an_action_counts(void **state) {
    (void)state;
    past("20260101T000000Z-books-00000001", "books",
         TASK("count", "00", "05", "completed") "," TASK("report", "00", "02", "completed"));
    past("20260102T000000Z-books-00000002", "books",
         TASK("count", "10", "13", "completed") "," TASK("longest", "00", "30", "failed"));
    past("20260103T000000Z-books-00000003", "books", TASK("count", "10", "59", "failed"));
    past("20260104T000000Z-books-00000004", "other", TASK("count", "10", "11", "completed")); /* of another piece */
    past("20260104T000000Z-notes-00000005", "notes", TASK("count", "10", "11", "completed"));
    stet_estimate *e = stet_estimate_new(project, "books");
    assert_int_equal(stet_estimate_of(e, "count"), 5000); /* the newer one may have been put back */
    assert_int_equal(stet_estimate_of(e, "report"), 2000);
    assert_int_equal(stet_estimate_of(e, "longest"), -1);
    assert_int_equal(stet_estimate_saved(e, all, NULL), 7000);
    assert_int_equal(stet_estimate_saved(e, all, (char[]){"report"}), 2000); /* the other is no longer there */
    stet_estimate_started(e, "count", true);
    assert_int_equal(stet_estimate_saved(e, all, NULL), 2000);
    stet_estimate_free(e);
}

static void what_is_left_falls_with_time_and_is_shared_by_what_runs_at_once(void **state) {
    (void)state;
    past("20260101T000000Z-books-00000001", "books",
         TASK("a", "00", "10", "completed") "," TASK("b", "00", "10", "completed") "," TASK("c", "00", "20",
                                                                                            "completed"));
    stet_estimate *e = stet_estimate_new(project, "books");
    stet_estimate_started(e, "a", true);
    int64_t now = stet_clock_monotonic_us();
    int64_t left = stet_estimate_left(e, 0, now);
    assert_true(left > 9000 && left <= 10000);
    assert_true(stet_estimate_left(e, 0, now + 4000000) <= 6000);
    assert_int_equal(stet_estimate_left(e, 0, now + 60000000), 0); /* longer than ever: nothing is known */
    left = stet_estimate_left(e, 2, now);                          /* b and c wait */
    assert_true(left > 39000 && left <= 40000);
    stet_estimate_started(e, "b", true);
    left = stet_estimate_left(e, 1, now);
    assert_true(left > 19000 && left <= 20000);
    stet_estimate_ended(e, "a");
    stet_estimate_ended(e, "b");
    stet_estimate_ended(e, "never begun");
    assert_int_equal(stet_estimate_left(e, 100, now), 10000); /* no more wait than are known */
    stet_estimate_free(e);
}

/* It was told of commands in the queue as if they ran, and left them out of what is left as soon as they had waited for
 * as long as they take. */
static void what_waits_for_its_turn_is_not_shown_and_takes_its_whole_time(void **state) {
    (void)state;
    past("20260101T000000Z-books-00000001", "books",
         TASK("a", "00", "10", "completed") "," TASK("b", "00", "10", "completed") "," TASK("c", "00", "10",
                                                                                            "completed"));
    stet_estimate *e = stet_estimate_new(project, "books");
    stet_buf b = STET_BUF(0);
    for (const char *const *node = (const char *const[]){"a", "b", "c", "new", NULL}; *node; node++)
        stet_estimate_started(e, *node, false);
    int64_t now = stet_clock_monotonic_us();
    assert_int_equal(stet_estimate_left(e, 0, now + 60000000), 40000);
    stet_estimate_works(e, "b", true);
    now = stet_clock_monotonic_us();
    assert_int_equal(stet_estimate_left(e, 0, now + 60000000), 30000);
    stet_estimate_note(e, 0, &b);
    assert_string_equal(stet_buf_cstr(&b), "0 s, about 40 s left: b");
    stet_estimate_works(e, "b", false); /* its input has changed: it waits again */
    assert_int_equal(stet_estimate_left(e, 0, now + 60000000), 40000);
    stet_buf_release(&b);
    stet_estimate_free(e);
}

static void without_a_past_only_the_time_gone_by_is_told(void **state) {
    (void)state;
    stet_estimate *e = stet_estimate_new(project, "books");
    stet_buf b = STET_BUF(0);
    assert_int_equal(stet_estimate_left(e, 5, stet_clock_monotonic_us()), -1);
    for (const char *const *node = (const char *const[]){"a", "b", "c", "d", "e", NULL}; *node; node++)
        stet_estimate_started(e, *node, true);
    stet_estimate_note(e, 5, &b);
    assert_string_equal(stet_buf_cstr(&b), "0 s: a, b, c and 2 more");
    stet_buf_release(&b);
    stet_estimate_free(e);
}

static void damaged_and_foreign_runs_tell_nothing(void **state) {
    (void)state;
    past("20260101T000000Z-books-00000001", "books", TASK("a", "10", "05", "completed")); /* ends before it begins */
    past("20260101T000000Z-books-00000002", "books", "{\"id\":\"b\",\"status\":\"completed\"}");
    assert_int_equal(system("mkdir -p p/.stet/runs/20260101T000000Z-books-00000003 && echo '{' > "
                            "p/.stet/runs/20260101T000000Z-books-00000003/state.json"),
                     0);
    stet_estimate *e = stet_estimate_new(project, "books");
    assert_int_equal(stet_estimate_of(e, "a"), -1);
    assert_int_equal(stet_estimate_of(e, "b"), -1);
    stet_estimate_free(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_longest_completed_run_of_an_action_counts, begin, end),
        cmocka_unit_test_setup_teardown(what_is_left_falls_with_time_and_is_shared_by_what_runs_at_once, begin, end),
        cmocka_unit_test_setup_teardown(what_waits_for_its_turn_is_not_shown_and_takes_its_whole_time, begin, end),
        cmocka_unit_test_setup_teardown(without_a_past_only_the_time_gone_by_is_told, begin, end),
        cmocka_unit_test_setup_teardown(damaged_and_foreign_runs_tell_nothing, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
