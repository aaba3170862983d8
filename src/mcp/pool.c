/* pool.c - the threads that run operations. */

#include "mcp/pool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"

typedef struct queue {
    stet_mcp_job *first, **end;
} queue;

struct stet_mcp_pool {
    pthread_mutex_t lock;
    pthread_cond_t work, ended;
    queue quick, slow;
    size_t max, threads, idle, running_slow;
    size_t queued; /* jobs that no thread has taken yet */
    bool closing;
};

static void push(queue *q, stet_mcp_job *job) {
    job->next = NULL;
    *q->end = job;
    q->end = &job->next;
}

static stet_mcp_job *pop(queue *q) {
    stet_mcp_job *job = q->first;
    if (job) {
        q->first = job->next;
        if (!q->first)
            q->end = &q->first;
    }
    return job;
}

static bool take_out(queue *q, stet_mcp_job *job) {
    for (stet_mcp_job **at = &q->first; *at; at = &(*at)->next)
        if (*at == job) {
            *at = job->next;
            if (!*at)
                q->end = at;
            return true;
        }
    return false;
}

/* The next job that a thread may begin. */
static stet_mcp_job *next_job(stet_mcp_pool *p) {
    stet_mcp_job *job = pop(&p->quick);
    if (!job && p->running_slow + 2 < p->max)
        job = pop(&p->slow);
    if (!job)
        return NULL;
    p->queued--;
    p->running_slow += job->slow;
    return job;
}

static void *work(void *arg) {
    stet_mcp_pool *p = arg;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        stet_mcp_job *job = next_job(p);
        if (job) {
            bool slow = job->slow;
            pthread_mutex_unlock(&p->lock);
            job->run(job);
            pthread_mutex_lock(&p->lock);
            p->running_slow -= slow;
            continue;
        }
        if (p->closing)
            break;
        p->idle++;
        pthread_cond_wait(&p->work, &p->lock);
        p->idle--;
    }
    if (--p->threads == 0)
        pthread_cond_signal(&p->ended);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

stet_mcp_pool *stet_mcp_pool_new(size_t threads) {
    assert(threads == 0 || threads >= STET_MCP_POOL_MIN);
    stet_mcp_pool *p = stet_alloc_zero(sizeof *p);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    p->quick.end = &p->quick.first;
    p->slow.end = &p->slow.first;
    p->max = threads;
    return p;
}

void stet_mcp_pool_submit(stet_mcp_pool *p, stet_mcp_job *job) {
    if (p->max == 0) {
        job->run(job);
        return;
    }
    pthread_mutex_lock(&p->lock);
    push(job->slow ? &p->slow : &p->quick, job);
    bool start = ++p->queued > p->idle && p->threads < p->max;
    p->threads += start;
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
    if (!start)
        return;
    pthread_t thread;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    int failure = pthread_create(&thread, &detached, work, p);
    pthread_attr_destroy(&detached);
    if (failure == 0)
        return;
    /* No thread can be started: the existing ones take the job, or, if there are none, it runs here. */
    pthread_mutex_lock(&p->lock);
    bool alone = --p->threads == 0;
    bool mine = alone && take_out(job->slow ? &p->slow : &p->quick, job);
    p->queued -= mine;
    pthread_mutex_unlock(&p->lock);
    if (mine)
        job->run(job);
}

bool stet_mcp_pool_withdraw(stet_mcp_pool *p, stet_mcp_job *job) {
    pthread_mutex_lock(&p->lock);
    bool there = take_out(job->slow ? &p->slow : &p->quick, job);
    p->queued -= there;
    pthread_mutex_unlock(&p->lock);
    return there;
}

bool stet_mcp_pool_close(stet_mcp_pool *p, int timeout_ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_cond_broadcast(&p->work);
    int failure = 0;
    while (p->threads && failure != ETIMEDOUT)
        failure = pthread_cond_timedwait(&p->ended, &p->lock, &until);
    bool ended = p->threads == 0;
    pthread_mutex_unlock(&p->lock);
    if (!ended)
        return false;
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->ended);
    free(p);
    return true;
}
