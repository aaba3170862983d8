/* Children: what runs and what stands when lists change, across restarts (every handle closed and opened again), and
 * what is left of a child that is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "graph/child.h"
#include "graph/piece.h"
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

#define CHILD(nodes, result) "{\"pattern\":1,\"name\":\"row\",\"nodes\":[" nodes "],\"result\":" result "}"
#define EACH(id, ref, key, pattern, inputs)                                                                            \
    "{\"id\":\"" id "\",\"module\":{\"type\":\"ref\",\"ref\":\"" ref "\"" key ",\"pattern\":" pattern                  \
    "},\"inputs\":" inputs "}"
#define BY_ID  ",\"key\":\"id\""
#define LIST   "{\"list\":{\"$\":\"argument/rows\"}}"
#define DOUBLE CHILD(REF("double", "multiply", "[{\"$\":\"argument/element/n\"},2]"), "{\"$\":\"double\"}")
#define ROWS   "[{\"id\":\"a\",\"n\":1},{\"id\":\"b\",\"n\":2},{\"id\":\"c\",\"n\":3}]"

static const char doubles[] =
    PATTERN("{\"rows\":" ROWS "}", EACH("rows", "map", BY_ID, DOUBLE, LIST), "{\"$\":\"rows\"}");

static size_t documents(world *w, const char *prefix) {
    stet_arena arena = STET_ARENA_INIT;
    stet_doc_filter filter = {.prefix = prefix, .limit = 1000};
    stet_doc_info *at;
    size_t count;
    bool more;
    ok(stet_space_list(w->space, 0, &filter, &arena, &at, &count, &more, &err));
    stet_arena_release(&arena);
    return count;
}

static bool recorded(world *w, const char *piece, const char *action) {
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    stet_action_key key = {.piece = piece, .action = action};
    bool there = stet_observe_find(w->space, 0, &key, &arena, &r, NULL) == STET_OK;
    stet_arena_release(&arena);
    return there;
}

static void one_edited_field_runs_one_row(void **state) {
    (void)state;
    world *w = start();
    install(w, "t", doubles);
    run(w, "t");
    ran(w, "rows rows[a].double rows[b].double rows[c].double");
    is(w, "piece:t", "[2,4,6]");
    for (int i = 0; i < 2; i++) { /* in the same process, and in a new one */
        set(w, "piece:t:argument/rows/1/n", i ? "8" : "7");
        run(w, "t");
        ran(w, "rows rows[b].double");
        is(w, "piece:t", i ? "[2,16,6]" : "[2,14,6]");
        restart(w);
        run(w, "t");
        ran(w, "");
    }
    /* A field that the child does not read: its element is given to it, and it stands. */
    set(w, "piece:t:argument/rows/1/text", "\"x\"");
    run(w, "t");
    ran(w, "rows");
    sound(w);
    stop(w);
}

static void appended_row_runs_alone(void **state) {
    (void)state;
    world *w = start();
    install(w, "t", doubles);
    run(w, "t");
    restart(w);
    set(w, "piece:t:argument/rows/3", "{\"id\":\"d\",\"n\":4}");
    run(w, "t");
    ran(w, "rows rows[d].double");
    is(w, "piece:t", "[2,4,6,8]");
    sound(w);
    stop(w);
}

static void first_row_removed_touches_no_other(void **state) {
    (void)state;
    world *w = start();
    install(w, "t", doubles);
    run(w, "t");
    set(w, "piece:t:argument/rows", "[{\"id\":\"b\",\"n\":2},{\"id\":\"c\",\"n\":3}]");
    run(w, "t");
    ran(w, "rows");
    is(w, "piece:t", "[4,6]");
    assert_int_equal(documents(w, "piece:t:child:rows[a]"), 0);
    assert_int_equal(documents(w, "piece:t:node:rows[a]"), 0);
    assert_false(recorded(w, "piece:t", "rows[a].double"));
    assert_true(recorded(w, "piece:t", "rows[b].double"));
    sound(w);
    restart(w);
    run(w, "t");
    ran(w, "");
    /* And back: it is a new child. */
    set(w, "piece:t:argument/rows", ROWS);
    run(w, "t");
    ran(w, "rows rows[a].double");
    is(w, "piece:t", "[2,4,6]");
    sound(w);
    stop(w);
}

static void moved_rows_stand(void **state) {
    (void)state;
    world *w = start();
    install(w, "t", doubles);
    run(w, "t");
    restart(w);
    set(w, "piece:t:argument/rows", "[{\"id\":\"c\",\"n\":3},{\"id\":\"a\",\"n\":1},{\"id\":\"b\",\"n\":2}]");
    run(w, "t");
    ran(w, "rows");
    is(w, "piece:t", "[6,2,4]");
    stop(w);
}

static void keys_that_repeat_are_told_apart(void **state) {
    (void)state;
    world *w = start();
    install(w, "t", doubles);
    set(w, "piece:t:argument/rows",
        "[{\"id\":\"x\",\"n\":1},{\"id\":\"x\",\"n\":2},{\"id\":7,\"n\":3},{\"id\":\"7\",\"n\":4},{\"n\":5}]");
    run(w, "t");
    ran(w, "rows rows[x].double rows[x,2].double rows[7].double rows[%227%22].double rows[null].double");
    is(w, "piece:t", "[2,4,6,8,10]");
    sound(w);
    stop(w);
}

static void without_a_key_an_element_is_its_own(void **state) {
    (void)state;
    world *w = start();
    install(w, "t",
            PATTERN("{\"rows\":[3,5,3]}",
                    EACH("rows", "map", "",
                         CHILD(REF("more", "add", "[{\"$\":\"argument/element\"},1]"), "{\"$\":\"more\"}"), LIST),
                    "{\"$\":\"rows\"}"));
    run(w, "t");
    ran(w, "rows rows[3].more rows[5].more rows[3,2].more");
    set(w, "piece:t:argument/rows", "[5,3,4,3]");
    run(w, "t");
    ran(w, "rows rows[4].more");
    is(w, "piece:t", "[6,4,5,4]");
    stop(w);
}

static void named_cell_of_a_child_survives(void **state) {
    (void)state;
    world *w = start();
    const char *first = PATTERN(
        "{\"rows\":" ROWS "}",
        EACH("rows", "map", BY_ID,
             "{\"pattern\":1,\"name\":\"row\",\"cells\":{\"plus\":{\"default\":0}},\"nodes\":[" REF(
                 "sum", "add", "[{\"$\":\"argument/element/n\"},{\"$\":\"plus\"}]") "],\"result\":{\"$\":\"sum\"}}",
             LIST),
        "{\"$\":\"rows\"}");
    const char *second =
        PATTERN("{\"rows\":" ROWS "}",
                EACH("rows", "map", BY_ID,
                     "{\"pattern\":1,\"name\":\"row\",\"cells\":{\"plus\":{\"default\":0}},\"nodes\":[" REF(
                         "sum", "subtract",
                         "[{\"$\":\"argument/element/n\"},{\"$\":\"plus\"}]") "],\"result\":{\"$\":\"sum\"}}",
                     LIST),
                "{\"$\":\"rows\"}");
    install(w, "t", first);
    run(w, "t");
    set(w, "piece:t:cell:rows[b].plus", "10");
    run(w, "t");
    ran(w, "rows[b].sum");
    is(w, "piece:t", "[1,12,3]");
    set(w, "piece:t:argument/rows/1/n", "5");
    run(w, "t");
    is(w, "piece:t", "[1,15,3]");
    restart(w);
    install(w, "t", second);
    run(w, "t");
    ran(w, "rows rows[a].sum rows[b].sum rows[c].sum");
    is(w, "piece:t", "[1,-5,3]");
    set(w, "piece:t:argument/rows", "[]");
    run(w, "t");
    is(w, "piece:t", "[]");
    assert_int_equal(documents(w, "piece:t:cell:"), 0);
    assert_int_equal(documents(w, "piece:t:child:"), 0);
    sound(w);
    stop(w);
}

static void changed_child_pattern_keeps_what_is_the_same(void **state) {
    (void)state;
    world *w = start();
    install(w, "t",
            PATTERN("{\"rows\":" ROWS "}",
                    EACH("rows", "map", BY_ID,
                         CHILD(REF("x", "add", "[{\"$\":\"argument/element/n\"},1]") "," REF("y", "add",
                                                                                             "[{\"$\":\"x\"},1]"),
                               "{\"$\":\"y\"}"),
                         LIST),
                    "{\"$\":\"rows\"}"));
    run(w, "t");
    is(w, "piece:t", "[3,4,5]");
    restart(w);
    install(w, "t",
            PATTERN("{\"rows\":" ROWS "}",
                    EACH("rows", "map", BY_ID,
                         CHILD(REF("x", "add", "[{\"$\":\"argument/element/n\"},1]") "," REF("z", "add",
                                                                                             "[{\"$\":\"x\"},5]"),
                               "{\"z\":{\"$\":\"z\"}}"),
                         LIST),
                    "{\"$\":\"rows\"}"));
    run(w, "t");
    ran(w, "rows rows[a].z rows[b].z rows[c].z");
    is(w, "piece:t", "[{\"z\":7},{\"z\":8},{\"z\":9}]");
    assert_int_equal(documents(w, "piece:t:node:rows[a].y"), 0);
    assert_false(recorded(w, "piece:t", "rows[a].y"));
    sound(w);
    stop(w);
}

static void gone_coordinator_takes_its_children(void **state) {
    (void)state;
    world *w = start();
    install(w, "t", doubles);
    run(w, "t");
    install(w, "t",
            PATTERN("{\"rows\":" ROWS "}", REF("other", "count", "{\"values\":{\"$\":\"argument/rows\"}}"),
                    "{\"$\":\"other\"}"));
    run(w, "t");
    is(w, "piece:t", "3");
    assert_int_equal(documents(w, "piece:t:child:"), 0);
    assert_int_equal(documents(w, "piece:t:children:"), 0);
    assert_int_equal(documents(w, "piece:t:node:rows"), 0);
    assert_false(recorded(w, "piece:t", "rows[a].double"));
    sound(w);
    stop(w);
}

static void filter_and_reduce(void **state) {
    (void)state;
    world *w = start();
    install(w, "t",
            PATTERN("{\"rows\":" ROWS "}",
                    EACH("big", "filter", BY_ID,
                         CHILD(REF("yes", "greater", "[{\"$\":\"argument/element/n\"},1]"), "{\"$\":\"yes\"}"),
                         LIST) "," EACH("all", "reduce", BY_ID,
                                        CHILD(REF("acc", "add",
                                                  "[{\"$\":\"argument/accumulator\"},{\"$\":\"argument/element/n\"}]"),
                                              "{\"$\":\"acc\"}"),
                                        "{\"list\":{\"$\":\"argument/rows\"},\"initial\":100}"),
                    "{\"big\":{\"$\":\"big\"},\"all\":{\"$\":\"all\"}}"));
    run(w, "t");
    is(w, "piece:t", "{\"all\":106,\"big\":[{\"id\":\"b\",\"n\":2},{\"id\":\"c\",\"n\":3}]}");
    restart(w);
    set(w, "piece:t:argument/rows/2/n", "0");
    run(w, "t");
    is(w, "piece:t", "{\"all\":103,\"big\":[{\"id\":\"b\",\"n\":2}]}");
    set(w, "piece:t:argument/rows", "[]");
    run(w, "t");
    is(w, "piece:t", "{\"all\":100,\"big\":[]}");
    sound(w);
    stop(w);
}

/* Two links of a chain are edited, and others that stand are between them. */
static void each_link_of_a_chain_runs_once(void **state) {
    (void)state;
    world *w = start();
    install(
        w, "t",
        PATTERN(
            "{\"rows\":[{\"id\":\"a\",\"n\":1},{\"id\":\"b\",\"n\":2},{\"id\":\"c\",\"n\":3},{\"id\":\"d\",\"n\":4}]}",
            EACH("all", "reduce", BY_ID,
                 CHILD(REF("x", "add", "[{\"$\":\"argument/accumulator\"},{\"$\":\"argument/element/n\"}]"),
                       "{\"$\":\"x\"}"),
                 "{\"list\":{\"$\":\"argument/rows\"},\"initial\":100}"),
            "{\"$\":\"all\"}"));
    run(w, "t");
    for (int i = 0; i < 2; i++) { /* in the same process, and in a new one */
        set(w, "piece:t:argument/rows/0/n", i ? "20" : "10");
        set(w, "piece:t:argument/rows/3/n", i ? "50" : "40");
        if (i)
            restart(w);
        run(w, "t");
        ran(w, "all all[a].x all[b].x all[c].x all[d].x");
        is(w, "piece:t", i ? "175" : "155");
    }
    /* In another order: what they read last is not what they read now, and some run twice. */
    set(w, "piece:t:argument/rows",
        "[{\"id\":\"d\",\"n\":1},{\"id\":\"b\",\"n\":2},{\"id\":\"a\",\"n\":3},{\"id\":\"c\",\"n\":5}]");
    run(w, "t");
    is(w, "piece:t", "111");
    sound(w);
    stop(w);
}

static void outer_cells_and_nested_maps(void **state) {
    (void)state;
    world *w = start();
    install(
        w, "t",
        PATTERN(
            "{\"rows\":[{\"id\":\"a\",\"ns\":[1,2]},{\"id\":\"b\",\"ns\":[3]}],\"factor\":10}",
            EACH(
                "rows", "map", BY_ID,
                CHILD(
                    EACH(
                        "ns", "map", "",
                        CHILD(REF("x", "multiply", "[{\"$\":\"argument/element\"},{\"$\":\"argument/factor\"}]"),
                              "{\"$\":\"x\"}"),
                        "{\"list\":{\"$\":\"argument/element/ns\"},\"factor\":{\"$\":\"argument/factor\"}}") "," REF("s"
                                                                                                                     "u"
                                                                                                                     "m",
                                                                                                                     "s"
                                                                                                                     "u"
                                                                                                                     "m",
                                                                                                                     "{"
                                                                                                                     "\"values\":{\"$\":\"ns\"}}"),
                    "{\"sum\":{\"$\":\"sum\"}}"),
                "{\"list\":{\"$\":\"argument/rows\"},\"factor\":{\"$\":\"argument/factor\"}}"),
            "{\"$\":\"rows\"}"));
    run(w, "t");
    is(w, "piece:t", "[{\"sum\":30},{\"sum\":30}]");
    restart(w);
    set(w, "piece:t:argument/rows/0/ns/1", "5");
    run(w, "t");
    ran(w, "rows rows[a].ns rows[a].ns[5].x rows[a].sum");
    is(w, "piece:t", "[{\"sum\":60},{\"sum\":30}]");
    set(w, "piece:t:argument/factor", "1");
    run(w, "t");
    is(w, "piece:t", "[{\"sum\":6},{\"sum\":3}]");
    set(w, "piece:t:argument/rows", "[{\"id\":\"b\",\"ns\":[3]}]");
    run(w, "t");
    ran(w, "rows");
    assert_int_equal(documents(w, "piece:t:child:rows[a]"), 0);
    assert_int_equal(documents(w, "piece:t:children:rows[a]"), 0);
    assert_false(recorded(w, "piece:t", "rows[a].ns[1].x"));
    sound(w);
    stop(w);
}

static void map_over_a_map_runs_one_of_each(void **state) {
    (void)state;
    world *w = start();
    install(w, "t",
            PATTERN("{\"rows\":" ROWS "}",
                    EACH("rows", "map", BY_ID, DOUBLE, LIST) "," EACH(
                        "more", "map", "", CHILD(REF("x", "add", "[{\"$\":\"argument/element\"},1]"), "{\"$\":\"x\"}"),
                        "{\"list\":{\"$\":\"rows\"}}"),
                    "{\"$\":\"more\"}"));
    run(w, "t");
    is(w, "piece:t", "[3,5,7]");
    restart(w);
    set(w, "piece:t:argument/rows/1/n", "10");
    run(w, "t");
    assert_int_equal(w->report.runs, 3); /* rows, one of its children, and the one behind it */
    is(w, "piece:t", "[3,21,7]");
    sound(w);
    stop(w);
}

static void who_only_counts_needs_no_child(void **state) {
    (void)state;
    world *w = start();
    install(w, "t",
            PATTERN("{\"rows\":" ROWS "}",
                    EACH("rows", "map", BY_ID, DOUBLE, LIST) "," REF("n", "count", "{\"values\":{\"$\":\"rows\"}}"),
                    "{\"$\":\"n\"}"));
    run(w, "t");
    is(w, "piece:t", "3");
    stop(w);
}

static void untaken_branch_has_no_children(void **state) {
    (void)state;
    world *w = start();
    install(w, "t",
            PATTERN("{\"rows\":" ROWS ",\"want\":false}",
                    EACH("rows", "map", BY_ID, DOUBLE, LIST) "," REF(
                        "x", "when", "{\"condition\":{\"$\":\"argument/want\"},\"value\":{\"$\":\"rows\"}}"),
                    "{\"$\":\"x\"}"));
    run(w, "t");
    ran(w, "x");
    set(w, "piece:t:argument/want", "true");
    run(w, "t");
    is(w, "piece:t", "[2,4,6]");
    set(w, "piece:t:argument/want", "false");
    run(w, "t");
    set(w, "piece:t:argument/rows/0/n", "9");
    run(w, "t");
    ran(w, "");
    /* And inside children. */
    install(
        w, "u",
        PATTERN("{\"rows\":[{\"id\":\"a\",\"yes\":true,\"n\":1},{\"id\":\"b\",\"yes\":false,\"n\":2}]}",
                EACH("rows", "map", BY_ID,
                     CHILD(REF("cost", "multiply", "[{\"$\":\"argument/element/n\"},2]") "," REF(
                               "x", "ifElse",
                               "{\"condition\":{\"$\":\"argument/element/yes\"},\"then\":{\"$\":\"cost\"},\"else\":0}"),
                           "{\"$\":\"x\"}"),
                     LIST),
                "{\"$\":\"rows\"}"));
    run(w, "u");
    is(w, "piece:u", "[2,0]");
    assert_null(strstr(stet_buf_cstr(&w->ran), "rows[b].cost"));
    sound(w);
    stop(w);
}

/* Children that were looked at while nobody wanted them are found when somebody does, although it is no run of their
 * coordinator that makes them dirty. */
static void children_wanted_again_run(void **state) {
    (void)state;
    world *w = start();
    install(
        w, "t",
        PATTERN(
            "{\"rows\":" ROWS ",\"factor\":1,\"want\":true}",
            EACH(
                "rows", "map", BY_ID,
                CHILD(REF("y", "multiply", "[{\"$\":\"argument/element/n\"},{\"$\":\"argument/factor\"}]") "," REF(
                          "x", "add", "[{\"$\":\"y\"},1]"),
                      "{\"$\":\"x\"}"),
                "{\"list\":{\"$\":\"argument/rows\"},\"factor\":{\"$\":\"argument/factor\"}}") "," REF("x", "when",
                                                                                                       "{\"condition\":"
                                                                                                       "{\"$\":"
                                                                                                       "\"argument/"
                                                                                                       "want\"},"
                                                                                                       "\"value\":{\"$"
                                                                                                       "\":\"rows\"}}"),
            "{\"$\":\"x\"}"));
    run(w, "t");
    is(w, "piece:t", "[2,3,4]");
    set(w, "piece:t:argument/want", "false");
    run(w, "t");
    set(w, "piece:t:argument/factor", "10");
    run(w, "t");
    ran(w, "");
    set(w, "piece:t:argument/want", "true");
    run(w, "t");
    is(w, "piece:t", "[11,21,31]");
    sound(w);
    stop(w);
}

/* Only a part is wanted first, then all: one process that is asked twice. */
static void children_of_another_part_run_when_it_is_wanted(void **state) {
    (void)state;
    world *w = start();
    install(
        w, "t",
        PATTERN(
            "{\"rows\":" ROWS ",\"factor\":1}",
            EACH("rows", "map", BY_ID,
                 CHILD(REF("x", "multiply", "[{\"$\":\"argument/element/n\"},{\"$\":\"argument/factor\"}]"),
                       "{\"$\":\"x\"}"),
                 "{\"list\":{\"$\":\"argument/rows\"},\"factor\":{\"$\":\"argument/factor\"}}") "," REF("n", "count",
                                                                                                        "{\"values\":{"
                                                                                                        "\"$\":"
                                                                                                        "\"argument/"
                                                                                                        "rows\"}}"),
            "{\"rows\":{\"$\":\"rows\"},\"n\":{\"$\":\"n\"}}"));
    run(w, "t");
    restart(w);
    set(w, "piece:t:argument/factor", "10");
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    stet_path_push(&path, "n");
    ok(stet_sched_demand_cell(w->sched, "piece:t", NULL, stet_path_ref(&path), &err));
    stet_path_release(&path);
    settle(w);
    ran(w, "");
    run(w, "t");
    assert_int_equal(w->report.runs, 3);
    is(w, "piece:t", "{\"n\":3,\"rows\":[10,20,30]}");
    sound(w);
    stop(w);
}

/* What a coordinator gave its children is its own. */
static void element_changed_by_somebody_else_is_put_right(void **state) {
    (void)state;
    world *w = start();
    install(w, "t", doubles);
    run(w, "t");
    for (int i = 0; i < 2; i++) { /* noticed by one that is there, and by one that starts */
        set(w, "piece:t:child:rows[b]/argument/element/n", "50");
        if (i)
            restart(w);
        run(w, "t");
        ran(w, "rows rows[b].double");
        is(w, "piece:t", "[2,4,6]");
        is(w, "piece:t:child:rows[b]/argument/element/n", "2");
        run(w, "t");
        ran(w, "");
    }
    /* Together with an edit of the list. */
    set(w, "piece:t:child:rows[b]/argument/element/n", "50");
    set(w, "piece:t:argument/rows/0/n", "7");
    restart(w);
    run(w, "t");
    is(w, "piece:t", "[14,4,6]");
    sound(w);
    /* A part that no action reads: found by a check, which has the coordinator look at all of them. */
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    set(w, "piece:t:child:rows[c]/argument/element/text", "\"mine\"");
    run(w, "t");
    ran(w, "");
    ok(stet_children_check(w->space, true, &problems, &found, &repaired, &err));
    assert_int_equal(found, 1);
    assert_int_equal(repaired, 1);
    assert_non_null(strstr(stet_buf_cstr(&problems), "rows[c]"));
    ok(stet_children_check(w->space, false, &problems, &found, &repaired, &err));
    assert_int_equal(found, 0);
    restart(w);
    run(w, "t");
    is(w, "piece:t:child:rows[c]/argument/element", "{\"id\":\"c\",\"n\":3}");
    ok(stet_children_check(w->space, false, &problems, &found, &repaired, &err));
    assert_int_equal(found, 0);
    stet_buf_release(&problems);
    sound(w);
    stop(w);
}

/* The node computes a pattern, which becomes its child. */
static void action_that_returns_a_pattern(void **state) {
    (void)state;
    world *w = start();
    static const char one[] =
        "{\"pattern\":1,\"name\":\"c\",\"argument\":{\"default\":{\"n\":5}},\"cells\":{\"mine\":{\"default\":1}},"
        "\"nodes\":[" REF("x", "add", "[{\"$\":\"argument/n\"},{\"$\":\"mine\"}]") "," REF("y", "add",
                                                                                           "[{\"$\":"
                                                                                           "\"x\"},"
                                                                                           "1]") "],"
                                                                                                 "\""
                                                                                                 "re"
                                                                                                 "su"
                                                                                                 "lt"
                                                                                                 "\""
                                                                                                 ":{"
                                                                                                 "\""
                                                                                                 "$"
                                                                                                 "\""
                                                                                                 ":"
                                                                                                 "\""
                                                                                                 "y"
                                                                                                 "\""
                                                                                                 "}"
                                                                                                 "}";
    static const char two[] =
        "{\"pattern\":1,\"name\":\"c\",\"argument\":{\"default\":{\"n\":5}},\"cells\":{\"mine\":{\"default\":1}},"
        "\"nodes\":[" REF("x", "add", "[{\"$\":\"argument/n\"},{\"$\":\"mine\"}]") "," REF(
            "z",
            "multipl"
            "y",
            "[{\"$\":"
            "\"x\"},"
            "10]") "]"
                   ","
                   "\"result\":{\"z\":{\"$\":\"z\"}}}";
    install(w, "t",
            PATTERN("{\"n\":5}",
                    "{\"id\":\"made\",\"returns\":\"pattern\",\"module\":{\"type\":\"ref\",\"ref\":\"value\"},"
                    "\"inputs\":{\"value\":{\"$\":\"argument/program\"}}}," REF("after", "value", "[{\"$\":\"made\"}]"),
                    "{\"$\":\"after\"}"));
    run(w, "t");
    is(w, "piece:t", "null");
    set(w, "piece:t:argument/program", one);
    run(w, "t");
    is(w, "piece:t", "7");
    set(w, "piece:t:cell:made[].mine", "3");
    run(w, "t");
    ran(w, "made[].x made[].y after");
    restart(w);
    run(w, "t");
    ran(w, "");
    is(w, "piece:t", "9");
    set(w, "piece:t:argument/program", two);
    run(w, "t");
    ran(w, "made made[].z after"); /* x is what it was */
    is(w, "piece:t", "{\"z\":80}");
    assert_int_equal(documents(w, "piece:t:node:made[].y"), 0);
    assert_false(recorded(w, "piece:t", "made[].y"));
    restart(w);
    set(w, "piece:t:cell:made[].mine", "4");
    run(w, "t");
    ran(w, "made[].x made[].z after");
    set(w, "piece:t:argument/program", "{\"pattern\":1}");
    run(w, "t");
    assert_int_equal(w->report.failed, 1);
    is(w, "piece:t", "{\"z\":90}");
    set(w, "piece:t:argument/program", "null");
    run(w, "t");
    is(w, "piece:t", "null");
    assert_int_equal(documents(w, "piece:t:cell:"), 0);
    assert_int_equal(documents(w, "piece:t:child:"), 0);
    sound(w);
    stop(w);
}

static void bad_children_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *says;
    } bad[] = {
        {EACH("r", "map", "", CHILD(REF("x", "value", "[{\"$\":\"argument/other\"}]"), "{\"$\":\"x\"}"), LIST),
         "argument/other"},
        {EACH("r", "map", "", CHILD(REF("x", "valu", "[1]"), "{\"$\":\"x\"}"), LIST), "valu"},
        {EACH("r", "map", "", "7", LIST), "pattern"},
        {EACH("r", "map", ",\"key\":1", DOUBLE, LIST), "key"},
        {EACH("r", "map", "", DOUBLE, "{\"list\":[],\"element\":1}"), "element"},
        {"{\"id\":\"r\",\"resultSchema\":{},\"module\":{\"type\":\"ref\",\"ref\":\"map\",\"pattern\":" DOUBLE
         "},\"inputs\":" LIST "}",
         "schemas"},
        {REF("r", "map", LIST), "pattern"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *text = stet_asprintf("{\"pattern\":1,\"name\":\"t\",\"nodes\":[%s]}", bad[i].pattern);
        stet_pattern *p;
        stet_error e = STET_ERROR_INIT;
        assert_int_equal(stet_pattern_parse("bad.json", text, strlen(text), &checks, &p, NULL, &e), STET_INVALID);
        if (!strstr(e.message, bad[i].says))
            fail_msg("%zu: %s", i, e.message);
        stet_error_clear(&e);
        stet_free(text);
    }
    /* Too deep. */
    char *deep = stet_strdup(DOUBLE);
    for (int i = 0; i < 9; i++) {
        char *more = stet_asprintf(CHILD(EACH("r", "map", "", "%s", "{\"list\":[]}"), "{\"$\":\"r\"}"), deep);
        stet_free(deep);
        deep = more;
    }
    stet_pattern *p;
    stet_error e = STET_ERROR_INIT;
    assert_int_not_equal(stet_pattern_parse("deep.json", deep, strlen(deep), &checks, &p, NULL, &e), STET_OK);
    assert_non_null(strstr(e.message, "inside each other"));
    stet_error_clear(&e);
    stet_free(deep);
}

static void a_list_that_is_none_fails(void **state) {
    (void)state;
    world *w = start();
    install(w, "t", doubles);
    run(w, "t");
    set(w, "piece:t:argument/rows", "5");
    run(w, "t");
    assert_int_equal(w->report.failed, 1);
    is(w, "piece:t", "[2,4,6]"); /* the last good one */
    set(w, "piece:t:argument/rows", ROWS);
    run(w, "t");
    assert_int_equal(w->report.failed, 0);
    sound(w);
    stop(w);
}

static void failure_of_a_child_goes_with_it(void **state) {
    (void)state;
    world *w = start();
    install(w, "t", doubles);
    set(w, "piece:t:argument/rows/1/n", "\"no number\"");
    run(w, "t");
    assert_int_equal(w->report.failed, 1);
    set(w, "piece:t:argument/rows", "[{\"id\":\"a\",\"n\":1}]");
    run(w, "t");
    assert_int_equal(w->report.failed, 0);
    is(w, "piece:t:failures", "{}");
    stop(w);
}

static void switched_off_children_run_every_time(void **state) {
    (void)state;
    world *w = start();
    w->opts.persist = false;
    stet_observe_switch(w->space, false);
    restart(w);
    install(w, "t", doubles);
    run(w, "t");
    is(w, "piece:t", "[2,4,6]");
    restart(w);
    run(w, "t");
    assert_int_equal(w->report.runs, 4);
    is(w, "piece:t", "[2,4,6]");
    stop(w);
}

static void ids_are_read_from_either_end(void **state) {
    (void)state;
    static const char *const good[] = {"a", "a.b", "rows[7].x", "rows[].x", "rows[]", "a[%22+].b[c,2].d-e", "a[k].b[]"};
    static const char *const wrong[] = {"", "a[", "a[x]", "a[].", "a[b]c", "[a].b", "a[b/].c", "a]b", "a[b].c[d]"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(stet_child_id_valid(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(stet_child_id_valid(wrong[i], strlen(wrong[i])));
    assert_int_equal(stet_child_instance("rows[7].inner[x].y"), strlen("rows[7].inner[x]"));
    assert_int_equal(stet_child_instance("plain"), 0);
    stet_buf b = STET_BUF(0);
    stet_value v =
        stet_string("a key that is much longer than sixty-four bytes, so that it is known by its hash alone");
    stet_child_key_text(v, &b);
    assert_true(b.len <= STET_CHILD_KEY_TEXT);
    assert_non_null(strchr(stet_buf_cstr(&b), '+'));
    stet_release(v);
    stet_buf_release(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_edited_field_runs_one_row),
        cmocka_unit_test(appended_row_runs_alone),
        cmocka_unit_test(first_row_removed_touches_no_other),
        cmocka_unit_test(moved_rows_stand),
        cmocka_unit_test(keys_that_repeat_are_told_apart),
        cmocka_unit_test(without_a_key_an_element_is_its_own),
        cmocka_unit_test(named_cell_of_a_child_survives),
        cmocka_unit_test(changed_child_pattern_keeps_what_is_the_same),
        cmocka_unit_test(gone_coordinator_takes_its_children),
        cmocka_unit_test(filter_and_reduce),
        cmocka_unit_test(each_link_of_a_chain_runs_once),
        cmocka_unit_test(outer_cells_and_nested_maps),
        cmocka_unit_test(map_over_a_map_runs_one_of_each),
        cmocka_unit_test(who_only_counts_needs_no_child),
        cmocka_unit_test(untaken_branch_has_no_children),
        cmocka_unit_test(children_wanted_again_run),
        cmocka_unit_test(children_of_another_part_run_when_it_is_wanted),
        cmocka_unit_test(element_changed_by_somebody_else_is_put_right),
        cmocka_unit_test(action_that_returns_a_pattern),
        cmocka_unit_test(bad_children_are_refused),
        cmocka_unit_test(a_list_that_is_none_fails),
        cmocka_unit_test(failure_of_a_child_goes_with_it),
        cmocka_unit_test(switched_off_children_run_every_time),
        cmocka_unit_test(ids_are_read_from_either_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
