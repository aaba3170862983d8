/* call_executor.c - the executor over a real repository, with adapters that are scripts.
 *
 * Tests what is shown and written when, and what happens to rows that others left, moved or dropped.
 */

#include "../expect.h"

#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "call/calls.h"
#include "os/clock.h"
#include "os/file.h"
#include "project/project.h"
#include "repo/repo_internal.h"

static char top[4096];
static stet_project *project;
static stet_repo *repo;
static uv_loop_t loop;
static stet_executor *executor;
static stet_hash good, bad; /* DAGs: 42, and a failure */
static char said[2000];
static int number;

static void hear(void *ctx, const char *line) {
    (void)ctx;
    snprintf(said, sizeof said, "%s", line);
}

static void open_executor(void) {
    stet_calls_config config;
    stet_executor_opts more = {.say = hear};
    OK(stet_calls_config_read(project, &config, &err));
    config.backoff = (stet_backoff){.attempts = 3, .first_ms = 5, .most_ms = 10, .seed = 1};
    config.poll_timeout_ms = 20000;
    OK(stet_calls_open(project, repo, &loop, &config, NULL, &more, &executor, &err));
    stet_calls_config_release(&config);
}

static int set_up(void **state) {
    (void)state;
    char name[32];
    bool created;
    snprintf(name, sizeof name, "p%d", ++number);
    assert_int_equal(chdir(top), 0);
    OK(stet_project_init(name, &created, &err));
    assert_int_equal(chdir(name), 0);
    OK(stet_project_open(".", &project, &err));
    OK(stet_repo_open(project, 0, &repo, &err));
    OK(stet_repo_begin(repo, &err));
    OK(stet_repo_put_result(repo, stet_value_int(42), &good, &err));
    OK(stet_repo_put_result(repo, stet_value_string("bad luck"), &bad, &err));
    OK(stet_repo_commit(repo, &err));
    uv_loop_init(&loop);
    open_executor();
    said[0] = 0;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    stet_executor_close(executor);
    assert_int_equal(uv_loop_close(&loop), 0);
    stet_repo_close(repo);
    stet_project_close(project);
    return 0;
}

static void adapter(const char *script) {
    char path[4200], ok[STET_HASH_HEX], error[STET_HASH_HEX];
    stet_hash_hex(good, ok);
    stet_hash_hex(bad, error);
    snprintf(path, sizeof path, "%s/bin/test-adapter", top);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f,
            "#!/bin/sh\nrequest=$(cat)\necho x >> polls\nn=$(wc -l < polls)\n"
            "done_ok() { echo '{\"v\":1,\"status\":\"done\",\"outcome\":\"ok\",\"result\":\"%s\"}'; }\n"
            "done_error() { echo '{\"v\":1,\"status\":\"done\",\"outcome\":\"error\",\"result\":\"%s\"}'; }\n"
            "failed() { done_error | sed \"s/}/,\\\"keep\\\":false,\\\"retry\\\":$1}/\"; }\n"
            "pending() { echo '{\"v\":1,\"status\":\"pending\",\"token\":\"'$1'\",\"poll_after_ms\":10}'; }\n%s\n",
            ok, error, script);
    fclose(f);
    assert_int_equal(chmod(path, 0755), 0);
}

static int polls(void) {
    stet_buf b = STET_BUF(0);
    int count = 0;
    if (stet_file_read("polls", 0, &b, NULL) == STET_OK)
        for (size_t i = 0; i < b.len; i++)
            count += b.data[i] == '\n';
    stet_buf_release(&b);
    return count;
}

static stet_hash node_of(int64_t n) {
    stet_hash node;
    stet_call_arg arg = {.value = stet_value_int(n)};
    OK(stet_calls_node(
        repo, &(stet_calls_node_spec){.root = ".", .function = "dml+exec://test-adapter/f", .args = &arg, .count = 1},
        &node, &err));
    return node;
}

static void ended(void *ctx, stet_call *c) {
    (void)c;
    ++*(int *)ctx;
}

static int ends;

static stet_call *start(const stet_call_request *r) {
    stet_call *c;
    OK(stet_executor_start(executor, r, ended, &ends, &c, &err));
    return c;
}

static void settle(int calls) {
    int64_t until = stet_clock_monotonic_us() + 60000000;
    while (ends < calls && stet_clock_monotonic_us() < until)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(ends, calls);
    ends = 0;
}

static stet_call_state run(stet_hash node) {
    stet_call *c = start(&(stet_call_request){.node = node, .cache = true});
    settle(1);
    stet_call_state state = stet_call_state_of(c);
    stet_call_free(c);
    return state;
}

static size_t execs(stet_hash node) {
    stet_hash *list;
    size_t count;
    OK(stet_repo_execs(repo, node, &list, &count, &err));
    stet_free(list);
    return count;
}

static stet_attempt only_attempt(bool live) {
    stet_attempts list = {0};
    stet_attempt a;
    OK(stet_attempt_list(repo, &(stet_attempt_filter){.live = live, .limit = 10}, &list, NULL, &err));
    assert_int_equal(list.len, 1);
    OK(stet_attempt_get(repo, list.at[0].execution, &a, &err));
    stet_attempts_release(&list);
    return a;
}

static void a_result_is_pinned_and_hit(void **state) {
    (void)state;
    adapter("done_ok");
    stet_hash node = node_of(1);
    assert_int_equal(run(node), STET_CALL_COMPLETED_OK);
    assert_int_equal(run(node), STET_CALL_PINNED_HIT);
    assert_int_equal(polls(), 1);
    assert_int_equal(execs(node), 1);
    bool there;
    stet_hash exec;
    OK(stet_executor_pinned(executor, node, &there, &exec, &err));
    assert_true(there);
    OK(stet_executor_pinned(executor, node_of(2), &there, &exec, &err));
    assert_false(there);
}

static void a_failure_is_pinned_as_well(void **state) {
    (void)state;
    adapter("done_error");
    stet_call *c = start(&(stet_call_request){.node = node_of(1), .cache = true});
    settle(1);
    assert_int_equal(stet_call_state_of(c), STET_CALL_COMPLETED_ERROR);
    assert_false(stet_call_outcome_of(c)->ok);
    assert_true(stet_hash_equal(stet_call_outcome_of(c)->result, bad));
    stet_call_free(c);
    assert_int_equal(run(node_of(1)), STET_CALL_PINNED_HIT);
}

static void a_failure_that_is_not_kept_is_recorded_and_not_pinned(void **state) {
    (void)state;
    bool pinned;
    stet_hash exec;
    adapter("test $n -lt 3 && failed false || done_ok");
    for (int i = 0; i < 2; i++) {
        stet_call *c = start(&(stet_call_request){.node = node_of(1), .cache = true});
        settle(1);
        assert_int_equal(stet_call_state_of(c), STET_CALL_COMPLETED_ERROR);
        assert_true(stet_call_outcome_of(c)->passing);
        assert_true(stet_hash_equal(stet_call_outcome_of(c)->result, bad));
        /* It can be asked for afterwards, by its id. */
        char execution[37];
        memcpy(execution, stet_call_execution(c), sizeof execution);
        stet_call_free(c);
        OK(stet_executor_resume(executor, execution, ended, &ends, &c, &err));
        settle(1);
        assert_int_equal(stet_call_state_of(c), STET_CALL_COMPLETED_ERROR);
        assert_true(stet_call_outcome_of(c)->passing);
        stet_call_free(c);
        OK(stet_executor_pinned(executor, node_of(1), &pinned, &exec, &err));
        assert_false(pinned);
        assert_int_equal(execs(node_of(1)), i + 1);
    }
    assert_int_equal(run(node_of(1)), STET_CALL_COMPLETED_OK);
    assert_int_equal(execs(node_of(1)), 3);
    assert_int_equal(polls(), 3);
    assert_int_equal(run(node_of(1)), STET_CALL_PINNED_HIT);
}

static void what_failed_for_now_is_tried_again_and_every_try_recorded(void **state) {
    (void)state;
    /* A token between two tries is not sent with the next one; the number of tries is. */
    adapter("echo \"$request\" | grep -o '\"t[a-z]*\":[^,}]*' | tr '\\n' ' ' >> asked; echo >> asked\n"
            "case $n in 1) pending t1;; 2|3) failed true;; 4) pending t2;; *) done_ok;; esac");
    assert_int_equal(run(node_of(1)), STET_CALL_COMPLETED_OK);
    stet_buf b = STET_BUF(0);
    OK(stet_file_read("asked", 0, &b, &err));
    assert_string_equal(stet_buf_cstr(&b), "\"token\":null \"tries\":0 \n\"token\":\"t1\" \"tries\":0 \n"
                                           "\"token\":null \"tries\":1 \n\"token\":null \"tries\":2 \n"
                                           "\"token\":\"t2\" \"tries\":2 \n");
    stet_buf_release(&b);
    assert_int_equal(execs(node_of(1)), 3);
    /* The budget ends it, with the last failure. */
    adapter("failed true");
    stet_call *c = start(&(stet_call_request){.node = node_of(2), .cache = true, .attempts = 3});
    settle(1);
    assert_int_equal(stet_call_state_of(c), STET_CALL_COMPLETED_ERROR);
    assert_true(stet_call_outcome_of(c)->passing);
    stet_call_free(c);
    assert_int_equal(execs(node_of(2)), 3);
}

static void an_earlier_result_outlives_a_failure_that_is_not_kept(void **state) {
    (void)state;
    adapter("test $n = 1 && done_ok || failed false");
    assert_int_equal(run(node_of(1)), STET_CALL_COMPLETED_OK);
    stet_call *c = start(&(stet_call_request){.node = node_of(1)});
    settle(1);
    assert_int_equal(stet_call_state_of(c), STET_CALL_COMPLETED_ERROR);
    stet_call_free(c);
    assert_int_equal(run(node_of(1)), STET_CALL_PINNED_HIT);
}

static void without_cache_records_are_added_and_keys_differ(void **state) {
    (void)state;
    adapter("echo \"$request\" | grep -o '\"key\":\"[0-9a-f]*\"' >> keys; done_ok");
    stet_hash node = node_of(1);
    run(node);
    for (int i = 0; i < 2; i++) {
        stet_call *c = start(&(stet_call_request){.node = node});
        settle(1);
        assert_int_equal(stet_call_state_of(c), STET_CALL_COMPLETED_OK);
        stet_call_free(c);
    }
    assert_int_equal(polls(), 3);
    assert_int_equal(execs(node), 3);
    stet_buf b = STET_BUF(0);
    char hex[STET_HASH_HEX];
    OK(stet_file_read("keys", 0, &b, &err));
    stet_hash_hex(stet_call_key(node), hex);
    assert_int_equal(strncmp(b.data + 7, hex, 64), 0); /* the first is that of the node */
    assert_null(strstr(b.data + 80, hex));
    assert_int_not_equal(strncmp(b.data + 74, b.data + 148, 73), 0);
    stet_buf_release(&b);
}

static void nothing_is_recorded_while_it_is_pending_and_tokens_come_back(void **state) {
    (void)state;
    adapter("case $n in 1) pending t1;; 2) echo \"$request\" | grep -q '\"token\":\"t1\"' && pending t2;;"
            " *) echo \"$request\" | grep -q '\"token\":\"t2\"' && done_ok;; esac");
    stet_hash node = node_of(1);
    stet_call *c = start(&(stet_call_request){.node = node, .cache = true});
    while (!stet_call_submitted(c))
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(execs(node), 0);
    stet_attempt a = only_attempt(true);
    assert_int_equal(a.state, STET_CALL_POLL);
    assert_int_equal(a.token_len, 2);
    stet_attempt_release(&a);
    settle(1);
    assert_int_equal(stet_call_state_of(c), STET_CALL_COMPLETED_OK);
    assert_int_equal(polls(), 3);
    stet_call_free(c);
}

static void one_that_was_left_is_gone_on_with(void **state) {
    (void)state;
    adapter("if [ $n = 1 ]; then pending t1; else echo \"$request\" | grep -q '\"token\":\"t1\"' && done_ok; fi");
    stet_hash node = node_of(1);
    stet_call *c = start(&(stet_call_request){.node = node, .cache = true});
    while (!stet_call_submitted(c))
        uv_run(&loop, UV_RUN_ONCE);
    char execution[37];
    snprintf(execution, sizeof execution, "%s", stet_call_execution(c));
    stet_executor_close(executor); /* with the call in it */
    open_executor();
    OK(stet_executor_resume(executor, execution, ended, &ends, &c, &err));
    settle(1);
    assert_int_equal(stet_call_state_of(c), STET_CALL_COMPLETED_OK);
    assert_string_equal(stet_call_execution(c), execution);
    stet_call_free(c);
    OK(stet_executor_resume(executor, execution, ended, &ends, &c, &err)); /* how it ended is told again */
    settle(1);
    assert_int_equal(stet_call_state_of(c), STET_CALL_COMPLETED_OK);
    assert_true(stet_hash_equal(stet_call_outcome_of(c)->result, good));
    stet_call_free(c);
    FAILS(stet_executor_resume(executor, "nobody", ended, &ends, &c, &err), STET_NOT_FOUND, "");
}

static void two_who_ask_are_answered_by_one_attempt(void **state) {
    (void)state;
    adapter("sleep 0.2; done_ok");
    stet_call_request r = {.node = node_of(1), .cache = true};
    stet_call *a = start(&r), *b = start(&r);
    settle(2);
    assert_int_equal(stet_call_state_of(a), STET_CALL_COMPLETED_OK);
    assert_int_equal(stet_call_state_of(b), STET_CALL_PINNED_HIT);
    assert_int_equal(polls(), 1);
    stet_call_free(a);
    stet_call_free(b);
}

static void two_who_ask_for_what_fails_both_hear_of_it(void **state) {
    (void)state;
    adapter("sleep 0.2; echo no hope >&2; exit 1");
    stet_call_request r = {.node = node_of(1), .cache = true};
    stet_call *a = start(&r), *b = start(&r);
    settle(2);
    assert_int_equal(stet_call_state_of(a), STET_CALL_FAILED);
    assert_int_equal(stet_call_state_of(b), STET_CALL_FAILED);
    assert_non_null(strstr(stet_call_outcome_of(b)->error->message, "no hope"));
    assert_int_equal(polls(), 1);
    stet_call_free(a);
    stet_call_free(b);
    assert_int_equal(run(node_of(1)), STET_CALL_FAILED); /* whoever comes later tries again */
    assert_int_equal(polls(), 2);
    assert_int_equal(execs(node_of(1)), 0);
}

static void the_budget_is_that_of_the_call(void **state) {
    (void)state;
    adapter("exit 75");
    assert_int_equal(run(node_of(1)), STET_CALL_FAILED);
    assert_int_equal(polls(), 3);
    stet_call *c = start(&(stet_call_request){.node = node_of(2), .cache = true, .attempts = 1});
    settle(1);
    assert_non_null(strstr(stet_call_outcome_of(c)->error->message, "given up after 1 attempt: the adapter"));
    stet_call_free(c);
    assert_int_equal(polls(), 4);
}

static void results_that_are_not_there_are_waited_for_and_given_up(void **state) {
    (void)state;
    adapter("echo '{\"v\":1,\"status\":\"done\",\"outcome\":\"ok\",\"result\":\"'$(printf %064d 0)'\"}'");
    stet_hash node = node_of(1);
    stet_call *c = start(&(stet_call_request){.node = node, .cache = true});
    settle(1);
    assert_int_equal(stet_call_state_of(c), STET_CALL_FAILED);
    assert_non_null(strstr(stet_call_outcome_of(c)->error->message, "given up after 3 attempts"));
    stet_call_free(c);
    assert_int_equal(execs(node), 0);
    assert_int_equal(polls(), 1); /* it was the integration that was tried again */
}

static void rows_that_were_dropped_are_made_again(void **state) {
    (void)state;
    adapter("if [ $n = 3 ]; then done_ok; else pending t$n; fi");
    stet_hash node = node_of(1);
    stet_call *c = start(&(stet_call_request){.node = node, .cache = true});
    while (!stet_call_submitted(c))
        uv_run(&loop, UV_RUN_ONCE);
    OK(stet_attempt_remove(repo, stet_call_execution(c), &err));
    settle(1);
    assert_int_equal(stet_call_state_of(c), STET_CALL_COMPLETED_OK);
    stet_call_free(c);
    assert_int_equal(execs(node), 1);
}

static void rows_that_were_dropped_before_the_result_was_pinned_are_made_again(void **state) {
    (void)state;
    adapter("done_ok");
    char *sql = stet_asprintf("CREATE TRIGGER dropped AFTER UPDATE ON attempt WHEN new.state = %d BEGIN"
                              " DELETE FROM attempt WHERE execution = new.execution; END",
                              STET_CALL_INTEGRATE_OK);
    stet_db_exec(repo->db, sql);
    stet_free(sql);
    stet_hash node = node_of(1);
    assert_int_equal(run(node), STET_CALL_COMPLETED_OK);
    assert_int_equal(execs(node), 1);
    assert_int_equal(polls(), 1);
    assert_int_equal(stet_db_int(repo->db, "SELECT count(*) FROM attempt WHERE done = 1", 0), 1);
}

/* A row in any state, as a process that died would leave it, or as damage would. */
static void rows_in_every_state_are_taken_up(void **state) {
    (void)state;
    adapter("done_ok");
    static const int states[] = {-5,
                                 STET_CALL_RESOLVE,
                                 STET_CALL_POLL,
                                 STET_CALL_INTEGRATE_OK,
                                 STET_CALL_INTEGRATE_ERROR,
                                 STET_CALL_RETRY_WAIT,
                                 STET_CALL_PINNED_HIT,
                                 STET_CALL_COMPLETED_OK,
                                 77};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        for (int resume = -1; resume < STET_CALL_STATES; resume += 3) {
            stet_hash node = node_of((int64_t)(i * 100) + resume);
            stet_attempt a = {.node = node,
                              .key = stet_call_key(node),
                              .state = states[i],
                              .resume = resume,
                              .cache = true,
                              .next_ms = INT64_MAX / 2, /* the clock was set back */
                              .token = "\xff\xfe",
                              .token_len = 2,
                              .detail = stet_value_object()};
            stet_uuid(a.execution);
            stet_value_put(&a.detail, "result", stet_hash_text(good));
            OK(stet_attempt_add(repo, &a, &err));
            stet_value_release(a.detail);
            stet_call_state end = run(node);
            bool error = states[i] == STET_CALL_INTEGRATE_ERROR ||
                         (states[i] == STET_CALL_RETRY_WAIT && resume == STET_CALL_INTEGRATE_ERROR);
            if (end != (error ? STET_CALL_COMPLETED_ERROR : STET_CALL_COMPLETED_OK))
                fail_msg("a row in state %d, resume %d, ends in %s", states[i], resume, stet_call_state_name(end));
            assert_int_equal(execs(node), 1);
        }
}

static void cancelled_by_somebody_else_it_ends(void **state) {
    (void)state;
    adapter("echo \"$request\" | grep -q '\"op\":\"cancel\"' && touch was_told; pending t$n");
    stet_hash node = node_of(1);
    stet_call *c = start(&(stet_call_request){.node = node, .cache = true}), *by;
    while (!stet_call_submitted(c))
        uv_run(&loop, UV_RUN_ONCE);
    OK(stet_executor_cancel(executor, stet_call_execution(c), ended, &ends, &by, &err));
    settle(2);
    assert_int_equal(stet_call_state_of(c), STET_CALL_FAILED);
    assert_int_equal(stet_call_outcome_of(c)->error->status, STET_CANCELLED);
    assert_true(stet_file_exists("was_told"));
    stet_call *again;
    FAILS(stet_executor_cancel(executor, stet_call_execution(c), ended, &ends, &again, &err), STET_CONFLICT, "ended");
    stet_call_free(c);
    stet_call_free(by);
    assert_int_equal(execs(node), 0);
}

static void its_time_is_over(void **state) {
    (void)state;
    adapter("echo \"$request\" | grep -q '\"op\":\"cancel\"' && touch was_told; pending t");
    stet_call *c = start(&(stet_call_request){.node = node_of(1), .cache = true, .timeout_ms = 200});
    settle(1);
    assert_int_equal(stet_call_state_of(c), STET_CALL_FAILED);
    assert_non_null(strstr(stet_call_outcome_of(c)->error->message, "longer than the time"));
    assert_true(stet_file_exists("was_told"));
    stet_call_free(c);
}

/* Somebody else began it, without a limit or with one that is over: only the own patience counts. */
static void whoever_joins_has_a_time_of_its_own(void **state) {
    (void)state;
    adapter("test -e go && done_ok || pending t");
    stet_call *c = start(&(stet_call_request){.node = node_of(1), .cache = true, .timeout_ms = 60000});
    for (int i = 0; i < 10000 && !stet_call_submitted(c); i++)
        uv_run(&loop, UV_RUN_ONCE);
    stet_call_free(c); /* its process was killed */
    stet_attempt a = only_attempt(true);
    stet_value_put(&a.detail, "deadline", stet_value_int(1)); /* long ago */
    OK(stet_attempt_move(repo, &a, a.state, &err));
    c = start(&(stet_call_request){.node = node_of(1), .cache = true, .timeout_ms = 200});
    settle(1);
    assert_int_equal(stet_call_state_of(c), STET_CALL_FAILED);
    assert_int_equal(stet_call_outcome_of(c)->error->status, STET_BUSY);
    stet_call_free(c);
    stet_attempt b = only_attempt(true); /* it goes on */
    assert_string_equal(a.execution, b.execution);
    stet_attempt_release(&a);
    stet_attempt_release(&b);
    OK(stet_file_append("go", "x", 1, false, &err));
    assert_int_equal(run(node_of(1)), STET_CALL_COMPLETED_OK);
}

static void a_result_that_rests_on_the_call_itself_is_refused(void **state) {
    (void)state;
    stet_hash node = node_of(1), dag, exec;
    bool pinned;
    adapter("done_ok");
    assert_int_equal(run(node), STET_CALL_COMPLETED_OK);
    OK(stet_dag_id(node, stet_value_null(), stet_repo_sink(repo), &dag, &err));
    stet_hash was = good;
    good = dag;
    adapter("done_ok");
    good = was;
    stet_call *c = start(&(stet_call_request){.node = node});
    settle(1);
    assert_int_equal(stet_call_state_of(c), STET_CALL_FAILED);
    assert_non_null(strstr(stet_call_outcome_of(c)->error->message, "rests on the call itself"));
    stet_call_free(c);
    OK(stet_executor_pinned(executor, node, &pinned, &exec, &err)); /* the earlier result stands */
    assert_true(pinned);
    assert_int_equal(run(node), STET_CALL_PINNED_HIT);
    assert_int_equal(execs(node), 1);
}

static void freed_in_the_middle_it_harms_nobody(void **state) {
    (void)state;
    adapter("sleep 0.3; done_ok");
    stet_call *c = start(&(stet_call_request){.node = node_of(1), .cache = true});
    uv_run(&loop, UV_RUN_NOWAIT);
    stet_call_free(c);
    for (int i = 0; i < 20; i++) {
        uv_run(&loop, UV_RUN_NOWAIT);
        stet_clock_sleep_ms(5);
    }
    assert_int_equal(ends, 0);
    assert_int_equal(run(node_of(1)), STET_CALL_COMPLETED_OK);
}

static void more_calls_than_adapters_may_run(void **state) {
    (void)state;
    adapter("done_ok");
    enum { COUNT = 40 };
    stet_call *calls[COUNT];
    for (int i = 0; i < COUNT; i++)
        calls[i] = start(&(stet_call_request){.node = node_of(i), .cache = true});
    settle(COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(stet_call_state_of(calls[i]), STET_CALL_COMPLETED_OK);
        stet_call_free(calls[i]);
    }
    assert_int_equal(polls(), COUNT);
}

static void what_is_no_call_is_refused(void **state) {
    (void)state;
    stet_hash datum, literal, node;
    stet_call *c;
    OK(stet_repo_put_value(repo, stet_value_int(1), &datum, &err));
    OK(stet_node_literal(datum, stet_repo_sink(repo), &literal, &err));
    stet_call_request r = {.node = literal, .cache = true};
    FAILS(stet_executor_start(executor, &r, ended, &ends, &c, &err), STET_INVALID, "is not a call");
    r.node = stet_hash_of("x", 1);
    FAILS(stet_executor_start(executor, &r, ended, &ends, &c, &err), STET_NOT_FOUND, "");
    stet_call_arg arg = {.value = stet_value_int(1)};
    FAILS(stet_calls_node(repo, &(stet_calls_node_spec){.root = ".", .function = "http://x/", .args = &arg, .count = 1},
                          &node, &err),
          STET_INVALID, "not the URI");
    FAILS(stet_calls_node(repo,
                          &(stet_calls_node_spec){
                              .root = ".", .function = "dml+exec://stet-exec-local/x?y=1", .args = &arg, .count = 1},
                          &node, &err),
          STET_INVALID, "no such option");
    arg.node = &r.node;
    FAILS(stet_calls_node(repo,
                          &(stet_calls_node_spec){.root = ".", .function = "dml+exec://a/x", .args = &arg, .count = 1},
                          &node, &err),
          STET_NOT_FOUND, "argument 1");
}

int main(void) {
    char path[9000];
    if (!getcwd(top, sizeof top))
        return 1;
    snprintf(path, sizeof path, "%s/bin:%s", top, getenv("PATH"));
    setenv("PATH", path, 1);
    mkdir("bin", 0755);
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_result_is_pinned_and_hit),
        T(a_failure_is_pinned_as_well),
        T(a_failure_that_is_not_kept_is_recorded_and_not_pinned),
        T(what_failed_for_now_is_tried_again_and_every_try_recorded),
        T(an_earlier_result_outlives_a_failure_that_is_not_kept),
        T(without_cache_records_are_added_and_keys_differ),
        T(nothing_is_recorded_while_it_is_pending_and_tokens_come_back),
        T(one_that_was_left_is_gone_on_with),
        T(two_who_ask_are_answered_by_one_attempt),
        T(two_who_ask_for_what_fails_both_hear_of_it),
        T(the_budget_is_that_of_the_call),
        T(results_that_are_not_there_are_waited_for_and_given_up),
        T(rows_that_were_dropped_are_made_again),
        T(rows_that_were_dropped_before_the_result_was_pinned_are_made_again),
        T(rows_in_every_state_are_taken_up),
        T(cancelled_by_somebody_else_it_ends),
        T(its_time_is_over),
        T(whoever_joins_has_a_time_of_its_own),
        T(a_result_that_rests_on_the_call_itself_is_refused),
        T(freed_in_the_middle_it_harms_nobody),
        T(more_calls_than_adapters_may_run),
        T(what_is_no_call_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
