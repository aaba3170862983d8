/* call.c - runs operations for a request on worker threads, and builds the answers. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "mcp/compact.h"
#include "mcp/internal.h"
#include "os/clock.h"
#include "os/file.h"

#define PROGRESS_PERIOD_US 100000
#define WAIT_ABOVE         ((size_t)16 << 20) /* bytes that the client has not read; above this, emitting waits */
#define PAGE_MIN           256

static stet_status open_project(stet_op_ctx *ctx, stet_project **out, stet_error *err) {
    mcp_request *r = ctx->surface;
    if (!r->project) {
        stet_status status = stet_project_find(r->s->dir, &r->project, err);
        if (status != STET_OK)
            return status;
    }
    *out = r->project;
    return STET_OK;
}

static bool cancelled(stet_op_ctx *ctx) {
    mcp_request *r = ctx->surface;
    return atomic_load(&r->cancelled) || atomic_load(&r->s->stopping);
}

/* `message` is consumed; null: none. */
static void tell_progress(mcp_request *r, int64_t total, stet_value message) {
    stet_value params = stet_value_object();
    stet_buf text = STET_BUF(0);
    stet_value_put(&params, "progressToken", stet_value_retain(r->token));
    stet_value_put(&params, "progress", stet_value_int(r->progress));
    if (total > 0)
        stet_value_put(&params, "total", stet_value_int(total));
    if (stet_value_type(message) != STET_TYPE_NULL && r->detail != STET_MCP_PLAIN)
        stet_value_put(&params, "message", message);
    else
        stet_value_release(message);
    stet_rpc_write_notification(&text, "notifications/progress", params);
    mcp_tell(r->s, r, false, &text, NULL);
}

/* The protocol requires that it grows with each notification. */
static void progress(stet_op_ctx *ctx, int64_t done, int64_t total, const char *note) {
    mcp_request *r = ctx->surface;
    if (stet_value_type(r->token) == STET_TYPE_NULL || done <= r->progress)
        return;
    int64_t now = stet_clock_monotonic_us();
    if (now < r->progress_next || atomic_load(&r->s->outcome_bytes) > WAIT_ABOVE)
        return;
    r->progress_next = now + PROGRESS_PERIOD_US;
    r->progress = done;
    tell_progress(r, total, note ? stet_value_stringf("%s", note) : stet_value_null());
}

/* With a progress token each event is a notification; without one they come with the result. */
static stet_status emit(stet_op_ctx *ctx, stet_value event, stet_error *err) {
    mcp_request *r = ctx->surface;
    size_t len;
    if (cancelled(ctx))
        return stet_fail(err, STET_CANCELLED, "cancelled");
    char *text = stet_json_print(event, STET_JSON_CANONICAL, &len);
    if (stet_value_type(r->token) != STET_TYPE_NULL) {
        r->progress++;
        tell_progress(r, 0, stet_value_string_n(text, len));
    } else if (r->events_bytes + len <= r->s->o.max_result / 2) {
        if (stet_value_type(r->events) == STET_TYPE_NULL)
            r->events = stet_value_array();
        stet_value_push(&r->events, stet_value_string_n(text, len));
        r->events_bytes += len;
    } else {
        r->events_bytes = SIZE_MAX / 2; /* drop all further events, not only the long ones */
    }
    stet_free(text);
    /* A client that does not read must not fill the memory. */
    while (r->s->o.threads && atomic_load(&r->s->outcome_bytes) > WAIT_ABOVE && !cancelled(ctx))
        stet_clock_sleep_ms(2);
    return STET_OK;
}

static void warn(stet_op_ctx *ctx, const char *format, ...) {
    mcp_request *r = ctx->surface;
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    mcp_log(r->s, STET_MCP_LOG_ERROR, "%s: warning: %s", ctx->op->name, message);
    if (atomic_load(&r->s->told_from) > MCP_LEVEL_WARNING)
        return;
    stet_value params = stet_value_object();
    stet_buf text = STET_BUF(0);
    stet_value_put(&params, "level", stet_value_string(mcp_levels[MCP_LEVEL_WARNING]));
    stet_value_put(&params, "logger", stet_value_string(ctx->op->name));
    stet_value_put(&params, "data", stet_value_stringf("%s", message));
    stet_rpc_write_notification(&text, "notifications/message", params);
    mcp_tell(r->s, r, false, &text, NULL);
}

static stet_status check_path(const char *root, const char *dir, const char *name, stet_value path, stet_error *err) {
    const char *text = stet_value_as_string(&path, NULL);
    char *full = text[0] == '/' ? stet_strdup(text) : stet_file_join(dir, text);
    bool inside = false;
    stet_status status = stet_file_inside(root, full, &inside, err);
    stet_free(full);
    if (status != STET_OK || inside)
        return status;
    stet_fail(err, STET_DENIED, "%s: %.300s is outside the project %s", name, text, root);
    stet_hint(err, "a server started with --outside takes such paths");
    return STET_DENIED;
}

static stet_status confine_to(const char *root, const char *dir, const stet_op *op, stet_value args, stet_error *err) {
    stet_status status = STET_OK;
    for (const stet_param *p = op->params; p && p->name && status == STET_OK; p++) {
        char name[STET_PARAM_NAME_MAX];
        stet_param_key(p, name);
        stet_value v = stet_value_get(args, name);
        if (p->type != STET_PARAM_FILE)
            continue;
        if (stet_value_type(v) == STET_TYPE_STRING)
            status = check_path(root, dir, name, v, err);
        for (size_t i = 0; stet_value_type(v) == STET_TYPE_ARRAY && i < stet_value_count(v) && status == STET_OK; i++)
            status = check_path(root, dir, name, stet_value_at(v, i), err);
    }
    return status;
}

static stet_status confine(stet_op_ctx *ctx, stet_value args, stet_error *err) {
    mcp_request *r = ctx->surface;
    bool paths = false;
    for (const stet_param *p = ctx->op->params; p && p->name; p++)
        paths = paths || p->type == STET_PARAM_FILE;
    if (!paths || r->s->o.outside)
        return STET_OK;
    stet_project *project;
    stet_error none = STET_ERROR_INIT;
    if (open_project(ctx, &project, &none) == STET_OK)
        return confine_to(stet_project_root(project), r->s->dir, ctx->op, args, err);
    stet_error_clear(&none);
    char *root;
    stet_status status = stet_file_realpath(r->s->dir, &root, err);
    if (status != STET_OK)
        return status;
    status = confine_to(root, r->s->dir, ctx->op, args, err);
    stet_free(root);
    return status;
}

static stet_status run_op(mcp_request *r, const stet_op *op, stet_value given, stet_value *result, stet_error *err) {
    stet_op_ctx ctx = {.op = op,
                       .json = true,
                       .confined = !r->s->o.outside,
                       .cwd = r->s->dir,
                       .surface = r,
                       .project = open_project,
                       .emit = emit,
                       .progress = progress,
                       .cancelled = cancelled,
                       .warn = warn};
    stet_value args;
    stet_status status = stet_op_check_args(op, given, &args, err);
    if (status != STET_OK)
        return status;
    status = confine(&ctx, args, err);
    if (status == STET_OK)
        status = mcp_ask(r, op, args, err);
    if (status == STET_OK)
        status = stet_op_run(&ctx, args, result, err);
    stet_value_release(args);
    return status;
}

void mcp_release_project(mcp_request *r) {
    if (r->project)
        stet_project_close(r->project);
    r->project = NULL;
}

static stet_status caller_call(void *ctx, const stet_op *op, stet_value args, stet_value *result, stet_error *err) {
    stet_status status = run_op(ctx, op, args, result, err);
    stet_value_release(args);
    return status;
}

bool mcp_permitted(void *ctx, const stet_op *op) {
    const mcp_request *r = ctx;
    return stet_mcp_tools_permit(r->s->tools, op);
}

stet_mcp_caller mcp_caller(mcp_request *r) {
    return (stet_mcp_caller){.ctx = r, .permitted = mcp_permitted, .call = caller_call};
}

static void tell_result(mcp_request *r, stet_value result) {
    stet_buf text = STET_BUF(0);
    mcp_write_result(r, &text, result);
    mcp_tell(r->s, r, true, &text, NULL);
}

static void add_text(stet_value *content, stet_value text) {
    stet_value block = stet_value_object();
    stet_value_put(&block, "type", stet_value_string("text"));
    stet_value_put(&block, "text", text);
    stet_value_push(content, block);
}

static size_t page_bytes(const stet_mcp_server *s) {
    return s->o.max_result / 2 > PAGE_MIN ? s->o.max_result / 2 : PAGE_MIN;
}

/* A part of a result's text, with the way to the next. Consumes `page`. */
static stet_value page_result(const mcp_request *r, stet_value page) {
    stet_value content = stet_value_array(), structured = stet_value_object(), v = stet_value_object();
    stet_value next = stet_value_get(page, "next"), id = stet_value_get(page, "result");
    add_text(&content, stet_value_retain(stet_value_get(page, "text")));
    if (stet_value_type(next) == STET_TYPE_INT)
        add_text(&content,
                 stet_value_stringf("This is a part of a result of %lld bytes. The next part: %s with {\"result\":"
                                    "\"%s\",\"offset\":%lld}",
                                    (long long)stet_value_as_int(stet_value_get(page, "bytes")), STET_MCP_RESULT_TOOL,
                                    stet_value_as_string(&id, NULL), (long long)stet_value_as_int(next)));
    stet_value_put(&structured, "page", page);
    stet_value_put(&v, "content", content);
    if (r->detail == STET_MCP_STRUCTURED)
        stet_value_put(&v, "structuredContent", structured);
    else
        stet_value_release(structured);
    stet_value_put(&v, "isError", stet_value_bool(false));
    return v;
}

/* Keeps a text and gives its first page; takes over the text. */
static stet_status first_page(mcp_request *r, char *text, size_t len, stet_value *page, stet_error *err) {
    char id[STET_MCP_PAGE_ID_MAX];
    if (stet_mcp_pages_keep(r->s->pages, text, len, id) &&
        stet_mcp_pages_read(r->s->pages, id, 0, page_bytes(r->s), page))
        return STET_OK;
    return stet_fail(err, STET_LIMIT, "the result has %zu bytes, more than can be kept for paging", len);
}

static stet_value error_result(const stet_error *err, bool whole) {
    stet_value v = stet_value_object(), content = stet_value_array(), wrapper = stet_value_object();
    size_t len;
    stet_value said = stet_error_value(err);
    stet_value_put(&wrapper, "error", whole ? said : stet_mcp_speak_in(said));
    char *text = stet_json_print(wrapper, STET_JSON_CANONICAL, &len);
    add_text(&content, stet_value_string_n(text, len));
    stet_value_put(&v, "content", content);
    stet_value_put(&v, "isError", stet_value_bool(true));
    stet_free(text);
    stet_value_release(wrapper);
    return v;
}

static void add_events(const mcp_request *r, stet_value *content) {
    for (size_t i = 0; i < stet_value_count(r->events); i++)
        add_text(content, stet_value_retain(stet_value_at(r->events, i)));
    if (r->events_bytes >= SIZE_MAX / 2)
        add_text(content,
                 stet_value_string("More events were left out: a request with a progressToken gets each as it comes"));
}

/* What the command line prints as JSON, cut down for a model, as text and as a value. Consumes `result`. */
static stet_status value_result(mcp_request *r, stet_value result, stet_value fields, stet_value *out,
                                stet_error *err) {
    size_t len;
    stet_status verdict = stet_op_verdict(r->op, result);
    if (!r->s->o.filter.whole)
        result = stet_mcp_speak_in(stet_mcp_compact(r->op, result, fields));
    char *text = stet_json_print(result, STET_JSON_CANONICAL, &len);
    if (len > r->s->o.max_result) {
        stet_value page;
        stet_value_release(result);
        stet_status status = first_page(r, text, len, &page, err);
        if (status != STET_OK)
            return status;
        *out = page_result(r, page);
    } else {
        stet_value content = stet_value_array();
        *out = stet_value_object();
        add_events(r, &content);
        add_text(&content, stet_value_string_n(text, len));
        stet_free(text);
        stet_value_put(out, "content", content);
        if (r->detail == STET_MCP_STRUCTURED)
            stet_value_put(out, "structuredContent", result);
        else
            stet_value_release(result);
        stet_value_put(out, "isError", stet_value_bool(false));
    }
    if (verdict != STET_OK) { /* an answer, but not a success: what the command's exit status would tell */
        stet_value meta = stet_value_object();
        stet_value_put(&meta, "stet/status", stet_value_string(stet_status_name(verdict)));
        stet_value_put(&meta, "stet/exit", stet_value_int(verdict));
        stet_value_put(out, "_meta", meta);
    }
    return STET_OK;
}

static stet_status read_page(mcp_request *r, stet_value *out, stet_error *err) {
    stet_value id, page;
    int64_t offset;
    stet_status status = stet_mcp_result_args(&r->args, &id, &offset, err);
    if (status != STET_OK)
        return status;
    if (!stet_mcp_pages_read(r->s->pages, stet_value_as_string(&id, NULL), offset, page_bytes(r->s), &page)) {
        stet_fail(err, STET_NOT_FOUND, "there is no byte %lld of a result \"%.64s\" (any more)", (long long)offset,
                  stet_value_as_string(&id, NULL));
        stet_hint(err, "call the tool that gave it again");
        return STET_NOT_FOUND;
    }
    *out = page_result(r, page);
    return STET_OK;
}

void mcp_run_tool(stet_mcp_job *job) {
    mcp_request *r = (mcp_request *)job;
    stet_error err = STET_ERROR_INIT;
    stet_value result = stet_value_null(), answer;
    int64_t begun = stet_clock_monotonic_us();
    stet_status status;
    if (r->op) {
        stet_value args, fields;
        stet_mcp_prepare(r->op, r->args, r->s->o.filter.whole, &args, &fields);
        status = run_op(r, r->op, args, &result, &err);
        mcp_release_project(r);
        if (status == STET_OK)
            status = value_result(r, result, fields, &answer, &err);
        stet_value_release(args);
        stet_value_release(fields);
    } else {
        status = read_page(r, &answer, &err);
    }
    if (status != STET_OK)
        answer = error_result(&err, r->s->o.filter.whole);
    mcp_log(r->s, STET_MCP_LOG_INFO, "%s: %s, %.1f ms", r->op ? r->op->name : STET_MCP_RESULT_TOOL,
            stet_status_name(status), (double)(stet_clock_monotonic_us() - begun) / 1e3);
    stet_error_clear(&err);
    tell_result(r, answer);
    mcp_request_unref(r);
}

static void tell_failure(mcp_request *r, const stet_error *err) {
    int code = err->status == STET_NOT_FOUND && !r->modern                    ? STET_RPC_RESOURCE_NOT_FOUND
               : err->status == STET_NOT_FOUND || err->status == STET_INVALID ? STET_RPC_INVALID_PARAMS
                                                                              : STET_RPC_INTERNAL_ERROR;
    stet_buf text = STET_BUF(0);
    stet_value data = stet_error_value(err);
    if (r->text)
        stet_value_put(&data, "uri", stet_value_string(r->text));
    stet_rpc_write_error(&text, r->id, code, stet_value_string(err->message), data);
    mcp_tell(r->s, r, true, &text, NULL);
}

static stet_status read_resource(mcp_request *r, stet_value *content, stet_error *err) {
    stet_mcp_caller caller = mcp_caller(r);
    stet_value value;
    stet_status status = stet_mcp_resource_read(&caller, r->text, &value, err);
    if (status != STET_OK)
        return status;
    size_t len;
    char *text = stet_json_print(value, STET_JSON_CANONICAL, &len);
    stet_value_release(value);
    *content = stet_value_object();
    stet_value_put(content, "uri", stet_value_string(r->text));
    stet_value_put(content, "mimeType", stet_value_string("application/json"));
    if (len <= r->s->o.max_result) {
        stet_value_put(content, "text", stet_value_string_n(text, len));
        stet_free(text);
        return STET_OK;
    }
    stet_value page, meta = stet_value_object();
    status = first_page(r, text, len, &page, err);
    if (status != STET_OK) {
        stet_value_release(*content);
        stet_value_release(meta);
        return status;
    }
    stet_value_put(content, "text", stet_value_retain(stet_value_get(page, "text")));
    stet_value_put(content, "mimeType", stet_value_string("text/plain")); /* a part of a JSON text is not JSON */
    stet_value_remove(&page, "text", 4);
    stet_value_put(&meta, "stet/page", page);
    stet_value_put(content, "_meta", meta);
    return STET_OK;
}

/* Answers a request about resources, and lets it go. `result` is taken. */
static void conclude(mcp_request *r, stet_status status, stet_value result, stet_error *err) {
    if (status == STET_OK) {
        mcp_cacheable(r, &result, 0, "private");
        tell_result(r, result);
    } else {
        tell_failure(r, err);
    }
    stet_error_clear(err);
    mcp_release_project(r);
    mcp_request_unref(r);
}

void mcp_run_read(stet_mcp_job *job) {
    mcp_request *r = (mcp_request *)job;
    stet_error err = STET_ERROR_INIT;
    stet_value content, result = stet_value_null();
    stet_status status = read_resource(r, &content, &err);
    if (status == STET_OK) {
        stet_value contents = stet_value_array();
        stet_value_push(&contents, content);
        result = stet_value_object();
        stet_value_put(&result, "contents", contents);
    }
    conclude(r, status, result, &err);
}

/* The last part of an address, or the first of two if `first`. */
static bool part_of(const char *uri, const char *kind, bool first, const char **at, size_t *len) {
    size_t skip = strlen("stet://"), n = strlen(kind);
    if (strncmp(uri, "stet://", skip) != 0 || strncmp(uri + skip, kind, n) != 0 || uri[skip + n] != '/')
        return false;
    const char *rest = uri + skip + n + 1, *slash = strchr(rest, '/');
    if (first && !slash)
        return false;
    *at = first || !slash ? rest : slash + 1;
    *len = first ? (size_t)(slash - rest) : strlen(*at);
    return true;
}

#define COMPLETIONS_MAX 100

/* `args` is what the client sent: which prompt or address, which of its arguments, and how that begins. */
void mcp_run_complete(stet_mcp_job *job) {
    mcp_request *r = (mcp_request *)job;
    stet_mcp_caller caller = mcp_caller(r);
    stet_error err = STET_ERROR_INIT;
    stet_value list = stet_value_array(), values = stet_value_array(), hold[3], seen = stet_value_object();
    stet_value argument = stet_value_get(r->args, "argument"), ref = stet_value_get(r->args, "ref");
    const char *name = stet_value_text_at_or(argument, "name", "", &hold[0]),
               *begin = stet_value_text_at_or(argument, "value", "", &hold[1]),
               *uri = stet_value_text_at_or(ref, "uri", "", &hold[2]);
    char kind[16] = "";
    if (sscanf(uri, "stet://%15[a-z]", kind) != 1) /* a prompt: its arguments are called what they name */
        snprintf(kind, sizeof kind, "%s", name);
    stet_value_release(list);
    if (stet_mcp_resource_list(&caller, &list, &err) != STET_OK)
        list = stet_value_array(); /* no project: nothing to complete with */
    size_t total = 0;
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value of = stet_value_get(stet_value_at(list, i), "uri");
        const char *at;
        size_t len;
        if (!part_of(stet_value_as_string(&of, NULL), kind, strcmp(name, "space") == 0, &at, &len) ||
            strncmp(at, begin, strlen(begin)) != 0 || stet_value_find(seen, at, len, NULL))
            continue;
        stet_value_put_n(&seen, at, len, stet_value_null());
        if (total++ < COMPLETIONS_MAX)
            stet_value_push(&values, stet_value_string_n(at, len));
    }
    stet_value completion = stet_value_object(), result = stet_value_object();
    stet_value_put(&completion, "values", values);
    stet_value_put(&completion, "total", stet_value_int((int64_t)total));
    stet_value_put(&completion, "hasMore", stet_value_bool(total > COMPLETIONS_MAX));
    stet_value_put(&result, "completion", completion);
    stet_value_release(seen);
    stet_value_release(list);
    stet_error_clear(&err);
    tell_result(r, result);
    mcp_release_project(r);
    mcp_request_unref(r);
}

void mcp_run_list(stet_mcp_job *job) {
    mcp_request *r = (mcp_request *)job;
    stet_mcp_caller caller = mcp_caller(r);
    stet_error err = STET_ERROR_INIT;
    stet_value list, result = stet_value_null();
    stet_status status = stet_mcp_resource_list(&caller, &list, &err);
    if (status == STET_NOT_FOUND) { /* no project yet: nothing to list */
        stet_error_clear(&err);
        list = stet_value_array();
        status = STET_OK;
    }
    if (status == STET_OK) {
        r->list_digest = mcp_list_digest(list);
        if (!mcp_list_page(r->s, list, "resources", "uri", r->text, &result))
            status = stet_fail(&err, STET_INVALID, "cursor: not one that nextCursor gave");
    }
    free(r->text);
    r->text = NULL;
    conclude(r, status, result, &err);
}
