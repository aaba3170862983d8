/* fleet_drive.c - a driver is killed at any call that changes the disk, and the run is resumed after each.
 *
 * The end is that of an undisturbed run, no up-to-date task runs again, and at every moment the state is complete and
 * true.
 */

#include "../expect.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "../faults.h"
#include "../fleet.h"
#include "fleet/run.h"

enum { TASKS = 8, POINTS = 60 };

static char *root;

/* A task's product, made durably before the task is told as done: what stands. */
static char *product(const char *dir, int i) {
    return stet_asprintf("%s/product-%d", dir, i);
}

/* Drives a new run, or goes on with `id`. Every execution leaves a line in `ran`, outside of what is under test. */
static stet_status drive(const char *id, bool verify_fails) {
    stet_project *p;
    stet_runfile *run;
    stet_error why = STET_ERROR_INIT;
    stet_status st = stet_project_open(root, &p, &why);
    if (st == STET_OK)
        st = id == NULL ? stet_runfile_create(p, &(stet_runfile_spec){.name = "work"}, &run, &why)
                        : stet_runfile_open(p, id, &run, &why);
    if (st != STET_OK)
        return st;
    stet_runfile_stage(run, STET_STAGE_RUNNING);
    for (int i = 0; i < TASKS; i++) {
        char name[32], line[32];
        snprintf(name, sizeof name, "task-%d", i);
        stet_runfile_task(run, name, &(stet_task_spec){.verifier = i == TASKS - 1});
        stet_task_status status = STET_TASK_PENDING;
        char *path = product("out", i);
        stet_hash digest = stet_hash_of(name, strlen(name));
        bool stands = stet_file_exists(path);
        if (stet_runfile_has_task(run, name, &status) && status == STET_TASK_COMPLETED && !stands)
            _exit(9); /* told as done before it was */
        if (!stands) {
            stet_runfile_task_start(run, name);
            if (stet_runfile_flush(run, &why) != STET_OK)
                _exit(8);
            int fd = open("ran", O_WRONLY | O_APPEND | O_CREAT, 0644);
            int n = snprintf(line, sizeof line, "%d\n", i);
            if (write(fd, line, (size_t)n) != n)
                _exit(7);
            close(fd);
            if (verify_fails && i == TASKS - 1) {
                stet_error bad = STET_ERROR_INIT;
                stet_fail(&bad, STET_FAILED, "it does not hold");
                stet_runfile_task_failed(run, name, &bad);
                stet_error_clear(&bad);
                stet_free(path);
                break;
            }
            if (stet_file_replace(path, name, strlen(name), 0644, &why) != STET_OK)
                _exit(6);
        }
        if (status != STET_TASK_COMPLETED)
            stet_runfile_task_done(run, name, &digest);
        if (stet_runfile_tick(run, &why) != STET_OK)
            _exit(5);
        stet_free(path);
    }
    stet_hash result = stet_hash_of("result", 6);
    if (stet_value_count(stet_value_get(stet_runfile_state(run), "commits")) == 0)
        stet_runfile_commit(run, &result);
    st = stet_runfile_finish(run, &why);
    stet_runfile_close(run);
    stet_project_close(p);
    return st;
}

/* In a child that is killed at the n-th call that changes the disk (0: never). True if it ended by itself. */
static bool drive_apart(const char *id, int64_t n) {
    pid_t pid = fork();
    if (pid == 0) {
        if (n > 0)
            faults_arm_durable(n, STET_SYS_KILL, 0);
        stet_status st = drive(id, false);
        _exit(st == STET_OK ? 0 : 4);
    }
    int status;
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGKILL);
        return false;
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    return true;
}

static void count_runs(int counts[TASKS]) {
    memset(counts, 0, TASKS * sizeof *counts);
    if (!stet_file_exists("ran"))
        return;
    char *text = fleet_read("ran");
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
        counts[atoi(line)]++;
    stet_free(text);
}

static void begin_anew(void) {
    OK(stet_file_remove_tree("out", &err));
    OK(stet_file_remove_tree("p/.stet/runs", &err));
    OK(stet_file_remove("ran", &err));
    OK(stet_file_mkdirs("out", 0755, &err));
}

/* What a run comes to, without its id and its times. */
static stet_value essence(const char *path, const char *id) {
    stet_state s;
    OK(stet_state_read(path, id, NULL, &s, &err));
    assert_int_equal(stet_lifecycle_of(&s.counts), STET_LIFE_COMPLETED);
    assert_int_equal(s.counts.gated_commits, 1);
    stet_value v = stet_value_array(), tasks = stet_value_get(s.root, "tasks");
    for (size_t i = 0; i < stet_value_count(tasks); i++) {
        stet_value_push(&v, stet_value_retain(stet_value_get(stet_value_at(tasks, i), "id")));
        stet_value_push(&v, stet_value_retain(stet_value_get(stet_value_at(tasks, i), "status")));
        stet_value_push(&v, stet_value_retain(stet_value_get(stet_value_at(tasks, i), "result")));
    }
    stet_value_push(&v, stet_value_retain(stet_value_get(s.root, "loopStage")));
    stet_state_release(&s);
    return v;
}

static stet_value only_essence(void) {
    stet_registry *reg = fleet_load(root, STET_SCOPE_REPO);
    assert_int_equal(reg->unreadable.len, 0);
    assert_int_equal(reg->records.len, 1);
    char *path = stet_asprintf("%s/.stet/runs/%s/state.json", root, reg->records.at[0]->id);
    stet_value v = essence(path, reg->records.at[0]->id);
    stet_free(path);
    stet_registry_free(reg);
    return v;
}

static void killed_anywhere_and_resumed_it_ends_as_if_undisturbed(void **state) {
    (void)state;
    root = fleet_project("p");
    begin_anew();
    /* How many calls there are, and what the end is. */
    faults_arm_durable(0, STET_SYS_GO, 0);
    OK(drive(NULL, false));
    faults_disarm();
    int64_t calls = faults_count();
    assert_true(calls > 30);
    stet_value undisturbed = only_essence();
    int points = getenv("STET_TEST_SHORT") ? 12 : POINTS;
    unsigned seed = 7;
    for (int k = 0; k < points; k++) {
        begin_anew();
        /* One kill, then perhaps a second one while it is resumed. */
        int64_t n = 1 + rand_r(&seed) % calls;
        bool ended = drive_apart(NULL, n);
        for (int again = 0; !ended; again++) {
            stet_registry *reg = fleet_load(root, STET_SCOPE_REPO);
            assert_int_equal(reg->unreadable.len, 0); /* whole, or not there at all */
            assert_true(reg->records.len <= 1);
            char id[256] = "";
            bool over = false; /* killed after the end was recorded: there is nothing to resume */
            if (reg->records.len == 1) {
                stet_fleet_record *r = reg->records.at[0];
                over = r->derived == STET_LIFE_COMPLETED && strcmp(r->loop_stage, "done") == 0;
                strcpy(id, r->id);
                assert_true(r->lifecycle == STET_LIFE_INTERRUPTED || r->lifecycle == STET_LIFE_QUEUED ||
                            r->lifecycle == STET_LIFE_COMPLETED);
            }
            stet_registry_free(reg);
            if (over)
                break;
            ended = drive_apart(id[0] ? id : NULL, again == 0 && k % 2 == 0 ? 1 + rand_r(&seed) % calls : 0);
        }
        stet_value now = only_essence();
        assert_true(stet_value_equal(now, undisturbed));
        stet_value_release(now);
        int counts[TASKS], twice = 0;
        count_runs(counts);
        for (int i = 0; i < TASKS; i++) {
            assert_true(counts[i] >= 1);
            twice += counts[i] - 1;
        }
        /* Only what a kill cut off before its product stood may run again: one task per kill. */
        assert_true(twice <= 2);
    }
    stet_value_release(undisturbed);
    free(root);
}

static void a_verifier_that_fails_commits_nothing(void **state) {
    (void)state;
    root = fleet_project("p");
    begin_anew();
    OK(drive(NULL, true));
    stet_registry *reg = fleet_load(root, STET_SCOPE_REPO);
    assert_int_equal(reg->records.at[0]->lifecycle, STET_LIFE_FAILED);
    assert_int_equal(reg->records.at[0]->derived, STET_LIFE_BLOCKED);
    assert_int_equal(reg->records.at[0]->counts.commits, 0);
    char id[256];
    strcpy(id, reg->records.at[0]->id);
    stet_registry_free(reg);
    OK(drive(id, false)); /* its later success resolves the feedback */
    stet_value v = only_essence();
    stet_value_release(v);
    free(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_anywhere_and_resumed_it_ends_as_if_undisturbed),
        cmocka_unit_test(a_verifier_that_fails_commits_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
