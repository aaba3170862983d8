/* actions.c - actions that run again only when something they read has changed: a report over two spaces.
 *
 *     gcc -o actions actions.c $(pkg-config --cflags --libs stet) && ./actions DIR
 *
 * It compiles as C11 and as C++17. Run it twice: the second time nothing is computed.
 */

#include <stdio.h>
#include <string.h>

#include <stet.h>

static stet_error err = STET_ERROR_INIT;

static int check(stet_status status, const char *what) {
    if (status == STET_OK)
        return 1;
    fprintf(stderr, "%s: %s\n", what, err.message);
    stet_error_clear(&err);
    return 0;
}
#define OK(call) check((call), #call)

static int put(stet_space *s, const char *cell, int64_t n) {
    stet_tx *tx;
    return OK(stet_tx_begin(s, NULL, &tx, &err)) && OK(stet_tx_set(tx, cell, NULL, stet_value_int(n), &err)) &&
           OK(stet_tx_commit(tx, NULL, &err));
}

static int64_t number(stet_tx *tx, stet_space *from, const char *cell) {
    stet_value v = stet_value_null();
    stet_status st = from ? stet_tx_get_from(tx, from, cell, NULL, &v, &err) : stet_tx_get(tx, cell, NULL, &v, &err);
    if (st != STET_OK)
        stet_error_clear(&err); /* not there: 0, and recorded as a read all the same */
    return stet_value_as_int(v);
}

/* One action: out = in * factor, if it does not stand. Says what it did. */
static int scale(stet_space *s, stet_space *prices, const char *name, const char *in, const char *out) {
    stet_cell cells[1];
    stet_action_run run = STET_ACTION_RUN_INIT;
    stet_action_state state;
    cells[0].cell = out;
    cells[0].scope = NULL;
    run.key.piece = "report";
    run.key.action = name;
    run.implementation = "in * factor, version 1";
    run.writes = cells;
    run.write_count = 1;
    if (!OK(stet_action_state_of(s, NULL, &run.key, &state, &err)))
        return 0;
    if (state == STET_STATE_STANDS) {
        printf("%s stands\n", name);
        return 1;
    }
    stet_tx *tx;
    if (!OK(stet_tx_begin(s, NULL, &tx, &err)))
        return 0;
    const int64_t result = number(tx, NULL, in) * number(tx, prices, "factor");
    stet_commit_result done;
    if (!OK(stet_tx_set(tx, out, NULL, stet_value_int(result), &err)) || !OK(stet_tx_observe(tx, &run, &err)) ||
        !OK(stet_tx_commit(tx, &done, &err)))
        return 0;
    printf("%s was %s, ran%s\n", name, stet_action_state_name(state), done.changed ? "" : ", and changed nothing");
    return 1;
}

static int report(stet_space *s, stet_space *prices) {
    return scale(s, prices, "a", "in/a", "out/a") && scale(s, prices, "b", "in/b", "out/b") &&
           OK(stet_space_sync(s, &err));
}

static int say(const char *what, stet_value v, const char *key) {
    char *text = stet_json_print(key ? stet_value_get(v, key) : v, STET_JSON_CANONICAL, NULL);
    printf("%s: %s\n", what, text);
    stet_free(text);
    stet_value_release(v);
    return 1;
}

static int ask(stet_space *s) {
    stet_value v;
    stet_action_key key;
    stet_changes_query changes = STET_CHANGES_QUERY_INIT;
    stet_actions_query page = STET_ACTIONS_QUERY_INIT;
    int64_t next = 0;
    size_t pages = 0;
    key.piece = "report";
    key.scope = NULL;
    key.action = "a";
    changes.cell = "in";
    page.piece = "report";
    page.limit = 1;
    if (!OK(stet_action_get(s, NULL, &key, &v, &err)) || !say("why", v, "cause") ||
        !OK(stet_actions_count(s, NULL, "report", NULL, &v, &err)) || !say("state", v, NULL) ||
        !OK(stet_space_readers(s, NULL, "in/a", NULL, &v, &err)) || !say("readers of in/a", v, "readers") ||
        !OK(stet_space_changes_after(s, NULL, &changes, &v, &err)))
        return 0;
    printf("changes of in: %d\n", (int)stet_value_count(v));
    stet_value_release(v);
    do { /* one action a page */
        page.after = next;
        if (!OK(stet_actions_list(s, NULL, &page, &v, &next, &err)))
            return 0;
        stet_value_release(v);
        pages++;
    } while (next);
    printf("pages: %d\n", (int)pages);
    return 1;
}

int main(int argc, char **argv) {
    const char *dir = argc > 1 ? argv[1] : ".";
    bool created;
    stet_project *p = NULL;
    stet_space *s = NULL, *prices = NULL;
    int64_t seq = 0;
    int good = OK(stet_project_init(dir, &created, &err)) && OK(stet_project_open(dir, &p, &err)) &&
               OK(stet_space_open(p, "main", 0, &s, &err)) && OK(stet_space_open(p, "prices", 0, &prices, &err)) &&
               OK(stet_space_seq(s, &seq, &err));
    if (good && seq == 0)
        good = put(s, "in/a", 2) && put(s, "in/b", 3) && put(prices, "factor", 10);
    good = good && report(s, prices); /* all run, or all stand if they did before */
    if (good && seq == 0) {
        good = put(s, "in/a", 5) && ask(s) && report(s, prices);       /* one is dirty */
        good = good && put(prices, "factor", 10) && report(s, prices); /* the same value is no change */
        good = good && put(prices, "factor", 20) && report(s, prices); /* a change in the other space: both */
    }
    stet_space_close(prices);
    stet_space_close(s);
    stet_project_close(p);
    return good ? 0 : 1;
}
