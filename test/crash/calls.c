/* calls.c - a call is killed at each of its durable steps in turn, in the executor and in the adapter.
 *
 * However far it got, the next call ends as if nothing had happened: the job ran once, there is one record of it,
 * pinned, and nothing is left under way.
 */

#include "../expect.h"

#include <sys/wait.h>

#include "../calls_kit.h"
#include "../faults.h"
#include "base/vec.h"
#include "call/orchestrate_local.h"
#include "os/clock.h"

static char top[4096], function[4200]; /* the job says that it ran in the project's file "count" */

static void fresh(void) {
    kit_fresh_project(top);
}

static stet_hash make_node(stet_repo *r) {
    stet_hash node;
    stet_call_arg arg = {.value = stet_value_int(7)};
    OK(stet_calls_node(r, &(stet_calls_node_spec){.root = ".", .function = function, .args = &arg, .count = 1}, &node,
                       &err));
    return node;
}

static void check_value(stet_repo *r, stet_hash dag) {
    stet_value v;
    OK(stet_repo_dag_value(r, dag, &v, &err));
    assert_int_equal(stet_value_as_int(stet_value_at(v, 0)), 7);
    stet_value_release(v);
}

static void run_executor(void) {
    stet_project *p;
    stet_repo *r;
    uv_loop_t loop;
    stet_executor *x;
    stet_call *c;
    stet_calls_config config;
    OK(stet_project_open(".", &p, &err));
    OK(stet_calls_config_read(p, &config, &err));
    OK(stet_repo_open(p, 0, &r, &err));
    uv_loop_init(&loop);
    OK(stet_calls_open(p, r, &loop, &config, NULL, NULL, &x, &err));
    OK(stet_executor_start(x, &(stet_call_request){.node = make_node(r), .cache = true}, kit_stop_loop, &loop, &c,
                           &err));
    uv_run(&loop, UV_RUN_DEFAULT);
    const stet_call_outcome *o = stet_call_outcome_of(c);
    if (stet_call_state_of(c) == STET_CALL_FAILED)
        fail_msg("%s", o->error->message);
    check_value(r, o->result);
    /* E1: what is shown is pinned. */
    bool pinned;
    stet_hash exec;
    OK(stet_repo_pinned(r, stet_call_node(c), &pinned, &exec, &err));
    assert_true(pinned && stet_hash_equal(exec, o->exec));
    stet_executor_close(x);
    uv_loop_close(&loop);
    stet_repo_close(r);
    stet_calls_config_release(&config);
    stet_project_close(p);
}

/* As stet-exec-local does it, until it is done. */
static void run_adapter(void) {
    static const char execution[] = "11111111-1111-4111-8111-111111111111",
                      ref[] = "refs/exec/11111111-1111-4111-8111-111111111111";
    stet_project *p;
    stet_repo *r;
    char owner[200];
    stet_hash at;
    bool there;
    OK(stet_project_open(".", &p, &err));
    OK(stet_repo_open(p, 0, &r, &err));
    char *dir = stet_calls_dir(p);
    OK(stet_calls_owner(dir, owner, &err));
    stet_hash node = make_node(r), input;
    stet_value record;
    OK(stet_repo_get(r, node, STET_RECORD_NODE, &record, &err));
    stet_value id = stet_value_at(stet_value_get(record, "inputs"), 0);
    assert_true(stet_hash_of_hex(stet_value_as_string(&id, NULL), 64, &input));
    stet_value_release(record);
    OK(stet_repo_ref(r, ref, &there, &at, &err));
    if (!there)
        OK(stet_repo_swap(r, &(stet_ref_swap){.name = ref, .set = &node}, 1, &err));
    stet_backend_local *b = stet_backend_local_open(dir, stet_project_root(p), false);
    stet_hub *hub = stet_hub_of_repo(r);
    stet_orch o = {.hub = hub,
                   .backend = &stet_backend_local_kind,
                   .backend_ctx = b,
                   .owner = owner,
                   .lease_ms = STET_ORCH_LEASE_MS};
    stet_orch_job job = {.key = stet_call_key(node),
                         .node = node,
                         .function = function,
                         .inputs = &input,
                         .input_count = 1,
                         .execution = execution,
                         .ref = ref};
    stet_orch_answer a;
    for (;;) {
        OK(stet_orch_poll(&o, &job, &a, &err));
        if (a.state != STET_ORCH_PENDING)
            break;
        stet_backend_local_wait(b, 1000);
    }
    assert_int_equal(a.state, STET_ORCH_DONE_OK);
    check_value(r, a.result);
    stet_backend_local_close(b);
    stet_hub_close(hub);
    stet_repo_close(r);
    stet_free(dir);
    stet_project_close(p);
}

/* In a child that is killed at its n-th durable step; 0: at none. True: it was. */
static bool killed(void (*what)(void), int64_t n, stet_sys_action action) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (n > 0)
            faults_arm_durable(n, action, 0);
        what();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        return true;
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) != 0)
        fail_msg("with a kill at step %lld: status %d", (long long)n, WEXITSTATUS(status));
    return false;
}

static int lines(const char *path) {
    stet_buf b = STET_BUF(0);
    int count = 0;
    if (stet_file_read(path, 0, &b, NULL) == STET_OK)
        for (size_t i = 0; i < b.len; i++)
            count += b.data[i] == '\n';
    stet_buf_release(&b);
    return count;
}

static void look(int64_t at, bool finished) {
    stet_project *p;
    stet_repo *r;
    stet_attempts list = {0};
    stet_hash node, *execs = NULL, exec;
    size_t count = 0;
    bool pinned;
    OK(stet_project_open(".", &p, &err));
    OK(stet_repo_open(p, 0, &r, &err));
    node = make_node(r);
    OK(stet_repo_execs(r, node, &execs, &count, &err));
    OK(stet_repo_pinned(r, node, &pinned, &exec, &err));
    /* A record without its pin, or a pin without its record, is never seen. */
    if (count > 1 || pinned != (count == 1) || (pinned && !stet_hash_equal(exec, execs[0])))
        fail_msg("killed at step %lld: %zu records, %s", (long long)at, count, pinned ? "pinned" : "not pinned");
    OK(stet_attempt_list(r, &(stet_attempt_filter){.live = true, .limit = 100}, &list, NULL, &err));
    if (list.len > 1 || (pinned && list.len != 0) || (finished && (!pinned || lines("count") != 1)))
        fail_msg("killed at step %lld: %zu under way, %s, %d runs", (long long)at, list.len,
                 pinned ? "pinned" : "not pinned", lines("count"));
    stet_attempts_release(&list);
    stet_free(execs);
    stet_repo_close(r);
    stet_project_close(p);
}

static int64_t stride(void) {
    return getenv("STET_TEST_LONG") ? 1 : getenv("STET_TEST_SHORT") ? 23 : 3;
}

/* Killed at one step after the other, looked at, and run again to its end. */
static void at_each_step(void (*what)(void), void (*holds)(int64_t at, bool finished), const char *name) {
    bool more = true;
    uint64_t from;
    stet_random(&from, sizeof from);
    for (int64_t n = 1 + (int64_t)(from % (uint64_t)stride()); more; n += stride()) {
        fresh();
        more = killed(what, n, n % 2 ? STET_SYS_KILL : STET_SYS_KILL_AFTER);
        holds(n, !more);
        if (more)
            assert_false(killed(what, 0, STET_SYS_GO));
        holds(n, true);
        if (!more)
            print_message("# the %s takes fewer than %lld durable steps\n", name, (long long)n);
    }
}

static void ran_once(int64_t at, bool finished) {
    if (finished && lines("count") != 1)
        fail_msg("killed at step %lld: %d runs", (long long)at, lines("count"));
}

static void the_executor(void **state) {
    (void)state;
    at_each_step(run_executor, look, "executor");
}

static void the_adapter(void **state) {
    (void)state;
    at_each_step(run_adapter, ran_once, "adapter");
}

/* Both in turn: whoever is killed, the other's work is found. */
static void the_adapter_and_then_the_executor(void **state) {
    (void)state;
    for (int64_t n = 3; n < 60; n += 3 * stride()) {
        fresh();
        killed(run_adapter, n, STET_SYS_KILL);
        killed(run_executor, n, STET_SYS_KILL_AFTER);
        assert_false(killed(run_executor, 0, STET_SYS_GO));
        look(n, true);
    }
}

int main(void) {
    char path[9000];
    faults_fast_directory();
    if (!getcwd(top, sizeof top))
        return 1;
    snprintf(function, sizeof function, "dml+exec://stet-exec-local/?command=echo+x+%%3E%%3E+%s/p/count%%3B+cat", top);
    snprintf(path, sizeof path, "%s:%s", getenv("STET_BUILD"), getenv("PATH"));
    setenv("PATH", path, 1);
    snprintf(path, sizeof path, "%s/stet-supervise", getenv("STET_BUILD"));
    setenv("STET_SUPERVISE", path, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_executor),
        cmocka_unit_test(the_adapter),
        cmocka_unit_test(the_adapter_and_then_the_executor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
