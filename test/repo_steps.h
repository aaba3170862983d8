/* repo_steps.h - steps of work on the repository of calls that are done whole or not at all, for tests that let them
 * fail or die at every point. After expect.h.
 *
 * Each begins with the same two repositories, "x.db" and its remote "y.db", made once and copied. */
#ifndef STET_TEST_REPO_STEPS_H
#define STET_TEST_REPO_STEPS_H

#include "os/file.h"
#include "repo/history.h"
#include "repo/remote.h"
#include "repo_kit.h"

#define STEP_SECRET "\"the secret word\""

static inline stet_hash step_id(const char *text) {
    stet_value v = kit_json(text);
    stet_hash id = {{0}};
    OK(stet_datum_id(v, NULL, &id, &err));
    stet_value_release(v);
    return id;
}

/* Pins, heads, a remote, garbage. */
static inline void step_prepare(void) {
    static const char *const names[] = {"x.db", "y.db"};
    if (!stet_file_exists("x.db.base")) {
        stet_repo *x = kit_fresh("x.db"), *y = kit_fresh("y.db");
        stet_hash id, dag;
        stet_value big = stet_value_array();
        OK(stet_repo_begin(x, &err));
        for (int i = 0; i < 20; i++) {
            stet_exec e = kit_exec(x, kit_call(x, i), "\"result\"");
            OK(stet_repo_pin_exec(x, &e, &id, &err));
        }
        kit_call(x, 100);
        kit_put(x, STEP_SECRET);
        for (int i = 0; i < 2300; i++)
            stet_value_push(&big, stet_value_stringf("row %d", i));
        OK(stet_repo_put_result(x, big, &dag, &err));
        OK(stet_history_commit(x, "main", "big", &dag, "", &id, &err));
        OK(stet_repo_put_result(x, stet_value_int(1), &dag, &err));
        OK(stet_history_commit(x, "side", "small", &dag, "", &id, &err));
        kit_put(x, "[\"garbage\",[\"and more\"]]");
        stet_db_exec(x->db, "UPDATE object SET added_s = 1");
        OK(stet_repo_commit(x, &err));
        char *uri = stet_repo_uri(y);
        OK(stet_remote_add(x, "origin", uri, &err));
        stet_free(uri);
        kit_put(y, "1");
        stet_value_release(big);
        stet_repo_close(x);
        stet_repo_close(y);
        for (int i = 0; i < 2; i++) {
            char base[32];
            stet_copy_how how;
            snprintf(base, sizeof base, "%s.base", names[i]);
            OK(stet_file_copy(names[i], base, 0644, false, &how, &err));
        }
    }
    for (int i = 0; i < 2; i++) {
        char base[32];
        stet_copy_how how;
        snprintf(base, sizeof base, "%s.base", names[i]);
        kit_remove(names[i]);
        OK(stet_file_copy(base, names[i], 0644, false, &how, &err));
    }
}

static inline stet_status step_pin(stet_repo *x, stet_error *e) {
    stet_hash id, dag;
    stet_status st = stet_repo_begin(x, e);
    if (st != STET_OK)
        return st;
    st = stet_repo_put_result(x, stet_value_int(7), &dag, e);
    stet_hash datum, node, call = {{0}};
    if (st == STET_OK)
        st = stet_repo_put_value(x, stet_value_int(100), &datum, e);
    if (st == STET_OK)
        st = stet_node_literal(datum, stet_repo_sink(x), &node, e);
    if (st == STET_OK)
        st = stet_node_call("dml+exec://test/f", &node, 1, stet_repo_sink(x), &call, e);
    stet_exec exec = {.node = call, .result = dag, .ok = true, .attempt = 1};
    if (st == STET_OK)
        st = stet_repo_pin_exec(x, &exec, &id, e);
    if (st == STET_OK)
        return stet_repo_commit(x, e);
    stet_repo_rollback(x);
    return st;
}

static inline stet_status step_commit(stet_repo *x, stet_error *e) {
    stet_hash dag, id;
    stet_status st = stet_repo_put_result(x, stet_value_int(5), &dag, e);
    return st == STET_OK ? stet_history_commit(x, "main", "five", &dag, "five", &id, e) : st;
}

static inline stet_status step_push(stet_repo *x, stet_error *e) {
    stet_remote_report report = {0};
    stet_status st = stet_remote_push(x, "origin", NULL, 0, &(stet_remote_opts){.timeout_ms = 0}, &report, e);
    stet_remote_report_release(&report);
    return st;
}

static inline stet_status step_gc(stet_repo *x, stet_error *e) {
    stet_repo_gc_report report;
    return stet_repo_gc(x, &(stet_repo_gc_opts){.grace_s = 0}, &report, e);
}

static inline stet_status step_excise(stet_repo *x, stet_error *e) {
    stet_status st = stet_repo_excise(x, step_id(STEP_SECRET), "secret", e);
    if (st == STET_CONFLICT) { /* the second time */
        stet_error_clear(e);
        return STET_OK;
    }
    return st;
}

static const struct step {
    const char *name;
    stet_status (*run)(stet_repo *x, stet_error *e);
} steps[] = {{"pin", step_pin}, {"commit", step_commit}, {"push", step_push}, {"gc", step_gc}, {"excise", step_excise}};
enum { STEPS = sizeof steps / sizeof *steps };

/* What of a repository a user can see, without the ids of commits, which hold the time. */
static inline void step_look(const char *path, stet_buf *out) {
    stet_repo *r;
    stet_refs refs = {0};
    stet_value v;
    OK(stet_repo_open_path(path, 0, &r, &err));
    kit_sound(r);
    OK(stet_repo_refs(r, "", &refs, &err));
    for (size_t i = 0; i < refs.len; i++)
        stet_buf_printf(out, "%s ", refs.at[i].name);
    stet_refs_release(&refs);
    stet_buf_printf(out, "pins %lld ", (long long)kit_count(r, "SELECT count(*) FROM pin"));
    stet_buf_printf(out, "commits %lld ", (long long)kit_count(r, "SELECT count(*) FROM object WHERE type = 5"));
    stet_status st = stet_repo_value(r, step_id(STEP_SECRET), &v, &err);
    stet_buf_printf(out, "secret %s ", stet_status_name(st));
    if (st == STET_OK)
        stet_value_release(v);
    stet_error_clear(&err);
    stet_repo_close(r);
}

static inline char *step_state(void) {
    stet_buf b = STET_BUF(0);
    step_look("x.db", &b);
    stet_buf_str(&b, "| ");
    step_look("y.db", &b);
    return stet_buf_take(&b, NULL);
}

static inline void step_run(const struct step *s) {
    stet_repo *x;
    OK(stet_repo_open_path("x.db", 0, &x, &err));
    OK(s->run(x, &err));
    stet_repo_close(x);
}

/* What is seen before the step, and after it if nothing goes wrong. */
static inline void step_states(const struct step *s, char **before, char **after) {
    step_prepare();
    *before = step_state();
    step_run(s);
    *after = step_state();
}

/* Before, or after; pushing has one more: the remote has it, and this side does not know yet. */
static inline void step_expect(const struct step *s, const char *before, const char *after, const char *what) {
    char *now = step_state();
    bool fine = strcmp(now, before) == 0 || strcmp(now, after) == 0;
    if (!fine && strcmp(s->name, "push") == 0) {
        const char *mine = strchr(before, '|'), *theirs = strchr(now, '|');
        size_t len = (size_t)(mine - before);
        fine =
            strncmp(now, before, len) == 0 && (strcmp(theirs, mine) == 0 || strcmp(theirs, strchr(after, '|')) == 0 ||
                                               strstr(theirs, "refs/heads/") == NULL);
    }
    if (!fine)
        fail_msg("%s, %s:\nbefore %s\nafter  %s\nnow    %s", s->name, what, before, after, now);
    stet_free(now);
}

#endif
