/* calls.c - system calls fail under a call, one after the other.
 *
 * The call ends in its result or in an error, never in a wrong result. What it left is taken up by the next call, which
 * finds a disk that works.
 */

#include "../expect.h"

#include <errno.h>
#include <sys/stat.h>

#include "../calls_kit.h"
#include "../faults.h"

static char top[4096];
static stet_project *project;
static stet_repo *repo;
static stet_hash good;

static void adapter(void) {
    char path[4200], ok[STET_HASH_HEX];
    stet_hash_hex(good, ok);
    snprintf(path, sizeof path, "%s/bin/test-adapter", top);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f,
            "#!/bin/sh\nif [ -e \"$0.asked\" ]; then rm \"$0.asked\"; echo "
            "'{\"v\":1,\"status\":\"done\",\"outcome\":\"ok\","
            "\"result\":\"%s\"}'; else touch \"$0.asked\"; echo '{\"v\":1,\"status\":\"pending\",\"token\":\"t\","
            "\"poll_after_ms\":1}'; fi\n",
            ok);
    fclose(f);
    assert_int_equal(chmod(path, 0755), 0);
}

static void fresh(void) {
    kit_fresh_project(top);
    OK(stet_project_open(".", &project, &err));
    OK(stet_repo_open(project, 0, &repo, &err));
    OK(stet_repo_put_result(repo, stet_value_int(42), &good, &err));
    stet_repo_close(repo); /* what is opened under a fault feels it */
    adapter();
}

/* The state that one call ends in; FAILED also if it could not be begun. */
static stet_call_state one_call(stet_hash *node, stet_status *status) {
    uv_loop_t loop;
    stet_executor *x = NULL;
    stet_call *c = NULL;
    stet_calls_config config;
    stet_call_arg arg = {.value = stet_value_int(7)};
    stet_error e = STET_ERROR_INIT;
    stet_call_state state = STET_CALL_FAILED;
    uv_loop_init(&loop);
    *status = stet_calls_config_read(project, &config, &e);
    config.backoff = (stet_backoff){.attempts = 3, .first_ms = 1, .most_ms = 2, .seed = 1};
    repo = NULL;
    if (*status == STET_OK)
        *status = stet_repo_open(project, 0, &repo, &e);
    if (*status == STET_OK)
        *status = stet_calls_open(project, repo, &loop, &config, NULL, NULL, &x, &e);
    if (*status == STET_OK)
        *status = stet_calls_node(
            repo,
            &(stet_calls_node_spec){.root = ".", .function = "dml+exec://test-adapter/f", .args = &arg, .count = 1},
            node, &e);
    if (*status == STET_OK)
        *status =
            stet_executor_start(x, &(stet_call_request){.node = *node, .cache = true}, kit_stop_loop, &loop, &c, &e);
    if (*status == STET_OK) {
        uv_run(&loop, UV_RUN_DEFAULT);
        state = stet_call_state_of(c);
        const stet_call_outcome *o = stet_call_outcome_of(c);
        *status = o->error ? o->error->status : STET_OK;
        if (state != STET_CALL_FAILED)
            assert_true(o->ok && stet_hash_equal(o->result, good));
    }
    assert_true((*status == STET_OK) == (state != STET_CALL_FAILED));
    assert_int_equal(e.status, c ? STET_OK : *status);
    stet_error_clear(&e);
    stet_executor_close(x);
    stet_repo_close(repo);
    stet_calls_config_release(&config);
    assert_int_equal(uv_loop_close(&loop), 0);
    return state;
}

static void each_call_fails_once(stet_sys_call call, int error_number, int stride) {
    int before = 0;
    for (int n = 1;; n += stride) {
        stet_hash node, *execs = NULL;
        size_t count;
        stet_status status;
        fresh();
        if (n == 1) { /* after a first loop: libuv keeps two for good */
            uv_loop_t loop;
            uv_loop_init(&loop);
            uv_loop_close(&loop);
            before = faults_descriptors();
        }
        faults_arm(call, n, STET_SYS_FAIL, error_number);
        stet_call_state state = one_call(&node, &status);
        faults_disarm();
        bool fired = faults_fired();
        if (state == STET_CALL_FAILED) {
            assert_true(fired);
            if (status == STET_INTERNAL || status == STET_INVALID)
                fail_msg("%s %d: %s", stet_sys_call_name(call), n, stet_status_name(status));
            state = one_call(&node, &status); /* the disk works again */
            if (state == STET_CALL_FAILED)
                fail_msg("%s %d: the next call ends in %s", stet_sys_call_name(call), n, stet_status_name(status));
        }
        OK(stet_repo_open(project, 0, &repo, &err));
        OK(stet_repo_execs(repo, node, &execs, &count, &err));
        assert_int_equal(count, 1);
        stet_free(execs);
        stet_repo_close(repo);
        if (faults_descriptors() != before)
            fail_msg("%s %d: %d descriptors are left", stet_sys_call_name(call), n, faults_descriptors() - before);
        stet_project_close(project);
        if (!fired) {
            print_message("# %s: fewer than %d\n", stet_sys_call_name(call), n + 1);
            assert_true(n > 1);
            break;
        }
    }
}

static int stride(void) {
    return getenv("STET_TEST_LONG") ? 1 : getenv("STET_TEST_SHORT") ? 7 : 2;
}

static void writes_fail(void **state) {
    (void)state;
    each_call_fails_once(STET_SYS_WRITE, ENOSPC, 2 * stride());
}

static void syncs_fail(void **state) {
    (void)state;
    each_call_fails_once(STET_SYS_FSYNC, EIO, stride());
}

static void files_do_not_open(void **state) {
    (void)state;
    each_call_fails_once(STET_SYS_OPEN, EMFILE, stride());
}

static void locks_fail(void **state) {
    (void)state;
    each_call_fails_once(STET_SYS_LOCK, ENOLCK, stride());
}

static void adapters_do_not_start(void **state) {
    (void)state;
    each_call_fails_once(STET_SYS_SPAWN, EAGAIN, 1);
}

static void statements_fail(void **state) {
    (void)state;
    each_call_fails_once(STET_SYS_SQL, EIO, 2 * stride());
}

int main(void) {
    char path[9000];
    faults_fast_directory();
    if (!getcwd(top, sizeof top))
        return 1;
    snprintf(path, sizeof path, "%s/bin:%s", top, getenv("PATH"));
    setenv("PATH", path, 1);
    mkdir("bin", 0755);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_fail),           cmocka_unit_test(syncs_fail),
        cmocka_unit_test(files_do_not_open),     cmocka_unit_test(locks_fail),
        cmocka_unit_test(adapters_do_not_start), cmocka_unit_test(statements_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
