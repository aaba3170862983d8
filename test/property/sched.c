/* sched.c - the central property of the scheduler.
 *
 * Whatever happens to patterns, arguments and processes, the incremental result equals that of a run from scratch, and
 * no action runs unless something that it read has changed.
 *
 * Two pieces of random patterns over integers, the second reading results of the first. Steps: edits of arguments,
 * edits of outputs, changes of a program, restarts, kills in the middle of a run or of setting up a program (in a
 * child, at a random system call), another handle that edits while actions run, or sets up a program and runs it while
 * this one holds the pieces; demand for one piece, the other, or one result. A naive evaluator is the judge. Nodes may
 * fail (a remainder by zero): what depends on a failed one keeps old values and is not compared. There are cycles in
 * the bindings that a condition keeps open. After each step the graph in memory is compared with the stored index; now
 * and then every mark is derived anew.
 */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../faults.h"
#include "base/buf.h"
#include "base/vec.h"
#include "scheduler/sched.h"

#define KEYS      6
#define MAX_NODES 24
#define PIECES    2

typedef enum op { ADD, SUBTRACT, MIN, MAX, MODULO, CHOOSE, SUM, OPS } op;
static const char *const op_names[] = {"add", "subtract", "min", "max", "modulo", "ifElse", "sum"};

/* Where an input comes from. */
typedef struct source {
    enum { CONSTANT, KEY, NODE, OTHER } kind; /* OTHER: a result of the first piece */
    int n;
} source;

typedef struct node {
    op op;
    source in[3];
    int count;
    bool exists;
    int version; /* counts up when the node changes */
} node;

typedef struct piece {
    node nodes[MAX_NODES];
    int count;
    int results[3];
    int result_count;
    long keys[KEYS];
    bool installed;
} piece;

/* What a node's inputs were when it last ran: how often each had changed by then. A value that changed and changed back
 * is a reason to run. */
typedef struct seen {
    bool ran;
    int version;
    long in[3];
    int which[3];
    int count;
} seen;

typedef struct world {
    piece pieces[PIECES];
    seen seen[PIECES][MAX_NODES];
    long key_changes[PIECES][KEYS], out_changes[PIECES][MAX_NODES], setups;
    long out_value[PIECES][MAX_NODES];
    bool out_known[PIECES][MAX_NODES];
    bool dirty_output[PIECES][MAX_NODES]; /* overwritten since */
    int runs[PIECES][MAX_NODES];          /* in this settling */
    stet_project *project;
    stet_space *space;
    stet_sched *sched;
    stet_space *beside; /* another handle, as another process would have one */
    int meddle;         /* so many runs from now it edits; 0: not */
    long meddled;
    bool driven;                      /* the other has run actions since this one was opened */
    bool troubled[PIECES][MAX_NODES]; /* it failed, or gave way to one that did, since this one was opened */
    long retries;                     /* marks in memory alone that were met */
    bool demanded[PIECES];
    uint64_t random;
    long step;
    long compared, ran;
    stet_buf order; /* what ran in this settling, for messages */
} world;

static uint64_t next_random(world *w) {
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random;
}

static int pick(world *w, int n) {
    return (int)(next_random(w) % (uint64_t)n);
}

#define ok(call)                                                                                                       \
    do {                                                                                                               \
        stet_error err = STET_ERROR_INIT;                                                                              \
        stet_status status_ = (call);                                                                                  \
        if (status_ != STET_OK)                                                                                        \
            fail_msg("step %ld: %s: %s: %s", w->step, #call, stet_status_name(status_), err.message);                  \
    } while (0)

typedef struct answer {
    bool known; /* false: it failed, or depends on what did */
    long value;
} answer;

typedef struct judge {
    world *w;
    answer memo[PIECES][MAX_NODES];
    char state[PIECES][MAX_NODES]; /* 0 not yet, 1 under way, 2 done */
} judge;

static answer eval(judge *j, int p, int n);

static answer eval_source(judge *j, int p, source s) {
    if (s.kind == CONSTANT)
        return (answer){true, s.n};
    if (s.kind == KEY)
        return (answer){true, j->w->pieces[p].keys[s.n]};
    if (s.kind == NODE)
        return eval(j, p, s.n);
    /* A result of the first piece. */
    piece *first = &j->w->pieces[0];
    if (!first->installed || s.n >= first->result_count)
        return (answer){false, 0};
    return eval(j, 0, first->results[s.n]);
}

static answer eval(judge *j, int p, int n) {
    node *x = &j->w->pieces[p].nodes[n];
    if (j->state[p][n] == 2)
        return j->memo[p][n];
    assert_int_equal(j->state[p][n], 0); /* conditions keep every circle open */
    j->state[p][n] = 1;
    answer a = {true, 0};
    if (x->op == CHOOSE) {
        answer c = eval_source(j, p, x->in[0]);
        a = c.known ? eval_source(j, p, x->in[c.value ? 1 : 2]) : c;
    } else {
        answer v[3];
        for (int i = 0; i < x->count; i++) {
            v[i] = eval_source(j, p, x->in[i]);
            a.known = a.known && v[i].known;
        }
        if (a.known) {
            switch (x->op) {
            case ADD:
            case SUM:
                a.value = 0;
                for (int i = 0; i < x->count; i++)
                    a.value += v[i].value;
                break;
            case SUBTRACT:
                a.value = v[0].value - v[1].value;
                break;
            case MIN:
                a.value = v[0].value < v[1].value ? v[0].value : v[1].value;
                break;
            case MAX:
                a.value = v[0].value > v[1].value ? v[0].value : v[1].value;
                break;
            default:
                a.known = v[1].value != 0;
                a.value = a.known ? v[0].value % v[1].value : 0;
            }
        }
    }
    j->state[p][n] = 2;
    j->memo[p][n] = a;
    return a;
}

static source random_source(world *w, int p, int below) {
    int r = pick(w, 10);
    if (r < 4 && below > 0) {
        for (int tries = 0; tries < 4; tries++) {
            int n = pick(w, below);
            if (w->pieces[p].nodes[n].exists)
                return (source){NODE, n};
        }
    }
    if (p == 1 && r < 6 && w->pieces[0].result_count > 0)
        return (source){OTHER, pick(w, w->pieces[0].result_count)};
    if (r < 9)
        return (source){KEY, pick(w, KEYS)};
    return (source){CONSTANT, pick(w, 5)};
}

static void random_node(world *w, int p, int n) {
    node *x = &w->pieces[p].nodes[n];
    x->op = (op)pick(w, OPS);
    x->count = x->op == CHOOSE ? 3 : x->op == ADD || x->op == SUM ? 1 + pick(w, 3) : 2;
    for (int i = 0; i < x->count; i++)
        x->in[i] = random_source(w, p, n);
    if (x->op == CHOOSE && pick(w, 2))
        x->in[0] = (source){KEY, pick(w, KEYS)};
    x->exists = true;
    x->version++;
}

/* Two nodes that refer to each other; the same condition opens the circle in both. */
static void random_pair(world *w, int p, int n) {
    int key = pick(w, KEYS);
    for (int i = 0; i < 2; i++) {
        node *x = &w->pieces[p].nodes[n + i];
        x->op = CHOOSE;
        x->count = 3;
        x->exists = true;
        x->version++;
        x->in[0] = (source){KEY, key};
        x->in[1 + i] = (source){NODE, n + !i};
        x->in[2 - i] = random_source(w, p, n);
    }
}

static void random_pattern(world *w, int p) {
    piece *x = &w->pieces[p];
    x->count = 4 + pick(w, MAX_NODES - 6);
    for (int n = 0; n < MAX_NODES; n++)
        x->nodes[n].exists = false;
    for (int n = 0; n < x->count; n++) {
        if (n > 0 && n + 1 < x->count && pick(w, 6) == 0) {
            random_pair(w, p, n);
            n++;
        } else {
            random_node(w, p, n);
        }
    }
    x->result_count = 1 + pick(w, 3);
    for (int i = 0; i < x->result_count; i++)
        x->results[i] = x->count - 1 - pick(w, x->count < 6 ? x->count : 6);
}

/* Changes some nodes; a pair stays a pair. */
static void mutate_pattern(world *w, int p) {
    piece *x = &w->pieces[p];
    for (int k = 0; k < 1 + pick(w, 3); k++) {
        int n = pick(w, x->count);
        bool paired = false;
        for (int i = 0; i < x->count; i++)
            for (int m = 0; m < x->nodes[i].count; m++)
                paired = paired || (x->nodes[i].in[m].kind == NODE &&
                                    (x->nodes[i].in[m].n >= i && (i == n || x->nodes[i].in[m].n == n)));
        if (!paired)
            random_node(w, p, n);
    }
    if (x->count < MAX_NODES && pick(w, 2)) {
        x->results[pick(w, x->result_count)] = x->count;
        random_node(w, p, x->count++);
    }
}

static void print_source(stet_buf *b, source s) {
    if (s.kind == CONSTANT)
        stet_buf_printf(b, "%d", s.n);
    else if (s.kind == KEY)
        stet_buf_printf(b, "{\"$\":\"argument/k%d\"}", s.n);
    else if (s.kind == NODE)
        stet_buf_printf(b, "{\"$\":\"n%d\"}", s.n);
    else
        stet_buf_printf(b, "{\"/\":{\"link@1\":{\"id\":\"piece:p0\",\"path\":[\"r%d\"]}}}", s.n);
}

static void print_pattern(world *w, int p, stet_buf *b) {
    piece *x = &w->pieces[p];
    stet_buf_printf(b, "{\"pattern\":1,\"name\":\"p%d\",\"argument\":{\"default\":{", p);
    for (int k = 0; k < KEYS; k++)
        stet_buf_printf(b, "%s\"k%d\":%ld", k ? "," : "", k, x->keys[k]);
    stet_buf_str(b, "}},\"nodes\":[");
    for (int n = 0, first = 1; n < x->count; n++) {
        if (!x->nodes[n].exists)
            continue;
        stet_buf_printf(b,
                        "%s{\"id\":\"n%d\",\"module\":{\"type\":\"ref\",\"ref\":\"%s\"},\"inputs\":", first ? "" : ",",
                        n, op_names[x->nodes[n].op]);
        first = 0;
        stet_buf_str(b, x->nodes[n].op == SUM ? "{\"values\":[" : "[");
        for (int i = 0; i < x->nodes[n].count; i++) {
            stet_buf_str(b, i ? "," : "");
            print_source(b, x->nodes[n].in[i]);
        }
        stet_buf_str(b, x->nodes[n].op == SUM ? "]}}" : "]}");
    }
    stet_buf_str(b, "],\"result\":{");
    for (int i = 0; i < x->result_count; i++)
        stet_buf_printf(b, "%s\"r%d\":{\"$\":\"n%d\"}", i ? "," : "", i, x->results[i]);
    stet_buf_str(b, "}}");
}

static void write_cell(world *w, stet_space *space, const char *cell, long value) {
    stet_tx *tx;
    ok(stet_tx_begin(space, "", &tx, &err));
    ok(stet_tx_set(tx, cell, NULL, stet_value_int(value), &err));
    ok(stet_tx_commit(tx, NULL, &err));
}

/* Another value for a key of a piece's argument. */
static void edit(world *w, stet_space *space, int p) {
    char cell[48];
    int key = pick(w, KEYS);
    long old = w->pieces[p].keys[key], value = pick(w, 13) - 3;
    w->pieces[p].keys[key] = value;
    w->key_changes[p][key] += old != value;
    snprintf(cell, sizeof cell, "piece:p%d:argument/k%d", p, key);
    write_cell(w, space, cell, value);
}

static void on_event(void *ctx, const stet_sched_event *e) {
    world *w = ctx;
    if (e->kind == STET_SCHED_STARTED)
        stet_buf_printf(&w->order, " %s/%s", e->piece, e->node);
    if (e->kind == STET_SCHED_STARTED)
        w->runs[e->piece[1] - '0'][atoi(e->node + 1)]++;
    if (e->kind == STET_SCHED_FAILED || e->kind == STET_SCHED_CANCELLED)
        w->troubled[e->piece[1] - '0'][atoi(e->node + 1)] = true;
    if (e->kind == STET_SCHED_STARTED && w->meddle > 0 && --w->meddle == 0)
        edit(w, w->beside, pick(w, PIECES));
}

static stet_sched_opts some_opts(world *w) {
    stet_sched_opts opts = {.persist = true, .ctx = w, .event = on_event, .group_runs = 1 + (size_t)pick(w, 12)};
    if (pick(w, 2)) /* marks taken up a few at a time, and actions that leave memory again */
        opts.window = 1 + (size_t)pick(w, 8);
    return opts;
}

static void open_all(world *w) {
    stet_sched_opts opts = some_opts(w);
    ok(stet_project_open("p", &w->project, &err));
    ok(stet_space_open(w->project, "main", 0, &w->space, &err));
    ok(stet_space_open(w->project, "main", 0, &w->beside, &err));
    ok(stet_sched_open(w->project, w->space, "", &opts, &w->sched, &err));
    memset(w->demanded, 0, sizeof w->demanded);
    memset(w->troubled, 0, sizeof w->troubled);
    w->driven = false;
}

static void close_all(world *w) {
    stet_sched_close(w->sched);
    stet_space_close(w->beside);
    stet_space_close(w->space);
    stet_project_close(w->project);
}

static void install(world *w, stet_sched *sched, int p) {
    stet_buf b = STET_BUF(0);
    stet_pattern *pattern;
    stet_sched_installed in;
    stet_pattern_checks checks = {.module = stet_module_check};
    char name[8];
    snprintf(name, sizeof name, "p%d", p);
    print_pattern(w, p, &b);
    ok(stet_pattern_parse("random", b.data, b.len, &checks, &pattern, NULL, &err));
    ok(stet_sched_install(sched, pattern, name, stet_value_null(), stet_value_null(), &in, &err));
    stet_pattern_free(pattern);
    stet_buf_release(&b);
    w->pieces[p].installed = true;
    /* The output of a node that is gone is gone, too: when the node comes back and has run, that is a change to whoever
     * read nothing there meanwhile, whatever the value. */
    for (int n = 0; n < MAX_NODES; n++)
        if (n >= w->pieces[p].count || !w->pieces[p].nodes[n].exists)
            w->out_known[p][n] = false;
}

static void compare_results(world *w, int p, int only) {
    judge j = {.w = w};
    for (int i = 0; i < w->pieces[p].result_count; i++) {
        if (only >= 0 && i != only)
            continue;
        answer a = eval(&j, p, w->pieces[p].results[i]);
        if (!a.known)
            continue;
        char id[16];
        stet_value v;
        stet_path path = STET_PATH_INIT;
        snprintf(id, sizeof id, "piece:p%d", p);
        stet_path_push(&path, "value");
        stet_path_push(&path, i == 0 ? "r0" : i == 1 ? "r1" : "r2");
        ok(stet_sched_get(w->sched, id, NULL, stet_path_ref(&path), &v, &err));
        if (stet_value_type(v) != STET_TYPE_INT || stet_value_as_int(v) != a.value) {
            stet_buf b = STET_BUF(0);
            char *got = stet_json_print(v, STET_JSON_CANONICAL, NULL);
            for (int q = 0; q < PIECES; q++) {
                print_pattern(w, q, &b);
                stet_buf_char(&b, '\n');
            }
            printf("# ran:%s\n%s", stet_buf_cstr(&w->order), stet_buf_cstr(&b));
            fail_msg("step %ld: p%d r%d (n%d): from scratch %ld, incremental %s", w->step, p, i,
                     w->pieces[p].results[i], a.value, got);
        }
        w->compared++;
        stet_value_release(v);
        stet_path_release(&path);
    }
}

static long changes_of(world *w, int p, source s) {
    if (s.kind == KEY)
        return w->key_changes[p][s.n];
    if (s.kind == NODE)
        return w->out_changes[p][s.n];
    if (s.kind == OTHER) /* the link in the result, and what it leads to */
        return w->out_changes[0][w->pieces[0].results[s.n]] + w->setups * 1000000000;
    return 0;
}

/* Inputs that a node reads now; false if one is not known. */
static bool inputs_now(judge *j, int p, int n, seen *out) {
    node *x = &j->w->pieces[p].nodes[n];
    *out = (seen){.ran = true, .version = x->version};
    long condition = 0;
    for (int i = 0; i < x->count; i++) {
        if (x->op == CHOOSE && i > 0 && i != (condition ? 1 : 2))
            continue;
        answer a = eval_source(j, p, x->in[i]);
        if (!a.known)
            return false;
        if (i == 0)
            condition = a.value;
        out->which[out->count] = i;
        out->in[out->count++] = changes_of(j->w, p, x->in[i]);
    }
    return true;
}

static bool same_seen(const seen *a, const seen *b) {
    if (a->count != b->count || a->version != b->version)
        return false;
    for (int i = 0; i < a->count; i++)
        if (a->which[i] != b->which[i] || a->in[i] != b->in[i])
            return false;
    return true;
}

/* In memory; one that has left it stands. */
static bool is_dirty(world *w, int p, int n) {
    char name[32];
    snprintf(name, sizeof name, "p%d/n%d", p, n);
    stet_plan *plan = stet_sched_plan(w->sched);
    uint32_t id = stet_plan_find(plan, name, strlen(name));
    return id != STET_PLAN_NONE && stet_plan_is_dirty(plan, id);
}

/* Who ran, and whether it had to. */
static void compare_runs(world *w) {
    judge j = {.w = w};
    for (int p = 0; p < PIECES; p++) {
        for (int n = 0; n < w->pieces[p].count; n++) {
            if (w->runs[p][n] == 0)
                continue;
            answer a = eval(&j, p, n);
            /* One that ran twice (it closes a circle) may have written something in between; one that is dirty again,
             * and not wanted any more, has written something else. */
            bool again = is_dirty(w, p, n);
            if (w->runs[p][n] > 1 || again || !a.known || !w->out_known[p][n] || a.value != w->out_value[p][n])
                w->out_changes[p][n]++;
            w->out_known[p][n] = a.known && !again;
            w->out_value[p][n] = a.value;
        }
    }
    for (int p = 0; p < PIECES; p++) {
        for (int n = 0; n < w->pieces[p].count; n++) {
            seen now;
            int runs = w->runs[p][n];
            w->ran += runs;
            if (runs == 0)
                continue;
            bool known = w->pieces[p].installed && inputs_now(&j, p, n, &now);
            seen *was = &w->seen[p][n];
            if (known && runs == 1 && was->ran && !w->dirty_output[p][n] && same_seen(was, &now)) {
                stet_buf b = STET_BUF(0);
                print_pattern(w, p, &b);
                fail_msg("step %ld: p%d/n%d ran, and what it reads is what it was; ran:%s\n%s", w->step, p, n,
                         stet_buf_cstr(&w->order), stet_buf_cstr(&b));
            }
            /* One that was wanted, ran, and is dirty again because something changed it when nobody wanted it any more,
             * has a reason to run next time. */
            if (known && !is_dirty(w, p, n))
                *was = now;
            else
                was->ran = false;
            w->dirty_output[p][n] = false;
        }
    }
}

static int by_read(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *read_text(const char *doc, size_t doc_len, stet_pathref path, stet_read_kind kind) {
    stet_buf b = STET_BUF(0);
    stet_buf_add(&b, doc + (doc_len ? 2 : 0),
                 doc_len ? doc_len - 2 : 0); /* own space, common scope: two NULs before the id */
    stet_path_print(path, &b);
    stet_buf_str(&b, kind == STET_SHALLOW ? " s" : " r");
    return stet_buf_take(&b, NULL);
}

/* One that failed is marked in memory when one that it reads fails or waits: it is to wait, too, instead of failing. If
 * nobody wants it, it keeps that mark and does not run. Nothing that it read has changed, so its record, which says
 * that it failed, stands. A wanted one must have run, or its record is in doubt. */
static bool is_retry(world *w, uint32_t id, const stet_memo_action *x) {
    bool reason = false, live = true;
    for (size_t i = 0; i < x->read_count; i++) {
        int p, n;
        reason = reason || (sscanf(x->reads[i].name.id, "piece:p%d:node:n%d", &p, &n) == 2 && w->troubled[p][n]);
    }
    if (!x->failed || !reason)
        return false;
    ok(stet_plan_is_live(stet_sched_plan(w->sched), id, &live, &err));
    w->retries += !live;
    return !live;
}

/* What the plan holds of each loaded action equals what is stored of it. */
static void compare_index(world *w) {
    stet_plan *plan = stet_sched_plan(w->sched);
    stet_memo *memo = stet_sched_memo(w->sched);
    for (uint32_t id = 0; id < stet_plan_count(plan); id++) {
        const char *name = stet_plan_name(plan, id);
        if (stet_plan_find(plan, name, strlen(name)) != id || stet_plan_is_unknown(plan, id))
            continue;
        char piece_doc[16];
        snprintf(piece_doc, sizeof piece_doc, "piece:p%c", name[1]);
        stet_arena arena = STET_ARENA_INIT;
        stet_memo_action x;
        ok(stet_memo_load(memo, piece_doc, strchr(name, '/') + 1, &arena, &x, &err));
        bool dirty = stet_plan_is_dirty(plan, id);
        /* What was dirty here before another ran it costs a run when it is wanted, and no result. */
        if ((x.state != STET_STATE_STANDS) != dirty && !(dirty && w->driven) && !(dirty && is_retry(w, id, &x)))
            fail_msg("step %ld: %s is %s in memory and %s in the index", w->step, name, dirty ? "dirty" : "standing",
                     stet_action_state_name(x.state));
        /* Nor are its reads known here. One that waits reads what it waits for, too. */
        if ((dirty && w->driven) || stet_plan_is_left(plan, id)) {
            stet_arena_release(&arena);
            continue;
        }
        stet_plan_read reads[64];
        size_t count = stet_plan_reads(plan, id, reads, 64);
        assert_true(count <= 64);
        char *mine[64], *theirs[64];
        /* A recursive read covers a shallow one of the same cell: the index keeps the first alone. */
        size_t kept = 0;
        for (size_t i = 0; i < count; i++) {
            bool covered = false;
            for (size_t k = 0; k < count && reads[i].kind == STET_SHALLOW; k++)
                covered = covered || (reads[k].kind == STET_RECURSIVE && reads[k].doc == reads[i].doc &&
                                      stet_path_compare(reads[k].path, reads[i].path) == 0);
            if (!covered)
                reads[kept++] = reads[i];
        }
        count = kept;
        for (size_t i = 0; i < count; i++) {
            size_t len;
            const char *doc = stet_plan_doc_name(plan, reads[i].doc, &len);
            mine[i] = read_text(doc, len, reads[i].path, reads[i].kind);
        }
        for (size_t i = 0; i < x.read_count; i++) {
            char with[512];
            int n = snprintf(with + 2, sizeof with - 2, "%s", x.reads[i].name.id);
            with[0] = with[1] = 0;
            theirs[i] = read_text(with, (size_t)n + 2, x.reads[i].path, x.reads[i].kind);
        }
        qsort(mine, count, sizeof *mine, by_read);
        qsort(theirs, x.read_count, sizeof *theirs, by_read);
        bool same = count == x.read_count;
        for (size_t i = 0; same && i < count; i++)
            same = strcmp(mine[i], theirs[i]) == 0;
        if (!same)
            fail_msg("step %ld: reads of %s differ: %zu in memory, %zu in the index (%s, %s)", w->step, name, count,
                     x.read_count, count ? mine[0] : "", x.read_count ? theirs[0] : "");
        /* Each has one output, and nothing else is its own. */
        stet_plan_write out;
        size_t len;
        bool own = stet_plan_writes(plan, id, &out, 1) == 1 && x.write_count == 1;
        if (own)
            own = strcmp(stet_plan_doc_name(plan, out.doc, &len) + 2, x.writes[0].name.id) == 0 &&
                  stet_path_compare(out.path, x.writes[0].path) == 0;
        if (!own)
            fail_msg("step %ld: writes of %s differ: %zu in memory, %zu in the index", w->step, name,
                     stet_plan_writes(plan, id, &out, 1), x.write_count);
        for (size_t i = 0; i < count; i++)
            stet_free(mine[i]);
        for (size_t i = 0; i < x.read_count; i++)
            stet_free(theirs[i]);
        stet_arena_release(&arena);
    }
}

static void sound(world *w) {
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    ok(stet_observe_check(w->space, false, &problems, &found, &repaired, &err));
    if (found)
        fail_msg("step %ld: check: %s", w->step, stet_buf_cstr(&problems));
    stet_buf_release(&problems);
}

static void settle(world *w) {
    stet_sched_report r;
    memset(w->runs, 0, sizeof w->runs);
    stet_buf_clear(&w->order);
    int meddle = w->meddle = pick(w, 8) ? 0 : 1 + pick(w, 6);
    ok(stet_sched_settle(w->sched, &r, &err));
    assert_int_equal(r.aside, 0);
    stet_value_release(r.problems);
    if (stet_sched_passed_over(w->sched))
        fail_msg("step %ld: passed over: %s", w->step, stet_sched_passed_over(w->sched));
    if (meddle && !w->meddle) { /* some ran twice, for different reasons */
        w->meddled++;
        memset(w->seen, 0, sizeof w->seen);
    }
    w->meddle = 0;
}

static void demand_some(world *w) {
    int p = pick(w, PIECES);
    char name[8];
    snprintf(name, sizeof name, "p%d", p);
    if (pick(w, 4) == 0 && !w->demanded[0] && !w->demanded[1]) {
        /* One result alone, in a view of its own. */
        int only = pick(w, w->pieces[p].result_count);
        char doc[16];
        stet_path path = STET_PATH_INIT;
        snprintf(doc, sizeof doc, "piece:p%d", p);
        stet_path_push(&path, "value");
        stet_path_push(&path, only == 0 ? "r0" : only == 1 ? "r1" : "r2");
        ok(stet_sched_demand_cell(w->sched, doc, NULL, stet_path_ref(&path), &err));
        stet_path_release(&path);
        settle(w);
        compare_results(w, p, only);
        compare_runs(w);
        compare_index(w);
        close_all(w);
        open_all(w);
        return;
    }
    ok(stet_sched_demand_piece(w->sched, name, &err));
    w->demanded[p] = true;
    settle(w);
    for (int q = 0; q < PIECES; q++)
        if (w->demanded[q])
            compare_results(w, q, -1);
    compare_runs(w);
    compare_index(w);
}

/* A program whose results are three: the second refers to those of the first. */
static void another_program(world *w, int p) {
    random_pattern(w, p);
    while (p == 0 && w->pieces[0].result_count < 3)
        w->pieces[0].results[w->pieces[0].result_count++] = w->pieces[0].count - 1;
}

/* Others have run something: what, and with which results, is not known here. */
static void forget_runs(world *w) {
    memset(w->seen, 0, sizeof w->seen);
    memset(w->out_known, 0, sizeof w->out_known);
}

/* Another handle sets up a program, or edits, and runs a piece, while this one holds them. */
static void drive_beside(world *w, int p) {
    stet_sched_opts opts = some_opts(w);
    stet_sched *sched;
    stet_sched_report r;
    opts.event = NULL;
    ok(stet_sched_open(w->project, w->beside, "", &opts, &sched, &err));
    if (pick(w, 2)) {
        mutate_pattern(w, p);
        install(w, sched, p);
        w->setups += p == 0;
    } else {
        edit(w, w->beside, p);
    }
    if (pick(w, 2)) {
        ok(stet_sched_demand_piece(sched, pick(w, 2) ? "p1" : "p0", &err));
        ok(stet_sched_settle(sched, &r, &err));
        stet_value_release(r.problems);
        w->driven = true;
    }
    stet_sched_close(sched);
    forget_runs(w);
}

/* A child sets up a program, or none, runs both pieces, and dies at a random system call. */
static void die(world *w) {
    close_all(w);
    long after = 1 + pick(w, 120);
    int changed = pick(w, 4) ? -1 : pick(w, PIECES);
    if (changed >= 0)
        mutate_pattern(w, changed);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        stet_sched_report r;
        faults_arm_any(after, STET_SYS_KILL, 0);
        open_all(w);
        w->meddle = 0;
        if (changed >= 0)
            install(w, w->sched, changed);
        if (stet_sched_demand_piece(w->sched, "p0", NULL) == STET_OK &&
            stet_sched_demand_piece(w->sched, "p1", NULL) == STET_OK)
            (void)!stet_sched_settle(w->sched, &r, NULL);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    forget_runs(w);
    open_all(w);
    if (changed >= 0) { /* it may have come to that, or to a part of it, or not */
        install(w, w->sched, changed);
        w->setups += changed == 0;
    }
}

static void one_step(world *w) {
    int p = pick(w, PIECES), r = pick(w, 100);
    char cell[48];
    if (r < 55) {
        for (int k = 0; k < 1 + pick(w, 2); k++)
            edit(w, w->space, p);
    } else if (r < 60) {
        int n = pick(w, w->pieces[p].count);
        snprintf(cell, sizeof cell, "piece:p%d:node:n%d", p, n);
        write_cell(w, w->space, cell, 1000 + pick(w, 1000));
        w->dirty_output[p][n] = true;
        /* Its readers are touched, too, and may run on what was written. */
        memset(w->seen, 0, sizeof w->seen);
    } else if (r < 64) {
        mutate_pattern(w, p);
        install(w, w->sched, p);
        if (p == 0) {
            /* Results may be links to other nodes now: who reads them finds out by running, and may run twice. */
            w->setups++;
            memset(w->seen, 0, sizeof w->seen);
        }
    } else if (r < 65) {
        another_program(w, p);
        install(w, w->sched, p);
        memset(w->seen, 0, sizeof w->seen);
    } else if (r < 75) {
        close_all(w);
        open_all(w);
    } else if (r < 76) {
        die(w);
    } else if (r < 78) {
        drive_beside(w, p);
    }
    if (pick(w, 3))
        demand_some(w);
    if (w->step % 250 == 0)
        sound(w);
}

static void incremental_equals_from_scratch(void **state) {
    (void)state;
    world *w = stet_alloc_zero(sizeof *w);
    const char *seed = getenv("STET_TEST_SEED"), *longer = getenv("STET_TEST_LONG"),
               *shorter = getenv("STET_TEST_SHORT"), *exactly = getenv("STET_TEST_STEPS");
    long steps = exactly ? atol(exactly) : longer ? 1000000 : shorter ? 1500 : 20000;
    w->random = seed ? strtoull(seed, NULL, 10) : 88172645463325252ull;
    bool created;
    ok(stet_project_init("p", &created, &err));
    open_all(w);
    for (int p = 0; p < PIECES; p++) {
        another_program(w, p);
        install(w, w->sched, p);
    }
    for (w->step = 1; w->step <= steps; w->step++)
        one_step(w);
    sound(w);
    printf(
        "# %ld steps, %ld results compared, %ld runs, %ld edits by another while actions ran, %ld unwanted retries\n",
        steps, w->compared, w->ran, w->meddled, w->retries);
    assert_true(w->compared > steps / 3);
    close_all(w);
    stet_buf_release(&w->order);
    free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(incremental_equals_from_scratch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
