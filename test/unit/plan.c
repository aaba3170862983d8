/* plan.c - the planner with a fake runner and a fake clock: nodes are functions over integer cells. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/vec.h"
#include "scheduler/plan.h"

/* A world of cells: document i has one integer. A node adds up what it reads, or chooses. */
typedef struct fake_node {
    int inputs[8];
    int input_count;
    int output;
    bool choose; /* inputs[0] ? inputs[1] : inputs[2] */
    bool fails;  /* when the sum is odd */
    bool bounded;
    bool scatter; /* a materializer: writes its sum to one of the documents 20 to 23, as the sum says */
    int runs;
} fake_node;

typedef struct world {
    stet_plan *p;
    long values[64];
    fake_node nodes[64];
    uint32_t ids[64];
    int node_count;
    int64_t now;
    stet_buf order; /* names of what ran */
} world;

static uint32_t doc(world *w, int i) {
    char name[16];
    int n = snprintf(name, sizeof name, "d%d", i);
    return stet_plan_doc(w->p, name, (size_t)n);
}

static int add(world *w, uint32_t rank, bool effect, int output, int count, const int *inputs) {
    int i = w->node_count++;
    fake_node *n = &w->nodes[i];
    *n = (fake_node){.output = output, .input_count = count};
    char name[16];
    snprintf(name, sizeof name, "n%d", i);
    stet_plan_read reads[8];
    for (int k = 0; k < count; k++) {
        n->inputs[k] = inputs[k];
        reads[k] = (stet_plan_read){doc(w, inputs[k]), STET_PATH_ROOT, STET_RECURSIVE};
    }
    uint32_t out = output >= 0 ? doc(w, output) : 0;
    w->ids[i] = stet_plan_add(w->p, name, strlen(name), &(stet_plan_opts){.rank = rank, .effect = effect, .data = n});
    stet_plan_set_reads(w->p, w->ids[i], reads, (size_t)count);
    if (output >= 0)
        stet_plan_set_writes(w->p, w->ids[i], &(stet_plan_write){out, STET_PATH_ROOT}, 1);
    stet_plan_mark(w->p, w->ids[i], STET_PLAN_UNKNOWN, w->now);
    return i;
}

#define INPUTS(...)                                                                                                    \
    (sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]) {                                                            \
        __VA_ARGS__                                                                                                    \
    }

static void run_node(world *w, uint32_t id) {
    fake_node *n = stet_plan_data(w->p, id);
    stet_buf_printf(&w->order, "%s%s", w->order.len ? " " : "", stet_plan_name(w->p, id));
    n->runs++;
    stet_plan_read reads[8];
    int count = 0;
    long sum = 0;
    if (n->choose) {
        int taken = w->values[n->inputs[0]] ? n->inputs[1] : n->inputs[2];
        reads[count++] = (stet_plan_read){doc(w, n->inputs[0]), STET_PATH_ROOT, STET_RECURSIVE};
        reads[count++] = (stet_plan_read){doc(w, taken), STET_PATH_ROOT, STET_RECURSIVE};
        sum = w->values[taken];
    } else {
        for (int k = 0; k < n->input_count; k++) {
            reads[count++] = (stet_plan_read){doc(w, n->inputs[k]), STET_PATH_ROOT, STET_RECURSIVE};
            sum += w->values[n->inputs[k]];
        }
    }
    stet_plan_set_reads(w->p, id, reads, (size_t)count);
    if (n->fails && (sum & 1)) {
        stet_plan_finish(w->p, id, STET_PLAN_FAILED, w->now);
        return;
    }
    if (n->bounded && sum > 7)
        sum = 7;
    if (n->scatter) {
        int to = 20 + (int)(sum % 4);
        stet_plan_write writes[2] = {{doc(w, to), STET_PATH_ROOT}, {doc(w, n->output), STET_PATH_ROOT}};
        stet_plan_set_writes(w->p, id, writes, 2);
        if (w->values[to] != sum) {
            w->values[to] = sum;
            assert_int_equal(stet_plan_changed(w->p, doc(w, to), STET_PATH_ROOT, STET_VALUE, id, w->now, NULL),
                             STET_OK);
        }
    }
    if (n->output >= 0 && w->values[n->output] != sum) {
        w->values[n->output] = sum;
        assert_int_equal(stet_plan_changed(w->p, doc(w, n->output), STET_PATH_ROOT, STET_VALUE, id, w->now, NULL),
                         STET_OK);
    }
    stet_plan_finish(w->p, id, STET_PLAN_DONE, w->now);
}

/* Settles; jumps over waiting times if `wait`. */
static stet_plan_step settle(world *w, bool wait) {
    stet_plan_step step;
    stet_buf_clear(&w->order);
    stet_plan_begin(w->p);
    for (;;) {
        assert_int_equal(stet_plan_next(w->p, w->now, &step, NULL), STET_OK);
        if (step.kind == STET_PLAN_RUN)
            run_node(w, step.node);
        else if (step.kind == STET_PLAN_WAIT && wait)
            w->now = step.until;
        else
            return step;
    }
}

static void set(world *w, int d, long value) {
    if (w->values[d] == value)
        return;
    w->values[d] = value;
    assert_int_equal(stet_plan_changed(w->p, doc(w, d), STET_PATH_ROOT, STET_VALUE, STET_PLAN_NONE, w->now, NULL),
                     STET_OK);
}

static world *new_world(void) {
    world *w = stet_alloc_zero(sizeof *w);
    w->p = stet_plan_new(NULL);
    w->order = (stet_buf)STET_BUF(0);
    return w;
}

static void free_world(world *w) {
    stet_plan_free(w->p);
    stet_buf_release(&w->order);
    free(w);
}

static void demand(world *w, int d) {
    stet_plan_demand(w->p, doc(w, d), STET_PATH_ROOT, STET_RECURSIVE);
}

#define ran(w, expected) assert_string_equal(stet_buf_cstr(&(w)->order), expected)

static void writers_run_before_readers(void **state) {
    (void)state;
    world *w = new_world();
    /* Ranks that lie: the diamond is built upside down. */
    add(w, 0, false, 4, INPUTS(2, 3)); /* n0: d4 = d2 + d3 */
    add(w, 0, false, 2, INPUTS(1));    /* n1: d2 = d1 */
    add(w, 0, false, 3, INPUTS(1));    /* n2: d3 = d1 */
    add(w, 0, false, 1, INPUTS(0));    /* n3: d1 = d0 */
    demand(w, 4);
    w->values[0] = 5;
    settle(w, false);
    ran(w, "n3 n1 n2 n0");
    assert_int_equal(w->values[4], 10);
    settle(w, false);
    ran(w, "");
    free_world(w);
}

static void early_cut_off(void **state) {
    (void)state;
    world *w = new_world();
    add(w, 0, false, 1, INPUTS(0));
    w->nodes[0].bounded = true;
    add(w, 1, false, 2, INPUTS(1));
    demand(w, 2);
    w->values[0] = 9;
    settle(w, false);
    ran(w, "n0 n1");
    set(w, 0, 12); /* still 7 */
    settle(w, false);
    ran(w, "n0");
    set(w, 0, 3);
    settle(w, false);
    ran(w, "n0 n1");
    free_world(w);
}

static void only_what_is_demanded(void **state) {
    (void)state;
    world *w = new_world();
    add(w, 0, false, 1, INPUTS(0)); /* n0 */
    add(w, 1, false, 2, INPUTS(1)); /* n1 */
    add(w, 1, false, 3, INPUTS(1)); /* n2 */
    demand(w, 2);
    settle(w, false);
    ran(w, "n0 n1");
    assert_true(stet_plan_is_unknown(w->p, w->ids[2]));
    /* Asked for later, it runs, and only it. */
    demand(w, 3);
    settle(w, false);
    ran(w, "n2");
    /* With nothing demanded nothing runs. */
    stet_plan_demand_clear(w->p);
    set(w, 0, 4);
    settle(w, false);
    ran(w, "");
    assert_true(stet_plan_is_dirty(w->p, w->ids[0]));
    demand(w, 3);
    settle(w, false);
    ran(w, "n0 n2");
    free_world(w);
}

static void condition_rewires(void **state) {
    (void)state;
    world *w = new_world();
    add(w, 0, false, 1, INPUTS(0));    /* n0: d1 = d0 */
    add(w, 0, false, 3, INPUTS(2));    /* n1: d3 = d2 */
    add(w, 1, false, 5, INPUTS(3));    /* n2: d5 = d3, upstream of the other branch */
    add(w, 2, false, 6, INPUTS(4, 1)); /* n3: chooses d1 or d5 by d4 */
    w->nodes[3].choose = true;
    w->nodes[3].inputs[2] = 5;
    demand(w, 6);
    w->values[4] = 1;
    w->values[0] = 11;
    w->values[2] = 22;
    settle(w, false);
    ran(w, "n0 n3"); /* the branch not taken does not run */
    assert_int_equal(w->values[6], 11);
    set(w, 4, 0);
    settle(w, false);
    ran(w, "n3 n1 n2 n3"); /* flipped: the branch is made fresh, then read */
    assert_int_equal(w->values[6], 22);
    set(w, 0, 100); /* no longer read */
    settle(w, false);
    ran(w, "");
    assert_true(stet_plan_is_dirty(w->p, w->ids[0]));
    set(w, 2, 33);
    settle(w, false);
    ran(w, "n1 n2 n3");
    set(w, 4, 1);
    settle(w, false);
    assert_int_equal(w->values[6], 100);
    set(w, 2, 44);
    settle(w, false);
    ran(w, "");
    free_world(w);
}

static void cycle_is_named(void **state) {
    (void)state;
    world *w = new_world();
    add(w, 0, false, 1, INPUTS(0, 2)); /* n0: d1 = d0 + d2 */
    add(w, 1, false, 2, INPUTS(1));    /* n1: d2 = d1 */
    add(w, 1, false, 3, INPUTS(0));    /* n2: stands apart */
    demand(w, 2);
    demand(w, 3);
    w->values[0] = 1;
    settle(w, false);
    assert_true(stet_plan_is_aside(w->p, w->ids[0]) || stet_plan_is_aside(w->p, w->ids[1]));
    assert_int_equal(w->nodes[2].runs, 1);
    assert_int_equal(w->values[3], 1);
    assert_true(w->nodes[0].runs <= STET_PLAN_MAX_RUNS);
    stet_buf b = STET_BUF(0);
    assert_true(stet_plan_cycle(w->p, w->ids[0], &b));
    assert_string_equal(stet_buf_cstr(&b), "n0 -> n1 -> n0");
    stet_buf_clear(&b);
    assert_false(stet_plan_cycle(w->p, w->ids[2], &b));
    stet_buf_release(&b);
    free_world(w);
}

static void cycle_that_comes_to_rest(void **state) {
    (void)state;
    world *w = new_world();
    add(w, 0, false, 1, INPUTS(0, 2));
    w->nodes[0].bounded = true;
    add(w, 1, false, 2, INPUTS(1));
    demand(w, 2);
    w->values[0] = 1;
    settle(w, false);
    assert_int_equal(w->values[2], 7);
    assert_false(stet_plan_is_aside(w->p, w->ids[0]));
    free_world(w);
}

static void failure_waits_for_a_change(void **state) {
    (void)state;
    world *w = new_world();
    add(w, 0, false, 1, INPUTS(0));
    w->nodes[0].fails = true;
    add(w, 1, false, 2, INPUTS(1));
    demand(w, 2);
    w->values[0] = 2;
    settle(w, false);
    assert_int_equal(w->values[2], 2);
    set(w, 0, 3);
    settle(w, false);
    ran(w, "n0");
    assert_true(stet_plan_is_failed(w->p, w->ids[0]));
    assert_int_equal(w->values[2], 2); /* the last good output stays */
    settle(w, false);
    ran(w, "");
    stet_plan_mark(w->p, w->ids[0], STET_PLAN_DIRTY, w->now); /* --retry-failed */
    settle(w, false);
    ran(w, "n0");
    set(w, 0, 4);
    settle(w, false);
    ran(w, "n0 n1");
    assert_false(stet_plan_is_failed(w->p, w->ids[0]));
    free_world(w);
}

static void overwritten_output_is_restored(void **state) {
    (void)state;
    world *w = new_world();
    add(w, 0, false, 1, INPUTS(0));
    add(w, 1, false, 2, INPUTS(1));
    demand(w, 2);
    w->values[0] = 5;
    settle(w, false);
    set(w, 1, 99);
    settle(w, false);
    assert_int_equal(w->values[1], 5);
    assert_int_equal(w->values[2], 5);
    free_world(w);
}

static void debounce_and_throttle(void **state) {
    (void)state;
    world *w = new_world();
    w->now = 1000;
    uint32_t id = stet_plan_add(w->p, "slow", 4, &(stet_plan_opts){.debounce_ms = 100, .data = &w->nodes[9]});
    w->nodes[9] = (fake_node){.inputs = {0}, .input_count = 1, .output = 1};
    stet_plan_set_reads(w->p, id, &(stet_plan_read){doc(w, 0), STET_PATH_ROOT, STET_RECURSIVE}, 1);
    stet_plan_set_writes(w->p, id, &(stet_plan_write){doc(w, 1), STET_PATH_ROOT}, 1);
    demand(w, 1);
    set(w, 0, 1);
    stet_plan_step step = settle(w, false);
    assert_int_equal(step.kind, STET_PLAN_WAIT);
    assert_int_equal(step.until, 1100);
    w->now = 1050;
    set(w, 0, 2); /* again: the time starts anew */
    w->now = 1100;
    step = settle(w, false);
    ran(w, "");
    assert_int_equal(step.until, 1150);
    w->now = 1150;
    step = settle(w, false);
    ran(w, "slow");
    assert_int_equal(step.kind, STET_PLAN_IDLE);
    /* A throttle counts from start to start. */
    uint32_t t = stet_plan_add(w->p, "rare", 4, &(stet_plan_opts){.throttle_ms = 500, .data = &w->nodes[10]});
    w->nodes[10] = (fake_node){.inputs = {2}, .input_count = 1, .output = 3};
    stet_plan_set_reads(w->p, t, &(stet_plan_read){doc(w, 2), STET_PATH_ROOT, STET_RECURSIVE}, 1);
    stet_plan_set_writes(w->p, t, &(stet_plan_write){doc(w, 3), STET_PATH_ROOT}, 1);
    demand(w, 3);
    set(w, 2, 1);
    settle(w, false);
    ran(w, "rare");
    set(w, 2, 2);
    step = settle(w, false);
    assert_int_equal(step.kind, STET_PLAN_WAIT);
    assert_int_equal(step.until, 1650);
    settle(w, true);
    ran(w, "rare");
    assert_int_equal(w->values[3], 2);
    free_world(w);
}

/* Nor over one between them that is up to date. An effect that does not depend on it runs. */
static void effects_wait_for_a_debounce_upstream(void **state) {
    (void)state;
    world *w = new_world();
    w->now = 1000;
    uint32_t id = stet_plan_add(w->p, "slow", 4, &(stet_plan_opts){.debounce_ms = 100, .data = &w->nodes[9]});
    w->nodes[9] = (fake_node){.inputs = {0}, .input_count = 1, .output = 1};
    stet_plan_set_reads(w->p, id, &(stet_plan_read){doc(w, 0), STET_PATH_ROOT, STET_RECURSIVE}, 1);
    stet_plan_set_writes(w->p, id, &(stet_plan_write){doc(w, 1), STET_PATH_ROOT}, 1);
    add(w, 1, false, 2, INPUTS(1));
    int behind = add(w, 2, true, -1, INPUTS(2, 3)), apart = add(w, 2, true, -1, INPUTS(3));
    stet_plan_demand_node(w->p, w->ids[behind]);
    stet_plan_demand_node(w->p, w->ids[apart]);
    settle(w, true);
    ran(w, "n0 n1 n2");
    set(w, 0, 1);
    set(w, 3, 1);
    stet_plan_step step = settle(w, false);
    ran(w, "n2");
    assert_int_equal(step.kind, STET_PLAN_WAIT);
    settle(w, true);
    ran(w, "slow n0 n1");
    free_world(w);
}

static void effects_are_demand(void **state) {
    (void)state;
    world *w = new_world();
    add(w, 0, false, 1, INPUTS(0));
    int e = add(w, 1, true, -1, INPUTS(1));
    settle(w, false);
    ran(w, "");
    stet_plan_demand_node(w->p, w->ids[e]);
    settle(w, false);
    ran(w, "n0 n1");
    set(w, 0, 3);
    settle(w, false);
    ran(w, "n0 n1");
    free_world(w);
}

/* Several under way: what is downstream of one that runs waits, the rest goes on, an effect waits for all. */
static void several_at_once(void **state) {
    (void)state;
    world *w = new_world();
    add(w, 0, false, 1, INPUTS(0)); /* n0 */
    add(w, 1, false, 2, INPUTS(1)); /* n1 behind n0 */
    add(w, 1, false, 4, INPUTS(3)); /* n2 apart */
    int e = add(w, 9, true, -1, INPUTS(4));
    demand(w, 2);
    demand(w, 4);
    stet_plan_demand_node(w->p, w->ids[e]);
    w->values[0] = w->values[3] = 1;
    stet_plan_step step;
    stet_plan_begin(w->p);
    assert_int_equal(stet_plan_next(w->p, 0, &step, NULL), STET_OK);
    assert_int_equal(step.node, w->ids[0]);
    assert_int_equal(stet_plan_next(w->p, 0, &step, NULL), STET_OK);
    assert_int_equal(step.kind, STET_PLAN_RUN);
    assert_int_equal(step.node, w->ids[2]);
    run_node(w, step.node);
    assert_int_equal(stet_plan_next(w->p, 0, &step, NULL), STET_OK);
    assert_int_equal(step.kind, STET_PLAN_BUSY);
    run_node(w, w->ids[0]);
    assert_int_equal(stet_plan_next(w->p, 0, &step, NULL), STET_OK);
    assert_int_equal(step.node, w->ids[1]);
    /* Its input changes while it runs: once more. */
    set(w, 1, 50);
    run_node(w, step.node);
    assert_int_equal(stet_plan_next(w->p, 0, &step, NULL), STET_OK);
    assert_int_equal(step.kind, STET_PLAN_RUN);
    run_node(w, step.node);
    free_world(w);
}

/* Paths: a change of one key touches its reader alone. */
static void paths(void **state) {
    (void)state;
    stet_plan *p = stet_plan_new(NULL);
    uint32_t d = stet_plan_doc(p, "d", 1);
    uint32_t ids[500];
    stet_path path = STET_PATH_INIT;
    for (int i = 0; i < 500; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        ids[i] = stet_plan_add(p, name, strlen(name), &(stet_plan_opts){0});
        stet_path_push(&path, "rows");
        stet_path_push_index(&path, (size_t)i);
        stet_plan_set_reads(p, ids[i], &(stet_plan_read){d, stet_path_ref(&path), STET_RECURSIVE}, 1);
        stet_path_pop(&path);
        stet_path_pop(&path);
    }
    uint32_t count = stet_plan_add(p, "count", 5, &(stet_plan_opts){0});
    stet_path_push(&path, "rows");
    stet_plan_set_reads(p, count, &(stet_plan_read){d, stet_path_ref(&path), STET_SHALLOW}, 1);
    stet_plan_nodes found = {0};
    stet_path_push_index(&path, 7);
    stet_plan_readers(p, d, stet_path_ref(&path), STET_VALUE, &found);
    assert_int_equal(found.len, 1);
    assert_int_equal(found.at[0], ids[7]);
    stet_vec_clear(&found);
    stet_plan_readers(p, d, stet_path_ref(&path), STET_KEYSET, &found);
    assert_int_equal(found.len, 2); /* the key set, too */
    stet_vec_clear(&found);
    stet_path_push(&path, "deep");
    stet_plan_readers(p, d, stet_path_ref(&path), STET_VALUE, &found);
    assert_int_equal(found.len, 1);
    stet_vec_clear(&found);
    stet_plan_readers(p, d, STET_PATH_ROOT, STET_VALUE, &found);
    assert_int_equal(found.len, 501);
    /* Gone readers are not found. */
    for (int i = 0; i < 400; i++)
        stet_plan_set_reads(p, ids[i], NULL, 0);
    stet_vec_clear(&found);
    stet_plan_readers(p, d, STET_PATH_ROOT, STET_VALUE, &found);
    assert_int_equal(found.len, 101);
    stet_vec_release(&found);
    stet_path_release(&path);
    stet_plan_free(p);
}

/* 100,000 in a row, in the worst order of arrival. */
static void long_chain(void **state) {
    (void)state;
    enum { N = 100000 };
    stet_plan *p = stet_plan_new(NULL);
    char name[24];
    uint32_t first = 0;
    for (int i = N - 1; i >= 0; i--) {
        int n = snprintf(name, sizeof name, "d%d", i);
        uint32_t in = stet_plan_doc(p, name, (size_t)n);
        n = snprintf(name, sizeof name, "d%d", i + 1);
        uint32_t out = stet_plan_doc(p, name, (size_t)n);
        n = snprintf(name, sizeof name, "n%d", i);
        uint32_t id = stet_plan_add(p, name, (size_t)n, &(stet_plan_opts){.rank = (uint32_t)i});
        stet_plan_set_reads(p, id, &(stet_plan_read){in, STET_PATH_ROOT, STET_RECURSIVE}, 1);
        stet_plan_set_writes(p, id, &(stet_plan_write){out, STET_PATH_ROOT}, 1);
        first = id;
    }
    snprintf(name, sizeof name, "d%d", N);
    stet_plan_demand(p, stet_plan_doc(p, name, strlen(name)), STET_PATH_ROOT, STET_RECURSIVE);
    stet_plan_mark(p, first, STET_PLAN_DIRTY, 0);
    stet_plan_begin(p);
    stet_plan_step step;
    int runs = 0;
    while (stet_plan_next(p, 0, &step, NULL) == STET_OK && step.kind == STET_PLAN_RUN) {
        stet_plan_write w;
        assert_int_equal(stet_plan_writes(p, step.node, &w, 1), 1);
        assert_int_equal(stet_plan_changed(p, w.doc, w.path, STET_VALUE, step.node, 0, NULL), STET_OK);
        stet_plan_finish(p, step.node, STET_PLAN_DONE, 0);
        runs++;
    }
    assert_int_equal(runs, N);
    stet_plan_free(p);
}

static void removed_node_is_gone(void **state) {
    (void)state;
    world *w = new_world();
    add(w, 0, false, 1, INPUTS(0));
    demand(w, 1);
    stet_plan_remove(w->p, w->ids[0]);
    settle(w, false);
    ran(w, "");
    set(w, 0, 1);
    settle(w, false);
    ran(w, "");
    assert_int_equal(stet_plan_find(w->p, "n0", 2), STET_PLAN_NONE);
    free_world(w);
}

/* d10 = the sum of inputs, and one of d20 to d23. */
static int add_scatter(world *w, uint32_t rank, int count, const int *inputs) {
    int i = w->node_count++;
    fake_node *n = &w->nodes[i];
    *n = (fake_node){.output = 10, .input_count = count, .scatter = true};
    char name[16];
    snprintf(name, sizeof name, "n%d", i);
    stet_plan_read reads[8];
    for (int k = 0; k < count; k++) {
        n->inputs[k] = inputs[k];
        reads[k] = (stet_plan_read){doc(w, inputs[k]), STET_PATH_ROOT, STET_RECURSIVE};
    }
    stet_plan_write out = {doc(w, 10), STET_PATH_ROOT}, envelopes[4];
    for (int k = 0; k < 4; k++)
        envelopes[k] = (stet_plan_write){doc(w, 20 + k), STET_PATH_ROOT};
    w->ids[i] =
        stet_plan_add(w->p, name, strlen(name), &(stet_plan_opts){.rank = rank, .materializer = true, .data = n});
    stet_plan_set_reads(w->p, w->ids[i], reads, (size_t)count);
    stet_plan_set_writes(w->p, w->ids[i], &out, 1);
    stet_plan_set_envelopes(w->p, w->ids[i], envelopes, 4);
    stet_plan_mark(w->p, w->ids[i], STET_PLAN_UNKNOWN, w->now);
    return i;
}

static bool none(void *ctx, uint32_t node) {
    (void)ctx, (void)node;
    return false;
}

/* Settles, and then again with materializers at idle. */
static void settle_idle(world *w) {
    settle(w, false);
    while (stet_plan_idle(w->p, NULL, NULL) > 0) {
        stet_plan_step step;
        for (;;) {
            assert_int_equal(stet_plan_next(w->p, w->now, &step, NULL), STET_OK);
            if (step.kind != STET_PLAN_RUN)
                break;
            run_node(w, step.node);
        }
    }
}

static void materializer_waits_for_idle_and_is_promoted(void **state) {
    (void)state;
    world *w = new_world();
    add(w, 0, false, 1, INPUTS(0));   /* n0: d1 = d0 */
    add_scatter(w, 1, INPUTS(1));     /* n1: from d1 */
    add(w, 0, false, 30, INPUTS(20)); /* n2 to n5: readers of the envelope, ranked before it */
    add(w, 0, false, 31, INPUTS(21));
    add(w, 0, false, 32, INPUTS(22));
    add(w, 0, false, 33, INPUTS(23));
    add(w, 2, false, 11, INPUTS(10)); /* n6: its ordinary output */
    add(w, 0, false, 5, INPUTS(4));   /* n7: has nothing to do with it */
    demand(w, 5);
    w->values[0] = 1;
    settle(w, false);
    ran(w, "n7"); /* nobody wants what it may write */
    assert_int_equal(stet_plan_idle(w->p, none, NULL), 0);
    settle_idle(w);
    ran(w, "n0 n1"); /* its turn comes when all else is done, and what it reads is fresh then; its readers are not
                        wanted */
    assert_int_equal(w->values[21], 1);
    /* One reader of the envelope is wanted: it comes after the materializer, and alone. */
    demand(w, 32);
    settle(w, false);
    ran(w, "n4");
    set(w, 0, 6);
    settle(w, false);
    ran(w, "n0 n1 n4");
    assert_int_equal(w->values[32], 6);
    /* It writes elsewhere now: early cut-off for the reader. */
    set(w, 0, 7);
    settle(w, false);
    ran(w, "n0 n1");
    /* All four wanted, one touched: one runs. */
    demand(w, 30);
    demand(w, 31);
    demand(w, 33);
    settle(w, false);
    ran(w, "n2 n3 n5");
    set(w, 0, 9);
    settle(w, false);
    ran(w, "n0 n1 n3");
    /* Its ordinary output goes on as anybody's. */
    demand(w, 11);
    settle(w, false);
    ran(w, "n6");
    set(w, 0, 13);
    settle(w, false);
    assert_non_null(strstr(stet_buf_cstr(&w->order), "n6"));
    assert_non_null(strstr(stet_buf_cstr(&w->order), "n3"));
    assert_int_equal(w->values[11], 13);
    /* A cell inside the envelope that is wanted by itself. */
    stet_plan_demand_clear(w->p);
    set(w, 0, 16);
    settle(w, false);
    ran(w, "");
    demand(w, 20);
    settle(w, false);
    ran(w, "n0 n1");
    assert_int_equal(w->values[20], 16);
    /* What it wrote is its own; what it only may write is not. */
    set(w, 20, 5);
    settle(w, false);
    ran(w, "n1");
    set(w, 21, 5);
    settle(w, false);
    ran(w, "");
    free_world(w);
}

typedef struct shelf {
    int asked; /* how often */
    bool there, covered;
} shelf;

/* On the shelf there is one action, "far", that reads the document "in" and writes "out". */
static stet_status take_down(void *ctx, stet_plan *p, uint32_t d, stet_pathref path, stet_change_kind kind,
                             bool *covered, stet_error *err) {
    shelf *s = ctx;
    (void)path, (void)kind, (void)err;
    s->asked++;
    *covered = s->covered;
    if (!s->there || d != stet_plan_doc(p, "in", 2) || stet_plan_find(p, "far", 3) != STET_PLAN_NONE)
        return STET_OK;
    uint32_t id = stet_plan_add(p, "far", 3, &(stet_plan_opts){.rank = 1, .certain = true});
    stet_plan_set_reads(p, id, &(stet_plan_read){d, STET_PATH_ROOT, STET_RECURSIVE}, 1);
    stet_plan_set_writes(p, id, &(stet_plan_write){stet_plan_doc(p, "out", 3), STET_PATH_ROOT}, 1);
    return STET_OK;
}

static uint32_t next_of(stet_plan *p) {
    stet_plan_step step;
    stet_error err = STET_ERROR_INIT;
    assert_int_equal(stet_plan_next(p, 0, &step, &err), STET_OK);
    return step.kind == STET_PLAN_RUN ? step.node : STET_PLAN_NONE;
}

static void change_by(stet_plan *p, const char *document, uint32_t by) {
    stet_error err = STET_ERROR_INIT;
    uint32_t d = stet_plan_doc(p, document, strlen(document));
    assert_int_equal(stet_plan_changed(p, d, STET_PATH_ROOT, STET_VALUE, by, 0, &err), STET_OK);
}

static void change(stet_plan *p, const char *document) {
    change_by(p, document, STET_PLAN_NONE);
}

/* One change asks once, however often it comes; a document all of whose readers are loaded is not asked about. */
static void source_is_asked_once(void **state) {
    (void)state;
    shelf s = {.there = true};
    stet_plan *p = stet_plan_new(&(stet_plan_source){&s, take_down});
    for (int i = 0; i < 3; i++) {
        change(p, "in");
        uint32_t id = next_of(p);
        assert_string_equal(stet_plan_name(p, id), "far");
        stet_plan_finish(p, id, STET_PLAN_DONE, 0);
    }
    assert_int_equal(s.asked, 1);
    stet_plan_forget_asked(p);
    change(p, "in");
    assert_int_equal(s.asked, 2);
    s.covered = true;
    stet_plan_forget_asked(p);
    change(p, "in");
    change(p, "in");
    assert_int_equal(s.asked, 3);
    stet_plan_free(p);
}

/* An action that stands leaves memory, with the documents that only it knew, and comes back when its reads change. */
static void unloaded_action_comes_back(void **state) {
    (void)state;
    shelf s = {.there = true};
    stet_plan *p = stet_plan_new(&(stet_plan_source){&s, take_down});
    for (int i = 0; i < 100; i++) {
        change(p, "in");
        uint32_t id = next_of(p);
        assert_int_not_equal(id, STET_PLAN_NONE);
        assert_false(stet_plan_unload(p, id)); /* it runs */
        stet_plan_finish(p, id, STET_PLAN_DONE, 0);
        assert_int_equal(stet_plan_loaded(p), 1);
        assert_true(stet_plan_unload(p, id));
        assert_int_equal(stet_plan_loaded(p), 0);
        assert_int_equal(stet_plan_find(p, "far", 3), STET_PLAN_NONE);
    }
    assert_int_equal(s.asked, 100);
    assert_int_equal(stet_plan_count(p), 1); /* its place was used again and again */
    assert_true(stet_plan_doc(p, "another", 7) < 3);
    change(p, "in");
    assert_false(stet_plan_unload(p, stet_plan_find(p, "far", 3))); /* it is dirty */
    stet_plan_free(p);
}

/* A hundred thousand readers of one cell leave one by one: that is no walk over the others. */
static void many_readers_of_one_cell_leave(void **state) {
    (void)state;
    enum { MANY = 100000 };
    stet_plan *p = stet_plan_new(NULL);
    uint32_t d = stet_plan_doc(p, "in", 2);
    for (int i = 0; i < MANY; i++) {
        char name[16];
        int n = snprintf(name, sizeof name, "r%d", i);
        uint32_t id = stet_plan_add(p, name, (size_t)n, &(stet_plan_opts){.certain = true});
        stet_plan_set_reads(p, id, &(stet_plan_read){d, STET_PATH_ROOT, STET_RECURSIVE}, 1);
    }
    change(p, "in");
    for (uint32_t id; (id = next_of(p)) != STET_PLAN_NONE;) {
        stet_plan_finish(p, id, STET_PLAN_DONE, 0);
        assert_true(stet_plan_unload(p, id));
    }
    assert_int_equal(stet_plan_loaded(p), 0);
    stet_plan_free(p);
}

/* Looking whether "a" is wanted loads "b", which reads it, and then "c", by a record of before: now it reads what "a"
 * writes, too, which was looked at before it came. */
static stet_status load_late(void *ctx, stet_plan *p, uint32_t d, stet_pathref path, stet_change_kind kind,
                             bool *covered, stet_error *err) {
    static const struct {
        const char *asked, *name, *reads, *writes;
    } rows[] = {{"da", "b", "da", "db"}, {"db", "c", "da", "dc"}};
    (void)ctx, (void)path, (void)kind, (void)covered, (void)err;
    for (size_t i = 0; i < 2; i++) {
        if (d != stet_plan_doc(p, rows[i].asked, 2) || stet_plan_find(p, rows[i].name, 1) != STET_PLAN_NONE)
            continue;
        uint32_t id = stet_plan_add(p, rows[i].name, 1, &(stet_plan_opts){.rank = 1});
        stet_plan_write out = {stet_plan_doc(p, rows[i].writes, 2), STET_PATH_ROOT};
        stet_plan_set_writes(p, id, &out, 1);
        stet_plan_read in = {stet_plan_doc(p, rows[i].reads, 2), STET_PATH_ROOT, STET_RECURSIVE};
        stet_plan_set_reads(p, id, &in, 1);
    }
    return STET_OK;
}

static void reader_that_comes_in_late_leads_to_its_writers(void **state) {
    (void)state;
    stet_plan *p = stet_plan_new(&(stet_plan_source){NULL, load_late});
    uint32_t a = stet_plan_add(p, "a", 1, &(stet_plan_opts){0});
    stet_plan_set_writes(p, a, &(stet_plan_write){stet_plan_doc(p, "da", 2), STET_PATH_ROOT}, 1);
    stet_plan_mark(p, a, STET_PLAN_UNKNOWN, 0);
    stet_plan_begin(p);
    assert_int_equal(next_of(p), STET_PLAN_NONE); /* nobody wants it */
    /* Somebody wants what c writes, and so c, and so a. */
    uint32_t c = stet_plan_find(p, "c", 1);
    assert_int_not_equal(c, STET_PLAN_NONE);
    stet_plan_mark(p, c, STET_PLAN_UNKNOWN, 0);
    uint32_t wants = stet_plan_add(p, "wants", 5, &(stet_plan_opts){.rank = 2, .certain = true});
    stet_plan_read read = {stet_plan_doc(p, "dc", 2), STET_PATH_ROOT, STET_RECURSIVE};
    stet_plan_set_reads(p, wants, &read, 1);
    assert_int_equal(next_of(p), a);
    stet_plan_finish(p, a, STET_PLAN_DONE, 0);
    assert_int_equal(next_of(p), c);
    stet_plan_finish(p, c, STET_PLAN_DONE, 0);
    assert_int_equal(next_of(p), STET_PLAN_NONE);
    stet_plan_free(p);
}

/* Effects wait while there are marked actions that are not loaded. */
static void late_ones_wait_until_all_is_known(void **state) {
    (void)state;
    stet_plan *p = stet_plan_new(NULL);
    uint32_t effect = stet_plan_add(p, "effect", 6, &(stet_plan_opts){.effect = true, .certain = true});
    uint32_t command = stet_plan_add(p, "command", 7, &(stet_plan_opts){.late = true, .certain = true});
    stet_plan_mark(p, effect, STET_PLAN_UNKNOWN, 0);
    stet_plan_mark(p, command, STET_PLAN_UNKNOWN, 0);
    stet_plan_known(p, false);
    assert_int_equal(next_of(p), STET_PLAN_NONE);
    uint32_t other = stet_plan_add(p, "other", 5, &(stet_plan_opts){.rank = 7, .certain = true});
    stet_plan_mark(p, other, STET_PLAN_UNKNOWN, 0);
    assert_int_equal(next_of(p), other);
    stet_plan_finish(p, other, STET_PLAN_DONE, 0);
    stet_plan_known(p, true);
    assert_int_equal(next_of(p), effect);
    stet_plan_finish(p, effect, STET_PLAN_DONE, 0);
    assert_int_equal(next_of(p), command);
    stet_plan_finish(p, command, STET_PLAN_DONE, 0);
    assert_int_equal(next_of(p), STET_PLAN_NONE);
    stet_plan_free(p);
}

static uint32_t add_late(stet_plan *p, const char *name, uint32_t rank, const char *reads, const char *writes) {
    uint32_t id = stet_plan_add(p, name, strlen(name), &(stet_plan_opts){.rank = rank, .late = true, .certain = true});
    stet_plan_set_reads(p, id,
                        &(stet_plan_read){stet_plan_doc(p, reads, strlen(reads)), STET_PATH_ROOT, STET_RECURSIVE}, 1);
    stet_plan_set_writes(p, id, &(stet_plan_write){stet_plan_doc(p, writes, strlen(writes)), STET_PATH_ROOT}, 1);
    return id;
}

/* Between a command that runs and one that is dirty stands an action that is not even in memory: the second waits, for
 * it would run again when the change has come through. */
static void a_command_waits_for_what_runs_far_upstream(void **state) {
    (void)state;
    shelf s = {.there = true}; /* "far", from "in" to "out" */
    stet_plan *p = stet_plan_new(&(stet_plan_source){&s, take_down});
    uint32_t first = add_late(p, "first", 0, "source", "in"), last = add_late(p, "last", 2, "out", "end");
    uint32_t beside = add_late(p, "beside", 2, "elsewhere", "other");
    stet_plan_begin(p);
    stet_plan_mark(p, first, STET_PLAN_DIRTY, 0);
    stet_plan_mark(p, last, STET_PLAN_DIRTY, 0);
    stet_plan_mark(p, beside, STET_PLAN_DIRTY, 0);
    assert_int_equal(next_of(p), first);
    assert_int_equal(next_of(p), beside); /* nothing leads there */
    assert_int_equal(next_of(p), STET_PLAN_NONE);
    uint32_t far = stet_plan_find(p, "far", 3);
    assert_int_not_equal(far, STET_PLAN_NONE);
    assert_false(stet_plan_unload(p, far)); /* it is the way between them */
    stet_plan_finish(p, beside, STET_PLAN_DONE, 0);
    assert_int_equal(next_of(p), STET_PLAN_NONE);
    change_by(p, "in", first);
    stet_plan_finish(p, first, STET_PLAN_DONE, 0);
    assert_int_equal(next_of(p), far);
    change_by(p, "out", far);
    stet_plan_finish(p, far, STET_PLAN_DONE, 0);
    assert_int_equal(next_of(p), last);
    stet_plan_finish(p, last, STET_PLAN_DONE, 0);
    assert_int_equal(next_of(p), STET_PLAN_NONE);
    assert_true(stet_plan_unload(p, far));
    stet_plan_free(p);
}

/* Whoever reads the output of a coordinator waits for its children, also for those that wait themselves; children do
 * not wait for each other. */
static void who_reads_a_list_waits_for_its_children(void **state) {
    (void)state;
    stet_plan *p = stet_plan_new(NULL);
    uint32_t list = add_late(p, "list", 0, "source", "list"), maker = add_late(p, "maker", 0, "seed", "header");
    uint32_t one = add_late(p, "one", 1, "list", "out1"), two = add_late(p, "two", 1, "header", "out2");
    uint32_t reader = add_late(p, "reader", 2, "list", "end");
    stet_plan_set_into(p, one, list);
    stet_plan_set_into(p, two, list);
    stet_plan_begin(p);
    uint32_t dirty[] = {maker, one, two, reader};
    for (int i = 0; i < 4; i++)
        stet_plan_mark(p, dirty[i], STET_PLAN_DIRTY, 0);
    assert_int_equal(next_of(p), maker);
    assert_int_equal(next_of(p), one);
    assert_int_equal(next_of(p), STET_PLAN_NONE); /* two waits for maker, reader for both children */
    stet_plan_finish(p, one, STET_PLAN_DONE, 0);
    assert_int_equal(next_of(p), STET_PLAN_NONE); /* no child runs, but one waits */
    stet_plan_finish(p, maker, STET_PLAN_DONE, 0);
    assert_int_equal(next_of(p), two);
    assert_int_equal(next_of(p), STET_PLAN_NONE);
    stet_plan_mark(p, one, STET_PLAN_DIRTY, 0);
    assert_int_equal(next_of(p), one); /* beside its brother */
    stet_plan_finish(p, two, STET_PLAN_DONE, 0);
    assert_int_equal(next_of(p), STET_PLAN_NONE);
    stet_plan_finish(p, one, STET_PLAN_DONE, 0);
    assert_int_equal(next_of(p), reader);
    stet_plan_finish(p, reader, STET_PLAN_DONE, 0);
    stet_plan_free(p);
}

/* An effect was chosen; then what it reads turned out not to be stored: it is not its turn any more. */
static void effect_is_asked_again_before_it_runs(void **state) {
    (void)state;
    stet_plan *p = stet_plan_new(NULL);
    uint32_t d = stet_plan_doc(p, "d", 1);
    uint32_t writer = stet_plan_add(p, "writer", 6, &(stet_plan_opts){.rank = 1, .certain = true});
    uint32_t effect = stet_plan_add(p, "effect", 6, &(stet_plan_opts){.rank = 2, .effect = true, .certain = true});
    stet_plan_set_writes(p, writer, &(stet_plan_write){d, STET_PATH_ROOT}, 1);
    stet_plan_set_reads(p, effect, &(stet_plan_read){d, STET_PATH_ROOT, STET_RECURSIVE}, 1);
    stet_plan_mark(p, effect, STET_PLAN_DIRTY, 0);
    assert_int_equal(next_of(p), effect);
    assert_true(stet_plan_still_first(p, effect));
    stet_plan_dropped(p, writer, 0);
    assert_false(stet_plan_still_first(p, effect));
    stet_plan_finish(p, effect, STET_PLAN_NOT_YET, 0);
    assert_int_equal(stet_plan_runs(p, effect), 0);
    assert_int_equal(next_of(p), writer);
    stet_plan_finish(p, writer, STET_PLAN_DONE, 0);
    assert_int_equal(next_of(p), effect);
    assert_true(stet_plan_still_first(p, effect));
    stet_plan_finish(p, effect, STET_PLAN_DONE, 0);
    assert_int_equal(next_of(p), STET_PLAN_NONE);
    stet_plan_free(p);
}

/* Changes that a running action sees, because it reads anew, do not make it run again, whether it has run before or not.
 * A mark that says that it can't be trusted does. */
static void a_running_one_reads_anew(void **state) {
    (void)state;
    for (int first = 0; first < 2; first++) {
        stet_plan *p = stet_plan_new(NULL);
        uint32_t d = stet_plan_doc(p, "other", 5);
        uint32_t reader = stet_plan_add(p, "reader", 6, &(stet_plan_opts){.rank = 1, .certain = true});
        stet_plan_set_reads(p, reader, &(stet_plan_read){d, STET_PATH_ROOT, STET_RECURSIVE}, 1);
        stet_plan_mark(p, reader, first ? STET_PLAN_UNKNOWN : STET_PLAN_DIRTY, 0);
        assert_int_equal(next_of(p), reader);
        change(p, "other");
        stet_plan_reads_anew(p, reader);
        stet_plan_finish(p, reader, STET_PLAN_DONE, 0);
        assert_int_equal(next_of(p), STET_PLAN_NONE);
        change(p, "other");
        assert_int_equal(next_of(p), reader);
        stet_plan_reads_anew(p, reader);
        change(p, "other");
        stet_plan_finish(p, reader, STET_PLAN_DONE, 0);
        assert_int_equal(next_of(p), reader);
        stet_plan_mark(p, reader, STET_PLAN_UNKNOWN, 0);
        stet_plan_reads_anew(p, reader);
        stet_plan_finish(p, reader, STET_PLAN_DONE, 0);
        assert_int_equal(next_of(p), reader);
        stet_plan_finish(p, reader, STET_PLAN_DONE, 0);
        assert_int_equal(next_of(p), STET_PLAN_NONE);
        stet_plan_free(p);
    }
}

/* One is left because of another that failed: it does not come again by itself, but when that one ends well, even with
 * nothing changed, when something else that it reads changes, and in the next settling. */
static void left_until_something_changes(void **state) {
    (void)state;
    stet_plan *p = stet_plan_new(NULL);
    uint32_t d = stet_plan_doc(p, "d", 1), other = stet_plan_doc(p, "other", 5);
    uint32_t writer = stet_plan_add(p, "writer", 6, &(stet_plan_opts){.rank = 1, .certain = true});
    uint32_t reader = stet_plan_add(p, "reader", 6, &(stet_plan_opts){.rank = 2, .certain = true});
    stet_plan_read reads[] = {{d, STET_PATH_ROOT, STET_RECURSIVE}, {other, STET_PATH_ROOT, STET_RECURSIVE}};
    stet_plan_set_writes(p, writer, &(stet_plan_write){d, STET_PATH_ROOT}, 1);
    stet_plan_set_reads(p, reader, reads, 2);
    stet_plan_mark(p, writer, STET_PLAN_UNKNOWN, 0);
    stet_plan_mark(p, reader, STET_PLAN_UNKNOWN, 0);
    assert_int_equal(next_of(p), writer);
    stet_plan_finish(p, writer, STET_PLAN_FAILED, 0);
    assert_int_equal(next_of(p), reader);
    stet_plan_finish(p, reader, STET_PLAN_LEFT, 0);
    assert_true(stet_plan_is_left(p, reader) && stet_plan_is_unknown(p, reader));
    assert_int_equal(stet_plan_runs(p, reader), 0);
    assert_int_equal(next_of(p), STET_PLAN_NONE);
    change(p, "other");
    assert_int_equal(next_of(p), reader);
    stet_plan_finish(p, reader, STET_PLAN_LEFT, 0);
    stet_plan_mark(p, writer, STET_PLAN_DIRTY, 0);
    assert_int_equal(next_of(p), writer);
    stet_plan_finish(p, writer, STET_PLAN_DONE, 0);
    assert_int_equal(next_of(p), reader);
    stet_plan_finish(p, reader, STET_PLAN_LEFT, 0);
    assert_int_equal(next_of(p), STET_PLAN_NONE);
    stet_plan_begin(p);
    assert_false(stet_plan_is_left(p, reader));
    assert_int_equal(next_of(p), reader);
    stet_plan_finish(p, reader, STET_PLAN_DONE, 0);
    assert_int_equal(next_of(p), STET_PLAN_NONE);
    stet_plan_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writers_run_before_readers),
        cmocka_unit_test(early_cut_off),
        cmocka_unit_test(only_what_is_demanded),
        cmocka_unit_test(condition_rewires),
        cmocka_unit_test(cycle_is_named),
        cmocka_unit_test(cycle_that_comes_to_rest),
        cmocka_unit_test(failure_waits_for_a_change),
        cmocka_unit_test(overwritten_output_is_restored),
        cmocka_unit_test(debounce_and_throttle),
        cmocka_unit_test(effects_wait_for_a_debounce_upstream),
        cmocka_unit_test(effects_are_demand),
        cmocka_unit_test(several_at_once),
        cmocka_unit_test(paths),
        cmocka_unit_test(long_chain),
        cmocka_unit_test(removed_node_is_gone),
        cmocka_unit_test(materializer_waits_for_idle_and_is_promoted),
        cmocka_unit_test(source_is_asked_once),
        cmocka_unit_test(unloaded_action_comes_back),
        cmocka_unit_test(many_readers_of_one_cell_leave),
        cmocka_unit_test(reader_that_comes_in_late_leads_to_its_writers),
        cmocka_unit_test(late_ones_wait_until_all_is_known),
        cmocka_unit_test(a_command_waits_for_what_runs_far_upstream),
        cmocka_unit_test(who_reads_a_list_waits_for_its_children),
        cmocka_unit_test(effect_is_asked_again_before_it_runs),
        cmocka_unit_test(a_running_one_reads_anew),
        cmocka_unit_test(left_until_something_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
