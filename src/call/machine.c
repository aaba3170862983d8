/* machine.c - the two state machines of a call, as tables of state and event. */

#include "call/machine.h"

#include <string.h>

/* An entry is the next state plus one, so that what is not written is forbidden. */
#define TO(state) ((signed char)((state) + 1))
#define BACK      ((signed char)-1) /* to where retry_wait came from */

static const signed char call_table[STET_CALL_STATES][STET_CALL_EVENTS] = {
    [STET_CALL_RESOLVE] =
        {
            [STET_CALL_PINNED] = TO(STET_CALL_PINNED_HIT),
            [STET_CALL_UNPINNED] = TO(STET_CALL_POLL),
            [STET_CALL_CANCELLED] = TO(STET_CALL_FAILED),
            [STET_CALL_ABANDONED] = TO(STET_CALL_FAILED),
        },
    [STET_CALL_POLL] =
        {
            [STET_CALL_PINNED] = TO(STET_CALL_PINNED_HIT), /* another executor was faster */
            [STET_CALL_PENDING] = TO(STET_CALL_POLL),
            [STET_CALL_DONE_OK] = TO(STET_CALL_INTEGRATE_OK),
            [STET_CALL_DONE_ERROR] = TO(STET_CALL_INTEGRATE_ERROR),
            [STET_CALL_TRANSIENT] = TO(STET_CALL_RETRY_WAIT),
            [STET_CALL_FINAL] = TO(STET_CALL_FAILED),
            [STET_CALL_CANCELLED] = TO(STET_CALL_FAILED),
            [STET_CALL_ABANDONED] = TO(STET_CALL_FAILED),
        },
    [STET_CALL_INTEGRATE_OK] =
        {
            [STET_CALL_INTEGRATED] = TO(STET_CALL_COMPLETED_OK),
            [STET_CALL_TRANSIENT] = TO(STET_CALL_RETRY_WAIT),
            [STET_CALL_FINAL] = TO(STET_CALL_FAILED),
            [STET_CALL_CANCELLED] = TO(STET_CALL_FAILED),
            [STET_CALL_ABANDONED] = TO(STET_CALL_FAILED),
        },
    [STET_CALL_INTEGRATE_ERROR] =
        {
            [STET_CALL_INTEGRATED] = TO(STET_CALL_COMPLETED_ERROR),
            [STET_CALL_AGAIN] = TO(STET_CALL_RETRY_WAIT),
            [STET_CALL_TRANSIENT] = TO(STET_CALL_RETRY_WAIT),
            [STET_CALL_FINAL] = TO(STET_CALL_FAILED),
            [STET_CALL_CANCELLED] = TO(STET_CALL_FAILED),
            [STET_CALL_ABANDONED] = TO(STET_CALL_FAILED),
        },
    [STET_CALL_RETRY_WAIT] =
        {
            [STET_CALL_PINNED] = TO(STET_CALL_PINNED_HIT),
            [STET_CALL_DUE] = BACK,
            [STET_CALL_EXHAUSTED] = TO(STET_CALL_FAILED),
            [STET_CALL_CANCELLED] = TO(STET_CALL_FAILED),
            [STET_CALL_ABANDONED] = TO(STET_CALL_FAILED),
        },
};

static const signed char orch_table[STET_ORCH_STATES][STET_ORCH_EVENTS] = {
    [STET_ORCH_LOOKUP] =
        {
            [STET_ORCH_CREATED] = TO(STET_ORCH_OWNER),
            [STET_ORCH_EXISTS] = TO(STET_ORCH_FOLLOW),
            [STET_ORCH_LOST] = TO(STET_ORCH_LOOKUP),
        },
    [STET_ORCH_OWNER] =
        {
            [STET_ORCH_SUBMITTED] = TO(STET_ORCH_JOB),
            [STET_ORCH_LOST] = TO(STET_ORCH_LOOKUP),
        },
    [STET_ORCH_FOLLOW] =
        {
            [STET_ORCH_LIVE] = TO(STET_ORCH_JOB),
            [STET_ORCH_TAKEN_OVER] = TO(STET_ORCH_OWNER),
            [STET_ORCH_LOST] = TO(STET_ORCH_LOOKUP),
        },
    [STET_ORCH_JOB] =
        {
            [STET_ORCH_RUNNING] = TO(STET_ORCH_PENDING),
            [STET_ORCH_OK] = TO(STET_ORCH_DONE_OK),
            [STET_ORCH_ERROR] = TO(STET_ORCH_DONE_ERROR),
            [STET_ORCH_LOST] = TO(STET_ORCH_LOOKUP),
        },
};

bool stet_call_step(stet_call_machine *m, stet_call_event event) {
    signed char next = call_table[m->state][event];
    if (next == 0)
        return false;
    stet_call_state to = next == BACK ? m->resume : (stet_call_state)(next - 1);
    if (to == STET_CALL_RETRY_WAIT)
        m->resume = event == STET_CALL_AGAIN ? STET_CALL_POLL : m->state;
    m->state = to;
    return true;
}

void stet_call_restore(stet_call_machine *m, bool done, int state, int resume) {
    bool ended = state >= STET_CALL_PINNED_HIT && state < STET_CALL_STATES;
    bool live = state > STET_CALL_RESOLVE && state < STET_CALL_PINNED_HIT;
    bool integrating = resume == STET_CALL_INTEGRATE_OK || resume == STET_CALL_INTEGRATE_ERROR;
    if (done)
        m->state = ended ? (stet_call_state)state : STET_CALL_FAILED;
    else
        m->state = live ? (stet_call_state)state : STET_CALL_POLL;
    m->resume = integrating ? (stet_call_state)resume : STET_CALL_POLL;
}

bool stet_call_terminal(stet_call_state state) {
    return state >= STET_CALL_PINNED_HIT;
}

static const char *const call_states[STET_CALL_STATES] = {"resolve_call_node", "poll_adapter",    "integrate_ok",
                                                          "integrate_error",   "retry_wait",      "pinned_hit",
                                                          "completed_ok",      "completed_error", "failed_terminal"};

const char *stet_call_state_name(stet_call_state state) {
    return call_states[state];
}

bool stet_call_state_of_name(const char *name, stet_call_state *out) {
    for (int i = 0; i < STET_CALL_STATES; i++)
        if (strcmp(call_states[i], name) == 0) {
            *out = (stet_call_state)i;
            return true;
        }
    return false;
}

const char *stet_call_event_name(stet_call_event event) {
    static const char *const names[STET_CALL_EVENTS] = {"pinned",    "unpinned",  "pending",    "done_ok", "done_error",
                                                        "transient", "final",     "integrated", "again",   "due",
                                                        "exhausted", "cancelled", "abandoned"};
    return names[event];
}

bool stet_orch_step(stet_orch_state *state, stet_orch_event event) {
    signed char next = orch_table[*state][event];
    if (next == 0)
        return false;
    *state = (stet_orch_state)(next - 1);
    return true;
}

bool stet_orch_terminal(stet_orch_state state) {
    return state >= STET_ORCH_PENDING;
}

const char *stet_orch_state_name(stet_orch_state state) {
    static const char *const names[STET_ORCH_STATES] = {
        "lookup_claim", "claimed_owner", "follow_existing", "job_pending", "pending", "done_ok", "done_error"};
    return names[state];
}

const char *stet_orch_event_name(stet_orch_event event) {
    static const char *const names[STET_ORCH_EVENTS] = {"created", "exists", "live",  "taken_over", "submitted",
                                                        "running", "ok",     "error", "lost"};
    return names[event];
}
