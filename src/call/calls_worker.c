/* calls_worker.c - a worker: takes calls from the claims of a repository and runs them here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "call/calls.h"
#include "call/keeper.h"
#include "call/orchestrate_local.h"
#include "os/clock.h"
#include "os/proc.h"

#define TICK_MS 50   /* how often a repository is looked at for news */
#define SCAN_MS 1000 /* and how often at least for leases that ran out */
#define SAY_MS  10000
#define TIDY_MS (3600 * 1000) /* how often finished claims are looked at */
#define KEEP_MS 200           /* a job that is older has a keeper, in case that this worker dies */

typedef struct held {
    stet_orch_held job;
} held;

typedef struct worker {
    const stet_worker_opts *o;
    stet_worker_report *report;
    stet_orch orch;
    stet_backend_local *backend;
    STET_VEC(held) held;
    int64_t news, scanned_ms, said_ms, tidied_ms, kept_ms;
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

/* Tries to get one. Others may be faster. */
static stet_status take(worker *w, stet_hash key, stet_error *err) {
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
    stet_orch_answer a;
    status = stet_orch_poll(&w->orch, &h.job.job, &a, err);
    if (status == STET_OK && a.took)
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

/* Looks for work, if there may be some. *busy: something was found. */
static void scan(worker *w, bool *busy) {
    stet_hub_keys keys = {0};
    stet_error err = STET_ERROR_INIT;
    int64_t now = stet_clock_monotonic_us() / 1000, news = stet_hub_news(w->orch.hub);
    *busy = false;
    if (w->held.len >= w->o->jobs || (news == w->news && w->scanned_ms && now - w->scanned_ms < SCAN_MS))
        return;
    w->news = news;
    w->scanned_ms = now;
    stet_status status = stet_orch_open_work(w->orch.hub, w->o->jobs + w->held.len, &keys, &err);
    /* Those that come together should not all go for the same one. */
    uint64_t from = 0;
    stet_random(&from, sizeof from);
    for (size_t i = 0; i < keys.len && status == STET_OK && w->held.len < w->o->jobs; i++) {
        stet_hash key = keys.at[(from + i) % keys.len];
        if (holds(w, key))
            continue;
        *busy = true;
        make_sure_of_keeper(w);
        status = take(w, key, &err);
    }
    if (*busy)
        w->scanned_ms = 0; /* more may be there */
    free(keys.at);
    if (status == STET_NOT_FOUND) /* nobody has written to the repository yet */
        stet_error_clear(&err);
    else if (status != STET_OK)
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

static void work(worker *w) {
    int64_t idle_since = stet_clock_monotonic_us();
    while (!(w->o->cancelled && w->o->cancelled(w->o->ctx))) {
        bool busy;
        for (size_t i = w->held.len; i-- > 0;)
            if (look(w, &w->held.at[i])) {
                drop(w, i);
                w->scanned_ms = 0;
            }
        scan(w, &busy);
        tidy(w);
        if (w->held.len > 0)
            make_sure_of_keeper(w);
        int64_t now = stet_clock_monotonic_us();
        if (busy || w->held.len > 0)
            idle_since = now;
        else if (w->o->idle_ms >= 0 && now - idle_since >= w->o->idle_ms * 1000)
            return;
        if (w->held.len > 0)
            stet_backend_local_wait(w->backend, TICK_MS);
        else if (!busy)
            stet_hub_wait(w->orch.hub, w->news, TICK_MS);
    }
}

stet_status stet_worker_run(const stet_worker_opts *o, stet_worker_report *report, stet_error *err) {
    char owner[200], name[240];
    worker w = {.o = o, .report = report, .news = -1};
    *report = (stet_worker_report){0};
    stet_status status = stet_calls_owner(o->dir, owner, err);
    if (status != STET_OK)
        return status;
    stet_hub *hub;
    status = stet_hub_open(o->remote, 0, &hub, err);
    if (status != STET_OK)
        return status;
    /* A process, not a machine: what another worker of this machine owns is its own until the lease runs out. */
    stet_proc_id self = stet_proc_self();
    snprintf(name, sizeof name, "%s/%lld.%llx", owner, (long long)self.pid, (unsigned long long)self.start);
    w.owner = owner;
    w.backend = stet_backend_local_open(o->dir, o->root, true);
    w.orch = (stet_orch){.hub = hub,
                         .backend = &stet_backend_local_kind,
                         .backend_ctx = w.backend,
                         .owner = name,
                         .lease_ms = o->lease_ms > 0 ? o->lease_ms : STET_ORCH_LEASE_MS};
    work(&w);
    while (w.held.len > 0)
        drop(&w, w.held.len - 1);
    stet_vec_release(&w.held);
    stet_backend_local_close(w.backend);
    stet_hub_close(hub);
    return STET_OK;
}
