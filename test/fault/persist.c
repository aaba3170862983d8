/* persist.c - each system call of put, get and cleanup fails in turn.
 *
 * The failures are a full disk, a device error, another file system, a short read or write, and an interruption. Each
 * is all or nothing, nothing leaks, and the next try works.
 */

#include "../expect.h"

#include "../faults.h"
#include "../persist_place.h"

static int serial;

typedef struct place {
    char dir[32];
    stet_persist *p;
} place;

static void note(void *ctx, const stet_persist_problem *problem) {
    print_message("# %s: %s\n", problem->where, problem->what);
    ++*(int *)ctx;
}

static place start(void) {
    place x;
    stet_persist_config c = place_config();
    c.max_entries_in_log = 4;
    c.strategy = (stet_persist_limits){100, -1, -1, -1};
    c.lock_timeout_ms = 200;
    snprintf(x.dir, sizeof x.dir, "f%d", ++serial);
    mkdir(x.dir, 0777);
    OK(place_open(x.dir, "m1", &c, &x.p, &err));
    OK(place_put(x.p, "b", M1, T0, "one", 3, &err));
    return x;
}

static void end(place *x) {
    stet_persist_close(x->p);
    OK(stet_file_remove_tree(x->dir, &err));
}

/* Everything that must hold whatever failed. */
static void whole(place *x, bool temp_gone) {
    assert_true(place_has(x->p, "b", M1, T0, "one", 3));
    int problems = 0;
    OK(stet_persist_check(x->p, false, note, &problems, &err));
    assert_int_equal(problems, 0);
    char temp[64];
    snprintf(temp, sizeof temp, "%s/l/temp", x->dir);
    if (temp_gone)
        assert_int_equal(faults_names(temp, "."), 0);
    /* And another process sees the same. */
    stet_persist_config c = place_config();
    stet_persist *other;
    OK(place_open(x->dir, "m1", &c, &other, &err));
    assert_true(place_has(other, "b", M1, T0, "one", 3));
    stet_persist_close(other);
}

static void each_put(stet_sys_action action, int error_number, bool sticky, bool may_pass) {
    int step = getenv("STET_TEST_SHORT") ? 5 : 1;
    char large[70000];
    memset(large, 'x', sizeof large);
    for (int64_t n = 1;; n += step) {
        place x = start();
        int before = faults_descriptors();
        faults_arm_any(n, action, error_number);
        if (sticky)
            faults_sticky();
        stet_error e = STET_ERROR_INIT;
        bool small_ok = place_put(x.p, "b", M1, T0 + 1, "two", 3, &e) == STET_OK;
        stet_error_clear(&e);
        bool large_ok = place_put(x.p, "b", M1, T0 + 2, large, sizeof large, &e) == STET_OK;
        stet_error_clear(&e);
        bool fired = faults_fired();
        faults_disarm();
        assert_true(faults_descriptors() <= before + 4); /* locks and the log, which stay open */
        whole(&x, true);
        if (small_ok)
            assert_true(place_has(x.p, "b", M1, T0 + 1, "two", 3));
        if (large_ok)
            assert_true(place_has(x.p, "b", M1, T0 + 2, large, sizeof large));
        if (may_pass)
            assert_true(small_ok && large_ok);
        OK(place_put(x.p, "b", M1, T0 + 1, "two", 3, &err));
        OK(place_put(x.p, "b", M1, T0 + 2, large, sizeof large, &err));
        whole(&x, true);
        end(&x);
        if (!fired)
            break;
    }
}

static void put_eio(void **state) {
    (void)state;
    each_put(STET_SYS_FAIL, EIO, false, false);
}
static void put_disk_full(void **state) {
    (void)state;
    each_put(STET_SYS_FAIL, ENOSPC, true, false);
}
static void put_denied(void **state) {
    (void)state;
    each_put(STET_SYS_FAIL, EACCES, false, false);
}
static void put_short(void **state) {
    (void)state;
    each_put(STET_SYS_SHORT, 0, false, true);
}
static void put_interrupted(void **state) {
    (void)state;
    each_put(STET_SYS_EINTR, 0, false, true);
}

/* The temp directory turns out to lie on another file system. */
static void put_exdev(void **state) {
    (void)state;
    place x = start();
    faults_arm(STET_SYS_RENAME, 1, STET_SYS_FAIL, EXDEV);
    OK(place_put(x.p, "b", M1, T0 + 1, "two", 3, &err));
    assert_true(faults_fired());
    faults_disarm();
    whole(&x, true);
    assert_true(place_has(x.p, "b", M1, T0 + 1, "two", 3));
    faults_arm(STET_SYS_RENAME, 1, STET_SYS_FAIL, EXDEV);
    stet_persist_cleaned out;
    OK(stet_persist_cleanup_run(x.p, &(stet_persist_cleanup){0}, &out, &err));
    stet_persist_cleaned_release(&out);
    assert_true(faults_fired());
    faults_disarm();
    whole(&x, true);
    /* For ever: a clear error. */
    faults_arm(STET_SYS_RENAME, 1, STET_SYS_FAIL, EXDEV);
    faults_sticky();
    FAILS(place_put(x.p, "b", M1, T0 + 2, "three", 5, &err), STET_IO, "cannot put the object in place");
    faults_disarm();
    whole(&x, true);
    end(&x);
}

static void each_cleanup(int error_number, bool sticky) {
    int step = getenv("STET_TEST_SHORT") ? 5 : 1;
    for (int64_t n = 1;; n += step) {
        place x = start();
        for (uint64_t i = 1; i < 4; i++)
            OK(place_put(x.p, "b", M1, T0 - i, i == 1 ? "a" : i == 2 ? "bb" : "ccc", i, &err));
        stet_persist_limits l = {1, -1, -1, -1};
        stet_persist_cleaned out;
        stet_error e = STET_ERROR_INIT;
        faults_arm_any(n, STET_SYS_FAIL, error_number);
        if (sticky)
            faults_sticky();
        stet_status status = stet_persist_cleanup_run(x.p,
                                                      &(stet_persist_cleanup){.strategy = stet_persist_strategy_default,
                                                                              .ctx = &l,
                                                                              .include_content = STET_PERSIST_YES},
                                                      &out, &e);
        stet_persist_cleaned_release(&out);
        bool fired = faults_fired();
        faults_disarm();
        stet_error_clear(&e);
        whole(&x, true);
        if (status == STET_OK && !fired)
            assert_false(place_has(x.p, "b", M1, T0 - 1, "a", 1));
        OK(stet_persist_cleanup_run(x.p,
                                    &(stet_persist_cleanup){.strategy = stet_persist_strategy_default,
                                                            .ctx = &l,
                                                            .include_content = STET_PERSIST_YES},
                                    &out, &err));
        stet_persist_cleaned_release(&out);
        assert_false(place_has(x.p, "b", M1, T0 - 1, "a", 1));
        whole(&x, true);
        end(&x);
        if (!fired)
            break;
    }
}

static void cleanup_eio(void **state) {
    (void)state;
    each_cleanup(EIO, false);
}
static void cleanup_disk_full(void **state) {
    (void)state;
    each_cleanup(ENOSPC, true);
}

/* A read that fails is a miss or an error, never wrong bytes. */
static void get_eio(void **state) {
    (void)state;
    for (int64_t n = 1;; n++) {
        place x = start();
        OK(place_put(x.p, "b", M1, T0 + 1, "two", 3, &err));
        stet_persist_close(x.p);
        stet_persist_config c = place_config();
        OK(place_open(x.dir, "m1", &c, &x.p, &err));
        stet_persist_key k = {.block_id = "b", .module_hash = M1};
        stet_persist_entry *entry;
        stet_error e = STET_ERROR_INIT;
        faults_arm_any(n, STET_SYS_FAIL, EIO);
        if (stet_persist_get(x.p, &k, STET_PERSIST_LOAD, NULL, &entry, &e) == STET_OK) {
            assert_true(!strcmp(entry->contents[0].bytes, "two") || !strcmp(entry->contents[0].bytes, "one"));
            stet_persist_entry_free(entry);
        }
        bool fired = faults_fired();
        faults_disarm();
        stet_error_clear(&e);
        whole(&x, true);
        end(&x);
        if (!fired)
            break;
    }
}

int main(void) {
    faults_fast_directory();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(put_eio),     cmocka_unit_test(put_disk_full),     cmocka_unit_test(put_denied),
        cmocka_unit_test(put_short),   cmocka_unit_test(put_interrupted),   cmocka_unit_test(put_exdev),
        cmocka_unit_test(cleanup_eio), cmocka_unit_test(cleanup_disk_full), cmocka_unit_test(get_eio),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
