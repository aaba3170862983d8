/* repo.c - random work on three repositories that share a remote.
 *
 * DAGs of literals, calls and builtins under names, pins, fetches, merges, pushes and sweeps, by two processes at a
 * time, many of them killed on the way. Afterwards every repository is sound. Once all have fetched, merged and pushed,
 * all have the same: every name means what its owner last gave it.
 */

#include "../expect.h"

#include <sys/wait.h>

#include "../faults.h"
#include "../repo_kit.h"
#include "repo/history.h"
#include "repo/remote.h"

enum { REPOS = 3, NAMES = 6 };

static unsigned random_state;
static unsigned pick(unsigned below) {
    random_state = random_state * 1103515245 + 12345;
    return (random_state >> 12) % below;
}

static void fine(stet_status st) {
    if (st == STET_OK || st == STET_CONFLICT || st == STET_BUSY) { /* somebody else was first */
        stet_error_clear(&err);
        return;
    }
    fprintf(stderr, "%s: %s\n", stet_status_name(st), err.message);
    _exit(9);
}

/* A node of any kind; calls are pinned, so that all of it has a value. */
static stet_status random_node(stet_repo *r, int depth, stet_hash *out) {
    static const char *const builtins[] = {"dml://list/of", "dml://set/of", "dml://list/of"};
    stet_hash in[3], datum, dag = {{0}}, exec;
    stet_status st = STET_OK;
    unsigned kind = depth == 0 ? 0 : pick(4), count = 1 + pick(3);
    if (kind == 0) {
        stet_value v = pick(2) ? stet_value_int(pick(50)) : stet_value_stringf("text %u", pick(50));
        st = stet_repo_put_value(r, v, &datum, &err);
        stet_value_release(v);
        return st == STET_OK ? stet_node_literal(datum, stet_repo_sink(r), out, &err) : st;
    }
    for (unsigned i = 0; i < count && st == STET_OK; i++)
        st = random_node(r, depth - 1, &in[i]);
    if (st != STET_OK)
        return st;
    if (kind == 1)
        return stet_node_call(builtins[pick(3)], in, count, stet_repo_sink(r), out, &err);
    if (kind == 2) {
        st = stet_dag_id(in[0], stet_value_null(), stet_repo_sink(r), &dag, &err);
        stet_value v = kit_json("{\"kind\":\"import\",\"type\":\"node\"}");
        stet_value_put(&v, "target", stet_hash_text(dag));
        if (st == STET_OK)
            st = stet_repo_put(r, v, STET_RECORD_NODE, out, &err);
        stet_value_release(v);
        return st;
    }
    st = stet_node_call("dml+exec://test/f", in, count, stet_repo_sink(r), out, &err);
    if (st == STET_OK)
        st = stet_repo_put_result(r, stet_value_int(pick(1000)), &dag, &err);
    stet_exec e = {.node = *out, .result = dag, .ok = true, .attempt = 1 + pick(3)};
    return st == STET_OK ? stet_repo_pin_exec(r, &e, &exec, &err) : st;
}

static void commit_something(stet_repo *r, int me) {
    stet_hash node, dag, id;
    char name[32];
    snprintf(name, sizeof name, "r%d.%u", me, pick(NAMES));
    stet_status st = stet_repo_begin(r, &err);
    if (st == STET_OK) {
        st = random_node(r, 3, &node);
        if (st == STET_OK)
            st = stet_dag_id(node, stet_value_null(), stet_repo_sink(r), &dag, &err);
        if (st == STET_OK)
            st = stet_history_commit(r, "main", name, &dag, "work", &id, &err);
        if (st == STET_OK)
            st = stet_repo_commit(r, &err);
        else
            stet_repo_rollback(r);
    }
    fine(st);
}

static stet_status fetch(stet_repo *r) {
    stet_remote_report report = {0};
    stet_status st = stet_remote_fetch(r, "origin", &(stet_remote_opts){.pins = pick(2) == 0}, &report, &err);
    stet_remote_report_release(&report);
    return st;
}

static stet_status merge(stet_repo *r) {
    bool there;
    stet_hash theirs, id;
    stet_merge_kind kind;
    stet_status st = stet_repo_ref(r, "refs/remotes/origin/main", &there, &theirs, &err);
    return st == STET_OK && there
               ? stet_history_merge(r, "main", theirs, STET_MERGE_REFUSE, pick(2), "", &id, &kind, &err)
               : st;
}

static stet_status push(stet_repo *r) {
    stet_remote_report report = {0};
    stet_status st = stet_remote_push(r, "origin", NULL, 0, &(stet_remote_opts){.pins = pick(2) == 0}, &report, &err);
    stet_remote_report_release(&report);
    return st;
}

static void sweep(const char *path) {
    stet_repo *r;
    stet_repo_gc_report report;
    fine(stet_repo_open_path(path, 0, &r, &err));
    fine(stet_repo_gc(r, &(stet_repo_gc_opts){.grace_s = -1}, &report, &err));
    stet_repo_close(r);
}

static void path_of(int i, char out[16]) {
    snprintf(out, 16, "r%d.db", i);
}

static void work(int me, unsigned seed) {
    stet_repo *r;
    char path[16];
    random_state = seed;
    path_of(me, path);
    if (pick(3)) /* two of three are killed somewhere, if they come that far */
        faults_arm_durable(1 + pick(60), pick(2) ? STET_SYS_KILL : STET_SYS_KILL_AFTER, 0);
    fine(stet_repo_open_path(path, 0, &r, &err));
    for (unsigned n = 4 + pick(6); n > 0; n--) {
        switch (pick(8)) {
        case 0:
        case 1:
        case 2:
            commit_something(r, me);
            break;
        case 3:
            sweep(pick(2) ? path : "remote.db");
            break;
        default: {
            stet_status st = fetch(r);
            if (st == STET_NOT_FOUND) { /* nobody has pushed yet */
                stet_error_clear(&err);
                st = STET_OK;
            }
            if (st == STET_OK)
                st = merge(r);
            if (st == STET_OK)
                st = push(r);
            fine(st);
        }
        }
    }
    stet_repo_close(r);
    _exit(0);
}

/* name to DAG of the head main, null if there is none */
static stet_value tree_of(stet_repo *r) {
    bool there;
    stet_hash id, tree = {{0}};
    stet_value c, t, dags;
    OK(stet_repo_ref(r, "refs/heads/main", &there, &id, &err));
    if (!there)
        return stet_value_object();
    OK(stet_repo_get(r, id, STET_RECORD_COMMIT, &c, &err));
    assert_true(stet_hash_of_text(stet_value_get(c, "tree"), &tree));
    OK(stet_repo_get(r, tree, STET_RECORD_TREE, &t, &err));
    dags = stet_value_retain(stet_value_get(t, "dags"));
    stet_value_release(c);
    stet_value_release(t);
    return dags;
}

/* What each owner last gave its names. */
static stet_value expected(void) {
    stet_value all = stet_value_object();
    for (int i = 0; i < REPOS; i++) {
        stet_repo *r;
        char path[16], prefix[8];
        path_of(i, path);
        snprintf(prefix, sizeof prefix, "r%d.", i);
        OK(stet_repo_open_path(path, 0, &r, &err));
        kit_sound(r);
        stet_value dags = tree_of(r);
        for (size_t j = 0; j < stet_value_count(dags); j++) {
            size_t len;
            const char *name = stet_value_key_at(dags, j, &len);
            if (strncmp(name, prefix, 3) == 0)
                stet_value_put_n(&all, name, len, stet_value_retain(stet_value_at(dags, j)));
        }
        stet_value_release(dags);
        stet_repo_close(r);
    }
    return all;
}

static void one_world(unsigned seed, int rounds) {
    char uri[4200], *cwd = getcwd(NULL, 0);
    snprintf(uri, sizeof uri, "file://%s/remote.db", cwd);
    free(cwd);
    kit_remove("remote.db");
    int killed = 0;
    for (int i = 0; i < REPOS; i++) {
        char path[16];
        path_of(i, path);
        stet_repo *r = kit_fresh(path);
        OK(stet_remote_add(r, "origin", uri, &err));
        stet_repo_close(r);
    }
    for (int round = 0; round < rounds; round++) {
        pid_t pids[2];
        int first = round % REPOS;
        for (int k = 0; k < 2; k++)
            if ((pids[k] = fork()) == 0)
                work((first + k) % REPOS, seed * 1000 + (unsigned)round * 2 + (unsigned)k);
        for (int k = 0; k < 2; k++) {
            int status;
            assert_int_equal(waitpid(pids[k], &status, 0), pids[k]);
            killed += WIFSIGNALED(status);
            if (!WIFSIGNALED(status) && WEXITSTATUS(status) != 0)
                fail_msg("seed %u, round %d: a process ended with status %d", seed, round, WEXITSTATUS(status));
        }
    }
    stet_value want = expected();
    for (int i = 0; i < 2 * REPOS; i++) { /* twice around: all have all */
        stet_repo *r;
        char path[16];
        path_of(i % REPOS, path);
        OK(stet_repo_open_path(path, 0, &r, &err));
        stet_status st = fetch(r);
        if (st != STET_NOT_FOUND)
            OK(st);
        stet_error_clear(&err);
        OK(merge(r));
        OK(push(r));
        stet_repo_close(r);
    }
    for (int i = 0; i < REPOS; i++) {
        stet_repo *r;
        char path[16];
        path_of(i, path);
        OK(stet_repo_open_path(path, 0, &r, &err));
        kit_sound(r);
        stet_value dags = tree_of(r);
        if (!stet_value_equal(dags, want)) {
            char *a = stet_json_print(want, STET_JSON_PRETTY, NULL), *b = stet_json_print(dags, STET_JSON_PRETTY, NULL);
            fail_msg("seed %u, %s:\n%s\n%s", seed, path, a, b);
        }
        for (size_t j = 0; j < stet_value_count(dags);
             j++) { /* and all that leads to them; a value, where its calls are pinned here */
            stet_hash dag;
            stet_value v;
            assert_true(stet_hash_of_text(stet_value_at(dags, j), &dag));
            stet_status st = stet_repo_dag_value(r, dag, &v, &err);
            if (st == STET_OK)
                stet_value_release(v);
            else if (st != STET_NOT_FOUND)
                OK(st);
            stet_error_clear(&err);
        }
        stet_value_release(dags);
        stet_repo_gc_report report;
        OK(stet_repo_gc(r, &(stet_repo_gc_opts){.grace_s = 0}, &report, &err));
        kit_sound(r);
        stet_repo_close(r);
    }
    stet_repo *remote;
    OK(stet_repo_open_path("remote.db", 0, &remote, &err));
    kit_sound(remote);
    stet_repo_close(remote);
    print_message("# seed %u: %zu names, %d of %d processes killed\n", seed, stet_value_count(want), killed,
                  2 * rounds);
    stet_value_release(want);
}

static void all_become_equal(void **state) {
    (void)state;
    unsigned worlds = getenv("STET_TEST_LONG") ? 100 : getenv("STET_TEST_SHORT") ? 1 : 3;
    for (unsigned seed = 1; seed <= worlds; seed++)
        one_world(seed, getenv("STET_TEST_SHORT") ? 8 : 20);
}

int main(void) {
    faults_fast_directory();
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_become_equal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
