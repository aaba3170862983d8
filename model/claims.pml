/* claims.pml - the protocol of claims and leases, for Spin. `make model` checks it.
 *
 * One execution key in a hub, two machines. Each has a worker that polls as stet_orch_poll does (src/call/orchestrate.c)
 * and a keeper (src/call/keeper.c). States have the names of src/call/claim.h. A swap compares versions, and its answer
 * may get lost: then the writer reads the claim back and compares the version (stet_claim_swap).
 *
 * What happens, at any time and in any order: workers are killed, machines go down, jobs are killed, time passes at the
 * hub, a caller cancels, and a lease ends.
 *
 * Two ways to check it:
 *
 *   punctual   A lease ends only if nobody is there who renews it. Checked: healthy_once, one_publisher, kept.
 *   -DSTALLS   A lease ends at any time, since a process may be stopped for as long as it takes. Then a job may be
 *              started while another one still runs, and what counts is who publishes. Checked: one_publisher, kept.
 *
 * Assumption: between asking whether the claim is still its own and starting the job a worker is not stopped for longer
 * than a lease (own() in orchestrate.c). Otherwise two jobs run; the second one publishes nothing.
 *
 * Mistakes that the model must find, to show that it can: -DHOST_CLOCK (leases are judged by the clock of the host, which
 * is ahead), -DNO_FENCE (publishing does not compare versions), -DNO_KEEPER (nobody renews for a dead worker).
 */

#ifdef STALLS
#define L        1 /* of a lease, in ticks of the hub */
#else
#define L        2
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 4 /* bounds of the search */
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#define NOBODY   9
#define KEEPER(w) (w + 2) /* the keeper of a machine, as an owner */
#define HOME(o)  (o % 2)

mtype = { QUEUED, CLAIMED, RUNNING, OK, CANCELLED };
/* NONE: the backend does not know it. */
mtype:job = { NONE, UP, DONE };

/* The claim, at the hub. */
mtype state = QUEUED;
byte owner = NOBODY, attempt = 1, left = 0, result = 0;

/* Versions matter only for being equal: the claim is still the one that this process has read or written last. Processes
 * are numbered as owners. Every write makes it false for all others. */
bool fresh[4];

/* The machines. */
mtype:job job[2] = { NONE, NONE };
byte job_of[2]; /* the attempt for which it was started */
bool worker_up[2] = { true, true };
bool machine_up[2] = { true, true };

/* What must not be. */
bool started_twice = false, published_twice = false;
byte first = 0; /* the first result that was accepted */
byte kills = 0, cancels = 0;

#define alive(P)  (machine_up[HOME(P)] && (P > 1 || worker_up[HOME(P)]))
#define held      (state == CLAIMED || state == RUNNING)
/* Is there somebody who renews the lease in time? The worker that owns it, or the keeper of its machine. */
#ifdef NO_KEEPER
#define renewer   (owner < 2 && worker_up[HOME(owner)] && machine_up[HOME(owner)])
#else
#define renewer   (owner < 4 && machine_up[HOME(owner)] && ((owner < 2 && worker_up[HOME(owner)]) || job[HOME(owner)] != NONE))
#endif
#ifdef HOST_CLOCK
#define lapsed(w) (left == 0 || (w == 1 && left < L)) /* the clock of machine 1 is ahead */
#else
#define lapsed(w) (left == 0)
#endif

#define written_by(P) fresh[0] = false; fresh[1] = false; fresh[2] = false; fresh[3] = false; fresh[P] = true

#define nobody_fresh  fresh[0] = false; fresh[1] = false; fresh[2] = false; fresh[3] = false

/* One swap by process P. TOLD: the writer believes that it happened. */
byte lost_answers = 0;
inline swap(P, STATE, OWNER, NUMBER, TOLD) {
    atomic {
        if
        :: fresh[P] && alive(P) ->
            state = STATE; owner = OWNER; attempt = NUMBER; left = L; written_by(P);
            TOLD = true
        :: else -> TOLD = false
        fi
    }
    if
    :: skip                                /* the answer came */
    :: lost_answers < FAULTS -> lost_answers++; /* it did not: read back */
        TOLD = TOLD && fresh[P] /* is it this very write? */
    fi
}

/* Publishing is a swap that carries the result. M is the machine of the job. */
inline publish(P, M, TOLD) {
    atomic {
        if
#ifdef NO_FENCE
        :: alive(P) ->
#else
        :: fresh[P] && alive(P) ->
#endif
            if
            :: first != 0 -> published_twice = true
            :: else
            fi;
            state = OK; owner = P; result = job_of[M]; written_by(P);
            if
            :: first == 0 -> first = result
            :: else
            fi;
            TOLD = true
        :: else -> TOLD = false
        fi
    }
    if
    :: TOLD -> job[M] = NONE /* forget */
    :: else
    fi
}

inline start(M, NUMBER) {
    atomic { /* still_mine, and then at once */
        if
        :: fresh[M] && alive(M) && job[M] == NONE ->
            if
            :: job[1 - M] == UP -> started_twice = true
            :: else
            fi;
            job[M] = UP; job_of[M] = NUMBER
        :: else
        fi
    }
}

#ifdef TRACE
#define BEGIN_POLL atomic {
#define END_POLL(w) printf("poll %d %e %d %d\n", w, state, owner, attempt) }
#else
#define BEGIN_POLL
#define END_POLL(w) skip
#endif

proctype Worker(byte w) {
    byte saw_owner, saw_attempt, saw_left;
    mtype saw_state;
    bool told;
    do
    :: !(worker_up[w] && machine_up[w]) -> break
    :: state == OK -> break
    :: attempt >= ATTEMPTS -> break
    :: worker_up[w] && machine_up[w] && state != OK && attempt < ATTEMPTS ->
        BEGIN_POLL
        atomic { saw_state = state; saw_owner = owner; saw_attempt = attempt; saw_left = left; fresh[w] = true; told = false }
        if
        :: saw_state == QUEUED || ((saw_state == CLAIMED || saw_state == RUNNING) && saw_owner != w && lapsed(w)) ->
            swap(w, CLAIMED, w, saw_attempt + 1, told);
            if
            :: told -> saw_state = CLAIMED; saw_owner = w; saw_attempt++
            :: else
            fi
        :: else
        fi;
        if
        :: worker_up[w] && saw_owner == w && saw_state == CLAIMED ->
            start(w, saw_attempt);
            if
            :: job[w] != NONE -> swap(w, RUNNING, w, saw_attempt, told)
            :: else
            fi
        :: worker_up[w] && saw_owner == w && saw_state == RUNNING ->
            if
            :: job[w] == UP && saw_left < L -> swap(w, RUNNING, w, saw_attempt, told)
            :: job[w] == UP && saw_left == L
            :: job[w] == DONE -> publish(w, w, told)
            :: job[w] == NONE -> swap(w, CLAIMED, w, saw_attempt + 1, told)
            fi
        :: worker_up[w] && saw_owner != w && saw_owner != KEEPER(w) && job[w] != NONE && alive(w) -> job[w] = NONE /* let_go */
        :: else
        fi;
        END_POLL(w);
        atomic { saw_state = QUEUED; saw_owner = 0; saw_attempt = 0; saw_left = 0; told = false }
    od
}

#ifndef NO_KEEPER
proctype Keeper(byte w) {
    byte saw_owner, saw_attempt, saw_left;
    mtype saw_state;
    bool told;
    do
    :: !machine_up[w] -> break
    :: state == OK -> break
    :: attempt >= ATTEMPTS -> break
    :: machine_up[w] && !worker_up[w] && held && HOME(owner) == w && job[w] != NONE && attempt < ATTEMPTS ->
        atomic { saw_state = state; saw_owner = owner; saw_attempt = attempt; saw_left = left; fresh[KEEPER(w)] = true; told = false }
        if
        :: (saw_state == CLAIMED || saw_state == RUNNING) && saw_owner == w -> /* of a dead worker */
            swap(KEEPER(w), saw_state, KEEPER(w), saw_attempt + 1, told)
        :: saw_state == CLAIMED && saw_owner == KEEPER(w) -> /* submitting finds the job */
            swap(KEEPER(w), RUNNING, KEEPER(w), saw_attempt, told)
        :: saw_state == RUNNING && saw_owner == KEEPER(w) ->
            if
            :: job[w] == UP && saw_left < L -> swap(KEEPER(w), RUNNING, KEEPER(w), saw_attempt, told)
            :: job[w] == DONE -> publish(KEEPER(w), w, told)
            :: else
            fi
        :: else
        fi;
        atomic { saw_state = QUEUED; saw_owner = 0; saw_attempt = 0; saw_left = 0; told = false }
    od
}
#endif

proctype World() {
    do
    :: state == OK || attempt >= ATTEMPTS -> break
    :: atomic { job[0] == UP -> job[0] = DONE; printf("ends 0\n") }
    :: atomic { job[1] == UP -> job[1] = DONE; printf("ends 1\n") }
    :: atomic { kills < FAULTS && job[0] == UP -> job[0] = NONE; kills++; printf("kills 0\n") }
    :: atomic { kills < FAULTS && worker_up[0] -> worker_up[0] = false; kills++; printf("dies 0\n") }
#ifndef TRACE
    :: atomic { kills < FAULTS && machine_up[0] -> machine_up[0] = false; worker_up[0] = false; job[0] = NONE; kills++ }
#endif
    /* Time at the hub. */
#ifdef STALLS
    :: atomic { held && left > 0 -> left--; printf("tick\n") }
    :: atomic { cancels < 1 && state != OK ->
            cancels++; state = CANCELLED; owner = NOBODY; attempt++; nobody_fresh; printf("cancels\n") }
    :: atomic { state == CANCELLED -> state = QUEUED; attempt++; nobody_fresh; printf("queues\n") }
#else
    :: atomic { held && left > 1 -> left--; printf("tick\n") }
    :: atomic { held && left == 1 && !renewer -> left--; printf("tick\n") }
#endif
    od
}

init {
    atomic {
        run Worker(0);
        run Worker(1);
#ifndef NO_KEEPER
        run Keeper(0);
#endif
        run World()
    }
}

/* One publisher for each fencing number, and one for the call. */
ltl one_publisher { [] !published_twice }
/* A healthy job is not started twice while its lease is renewed. */
ltl healthy_once { [] !started_twice }
/* What was accepted stays, as it was. */
ltl kept { [] (first != 0 -> (state == OK && result == first)) }
