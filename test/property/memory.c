/* memory.c - random histories of documents.
 *
 * Documents in scopes and on branches are set, patched and deleted, in single commits and in groups, by two handles and
 * by processes that are killed on the way. Every past sequence reads as it was recorded then. The changed leaves of
 * every commit agree with a naive comparison, for recursive and shallow readers.
 */

#include "../expect.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../faults.h"
#include "memory/internal.h"

enum { IDS = 3, SCOPES = 2, DOCS = IDS * SCOPES, BRANCHES = 7, COMMITS_MAX = 20000 };

static const char *const ids[IDS] = {"a", "b/with slash", "\xc3\xbc"};
static const char *const scopes[SCOPES] = {"", "user:x"};
static const char *const keys[] = {"k", "l", "list", "deep", "0", "~"};

typedef struct cell_state {
    bool exists;
    stet_value value;
} cell_state;

typedef struct line {
    char name[16];
    int parent;
    int64_t fork;
    cell_state now[DOCS];
} line;

static line lines[BRANCHES];
static int line_count;
static cell_state (*history)[BRANCHES][DOCS]; /* by sequence */
static int64_t seq;
static uint64_t seed;

static unsigned roll(unsigned n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

static stet_docname name_of(int doc) {
    return (stet_docname){ids[doc % IDS], scopes[doc / IDS]};
}

static stet_value random_value(int depth) {
    switch (roll(depth > 0 ? 7 : 4)) {
    case 0:
        return stet_value_int(roll(4));
    case 1:
        return stet_value_string(roll(2) ? "text"
                                         : "a text that is long enough to be kept outside of the value itself");
    case 2:
        return stet_value_bool(roll(2));
    case 3:
        return stet_value_null();
    case 4: {
        stet_value v = stet_value_array();
        for (unsigned i = roll(4); i > 0; i--)
            stet_value_push(&v, random_value(depth - 1));
        return v;
    }
    default: {
        stet_value v = stet_value_object();
        for (unsigned i = roll(4); i > 0; i--)
            stet_value_put(&v, keys[roll(6)], random_value(depth - 1));
        return v;
    }
    }
}

static void random_path(stet_path *p) {
    stet_path_set(p, STET_PATH_ROOT);
    stet_path_push(p, roll(8) ? "value" : "meta");
    for (unsigned i = roll(4); i > 0; i--)
        if (roll(4) == 0)
            stet_path_push_index(p, roll(3));
        else
            stet_path_push(p, keys[roll(6)]);
}

typedef struct random_ops {
    stet_patch at[4];
    size_t len;
    stet_path paths[8];
} random_ops;

static void make_ops(random_ops *r) {
    memset(r, 0, sizeof *r);
    r->len = 1 + roll(3);
    for (size_t i = 0; i < r->len; i++) {
        stet_path *path = &r->paths[2 * i], *from = &r->paths[2 * i + 1];
        *path = *from = (stet_path)STET_PATH_INIT;
        random_path(path);
        random_path(from);
        stet_patch *op = &r->at[i];
        op->kind = (stet_patch_kind)(1 + roll(9));
        op->path = stet_path_ref(path);
        op->from = stet_path_ref(from);
        op->index = roll(3);
        op->count = roll(3);
        bool array = op->kind == STET_PATCH_SPLICE || op->kind == STET_PATCH_APPEND;
        if (array) {
            op->value = stet_value_array();
            for (unsigned j = roll(3); j > 0; j--)
                stet_value_push(&op->value, random_value(1));
        } else {
            op->value = op->kind == STET_PATCH_INCREMENT ? stet_value_int(roll(5)) : random_value(2);
        }
    }
}

static void free_ops(random_ops *r) {
    for (size_t i = 0; i < r->len; i++) {
        stet_value_release(r->at[i].value);
        stet_path_release(&r->paths[2 * i]);
        stet_path_release(&r->paths[2 * i + 1]);
    }
}

static void assign(cell_state *to, cell_state from) {
    stet_value old = to->value;
    to->exists = from.exists;
    to->value = stet_value_retain(from.value);
    stet_value_release(old);
}

static void record_commit(void) {
    seq++;
    assert_true(seq < COMMITS_MAX);
    for (int b = 0; b < line_count; b++)
        for (int d = 0; d < DOCS; d++)
            history[seq][b][d] = (cell_state){lines[b].now[d].exists, stet_value_retain(lines[b].now[d].value)};
}

static cell_state was(int branch, int doc, int64_t at) {
    while (branch > 0 && at <= lines[branch].fork)
        branch = lines[branch].parent;
    /* a branch made after `at`, above its fork: as at the fork */
    return at == 0 ? (cell_state){false, stet_value_null()} : history[at][branch][doc];
}

static bool same(cell_state a, bool exists, stet_value v) {
    return a.exists == exists && (!exists || stet_value_equal(a.value, v));
}

typedef enum what { SET, PATCH, DELETE } what;

typedef struct step {
    int doc;
    what kind;
    stet_value envelope;
    random_ops ops;
    cell_state after;
    bool applies;
} step;

static void make_step(step *s, const cell_state *now) {
    memset(s, 0, sizeof *s);
    s->doc = (int)roll(DOCS);
    s->kind = roll(8) == 0 ? DELETE : roll(4) == 0 ? SET : PATCH;
    const cell_state *before = &now[s->doc];
    s->applies = true;
    if (s->kind == SET) {
        s->envelope = stet_value_object();
        stet_value_put(&s->envelope, "value", random_value(3));
        if (roll(6) == 0) { /* large, so that it is not kept in its head */
            stet_value big = stet_value_array();
            for (int i = 0; i < 200; i++)
                stet_value_push(&big, stet_value_stringf("element %d of a large document", i));
            stet_value_put(&s->envelope, "value", big);
        }
        s->after = (cell_state){true, stet_value_retain(s->envelope)};
    } else if (s->kind == PATCH) {
        make_ops(&s->ops);
        stet_value work = before->exists ? stet_value_retain(before->value) : stet_value_object();
        s->applies = stet_patches_apply(s->ops.at, s->ops.len, &work, NULL) == STET_OK;
        s->after = (cell_state){true, work};
    }
}

static void free_step(step *s) {
    stet_value_release(s->envelope);
    stet_value_release(s->after.value);
    free_ops(&s->ops);
}

static stet_status do_step(stet_tx *tx, const step *s) {
    stet_docname name = name_of(s->doc);
    switch (s->kind) {
    case SET:
        return stet_tx_put(tx, &name, stet_value_retain(s->envelope), &err);
    case PATCH:
        return stet_tx_patch(tx, &name, s->ops.at, s->ops.len, &err);
    default:
        return stet_tx_drop(tx, &name, &err);
    }
}

static bool changes(const step *s, const cell_state *now) {
    return s->applies && !same(now[s->doc], s->after.exists, s->after.value);
}

static void check_read(stet_space *s, int branch, int doc, int64_t at) {
    int64_t number;
    stet_docname name = name_of(doc);
    stet_doc_state d;
    OK(stet_space_branch(s, lines[branch].name, &number, &err));
    OK(stet_space_load(s, number, &name, at, &d, &err));
    cell_state want = was(branch, doc, at < 0 ? seq : at);
    if (!same(want, d.exists, d.value)) {
        char *one = stet_json_print(want.value, STET_JSON_CANONICAL, NULL);
        char *two = stet_json_print(d.value, STET_JSON_CANONICAL, NULL);
        fail_msg("branch %d, document %d at %d of %d: expected %d %s, got %d %s", branch, doc, (int)at, (int)seq,
                 want.exists, one, d.exists, two);
    }
    stet_value_release(d.value);
}

static bool shape_differs(const stet_value *a, const stet_value *b) {
    if (!a || !b)
        return a != b;
    if (stet_value_type(*a) != stet_value_type(*b) || stet_value_count(*a) != stet_value_count(*b))
        return true;
    if (stet_value_type(*a) == STET_TYPE_OBJECT) {
        for (size_t i = 0; i < stet_value_count(*a); i++)
            if (strcmp(stet_value_key_at(*a, i, NULL), stet_value_key_at(*b, i, NULL)) != 0)
                return true;
        return false;
    }
    return stet_value_type(*a) != STET_TYPE_ARRAY && !stet_value_equal(*a, *b);
}

/* The leaves stored for the newest commit, against a look at both states with the eyes of random readers. */
static void check_leaves(stet_space *s, int branch, cell_state before[DOCS]) {
    stet_arena arena = STET_ARENA_INIT;
    stet_commit_record *r;
    size_t count;
    stet_path p = STET_PATH_INIT;
    OK(stet_space_commits(s, seq - 1, seq, 10, &arena, &r, &count, &err));
    assert_int_equal(count, 1);
    for (int i = 0; i < 60; i++) {
        int doc = (int)roll(DOCS);
        stet_docname name = name_of(doc);
        random_path(&p);
        if (roll(6) == 0)
            stet_path_set(&p, STET_PATH_ROOT);
        stet_pathref path = stet_path_ref(&p);
        cell_state *now = &lines[branch].now[doc];
        stet_value one, two;
        bool in_one = before[doc].exists && stet_path_lookup(before[doc].value, path, &one);
        bool in_two = now->exists && stet_path_lookup(now->value, path, &two);
        for (int kind = 0; kind < 2; kind++) {
            bool differs = kind == STET_RECURSIVE ? in_one != in_two || (in_one && !stet_value_equal(one, two))
                                                  : shape_differs(in_one ? &one : NULL, in_two ? &two : NULL);
            bool touched = false;
            for (size_t d = 0; d < r[0].len; d++)
                for (size_t j = 0; j < r[0].at[d].len && strcmp(r[0].at[d].name.id, name.id) == 0 &&
                                   strcmp(r[0].at[d].name.scope, name.scope) == 0;
                     j++)
                    touched = touched ||
                              stet_touches(r[0].at[d].at[j].path, r[0].at[d].at[j].kind, path, (stet_read_kind)kind);
            /* Exact, but for paths that are on neither side, where wider is allowed. */
            if (differs != touched && (differs || in_one || in_two)) {
                stet_buf b = STET_BUF(0);
                stet_path_print(path, &b);
                fail_msg("commit %d, document %d, %s, kind %d: differs %d, touched %d", (int)seq, doc, b.data, kind,
                         differs, touched);
            }
        }
    }
    stet_path_release(&p);
    stet_arena_release(&arena);
}

static void keep_before(cell_state to[DOCS], int branch) {
    for (int d = 0; d < DOCS; d++)
        to[d] = (cell_state){lines[branch].now[d].exists, stet_value_retain(lines[branch].now[d].value)};
}

static void drop_before(cell_state at[DOCS]) {
    for (int d = 0; d < DOCS; d++)
        stet_value_release(at[d].value);
}

static void commit_one(stet_space *s, int branch) {
    stet_tx *tx;
    cell_state before[DOCS];
    int64_t start = seq;
    keep_before(before, branch);
    OK(stet_tx_begin(s, lines[branch].name, &tx, &err));
    bool changed = false;
    for (unsigned i = 1 + roll(3); i > 0; i--) {
        step st;
        make_step(&st, lines[branch].now);
        stet_status status = do_step(tx, &st);
        if ((status == STET_OK) != st.applies)
            fail_msg("a step that should%s apply: %s", st.applies ? "" : " not", err.message);
        stet_error_clear(&err);
        if (st.applies)
            assign(&lines[branch].now[st.doc], st.after);
        free_step(&st);
    }
    for (int d = 0; d < DOCS; d++)
        changed = changed || !same(before[d], lines[branch].now[d].exists, lines[branch].now[d].value);
    stet_commit_result r;
    OK(stet_tx_commit(tx, &r, &err));
    assert_int_equal(r.changed, changed);
    if (changed) {
        record_commit();
        check_leaves(s, branch, before);
    }
    assert_int_equal(r.seq, start + changed);
    drop_before(before);
}

static void commit_group(stet_space *s, int branch) {
    stet_group *g;
    OK(stet_group_begin(s, lines[branch].name, &g, &err));
    for (unsigned i = 1 + roll(40); i > 0; i--) {
        stet_tx *tx;
        step st;
        make_step(&st, lines[branch].now);
        OK(stet_tx_begin_in(g, &tx, &err));
        if (do_step(tx, &st) != STET_OK) {
            assert_false(st.applies);
            stet_error_clear(&err);
            stet_tx_abort(tx);
        } else {
            bool changed = changes(&st, lines[branch].now);
            const stet_doc_change *at;
            size_t count;
            OK(stet_group_add(g, tx, &at, &count, &err));
            assert_int_equal(count, changed);
            if (changed) {
                assign(&lines[branch].now[st.doc], st.after);
                record_commit();
            }
        }
        free_step(&st);
    }
    OK(stet_group_flush(g, &err));
    for (size_t i = 0; i < stet_group_len(g); i++) {
        stet_member m;
        stet_group_at(g, i, &m);
        assert_int_equal(m.outcome, STET_MEMBER_APPLIED);
    }
    assert_int_equal(stet_space_known(s), seq);
    stet_group_end(g);
}

/* A child commits and is killed at some call that changes the disk, or not. */
static void commit_and_die(stet_space *s, int branch) {
    step st;
    make_step(&st, lines[branch].now);
    unsigned n = 1 + roll(8);
    pid_t child = fork();
    if (child == 0) {
        stet_space *mine;
        stet_tx *tx;
        faults_arm_durable(0, STET_SYS_KILL, EIO);
        if (stet_space_open_path("random.db", "x", 0, &mine, NULL) != STET_OK ||
            stet_tx_begin(mine, lines[branch].name, &tx, NULL) != STET_OK || do_step(tx, &st) != STET_OK)
            _exit(1);
        faults_arm_durable(n, n % 2 ? STET_SYS_KILL : STET_SYS_KILL_AFTER, EIO);
        _exit(stet_tx_commit(tx, NULL, NULL) == STET_OK ? 0 : 2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    int64_t now;
    OK(stet_space_seq(s, &now, &err));
    bool changed = changes(&st, lines[branch].now);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        assert_int_equal(now, seq + changed);
    assert_true(now == seq || (changed && now == seq + 1));
    if (now == seq + 1) {
        assign(&lines[branch].now[st.doc], st.after);
        record_commit();
    }
    free_step(&st);
}

static void fork_line(stet_space *s) {
    if (line_count == BRANCHES)
        return;
    line *l = &lines[line_count];
    int parent = (int)roll((unsigned)line_count);
    int64_t at = roll(3) ? seq : (int64_t)roll((unsigned)seq + 1);
    snprintf(l->name, sizeof l->name, "line %d", line_count);
    OK(stet_branch_create(s, l->name, lines[parent].name, at == seq && roll(2) ? -1 : at, &err));
    l->parent = parent;
    l->fork = at;
    line_count++;
    for (int d = 0; d < DOCS; d++) {
        assign(&l->now[d], was(parent, d, at));
        for (int64_t i = at + 1; i <= seq; i++) /* what a reader between the fork and now sees */
            history[i][line_count - 1][d] = (cell_state){l->now[d].exists, stet_value_retain(l->now[d].value)};
    }
}

static void random_history(uint64_t with, int moves) {
    static const char *const files[] = {"random.db", "random.db-wal", "random.db-shm", "random.db.writer"};
    for (size_t i = 0; i < 4; i++)
        unlink(files[i]);
    seed = with;
    seq = 0;
    line_count = 1;
    memset(lines, 0, sizeof lines);
    history = stet_alloc_zero(COMMITS_MAX * sizeof *history);
    stet_space *s[2];
    for (int i = 0; i < 2; i++)
        OK(stet_space_open_path("random.db", "x", 0, &s[i], &err));
    for (int i = 0; i < moves; i++) {
        stet_space **mine = &s[roll(2)];
        int branch = (int)roll((unsigned)line_count);
        unsigned move = roll(40);
        if (move == 0) {
            stet_space_close(*mine);
            OK(stet_space_open_path("random.db", "x", 0, mine, &err));
        } else if (move == 1 && seq > 0) {
            fork_line(*mine);
        } else if (move == 2) {
            stet_space_set_cache(*mine, roll(2) ? 0 : 1 << 20);
        } else if (move <= 4) {
            commit_and_die(*mine, branch);
        } else if (move <= 6) {
            commit_group(*mine, branch);
        } else {
            commit_one(*mine, branch);
        }
        for (int j = 0; j < 4; j++)
            check_read(s[roll(2)], (int)roll((unsigned)line_count), (int)roll(DOCS),
                       roll(2) ? -1 : (int64_t)roll((unsigned)seq + 1));
    }
    for (int64_t at = 0; at <= seq; at++)
        for (int b = 0; b < line_count; b++)
            check_read(s[0], b, (int)((at + b) % DOCS), at);
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    OK(stet_space_check(s[1], false, &problems, &found, &repaired, &err));
    if (found)
        fail_msg("%s", stet_buf_cstr(&problems));
    stet_buf_release(&problems);
    print_message("# seed %llu: %d commits, %d branches\n", (unsigned long long)with, (int)seq, line_count);
    for (int i = 0; i < 2; i++)
        stet_space_close(s[i]);
    for (int64_t at = 0; at <= seq; at++)
        for (int b = 0; b < BRANCHES; b++)
            drop_before(history[at][b]);
    for (int b = 0; b < BRANCHES; b++)
        drop_before(lines[b].now);
    free(history);
}

static void histories(void **state) {
    (void)state;
    int rounds = getenv("STET_TEST_LONG") ? 60 : getenv("STET_TEST_SHORT") ? 1 : 3;
    for (int i = 0; i < rounds; i++)
        random_history(20261115u + (uint64_t)i, getenv("STET_TEST_SHORT") ? 250 : 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(histories)};
    return cmocka_run_group_tests_name("memory histories", tests, NULL, NULL);
}
