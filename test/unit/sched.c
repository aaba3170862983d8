/* The loop over a real space: what runs, what stands, across restarts (every handle closed and opened again; scenarios
 * do the same with real processes). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "os/file.h"
#include "scheduler/sched.h"

typedef struct world {
    stet_project *project;
    stet_space *space;
    stet_sched *sched;
    stet_sched_opts opts;
    stet_sched_report report;
    stet_buf ran; /* names of nodes in the order in which they ran */
} world;

static void on_event(void *ctx, const stet_sched_event *e) {
    world *w = ctx;
    if (e->kind == STET_SCHED_STARTED)
        stet_buf_printf(&w->ran, "%s%s", w->ran.len ? " " : "", e->node);
}

#define ok(call)                                                                                                       \
    do {                                                                                                               \
        stet_error err = STET_ERROR_INIT;                                                                              \
        stet_status status_ = (call);                                                                                  \
        if (status_ != STET_OK)                                                                                        \
            fail_msg("%s: %s: %s", #call, stet_status_name(status_), err.message);                                     \
    } while (0)

static void open_sched(world *w) {
    ok(stet_sched_open(w->project, w->space, "", &w->opts, &w->sched, &err));
}

static world *start_in(const char *dir) {
    world *w = stet_alloc_zero(sizeof *w);
    bool created;
    ok(stet_project_init(dir, &created, &err));
    ok(stet_project_open(dir, &w->project, &err));
    ok(stet_space_open(w->project, "main", 0, &w->space, &err));
    w->ran = (stet_buf)STET_BUF(0);
    w->opts = (stet_sched_opts){.persist = true, .ctx = w, .event = on_event};
    open_sched(w);
    return w;
}

static int next_dir;
static world *start(void) {
    char dir[32];
    snprintf(dir, sizeof dir, "p%d", next_dir++);
    return start_in(dir);
}

static void stop(world *w) {
    stet_release(w->report.problems);
    w->report.problems = stet_null();
    stet_sched_close(w->sched);
    stet_space_close(w->space);
    stet_project_close(w->project);
    stet_buf_release(&w->ran);
    free(w);
}

/* A new process: nothing in memory is left. */
static void restart(world *w) {
    char *root = stet_strdup(stet_project_root(w->project));
    stet_release(w->report.problems);
    w->report.problems = stet_null();
    stet_sched_close(w->sched);
    stet_space_close(w->space);
    stet_project_close(w->project);
    ok(stet_project_open(root, &w->project, &err));
    ok(stet_space_open(w->project, "main", 0, &w->space, &err));
    open_sched(w);
    stet_free(root);
}

static const stet_pattern_checks checks = {.module = stet_module_check};

static stet_sched_installed install(world *w, const char *piece, const char *text) {
    stet_pattern *p;
    stet_sched_installed out;
    ok(stet_pattern_parse("test.json", text, strlen(text), &checks, &p, NULL, &err));
    ok(stet_sched_install(w->sched, p, piece, stet_null(), stet_null(), &out, &err));
    stet_pattern_free(p);
    return out;
}

static void settle(world *w) {
    stet_buf_clear(&w->ran);
    stet_release(w->report.problems);
    ok(stet_sched_settle(w->sched, &w->report, &err));
}

static void run(world *w, const char *piece) {
    ok(stet_sched_demand_piece(w->sched, piece, &err));
    settle(w);
}

static void set(world *w, const char *cell, const char *json) {
    stet_tx *tx;
    stet_value v;
    ok(stet_json_parse(json, strlen(json), &v, &err));
    ok(stet_tx_begin(w->space, "", &tx, &err));
    ok(stet_tx_set(tx, cell, NULL, v, &err));
    ok(stet_tx_commit(tx, NULL, &err));
}

/* The value of a cell, links followed, as JSON. */
static void is(world *w, const char *cell, const char *expected) {
    char *id;
    stet_path path = STET_PATH_INIT;
    stet_value v;
    stet_error e = STET_ERROR_INIT;
    ok(stet_cell_parse(cell, false, &id, &path, &err));
    stet_status status = stet_sched_get(w->sched, id, NULL, stet_path_ref(&path), &v, &e);
    char *text =
        status == STET_OK ? stet_json_print(v, STET_JSON_CANONICAL, NULL) : stet_strdup(stet_status_name(status));
    if (strcmp(text, expected) != 0)
        fail_msg("%s: expected %s, found %s", cell, expected, text);
    if (status == STET_OK)
        stet_release(v);
    stet_error_clear(&e);
    stet_free(text);
    stet_free(id);
    stet_path_release(&path);
}

#define ran(w, expected) assert_string_equal(stet_buf_cstr(&(w)->ran), expected)

/* No mark, index row or mirror differs from what the log says. */
static void sound(world *w) {
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    ok(stet_observe_check(w->space, false, &problems, &found, &repaired, &err));
    if (found)
        fail_msg("check: %s", stet_buf_cstr(&problems));
    ok(stet_space_check(w->space, false, &problems, &found, &repaired, &err));
    if (found)
        fail_msg("check: %s", stet_buf_cstr(&problems));
    stet_buf_release(&problems);
}

#define REF(id, ref, inputs)                                                                                           \
    "{\"id\":\"" id "\",\"module\":{\"type\":\"ref\",\"ref\":\"" ref "\"},\"inputs\":" inputs "}"
#define PATTERN(argument, nodes, result)                                                                               \
    "{\"pattern\":1,\"name\":\"t\",\"argument\":{\"default\":" argument "},\"nodes\":[" nodes "],\"result\":" result "}"

static const char chain[] =
    PATTERN("{\"a\":1,\"b\":10,\"c\":5}",
            REF("x", "add", "[{\"$\":\"argument/a\"},1]") "," REF("y", "add", "[{\"$\":\"x\"},1]") "," REF(
                "z", "add", "[{\"$\":\"y\"},{\"$\":\"argument/b\"}]") "," REF("q", "add", "[{\"$\":\"argument/c\"},1]"),
            "{\"z\":{\"$\":\"z\"},\"q\":{\"$\":\"q\"}}");

static void clean_piece_restarts_with_zero_runs(void **state) {
    (void)state;
    world *w = start();
    stet_sched_installed in = install(w, "t", chain);
    assert_true(in.created);
    assert_int_equal(in.added, 4);
    run(w, "t");
    assert_int_equal(w->report.ran, 4);
    is(w, "piece:t", "{\"q\":6,\"z\":13}");
    restart(w);
    run(w, "t");
    assert_int_equal(w->report.runs, 0);
    assert_int_equal(w->report.loaded, 0);
    is(w, "piece:t/z", "13");
    sound(w);
    stop(w);
}

static void unrelated_write_dirties_nothing(void **state) {
    (void)state;
    world *w = start();
    install(w, "t", chain);
    run(w, "t");
    restart(w);
    set(w, "other", "1");
    set(w, "piece:t:argument/new", "1");
    run(w, "t");
    ran(w, "");
    sound(w);
    stop(w);
}

static void overlapping_write_dirties_the_chain(void **state) {
    (void)state;
    world *w = start();
    install(w, "t", chain);
    run(w, "t");
    restart(w);
    set(w, "piece:t:argument/a", "2");
    restart(w);
    run(w, "t");
    ran(w, "x y z");
    is(w, "piece:t/z", "14");
    set(w, "piece:t:argument/b", "20");
    restart(w);
    run(w, "t");
    ran(w, "z");
    is(w, "piece:t/z", "24");
    sound(w);
    stop(w);
}

static void another_piece_dirties(void **state) {
    (void)state;
    world *w = start();
    install(
        w, "a",
        PATTERN("{\"n\":1}", REF("double", "multiply", "[{\"$\":\"argument/n\"},2]"), "{\"d\":{\"$\":\"double\"}}"));
    install(w, "b",
            PATTERN("{}",
                    REF("plus", "add", "[{\"/\":{\"link@1\":{\"id\":\"piece:a\",\"path\":[\"d\"]}}},100]") "," REF(
                        "idle", "add", "[1,2]"),
                    "{\"r\":{\"$\":\"plus\"},\"i\":{\"$\":\"idle\"}}"));
    run(w, "a");
    run(w, "b");
    is(w, "piece:b/r", "102");
    restart(w);
    set(w, "piece:a:argument/n", "5");
    run(w, "a"); /* b is not running */
    ran(w, "double");
    restart(w);
    run(w, "b");
    ran(w, "plus");
    is(w, "piece:b/r", "110");
    /* Pull crosses pieces: what b needs of a is made fresh first. */
    set(w, "piece:a:argument/n", "7");
    restart(w);
    run(w, "b");
    ran(w, "double plus");
    is(w, "piece:b/r", "114");
    sound(w);
    stop(w);
}

static void another_space_dirties(void **state) {
    (void)state;
    world *w = start();
    stet_space *other;
    ok(stet_space_open(w->project, "other", 0, &other, &err));
    stet_tx *tx;
    ok(stet_tx_begin(other, "", &tx, &err));
    ok(stet_tx_set(tx, "rate/now", NULL, stet_int(3), &err));
    ok(stet_tx_commit(tx, NULL, &err));
    install(w, "t",
            PATTERN("{\"n\":2}",
                    REF("m", "multiply",
                        "[{\"$\":\"argument/n\"},{\"/"
                        "\":{\"link@1\":{\"id\":\"rate\",\"path\":[\"now\"],\"space\":\"other\"}}}]"),
                    "{\"$\":\"m\"}"));
    run(w, "t");
    is(w, "piece:t", "6");
    restart(w);
    ok(stet_tx_begin(other, "", &tx, &err));
    ok(stet_tx_set(tx, "rate/then", NULL, stet_int(3), &err));
    ok(stet_tx_commit(tx, NULL, &err));
    run(w, "t");
    ran(w, "");
    ok(stet_tx_begin(other, "", &tx, &err));
    ok(stet_tx_set(tx, "rate/now", NULL, stet_int(5), &err));
    ok(stet_tx_commit(tx, NULL, &err));
    restart(w);
    run(w, "t");
    ran(w, "m");
    is(w, "piece:t", "10");
    stet_space_close(other);
    sound(w);
    stop(w);
}

static void condition_that_flips_rewires(void **state) {
    (void)state;
    world *w = start();
    install(
        w, "t",
        PATTERN(
            "{\"c\":true,\"a\":1,\"b\":2}",
            REF("left", "add", "[{\"$\":\"argument/a\"},10]") "," REF(
                "right", "add",
                "[{\"$\":\"argument/b\"},20]") "," REF("pick", "ifElse",
                                                       "{\"condition\":{\"$\":\"argument/"
                                                       "c\"},\"then\":{\"$\":\"left\"},\"else\":{\"$\":\"right\"}}"),
            "{\"$\":\"pick\"}"));
    run(w, "t");
    is(w, "piece:t", "11");
    assert_null(strstr(stet_buf_cstr(&w->ran), "right"));
    restart(w);
    set(w, "piece:t:argument/b", "3"); /* read by nobody who counts */
    run(w, "t");
    ran(w, "");
    set(w, "piece:t:argument/c", "false");
    restart(w);
    run(w, "t");
    ran(w, "pick right pick");
    is(w, "piece:t", "23");
    set(w, "piece:t:argument/a", "9");
    restart(w);
    run(w, "t");
    ran(w, ""); /* left is dirty, and nobody wants it */
    set(w, "piece:t:argument/b", "4");
    restart(w);
    run(w, "t");
    ran(w, "right pick");
    sound(w);
    stop(w);
}

static void same_value_leaves_the_rest_standing(void **state) {
    (void)state;
    world *w = start();
    install(w, "t",
            PATTERN("{\"n\":5}",
                    REF("cap", "min", "[{\"$\":\"argument/n\"},3]") "," REF("next", "add", "[{\"$\":\"cap\"},1]"),
                    "{\"$\":\"next\"}"));
    run(w, "t");
    is(w, "piece:t", "4");
    set(w, "piece:t:argument/n", "8");
    restart(w);
    run(w, "t");
    ran(w, "cap");
    restart(w);
    run(w, "t");
    ran(w, "");
    sound(w);
    stop(w);
}

static void changed_program_reuses_what_is_the_same(void **state) {
    (void)state;
    world *w = start();
    install(w, "t", chain);
    run(w, "t");
    restart(w);
    /* q is gone, y computes otherwise, n is new; x and z are as they were. */
    stet_sched_installed in = install(
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
    run(w, "t");
    ran(w, "y z n");
    is(w, "piece:t", "{\"n\":16,\"z\":14}");
    is(w, "piece:t:node:q", "not_found"); /* what it owned went with it */
    restart(w);
    run(w, "t");
    ran(w, "");
    sound(w);
    stop(w);
}

static void named_cell_survives_a_rebuild(void **state) {
    (void)state;
    world *w = start();
    static const char first[] = "{\"pattern\":1,\"name\":\"t\",\"cells\":{\"k\":{\"default\":1}},\"nodes\":[" REF(
        "x", "add", "[{\"$\":\"k\"},1]") "],\"result\":{\"$\":\"x\"}}";
    static const char second[] = "{\"pattern\":1,\"name\":\"t\",\"cells\":{\"k\":{\"default\":1}},\"nodes\":[" REF(
        "x", "add", "[{\"$\":\"k\"},2]") "],\"result\":{\"$\":\"x\"}}";
    install(w, "t", first);
    run(w, "t");
    is(w, "piece:t", "2");
    set(w, "piece:t:cell:k", "40");
    install(w, "t", second);
    restart(w);
    run(w, "t");
    is(w, "piece:t", "42");
    stop(w);
}

static void failure_keeps_the_last_good_output(void **state) {
    (void)state;
    world *w = start();
    install(w, "t",
            PATTERN("{\"n\":2}",
                    REF("inv", "divide", "[100,{\"$\":\"argument/n\"}]") "," REF(
                        "next", "add", "[{\"$\":\"inv\"},1]") "," REF("apart", "add", "[1,1]"),
                    "{\"r\":{\"$\":\"next\"},\"s\":{\"$\":\"apart\"}}"));
    run(w, "t");
    is(w, "piece:t", "{\"r\":51,\"s\":2}");
    set(w, "piece:t:argument/n", "0");
    restart(w);
    run(w, "t");
    ran(w, "inv");
    assert_int_equal(w->report.failed, 1);
    assert_int_equal(w->report.failed_now, 1);
    is(w, "piece:t/r", "51");
    restart(w);
    run(w, "t");
    ran(w, ""); /* not again until something changed */
    assert_int_equal(w->report.failed, 1);
    assert_int_equal(w->report.failed_now, 0);
    w->opts.retry_failed = true;
    restart(w);
    run(w, "t");
    ran(w, "inv");
    w->opts.retry_failed = false;
    set(w, "piece:t:argument/n", "4");
    restart(w);
    run(w, "t");
    ran(w, "inv next");
    assert_int_equal(w->report.failed, 0);
    is(w, "piece:t/r", "26");
    restart(w);
    run(w, "t");
    ran(w, "");
    sound(w);
    stop(w);
}

static void schemas_hold(void **state) {
    (void)state;
    world *w = start();
    install(w, "t",
            "{\"pattern\":1,\"name\":\"t\",\"argument\":{\"default\":{\"n\":1}},\"nodes\":["
            "{\"id\":\"in\",\"module\":{\"type\":\"ref\",\"ref\":\"value\"},\"inputs\":[{\"$\":\"argument/n\"}],"
            "\"argumentSchema\":{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"}]}},"
            "{\"id\":\"out\",\"module\":{\"type\":\"ref\",\"ref\":\"multiply\"},\"inputs\":[{\"$\":\"argument/n\"},2],"
            "\"resultSchema\":{\"maximum\":10}}],\"result\":[{\"$\":\"in\"},{\"$\":\"out\"}]}");
    run(w, "t");
    is(w, "piece:t", "[1,2]");
    set(w, "piece:t:argument/n", "50");
    run(w, "t");
    assert_int_equal(w->report.failed, 1);
    is(w, "piece:t", "[50,2]");
    set(w, "piece:t:argument/n", "\"x\"");
    run(w, "t");
    assert_int_equal(w->report.failed, 2);
    stet_value first = stet_at(w->report.problems, 0);
    stet_value node = stet_get(first, "node");
    assert_string_equal(stet_as_string(&node, NULL), "in");
    sound(w);
    stop(w);
}

static void overwritten_output_is_restored(void **state) {
    (void)state;
    world *w = start();
    install(w, "t", chain);
    run(w, "t");
    set(w, "piece:t:node:y", "77");
    restart(w);
    run(w, "t");
    is(w, "piece:t/z", "13");
    is(w, "piece:t:node:y", "3");
    sound(w);
    stop(w);
}

static void effects(void **state) {
    (void)state;
    world *w = start();
    install(w, "t",
            "{\"pattern\":1,\"name\":\"t\",\"argument\":{\"default\":{\"n\":1}},\"cells\":{\"log\":{}},\"nodes\":["
            "{\"id\":\"skip\",\"kind\":\"effect\",\"module\":{\"type\":\"ref\",\"ref\":\"value\"},\"inputs\":[{\"$\":"
            "\"x\"}],\"output\":{\"$\":\"log/a\"}},"
            "{\"id\":\"again\",\"kind\":\"effect\",\"onRestart\":\"run\",\"module\":{\"type\":\"ref\",\"ref\":"
            "\"value\"},\"inputs\":[{\"$\":\"x\"}],"
            "\"output\":{\"$\":\"log/b\"}}," REF("x", "add", "[{\"$\":\"argument/n\"},1]") "]}");
    run(w, "t");
    assert_int_equal(w->report.effects, 2);
    settle(w);
    ran(w, "");
    restart(w);
    run(w, "t");
    ran(w, "again"); /* one says so, the other has had its effect */
    set(w, "piece:t:argument/n", "2");
    restart(w);
    run(w, "t");
    assert_int_equal(w->report.effects, 2);
    is(w, "piece:t:cell:log", "{\"a\":3,\"b\":3}");
    sound(w);
    stop(w);
}

static void circle_is_named_and_the_rest_goes_on(void **state) {
    (void)state;
    world *w = start();
    install(w, "t",
            PATTERN("{\"n\":1}",
                    REF("a", "add", "[{\"$\":\"b\"},1]") "," REF("b", "add", "{\"values\":[{\"$\":\"a\"},1]}") "," REF(
                        "free", "add", "[{\"$\":\"argument/n\"},1]"),
                    "{\"b\":{\"$\":\"b\"},\"free\":{\"$\":\"free\"}}"));
    /* Both fail first, for want of a number. */
    run(w, "t");
    is(w, "piece:t/free", "2");
    set(w, "piece:t:node:a", "1");
    run(w, "t");
    assert_true(w->report.aside >= 1);
    stet_value cycle = stet_get(stet_at(w->report.problems, stet_count(w->report.problems) - 1), "cycle");
    assert_non_null(strstr(stet_as_string(&cycle, NULL), "t/a -> t/b"));
    stop(w);
}

static void demand_for_one_cell(void **state) {
    (void)state;
    world *w = start();
    install(w, "t", chain);
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    stet_path_push(&path, "q");
    ok(stet_sched_demand_cell(w->sched, "piece:t", NULL, stet_path_ref(&path), &err));
    settle(w);
    ran(w, "q");
    is(w, "piece:t/q", "6");
    restart(w);
    run(w, "t");
    ran(w, "x y z");
    stet_path_release(&path);
    sound(w);
    stop(w);
}

static void observe_only_publishes_nothing(void **state) {
    (void)state;
    world *w = start();
    w->opts.observe_only = true;
    restart(w);
    install(w, "t", PATTERN("{\"n\":1}", REF("x", "add", "[{\"$\":\"argument/n\"},1]"), "{\"$\":\"x\"}"));
    run(w, "t");
    ran(w, "x");
    is(w, "piece:t:node:x", "not_found");
    w->opts.observe_only = false;
    restart(w);
    run(w, "t");
    ran(w, "x");
    is(w, "piece:t", "2");
    sound(w);
    stop(w);
}

static void switched_off_stores_nothing(void **state) {
    (void)state;
    world *w = start();
    install(w, "t", chain);
    run(w, "t");
    w->opts.persist = false;
    restart(w);
    run(w, "t");
    assert_int_equal(w->report.ran, 4); /* nothing is known */
    set(w, "piece:t:argument/a", "5");
    settle(w);
    ran(w, "x y z");
    is(w, "piece:t/z", "17");
    /* On again: what was recorded before does not pass for fresh. */
    set(w, "piece:t:argument/c", "6");
    w->opts.persist = true;
    restart(w);
    run(w, "t");
    is(w, "piece:t", "{\"q\":7,\"z\":17}");
    sound(w);
    stop(w);
}

static void branch_is_unknown(void **state) {
    (void)state;
    world *w = start();
    install(w, "t", chain);
    run(w, "t");
    ok(stet_branch_create(w->space, "try", "", -1, &err));
    stet_sched *on_branch;
    ok(stet_sched_open(w->project, w->space, "try", &w->opts, &on_branch, &err));
    ok(stet_sched_demand_piece(on_branch, "t", &err));
    stet_sched_report r;
    ok(stet_sched_settle(on_branch, &r, &err));
    assert_int_equal(r.ran, 4);
    stet_release(r.problems);
    stet_sched_close(on_branch);
    ok(stet_sched_open(w->project, w->space, "try", &w->opts, &on_branch, &err));
    ok(stet_sched_demand_piece(on_branch, "t", &err));
    ok(stet_sched_settle(on_branch, &r, &err));
    assert_int_equal(r.ran, 0);
    stet_release(r.problems);
    stet_sched_close(on_branch);
    restart(w);
    run(w, "t");
    ran(w, ""); /* the trunk stands as it did */
    sound(w);
    stop(w);
}

static void deleted_piece_leaves_nothing(void **state) {
    (void)state;
    world *w = start();
    install(w, "t", chain);
    install(w, "t2", chain);
    run(w, "t");
    ok(stet_sched_delete(w->sched, "t", &err));
    stet_value names;
    bool more;
    ok(stet_piece_names(w->space, 0, NULL, 10, &names, &more, &err));
    assert_int_equal(stet_count(names), 1);
    stet_release(names);
    stet_arena arena = STET_ARENA_INIT;
    stet_doc_info *at;
    size_t count;
    ok(stet_space_list(w->space, 0, &(stet_doc_filter){.prefix = "piece:t:", .limit = 10}, &arena, &at, &count, &more,
                       &err));
    assert_int_equal(count, 0);
    stet_arena_release(&arena);
    restart(w);
    run(w, "t2");
    assert_int_equal(w->report.ran, 4);
    sound(w);
    stop(w);
}

static void links_in_values_are_followed(void **state) {
    (void)state;
    world *w = start();
    set(w, "prices", "{\"apple\":3,\"pear\":4}");
    install(w, "t",
            PATTERN("{\"list\":[1,2]}", REF("s", "sum", "{\"values\":{\"$\":\"argument/list\"}}"), "{\"$\":\"s\"}"));
    set(w, "piece:t:argument/list", "[10,{\"/\":{\"link@1\":{\"id\":\"prices\",\"path\":[\"apple\"]}}}]");
    run(w, "t");
    is(w, "piece:t", "13");
    set(w, "prices/pear", "9");
    restart(w);
    run(w, "t");
    ran(w, "");
    set(w, "prices/apple", "5");
    restart(w);
    run(w, "t");
    ran(w, "s");
    is(w, "piece:t", "15");
    /* A circle of links is a failure, not a hang. */
    set(w, "piece:t:argument/list", "[{\"/\":{\"link@1\":{\"id\":\"round\"}}}]");
    set(w, "round", "{\"/\":{\"link@1\":{\"id\":\"round\"}}}");
    run(w, "t");
    assert_int_equal(w->report.failed, 1);
    sound(w);
    stop(w);
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
        cmocka_unit_test(branch_is_unknown),
        cmocka_unit_test(deleted_piece_leaves_nothing),
        cmocka_unit_test(links_in_values_are_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
