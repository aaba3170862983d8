/* rpc.c - JSON-RPC 2.0: lines to messages, and messages to lines. */

#include "mcp/rpc.h"

#include <string.h>

#include "base/json.h"

static bool blank(const char *line, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            return false;
    return true;
}

static void deliver(const char *bytes, size_t len, stet_rpc_line *line, void *ctx) {
    if (!blank(bytes, len))
        line(ctx, bytes, len);
}

/* Appends to the unfinished line; the rest of a line that is too long is dropped. */
static void keep(stet_rpc_framer *f, const char *bytes, size_t len) {
    if (f->dropping)
        return;
    if (f->rest.len + len > f->max) {
        f->dropping = true;
        stet_buf_release(&f->rest);
        return;
    }
    f->rest.max = f->max + 1;
    stet_buf_add(&f->rest, bytes, len);
}

static void complete(stet_rpc_framer *f, stet_rpc_line *line, void *ctx) {
    if (f->dropping)
        line(ctx, NULL, 0);
    else
        deliver(stet_buf_cstr(&f->rest), f->rest.len, line, ctx);
    f->dropping = false;
    if (f->rest.cap > 65536)
        stet_buf_release(&f->rest); /* do not keep the memory of one long line */
    else
        stet_buf_clear(&f->rest);
}

void stet_rpc_framer_feed(stet_rpc_framer *f, const char *bytes, size_t len, stet_rpc_line *line, void *ctx) {
    while (len) {
        const char *end = memchr(bytes, '\n', len);
        size_t part = end ? (size_t)(end - bytes) : len;
        if (end && !f->dropping && f->rest.len == 0 && part <= f->max) {
            deliver(bytes, part, line, ctx); /* a complete line: passed on without copying it */
        } else {
            keep(f, bytes, part);
            if (end)
                complete(f, line, ctx);
        }
        part += end != NULL;
        bytes += part;
        len -= part;
    }
}

void stet_rpc_framer_end(stet_rpc_framer *f, stet_rpc_line *line, void *ctx) {
    if (f->dropping || f->rest.len)
        complete(f, line, ctx);
}

void stet_rpc_framer_release(stet_rpc_framer *f) {
    stet_buf_release(&f->rest);
}

bool stet_rpc_id_valid(stet_value id) {
    size_t len = 0;
    if (stet_value_type(id) == STET_TYPE_STRING)
        stet_value_as_string(&id, &len);
    return stet_value_type(id) == STET_TYPE_INT || (stet_value_type(id) == STET_TYPE_STRING && len <= STET_RPC_ID_MAX);
}

static stet_rpc_kind bad(stet_rpc_message *m, int code, const char *why) {
    m->kind = STET_RPC_BAD;
    m->code = code;
    m->why = why;
    return m->kind;
}

stet_rpc_kind stet_rpc_classify(stet_value message, stet_rpc_message *out) {
    *out = (stet_rpc_message){.kind = STET_RPC_BAD};
    if (stet_value_type(message) != STET_TYPE_OBJECT)
        return bad(out, STET_RPC_INVALID_REQUEST, "a message is a JSON object");
    stet_value id, version = stet_value_get(message, "jsonrpc"), ignored;
    bool has_id = stet_value_find(message, "id", 2, &id);
    if (has_id && stet_rpc_id_valid(id))
        out->id = id;
    size_t len;
    if (stet_value_type(version) != STET_TYPE_STRING || strcmp(stet_value_as_string(&version, &len), "2.0") != 0 ||
        len != 3)
        return bad(out, STET_RPC_INVALID_REQUEST, "\"jsonrpc\" must be \"2.0\"");
    if (!stet_value_find(message, "method", 6, &out->method)) {
        if (stet_value_find(message, "result", 6, &out->result) || stet_value_find(message, "error", 5, &ignored))
            return out->kind = STET_RPC_RESPONSE;
        return bad(out, STET_RPC_INVALID_REQUEST, "\"method\" is missing");
    }
    if (stet_value_type(out->method) != STET_TYPE_STRING)
        return bad(out, STET_RPC_INVALID_REQUEST, "\"method\" must be a string");
    if (has_id && stet_value_type(id) == STET_TYPE_NULL)
        return bad(out, STET_RPC_INVALID_REQUEST, "\"id\" must not be null");
    if (has_id && !stet_rpc_id_valid(id))
        return bad(out, STET_RPC_INVALID_REQUEST, "\"id\" must be an integer or a string of at most 1024 bytes");
    const char *method = stet_value_as_string(&out->method, &len);
    bool notice = strncmp(method, "notifications/", 14) == 0;
    if (has_id && notice)
        return bad(out, STET_RPC_INVALID_REQUEST, "a notification has no \"id\"");
    if (stet_value_find(message, "params", 6, &out->params) && stet_value_type(out->params) != STET_TYPE_OBJECT) {
        if (has_id)
            return bad(out, STET_RPC_INVALID_PARAMS, "\"params\" must be an object");
        out->params = stet_value_null();
    }
    return out->kind = has_id ? STET_RPC_REQUEST : STET_RPC_NOTIFICATION;
}

static void write_message(stet_buf *out, stet_value message) {
    stet_json_write(out, message, STET_JSON_CANONICAL);
    stet_value_release(message);
}

static stet_value begin(stet_value id) {
    stet_value m = stet_value_object();
    stet_value_put(&m, "jsonrpc", stet_value_string("2.0"));
    if (stet_value_type(id) != STET_TYPE_NULL)
        stet_value_put(&m, "id", stet_value_retain(id));
    return m;
}

void stet_rpc_write_result(stet_buf *out, stet_value id, stet_value result) {
    stet_value m = begin(id);
    stet_value_put(&m, "result", result);
    write_message(out, m);
}

void stet_rpc_write_error(stet_buf *out, stet_value id, int code, stet_value message, stet_value data) {
    stet_value m = begin(id), error = stet_value_object();
    stet_value_put(&error, "code", stet_value_int(code));
    stet_value_put(&error, "message", message);
    if (stet_value_type(data) != STET_TYPE_NULL)
        stet_value_put(&error, "data", data);
    stet_value_put(&m, "error", error);
    write_message(out, m);
}

void stet_rpc_write_request(stet_buf *out, stet_value id, const char *method, stet_value params) {
    stet_value m = begin(id);
    stet_value_put(&m, "method", stet_value_string(method));
    stet_value_put(&m, "params", params);
    stet_value_release(id);
    write_message(out, m);
}

void stet_rpc_write_notification(stet_buf *out, const char *method, stet_value params) {
    stet_value m = begin(stet_value_null());
    stet_value_put(&m, "method", stet_value_string(method));
    if (stet_value_type(params) != STET_TYPE_NULL)
        stet_value_put(&m, "params", params);
    write_message(out, m);
}
