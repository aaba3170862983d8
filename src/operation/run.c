/* run.c - the operations run and piece pull. */

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "graph/pattern_toml.h"
#include "operation/args.h"
#include "operation/piece_common.h"
#include "operation/runs_common.h"
#include "operation/text.h"
#include "os/file.h"

static stet_status settled(void *ctx, const stet_sched_report *report, int64_t duration_ms, stet_error *err) {
    stet_op_ctx *c = ctx;
    stet_value event = stet_value_object();
    stet_value_put(&event, "ran", stet_value_int((int64_t)report->ran));
    stet_value_put(&event, "restored", stet_value_int((int64_t)report->restored));
    stet_value_put(&event, "failed", stet_value_int((int64_t)report->failed));
    stet_value_put(&event, "stood", stet_value_int((int64_t)report->stood));
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

/* The first word is a pattern if a file of that name exists; otherwise it is a node, like the other words, of the
 * nearest stet.toml. */
static stet_status which_pattern(stet_op_ctx *ctx, stet_value args, char **path, stet_value *nodes, stet_error *err) {
    stet_value hold;
    const char *word = stet_value_text_at_or(args, "pattern", "", &hold);
    *nodes = stet_value_type(stet_value_get(args, "node")) == STET_TYPE_ARRAY
                 ? stet_value_retain(stet_value_get(args, "node"))
                 : stet_value_array();
    if (*word) {
        *path = stet_op_path(ctx, word);
        size_t len = strlen(word);
        static const char *const ends[] = {".json", ".toml", ".js", ".mjs"};
        bool named = strchr(word, '/') != NULL;
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
            named |= len > strlen(ends[i]) && strcmp(word + len - strlen(ends[i]), ends[i]) == 0;
        if (named || stet_file_exists(*path))
            return STET_OK;
        stet_free(*path);
    }
    *path = find_upward(ctx->project_dir ? ctx->project_dir : ctx->cwd);
    if (!*path) {
        stet_value_release(*nodes);
        stet_fail(err, STET_NOT_FOUND,
                  *word ? "there is no pattern %s, and no " STET_PATTERN_TOML " here or above"
                        : "there is no " STET_PATTERN_TOML " here or above%s",
                  word);
        stet_hint(err, "name a pattern: stet run FILE, or write a " STET_PATTERN_TOML " (docs/pipelines.md)");
        return STET_NOT_FOUND;
    }
    if (*word)
        stet_value_insert_at(nodes, 0, stet_value_string(word));
    return STET_OK;
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
    stet_value hold[5], nodes;
    char *path;
    stet_status status = which_pattern(ctx, args, &path, &nodes, err);
    if (status != STET_OK) {
        hint_at_runs(args, err);
        return status;
    }
    stet_drive_spec spec = {.space = stet_value_text_at_or(args, "space", "main", &hold[1]),
                            .branch = stet_value_text_at_or(args, "branch", "", &hold[2]),
                            .pattern = path,
                            .piece = stet_value_text_at(args, "piece", &hold[3]),
                            .scope = stet_value_text_at(args, "scope", &hold[4]),
                            .set = stet_value_get(args, "set"),
                            .unset = stet_value_get(args, "unset"),
                            .demand = stet_value_get(args, "demand"),
                            .retry_failed = !stet_value_as_bool(stet_value_get(args, "no_retry_failed")),
                            .observe_only = stet_value_as_bool(stet_value_get(args, "observe_only")),
                            .result = ctx->json ? STET_DRIVE_SHOW_RESULT : STET_DRIVE_NO_RESULT,
                            .record = stet_value_as_bool(stet_value_get(args, "record")),
                            .watch = stet_value_as_bool(stet_value_get(args, "watch")),
                            .settled = settled,
                            .nodes = nodes,
                            .jobs = (int)stet_value_as_int(stet_value_get(args, "jobs")),
                            .stop_on_failure = !stet_value_as_bool(stet_value_get(args, "keep_going")),
                            .explain = stet_value_as_bool(stet_value_get(args, "explain")),
                            .dry_run = stet_value_as_bool(stet_value_get(args, "dry_run"))};
    status = piece_drive(ctx, &spec, result, err);
    if (status == STET_INVALID || status == STET_NOT_FOUND)
        hint_at_runs(args, err);
    if (status == STET_OK && spec.watch) { /* each settling was reported when it ended */
        stet_value_release(*result);
        *result = stet_value_null();
    }
    stet_free(path);
    stet_value_release(nodes);
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
