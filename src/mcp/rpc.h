/* rpc.h - JSON-RPC 2.0 as MCP restricts it: lines to messages, and messages to lines. No I/O.
 *
 *     stet_rpc_framer f = {.max = 16 << 20};
 *     stet_rpc_framer_feed(&f, bytes, len, on_line, ctx); // any part of the stream; calls on_line once per line
 *     stet_rpc_framer_end(&f, on_line, ctx);              // for a last line without a newline
 *     stet_rpc_framer_release(&f);
 *
 *     stet_rpc_message m;
 *     if (stet_rpc_classify(value, &m) == STET_RPC_BAD)
 *         printf("%d %s\n", m.code, m.why);
 *
 * A line longer than `max` is dropped up to its newline and reported once, with `line` NULL. Blank lines are skipped.
 *
 * An id is a string of up to STET_RPC_ID_MAX bytes or an integer. Null is refused, as MCP says. An error that belongs
 * to no request, or to one whose id can't be read, has no id at all: MCP's schema has no null there.
 */
#ifndef STET_MCP_RPC_H
#define STET_MCP_RPC_H

#include "base/buf.h"

#define STET_RPC_ID_MAX 1024

enum {
    STET_RPC_PARSE_ERROR = -32700,
    STET_RPC_INVALID_REQUEST = -32600,
    STET_RPC_METHOD_NOT_FOUND = -32601,
    STET_RPC_INVALID_PARAMS = -32602,
    STET_RPC_INTERNAL_ERROR = -32603,
    STET_RPC_RESOURCE_NOT_FOUND = -32002, /* up to 2025-11-25; later -32602 */
    STET_RPC_UNSUPPORTED_VERSION = -32022,
};

typedef void stet_rpc_line(void *ctx, const char *line, size_t len);

typedef struct stet_rpc_framer {
    size_t max;
    stet_buf rest; /* the beginning of an unfinished line */
    bool dropping; /* inside a line that is too long */
} stet_rpc_framer;

void stet_rpc_framer_feed(stet_rpc_framer *f, const char *bytes, size_t len, stet_rpc_line *line, void *ctx);
void stet_rpc_framer_end(stet_rpc_framer *f, stet_rpc_line *line, void *ctx);
void stet_rpc_framer_release(stet_rpc_framer *f);

typedef enum stet_rpc_kind { STET_RPC_REQUEST, STET_RPC_NOTIFICATION, STET_RPC_RESPONSE, STET_RPC_BAD } stet_rpc_kind;

/* All values are borrowed from the message. */
typedef struct stet_rpc_message {
    stet_rpc_kind kind;
    stet_value id; /* null: none, or not a valid one */
    stet_value method;
    stet_value params; /* an object, or null */
    stet_value result; /* of a response; null: an error, or none */
    int code;          /* if the message is bad */
    const char *why;
} stet_rpc_message;

stet_rpc_kind stet_rpc_classify(stet_value message, stet_rpc_message *out);
bool stet_rpc_id_valid(stet_value id);

/* Append messages to `out`, without the newline. `result`, `data` and `params` are consumed; a null `data`, `params` or
 * `id` is left out. */
void stet_rpc_write_result(stet_buf *out, stet_value id, stet_value result);
void stet_rpc_write_error(stet_buf *out, stet_value id, int code, stet_value message, stet_value data);
void stet_rpc_write_notification(stet_buf *out, const char *method, stet_value params);
void stet_rpc_write_request(stet_buf *out, stet_value id, const char *method, stet_value params); /* consumes id, too */

#endif
