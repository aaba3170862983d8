/* repo.c - each system call and statement of work on the repository fails in turn, or the disk is full.
 *
 * A step is there completely or not at all, all objects are complete, and the same step works afterwards.
 */

#include "../expect.h"

#include <errno.h>

#include "../faults.h"
#include "../repo_steps.h"

static void fail_everywhere(const struct step *s, int error_number, bool sticky) {
    stet_repo *x;
    char *before, *after;
    step_states(s, &before, &after);
    int64_t n = 1, last = 0, stride = 1;
    for (;; n += stride) {
        stet_error why = STET_ERROR_INIT;
        int descriptors = faults_descriptors();
        step_prepare();
        faults_arm_any(n, STET_SYS_FAIL, error_number);
        if (sticky)
            faults_sticky();
        stet_status st = stet_repo_open_path("x.db", 0, &x, &why);
        if (st == STET_OK) {
            st = s->run(x, &why);
            stet_repo_close(x);
        }
        bool fired = faults_fired();
        faults_disarm();
        assert_int_equal(faults_descriptors(), descriptors);
        if (st != STET_OK && !(why.status != STET_OK && why.message[0]))
            fail_msg("%s at %lld: %s without a word", s->name, (long long)n, stet_status_name(st));
        char what[100];
        snprintf(what, sizeof what, "call %lld failed, it said %s", (long long)n, stet_status_name(st));
        step_expect(s, before, after, what);
        stet_error_clear(&why);
        if (!fired)
            break;
        last = n;
        if (n % 7 == 0) { /* the same step works afterwards */
            step_run(s);
            step_expect(s, after, after, "again");
        }
        if (n >=
            (s->run == step_pin || s->run == step_commit ? 200 : 40)) /* the middle of a large step is like its start */
            stride = getenv("STET_TEST_LONG") ? 7 : getenv("STET_TEST_SHORT") ? 1997 : 499;
        else if (sticky || getenv("STET_TEST_SHORT"))
            stride = 3;
    }
    print_message("# %s: about %lld calls\n", s->name, (long long)last);
    stet_free(before);
    stet_free(after);
}

static void a_call_fails(void **state) {
    (void)state;
    for (size_t i = 0; i < STEPS; i++)
        fail_everywhere(&steps[i], EIO, false);
}

static void the_disk_is_full(void **state) {
    (void)state;
    for (size_t i = 0; i < STEPS; i++)
        fail_everywhere(&steps[i], ENOSPC, true);
}

int main(void) {
    faults_fast_directory();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_fails),
        cmocka_unit_test(the_disk_is_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
