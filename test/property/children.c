/* children.c - the central property for children.
 *
 * Whatever happens to a list, to the child patterns and to processes, the incremental result equals that of a run from
 * scratch. No child runs whose element is what it was, and a start with nothing changed runs nothing.
 *
 * A piece with a map (keyed; with a nested map, or an action that returns a pattern, in some programs), a filter and a
 * reduce over one list, a map over the first map, and an action that returns a pattern. Steps: append, insert, remove,
 * move, edit, a repeated key, a new child pattern, another factor outside, another returned pattern, runs of which only
 * a part is wanted, elements of children that somebody else overwrites, restarts, and kills at a random system call of
 * a run in another process. A naive evaluator is the judge.
 *
 * STET_TEST_SEED is the seed of the first world; each world is one project and STEPS steps.
 */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../faults.h"
#include "base/buf.h"
#include "graph/child.h"
#include "memory/observe.h"
#include "os/file.h"
#include "scheduler/sched.h"

#define MOST  12
#define STEPS 2000 /* of one project: its history grows, and so does what a step costs */

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
    int program; /* 0..4 */
    int made;    /* 0..3: the pattern that is returned */
    int bound;   /* rows at most, now */
    bool all;    /* every child may run: another program, another factor, a kill */
    const char *root;
    stet_project *project;
    stet_space *space;
    stet_sched *sched;
    uint64_t seed, random;
    long step, kills, restarts, parts, runs, twice, meddled;
    char ran[32768];
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
            fail_msg("seed %llu, step %ld: %s: %s: %s", (unsigned long long)w->seed, w->step, #call,                   \
                     stet_status_name(status_), err.message);                                                          \
    } while (0)

static const long made_results[] = {0, 6, 12, 15}; /* of the patterns that are returned; 0: none is */

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
    case 3:
        return r->n % 2 ? r->n : w->factor; /* a branch that is not taken */
    default:
        return w->made ? made_results[w->made] : w->factor; /* each row makes the returned pattern its child */
    }
}

static const char *const parts[] = {"again", "big", "fold", "made", "rows"};
#define PARTS 5

static void expect_part(const world *w, int part, stet_buf *b) {
    long all = 7;
    switch (part) {
    case 0:
    case 4:
        stet_buf_str(b, "[");
        for (int i = 0; i < w->len; i++)
            stet_buf_printf(b, "%s%ld", i ? "," : "", mapped(w, &w->rows[i]) + (part == 0));
        stet_buf_str(b, "]");
        break;
    case 1:
        stet_buf_str(b, "[");
        for (int i = 0, first = 1; i < w->len; i++) {
            if (w->rows[i].n <= 3)
                continue;
            stet_buf_printf(b, "%s%ld", first ? "" : ",", w->rows[i].n);
            first = 0;
        }
        stet_buf_str(b, "]");
        break;
    case 2:
        for (int i = 0; i < w->len; i++)
            all = all + w->rows[i].n * (i + 1);
        stet_buf_printf(b, "%ld", all);
        break;
    default:
        if (w->made)
            stet_buf_printf(b, "%ld", made_results[w->made]);
        else
            stet_buf_str(b, "null");
    }
}

/* `part`: of the result; -1: all of it. */
static char *expected(const world *w, int part) {
    stet_buf b = STET_BUF(0);
    if (part >= 0) {
        expect_part(w, part, &b);
        return stet_buf_take(&b, NULL);
    }
    for (int i = 0; i < PARTS; i++) {
        stet_buf_printf(&b, "%s\"%s\":", i ? "," : "{", parts[i]);
        expect_part(w, i, &b);
    }
    stet_buf_str(&b, "}");
    return stet_buf_take(&b, NULL);
}

#define N(id, ref, inputs) "{\"id\":\"" id "\",\"module\":{\"type\":\"ref\",\"ref\":\"" ref "\"},\"inputs\":" inputs "}"
#define P(nodes, result)   "{\"pattern\":1,\"name\":\"c\",\"nodes\":[" nodes "],\"result\":" result "}"
#define E                  "{\"$\":\"argument/element/n\"}"
#define F                  "{\"$\":\"argument/factor\"}"

/* A node of type ref with children: its name, and what else it says. */
#define EACH(id, ref, key, pattern, inputs)                                                                            \
    "{\"id\":\"" id "\",\"module\":{\"type\":\"ref\",\"ref\":\"" ref "\"" key ",\"pattern\":" pattern                  \
    "},\"inputs\":" inputs "}"
#define BY_ID    ",\"key\":\"id\""
#define RESULT   "{\"$\":\"x\"}"
#define FACTOR   "\"factor\":" F
#define RETURNED "{\"$\":\"argument/made\"}"
#define MAKE                                                                                                           \
    "{\"id\":\"make\",\"returns\":\"pattern\",\"module\":{\"type\":\"ref\",\"ref\":\"value\"},\"inputs\":{"            \
    "\"value\":" RETURNED "}}"
#define ELEMENT "{\"$\":\"argument/element\"}"

static const char *const programs[] = {
    P(N("x", "multiply", "[" E "," F "]"), RESULT),
    P(N("y", "add", "[" E "," F "]") "," N("x", "add", "[{\"$\":\"y\"},1]"), RESULT),
    P(EACH("in", "map", "", P(N("z", "multiply", "[" ELEMENT "," F "]"), "{\"$\":\"z\"}"),
           "{\"list\":{\"$\":\"argument/element/ns\"}," FACTOR "}") "," N("x", "sum", "{\"values\":{\"$\":\"in\"}}"),
      RESULT),
    P(N("odd", "modulo", "[" E ",2]") "," N("x", "ifElse",
                                            "{\"condition\":{\"$\":\"odd\"},\"then\":" E ",\"else\":" F "}"),
      RESULT),
    P(MAKE "," N("x", "ifElse", "{\"condition\":{\"$\":\"make\"},\"then\":{\"$\":\"make\"},\"else\":" F "}"), RESULT),
};
#define PROGRAMS 5

#define MADE(argument, nodes)                                                                                          \
    "{\"pattern\":1,\"name\":\"m\",\"argument\":{\"default\":" argument "},\"nodes\":[" nodes "],\"result\":" RESULT "}"
static const char *const made[] = {
    "null",
    MADE("{\"n\":5}", N("x", "add", "[{\"$\":\"argument/n\"},1]")),
    MADE("{\"l\":[1,2,3]}", EACH("in", "map", "", P(N("z", "multiply", "[" ELEMENT ",2]"), "{\"$\":\"z\"}"),
                                 "{\"list\":{\"$\":\"argument/l\"}}") "," N("x", "sum", "{\"values\":{\"$\":\"in\"}}")),
    MADE("{\"n\":5}", N("y", "add", "[{\"$\":\"argument/n\"},5]") "," N("x", "add", "[{\"$\":\"y\"},5]")),
};

static char *program(const world *w) {
    static const char before[] = "{\"pattern\":1,\"name\":\"p\",\"argument\":{\"default\":{\"rows\":[],\"factor\":1,"
                                 "\"made\":null}},\"nodes\":[";
    static const char others[] = "," MAKE "," EACH(
        "again", "map", "", P(N("x", "add", "[" ELEMENT ",1]"), RESULT),
        "{\"list\":{\"$\":\"rows\"}}") "," EACH("kept", "filter", BY_ID, P(N("x", "greater", "[" E ",3]"), RESULT),
                                                "{\"list\":{\"$\":\"argument/"
                                                "rows\"}}") "," EACH("big", "map", "",
                                                                     P(N("x", "value", "[" E "]"), RESULT),
                                                                     "{\"list\":{\"$\":\"kept\"}}") ",";
    static const char fold[] =
        EACH("fold", "reduce", BY_ID,
             P(N("i", "add", "[{\"$\":\"argument/index\"},1]") "," N("m", "multiply", "[" E ",{\"$\":\"i\"}]") "," N(
                   "x", "add", "[{\"$\":\"argument/accumulator\"},{\"$\":\"m\"}]"),
               RESULT),
             "{\"list\":{\"$\":\"argument/rows\"},\"initial\":7}");
    static const char result[] = "],\"result\":{\"rows\":{\"$\":\"rows\"},\"again\":{\"$\":\"again\"},\"big\":{\"$\":"
                                 "\"big\"},\"fold\":{\"$\":\"fold\"},\"made\":{\"$\":\"make\"}}}";
    return stet_asprintf("%s" EACH("rows", "map", BY_ID, "%s",
                                   "{\"list\":{\"$\":\"argument/rows\"}," FACTOR ",\"made\":" RETURNED "}") "%s%s%s",
                         before, programs[w->program], others, fold, result);
}

static void on_event(void *ctx, const stet_sched_event *e) {
    world *w = ctx;
    if (e->kind != STET_SCHED_STARTED)
        return;
    assert_true(w->ran_len + strlen(e->node) + 3 < sizeof w->ran);
    char *at = w->ran + w->ran_len;
    w->runs++;
    w->ran_len += (size_t)sprintf(at, " %s ", e->node);
    w->twice += strstr(w->ran, at) != at;
    w->ran[--w->ran_len] = 0;
}

static void open_all(world *w) {
    stet_sched_opts opts = {
        .persist = true, .ctx = w, .event = on_event, .group_runs = pick(w, 4) ? 0 : 1 + (size_t)pick(w, 20)};
    ok(stet_project_open(w->root, &w->project, &err));
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
    ok(stet_sched_install(w->sched, p, "p", stet_value_null(), stet_value_null(), &in, &err));
    stet_pattern_free(p);
    stet_free(text);
}

static void write_argument(world *w) {
    stet_value rows = stet_value_array();
    for (int i = 0; i < w->len; i++) {
        stet_value r = stet_value_object(), ns = stet_value_array();
        for (int k = 0; k < w->rows[i].count; k++)
            stet_value_push(&ns, stet_value_int(w->rows[i].ns[k]));
        stet_value_put(&r, "id", stet_value_int(w->rows[i].id));
        stet_value_put(&r, "n", stet_value_int(w->rows[i].n));
        stet_value_put(&r, "ns", ns);
        stet_value_push(&rows, r);
    }
    stet_value returned;
    ok(stet_json_parse(made[w->made], strlen(made[w->made]), &returned, &err));
    stet_tx *tx;
    ok(stet_tx_begin(w->space, "", &tx, &err));
    ok(stet_tx_set(tx, "piece:p:argument/rows", NULL, rows, &err));
    ok(stet_tx_set(tx, "piece:p:argument/factor", NULL, stet_value_int(w->factor), &err));
    ok(stet_tx_set(tx, "piece:p:argument/made", NULL, returned, &err));
    ok(stet_tx_commit(tx, NULL, &err));
}

static void part_path(stet_path *path, int part) {
    *path = (stet_path)STET_PATH_INIT;
    stet_path_push(path, "value");
    if (part >= 0)
        stet_path_push(path, parts[part]);
}

/* `part`: the only one that is wanted; -1: all. */
static void settle(world *w, int part) {
    stet_sched_report report;
    stet_path path;
    w->ran_len = 0;
    w->ran[0] = 0;
    part_path(&path, part);
    if (part < 0)
        ok(stet_sched_demand_piece(w->sched, "p", &err));
    else
        ok(stet_sched_demand_cell(w->sched, "piece:p", NULL, stet_path_ref(&path), &err));
    ok(stet_sched_settle(w->sched, &report, &err));
    if (report.failed)
        fail_msg("seed %llu, step %ld: %zu failed", (unsigned long long)w->seed, w->step, report.failed);
    stet_value_release(report.problems);
    stet_path_release(&path);
}

/* Settles in a process that is killed at a random system call. */
static void settle_and_die(world *w, bool with_program) {
    close_all(w);
    long calls = 1 + pick(w, pick(w, 3) ? 600 : 60);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        open_all(w);
        faults_arm_any(calls, STET_SYS_KILL, 0);
        if (with_program)
            install(w);
        settle(w, -1);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
        fail_msg("seed %llu, step %ld: the other process ended with status %d", (unsigned long long)w->seed, w->step,
                 status);
    w->kills += WIFSIGNALED(status);
    open_all(w);
}

static void compare(world *w, int part) {
    stet_value v;
    stet_path path;
    part_path(&path, part);
    ok(stet_sched_get(w->sched, "piece:p", NULL, stet_path_ref(&path), &v, &err));
    stet_path_release(&path);
    char *got = stet_json_print(v, STET_JSON_CANONICAL, NULL), *want = expected(w, part);
    if (strcmp(got, want) != 0)
        fail_msg("seed %llu, step %ld: from scratch %s, incremental %s\nran%s", (unsigned long long)w->seed, w->step,
                 want, got, w->ran);
    stet_free(got);
    stet_free(want);
    stet_value_release(v);
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
            fail_msg("seed %llu, step %ld: row %d ran, and its element is what it was; ran%s",
                     (unsigned long long)w->seed, w->step, w->rows[i].id, w->ran);
    }
    if (part >= 0)
        return; /* others are still to run */
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
        fail_msg("seed %llu, step %ld: %d rows, and %zu documents of children", (unsigned long long)w->seed, w->step,
                 w->len, top);
    filter.prefix = "piece:p:node:rows[";
    ok(stet_space_list(w->space, 0, &filter, &arena, &at, &count, &more, &err));
    for (size_t i = 0; i < count; i++) {
        size_t len = stet_child_instance(at[i].name.id);
        char *child = stet_asprintf("piece:p:child:%.*s", (int)(len - 13), at[i].name.id + 13);
        stet_doc_state state;
        ok(stet_space_load(w->space, 0, &(stet_docname){child, NULL}, -1, &state, &err));
        if (!state.exists)
            fail_msg("seed %llu, step %ld: %s is left over", (unsigned long long)w->seed, w->step, at[i].name.id);
        stet_value_release(state.value);
        stet_free(child);
    }
    stet_arena_release(&arena);
    stet_buf problems = STET_BUF(0);
    ok(stet_observe_check(w->space, false, &problems, &found, &repaired, &err));
    if (found)
        fail_msg("seed %llu, step %ld: check: %s", (unsigned long long)w->seed, w->step, stet_buf_cstr(&problems));
    stet_buf_release(&problems);
}

static void start_again(world *w) {
    close_all(w);
    open_all(w);
    w->restarts++;
}

static void start_runs_nothing(world *w) {
    start_again(w);
    settle(w, -1);
    if (w->ran_len)
        fail_msg("seed %llu, step %ld: nothing changed since all was settled; ran%s", (unsigned long long)w->seed,
                 w->step, w->ran);
}

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
    int what = pick(w, 11), at = w->len ? pick(w, w->len) : 0;
    if (pick(w, 40) == 0)
        w->bound = pick(w, 3) ? 1 + pick(w, 6) : MOST;
    if (w->len > w->bound)
        what = 4;
    if (w->len)
        touch(w, w->rows[at].id);
    if ((what < 3 || w->len == 0) && w->len < w->bound) { /* append, or put in */
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
    } else if (what == 9) {
        w->factor = 1 + pick(w, 4);
        w->all = true;
    } else {
        w->made = pick(w, 4);
        w->all |= w->program == 4;
    }
}

/* Somebody else writes where a coordinator has given a child its element. */
static void meddle(world *w) {
    static const char *const coordinators[] = {"rows", "kept", "fold"};
    if (w->len == 0)
        return;
    char *id = stet_asprintf("piece:p:child:%s[%d]", coordinators[pick(w, 3)], w->rows[pick(w, w->len)].id);
    stet_doc_state there;
    ok(stet_space_load(w->space, 0, &(stet_docname){id, NULL}, -1, &there, &err));
    if (there.exists) {
        char *cell = stet_asprintf("%s/argument/element/n", id);
        stet_tx *tx;
        ok(stet_tx_begin(w->space, "", &tx, &err));
        ok(stet_tx_set(tx, cell, NULL, stet_value_int(100 + pick(w, 9)), &err));
        ok(stet_tx_commit(tx, NULL, &err));
        stet_free(cell);
        w->all = true;
        w->meddled++;
    }
    stet_value_release(there.value);
    stet_free(id);
}

static void one_step(world *w) {
    int changes = 1 + pick(w, 2), what = pick(w, 200), part = pick(w, 8) ? -1 : pick(w, PARTS);
    bool other = what < 4;
    for (int k = 0; k < changes; k++)
        mutate(w);
    write_argument(w);
    if (pick(w, 40) == 0)
        meddle(w);
    if (other) {
        w->program = pick(w, PROGRAMS);
        w->all = true;
    }
    if (what == 4 || what == 5 || (other && pick(w, 4) == 0)) {
        settle_and_die(w, other);
        w->all = true; /* what it did before it died is not told here */
    } else if (what < 20) {
        start_again(w);
    }
    if (other)
        install(w);
    settle(w, part);
    compare(w, part);
    w->parts += part >= 0;
    if (part < 0 && what > 195)
        start_runs_nothing(w);
    if (part < 0 && w->step % 50 == 0)
        nothing_left_over(w);
}

/* One project, with a history of its own. Durability is not what is tried here: memory spares the syncs. */
static void one_world(uint64_t seed, long steps, world *all) {
    world *w = stet_alloc_zero(sizeof *w);
    char dir[] = "/dev/shm/stet-children-XXXXXX", here[] = "children-XXXXXX", *root;
    bool created;
    assert_non_null(root = mkdtemp(access("/dev/shm", W_OK) == 0 ? dir : here));
    w->root = root;
    w->seed = seed;
    w->random = seed * 0x9E3779B97F4A7C15ull | 1;
    w->factor = 1;
    w->bound = 6;
    ok(stet_project_init(root, &created, &err));
    open_all(w);
    install(w);
    for (w->step = 0; w->step < steps; w->step++)
        one_step(w);
    settle(w, -1);
    compare(w, -1);
    nothing_left_over(w);
    start_runs_nothing(w);
    close_all(w);
    ok(stet_file_remove_tree(root, &err));
    all->kills += w->kills;
    all->restarts += w->restarts;
    all->parts += w->parts;
    all->runs += w->runs;
    all->twice += w->twice;
    all->meddled += w->meddled;
    free(w);
}

static void children_are_what_they_would_be_from_scratch(void **state) {
    (void)state;
    world all = {0};
    long steps = getenv("STET_TEST_LONG") ? 1000000 : getenv("STET_TEST_SHORT") ? 150 : 5000;
    const char *given = getenv("STET_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 1;
    for (long done = 0; done < steps; done += STEPS)
        one_world(seed++, steps - done < STEPS ? steps - done : STEPS, &all);
    printf("# %ld steps: %ld runs, %ld of them again in one settling; %ld of a part; %ld elements overwritten; %ld "
           "starts, "
           "%ld kills\n",
           steps, all.runs, all.twice, all.parts, all.meddled, all.restarts, all.kills);
    if (steps >= STEPS) /* so many that chance does not count */
        assert_true(all.kills > steps / 200 && all.restarts > steps / 20);
}

int main(void) {
    stet_outside_guard = (stet_write_guard){0}; /* edits by hand of what is stet's own are steps, too */
    const struct CMUnitTest tests[] = {cmocka_unit_test(children_are_what_they_would_be_from_scratch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
