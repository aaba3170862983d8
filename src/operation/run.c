/* run.c - the operations run and piece pull. */

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "drive/maker.h"
#include "graph/pattern_toml.h"
#include "operation/args.h"
#include "operation/piece_common.h"
#include "operation/runs_common.h"
#include "operation/subject.h"
#include "operation/text.h"
#include "os/file.h"

static stet_status settled(void *ctx, const stet_sched_report *report, int64_t duration_ms, stet_error *err) {
    stet_op_ctx *c = ctx;
    stet_value event = stet_value_object();
    stet_value_put(&event, "ran", stet_value_int((int64_t)report->ran));
    stet_value_put(&event, "restored", stet_value_int((int64_t)report->restored));
    stet_value_put(&event, "failed", stet_value_int((int64_t)report->failed));
    stet_value_put(&event, "stood", stet_value_int((int64_t)report->stood));
    if (report->accepted + report->through > 0) {
        stet_value_put(&event, "accepted", stet_value_int((int64_t)report->accepted));
        stet_value_put(&event, "throughAccepted", stet_value_int((int64_t)report->through));
    }
    stet_value_put(&event, "aside", stet_value_int((int64_t)report->aside));
    stet_value_put(&event, "left", stet_value_int((int64_t)report->left));
    stet_value_put(&event, "problems", stet_value_retain(report->problems));
    stet_value_put(&event, "durationMs", stet_value_int(duration_ms));
    stet_status status = c->emit(c, event, err);
    stet_value_release(event);
    return status;
}

/* The path of stet.toml in this directory or the nearest one above it; NULL: there is none. Caller frees. */
static char *find_upward(const char *from) {
    char *dir = stet_strdup(from);
    for (;;) {
        char *file = stet_file_join(dir, STET_PATTERN_TOML);
        if (stet_file_exists(file)) {
            stet_free(dir);
            return file;
        }
        stet_free(file);
        char *up = stet_file_dirname(dir);
        bool top = strcmp(up, dir) == 0;
        stet_free(dir);
        dir = up;
        if (top)
            break;
    }
    stet_free(dir);
    return NULL;
}

static bool ends_with(const char *word, const char *end) {
    size_t len = strlen(word), n = strlen(end);
    return len > n && strcmp(word + len - n, end) == 0;
}

typedef struct target {
    char *pattern; /* NULL: the piece follows its own */
    char *piece;   /* that the words name; NULL: none */
    stet_value nodes;
} target;

static void release_target(target *t) {
    stet_free(t->pattern);
    stet_free(t->piece);
    stet_value_release(t->nodes);
}

/* The space of a project that may not exist yet. */
static bool open_space(stet_op_ctx *ctx, stet_value args, stet_space **space, int64_t *branch) {
    stet_value hold[2];
    stet_project *project;
    *space = NULL;
    bool there =
        ctx->project(ctx, &project, NULL) == STET_OK &&
        stet_space_open(project, stet_value_text_at_or(args, "space", "main", &hold[0]),
                        STET_SPACE_READ_ONLY | STET_SPACE_MUST_EXIST, space, NULL) == STET_OK &&
        stet_space_branch(*space, stet_value_text_at_or(args, "branch", "", &hold[1]), branch, NULL) == STET_OK;
    if (!there) {
        stet_space_close(*space);
        *space = NULL;
    }
    return there;
}

/* Does a stored node make the file? */
static bool is_made(stet_op_ctx *ctx, stet_value args, const char *word) {
    stet_space *space;
    int64_t branch;
    char *piece = NULL, *node = NULL;
    if (!open_space(ctx, args, &space, &branch))
        return false;
    char *path = stet_maker_path(stet_space_root(space), ctx->cwd, word);
    bool made = path &&
                stet_maker_find(space, branch, stet_space_root(space), NULL, path, &piece, &node, NULL) == STET_OK &&
                node;
    stet_free(path);
    stet_free(piece);
    stet_free(node);
    stet_space_close(space);
    return made;
}

/* Is this JSON a pattern? If it can't be read its error is told, unless a node makes the file. */
static bool holds_pattern(stet_op_ctx *ctx, stet_value args, const char *word, const char *path) {
    enum { LARGEST = 256 << 20 };
    stet_buf text = STET_BUF(0);
    stet_value v = stet_value_null();
    stet_status status = stet_file_read(path, LARGEST, &text, NULL);
    if (status == STET_OK)
        status = stet_json_parse(text.data, text.len, &v, NULL);
    bool is = status == STET_OK ? stet_value_find(v, "pattern", 7, NULL) : !is_made(ctx, args, word);
    stet_value_release(v);
    stet_buf_release(&text);
    return is;
}

/* Does the first word name a pattern? Below a stet.toml a word may also name a file that one of its nodes makes. */
static bool is_pattern(stet_op_ctx *ctx, stet_value args, const char *word, const char *path, bool below) {
    bool json = ends_with(word, ".json"),
         program = ends_with(word, ".toml") || ends_with(word, ".js") || ends_with(word, ".mjs");
    if (!below)
        return json || program || strchr(word, '/') || stet_file_exists(path);
    return stet_file_exists(path) && (program || (json && holds_pattern(ctx, args, word, path)));
}

/* Words as stet prints them name the piece, too: "PIECE/NODE". All of them must name the same one. */
static stet_status take_pieces(stet_op_ctx *ctx, stet_value args, target *t, stet_error *err) {
    stet_space *space;
    int64_t branch;
    stet_status status = STET_OK;
    if (stet_value_count(t->nodes) == 0 || !open_space(ctx, args, &space, &branch))
        return STET_OK;
    for (size_t i = 0; i < stet_value_count(t->nodes) && status == STET_OK; i++) {
        stet_value v = stet_value_at(t->nodes, i);
        char *piece = NULL, *node = NULL;
        if (!piece_split(space, branch, stet_value_as_string(&v, NULL), &piece, &node))
            continue;
        if (t->piece && strcmp(t->piece, piece) != 0)
            status = stet_fail(err, STET_INVALID, "one run is of one piece, and these nodes are of \"%s\" and \"%s\"",
                               t->piece, piece);
        stet_value_put_at(&t->nodes, i, stet_value_string(node));
        stet_free(node);
        stet_free(t->piece);
        t->piece = piece;
    }
    stet_space_close(space);
    if (t->piece) {
        stet_free(t->pattern);
        t->pattern = NULL;
    }
    return status;
}

/* The first word is a pattern if a file of that name is one; otherwise it is a node or a file, like the other words. */
static stet_status find_target(stet_op_ctx *ctx, stet_value args, target *t, stet_error *err) {
    stet_value hold;
    const char *word = stet_value_text_at_or(args, "pattern", "", &hold);
    *t = (target){.nodes = stet_value_type(stet_value_get(args, "node")) == STET_TYPE_ARRAY
                               ? stet_value_retain(stet_value_get(args, "node"))
                               : stet_value_array()};
    t->pattern = find_upward(ctx->project_dir ? ctx->project_dir : ctx->cwd);
    if (*word) {
        char *path = stet_op_path(ctx, word);
        if (is_pattern(ctx, args, word, path, t->pattern != NULL)) {
            stet_free(t->pattern);
            t->pattern = path;
            return take_pieces(ctx, args, t, err);
        }
        stet_free(path);
        stet_value_insert_at(&t->nodes, 0, stet_value_string(word));
    }
    return take_pieces(ctx, args, t, err);
}

/* Is the only word the name of a stored piece? */
static bool names_piece(stet_op_ctx *ctx, stet_value args, const target *t) {
    stet_space *space;
    int64_t branch;
    stet_piece *p = NULL;
    if (stet_value_count(t->nodes) != 1 || t->piece || !open_space(ctx, args, &space, &branch))
        return false;
    stet_value v = stet_value_at(t->nodes, 0);
    bool is = stet_piece_load(space, branch, stet_value_as_string(&v, NULL), -1, &p, NULL) == STET_OK;
    stet_piece_free(p);
    stet_space_close(space);
    return is;
}

static stet_status no_pattern(const target *t, stet_error *err) {
    stet_value v = stet_value_at(t->nodes, 0);
    bool word = stet_value_count(t->nodes) > 0;
    stet_fail(err, STET_NOT_FOUND,
              word ? "there is no pattern or piece %s, and no " STET_PATTERN_TOML " here or above"
                   : "there is no " STET_PATTERN_TOML " here or above%s",
              word ? stet_value_as_string(&v, NULL) : "");
    stet_hint(err, "name a pattern: stet run FILE, or write a " STET_PATTERN_TOML " (docs/pipelines.md)");
    return STET_NOT_FOUND;
}

/* A node comes before a piece of that name. */
static stet_status drive_target(stet_op_ctx *ctx, stet_value args, stet_drive_spec *spec, target *t, stet_value *result,
                                stet_error *err) {
    stet_value hold;
    const char *piece = stet_value_text_at(args, "piece", &hold);
    stet_error mine = STET_ERROR_INIT;
    stet_status status = STET_NOT_FOUND;
    if (t->piece && piece && strcmp(t->piece, piece) != 0)
        return stet_fail(err, STET_INVALID, "the nodes are of piece \"%s\", and --piece names \"%s\"", t->piece, piece);
    spec->pattern = t->pattern;
    spec->piece = t->piece ? t->piece : piece;
    spec->nodes = t->nodes;
    status = t->pattern || t->piece ? piece_drive(ctx, spec, result, &mine) : no_pattern(t, &mine);
    if (status == STET_NOT_FOUND && !piece && names_piece(ctx, args, t)) {
        stet_value v = stet_value_at(t->nodes, 0);
        stet_error_clear(&mine);
        spec->pattern = NULL;
        spec->piece = stet_value_as_string(&v, NULL);
        spec->nodes = stet_value_null();
        status = piece_drive(ctx, spec, result, &mine);
    }
    if (status != STET_OK)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    return status;
}

/* `stet run search`: neither a pattern nor a node, but a command about runs. */
static void hint_at_runs(stet_value args, stet_error *err) {
    stet_value hold;
    char *name = stet_asprintf("runs %s", stet_value_text_at_or(args, "pattern", "", &hold));
    if (stet_op_find(name))
        stet_hint_instead(err, "did you mean: stet %s?", name);
    stet_free(name);
}

static stet_status run_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_value hold[3];
    target t;
    stet_status status = find_target(ctx, args, &t, err);
    if (status != STET_OK) {
        hint_at_runs(args, err);
        release_target(&t);
        return status;
    }
    stet_drive_spec spec = {.space = stet_value_text_at_or(args, "space", "main", &hold[0]),
                            .branch = stet_value_text_at_or(args, "branch", "", &hold[1]),
                            .scope = stet_value_text_at(args, "scope", &hold[2]),
                            .set = stet_value_get(args, "set"),
                            .unset = stet_value_get(args, "unset"),
                            .demand = stet_value_get(args, "demand"),
                            .retry_failed = !stet_value_as_bool(stet_value_get(args, "no_retry_failed")),
                            .observe_only = stet_value_as_bool(stet_value_get(args, "observe_only")),
                            .result = ctx->json ? STET_DRIVE_SHOW_RESULT : STET_DRIVE_NO_RESULT,
                            .record = stet_value_as_bool(stet_value_get(args, "record")),
                            .watch = stet_value_as_bool(stet_value_get(args, "watch")),
                            .settled = settled,
                            .cwd = ctx->cwd,
                            .jobs = (int)stet_value_as_int(stet_value_get(args, "jobs")),
                            .stop_on_failure = !stet_value_as_bool(stet_value_get(args, "keep_going")),
                            .explain = stet_value_as_bool(stet_value_get(args, "explain")),
                            .dry_run = stet_value_as_bool(stet_value_get(args, "dry_run"))};
    status = drive_target(ctx, args, &spec, &t, result, err);
    if (status == STET_INVALID || status == STET_NOT_FOUND)
        hint_at_runs(args, err);
    if (status == STET_OK && spec.watch) { /* each settling was reported when it ended */
        stet_value_release(*result);
        *result = stet_value_null();
    }
    release_target(&t);
    return status;
}

static stet_status pull_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_value hold[4];
    stet_drive_spec spec = {.space = stet_value_text_at_or(args, "space", "main", &hold[0]),
                            .branch = stet_value_text_at_or(args, "branch", "", &hold[1]),
                            .piece = stet_value_text_at_or(args, "piece", "", &hold[2]),
                            .scope = stet_value_text_at(args, "scope", &hold[3]),
                            .demand = stet_value_get(args, "demand"),
                            .retry_failed = !stet_value_as_bool(stet_value_get(args, "no_retry_failed")),
                            .result = STET_DRIVE_NEED_RESULT,
                            .record = stet_value_as_bool(stet_value_get(args, "record"))};
    return piece_drive(ctx, &spec, result, err);
}

static void pull_render(stet_render *r, stet_value result) {
    size_t len;
    char *text = stet_json_print(stet_value_get(result, "result"), STET_JSON_PRETTY, &len);
    stet_buf_add(r->out, text, len);
    stet_free(text);
    piece_render_outcome(r, result);
}

#define DEMAND                                                                                                         \
    {                                                                                                                  \
        .name = "demand", .type = STET_PARAM_STRING, .flags = STET_PARAM_REPEATED, .metavar = "PATH",                  \
        .summary = "Only what this part of the result needs: a key, or a path that begins with a slash"                \
    }
#define RETRY_FAILED                                                                                                   \
    {.name = "retry-failed",                                                                                           \
     .type = STET_PARAM_BOOL,                                                                                          \
     .summary = "Rerun actions that failed, even if nothing they read has changed (default)"},                         \
    {                                                                                                                  \
        .name = "no-retry-failed", .type = STET_PARAM_BOOL,                                                            \
        .summary = "Rerun a failed action only if something it read has changed"                                       \
    }
#define RECORD                                                                                                         \
    { .name = "record", .type = STET_PARAM_BOOL, .summary = "Leave a run's files behind even if everything stands" }

static const stet_param run_params[] = {
    {.name = "pattern",
     .type = STET_PARAM_FILE,
     .flags = STET_PARAM_POSITIONAL,
     .metavar = "PATTERN",
     .summary = "The pattern, a JSON or TOML file; without it, the stet.toml of this directory or one above"},
    {.name = "node",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL | STET_PARAM_REPEATED,
     .metavar = "NODE",
     .summary = "Only what these nodes need"},
    {.name = "jobs",
     .letter = 'j',
     .type = STET_PARAM_INT,
     .metavar = "N",
     .summary = "Commands at a time; without it, by the number of processors",
     .min = 1,
     .max = 4096},
    {.name = "keep-going",
     .letter = 'k',
     .type = STET_PARAM_BOOL,
     .summary = "Go on after a command has failed, as far as that goes"},
    {.name = "dry-run", .letter = 'n', .type = STET_PARAM_BOOL, .summary = "Say what does not stand, and run nothing"},
    {.name = "explain", .type = STET_PARAM_BOOL, .summary = "Say of each action that does not stand why"},
    {.name = "piece",
     .type = STET_PARAM_STRING,
     .metavar = "NAME",
     .summary = "Name of the piece; without it the pattern's"},
    {.name = "set",
     .type = STET_PARAM_PAIR,
     .metavar = "K=JSON",
     .summary = "Set a part of the argument first; K is a key, or a path that begins with a slash. The key no longer "
                "follows the pattern's default"},
    {.name = "unset",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_REPEATED,
     .metavar = "KEY",
     .summary = "Return an overridden key of the argument (or cell:NAME, or . for all keys) to the pattern's default"},
    DEMAND,
    RETRY_FAILED,
    {.name = "observe-only",
     .type = STET_PARAM_BOOL,
     .summary = "Run computations only to record what they read: publish nothing, start no command, call or effect"},
    {.name = "watch", .type = STET_PARAM_BOOL, .summary = "Go on, and take up every change, until stopped"},
    RECORD,
    PIECE_PARAM_SPACE,
    PIECE_PARAM_BRANCH,
    PIECE_PARAM_SCOPE,
    {0},
};

static const stet_param pull_params[] = {
    PIECE_PARAM_PIECE, DEMAND, RETRY_FAILED, RECORD, PIECE_PARAM_SPACE, PIECE_PARAM_BRANCH, PIECE_PARAM_SCOPE, {0},
};

static const stet_example run_examples[] = {
    {"run totals.json", "run what no longer stands"},
    {"run totals.json --set factor=3", "with another argument"},
    {"run totals.json --piece march --demand total", "another piece of the same pattern, and one part of its result"},
    {"run totals.json --scope user:ann", "the piece of another scope, which shares nothing with the first"},
    {0},
};
static const stet_example pull_examples[] = {{"piece pull totals", "make the result fresh, and print it"}, {0}};

const stet_op stet_ops_run[] = {
    {.name = "run",
     .summary = "Run a pattern: what no longer stands, and nothing else",
     .description =
         "Makes a piece of the pattern, or finds the one that is there, and runs the actions whose inputs, code or "
         "schemas have changed since they last ran, as far as the result and the effects need them. An unchanged piece "
         "costs a few look-ups, whatever its size.\n\n"
         "Exit status 1 if an action failed or runs in a circle; the others have run. Ctrl-C stops cleanly: what was "
         "done "
         "is stored, and the next start goes on from there.",
     .params = run_params,
     .result_schema = piece_outcome_schema,
     .examples = run_examples,
     .flags = STET_OP_IDEMPOTENT | STET_OP_LONG | STET_OP_COMMON,
     .run = run_run,
     .render = piece_render_outcome,
     .verdict = piece_outcome_verdict},
    {.name = "piece pull",
     .summary = "Make the result of a piece fresh, and print it",
     .params = pull_params,
     .result_schema = piece_outcome_schema,
     .examples = pull_examples,
     .flags = STET_OP_IDEMPOTENT | STET_OP_LONG | STET_OP_COMMON,
     .run = pull_run,
     .render = pull_render,
     .verdict = piece_outcome_verdict},
    {0},
};
