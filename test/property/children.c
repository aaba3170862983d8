/* The central property for children: whatever happens to a list, to the child patterns and to processes, the
 * incremental result equals that of a run from scratch, and no child runs whose element is what it was.
 *
 * A piece with a map (keyed, with a nested map in some programs), a filter and a reduce over one list, and a map over
 * the first map. Steps: append, insert, remove, move, edit, a repeated key, a new child pattern, another factor
 * outside, restarts, and kills at a random system call of a run in another process. A naive evaluator is the judge. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "graph/child.h"
#include "memory/observe.h"
#include "os/sys.h"
#include "scheduler/sched.h"

#define MOST 12

typedef struct row {
    int id; /* its key; may stand twice */
    long n;
    long ns[3];
    int count;
    bool changed; /* since the last settling: it may run */
} row;

typedef struct world {
    row rows[MOST];
    int len;
    long factor;
    int program; /* 0..3 */
    bool all;    /* every child may run: another program, another factor, a kill */
    stet_project *project;
    stet_space *space;
    stet_sched *sched;
    uint64_t random;
    long step;
    char ran[8192];
    size_t ran_len;
} world;

static int pick(world *w, int n) {
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (int)(w->random % (uint64_t)n);
}

#define ok(call)                                                                                                       \
    do {                                                                                                               \
        stet_error err = STET_ERROR_INIT;                                                                              \
        stet_status status_ = (call);                                                                                  \
        if (status_ != STET_OK)                                                                                        \
            fail_msg("step %ld: %s: %s: %s", w->step, #call, stet_status_name(status_), err.message);                  \
    } while (0)

/* ---- The judge ----------------------------------------------------------------------------------------------------
 */

static long mapped(const world *w, const row *r) {
    long sum = 0;
    switch (w->program) {
    case 0:
        return r->n * w->factor;
    case 1:
        return r->n + w->factor + 1;
    case 2: /* the nested map: a sum of what it makes */
        for (int i = 0; i < r->count; i++)
            sum += r->ns[i] * w->factor;
        return sum;
    default:
        return r->n % 2 ? r->n : w->factor; /* a branch that is not taken */
    }
}

static char *expected(const world *w) {
    stet_buf b = STET_BUF(0);
    long all = 7;
    stet_buf_str(&b, "{\"again\":[");
    for (int i = 0; i < w->len; i++)
        stet_buf_printf(&b, "%s%ld", i ? "," : "", mapped(w, &w->rows[i]) + 1);
    stet_buf_str(&b, "],\"big\":[");
    for (int i = 0, first = 1; i < w->len; i++) {
        if (w->rows[i].n <= 3)
            continue;
        stet_buf_printf(&b, "%s%ld", first ? "" : ",", w->rows[i].n);
        first = 0;
    }
    for (int i = 0; i < w->len; i++)
        all = all + w->rows[i].n * (i + 1);
    stet_buf_printf(&b, "],\"fold\":%ld,\"rows\":[", all);
    for (int i = 0; i < w->len; i++)
        stet_buf_printf(&b, "%s%ld", i ? "," : "", mapped(w, &w->rows[i]));
    stet_buf_str(&b, "]}");
    return stet_buf_take(&b, NULL);
}

/* ---- The patterns --------------------------------------------------------------------------------------------------
 */

#define N(id, ref, inputs) "{\"id\":\"" id "\",\"module\":{\"type\":\"ref\",\"ref\":\"" ref "\"},\"inputs\":" inputs "}"
#define P(nodes, result)   "{\"pattern\":1,\"name\":\"c\",\"nodes\":[" nodes "],\"result\":" result "}"
#define E                  "{\"$\":\"argument/element/n\"}"
#define F                  "{\"$\":\"argument/factor\"}"

static const char *const programs[] = {
    P(N("x", "multiply", "[" E "," F "]"), "{\"$\":\"x\"}"),
    P(N("y", "add", "[" E "," F "]") "," N("x", "add", "[{\"$\":\"y\"},1]"), "{\"$\":\"x\"}"),
    P("{\"id\":\"in\",\"module\":{\"type\":\"ref\",\"ref\":\"map\",\"pattern\":" P(
          N("z", "multiply", "[{\"$\":\"argument/element\"}," F "]"),
          "{\"$\":\"z\"}") "},\"inputs\":{\"list\":{\"$\":\"argument/element/ns\"},\"factor\":" F
                           "}}," N("x", "sum", "{\"values\":{\"$\":\"in\"}}"),
      "{\"$\":\"x\"}"),
    P(N("odd", "modulo", "[" E ",2]") "," N("x", "ifElse",
                                            "{\"condition\":{\"$\":\"odd\"},\"then\":" E ",\"else\":" F "}"),
      "{\"$\":\"x\"}"),
};

static char *program(const world *w) {
    return stet_asprintf(
        "{\"pattern\":1,\"name\":\"p\",\"argument\":{\"default\":{\"rows\":[],\"factor\":1}},\"nodes\":["
        "{\"id\":\"rows\",\"module\":{\"type\":\"ref\",\"ref\":\"map\",\"key\":\"id\",\"pattern\":%s},"
        "\"inputs\":{\"list\":{\"$\":\"argument/rows\"},\"factor\":{\"$\":\"argument/factor\"}}},"
        "{\"id\":\"again\",\"module\":{\"type\":\"ref\",\"ref\":\"map\",\"pattern\":" P(
            N("x", "add", "[{\"$\":\"argument/element\"},1]"),
            "{\"$\":\"x\"}") "},\"inputs\":{\"list\":{\"$\":\"rows\"}}},"
                             "{\"id\":\"kept\",\"module\":{\"type\":\"ref\",\"ref\":\"filter\",\"key\":\"id\","
                             "\"pattern\":" P(
                                 N("x", "greater", "[" E ",3]"),
                                 "{\"$\":\"x\"}") "},\"inputs\":{\"list\":{\"$\":\"argument/rows\"}}},"
                                                  "{\"id\":\"big\",\"module\":{\"type\":\"ref\",\"ref\":\"map\","
                                                  "\"pattern\":" P(
                                                      N("x", "value", "[" E "]"),
                                                      "{\"$\":\"x\"}") "},\"inputs\":{\"list\":{\"$\":\"kept\"}}},"
                                                                       "{\"id\":\"fold\",\"module\":{\"type\":\"ref\","
                                                                       "\"ref\":\"reduce\",\"key\":\"id\","
                                                                       "\"pattern\":" P(
                                                                           N("i", "add", "[{\"$\":\"argument/index\"},1]") "," N(
                                                                               "m", "multiply",
                                                                               "[" E
                                                                               ",{\"$\":\"i\"}]") "," N("x", "add",
                                                                                                        "[{\"$\":"
                                                                                                        "\"argument/"
                                                                                                        "accumulator\"}"
                                                                                                        ",{\"$\":\"m\"}"
                                                                                                        "]"),
                                                                           "{\"$\":\"x\"}") "},\"inputs\":{\"list\":{"
                                                                                            "\"$\":\"argument/"
                                                                                            "rows\"},\"initial\":7}}],"
                                                                                            "\"result\":{\"rows\":{\"$"
                                                                                            "\":\"rows\"},\"again\":{"
                                                                                            "\"$\":\"again\"},\"big\":{"
                                                                                            "\"$\":\"big\"},\"fold\":{"
                                                                                            "\"$\":\"fold\"}}}",
        programs[w->program]);
}

/* ---- The system -----------------------------------------------------------------------------------------------------
 */

static void on_event(void *ctx, const stet_sched_event *e) {
    world *w = ctx;
    if (e->kind == STET_SCHED_STARTED && w->ran_len + strlen(e->node) + 2 < sizeof w->ran)
        w->ran_len += (size_t)sprintf(w->ran + w->ran_len, " %s", e->node);
}

static void open_all(world *w) {
    stet_sched_opts opts = {.persist = true, .ctx = w, .event = on_event, .group_runs = 1 + (size_t)pick(w, 20)};
    ok(stet_project_open("p", &w->project, &err));
    ok(stet_space_open(w->project, "main", 0, &w->space, &err));
    ok(stet_sched_open(w->project, w->space, "", &opts, &w->sched, &err));
}

static void close_all(world *w) {
    stet_sched_close(w->sched);
    stet_space_close(w->space);
    stet_project_close(w->project);
}

static void install(world *w) {
    static const stet_pattern_checks checks = {.module = stet_module_check};
    char *text = program(w);
    stet_pattern *p;
    stet_sched_installed in;
    ok(stet_pattern_parse("random", text, strlen(text), &checks, &p, NULL, &err));
    ok(stet_sched_install(w->sched, p, "p", stet_null(), stet_null(), &in, &err));
    stet_pattern_free(p);
    stet_free(text);
}

static void write_argument(world *w) {
    stet_value rows = stet_array();
    for (int i = 0; i < w->len; i++) {
        stet_value r = stet_object(), ns = stet_array();
        for (int k = 0; k < w->rows[i].count; k++)
            stet_push(&ns, stet_int(w->rows[i].ns[k]));
        stet_put(&r, "id", stet_int(w->rows[i].id));
        stet_put(&r, "n", stet_int(w->rows[i].n));
        stet_put(&r, "ns", ns);
        stet_push(&rows, r);
    }
    stet_tx *tx;
    ok(stet_tx_begin(w->space, "", &tx, &err));
    ok(stet_tx_set(tx, "piece:p:argument/rows", NULL, rows, &err));
    ok(stet_tx_set(tx, "piece:p:argument/factor", NULL, stet_int(w->factor), &err));
    ok(stet_tx_commit(tx, NULL, &err));
}

static void settle(world *w) {
    stet_sched_report report;
    w->ran_len = 0;
    w->ran[0] = 0;
    ok(stet_sched_demand_piece(w->sched, "p", &err));
    ok(stet_sched_settle(w->sched, &report, &err));
    if (report.failed)
        fail_msg("step %ld: %zu failed", w->step, report.failed);
    stet_release(report.problems);
}

static long kill_after;
static stet_sys_action kill_hook(stet_sys_fault *fault) {
    (void)fault;
    return --kill_after == 0 ? STET_SYS_KILL : STET_SYS_GO;
}

/* Settles in a process that is killed at a random system call. */
static void settle_and_die(world *w, bool with_program) {
    close_all(w);
    kill_after = 1 + pick(w, 60);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        open_all(w);
        stet_sys_hook = kill_hook;
        if (with_program)
            install(w);
        settle(w);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    open_all(w);
}

/* ---- Comparing
 * ------------------------------------------------------------------------------------------------------- */

static void compare(world *w) {
    stet_value v;
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    ok(stet_sched_get(w->sched, "piece:p", NULL, stet_path_ref(&path), &v, &err));
    stet_path_release(&path);
    char *got = stet_json_print(v, STET_JSON_CANONICAL, NULL), *want = expected(w);
    if (strcmp(got, want) != 0)
        fail_msg("step %ld: from scratch %s, incremental %s\nran%s", w->step, want, got, w->ran);
    stet_free(got);
    stet_free(want);
    stet_release(v);
    /* No row of the first map ran whose element is what it was. */
    for (int i = 0; i < w->len && !w->all; i++) {
        char name[32];
        int before = 0;
        for (int k = 0; k < i; k++)
            before += w->rows[k].id == w->rows[i].id;
        bool twice = false;
        for (int k = 0; k < w->len; k++)
            twice |= k != i && w->rows[k].id == w->rows[i].id;
        snprintf(name, sizeof name, " rows[%d].", w->rows[i].id);
        if (!twice && !before && !w->rows[i].changed && strstr(w->ran, name))
            fail_msg("step %ld: row %d ran, and its element is what it was; ran%s", w->step, w->rows[i].id, w->ran);
    }
    w->all = false;
    for (int i = 0; i < w->len; i++)
        w->rows[i].changed = false;
}

/* Documents of children that are not there, and none of those that are. */
static void nothing_left_over(world *w) {
    stet_arena arena = STET_ARENA_INIT;
    stet_doc_filter filter = {.prefix = "piece:p:child:rows[", .limit = 1000};
    stet_doc_info *at;
    size_t count, found, repaired, top = 0;
    bool more;
    ok(stet_space_list(w->space, 0, &filter, &arena, &at, &count, &more, &err));
    for (size_t i = 0; i < count; i++)
        top += strstr(at[i].name.id, "].") == NULL;
    if (top != (size_t)w->len)
        fail_msg("step %ld: %d rows, and %zu documents of children", w->step, w->len, top);
    filter.prefix = "piece:p:node:rows[";
    ok(stet_space_list(w->space, 0, &filter, &arena, &at, &count, &more, &err));
    for (size_t i = 0; i < count; i++) {
        size_t len = stet_child_instance(at[i].name.id);
        char *child = stet_asprintf("piece:p:child:%.*s", (int)(len - 13), at[i].name.id + 13);
        stet_doc_state state;
        ok(stet_space_load(w->space, 0, &(stet_docname){child, NULL}, -1, &state, &err));
        if (!state.exists)
            fail_msg("step %ld: %s is left over", w->step, at[i].name.id);
        stet_release(state.value);
        stet_free(child);
    }
    stet_arena_release(&arena);
    stet_buf problems = STET_BUF(0);
    ok(stet_observe_check(w->space, false, &problems, &found, &repaired, &err));
    if (found)
        fail_msg("step %ld: check: %s", w->step, stet_buf_cstr(&problems));
    stet_buf_release(&problems);
}

/* ---- Steps
 * ------------------------------------------------------------------------------------------------------------ */

static row random_row(world *w) {
    row r = {.id = pick(w, 40), .n = pick(w, 9), .count = pick(w, 4), .changed = true};
    for (int i = 0; i < r.count; i++)
        r.ns[i] = pick(w, 4);
    return r;
}

/* Rows with one key are told apart by their order: what happens to one of them may give another its place. */
static void touch(world *w, int id) {
    int count = 0;
    for (int i = 0; i < w->len; i++)
        count += w->rows[i].id == id;
    for (int i = 0; i < w->len && count > 1; i++)
        w->rows[i].changed |= w->rows[i].id == id;
}

static void mutate(world *w) {
    int what = pick(w, 10), at = w->len ? pick(w, w->len) : 0;
    if (w->len)
        touch(w, w->rows[at].id);
    if ((what < 3 || w->len == 0) && w->len < MOST) { /* append, or put in */
        at = what == 0 || w->len == 0 ? w->len : at;
        memmove(&w->rows[at + 1], &w->rows[at], (size_t)(w->len - at) * sizeof *w->rows);
        w->rows[at] = random_row(w);
        w->len++;
        touch(w, w->rows[at].id);
    } else if (what < 5) {
        memmove(&w->rows[at], &w->rows[at + 1], (size_t)(w->len - at - 1) * sizeof *w->rows);
        w->len--;
    } else if (what == 5) { /* move */
        int to = pick(w, w->len);
        row r = w->rows[at];
        memmove(&w->rows[at], &w->rows[at + 1], (size_t)(w->len - at - 1) * sizeof *w->rows);
        memmove(&w->rows[to + 1], &w->rows[to], (size_t)(w->len - 1 - to) * sizeof *w->rows);
        w->rows[to] = r;
    } else if (what < 8) { /* edit */
        w->rows[at].n = pick(w, 9);
        w->rows[at].changed = true;
    } else if (what == 8) {
        row r = random_row(w);
        r.id = w->rows[at].id;
        w->rows[at] = r;
    } else {
        w->factor = 1 + pick(w, 4);
        w->all = true;
    }
}

static void children_are_what_they_would_be_from_scratch(void **state) {
    (void)state;
    world *w = stet_alloc_zero(sizeof *w);
    bool created;
    long steps = getenv("STET_TEST_LONG") ? 20000 : getenv("STET_TEST_SHORT") ? 60 : 400;
    const char *seed = getenv("STET_TEST_SEED");
    w->random = seed ? strtoull(seed, NULL, 10) : 88172645463325252ull;
    w->factor = 1;
    ok(stet_project_init("p", &created, &err));
    open_all(w);
    install(w);
    for (w->step = 0; w->step < steps; w->step++) {
        for (int k = 0; k < 1 + pick(w, 2); k++)
            mutate(w);
        write_argument(w);
        int what = pick(w, 20);
        bool other = what == 0;
        if (other) {
            w->program = pick(w, 4);
            w->all = true;
        }
        if (what == 1 || what == 2 || (other && pick(w, 2))) {
            settle_and_die(w, other);
            w->all = true; /* what it did before it died is not told here */
        } else if (what < 6) {
            close_all(w);
            open_all(w);
        }
        if (other)
            install(w);
        settle(w);
        compare(w);
        if (w->step % 10 == 0)
            nothing_left_over(w);
    }
    nothing_left_over(w);
    close_all(w);
    free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(children_are_what_they_would_be_from_scratch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
