/* fleet_run.c - run files: complete at every moment, locked by their driver, throttled, sticky in failure. */

#include "../expect.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "../faults.h"
#include "../fleet.h"
#include "base/schema.h"
#include "fleet/run.h"
#include "os/clock.h"

static stet_project *project;
static char *root;

static int make_project(void **state) {
    (void)state;
    root = fleet_project("p");
    return stet_project_open("p", &project, &err) == STET_OK ? 0 : -1;
}

static int drop_project(void **state) {
    (void)state;
    stet_project_close(project);
    free(root);
    return 0;
}

static stet_runfile *create(void) {
    stet_runfile *run;
    stet_value inputs = stet_value_object();
    stet_value_put(&inputs, "rows", stet_value_int(5));
    OK(stet_runfile_create(
        project,
        &(stet_runfile_spec){
            .name = "my report/1:2", .app_id = "report", .app_version = "2", .app_title = "Report", .inputs = inputs},
        &run, &err));
    stet_value_release(inputs);
    return run;
}

static stet_state read_state(const char *dir, const char *id) {
    stet_state s;
    char *path = stet_file_join(dir, "state.json");
    OK(stet_state_read(path, id, NULL, &s, &err));
    stet_free(path);
    return s;
}

static const char *text_at(stet_value object, const char *key) {
    static stet_value keep;
    keep = stet_value_get(object, key);
    return stet_value_as_string(&keep, NULL);
}

static void a_run_from_creation_to_its_end(void **state) {
    (void)state;
    stet_runfile *run = create();
    char id[256], dir[4096];
    strcpy(id, stet_runfile_id(run));
    strcpy(dir, stet_runfile_dir(run));
    assert_true(stet_run_id_valid(id, strlen(id)));
    assert_int_equal(id[8], 'T');
    assert_non_null(strstr(id, "Z-my-report-1-2-"));
    assert_null(strchr(id, ':'));
    stet_state s = read_state(dir, id);
    assert_int_equal(stet_lifecycle_of(&s.counts), STET_LIFE_QUEUED);
    assert_int_equal(stet_value_as_int(stet_value_get(stet_value_get(s.root, "inputs"), "rows")), 5);
    stet_state_release(&s);

    stet_hash digest = stet_hash_of("x", 1);
    stet_error why = STET_ERROR_INIT;
    stet_fail(&why, STET_FAILED, "exit status 3");
    stet_runfile_stage(run, STET_STAGE_RUNNING);
    stet_runfile_task(run, "fetch", &(stet_task_spec){.action = "fetch", .kind = "command"});
    stet_runfile_task(run, "check", &(stet_task_spec){.verifier = true});
    stet_runfile_task_start(run, "fetch");
    const char *log = stet_runfile_task_log(run, "fetch");
    assert_non_null(log);
    fleet_put(log, "hello\n");
    stet_runfile_task_done(run, "fetch", &digest);
    stet_runfile_task_start(run, "check");
    stet_runfile_task_failed(run, "check", &why); /* matters: written at once */
    s = read_state(dir, id);
    assert_int_equal(stet_lifecycle_of(&s.counts), STET_LIFE_BLOCKED);
    assert_int_equal(s.counts.open_feedback, 1);
    stet_state_release(&s);
    assert_false(stet_runfile_commit(run, &digest)); /* the verifier did not pass */
    stet_runfile_task_start(run, "check");
    stet_runfile_task_failed(run, "check", &why);
    for (int i = 0; i < 5; i++) { /* as a watch does, for each edit */
        stet_runfile_task_start(run, "check");
        stet_runfile_task_done(run, "check", NULL); /* resolves its feedback */
        stet_runfile_task_start(run, "check");
        stet_runfile_task_failed(run, "check", &why); /* and opens it again */
    }
    stet_runfile_task_start(run, "check");
    stet_error_clear(&why);
    stet_runfile_task_done(run, "check", NULL);
    assert_true(stet_runfile_commit(run, &digest));
    stet_runfile_count(run, "stood", 40);
    stet_runfile_count(run, "stood", 2);
    OK(stet_runfile_finish(run, &err));
    stet_runfile_close(run);

    s = read_state(dir, id);
    assert_int_equal(stet_lifecycle_of(&s.counts), STET_LIFE_COMPLETED);
    assert_int_equal(s.counts.gated_commits, 1);
    assert_int_equal(s.counts.open_feedback, 0);
    assert_int_equal(stet_value_count(stet_value_get(s.root, "feedback")), 1); /* one per task, not one per failure */
    assert_string_equal(text_at(s.root, "loopStage"), "done");
    assert_int_equal(stet_value_as_int(stet_value_get(stet_value_get(s.root, "summary"), "stood")), 42);
    stet_value task = stet_value_at(stet_value_get(s.root, "tasks"), 1);
    assert_int_equal(stet_value_as_int(stet_value_get(task, "attempt")), 13);
    stet_state_release(&s);
    char *events = stet_file_join(dir, "events.jsonl"), *lines = fleet_read(events);
    assert_non_null(strstr(lines, "\"task\":\"fetch\",\"to\":\"running\""));
    assert_non_null(strstr(lines, "commit-refused"));
    assert_non_null(strstr(lines, "\"stage\":\"done\""));
    stet_free(lines);
    stet_free(events);
}

static void writes_are_throttled_to_one_a_second(void **state) {
    (void)state;
    stet_runfile *run = create();
    faults_arm(STET_SYS_RENAME, 0, STET_SYS_GO, 0);
    for (int i = 0; i < 500; i++) {
        char id[16];
        snprintf(id, sizeof id, "t%d", i);
        stet_runfile_task_start(run, id);
        stet_runfile_task_done(run, id, NULL);
        OK(stet_runfile_tick(run, &err));
    }
    faults_disarm();
    assert_true(faults_count() <= 2);
    OK(stet_runfile_flush(run, &err));
    stet_state s = read_state(stet_runfile_dir(run), stet_runfile_id(run));
    assert_int_equal(s.counts.tasks[STET_TASK_COMPLETED], 500);
    stet_state_release(&s);
    stet_runfile_close(run);
}

static void one_driver_at_a_time_and_the_lock_names_it(void **state) {
    (void)state;
    stet_runfile *run = create(), *second;
    char id[256], dir[4096], me[64];
    strcpy(id, stet_runfile_id(run));
    strcpy(dir, stet_runfile_dir(run));
    assert_int_equal(stet_runfile_driver(dir, NULL), STET_DRIVER_ALIVE);
    snprintf(me, sizeof me, "process %d", (int)getpid());
    FAILS(stet_runfile_open(project, id, &second, &err), STET_BUSY, me);
    stet_runfile_close(run);
    assert_int_equal(stet_runfile_driver(dir, NULL), STET_DRIVER_GONE);
    OK(stet_runfile_open(project, id, &second, &err));
    assert_int_equal(stet_runfile_driver(dir, NULL), STET_DRIVER_ALIVE);
    stet_runfile_close(second);
    FAILS(stet_runfile_open(project, "absent", &second, &err), STET_NOT_FOUND, "absent");
    FAILS(stet_runfile_open(project, "../p", &second, &err), STET_INVALID, "no run id");
    fleet_run(root, "foreign", "2026-01-01T00:00:00Z", HALF_DONE, "");
    char *other = stet_asprintf("%s/.stet/runs/foreign", root);
    assert_int_equal(stet_runfile_driver(other, NULL), STET_DRIVER_NONE);
    char *lock = stet_file_join(other, "driver.lock");
    assert_false(stet_file_exists(lock)); /* asking makes nothing */
    fleet_put(lock, "{\"host\":\"elsewhere\",\"process\":{\"pid\":1,\"start\":1,\"boot\":\"0123456789abcdef\"}}");
    assert_int_equal(stet_runfile_driver(other, NULL), STET_DRIVER_UNKNOWN);
    fleet_put(lock, "\x00\xff garbage");
    assert_int_equal(stet_runfile_driver(other, NULL), STET_DRIVER_UNKNOWN);
    stet_free(lock);
    stet_free(other);
}

static void a_killed_driver_leaves_a_run_that_can_be_resumed(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        stet_runfile *run = create();
        stet_runfile_task_start(run, "long");
        if (stet_runfile_flush(run, &err) == STET_OK && write(ends[1], stet_runfile_id(run), 100) > 0)
            pause();
        _exit(1);
    }
    char id[256] = "";
    assert_true(read(ends[0], id, 100) > 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    char *dir = stet_asprintf("%s/.stet/runs/%s", root, id);
    assert_int_equal(stet_runfile_driver(dir, NULL), STET_DRIVER_GONE);
    stet_registry *reg = fleet_load(root, STET_SCOPE_REPO);
    stet_fleet_record *r = fleet_find(reg, id);
    assert_int_equal(r->lifecycle, STET_LIFE_INTERRUPTED);
    assert_int_equal(r->derived, STET_LIFE_RUNNING);
    stet_registry_free(reg);
    stet_runfile *run;
    OK(stet_runfile_open(project, id, &run, &err));
    stet_task_status status;
    assert_true(stet_runfile_has_task(run, "long", &status));
    assert_int_equal(status, STET_TASK_PENDING);
    reg = fleet_load(root, STET_SCOPE_REPO);
    assert_int_equal(fleet_find(reg, id)->lifecycle, STET_LIFE_RUNNING); /* somebody drives it again */
    stet_registry_free(reg);
    stet_runfile_task_start(run, "long");
    stet_runfile_task_done(run, "long", NULL);
    OK(stet_runfile_finish(run, &err));
    stet_runfile_close(run);
    stet_state s = read_state(dir, id);
    assert_int_equal(stet_value_as_int(stet_value_get(stet_value_at(stet_value_get(s.root, "tasks"), 0), "attempt")),
                     2);
    stet_state_release(&s);
    stet_free(dir);
    close(ends[0]);
    close(ends[1]);
}

static void cancelling(void **state) {
    (void)state;
    stet_runfile *run = create();
    char id[256];
    strcpy(id, stet_runfile_id(run));
    stet_runfile_task_start(run, "a");
    stet_runfile_task(run, "b", NULL);
    assert_false(stet_runfile_cancelled(run));
    OK(stet_runfile_ask_cancel(stet_runfile_dir(run), "enough", &err));
    stet_clock_sleep_ms(260);
    assert_true(stet_runfile_cancelled(run));
    stet_runfile_cancel_rest(run, "enough");
    OK(stet_runfile_finish(run, &err));
    stet_state s = read_state(stet_runfile_dir(run), id);
    assert_int_equal(stet_lifecycle_of(&s.counts), STET_LIFE_FAILED); /* never completed, never running */
    stet_state_release(&s);
    stet_runfile_close(run);
    OK(stet_runfile_open(project, id, &run, &err)); /* the old request is forgotten */
    assert_false(stet_runfile_cancelled(run));
    stet_runfile_close(run);
}

/* R1 and R4: at every failing system call there is the old state or the new one, and no half-made run. */
static void each_failing_call_leaves_a_whole_state(void **state) {
    (void)state;
    char *runs = stet_file_join(root, ".stet/runs");
    for (int64_t n = 1;; n++) {
        stet_runfile *run = NULL;
        int before = faults_names(runs, "faulty");
        faults_arm_durable(n, STET_SYS_FAIL, ENOSPC);
        stet_status st = stet_runfile_create(project, &(stet_runfile_spec){.name = "faulty"}, &run, &err);
        if (st == STET_OK) {
            stet_runfile_task_start(run, "t");
            stet_runfile_task_done(run, "t", NULL);
            st = stet_runfile_finish(run, &err);
        }
        faults_disarm();
        stet_error_clear(&err);
        if (run != NULL) {
            stet_state s = read_state(stet_runfile_dir(run), stet_runfile_id(run));
            assert_int_equal(stet_lifecycle_of(&s.counts),
                             st == STET_OK ? STET_LIFE_COMPLETED : stet_lifecycle_of(&s.counts));
            stet_state_release(&s);
        } else if (faults_names(runs, "faulty") != before) {
            /* It appeared, and the last sync failed: then it is whole. */
            stet_registry *reg = fleet_load(root, STET_SCOPE_REPO);
            assert_int_equal(reg->unreadable.len, 0);
            stet_registry_free(reg);
        }
        stet_runfile_close(run);
        assert_int_equal(faults_names(runs, "~new"), 0);
        if (!faults_fired()) {
            assert_int_equal(st, STET_OK);
            break;
        }
    }
    stet_free(runs);
}

static void ids_of_tasks_may_be_anything(void **state) {
    (void)state;
    stet_runfile *run = create();
    static const char *const ids[] = {"../../etc/passwd", "a b/c:d", "\xff\xfe", "\xc3\xa9", "..", "x"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const char *log = stet_runfile_task_log(run, ids[i]);
        assert_non_null(log);
        assert_true(strncmp(log, stet_runfile_dir(run), strlen(stet_runfile_dir(run))) == 0);
        assert_null(strstr(log + strlen(stet_runfile_dir(run)), ".."));
        stet_runfile_task_start(run, ids[i]);
        stet_runfile_task_done(run, ids[i], NULL);
    }
    OK(stet_runfile_finish(run, &err));
    stet_state s = read_state(stet_runfile_dir(run), stet_runfile_id(run));
    stet_state_release(&s);
    stet_runfile_close(run);
}

/* The documented schema and what is written and read are one. */
static void states_conform_to_the_documented_schema(void **state) {
    (void)state;
    const char *source = getenv("STET_SOURCE");
    char *path = stet_asprintf("%s/docs/run-state.schema.json", source ? source : "."), *text = fleet_read(path);
    stet_value schema, v;
    OK(stet_json_parse(text, strlen(text), &schema, &err));
    OK(stet_schema_valid(schema, &err));
    stet_free(text);
    stet_free(path);
    stet_runfile *run = create();
    stet_error why = STET_ERROR_INIT;
    stet_fail(&why, STET_FAILED, "exit status 1");
    stet_hash digest = stet_hash_of("", 0);
    stet_runfile_task(run, "v", &(stet_task_spec){.verifier = true, .kind = "command"});
    stet_runfile_task_start(run, "v");
    stet_runfile_task_failed(run, "v", &why);
    stet_error_clear(&why);
    stet_runfile_task_log(run, "w");
    stet_runfile_task_start(run, "w");
    stet_runfile_task_done(run, "w", &digest);
    stet_runfile_task_skipped(run, "x", "no need");
    OK(stet_schema_check(schema, stet_runfile_state(run), &err));
    stet_runfile_task_start(run, "v");
    stet_runfile_task_done(run, "v", NULL);
    assert_true(stet_runfile_commit(run, &digest));
    OK(stet_runfile_finish(run, &err));
    OK(stet_schema_check(schema, stet_runfile_state(run), &err));
    stet_runfile_close(run);
    /* What the reader refuses, the schema refuses, and the other way round. */
    static const struct {
        const char *from, *to;
        bool good;
    } edits[] = {
        {"\"schemaVersion\":2", "\"schemaVersion\":2", true},
        {"\"options\":{}", "\"options\":null", true},
        {"\"options\":{}", "\"anything\":[1]", true},
        {"\"schemaVersion\":2", "\"schemaVersion\":3", false},
        {"\"completed\"", "\"done\"", false},
        {"\"id\":\"r\"", "\"id\":\"a/b\"", false},
        {"\"id\":\"r\"", "\"id\":\"..\"", false},
        {"\"loopStage\":\"running\"", "\"loopStage\":\"x\"", false},
        {"\"tasks\":[", "\"tasks\":[{\"status\":\"pending\"},", false},
        {"\"options\":{}", "\"options\":[]", false},
        {"\"options\":{}", "\"labels\":[1]", false},
        {"\"options\":{}", "\"commits\":[{\"verifierGated\":1}]", false},
        {"\"options\":{}", "\"feedback\":[{\"status\":\"x\"}]", false},
    };
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        char *whole = fleet_state("r", "2026-01-01T00:00:00Z", DONE_TASK, ""), *at = strstr(whole, edits[i].from);
        char *changed = stet_asprintf("%.*s%s%s", (int)(at - whole), whole, edits[i].to, at + strlen(edits[i].from));
        stet_state s;
        OK(stet_json_parse(changed, strlen(changed), &v, &err));
        bool by_schema = stet_schema_check(schema, v, NULL) == STET_OK;
        bool by_reader = stet_state_parse(changed, strlen(changed), NULL, &s, NULL) == STET_OK;
        if (by_reader)
            stet_state_release(&s);
        if (by_schema != edits[i].good || by_reader != edits[i].good)
            print_message("# %s -> %s: schema %d, reader %d\n", edits[i].from, edits[i].to, by_schema, by_reader);
        assert_int_equal(by_schema, edits[i].good);
        assert_int_equal(by_reader, edits[i].good);
        stet_value_release(v);
        stet_free(changed);
        stet_free(whole);
    }
    stet_value_release(schema);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_from_creation_to_its_end),
        cmocka_unit_test(writes_are_throttled_to_one_a_second),
        cmocka_unit_test(one_driver_at_a_time_and_the_lock_names_it),
        cmocka_unit_test(a_killed_driver_leaves_a_run_that_can_be_resumed),
        cmocka_unit_test(cancelling),
        cmocka_unit_test(each_failing_call_leaves_a_whole_state),
        cmocka_unit_test(ids_of_tasks_may_be_anything),
        cmocka_unit_test(states_conform_to_the_documented_schema),
    };
    return cmocka_run_group_tests(tests, make_project, drop_project);
}
