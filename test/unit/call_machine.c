/* call_machine.c - the two state machines of calls: every pair of state and event, forbidden ones too; back-off. */

#include "../expect.h"

#include "call/backoff.h"
#include "call/machine.h"

/* What the machine must do, written down a second time: N is forbidden, B is back to where it came from. */
#define N (-1)
#define B (-2)

static void every_pair_of_the_executor(void **state) {
    (void)state;
    enum { RS, PO, IO, IE, RW, PH, CO, CE, FT };
    static const int want[STET_CALL_STATES][STET_CALL_EVENTS] = {
        /* pinned unpinned pending done_ok done_err transient final integrated again due exhausted cancelled abandoned */
        [RS] = {PH, PO, N, N, N, N, N, N, N, N, N, FT, FT},  [PO] = {PH, N, PO, IO, IE, RW, FT, N, N, N, N, FT, FT},
        [IO] = {N, N, N, N, N, RW, FT, CO, N, N, N, FT, FT}, [IE] = {N, N, N, N, N, RW, FT, CE, RW, N, N, FT, FT},
        [RW] = {PH, N, N, N, N, N, N, N, N, B, FT, FT, FT},  [PH] = {N, N, N, N, N, N, N, N, N, N, N, N, N},
        [CO] = {N, N, N, N, N, N, N, N, N, N, N, N, N},      [CE] = {N, N, N, N, N, N, N, N, N, N, N, N, N},
        [FT] = {N, N, N, N, N, N, N, N, N, N, N, N, N},
    };
    static const stet_call_state resumes[] = {STET_CALL_POLL, STET_CALL_INTEGRATE_OK, STET_CALL_INTEGRATE_ERROR};
    for (int s = 0; s < STET_CALL_STATES; s++)
        for (int e = 0; e < STET_CALL_EVENTS; e++)
            for (int r = 0; r < 3; r++) {
                stet_call_machine m = {(stet_call_state)s, resumes[r]};
                bool done = stet_call_step(&m, (stet_call_event)e);
                int to = want[s][e] == B ? (int)resumes[r] : want[s][e];
                if (done != (to != N) || (int)m.state != (to == N ? s : to))
                    fail_msg("%s in %s gives %s", stet_call_event_name((stet_call_event)e),
                             stet_call_state_name((stet_call_state)s), stet_call_state_name(m.state));
                int resume = e == STET_CALL_AGAIN ? PO : s; /* a new try begins with a poll */
                assert_int_equal(m.resume, to == RW ? resume : (int)resumes[r]);
            }
    for (int s = 0; s < STET_CALL_STATES; s++) {
        stet_call_state back;
        assert_int_equal(stet_call_terminal((stet_call_state)s), s >= PH);
        assert_true(stet_call_state_of_name(stet_call_state_name((stet_call_state)s), &back));
        assert_int_equal(back, s);
    }
}

static void rows_are_restored_to_a_state_that_they_can_have(void **state) {
    (void)state;
    for (int s = -3; s < STET_CALL_STATES + 3; s++)
        for (int r = -3; r < STET_CALL_STATES + 3; r++)
            for (int done = 0; done < 2; done++) {
                stet_call_machine m = STET_CALL_MACHINE;
                stet_call_restore(&m, done, s, r);
                bool ended = s >= STET_CALL_PINNED_HIT && s < STET_CALL_STATES;
                bool live = s > STET_CALL_RESOLVE && s < STET_CALL_PINNED_HIT;
                assert_int_equal(m.state, done ? (ended ? s : STET_CALL_FAILED) : (live ? s : STET_CALL_POLL));
                assert_true(m.resume == STET_CALL_POLL || (int)m.resume == r);
                assert_true(m.resume >= STET_CALL_POLL && m.resume <= STET_CALL_INTEGRATE_ERROR);
            }
}

static void every_pair_of_the_orchestrator(void **state) {
    (void)state;
    enum { LU, OW, FO, JP, PE, OK_, ER };
    static const int want[STET_ORCH_STATES][STET_ORCH_EVENTS] = {
        /*       created exists live taken submitted running ok error lost */
        [LU] = {OW, FO, N, N, N, N, N, N, LU}, [OW] = {N, N, N, N, JP, N, N, N, LU},
        [FO] = {N, N, JP, OW, N, N, N, N, LU}, [JP] = {N, N, N, N, N, PE, OK_, ER, LU},
        [PE] = {N, N, N, N, N, N, N, N, N},    [OK_] = {N, N, N, N, N, N, N, N, N},
        [ER] = {N, N, N, N, N, N, N, N, N},
    };
    for (int s = 0; s < STET_ORCH_STATES; s++)
        for (int e = 0; e < STET_ORCH_EVENTS; e++) {
            stet_orch_state now = (stet_orch_state)s;
            bool done = stet_orch_step(&now, (stet_orch_event)e);
            if (done != (want[s][e] != N) || (int)now != (want[s][e] == N ? s : want[s][e]))
                fail_msg("%s in %s gives %s", stet_orch_event_name((stet_orch_event)e),
                         stet_orch_state_name((stet_orch_state)s), stet_orch_state_name(now));
        }
    for (int s = 0; s < STET_ORCH_STATES; s++)
        assert_int_equal(stet_orch_terminal((stet_orch_state)s), s >= PE);
}

static void ceilings_double_and_waits_stay_below(void **state) {
    (void)state;
    stet_backoff b = {.attempts = 12, .first_ms = 1000, .most_ms = 60000, .seed = 7};
    static const int64_t ceilings[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    for (int i = 0; i < 8; i++) {
        assert_int_equal(stet_backoff_ceiling(&b, i + 1), ceilings[i]);
        int64_t least = INT64_MAX, most = -1;
        for (int k = 0; k < 2000; k++) {
            int64_t wait = stet_backoff_next(&b, i + 1);
            assert_true(wait >= 0 && wait <= ceilings[i]);
            least = wait < least ? wait : least;
            most = wait > most ? wait : most;
        }
        /* Full jitter: from nothing to the ceiling. */
        assert_true(least < ceilings[i] / 50 && most > ceilings[i] - ceilings[i] / 50);
    }
    assert_int_equal(stet_backoff_ceiling(&b, 1000000), 60000);
}

static void same_seed_same_waits_and_the_budget_ends(void **state) {
    (void)state;
    stet_backoff a = {.attempts = 5, .first_ms = 1000, .most_ms = 60000, .seed = 42}, b = a;
    for (int i = 1; i < 5; i++)
        assert_int_equal(stet_backoff_next(&a, i), stet_backoff_next(&b, i));
    assert_int_equal(stet_backoff_next(&a, 5), -1);
    stet_backoff once = {.attempts = 1, .first_ms = 1000, .most_ms = 60000, .seed = 1};
    assert_int_equal(stet_backoff_next(&once, 1), -1);
    stet_backoff at_once = {.attempts = 3, .first_ms = 0, .most_ms = 0, .seed = 1};
    assert_int_equal(stet_backoff_next(&at_once, 1), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_the_executor),
        cmocka_unit_test(rows_are_restored_to_a_state_that_they_can_have),
        cmocka_unit_test(every_pair_of_the_orchestrator),
        cmocka_unit_test(ceilings_double_and_waits_stay_below),
        cmocka_unit_test(same_seed_same_waits_and_the_budget_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
