/* javascript.c - the engine's own share of a run of a `javascript` module: all but the scheduler and the database.
 *
 * The goal of 20,000 durable runs a second leaves 50 us for all of it. Calling the same functions straight from C, with
 * values made beforehand, is not something a program could do; so the peer is that time.
 */

#include <time.h>
#include <unistd.h>

#include "../test/unit/javascript_run.h"

static double cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void measure(void *state, const char *name, const char *implementation, const char *inputs, double goal) {
    stet_value module = js_module(implementation), given = fake_parse(inputs), bindings = fake_references(given),
               node = stet_value_object();
    stet_error err = STET_ERROR_INIT;
    stet_value_put(&node, "module", module);
    double best = 1e9;
    for (int round = 0; round < 7; round++) {
        int runs = 20000;
        double start = cpu();
        for (int i = 0; i < runs; i++) {
            fake_run r = {.inputs = given, .quiet = true};
            r.base = (stet_run){
                .ops = &fake_run_ops, .node = node, .descriptor = module, .bindings = bindings, .name = name};
            if (stet_module_javascript.start(state, &r.base, &err) != STET_OK || r.failed) {
                printf("javascript %s: %s\n", name, r.error.message);
                exit(1);
            }
            stet_value_release(r.result);
        }
        double us = (cpu() - start) / runs * 1e6;
        if (us < best)
            best = us;
    }
    printf("javascript %s: ours %.2f us a run, goal %.0f us, ratio %.2f (goal below 1)\n", name, best, goal,
           best / goal);
    stet_value_release(node);
    stet_value_release(given);
    stet_value_release(bindings);
}

int main(void) {
    void *state = js_open("{}");
    double start = cpu();
    stet_value first = js_module("() => 1");
    fake_run r;
    js_run_do(state, &r, first, stet_value_object(), stet_value_null(), stet_value_null());
    printf("javascript start of the engine: ours %.1f ms, goal 100 ms, ratio %.2f (goal below 1)\n",
           (cpu() - start) * 1e3, (cpu() - start) * 10);
    fake_run_release(&r);
    measure(state, "one scalar", "({x}) => x + 1", "{\"x\":41}", 10);
    measure(state, "two scalars", "({a, b}) => a + b", "{\"a\":1,\"b\":2}", 10);
    measure(state, "by position", "(a, b) => a + b", "[1,2]", 10);
    measure(state, "text", "({name}) => `hello ${name}`", "{\"name\":\"world\"}", 10);
    measure(state, "a member", "({user}) => user.address.city", "{\"user\":{\"address\":{\"city\":\"Ulm\"},\"age\":3}}",
            10);
    measure(state, "an object", "({a, b}) => ({sum: a + b, text: `${a}`})", "{\"a\":1,\"b\":2}", 10);
    measure(
        state, "ten rows", "({rows}) => rows.map(r => r.price * 2)",
        "{\"rows\":[{\"price\":1},{\"price\":2},{\"price\":3},{\"price\":4},{\"price\":5},{\"price\":6},{\"price\":7},{"
        "\"price\":8},{\"price\":9},{\"price\":10}]}",
        50);
    stet_buf rows = STET_BUF(0);
    stet_buf_str(&rows, "{\"rows\":[0");
    for (int i = 1; i < 1000; i++)
        stet_buf_printf(&rows, ",{\"price\":%d}", i);
    stet_buf_str(&rows, "]}");
    measure(state, "a thousand rows, one looked at", "({rows}) => rows[500].price", stet_buf_cstr(&rows), 10);
    while (rows.len < 1 << 20) {
        rows.len -= 2;
        stet_buf_printf(&rows, ",{\"price\":%zu,\"text\":\"some more of a row\"}]}", rows.len);
    }
    measure(state, "a megabyte, one looked at", "({rows}) => rows[500].price", stet_buf_cstr(&rows), 10);
    stet_buf_release(&rows);
    stet_module_javascript.close(state);
    return 0;
}
