/* mixed.c - the central property with everything in one piece.
 *
 * Whatever is edited, sent, sent again, reprogrammed, overwritten, restarted or killed, the incremental result equals
 * that of a run from scratch. Every event is applied at most once, and no action runs unless something that it read has
 * changed.
 *
 * One piece: a map whose elements have a cell, streams of their own and, in some programs, a nested map or an action
 * that fails; a filter, a reduce; a materializer that says where it writes and one that does not; conditions, an action
 * that fails at times, an effect; handlers that read what must be fresh, send to every element, fail, or take an
 * element out of the list. Steps: edits of the list and of what is around it, events to the piece and to elements (also
 * to some that are not there), events sent again, other programs, outputs and elements that somebody else overwrites,
 * demands for a part, restarts, and processes that are killed at a random system call while they send or settle. A
 * naive evaluator and a replay of the applied events are the judge.
 *
 * STET_TEST_SEED is the seed of the first world; each world is one project and STEPS steps.
 */

#include "../sched_other.h"
#include "graph/child.h"

#define MOST  5
#define IDS   30
#define PRIME 97
#define STEPS 1000 /* of one project: its history grows, and so does what a step costs */

typedef struct row {
    int id;
    long n, ns[2];
} row;

typedef struct model {
    row rows[MOST];
    int len;
    long factor, limit, snap;
    bool mode;
    int program, k; /* which child pattern; a constant in the code of some nodes */
    long count[IDS];
} model;

typedef struct sent_event {
    char stream[32];
    int kind, id; /* of the element */
    long value;
    bool applied;
} sent_event;

typedef struct test {
    world *w;
    model m;
    uint64_t random, seed;
    long step;
    bool resting[IDS]; /* ids that went since all was settled: whether their child is still there is not known */
    bool whole;        /* this scheduler was asked for the whole piece */
    /* Another process has run actions: this one may have them in memory as not run yet, which is more than the record
     * says, until it starts again. */
    bool others;
    int64_t base;  /* sequence at which all had settled; -1: there is no telling what may run */
    int changes;   /* commits since */
    stet_buf left; /* " NODE NODE ": who was not needed then, and may be dirty since long before */
    sent_event *events;
    size_t event_count;
    long applied, again, refused, absent, kills, killed_applied, restarts, parts, runs, twice, judged, programs,
        meddled, failures, effects;
} test;

static int pick(test *t, int n) {
    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    return (int)(t->random % (uint64_t)n);
}

#define wrong(...)                                                                                                     \
    do {                                                                                                               \
        print_error("seed %llu, step %ld; ran: %s\n", (unsigned long long)t->seed, t->step,                            \
                    stet_buf_cstr(&t->w->ran));                                                                        \
        fail_msg(__VA_ARGS__);                                                                                         \
    } while (0)

enum { PARTS = 7 };
static const char *const parts[PARTS] = {"cond", "fold", "frail", "items", "kept", "other", "seen"};

static bool row_fails(const model *m, const row *r) {
    return m->program == 0 && r->n * m->factor % 7 == 0;
}

static long row_x(const model *m, const row *r) {
    switch (m->program) {
    case 0:
        return (r->n * m->factor + m->count[r->id] + m->k) % PRIME;
    case 1:
        return r->n % 2 ? r->n * m->factor : m->count[r->id];
    default:
        return (r->ns[0] + r->ns[1]) * m->factor + m->count[r->id];
    }
}

static long mat_sum(const model *m) {
    long sum = m->k;
    for (int i = 0; i < m->len; i++)
        sum += m->rows[i].n;
    return sum % PRIME;
}

static long fold_of(const model *m) {
    long value = 1;
    for (int i = 0; i < m->len; i++)
        value = value * 2 % 1009 + m->rows[i].n;
    return value;
}

static long seen_of(const model *m) {
    long odd = 0;
    for (int i = 0; i < m->len; i++)
        odd += m->rows[i].n % 2;
    return odd + 1;
}

/* What a part of the result is; "*" for what keeps an older value because it fails. */
static void judge(const model *m, int part, stet_buf *b) {
    bool first = true;
    switch (part) {
    case 0:
        stet_buf_printf(b, "%ld", m->mode ? fold_of(m) : seen_of(m));
        break;
    case 1:
        stet_buf_printf(b, "%ld", fold_of(m));
        break;
    case 2:
        if (m->factor == 3)
            stet_buf_str(b, "*");
        else
            stet_buf_printf(b, "%ld", m->factor);
        break;
    case 3:
        stet_buf_char(b, '[');
        for (int i = 0; i < m->len; i++) {
            stet_buf_printf(b, "%s{\"add\":{\"$stream\":true},\"count\":%ld,\"x\":", i ? "," : "",
                            m->count[m->rows[i].id]);
            if (row_fails(m, &m->rows[i]))
                stet_buf_str(b, "*}");
            else
                stet_buf_printf(b, "%ld}", row_x(m, &m->rows[i]));
        }
        stet_buf_char(b, ']');
        break;
    case 4:
        stet_buf_char(b, '[');
        for (int i = 0; i < m->len; i++)
            if (m->rows[i].n > m->limit) {
                stet_buf_printf(b, "%s%d", first ? "" : ",", m->rows[i].id);
                first = false;
            }
        stet_buf_char(b, ']');
        break;
    case 5:
        stet_buf_printf(b, "%ld", m->factor * 2);
        break;
    default:
        stet_buf_printf(b, "%ld", seen_of(m));
    }
}

static row *find_row(model *m, int id) {
    for (int i = 0; i < m->len; i++)
        if (m->rows[i].id == id)
            return &m->rows[i];
    return NULL;
}

static void remove_row(test *t, model *m, int at) {
    t->resting[m->rows[at].id] = true;
    memmove(&m->rows[at], &m->rows[at + 1], (size_t)(m->len - at - 1) * sizeof *m->rows);
    m->len--;
}

enum { ADD, DROP, ALL, SNAP, BAD, KINDS };

static void add_to(model *m, const row *r, long e) {
    m->count[r->id] = (m->count[r->id] + e * r->n * m->factor) % PRIME;
}

/* What an event does to the state, or how it is refused. */
static stet_status apply(test *t, model *m, const sent_event *e) {
    row *r = find_row(m, e->id);
    switch (e->kind) {
    case ADD:
    case DROP:
        if (!r)
            return STET_NOT_FOUND;
        if (e->kind == ADD)
            add_to(m, r, e->value);
        else
            remove_row(t, m, (int)(r - m->rows));
        return STET_OK;
    case ALL:
        for (int i = 0; i < m->len; i++)
            add_to(m, &m->rows[i], e->value);
        return STET_OK;
    case SNAP: /* reads what the materializer wrote: that must be fresh */
        m->snap = (mat_sum(m) + e->value) % PRIME;
        return STET_OK;
    default:
        if (e->value % 3 == 0)
            return STET_FAILED;
        m->snap = e->value;
        return STET_OK;
    }
}

#define REFS(id, ref, inputs) "{'id':'" id "','module':{'type':'ref','ref':'" ref "'},'inputs':" inputs "}"
#define EACHS(id, ref, pattern, inputs)                                                                                \
    "{'id':'" id "','module':{'type':'ref','ref':'" ref "','key':'id','pattern':{'pattern':1,'name':'c'," pattern      \
    "}},'inputs':{'list':{'$':'argument/rows'}" inputs "}}"
#define SCALED REFS("scaled", "multiply", "[{'$':'argument/element/n'},{'$':'argument/factor'}]")
#define CHILD_HANDLERS                                                                                                 \
    ",{'id':'add','stream':{'$':'add'},'inputs':{'c':{'$':'count','asCell':true},'s':{'$':'scaled'}},'module':"        \
    "^(e, {c, s}) => { c.set((c.get() + e * s) % 97) }^},"                                                             \
    "{'id':'drop','stream':{'$':'drop'},'inputs':{'id':{'$':'argument/element/id'},'remove':{'$':'argument/remove',"   \
    "'asCell':true}},'module':^(e, {id, remove}) => { remove.send(id) }^}"

static void install(test *t) {
    stet_buf b = STET_BUF(0);
    const model *m = &t->m;
    stet_buf_str(&b, "{'pattern':1,'name':'p','argument':{'default':{'rows':[],'factor':1,'limit':3,'mode':false}},"
                     "'cells':{'m':{'default':{}},'m2':{'default':{}},'snap':{'default':0},'fx':{}},'nodes':[");
    stet_buf_str(&b, "{'id':'items','module':{'type':'ref','ref':'map','key':'id','pattern':{'pattern':1,'name':'c',"
                     "'cells':{'count':{'default':0}},'nodes':[" SCALED CHILD_HANDLERS ",");
    if (m->program == 0)
        stet_buf_printf(&b,
                        "{'id':'x','inputs':{'s':{'$':'scaled'},'c':{'$':'count'}},'module':#({s, c}) => { if (s %% 7 "
                        "=== 0) throw new Error(`no`); return (s + c + %d) %% 97 }#}",
                        m->k);
    else if (m->program == 1)
        stet_buf_str(&b, REFS("odd", "modulo", "[{'$':'argument/element/n'},2]") "," REFS("x", "ifElse",
                                                                                          "{'condition':{'$':'odd'},"
                                                                                          "'then':{'$':'scaled'},"
                                                                                          "'else':{'$':'count'}}"));
    else
        stet_buf_str(&b,
                     "{'id':'in','module':{'type':'ref','ref':'map','pattern':{'pattern':1,'name':'d','nodes':[" REFS(
                         "z", "multiply",
                         "[{'$':'argument/element'},{'$':'argument/factor'}]") "],'result':{'$':'z'}}},'inputs':{"
                                                                               "'list':{'$':'argument/element/ns'},"
                                                                               "'factor':{'$':'argument/"
                                                                               "factor'}}}," REFS(
                                                                                   "sum", "sum",
                                                                                   "{'values':{'$':"
                                                                                   "'in'}}") "," REFS("x", "add",
                                                                                                      "[{'$':'sum'},{'$"
                                                                                                      "':'count'}]"));
    stet_buf_str(&b, "],'result':{'x':{'$':'x'},'count':{'$':'count'},'add':{'$':'add'}}}},'inputs':{'list':{'$':"
                     "'argument/rows'},'factor':{'$':'argument/factor'},'remove':{'$':'remove','asCell':true}}},");
    stet_buf_str(&b,
                 EACHS("big", "filter",
                       "'nodes':[" REFS("yes", "greater",
                                        "[{'$':'argument/element/n'},{'$':'argument/limit'}]") "],"
                                                                                               "'result':{'$':'yes'}",
                       ",'limit':{'$':'argument/limit'}") ",");
    stet_buf_str(&b, "{'id':'kept','module':{'type':'ref','ref':'map','pattern':{'pattern':1,'name':'c','nodes':[],"
                     "'result':{'$':'argument/element/id'}}},'inputs':{'list':{'$':'big'}}},");
    stet_buf_str(
        &b, EACHS("fold", "reduce",
                  "'nodes':[" REFS("two", "multiply", "[{'$':'argument/accumulator'},2]") "," REFS(
                      "mod", "modulo",
                      "[{'$':'two'},1009]") "," REFS("y", "add",
                                                     "[{'$':'mod'},{'$':'argument/element/n'}]") "],"
                                                                                                 "'result':{'$':'y'}",
                  ",'initial':1") ",");
    stet_buf_printf(
        &b,
        "{'id':'mat','materializerWriteInputPaths':['m'],'inputs':{'rows':{'$':'argument/rows'},'m':{'$':'m',"
        "'asCell':true}},'module':#({rows, m}) => { let sum = %d, odd = 0; for (const r of rows) { sum += "
        "r.n; odd += r.n %% 2 } m.key(`sum`).set(sum %% 97); m.key(`odd`).set(odd) }#},",
        m->k);
    stet_buf_str(&b, "{'id':'mat2','inputs':{'f':{'$':'argument/factor'},'m':{'$':'m2','asCell':true}},'module':"
                     "#({f, m}) => { m.key(`x`).set(f * 2) }#},");
    stet_buf_str(&b, REFS("seen", "add", "[{'$':'m/odd'},1]") "," REFS("other", "value", "[{'$':'m2/x'}]") ",");
    stet_buf_str(
        &b, REFS("cond", "ifElse", "{'condition':{'$':'argument/mode'},'then':{'$':'fold'},'else':{'$':'seen'}}") ",");
    stet_buf_str(&b, "{'id':'frail','inputs':{'f':{'$':'argument/factor'}},'module':#({f}) => { if (f === 3) throw new "
                     "Error(`three`); return f }#},"
                     "{'id':'act','kind':'effect','inputs':{'v':{'$':'cond'},'e':{'$':'fx','asCell':true}},'module':"
                     "#({v, e}) => { e.set(v); return v }#},");
    stet_buf_str(
        &b, "{'id':'remove','stream':{'$':'remove'},'inputs':{'rows':{'$':'argument/rows','asCell':true}},'module':"
            "^(e, {rows}) => { rows.set(rows.get().filter((r) => r.id !== e)) }^},"
            "{'id':'all','stream':{'$':'all'},'inputs':{'items':{'$':'items','asCell':true},'list':{'$':"
            "'argument/rows'}},'module':^(e, {items, list}) => { for (let i = 0; i < list.length; i++) "
            "items.key(i).key(`add`).send(e) }^},"
            "{'id':'snap-','stream':{'$':'snap-'},'inputs':{'m':{'$':'m/sum'},'c':{'$':'snap','asCell':true}},"
            "'module':^(e, {m, c}) => { c.set((m + e) % 97) }^},"
            "{'id':'bad','stream':{'$':'bad'},'inputs':{'c':{'$':'snap','asCell':true}},'module':"
            "^(e, {c}) => { c.set(e); if (e % 3 === 0) throw new Error(`no`) }^}],"
            "'result':{'cond':{'$':'cond'},'fold':{'$':'fold'},'frail':{'$':'frail'},'items':{'$':'items'},'kept':{"
            "'$':'kept'},'other':{'$':'other'},'seen':{'$':'seen'}}}");
    char *text = stet_buf_take(&b, NULL);
    kit_install(t->w, "p", text);
    stet_free(text);
}

/* "*" stands for any value without brackets and commas. */
static bool matches(const char *want, const char *got) {
    for (; *want; want++) {
        if (*want == '*') {
            got += strcspn(got, ",]}");
            continue;
        }
        if (*want != *got++)
            return false;
    }
    return *got == 0;
}

static void compare(test *t, const char *id, const char *key, const char *want) {
    stet_path path = STET_PATH_INIT;
    stet_value v = stet_value_null();
    stet_path_push(&path, "value");
    if (key)
        stet_path_push(&path, key);
    stet_status status = stet_sched_get(t->w->sched, id, NULL, stet_path_ref(&path), &v, NULL);
    char *got = status == STET_OK ? stet_json_print(v, STET_JSON_CANONICAL, NULL) : stet_strdup("nothing");
    if (!matches(want, got))
        wrong("%s %s: from scratch %s, incremental %s", id, key ? key : "", want, got);
    stet_free(got);
    if (status == STET_OK)
        stet_value_release(v);
    stet_path_release(&path);
    t->judged++;
}

static void compare_part(test *t, int part) {
    stet_buf want = STET_BUF(0);
    judge(&t->m, part, &want);
    compare(t, "piece:p", parts[part], stet_buf_cstr(&want));
    stet_buf_release(&want);
}

/* What people and events made: that holds at any time. */
static void compare_state(test *t) {
    char want[24], cell[48];
    snprintf(want, sizeof want, "%ld", t->m.snap);
    compare(t, "piece:p:cell:snap", NULL, want);
    for (int i = 0; i < t->m.len; i++) {
        long count = t->m.count[t->m.rows[i].id];
        stet_doc_state d;
        snprintf(cell, sizeof cell, "piece:p:cell:items[%d].count", t->m.rows[i].id);
        ok(stet_space_load(t->w->space, 0, &(stet_docname){cell, NULL}, -1, &d, &err));
        if (d.exists || count) { /* else its child is not made yet */
            snprintf(want, sizeof want, "%ld", count);
            compare(t, cell, NULL, want);
        }
        stet_value_release(d.value);
    }
}

static void compare_failures(test *t) {
    stet_value v = stet_value_null();
    size_t expected = t->m.factor == 3;
    ok(stet_observe_failures(t->w->space, 0, "piece:p", NULL, &v, &err));
    for (int i = 0; i < t->m.len; i++) {
        char name[32];
        int n = snprintf(name, sizeof name, "items[%d].x", t->m.rows[i].id);
        bool fails = row_fails(&t->m, &t->m.rows[i]);
        expected += fails;
        if (fails != stet_value_find(v, name, (size_t)n, NULL))
            wrong("%s %s", name, fails ? "is not listed as failing" : "is listed as failing");
    }
    if (stet_value_count(v) != expected)
        wrong("%zu failures are listed, %zu expected", stet_value_count(v), expected);
    t->failures += (long)expected;
    stet_value_release(v);
}

/* Documents of elements that are not there, and none of those that are. */
static void nothing_left_over(test *t) {
    stet_arena arena = STET_ARENA_INIT;
    stet_doc_filter filter = {.prefix = "piece:p:child:items[", .limit = 1000};
    stet_doc_info *at;
    size_t count, top = 0;
    bool more;
    ok(stet_space_list(t->w->space, 0, &filter, &arena, &at, &count, &more, &err));
    for (size_t i = 0; i < count; i++)
        top += strstr(at[i].name.id, "].") == NULL;
    if (top != (size_t)t->m.len)
        wrong("%d rows, and %zu documents of children", t->m.len, top);
    stet_arena_release(&arena);
    kit_sound(t->w);
}

/* What a read saw of a document at a sequence, as text. */
static char *saw(test *t, const stet_memo_cell *r, int64_t at) {
    stet_doc_state d;
    stet_value v, keys;
    ok(stet_space_load(t->w->space, 0, &r->name, at, &d, &err));
    bool there = d.exists && stet_path_lookup(d.value, r->path, &v);
    char *text;
    if (!there) {
        text = stet_strdup("nothing");
    } else if (r->kind == STET_RECURSIVE ||
               (stet_value_type(v) != STET_TYPE_OBJECT && stet_value_type(v) != STET_TYPE_ARRAY)) {
        text = stet_json_print(v, STET_JSON_CANONICAL, NULL);
    } else if (stet_value_type(v) == STET_TYPE_ARRAY) {
        text = stet_asprintf("%zu elements", stet_value_count(v));
    } else {
        keys = stet_value_array();
        for (size_t i = 0; i < stet_value_count(v); i++)
            stet_value_push(&keys, stet_value_string(stet_value_key_at(v, i, NULL)));
        text = stet_json_print(keys, STET_JSON_CANONICAL, NULL);
        stet_value_release(keys);
    }
    stet_value_release(d.value);
    return text;
}

/* An action that ran since `base`, when all had settled, and before `until` (-1: now), or after that, too: it must have
 * read something that was otherwise at `base`. */
static void justified(test *t, const char *node, int64_t until, bool after) {
    stet_memo *memo = stet_sched_memo(t->w->sched);
    stet_arena arena = STET_ARENA_INIT;
    stet_memo_action x;
    char *name = stet_asprintf(" %s ", node);
    bool changed = strstr(stet_buf_cstr(&t->left), name) != NULL;
    stet_free(name);
    if (changed)
        return;
    if (stet_memo_load(memo, "piece:p", node, &arena, &x, NULL) != STET_OK) {
        stet_arena_release(&arena);
        return; /* it went with its element */
    }
    size_t instance = stet_child_instance(node);
    if (instance > 0) {
        stet_doc_state d;
        char *id = stet_asprintf("piece:p:child:%.*s", (int)instance, node);
        ok(stet_space_load(t->w->space, 0, &(stet_docname){id, NULL}, t->base, &d, &err));
        changed = !d.exists; /* of a new element */
        stet_value_release(d.value);
        stet_free(id);
    }
    for (size_t i = 0; i < x.read_count && !changed; i++) {
        char *then = saw(t, &x.reads[i], t->base), *now = saw(t, &x.reads[i], until), *last = saw(t, &x.reads[i], -1);
        changed = strcmp(then, now) != 0 || (after && strcmp(then, last) != 0);
        stet_free(then);
        stet_free(now);
        stet_free(last);
    }
    if (!changed)
        wrong("%s ran, and what it read is what it was", node);
    stet_arena_release(&arena);
}

static void look_at_runs(test *t, int64_t until, bool after) {
    char *names = stet_strdup(stet_buf_cstr(&t->w->ran)), *save = NULL;
    size_t len = strlen(names);
    for (char *at = strtok_r(names, " ", &save); at; at = strtok_r(NULL, " ", &save)) {
        t->runs++;
        t->effects += strcmp(at, "act") == 0;
        for (char *other = at + strlen(at) + 1; other < names + len; other++) {
            size_t n = strlen(at);
            if (strncmp(other, at, n) == 0 && (other[n] == ' ' || other[n] == 0) && other[-1] != '.') {
                t->twice++;
                break;
            }
        }
        if (t->base >= 0 && t->changes <= 1 && !t->others)
            justified(t, at, until, after);
    }
    stet_free(names);
}

static void unsure(test *t) {
    t->base = -1;
}

static stet_status note_left(void *ctx, int64_t number, const char *piece, const char *action, stet_action_state state,
                             stet_error *err) {
    test *t = ctx;
    (void)number, (void)piece, (void)state, (void)err;
    stet_buf_printf(&t->left, "%s ", action);
    return STET_OK;
}

static void settle_whole(test *t) {
    kit_run(t->w, "p");
    t->whole = true;
    if (t->w->report.aside)
        wrong("%zu put aside", t->w->report.aside);
    look_at_runs(t, -1, false);
    for (int i = 0; i < PARTS; i++)
        compare_part(t, i);
    stet_buf want = STET_BUF(0);
    judge(&t->m, 0, &want);
    compare(t, "piece:p:cell:fx", NULL, stet_buf_cstr(&want)); /* the effect was done on the last value */
    stet_buf_release(&want);
    compare_state(t);
    compare_failures(t);
    memset(t->resting, 0, sizeof t->resting);
    if (pick(t, 8) == 0) {
        kit_settle(t->w);
        if (t->w->report.runs)
            wrong("%s ran in a piece that had settled", stet_buf_cstr(&t->w->ran));
    }
    ok(stet_space_seq(t->w->space, &t->base, &err));
    t->changes = 0;
    stet_buf_clear(&t->left);
    stet_buf_char(&t->left, ' ');
    stet_memo *memo = stet_sched_memo(t->w->sched);
    ok(stet_memo_pending(memo, 0, 0, SIZE_MAX, note_left, t, &err));
}

static void settle_part(test *t) {
    int part = pick(t, PARTS);
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    stet_path_push(&path, parts[part]);
    ok(stet_sched_demand_cell(t->w->sched, "piece:p", NULL, stet_path_ref(&path), &err));
    stet_path_release(&path);
    kit_settle(t->w);
    look_at_runs(t, -1, false);
    compare_part(t, part);
    compare_state(t);
    t->parts++;
    unsure(t); /* the rest has not run yet */
}

static void restart(test *t) {
    kit_restart(t->w);
    t->whole = t->others = false;
    t->restarts++;
}

static void write_argument(test *t) {
    const model *m = &t->m;
    stet_value rows = stet_value_array(), all = stet_value_object();
    for (int i = 0; i < m->len; i++) {
        stet_value r = stet_value_object(), ns = stet_value_array();
        stet_value_push(&ns, stet_value_int(m->rows[i].ns[0]));
        stet_value_push(&ns, stet_value_int(m->rows[i].ns[1]));
        stet_value_put(&r, "id", stet_value_int(m->rows[i].id));
        stet_value_put(&r, "n", stet_value_int(m->rows[i].n));
        stet_value_put(&r, "ns", ns);
        stet_value_push(&rows, r);
    }
    stet_value_put(&all, "rows", rows);
    stet_value_put(&all, "factor", stet_value_int(m->factor));
    stet_value_put(&all, "limit", stet_value_int(m->limit));
    stet_value_put(&all, "mode", stet_value_bool(m->mode));
    stet_tx *tx;
    ok(stet_tx_begin(t->w->space, "", &tx, &err));
    ok(stet_tx_set(tx, "piece:p:argument", NULL, all, &err));
    ok(stet_tx_commit(tx, NULL, &err));
    t->changes++;
}

static void edit(test *t) {
    model *m = &t->m;
    for (int k = 1 + pick(t, 2); k > 0; k--) {
        int what = pick(t, 12), at = m->len ? pick(t, m->len) : 0;
        if (what < 3 && m->len < MOST) {
            int id = pick(t, IDS);
            if (find_row(m, id) || t->resting[id])
                continue;
            at = pick(t, m->len + 1);
            memmove(&m->rows[at + 1], &m->rows[at], (size_t)(m->len - at) * sizeof *m->rows);
            m->rows[at] = (row){id, pick(t, 12), {pick(t, 4), pick(t, 4)}};
            m->count[id] = 0;
            m->len++;
        } else if (what < 5 && m->len > 0) {
            remove_row(t, m, at);
        } else if (what == 5 && m->len > 0) {
            int to = pick(t, m->len);
            row r = m->rows[at];
            memmove(&m->rows[at], &m->rows[at + 1], (size_t)(m->len - at - 1) * sizeof *m->rows);
            memmove(&m->rows[to + 1], &m->rows[to], (size_t)(m->len - 1 - to) * sizeof *m->rows);
            m->rows[to] = r;
        } else if (what < 8 && m->len > 0) {
            m->rows[at].n = pick(t, 12);
        } else if (what == 8 && m->len > 0) {
            m->rows[at].ns[pick(t, 2)] = pick(t, 4);
        } else if (what == 9) {
            m->factor = 1 + pick(t, 4);
        } else if (what == 10) {
            m->limit = pick(t, 9);
        } else {
            m->mode = !m->mode;
        }
    }
    write_argument(t);
}

static size_t new_event(test *t) {
    static const char *const names[KINDS] = {"add", "drop", "all", "snap-", "bad"};
    t->events = stet_realloc(t->events, (t->event_count + 1) * sizeof *t->events);
    sent_event *e = &t->events[t->event_count];
    *e = (sent_event){.kind = pick(t, 10), .value = pick(t, 50)};
    e->kind = e->kind < 5 ? ADD : e->kind - 5;
    e->id = t->m.len && pick(t, 12) ? t->m.rows[pick(t, t->m.len)].id : pick(t, IDS);
    if (e->kind <= DROP)
        snprintf(e->stream, sizeof e->stream, "items[%d].%s", e->id, names[e->kind]);
    else
        snprintf(e->stream, sizeof e->stream, "%s", names[e->kind]);
    return t->event_count++;
}

static void send(test *t, size_t n) {
    char id[32], json[24];
    sent_event *x = &t->events[n];
    model after = t->m;
    stet_error e = STET_ERROR_INIT;
    snprintf(id, sizeof id, "e%zu", n);
    snprintf(json, sizeof json, "%ld", x->value);
    stet_status want = x->applied ? STET_OK : apply(t, &after, x), got = kit_send(t->w, "p", x->stream, json, id, &e);
    if (want != got)
        wrong("event %zu (%s %ld): %s: %s", n, x->stream, x->value, stet_status_name(got), e.message);
    stet_error_clear(&e);
    /* What ran was for the preflight; of events that send on, also for what follows from the first handler. */
    look_at_runs(t, got == STET_OK && t->w->sent.applied ? t->w->sent.seq - 1 : -1, x->kind == ALL || x->kind == DROP);
    t->absent += want == STET_NOT_FOUND;
    t->refused += want == STET_FAILED;
    if (want != STET_OK)
        return;
    if (t->w->sent.applied == x->applied)
        wrong("event %zu (%s) %s", n, x->stream, x->applied ? "was applied twice" : "was taken for applied");
    t->applied += !x->applied;
    t->again += x->applied;
    t->changes += !x->applied;
    t->m = after;
    x->applied = true;
    compare_state(t);
}

/* A process of its own that dies at a random system call, sending an event or settling. */
static bool in_another(test *t, const char *what, size_t event) {
    char id[32];
    bool sends = strcmp(what, "send") == 0;
    snprintf(id, sizeof id, "e%zu", event);
    bool killed = other_process(t->w, sends ? t->events[event].stream : NULL, sends ? t->events[event].value : 0, id,
                                pick(t, 2) ? 1 + pick(t, 420) : -pick(t, 3));
    t->kills += killed;
    t->others = true;
    unsure(t);
    return killed;
}

static void killed_sender(test *t) {
    size_t n = new_event(t);
    bool killed = in_another(t, "send", n);
    char id[32];
    snprintf(id, sizeof id, "piece:p:event:e%zu", n);
    stet_doc_state d;
    ok(stet_space_load(t->w->space, 0, &(stet_docname){id, NULL}, -1, &d, &err));
    stet_value_release(d.value);
    if (d.exists) { /* so far it got */
        if (apply(t, &t->m, &t->events[n]) != STET_OK)
            wrong("event %zu (%s) was applied", n, t->events[n].stream);
        t->events[n].applied = true;
        t->killed_applied += killed;
        ok(stet_sched_finish_events(t->w->sched, "p", NULL, &err)); /* it may have left a handler its turn */
    }
    compare_state(t);
    send(t, n);
}

/* Somebody else writes what actions computed, where a materializer wrote, or what a coordinator gave. */
static void meddle(test *t) {
    static const char *const cells[] = {"piece:p:node:fold", "piece:p:node:items", "piece:p:cell:m/odd",
                                        "piece:p:cell:m2/x", "piece:p:node:cond",  "piece:p:node:seen"};
    char cell[64];
    int what = pick(t, 9);
    if (what < 6) {
        snprintf(cell, sizeof cell, "%s", cells[what]);
    } else if (t->m.len == 0) {
        return;
    } else {
        static const char *const in[] = {"piece:p:node:items[%d].scaled", "piece:p:node:items[%d].x",
                                         "piece:p:child:items[%d]/argument/element/n"};
        char id[64];
        int key = t->m.rows[pick(t, t->m.len)].id;
        stet_doc_state d;
        snprintf(id, sizeof id, "piece:p:child:items[%d]", key);
        ok(stet_space_load(t->w->space, 0, &(stet_docname){id, NULL}, -1, &d, &err));
        stet_value_release(d.value);
        if (!d.exists)
            return;
        if (what == 6)
            snprintf(cell, sizeof cell, in[0], key);
        else if (what == 7)
            snprintf(cell, sizeof cell, in[1], key);
        else
            snprintf(cell, sizeof cell, in[2], key);
    }
    kit_set(t->w, cell, "1000");
    t->meddled++;
    unsure(t);
}

static void one_step(test *t) {
    int r = pick(t, 1000);
    if (r < 560) {
        edit(t);
    } else if (r < 830) {
        send(t, new_event(t));
    } else if (r < 880 && t->event_count > 0) {
        send(t, (size_t)pick(t, (int)t->event_count));
    } else if (r < 895) {
        if (pick(t, 2))
            t->m.program = pick(t, 3);
        else
            t->m.k = pick(t, 20);
        install(t);
        t->whole = false;
        t->programs++;
        unsure(t);
    } else if (r < 925) {
        restart(t);
    } else if (r < 927) {
        killed_sender(t);
    } else if (r < 929) {
        in_another(t, "settle", 0);
    } else if (r < 940) {
        meddle(t);
    }
    int next = pick(t, 40);
    if (next < 15)
        settle_whole(t);
    else if (next < 22 && !t->whole)
        settle_part(t);
    else if (next == 22)
        restart(t);
    if (t->step % 100 == 0) {
        settle_whole(t);
        nothing_left_over(t);
    }
}

static void one_world(uint64_t seed, long steps, test *all) {
    test *t = stet_alloc_zero(sizeof *t);
    t->seed = seed;
    t->random = seed * 0x9E3779B97F4A7C15ull | 1;
    t->m = (model){.factor = 1, .limit = 3};
    t->base = -1;
    t->left = (stet_buf)STET_BUF(0);
    t->w = kit_start();
    install(t);
    for (t->step = 1; t->step <= steps; t->step++)
        one_step(t);
    settle_whole(t);
    nothing_left_over(t);
    restart(t);
    settle_whole(t);
    if (t->w->ran.len)
        wrong("nothing changed since all was settled");
    long *to[] = {&all->applied,        &all->again,    &all->refused, &all->absent,   &all->kills,
                  &all->killed_applied, &all->restarts, &all->parts,   &all->runs,     &all->twice,
                  &all->judged,         &all->programs, &all->meddled, &all->failures, &all->effects};
    const long from[] = {t->applied,        t->again,    t->refused, t->absent,   t->kills,
                         t->killed_applied, t->restarts, t->parts,   t->runs,     t->twice,
                         t->judged,         t->programs, t->meddled, t->failures, t->effects};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        *to[i] += from[i];
    kit_stop(t->w);
    stet_buf_release(&t->left);
    free(t->events);
    free(t);
}

static void everything_is_what_it_would_be_from_scratch(void **state) {
    (void)state;
    test all = {0};
    const char *given = getenv("STET_TEST_SEED");
    long steps = getenv("STET_TEST_LONG") ? 1000000 : getenv("STET_TEST_SHORT") ? 300 : 20000;
    uint64_t seed = given ? strtoull(given, NULL, 10) : 1;
    /* Durability is not what is tried here: memory spares the syncs. */
    char dir[] = "/dev/shm/stet-mixed-XXXXXX", *where = access("/dev/shm", W_OK) == 0 ? mkdtemp(dir) : NULL;
    assert_true(!where || chdir(where) == 0);
    for (long done = 0; done < steps; done += STEPS)
        one_world(seed++, steps - done < STEPS ? steps - done : STEPS, &all);
    if (where) {
        assert_int_equal(chdir("/"), 0);
        ok(stet_file_remove_tree(where, &err));
    }
    printf(
        "# %ld steps: %ld runs, %ld of them again in one settling, %ld of effects; %ld values judged, %ld of them a "
        "part's; %ld events applied, %ld sent again, %ld refused by their handler, %ld for nobody; %ld programs, %ld "
        "cells overwritten, %ld failures, %ld restarts, %ld kills, %ld of them after the event was applied\n",
        steps, all.runs, all.twice, all.effects, all.judged, all.parts, all.applied, all.again, all.refused, all.absent,
        all.programs, all.meddled, all.failures, all.restarts, all.kills, all.killed_applied);
    if (steps >= STEPS) { /* so many that chance does not count */
        assert_true(all.applied > steps / 10 && all.again > steps / 50 && all.refused > steps / 250);
        assert_true(all.absent > steps / 200 && all.kills > steps / 1000 && all.killed_applied > 0 &&
                    all.restarts > steps / 30);
        assert_true(all.programs > steps / 100 && all.failures > steps / 20 && all.effects > steps / 40);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_is_what_it_would_be_from_scratch)};
    other_main();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
