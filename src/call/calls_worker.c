/* calls_worker.c - a worker: takes calls from the claims of a repository and runs them here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "call/calls.h"
#include "call/keeper.h"
#include "call/orchestrate_local.h"
#include "call/worker_internal.h"
#include "os/clock.h"
#include "os/proc.h"

#define TICK_MS    50   /* how often a repository is looked at for news */
#define SCAN_MS    1000 /* and how often at least for leases that ran out */
#define SAY_MS     10000
#define TIDY_MS    (3600 * 1000) /* how often finished claims are looked at */
#define LOOK_MS    500           /* how often a call is looked at while nothing is heard of it */
#define SEARCH_MAX 4096          /* how many open calls are looked through for one that fits */

typedef struct held {
    stet_orch_held job;
    int64_t looked_ms;
} held;

/* A call that is going to be tried again: its caller waits for a while. */
typedef struct awaited {
    stet_hash key;
    int64_t until_us; /* monotonic */
} awaited;

#define AWAIT_MORE_MS 2000 /* a caller looks again some time after its wait has ended */

typedef struct worker {
    const stet_worker_opts *o;
    stet_worker_report *report;
    stet_orch orch;
    stet_backend_local *backend;
    STET_VEC(held) held;
    STET_VEC(awaited) awaited;
    stet_map unfit; /* keys of calls that ask for other labels */
    /* Calls that this worker has tried to take when the hub was lost: they may be its own, and nobody else would run them
     * before their leases end. */
    stet_hub_keys doubtful;
    int64_t news, looked_news, scanned_ms, said_ms, tidied_ms, kept_ms, announced_ms, started_ms, doubted_ms,
        drained_ms;
    size_t announced; /* with so many calls */
    bool draining;
    const char *owner; /* of the machine and directory: what the names of its workers begin with */
} worker;

static void tell(worker *w, stet_worker_event event, const stet_orch_job *job) {
    int64_t *counts[] = {&w->report->taken, &w->report->ok, &w->report->failed, &w->report->lost};
    ++*counts[event];
    if (w->o->event)
        w->o->event(w->o->ctx, event, job->key, job->function);
}

/* Goes on by itself: another look, later. Not more often than people want to read it. */
static void complain(worker *w, stet_error *err) {
    int64_t now = stet_clock_monotonic_us() / 1000;
    if (w->o->say && (w->said_ms == 0 || now - w->said_ms > SAY_MS)) {
        w->o->say(w->o->ctx, err->message);
        w->said_ms = now;
    }
    stet_error_clear(err);
}

/* For the case that this worker is killed. A keeper may be killed, too: from time to time. */
static void make_sure_of_keeper(worker *w) {
    int64_t now = stet_clock_monotonic_us() / 1000;
    if (w->kept_ms && now - w->kept_ms < w->orch.lease_ms / 3)
        return;
    w->kept_ms = now;
    stet_keeper_need(&(stet_keeper_opts){.dir = w->o->dir,
                                         .root = w->o->root,
                                         .hub = w->o->remote,
                                         .lease_ms = w->orch.lease_ms,
                                         .client = stet_proc_self()});
}

/* A caller that has tried often enough does not come again. */
static void await(worker *w, const stet_orch_job *job) {
    int64_t failures = job->tries + 1;
    if (failures < w->o->backoff.attempts)
        *stet_vec_add(&w->awaited) =
            (awaited){job->key, stet_clock_monotonic_us() +
                                    (stet_backoff_ceiling(&w->o->backoff, failures) + AWAIT_MORE_MS) * 1000};
}

static bool awaits(worker *w) {
    int64_t now = stet_clock_monotonic_us();
    for (size_t i = w->awaited.len; i-- > 0;)
        if (now >= w->awaited.at[i].until_us)
            w->awaited.at[i] = w->awaited.at[--w->awaited.len];
    return w->awaited.len > 0;
}

/* It came, or somebody else has it. */
static void stop_awaiting(worker *w, stet_hash key) {
    for (size_t i = w->awaited.len; i-- > 0;)
        if (stet_hash_equal(w->awaited.at[i].key, key))
            w->awaited.at[i] = w->awaited.at[--w->awaited.len];
}

static void drop(worker *w, size_t i) {
    stet_orch_held_release(&w->held.at[i].job);
    w->held.at[i] = w->held.at[--w->held.len];
}

/* A call that is no longer ours: what runs for it is ended, unless a worker of the same directory goes on with the very
 * same process. */
static void let_go(worker *w, const stet_orch_job *job) {
    stet_claim c;
    bool there = false, neighbour = false;
    if (stet_claim_get(w->orch.hub, job->key, &there, &c, NULL) == STET_OK && there) {
        neighbour = strncmp(c.owner, w->owner, strlen(w->owner)) == 0;
        stet_claim_release(&c);
    }
    if (neighbour)
        stet_backend_local_release(w->backend, job->key);
    else
        stet_backend_local_kind.cancel(w->backend, job);
}

/* One look at a call that is ours. True: it is no longer. */
static bool look(worker *w, held *h) {
    stet_error err = STET_ERROR_INIT;
    stet_orch_answer a;
    stet_status status = stet_orch_poll(&w->orch, &h->job.job, &a, &err);
    if (status == STET_CANCELLED || (status == STET_OK && a.state == STET_ORCH_PENDING && !a.mine)) {
        stet_error_clear(&err);
        let_go(w, &h->job.job);
        tell(w, STET_WORKER_LOST, &h->job.job);
        return true;
    }
    if (status != STET_OK) {
        complain(w, &err);
        return false;
    }
    if (a.state == STET_ORCH_PENDING)
        return false;
    if (a.mine && a.state == STET_ORCH_DONE_ERROR && a.retry)
        await(w, &h->job.job);
    let_go(w, &h->job.job); /* ended by somebody else it may still run here */
    tell(w,
         !a.mine                        ? STET_WORKER_LOST
         : a.state == STET_ORCH_DONE_OK ? STET_WORKER_OK
                                        : STET_WORKER_ERROR,
         &h->job.job);
    return true;
}

static bool holds(const worker *w, stet_hash key) {
    for (size_t i = 0; i < w->held.len; i++)
        if (stet_hash_equal(w->held.at[i].job.job.key, key))
            return true;
    return false;
}

/* Tries to get one. Others may be faster. `again`: it may be taken already. */
static stet_status take(worker *w, stet_hash key, bool again, stet_error *err) {
    stet_claim c;
    bool there;
    held h = {0};
    stet_status status = stet_claim_get(w->orch.hub, key, &there, &c, err);
    if (status != STET_OK || !there)
        return status;
    status = stet_orch_job_of(&c, key, &h.job, err);
    stet_claim_release(&c);
    if (status != STET_OK)
        return status;
    if (!stet_worker_fits(w->o, h.job.function)) {
        stet_map_put(&w->unfit, key.bytes, sizeof key.bytes, (stet_slot){.n = 1});
        stet_orch_held_release(&h.job);
        return STET_OK;
    }
    stet_orch_answer a;
    status = stet_orch_poll(&w->orch, &h.job.job, &a, err);
    if (status == STET_OK)
        stop_awaiting(w, key);
    if (status == STET_OK && a.state == STET_ORCH_DONE_ERROR && a.mine && a.retry)
        await(w, &h.job.job);
    if (status == STET_OK && (a.took || (again && a.mine)))
        tell(w, STET_WORKER_TAKEN, &h.job.job);
    if (status == STET_OK && a.took && !a.mine) { /* lost already, and its job may have been started */
        let_go(w, &h.job.job);
        tell(w, STET_WORKER_LOST, &h.job.job);
    }
    if (status == STET_OK && a.state == STET_ORCH_PENDING && a.mine) {
        *stet_vec_add(&w->held) = h;
        return STET_OK;
    }
    if (status == STET_OK && a.state != STET_ORCH_PENDING && a.mine)
        tell(w, a.state == STET_ORCH_DONE_OK ? STET_WORKER_OK : STET_WORKER_ERROR, &h.job.job);
    if (status == STET_CANCELLED) {
        stet_error_clear(err);
        status = STET_OK;
    }
    stet_orch_held_release(&h.job);
    return status;
}

static bool doubts(const worker *w, stet_hash key) {
    for (size_t i = 0; i < w->doubtful.len; i++)
        if (stet_hash_equal(w->doubtful.at[i], key))
            return true;
    return false;
}

static void take_or_doubt(worker *w, stet_hash key, bool again, stet_status *status, stet_error *err) {
    *status = take(w, key, again, err);
    if ((*status == STET_IO || *status == STET_BUSY || *status == STET_NOT_FOUND) && !doubts(w, key))
        *stet_vec_add(&w->doubtful) = key;
}

/* Finds out what became of them, once the hub answers. */
static void resolve_doubts(worker *w) {
    stet_hub_keys keys = w->doubtful;
    stet_status status = STET_OK;
    stet_error err = STET_ERROR_INIT;
    int64_t now = stet_clock_monotonic_us() / 1000;
    if (keys.len == 0 || now - w->doubted_ms < SCAN_MS)
        return;
    w->doubted_ms = now;
    w->doubtful = (stet_hub_keys){0};
    for (size_t i = 0; i < keys.len; i++)
        if (status != STET_OK)
            *stet_vec_add(&w->doubtful) = keys.at[i];
        else if (!holds(w, keys.at[i]))
            take_or_doubt(w, keys.at[i], true, &status, &err);
    if (status != STET_OK)
        complain(w, &err);
    free(keys.at);
}

static bool is_unfit(worker *w, stet_hash key) {
    return stet_map_get(&w->unfit, key.bytes, sizeof key.bytes) != NULL;
}

/* Open calls that may fit: more are looked through if the oldest ones ask for other labels. */
static stet_status find_open(worker *w, stet_hub_keys *out, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t limit = w->o->jobs + w->held.len + stet_map_len(&w->unfit); status == STET_OK; limit *= 4) {
        size_t n = 0;
        stet_vec_clear(out);
        status = stet_orch_open_work(w->orch.hub, limit, out, err);
        bool all = out->len < limit || limit >= SEARCH_MAX;
        for (size_t i = 0; i < out->len; i++)
            if (!is_unfit(w, out->at[i]))
                out->at[n++] = out->at[i];
        out->len = n;
        if (n > 0 || all)
            break;
    }
    return status;
}

/* Looks for work, if there may be some. *busy: something was found. */
static void scan(worker *w, bool *busy) {
    stet_hub_keys keys = {0};
    stet_error err = STET_ERROR_INIT;
    int64_t now = stet_clock_monotonic_us() / 1000, news = stet_hub_news(w->orch.hub);
    *busy = false;
    if (w->draining || w->held.len >= w->o->jobs || (news == w->news && w->scanned_ms && now - w->scanned_ms < SCAN_MS))
        return;
    w->news = news;
    w->scanned_ms = now;
    if (stet_map_len(&w->unfit) > SEARCH_MAX / 2)
        stet_map_clear(&w->unfit);
    stet_status status = find_open(w, &keys, &err);
    /* Those that come together should not all go for the same one. */
    uint64_t from = 0;
    stet_random(&from, sizeof from);
    for (size_t i = 0; i < keys.len && status == STET_OK && w->held.len < w->o->jobs; i++) {
        stet_hash key = keys.at[(from + i) % keys.len];
        if (holds(w, key))
            continue;
        make_sure_of_keeper(w);
        take_or_doubt(w, key, false, &status, &err);
        *busy |= !is_unfit(w, key);
    }
    if (*busy)
        w->scanned_ms = 0; /* more may be there */
    free(keys.at);
    if (status == STET_NOT_FOUND) /* nobody has written to the repository yet */
        stet_error_clear(&err);
    else if (status != STET_OK)
        complain(w, &err);
}

static void announce(worker *w) {
    int64_t now = stet_clock_monotonic_us() / 1000;
    stet_error err = STET_ERROR_INIT;
    bool draining = w->draining, changed = w->announced != w->held.len + 1 + draining * 100000;
    /* A change is told soon, but not each of many. */
    if (w->announced && now - w->announced_ms < (changed ? SCAN_MS : STET_WORKER_ANNOUNCE_MS))
        return;
    w->announced_ms = now;
    w->announced = w->held.len + 1 + draining * 100000;
    if (stet_worker_announce(w->orch.hub, w->orch.owner, w->o, w->started_ms, w->held.len, draining, &err) != STET_OK)
        complain(w, &err);
}

/* A shared hub has no owner who would clean it up: its workers do. */
static void tidy(worker *w) {
    int64_t now = stet_clock_monotonic_us() / 1000, count = 0;
    stet_error err = STET_ERROR_INIT;
    if (w->tidied_ms && now - w->tidied_ms < TIDY_MS)
        return;
    w->tidied_ms = now;
    stet_status status = stet_claim_sweep(w->orch.hub, STET_CALLS_KEEP_MS, false, &count, &err);
    if (status == STET_OK && count > 0)
        status = stet_hub_gc(w->orch.hub, -1, NULL, &err);
    if (status != STET_OK)
        complain(w, &err);
}

/* Calls that may have changed: all of them if something was heard, of the hub or of the jobs. */
static void look_at_all(worker *w, bool heard) {
    int64_t now = stet_clock_monotonic_us() / 1000, news = stet_hub_news(w->orch.hub);
    int64_t often = w->orch.lease_ms / 6 < LOOK_MS ? w->orch.lease_ms / 6 : LOOK_MS;
    heard |= news != w->looked_news;
    w->looked_news = news;
    for (size_t i = w->held.len; i-- > 0;) {
        held *h = &w->held.at[i];
        if (!heard && h->looked_ms && now - h->looked_ms < often)
            continue;
        h->looked_ms = now;
        if (look(w, h)) {
            drop(w, i);
            w->scanned_ms = 0;
        }
    }
}

static void work(worker *w) {
    int64_t idle_since = stet_clock_monotonic_us();
    for (bool heard = true;;) {
        bool busy;
        w->draining = w->o->cancelled && w->o->cancelled(w->o->ctx);
        look_at_all(w, heard);
        resolve_doubts(w);
        scan(w, &busy);
        if (w->draining && w->drained_ms == 0)
            w->drained_ms = stet_clock_monotonic_us() / 1000;
        /* A doubt is others' when its lease has ended. */
        if (w->draining && w->held.len == 0 &&
            (w->doubtful.len == 0 || stet_clock_monotonic_us() / 1000 - w->drained_ms > w->orch.lease_ms))
            return;
        announce(w);
        tidy(w);
        if (w->held.len > 0)
            make_sure_of_keeper(w);
        int64_t now = stet_clock_monotonic_us();
        if (busy || w->held.len > 0 || awaits(w))
            idle_since = now;
        else if (w->o->idle_ms >= 0 && now - idle_since >= w->o->idle_ms * 1000)
            return;
        if (w->held.len > 0)
            stet_backend_local_wait(w->backend, TICK_MS);
        else if (!busy)
            stet_hub_wait(w->orch.hub, w->news, TICK_MS);
        heard = stet_clock_monotonic_us() - now < TICK_MS * 900; /* it did not wait to the end: a job has ended */
    }
}

stet_status stet_worker_run(const stet_worker_opts *o, stet_worker_report *report, stet_error *err) {
    char owner[200], name[240];
    worker w = {.o = o, .report = report, .news = -1};
    *report = (stet_worker_report){0};
    stet_status status = stet_calls_owner(o->dir, owner, err);
    if (status != STET_OK)
        return status;
    stet_hub *hub = NULL;
    stet_repo *lent = NULL;
    status = stet_hub_open(o->remote, 0, &hub, err);
    if (status == STET_OK)
        status = stet_calls_lend(hub, o->dir, &lent, err);
    if (status != STET_OK) {
        stet_hub_close(hub);
        return status;
    }
    /* A process, not a machine: what another worker of this machine owns is its own until the lease runs out. */
    stet_proc_id self = stet_proc_self();
    snprintf(name, sizeof name, "%s/%lld.%llx", owner, (long long)self.pid, (unsigned long long)self.start);
    w.owner = owner;
    w.backend = stet_backend_local_open(o->dir, o->root, true);
    stet_backend_local_limit(w.backend, o->slots, o->pools);
    w.orch = (stet_orch){.hub = hub,
                         .backend = &stet_backend_local_kind,
                         .backend_ctx = w.backend,
                         .owner = name,
                         .lease_ms = o->lease_ms > 0 ? o->lease_ms : STET_ORCH_LEASE_MS};
    w.started_ms = stet_clock_ms();
    work(&w);
    stet_error unheard = STET_ERROR_INIT; /* the announcement ends by itself */
    if (stet_hub_announce(hub, name, stet_value_null(), 0, &unheard) != STET_OK)
        stet_error_clear(&unheard);
    while (w.held.len > 0)
        drop(&w, w.held.len - 1);
    stet_vec_release(&w.held);
    stet_vec_release(&w.awaited);
    stet_backend_local_close(w.backend);
    stet_map_release(&w.unfit);
    stet_vec_release(&w.doubtful);
    stet_hub_close(hub);
    stet_repo_close(lent);
    return STET_OK;
}
