/* events.c - events with several handlers, events that handlers send on, and elements that come and go by events.
 *
 * The judge is a model that applies events one by one: each handler, in its turn, on values computed from scratch. The
 * piece has cells, computations over them, and a list whose elements have a stream of their own with two handlers.
 * Handlers store what computations make of the cells that the handler before has changed, send on (to each other, to
 * elements that they have just added, to some that they are about to remove), and fail, which loses a turn. A lost turn
 * is tried again when its event is sent again. Senders are killed at any system call and between two commits, in a
 * process of their own; what they leave is finished by whoever comes next. Each handler has each event exactly once.
 */

#include "../sched_other.h"

#define CELLS     4
#define NODES     6
#define IDS       6
#define PRIME     97
#define MAX_TURNS 400

enum { PUT, SNAP, PAIR, FAN, GROW, SHRINK, STREAMS, HIT_ID, HIT_AT };
static const char *const streams[STREAMS] = {"put", "snap", "pair", "fan", "grow", "shrink"};

/* Where an event goes, and who of its handlers gets it: 0 all of them, 1 the second alone. */
typedef struct turn {
    int to;
    long value;
    int element; /* of HIT_ID its id, of HIT_AT its place in the list */
    int only;
} turn;

typedef struct model {
    /* the program */
    int in[NODES][2], k[NODES]; /* inputs: cells, then nodes before it */
    int cell_of[STREAMS], other_of[STREAMS], node_of[STREAMS], base, log;
    /* the state */
    long cells[CELLS];
    int rows, ids[IDS];
    long n[IDS], count[IDS]; /* by id */
    long delivered;
} model;

typedef struct sent_event {
    int stream;
    long value;
    bool applied;
    turn lost[MAX_TURNS];
    int lost_count;
} sent_event;

typedef struct test {
    world *w;
    model m;
    uint64_t random;
    long step;
    sent_event *events;
    size_t event_count;
    long applied, refused, lost, mended, kills, half, compared;
} test;

static int pick(test *t, int n) {
    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    return (int)(t->random % (uint64_t)n);
}

/* Node number NODES is the sum over the elements. */
static long twice(const model *m, int id);
static long node(const model *m, int i) {
    long in[2];
    if (i == NODES) {
        long sum = 0;
        for (int k = 0; k < m->rows; k++)
            sum = (sum + twice(m, m->ids[k])) % PRIME;
        return sum;
    }
    for (int k = 0; k < 2; k++)
        in[k] = m->in[i][k] < CELLS ? m->cells[m->in[i][k]] : node(m, m->in[i][k] - CELLS);
    return (in[0] + in[1] * 3 + m->k[i]) % PRIME;
}

static long twice(const model *m, int id) {
    return (m->count[id] * 2 + m->n[id] + node(m, m->base)) % PRIME;
}

static int place_of(const model *m, int id) {
    int i = 0;
    while (i < m->rows && m->ids[i] != id)
        i++;
    return i < m->rows ? i : -1;
}

typedef struct queue {
    turn at[MAX_TURNS];
    int first, end;
} queue;

static void push(queue *q, turn x) {
    assert_true(q->end < MAX_TURNS);
    q->at[q->end++] = x;
}

/* One turn; `lost` gets what failed. False: its first handler did. */
static bool take(model *m, turn x, queue *q, sent_event *lost) {
    long e = x.value, v = x.to < STREAMS ? node(m, m->node_of[x.to]) : 0;
    long *c = x.to < STREAMS ? &m->cells[m->cell_of[x.to]] : NULL,
         *d = x.to < STREAMS ? &m->cells[m->other_of[x.to]] : NULL;
    int at, id;
    m->delivered++;
    switch (x.to) {
    case PUT:
        *c = (*c + e) % PRIME;
        return true;
    case SNAP:
        *c = (v + e) % PRIME;
        return true;
    case PAIR:
        if (!x.only)
            *c = (*c + e) % PRIME;
        v = node(m, m->node_of[PAIR]);
        if ((v + e) % 5 == 0)
            lost->lost[lost->lost_count++] = (turn){PAIR, e, 0, 1};
        else
            *d = (v + *c + *d) % PRIME;
        return true;
    case FAN:
        *c = (*c + e) % PRIME;
        if (e & 1)
            push(q, (turn){SNAP, e, 0, 0});
        if (e & 2)
            push(q, (turn){PAIR, e + 1, 0, 0});
        if (e & 4)
            push(q, (turn){GROW, e + v, 0, 0});
        if (e & 8)
            push(q, (turn){SHRINK, e, 0, 0});
        if (e >= 16)
            push(q, (turn){FAN, e - 16, 0, 0});
        push(q, (turn){PUT, v, 0, 0});
        return true;
    case GROW:
        id = (int)(e % IDS);
        at = place_of(m, id);
        if (at >= 0) {
            push(q, (turn){HIT_ID, e, id, 0});
            return true;
        }
        m->ids[m->rows] = id;
        m->n[id] = e;
        m->count[id] = 0;
        push(q, (turn){HIT_AT, e, m->rows++, 0});
        return true;
    case SHRINK:
        if (m->rows == 0)
            return false;
        at = (int)(e % m->rows);
        push(q, (turn){HIT_ID, e, m->ids[at], 0});
        push(q, (turn){HIT_ID, e + 1, m->ids[0], 0});
        for (int i = at; i + 1 < m->rows; i++)
            m->ids[i] = m->ids[i + 1];
        m->rows--;
        return true;
    case HIT_AT:
        if (x.element >= m->rows)
            return false;
        x.element = m->ids[x.element];
        break;
    default:
        if (place_of(m, x.element) < 0)
            return false;
    }
    m->count[x.element] = (m->count[x.element] + e) % PRIME;
    m->cells[m->log] = (m->cells[m->log] * 31 + twice(m, x.element) + e) % PRIME;
    return true;
}

static void take_all(model *m, queue *q, sent_event *x) {
    for (; q->first < q->end; q->first++)
        if (!take(m, q->at[q->first], q, x))
            x->lost[x->lost_count++] = q->at[q->first];
}

/* The event for the first time; false: refused. */
static bool apply(model *m, sent_event *x) {
    queue q = {0};
    if (!take(m, (turn){x->stream, x->value, 0, 0}, &q, x))
        return false;
    take_all(m, &q, x);
    return x->applied = true;
}

/* And again: what it has lost. */
static void apply_again(model *m, sent_event *x) {
    queue q = {0};
    for (int i = 0; i < x->lost_count; i++)
        push(&q, x->lost[i]);
    x->lost_count = 0;
    take_all(m, &q, x);
}

static void random_program(test *t) {
    model *m = &t->m;
    for (int i = 0; i < NODES; i++) {
        m->k[i] = pick(t, 20);
        for (int k = 0; k < 2; k++)
            m->in[i][k] = pick(t, CELLS + i);
    }
    for (int i = 0; i < STREAMS; i++) {
        m->cell_of[i] = pick(t, CELLS);
        m->other_of[i] = pick(t, CELLS);
        m->node_of[i] = pick(t, NODES + 1);
    }
    m->base = pick(t, NODES);
    m->log = pick(t, CELLS);
}

static void node_name(int i, char out[16]) {
    snprintf(out, 16, i == NODES ? "total" : "n%d", i);
}

static void print_handler(const model *m, int i, const char *id, const char *more, const char *code, stet_buf *b) {
    char v[16];
    node_name(m->node_of[i], v);
    stet_buf_printf(b,
                    ",{'id':'%s','stream':{'$':'%s'},'inputs':{'c':{'$':'c%d','asCell':true},'d':{'$':'c%d','asCell':"
                    "true},'v':{'$':'%s'}%s},'module':^%s^}",
                    id, streams[i], m->cell_of[i], m->other_of[i], v, more, code);
}

static void install(test *t) {
    const model *m = &t->m;
    stet_buf b = STET_BUF(0);
    stet_buf_str(&b,
                 "{'pattern':1,'name':'p','cells':{'pair':{},'rows':{'default':[]},'c0':{'default':0},'c1':{'default':"
                 "0},'c2':{'default':0},'c3':{'default':0}},'nodes':[");
    for (int i = 0; i < NODES; i++) {
        stet_buf_printf(&b, "{'id':'n%d','inputs':{", i);
        for (int k = 0; k < 2; k++)
            stet_buf_printf(&b, "%s'i%d':{'$':'%s%d'}", k ? "," : "", k, m->in[i][k] < CELLS ? "c" : "n",
                            m->in[i][k] < CELLS ? m->in[i][k] : m->in[i][k] - CELLS);
        stet_buf_printf(&b, "},'module':#({i0, i1}) => (i0 + i1 * 3 + %d) %% 97#},", m->k[i]);
    }
    stet_buf_printf(
        &b,
        "{'id':'items','inputs':{'list':{'$':'rows'},'base':{'$':'n%d'},'log':{'$':'c%d','asCell':true}},'module':{"
        "'type':'ref','ref':'map','key':'id','pattern':{'pattern':1,'name':'row','cells':{'count':{'default':0},'hit':{"
        "}},"
        "'nodes':[{'id':'twice','inputs':{'count':{'$':'count'},'n':{'$':'argument/element/n'},'base':{'$':"
        "'argument/base'}},'module':#({count, n, base}) => (count * 2 + n + base) %% 97#},"
        "{'id':'h1','stream':{'$':'hit'},'inputs':{'count':{'$':'count','asCell':true}},'module':"
        "^(e, {count}) => { count.set((count.get() + e) %% 97) }^},"
        "{'id':'h2','stream':{'$':'hit'},'inputs':{'twice':{'$':'twice'},'log':{'$':'argument/log','asCell':true}},"
        "'module':^(e, {twice, log}) => { log.set((log.get() * 31 + twice + e) %% 97) }^}],"
        "'result':{'hit':{'$':'hit'},'twice':{'$':'twice'}}}}},"
        "{'id':'total','inputs':{'items':{'$':'items'}},'module':#({items}) => items.reduce((s, x) => (s + x.twice) %% "
        "97, 0)#}",
        m->base, m->log);
    print_handler(m, PUT, "put", "", "(e, {c}) => { c.set((c.get() + e) % 97) }", &b);
    print_handler(m, SNAP, "snap", "", "(e, {c, v}) => { c.set((v + e) % 97) }", &b);
    print_handler(m, PAIR, "pair1", "", "(e, {c}) => { c.set((c.get() + e) % 97) }", &b);
    print_handler(m, PAIR, "pair2", "",
                  "(e, {c, d, v}) => { if ((v + e) % 5 === 0) throw new Error(`five`); d.set((v + c.get() + d.get()) % "
                  "97) }",
                  &b);
    print_handler(
        m, FAN, "fan",
        ",'snap':{'$':'snap','asCell':true},'pair':{'$':'pair','asCell':true},'grow':{'$':'grow','asCell':true},"
        "'shrink':{'$':'shrink','asCell':true},'fan':{'$':'fan','asCell':true},'put':{'$':'put','asCell':true}",
        "(e, {c, v, snap, pair, grow, shrink, fan, put}) => { c.set((c.get() + e) % 97); if (e & 1) snap.send(e); "
        "if (e & 2) pair.send(e + 1); if (e & 4) grow.send(e + v); if (e & 8) shrink.send(e); if (e >= 16) "
        "fan.send(e - 16); put.send(v) }",
        &b);
    print_handler(m, GROW, "grow", ",'rows':{'$':'rows','asCell':true},'items':{'$':'items','asCell':true}",
                  "(e, {rows, items}) => { let i = rows.get().findIndex((r) => r.id === e % 6); if (i < 0) { i = "
                  "rows.get().length; rows.push({id: e % 6, n: e}) } items.key(i).key(`hit`).send(e) }",
                  &b);
    print_handler(
        m, SHRINK, "shrink", ",'rows':{'$':'rows','asCell':true},'items':{'$':'items','asCell':true}",
        "(e, {rows, items}) => { const all = rows.get(); if (!all.length) throw new Error(`none`); const at = e % "
        "all.length; items.key(at).key(`hit`).send(e); rows.set(all.filter((r, i) => i !== at)); "
        "items.key(0).key(`hit`).send(e + 1) }",
        &b);
    stet_buf_str(&b, "],'result':{'total':{'$':'total'},'items':{'$':'items'}");
    for (int i = 0; i < NODES; i += 2)
        stet_buf_printf(&b, ",'n%d':{'$':'n%d'}", i, i);
    stet_buf_str(&b, "}}");
    kit_install(t->w, "p", stet_buf_cstr(&b));
    stet_buf_release(&b);
}

static void expect(test *t, const char *cell, const char *want) {
    char *id;
    stet_path path = STET_PATH_INIT;
    stet_value v = stet_value_null();
    ok(stet_cell_parse(cell, false, &id, &path, &err));
    stet_status status = stet_sched_get(t->w->sched, id, NULL, stet_path_ref(&path), &v, NULL);
    char *text = status == STET_OK ? stet_json_print(v, STET_JSON_CANONICAL, NULL) : stet_strdup("nothing");
    if (strcmp(text, want) != 0)
        fail_msg("step %ld: %s: the model has %s, the piece has %s", t->step, cell, want, text);
    t->compared++;
    stet_value_release(v);
    stet_free(text);
    stet_free(id);
    stet_path_release(&path);
}

static void expect_number(test *t, const char *cell, long want) {
    char text[24];
    snprintf(text, sizeof text, "%ld", want);
    expect(t, cell, text);
}

static void compare_state(test *t) {
    const model *m = &t->m;
    char cell[64];
    stet_buf rows = STET_BUF(0);
    stet_buf_char(&rows, '[');
    for (int i = 0; i < m->rows; i++)
        stet_buf_printf(&rows, "%s{\"id\":%d,\"n\":%ld}", i ? "," : "", m->ids[i], m->n[m->ids[i]]);
    stet_buf_char(&rows, ']');
    expect(t, "piece:p:cell:rows", stet_buf_cstr(&rows));
    for (int i = 0; i < CELLS; i++) {
        snprintf(cell, sizeof cell, "piece:p:cell:c%d", i);
        expect_number(t, cell, m->cells[i]);
    }
    expect(t, "piece:p:queue", "nothing");
    stet_buf_release(&rows);
}

static void settle(test *t) {
    char cell[64];
    kit_run(t->w, "p");
    assert_int_equal(t->w->report.failed + t->w->report.aside, 0);
    compare_state(t);
    expect_number(t, "piece:p/total", node(&t->m, NODES));
    for (int i = 0; i < NODES; i += 2) {
        snprintf(cell, sizeof cell, "piece:p/n%d", i);
        expect_number(t, cell, node(&t->m, i));
    }
    for (int i = 0; i < t->m.rows; i++) {
        snprintf(cell, sizeof cell, "piece:p/items/%d/twice", i);
        expect_number(t, cell, twice(&t->m, t->m.ids[i]));
        snprintf(cell, sizeof cell, "piece:p:cell:items[%d].count", t->m.ids[i]);
        expect_number(t, cell, t->m.count[t->m.ids[i]]);
    }
}

static void send(test *t, size_t n) {
    sent_event *x = &t->events[n];
    char id[32], json[24];
    stet_error e = STET_ERROR_INIT;
    snprintf(id, sizeof id, "e%zu", n);
    snprintf(json, sizeof json, "%ld", x->value);
    bool was = x->applied, refused = false;
    int before = x->lost_count;
    if (was)
        apply_again(&t->m, x);
    else
        refused = !apply(&t->m, x);
    stet_status status = kit_send(t->w, "p", streams[x->stream], json, id, &e);
    if ((status == STET_OK) != (!refused && x->lost_count == 0))
        fail_msg("step %ld: event %zu (%s %ld), %d turns lost: %s", t->step, n, streams[x->stream], x->value,
                 x->lost_count, e.message);
    if (t->w->sent.applied != (!was && !refused))
        fail_msg("step %ld: event %zu (%s): %s", t->step, n, streams[x->stream], was ? "applied twice" : "not applied");
    t->applied += !was && !refused;
    t->refused += refused;
    t->lost += !was && x->lost_count;
    t->mended += was && x->lost_count < before;
    stet_error_clear(&e);
    compare_state(t);
}

static size_t new_event(test *t) {
    t->events = stet_realloc(t->events, (t->event_count + 1) * sizeof *t->events);
    t->events[t->event_count] = (sent_event){.stream = pick(t, STREAMS), .value = pick(t, 60)};
    return t->event_count++;
}

static bool exists(test *t, const char *id) {
    stet_doc_state d;
    ok(stet_space_load(t->w->space, 0, &(stet_docname){id, NULL}, -1, &d, &err));
    stet_value_release(d.value);
    return d.exists;
}

/* A process of its own sends the event and dies; whoever comes next finishes it. */
static void killed_sender(test *t) {
    size_t n = new_event(t);
    sent_event *x = &t->events[n];
    char id[32], doc[64];
    snprintf(id, sizeof id, "e%zu", n);
    snprintf(doc, sizeof doc, "piece:p:event:%s", id);
    t->kills += other_process(t->w, streams[x->stream], x->value, id, pick(t, 2) ? 1 + pick(t, 1500) : -pick(t, 12));
    if (pick(t, 3) == 0)
        kit_restart(t->w);
    bool half = exists(t, "piece:p:queue");
    t->half += half;
    if (exists(t, doc) && !apply(&t->m, x))
        fail_msg("step %ld: event %zu was applied, and should have been refused", t->step, n);
    if (half && pick(t, 3) == 0)
        ok(stet_sched_finish_events(t->w->sched, "p", NULL, &err));
    else if (half && pick(t, 2))
        send(t, new_event(t));
    send(t, n);
}

static void one_step(test *t) {
    int r = pick(t, 100);
    char cell[32];
    if (r < 50) {
        send(t, new_event(t));
    } else if (r < 62 && t->event_count > 0) {
        send(t, (size_t)pick(t, (int)t->event_count));
    } else if (r < 75) {
        int c = pick(t, CELLS);
        t->m.cells[c] = pick(t, PRIME);
        snprintf(cell, sizeof cell, "piece:p:cell:c%d", c);
        stet_tx *tx; /* as a person sets it: it stays, whoever has the cell later (graph/owned.h) */
        ok(stet_tx_begin(t->w->space, "", &tx, &err));
        ok(stet_tx_set(tx, cell, NULL, stet_value_int(t->m.cells[c]), &err));
        ok(stet_tx_commit(tx, NULL, &err));
    } else if (r < 78) {
        random_program(t);
        install(t);
    } else if (r < 82) {
        kit_restart(t->w);
    } else if (r < 90) {
        killed_sender(t);
    }
    if (pick(t, 6) == 0)
        settle(t);
    if (t->step % 300 == 0)
        kit_sound(t->w);
}

static void events_one_by_one(void **state) {
    (void)state;
    const char *seed = getenv("STET_TEST_SEED"), *longer = getenv("STET_TEST_LONG"),
               *shorter = getenv("STET_TEST_SHORT");
    long steps = longer ? 200000 : shorter ? 150 : 900;
    test *t = stet_alloc_zero(sizeof *t);
    t->random = (seed ? strtoull(seed, NULL, 10) : 1) * 2463534242110031ull;
    t->w = kit_start();
    random_program(t);
    install(t);
    for (t->step = 1; t->step <= steps; t->step++)
        one_step(t);
    settle(t);
    kit_sound(t->w);
    printf("# %ld steps: %ld events applied in %ld turns, %ld refused, %ld lost turns, %ld of them mended later; %ld "
           "senders "
           "killed, %ld left a queue; %ld values compared\n",
           steps, t->applied, t->m.delivered, t->refused, t->lost, t->mended, t->kills, t->half, t->compared);
    assert_true(t->applied > steps / 4 && t->lost > 0 && (shorter || t->half > 0));
    kit_stop(t->w);
    free(t->events);
    free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(events_one_by_one)};
    other_main();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
