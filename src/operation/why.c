/* why.c - the operation why: says in one sentence why an action is out of date.
 *
 * The sentence leads from the action, through what it reads, to the write that is the cause: which cell, at which
 * sequence, when, by whom. A failure upstream is a cause as well: everything downstream of it waits and is as old as
 * its last success, though nothing that it read has changed.
 */

#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "files/path.h"
#include "operation/subject.h"
#include "operation/text.h"
#include "os/clock.h"
#include "scheduler/standing.h"

#define REASONS_MAX 100
#define WALK_MAX    100000 /* maximum number of nodes visited on the way up */
#define CHAIN_SHOWN 6

static const char *reason_words(stet_reason reason) {
    switch (reason) {
    case STET_REASON_CHANGED:
        return "something it read changed";
    case STET_REASON_OVERWRITTEN:
        return "somebody else changed what it had written";
    case STET_REASON_NEVER:
        return "it has never run";
    case STET_REASON_IMPLEMENTATION:
        return "its code changed";
    case STET_REASON_SCHEMA:
        return "its schema changed";
    case STET_REASON_RUNTIME:
        return "another version of stet ran it";
    case STET_REASON_GENERATION:
        return "its code, its bindings or its schemas changed";
    case STET_REASON_BINDING:
        return "its inputs or outputs are other ones now";
    case STET_REASON_BRANCH:
        return "nothing is recorded of it on this branch";
    case STET_REASON_LOST:
        return "the record of its last run is lost";
    case STET_REASON_CORRUPT:
        return "the record of its last run is damaged";
    case STET_REASON_RESTORED:
        return "a space it read is an older copy of what it was";
    case STET_REASON_REPAIRED:
        return "its mark was wrong and was repaired";
    case STET_REASON_REQUESTED:
        return "somebody asked for it to run again";
    case STET_REASON_SPACE:
        return "a space that did not exist when it ran exists now";
    case STET_REASON_PATTERN:
        return "its pattern file, or that of a piece that it reads, is invalid";
    case STET_REASON_LEFT:
        return "the node that wrote a file it reads is gone";
    case STET_REASON_WAITS:
        return "it failed, and was not tried again since";
    default:
        return "nothing is known against it";
    }
}

/* Finds the action of space `s` that made the change, if an action did. */
static bool find_writer(stet_space *s, int64_t branch, const stet_cause *cause, stet_buf *out) {
    stet_numbers writers = {0};
    stet_arena arena = STET_ARENA_INIT;
    bool found = false;
    if (stet_observe_writers(s, branch, &cause->name, cause->change.path, STET_WRITE_KNOWN | STET_WRITE_DECLARED,
                             &writers, NULL) != STET_OK)
        writers.len = 0;
    for (size_t i = 0; i < writers.len && !found; i++) {
        stet_action_record w;
        found = stet_observe_get(s, writers.at[i], &arena, &w, NULL) == STET_OK && w.commit_seq == cause->seq;
        if (found) {
            stet_buf_str(out, "by ");
            piece_print_action(&w.key, out);
        }
        stet_arena_clear(&arena);
    }
    stet_arena_release(&arena);
    stet_numbers_release(&writers);
    return found;
}

static bool is_of_files(const stet_cause *cause) {
    return strncmp(cause->name.id, STET_FILE_PREFIX, strlen(STET_FILE_PREFIX)) == 0 ||
           strncmp(cause->name.id, STET_GLOB_PREFIX, strlen(STET_GLOB_PREFIX)) == 0;
}

/* Says who made the change and when; nothing if its space can't be opened. */
static void name_writer(piece_call *c, const stet_cause *cause, stet_buf *out) {
    stet_arena arena = STET_ARENA_INIT;
    stet_space *far = NULL, *s = c->space;
    int64_t branch = c->branch;
    if (cause->space) {
        const char *name = stet_observe_space_name(c->space, cause->space, &arena);
        bool there =
            stet_space_open(c->project, name, STET_SPACE_READ_ONLY | STET_SPACE_MUST_EXIST, &far, NULL) == STET_OK &&
            strcmp(stet_space_uuid(far), cause->space) == 0 &&
            /* Reads in other spaces are of their default branch. */
            stet_space_branch(far, "", &branch, NULL) == STET_OK;
        s = there ? far : NULL;
    }
    stet_commit_record *commit;
    size_t count = 0;
    if (s)
        stet_buf_char(out, ' ');
    if (s && !find_writer(s, branch, cause, out))
        stet_buf_str(out, is_of_files(cause) ? "by a look at the files" : "by no action, from outside");
    if (s && stet_space_commits(s, cause->seq - 1, cause->seq, 1, &arena, &commit, &count, NULL) == STET_OK &&
        count == 1) {
        char text[STET_TIME_TEXT];
        stet_time_print(commit->time_ms, text);
        stet_buf_printf(out, " at %s", text);
    }
    stet_space_close(far);
    stet_arena_release(&arena);
}

static void explain_mark(piece_call *c, const stet_action_record *r, stet_buf *out) {
    piece_print_action(&r->key, out);
    stet_buf_printf(out, " is %s: %s", stet_action_state_name(r->cause.state), reason_words(r->cause.reason));
    if (r->cause.name.id) {
        stet_buf_str(out, ": ");
        piece_print_cell(c->space, r->cause.space, &r->cause.name, r->cause.change.path, out);
        if (piece_is_preview(c, r->cause.space, r->cause.seq)) {
            stet_buf_str(out,
                         is_of_files(&r->cause) ? " has changed on disk" : " has another value in the pattern now");
            return;
        }
        stet_buf_printf(out, " was written at sequence %lld", (long long)r->cause.seq);
        name_writer(c, &r->cause, out);
    }
}

/* A search upstream from a node, over the bindings of inputs, for the nearest node with something to report. It follows
 * the graph and not recorded reads, because a node that never ran has read nothing. */
typedef struct step {
    const char *node;
    size_t from; /* the step that led here */
} step;

typedef struct climb {
    piece_call *c;
    const stet_piece *piece;
    char *prefix; /* of the ids of the piece's cells: "piece:NAME:node:" */
    stet_arena arena;
    stet_map seen;
    STET_VEC(step) steps;
    size_t at; /* the node whose inputs are being visited */
} climb;

static void take_step(climb *k, const char *node, size_t from) {
    size_t len = strlen(node), before = stet_map_len(&k->seen);
    stet_map_put(&k->seen, node, len, (stet_slot){.n = 0});
    if (stet_map_len(&k->seen) > before && k->steps.len < WALK_MAX)
        *stet_vec_add(&k->steps) = (step){stet_arena_strdup(&k->arena, node), from};
}

static bool follow_link(void *ctx, stet_value binding, stet_pathref place) {
    climb *k = ctx;
    stet_link l;
    stet_path path = STET_PATH_INIT;
    (void)place;
    if (stet_link_read(binding, &l, &path) && strcmp(l.scope, k->piece->scope) == 0 &&
        strncmp(l.id, k->prefix, strlen(k->prefix)) == 0)
        take_step(k, l.id + strlen(k->prefix), k->at);
    stet_path_release(&path);
    return true;
}

static void climb_begin(climb *k, piece_call *c, const stet_piece *p, const char *node) {
    *k = (climb){.c = c, .piece = p, .prefix = stet_piece_part(p->name, "node", "")};
    take_step(k, node, 0);
}

/* The next node upstream, the nearest first, beginning with the start itself. NULL at the end. */
static const char *climb_next(climb *k) {
    if (k->at == k->steps.len)
        return NULL;
    stet_value row = stet_value_null();
    const char *node = k->steps.at[k->at].node;
    if (stet_piece_row(k->c->space, k->c->branch, k->piece, node, &row, NULL) == STET_OK)
        stet_binding_walk(stet_value_get(row, "inputs"), follow_link, k);
    stet_value_release(row);
    k->at++;
    return node;
}

/* Prints "a reads b, which reads c": from the start to the last node of climb_next. */
static void climb_print(const climb *k, stet_buf *out) {
    size_t way[CHAIN_SHOWN], n = 0, all = 0, last = k->at - 1;
    for (size_t i = last; i != 0; i = k->steps.at[i].from)
        all++;
    for (size_t i = last; i != 0 && n < CHAIN_SHOWN; i = k->steps.at[i].from)
        way[n++] = i;
    /* Show the steps next to the cause. */
    if (all > n)
        stet_buf_printf(out, "reads, over %zu steps, %s/%s", all - n + 1, k->piece->name, k->steps.at[way[n - 1]].node);
    for (size_t i = n; i-- > 0;)
        if (all == n || i + 1 < n)
            stet_buf_printf(out, "%s %s/%s", i + 1 == n ? "reads" : ", which reads", k->piece->name,
                            k->steps.at[way[i]].node);
}

static void climb_end(climb *k) {
    stet_free(k->prefix);
    stet_vec_release(&k->steps);
    stet_map_release(&k->seen);
    stet_arena_release(&k->arena);
}

typedef struct why {
    piece_call *c;
    const stet_piece *piece;
    const stet_standing *standing;
    stet_value failures; /* by node; null: none */
    stet_value wrong;    /* the problem of the piece as a whole; null: none */
} why;

static bool failure_of(const why *w, const char *node, stet_value *out) {
    return stet_value_find(w->failures, node, strlen(node), out);
}

static bool is_command(const why *w, const char *node) {
    stet_value row = stet_value_null();
    bool command = false;
    if (stet_piece_row(w->c->space, w->c->branch, w->piece, node, &row, NULL) == STET_OK) {
        stet_value type = stet_value_get(stet_value_get(row, "module"), "type");
        command = stet_value_text_is(type, "command");
    }
    stet_value_release(row);
    return command;
}

/* Explains a failure upstream of the node, whatever the state of the node: "; ..." */
static bool explain_failure_above(const why *w, const char *node, const char *before, stet_buf *out) {
    climb k;
    const char *at;
    bool found = false;
    if (stet_value_count(w->failures) == 0)
        return false;
    climb_begin(&k, w->c, w->piece, node);
    while (!found && (at = climb_next(&k))) {
        stet_value failure;
        if (strcmp(at, node) == 0 || !failure_of(w, at, &failure))
            continue;
        found = true;
        stet_buf_str(out, before);
        climb_print(&k, out);
        stet_buf_str(out, ", which failed: ");
        piece_render_message(out, failure, w->piece->name, at);
    }
    climb_end(&k);
    return found;
}

/* Explains the marked action, in any piece or space. */
static void explain_root(const why *w, const stet_stale_root *root, const stet_action_record *r, stet_buf *out) {
    piece_call there = {.project = w->c->project, .stored = w->c->stored, .space = root->space, .branch = root->branch};
    char *piece = root->piece ? stet_piece_of(&(stet_docname){root->piece, root->scope}) : NULL;
    bool far = root->space != w->c->space || root->branch != w->c->branch;
    if (r)
        explain_mark(&there, r, out);
    else if (root->piece)
        stet_buf_printf(out, "%s/%s is unknown: nothing is recorded of it%s", piece ? piece : root->piece, root->name,
                        root->branch != 0 ? " on this branch" : "");
    else if (root->reason == STET_REASON_SPACE)
        stet_buf_str(out, reason_words(root->reason));
    else
        stet_buf_printf(out, "changes in space %s were not looked at yet", root->name);
    if (far && (r || root->piece))
        stet_buf_printf(out, " (in space %s)", stet_space_name(root->space));
    stet_free(piece);
}

/* Prints the recorded error message. */
static void explain_note(const stet_action_record *r, const char *piece, stet_buf *out) {
    stet_value note;
    if (r->note_len == 0 || stet_json_parse(r->note, r->note_len, &note, NULL) != STET_OK)
        return;
    stet_buf_str(out, ": ");
    piece_render_message(out, stet_value_get(note, "error"), piece, r->key.action);
    stet_value_release(note);
}

/* "PIECE/NODE, which failed: ..." */
static void explain_failed_root(const why *w, const stet_stale_root *root, const stet_action_record *r, stet_buf *out) {
    char *piece = stet_piece_of_action(&r->key);
    piece_print_action(&r->key, out);
    if (root->space != w->c->space || root->branch != w->c->branch)
        stet_buf_printf(out, " in space %s", stet_space_name(root->space));
    stet_buf_str(out, ", which failed");
    explain_note(r, piece ? piece : r->key.piece, out);
    stet_free(piece);
}

/* Explains the way to the marked action that makes this one stale. */
static void explain_stale(const why *w, const char *node, const stet_stale_root *root, stet_buf *out) {
    const char *piece = w->piece->name, *at = NULL, *end = NULL;
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    bool recorded = root->action && stet_observe_get(root->space, root->action, &arena, &r, NULL) == STET_OK;
    bool here = root->space == w->c->space && root->branch == w->c->branch;
    if (here && recorded && stet_piece_has(w->piece, &r.key))
        end = r.key.action;
    else if (here && root->piece && stet_piece_has(w->piece, &(stet_action_key){root->piece, root->scope, NULL}))
        end = root->name;
    climb k;
    climb_begin(&k, w->c, w->piece, node);
    while (end && (at = climb_next(&k)) && strcmp(at, end) != 0)
        ;
    stet_buf_printf(out, "%s/%s is stale: it ", piece, node);
    stet_value failure;
    if (root->failed && recorded) {
        stet_buf_str(out, "waits for ");
        explain_failed_root(w, root, &r, out);
        if (at) {
            stet_buf_str(out, "; it ");
            climb_print(&k, out);
        }
    } else {
        if (at)
            climb_print(&k, out);
        else
            stet_buf_str(out, "reads, over one step or more, what is not up to date");
        stet_buf_str(out, ", and ");
        explain_root(w, root, recorded ? &r : NULL, out);
    }
    if (at && !root->failed && failure_of(w, at, &failure)) {
        stet_buf_str(out, "; its last run failed: ");
        piece_render_message(out, failure, piece, at);
    }
    climb_end(&k);
    stet_arena_release(&arena);
}

static void explain_accepted(const char *piece, const stet_action_record *r, stet_buf *out) {
    char text[STET_TIME_TEXT];
    stet_value v = piece_acceptance(r), reason = stet_value_get(v, "reason");
    stet_time_print(r->time_ms, text);
    stet_buf_printf(out,
                    "%s/%s is accepted: something that it read has changed, and its result was let stand at %s: %s",
                    piece, r->key.action, text, stet_value_text(&reason, ""));
    stet_value_release(v);
}

/* An up-to-date action that depends on an accepted one. */
static void explain_through(const why *w, const stet_action_record *r, stet_buf *out) {
    const stet_stale_root *root = stet_standing_through(w->standing, r->action);
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record of;
    if (root && stet_observe_get(root->space, root->action, &arena, &of, NULL) == STET_OK) {
        stet_buf_str(out, "; it depends on ");
        piece_print_action(&of.key, out);
        if (root->space != w->c->space)
            stet_buf_printf(out, " in space %s", stet_space_name(root->space));
        stet_buf_str(out, ", which was accepted and is not proved to be up to date");
    }
    stet_arena_release(&arena);
}

/* False: it could not be read; the failure sticks to the call. */
static bool explain(const why *w, const char *node, stet_value *out) {
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    piece_call *c = w->c;
    stet_action_key key = stet_piece_action(w->piece, node);
    const char *piece = w->piece->name;
    piece_find_action(c, &key, &arena, &r);
    if (!piece_good(c)) {
        stet_arena_release(&arena);
        return false;
    }
    stet_action_state state = piece_state_in(w->wrong, w->standing, &r);
    const stet_stale_root *root = state == STET_STATE_STALE ? stet_standing_root(w->standing, r.action) : NULL;
    stet_buf b = STET_BUF(0);
    stet_value failure;
    bool failed = failure_of(w, node, &failure), above = root && root->failed;
    *out = piece_action_value(c, w->standing, &r, state, false);
    if (failed) {
        stet_buf_printf(&b, "%s/%s failed", piece, node);
        if (r.observed)
            stet_buf_printf(&b, " at sequence %lld", (long long)r.observed_at);
        stet_buf_str(&b, ": ");
        piece_render_failure(&b, failure, piece, node);
        stet_buf_str(&b, "; ");
        stet_value_put(out, "error", stet_value_retain(failure));
    }
    if (root) {
        explain_stale(w, node, root, &b);
    } else if (state == STET_STATE_UNKNOWN && stet_value_type(w->wrong) == STET_TYPE_STRING &&
               (r.cause.state == STET_STATE_STANDS || r.cause.reason == STET_REASON_PATTERN)) {
        stet_buf_printf(&b, "%s/%s is unknown: %s is not up to date: %s", piece, node, piece,
                        stet_value_as_string(&w->wrong, NULL));
    } else if (state == STET_STATE_ACCEPTED) {
        explain_accepted(piece, &r, &b);
    } else if (state != STET_STATE_STANDS) {
        explain_mark(c, &r, &b);
    } else if (failed) {
        stet_buf_str(&b, "nothing that it read has changed since: stet run tries it again");
    } else {
        stet_buf_printf(&b, "%s/%s stands: nothing that it read has changed since sequence %lld", piece, node,
                        (long long)r.observed_at);
    }
    if (state == STET_STATE_STANDS && !failed)
        explain_through(w, &r, &b);
    if (!failed && !above && state != STET_STATE_STANDS)
        above = explain_failure_above(w, node, is_command(w, node) ? "; it waits: it " : "; it ", &b);
    for (size_t i = 0; r.observed && i < r.read_count; i++)
        if (!r.reads[i].space && r.reads[i].name.id &&
            strcmp(r.reads[i].name.id, STET_ENV_PREFIX STET_PLACE_VARIABLE) == 0)
            stet_buf_str(&b, "; its output holds the path of the project, so that its result is not used in another "
                             "directory");
    stet_value_put(out, "upstreamFailed", stet_value_bool(above));
    stet_value_put(out, "text", stet_value_string_n(stet_buf_cstr(&b), b.len));
    stet_buf_release(&b);
    stet_arena_release(&arena);
    return true;
}

/* Adds the reason of an action, once, however it was reached. */
static void add_reason(const why *w, const char *node, stet_map *explained, stet_value *rows) {
    size_t before = stet_map_len(explained);
    stet_value one;
    if (stet_value_count(*rows) >= REASONS_MAX)
        return;
    stet_map_put(explained, node, strlen(node), (stet_slot){.n = 0});
    if (stet_map_len(explained) > before && explain(w, node, &one))
        stet_value_push(rows, one);
}

static void add_action(const why *w, int64_t action, stet_map *explained, stet_value *rows) {
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    stet_error mine = STET_ERROR_INIT;
    stet_status status = stet_observe_get(w->c->space, action, &arena, &r, &mine);
    if (status == STET_OK && stet_piece_has(w->piece, &r.key)) {
        add_reason(w, r.key.action, explained, rows);
    } else if (status != STET_OK && status != STET_NOT_FOUND) { /* not found: a mark left by a removed action */
        w->c->status = status;
        stet_error_move(w->c->err, &mine);
    }
    stet_error_clear(&mine);
    stet_arena_release(&arena);
}

/* Is the cause another action of this piece, which is explained by itself? */
static bool is_of_piece(const why *w, const stet_stale_root *root) {
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    bool is = false;
    if (root->space == w->c->space && root->branch == w->c->branch && root->action)
        is = stet_observe_get(root->space, root->action, &arena, &r, NULL) == STET_OK &&
             stet_piece_has(w->piece, &r.key);
    stet_arena_release(&arena);
    return is;
}

/* Explains every action of the piece that is not up to date: those that failed, are marked, have no record, are stale
 * because of another piece or space, or wait for a failed one. */
static void add_all(const why *w, stet_value *rows) {
    stet_map explained = {0};
    const stet_standing *s = w->standing;
    for (size_t i = 0; i < stet_value_count(w->failures) && i < REASONS_MAX && piece_good(w->c); i++)
        add_reason(w, stet_value_key_at(w->failures, i, NULL), &explained, rows);
    for (size_t i = 0; i < s->marked_count && stet_value_count(*rows) < REASONS_MAX && piece_good(w->c); i++)
        add_action(w, s->marked[i].action, &explained, rows);
    for (size_t i = 0; i < s->missing_count && stet_value_count(*rows) < REASONS_MAX && piece_good(w->c); i++)
        if (stet_piece_has(w->piece, &(stet_action_key){s->missing[i].piece, s->missing[i].scope, NULL}))
            add_reason(w, s->missing[i].action, &explained, rows);
    for (size_t i = 0; i < s->accepted.len && stet_value_count(*rows) < REASONS_MAX && piece_good(w->c); i++)
        add_action(w, s->accepted.at[i], &explained, rows);
    /* Those that depend on an accepted action of this piece are told with it. */
    for (size_t i = 0; i < s->through.len && stet_value_count(*rows) < REASONS_MAX && piece_good(w->c); i++)
        if (!is_of_piece(w, &s->roots[s->through_of.at[i]]))
            add_action(w, s->through.at[i], &explained, rows);
    for (size_t i = 0; i < s->stale.len && stet_value_count(*rows) < REASONS_MAX && piece_good(w->c); i++)
        if (s->roots[s->root_of.at[i]].failed || !is_of_piece(w, &s->roots[s->root_of.at[i]]))
            add_action(w, s->stale.at[i], &explained, rows);
    stet_map_release(&explained);
}

/* Adds the problem of the piece as a whole. */
static void add_wrong(const why *w, stet_value *rows) {
    if (stet_value_type(w->wrong) != STET_TYPE_STRING)
        return;
    stet_value row = stet_value_object();
    stet_value_put(&row, "state", stet_value_string(stet_action_state_name(STET_STATE_UNKNOWN)));
    stet_value_put(
        &row, "text",
        stet_value_stringf("%s is not up to date: %s", w->piece->name, stet_value_as_string(&w->wrong, NULL)));
    stet_value_push(rows, row);
}

/* Loads what the explanations of a piece need. */
static void take_piece(why *w, stet_piece *p) {
    piece_call *c = w->c;
    w->piece = p;
    if (piece_good(c))
        c->status = stet_observe_failures(c->space, c->branch, p->doc, p->scope, &w->failures, c->err);
    if (piece_good(c))
        piece_recall(c->stored, p->name, &w->failures);
    w->standing = piece_standing(c);
    w->wrong = piece_wrong(c, p);
}

static void leave_piece(why *w) {
    stet_value_release(w->failures);
    stet_value_release(w->wrong);
    *w = (why){.c = w->c};
}

/* Explains an action of a document: the one that makes it, or one that it has made outdated. */
static void add_row_of(piece_call *c, stet_value row, stet_value *rows) {
    why w = {.c = c};
    stet_map explained = {0};
    stet_value hold[2];
    stet_piece *p = NULL;
    if (piece_good(c))
        c->status =
            stet_piece_load(c->space, c->branch, stet_value_text_at_or(row, "piece", "", &hold[0]), -1, &p, c->err);
    if (piece_good(c)) {
        take_piece(&w, p);
        add_reason(&w, stet_value_text_at_or(row, "action", "", &hold[1]), &explained, rows);
        leave_piece(&w);
    }
    stet_map_release(&explained);
    stet_piece_free(p);
}

/* Who makes the document, and what it has made outdated. */
static void explain_document(piece_call *c, const piece_subject *s, stet_value *rows, stet_value *result) {
    stet_value document = piece_document_value(c, s), maker = stet_value_get(document, "maker"),
               readers = stet_value_get(document, "readers"), row = stet_value_object(), hold;
    stet_buf text = STET_BUF(0);
    piece_print_document(document, &text);
    stet_value_put(&row, "text", stet_value_string_n(stet_buf_cstr(&text), text.len));
    stet_buf_release(&text);
    stet_value_push(rows, row);
    bool made = stet_value_type(maker) == STET_TYPE_OBJECT;
    if (made)
        add_row_of(c, maker, rows);
    for (size_t i = 0; i < stet_value_count(readers) && stet_value_count(*rows) < REASONS_MAX; i++) {
        stet_value reader = stet_value_at(readers, i);
        if (stet_value_as_bool(stet_value_get(reader, "changed")))
            add_row_of(c, reader, rows);
    }
    stet_value first = made ? maker : stet_value_at(readers, 0);
    if (piece_good(c)) {
        *result = stet_value_object();
        stet_value_put(result, "piece",
                       stet_value_string(made || stet_value_count(readers) > 0
                                             ? stet_value_text_at_or(first, "piece", "", &hold)
                                             : ""));
        stet_value_put(result, "file", stet_value_retain(document));
    }
    stet_value_release(document);
}

static void explain_piece(piece_call *c, const piece_subject *s, stet_value *rows, stet_value *result) {
    why w = {.c = c};
    stet_map explained = {0};
    take_piece(&w, s->piece);
    add_wrong(&w, rows);
    if (piece_good(c) && s->node)
        add_reason(&w, s->node, &explained, rows);
    else if (piece_good(c))
        add_all(&w, rows);
    if (piece_good(c)) {
        *result = stet_value_object();
        stet_value_put(result, "piece", stet_value_string(s->piece->name));
        if (!s->node) {
            piece_put_leads(c, s->piece, result);
            piece_put_changed(c, s->piece, result);
        }
        piece_put_absent(c, s->piece->name, result);
    }
    leave_piece(&w);
    stet_map_release(&explained);
}

static stet_status why_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    piece_call c;
    piece_subject s;
    stet_value rows = stet_value_array();
    *result = stet_value_null();
    piece_begin(ctx, args, PIECE_NOW, &c, err);
    piece_subject_find(&c, args, &s);
    if (piece_good(&c) && s.document)
        explain_document(&c, &s, &rows, result);
    else if (piece_good(&c))
        explain_piece(&c, &s, &rows, result);
    stet_value owed = piece_owed(&c);
    if (piece_good(&c)) {
        stet_value_put(result, "reasons", stet_value_retain(rows));
        stet_value_put(result, "owed", stet_value_retain(owed));
    } else {
        stet_value_release(*result);
        *result = stet_value_null();
    }
    stet_value_release(owed);
    stet_value_release(rows);
    piece_subject_release(&s);
    return piece_end(&c);
}

static void why_render(stet_render *r, stet_value result) {
    stet_value rows = stet_value_get(result, "reasons");
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        stet_text_value(r, stet_value_get(stet_value_at(rows, i), "text"));
        stet_buf_char(r->out, '\n');
    }
    piece_render_changed(r, result);
    piece_render_leads(r, result);
    if (stet_value_type(stet_value_get(result, "file")) == STET_TYPE_OBJECT) {
        /* the first row says it all */
    } else if (stet_value_count(rows) == 0 && stet_value_count(stet_value_get(result, "leadsTo")) == 0 &&
               stet_value_type(stet_value_get(result, "patternChanged")) == STET_TYPE_NULL) {
        stet_text_value(r, stet_value_get(result, "piece"));
        stet_buf_str(r->out, " stands: nothing is known against any of its actions\n");
    } else if (stet_value_count(rows) == REASONS_MAX)
        stet_buf_printf(r->out, "and maybe more: at most %d are told\n", REASONS_MAX);
    piece_render_owed(r, stet_value_get(result, "owed"));
    piece_render_absent(r, result);
}

static const stet_param why_params[] = {PIECE_PARAM_ONLY_PIECE, PIECE_PARAM_ACTION(0), PIECE_PARAM_SPACE,
                                        PIECE_PARAM_BRANCH,     PIECE_PARAM_SCOPE,     {0}};
static const stet_example why_examples[] = {
    {"why totals", "why what does not stand does not"},
    {"why totals total", "how one action stands, and why"},
    {"why totals.json", "which action makes a file, and which actions have read it"},
    {0},
};

const stet_op stet_ops_why[] = {
    {.name = "why",
     .summary = "Say why an action does not stand",
     .description =
         "In one sentence for each: over which actions, which cell, written at which sequence, when and by "
         "whom; or which failure it is, and what is as old as that. Where there is only one piece its name may be "
         "left out, before an action too. PIECE may also be PIECE/ACTION, or a file: then the answer says which action "
         "makes the file, how many actions have read it, and which of them are outdated because of it.",
     .params = why_params,
     .result_schema = "{\"type\":\"object\",\"required\":[\"piece\",\"reasons\"],\"properties\":{\"piece\":{\"type\":"
                      "\"string\"},\"reasons\":{\"type\":\"array\"},\"owed\":{\"type\":[\"object\",\"null\"]},"
                      "\"leadsTo\":{\"type\":\"array\"},\"file\":{\"type\":\"object\"},\"patternChanged\":{\"type\":"
                      "\"object\"},\"absentSpaces\":{"
                      "\"type\":\"array\"}}}",
     .examples = why_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_COMMON,
     .run = why_run,
     .render = why_render},
    {0},
};
