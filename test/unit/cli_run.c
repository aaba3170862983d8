/* cli_run.c - the command line as a whole, in a child process, with operations made for it.
 *
 * Tests events, raw output, standard input, warnings, progress, verdicts, errors, readers that go away, and Ctrl-C.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "operation/text.h"
#include "os/clock.h"

static stet_status stream(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    int64_t n = stet_value_as_int(stet_value_get(args, "count"));
    for (int64_t i = 0; i < n; i++) {
        stet_value event = stet_value_object();
        stet_value_put(&event, "n", stet_value_int(i));
        stet_status status = ctx->emit(ctx, event, err);
        stet_value_release(event);
        if (status != STET_OK)
            return status;
    }
    *result = stet_value_object();
    stet_value_put(result, "total", stet_value_int(n));
    return STET_OK;
}

static void stream_render(stet_render *r, stet_value v) {
    stet_value n;
    if (stet_value_find(v, "n", 1, &n))
        stet_buf_printf(r->out, "event %lld\n", (long long)stet_value_as_int(n));
    else
        stet_buf_printf(r->out, "%lld in all\n", (long long)stet_value_as_int(stet_value_get(v, "total")));
}

static const stet_param stream_params[] = {
    {.name = "count", .letter = 'n', .type = STET_PARAM_INT, .summary = "How many", .default_json = "2"},
    {0},
};
static const stet_op stream_op = {
    .name = "test stream", .summary = "Stream", .params = stream_params, .run = stream, .render = stream_render};

static stet_status echo(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    (void)ctx;
    (void)err;
    *result = stet_value_object();
    stet_value_put(result, "value", stet_value_retain(stet_value_get(args, "value")));
    return STET_OK;
}

static const stet_param echo_params[] = {
    {.name = "value", .type = STET_PARAM_JSON, .flags = STET_PARAM_POSITIONAL | STET_PARAM_REQUIRED, .summary = "Any"},
    {0},
};
static const stet_op echo_op = {.name = "test echo", .summary = "Echo", .params = echo_params, .run = echo};

static stet_status raw(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    (void)args;
    if (ctx->write_out)
        return ctx->write_out(ctx, "raw\0bytes", 9, err);
    *result = stet_value_object();
    stet_value_put(result, "bytes", stet_value_int(9));
    return STET_OK;
}
static const stet_op raw_op = {.name = "test raw", .summary = "Raw", .run = raw};

static stet_status chat(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    (void)args;
    (void)err;
    ctx->warn(ctx, "careful with %s", "\033[31mthis");
    ctx->progress(ctx, 1, 2, "not shown: too early");
    *result = stet_value_object();
    stet_value_put(result, "ok", stet_value_bool(false));
    return STET_OK;
}
static stet_status chat_verdict(stet_value result) {
    return stet_value_as_bool(stet_value_get(result, "ok")) ? STET_OK : STET_FAILED;
}
static const stet_op chat_op = {.name = "test chat", .summary = "Chat", .run = chat, .verdict = chat_verdict};

static stet_status refuse(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    (void)ctx;
    (void)args;
    (void)result;
    stet_fail(err, STET_CONFLICT, "no\nway");
    stet_hint(err, "another one");
    stet_detail(err, "seq", stet_value_int(7));
    return STET_CONFLICT;
}
static const stet_op refuse_op = {.name = "test refuse", .summary = "Refuse", .run = refuse};

static stet_status wait_for_stop(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    (void)args;
    (void)result;
    stet_value ready = stet_value_object();
    stet_status status = ctx->emit(ctx, ready, err);
    stet_value_release(ready);
    for (int i = 0; status == STET_OK && !ctx->cancelled(ctx); i++) {
        poll(NULL, 0, 10);
        if (i > 2000)
            return stet_fail(err, STET_INTERNAL, "nobody stopped it");
    }
    return status != STET_OK ? status : stet_fail(err, STET_CANCELLED, "stopped");
}
static const stet_op wait_op = {.name = "test wait", .summary = "Wait", .run = wait_for_stop};

typedef struct child {
    pid_t pid;
    int in, out, err;
} child;

static child start(const stet_op *op, const char *line) {
    int in[2], out[2], err[2];
    assert_int_equal(pipe(in) | pipe(out) | pipe(err), 0);
    char copy[256], *words[16];
    int n = 0;
    strcpy(copy, line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        words[n++] = word;
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(err[1], 2);
        for (int fd = 3; fd < 64; fd++)
            close(fd);
        _exit(stet_cli_run(op, n, words));
    }
    close(in[0]);
    close(out[1]);
    close(err[1]);
    return (child){pid, in[1], out[0], err[0]};
}

static void read_all(int fd, char *to, size_t size, size_t *len) {
    size_t n = 0;
    for (ssize_t got; n + 1 < size && (got = read(fd, to + n, size - n - 1)) > 0;)
        n += (size_t)got;
    to[n] = 0;
    if (len)
        *len = n;
    close(fd);
}

static char out[65536], err_text[65536];
static size_t out_len;

static int end(child c) {
    int status;
    if (c.in >= 0)
        close(c.in);
    if (c.out >= 0)
        read_all(c.out, out, sizeof out, &out_len);
    read_all(c.err, err_text, sizeof err_text, NULL);
    assert_int_equal(waitpid(c.pid, &status, 0), c.pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int run(const stet_op *op, const char *line, const char *input) {
    child c = start(op, line);
    if (input) {
        ssize_t n = write(c.in, input, strlen(input));
        assert_int_equal(n, strlen(input));
    }
    return end(c);
}

static void test_events(void **state) {
    (void)state;
    assert_int_equal(run(&stream_op, "", NULL), 0);
    assert_string_equal(out, "event 0\nevent 1\n2 in all\n");
    assert_int_equal(run(&stream_op, "--json -n3", NULL), 0);
    assert_string_equal(out, "{\"n\":0}\n{\"n\":1}\n{\"n\":2}\n{\"total\":3}\n");
    assert_string_equal(err_text, "");
}

/* A stream whose reader goes away ends soon, quietly and with success. */
static void test_reader_gone(void **state) {
    (void)state;
    child c = start(&stream_op, "-n 1000000000");
    char first[16];
    assert_true(read(c.out, first, sizeof first) > 0);
    close(c.out);
    c.out = -1;
    assert_int_equal(end(c), 0);
    assert_string_equal(err_text, "");
}

static void test_stdin(void **state) {
    (void)state;
    assert_int_equal(run(&echo_op, "--json -", "{\"a\": [1, 2.5]}\n"), 0);
    assert_string_equal(out, "{\"value\":{\"a\":[1,2.5]}}\n");
    assert_int_equal(run(&echo_op, "[1]", NULL), 0);
    assert_string_equal(out, "{\n  \"value\": [\n    1\n  ]\n}\n");
    assert_int_equal(run(&echo_op, "-", "{"), 2);
    assert_non_null(strstr(err_text, "VALUE: standard input is no JSON"));
    assert_int_equal(run(&echo_op, "-", ""), 2);
    assert_int_equal(run(&echo_op, "", NULL), 2);
    assert_non_null(strstr(err_text, "VALUE is missing"));
    assert_int_equal(run(&echo_op, "null --json", NULL), 0);
    assert_string_equal(out, "{\"value\":null}\n");
}

static void test_raw(void **state) {
    (void)state;
    assert_int_equal(run(&raw_op, "", NULL), 0);
    assert_int_equal(out_len, 9);
    assert_memory_equal(out, "raw\0bytes", 9);
    assert_int_equal(run(&raw_op, "--json", NULL), 0);
    assert_string_equal(out, "{\"bytes\":9}\n");
}

static void test_asides(void **state) {
    (void)state;
    assert_int_equal(run(&chat_op, "--json", NULL), 1);
    assert_string_equal(out, "{\"ok\":false}\n");
    assert_string_equal(err_text, "stet: warning: careful with ?[31mthis\n");
    assert_int_equal(run(&chat_op, "--json -q", NULL), 1);
    assert_string_equal(err_text, "");
}

static void test_errors(void **state) {
    (void)state;
    assert_int_equal(run(&refuse_op, "", NULL), 4);
    assert_string_equal(out, "");
    assert_string_equal(err_text, "stet: no?way\nhint: another one\n");
    assert_int_equal(run(&refuse_op, "--json", NULL), 4);
    assert_string_equal(err_text, "");
    assert_string_equal(out, "{\"error\":{\"code\":\"conflict\",\"details\":{\"seq\":7},\"hint\":\"another one\","
                             "\"message\":\"no\\nway\"}}\n");
}

static void test_stop(void **state) {
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM};
    signal(SIGINT, SIG_DFL); /* a shell that starts the tests in the background has it ignored */
    for (size_t i = 0; i < 2; i++) {
        child c = start(&wait_op, "--json");
        char ready[8];
        assert_true(read(c.out, ready, sizeof ready) > 0);
        kill(c.pid, signals[i]);
        assert_int_equal(end(c), 130);
        assert_non_null(strstr(out, "\"code\":\"cancelled\""));
    }
    /* While it reads standard input, which nobody closes. */
    child c = start(&echo_op, "-");
    poll(NULL, 0, 200);
    kill(c.pid, SIGINT);
    int in = c.in;
    c.in = -1;
    assert_int_equal(end(c), 130);
    close(in);
    assert_non_null(strstr(err_text, "interrupted"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events), cmocka_unit_test(test_reader_gone), cmocka_unit_test(test_stdin),
        cmocka_unit_test(test_raw),    cmocka_unit_test(test_asides),      cmocka_unit_test(test_errors),
        cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests_name("cli_run", tests, NULL, NULL);
}
