/* memory_kit.h - spaces for tests: opened fresh, written and read in a line, closed after a check of everything
 * derived. */
#ifndef STET_TEST_MEMORY_KIT_H
#define STET_TEST_MEMORY_KIT_H

#include "expect.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db/db.h"
#include "memory/space.h"
#include "os/clock.h"
#include "os/file.h"

static int files;

__attribute__((unused)) static stet_space *again(const char *path) {
    stet_space *s = NULL;
    OK(stet_space_open_path(path, "test", 0, &s, &err));
    return s;
}

__attribute__((unused)) static char *fresh_path(void) {
    return stet_asprintf("space-%d.db", ++files);
}

__attribute__((unused)) static stet_space *fresh(void) {
    char *path = fresh_path();
    stet_space *s = again(path);
    free(path);
    return s;
}

/* Closes after proving that nothing derived differs from the log. */
__attribute__((unused)) static void done(stet_space *s) {
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    OK(stet_space_check(s, false, &problems, &found, &repaired, &err));
    if (found)
        print_message("%s", stet_buf_cstr(&problems));
    assert_int_equal(found, 0);
    stet_buf_release(&problems);
    stet_space_close(s);
}

__attribute__((unused)) static stet_value json(const char *text) {
    stet_value v;
    OK(stet_json_parse(text, strlen(text), &v, &err));
    return v;
}

__attribute__((unused)) static stet_status try_set(stet_space *s, const char *branch, const char *cell,
                                                   const char *scope, const char *text, stet_commit_result *r) {
    stet_tx *tx;
    stet_status st = stet_tx_begin(s, branch, &tx, &err);
    if (st != STET_OK)
        return st;
    st = stet_tx_set(tx, cell, scope, json(text), &err);
    if (st == STET_OK)
        return stet_tx_commit(tx, r, &err);
    stet_tx_abort(tx);
    return st;
}

__attribute__((unused)) static int64_t set(stet_space *s, const char *branch, const char *cell, const char *text) {
    stet_commit_result r;
    OK(try_set(s, branch, cell, NULL, text, &r));
    return r.seq;
}

__attribute__((unused)) static void holds_value(stet_value v, const char *text) {
    stet_value want = json(text);
    char *got = stet_json_print(v, STET_JSON_CANONICAL, NULL);
    if (!stet_value_equal(v, want))
        print_message("expected %s, got %s\n", text, got);
    assert_true(stet_value_equal(v, want));
    stet_free(got);
    stet_value_release(want);
}

__attribute__((unused)) static void expect(stet_space *s, const char *branch, const char *cell, int64_t at,
                                           const char *text) {
    stet_value v;
    if (!text) {
        FAILS(stet_space_get(s, branch, cell, NULL, at, &v, &err), STET_NOT_FOUND, "");
        return;
    }
    OK(stet_space_get(s, branch, cell, NULL, at, &v, &err));
    holds_value(v, text);
    stet_value_release(v);
}

__attribute__((unused)) static stet_status patch(stet_space *s, const char *branch, const char *id, const char *ops,
                                                 stet_commit_result *r) {
    stet_tx *tx;
    OK(stet_tx_begin(s, branch, &tx, &err));
    stet_value list = json(ops);
    stet_status st = stet_tx_patch_value(tx, id, NULL, list, &err);
    stet_value_release(list);
    if (st == STET_OK)
        return stet_tx_commit(tx, r, &err);
    stet_tx_abort(tx);
    return st;
}

__attribute__((unused)) static stet_pathref path_of(stet_path *p, const char *pointer) {
    OK(stet_path_of_pointer(p, pointer, strlen(pointer), &err));
    return stet_path_ref(p);
}

#endif
