/* stores.c - the operations check and gc over every store of a project (stet_store in op.h). */

#include <string.h>

#include "base/suggest.h"
#include "operation/check_rerun.h"
#include "operation/op.h"
#include "operation/text.h"

/* --only names stores, which are known only at run time; hence there is no enum in the table. */
static stet_status check_only(stet_value only, stet_error *err) {
    for (size_t i = 0; i < stet_value_count(only); i++) {
        stet_value name = stet_value_at(only, i);
        const char *text = stet_value_as_string(&name, NULL);
        bool known = false;
        stet_suggest s = stet_suggest_begin(text);
        stet_buf valid = STET_BUF(4096);
        for (size_t j = 0; j < stet_store_count(); j++) {
            known = known || strcmp(text, stet_store_at(j)->name) == 0;
            stet_suggest_offer(&s, stet_store_at(j)->name);
            stet_buf_printf(&valid, "%s%s", j ? ", " : "", stet_store_at(j)->name);
        }
        if (!known) {
            stet_fail(err, STET_INVALID, "--only: there is no store \"%.100s\"; there are: %s", text,
                      stet_buf_cstr(&valid));
            if (s.best)
                stet_hint(err, "did you mean %s?", s.best);
        }
        stet_buf_release(&valid);
        if (!known)
            return STET_INVALID;
    }
    return STET_OK;
}

static bool chosen(stet_value only, const stet_store *store) {
    if (stet_value_count(only) == 0)
        return true;
    for (size_t i = 0; i < stet_value_count(only); i++) {
        stet_value name = stet_value_at(only, i);
        if (strcmp(stet_value_as_string(&name, NULL), store->name) == 0)
            return true;
    }
    return false;
}

static size_t unrepaired(stet_value problems) {
    size_t n = 0;
    for (size_t i = 0; i < stet_value_count(problems); i++)
        n += !stet_value_as_bool(stet_value_get(stet_value_at(problems, i), "repaired"));
    return n;
}

/* Calls `visit` for each selected store that exists. If one fails, its error becomes a problem in its row, and the
 * others are still visited. Cancelling stops the loop. */
typedef stet_status visit_fn(stet_op_ctx *ctx, stet_project *p, const stet_store *store, bool flag, stet_value *row,
                             stet_error *err);

static stet_status each_store(stet_op_ctx *ctx, stet_value args, bool flag, visit_fn *visit, stet_value *rows,
                              stet_error *err) {
    stet_value only = stet_value_get(args, "only");
    stet_project *p;
    stet_status status = check_only(only, err);
    if (status == STET_OK)
        status = ctx->project(ctx, &p, err);
    for (size_t i = 0; status == STET_OK && i < stet_store_count(); i++) {
        const stet_store *store = stet_store_at(i);
        if (!chosen(only, store))
            continue;
        if (ctx->cancelled(ctx))
            return stet_fail(err, STET_CANCELLED, "interrupted before the store %s", store->name);
        ctx->progress(ctx, (int64_t)i, (int64_t)stet_store_count(), store->name);
        stet_value row = stet_value_object();
        stet_value_put(&row, "name", stet_value_string(store->name));
        if (!store->present(p))
            stet_value_put(&row, "status", stet_value_string("absent"));
        else
            status = visit(ctx, p, store, flag, &row, err);
        if (status == STET_OK)
            stet_value_push(rows, row);
        else
            stet_value_release(row);
    }
    return status;
}

void stet_store_problem(stet_value *problems, const char *store, const char *where, const char *what, size_t len,
                        bool repaired) {
    stet_value problem = stet_value_object(), text, place;
    if (stet_value_string_checked(what, len, &text, NULL) != STET_OK)
        text = stet_value_string("damaged");
    if (stet_value_string_checked(where, strlen(where), &place, NULL) != STET_OK)
        place = stet_value_string("");
    stet_value_put(&problem, "store", stet_value_string(store));
    stet_value_put(&problem, "where", place);
    stet_value_put(&problem, "what", text);
    stet_value_put(&problem, "repaired", stet_value_bool(repaired));
    stet_value_push(problems, problem);
}

void stet_store_problems(stet_value *problems, const char *store, const char *where, const stet_buf *lines,
                         bool repaired) {
    for (size_t at = 0; at < lines->len;) {
        size_t len = strcspn(lines->data + at, "\n");
        bool lost = strncmp(lines->data + at, "lost: ", 6) == 0;
        stet_store_problem(problems, store, where, lines->data + at, len, repaired && !lost);
        at += len + 1;
    }
}

static stet_value problem_of_error(const stet_store *store, const stet_error *why) {
    stet_value problem = stet_value_object();
    stet_value_put(&problem, "store", stet_value_string(store->name));
    stet_value_put(&problem, "what", stet_value_string(why->message));
    stet_value_put(&problem, "where", stet_value_string(""));
    stet_value_put(&problem, "code", stet_value_string(stet_status_name(why->status)));
    stet_value_put(&problem, "repaired", stet_value_bool(false));
    return problem;
}

static stet_status check_visit(stet_op_ctx *ctx, stet_project *p, const stet_store *store, bool repair, stet_value *row,
                               stet_error *err) {
    stet_value problems = stet_value_array();
    stet_error why = STET_ERROR_INIT;
    stet_status status = store->check(ctx, p, repair, &problems, &why);
    if (status == STET_CANCELLED) {
        stet_value_release(problems);
        stet_error_move(err, &why);
        return status;
    }
    if (status != STET_OK)
        stet_value_push(&problems, problem_of_error(store, &why));
    stet_error_clear(&why);
    size_t left = unrepaired(problems);
    stet_value_put(row, "status",
                   stet_value_string(left                         ? "problems"
                                     : stet_value_count(problems) ? "repaired"
                                                                  : "ok"));
    stet_value_put(row, "problems", problems);
    return STET_OK;
}

static stet_status check_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_value rows = stet_value_array(), rerun = stet_value_null();
    stet_status status = stet_check_rerun_args(args, err);
    if (status == STET_OK)
        status = each_store(ctx, args, stet_value_as_bool(stet_value_get(args, "repair")), check_visit, &rows, err);
    if (status == STET_OK && stet_value_as_bool(stet_value_get(args, "rerun")))
        status = stet_check_rerun(ctx, args, &rerun, err);
    if (status != STET_OK) {
        stet_value_release(rows);
        return status;
    }
    size_t left = 0;
    for (size_t i = 0; i < stet_value_count(rows); i++)
        left += unrepaired(stet_value_get(stet_value_at(rows, i), "problems"));
    *result = stet_value_object();
    stet_value_put(result, "ok", stet_value_bool(left == 0 && stet_value_count(stet_value_get(rerun, "wrong")) == 0));
    stet_value_put(result, "stores", rows);
    if (stet_value_type(rerun) == STET_TYPE_OBJECT)
        stet_value_put(result, "rerun", rerun);
    return STET_OK;
}

static stet_status verdict(stet_value result) {
    return stet_value_as_bool(stet_value_get(result, "ok")) ? STET_OK : STET_FAILED;
}

static void put_problems(stet_render *r, stet_value problems) {
    for (size_t i = 0; i < stet_value_count(problems); i++) {
        stet_value problem = stet_value_at(problems, i), where = stet_value_get(problem, "where");
        stet_buf_str(r->out, "  ");
        if (stet_value_type(where) == STET_TYPE_STRING && *stet_value_as_string(&where, NULL)) {
            stet_text_value(r, stet_value_get(problem, "where"));
            stet_buf_str(r->out, ": ");
        }
        stet_text_value(r, stet_value_get(problem, "what"));
        stet_buf_str(r->out, stet_value_as_bool(stet_value_get(problem, "repaired")) ? " (repaired)\n" : "\n");
    }
}

static void put_state(stet_render *r, stet_value row) {
    stet_value name = stet_value_get(row, "name"), state = stet_value_get(row, "status");
    const char *text = stet_value_as_string(&state, NULL);
    size_t len;
    const char *shown = stet_value_as_string(&name, &len);
    stet_text_plain(r, shown, len);
    stet_text_pad(r->out, len, 12);
    stet_text_styled(r,
                     strcmp(text, "problems") == 0 || strcmp(text, "failed") == 0 ? STET_STYLE_BAD
                     : strcmp(text, "absent") == 0                                ? STET_STYLE_DIM
                     : strcmp(text, "repaired") == 0                              ? STET_STYLE_WARN
                                                                                  : STET_STYLE_GOOD,
                     text);
}

static void check_render(stet_render *r, stet_value result) {
    stet_value rows = stet_value_get(result, "stores"), rerun = stet_value_get(result, "rerun");
    size_t left = 0;
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        stet_value problems = stet_value_get(stet_value_at(rows, i), "problems");
        put_state(r, stet_value_at(rows, i));
        stet_buf_char(r->out, '\n');
        put_problems(r, problems);
        left += unrepaired(problems);
    }
    if (left)
        stet_buf_str(r->out, "stet check --repair mends what can be mended\n");
    if (stet_value_type(rerun) == STET_TYPE_OBJECT)
        stet_check_rerun_render(r, rerun);
}

static stet_status gc_visit(stet_op_ctx *ctx, stet_project *p, const stet_store *store, bool dry_run, stet_value *row,
                            stet_error *err) {
    stet_value report = stet_value_object();
    stet_error why = STET_ERROR_INIT;
    stet_status status = store->gc(ctx, p, dry_run, &report, &why);
    if (status == STET_CANCELLED) {
        stet_value_release(report);
        stet_error_move(err, &why);
        return status;
    }
    stet_value_put(row, "status", stet_value_string(status == STET_OK ? "ok" : "failed"));
    if (status != STET_OK)
        stet_value_put(row, "error", stet_error_value(&why));
    stet_error_clear(&why);
    stet_value_put(row, "items", stet_value_int(stet_value_as_int(stet_value_get(report, "items"))));
    stet_value_put(row, "bytes", stet_value_int(stet_value_as_int(stet_value_get(report, "bytes"))));
    stet_value_put(row, "report", report);
    return STET_OK;
}

static stet_status gc_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    stet_value rows = stet_value_array();
    stet_value outputs = stet_value_null();
    stet_project *p;
    bool dry_run = stet_value_as_bool(stet_value_get(args, "dry_run")), ok = true;
    stet_status status = STET_OK;
    /* Before the stores, which forget files that were changed by hand. */
    if (stet_value_as_bool(stet_value_get(args, "outputs"))) {
        outputs = stet_value_object();
        status = ctx->project(ctx, &p, err);
        if (status == STET_OK)
            status = stet_outputs_gc(ctx, p, dry_run, &outputs, err);
    }
    if (status == STET_OK)
        status = each_store(ctx, args, dry_run, gc_visit, &rows, err);
    if (status != STET_OK) {
        stet_value_release(rows);
        stet_value_release(outputs);
        return status;
    }
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        stet_value state = stet_value_get(stet_value_at(rows, i), "status");
        ok = ok && strcmp(stet_value_as_string(&state, NULL), "failed") != 0;
    }
    *result = stet_value_object();
    stet_value_put(result, "ok", stet_value_bool(ok));
    stet_value_put(result, "dryRun", stet_value_bool(dry_run));
    stet_value_put(result, "stores", rows);
    if (stet_value_type(outputs) == STET_TYPE_OBJECT)
        stet_value_put(result, "outputs", outputs);
    return STET_OK;
}

/* Prints which files were or would be removed, and which are kept and why. */
static void put_outputs(stet_render *r, stet_value outputs, bool dry_run) {
    stet_value gone = stet_value_get(outputs, "removed"), kept = stet_value_get(outputs, "kept");
    for (size_t i = 0; i < stet_value_count(gone); i++) {
        stet_buf_str(r->out, dry_run ? "  would remove " : "  removed ");
        stet_text_value(r, stet_value_get(stet_value_at(gone, i), "path"));
        stet_buf_char(r->out, '\n');
    }
    for (size_t i = 0; i < stet_value_count(kept); i++) {
        stet_buf_str(r->out, "  kept ");
        stet_text_value(r, stet_value_get(stet_value_at(kept, i), "path"));
        stet_buf_str(r->out, ": ");
        stet_text_value(r, stet_value_get(stet_value_at(kept, i), "why"));
        stet_buf_char(r->out, '\n');
    }
    stet_buf_printf(r->out, "outputs of commands that are gone: %s %zu, kept %zu\n",
                    dry_run ? "would remove" : "removed", stet_value_count(gone), stet_value_count(kept));
}

static void gc_render(stet_render *r, stet_value result) {
    stet_value rows = stet_value_get(result, "stores");
    bool dry_run = stet_value_as_bool(stet_value_get(result, "dryRun"));
    for (size_t i = 0; i < stet_value_count(rows); i++) {
        stet_value row = stet_value_at(rows, i), state = stet_value_get(row, "status");
        const char *text = stet_value_as_string(&state, NULL);
        put_state(r, row);
        if (strcmp(text, "ok") == 0)
            stet_buf_printf(r->out, "  %s %lld items, %lld bytes", dry_run ? "would free" : "freed",
                            (long long)stet_value_as_int(stet_value_get(row, "items")),
                            (long long)stet_value_as_int(stet_value_get(row, "bytes")));
        stet_buf_char(r->out, '\n');
        if (strcmp(text, "failed") == 0) {
            stet_buf_str(r->out, "  ");
            stet_text_value(r, stet_value_get(stet_value_get(row, "error"), "message"));
            stet_buf_char(r->out, '\n');
        }
        int64_t left = stet_value_as_int(stet_value_get(stet_value_get(row, "report"), "outputs"));
        if (left > 0 && stet_value_type(stet_value_get(result, "outputs")) != STET_TYPE_OBJECT)
            stet_buf_printf(r->out, "  %lld output%s of commands that are gone: stet gc --outputs removes %s\n",
                            (long long)left, left == 1 ? "" : "s", left == 1 ? "it" : "them");
    }
    if (stet_value_type(stet_value_get(result, "outputs")) == STET_TYPE_OBJECT)
        put_outputs(r, stet_value_get(result, "outputs"), dry_run);
}

#define ONLY                                                                                                           \
    {                                                                                                                  \
        .name = "only", .type = STET_PARAM_STRING, .flags = STET_PARAM_REPEATED, .metavar = "STORE",                   \
        .summary = "This store and no other"                                                                           \
    }

static const stet_param check_params[] = {
    ONLY,
    {.name = "repair",
     .type = STET_PARAM_BOOL,
     .flags = STET_PARAM_CLI_ONLY,
     .summary = "Mend what can be mended without losing what a user made",
     .default_json = "false"},
    {.name = "rerun",
     .type = STET_PARAM_BOOL,
     .summary = "Also run actions again that are up to date, in a scratch copy, and compare their results",
     .default_json = "false"},
    {.name = "commands",
     .type = STET_PARAM_BOOL,
     .flags = STET_PARAM_CLI_ONLY,
     .summary = "With --rerun: also run commands again, in a copy of the project's files",
     .default_json = "false"},
    {.name = "sample",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL,
     .metavar = "N|all",
     .summary = "With --rerun: how many actions to compare, chosen at random (100 unless given), or all"},
    {.name = "seed",
     .type = STET_PARAM_INT,
     .summary = "With --rerun: choose the same actions as the run that printed this seed",
     .min = 0,
     .max = INT64_MAX},
    {0},
};

static const stet_param gc_params[] = {
    ONLY,
    {.name = "dry-run",
     .letter = 'n',
     .type = STET_PARAM_BOOL,
     .summary = "Say what would be freed, and free nothing",
     .default_json = "false"},
    {.name = "outputs",
     .type = STET_PARAM_BOOL,
     .summary = "Also remove files of the project that commands wrote which are gone, if nobody changed or reads them",
     .default_json = "false"},
    {0},
};

static const stet_example check_examples[] = {
    {"check", "is everything that is stored what it should be?"},
    {"check --only project", "one store alone"},
    {"check --rerun", "are 100 of the results that are up to date what their actions compute?"},
    {"check --rerun all", "are all of them?"},
    {"check --rerun --commands", "the same for commands, in a copy of the project"},
    {"check --repair", "mend what is damaged"},
    {0},
};

static const stet_example gc_examples[] = {
    {"gc --dry-run", "what could be freed"},
    {"gc", "free it"},
    {"gc --outputs --dry-run", "which outputs of commands that are gone could be removed"},
    {0},
};

const stet_op stet_ops_stores[] = {
    {.name = "check",
     .summary = "Check that everything stored is whole and consistent",
     .description =
         "Goes over every store of the project, or those named with --only. Exit status 1 if problems remain. "
         "Without --repair nothing is changed.\n\n"
         "With --rerun, actions of type ref and javascript that are up to date also run again, in a scratch copy of "
         "the "
         "spaces, on the inputs that are stored now. A result, an error or a read that differs from the record is "
         "reported, with exit status 1. Calls, effects and event handlers are left out. Nothing in the project "
         "changes.\n\n"
         "With --commands, commands that are up to date run again as well, in a copy of the whole project, without the "
         "result store. One that makes something else than what is stored runs twice: if its two reruns differ from "
         "each other, it is listed as not reproducible, and does not count as a difference. A command that names the "
         "project by its absolute path, or works outside the project, is left out.",
     .params = check_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"ok\",\"stores\"],\"additionalProperties\":false,\"properties\":{"
         "\"ok\":{\"type\":\"boolean\"},\"stores\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
         "\"required\":[\"name\",\"status\"],\"additionalProperties\":false,\"properties\":{\"name\":{\"type\":"
         "\"string\"},"
         "\"status\":{\"enum\":[\"ok\",\"repaired\",\"problems\",\"absent\"]},"
         "\"problems\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"store\",\"what\","
         "\"repaired\"],"
         "\"properties\":{\"store\":{\"type\":\"string\"},\"what\":{\"type\":\"string\"},\"where\":{\"type\":"
         "\"string\"},"
         "\"repaired\":{\"type\":\"boolean\"}}}}}}},\"rerun\":" STET_CHECK_RERUN_SCHEMA "}}",
     .examples = check_examples,
     .flags = STET_OP_READ_ONLY | STET_OP_LONG | STET_OP_COMMON,
     .run = check_run,
     .render = check_render,
     .verdict = verdict},
    {.name = "gc",
     .summary = "Free what nobody needs any more",
     .description =
         "Goes over every store of the project, or those named with --only. What a store keeps is said by its "
         "settings in .stet/config.toml. Exit status 1 if a store failed.\n\n"
         "What commands wrote stays where it is, unless --outputs is given: then files whose command is gone (its node "
         "was removed, or the file that it was the command of) are removed, if they are byte for byte what it wrote "
         "and "
         "no other node reads, names or writes them. Each is named.",
     .params = gc_params,
     .result_schema =
         "{\"type\":\"object\",\"required\":[\"ok\",\"dryRun\",\"stores\"],\"additionalProperties\":false,"
         "\"properties\":{"
         "\"ok\":{\"type\":\"boolean\"},\"dryRun\":{\"type\":\"boolean\"},\"stores\":{\"type\":\"array\",\"items\":{"
         "\"type\":\"object\",\"required\":[\"name\",\"status\"],\"additionalProperties\":false,\"properties\":{"
         "\"name\":{\"type\":\"string\"},\"status\":{\"enum\":[\"ok\",\"failed\",\"absent\"]},\"items\":{\"type\":"
         "\"integer\"},\"bytes\":{\"type\":\"integer\"},\"report\":{\"type\":\"object\"},\"error\":{\"type\":"
         "\"object\"}}}},\"outputs\":{\"type\":\"object\",\"required\":[\"removed\",\"kept\",\"bytes\"],\"properties\":"
         "{"
         "\"removed\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},\"kept\":{\"type\":\"array\",\"items\":{"
         "\"type\":"
         "\"object\"}},\"bytes\":{\"type\":\"integer\"}}}"
         "}}",
     .examples = gc_examples,
     .flags = STET_OP_DESTRUCTIVE | STET_OP_IDEMPOTENT | STET_OP_LONG | STET_OP_COMMON,
     .run = gc_run,
     .render = gc_render,
     .verdict = verdict},
    {0},
};
