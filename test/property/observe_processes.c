/* observe_processes.c - random workloads on observations by several processes that are killed.
 *
 * Two spaces have actions that read each other, two branches, scopes, recursive and shallow reads, runs that change
 * something and runs that do not, stale and replayed ones, groups, commits made with the switch off, distrusted and
 * forgotten actions. Each step is an order to one of the processes, drawn from the seed. Some orders kill the process
 * before or after its n-th change to the files, so between any two commits.
 *
 * After each step the marks that are stored equal marks derived from scratch: from the reads of the stored
 * observations, their sequences, and the changed leaves of all commits, with nothing else. What was acknowledged is
 * there. Now and then marks and rows are taken away by hand and repaired: then too. An action may be unknown, which
 * only means that it runs again, but for a reason that this workload has given.
 */

#include "../observe_random.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../faults.h"
#include "db/db.h"
#include "memory/observe.h"
#include "os/file.h"

enum { SPACES = 2, BRANCHES = 2, WORKERS = 3, DOCS = RANDOM_DOCS, ACTIONS = 10, MAX_READS = 5 };
static const char *const names[SPACES] = {"a", "b"};
static const char *const branches[BRANCHES] = {"", "side"}; /* of space a; b has one */

typedef enum order_kind { RUN, COMMIT, GROUP, EDIT, UNSEEN, REPLAY, DISTRUST, FORGET, SYNC, CATCH_UP } order_kind;

typedef struct order {
    order_kind kind;
    int space, branch;
    bool hold; /* a run that waits for COMMIT, so that others come in between */
    uint64_t seed;
    int64_t kill_at; /* 0: it lives */
    bool kill_after;
    int64_t local;
} order;

typedef struct answer {
    bool died;
    stet_status status;
    stet_commit_result result; /* of a run */
    int action;                /* that ran, or was distrusted; -1: none */
    char message[200];
} answer;

static stet_space *mine[SPACES];
static stet_tx *held;

static stet_docname random_doc(char id[16]) {
    unsigned n = rnd(DOCS + 3);
    if (n < DOCS)
        return (stet_docname){doc_ids[n], doc_scopes[n]};
    snprintf(id, 16, "out%u", rnd(ACTIONS));
    return (stet_docname){id, ""};
}

static stet_status fill(stet_tx *tx, const order *o, int *action) {
    stet_status st = STET_OK;
    char id[16], key[16], out[16];
    for (unsigned n = rnd(MAX_READS); n && st == STET_OK; n--) {
        stet_path p = STET_PATH_INIT;
        stet_value v;
        stet_docname name = random_doc(id);
        random_path(&p);
        bool far = o->branch == 0 && rnd(3) == 0;
        st = stet_tx_read(tx, far ? mine[!o->space] : NULL, &name, stet_path_ref(&p),
                          rnd(2) ? STET_SHALLOW : STET_RECURSIVE, &v, &err);
        if (st == STET_NOT_FOUND)
            st = STET_OK;
        stet_error_clear(&err);
        stet_path_release(&p);
    }
    *action = (int)rnd(ACTIONS);
    snprintf(key, sizeof key, "n%d", *action);
    snprintf(out, sizeof out, "out%d", *action);
    unsigned what = rnd(10);
    stet_path value = STET_PATH_INIT;
    stet_path_push(&value, "value");
    stet_docname output = {out, ""};
    if (st == STET_OK && what > 3)
        st = stet_tx_write(tx, &output, stet_path_ref(&value), stet_value_int(rnd(3)), &err);
    stet_address declared = {NULL, output, stet_path_ref(&value)};
    stet_observation obs = {.key = {"piece", "", key},
                            .kind = STET_ACTION_COMPUTATION,
                            .generation = 1,
                            .run = what == 0 ? STET_RUN_DEPENDENCIES : STET_RUN_ACTION,
                            .declared_writes = &declared,
                            .declared_count = 1,
                            .failed = what == 1};
    if (st == STET_OK)
        st = stet_observe_attach(tx, &obs, &err);
    stet_path_release(&value);
    return st;
}

static stet_status commit_held(answer *a) {
    stet_tx *tx = held;
    held = NULL;
    return tx ? stet_tx_commit(tx, &a->result, &err) : STET_OK;
}

static stet_status run(const order *o, answer *a) {
    stet_status st = stet_tx_begin(mine[o->space], branches[o->branch], &held, &err);
    if (st == STET_OK && (st = fill(held, o, &a->action)) != STET_OK) {
        stet_tx_abort(held);
        held = NULL;
    }
    return st == STET_OK && !o->hold ? commit_held(a) : st;
}

static stet_status run_group(const order *o) {
    stet_group *g;
    stet_status st = stet_group_begin(mine[o->space], branches[o->branch], &g, &err);
    if (st != STET_OK)
        return st;
    for (unsigned n = 1 + rnd(4); n && st == STET_OK; n--) {
        stet_tx *tx;
        int action;
        st = stet_tx_begin_in(g, &tx, &err);
        if (st == STET_OK &&
            ((st = fill(tx, o, &action)) != STET_OK || (st = stet_group_add(g, tx, NULL, NULL, &err)) != STET_OK))
            stet_tx_abort(tx);
    }
    if (st == STET_OK)
        st = stet_group_flush(g, &err);
    stet_group_end(g);
    return st;
}

static stet_status edit(const order *o) {
    stet_tx *tx;
    char id[16];
    stet_status st = stet_tx_begin(mine[o->space], branches[o->branch], &tx, &err);
    if (st != STET_OK)
        return st;
    stet_docname name = random_doc(id);
    stet_path p = STET_PATH_INIT;
    random_path(&p);
    if (o->kind == REPLAY) { /* the same number always with the same content, whoever sends it */
        st = stet_tx_session(tx, "s", o->local, &err);
        if (st == STET_OK)
            st = stet_tx_set(tx, "d2", NULL, stet_value_int(o->local % 5), &err);
    } else if (rnd(12) == 0) {
        st = stet_tx_drop(tx, &name, &err);
    } else {
        st = stet_tx_write(tx, &name, stet_path_ref(&p), random_value(0), &err);
        if (st != STET_OK) { /* a path through a scalar: refused, and nothing happened */
            stet_error_clear(&err);
            stet_tx_abort(tx);
            stet_path_release(&p);
            return STET_OK;
        }
    }
    stet_path_release(&p);
    if (st == STET_OK)
        return stet_tx_commit(tx, NULL, &err);
    stet_tx_abort(tx);
    return st;
}

static stet_status obey(const order *o, answer *a) {
    stet_space *s = mine[o->space];
    char key[16];
    int64_t branch;
    stet_status st;
    switch (o->kind) {
    case RUN:
        return run(o, a);
    case COMMIT:
        return commit_held(a);
    case GROUP:
        return run_group(o);
    case UNSEEN:
        stet_observe_switch(s, false);
        st = edit(o);
        stet_observe_switch(s, true);
        return st;
    case EDIT:
    case REPLAY:
        return edit(o);
    case DISTRUST:
    case FORGET:
        a->action = (int)rnd(ACTIONS);
        snprintf(key, sizeof key, "n%d", a->action);
        st = stet_space_branch(s, branches[o->branch], &branch, &err);
        if (st != STET_OK)
            return st;
        stet_action_key k = {"piece", "", key};
        return o->kind == FORGET ? stet_observe_forget(s, branch, "piece", "", &k, 1, &err)
                                 : stet_observe_distrust(s, branch, &k, 1, STET_REASON_IMPLEMENTATION, &err);
    case SYNC:
        return stet_space_sync(s, &err);
    case CATCH_UP:
        break;
    }
    return stet_observe_catch_up(s, &err);
}

static _Noreturn void work(int orders, int answers) {
    order o;
    faults_arm_durable(0, STET_SYS_KILL, 0); /* never; but files have the hook that are opened while there is one */
    for (int i = 0; i < SPACES; i++)
        if (!(mine[i] = open_named(names[i]))) {
            fprintf(stderr, "# a worker: %s\n", err.message);
            _exit(3);
        }
    while (read(orders, &o, sizeof o) == sizeof o) {
        answer a = {.action = -1};
        seed = o.seed;
        faults_arm_durable(o.kill_at, o.kill_after ? STET_SYS_KILL_AFTER : STET_SYS_KILL, 0);
        a.status = obey(&o, &a);
        faults_arm_durable(0, STET_SYS_KILL, 0);
        snprintf(a.message, sizeof a.message, "%.199s", err.message);
        stet_error_clear(&err);
        if (write(answers, &a, sizeof a) != sizeof a)
            _exit(2);
    }
    stet_tx_abort(held);
    for (int i = 0; i < SPACES; i++)
        stet_space_close(mine[i]);
    _exit(0);
}

/* Starts a worker again when it was killed, and says so. It opens nothing itself: a process that is forked with a
 * database open must not use one. */
static _Noreturn void supervise(int orders, int answers) {
    for (;;) {
        pid_t pid = fork();
        if (pid == 0)
            work(orders, answers);
        int status;
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
            _exit(1);
        if (!WIFSIGNALED(status))
            _exit(WEXITSTATUS(status));
        answer a = {.died = WTERMSIG(status) == SIGKILL, .status = STET_INTERNAL, .action = -1};
        if (write(answers, &a, sizeof a) != sizeof a)
            _exit(2);
    }
}

static struct worker {
    pid_t pid;
    int orders, answers;
    bool holds;
} workers[WORKERS];

static void start_workers(void) {
    for (int i = 0; i < WORKERS; i++) {
        int to[2], from[2];
        assert_int_equal(pipe(to), 0);
        assert_int_equal(pipe(from), 0);
        workers[i].pid = fork();
        if (workers[i].pid == 0) {
            for (int k = 0; k < i; k++) {
                close(workers[k].orders);
                close(workers[k].answers);
            }
            close(to[1]);
            close(from[0]);
            supervise(to[0], from[1]);
        }
        close(to[0]);
        close(from[1]);
        workers[i].orders = to[1];
        workers[i].answers = from[0];
    }
}

static answer send(int worker, const order *o) {
    answer a;
    assert_int_equal(write(workers[worker].orders, o, sizeof *o), sizeof *o);
    assert_int_equal(read(workers[worker].answers, &a, sizeof a), sizeof a);
    return a;
}

typedef struct change {
    int branch, doc;
    int64_t seq;
    stet_pathref path; /* for ever */
    stet_change_kind kind;
} change;

typedef struct place {
    int space, doc;
    stet_pathref path;
    stet_read_kind kind;
    int64_t seq;
} place;

typedef struct seen_action {
    bool there, observed, far;
    int64_t number, observed_at;
    stet_run_kind run;
    stet_buf bytes; /* as stored when it was decoded last */
    stet_arena arena;
    place *reads;
    size_t read_count;
    place *writes;
    size_t write_count;
    size_t done[SPACES]; /* changes that it has been held against */
    bool dirty, distrusted;
    bool again; /* decoded once more, though it is the same observation */
} seen_action;

static stet_space *own[SPACES];
static STET_VEC(change) history[SPACES];
static stet_arena history_arena;
static int64_t looked[SPACES];
static seen_action seen[SPACES][BRANCHES][ACTIONS];
static int64_t branch_numbers[BRANCHES];
static int kills, repairs;
static int64_t count_of[4];

static stet_pathref keep_path(stet_arena *arena, stet_pathref p) {
    return (stet_pathref){stet_arena_strndup(arena, p.bytes, p.len), p.len};
}

static void look(int s) {
    stet_arena arena = STET_ARENA_INIT;
    stet_commit_record *list;
    size_t count;
    OK(stet_space_commits(own[s], looked[s], 0, 10000, &arena, &list, &count, &err));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(list[i].seq, looked[s] + 1); /* no gap, none twice */
        looked[s] = list[i].seq;
        for (size_t k = 0; k < list[i].len; k++)
            for (size_t n = 0; n < list[i].at[k].len; n++)
                *stet_vec_add(&history[s]) =
                    (change){list[i].branch != 0, doc_number(&list[i].at[k].name), list[i].seq,
                             keep_path(&history_arena, list[i].at[k].at[n].path), list[i].at[k].at[n].kind};
    }
    stet_arena_release(&arena);
}

static void learn_places(seen_action *a, int owner, const stet_observed *at, size_t count, place **out, size_t *len) {
    *out = stet_arena_zero(&a->arena, (count + 1) * sizeof **out);
    *len = count;
    for (size_t i = 0; i < count; i++)
        (*out)[i] = (place){at[i].space ? !owner : owner, doc_number(&at[i].name), keep_path(&a->arena, at[i].path),
                            at[i].kind, at[i].seq};
}

typedef struct scan {
    int space, branch;
    bool met[ACTIONS];
} scan;

static bool take_row(void *ctx, int64_t number, const char *name, size_t name_len, const void *bytes, size_t len) {
    scan *sc = ctx;
    assert_true(name_len > 1 && name[0] == 'n');
    int index = atoi(name + 1);
    seen_action *a = &seen[sc->space][sc->branch][index];
    sc->met[index] = true;
    if (a->there && a->number == number && a->bytes.len == len && (len == 0 || memcmp(a->bytes.data, bytes, len) == 0))
        return true;
    stet_buf_clear(&a->bytes);
    stet_buf_add(&a->bytes, bytes ? bytes : "", len);
    a->there = true;
    a->number = number;
    a->observed = false;
    a->done[0] = a->done[1] = SIZE_MAX; /* to be decoded */
    return true;
}

static void decode(int space, seen_action *a) {
    stet_action_record r;
    stet_arena_clear(&a->arena);
    a->done[0] = a->done[1] = 0;
    a->dirty = a->far = false;
    if (a->bytes.len == 0)
        return;
    stet_arena arena = STET_ARENA_INIT;
    OK(stet_observe_get(own[space], a->number, &arena, &r, &err));
    a->observed = r.observed;
    a->observed_at = r.observed_at;
    a->run = r.run;
    if (r.run != STET_RUN_DEPENDENCIES && !a->again)
        a->distrusted = false;
    a->again = false;
    learn_places(a, space, r.reads, r.read_count, &a->reads, &a->read_count);
    learn_places(a, space, r.known, r.known_count, &a->writes, &a->write_count);
    for (size_t i = 0; i < a->read_count; i++)
        a->far = a->far || a->reads[i].space != space;
    stet_arena_release(&arena);
}

/* Is a change against the action? */
static bool against(const seen_action *a, int owner, int branch, int space, const change *c) {
    for (size_t i = 0; i < a->read_count; i++) {
        const place *r = &a->reads[i];
        if (r->space == space && c->seq > r->seq && c->doc == r->doc && c->branch == (space == owner ? branch : 0) &&
            stet_touches(c->path, c->kind, r->path, r->kind))
            return true;
    }
    for (size_t i = 0; i < a->write_count && space == owner; i++) {
        const place *w = &a->writes[i];
        if (c->seq > a->observed_at && c->doc == w->doc && c->branch == branch &&
            (stet_path_is_prefix(w->path, c->path) || stet_path_is_prefix(c->path, w->path)))
            return true;
    }
    return false;
}

static bool derive(seen_action *a, int owner, int branch) {
    for (int s = 0; s < SPACES; s++)
        for (; a->done[s] < history[s].len; a->done[s]++)
            a->dirty = a->dirty || against(a, owner, branch, s, &history[s].at[a->done[s]]);
    return a->dirty;
}

static bool reason_given(const seen_action *a, stet_reason reason) {
    switch (reason) {
    case STET_REASON_NEVER:
        return !a->observed || a->run == STET_RUN_DEPENDENCIES;
    case STET_REASON_IMPLEMENTATION:
        return a->distrusted;
    case STET_REASON_RESTORED: /* the two sides of a read over spaces differ: a kill came in between */
        return kills > 0;
    case STET_REASON_REPAIRED:
    case STET_REASON_CORRUPT:
        return repairs > 0;
    default:
        return false;
    }
}

static void compare_branch(size_t step, int space, int branch) {
    int64_t number = space == 0 ? branch_numbers[branch] : 0;
    stet_arena arena = STET_ARENA_INIT;
    stet_marked *marks;
    size_t count;
    scan sc = {.space = space, .branch = branch};
    stet_action_filter f = {.piece = "piece", .generation = -1};
    OK(stet_observe_scan(own[space], number, &f, take_row, &sc, &err));
    OK(stet_observe_marks(own[space], number, "piece", "", &arena, &marks, &count, &err));
    for (int i = 0; i < ACTIONS; i++) {
        seen_action *a = &seen[space][branch][i];
        if (!sc.met[i]) {
            a->there = a->distrusted = false;
            continue;
        }
        if (a->done[0] == SIZE_MAX)
            decode(space, a);
        stet_marked mark = {0};
        for (size_t k = 0; k < count; k++)
            if (marks[k].action == a->number)
                mark = marks[k];
        stet_action_state is = a->observed ? mark.state : STET_STATE_UNKNOWN;
        stet_action_state expected = !a->observed               ? STET_STATE_UNKNOWN
                                     : derive(a, space, branch) ? STET_STATE_DIRTY
                                                                : STET_STATE_STANDS;
        count_of[is]++;
        if (is == STET_STATE_UNKNOWN && a->observed && reason_given(a, mark.reason))
            continue; /* it runs again: no harm */
        if (is != expected)
            fail_msg("step %zu, space %s, branch %d, action %d: stored %s (%s, seq %lld), derived %s", step,
                     names[space], branch, i, stet_action_state_name(is), stet_reason_name(mark.reason),
                     (long long)mark.seq, stet_action_state_name(expected));
    }
    stet_arena_release(&arena);
}

static void compare(size_t step) {
    for (int s = 0; s < SPACES; s++)
        OK(stet_observe_catch_up(own[s], &err));
    for (int s = 0; s < SPACES; s++)
        look(s);
    for (int s = 0; s < SPACES; s++) {
        OK(stet_db_begin_read(stet_space_db(own[s]), &err));
        for (int b = 0; b < (s == 0 ? BRANCHES : 1); b++)
            compare_branch(step, s, b);
        OK(stet_db_commit(stet_space_db(own[s]), &err));
    }
}

static void check_agrees(size_t step, const char *when) {
    for (int s = 0; s < SPACES; s++) {
        stet_buf problems = STET_BUF(0);
        size_t found, repaired;
        OK(stet_observe_check(own[s], false, &problems, &found, &repaired, &err));
        if (found)
            fail_msg("step %zu, %s, check of %s: %s", step, when, names[s], stet_buf_cstr(&problems));
        stet_buf_release(&problems);
    }
}

/* Marks, rows, mirrors and whole observations are taken away: repair makes that unknown, and never standing. */
static void hurt_and_repair(size_t step) {
    stet_db *db = stet_space_db(own[rnd(SPACES)]);
    OK(stet_db_begin_write(db, &err));
    stet_db_exec(db, "DELETE FROM mark WHERE action % 2");
    stet_db_exec(db, LOSE_READS);
    stet_db_exec(db, "UPDATE action SET observation = x'0101' WHERE action % 5 = 0");
    stet_db_exec(db, "DELETE FROM mirror WHERE action % 4 = 1");
    OK(stet_db_commit(db, &err));
    repairs++;
    for (int s = 0; s < SPACES; s++) {
        stet_buf problems = STET_BUF(0);
        size_t found, repaired;
        OK(stet_observe_check(own[s], true, &problems, &found, &repaired, &err));
        assert_int_equal(found, repaired);
        stet_buf_release(&problems);
    }
    check_agrees(step, "after a repair");
    compare(step);
}

static order random_order(size_t step) {
    static const order_kind kinds[] = {RUN,  RUN,  RUN,  RUN,    RUN,    RUN,      RUN,    RUN,  GROUP, EDIT,
                                       EDIT, EDIT, EDIT, UNSEEN, REPLAY, DISTRUST, FORGET, SYNC, RUN,   CATCH_UP};
    order o = {.kind = kinds[rnd(sizeof kinds / sizeof *kinds)], .space = (int)rnd(SPACES)};
    o.branch = o.space == 0 && rnd(3) == 0;
    if (o.kind == FORGET && rnd(3))
        o.kind = EDIT;
    o.hold = o.kind == RUN && rnd(5) == 0;
    o.seed = seed;
    o.local = (int64_t)(step / 7); /* several orders in a row have the same, to any process: the first counts */
    if (rnd(25) == 0) {
        o.kill_at = 1 + rnd(12);
        o.kill_after = rnd(2);
    }
    return o;
}

static void after_answer(size_t step, const order *o, const answer *a) {
    if (a->died) {
        kills++;
        if (o->kind == DISTRUST) /* it may have come that far */
            for (int i = 0; i < ACTIONS; i++)
                seen[o->space][o->branch][i].distrusted = true;
        return;
    }
    if (a->status != STET_OK && a->status != STET_CONFLICT)
        fail_msg("step %zu: order %d: %s: %s", step, (int)o->kind, stet_status_name(a->status), a->message);
    if (o->kind == DISTRUST)
        seen[o->space][o->branch][a->action].distrusted = true;
}

/* An acknowledged run that changed something has its observation, at its sequence. */
static void acknowledged(size_t step, const order *o, const answer *a) {
    if (a->died || a->status != STET_OK || !a->result.changed || a->action < 0)
        return;
    const seen_action *is = &seen[o->space][o->branch][a->action];
    if (!is->observed || is->observed_at != a->result.seq)
        fail_msg("step %zu: action %d acknowledged its run at %lld, and %lld is stored", step, a->action,
                 (long long)a->result.seq, (long long)is->observed_at);
}

static void marks_equal_marks_derived_from_scratch_whoever_is_killed(void **state) {
    (void)state;
    size_t steps = getenv("STET_TEST_LONG") ? 1000000 : getenv("STET_TEST_SHORT") ? 1500 : 100000;
    seed = getenv("STET_TEST_SEED") ? strtoull(getenv("STET_TEST_SEED"), NULL, 10) : 20261116;
    print_message("# seed %llu, %zu steps, %d processes\n", (unsigned long long)seed, steps, WORKERS);
    start_workers();
    for (int s = 0; s < SPACES; s++)
        assert_non_null(own[s] = open_named(names[s]));
    OK(stet_branch_create(own[0], "side", "", -1, &err));
    OK(stet_space_branch(own[0], "side", &branch_numbers[1], &err));
    order waiting[WORKERS] = {0};
    int action_of[WORKERS];
    for (size_t step = 0; step < steps; step++) {
        int w = (int)rnd(WORKERS);
        order o = random_order(step);
        if (workers[w].holds) {
            o.kind = COMMIT;
            o.space = waiting[w].space;
            o.branch = waiting[w].branch;
            o.hold = false;
        }
        answer a = send(w, &o);
        after_answer(step, &o, &a);
        if (o.kind == COMMIT)
            a.action = a.died ? -1 : action_of[w];
        workers[w].holds = o.hold && !a.died && a.status == STET_OK;
        waiting[w] = o;
        action_of[w] = a.action;
        compare(step);
        if (!o.hold)
            acknowledged(step, &o, &a);
        if (step % 2500 == 2499) {
            for (int s = 0; s < SPACES; s++)
                for (int b = 0; b < BRANCHES; b++)
                    for (int i = 0; i < ACTIONS; i++)
                        if (seen[s][b][i].there && seen[s][b][i].bytes.len) {
                            seen[s][b][i].again = true; /* all over, without what is remembered */
                            stet_buf_clear(&seen[s][b][i].bytes);
                        }
            compare(step);
            check_agrees(step, "as it is");
            if (step % 10000 == 9999)
                hurt_and_repair(step);
        }
    }
    check_agrees(steps, "at the end");
    print_message("# %d kills, %d repairs; seen standing %lld, dirty %lld, unknown %lld\n", kills, repairs,
                  (long long)count_of[STET_STATE_STANDS], (long long)count_of[STET_STATE_DIRTY],
                  (long long)count_of[STET_STATE_UNKNOWN]);
    assert_true(kills > (int)(steps / 200));
    int64_t all = count_of[STET_STATE_STANDS] + count_of[STET_STATE_DIRTY] + count_of[STET_STATE_UNKNOWN];
    assert_true(count_of[STET_STATE_STANDS] > all / 10 && count_of[STET_STATE_DIRTY] > all / 10);
    for (int i = 0; i < WORKERS; i++) {
        int status;
        close(workers[i].orders);
        assert_int_equal(waitpid(workers[i].pid, &status, 0), workers[i].pid);
        assert_int_equal(status, 0);
        close(workers[i].answers);
    }
    for (int s = 0; s < SPACES; s++) {
        stet_space_close(own[s]);
        stet_vec_release(&history[s]);
        for (int b = 0; b < BRANCHES; b++)
            for (int i = 0; i < ACTIONS; i++) {
                stet_buf_release(&seen[s][b][i].bytes);
                stet_arena_release(&seen[s][b][i].arena);
            }
    }
    stet_arena_release(&history_arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(marks_equal_marks_derived_from_scratch_whoever_is_killed)};
    faults_fast_directory();
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
