/* observe.c - random workloads on observations, compared with a naive model.
 *
 * The workloads have two spaces, branches, scopes, actions with recursive and shallow reads, runs that change something
 * and runs that do not, alone and in groups, stale and replayed ones, edits by other handles, and commits made with the
 * switch off. After each step the stored marks equal marks derived from scratch by the model, which knows only reads,
 * sequences and changed leaves, and says exactly which observations are kept. At the end, and now and then,
 * stet_observe_check agrees. This test is one process with several handles; observe_processes.c has several processes,
 * and kills them.
 */

#include "../observe_random.h"

#include <unistd.h>

#include "../faults.h"
#include "db/db.h"
#include "memory/observe_internal.h"
#include "os/file.h"

enum { SPACES = 2, BRANCHES = 2, DOCS = RANDOM_DOCS, ACTIONS = 14, MAX_READS = 5 };

typedef struct model_read {
    int space, branch, doc;
    stet_path path;
    stet_read_kind kind;
    int64_t seq;
} model_read;

typedef struct model_change {
    int branch, doc, writer; /* writer: action, or -1 */
    int64_t seq;
    stet_path path;
    stet_change_kind kind;
} model_change;

typedef struct model_action {
    bool observed, unknown, made; /* made: its last run succeeded */
    int64_t observed_at;
    model_read reads[MAX_READS];
    int read_count;
} model_action;

static stet_space *spaces[SPACES], *others[SPACES];
static STET_VEC(model_change) history[SPACES];
static model_action model[BRANCHES][ACTIONS];
static int64_t looked[SPACES];
static int writer_of_next = -1;

static const char *const branch_names[BRANCHES] = {"", "side"};

#define ok OK

/* Takes new commits into the naive history. */
static void look(int s) {
    stet_arena arena = STET_ARENA_INIT;
    stet_commit_record *list;
    size_t count;
    ok(stet_space_commits(spaces[s], looked[s], 0, 10000, &arena, &list, &count, &err));
    for (size_t i = 0; i < count; i++) {
        looked[s] = list[i].seq;
        for (size_t k = 0; k < list[i].len; k++)
            for (size_t n = 0; n < list[i].at[k].len; n++) {
                model_change *c = stet_vec_add(&history[s]);
                *c = (model_change){(int)(list[i].branch != 0),
                                    doc_number(&list[i].at[k].name),
                                    writer_of_next,
                                    list[i].seq,
                                    STET_PATH_INIT,
                                    list[i].at[k].at[n].kind};
                stet_path_set(&c->path, list[i].at[k].at[n].path);
            }
    }
    stet_arena_release(&arena);
}

static void edit_by(stet_space *s, int space, int branch) {
    stet_path p = STET_PATH_INIT;
    random_path(&p);
    int d = (int)rnd(DOCS);
    stet_docname name = {doc_ids[d], doc_scopes[d]};
    if (rnd(20) == 0) { /* somebody overwrites an output */
        name.id = rnd(2) ? "out0" : "out1";
        name.scope = "";
    }
    stet_tx *tx;
    ok(stet_tx_begin(s, branch_names[branch], &tx, &err));
    stet_status st;
    if (rnd(12) == 0)
        st = stet_tx_drop(tx, &name, &err);
    else
        st = stet_tx_write(tx, &name, stet_path_ref(&p), random_value(0), &err);
    if (st == STET_OK)
        st = stet_tx_commit(tx, NULL, &err);
    else
        stet_tx_abort(tx);
    if (st != STET_OK)
        stet_error_clear(&err); /* a path through a scalar: refused, and nothing happened */
    stet_path_release(&p);
    writer_of_next = -1;
    look(space);
}

static void forget_reads(model_action *m) {
    for (int i = 0; i < m->read_count; i++)
        stet_path_release(&m->reads[i].path);
    m->read_count = 0;
}

static bool naive_dirty(int branch, int action) {
    const model_action *m = &model[branch][action];
    for (int i = 0; i < m->read_count; i++) {
        const model_read *r = &m->reads[i];
        for (size_t c = history[r->space].len; c-- > 0;) {
            const model_change *h = &history[r->space].at[c];
            if (h->seq <= r->seq)
                break;
            if (h->branch == (r->space ? 0 : branch) && h->doc == r->doc &&
                stet_touches(stet_path_ref(&h->path), h->kind, stet_path_ref(&r->path), r->kind))
                return true;
        }
    }
    for (size_t c = history[0].len; c-- > 0;) {
        const model_change *h = &history[0].at[c];
        if (h->seq <= m->observed_at)
            break;
        if (h->branch == branch && h->doc == DOCS + action) /* its output, whole, is its own */
            return true;
    }
    return false;
}

/* What a run reads, at random. Returns how many. */
static int read_some(stet_tx *tx, int branch, int action, model_read reads[MAX_READS]) {
    int n = (int)rnd(MAX_READS);
    for (int i = 0; i < n; i++) {
        model_read *r = &reads[i];
        *r = (model_read){branch == 0 && rnd(4) == 0,
                          branch,
                          (int)rnd(DOCS + 2),
                          STET_PATH_INIT,
                          rnd(2) ? STET_SHALLOW : STET_RECURSIVE,
                          0};
        if (r->doc >= DOCS && r->doc - DOCS == action)
            r->doc = 0;
        if (r->space == 1 && r->doc >= DOCS)
            r->doc = 1;
        random_path(&r->path);
        char id[16];
        snprintf(id, sizeof id, "out%d", r->doc - DOCS);
        stet_docname name =
            r->doc < DOCS ? (stet_docname){doc_ids[r->doc], doc_scopes[r->doc]} : (stet_docname){id, ""};
        stet_value v;
        stet_status st =
            stet_tx_read(tx, r->space ? spaces[1] : NULL, &name, stet_path_ref(&r->path), r->kind, &v, &err);
        assert_true(st == STET_OK || st == STET_NOT_FOUND);
        stet_error_clear(&err);
        ok(stet_tx_snapshot(tx, r->space ? spaces[1] : spaces[0], &r->seq, &err));
    }
    return n;
}

/* The model takes the reads of a run that was kept from what it did, and the sequence up to which each holds from the
 * record, which the comparison proves against all later changes. Empties `reads`. */
static stet_action_record take_record(int branch, int action, model_read *reads, int *n, stet_arena *arena) {
    model_action *m = &model[branch][action];
    stet_action_record rec;
    char key[16];
    snprintf(key, sizeof key, "a%d", action);
    stet_action_key k = {"piece", "", key};
    int64_t number;
    ok(stet_space_branch(spaces[0], branch_names[branch], &number, &err));
    ok(stet_observe_find(spaces[0], number, &k, arena, &rec, &err));
    forget_reads(m);
    m->observed = true;
    m->observed_at = rec.observed_at;
    for (int i = 0; i < *n; i++) {
        m->reads[i] = reads[i];
        m->reads[i].seq = -1;
        for (size_t r = 0; r < rec.read_count; r++) {
            const stet_observed *x = &rec.reads[r];
            if ((x->space != NULL) == (reads[i].space == 1) && doc_number(&x->name) == reads[i].doc &&
                stet_path_compare(x->path, stet_path_ref(&reads[i].path)) == 0)
                m->reads[i].seq = x->seq;
        }
        if (m->reads[i].seq < 0)
            fail_msg("a read was not recorded");
    }
    m->read_count = *n;
    *n = 0;
    return rec;
}

/* One run of an action. Its observation is kept exactly if its reads hold. */
static void run_action(int branch, int action) {
    stet_tx *tx;
    ok(stet_tx_begin(spaces[0], branch_names[branch], &tx, &err));
    model_read reads[MAX_READS];
    int n = read_some(tx, branch, action, reads);
    char id[16], key[16];
    snprintf(id, sizeof id, "out%d", action);
    snprintf(key, sizeof key, "a%d", action);
    stet_docname out = {id, ""};
    stet_path value = STET_PATH_INIT;
    stet_path_push(&value, "value");
    unsigned what = rnd(10);
    bool dependencies = what == 0;
    if (what > 3)
        ok(stet_tx_write(tx, &out, stet_path_ref(&value), stet_value_int(rnd(3)), &err));
    stet_address declared = {NULL, out, stet_path_ref(&value)};
    stet_observation o = {.key = {"piece", "", key},
                          .kind = STET_ACTION_COMPUTATION,
                          .generation = 1,
                          .run = dependencies ? STET_RUN_DEPENDENCIES : STET_RUN_ACTION,
                          .declared_writes = &declared,
                          .declared_count = 1,
                          .failed = what == 1};
    ok(stet_observe_attach(tx, &o, &err));
    bool disturbed = rnd(5) == 0;
    if (disturbed) { /* somebody else commits before it does */
        int where = (int)rnd(SPACES);
        edit_by(others[where], where, where ? 0 : branch);
    }
    /* Naively: did a change after the snapshot touch a read? */
    bool holds = true;
    for (int i = 0; i < n; i++)
        for (size_t c = history[reads[i].space].len; c-- > 0;) {
            const model_change *h = &history[reads[i].space].at[c];
            if (h->seq <= reads[i].seq)
                break;
            if (h->branch == (reads[i].space ? 0 : branch) && h->doc == reads[i].doc &&
                stet_touches(stet_path_ref(&h->path), h->kind, stet_path_ref(&reads[i].path), reads[i].kind))
                holds = false;
        }
    stet_commit_result result = {0};
    int64_t dropped =
        stet_observe_counted(spaces[0]).dropped_noops; /* stet_observe_stat would count all tables, each step */
    bool unlooked = dependencies && stet_observe_meta(spaces[0], "marked_through", 0) < looked[0];
    stet_status st = stet_tx_commit(tx, &result, &err);
    if (st == STET_OK)
        ok(stet_space_sync(spaces[0], &err)); /* a run that changed nothing was batched, and is validated now */
    else
        assert_int_equal(st, STET_CONFLICT);
    stet_error_clear(&err);
    writer_of_next = action;
    look(0);
    bool kept = st == STET_OK && stet_observe_counted(spaces[0]).dropped_noops == dropped;
    if (kept != holds)
        fail_msg("action %d: its reads %s, and its observation was %s", action, holds ? "hold" : "do not hold",
                 kept ? "kept" : "not kept");
    model_action *m = &model[branch][action];
    if (kept) {
        bool was_dirty = m->observed && naive_dirty(branch, action);
        bool unsure = unlooked; /* a mark may be on its way: from a commit not looked at, or from the other space */
        for (int i = 0; i < m->read_count; i++)
            unsure = unsure || m->reads[i].space;
        for (int i = 0; i < n; i++)
            unsure = unsure || reads[i].space;
        stet_arena arena = STET_ARENA_INIT;
        stet_action_record rec = take_record(branch, action, reads, &n, &arena);
        if (result.changed)
            assert_int_equal(rec.observed_at, result.seq);
        if (!dependencies) {
            m->made = what != 1;
            m->unknown = false;
        } else if (!m->made || m->unknown || was_dirty || unsure) {
            m->unknown = true; /* its reads are known, its output is not theirs */
        }
        stet_arena_release(&arena);
    }
    for (int i = 0; i < n; i++)
        stet_path_release(&reads[i].path);
    stet_path_release(&value);
}

/* Several runs and edits in one group, some actions more than once, some reading what others of it have just written;
 * now and then somebody else commits before it is stored, and members whose reads no longer hold are dropped. */
static void run_group(int branch) {
    enum { MEMBERS = 8 };
    struct {
        int action, n; /* action -1: an edit */
        model_read reads[MAX_READS];
    } runs[MEMBERS];
    int count = 2 + (int)rnd(MEMBERS - 1);
    stet_group *g;
    stet_path value = STET_PATH_INIT;
    stet_path_push(&value, "value");
    ok(stet_group_begin(spaces[0], branch_names[branch], &g, &err));
    for (int i = 0; i < count; i++) {
        int action = (int)rnd(4) ? (int)rnd(ACTIONS / 2) : -1;
        stet_tx *tx;
        char id[16], key[16];
        ok(stet_tx_begin_in(g, &tx, &err));
        runs[i].action = action;
        runs[i].n = action < 0 ? 0 : read_some(tx, branch, action, runs[i].reads);
        snprintf(id, sizeof id, action < 0 ? "d%d" : "out%d", action < 0 ? (int)rnd(5) : action);
        snprintf(key, sizeof key, "a%d", action);
        stet_docname out = {id, ""};
        stet_address declared = {NULL, out, stet_path_ref(&value)};
        stet_observation o = {.key = {"piece", "", key},
                              .kind = STET_ACTION_COMPUTATION,
                              .generation = 1,
                              .run = STET_RUN_ACTION,
                              .declared_writes = &declared,
                              .declared_count = 1};
        if (action < 0)
            ok(stet_tx_write(tx, &out, stet_path_ref(&value), random_value(0), &err));
        else if (rnd(3))
            ok(stet_tx_write(tx, &out, stet_path_ref(&value), stet_value_int(rnd(3)), &err));
        if (action >= 0)
            ok(stet_observe_attach(tx, &o, &err));
        ok(stet_group_add(g, tx, NULL, NULL, &err));
    }
    bool disturbed = rnd(4) == 0;
    if (disturbed) {
        int where = (int)rnd(SPACES);
        edit_by(others[where], where, where ? 0 : branch);
    }
    ok(stet_group_flush(g, &err));
    look(0);
    bool kept[MEMBERS];
    for (int i = 0; i < count; i++) {
        stet_member m;
        stet_group_at(g, (size_t)i, &m);
        kept[i] = m.outcome == STET_MEMBER_APPLIED;
        if (!kept[i] && !disturbed)
            fail_msg("member %d: dropped, and nobody came between: %s", i, m.error->message);
        if (!kept[i])
            assert_int_equal(m.error->status, STET_CONFLICT);
    }
    stet_group_end(g);
    for (int i = 0; i < count; i++) {
        int action = runs[i].action;
        bool last = kept[i] && action >= 0;
        for (int k = i + 1; k < count; k++)
            last = last && !(kept[k] && runs[k].action == action);
        if (last) {
            stet_arena arena = STET_ARENA_INIT;
            take_record(branch, action, runs[i].reads, &runs[i].n, &arena);
            model[branch][action].made = true;
            model[branch][action].unknown = false;
            stet_arena_release(&arena);
        }
        for (int r = 0; r < runs[i].n; r++)
            stet_path_release(&runs[i].reads[r].path);
    }
    stet_path_release(&value);
}

typedef struct stored {
    int64_t number[ACTIONS]; /* 0: not known */
    bool observed[ACTIONS];
} stored;

static bool take_row(void *ctx, int64_t action, const char *name, size_t name_len, const void *bytes, size_t len) {
    (void)bytes;
    stored *s = ctx;
    assert_true(name_len > 1);
    s->number[atoi(name + 1)] = action;
    s->observed[atoi(name + 1)] = len != 0;
    return true;
}

static void compare(size_t step) {
    ok(stet_observe_catch_up(spaces[0], &err));
    int64_t numbers[BRANCHES];
    for (int b = 0; b < BRANCHES; b++)
        ok(stet_space_branch(spaces[0], branch_names[b], &numbers[b], &err));
    ok(stet_db_begin_read(stet_space_db(spaces[0]), &err));
    for (int b = 0; b < BRANCHES; b++) {
        stet_arena arena = STET_ARENA_INIT;
        stored rows = {0};
        stet_marked *marks;
        size_t count;
        stet_action_filter f = {.piece = "piece", .generation = -1};
        ok(stet_observe_scan(spaces[0], numbers[b], &f, take_row, &rows, &err));
        ok(stet_observe_marks(spaces[0], numbers[b], "piece", "", &arena, &marks, &count, &err));
        for (int a = 0; a < ACTIONS; a++) {
            if (!rows.number[a]) {
                assert_false(model[b][a].observed);
                continue;
            }
            stet_marked mark = {0};
            for (size_t i = 0; i < count; i++)
                if (marks[i].action == rows.number[a])
                    mark = marks[i];
            stet_action_state is = rows.observed[a] ? mark.state : STET_STATE_UNKNOWN;
            const model_action *m = &model[b][a];
            stet_action_state expected = !m->observed || m->unknown ? STET_STATE_UNKNOWN
                                         : naive_dirty(b, a)        ? STET_STATE_DIRTY
                                                                    : STET_STATE_STANDS;
            if (is != expected)
                fail_msg("step %zu, branch %d, action %d: stored %s (%s, seq %lld), derived %s", step, b, a,
                         stet_action_state_name(is), stet_reason_name(mark.reason), (long long)mark.seq,
                         stet_action_state_name(expected));
        }
        stet_arena_release(&arena);
    }
    ok(stet_db_commit(stet_space_db(spaces[0]), &err));
}

static void check_agrees(size_t step) {
    for (int s = 0; s < SPACES; s++) {
        stet_buf problems = STET_BUF(0);
        size_t found, repaired;
        ok(stet_observe_check(spaces[s], false, &problems, &found, &repaired, &err));
        if (found)
            fail_msg("step %zu: check of space %d: %s", step, s, stet_buf_cstr(&problems));
        stet_buf_release(&problems);
    }
}

static void special(size_t step) {
    int b = (int)rnd(BRANCHES), a = (int)rnd(ACTIONS);
    char key[16];
    snprintf(key, sizeof key, "a%d", a);
    stet_action_key k = {"piece", "", key};
    int64_t number;
    ok(stet_space_branch(spaces[0], branch_names[b], &number, &err));
    switch (rnd(5)) {
    case 0: /* other code */
        ok(stet_observe_distrust(spaces[0], number, &k, 1, STET_REASON_IMPLEMENTATION, &err));
        model[b][a].unknown = true;
        break;
    case 1: /* the node is gone */
        ok(stet_observe_forget(spaces[0], number, "piece", "", &k, 1, &err));
        forget_reads(&model[b][a]);
        model[b][a] = (model_action){0};
        break;
    case 2: /* commits that nobody looked at */
        for (int s = 0; s < SPACES; s++) {
            stet_observe_switch(others[s], false);
            for (unsigned n = rnd(3); n; n--)
                edit_by(others[s], s, s ? 0 : b);
            stet_observe_switch(others[s], true);
        }
        for (unsigned n = rnd(3); n; n--) { /* and runs and edits before anybody looks */
            run_action(b, (int)rnd(ACTIONS));
            edit_by(spaces[n & 1], n & 1, n & 1 ? 0 : b);
        }
        break;
    case 3: { /* the same commit again */
        for (int i = 0; i < 2; i++) {
            stet_tx *tx;
            ok(stet_tx_begin(spaces[0], branch_names[b], &tx, &err));
            ok(stet_tx_session(tx, "s", (int64_t)step, &err));
            ok(stet_tx_set(tx, "d2", NULL, stet_value_int((int64_t)(step % 3)), &err));
            ok(stet_tx_commit(tx, NULL, &err));
            writer_of_next = -1;
            look(0);
        }
        break;
    }
    case 4:
        check_agrees(step);
        break;
    }
}

static void reopen(const char *dir) {
    for (int i = 0; i < SPACES; i++) {
        char *path = stet_asprintf("%s/s%d.db", dir, i), *name = stet_asprintf("s%d", i);
        if (spaces[i]) {
            stet_space_close(spaces[i]);
            stet_space_close(others[i]);
        }
        ok(stet_space_open_path(path, name, 0, &spaces[i], &err));
        ok(stet_space_open_path(path, name, 0, &others[i], &err));
        free(path);
        free(name);
    }
}

static void marks_equal_marks_derived_from_scratch(void **state) {
    (void)state;
    size_t steps = getenv("STET_TEST_LONG") ? 2000000 : getenv("STET_TEST_SHORT") ? 3000 : 100000;
    seed = getenv("STET_TEST_SEED") ? strtoull(getenv("STET_TEST_SEED"), NULL, 10) : 20261115;
    print_message("# seed %llu, %zu steps\n", (unsigned long long)seed, steps);
    /* Durability is not what is tried here; memory spares the syncs. */
    char dir[] = "/dev/shm/stet-observe-XXXXXX", here[] = "observe-XXXXXX";
    char *base = mkdtemp(access("/dev/shm", W_OK) == 0 ? dir : here);
    assert_non_null(base);
    reopen(base);
    ok(stet_branch_create(spaces[0], "side", "", -1, &err));
    for (size_t step = 0; step < steps; step++) {
        unsigned what = rnd(20);
        if (what < 8) {
            int s = (int)rnd(SPACES);
            edit_by(rnd(2) ? spaces[s] : others[s], s, s ? 0 : (int)rnd(BRANCHES));
        } else if (what < 17) {
            run_action((int)rnd(BRANCHES), (int)rnd(ACTIONS));
        } else if (what < 19) {
            run_group((int)rnd(BRANCHES));
        } else {
            special(step);
        }
        compare(step);
        if (step % 5000 == 4999) {
            reopen(base);
            check_agrees(step);
        }
    }
    check_agrees(steps);
    /* A difference that is put in by hand is found, and repair makes it unknown, not standing. */
    ok(stet_db_begin_write(stet_space_db(spaces[0]), &err));
    stet_db_exec(stet_space_db(spaces[0]), "DELETE FROM mark");
    stet_db_exec(stet_space_db(spaces[0]), LOSE_READS);
    ok(stet_db_commit(stet_space_db(spaces[0]), &err));
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    ok(stet_observe_check(spaces[0], true, &problems, &found, &repaired, &err));
    assert_int_equal(found, repaired);
    ok(stet_observe_check(spaces[0], false, &problems, &found, &repaired, &err));
    assert_int_equal(found, 0);
    stet_buf_release(&problems);
    for (int i = 0; i < SPACES; i++) {
        stet_space_close(spaces[i]);
        stet_space_close(others[i]);
        for (size_t c = 0; c < history[i].len; c++)
            stet_path_release(&history[i].at[c].path);
        stet_vec_release(&history[i]);
    }
    for (int b = 0; b < BRANCHES; b++)
        for (int a = 0; a < ACTIONS; a++)
            forget_reads(&model[b][a]);
    ok(stet_file_remove_tree(base, &err));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(marks_equal_marks_derived_from_scratch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
