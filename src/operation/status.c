/* status.c - the operation status: how many actions of each piece are up to date, and what the others wait for. */

#include <string.h>

#include "drive/drift.h"
#include "graph/argument.h"
#include "operation/subject.h"
#include "operation/text.h"
#include "scheduler/standing.h"

typedef struct counted {
    const stet_piece *piece;
    const stet_standing *standing;
    /* Each action counts once, by its state: one that failed and is outdated counts as outdated. */
    size_t states[STET_STATE_ACCEPTED + 1], recorded, failed,
        through; /* failed: those among them that are counted in another state */
} counted;

static void count_one(piece_call *c, counted *n, int64_t action) {
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    stet_error mine = STET_ERROR_INIT;
    stet_status status = stet_observe_get(c->space, action, &arena, &r, &mine);
    if (status == STET_OK && stet_piece_has(n->piece, &r.key) && !stet_standing_misses(n->standing, &r.key)) {
        n->states[stet_standing_state(n->standing, &r)]++;
        n->recorded++;
        n->failed += stet_action_fails(&r);
    }
    if (status != STET_OK && status != STET_NOT_FOUND) { /* not found: a mark left by a removed action */
        c->status = status;
        stet_error_move(c->err, &mine);
    }
    stet_error_clear(&mine);
    stet_arena_release(&arena);
}

/* They are up to date, and counted as such; but only because an accepted action is. */
static void count_through(piece_call *c, counted *n, int64_t action) {
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    n->through += stet_observe_get(c->space, action, &arena, &r, NULL) == STET_OK && stet_piece_has(n->piece, &r.key) &&
                  stet_standing_state(n->standing, &r) == STET_STATE_STANDS;
    stet_arena_release(&arena);
}

/* Counts actions that are not up to date. They are few, or about to run, so that each is looked up by name. */
static void count_marked(piece_call *c, counted *n, stet_value failures) {
    const stet_standing *s = n->standing;
    for (size_t i = 0; i < s->marked_count && piece_good(c); i++)
        count_one(c, n, s->marked[i].action);
    for (size_t i = 0; i < s->stale.len && piece_good(c); i++)
        count_one(c, n, s->stale.at[i]);
    for (size_t i = 0; i < s->accepted.len && piece_good(c); i++)
        count_one(c, n, s->accepted.at[i]);
    for (size_t i = 0; i < s->through.len && piece_good(c); i++)
        count_through(c, n, s->through.at[i]);
    for (size_t i = 0; i < s->missing_count; i++)
        if (stet_piece_has(n->piece, &(stet_action_key){s->missing[i].piece, s->missing[i].scope, NULL})) {
            n->states[STET_STATE_UNKNOWN]++;
            n->recorded++;
            n->failed += stet_value_find(failures, s->missing[i].action, strlen(s->missing[i].action), NULL);
        }
}

static void count_piece(piece_call *c, const stet_piece *p, stet_value *row) {
    counted n = {.piece = p, .standing = piece_standing(c)};
    stet_value failures = stet_value_null(), overridden = stet_value_null();
    int64_t known = 0;
    if (piece_good(c))
        c->status = stet_observe_failures(c->space, c->branch, p->doc, p->scope, &failures, c->err);
    count_marked(c, &n, failures);
    if (piece_good(c) && p->has_children)
        c->status = stet_observe_known(c->space, c->branch, p->doc, p->scope, &known, c->err);
    /* An action that failed, and whose inputs are unchanged, does not run again by itself; but it is not up to date. */
    size_t all_failed = stet_value_count(failures), actions = p->node_count - p->handler_count;
    size_t only_failed = all_failed > n.failed ? all_failed - n.failed : 0, recorded = n.recorded + only_failed;
    if (known > (int64_t)actions)
        actions = (size_t)known;
    /* Without records every action is unknown at every start. */
    n.states[stet_drive_persist(c->project) ? STET_STATE_STANDS : STET_STATE_UNKNOWN] +=
        actions > recorded ? actions - recorded : 0;
    stet_value wrong = piece_wrong(c, p);
    if (stet_value_type(wrong) == STET_TYPE_STRING) { /* then nothing about the piece can be trusted */
        n.states[STET_STATE_UNKNOWN] += n.states[STET_STATE_STANDS] + n.states[STET_STATE_ACCEPTED];
        n.states[STET_STATE_ACCEPTED] = 0;
        n.states[STET_STATE_STANDS] = 0;
    }
    if (piece_good(c))
        c->status = stet_piece_overrides(c->space, c->branch, p, &overridden, c->err);
    *row = stet_value_object();
    stet_value_put(row, "piece", stet_value_string(p->name));
    stet_value_put(row, "generation", stet_value_int(p->generation));
    stet_value_put(row, "nodes", stet_value_int((int64_t)p->node_count));
    if (n.states[STET_STATE_ACCEPTED] > 0 || n.through > 0)
        stet_value_put(row, "throughAccepted", stet_value_int((int64_t)n.through));
    for (int i = 0; i <= STET_STATE_ACCEPTED; i++)
        stet_value_put(row, stet_action_state_name((stet_action_state)i), stet_value_int((int64_t)n.states[i]));
    stet_value_put(row, "failed", stet_value_int((int64_t)only_failed));
    if (all_failed > 0)
        piece_recall(c->stored, p->name, &failures);
    if (all_failed > 0)
        stet_value_put(row, "failures", stet_value_retain(failures));
    stet_value_put(row, "stopped", stet_value_bool(p->stopped));
    if (stet_value_type(wrong) == STET_TYPE_STRING)
        stet_value_put(row, "wrong", stet_value_retain(wrong));
    stet_value_put(row, "overridden", overridden);
    stet_value_release(wrong);
    stet_value_release(failures);
}

#define PIECES_MAX 10000 /* maximum number of pieces shown */
#define DRIFT_MS   5000  /* time limit for an answer of another process, which answers only between actions */

static void put_drift(piece_call *c, stet_value args, stet_value *result) {
    stet_value drift = stet_value_null();
    if (!piece_good(c) || !stet_value_as_bool(stet_value_get(args, "drift")))
        return;
    c->status = stet_drift_ask(c->stored, DRIFT_MS, &drift, c->err);
    stet_value_put(result, "drift", drift);
}

/* A process that differs from the tables is a failure; one that does not answer is not. */
static stet_status status_verdict(stet_value result) {
    stet_value list = stet_value_get(stet_value_get(result, "drift"), "processes");
    int64_t differ = 0;
    for (size_t i = 0; i < stet_value_count(list); i++)
        differ += stet_value_as_int(stet_value_get(stet_value_at(list, i), "differ"));
    return differ > 0 ? STET_FAILED : STET_OK;
}

static void render_drift(stet_render *r, stet_value drift) {
    stet_value list = stet_value_get(drift, "processes");
    if (stet_value_type(drift) != STET_TYPE_OBJECT)
        return;
    if (stet_value_count(list) == 0)
        stet_buf_str(r->out, "no process holds the project open\n");
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value p = stet_value_at(list, i), different = stet_value_get(p, "drift");
        stet_buf_printf(r->out, "process %lld", (long long)stet_value_as_int(stet_value_get(p, "pid")));
        if (!stet_value_as_bool(stet_value_get(p, "answered"))) {
            stet_buf_str(r->out, ": no answer; it may be running something\n");
            continue;
        }
        stet_buf_str(r->out, " (watches ");
        stet_text_value(r, stet_value_get(p, "piece"));
        stet_buf_printf(r->out, "): %lld actions in memory, %lld differ from the tables\n",
                        (long long)stet_value_as_int(stet_value_get(p, "actions")),
                        (long long)stet_value_as_int(stet_value_get(p, "differ")));
        for (size_t k = 0; k < stet_value_count(different); k++) {
            stet_value d = stet_value_at(different, k);
            stet_buf_str(r->out, "  ");
            stet_text_value(r, stet_value_get(d, "piece"));
            stet_buf_char(r->out, '/');
            stet_text_value(r, stet_value_get(d, "action"));
            stet_buf_str(r->out, ": ");
            stet_text_value(r, stet_value_get(d, "memory"));
            stet_buf_str(r->out, " in memory, ");
            stet_text_value(r, stet_value_get(d, "tables"));
            stet_buf_str(r->out, " in the tables\n");
        }
        if (stet_value_count(different) > 0)
            stet_buf_str(r->out, "  stop the process and run stet check\n");
    }
}

/* Was the sender of an event killed before all of its handlers ran? (scheduler/sched_queue.c) */
static void put_unfinished(piece_call *c, const stet_piece *p, stet_value *row) {
    char *id = stet_piece_part(p->name, "queue", NULL);
    stet_docname name = stet_piece_name(p, id);
    stet_doc_state d = {.value = stet_value_null()};
    if (piece_good(c))
        c->status = stet_space_load(c->space, c->branch, &name, -1, &d, c->err);
    if (piece_good(c) && d.exists)
        stet_value_put(row, "unfinishedEvent",
                       stet_value_retain(stet_value_get(stet_value_get(d.value, "value"), "event")));
    if (piece_good(c))
        stet_value_release(d.value);
    stet_free(id);
}

static void render_unfinished(stet_render *r, stet_value row) {
    stet_value event;
    if (!stet_value_find(row, "unfinishedEvent", 15, &event))
        return;
    stet_text_value(r, stet_value_get(row, "piece"));
    stet_buf_str(r->out, ": event ");
    stet_text_value(r, event);
    stet_buf_str(r->out, " is not finished; the next run of the piece, or the next event, runs its other handlers\n");
}

/* `only`: the piece was requested, and must be readable; otherwise a damaged one is left out. */
static void add_piece(piece_call *c, const char *name, bool only, stet_value *rows) {
    stet_piece *p = NULL;
    stet_error bad = STET_ERROR_INIT;
    stet_status status = stet_piece_load(c->space, c->branch, name, -1, &p, &bad);
    if (status == STET_OK) {
        stet_value row;
        count_piece(c, p, &row);
        piece_put_leads(c, p, &row);
        piece_put_changed(c, p, &row);
        put_unfinished(c, p, &row);
        stet_value_push(rows, row);
    } else if (only) {
        c->status = status;
        stet_error_move(c->err, &bad);
    }
    stet_error_clear(&bad);
    stet_piece_free(p);
}

static void put_records(piece_call *c, const char *only, stet_value *result) {
    stet_observe_stats st = {0};
    stet_value_put(result, "owed", piece_owed(c));
    if (piece_good(c))
        c->status = stet_observe_stat(c->space, &st, c->err);
    stet_value_put(result, "metrics", stet_observe_stats_value(&st));
    piece_put_absent(c, only, result);
}

/* What was asked about is one action, or a document. */
static void put_subject(piece_call *c, const piece_subject *s, stet_value *result) {
    if (piece_good(c) && s->document)
        stet_value_put(result, "file", piece_document_value(c, s));
    if (!piece_good(c) || !s->node)
        return;
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    stet_action_key key = stet_piece_action(s->piece, s->node);
    stet_value wrong = piece_wrong(c, s->piece), row, list = stet_value_array();
    piece_find_action(c, &key, &arena, &r);
    if (piece_good(c)) {
        const stet_standing *all = piece_standing(c);
        row = piece_action_value(c, all, &r, piece_state_in(wrong, all, &r), false);
        stet_value_put(&row, "piece", stet_value_string(s->piece->name));
        stet_value_push(&list, row);
    }
    stet_value_put(result, "actions", list);
    stet_value_release(wrong);
    stet_arena_release(&arena);
}

static stet_status status_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    piece_call c;
    piece_subject s = {0};
    stet_value rows = stet_value_array();
    bool more, only = stet_value_type(stet_value_get(args, "piece")) == STET_TYPE_STRING;
    if (only) {
        piece_begin(ctx, args, PIECE_NOW, &c, err);
        piece_subject_find(&c, args, &s);
    } else {
        piece_begin_list(ctx, args, PIECE_NOW, &c, err);
    }
    stet_value names = only ? stet_value_array() : piece_names_in(&c, args, PIECES_MAX, &more);
    if (s.piece && piece_good(&c))
        add_piece(&c, s.piece->name, true, &rows);
    for (size_t i = 0; i < stet_value_count(names) && piece_good(&c); i++) {
        stet_value name = stet_value_at(names, i);
        add_piece(&c, stet_value_as_string(&name, NULL), false, &rows);
    }
    *result = stet_value_object();
    stet_value_put(result, "pieces", rows);
    put_subject(&c, &s, result);
    if (piece_good(&c)) {
        stet_value_put(result, "persist", stet_value_bool(stet_drive_persist(c.project)));
        if (!c.absent) {
            put_records(&c, s.piece ? s.piece->name : NULL, result);
            put_drift(&c, args, result);
        }
    }
    piece_subject_release(&s);
    stet_value_release(names);
    return piece_end(&c);
}

static void render_line(stet_render *r, stet_value v, const char *indent) {
    stet_value piece = stet_value_get(v, "piece"), node = stet_value_get(v, "action"),
               state = stet_value_get(v, "state");
    stet_buf_str(r->out, indent);
    stet_text_value(r, piece);
    stet_buf_char(r->out, '/');
    stet_text_value(r, node);
    stet_buf_str(r->out, ": ");
    stet_text_value(r, state);
    stet_buf_char(r->out, '\n');
}

/* Of a file or an action that was asked about. False: there was none. */
static bool render_subject(stet_render *r, stet_value result) {
    stet_value file = stet_value_get(result, "file"), action = stet_value_at(stet_value_get(result, "actions"), 0);
    if (stet_value_type(file) == STET_TYPE_OBJECT) {
        stet_buf text = STET_BUF(0);
        stet_value readers = stet_value_get(file, "readers");
        piece_print_document(file, &text);
        stet_text_plain(r, stet_buf_cstr(&text), text.len);
        stet_buf_char(r->out, '\n');
        stet_buf_release(&text);
        for (size_t i = 0; i < stet_value_count(readers); i++)
            render_line(r, stet_value_at(readers, i), "  ");
    } else if (stet_value_type(action) == STET_TYPE_OBJECT) {
        render_line(r, action, "");
    }
    return stet_value_type(file) == STET_TYPE_OBJECT || stet_value_type(action) == STET_TYPE_OBJECT;
}

static void render_accepted(stet_render *r, stet_value row) {
    long long accepted = stet_value_as_int(stet_value_get(row, "accepted")),
              through = stet_value_as_int(stet_value_get(row, "throughAccepted"));
    if (accepted + through == 0)
        return;
    stet_text_value(r, stet_value_get(row, "piece"));
    stet_buf_printf(
        r->out, ": %lld accepted, not proved to be up to date; %lld of those that stand depend on accepted results\n",
        accepted, through);
}

static void status_render(stet_render *r, stet_value result) {
    stet_value rows = stet_value_get(result, "pieces");
    if (!stet_value_as_bool(stet_value_get(result, "persist")))
        stet_buf_str(r->out, "nothing is recorded: [scheduler] persist = false in config.toml\n");
    bool subject = render_subject(r, result);
    if (stet_value_count(rows) == 0 && subject)
        return;
    if (stet_value_count(rows) == 0) {
        stet_buf_str(r->out, "no pieces; make one with: stet run PATTERN\n");
        return;
    }
    render_drift(r, stet_value_get(result, "drift"));
    static const char *const columns[] = {"stands", "dirty", "stale", "unknown", "failed"};
    /* What the result shows without an action follows the pattern, too: the columns of actions would hide that. */
    bool changed = false;
    for (size_t i = 0; i < stet_value_count(rows); i++)
        changed |= stet_value_find(stet_value_at(rows, i), "patternChanged", 14, NULL);
    stet_table t = stet_table_begin(
        changed ? 7 : 6, (const char *const[]){"PIECE", "STANDS", "DIRTY", "STALE", "UNKNOWN", "FAILED", "PATTERN"});
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        stet_value row = stet_value_at(rows, i), name = stet_value_get(row, "piece");
        stet_table_cell(&t, stet_value_as_string(&name, NULL));
        for (size_t k = 0; k < 5; k++)
            stet_table_cellf(&t, "%lld", (long long)stet_value_as_int(stet_value_get(row, columns[k])));
        if (changed)
            stet_table_cell(&t, stet_value_find(row, "patternChanged", 14, NULL) ? "changed" : "");
    }
    stet_table_print(&t, r, true);
    for (size_t i = 0; i < stet_value_count(rows); i++)
        render_accepted(r, stet_value_at(rows, i));
    piece_render_owed(r, stet_value_get(result, "owed"));
    piece_render_absent(r, result);
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        piece_render_changed(r, stet_value_at(rows, i));
        render_unfinished(r, stet_value_at(rows, i));
        piece_render_leads(r, stet_value_at(rows, i));
    }
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        stet_value row = stet_value_at(rows, i), names = stet_value_get(row, "overridden");
        piece_render_wrong(r, row);
        if (stet_value_count(names) == 0)
            continue;
        stet_text_value(r, stet_value_get(row, "piece"));
        stet_buf_str(r->out, ": ");
        piece_render_overridden(r, names);
    }
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        stet_value row = stet_value_at(rows, i), failures = stet_value_get(row, "failures");
        for (size_t k = 0; k < stet_value_count(failures) && k < 20; k++) {
            size_t len;
            const char *node = stet_value_key_at(failures, k, &len);
            stet_text_styled(r, STET_STYLE_BAD, "failed ");
            stet_text_value(r, stet_value_get(row, "piece"));
            stet_buf_char(r->out, '/');
            stet_text_plain(r, node, len);
            stet_buf_str(r->out, ": ");
            stet_value piece = stet_value_get(row, "piece");
            piece_render_failure(r->out, stet_value_at(failures, k), stet_value_as_string(&piece, NULL), node);
            stet_buf_char(r->out, '\n');
        }
    }
}

static const stet_param status_params[] = {{.name = "piece",
                                            .type = STET_PARAM_STRING,
                                            .flags = STET_PARAM_POSITIONAL,
                                            .metavar = "PIECE",
                                            .summary = "One piece, one action (PIECE/ACTION), or a file; without it "
                                                       "all pieces"},
                                           {.name = "drift",
                                            .type = STET_PARAM_BOOL,
                                            .summary = "Ask processes that watch the project whether what they hold in "
                                                       "memory agrees with the tables; exit status 1 if it does not"},
                                           PIECE_PARAM_SPACE,
                                           PIECE_PARAM_BRANCH,
                                           PIECE_PARAM_SCOPE,
                                           {0}};

static const stet_example status_examples[] = {
    {"status", "how everything stands"},
    {"status totals", "how one piece stands"},
    {"status totals.json", "which action makes a file, and how those that read it stand"},
    {0}};

const stet_op stet_ops_status[] = {
    {.name = "status",
     .summary = "Show how pieces stand: what stands, what is dirty, stale, unknown or failed",
     .description =
         "stands: nothing that it read has changed. dirty: something has. stale: something upstream is dirty, "
         "unknown or failed. unknown: there is no record of it that can be trusted. failed: its last run failed, and "
         "nothing that it read has changed since. Each action is counted once, so the columns add up to the number of "
         "actions. An action that failed and is outdated since counts as dirty, stale or unknown; its error is still "
         "listed under `failures`. accepted: something that it read has changed, and `stet accept` has let its result "
         "stand. If the pattern file of a piece has changed since its last run, the column PATTERN "
         "says so: then its "
         "result may be outdated though all its actions are up to date. Only looks: changes not processed yet are "
         "listed under `owed`, and left to the next "
         "run.",
     .params = status_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"pieces\",\"persist\"],\"properties\":{\"pieces\":{\"type\":"
         "\"array\"},\"persist\":{\"type\":\"boolean\"},\"metrics\":{\"type\":\"object\"},"
         "\"owed\":{\"type\":[\"object\",\"null\"]},\"file\":{\"type\":\"object\"},\"actions\":{\"type\":\"array\"},"
         "\"drift\":{\"type\":\"object\"},\"absentSpaces\":{\"type\":\"array\"}}}",
     .examples = status_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_COMMON,
     .run = status_run,
     .verdict = status_verdict,
     .render = status_render},
    {0},
};
