/* piece_common.c - what the operations on patterns, pieces and actions share. */

#include "operation/piece_common.h"

#include <string.h>

#include "base/text.h"
#include "fleet/recall.h"
#include "fleet/record.h"
#include "graph/argument.h"
#include "operation/text.h"
#include "scheduler/standing.h"

stet_status piece_named(stet_value args, char **out, stet_error *err) {
    stet_value hold[2];
    const char *name = stet_value_text_at(args, "piece", &hold[0]),
               *scope = stet_value_text_at(args, "scope", &hold[1]);
    *out = NULL;
    return name ? stet_piece_in(name, scope, out, err) : STET_OK;
}

static stet_status no_piece(stet_error *err) {
    stet_fail(err, STET_NOT_FOUND, "there is no piece yet");
    stet_hint(err, "make one with: stet run PATTERN");
    return STET_NOT_FOUND;
}

static void show_note(void *ctx, const stet_error *what) {
    stet_op_ctx *c = ctx;
    c->warn(c, "%s%s%s", what->message, stet_has_hint(what) ? "; " : "", what->hint);
}

typedef struct looking {
    stet_op_ctx *op;
    piece_call *call;
} looking;

static void preview_note(void *ctx, const stet_error *what) {
    const looking *l = ctx;
    show_note(l->op, what);
}

static bool preview_cancelled(void *ctx) {
    const looking *l = ctx;
    return stet_op_cancelled(l->op);
}

static void preview_wrong(void *ctx, const char *piece, const stet_error *why) {
    const looking *l = ctx;
    stet_value_put(&l->call->invalid, piece, stet_value_string(why->message));
}

bool piece_good(const piece_call *c) {
    return c->status == STET_OK;
}

stet_value piece_wrong(piece_call *c, const stet_piece *p) {
    stet_error mine = STET_ERROR_INIT;
    if (!piece_good(c))
        return stet_value_null();
    stet_value message = stet_value_retain(stet_value_get(c->invalid, p->name));
    if (stet_value_type(message) != STET_TYPE_NULL)
        return message;
    stet_status status = stet_piece_check_parts(c->space, c->branch, p, &mine);
    if (status == STET_INVALID || status == STET_CORRUPT) {
        message = stet_value_string(mine.message);
    } else if (status != STET_OK) {
        c->status = status;
        stet_error_move(c->err, &mine);
    }
    stet_error_clear(&mine);
    return message;
}

/* Opens a copy with the patterns and files as they are now, if they have changed. */
static stet_status preview(piece_call *c) {
    looking l = {c->ctx, c};
    stet_drive_spec spec = {.space = c->space_name,
                            .branch = c->branch_name,
                            .ctx = &l,
                            .note = preview_note,
                            .wrong = preview_wrong,
                            .cancelled = preview_cancelled};
    bool changed = false;
    c->invalid = stet_value_object();
    stet_status status = stet_drive_preview(c->project, &spec, &c->now, &changed, c->err);
    if (status == STET_OK && changed)
        c->project = c->now.project;
    return status;
}

static stet_status open_call(piece_call *c, piece_access access) {
    stet_error why = STET_ERROR_INIT;
    unsigned flags = access != PIECE_WRITE ? STET_SPACE_READ_ONLY : STET_SPACE_MUST_EXIST;
    stet_status status = c->ctx->project(c->ctx, &c->project, c->err);
    c->stored = c->project;
    if (status == STET_OK && access == PIECE_NOW)
        status = preview(c);
    if (status != STET_OK)
        return status;
    status = stet_space_open(c->project, c->space_name, flags, &c->space, &why);
    /* The default space is created by the first write. */
    c->absent = status == STET_NOT_FOUND && strcmp(c->space_name, "main") == 0 && !*c->branch_name;
    if (c->absent)
        stet_error_clear(&why);
    else
        stet_error_move(c->err, &why);
    if (status == STET_OK)
        status = stet_space_branch(c->space, c->branch_name, &c->branch, c->err);
    if (status != STET_OK)
        return status;
    bool persist = stet_drive_persist(c->project);
    /* A caller that only reads does not need the store of earlier results. */
    stet_sched_opts opts = {.persist = persist && access == PIECE_WRITE};
    stet_observe_switch(c->space, persist);
    return stet_sched_open(c->project, c->space, c->branch_name, &opts, &c->sched, c->err);
}

void piece_begin_list(stet_op_ctx *ctx, stet_value args, piece_access access, piece_call *c, stet_error *err) {
    *c = (piece_call){.ctx = ctx, .err = err};
    c->space_name = stet_value_text_at_or(args, "space", "main", &c->hold[0]);
    c->branch_name = stet_value_text_at_or(args, "branch", "", &c->hold[1]);
    c->status = open_call(c, access);
    if (c->absent)
        c->status = STET_OK;
}

void piece_begin(stet_op_ctx *ctx, stet_value args, piece_access access, piece_call *c, stet_error *err) {
    piece_begin_list(ctx, args, access, c, err);
    if (piece_good(c) && c->absent)
        c->status = no_piece(err);
}

const stet_standing *piece_standing(piece_call *c) {
    if (piece_good(c) && !c->standing_loaded) {
        c->status = stet_standing_load(c->space, c->branch, &c->standing, c->err);
        c->standing_loaded = piece_good(c);
    }
    return &c->standing;
}

stet_value piece_names_in(piece_call *c, stet_value args, size_t limit, bool *more) {
    stet_value hold[2], all = stet_value_null(), names = stet_value_array();
    const char *scope = stet_value_text_at(args, "scope", &hold[0]),
               *after = stet_value_text_at(args, "after", &hold[1]);
    *more = false;
    if (piece_good(c) && !c->absent)
        c->status = stet_piece_names(c->space, c->branch, after, scope ? SIZE_MAX : limit, &all, more, c->err);
    for (size_t i = 0; i < stet_value_count(all) && piece_good(c); i++) {
        stet_value name = stet_value_at(all, i);
        bool of = !scope || strcmp(stet_piece_scope(stet_value_as_string(&name, NULL)), scope) == 0;
        if (of && stet_value_count(names) < limit)
            stet_value_push(&names, stet_value_retain(name));
        else
            *more = *more || of;
    }
    stet_value_release(all);
    return names;
}

stet_status piece_find(piece_call *c, stet_value args, stet_piece **out, stet_error *err) {
    enum { LISTED = 20 };
    stet_value names = stet_value_null();
    bool more = false;
    char *name;
    stet_status status = piece_named(args, &name, err);
    if (status == STET_OK && name)
        status = stet_piece_load(c->space, c->branch, name, -1, out, err);
    stet_free(name);
    if (status != STET_OK || stet_value_type(stet_value_get(args, "piece")) == STET_TYPE_STRING)
        return status;
    piece_call lister = *c; /* a failure is returned by this function, and does not stick to the call */
    lister.err = err;
    names = piece_names_in(&lister, args, LISTED, &more);
    status = lister.status;
    if (status == STET_OK && stet_value_count(names) == 1) {
        stet_value only = stet_value_at(names, 0);
        status = stet_piece_load(c->space, c->branch, stet_value_as_string(&only, NULL), -1, out, err);
    } else if (status == STET_OK && stet_value_count(names) == 0) {
        status = no_piece(err);
    } else if (status == STET_OK) {
        stet_buf b = STET_BUF(4096);
        for (size_t i = 0; i < stet_value_count(names); i++) {
            stet_value one = stet_value_at(names, i);
            stet_buf_printf(&b, "%s%s", i ? ", " : "", stet_value_as_string(&one, NULL));
        }
        status = stet_fail(err, STET_INVALID, "there are several pieces, say which: %s%s", stet_buf_cstr(&b),
                           more ? ", ..." : "");
        stet_buf_release(&b);
    }
    stet_value_release(names);
    return status;
}

const stet_piece *piece_pick(piece_call *c, stet_value args) {
    if (piece_good(c))
        c->status = piece_find(c, args, &c->piece, c->err);
    return c->piece;
}

const stet_piece *piece_named_by(piece_call *c, stet_value args) {
    char *name = NULL;
    if (piece_good(c))
        c->status = piece_named(args, &name, c->err);
    if (piece_good(c))
        c->status = stet_piece_load(c->space, c->branch, name ? name : "", -1, &c->piece, c->err);
    stet_free(name);
    return c->piece;
}

stet_action_state piece_state_in(stet_value wrong, const stet_standing *s, const stet_action_record *r) {
    stet_action_state state = stet_standing_state(s, r);
    bool failed = r->observed && r->failed;
    return stet_value_type(wrong) == STET_TYPE_STRING && stet_state_holds(state) && !failed ? STET_STATE_UNKNOWN
                                                                                            : state;
}

void piece_render_wrong(stet_render *r, stet_value result) {
    stet_value wrong = stet_value_get(result, "wrong");
    if (stet_value_type(wrong) != STET_TYPE_STRING)
        return;
    stet_text_value(r, stet_value_get(result, "piece"));
    stet_buf_str(r->out, " is not up to date: ");
    stet_text_value(r, wrong);
    stet_buf_char(r->out, '\n');
}

void piece_find_action(piece_call *c, const stet_action_key *key, stet_arena *arena, stet_action_record *out) {
    stet_error mine = STET_ERROR_INIT;
    *out = (stet_action_record){.key = *key};
    const stet_standing *s = piece_standing(c);
    if (!piece_good(c))
        return;
    bool missing = stet_standing_misses(s, key);
    stet_status status = stet_observe_find(c->space, c->branch, key, arena, out, &mine);
    if (status == STET_NOT_FOUND) {
        *out = (stet_action_record){.key = *key};
        missing = true;
        status = STET_OK;
    }
    if (status == STET_OK && missing && out->cause.state != STET_STATE_UNKNOWN)
        out->cause = (stet_cause){.state = STET_STATE_UNKNOWN,
                                  .reason = out->action      ? STET_REASON_RUNTIME
                                            : c->branch != 0 ? STET_REASON_BRANCH
                                                             : STET_REASON_LOST};
    if (status != STET_OK) {
        c->status = status;
        stet_error_move(c->err, &mine);
    }
    stet_error_clear(&mine);
}

stet_value piece_owed(piece_call *c) {
    stet_observe_debt debt = {0};
    stet_value v = stet_value_null();
    if (piece_good(c))
        c->status = stet_observe_owed(c->space, &debt, c->err);
    if (piece_good(c) && debt.commits + debt.spaces > 0) {
        v = stet_value_object();
        stet_value_put(&v, "commits", stet_value_int(debt.commits));
        stet_value_put(&v, "spaces", stet_value_int(debt.spaces));
    }
    return v;
}

void piece_render_owed(stet_render *r, stet_value owed) {
    int64_t commits = stet_value_as_int(stet_value_get(owed, "commits")),
            spaces = stet_value_as_int(stet_value_get(owed, "spaces"));
    if (commits + spaces == 0)
        return;
    stet_text_styled(r, STET_STYLE_WARN, "not looked at yet: ");
    if (commits > 0)
        stet_buf_printf(r->out, "%lld commit%s", (long long)commits, commits == 1 ? "" : "s");
    if (spaces > 0)
        stet_buf_printf(r->out, "%schanges in %lld other space%s", commits > 0 ? " and " : "", (long long)spaces,
                        spaces == 1 ? "" : "s");
    stet_buf_str(r->out, "; the next run does, and may find more to do\n");
}

/* Adds a list as a member, unless it is empty. */
static void put_list(stet_value *row, const char *name, stet_value list) {
    if (stet_value_count(list) > 0)
        stet_value_put(row, name, list);
    else
        stet_value_release(list);
}

void piece_put_absent(piece_call *c, const char *piece, stet_value *result) {
    stet_value list = stet_value_null();
    if (piece_good(c))
        c->status = stet_standing_absent(c->space, c->branch, piece, &list, c->err);
    put_list(result, "absentSpaces", list);
}

void piece_put_leads(piece_call *c, const stet_piece *p, stet_value *row) {
    stet_value list = stet_value_null();
    const stet_standing *s = piece_standing(c);
    if (piece_good(c))
        c->status = stet_sched_leads_to(c->sched, p, s, &list, c->err);
    if (piece_good(c))
        put_list(row, "leadsTo", list);
}

void piece_render_leads(stet_render *r, stet_value row) {
    enum { SHOWN = 3 };
    stet_value list = stet_value_get(row, "leadsTo");
    if (stet_value_count(list) == 0)
        return;
    stet_text_value(r, stet_value_get(row, "piece"));
    stet_buf_str(r->out, ": its result is out of date: it links to ");
    for (size_t i = 0; i < stet_value_count(list) && i < SHOWN; i++) {
        stet_value v = stet_value_at(list, i), space = stet_value_get(v, "space");
        if (i)
            stet_buf_str(r->out, ", ");
        stet_text_value(r, stet_value_get(v, "piece"));
        stet_buf_char(r->out, '/');
        stet_text_value(r, stet_value_get(v, "node"));
        if (stet_value_type(space) == STET_TYPE_STRING) {
            stet_buf_str(r->out, " in space ");
            stet_text_value(r, space);
        }
        stet_buf_str(r->out, " (");
        stet_text_value(r, stet_value_get(v, "state"));
        stet_buf_char(r->out, ')');
    }
    if (stet_value_count(list) > SHOWN)
        stet_buf_printf(r->out, " and %zu more", stet_value_count(list) - SHOWN);
    stet_buf_char(r->out, '\n');
}

bool piece_is_preview(const piece_call *c, const char *uuid, int64_t seq) {
    stet_arena arena = STET_ARENA_INIT;
    stet_space *space = NULL;
    int64_t head = seq;
    if (c->stored == c->project)
        return false;
    const char *name = uuid ? stet_observe_space_name(c->space, uuid, &arena) : stet_space_name(c->space);
    if (stet_space_open(c->stored, name, STET_SPACE_READ_ONLY | STET_SPACE_MUST_EXIST, &space, NULL) != STET_OK ||
        stet_space_seq(space, &head, NULL) != STET_OK)
        head = seq;
    stet_space_close(space);
    stet_arena_release(&arena);
    return seq > head;
}

void piece_put_changed(piece_call *c, const stet_piece *p, stet_value *row) {
    stet_space *space = NULL;
    stet_piece *was = NULL;
    int64_t branch = 0;
    if (!piece_good(c) || c->stored == c->project)
        return;
    stet_status status = stet_space_open(c->stored, c->space_name, STET_SPACE_READ_ONLY, &space, c->err);
    if (status == STET_OK)
        status = stet_space_branch(space, c->branch_name, &branch, c->err);
    if (status == STET_OK)
        status = stet_piece_load(space, branch, p->name, -1, &was, c->err);
    if (status == STET_OK && !stet_hash_equal(was->program, p->program)) {
        stet_value v = stet_value_object(), file = stet_value_get(stet_value_get(p->envelope, "source"), "file");
        stet_value_put(&v, "generation", stet_value_int(p->generation));
        if (stet_value_type(file) == STET_TYPE_STRING)
            stet_value_put(&v, "file", stet_value_retain(file));
        stet_value_put(row, "patternChanged", v);
    }
    stet_piece_free(was);
    stet_space_close(space);
    c->status = status;
}

void piece_render_changed(stet_render *r, stet_value row) {
    stet_value changed = stet_value_get(row, "patternChanged"), file = stet_value_get(changed, "file");
    if (stet_value_type(changed) != STET_TYPE_OBJECT)
        return;
    stet_text_value(r, stet_value_get(row, "piece"));
    stet_buf_str(r->out, ": its pattern");
    if (stet_value_type(file) == STET_TYPE_STRING) {
        stet_buf_char(r->out, ' ');
        stet_text_value(r, file);
    }
    stet_buf_printf(r->out, " has changed; the next run sets it up as generation %lld\n",
                    (long long)stet_value_as_int(stet_value_get(changed, "generation")));
}

void piece_render_absent(stet_render *r, stet_value result) {
    stet_value list = stet_value_get(result, "absentSpaces");
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_buf b = STET_BUF(0);
        stet_standing_print_absent(stet_value_at(list, i), &b);
        stet_text_styled(r, STET_STYLE_WARN, "warning: ");
        stet_text_plain(r, stet_buf_cstr(&b), b.len);
        stet_buf_str(r->out, "; its documents are read as absent\n");
        stet_buf_release(&b);
    }
}

void piece_render_overridden(stet_render *r, stet_value names) {
    enum { SHOWN = 20 }; /* each child may have failures */
    for (size_t i = 0; i < stet_value_count(names) && i < SHOWN; i++) {
        stet_buf_str(r->out, i ? ", " : "overridden: ");
        stet_text_value(r, stet_value_at(names, i));
    }
    if (stet_value_count(names) > SHOWN)
        stet_buf_printf(r->out, " and %zu more", stet_value_count(names) - SHOWN);
    if (stet_value_count(names) > 0)
        stet_buf_str(r->out, "; stet run --unset KEY returns to the pattern's default\n");
}

void piece_render_message(stet_buf *out, stet_value failure, const char *piece, const char *node) {
    stet_value message = stet_value_get(failure, "message");
    size_t len = 0, name = strlen(piece) + 1 + strlen(node);
    const char *text = stet_value_type(message) == STET_TYPE_STRING ? stet_value_as_string(&message, &len) : "";
    if (len > name + 2 && strncmp(text, piece, strlen(piece)) == 0 && text[strlen(piece)] == '/' &&
        strncmp(text + strlen(piece) + 1, node, strlen(node)) == 0 && strncmp(text + name, ": ", 2) == 0) {
        text += name + 2;
        len -= name + 2;
    }
    stet_buf_add(out, text, len);
}

void piece_render_failure(stet_buf *out, stet_value failure, const char *piece, const char *node) {
    stet_buf words = STET_BUF(1024);
    piece_render_message(out, failure, piece, node);
    if (stet_fleet_last_words(stet_value_get(failure, "details"), &words)) {
        stet_buf_str(out, ": ");
        stet_buf_add(out, words.data, words.len - strlen(strrchr(stet_buf_cstr(&words), '(')) - 1);
    }
    stet_buf_release(&words);
}

void piece_recall(stet_project *project, const char *piece, stet_value *failures) {
    enum { MOST = 20 };
    if (stet_value_count(*failures) == 0)
        return;
    stet_recall *r = stet_recall_open(project);
    stet_value all = stet_value_object();
    for (size_t i = 0; i < stet_value_count(*failures); i++) {
        size_t len;
        const char *node = stet_value_key_at(*failures, i, &len);
        stet_value error = stet_value_retain(stet_value_at(*failures, i));
        if (i < MOST)
            stet_recall_add(r, piece, node, &error);
        stet_value_put_n(&all, node, len, error);
    }
    stet_value_release(*failures);
    *failures = all;
    stet_recall_close(r);
}

stet_status piece_end(piece_call *c) {
    stet_status status = c->status;
    stet_piece_free(c->piece);
    if (c->standing_loaded)
        stet_standing_release(&c->standing);
    stet_sched_close(c->sched);
    stet_space_close(c->space);
    stet_scratch_close(&c->now);
    stet_value_release(c->invalid);
    *c = (piece_call){.status = status};
    return status;
}

stet_value piece_picture(const stet_process *g, const char *format) {
    stet_buf b = STET_BUF(0);
    if (strcmp(format, "dot") == 0)
        stet_process_dot(g, &b);
    else
        stet_process_mermaid(g, &b);
    stet_value v = stet_value_string_n(stet_buf_cstr(&b), b.len);
    stet_buf_release(&b);
    return v;
}

/* `shown`: what the command printed was shown when it ended. */
static void render_problem(stet_render *r, stet_value p, bool shown) {
    stet_value error = stet_value_get(p, "error"), hint = stet_value_get(error, "hint");
    stet_text_styled(r, STET_STYLE_BAD,
                     stet_value_type(stet_value_get(p, "cycle")) == STET_TYPE_STRING ? "aside  "
                     : stet_value_as_bool(stet_value_get(p, "outdated"))             ? "outdated "
                                                                                     : "failed ");
    stet_value piece = stet_value_get(p, "piece"), node = stet_value_get(p, "node");
    if (stet_value_type(piece) == STET_TYPE_STRING) {
        stet_text_value(r, piece);
        stet_buf_char(r->out, '/');
        stet_text_value(r, node);
    } else { /* of a whole space */
        stet_buf_str(r->out, "space ");
        stet_text_value(r, stet_value_get(p, "space"));
    }
    stet_buf_str(r->out, ": ");
    stet_buf said_why = STET_BUF(0);
    if (shown)
        piece_render_failure(&said_why, error, stet_value_text(&piece, ""), stet_value_text(&node, ""));
    else
        piece_render_message(&said_why, error, stet_value_text(&piece, ""), stet_value_text(&node, ""));
    stet_text_plain(r, stet_buf_cstr(&said_why), said_why.len);
    stet_buf_release(&said_why);
    stet_buf_char(r->out, '\n');
    /* The complete output of a failed command. */
    static const char *const streams[] = {"stdout", "stderr"};
    for (int i = 0; i < 2 && !shown; i++) {
        stet_value output = stet_value_get(stet_value_get(error, "details"), streams[i]);
        size_t len;
        const char *text = stet_value_as_string(&output, &len);
        if (text)
            stet_text_output(r, "", text, len);
    }
    size_t hint_len = 0;
    stet_value_as_string(&hint, &hint_len);
    if (stet_value_type(hint) == STET_TYPE_STRING && hint_len > 0) {
        stet_buf_str(r->out, "       ");
        stet_text_value(r, hint);
        stet_buf_char(r->out, '\n');
    }
}

/* Prints actions that failed at an earlier start. Their output was shown then, and is in the log of that run. */
static void render_before(stet_render *r, stet_value list) {
    size_t n = stet_value_count(list);
    for (size_t i = 0; i < n && i < 20; i++) {
        stet_value p = stet_value_at(list, i), piece = stet_value_get(p, "piece"), node = stet_value_get(p, "node");
        stet_buf why = STET_BUF(0);
        stet_text_styled(r, STET_STYLE_BAD, "failed before ");
        stet_text_value(r, piece);
        stet_buf_char(r->out, '/');
        stet_text_value(r, node);
        stet_buf_str(r->out, ": ");
        piece_render_failure(&why, stet_value_get(p, "error"), stet_value_text(&piece, ""), stet_value_text(&node, ""));
        stet_text_plain(r, stet_buf_cstr(&why), why.len);
        stet_buf_char(r->out, '\n');
        stet_buf_release(&why);
    }
    if (n > 20)
        stet_buf_str(r->out, "... and more; stet status shows them\n");
    if (n > 0)
        stet_buf_printf(r->out, "nothing that %s read has changed since; without --no-retry-failed %s again\n",
                        n == 1 ? "it" : "they", n == 1 ? "it runs" : "they run");
}

static void render_reason(stet_render *r, stet_value a) {
    stet_value document = stet_value_get(a, "document"), piece = stet_value_get(a, "piece");
    if (stet_value_type(piece) == STET_TYPE_STRING) { /* of another piece */
        stet_text_value(r, piece);
        stet_buf_char(r->out, '/');
    }
    stet_text_value(r, stet_value_get(a, "node"));
    stet_buf_str(r->out, ": ");
    stet_text_value(r, stet_value_get(a, "state"));
    stet_buf_str(r->out, ", ");
    stet_text_value(r, stet_value_get(a, "reason"));
    if (stet_value_type(document) == STET_TYPE_STRING) {
        stet_buf_str(r->out, ": ");
        stet_text_value(r, document);
    }
    if (stet_value_type(stet_value_get(a, "scope")) == STET_TYPE_STRING) {
        stet_buf_str(r->out, " (scope ");
        stet_text_value(r, stet_value_get(a, "scope"));
        stet_buf_char(r->out, ')');
    }
    if (stet_value_type(stet_value_get(a, "waitsFor")) == STET_TYPE_STRING) {
        stet_buf_str(r->out, "; waits for ");
        stet_text_value(r, stet_value_get(a, "waitsFor"));
        stet_buf_str(r->out, ", which failed");
    }
    stet_buf_char(r->out, '\n');
}

void piece_render_outcome(stet_render *r, stet_value result) {
    stet_value problems = stet_value_get(result, "problems"), setup = stet_value_get(result, "setup");
    stet_value actions = stet_value_get(result, "actions");
    for (size_t i = 0; i < stet_value_count(actions); i++)
        render_reason(r, stet_value_at(actions, i));
    for (size_t i = 0; i < stet_value_count(problems) && i < 20; i++)
        render_problem(r, stet_value_at(problems, i), stet_value_as_bool(stet_value_get(result, "outputShown")));
    if (stet_value_count(problems) > 20)
        stet_buf_str(r->out, "... and more; stet status shows them\n");
    render_before(r, stet_value_get(result, "failedBefore"));
    if (stet_value_type(setup) == STET_TYPE_OBJECT && !stet_value_as_bool(stet_value_get(setup, "created")))
        stet_buf_printf(r->out, "%sgeneration %lld: %lld nodes added, %lld changed, %lld gone, %lld kept\n",
                        stet_value_as_bool(stet_value_get(result, "dryRun")) ? "it would be " : "",
                        (long long)stet_value_as_int(stet_value_get(setup, "generation")),
                        (long long)stet_value_as_int(stet_value_get(setup, "added")),
                        (long long)stet_value_as_int(stet_value_get(setup, "changed")),
                        (long long)stet_value_as_int(stet_value_get(setup, "gone")),
                        (long long)stet_value_as_int(stet_value_get(setup, "kept")));
    if (stet_value_as_bool(stet_value_get(result, "dryRun"))) {
        size_t n = stet_value_count(actions), restarts = 0;
        for (size_t i = 0; i < n; i++) {
            stet_value reason = stet_value_get(stet_value_at(actions, i), "reason");
            restarts += strcmp(stet_value_as_string(&reason, NULL), "restart") == 0;
        }
        n -= restarts;
        stet_buf_printf(r->out, n == 1 ? "%zu action does not stand" : "%zu actions do not stand", n);
        if (restarts > 0)
            stet_buf_printf(r->out,
                            restarts == 1 ? ", %zu effect runs at every start" : ", %zu effects run at every start",
                            restarts);
        if (stet_value_as_int(stet_value_get(result, "accepted")) > 0)
            stet_buf_printf(r->out, ", %lld accepted",
                            (long long)stet_value_as_int(stet_value_get(result, "accepted")));
        stet_buf_str(r->out, "; nothing was run\n");
        return;
    }
    long long failed = stet_value_as_int(stet_value_get(result, "failed")),
              aside = stet_value_as_int(stet_value_get(result, "aside")),
              left = stet_value_as_int(stet_value_get(result, "left")),
              waiting = stet_value_as_int(stet_value_get(result, "waiting"));
    bool part = stet_value_as_bool(stet_value_get(result, "part"));
    long long restored = stet_value_as_int(stet_value_get(result, "restored")),
              accepted = stet_value_as_int(stet_value_get(result, "accepted")),
              through = stet_value_as_int(stet_value_get(result, "throughAccepted"));
    stet_buf_printf(r->out, "ran %lld", (long long)stet_value_as_int(stet_value_get(result, "ran")));
    if (restored > 0)
        stet_buf_printf(r->out, " (%lld restored)", restored);
    if (!part)
        stet_buf_printf(r->out, ", up to date %lld", (long long)stet_value_as_int(stet_value_get(result, "stood")));
    if (!part && through > 0)
        stet_buf_printf(r->out, " (%lld through accepted results)", through);
    if (accepted > 0)
        stet_buf_printf(r->out, ", accepted %lld", accepted);
    stet_buf_printf(r->out, ", failed %lld", failed);
    if (aside > 0)
        stet_buf_printf(r->out, ", put aside %lld", aside);
    if (left > 0)
        stet_buf_printf(r->out, ", left %lld", left);
    if (waiting > 0)
        stet_buf_printf(r->out, " (%lld wait for what %s)", waiting,
                        aside == 0   ? "failed"
                        : failed > 0 ? "failed or was put aside"
                                     : "was put aside");
    stet_value unverified = stet_value_get(result, "unverified");
    stet_buf_printf(r->out, " in %.2f s%s", (double)stet_value_as_int(stet_value_get(result, "durationMs")) / 1000,
                    part && failed + aside + left + accepted + through == 0 ? ": what was asked for stands"
                    : part && failed + aside + left == 0
                        ? ": what was asked for stands, in part because it was accepted"
                        : "");
    for (size_t i = 0; i < stet_value_count(unverified); i++) {
        stet_buf_str(r->out, i ? ", " : "; not verified: ");
        stet_text_value(r, stet_value_at(unverified, i));
    }
    stet_buf_str(r->out, stet_value_count(unverified) ? " did not run (stet run runs all of it)\n" : "\n");
}

stet_status piece_outcome_verdict(stet_value result) {
    stet_value code = stet_value_get(stet_value_get(result, "resultError"), "code");
    const char *why = stet_value_text(&code, "");
    bool failed = stet_value_as_int(stet_value_get(result, "failed")) > 0 || strcmp(why, "failed") == 0;
    if (!failed && strcmp(why, "conflict") == 0)
        return STET_CONFLICT;
    return failed || stet_value_as_int(stet_value_get(result, "aside")) > 0 ? STET_FAILED : STET_OK;
}

const char piece_outcome_schema[] =
    "{\"type\":\"object\",\"required\":[\"piece\",\"ran\",\"stood\",\"failed\",\"aside\",\"runs\",\"nodes\","
    "\"durationMs\",\"problems\"],\"properties\":{\"piece\":{\"type\":\"string\"},\"ran\":{\"type\":\"integer\"},"
    "\"restored\":{\"type\":\"integer\"},\"accepted\":{\"type\":\"integer\"},\"throughAccepted\":{\"type\":\"integer\"}"
    ",\"stood\":{\"type\":\"integer\"},\"failed\":{\"type\":\"integer\"},\"aside\":{"
    "\"type\":\"integer\"},\"left\":{"
    "\"type\":\"integer\"},\"waiting\":{\"type\":\"integer\"},\"runs\":{"
    "\"type\":\"integer\"},\"nodes\":{\"type\":\"integer\"},\"unchanged\":{\"type\":\"integer\"},\"effects\":{\"type\":"
    "\"integer\"},\"conflicts\":{\"type\":\"integer\"},\"loaded\":{\"type\":\"integer\"},\"flushes\":{\"type\":"
    "\"integer\"},\"causes\":{\"type\":\"object\"},\"setup\":{\"type\":\"object\"},\"durationMs\":{\"type\":"
    "\"integer\"},\"files\":{\"type\":\"integer\"},\"filesChanged\":{\"type\":\"integer\"},"
    "\"watched\":{\"type\":\"boolean\"},\"dryRun\":{\"type\":\"boolean\"},\"outputShown\":{\"type\":\"boolean\"},"
    "\"part\":{\"type\":\"boolean\"},\"unverified\":{\"type\":\"array\"},\"failedBefore\":{\"type\":\"array\"},"
    "\"actions\":{\"type\":\"array\"},\"absentSpaces\":{\"type\":\"array\"},\"metrics\":{\"type\":\"object\"}"
    ",\"runId\":{\"type\":[\"string\",\"null\"]},\"committed\":{\"type\":\"boolean\"},\"problems\":{\"type\":\"array\"}"
    ","
    "\"result\":{},\"resultError\":{\"type\":\"object\"}}}";

static void show_progress(void *ctx, int64_t done, int64_t total, const char *note) {
    stet_op_ctx *c = ctx;
    c->progress(c, done, total, note);
}

/* What failed at an earlier start is told with what it printed then. */
static void recall_before(stet_project *project, stet_value *list) {
    stet_recall *r = stet_recall_open(project);
    for (size_t i = 0; i < stet_value_count(*list) && i < 20; i++) {
        stet_value p = stet_value_retain(stet_value_at(*list, i)),
                   error = stet_value_retain(stet_value_get(p, "error")), piece = stet_value_get(p, "piece"),
                   node = stet_value_get(p, "node");
        stet_recall_add(r, stet_value_text(&piece, ""), stet_value_text(&node, ""), &error);
        stet_value_put(&p, "error", error);
        if (!stet_value_put_at(list, i, p))
            break;
    }
    stet_recall_close(r);
}

stet_status piece_drive(stet_op_ctx *ctx, stet_drive_spec *spec, stet_value *result, stet_error *err) {
    stet_project *project;
    stet_status status = ctx->project(ctx, &project, err);
    if (status != STET_OK)
        return status;
    spec->ctx = ctx;
    spec->cancelled = stet_op_cancelled;
    spec->progress = show_progress;
    spec->note = show_note;
    if (spec->result != STET_DRIVE_NEED_RESULT) /* whoever needs the result is shown nothing else */
        spec->output = ctx->output;
    spec->live = ctx->live;
    stet_drive_outcome out;
    status = stet_drive(project, spec, &out, err);
    if (status == STET_OK) {
        recall_before(project, &out.failed_before);
        *result = stet_drive_outcome_value(&out);
        if (spec->output)
            stet_value_put(result, "outputShown", stet_value_bool(true));
    } else if (status == STET_CANCELLED) {
        stet_detail(err, "ran", stet_value_int((int64_t)out.report.ran));
        stet_hint(err, "what was done is stored; the next start goes on from there");
    }
    stet_drive_outcome_release(&out);
    return status;
}

stet_status piece_fresh(stet_op_ctx *ctx, stet_value args, const stet_docname *name, stet_pathref path, stet_value *out,
                        stet_error *err) {
    stet_project *project;
    stet_value hold[2];
    stet_status status = ctx->project(ctx, &project, err);
    stet_drive_spec spec = {.space = stet_value_text_at_or(args, "space", "main", &hold[0]),
                            .branch = stet_value_text_at_or(args, "branch", "", &hold[1]),
                            .ctx = ctx,
                            .note = show_note,
                            .cancelled = stet_op_cancelled};
    return status == STET_OK ? stet_drive_fresh(project, &spec, name, path, out, err) : status;
}
