/* keeper.c - keeps the claims of running jobs alive while nobody asks for them. */

#include "call/keeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call/calls.h"
#include "call/orchestrate_local.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"
#include "os/plugin.h"
#include "os/proc.h"

#define PROGRAM     "stet-exec-local"
#define TURN_MIN_MS 100
#define TURN_MAX_MS 2000
#define EMPTY_TURNS 3  /* so many looks in a row with nothing to keep: it ends */
#define WRONG_TURNS 20 /* so many that failed: the directory or the hub is gone */

typedef struct keeper {
    const stet_keeper_opts *o;
    stet_orch orch;
    stet_backend_local *backend;
    char owner[200];
} keeper;

static char *lock_path(const stet_keeper_opts *o) {
    char name[32], hex[STET_HASH_HEX];
    stet_hash_hex(stet_hash_of(o->hub, strlen(o->hub)), hex);
    snprintf(name, sizeof name, "keeper.%.16s", hex);
    return stet_file_join(o->dir, name);
}

/* True: this process is the keeper now, and `*out` is held. */
static bool take_turn(const char *path, stet_lock **out) {
    stet_error err = STET_ERROR_INIT;
    if (stet_lock_open(path, STET_LOCK_PLAIN, out, &err) != STET_OK) {
        stet_error_clear(&err);
        return false;
    }
    if (stet_lock_take(*out, STET_LOCK_EXCLUSIVE, 0, &err) == STET_OK)
        return true;
    stet_error_clear(&err);
    stet_lock_close(*out);
    return false;
}

static char *program_path(void) {
    static const char *const places[] = {".", "../bin", "../..", "../../../../bin", NULL};
    char *beside = stet_installed(places, PROGRAM);
    return beside ? beside : stet_strdup(PROGRAM);
}

void stet_keeper_need(const stet_keeper_opts *o) {
    char *path = lock_path(o), lease[32], client[64];
    stet_lock *lock;
    stet_error err = STET_ERROR_INIT;
    stet_proc p;
    bool alone = take_turn(path, &lock);
    stet_free(path);
    if (!alone)
        return;
    stet_lock_close(lock);
    snprintf(lease, sizeof lease, "%lld", (long long)o->lease_ms);
    snprintf(client, sizeof client, "%lld.%llx", (long long)o->client.pid, (unsigned long long)o->client.start);
    char *program = program_path();
    const char *argv[] = {program, "keep", o->dir, o->root, o->hub, lease, client, NULL};
    stet_proc_opts opts = {.argv = argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .new_session = true};
    if (stet_proc_spawn(&opts, &p, &err) == STET_OK && p.pidfd >= 0)
        close(p.pidfd);
    stet_error_clear(&err);
    stet_free(program);
}

typedef enum holder { NOT_HERE, THIS_DIRECTORY, LIVE_WORKER, DEAD_WORKER } holder;

static bool is_alive(int64_t pid, uint64_t start) {
    stet_proc_id now;
    stet_error none = STET_ERROR_INIT;
    bool alive =
        pid > 0 && stet_proc_identify(pid, &now, &none) == STET_OK && now.start == start && stet_proc_alive(now);
    stet_error_clear(&none);
    return alive;
}

/* Whose claim is it? Workers are named after their directory, with their process (calls_worker.c). */
static holder holder_of(const keeper *k, const char *owner) {
    size_t len = strlen(k->owner);
    long long pid;
    unsigned long long start;
    if (strncmp(owner, k->owner, len) != 0)
        return NOT_HERE;
    if (!owner[len])
        return THIS_DIRECTORY;
    if (sscanf(owner + len, "/%lld.%llx", &pid, &start) != 2)
        return NOT_HERE;
    return is_alive(pid, start) ? LIVE_WORKER : DEAD_WORKER;
}

/* K3. */
static bool is_known(keeper *k, const stet_orch_job *job) {
    stet_job_status is = STET_JOB_GONE;
    stet_value value = stet_value_null();
    stet_status status = stet_hub_bring(k->orch.hub, stet_hub_repo(k->orch.hub), &job->node, 1, NULL);
    if (status == STET_OK)
        status = stet_backend_local_kind.poll(k->backend, job, stet_hub_repo(k->orch.hub), &is, &value, NULL);
    stet_value_release(value);
    return status == STET_OK && is != STET_JOB_GONE;
}

/* K2. */
static stet_status take_over(keeper *k, stet_hash key, const stet_claim *c, stet_error *err) {
    stet_claim next = stet_claim_copy(c);
    snprintf(next.owner, sizeof next.owner, "%s", k->owner);
    next.attempt++;
    next.lease_for_ms = k->o->lease_ms;
    stet_status status = stet_claim_swap(k->orch.hub, key, c, &next, err);
    stet_claim_release(&next);
    return status;
}

/* One claim. *kept: there is something to keep. */
static stet_status keep(keeper *k, stet_hash key, bool *kept, stet_error *err) {
    stet_claim c;
    bool there;
    stet_orch_held h;
    stet_orch_answer a;
    stet_status status = stet_claim_get(k->orch.hub, key, &there, &c, err);
    if (status != STET_OK || !there)
        return status;
    holder who = c.state < STET_CLAIM_OK ? holder_of(k, c.owner) : NOT_HERE;
    *kept |= who == LIVE_WORKER;
    if (who == NOT_HERE || who == LIVE_WORKER) {
        stet_claim_release(&c);
        return STET_OK;
    }
    status = stet_orch_job_of(&c, key, &h, err);
    if (status == STET_OK && is_known(k, &h.job)) {
        if (who == DEAD_WORKER)
            status = take_over(k, key, &c, err);
        if (status == STET_OK)
            status = stet_orch_poll(&k->orch, &h.job, &a, err);
        *kept |= status == STET_OK && a.state == STET_ORCH_PENDING && a.mine;
    }
    if (status == STET_OK)
        stet_orch_held_release(&h);
    stet_claim_release(&c);
    return status;
}

/* All claims of this directory that are held, whether their lease has ended or not. */
static stet_status look(keeper *k, bool *kept, stet_error *err) {
    stet_hub_keys keys = {0};
    *kept = is_alive(k->o->client.pid, k->o->client.start);
    stet_status status = stet_hub_find_claims(k->orch.hub, STET_HUB_LIVE, 0, SIZE_MAX, &keys, err);
    if (status == STET_OK)
        status = stet_hub_find_claims(k->orch.hub, STET_HUB_OPEN, 0, SIZE_MAX, &keys, err);
    for (size_t i = 0; i < keys.len && status == STET_OK; i++) {
        stet_error inner = STET_ERROR_INIT;
        stet_status one = keep(k, keys.at[i], kept, &inner);
        /* Overtaken, cancelled, or damaged: somebody else's. */
        if (one == STET_CONFLICT || one == STET_CANCELLED || one == STET_CORRUPT || one == STET_OK)
            stet_error_clear(&inner);
        else
            status = one;
        stet_error_move(err, &inner);
    }
    free(keys.at);
    return status;
}

/* A job that was lost is started again, within the limits of the project. */
static void limit(keeper *k) {
    stet_project *p = NULL;
    stet_calls_config config = {0};
    if (stet_project_find(k->o->root, &p, NULL) == STET_OK && stet_calls_config_read(p, &config, NULL) == STET_OK)
        stet_backend_local_limit(k->backend, config.slots, config.pools);
    stet_calls_config_release(&config);
    stet_project_close(p);
}

/* Until there is nothing to keep for a while. */
static stet_status keep_all(keeper *k, const char *lock, stet_error *err) {
    int64_t turn = TURN_MIN_MS, most = k->o->lease_ms / 3 < TURN_MAX_MS ? k->o->lease_ms / 3 + 1 : TURN_MAX_MS;
    for (int empty = 0, wrong = 0; empty < EMPTY_TURNS; turn = turn * 5 / 4 < most ? turn * 5 / 4 : most) {
        bool kept;
        stet_error_clear(err);
        stet_status status = look(k, &kept, err);
        wrong = status == STET_OK ? 0 : wrong + 1;
        empty = status == STET_OK && !kept ? empty + 1 : 0;
        if (wrong == WRONG_TURNS || !stet_file_exists(lock))
            return status;
        stet_clock_sleep_ms((int)turn);
    }
    return STET_OK;
}

stet_status stet_keeper_run(const stet_keeper_opts *o, stet_error *err) {
    keeper k = {.o = o};
    stet_lock *lock;
    char *path = lock_path(o);
    bool kept = true;
    stet_status status = STET_OK;
    /* Somebody may have seen the lock held just before it was dropped: look once more afterwards. */
    while (status == STET_OK && kept && take_turn(path, &lock)) {
        stet_hub *hub = NULL;
        stet_repo *lent = NULL;
        status = stet_calls_owner(o->dir, k.owner, err);
        if (status == STET_OK)
            status = stet_hub_open(o->hub, STET_REPO_MUST_EXIST, &hub, err);
        if (status == STET_OK)
            status = stet_calls_lend(hub, o->dir, &lent, err);
        if (status == STET_OK) {
            k.backend = stet_backend_local_open(o->dir, o->root, o->client.pid > 0);
            limit(&k);
            k.orch = (stet_orch){.hub = hub,
                                 .backend = &stet_backend_local_kind,
                                 .backend_ctx = k.backend,
                                 .owner = k.owner,
                                 .lease_ms = o->lease_ms};
            status = keep_all(&k, path, err);
            stet_lock_drop(lock);
            if (status == STET_OK)
                status = look(&k, &kept, err);
            stet_backend_local_close(k.backend);
        }
        stet_hub_close(hub);
        stet_repo_close(lent);
        stet_lock_close(lock);
    }
    stet_free(path);
    return status;
}
