/* fleet_queue.c - the queue: order, every move between states, leases, and workers with a driver of the test's own. */

#include "../expect.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "../faults.h"
#include "../fleet.h"
#include "fleet/queue.h"
#include "os/clock.h"

static stet_queue q;
static int number;

static int setup(void **state) {
    (void)state;
    snprintf(fleet_home, sizeof fleet_home, "home%d", number++);
    q = (stet_queue){.home = fleet_home};
    return 0;
}

static const char *text_at(stet_value object, const char *key) {
    static stet_value keep[4];
    static int turn;
    stet_value *v = &keep[turn++ % 4];
    *v = stet_value_get(object, key);
    return stet_value_as_string(v, NULL);
}

/* Adds an entry and gives its id, which lives until the next four calls. */
static const char *add(const char *app, int64_t priority) {
    static char ids[4][64];
    static int turn;
    char *id = ids[turn++ % 4];
    stet_value entry;
    OK(stet_queue_add(&q, &(stet_queue_spec){.app = app, .repo = "/p", .priority = priority}, &entry, &err));
    snprintf(id, 64, "%s", text_at(entry, "id"));
    stet_value_release(entry);
    return id;
}

static stet_queue_status status_of(const char *id) {
    stet_value entry;
    stet_queue_status s;
    OK(stet_queue_show(&q, id, &entry, &err));
    assert_true(stet_queue_status_of_name(text_at(entry, "status"), &s));
    stet_value_release(entry);
    return s;
}

static int64_t attempts_of(const char *id) {
    stet_value entry;
    OK(stet_queue_show(&q, id, &entry, &err));
    int64_t n = stet_value_as_int(stet_value_get(entry, "attempts"));
    stet_value_release(entry);
    return n;
}

static void lower_priority_drains_first_then_time_then_id(void **state) {
    (void)state;
    static const struct {
        const char *app;
        int64_t priority;
    } rows[] = {{"c", 5}, {"a", -1}, {"d", 5}, {"b", 0}, {"e", 9}};
    for (size_t i = 0; i < 5; i++) {
        add(rows[i].app, rows[i].priority);
        stet_clock_sleep_ms(2);
    }
    stet_value list, drained;
    size_t remaining;
    OK(stet_queue_list(&q, NULL, NULL, &list, &err));
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(text_at(stet_value_at(list, i), "app")[0], 'a' + (int)i);
    stet_value_release(list);
    OK(stet_queue_drain(&q, NULL, 0, &drained, &remaining, &err));
    assert_int_equal(stet_value_count(drained), 0); /* a limit of 0 is 0 */
    assert_int_equal(remaining, 5);
    stet_value_release(drained);
    OK(stet_queue_drain(&q, NULL, 2, &drained, &remaining, &err));
    assert_int_equal(stet_value_count(drained), 2);
    assert_int_equal(remaining, 3);
    assert_string_equal(text_at(stet_value_at(drained, 0), "app"), "a");
    stet_value_release(drained);
    OK(stet_queue_drain(&q, "/elsewhere", 9, &drained, &remaining, &err));
    assert_int_equal(stet_value_count(drained), 0);
    stet_value_release(drained);
}

static void an_entry_must_name_something(void **state) {
    (void)state;
    stet_value entry;
    FAILS(stet_queue_add(&q, &(stet_queue_spec){.repo = "/p"}, &entry, &err), STET_INVALID, "names nothing");
    FAILS(stet_queue_add(&q, &(stet_queue_spec){.app = "", .repo = "/p"}, &entry, &err), STET_INVALID, "names nothing");
    FAILS(stet_queue_add(&q, &(stet_queue_spec){.app = "a"}, &entry, &err), STET_INVALID, "no project");
    FAILS(stet_queue_add(&q, &(stet_queue_spec){.run_id = "a/b", .repo = "/p"}, &entry, &err), STET_INVALID,
          "no run id");
    FAILS(stet_queue_add(&q, &(stet_queue_spec){.app = "\xff", .repo = "/p"}, &entry, &err), STET_INVALID, "app");
}

/* Brings a new entry into a state by ways that there are. */
static void bring(const char *id, stet_queue_status to, char token[STET_QUEUE_TOKEN]) {
    stet_value entry, list;
    size_t remaining;
    switch (to) {
    case STET_QUEUED_PENDING:
        return;
    case STET_QUEUED_DRAINED:
        OK(stet_queue_drain(&q, NULL, 1, &list, &remaining, &err));
        stet_value_release(list);
        return;
    case STET_QUEUED_CANCELLED:
        OK(stet_queue_change(&q, id, STET_QUEUE_CANCEL, 0, NULL, &entry, &err));
        stet_value_release(entry);
        return;
    default:
        break;
    }
    OK(stet_queue_lease(&q, NULL, 60000, token, &entry, NULL, &err));
    stet_value_release(entry);
    if (to == STET_QUEUED_LEASED)
        return;
    stet_queue_outcome how = to == STET_QUEUED_DONE     ? STET_OUTCOME_DONE
                             : to == STET_QUEUED_FAILED ? STET_OUTCOME_FAILED
                                                        : STET_OUTCOME_PARKED;
    OK(stet_queue_settle(&q, id, token, how, 1, NULL, NULL, &entry, &err));
    stet_value_release(entry);
}

/* Every state with every move, the forbidden ones included. */
static void every_move_from_every_state(void **state) {
    (void)state;
    static const char table[STET_QUEUE_STATUSES][5] = {
        /*            cancel requeue done fail priority */
        /* pending   */ {'c', 0, 0, 0, 'p'},       /* leased    */ {'c', 0, 0, 0, 0},
        /* drained   */ {'c', 'p', 'd', 'f', 'r'},
        /* done      */ {0, 0, 0, 0, 0},           /* failed    */ {'c', 'p', 0, 0, 0},
        /* cancelled */ {0, 'p', 0, 0, 0},
        /* parked    */ {'c', 'p', 0, 0, 'k'}};
    for (int s = 0; s < STET_QUEUE_STATUSES; s++)
        for (int move = 0; move < 5; move++) {
            setup(NULL);
            char token[STET_QUEUE_TOKEN];
            const char *id = add("a", 0);
            bring(id, (stet_queue_status)s, token);
            assert_int_equal(status_of(id), s);
            stet_value entry;
            stet_status st = stet_queue_change(&q, id, (stet_queue_move)move, 7, "n", &entry, &err);
            if (table[s][move] == 0) {
                assert_int_equal(st, STET_CONFLICT);
                assert_int_equal(status_of(id), s);
                stet_error_clear(&err);
                continue;
            }
            assert_int_equal(st, STET_OK);
            stet_value_release(entry);
            static const char letters[] = "plrdfck";
            assert_int_equal(letters[status_of(id)], table[s][move]);
        }
}

static void only_the_token_of_the_lease_settles_it(void **state) {
    (void)state;
    char token[STET_QUEUE_TOKEN], other[STET_QUEUE_TOKEN] = "00000000000000000000000000000000";
    const char *id = add("a", 0);
    stet_value entry;
    OK(stet_queue_lease(&q, NULL, 60000, token, &entry, NULL, &err));
    stet_value_release(entry);
    FAILS(stet_queue_settle(&q, id, other, STET_OUTCOME_DONE, 1, NULL, NULL, &entry, &err), STET_CONFLICT,
          "no longer leased");
    FAILS(stet_queue_renew(&q, id, other, 1000, &err), STET_CONFLICT, "no longer leased");
    OK(stet_queue_renew(&q, id, token, 1000, &err));
    OK(stet_queue_settle(&q, id, token, STET_OUTCOME_DONE, 1, "run-1", NULL, &entry, &err));
    assert_string_equal(text_at(entry, "runId"), "run-1");
    stet_value_release(entry);
    FAILS(stet_queue_settle(&q, id, token, STET_OUTCOME_DONE, 1, NULL, NULL, &entry, &err), STET_CONFLICT,
          "no longer leased");
}

static void a_lease_that_ends_returns_the_entry_and_the_last_one_parks_it(void **state) {
    (void)state;
    char token[STET_QUEUE_TOKEN], second[STET_QUEUE_TOKEN];
    const char *id = add("a", 0);
    stet_value entry;
    for (int attempt = 1; attempt <= STET_QUEUE_MAX_ATTEMPTS; attempt++) {
        OK(stet_queue_lease(&q, NULL, 1, token, &entry, NULL, &err));
        stet_value_release(entry);
        assert_int_equal(attempts_of(id), attempt);
        stet_clock_sleep_ms(5); /* its time is over */
    }
    FAILS(stet_queue_lease(&q, NULL, 1, second, &entry, NULL, &err), STET_NOT_FOUND, "nothing");
    assert_int_equal(status_of(id), STET_QUEUED_PARKED);
    FAILS(stet_queue_settle(&q, id, token, STET_OUTCOME_DONE, 1, NULL, NULL, &entry, &err), STET_CONFLICT, "no longer");
}

static void the_lease_of_a_dead_process_ends_at_once(void **state) {
    (void)state;
    const char *id = add("a", 0);
    pid_t pid = fork();
    if (pid == 0) {
        char token[STET_QUEUE_TOKEN];
        stet_value entry;
        _exit(stet_queue_lease(&q, NULL, 3600000, token, &entry, NULL, &err) != STET_OK);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(status_of(id), STET_QUEUED_LEASED);
    char token[STET_QUEUE_TOKEN];
    stet_value entry;
    OK(stet_queue_lease(&q, NULL, 60000, token, &entry, NULL, &err));
    assert_int_equal(stet_value_as_int(stet_value_get(entry, "attempts")), 2);
    stet_value_release(entry);
}

static void a_retry_waits_and_a_return_does_not_count(void **state) {
    (void)state;
    char token[STET_QUEUE_TOKEN];
    const char *id = add("a", 0);
    stet_value entry;
    int64_t ready_at = 0;
    OK(stet_queue_lease(&q, NULL, 60000, token, &entry, NULL, &err));
    stet_value_release(entry);
    OK(stet_queue_settle(&q, id, token, STET_OUTCOME_RETURN, 1000, NULL, NULL, &entry, &err));
    stet_value_release(entry);
    assert_int_equal(attempts_of(id), 0);
    OK(stet_queue_lease(&q, NULL, 60000, token, &entry, NULL, &err));
    stet_value_release(entry);
    OK(stet_queue_settle(&q, id, token, STET_OUTCOME_RETRY, 60000, NULL, "disk full", &entry, &err));
    assert_string_equal(text_at(entry, "lastError"), "disk full");
    stet_value_release(entry);
    FAILS(stet_queue_lease(&q, NULL, 60000, token, &entry, &ready_at, &err), STET_NOT_FOUND, "nothing");
    assert_true(ready_at > stet_clock_ms());
}

static void damaged_queues_are_refused_and_left_alone(void **state) {
    (void)state;
    static const char *const bad[] = {
        "", "[]", "{\"schemaVersion\":1}", "{\"schemaVersion\":1,\"entries\":[{}]}",
        ("{\"schemaVersion\":1,\"entries\":[{\"id\":\"a\",\"status\":\"odd\",\"enqueuedAt\":\"2026-01-01\","
         "\"priority\":0,\"attempts\":0}]}")};
    char *path = stet_asprintf("%s/registry/queue.json", fleet_home);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stet_value entry;
        fleet_put(path, bad[i]);
        assert_int_equal(stet_queue_list(&q, NULL, NULL, &entry, &err), STET_CORRUPT);
        stet_error_clear(&err);
        assert_int_equal(stet_queue_add(&q, &(stet_queue_spec){.app = "a", .repo = "/p"}, &entry, &err), STET_CORRUPT);
        stet_error_clear(&err);
        char *now = fleet_read(path);
        assert_string_equal(now, bad[i]);
        stet_free(now);
    }
    stet_free(path);
}

static void pruning_drops_only_what_ended_well_long_ago(void **state) {
    (void)state;
    char token[STET_QUEUE_TOKEN];
    size_t dropped;
    const char *done = add("a", 0), *parked, *waiting;
    bring(done, STET_QUEUED_DONE, token);
    parked = add("b", 0);
    bring(parked, STET_QUEUED_PARKED, token);
    waiting = add("c", 0);
    OK(stet_queue_prune(&q, stet_clock_ms() + 1000, true, &dropped, &err));
    assert_int_equal(dropped, 1);
    assert_int_equal(status_of(done), STET_QUEUED_DONE); /* dry */
    OK(stet_queue_prune(&q, 1, false, &dropped, &err));
    assert_int_equal(dropped, 0); /* not long ago */
    OK(stet_queue_prune(&q, stet_clock_ms() + 1000, false, &dropped, &err));
    assert_int_equal(dropped, 1);
    stet_value entry;
    FAILS(stet_queue_show(&q, done, &entry, &err), STET_NOT_FOUND, "no entry");
    assert_int_equal(status_of(parked), STET_QUEUED_PARKED);
    assert_int_equal(status_of(waiting), STET_QUEUED_PENDING);
}

/* A driver that does what the name of the app says. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int driven, together, most_together;

static stet_status fake_driver(const stet_drive_request *request, stet_drive_result *result, stet_error *e) {
    pthread_mutex_lock(&mutex);
    driven++;
    together++;
    if (together > most_together)
        most_together = together;
    pthread_mutex_unlock(&mutex);
    stet_clock_sleep_ms(strcmp(request->app, "slow") == 0 ? 400 : 20);
    pthread_mutex_lock(&mutex);
    together--;
    pthread_mutex_unlock(&mutex);
    snprintf(result->run_id, sizeof result->run_id, "run-of-%s", request->app);
    if (strcmp(request->app, "fails") == 0) {
        result->verdict = STET_DRIVE_FAILED;
        strcpy(result->reason, "a task failed");
    } else if (strcmp(request->app, "blocked") == 0)
        result->verdict = STET_DRIVE_BLOCKED;
    else if (strcmp(request->app, "busy") == 0)
        return stet_fail(e, STET_BUSY, "locked");
    else if (strcmp(request->app, "absent") == 0)
        return stet_fail(e, STET_NOT_FOUND, "no such pattern");
    return STET_OK;
}

static void workers_drive_and_settle(void **state) {
    (void)state;
    stet_queue_work_report report;
    driven = most_together = 0;
    const char *apps[] = {"ok1", "ok2", "fails", "blocked", "absent", "busy", "ok3", "slow"};
    static const stet_queue_status expected[] = {STET_QUEUED_DONE,   STET_QUEUED_DONE,   STET_QUEUED_FAILED,
                                                 STET_QUEUED_PARKED, STET_QUEUED_PARKED, STET_QUEUED_PARKED,
                                                 STET_QUEUED_DONE,   STET_QUEUED_DONE};
    char ids[8][64];
    for (int i = 0; i < 8; i++)
        strcpy(ids[i], add(apps[i], i));
    FAILS(stet_queue_work(&q, &(stet_queue_work_opts){.limit = 1}, &report, &err), STET_UNSUPPORTED, "drive");
    /* A lease far shorter than the slow drive: it lives by being renewed. */
    stet_queue_work_opts opts = {
        .driver = fake_driver, .workers = 3, .limit = SIZE_MAX, .lease_ms = 150, .retry_ms = 20};
    OK(stet_queue_work(&q, &opts, &report, &err));
    for (int i = 0; i < 8; i++)
        assert_int_equal(status_of(ids[i]), expected[i]);
    assert_int_equal(report.done, 4);
    assert_int_equal(report.failed, 1);
    assert_int_equal(report.parked, 3);
    assert_int_equal(report.returned, 2); /* busy, twice, before it was parked */
    assert_int_equal(driven, 7 + 3);
    assert_int_equal(attempts_of(ids[7]), 1); /* the slow one ran once */
    assert_int_equal(attempts_of(ids[5]), 3);
    assert_true(most_together >= 2 && most_together <= 3);
    stet_value entry;
    OK(stet_queue_show(&q, ids[0], &entry, &err));
    assert_string_equal(text_at(entry, "runId"), "run-of-ok1");
    stet_value_release(entry);
}

static bool stop_now(void *context) {
    (void)context;
    return driven >= 2;
}

static void a_limit_and_a_stop_are_kept(void **state) {
    (void)state;
    stet_queue_work_report report;
    driven = 0;
    for (int i = 0; i < 6; i++)
        add("ok", 0);
    stet_queue_work_opts opts = {.driver = fake_driver, .workers = 2, .limit = 3};
    OK(stet_queue_work(&q, &opts, &report, &err));
    assert_int_equal(driven, 3);
    driven = 0;
    opts = (stet_queue_work_opts){.driver = fake_driver, .workers = 1, .limit = SIZE_MAX, .cancelled = stop_now};
    OK(stet_queue_work(&q, &opts, &report, &err));
    assert_int_equal(driven, 2);
    opts.limit = 0;
    OK(stet_queue_work(&q, &opts, &report, &err));
    assert_int_equal(driven, 2);
}

static void each_failing_call_leaves_the_queue_whole(void **state) {
    (void)state;
    add("first", 0);
    for (int64_t n = 1;; n++) {
        stet_value entry, list;
        OK(stet_queue_list(&q, NULL, NULL, &list, &err));
        size_t before = stet_value_count(list);
        stet_value_release(list);
        faults_arm_durable(n, STET_SYS_FAIL, ENOSPC);
        stet_status st = stet_queue_add(&q, &(stet_queue_spec){.app = "x", .repo = "/p"}, &entry, &err);
        faults_disarm();
        stet_error_clear(&err);
        if (st == STET_OK)
            stet_value_release(entry);
        OK(stet_queue_list(&q, NULL, NULL, &list, &err));
        size_t after = stet_value_count(list);
        stet_value_release(list);
        assert_true(st == STET_OK ? after == before + 1 : after == before || after == before + 1);
        if (!faults_fired()) {
            assert_int_equal(st, STET_OK);
            break;
        }
    }
}

#define T(f) cmocka_unit_test_setup(f, setup)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(lower_priority_drains_first_then_time_then_id),
        T(an_entry_must_name_something),
        T(every_move_from_every_state),
        T(only_the_token_of_the_lease_settles_it),
        T(a_lease_that_ends_returns_the_entry_and_the_last_one_parks_it),
        T(the_lease_of_a_dead_process_ends_at_once),
        T(a_retry_waits_and_a_return_does_not_count),
        T(damaged_queues_are_refused_and_left_alone),
        T(pruning_drops_only_what_ended_well_long_ago),
        T(workers_drive_and_settle),
        T(a_limit_and_a_stop_are_kept),
        T(each_failing_call_leaves_the_queue_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
