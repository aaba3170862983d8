/* repos.c - the list of projects while each system call fails, is cut short or is interrupted in turn.
 *
 * Either the old list is there or the new one, complete; acknowledged changes are there; no descriptor leaks and no
 * temporary file stays. Waiting for its lock is tested too.
 */

#include "../expect.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../faults.h"
#include "fleet/repos.h"
#include "os/file.h"
#include "os/lock.h"
#include "project/project.h"

static const stet_repos_wait no_wait = {200, NULL, NULL};

static size_t listed(const char *home) {
    stet_value repos;
    OK(stet_repos_list(home, &repos, &err));
    size_t n = stet_value_count(repos);
    stet_value_release(repos);
    return n;
}

static void make_project(const char *dir) {
    bool created;
    OK(stet_project_init(dir, &created, &err));
}

static void each_call(stet_sys_action action, int error_number, bool any) {
    char home[64];
    for (int n = 1;; n++) {
        assert_true(n < 400);
        snprintf(home, sizeof home, "home-%d-%d-%d", (int)action, error_number, n);
        char *root;
        bool added;
        OK(stet_repos_add(home, "p/one", 1000, &no_wait, &root, &added, &err));
        assert_true(added);
        stet_free(root);
        int before = faults_descriptors();
        if (any)
            faults_arm_any(n, action, error_number);
        else
            faults_arm_durable(n, action, error_number);
        stet_status status = stet_repos_add(home, "p/two", 2000, &no_wait, &root, &added, &err);
        bool fired = faults_fired();
        faults_disarm();
        assert_int_equal(faults_descriptors(), before);
        size_t now = listed(home);
        if (status == STET_OK) {
            assert_int_equal(now, 2);
            stet_free(root);
        } else {
            assert_true(now == 1 || now == 2);
            assert_int_equal(err.status, status);
            stet_error_clear(&err);
            /* With the fault gone it can be done again. */
            OK(stet_repos_add(home, "p/two", 2000, &no_wait, &root, &added, &err));
            stet_free(root);
            assert_int_equal(listed(home), 2);
        }
        char registry[96];
        snprintf(registry, sizeof registry, "%s/registry", home);
        if (!(action == STET_SYS_FAIL && fired)) /* its unlink may have been what failed */
            assert_int_equal(faults_names(registry, "temp"), 0);
        OK(stet_file_remove_tree(home, &err));
        if (!fired)
            break;
    }
}

static void test_each_call(void **state) {
    (void)state;
    make_project("p/one");
    make_project("p/two");
    each_call(STET_SYS_FAIL, ENOSPC, true);
    each_call(STET_SYS_FAIL, EROFS, false);
    each_call(STET_SYS_SHORT, 0, true);
    each_call(STET_SYS_EINTR, 0, true);
}

static int asked;
static bool third_time(void *ctx) {
    (void)ctx;
    return ++asked >= 3;
}

static void test_waiting(void **state) {
    (void)state;
    make_project("q");
    char *root;
    bool added;
    stet_lock *held;
    OK(stet_repos_add("home", "q", 0, NULL, &root, &added, &err));
    stet_free(root);
    OK(stet_lock_open("home/registry/repos.lock", STET_LOCK_PLAIN, &held, &err));
    OK(stet_lock_take(held, STET_LOCK_EXCLUSIVE, 0, &err));
    stet_repos_wait wait = {150, NULL, NULL};
    assert_int_equal(stet_repos_add("home", "q", 0, &wait, &root, &added, &err), STET_BUSY);
    stet_error_clear(&err);
    wait = (stet_repos_wait){60000, third_time, NULL};
    assert_int_equal(stet_repos_remove("home", "q", &wait, &root, &err), STET_CANCELLED);
    assert_int_equal(asked, 3);
    stet_error_clear(&err);
    assert_int_equal(listed("home"), 1); /* reading waits for nobody */
    stet_lock_close(held);
    OK(stet_repos_remove("home", "q", &wait, &root, &err));
    stet_free(root);
    assert_int_equal(listed("home"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_call), cmocka_unit_test(test_waiting)};
    return cmocka_run_group_tests_name("repos", tests, NULL, NULL);
}
