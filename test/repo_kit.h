/* repo_kit.h - what tests of the repository of calls share: data, calls, commits, and the check that all is whole.
 * After expect.h. */
#ifndef STET_TEST_REPO_KIT_H
#define STET_TEST_REPO_KIT_H

#include <unistd.h>

#include "repo/repo.h"
#include "repo/repo_internal.h"

static inline stet_value kit_json(const char *text) {
    stet_value v = stet_value_null();
    OK(stet_json_parse(text, strlen(text), &v, &err));
    return v;
}

static inline void kit_remove(const char *path) {
    static const char *const tails[] = {"", "-wal", "-shm", "-journal", ".writer"};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        char name[4200];
        snprintf(name, sizeof name, "%s%s", path, tails[i]);
        unlink(name);
    }
}

/* An empty repository. */
static inline stet_repo *kit_fresh(const char *path) {
    stet_repo *r = NULL;
    kit_remove(path);
    OK(stet_repo_open_path(path, 0, &r, &err));
    return r;
}

static inline int64_t kit_count(stet_repo *r, const char *sql) {
    return stet_db_int(r->db, sql, -1);
}

static inline stet_hash kit_put(stet_repo *r, const char *text) {
    stet_value v = kit_json(text);
    stet_hash id = {{0}};
    OK(stet_repo_put_value(r, v, &id, &err));
    stet_value_release(v);
    return id;
}

/* A call with one literal input. */
static inline stet_hash kit_call(stet_repo *r, int n) {
    char text[32];
    snprintf(text, sizeof text, "%d", n);
    stet_hash datum = kit_put(r, text), node, call = {{0}};
    OK(stet_node_literal(datum, stet_repo_sink(r), &node, &err));
    OK(stet_node_call("dml+exec://test/f", &node, 1, stet_repo_sink(r), &call, &err));
    return call;
}

/* An exec of it, not stored yet; its result is. */
static inline stet_exec kit_exec(stet_repo *r, stet_hash call, const char *result) {
    stet_exec e = {.node = call, .ok = true, .attempt = 1};
    stet_value v = kit_json(result);
    OK(stet_repo_put_result(r, v, &e.result, &err));
    stet_value_release(v);
    return e;
}

/* A commit with one DAG, named by the message, whose value is the message. */
static inline stet_hash kit_commit(stet_repo *r, const stet_hash *parents, size_t count, const char *message) {
    stet_value tree = kit_json("{\"type\":\"tree\"}"), map = kit_json("{\"execs\":{},\"type\":\"execmap\"}"),
               c = kit_json("{\"time\":1,\"type\":\"commit\"}"), dags = stet_value_object(), list = stet_value_array(),
               text = stet_value_string(message);
    stet_hash tree_id, map_id, dag, id = {{0}};
    OK(stet_repo_put_result(r, text, &dag, &err));
    stet_value_put(&dags, message, stet_hash_text(dag));
    stet_value_put(&tree, "dags", dags);
    OK(stet_repo_put(r, tree, STET_RECORD_TREE, &tree_id, &err));
    OK(stet_repo_put(r, map, STET_RECORD_EXECMAP, &map_id, &err));
    for (size_t i = 0; i < count; i++)
        stet_value_push(&list, stet_hash_text(parents[i]));
    stet_value_put(&c, "tree", stet_hash_text(tree_id));
    stet_value_put(&c, "execs", stet_hash_text(map_id));
    stet_value_put(&c, "message", text);
    stet_value_put(&c, "parents", list);
    OK(stet_repo_put(r, c, STET_RECORD_COMMIT, &id, &err));
    stet_value_release(tree);
    stet_value_release(map);
    stet_value_release(c);
    return id;
}

/* Lines of what is wrong are shown. */
static inline void kit_sound(stet_repo *r) {
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    OK(stet_repo_check(r, false, &problems, &found, &repaired, &err));
    if (found)
        fail_msg("%s", stet_buf_cstr(&problems));
    stet_buf_release(&problems);
}

#endif
