/* machine.h - the two state machines of a call, as tables of state and event.
 *
 * Pure: no clock, no disk, no process.
 *
 *     stet_call_machine m = STET_CALL_MACHINE;
 *     if (!stet_call_step(&m, STET_CALL_UNPINNED)) // this event can't happen in this state
 *         return STET_INTERNAL;
 *     printf("%s\n", stet_call_state_name(m.state));
 *
 * The executor's machine (call/executor.h) is about one call of one project:
 *
 *   resolve_call_node --unpinned-------> poll_adapter
 *   poll_adapter --pending--------> poll_adapter
 *   poll_adapter --done ok--------> integrate_ok
 *   poll_adapter --done error-----> integrate_error
 *   integrate_ok --integrated-----> completed_ok
 *   integrate_error --integrated-----> completed_error
 *   poll_adapter, integrate_ok, integrate_error
 *                      --transient------> retry_wait
 *                      --final----------> failed_terminal
 *   integrate_error --again----------> retry_wait, and from there to poll_adapter
 *   retry_wait --due------------> the state that it came from
 *   retry_wait --exhausted------> failed_terminal
 *   resolve_call_node, poll_adapter, retry_wait
 *                      --pinned---------> pinned_hit
 *   every state that is not terminal
 *                      --cancelled------> failed_terminal
 *                      --abandoned------> failed_terminal
 *
 * The orchestrator's machine (call/orchestrate.h) is about one poll of one execution key:
 *
 *   lookup_claim --created--------> claimed_owner
 *   lookup_claim --exists---------> follow_existing
 *   follow_existing --live-----------> job_pending
 *   follow_existing --taken over-----> claimed_owner
 *   claimed_owner --submitted------> job_pending
 *   job_pending --running--------> pending
 *   job_pending --ok-------------> done_ok
 *   job_pending --error----------> done_error
 *   every state that is not terminal
 *                      --lost-----------> lookup_claim
 *
 * An event that the table does not allow changes nothing.
 */
#ifndef STET_EXEC_MACHINE_H
#define STET_EXEC_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum stet_call_state {
    STET_CALL_RESOLVE,
    STET_CALL_POLL,
    STET_CALL_INTEGRATE_OK,
    STET_CALL_INTEGRATE_ERROR,
    STET_CALL_RETRY_WAIT,
    STET_CALL_PINNED_HIT, /* from here on: terminal */
    STET_CALL_COMPLETED_OK,
    STET_CALL_COMPLETED_ERROR,
    STET_CALL_FAILED,
    STET_CALL_STATES
} stet_call_state;

typedef enum stet_call_event {
    STET_CALL_PINNED,     /* a result is pinned, by an earlier attempt or by another process meanwhile */
    STET_CALL_UNPINNED,   /* no result is pinned, or its bytes are gone */
    STET_CALL_PENDING,    /* the adapter: still running */
    STET_CALL_DONE_OK,    /* the adapter: succeeded, with this result */
    STET_CALL_DONE_ERROR, /* the adapter: failed, with this error */
    STET_CALL_TRANSIENT,  /* the poll or the integration failed, and may succeed later */
    STET_CALL_FINAL,      /* it failed permanently */
    STET_CALL_INTEGRATED, /* objects are here, the record is written, the pin is committed */
    STET_CALL_AGAIN,      /* the failure is recorded, is not kept, and is worth another try */
    STET_CALL_DUE,        /* the time to try again has come */
    STET_CALL_EXHAUSTED,  /* no attempts are left */
    STET_CALL_CANCELLED,
    STET_CALL_ABANDONED, /* this executor cannot continue: its row cannot be written, or belongs to somebody else now */
    STET_CALL_EVENTS
} stet_call_event;

typedef struct stet_call_machine {
    stet_call_state state;
    stet_call_state resume; /* the state that retry_wait returns to */
} stet_call_machine;
#define STET_CALL_MACHINE                                                                                              \
    { STET_CALL_RESOLVE, STET_CALL_POLL }

/* False: the pair is forbidden, and nothing has changed. */
bool stet_call_step(stet_call_machine *m, stet_call_event event);
/* Takes over the state of a stored attempt. A live row with a number that no live row has starts again at poll_adapter,
 * which is always safe (E5 of call/executor.h); an ended one counts as failed. */
void stet_call_restore(stet_call_machine *m, bool done, int state, int resume);
bool stet_call_terminal(stet_call_state state);
const char *stet_call_state_name(stet_call_state state); /* "resolve_call_node", ... */
bool stet_call_state_of_name(const char *name, stet_call_state *out);
const char *stet_call_event_name(stet_call_event event);

typedef enum stet_orch_state {
    STET_ORCH_LOOKUP,
    STET_ORCH_OWNER,
    STET_ORCH_FOLLOW,
    STET_ORCH_JOB,
    STET_ORCH_PENDING, /* from here on: outcomes of the poll */
    STET_ORCH_DONE_OK,
    STET_ORCH_DONE_ERROR,
    STET_ORCH_STATES
} stet_orch_state;

typedef enum stet_orch_event {
    STET_ORCH_CREATED,    /* there was no claim, and this one is ours */
    STET_ORCH_EXISTS,     /* there is one */
    STET_ORCH_LIVE,       /* its lease is valid, or it has ended: follow it */
    STET_ORCH_TAKEN_OVER, /* its lease was stale, and it is ours now */
    STET_ORCH_SUBMITTED,  /* the backend has the job, and the claim says so */
    STET_ORCH_RUNNING,    /* the job is queued or running */
    STET_ORCH_OK,         /* it has ended, and its result is published */
    STET_ORCH_ERROR,
    STET_ORCH_LOST, /* the swap failed: another process was faster */
    STET_ORCH_EVENTS
} stet_orch_event;

bool stet_orch_step(stet_orch_state *state, stet_orch_event event);
bool stet_orch_terminal(stet_orch_state state);
const char *stet_orch_state_name(stet_orch_state state);
const char *stet_orch_event_name(stet_orch_event event);

#endif
