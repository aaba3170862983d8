/* sched_kit.h - pieces over a real space in one process: install, run, restart (every handle closed and opened again),
 * send, and look. JSON in tests is written with single quotes; #CODE# is a function in
 * JavaScript as a module, and ^CODE^ a handler. */
#ifndef TEST_SCHED_KIT_H
#define TEST_SCHED_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "engine.h"
#include "graph/piece.h"
#include "memory/observe.h"
#include "scheduler/sched.h"

typedef struct world {
    stet_project *project;
    stet_space *space;
    stet_sched *sched;
    stet_sched_opts opts;
    stet_sched_report report;
    stet_sched_sent sent;
    stet_buf ran; /* names of nodes in the order in which they ran */
    stet_buf log;
} world;

#define ok(call)                                                                                                       \
    do {                                                                                                               \
        stet_error err = STET_ERROR_INIT;                                                                              \
        stet_status status_ = (call);                                                                                  \
        if (status_ != STET_OK)                                                                                        \
            fail_msg("%s: %s: %s", #call, stet_status_name(status_), err.message);                                     \
    } while (0)

static inline void kit_event(void *ctx, const stet_sched_event *e) {
    world *w = ctx;
    if (e->kind == STET_SCHED_STARTED)
        stet_buf_printf(&w->ran, "%s%s", w->ran.len ? " " : "", e->node);
}

static inline void kit_log(void *ctx, const char *node, const char *stream, const char *bytes, size_t len) {
    world *w = ctx;
    (void)node, (void)stream;
    stet_buf_add(&w->log, bytes, len);
}

static inline void kit_open(world *w, const char *root) {
    ok(stet_project_open(root, &w->project, &err));
    ok(stet_space_open(w->project, "main", 0, &w->space, &err));
    stet_observe_switch(w->space, w->opts.persist);
    ok(stet_sched_open(w->project, w->space, "", &w->opts, &w->sched, &err));
}

static inline void kit_close(world *w) {
    stet_value_release(w->report.problems);
    w->report.problems = stet_value_null();
    stet_sched_close(w->sched);
    stet_space_close(w->space);
    stet_project_close(w->project);
}

static inline world *kit_start(void) {
    static int next_dir;
    char dir[32];
    bool created;
    engine_find_plugins();
    snprintf(dir, sizeof dir, "p%d", next_dir++);
    world *w = stet_alloc_zero(sizeof *w);
    w->ran = (stet_buf)STET_BUF(0);
    w->log = (stet_buf)STET_BUF(0);
    w->opts = (stet_sched_opts){.persist = true, .ctx = w, .event = kit_event, .log = kit_log};
    ok(stet_project_init(dir, &created, &err));
    kit_open(w, dir);
    return w;
}

static inline void kit_stop(world *w) {
    kit_close(w);
    stet_buf_release(&w->ran);
    stet_buf_release(&w->log);
    free(w);
}

/* A new process: nothing in memory is left. */
static inline void kit_restart(world *w) {
    char *root = stet_strdup(stet_project_root(w->project));
    kit_close(w);
    kit_open(w, root);
    stet_free(root);
}

static inline char *kit_json(const char *text) {
    stet_buf b = STET_BUF(0);
    char open = 0;
    for (; *text; text++) {
        if (*text == '#' || *text == '^') {
            if (open)
                stet_buf_str(&b, "\"}");
            else
                stet_buf_printf(&b, "{\"type\":\"javascript\"%s,\"implementation\":\"",
                                *text == '^' ? ",\"handler\":true" : "");
            open = open ? 0 : *text;
        } else {
            stet_buf_char(&b, *text == '\'' ? '"' : *text);
        }
    }
    return stet_buf_take(&b, NULL);
}

static inline stet_value kit_value(const char *text) {
    char *copy = kit_json(text);
    stet_value v;
    ok(stet_json_parse(copy, strlen(copy), &v, &err));
    stet_free(copy);
    return v;
}

static const stet_pattern_checks kit_checks = {.module = stet_module_check};

static inline stet_sched_installed kit_install(world *w, const char *piece, const char *text) {
    char *copy = kit_json(text);
    stet_pattern *p;
    stet_sched_installed out;
    stet_value problems;
    stet_error e = STET_ERROR_INIT;
    if (stet_pattern_parse("test.json", copy, strlen(copy), &kit_checks, &p, &problems, &e) != STET_OK)
        fail_msg("%s: %s", e.message, stet_json_print(problems, STET_JSON_CANONICAL, NULL));
    stet_value_release(problems);
    ok(stet_sched_install(w->sched, p, piece, stet_value_null(), stet_value_null(), &out, &err));
    stet_pattern_free(p);
    stet_free(copy);
    return out;
}

/* The message of the first problem of a pattern that is not right. */
static inline void kit_refused(const char *text, const char *expected) {
    char *copy = kit_json(text);
    stet_pattern *p;
    stet_value problems;
    assert_int_not_equal(stet_pattern_parse("test.json", copy, strlen(copy), &kit_checks, &p, &problems, NULL),
                         STET_OK);
    char *said = stet_json_print(problems, STET_JSON_CANONICAL, NULL);
    if (!strstr(said, expected))
        fail_msg("expected: %s\nfound: %s", expected, said);
    stet_free(said);
    stet_value_release(problems);
    stet_free(copy);
}

static inline void kit_settle(world *w) {
    stet_buf_clear(&w->ran);
    stet_value_release(w->report.problems);
    w->report.problems = stet_value_null();
    ok(stet_sched_settle(w->sched, &w->report, &err));
    if (stet_sched_passed_over(w->sched))
        fail_msg("passed over: %s", stet_sched_passed_over(w->sched));
}

static inline void kit_run(world *w, const char *piece) {
    ok(stet_sched_demand_piece(w->sched, piece, &err));
    kit_settle(w);
}

static inline void kit_set(world *w, const char *cell, const char *json) {
    stet_tx *tx;
    ok(stet_tx_begin(w->space, "", &tx, &err));
    char *id;
    stet_path path = STET_PATH_INIT;
    ok(stet_cell_parse(cell, false, &id, &path, &err));
    ok(stet_tx_write(tx, &(stet_docname){id, NULL}, stet_path_ref(&path), kit_value(json), &err)); /* unguarded */
    stet_free(id);
    stet_path_release(&path);
    ok(stet_tx_commit(tx, NULL, &err));
}

static inline stet_status kit_send(world *w, const char *piece, const char *stream, const char *json, const char *id,
                                   stet_error *e) {
    stet_value v = kit_value(json);
    stet_buf_clear(&w->ran);
    stet_status status = stet_sched_send(w->sched, piece, stream, v, id, &w->sent, e);
    stet_value_release(v);
    return status;
}

/* The value of a cell, links followed, as JSON. */
static inline void kit_is(world *w, const char *cell, const char *expected) {
    char *id, *want = kit_json(expected);
    stet_path path = STET_PATH_INIT;
    stet_value v;
    stet_error e = STET_ERROR_INIT;
    ok(stet_cell_parse(cell, false, &id, &path, &err));
    stet_status status = stet_sched_get(w->sched, id, NULL, stet_path_ref(&path), &v, &e);
    char *text =
        status == STET_OK ? stet_json_print(v, STET_JSON_CANONICAL, NULL) : stet_strdup(stet_status_name(status));
    if (strcmp(text, want) != 0)
        fail_msg("%s: expected %s, found %s", cell, want, text);
    if (status == STET_OK)
        stet_value_release(v);
    stet_error_clear(&e);
    stet_free(text);
    stet_free(want);
    stet_free(id);
    stet_path_release(&path);
}

/* A node of a built-in module, and a pattern. */
#define REF(id, ref, inputs)                                                                                           \
    "{\"id\":\"" id "\",\"module\":{\"type\":\"ref\",\"ref\":\"" ref "\"},\"inputs\":" inputs "}"
#define PATTERN(argument, nodes, result)                                                                               \
    "{\"pattern\":1,\"name\":\"t\",\"argument\":{\"default\":" argument "},\"nodes\":[" nodes "],\"result\":" result "}"

#define kit_ran(w, expected) assert_string_equal(stet_buf_cstr(&(w)->ran), expected)

typedef stet_status (*kit_check)(stet_space *s, bool repair, stet_buf *problems, size_t *found, size_t *repaired,
                                 stet_error *err);

static inline void kit_checks_out(world *w, kit_check check) {
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    ok(check(w->space, false, &problems, &found, &repaired, &err));
    if (found)
        fail_msg("check: %s", stet_buf_cstr(&problems));
    stet_buf_release(&problems);
}

/* No mark, index row, mirror, record or child differs from what the log and the graphs say; and (`kit_sound`) no head
 * or snapshot differs from the log. */
static inline void kit_recorded(world *w) {
    kit_checks_out(w, stet_observe_check);
    kit_checks_out(w, stet_children_check);
}

static inline void kit_sound(world *w) {
    kit_recorded(w);
    kit_checks_out(w, stet_space_check);
}

static inline void kit_end(world *w) {
    kit_sound(w);
    kit_stop(w);
}

/* A piece that was set up and ran, and one that runs again: these nodes, in this order. */
static inline world *kit_piece(const char *piece, const char *pattern) {
    world *w = kit_start();
    kit_install(w, piece, pattern);
    kit_run(w, piece);
    return w;
}

static inline void kit_runs(world *w, const char *piece, const char *nodes) {
    kit_run(w, piece);
    kit_ran(w, nodes);
}

#endif
