/* invoke.c - operations for programs that embed stet: a context takes the place of a surface. */

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "base/suggest.h"
#include "operation/op.h"
#include "os/file.h"

struct stet_context {
    stet_context_options options;
    char *dir; /* real path */
    stet_project *opened;
    atomic_bool cancelled;
};

stet_status stet_context_new(const stet_context_options *options, stet_context **out, stet_error *err) {
    if (!out)
        return stet_fail_null(err);
    static const stet_context_options none = STET_CONTEXT_OPTIONS_INIT;
    const stet_context_options *given = options ? options : &none;
    char *dir;
    stet_context_options known;
    stet_status status = stet_options_read(&known, sizeof known, given, "stet_context_options", err);
    if (status == STET_OK)
        status = stet_file_realpath(known.dir ? known.dir : ".", &dir, err);
    if (status != STET_OK)
        return status;
    stet_context *c = stet_alloc_zero(sizeof *c);
    c->options = known;
    c->dir = dir;
    atomic_init(&c->cancelled, false);
    *out = c;
    return STET_OK;
}

void stet_context_free(stet_context *c) {
    if (!c)
        return;
    if (c->opened)
        stet_project_close(c->opened);
    stet_free(c->dir);
    stet_free(c);
}

void stet_context_cancel(stet_context *c) {
    if (!c)
        return;
    atomic_store(&c->cancelled, true);
}

static stet_status get_project(stet_op_ctx *ctx, stet_project **out, stet_error *err) {
    stet_context *c = ctx->surface;
    stet_status status = STET_OK;
    if (!c->options.project && !c->opened)
        status = stet_project_find(c->dir, &c->opened, err);
    if (status == STET_OK)
        *out = c->options.project ? c->options.project : c->opened;
    return status;
}

static stet_status emit(stet_op_ctx *ctx, stet_value event, stet_error *err) {
    const stet_context *c = ctx->surface;
    return c->options.event ? c->options.event(c->options.user, event, err) : STET_OK;
}

static void progress(stet_op_ctx *ctx, int64_t done, int64_t total, const char *note) {
    const stet_context *c = ctx->surface;
    if (c->options.progress)
        c->options.progress(c->options.user, done, total, note);
}

static bool cancelled(stet_op_ctx *ctx) {
    stet_context *c = ctx->surface;
    return atomic_load(&c->cancelled);
}

static stet_status write_out(stet_op_ctx *ctx, const void *bytes, size_t len, stet_error *err) {
    const stet_context *c = ctx->surface;
    return c->options.output(c->options.user, bytes, len, err);
}

static void warn(stet_op_ctx *ctx, const char *format, ...) {
    const stet_context *c = ctx->surface;
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (c->options.warning)
        c->options.warning(c->options.user, text);
}

static stet_status no_operation(const char *name, stet_error *err) {
    stet_suggest s = stet_suggest_begin(name);
    for (size_t i = 0; i < stet_op_count(); i++)
        stet_suggest_offer(&s, stet_op_at(i)->name);
    stet_fail(err, STET_NOT_FOUND, "there is no operation \"%.100s\"", name);
    if (s.best)
        stet_hint(err, "did you mean \"%.*s\"?", (int)s.best_len, s.best);
    return STET_NOT_FOUND;
}

stet_status stet_context_invoke(stet_context *c, const char *operation, stet_value args, stet_value *result,
                                stet_error *err) {
    if (!c || !operation || !result)
        return stet_fail_null(err);
    const stet_op *op = stet_op_find(operation);
    *result = stet_value_null();
    if (!op)
        return no_operation(operation, err);
    if (atomic_load(&c->cancelled))
        return stet_fail(err, STET_CANCELLED, "%s: the context was cancelled", operation);
    stet_op_ctx ctx = {.op = op,
                       .cwd = c->dir,
                       .project_dir = c->options.project ? stet_project_root(c->options.project) : NULL,
                       .json = true,
                       .surface = c,
                       .project = get_project,
                       .emit = emit,
                       .progress = progress,
                       .cancelled = cancelled,
                       .write_out = c->options.output ? write_out : NULL,
                       .warn = warn};
    stet_value checked, answer = stet_value_null();
    stet_status status = stet_op_check_spelled(op, args, STET_SPELL_ALL, &checked, err);
    if (status != STET_OK)
        return status;
    status = stet_op_run(&ctx, checked, &answer, err);
    stet_value_release(checked);
    if (status != STET_OK)
        return status;
    *result = answer;
    status = stet_op_verdict(op, answer);
    if (status != STET_OK)
        stet_fail(err, status, "%s was not a success: the result says why", operation);
    return status;
}

stet_value stet_operations(void) {
    stet_value list = stet_value_array();
    for (size_t i = 0; i < stet_op_count(); i++) {
        const stet_op *op = stet_op_at(i);
        stet_value v = stet_value_object();
        stet_value_put(&v, "name", stet_value_string(op->name));
        stet_value_put(&v, "summary", stet_value_string(op->summary));
        stet_value_put(&v, "description", stet_value_string(op->description ? op->description : ""));
        stet_value_put(&v, "readOnly", stet_value_bool(op->flags & STET_OP_READ_ONLY));
        stet_value_put(&v, "destructive", stet_value_bool(op->flags & STET_OP_DESTRUCTIVE));
        stet_value_put(&v, "argumentsSchema", stet_op_args_schema(op, STET_SPELL_ALL));
        stet_value_put(&v, "resultSchema", stet_op_result_schema(op));
        stet_value_push(&list, v);
    }
    return list;
}

bool stet_op_destroys(const stet_op *op, stet_value args) {
    if (!(op->flags & STET_OP_DESTRUCTIVE) || stet_value_as_bool(stet_value_get(args, "dry_run")))
        return false;
    return stet_op_param(op, "apply") == NULL || stet_value_type(stet_value_get(args, "apply")) != STET_TYPE_NULL;
}
