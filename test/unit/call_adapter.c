/* call_adapter.c - adapters: URIs, replies, and processes that behave well, badly or not at all. */

#include "../expect.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "../faults.h"
#include "call/adapter.h"
#include "os/clock.h"
#include "os/file.h"

#define DAG "c282241799f990184caf001d49bea3e259c8b8b0970c152066ef569e8176ca14"

static void uri_is(const char *uri, const char *adapter, const char *path, const char *query) {
    stet_adapter_uri u;
    OK(stet_adapter_uri_parse(uri, &u, &err));
    assert_string_equal(u.adapter, adapter);
    assert_string_equal(u.path, path);
    char *text = stet_json_print(u.query, STET_JSON_CANONICAL, NULL);
    assert_string_equal(text, query);
    stet_free(text);
    stet_adapter_uri_release(&u);
}

static void uris_are_taken_apart(void **state) {
    (void)state;
    uri_is("dml+exec://stet-exec-local/sort", "stet-exec-local", "sort", "[]");
    uri_is("dml+exec://a", "a", "", "[]");
    uri_is("dml+exec://a?x=1", "a", "", "[[\"x\",\"1\"]]");
    uri_is("dml+exec://a//usr/bin/env", "a", "/usr/bin/env", "[]");
    uri_is("dml+exec://a/b%20c/d?arg=-n&arg=a%26b&flag&e=&s=x+y%2B", "a", "b c/d",
           "[[\"arg\",\"-n\"],[\"arg\",\"a&b\"],[\"flag\",\"\"],[\"e\",\"\"],[\"s\",\"x y+\"]]");
    uri_is("dml+exec://A_b.c-9/x?", "A_b.c-9", "x", "[]");
}

static void uris_that_are_none_are_refused(void **state) {
    (void)state;
    stet_adapter_uri u;
    FAILS(stet_adapter_uri_parse("http://x/y", &u, &err), STET_INVALID, "not the URI of a function");
    FAILS(stet_adapter_uri_parse("dml+exec:///x", &u, &err), STET_INVALID, "bare name");
    FAILS(stet_adapter_uri_parse("dml+exec://../x", &u, &err), STET_INVALID, "bare name");
    FAILS(stet_adapter_uri_parse("dml+exec://.hidden/x", &u, &err), STET_INVALID, "bare name");
    FAILS(stet_adapter_uri_parse("dml+exec://-x/x", &u, &err), STET_INVALID, "bare name");
    FAILS(stet_adapter_uri_parse("dml+exec://a%2Fb/x", &u, &err), STET_INVALID, "bare name");
    FAILS(stet_adapter_uri_parse("dml+exec://a b/x", &u, &err), STET_INVALID, "bare name");
    FAILS(stet_adapter_uri_parse("dml+exec://a@b/x", &u, &err), STET_INVALID, "bare name");
    FAILS(stet_adapter_uri_parse("dml+exec://a/x#y", &u, &err), STET_INVALID, "fragment");
    FAILS(stet_adapter_uri_parse("dml+exec://a/%", &u, &err), STET_INVALID, "escape");
    FAILS(stet_adapter_uri_parse("dml+exec://a/%4", &u, &err), STET_INVALID, "escape");
    FAILS(stet_adapter_uri_parse("dml+exec://a/%00", &u, &err), STET_INVALID, "escape");
    FAILS(stet_adapter_uri_parse("dml+exec://a/%ff", &u, &err), STET_INVALID, "escape");
    FAILS(stet_adapter_uri_parse("dml+exec://a/x?y=%zz", &u, &err), STET_INVALID, "escape");
    char *longest = stet_alloc(70000);
    memset(longest, 'a', 69999);
    longest[69999] = 0;
    memcpy(longest, "dml+exec://a/", 13);
    FAILS(stet_adapter_uri_parse(longest, &u, &err), STET_LIMIT, "more than");
    stet_free(longest);
}

static stet_adapter_reply parsed(const char *text) {
    stet_adapter_reply r;
    stet_adapter_reply_parse("pollster", text, strlen(text), &r);
    return r;
}

static void good_replies(void **state) {
    (void)state;
    stet_adapter_reply r = parsed("{\"v\":1,\"status\":\"pending\",\"token\":\"t\",\"poll_after_ms\":250,\"progress\":"
                                  "{\"done\":1,\"total\":4,\"note\":\"half\"}}");
    assert_int_equal(r.status, STET_ADAPTER_PENDING);
    assert_string_equal(stet_value_as_string(&r.token, NULL), "t");
    assert_int_equal(r.poll_after_ms, 250);
    assert_int_equal(r.done, 1);
    assert_int_equal(r.total, 4);
    assert_string_equal(stet_value_as_string(&r.note, NULL), "half");
    stet_adapter_reply_release(&r);
    r = parsed("{\"v\":1,\"status\":\"pending\",\"token\":\"\"}");
    assert_int_equal(r.status, STET_ADAPTER_PENDING);
    assert_int_equal(r.poll_after_ms, -1);
    stet_adapter_reply_release(&r);
    r = parsed("{\"v\":1,\"status\":\"pending\",\"token\":\"\",\"poll_after_ms\":99999999999}");
    assert_int_equal(r.poll_after_ms, STET_ADAPTER_AFTER_MAX);
    stet_adapter_reply_release(&r);
    r = parsed("{\"v\":1,\"status\":\"done\",\"outcome\":\"ok\",\"result\":\"" DAG "\"}");
    assert_int_equal(r.status, STET_ADAPTER_DONE_OK);
    char hex[STET_HASH_HEX];
    stet_hash_hex(r.result, hex);
    assert_string_equal(hex, DAG);
    stet_adapter_reply_release(&r);
    r = parsed(" {\"v\":1,\"status\":\"done\",\"outcome\":\"error\",\"result\":\"" DAG "\"}\n");
    assert_int_equal(r.status, STET_ADAPTER_DONE_ERROR);
    assert_false(r.passing || r.retry);
    stet_adapter_reply_release(&r);
    r = parsed("{\"v\":1,\"status\":\"done\",\"outcome\":\"error\",\"result\":\"" DAG "\",\"keep\":false}");
    assert_int_equal(r.status, STET_ADAPTER_DONE_ERROR);
    assert_true(r.passing && !r.retry);
    stet_adapter_reply_release(&r);
    r = parsed("{\"v\":1,\"status\":\"done\",\"outcome\":\"error\",\"result\":\"" DAG
               "\",\"keep\":false,\"retry\":true}");
    assert_true(r.passing && r.retry);
    stet_adapter_reply_release(&r);
}

static void bad_replies_are_transient_and_name_the_adapter(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"", "there is none"},
        {"pending", "line 1"},
        {"{\"v\":1,\"status\":\"pending\",\"token\":\"t\"} trailing", "line 1"},
        {"[]", "\"v\": 1"},
        {"{\"v\":2,\"status\":\"pending\",\"token\":\"t\"}", "\"v\": 1"},
        {"{\"v\":1}", "neither"},
        {"{\"v\":1,\"status\":\"pending\"}", "no token"},
        {"{\"v\":1,\"status\":\"pending\",\"token\":7}", "no token"},
        {"{\"v\":1,\"status\":\"pending\",\"token\":\"t\",\"poll_after_ms\":-1}", "poll_after_ms"},
        {"{\"v\":1,\"status\":\"pending\",\"token\":\"t\",\"poll_after_ms\":\"1\"}", "poll_after_ms"},
        {"{\"v\":1,\"status\":\"pending\",\"token\":\"t\",\"progress\":5}", "progress"},
        {"{\"v\":1,\"status\":\"done\",\"result\":\"" DAG "\"}", "outcome"},
        {"{\"v\":1,\"status\":\"done\",\"outcome\":\"maybe\",\"result\":\"" DAG "\"}", "outcome"},
        {"{\"v\":1,\"status\":\"done\",\"outcome\":\"ok\",\"result\":\"abc\"}", "id of a DAG"},
        {"{\"v\":1,\"status\":\"done\",\"outcome\":\"ok\"}", "id of a DAG"},
        {"{\"v\":1,\"status\":\"done\",\"outcome\":\"ok\",\"result\":\"" DAG "\",\"keep\":false}", "only an error"},
        {"{\"v\":1,\"status\":\"done\",\"outcome\":\"error\",\"result\":\"" DAG "\",\"retry\":true}", "not kept"},
        {"{\"v\":1,\"status\":\"done\",\"outcome\":\"error\",\"result\":\"" DAG "\",\"keep\":0}", "true or false"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stet_adapter_reply r = parsed(bad[i][0]);
        if (r.status != STET_ADAPTER_FAILED_TRANSIENT || !strstr(r.error.message, bad[i][1]) ||
            !strstr(r.error.message, "pollster"))
            fail_msg("%s: %s", bad[i][0], r.error.message);
        stet_adapter_reply_release(&r);
    }
    stet_buf b = STET_BUF(0);
    stet_buf_str(&b, "{\"v\":1,\"status\":\"pending\",\"token\":\"");
    for (size_t i = 0; i <= STET_ADAPTER_TOKEN_MAX; i++)
        stet_buf_char(&b, 'x');
    stet_buf_str(&b, "\"}");
    stet_adapter_reply r = parsed(b.data);
    assert_int_equal(r.status, STET_ADAPTER_FAILED_TRANSIENT);
    assert_non_null(strstr(r.error.message, "64 KiB"));
    stet_adapter_reply_release(&r);
    stet_buf_release(&b);
}

static uv_loop_t loop;

typedef struct heard {
    int count;
    stet_adapter_status status;
    char message[1024], token[256], log[256];
    size_t log_len;
} heard;

static void take(void *ctx, const stet_adapter_reply *r) {
    heard *h = ctx;
    h->count++;
    h->status = r->status;
    snprintf(h->message, sizeof h->message, "%s", r->error.message);
    stet_value token = r->token;
    snprintf(h->token, sizeof h->token, "%s",
             stet_value_type(token) == STET_TYPE_STRING ? stet_value_as_string(&token, NULL) : "");
    snprintf(h->log, sizeof h->log, "%.200s", r->log);
    h->log_len = r->log_len;
}

/* An adapter is a script in ./bin, which is on PATH. */
static void adapter(const char *name, const char *script) {
    char path[300];
    mkdir("bin", 0755);
    snprintf(path, sizeof path, "bin/%s", name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", script);
    fclose(f);
    assert_int_equal(chmod(path, 0755), 0);
}

static stet_adapter_poll *begin(const char *function, int64_t timeout, heard *h) {
    stet_adapter_poll *p = NULL;
    stet_hash node = stet_hash_of("n", 1);
    stet_adapter_request r = {.function = function,
                              .node = node,
                              .inputs = &node,
                              .input_count = 1,
                              .remote = "file:///r",
                              .ref = "refs/exec/u",
                              .execution = "u",
                              .key = "k",
                              .token = stet_value_null(),
                              .timeout_ms = timeout};
    *h = (heard){0};
    OK(stet_adapter_start(&loop, &r, take, h, &p, &err));
    return p;
}

static heard asked(const char *script, int64_t timeout) {
    heard h;
    adapter("test-adapter", script);
    begin("dml+exec://test-adapter/x", timeout, &h);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(h.count, 1);
    return h;
}

#define PENDING "echo '{\"v\":1,\"status\":\"pending\",\"token\":\"t1\"}'"

static void the_request_comes_on_standard_input_and_the_answer_from_standard_output(void **state) {
    (void)state;
    heard h = asked("cat > request.json; echo to the log >&2; " PENDING, 0);
    assert_int_equal(h.status, STET_ADAPTER_PENDING);
    assert_string_equal(h.token, "t1");
    assert_string_equal(h.log, "to the log\n");
    stet_buf b = STET_BUF(0);
    OK(stet_file_read("request.json", 0, &b, &err));
    assert_non_null(strstr(b.data, "\"execution\":\"u\""));
    assert_non_null(strstr(b.data, "\"op\":\"poll\""));
    assert_non_null(strstr(b.data, "\"snapshot\":{\"ref\":\"refs/exec/u\",\"remote\":\"file:///r\"}"));
    assert_non_null(strstr(b.data, "\"token\":null"));
    stet_buf_release(&b);
}

static void exit_statuses_say_for_now_or_for_good(void **state) {
    (void)state;
    heard h = asked("echo reason >&2; exit 75", 0);
    assert_int_equal(h.status, STET_ADAPTER_FAILED_TRANSIENT);
    assert_non_null(strstr(h.message, "test-adapter ended with status 75: reason"));
    h = asked("echo first >&2; echo last >&2; exit 3", 0);
    assert_int_equal(h.status, STET_ADAPTER_FAILED_PERMANENT);
    assert_non_null(strstr(h.message, "test-adapter ended with status 3: last"));
    h = asked("kill -9 $$", 0); /* its job may be running */
    assert_int_equal(h.status, STET_ADAPTER_FAILED_TRANSIENT);
    assert_non_null(strstr(h.message, "signal 9"));
    h = asked("echo garbage", 0);
    assert_int_equal(h.status, STET_ADAPTER_FAILED_TRANSIENT);
    assert_non_null(strstr(h.message, "test-adapter"));
    /* A good reply with a bad status is a failure all the same. */
    h = asked(PENDING "; exit 1", 0);
    assert_int_equal(h.status, STET_ADAPTER_FAILED_PERMANENT);
}

static void late_and_endless_ones_are_ended(void **state) {
    (void)state;
    int64_t from = stet_clock_monotonic_us();
    heard h = asked("sleep 60", 200);
    assert_int_equal(h.status, STET_ADAPTER_FAILED_TRANSIENT);
    assert_non_null(strstr(h.message, "test-adapter has not answered within 200 ms"));
    h = asked("yes", 20000);
    assert_int_equal(h.status, STET_ADAPTER_FAILED_TRANSIENT);
    assert_non_null(strstr(h.message, "longer than 1 MiB"));
    assert_true(stet_clock_monotonic_us() - from < 15000000);
    /* Endless standard error is cut, and does no harm. */
    h = asked("head -c 3000000 /dev/zero >&2; " PENDING, 20000);
    assert_int_equal(h.status, STET_ADAPTER_PENDING);
    assert_int_equal(h.log_len, STET_ADAPTER_LOG_MAX);
}

static void what_it_leaves_running_keeps_nobody_waiting(void **state) {
    (void)state;
    int64_t from = stet_clock_monotonic_us();
    heard h = asked("sleep 30 & echo $! > left.pid; " PENDING, 20000);
    assert_int_equal(h.status, STET_ADAPTER_PENDING);
    assert_true(stet_clock_monotonic_us() - from < 15000000);
    stet_buf b = STET_BUF(0);
    OK(stet_file_read("left.pid", 0, &b, &err));
    kill(atoi(b.data), SIGKILL);
    stet_buf_release(&b);
}

static void a_request_larger_than_a_pipe_arrives(void **state) {
    (void)state;
    heard h = {0};
    stet_adapter_poll *p;
    adapter("test-adapter", "wc -c > size; " PENDING);
    stet_hash *many = stet_alloc_zero(5000 * sizeof *many);
    stet_adapter_request r = {.function = "dml+exec://test-adapter/x",
                              .inputs = many,
                              .input_count = 5000,
                              .remote = "",
                              .ref = "",
                              .execution = "u",
                              .key = "k",
                              .token = stet_value_null()};
    OK(stet_adapter_start(&loop, &r, take, &h, &p, &err));
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(h.status, STET_ADAPTER_PENDING);
    stet_buf b = STET_BUF(0);
    OK(stet_file_read("size", 0, &b, &err));
    assert_true(atoi(b.data) > 5000 * 66);
    stet_buf_release(&b);
    stet_free(many);
}

static void many_at_a_time(void **state) {
    (void)state;
    enum { COUNT = 20 };
    static heard h[COUNT];
    adapter("test-adapter", "sleep 0.3; " PENDING);
    int before = faults_descriptors();
    int64_t from = stet_clock_monotonic_us();
    for (int i = 0; i < COUNT; i++)
        begin("dml+exec://test-adapter/x", 30000, &h[i]);
    uv_run(&loop, UV_RUN_DEFAULT);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(h[i].count, 1);
        assert_int_equal(h[i].status, STET_ADAPTER_PENDING);
    }
    assert_true(stet_clock_monotonic_us() - from < COUNT * 300000 * 2 / 3);
    assert_int_equal(faults_descriptors(), before);
}

static void stopped_on_request(void **state) {
    (void)state;
    heard h;
    adapter("test-adapter", "sleep 60");
    stet_adapter_poll *p = begin("dml+exec://test-adapter/x", 0, &h);
    stet_adapter_stop(p);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(h.count, 1);
    assert_int_equal(h.status, STET_ADAPTER_STOPPED);
}

static void one_that_is_not_there(void **state) {
    (void)state;
    stet_adapter_poll *p;
    stet_adapter_request r = {.function = "dml+exec://no-such-adapter/x",
                              .remote = "",
                              .ref = "",
                              .execution = "",
                              .key = "",
                              .token = stet_value_null()};
    int before = faults_descriptors();
    FAILS(stet_adapter_start(&loop, &r, take, NULL, &p, &err), STET_NOT_FOUND, "no adapter no-such-adapter on $PATH");
    r.function = "dml+exec://x/y#z";
    FAILS(stet_adapter_start(&loop, &r, take, NULL, &p, &err), STET_INVALID, "fragment");
    assert_int_equal(faults_descriptors(), before);
}

int main(void) {
    char cwd[4096], path[9000];
    if (!getcwd(cwd, sizeof cwd))
        return 1;
    snprintf(path, sizeof path, "%s/bin:%s", cwd, getenv("PATH"));
    setenv("PATH", path, 1);
    uv_loop_init(&loop);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uris_are_taken_apart),
        cmocka_unit_test(uris_that_are_none_are_refused),
        cmocka_unit_test(good_replies),
        cmocka_unit_test(bad_replies_are_transient_and_name_the_adapter),
        cmocka_unit_test(the_request_comes_on_standard_input_and_the_answer_from_standard_output),
        cmocka_unit_test(exit_statuses_say_for_now_or_for_good),
        cmocka_unit_test(late_and_endless_ones_are_ended),
        cmocka_unit_test(what_it_leaves_running_keeps_nobody_waiting),
        cmocka_unit_test(a_request_larger_than_a_pipe_arrives),
        cmocka_unit_test(many_at_a_time),
        cmocka_unit_test(stopped_on_request),
        cmocka_unit_test(one_that_is_not_there),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    uv_loop_close(&loop);
    return failed;
}
