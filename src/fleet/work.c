/* work.c - the queue's workers: threads that lease, drive and settle, and one that renews their leases. */

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fleet/queue.h"
#include "os/clock.h"

#define WORKERS_MAX 64
#define IDLE_MS     100
#define WAITING_MAX 256
#define WAITING_US  500000

const char *stet_drive_verdict_name(stet_drive_verdict v) {
    static const char *const names[] = {"completed", "failed", "blocked", "stopped", "paused", "waiting"};
    return names[v];
}

stet_value stet_drive_result_value(const stet_drive_result *r) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "status", stet_value_string(stet_drive_verdict_name(r->verdict)));
    stet_value_put(&v, "runId", r->run_id[0] != 0 ? stet_value_string(r->run_id) : stet_value_null());
    stet_value_put(&v, "ran", stet_value_int(r->ran));
    stet_value_put(&v, "stood", stet_value_int(r->stood));
    stet_value_put(&v, "reason", stet_value_string(r->reason));
    return v;
}

typedef struct shift shift;

typedef struct worker {
    shift *shift;
    pthread_t thread;
    bool busy, lost; /* lost: the lease went to somebody else */
    char id[128], token[STET_QUEUE_TOKEN];
} worker;

struct shift {
    const stet_queue *q;
    const stet_queue_work_opts *opts;
    int64_t lease_ms, retry_ms;
    pthread_mutex_t mutex;
    pthread_cond_t over; /* wakes the renewer at the end */
    bool ended;
    size_t taken;
    stet_queue_work_report report;
    stet_error failure; /* the first */
    size_t count;
    worker workers[WORKERS_MAX];
    /* Entries whose piece somebody else drives, and until when they are passed over. */
    struct {
        char id[128];
        int64_t until_us;
    } waiting[WAITING_MAX];
    size_t waiting_next;
};

static bool stopped(shift *s) {
    bool failed;
    pthread_mutex_lock(&s->mutex);
    failed = s->failure.status != STET_OK;
    pthread_mutex_unlock(&s->mutex);
    return failed || (s->opts->cancelled != NULL && s->opts->cancelled(s->opts->context));
}

static bool drive_cancelled(void *context) {
    worker *w = context;
    bool lost;
    pthread_mutex_lock(&w->shift->mutex);
    lost = w->lost;
    pthread_mutex_unlock(&w->shift->mutex);
    return lost || stopped(w->shift);
}

static void fail_shift(shift *s, stet_error *why) {
    pthread_mutex_lock(&s->mutex);
    stet_error_move(&s->failure, why);
    pthread_mutex_unlock(&s->mutex);
}

static const char *text_of(const stet_value *v) {
    return stet_value_as_string(v, NULL);
}

static stet_queue_outcome outcome_of(stet_status st, const stet_drive_result *r) {
    static const stet_queue_outcome verdicts[] = {
        [STET_DRIVE_COMPLETED] = STET_OUTCOME_DONE, [STET_DRIVE_FAILED] = STET_OUTCOME_FAILED,
        [STET_DRIVE_BLOCKED] = STET_OUTCOME_PARKED, [STET_DRIVE_STOPPED] = STET_OUTCOME_RETURN,
        [STET_DRIVE_PAUSED] = STET_OUTCOME_RETURN,  [STET_DRIVE_WAITING] = STET_OUTCOME_RETURN,
    };
    switch (st) {
    case STET_OK:
        return verdicts[r->verdict];
    case STET_FAILED:
        return STET_OUTCOME_FAILED;
    case STET_CANCELLED:
        return STET_OUTCOME_RETURN;
    case STET_BUSY:
    case STET_IO:
    case STET_CONFLICT:
    case STET_INTERNAL:
        return STET_OUTCOME_RETRY;
    default:
        return STET_OUTCOME_PARKED; /* invalid, corrupt, denied and the like: the next try would end the same way */
    }
}

static void count(shift *s, stet_value entry, const stet_drive_result *r) {
    stet_value v = stet_value_get(entry, "status");
    const char *status = text_of(&v);
    pthread_mutex_lock(&s->mutex);
    if (strcmp(status, "done") == 0)
        s->report.done++;
    else if (strcmp(status, "failed") == 0)
        s->report.failed++;
    else if (strcmp(status, "parked") == 0)
        s->report.parked++;
    else
        s->report.returned++;
    if (s->opts->settled != NULL)
        s->opts->settled(s->opts->context, entry, r);
    pthread_mutex_unlock(&s->mutex);
}

static void give_back(shift *s) {
    pthread_mutex_lock(&s->mutex);
    s->taken--;
    pthread_mutex_unlock(&s->mutex);
}

static void pass_over(shift *s, const char *id) {
    pthread_mutex_lock(&s->mutex);
    size_t at = s->waiting_next++ % WAITING_MAX;
    snprintf(s->waiting[at].id, sizeof s->waiting[at].id, "%s", id);
    s->waiting[at].until_us = stet_clock_monotonic_us() + WAITING_US;
    pthread_mutex_unlock(&s->mutex);
}

/* The entry names its run before anything of the run is done: whoever leases the entry after a crash goes on with it. */
static stet_status begun(void *context, const char *run_id, stet_error *err) {
    worker *w = context;
    return stet_queue_begun(w->shift->q, w->id, w->token, run_id, err);
}

static void show_output(void *context, const char *node, const char *bytes, size_t len, bool live) {
    shift *s = ((worker *)context)->shift;
    pthread_mutex_lock(&s->mutex);
    s->opts->output(s->opts->context, node, bytes, len, live);
    pthread_mutex_unlock(&s->mutex);
}

static void work_on(worker *w, stet_value entry) {
    shift *s = w->shift;
    stet_error why = STET_ERROR_INIT;
    stet_drive_result result = {0};
    stet_value repo = stet_value_get(entry, "repo"), run = stet_value_get(entry, "runId"),
               app = stet_value_get(entry, "app"), workflow = stet_value_get(entry, "workflow"), settled;
    stet_drive_request request = {.root = text_of(&repo),
                                  .run_id = text_of(&run),
                                  .app = text_of(&app),
                                  .workflow = text_of(&workflow),
                                  .inputs = stet_value_get(entry, "inputs"),
                                  .actor = s->opts->actor,
                                  .incremental = true,
                                  .no_wait = true,
                                  .cancelled = drive_cancelled,
                                  .begun = begun,
                                  .output = s->opts->output ? show_output : NULL,
                                  .live = s->opts->live,
                                  .context = w};
    stet_status st = s->opts->driver(&request, &result, &why);
    stet_queue_outcome outcome = outcome_of(st, &result);
    const char *note = st != STET_OK ? why.message : result.reason;
    stet_error lost = STET_ERROR_INIT;
    st = stet_queue_settle(s->q, w->id, w->token, outcome, s->retry_ms, result.run_id, note[0] != 0 ? note : NULL,
                           &settled, &lost);
    if (st == STET_OK && result.verdict == STET_DRIVE_WAITING) {
        pass_over(s, w->id);
        give_back(s);
        stet_value_release(settled);
    } else if (st == STET_OK) {
        count(s, settled, &result);
        stet_value_release(settled);
    } else if (st == STET_CONFLICT || st == STET_NOT_FOUND)
        stet_error_clear(&lost); /* somebody else has it by now, or it was cancelled: theirs is the word that counts */
    else
        fail_shift(s, &lost);
    stet_error_clear(&why);
}

static bool may_take(shift *s) {
    pthread_mutex_lock(&s->mutex);
    bool ok = s->taken < s->opts->limit;
    if (ok)
        s->taken++;
    pthread_mutex_unlock(&s->mutex);
    return ok;
}

static bool others_busy(shift *s) {
    bool busy = false;
    pthread_mutex_lock(&s->mutex);
    for (size_t i = 0; i < s->count; i++)
        busy = busy || s->workers[i].busy;
    pthread_mutex_unlock(&s->mutex);
    return busy;
}

static void set_busy(worker *w, stet_value entry) {
    pthread_mutex_lock(&w->shift->mutex);
    w->busy = stet_value_type(entry) == STET_TYPE_OBJECT;
    w->lost = false;
    stet_value id = stet_value_get(entry, "id");
    if (w->busy)
        strncpy(w->id, text_of(&id), sizeof w->id - 1);
    pthread_mutex_unlock(&w->shift->mutex);
}

static bool is_waiting(void *ctx, const char *id) {
    shift *s = ctx;
    bool waiting = false;
    int64_t now = stet_clock_monotonic_us();
    pthread_mutex_lock(&s->mutex);
    for (size_t i = 0; i < WAITING_MAX && !waiting; i++)
        waiting = s->waiting[i].until_us > now && strcmp(s->waiting[i].id, id) == 0;
    pthread_mutex_unlock(&s->mutex);
    return waiting;
}

static void *worker_main(void *arg) {
    worker *w = arg;
    shift *s = w->shift;
    while (!stopped(s) && may_take(s)) {
        stet_error why = STET_ERROR_INIT;
        stet_value entry;
        int64_t ready_at = 0;
        stet_status st =
            stet_queue_lease_but(s->q, s->opts->repo, s->lease_ms, is_waiting, s, w->token, &entry, &ready_at, &why);
        if (st == STET_OK) {
            set_busy(w, entry);
            work_on(w, entry);
            set_busy(w, stet_value_null());
            stet_value_release(entry);
            continue;
        }
        give_back(s);
        if (st != STET_NOT_FOUND) {
            fail_shift(s, &why);
            break;
        }
        stet_error_clear(&why);
        /* An entry waits for its time, or may come back from another worker. */
        if (ready_at == 0 && !others_busy(s))
            break;
        stet_clock_sleep_ms(IDLE_MS);
    }
    return NULL;
}

static void *renewer_main(void *arg) {
    shift *s = arg;
    pthread_mutex_lock(&s->mutex);
    while (!s->ended) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        int64_t ms = s->lease_ms / 3 + 1;
        until.tv_sec += ms / 1000;
        until.tv_nsec += (long)(ms % 1000) * 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        pthread_cond_timedwait(&s->over, &s->mutex, &until);
        for (size_t i = 0; i < s->count && !s->ended; i++) {
            worker *w = &s->workers[i];
            if (!w->busy || w->lost)
                continue;
            char id[sizeof w->id], token[STET_QUEUE_TOKEN];
            memcpy(id, w->id, sizeof id);
            memcpy(token, w->token, sizeof token);
            pthread_mutex_unlock(&s->mutex);
            stet_error why = STET_ERROR_INIT;
            stet_status st = stet_queue_renew(s->q, id, token, s->lease_ms, &why);
            stet_error_clear(&why);
            pthread_mutex_lock(&s->mutex);
            /* Settled meanwhile, or taken away: the latter the drive should know. */
            if (st == STET_CONFLICT && w->busy && strcmp(w->token, token) == 0)
                w->lost = true;
        }
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

stet_status stet_queue_work(const stet_queue *q, const stet_queue_work_opts *opts, stet_queue_work_report *report,
                            stet_error *err) {
    if (opts->driver == NULL)
        return stet_fail(err, STET_UNSUPPORTED, "there is nothing here that can drive a run");
    shift *s = stet_alloc_zero(sizeof *s);
    s->q = q;
    s->opts = opts;
    s->lease_ms = opts->lease_ms > 0 ? opts->lease_ms : STET_QUEUE_LEASE_MS;
    s->retry_ms = opts->retry_ms > 0 ? opts->retry_ms : STET_QUEUE_RETRY_MS;
    size_t want = opts->workers < 1 ? 1 : opts->workers > WORKERS_MAX ? WORKERS_MAX : opts->workers;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->over, NULL);
    pthread_t renewer;
    bool renewing = pthread_create(&renewer, NULL, renewer_main, s) == 0;
    stet_status st = renewing ? STET_OK : stet_fail(err, STET_LIMIT, "no thread can be started");
    size_t started = 0;
    for (size_t i = 0; i < want; i++)
        s->workers[i].shift = s;
    s->count = want;
    while (st == STET_OK && started < want &&
           pthread_create(&s->workers[started].thread, NULL, worker_main, &s->workers[started]) == 0)
        started++;
    if (st == STET_OK && started == 0)
        st = stet_fail(err, STET_LIMIT, "no thread can be started");
    for (size_t i = 0; i < started; i++)
        pthread_join(s->workers[i].thread, NULL);
    if (renewing) {
        pthread_mutex_lock(&s->mutex);
        s->ended = true;
        pthread_cond_signal(&s->over);
        pthread_mutex_unlock(&s->mutex);
        pthread_join(renewer, NULL);
    }
    *report = s->report;
    if (st == STET_OK && s->failure.status != STET_OK) {
        st = s->failure.status;
        stet_error_move(err, &s->failure);
    }
    stet_error_clear(&s->failure);
    pthread_cond_destroy(&s->over);
    pthread_mutex_destroy(&s->mutex);
    stet_free(s);
    return st;
}
