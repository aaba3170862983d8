/* sched.c - the loop over a real space: what runs and what is up to date, across restarts.
 *
 * At a restart every handle is closed and opened again; scenarios do the same with real processes.
 */

#include "../sched_kit.h"

static const char chain[] =
    PATTERN("{\"a\":1,\"b\":10,\"c\":5}",
            REF("x", "add", "[{\"$\":\"argument/a\"},1]") "," REF("y", "add", "[{\"$\":\"x\"},1]") "," REF(
                "z", "add", "[{\"$\":\"y\"},{\"$\":\"argument/b\"}]") "," REF("q", "add", "[{\"$\":\"argument/c\"},1]"),
            "{\"z\":{\"$\":\"z\"},\"q\":{\"$\":\"q\"}}");

static void clean_piece_restarts_with_zero_runs(void **state) {
    (void)state;
    world *w = kit_start();
    stet_sched_installed in = kit_install(w, "t", chain);
    assert_true(in.created);
    assert_int_equal(in.added, 4);
    kit_run(w, "t");
    assert_int_equal(w->report.ran, 4);
    kit_is(w, "piece:t", "{\"q\":6,\"z\":13}");
    kit_restart(w);
    kit_run(w, "t");
    assert_int_equal(w->report.runs, 0);
    assert_int_equal(w->report.loaded, 0);
    kit_is(w, "piece:t/z", "13");
    kit_end(w);
}

static void unrelated_write_dirties_nothing(void **state) {
    (void)state;
    world *w = kit_piece("t", chain);
    kit_restart(w);
    kit_set(w, "other", "1");
    kit_set(w, "piece:t:argument/new", "1");
    kit_runs(w, "t", "");
    kit_end(w);
}

static void overlapping_write_dirties_the_chain(void **state) {
    (void)state;
    world *w = kit_piece("t", chain);
    kit_restart(w);
    kit_set(w, "piece:t:argument/a", "2");
    kit_restart(w);
    kit_runs(w, "t", "x y z");
    kit_is(w, "piece:t/z", "14");
    kit_set(w, "piece:t:argument/b", "20");
    kit_restart(w);
    kit_runs(w, "t", "z");
    kit_is(w, "piece:t/z", "24");
    kit_end(w);
}

static void another_piece_dirties(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(
        w, "a",
        PATTERN("{\"n\":1}", REF("double", "multiply", "[{\"$\":\"argument/n\"},2]"), "{\"d\":{\"$\":\"double\"}}"));
    kit_install(w, "b",
                PATTERN("{}",
                        REF("plus", "add", "[{\"/\":{\"link@1\":{\"id\":\"piece:a\",\"path\":[\"d\"]}}},100]") "," REF(
                            "idle", "add", "[1,2]"),
                        "{\"r\":{\"$\":\"plus\"},\"i\":{\"$\":\"idle\"}}"));
    kit_run(w, "a");
    kit_run(w, "b");
    kit_is(w, "piece:b/r", "102");
    kit_restart(w);
    kit_set(w, "piece:a:argument/n", "5");
    kit_run(w, "a"); /* b is not running */
    kit_ran(w, "double");
    kit_restart(w);
    kit_runs(w, "b", "plus");
    kit_is(w, "piece:b/r", "110");
    /* Pull crosses pieces: what b needs of a is made fresh first. */
    kit_set(w, "piece:a:argument/n", "7");
    kit_restart(w);
    kit_runs(w, "b", "double plus");
    kit_is(w, "piece:b/r", "114");
    kit_end(w);
}

static void another_space_dirties(void **state) {
    (void)state;
    world *w = kit_start();
    stet_space *other;
    ok(stet_space_open(w->project, "other", 0, &other, &err));
    stet_tx *tx;
    ok(stet_tx_begin(other, "", &tx, &err));
    ok(stet_tx_set(tx, "rate/now", NULL, stet_value_int(3), &err));
    ok(stet_tx_commit(tx, NULL, &err));
    kit_install(w, "t",
                PATTERN("{\"n\":2}",
                        REF("m", "multiply",
                            "[{\"$\":\"argument/n\"},{\"/"
                            "\":{\"link@1\":{\"id\":\"rate\",\"path\":[\"now\"],\"space\":\"other\"}}}]"),
                        "{\"$\":\"m\"}"));
    kit_run(w, "t");
    kit_is(w, "piece:t", "6");
    kit_restart(w);
    ok(stet_tx_begin(other, "", &tx, &err));
    ok(stet_tx_set(tx, "rate/then", NULL, stet_value_int(3), &err));
    ok(stet_tx_commit(tx, NULL, &err));
    kit_runs(w, "t", "");
    ok(stet_tx_begin(other, "", &tx, &err));
    ok(stet_tx_set(tx, "rate/now", NULL, stet_value_int(5), &err));
    ok(stet_tx_commit(tx, NULL, &err));
    kit_restart(w);
    kit_runs(w, "t", "m");
    kit_is(w, "piece:t", "10");
    stet_space_close(other);
    kit_end(w);
}

static void condition_that_flips_rewires(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(
        w, "t",
        PATTERN(
            "{\"c\":true,\"a\":1,\"b\":2}",
            REF("left", "add", "[{\"$\":\"argument/a\"},10]") "," REF(
                "right", "add",
                "[{\"$\":\"argument/b\"},20]") "," REF("pick", "ifElse",
                                                       "{\"condition\":{\"$\":\"argument/"
                                                       "c\"},\"then\":{\"$\":\"left\"},\"else\":{\"$\":\"right\"}}"),
            "{\"$\":\"pick\"}"));
    kit_run(w, "t");
    kit_is(w, "piece:t", "11");
    assert_null(strstr(stet_buf_cstr(&w->ran), "right"));
    kit_restart(w);
    kit_set(w, "piece:t:argument/b", "3"); /* read by nobody who counts */
    kit_runs(w, "t", "");
    kit_set(w, "piece:t:argument/c", "false");
    kit_restart(w);
    kit_runs(w, "t", "pick right pick");
    kit_is(w, "piece:t", "23");
    kit_set(w, "piece:t:argument/a", "9");
    kit_restart(w);
    kit_runs(w, "t", ""); /* left is dirty, and nobody wants it */
    kit_set(w, "piece:t:argument/b", "4");
    kit_restart(w);
    kit_runs(w, "t", "right pick");
    kit_end(w);
}

static void same_value_leaves_the_rest_standing(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t",
                PATTERN("{\"n\":5}",
                        REF("cap", "min", "[{\"$\":\"argument/n\"},3]") "," REF("next", "add", "[{\"$\":\"cap\"},1]"),
                        "{\"$\":\"next\"}"));
    kit_run(w, "t");
    kit_is(w, "piece:t", "4");
    kit_set(w, "piece:t:argument/n", "8");
    kit_restart(w);
    kit_runs(w, "t", "cap");
    kit_restart(w);
    kit_runs(w, "t", "");
    kit_end(w);
}

static void changed_program_reuses_what_is_the_same(void **state) {
    (void)state;
    world *w = kit_piece("t", chain);
    kit_restart(w);
    /* q is gone, y computes otherwise, n is new; x and z are as they were. */
    stet_sched_installed in = kit_install(
        w, "t",
        PATTERN("{\"a\":1,\"b\":10,\"c\":5}",
                REF("x", "add", "[{\"$\":\"argument/a\"},1]") "," REF("y", "add", "[{\"$\":\"x\"},2]") "," REF(
                    "z", "add", "[{\"$\":\"y\"},{\"$\":\"argument/b\"}]") "," REF("n", "add",
                                                                                  "[{\"$\":\"x\"},{\"$\":\"z\"}]"),
                "{\"z\":{\"$\":\"z\"},\"n\":{\"$\":\"n\"}}"));
    assert_false(in.created);
    assert_int_equal(in.generation, 2);
    assert_int_equal(in.added, 1);
    assert_int_equal(in.altered, 1);
    assert_int_equal(in.gone, 1);
    kit_runs(w, "t", "y z n");
    kit_is(w, "piece:t", "{\"n\":16,\"z\":14}");
    kit_is(w, "piece:t:node:q", "not_found"); /* what it owned went with it */
    kit_restart(w);
    kit_runs(w, "t", "");
    kit_end(w);
}

static void named_cell_survives_a_rebuild(void **state) {
    (void)state;
    world *w = kit_start();
    static const char first[] = "{\"pattern\":1,\"name\":\"t\",\"cells\":{\"k\":{\"default\":1}},\"nodes\":[" REF(
        "x", "add", "[{\"$\":\"k\"},1]") "],\"result\":{\"$\":\"x\"}}";
    static const char second[] = "{\"pattern\":1,\"name\":\"t\",\"cells\":{\"k\":{\"default\":1}},\"nodes\":[" REF(
        "x", "add", "[{\"$\":\"k\"},2]") "],\"result\":{\"$\":\"x\"}}";
    kit_install(w, "t", first);
    kit_run(w, "t");
    kit_is(w, "piece:t", "2");
    kit_set(w, "piece:t:cell:k", "40");
    kit_install(w, "t", second);
    kit_restart(w);
    kit_run(w, "t");
    kit_is(w, "piece:t", "42");
    kit_stop(w);
}

static void failure_keeps_the_last_good_output(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t",
                PATTERN("{\"n\":2}",
                        REF("inv", "divide", "[100,{\"$\":\"argument/n\"}]") "," REF(
                            "next", "add", "[{\"$\":\"inv\"},1]") "," REF("apart", "add", "[1,1]"),
                        "{\"r\":{\"$\":\"next\"},\"s\":{\"$\":\"apart\"}}"));
    kit_run(w, "t");
    kit_is(w, "piece:t", "{\"r\":51,\"s\":2}");
    kit_set(w, "piece:t:argument/n", "0");
    kit_restart(w);
    kit_runs(w, "t", "inv");
    assert_int_equal(w->report.failed, 1);
    assert_int_equal(w->report.failed_now, 1);
    kit_is(w, "piece:t/r", "51");
    kit_restart(w);
    kit_runs(w, "t", ""); /* not again until something changed */
    assert_int_equal(w->report.failed, 1);
    assert_int_equal(w->report.failed_now, 0);
    w->opts.retry_failed = true;
    kit_restart(w);
    kit_runs(w, "t", "inv");
    w->opts.retry_failed = false;
    kit_set(w, "piece:t:argument/n", "4");
    kit_restart(w);
    kit_runs(w, "t", "inv next");
    assert_int_equal(w->report.failed, 0);
    kit_is(w, "piece:t/r", "26");
    kit_restart(w);
    kit_runs(w, "t", "");
    kit_end(w);
}

static void schemas_hold(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(
        w, "t",
        "{\"pattern\":1,\"name\":\"t\",\"argument\":{\"default\":{\"n\":1}},\"nodes\":["
        "{\"id\":\"in\",\"module\":{\"type\":\"ref\",\"ref\":\"value\"},\"inputs\":[{\"$\":\"argument/n\"}],"
        "\"argumentSchema\":{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"}]}},"
        "{\"id\":\"out\",\"module\":{\"type\":\"ref\",\"ref\":\"multiply\"},\"inputs\":[{\"$\":\"argument/n\"},2],"
        "\"resultSchema\":{\"maximum\":10}}],\"result\":[{\"$\":\"in\"},{\"$\":\"out\"}]}");
    kit_run(w, "t");
    kit_is(w, "piece:t", "[1,2]");
    kit_set(w, "piece:t:argument/n", "50");
    kit_run(w, "t");
    assert_int_equal(w->report.failed, 1);
    kit_is(w, "piece:t", "[50,2]");
    kit_set(w, "piece:t:argument/n", "\"x\"");
    kit_run(w, "t");
    assert_int_equal(w->report.failed, 2);
    stet_value first = stet_value_at(w->report.problems, 0);
    stet_value node = stet_value_get(first, "node");
    assert_string_equal(stet_value_as_string(&node, NULL), "in");
    kit_end(w);
}

static void overwritten_output_is_restored(void **state) {
    (void)state;
    world *w = kit_piece("t", chain);
    kit_set(w, "piece:t:node:y", "77");
    kit_restart(w);
    kit_run(w, "t");
    kit_is(w, "piece:t/z", "13");
    kit_is(w, "piece:t:node:y", "3");
    kit_end(w);
}

static void effects(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(
        w, "t",
        "{\"pattern\":1,\"name\":\"t\",\"argument\":{\"default\":{\"n\":1}},\"cells\":{\"log\":{}},\"nodes\":["
        "{\"id\":\"skip\",\"kind\":\"effect\",\"module\":{\"type\":\"ref\",\"ref\":\"value\"},\"inputs\":[{\"$\":"
        "\"x\"}],\"output\":{\"$\":\"log/a\"}},"
        "{\"id\":\"again\",\"kind\":\"effect\",\"onRestart\":\"run\",\"module\":{\"type\":\"ref\",\"ref\":"
        "\"value\"},\"inputs\":[{\"$\":\"x\"}],"
        "\"output\":{\"$\":\"log/b\"}}," REF("x", "add", "[{\"$\":\"argument/n\"},1]") "]}");
    kit_run(w, "t");
    assert_int_equal(w->report.effects, 2);
    kit_settle(w);
    kit_ran(w, "");
    kit_restart(w);
    kit_runs(w, "t", "again"); /* one says so, the other has had its effect */
    kit_set(w, "piece:t:argument/n", "2");
    kit_restart(w);
    kit_run(w, "t");
    assert_int_equal(w->report.effects, 2);
    kit_is(w, "piece:t:cell:log", "{\"a\":3,\"b\":3}");
    kit_end(w);
}

static void circle_is_named_and_the_rest_goes_on(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t",
                PATTERN("{\"n\":1}",
                        REF("a", "hash", "[{\"$\":\"b\"}]") "," REF("b", "hash", "[{\"$\":\"a\"}]") "," REF(
                            "free", "add", "[{\"$\":\"argument/n\"},1]"),
                        "{\"b\":{\"$\":\"b\"},\"free\":{\"$\":\"free\"}}"));
    kit_run(w, "t");
    kit_is(w, "piece:t/free", "2");
    assert_true(w->report.aside >= 1);
    stet_value cycle =
        stet_value_get(stet_value_at(w->report.problems, stet_value_count(w->report.problems) - 1), "cycle");
    assert_non_null(strstr(stet_value_as_string(&cycle, NULL), "t/a -> t/b"));
    kit_stop(w);
}

static void demand_for_one_cell(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t", chain);
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    stet_path_push(&path, "q");
    ok(stet_sched_demand_cell(w->sched, "piece:t", NULL, stet_path_ref(&path), &err));
    kit_settle(w);
    kit_ran(w, "q");
    kit_is(w, "piece:t/q", "6");
    kit_restart(w);
    kit_runs(w, "t", "x y z");
    stet_path_release(&path);
    kit_end(w);
}

static void observe_only_publishes_nothing(void **state) {
    (void)state;
    world *w = kit_start();
    w->opts.observe_only = true;
    kit_restart(w);
    kit_install(w, "t", PATTERN("{\"n\":1}", REF("x", "add", "[{\"$\":\"argument/n\"},1]"), "{\"$\":\"x\"}"));
    kit_runs(w, "t", "x");
    kit_is(w, "piece:t:node:x", "not_found");
    w->opts.observe_only = false;
    kit_restart(w);
    kit_runs(w, "t", "x");
    kit_is(w, "piece:t", "2");
    kit_end(w);
}

static void switched_off_stores_nothing(void **state) {
    (void)state;
    world *w = kit_piece("t", chain);
    w->opts.persist = false;
    kit_restart(w);
    kit_run(w, "t");
    assert_int_equal(w->report.ran, 4); /* nothing is known */
    kit_set(w, "piece:t:argument/a", "5");
    kit_settle(w);
    kit_ran(w, "x y z");
    kit_is(w, "piece:t/z", "17");
    /* On again: what was recorded before does not pass for fresh. */
    kit_set(w, "piece:t:argument/c", "6");
    w->opts.persist = true;
    kit_restart(w);
    kit_run(w, "t");
    kit_is(w, "piece:t", "{\"q\":7,\"z\":17}");
    kit_end(w);
}

/* A program that came while nothing was recorded: what is recorded of the one before is not about it. */
static void program_set_up_while_switched_off_is_not_taken_for_known(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t", chain);
    kit_install(w, "other", chain);
    kit_run(w, "t");
    kit_run(w, "other");
    w->opts.persist = false;
    kit_restart(w);
    kit_install(w, "t",
                PATTERN("{\"a\":1}",
                        REF("x", "add", "[{\"$\":\"argument/a\"},2]") "," REF("n", "add", "[{\"$\":\"x\"},100]"),
                        "{\"x\":{\"$\":\"x\"},\"n\":{\"$\":\"n\"}}"));
    kit_install(w, "other", chain); /* as it was */
    w->opts.persist = true;
    kit_restart(w);
    kit_runs(w, "t", "x n");
    assert_int_equal(w->report.left, 0);
    kit_is(w, "piece:t", "{\"n\":103,\"x\":3}");
    kit_runs(w, "other", "");
    kit_restart(w);
    kit_runs(w, "t", "");
    kit_end(w);
}

/* One cell of a piece nobody has run, with nothing recorded: what it needs runs, through another piece as well. */
static void switched_off_demand_runs_what_it_needs(void **state) {
    (void)state;
    world *w = kit_start();
    w->opts.persist = false;
    kit_restart(w);
    kit_install(w, "t", chain);
    kit_install(w, "b",
                PATTERN("{}",
                        REF("plus", "add", "[{\"/\":{\"link@1\":{\"id\":\"piece:t\",\"path\":[\"z\"]}}},100]") "," REF(
                            "idle", "add", "[1,2]"),
                        "{\"r\":{\"$\":\"plus\"},\"i\":{\"$\":\"idle\"}}"));
    kit_restart(w);
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    stet_path_push(&path, "r");
    ok(stet_sched_demand_cell(w->sched, "piece:b", NULL, stet_path_ref(&path), &err));
    kit_settle(w);
    kit_ran(w, "x y z plus");
    kit_is(w, "piece:b/r", "113");
    kit_set(w, "piece:t:argument/c", "50");
    kit_set(w, "piece:t:argument/b", "20");
    kit_settle(w);
    kit_ran(w, "z plus");
    kit_restart(w);
    kit_runs(w, "b", "idle x y z plus");
    stet_path_release(&path);
    kit_stop(w);
}

static const char other_chain[] = PATTERN("{}",
                                          REF("x", "add", "[{\"$\":\"argument/a\"},1000]") "," REF(
                                              "y", "add", "[{\"$\":\"x\"},1]") "," REF("n", "add", "[{\"$\":\"y\"},1]"),
                                          "{\"y\":{\"$\":\"y\"},\"n\":{\"$\":\"n\"}}");

/* Another process, as far as handles go. */
static world *beside(const world *w) {
    world *b = stet_alloc_zero(sizeof *b);
    b->ran = b->log = (stet_buf)STET_BUF(0);
    b->opts = (stet_sched_opts){.persist = true, .ctx = b, .event = kit_event, .log = kit_log};
    kit_open(b, stet_project_root(w->project));
    return b;
}

/* One process holds a piece; another gives it another program: the first goes on with that. */
static void program_set_up_by_another_process_is_taken_up(void **state) {
    (void)state;
    world *w = kit_start(), *b = beside(w);
    kit_install(w, "t", chain);
    kit_run(w, "t");
    kit_install(b, "t", other_chain);
    kit_set(b, "piece:t:argument/a", "2");
    kit_settle(w);
    kit_ran(w, "x y n");
    kit_is(w, "piece:t", "{\"n\":1004,\"y\":1003}");
    assert_int_equal(w->report.total, 3);
    kit_runs(b, "t", "");
    kit_restart(w);
    kit_runs(w, "t", "");
    kit_sound(w);
    kit_stop(b);
    kit_stop(w);
}

typedef struct meddling {
    world *w, *by;
    const char *when, *program;
} meddling;

static void meddle(void *ctx, const stet_sched_event *e) {
    meddling *m = ctx;
    kit_event(m->w, e);
    if (e->kind != STET_SCHED_STARTED || !m->program || strcmp(e->node, m->when) != 0)
        return;
    const char *program = m->program;
    m->program = NULL;
    kit_install(m->by, "t", program);
}

/* The same while the first is in the middle of running: what it ran of the program before is not stored as a run of the
 * one that is there now. */
static void run_of_the_program_before_does_not_stand(void **state) {
    (void)state;
    for (const char *when = "x"; when; when = when[0] == 'x' ? "z" : NULL) {
        world *w = kit_start(), *b = beside(w);
        meddling m = {w, b, when, NULL};
        w->opts.ctx = &m;
        w->opts.event = meddle;
        kit_restart(w);
        kit_install(w, "t", chain);
        kit_run(w, "t");
        m.program = other_chain;
        kit_set(w, "piece:t:argument/a", "5");
        kit_settle(w);
        assert_true(w->report.dropped > 0);
        assert_int_equal(w->report.failed, 0);
        kit_is(w, "piece:t", "{\"n\":1007,\"y\":1006}");
        kit_is(w, "piece:t:node:z", "not_found");
        kit_restart(b);
        kit_runs(b, "t", "");
        kit_sound(b);
        kit_stop(b);
        kit_stop(w);
    }
}

typedef struct disturbing {
    world *w, *by;
    int left; /* times that it still writes */
} disturbing;

static void disturb(void *ctx, const stet_sched_event *e) {
    disturbing *d = ctx;
    kit_event(d->w, e);
    char value[16];
    if (e->kind != STET_SCHED_STARTED || strcmp(e->node, "x") != 0 || d->left == 0)
        return;
    d->left--;
    snprintf(value, sizeof value, "%d", 100 + d->left);
    kit_set(d->by, "piece:t:argument/a", value);
}

/* Somebody changes what an action reads, each time it runs: it is tried again up to a bound, then it is put aside with
 * the conflict, stays outdated, and the others go on. That is no failure of the action. */
static void conflicts_are_tried_again_up_to_a_bound(void **state) {
    (void)state;
    for (int times = 3; times <= 1000; times += 997) {
        world *w = kit_start(), *b = beside(w);
        disturbing d = {w, b, 0};
        w->opts.ctx = &d;
        w->opts.event = disturb;
        kit_restart(w);
        kit_install(w, "t", chain);
        d.left = times;
        kit_run(w, "t");
        kit_is(w, "piece:t/q", "6");
        if (times == 3) {
            assert_int_equal(w->report.failed_now, 0);
            assert_true(w->report.dropped >= 3);
            kit_is(w, "piece:t/z", "112");
        } else {
            assert_int_equal(w->report.failed_now, 0);
            assert_true(w->report.aside >= 1); /* and those of its readers that were in its group each time */
            assert_true(d.left > 0);
            stet_value problem = stet_value_at(w->report.problems, 0),
                       code = stet_value_get(stet_value_get(problem, "error"), "code"),
                       node = stet_value_get(problem, "node");
            assert_string_equal(stet_value_as_string(&code, NULL), "conflict");
            assert_string_equal(stet_value_as_string(&node, NULL), "x");
            d.left = 0;
            kit_restart(w);
            kit_run(w, "t");
            assert_int_equal(w->report.failed, 0);
            assert_int_equal(w->report.left, 0);
        }
        kit_restart(w);
        kit_runs(w, "t", "");
        kit_sound(w);
        kit_stop(b);
        kit_stop(w);
    }
}

static int64_t fake_time;
static int64_t fake_now(void *ctx) {
    (void)ctx;
    return fake_time += 10; /* each look at the clock takes that long */
}

/* Waiting times are those of the node; they are recorded with it, and a restart does not wait for them. */
static void debounce_waits_and_a_restart_does_not(void **state) {
    (void)state;
    world *w = kit_start();
    w->opts.now_ms = fake_now;
    kit_restart(w);
    kit_install(w, "t",
                "{'pattern':1,'name':'t','argument':{'default':{'a':1,'b':1}},'nodes':["
                "{'id':'slow','debounceMs':5000,'module':{'type':'ref','ref':'add'},'inputs':[{'$':'argument/a'},1]},"
                "{'id':'rare','throttleMs':5000,'module':{'type':'ref','ref':'add'},'inputs':[{'$':'argument/b'},1]}],"
                "'result':[{'$':'slow'},{'$':'rare'}]}");
    int64_t before = fake_time;
    kit_run(w, "t");
    assert_true(fake_time - before < 5000); /* nothing to wait for */
    kit_set(w, "piece:t:argument", "{'a':2,'b':2}");
    before = fake_time;
    kit_settle(w);
    assert_true(fake_time - before >= 5000);
    kit_is(w, "piece:t", "[3,3]");
    kit_set(w, "piece:t:argument", "{'a':3,'b':3}");
    kit_restart(w);
    before = fake_time;
    kit_run(w, "t");
    assert_true(fake_time - before < 5000);
    kit_is(w, "piece:t", "[4,4]");
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    ok(stet_observe_find(w->space, 0, &(stet_action_key){.piece = "piece:t", .action = "slow"}, &arena, &r, &err));
    assert_non_null(strstr(r.options, "\"debounceMs\":5000"));
    stet_arena_release(&arena);
    kit_stop(w);
}

static void branch_is_unknown(void **state) {
    (void)state;
    world *w = kit_piece("t", chain);
    ok(stet_branch_create(w->space, "try", "", -1, &err));
    stet_sched *on_branch;
    ok(stet_sched_open(w->project, w->space, "try", &w->opts, &on_branch, &err));
    ok(stet_sched_demand_piece(on_branch, "t", &err));
    stet_sched_report r;
    ok(stet_sched_settle(on_branch, &r, &err));
    assert_int_equal(r.ran, 4);
    assert_int_equal(stet_observe_counted(w->space).runs[STET_REASON_BRANCH], 4);
    stet_value_release(r.problems);
    stet_sched_close(on_branch);
    ok(stet_sched_open(w->project, w->space, "try", &w->opts, &on_branch, &err));
    ok(stet_sched_demand_piece(on_branch, "t", &err));
    ok(stet_sched_settle(on_branch, &r, &err));
    assert_int_equal(r.ran, 0);
    stet_value_release(r.problems);
    stet_sched_close(on_branch);
    kit_restart(w);
    kit_runs(w, "t", ""); /* the trunk stands as it did */
    kit_end(w);
}

static void deleted_piece_leaves_nothing(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t", chain);
    kit_install(w, "t2", chain);
    kit_run(w, "t");
    ok(stet_sched_delete(w->sched, "t", &err));
    stet_value names;
    bool more;
    ok(stet_piece_names(w->space, 0, NULL, 10, &names, &more, &err));
    assert_int_equal(stet_value_count(names), 1);
    stet_value_release(names);
    stet_arena arena = STET_ARENA_INIT;
    stet_doc_info *at;
    size_t count;
    ok(stet_space_list(w->space, 0, &(stet_doc_filter){.prefix = "piece:t:", .limit = 10}, &arena, &at, &count, &more,
                       &err));
    assert_int_equal(count, 0);
    stet_arena_release(&arena);
    kit_restart(w);
    kit_run(w, "t2");
    assert_int_equal(w->report.ran, 4);
    kit_end(w);
}

static void links_in_values_are_followed(void **state) {
    (void)state;
    world *w = kit_start();
    kit_set(w, "prices", "{\"apple\":3,\"pear\":4}");
    kit_install(
        w, "t",
        PATTERN("{\"list\":[1,2]}", REF("s", "sum", "{\"values\":{\"$\":\"argument/list\"}}"), "{\"$\":\"s\"}"));
    kit_set(w, "piece:t:argument/list", "[10,{\"/\":{\"link@1\":{\"id\":\"prices\",\"path\":[\"apple\"]}}}]");
    kit_run(w, "t");
    kit_is(w, "piece:t", "13");
    kit_set(w, "prices/pear", "9");
    kit_restart(w);
    kit_runs(w, "t", "");
    kit_set(w, "prices/apple", "5");
    kit_restart(w);
    kit_runs(w, "t", "s");
    kit_is(w, "piece:t", "15");
    /* A circle of links is a failure, not a hang. */
    kit_set(w, "piece:t:argument/list", "[{\"/\":{\"link@1\":{\"id\":\"round\"}}}]");
    kit_set(w, "round", "{\"/\":{\"link@1\":{\"id\":\"round\"}}}");
    kit_run(w, "t");
    assert_int_equal(w->report.failed, 1);
    kit_end(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean_piece_restarts_with_zero_runs),
        cmocka_unit_test(unrelated_write_dirties_nothing),
        cmocka_unit_test(overlapping_write_dirties_the_chain),
        cmocka_unit_test(another_piece_dirties),
        cmocka_unit_test(another_space_dirties),
        cmocka_unit_test(condition_that_flips_rewires),
        cmocka_unit_test(same_value_leaves_the_rest_standing),
        cmocka_unit_test(changed_program_reuses_what_is_the_same),
        cmocka_unit_test(named_cell_survives_a_rebuild),
        cmocka_unit_test(failure_keeps_the_last_good_output),
        cmocka_unit_test(schemas_hold),
        cmocka_unit_test(overwritten_output_is_restored),
        cmocka_unit_test(effects),
        cmocka_unit_test(circle_is_named_and_the_rest_goes_on),
        cmocka_unit_test(demand_for_one_cell),
        cmocka_unit_test(observe_only_publishes_nothing),
        cmocka_unit_test(switched_off_stores_nothing),
        cmocka_unit_test(program_set_up_while_switched_off_is_not_taken_for_known),
        cmocka_unit_test(switched_off_demand_runs_what_it_needs),
        cmocka_unit_test(program_set_up_by_another_process_is_taken_up),
        cmocka_unit_test(run_of_the_program_before_does_not_stand),
        cmocka_unit_test(conflicts_are_tried_again_up_to_a_bound),
        cmocka_unit_test(debounce_waits_and_a_restart_does_not),
        cmocka_unit_test(branch_is_unknown),
        cmocka_unit_test(deleted_piece_leaves_nothing),
        cmocka_unit_test(links_in_values_are_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
