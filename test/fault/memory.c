/* memory.c - each system call and each statement of a commit fails in turn, or the process dies there.
 *
 * The commit is there completely or not at all, the handle shows what the file holds, and the next commit works.
 */

#include "../expect.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../faults.h"
#include "memory/space.h"
#include "os/file.h"

static stet_value json(const char *text) {
    stet_value v = stet_value_null();
    OK(stet_json_parse(text, strlen(text), &v, &err));
    return v;
}

static void clean(void) {
    static const char *const names[] = {"x.db", "x.db-wal", "x.db-shm", "x.db-journal", "x.db.writer"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(names[i]);
}

/* A space with something in it: a document near its anchor, so that the commit below writes a snapshot too. */
static void prepare(void) {
    stet_space *s;
    stet_tx *tx;
    stet_copy_how how;
    if (stet_file_exists("base.db")) {
        OK(stet_file_copy("base.db", "x.db", 0644, false, &how, &err));
        return;
    }
    OK(stet_space_open_path("base.db", "x", 0, &s, &err));
    for (int i = 0; i < 63; i++) {
        stet_value ops = json("[{\"op\":\"increment\",\"path\":\"/n\"}]");
        OK(stet_tx_begin(s, NULL, &tx, &err));
        OK(stet_tx_patch_value(tx, "old", NULL, ops, &err));
        OK(stet_tx_commit(tx, NULL, &err));
        stet_value_release(ops);
    }
    OK(stet_branch_create(s, "b", NULL, -1, &err));
    stet_space_close(s);
    prepare();
}

/* One commit with all that a commit can have: a patch, a new document, a deletion of nothing, a read, a precondition
 * and a session. */
static stet_status commit(stet_space *s, int64_t local) {
    stet_tx *tx;
    stet_value v;
    stet_status st = stet_tx_begin(s, NULL, &tx, &err);
    if (st != STET_OK)
        return st;
    st = stet_tx_get(tx, "old/n", NULL, &v, &err);
    if (st == STET_OK)
        st = stet_tx_set(tx, "old/n", NULL, stet_value_int(stet_value_as_int(v) + 1), &err);
    char id[32];
    snprintf(id, sizeof id, "new:%d", (int)local);
    if (st == STET_OK)
        st = stet_tx_require_absent(tx, id, NULL, &err);
    if (st == STET_OK)
        st = stet_tx_set(tx, id, NULL, stet_value_int(local), &err);
    if (st == STET_OK)
        st = stet_tx_session(tx, "session", local, &err);
    if (st == STET_OK)
        return stet_tx_commit(tx, NULL, &err);
    stet_tx_abort(tx);
    return st;
}

static int64_t number(stet_space *s, const char *cell) {
    stet_value v = stet_value_null();
    stet_status st = stet_space_get(s, NULL, cell, NULL, -1, &v, &err);
    if (st == STET_NOT_FOUND) {
        stet_error_clear(&err);
        return -1;
    }
    OK(st);
    return stet_value_as_int(v);
}

/* All or nothing: the two documents of commit `local` agree. Returns whether it is there. */
static bool whole(stet_space *s, int64_t local, int64_t before, const char *what, int n) {
    char id[32];
    snprintf(id, sizeof id, "new:%d", (int)local);
    int64_t made = number(s, id), count = number(s, "old/n");
    if ((made == local) != (count == before + 1) || (count != before && count != before + 1))
        fail_msg("%s, call %d: half a commit: %d and %d after %d", what, n, (int)made, (int)count, (int)before);
    return made == local;
}

static void sound(const char *what, int n) {
    stet_space *s;
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    OK(stet_space_open_path("x.db", "x", 0, &s, &err));
    OK(stet_space_check(s, false, &problems, &found, &repaired, &err));
    if (found)
        fail_msg("%s, call %d: %s", what, n, stet_buf_cstr(&problems));
    stet_buf_release(&problems);
    stet_space_close(s);
}

static void failing(stet_sys_action action, int error_number, bool sticky, const char *what) {
    int step = getenv("STET_TEST_SHORT") ? 5 : 1;
    for (int n = 1;; n += step) {
        clean();
        prepare();
        stet_space *s;
        faults_arm_any(0, STET_SYS_FAIL, EIO); /* the file layer that can fail is chosen at open */
        OK(stet_space_open_path("x.db", "x", 0, &s, &err));
        int64_t before = number(s, "old/n");
        faults_arm_any(n, action, error_number);
        if (sticky)
            faults_sticky();
        stet_status st = commit(s, 1);
        bool fired = faults_fired();
        faults_disarm();
        if (st == STET_OK && !whole(s, 1, before, what, n))
            fail_msg("%s, call %d: acknowledged and lost", what, n);
        if (st != STET_OK && st != STET_IO && st != STET_BUSY && st != STET_CORRUPT && st != STET_CONFLICT)
            fail_msg("%s, call %d: status %s: %s", what, n, stet_status_name(st), err.message);
        stet_error_clear(&err);
        bool there = whole(s, 1, before, what, n);
        /* the same one again: done now, or found done (a session), never twice */
        OK(commit(s, 2));
        assert_int_equal(number(s, "old/n"), before + 1 + there);
        stet_space_close(s);
        sound(what, n);
        if (!fired)
            break;
    }
}

static void every_call_fails_once(void **state) {
    (void)state;
    failing(STET_SYS_FAIL, EIO, false, "EIO");
}

static void the_disk_is_full_from_some_call_on(void **state) {
    (void)state;
    failing(STET_SYS_FAIL, ENOSPC, true, "ENOSPC");
}

static void writes_are_short_and_interrupted(void **state) {
    (void)state;
    failing(STET_SYS_SHORT, EIO, false, "short");
}

/* A group, with members of which one is dropped. */
static stet_status flush(stet_space *s) {
    stet_group *g;
    stet_tx *tx;
    stet_status st = stet_group_begin(s, NULL, &g, &err);
    if (st != STET_OK)
        return st;
    for (int i = 0; i < 20 && st == STET_OK; i++) {
        char id[32];
        snprintf(id, sizeof id, "g:%d", i);
        st = stet_tx_begin_in(g, &tx, &err);
        if (st != STET_OK)
            break;
        if (i == 7)
            st = stet_tx_require_absent(tx, "old", NULL, &err);
        if (st == STET_OK)
            st = stet_tx_set(tx, id, NULL, stet_value_int(i), &err);
        if (st == STET_OK)
            st = stet_group_add(g, tx, NULL, NULL, &err);
        if (st != STET_OK)
            stet_tx_abort(tx);
    }
    if (st == STET_OK)
        st = stet_group_flush(g, &err);
    if (st != STET_OK && stet_group_len(g) == 20) { /* it may be tried again */
        faults_disarm();
        stet_error_clear(&err);
        st = stet_group_flush(g, &err);
        OK(st);
    }
    stet_group_end(g);
    return st;
}

static void a_group_that_failed_is_flushed_again(void **state) {
    (void)state;
    int step = getenv("STET_TEST_SHORT") ? 5 : 1;
    for (int n = 1;; n += step) {
        clean();
        prepare();
        stet_space *s;
        faults_arm_any(0, STET_SYS_FAIL, EIO);
        OK(stet_space_open_path("x.db", "x", 0, &s, &err));
        faults_arm_any(n, STET_SYS_FAIL, EIO);
        stet_status st = flush(s);
        bool fired = faults_fired();
        faults_disarm();
        stet_error_clear(&err);
        if (st != STET_OK)
            OK(flush(s));
        for (int i = 0; i < 20; i++) {
            char id[32];
            snprintf(id, sizeof id, "g:%d", i);
            if (number(s, id) != (i == 7 ? -1 : i))
                fail_msg("call %d: member %d is %d, flush said %s", n, i, (int)number(s, id), stet_status_name(st));
        }
        int64_t seq;
        OK(stet_space_seq(s, &seq, &err));
        assert_int_equal(seq, 63 + 19);
        stet_space_close(s);
        sound("group", n);
        if (!fired)
            break;
    }
}

static void the_process_dies_at_every_call(void **state) {
    (void)state;
    int step = getenv("STET_TEST_SHORT") ? 9 : 1;
    for (int n = 1;; n += step) {
        clean();
        prepare();
        int pipes[2];
        assert_int_equal(pipe(pipes), 0);
        pid_t child = fork();
        if (child == 0) {
            stet_space *s;
            faults_arm_durable(0, STET_SYS_KILL, EIO);
            if (stet_space_open_path("x.db", "x", 0, &s, &err) != STET_OK)
                _exit(2);
            faults_arm_durable(n, n % 2 ? STET_SYS_KILL : STET_SYS_KILL_AFTER, EIO);
            if (commit(s, 1) != STET_OK || write(pipes[1], "!", 1) != 1)
                _exit(3);
            _exit(0);
        }
        close(pipes[1]);
        char ack = 0;
        bool acknowledged = read(pipes[0], &ack, 1) == 1;
        close(pipes[0]);
        int status;
        waitpid(child, &status, 0);
        stet_space *s;
        OK(stet_space_open_path("x.db", "x", 0, &s, &err));
        bool there = whole(s, 1, 63, "killed", n);
        if (acknowledged && !there)
            fail_msg("killed at call %d: acknowledged and lost", n);
        OK(commit(s, 2));
        stet_space_close(s);
        sound("killed", n);
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            break;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_fails_once),
        cmocka_unit_test(the_disk_is_full_from_some_call_on),
        cmocka_unit_test(writes_are_short_and_interrupted),
        cmocka_unit_test(a_group_that_failed_is_flushed_again),
        cmocka_unit_test(the_process_dies_at_every_call),
    };
    return cmocka_run_group_tests_name("memory faults", tests, NULL, NULL);
}
