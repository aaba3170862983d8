/* call_orchestrate.c - claims and the orchestrator over a real repository, with a fake backend and a fake clock.
 *
 * There is one job for each key; leases are followed and taken over; owners come too late; calls are given up or
 * queued.
 */

#include "../expect.h"

#include <unistd.h>

#include "call/orchestrate.h"
#include "os/clock.h"
#include "os/file.h"

static int64_t now_ms = 1000000000;
static int64_t fake_clock(void) {
    return now_ms * 1000000;
}

typedef struct backend {
    int submits, starts, cancels, forgets;
    bool running, ended, ok, gone, fail_submit;
    stet_job_status failure; /* how it fails, if not as STET_JOB_ERROR */
    const char *value;       /* JSON of what it gives, if not 42 */
    stet_hub *intruder;      /* takes the claim over while this one submits */
    stet_hash intruder_key;
} backend;

static void intrude(backend *b) {
    stet_claim c, next;
    bool there;
    OK(stet_claim_get(b->intruder, b->intruder_key, &there, &c, &err));
    assert_true(there);
    next = stet_claim_copy(&c);
    next.attempt++;
    snprintf(next.owner, sizeof next.owner, "intruder");
    next.lease_for_ms = 5000;
    OK(stet_claim_swap(b->intruder, b->intruder_key, &c, &next, &err));
    stet_claim_release(&c);
    stet_claim_release(&next);
    b->intruder = NULL;
}

static stet_status submit(void *ctx, const stet_orch_job *job, stet_repo *remote,
                          stet_status (*still_mine)(void *ctx, stet_error *e), void *mine, stet_value *identity,
                          stet_error *e) {
    backend *b = ctx;
    (void)job;
    (void)remote;
    b->submits++;
    if (b->fail_submit)
        return stet_fail(e, STET_BUSY, "no processes left");
    if (b->intruder)
        intrude(b);
    if (!b->running && !b->ended) {
        stet_status status = still_mine(mine, e);
        if (status != STET_OK)
            return status;
        b->starts++;
        b->running = true;
    }
    *identity = stet_value_string("job");
    return STET_OK;
}

static stet_status poll_job(void *ctx, const stet_orch_job *job, stet_repo *remote, stet_job_status *status,
                            stet_value *value, stet_error *e) {
    backend *b = ctx;
    (void)job;
    (void)remote;
    if (b->gone) {
        b->running = b->ended = b->gone = false;
        *status = STET_JOB_GONE;
        return STET_OK;
    }
    *status = !b->ended ? (b->running ? STET_JOB_RUNNING : STET_JOB_GONE)
              : b->ok   ? STET_JOB_OK
                        : (b->failure ? b->failure : STET_JOB_ERROR);
    if (b->ended && b->value)
        return stet_json_parse(b->value, strlen(b->value), value, e);
    if (b->ended)
        *value = stet_value_int(42);
    return STET_OK;
}

static void cancel_job(void *ctx, const stet_orch_job *job) {
    backend *b = ctx;
    (void)job;
    b->cancels++;
    b->running = false;
}

static void forget_job(void *ctx, const stet_orch_job *job) {
    backend *b = ctx;
    (void)job;
    b->forgets++;
    b->running = b->ended = false;
}

static const stet_backend kind = {submit, poll_job, cancel_job, forget_job, NULL};

static stet_repo *repo, *other;
static stet_hub *hub, *other_hub;
static stet_hash node, input;
static int number;

static const char executions[2][37] = {"11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"};
static const char refs[2][60] = {"refs/exec/11111111-1111-4111-8111-111111111111",
                                 "refs/exec/22222222-2222-4222-8222-222222222222"};

static int set_up(void **state) {
    (void)state;
    char path[64];
    stet_hash datum;
    snprintf(path, sizeof path, "%d.db", ++number);
    OK(stet_repo_open_path(path, 0, &repo, &err));
    OK(stet_repo_open_path(path, 0, &other, &err));
    OK(stet_repo_begin(repo, &err));
    OK(stet_repo_put_value(repo, stet_value_int(1), &datum, &err));
    OK(stet_node_literal(datum, stet_repo_sink(repo), &input, &err));
    OK(stet_node_call("dml+exec://a/b", &input, 1, stet_repo_sink(repo), &node, &err));
    for (int i = 0; i < 2; i++)
        OK(stet_repo_swap(repo, &(stet_ref_swap){.name = refs[i], .set = &node}, 1, &err));
    OK(stet_repo_commit(repo, &err));
    hub = stet_hub_of_repo(repo);
    other_hub = stet_hub_of_repo(other);
    stet_clock_hook = fake_clock;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    stet_clock_hook = NULL;
    stet_hub_close(hub);
    stet_hub_close(other_hub);
    stet_repo_close(repo);
    stet_repo_close(other);
    return 0;
}

static stet_orch_job job_of(int who) {
    return (stet_orch_job){.key = stet_hash_of("key", 3),
                           .node = node,
                           .function = "dml+exec://a/b",
                           .inputs = &input,
                           .input_count = 1,
                           .execution = executions[who],
                           .ref = refs[who]};
}

static stet_orch orch(stet_hub *h, backend *b, const char *owner) {
    return (stet_orch){.hub = h, .backend = &kind, .backend_ctx = b, .owner = owner, .lease_ms = 1000};
}

static stet_orch_answer ask(stet_orch *o, int who) {
    stet_orch_job job = job_of(who);
    stet_orch_answer a;
    OK(stet_orch_poll(o, &job, &a, &err));
    return a;
}

static stet_claim claim(void) {
    stet_claim c;
    bool there;
    OK(stet_claim_get(hub, job_of(0).key, &there, &c, &err));
    assert_true(there);
    return c;
}

static void value_is(stet_hash dag, int64_t want) {
    stet_value v;
    OK(stet_repo_dag_value(repo, dag, &v, &err));
    assert_int_equal(stet_value_as_int(v), want);
    stet_value_release(v);
}

static void one_claims_and_runs_and_the_other_follows(void **state) {
    (void)state;
    backend a = {0}, b = {0};
    stet_orch x = orch(hub, &a, "x"), y = orch(other_hub, &b, "y");
    stet_orch_answer got = ask(&x, 0);
    assert_int_equal(got.state, STET_ORCH_PENDING);
    assert_true(got.mine);
    got = ask(&y, 1);
    assert_int_equal(got.state, STET_ORCH_PENDING);
    assert_false(got.mine);
    a.ended = a.ok = true;
    got = ask(&x, 0);
    assert_int_equal(got.state, STET_ORCH_DONE_OK);
    value_is(got.result, 42);
    stet_orch_answer second = ask(&y, 1);
    assert_int_equal(second.state, STET_ORCH_DONE_OK);
    assert_true(stet_hash_equal(second.result, got.result));
    assert_int_equal(a.starts, 1);
    assert_int_equal(a.forgets, 1);
    assert_int_equal(b.submits, 0);
    /* The claim keeps the result, whatever becomes of the refs (H5 of hub.h). */
    stet_repo_gc_report report;
    for (int i = 0; i < 2; i++)
        OK(stet_repo_swap(repo, &(stet_ref_swap){refs[i], &node, NULL}, 1, &err));
    now_ms += 10000;
    OK(stet_repo_gc(repo, &(stet_repo_gc_opts){.grace_s = 0}, &report, &err));
    value_is(got.result, 42);
    /* And for whoever comes later. */
    assert_int_equal(ask(&y, 1).state, STET_ORCH_DONE_OK);
}

static void failures_are_published_as_well(void **state) {
    (void)state;
    backend a = {.ended = true};
    stet_orch x = orch(hub, &a, "x");
    stet_orch_answer got = ask(&x, 0);
    assert_int_equal(got.state, STET_ORCH_DONE_ERROR);
    value_is(got.result, 42);
}

static void a_live_lease_is_kept_and_a_stale_one_taken_over(void **state) {
    (void)state;
    backend a = {0}, b = {0};
    stet_orch x = orch(hub, &a, "x"), y = orch(other_hub, &b, "y");
    ask(&x, 0);
    for (int i = 0; i < 10; i++) { /* each look of the owner renews it */
        now_ms += 500;
        ask(&x, 0);
        assert_false(ask(&y, 1).mine);
    }
    stet_claim c = claim();
    assert_int_equal(c.attempt, 1);
    assert_int_equal(c.state, STET_CLAIM_RUNNING);
    assert_true(c.changed_ms > now_ms - 1000);
    stet_claim_release(&c);
    now_ms += 1001; /* the owner is silent */
    stet_orch_answer got = ask(&y, 1);
    assert_true(got.mine);
    assert_int_equal(got.attempt, 2);
    assert_int_equal(b.starts, 1);
    /* The first owner comes back with a result: it counts for nothing. */
    a.ended = a.ok = true;
    got = ask(&x, 0);
    assert_int_equal(got.state, STET_ORCH_PENDING);
    assert_false(got.mine);
    assert_int_equal(a.forgets, 0);
    b.ended = true;
    b.ok = false;
    assert_int_equal(ask(&y, 1).state, STET_ORCH_DONE_ERROR);
    assert_int_equal(ask(&x, 0).state, STET_ORCH_DONE_ERROR);
}

static void the_same_owner_goes_on_with_a_stale_lease(void **state) {
    (void)state;
    backend a = {0};
    stet_orch x = orch(hub, &a, "x"), again = orch(other_hub, &a, "x");
    ask(&x, 0);
    now_ms += 1000000;
    stet_orch_answer got = ask(&again, 0);
    assert_true(got.mine);
    assert_int_equal(got.attempt, 1);
    assert_int_equal(a.starts, 1);
}

static void an_owner_that_is_overtaken_while_it_submits_starts_nothing(void **state) {
    (void)state;
    backend a = {.intruder = other_hub, .intruder_key = job_of(0).key};
    stet_orch x = orch(hub, &a, "x");
    stet_orch_answer got = ask(&x, 0);
    assert_int_equal(got.state, STET_ORCH_PENDING);
    assert_false(got.mine);
    assert_int_equal(a.starts, 0);
}

static void a_crash_between_claim_and_submit_is_mended_by_the_next_look(void **state) {
    (void)state;
    backend a = {.fail_submit = true};
    stet_orch x = orch(hub, &a, "x");
    stet_orch_job job = job_of(0);
    stet_orch_answer got;
    FAILS(stet_orch_poll(&x, &job, &got, &err), STET_BUSY, "no processes");
    stet_claim c = claim();
    assert_int_equal(c.state, STET_CLAIM_CLAIMED);
    stet_claim_release(&c);
    a.fail_submit = false;
    assert_true(ask(&x, 0).mine);
    assert_int_equal(a.starts, 1);
}

static void a_job_that_vanished_is_started_again_but_not_for_ever(void **state) {
    (void)state;
    backend a = {0};
    stet_orch x = orch(hub, &a, "x");
    ask(&x, 0);
    a.gone = true;
    stet_orch_answer got = ask(&x, 0);
    assert_int_equal(got.state, STET_ORCH_PENDING);
    assert_int_equal(got.attempt, 2);
    assert_int_equal(a.starts, 2);
    for (int i = 0; i < 10 && got.state == STET_ORCH_PENDING; i++) {
        a.gone = true;
        got = ask(&x, 0);
    }
    assert_int_equal(got.state, STET_ORCH_DONE_ERROR);
    assert_int_equal(a.starts, STET_ORCH_MAX_LOST);
}

static void a_result_that_was_swept_makes_the_claim_void(void **state) {
    (void)state;
    backend a = {.ended = true, .ok = true};
    stet_orch x = orch(hub, &a, "x");
    stet_orch_answer got = ask(&x, 0);
    assert_int_equal(got.state, STET_ORCH_DONE_OK);
    /* No claim names what is not there. */
    stet_claim c = claim(), next = stet_claim_copy(&c);
    next.result = stet_hash_of("nothing", 7);
    FAILS(stet_claim_swap(hub, job_of(0).key, &c, &next, &err), STET_NOT_FOUND, "no such object");
    stet_claim_release(&c);
    stet_claim_release(&next);
    OK(stet_repo_excise(repo, got.result, "gone", &err));
    got = ask(&x, 0);
    assert_int_equal(got.state, STET_ORCH_PENDING);
    assert_int_equal(a.starts, 1);
}

static void a_queue_is_followed_and_a_worker_takes_from_it(void **state) {
    (void)state;
    backend a = {0}, b = {0};
    stet_orch q = orch(hub, &a, "caller"), w = orch(other_hub, &b, "worker");
    stet_hub_keys keys = {0};
    q.queue = true;
    assert_int_equal(ask(&q, 0).claim, STET_CLAIM_QUEUED);
    assert_int_equal(ask(&q, 0).claim, STET_CLAIM_QUEUED);
    keys.len = 0;
    OK(stet_orch_open_work(other_hub, 10, &keys, &err));
    assert_int_equal(keys.len, 1);
    assert_true(stet_hash_equal(keys.at[0], job_of(0).key));
    stet_claim c = claim();
    stet_orch_held h;
    OK(stet_orch_job_of(&c, job_of(0).key, &h, &err));
    stet_claim_release(&c);
    assert_string_equal(h.job.function, "dml+exec://a/b");
    assert_true(stet_hash_equal(h.job.node, node) && h.job.input_count == 1);
    stet_orch_answer got;
    OK(stet_orch_poll(&w, &h.job, &got, &err));
    assert_true(got.mine);
    keys.len = 0;
    OK(stet_orch_open_work(other_hub, 10, &keys, &err));
    assert_int_equal(keys.len, 0);
    now_ms += 1001; /* silent: open to others, and the caller only waits */
    assert_int_equal(ask(&q, 0).state, STET_ORCH_PENDING);
    keys.len = 0;
    OK(stet_orch_open_work(other_hub, 10, &keys, &err));
    assert_int_equal(keys.len, 1);
    free(keys.at);
    b.ended = b.ok = true;
    OK(stet_orch_poll(&w, &h.job, &got, &err));
    assert_int_equal(got.state, STET_ORCH_DONE_OK);
    assert_int_equal(ask(&q, 0).state, STET_ORCH_DONE_OK);
    assert_int_equal(a.submits, 0);
    stet_orch_held_release(&h);
}

static void given_up_it_stays_so_for_its_execution_and_not_for_others(void **state) {
    (void)state;
    backend a = {0}, b = {0};
    stet_orch x = orch(hub, &a, "x"), y = orch(other_hub, &b, "y");
    stet_orch_job mine = job_of(0), theirs = job_of(1);
    stet_orch_answer got;
    ask(&x, 0);
    OK(stet_orch_cancel(&y, &theirs, &err)); /* not for this execution */
    assert_int_equal(ask(&x, 0).state, STET_ORCH_PENDING);
    OK(stet_orch_cancel(&x, &mine, &err));
    assert_int_equal(a.cancels, 1);
    FAILS(stet_orch_poll(&x, &mine, &got, &err), STET_CANCELLED, "cancelled");
    FAILS(stet_orch_poll(&x, &mine, &got, &err), STET_CANCELLED, "cancelled");
    got = ask(&y, 1);
    assert_true(got.mine);
    assert_int_equal(b.starts, 1);
    /* An end is an end: it can't be given up. */
    b.ended = b.ok = true;
    ask(&y, 1);
    OK(stet_orch_cancel(&y, &theirs, &err));
    assert_int_equal(ask(&y, 1).state, STET_ORCH_DONE_OK);
}

static void given_up_before_it_was_claimed_it_does_not_begin(void **state) {
    (void)state;
    backend a = {0};
    stet_orch x = orch(hub, &a, "x");
    stet_orch_job job = job_of(0);
    stet_orch_answer got;
    OK(stet_orch_cancel(&x, &job, &err));
    FAILS(stet_orch_poll(&x, &job, &got, &err), STET_CANCELLED, "cancelled");
    assert_int_equal(a.submits, 0);
}

static stet_orch_answer ask_as(stet_orch *o, int who, int64_t tries, bool fresh) {
    stet_orch_job job = job_of(who);
    stet_orch_answer a;
    job.tries = tries;
    job.fresh = fresh;
    OK(stet_orch_poll(o, &job, &a, &err));
    return a;
}

/* Whoever was there is told, each once; whoever comes later runs it. */
static void a_failure_that_is_not_kept_is_told_once(void **state) {
    (void)state;
    backend a = {.failure = STET_JOB_AGAIN}, b = {0};
    stet_orch x = orch(hub, &a, "x"), y = orch(other_hub, &b, "y");
    assert_int_equal(ask_as(&x, 0, 0, true).state, STET_ORCH_PENDING);
    assert_int_equal(ask_as(&y, 1, 0, true).state, STET_ORCH_PENDING);
    a.ended = true;
    stet_orch_answer got = ask_as(&x, 0, 0, false);
    assert_int_equal(got.state, STET_ORCH_DONE_ERROR);
    assert_false(got.kept);
    assert_true(got.retry);
    /* The adapter was killed before it could say so: the same question has the same answer, also without a token. */
    got = ask_as(&x, 0, 0, true);
    assert_int_equal(got.state, STET_ORCH_DONE_ERROR);
    assert_int_equal(a.starts, 1);
    /* A follower is told too. */
    got = ask_as(&y, 1, 0, false);
    assert_int_equal(got.state, STET_ORCH_DONE_ERROR);
    assert_false(got.kept);
    assert_int_equal(b.starts, 0);
    /* It tries again, and then the first does: one job. */
    assert_int_equal(ask_as(&y, 1, 1, true).state, STET_ORCH_PENDING);
    assert_int_equal(b.starts, 1);
    assert_int_equal(ask_as(&x, 0, 1, true).state, STET_ORCH_PENDING);
    assert_int_equal(a.starts, 1);
    b.ended = b.ok = true;
    got = ask_as(&y, 1, 1, false);
    assert_int_equal(got.state, STET_ORCH_DONE_OK);
    assert_true(got.kept);
    assert_int_equal(ask_as(&x, 0, 1, false).state, STET_ORCH_DONE_OK);
}

static void somebody_who_was_not_there_runs_it_again(void **state) {
    (void)state;
    backend a = {.ended = true, .failure = STET_JOB_FAILED}, b = {0};
    stet_orch x = orch(hub, &a, "x"), y = orch(other_hub, &b, "y");
    stet_orch_answer got = ask_as(&x, 0, 0, true);
    assert_int_equal(got.state, STET_ORCH_DONE_ERROR);
    assert_false(got.kept || got.retry);
    got = ask_as(&y, 1, 0, true);
    assert_int_equal(got.state, STET_ORCH_PENDING);
    assert_int_equal(b.starts, 1);
}

static void what_cannot_be_stored_is_a_failure(void **state) {
    (void)state;
    static const char *const values[] = {"{\"/\":{\"bytes@1\":\"not base64!\"}}", "{\"\u00e9\":1,\"e\u0301\":2}",
                                         "{\"/\":{\"uri@1\":\"dml:x\"}}"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        backend a = {.ended = true, .ok = true, .value = values[i]};
        stet_orch x = orch(hub, &a, "x");
        stet_orch_job job = job_of(0);
        stet_orch_answer got;
        job.key = stet_hash_of(values[i], strlen(values[i]));
        OK(stet_orch_poll(&x, &job, &got, &err));
        assert_int_equal(got.state, STET_ORCH_DONE_ERROR);
        assert_true(got.kept);
        stet_value v;
        OK(stet_repo_dag_value(repo, got.result, &v, &err));
        stet_value message = stet_value_get(stet_value_get(v, "error"), "message");
        assert_non_null(strstr(stet_value_as_string(&message, NULL), "can't be stored"));
        stet_value_release(v);
    }
}

/* Neither the result nor the failure that says so. */
static void what_was_excised_is_a_failure_and_so_is_that(void **state) {
    (void)state;
    stet_hash datum;
    for (int round = 0; round < 2; round++) {
        backend a = {.ended = true, .ok = true, .value = "\"secret\""};
        stet_orch x = orch(hub, &a, "x");
        stet_orch_job job = job_of(0);
        stet_orch_answer got;
        stet_value v = stet_value_string("secret"), record;
        if (round == 0) {
            OK(stet_repo_put_value(repo, v, &datum, &err));
            OK(stet_repo_excise(repo, datum, "not for us", &err));
        }
        stet_value_release(v);
        job.key = stet_hash_of(&round, sizeof round);
        OK(stet_orch_poll(&x, &job, &got, &err));
        assert_int_equal(got.state, STET_ORCH_DONE_ERROR);
        assert_int_equal(got.kept, round == 0);
        OK(stet_repo_dag_value(repo, got.result, &v, &err));
        stet_value_release(v);
        /* The literal that the failure is. */
        OK(stet_repo_get(repo, got.result, STET_RECORD_DAG, &record, &err));
        stet_hash root;
        assert_true(stet_hash_of_text(stet_value_get(record, "root"), &root));
        stet_value_release(record);
        if (round == 0)
            OK(stet_repo_excise(repo, root, "nor this", &err));
    }
}

static void a_swap_of_what_is_no_longer_there_changes_nothing(void **state) {
    (void)state;
    backend a = {0};
    stet_orch x = orch(hub, &a, "x");
    ask(&x, 0);
    stet_claim old = claim(), mid = stet_claim_copy(&old), late = stet_claim_copy(&old);
    mid.attempt = 7;
    OK(stet_claim_swap(hub, job_of(0).key, &old, &mid, &err));
    late.attempt = 8;
    FAILS(stet_claim_swap(other_hub, job_of(0).key, &old, &late, &err), STET_CONFLICT, "");
    FAILS(stet_claim_swap(other_hub, job_of(0).key, NULL, &late, &err), STET_CONFLICT, "");
    stet_claim seen = claim();
    assert_int_equal(seen.attempt, 7);
    stet_claim_release(&seen);
    stet_claim_release(&old);
    stet_claim_release(&mid);
    stet_claim_release(&late);
}

static void claims_that_ended_long_ago_are_forgotten_and_others_not(void **state) {
    (void)state;
    backend a = {0};
    stet_orch x = orch(hub, &a, "x");
    int64_t count = 0;
    bool there;
    stet_claim c;
    ask(&x, 0);
    now_ms += 1000000;
    OK(stet_claim_sweep(hub, 0, false, &count, &err)); /* silent for long, but not ended */
    assert_int_equal(count, 0);
    a.ended = a.ok = true;
    ask(&x, 0);
    OK(stet_claim_sweep(hub, 1, false, &count, &err)); /* ended just now */
    assert_int_equal(count, 0);
    now_ms += 1000;
    OK(stet_claim_sweep(hub, 0, true, &count, &err));
    assert_int_equal(count, 1);
    OK(stet_claim_get(hub, job_of(0).key, &there, &c, &err)); /* only counted */
    assert_true(there);
    stet_claim_release(&c);
    OK(stet_claim_sweep(hub, 0, false, &count, &err));
    assert_int_equal(count, 2);
    OK(stet_claim_get(hub, job_of(0).key, &there, &c, &err));
    assert_false(there);
}

static void records_that_make_no_sense_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"5",
                                      "{}",
                                      "{\"v\":3,\"state\":\"odd\",\"owner\":\"\",\"request\":{}}",
                                      "{\"v\":3,\"state\":\"ok\",\"owner\":\"\",\"request\":{}}",
                                      "{\"v\":3,\"state\":\"ok\",\"owner\":\"\",\"request\":{},\"result\":\"xyz\"}",
                                      "{\"v\":4,\"state\":\"queued\",\"owner\":\"\",\"request\":{}}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stet_hub_claim next = {.key = stet_hash_of(bad[i], strlen(bad[i]))};
        stet_claim c;
        bool there;
        OK(stet_json_parse(bad[i], strlen(bad[i]), &next.body, &err));
        OK(stet_hub_swap_claim(hub, NULL, &next, &err));
        stet_value_release(next.body);
        FAILS(stet_claim_get(hub, next.key, &there, &c, &err), STET_CORRUPT, "not the record of a claim");
    }
    stet_claim c = {.request = stet_value_object(), .job = stet_value_null()};
    stet_orch_held h;
    FAILS(stet_orch_job_of(&c, node, &h, &err), STET_CORRUPT, "makes no sense");
    stet_claim_release(&c);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(one_claims_and_runs_and_the_other_follows),
        T(failures_are_published_as_well),
        T(a_live_lease_is_kept_and_a_stale_one_taken_over),
        T(the_same_owner_goes_on_with_a_stale_lease),
        T(an_owner_that_is_overtaken_while_it_submits_starts_nothing),
        T(a_crash_between_claim_and_submit_is_mended_by_the_next_look),
        T(a_job_that_vanished_is_started_again_but_not_for_ever),
        T(a_result_that_was_swept_makes_the_claim_void),
        T(a_queue_is_followed_and_a_worker_takes_from_it),
        T(given_up_it_stays_so_for_its_execution_and_not_for_others),
        T(given_up_before_it_was_claimed_it_does_not_begin),
        T(a_failure_that_is_not_kept_is_told_once),
        T(somebody_who_was_not_there_runs_it_again),
        T(what_cannot_be_stored_is_a_failure),
        T(what_was_excised_is_a_failure_and_so_is_that),
        T(a_swap_of_what_is_no_longer_there_changes_nothing),
        T(claims_that_ended_long_ago_are_forgotten_and_others_not),
        T(records_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
