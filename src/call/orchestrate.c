/* orchestrate.c - one job per execution key: claims in a hub, and a backend that runs jobs. */

#include "call/orchestrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"

#define TELL_MS    1000 /* how often the claim says how far the job is */
#define MAX_ROUNDS 200  /* of one poll: each lost swap means that somebody else got on */

typedef struct poll {
    stet_orch *o;
    const stet_orch_job *job;
    stet_orch_state state;
    stet_claim claim; /* as it was last seen */
    bool there, fresh, took;
} poll;

static stet_value request_value(const stet_orch_job *job) {
    stet_value v = stet_value_object(), inputs = stet_value_array();
    for (size_t i = 0; i < job->input_count; i++)
        stet_value_push(&inputs, stet_hash_text(job->inputs[i]));
    stet_value_put(&v, "node", stet_hash_text(job->node));
    stet_value_put(&v, "function", stet_value_string(job->function));
    stet_value_put(&v, "inputs", inputs);
    stet_value_put(&v, "execution", stet_value_string(job->execution));
    stet_value_put(&v, "ref", stet_value_string(job->ref));
    stet_value_put(&v, "tries", stet_value_int(job->tries));
    return v;
}

static bool mine(const poll *p) {
    return strcmp(p->claim.owner, p->o->owner) == 0;
}

static stet_status look(poll *p, stet_error *err) {
    if (p->there)
        stet_claim_release(&p->claim);
    p->there = false;
    return stet_claim_get(p->o->hub, p->job->key, &p->there, &p->claim, err);
}

/* Swaps the claim that was seen for `next`, which is taken over. *lost: somebody else was faster. */
static stet_status change(poll *p, stet_claim next, bool *lost, stet_error *err) {
    stet_error inner = STET_ERROR_INIT;
    stet_status status = stet_claim_swap(p->o->hub, p->job->key, p->there ? &p->claim : NULL, &next, &inner);
    *lost = status == STET_CONFLICT;
    if (status != STET_OK) {
        stet_claim_release(&next);
        if (*lost) {
            stet_error_clear(&inner);
            return STET_OK;
        }
        stet_error_move(err, &inner);
        return status;
    }
    if (p->there)
        stet_claim_release(&p->claim);
    p->claim = next;
    p->there = true;
    return STET_OK;
}

/* The claim as ours, or, with a queue, as nobody's. */
static stet_claim claimed(const poll *p) {
    stet_claim c = {.state = p->o->queue ? STET_CLAIM_QUEUED : STET_CLAIM_CLAIMED,
                    .attempt = (p->there ? p->claim.attempt : 0) + 1,
                    .lost = p->there && p->claim.state < STET_CLAIM_OK ? p->claim.lost : 0,
                    .job = stet_value_null(),
                    .request = request_value(p->job)};
    if (!p->o->queue) {
        snprintf(c.owner, sizeof c.owner, "%s", p->o->owner);
        c.lease_for_ms = p->o->lease_ms;
    }
    return c;
}

static stet_orch_event lookup(poll *p, stet_status *status, stet_error *err) {
    bool lost = false;
    *status = look(p, err);
    if (*status != STET_OK || p->there)
        return STET_ORCH_EXISTS;
    *status = change(p, claimed(p), &lost, err);
    p->took |= *status == STET_OK && !lost && !p->o->queue;
    return lost ? STET_ORCH_LOST : STET_ORCH_CREATED;
}

/* The repository in which objects of the hub are read, with everything that this one names. */
static stet_status bring(const poll *p, stet_hash id, stet_error *err) {
    return stet_hub_bring(p->o->hub, stet_hub_repo(p->o->hub), &id, 1, err);
}

/* Is what an ended claim names still there? What was cleaned up makes it void. */
static stet_status result_there(poll *p, bool *out, stet_error *err) {
    stet_value v = stet_value_null();
    stet_error inner = STET_ERROR_INIT;
    stet_status status = bring(p, p->claim.result, &inner);
    if (status == STET_OK)
        status = stet_repo_dag_value(stet_hub_repo(p->o->hub), p->claim.result, &v, &inner);
    stet_value_release(v);
    *out = status == STET_OK;
    if (status == STET_NOT_FOUND || status == STET_CORRUPT || status == STET_OK) {
        stet_error_clear(&inner);
        return STET_OK;
    }
    stet_error_move(err, &inner);
    return status;
}

/* Is the end of the claim news to this execution? A failure that is not kept is told once. */
static bool concerns(const poll *p) {
    if (p->claim.state != STET_CLAIM_ERROR || !p->claim.passing)
        return true;
    if (stet_value_text_is(stet_value_get(p->claim.request, "execution"), p->job->execution))
        return stet_value_as_int(stet_value_get(p->claim.request, "tries")) == p->job->tries;
    return !p->fresh;
}

static stet_orch_event follow(poll *p, stet_status *status, stet_error *err) {
    bool there = true, lost = false;
    switch (p->claim.state) {
    case STET_CLAIM_OK:
    case STET_CLAIM_ERROR:
        if (!concerns(p))
            break;
        *status = result_there(p, &there, err);
        if (*status != STET_OK || there)
            return STET_ORCH_LIVE;
        break;
    case STET_CLAIM_CANCELLED:
        if (stet_value_text_is(stet_value_get(p->claim.request, "execution"), p->job->execution)) {
            *status = stet_fail(err, STET_CANCELLED, "this execution of the call was cancelled");
            return STET_ORCH_LIVE;
        }
        break;
    case STET_CLAIM_QUEUED:
        if (p->o->queue)
            return STET_ORCH_LIVE;
        break;
    case STET_CLAIM_CLAIMED:
        if (mine(p)) /* handed to the backend or not: asking again is harmless */
            return STET_ORCH_TAKEN_OVER;
        /* fall through */
    case STET_CLAIM_RUNNING:
    case STET_CLAIM_STATES:
        /* What workers run, another worker takes over. */
        if (mine(p) || p->o->queue || p->claim.left_ms > 0)
            return STET_ORCH_LIVE;
        break;
    }
    *status = change(p, claimed(p), &lost, err);
    p->fresh &= lost;
    p->took |= *status == STET_OK && !lost && !p->o->queue;
    return lost ? STET_ORCH_LOST : STET_ORCH_TAKEN_OVER;
}

/* Asked by the backend before it starts something: is the claim still as it was seen? */
static stet_status still_mine(void *ctx, stet_error *err) {
    poll *p = ctx;
    stet_claim now;
    bool there;
    stet_status status = stet_claim_get(p->o->hub, p->job->key, &there, &now, err);
    if (status != STET_OK)
        return status;
    bool same = there && stet_hash_equal(now.id, p->claim.id);
    if (there)
        stet_claim_release(&now);
    return same ? STET_OK : stet_fail(err, STET_CONFLICT, "the claim was taken over");
}

static stet_orch_event own(poll *p, stet_status *status, stet_error *err) {
    bool lost = false;
    stet_value identity = stet_value_null();
    stet_error inner = STET_ERROR_INIT;
    if (p->o->queue)
        return STET_ORCH_SUBMITTED;
    stet_orch_job job = *p->job;
    job.attempt = p->claim.attempt;
    *status = bring(p, p->job->node, &inner);
    if (*status == STET_OK)
        *status =
            p->o->backend->submit(p->o->backend_ctx, &job, stet_hub_repo(p->o->hub), still_mine, p, &identity, &inner);
    if (*status == STET_CONFLICT) {
        stet_error_clear(&inner);
        *status = STET_OK;
        return STET_ORCH_LOST;
    }
    stet_error_move(err, &inner);
    if (*status != STET_OK)
        return STET_ORCH_LOST;
    stet_claim next = stet_claim_copy(&p->claim);
    next.state = STET_CLAIM_RUNNING;
    stet_value_release(next.job);
    next.job = identity;
    next.lease_for_ms = p->o->lease_ms;
    *status = change(p, next, &lost, err);
    return lost ? STET_ORCH_LOST : STET_ORCH_SUBMITTED;
}

static stet_value failure(const char *message) {
    stet_value v = stet_value_object(), error = stet_value_object();
    stet_value_put(&error, "message", stet_value_stringf("%s", message));
    stet_value_put(&v, "error", error);
    return v;
}

/* Objects first, then the one swap that names them. What `gc` has swept in between is sent again. */
static stet_status publish_once(poll *p, stet_job_status job, stet_value value, bool *lost, stet_error *err) {
    stet_hash dag;
    stet_repo *r = stet_hub_repo(p->o->hub);
    for (int tries = 0;; tries++) {
        stet_error inner = STET_ERROR_INIT;
        stet_status status = stet_repo_put_result(r, value, &dag, &inner);
        if (status == STET_OK)
            status = stet_hub_send(p->o->hub, r, &dag, 1, &inner);
        if (status == STET_OK) {
            stet_claim next = stet_claim_copy(&p->claim);
            next.state = job == STET_JOB_OK ? STET_CLAIM_OK : STET_CLAIM_ERROR;
            next.passing = job == STET_JOB_FAILED || job == STET_JOB_AGAIN;
            next.retry = job == STET_JOB_AGAIN;
            next.result = dag;
            status = change(p, next, lost, &inner);
        }
        if (status != STET_NOT_FOUND || tries == 2) {
            stet_error_move(err, &inner);
            return status;
        }
        stet_error_clear(&inner);
    }
}

/* Does this status mean that the value itself can't be stored, now or ever? */
static bool unfit(stet_status status) {
    return status == STET_INVALID || status == STET_LIMIT || status == STET_DENIED;
}

/* Publishes the outcome of a job. What can't be stored is a failure of the job; if even that can't be stored, because it
 * was excised, the failure names its execution, which makes it another text, and is not kept. */
static stet_status publish(poll *p, stet_job_status job, stet_value value, bool *lost, stet_error *err) {
    stet_error inner = STET_ERROR_INIT;
    stet_status status = publish_once(p, job, value, lost, &inner);
    for (int round = 0; round < 2 && unfit(status); round++) {
        char *text = stet_asprintf("its result can't be stored: %s%s%s", inner.message, round > 0 ? "; execution " : "",
                                   round > 0 ? p->job->execution : "");
        stet_value why = failure(text);
        stet_error_clear(&inner);
        status = publish_once(p, round == 0 ? STET_JOB_ERROR : STET_JOB_FAILED, why, lost, &inner);
        stet_value_release(why);
        stet_free(text);
    }
    stet_error_move(err, &inner);
    return status;
}

/* A job that the backend does not know, though the claim says that it has it. */
static stet_status lose(poll *p, bool *lost, stet_error *err) {
    stet_claim next = stet_claim_copy(&p->claim);
    next.state = STET_CLAIM_CLAIMED;
    next.attempt++;
    next.lost++;
    next.lease_for_ms = p->o->lease_ms;
    return change(p, next, lost, err);
}

static stet_value progress_of(const stet_orch *o, const stet_orch_job *job) {
    return o->backend->progress ? o->backend->progress(o->backend_ctx, job) : stet_value_null();
}

/* The lease, and what others see of the progress. */
static stet_status refresh(poll *p, bool *lost, stet_error *err) {
    *lost = false;
    int64_t age = p->o->lease_ms - p->claim.left_ms;
    stet_value now = age > TELL_MS ? progress_of(p->o, p->job) : stet_value_null();
    bool news =
        stet_value_type(now) != STET_TYPE_NULL && !stet_value_equal(now, stet_value_get(p->claim.job, "progress"));
    if (age < p->o->lease_ms / 3 && !news) {
        stet_value_release(now);
        return STET_OK;
    }
    stet_claim next = stet_claim_copy(&p->claim);
    if (news && stet_value_type(next.job) == STET_TYPE_OBJECT)
        stet_value_put(&next.job, "progress", now);
    else
        stet_value_release(now);
    next.lease_for_ms = p->o->lease_ms;
    return change(p, next, lost, err);
}

static stet_orch_event end_of(const poll *p) {
    return p->claim.state == STET_CLAIM_OK ? STET_ORCH_OK : STET_ORCH_ERROR;
}

static stet_orch_event work(poll *p, stet_status *status, stet_error *err) {
    bool lost = false;
    if (p->claim.state == STET_CLAIM_OK || p->claim.state == STET_CLAIM_ERROR)
        return end_of(p);
    if (p->o->queue || !mine(p))
        return STET_ORCH_RUNNING;
    stet_job_status job;
    stet_value value = stet_value_null();
    *status = bring(p, p->job->node, err); /* gc may have swept it where it is read */
    if (*status != STET_OK)
        return STET_ORCH_LOST;
    *status = p->o->backend->poll(p->o->backend_ctx, p->job, stet_hub_repo(p->o->hub), &job, &value, err);
    if (*status != STET_OK)
        return STET_ORCH_LOST;
    if (job == STET_JOB_GONE && p->claim.lost + 1 >= STET_ORCH_MAX_LOST) {
        char *text = stet_asprintf("the job was lost %d times", STET_ORCH_MAX_LOST);
        value = failure(text);
        job = STET_JOB_FAILED;
        stet_free(text);
    }
    switch (job) {
    case STET_JOB_RUNNING:
        *status = refresh(p, &lost, err);
        return lost ? STET_ORCH_LOST : STET_ORCH_RUNNING;
    case STET_JOB_GONE:
        *status = lose(p, &lost, err);
        return STET_ORCH_LOST;
    case STET_JOB_OK:
    case STET_JOB_ERROR:
    case STET_JOB_FAILED:
    case STET_JOB_AGAIN:
        break;
    }
    *status = publish(p, job, value, &lost, err);
    stet_value_release(value);
    if (*status != STET_OK || lost)
        return STET_ORCH_LOST;
    p->o->backend->forget(p->o->backend_ctx, p->job);
    /* It may have ended before this execution began, and nobody was there to see it: a failure that is not kept is that
     * of others. */
    return concerns(p) ? end_of(p) : STET_ORCH_LOST;
}

stet_status stet_orch_poll(stet_orch *o, const stet_orch_job *job, stet_orch_answer *out, stet_error *err) {
    poll p = {.o = o, .job = job, .state = STET_ORCH_LOOKUP, .fresh = job->fresh};
    stet_status status = STET_OK;
    for (int round = 0; status == STET_OK && !stet_orch_terminal(p.state); round++) {
        stet_orch_event event = STET_ORCH_LOST;
        if (round == MAX_ROUNDS) {
            status = stet_fail(err, STET_BUSY, "others change the claim of the call again and again");
            break;
        }
        switch (p.state) {
        case STET_ORCH_LOOKUP:
            event = lookup(&p, &status, err);
            break;
        case STET_ORCH_OWNER:
            event = own(&p, &status, err);
            break;
        case STET_ORCH_FOLLOW:
            event = follow(&p, &status, err);
            break;
        default:
            event = work(&p, &status, err);
            break;
        }
        if (status == STET_OK && !stet_orch_step(&p.state, event))
            status = stet_fail(err, STET_INTERNAL, "a claim can't be %s while %s", stet_orch_event_name(event),
                               stet_orch_state_name(p.state));
    }
    if (status == STET_OK)
        *out = (stet_orch_answer){.state = p.state,
                                  .result = p.claim.result,
                                  .claim = p.claim.state,
                                  .attempt = p.claim.attempt,
                                  .mine = mine(&p),
                                  .took = p.took,
                                  .kept = !p.claim.passing,
                                  .retry = p.claim.retry};
    if (p.there)
        stet_claim_release(&p.claim);
    return status;
}

stet_value stet_orch_progress(stet_orch *o, const stet_orch_job *job) {
    stet_claim c;
    bool there = false;
    stet_value out = stet_value_null();
    if (stet_claim_get(o->hub, job->key, &there, &c, NULL) != STET_OK || !there)
        return out;
    if (!o->queue && strcmp(c.owner, o->owner) == 0)
        out = progress_of(o, job);
    if (stet_value_type(out) == STET_TYPE_NULL)
        out = stet_value_retain(stet_value_get(c.job, "progress"));
    stet_claim_release(&c);
    return out;
}

stet_status stet_orch_cancel(stet_orch *o, const stet_orch_job *job, stet_error *err) {
    poll p = {.o = o, .job = job};
    stet_status status = STET_OK;
    for (int round = 0; round < MAX_ROUNDS && status == STET_OK; round++) {
        bool lost = false;
        status = look(&p, err);
        if (status != STET_OK)
            break;
        /* Somebody else's, or ended: it stays as it is. */
        if (p.there && (p.claim.state >= STET_CLAIM_OK ||
                        !stet_value_text_is(stet_value_get(p.claim.request, "execution"), job->execution)))
            break;
        bool had = p.there && mine(&p);
        stet_claim next =
            p.there ? stet_claim_copy(&p.claim) : (stet_claim){.job = stet_value_null(), .request = request_value(job)};
        next.state = STET_CLAIM_CANCELLED;
        next.attempt++;
        next.owner[0] = 0;
        status = change(&p, next, &lost, err);
        if (status != STET_OK || lost)
            continue;
        if (had)
            o->backend->cancel(o->backend_ctx, job);
        break;
    }
    if (p.there)
        stet_claim_release(&p.claim);
    return status;
}

stet_status stet_orch_open_work(stet_hub *hub, size_t limit, stet_hub_keys *out, stet_error *err) {
    return stet_hub_find_claims(hub, STET_HUB_OPEN, 0, limit, out, err);
}

void stet_orch_held_release(stet_orch_held *h) {
    stet_free(h->inputs);
    stet_free(h->function);
    stet_free(h->execution);
    stet_free(h->ref);
    *h = (stet_orch_held){0};
}

stet_status stet_orch_job_of(const stet_claim *c, stet_hash key, stet_orch_held *out, stet_error *err) {
    stet_value list = stet_value_get(c->request, "inputs");
    size_t n = stet_value_count(list);
    *out = (stet_orch_held){.inputs = stet_alloc_zero((n + 1) * sizeof *out->inputs),
                            .function = stet_value_text_copy(c->request, "function"),
                            .execution = stet_value_text_copy(c->request, "execution"),
                            .ref = stet_value_text_copy(c->request, "ref")};
    out->job = (stet_orch_job){.key = key,
                               .inputs = out->inputs,
                               .input_count = n,
                               .function = out->function,
                               .execution = out->execution,
                               .ref = out->ref};
    out->job.tries = stet_value_as_int(stet_value_get(c->request, "tries"));
    bool fine = stet_value_type(list) == STET_TYPE_ARRAY && out->function && out->execution && out->ref &&
                stet_hash_of_text(stet_value_get(c->request, "node"), &out->job.node);
    for (size_t i = 0; i < n && fine; i++)
        fine = stet_hash_of_text(stet_value_at(list, i), &out->inputs[i]);
    if (fine)
        return STET_OK;
    stet_orch_held_release(out);
    return stet_fail(err, STET_CORRUPT, "the request in the record of a claim makes no sense");
}
