/* fleet_ops.c - the operations on the fleet, called as a surface calls them.
 *
 * Tests strict arguments, and drives through a driver of the test's own.
 */

#include "../expect.h"

#include "../fleet.h"
#include "base/json.h"
#include "fleet/queue.h"
#include "fleet/run.h"
#include "operation/runs_common.h"
#include "os/clock.h"

static char *root;
static stet_project *opened;
static bool stop;
static int events;

static stet_status get_project(stet_op_ctx *ctx, stet_project **out, stet_error *e) {
    (void)ctx;
    stet_status st = opened ? STET_OK : stet_project_open(root, &opened, e);
    *out = opened;
    return st;
}
static stet_status emit(stet_op_ctx *ctx, stet_value event, stet_error *e) {
    (void)ctx;
    (void)event;
    (void)e;
    events++;
    return STET_OK;
}
static void progress(stet_op_ctx *ctx, int64_t done, int64_t total, const char *what) {
    (void)ctx;
    (void)done;
    (void)total;
    (void)what;
}
static bool cancelled(stet_op_ctx *ctx) {
    (void)ctx;
    return stop;
}
static void warn(stet_op_ctx *ctx, const char *format, ...) {
    (void)ctx;
    (void)format;
}

static stet_status fake_driver(const stet_drive_request *request, stet_drive_result *result, stet_error *e);
static stet_fleet_driver driver = fake_driver;

static stet_status call(const char *name, const char *args, stet_value *result) {
    stet_value given;
    const stet_op *op = stet_op_find(name);
    assert_non_null(op);
    stet_op_ctx ctx = {.op = op,
                       .cwd = root,
                       .project = get_project,
                       .emit = emit,
                       .progress = progress,
                       .cancelled = cancelled,
                       .drive = driver,
                       .warn = warn};
    OK(stet_json_parse(args, strlen(args), &given, &err));
    stet_status st = stet_op_call(&ctx, given, result, &err);
    stet_value_release(given);
    return st;
}

static const char *text_in(stet_value v, const char *a, const char *b) {
    static stet_value keep;
    keep = stet_value_get(b ? stet_value_get(v, a) : v, b ? b : a);
    return stet_value_as_string(&keep, NULL);
}

static int setup(void **state) {
    (void)state;
    root = fleet_project("p");
    setenv("STET_HOME", fleet_home, 1);
    fleet_run(root, "20260101T000000Z-x-00000001", "2026-01-01T00:00:00Z", HALF_DONE, "");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    stet_project_close(opened);
    free(root);
    return 0;
}

static void refused(const char *name, const char *args, const char *why) {
    stet_value result;
    FAILS(call(name, args, &result), STET_INVALID, why);
}

static void unknown_names_wrong_types_and_odd_values_are_refused(void **state) {
    (void)state;
    refused("runs search", "{\"include_archived\":\"false\"}", "include"); /* a boolean in quotes is no boolean */
    refused("runs search", "{\"frobnicate\":1}", "frobnicate");
    refused("runs search", "{\"status\":[\"finished\"]}", "finished");
    refused("runs search", "{\"status\":\"failed\"}", "status");
    refused("runs search", "{\"since\":\"a while ago\"}", "since");
    refused("runs search", "{\"since\":\"2026-13-01\"}", "since");
    refused("runs search", "{\"limit\":10001}", "limit");
    refused("runs search", "{\"limit\":\"5\"}", "limit");
    refused("runs search", "{\"limit\":-1}", "limit");
    refused("runs search", "{\"cursor\":\"AAAA\"}", "cursor");
    refused("runs show", "{}", "run");
    refused("runs show", "{\"run_id\":\"a/b\"}", "no run id");
    refused("runs archive", "{\"older_than_days\":5,\"run_id\":[\"x\"]}", "not both");
    refused("runs archive", "{\"older_than_days\":5,\"state\":[\"archived\"]}", "archived");
    refused("runs label", "{\"run_id\":\"20260101T000000Z-x-00000001\",\"add\":[\"a b\"]}", "no label");
    refused("queue add", "{}", "names nothing");
    refused("registry show", "{\"scope\":\"world\"}", "world");
}

static void times_are_taken_in_every_form_that_is_told(void **state) {
    (void)state;
    /* Beside the run of January: an hour old, 30 hours old, 80 hours old. */
    static const int hours[] = {1, 30, 80};
    int64_t now = stet_clock_ms(), midnight = now - now % 86400000, created[3];
    char id[40], at[STET_TIME_TEXT];
    for (int i = 0; i < 3; i++) {
        created[i] = now - (int64_t)hours[i] * 3600000;
        snprintf(id, sizeof id, "%d-hours-old", hours[i]);
        stet_time_print(created[i], at);
        fleet_run(root, id, at, DONE_TASK, "");
    }
    const struct {
        const char *since;
        int64_t found;
    } forms[] = {{"2026-01-01", 4},
                 {"2026-01-01T00:00:00Z", 4},
                 {"2026-01-01T02:00:00.000+02:00", 4},
                 {"2026-01-01T02:00:00.123456+02:00", 3},
                 {"2h", 1},
                 {"3d ago", 2},
                 {"yesterday", 1 + (created[1] >= midnight - 86400000)}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char args[128];
        stet_value result;
        snprintf(args, sizeof args, "{\"since\":\"%s\"}", forms[i].since);
        OK(call("runs search", args, &result));
        assert_int_equal(stet_value_as_int(stet_value_get(result, "total")), forms[i].found);
        stet_value_release(result);
    }
    for (int i = 0; i < 3; i++) {
        char *dir = stet_asprintf("%s/.stet/runs/%d-hours-old", root, hours[i]);
        OK(stet_file_remove_tree(dir, &err));
        stet_free(dir);
    }
}

/* Completes what is pending, as a driver would; `once` one of them. */
static stet_status fake_driver(const stet_drive_request *request, stet_drive_result *result, stet_error *e) {
    stet_project *p;
    stet_runfile *run;
    stet_status st = stet_project_open(request->root, &p, e);
    if (st != STET_OK)
        return st;
    if (request->run_id != NULL)
        st = stet_runfile_open(p, request->run_id, &run, e);
    else {
        st = stet_runfile_create(
            p, &(stet_runfile_spec){.name = request->app, .app_id = request->app, .inputs = request->inputs}, &run, e);
        if (st == STET_OK)
            stet_runfile_task(run, "only", NULL);
    }
    if (st != STET_OK) {
        stet_project_close(p);
        return st;
    }
    snprintf(result->run_id, sizeof result->run_id, "%s", stet_runfile_id(run));
    stet_value tasks = stet_value_retain(stet_value_get(stet_runfile_state(run), "tasks"));
    for (size_t i = 0; i < stet_value_count(tasks) && !(request->once && result->ran > 0); i++) {
        stet_value id = stet_value_get(stet_value_at(tasks, i), "id");
        stet_task_status status;
        const char *name = stet_value_as_string(&id, NULL);
        if (stet_runfile_has_task(run, name, &status) && status == STET_TASK_COMPLETED) {
            result->stood++;
            continue;
        }
        stet_runfile_task_start(run, name);
        stet_runfile_task_done(run, name, NULL);
        result->ran++;
    }
    stet_value_release(tasks);
    result->verdict = request->once ? STET_DRIVE_PAUSED : STET_DRIVE_COMPLETED;
    if (request->app != NULL && strcmp(request->app, "broken") == 0) {
        result->verdict = STET_DRIVE_FAILED;
        strcpy(result->reason, "it is broken");
    }
    st = request->once ? stet_runfile_flush(run, e) : stet_runfile_finish(run, e);
    stet_runfile_close(run);
    stet_project_close(p);
    return st;
}

static stet_status refusing_driver(const stet_drive_request *request, stet_drive_result *result, stet_error *e) {
    (void)request;
    (void)result;
    return stet_fail(e, STET_UNSUPPORTED, "nothing here can drive this run");
}

static void a_driver_that_refuses_fails_the_resume_and_changes_nothing(void **state) {
    (void)state;
    stet_value result;
    driver = refusing_driver;
    char *before = fleet_read("p/.stet/runs/20260101T000000Z-x-00000001/state.json");
    FAILS(call("runs resume", "{\"run_id\":\"20260101T000000Z-x-00000001\",\"drive\":true}", &result), STET_UNSUPPORTED,
          "drive");
    char *after = fleet_read("p/.stet/runs/20260101T000000Z-x-00000001/state.json");
    assert_string_equal(before, after);
    stet_free(before);
    stet_free(after);
    driver = fake_driver;
}

static void resume_drives_what_is_left(void **state) {
    (void)state;
    stet_value result;
    fleet_run(root, "20260101T000000Z-x-00000002", "2026-01-01T00:00:00Z",
              HALF_DONE ",{\"id\":\"c\",\"status\":\"pending\"}", "");
    OK(call("runs resume", "{\"run_id\":\"20260101T000000Z-x-00000002\"}", &result));
    assert_true(stet_value_as_bool(stet_value_get(result, "resumable")));
    assert_int_equal(stet_value_count(stet_value_get(result, "nextTasks")), 2);
    assert_int_equal(stet_value_type(stet_value_get(result, "drive")), STET_TYPE_NULL);
    stet_value_release(result);
    OK(call("runs resume", "{\"run_id\":\"20260101T000000Z-x-00000002\",\"once\":true}", &result));
    assert_string_equal(text_in(result, "drive", "status"), "paused");
    assert_int_equal(stet_value_as_int(stet_value_get(stet_value_get(result, "drive"), "ran")), 1);
    stet_value_release(result);
    OK(call("runs resume", "{\"run_id\":\"20260101T000000Z-x-00000002\",\"drive\":true}", &result));
    assert_string_equal(text_in(result, "drive", "status"), "completed");
    assert_int_equal(stet_value_as_int(stet_value_get(stet_value_get(result, "drive"), "ran")),
                     1); /* what stands is not run again */
    assert_int_equal(stet_value_as_int(stet_value_get(stet_value_get(result, "drive"), "stood")), 2);
    stet_value_release(result);
    OK(call("runs resume", "{\"run_id\":\"20260101T000000Z-x-00000002\"}", &result));
    assert_false(stet_value_as_bool(stet_value_get(result, "resumable")));
    assert_string_equal(text_in(result, "reason", NULL), "it is completed");
    stet_value_release(result);
    OK(call("runs rerun", "{\"run_id\":\"20260101T000000Z-x-00000002\",\"drive\":true,\"input\":{\"n\":3}}", &result));
    assert_string_equal(text_in(result, "drive", "status"), "completed");
    assert_int_equal(stet_value_as_int(stet_value_get(stet_value_get(result, "drive"), "ran")), 3);
    stet_value_release(result);
}

static void the_queue_works_through_the_same_driver(void **state) {
    (void)state;
    stet_value result;
    OK(call("queue add", "{\"app\":\"good\",\"input\":{\"n\":1}}", &result));
    stet_value_release(result);
    OK(call("queue add", "{\"app\":\"broken\"}", &result));
    stet_value_release(result);
    OK(call("queue add", "{\"run_id\":\"20260101T000000Z-x-00000001\"}", &result));
    stet_value_release(result);
    events = 0;
    OK(call("queue work", "{\"jobs\":2}", &result));
    assert_int_equal(stet_value_as_int(stet_value_get(result, "done")), 2);
    assert_int_equal(stet_value_as_int(stet_value_get(result, "failed")), 1);
    assert_int_equal(stet_op_find("queue work")->verdict(result), STET_FAILED);
    assert_int_equal(events, 3);
    stet_value_release(result);
    OK(call("runs show", "{\"run_id\":\"20260101T000000Z-x-00000001\"}", &result));
    assert_string_equal(text_in(result, "record", "lifecycle"), "completed");
    stet_value_release(result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_names_wrong_types_and_odd_values_are_refused),
        cmocka_unit_test(times_are_taken_in_every_form_that_is_told),
        cmocka_unit_test(a_driver_that_refuses_fails_the_resume_and_changes_nothing),
        cmocka_unit_test(resume_drives_what_is_left),
        cmocka_unit_test(the_queue_works_through_the_same_driver),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
