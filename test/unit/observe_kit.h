/* observe_kit.h - two spaces, a and b, and runs of actions in a: what the tests of observations share. */
#ifndef STET_TEST_OBSERVE_KIT_H
#define STET_TEST_OBSERVE_KIT_H

#include "../expect.h"
#include "../memory_seal.h"

#include "db/db.h"
#include "memory/observe.h"
#include "os/file.h"

static stet_space *a, *b;
static stet_arena arena;

#define ok OK

static inline stet_space *space_named(const char *name) {
    char *path = stet_asprintf("%s.db", name);
    stet_space *s;
    ok(stet_space_open_path(path, name, 0, &s, &err));
    free(path);
    return s;
}

static inline void reopen(void) {
    stet_space_close(a);
    stet_space_close(b);
    a = space_named("a");
    b = space_named("b");
}

static inline int setup(void **state) {
    (void)state;
    a = space_named("a");
    b = space_named("b");
    return 0;
}

static inline int teardown(void **state) {
    (void)state;
    for (stet_space **s = (stet_space *[]){a, b, NULL}; *s; s++) {
        stet_buf problems = STET_BUF(0);
        size_t found, repaired;
        ok(stet_observe_check(*s, false, &problems, &found, &repaired, &err));
        if (found)
            fail_msg("check: %s", stet_buf_cstr(&problems));
        stet_buf_release(&problems);
        stet_space_close(*s);
    }
    stet_arena_release(&arena);
    stet_names names = {0};
    ok(stet_file_list(".", &names, &err));
    for (size_t i = 0; i < names.len; i++)
        ok(stet_file_remove(names.at[i], &err));
    stet_names_release(&names);
    return 0;
}

static inline stet_pathref at(const char *pointer) {
    stet_path p = STET_PATH_INIT;
    ok(stet_path_of_pointer(&p, pointer, strlen(pointer), &err));
    stet_pathref r = {stet_arena_strndup(&arena, p.buf.data ? p.buf.data : "", p.buf.len), p.buf.len};
    stet_path_release(&p);
    return r;
}

static inline void set(stet_space *s, const char *branch, const char *cell, const char *json) {
    stet_value v;
    stet_tx *tx;
    ok(stet_json_parse(json, strlen(json), &v, &err));
    ok(stet_tx_begin(s, branch, &tx, &err));
    ok(stet_tx_set(tx, cell, NULL, v, &err));
    ok(stet_tx_commit(tx, NULL, &err));
}

/* A run under construction. */
typedef struct run {
    stet_tx *tx;
    stet_observation o;
    stet_address declared[4], envelopes[4], ignored[4];
} run;

static inline run begin(const char *branch, const char *action) {
    run r = {
        .o = {.key = {"piece", "", action}, .kind = STET_ACTION_COMPUTATION, .generation = 1, .run = STET_RUN_ACTION}};
    ok(stet_tx_begin(a, branch, &r.tx, &err));
    return r;
}

static inline void reads(run *r, stet_space *from, const char *id, const char *pointer, stet_read_kind kind) {
    stet_docname name = {id, ""};
    stet_value v;
    stet_status st = stet_tx_read(r->tx, from, &name, at(pointer), kind, &v, &err);
    assert_true(st == STET_OK || st == STET_NOT_FOUND);
    stet_error_clear(&err);
}

static inline void writes(run *r, const char *cell, int64_t n) {
    ok(stet_tx_set(r->tx, cell, NULL, stet_value_int(n), &err));
}

static inline stet_commit_result commit(run *r) {
    stet_commit_result result;
    r->o.declared_writes = r->declared;
    r->o.envelopes = r->envelopes;
    r->o.ignored_writes = r->ignored;
    ok(stet_observe_attach(r->tx, &r->o, &err));
    ok(stet_tx_commit(r->tx, &result, &err));
    return result;
}

static inline void declares(run *r, const char *id, const char *pointer) {
    r->declared[r->o.declared_count++] = (stet_address){NULL, {id, ""}, at(pointer)};
}

/* The usual: reads one place of one document, writes its output. */
static inline stet_commit_result run_simple(const char *action, const char *id, const char *pointer,
                                            stet_read_kind kind, const char *out, int64_t n) {
    run r = begin("", action);
    reads(&r, NULL, id, pointer, kind);
    declares(&r, out, "/value");
    writes(&r, out, n);
    return commit(&r);
}

static inline stet_action_record record_on(const char *branch, const char *action) {
    stet_action_record rec;
    stet_action_key key = {"piece", "", action};
    int64_t number;
    ok(stet_space_branch(a, branch, &number, &err));
    ok(stet_observe_catch_up(a, &err));
    ok(stet_observe_find(a, number, &key, &arena, &rec, &err));
    return rec;
}

static inline stet_action_state state_of(const char *action) {
    return record_on("", action).cause.state;
}

/* Reads one document of each space. */
static inline void cross(const char *action, int64_t n) {
    run r = begin("", action);
    reads(&r, b, "far", "/value", STET_RECURSIVE);
    reads(&r, NULL, "near", "/value", STET_RECURSIVE);
    declares(&r, "out", "/value");
    writes(&r, "out", n);
    commit(&r);
}

/* Reads a document of the other space alone. */
static inline void cross_from(const char *action, const char *id, const char *out, int64_t n) {
    run r = begin("", action);
    reads(&r, b, id, "/value", STET_RECURSIVE);
    declares(&r, out, "/value");
    writes(&r, out, n);
    commit(&r);
}

/* What a crash or a fault left: checksums fit. */
static inline void sql(stet_space *s, const char *text) {
    ok(stet_db_begin_write(stet_space_db(s), &err));
    stet_db_exec(stet_space_db(s), text);
    reseal(stet_space_db(s));
    ok(stet_db_commit(stet_space_db(s), &err));
}

/* What check finds, and the first of it as text. */
static inline size_t problems_of(stet_space *s, bool repair, char text[512]) {
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    ok(stet_observe_check(s, repair, &problems, &found, &repaired, &err));
    if (repair)
        assert_int_equal(found, repaired);
    snprintf(text, 512, "%s", problems.len ? stet_buf_cstr(&problems) : "");
    stet_buf_release(&problems);
    return found;
}

static inline void copy_file(const char *from, const char *to) {
    ok(stet_file_remove(to, &err));
    if (stet_file_exists(from)) {
        stet_copy_how how;
        ok(stet_file_copy(from, to, 0644, false, &how, &err));
    }
}

/* A backup of the space b, and going back to it. */
static inline void back_up_b(void) {
    stet_space_close(b);
    copy_file("b.db", "backup");
    b = space_named("b");
}

static inline void restore_b(void) {
    stet_space_close(b);
    stet_space_close(a);
    ok(stet_file_remove("b.db-wal", &err));
    ok(stet_file_remove("b.db-shm", &err));
    copy_file("backup", "b.db");
    a = space_named("a");
    b = space_named("b");
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
