/* memory.c - a project, documents, a transaction, a branch and a follower, with the public interface alone.
 *
 *     cc -o memory memory.c -lstet && ./memory /tmp/notes
 *
 * It compiles as C and as C++.
 */

#include <stdio.h>
#include <string.h>

#include <stet.h>

static stet_error err = STET_ERROR_INIT;

/* Says what went wrong, with the hint if there is one. */
static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, err.message);
    if (err.hint[0])
        fprintf(stderr, "  %s\n", err.hint);
    stet_error_clear(&err);
    return 1;
}

static void show(const char *label, stet_value v) {
    char *text = stet_json_print(v, STET_JSON_CANONICAL, NULL);
    printf("%s: %s\n", label, text);
    stet_free(text);
}

/* One more visit. Called again if somebody else changed the counter meanwhile. */
static stet_status count_visit(stet_tx *tx, void *ctx, stet_error *e) {
    stet_value visits = stet_value_null();
    const char *who = (const char *)ctx;
    stet_status st = stet_tx_get(tx, "stats/visits", NULL, &visits, e);
    if (st == STET_NOT_FOUND) /* the first one: the read of nothing counts as a read, too */
        stet_error_clear(e);
    else if (st != STET_OK)
        return st;
    st = stet_tx_set(tx, "stats/visits", NULL, stet_value_int(stet_value_as_int(visits) + 1), e);
    return st != STET_OK ? st : stet_tx_set(tx, "stats/last", NULL, stet_value_string(who), e);
}

/* All patch operations of the list, or none. */
static stet_status add_tag(stet_space *s, const char *tag) {
    stet_tx *tx;
    stet_value operations = stet_value_array(), op = stet_value_object();
    stet_value_put(&op, "op", stet_value_string("add-unique"));
    stet_value_put(&op, "path", stet_value_string("/tags"));
    stet_value_put(&op, "value", stet_value_string(tag));
    stet_value_push(&operations, op);
    stet_status st = stet_tx_begin(s, NULL, &tx, &err);
    if (st == STET_OK) {
        st = stet_tx_patch_value(tx, "stats", NULL, operations, &err);
        if (st == STET_OK)
            st = stet_tx_commit(tx, NULL, &err);
        else
            stet_tx_abort(tx);
    }
    stet_value_release(operations);
    return st;
}

static int work(stet_space *s) {
    stet_value v;
    stet_follower *f;
    if (stet_space_follow(s, NULL, "stats/visits", NULL, -1, &f, &err) != STET_OK)
        return failed("follow");

    stet_commit_result r;
    for (int i = 0; i < 3; i++)
        if (stet_space_transact(s, NULL, count_visit, (void *)"ada", &r, &err) != STET_OK)
            return failed("transact");
    if (add_tag(s, "new") != STET_OK || add_tag(s, "new") != STET_OK)
        return failed("patch");
    if (stet_space_get(s, NULL, "stats", NULL, -1, &v, &err) != STET_OK)
        return failed("get");
    show("now", v);
    stet_value_release(v);

    /* as it was at the first commit */
    if (stet_space_get(s, NULL, "stats", NULL, r.seq - 2, &v, &err) != STET_OK)
        return failed("get");
    show("then", v);
    stet_value_release(v);

    /* a branch keeps its own changes */
    stet_tx *tx;
    if (stet_branch_create(s, "draft", NULL, -1, &err) != STET_OK || stet_tx_begin(s, "draft", &tx, &err) != STET_OK)
        return failed("branch");
    if (stet_tx_set(tx, "stats/visits", NULL, stet_value_int(100), &err) != STET_OK)
        return failed("set");
    if (stet_tx_commit(tx, &r, &err) != STET_OK)
        return failed("commit");
    if (stet_space_get(s, "draft", "stats/visits", NULL, -1, &v, &err) != STET_OK)
        return failed("get");
    show("on the branch", v);
    if (stet_space_get(s, NULL, "stats/visits", NULL, -1, &v, &err) != STET_OK)
        return failed("get");
    show("beside it", v);

    /* a transaction whose read was overtaken is refused, and says by what */
    stet_tx *late;
    if (stet_tx_begin(s, NULL, &late, &err) != STET_OK || stet_tx_get(late, "stats/visits", NULL, &v, &err) != STET_OK)
        return failed("begin");
    if (stet_space_transact(s, NULL, count_visit, (void *)"bob", NULL, &err) != STET_OK)
        return failed("transact");
    if (stet_tx_set(late, "copy", NULL, stet_value_retain(v), &err) != STET_OK)
        return failed("set");
    if (stet_tx_commit(late, NULL, &err) != STET_CONFLICT)
        return 1;
    show("conflict with", stet_value_get(err.details, "change"));
    stet_error_clear(&err);

    /* what the follower saw: each commit that touched the cell, once, in order */
    int events = 0;
    stet_value event;
    while (stet_follower_next(f, 0, &event, &err) == STET_OK) {
        events++;
        stet_value_release(event);
    }
    stet_error_clear(&err); /* STET_BUSY: nothing more now */
    printf("events: %d\n", events);
    stet_follower_close(f);
    return 0;
}

int main(int argc, char **argv) {
    bool created;
    stet_project *p;
    stet_space *s;
    const char *dir = argc > 1 ? argv[1] : ".";
    if (stet_project_init(dir, &created, &err) != STET_OK || stet_project_open(dir, &p, &err) != STET_OK)
        return failed(dir);
    if (stet_space_open(p, "main", 0, &s, &err) != STET_OK)
        return failed("main");
    int status = work(s);
    stet_space_close(s);
    stet_project_close(p);
    return status;
}
