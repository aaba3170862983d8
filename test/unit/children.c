/* children.c - children: what runs and what is up to date when lists change, and what is left of a removed child.
 *
 * Restarts are simulated: every handle is closed and opened again.
 */

#include "../sched_kit.h"

#include <time.h>

#include "graph/child.h"
#include "graph/piece.h"

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
    world *w = kit_piece("t", doubles);
    kit_ran(w, "rows rows[a].double rows[b].double rows[c].double");
    kit_is(w, "piece:t", "[2,4,6]");
    for (int i = 0; i < 2; i++) { /* in the same process, and in a new one */
        kit_set(w, "piece:t:argument/rows/1/n", i ? "8" : "7");
        kit_runs(w, "t", "rows rows[b].double");
        kit_is(w, "piece:t", i ? "[2,16,6]" : "[2,14,6]");
        kit_restart(w);
        kit_runs(w, "t", "");
    }
    /* A field that the child does not read: its element is given to it, and it stands. */
    kit_set(w, "piece:t:argument/rows/1/text", "\"x\"");
    kit_runs(w, "t", "rows");
    kit_end(w);
}

static void appended_row_runs_alone(void **state) {
    (void)state;
    world *w = kit_piece("t", doubles);
    kit_restart(w);
    kit_set(w, "piece:t:argument/rows/3", "{\"id\":\"d\",\"n\":4}");
    kit_runs(w, "t", "rows rows[d].double");
    kit_is(w, "piece:t", "[2,4,6,8]");
    kit_end(w);
}

static void first_row_removed_touches_no_other(void **state) {
    (void)state;
    world *w = kit_piece("t", doubles);
    kit_set(w, "piece:t:argument/rows", "[{\"id\":\"b\",\"n\":2},{\"id\":\"c\",\"n\":3}]");
    kit_runs(w, "t", "rows");
    kit_is(w, "piece:t", "[4,6]");
    assert_int_equal(documents(w, "piece:t:child:rows[a]"), 0);
    assert_int_equal(documents(w, "piece:t:node:rows[a]"), 0);
    assert_false(recorded(w, "piece:t", "rows[a].double"));
    assert_true(recorded(w, "piece:t", "rows[b].double"));
    kit_sound(w);
    kit_restart(w);
    kit_runs(w, "t", "");
    /* And back: it is a new child. */
    kit_set(w, "piece:t:argument/rows", ROWS);
    kit_runs(w, "t", "rows rows[a].double");
    kit_is(w, "piece:t", "[2,4,6]");
    kit_end(w);
}

static void moved_rows_stand(void **state) {
    (void)state;
    world *w = kit_piece("t", doubles);
    kit_restart(w);
    kit_set(w, "piece:t:argument/rows", "[{\"id\":\"c\",\"n\":3},{\"id\":\"a\",\"n\":1},{\"id\":\"b\",\"n\":2}]");
    kit_runs(w, "t", "rows");
    kit_is(w, "piece:t", "[6,2,4]");
    kit_stop(w);
}

static void keys_that_repeat_are_told_apart(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t", doubles);
    kit_set(w, "piece:t:argument/rows",
            "[{\"id\":\"x\",\"n\":1},{\"id\":\"x\",\"n\":2},{\"id\":7,\"n\":3},{\"id\":\"7\",\"n\":4},{\"n\":5}]");
    kit_runs(w, "t", "rows rows[x].double rows[x,2].double rows[7].double rows[%227%22].double rows[null].double");
    kit_is(w, "piece:t", "[2,4,6,8,10]");
    kit_end(w);
}

static void without_a_key_an_element_is_its_own(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t",
                PATTERN("{\"rows\":[3,5,3]}",
                        EACH("rows", "map", "",
                             CHILD(REF("more", "add", "[{\"$\":\"argument/element\"},1]"), "{\"$\":\"more\"}"), LIST),
                        "{\"$\":\"rows\"}"));
    kit_runs(w, "t", "rows rows[3].more rows[5].more rows[3,2].more");
    kit_set(w, "piece:t:argument/rows", "[5,3,4,3]");
    kit_runs(w, "t", "rows rows[4].more");
    kit_is(w, "piece:t", "[6,4,5,4]");
    kit_stop(w);
}

static void named_cell_of_a_child_survives(void **state) {
    (void)state;
    world *w = kit_start();
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
    kit_install(w, "t", first);
    kit_run(w, "t");
    kit_set(w, "piece:t:cell:rows[b].plus", "10");
    kit_runs(w, "t", "rows[b].sum");
    kit_is(w, "piece:t", "[1,12,3]");
    kit_set(w, "piece:t:argument/rows/1/n", "5");
    kit_run(w, "t");
    kit_is(w, "piece:t", "[1,15,3]");
    kit_restart(w);
    kit_install(w, "t", second);
    kit_runs(w, "t", "rows rows[a].sum rows[b].sum rows[c].sum");
    kit_is(w, "piece:t", "[1,-5,3]");
    kit_set(w, "piece:t:argument/rows", "[]");
    kit_run(w, "t");
    kit_is(w, "piece:t", "[]");
    assert_int_equal(documents(w, "piece:t:cell:"), 0);
    assert_int_equal(documents(w, "piece:t:child:"), 0);
    kit_end(w);
}

static void changed_child_pattern_keeps_what_is_the_same(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t",
                PATTERN("{\"rows\":" ROWS "}",
                        EACH("rows", "map", BY_ID,
                             CHILD(REF("x", "add", "[{\"$\":\"argument/element/n\"},1]") "," REF("y", "add",
                                                                                                 "[{\"$\":\"x\"},1]"),
                                   "{\"$\":\"y\"}"),
                             LIST),
                        "{\"$\":\"rows\"}"));
    kit_run(w, "t");
    kit_is(w, "piece:t", "[3,4,5]");
    kit_restart(w);
    kit_install(w, "t",
                PATTERN("{\"rows\":" ROWS "}",
                        EACH("rows", "map", BY_ID,
                             CHILD(REF("x", "add", "[{\"$\":\"argument/element/n\"},1]") "," REF("z", "add",
                                                                                                 "[{\"$\":\"x\"},5]"),
                                   "{\"z\":{\"$\":\"z\"}}"),
                             LIST),
                        "{\"$\":\"rows\"}"));
    kit_runs(w, "t", "rows rows[a].z rows[b].z rows[c].z");
    kit_is(w, "piece:t", "[{\"z\":7},{\"z\":8},{\"z\":9}]");
    assert_int_equal(documents(w, "piece:t:node:rows[a].y"), 0);
    assert_false(recorded(w, "piece:t", "rows[a].y"));
    kit_end(w);
}

static void gone_coordinator_takes_its_children(void **state) {
    (void)state;
    world *w = kit_piece("t", doubles);
    kit_install(w, "t",
                PATTERN("{\"rows\":" ROWS "}", REF("other", "count", "{\"values\":{\"$\":\"argument/rows\"}}"),
                        "{\"$\":\"other\"}"));
    kit_run(w, "t");
    kit_is(w, "piece:t", "3");
    assert_int_equal(documents(w, "piece:t:child:"), 0);
    assert_int_equal(documents(w, "piece:t:children:"), 0);
    assert_int_equal(documents(w, "piece:t:node:rows"), 0);
    assert_false(recorded(w, "piece:t", "rows[a].double"));
    kit_end(w);
}

static void filter_and_reduce(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(
        w, "t",
        PATTERN("{\"rows\":" ROWS "}",
                EACH("big", "filter", BY_ID,
                     CHILD(REF("yes", "greater", "[{\"$\":\"argument/element/n\"},1]"), "{\"$\":\"yes\"}"),
                     LIST) "," EACH("all", "reduce", BY_ID,
                                    CHILD(REF("acc", "add",
                                              "[{\"$\":\"argument/accumulator\"},{\"$\":\"argument/element/n\"}]"),
                                          "{\"$\":\"acc\"}"),
                                    "{\"list\":{\"$\":\"argument/rows\"},\"initial\":100}"),
                "{\"big\":{\"$\":\"big\"},\"all\":{\"$\":\"all\"}}"));
    kit_run(w, "t");
    kit_is(w, "piece:t", "{\"all\":106,\"big\":[{\"id\":\"b\",\"n\":2},{\"id\":\"c\",\"n\":3}]}");
    kit_restart(w);
    kit_set(w, "piece:t:argument/rows/2/n", "0");
    kit_run(w, "t");
    kit_is(w, "piece:t", "{\"all\":103,\"big\":[{\"id\":\"b\",\"n\":2}]}");
    kit_set(w, "piece:t:argument/rows", "[]");
    kit_run(w, "t");
    kit_is(w, "piece:t", "{\"all\":100,\"big\":[]}");
    kit_end(w);
}

/* Two links of a chain are edited, and others that stand are between them. */
static void each_link_of_a_chain_runs_once(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(
        w, "t",
        PATTERN(
            "{\"rows\":[{\"id\":\"a\",\"n\":1},{\"id\":\"b\",\"n\":2},{\"id\":\"c\",\"n\":3},{\"id\":\"d\",\"n\":4}]}",
            EACH("all", "reduce", BY_ID,
                 CHILD(REF("x", "add", "[{\"$\":\"argument/accumulator\"},{\"$\":\"argument/element/n\"}]"),
                       "{\"$\":\"x\"}"),
                 "{\"list\":{\"$\":\"argument/rows\"},\"initial\":100}"),
            "{\"$\":\"all\"}"));
    kit_run(w, "t");
    for (int i = 0; i < 2; i++) { /* in the same process, and in a new one */
        kit_set(w, "piece:t:argument/rows/0/n", i ? "20" : "10");
        kit_set(w, "piece:t:argument/rows/3/n", i ? "50" : "40");
        if (i)
            kit_restart(w);
        kit_runs(w, "t", "all all[a].x all[b].x all[c].x all[d].x");
        kit_is(w, "piece:t", i ? "175" : "155");
    }
    /* In another order: what they read last is not what they read now. */
    kit_set(w, "piece:t:argument/rows",
            "[{\"id\":\"d\",\"n\":1},{\"id\":\"b\",\"n\":2},{\"id\":\"a\",\"n\":3},{\"id\":\"c\",\"n\":5}]");
    kit_runs(w, "t", "all all[d].x all[b].x all[a].x all[c].x");
    kit_is(w, "piece:t", "111");
    kit_end(w);
}

#define LINKS 5
/* What a chain has made: for each key whom it follows, and what its two nodes gave. */
typedef struct chain {
    int after[LINKS];
    long scaled[LINKS], out[LINKS];
} chain;

/* The list in this order, and which links have to run for it, in which order: those that follow another one than before
 * or one whose result changed; of these the second node only if the first one gave something else. */
static void expect_chain(const int *order, bool two, chain *ch, char *rows, char *ran) {
    long value = 100;
    int before = -1;
    bool changed = false;
    strcpy(ran, "all");
    strcpy(rows, "[");
    for (int i = 0; i < LINKS; i++) {
        int k = order[i];
        long scaled = two ? value * 3 : value;
        sprintf(rows + strlen(rows), "%s{\"id\":%d,\"n\":%d}", i ? "," : "", k, k * k);
        bool first = changed || ch->after[k] != before, second = first && (!two || scaled != ch->scaled[k]);
        if (first && two)
            sprintf(ran + strlen(ran), " all[%d].m", k);
        if (second)
            sprintf(ran + strlen(ran), " all[%d].x", k);
        value = scaled + k * k;
        changed = second && ch->out[k] != value;
        ch->scaled[k] = scaled;
        ch->out[k] = value;
        ch->after[k] = before;
        before = k;
    }
    strcat(rows, "]");
}

static bool next_order(int *at) {
    int i = LINKS - 2, j = LINKS - 1, t;
    while (i >= 0 && at[i] >= at[i + 1])
        i--;
    if (i < 0)
        return false;
    while (at[j] <= at[i])
        j--;
    t = at[i], at[i] = at[j], at[j] = t;
    for (i++, j = LINKS - 1; i < j; i++, j--)
        t = at[i], at[i] = at[j], at[j] = t;
    return true;
}

/* From each order to the next, and from the first to each, in one process and in new ones. */
static void move_links(bool two) {
    world *w = kit_start();
    int order[LINKS] = {0, 1, 2, 3, 4}, first[LINKS] = {0, 1, 2, 3, 4}, step = 0;
    chain ch = {.after = {-2, -2, -2, -2, -2}};
    char rows[400], ran[400], result[24];
    static const char one[] =
        CHILD(REF("x", "add", "[{\"$\":\"argument/accumulator\"},{\"$\":\"argument/element/n\"}]"), "{\"$\":\"x\"}");
    static const char both[] = CHILD(REF("m", "multiply", "[{\"$\":\"argument/accumulator\"},3]") "," REF(
                                         "x", "add", "[{\"$\":\"m\"},{\"$\":\"argument/element/n\"}]"),
                                     "{\"$\":\"x\"}");
    char *text = stet_asprintf(
        PATTERN("{\"rows\":[]}",
                EACH("all", "reduce", BY_ID, "%s", "{\"list\":{\"$\":\"argument/rows\"},\"initial\":100}"),
                "{\"$\":\"all\"}"),
        two ? both : one);
    kit_install(w, "t", text);
    stet_free(text);
    kit_run(w, "t");
    do {
        for (int back = 0; back < 2; back++) {
            expect_chain(back ? first : order, two, &ch, rows, ran);
            kit_set(w, "piece:t:argument/rows", rows);
            if (step % 3 == 1)
                kit_restart(w);
            kit_run(w, "t");
            if (step > 0 && strcmp(stet_buf_cstr(&w->ran), step == 1 ? "" : ran) != 0)
                fail_msg("step %d, %s: expected %s, ran %s", step, rows, ran, stet_buf_cstr(&w->ran));
            snprintf(result, sizeof result, "%ld", ch.out[back ? 4 : order[LINKS - 1]]);
            kit_is(w, "piece:t", result);
            step++;
        }
        if (step % 7 == 0) { /* not back to the first one in between */
            expect_chain(order, two, &ch, rows, ran);
            kit_set(w, "piece:t:argument/rows", rows);
            kit_runs(w, "t", ran);
        }
    } while (next_order(order));
    kit_end(w);
}

static void moved_links_of_a_chain_run_once(void **state) {
    (void)state;
    move_links(false);
    move_links(true);
}

/* Nested maps, another outer pattern in the same process (the inner coordinators come back under new numbers), and a
 * reader that has not read the inner rows yet: they run before it, and each runs once. */
static void inner_rows_lead_to_readers_after_another_outer_pattern(void **state) {
    (void)state;
    for (int how = 0; how < 4; how++) {
        world *w = kit_start();
        stet_buf text = STET_BUF(0);
        w->opts.window = how & 1 ? 2 : 0; /* actions that stand leave memory all the time */
        kit_restart(w);
        for (int version = 0; version < 3; version++) {
            stet_buf_clear(&text);
            stet_buf_printf(
                &text,
                PATTERN(
                    "{\"rows\":[{\"id\":\"a\",\"ns\":[{\"id\":1,\"n\":1},{\"id\":2,\"n\":2}]},{\"id\":\"b\",\"ns\":["
                    "{\"id\":3,\"n\":3}]}]}",
                    EACH("rows", "map", BY_ID,
                         CHILD(EACH("in", "map", BY_ID,
                                    CHILD(REF("x", "multiply", "[{\"$\":\"argument/element/n\"},10]"), "{\"$\":\"x\"}"),
                                    "{\"list\":{\"$\":\"argument/element/ns\"},\"unused\":%d}"),
                               "{\"$\":\"in\"}"),
                         LIST) ",%s" REF("sum", "sum", "{\"values\":{\"$\":\"flat\"}}"),
                    "{\"rows\":{\"$\":\"rows\"},\"sum\":{\"$\":\"sum\"}}"),
                version,
                version % 2 ? REF("flat", "flatten", "{\"value\":{\"$\":\"rows\"},\"depth\":1}") ","
                            : REF("flat", "flatten", "{\"value\":{\"$\":\"rows\"}}") ",");
            kit_install(w, "t", stet_buf_cstr(&text));
            if (how & 2)
                kit_restart(w);
            if (version) {
                kit_set(w, "piece:t:argument/rows/0/ns/1/n", version == 1 ? "5" : "6");
                kit_set(w, "piece:t:argument/rows/1/ns/0/n", version == 1 ? "7" : "8");
            }
            stet_path path = STET_PATH_INIT;
            stet_path_push(&path, "value");
            stet_path_push(&path, "sum");
            ok(stet_sched_demand_cell(w->sched, "piece:t", NULL, stet_path_ref(&path), &err));
            stet_path_release(&path);
            kit_settle(w);
            if (version) {
                const char *ran = stet_buf_cstr(&w->ran);
                for (const char *at = "flat"; at; at = strcmp(at, "flat") == 0 ? "sum" : NULL) {
                    const char *found = strstr(ran, at);
                    if (!found || strstr(found + 1, at))
                        fail_msg("way %d, version %d: %s did not run once: %s", how, version, at, ran);
                }
                assert_non_null(strstr(ran, "rows[a].in[2].x"));
                assert_non_null(strstr(ran, "rows[b].in[3].x"));
                assert_null(strstr(ran, "rows[a].in[1].x"));
            }
            kit_is(w, "piece:t/sum", version == 0 ? "60" : version == 1 ? "130" : "150");
            /* And an edit of one inner row alone. */
            kit_set(w, "piece:t:argument/rows/0/ns/0/n", "100");
            kit_settle(w);
            kit_ran(w, "rows rows[a].in rows[a].in[1].x flat sum");
            kit_set(w, "piece:t:argument/rows/0/ns/0/n", "1");
            kit_settle(w);
        }
        kit_sound(w);
        stet_buf_release(&text);
        kit_stop(w);
    }
}

static void check_finds_what_was_done_to_children(void **state) {
    (void)state;
    world *w = kit_start();
    static const struct {
        const char *cell, *json, *says;
    } deeds[] = {
        {"piece:t:child:all[b]/argument/accumulator", "7", "all[b]"},
        {"piece:t:child:all[a]/argument/accumulator", "7", "all[a]"},
        {"piece:t:child:shown[b]/result", "{\"x\":1}", "shown[b]"},
        {"piece:t:child:shown[b]/result/y", "1", "shown[b]"},
        {"piece:t:child:all[b]/result", "5", "all[b]"},
        {"piece:t:child:shown[c]/argument/element/n", "9", "shown[c]"},
        {"piece:t:node:shown[a].tick", "1", "shown[a]"},
        {"piece:t:child:made[]/argument/n", "5", "made[]"},
    };
    kit_install(
        w, "t",
        PATTERN(
            "{\"rows\":" ROWS
            ",\"made\":{\"pattern\":1,\"name\":\"m\",\"argument\":{\"default\":{\"n\":1}},\"nodes\":[],"
            "\"result\":[{\"$\":\"argument/n\"}]}}",
            EACH(
                "all", "reduce", BY_ID,
                CHILD(REF("x", "add", "[{\"$\":\"argument/accumulator\"},{\"$\":\"argument/element/n\"}]"),
                      "{\"$\":\"x\"}"),
                "{\"list\":{\"$\":\"argument/rows\"},\"initial\":100}") ",{\"id\":\"made\",\"returns\":\"pattern\","
                                                                        "\"module\":{"
                                                                        "\"type\":\"ref\",\"ref\":\"value\"},"
                                                                        "\"inputs\":{\"value\":{\"$\":\"argument/"
                                                                        "made\"}}}," EACH(
                                                                            "shown", "map", BY_ID,
                                                                            CHILD(
                                                                                REF("x", "add",
                                                                                    "[{\"$\":\"argument/element/"
                                                                                    "n\"},1]") ",{\"id\":\"tick\","
                                                                                               "\"stream\":{\"$\":"
                                                                                               "\"tick\"},\"inputs\":{}"
                                                                                               ",\"module\":{\"type\":"
                                                                                               "\"javascript\","
                                                                                               "\"handler\":true,"
                                                                                               "\"implementation\":\"()"
                                                                                               " => 1\"}}",
                                                                                "{\"x\":{\"$\":\"x\"},\"tick\":{\"$\":"
                                                                                "\"tick\"}}"),
                                                                            LIST),
            "{\"all\":{\"$\":\"all\"},\"made\":{\"$\":\"made\"},\"shown\":{\"$\":\"shown\"}}"));
    kit_run(w, "t");
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++) {
        stet_buf problems = STET_BUF(0);
        size_t found, repaired;
        kit_restart(w);
        ok(stet_children_check(w->space, false, &problems, &found, &repaired, &err));
        if (found)
            fail_msg("%s: before anything was done: %s", deeds[i].cell, stet_buf_cstr(&problems));
        kit_set(w, deeds[i].cell, deeds[i].json);
        ok(stet_children_check(w->space, false, &problems, &found, &repaired, &err));
        if (found != 1 || !strstr(stet_buf_cstr(&problems), deeds[i].says))
            fail_msg("%s: %zu found: %s", deeds[i].cell, found, stet_buf_cstr(&problems));
        ok(stet_children_check(w->space, true, &problems, &found, &repaired, &err));
        assert_int_equal(repaired, 1);
        ok(stet_children_check(w->space, false, &problems, &found, &repaired, &err));
        assert_int_equal(found, 0); /* whose child it is is unknown, and will put it right */
        kit_run(w, "t");
        kit_is(
            w, "piece:t",
            "{\"all\":106,\"made\":[1],\"shown\":[{\"tick\":{\"$stream\":true},\"x\":2},{\"tick\":{\"$stream\":true},"
            "\"x\":3},{\"tick\":{\"$stream\":true},\"x\":4}]}");
        stet_buf_release(&problems);
    }
    kit_end(w);
}

/* Processor time of a demand for the whole output of a map of so many rows, all of them new. */
static double fresh_seconds(int count) {
    world *w = kit_start();
    stet_buf rows = STET_BUF(0);
    kit_install(w, "t", doubles);
    stet_buf_char(&rows, '[');
    for (int i = 0; i < count; i++)
        stet_buf_printf(&rows, "%s{\"id\":%d,\"n\":%d}", i ? "," : "", i, i);
    stet_buf_char(&rows, ']');
    kit_set(w, "piece:t:argument/rows", stet_buf_cstr(&rows));
    clock_t start = clock();
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    ok(stet_sched_demand_cell(w->sched, "piece:t", NULL, stet_path_ref(&path), &err));
    kit_settle(w);
    double spent = (double)(clock() - start) / CLOCKS_PER_SEC;
    assert_int_equal(w->report.ran, count + 1);
    stet_path_release(&path);
    stet_buf_release(&rows);
    kit_stop(w);
    return spent;
}

static void fresh_costs_what_there_is(void **state) {
    (void)state;
    fresh_seconds(100); /* the first one is slower */
    double some = fresh_seconds(1500), many = fresh_seconds(12000);
    print_message("# 1,500 rows: %.3f s, 12,000: %.3f s of the processor\n", some, many);
    if (many > some * 8 * 3) /* with the square of it: 64 times */
        fail_msg("8 times as many rows cost %.1f times as much", many / some);
}

static void outer_cells_and_nested_maps(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(
        w, "t",
        PATTERN(
            "{\"rows\":[{\"id\":\"a\",\"ns\":[1,2]},{\"id\":\"b\",\"ns\":[3]}],\"factor\":10}",
            EACH("rows", "map", BY_ID,
                 CHILD(EACH("ns", "map", "",
                            CHILD(REF("x", "multiply", "[{\"$\":\"argument/element\"},{\"$\":\"argument/factor\"}]"),
                                  "{\"$\":\"x\"}"),
                            "{\"list\":{\"$\":\"argument/element/ns\"},\"factor\":{\"$\":\"argument/"
                            "factor\"}}") "," REF("s"
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
    kit_run(w, "t");
    kit_is(w, "piece:t", "[{\"sum\":30},{\"sum\":30}]");
    kit_restart(w);
    kit_set(w, "piece:t:argument/rows/0/ns/1", "5");
    kit_runs(w, "t", "rows rows[a].ns rows[a].ns[5].x rows[a].sum");
    kit_is(w, "piece:t", "[{\"sum\":60},{\"sum\":30}]");
    kit_set(w, "piece:t:argument/factor", "1");
    kit_run(w, "t");
    kit_is(w, "piece:t", "[{\"sum\":6},{\"sum\":3}]");
    kit_set(w, "piece:t:argument/rows", "[{\"id\":\"b\",\"ns\":[3]}]");
    kit_runs(w, "t", "rows");
    assert_int_equal(documents(w, "piece:t:child:rows[a]"), 0);
    assert_int_equal(documents(w, "piece:t:children:rows[a]"), 0);
    assert_false(recorded(w, "piece:t", "rows[a].ns[1].x"));
    kit_end(w);
}

static void map_over_a_map_runs_one_of_each(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t",
                PATTERN("{\"rows\":" ROWS "}",
                        EACH("rows", "map", BY_ID, DOUBLE,
                             LIST) "," EACH("more", "map", "",
                                            CHILD(REF("x", "add", "[{\"$\":\"argument/element\"},1]"), "{\"$\":\"x\"}"),
                                            "{\"list\":{\"$\":\"rows\"}}"),
                        "{\"$\":\"more\"}"));
    kit_run(w, "t");
    kit_is(w, "piece:t", "[3,5,7]");
    kit_restart(w);
    kit_set(w, "piece:t:argument/rows/1/n", "10");
    kit_run(w, "t");
    assert_int_equal(w->report.runs, 3); /* rows, one of its children, and the one behind it */
    kit_is(w, "piece:t", "[3,21,7]");
    kit_end(w);
}

static void who_only_counts_needs_no_child(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t",
                PATTERN("{\"rows\":" ROWS "}",
                        EACH("rows", "map", BY_ID, DOUBLE, LIST) "," REF("n", "count", "{\"values\":{\"$\":\"rows\"}}"),
                        "{\"$\":\"n\"}"));
    kit_run(w, "t");
    kit_is(w, "piece:t", "3");
    kit_stop(w);
}

/* Who looked at an empty list runs after its first children, not before them and again. */
static void reader_of_an_empty_list_waits_for_children(void **state) {
    (void)state;
    static const char *const refs[] = {"map", "filter"};
    for (int i = 0; i < 4; i++) {
        char *pattern = stet_asprintf(
            PATTERN("{'rows':[]}",
                    "{'id':'rows','module':{'type':'ref','ref':'%s','key':'id','pattern':" DOUBLE "},'inputs':" LIST
                    "},{'id':'z','inputs':{'rows':{'$':'rows'}},'module':#({rows}) => rows.map(x => x)#}",
                    "{'$':'z'}"),
            refs[i % 2]);
        world *w = kit_piece("t", pattern);
        kit_is(w, "piece:t", "[]");
        if (i >= 2)
            kit_restart(w);
        kit_set(w, "piece:t:argument/rows", "[{'id':'a','n':1},{'id':'b','n':0}]");
        if (i % 2)
            kit_runs(w, "t", "rows[] rows[a].double rows[b].double rows z");
        else
            kit_runs(w, "t", "rows rows[a].double rows[b].double z");
        kit_is(w, "piece:t", i % 2 ? "[{'id':'a','n':1}]" : "[2,0]");
        stet_free(pattern);
        kit_end(w);
    }
}

/* The price: one who only counts has the first children run once, and no more after that. */
static void who_counts_an_empty_list_runs_children_once(void **state) {
    (void)state;
    world *w = kit_piece(
        "t", PATTERN("{'rows':[],'f':2}",
                     EACH("rows", "map", BY_ID,
                          CHILD(REF("x", "multiply", "[{'$':'argument/element/n'},{'$':'argument/f'}]"), "{'$':'x'}"),
                          "{'list':{'$':'argument/rows'},'f':{'$':'argument/f'}}") "," REF("n", "count",
                                                                                           "{'values':{'$':'rows'}}"),
                     "{'$':'n'}"));
    kit_set(w, "piece:t:argument/rows", "[{'id':'a','n':1}]");
    kit_runs(w, "t", "rows rows[a].x n");
    kit_set(w, "piece:t:argument/f", "3");
    kit_runs(w, "t", "");
    kit_set(w, "piece:t:argument/rows", "[{'id':'a','n':1},{'id':'b','n':1}]");
    kit_runs(w, "t", "rows n");
    kit_is(w, "piece:t", "2");
    kit_end(w);
}

static void untaken_branch_has_no_children(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t",
                PATTERN("{\"rows\":" ROWS ",\"want\":false}",
                        EACH("rows", "map", BY_ID, DOUBLE, LIST) "," REF(
                            "x", "when", "{\"condition\":{\"$\":\"argument/want\"},\"value\":{\"$\":\"rows\"}}"),
                        "{\"$\":\"x\"}"));
    kit_runs(w, "t", "x");
    kit_set(w, "piece:t:argument/want", "true");
    kit_run(w, "t");
    kit_is(w, "piece:t", "[2,4,6]");
    kit_set(w, "piece:t:argument/want", "false");
    kit_run(w, "t");
    kit_set(w, "piece:t:argument/rows/0/n", "9");
    kit_runs(w, "t", "");
    /* And inside children. */
    kit_install(
        w, "u",
        PATTERN("{\"rows\":[{\"id\":\"a\",\"yes\":true,\"n\":1},{\"id\":\"b\",\"yes\":false,\"n\":2}]}",
                EACH("rows", "map", BY_ID,
                     CHILD(REF("cost", "multiply", "[{\"$\":\"argument/element/n\"},2]") "," REF(
                               "x", "ifElse",
                               "{\"condition\":{\"$\":\"argument/element/yes\"},\"then\":{\"$\":\"cost\"},\"else\":0}"),
                           "{\"$\":\"x\"}"),
                     LIST),
                "{\"$\":\"rows\"}"));
    kit_run(w, "u");
    kit_is(w, "piece:u", "[2,0]");
    assert_null(strstr(stet_buf_cstr(&w->ran), "rows[b].cost"));
    kit_end(w);
}

/* Children that were looked at while nobody wanted them are found when somebody does, although it is no run of their
 * coordinator that makes them dirty. */
static void children_wanted_again_run(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(
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
    kit_run(w, "t");
    kit_is(w, "piece:t", "[2,3,4]");
    kit_set(w, "piece:t:argument/want", "false");
    kit_run(w, "t");
    kit_set(w, "piece:t:argument/factor", "10");
    kit_runs(w, "t", "");
    kit_set(w, "piece:t:argument/want", "true");
    kit_run(w, "t");
    kit_is(w, "piece:t", "[11,21,31]");
    kit_end(w);
}

/* Only a part is wanted first, then all: one process that is asked twice. */
static void children_of_another_part_run_when_it_is_wanted(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(
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
    kit_run(w, "t");
    kit_restart(w);
    kit_set(w, "piece:t:argument/factor", "10");
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    stet_path_push(&path, "n");
    ok(stet_sched_demand_cell(w->sched, "piece:t", NULL, stet_path_ref(&path), &err));
    stet_path_release(&path);
    kit_settle(w);
    kit_ran(w, "");
    kit_run(w, "t");
    assert_int_equal(w->report.runs, 3);
    kit_is(w, "piece:t", "{\"n\":3,\"rows\":[10,20,30]}");
    kit_end(w);
}

/* What a coordinator gave its children is its own. */
static void element_changed_by_somebody_else_is_put_right(void **state) {
    (void)state;
    world *w = kit_piece("t", doubles);
    for (int i = 0; i < 2; i++) { /* noticed by one that is there, and by one that starts */
        kit_set(w, "piece:t:child:rows[b]/argument/element/n", "50");
        if (i)
            kit_restart(w);
        kit_runs(w, "t", "rows rows[b].double");
        kit_is(w, "piece:t", "[2,4,6]");
        kit_is(w, "piece:t:child:rows[b]/argument/element/n", "2");
        kit_runs(w, "t", "");
    }
    /* Together with an edit of the list. */
    kit_set(w, "piece:t:child:rows[b]/argument/element/n", "50");
    kit_set(w, "piece:t:argument/rows/0/n", "7");
    kit_restart(w);
    kit_run(w, "t");
    kit_is(w, "piece:t", "[14,4,6]");
    kit_sound(w);
    /* A part that no action reads: found by a check, which has the coordinator look at all of them. */
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    kit_set(w, "piece:t:child:rows[c]/argument/element/text", "\"mine\"");
    kit_runs(w, "t", "");
    ok(stet_children_check(w->space, true, &problems, &found, &repaired, &err));
    assert_int_equal(found, 1);
    assert_int_equal(repaired, 1);
    assert_non_null(strstr(stet_buf_cstr(&problems), "rows[c]"));
    ok(stet_children_check(w->space, false, &problems, &found, &repaired, &err));
    assert_int_equal(found, 0);
    kit_restart(w);
    kit_run(w, "t");
    kit_is(w, "piece:t:child:rows[c]/argument/element", "{\"id\":\"c\",\"n\":3}");
    ok(stet_children_check(w->space, false, &problems, &found, &repaired, &err));
    assert_int_equal(found, 0);
    stet_buf_release(&problems);
    kit_end(w);
}

/* The node computes a pattern, which becomes its child. */
static void action_that_returns_a_pattern(void **state) {
    (void)state;
    world *w = kit_start();
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
    kit_install(
        w, "t",
        PATTERN("{\"n\":5}",
                "{\"id\":\"made\",\"returns\":\"pattern\",\"module\":{\"type\":\"ref\",\"ref\":\"value\"},"
                "\"inputs\":{\"value\":{\"$\":\"argument/program\"}}}," REF("after", "value", "[{\"$\":\"made\"}]"),
                "{\"$\":\"after\"}"));
    kit_run(w, "t");
    kit_is(w, "piece:t", "null");
    kit_set(w, "piece:t:argument/program", one);
    kit_run(w, "t");
    kit_is(w, "piece:t", "7");
    kit_set(w, "piece:t:cell:made[].mine", "3");
    kit_runs(w, "t", "made[].x made[].y after");
    kit_restart(w);
    kit_runs(w, "t", "");
    kit_is(w, "piece:t", "9");
    kit_set(w, "piece:t:argument/program", two);
    kit_runs(w, "t", "made made[].z after"); /* x is what it was */
    kit_is(w, "piece:t", "{\"z\":80}");
    assert_int_equal(documents(w, "piece:t:node:made[].y"), 0);
    assert_false(recorded(w, "piece:t", "made[].y"));
    kit_restart(w);
    kit_set(w, "piece:t:cell:made[].mine", "4");
    kit_runs(w, "t", "made[].x made[].z after");
    kit_set(w, "piece:t:argument/program", "{\"pattern\":1}");
    kit_run(w, "t");
    assert_int_equal(w->report.failed, 1);
    kit_is(w, "piece:t", "{\"z\":90}");
    kit_set(w, "piece:t:argument/program", "null");
    kit_run(w, "t");
    kit_is(w, "piece:t", "null");
    assert_int_equal(documents(w, "piece:t:cell:"), 0);
    assert_int_equal(documents(w, "piece:t:child:"), 0);
    kit_end(w);
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
        assert_int_equal(stet_pattern_parse("bad.json", text, strlen(text), &kit_checks, &p, NULL, &e), STET_INVALID);
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
    assert_int_not_equal(stet_pattern_parse("deep.json", deep, strlen(deep), &kit_checks, &p, NULL, &e), STET_OK);
    assert_non_null(strstr(e.message, "inside each other"));
    stet_error_clear(&e);
    stet_free(deep);
}

static void a_list_that_is_none_fails(void **state) {
    (void)state;
    world *w = kit_piece("t", doubles);
    kit_set(w, "piece:t:argument/rows", "5");
    kit_run(w, "t");
    assert_int_equal(w->report.failed, 1);
    kit_is(w, "piece:t", "[2,4,6]"); /* the last good one */
    kit_set(w, "piece:t:argument/rows", ROWS);
    kit_run(w, "t");
    assert_int_equal(w->report.failed, 0);
    kit_end(w);
}

static void failure_of_a_child_goes_with_it(void **state) {
    (void)state;
    world *w = kit_start();
    kit_install(w, "t", doubles);
    kit_set(w, "piece:t:argument/rows/1/n", "\"no number\"");
    kit_run(w, "t");
    assert_int_equal(w->report.failed, 1);
    kit_set(w, "piece:t:argument/rows", "[{\"id\":\"a\",\"n\":1}]");
    kit_run(w, "t");
    assert_int_equal(w->report.failed, 0);
    stet_value failures;
    ok(stet_observe_failures(w->space, 0, "piece:t", NULL, &failures, &err));
    assert_int_equal(stet_value_count(failures), 0);
    stet_value_release(failures);
    kit_stop(w);
}

static void switched_off_children_run_every_time(void **state) {
    (void)state;
    world *w = kit_start();
    w->opts.persist = false;
    stet_observe_switch(w->space, false);
    kit_restart(w);
    kit_install(w, "t", doubles);
    kit_run(w, "t");
    kit_is(w, "piece:t", "[2,4,6]");
    kit_restart(w);
    kit_run(w, "t");
    assert_int_equal(w->report.runs, 4);
    kit_is(w, "piece:t", "[2,4,6]");
    kit_stop(w);
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
        stet_value_string("a key that is much longer than sixty-four bytes, so that it is known by its hash alone");
    stet_child_key_text(v, &b);
    assert_true(b.len <= STET_CHILD_KEY_TEXT);
    assert_non_null(strchr(stet_buf_cstr(&b), '+'));
    stet_value_release(v);
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
        cmocka_unit_test(moved_links_of_a_chain_run_once),
        cmocka_unit_test(inner_rows_lead_to_readers_after_another_outer_pattern),
        cmocka_unit_test(check_finds_what_was_done_to_children),
        cmocka_unit_test(fresh_costs_what_there_is),
        cmocka_unit_test(outer_cells_and_nested_maps),
        cmocka_unit_test(map_over_a_map_runs_one_of_each),
        cmocka_unit_test(who_only_counts_needs_no_child),
        cmocka_unit_test(reader_of_an_empty_list_waits_for_children),
        cmocka_unit_test(who_counts_an_empty_list_runs_children_once),
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
