/* handlers.c - the central property with cells, events and materializers.
 *
 * Whatever is edited, sent, sent again, killed, restarted or reprogrammed, the incremental result equals that of a run
 * from scratch over the state that the applied events and edits make. Every event is applied at most once.
 *
 * One piece over integers below 97: nodes and materializers in a row, each reading arguments, named cells, outputs and
 * materialized keys of those before it, conditions among them. Handlers add to cells, store what a node computes (which
 * must be fresh), store a materialized key in the argument, fail, or share a stream. The judge is a naive evaluator and
 * a replay of events. Senders are killed at a random system call in a process of their own, while this one goes on.
 */

#include "../sched_other.h"

#define KEYS    5
#define CELLS   4
#define ITEMS   14
#define MATKEYS 4
#define PRIME   97
#define STREAMS 5

typedef struct source {
    enum { CONSTANT, KEY, CELL, OUTPUT, MATKEY } kind;
    int n, key;
} source;

typedef enum op { ADD, CHOOSE, MIN, REF_IF, MATERIALIZE } op;

typedef struct item {
    op op;
    source in[3];
    int k;         /* a constant in its code */
    bool declared; /* of a materializer: it says where it writes; else it is opaque, and nobody may read its output */
} item;

typedef struct model {
    item items[ITEMS];
    int cell_of[STREAMS], other_cell, item_of, key_of; /* what handlers are bound to */
    source mat_of;
    long keys[KEYS], cells[CELLS];
} model;

typedef struct sent_event {
    int stream;
    long value;
    bool applied;
} sent_event;

typedef struct test {
    world *w;
    model m;
    uint64_t random;
    long step;
    bool whole; /* this scheduler has been asked for the whole piece */
    /* Another process has run actions: this one takes them for overwritten, which is more than the index says. */
    bool others;
    sent_event *events;
    size_t event_count;
    long applied, again, refused, kills, killed_applied, compared, runs, promoted, restarts;
} test;

static const char *const streams[STREAMS] = {"bump", "snap", "fail", "key", "both"};

static int pick(test *t, int n) {
    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    return (int)(t->random % (uint64_t)n);
}

typedef struct judged {
    const model *m;
    long out[ITEMS], mat[ITEMS][MATKEYS];
} judged;

static long value_of(const judged *j, source s) {
    switch (s.kind) {
    case CONSTANT:
        return s.n;
    case KEY:
        return j->m->keys[s.n];
    case CELL:
        return j->m->cells[s.n];
    case OUTPUT:
        return j->out[s.n];
    case MATKEY:
        break;
    }
    return j->mat[s.n][s.key];
}

static judged judge(const model *m) {
    judged j = {.m = m};
    for (int i = 0; i < ITEMS; i++) {
        const item *x = &m->items[i];
        long a = value_of(&j, x->in[0]), b = value_of(&j, x->in[1]), c = value_of(&j, x->in[2]);
        switch (x->op) {
        case ADD:
            j.out[i] = (a + b + x->k) % PRIME;
            break;
        case CHOOSE:
            j.out[i] = c % 2 ? a : b;
            break;
        case MIN:
            j.out[i] = a < b ? a : b;
            break;
        case REF_IF:
            j.out[i] = c ? a : b;
            break;
        case MATERIALIZE:
            j.mat[i][0] = (a + x->k) % PRIME;
            j.mat[i][1] = a % 2 ? b : 7;
            j.mat[i][2] = a > 50 ? (b + 1) % PRIME : 3;
            j.mat[i][3] = x->k;
            j.out[i] = a % 5;
            break;
        }
    }
    return j;
}

/* What an event does to the state; false: its handler fails. */
static bool apply(model *m, int stream, long e) {
    judged j = judge(m);
    long *c = &m->cells[m->cell_of[stream]];
    switch (stream) {
    case 0:
        *c = (*c + e) % PRIME;
        return true;
    case 1:
        *c = (j.out[m->item_of] + e) % PRIME;
        return true;
    case 2:
        if (e % 3 == 0)
            return false;
        *c = e;
        return true;
    case 3:
        m->keys[m->key_of] = (value_of(&j, m->mat_of) + e) % PRIME;
        return true;
    default: /* two handlers, the second sees what the first wrote, and what follows from it */
        *c = (*c + e) % PRIME;
        j = judge(m);
        m->cells[m->other_cell] = (*c + j.out[m->item_of] + value_of(&j, m->mat_of)) % PRIME;
        return true;
    }
}

static source random_source(test *t, int before) {
    for (;;) {
        source s = {(int)pick(t, 5), 0, 0};
        if (s.kind == CONSTANT)
            s.n = pick(t, 10);
        else if (s.kind == KEY)
            s.n = pick(t, KEYS);
        else if (s.kind == CELL)
            s.n = pick(t, CELLS);
        else if (before == 0)
            continue;
        else {
            s.n = pick(t, before);
            const item *x = &t->m.items[s.n];
            if (s.kind == MATKEY && x->op != MATERIALIZE)
                continue;
            if (s.kind == OUTPUT && x->op == MATERIALIZE && !x->declared)
                continue;
            s.key = pick(t, MATKEYS);
        }
        return s;
    }
}

static void random_item(test *t, int i) {
    item *x = &t->m.items[i];
    /* Which of them are materializers stays as it is: others refer to their keys. */
    if (i % 4 == 2) {
        x->op = MATERIALIZE;
        x->declared = i % 8 == 2;
    } else {
        x->op = (op)pick(t, 4);
    }
    x->k = pick(t, 20);
    for (int k = 0; k < 3; k++)
        x->in[k] = random_source(t, i);
}

static void random_handlers(test *t) {
    for (int i = 0; i < STREAMS; i++)
        t->m.cell_of[i] = pick(t, CELLS);
    t->m.other_cell = pick(t, CELLS);
    do
        t->m.item_of = pick(t, ITEMS);
    while (t->m.items[t->m.item_of].op == MATERIALIZE);
    t->m.key_of = pick(t, KEYS);
    do
        t->m.mat_of = random_source(t, ITEMS);
    while (t->m.mat_of.kind != MATKEY);
}

static void print_source(stet_buf *b, const char *name, source s) {
    stet_buf_printf(b, "'%s':", name);
    switch (s.kind) {
    case CONSTANT:
        stet_buf_printf(b, "%d", s.n);
        break;
    case KEY:
        stet_buf_printf(b, "{'$':'argument/k%d'}", s.n);
        break;
    case CELL:
        stet_buf_printf(b, "{'$':'c%d'}", s.n);
        break;
    case OUTPUT:
        stet_buf_printf(b, "{'$':'n%d'}", s.n);
        break;
    case MATKEY:
        stet_buf_printf(b, "{'$':'m%d/x%d'}", s.n, s.key);
        break;
    }
}

static void print_item(const test *t, int i, stet_buf *b) {
    const item *x = &t->m.items[i];
    stet_buf_printf(b, "{'id':'n%d',", i);
    if (x->op == MATERIALIZE && x->declared)
        stet_buf_str(b, "'materializerWriteInputPaths':['m'],");
    stet_buf_str(b, "'inputs':{");
    static const char *const names[] = {"a", "b", "c"};
    static const char *const ref_names[] = {"then", "else", "condition"};
    for (int k = 0; k < 3; k++) {
        if (k)
            stet_buf_char(b, ',');
        print_source(b, x->op == REF_IF ? ref_names[k] : names[k], x->in[k]);
    }
    if (x->op == MATERIALIZE)
        stet_buf_printf(b, ",'m':{'$':'m%d','asCell':true}", i);
    stet_buf_str(b, "},'module':");
    if (x->op == REF_IF)
        stet_buf_str(b, "{'type':'ref','ref':'ifElse'}}");
    else
        stet_buf_str(b, "{'type':'javascript','implementation':'");
    if (x->op == ADD)
        stet_buf_printf(b, "(i) => ((i.a ?? 0) + (i.b ?? 0) + %d) %% 97", x->k);
    else if (x->op == CHOOSE)
        stet_buf_str(b, "(i) => (i.c ?? 0) % 2 ? (i.a ?? 0) : (i.b ?? 0)");
    else if (x->op == MIN)
        stet_buf_str(b, "({a, b}) => Math.min(a ?? 0, b ?? 0)");
    else if (x->op == MATERIALIZE)
        stet_buf_printf(b,
                        "(i) => { const a = i.a ?? 0; i.m.key(`x0`).set((a + %d) %% 97); "
                        "i.m.key(`x1`).set(a %% 2 ? (i.b ?? 0) : 7); "
                        "i.m.key(`x2`).set(a > 50 ? ((i.b ?? 0) + 1) %% 97 : 3); i.m.key(`x3`).set(%d); %s }",
                        x->k, x->k, x->declared ? "return a % 5" : "");
    if (x->op != REF_IF)
        stet_buf_str(b, "'}}");
}

static void print_handler(const test *t, const char *id, const char *stream, int cell, const char *more,
                          const char *code, stet_buf *b) {
    (void)t;
    stet_buf_printf(b,
                    ",{'id':'%s','stream':{'$':'%s'},'inputs':{'c':{'$':'c%d','asCell':true}%s},'module':{'type':"
                    "'javascript','handler':true,'implementation':'%s'}}",
                    id, stream, cell, more, code);
}

static void install(test *t) {
    stet_buf b = STET_BUF(0), more = STET_BUF(0);
    const model *m = &t->m;
    stet_buf_str(&b, "{'pattern':1,'name':'p','argument':{'default':{'k0':1,'k1':2,'k2':3,'k3':4,'k4':5}},'cells':{"
                     "'both':{},'c0':{'default':0},'c1':{'default':0},'c2':{'default':0},'c3':{'default':0}");
    for (int i = 0; i < ITEMS; i++)
        if (m->items[i].op == MATERIALIZE)
            stet_buf_printf(&b, ",'m%d':{'default':{}}", i);
    stet_buf_str(&b, "},'nodes':[");
    for (int i = 0; i < ITEMS; i++) {
        if (i)
            stet_buf_char(&b, ',');
        print_item(t, i, &b);
    }
    print_handler(t, "bump", "bump", m->cell_of[0], "", "(e, {c}) => { c.set(((c.get() ?? 0) + e) % 97) }", &b);
    stet_buf_printf(&more, ",'v':{'$':'n%d'}", m->item_of);
    print_handler(t, "snap", "snap", m->cell_of[1], stet_buf_cstr(&more), "(e, {v, c}) => { c.set((v + e) % 97) }", &b);
    print_handler(t, "fail", "fail", m->cell_of[2], "",
                  "(e, {c}) => { c.set(e); if (e % 3 === 0) throw new Error(`no`) }", &b);
    stet_buf_clear(&more);
    stet_buf_printf(&more, ",'k':{'$':'argument/k%d','asCell':true},'m':{'$':'m%d/x%d'}", m->key_of, m->mat_of.n,
                    m->mat_of.key);
    print_handler(t, "key", "key", m->cell_of[3], stet_buf_cstr(&more), "(e, {k, m}) => { k.set((m + e) % 97) }", &b);
    print_handler(t, "b1", "both", m->cell_of[4], "", "(e, {c}) => { c.set((c.get() + e) % 97) }", &b);
    stet_buf_clear(&more);
    stet_buf_printf(&more, ",'d':{'$':'c%d','asCell':true},'v':{'$':'n%d'},'m':{'$':'m%d/x%d'}", m->other_cell,
                    m->item_of, m->mat_of.n, m->mat_of.key);
    print_handler(t, "b2", "both", m->cell_of[4], stet_buf_cstr(&more),
                  "(e, {c, d, v, m}) => { d.set((c.get() + v + m) % 97) }", &b);
    stet_buf_str(&b, "],'result':{");
    bool first = true;
    for (int i = 0; i < ITEMS; i += 3) /* some are wanted, some only by others, some by nobody */
        if (m->items[i].op != MATERIALIZE) {
            stet_buf_printf(&b, "%s'r%d':{'$':'n%d'}", first ? "" : ",", i, i);
            first = false;
        }
    stet_buf_str(&b, "}}");
    kit_install(t->w, "p", stet_buf_cstr(&b));
    stet_buf_release(&b);
    stet_buf_release(&more);
}

static long number_at(test *t, const char *id, const char *key, bool *there) {
    stet_path path = STET_PATH_INIT;
    stet_value v = stet_value_null();
    stet_path_push(&path, "value");
    if (key)
        stet_path_push(&path, key);
    *there = stet_sched_get(t->w->sched, id, NULL, stet_path_ref(&path), &v, NULL) == STET_OK &&
             stet_value_type(v) == STET_TYPE_INT;
    long n = *there ? (long)stet_value_as_int(v) : -1;
    stet_value_release(v);
    stet_path_release(&path);
    return n;
}

static void expect(test *t, const char *id, const char *key, long want) {
    bool there;
    long got = number_at(t, id, key, &there);
    if (got != want)
        fail_msg("step %ld: %s%s%s: from scratch %ld, incremental %s%ld; ran: %s", t->step, id, key ? "/" : "",
                 key ? key : "", want, there ? "" : "nothing ", got, stet_buf_cstr(&t->w->ran));
    t->compared++;
}

static void compare_state(test *t) {
    char name[32];
    for (int i = 0; i < KEYS; i++) {
        snprintf(name, sizeof name, "k%d", i);
        expect(t, "piece:p:argument", name, t->m.keys[i]);
    }
    for (int i = 0; i < CELLS; i++) {
        snprintf(name, sizeof name, "piece:p:cell:c%d", i);
        expect(t, name, NULL, t->m.cells[i]);
    }
}

static void compare_whole(test *t) {
    judged j = judge(&t->m);
    char name[32], key[16];
    compare_state(t);
    for (int i = 0; i < ITEMS; i++) {
        if (t->m.items[i].op == MATERIALIZE) {
            snprintf(name, sizeof name, "piece:p:cell:m%d", i);
            for (int k = 0; k < MATKEYS; k++) {
                snprintf(key, sizeof key, "x%d", k);
                expect(t, name, key, j.mat[i][k]);
            }
        } else if (i % 3 == 0) {
            snprintf(key, sizeof key, "r%d", i);
            expect(t, "piece:p", key, j.out[i]);
        }
    }
}

/* What the plan holds of each loaded action is what is stored of it. */
static void compare_index(test *t) {
    stet_plan *plan = stet_sched_plan(t->w->sched);
    stet_memo *memo = stet_sched_memo(t->w->sched);
    for (uint32_t id = 0; id < stet_plan_count(plan); id++) {
        const char *name = stet_plan_name(plan, id);
        if (stet_plan_find(plan, name, strlen(name)) != id || stet_plan_is_unknown(plan, id))
            continue;
        stet_arena arena = STET_ARENA_INIT;
        stet_memo_action x;
        ok(stet_memo_load(memo, "piece:p", strchr(name, '/') + 1, &arena, &x, &err));
        if ((x.state != STET_STATE_STANDS) != stet_plan_is_dirty(plan, id))
            fail_msg("step %ld: %s is %s in memory and %s in the index", t->step, name,
                     stet_plan_is_dirty(plan, id) ? "dirty" : "standing", stet_action_state_name(x.state));
        stet_plan_write writes[32];
        size_t count = stet_plan_writes(plan, id, writes, 32);
        for (size_t i = 0; i < count; i++) {
            size_t len;
            const char *doc = stet_plan_doc_name(plan, writes[i].doc, &len);
            bool found = false;
            for (size_t k = 0; k < x.write_count && !found; k++)
                found = strcmp(x.writes[k].name.id, doc + 2) == 0 &&
                        stet_path_compare(x.writes[k].path, writes[i].path) == 0;
            if (!found)
                fail_msg("step %ld: %s writes %s in memory, and not in the index", t->step, name, doc + 2);
        }
        if (count != x.write_count)
            fail_msg("step %ld: %s has %zu writes in memory and %zu in the index", t->step, name, count, x.write_count);
        stet_arena_release(&arena);
    }
}

static void settle_whole(test *t) {
    kit_run(t->w, "p");
    t->whole = true;
    t->runs += (long)t->w->report.runs;
    assert_int_equal(t->w->report.aside, 0);
    if (t->w->report.failed)
        fail_msg("step %ld: %s", t->step, stet_json_print(t->w->report.problems, STET_JSON_CANONICAL, NULL));
    compare_whole(t);
    if (pick(t, 8) == 0) {
        kit_settle(t->w);
        if (t->w->report.runs)
            fail_msg("step %ld: %s ran in a piece that had settled", t->step, stet_buf_cstr(&t->w->ran));
        if (!t->others)
            compare_index(t);
    }
}

/* One cell alone, in a scheduler that was asked for nothing else. */
static void demand_one(test *t) {
    int i = pick(t, ITEMS), k = pick(t, MATKEYS);
    bool mat = t->m.items[i].op == MATERIALIZE;
    char id[32], key[16];
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    snprintf(id, sizeof id, mat ? "piece:p:cell:m%d" : "piece:p:node:n%d", i);
    snprintf(key, sizeof key, "x%d", k);
    if (mat)
        stet_path_push(&path, key);
    ok(stet_sched_demand_cell(t->w->sched, id, NULL, stet_path_ref(&path), &err));
    stet_path_release(&path);
    kit_settle(t->w);
    t->promoted += (long)t->w->report.runs;
    judged j = judge(&t->m);
    expect(t, id, mat ? key : NULL, mat ? j.mat[i][k] : j.out[i]);
}

static void event_name(size_t n, char out[32]) {
    snprintf(out, 32, "e%zu", n);
}

static void check_sent(test *t, size_t n, stet_status status, const stet_error *e) {
    sent_event *x = &t->events[n];
    model after = t->m;
    bool was = x->applied, works = was || apply(&after, x->stream, x->value);
    if (works != (status == STET_OK))
        fail_msg("step %ld: event %zu (%s %ld): %s", t->step, n, streams[x->stream], x->value, e->message);
    if (status != STET_OK) {
        t->refused++;
        return;
    }
    if (t->w->sent.applied == was)
        fail_msg("step %ld: event %zu (%s) %s", t->step, n, streams[x->stream],
                 was ? "was applied twice" : "was taken for applied");
    if (!was) {
        t->m = after;
        x->applied = true;
        t->applied++;
    } else {
        t->again++;
    }
    compare_state(t);
}

static void send(test *t, size_t n) {
    char id[32], json[24];
    stet_error e = STET_ERROR_INIT;
    event_name(n, id);
    snprintf(json, sizeof json, "%ld", t->events[n].value);
    check_sent(t, n, kit_send(t->w, "p", streams[t->events[n].stream], json, id, &e), &e);
    stet_error_clear(&e);
}

static size_t new_event(test *t) {
    t->events = stet_realloc(t->events, (t->event_count + 1) * sizeof *t->events);
    t->events[t->event_count] = (sent_event){pick(t, STREAMS), pick(t, 50), false};
    return t->event_count++;
}

/* A process of its own sends the event and dies at a random system call. */
static void killed_sender(test *t) {
    size_t n = new_event(t);
    char id[32];
    event_name(n, id);
    bool killed = other_process(t->w, streams[t->events[n].stream], t->events[n].value, id,
                                pick(t, 2) ? 1 + pick(t, 420) : -pick(t, 3));
    /* Whether it got so far is told by the event's document. */
    char *doc = stet_piece_part("p", "event", id);
    stet_doc_state d;
    ok(stet_space_load(t->w->space, 0, &(stet_docname){doc, NULL}, -1, &d, &err));
    stet_value_release(d.value);
    stet_free(doc);
    t->kills += killed;
    t->others = true;
    if (d.exists) {
        assert_true(apply(&t->m, t->events[n].stream, t->events[n].value));
        t->events[n].applied = true;
        t->killed_applied += killed;
        ok(stet_sched_finish_events(t->w->sched, "p", NULL, &err)); /* it may have left a handler its turn */
    }
    compare_state(t);
    send(t, n);
}

static void edit(test *t) {
    char cell[48], json[16];
    long value = pick(t, 60);
    snprintf(json, sizeof json, "%ld", value);
    int r = pick(t, 20), i = pick(t, ITEMS);
    if (r < 12) {
        int k = pick(t, KEYS);
        t->m.keys[k] = value;
        snprintf(cell, sizeof cell, "piece:p:argument/k%d", k);
    } else if (r < 18) {
        int c = pick(t, CELLS);
        t->m.cells[c] = value;
        snprintf(cell, sizeof cell, "piece:p:cell:c%d", c);
    } else if (t->m.items[i].op == MATERIALIZE) { /* what somebody else wrote: it is restored */
        snprintf(cell, sizeof cell, "piece:p:cell:m%d/x%d", i, pick(t, MATKEYS));
    } else {
        snprintf(cell, sizeof cell, "piece:p:node:n%d", i);
    }
    kit_set(t->w, cell, json);
}

static void one_step(test *t) {
    int r = pick(t, 1000);
    if (r < 420) {
        edit(t);
    } else if (r < 660) {
        send(t, new_event(t));
    } else if (r < 720 && t->event_count > 0) {
        send(t, (size_t)pick(t, (int)t->event_count));
    } else if (r < 745) {
        if (pick(t, 3))
            random_item(t, pick(t, ITEMS));
        else
            random_handlers(t);
        install(t);
        t->whole = false;
    } else if (r < 770) {
        kit_restart(t->w);
        t->whole = t->others = false;
        t->restarts++;
    } else if (r < 778) {
        killed_sender(t);
    }
    if (!t->whole && pick(t, 3) == 0)
        demand_one(t);
    else if (pick(t, 5) < 2)
        settle_whole(t);
    if (t->step % 500 == 0)
        kit_sound(t->w);
}

static void incremental_equals_from_scratch_with_events(void **state) {
    (void)state;
    const char *seed = getenv("STET_TEST_SEED"), *longer = getenv("STET_TEST_LONG"),
               *shorter = getenv("STET_TEST_SHORT");
    long steps = longer ? 1000000 : shorter ? 600 : 5000;
    test *t = stet_alloc_zero(sizeof *t);
    t->random = seed ? strtoull(seed, NULL, 10) : 2463534242110031ull;
    t->w = kit_start();
    for (int i = 0; i < KEYS; i++)
        t->m.keys[i] = i + 1;
    for (int i = 0; i < ITEMS; i++)
        random_item(t, i);
    random_handlers(t);
    install(t);
    for (t->step = 1; t->step <= steps; t->step++)
        one_step(t);
    settle_whole(t);
    kit_sound(t->w);
    printf("# %ld steps: %ld events applied, %ld sent again, %ld refused; %ld senders killed, %ld of them after the "
           "event was "
           "applied; %ld runs, %ld of them for one cell; %ld values compared; %ld restarts\n",
           steps, t->applied, t->again, t->refused, t->kills, t->killed_applied, t->runs + t->promoted, t->promoted,
           t->compared, t->restarts);
    assert_true(t->applied > steps / 8 && t->compared > steps);
    kit_stop(t->w);
    free(t->events);
    free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(incremental_equals_from_scratch_with_events)};
    other_main();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
