/* mcp.c - the MCP server without I/O.
 *
 * Tests lines, messages, tools and their filters, pages, the pool, and many requests on threads.
 */

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "mcp/page.h"
#include "mcp/pool.h"
#include "mcp/prompt.h"
#include "mcp/resource.h"
#include "mcp/rpc.h"
#include "mcp/server.h"
#include "os/clock.h"

static stet_value parse(const char *json) {
    stet_value v;
    assert_int_equal(stet_json_parse(json, strlen(json), &v, NULL), STET_OK);
    return v;
}

static void note_line(void *ctx, const char *line, size_t len) {
    stet_buf *out = ctx;
    if (line)
        stet_buf_add(out, line, len);
    else
        stet_buf_str(out, "(too long)");
    stet_buf_char(out, '|');
}

static void lines_in_every_cut(void **state) {
    (void)state;
    static const char text[] = "one\n\n  \r\ntwo\r\nthirteen bytes\nx\n0123456789ab\nend";
    size_t n = strlen(text);
    for (size_t a = 0; a <= n; a++)
        for (size_t b = a; b <= n; b++) {
            stet_rpc_framer f = {.max = 12};
            stet_buf out = STET_BUF(0);
            stet_rpc_framer_feed(&f, text, a, note_line, &out);
            stet_rpc_framer_feed(&f, text + a, b - a, note_line, &out);
            stet_rpc_framer_feed(&f, text + b, n - b, note_line, &out);
            stet_rpc_framer_end(&f, note_line, &out);
            assert_string_equal(stet_buf_cstr(&out), "one|two\r|(too long)|x|0123456789ab|end|");
            stet_rpc_framer_release(&f);
            stet_buf_release(&out);
        }
}

static void long_line_without_an_end(void **state) {
    (void)state;
    stet_rpc_framer f = {.max = 10};
    stet_buf out = STET_BUF(0);
    for (int i = 0; i < 100; i++)
        stet_rpc_framer_feed(&f, "xxxxxxxxxx", 10, note_line, &out);
    assert_int_equal(out.len, 0);
    assert_int_equal(f.rest.cap, 0); /* nothing of it is kept */
    stet_rpc_framer_end(&f, note_line, &out);
    assert_string_equal(stet_buf_cstr(&out), "(too long)|");
    stet_rpc_framer_release(&f);
    stet_buf_release(&out);
}

static void kinds_of_messages(void **state) {
    (void)state;
    static const struct {
        const char *json;
        stet_rpc_kind kind;
        int code;
    } cases[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}", STET_RPC_REQUEST, 0},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"a\",\"params\":{}}", STET_RPC_REQUEST, 0},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"a\"}", STET_RPC_NOTIFICATION, 0},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":[]}", STET_RPC_NOTIFICATION, 0},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}", STET_RPC_RESPONSE, 0},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}", STET_RPC_RESPONSE, 0},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":[]}", STET_RPC_BAD, STET_RPC_INVALID_PARAMS},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"}", STET_RPC_BAD, STET_RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"a\"}", STET_RPC_BAD, STET_RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"notifications/a\"}", STET_RPC_BAD, STET_RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"2.0\\u0000\",\"id\":1,\"method\":\"a\"}", STET_RPC_BAD, STET_RPC_INVALID_REQUEST},
        {"{\"id\":1,\"method\":\"a\"}", STET_RPC_BAD, STET_RPC_INVALID_REQUEST},
        {"{}", STET_RPC_BAD, STET_RPC_INVALID_REQUEST},
        {"[]", STET_RPC_BAD, STET_RPC_INVALID_REQUEST},
        {"true", STET_RPC_BAD, STET_RPC_INVALID_REQUEST},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stet_value v = parse(cases[i].json);
        stet_rpc_message m;
        assert_int_equal(stet_rpc_classify(v, &m), cases[i].kind);
        assert_int_equal(m.code, cases[i].code);
        stet_value_release(v);
    }
}

static stet_value words(const char *a, const char *b) {
    stet_value v = stet_value_array();
    if (a)
        stet_value_push(&v, stet_value_string(a));
    if (b)
        stet_value_push(&v, stet_value_string(b));
    return v;
}

static void filters(void **state) {
    (void)state;
    static const struct {
        bool all, read_only;
        const char *allow, *deny;
        const char *in, *out;
    } cases[] = {
        {false, false, NULL, NULL, "stet_init", "stet_version"},
        {true, false, NULL, NULL, "stet_version", "stet_help"},
        {true, false, NULL, NULL, "stet_gc", "stet_mcp"},
        {true, true, NULL, NULL, "stet_version", "stet_gc"},
        {true, true, NULL, NULL, "stet_project_list", "stet_project_add"},
        {false, false, "version", NULL, "stet_version", "stet_init"},
        {false, false, "project *", NULL, "stet_project_add", "stet_init"},
        {false, false, "stet_project_*", "project add", "stet_project_list", "stet_project_add"},
        {true, false, NULL, "*", NULL, "stet_version"},
        {true, true, "*", "project-list", "stet_version", "stet_project_list"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stet_mcp_filter f = {.all = cases[i].all,
                             .read_only = cases[i].read_only,
                             .allow = words(cases[i].allow, NULL),
                             .deny = words(cases[i].deny, NULL)};
        stet_mcp_tools *t;
        assert_int_equal(stet_mcp_tools_new(&f, &t, NULL), STET_OK);
        if (cases[i].in)
            assert_non_null(stet_mcp_tools_find(t, cases[i].in));
        assert_null(stet_mcp_tools_find(t, cases[i].out));
        stet_mcp_tools_free(t);
        stet_value_release(f.allow);
        stet_value_release(f.deny);
    }
    stet_mcp_filter f = {.deny = words("doc frobnicate", NULL)};
    stet_mcp_tools *t;
    stet_error err = STET_ERROR_INIT;
    assert_int_equal(stet_mcp_tools_new(&f, &t, &err), STET_INVALID);
    stet_error_clear(&err);
    stet_value_release(f.deny);
}

/* Whatever the table says: what may change something is never called read-only, and names are names. */
static void hints_never_lie(void **state) {
    (void)state;
    stet_mcp_filter f = {.all = true};
    stet_mcp_tools *t;
    assert_int_equal(stet_mcp_tools_new(&f, &t, NULL), STET_OK);
    stet_value list = stet_mcp_tools_list(t, STET_MCP_STRUCTURED);
    assert_true(stet_value_count(list) > 10);
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value tool = stet_value_at(list, i), name = stet_value_get(tool, "name"),
                   hints = stet_value_get(tool, "annotations");
        const char *text = stet_value_as_string(&name, NULL);
        assert_true(strlen(text) <= 64 && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(text));
        const stet_op *op = stet_mcp_tools_find(t, text);
        bool read_only = stet_value_as_bool(stet_value_get(hints, "readOnlyHint"));
        assert_false(read_only && stet_value_as_bool(stet_value_get(hints, "destructiveHint")));
        if (op && read_only)
            assert_true((op->flags & STET_OP_READ_ONLY) && !(op->flags & STET_OP_DESTRUCTIVE));
        if (op)
            assert_int_equal(stet_value_as_bool(stet_value_get(hints, "destructiveHint")),
                             (op->flags & STET_OP_DESTRUCTIVE) != 0);
    }
    stet_value_release(list);
    stet_mcp_tools_free(t);
}

static void examples_as_arguments(void **state) {
    (void)state;
    const stet_op *op = stet_op_find("project add");
    static const struct {
        const char *command, *want;
    } cases[] = {
        {"project add", "{}"},
        {"project add .", "{\"dir\":\".\"}"},
        {"project add 'a  b'", "{\"dir\":\"a  b\"}"},
        {"project add \"a \\\"b\"", "{\"dir\":\"a \\\"b\"}"},
        {"project add a\\ b", "{\"dir\":\"a b\"}"},
        {"project add a''b", "{\"dir\":\"ab\"}"},
        {"project add a | cat", NULL},
        {"project add $HOME", NULL},
        {"project add 'a", NULL},
        {"project add a b", NULL},
        {"project list", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stet_example e = {cases[i].command, "test"};
        stet_value v;
        bool good = stet_mcp_tool_example(op, &e, &v);
        assert_int_equal(good, cases[i].want != NULL);
        if (!good)
            continue;
        char *text = stet_json_print(v, STET_JSON_CANONICAL, NULL);
        assert_string_equal(text, cases[i].want);
        stet_free(text);
        stet_value_release(v);
    }
}

static void prompts_speak_of_tools_that_are_there(void **state) {
    (void)state;
    stet_mcp_filter f = {.all = true}, none = {.deny = words("*", NULL)};
    stet_mcp_tools *t;
    assert_int_equal(stet_mcp_tools_new(&f, &t, NULL), STET_OK);
    stet_value list = stet_mcp_prompts_list(t, true), v, last = stet_value_string("");
    assert_true(stet_value_count(list) >= 2);
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value name = stet_value_get(stet_value_at(list, i), "name");
        assert_true(stet_value_compare(last, name) < 0);
        last = name;
    }
    stet_value args = parse("{\"run\":\"{x} [y]\"}");
    assert_int_equal(stet_mcp_prompt_get(t, "explain-run", args, &v, NULL), STET_OK);
    stet_value text =
        stet_value_get(stet_value_get(stet_value_at(stet_value_get(v, "messages"), 0), "content"), "text");
    assert_non_null(strstr(stet_value_as_string(&text, NULL), "run {x} [y] with")); /* an argument is no template */
    stet_value_release(v);
    stet_value_release(args);
    args = parse("{\"runs\":\"x\"}");
    assert_int_equal(stet_mcp_prompt_get(t, "explain-run", args, &v, NULL), STET_INVALID);
    assert_int_equal(stet_mcp_prompt_get(t, "explain-run", stet_value_null(), &v, NULL), STET_INVALID);
    assert_int_equal(stet_mcp_prompt_get(t, "no-such", stet_value_null(), &v, NULL), STET_NOT_FOUND);
    stet_value_release(args);
    stet_value_release(list);
    stet_mcp_tools_free(t);
    assert_int_equal(stet_mcp_tools_new(&none, &t, NULL), STET_OK);
    list = stet_mcp_prompts_list(t, true);
    assert_int_equal(stet_value_count(list), 0);
    stet_value_release(list);
    stet_value_release(none.deny);
    stet_mcp_tools_free(t);
}

static void pages_put_together_are_the_text(void **state) {
    (void)state;
    stet_mcp_pages *p = stet_mcp_pages_new(2, 1000);
    static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z: every character whole";
    char id[STET_MCP_PAGE_ID_MAX], other[STET_MCP_PAGE_ID_MAX];
    for (size_t size = 4; size < 60; size++) {
        assert_true(stet_mcp_pages_keep(p, strdup(text), strlen(text), id));
        stet_buf all = STET_BUF(0);
        for (stet_value next = stet_value_int(0); stet_value_type(next) == STET_TYPE_INT;) {
            stet_value page;
            assert_true(stet_mcp_pages_read(p, id, stet_value_as_int(next), size, &page));
            stet_value part = stet_value_get(page, "text");
            size_t len;
            const char *bytes = stet_value_as_string(&part, &len);
            assert_true(len <= size);
            stet_buf_add(&all, bytes, len);
            next = stet_value_get(page, "next");
            stet_value_release(page);
        }
        assert_string_equal(stet_buf_cstr(&all), text);
        stet_buf_release(&all);
    }
    stet_value page;
    assert_false(stet_mcp_pages_read(p, id, 2, 10, &page)); /* inside a character */
    assert_false(stet_mcp_pages_read(p, id, -1, 10, &page));
    assert_false(stet_mcp_pages_read(p, id, (int64_t)strlen(text), 10, &page));
    assert_false(stet_mcp_pages_read(p, "r", 0, 10, &page));
    assert_true(stet_mcp_pages_keep(p, strdup("1"), 1, other));
    assert_true(stet_mcp_pages_keep(p, strdup("2"), 1, other));
    assert_false(stet_mcp_pages_read(p, id, 0, 10, &page)); /* the oldest went */
    assert_false(stet_mcp_pages_keep(p, calloc(1, 1001), 1001, other));
    assert_true(stet_mcp_pages_keep(p, memset(calloc(1, 1001), 'x', 1000), 1000, id));
    assert_false(stet_mcp_pages_read(p, other, 0, 10, &page)); /* too many bytes together */
    stet_mcp_pages_free(p);
}

typedef struct counted {
    stet_mcp_job job;
    _Atomic int *done;
    _Atomic bool *go;
} counted;

static void count(stet_mcp_job *job) {
    counted *c = (counted *)job;
    while (c->go && !atomic_load(c->go))
        stet_clock_sleep_ms(1);
    atomic_fetch_add(c->done, 1);
    free(c);
}

static counted *job(bool slow, _Atomic int *done, _Atomic bool *go) {
    counted *c = calloc(1, sizeof *c);
    *c = (counted){.job = {.run = count, .slow = slow}, .done = done, .go = go};
    return c;
}

static void wait_until(const _Atomic int *n, int want) {
    for (int i = 0; i < 10000 && atomic_load(n) < want; i++)
        stet_clock_sleep_ms(1);
    assert_int_equal(atomic_load(n), want);
}

static void quick_jobs_pass_slow_ones(void **state) {
    (void)state;
    _Atomic int quick = 0, slow = 0;
    _Atomic bool go = false;
    stet_mcp_pool *p = stet_mcp_pool_new(4);
    counted *last = NULL;
    for (int i = 0; i < 20; i++)
        stet_mcp_pool_submit(p, &(last = job(true, &slow, &go))->job);
    for (int i = 0; i < 200; i++)
        stet_mcp_pool_submit(p, &job(false, &quick, NULL)->job);
    wait_until(&quick, 200);
    assert_int_equal(atomic_load(&slow), 0);
    assert_true(stet_mcp_pool_withdraw(p, &last->job));
    assert_false(stet_mcp_pool_withdraw(p, &last->job));
    free(last);
    assert_false(stet_mcp_pool_close(p, 50)); /* they do not end: the pool stays */
    atomic_store(&go, true);
    wait_until(&slow, 19);
    assert_true(stet_mcp_pool_close(p, 5000));
}

static stet_mcp_server *open_server(size_t threads, size_t max_result) {
    stet_value allow = words("*", NULL), deny = words("queue *", NULL);
    char *dir = getcwd(NULL, 0);
    stet_mcp_options o = {.dir = dir,
                          .filter = {.allow = allow, .deny = deny},
                          .threads = threads,
                          .max_frame = 65536,
                          .max_result = max_result,
                          .page_size = 5,
                          .log = STET_MCP_LOG_OFF};
    stet_mcp_server *s;
    assert_int_equal(stet_mcp_open(&o, &s, NULL), STET_OK);
    stet_value_release(allow);
    stet_value_release(deny);
    free(dir);
    return s;
}

static void say(stet_mcp_server *s, const char *line) {
    stet_mcp_receive(s, line, strlen(line));
    stet_mcp_receive(s, "\n", 1);
}

#define HELLO                                                                                                          \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\","          \
    "\"capabilities\":{},\"clientInfo\":{}}}"

/* The next message; waits for the threads. */
static stet_value hear(stet_mcp_server *s) {
    const char *bytes;
    size_t len;
    for (int i = 0; !(len = stet_mcp_output(s, &bytes)) && i < 2000; i++) {
        struct pollfd p = {.fd = stet_mcp_wake_fd(s), .events = POLLIN};
        poll(&p, 1, 10);
        stet_mcp_tick(s);
    }
    assert_true(len > 0);
    stet_value v;
    assert_int_equal(stet_json_parse(bytes, len, &v, NULL), STET_OK);
    stet_mcp_wrote(s, len);
    return v;
}

static void inline_server(void **state) {
    (void)state;
    stet_mcp_server *s = open_server(0, 300);
    say(s, HELLO);
    stet_value_release(hear(s));
    say(s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"stet_doctor\"}}");
    stet_value v = hear(s),
               page = stet_value_get(stet_value_get(stet_value_get(v, "result"), "structuredContent"), "page");
    assert_int_equal(stet_value_type(page), STET_TYPE_OBJECT);
    assert_true(stet_value_as_int(stet_value_get(page, "bytes")) > 300);
    stet_value_release(v);
    assert_true(stet_mcp_idle(s));
    assert_int_equal(stet_mcp_timeout(s), -1);
    assert_true(stet_mcp_close(s, 1000));
}

/* M2: nothing about a request after its cancellation. M3: one answer each. */
static void many_on_threads(void **state) {
    (void)state;
    enum { N = 400, SLOW = 12 };
    stet_mcp_server *s = open_server(5, 65536);
    bool answered[N] = {false};
    char line[256];
    say(s, HELLO);
    stet_value_release(hear(s));
    for (int i = 0; i < SLOW; i++) {
        snprintf(line, sizeof line,
                 "{\"jsonrpc\":\"2.0\",\"id\":\"slow%d\",\"method\":\"tools/call\",\"params\":{\"name\":\"stet_runs_"
                 "tail\",\"_meta\":{\"progressToken\":%d}}}",
                 i, i);
        say(s, line);
    }
    for (int i = 0; i < N; i++) {
        static const char *const bodies[] = {"tools/call\",\"params\":{\"name\":\"stet_version\"}",
                                             "tools/call\",\"params\":{\"name\":\"stet_runs_list\"}",
                                             "resources/list\",\"params\":{}",
                                             "resources/read\",\"params\":{\"uri\":\"stet://run/abcdef\"}",
                                             "resources/subscribe\",\"params\":{\"uri\":\"stet://run/abcdef\"}"};
        snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%s}", i, bodies[i % 5]);
        say(s, line);
    }
    for (int i = 0; i < N; i++) {
        stet_value v = hear(s), id = stet_value_get(v, "id");
        assert_int_equal(stet_value_type(id), STET_TYPE_INT);
        assert_false(answered[stet_value_as_int(id)]);
        answered[stet_value_as_int(id)] = true;
        stet_value_release(v);
    }
    for (int i = 0; i < SLOW / 2; i++) {
        snprintf(line, sizeof line,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"slow%d\"}}",
                 i);
        say(s, line);
    }
    say(s, "{\"jsonrpc\":\"2.0\",\"id\":\"slow1\",\"method\":\"ping\"}"); /* the id is free again */
    stet_value v = hear(s);
    assert_int_equal(stet_value_type(stet_value_get(v, "result")), STET_TYPE_OBJECT);
    stet_value_release(v);
    say(s, "{\"jsonrpc\":\"2.0\",\"id\":\"slow9\",\"method\":\"ping\"}"); /* this one is not */
    v = hear(s);
    assert_int_equal(stet_value_as_int(stet_value_get(stet_value_get(v, "error"), "code")), STET_RPC_INVALID_REQUEST);
    stet_value_release(v);
    assert_false(stet_mcp_idle(s));
    stet_mcp_end(s);
    stet_mcp_cancel(s);
    assert_true(stet_mcp_close(s, 20000));
}

static void more_than_can_be_in_flight(void **state) {
    (void)state;
    stet_mcp_server *s = open_server(3, 65536);
    say(s, HELLO);
    stet_value_release(hear(s));
    char line[256];
    for (int i = 0; i <= STET_MCP_MAX_REQUESTS; i++) {
        snprintf(line, sizeof line,
                 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{\"name\":\"stet_runs_tail\"}}",
                 i);
        say(s, line);
    }
    stet_value v = hear(s);
    assert_int_equal(stet_value_as_int(stet_value_get(v, "id")), STET_MCP_MAX_REQUESTS);
    assert_int_equal(stet_value_as_int(stet_value_get(stet_value_get(v, "error"), "code")), STET_RPC_INTERNAL_ERROR);
    stet_value_release(v);
    assert_true(stet_mcp_close(s, 20000));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_in_every_cut),
        cmocka_unit_test(long_line_without_an_end),
        cmocka_unit_test(kinds_of_messages),
        cmocka_unit_test(filters),
        cmocka_unit_test(hints_never_lie),
        cmocka_unit_test(examples_as_arguments),
        cmocka_unit_test(prompts_speak_of_tools_that_are_there),
        cmocka_unit_test(pages_put_together_are_the_text),
        cmocka_unit_test(quick_jobs_pass_slow_ones),
        cmocka_unit_test(inline_server),
        cmocka_unit_test(many_on_threads),
        cmocka_unit_test(more_than_can_be_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
